"""What a notebook shows of a fit and of a posterior."""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from bayeslink.linkage.penalized import PenalizedFit
from bayeslink.model.weights import Parameters
from bayeslink.notebook_html import Shown
from bayeslink.pairs.source import PairSource
from bayeslink.report import charts, curves
from bayeslink.report.svg import Chart, notebook
from bayeslink.runs.brief import in_brief
from bayeslink.runs.run import Run
from bayeslink.sampling.posterior import Posterior


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
