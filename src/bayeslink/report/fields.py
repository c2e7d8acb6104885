"""The fields: what each level of agreement says, how complete they are, and their patterns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bayeslink.number_format import signed
from bayeslink.report import curves
from bayeslink.report.markup import Cell, Number, counted, figure, folded, paragraph, section, table
from bayeslink.report.material import Material, Told
from bayeslink.report.rows import Scale, Step, row_bar, swatches


def fields(material: Told) -> str:
    """The section on fields: weights, and what levels mean."""
    s = material.summary
    labels = [label for f in s["fields"] for label in f["levels"]]
    return folded(
        "fields",
        "The fields",
        paragraph(
            "What each field says about a pair, given how well its values agree. A weight of +3 "
            "bits means that a match is 2³ = 8 times as likely as a non-match to agree so; weights "
            "of all fields are added. Missing values say nothing: weight 0."
        ),
        paragraph(meanings(labels)),
        _weights(material),
    )


def _weights(material: Told) -> str:
    """Every level, best first: its weight, with an interval where there are draws.

    A level that no pair has gets none: it would come from the prior alone.
    """
    rows = material.parameters.to_pylist()
    pairs = {f["name"]: f["pairs_by_level"] for f in material.summary["fields"]}
    seen = [pairs[r["field"]][r["level"]] > 0 for r in rows]
    around = [_weight_interval(material, r) if s else None for r, s in zip(rows, seen, strict=True)]
    weights = [r["match_weight"] for r, s in zip(rows, seen, strict=True) if s]
    across = Scale.of([0.0, *weights, *(x for interval in around for x in interval or ())])
    best = {r["field"]: r["level"] for r in rows}
    order = sorted(range(len(rows)), key=lambda i: (_place(best, rows[i]), -rows[i]["level"]))
    cells: list[list[Cell]] = []
    for i in order:
        r, interval = rows[i], around[i]
        name = r["field"] if r["level"] == best[r["field"]] else ""
        if not seen[i]:
            cells.append([name, r["label"], Number("–"), "never seen", Number("–"), Number("–")])
            continue
        shown = signed(r["match_weight"])
        tip = f"{r['field']}, {r['label']}: {shown} bits, {_times(r['match_weight'])}"
        if interval:
            tip += f"; 95 % interval {signed(interval[0])} to {signed(interval[1])} bits"
        bar = row_bar(Step(0.0, r["match_weight"], interval), across, tip)
        cells.append([name, r["label"], Number(shown), bar, _m(r), Number(_small(r["u"]))])
    sampled = material.draws is not None
    signs = [("full", "speaks for a link"), ("hollow", "against")]
    return table(
        ["Field", "Agreement", "Weight", "in bits", "m", "u"],
        cells,
        caption="m is the share of a level among matches, u among non-matches; the weight is "
        "log₂(m/u)." + (" In brackets and as whiskers, 95 % intervals." if sampled else ""),
        legend=swatches([*signs, *([("interval", "95 % interval")] if sampled else [])]),
        name="weights",
    )


def _place(best: Mapping[str, int], row: Mapping[str, Any]) -> int:
    return list(best).index(row["field"])


def _weight_interval(material: Told, row: Mapping[str, Any]) -> tuple[float, float] | None:
    names = [f"{letter}[{row['field']}, {row['level']}]" for letter in "mu"]
    draws = material.draws
    if draws is None or not set(names) <= set(draws.column_names):
        return None
    m, u = (draws[name].to_numpy() for name in names)
    low, high = np.quantile(np.log2(m / u), (0.025, 0.975))
    return float(low), float(high)


def _times(weight: float) -> str:
    factor = f"{2 ** min(abs(weight), 60):,.3g}"
    return f"{factor} times as likely among {'matches' if weight >= 0 else 'non-matches'}"


def _m(row: Mapping[str, Any]) -> Number:
    low, high = row["m_lower"], row["m_upper"]
    around = "" if low is None else f" ({_small(low)}–{_small(high)})"
    return Number(_small(row["m"]) + around)


def _small(share: float) -> str:
    """Three decimals, or two digits that count: 0.250, 0.020, 0.000088."""
    if share >= 0.1 or not share:
        return f"{share:.3f}"
    return np.format_float_positional(share, precision=2, fractional=False, min_digits=2)


def compared(s: Mapping[str, Any]) -> str:
    """What was compared and how complete it is, and what was left out and why."""
    return section("compared", "What was compared", _completeness(s), _left_out(s))


def _completeness(s: Mapping[str, Any]) -> str:
    """Of each field, in each file."""
    sizes = (s["n_a"], s["n_b"]) if "n_a" in s else (s["n_records"],)
    several = len(sizes) > 1
    heads = ["Field", "Comparison", *_heads("Complete", several), *_heads("Values", several)]
    invalid = any(sum(f["invalid"]) for f in s["fields"])
    rows: list[list[Cell]] = []
    for f in s["fields"]:
        row: list[Cell] = [f["name"], f["comparison"]]
        row += [Number(f"{100 * (1 - f['missing'][i] / n):.0f} %") for i, n in enumerate(sizes)]
        row += [Number(counted(f["distinct"][i])) for i in range(len(sizes))]
        if invalid:
            row += [Number(counted(f["invalid"][i])) for i in range(len(sizes))]
        rows.append(row)
    return table([*heads, *(_heads("Invalid", several) if invalid else [])], rows)


def _heads(what: str, several: bool) -> list[str]:
    return [f"{what} in A", "in B"] if several else [what]


def _left_out(s: Mapping[str, Any]) -> str:
    """Columns that were looked at and not compared, those of one reason in one row."""
    reasons: dict[str, dict[str, str]] = {}
    for left in s.get("left_out", ()):
        files = reasons.setdefault(left["reason"], {})
        files[left["column"]] = files.get(left["column"], "") + left["file"]
    rows = [
        [", ".join(f"{column} ({' and '.join(of)})" for column, of in files.items()), why]
        for why, files in reasons.items()
    ]
    return table(["Left out", "Why"], rows)


def unlinkable(material: Material) -> str:
    """The section on records that say too little, whoever their partner is."""
    found = material.copies()
    title = "Records that say too little"
    if isinstance(found, str):
        return folded("unlinkable", title, paragraph(f"This is left out: {found}", "aside"))
    a, b = (f"{100 * share:.1f} %" for share in found.shares_below(found.needed))
    return folded(
        "unlinkable",
        title,
        paragraph(
            f"{a} of the records of A and {b} of those of B could not be linked even if the other "
            "file had an exact copy of them: they lack values, or say only what many records say. "
            "This says nothing of records that have no partner."
        ),
        figure(
            curves.unlinkable(found),
            "Share of records whose weight with an exact copy is below a number of bits. The "
            "dashed line is what a link costs: there, a pair without rivals has probability ½.",
            name="unlinkable",
        ),
    )


# --- what the names of levels mean, for those who did not choose them -----------------------------

_MEANINGS = (
    ("km", "Distances in km are between two places, as the crow flies."),
    (
        "distance",
        "Distance is the share of letters to change, add or leave out to make one value of the "
        "other: 0.25 is one letter in four.",
    ),
    ("apart", "Dates are so many days apart."),
    ("difference", "A difference is between two numbers."),
    ("similarity", "Similarity runs from 0, nothing in common, to 1, equal."),
    ("alike ≥", "How alike texts are runs from 0, nothing in common, to 1, equal."),
    (
        "value ≤",
        "Agreement on a rare value says more: a value ≤ 1 % is one that at most 1 % of the records "
        "have.",
    ),
)


def meanings(labels: Sequence[str]) -> str:
    """A few sentences on the labels that are in use."""
    said = [
        words
        for sign, words in _MEANINGS
        if any(sign in label and not (sign == "distance" and "km" in label) for label in labels)
    ]
    order = "Levels are listed from best to worst, and each leaves out what the ones above it hold"
    edges = any("≤" in label for label in labels)
    example = ": what is within a distance is close but not equal." if edges else "."
    return " ".join([order + example, *said])
