"""Columns of any type as text: exact integers, plain decimals, ISO dates."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bayeslink.errors import InputError

TEXT = pa.large_string()


def from_pandas(series: Any, name: str, where: str) -> pa.ChunkedArray:
    try:
        values = pa.array(series, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        # Of the mixed columns only int and str are safe: everyone writes them the same way.
        items = [None if null else item for item, null in zip(series, series.isna(), strict=True)]
        kinds = {type(item) for item in items if item is not None}
        if bool in kinds or not all(issubclass(kind, int | np.integer | str) for kind in kinds):
            raise no_text(name, series.dtype, where) from None
        try:
            values = pa.array([None if item is None else str(item) for item in items], TEXT)
        except UnicodeEncodeError:
            raise no_text(name, "text with broken characters", where) from None
    return values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])


def as_text(column: pa.ChunkedArray, name: str, where: str) -> pa.Array:
    """Return the column as text: exact, and as a person would have typed it."""
    column = decoded(column)
    kind = column.type
    try:
        if pa.types.is_floating(kind):
            return _float_text(column.combine_chunks())
        if pa.types.is_timestamp(kind):
            column = _iso_text(column)
        elif pa.types.is_decimal(kind):
            plain = [None if value is None else format(value, "f") for value in column.to_pylist()]
            return pa.array(plain, TEXT)
        elif pa.types.is_date(kind):
            column = column.cast(pa.date32()).cast(TEXT)
        elif any(is_kind(kind) for is_kind in _CAST):
            column = column.cast(TEXT)
        else:
            raise no_text(name, kind, where)
    except pa.ArrowException:
        raise no_text(name, f"{kind}, with values out of range", where) from None
    return column.combine_chunks()


_CAST = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_time,
    pa.types.is_null,
)


def no_text(name: str, kind: object, where: str) -> InputError:
    return InputError(
        f"{where}: column {name!r} is of type {kind}, which has no single text form. Text, whole "
        "and decimal numbers, dates, times and true/false can be used; turn it into text first."
    )


def decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Look through encodings (dictionary, runs, half floats) to the values; a UUID is text."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return decoded(column.cast(kind.value_type))
    if pa.types.is_run_end_encoded(kind):
        chunks = [pc.run_end_decode(chunk) for chunk in column.chunks]
        return decoded(pa.chunked_array(chunks, kind.value_type))
    if isinstance(kind, pa.UuidType):
        texts = [None if cell is None else str(cell) for cell in column.to_pylist()]
        return pa.chunked_array([pa.array(texts, TEXT)])
    return column.cast(pa.float32()) if pa.types.is_float16(kind) else column


def storable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column itself, or as text if it is of a type that not every kind of file can hold."""
    kind = column.type
    if _is_storable(kind.value_type if pa.types.is_dictionary(kind) else kind):
        return column
    column = decoded(column)
    if isinstance(column.type, pa.BaseExtensionType):
        chunks = [chunk.storage for chunk in column.chunks]
        return storable(pa.chunked_array(chunks, column.type.storage_type))
    if pa.types.is_string_view(column.type):
        return column.cast(TEXT)
    if pa.types.is_binary_view(column.type):
        return column.cast(pa.large_binary())
    return column if _is_storable(column.type) else as_json(column)


def _is_storable(kind: pa.DataType) -> bool:
    if any(is_kind(kind) for is_kind in _NOT_STORABLE) or isinstance(kind, pa.BaseExtensionType):
        return False
    inner = range(kind.num_fields) if pa.types.is_nested(kind) else ()
    return all(_is_storable(kind.field(k).type) for k in inner)


_NOT_STORABLE = (
    pa.types.is_interval,
    pa.types.is_union,
    pa.types.is_run_end_encoded,
    pa.types.is_string_view,
    pa.types.is_binary_view,
)


def as_json(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Cells that have no text form of their own as JSON."""
    cells = (cell.as_py() for cell in column)
    texts = [None if x is None else json.dumps(x, default=str) for x in cells]
    return pa.chunked_array([pa.array(texts, TEXT)])


def exact_integers(column: pa.ChunkedArray) -> bool:
    """Whether these floats are whole and small enough that no two integers share one."""
    values = column.drop_null().to_numpy()
    values = values[~np.isnan(values)]
    limit = 2.0 ** (np.finfo(values.dtype).nmant + 1)
    return bool(np.all((np.abs(values) < limit) & (values == np.trunc(values))))


def whole_number_type(column: pa.ChunkedArray) -> str | None:
    """The Arrow type of ids that are whole numbers, of which pandas may make floats; else None."""
    kind = decoded(column).type
    if pa.types.is_floating(kind):
        return "int64"
    return str(kind) if pa.types.is_integer(kind) else None


def _float_text(values: pa.Array) -> pa.Array:
    """Integer text if all are whole (pandas makes floats of integers with gaps), else the repr."""
    absent = pc.fill_null(pc.is_nan(values), True).to_numpy(zero_copy_only=False)
    numbers = np.where(absent, 0, pc.fill_null(values, 0).to_numpy())
    finite = np.isfinite(numbers)
    if not np.all((numbers == np.trunc(numbers))[finite]):
        return pa.array(numbers.astype(str).astype(object), TEXT, mask=absent)
    if np.all(np.abs(numbers) < 2.0**63):
        return pa.array(numbers.astype(np.int64), mask=absent).cast(TEXT)
    whole = [str(int(x)) if ok else str(x) for x, ok in zip(numbers, finite, strict=True)]
    return pa.array(np.array(whole, object), TEXT, mask=absent)


def _iso_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """ISO 8601; only the date where every time is midnight, as pandas has no type for dates."""
    zone = column.type.tz
    for unit in ("s", "ms", "us", "ns"):
        try:
            column = column.cast(pa.timestamp(unit, zone))
            break
        except pa.ArrowInvalid:
            continue
    days = column.cast(pa.date32())
    if zone is None and pc.all(pc.equal(days.cast(column.type), column)).as_py():
        return days.cast(TEXT)
    return pc.replace_substring(column.cast(TEXT), " ", "T")


def texts_of(column: pa.Array) -> pa.Array:
    """The texts of a column, each once if they are numbered already."""
    return column.dictionary if pa.types.is_dictionary(column.type) else column
