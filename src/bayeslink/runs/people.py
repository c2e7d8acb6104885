"""The file with a column entity_id, and the file with a row a person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bayeslink.dedupe_settings import REPRESENTATIVE, checked_keep, keep_rules
from bayeslink.errors import SettingsError
from bayeslink.pairs.source import Ints
from bayeslink.runs.cluster_tables import with_own_ids
from bayeslink.runs.inputs import Input, inputs_of
from bayeslink.runs.kept_values import Keep, People, check_keep
from bayeslink.runs.row_files import RowWriter

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


def with_entities_table(run: DedupeRun, file: str | None = None) -> pa.Table:
    """All records of a file as they came, each with the id of its person."""
    wanted = table_of_entities(run.stack.names if run.stack else (), file)
    for name, given, own in given_files(run):
        if name == wanted:
            return _with_entity(given.whole(), _entities(run).take(pa.array(own)))
    raise AssertionError(wanted)


def write_with_entities(run: DedupeRun, given: Input, own: Ints, target: RowWriter) -> None:
    """The same to a file, some rows at a time."""
    entities = _entities(run).take(pa.array(own))
    for rows, table in given.tables():
        target.write(_with_entity(table, entities.take(pa.array(rows))))


def people_table(run: DedupeRun, keep: Keep | None = None) -> pa.Table:
    """One row a person, in the order of entity_id."""
    keep = run.settings.keep if keep is None else checked_keep(keep)
    if run.stack is not None:
        table, missing = run.stack.whole(), run.settings.read[0].missing
        check_keep(keep, table.column_names, run.stack.names)
        return people_of(table, run, keep, None, missing, _ids_by_file(run))
    (given,) = inputs_of(run, sides=(0,))
    table = given.whole()
    check_keep(keep, table.column_names, id=given.id)
    return people_of(table, run, keep, given.id, given.options.missing)


def _ids_by_file(run: DedupeRun) -> dict[str, pa.Array]:
    """For each file, the ids of its records; null in the rows of other files."""
    assert run.stack is not None
    stack, ids = run.stack, run.stack.own_ids().cast(pa.string())
    return {
        name: pc.if_else(pa.array(stack.files.of == k), ids, pa.scalar(None, pa.string()))
        for k, name in enumerate(stack.names)
    }


def people_of(
    table: pa.Table,
    run: DedupeRun,
    keep: Keep,
    ids: str | None,
    missing: Sequence[str],
    by_file: Mapping[str, pa.Array] | None = None,
) -> pa.Table:
    """One row a person. Of several files, what the representative lacks is another record's."""
    by_file, face = by_file or {}, run.decision.cluster
    entities = _entities(run)
    faces = np.unique(face)
    faces = faces[pc.sort_indices(entities.take(pa.array(faces))).to_numpy()]
    person = np.empty(len(face), np.int64)
    person[faces] = np.arange(len(faces))
    person = person[face]
    names = _named_apart([ENTITY, RECORDS, *by_file], table.column_names)
    columns = [entities.take(pa.array(faces)), pa.array(np.bincount(person, minlength=len(faces)))]
    columns += [_joined(column, person, len(faces)) for column in by_file.values()]
    stack = run.stack if by_file else None
    people = People(person, faces, missing, *((stack.names, stack.files.of) if stack else ()))
    everywhere, by_column = keep_rules(keep)
    for name in table.column_names:
        rule = by_column.get(name, everywhere)
        as_is = name == ids or (rule.kind == REPRESENTATIVE and not by_file)
        rows = faces if as_is else people.rows(table, name, rule)
        columns.append(table[name].take(pa.array(rows)))
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
