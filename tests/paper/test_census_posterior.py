"""Section 5.1, restricted MCMC and population size on the Italian census.

The posterior over the 46 candidate pairs is also worked out exactly: they have three comparison
vectors, so that with m and u integrated out a matching's probability depends only on how many of
its links have each.
"""

import math
from collections import Counter
from functools import cache, reduce

import numpy as np
import pytest
from scipy.special import betaln
from scipy.stats import hypergeom

import bayeslink as bl
from bayeslink.pairs.pair_tables import callers_table
from bayeslink.sampling.diagnostics import summarize
from tests import oracles
from tests.data import CENSUS, census_fields, needs_census

pytestmark = needs_census

THETA = 2.0
N_A, N_B = 34, 45
M_PRIOR, U_PRIOR = np.array([3, 20]), np.array([20, 3])  # disagree, agree


@cache
def census():
    pairs = bl.compare(CENSUS / "census.csv", CENSUS / "survey.csv", census_fields())
    return pairs, bl.fit_penalized(pairs, theta=THETA)


@cache
def posterior():
    blocks = bl.posthoc_blocks(*census(), w0=0.0)
    return bl.sample(blocks, prior=bl.Penalty(THETA), restricted=True, draws=4000, seed=1)


# --- the exact posterior ----------------------------------------------------------------------


def product(one, other):
    """Matchings over two sets of blocks, counted by how many links of each vector they have."""
    out = Counter()
    for x, n in one.items():
        for y, k in other.items():
            out[tuple(map(sum, zip(x, y, strict=True)))] += n * k
    return out


def log_marginal(links, vectors):
    """log p(Γ, C) up to a constant, m and u integrated out, of any C with these links."""
    everything = census()[0].level_counts().counts
    total = -THETA * sum(links)
    for j in range(3):
        agree = sum(n for n, levels in zip(links, vectors, strict=True) if levels[j] == 2)
        of_links = np.array([sum(links) - agree, agree])
        total += betaln(*(M_PRIOR + of_links)) + betaln(*(U_PRIOR + everything[j, 1:] - of_links))
    return total


@cache
def exact():
    """Posterior of L, and the link probability of each candidate."""
    blocks = posterior().blocks
    c = blocks.candidates
    vectors, vector = np.unique(c.levels, axis=0, return_inverse=True)

    def count(states):
        return Counter(tuple(np.bincount(vector[list(s)], minlength=3).tolist()) for s in states)

    edges = list(zip(range(len(c)), c.a.tolist(), c.b.tolist(), strict=True))
    states = [
        list(oracles.matchings([edges[e] for e in np.flatnonzero(blocks.block == k)]))
        for k in range(blocks.n_blocks)
    ]
    counts = [count(s) for s in states]
    everywhere = reduce(product, counts)
    log_p = {x: log_marginal(x, vectors) for x in everywhere}
    density = {x: math.exp(value - max(log_p.values())) for x, value in log_p.items()}
    of_links, probability = np.zeros(N_A + 1), np.zeros(len(c))
    for x, n in everywhere.items():
        of_links[sum(x)] += n * density[x]
    elsewhere = {}  # many blocks are alike
    for k in range(blocks.n_blocks):
        kind = frozenset(counts[k].items())
        if kind not in elsewhere:
            elsewhere[kind] = reduce(product, counts[:k] + counts[k + 1 :])
        for e in np.flatnonzero(blocks.block == k):
            holding = product(elsewhere[kind], count(s for s in states[k] if e in s))
            probability[e] = sum(n * density[x] for x, n in holding.items())
    return of_links / of_links.sum(), probability / of_links.sum()


# --- restricted MCMC --------------------------------------------------------------------------


def test_46_of_1530_pairs_are_candidates():
    blocks = posterior().blocks
    assert (blocks.pairs.n_pairs, blocks.n_candidates) == (1530, 46)
    vectors = Counter(map(tuple, blocks.candidates.levels.tolist()))
    assert vectors == {(2, 2, 2): 25, (2, 1, 2): 8, (2, 2, 1): 13}
    # Also at the published mode of 28 links, the second best here.
    other = next(mode for mode in census()[1].modes if mode.n_links == 28)
    assert bl.posthoc_blocks(census()[0], other, w0=0.0).n_candidates == 46


def test_link_probabilities_are_exact():
    post, (_, p) = posterior(), exact()
    assert post.error.max() < 0.003
    np.testing.assert_array_less(np.abs(post.probability - p), 4.5 * post.error + 1e-6)


def test_number_of_links_is_exact():
    post, (p, probability) = posterior(), exact()
    L = np.arange(len(p))
    assert p.sum() == pytest.approx(1)
    assert probability.sum() == pytest.approx(p @ L)
    (found,) = summarize({"L": post.n_links})
    assert abs(found.mean - p @ L) < 4 * found.mcse
    found = np.bincount(post.n_links.ravel(), minlength=len(p)) / post.n_links.size
    assert np.abs(found - p).max() < 0.02
    cdf = p.cumsum()
    interval = int(np.searchsorted(cdf, 0.025)), int(np.searchsorted(cdf, 0.975))
    assert post.interval() == interval == (23, 28)
    assert post.warning() is None


def lone(*levels):
    """Candidates with these levels and no rivals."""
    blocks = posterior().blocks
    alone = blocks.n_pairs_in_block[blocks.block] == 1
    return np.flatnonzero(alone & (blocks.candidates.levels == levels).all(axis=1))


def test_certain_and_marginal_links():
    """Full agreement without rivals is sure; name and sex without education is a toss-up."""
    _, p = exact()
    sure, marginal = p[lone(2, 2, 2)], p[lone(2, 2, 1)]
    assert (len(sure), len(marginal)) == (12, 3)
    assert (sure > 0.97).all()
    assert ((marginal > 0.3) & (marginal < 0.6)).all()


def test_marginal_links_depend_on_theta_and_sure_ones_do_not():
    """The last panel of the paper's figure on the census."""
    blocks = posterior().blocks
    low, middle, high = (
        bl.sample(blocks, prior=bl.Penalty(theta), restricted=True, draws=500).probability
        for theta in (0.5, 2.0, 3.0)
    )
    sure, marginal = lone(2, 2, 2), lone(2, 2, 1)
    assert (low[marginal] > middle[marginal] + 0.2).all()
    assert (middle[marginal] > high[marginal] + 0.1).all()
    assert (low[sure] - high[sure] < 0.05).all()


def test_equal_rivals_are_linked_by_the_point_estimate_only():
    """The purple link: two identical comparison vectors in one row share its probability."""
    pairs, fit = census()
    post = posterior()
    table = post.link_probabilities().to_pydict()
    of_a25 = {
        b: p
        for a, b, p in zip(table["id_a"], table["id_b"], table["link_probability"], strict=True)
        if a == "A25"
    }
    best, second = sorted(of_a25, key=of_a25.get, reverse=True)[:2]
    assert {best, second} == {"B35", "B42"}
    assert of_a25[best] == pytest.approx(0.49, abs=0.01)
    assert of_a25[second] == pytest.approx(of_a25[best], abs=0.002)
    point = fit.links.to_pydict()
    linked = dict(zip(point["id_a"], point["id_b"], strict=True))
    assert linked["A25"] in {"B35", "B42"}
    assert point["tied"][point["id_a"].index("A25")]
    estimate = callers_table(
        pairs, post.blocks.candidates.take(post.estimate().links), {}
    ).to_pydict()
    assert "A25" not in estimate["id_a"]
    del linked["A25"]
    assert dict(zip(estimate["id_a"], estimate["id_b"], strict=True)) == linked
    # Surely linked to one of them, though, which a review would find out.
    careful = post.estimate(bl.Loss(false_nonlink=4, reject=0.3))
    shown = post.blocks.candidates.take(careful.review)
    assert {"B35", "B42"} <= set(callers_table(pairs, shown, {})["id_b"].to_pylist())


# --- population size --------------------------------------------------------------------------


def test_population_size_over_the_path():
    """In the paper point estimates of 51 to 64, and intervals whose union is (49, 78).

    The 64 is that of 24 links, as here. The 51 is that of 30 links; here the path begins with 31.
    """
    path = bl.penalty_path(census()[0], np.arange(0, 7, 0.05))
    found = sorted({mode.n_links for mode in path.up} - {0})
    assert found == [24, 25, 28, 31]
    sizes = bl.lincoln_petersen(N_A, N_B, found)
    assert round(sizes.max()) == 64
    assert bl.lincoln_petersen(N_A, N_B, 30) == 51 == pytest.approx(sizes.min(), abs=2)
    each = [bl.population_size(N_A, N_B, np.full(20_000, n)) for n in found]
    assert min(size.low for size in each) == pytest.approx(49, abs=1)
    assert max(size.high for size in each) == pytest.approx(78, abs=1)


def test_population_size_of_the_posterior():
    """By summation over L and N; near Tancredi & Liseo's interval (49, 72) and median 57."""
    of_links, _ = exact()
    N = np.arange(45, 2000)
    mixture = np.zeros(len(N))
    for n in np.flatnonzero(of_links > 1e-9):
        p = hypergeom.pmf(n, N, N_A, N_B) / N
        mixture += of_links[n] * p / p.sum()
    low, median, high = N[np.searchsorted(mixture.cumsum(), (0.025, 0.5, 0.975))].tolist()
    size = posterior().population_size()
    assert (size.low, size.median, size.high) == pytest.approx((low, median, high), abs=1)
    assert (low, median, high) == pytest.approx((49, 57, 72), abs=4)
