"""Does the model fit? What run.json says of it, as tables, a picture and words."""

from __future__ import annotations

import math
from typing import Any

from bayeslink.report import charts
from bayeslink.report.charts import Bar, Counts
from bayeslink.report.markup import Number, figure, notes, paragraph, section, table
from bayeslink.report.material import Material

_FEWEST = 5.0  # joint agreements, seen or expected, from which a ratio says anything


def section_of(material: Material, counts: Counts) -> str:
    """The section on fit."""
    s = material.summary
    checks = s["fit"]
    verdict = (
        "Nothing that can be seen without the truth speaks against the model."
        if checks["fits"]
        else "The model does not fit these files in all respects. Intervals and probabilities may "
        "be too sure: judge a sample (bayeslink review) before you rely on them."
    )
    remarks = checks["warnings"]
    if remarks and counts.least:
        remarks = ["What was found is left out, as it contains counts: see run.json."]
    return section(
        "fit",
        "Does the model fit?",
        paragraph(verdict, None if checks["fits"] else "lead"),
        notes(remarks),
        _structure(s, counts),
        _wrong_fields(checks, counts),
        _together(s, checks, counts),
    )


def _structure(s: dict[str, Any], counts: Counts) -> str:
    structure = s["structure"]
    if structure["name"] == "independent":
        return paragraph(
            "Fields were taken to be independent, among links and among all other pairs, as in the "
            "paper."
        )
    words = (
        "How many fields of a link are wrong has a law of its own, learned from the links. "
        "Which fields go together among pairs that are no links was learned from the other pairs "
        f"of {counts(structure['certain_links'])} records whose own link is certain"
    )
    found = [f"{d['field']} depends on {d['on']}" for d in structure["dependences"]]
    words += f": {'; '.join(found)}." if found else "; none do, as far as these can tell."
    return paragraph(words)


def _wrong_fields(checks: dict[str, Any], counts: Counts) -> str:
    rows: list[list[str | Number]] = [
        [
            str(w["wrong"]),
            Number(counts(w["observed"], 1)),
            Number(counts(w["expected"], 1)),
        ]
        for w in checks["wrong_fields"]
    ]
    return table(
        ["Wrong fields", "Links", "expected"],
        rows,
        caption="Links by how many of their fields are not in full agreement.",
    )


def _together(s: dict[str, Any], checks: dict[str, Any], counts: Counts) -> str:
    """Two fields at a time; a ratio would give a hidden count away, so that these are left out."""
    names = [f["name"] for f in s["fields"]]
    shown = []
    for t in checks["together"]:
        three = t["observed"], t["expected"], t["independent"]
        if max(three) >= _FEWEST and not any(map(counts.hides, three)):
            shown.append(t)
    if not shown:
        return ""
    bars = []
    for t in shown:
        label = " and ".join(names[j] for j in t["fields"])
        by_model = _ratio(t["observed"], t["expected"])
        alone = _ratio(t["observed"], t["independent"])
        tip = (
            f"{label}: {counts(t['observed'])} times; the model expects "
            f"{counts(t['expected'])}, independence {counts(t['independent'])} "
            f"(2 to the {alone:+.1f})"
        )
        bars.append(Bar(label, 0, by_model, f"{by_model:+.1f}".replace("-", "−"), tip))
    return figure(
        charts.signed(
            "Joint agreement among certain non-links", bars, "log2 of seen / expected", 1.0
        ),
        "Pairs that are certainly no links: how often two fields agree at once, against what the "
        "model expects. 0 is as expected, +1 is twice as often.",
        name="together",
    )


def _ratio(seen: float, expected: float) -> float:
    return math.log2(max(seen, 0.5) / max(expected, 0.5))
