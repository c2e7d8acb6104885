"""Dates in texts: which formats they are written in, told from the texts themselves."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from bayeslink.comparing.dates import ALL_DAYS, read_date

AS_IT_LOOKS = "day, month in words, year"  # in any language that is known, rather than a format
# Shape of the text -> the formats it may be, the likelier first.
_SHAPES = {
    r"\d{4}-\d{1,2}-\d{1,2}": ("%Y-%m-%d", "%Y-%d-%m"),
    r"\d{4}/\d{1,2}/\d{1,2}": ("%Y/%m/%d", "%Y/%d/%m"),
    r"\d{4}\.\d{1,2}\.\d{1,2}": ("%Y.%m.%d",),
    r"\d{1,2}/\d{1,2}/\d{4}": ("%d/%m/%Y", "%m/%d/%Y"),
    r"\d{1,2}-\d{1,2}-\d{4}": ("%d-%m-%Y", "%m-%d-%Y"),
    r"\d{1,2}\.\d{1,2}\.\d{4}": ("%d.%m.%Y", "%m.%d.%Y"),
    r"\d{1,2}/\d{1,2}/\d{2}": ("%d/%m/%y", "%m/%d/%y"),
    r"\d{1,2}-\d{1,2}-\d{2}": ("%d-%m-%y", "%m-%d-%y"),
    r"\d{1,2}\.\d{1,2}\.\d{2}": ("%d.%m.%y", "%m.%d.%y"),
    r"\d{8}": ("%Y%m%d", "%d%m%Y", "%m%d%Y"),
    r"\d{1,2} [A-Za-z]{3} \d{4}": ("%d %b %Y",),
    r"\d{1,2}-[A-Za-z]{3}-\d{4}": ("%d-%b-%Y",),
    r"\d{1,2}-[A-Za-z]{3}-\d{2}": ("%d-%b-%y",),
    r"\d{1,2} [A-Za-z]{4,9} \d{4}": ("%d %B %Y",),
    r"[A-Za-z]{3} \d{1,2}, \d{4}": ("%b %d, %Y",),
    r"[A-Za-z]{4,9} \d{1,2}, \d{4}": ("%B %d, %Y",),
    r"\d{1,2}\.?[ -](de )?[^\W\d_]{3,10}\.?[ -](de )?\d{4}": (AS_IT_LOOKS,),  # 3. März 1985
    r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}": ("%Y-%m-%dT%H:%M:%S",),
    r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}": ("%Y-%m-%d %H:%M:%S",),
}
_COMPILED = {re.compile(shape): formats for shape, formats in _SHAPES.items()}
_ENOUGH = 3000  # texts, to tell formats by
_LAST_YEAR = 2035  # of dates that say that a number of eight digits is one


@dataclass(frozen=True, slots=True)
class Formats:
    """The formats of a column of dates, commonest first, and what share of it they read."""

    formats: tuple[str, ...]
    share: float
    first_share: float  # of the commonest format alone
    ambiguous: bool  # day and month cannot be told apart

    def read(self, text: str) -> dt.date | None:
        for form in self.formats:
            if day := parse(text, form):
                return day
        return None


@lru_cache(2**17)
def parse(text: str, form: str) -> dt.date | None:
    """The day a text means in a format; None if it means none."""
    if form == AS_IT_LOOKS:
        number = read_date(text, "dmy", None, ALL_DAYS) or 0
        text, form = f"{number:08d}", "%Y%m%d"
    try:
        return dt.datetime.strptime(text, form).date()
    except ValueError:
        return None


def find_formats(texts: Mapping[str, int]) -> Formats:
    """The formats that texts (with their numbers) are written in, if they are dates at all."""
    by_shape: dict[tuple[str, ...], dict[str, int]] = {}
    texts = dict(islice(texts.items(), _ENOUGH))
    for text, n in texts.items():
        formats = next((f for shape, f in _COMPILED.items() if shape.fullmatch(text)), None)
        if formats:
            by_shape.setdefault(formats, {})[text] = n
    total = max(1, sum(texts.values()))
    found: dict[str, int] = {}
    ambiguous = False
    for formats, of_shape in by_shape.items():
        read = {form: _readable(of_shape, form) for form in formats}
        best = max(formats, key=lambda form: read[form])  # the first of equally good ones
        found[best] = found.get(best, 0) + read[best]
        order = _day_first(best)
        rivals = [form for form in formats if _day_first(form) != order and form[:2] != "%Y"]
        ambiguous |= any(read[form] == read[best] > 0 for form in rivals)
    ranked = sorted((form for form in found if found[form]), key=lambda form: -found[form])
    return Formats(
        formats=tuple(ranked),
        share=sum(found.values()) / total,
        first_share=(found[ranked[0]] / total) if ranked else 0.0,
        ambiguous=ambiguous,
    )


def _readable(texts: Mapping[str, int], form: str) -> int:
    eight_digits = form in ("%Y%m%d", "%d%m%Y", "%m%d%Y")
    days = ((parse(text, form), n) for text, n in texts.items())
    return sum(n for day, n in days if day and (not eight_digits or 1800 <= day.year <= _LAST_YEAR))


def _day_first(form: str) -> bool:
    month = next((form.find(part) for part in ("%m", "%b", "%B") if part in form), len(form))
    return form.find("%d") < month
