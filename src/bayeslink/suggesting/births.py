"""Dates of birth told from those of events; dates whose year, month and day stand apart.

Births are spread over a lifetime and come before all else that happens to a person. What the name
says counts first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from bayeslink.comparing.dates import ALL_DAYS, exists, read_date
from bayeslink.suggesting.column_names import EVENTS
from bayeslink.suggesting.date_formats import Formats
from bayeslink.suggesting.missing_codes import fillers
from bayeslink.suggesting.profiles import Profile

_LIFETIME = 25  # years that the middle nine tenths of births span, at least
_NEARLY_ALL = 0.97  # of the rows
_PARTS = (("year", 1850, 2035, 2), ("month", 1, 12, 6), ("day", 1, 31, 13))  # name, range, values
_ISO = Formats(("%Y-%m-%d",), 1.0, 1.0, False)


def with_events(profiles: Sequence[Profile]) -> list[Profile]:
    """The profiles, dates of events marked as such."""
    dates = [p for p in profiles if p.kind == "date"]
    return [replace(p, event=_is_event(p, dates)) if p.kind == "date" else p for p in profiles]


def _is_event(profile: Profile, dates: Sequence[Profile]) -> bool:
    if profile.thing == "birth date" or profile.thing in EVENTS:
        return profile.thing != "birth date"
    for other in dates:
        if other is not profile and (before := _years_before(profile, other)) is not None:
            return not before
    years = [int(key[:4]) for key in profile.present if key[:4].isdigit()]
    return bool(years) and float(np.subtract(*np.quantile(years, [0.95, 0.05]))) < _LIFETIME


def _years_before(x: Profile, y: Profile) -> bool | None:
    """Whether x comes before y, by a lifetime at times, in nearly all rows; None if neither does.

    Of two dates of events, neither does: they are near each other.
    """
    both = [
        (int(p[:4]), int(q[:4]), p <= q)
        for p, q in zip(x.keys, y.keys, strict=True)
        if p and q and p[:4].isdigit() and q[:4].isdigit()
    ]
    if len(both) < 20:
        return None
    first, second, before = np.array(both).T
    if float(np.quantile(np.abs(second - first), 0.9)) < _LIFETIME:
        return None
    share = float(before.mean())
    return share >= _NEARLY_ALL if share >= _NEARLY_ALL or share <= 1 - _NEARLY_ALL else None


def joined_dates(profiles: Sequence[Profile]) -> list[Profile]:
    """Dates that three columns make up, each of which has one part; those beside each other."""
    found = []
    places = {p.name: k for k, p in enumerate(profiles)}
    candidates = [
        [p for p in profiles if _may_be(p, part, low, high, least)]
        for part, low, high, least in _PARTS
    ]
    if all(candidates):
        apart = [
            parts
            for parts in product(*candidates)
            if len({p.name for p in parts}) == 3
        ]  # fmt: skip
        apart.sort(
            key=lambda parts: (
                -sum((p.thing or "").startswith("birth ") for p in parts),
                np.ptp([places[p.name] for p in parts]),
            )
        )
        found = [_joined(parts) for parts in apart[:1]]
    return [p for p in found if p is not None]


def _may_be(p: Profile, part: str, low: int, high: int, least: int) -> bool:
    """Whether a column has years, months or days."""
    if p.thing not in (None, part, f"birth {part}", "birth date", "date", "birth day"):
        return False
    values = {*p.present}
    if len(values) < least or p.kind not in ("year", "category", "code", "number", "identifier",
                                             "words"):  # fmt: skip
        return False
    if part == "month" and not any(map(str.isdigit, values)):
        return len(values) <= 12 and all(
            read_date(f"1 {value} 2000", "dmy", None, ALL_DAYS) for value in values
        )
    numbers = {int(value) for value in values if value.isdecimal()}
    inside = sum(low <= number <= high for number in numbers)
    return bool(numbers) and inside == len(numbers) and len(numbers) >= 0.95 * len(values)


def _joined(parts: Sequence[Profile]) -> Profile | None:
    """A profile of the dates of three columns; None if they make no dates."""
    texts = [
        "-".join(cells) if all(cells) else None
        for cells in zip(*(p.cells for p in parts), strict=True)
    ]
    known = {text: read_date(text, "ymd", None, ALL_DAYS) for text in {*texts} - {None} if text}
    real = [text for text in texts if text and (day := known[text]) and exists(day)]
    counts = Counter(text for text in texts if text)
    if not counts or len(real) < 0.9 * counts.total():
        return None
    codes = {*fillers(counts, "date", _ISO)}
    iso = {
        text: f"{day // 10000:04d}-{day // 100 % 100:02d}-{day % 100:02d}"
        for text, day in known.items()
        if day and text not in codes
    }
    keys = [iso.get(text) if text else None for text in texts]
    values = Counter(key for key in keys if key)
    n = values.total()
    same = sum(k * (k - 1) for k in values.values())
    return replace(
        parts[0],
        name=" + ".join(p.name for p in parts),
        columns=tuple(p.name for p in parts),
        kind="date",
        thing="birth date" if any("birth" in (p.thing or "") for p in parts) else "date",
        complete=min(p.complete for p in parts),
        n_distinct=len(values),
        chance=(same + 1) / (n * (n - 1) + 1),
        unique=False,
        numbered=False,
        dates=_ISO,
        fillers=tuple(sorted(codes)),
        cells=texts,
        keys=keys,
    )
