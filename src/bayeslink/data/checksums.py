"""Checksums of inputs: what is read again must be what was read first."""

from __future__ import annotations

import hashlib
from pathlib import Path

from bayeslink.errors import ChangedInputError, InputError

LOGS = {"duckdb": ".wal", "sqlite": "-wal"}  # endings of the logs beside databases


def checksum(path: Path, kind: str) -> str:
    """SHA-256 of a file; of a database, with its write-ahead log; of a folder, of all its files."""
    if kind == "folder":
        digest = hashlib.sha256()
        for file in folder_files(path):
            digest.update(file.relative_to(path).as_posix().encode())
            digest.update(_digest(file).digest())
        return digest.hexdigest()
    digest = _digest(path)
    try:
        log = path.with_name(path.name + LOGS[kind]).read_bytes() if kind in LOGS else b""
    except FileNotFoundError:
        log = b""
    digest.update(log)
    return digest.hexdigest()


def folder_files(folder: Path) -> list[Path]:
    """The Parquet files below a folder, hidden ones left out."""
    return sorted(
        file for file in folder.rglob("*.parquet")
        if not any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)
    )  # fmt: skip


def require_same(now: str | None, then: str | None, where: str) -> None:
    """Refuse an input with another checksum than at the first reading; tables have none."""
    if now is not None and then is not None and now != then:
        raise ChangedInputError(
            f"{where}, has changed since the run read it (SHA-256 {then[:12]}… then, {now[:12]}… "
            "now). Put the file back as it was, or link again."
        )


def require_whole(path: Path, kind: str, before: str, where: str) -> None:
    """Refuse a file that was written to while it was read."""
    if checksum(path, kind) != before:
        raise InputError(
            f"{where}: the file changed while it was read. Wait until whatever writes it has "
            "finished, then link again."
        )


def _digest(path: Path) -> hashlib._Hash:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256")
