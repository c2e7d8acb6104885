"""Tables and queries of SQLite and Postgres, read without letting SQL do anything else.

As for DuckDB (see `duckdb_tables`): exactly one SELECT is run, read-only, within bounds of memory
and of time.
"""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from bayeslink.data.databases import SECONDS, no_select, too_late
from bayeslink.data.python_cells import chosen, columns, lacks, quoted, too_large
from bayeslink.errors import InputError

_QUERY = re.compile(r"\s*(select|with|values)\b", re.IGNORECASE)
_RECURSIVE = 33  # SQLITE_RECURSIVE, which Python does not name
_ALLOWED = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, _RECURSIVE}
_STEPS = 100_000  # of SQLite, after each of which the time is looked at


def read_sqlite(
    path: Path, wanted: Sequence[str] | None, table: str | None, where: str, memory: int
) -> pa.Table:
    """The wanted columns of a table or query, all if none is named."""
    connection = _connected(path, where, memory)
    start = time.monotonic()

    def late() -> bool:
        return time.monotonic() - start > SECONDS

    try:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(10**9, max(memory // 2, 2**20)))
        found = connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
        tables = [name for (name,) in found if not name.startswith("sqlite_")]
        connection.set_authorizer(_authorized)
        connection.set_progress_handler(late, _STEPS)
        if table is not None and table not in tables and len(table.split()) > 1:
            query = _one_select(table, where)
        else:
            query = f"SELECT * FROM {quoted(chosen(tables, table, 'table', where))}"
        rows = connection.execute(query)
        names = [column[0] for column in rows.description]
        return columns(names, rows, wanted, where, memory // 2)
    except (sqlite3.Error, sqlite3.Warning) as error:
        if late():
            raise too_late(where, SECONDS) from None
        if "one statement" in str(error):
            raise no_select(where) from None
        # Messages about names and syntax are safe: SQLite quotes no cell in them.
        raise InputError(
            f"{where}: SQLite cannot read it ({error}). Check that the file is whole and that the "
            "query runs and only reads."
        ) from None
    finally:
        connection.close()


def _connected(path: Path, where: str, memory: int) -> sqlite3.Connection:
    if path.resolve().exists():
        return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    # The copy of standard input has no name, and SQLite asks for one.
    if path.stat().st_size > memory // 2:
        raise too_large(where)
    connection = sqlite3.connect(":memory:")
    connection.deserialize(path.read_bytes())
    return connection


def _authorized(action: int, first: str | None, second: str | None, *_: Any) -> int:
    safe = action in _ALLOWED and (second or "").lower() != "load_extension"
    return sqlite3.SQLITE_OK if safe else sqlite3.SQLITE_DENY


def read_postgres(
    url: str, wanted: Sequence[str] | None, table: str | None, where: str, memory: int
) -> pa.Table:
    """The wanted columns of a table or query of a Postgres database, through ADBC."""
    try:
        from adbc_driver_postgresql import dbapi
    except ImportError:
        raise lacks(where, "Postgres", "adbc-driver-postgresql", "postgres") from None
    if table is None:
        raise InputError(
            f"{where}: which table is not said. Name one, or give a SELECT query, with --table "
            "(table=)."
        )
    if len(table.split()) > 1:
        query = _one_select(table, where)
        if ";" in query:  # nobody here can tell one in a text from one that ends a statement
            raise no_select(where)
    else:
        query = f"SELECT * FROM {'.'.join(map(quoted, table.split('.')))}"
    picked = "*" if wanted is None else ", ".join(map(quoted, wanted))
    try:
        with dbapi.connect(url) as connection, connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION READ ONLY")
            cursor.execute(f"SET LOCAL statement_timeout = '{SECONDS}s'")
            cursor.execute(f"SELECT {picked} FROM ({query}\n) AS asked")
            return _fetched(cursor.fetch_record_batch(), memory // 2, where)
    except (dbapi.Error, pa.ArrowException, OSError) as error:
        # A message may quote a cell, or the address with its password.
        raise InputError(
            f"{where}: Postgres cannot give it ({type(error).__name__}). Check the address, the "
            "names of table and columns, that you may read them, and that it takes less than "
            f"{SECONDS} seconds."
        ) from None


def _fetched(reader: pa.RecordBatchReader, most: int, where: str) -> pa.Table:
    batches, size = [], 0
    for batch in reader:
        size += batch.nbytes
        if size > most:
            raise too_large(where)
        batches.append(batch)
    return pa.Table.from_batches(batches, reader.schema)


def _one_select(query: str, where: str) -> str:
    """The query, if it begins as one that only reads, without the semicolon that may end it."""
    if not _QUERY.match(query):
        raise no_select(where)
    return query.strip().rstrip(";")
