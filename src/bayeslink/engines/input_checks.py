"""What is odd about the files, as far as it can be seen at little cost, and what to do about it.

No cell is told, but for words that are known to mean missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bayeslink.comparing.dictionaries import Dictionary
from bayeslink.comparing.fields import Field
from bayeslink.data.cell_texts import TEXT, texts_of
from bayeslink.data.missing_words import FILLER_DAYS, LIKELY_WORDS, SURE_WORDS
from bayeslink.data.records import Records
from bayeslink.distinct import distinct
from bayeslink.errors import InputError

_AT_LEAST, _COMMON = 3, 0.005  # cells with a missing code: in number, and as a share
_OFTEN = 10  # times as common as the average value, for words that could be names
_TWICE = 0.01  # share of records that equal another one
_NEARLY_TWICE = 0.02  # share that differ from another one in a single field
_ALWAYS = 0.95  # share of pairs that agree, above which a field tells hardly anyone apart
_LONGEST = 2000  # letters of a text that is compared by edits
_BY_LETTERS = ("levenshtein", "damerau_levenshtein", "jaro_winkler")
_MIX = np.uint64(0x9E3779B97F4A7C15)


def input_warnings(
    dictionaries: Sequence[Dictionary],
    records: tuple[Records, ...],
    level_counts: NDArray[np.int64],
) -> Iterator[str]:
    """Everything that is odd about the files, or about one file."""
    for d in dictionaries:
        yield from _missing_codes(d.field, records)
    for d, counts in zip(dictionaries, level_counts, strict=True):
        yield from _agreement(d.field, counts)
    for side in range(len(records) if len(records) > 1 else 0):  # in one file, that is looked for
        codes = [_codes(d, side) for d in dictionaries]
        yield from _twice(codes, "AB"[side], len(records[side]))


# --- missing codes --------------------------------------------------------------------------------


@cache
def _spellings() -> pa.Array:
    days = (day.split("-") for day in FILLER_DAYS)
    written = [
        form.format(y=y, m=m, d=d)
        for y, m, d in days
        for form in ("{y}-{m}-{d}", "{y}{m}{d}", "{d}/{m}/{y}", "{m}/{d}/{y}", "{d}.{m}.{y}")
    ]
    return pa.array(sorted({*SURE_WORDS, *LIKELY_WORDS, *written}), TEXT)


def _missing_codes(field: Field, records: tuple[Records, ...]) -> Iterator[str]:
    """Known codes that are frequent in both files, and so agree with themselves."""
    found = [_codes_in(field, own, side) for side, own in enumerate(records)]
    for word in found[0]:
        if word in found[-1]:
            where = f"{found[0][word]:,} records"
            if len(found) > 1:
                where += f" of A and {found[1][word]:,} of B"
            yield (
                f"field {field.name!r}: {word!r} stands in {where}, and agrees with itself "
                "as if it were a value. If it means missing, say so: "
                f"--missing {word!r} (missing=)."
            )


def _codes_in(field: Field, records: Records, side: int) -> dict[str, int]:
    """Known codes in the columns of a field that are common enough to matter, spelt as found."""
    common: dict[str, int] = {}
    for name in field.columns[side]:
        column = records.columns[name].dictionary_encode()
        texts = pc.utf8_trim_whitespace(column.dictionary)
        hits = np.flatnonzero(pc.is_in(pc.utf8_lower(texts), value_set=_spellings()))
        if not len(hits):
            continue
        codes = column.indices.drop_null().to_numpy()
        counts = np.bincount(codes, minlength=len(texts))
        average = len(column) / max(1, pc.count_distinct(texts).as_py())
        by_word: dict[str, int] = {}
        for k in hits.tolist():
            word = texts[k].as_py()
            by_word[word] = by_word.get(word, 0) + int(counts[k])
        for word, n in by_word.items():
            sure = word.casefold() in SURE_WORDS
            least = max(_AT_LEAST, _COMMON * len(column), 0 if sure else _OFTEN * average)
            if n >= least and word not in (field.missing or ()):
                common[word] = max(n, common.get(word, 0))
    return common


# --- fields that tell nothing ---------------------------------------------------------------------


def _agreement(field: Field, counts: NDArray[np.int64]) -> Iterator[str]:
    compared, agreeing = int(counts[1:].sum()), int(counts[2:].sum())
    if compared and not agreeing:
        yield (
            f"field {field.name!r} never agrees: no value of A is like any of B. Whatever weight "
            "it shows comes from the prior alone. Check that both columns hold the same thing, "
            "written the same way, or leave it out."
        )
    top = int(counts[field.n_levels - len(field.bands) : field.n_levels + 1].sum())
    if top > _ALWAYS * max(1, compared):
        yield (
            f"field {field.name!r} agrees in {100 * top / compared:.0f} % of all pairs, and tells "
            "hardly anyone apart. Leave it out, or block on it if it must be equal."
        )


# --- people there twice ---------------------------------------------------------------------------


def _codes(dictionary: Dictionary, side: int) -> NDArray[np.int64]:
    codes = (dictionary.a, dictionary.b)[side]
    missing = codes.codes == len(codes.values)
    return np.where(missing, -1, codes.codes).astype(np.int64)


def _twice(columns: Sequence[NDArray[np.int64]], file: str, n: int) -> Iterator[str]:
    same, nearly = _repeats(columns)
    if same > max(5, _TWICE * n) or nearly > max(5, _NEARLY_TWICE * n):
        more = f", and {nearly:,} in all but one" if nearly else ""
        yield (
            f"{same:,} records of {file} equal an earlier one in all compared fields{more}. A "
            "linkage is one-to-one: of a person who is there twice only one record can link, and "
            f"neither surely. If people may be there twice, link with --duplicates {file.lower()} "
            "(duplicates=); if they are different people, compare more fields."
        )


def repeated_records(columns: Sequence[Sequence[Any]]) -> int:
    """Records that equal an earlier one in all columns; None stands for missing."""
    numbered = []
    for column in columns:
        number: dict[Any, int] = {None: -1}
        numbered.append(
            np.array([number.setdefault(value, len(number)) for value in column], np.int64)
        )
    return _repeats(numbered)[0]


def _repeats(columns: Sequence[NDArray[np.int64]]) -> tuple[int, int]:
    """Records that equal an earlier one, in all columns and in all but one.

    Of the latter, those that differ in one particular column are not counted: the one in which
    most do, as brothers and sisters differ in their given name. Records with less than half of
    the columns filled are left aside.
    """
    filled = np.sum([column >= 0 for column in columns], axis=0) >= max(1, len(columns) / 2)
    hashed = [_hashed(column[filled], j) for j, column in enumerate(columns)]
    total = np.stack(hashed).sum(0)
    same = len(total) - len(distinct(total))
    if len(columns) < 4:
        return same, 0
    others = sorted(len(total) - len(distinct(total - part)) - same for part in hashed)
    return same, sum(others[:-1])


def _hashed(column: NDArray[np.int64], j: int) -> NDArray[np.uint64]:
    """Numbers scattered over 64 bits, so that their sums tell rows apart."""
    of_column = np.uint64((j + 1) * 0xD1B54A32D192ED03 % 2**64)
    x = (column + 2).astype(np.uint64) * _MIX + of_column
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    return x ^ (x >> np.uint64(31))


# --- texts too long to be compared letter by letter ----------------------------------------------


def refuse_long_texts(records: Sequence[Records], fields: Sequence[Field]) -> None:
    """Refuse a field that compares, by edits, longer texts than any name or address is."""
    for field in fields:
        if field.kind not in _BY_LETTERS:
            continue
        for side, names in zip(range(len(records)), field.columns, strict=False):
            for name in names:
                longest = pc.max(pc.utf8_length(texts_of(records[side].columns[name]))).as_py() or 0
                if longest > _LONGEST:
                    raise InputError(
                        f"input {'AB'[side]}, {records[side].label}: column {name!r} has texts of "
                        f"up to {longest:,} characters, and {field.kind} compares at most "
                        f"{_LONGEST:,}. Use text, tokens or exact for such a column, or shorten it."
                    )
