"""The one door from statistics to their pictures."""

from collections.abc import Sequence
from html import escape
from importlib import import_module
from typing import Any


def html_table(title: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A small table for notebooks."""
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows
    )
    said = f"<p>{escape(title)}</p>" if title else ""
    return f"{said}<table><tr>{head}</tr>{body}</table>"


class Shown:
    """A result that notebooks show as `report.notebook` draws it."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        html: str = import_module("bayeslink.report.notebook").as_html(self)
        return html
