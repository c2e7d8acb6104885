"""Simulation-based calibration: over data sets drawn from the model, the truth is like a draw.

If links, m, u and data are drawn from the model, the truth's rank among posterior draws of any
quantity is uniform (Talts et al. 2018), as long as the candidate set does not depend on the data.
Ranks are checked by their ECDF, which must lie in a band that holds at all ranks at once (after
Säilynoja, Bürkner & Vehtari 2022). Where the candidate set does depend on the data, ranks are
visibly not uniform: `docs/calibration.md`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats
from scipy.special import softmax

from bayeslink.linkage.penalized import fit_penalized
from bayeslink.linkage.posthoc import posthoc_blocks
from bayeslink.linkage.priors import Overlap, Penalty
from bayeslink.pairs.source import Pairs
from tests.statistical import marginal

N_A, N_B = 4, 5
FIELDS = [
    marginal.field("x", (1, 2, 5, 10), (1, 1, 1, 1)),
    marginal.field("y", (1, 10), (1, 1)),
    marginal.field("z", (1, 3.5, 10), (1, 1, 1)),
]
WIDTH = 5  # levels of the longest field, and missing
MISSING = 0.1  # share of records without a value, in each field
CHAINS, KEEP, EVERY, TUNE = 3, 33, 15, 200
N_RANKS = CHAINS * KEEP + 1
FOLLOWED = (0, 12, 18)  # pairs whose link is followed: rows (0, 0), (2, 2) and (3, 3)
FALSE_ALARM = 0.01

SCOPE = np.zeros(N_A, int), np.zeros(N_B, int)
ROWS = marginal.pairs_in_scope(*SCOPE)
ALL = np.arange(N_A * N_B)
SOME = np.array([0, 1, 6, 12, 18, 19])  # in blocks of three pairs, one and two


# --- data sets --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Values:
    """Draws of everything unknown; the truth is one draw."""

    linked: np.ndarray  # draw × pair
    m: np.ndarray  # draw × field × level
    u: np.ndarray


def generator(number):
    """The randomness of a data set."""
    return np.random.default_rng([7, number])


def simulate(rng, prior, within):
    """Draw links from the prior, restricted to the pairs `within`; m, u; and levels given them.

    Returns the data, as a PairSource, and the truth.
    """
    empty = np.zeros((len(ALL), len(FIELDS)), np.uint8)
    pairs = Pairs(ROWS[0].astype(np.int32), ROWS[1].astype(np.int32), empty)
    matchings = marginal.list_matchings(pairs.take(within))
    scope = marginal.ListedPairs(FIELDS, pairs, *SCOPE).scope
    p = softmax(marginal.log_prior(prior, scope, matchings.sum(axis=1)))
    linked = np.zeros(len(ALL), bool)
    linked[within] = matchings[rng.choice(len(p), p=p)]
    m, u = np.zeros((2, len(FIELDS), WIDTH))
    levels = empty.copy()
    for j, f in enumerate(FIELDS):
        m[j, 1 : f.n_levels + 1] = rng.dirichlet(f.m_prior)
        u[j, 1 : f.n_levels + 1] = rng.dirichlet(f.u_prior)
        of_link, of_other = (rng.choice(WIDTH, len(ALL), p=x[j]) for x in (m, u))
        present = np.outer(rng.random(N_A) >= MISSING, rng.random(N_B) >= MISSING)[ROWS]
        levels[:, j] = np.where(present, np.where(linked, of_link, of_other), 0)
    source = marginal.ListedPairs(FIELDS, Pairs(pairs.a, pairs.b, levels), *SCOPE)
    return source, Values(linked[None], m[None], u[None])


def draw(blocks, prior, seed):
    """Thinned posterior draws."""
    post = marginal.sample_thinned(
        blocks, prior, keep=KEEP, every=EVERY, chains=CHAINS, tune=TUNE, seed=seed
    )
    linked = np.zeros((CHAINS * KEEP, len(ALL)), bool)
    candidates = blocks.candidates.a * N_B + blocks.candidates.b
    linked[:, candidates] = marginal.kept_links(post)
    kept = slice(EVERY - 1, None, EVERY)
    m, u = (x[:, kept].reshape(CHAINS * KEEP, *x.shape[2:]) for x in (post.m, post.u))
    return Values(linked, m, u)


def quantities(source, values):
    """What is ranked, by name: each an array over draws."""
    by_level = marginal.one_hot(source.pairs.levels, WIDTH)
    links = np.tensordot(values.linked, by_level, axes=1)
    others = by_level.sum(axis=0) - links
    out = {"links": values.linked.sum(axis=1), "log likelihood": np.zeros(len(values.linked))}
    for j, f in enumerate(FIELDS):
        for h in range(1, f.n_levels + 1):
            m, u = values.m[:, j, h], values.u[:, j, h]
            out[f"m[{f.name}, {h}]"], out[f"u[{f.name}, {h}]"] = m, u
            out["log likelihood"] += links[:, j, h] * np.log(m) + others[:, j, h] * np.log(u)
    return out | {f"pair {i}": values.linked[:, i] for i in FOLLOWED}


def rank(rng, truth, draws):
    """Draws below the truth; among draws equal to it, its place is drawn."""
    return (draws < truth).sum() + rng.integers(0, (draws == truth).sum() + 1)


def ranks_of(prior, within, n, choose=None):
    """Ranks of the truth in n data sets, by quantity.

    `choose` makes post-hoc blocks of the data; without it the candidates are the pairs `within`.
    """
    ranks = {}
    for number in range(n):
        rng = generator(number)
        source, truth = simulate(rng, prior, within)
        blocks = choose(source, prior) if choose else marginal.blocks_of(source, within)
        draws = quantities(source, draw(blocks, prior, seed=number))
        for name, true in quantities(source, truth).items():
            ranks.setdefault(name, []).append(rank(rng, true[0], draws[name]))
    return {name: np.array(values) for name, values in ranks.items()}


# --- the band ---------------------------------------------------------------------------------


def smallest_tail_area(counts):
    """Smallest pointwise two-sided tail area of the ECDF, from how often each rank occurs.

    The number of ranks up to i is binomial if ranks are uniform.
    """
    n = counts[0].sum()
    at, share = np.arange(n + 1), np.arange(1, N_RANKS)[:, None] / N_RANKS
    area = 2 * np.minimum(stats.binom.cdf(at, n, share), stats.binom.sf(at - 1, n, share))
    return area[np.arange(N_RANKS - 1), counts.cumsum(axis=1)[:, :-1]].min(axis=1)


def outside_the_band(ranks):
    """Quantities whose ranks leave the band.

    The band holds all points of the ECDFs of all quantities with probability 99 %: its pointwise
    tail area is a quantile, over simulated uniform ranks, of the smallest tail area.
    """
    n = len(ranks["links"])
    uniform = np.random.default_rng(0).multinomial(n, np.full(N_RANKS, 1 / N_RANKS), 40_000)
    least = np.quantile(smallest_tail_area(uniform), FALSE_ALARM / len(ranks))
    counts = np.array([np.bincount(r, minlength=N_RANKS) for r in ranks.values()])
    found = smallest_tail_area(counts)
    return [name for name, area in zip(ranks, found, strict=True) if area < least]


# --- tests ------------------------------------------------------------------------------------

SETTINGS = [
    pytest.param(prior, within, id=f"{type(prior).__name__}-{name}")
    for prior in (Overlap(1, 1), Penalty(1.5))
    for name, within in (("all", ALL), ("some", SOME))
]


@pytest.mark.parametrize(("prior", "within"), SETTINGS)
def test_truth_is_like_a_draw(prior, within):
    assert outside_the_band(ranks_of(prior, within, 150)) == []


@pytest.mark.verify
@pytest.mark.parametrize(("prior", "within"), SETTINGS)
def test_truth_is_like_a_draw_at_length(prior, within):
    assert outside_the_band(ranks_of(prior, within, 1000)) == []


# --- candidates chosen from the data: restriction error ---------------------------------------


def above(w0):
    """Candidates chosen by their weight in a fit to the same data."""
    return lambda source, prior: posthoc_blocks(source, fit_penalized(source, prior=prior), w0)


def chi_square(ranks):
    """Chi-square statistic of ranks in 20 equal groups: 19 degrees of freedom."""
    return stats.chisquare(np.bincount(ranks * 20 // N_RANKS, minlength=20)).statistic


def test_restriction_error_is_found():
    """The check can fail, and does where it should."""
    assert "links" in outside_the_band(ranks_of(Overlap(), ALL, 75, above(0.0)))


def left_out(prior, w0, n):
    """True links that are no candidates, and `set_aside`, on average over n data sets."""
    found = []
    for number in range(n):
        source, truth = simulate(generator(number), prior, ALL)
        blocks = above(w0)(source, prior)
        linked = truth.linked[0]
        within = linked[blocks.candidates.a * N_B + blocks.candidates.b]
        found.append((linked.sum() - within.sum(), blocks.set_aside()))
    return np.mean(found, axis=0)


@pytest.mark.verify
def test_restriction_error_vanishes_as_w0_falls():
    """Three rows of the table in `docs/calibration.md`, with half as many data sets."""
    thresholds = (0.0, -2.0, -8.0)
    found = [chi_square(ranks_of(Overlap(), ALL, 500, above(w0))["links"]) for w0 in thresholds]
    assert found[0] > found[1] > stats.chi2.isf(1e-6, 19)
    assert found[2] < stats.chi2.isf(1e-3, 19)
    links, _ = np.transpose([left_out(Overlap(), w0, 500) for w0 in thresholds])
    assert links[0] > links[1] > links[2]


def test_set_aside_bounds_the_links_left_out():
    """With m and u as fitted and a penalty, the links expected outside the blocks are fewer."""
    prior = Penalty(1.5)
    for number in range(50):
        source, _ = simulate(generator(number), prior, ALL)
        blocks = above(0.0)(source, prior)
        w = blocks.parameters.weight_of(source.pairs.levels)
        matchings = marginal.list_matchings(source.pairs)
        p = softmax(matchings @ (w - prior.theta))
        expected = (p @ matchings)[w <= 0].sum()
        assert expected <= blocks.set_aside() * (1 + 1e-9)
