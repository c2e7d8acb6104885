"""The report of a deduplication: the people of one file, and which of them to look at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bayeslink.private import mode_within
from bayeslink.report import clusters, fields, sections, uncertainty
from bayeslink.report.certainty import how_sure
from bayeslink.report.cluster_material import ClusterMaterial, gather
from bayeslink.report.finding import file_names, grave, headline, on_details, remarks
from bayeslink.report.markup import counted, facts, figure, paragraph
from bayeslink.report.page import filled, place_of, write_page
from bayeslink.report.svg import escape, tag
from bayeslink.runs.cluster_evaluation import ClusterEvaluation, evaluate_clusters
from bayeslink.runs.dedupe_json import LISTS, UPDATE
from bayeslink.runs.dedupe_run import SURE, DedupeRun
from bayeslink.runs.entity_ids import in_words


def report(
    run: DedupeRun, path: str | Path | None = None, *, truth: Any = None, values: bool = True
) -> Path:
    """Write the report of a run as one HTML file, and return its path: see `DedupeRun.report`."""
    target = place_of(run, path)
    result = None if truth is None else evaluate_clusters(run, truth)
    title, body = page(gather(run, values=values), result)
    write_page(target, filled(title, body), mode_within(run.directory or target.parent))
    return target


def page(material: ClusterMaterial, result: ClusterEvaluation | None) -> tuple[str, str]:
    """The title and the body of the page."""
    s = material.summary
    title = headline(f"{_between(s)} people in {_files(s)}", s["warnings"])
    parts = [
        clusters.doubtful(material),
        clusters.largest(material),
        clusters.hanging(material),
        clusters.forms(material),
        clusters.number_of_people(material),
        fields.fields(material),
        uncertainty.diagnostics(material),
        sections.provenance(material),
    ]
    return title, (
        tag("h1", escape(title))
        + _overview(material, result)
        + clusters.sizes(material)
        + fields.compared(s)
        + on_details()
        + "".join(parts)
    )


def _overview(material: ClusterMaterial, result: ClusterEvaluation | None) -> str:
    """What was found, how sure that is, and what to do about it."""
    s = material.summary
    chart = how_sure(
        material.structure.membership,
        material.entities.interval(),
        s["people"],
        what="records",
        whom="people",
    )
    caption = (
        "Records by their probability of membership, and the number of people with its 95 % "
        "interval."
    )
    return (
        grave(s["warnings"])
        + paragraph(_in_words(s), "lead")
        + (paragraph(in_words(s[UPDATE])) if UPDATE in s else "")
        + figure(chart, caption, name="sure")
        + facts(_facts(s))
        + (_against_truth(result) if result else "")
        + remarks(s["warnings"], _judging(material))
    )


def _files(s: dict[str, Any]) -> str:
    """What was looked at."""
    *others, last = s[LISTS]["names"] if LISTS in s else file_names(s)
    return f"{', '.join(others)} and {last}" if others else str(last)


def _between(s: dict[str, Any]) -> str:
    low, high = s["people_interval"]
    return counted(low) if low == high else f"{counted(low)} to {counted(high)}"


def _in_words(s: dict[str, Any]) -> str:
    return (
        f"The {counted(s['n_records'])} records of {_files(s)} are of {_between(s)} people "
        f"(95 % interval). They were put into {counted(s['clusters'])} clusters, "
        f"{counted(s['people_with_several'])} of them of two records or more; about "
        f"{counted(s['expected_false_pairs'], 1)} pairs of records are expected to be joined "
        f"wrongly, and {counted(s['expected_missed_pairs'], 1)} to be missed."
    )


def _facts(s: dict[str, Any]) -> list[tuple[str, str, str]]:
    false, missed = s["expected_false_pairs"], s["expected_missed_pairs"]
    left = s["review_records"]
    return [
        ("Records", counted(s["n_records"]), f"{counted(s['n_pairs'])} pairs compared"),
        ("People", counted(s["people"]), f"on average; {_between(s)} with 95 %"),
        ("Clusters", counted(s["clusters"]), "people as decided, in clusters.csv"),
        (
            "Of two records or more",
            counted(s["people_with_several"]),
            f"the largest has {counted(s['largest_cluster'])}",
        ),
        (
            "Expected errors",
            counted(false + missed, 1),
            f"pairs: {counted(false, 1)} wrong, {counted(missed, 1)} missed",
        ),
        (
            "Records in doubt",
            counted(s["records_in_doubt"]),
            f"membership below {SURE}" + (f"; {counted(left)} left to review" if left else ""),
        ),
    ]


def _judging(material: ClusterMaterial) -> list[str]:
    """What to look at, each with a link to its section."""
    counts = (
        ("doubt", material.summary["records_in_doubt"], "record in doubt", "records in doubt"),
        (
            "hanging", len(material.bridges),
            "cluster that hangs on one edge", "clusters that hang on one edge",
        ),
        ("forms", len(material.forms), "cluster of several forms", "clusters of several forms"),
    )  # fmt: skip
    links = [
        tag("a", escape(f"{counted(n)} {one if n == 1 else many}"), href=f"#{section}")
        for section, n, one, many in counts
        if n
    ]
    words = " and ".join(filter(None, [", ".join(links[:-1]), *links[-1:]]))
    return [f"Look at {words}."] if links else []


def _against_truth(e: ClusterEvaluation) -> str:
    return paragraph(
        f"Against the truth given, {counted(e.exact_clusters)} of {counted(e.n_clusters)} clusters "
        f"are a person, whole and nothing else; there are {counted(e.n_entities)} people. By "
        f"pairs: precision {e.precision:.4f}, recall {e.recall:.4f}, F1 {e.f1:.4f}. By records "
        f"(B-cubed): precision {e.bcubed_precision:.4f}, recall {e.bcubed_recall:.4f}, "
        f"F1 {e.bcubed_f1:.4f}."
    )
