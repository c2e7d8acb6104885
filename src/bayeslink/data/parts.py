"""An input in several parts, one below another: a list of files or tables."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from bayeslink.data.cell_texts import TEXT, as_text
from bayeslink.data.checksums import checksum
from bayeslink.data.locations import is_path, located
from bayeslink.data.sources import file_kind


def sum_of(sums: Sequence[str | None]) -> str | None:
    """One checksum of several; None where a part has none."""
    known = [one for one in sums if one is not None]
    return hashlib.sha256("".join(known).encode()).hexdigest() if len(known) == len(sums) else None


def sum_now(part: Any, where: str) -> str | None:
    """The checksum of a part before it is read; tables and databases over a network have none."""
    if not is_path(part):
        return None
    path = Path(located(part))
    return checksum(path, file_kind(path, where))


def below(tables: Sequence[pa.Table], where: str) -> pa.Table:
    """Tables one below another: a column has its type where all agree on it, and is text elsewhere.

    What a table lacks is missing there.
    """
    names = dict.fromkeys(name for table in tables for name in table.column_names)
    columns = {}
    for name in names:
        there = [table[name] for table in tables if name in table.column_names]
        types = {column.type for column in there}
        kind = types.pop() if len(types) == 1 else TEXT
        parts = [
            pa.nulls(len(table), kind)
            if name not in table.column_names
            else table[name].combine_chunks()
            if table[name].type == kind
            else as_text(table[name], name, where)
            for table in tables
        ]
        columns[name] = pa.chunked_array(parts, kind)
    return pa.table(columns)
