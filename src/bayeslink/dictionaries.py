"""Distinct values of a field, and the level of each value of A against each value of B.

A field with V_A and V_B distinct values needs V_A × V_B comparisons, not n_A × n_B. Value pairs
above the worst level are kept as a sparse table; all others are at level 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bayeslink.comparisons import JOIN, UnreadableDateError, level_matrix, value_reader
from bayeslink.errors import InputError
from bayeslink.fields import Field
from bayeslink.records import Records

_CHUNK = 16_000_000  # cells of one piece of a level matrix


@dataclass(frozen=True, slots=True)
class LevelTable:
    """Levels above 1, by rows (values of A): CSR with sorted columns (values of B)."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    levels: NDArray[np.uint8]


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
    if field.kind == "exact":
        table = _equality_table(codes_a.values, codes_b.values)
    else:
        table = _compared_table(field, codes_a.values, codes_b.values, threads)
    if field.bands:
        table = _split_by_frequency(field, codes_a, codes_b, table)
    return Dictionary(field, codes_a, codes_b, table)


def encode(field: Field, records: Records, side: int) -> Codes:
    """Read a field's values and number the distinct ones in sorted order."""
    cells = _field_cells(field, records, side).dictionary_encode()
    texts = cells.dictionary.to_pylist()
    raw = pc.fill_null(cells.indices, len(texts)).to_numpy(zero_copy_only=False)
    read, declared = value_reader(field, side), set(field.missing or ())
    values = []
    for position, text in enumerate(texts):
        try:
            values.append(None if text.strip() in declared else read(text))
        except UnreadableDateError:
            row = int(np.flatnonzero(raw == position)[0])
            column = field.columns[side][0]
            raise InputError(
                f"input {'AB'[side]}, {records.label}, {records.place(row)}, column {column!r}: "
                "not an ISO date (YYYY-MM-DD), and no format was given. Say it, for example "
                f'--on {field.name}:date:format=%d/%m/%Y (format="%d/%m/%Y").'
            ) from None
    distinct = sorted({v for v in values if v is not None})
    number = {v: i for i, v in enumerate(distinct)}
    missing = len(distinct)
    recode = [missing if v is None else number[v] for v in values] + [missing]
    codes = np.array(recode, np.int32)[raw]
    invalid = [
        v is None and t.strip() not in declared for v, t in zip(values, texts, strict=True)
    ] + [False]
    n_invalid = int(np.array(invalid)[raw].sum())
    return Codes(distinct, codes, int((codes == missing).sum()) - n_invalid, n_invalid)


def _field_cells(field: Field, records: Records, side: int) -> pa.Array:
    """The field's cells as one text column; a field of two columns needs both."""
    columns = [records.columns[name] for name in field.columns[side]]
    if len(columns) == 1:
        return columns[0]
    return pc.binary_join_element_wise(*columns, pa.scalar(JOIN, columns[0].type))


def _equality_table(x: list[Any], y: list[Any]) -> LevelTable:
    where = {value: i for i, value in enumerate(y)}
    matches = np.array([where.get(value, -1) for value in x], np.int32)
    found = matches >= 0
    indptr = np.concatenate([[0], np.cumsum(found)]).astype(np.int64)
    indices = matches[found]
    return LevelTable(indptr, indices, np.full(len(indices), 2, np.uint8))


def _compared_table(field: Field, x: list[Any], y: list[Any], threads: int) -> LevelTable:
    """Compare all of x with all of y, a piece of x at a time, and keep what is above level 1."""
    counts, indices, levels = [np.zeros(1, np.int64)], [], []
    step = max(1, _CHUNK // max(1, len(y)))
    for start in range(0, len(x) if y else 0, step):
        matrix = level_matrix(field, x[start : start + step], y, threads)
        rows, columns = np.nonzero(matrix > 1)
        counts.append(np.bincount(rows, minlength=len(matrix)))
        indices.append(columns.astype(np.int32))
        levels.append(matrix[rows, columns])
    if not indices:
        return LevelTable(np.zeros(len(x) + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, "u1"))
    indptr = np.cumsum(np.concatenate(counts)).astype(np.int64)
    return LevelTable(indptr, np.concatenate(indices), np.concatenate(levels))


def _split_by_frequency(field: Field, a: Codes, b: Codes, table: LevelTable) -> LevelTable:
    """Raise agreement on rarer values to higher levels, by their share in both files together."""
    agreement = field.n_levels - len(field.bands)
    present = a.counts[:-1].sum() + b.counts[:-1].sum()
    rows = np.repeat(np.arange(len(a.values)), np.diff(table.indptr))
    top = table.levels == agreement
    share = (a.counts[rows[top]] + b.counts[table.indices[top]]) / max(1, present)
    levels = table.levels.copy()
    for band in field.bands:
        levels[top] += share <= band
    return LevelTable(table.indptr, table.indices, levels)
