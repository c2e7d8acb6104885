"""Distinct values of a field in both files, numbered, with the table of their levels.

Where nearly every value is distinct (addresses, free text), the whole table may take too long, or
too much room. Then only its better levels are made, those that a value has in common with few
others; at worst only equal values are joined. The levels below are left *open*:
`engines.open_levels` tells them apart for the pairs that matter. What is made follows from an
estimate of the work, not from a clock, so that it is the same every time.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bayeslink.checkpoints import Checkpoints
from bayeslink.comparing import level_tables
from bayeslink.comparing.comparisons import (
    JOIN,
    is_text,
    level_matrix,
    normalise,
    normalise_texts,
    value_reader,
)
from bayeslink.comparing.dates import ALL_DAYS, read_date, shape, tell_orders
from bayeslink.comparing.fields import Field
from bayeslink.comparing.from_data import joined_as_given, joined_levels, settled
from bayeslink.comparing.level_tables import (
    LevelTable,
    TableTooLargeError,
    each_piece,
    equality_table,
    level_table,
    means_equal,
)
from bayeslink.comparing.names import name_part
from bayeslink.comparing.rules import Near
from bayeslink.comparing.texts import Alike
from bayeslink.data.records import Records
from bayeslink.errors import InputError
from bayeslink.memory import Memory
from bayeslink.threads import Workers, slices

UNREADABLE = 0.2  # share of the dates that there are, above which a date field is refused
MAX_SECONDS = 300.0  # of one CPU, by estimate, for one table
_SAMPLE_SECONDS = 5.0  # for the sample that says how large a table would be
_SAMPLE = 256  # values in it
_PIECE, _ENTRY_BYTES = 1 << 24, 48  # entries of a table split at a time, and bytes of each
_COMPILED = 5_000_000  # entries from which their pairs are counted by compiled code
_WRITTEN = 20_000_000  # entries of a table that is written down; larger ones are made again
# Rough times, in seconds, for one value pair: of texts, by the cells of their table of distances
# that are worked out before most pairs are given up, in those compared by bits and in longer ones;
# of sets of words; of texts by likeness; of a call.
_CELL, _LONG_CELL, _WORDS, _ALIKE, _CALL = 1.2e-11, 5e-11, 3e-10, 2e-9, 3e-6


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
    b: Codes  # in one file the same as `a`
    table: LevelTable
    open: int = 1  # value pairs that are not in the table are at one of the levels 1 … open


NO_TABLE = LevelTable(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.uint8))


def build_dictionary(
    field: Field,
    a: Records,
    b: Records,
    threads: int | Workers = 1,
    memory: Memory | None = None,
    checkpoints: Checkpoints | None = None,
) -> Dictionary:
    """Distinct values of `field` in both files, or in one given as both, and their level table."""
    return dictionary_of(*encoded(field, a, b), threads, memory, checkpoints)


def encoded(field: Field, a: Records, b: Records) -> tuple[Field, Codes, Codes]:
    """The values of both files, and the field with what its dates' formats are."""
    if field.kind == "date":
        field = _with_orders(field, a, b)
    codes_a = encode(field, a, 0)
    return field, codes_a, codes_a if a is b else encode(field, b, 1)


def joined_codes(codes: Sequence[Codes], rows: Sequence[NDArray[Any]]) -> Codes:
    """The values of some records of each file as those of one file, one file below another."""
    values = sorted({value for each in codes for value in each.values})
    number = {value: k for k, value in enumerate(values)}
    parts = [
        np.array([*(number[value] for value in each.values), len(values)], np.int64)[each.codes[at]]
        for each, at in zip(codes, rows, strict=True)
    ]
    found = np.concatenate(parts)
    used = np.unique(found[found < len(values)])
    new = np.full(len(values) + 1, len(used), np.int32)
    new[used] = np.arange(len(used))
    kept = new[found].astype(np.int32)
    return Codes([values[k] for k in used.tolist()], kept, int((kept == len(used)).sum()), 0)


def dictionary_of(
    field: Field,
    codes_a: Codes,
    codes_b: Codes,
    threads: int | Workers = 1,
    memory: Memory | None = None,
    checkpoints: Checkpoints | None = None,
) -> Dictionary:
    """The same from values that were read before."""
    field = settled(field, codes_a, codes_b)
    make = partial(_affordable_table, field, codes_a.values, codes_b.values, threads, memory)
    table, open_levels = make() if checkpoints is None else _remembered(field, checkpoints, make)
    field = _split_and_joined(field, codes_a, codes_b, table, open_levels, memory)
    return Dictionary(field, codes_a, codes_b, table, open_levels)


def _split_and_joined(
    field: Field, a: Codes, b: Codes, table: LevelTable, lowest: int, memory: Memory | None
) -> Field:
    """Split and join the levels of a table, in place, as the field asks for; the field with them.

    Some entries at a time: what they need besides is several times their own size.
    """
    by_label = "m_prior" in field.options or "u_prior" in field.options
    join = bool(field.options.get("join")) and not by_label
    size = (memory or Memory()).piece(_ENTRY_BYTES, _PIECE, 1)
    if field.bands:
        for rows, part in _entries(table, size):
            levels = table.levels[part]
            levels[:] = split_by_frequency(field, a, b, rows, table.indices[part], levels)
    if by_label:
        field, new = joined_as_given(field, lowest)
    elif join:
        field, new = joined_levels(field, _pairs_at_levels(field, a, b, table, size), lowest)
    else:
        return field
    if (new != np.arange(len(new))).any():
        for first in range(0, len(table.levels), size):
            part = slice(first, first + size)
            table.levels[part] = new[table.levels[part]]
    return field


def _pairs_at_levels(
    field: Field, a: Codes, b: Codes, table: LevelTable, size: int
) -> NDArray[np.float64]:
    """Pairs of records at each level of a table."""
    counts_a, counts_b = a.counts, b.counts
    pairs = np.zeros(field.n_levels + 1)
    if len(table.levels) < _COMPILED:
        for rows, part in _entries(table, size):
            columns = table.indices[part]
            times = counts_a[rows] * counts_b[columns].astype(float)
            if a is b:  # pairs of two different records, each once
                times = (times - np.where(rows == columns, counts_a[rows], 0)) / 2
            pairs += np.bincount(table.levels[part], times, minlength=len(pairs))
        return pairs
    from bayeslink.kernels.pair_counts import pairs_of_values

    known = 0, 0, table.indptr, table.indices, table.levels, counts_a, counts_b, a is b
    for first, last in slices(len(a.values)):
        pairs += pairs_of_values(field.n_levels, first, last, *known).sum(0)
    return pairs


def _entries(table: LevelTable, size: int) -> Iterator[tuple[NDArray[np.int64], slice]]:
    """Row of each entry, and where the entries are: about so many at a time, of whole rows."""
    steps = np.arange(0, len(table.levels), size)
    edges = np.append(np.searchsorted(table.indptr, steps, side="right") - 1, len(table.indptr) - 1)
    for first, last in pairwise(np.unique(edges).tolist()):
        lengths = np.diff(table.indptr[first : last + 1])
        part = slice(int(table.indptr[first]), int(table.indptr[last]))
        yield np.repeat(np.arange(first, last), lengths), part


def _with_orders(field: Field, a: Records, b: Records) -> Field:
    """A date field that knows in which order each file has day, month and year."""
    sides = [_cell_counts(field, a, 0)]
    sides.append(sides[0] if a is b else _cell_counts(field, b, 1))
    given = zip(field.columns, field.options["formats"], strict=True)
    formats = ["%Y-%m-%d" if len(columns) == 3 else form for columns, form in given]
    orders, told = tell_orders(sides, formats, field.options["valid"])
    for side, order in enumerate(orders):
        if order is None:
            raise InputError(
                f"input {'AB'[side]}, {(a, b)[side].label}, column {field.columns[side][0]!r}: the "
                "data do not tell which number is the day and which the month. Say it, for example "
                f'--on {field.name}:date:format=%d/%m/%Y (format="%d/%m/%Y").'
            )
    options = {**field.options, "formats": tuple(formats), "orders": orders, "told": told}
    return replace(field, options=options)


def _cell_counts(field: Field, records: Records, side: int) -> Counter[str]:
    """How many records have each text that is not declared missing."""
    found = pc.value_counts(_field_cells(field, records, side))
    pairs = zip(found.field(0).to_pylist(), found.field(1).to_pylist(), strict=True)
    return Counter(
        {t: n for t, n in pairs if t is not None and t.strip() not in (field.missing or ())}
    )


def encode(field: Field, records: Records, side: int) -> Codes:
    """Read a field's values and number the distinct ones in sorted order."""
    cells = _field_cells(field, records, side).dictionary_encode()
    texts = cells.dictionary
    raw = pc.fill_null(cells.indices, len(texts)).to_numpy(zero_copy_only=False)
    declared = np.zeros(len(texts) + 1, bool)
    if field.missing:
        declared[:-1] = [text.strip() in field.missing for text in texts.to_pylist()]
    if is_text(field):
        if part := field.options.get("part", (None, None))[side]:
            texts = pa.array([name_part(text, part) for text in texts.to_pylist()], texts.type)
        evened = normalise_texts(texts, field.normalise)
        if recodes := field.options.get("recode"):
            steps = field.normalise
            meant = {normalise(x, steps): normalise(y, steps) for x, y in recodes[side].items()}
            evened = pa.array([meant.get(text, text) for text in evened.to_pylist()], evened.type)
        if canonical := field.options.get("canonical"):
            evened = pa.array([canonical(text) for text in evened.to_pylist()], evened.type)
        values, numbers = _number_texts(evened, declared)
    else:
        values, numbers = _number_values(_read_all(field, side, texts, declared))
    codes = np.append(numbers, len(values)).astype(np.int32)[raw]
    n_absent = int((codes == len(values)).sum())
    unread = np.append(numbers == len(values), False) & ~declared
    n_invalid = int(unread[raw].sum())
    if field.kind == "date" and n_invalid:
        _refuse_unreadable(field, records, side, texts, raw, unread, len(codes) - n_absent)
    return Codes(values, codes, n_absent - n_invalid, n_invalid)


def _field_cells(field: Field, records: Records, side: int) -> pa.Array:
    """The field's cells as one text column; a place needs both of its columns, a date its year,
    a text any."""
    columns = [records.columns[name] for name in field.columns[side]]
    if len(columns) == 1:
        return columns[0]
    if all(pa.types.is_dictionary(column.type) for column in columns):
        return _cells_of_distinct(field, columns)
    return _together(field, columns)


def _cells_of_distinct(field: Field, columns: Sequence[pa.DictionaryArray]) -> pa.Array:
    """The same of columns whose texts are numbered: each combination is put together once."""
    of = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        codes = pc.fill_null(column.indices, -1).to_numpy(zero_copy_only=False)
        of = of * (len(column.dictionary) + 1) + codes + 1
        _, of = np.unique(of, return_inverse=True)
    _, first = np.unique(of, return_index=True)
    some = [column.take(pa.array(first)).cast(column.type.value_type) for column in columns]
    joined = _together(field, some).dictionary_encode()
    return pa.DictionaryArray.from_arrays(joined.indices.take(pa.array(of)), joined.dictionary)


def _together(field: Field, columns: Sequence[pa.Array]) -> pa.Array:
    if field.kind == "date":  # as far as it is known
        dash = pa.scalar("-", columns[0].type)
        return pc.coalesce(*(pc.binary_join_element_wise(*columns[:k], dash) for k in (3, 2, 1)))
    if not is_text(field):
        return pc.binary_join_element_wise(*columns, pa.scalar(JOIN, columns[0].type))
    space = pa.scalar(" ", columns[0].type)
    filled = [pc.fill_null(column, "") for column in columns]
    joined = pc.utf8_trim_whitespace(pc.binary_join_element_wise(*filled, space))
    return pc.if_else(pc.equal(joined, ""), pa.scalar(None, joined.type), joined)


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


def _refuse_unreadable(
    field: Field,
    records: Records,
    side: int,
    texts: pa.Array,
    raw: NDArray[Any],
    unread: NDArray[np.bool_],
    n_read: int,
) -> None:
    """An error where many texts are no dates; it shows what they look like, and none of them."""
    form, order = field.options["formats"][side], field.options["orders"][side]
    unread = unread.copy()
    for k in np.flatnonzero(unread).tolist():  # a date that is not `valid` has been read
        unread[k] = read_date(texts[k].as_py(), order, form, ALL_DAYS) is None
    n = int(unread[raw].sum())
    if n <= UNREADABLE * (n + n_read):
        return
    wrong = Counter(shape(texts[k].as_py()) for k in np.flatnonzero(unread).tolist())
    shapes = [repr(found) for found, _ in wrong.most_common(3)]
    raise InputError(
        f"input {'AB'[side]}, {records.label}, column {field.columns[side][0]!r}: {n:,} of "
        f"{n + n_read:,} values cannot be read as dates. They look like {', '.join(shapes)} (9 for "
        f"any digit, a for any letter). Say their format, for example --on {field.name}:date:"
        'format=%d/%m/%Y (format="%d/%m/%Y"), or what means missing, or compare the column as text.'
    )


def _number_values(values: list[Any]) -> tuple[list[Any], NDArray[np.int64]]:
    distinct = sorted({v for v in values if v is not None})
    number: dict[Any, int] = {v: i for i, v in enumerate(distinct)}
    number[None] = len(distinct)
    return distinct, np.array([number[v] for v in values], np.int64)


def _read_all(field: Field, side: int, texts: pa.Array, declared: NDArray[np.bool_]) -> list[Any]:
    """Number, date or place of each text; None if missing."""
    read = value_reader(field, side)
    return [None if declared[k] else read(text) for k, text in enumerate(texts.to_pylist())]


def split_by_frequency(
    field: Field,
    a: Codes,
    b: Codes,
    rows: NDArray[Any],
    columns: NDArray[Any],
    levels: NDArray[np.uint8],
) -> NDArray[np.uint8]:
    """Raise agreement on rarer values to higher levels, by their share in both files together."""
    counts_a, counts_b = a.counts, b.counts
    present = counts_a[:-1].sum() + counts_b[:-1].sum()
    top = np.flatnonzero(levels == field.n_levels - len(field.bands))
    share = (counts_a[rows[top]] + counts_b[columns[top]]) / max(1, present)
    levels = levels.copy()
    for band in field.bands:
        levels[top] += share <= band
    return levels


def _remembered(
    field: Field, checkpoints: Checkpoints, make: Callable[[], tuple[LevelTable, int]]
) -> tuple[LevelTable, int]:
    """A table that took long, written down, so that a run that goes on need not make it again."""
    name = f"table-{sha256(field.name.encode()).hexdigest()[:24]}"
    if (found := checkpoints.load(name)) is not None:
        return LevelTable(found["indptr"], found["indices"], found["levels"]), int(found["open"])
    began = time.monotonic()
    table, open_levels = make()
    if checkpoints.due(began) and len(table.levels) <= _WRITTEN:
        parts = {key: getattr(table, key) for key in ("indptr", "indices", "levels")}
        checkpoints.save(name, {**parts, "open": np.array(open_levels)})
    return table, open_levels


# --- tables that would be too large ---------------------------------------------------------------


def _affordable_table(
    field: Field,
    x: Sequence[Any],
    y: Sequence[Any],
    threads: int | Workers,
    memory: Memory | None,
) -> tuple[LevelTable, int]:
    """The table with as many of its levels as can be had, and the highest level left open."""
    entries = None
    for dropped in range(_n_parts(field)):
        part = _without_worst(field, dropped)
        seconds = table_seconds(part, x, y)
        if seconds > MAX_SECONDS:
            continue
        if len(x) * len(y) > level_tables.MAX_ENTRIES and not means_equal(part):
            entries = _expected_entries(field, x, y, threads) if entries is None else entries
            if entries[2 + dropped :].sum() > level_tables.MAX_ENTRIES:
                continue
        try:
            table = level_table(part, x, y, threads, memory, seconds)
        except TableTooLargeError:
            continue
        if dropped:
            table.levels[:] += np.uint8(dropped)
        return table, 1 + dropped
    return _equal_values(field, x, y), field.n_levels


def _n_parts(field: Field) -> int:
    """How many of the worst levels can be left out one by one, none included."""
    ladder = field.options.get("ladder")
    return max(1, len(field.cuts)) if ladder is None else field.n_levels - len(field.bands) - 1


def _without_worst(field: Field, dropped: int) -> Field:
    """The field without its worst levels above 1, the next being level 2."""
    if (ladder := field.options.get("ladder")) is None:
        return replace(field, cuts=field.cuts[: len(field.cuts) - dropped])
    return replace(field, options={**field.options, "ladder": ladder.above(1 + dropped)})


def table_seconds(field: Field, x: Sequence[Any], y: Sequence[Any]) -> float:
    """About how long one CPU takes for the table of x and y.

    Numbers, dates and places are looked at only where they may be close: there, what limits the
    work is the size of the table.
    """
    if field.kind == "custom":
        return _CALL * len(x) * len(y)
    if field.kind == "tokens":
        return _WORDS * len(x) * len(y)
    if ladder := field.options.get("ladder"):
        near = [rule.field for rule in ladder.rules if isinstance(rule, Near)]
        alike = any(isinstance(rule, Alike) for rule in ladder.rules)
        return sum(table_seconds(part, x, y) for part in near) + alike * _ALIKE * len(x) * len(y)
    if means_equal(field) or not is_text(field):
        return 0.0
    (m, times_m), (n, times_n) = (_lengths(values) for values in (x, y))
    m, n = m[:, None], n[None, :]
    cells = 2 * m * n
    if field.kind != "jaro_winkler":
        edits = field.cuts[-1] * np.maximum(m, n)
        cells = np.where(np.abs(m - n) <= edits, np.minimum((1 + edits) ** 2, cells), 0)
    short = np.maximum(m, n) <= level_tables.LONG
    return float(times_m @ np.where(short, _CELL * cells, _LONG_CELL * m * n) @ times_n)


def _lengths(values: Sequence[str]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Lengths of texts, the longer ones by and large, and how many have each."""
    lengths = np.array([len(value) for value in values], np.float64)
    coarse = np.minimum(np.ceil(lengths / 32) * 32, 8192)
    lengths = np.where(lengths <= level_tables.LONG, lengths, coarse)
    found, times = np.unique(lengths, return_counts=True)
    return found, times.astype(np.float64)


def _expected_entries(
    field: Field, x: Sequence[Any], y: Sequence[Any], threads: int | Workers
) -> NDArray[np.float64]:
    """Value pairs at each level, 1 left out, from values of A spread evenly over all of them."""
    rate = table_seconds(field, x, y) / len(x)
    size = int(np.clip(_SAMPLE_SECONDS / max(rate, 1e-9), 1, min(_SAMPLE, len(x))))
    sample = [x[i] for i in np.linspace(0, len(x) - 1, size).astype(int)]
    width = field.n_levels + 1
    found = each_piece(field, sample, y, lambda *p: np.bincount(p[3], minlength=width), threads)
    return np.sum(found, axis=0) * (len(x) / size)


def _equal_values(field: Field, x: Sequence[Any], y: Sequence[Any]) -> LevelTable:
    """The table of equal values alone."""
    table = equality_table(x, y)
    if field.kind != "custom":
        top = field.n_levels - len(field.bands)
        return replace(table, levels=np.full(len(table.levels), top, np.uint8))
    equal = np.flatnonzero(np.diff(table.indptr)).tolist()
    levels = np.array([level_matrix(field, [x[i]], [x[i]], 1)[0, 0] for i in equal], np.uint8)
    indptr = np.zeros(len(x) + 1, np.int64)
    indptr[1:][equal] = levels > 1
    return LevelTable(np.cumsum(indptr), table.indices[levels > 1], levels[levels > 1])
