"""What holds for every database: one SELECT, within bounds of time, and a hash with its log."""

from __future__ import annotations

import hashlib
from pathlib import Path

from bayeslink.errors import InputError

SECONDS = 600  # that a query may take
LOGS = {"duckdb": ".wal", "sqlite": "-wal"}  # endings of the logs beside databases


def file_sha256(path: Path, kind: str) -> str:
    """Hash of a file; of a database, with what is still in the write-ahead log beside it."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
    try:
        log = path.with_name(path.name + LOGS[kind]).read_bytes() if kind in LOGS else b""
    except FileNotFoundError:
        log = b""
    digest.update(log)
    return digest.hexdigest()


def no_select(where: str) -> InputError:
    """That a query is not one SELECT."""
    return InputError(
        f"{where}: --table (table=) must be the name of a table or one SELECT query, and this "
        "is something else. Nothing of it was run. If the settings came from somebody else, "
        "ask what it is for."
    )


def too_late(where: str, seconds: float) -> InputError:
    """That a query takes too long."""
    return InputError(
        f"{where}: the query takes longer than {seconds} seconds and was stopped. Write its "
        "result to a table, and name that."
    )
