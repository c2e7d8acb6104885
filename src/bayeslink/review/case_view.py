"""A case as the page shows it: first what is to be judged, and only when asked what the run says.

The order of the records gives nothing away: it follows from a digest of their ids. The pairs of a
case are known to the page by their places in that order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from bayeslink.comparing.fields import Field
from bayeslink.review.material import Material
from bayeslink.runs.differences import compared, same, usual_writing, visible
from bayeslink.runs.explanation import beyond_each


def in_order(material: Material, key: str) -> list[int]:
    """The candidates of a case as the page numbers them: by the record that comes first."""
    rows = material.pairs_of(key)
    own = _first_side(material, rows)

    def place(row: int) -> tuple[bytes, bytes]:
        ids = material.ids(row)
        return _digest(ids[own]), _digest(*ids)

    return sorted(rows, key=place)


def screen(material: Material, key: str) -> dict[str, Any]:
    """The records of a case, field by field: each of the fewer side against its rivals."""
    rows = in_order(material, key)
    own = _first_side(material, rows)
    pairs = [(int(material.rows[0][row]), int(material.rows[1][row])) for row in rows]
    groups: dict[int, list[int]] = {}
    for place, pair in enumerate(pairs):
        groups.setdefault(pair[own], []).append(place)
    fields = [_Shown(material, f, pairs) for f in (*material.fields, *material.further)]
    return {
        "case": key,
        "version": material.version(key),
        "fields": [
            {
                "name": visible(f.field.name),
                "columns": _columns(f.field),
                "compared": place < len(material.fields),
            }
            for place, f in enumerate(fields)
        ],
        "groups": [
            {
                "side": "AB"[own],
                "id": _id(material, own, record),
                "cells": [f.alone(own, record) for f in fields],
                "pairs": [
                    {
                        "place": place,
                        "records": pairs[place],
                        "id": _id(material, 1 - own, pairs[place][1 - own]),
                        "cells": [f.against(own, pairs[place], rows[place]) for f in fields],
                    }
                    for place in places
                ],
            }
            for record, places in groups.items()
        ],
    }


def evidence(material: Material, key: str) -> list[dict[str, Any]]:
    """What the run says of each pair of a case."""
    found = []
    for row in in_order(material, key):
        pair = material.candidates.slice(row, 1).to_pylist()[0]
        levels = [(f.name, pair[f"gamma_{f.name}"]) for f in material.fields]
        fields = [material.weights.get(level, ("missing", 0.0)) for level in levels]
        found.append(
            {
                "probability": pair["link_probability"],
                "bits": pair["match_weight"],
                "linked": bool(material.cases.linked[row]),
                "fields": fields,
                "together": beyond_each(pair["match_weight"], [bits for _, bits in fields]),
            }
        )
    return found


def _columns(field: Field) -> list[Any] | None:
    """What A and what B call the columns of a field; None where both call it so."""
    a, b = (" + ".join(names) for names in field.columns)
    return None if a == b == field.name else [visible(a), visible(b)]


class _Shown:
    """One field of the records of a case."""

    def __init__(self, material: Material, field: Field, pairs: list[tuple[int, int]]) -> None:
        self.field = field
        self._material = material
        self._texts = {
            (side, pair[side]): material.text(field, side, pair[side])
            for pair in pairs
            for side in (0, 1)
        }
        self._usual = usual_writing(filter(None, self._texts.values()))

    def alone(self, side: int, record: int) -> dict[str, Any]:
        text = self._texts[side, record]
        return {"text": None if text is None else visible(text, self._usual)}

    def against(self, own: int, pair: tuple[int, int], row: int) -> dict[str, Any]:
        """The value of the rival, with its differences from that of the record of side `own`."""
        first, second = (self._texts[side, pair[side]] for side in (own, 1 - own))
        if first is None or second is None:
            return self.alone(1 - own, pair[1 - own]) | {"like": "missing"}
        steps = self.field.normalise
        level = self._level(row)
        if level == "missing" or level.startswith("equal"):
            like = "missing" if level == "missing" else "same"
            return self.alone(1 - own, pair[1 - own]) | {"like": like}
        return {
            "text": compared(second, first, steps, self._usual),
            "like": "same" if same(second, first, steps) else "other",
        }

    def _level(self, row: int) -> str:
        """What the run took two values for, however they are written: two dates, a filler."""
        column, candidates = f"gamma_{self.field.name}", self._material.candidates
        if column not in candidates.column_names:  # shown, not compared
            return ""
        level = self.field.name, candidates[column][row].as_py()
        return self._material.weights.get(level, ("missing", 0.0))[0]


def _first_side(material: Material, rows: Sequence[int]) -> int:
    """A (0) if it has fewer records in a case, else B (1)."""
    n_a, n_b = (len({int(material.rows[side][row]) for row in rows}) for side in (0, 1))
    return 0 if n_a < n_b else 1


def _id(material: Material, side: int, record: int) -> Any:
    return visible(material.records[side].ids[record].as_py())


def _digest(*ids: str) -> bytes:
    return hashlib.sha256("\0".join(ids).encode()).digest()
