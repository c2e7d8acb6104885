"""Do the people found in one file look right? Checks that need no truth, each with what to do."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bayeslink.linkage.forest import ForestFit, unlikeness
from bayeslink.linkage.pointers import POINTERS, STAR, components, roots
from bayeslink.model.dependence import ABOVE
from bayeslink.sampling.clusters import ClusterPosterior

_DOUBTFUL = 0.1  # probability of a pair, above which it is in doubt
_PERCOLATES, _TIMES = 0.1, 10  # share of the records in one component; as a multiple of a person's
_CHAINED = 0.25  # ρ, surely above it: a copy of a copy is nearly as likely as one of an original
_FORMS = 0.02  # of the edges: pairs above θ that a star keeps apart
_NEARLY, _APART = 5.0, 0.05  # in the objective, of two modes; share of the records they differ in
_FEW = 0.1  # people a record, below which nothing but duplicates is found
_UNLIKE = 0.4  # of the fields: see docs/design.md
_LOOKED_AT = 100_000  # pairs


def cluster_warnings(posterior: ClusterPosterior) -> list[str]:
    """What is wrong, in words; each with one thing to do."""
    checks = (_on_likeness, _on_counted, _on_share, _on_component, _on_forms, _on_forest_modes)
    return [warning for check in checks for warning in check(posterior)]


def _on_likeness(posterior: ClusterPosterior) -> Iterator[str]:
    """Records joined that have little in common."""
    together = posterior.together
    at = np.flatnonzero(together.probability > 0.5)
    at = at[:: max(1, len(at) // _LOOKED_AT)]
    levels = posterior.fit.pairs.levels_of(together.a[at], together.b[at])
    share = unlikeness(levels)
    if share > _UNLIKE:
        yield (
            f"records taken to be one person differ in {100 * share:.0f} % of the fields that both "
            "have: they are hardly the same people. The file may hold no duplicates, or too few to "
            "learn from. Do not use the clusters: compare more fields, or give pairs that are "
            "known (known_links=) in Python."
        )


def _on_counted(posterior: ClusterPosterior) -> Iterator[str]:
    """Most copies follow from the model alone."""
    joins = posterior.joins
    if joins.mostly_counted:
        yield (
            f"the number of people is not identified: {joins.pointed:,.0f} records can be pointed "
            f"to as copies, and {joins.counted:,.0f} more are expected among pairs that look like "
            "any other. Take no count from this run: compare fields that tell people apart."
        )


def _on_share(posterior: ClusterPosterior) -> Iterator[str]:
    """No duplicates found, or nothing but."""
    n, (low, high) = posterior.fit.pairs.n_a, posterior.entities.interval()
    if low == high == n:
        yield (
            "no record looks like another: the file seems to hold no duplicates. If it should hold "
            "some, compare fields that they share."
        )
    elif high < _FEW * n:
        yield (
            f"{n:,} records are taken to be at most {high:,} people. Where that cannot be, the "
            "fields tell people apart too badly: add fields."
        )


def _on_component(posterior: ClusterPosterior) -> Iterator[str]:
    """Doubtful pairs that chain a large part of the file together."""
    together, n = posterior.together, posterior.fit.pairs.n_a
    at = together.probability > _DOUBTFUL
    largest = int(np.bincount(components(together.a[at], together.b[at], n)).max(initial=0))
    size = np.bincount(posterior.kept[-1]).max(initial=1)
    if largest > _PERCOLATES * n and largest > _TIMES * size:
        yield (
            f"{largest:,} of {n:,} records hang together through pairs that may be one person's. "
            "Strangers are chained: add a field that tells people apart."
        )


def _on_forms(posterior: ClusterPosterior) -> Iterator[str]:
    """People in several forms, where a star is asked for; copies of copies as a rule."""
    fit, rho = posterior.fit, float(posterior.rho.mean())
    if fit.shape == STAR and (apart := _kept_apart(fit)) > _FORMS * max(1, len(fit.linked)):
        yield (
            f"{apart:,} pairs look like one person's, yet a star keeps them apart: people seem to "
            "be there in several forms. Leave shape out."
        )
    if fit.shape == POINTERS and np.quantile(posterior.rho, 0.05) > _CHAINED:
        yield (
            f"a copy of a copy is {rho:.2f} times as likely as one of an original: people have "
            "many forms, or strangers are chained. Look at the largest clusters."
        )


def _kept_apart(fit: ForestFit) -> int:
    """Pairs of a copy with a record of another tree, well above θ."""
    found, root = fit.candidates(), roots(fit.parent)
    weight = fit.parameters.weight_of(found.levels)
    copy = (fit.parent[found.a] >= 0) | (fit.parent[found.b] >= 0)
    apart = copy & (root[found.a] != root[found.b]) & (weight > fit.theta + ABOVE)
    return int(apart.sum())


def _on_forest_modes(posterior: ClusterPosterior) -> Iterator[str]:
    """Other forests, nearly as good, that hold other people."""
    best, *others = posterior.fit.modes
    for mode in others:
        apart = np.abs(mode.n_entities - best.n_entities)
        if best.objective - mode.objective < _NEARLY and apart > _APART * len(best.parent):
            yield (
                f"a solution with {mode.n_entities:,} people is nearly as good as the one with "
                f"{best.n_entities:,}. Trust the number of people only if all chains agree on it; "
                "else add a field."
            )
            return
