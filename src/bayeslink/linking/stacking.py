"""Several files as one: read, columns called as in the first file, records one below another."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bayeslink.comparing.column_parts import columns_in, values_of
from bayeslink.comparing.fields import Field
from bayeslink.data.cell_texts import TEXT
from bayeslink.data.locations import each_part, is_path, require_there
from bayeslink.data.records import Records, read_records, repeats
from bayeslink.engines.compare import block_fields
from bayeslink.engines.spark.choosing import has_there, is_spark, read_there
from bayeslink.errors import InputError, SettingsError
from bayeslink.many_settings import ManySettings
from bayeslink.pairs.source import Files, Ints
from bayeslink.runs.inputs import Input, placed
from bayeslink.runs.people import below_each_other
from bayeslink.settings import FOUND
from bayeslink.suggesting.date_formats import AS_IT_LOOKS, Formats, find_formats
from bayeslink.suggesting.one_file import id_among
from bayeslink.suggesting.suggestion import suggest

if TYPE_CHECKING:
    from bayeslink.engines.spark.cluster import Cluster

_ISO = "%Y-%m-%d"
_DATES = 0.8  # share of a column that its formats read, from which it holds dates
RECORD = "record"  # what a record is called among those of all files: "census:17"


@dataclass(frozen=True, slots=True)
class Stack:
    """The files of a run, and what is needed to read them again."""

    files: Files
    inputs: tuple[Input, ...]
    renamed: tuple[Mapping[str, str], ...]  # of each file: its columns by their own names
    told: tuple[Mapping[str, Any], ...]  # of each file, for provenance
    recodes: Mapping[str, Mapping[str, str]]  # of columns: what values of one file are in another

    @property
    def names(self) -> tuple[str, ...]:
        return self.files.names

    def rows(self, k: int) -> Ints:
        """Rows of the records of a file among those of all."""
        return np.flatnonzero(self.files.of == k)

    def own_ids(self) -> pa.Array:
        """Of each record, its id in its file, as text."""
        return pa.concat_arrays([given.ids for given in self.inputs])

    def whole(self) -> pa.Table:
        """All columns of all records but their ids, by their names in the first file.

        A column keeps its type where all files agree on it, and is text elsewhere.
        """
        tables = []
        for given, renamed in zip(self.inputs, self.renamed, strict=True):
            table = given.whole()
            if given.id is not None:
                table = table.drop_columns([given.id])
            tables.append(table.rename_columns([renamed.get(c, c) for c in table.column_names]))
        return below_each_other(tables)


def stacked(
    files: Mapping[str, Any], settings: ManySettings, cluster: Cluster | None = None
) -> tuple[Stack, Records, ManySettings, list[str]]:
    """The files, all records as those of one, what was settled, and what there is to say.

    A cluster reads what Spark has of them.
    """
    said: list[str] = []
    names = tuple(files)
    clean = settings.clean(names)
    if len({*settings.read}) > 1:
        raise SettingsError(
            "two ways to read are given. All files are read in one way: read one that differs "
            "beforehand, as a table of pandas, polars or Arrow."
        )
    if settings.read[0].quarantine is not None:
        raise SettingsError(
            "quarantine is for one file or two. Correct the short and long rows, or read each file "
            "into a table of pandas, polars or Arrow beforehand."
        )
    _refuse(files, on_spark=cluster is not None)
    read = [
        _read_there(cluster, source, name, settings) or read_file(source, name, settings, said)
        for name, source in files.items()
    ]
    renamed, recodes = _renamed(names, read, settings, said)
    columns = _common(read, renamed, _dates_with_formats(settings))
    of = np.repeat(np.arange(len(names)), [len(records) for _, records in read])
    stack = Stack(
        files=Files(names, of, clean),
        inputs=tuple(
            Input(
                source=placed(source, settings.started_in, records.kind),
                options=settings.read[0],
                needed=() if own_id is None else (own_id,),
                id=own_id,
                ids=records.ids,
                side=name,
                label=records.label,
                kind=records.kind,
                sha256=records.sha256,
            )
            for (name, source), (own_id, records) in zip(files.items(), read, strict=True)
        ),
        renamed=renamed,
        told=tuple(records.told() for _, records in read),
        recodes=recodes,
    )
    ids = [
        pc.binary_join_element_wise(pa.scalar(name, TEXT), records.ids, pa.scalar(":", TEXT))
        for name, (_, records) in zip(names, read, strict=True)
    ]
    whole = Records(
        label=_listed(names),
        ids=pa.concat_arrays(ids),
        columns=columns,
        missing={name: values.null_count for name, values in columns.items()},
        kind="spark" if any(map(_is_of_spark, read)) else read[0][1].kind,
        sha256=None,
        quarantined=sum(records.quarantined for _, records in read),
        id_type=None,
        _lines=None,
    )
    return stack, whole, replace(settings, columns=_told(names, renamed)), said


def as_table(records: Records) -> pa.Table:
    """The records with what each is called, for a proposal of what to compare."""
    return pa.table({name_of_records(records.columns): records.ids, **records.columns})


def name_of_records(columns: Mapping[str, Any]) -> str:
    """A name for the column of what records are called that no file has."""
    name = RECORD
    while name in columns:
        name += "_"
    return name


def _refuse(files: Mapping[str, Any], *, on_spark: bool) -> None:
    """Refuse what cannot be read before any of it is: paths that are not there, one file twice.

    What Spark reads is for Spark to say.
    """
    parts = [(name, part) for name, source in files.items() for part in each_part(source)]
    for name, source in parts:
        if is_spark(source) and source is not files[name]:
            raise SettingsError(
                f"{name} is a list with a table of Spark in it. Give one table, such as x.union(y)."
            )
        if isinstance(source, str) and source == "-":
            raise SettingsError(f"{name} is standard input, which cannot be read twice. Save it.")
        if not on_spark:
            require_there(source, name)
    paths = [os.path.realpath(source) for _, source in parts if is_path(source)]
    if len({*paths}) < len(paths) or len({id(source) for _, source in parts}) < len(parts):
        raise SettingsError(
            "one file is given twice. For the people of one file: bl.dedupe(file), `bayeslink "
            "dedupe FILE -o OUT`."
        )


def read_file(
    source: Any, name: str, settings: ManySettings, said: list[str]
) -> tuple[str | None, Records]:
    """The id column of a file, and its records."""
    options = settings.read[0]
    asked = settings.id
    given = None if asked is FOUND else asked
    records = read_records(source, id=given, columns=None, options=options, side=name)
    if asked is not FOUND:
        return given, records
    found = "id" if _names_records(records, "id") else id_among(records)
    if found is not None:
        texts = records.columns[found]
        kind = read_records(source, id=found, columns=[], options=options, side=name).id_type
        return found, replace(records, ids=texts, id_type=kind)
    said.append(f"{name} has no id column: its rows are numbered. Name the column with --id (id=).")
    return None, records


def _read_there(
    cluster: Cluster | None, source: Any, name: str, settings: ManySettings
) -> tuple[str, Records] | None:
    """The same of a table that Spark has, of which it reads the columns that are compared."""
    if cluster is None or not has_there(cluster, source):
        return None
    if not all(isinstance(field, Field) for field in settings.fields or ("any",)):
        raise SettingsError(
            f"{name} is read by Spark: say how to compare each column, such as bl.name('surname'). "
            "bl.suggest(table.limit(10_000).toPandas()) proposes it."
        )
    used = [c for f in (*settings.fields, *block_fields(settings.block)) for c in f.columns[0]]
    own = {first: column for column, first in (settings.columns or {}).get(name, {}).items()}
    wanted = [*own.values(), *(own.get(column, column) for column in used)]
    id = "id" if settings.id is FOUND else settings.id
    records = read_there(
        cluster,
        source,
        side=name,
        id=id,
        columns=[c for called in wanted for c in columns_in(called, ())],
        options=settings.read[0],
        may_lack=True,
    )
    assert records is not None
    return id, records


def _is_of_spark(read: tuple[str | None, Records]) -> bool:
    return read[1].kind == "spark"


def _names_records(records: Records, column: str) -> bool:
    if column not in records.columns:
        return False
    texts = records.columns[column]
    return texts.null_count == 0 and not repeats(texts)[0]


def _renamed(
    names: Sequence[str],
    read: Sequence[tuple[str | None, Records]],
    settings: ManySettings,
    said: list[str],
) -> tuple[tuple[dict[str, str], ...], dict[str, dict[str, str]]]:
    """What columns of each file are called in the first; found by what is in them unless given.

    And for columns of codes, what values stand for, unless all comparisons are given.
    """
    asked = settings.columns or {}
    chosen = settings.fields is None or any(isinstance(field, str) for field in settings.fields)
    recodes: dict[str, dict[str, str]] = {}
    if unknown := [name for name in asked if name not in names]:
        raise SettingsError(f"columns names {unknown[0]!r}, and the files are {', '.join(names)}.")
    out: list[dict[str, str]] = []
    for k, (name, (own_id, records)) in enumerate(zip(names, read, strict=True)):
        given = dict(asked.get(name, {}))
        meant = [c for called in given for c in columns_in(called, records.columns)]
        if absent := [column for column in meant if column not in records.columns]:
            raise InputError(
                f"input {name}, {records.label}, has no column {absent[0]!r} (columns=). It has "
                f"{', '.join(records.columns)}."
            )
        found: dict[str, str] = {}
        whole = not any(map(_is_of_spark, (read[0], read[k])))  # all columns, not those compared
        if k > 0 and whole and (chosen or name not in asked):
            proposed = _proposed(read[0], (own_id, records))
            if name not in asked:
                found = _found(proposed, read[0], (own_id, records), out[0])
            if names[0] not in asked:
                out[0] |= _parts_of_first(proposed, read[0], (own_id, records), out[0])
            _add_recodes(recodes, proposed, {**found, **given})
        out.append({**found, **given})
    _split_alike(read, out, [name for name in names if name in asked], names)
    said += [
        f"columns of {name} that are called otherwise in {other}: {_in_words(own)}. Where that is "
        "wrong, say so with columns (link-many.toml, columns=)."
        for name, own, other in zip(
            names, out, ("other files", *[names[0]] * (len(names) - 1)), strict=True
        )
        if own and name not in asked
    ]
    return tuple(out), recodes


def _in_words(own: Mapping[str, str]) -> str:
    return ", ".join(f"{column} is {common}" for column, common in own.items())


def _proposed(
    first: tuple[str | None, Records], other: tuple[str | None, Records]
) -> tuple[Field, ...]:
    """What would be compared in these two files."""
    tables = [pa.table(dict(_data(*given))) for given in (first, other)]
    try:
        return suggest(*tables, id=None).fields
    except (InputError, SettingsError):  # nothing in common, by name or by content
        return ()


def _add_recodes(
    recodes: dict[str, dict[str, str]], proposed: Sequence[Field], names: Mapping[str, str]
) -> None:
    """What values stand for, whichever file they are in; one meaning for all files."""
    for field in proposed:
        (a, *_), (b, *_) = field.columns
        table = field.settings.get("recode")
        if isinstance(table, dict) and names.get(b, b) == a:  # no list: its files disagree
            known = recodes.setdefault(a, {})
            for value, meaning in table.items():
                if value in known:  # 1 is M in one file, and male in this one
                    known[meaning] = known[value]
                else:
                    known[value] = str(known.get(meaning, meaning))


def _found(
    proposed: Sequence[Field],
    first: tuple[str | None, Records],
    other: tuple[str | None, Records],
    of_first: Mapping[str, str],
) -> dict[str, str]:
    """Columns of another file that hold the same as one of the first, of another name."""
    there, found = {*first[1].columns, *of_first.values()}, dict[str, str]()
    for field in proposed:
        called, own = _called(field)
        common = of_first.get(called, called)
        free = common not in other[1].columns and common not in found.values()
        if common in there and free and own not in there and _is_there(own, other[1]):
            found[own] = common
    return found


def _parts_of_first(
    proposed: Sequence[Field],
    first: tuple[str | None, Records],
    other: tuple[str | None, Records],
    known: Mapping[str, str],
) -> dict[str, str]:
    """What in the first file holds several columns of another, or is held by one of it."""
    found: dict[str, str] = {}
    for field in proposed:
        own, common = _called(field)
        free = common not in first[1].columns and common not in (*known.values(), *found.values())
        made = own not in first[1].columns and _is_there(own, first[1])
        if made and own not in known and free and common in other[1].columns:
            found[own] = common
    return found


def _is_there(called: str, records: Records) -> bool:
    return {*columns_in(called, records.columns)} <= {*records.columns}


def _called(field: Field) -> tuple[str, str]:
    """The columns of a field in the first file and in the other, as `column_parts` has them."""
    parts = field.options.get("part", (None, None))
    named = (
        "+".join(own) + (f":{part}" if part else "")
        for own, part in zip(field.columns, parts, strict=True)
    )
    first, other = named
    return first, other


def _split_alike(
    read: Sequence[tuple[str | None, Records]],
    out: list[dict[str, str]],
    asked: Sequence[str],
    names: Sequence[str],
) -> None:
    """Split a column of other files that holds what is split in the first, in the same way."""
    split = {c: common for c, common in out[0].items() if columns_in(c, read[0][1].columns) != (c,)}
    for name, (_, records), own in zip(names[1:], read[1:], out[1:], strict=True):
        if name in asked:
            continue
        for called, common in split.items():
            (column, *more), part = columns_in(called, ()), called.rpartition(":")[2]
            mine = next((c for c, as_first in own.items() if as_first == column), column)
            if not more and mine in records.columns and common not in records.columns:
                own.setdefault(f"{mine}:{part}", common)


def _data(own_id: str | None, records: Records) -> Mapping[str, pa.Array]:
    """The columns of a file but its ids, which mean nothing in another."""
    return {name: texts for name, texts in records.columns.items() if name != own_id}


def _dates_with_formats(settings: ManySettings) -> dict[str, str]:
    """Columns of dates whose format was said, and that format."""
    found: dict[str, str] = {}
    for field in settings.fields or ():
        said = field.options.get("formats", (None,)) if isinstance(field, Field) else (None,)
        if said[0] is not None:
            found.update(dict.fromkeys(field.columns[0], said[0]))
    return found


def _dates_alike(by_file: Sequence[dict[str, pa.Array]], said: Mapping[str, str]) -> None:
    """Write the dates of a column in one format, where the files write them differently.

    As 1980-02-01, or as was said: link-many.toml says how they were compared, and is read again.
    Of one column, day and month are read in one order; here each file has its own.
    """
    for name in dict.fromkeys(name for own in by_file for name in own):
        there = [own for own in by_file if name in own]
        dates = [_formats(own[name]) for own in there]
        told = [found for found in dates if found is not None and not found.ambiguous]
        differ = len(told) == len(there) and len({found.formats for found in told}) > 1
        form = said.get(name, _ISO)
        if form == AS_IT_LOOKS or not (differ or name in said):
            continue
        for own, found in zip(there, dates, strict=True):
            if found is None or found.ambiguous or found.formats == (form,):
                continue
            coded = own[name].dictionary_encode()
            days = [(found.read(text), text) for text in coded.dictionary.to_pylist()]
            texts = [text if day is None else _written(day, form) for day, text in days]
            own[name] = pa.array(texts, TEXT).take(coded.indices)


def _written(day: dt.date, form: str) -> str:
    return day.isoformat() if form == _ISO else day.strftime(form)  # years have four digits


def _formats(column: pa.Array) -> Formats | None:
    """How a column writes dates; None if it holds none."""
    counted = column.value_counts()
    texts = zip(counted.field(0).to_pylist(), counted.field(1).to_pylist(), strict=True)
    found = find_formats({text.strip(): n for text, n in texts if text is not None})
    return found if found.formats and found.share > _DATES else None


def _common(
    read: Sequence[tuple[str | None, Records]],
    renamed: Sequence[Mapping[str, str]],
    dates: Mapping[str, str],
) -> dict[str, pa.Array]:
    """The columns of all files, one below another; null where a file has none.

    `dates`: columns whose format was said, and that.
    """
    by_file: list[dict[str, pa.Array]] = []
    for (own_id, records), names in zip(read, renamed, strict=True):
        data = _data(own_id, records)
        meant = {called: columns_in(called, data) for called in names}
        made = [called for called, columns in meant.items() if columns != (called,)]
        used = {column for called in made for column in meant[called]}
        plain = [column for column in data if column not in used]
        own = {names.get(column, column): data[column] for column in plain}
        own |= {names[called]: values_of(data, called) for called in made}
        if len(own) < len(plain) + len(made):
            raise SettingsError(
                "columns gives two columns of one file the same name. Give each another."
            )
        by_file.append(own)
    _dates_alike(by_file, dates)
    numbered = any(map(_is_of_spark, read))
    out: dict[str, pa.Array] = {}
    for name in dict.fromkeys(name for own in by_file for name in own):
        parts = [
            own[name] if name in own else pa.nulls(len(records), TEXT)
            for own, (_, records) in zip(by_file, read, strict=True)
        ]
        out[name] = (
            _numbered(parts) if numbered else pa.concat_arrays([p.cast(TEXT) for p in parts])
        )
    return out


def _numbered(parts: Sequence[pa.Array]) -> pa.DictionaryArray:
    """Texts one below another as numbers of distinct ones, as those of Spark are."""
    coded = [part.dictionary_encode() for part in parts]
    texts = pa.dictionary(pa.int32(), TEXT)
    return (
        pa.chunked_array([part.cast(texts) for part in coded]).unify_dictionaries().combine_chunks()
    )


def _told(names: Sequence[str], renamed: Sequence[Mapping[str, str]]) -> dict[str, dict[str, str]]:
    """The names as settings have them: an empty table says that nothing is to be found."""
    return {name: dict(columns) for name, columns in zip(names, renamed, strict=True)}


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"
