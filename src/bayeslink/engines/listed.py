"""The plainest PairSource: every pair in scope is listed, with its comparison vector.

For comparison vectors that were made elsewhere, and for files so small that nothing cleverer pays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bayeslink.comparing.fields import Field
from bayeslink.data.id_pairs import TEXT
from bayeslink.distinct import distinct
from bayeslink.engines.blocking_key import finer
from bayeslink.engines.finding import ordered, rows_named
from bayeslink.engines.tie_keys import hash_texts, ranked, salted
from bayeslink.errors import InputError, TooManyPairsError
from bayeslink.pairs.base import Held
from bayeslink.pairs.hashing import mix64
from bayeslink.pairs.source import (
    Description,
    Files,
    Floats,
    Ints,
    LevelCounts,
    Pairs,
    Patterns,
    Scope,
    count_levels,
    sum_weights,
)
from bayeslink.pairs.vectors import distinct_vectors

LABELS = ("A", "B")
_CHOSEN = (
    "how often values agree by chance (u) was learned from the pairs given. If blocking rules "
    "chose them for agreeing, it comes out far too high, and the links may be badly wrong: give "
    "u, or Splink's trained model.",
)


class ListedPairs(Held):
    """All pairs in scope as one list.

    Parameters
    ----------
    fields
        What the columns of `pairs.levels` are.
    pairs
        Every pair in scope, in any order.
    ids
        Ids of the records of A and of B, as text.
    blocks
        Block of the blocking key of each record of A and of B, −1 for none; all pairs are in scope
        unless given.
    cells
        For A and B, what each record holds in each field, by field; for people to read.
    most
        Pairs that a search may list.
    only
        Only these pairs are in scope, as where another tool has chosen them.
    one_file
        The pairs are those of one file with itself: `ids`, `blocks` and `cells` are of that file
        alone, and each pair is there once, in either order.
    files
        Several files that stand together in the one: pairs within those without duplicates are not
        in scope, and are left out.
    """

    names: tuple[str, str] = ("a", "b")  # of the two data sets, where the pairs came from
    closed, remote = False, False

    def __init__(
        self,
        fields: Sequence[Field],
        pairs: Pairs,
        ids: Sequence[Any],
        *,
        blocks: Sequence[Ints] | None = None,
        cells: tuple[Mapping[str, Sequence[str | None]], ...] | None = None,
        kind: str = "arrow",
        id_types: tuple[str | None, str | None] = (None, None),
        most: int | None = None,
        only: bool = False,
        one_file: bool = False,
        files: Files | None = None,
    ) -> None:
        self.one_file, self.files = one_file, files
        self.fields: Sequence[Field] = tuple(fields)
        self.kind, self.id_types = kind, id_types
        self.workers, self.memory = 1, None
        self._ids = pa.array(ids[0], TEXT), pa.array(ids[-1], TEXT)
        if blocks is None:
            blocks = np.zeros(self.n_a, np.int64), np.zeros(self.n_b, np.int64)
        self._blocks = blocks[0], blocks[-1]
        self._cells, self._most = cells, most
        n_blocks = int(max(block.max(initial=-1) for block in blocks)) + 1
        sizes = [np.bincount(block[block >= 0], minlength=n_blocks) for block in blocks]
        self.scope = Scope(sizes[0], sizes[-1], one_file=one_file)
        n_pairs = self.scope.n_pairs
        if files is not None:
            in_scope = finer(self._blocks[0], files.apart)
            inside = np.bincount(in_scope[in_scope >= 0])
            n_pairs -= int(inside @ (inside - 1)) // 2
            pairs = pairs.take(np.flatnonzero(~files.left_out(pairs.a, pairs.b)))
        self._chosen = only and 0 < len(pairs) < n_pairs
        if self._chosen:
            n_pairs = len(pairs)
        if self.scope.n_pairs:
            self.scope = replace(self.scope, density=n_pairs / self.scope.n_pairs)
        self._drawn_from: dict[tuple[int, int], Ints] = {}  # by field and level
        if one_file:
            pairs = Pairs(*ordered(pairs.a, pairs.b), pairs.levels)
        self._pairs = pairs.take(np.lexsort((pairs.b, pairs.a)))
        self._numbers = self._pairs.numbered(self.n_b)
        self._check()
        self.copies = None  # what the records hold is not known
        if one_file:
            keys = mix64(hash_texts(self._ids[0]))
            self.tie_keys = keys, keys
        else:
            self.tie_keys = salted(*(self._hashes(side) for side in (0, 1)))

    def _check(self) -> None:
        rows = self._pairs.a, self._pairs.b
        of_a, of_b = (block[row] for block, row in zip(self._blocks, rows, strict=True))
        whole = len(distinct(self._numbers)) == len(self._pairs) == self.scope.n_pairs
        if not (whole and (of_a == of_b).all() and (of_a >= 0).all()):
            raise InputError(
                f"{len(self._pairs):,} pairs are listed and {self.scope.n_pairs:,} are in scope. "
                "Each pair in scope must be listed once, and no other."
            )

    def _hashes(self, side: int) -> tuple[NDArray[np.uint64], list[NDArray[np.uint64]]]:
        """Of ids, and of the levels of each record's pairs, whatever their order."""
        rows = (self._pairs.a, self._pairs.b)[side]
        sums = [
            np.bincount(rows, column, len(self._ids[side])).astype(np.uint64)
            for column in self._pairs.levels.T
        ]
        return hash_texts(self._ids[side]), sums

    @property
    def n_a(self) -> int:
        return len(self._ids[0])

    @property
    def n_b(self) -> int:
        return len(self._ids[1])

    @property
    def n_pairs(self) -> int:
        return self.scope.n_pairs

    # --- what statistics ask for ---------------------------------------------------------------

    def level_counts(self) -> LevelCounts:
        width = max(f.n_levels for f in self.fields) + 1
        return LevelCounts(count_levels(self._pairs.levels, width), self.n_pairs)

    def pattern_counts(
        self, fields: Sequence[int] | None = None, rows: Ints | None = None
    ) -> Patterns:
        which = list(range(len(self.fields)) if fields is None else fields)
        levels = self._pairs.levels[:, which]
        if rows is not None:
            chosen = np.isin(self._pairs.a, rows)
            if self.one_file:
                chosen |= np.isin(self._pairs.b, rows)
            levels = levels[chosen]
        patterns, _, pattern = distinct_vectors(levels)
        return Patterns(patterns, np.bincount(pattern, minlength=len(patterns)))

    def pairs_above(self, weights: Floats, threshold: float, *, in_files: bool = False) -> Pairs:
        keep = np.flatnonzero(sum_weights(weights, self._pairs.levels) > threshold)
        if self._most is not None and len(keep) > self._most and not in_files:
            raise TooManyPairsError(
                f"{len(keep):,} pairs weigh more than {threshold:.3g}; at most {self._most:,} may "
                "be listed. Use a higher theta or w0, or more fields."
            )
        return self._pairs.take(keep)

    def levels_of(self, a: NDArray[np.int32], b: NDArray[np.int32]) -> NDArray[np.uint8]:
        if self.one_file:
            a, b = ordered(a, b)
        wanted = a.astype(np.int64) * self.n_b + b
        at = np.minimum(np.searchsorted(self._numbers, wanted), max(0, len(self._pairs) - 1))
        if len(wanted) and not (len(self._pairs) and (self._numbers[at] == wanted).all()):
            raise InputError("some of these pairs are not in scope, so their levels are not known.")
        return self._pairs.levels[at]

    def join_sizes(self) -> Ints:
        counts = self.level_counts().counts.copy()
        counts[:, 0] = 0
        return counts

    def draw_pairs(
        self, field: int, level: int, uniforms: Floats
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        if (field, level) not in self._drawn_from:
            at = self._by_key
            if field >= 0:
                at = at[self._pairs.levels[at, field] == level]
            self._drawn_from[field, level] = at
        order = self._drawn_from[field, level]
        at = order[(uniforms[:, 0] * len(order)).astype(np.int64)]
        return self._pairs.a[at], self._pairs.b[at]

    @cached_property
    def _by_key(self) -> Ints:
        """Places of all pairs, in an order that does not depend on that of rows."""
        return ranked(self._pairs, self.tie_keys, self.one_file)

    def find(self, ids: Any) -> Pairs:
        def rows_of(side: pa.Array) -> Any:
            return lambda named: pc.index_in(named, side).combine_chunks()

        a, b = rows_named(ids, [rows_of(side) for side in self._ids], LABELS, self._blocks)
        if self.one_file:
            a, b = ordered(a, b)
        if self.files is not None:
            self.files.refuse_within(Pairs(a, b, np.zeros((len(a), 0), np.uint8)))
        return Pairs(a, b, self.levels_of(a, b))

    def together(self, rows: tuple[Ints, Ints]) -> None:
        return None

    # --- what is said of them ------------------------------------------------------------------

    def ids(self, side: int, rows: NDArray[np.int32]) -> pa.Array:
        return self._ids[side].take(pa.array(rows))

    def cells(self, side: int, rows: Sequence[int]) -> list[dict[str, str | None]]:
        if self._cells is None:
            return [{f.name: None for f in self.fields} for _ in rows]
        cells = self._cells[0 if self.one_file else side]
        return [{f.name: cells[f.name][row] for f in self.fields} for row in rows]

    def describe(self) -> Description:
        return Description(
            engine="listed",
            inputs=tuple(
                {
                    "label": label,
                    "kind": self.kind,
                    "sha256": None,
                    "records": len(ids),
                    "quarantined": 0,
                }
                for label, ids in zip(LABELS[: 1 if self.one_file else 2], self._ids, strict=False)
            ),
            fields=tuple(
                {"distinct": [0, 0], "missing": [0, 0], "invalid": [0, 0]} for _ in self.fields
            ),
            warnings=_CHOSEN if self._chosen else (),
            notes=(),
            plan=None,
            memory={},
            resources="All pairs are listed in memory.",
            names=self.names,
        )
