"""Examples from certain to doubtful, each with its weight by field and its rivals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

import numpy as np

from bayeslink.number_format import minus, signed
from bayeslink.pairs.pair_tables import MISSING
from bayeslink.report import charts
from bayeslink.report.markup import Cell, Drawn, Number, folded, menu, paragraph, table
from bayeslink.report.material import Cells, Material
from bayeslink.report.rows import Scale, Step, row_bar, swatches
from bayeslink.report.sections import LOG2
from bayeslink.report.svg import Chart, escape, tag
from bayeslink.runs.differences import Segment, compared, usual_writing, visible
from bayeslink.runs.explanation import Explanation, Rival, explain_pair

_WANTED = (1.0, 0.99, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.3, 0.1)
_FAR = 0.08  # a pair further than this from the probability wanted is no example of it
_RIVALS = 4
_NEGLIGIBLE = 0.0005  # rivals below this are counted, not listed


def examples(material: Material, *, values: bool) -> str:
    """The section, with the records' ids and values or without."""
    title = "Examples, from certain to doubtful"
    chosen = _chosen(material)
    if not chosen:
        return folded("examples", title, paragraph("There are no candidate pairs."))
    cells, remark = values_of(material, chosen, values)
    shown = [
        example(explained(material, row, own), material, values=values, group="example")
        for row, own in zip(chosen, cells, strict=True)
    ]
    kinds = {"all": "all pairs", "link": "links", "review": "to review", "no link": "no links"}
    return folded(
        "examples",
        title,
        paragraph(
            "Each pair with the weight of each field and what they add up to"
            + ("" if material.pairs is None else ", and who else either record might belong to")
            + ". What differs from A is marked in B." * (not remark)
            + f". {remark}" * bool(remark)
        ),
        swatches(
            [
                ("full", "for a link"),
                ("hollow", "against"),
                ("sum", "sum"),
                ("limit", "what a link costs"),
            ]
        ),
        menu("Show", "example", kinds),
        *shown,
    )


def _chosen(material: Material) -> list[dict[str, Any]]:
    pairs = material.candidates
    if material.pairs is None:
        order = np.argsort(-pairs["match_weight"].to_numpy(), kind="stable")
        at = np.unique(np.linspace(0, len(order) - 1, len(_WANTED)).astype(int))
        return pairs.take(order[at] if len(order) else order).to_pylist()
    p = pairs["link_probability"].to_numpy()
    taken: list[int] = []
    for wanted in _WANTED:
        gap = np.abs(p - wanted)
        gap[taken] = np.inf
        if len(p) and gap.min() <= _FAR:
            taken.append(int(gap.argmin()))
    return pairs.take(np.sort(np.array(taken, np.int64))).to_pylist()


def values_of(
    material: Material, chosen: Sequence[dict[str, Any]], wanted: bool
) -> tuple[Sequence[Cells | None], str]:
    """What the records of these pairs hold, or why that is not shown."""
    none = [None] * len(chosen)
    if not wanted:
        return none, "The records' values and ids are left out, as asked."
    if isinstance(material.values, str):
        return none, f"The records' values cannot be shown: {material.values}"
    return material.values([(row["id_a"], row["id_b"]) for row in chosen]), ""


def explained(material: Material, row: dict[str, Any], cells: Cells | None) -> Explanation:
    """Why the pair of a row of pairs.parquet, or of links.parquet, is linked or not."""
    s = material.summary
    w0 = s.get("w0") if s.get("restricted") else None
    return explain_pair(
        material.candidates,
        material.links,
        material.parameters,
        row["id_a"],
        row["id_b"],
        levels={f["name"]: row[f"gamma_{f['name']}"] for f in s["fields"]},
        needed=s["theta"] / LOG2,
        w0=None if w0 is None else w0 / LOG2,
        values=cells,
    )


def _nameless(e: Explanation) -> Explanation:
    """Without the ids of any record."""
    rivals = [tuple(replace(r, id="another") for r in side) for side in (e.rivals_a, e.rivals_b)]
    return replace(e, id_a="A record of A", id_b="one of B", rivals_a=rivals[0], rivals_b=rivals[1])


def waterfall(e: Explanation) -> Chart:
    """The picture of an explanation."""
    return charts.waterfall(
        [(x.field, x.bits, x.level) for x in e.evidence],
        e.needed,
        f"Weight of {e.id_a} and {e.id_b} by field",
    )


def example(
    explanation: Explanation, material: Material, *, values: bool, group: str | None = None
) -> str:
    """One pair, in a group that a menu filters; without ids, too, where values are left out."""
    e = explanation if values else _nameless(explanation)
    normalise = {f["name"]: f["normalise"] for f in material.summary["fields"]}
    probability = "" if e.probability is None else f", probability {_shown(e.probability)}"
    valued = any(x.values for x in e.evidence)
    content = (
        tag("h3", f"{_id(e.id_a)} and {_id(e.id_b)}: {e.decision}{escape(probability)}")
        + table(
            ["Field", *(["A", "B"] if valued else []), "Agreement", "Bits", "added up"],
            _steps(e, valued, normalise),
            name="waterfall",
        )
        + "".join(
            _rivalry(e, *side)
            for side in ((e.id_a, "A", e.rivals_a), (e.id_b, "B", e.rivals_b))
            if e.probability is not None
        )
    )
    return tag(
        "article",
        content,
        cls=f"example{' valued' * valued}",
        data_of=group,
        data_key=group and e.decision,
    )


def _steps(
    e: Explanation, values: bool, normalise: Mapping[str, Sequence[str]]
) -> list[list[Cell]]:
    """A row for each field, each bar beginning where the one before ended; then their sum."""
    ends = list(accumulate((x.bits for x in e.evidence), initial=0.0))
    across = Scale.of(ends, e.needed)
    rows: list[list[Cell]] = []
    for x, start, end in zip(e.evidence, ends, ends[1:], strict=False):
        equal = x.level.startswith("equal")  # however they are written: two dates, say
        cells = _marked(x.values, normalise.get(x.field, ()), equal) if values else []
        tip = f"{x.field}, {x.level}: {signed(x.bits)} bits"
        bar = row_bar(Step(start, end), across, tip)
        rows.append([x.field, *cells, x.level, Number(signed(x.bits)), bar])
    said = f"{signed(ends[-1])} bits in all; a link costs {minus(f'{e.needed:.1f}')}"
    bar = row_bar(Step(0.0, ends[-1], cls="sum"), across, said)
    blank = ["", ""] if values else []
    rows.append(
        ["sum", *blank, f"a link costs {minus(f'{e.needed:.1f}')}", Number(signed(ends[-1])), bar]
    )
    return rows


def _marked(values: tuple[str, str] | None, steps: Sequence[str], equal: bool) -> list[Cell]:
    """Both values; in the second, what differs from the first is marked, as in a review."""
    if values is None:
        return ["", ""]
    if MISSING in values:
        return list(values)
    usual = usual_writing(values)
    second = visible(values[1], usual) if equal else compared(values[1], values[0], steps, usual)
    pair = visible(values[0], usual), second
    return [Drawn(tag("bdi", "".join(map(_segment, one))), "value") for one in pair]


def _segment(segment: Segment) -> str:
    kind, words = segment
    if kind == "same":
        return escape(words)
    return tag("mark" if kind == "other" else "span", escape(words), cls=kind)


def _rivalry(e: Explanation, name: str, side: str, rivals: Sequence[Rival]) -> str:
    likely = [r for r in rivals if r.probability >= _NEGLIGIBLE]
    items = [
        f"with {r.id} {_shown(r.probability)} ({signed(r.bits)} bits)" for r in likely[:_RIVALS]
    ]
    rest = len(rivals) - len(items)
    if rest:
        share = sum(r.probability for r in rivals) - sum(r.probability for r in likely[:_RIVALS])
        items.append(f"with any of {rest:,} more {_shown(share)}")
    nobody = 1 - (e.probability or 0.0) - sum(r.probability for r in rivals)
    items.append(f"with nobody {_shown(nobody)}")
    return paragraph(f"{name} ({side}) otherwise: {'; '.join(items)}.", "rivals")


def _id(name: str) -> str:
    return tag("bdi", escape(name))


def _shown(probability: float) -> str:
    if probability < 0.0005:
        return "< 0.001"
    return "> 0.999" if probability > 0.9995 else f"{probability:.3f}"
