"""Pairs drawn at random: uniformly among those at a level of a field, or among all in scope.

Values of A and of B at that level are drawn in proportion to the pairs of records that hold them,
then a record of each. Records are drawn by their tie keys, so that row order does not matter. In
one file the second value is not below the first, and the second record of one value is another.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayeslink.comparing.dictionaries import Codes, Dictionary
from bayeslink.engines.arrays import Tables
from bayeslink.pairs.source import Floats, Ints
from bayeslink.threads import slices

Rows = NDArray[np.int32]


class Joins:
    """The joins of all fields at their levels above 1, as far as these are in the tables."""

    def __init__(
        self,
        dictionaries: Sequence[Dictionary],
        tables: Tables,
        tie_keys: tuple[NDArray[np.uint64], NDArray[np.uint64]],
        block_of: tuple[Ints, Ints],
    ) -> None:
        self._dictionaries, self._tables, self._block_of = dictionaries, tables, block_of
        self._ranked = [np.argsort(keys, kind="stable").astype(np.int32) for keys in tie_keys]
        self._values: dict[int, list[tuple[Rows, Ints]]] = {}
        self._totals: dict[int, Ints] = {}

    def sizes(self, n_columns: int) -> Ints:
        """[field, level]: pairs of records, in scope or not; 0 for levels not in the tables."""
        out = np.zeros((len(self._dictionaries), n_columns), np.int64)
        for j, d in enumerate(self._dictionaries):
            for level in range(max(2, d.open + 1), d.field.n_levels + 1):
                total = self._total(j)[level]
                out[j, level] = total[-1] if len(total) else 0
        return out

    def draw(self, field: int, level: int, uniforms: Floats) -> tuple[Rows, Rows]:
        """A pair for each row of `uniforms`; −1, −1 where it is not in scope."""
        if field < 0:
            return self._draw_any(uniforms)
        from bayeslink.kernels.pair_counts import value_passing

        total = self._total(field)[level]
        target = (uniforms[:, 0] * total[-1]).astype(np.int64)
        x = np.searchsorted(total, target, side="right")
        y = value_passing(x, target - np.append(0, total)[x], level, *self._table(field))
        (records_a, start_a), (records_b, start_b) = self._records(field)
        n_a, n_b = start_a[x + 1] - start_a[x], start_b[y + 1] - start_b[y]
        a, b = self._places(n_a, n_b, uniforms, x == y)
        rows = self._in_order(records_a[start_a[x] + a], records_b[start_b[y] + b])
        inside = self._block_of[0][rows[0]] == self._block_of[1][rows[1]]
        inside &= self._block_of[0][rows[0]] >= 0
        return np.where(inside, rows[0], -1), np.where(inside, rows[1], -1)

    def _places(self, n_a: Ints, n_b: Ints, uniforms: Floats, together: Any) -> tuple[Ints, Ints]:
        """A place among n_a and one among n_b; in one file another one, where both are together."""
        skips = together & self._tables.one_file
        a = (uniforms[:, 1] * n_a).astype(np.int64)
        b = (uniforms[:, 2] * (n_b - skips)).astype(np.int64)
        return a, b + (skips & (b >= a))

    def _in_order(self, a: Rows, b: Rows) -> tuple[Rows, Rows]:
        return (np.minimum(a, b), np.maximum(a, b)) if self._tables.one_file else (a, b)

    def _draw_any(self, uniforms: Floats) -> tuple[Rows, Rows]:
        t, one_file = self._tables, self._tables.one_file
        sizes_a, sizes_b = t.scope.sizes_a, t.scope.sizes_b
        total = np.cumsum(sizes_a * (sizes_a - 1) // 2 if one_file else sizes_a * sizes_b)
        block = np.searchsorted(total, (uniforms[:, 0] * total[-1]).astype(np.int64), side="right")
        a, b = self._places(sizes_a[block], sizes_b[block], uniforms, True)
        by_block = self._by_block
        return self._in_order(by_block[0][t.start_a[block] + a], by_block[1][t.start_b[block] + b])

    @cached_property
    def _by_block(self) -> list[Rows]:
        """Records of A and of B that are in scope, by block of the blocking key."""
        out = []
        for ranked, block in zip(self._ranked, self._block_of, strict=True):
            inside = ranked[block[ranked] >= 0]
            out.append(inside[np.argsort(block[inside], kind="stable")])
        return out

    def _total(self, field: int) -> Ints:
        """[level, value of A]: pairs of records at that level, of all values up to this one.

        By value of A, not by value pair: there may be hundreds of millions of these.
        """
        from bayeslink.kernels.pair_counts import pairs_of_values

        if field not in self._totals:
            n_levels = self._dictionaries[field].field.n_levels
            table = self._table(field)
            parts = [
                pairs_of_values(n_levels, first, last, *table)
                for first, last in slices(len(self._dictionaries[field].a.values))
            ]
            found = np.concatenate([np.zeros((0, n_levels + 1), np.int64), *parts])
            self._totals[field] = np.ascontiguousarray(np.cumsum(found, axis=0).T)
        return self._totals[field]

    def _table(self, field: int) -> tuple[Any, ...]:
        """The field's part of the level table, and how many records hold each value."""
        t = self._tables
        times = (np.diff(start) for _, start in self._records(field))
        at = int(t.first_row[field]), int(t.base[field])
        return *at, t.indptr, t.slots, t.levels, *times, t.one_file

    def _records(self, field: int) -> list[tuple[Rows, Ints]]:
        """Records of A and of B by value, and where each value's begin."""
        if field not in self._values:
            d = self._dictionaries[field]
            a = self._sorted(0, d.a)
            self._values[field] = [a, a if self._tables.one_file else self._sorted(1, d.b)]
        return self._values[field]

    def _sorted(self, side: int, codes: Codes) -> tuple[Rows, Ints]:
        ranked = self._ranked[side]
        order = ranked[np.argsort(codes.codes[ranked], kind="stable")]
        return order, np.concatenate([[0], np.cumsum(codes.counts)])
