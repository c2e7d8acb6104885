"""The PairSource of one machine: level tables in memory, pairs scanned by compiled code."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bayeslink.comparing.dictionaries import build_dictionary
from bayeslink.comparing.fields import Field
from bayeslink.data.id_pairs import id_pairs
from bayeslink.data.records import Records
from bayeslink.engines.counts import count_levels, count_patterns
from bayeslink.engines.deferred import (
    describe_sample,
    estimate_levels,
    find_open,
    open_bounds,
    open_fields,
    settle,
    upper_weights,
)
from bayeslink.engines.joining import find_above
from bayeslink.engines.keys import block_keys, tie_keys
from bayeslink.engines.plan import SearchPlan, describe
from bayeslink.engines.search import Problem, choose_caps, make_joins
from bayeslink.engines.tables import Tables
from bayeslink.errors import InputError
from bayeslink.memory import Memory
from bayeslink.pairs.source import Floats, LevelCounts, Pairs, Patterns


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
        memory: Memory | None = None,
    ) -> None:
        self.memory = Memory() if memory is None else memory
        self.records = (a, b)
        self.fields: Sequence[Field] = tuple(fields)
        self.threads = threads or os.cpu_count() or 1
        self.dictionaries = [
            build_dictionary(f, a, b, self.threads, self.memory) for f in self.fields
        ]
        self.open_fields = open_fields(self.dictionaries)
        self.tie_keys = tie_keys(a, b, self.fields)
        self.to_caller = to_caller
        self._block_of = block_keys(a, b, block)
        self.tables = Tables(self.dictionaries, *self._block_of, self.memory)
        self.scope = self.tables.scope
        self.last_plan: SearchPlan | None = None  # of the search done last

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
        return estimate_levels(self.dictionaries, self.tables, self._told_counts, self.threads)

    def level_counts(self) -> LevelCounts:
        return self._level_counts

    def notes(self) -> list[str]:
        """What the level counts do not say exactly."""
        return describe_sample(self.dictionaries, self.level_counts())

    @cached_property
    def _pattern_counts(self) -> Patterns:
        counts = self.level_counts().counts
        open_levels = self.levels_of if self.open_fields else None
        return count_patterns(
            self.tables, self.fields, counts, self.pairs_above, self.threads, open_levels
        )

    def pattern_counts(self) -> Patterns:
        return self._pattern_counts

    def pairs_above(self, weights: Floats, threshold: float) -> Pairs:
        problem = self._problem(weights, threshold)
        if self.open_fields:
            pairs, self.last_plan = find_open(
                self.tables, problem, self.dictionaries, weights, self._told_counts, self.threads
            )
        else:
            pairs, self.last_plan = find_above(self.tables, problem, self.threads)
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
            n_a=self.n_a,
            n_pairs=self.n_pairs,
            unions=self.tables.classes[2],
        )

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

    def table(self, pairs: Pairs, columns: dict[str, Any]) -> Any:
        return self.to_caller(self.arrow_table(pairs, columns))

    def arrow_table(self, pairs: Pairs, columns: dict[str, Any]) -> pa.Table:
        ids = {
            "id_a": self.records[0].ids.take(pa.array(pairs.a)),
            "id_b": self.records[1].ids.take(pa.array(pairs.b)),
        }
        levels = {f"gamma_{f.name}": pairs.levels[:, j] for j, f in enumerate(self.fields)}
        return pa.table({**ids, **columns, **levels})
