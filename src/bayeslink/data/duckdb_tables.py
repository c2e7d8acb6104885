"""Tables and queries of a DuckDB database, read without letting SQL do anything else.

SQL is code, and may come from somebody else's link.toml or stand in a view of their database. So
exactly one SELECT is run, read-only, with files, extensions and settings out of its reach, within
bounds of memory, of rows and of time.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Timer
from typing import Any

import pyarrow as pa

from bayeslink.data.databases import SECONDS, no_select, too_late
from bayeslink.data.headers import require_columns
from bayeslink.data.python_cells import quoted, too_large
from bayeslink.errors import InputError

MOST_ROWS = 10**11  # that any step of a query may be expected to go through
BATCH_ROWS = 100_000
_SHUT = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",  # a name in a query is no Python variable
    "temp_directory": "",
    "lock_configuration": "true",
}


def read_duckdb(
    path: Path, wanted: Sequence[str] | None, table: str | None, where: str, memory: int
) -> pa.Table:
    """The wanted columns of a table or query, all if none is named."""
    try:
        import duckdb
    except ImportError:
        raise InputError(
            f"{where}: a DuckDB database needs the duckdb package. Install it with "
            "pip install 'bayeslink[duckdb]'."
        ) from None
    config: dict[str, Any] = {**_SHUT, "memory_limit": f"{max(memory // 2, 2**26)}B"}
    try:
        with duckdb.connect(path.absolute(), read_only=True, config=config) as connection:
            query = _query(connection, table, where)
            with _limited(connection, where):
                found = connection.sql(f"FROM ({query}\n) LIMIT 0").columns
                names = found if wanted is None else wanted
                require_columns(found, names, where)
                picked = f"SELECT {', '.join(map(quoted, names))} FROM ({query}\n)"
                _refuse_endless(connection, picked, where)
                return _fetch(connection.sql(picked), memory // 2, where)
    except (duckdb.Error, pa.ArrowException, OSError) as error:  # Arrow passes DuckDB's on
        raise _refusal(duckdb, error, where) from None


def _query(connection: Any, table: str | None, where: str) -> str:
    """The SELECT that reads the table of this name, or the query that was given instead."""
    found = connection.sql("SELECT table_schema, table_name FROM information_schema.tables")
    tables = {(name, f"{schema}.{name}"): (schema, name) for schema, name in found.fetchall()}
    for names, parts in tables.items():
        if table in names:
            return f"SELECT * FROM {'.'.join(map(quoted, parts))}"
    if table is not None and len(table.split()) > 1:
        return _one_select(connection, table, where)
    shown = ", ".join(repr(names[0]) for names in tables) or "none"
    wrong = "which table is not said" if table is None else f"there is no table {table!r}"
    raise InputError(
        f"{where}: {wrong}. Name a table or give a SELECT query with --table (table=). "
        f"Tables: {shown}."
    )


def _one_select(connection: Any, query: str, where: str) -> str:
    """The query, if it is one SELECT, without the semicolon that may end it."""
    import duckdb

    statements = connection.extract_statements(query)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise no_select(where)
    for at in (k for k, character in enumerate(query) if character == ";"):
        try:  # what follows the end is nothing, or a comment; within a text it is neither
            if not connection.extract_statements(query[at + 1 :]):
                return query[:at]
        except duckdb.Error:
            continue
    return query


def _refuse_endless(connection: Any, query: str, where: str) -> None:
    """Refuse a query that DuckDB itself expects to go through more rows than any file has."""
    plan = json.loads(connection.execute(f"EXPLAIN (FORMAT json) {query}").fetchall()[0][1])
    if (rows := max(_expected_rows(plan), default=0)) > MOST_ROWS:
        raise InputError(
            f"{where}: the query goes through about {rows:.0e} rows; at most {MOST_ROWS:.0e} are "
            "gone through. It was not run. Join or select less, or write its result to a table."
        )


def _expected_rows(steps: Any) -> Iterator[float]:
    for step in steps:
        told = step.get("extra_info", {}).get("Estimated Cardinality", "0")
        yield float(told) if str(told).isdigit() else 0.0
        yield from _expected_rows(step.get("children", ()))


def _fetch(result: Any, most: int, where: str) -> pa.Table:
    """The result as Arrow, batch by batch: DuckDB's own limit does not count these."""
    batches, size = [], 0
    with result.arrow(BATCH_ROWS) as reader:  # one left open would hold the database
        for batch in reader:
            size += batch.nbytes
            if size > most:
                raise too_large(where)
            batches.append(batch)
        return pa.Table.from_batches(batches, reader.schema)


@contextmanager
def _limited(connection: Any, where: str) -> Iterator[None]:
    """Interrupt a query that takes too long."""
    late = Event()

    def stop() -> None:
        late.set()
        connection.interrupt()

    timer = Timer(SECONDS, stop)
    timer.daemon = True
    timer.start()
    try:
        yield
    except Exception:
        if not late.is_set():
            raise
        raise too_late(where, SECONDS) from None
    finally:
        timer.cancel()


def _refusal(duckdb: Any, error: Exception, where: str) -> InputError:
    """What DuckDB said, in words that never quote a cell, as one about a failed cast would."""
    kind = str(error).partition(":")[0]  # Arrow keeps the message, not the class
    if kind.startswith("Out of Memory"):
        return too_large(where)
    if kind == "Permission Error":
        return InputError(
            f"{where}: the query, or a view of the database, reads or writes files or extensions. "
            "Only the tables of the database itself can be read; load what it needs into a table."
        )
    safe = (duckdb.CatalogException, duckdb.ParserException, duckdb.BinderException)
    reason = str(error) if isinstance(error, safe) else type(error).__name__
    return InputError(
        f"{where}: DuckDB cannot read it ({reason}). Check that it is a DuckDB database, not "
        "open for writing elsewhere, and that the query runs."
    )
