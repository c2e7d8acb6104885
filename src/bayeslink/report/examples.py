"""Examples from certain to uncertain, each with its weight by field and its rivals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bayeslink.report import charts
from bayeslink.report.charts import bits
from bayeslink.report.markup import Number, bullets, figure, menu, paragraph, section, table
from bayeslink.report.material import Cells, Material
from bayeslink.report.sections import LOG2
from bayeslink.report.svg import Chart, escape, tag
from bayeslink.results.explanation import Explanation, Rival, explain_pair

_WANTED = (1.0, 0.99, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.3, 0.1)
_FAR = 0.08  # a pair further than this from the probability wanted is no example of it
_RIVALS = 4


def examples(material: Material, *, values: bool) -> str:
    """The section, with the records' ids and values or without."""
    title = "Examples, from certain to uncertain"
    chosen = _chosen(material)
    if not chosen:
        return section("examples", title, paragraph("There are no candidate pairs."))
    cells, remark = _values(material, chosen, values)
    shown = [
        _example(e if values else _nameless(e))
        for e in (_explained(material, *one) for one in zip(chosen, cells, strict=True))
    ]
    kinds = {"all": "all pairs", "link": "links", "review": "to review", "no link": "no links"}
    return section(
        "examples",
        title,
        paragraph(
            "Each pair with the weight of each field and what they add up to"
            + ("" if material.pairs is None else ", and who else either record might belong to")
            + f". {remark}".rstrip()
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


def _values(
    material: Material, chosen: Sequence[dict[str, Any]], wanted: bool
) -> tuple[Sequence[Cells | None], str]:
    none = [None] * len(chosen)
    if not wanted:
        return none, "The records' values and ids are left out, as asked."
    if isinstance(material.values, str):
        return none, f"The records' values cannot be shown: {material.values}"
    return material.values([(row["id_a"], row["id_b"]) for row in chosen]), ""


def _explained(material: Material, row: dict[str, Any], cells: Cells | None) -> Explanation:
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


def _example(e: Explanation) -> str:
    probability = "" if e.probability is None else f", probability {_shown(e.probability)}"
    values = any(x.values for x in e.evidence)
    rows: list[list[str | Number]] = [
        [x.field, *(x.values or ("", "") if values else ()), x.level, Number(bits(x.bits))]
        for x in e.evidence
    ]
    heads = ["Field", *(["A", "B"] if values else []), "Agreement", "Bits"]
    content = (
        tag("h3", f"{_id(e.id_a)} and {_id(e.id_b)}: {e.decision}{escape(probability)}")
        + table(heads, rows)
        + figure(waterfall(e), "", name="waterfall")
    )
    if e.probability is not None:
        sides = ((e.id_a, "A", e.rivals_a), (e.id_b, "B", e.rivals_b))
        content += tag("div", "".join(_rivalry(e, *side) for side in sides), cls="rivals")
    return tag("article", content, cls="example", data_of="example", data_key=e.decision)


def _rivalry(e: Explanation, name: str, side: str, rivals: Sequence[Rival]) -> str:
    items = [
        f"with {r.id}: {_shown(r.probability)} ({bits(r.bits)} bits)" for r in rivals[:_RIVALS]
    ]
    rest = rivals[_RIVALS:]
    if rest:
        share = sum(r.probability for r in rest)
        items.append(f"with any of {len(rest):,} more: {_shown(share)}")
    nobody = 1 - (e.probability or 0.0) - sum(r.probability for r in rivals)
    items.append(f"with nobody: {_shown(nobody)}")
    return tag("div", paragraph(f"{name} ({side}) otherwise") + bullets(items))


def _id(name: str) -> str:
    return tag("bdi", escape(name))


def _shown(probability: float) -> str:
    if probability < 0.0005:
        return "< 0.001"
    return "> 0.999" if probability > 0.9995 else f"{probability:.3f}"
