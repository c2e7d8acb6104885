"""Estimates made on several draws of the links, pooled by Rubin's rules."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit

from bayeslink.errors import InputError, SettingsError, check_interval
from bayeslink.pairs.source import Floats

Value = float | Floats
"""A number, or an array of them if the estimates are vectors."""


@dataclass(frozen=True, slots=True)
class Pooled:
    """Estimates from several linkages as one, by Rubin's rules.

    Numbers if the estimates were numbers, arrays if they were vectors; `within`, `between` and
    `total` are matrices if covariance matrices were given.

    Attributes
    ----------
    estimate
        Mean of the estimates.
    within
        Mean of their variances: the uncertainty if the links were known.
    between
        Variance of the estimates: the uncertainty from not knowing the links.
    total
        within + (1 + 1/k) between.
    df
        Degrees of freedom of the t interval; infinite if all estimates are equal.
    low, high
        Bounds of the interval.
    missing_information
        Share of the information that was lost by not knowing the links.
    k
        How many estimates were pooled.
    """

    estimate: Value
    within: Value
    between: Value
    total: Value
    df: Value
    low: Value
    high: Value
    missing_information: Value
    k: int


def pool(
    estimates: Iterable[Any],
    variances: Iterable[Any] | None = None,
    *,
    complete_df: float | None = None,
    interval: float = 0.95,
) -> Pooled:
    """Pool estimates made on several draws of the links, by Rubin's rules (1987).

    Parameters
    ----------
    estimates
        One number or vector for each draw; or, without `variances`, pairs (estimate, variance).
        Draws far apart in the chain count as independent, neighbours do not.
    variances
        The squared standard error, or vector of them, or covariance matrix, of each.
    complete_df
        Degrees of freedom that the analysis would have with known links, for small samples
        (Barnard & Rubin 1999). Taken as infinite if left out.
    interval
        Probability of the interval.

    Returns
    -------
    Pooled
    """
    q, u = _checked_estimates(estimates, variances)
    check_interval(interval)
    if complete_df is not None and not complete_df > 0:
        raise SettingsError(
            f"complete_df must be positive, got {complete_df!r}. It is the degrees of freedom of "
            "one analysis, for a regression records minus coefficients; leave it out if large."
        )
    k = len(q)
    estimate, within = q.mean(axis=0), u.mean(axis=0)
    matrix = u.ndim > q.ndim
    away = q - estimate
    between = (away.T @ away if matrix else (away**2).sum(axis=0)) / (k - 1)
    total = within + (1 + 1 / k) * between
    variance, extra = (np.diagonal(v) if matrix else v for v in (total, (1 + 1 / k) * between))
    share = np.divide(extra, variance, out=np.zeros_like(estimate), where=np.asarray(variance > 0))
    df = _degrees_of_freedom(share, k, complete_df)
    margin = stdtrit(df, (1 + interval) / 2) * np.sqrt(variance)
    return Pooled(
        estimate=_plain(estimate),
        within=_plain(within),
        between=_plain(between),
        total=_plain(total),
        df=_plain(df),
        low=_plain(estimate - margin),
        high=_plain(estimate + margin),
        missing_information=_plain(share + (1 - share) * 2 / (df + 3)),
        k=k,
    )


def _plain(x: Floats) -> Value:
    return x if x.ndim else float(x)


def _degrees_of_freedom(share: Floats, k: int, complete_df: float | None) -> Floats:
    """Degrees of freedom from the share of the variance that is due to the links."""
    with np.errstate(divide="ignore"):
        inverse = share**2 / (k - 1)
        if complete_df is not None and np.isfinite(complete_df):
            observed = (complete_df + 1) / (complete_df + 3) * complete_df * (1 - share)
            # Without any variance within, the analysis has no degrees of freedom of its own.
            inverse = inverse + np.where(share < 1, 1 / observed, 0)
        return np.asarray(1 / inverse)


def _checked_estimates(
    estimates: Iterable[Any], variances: Iterable[Any] | None
) -> tuple[Floats, Floats]:
    estimates = list(estimates)
    if len(estimates) < 2:
        raise SettingsError(
            f"pool needs at least two estimates, got {len(estimates)}. How they differ tells how "
            "unsure the links are; run the analysis on several draws of the links."
        )
    try:
        if variances is None:
            estimates, variances = zip(*estimates, strict=True)
        q = np.array([np.asarray(v, np.float64) for v in estimates])
        u = np.array([np.asarray(v, np.float64) for v in variances])
    except (TypeError, ValueError) as error:
        raise InputError(
            "The estimates and variances cannot be read as numbers of one shape. Give k estimates "
            "and k variances, or one list of k pairs (estimate, variance)."
        ) from error
    if q.ndim > 2 or u.shape not in (q.shape, (*q.shape, *q.shape[1:])):
        raise InputError(
            f"The variances have the shape {u.shape}, the estimates {q.shape}. Each estimate, a "
            "number or a vector, needs a variance of its own shape or a covariance matrix."
        )
    own = np.diagonal(u, axis1=-2, axis2=-1) if u.ndim > q.ndim else u
    if not (np.isfinite(q).all() and np.isfinite(u).all() and (own >= 0).all()):
        raise InputError(
            "The estimates must be finite, and the variances finite and not negative. Give squared "
            "standard errors; leave out analyses that failed."
        )
    return q, u
