"""Level counts over all pairs: products of counts of two values, summed over the level table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from bayeslink.engines.arrays import Tables
from bayeslink.pairs.source import Ints, LevelCounts
from bayeslink.pairs.source import count_levels as levels_at_each
from bayeslink.threads import slices

_PIECE = 500_000  # pairs compared at a time

LevelsOf = Callable[[NDArray[np.int32], NDArray[np.int32]], NDArray[np.uint8]]


def count_levels(tables: Tables, n_levels: Sequence[int]) -> LevelCounts:
    """Pairs at each level of each field, exactly.

    In one file these are half of the ordered pairs, less those of a record with itself.
    """
    from bayeslink.kernels.pair_counts import level_counts

    starts = tables.start_a, tables.start_b
    table = tables.codes_a, tables.codes_b, tables.indptr, tables.slots, tables.levels, *starts
    sizes = int(tables.base[-1]), max(n_levels)
    counts = np.zeros((tables.n_fields, max(n_levels) + 1), np.int64)
    n_pairs = tables.scope.n_pairs
    for j in range(tables.n_fields):
        for first, last in slices(len(starts[0]) - 1):
            counts[j] += level_counts(j, first, last, *table, *sizes)
        present = [
            _count_by_block(~missing[:, j], start)
            for missing, start in zip((tables.missing_a, tables.missing_b), starts, strict=True)
        ]
        compared = int(present[0] @ present[1])
        if tables.one_file:
            compared = (compared - int(present[0].sum())) // 2
            counts[j] = (counts[j] - _with_itself(tables, j, counts.shape[1])) // 2
        counts[j, 0] = n_pairs - compared
        counts[j, 1] = compared - counts[j, 2:].sum()
    return LevelCounts(counts, n_pairs)


def _with_itself(tables: Tables, field: int, n_columns: int) -> Ints:
    """Records at each level above 1 with themselves."""
    from bayeslink.kernels.search import levels_at

    rows, slots = (np.ascontiguousarray(c[:, field]) for c in (tables.codes_a, tables.codes_b))
    missing = int(tables.base[field + 1]) - 1
    levels = levels_at(rows, slots, missing, tables.indptr, tables.slots, tables.levels)
    counts = np.bincount(levels, minlength=n_columns)
    counts[:2] = 0
    return counts


def compare_every_pair(tables: Tables, levels_of: LevelsOf, n_columns: int) -> Ints:
    """Pairs at each level of each field, exactly, one by one: where tables do not tell them all."""
    upto = np.cumsum(tables.to_b - tables.pairs_from)
    edges = np.searchsorted(upto, np.arange(0, tables.scope.n_pairs, _PIECE), side="left")
    counts = np.zeros((tables.n_fields, n_columns), np.int64)
    for first, last in pairwise([*np.unique(edges).tolist(), len(upto)]):
        counts += levels_at_each(levels_of(*_rows(tables, first, last)), n_columns)
    return counts


def _rows(tables: Tables, first: int, last: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Rows of all pairs in scope of the records first … last of A."""
    from_b = tables.pairs_from[first:last]
    n = tables.to_b[first:last] - from_b
    before = np.cumsum(n) - n
    b = np.arange(n.sum()) + np.repeat(from_b - before, n)
    return np.repeat(tables.order_a[first:last], n), tables.order_b[b]


def _count_by_block(flags: NDArray[np.bool_], starts: Ints) -> Ints:
    running = np.concatenate([[0], np.cumsum(flags)])
    return running[starts[1:]] - running[starts[:-1]]
