"""The PairSource of one machine: level tables in memory, pairs scanned by compiled code."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bayeslink.checkpoints import Checkpoints
from bayeslink.comparing.dates import said
from bayeslink.comparing.dictionaries import build_dictionary, dictionary_of, joined_codes
from bayeslink.comparing.fields import Field
from bayeslink.data.records import Records
from bayeslink.engines.arrays import Tables
from bayeslink.engines.blocking_key import block_keys, finer
from bayeslink.engines.copies import copies
from bayeslink.engines.drawing import Joins
from bayeslink.engines.finding import ordered, rows_named
from bayeslink.engines.input_checks import input_warnings
from bayeslink.engines.joining import find_above
from bayeslink.engines.journal import remembered
from bayeslink.engines.level_counts import count_levels
from bayeslink.engines.open_levels import (
    describe_sample,
    estimate_levels,
    find_open,
    open_bounds,
    open_fields,
    open_levels,
    settle,
    upper_weights,
)
from bayeslink.engines.pattern_counts import count_patterns
from bayeslink.engines.plan import SearchPlan, describe
from bayeslink.engines.search import Problem, choose_caps, make_joins
from bayeslink.engines.tie_keys import tie_keys
from bayeslink.memory import Memory
from bayeslink.pairs.base import HeldHere
from bayeslink.pairs.source import Description, Floats, Ints, LevelCounts, Pairs, Patterns
from bayeslink.threads import Workers

_OF_DATES = ("formats", "orders", "told")  # options of a date field that its cells have told


class LocalPairs(HeldHere):
    """All pairs of two files in scope, or of one (b is None), here. Made by `compare`."""

    def __init__(
        self,
        a: Records,
        b: Records | None,
        fields: Sequence[Field],
        block: Sequence[Field] = (),
        workers: int | Workers | None = None,
        memory: Memory | None = None,
        checkpoints: Checkpoints | None = None,
        engine: str = "local",
    ) -> None:
        self._checkpoints = checkpoints
        self.one_file = b is None
        b = a if b is None else b
        self.memory = Memory() if memory is None else memory
        self.records = (a, b)
        self.workers: int | Workers = workers or os.cpu_count() or 1
        self.engine = engine  # who does the work: "local", this machine; "spark"
        self._given = tuple(fields)  # with what the values are to tell left open
        self.dictionaries = [
            build_dictionary(f, a, b, self.workers, self.memory, checkpoints) for f in fields
        ]
        self.fields: Sequence[Field] = tuple(d.field for d in self.dictionaries)
        self.open_fields = open_fields(self.dictionaries)
        self.tie_keys = tie_keys(a, b, self.fields)
        kinds = {a.kind, b.kind}
        self.closed, self.remote = False, "spark" in kinds
        self.files = None
        self.id_types = (a.id_type, b.id_type)
        self.kind = next((kind for kind in ("spark", "pandas", "polars") if kind in kinds), "arrow")
        self.block_of = block_keys(a, b, block)
        self.tables = Tables(self.dictionaries, *self.block_of, self.memory, self.one_file)
        self.scope = self.tables.scope
        self.last_plan: SearchPlan | None = None  # of the search done last
        self._patterns: dict[tuple[int, ...], Patterns] = {}  # by fields counted

    def within(self, groups: Ints) -> LocalPairs:
        """The pairs of one file within groups of records, −1 of those in none."""
        found = object.__new__(type(self))
        vars(found).update(vars(self))
        for name in ("copies", "_told_counts", "_level_counts", "_joins", "_warnings"):
            vars(found).pop(name, None)
        found._checkpoints, found._patterns, found.last_plan = None, {}, None
        block = finer(self.block_of[0], groups)
        found.block_of = block, block
        found.tables = self.tables.within(block)
        found.scope = found.tables.scope
        return found

    def together(self, rows: tuple[Ints, Ints]) -> LocalPairs | None:
        """Some records of A and of B as those of one file, compared in the same way.

        Levels that follow from the values may differ. None of one file, and where Spark reads.
        """
        if self.one_file or self.remote:
            return None
        found = object.__new__(type(self))
        vars(found).update(vars(self))
        for name in ("copies", "_told_counts", "_level_counts", "_joins", "_warnings"):
            vars(found).pop(name, None)
        found._checkpoints, found._patterns, found.last_plan = None, {}, None
        found.one_file, found.memory = True, Memory()
        found.dictionaries = []
        for field, d in zip(self._given, self.dictionaries, strict=True):
            both = joined_codes((d.a, d.b), rows)
            told = {k: v for k, v in d.field.options.items() if k in _OF_DATES}
            field = replace(field, options={**field.options, **told})
            how = (self.workers, found.memory)
            found.dictionaries.append(dictionary_of(field, both, both, *how))
        found.fields = tuple(d.field for d in found.dictionaries)
        found.open_fields = open_fields(found.dictionaries)
        keys, block = (
            np.concatenate([side[at] for side, at in zip(sides, rows, strict=True)])
            for sides in (self.tie_keys, self.block_of)
        )
        found.tie_keys, found.block_of = (keys, keys), (block, block)
        taken = [r.take(pa.array(at)) for r, at in zip(self.records, rows, strict=True)]
        ids = pa.concat_arrays([r.ids for r in taken])
        one = replace(taken[0], ids=ids, columns={}, _lines=None)
        found.records = (one, one)
        found.tables = Tables(found.dictionaries, block, block, found.memory, True)
        found.scope = found.tables.scope
        return found

    @cached_property
    def copies(self) -> tuple[Ints, Ints]:
        """Of each record of A and of B, the row of its first copy; see `engines.copies`."""
        return copies(self.dictionaries, self.block_of)

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
    def _told_counts(self) -> LevelCounts:
        """As the tables tell levels: pairs at open levels are counted at level 1."""
        return count_levels(self.tables, [f.n_levels for f in self.fields])

    @cached_property
    def _level_counts(self) -> LevelCounts:
        if not self.open_fields:
            return self._told_counts
        return estimate_levels(
            self.dictionaries, self.tables, self._told_counts, self.levels_of, self.workers
        )

    def level_counts(self) -> LevelCounts:
        return self._level_counts

    def pattern_counts(
        self, fields: Sequence[int] | None = None, rows: Ints | None = None
    ) -> Patterns:
        which = tuple(range(len(self.fields)) if fields is None else fields)
        if rows is not None or which not in self._patterns:
            counted = count_patterns(
                self.tables,
                self.fields,
                self.level_counts().counts,
                partial(self.pairs_above, in_files=True),
                self.workers,
                which=which,
                rows=None if rows is None else self._positions(rows),
                levels_of=self.levels_of if self.open_fields else None,
            )
            if rows is not None:
                return counted
            self._patterns[which] = counted
        return self._patterns[which]

    def _positions(self, rows: Ints) -> Ints:
        """Where records of A are in the order of the tables; those outside the scope are not."""
        position = np.full(self.n_a, -1)
        position[self.tables.order_a] = np.arange(len(self.tables.order_a))
        found = position[rows]
        return found[found >= 0]

    def pairs_above(self, weights: Floats, threshold: float, *, in_files: bool = False) -> Pairs:
        def search() -> tuple[Pairs, SearchPlan]:
            problem = self._problem(weights, threshold)
            if not self.open_fields:
                return find_above(self.tables, problem, self.workers, in_files)
            return find_open(
                self.tables,
                problem,
                self.dictionaries,
                weights,
                self._told_counts,
                self.workers,
                in_files,
            )

        asked = self._checkpoints, weights, threshold, in_files
        pairs, self.last_plan = remembered(*asked, search)
        return pairs

    def plan(self, weights: Floats, threshold: float) -> SearchPlan:
        """How `pairs_above` would go about it; `str()` of it is for people."""
        problem = self._problem(weights, threshold)
        caps = choose_caps(problem)
        plan = describe(problem, caps, make_joins(problem, caps))
        return replace(plan, bounds=open_bounds(self.dictionaries, weights))

    def _problem(self, weights: Floats, threshold: float) -> Problem:
        counts = self._told_counts.counts.astype(float)
        counts[:, 0] = 0
        upper = upper_weights(self.dictionaries, weights)
        return Problem(
            fields=self.fields,
            weights=np.ascontiguousarray(upper[:, : counts.shape[1]], np.float64),
            threshold=float(threshold),
            shares=counts / np.maximum(1, counts.sum(1, keepdims=True)),
            neighbours=self.tables.neighbours,
            neighbours_at=self.tables.neighbours_at[:, : counts.shape[1]],
            n_a=self.n_a,
            n_pairs=self.n_pairs,
            unions=self.tables.classes[2],
        )

    @cached_property
    def _joins(self) -> Joins:
        return Joins(self.dictionaries, self.tables, self.tie_keys, self.block_of)

    def join_sizes(self) -> Ints:
        return self._joins.sizes(self.level_counts().counts.shape[1])

    def draw_pairs(
        self, field: int, level: int, uniforms: Floats
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        return self._joins.draw(field, level, uniforms)

    def find(self, ids: Any) -> Pairs:
        a, b = rows_named(
            ids,
            [records.rows_of for records in self.records],
            [records.label for records in self.records],
            self.block_of,
        )
        if self.one_file:
            a, b = ordered(a, b)
        return Pairs(a, b, self.levels_of(a, b))

    def levels_of(self, a: NDArray[np.int32], b: NDArray[np.int32]) -> NDArray[np.uint8]:
        """Comparison vectors of given pairs of rows."""
        from bayeslink.kernels.search import levels_at

        t = self.tables
        levels = np.empty((len(a), len(self.fields)), np.uint8)
        for j, d in enumerate(self.dictionaries):
            x = d.a.codes[a]
            rows = np.where(x == len(d.a.values), -1, x + t.first_row[j]).astype(np.int32)
            slots = (d.b.codes[b] + t.base[j]).astype(np.int32)
            levels[:, j] = levels_at(
                rows, slots, int(t.base[j + 1]) - 1, t.indptr, t.slots, t.levels
            )
        settle(self.dictionaries, a, b, levels)
        return levels

    # --- what is said of them ------------------------------------------------------------------

    def ids(self, side: int, rows: NDArray[np.int32]) -> pa.Array:
        return self.records[side].ids.take(pa.array(rows))

    def cells(self, side: int, rows: Sequence[int]) -> list[dict[str, str | None]]:
        records = self.records[side]
        return [{f.name: records.text(f.columns[side], row) for f in self.fields} for row in rows]

    def describe(self) -> Description:
        counts = self.level_counts()
        return Description(
            engine=self.engine,
            inputs=tuple(records.told() for records in self._files),
            fields=tuple(
                {
                    "distinct": [len(d.a.values), len(d.b.values)],
                    "missing": [d.a.n_missing, d.b.n_missing],
                    "invalid": [d.a.n_invalid, d.b.n_invalid],
                    **open_levels(d, j, counts),
                }
                for j, d in enumerate(self.dictionaries)
            ),
            warnings=self._warnings,
            notes=(*self._dates_said(), *describe_sample(self.dictionaries, counts)),
            plan=self.last_plan,
            memory=self.memory.summary(),
            resources=str(self.memory),
        )

    def _dates_said(self) -> list[str]:
        notes = [said(f) for f in self.fields if f.kind == "date"]
        return [note for note in notes if note]

    @cached_property
    def _warnings(self) -> tuple[str, ...]:
        counts = self.level_counts().counts
        odd = input_warnings(self.dictionaries, self._files, counts)
        return (*self._file_warnings(), *odd)

    @property
    def _files(self) -> tuple[Records, ...]:
        return self.records[:1] if self.one_file else self.records

    def _file_warnings(self) -> Iterator[str]:
        a, b = self.records
        if not self.one_file and a.ids.equals(b.ids) and a.columns == b.columns:
            yield "A and B hold the same records: each of them finds itself."
        for d in self.dictionaries:
            for codes, records in zip((d.a, d.b), self._files, strict=False):
                if len(codes.values) == 0:
                    yield f"field {d.field.name!r} is missing in every record of {records.label}."
