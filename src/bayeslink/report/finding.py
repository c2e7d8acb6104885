"""The head of the report: the finding, how sure it is, and what to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow.compute as pc

from bayeslink.report.certainty import how_sure
from bayeslink.report.markup import counted, facts, figure, listed, paragraph
from bayeslink.report.material import Material
from bayeslink.report.svg import escape, tag
from bayeslink.runs.brief import n_doubtful
from bayeslink.runs.evaluation import Evaluation
from bayeslink.runs.expected import expected_errors
from bayeslink.runs.notes import TO_DO, TO_KNOW, Note, ranked


def file_names(summary: Mapping[str, Any]) -> tuple[str, ...]:
    """What the files are called, without their directories."""
    inputs = (given.get("parts", [given]) for given in summary["inputs"])
    return tuple(" and ".join(_file_name(part["label"]) for part in parts) for parts in inputs)


def _file_name(label: str) -> str:
    return label.replace("\\", "/").rstrip("/").split("/")[-1]


def title(material: Material) -> str:
    s = material.summary
    a, b = file_names(s)
    return headline(f"{counted(s['n_links'])} links between {a} and {b}", s["warnings"])


def headline(finding: str, warnings: Sequence[str]) -> str:
    """The finding, and whether it may be used yet."""
    return f"Not to be used yet: {finding}" if any(n.grave for n in ranked(warnings)) else finding


def grave(warnings: Sequence[str]) -> str:
    """What to see to before anything here is used."""
    return listed("First", [_told(note) for note in ranked(warnings) if note.grave])


def overview(material: Material, result: Evaluation | None) -> str:
    """What was found, how sure that is, and what to do about it."""
    s, doubtful = material.summary, _doubtful(material)
    return (
        grave(s["warnings"])
        + paragraph(_in_words(s), "lead")
        + (_how_sure(material) if material.pairs is not None else "")
        + facts(_facts(s, doubtful))
        + (_against_truth(result, s) if result else "")
        + remarks(s["warnings"], [_judging(doubtful)] if doubtful else [])
    )


def remarks(warnings: Sequence[str], judging: Sequence[str]) -> str:
    """What to do, what to judge by eye first, and what to know; without grave notes."""
    notes = ranked(warnings)
    to_do = [_told(note) for note in notes if note.group == TO_DO and not note.grave]
    to_know = [_told(note) for note in notes if note.group == TO_KNOW]
    return listed("To do", [*judging, *to_do]) + listed("To know", to_know)


def on_details() -> str:
    """What stands before the folded sections."""
    button = tag("button", "Open all", type="button", id="open-all")
    return tag("h2", "Details") + tag("p", button, cls="controls")


def _in_words(s: dict[str, Any]) -> str:
    a, b = file_names(s)
    words = (
        f"{counted(s['n_links'])} links were found between {a} (A, {counted(s['n_a'])} records) "
        f"and {b} (B, {counted(s['n_b'])} records), one-to-one."
    )
    if s["n_links"] == 0:
        words += " No pair was good enough to be linked."
    if "chains" not in s:
        return words + " This is a point estimate: it says nothing about how sure the links are."
    low, high = s["links_interval"]
    false, missed = expected_errors(s)
    people = (
        f"About {counted(s['links_mean'])} people are in both files (95 % interval "
        f"{counted(low)} to {counted(high)})"
        if s["links_identified"]
        else "How many people are in both files is not identified: from the data there may be "
        f"{counted(low)} to {counted(high)}"
    )
    missing = f" and {counted(missed, 1)} are missing" if s["links_identified"] else ""
    return f"{words} {people}; about {counted(false, 1)} of the links are wrong{missing}."


def _how_sure(material: Material) -> str:
    s = material.summary
    links = material.links.filter(pc.equal(material.links["decision"], "link"))
    p = links["link_probability"].to_numpy()
    chart = how_sure(p, s["links_interval"], s["links_mean"] * s["links_identified"])
    return figure(
        chart,
        "Links by their probability, and the number of people in both files with its 95 % "
        "interval.",
        name="sure",
    )


def _doubtful(material: Material) -> int:
    if material.pairs is None:
        return 0
    return n_doubtful(material.pairs["link_probability"].to_numpy())


def in_both(s: Mapping[str, Any], counts: Callable[[float], str]) -> tuple[str, str]:
    """The number of people in both files and its interval, or what is known of it."""
    low, high = s["links_interval"]
    known = counts(s["links_mean"]) if s["links_identified"] else "not identified"
    return known, f"{counts(low)} to {counts(high)}"


def _facts(s: dict[str, Any], doubtful: int) -> list[tuple[str, str, str]]:
    """Three numbers, or six: rows of three or of two have no hole."""
    whole = s["n_pairs"] == s["n_a"] * s["n_b"]
    pairs = f"{counted(s['n_pairs'])} pairs compared"
    out = [
        ("Records in A", counted(s["n_a"]), ""),
        ("Records in B", counted(s["n_b"]), ""),
        (
            "Links",
            counted(s["n_links"]),
            f"all {pairs}" if whole else f"{pairs}, within the blocking key",
        ),
    ]
    if "chains" not in s:
        return out
    false, missed = expected_errors(s)
    left = f", {counted(s['review_records'])} records of B left to review as asked"
    return [
        *out,
        ("People in both files", *in_both(s, counted)),
        (
            "Expected errors",
            counted(false + missed, 1),
            f"{counted(false, 1)} wrong, {counted(missed, 1)} missing",
        ),
        (
            "Doubtful pairs",
            counted(doubtful),
            "probability 0.1 to 0.9" + left * bool(s["review_records"]),
        ),
    ]


def _told(note: Note) -> str:
    """A note in plain words; as the run has it, where that says more, folded."""
    if note.plain == note.text:
        return escape(note.text)
    plain = note.plain[:1].upper() + note.plain[1:]
    return tag("details", tag("summary", escape(plain)) + paragraph(note.text, "aside"))


def _judging(doubtful: int) -> str:
    pairs = "doubtful pair" if doubtful == 1 else "doubtful pairs"
    return f"Judge {counted(doubtful)} {pairs} by eye, the likeliest errors first: {_REVIEW}"


_REVIEW = tag("code", "bayeslink review OUT") + ", where OUT is the directory of this run."


def how_to_review(s: Mapping[str, Any]) -> str:
    """What to do about doubtful pairs; nothing of a point estimate, which has none."""
    if "chains" not in s:
        return ""
    return tag("p", f"To judge doubtful pairs by eye, the likeliest errors first: {_REVIEW}")


def _against_truth(e: Evaluation, s: Mapping[str, Any]) -> str:
    errors = f"{counted(e.false_links + e.missed)} errors"
    if "chains" in s:
        errors += f", where {counted(sum(expected_errors(s)), 1)} were expected"
    return paragraph(
        f"Against the truth given, {counted(e.false_links)} links are false and "
        f"{counted(e.missed)} of {counted(e.n_true)} true pairs are missed: {errors}. "
        f"Precision {e.precision:.4f}, recall {e.recall:.4f}, F1 {e.f1:.4f}."
    )
