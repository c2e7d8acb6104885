"""Patterns of agreement: how many pairs agree alike, what that weighs, and a pair of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bayeslink.comparing.fields import Field
from bayeslink.data.id_pairs import SIDES
from bayeslink.number_format import signed
from bayeslink.pairs.vectors import distinct_vectors
from bayeslink.report import charts
from bayeslink.report.charts import Bar
from bayeslink.report.examples import example, explained, values_of
from bayeslink.report.markup import Cell, Number, counted, folded, paragraph, table
from bayeslink.report.material import Material
from bayeslink.report.svg import Chart, escape, tag

SHOWN = 20  # patterns that are drawn or listed
_TOTALS = ("pairs", "expected", "links")


def patterns(material: Material, *, values: bool) -> str:
    """The section: which fields agree, in words, and a pair of each pattern to open."""
    levels = {f["name"]: ["missing", *f["levels"]] for f in material.summary["fields"]}
    found = by_pattern([*levels], material.candidates, material.links)
    shown = sorted(found[:SHOWN], key=lambda r: -r["weight"])
    sampled = material.pairs is not None
    return folded(
        "patterns",
        "Patterns of agreement",
        paragraph(
            "Pairs that agree alike have the same weight. Fields not named are in full agreement. "
            + (
                "The patterns that most links are expected to have, by weight; press a column's "
                "head to sort by it. Expected links are sums of link probabilities."
                if sampled
                else "Counted among the links."
            )
        ),
        _table(shown, found[SHOWN:], levels, sampled),
        _pairs_of_each(material, shown, levels, values=values),
    )


def _table(
    shown: Sequence[dict[str, Any]],
    others: Sequence[dict[str, Any]],
    levels: Mapping[str, Sequence[str]],
    sampled: bool,
) -> str:
    heads = ["Agreement", "Weight", *(["Candidates", "Expected links"] if sampled else []), "Links"]

    def tail(rows: Sequence[dict[str, Any]]) -> list[Number]:
        totals = [sum(r[key] for r in rows) for key in _TOTALS]
        cells = [Number(counted(n, int(i == 1)), n) for i, n in enumerate(totals)]
        return cells if sampled else cells[2:]

    rows: list[list[Cell]] = [
        [_in_words(levels, r), Number(signed(r["weight"]), r["weight"]), *tail([r])] for r in shown
    ]
    rest: list[Cell] | None = None
    if others:
        rest = [f"{len(others):,} more", Number(""), *tail(others)]
    return table(heads, rows, sortable=True, rest=rest)


def _pairs_of_each(
    material: Material,
    shown: Sequence[dict[str, Any]],
    levels: Mapping[str, Sequence[str]],
    *,
    values: bool,
) -> str:
    """A pair of each pattern, folded: that of the highest probability."""
    if not shown:
        return ""
    chosen = [r["example"] for r in shown]
    cells, remark = values_of(material, chosen, values)
    parts = [paragraph(f"A pair of each pattern, by weight. {remark}".rstrip())]
    for r, row, own in zip(shown, chosen, cells, strict=True):
        weight, n = signed(r["weight"]), r["pairs"] or r["links"]
        head = f"{_in_words(levels, r)}: {weight} bits, {counted(n)} pair{'s' * (n != 1)}"
        inside = example(explained(material, row, own), material, values=values)
        parts.append(tag("details", tag("summary", escape(head)) + inside, cls="pattern"))
    return tag("div", "".join(parts), cls="viewer")


def chart(fields: Sequence[Field], candidates: pa.Table, links: pa.Table) -> Chart:
    """Weight of the patterns that most links are expected to have; how many pairs at the right.

    Its table has all patterns, each with the ids of a pair.
    """
    levels = {f.name: ["missing", *f.labels] for f in fields}
    found = by_pattern([*levels], candidates, links)
    bars = []
    for r in sorted(found[:SHOWN], key=lambda r: -r["weight"]):
        words, weight = _in_words(levels, r), signed(r["weight"])
        n = r["pairs"] or r["links"]
        tip = f"{words}: {weight} bits, {n:,} pairs, {r['links']:,} links"
        if "link_probability" in candidates.column_names:
            tip += f", {r['expected']:,.1f} expected"
        bars.append((words, Bar(weight, 0, r["weight"], counted(n), tip)))
    axis = "match weight, bits; at the right, pairs"
    rows = pa.Table.from_pylist([_row(levels, r) for r in found])
    return replace(charts.headed("Patterns of agreement", bars, axis), table=rows)


def _row(levels: Mapping[str, Sequence[str]], r: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "agreement": _in_words(levels, r),
        "match_weight": r["weight"],
        "pairs": r["pairs"],
        "expected_links": r["expected"],
        "links": r["links"],
        **{side: r["example"][side] for side in SIDES},
        **{f"gamma_{name}": h for name, h in zip(levels, r["levels"], strict=True)},
    }


def _in_words(levels: Mapping[str, Sequence[str]], r: Mapping[str, Any]) -> str:
    return in_words(levels, dict(zip(levels, r["levels"], strict=True)))


def in_words(levels: Mapping[str, Sequence[str]], pattern: Mapping[str, int]) -> str:
    """What is not in full agreement, the like together; `levels` are labels, missing first."""
    short: dict[str, list[str]] = {}
    for name, level in pattern.items():
        if level < len(levels[name]) - 1:
            short.setdefault(levels[name][level], []).append(name)
    return "; ".join(f"{', '.join(n)} {label}" for label, n in short.items()) or "full agreement"


def by_pattern(names: Sequence[str], candidates: pa.Table, links: pa.Table) -> list[dict[str, Any]]:
    """Candidates, expected links, links and a pair by pattern, most expected links first."""
    keys = [f"gamma_{name}" for name in names]
    linked = _grouped(links.filter(pc.equal(links["decision"], "link")), keys)
    pairs = _grouped(candidates, keys)
    known = {levels: {**linked[levels], "pairs": 0} for levels in linked.keys() - pairs.keys()}
    out = [
        {"levels": levels, **row, "links": linked.get(levels, {"pairs": 0})["pairs"]}
        for levels, row in {**pairs, **known}.items()
    ]
    return sorted(out, key=lambda r: (-r["expected"], -r["pairs"], -r["weight"], r["levels"]))


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
        rows.take(first).to_pylist(),
        strict=True,
    )
    return {
        tuple(pattern): {"weight": w, "pairs": n, "expected": expected, "example": example}
        for pattern, w, n, expected, example in columns
    }
