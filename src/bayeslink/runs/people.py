"""The file with a column entity_id, and the file with a row a person."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bayeslink.data.cell_texts import TEXT
from bayeslink.dedupe_settings import REPRESENTATIVE, checked_keep, keep_rules
from bayeslink.errors import InputError, SettingsError
from bayeslink.pairs.pair_tables import in_kind
from bayeslink.pairs.source import Ints
from bayeslink.runs.cluster_tables import with_own_ids
from bayeslink.runs.dedupe_json import LISTS
from bayeslink.runs.inputs import Input, inputs_of
from bayeslink.runs.kept_values import Keep, People, check_keep
from bayeslink.runs.row_files import RowWriter
from bayeslink.runs.spark_tables import frame_of, with_column, write_frames

if TYPE_CHECKING:
    from bayeslink.runs.dedupe_run import DedupeRun

ENTITY, RECORDS = "entity_id", "records"


def table_of_entities(files: Sequence[str], file: str | None) -> str:
    """The name of the table of a file's records with their persons."""
    if not files:
        if file is not None:
            raise SettingsError("there is one file, which has no name here. Leave it out.")
        return "with_entities"
    if file not in files:
        raise SettingsError(
            f"say which file: with_entities({files[0]!r}). The files are {', '.join(files)}; got "
            f"{file!r}."
        )
    return f"with_entities_{file}"


def given_files(run: DedupeRun) -> list[tuple[str, Input, Ints]]:
    """Of each input: the name of its table of entities, the input, and the rows of its records."""
    if run.stack is None:
        (given,) = inputs_of(run, sides=(0,))
        return [(table_of_entities((), None), given, np.arange(given.n))]
    names = run.stack.names
    return [
        (table_of_entities(names, name), given, run.stack.rows(k))
        for k, (name, given) in enumerate(zip(names, run.stack.inputs, strict=True))
    ]


def with_entities(run: DedupeRun, file: str | None = None) -> Any:
    """All records of a file as they came, each with the id of its person, in the caller's kind."""
    wanted = table_of_entities(run.stack.names if run.stack else (), file)
    for name, given, own in given_files(run):
        if name != wanted:
            continue
        entities = _entities(run).take(pa.array(own))
        if given.kind == "spark":
            frame = frame_of(given)
            (column,) = _named_apart([ENTITY], frame.columns)
            return with_column(given, frame, column, entities)
        return in_kind(_with_entity(given.whole(), entities), run.pairs.kind)
    raise AssertionError(wanted)


def write_people_there(run: DedupeRun, where: bool | str) -> list[str]:
    """with_entities, by Spark's executors, to the place that `where` is; what is not written."""
    if not isinstance(where, str):
        return [
            "with_entities and people are not among the results, as Spark has the records: say "
            "where its executors are to write with_entities (--people-to, "
            'save(people="s3://…")), or take run.with_entities().'
        ]
    names = run.stack.names if run.stack else (None,)
    files = {table_of_entities(run.stack.names if run.stack else (), n): n for n in names}
    write_frames({name: with_entities(run, n) for name, n in files.items()}, where)
    return [
        "people is not among the results, as Spark has the records: group with_entities by "
        "entity_id there."
    ]


def write_with_entities(run: DedupeRun, given: Input, own: Ints, target: RowWriter) -> None:
    """The same to a file, some rows at a time."""
    entities = _entities(run).take(pa.array(own))
    for rows, table in given.tables():
        target.write(_with_entity(table, entities.take(pa.array(rows))))


def people_table(run: DedupeRun, keep: Keep | None = None) -> pa.Table:
    """One row a person, in the order of entity_id."""
    if run.pairs.remote:
        raise InputError(
            "people() makes a row a person on this machine, and Spark has the records. Take "
            "run.with_entities(), a DataFrame, and group it by entity_id."
        )
    keep = run.settings.keep if keep is None else checked_keep(keep)
    rows = Rows(_entities(run), run.decision.cluster, run.settings.read[0].missing)
    if run.stack is not None:
        stack = run.stack
        rows = replace(rows, names=stack.names, file=stack.files.of, own_ids=stack.own_ids())
        return people_of(stack.whole(), rows, keep, None)
    (given,) = inputs_of(run, sides=(0,))
    rows = replace(rows, missing=given.options.missing)
    return people_of(given.whole(), rows, keep, given.id)


def people_again(run: DedupeRun, keep: Keep, read: Callable[[str], pa.Table]) -> pa.Table:
    """The same of a run that was opened, from its files as they were saved with entity_id."""
    keep, clusters = checked_keep(keep), run.as_table("clusters")
    several = "file" in clusters.column_names
    names = tuple(run.summary()[LISTS]["names"]) if several else ()
    file_of = np.array(clusters["file"].to_pylist() if several else [None] * len(clusters))
    renamed = (getattr(run.settings, "columns", None) or {}) if several else {}
    tables, entities, places, start = [], [], np.zeros(len(clusters), np.int64), 0
    for name in names or (None,):
        table = read(table_of_entities(names, name))
        own = np.flatnonzero(file_of == name)
        ids, at = rows_by_id(table, clusters["id"].take(pa.array(own)).combine_chunks())
        entities.append(table.column(table.num_columns - 1).combine_chunks())
        table = table.remove_column(table.num_columns - 1)
        called = renamed.get(name, {})
        if several and ids is not None:
            table = table.drop_columns([ids])
        tables.append(table.rename_columns([called.get(c, c) for c in table.column_names]))
        places[own] = start + at.to_numpy()
        start += len(table)
    by_row = np.argsort(places)
    entity = clusters["entity_id"].combine_chunks().dictionary_encode().indices.to_numpy()
    face = np.zeros(int(entity.max(initial=-1)) + 1, np.int64)
    at_face = clusters["representative"].to_numpy()
    face[entity[at_face]] = places[at_face]
    rows = Rows(pa.concat_arrays(entities), face[entity[by_row]], run.settings.read[0].missing)
    if several:
        number = {name: k for k, name in enumerate(names)}
        file = np.array([number[name] for name in file_of[by_row]])
        own_ids = clusters["id"].take(pa.array(by_row)).combine_chunks()
        rows = replace(rows, names=names, file=file, own_ids=own_ids)
    return people_of(below_each_other(tables), rows, keep, None if several else ids)


@dataclass(frozen=True, slots=True)
class Rows:
    """Of each record, whose it is; of several files, also where it comes from."""

    entities: pa.Array
    face: Ints  # the row that represents its person
    missing: Sequence[str]  # words that stand for nothing
    names: tuple[str, ...] = ()
    file: Ints | None = None
    own_ids: pa.Array | None = None

    def by_file(self) -> dict[str, pa.Array]:
        """For each file, the ids of its records; null in the rows of other files."""
        if self.own_ids is None:
            return {}
        ids, none = self.own_ids.cast(pa.string()), pa.scalar(None, pa.string())
        return {
            name: pc.if_else(pa.array(self.file == k), ids, none)
            for k, name in enumerate(self.names)
        }


def below_each_other(tables: Sequence[pa.Table]) -> pa.Table:
    """Tables as one. A column keeps its type where all agree on it, and is text elsewhere."""
    columns: dict[str, pa.ChunkedArray] = {}
    for name in dict.fromkeys(name for table in tables for name in table.column_names):
        types = {table[name].type for table in tables if name in table.column_names}
        one = types.pop() if len(types) == 1 else TEXT
        parts = [
            table[name].cast(one).combine_chunks()
            if name in table.column_names
            else pa.nulls(len(table), one)
            for table in tables
        ]
        columns[name] = pa.chunked_array([part for part in parts if len(part)], one)
    return pa.table(columns)


def rows_by_id(table: pa.Table, ids: pa.Array) -> tuple[str | None, pa.Array]:
    """The column that has all these ids, else None: the numbers of rows; and where they are."""
    ids = ids.cast(pa.large_string())
    for name in sorted(table.column_names, key=lambda name: name != "id"):
        try:
            at = pc.index_in(ids, table[name].cast(pa.large_string()).combine_chunks())
        except pa.ArrowException:  # a list, say
            continue
        if not at.null_count and len(at.unique()) == len(table):
            return name, at
    numbers = pa.array(map(str, range(1, len(table) + 1)), pa.large_string())
    at = pc.index_in(ids, numbers)
    if at.null_count:
        raise InputError(
            "the records that the run has saved are not those of its clusters. Find the people "
            "again."
        )
    return None, at


def people_of(table: pa.Table, rows: Rows, keep: Keep, ids: str | None) -> pa.Table:
    """One row a person. Of several files, what the representative lacks is another record's."""
    several, face = bool(rows.names), rows.face
    check_keep(keep, table.column_names, rows.names, ids)
    by_file = rows.by_file()
    faces = np.unique(face)
    faces = faces[pc.sort_indices(rows.entities.take(pa.array(faces))).to_numpy()]
    person = np.empty(len(face), np.int64)
    person[faces] = np.arange(len(faces))
    person = person[face]
    names = _named_apart([ENTITY, RECORDS, *by_file], table.column_names)
    columns = [rows.entities.take(pa.array(faces))]
    columns += [pa.array(np.bincount(person, minlength=len(faces)))]
    columns += [_joined(column, person, len(faces)) for column in by_file.values()]
    files = (rows.names, rows.file) if several else ()
    people = People(person, faces, rows.missing, *files)
    everywhere, by_column = keep_rules(keep)
    for name in table.column_names:
        rule = by_column.get(name, everywhere)
        as_is = name == ids or (rule.kind == REPRESENTATIVE and not several)
        chosen = faces if as_is else people.rows(table, name, rule)
        columns.append(table[name].take(pa.array(chosen)))
    return pa.table(columns, [*names, *table.column_names])


def _joined(ids: pa.Array, person: Ints, n: int) -> pa.Array:
    """The ids of each person in one file, with "; " between them; null of none."""
    there = np.flatnonzero(ids.is_valid().to_numpy(zero_copy_only=False))
    rank = pc.rank(ids).to_numpy()  # by id, whatever the order of rows
    order = there[np.lexsort((rank[there], person[there]))]
    ends = np.concatenate([[0], np.cumsum(np.bincount(person[order], minlength=n))])
    lists = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), ids.take(pa.array(order)))
    none = pa.array(np.diff(ends) == 0)
    return pc.if_else(none, pa.scalar(None, pa.string()), pc.binary_join(lists, "; "))


def _entities(run: DedupeRun) -> pa.Array:
    return with_own_ids(run.table, run.pairs)[ENTITY].combine_chunks()


def _with_entity(table: pa.Table, entities: pa.Array) -> pa.Table:
    (name,) = _named_apart([ENTITY], table.column_names)
    return table.append_column(name, entities)


def _named_apart(new: Sequence[str], taken: Sequence[str]) -> list[str]:
    """Names that the file does not have; letter case does not tell two apart."""
    known, found = {*map(str.casefold, taken)}, []
    for name in new:
        while name.casefold() in known:
            name += "_"
        found.append(name)
    return found
