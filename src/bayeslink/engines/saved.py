"""The PairSource of a run that was saved: what is on the disk, and the files only where needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bayeslink.comparing.fields import Field
from bayeslink.engines.finding import rows_named
from bayeslink.errors import InputError
from bayeslink.pairs.base import HeldHere
from bayeslink.pairs.source import (
    Description,
    Floats,
    Ints,
    LevelCounts,
    Pairs,
    PairSource,
    Patterns,
    Scope,
)

Rows = NDArray[np.int32]


class SavedPairs(HeldHere):
    """Pairs of a saved run.

    Parameters
    ----------
    compared
        Reads and compares the files again; called at most once, for what only they can tell.
    """

    def __init__(
        self,
        fields: Sequence[Field],
        scope: Scope,
        ids: tuple[pa.Array, pa.Array],
        tie_keys: tuple[NDArray[np.uint64], NDArray[np.uint64]],
        counts: LevelCounts,
        description: Description,
        *,
        kind: str,
        id_types: tuple[str | None, str | None],
        copies: tuple[Ints, Ints] | None,
        compared: Callable[[], PairSource],
    ) -> None:
        self.fields: Sequence[Field] = tuple(fields)
        self.scope, self.tie_keys = scope, tie_keys
        self.one_file = scope.one_file
        self.kind, self.id_types, self.copies = kind, id_types, copies
        self.listed: Pairs | None = None  # whose comparison vectors are known without the files
        self._ids, self._counts, self._description = ids, counts, description
        self._compare = compared

    @cached_property
    def _files(self) -> PairSource:
        found = self._compare()
        for side, ids in enumerate(self._ids):
            n = (found.n_a, found.n_b)[side]
            if n != len(ids) or not found.ids(side, np.arange(n, dtype=np.int32)).equals(ids):
                raise InputError(
                    f"input {'AB'[side]} does not hold the records that were linked, in their "
                    "order. Give the file as it was, or link again."
                )
        if [f.labels for f in found.fields] != [f.labels for f in self.fields]:
            raise InputError(
                "the files compare differently from when they were linked: they have changed. "
                "Give them as they were, or link again."
            )
        return found

    @property
    def n_a(self) -> int:
        return len(self._ids[0])

    @property
    def n_b(self) -> int:
        return len(self._ids[1])

    @property
    def n_pairs(self) -> int:
        return self.scope.n_pairs

    # --- known from the run directory ----------------------------------------------------------

    def level_counts(self) -> LevelCounts:
        return self._counts

    def ids(self, side: int, rows: Rows) -> pa.Array:
        return self._ids[side].take(pa.array(rows))

    def describe(self) -> Description:
        return self._description

    def find(self, ids: Any) -> Pairs:
        def rows_of(side: pa.Array) -> Any:
            return lambda named: pc.index_in(named, side).combine_chunks()

        labels = [given["label"] for given in self._description.inputs]
        anywhere = tuple(np.zeros(len(ids), np.int64) for ids in self._ids)
        a, b = rows_named(ids, [rows_of(side) for side in self._ids], labels, anywhere)
        if self._place(a.astype(np.int64) * self.n_b + b) is None:
            return self._files.find(ids)
        return Pairs(a, b, self.levels_of(a, b))

    def levels_of(self, a: Rows, b: Rows) -> NDArray[np.uint8]:
        at = self._place(a.astype(np.int64) * self.n_b + b)
        if at is None or self.listed is None:
            return self._files.levels_of(a, b)
        return self.listed.levels[at]

    def _place(self, wanted: Ints) -> Ints | None:
        """Where pairs are among those listed; None if one of them is not."""
        if self.listed is None or not len(self.listed):
            return None
        order, numbers = self._in_order
        at = np.minimum(np.searchsorted(numbers, wanted), len(numbers) - 1)
        return order[at] if (numbers[at] == wanted).all() else None

    @cached_property
    def _in_order(self) -> tuple[Ints, Ints]:
        assert self.listed is not None
        numbers = self.listed.numbered(self.n_b)
        order = np.argsort(numbers)
        return order, numbers[order]

    # --- known from the files alone ------------------------------------------------------------

    def pattern_counts(
        self, fields: Sequence[int] | None = None, rows: Ints | None = None
    ) -> Patterns:
        return self._files.pattern_counts(fields, rows)

    def pairs_above(self, weights: Floats, threshold: float, *, in_files: bool = False) -> Pairs:
        return self._files.pairs_above(weights, threshold, in_files=in_files)

    def join_sizes(self) -> Ints:
        return self._files.join_sizes()

    def draw_pairs(self, field: int, level: int, luck: Floats) -> tuple[Rows, Rows]:
        return self._files.draw_pairs(field, level, luck)

    def cells(self, side: int, rows: Sequence[int]) -> list[dict[str, str | None]]:
        return self._files.cells(side, rows)
