"""Distinct values of a field in both files, numbered, with the table of their levels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bayeslink.comparisons import (
    JOIN,
    UnreadableDateError,
    is_text,
    normalise_texts,
    value_reader,
)
from bayeslink.errors import InputError
from bayeslink.fields import Field
from bayeslink.level_tables import LevelTable, level_table
from bayeslink.records import Records


@dataclass(frozen=True, slots=True)
class Codes:
    """One file's values of one field."""

    values: list[Any]  # distinct, sorted
    codes: NDArray[np.int32]  # of each record; len(values) = missing
    n_missing: int  # nothing there, or declared missing
    n_invalid: int  # something there that is no value: 31 February, age −3

    @property
    def counts(self) -> NDArray[np.int64]:
        """Records at each value, the last entry counting the missing ones."""
        return np.bincount(self.codes, minlength=len(self.values) + 1).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Dictionary:
    """One field of both files."""

    field: Field
    a: Codes
    b: Codes
    table: LevelTable


def build_dictionary(field: Field, a: Records, b: Records, threads: int = 1) -> Dictionary:
    """Distinct values of `field` in both files and their level table."""
    codes_a, codes_b = encode(field, a, 0), encode(field, b, 1)
    table = level_table(field, codes_a.values, codes_b.values, threads)
    if field.bands:
        table = _split_by_frequency(field, codes_a, codes_b, table)
    return Dictionary(field, codes_a, codes_b, table)


def encode(field: Field, records: Records, side: int) -> Codes:
    """Read a field's values and number the distinct ones in sorted order."""
    cells = _field_cells(field, records, side).dictionary_encode()
    texts = cells.dictionary
    raw = pc.fill_null(cells.indices, len(texts)).to_numpy(zero_copy_only=False)
    declared = np.zeros(len(texts) + 1, bool)
    if field.missing:
        declared[:-1] = [text.strip() in field.missing for text in texts.to_pylist()]
    if is_text(field):
        values, numbers = _number_texts(normalise_texts(texts, field.normalise), declared)
    else:
        values, numbers = _number_values(_read_all(field, records, side, texts, raw, declared))
    codes = np.append(numbers, len(values)).astype(np.int32)[raw]
    n_absent = int((codes == len(values)).sum())
    unread = np.append(numbers == len(values), False) & ~declared
    n_invalid = int(unread[raw].sum())
    return Codes(values, codes, n_absent - n_invalid, n_invalid)


def _field_cells(field: Field, records: Records, side: int) -> pa.Array:
    """The field's cells as one text column; a field of two columns needs both."""
    columns = [records.columns[name] for name in field.columns[side]]
    if len(columns) == 1:
        return columns[0]
    return pc.binary_join_element_wise(*columns, pa.scalar(JOIN, columns[0].type))


def _number_texts(
    texts: pa.Array, declared: NDArray[np.bool_]
) -> tuple[list[str], NDArray[np.int64]]:
    """Sorted distinct texts, and the number of each text; their count for missing ones."""
    missing = pc.or_(pc.equal(texts, ""), pa.array(declared[:-1]))
    encoded = pc.if_else(missing, pa.scalar(None, texts.type), texts).dictionary_encode()
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    rank = np.empty(len(order) + 1, np.int64)
    rank[order] = np.arange(len(order))
    rank[-1] = len(order)
    found = pc.fill_null(encoded.indices, len(order)).to_numpy(zero_copy_only=False)
    return encoded.dictionary.take(pa.array(order)).to_pylist(), rank[found]


def _number_values(values: list[Any]) -> tuple[list[Any], NDArray[np.int64]]:
    distinct = sorted({v for v in values if v is not None})
    number: dict[Any, int] = {v: i for i, v in enumerate(distinct)}
    number[None] = len(distinct)
    return distinct, np.array([number[v] for v in values], np.int64)


def _read_all(
    field: Field,
    records: Records,
    side: int,
    texts: pa.Array,
    raw: NDArray[Any],
    declared: NDArray[np.bool_],
) -> list[Any]:
    """Number, date or place of each text; None if missing."""
    read, values = value_reader(field, side), []
    for position, text in enumerate(texts.to_pylist()):
        try:
            values.append(None if declared[position] else read(text))
        except UnreadableDateError:
            row = int(np.flatnonzero(raw == position)[0])
            column = field.columns[side][0]
            raise InputError(
                f"input {'AB'[side]}, {records.label}, {records.place(row)}, column {column!r}: "
                "not an ISO date (YYYY-MM-DD), and no format was given. Say it, for example "
                f'--on {field.name}:date:format=%d/%m/%Y (format="%d/%m/%Y").'
            ) from None
    return values


def _split_by_frequency(field: Field, a: Codes, b: Codes, table: LevelTable) -> LevelTable:
    """Raise agreement on rarer values to higher levels, by their share in both files together."""
    counts_a, counts_b = a.counts, b.counts
    present = counts_a[:-1].sum() + counts_b[:-1].sum()
    top = np.flatnonzero(table.levels == field.n_levels - len(field.bands))
    rows = np.searchsorted(table.indptr, top, "right") - 1
    share = (counts_a[rows] + counts_b[table.indices[top]]) / max(1, present)
    levels = table.levels.copy()
    for band in field.bands:
        levels[top] += share <= band
    return LevelTable(table.indptr, table.indices, levels)
