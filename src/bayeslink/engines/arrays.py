"""Both files and their level tables as flat arrays, as the kernels want them.

The values of B, and one slot a field for missing, are numbered through across fields ("slots");
the values of A are rows of one CSR table whose columns are slots. Records are sorted by block of
the blocking key, so that the records of B that one of A may link to are one range.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bayeslink.comparing.dictionaries import NO_TABLE, Dictionary
from bayeslink.engines.missing import Classes, Unions, join_classes, missing_classes
from bayeslink.memory import Memory
from bayeslink.pairs.source import Ints, Scope
from bayeslink.threads import Shared, slices

EVERY_PAIR = -1  # in place of a field: the join of all of A with all of B
_SCANNED = 4.0  # blocks of fewer records than this times the neighbours of a record are scanned
_ASKED = 1000  # records of A whose neighbours are counted by level
_LAYING = Lock()  # a piece is laid out by one thread


class PieceOfB(Shared):
    """Records of B from one position in the tables to another, and an index of them by value."""

    def __init__(
        self,
        codes: NDArray[np.int32],
        classes: NDArray[np.int32],
        base: Ints,
        first: int,
    ) -> None:
        self.codes, self.classes, self.base, self.first = codes, classes, base, first
        self._laid: tuple[int, tuple[NDArray[Any], ...]] | None = None

        self._within: tuple[Ints, Ints] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_laid": None, "_within": None}

    def laid(self, field: int) -> tuple[NDArray[Any], ...]:
        """As the kernels want a join on a field: codes and classes by value, `posts_of` it."""
        with _LAYING:
            if self._laid is None or self._laid[0] != field:
                posts, start = posts_of(self.codes, self.base, field)
                rows = np.empty((len(posts), self.codes.shape[1] + 1), np.int32)
                np.take(self.codes, posts, axis=0, out=rows[:, :-1])
                rows[:, -1] = self.classes[posts]
                self._laid = field, (rows, posts, start)
            return self._laid[1]

    def within(self, from_b: Ints, to_b: Ints) -> tuple[Ints, Ints]:
        """The tables' ranges of records of B as ranges of those in the piece."""
        with _LAYING:
            if self._within is None:
                low, high = (np.clip(at - self.first, 0, len(self.codes)) for at in (from_b, to_b))
                self._within = low, high
            return self._within


def posts_of(codes: NDArray[np.int32], base: Ints, field: int) -> tuple[NDArray[np.int32], Ints]:
    """Records of B by value in a field, rising within each; where each value's begin."""
    if field == EVERY_PAIR:
        return np.arange(len(codes), dtype=np.int32), np.array([0, len(codes)])
    column = codes[:, field] - base[field]
    sizes = np.bincount(column, minlength=int(base[field + 1] - base[field]))
    posts = np.argsort(column, kind="stable").astype(np.int32)
    return posts, np.concatenate([[0], np.cumsum(sizes)])


class Tables:
    """Records and level tables, laid out once; the tables are taken out of the dictionaries.

    Attributes
    ----------
    order_a, order_b
        Row in its file of each record that is in scope, sorted by block.
    start_a, start_b
        Where each block begins, and the end.
    codes_a, codes_b
        Row or slot of each record's value in each field; −1 or the field's last slot if missing.
    indptr, slots, levels
        The CSR table of levels above 1.
    first_row, base
        First row and first slot of each field, and the end.
    from_b, to_b
        The records of B in scope of each record of A.
    one_file
        A and B are the same records in the same order. The pairs are those of two different ones,
        each once.
    """

    def __init__(
        self,
        dictionaries: list[Dictionary],
        block_a: Ints,
        block_b: Ints,
        memory: Memory | None = None,
        one_file: bool = False,
    ) -> None:
        self.one_file = one_file
        self._sort(block_a, block_b)
        self.memory = memory = Memory() if memory is None else memory
        n_values = np.array([(len(d.a.values), len(d.b.values) + 1) for d in dictionaries])
        self.first_row, self.base = _starts(n_values[:, 0]), _starts(n_values[:, 1])
        n_fields, n_entries = len(dictionaries), sum(len(d.table.levels) for d in dictionaries)
        self.codes_a = np.empty((len(self.order_a), n_fields), np.int32)
        self.codes_b = np.empty((len(self.order_b), n_fields), np.int32)
        self.indptr = np.empty(self.first_row[-1] + 1, np.int64)
        self.slots = memory.empty(n_entries, np.int32)
        self.levels = memory.empty(n_entries, np.uint8)
        at = 0
        for j, d in enumerate(dictionaries):
            codes = d.a.codes[self.order_a]
            missing = codes == len(d.a.values)
            self.codes_a[:, j] = np.where(missing, -1, codes + self.first_row[j])
            self.codes_b[:, j] = d.b.codes[self.order_b] + self.base[j]
            end = at + len(d.table.levels)
            self.indptr[self.first_row[j] : self.first_row[j + 1]] = d.table.indptr[:-1] + at
            slots, levels = self.slots[at:end], self.levels[at:end]
            for first, last in slices(len(levels), 1 << 20):
                np.add(d.table.indices[first:last], np.int32(self.base[j]), slots[first:last])
                levels[first:last] = d.table.levels[first:last]
            at = end
            dictionaries[j] = replace(d, table=NO_TABLE)
        self.indptr[-1] = at
        self._forget()

    def _sort(self, block_a: Ints, block_b: Ints) -> None:
        n_blocks = int(max(block_a.max(initial=-1), block_b.max(initial=-1))) + 1
        self.order_a, self.start_a = _sorted_by_block(block_a, n_blocks)
        self.order_b, self.start_b = _sorted_by_block(block_b, n_blocks)
        self.scope = Scope(np.diff(self.start_a), np.diff(self.start_b), one_file=self.one_file)
        self.block_a = np.repeat(np.arange(n_blocks), self.scope.sizes_a)
        self.block_b = np.repeat(np.arange(n_blocks), self.scope.sizes_b)
        self.from_b, self.to_b = self.start_b[self.block_a], self.start_b[self.block_a + 1]

    def _forget(self) -> None:
        self._groups: dict[int, Ints] = {}
        self._pieces: dict[int, list[PieceOfB]] = {}
        self._posts: dict[int, tuple[NDArray[np.int32], Ints]] = {}

    def within(self, block: Ints) -> Tables:
        """The tables of one file, for pairs within finer blocks: −1 of records in none."""
        found = copy(self)
        for name in ("neighbours", "neighbours_at", "classes"):
            vars(found).pop(name, None)
        found._sort(block, block)
        place = np.empty(len(block), np.int64)
        place[self.order_a] = np.arange(len(self.order_a))
        at = place[found.order_a]
        found.codes_a, found.codes_b = self.codes_a[at], self.codes_b[at]
        found._forget()
        return found

    @property
    def n_fields(self) -> int:
        return self.codes_a.shape[1]

    @property
    def pairs_from(self) -> Ints:
        """From here up to `to_b` are the pairs that are counted as those of a record of A."""
        return np.arange(1, len(self.from_b) + 1) if self.one_file else self.from_b

    def rows(self, a: NDArray[Any], b: NDArray[Any]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Rows in their files of pairs of records, the lower first in one file."""
        rows = self.order_a[a], self.order_b[b]
        return (np.minimum(*rows), np.maximum(*rows)) if self.one_file else rows

    def own(self, field: int, first: int = 0) -> tuple[bool, int, int]:
        """What the kernels need to visit each pair of one file once, in a join on a field.

        `first` is the first record of the piece of B.
        """
        return self.one_file, 0 if field == EVERY_PAIR else int(self.first_row[field]), first

    @property
    def csr(self) -> tuple[NDArray[Any], ...]:
        return self.indptr, self.slots, self.levels, self.base

    @property
    def missing_a(self) -> NDArray[np.bool_]:
        return self.codes_a < 0

    @property
    def missing_b(self) -> NDArray[np.bool_]:
        return self.codes_b == self.base[1:] - 1

    @cached_property
    def neighbours(self) -> NDArray[np.float64]:
        """Values of B above level 1 beside a record of A, on average, by field."""
        lengths = np.append(np.diff(self.indptr), 0)  # the last is for −1, missing
        return lengths[self.codes_a].sum(0) / max(1, len(self.codes_a))

    @cached_property
    def neighbours_at(self) -> NDArray[np.float64]:
        """The same by level too, [field, level]; of some of A's records, evenly chosen."""
        chosen = np.linspace(0, len(self.codes_a) - 1, min(len(self.codes_a), _ASKED)).astype(int)
        counts = np.zeros((self.n_fields, 256))
        for j in range(self.n_fields):
            rows = [row for row in self.codes_a[chosen, j].tolist() if row >= 0]
            beside = [self.levels[self.indptr[row] : self.indptr[row + 1]] for row in rows]
            counts[j] = np.bincount(np.concatenate([self.levels[:0], *beside]), minlength=256)
        return counts / max(1, len(chosen))

    def beside(
        self, wanted: NDArray[np.bool_]
    ) -> tuple[Ints, NDArray[np.int32], NDArray[np.uint8]]:
        """The CSR table of levels, but only those wanted of [field, level]."""
        lengths, slots, levels = [np.zeros(1, np.int64)], [], []
        for j in range(self.n_fields):
            rows = self.indptr[self.first_row[j] : self.first_row[j + 1] + 1]
            if not wanted[j].any():
                lengths.append(np.zeros(len(rows) - 1, np.int64))
                continue
            for first, last in slices(len(rows) - 1, 1 << 14):
                low, high = rows[first], rows[last]
                kept = np.flatnonzero(wanted[j][self.levels[low:high]])
                lengths.append(np.diff(np.searchsorted(kept, rows[first : last + 1] - low)))
                slots.append(self.slots[low:high][kept])
                levels.append(self.levels[low:high][kept])
        return (
            np.cumsum(np.concatenate(lengths)),
            self.memory.concatenate(slots, np.int32),
            self.memory.concatenate(levels, np.uint8),
        )

    @cached_property
    def classes(self) -> tuple[Classes, Classes, Unions]:
        """Records of A and of B by what they lack, and the unions of both.

        The last of the states says whether the record of A is in so small a block that all pairs
        may as well be visited.
        """
        small = self.to_b - self.from_b < _SCANNED * self.neighbours.sum()
        a = missing_classes(np.column_stack([self.missing_a, small]))
        if self.one_file:  # a pair has one union, whichever record is met first
            n = self._by_block(a, self.block_a)
            with_itself = np.diag(np.bincount(a.of, minlength=len(a.states)))
            return a, a, join_classes(a, a, ((n @ n.T).toarray() - with_itself) / 2)
        b = missing_classes(np.column_stack([self.missing_b, np.zeros(len(self.codes_b), bool)]))
        n_pairs = self._by_block(a, self.block_a) @ self._by_block(b, self.block_b).T
        return a, b, join_classes(a, b, n_pairs.toarray())

    def _by_block(self, classes: Classes, block: Ints) -> Any:
        """Records of each class in each block."""
        shape = len(classes.states), len(self.start_a) - 1
        return sparse.csr_array((np.ones(len(block)), (classes.of, block)), shape)

    def groups(self, field: int) -> Ints:
        """Number of each record of A by block and value in a field."""
        if field not in self._groups:
            self._groups[field] = self._make_groups(field)
        return self._groups[field]

    def posts(self, field: int) -> tuple[NDArray[np.int32], Ints]:
        """Records of B by value in a field, rising within each; where each value's begin."""
        if field not in self._posts:
            self._posts[field] = posts_of(self.codes_b, self.base, field)
        return self._posts[field]

    def pieces_b(self, most: int) -> list[PieceOfB]:
        """B in pieces of at most so many records: the same objects as long as `most` is."""
        if most not in self._pieces:
            classes, n = self.classes[1].of, len(self.codes_b)
            cuts = np.linspace(0, n, max(1, -(-n // most)) + 1).astype(int).tolist()
            self._pieces = {
                most: [
                    PieceOfB(self.codes_b[i:j], classes[i:j], self.base, i)
                    for i, j in pairwise(cuts)
                ]
            }
        return self._pieces[most]

    def _make_groups(self, field: int) -> Ints:
        if field == EVERY_PAIR:
            return self.block_a
        row = self.codes_a[:, field].astype(np.int64)
        return np.unique(self.block_a * (len(self.indptr) + 1) + row, return_inverse=True)[1]


def _starts(sizes: Ints) -> Ints:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _sorted_by_block(keys: Ints, n_blocks: int) -> tuple[NDArray[np.int32], Ints]:
    order = np.argsort(keys, kind="stable")
    order = order[np.searchsorted(keys[order], 0) :]
    sizes = np.bincount(keys[order], minlength=n_blocks)
    return order.astype(np.int32), np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
