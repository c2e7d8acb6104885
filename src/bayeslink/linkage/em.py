"""The mixture-model baseline (3.1): EM, the Fellegi–Sunter rule, and EM + assignment.

Treats the n_A × n_B comparison vectors as independent draws from a two-component mixture
(Eq. 7), which they are not; here to be compared with, and for those who must use it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayeslink.errors import SettingsError, TooManyPairsError
from bayeslink.linkage.assignment import Assignment, assign
from bayeslink.model.weights import ByField, Parameters, Priors, proportions
from bayeslink.pairs.pair_tables import callers_table
from bayeslink.pairs.source import Floats, Pairs, PairSource, Patterns, sum_weights

_LEAST_SHARE = 1e-12  # of matches: that none is expected must not end in a logarithm of 0


@dataclass(frozen=True, slots=True)
class EMFit:
    """Maximum-likelihood estimates under Eq. 7."""

    pairs: PairSource
    parameters: Parameters
    share: float  # π, the share of matches among all pairs
    log_likelihood: float
    iterations: int
    converged: bool
    sampled: int  # pairs drawn for the pattern counts; 0 where these are exact

    @property
    def m(self) -> ByField:
        return ByField(self.pairs.fields, self.parameters.m)

    @property
    def u(self) -> ByField:
        return ByField(self.pairs.fields, self.parameters.u)

    def weight_of(self, levels: NDArray[Any]) -> Floats:
        """Weight of each comparison vector (Eq. 6), in natural logs."""
        return self.parameters.weight_of(levels)

    def match_probability(self, levels: NDArray[Any]) -> Floats:
        """Pr(match | γ) under the mixture, which knows nothing of one-to-one."""
        prior_odds = math.log(self.share) - math.log1p(-self.share)
        return 1 / (1 + np.exp(-np.clip(self.weight_of(levels) + prior_odds, -700, 700)))


def fit_em(
    pairs: PairSource,
    *,
    share: float | None = None,
    tolerance: float = 1e-6,
    max_iterations: int = 20_000,
) -> EMFit:
    """Fit the mixture of Eq. 7 by EM on the pattern counts.

    Starts from the prior means of m, the level shares of all pairs for u, and `share` (default:
    a tenth of the links that the scope has room for). Without any pair in scope it stays there.

    Parameters
    ----------
    tolerance
        EM has converged when no expected number of matches at a level moves by more than this
        share of itself, or of one pair where it is below one. The gain in log likelihood would
        not do: it drowns in the rounding of a sum over all pairs, and a gain per pair means less
        the more pairs there are that cannot match.
    """
    patterns, priors = pairs.pattern_counts(), Priors.of(pairs.fields)
    parameters = Parameters(
        proportions(priors.alpha_m, priors.used),
        proportions(_soft_counts(patterns, patterns.counts, priors), priors.used),
        priors.used,
    )
    if share is None:
        share = max(_LEAST_SHARE, 0.1 * pairs.scope.max_links / max(1, pairs.n_pairs))
    if not 0 < share < 1:
        raise SettingsError(
            f"share must lie between 0 and 1, got {share!r}. It is the share of matches among all "
            "pairs to start from; leave it out for the default."
        )
    n_pairs = int(patterns.counts.sum())
    matches: Floats = np.full(priors.used.shape, np.inf)  # expected at each level
    log_likelihood, iteration, converged = 0.0, 0, n_pairs == 0
    while not converged and iteration < max_iterations:
        iteration += 1
        matched, log_likelihood = _e_step(patterns, parameters, share)
        expected = matched * patterns.counts
        share = float(np.clip(expected.sum() / n_pairs, _LEAST_SHARE, 1 - _LEAST_SHARE))
        before, matches = matches, _soft_counts(patterns, expected, priors)
        parameters = Parameters(
            proportions(matches, priors.used),
            proportions(_soft_counts(patterns, patterns.counts - expected, priors), priors.used),
            priors.used,
        )
        converged = bool((np.abs(matches - before) <= tolerance * np.maximum(1.0, matches)).all())
    return EMFit(pairs, parameters, share, log_likelihood, iteration, converged, patterns.sampled)


def _e_step(patterns: Patterns, parameters: Parameters, share: float) -> tuple[Floats, float]:
    """Pr(match | γ) of each pattern, and the log likelihood (Eq. 7)."""
    logs = [np.log(np.where(parameters.used, p, 1.0)) for p in (parameters.m, parameters.u)]
    of_match = math.log(share) + sum_weights(logs[0], patterns.levels)
    of_other = math.log1p(-share) + sum_weights(logs[1], patterns.levels)
    either = np.logaddexp(of_match, of_other)
    return np.exp(of_match - either), float(either @ patterns.counts)


def _soft_counts(patterns: Patterns, counts: NDArray[Any], priors: Priors) -> Floats:
    """Expected pairs at each level; never quite 0, so that weights stay finite."""
    out: Floats = np.full(priors.used.shape, 1e-6)
    for j in range(patterns.levels.shape[1]):
        out[j] += np.bincount(patterns.levels[:, j], counts, out.shape[1])
    return out


# --- decisions --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FellegiSunter:
    """The two-threshold rule: link above `upper`, review from `lower` to `upper`, else not."""

    fit: EMFit
    upper: float  # the paper's λ
    lower: float  # the paper's μ
    false_link_rate: float  # estimated Pr(link | not a match)
    false_nonlink_rate: float  # estimated Pr(no link | match)
    n_link: int
    n_review: int

    @property
    def links(self) -> Any:
        """Pairs to link and to review with their weight; not one-to-one."""
        pairs = self.fit.pairs
        below = np.nextafter(self.lower, -math.inf)
        listed = pairs.pairs_above(self.fit.parameters.log_weights, below)
        w = self.fit.weight_of(listed.levels)
        decision = np.where(w > self.upper, "link", "review")
        columns = {"match_weight": w / math.log(2), "decision": decision}
        return callers_table(pairs, listed, columns)


def fellegi_sunter(
    fit: EMFit,
    *,
    upper: float | None = None,
    lower: float | None = None,
    false_link_rate: float = 1e-5,
    false_nonlink_rate: float = 0.05,
) -> FellegiSunter:
    """Choose links, non-links and a review zone from the weights (Fellegi & Sunter 1969).

    Give the thresholds themselves (λ = `upper`, μ = `lower`, natural logs), or the error rates
    that they may lead to: then `upper` is the lowest and `lower` the highest that keep to them.
    """
    patterns = fit.pairs.pattern_counts()
    w, matched = fit.weight_of(patterns.levels), fit.match_probability(patterns.levels)
    order = np.argsort(-w, kind="stable")
    w, counts, matched = w[order], patterns.counts[order], matched[order]
    others = counts * (1 - matched) / max((counts * (1 - matched)).sum(), 1e-300)
    matches = counts * matched / max((counts * matched).sum(), 1e-300)
    if upper is None:
        upper = _first_threshold(w, others, false_link_rate)
    if lower is None:
        lower = min(-_first_threshold(-w[::-1], matches[::-1], false_nonlink_rate), upper)
    for name, value in (("upper", upper), ("lower", lower)):
        if math.isnan(value):
            raise SettingsError(f"{name} must be a number, got {value!r}.")
    if lower > upper:
        raise SettingsError(
            f"lower ({lower:g}) must not exceed upper ({upper:g}). Pairs between them are reviewed."
        )
    above, below = w > upper, w < lower
    return FellegiSunter(
        fit,
        float(upper),
        float(lower),
        float(others[above].sum()),
        float(matches[below].sum()),
        int(counts[above].sum()),
        int(counts[~above & ~below].sum()),
    )


def _first_threshold(w: Floats, mass: Floats, rate: float) -> float:
    """The lowest threshold with at most `rate` of the mass at w strictly above it; 0 if no w."""
    if not 0 <= rate <= 1:
        raise SettingsError(f"error rates lie between 0 and 1, got {rate!r}.")
    if not len(w):
        return 0.0
    too_many = np.flatnonzero(np.cumsum(mass) > rate)
    return float(w[too_many[0]]) if len(too_many) else float(np.nextafter(w[-1], -math.inf))


@dataclass(frozen=True, slots=True)
class EMAssignment:
    """Jaro's three stages: EM weights, one-to-one assignment, cut at `mu`."""

    fit: EMFit
    mu: float
    every_record: bool  # as in Eq. 8; otherwise records were left free
    linked: Pairs
    assignment: Assignment  # before the cut

    @property
    def n_links(self) -> int:
        return len(self.linked)

    @property
    def links(self) -> Any:
        w = self.fit.weight_of(self.linked.levels)
        columns = {"match_weight": w / math.log(2), "decision": np.full(len(w), "link")}
        return callers_table(self.fit.pairs, self.linked, columns)


def assign_em(fit: EMFit, mu: float = 0.0, *, every_record: bool = True) -> EMAssignment:
    """Jaro's three stages (3.1): assign on EM's weights (Eq. 8), then drop links with w ≤ mu.

    Parameters
    ----------
    mu
        Where links are cut, in natural logs.
    every_record
        As Eq. 8 has it, each record of the smaller file is assigned, whatever its pairs weigh;
        under a blocking key, each record of the smaller side of every block. Records without a
        match take part, and may take a record that belongs to another. False leaves records free:
        only pairs with w > 0 (or above `mu`, if that is negative) are assigned, at far less cost
        in large files, and the links differ.
    """
    if not math.isfinite(mu):
        raise SettingsError(f"mu must be a finite number, got {mu!r}.")
    if every_record:
        candidates, solved = _assign_every_record(fit)
    else:
        candidates, solved = _assign_above(fit, min(mu, 0.0))
    linked = candidates.take(solved.chosen)
    linked = linked.take(fit.weight_of(linked.levels) > mu)
    return EMAssignment(fit, mu, every_record, linked, solved)


def _assign_every_record(fit: EMFit) -> tuple[Pairs, Assignment]:
    """Eq. 8, exactly, from as few pairs as will do.

    Where each link costs `floor`, the best assignment of any size needs only the pairs that weigh
    more. If it happens to have as many links as there is room for, it is the best of that size
    without the cost too, since all of that size pay the same. So the floor goes down until it has;
    below the smallest weight every pair gains, and it must.
    """
    start = None
    for floor in _floors(fit):
        try:
            candidates, solved = _assign_above(fit, floor, start)
        except TooManyPairsError as error:
            raise TooManyPairsError(
                f"to assign every record (Eq. 8) takes pairs down to a weight of {floor:.3g}, more "
                "than can be listed. Give more memory (memory=), take the blocks of a blocking key "
                "one by one, or leave records free: assign_em(fit, mu, every_record=False)."
            ) from error
        linked = candidates.take(solved.chosen)
        if len(linked) == fit.pairs.scope.max_links:
            break
        start = linked.a, linked.b, solved.price_b
    return candidates, solved


def _floors(fit: EMFit) -> Iterator[float]:
    """0, then each with at least twice the pairs above it, and at last one below every pair."""
    patterns = fit.pairs.pattern_counts()
    w = fit.weight_of(patterns.levels)
    n = max(fit.pairs.scope.max_links, int(patterns.counts[w > 0].sum()))
    order = np.argsort(-w, kind="stable")
    w, upto = w[order], np.cumsum(patterns.counts[order])
    yield 0.0
    while (k := int(np.searchsorted(upto, 2 * n))) + 1 < len(w):
        yield float(w[k + 1])
        n = int(upto[k])
    yield float(fit.parameters.log_weights.min(axis=1).sum()) - 1


def _assign_above(fit: EMFit, floor: float, start: Any = None) -> tuple[Pairs, Assignment]:
    """The best assignment where a link costs `floor`, and the pairs above it."""
    source = fit.pairs
    candidates = source.pairs_above(fit.parameters.log_weights, floor)
    scores = fit.weight_of(candidates.levels) - floor
    solved = assign(
        candidates.a, candidates.b, scores, source.n_a, source.n_b, source.tie_keys, start
    )
    return candidates, solved
