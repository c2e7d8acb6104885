"""Files and frames -> tables of Arrow columns, before any check on their values."""

from __future__ import annotations

import hashlib
import stat
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from bayeslink.data.cell_texts import from_pandas, no_text
from bayeslink.data.delimited import read_delimited, require_columns
from bayeslink.data.duckdb_tables import read_duckdb
from bayeslink.errors import InputError

if TYPE_CHECKING:
    from bayeslink.data.records import ReadOptions

NOT_TEXT = {
    b"PK\x03\x04": "an Excel workbook or zip archive",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook",
    b"SQLite format 3": "an SQLite database",
    b"ARROW1": "a Feather file",
}
Wanted = Sequence[str] | None  # None: all columns that can be had


@dataclass(frozen=True, slots=True)
class Table:
    """What a source gave before any check on its values."""

    kind: str
    columns: dict[str, pa.ChunkedArray]
    rows: int
    sha256: str | None = None
    lines: npt.NDArray[np.int64] | None = None
    misfits: tuple[tuple[int, int], ...] = ()
    unusable: tuple[str, ...] = ()  # columns left out of those that can be had


def read_file(path: Path, wanted: Wanted, options: ReadOptions, where: str, memory: int) -> Table:
    """Columns of a Parquet file, a DuckDB database or a delimited text file."""
    try:
        head = _head(path, where)
        if path.suffix.lower() in (".parquet", ".pq") or head.startswith(b"PAR1\x15"):
            return _read_parquet(path, wanted, where)
        if path.suffix.lower() in (".duckdb", ".ddb") or head[8:12] == b"DUCK":
            read, sha256 = read_duckdb(path, wanted, options.table, where, memory)
            return _arrow(read, wanted, "duckdb", where, sha256)
        for magic, name in NOT_TEXT.items():
            if head.startswith(magic):
                raise InputError(f"{where}: looks like {name}. Export the table as CSV or Parquet.")
        text = read_delimited(
            path,
            wanted,
            where=where,
            encoding=options.encoding,
            delimiter=options.delimiter,
            skip_lines=options.skip_lines,
            set_aside=options.quarantine is not None,
            multiline=options.multiline,
        )
    except OSError as error:
        raise InputError(
            f"{where}: cannot be read ({error.strerror}). Check the path and its permissions."
        ) from None
    return Table("csv", text.columns, len(text.lines), text.sha256, text.lines, (*text.misfits,))


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


def _read_parquet(path: Path, wanted: Wanted, where: str) -> Table:
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        try:
            parquet = pq.ParquetFile(file, page_checksum_verification=True)
            names = _required(parquet.schema_arrow.names, wanted, where)
            table = parquet.read(columns=names)
        except InputError:
            raise
        except (pa.ArrowException, OSError, ValueError):
            raise InputError(
                f"{where}: not a whole Parquet file, or a damaged one. Copy or write it again."
            ) from None
    return _arrow(table, wanted, "parquet", where, sha256)


def read_frame(source: Any, wanted: Wanted, where: str) -> Table:
    """Columns of a pandas or polars DataFrame or of anything Arrow can take over."""
    if (pandas := sys.modules.get("pandas")) and isinstance(source, pandas.DataFrame):
        names = [str(name) for name in source.columns]
        columns, unusable = usable(
            _required(names, wanted, where),
            lambda name: from_pandas(source.iloc[:, names.index(name)], name, where),
            strict=wanted is not None,
        )
        return Table("pandas", columns, len(source), unusable=unusable)
    if (polars := sys.modules.get("polars")) and isinstance(source, polars.DataFrame):
        names = _required(source.columns, wanted, where)
        return _arrow(source.select(names).to_arrow(), names, "polars", where)
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
    table: pa.Table, wanted: Wanted, kind: str, where: str, sha256: str | None = None
) -> Table:
    columns = {name: table.column(name) for name in _required(table.column_names, wanted, where)}
    for name, column in columns.items():
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            raise no_text(name, f"{column.type}, with values that are not valid", where) from None
    return Table(kind, columns, table.num_rows, sha256)


def _required(names: Sequence[str], wanted: Wanted, where: str) -> list[str]:
    """The wanted names, all if none is named, after a check that they are there, each once."""
    found = list(names if wanted is None else wanted)
    require_columns(names, found, where)
    return found


def usable(
    names: Sequence[str], get: Callable[[str], Any], *, strict: bool
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What `get` gives for each name, and the names it refuses; `strict`: the refusal itself."""
    found: dict[str, Any] = {}
    for name in names:
        try:
            found[name] = get(name)
        except InputError:
            if strict:
                raise
    return found, tuple(name for name in names if name not in found)
