"""Files and frames -> Records: ids and columns of text, and every check on the input.

Delimited files go through the standard library's ``csv`` (see ``delimited``), because it never
guesses a type; the typed sources are turned into the text a careful person would have typed.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bayeslink.data.cell_texts import (
    TEXT,
    as_text,
    decoded,
    exact_integers,
    whole_number_type,
)
from bayeslink.data.delimited import (
    FIELD_LIMIT,
    write_misfits,
)
from bayeslink.data.headers import no_records, refuse_records_as_names, require_columns
from bayeslink.data.locations import is_url, located, parts_of, refuse_empty, shown
from bayeslink.data.parts import below, sum_of
from bayeslink.data.read_options import ReadOptions
from bayeslink.data.sources import Table, read_source, usable
from bayeslink.errors import InputError, NoColumnError, SettingsError
from bayeslink.memory import Memory


@dataclass(frozen=True, slots=True)
class Records:
    """One input, checked: a unique id for each record, and the columns asked for as text."""

    label: str
    ids: pa.Array
    columns: dict[str, pa.Array]
    missing: dict[str, int]
    kind: str
    sha256: str | None
    quarantined: int
    id_type: str | None  # of whole-number ids, such as "int64"; None: text
    _lines: npt.NDArray[np.int64] | None
    unusable: tuple[str, ...] = ()  # columns without a text form, where all were asked for
    parts: tuple[Mapping[str, Any], ...] = ()  # of an input in several: what to say of each

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the records take."""
        return sum(column.nbytes for column in (self.ids, *self.columns.values()))

    def text(self, columns: Sequence[str], row: int) -> str | None:
        """What a record holds in these columns, as a person reads it; None if that is nothing."""
        return text_of(self.columns, columns, row)

    def rows_of(self, ids: Any) -> pa.Array:
        """Where the records with these ids are, null for an id that none has."""
        wanted = ids if isinstance(ids, pa.Array | pa.ChunkedArray) else pa.array(ids, pa.string())
        found = pc.index_in(wanted.cast(self.ids.type), self.ids)
        return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found

    def take(self, rows: pa.Array) -> Self:
        """These records, in this order."""
        columns = {name: column.take(rows) for name, column in self.columns.items()}
        lines = None if self._lines is None else self._lines[rows.to_numpy()]
        return replace(self, ids=self.ids.take(rows), columns=columns, _lines=lines)

    def told(self) -> dict[str, Any]:
        """What run.json says of this input."""
        return {
            "label": self.label,
            "kind": self.kind,
            "sha256": self.sha256,
            "records": len(self),
            "quarantined": self.quarantined,
            **({"parts": [dict(part) for part in self.parts]} if self.parts else {}),
        }

    def place(self, row: int) -> str:
        """Where the record with this index (from 0) is found, for messages."""
        return _place(self._lines, row)


def text_of(columns: Mapping[str, pa.Array], names: Sequence[str], row: int) -> str | None:
    """What a row holds in some columns of text, as a person reads it; None if that is nothing."""
    cells = [columns[name][row].as_py() for name in names]
    return " ".join(cell or "–" for cell in cells) if any(cells) else None


DEFAULTS = ReadOptions()
_NAME_THE_ID = "Name the id column with --id (id=), or number the rows: --no-id (id=None)."


def read_records(
    source: Any,
    *,
    id: str | None,
    columns: Sequence[str] | None,
    options: ReadOptions = DEFAULTS,
    side: str = "A",
    memory: int | None = None,
    may_be_empty: bool = False,
) -> Records:
    """Read the id and the columns asked for, as text, from a file or a frame.

    Parameters
    ----------
    source
        Path of a delimited text file (gzip or not), a Parquet file or a folder of them, an Excel
        workbook, a DuckDB or SQLite database; "-" for standard input; the address of a Postgres
        database; or a pandas or polars frame (a LazyFrame too), a pyarrow Table or Dataset,
        anything with ``__arrow_c_stream__``; or a list of these, which are one input.
    id
        Column with the id of each record; None to number the records from 1.
    columns
        The columns to read; None for all that have a text form.
    side
        What messages call this input.
    memory
        Bytes that a query of a database may use; most of the machine's unless given.
    may_be_empty
        Whether a header without records will do.
    """
    if isinstance(columns, str):
        raise SettingsError(f"columns must be a list of names, such as [{columns!r}].")
    if (parts := parts_of(source)) is not None:
        how: dict[str, Any] = {"memory": memory, "may_be_empty": may_be_empty, "columns": columns}
        return _one_below_another(parts, side, id, options, **how)
    wanted = None
    if columns is not None:
        wanted = tuple(dict.fromkeys([*([] if id is None else [id]), *columns]))
    if wanted == ():
        raise SettingsError("No column was asked for. Name an id column or at least one other.")
    path, label = None, f"{type(source).__module__.split('.')[0]}.{type(source).__name__}"
    if isinstance(source, str | os.PathLike):
        refuse_empty(source, side)
        path, label = None if is_url(source) else Path(located(source)), shown(source)
    where = f"input {side}, {label if label.isprintable() else repr(label)}"
    budget = Memory().budget if memory is None else memory
    try:
        table = read_source(source, wanted, options, where, budget)
        if id is not None and id not in table.columns:
            require_columns(list(table.columns), [id], where)
    except NoColumnError as error:
        if error.column != id:
            raise
        raise NoColumnError(f"{error} {_NAME_THE_ID}", error.column) from None
    if not table.rows and not may_be_empty:
        raise no_records(where)
    if columns is None and table.kind in ("csv", "excel"):
        refuse_records_as_names(table.columns, where)
    ids = _ids(table, id, where)
    texts, unusable = usable(
        list(table.columns) if columns is None else columns,
        lambda name: as_text(table.columns[name], name, where),
        strict=columns is not None,
    )
    if table.lines is None:  # a file of text has been checked line by line
        for name, values in {**({} if id is None else {id: ids}), **texts}.items():
            refuse_no_text(values, name, where)
    blank = {name: with_missing(values, options) for name, values in texts.items()}
    if table.misfits and path is not None and options.quarantine is not None:
        write_misfits(Path(options.quarantine), path, table.misfits, options.encoding, table.sha256)
    return Records(
        label=label,
        ids=ids,
        columns=blank,
        missing={name: values.null_count for name, values in blank.items()},
        kind=table.kind,
        sha256=table.sha256,
        quarantined=len(table.misfits),
        id_type=None if id is None else whole_number_type(table.columns[id]),
        _lines=table.lines,
        unusable=(*table.unusable, *unusable),
    )


def _one_below_another(
    parts: Sequence[Any], side: str, id: str | None, options: ReadOptions, **how: Any
) -> Records:
    """The records of an input in several parts."""
    where = f"input {side}"
    if options.quarantine is not None:
        raise SettingsError(
            "quarantine is for an input in one file. Correct the short and long rows, or put the "
            "parts into one file."
        )
    if not parts:
        raise InputError(f"{where}: the list of its parts is empty. Give a path, or several.")
    read = [read_records(part, side=side, id=id, options=options, **how) for part in parts]
    tables = [pa.table(dict(part.columns)) if part.columns else None for part in read]
    columns = below([table for table in tables if table is not None], where)
    n = sum(map(len, read))
    ids = pa.concat_arrays([part.ids for part in read])
    if id is None:
        ids = pa.array(np.arange(1, n + 1)).cast(TEXT)
    elif n_again := repeats(ids)[0]:
        raise InputError(
            f"{where}: {n_again} records of its {len(read)} parts repeat the id of an earlier one "
            f"in column {id!r}. Ids must be unique; remove the repeats. {_NAME_THE_ID}"
        )
    types = {part.id_type for part in read}
    texts = {name: columns[name].combine_chunks() for name in columns.column_names}
    return Records(
        label=" and ".join(part.label for part in read),
        ids=ids,
        columns=texts,
        missing={name: values.null_count for name, values in texts.items()},
        kind=read[0].kind,
        sha256=sum_of([part.sha256 for part in read]),
        quarantined=0,
        id_type=types.pop() if len(types) == 1 else None,
        _lines=None,
        unusable=tuple(dict.fromkeys(name for part in read for name in part.unusable)),
        parts=tuple(
            {"label": part.label, "sha256": part.sha256, "records": len(part)} for part in read
        ),
    )


def _place(lines: npt.NDArray[np.int64] | None, row: int) -> str:
    return f"row {row + 1}" if lines is None else f"line {lines[row]}"


def _ids(table: Table, id: str | None, where: str) -> pa.Array:
    """Return the ids as exact text, after refusing blank and repeated ones."""
    if id is None:
        return pa.array(np.arange(1, table.rows + 1)).cast(TEXT)
    column = decoded(table.columns[id])
    if pa.types.is_floating(column.type) and not exact_integers(column):
        raise InputError(
            f"{where}: the id column {id!r} holds floating-point numbers that are not whole or "
            "exceed 2^53, so that ids may already have been rounded. Read it as text or integer."
        )
    ids = as_text(column, id, where)
    blanks = np.flatnonzero(pc.fill_null(is_blank(ids), True).to_numpy(zero_copy_only=False))
    if len(blanks):
        places = " and ".join(_place(table.lines, row) for row in blanks[:2])
        raise InputError(
            f"{where}: {len(blanks)} records have no id in column {id!r}, first on {places}. Give "
            f"every record an id. {_NAME_THE_ID}"
        )
    n_again, first = repeats(ids)
    if n_again:
        places = " and ".join(_place(table.lines, row) for row in first)
        raise InputError(
            f"{where}: {n_again} records repeat the id of an earlier one in column {id!r}, "
            f"first on {places}. Ids must be unique; remove the repeats. {_NAME_THE_ID}"
        )
    return ids


def repeats(ids: pa.Array) -> tuple[int, tuple[int, ...]]:
    """How many cells repeat an earlier one, and the rows of the first two that are equal."""
    encoded = ids.dictionary_encode()
    codes = encoded.indices.drop_null().to_numpy()
    rows = np.flatnonzero(ids.is_valid().to_numpy(zero_copy_only=False))
    _, first = np.unique(codes, return_index=True)
    again = np.setdiff1d(np.arange(len(codes)), first, assume_unique=True)
    if not len(again):
        return 0, ()
    return len(again), (int(rows[first[codes[again[0]]]]), int(rows[again[0]]))


def refuse_no_text(
    values: pa.Array, name: str, where: str, place: Callable[[int], str] | None = None
) -> None:
    """Refuse what `delimited` refuses in a file: NUL, and cells longer than any name."""
    for wrong, what in (
        (pc.match_substring(values, "\0"), "holds a NUL character"),
        (pc.greater(pc.utf8_length(values), FIELD_LIMIT), f"is over {FIELD_LIMIT:,} characters"),
    ):
        if pc.any(wrong).as_py():
            row = pc.index(wrong, True).as_py()
            found = _place(None, row) if place is None else place(row)
            raise InputError(
                f"{where}, {found}: column {name!r} {what}, which no text about people does. "
                "Correct the cell or leave the column out."
            )


def is_blank(values: pa.Array) -> pa.Array:
    """Which cells hold nothing but space."""
    return pc.or_(pc.equal(pc.binary_length(values), 0), pc.utf8_is_space(values))


def with_missing(values: pa.Array, options: ReadOptions) -> pa.Array:
    """Make null of the cells that count as missing."""
    mask = is_blank(values)
    if words := {*options.missing} - {""}:
        known = pa.array(sorted(words), TEXT)
        mask = pc.or_(mask, pc.is_in(pc.utf8_trim_whitespace(values), value_set=known))
    return pc.if_else(mask, pa.scalar(None, TEXT), values) if pc.any(mask).as_py() else values
