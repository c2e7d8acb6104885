"""What was linked and how: the sections that a point estimate has too."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bayeslink.pairs.vectors import distinct_vectors
from bayeslink.report import charts, curves
from bayeslink.report.charts import bits
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
from bayeslink.report.material import FEW_PAIRS, Material
from bayeslink.report.svg import escape, tag
from bayeslink.results.evaluation import Evaluation

LOG2 = math.log(2)
_PATTERNS = 30  # rows of the pattern table


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
        + notes(s["warnings"])
        + (_against_truth(result) if result else "")
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
    low, high = s["links_interval"]
    found = s["n_links"] - s["expected_false_links"]
    return words + (
        f" With 95 % probability between {counted(low)} and {counted(high)} records are in both "
        f"files. Of the links, about {counted(s['expected_false_links'])} are expected to be "
        "false; "
        f"about {counted(max(0, s['links_mean'] - found))} true links are expected to be missed"
        f"{' or left to review' if s['review_records'] else ''}."
    )


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
    low, high = s["links_interval"]
    false = s["expected_false_links"]
    share = f"{100 * false / s['n_links']:.1f} % of the links" if s["n_links"] else ""
    p = material.pairs["link_probability"].to_numpy()
    doubtful = int(((p > 0.1) & (p < 0.9)).sum())
    return [
        *out,
        ("Records in both files", counted(s["links_mean"]), f"{counted(low)} to {counted(high)}"),
        ("Expected false links", counted(false, 1), share),
        ("Left to review", counted(s["review_records"]), "records of B"),
        ("Doubtful pairs", counted(doubtful), "probability 0.1 to 0.9"),
    ]


def _against_truth(e: Evaluation) -> str:
    return paragraph(
        f"Against the truth given: {counted(e.true_links)} of the links are true and "
        f"{counted(e.false_links)} false; {counted(e.missed)} of {counted(e.n_true)} true pairs "
        f"are missed. Precision {e.precision:.4f}, recall {e.recall:.4f}, F1 {e.f1:.4f}."
    )


# --- fields -----------------------------------------------------------------------------------


def fields(material: Material) -> str:
    s = material.summary
    sizes = s["n_a"], s["n_b"]
    heads = ["Field", "Comparison", "Complete in A", "in B", "Distinct in A", "in B"]
    invalid = any(sum(f["invalid"]) for f in s["fields"])
    rows: list[list[str | Number]] = []
    for f in s["fields"]:
        row: list[str | Number] = [f["name"], f["comparison"]]
        row += [_complete(f["missing"][i], sizes[i]) for i in (0, 1)]
        row += [Number(counted(f["distinct"][i])) for i in (0, 1)]
        if invalid:
            row += [Number(counted(f["invalid"][i])) for i in (0, 1)]
        rows.append(row)
    chart = charts.weights(field_weights(material.parameters))
    return section(
        "fields",
        "The fields",
        paragraph(
            "What each field says about a pair, given how well its values agree. A weight of +3 "
            "bits means that a match is 2³ = 8 times as likely as a non-match to agree so; weights "
            "of all fields are added. Missing values say nothing: weight 0."
        ),
        figure(
            chart,
            "Match weight by field and level, in bits; hollow bars are below 0.",
            name="weights",
        ),
        table([*heads, *(["Invalid in A", "in B"] if invalid else [])], rows),
        paragraph(
            "m is the share of a level among matches, u among non-matches; the weight is "
            "log₂(m/u)." + (" In brackets, 95 % intervals." if material.draws is not None else "")
        ),
        _shares(material.parameters),
    )


def field_weights(parameters: pa.Table) -> list[tuple[str, list[tuple[str, float]]]]:
    """Weights by level, by field, from parameters.parquet."""
    out: dict[str, list[tuple[str, float]]] = {}
    for row in parameters.to_pylist():
        out.setdefault(row["field"], []).append((row["label"], row["match_weight"]))
    return list(out.items())


def _complete(missing: int, size: int) -> Number:
    return Number(f"{100 * (1 - missing / size):.1f} %")


def _shares(parameters: pa.Table) -> str:
    rows: list[list[str | Number]] = [
        [
            r["field"] if r["level"] == 1 else "",
            Number(str(r["level"])),
            r["label"],
            _share(r, "m"),
            _share(r, "u"),
            Number(bits(r["match_weight"])),
        ]
        for r in parameters.to_pylist()
    ]
    return table(["Field", "Level", "Agreement", "m", "u", "Weight"], rows)


def _share(row: dict[str, Any], name: str) -> Number:
    low, high = row[f"{name}_lower"], row[f"{name}_upper"]
    around = "" if low is None else f" ({_small(low)}–{_small(high)})"
    return Number(_small(row[name]) + around)


def _small(share: float) -> str:
    if share >= 0.1:
        return f"{share:.3f}"
    return f"{share:.2g}".replace("e-0", "e−").replace("e-", "e−")


# --- patterns ---------------------------------------------------------------------------------


def patterns(material: Material) -> str:
    names = [f["name"] for f in material.summary["fields"]]
    found = _by_pattern(material, names)
    shown, others = found[:_PATTERNS], found[_PATTERNS:]
    sampled = material.pairs is not None
    heads = [*names, "Weight", *(["Candidates", "Expected links"] if sampled else []), "Links"]

    def tail(rows: Sequence[dict[str, Any]]) -> list[Number]:
        totals = [sum(r[key] for r in rows) for key in ("pairs", "expected", "links")]
        cells = [_counted(n, int(i == 1)) for i, n in enumerate(totals)]
        return cells if sampled else cells[2:]

    rows: list[list[str | Number]] = [
        [
            *(Number(str(level) if level else "–", level) for level in r["levels"]),
            Number(bits(r["weight"]), r["weight"]),
            *tail([r]),
        ]
        for r in sorted(shown, key=lambda r: -r["weight"])
    ]
    rest: list[str | Number] | None = None
    if others:
        blank = [Number("")] * len(names)
        rest = [f"{len(others):,} more", *blank, *tail(others)]
    return section(
        "patterns",
        "Patterns of agreement",
        paragraph(
            "Pairs that agree alike have the same weight. Levels are numbered as in the table "
            "above, 1 being the worst; – is missing. "
            + (
                "The most frequent patterns among the candidate pairs, by weight; press a "
                "column's head to sort by it. Expected links are sums of link probabilities."
                if sampled
                else "Counted among the links."
            )
        ),
        table(heads, rows, sortable=True, rest=rest),
    )


def _counted(n: float, decimals: int) -> Number:
    return Number(counted(n, decimals), n)


def _by_pattern(material: Material, names: Sequence[str]) -> list[dict[str, Any]]:
    """Candidates, expected links and links by pattern, most candidates first."""
    keys = [f"gamma_{name}" for name in names]
    linked = material.links.filter(pc.equal(material.links["decision"], "link"))
    links = _grouped(linked, keys)
    pairs = _grouped(material.candidates, keys)
    known = {levels: links[levels] for levels in links.keys() - pairs.keys()}
    out = [
        {
            "levels": levels,
            "weight": row["weight"],
            "pairs": row["pairs"],
            "expected": row["expected"],
            "links": links.get(levels, {"pairs": 0})["pairs"],
        }
        for levels, row in {**pairs, **known}.items()
    ]
    return sorted(out, key=lambda r: (-r["pairs"], -r["weight"]))


def _grouped(rows: pa.Table, keys: Sequence[str]) -> dict[tuple[int, ...], dict[str, Any]]:
    if not len(rows):
        return {}
    levels = np.stack([rows[key].to_numpy() for key in keys], 1)
    found, first, group = distinct_vectors(levels)
    p = (
        rows["link_probability"].to_numpy().astype(np.float64)
        if "link_probability" in rows.column_names
        else np.zeros(len(rows))
    )
    columns = zip(
        found.tolist(),
        rows["match_weight"].to_numpy()[first].tolist(),
        np.bincount(group).tolist(),
        np.bincount(group, np.nan_to_num(p)).tolist(),
        strict=True,
    )
    return {
        tuple(pattern): {"weight": w, "pairs": n, "expected": expected}
        for pattern, w, n, expected in columns
    }


# --- prior ------------------------------------------------------------------------------------


def prior(material: Material) -> str:
    s = material.summary
    parts = [paragraph(_prior_in_words(s)), _path(material)]
    point = s["point_estimate"]
    best = point["objective"]
    rows = [
        [Number(counted(m["n_links"])), Number(f"{m['objective'] - best:,.1f}".replace("-", "−"))]
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
        why = "there are many pairs" if many else "the input files are not at hand as they were"
        return paragraph(
            f"The path of links over θ is left out, as {why}: penalty_path and plots.path draw it.",
            "aside",
        )
    up, down = (np.array([m.n_links for m in side], float) for side in (p.up, p.down))
    dependent = material.summary["structure"]["name"] != "independent"
    return figure(
        curves.path(p.thetas, up, down, material.summary["theta"]),
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
