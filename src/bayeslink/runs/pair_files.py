"""Pairs of ids from whatever holds some: a run, its directory, a file, a table, rows."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa

from bayeslink.data.id_pairs import SIDES, id_pairs
from bayeslink.data.records import read_records
from bayeslink.runs.opening import open_linkage
from bayeslink.runs.run import Run


def pairs_of(source: Any, role: str) -> pa.Table:
    """Pairs of ids as two columns of text; of a run, and of links with a decision, the links.

    Parameters
    ----------
    source
        A `Run`, a run directory, a file or a table with columns `id_a` and `id_b`, or rows of two.
    role
        What messages call it: "links", "truth", …
    """
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        if path.is_dir():
            return id_pairs(open_linkage(path).table, "links")
        return id_pairs(_read_file(path, role), role)
    if isinstance(source, Run):
        return id_pairs(source.table, "links")
    return id_pairs(source, role)


def _read_file(path: Path, role: str) -> pa.Table:
    how: dict[str, Any] = {"id": None, "side": f"({role})", "may_be_empty": True}
    found = read_records(path, columns=None, **how)
    if not found.columns:  # a header alone: nobody is in both
        found = read_records(path, columns=SIDES, **how)
    return pa.table(found.columns)
