"""Does the model fit? What run.json says of it, as tables, a picture and words."""

from __future__ import annotations

import math
from typing import Any

from bayeslink.number_format import signed
from bayeslink.report import charts
from bayeslink.report.charts import Bar
from bayeslink.report.markup import Number, counted, figure, folded, notes, paragraph, table
from bayeslink.report.material import Material

_FEWEST = 5.0  # joint agreements, seen or expected, from which a ratio says anything


NO_PROBLEM = "The automatic checks found no problem. They cannot see every error."


def section_of(material: Material) -> str:
    """The section on fit."""
    s = material.summary
    checks = s["fit"]
    verdict = (
        NO_PROBLEM
        if checks["fits"]
        else "The model does not fit these files in all respects. Intervals and probabilities may "
        "be too sure: judge a sample (bayeslink review) before you rely on them."
    )
    return folded(
        "fit",
        "Does the model fit?",
        paragraph(verdict, None if checks["fits"] else "lead"),
        notes(checks["warnings"]),
        _structure(s),
        _bands(checks),
        _together(s, checks),
    )


def _structure(s: dict[str, Any]) -> str:
    structure = s["structure"]
    if structure["name"] == "independent":
        return paragraph(
            "Fields were taken to be independent, among links and among all other pairs, as in the "
            "paper."
        )
    words = (
        "Errors come together: how many fields of a link are wrong was learned from the links as a "
        "whole, not field by field. Which fields go together among pairs that are no links was "
        "learned from the other pairs "
        f"of {counted(structure['certain_links'])} records whose own link is certain"
    )
    found = [f"{d['field']} depends on {d['on']}" for d in structure["dependences"]]
    words += f": {'; '.join(found)}." if found else "; none do, as far as these can tell."
    return paragraph(words)


def _bands(checks: dict[str, Any]) -> str:
    rows: list[list[str | Number]] = [
        [
            f"{signed(band['low'] / math.log(2))} "
            + ("and more" if band["high"] is None else f"to {signed(band['high'] / math.log(2))}"),
            Number(counted(band["observed"])),
            Number(counted(band["from_nonlinks"] + band["from_links"], 1)),
            Number(counted(band["from_links"], 1)),
        ]
        for band in checks["bands"]
    ]
    if not rows:
        return ""
    return table(
        ["Match weight, bits", "Pairs", "expected", "of which links"],
        rows,
        caption="Pairs by weight: those there are, and those that the model expects. Far more than "
        "expected are pairs that are alike for a reason the model does not know.",
    )


def _together(s: dict[str, Any], checks: dict[str, Any]) -> str:
    """Two fields at a time."""
    names = [f["name"] for f in s["fields"]]
    shown = []
    for t in checks["together"]:
        three = t["observed"], t["expected"], t["independent"]
        if max(three) >= _FEWEST:
            shown.append(t)
    if not shown:
        return ""
    bars = []
    for t in shown:
        label = " and ".join(names[j] for j in t["fields"])
        by_model = _ratio(t["observed"], t["expected"])
        alone = _ratio(t["observed"], t["independent"])
        tip = (
            f"{label}: {counted(t['observed'])} times; the model expects "
            f"{counted(t['expected'])}, independence {counted(t['independent'])} "
            f"(2 to the {signed(alone)})"
        )
        bars.append(Bar(label, 0, by_model, signed(by_model), tip))
    return figure(
        charts.signed(
            "Joint agreement among certain non-links",
            bars,
            "log₂ of seen / expected",
            1.0,
            ("more often than expected", "less often"),
        ),
        "Pairs that are certainly no links: how often two fields agree at once, against what the "
        "model expects. 0 is as expected, +1 is twice as often.",
        name="together",
    )


def _ratio(seen: float, expected: float) -> float:
    return math.log2(max(seen, 0.5) / max(expected, 0.5))
