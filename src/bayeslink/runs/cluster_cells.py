"""What the records of a deduplication hold, by the rows of its table of clusters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bayeslink.comparing.column_parts import columns_in, values_of
from bayeslink.data.records import Records, text_of
from bayeslink.errors import BayeslinkError, InputError, NoColumnError
from bayeslink.many_settings import ManySettings
from bayeslink.runs.cluster_tables import by_person
from bayeslink.runs.dedupe_json import LISTS
from bayeslink.runs.dedupe_opening import SavedDedupe
from bayeslink.runs.dedupe_run import DedupeRun
from bayeslink.runs.inputs import Input, columns_of, placed
from bayeslink.runs.people import rows_by_id

NOT_THERE = (
    "the input is not there as it was, and the run was saved without its records (--no-people)."
)

Cells = dict[str, str | None]  # of a record, by field
CellsOf = Callable[[Sequence[int]], list[Cells]]


def cells_of(run: DedupeRun, further: Sequence[str] = ()) -> CellsOf | str:
    """A function that gives the cells of these rows of clusters.parquet; why not, if it cannot.

    `further` are columns that a saved run did not compare; one that is not there is refused.
    """
    if not isinstance(run, SavedDedupe):
        rows = by_person(run.table.append_column("_row", [np.arange(len(run.table))]))["_row"]
        of_file = rows.to_numpy()
        return lambda wanted: run.pairs.cells(0, [int(of_file[row]) for row in wanted])
    try:
        columns = _columns(run, further)
        used = {f.name: f.columns[0] for f in run.settings.fields or ()}
        names = {f["name"]: used[f["name"]] for f in run.provenance()["fields"]}
        names |= {name: (name,) for name in further}
    except NoColumnError:
        raise
    except (BayeslinkError, KeyError, pa.ArrowException):  # whose words may name folders
        if run.sources:  # a file that was named is not passed over
            raise
        return NOT_THERE
    return lambda wanted: [
        {name: text_of(columns, own, row) for name, own in names.items()} for row in wanted
    ]


def _columns(run: SavedDedupe, further: Sequence[str]) -> Mapping[str, pa.Array]:
    """What was compared, by the rows of clusters: of the input, or as it was saved with the run."""
    wanted = [*dict.fromkeys([*columns_of(run.settings.fields or (), 0), *further])]
    names = run.summary().get(LISTS, {}).get("names", ())
    if not names:
        try:
            return _read(run, wanted).columns
        except BayeslinkError:
            if run.sources:
                raise
            return _of_files(run, {"": "with_entities"}, wanted, further)
    tables = {name: f"with_entities_{name}" for name in names}
    return _of_files(run, tables, wanted, further)


def _of_files(
    run: SavedDedupe, tables: Mapping[str, str], wanted: Sequence[str], further: Sequence[str]
) -> dict[str, pa.Array]:
    """These columns, by the names of the first file, from the saved files.

    A file may lack a column. One of `further` that all lack is refused.
    """
    clusters, settings = run.as_table("clusters"), run.settings
    renamed = (isinstance(settings, ManySettings) and settings.columns) or {}
    missing = pa.array([*settings.read[0].missing, ""], pa.large_string())
    file_of = clusters["file"].to_pylist() if "file" in clusters.column_names else [""]
    parts, places, there = [], [], set[str]()
    for file, name in tables.items():
        own = np.flatnonzero(np.broadcast_to(np.asarray(file_of), len(clusters)) == file)
        table = run.as_table(name)
        called = {first: c for c, first in renamed.get(file, {}).items()}
        there |= {c for c in wanted if _is_there(called.get(c, c), table)}
        _, rows = rows_by_id(table, clusters["id"].take(pa.array(own)).combine_chunks())
        parts.append([_filled(table, called.get(c, c), missing).take(rows) for c in wanted])
        places.append(own)
    for name in further:
        if name not in there:
            raise NoColumnError(
                f"there is no column {name!r} in what the run has saved. Name a column of the "
                "file (of several, as the first calls it), or leave --show out.",
                name,
            )
    order = pa.array(np.argsort(np.concatenate(places)))
    return {
        c: pa.concat_arrays([part[k] for part in parts]).take(order) for k, c in enumerate(wanted)
    }


def _filled(table: pa.Table, name: str, missing: pa.Array) -> pa.Array:
    """A column as text, null where nothing is said."""
    if not _is_there(name, table):
        return pa.nulls(len(table), pa.large_string())
    given = {}
    for column in columns_in(name, table.column_names):
        texts = table[column].cast(pa.large_string()).combine_chunks()
        none = pc.is_in(pc.utf8_trim_whitespace(texts), value_set=missing)
        given[column] = pc.if_else(none, pa.scalar(None, pa.large_string()), texts)
    return values_of(given, name)


def _is_there(name: str, table: pa.Table) -> bool:
    return {*columns_in(name, table.column_names)} <= {*table.column_names}


def _read(run: SavedDedupe, wanted: Sequence[str]) -> Records:
    """These columns of the input of a run that was opened."""
    settings, told = run.settings, run.provenance()["inputs"]
    source = run.sources[0] if run.sources else settings.a
    if source is None or len(told) != 1:
        raise InputError(NOT_THERE)
    source = placed(source, settings.started_in, told[0]["kind"])
    given = Input(
        source=source,
        options=settings.read[0],
        needed=(),
        id=settings.id,
        ids=run.as_table("clusters")["id"].combine_chunks(),
        side="A",
        label=told[0]["label"],
        kind=told[0]["kind"],
        sha256=None if told[0]["kind"] == "spark" else told[0]["sha256"],  # of its own kind
    )
    return given.records(wanted)
