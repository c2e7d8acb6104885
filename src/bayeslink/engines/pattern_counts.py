"""Pattern counts over all pairs, without going through all pairs.

Records that agree in what they lack and in their values of some *few-valued* fields stand for each
other as long as all other fields disagree: suppose they do, and the counts are products. Pairs
above level 1 in one of the other fields are few; each is visited, in the first such field, and
moved from the pattern supposed to the one it has. The few-valued fields are those for which this is
least work. With all fields few-valued it is a pass over all pairs.

Where even that is too much work, over all fields, pairs that may matter are listed and counted,
those with a weight above a threshold at the prior's m and the level shares as u, and the others
estimated from a random sample of pairs; over some of the fields, all pairs of a sample of records
are visited.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayeslink.comparing.fields import Field
from bayeslink.engines.arrays import EVERY_PAIR, Tables
from bayeslink.engines.level_counts import LevelsOf
from bayeslink.engines.work import in_pieces
from bayeslink.errors import SettingsError
from bayeslink.model.weights import Parameters, Priors, proportions
from bayeslink.pairs.source import Floats, Ints, Pairs, Patterns, sum_weights
from bayeslink.threads import Workers

MAX_VISITS = 4e9  # pairs gone through one by one; beyond that, patterns are sampled
SAMPLE = 20_000_000  # pairs drawn where patterns are sampled
LISTED = 20_000_000  # pairs listed there, at most, were fields independent
# Pairs drawn where tables do not tell all levels; up to as many, all are taken.
COMPARED = 2_000_000
MAX_OF_RECORDS = 1e9  # pairs visited of chosen records; beyond that, of an even choice of these
_GROUPS = 10  # of records, for the standard errors
_TWO_FILES = (False, 0, 0)  # in place of `Tables.own`: all pairs of the ranges given


@dataclass(frozen=True, slots=True)
class Coding:
    """Patterns as numbers: Σ place · level."""

    place: Ints
    radix: Ints

    @classmethod
    def of(cls, fields: Sequence[Field], which: Sequence[int] | None = None) -> Coding:
        """Of the fields chosen, all unless given, in their order; the others add nothing."""
        which = range(len(fields)) if which is None else which
        radix = np.ones(len(fields), np.int64)
        radix[list(which)] = [fields[j].n_levels + 1 for j in which]
        if np.prod(radix.astype(float)) > 2.0**56:
            raise SettingsError(
                f"{len(fields)} fields have more patterns than can be numbered. Use fewer levels "
                "or fewer fields for EM; the penalized-likelihood fit needs no pattern counts."
            )
        place = np.zeros(len(fields), np.int64)
        place[list(which)] = np.cumprod(np.concatenate([[1], radix[list(which)][:-1]]))
        return cls(place, radix)

    def parts(self, before: Sequence[int]) -> Ints:
        """What each level of each field adds to the code; negative above level 1 of `before`."""
        parts = self.place[:, None] * np.arange(256)
        parts[list(before), 2:] = -(2**57)
        return np.where(np.arange(256) < self.radix[:, None], parts, 0)

    def levels(self, codes: Ints) -> NDArray[np.uint8]:
        """Levels of all fields; 0 in those that were not chosen."""
        return (codes[:, None] // np.maximum(self.place, 1) % self.radix).astype(np.uint8)

    def codes(self, levels: NDArray[Any]) -> Ints:
        return levels.astype(np.int64) @ self.place


def count_patterns(
    tables: Tables,
    fields: Sequence[Field],
    counts: Ints,
    list_above: Callable[[Floats, float], Pairs],
    threads: int | Workers,
    *,
    which: Sequence[int],
    rows: Ints | None = None,
    levels_of: LevelsOf | None = None,
) -> Patterns:
    """Pairs with each pattern of the fields `which`: exactly if that is no more than MAX_VISITS.

    Beyond that they are estimated, over all fields by a sample of pairs (`_sampled`), over some of
    them by the pairs of a sample of records (`_of_records`).

    Parameters
    ----------
    rows
        Positions of records of A in the tables, if only their pairs are to be counted.
    levels_of
        Gives the comparison vectors of pairs of rows, where tables do not tell all levels.
    """
    coding = Coding.of(fields, which)
    everything = rows is None and len(which) == len(fields)
    chosen = np.arange(len(tables.codes_a)) if rows is None else rows
    if levels_of is not None:
        if everything and tables.scope.n_pairs > COMPARED:
            return _sampled(tables, fields, coding, counts, list_above, threads, levels_of)
        return _compared(tables, coding, which, chosen, levels_of)
    if rows is None:
        shares = counts[:, 2:].sum(1) / max(1, tables.scope.n_pairs)
        few, groups, work = _choose_few(tables, which, shares)
        if work <= MAX_VISITS:
            return _exactly(tables, coding, which, shares, few, groups, threads)
        if everything:
            return _sampled(tables, fields, coding, counts, list_above, threads)
    return _of_records(tables, coding, which, chosen, threads)


def _exactly(
    tables: Tables,
    coding: Coding,
    which: Sequence[int],
    shares: Floats,
    few: Sequence[int],
    groups: list[Ints],
    threads: int | Workers,
) -> Patterns:
    """Over all pairs, by products of counts of records and a visit to the pairs that differ."""
    sums: dict[int, int] = {}
    _add(sums, _count_groups(tables, few, groups, coding, threads))
    several = sorted(set(which) - set(few), key=lambda j: shares[j])
    for n_before, j in enumerate(several):
        cost = float(shares[j]) * tables.scope.n_pairs
        before = several[:n_before]
        codes, n = _count_above(tables, j, which, before, coding, cost, threads)
        supposed = coding.levels(codes)
        supposed[:, several] = np.minimum(supposed[:, several], 1)
        _add(sums, (codes, n))
        _add(sums, (coding.codes(supposed), -n))
    codes = np.array(sorted(code for code, n in sums.items() if n), np.int64)
    n = np.array([sums[c] for c in codes.tolist()], np.int64)
    return Patterns(coding.levels(codes)[:, list(which)], n)


def _add(sums: dict[int, int], counted: tuple[Ints, Ints]) -> None:
    for code, n in zip(*(part.tolist() for part in counted), strict=True):
        sums[code] = sums.get(code, 0) + n


def _choose_few(
    tables: Tables, which: Sequence[int], shares: Floats
) -> tuple[list[int], list[Ints], float]:
    """Of the fields `which` the few-valued ones that make counting least work, and the groups.

    Returns the fields, the number of the group in which each record stands, in A and in B, and the
    number of pairs to go through. `shares` are those of pairs above level 1.
    """
    blocks = tables.block_a, tables.block_b
    groups = [
        _numbered(block, *(missing[:, j] for j in which))
        for block, missing in zip(blocks, (tables.missing_a, tables.missing_b), strict=True)
    ]
    by_share = sorted(which, key=lambda j: -shares[j])
    best: tuple[list[int], list[Ints], float] = [], groups, np.inf
    for n_few in range(len(by_share) + 1):
        if n_few:
            j = by_share[n_few - 1]
            columns = tables.codes_a[:, j] + 1, tables.codes_b[:, j] - tables.base[j]
            groups = [_numbered(g, c) for g, c in zip(groups, columns, strict=True)]
        if tables.one_file:  # numbered alike
            groups = [groups[0], groups[0]]
        sizes = [
            np.bincount(block[np.unique(g, return_index=True)[1]], minlength=len(tables.start_a))
            for g, block in zip(groups, blocks, strict=True)
        ]
        products = float(sizes[0].astype(float) @ sizes[1])
        if tables.one_file:
            products /= 2
        if products > best[2]:
            break
        work = products + float(shares[by_share[n_few:]].sum()) * tables.scope.n_pairs
        if work < best[2]:
            best = by_share[:n_few], groups, work
    return best


def _numbered(*columns: NDArray[Any]) -> Ints:
    """Number of each distinct row, rising with the first column, then the second, …"""
    of = columns[0].astype(np.int64)
    for column in columns[1:]:
        if column.any():
            code = of * (int(column.max()) + 1) + column
            of = np.unique(code, return_inverse=True)[1]
    return of


def _count_groups(
    tables: Tables, few: Sequence[int], groups: list[Ints], coding: Coding, threads: int | Workers
) -> tuple[Ints, Ints]:
    """Patterns of all pairs, supposing that they disagree in all but the few-valued fields.

    In one file: those of two groups, and those of two records within a group.
    """
    (first_a, times_a), (first_b, times_b) = (
        np.unique(group, return_index=True, return_counts=True)[1:] for group in groups
    )
    block_a, block_b = tables.block_a[first_a], tables.block_b[first_b]
    from_b, to_b = (np.searchsorted(block_b, block_a, side=side) for side in ("left", "right"))
    n_a, n_b = len(first_a), len(first_b)
    counted = partial(
        _count,
        order=np.arange(n_a, dtype=np.int32),
        file_b=(tables.codes_b[first_b], np.arange(n_b, dtype=np.int32), np.array([0, n_b])),
        table=tables.csr,
        field=EVERY_PAIR,
        compared=few,
        parts=coding.parts(()),
        threads=threads,
    )
    codes_a, classes = tables.codes_a[first_a], np.zeros(n_a, np.int32)
    between = counted(
        own=tables.own(EVERY_PAIR),
        file_a=(codes_a, classes, from_b, to_b),
        times_a=times_a,
        times_b=times_b,
        cost=float((to_b - from_b).sum()),
    )
    if not tables.one_file:
        return between
    each = np.arange(n_a)
    within = counted(
        own=_TWO_FILES,
        file_a=(codes_a, classes, each, each + 1),
        times_a=times_a * (times_a - 1) // 2,
        times_b=np.ones(n_b, np.int64),
        cost=float(n_a),
    )
    return _together([between, within])


def _count_above(
    tables: Tables,
    field: int,
    which: Sequence[int],
    before: Sequence[int],
    coding: Coding,
    cost: float,
    threads: int | Workers,
) -> tuple[Ints, Ints]:
    """Patterns of the pairs above level 1 in a field, but in none of those before it."""
    rows = np.flatnonzero(~tables.missing_a[:, field])
    posts, start = tables.posts(field)
    return _count(
        order=rows[np.argsort(tables.groups(field)[rows], kind="stable")].astype(np.int32),
        own=tables.own(field),
        file_a=(tables.codes_a, tables.classes[0].of, tables.from_b, tables.to_b),
        times_a=np.ones(len(tables.codes_a), np.int64),
        file_b=(tables.codes_b[posts], posts, start),
        times_b=np.ones(len(tables.codes_b), np.int64),
        table=tables.csr,
        field=field,
        compared=which,
        parts=coding.parts(before),
        cost=cost,
        threads=threads,
    )


def _count(
    *,
    order: NDArray[np.int32],
    own: tuple[bool, int, int],
    file_a: tuple[NDArray[Any], ...],
    times_a: Ints,
    file_b: tuple[NDArray[Any], ...],
    times_b: Ints,
    table: tuple[NDArray[Any], ...],
    field: int,
    compared: Iterable[int],
    parts: Ints,
    cost: float,
    threads: int | Workers,
) -> tuple[Ints, Ints]:
    """Codes and counts of the patterns in one join."""
    from bayeslink.kernels.patterns import count_patterns

    count_patterns.compile()  # here, not in threads: see `threads`
    flags = np.isin(np.arange(len(parts)), list(compared))
    n_codes = int(parts.max(1).sum()) + 1

    def work(first: int, last: int, piece: int) -> Any:
        return count_patterns(
            order,
            first,
            last,
            own,
            file_a,
            times_a,
            file_b,
            times_b,
            table,
            field,
            flags,
            parts,
            n_codes,
        )

    return _together(in_pieces(work, len(order), cost, threads))


def _together(pieces: list[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
    """Codes and their counts over all pieces."""
    all_codes = np.concatenate([codes for codes, _ in pieces])
    codes, of = np.unique(all_codes, return_inverse=True)
    counts = np.zeros(len(codes), np.int64)
    np.add.at(counts, of, np.concatenate([n for _, n in pieces]))
    return codes, counts


# --- some records, some pairs -------------------------------------------------------------------


def _of_records(
    tables: Tables, coding: Coding, which: Sequence[int], rows: Ints, threads: int | Workers
) -> Patterns:
    """Over the pairs of these records of A, each visited; of an even choice of them if too many.

    Pairs of one record go together, so the standard errors come from groups of records. In one
    file a pair of two of these records is visited from both: there it counts one half, and the
    others two halves.
    """
    visits = (tables.to_b - tables.from_b)[rows]
    halves, times_b = 1, np.ones(len(tables.codes_b), np.int64)
    n_pairs = int(visits.sum())
    if tables.one_file:
        halves, times_b = 2, times_b + 1
        times_b[rows] = 1
        before = np.concatenate([[0], np.cumsum(times_b)])
        n_pairs = int((before[tables.to_b] - before[tables.from_b] - 1)[rows].sum()) // 2
    visit = partial(_visit, tables, coding, which, threads=threads, times_b=times_b)
    share = min(1.0, MAX_OF_RECORDS / max(1, int(visits.sum())))
    if share == 1.0:
        codes, n = visit(rows)
        return Patterns(coding.levels(codes)[:, list(which)], n // halves)
    n_taken = max(_GROUPS, int(share * len(rows)))
    taken = rows[np.linspace(0, len(rows) - 1, n_taken).astype(int)]
    groups = [visit(taken[k::_GROUPS]) for k in range(_GROUPS)]
    codes, n = _together(groups)
    by_group = np.zeros((_GROUPS, len(codes)))
    for k, (found, times) in enumerate(groups):
        by_group[k, np.searchsorted(codes, found)] = times
    scale = n_pairs / max(1, n.sum())
    error = scale * np.sqrt(_GROUPS * by_group.var(0, ddof=1))
    estimate = _whole(n * scale, n_pairs)
    return Patterns(coding.levels(codes)[:, list(which)], estimate, int(n.sum()) // halves, error)


def _visit(
    tables: Tables,
    coding: Coding,
    which: Sequence[int],
    rows: Ints,
    *,
    threads: int | Workers,
    times_b: Ints,
) -> tuple[Ints, Ints]:
    """Codes and counts over all pairs in scope of records of A, none of them with itself."""
    n_a, n_b = len(tables.codes_a), len(tables.codes_b)
    counted = partial(
        _count,
        order=np.sort(rows).astype(np.int32),
        own=_TWO_FILES,
        times_a=np.ones(n_a, np.int64),
        file_b=(tables.codes_b, np.arange(n_b, dtype=np.int32), np.array([0, n_b])),
        times_b=times_b,
        table=tables.csr,
        field=EVERY_PAIR,
        compared=which,
        parts=coding.parts(()),
        threads=threads,
    )
    classes, visits = np.zeros(n_a, np.int32), (tables.to_b - tables.from_b)[rows]
    file_a = tables.codes_a, classes, tables.from_b, tables.to_b
    codes, n = counted(file_a=file_a, cost=float(visits.sum()))
    if tables.one_file:
        each = np.arange(n_a)
        own, n_own = counted(file_a=(tables.codes_a, classes, each, each + 1), cost=len(rows))
        codes, n = _together([(codes, n), (own, -n_own)])
    return codes[n > 0], n[n > 0]


def _compared(
    tables: Tables, coding: Coding, which: Sequence[int], rows: Ints, levels_of: LevelsOf
) -> Patterns:
    """Over the pairs of these records of A, compared one by one: all of them, or a sample."""
    pairs = _PairsOf(tables, rows)
    n_pairs = pairs.n
    size = min(n_pairs, COMPARED)
    levels = levels_of(*pairs.drawn(None if size == n_pairs else size))
    codes, n = np.unique(coding.codes(levels), return_counts=True)
    patterns = coding.levels(codes)[:, list(which)]
    if size == n_pairs:
        return Patterns(patterns, n)
    scale = n_pairs / size
    error = scale * np.sqrt(n * (1 - n / size))
    return Patterns(patterns, _whole(n * scale, n_pairs), size, error)


def _whole(estimate: NDArray[np.floating[Any]], total: int) -> Ints:
    """Estimates as whole numbers that add up."""
    n = np.round(estimate).astype(np.int64)
    if len(n):
        n[np.argmax(n)] += total - n.sum()
    return n


# --- a sample ---------------------------------------------------------------------------------


def _sampled(
    tables: Tables,
    fields: Sequence[Field],
    coding: Coding,
    counts: Ints,
    list_above: Callable[[Floats, float], Pairs],
    threads: int | Workers,
    levels_of: LevelsOf | None = None,
) -> Patterns:
    """Pairs that may matter counted, the others estimated from a random sample."""
    from bayeslink.kernels.patterns import sample_patterns

    sample_patterns.compile()  # here, not in threads
    n_pairs = tables.scope.n_pairs
    priors = Priors.of(fields)
    weights = Parameters(
        proportions(priors.alpha_m, priors.used),
        proportions(priors.pseudo_u + counts, priors.used),
        priors.used,
    ).log_weights
    # Of any pairs, no more than exp(−t) can weigh more than t if u is right.
    threshold = float(np.log(n_pairs / LISTED))
    listed = list_above(weights, threshold)
    pairs = _PairsOf(tables, np.arange(len(tables.codes_a)))
    pairs_before, pairs_from = pairs.before, tables.pairs_from

    def work(first: int, last: int, piece: int) -> Any:
        return sample_patterns(
            first, last, pairs_before, pairs_from, tables.codes_a, tables.codes_b, tables.csr,
            weights, threshold, coding.parts(()),
        )  # fmt: skip

    if levels_of is None:
        size, drawn = SAMPLE, in_pieces(work, SAMPLE, 10.0 * SAMPLE, threads)
    else:
        size, levels = COMPARED, levels_of(*pairs.drawn(COMPARED))
        below = levels[sum_weights(weights, levels) <= threshold]
        drawn = [np.unique(coding.codes(below), return_counts=True)]
    codes, n = _together(drawn)
    scale = (n_pairs - len(listed)) / max(1, n.sum())
    share = n / max(1, n.sum())
    exact_codes, exact = np.unique(coding.codes(listed.levels), return_counts=True)
    every = np.union1d(codes, exact_codes)
    at, at_exact = np.searchsorted(every, codes), np.searchsorted(every, exact_codes)
    estimate, error = np.zeros(len(every), np.int64), np.zeros(len(every))
    estimate[at] = _whole(n * scale, n_pairs - len(listed))
    estimate[at_exact] += exact
    error[at] = scale * np.sqrt(n * (1 - share))
    return Patterns(coding.levels(every), estimate, size, error)


class _PairsOf:
    """The pairs in scope of some records of A, numbered; in one file, those that hold one of them.

    `before` counts them before each of the records, and then all.
    """

    def __init__(self, tables: Tables, rows: Ints) -> None:
        self._tables, self._rows = tables, rows
        self._order, self._from = np.arange(len(tables.codes_b)), tables.from_b[rows]
        if tables.one_file:  # of a block, the chosen ones first: the pairs of each with those after
            chosen = np.zeros(len(self._order), bool)
            chosen[rows] = True
            self._order = np.lexsort((~chosen, tables.block_b))
            self._from = 1 + np.argsort(self._order)[rows]
        n = tables.to_b[rows] - self._from
        self.before = np.concatenate([[0], np.cumsum(n)]).astype(np.uint64)

    @property
    def n(self) -> int:
        return int(self.before[-1])

    def drawn(self, size: int | None) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Rows, in their files, of pairs drawn at random; of all if size is None."""
        if size is None:
            at = np.arange(self.n, dtype=np.uint64)
        else:
            at = np.random.default_rng(0).integers(0, self.before[-1], size, np.uint64)
        place = np.searchsorted(self.before, at, side="right") - 1
        b = self._order[self._from[place] + (at - self.before[place]).astype(np.int64)]
        return self._tables.rows(self._rows[place], b)
