"""Files and frames -> tables of Arrow columns, before any check on their values."""

from __future__ import annotations

import os
import stat
import sys
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from bayeslink.data.cell_texts import from_pandas, no_text
from bayeslink.data.checksums import checksum, folder_files, require_whole
from bayeslink.data.delimited import ZIP, read_delimited
from bayeslink.data.duckdb_tables import read_duckdb
from bayeslink.data.excel import read_excel
from bayeslink.data.headers import require_columns
from bayeslink.data.locations import is_url, located
from bayeslink.data.sql_tables import read_postgres, read_sqlite
from bayeslink.errors import InputError

if TYPE_CHECKING:
    from bayeslink.data.read_options import ReadOptions

NOT_TEXT = {
    ZIP: "an Excel workbook without the ending .xlsx",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook",
    b"ARROW1": "a Feather file",
    b"BZh": "a file compressed by bzip2",
    b"\xfd7zXZ": "a file compressed by xz",
    b"\x28\xb5\x2f\xfd": "a file compressed by Zstandard",
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


def read_source(
    source: Any, wanted: Wanted, options: ReadOptions, where: str, memory: int
) -> Table:
    """Columns of whatever can be read: a file, a folder, a database or a frame."""
    if is_url(source):
        read = read_postgres(source, wanted, options.table, where, memory)
        return _arrow(read, wanted, "postgres", where)
    if isinstance(source, str | os.PathLike):
        return read_file(Path(located(source)), wanted, options, where, memory)
    return read_frame(source, wanted, where)


def read_file(path: Path, wanted: Wanted, options: ReadOptions, where: str, memory: int) -> Table:
    """Columns of a file of any kind, or of a folder of Parquet files."""
    try:
        kind = file_kind(path, where)
        if kind != "csv":
            sha256 = checksum(path, kind)
            read = _read_typed(path, kind, wanted, options, where, memory)
            require_whole(path, kind, sha256, where)
            kind = "parquet" if kind == "folder" else kind
            return _arrow(read, wanted, kind, where, sha256)
        text = read_delimited(path, wanted, options, where)
    except OSError as error:
        raise InputError(
            f"{where}: cannot be read ({error.strerror}). Check the path and its permissions."
        ) from None
    return Table("csv", text.columns, len(text.lines), text.sha256, text.lines, (*text.misfits,))


def _read_typed(
    path: Path, kind: str, wanted: Wanted, options: ReadOptions, where: str, memory: int
) -> pa.Table:
    if kind == "folder":
        return _read_folder(path, wanted, where)
    if kind == "parquet":
        return _read_parquet(path, wanted, where)
    if kind == "excel":
        return read_excel(path, wanted, options.table, options.skip_lines, where, memory)
    read_database = read_duckdb if kind == "duckdb" else read_sqlite
    return read_database(path, wanted, options.table, where, memory)


def file_kind(path: Path, where: str) -> str:
    """What a file is, by its name or its first bytes.

    "csv", "parquet", "duckdb", "excel", "sqlite"; or "folder", of Parquet files.
    """
    head = _head(path, where)
    if head is None:
        return "folder"
    if path.suffix.lower() in (".xlsx", ".xlsm") and head.startswith(ZIP):
        return "excel"
    if head.startswith(b"SQLite format 3"):
        return "sqlite"
    if path.suffix.lower() in (".parquet", ".pq") or head.startswith(b"PAR1\x15"):
        return "parquet"
    if path.suffix.lower() in (".duckdb", ".ddb") or head[8:12] == b"DUCK":
        return "duckdb"
    if head.startswith(ZIP) and not _is_workbook(path):
        return "csv"
    for magic, name in NOT_TEXT.items():
        if head.startswith(magic):
            raise InputError(f"{where}: looks like {name}. Export the table as CSV or Parquet.")
    return "csv"


def _is_workbook(path: Path) -> bool:
    """Whether a zip archive is what Office programs write; one that is damaged is told later."""
    try:
        with zipfile.ZipFile(path) as archive:
            return "[Content_Types].xml" in archive.namelist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError):
        return False


def _head(path: Path, where: str) -> bytes | None:
    """First bytes of a file, None of a folder; a pipe or device is refused before it is opened."""
    try:
        mode = path.stat().st_mode
    except ValueError:  # NUL in the name
        raise InputError(f"{where}: cannot be read, not a possible path.") from None
    if stat.S_ISDIR(mode):
        return None
    if not stat.S_ISREG(mode):
        raise InputError(f"{where}: not a regular file. Give the path of one file.")
    with path.open("rb") as file:
        return file.read(16)


def _read_parquet(path: Path, wanted: Wanted, where: str) -> pa.Table:
    with path.open("rb") as file:
        try:
            parquet = pq.ParquetFile(file, page_checksum_verification=True)
            names = _required(parquet.schema_arrow.names, wanted, where)
            return parquet.read(columns=names)
        except InputError:
            raise
        except (pa.ArrowException, OSError, ValueError):
            raise InputError(
                f"{where}: not a whole Parquet file, or a damaged one. Copy or write it again."
            ) from None


def _read_folder(path: Path, wanted: Wanted, where: str) -> pa.Table:
    """All Parquet files below a folder; year=2024 in a path is a column.

    The values of such columns are text: 007 stays 007.
    """
    files = folder_files(path)
    if not files:
        raise InputError(
            f"{where}: not a regular file, and a folder without Parquet files. Give the path of "
            "one file, or of a folder of Parquet files."
        )
    import pyarrow.dataset as ds  # draws in pandas where that is installed: .1 s

    parts = [part for part in files[0].relative_to(path).parts[:-1] if "=" in part]
    keys = pa.schema([(part.partition("=")[0], pa.string()) for part in parts])
    try:
        dataset = ds.dataset(
            [str(file) for file in files],
            format="parquet",
            partitioning=ds.partitioning(keys, flavor="hive"),
            partition_base_dir=str(path),
        )
        names = _required(dataset.schema.names, wanted, where)
        return dataset.to_table(columns=names)
    except (pa.ArrowException, OSError, ValueError):
        raise InputError(
            f"{where}: its Parquet files are damaged, or differ in their columns. Write it again."
        ) from None


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
        return _arrow(_from_polars(source.select(names), where), names, "polars", where)
    if polars and isinstance(source, polars.LazyFrame):
        names = _required(source.collect_schema().names(), wanted, where)
        return _arrow(_from_polars(source.select(names).collect(), where), names, "polars", where)
    if (ds := sys.modules.get("pyarrow.dataset")) and isinstance(source, ds.Dataset):
        names = _required(source.schema.names, wanted, where)
        return _arrow(source.to_table(columns=names), names, "arrow", where)
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    if not hasattr(source, "__arrow_c_stream__"):
        raise InputError(
            f"{where}: not a table. Give a path, a pandas or polars frame, or an Arrow table or "
            "dataset."
        )
    if not isinstance(source, pa.Table):
        try:
            source = pa.RecordBatchReader.from_stream(source).read_all()
        except pa.ArrowException as error:
            raise InputError(
                f"{where}: Arrow cannot take it over ({type(error).__name__}). Give a table whose "
                "columns are of types that Arrow has, or turn the others into text."
            ) from None
    return _arrow(source, wanted, "arrow", where)


def _from_polars(frame: Any, where: str) -> pa.Table:
    """As Arrow; whole numbers and objects that it has no type for are text."""
    import polars

    for name, kind in frame.schema.items():
        if kind == polars.Object:
            texts = [None if cell is None else str(cell) for cell in frame[name]]
            frame = frame.with_columns(polars.Series(name, texts, polars.String))
        elif str(kind) in ("Int128", "UInt128"):
            frame = frame.with_columns(polars.col(name).cast(polars.String))
    return frame.to_arrow()


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
