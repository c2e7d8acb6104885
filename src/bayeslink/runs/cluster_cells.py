"""What the records of a deduplication hold, by the rows of its table of clusters."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from bayeslink.data.locations import is_path
from bayeslink.data.records import Records
from bayeslink.errors import BayeslinkError, InputError
from bayeslink.runs.cluster_tables import by_person
from bayeslink.runs.dedupe_opening import SavedDedupe
from bayeslink.runs.dedupe_run import DedupeRun
from bayeslink.runs.inputs import Input, columns_of

NOT_THERE = "the input file is not there as it was, or has changed since the run."

Cells = dict[str, str | None]  # of a record, by field
CellsOf = Callable[[Sequence[int]], list[Cells]]


def cells_of(run: DedupeRun) -> CellsOf | str:
    """A function that gives the cells of these rows of clusters.parquet; why not, if it cannot."""
    if not isinstance(run, SavedDedupe):
        rows = by_person(run.table.append_column("_row", [np.arange(len(run.table))]))["_row"]
        of_file = rows.to_numpy()
        return lambda wanted: run.pairs.cells(0, [int(of_file[row]) for row in wanted])
    try:
        records = _read(run)
        columns = {f.name: f.columns[0] for f in run.settings.fields or ()}
        names = {f["name"]: columns[f["name"]] for f in run.provenance()["fields"]}
    except (BayeslinkError, KeyError):  # whose words may name folders
        return NOT_THERE
    text = cache(lambda name, row: records.text(names[name], row))
    return lambda wanted: [{name: text(name, row) for name in names} for row in wanted]


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
