"""Values that stand for "nothing known": by a list of words, and by how they stand out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bayeslink.data.missing_words import (
    FILLER_DAYS,
    FILLER_NUMBERS,
    LIKELY_WORDS,
    SURE_WORDS,
)
from bayeslink.suggesting.date_formats import Formats
from bayeslink.suggesting.shapes import WHOLE_NUMBER, digits

_COMMON = 0.005  # share of the cells, from which a likely word is taken for missing
_OFTEN = 10  # times as common as the average value of the column
_AT_LEAST = 5  # cells
_BY_ITSELF = 20  # times as common as the next value: then even an unlisted value is a filler
_CATEGORIES, _RARE = 15, 0.25  # values of a category; share of its cells
_OF_DIGITS = ("date", "number", "age", "year", "phone", "postcode", "latitude", "longitude")
_OF_LETTERS = ("given name", "family name", "second family name", "full name", "place", "street")
_KEYS = ("phone", "e-mail", "identifier", "date")  # hardly any two people share a value


def missing_words(texts: Mapping[str, int]) -> tuple[str, ...]:
    """Spellings of words that mean missing wherever they stand."""
    return tuple(sorted(text for text in texts if text.casefold() in SURE_WORDS))


def likely_words(texts: Mapping[str, int]) -> tuple[str, ...]:
    """Words that may be a name, but are too common here to be one."""
    return tuple(
        text
        for text, n in texts.items()
        if text.casefold() in LIKELY_WORDS and (stands_out(n, texts) or _is_odd(text, texts))
    )


def _is_odd(text: str, texts: Mapping[str, int]) -> bool:
    """Whether it is rare in a category whose other values are longer, or shorter, than it."""
    total = sum(texts.values())
    alike = sum(n for other, n in texts.items() if len(other) == len(text) and other != text)
    few = len(texts) <= _CATEGORIES and total >= _CATEGORIES
    return few and len(text) > 1 and texts[text] < _RARE * total and alike < _RARE * total


def stands_out(n: int, texts: Mapping[str, int]) -> bool:
    """Whether a value found n times is far more common than the values of a column are."""
    total = sum(texts.values())
    return n >= max(_AT_LEAST, _COMMON * total, _OFTEN * total / max(1, len(texts)))


def fillers(texts: Mapping[str, int], kind: str, dates: Formats | None) -> tuple[str, ...]:
    """Values of a column of this kind that stand for none: 999, 1900-01-01, 000-000-0000."""
    found: set[str] = set()
    if kind == "date" and dates:
        found.update(_filler_days(texts, dates))
    if kind in ("number", "age", "year", "code", "category", "house number"):
        found.update(_filler_numbers(texts))
    if kind in (*_OF_DIGITS, *_OF_LETTERS):
        expected = str.isdigit if kind in _OF_DIGITS else str.isalpha
        enough = max(_AT_LEAST, _COMMON * sum(texts.values()))
        found.update(t for t, n in texts.items() if n >= enough and not any(map(expected, t)))
    if kind in ("phone", "identifier", "postcode"):
        repeated = (text for text in texts if len(digits(text)) > 3 and len({*digits(text)}) == 1)
        found.update(
            text
            for text in repeated
            if stands_out(texts[text], texts) or ({*text} <= {*"09 "} and texts[text] >= _AT_LEAST)
        )
    if kind in _KEYS and len(texts) > 2:
        first, second = sorted(texts, key=lambda text: -texts[text])[:2]
        if stands_out(texts[first], texts) and texts[first] > _BY_ITSELF * texts[second]:
            found.add(first)
    return tuple(sorted(found))


def _filler_days(texts: Mapping[str, int], dates: Formats) -> Iterator[str]:
    """Listed days that are too common; 1 January must be so beside those of other years."""
    days = {text: dates.read(text) for text in texts}
    new_years = [texts[t] for t, day in days.items() if day and day.month == day.day == 1]
    for text, day in days.items():
        n = texts[text]
        if day is None:
            if {*digits(text)} in ({"0"}, {"9"}):
                yield text
        elif day.isoformat() in FILLER_DAYS and n > 1:
            rivals = [m for m in new_years if m != n or new_years.count(m) > 1]
            if day.year == 9999 or (stands_out(n, texts) and n > 5 * max(rivals, default=0)):
                yield text


def _filler_numbers(texts: Mapping[str, int]) -> Iterator[str]:
    """Listed numbers that lie far outside all others, and are there more than once."""
    numbers = {text: int(text) for text in texts if WHOLE_NUMBER.fullmatch(text)}
    codes = {text for text in numbers if text in FILLER_NUMBERS}
    others = [value for text, value in numbers.items() if text not in codes]
    if not others:
        return
    for text in codes:
        value = numbers[text]
        far = value > 2 * max(others) if value > 0 else min(others) >= 0
        if far and texts[text] > 1:
            yield text
