"""Texts too long to be compared letter by letter, refused before the work."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow.compute as pc

from bayeslink.comparing.fields import Field
from bayeslink.data.cell_texts import texts_of
from bayeslink.data.records import Records
from bayeslink.errors import InputError

LONGEST = 2000  # letters of a text that is compared by edits
_BY_LETTERS = ("levenshtein", "damerau_levenshtein", "jaro_winkler")


def refuse_long_texts(records: Sequence[Records], fields: Sequence[Field]) -> None:
    """Refuse a field that compares, by edits, longer texts than any name or address is."""
    for field in fields:
        if field.kind not in _BY_LETTERS:
            continue
        for side, names in zip(range(len(records)), field.columns, strict=False):
            for name in names:
                longest = pc.max(pc.utf8_length(texts_of(records[side].columns[name]))).as_py() or 0
                if longest > LONGEST:
                    raise InputError(
                        f"input {'AB'[side]}, {records[side].label}: column {name!r} has texts of "
                        f"up to {longest:,} characters, and {field.kind} compares at most "
                        f"{LONGEST:,}. Use text, tokens or exact for such a column, or shorten it."
                    )
