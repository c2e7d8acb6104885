"""The one door from statistics to their pictures."""

from importlib import import_module


class Shown:
    """A result that notebooks show as `report.notebook` draws it."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        html: str = import_module("bayeslink.report.notebook").as_html(self)
        return html
