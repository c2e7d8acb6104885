"""Rows of Python values, as workbooks and databases give them -> Arrow columns."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from bayeslink.data.cell_texts import TEXT
from bayeslink.data.headers import require_columns
from bayeslink.errors import InputError

_CELL = 60  # bytes that Python takes for a short cell, about


def chosen(names: Sequence[str], asked: str | None, what: str, where: str) -> str:
    """The name asked for, or the only one there is."""
    if asked in names:
        return str(asked)
    if asked is None and len(names) == 1:
        return names[0]
    wrong = f"which {what} is not said" if asked is None else f"there is no {what} {asked!r}"
    shown = ", ".join(map(repr, names)) or "none"
    raise InputError(f"{where}: {wrong}. Name one with --table (table=). It has: {shown}.")


def columns(
    names: list[str],
    rows: Iterable[Sequence[Any]],
    wanted: Sequence[str] | None,
    where: str,
    most: int,
) -> pa.Table:
    """Columns from rows of Python values: whole numbers if all are, else text.

    More than `most` bytes of them are refused.
    """
    kept = names if wanted is None else wanted
    require_columns(names, kept, where)
    picked = [names.index(name) for name in kept]
    size = 0
    cells: list[list[Any]] = [[] for _ in picked]
    for row in rows:
        if any(value is not None for value in row):
            for column, k in zip(cells, picked, strict=True):
                column.append(row[k] if k < len(row) else None)
                size += _CELL + (len(column[-1]) if isinstance(column[-1], str | bytes) else 0)
            if size > most:
                raise too_large(where)
    arrays = [
        array_of(column, names[k], where, strict=wanted is not None)
        for column, k in zip(cells, picked, strict=True)
    ]
    return pa.table(arrays, [names[k] for k in picked])


def too_large(where: str) -> InputError:
    """That a table does not fit into memory."""
    return InputError(
        f"{where}: the table or query takes more than half of the memory budget. Give a larger "
        "one (--memory), or read fewer columns or rows."
    )


def array_of(cells: list[Any], name: str, where: str, *, strict: bool = True) -> pa.Array:
    """One column of Python values; bytes are refused if `strict`, else left as they are."""
    if all(cell is None or type(cell) is int for cell in cells):
        try:
            return pa.array(cells, pa.int64())
        except OverflowError:
            pass
    try:
        return pa.array([None if cell is None else cell_text(cell) for cell in cells], TEXT)
    except TypeError:
        if not strict and all(isinstance(cell, bytes | None) for cell in cells):
            return pa.array(cells, pa.large_binary())
        raise InputError(
            f"{where}: column {name!r} holds bytes or other values that have no text form. Leave "
            "it out, or turn it into text first."
        ) from None


def cell_text(cell: Any) -> str:
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


def quoted(name: str) -> str:
    """A name as SQL takes it."""
    return '"' + name.replace('"', '""') + '"'


def lacks(where: str, what: str, package: str, extra: str) -> InputError:
    """That a package is not installed."""
    return InputError(
        f"{where}: {what} needs the {package} package. Install it with pip install "
        f"'bayeslink[{extra}]'."
    )
