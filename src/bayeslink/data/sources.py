"""Inputs beside CSV, Parquet and DuckDB: Excel, SQLite, Postgres, Parquet folders, stdin."""

from __future__ import annotations

import atexit
import datetime as dt
import hashlib
import os
import re
import shutil
import sqlite3
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from bayeslink.data.cell_texts import TEXT
from bayeslink.data.delimited import GZIP_FREE, GZIP_RATIO, no_records, require_columns
from bayeslink.errors import InputError

STDIN = "-"
_QUERY = re.compile(r"\s*(select|with|values)\b", re.IGNORECASE)
_URL = re.compile(r"^(postgres|postgresql)://", re.IGNORECASE)


def is_url(source: Any) -> bool:
    """Whether this is the address of a Postgres database."""
    return isinstance(source, str) and _URL.match(source) is not None


def is_path(source: Any) -> bool:
    """Whether this is a file or folder that can be read again by its name."""
    return isinstance(source, str | os.PathLike) and str(source) != STDIN and not is_url(source)


def shown_url(url: str) -> str:
    """The address without user and password, for messages and run.json."""
    return re.sub(r"://[^@/]*@", "://", url.split("?")[0])


# --- Excel --------------------------------------------------------------------------------------


def read_excel(
    path: Path, wanted: Sequence[str], sheet: str | None, skip: int, where: str
) -> pa.Table:
    """One sheet of a workbook; its first row, after `skip` others, names the columns."""
    try:
        import openpyxl
    except ImportError:
        raise _lacks(where, "an Excel workbook", "openpyxl", "excel") from None
    _refuse_bomb(path, where)
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    except Exception as error:  # openpyxl raises whatever it stumbles over
        raise InputError(
            f"{where}: not a workbook that can be read ({type(error).__name__}). Save it again as "
            ".xlsx, or export the sheet as CSV."
        ) from None
    try:
        rows = book[_chosen(book.sheetnames, sheet, "sheet", where)].iter_rows(min_row=skip + 1)
        cells = ([_excel_value(cell) for cell in row] for row in rows)
        header = next(cells, [])
        names = ["" if name is None else str(_text(name)) for name in header]
        while names and not names[-1]:
            names.pop()
        return _columns(names, cells, wanted, where)
    finally:
        book.close()


def _refuse_bomb(path: Path, where: str) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
    except zipfile.BadZipFile:
        raise InputError(f"{where}: not a whole workbook. Copy or save it again.") from None
    if size > max(GZIP_FREE, GZIP_RATIO * path.stat().st_size):
        raise InputError(
            f"{where}: expands to more than {GZIP_RATIO} times its size, as files made to fill a "
            "disk do. Export the sheet as CSV yourself if you trust it."
        )


def _excel_value(cell: Any) -> Any:
    return None if getattr(cell, "data_type", "n") == "e" else cell.value  # e: such as #N/A


# --- SQLite -------------------------------------------------------------------------------------

_ALLOWED = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    33,
}  # 33: recursive


def read_sqlite(path: Path, wanted: Sequence[str], table: str | None, where: str) -> pa.Table:
    """A table of an SQLite database, or what a query gives; nothing but reading is allowed."""
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    try:
        found = connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
        tables = [name for (name,) in found if not name.startswith("sqlite_")]
        connection.set_authorizer(_authorized)
        if table is not None and table not in tables and _QUERY.match(table):
            query = table.strip().rstrip(";")
        else:
            query = f"SELECT * FROM {_quoted(_chosen(tables, table, 'table', where))}"
        rows = connection.execute(query)
        names = [column[0] for column in rows.description]
        return _columns(names, rows, wanted, where)
    except sqlite3.Error as error:
        # Messages about names and syntax are safe: SQLite quotes no cell in them.
        raise InputError(
            f"{where}: SQLite cannot read it ({error}). Check that the file is whole and that the "
            "query runs and only reads."
        ) from None
    finally:
        connection.close()


def _authorized(action: int, first: str | None, second: str | None, *_: Any) -> int:
    safe = action in _ALLOWED and (second or "").lower() != "load_extension"
    return sqlite3.SQLITE_OK if safe else sqlite3.SQLITE_DENY


# --- Postgres -----------------------------------------------------------------------------------


def read_postgres(url: str, wanted: Sequence[str], table: str | None, where: str) -> pa.Table:
    """A table or query of a Postgres database, through ADBC."""
    try:
        from adbc_driver_postgresql import dbapi
    except ImportError:
        raise _lacks(where, "Postgres", "adbc-driver-postgresql", "postgres") from None
    if table is None:
        raise InputError(
            f"{where}: which table is not said. Name one, or give a SELECT query, with --table "
            "(table=)."
        )
    parts = ".".join(map(_quoted, table.split(".")))
    query = table.strip().rstrip(";") if _QUERY.match(table) else f"SELECT * FROM {parts}"
    try:
        with dbapi.connect(url) as connection, connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION READ ONLY")
            picked = ", ".join(map(_quoted, wanted)) or "*"
            cursor.execute(f"SELECT {picked} FROM ({query}) AS asked")
            return cursor.fetch_arrow_table()
    except dbapi.Error as error:
        # A message may quote a cell, or the address with its password.
        raise InputError(
            f"{where}: Postgres cannot give it ({type(error).__name__}). Check the address, the "
            "names of table and columns, and that you may read them."
        ) from None


# --- folders and stdin --------------------------------------------------------------------------


def read_folder(path: Path, wanted: Sequence[str], where: str) -> tuple[pa.Table, str]:
    """All Parquet files below a folder, and one checksum of them; year=2024 in a path is a column.

    The values of such columns are text: 007 stays 007.
    """
    files = sorted(
        file for file in path.rglob("*.parquet")
        if not any(part.startswith((".", "_")) for part in file.relative_to(path).parts)
    )  # fmt: skip
    if not files:
        raise InputError(
            f"{where}: not a regular file, and a folder without Parquet files. Give the path of "
            "one file, or of a folder of Parquet files."
        )
    parts = [part for part in files[0].relative_to(path).parts[:-1] if "=" in part]
    keys = pa.schema([(part.partition("=")[0], pa.string()) for part in parts])
    try:
        dataset = ds.dataset(
            [str(file) for file in files],
            format="parquet",
            partitioning=ds.partitioning(keys, flavor="hive"),
            partition_base_dir=str(path),
        )
        require_columns(dataset.schema.names, wanted, where)
        table = dataset.to_table(columns=list(wanted) or None)
    except (pa.ArrowException, OSError, ValueError):
        raise InputError(
            f"{where}: its Parquet files are damaged, or differ in their columns. Write it again."
        ) from None
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.relative_to(path).as_posix().encode())
        with file.open("rb") as content:
            digest.update(hashlib.file_digest(content, "sha256").digest())
    return table, digest.hexdigest()


@cache
def stdin_file() -> Path:
    """Standard input as a file, which is gone when the program ends; read once."""
    folder = tempfile.mkdtemp(prefix="bayeslink-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = Path(folder) / "stdin"
    with path.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    if not path.stat().st_size:
        raise no_records("standard input")
    return path


# --- cells --------------------------------------------------------------------------------------


def _chosen(names: Sequence[str], asked: str | None, what: str, where: str) -> str:
    if asked in names:
        return str(asked)
    if asked is None and len(names) == 1:
        return names[0]
    wrong = f"which {what} is not said" if asked is None else f"there is no {what} {asked!r}"
    shown = ", ".join(map(repr, names)) or "none"
    raise InputError(f"{where}: {wrong}. Name one with --table (table=). It has: {shown}.")


def _columns(
    names: list[str], rows: Iterable[Sequence[Any]], wanted: Sequence[str], where: str
) -> pa.Table:
    """Columns from rows of Python values: whole numbers if all are, else text."""
    require_columns(names, wanted, where)
    picked = [names.index(name) for name in wanted or names]
    cells: list[list[Any]] = [[] for _ in picked]
    for row in rows:
        if any(value is not None for value in row):
            for column, k in zip(cells, picked, strict=True):
                column.append(row[k] if k < len(row) else None)
    arrays = [_array(column, names[k], where) for column, k in zip(cells, picked, strict=True)]
    return pa.table(arrays, [names[k] for k in picked])


def _array(cells: list[Any], name: str, where: str) -> pa.Array:
    if all(cell is None or type(cell) is int for cell in cells):
        try:
            return pa.array(cells, pa.int64())
        except OverflowError:
            pass
    try:
        return pa.array([None if cell is None else _text(cell) for cell in cells], TEXT)
    except TypeError:
        raise InputError(
            f"{where}: column {name!r} holds bytes or other values that have no text form. Leave "
            "it out, or turn it into text first."
        ) from None


def _text(cell: Any) -> str:
    """A value as a careful person would have typed it."""
    if isinstance(cell, str):
        return cell
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 2**53 else repr(cell)
    if isinstance(cell, dt.datetime) and cell.time() == dt.time():
        return cell.date().isoformat()
    if isinstance(cell, dt.date | dt.time):
        return cell.isoformat()
    if isinstance(cell, int):
        return str(cell)
    raise TypeError


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _lacks(where: str, what: str, package: str, extra: str) -> InputError:
    return InputError(
        f"{where}: {what} needs the {package} package. Install it with pip install "
        f"'bayeslink[{extra}]'."
    )


def located(source: Any) -> Any:
    """Where a source is: standard input becomes a file."""
    return (
        stdin_file() if isinstance(source, str | os.PathLike) and str(source) == STDIN else source
    )
