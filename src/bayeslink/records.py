"""Files and frames -> Records: ids and columns of text, and every check on the input.

Delimited files go through the standard library's ``csv`` (see ``delimited``), because it never
guesses a type; the typed sources are turned into the text a careful person would have typed.
"""

import hashlib
import os
import stat
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bayeslink.delimited import no_records, read_delimited, require_columns, write_misfits
from bayeslink.errors import InputError, SettingsError

TEXT = pa.large_string()
NOT_TEXT = {
    b"PK\x03\x04": "an Excel workbook or zip archive",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook",
    b"SQLite format 3": "an SQLite database",
    b"ARROW1": "a Feather file",
}


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
    _lines: npt.NDArray[np.int64] | None

    def __len__(self) -> int:
        return len(self.ids)

    def place(self, row: int) -> str:
        """Where the record with this index (from 0) is found, for messages."""
        return _place(self._lines, row)


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How to read a file. `missing` adds to the blank cells, which are always missing."""

    encoding: str | None = None
    delimiter: str | None = None
    skip_lines: int = 0
    quarantine: str | Path | None = None
    missing: tuple[str, ...] = ("",)
    table: str | None = None

    def __post_init__(self) -> None:
        try:
            " ".encode(self.encoding or "utf-8")
        except (LookupError, ValueError):
            raise SettingsError(
                f"encoding {self.encoding!r} is not known. Use a name that Python knows, such as "
                "utf-8, cp1252, latin-1 or utf-16."
            ) from None
        if self.delimiter is not None and (
            len(self.delimiter) != 1 or self.delimiter in '"\r\n\0 '
        ):
            raise SettingsError(
                f"delimiter must be one character such as , ; | or a tab, got {self.delimiter!r}."
            )
        if self.skip_lines < 0:
            raise SettingsError(f"skip_lines must be 0 or more, got {self.skip_lines!r}.")
        if isinstance(self.missing, str):
            raise SettingsError(f"missing must be a list of values, such as [{self.missing!r}].")


DEFAULTS = ReadOptions()


@dataclass(frozen=True, slots=True)
class _Table:
    """What a source gave before any check on its values."""

    kind: str
    columns: dict[str, pa.ChunkedArray]
    rows: int
    sha256: str | None = None
    lines: npt.NDArray[np.int64] | None = None
    misfits: tuple[tuple[int, int], ...] = ()


def read_records(
    source: Any,
    *,
    id: str | None,
    columns: Sequence[str],
    options: ReadOptions = DEFAULTS,
    side: str = "A",
) -> Records:
    """Read the id and the columns asked for, as text, from a file or a frame.

    Parameters
    ----------
    source
        Path of a delimited text file (gzip or not), a Parquet file or a DuckDB database; or a
        pandas or polars DataFrame, a pyarrow Table, anything with ``__arrow_c_stream__``.
    id
        Column with the id of each record; None to number the records from 1.
    side
        What messages call this input.
    """
    if isinstance(columns, str):
        raise SettingsError(f"columns must be a list of names, such as [{columns!r}].")
    wanted = tuple(dict.fromkeys([*([] if id is None else [id]), *columns]))
    if not wanted:
        raise SettingsError("No column was asked for. Name an id column or at least one other.")
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        label = os.fsencode(path).decode("utf-8", "backslashreplace")
        where = f"input {side}, {label if label.isprintable() else repr(label)}"
        table = _read_file(path, wanted, options, where)
    else:
        path, label = None, f"{type(source).__module__.split('.')[0]}.{type(source).__name__}"
        where = f"input {side}, {label}"
        table = _read_frame(source, wanted, where)
    if not table.rows:
        raise no_records(where)
    ids = _ids(table, id, where)
    blank = {name: _blank(_text(table.columns[name], name, where), options) for name in columns}
    if table.misfits and path is not None and options.quarantine is not None:
        write_misfits(Path(options.quarantine), path, table.misfits, options.encoding)
    return Records(
        label=label,
        ids=ids,
        columns=blank,
        missing={name: values.null_count for name, values in blank.items()},
        kind=table.kind,
        sha256=table.sha256,
        quarantined=len(table.misfits),
        _lines=table.lines,
    )


def _place(lines: npt.NDArray[np.int64] | None, row: int) -> str:
    return f"row {row + 1}" if lines is None else f"line {lines[row]}"


def _ids(table: _Table, id: str | None, where: str) -> pa.Array:
    """Return the ids as exact text, after refusing blank and repeated ones."""
    if id is None:
        return pa.array(np.arange(1, table.rows + 1)).cast(TEXT)
    column = _plain(table.columns[id])
    if pa.types.is_floating(column.type) and not _exact_integers(column):
        raise InputError(
            f"{where}: the id column {id!r} holds floating-point numbers that are not whole or "
            "exceed 2^53, so that ids may already have been rounded. Read it as text or integer."
        )
    ids = _text(column, id, where)
    blanks = np.flatnonzero(pc.fill_null(_is_blank(ids), True).to_numpy(zero_copy_only=False))
    if len(blanks):
        places = " and ".join(_place(table.lines, row) for row in blanks[:2])
        raise InputError(
            f"{where}: {len(blanks)} records have no id in column {id!r}, first on {places}. Give "
            "every record an id, or leave out the id column to have records numbered."
        )
    encoded = ids.dictionary_encode()
    if len(encoded.dictionary) < len(ids):
        codes = encoded.indices.to_numpy()
        _, first = np.unique(codes, return_index=True)
        again = np.setdiff1d(np.arange(len(codes)), first, assume_unique=True)
        places = " and ".join(
            _place(table.lines, row) for row in (first[codes[again[0]]], again[0])
        )
        raise InputError(
            f"{where}: {len(again)} records repeat the id of an earlier one in column {id!r}, "
            f"first on {places}. Ids must be unique; remove the repeats or use another column."
        )
    return ids


def _is_blank(values: pa.Array) -> pa.Array:
    return pc.or_(pc.equal(pc.binary_length(values), 0), pc.utf8_is_space(values))


def _blank(values: pa.Array, options: ReadOptions) -> pa.Array:
    """Make null of the cells that count as missing."""
    mask = _is_blank(values)
    if words := {word.strip() for word in options.missing} - {""}:
        known = pa.array(sorted(words), TEXT)
        mask = pc.or_(mask, pc.is_in(pc.utf8_trim_whitespace(values), value_set=known))
    return pc.if_else(mask, pa.scalar(None, TEXT), values) if pc.any(mask).as_py() else values


# Sources


def _read_file(path: Path, wanted: Sequence[str], options: ReadOptions, where: str) -> _Table:
    try:
        head = _head(path, where)
        if path.suffix.lower() in (".parquet", ".pq") or head.startswith(b"PAR1\x15"):
            return _read_parquet(path, wanted, where)
        if path.suffix.lower() in (".duckdb", ".ddb") or head[8:12] == b"DUCK":
            return _read_duckdb(path, wanted, options.table, where)
        for magic, name in NOT_TEXT.items():
            if head.startswith(magic):
                raise InputError(f"{where}: looks like {name}. Export the table as CSV or Parquet.")
        read = read_delimited(
            path,
            wanted,
            where=where,
            encoding=options.encoding,
            delimiter=options.delimiter,
            skip_lines=options.skip_lines,
            set_aside=options.quarantine is not None,
        )
    except OSError as error:
        raise InputError(
            f"{where}: cannot be read ({error.strerror}). Check the path and its permissions."
        ) from None
    return _Table("csv", read.columns, len(read.lines), read.sha256, read.lines, (*read.misfits,))


def _head(path: Path, where: str) -> bytes:
    """First bytes of a regular file; a pipe or device is refused before it is opened."""
    try:
        mode = path.stat().st_mode
    except ValueError:  # NUL in the name
        raise InputError(f"{where}: cannot be read, not a possible path.") from None
    if not stat.S_ISREG(mode):
        raise InputError(f"{where}: not a regular file. Give the path of one file.")
    with path.open("rb") as file:
        return file.read(16)


def _read_parquet(path: Path, wanted: Sequence[str], where: str) -> _Table:
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        try:
            parquet = pq.ParquetFile(file, page_checksum_verification=True)
            require_columns(parquet.schema_arrow.names, wanted, where)
            table = parquet.read(columns=list(wanted))
        except InputError:
            raise
        except (pa.ArrowException, OSError, ValueError):
            raise InputError(
                f"{where}: not a whole Parquet file, or a damaged one. Copy or write it again."
            ) from None
    return _arrow(table, wanted, "parquet", where, sha256)


def _read_duckdb(path: Path, wanted: Sequence[str], table: str | None, where: str) -> _Table:
    try:
        import duckdb
    except ImportError:
        raise InputError(
            f"{where}: a DuckDB database needs the duckdb package. Install it with "
            "pip install 'bayeslink[duckdb]'."
        ) from None
    try:
        with duckdb.connect(path.absolute(), read_only=True) as connection:
            query = _duckdb_query(connection, table, where)
            require_columns(connection.sql(query).columns, wanted, where)
            picked = ", ".join(map(_quoted, wanted))
            read = connection.sql(f"SELECT {picked} FROM ({query})").to_arrow_table()
    except duckdb.Error as error:
        # Messages about names and syntax are safe; one about a failed cast would quote the cell.
        safe = (duckdb.CatalogException, duckdb.ParserException, duckdb.BinderException)
        reason = str(error) if isinstance(error, safe) else type(error).__name__
        raise InputError(
            f"{where}: DuckDB cannot read it ({reason}). Check that it is a DuckDB database, not "
            "open for writing elsewhere, and that the query runs."
        ) from None
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    return _arrow(read, wanted, "duckdb", where, sha256)


def _duckdb_query(connection: Any, table: str | None, where: str) -> str:
    found = connection.sql("SELECT table_schema, table_name FROM information_schema.tables")
    tables = {(name, f"{schema}.{name}"): (schema, name) for schema, name in found.fetchall()}
    for names, parts in tables.items():
        if table in names:
            return f"SELECT * FROM {'.'.join(map(_quoted, parts))}"
    if table is not None and table.lstrip().lower().startswith(("select", "with", "from")):
        return table.strip().rstrip(";")
    shown = ", ".join(repr(names[0]) for names in tables) or "none"
    wrong = "which table is not said" if table is None else f"there is no table {table!r}"
    raise InputError(
        f"{where}: {wrong}. Name a table or give a SELECT query with --table (table=). "
        f"Tables: {shown}."
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _read_frame(source: Any, wanted: Sequence[str], where: str) -> _Table:
    if (pandas := sys.modules.get("pandas")) and isinstance(source, pandas.DataFrame):
        names = [str(name) for name in source.columns]
        require_columns(names, wanted, where)
        columns = {
            name: _from_pandas(source.iloc[:, names.index(name)], name, where) for name in wanted
        }
        return _Table("pandas", columns, len(source))
    if (polars := sys.modules.get("polars")) and isinstance(source, polars.DataFrame):
        require_columns(source.columns, wanted, where)
        return _arrow(source.select(wanted).to_arrow(), wanted, "polars", where)
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    if not hasattr(source, "__arrow_c_stream__"):
        raise InputError(
            f"{where}: not a table. Give a path, a pandas or polars DataFrame, or an Arrow table "
            "(a lazy frame must be collected first)."
        )
    if not isinstance(source, pa.Table):
        source = pa.RecordBatchReader.from_stream(source).read_all()
    return _arrow(source, wanted, "arrow", where)


def _arrow(
    table: pa.Table, wanted: Sequence[str], kind: str, where: str, sha256: str | None = None
) -> _Table:
    require_columns(table.column_names, wanted, where)
    columns = {name: table.column(name) for name in wanted}
    for name, column in columns.items():
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            raise _no_text(name, f"{column.type}, with values that are not valid", where) from None
    return _Table(kind, columns, table.num_rows, sha256)


# Typed values -> text


def _from_pandas(series: Any, name: str, where: str) -> pa.ChunkedArray:
    try:
        values = pa.array(series, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        # Of the mixed columns only int and str are safe: everyone writes them the same way.
        items = [None if null else item for item, null in zip(series, series.isna(), strict=True)]
        kinds = {type(item) for item in items if item is not None}
        if bool in kinds or not all(issubclass(kind, int | np.integer | str) for kind in kinds):
            raise _no_text(name, series.dtype, where) from None
        try:
            values = pa.array([None if item is None else str(item) for item in items], TEXT)
        except UnicodeEncodeError:
            raise _no_text(name, "text with broken characters", where) from None
    return values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])


def _text(column: pa.ChunkedArray, name: str, where: str) -> pa.Array:
    """Return the column as text: exact, and as a person would have typed it."""
    column = _plain(column)
    kind = column.type
    try:
        if pa.types.is_floating(kind):
            return _float_text(column.combine_chunks())
        if pa.types.is_timestamp(kind):
            column = _iso_text(column)
        elif pa.types.is_decimal(kind):
            plain = [None if value is None else format(value, "f") for value in column.to_pylist()]
            return pa.array(plain, TEXT)
        elif pa.types.is_date(kind):
            column = column.cast(pa.date32()).cast(TEXT)
        elif any(is_kind(kind) for is_kind in _CAST):
            column = column.cast(TEXT)
        else:
            raise _no_text(name, kind, where)
    except pa.ArrowException:
        raise _no_text(name, f"{kind}, with values out of range", where) from None
    return column.combine_chunks()


_CAST = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_time,
    pa.types.is_null,
)


def _no_text(name: str, kind: object, where: str) -> InputError:
    return InputError(
        f"{where}: column {name!r} is of type {kind}, which has no single text form. Text, whole "
        "and decimal numbers, dates, times and true/false can be used; turn it into text first."
    )


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Look through encodings (dictionary, half floats) to the values themselves."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column.cast(pa.float32()) if pa.types.is_float16(column.type) else column


def _exact_integers(column: pa.ChunkedArray) -> bool:
    """Whether these floats are whole and small enough that no two integers share one."""
    values = column.drop_null().to_numpy()
    values = values[~np.isnan(values)]
    limit = 2.0 ** (np.finfo(values.dtype).nmant + 1)
    return bool(np.all((np.abs(values) < limit) & (values == np.trunc(values))))


def _float_text(values: pa.Array) -> pa.Array:
    """Integer text if all are whole (pandas makes floats of integers with gaps), else the repr."""
    absent = pc.fill_null(pc.is_nan(values), True).to_numpy(zero_copy_only=False)
    numbers = np.where(absent, 0, pc.fill_null(values, 0).to_numpy())
    finite = np.isfinite(numbers)
    if not np.all((numbers == np.trunc(numbers))[finite]):
        return pa.array(numbers.astype(str).astype(object), TEXT, mask=absent)
    if np.all(np.abs(numbers) < 2.0**63):
        return pa.array(numbers.astype(np.int64), mask=absent).cast(TEXT)
    whole = [str(int(x)) if ok else str(x) for x, ok in zip(numbers, finite, strict=True)]
    return pa.array(np.array(whole, object), TEXT, mask=absent)


def _iso_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """ISO 8601; only the date where every time is midnight, as pandas has no type for dates."""
    zone = column.type.tz
    for unit in ("s", "ms", "us", "ns"):
        try:
            column = column.cast(pa.timestamp(unit, zone))
            break
        except pa.ArrowInvalid:
            continue
    days = column.cast(pa.date32())
    if zone is None and pc.all(pc.equal(days.cast(column.type), column)).as_py():
        return days.cast(TEXT)
    return pc.replace_substring(column.cast(TEXT), " ", "T")
