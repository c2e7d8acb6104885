"""The report for those who may see no small count, nor anything from which one can be worked out.

All counts are rounded, also large ones: else a small one is the difference of two. What else comes
from counts is left out (θ under an overlap prior, m and u, draws, patterns, joint agreement, shares
of true pairs) or told in whole bits and only where the pairs behind it are enough.
"""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa

from bayeslink.number_format import signed
from bayeslink.report import charts
from bayeslink.report.charts import Bar, Counts
from bayeslink.report.finding import file_names, how_to_review, in_both
from bayeslink.report.fit import NO_PROBLEM
from bayeslink.report.markup import Number, facts, figure, notes, paragraph, section, table
from bayeslink.report.material import Material
from bayeslink.report.sections import provenance
from bayeslink.report.svg import escape, tag
from bayeslink.runs.evaluation import evaluate_links
from bayeslink.sampling.diagnostics import Diagnostic, verdict


def disclosed_page(
    material: Material, counts: Counts, truth: pa.Table | None = None
) -> tuple[str, str]:
    """The title and the body of the page."""
    s = material.summary
    a, b = file_names(s)
    title = f"{counts(s['n_links'])} links between {a} and {b}"
    parts = [
        tag("h1", escape(title)),
        _overview(s, counts),
        how_to_review(s),
        "" if truth is None else _against_truth(material, truth, counts),
        _on_rounding(counts),
        _fit(s),
        _fields(material, counts),
        _prior(s),
    ]
    if material.pairs is not None:
        parts += [_probabilities(material, counts), _draws(s)]
    return title, "".join([*parts, provenance(material, counts)])


def _overview(s: dict[str, Any], counts: Counts) -> str:
    shown = [
        ("Records in A", counts(s["n_a"]), ""),
        ("Records in B", counts(s["n_b"]), ""),
        ("Links", counts(s["n_links"]), ""),
    ]
    if "chains" in s:
        shown += [
            ("Records in both files", *in_both(s, counts)),
            ("Expected false links", counts(s["expected_false_links"]), ""),
            ("Left to review", counts(s["review_records"]), "records of B"),
        ]
    return facts(shown)


def _against_truth(material: Material, truth: pa.Table, counts: Counts) -> str:
    e = evaluate_links(material.links, truth)
    return paragraph(
        f"Against the truth given: {counts(e.true_links)} of the links are true and "
        f"{counts(e.false_links)} false; {counts(e.missed)} of {counts(e.n_true)} true pairs are "
        "missed."
    )


def _on_rounding(counts: Counts) -> str:
    return paragraph(
        f"Counts are rounded to the nearest {counts.least}, and not told below {counts.least}. "
        "What else they could be worked out from is left out, and so are single records and the "
        "run's remarks.",
        "aside",
    )


def _fit(s: dict[str, Any]) -> str:
    words = (
        NO_PROBLEM
        if s["fit"]["fits"]
        else "The model does not fit these files in all respects. Intervals and probabilities may "
        "be too sure: judge a sample (bayeslink review) before you rely on them."
    )
    return section("fit", "Does the model fit?", paragraph(words))


def _fields(material: Material, counts: Counts) -> str:
    s = material.summary
    keys = ("missing", "distinct", "invalid")
    rows: list[list[str | Number]] = [
        [f["name"], f["comparison"], *(Number(counts(n)) for key in keys for n in f[key])]
        for f in s["fields"]
    ]
    heads = ["Field", "Comparison", *(f"{key} in {side}" for key in keys for side in "AB")]
    bars = [bar for f in s["fields"] for bar in _bars(f, material, counts)]
    drawn = (
        figure(
            charts.signed("Match weights in whole bits", bars, "bits", 1.0),
            f"Match weight by field and level, where at least {counts.least} links and pairs agree "
            "so, in whole bits; hollow bars are below 0.",
            name="weights",
        )
        if bars
        else paragraph("No weight rests on enough pairs to be shown.")
    )
    return section("fields", "The fields", drawn, table(heads, rows))


def _bars(f: dict[str, Any], material: Material, counts: Counts) -> list[Bar]:
    """Weights of a field's levels, where the links and the pairs behind them are enough."""
    found = []
    for row in material.parameters.to_pylist():
        if row["field"] != f["name"]:
            continue
        linked = row["m"] * material.summary["n_links"]
        others = f["pairs_by_level"][row["level"]] - linked
        if not counts.hides(linked) and not counts.hides(others):
            name, weight = f"{f['name']}, {row['label']}", math.floor(row["match_weight"] + 0.5)
            shown = signed(weight, 0)
            found.append(Bar(name, 0, weight, shown, f"{name}: {shown} bits"))
    return found


def _prior(s: dict[str, Any]) -> str:
    given = s["prior"]
    words = (
        f"Each link costs θ = {given['theta']:.4g}, as set."
        if given["kind"] == "penalty"
        else f"The matched share of the smaller file has a Beta({given['alpha']:g}, "
        f"{given['beta']:g}) prior."
    )
    return section("prior", "The prior: what a link costs", paragraph(words))


def _probabilities(material: Material, counts: Counts) -> str:
    assert material.pairs is not None
    classes = charts.probability_classes(material.pairs["link_probability"].to_numpy())
    # Those of the last class may be nearly all pairs, whose number has the files' sizes as factors.
    chart = charts.tally(
        "Candidate pairs by link probability", classes[:-1], "pairs", counts, log=True
    )
    words = "Number of candidate pairs by probability from 0.01 up, most certain first."
    return section(
        "probabilities", "Link probabilities", figure(chart, words, name="probabilities")
    )


def _draws(s: dict[str, Any]) -> str:
    problem = verdict([Diagnostic(**row) for row in s["diagnostics"]])
    how = f"{s['chains']} chains of {s['draws']:,} draws were run, each after {s['tune']:,}."
    return section(
        "diagnostics",
        "Can the draws be trusted?",
        paragraph(how if problem else f"{how} They agree on all quantities followed."),
        notes([problem] if problem else []),
    )
