"""Population size from three lists or more: log-linear models with dependence between lists.

People are counted by the lists they are in. A log-linear model of these counts says how many are
in none; which lists depend on each other is averaged over by BIC, or the best model is taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayeslink.errors import InputError, SettingsError, check_interval
from bayeslink.notebook_html import html_table
from bayeslink.pairs.source import Floats, Ints
from bayeslink.sampling.population import population_size

MOST_LISTS = 5
_WINDOW = 12.0  # models whose BIC is further from the best weigh less than 1 in 400
_STEPS = 100
_LARGEST = 40.0  # of log N_0; beyond it nothing was learned
_Term = frozenset[int]  # lists that an effect is of; one list: its own effect


@dataclass(frozen=True, slots=True)
class ListModel:
    """One log-linear model, at the average counts.

    Attributes
    ----------
    name
        Lists that depend on each other, such as "census:survey"; "independent" if none do.
    bic, probability
        Deviance + parameters · log(people seen); exp(−BIC/2), normed over the models.
    population
        The estimate of the population size under this model.
    """

    name: str
    bic: float
    probability: float
    population: float


@dataclass(frozen=True, slots=True)
class ManyLists:
    """Posterior of the number of people, in any of the lists or in none.

    Attributes
    ----------
    draws
        One population size for each draw of the counts.
    median, low, high
        Of the draws: the median and the central interval.
    seen
        People in one list at least, on average over the draws.
    models
        The models that were averaged over, the likeliest first. None where there are two lists:
        then `population_size` answers, which takes them for independent.
    how
        "averaged by BIC", "best by BIC" or "two independent lists".
    strata
        The same for each stratum, where counts were given by stratum; the draws above are their
        sums.
    """

    draws: Ints
    median: float
    low: float
    high: float
    seen: float
    models: tuple[ListModel, ...]
    how: str
    strata: Mapping[str, ManyLists]

    def __repr__(self) -> str:
        lines = [
            f"population {self.median:,.0f}, interval {self.low:,.0f} to {self.high:,.0f}; "
            f"{self.seen:,.0f} people seen ({self.how})"
        ]
        lines += [
            f"  {one.probability:.3f}  {one.name}: {one.population:,.0f}" for one in self.models[:5]
        ]
        lines += [
            f"  {name}: {own.median:,.0f}, {own.low:,.0f} to {own.high:,.0f}"
            for name, own in self.strata.items()
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [
            (one.name, f"{one.probability:.3f}", f"{one.population:,.0f}") for one in self.models
        ]
        title, *_ = repr(self).splitlines()
        return html_table(title, ("lists that depend on each other", "weight", "people"), rows)


def population_from_lists(
    counts: ArrayLike | Mapping[str, ArrayLike],
    lists: Sequence[str],
    *,
    models: Literal["average", "best"] = "average",
    interval: float = 0.95,
    seed: int = 0,
) -> ManyLists:
    """Posterior of the population size from several lists, linkage doubt included.

    Parameters
    ----------
    counts
        People by the lists they are in: entry h − 1 counts those in exactly the lists whose bits
        are set in h, the first list being bit 1, the second bit 2, the third bit 4. One row, or
        one row for each draw of a linkage, as `list_counts` gives them. Or a mapping from stratum
        to such counts, with draws in the same order.
    lists
        Their names, two to five.
    models
        "average": over log-linear models by BIC, each draw from one of them; "best": the model of
        lowest BIC at the average counts.
    interval
        Probability of the central interval.
    seed
        The same seed gives the same draws.

    Notes
    -----
    Counts are Poisson with log mean X β over the 2^K − 1 cells that can be seen; N_0 = exp(β_0)
    are in no list. Models are hierarchical, with every list's own effect and without the
    interaction of all lists, which the data cannot tell from N_0. With five lists only
    interactions of two are considered. Where no person is in both of two lists, their interaction
    is −∞: its cells are left out (Chan, Silverman and Vincent 2021). A draw of N takes a model in
    proportion to exp(−BIC/2), log N_0 from its normal approximation, and N_0 itself as Poisson.
    Two lists: `population_size`, exactly.
    """
    if models not in ("average", "best"):
        raise SettingsError(f"models must be 'average' or 'best', got {models!r}.")
    check_interval(interval)
    names = _checked_names(lists)
    if isinstance(counts, Mapping):
        return _by_stratum(counts, names, models, interval, seed)
    table = _checked_counts(counts, len(names))
    rng = np.random.default_rng(seed)
    if len(names) == 2:
        return _two_lists(table, interval, seed)
    candidates = _fitted(table.mean(0), names)
    kept = candidates[:1] if models == "best" else candidates
    draws = _draw(table, kept, rng)
    total = sum(np.exp(-(c.bic - kept[0].bic) / 2) for c in kept)
    told = tuple(
        ListModel(c.name, c.bic, float(np.exp(-(c.bic - kept[0].bic) / 2) / total), c.population)
        for c in kept
    )
    how = "averaged by BIC" if models == "average" else "best by BIC"
    return _summary(draws, table, interval, told, how, {})


def list_counts(membership: ArrayLike) -> Ints:
    """People by the lists they are in, from one row a person and one column a list (in it or not).

    Leading axes, such as draws, are kept.
    """
    inside = np.asarray(membership, bool)
    n_lists = inside.shape[-1]
    history = inside @ (1 << np.arange(n_lists))
    flat = history.reshape(-1, history.shape[-1])
    counted = [np.bincount(row, minlength=1 << n_lists)[1:] for row in flat]
    return np.array(counted, np.int64).reshape(*history.shape[:-1], (1 << n_lists) - 1)


# --- models -----------------------------------------------------------------------------------


class _Fitted(NamedTuple):
    terms: tuple[_Term, ...]
    name: str
    bic: float
    population: float


class _Fit(NamedTuple):
    log_unseen: float
    error: float  # its standard error
    deviance: float


def _all_models(n_lists: int) -> list[tuple[_Term, ...]]:
    """Hierarchical models by their interactions, the fewest first; none of all lists."""
    lists = range(n_lists)
    own = tuple(frozenset([k]) for k in lists)
    sizes = range(2, n_lists) if n_lists < MOST_LISTS else range(2, 3)
    interactions = [frozenset(c) for size in sizes for c in combinations(lists, size)]
    found: list[tuple[_Term, ...]] = [()]
    for term in interactions:  # smaller terms first, so that what a term needs has been decided
        parts = {term - {k} for k in term} if len(term) > 2 else set()
        found += [(*model, term) for model in found if parts <= set(model)]
    return [(*own, *model) for model in sorted(found, key=len)]


def _fitted(counts: Floats, names: Sequence[str]) -> list[_Fitted]:
    """Models that the counts can tell of, best BIC first, without those of no weight."""
    found = []
    n_seen = counts.sum()
    for terms in _all_models(len(names)):
        if (fit := _fit(counts, terms)) is not None:
            bic = fit.deviance + (1 + len(terms)) * np.log(n_seen)
            population = float(n_seen + np.exp(fit.log_unseen))
            found.append(_Fitted(terms, _name(terms, names), float(bic), population))
    if not found:
        raise InputError(
            "no model of the lists can be estimated: too few people are in more than one list. "
            "Take lists that overlap more, or put small ones together."
        )
    found.sort(key=lambda one: (one.bic, one.name))
    return [one for one in found if one.bic < found[0].bic + _WINDOW]


def _name(terms: tuple[_Term, ...], names: Sequence[str]) -> str:
    """The largest interactions of a model."""
    largest = [t for t in terms if len(t) > 1 and not any(t < other for other in terms)]
    return " ".join(":".join(names[k] for k in sorted(t)) for t in largest) or "independent"


def _fit(counts: Floats, terms: tuple[_Term, ...]) -> _Fit | None:
    """Poisson regression by Newton's method; None where N_0 cannot be learned."""
    n_lists = len([t for t in terms if len(t) == 1])
    history = np.arange(1, 1 << n_lists)
    columns = {t: _holds(history, t) for t in terms}
    empty = [t for t, column in columns.items() if not counts[column].any()]
    if any(len(t) == 1 for t in empty):
        return None  # a list without anybody
    open_cells = (
        ~np.any([columns[t] for t in empty], axis=0) if empty else np.ones(len(history), bool)
    )
    used = [column for t, column in columns.items() if not any(e <= t for e in empty)]
    x = np.column_stack([np.ones(len(history)), *used])[open_cells].astype(np.float64)
    y = counts[open_cells]
    if np.linalg.matrix_rank(x) < x.shape[1]:
        return None
    return _newton(x, y)


def _holds(history: Ints, term: _Term) -> NDArray[np.bool_]:
    bits = sum(1 << k for k in term)
    return (history & bits) == bits


def _newton(x: Floats, y: Floats) -> _Fit | None:
    beta = np.linalg.lstsq(x, np.log(y + 0.5), rcond=None)[0]
    log_likelihood = -np.inf
    for _ in range(_STEPS):
        mean = np.exp(np.clip(x @ beta, -_LARGEST, _LARGEST))
        information = x.T @ (mean[:, None] * x)
        try:
            step = np.linalg.solve(information, x.T @ (y - mean))
        except np.linalg.LinAlgError:
            return None
        beta = beta + step * min(1.0, 2.0 / max(np.abs(step).max(), 1e-300))
        before, log_likelihood = log_likelihood, float(y @ (x @ beta) - np.exp(x @ beta).sum())
        if abs(log_likelihood - before) < 1e-13 * (1 + abs(log_likelihood)):
            break
    else:
        return None
    error = float(np.sqrt(np.linalg.inv(information)[0, 0]))
    if not np.isfinite(error) or abs(beta[0]) > _LARGEST or error > _LARGEST / 4:
        return None
    seen, mean = y > 0, np.exp(x @ beta)
    deviance = 2 * float((y[seen] * (np.log(y[seen]) - (x @ beta)[seen])).sum() - (y - mean).sum())
    return _Fit(float(beta[0]), error, deviance)


# --- draws ------------------------------------------------------------------------------------


def _draw(table: Floats, kept: Sequence[_Fitted], rng: np.random.Generator) -> Ints:
    """One population size for each draw of the counts."""
    rows, which = np.unique(table, axis=0, return_inverse=True)
    which = which.ravel()
    log_unseen, error, weight = (np.full((len(rows), len(kept)), np.nan) for _ in range(3))
    for i, row in enumerate(rows):
        for k, model in enumerate(kept):
            if (fit := _fit(row, model.terms)) is not None:
                log_unseen[i, k], error[i, k] = fit.log_unseen, fit.error
                bic = fit.deviance + (1 + len(model.terms)) * np.log(row.sum())
                weight[i, k] = -bic / 2
    if np.isnan(weight).all(axis=1).any():
        raise InputError(
            "in some draws of the linkage no model of the lists can be estimated: too few people "
            "are in more than one list. Take lists that overlap more, or put small ones together."
        )
    weight = np.exp(weight - np.nanmax(weight, axis=1, keepdims=True))
    shares = np.nan_to_num(weight / np.nansum(weight, axis=1, keepdims=True)).cumsum(axis=1)
    model = (rng.random(len(table))[:, None] > shares[which]).sum(1).clip(max=len(kept) - 1)
    log_rate = rng.normal(log_unseen[which, model], error[which, model])
    unseen = rng.poisson(np.exp(np.minimum(log_rate, _LARGEST)))
    return np.asarray(table.sum(1).astype(np.int64) + unseen)


def _two_lists(table: Floats, interval: float, seed: int) -> ManyLists:
    sizes = {(int(a + both), int(b + both)) for a, b, both in table}
    draws = np.zeros(len(table), np.int64)
    for n_a, n_b in sorted(sizes):  # they differ where a list has duplicates
        own = (table[:, 0] + table[:, 2] == n_a) & (table[:, 1] + table[:, 2] == n_b)
        draws[own] = population_size(n_a, n_b, table[own, 2].astype(np.int64), seed=seed).draws
    return _summary(draws, table, interval, (), "two independent lists", {})


def _by_stratum(
    counts: Mapping[str, ArrayLike],
    names: Sequence[str],
    models: Literal["average", "best"],
    interval: float,
    seed: int,
) -> ManyLists:
    if not counts:
        raise InputError("counts has no stratum. Give the counts of one at least.")
    strata = {
        str(name): population_from_lists(
            own, names, models=models, interval=interval, seed=seed + number
        )
        for number, (name, own) in enumerate(counts.items())
    }
    lengths = {len(one.draws) for one in strata.values()}
    if len(lengths) > 1:
        raise InputError(
            f"strata have different numbers of draws: {', '.join(map(str, sorted(lengths)))}. "
            "Give the same draws of the linkage for each."
        )
    draws = sum((one.draws for one in strata.values()), np.zeros(lengths.pop(), np.int64))
    seen = np.array([[sum(one.seen for one in strata.values())]])
    how = next(iter(strata.values())).how
    return _summary(draws, seen, interval, (), how, strata)


def _summary(
    draws: Ints,
    table: Floats,
    interval: float,
    models: tuple[ListModel, ...],
    how: str,
    strata: Mapping[str, ManyLists],
) -> ManyLists:
    tail = (1 - interval) / 2
    low, median, high = np.quantile(draws, [tail, 0.5, 1 - tail]).tolist()
    seen = float(table.sum(1).mean())
    return ManyLists(draws, median, low, high, seen, models, how, strata)


# --- checks -----------------------------------------------------------------------------------


def _checked_names(lists: Sequence[str]) -> tuple[str, ...]:
    names = tuple(map(str, lists))
    if not 2 <= len(names) <= MOST_LISTS or len(set(names)) < len(names):
        raise SettingsError(
            f"lists must be two to {MOST_LISTS} different names, got {len(names)}. Put lists that "
            "are alike together to have fewer."
        )
    return names


def _checked_counts(counts: ArrayLike, n_lists: int) -> Floats:
    """[draw, cell]"""
    table = np.atleast_2d(np.asarray(counts, np.float64))
    cells = (1 << n_lists) - 1
    if table.ndim != 2 or table.shape[1] != cells or not len(table):
        raise InputError(
            f"counts of {n_lists} lists have {cells} entries, one for each set of lists that a "
            f"person can be in, and one row for each draw; got the shape {table.shape}."
        )
    if not np.all(np.isfinite(table) & (table >= 0) & (table == np.floor(table))):
        raise InputError("counts must be whole numbers from 0 up.")
    if not table.any(axis=1).all():
        raise InputError("a row of counts has nobody in any list.")
    return table
