"""The PairSource of a run that was saved: what is on the disk, and the files only where needed."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bayeslink.comparing.fields import Field
from bayeslink.data.records import Records
from bayeslink.engines.finding import rows_named
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
from bayeslink.threads import Workers

Rows = NDArray[np.int32]


class SavedPairs(HeldHere):
    """Pairs of a saved run.

    Parameters
    ----------
    listed
        Pairs of which the comparison vectors are known without the files.
    records
        Reads the files again; called at most once, for what only they can tell.
    compared
        Compares them again, with the records if they are files that this machine reads; called at
        most once.
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
        closed: bool,
        listed: Pairs,
        records: Callable[[], tuple[Records, Records]],
        compared: Callable[[tuple[Records, Records] | None], PairSource],
    ) -> None:
        self.fields: Sequence[Field] = tuple(fields)
        self.scope, self.tie_keys = scope, tie_keys
        self.one_file = scope.one_file
        self.kind, self.id_types, self.copies = kind, id_types, copies
        self.closed, self.files = closed, None
        self.remote = any(given["kind"] == "spark" for given in description.inputs)
        self.workers: int | Workers = os.cpu_count() or 1
        self.memory = None
        self._listed = listed
        self._ids, self._counts, self._description = ids, counts, description
        self._read, self._compare = records, compared

    @cached_property
    def _records(self) -> tuple[Records, Records]:
        return self._read()

    @cached_property
    def _files(self) -> PairSource:
        return self._compare(None if self.remote else self._records)

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
        return self._files.levels_of(a, b) if at is None else self._listed.levels[at]

    def _place(self, wanted: Ints) -> Ints | None:
        """Where pairs are among those listed; None if one of them is not."""
        if not len(self._listed):
            return None
        order, numbers = self._in_order
        at = np.minimum(np.searchsorted(numbers, wanted), len(numbers) - 1)
        return order[at] if (numbers[at] == wanted).all() else None

    @cached_property
    def _in_order(self) -> tuple[Ints, Ints]:
        numbers = self._listed.numbered(self.n_b)
        order = np.argsort(numbers)
        return order, numbers[order]

    # --- known from the files alone ------------------------------------------------------------

    def pattern_counts(
        self, fields: Sequence[int] | None = None, rows: Ints | None = None
    ) -> Patterns:
        return self._files.pattern_counts(fields, rows)

    def pairs_above(self, weights: Floats, threshold: float, *, in_files: bool = False) -> Pairs:
        return self._files.pairs_above(weights, threshold, in_files=in_files)

    def together(self, rows: tuple[Ints, Ints]) -> PairSource | None:
        return self._files.together(rows)

    def join_sizes(self) -> Ints:
        return self._files.join_sizes()

    def draw_pairs(self, field: int, level: int, uniforms: Floats) -> tuple[Rows, Rows]:
        return self._files.draw_pairs(field, level, uniforms)

    def cells(self, side: int, rows: Sequence[int]) -> list[dict[str, str | None]]:
        if self.remote:
            return self._files.cells(side, rows)
        records = self._records[side]
        return [{f.name: records.text(f.columns[side], row) for f in self.fields} for row in rows]
