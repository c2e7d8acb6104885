"""Bars inside the rows of a table, so that a number, its words and its picture are one line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from bayeslink.report.markup import Drawn
from bayeslink.report.svg import dot, escape, hover, line, rect, scale, tag

_WIDTH, _HEIGHT = 200, 22


@dataclass(frozen=True, slots=True)
class Scale:
    """What all bars of a table share: the numbers at its ends, and a limit to be seen in each."""

    low: float
    high: float
    limit: float | None = None

    @classmethod
    def of(cls, values: Sequence[float], limit: float | None = None) -> Scale:
        ends = [*values, *([] if limit is None else [limit])]
        return cls(min(ends), max(ends), limit)


@dataclass(frozen=True, slots=True)
class Step:
    """A bar from one number to another, with an interval around its end."""

    start: float
    end: float
    interval: tuple[float, float] | None = None
    cls: str | None = None  # full or hollow by its direction, unless given


def row_bar(step: Step, across: Scale, tip: str) -> Drawn:
    """The cell of one bar."""
    x = scale(across.low, across.high, 3, _WIDTH - 3)
    a, b = sorted((x(step.start), x(step.end)))
    middle = _HEIGHT / 2
    marks = [rect(0, 0, _WIDTH, _HEIGHT, "target"), line(x(0), 0, x(0), _HEIGHT, "zero")]
    if across.limit is not None:
        marks.append(line(x(across.limit), 0, x(across.limit), _HEIGHT, "limit"))
    if step.start != step.end:
        cls = step.cls or ("full" if step.end >= step.start else "hollow")
        marks.append(rect(a, 5, max(b - a, 1), _HEIGHT - 10, cls))
    if step.interval:
        low, high = map(x, step.interval)
        marks.append(line(low, middle, high, middle, "interval"))
        marks += [line(end, middle - 3, end, middle + 3, "interval") for end in (low, high)]
    drawn = tag(
        "svg",
        hover(tip, *marks),
        cls="bl-chart row",
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        preserveAspectRatio="none",
        role="img",
        aria_label=tip,
    )
    return Drawn(drawn)


_SAMPLES: dict[str, Callable[[], str]] = {
    "full": lambda: rect(1, 2, 18, 8, "full"),
    "hollow": lambda: rect(1, 2, 18, 8, "hollow"),
    "sum": lambda: rect(1, 2, 18, 8, "sum"),
    "interval": lambda: line(1, 6, 19, 6, "interval"),
    "limit": lambda: line(10, 0, 10, 12, "limit"),
    "record": lambda: dot(10, 6, 5, "full"),
    "doubted": lambda: dot(10, 6, 5, "hollow"),
    **{cls: partial(line, 0, 6, 20, 6, cls) for cls in ("curve", "guide", "held")},
}


def swatches(items: Sequence[tuple[str, str]]) -> str:
    """A legend: each kind of mark as it is drawn, and what it stands for."""
    parts = []
    for kind, words in items:
        sample = tag(
            "svg",
            _SAMPLES[kind](),
            cls="bl-chart swatch",
            viewBox="0 0 20 12",
            width=20,
            height=12,
            aria_hidden="true",
        )
        parts.append(tag("span", f"{sample} {escape(words)}"))
    return tag("p", " ".join(parts), cls="legend")
