"""Columns of one file: what each holds, how full it is, and how well it tells records apart.

Contents are looked at in a sample of rows, the same each time; whether a column is unique, in all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bayeslink.data.records import Records
from bayeslink.suggesting import shapes
from bayeslink.suggesting.column_names import thing, words
from bayeslink.suggesting.date_formats import Formats
from bayeslink.suggesting.kinds import kind_of
from bayeslink.suggesting.missing_codes import fillers, likely_words, missing_words

SAMPLE = 20_000  # rows
_ENOUGH = 5000  # rows, to tell what a column holds
_SEED = 20191231

_NAMES = ("given name", "family name")

Cells = Sequence[str | None]


@dataclass(frozen=True, slots=True)
class Profile:
    """What one column of one file holds."""

    name: str
    columns: tuple[str, ...]  # of this name alone, or the year, month and day of a date
    kind: str
    thing: str | None  # what its name says
    complete: float  # share of the cells with a value, missing codes left out
    n_distinct: int  # values, in the sample
    chance: float  # that two records of the file have the same value
    unique: bool  # another value in each record, none missing
    numbered: bool  # as rows are: whole numbers, one after the other
    dates: Formats | None
    missing: tuple[str, ...]  # words that mean missing, in all columns
    fillers: tuple[str, ...]  # values that mean missing, in this column
    cells: Cells  # of the sampled rows; None where missing
    keys: Cells  # the same, evened out so that spelling, case and format do not count
    event: bool = False  # dates of something else than a birth

    @property
    def present(self) -> list[str]:
        return [key for key in self.keys if key is not None]


def profile_columns(records: Records) -> list[Profile]:
    """A profile of each column."""
    rows = sample_rows(len(records))
    found = [_profile(name, column, rows) for name, column in records.columns.items()]
    kinds = [profile.kind for profile in found]
    if kinds.count("given name") == 2 and "family name" not in kinds:  # gname and fname
        found = [
            replace(p, kind="family name", thing="family name")
            if p.kind == "given name" and "fname" in words(p.name)
            else p
            for p in found
        ]
    return [_as_beside_others(p, [q.kind for q in found if q is not p]) for p in found]


def _as_beside_others(p: Profile, others: Sequence[str]) -> Profile:
    """A name that means another one by itself: Name beside Vorname, Nom without a Prénom."""
    n_words = sum(len(key.split()) for key in p.present) / max(1, len(p.present))
    alone = "given name" in others and "family name" not in others
    if p.thing == "name" and alone and p.kind in ("words", "text", *_NAMES) and n_words < 1.6:
        return replace(p, kind="family name", thing="family name")
    if p.kind in _NAMES and not {*_NAMES, "full name"} & {*others} and n_words >= 1.6:
        return replace(p, kind="full name", thing="full name")
    return p


def sample_rows(n: int) -> NDArray[np.int64]:
    """Rows to look at, rising."""
    if n <= SAMPLE:
        return np.arange(n)
    return np.sort(np.random.default_rng(_SEED).choice(n, SAMPLE, replace=False))


def _profile(name: str, column: pa.Array, rows: NDArray[np.int64]) -> Profile:
    found = pc.utf8_trim_whitespace(column.take(pa.array(rows))).to_pylist()
    texts = Counter(text for text in found if text is not None)
    sure = missing_words(texts)
    likely = likely_words(texts)
    for word in (*sure, *likely):
        del texts[word]
    kind, dates = kind_of(name, _thinned(found, texts))
    odd = fillers(texts, kind, dates)
    codes = (*odd, *likely)
    if odd:
        for code in odd:
            del texts[code]
        kind, dates = kind_of(name, _thinned(found, texts))
    none = {None, *sure, *codes}
    cells = [None if text in none else text for text in found]
    key_of = {text: _key(text, kind, dates) for text in texts}
    keys = [None if cell is None else key_of[cell] for cell in cells]
    values = Counter(key for key in keys if key is not None)
    n = sum(values.values())
    same = sum(k * (k - 1) for k in values.values())
    filled = n / max(1, len(rows)) if sure or codes else 1 - column.null_count / len(column)
    unique = filled == 1 and len(texts) == len(rows) and _all_distinct(column)
    return Profile(
        name=name,
        columns=(name,),
        kind=kind,
        thing=thing(name),
        complete=filled,
        n_distinct=len(values),
        chance=(same + 1) / (n * (n - 1) + 1) if n else 1.0,
        unique=unique,
        numbered=unique and _are_row_numbers(column),
        dates=dates,
        missing=sure,
        fillers=codes,
        cells=cells,
        keys=keys,
    )


def _thinned(found: Cells, texts: Mapping[str, int]) -> Mapping[str, int]:
    """Of the texts that are no missing codes, those of fewer rows, to tell their kind by."""
    every = len(found) // _ENOUGH
    if every < 2:
        return texts
    return Counter(text for text in found[::every] if text is not None and text in texts)


def _all_distinct(column: pa.Array) -> bool:
    return pc.count_distinct(column, mode="all").as_py() == len(column)


def _are_row_numbers(column: pa.Array) -> bool:
    """Whether whole numbers run from a first to a last one with hardly a gap."""
    try:
        numbers = column.cast(pa.int64())
    except pa.ArrowInvalid:
        return False
    ends = pc.min_max(numbers).as_py()
    return bool(ends["max"] - ends["min"] < 1.5 * len(column))


def _key(text: str, kind: str, dates: Formats | None) -> str:
    """A value as it is compared between columns: written the same if it means the same."""
    if kind == "date" and dates:
        day = dates.read(text)
        return text if day is None else day.isoformat()
    if kind == "phone":
        return shapes.digits(text)[-9:]
    if kind == "full name":
        return " ".join(sorted(shapes.plain_words(text).split())) or text
    if kind in ("latitude", "longitude") and shapes.NUMBER.fullmatch(text):
        return f"{float(text):.2f}"  # about a kilometre
    if kind in ("number", "age"):
        plain = text.strip("$€£ ").replace(",", "")
        return f"{float(plain):g}" if shapes.NUMBER.fullmatch(plain) else plain
    if kind in ("postcode", "identifier"):
        return "".join(c for c in text.upper() if c.isalnum()) or text
    if kind == "e-mail":
        return text.casefold()
    return shapes.plain_words(text) or text
