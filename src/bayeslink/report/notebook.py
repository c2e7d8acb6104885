"""What a notebook shows of runs, fits, posteriors and explanations."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch

import numpy as np

from bayeslink.linkage.forest import ForestFit
from bayeslink.linkage.penalized import PenalizedFit, PenaltyPath
from bayeslink.linkage.posthoc import Blocks
from bayeslink.model.weights import Parameters
from bayeslink.notebook_html import Shown
from bayeslink.number_format import signed
from bayeslink.pairs.source import PairSource
from bayeslink.report import charts, curves
from bayeslink.report.examples import waterfall
from bayeslink.report.svg import Chart, escape, notebook, tag
from bayeslink.runs.brief import in_brief
from bayeslink.runs.dedupe_run import DedupeRun
from bayeslink.runs.explanation import Explanation
from bayeslink.runs.run import Run
from bayeslink.runs.theta_path import ThetaPath
from bayeslink.sampling.clusters import ClusterPosterior
from bayeslink.sampling.entities import Entities
from bayeslink.sampling.posterior import Posterior
from bayeslink.sampling.sensitivity import Sensitivity


@singledispatch
def as_html(result: Shown) -> str:
    """Sentences and a picture."""
    raise TypeError(f"nothing is drawn of {type(result).__name__}")


def weight_chart(pairs: PairSource, parameters: Parameters) -> Chart:
    """Match weight of each level that any pair has: that of others is the prior's alone."""
    seen = pairs.level_counts().counts > 0
    weights = np.where(seen, parameters.log_weights, np.nan)
    return charts.parameter_weights(pairs.fields, weights)


@as_html.register
def _(run: Run) -> str:
    weights = weight_chart(run.pairs, run.parameters)
    lines = in_brief(run)
    if (posterior := run.posterior) is None:
        return notebook(lines, weights)
    return notebook(lines, curves.links(posterior.n_links, posterior.interval()), weights)


@as_html.register
def _(fit: PenalizedFit) -> str:
    words = f"{fit.n_links:,} links at θ = {fit.theta:.3g}; modes found: {len(fit.modes):,}."
    weights = charts.parameter_weights(fit.pairs.fields, fit.parameters.log_weights)
    return notebook([words], weights)


@as_html.register
def _(posterior: Posterior) -> str:
    low, high = posterior.interval()
    what = "95 % interval" if posterior.identified.holds else "not identified, bounds"
    chains, draws = posterior.n_links.shape
    words = (
        f"Links: {posterior.n_links.mean():,.0f}, {what} {low:,} to {high:,}; {chains} "
        f"chains of {draws:,} draws over {posterior.blocks.n_candidates:,} candidate pairs."
    )
    lines = filter(None, [words, posterior.warning()])
    return notebook(list(lines), curves.links(posterior.n_links, (low, high)))


@as_html.register
def _(run: DedupeRun) -> str:
    return notebook(run.report_lines(), _people(run.entities))


@as_html.register
def _(posterior: ClusterPosterior) -> str:
    weights = charts.parameter_weights(posterior.fit.pairs.fields, posterior.parameters.log_weights)
    lines = filter(None, [_how_many(posterior.entities), posterior.warning()])
    return notebook(list(lines), _people(posterior.entities), weights)


@as_html.register
def _(entities: Entities) -> str:
    return notebook([_how_many(entities)], _people(entities))


@as_html.register
def _(fit: ForestFit) -> str:
    words = f"{fit.n_entities:,} people at θ = {fit.theta:.3g}; modes found: {len(fit.modes):,}."
    return notebook([words], charts.parameter_weights(fit.pairs.fields, fit.parameters.log_weights))


@as_html.register
def _(path: PenaltyPath) -> str:
    drawn = ThetaPath.of(path)
    words = f"Fits at {len(path.thetas):,} values of θ, followed both ways."
    return notebook([words], curves.path(drawn.theta, drawn.up, drawn.down))


@as_html.register
def _(blocks: Blocks) -> str:
    words = f"{blocks.n_candidates:,} candidate pairs in {blocks.n_blocks:,} post-hoc blocks."
    rows = charts.block_sizes(blocks.n_pairs_in_block)
    return notebook([words], charts.tally("Post-hoc blocks by size", rows, "blocks"))


@as_html.register
def _(found: Sensitivity) -> str:
    rows = [(r.label, r.n_links, r.interval, r.prior_interval) for r in found.results]
    drawn = curves.intervals("Links under several priors", rows, "number of links, L")
    return notebook(list(found.notes), drawn)


@as_html.register
def _(explanation: Explanation) -> str:
    """What `print` tells of it, with a picture of the weights, and a table of the values."""
    text = str(explanation)
    valued = any(e.values for e in explanation.evidence)
    heads = ("field", *("AB" if valued else ""), "agreement", "bits")
    rows = [
        (e.field, *((e.values or ("", "")) if valued else ()), e.level, signed(e.bits))
        for e in explanation.evidence
    ]
    rivals = "<br>".join(map(escape, text.rpartition("\n\n")[2].split("\n")))
    return tag(
        "div",
        tag("p", escape(text.partition("\n")[0]))
        + waterfall(explanation)._repr_html_()
        + _table(heads, rows)
        + tag("p", rivals),
    )


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A small table in which what cannot be seen is spelt out."""
    cells = [tag("tr", "".join(tag("th", escape(head)) for head in heads))]
    cells += [tag("tr", "".join(tag("td", escape(cell)) for cell in row)) for row in rows]
    return tag("table", "".join(cells))


def _people(entities: Entities) -> Chart:
    return curves.people(entities.draws, entities.interval())


def _how_many(entities: Entities) -> str:
    low, high = entities.interval()
    return f"People: {entities.mean:,.0f}, 95 % interval {low:,} to {high:,}."
