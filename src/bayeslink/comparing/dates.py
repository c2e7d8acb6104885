"""Dates as people write them, read without losing any, and how two of them compare.

A date is the number YYYYMMDD, with zeros for a month or day that is not known. One that does not
exist (31 February) keeps its digits: it can still agree, or differ in one digit. Which of two
numbers is the day is told from the other dates of the file, unless a format says so.
"""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from bayeslink.comparing.fields import Field

YEARS_OFF = (10_000, 100_000)  # between dates as numbers, one and ten years apart
DATE_COLUMNS = ("YYYYMMDD", "YYYYDDMM", "day number", "digits of YYYYMMDD, four bits each")
ORDERS = ("dmy", "mdy", "ymd")
ALL_DAYS = ("0001-01-01", "9999-12-31")
_SAID = {"dmy": "day, month, year", "mdy": "month, day, year", "ymd": "year, month, day"}
_TIME = re.compile(
    r"(?:[T ]\s*\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?\s*(?:Z|[AaPp][Mm]|[+-]\d{2}:?\d{2})?)\Z"
)
_ISO = re.compile(r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})")
_PARTS = re.compile(r"\d+|[^\W\d_]+")
_BESIDE = re.compile(r"(?<=\d)(?:st|nd|rd|th)\b|\b(?:de|del|di|of)\b", re.IGNORECASE)  # 3rd of May
_MONTHS = {
    word: number
    for number, words in enumerate(
        (
            "jan january januar janvier enero gennaio",
            "feb february februar fevrier février febrero febbraio",
            "mar march marz märz maerz mars marzo",
            "apr april avril abril aprile",
            "may mai mayo maggio",
            "jun june juni juin junio giugno",
            "jul july juli juillet julio luglio",
            "aug august aout août agosto",
            "sep sept september septembre septiembre settembre",
            "oct okt october oktober octobre octubre ottobre",
            "nov november novembre noviembre",
            "dec dez december dezember decembre décembre diciembre dicembre",
        ),
        1,
    )
    for word in words.split()
}
_PIVOT = 30  # years of two digits below it are of this century
_FAR = 100_000  # days between dates that do not exist or are not whole: in no window
OLD_STYLE = 13  # days, at most, between the old and the new calendar
_SHOWN = 20, 1.5, 5.0  # pairs of two calendars, times as many as at other gaps, and in errors
FILLER = 5.0  # times as many dates on 1 January as on other days: it stands for "some day"


# --- reading --------------------------------------------------------------------------------------


def read_date(text: str, order: str, form: str | None, valid: tuple[str, str]) -> int | None:
    """YYYYMMDD of a date, 0 for what is not known; None if it is no date or outside `valid`."""
    text = text.strip()
    value = None
    if form is None and (iso := _ISO.fullmatch(text)):
        value = _put(*iso.groups())  # as `_by_parts` reads it, in far less time
    elif form is not None:
        try:
            day = dt.datetime.strptime(text, form)
            value = day.year * 10000 + day.month * 100 + day.day
        except ValueError:
            pass
    if value is None:
        value = _by_parts(_TIME.sub("", text), order)
    first, last = _bounds(valid)
    low = value and (value if value % 10000 else value + 1231)  # the last day it may mean
    return (
        value if value is not None and low is not None and first <= low and value <= last else None
    )


@cache
def _bounds(valid: tuple[str, str]) -> tuple[int, int]:
    first, last = (int(day.replace("-", "")) for day in valid)
    return first, last


def _by_parts(text: str, order: str) -> int | None:
    """A date from its numbers and the name of a month."""
    parts = _PARTS.findall(_BESIDE.sub("", text))
    numbers = [part for part in parts if part.isdecimal() and part.isascii()]
    named = [_MONTHS[p.casefold()] for p in parts if p.casefold() in _MONTHS]
    if len(named) > 1 or len(numbers) + len(named) != len(parts):
        return None
    if named:
        return _with_month(numbers, named[0])
    if len(numbers) == 1:
        return _compact(numbers[0], order)
    if len(numbers) == 2:
        year, month = sorted(numbers, key=len, reverse=True)
        return _put(year, month, "0") if len(year) == 4 and len(month) <= 2 else None
    if len(numbers) != 3:
        return None
    if len(numbers[0]) == 4:
        return _put(*numbers)
    return _put(**_named(numbers, "dmy" if order == "ymd" and len(numbers[2]) == 4 else order))


def _with_month(numbers: Sequence[str], month: int) -> int | None:
    if len(numbers) == 1:
        return _put(numbers[0], str(month), "0") if len(numbers[0]) == 4 else None
    if len(numbers) != 2:
        return None
    day, year = numbers if len(numbers[0]) <= 2 else numbers[::-1]
    return _put(year, str(month), day)


def _compact(digits: str, order: str) -> int | None:
    if len(digits) == 4:
        return _put(digits, "0", "0")
    if len(digits) == 6 and order == "ymd":
        return _put(digits[:4], digits[4:], "0")
    if len(digits) != 8:
        return None
    edges = {"ymd": (4, 6), "dmy": (2, 4), "mdy": (2, 4)}[order]
    parts = (digits[: edges[0]], digits[edges[0] : edges[1]], digits[edges[1] :])
    return _put(**_named(parts, order))


def _named(parts: Sequence[str], order: str) -> dict[str, str]:
    names = {"d": "day", "m": "month", "y": "year"}
    return {names[letter]: part for letter, part in zip(order, parts, strict=True)}


def _put(year: str, month: str, day: str) -> int | None:
    """The number of a date, whether it exists or not; two digits are a year of our time."""
    if len(year) not in (2, 4) or len(month) > 2 or len(day) > 2:
        return None
    y, m, d = int(year), int(month), int(day)
    if len(year) == 2:
        y += 2000 if y < _PIVOT else 1900
    return (y * 10000 + m * 100 + (d if m else 0)) or None


def exists(date: int) -> bool:
    try:
        dt.date(date // 10000, date // 100 % 100, date % 100)
    except ValueError:
        return False
    return True


def order_of(form: str) -> str:
    """In which order a format has day, month and year."""
    found = re.findall("%[dmyYbB]", form)
    letters = "".join({"d": "d", "m": "m", "b": "m", "B": "m"}.get(f[1], "y") for f in found)
    return letters if letters in ORDERS else "ymd"


def tell_orders(
    sides: Sequence[Counter[str]], formats: Sequence[str | None], valid: tuple[str, str]
) -> tuple[list[str | None], list[bool]]:
    """The order of day, month and year in each file: that in which most of its dates exist.

    A format settles it. Where several read as many, that in which most dates are also in the
    other file; None where that does not tell either, and it makes a difference. And whether it
    makes a difference.
    """
    read = [_read_each_way(texts, valid) for texts in sides]
    best = []
    for side, form in zip(read, formats, strict=True):
        if form is not None:
            best.append([order_of(form)])
            continue
        most = max(sum(dates.values()) for dates in side.values())
        best.append([o for o in ORDERS if sum(side[o].values()) == most])
    shared = {(x, y): sum((read[0][x] & read[1][y]).values()) for x in best[0] for y in best[1]}
    chosen = max(shared, key=lambda orders: shared[orders])
    differ = [
        form is None and side["dmy"] != side["mdy"]
        for side, form in zip(read, formats, strict=True)
    ]
    orders: list[str | None] = []
    for k in (0, 1):
        as_good = {o[k] for o, n in shared.items() if n == shared[chosen]}
        told = not differ[k] or not {"dmy", "mdy"} <= as_good
        orders.append(chosen[k] if told else None)
    return orders, differ


def _read_each_way(texts: Counter[str], valid: tuple[str, str]) -> dict[str, Counter[int]]:
    """The dates of a file in each order; those that begin with the year are the same in all."""
    iso = Counter({text: n for text, n in texts.items() if _ISO.fullmatch(text.strip())})
    others = Counter({text: n for text, n in texts.items() if text not in iso})
    same = _existing(iso, "ymd", valid)
    return {order: same + _existing(others, order, valid) for order in ORDERS}


def _existing(texts: Counter[str], order: str, valid: tuple[str, str]) -> Counter[int]:
    dates: Counter[int] = Counter()
    for text, times in texts.items():
        date = read_date(text, order, None, valid)
        if date is not None and (exists(date) or date % 100 == 0):
            dates[date] += times
    return dates


def said(field: Field) -> str | None:
    """In which order days and months were read, where the data had to tell."""
    told = [
        f"{_SAID[order]} in {'AB'[side]}"
        for side, order in enumerate(field.options["orders"])
        if field.options["told"][side]
    ]
    if not told:
        return None
    return f"dates of field {field.name!r} were read as {' and as '.join(told)}, as the data tell."


def shape(text: str) -> str:
    """What a text looks like, and nothing of what it says."""
    bare = re.sub(r"\d", "9", text.strip())[:20]
    return re.sub(r"[^\W\d_]", "a", bare)


def fillers(*sides: dict[int, int]) -> bool:
    """Whether 1 January is so frequent, in either file, that it stands for an unknown day."""
    for counts in sides:
        whole = sum(n for date, n in counts.items() if date % 100)
        first = sum(n for date, n in counts.items() if date % 10000 == 101)
        if first > max(20, FILLER * whole / 365):
            return True
    return False


def two_calendars(*sides: dict[int, int]) -> bool:
    """Whether dates lie as far apart as two calendars far more often than a few days off that."""
    dates, counts, days = [], [], []
    for side in sides:
        array = date_array(np.array(sorted(side), np.int64))
        whole = array[:, 2] > -_FAR * 10**6
        dates.append(array[whole, 0])
        days.append(array[whole, 2])
        counts.append(np.array([side[date] for date in dates[-1].tolist()], np.int64))
    here, expected = 0, 0.0
    for old, new in ((0, 1), (1, 0)):
        gap = style_gap(dates[old])
        at = np.append(counts[new], 0)
        for off in (-4, -3, 0, 3, 4):
            wanted = np.where(gap > 0, days[old] + gap + off, -_FAR)
            place = np.searchsorted(days[new], wanted)
            hit = np.append(days[new], _FAR**2)[place] == wanted
            n = int((counts[old] * at[place] * hit).sum())
            here, expected = (here + n, expected) if off == 0 else (here, expected + n / 4)
    least, times, errors = _SHOWN
    return here >= max(least, times * expected, expected + errors * np.sqrt(expected))


# --- comparing ------------------------------------------------------------------------------------


def date_array(dates: NDArray[np.int64]) -> NDArray[np.int64]:
    """A row of `DATE_COLUMNS` for each."""
    year, month, day = dates // 10000, dates // 100 % 100, dates % 100
    safe = np.clip(month, 1, 12)
    start = ((year - 1970) * 12 + safe - 1).astype("M8[M]")
    length = ((start + 1).astype("M8[D]") - start.astype("M8[D]")).astype(np.int64)
    real = (month == safe) & (day >= 1) & (day <= length) & (year >= 1)
    days = np.where(real, start.astype("M8[D]").astype(np.int64) + day, -_FAR * (dates + 10**6))
    digits = sum((dates // 10**p % 10) << (4 * p) for p in range(8))
    return np.stack([dates, year * 10000 + day * 100 + month, days, digits], 1)


def date_levels(field: Field, left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.uint8]:
    """Levels of dates given as rows of `DATE_COLUMNS`."""
    days = np.abs(left[..., 2] - right[..., 2])
    levels = np.ones(days.shape, np.uint8)
    for cut in field.cuts[:0:-1]:
        levels[days <= cut] += 1
    level = len(field.cuts)
    x, y = left[..., 0], right[..., 0]
    if field.options["filler"]:
        level += 1
        year = x // 10000 == y // 10000
        levels[year & ((x % 10000 == 101) | (y % 10000 == 101))] = level
    if field.options["partial"]:
        level += 1
        levels[_as_far_as_known(x, y)] = level
    if field.options["calendar"]:
        level += 1
        levels[days == style_gap(np.minimum(x, y))] = level
    if field.options["one_digit"]:
        level += 1
        wrong = left[..., 3] ^ right[..., 3]
        wrong |= wrong >> 2
        wrong = (wrong | wrong >> 1) & 0x11111111  # a bit for each digit that differs
        one = (wrong != 0) & (wrong & (wrong - 1) == 0)
        one |= np.isin(np.abs(x - y), YEARS_OFF)
        levels[one & (x % 100 != 0) & (y % 100 != 0)] = level
    if field.options["exchanged"]:
        level += 1
        levels[_exchanged(left[..., 3], right[..., 3]) & (x % 100 != 0) & (y % 100 != 0)] = level
    if field.options["swapped"]:
        level += 1
        levels[(left[..., 1] == y) & (x % 100 != 0)] = level
    levels[days <= field.cuts[0]] = level + 1
    return levels


def _exchanged(x: NDArray[Any], y: NDArray[Any]) -> NDArray[np.bool_]:
    """Two neighbouring digits are in the other order, and all others are the same."""
    out = np.zeros(np.broadcast_shapes(x.shape, y.shape), bool)
    for place in range(0, 28, 4):
        differ = (x >> place ^ x >> (place + 4)) & 0xF
        out |= (differ != 0) & (x ^ (differ << place | differ << (place + 4)) == y)
    return out


def exchanges(dates: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """The dates with each two neighbouring digits exchanged."""
    return [
        dates + (dates // (10 * p) % 10 - dates // p % 10) * (p - 10 * p)
        for p in (10**k for k in range(7))
    ]


def style_gap(dates: NDArray[Any]) -> NDArray[Any]:
    """Days from a date of the old calendar to the same day in the new; −1 if there was but one."""
    century = dates // 1_000_000
    return np.where(dates >= 15821015, century - century // 4 - 2, -1)


def _as_far_as_known(x: NDArray[Any], y: NDArray[Any]) -> NDArray[np.bool_]:
    """One of two dates lacks the day, or month and day, and they agree in the rest."""
    month = (x // 100 == y // 100) & ((x % 100 == 0) | (y % 100 == 0))
    year = (x // 10000 == y // 10000) & ((x % 10000 == 0) | (y % 10000 == 0))
    return month | year
