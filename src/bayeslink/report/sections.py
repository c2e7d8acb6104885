"""What a link costs, and how to repeat the run: sections that a point estimate has too."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from bayeslink.number_format import minus, signed
from bayeslink.report import curves
from bayeslink.report.finding import file_names
from bayeslink.report.markup import (
    Number,
    counted,
    figure,
    folded,
    paragraph,
    table,
)
from bayeslink.report.material import Material, Told
from bayeslink.report.svg import escape, tag
from bayeslink.runs.theta_path import FEW_PAIRS

LOG2 = math.log(2)
_NO_SUM = "not known: a table, not a file"


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
    return folded("prior", "The prior: what a link costs", *parts)


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
    cost = f"θ = {minus(f'{theta:.2f}')} ({minus(f'{theta / LOG2:.1f}')} bits)"
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


def provenance(material: Told, counts: Callable[[float], str] = counted) -> str:
    s, names = material.summary, file_names(material.summary)
    called = [f"{side}: {name}" for side, name in zip("AB", names, strict=False)]
    inputs = "".join(
        tag("h3", escape(name))
        + paragraph(
            f"{counts(i['records'])} records, {i['kind']}"
            + (f"; {counts(i['quarantined'])} rows set aside" if i["quarantined"] else "")
        )
        + "".join(
            tag("p", escape(f"SHA-256 {part['sha256'] or _NO_SUM}"), cls="hash")
            for part in i.get("parts", [i])
        )
        for name, i in zip(called if "n_a" in s else names, s["inputs"], strict=True)
    )
    versions = ", ".join(f"{name} {number}" for name, number in s["versions"].items())
    seconds = ", ".join(f"{name} {t:.1f}" for name, t in s["seconds"].items())
    return folded(
        "repeat",
        "To repeat this run",
        inputs,
        tag("h3", f"Settings ({'link-many' if 'lists' in s else s.get('task', 'link')}.toml)"),
        tag("pre", _lines(material.settings), tabindex=0, role="region", aria_label="Settings"),
        paragraph(f"Versions: {versions}; Python {s['python']} on {s['platform']}."),
        paragraph(f"Seconds: {seconds}. Finished {s['created']}."),
    )


def _lines(settings: str) -> str:
    return "\n".join(escape(line) for line in settings.splitlines())
