"""What the records of a deduplication hold, by the rows of its table of clusters."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bayeslink.data.locations import is_path
from bayeslink.data.records import Records, text_of
from bayeslink.errors import BayeslinkError, InputError
from bayeslink.many_settings import ManySettings
from bayeslink.runs.cluster_tables import by_person
from bayeslink.runs.dedupe_opening import SavedDedupe
from bayeslink.runs.dedupe_run import DedupeRun
from bayeslink.runs.inputs import Input, columns_of

NOT_THERE = "the input file is not there as it was, or has changed since the run."

NOT_SAVED = "the run was saved without the files' records (--no-people)."

Cells = dict[str, str | None]  # of a record, by field
CellsOf = Callable[[Sequence[int]], list[Cells]]


def cells_of(run: DedupeRun) -> CellsOf | str:
    """A function that gives the cells of these rows of clusters.parquet; why not, if it cannot."""
    if not isinstance(run, SavedDedupe):
        rows = by_person(run.table.append_column("_row", [np.arange(len(run.table))]))["_row"]
        of_file = rows.to_numpy()
        return lambda wanted: run.pairs.cells(0, [int(of_file[row]) for row in wanted])
    several = "lists" in run.summary()
    try:
        columns = _of_files(run) if several else _read(run).columns
        used = {f.name: f.columns[0] for f in run.settings.fields or ()}
        names = {f["name"]: used[f["name"]] for f in run.provenance()["fields"]}
    except (BayeslinkError, KeyError):  # whose words may name folders
        return NOT_SAVED if several else NOT_THERE
    return lambda wanted: [
        {name: text_of(columns, own, row) for name, own in names.items()} for row in wanted
    ]


def _of_files(run: SavedDedupe) -> dict[str, Any]:
    """The columns that were compared, by the names of the first file, from the saved files."""
    clusters, settings = run.as_table("clusters"), run.settings
    assert isinstance(settings, ManySettings)
    wanted, parts = columns_of(settings.fields or (), 0), []
    file_of = np.asarray(clusters["file"].to_pylist())
    places = []
    for name in run.summary()["lists"]["names"]:
        own = np.flatnonzero(file_of == name)
        table = run.as_table(f"with_entities_{name}")
        called = {first: c for c, first in dict(settings.columns.get(name, {})).items()}
        ids = clusters["id"].take(pa.array(own)).combine_chunks()
        rows = _rows_by_id(table, ids)
        missing = pa.array([*settings.read[0].missing, ""], pa.large_string())
        parts.append([_filled(table, called.get(c, c), missing).take(rows) for c in wanted])
        places.append(own)
    order = pa.array(np.argsort(np.concatenate(places)))
    return {
        c: pa.concat_arrays([part[k] for part in parts]).take(order) for k, c in enumerate(wanted)
    }


def _filled(table: pa.Table, name: str, missing: pa.Array) -> pa.Array:
    """A column as text, null where nothing is said."""
    if name not in table.column_names:
        return pa.nulls(len(table), pa.large_string())
    texts = table[name].cast(pa.large_string()).combine_chunks()
    none = pc.is_in(pc.utf8_trim_whitespace(texts), value_set=missing)
    return pc.if_else(none, pa.scalar(None, pa.large_string()), texts)


def _rows_by_id(table: pa.Table, ids: pa.Array) -> pa.Array:
    """Where the records with these ids are: by the column that has them, else by their numbers."""
    ids = ids.cast(pa.large_string())
    for name in sorted(table.column_names, key=lambda name: name != "id"):
        try:
            at = pc.index_in(ids, table[name].cast(pa.large_string()).combine_chunks())
        except pa.ArrowException:  # a list, say
            continue
        if not at.null_count and len(at.unique()) == len(table):
            return at
    numbers = pa.array(map(str, range(1, len(table) + 1)), pa.large_string())
    at = pc.index_in(ids, numbers)
    if at.null_count:
        raise InputError(NOT_SAVED)
    return at


def _read(run: SavedDedupe) -> Records:
    """The columns that were compared, of a run that was opened."""
    settings, told = run.settings, run.provenance()["inputs"]
    source = run.sources[0] if run.sources else settings.a
    if source is None or len(told) != 1 or told[0]["kind"] == "spark":
        raise InputError(NOT_THERE)
    if is_path(source):
        source = os.path.join(settings.started_in, source)
    given = Input(
        source=source,
        options=settings.read[0],
        needed=(),
        id=settings.id,
        ids=run.as_table("clusters")["id"].combine_chunks(),
        side="A",
        label=told[0]["label"],
        kind=told[0]["kind"],
        sha256=told[0]["sha256"],
    )
    return given.records(columns_of(settings.fields or (), 0))
