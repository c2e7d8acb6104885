"""The two inputs of a run, read again: the one place where that is done.

A run has read the columns that it compares. Other columns, values for people to read and pairs that
were not listed are read when somebody asks; an input that is not what the run read is refused.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bayeslink.comparing.fields import Field
from bayeslink.data.cell_texts import as_text, from_pandas
from bayeslink.data.checksums import require_same
from bayeslink.data.locations import from_folder_on, is_path
from bayeslink.data.read_options import ReadOptions
from bayeslink.data.records import Records, read_records
from bayeslink.data.row_batches import whole_tables
from bayeslink.engines.compare import compare, compare_records
from bayeslink.errors import ChangedInputError, InputError
from bayeslink.model.structure import DEPENDENT
from bayeslink.pairs.source import Ints, PairSource

if TYPE_CHECKING:
    from bayeslink.runs.dedupe_run import DedupeRun
    from bayeslink.runs.run import Run


@dataclass(frozen=True, slots=True)
class Input:
    """One of the two inputs of a run."""

    source: Any  # a path or a frame
    options: ReadOptions
    needed: tuple[str, ...]  # columns that the run used
    id: str | None  # the id column; None: rows are numbered
    ids: pa.Array  # of the records that the run saw, by row
    side: str
    label: str  # how messages call it
    kind: str
    sha256: str | None  # at the first reading; None of a table or a database over a network

    @property
    def n(self) -> int:
        return len(self.ids)

    @property
    def where(self) -> str:
        return f"input {self.side}, {self.label}"

    def records(self, columns: Sequence[str]) -> Records:
        """These columns of all records, as text, by their rows in the run."""
        with set_aside_elsewhere(self.options) as options:
            found = read_records(
                self.source, id=self.id, columns=columns, options=options, side=self.side
            )
        require_same(found.sha256, self.sha256, self.where)
        if found.ids.equals(self.ids):
            return found
        at = found.rows_of(self.ids)
        if len(found) != self.n or at.null_count:
            raise _changed(self.where, self.n)
        return found.take(at)

    def tables(self) -> Iterator[tuple[Ints, pa.Table]]:
        """All records, some at a time, each with its row in the run; refused if others are there.

        A database may give its rows in another order each time, so ids tell which is which.
        """
        n = 0
        for table in whole_tables(self.source, self.needed, self.options, self.where, self.sha256):
            rows = np.arange(n, n + len(table))
            if self.id is not None:
                texts = as_text(table[self.id], self.id, self.where)
                if not texts.equals(self.ids.slice(n, len(table))):
                    found = pc.index_in(texts, self.ids)  # makes an index of all ids each time
                    rows = pc.fill_null(found, -1).to_numpy().astype(np.int64)
            n += len(table)
            if n > self.n or (rows < 0).any():
                break
            yield rows, table
        if n != self.n:
            raise _changed(self.where, self.n)

    def whole(self) -> pa.Table:
        """All records by their rows in the run."""
        rows, tables = zip(*self.tables(), strict=True)
        table, order = pa.concat_tables(tables), np.argsort(np.concatenate(rows))
        return table if (np.diff(order) == 1).all() else table.take(order)

    def pandas(self) -> Any:
        """All records as a pandas frame; one that was given, as it is."""
        import pandas

        if isinstance(self.source, pandas.DataFrame):
            if not self._holds_the_same(self.source):
                raise _changed(self.where, self.n)
            return self.source.reset_index(drop=True)
        return self.whole().to_pandas()

    def _holds_the_same(self, frame: Any) -> bool:
        if self.id is None or len(frame) != self.n:
            return len(frame) == self.n
        return as_text(
            from_pandas(frame[self.id], self.id, self.where), self.id, self.where
        ).equals(self.ids)


def inputs_of(run: Run | DedupeRun, sides: Sequence[int] = (0, 1)) -> list[Input]:
    """Inputs of a run, to be read again; both unless told otherwise."""
    if run.sources is None:
        raise InputError(
            "the pairs of this run came without their records, so there is nothing to join. "
            "Merge run.links with your tables by id_a and id_b."
        )
    settings, described, found = run.settings, run.pairs.describe().inputs, []
    ids = settings.id if isinstance(settings.id, tuple) else (settings.id,) * 2
    blocks = [(names,) * 2 if isinstance(names, str) else names for names in settings.block]
    for side in sides:
        source = run.sources[side]
        columns = columns_of(settings.fields, side)
        needed = dict.fromkeys([ids[side], *columns, *(names[side] for names in blocks)])
        source = placed(source, settings.started_in, described[side]["kind"])
        if run.directory is not None:
            _require_there(source, side)
        n, given = (run.pairs.n_a, run.pairs.n_b)[side], described[side]
        found.append(
            Input(
                source=source,
                options=settings.read[side],
                needed=tuple(name for name in needed if name is not None),
                id=ids[side],
                ids=run.pairs.ids(side, np.arange(n, dtype=np.int32)),
                side="AB"[side],
                label=given["label"],
                kind=given["kind"],
                sha256=None if run.pairs.remote else given["sha256"],  # Spark has one of its own
            )
        )
    return found


def placed(source: Any, folder: str, kind: str) -> Any:
    """An input whose paths lead from a folder; what Spark reads has names of its own."""
    return source if kind == "spark" else from_folder_on(folder, source)


def columns_of(fields: Sequence[Field], side: int) -> list[str]:
    """The columns that fields use of one input, each once."""
    return [*dict.fromkeys(name for f in fields for name in f.columns[side])]


def records_again(run: Run, fields: Sequence[Field]) -> tuple[Records, Records]:
    """The records of both inputs, with the columns of these fields."""
    a, b = (given.records(columns_of(fields, side)) for side, given in enumerate(inputs_of(run)))
    return a, b


def compared_again(run: Run, records: tuple[Records, Records] | None) -> PairSource:
    """The pairs of a run, compared again: from these records, or by Spark, which reads its own."""
    settings = run.settings
    how: dict[str, Any] = {
        "block": settings.block,
        "swapped_names": settings.structure == DEPENDENT,
    }
    if records is None:
        a, b = (given.source for given in inputs_of(run))
        found = compare(a, b, settings.fields, id=settings.id, engine=settings.engine, **how)
    else:
        found = compare_records(records, settings.fields, **how)
    for side, n in enumerate((run.pairs.n_a, run.pairs.n_b)):
        rows = np.arange(n, dtype=np.int32)
        same = n == (found.n_a, found.n_b)[side]
        if not same or not found.ids(side, rows).equals(run.pairs.ids(side, rows)):
            raise _changed(f"input {'AB'[side]}", n)
    if [f.labels for f in found.fields] != [f.labels for f in run.pairs.fields]:
        raise ChangedInputError(
            "the files compare differently from when they were linked: they have changed. "
            "Give them as they were, or link again."
        )
    return found


def _changed(where: str, n: int) -> ChangedInputError:
    return ChangedInputError(
        f"{where}, no longer holds the {n:,} records that were linked. Give it as it was, or link "
        "again."
    )


def _require_there(source: Any, side: int) -> None:
    """Refuse an input that a run, opened from its directory, does not have."""
    name = "ab"[side]
    give = f"Give it: --{name} (open_run(…, {name}=…))."
    if source is None:
        raise InputError(
            f"input {name.upper()} of this run came from Python, or from a path that is not UTF-8, "
            f"and is not in its directory. {give}"
        )
    if is_path(source) and not os.path.exists(source):
        raise InputError(f"input {name.upper()} of this run is not at {source}. {give}")


@contextmanager
def set_aside_elsewhere(options: ReadOptions) -> Iterator[ReadOptions]:
    """How an input is read. The run has set bad rows aside already: now they go to scratch."""
    with tempfile.TemporaryDirectory() as scratch:
        yield replace(options, quarantine=options.quarantine and f"{scratch}/rows")
