"""Do the chains agree? R-hat, effective sample size and Monte Carlo error of posterior draws.

After Vehtari, Gelman, Simpson, Carpenter & Bürkner (2021), "Rank-normalization, folding, and
localization: an improved R-hat", and equal to what ArviZ gives, with two differences on purpose.
A constant has no R-hat and no sample size: that nothing moved is no evidence that all is well.
And a single chain has an R-hat, which compares its two halves.

Inside, arrays have the shape (..., chains, draws), so that many quantities are done at once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from bayeslink.errors import InputError, SettingsError
from bayeslink.notebook_html import html_table

Floats = NDArray[np.float64]

RHAT_AGREE = 1.01
"""Up to here chains agree, as Vehtari et al. advise."""
RHAT_DISAGREE = 1.05
"""Above this they disagree; in between they nearly agree."""
ESS_ENOUGH = 100.0
"""Independent draws below which mean and interval are too rough to report."""
MIN_DRAWS = 4
"""Draws per chain below which nothing can be said: a half needs two for a variance."""

OK = "ok"
CONSTANT = "constant"
DISAGREE = "chains disagree"
NEARLY = "chains nearly agree"
TOO_FEW = "too few draws"

_BATCH = 2**17  # Values worked on at a time: they stay in the processor's cache.
_NAMED = 3  # Quantities a warning names before it only counts them.


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """Summary of one quantity, and whether the chains can be trusted on it.

    Attributes
    ----------
    name
        The quantity.
    mean, sd, low, high
        Of all draws together; low and high bound the central interval.
    rhat
        Rank-normalised split R-hat. None if there is none: a constant, fewer than four draws, or
        chains that are each constant but differ, for which it is infinite.
    ess
        Effective number of independent draws, in the bulk. None for a constant or few draws.
    mcse
        Monte Carlo standard error of the mean. None as `ess`.
    status
        The worst that applies, in this order: "too few draws" (fewer than four per chain),
        "constant" (nothing moved, so nothing was checked), "chains disagree" (R-hat above 1.05),
        "too few draws" (ess below 100), "chains nearly agree" (R-hat above 1.01), "ok".
    """

    name: str
    mean: float
    sd: float
    low: float
    high: float
    rhat: float | None
    ess: float | None
    mcse: float | None
    status: str


def ess_bulk(x: ArrayLike) -> float:
    """Effective number of independent draws for the centre of the distribution.

    Parameters
    ----------
    x
        Draws, of shape (chains, draws).

    Returns
    -------
    float
        Larger than the number of draws if they alternate; nan for a constant, for values that are
        not finite, or for fewer than four draws.
    """
    x = np.asarray(x, np.float64)
    if x.ndim != 2:
        raise InputError(
            f"Draws must have the shape (chains, draws), got {x.shape}. "
            "For a single chain give x[None, :]."
        )
    if x.shape[0] == 0 or x.shape[1] < MIN_DRAWS or not np.isfinite(x).all() or np.ptp(x) == 0:
        return float("nan")
    return float(_ess(_normal_scores(_split(x))))


class Diagnostics(list[Diagnostic]):
    """Diagnostics of several quantities: a list that prints as a table."""

    _COLUMNS = ("name", "mean", "low", "high", "rhat", "ess", "status")

    def _rows(self) -> list[list[str]]:
        return [
            [f"{x:.4g}" if isinstance(x, float) else "–" if x is None else str(x)
             for x in (getattr(each, name) for name in self._COLUMNS)]
            for each in self
        ]  # fmt: skip

    def __repr__(self) -> str:
        rows = [list(self._COLUMNS), *self._rows()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        )

    def _repr_html_(self) -> str:
        return html_table("Draws, chain by chain", self._COLUMNS, self._rows())


def summarize(
    quantities: Mapping[str, NDArray[np.generic]], *, interval: float = 0.95
) -> Diagnostics:
    """Summarize each quantity and say in plain words whether its chains agree.

    Parameters
    ----------
    quantities
        Draws by name, each of shape (chains, draws).
    interval
        Probability of the central interval.

    Returns
    -------
    Diagnostics
        A list in the order given. No number in it is nan or infinite.
    """
    if not 0 < interval < 1:
        raise SettingsError(
            f"interval must be between 0 and 1, got {interval!r}. It is the probability that the "
            "interval holds; write 95 % as 0.95."
        )
    shapes: dict[tuple[int, ...], list[str]] = {}
    for name, x in quantities.items():
        shapes.setdefault(_checked(x, name).shape, []).append(name)
    done: dict[str, Diagnostic] = {}
    for (chains, draws), names in shapes.items():
        step = max(1, _BATCH // (chains * draws))
        for start in range(0, len(names), step):
            batch = names[start : start + step]
            draws_of = np.array([quantities[name] for name in batch], np.float64)
            done.update(zip(batch, _summaries(batch, draws_of, interval), strict=True))
    return Diagnostics(done[name] for name in quantities)


def verdict(diagnostics: Sequence[Diagnostic]) -> str | None:
    """Warn in one sentence about the quantities that are not "ok", and say what to do.

    Parameters
    ----------
    diagnostics
        From `summarize`.

    Returns
    -------
    str or None
        None if every quantity is ok.
    """
    advice = {
        DISAGREE: "the chains disagree on {}: they may sit in different modes that they do not "
        "leave, so look at the modes, tune and draw for longer, and trust no interval until then",
        NEARLY: "the chains only nearly agree on {}: draw more",
        TOO_FEW: "there are too few independent draws of {}: draw more",
        CONSTANT: "nothing could be checked on {}, which never changed: either nothing else is "
        "possible, or the chains sit in a mode they do not leave",
    }
    parts = []
    for status, text in advice.items():
        if names := [d.name for d in diagnostics if d.status == status]:
            parts.append(text.format(_listed(names)))
    sentence = "; ".join(parts)
    return sentence[0].upper() + sentence[1:] + "." if sentence else None


def _listed(names: list[str]) -> str:
    """'a', 'a and b', 'a, b and c', 'a, b, c and 4 more'."""
    rest = len(names) - _NAMED
    shown = [*names[:_NAMED], f"{rest} more"] if rest > 0 else names
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def _checked(x: NDArray[np.generic], name: str) -> NDArray[np.generic]:
    x = np.asarray(x)
    if x.ndim != 2 or not x.size:
        raise InputError(
            f"{name} has the shape {x.shape}. Draws must have the shape (chains, draws), with at "
            "least one of each; for a single chain give x[None, :]."
        )
    if not np.isfinite(x).all():
        raise InputError(
            f"{name} has draws that are not finite. Only finite ones can be averaged; "
            "leave this quantity out, or transform it."
        )
    return x


def _summaries(names: list[str], x: Floats, interval: float) -> list[Diagnostic]:
    """Summarize quantities of one shape, (names, chains, draws)."""
    tail = (1 - interval) / 2
    flat = x.reshape(len(x), -1)
    low, high = np.quantile(flat, [tail, 1 - tail], axis=1)
    sd = flat.std(axis=1, ddof=min(1, flat.shape[1] - 1))
    constant = np.ptp(flat, axis=1) == 0
    checks = np.full((3, len(x)), np.nan)
    if x.shape[-1] >= MIN_DRAWS:
        halves = _split(x)
        scores = _normal_scores(halves)
        checks[:] = _rhat(halves, scores), _ess(scores), _mcse_mean(x)
        checks[:, constant] = np.nan
    rows = zip(names, flat.mean(axis=1), sd, low, high, checks.T, constant, strict=True)
    return [
        Diagnostic(
            name=name,
            mean=float(mean),
            sd=float(sd),
            low=float(low),
            high=float(high),
            rhat=_shown(rhat),
            ess=_shown(ess),
            mcse=_shown(mcse),
            status=_status(x.shape[-1], fixed, rhat, ess),
        )
        for name, mean, sd, low, high, (rhat, ess, mcse), fixed in rows
    ]


def _shown(number: float) -> float | None:
    return float(number) if np.isfinite(number) else None


def _status(draws: int, constant: bool, rhat: float, ess: float) -> str:
    if draws < MIN_DRAWS:
        return TOO_FEW
    if constant:
        return CONSTANT
    if rhat > RHAT_DISAGREE:
        return DISAGREE
    if np.isnan(rhat) or ess < ESS_ENOUGH:
        return TOO_FEW
    return OK if rhat <= RHAT_AGREE else NEARLY


def _split(x: Floats) -> Floats:
    """Cut chains in halves; the middle one of an odd number of draws is left out."""
    half = x.shape[-1] // 2
    return np.concatenate([x[..., :half], x[..., -half:]], axis=-2)


def _normal_scores(x: Floats) -> Floats:
    """Replace values by normal quantiles of their ranks among all chains (Blom)."""
    flat = x.reshape(*x.shape[:-2], -1)
    rank = np.apply_along_axis(_average_ranks, -1, flat)
    return ndtri((rank - 3 / 8) / (flat.shape[-1] + 1 / 4)).reshape(x.shape)


def _average_ranks(x: Floats) -> Floats:
    """Ranks from 1; equal values share the mean of theirs. (SciPy's takes a second to import.)"""
    if np.isnan(x).any():
        return np.full(len(x), np.nan)
    order = np.argsort(x, kind="stable")
    first = np.flatnonzero(np.append(True, np.diff(x[order]) != 0))
    end = np.append(first[1:], len(x))
    rank = np.empty(len(x))
    rank[order] = np.repeat((first + end + 1) / 2, end - first)
    return rank


def _rhat(halves: Floats, scores: Floats) -> Floats:
    """The larger of bulk and tail R-hat; `scores` are the normal scores of `halves`.

    The first sees chains in different places, the second chains of different spread.
    """
    folded = np.abs(halves - np.median(halves, axis=(-2, -1), keepdims=True))
    # A constant can come out of folding, for instance two equally frequent values: fmax skips nan.
    return np.fmax(_plain_rhat(scores), _plain_rhat(_normal_scores(folded)))


def _plain_rhat(x: Floats) -> Floats:
    n = x.shape[-1]
    variances = np.where(np.ptp(x, axis=-1) == 0, 0, x.var(axis=-1, ddof=1))  # without rounding
    within = variances.mean(axis=-1)
    between = x.mean(axis=-1).var(axis=-1, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.sqrt(between / within + (n - 1) / n)


def _ess(x: Floats) -> Floats:
    """Number of draws over τ = 1 + 2 Σ ρ_t, by Geyer's initial monotone sequence."""
    chains, n = x.shape[-2:]
    size = chains * n
    acov = _mean_autocovariance(x)
    variance = acov[..., :1] + x.mean(axis=-1).var(axis=-1, ddof=1)[..., None]
    with np.errstate(divide="ignore", invalid="ignore"):
        rho = 1 - (acov[..., :1] * n / (n - 1) - acov) / variance
    rho[..., 0] = 1
    n_pairs = max(0, (n - 3) // 2) + 1
    even = rho[..., 0 : 2 * n_pairs : 2]
    pairs = even + rho[..., 1 : 2 * n_pairs : 2]
    # Sums of neighbours are positive in theory; the first that is not ends the sum, or the last.
    ends = pairs <= 0
    ends[..., -1] = True
    end = ends.argmax(axis=-1)[..., None]
    kept = np.where(np.arange(n_pairs) < end, np.minimum.accumulate(pairs, axis=-1), 0).sum(axis=-1)
    rest = np.take_along_axis(np.where(pairs >= 0, even, np.maximum(even, 0)), end, axis=-1)
    tau = np.maximum(2 * kept + rest[..., 0] - 1, 1 / np.log10(size))
    constant = np.ptp(x, axis=(-2, -1)) == 0
    return np.where(constant, size, size / tau)


def _mean_autocovariance(x: Floats) -> Floats:
    """Autocovariance at every lag, averaged over chains, by FFT."""
    import scipy.fft

    n = x.shape[-1]
    length = scipy.fft.next_fast_len(2 * n, real=True)
    spectrum = scipy.fft.rfft(x - x.mean(axis=-1, keepdims=True), length, axis=-1)
    power = (spectrum.real**2 + spectrum.imag**2).mean(axis=-2)
    return scipy.fft.irfft(power, length, axis=-1)[..., :n] / n


def _mcse_mean(x: Floats) -> Floats:
    """Monte Carlo standard error of the mean: sd / √ess, of the draws as they are."""
    return x.std(axis=(-2, -1), ddof=1) / np.sqrt(_ess(_split(x)))
