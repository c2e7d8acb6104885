"""The report's pictures, one by one. Notebooks show them; `.save("name.svg")` writes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayeslink.data.id_pairs import among
from bayeslink.errors import SettingsError
from bayeslink.linkage.priors import Penalty
from bayeslink.pairs.pair_tables import in_kind, pair_table, with_own_ids
from bayeslink.report import charts, curves, examples
from bayeslink.report.notebook import weight_chart
from bayeslink.report.patterns import chart as pattern_chart
from bayeslink.report.svg import Chart
from bayeslink.runs.dedupe_run import DedupeRun
from bayeslink.runs.pair_files import pairs_of
from bayeslink.runs.run import Run
from bayeslink.runs.theta_path import ThetaPath
from bayeslink.runs.thresholds import by_threshold, expected_links, expected_pairs
from bayeslink.runs.unlinkable import copy_weights
from bayeslink.sampling.sensitivity import sensitivity as under_priors

if TYPE_CHECKING:
    from bayeslink.linkage.penalized import Mode, PenaltyPath
    from bayeslink.linkage.posthoc import Blocks
    from bayeslink.runs.explanation import Explanation
    from bayeslink.sampling.clusters import ClusterPosterior
    from bayeslink.sampling.posterior import Posterior
    from bayeslink.sampling.sensitivity import Sensitivity
    from bayeslink.suggesting.profiling import FileProfiles


def completeness(source: FileProfiles) -> Chart:
    """How full each column is, and how many values it has: of what `bl.profile` gives."""
    _require(source, "files", "bl.profile(a, b)")
    return charts.completeness(
        [
            (Path(file.label).name, [(c.name, c.complete, c.distinct) for c in file.columns])
            for file in source.files
        ]
    )


def weights(source: Run | Posterior | Mode) -> Chart:
    """Match weight of each level of each field, in bits, of a run, a posterior or a fit."""
    return weight_chart(_holding(source, "pairs").pairs, source.parameters)


def links(source: Run | Posterior) -> Chart:
    """Posterior of the number of links, with its 95 % interval."""
    posterior = _posterior(source)
    return curves.links(posterior.n_links, posterior.interval())


def probabilities(source: Run | Posterior) -> Chart:
    """Candidate pairs by link probability."""
    rows = charts.probability_classes(_posterior(source).probability)
    return charts.tally("Candidate pairs by link probability", rows, "pairs")


def blocks(source: Run | Blocks | Posterior) -> Chart:
    """Post-hoc blocks by the number of pairs they hold."""
    held = _holding(_posterior(source) if isinstance(source, Run) else source, "n_pairs_in_block")
    rows = charts.block_sizes(held.n_pairs_in_block)
    return charts.tally("Post-hoc blocks by size", rows, "blocks")


def people(source: DedupeRun | ClusterPosterior) -> Chart:
    """Posterior of the number of people in one file, with its 95 % interval."""
    _require(source, "entities", "what bl.dedupe gives, or its posterior")
    return curves.people(source.entities.draws, source.entities.interval())


def thresholds(run: Run | DedupeRun) -> Chart:
    """Expected precision and recall of the pairs at or above each probability.

    Recall is of all links expected, those among pairs that are listed nowhere included; of a
    deduplication, of all pairs of records of one person. From the run's own probabilities: as right
    as these are. `.table` has the numbers.
    """
    if isinstance(run, DedupeRun):
        pairs = run.as_table("pairs")
        sizes = run.table["size"].filter(run.table["representative"])
        found = by_threshold(pairs["probability"], expected_pairs(sizes, run.summary()))
        return _in_kind(curves.thresholds(found), run.kind)
    _require_run(run)
    _posterior(run)
    s, p = run.summary(), run.as_table("pairs")["link_probability"]
    found = by_threshold(p, expected_links(s), s["known_links"])
    return _in_kind(curves.thresholds(found), run.pairs.kind)


def unlinkable(run: Run) -> Chart:
    """Share of records that could not reach a weight even with an exact copy in the other file.

    They lack values, or say only what many records say. Records that have no partner do not count
    as such. The inputs are read again. `.table` has the numbers.
    """
    _require_run(run)
    return _in_kind(curves.unlinkable(copy_weights(run)), run.pairs.kind)


def patterns(run: Run) -> Chart:
    """Weight of the 20 patterns of agreement that most links are expected to have.

    `.table` has all patterns: in words, their weight in bits, pairs, expected links, links, the ids
    of a pair to look at with `run.explain`, and levels.
    """
    _require_run(run)
    drawn = pattern_chart(run.pairs.fields, run.candidates(), run.table)
    table = with_own_ids(drawn.table, run.pairs.id_types)
    return _in_kind(replace(drawn, table=table), run.pairs.kind)


def trace(source: Run | Posterior, name: str = "links") -> Chart:
    """Draws of a quantity, chain by chain; names as in `posterior.quantities()`."""
    found = _posterior(source).quantities()
    if name not in found:
        raise SettingsError(f"there are no draws of {name!r}. Allowed: {', '.join(found)}.")
    return curves.trace(name, found[name])


def path(source: Run | PenaltyPath) -> Chart:
    """Links of the penalized-likelihood estimate over θ, followed both ways.

    Of a run, from 4 below its θ to 4 above it.
    """
    if isinstance(source, Run):
        path = source.theta_path or ThetaPath.around(source.pairs, source.theta)
    else:
        _require(source, "up", "a run, or what bl.penalty_path gives")
        path = ThetaPath.of(source)
    return curves.path(path.theta, path.up, path.down)


def calibration(source: Run | Posterior, truth: Any) -> Chart:
    """Share of true pairs against their link probability; `truth` as `evaluate` takes it."""
    posterior = _posterior(source)
    pairs = pair_table(posterior.blocks.pairs, posterior.blocks.candidates, {})
    true = among(pairs, pairs_of(truth, "truth"))
    return curves.calibration(curves.reliability(posterior.probability, true))


def sensitivity(source: Run | Sensitivity) -> Chart:
    """The number of links under each prior, before (dotted) and after the data.

    Of a run: under its own prior, and with a θ that is 2 lower and 2 higher.
    """
    result: Any = _other_priors(source) if isinstance(source, Run) else source
    _require(result, "results", "a run, or what bl.sensitivity gives")
    rows = [(r.label, r.n_links, r.interval, r.prior_interval) for r in result.results]
    return curves.intervals("Links under several priors", rows, "number of links, L")


def waterfall(explanation: Explanation) -> Chart:
    """How the weight of one pair adds up over the fields: of what `run.explain` gives."""
    if isinstance(explanation, Run):
        raise SettingsError(
            "this picture is of one pair. Name it: plots.waterfall(run.explain(id_a, id_b))."
        )
    _require(explanation, "evidence", "run.explain(id_a, id_b)")
    return examples.waterfall(explanation)


def _require_run(source: Any) -> None:
    _require(source if isinstance(source, Run) else None, "pairs", "a run")


def _in_kind(chart: Chart, kind: str) -> Chart:
    """The chart with its table in the kind that the files came as."""
    return replace(chart, table=in_kind(chart.table, kind))


def _posterior(source: Any) -> Any:
    """The posterior of a run, or one itself."""
    if not isinstance(source, Run):
        _require(source, "blocks", "a run, or its posterior")
        return source
    if source.posterior is None:
        raise SettingsError("a point estimate has no draws to show. Link without point=True.")
    return source.posterior


def _other_priors(run: Run) -> Sensitivity:
    posterior = _posterior(run)
    priors = [Penalty(posterior.theta + step) for step in (-2, 2)]
    return under_priors(posterior, [priors[0], posterior.prior, priors[1]])


def _holding(source: Any, name: str) -> Any:
    """The source itself, or its blocks: whichever has this."""
    held = source if hasattr(source, name) else getattr(source, "blocks", None)
    _require(held, name, "a run, or its posterior")
    return held


def _require(source: Any, name: str, wanted: str) -> None:
    if not hasattr(source, name):
        raise SettingsError(f"this picture cannot be drawn from this object. It takes {wanted}.")


def _of(draw: Callable[..., Chart]) -> Callable[..., Chart]:
    """A picture as a method of what `run.plots` is."""

    @wraps(draw)
    def method(self: Any, *given: Any, **named: Any) -> Chart:
        return draw(self._run, *given, **named)

    return method


class _Pictures:
    """The pictures of one run."""

    def __init__(self, run: Any) -> None:
        self._run = run

    def __dir__(self) -> list[str]:
        """The pictures alone, for completion."""
        return sorted(name for name in vars(type(self)) if not name.startswith("_"))

    def __repr__(self) -> str:
        return f"The pictures of a run: {', '.join(f'.{name}' for name in dir(self))}."


class RunPictures(_Pictures):
    """The pictures of a linkage: `run.plots.links()`, `run.plots.waterfall(id_a, id_b)`."""

    blocks = _of(blocks)
    calibration = _of(calibration)
    links = _of(links)
    path = _of(path)
    patterns = _of(patterns)
    probabilities = _of(probabilities)
    sensitivity = _of(sensitivity)
    thresholds = _of(thresholds)
    trace = _of(trace)
    unlinkable = _of(unlinkable)
    weights = _of(weights)

    def waterfall(self, id_a: str, id_b: str) -> Chart:
        """How the weight of a pair adds up over the fields."""
        return waterfall(self._run.explain(id_a, id_b))


class DedupePictures(_Pictures):
    """The pictures of a deduplication: `run.plots.people()`."""

    people = _of(people)
    thresholds = _of(thresholds)
    weights = _of(weights)


def __dir__() -> list[str]:
    """The pictures alone, for completion."""
    return __all__


__all__ = [
    "blocks",
    "calibration",
    "completeness",
    "links",
    "path",
    "patterns",
    "people",
    "probabilities",
    "sensitivity",
    "thresholds",
    "trace",
    "unlinkable",
    "waterfall",
    "weights",
]
