"""The files of a run directory, read and checked.

A directory may be damaged, edited by hand, of another version or made by somebody else. A file of
it is read whole or refused in one line that names the file and what to do; whoever reads on can
rely on every key of run.json and every column of the tables.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

import pyarrow as pa

from bayeslink.errors import reason_of
from bayeslink.pairs.pair_tables import with_text_ids
from bayeslink.runs import tables
from bayeslink.runs.run_json import cannot_read, not_as_written, read_linkage
from bayeslink.runs.schema import NotAsWrittenError
from bayeslink.runs.state import FILE as STATE
from bayeslink.runs.state import State


class RunFiles:
    """A run directory, of which each file is read once, when somebody asks for it."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.summary = read_linkage(self.folder)
        self._tables: dict[str, pa.Table] = {}

    @cached_property
    def state(self) -> State:
        """state.npz."""
        return State(self.folder / STATE, self._content(STATE))

    @cached_property
    def link_toml(self) -> str:
        """link.toml, which people may edit."""
        path = self.folder / "link.toml"
        try:
            return path.read_text("utf-8")
        except (OSError, ValueError) as error:
            raise cannot_read(path, reason_of(error)) from None

    def table(self, name: str) -> pa.Table | None:
        """A table with ids as text; None if the run has none of that name."""
        if not tables.is_there(name, self.summary):
            return None
        if name not in self._tables:
            self._tables[name] = self._read_table(name)
        return self._tables[name]

    def fingerprint(self) -> str:
        """Hash of the candidate pairs and links: a sample is of one run only."""
        return fingerprint(self.summary["files"], ("pairs", "links"))

    def _read_table(self, name: str) -> pa.Table:
        path, content = self.folder / f"{name}.parquet", self._content(f"{name}.parquet")
        try:
            table = tables.table_in(content)
        except (OSError, ValueError, MemoryError, pa.ArrowException) as error:
            raise cannot_read(path, reason_of(error)) from None
        try:
            table = with_text_ids(table)
            tables.check(table, name, tables.extent_of(self.summary, self._n_pairs(name)))
        except NotAsWrittenError as error:
            raise not_as_written(path, str(error)) from None
        return table

    def _n_pairs(self, name: str) -> int:
        """Rows of the table of pairs, to which draws of links refer."""
        pairs = self.table("pairs") if name == "link_draws" else None
        return 0 if pairs is None else len(pairs)

    def _content(self, name: str) -> bytes:
        """The bytes of a file, if they are those that the run wrote."""
        path = self.folder / name
        try:
            content = path.read_bytes()
        except OSError as error:
            raise cannot_read(path, reason_of(error)) from None
        if self.summary["files"].get(name) not in (None, hashlib.sha256(content).hexdigest()):
            raise cannot_read(path, "it is not as the run wrote it")
        return content


def digests_of(folder: Path) -> dict[str, str]:
    """What run.json says of the files of a run: their SHA-256, by name."""
    found = {}
    for path in sorted(folder.iterdir()):
        with path.open("rb") as file:
            found[path.name] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def fingerprint(digests: Mapping[str, str], tables: Sequence[str]) -> str:
    """Hash of some tables of a run directory, from those of its files."""
    told = (digests.get(f"{name}.parquet") for name in tables)
    return hashlib.sha256(b"".join(bytes.fromhex(one) for one in told if one)).hexdigest()
