"""The PairSource of one machine: level tables in memory, pairs scanned by compiled code."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy import sparse

from bayeslink.dictionaries import build_dictionary
from bayeslink.engines.search import make_plan
from bayeslink.errors import BayeslinkError, InputError, SettingsError
from bayeslink.fields import Field
from bayeslink.idpairs import id_pairs
from bayeslink.keys import block_keys, tie_keys
from bayeslink.patterns import Floats, Ints, LevelCounts, Pairs, Patterns, Scope
from bayeslink.records import Records

MAX_LISTED = 100_000_000  # pairs that pairs_above lists before it gives up with advice
_MAX_HISTOGRAM = 1 << 24  # pattern codes counted in one array
_PIECES_PER_THREAD = 8


class TooManyPairsError(BayeslinkError):
    """A threshold so low that the pairs above it do not fit in memory."""


class LocalPairs:
    """All pairs of two files in scope, on this machine. Made by `compare`."""

    def __init__(
        self,
        a: Records,
        b: Records,
        fields: Sequence[Field],
        block: Sequence[Field] = (),
        threads: int | None = None,
        to_caller: Callable[[pa.Table], Any] = lambda table: table,
    ) -> None:
        self.records = (a, b)
        self.fields: Sequence[Field] = tuple(fields)
        self.threads = threads or os.cpu_count() or 1
        self.dictionaries = [build_dictionary(f, a, b, self.threads) for f in self.fields]
        self.tie_keys = tie_keys(a, b, self.fields)
        self.to_caller = to_caller
        self._lay_out_blocks(block)
        self._lay_out_tables()

    @property
    def n_a(self) -> int:
        return len(self.records[0])

    @property
    def n_b(self) -> int:
        return len(self.records[1])

    @property
    def n_pairs(self) -> int:
        return self.scope.n_pairs

    # --- what statistics ask for -------------------------------------------------------------

    @cached_property
    def _level_counts(self) -> LevelCounts:
        from bayeslink.kernels.scan import level_counts

        n_levels = np.array([f.n_levels for f in self.fields], np.int64)
        counts = level_counts(*self._tables, *self._starts, n_levels, int(self._base[-1]))
        for j, dictionary in enumerate(self.dictionaries):
            missing = (-1, self._base[j] + len(dictionary.b.values))
            present = [
                _count_by_block(self._tables[side][:, j] != missing[side], self._starts[side])
                for side in (0, 1)
            ]
            compared = int(present[0] @ present[1])
            counts[j, 0] = self.n_pairs - compared
            counts[j, 1] = compared - counts[j, 2:].sum()
        return LevelCounts(counts, self.n_pairs)

    def level_counts(self) -> LevelCounts:
        return self._level_counts

    @cached_property
    def _pattern_counts(self) -> Patterns:
        from bayeslink.kernels.scan import pattern_histogram

        radix = np.array([f.n_levels + 1 for f in self.fields], np.int64)
        n_codes = int(np.prod(radix.astype(float)))
        if n_codes > _MAX_HISTOGRAM:
            raise SettingsError(
                f"{len(self.fields)} fields have {n_codes:,} possible patterns, more than the "
                f"{_MAX_HISTOGRAM:,} that are counted. Use fewer levels or fewer fields for EM; "
                "the penalized-likelihood fit needs no pattern counts."
            )
        place = np.cumprod(np.concatenate([[1], radix[:-1]]))
        strides = place[:, None] * np.arange(radix.max())[None, :]

        def work(first: int, last: int) -> Ints:
            return pattern_histogram(
                *self._tables, *self._ranges, first, last, strides, self._base, n_codes
            )

        histogram = np.sum(self._in_pieces(work), axis=0)
        codes = np.flatnonzero(histogram)
        levels = (codes[:, None] // place[None, :]) % radix[None, :]
        return Patterns(levels.astype(np.uint8), histogram[codes])

    def pattern_counts(self) -> Patterns:
        return self._pattern_counts

    def pairs_above(self, weights: Floats, threshold: float) -> Pairs:
        from bayeslink.kernels.scan import pairs_above

        weights = np.ascontiguousarray(weights, np.float64)
        plan = self._plan(weights, threshold)

        def work(first: int, last: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
            scope = *self._tables, *self._ranges, first, last
            wanted = weights, self._base, threshold, MAX_LISTED
            return pairs_above(*scope, *wanted, *plan, *self._posts)

        pieces = self._in_pieces(work)
        total = sum(len(a) for a, _, _ in pieces)
        if total > MAX_LISTED:
            raise TooManyPairsError(
                f"more than {MAX_LISTED:,} pairs have a weight above {threshold:.3g}. Use a "
                "higher theta or w0, more fields, or a blocking key."
            )
        rows_a, rows_b, levels = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
        return Pairs(self._order_a[rows_a], self._order_b[rows_b], levels)

    def _plan(self, weights: Floats, threshold: float) -> tuple[NDArray[Any], ...]:
        """The plan of each record of A, by which of its fields are missing."""
        n_levels = [f.n_levels for f in self.fields]
        shares = self.level_counts().counts / max(1, self.n_pairs)
        classes, plan_of = self._missing_classes
        keys = np.full((len(classes), len(n_levels)), -1, np.int32)
        needs = np.zeros(keys.shape)
        for number, missing in enumerate(classes):
            plan = make_plan(weights, n_levels, shares, missing, threshold)
            keys[number, : len(plan.keys)] = plan.keys
            needs[number, : len(plan.keys)] = plan.needs
        return plan_of, keys, needs

    @cached_property
    def _missing_classes(self) -> tuple[NDArray[np.bool_], NDArray[np.int32]]:
        """Sets of fields that are missing together in records of A, and each record's set."""
        missing = self._tables[0] < 0
        code = missing @ (1 << np.arange(len(self.fields)))
        _, first, of = np.unique(code, return_index=True, return_inverse=True)
        return missing[first], of.astype(np.int32)

    @cached_property
    def _posts(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The records of B by slot, rising within each."""
        codes = self._tables[1]
        posts = np.argsort(codes.T.ravel(), kind="stable") % max(1, len(codes))
        sizes = np.bincount(codes.ravel(), minlength=int(self._base[-1]))
        return np.concatenate([[0], np.cumsum(sizes)]), posts.astype(np.int32)

    def find(self, ids: Any) -> Pairs:
        named = id_pairs(ids, "the pairs")
        rows = []
        for side, records in enumerate(self.records):
            at = pc.index_in(named.column(side).cast(records.ids.type), records.ids)
            unknown = at.null_count
            if unknown:
                raise InputError(
                    f"{unknown} ids named in pairs are not in {records.label}. "
                    "Ids are compared as text; check the column order (id_a, id_b)."
                )
            rows.append(at.combine_chunks().to_numpy(zero_copy_only=False).astype(np.int32))
        in_scope = self._block_of[0][rows[0]] == self._block_of[1][rows[1]]
        if not (in_scope & (self._block_of[0][rows[0]] >= 0)).all():
            raise InputError(
                "some of the pairs named lie outside the blocking key's scope, where no pair may "
                "link. Drop them, or the blocking key."
            )
        return Pairs(rows[0], rows[1], self.levels_of(rows[0], rows[1]))

    def levels_of(self, a: NDArray[np.int32], b: NDArray[np.int32]) -> NDArray[np.uint8]:
        """Comparison vectors of given pairs of rows."""
        levels = np.ones((len(a), len(self.fields)), np.uint8)
        if not len(a):  # of which SciPy would make a sparse array
            return levels
        for j, d in enumerate(self.dictionaries):
            x, y = d.a.codes[a], d.b.codes[b]
            missing = (x == len(d.a.values)) | (y == len(d.b.values))
            shape = (len(d.a.values) + 1, len(d.b.values) + 1)
            indptr = np.append(d.table.indptr, d.table.indptr[-1])
            table = sparse.csr_array((d.table.levels, d.table.indices, indptr), shape)
            found = np.asarray(table[x, y]).ravel()
            levels[:, j] = np.where(missing, 0, np.maximum(found, 1))
        return levels

    def table(self, pairs: Pairs, columns: dict[str, Any]) -> Any:
        return self.to_caller(self.arrow_table(pairs, columns))

    def arrow_table(self, pairs: Pairs, columns: dict[str, Any]) -> pa.Table:
        ids = {
            "id_a": self.records[0].ids.take(pa.array(pairs.a)),
            "id_b": self.records[1].ids.take(pa.array(pairs.b)),
        }
        levels = {f"gamma_{f.name}": pairs.levels[:, j] for j, f in enumerate(self.fields)}
        return pa.table({**ids, **columns, **levels})

    # --- lay-out -----------------------------------------------------------------------------

    def _lay_out_blocks(self, block: Sequence[Field]) -> None:
        """Sort both files by the blocking key; a missing key is in no block."""
        keys_a, keys_b = self._block_of = block_keys(*self.records, block)
        n_blocks = int(max(keys_a.max(initial=-1), keys_b.max(initial=-1))) + 1
        self._order_a, starts_a = _sorted_by_block(keys_a, n_blocks)
        self._order_b, starts_b = _sorted_by_block(keys_b, n_blocks)
        self._starts = starts_a, starts_b
        self.scope = Scope(np.diff(starts_a), np.diff(starts_b))
        of_a = np.repeat(np.arange(n_blocks), self.scope.sizes_a)
        self._ranges = starts_b[of_a], starts_b[of_a + 1]

    def _lay_out_tables(self) -> None:
        """Number the values of all fields through, as `kernels.scan` wants them."""
        rows, slots, nnz = 0, 0, 0
        columns_a, columns_b, indptrs, indices, base = [], [], [], [], [0]
        for d in self.dictionaries:
            codes = d.a.codes[self._order_a]
            columns_a.append(np.where(codes == len(d.a.values), -1, codes + rows))
            columns_b.append(d.b.codes[self._order_b] + slots)
            indptrs.append(d.table.indptr[:-1] + nnz)
            indices.append(d.table.indices + slots)
            rows, nnz = rows + len(d.a.values), nnz + len(d.table.indices)
            slots += len(d.b.values) + 1
            base.append(slots)
        self._base = np.array(base, np.int64)
        self._tables = (
            np.ascontiguousarray(np.stack(columns_a, 1), np.int32),
            np.ascontiguousarray(np.stack(columns_b, 1), np.int32),
            np.concatenate([*indptrs, [nnz]]).astype(np.int64),
            np.concatenate(indices).astype(np.int32),
            np.concatenate([d.table.levels for d in self.dictionaries]),
        )

    def _in_pieces(self, work: Callable[[int, int], Any]) -> list[Any]:
        """Run `work` over ranges of A with about equal numbers of pairs, in threads, in order."""
        from_b, to_b = self._ranges
        done = np.concatenate([[0], np.cumsum(to_b - from_b)])
        n_pieces = self.threads * _PIECES_PER_THREAD if done[-1] > 1_000_000 else 1
        marks = np.searchsorted(done, np.linspace(0, done[-1], n_pieces + 1)[1:-1])
        edges = np.unique(np.concatenate([[0], marks, [len(from_b)]]))
        ranges = list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)) or [(0, 0)]
        if len(ranges) == 1 or self.threads == 1:
            return [work(*r) for r in ranges]
        with ThreadPoolExecutor(self.threads) as pool:
            return list(pool.map(lambda r: work(*r), ranges))


def _count_by_block(flags: NDArray[np.bool_], starts: Ints) -> Ints:
    running = np.concatenate([[0], np.cumsum(flags)])
    return running[starts[1:]] - running[starts[:-1]]


def _sorted_by_block(keys: Ints, n_blocks: int) -> tuple[NDArray[np.int32], Ints]:
    order = np.argsort(keys, kind="stable")
    order = order[np.searchsorted(keys[order], 0) :]
    sizes = np.bincount(keys[order], minlength=n_blocks)
    return order.astype(np.int32), np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
