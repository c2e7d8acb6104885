"""Numbers in different units, told by their ratio in likely pairs; degrees that make a place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bayeslink.comparing.comparisons import number
from bayeslink.comparing.units import FACTORS, amounts
from bayeslink.suggesting.column_names import words
from bayeslink.suggesting.column_pairs import ColumnPair
from bayeslink.suggesting.likely_pairs import ENOUGH, LikelyPairs
from bayeslink.suggesting.profiles import Profile

_NEAR, _ROUGHLY = 0.03, 0.2  # of a ratio
_USUAL = ("cm", "m", "kg", "g", "lb", "in", "ft", "mm", "km", "l", "ml", "oz", "t", "d", "week")
_MEASURED = ("height", "weight")  # by their names; then the columns' medians tell, too


def as_places(pairs: Sequence[ColumnPair]) -> list[ColumnPair]:
    """The pairs, those of latitude and of longitude made one."""
    found = {pair.kind: pair for pair in pairs if pair.kind in ("latitude", "longitude")}
    if len(found) < 2:
        return [*pairs]
    x, y = found["latitude"], found["longitude"]
    place = ColumnPair((*x.a, *y.a), (*x.b, *y.b), "geo", x.shared, "latitude and longitude")
    return [place if pair is x else pair for pair in pairs if pair is not y]


def with_units(pair: ColumnPair, likely: LikelyPairs) -> ColumnPair:
    """A pair of numbers with the units they are in, where these differ or stand in the cells."""
    if pair.kind != "number":
        return pair
    (x,), (y,) = pair.sides
    written = (_written(x), _written(y))
    ratio = _ratio(x, y, likely)
    units: tuple[str, str] | None = None
    if all(written):
        units = (written[0] or "", written[1] or "")
        units = units if FACTORS[units[0]][0] == FACTORS[units[1]][0] else None
    elif ratio and written[0]:
        units = _by_ratio(1 / ratio, written[0], x, y, bare_is_y=True)
    elif ratio and written[1]:
        units = _by_ratio(ratio, written[1], x, y, bare_is_y=False)
    elif ratio and abs(ratio - 1) > _NEAR:
        units = _told_apart(ratio, x, y)
    elif ratio is None:
        units = _said_apart(x, y)
    if units is None:
        return pair
    said = units[0] if units[0] == units[1] else f"{units[0]} and {units[1]}"
    return replace(pair, why=f"{pair.why}, in {said}", settings={"units": units})


def _written(p: Profile) -> str | None:
    """The unit that most cells of a column have."""
    found: Counter[str | None] = Counter()
    for cell in p.cells:
        if cell:
            parts = amounts(cell)
            found[parts[0][1] if parts else None] += 1
    unit, n = found.most_common(1)[0] if found else (None, 0)
    return unit if unit and n > 0.5 * found.total() else None


def _values(p: Profile) -> NDArray[np.float64]:
    """The numbers of a column: bare ones as they are, others in metres, kilograms, …"""
    known = {cell: number(cell, (-np.inf, np.inf)) for cell in {*p.cells} if cell}
    return np.array([known.get(cell) if cell else None for cell in p.cells], np.float64)


def _ratio(x: Profile, y: Profile, likely: LikelyPairs) -> float | None:
    """How many times as large a number of A is as that of the same record in B."""
    values = _values(x), _values(y)
    rows_a, rows_b = likely.rows(x, y)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = values[0][rows_a] / values[1][rows_b]
        ratios = ratios[np.isfinite(ratios) & (ratios > 0)]
        if len(ratios) >= ENOUGH:
            middle = float(np.median(ratios))
            close = np.mean(np.abs(ratios / middle - 1) < _NEAR)
            return middle if close >= 0.5 else None
        if x.thing == y.thing and x.thing in _MEASURED:
            ratio = float(np.nanmedian(values[0]) / np.nanmedian(values[1]))
            return ratio if np.isfinite(ratio) and ratio > 0 else None
    return None


def _by_ratio(
    factor: float, written: str, x: Profile, y: Profile, *, bare_is_y: bool
) -> tuple[str, str] | None:
    """The units where one side says its own: the other has bare numbers of `factor` base units."""
    bare = y if bare_is_y else x
    measure = FACTORS[written][0]
    fits = [
        unit
        for unit in (*_named(bare), *_USUAL)
        if FACTORS[unit][0] == measure and abs(FACTORS[unit][1] * factor - 1) < 0.05
    ]
    if not fits:
        return None
    return (written, fits[0]) if bare_is_y else (fits[0], written)


def _told_apart(ratio: float, x: Profile, y: Profile) -> tuple[str, str] | None:
    """Units of bare numbers, of which those of A are `ratio` times as large."""
    fits = [
        (unit, other)
        for unit in (*_named(x), *_USUAL)
        for other in (*_named(y), *_USUAL)
        if unit != other
        and FACTORS[unit][0] == FACTORS[other][0]
        and abs(FACTORS[other][1] / FACTORS[unit][1] / ratio - 1) < 0.05
    ]
    wanted = {"height": "length", "weight": "mass"}.get(x.thing or y.thing or "")
    fits.sort(key=lambda pair: FACTORS[pair[0]][0] != wanted)
    return fits[0] if fits else None


def _said_apart(x: Profile, y: Profile) -> tuple[str, str] | None:
    """Units that differ by the names of the columns, if the numbers are of sizes to match."""
    if not (_named(x) and _named(y)):
        return None
    units = _named(x)[-1], _named(y)[-1]
    (measure, one), (other_measure, other) = (FACTORS[unit] for unit in units)
    if measure != other_measure or one == other:
        return None
    ratio = float(np.nanmedian(_values(x)) / np.nanmedian(_values(y)))
    return units if abs(ratio * one / other - 1) < _ROUGHLY else None


def _named(p: Profile) -> list[str]:
    """Units that a column's name ends with."""
    return [word for word in words(p.name)[1:] if word in FACTORS]
