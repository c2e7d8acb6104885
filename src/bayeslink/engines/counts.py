"""Level counts and pattern counts over all pairs, without going through all pairs.

*Levels.* Pairs at a level of a field are products of the counts of two values, summed over the
level table.

*Patterns.* Records that agree in what they lack and in their values of some *few-valued* fields
stand for each other as long as all other fields disagree: suppose they do, and the counts are
products again. Pairs above level 1 in one of the other fields are few; each is visited, in the
first such field, and moved from the pattern supposed to the one it has. The few-valued fields are
those for which this is least work. With all fields few-valued it is a pass over all pairs.

*Sampled patterns.* Where even that is too much work, pairs that may matter are listed and counted,
those with a weight above a threshold at the prior's m and the level shares as u, and the others
estimated from a random sample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayeslink.comparing.fields import Field
from bayeslink.engines.tables import EVERY_PAIR, Tables
from bayeslink.engines.work import in_pieces
from bayeslink.errors import SettingsError
from bayeslink.inference.model import Parameters, Priors, proportions
from bayeslink.pairs.source import Floats, Ints, LevelCounts, Pairs, Patterns, sum_weights

MAX_VISITS = 4e9  # pairs gone through one by one; beyond that, patterns are sampled
SAMPLE = 20_000_000  # pairs drawn where patterns are sampled
LISTED = 20_000_000  # pairs listed there, at most, were fields independent
COMPARED = (
    2_000_000  # pairs drawn where tables do not tell all levels; up to as many, all are taken
)

LevelsOf = Callable[[NDArray[np.int32], NDArray[np.int32]], NDArray[np.uint8]]


def count_levels(tables: Tables, n_levels: Sequence[int]) -> LevelCounts:
    """Pairs at each level of each field, exactly."""
    from bayeslink.kernels.scan import level_counts

    starts = tables.start_a, tables.start_b
    counts = level_counts(
        tables.codes_a, tables.codes_b, tables.indptr, tables.slots, tables.levels, *starts,
        np.array(n_levels, np.int64), int(tables.base[-1]),
    )  # fmt: skip
    n_pairs = tables.scope.n_pairs
    for j in range(tables.n_fields):
        present = [
            _count_by_block(~missing[:, j], start)
            for missing, start in zip((tables.missing_a, tables.missing_b), starts, strict=True)
        ]
        compared = int(present[0] @ present[1])
        counts[j, 0] = n_pairs - compared
        counts[j, 1] = compared - counts[j, 2:].sum()
    return LevelCounts(counts, n_pairs)


def _count_by_block(flags: NDArray[np.bool_], starts: Ints) -> Ints:
    running = np.concatenate([[0], np.cumsum(flags)])
    return running[starts[1:]] - running[starts[:-1]]


# --- patterns ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Coding:
    """Patterns as numbers: Σ place · level."""

    place: Ints
    radix: Ints

    @classmethod
    def of(cls, fields: Sequence[Field]) -> Coding:
        radix = np.array([f.n_levels + 1 for f in fields], np.int64)
        if np.prod(radix.astype(float)) > 2.0**56:
            raise SettingsError(
                f"{len(fields)} fields have more patterns than can be numbered. Use fewer levels "
                "or fewer fields for EM; the penalized-likelihood fit needs no pattern counts."
            )
        return cls(np.cumprod(np.concatenate([[1], radix[:-1]])), radix)

    def parts(self, before: Sequence[int]) -> Ints:
        """What each level of each field adds to the code; negative above level 1 of `before`."""
        parts = self.place[:, None] * np.arange(256)
        parts[list(before), 2:] = -(2**57)
        return np.where(np.arange(256) < self.radix[:, None], parts, 0)

    def levels(self, codes: Ints) -> NDArray[np.uint8]:
        return (codes[:, None] // self.place % self.radix).astype(np.uint8)

    def codes(self, levels: NDArray[Any]) -> Ints:
        return levels.astype(np.int64) @ self.place


def count_patterns(
    tables: Tables,
    fields: Sequence[Field],
    counts: Ints,
    list_above: Callable[[Floats, float], Pairs],
    threads: int,
    levels_of: LevelsOf | None = None,
) -> Patterns:
    """Pairs with each pattern: exactly if that takes no more than MAX_VISITS, else estimated.

    `levels_of` gives the comparison vectors of pairs of rows, where tables do not tell all levels.
    """
    coding = Coding.of(fields)
    if levels_of is not None:
        if tables.scope.n_pairs > COMPARED:
            return _sampled(tables, fields, coding, counts, list_above, threads, levels_of)
        every = list_above(np.zeros(counts.shape), -np.inf)
        codes, n = np.unique(coding.codes(every.levels), return_counts=True)
        return Patterns(coding.levels(codes), n)
    shares = counts[:, 2:].sum(1) / max(1, tables.scope.n_pairs)
    few, groups, work = _choose_few(tables, shares)
    if work > MAX_VISITS:
        return _sampled(tables, fields, coding, counts, list_above, threads)
    sums: dict[int, int] = {}
    _add(sums, _count_groups(tables, few, groups, coding, threads))
    several = sorted(set(range(len(fields))) - set(few), key=lambda j: shares[j])
    for n_before, j in enumerate(several):
        cost = float(shares[j]) * tables.scope.n_pairs
        codes, n = _count_above(tables, j, several[:n_before], coding, cost, threads)
        supposed = coding.levels(codes)
        supposed[:, several] = np.minimum(supposed[:, several], 1)
        _add(sums, (codes, n))
        _add(sums, (coding.codes(supposed), -n))
    codes = np.array(sorted(code for code, n in sums.items() if n), np.int64)
    return Patterns(coding.levels(codes), np.array([sums[c] for c in codes.tolist()], np.int64))


def _add(sums: dict[int, int], counted: tuple[Ints, Ints]) -> None:
    for code, n in zip(*(part.tolist() for part in counted), strict=True):
        sums[code] = sums.get(code, 0) + n


def _choose_few(tables: Tables, shares: Floats) -> tuple[list[int], list[Ints], float]:
    """The few-valued fields that make counting least work: with them, who stands with whom.

    Returns the fields, the number of the group in which each record stands, in A and in B, and the
    number of pairs to go through. `shares` are those of pairs above level 1.
    """
    blocks = tables.block_a, tables.block_b
    groups = [
        _numbered(block, *(missing[:, j] for j in range(tables.n_fields)))
        for block, missing in zip(blocks, (tables.missing_a, tables.missing_b), strict=True)
    ]
    by_share = np.argsort(-shares, kind="stable").tolist()
    best: tuple[list[int], list[Ints], float] = [], groups, np.inf
    for n_few in range(len(by_share) + 1):
        if n_few:
            j = by_share[n_few - 1]
            columns = tables.codes_a[:, j] + 1, tables.codes_b[:, j] - tables.base[j]
            groups = [_numbered(g, c) for g, c in zip(groups, columns, strict=True)]
        sizes = [
            np.bincount(block[np.unique(g, return_index=True)[1]], minlength=len(tables.start_a))
            for g, block in zip(groups, blocks, strict=True)
        ]
        products = float(sizes[0].astype(float) @ sizes[1])
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
    tables: Tables, few: list[int], groups: list[Ints], coding: Coding, threads: int
) -> tuple[Ints, Ints]:
    """Patterns of all pairs, supposing that they disagree in all but the few-valued fields."""
    (first_a, times_a), (first_b, times_b) = (
        np.unique(group, return_index=True, return_counts=True)[1:] for group in groups
    )
    block_a, block_b = tables.block_a[first_a], tables.block_b[first_b]
    from_b, to_b = (np.searchsorted(block_b, block_a, side=side) for side in ("left", "right"))
    n_a, n_b = len(first_a), len(first_b)
    posts = np.arange(n_b, dtype=np.int32)
    return _count(
        order=np.arange(n_a, dtype=np.int32),
        file_a=(tables.codes_a[first_a], np.zeros(n_a, np.int32), from_b, to_b),
        times_a=times_a,
        file_b=(tables.codes_b[first_b], posts, np.array([0, n_b])),
        times_b=times_b,
        table=tables.csr,
        field=EVERY_PAIR,
        compared=few,
        parts=coding.parts(()),
        cost=float((to_b - from_b).sum()),
        threads=threads,
    )


def _count_above(
    tables: Tables, field: int, before: Sequence[int], coding: Coding, cost: float, threads: int
) -> tuple[Ints, Ints]:
    """Patterns of the pairs above level 1 in a field, but in none of those before it."""
    rows = np.flatnonzero(~tables.missing_a[:, field])
    posts, start = tables.posts(field)
    return _count(
        order=rows[np.argsort(tables.groups(field)[rows], kind="stable")].astype(np.int32),
        file_a=(tables.codes_a, tables.classes[0].of, tables.from_b, tables.to_b),
        times_a=np.ones(len(tables.codes_a), np.int64),
        file_b=(tables.codes_b[posts], posts, start),
        times_b=np.ones(len(tables.codes_b), np.int64),
        table=tables.csr,
        field=field,
        compared=range(tables.n_fields),
        parts=coding.parts(before),
        cost=cost,
        threads=threads,
    )


def _count(
    *,
    order: NDArray[np.int32],
    file_a: tuple[NDArray[Any], ...],
    times_a: Ints,
    file_b: tuple[NDArray[Any], ...],
    times_b: Ints,
    table: tuple[NDArray[Any], ...],
    field: int,
    compared: Iterable[int],
    parts: Ints,
    cost: float,
    threads: int,
) -> tuple[Ints, Ints]:
    """Codes and counts of the patterns in one join."""
    from bayeslink.kernels.search import count_patterns

    flags = np.isin(np.arange(len(parts)), list(compared))
    n_codes = int(parts.max(1).sum()) + 1

    def work(first: int, last: int, piece: int) -> Any:
        return count_patterns(
            order,
            first,
            last,
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


# --- a sample ---------------------------------------------------------------------------------


def _sampled(
    tables: Tables,
    fields: Sequence[Field],
    coding: Coding,
    counts: Ints,
    list_above: Callable[[Floats, float], Pairs],
    threads: int,
    levels_of: LevelsOf | None = None,
) -> Patterns:
    """Pairs that may matter counted, the others estimated from a random sample."""
    from bayeslink.kernels.search import sample_patterns

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
    in_scope = tables.to_b - tables.from_b
    pairs_before = np.concatenate([[0], np.cumsum(in_scope)]).astype(np.uint64)

    def work(first: int, last: int, piece: int) -> Any:
        return sample_patterns(
            first, last, pairs_before, tables.from_b, tables.codes_a, tables.codes_b, tables.csr,
            weights, threshold, coding.parts(()),
        )  # fmt: skip

    if levels_of is None:
        size, drawn = SAMPLE, in_pieces(work, SAMPLE, 10.0 * SAMPLE, threads)
    else:
        size, levels = COMPARED, levels_of(*_drawn(tables, pairs_before, COMPARED))
        below = levels[sum_weights(weights, levels) <= threshold]
        drawn = [np.unique(coding.codes(below), return_counts=True)]
    codes, n = _together(drawn)
    scale = (n_pairs - len(listed)) / max(1, n.sum())
    share = n / max(1, n.sum())
    exact_codes, exact = np.unique(coding.codes(listed.levels), return_counts=True)
    every = np.union1d(codes, exact_codes)
    at, at_exact = np.searchsorted(every, codes), np.searchsorted(every, exact_codes)
    estimate, error = np.zeros(len(every), np.int64), np.zeros(len(every))
    estimate[at] = np.round(n * scale)
    estimate[np.argmax(estimate)] += n_pairs - len(listed) - estimate.sum()  # for the rounding
    estimate[at_exact] += exact
    error[at] = scale * np.sqrt(n * (1 - share))
    return Patterns(coding.levels(every), estimate, size, error)


def _drawn(
    tables: Tables, pairs_before: NDArray[np.uint64], size: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Rows of pairs in scope drawn at random."""
    at = np.random.default_rng(0).integers(0, pairs_before[-1], size, np.uint64)
    a = np.searchsorted(pairs_before, at, side="right") - 1
    b = tables.from_b[a] + (at - pairs_before[a]).astype(np.int64)
    return tables.order_a[a], tables.order_b[b]
