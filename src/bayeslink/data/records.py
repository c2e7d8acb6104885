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
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from bayeslink.data.cell_texts import (
    TEXT,
    as_text,
    exact_integers,
    from_pandas,
    no_text,
    whole_number_type,
    without_dictionary,
)
from bayeslink.data.delimited import (
    FIELD_LIMIT,
    no_records,
    read_delimited,
    require_columns,
    write_misfits,
)
from bayeslink.data.sources import (
    STDIN,
    is_url,
    located,
    read_excel,
    read_folder,
    read_postgres,
    read_sqlite,
    shown_url,
)
from bayeslink.errors import InputError, SettingsError
from bayeslink.plain import plain, texts

NOT_TEXT = {
    b"PK\x03\x04": "an Excel workbook without the ending .xlsx, or a zip archive",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook",
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
    id_type: str | None  # of whole-number ids, such as "int64"; None: text
    _lines: npt.NDArray[np.int64] | None

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the records take."""
        return sum(column.nbytes for column in (self.ids, *self.columns.values()))

    def text(self, columns: Sequence[str], row: int) -> str | None:
        """What a record holds in these columns, as a person reads it; None if that is nothing."""
        cells = [self.columns[name][row].as_py() for name in columns]
        return " ".join(cell or "–" for cell in cells) if any(cells) else None

    def rows_of(self, ids: Any) -> pa.Array:
        """Where the records with these ids are, null for an id that none has."""
        wanted = ids if isinstance(ids, pa.Array | pa.ChunkedArray) else pa.array(ids, pa.string())
        found = pc.index_in(wanted.cast(self.ids.type), self.ids)
        return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found

    def place(self, row: int) -> str:
        """Where the record with this index (from 0) is found, for messages."""
        return _place(self._lines, row)


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How to read a file. `missing` adds to the blank cells, which are always missing.

    Options that mean the same are equal: `missing` is kept as texts without space around them,
    each once, the blank first.
    """

    encoding: str | None = None
    delimiter: str | None = None
    skip_lines: int = 0
    quarantine: str | Path | None = None
    missing: Sequence[str] = ("",)
    table: str | None = None

    def __post_init__(self) -> None:
        try:
            " ".encode(self.encoding or "utf-8")
        except (LookupError, TypeError, ValueError):
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
        lines = plain(self.skip_lines)
        if not isinstance(lines, int) or isinstance(lines, bool) or lines < 0:
            raise SettingsError(
                f"skip_lines must be a whole number from 0 up, got {self.skip_lines!r}."
            )
        words = None if isinstance(self.missing, str) else texts(self.missing)
        if words is None:
            raise SettingsError("missing must be a list of texts, such as ['NA', '999'].")
        object.__setattr__(self, "skip_lines", lines)
        object.__setattr__(self, "missing", (*dict.fromkeys(["", *(w.strip() for w in words)]),))


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
        Path of a delimited text file (gzip or not), a Parquet file or a folder of them, an Excel
        workbook, a DuckDB or SQLite database; "-" for standard input; the address of a Postgres
        database; or a pandas or polars frame (a LazyFrame too), a pyarrow Table or Dataset,
        anything with ``__arrow_c_stream__``.
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
    path = None
    if is_url(source):
        label = shown_url(source)
        where = f"input {side}, {label}"
        table = _arrow(
            read_postgres(source, wanted, options.table, where), wanted, "postgres", where
        )
    elif isinstance(source, str | os.PathLike):
        label = os.fsencode(source).decode("utf-8", "backslashreplace")
        label = "standard input" if label == STDIN else label
        path = Path(located(source))
        where = f"input {side}, {label if label.isprintable() else repr(label)}"
        table = _read_file(path, wanted, options, where)
    else:
        label = f"{type(source).__module__.split('.')[0]}.{type(source).__name__}"
        where = f"input {side}, {label}"
        table = _read_frame(source, wanted, where)
    if not table.rows:
        raise no_records(where)
    ids = _ids(table, id, where)
    texts = {name: as_text(table.columns[name], name, where) for name in columns}
    if table.lines is None:  # a file of text has been checked line by line
        for name, values in {**({} if id is None else {id: ids}), **texts}.items():
            _refuse_no_text(values, name, where)
    blank = {name: _blank(values, options) for name, values in texts.items()}
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
        id_type=None if id is None else whole_number_type(table.columns[id]),
        _lines=table.lines,
    )


def _place(lines: npt.NDArray[np.int64] | None, row: int) -> str:
    return f"row {row + 1}" if lines is None else f"line {lines[row]}"


def _ids(table: _Table, id: str | None, where: str) -> pa.Array:
    """Return the ids as exact text, after refusing blank and repeated ones."""
    if id is None:
        return pa.array(np.arange(1, table.rows + 1)).cast(TEXT)
    column = without_dictionary(table.columns[id])
    if pa.types.is_floating(column.type) and not exact_integers(column):
        raise InputError(
            f"{where}: the id column {id!r} holds floating-point numbers that are not whole or "
            "exceed 2^53, so that ids may already have been rounded. Read it as text or integer."
        )
    ids = as_text(column, id, where)
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


def _refuse_no_text(values: pa.Array, name: str, where: str) -> None:
    """Refuse what `delimited` refuses in a file: NUL, and cells longer than any name."""
    for wrong, what in (
        (pc.match_substring(values, "\0"), "holds a NUL character"),
        (pc.greater(pc.utf8_length(values), FIELD_LIMIT), f"is over {FIELD_LIMIT:,} characters"),
    ):
        if pc.any(wrong).as_py():
            place = _place(None, pc.index(wrong, True).as_py())
            raise InputError(
                f"{where}, {place}: column {name!r} {what}, which no text about people does. "
                "Correct the cell or leave the column out."
            )


def _is_blank(values: pa.Array) -> pa.Array:
    return pc.or_(pc.equal(pc.binary_length(values), 0), pc.utf8_is_space(values))


def _blank(values: pa.Array, options: ReadOptions) -> pa.Array:
    """Make null of the cells that count as missing."""
    mask = _is_blank(values)
    if words := {*options.missing} - {""}:
        known = pa.array(sorted(words), TEXT)
        mask = pc.or_(mask, pc.is_in(pc.utf8_trim_whitespace(values), value_set=known))
    return pc.if_else(mask, pa.scalar(None, TEXT), values) if pc.any(mask).as_py() else values


# Sources


def _read_file(path: Path, wanted: Sequence[str], options: ReadOptions, where: str) -> _Table:
    try:
        kind = file_kind(path, where)
        if kind == "folder":
            table, sha256 = read_folder(path, wanted, where)
            return _arrow(table, wanted, "parquet", where, sha256)
        if kind == "parquet":
            return _read_parquet(path, wanted, where)
        if kind in ("excel", "sqlite"):
            return _read_foreign(kind, path, wanted, options, where)
        if kind == "duckdb":
            return _read_duckdb(path, wanted, options.table, where)
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


def file_kind(path: Path, where: str) -> str:
    """What a file is, by its name or its first bytes.

    "csv", "parquet", "duckdb", "excel", "sqlite"; or "folder", of Parquet files.
    """
    if path.is_dir():
        return "folder"
    head = _head(path, where)
    if path.suffix.lower() in (".xlsx", ".xlsm") and head.startswith(b"PK\x03\x04"):
        return "excel"
    if head.startswith(b"SQLite format 3"):
        return "sqlite"
    if path.suffix.lower() in (".parquet", ".pq") or head.startswith(b"PAR1\x15"):
        return "parquet"
    if path.suffix.lower() in (".duckdb", ".ddb") or head[8:12] == b"DUCK":
        return "duckdb"
    for magic, name in NOT_TEXT.items():
        if head.startswith(magic):
            raise InputError(f"{where}: looks like {name}. Export the table as CSV or Parquet.")
    return "csv"


def _read_foreign(
    kind: str, path: Path, wanted: Sequence[str], options: ReadOptions, where: str
) -> _Table:
    """A sheet of a workbook, or a table of an SQLite database."""
    if kind == "excel":
        table = read_excel(path, wanted, options.table, options.skip_lines, where)
    else:
        table = read_sqlite(path, wanted, options.table, where)
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    return _arrow(table, wanted, kind, where, sha256)


def read_whole(source: Any, options: ReadOptions, where: str) -> dict[str, pa.ChunkedArray]:
    """All columns of a source other than delimited text, in their own types."""
    if is_url(source):
        table = read_postgres(source, (), options.table, where)
        return _arrow(table, (), "postgres", where).columns
    if isinstance(source, str | os.PathLike):
        return _read_file(Path(located(source)), (), options, where).columns
    return _read_frame(source, (), where).columns


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
            table = parquet.read(columns=list(wanted) or None)
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
            picked = ", ".join(map(_quoted, wanted)) or "*"
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
            name: from_pandas(source.iloc[:, names.index(name)], name, where) for name in wanted
        }
        return _Table("pandas", columns, len(source))
    if (polars := sys.modules.get("polars")) and isinstance(source, polars.DataFrame):
        require_columns(source.columns, wanted, where)
        picked = source.select(wanted) if wanted else source
        return _arrow(picked.to_arrow(), wanted, "polars", where)
    if polars and isinstance(source, polars.LazyFrame):
        require_columns(source.collect_schema().names(), wanted, where)
        picked = source.select(wanted) if wanted else source
        return _arrow(picked.collect().to_arrow(), wanted, "polars", where)
    if isinstance(source, ds.Dataset):
        require_columns(source.schema.names, wanted, where)
        return _arrow(source.to_table(columns=list(wanted) or None), wanted, "arrow", where)
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    if not hasattr(source, "__arrow_c_stream__"):
        raise InputError(
            f"{where}: not a table. Give a path, a pandas or polars frame, or an Arrow table or "
            "dataset."
        )
    if not isinstance(source, pa.Table):
        source = pa.RecordBatchReader.from_stream(source).read_all()
    return _arrow(source, wanted, "arrow", where)


def _arrow(
    table: pa.Table, wanted: Sequence[str], kind: str, where: str, sha256: str | None = None
) -> _Table:
    require_columns(table.column_names, wanted, where)
    columns = {name: table.column(name) for name in wanted or table.column_names}
    for name, column in columns.items():
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            raise no_text(name, f"{column.type}, with values that are not valid", where) from None
    return _Table(kind, columns, table.num_rows, sha256)
