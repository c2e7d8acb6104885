"""Fields whose level table is not complete: their open levels, told apart where it matters.

A value pair that is not in the table of such a field is at one of the levels 1 … `open`, and only a
comparison tells which (`dictionaries`).

*Search.* Let an open field count with the largest of its open weights wherever the table does not
tell. No pair then weighs less than it does, so a search with these weights lists every pair above
the threshold, and others. Those listed are compared, and the others dropped.

*Level counts.* The levels in the table are counted exactly, as are missing values. So are the open
levels where the pairs in scope are few enough to compare them all. Else they are estimated: values
are drawn with the number of their pairs as probability, each is compared with all values of the
other file, and the shares of its pairs at each level are averaged. That is free of bias, and the
spread of the shares gives the standard error. Where values are so few that all can be taken, the
counts are exact.

A sample cannot tell how many links are among few pairs. So an open level is never said to have
fewer pairs than there can be links, which keeps its u, and the weight of agreement there, on the
safe side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import process
from rapidfuzz.distance import OSA, JaroWinkler, Levenshtein

from bayeslink.comparing.comparisons import level_matrix, levels_of_pairs, value_array
from bayeslink.comparing.dictionaries import Codes, Dictionary, split_by_frequency, table_seconds
from bayeslink.comparing.fields import Field
from bayeslink.comparing.level_tables import each_piece
from bayeslink.engines.arrays import Tables
from bayeslink.engines.joining import Found, find_above
from bayeslink.engines.level_counts import LevelsOf, compare_every_pair
from bayeslink.engines.plan import SearchPlan
from bayeslink.engines.search import Problem
from bayeslink.errors import TooManyPairsError
from bayeslink.model.weights import at_least
from bayeslink.pairs.source import Floats, Ints, LevelCounts, Pairs, sum_weights
from bayeslink.threads import Workers, check, slices

COUNT_SECONDS = 20.0  # of one CPU, by estimate, up to which every pair in scope is compared
_BESIDE = 4e-6  # rough time, in seconds, to compare a pair on its own rather than in a table
DRAWS = 1000  # values drawn where levels are sampled; all of them where there are no more
_DRAW_SECONDS = 60.0  # of one CPU, by estimate, for comparing them

MAX_SETTLED = 300_000_000  # pairs compared in one search before it gives up with advice


def open_fields(dictionaries: Sequence[Dictionary]) -> list[int]:
    """Fields with levels that the table does not tell apart."""
    return [j for j, d in enumerate(dictionaries) if d.open > 1]


# --- search -----------------------------------------------------------------------------------


def find_open(
    tables: Tables,
    problem: Problem,
    dictionaries: Sequence[Dictionary],
    weights: Floats,
    told: LevelCounts,
    threads: int | Workers,
    in_files: bool = False,
) -> tuple[Pairs, SearchPlan]:
    """`find_above` where levels are open: `problem` has the upper weights.

    `told` are the level counts with all open levels at level 1. Too long a list is refused, before
    the search if it is to be expected.
    """
    which, taken = open_fields(dictionaries), [0]

    def check(n: float) -> None:
        if n > MAX_SETTLED:
            raise _too_many([dictionaries[j].field for j in which], problem.threshold)

    def settle_above(found: Found) -> Found:
        a, b, levels = found
        taken.append(len(a))
        check(sum(taken))
        upper = problem.weights.copy()
        for j in which:
            _settle_field(dictionaries[j], a, b, levels[:, j])
            upper[j] = weights[j, : upper.shape[1]]
            keep = np.flatnonzero(sum_weights(upper, levels) > problem.threshold)
            a, b, levels = a[keep], b[keep], levels[keep]
        return a, b, levels

    check(expected_above(problem.weights, told, problem.threshold))
    pairs, plan = find_above(tables, problem, threads, in_files, settle_above, MAX_SETTLED)
    return pairs, replace(plan, bounds=open_bounds(dictionaries, weights), settled=sum(taken))


def _too_many(fields: Sequence[Field], threshold: float) -> TooManyPairsError:
    names = " and ".join(repr(field.name) for field in fields)
    return TooManyPairsError(
        f"the values of {names} are too many to compare them all with each other, and the other "
        f"fields leave more than {MAX_SETTLED:,} pairs that may weigh more than {threshold:.3g}. "
        "Use fewer and stricter cuts there, or a comparison by exact or tokens; more fields; a "
        "blocking key; or a higher theta or w0."
    )


def open_bounds(dictionaries: Sequence[Dictionary], weights: Floats) -> dict[str, float]:
    """What each open field counts with where its table does not tell."""
    upper = upper_weights(dictionaries, weights)
    return {dictionaries[j].field.name: float(upper[j, 1]) for j in open_fields(dictionaries)}


def upper_weights(dictionaries: Sequence[Dictionary], weights: Floats) -> Floats:
    """Weights with level 1 of each open field at the largest of its open levels."""
    upper = weights.copy()
    for j in open_fields(dictionaries):
        upper[j, 1] = weights[j, 1 : dictionaries[j].open + 1].max()
    return upper


def expected_above(weights: Floats, counts: LevelCounts, threshold: float) -> float:
    """About how many pairs are above the threshold, if fields were independent."""
    weight: Floats = np.zeros(1)
    share: Floats = np.ones(1)
    for w, n in zip(weights, counts.counts, strict=True):
        sums = np.add.outer(weight, w[n > 0]).round(2)
        shares = np.outer(share, n[n > 0] / counts.n_pairs)
        weight, at = np.unique(sums, return_inverse=True)
        share = np.bincount(at.ravel(), shares.ravel()).astype(np.float64)
    return float(share[weight > threshold].sum()) * counts.n_pairs


def settle(
    dictionaries: Sequence[Dictionary],
    a: NDArray[np.int32],
    b: NDArray[np.int32],
    levels: NDArray[np.uint8],
) -> None:
    """Tell the open levels of pairs of rows, which are given as level 1."""
    for j in open_fields(dictionaries):
        _settle_field(dictionaries[j], a, b, levels[:, j])


def _settle_field(
    d: Dictionary, a: NDArray[np.int32], b: NDArray[np.int32], levels: NDArray[np.uint8]
) -> None:
    at = np.flatnonzero(levels == 1)
    if not len(at):
        return
    rows, columns = d.a.codes[a[at]].astype(np.int64), d.b.codes[b[at]].astype(np.int64)
    if d.a is d.b:  # as in the table, the smaller value first
        rows, columns = np.minimum(rows, columns), np.maximum(rows, columns)
    code, which = np.unique(rows * len(d.b.values) + columns, return_inverse=True)
    rows, columns = np.divmod(code, len(d.b.values))
    told = np.empty(len(code), np.uint8)
    for first, last in slices(len(code), 10_000):
        x, y = _taken(d.a.values, rows[first:last]), _taken(d.b.values, columns[first:last])
        told[first:last] = levels_beside(d.field, x, y)
    if d.field.bands and d.open == d.field.n_levels:
        told = split_by_frequency(d.field, d.a, d.b, rows, columns, told)
    levels[at] = told[which]


def _taken(values: Sequence[Any], at: NDArray[Any]) -> list[Any]:
    return [values[i] for i in at.tolist()]


def levels_beside(field: Field, x: Sequence[Any], y: Sequence[Any]) -> NDArray[np.uint8]:
    """Level of each value of x against the one of y beside it, frequency bands left aside."""
    if field.kind in ("numeric", "date", "geo"):
        return levels_of_pairs(field, value_array(field, x), value_array(field, y))
    if ladder := field.options.get("ladder"):
        return np.asarray(ladder.levels_beside(x, y))
    if field.kind == "custom":
        return np.array([level_matrix(field, [v], [w], 1)[0, 0] for v, w in zip(x, y, strict=True)])
    if field.kind == "tokens":
        words = ((set(v.split()), set(w.split())) for v, w in zip(x, y, strict=True))
        d = np.array([-len(v & w) / max(1, len(v | w)) for v, w in words])
        cuts = tuple(-cut for cut in field.cuts)
    elif field.kind == "jaro_winkler":
        d = -process.cpdist(x, y, scorer=JaroWinkler.similarity, dtype=np.float64)
        cuts = tuple(-cut for cut in field.cuts)
    else:
        scorer = Levenshtein if field.kind == "levenshtein" else OSA
        longer = np.maximum([len(v) for v in x], [len(w) for w in y])
        d, cuts = process.cpdist(x, y, scorer=scorer.distance, dtype=np.int32) / longer, field.cuts
    levels = np.ones(len(x), np.uint8)
    for cut in cuts:
        levels += d <= cut
    return levels


# --- level counts -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Side:
    """One file's values of a field, by block of the blocking key."""

    of: Codes
    codes: NDArray[np.int32]  # of the records in scope, sorted by block
    block: Ints
    start: Ints

    @property
    def values(self) -> list[Any]:
        return self.of.values

    @property
    def there(self) -> NDArray[np.bool_]:
        return self.codes != len(self.values)

    def present(self) -> Ints:
        """Records with a value, by block."""
        return np.bincount(self.block[self.there], minlength=len(self.start) - 1)

    def above(self, value: Ints, block: Ints) -> Ints:
        """Records of a block with a value above one."""
        n = len(self.values)
        ranked = np.sort(self.block[self.there] * n + self.codes[self.there])
        return np.searchsorted(ranked, (block + 1) * n) - np.searchsorted(
            ranked, block * n + value, side="right"
        )

    def counts(self, block: int) -> Ints:
        """Records at each value in a block."""
        codes = self.codes[self.start[block] : self.start[block + 1]]
        return np.bincount(codes, minlength=len(self.values) + 1)


def estimate_levels(
    dictionaries: Sequence[Dictionary],
    tables: Tables,
    known: LevelCounts,
    levels_of: LevelsOf,
    threads: int | Workers,
) -> LevelCounts:
    """Pairs at each level: `known` where tables tell, open levels by comparing all or a sample.

    `levels_of` gives the comparison vectors of pairs of rows.
    """
    counts, errors = known.counts.copy(), np.zeros(known.counts.shape)
    sampled = [0] * len(dictionaries)
    if _seconds_beside(dictionaries) * known.n_pairs <= COUNT_SECONDS:
        counts = compare_every_pair(tables, levels_of, counts.shape[1])
        return LevelCounts(counts, known.n_pairs, tuple(sampled), errors)
    for j in open_fields(dictionaries):
        d = dictionaries[j]
        estimate, error, sampled[j] = sample_levels(d, tables, threads)
        told, least = np.round(estimate).astype(np.int64), np.zeros(d.open + 1, np.int64)
        told[1] = counts[j, 1] - told[2:].sum()
        if sampled[j]:
            least[2:] = min(tables.scope.max_links, int(counts[j, 1]) // d.open)
        counts[j, 1] = 0
        counts[j, 1 : d.open + 1] += at_least(told[None], least[None])[0, 1:]
        errors[j, 1 : d.open + 1] = error[1:]
    return LevelCounts(counts, known.n_pairs, tuple(sampled), errors)


def _seconds_beside(dictionaries: Sequence[Dictionary]) -> float:
    """About how long it takes to tell the open levels of one pair."""
    total = 0.0
    for j in open_fields(dictionaries):
        x, y = dictionaries[j].a.values, dictionaries[j].b.values
        a_pair = table_seconds(dictionaries[j].field, x, y) / max(1, len(x) * len(y))
        total += _BESIDE + a_pair
    return total


def describe_sample(dictionaries: Sequence[Dictionary], counts: LevelCounts) -> list[str]:
    """What was estimated rather than counted, in words."""
    out: list[str] = []
    for j in open_fields(dictionaries):
        d, n, errors = dictionaries[j], counts.sampled[j], counts.standard_errors
        if n and errors is not None:
            worst = (errors[j] / np.maximum(counts.counts[j], 1))[1 : d.open + 1].max()
            out.append(
                f"field {d.field.name!r} has too many distinct values to compare them all. Its "
                f"lower levels are told apart where they matter, and how many pairs have each is "
                f"estimated from {n:,} values, with a standard error of up to {100 * worst:.2g} %."
            )
    return out


def open_levels(d: Dictionary, j: int, counts: LevelCounts) -> dict[str, Any]:
    """For a field whose values were not all compared: which levels were left open, and the sample.

    `values_drawn` is 0 where all values were taken, so that the counts are exact.
    """
    if d.open == 1 or counts.standard_errors is None:
        return {}
    return {
        "open_levels": list(d.field.labels[: d.open]),
        "values_drawn": counts.sampled[j],
        "standard_errors": counts.standard_errors[j, : d.field.n_levels + 1].tolist(),
    }


def sample_levels(
    d: Dictionary, tables: Tables, threads: int | Workers, seed: int = 0
) -> tuple[Floats, Floats, int]:
    """Pairs at each open level that are not in the table, their standard errors, values drawn.

    0 values drawn: all were taken, and the counts are exact. What is drawn depends neither on
    threads nor on row order, nor (see `_sides`) on which file is called A.
    """
    mine, other = _sides(d, tables)
    there, present = mine.there, other.present()
    code = mine.block[there] * len(mine.values) + mine.codes[there]
    code, times = np.unique(code, return_counts=True)
    block, value = np.divmod(code, max(1, len(mine.values)))
    partners = mine.above(value, block) if d.a is d.b else present[block]
    pairs = (times * partners).astype(np.float64)
    seconds = table_seconds(d.field, mine.values, other.values) / max(1, len(mine.values))
    n_drawn = int(np.clip(_DRAW_SECONDS / max(seconds, 1e-9), 30, DRAWS))
    if len(code) <= n_drawn:
        every = np.flatnonzero(pairs)
        shares = _shares(d, mine, other, value[every], block[every], partners[every], threads)
        return pairs[every] @ shares, np.zeros(d.open + 1), 0
    upto = np.cumsum(pairs)
    uniform = np.random.default_rng(seed).random(n_drawn)
    at = np.searchsorted(upto, uniform * upto[-1], side="right")
    drawn, repeats = np.unique(at, return_counts=True)
    shares = _shares(d, mine, other, value[drawn], block[drawn], partners[drawn], threads)
    mean = repeats @ shares / n_drawn
    spread = repeats @ (shares - mean) ** 2 / (n_drawn - 1)
    return upto[-1] * mean, upto[-1] * np.sqrt(spread / n_drawn), n_drawn


def _sides(d: Dictionary, tables: Tables) -> tuple[_Side, _Side]:
    """The file from which values are drawn, and the other.

    That is the one with more values, unless it matters which of two values comes first.
    """
    a = _Side(d.a, d.a.codes[tables.order_a], tables.block_a, tables.start_a)
    b = _Side(d.b, d.b.codes[tables.order_b], tables.block_b, tables.start_b)
    if d.field.kind in ("custom", "jaro_winkler"):
        return a, b
    return (a, b) if (len(a.values), a.values) >= (len(b.values), b.values) else (b, a)


def _shares(
    d: Dictionary,
    mine: _Side,
    other: _Side,
    value: Ints,
    block: Ints,
    partners: Ints,
    threads: int | Workers,
) -> Floats:
    """Share of the pairs of each (value, block) at each open level, those in the table left out.

    `partners` says how many records each is compared with; in one file, those of larger values.
    """
    shares = np.zeros((len(value), d.open + 1))
    if not len(value):
        return shares
    order = np.argsort(value, kind="stable")  # one row of the table serves all blocks of a value
    rows, first = np.unique(value[order], return_index=True)
    first = np.append(first, len(order))
    x = _taken(mine.values, rows)
    place = {v: i for i, v in enumerate(other.values)}
    equal = [place.get(v, -1) for v in x]
    whole = other.counts(0) if len(other.start) == 2 else None

    def tally(at: Ints, counts: Ints, columns: NDArray[Any], levels: NDArray[np.uint8]) -> None:
        if d.field.bands and d.open == d.field.n_levels:
            codes = np.repeat(rows[at], counts)
            levels = split_by_frequency(d.field, mine.of, other.of, codes, columns, levels)
        edges = np.concatenate([[0], np.cumsum(counts)]).tolist()
        for row, (low, high) in zip(at.tolist(), pairwise(edges), strict=True):
            check()
            here, level = columns[low:high], levels[low:high]
            told = here <= equal[row] if d.a is d.b else here == equal[row]
            level = np.where((level <= d.open) & ~told, level, 0)
            for g in order[first[row] : first[row + 1]]:
                n = other.counts(block[g]) if whole is None else whole
                n_at = np.bincount(level, n[here], d.open + 1)
                shares[g, 2:] = n_at[2:] / partners[g]
                shares[g, 1] = 1 - shares[g, 2:].sum()  # for its standard error

    each_piece(d.field, x, other.values, tally, threads)
    return shares
