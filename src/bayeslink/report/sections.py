"""What was linked and how: the sections that a point estimate has too."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from bayeslink.number_format import signed
from bayeslink.report import curves
from bayeslink.report.markup import (
    Number,
    counted,
    facts,
    figure,
    notes,
    paragraph,
    section,
    table,
)
from bayeslink.report.material import Material
from bayeslink.report.svg import escape, tag
from bayeslink.runs.evaluation import Evaluation
from bayeslink.runs.expected import errors_to_expect, expected_errors, records_in_both
from bayeslink.runs.theta_path import FEW_PAIRS

LOG2 = math.log(2)


def file_names(summary: dict[str, Any]) -> tuple[str, str]:
    """What the files are called, without their directories."""
    a, b = (i["label"].replace("\\", "/").rstrip("/").split("/")[-1] for i in summary["inputs"])
    return a, b


def title(material: Material) -> str:
    a, b = file_names(material.summary)
    return f"{counted(material.summary['n_links'])} links between {a} and {b}"


# --- how sure ---------------------------------------------------------------------------------


def overview(material: Material, result: Evaluation | None) -> str:
    s = material.summary
    return (
        paragraph(_in_words(s), "lead")
        + facts(_facts(material))
        + how_to_review(s)
        + notes(s["warnings"])
        + (_against_truth(result, s) if result else "")
    )


def how_to_review(s: Mapping[str, Any]) -> str:
    """What to do about doubtful pairs; nothing of a point estimate, which has none."""
    if "chains" not in s:
        return ""
    return tag(
        "p",
        "To judge doubtful pairs by eye, those most likely decided wrongly first: "
        + tag("code", "bayeslink review OUT")
        + ", where OUT is the directory of this run. The page counts the errors to expect in cases "
        "worth judging; the others are spread thinly over many pairs.",
    )


def _in_words(s: dict[str, Any]) -> str:
    a, b = file_names(s)
    words = (
        f"{a} (A, {counted(s['n_a'])} records) and {b} (B, {counted(s['n_b'])} records) were "
        f"linked one-to-one: {counted(s['n_links'])} links."
    )
    if s["n_links"] == 0:
        words += " No pair was good enough to be linked."
    if "chains" not in s:
        return words + " This is a point estimate: it says nothing about how sure the links are."
    return f"{words} {records_in_both(s)} {errors_to_expect(s)}"


def in_both(s: Mapping[str, Any], counts: Callable[[float], str]) -> tuple[str, str]:
    """The number of records in both files and its interval, or what is known of it."""
    low, high = s["links_interval"]
    known = counts(s["links_mean"]) if s["links_identified"] else "not identified"
    return known, f"{counts(low)} to {counts(high)}"


def _facts(material: Material) -> list[tuple[str, str, str]]:
    s = material.summary
    whole = s["n_pairs"] == s["n_a"] * s["n_b"]
    out = [
        ("Records in A", counted(s["n_a"]), ""),
        ("Records in B", counted(s["n_b"]), ""),
        (
            "Pairs in scope",
            counted(s["n_pairs"]),
            "all pairs" if whole else "within the blocking key",
        ),
        ("Links", counted(s["n_links"]), ""),
    ]
    if material.pairs is None:
        return out
    false, missed = expected_errors(s)
    p = material.pairs["link_probability"].to_numpy()
    doubtful = int(((p > 0.1) & (p < 0.9)).sum())
    return [
        *out,
        ("Records in both files", *in_both(s, counted)),
        (
            "Expected errors",
            counted(false + missed, 1),
            f"{counted(false, 1)} false, {counted(missed, 1)} missed",
        ),
        ("Doubtful pairs", counted(doubtful), "probability 0.1 to 0.9"),
        *(
            [("Left to review", counted(s["review_records"]), "records of B, as asked")]
            if s["review_records"]
            else []
        ),
    ]


def _against_truth(e: Evaluation, s: Mapping[str, Any]) -> str:
    errors = f"{counted(e.false_links + e.missed)} errors"
    if "chains" in s:
        errors += f", where {counted(sum(expected_errors(s)), 1)} were expected"
    return paragraph(
        f"Against the truth given, {counted(e.false_links)} links are false and "
        f"{counted(e.missed)} of {counted(e.n_true)} true pairs are missed: {errors}. "
        f"Precision {e.precision:.4f}, recall {e.recall:.4f}, F1 {e.f1:.4f}."
    )


# --- prior ------------------------------------------------------------------------------------


def prior(material: Material) -> str:
    s = material.summary
    parts = [paragraph(_prior_in_words(s)), _path(material)]
    point = s["point_estimate"]
    best = point["objective"]
    rows = [
        [Number(counted(m["n_links"])), Number(signed(m["objective"] - best, 2))]
        for m in point["modes"][:10]
    ]
    n = len(point["modes"])
    parts.append(
        paragraph(
            "The search for the point estimate ended in one mode, whatever the start."
            if n == 1
            else f"The search for the point estimate ended in {n:,} modes; the best was taken"
            f"{', and the best 10 are listed' if n > 10 else ''}."
        )
    )
    if n > 1:
        parts.append(table(["Links", "Log posterior, less the best"], rows))
    return section("prior", "The prior: what a link costs", *parts)


def _path(material: Material) -> str:
    p = material.path
    if p is None:
        many = material.summary["n_pairs"] > FEW_PAIRS
        why = "there are many pairs" if many else "some θ has no estimate"
        return paragraph(
            f"The path of links over θ is left out, as {why}: penalty_path and plots.path draw it.",
            "aside",
        )
    dependent = material.summary["structure"]["name"] != "independent"
    return figure(
        curves.path(p.theta, p.up, p.down, material.summary["theta"]),
        "Links of the penalized-likelihood estimate over θ"
        + (", were fields independent" if dependent else "")
        + ". Where the two lines part, there are several modes.",
        name="path",
    )


def _prior_in_words(s: dict[str, Any]) -> str:
    theta, given = s["theta"], s["prior"]
    cost = f"θ = {theta:.2f} ({theta / LOG2:.1f} bits)"
    meaning = (
        " A pair needs a weight above that to be more likely a link than not, before rivals are "
        "considered."
    )
    if given["kind"] == "penalty":
        return f"Each link costs {cost}, as set.{meaning}"
    alpha, beta = given["alpha"], given["beta"]
    flat = (
        f", flat: any number of links from 0 to {counted(min(s['n_a'], s['n_b']))} was as likely "
        "before the data"
        if alpha == beta == 1
        else f", with a mean of {alpha / (alpha + beta):.0%}"
    )
    return (
        f"The matched share of the smaller file has a Beta({alpha:g}, {beta:g}) prior{flat}. At "
        f"the number of links found, one more link costs {cost}.{meaning}"
    )


# --- how to repeat it -------------------------------------------------------------------------


def provenance(material: Material, counts: Callable[[float], str] = counted) -> str:
    s = material.summary
    inputs = "".join(
        tag("h3", escape(f"{side}: {name}"))
        + paragraph(
            f"{counts(i['records'])} records, {i['kind']}"
            + (f"; {counts(i['quarantined'])} rows set aside" if i["quarantined"] else "")
        )
        + tag("p", escape(f"SHA-256 {i['sha256'] or 'not known: a table, not a file'}"), cls="hash")
        for side, name, i in zip("AB", file_names(s), s["inputs"], strict=True)
    )
    versions = ", ".join(f"{name} {number}" for name, number in s["versions"].items())
    seconds = ", ".join(f"{name} {t:.1f}" for name, t in s["seconds"].items())
    return section(
        "repeat",
        "To repeat this run",
        inputs,
        tag("h3", "Settings (link.toml)"),
        tag("pre", _lines(material.settings)),
        paragraph(f"Versions: {versions}; Python {s['python']} on {s['platform']}."),
        paragraph(f"Seconds: {seconds}. Finished {s['created']}."),
    )


def _lines(settings: str) -> str:
    return "\n".join(escape(line) for line in settings.splitlines())
