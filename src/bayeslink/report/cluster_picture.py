"""The picture of a cluster: records one below the other, their values beside them, arcs for pairs.

An arc is as far out as its records are apart, and has its number at its middle. So two numbers are
never at one place, however many records there are and however narrow the page is.
"""

from __future__ import annotations

import html
import textwrap
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from bayeslink.report.svg import (
    CHARACTER,
    Chart,
    dot,
    escape,
    hover,
    line,
    number,
    rect,
    shorten,
    tag,
    text,
)

_NEXT, _LEAST, _MOST = 14, 18, 32  # pixels: an arc between neighbours, and each further record
_LABEL = 40  # room for a number on an arc
_SHARE = 0.4  # of the width for arcs, where there are few
_LINE, _ROW, _GAP = 16, 34, 14
_LINES = 3  # of one value


@dataclass(frozen=True, slots=True)
class Node:
    """A record: its name, how sure it is, and its values by field."""

    name: str
    sure: str
    cells: tuple[tuple[str, str, bool], ...]  # field, value, whether it stands out
    doubted: bool = False


@dataclass(frozen=True, slots=True)
class Arc:
    """A pair, of two nodes by their place from the top."""

    a: int
    b: int
    shown: str
    cls: str  # curve, guide, held
    tip: str


def picture(title: str, groups: Sequence[tuple[str, Sequence[Node]]], arcs: Sequence[Arc]) -> Chart:
    """Records in groups, each with a heading or "", and pairs of them."""
    span = max((abs(arc.a - arc.b) for arc in arcs), default=0)
    said = "; ".join(arc.tip for arc in arcs) or "no pairs"

    def draw(width: int) -> tuple[float, list[str]]:
        step = max(_LEAST, min(_MOST, (_SHARE * width - _NEXT - _LABEL) / max(1, span)))
        left = _NEXT + step * span + _LABEL / 2 if span else 8.0
        y, places, marks = 0.0, [], []
        for k, (heading, nodes) in enumerate(groups):
            if k:
                marks.append(line(left - 6, y + 2, width, y + 2, "rule"))
                y += _GAP
            if heading:
                marks.append(text(left - 6, y + 13, shorten(heading, width - left), "soft"))
                y += 20
            for node in nodes:
                places.append(y + 10)
                marks += _record(node, left, y, width)
                y += max(_ROW, 20 + _LINE * len(_lines(node, width - left - 14)) + 8)
        drawn, labels = [], []
        for arc in arcs:
            ends = places[arc.a], places[arc.b]
            out = left - _NEXT - step * abs(arc.a - arc.b)
            drawn.append(_path(left, *ends, out, arc.cls))
            labels.append(hover(arc.tip, _label(arc, out, sum(ends) / 2)))
        return y, [*drawn, *marks, *labels]

    return Chart(title, said, draw)


def _path(left: float, y1: float, y2: float, out: float, cls: str) -> str:
    control = left - (left - out) * 4 / 3  # so that the middle of the curve is at `out`
    bend = f"C{number(control)} {number(y1)} {number(control)} {number(y2)}"
    drawn = f"M{number(left)} {number(y1)}{bend} {number(left)} {number(y2)}"
    return tag("path", d=drawn, cls=cls)


def _label(arc: Arc, x: float, y: float) -> str:
    width = len(arc.shown) * 6.6 + 4
    back = rect(x - width / 2, y - 8, width, 16, "paper")
    return back + text(x, y + 4, arc.shown, "strong" if arc.cls == "held" else None, "middle")


def _record(node: Node, left: float, y: float, width: float) -> list[str]:
    room = width - left - 14
    name = shorten(node.name, room - 44)
    head = _spans([(name, "strong value"), (f"  {node.sure}", "soft")])
    marks = [dot(left, y + 10, 5, "hollow" if node.doubted else "full")]
    marks.append(tag("text", head, x=number(left + 14), y=number(y + 14)))
    for k, spans in enumerate(_lines(node, room)):
        at = y + 14 + _LINE * (k + 1)
        marks.append(tag("text", _spans(spans), x=number(left + 14), y=number(at)))
    return marks


def _spans(parts: Sequence[tuple[str, str | None]]) -> str:
    return "".join(tag("tspan", escape(words), cls=cls) for words, cls in parts)


def _lines(node: Node, room: float) -> list[list[tuple[str, str | None]]]:
    """Values, as many on a line as there is room for; a long one goes on, cut in the end."""
    lines: list[list[tuple[str, str | None]]] = []
    used = room
    for field, value, odd in node.cells:
        field, value = shorten(field, room / 2), html.unescape(escape(value))  # as it is shown
        cls = "strong value" if odd else "value"
        needed = _wide(f"{field} {value}   ")
        if used + needed <= room:
            lines[-1] += [(f"   {field} ", "soft"), (value, cls)]
            used += needed
            continue
        first = [(f"{field} ", "soft")]
        for k, part in enumerate(_folded(field, value, room)):
            lines.append([*(first if k == 0 else []), (part, cls)])
            used = _wide(part) + (_wide(f"{field} ") if k == 0 else 0)
    return lines


def _folded(field: str, value: str, room: float) -> list[str]:
    """A value in lines of this width, the first of which begins with its field."""
    each = _wide(value) / max(1, len(value))
    most = max(4, int(room / max(each, 1.0)))
    begin = min(most - 1, int(_wide(f"{field} ") / max(each, 1.0)) + 1)
    return [
        part.removeprefix("\0" * begin)
        for part in textwrap.wrap(
            value,
            most,
            initial_indent="\0" * begin,
            max_lines=_LINES,
            placeholder="…",
            drop_whitespace=False,
            replace_whitespace=False,
            expand_tabs=False,
        )
    ]


def _wide(words: str) -> float:
    """About how many pixels text takes."""
    twice = sum(unicodedata.east_asian_width(c) in "WF" or not c.isprintable() for c in words)
    return CHARACTER * (len(words) + 0.8 * twice)
