"""Priors on the number of links, against exact integer counts of matchings."""

import math
import tracemalloc

import numpy as np
import pytest

from bayeslink.errors import SettingsError
from bayeslink.linkage import matching_counts
from bayeslink.linkage.priors import MatchingCounts, Overlap, Penalty
from bayeslink.pairs.source import Scope
from tests.oracles import count_matchings, log_integer


def scope(*sizes):
    a, b = np.array(sizes, np.int64).T
    return Scope(a, b)


@pytest.mark.parametrize(
    "sizes",
    [
        [(4, 6)],
        [(1, 1), (1, 1)],
        [(3, 5), (5, 3), (2, 2), (0, 4), (7, 1)],
        [(1, 1)] * 40,
        [(20, 30), (30, 20), (25, 25), (3, 3)],
        [(60, 80), (100, 90), (75, 75), (10, 300)],
        [(5, 7)] * 200,
        [(1, 300)] * 40 + [(1, 1)] * 40,  # hardly any variance between the two
        [(400, 400), (2, 3), (300, 350)],
        [(1, 1), (1, 10**6)],
    ],
)
def test_matching_counts_equal_exact_integers(sizes):
    s = scope(*sizes)
    exact = [log_integer(n) for n in count_matchings(sizes)]
    assert len(exact) == s.max_links + 1
    counts = MatchingCounts(s)
    np.testing.assert_allclose(counts(np.arange(len(exact))), exact, rtol=1e-9, atol=1e-8)
    # Asked for out of order, one at a time, it says the same.
    fresh = MatchingCounts(s)
    for n in (len(exact) // 2, len(exact) - 1, 1, 0):
        assert fresh(np.array(n)) == pytest.approx(exact[n], rel=1e-9, abs=1e-8)


@pytest.mark.parametrize("trial", range(20))
def test_costs_equal_those_of_exact_integers_whatever_the_blocks(trial):
    rng = np.random.default_rng(trial)
    sizes = rng.integers(0, rng.choice([3, 10, 60]), (rng.integers(2, 60), 2)).tolist()
    ways = [log_integer(n) for n in count_matchings(sizes)]
    found = MatchingCounts(scope(*sizes))(np.arange(len(ways)))
    np.testing.assert_allclose(np.diff(found), np.diff(ways), rtol=0, atol=1e-8)


def test_a_scope_without_pairs_has_the_empty_matching():
    assert MatchingCounts(scope((0, 5), (3, 0)))(np.array([0])) == [0.0]


def test_matchings_of_many_equal_blocks_are_a_binomial_coefficient():
    n = np.arange(20_000)
    found = MatchingCounts(scope(*[(1, 1)] * len(n)))(np.append(n, len(n)))
    np.testing.assert_allclose(np.diff(found), np.log((len(n) - n) / (n + 1)), rtol=0, atol=1e-7)


def test_counts_over_many_different_blocks_take_little_memory_and_are_made_once(monkeypatch):
    """By whole Fourier transforms of every block it would be 190 MB."""
    made = []
    around = matching_counts._around
    monkeypatch.setattr(matching_counts, "_around", lambda *a: made.append(a) or around(*a))
    rng = np.random.default_rng(6)
    blocks = Scope(rng.integers(5, 61, 2000), rng.integers(5, 61, 2000))
    n = np.arange(blocks.max_links + 1)
    tracemalloc.start()
    try:
        log_prior = Overlap().on(blocks).log_prior(n)
        assert tracemalloc.get_traced_memory()[1] < 2e7
    finally:
        tracemalloc.stop()
    assert np.diff(log_prior, 2).max() < 1  # smooth throughout
    assert 0 < len(made) < 150
    before = len(made)
    assert Overlap().on(blocks).cost(5) == pytest.approx(log_prior[5] - log_prior[6])
    assert len(made) == before


def test_cost_of_a_link_under_the_flat_overlap_prior():
    prior = Overlap().on(scope((500, 800)))
    for n in (0, 1, 250, 499):
        assert prior.cost(n) == pytest.approx(math.log((500 - n) * (800 - n) / (n + 1)))
    assert prior.cost(500) == prior.cost(499)  # no further link is possible


def test_cost_in_scope_of_a_blocking_key():
    """The cost is log(free pairs in scope / (L + 1)), free pairs averaged over matchings."""
    sizes = [(3, 4), (5, 2), (6, 6)]
    ways = count_matchings(sizes)
    prior = Overlap().on(scope(*sizes))
    for n in range(len(ways) - 1):
        assert prior.cost(n) == pytest.approx(math.log(ways[n + 1] / ways[n]), abs=1e-8)


@pytest.mark.parametrize(
    "prior",
    [Overlap(), Overlap(500, 500), Overlap(2000, 50), Overlap(1, 500), Overlap(0.1, 9), Penalty(3)],
)
@pytest.mark.parametrize(
    "sizes",
    [
        [(40, 60)],
        [(50, 50)],
        [(1, 1)] * 40,
        [(3, 5), (5, 3), (2, 2), (0, 40), (7, 1)],
        [(20, 30), (30, 20), (25, 25), (3, 3)],
        [(60, 2), (2, 60), (1, 30)],
    ],
)
def test_log_prior_is_convex_in_the_number_of_links(prior, sizes):
    """However strong the prior and whatever the blocks: the climb of a fit rests on it."""
    s = scope(*sizes)
    log_prior = prior.on(s).log_prior(np.arange(s.max_links + 1))
    assert np.diff(log_prior, 2).min() > -1e-8


def test_implied_prior_on_the_number_of_links():
    flat = Overlap().on(scope((30, 40))).of_link_count()
    np.testing.assert_allclose(flat, np.full(31, 1 / 31))
    penalty = Penalty(2.0).on(scope((3, 3))).of_link_count()
    by_hand = np.array(count_matchings([(3, 3)])) * np.exp(-2.0 * np.arange(4))
    np.testing.assert_allclose(penalty, by_hand / by_hand.sum())
    leaning = Overlap(20, 80).on(scope((200, 300))).of_link_count()
    assert leaning @ np.arange(201) == pytest.approx(40, abs=0.1)


@pytest.mark.parametrize("theta", [math.nan, math.inf, -math.inf, "2", None])
def test_theta_must_be_finite(theta):
    with pytest.raises(SettingsError, match="finite"):
        Penalty(theta)


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, "1"])
def test_overlap_must_be_positive(bad):
    with pytest.raises(SettingsError, match="positive"):
        Overlap(bad, 1)
    with pytest.raises(SettingsError, match="positive"):
        Overlap(1, bad)
