"""Numbers with a unit: 175 cm, 1.75 m, 5 ft 9 in and 5'9" are lengths that can be compared."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

# What is measured -> its units, each with how many of the first it is.
_MEASURES = {
    "length": "m 1, cm .01, mm .001, km 1000, dm .1, in .0254, inch .0254, inches .0254, "
    "ft .3048, foot .3048, feet .3048, yd .9144, mi 1609.344, mile 1609.344, miles 1609.344, "
    "' .3048, ′ .3048, ’ .3048, \" .0254, ″ .0254, ” .0254",
    "mass": "kg 1, g .001, mg .000001, t 1000, lb .45359237, lbs .45359237, oz .028349523125, "
    "st 6.35029318, kgs 1, kilo 1, kilos 1, gr .001",
    "volume": "l 1, ml .001, cl .01, dl .1, hl 100, gal 3.785411784, litre 1, litres 1, liter 1",
    "area": "m2 1, m² 1, sqm 1, qm 1, ha 10000, km2 1000000, km² 1000000, sqft .09290304, "
    "acre 4046.8564224, acres 4046.8564224",
    "time": "d 1, day 1, days 1, wk 7, week 7, weeks 7",
}
FACTORS: dict[str, tuple[str, float]] = {
    unit: (measure, float(factor))
    for measure, units in _MEASURES.items()
    for unit, factor in (entry.split() for entry in units.split(", "))
}
_NUMBER = r"([+-]?\d[\d.,]*)"
_UNIT = r"([^\W\d_]+(?:²|2(?!\d))?\.?|['′’\"″”]{1,2})"
_AMOUNTS = re.compile(rf"{_NUMBER}\s*(?:{_UNIT}\s*(?:{_NUMBER}\s*{_UNIT}?)?)?")
_NEXT = {"m": "cm", "ft": "in", "'": '"', "′": "″", "’": "”", "st": "lb", "feet": "in"}  # 1 m 75


def in_unit(text: str, decimal: Callable[[str], float], wanted: str | None) -> float | None:
    """A number with a unit as so many `wanted`, or of the first unit of what it measures.

    None if the text is no such number, or measures something else.
    """
    parts = amounts(text)
    if not parts or parts[0][1] is None:
        return None
    measure = FACTORS[parts[0][1]][0]
    if wanted is not None and FACTORS[wanted][0] != measure:
        return None
    total, last = 0.0, ""
    for number, unit in parts:
        found = unit or _NEXT.get(last)
        if found is None or FACTORS[found][0] != measure:
            return None
        part = decimal(number) * FACTORS[found][1]
        if last and part >= FACTORS[last][1]:  # 1 m 75 is one, 1 m 175 is not
            return None
        total += part
        last = found
    return converted(total, None, wanted)


def converted(value: float, unit: str | None, wanted: str | None) -> float:
    """A value in `unit` as so many `wanted`; None stands for the first unit of each measure."""
    factor = 1.0 if unit is None else FACTORS[unit][1]
    by = 1.0 if wanted is None else FACTORS[wanted][1]
    return float(f"{value * factor / by:.9g}")  # 1.15 m are 115 cm, and not a hair less


@lru_cache(2**14)
def amounts(text: str) -> tuple[tuple[str, str | None], ...]:
    """The one or two numbers of a text, each with its unit: (("5", "ft"), ("9", "in")).

    () if the text is anything else.
    """
    bare = text.strip().replace("''", '"').replace("’’", '"').replace("′′", '"')
    if not (found := _AMOUNTS.fullmatch(bare)):
        return ()
    first, its, second, other = found.groups()
    units = [unit and (unit.rstrip(".").casefold() or None) for unit in (its, other)]
    if any(unit is not None and unit not in FACTORS for unit in units):
        return ()
    return ((first, units[0]), *([(second, units[1])] if second else []))
