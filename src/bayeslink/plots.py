"""The report's pictures, one by one. Notebooks show them; `.save("name.svg")` writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bayeslink.data.id_pairs import among
from bayeslink.pairs.tables import pair_table
from bayeslink.report import charts, curves
from bayeslink.report.examples import waterfall
from bayeslink.report.material import read_truth
from bayeslink.report.svg import Chart

if TYPE_CHECKING:
    from bayeslink.inference.penalized import Mode, PenaltyPath
    from bayeslink.inference.posterior import Posterior
    from bayeslink.inference.posthoc import Blocks
    from bayeslink.inference.sensitivity import Sensitivity
    from bayeslink.linking.run import Run


def weights(source: Run | Posterior | Mode) -> Chart:
    """Match weight of each level of each field, in bits, of a run, a posterior or a fit."""
    pairs = _holding(source, "pairs").pairs
    seen = pairs.level_counts().counts > 0  # the weight of other levels is the prior's alone
    weights = np.where(seen, source.parameters.log_weights, np.nan)
    return charts.parameter_weights(pairs.fields, weights)


def links(posterior: Posterior) -> Chart:
    """Posterior of the number of links, with its 95 % interval."""
    return curves.links(posterior.n_links, posterior.interval())


def probabilities(posterior: Posterior) -> Chart:
    """Candidate pairs by link probability."""
    rows = charts.probability_classes(posterior.probability)
    return charts.tally("Candidate pairs by link probability", rows, "pairs")


def blocks(source: Blocks | Posterior) -> Chart:
    """Post-hoc blocks by the number of pairs they hold."""
    rows = charts.block_sizes(_holding(source, "n_pairs_in_block").n_pairs_in_block)
    return charts.tally("Post-hoc blocks by size", rows, "blocks")


def trace(posterior: Posterior, name: str = "links") -> Chart:
    """Draws of a quantity, chain by chain; names as in `posterior.quantities()`."""
    return curves.trace(name, posterior.quantities()[name])


def path(path: PenaltyPath) -> Chart:
    """Links of the penalized-likelihood estimate over θ, followed both ways."""
    up, down = (np.array([m.n_links for m in side], float) for side in (path.up, path.down))
    return curves.path(path.thetas, up, down)


def calibration(posterior: Posterior, truth: Any) -> Chart:
    """Share of true pairs against their link probability."""
    pairs = pair_table(posterior.blocks.pairs, posterior.blocks.candidates, {})
    true = among(read_truth(pairs), read_truth(truth))
    return curves.calibration(curves.reliability(posterior.probability, true))


def sensitivity(result: Sensitivity) -> Chart:
    """The number of links under each prior, before (dotted) and after the data."""
    rows = [(r.label, r.n_links, r.interval, r.prior_interval) for r in result.results]
    return curves.intervals("Links under several priors", rows, "number of links, L")


def _holding(source: Any, name: str) -> Any:
    """The source itself, or its blocks: whichever has this."""
    return source if hasattr(source, name) else source.blocks


__all__ = [
    "blocks",
    "calibration",
    "links",
    "path",
    "probabilities",
    "sensitivity",
    "trace",
    "waterfall",
    "weights",
]
