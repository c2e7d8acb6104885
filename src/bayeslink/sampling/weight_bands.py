"""How many pairs have which weight, against the number that the model expects.

Pairs above some weight are all listed. The model says how many there should be: of each comparison
vector γ, N u(γ) non-links and L m(γ) links, given which fields are missing. m is fitted to the
links, but what there is in all is not: people who share a household, or are in a file twice, make
pairs of high weight that neither u nor m accounts for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bayeslink.linkage.penalized import PenalizedFit
from bayeslink.linkage.posthoc import Blocks
from bayeslink.model.structure import Dependent
from bayeslink.model.weights import Parameters
from bayeslink.pairs.candidates import pairs_above
from bayeslink.pairs.source import Floats, Pairs, PairSource, sum_weights
from bayeslink.pairs.vectors import distinct_vectors

if TYPE_CHECKING:
    from bayeslink.sampling.posterior import Posterior

WIDTH = 2.5  # of a band
_BELOW = 2  # bands below θ
_DRAWN = 100_000  # pairs, to see which fields are missing together where not all are listed
_PATTERNS = 1_000_000  # that are weighed; with more there are fewer bands
# Variance of the number of non-links over its mean: those of a record come together.
TOGETHER = 3.0
_OFF = 0.03  # by which m may be wrong in a band and still do
_FEWEST = 5.0  # pairs in a band, seen or expected; else it is joined with the next lower


@dataclass(frozen=True, slots=True)
class Band:
    """Pairs with a weight above `low` and up to `high` (natural logs; the last has no end)."""

    low: float
    high: float | None
    observed: int
    from_nonlinks: float  # expected,
    from_links: float  # and of which links

    @property
    def expected(self) -> float:
        return self.from_nonlinks + self.from_links


@dataclass(frozen=True, slots=True)
class _Open:
    """The part of the files whose links are not known: its pairs, and its links by probability."""

    listed: Pairs
    listed_to: float
    linked: Pairs
    p: Floats
    share: float  # of all pairs
    parameters: Parameters  # of what is expected


def weight_bands(
    fit: PenalizedFit | Blocks, posterior: Posterior | None = None
) -> tuple[Band, ...]:
    """Pairs by weight in the fit: those there are, and those expected; none if not all are listed.

    What is expected is so under the posterior's m, u and number of links, or else the fit's; with
    a posterior, the blocks that it was drawn from are enough.
    """
    pairs = fit.pairs
    if not pairs.n_pairs or not pairs.join_sizes().any():  # only some pairs are given
        return ()
    open_ = _open_part(fit, posterior)
    floor = max(open_.listed_to, fit.theta - _BELOW * WIDTH)
    patterns, floor = _patterns_above(fit, floor)
    if not len(patterns) or not math.isfinite(floor):
        return ()
    nonlinks, links = _expected(fit, open_, patterns)
    seen = fit.parameters.weight_of(open_.listed.levels)
    weights = fit.parameters.weight_of(patterns)
    return _bands(floor, seen[seen > floor], weights, nonlinks, links)


def misfit(bands: Sequence[Band], theta: float) -> float:
    """Mean square of observed less expected, in standard errors, of the bands above θ.

    About 1 or less where the model holds; errors of m by `_OFF` do not count.
    """
    above = [band for band in bands if band.low >= theta - 1e-9]
    if not above:
        return 1.0
    squares = [
        (band.observed - band.expected) ** 2
        / (band.from_links + TOGETHER * band.from_nonlinks + 1 + (_OFF * band.expected) ** 2)
        for band in above
    ]
    return sum(squares) / len(squares)


def _open_part(fit: PenalizedFit | Blocks, posterior: Posterior | None) -> _Open:
    pairs = fit.pairs
    if posterior is None:
        assert isinstance(fit, PenalizedFit)
        listed_to = fit.theta - WIDTH
        listed, _ = pairs_above(pairs, fit.parameters, listed_to, in_files=True)
        return _Open(listed, listed_to, fit.linked, np.ones(fit.n_links), 1.0, fit.parameters)
    blocks = posterior.blocks
    known, barred = blocks.known, blocks.barred
    free = ~(np.isin(barred.a, known.a) | np.isin(barred.b, known.b))
    listed = blocks.candidates.with_more(blocks.low).with_more(barred.take(np.flatnonzero(free)))
    n_links = float(posterior.n_links.mean()) - len(known)
    p = posterior.probability * (n_links / max(posterior.probability.sum(), 1e-300))
    share = (pairs.n_a - len(known)) * (pairs.n_b - len(known)) / (pairs.n_a * pairs.n_b)
    return _Open(listed, blocks.listed_to, blocks.candidates, p, share, posterior.parameters)


def _patterns_above(fit: PenalizedFit | Blocks, floor: float) -> tuple[NDArray[np.uint8], float]:
    """Every comparison vector that weighs more than the floor, which is raised if they are many."""
    bound, counts = fit.parameters.bound, fit.pairs.level_counts().counts
    covered = {f for _, _, f in _covers(fit)}
    most = [bound[j, : f.n_levels + 1].max() for j, f in enumerate(fit.pairs.fields)]
    after = np.append(np.cumsum(most[::-1])[::-1][1:], 0.0)  # what later fields can add
    while True:
        patterns, total = np.zeros((1, 0), np.uint8), np.zeros(1)
        for j, f in enumerate(fit.pairs.fields):
            first = 0 if counts[j, 0] or j in covered else 1
            levels = np.arange(first, f.n_levels + 1)
            added = np.add.outer(total, bound[j, levels])
            at, level = np.nonzero(added + after[j] > floor)
            patterns = np.column_stack([patterns[at], levels[level].astype(np.uint8)])
            total = added[at, level]
            if len(patterns) > _PATTERNS:
                break
        else:
            break
        floor += WIDTH
    for one, covering, other in _covers(fit):
        patterns = patterns[(patterns[:, one] != covering) | (patterns[:, other] == 0)]
    return patterns[fit.parameters.weight_of(patterns) > floor], floor


def _covers(fit: PenalizedFit | Blocks) -> tuple[tuple[int, int, int], ...]:
    errors = fit.structure.errors
    return () if errors is None else errors.covered


def _expected(
    fit: PenalizedFit | Blocks, open_: _Open, patterns: NDArray[np.uint8]
) -> tuple[Floats, Floats]:
    """Non-links and links expected of each comparison vector."""
    n_pairs = fit.pairs.n_pairs * open_.share
    some = _some_pairs(fit.pairs, open_)
    at_hand = [_seen(fit, levels) for levels in (some, open_.linked.levels, patterns)]
    sets, _, which = distinct_vectors(np.concatenate(at_hand))
    of_some, of_links, of_patterns = np.split(which, np.cumsum([len(x) for x in at_hand[:2]]))
    links: Floats = np.bincount(of_links, open_.p, len(sets)).astype(np.float64)
    counted = np.bincount(of_some, minlength=len(sets)) * (n_pairs / max(1, len(some)))
    nonlinks: Floats = np.maximum(counted - links, 0.0).astype(np.float64)
    log_u = _log_u(open_.parameters, patterns)
    log_m = open_.parameters.weight_of(patterns) + log_u
    return nonlinks[of_patterns] * np.exp(log_u), links[of_patterns] * np.exp(log_m)


def _some_pairs(pairs: PairSource, open_: _Open) -> NDArray[np.uint8]:
    """Comparison vectors of all pairs, or of some drawn at random."""
    if open_.listed_to == -math.inf:
        return open_.listed.levels
    uniforms = np.random.default_rng(1).random((_DRAWN, 3))
    a, b = pairs.draw_pairs(-1, 0, uniforms)
    inside = np.flatnonzero(a >= 0)
    return pairs.levels_of(a[inside], b[inside])


def _seen(fit: PenalizedFit | Blocks, levels: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Which fields are not missing; what another field's level covers is not."""
    errors = fit.structure.errors
    return levels > 0 if errors is None else errors.seen_and_wrong(levels)[0]


def _log_u(parameters: Parameters, levels: NDArray[np.uint8]) -> Floats:
    log_u = np.log(np.where(parameters.used, parameters.u, 1.0))
    if not isinstance(parameters, Dependent):
        return sum_weights(log_u, levels)
    log_u[~parameters.tree.free(len(log_u))] = 0.0
    return sum_weights(log_u, levels) + parameters.tree.log_u(levels)


def _bands(
    floor: float, seen: Floats, weights: Floats, nonlinks: Floats, links: Floats
) -> tuple[Band, ...]:
    """Bands of equal width from the floor up, the last without end."""
    number = [np.floor((w - floor) / WIDTH).astype(np.int64) for w in (seen, weights)]
    n = int(max(x.max(initial=0) for x in number)) + 1
    observed = np.bincount(number[0], minlength=n)
    expected = [np.bincount(number[1], x, n) for x in (nonlinks, links)]
    found: list[Band] = []
    last = n
    for k in range(n - 1, -1, -1):
        part = slice(k, last)
        others, linked = (float(x[part].sum()) for x in expected)
        high = None if last == n else floor + last * WIDTH
        band = Band(floor + k * WIDTH, high, int(observed[part].sum()), others, linked)
        if k == 0 or max(band.observed, band.expected) >= _FEWEST:
            found.append(band)
            last = k
    return tuple(reversed(found))
