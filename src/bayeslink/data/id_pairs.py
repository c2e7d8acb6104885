"""Pairs of ids from any kind of table or rows, as two columns of text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bayeslink.errors import InputError

SIDES = ("id_a", "id_b")
TEXT = pa.large_string()
_TEXTS = (pa.string(), pa.large_string(), pa.string_view())


def id_pairs(source: Any, role: str) -> pa.Table:
    """Read pairs of any kind into two columns of text."""
    table = _table(source, role) if hasattr(source, "__arrow_c_stream__") else _rows(source, role)
    pairs = pa.table({side: id_text(table[side], f"{role}.{side}") for side in SIDES})
    if role in ("links", "known_links") and "decision" in table.column_names:
        pairs = pairs.filter(pc.equal(_text(table["decision"]), "link"))
    return pairs


def among(pairs: pa.Table, others: pa.Table) -> NDArray[np.bool_]:
    """Which of the pairs are among the others; both tables have the columns id_a and id_b."""
    codes = [np.zeros(len(table), np.int64) for table in (pairs, others)]
    for side in SIDES:
        known = _text(others[side]).unique()
        for code, table in zip(codes, (pairs, others), strict=True):
            at = pc.fill_null(pc.index_in(_text(table[side]), known), -1).to_numpy()
            code[:] = np.where((code < 0) | (at < 0), -1, code * len(known) + at)
    return np.isin(codes[0], codes[1]) & (codes[0] >= 0)


def linked_among(candidates: pa.Table, links: pa.Table) -> NDArray[np.bool_]:
    """Which candidates a run linked, from its two tables."""
    return among(candidates, links.filter(pc.equal(links["decision"], "link")))


def _table(source: Any, role: str) -> pa.Table:
    try:
        table = pa.table(source)
    except pa.ArrowException as error:
        raise InputError(
            f"{role} cannot be read as an Arrow table: {type(error).__name__}. Each column must "
            "hold one kind of value; give the columns id_a and id_b only, as text."
        ) from error
    absent = [side for side in SIDES if table.column_names.count(side) != 1]
    if absent:
        raise InputError(
            f"{role} must have one column {' and one '.join(absent)}. It has "
            f"{', '.join(map(str, table.column_names)) or 'none at all'}; rename the two with the "
            "ids to id_a and id_b."
        )
    return table


def _rows(source: Iterable[Any], role: str) -> pa.Table:
    rows = list(source) if isinstance(source, Iterable) else [source]
    kinds = {*map(type, rows)}
    fit = all(issubclass(kind, Sequence | np.ndarray) and kind is not str for kind in kinds)
    if not fit or {*map(len, rows)} - {2}:
        raise InputError(
            f"{role} must be a table or rows of two ids each, got rows of another kind. "
            "Give (id_a, id_b) tuples or a table with these columns."
        )
    return pa.table(
        {name: _id_list([row[k] for row in rows], role) for k, name in enumerate(SIDES)}
    )


def _id_list(ids: list[Any], role: str) -> pa.Array:
    kinds = {*map(type, ids)}
    if any(not issubclass(kind, str | int | np.integer) or kind is bool for kind in kinds):
        raise _unfit(role)
    return pa.array(list(map(str, ids)), TEXT)


def id_text(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """Cast ids to text; only types for which that is exact."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    exact = pa.types.is_integer(kind) or pa.types.is_null(kind) or kind in _TEXTS
    if not exact or column.null_count:
        raise _unfit(name)
    return _text(column)


def _text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not pa.types.is_dictionary(column.type):
        return column.cast(TEXT)
    # By hand: Arrow cannot decode the views that polars keeps in its dictionaries.
    chunks = [chunk.dictionary.cast(TEXT).take(chunk.indices) for chunk in column.chunks]
    return pa.chunked_array(chunks, TEXT)


def _unfit(name: str) -> InputError:
    return InputError(
        f"{name} has ids that are missing or neither text nor whole numbers. Only those compare "
        "exactly; drop the rows without ids and read ids as text."
    )
