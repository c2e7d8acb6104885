"""How sure: the sections that need draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from bayeslink.data.id_pairs import among
from bayeslink.number_format import minus
from bayeslink.report import charts, curves
from bayeslink.report.markup import (
    Cell,
    Number,
    counted,
    figure,
    folded,
    menu,
    notes,
    paragraph,
    table,
)
from bayeslink.report.material import Material, Told, chains_of
from bayeslink.report.sections import LOG2
from bayeslink.report.svg import tag
from bayeslink.runs.expected import records_in_both
from bayeslink.runs.thresholds import by_threshold, expected_links
from bayeslink.sampling.diagnostics import Diagnostic, verdict

_TRACED = 6  # quantities whose draws are shown
_LISTED = 8
_TOLD = (0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.95, 0.99, 0.999)  # thresholds in the table


def threshold(material: Material) -> str:
    s = material.summary
    why = f" ({s['w0_why']})"
    if not s["restricted"]:
        words = (
            f"Every pair in scope could be a link. {counted(s['candidates'])} pairs were drawn in "
            "every sweep"
        )
        if s["listed"] > s["candidates"] or s["listed"] < s["n_pairs"]:
            words += (
                f"{why}, all others now and then, by births and deaths of single links: "
                f"they hold {_about(s['links_elsewhere'])}"
            )
        words += "."
    elif s["w0"] is None:
        words = "Every pair in scope could be a link in the sampling: nothing was set aside."
    else:
        words = (
            f"Only pairs with a weight above w0 = {s['w0']:.2f} ({s['w0'] / LOG2:.1f} bits) could "
            f"be links in the sampling{why}: {counted(s['candidates'])} of "
            f"{counted(s['n_pairs'])} pairs in scope. The others have probability 0 here, which is "
            "an approximation; they still count towards u. By the weights of the point estimate, "
            f"about {counted(s['links_outside'], 1)} links are expected among them."
        )
    if s["known_links"]:
        words += f" {counted(s['known_links'])} links were known."
    return folded("w0", "Which pairs were drawn", paragraph(words))


def _about(links: float) -> str:
    return "less than 0.1 links" if links < 0.05 else f"about {counted(links, 1)} links"


def blocks(material: Material) -> str:
    s, pairs = material.summary, material.pairs
    assert pairs is not None
    sizes = np.bincount(pairs["block"].drop_null().to_numpy(), minlength=s["blocks"])
    drawn = s["blocks_drawn"]
    words = (
        "Candidate pairs that share a record, directly or through others, form a post-hoc block. "
        f"There are {counted(s['blocks'])}, the largest of {counted(s['largest_block'])} pairs. "
        f"{counted(drawn.get('single', 0))} hold a single pair, {counted(drawn.get('joint', 0))} "
        f"were drawn from the list of their matchings, {counted(drawn.get('large', 0))} by moves."
    )
    classes = charts.block_sizes(sizes[sizes > 0])
    chart = charts.tally("Post-hoc blocks by size", classes, "blocks", log=True)
    return folded(
        "blocks",
        "Post-hoc blocks",
        paragraph(words),
        figure(chart, "Number of blocks by the pairs they hold.", name="blocks"),
    )


def number_of_links(material: Material) -> str:
    s, draws = material.summary, chains_of(material, "links")
    low, high = s["links_interval"]
    words = f"{records_in_both(s)} The bars are the draws of L under the model."
    if not s["restricted"]:
        words += (
            " The interval allows for more: links that no pair shows are only counted, and that "
            "count may be wrong by a factor."
        )
    chart = curves.links(draws, (low, high), decided=s["n_links"])
    return folded(
        "posterior",
        "The number of links",
        paragraph(words),
        figure(
            chart,
            f"Posterior of L. The dashed line is the number of links decided on, "
            f"{s['n_links']:,}, which need not be the most probable L.",
            name="links",
        ),
    )


def probabilities(material: Material, truth: pa.Table | None) -> str:
    pairs = material.pairs
    assert pairs is not None
    p = pairs["link_probability"].to_numpy()
    chart = charts.tally(
        "Candidate pairs by link probability", charts.probability_classes(p), "pairs", log=True
    )
    parts = [
        paragraph(
            "The posterior probability that a pair is a link, with rivals taken into account: "
            "those of one record never sum to more than 1."
        ),
        figure(
            chart,
            "Candidate pairs by probability, most certain first; each mark of the scale is ten "
            "times the one before.",
            name="probabilities",
        ),
    ]
    if truth is not None and len(p):
        groups = curves.reliability(p, among(pairs, truth))
        parts.append(
            figure(
                curves.calibration(groups),
                "Pairs of similar probability: the share that are true, with its 95 % interval. On "
                "the dashed diagonal, probabilities mean what they say.",
                name="calibration",
            )
        )
    return folded("probabilities", "Link probabilities", *parts)


def thresholds(material: Material) -> str:
    """What other thresholds than the run's would give."""
    assert material.pairs is not None
    s, p = material.summary, material.pairs["link_probability"]
    given = p, expected_links(s), s["known_links"]
    chart = curves.thresholds(by_threshold(*given))
    rows: list[list[Cell]] = [
        [
            Number(f"{r['threshold']:g}"),
            Number(counted(r["pairs"])),
            Number(counted(r["expected_links"], 1)),
            *(Number(_told(r[f"expected_{what}"])) for what in ("precision", "recall")),
        ]
        for r in by_threshold(*given, _TOLD).to_pylist()
    ]
    words = (
        "Were all pairs linked that have at least some probability: the share of them that would "
        f"be true, and the share found of the {counted(expected_links(s), 1)} true links expected "
        "in all. Both follow from the probabilities and are as right as these. Above ½, no "
        "record is in two pairs."
    )
    if not s["links_identified"]:
        words += " The number of links is not identified here, so recall is only the model's word."
    return folded(
        "thresholds",
        "What a threshold would give",
        paragraph(words),
        figure(
            chart,
            "Expected precision (full) and recall (dashed) of the pairs at or above a threshold.",
            name="thresholds",
        ),
        table(["Threshold", "Pairs", "Expected links", "Precision", "Recall"], rows),
    )


def _told(share: float) -> str:
    return "–" if share != share else f"{share:.3f}"


def diagnostics(material: Told) -> str:
    s = material.summary
    found = [Diagnostic(**row) for row in s["diagnostics"]]
    worst = sorted(found[2:], key=lambda d: -(d.rhat or 0))
    listed = [*found[:2], *worst[: _LISTED - 2]]
    spoken = _spoken(material)
    names = [spoken.get(d.name, d.name) for d in listed]
    figures = "".join(
        figure(
            curves.trace(name, chains_of(material, d.name)),
            f"Draws of {name}.",
            name="trace",
            data_of="trace",
            data_key=str(i),
        )
        for i, (name, d) in enumerate(zip(names[:_TRACED], listed[:_TRACED], strict=True))
    )
    first = "L," if found[0].name == "links" else "The number of people,"
    rows = [_diagnostic_row(name, d) for name, d in zip(names, listed, strict=True)]
    heads = ["Quantity", "Mean", "SD", "R-hat", "Independent draws", "Verdict"]
    return folded(
        "diagnostics",
        "Can the draws be trusted?",
        *_verdict_in_words(found, s),
        table(
            heads, rows, caption=f"{first} the log posterior, and the parameters of largest R-hat."
        ),
        menu("Draws of", "trace", {str(i): name for i, name in enumerate(names[:_TRACED])}),
        tag("div", figures, cls="traces"),
    )


def _verdict_in_words(found: list[Diagnostic], s: dict[str, Any]) -> list[str]:
    how = (
        f"{s['chains']} chains of {s['draws']:,} draws were run, each after "
        f"{s['tune']:,} that were dropped."
    )
    problem = verdict(found)
    if problem:
        return [paragraph(how), notes([problem])]
    rhat = max((d.rhat for d in found if d.rhat is not None), default=1.0)
    ess = min((d.ess for d in found if d.ess is not None), default=0.0)
    return [
        paragraph(
            f"{how} They agree on all of the {len(found)} quantities followed: R-hat, which is 1 "
            f"where chains cannot be told apart, is at most {rhat:.3f}, and the draws are worth at "
            f"least {ess:,.0f} independent ones for each."
        )
    ]


def _diagnostic_row(name: str, d: Diagnostic) -> list[str | Number]:
    return [
        name,
        Number(_rounded(d.mean)),
        Number(minus(f"{d.sd:,.3g}")),
        Number("–" if d.rhat is None else f"{d.rhat:.3f}"),
        Number("–" if d.ess is None else f"{d.ess:,.0f}"),
        d.status,
    ]


def _rounded(mean: float) -> str:
    return minus(f"{mean:,.5g}" if abs(mean) < 1e5 else f"{mean:,.0f}")


def _spoken(material: Told) -> dict[str, str]:
    """Names of what was drawn, in words."""
    levels = {
        f"{letter}[{row['field']}, {row['level']}]": f"{letter} of {row['field']}, {row['label']}"
        for row in material.parameters.to_pylist()
        for letter in "mu"
    }
    own = {"links": "number of links, L", "people": "number of people"}
    return {**own, "log_posterior": "log posterior", **levels}
