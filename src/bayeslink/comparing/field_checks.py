"""What the settings of a field may be: each is checked and made a tuple of plain Python values.

Arrays and numbers of NumPy and its kin are taken wherever lists and numbers are.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Mapping
from typing import Any

from bayeslink.comparing.units import FACTORS
from bayeslink.errors import SettingsError
from bayeslink.plain import is_text, plain, texts

NORMALISATIONS = ("unicode", "case", "accents", "punctuation", "space")
# Parts of a whole name; the last two where the family name comes first, without a comma.
GIVEN, FAMILY, GIVEN_LAST, FAMILY_FIRST = PARTS = ("given", "family", "given last", "family first")

Columns = tuple[tuple[str, ...], tuple[str, ...]]


def check_text(kind: str, what: str, value: Any) -> None:
    if not is_text(value) or not value:
        raise SettingsError(f"{kind}: {what} must be named by text, got {value!r}.")


def checked_name(kind: str, column: str, given: Any) -> str:
    name: str = plain(given) or column
    check_text(kind, f"the field {column!r}", name)
    return name


def checked_flag(column: str, which: str, given: Any) -> bool:
    flag = plain(given)
    if not isinstance(flag, bool):
        raise SettingsError(f"{column!r}: {which} must be true or false, got {given!r}.")
    return flag


def checked_columns(kind: str, column: str, longitude: str | None, given: Any) -> Columns:
    names = (column,) if longitude is None else (column, longitude)
    if given is None:
        return names, names
    sides = plain(given)
    if isinstance(sides, list) and len(sides) == 2:
        a, b = map(texts, sides)
        if a and b and _fit_in_number(kind, a, b):
            return a, b
    several = {
        "geo": ", each as (latitude, longitude)",
        "date": ", each alone or as (year, month, day)",
    }.get(kind, "")
    raise SettingsError(
        f"{kind}({column!r}): columns takes the name in A and the name in B{several}, "
        f"got {given!r}."
    )


def _fit_in_number(kind: str, a: tuple[str, ...], b: tuple[str, ...]) -> bool:
    """A place has two columns, a number one, a date one or three; texts may have any number."""
    if kind == "date":  # or its year, month and day
        return {len(a), len(b)} <= {1, 3}
    if kind in ("geo", "numeric"):
        return len(a) == len(b) == 1 + (kind == "geo")
    return True


def numbers(values: Any) -> tuple[float, ...] | None:
    """As numbers; None if one of them is no number."""
    try:
        return None if isinstance(values, str) else tuple(float(value) for value in plain(values))
    except (TypeError, ValueError):
        return None


def checked_cuts(column: str, given: Any, *, rising: bool) -> tuple[float, ...]:
    cuts = numbers(given)
    ordered = sorted(set(cuts or ()), reverse=not rising)
    if not cuts or list(cuts) != ordered or not all(0 <= c < math.inf for c in cuts):
        order = "rising" if rising else "falling"
        raise SettingsError(
            f"{column!r}: cuts must be {order} numbers, none negative, best level first, "
            f"got {given!r}."
        )
    return cuts


def checked_bands(column: str, given: Any) -> tuple[float, ...]:
    bands = () if given is None else numbers(given)
    if (
        bands is None
        or list(bands) != sorted(set(bands), reverse=True)
        or not all(0 < b < 1 for b in bands)
    ):
        raise SettingsError(
            f"{column!r}: bands must be falling shares between 0 and 1, "
            f"such as (.01, .001), got {given!r}."
        )
    return bands


def checked_normalisation(column: str, given: Any) -> tuple[str, ...]:
    steps = texts(given)
    wrong = [step for step in steps or () if step not in NORMALISATIONS]
    if steps is None or wrong:
        raise SettingsError(
            f"{column!r}: unknown normalisation {wrong[0] if wrong else given!r}. "
            f"Allowed: {', '.join(NORMALISATIONS)}; () for none."
        )
    return tuple(step for step in NORMALISATIONS if step in steps)


def checked_missing(column: str, given: Any) -> tuple[str, ...] | None:
    if given is None:
        return None
    values = texts(given)
    if values is None:
        raise SettingsError(f"{column!r}: missing takes texts, such as ('NA', '999').")
    return tuple(value.strip() for value in values)


def checked_prior(
    column: str, which: str, given: Any, default: tuple[float, ...]
) -> tuple[float, ...]:
    if given is None:
        return default
    if isinstance(given, Mapping):
        return checked_by_label(column, which, given, default)
    prior = numbers(given)
    if prior is None or len(prior) != len(default) or not all(0 < x < math.inf for x in prior):
        raise SettingsError(
            f"{column!r}: {which} takes {len(default)} positive finite numbers, one a level from "
            f"worst to best, got {given!r}."
        )
    return prior


def checked_by_label(
    column: str, which: str, given: Mapping[str, Any], default: tuple[float, ...]
) -> tuple[float, ...]:
    """Priors by the labels of levels, which may follow from the data: the default until then."""
    prior = numbers(list(given.values()))
    if prior is None or not all(0 < x < math.inf for x in prior):
        raise SettingsError(
            f"{column!r}: {which} by label takes positive finite numbers, got {dict(given)!r}."
        )
    return default


def checked_bounds(column: str, valid: Any) -> tuple[float, float]:
    try:
        low, high = plain(valid)
        low = -math.inf if low is None else float(low)
        high = math.inf if high is None else float(high)
    except (TypeError, ValueError):
        low, high = 1.0, 0.0
    if not low < high:
        raise SettingsError(
            f"{column!r}: valid takes (lowest, highest), either may be None, got {valid!r}."
        )
    return low, high


def checked_units(column: str, given: Any) -> tuple[str | None, str | None]:
    """The unit of bare numbers in A and in B."""
    units = plain(given)
    units = units if isinstance(units, list) else [units, units]
    named = [str(unit).casefold() for unit in units if unit]
    measures = {FACTORS[unit][0] if unit in FACTORS else unit for unit in named}
    if len(units) != 2 or not {*named} <= {*FACTORS} or len(measures) > 1 or len(named) == 1:
        raise SettingsError(
            f"numeric({column!r}): units takes one unit, or that of A and that of B, which measure "
            f"the same, got {given!r}. Allowed: {', '.join(u for u in FACTORS if u.isalnum())}."
        )
    return (named[0], named[1]) if named else (None, None)


def checked_recodes(column: str, given: Any) -> tuple[dict[str, str], dict[str, str]]:
    """What values of A and of B stand for: {"1": "M", "2": "F"} for both, or a pair of these."""
    sides = given if isinstance(given, list | tuple) and len(given) == 2 else (given, given)
    a, b = (_checked_recode(column, side) for side in sides)
    return a, b


def _checked_recode(column: str, given: Any) -> dict[str, str]:
    if not isinstance(given, Mapping) or not all(
        is_text(plain(text)) for text in (*given.keys(), *given.values())
    ):
        raise SettingsError(
            f"exact({column!r}): recode takes what values stand for, as texts, such as "
            f'{{"1": "M", "2": "F"}}, or one such table for A and one for B, got '
            f"{type(given).__name__}."
        )
    return {str(plain(value)): str(plain(meaning)) for value, meaning in given.items()}


def checked_parts(column: str, given: Any) -> tuple[str | None, str | None]:
    """Which part of a whole name is compared, of A and of B."""
    parts = plain(given)
    parts = parts if isinstance(parts, list) else [parts, parts]
    if len(parts) != 2 or not {*parts} <= {None, "", *PARTS}:
        raise SettingsError(
            f"name({column!r}): part takes the part of a whole name, or that in A and that in B "
            f"(None: the column as it is), got {given!r}. Allowed: {', '.join(map(repr, PARTS))}."
        )
    return parts[0] or None, parts[1] or None


def checked_formats(column: str, given: Any) -> tuple[str | None, str | None]:
    formats = plain(given)
    formats = formats if isinstance(formats, list) else [formats, formats]
    if len(formats) != 2:
        raise SettingsError(f"date({column!r}): give one format, or one for A and one for B.")
    for form in formats:
        try:
            if form is not None and form != "":
                dt.datetime.strptime(dt.datetime(1984, 11, 23).strftime(form), form)
                parts = set(re.findall("%.", form))
                if not is_text(form) or not ({"%d", "%m"} <= parts or "%j" in parts):
                    raise ValueError
        except (TypeError, ValueError, re.error):
            raise SettingsError(
                f"date({column!r}): {form!r} is no format of a whole date. "
                "Use %d, %m and %Y, for example %d/%m/%Y, or one such format for each file."
            ) from None
    return formats[0] or None, formats[1] or None


def checked_days(column: str, valid: Any) -> tuple[str, str]:
    """The first and the last day, given as texts or dates."""
    try:
        first, last = (dt.date.fromisoformat(str(day)) for day in plain(valid))
    except (TypeError, ValueError):
        raise SettingsError(
            f"date({column!r}): valid takes the first and last day as YYYY-MM-DD, got {valid!r}."
        ) from None
    if first > last:
        raise SettingsError(f"date({column!r}): valid runs from {last} back to {first}: turn it.")
    return first.isoformat(), last.isoformat()
