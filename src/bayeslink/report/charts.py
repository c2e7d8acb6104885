"""Bars: numbers in, `Chart` out. The report and `bayeslink.plots` share them.

Nothing depends on colour: bars above zero are full and those below hollow, chains have a panel
each, and numbers stand beside their bars.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayeslink.comparing.fields import Field
from bayeslink.number_format import signed as bits
from bayeslink.report.svg import (
    CHARACTER,
    Chart,
    axis_below,
    hover,
    legend,
    line,
    rect,
    scale,
    shorten,
    text,
)

Floats = NDArray[np.float64]
_ROW = 20.0
NUMBERS = 58.0  # the column of numbers on the right


@dataclass(frozen=True, slots=True)
class Bar:
    """A horizontal bar from one value to another, its name, its number and a remark."""

    label: str
    start: float
    end: float
    shown: str
    tip: str
    cls: str = "full"


@dataclass(frozen=True, slots=True)
class Counts:
    """How counts of people are shown: to the nearest `least`, and below it only that they are.

    Rounded, so that no small count is the difference of two larger ones.
    """

    least: int = 1

    def hides(self, count: float) -> bool:
        return self.least > 1 and count < self.least

    def rounded(self, count: float) -> int:
        return max(self.least * math.floor(count / self.least + 0.5), self.least * (self.least > 1))

    def __call__(self, count: float) -> str:
        return f"< {self.least}" if self.hides(count) else f"{self.rounded(count):,}"


EVERY_COUNT = Counts()
SIGNS = "speaks for a link", "against"  # full bars, and hollow ones


# --- bars -------------------------------------------------------------------------------------


def weights(fields: Sequence[tuple[str, Sequence[tuple[str, float]]]]) -> Chart:
    """Match weight of each level, by field, in bits; nan where no pair has the level."""
    groups = [
        (name, [_weight(name, label, w) for label, w in reversed(levels)])
        for name, levels in fields
    ]
    parts = "; ".join(
        f"{name}: " + ", ".join(f"{bar.label} {bar.shown}" for bar in bars) for name, bars in groups
    )
    return Chart("Match weights in bits", parts, _bars(groups, axis="bits"))


def _weight(name: str, label: str, w: float) -> Bar:
    if math.isnan(w):
        return Bar(label, 0, 0, "–", f"{name}, {label}: never seen")
    return Bar(label, 0, w, bits(w), f"{name}, {label}: {bits(w)} bits, {_times(w)}", _sign(w))


def parameter_weights(fields: Sequence[Field], log_weights: Floats) -> Chart:
    """`weights` from fields and their weights in natural logs, field × level."""
    w = log_weights / math.log(2)
    return weights(
        [
            (f.name, list(zip(f.labels, w[j, 1 : f.n_levels + 1].tolist(), strict=True)))
            for j, f in enumerate(fields)
        ]
    )


def tally(
    title: str,
    rows: Sequence[tuple[str, float]],
    unit: str,
    counts: Counts = EVERY_COUNT,
    *,
    log: bool = False,
) -> Chart:
    """How many of each kind; on a logarithmic scale, few can be seen beside many."""
    length = _log_length if log else float
    bars = [
        Bar(
            label,
            0,
            length(counts.rounded(n)),
            counts(n),
            f"{label}: {counts(n)} {unit}",
            "hidden" if counts.hides(n) else "full",
        )
        for label, n in rows
    ]
    alt = ", ".join(f"{bar.label}: {bar.shown}" for bar in bars) + f" {unit}"
    return Chart(
        title, alt, _bars([("", bars)], axis=f"{unit}, logarithmic" if log else "", log=log)
    )


def headed(title: str, bars: Sequence[tuple[str, Bar]], axis: str) -> Chart:
    """Bars to either side of 0, each below the words it is of, which may be long."""
    groups = [(words, [replace(bar, cls=_sign(bar.end))]) for words, bar in bars]
    alt = "; ".join(bar.tip for _, bar in bars)
    return Chart(title, alt, _bars(groups, axis=axis, long=True))


def completeness(files: Sequence[tuple[str, Sequence[tuple[str, float, int]]]]) -> Chart:
    """Share of records with a value, by file and column, and how many values are different."""
    groups = [
        (
            name,
            [
                Bar(
                    column,
                    0,
                    100 * full,
                    f"{n:,}",
                    f"{name}, {column}: {100 * full:.0f} % filled, {n:,} different values",
                )
                for column, full, n in columns
            ],
        )
        for name, columns in files
    ]
    alt = "; ".join(bar.tip for _, bars in groups for bar in bars)
    axis = "% of the records with a value; at the right, different values"
    return Chart("Completeness", alt, _bars(groups, axis=axis, most=100.0))


def _log_length(n: float) -> float:
    """0 for none, 1 for one, 2 for ten, …"""
    return 1 + math.log10(n) if n >= 1 else 0.0


def waterfall(
    steps: Sequence[tuple[str, float, str]], needed: float, title: str = "Weight by field"
) -> Chart:
    """How the weights of the fields add up to the match weight, and what a link costs."""
    bars, total = [], 0.0
    for name, value, remark in steps:
        tip = f"{name}, {remark}: {bits(value)} bits"
        bars.append(Bar(name, total, total + value, bits(value), tip, _sign(value)))
        total += value
    alt = ", ".join(f"{bar.label} {bar.shown}" for bar in bars)
    said = f"{bits(total)} bits in all; a link costs {needed:.1f}"
    bars.append(Bar("sum", 0, total, bits(total), said, "sum"))
    limit = (needed, f"a link costs {needed:.1f}")
    return Chart(title, f"{alt}; {said}", _bars([("", bars)], axis="bits", limit=limit))


def signed(
    title: str,
    bars: Sequence[Bar],
    axis: str,
    least: float,
    signs: tuple[str, str] = SIGNS,
) -> Chart:
    """Bars to either side of 0, full above and hollow below, on a scale of ±least or more."""
    drawn = [replace(bar, cls=_sign(bar.end)) for bar in bars]
    words = ", ".join(f"{bar.label} {bar.shown}" for bar in bars)
    return Chart(title, words, _bars([("", drawn)], axis=axis, least=least, signs=signs))


def _bars(
    groups: Sequence[tuple[str, Sequence[Bar]]],
    *,
    axis: str = "",
    limit: tuple[float, str] | None = None,
    least: float = 0.0,
    most: float = 0.0,
    log: bool = False,
    long: bool = False,
    signs: tuple[str, str] = SIGNS,
) -> Callable[[int], tuple[float, list[str]]]:
    """Groups of bars, each below its name; `long` names are not crossed by the line at 0."""
    ends = [
        -least,
        least,
        most,
        *(x for _, bars in groups for bar in bars for x in (bar.start, bar.end)),
    ]
    if limit:
        ends.append(limit[0])
    low, high = min(ends), max(ends)
    longest = max((len(bar.label) for _, bars in groups for bar in bars), default=0)

    def draw(width: int) -> tuple[float, list[str]]:
        left = min(longest * CHARACTER + 18, width * 0.46)
        x = scale(low, high, left, width - NUMBERS)
        both = {bar.cls for _, bars in groups for bar in bars} >= {"full", "hollow"}
        y, marks = (18.0 if limit or both else 4.0), []
        if both and not limit:
            marks.append(legend(width, [("full", signs[0]), ("hollow", signs[1])]))
        top = y
        for name, bars in groups:
            if name:
                marks.append(text(0, y + 14, shorten(name, width), None if long else "strong"))
                y += _ROW + 2
            if long:
                marks.append(line(x(0), y, x(0), y + _ROW * len(bars), "zero"))
            for bar in bars:
                marks.append(_bar(bar, x, y, left, width))
                y += _ROW
            y += 8 if name else 2
        if not long:
            marks.append(line(x(0), top, x(0), y, "zero"))
        if limit:
            at = x(limit[0])
            marks.append(line(at, top - 2, at, y, "limit"))
            side = "end" if at > (left + width) / 2 else "start"
            marks.append(text(at, 11, limit[1], "soft", side))
        if axis:
            marks += (
                _log_axis(high, x, y, axis)
                if log
                else axis_below(low, high, x, y, (width - left) / 90, axis)
            )
            y += 34
        return y, marks

    return draw


def _log_axis(high: float, x: Callable[[float], float], y: float, title: str) -> list[str]:
    marks = []
    for place in range(int(high) + 1):
        shown = f"{10 ** (place - 1):,}" if place else "0"
        marks.append(line(x(place), y, x(place), y + 4, "zero"))
        marks.append(text(x(place), y + 16, shown, "soft", "middle"))
    return [*marks, text((x(0) + x(high)) / 2, y + 31, title, "soft", "middle")]


def _bar(bar: Bar, x: Callable[[float], float], y: float, left: float, width: int) -> str:
    a, b = sorted((x(bar.start), x(bar.end)))
    return hover(
        bar.tip,
        rect(0, y, width, _ROW, "target"),
        text(left - 8, y + 14, shorten(bar.label, left - 8), "soft", "end"),
        rect(a, y + 4, max(b - a, 1), _ROW - 8, bar.cls) if bar.start != bar.end else "",
        text(width, y + 14, bar.shown, None, "end"),
    )


def _sign(value: float) -> str:
    return "full" if value >= 0 else "hollow"


def _times(w: float) -> str:
    factor = f"{2 ** min(abs(w), 60):,.3g}"
    return f"{factor} times as likely among {'matches' if w >= 0 else 'non-matches'}"


# --- classes ----------------------------------------------------------------------------------


def block_sizes(sizes: NDArray[Any]) -> list[tuple[str, int]]:
    """Post-hoc blocks by size: 1, 2, 3–4, 5–8, … pairs."""
    sizes = np.asarray(sizes)
    rows, low, high = [], 1, 1
    while len(sizes) and low <= sizes.max():
        name = f"{low:,}" if low == high else f"{low:,}–{high:,}"
        rows.append((f"{name} pair{'' if high == 1 else 's'}", _within(sizes, low, high)))
        low, high = high + 1, high * 2
    return rows


def _within(sizes: NDArray[Any], low: int, high: int) -> int:
    return int(((sizes >= low) & (sizes <= high)).sum())


def probability_classes(probability: NDArray[Any]) -> list[tuple[str, int]]:
    """Pairs by link probability, finer at both ends, most certain first."""
    edges = np.array([0, 0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99])
    group = np.searchsorted(edges, probability, side="right") - 1
    found = np.bincount(group, minlength=len(edges))
    names = [f"{a:.2g} to {b:.2g}" for a, b in zip(edges, [*edges[1:], 1], strict=True)]
    return list(zip(names[::-1], found[::-1].tolist(), strict=True))
