"""Pieces of the page. Strings given here are text and are escaped; what comes back is markup."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bayeslink.report.svg import NARROW, WIDE, Chart, escape, tag


@dataclass(frozen=True, slots=True)
class Number:
    """A cell that is a number: right-aligned, and sorted by its value."""

    shown: str
    value: float | None = None


@dataclass(frozen=True, slots=True)
class Drawn:
    """A cell that is markup already: a bar, or a value with its differences marked."""

    markup: str
    cls: str = "bar"


Cell = str | Number | Drawn


def counted(n: float, decimals: int = 0) -> str:
    """A count as text."""
    return f"{n:,.{decimals}f}"


def paragraph(words: str, cls: str | None = None) -> str:
    return tag("p", escape(words), cls=cls)


def section(name: str, title: str, *parts: str) -> str:
    return tag("section", tag("h2", escape(title)) + "".join(parts), id=name)


def folded(name: str, title: str, *parts: str) -> str:
    """A section of which the title is seen, and the rest when it is opened."""
    head = tag("summary", tag("h2", escape(title)))
    return tag("section", tag("details", head + "".join(parts)), id=name)


def listed(title: str, items: Sequence[str]) -> str:
    """A list of markup under a heading, if there is any."""
    if not items:
        return ""
    return tag("h2", escape(title)) + tag("ul", "".join(tag("li", item) for item in items))


def notes(remarks: Sequence[str]) -> str:
    """Remarks that need attention."""
    return tag("div", "".join(map(paragraph, remarks)), cls="note") if remarks else ""


def facts(items: Sequence[tuple[str, str, str]]) -> str:
    """Numbers to be seen first: name, number, remark."""
    return tag(
        "dl",
        "".join(
            tag(
                "div",
                tag("dt", escape(name))
                + tag("dd", escape(shown) + (tag("small", escape(remark)) if remark else "")),
            )
            for name, shown, remark in items
        ),
        cls="facts" if len(items) > 3 else "facts few",
    )


def figure(chart: Chart, caption: str, *, name: str, **attributes: object) -> str:
    """A chart drawn twice, for wide and for narrow windows, so that its text keeps its size."""
    drawn = tag("div", chart.svg(WIDE), cls="wide") + tag("div", chart.svg(NARROW), cls="narrow")
    legend = tag("figcaption", escape(caption)) if caption else ""
    return tag("figure", drawn + legend, data_chart=name, **attributes)


def table(
    heads: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    *,
    caption: str = "",
    sortable: bool = False,
    rest: Sequence[Cell] | None = None,
    legend: str = "",
    name: str | None = None,
) -> str:
    """A table; a column is of numbers if its first cell is. `rest` is a last row, not sorted.

    `legend` is markup for its bars, and `name` what kind of chart they make.
    """
    if not rows:
        return ""
    numeric = [isinstance(cell, Number) for cell in rows[0]]
    head = "".join(
        tag("th", escape(name), cls="n" if right else None, scope="col")
        for name, right in zip(heads, numeric, strict=True)
    )
    body = "".join(tag("tr", "".join(map(_cell, row))) for row in rows)
    if rest is not None:
        body += tag("tr", "".join(map(_cell, rest)), cls="rest")
    content = tag("thead", tag("tr", head)) + tag("tbody", body)
    # Above what scrolls, so that it is read whole; the table goes by it, too.
    above = paragraph(caption, "aside") if caption else ""
    return (
        above
        + legend
        + tag(
            "div",
            tag("table", content, cls="sortable" if sortable else None),
            cls="scroll",
            tabindex=0,
            role="region",
            aria_label=caption or f"Table: {', '.join(heads)}",
            data_chart=name,
        )
    )


def _cell(cell: Cell) -> str:
    if isinstance(cell, Number):
        value = None if cell.value is None else f"{cell.value:.6g}"
        return tag("td", escape(cell.shown), cls="n", data_value=value)
    if isinstance(cell, Drawn):
        return tag("td", cell.markup, cls=cell.cls)
    return tag("td", tag("bdi", _together(escape(cell))))


def _together(markup: str) -> str:
    """A number stays on one line with its sign and its unit."""
    return re.sub(r"(?<=[≤≥]) (?=\d)|(?<=&[lg]t;) (?=\d)|(?<=\d) (?=%)", "&nbsp;", markup)


def menu(label: str, group: str, options: Mapping[str, str]) -> str:
    """A menu that shows the elements of a group one at a time, or all."""
    choices = "".join(tag("option", escape(words), value=key) for key, words in options.items())
    control = tag("select", choices, data_group=group)
    return tag("p", tag("label", f"{escape(label)} {control}"), cls="controls")
