"""A column of one file as several, or several as one, where the other files have it so.

"paziente:family" is the family name in a column of whole names; "year+month+day" the date that
three columns hold.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from bayeslink.comparing.field_checks import PARTS
from bayeslink.comparing.names import name_part
from bayeslink.data.cell_texts import TEXT

_DATE = 3  # columns


def columns_in(called: str, there: Collection[str]) -> tuple[str, ...]:
    """The columns that are meant, whether they are there or not."""
    if called in there:
        return (called,)
    column, _, part = called.rpartition(":")
    if part in PARTS and column:
        return (column,)
    columns = tuple(called.split("+"))
    return columns if len(columns) == _DATE and all(columns) else (called,)


def values_of(columns: Mapping[str, pa.Array], called: str) -> pa.Array:
    """What the columns that are meant hold, as text: as it is, the part of a name, or a date."""
    names = columns_in(called, columns)
    if names == (called,):
        return columns[called]
    if len(names) > 1:
        return _dates([columns[name].cast(TEXT) for name in names])
    coded = columns[names[0]].cast(TEXT).dictionary_encode()
    part = called.rpartition(":")[2]
    parts = [name_part(text, part) or None for text in coded.dictionary.to_pylist()]
    return pa.array(parts, TEXT).take(coded.indices)


def _dates(columns: list[pa.Array]) -> pa.Array:
    """Year, month and day as 1980-02-01; as they are where that is no date."""
    year, *others = (pc.utf8_trim_whitespace(column) for column in columns)
    padded = [pc.utf8_lpad(other, 2, "0") for other in others]
    return pc.binary_join_element_wise(year, *padded, pa.scalar("-", TEXT))
