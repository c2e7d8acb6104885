"""Sensitivity to the prior, against the exact posterior of a small problem and new runs."""

import math
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from scipy.special import gammaln, softmax

import bayeslink as bl
from bayeslink.engines.local import LocalPairs
from bayeslink.errors import SettingsError
from bayeslink.linkage.posthoc import posthoc_blocks
from bayeslink.linkage.priors import Overlap, Penalty
from bayeslink.model.weights import Priors
from bayeslink.pairs.source import count_levels
from bayeslink.sampling import sampler
from bayeslink.sampling.sampler import sample as sample_all
from bayeslink.sampling.sensitivity import _Run, sensitivity
from tests import oracles
from tests.data import CENSUS, census_fields, needs_census

sample = partial(sample_all, restricted=True)  # exact oracles below know the candidates only
FIELDS = [
    bl.exact("x", m_prior=(1, 4), u_prior=(3, 1)),
    bl.exact("y", m_prior=(1, 2), u_prior=(1, 1)),
]
LARGEST_Z = 4.5  # about one false alarm in 5,000 over the 30 numbers compared each time


def exact_posterior(blocks, prior):
    """Link probability of each candidate and distribution of L, m and u integrated out."""
    c, known, priors = blocks.candidates, blocks.known, Priors.of(blocks.pairs.fields)
    every = blocks.pairs.level_counts().counts
    width = every.shape[1]
    states = list(oracles.matchings(list(zip(range(len(c)), c.a, c.b, strict=True))))
    log_p = prior.on(blocks.pairs.scope).log_prior([len(known) + len(s) for s in states])
    for i, state in enumerate(states):
        levels = np.concatenate([known.levels, c.levels[list(state)]])
        links = count_levels(levels, width)
        for alpha, n in ((priors.alpha_m, links), (priors.alpha_u, every - links)):
            after = np.where(priors.used, alpha + n, 0)
            log_p[i] += gammaln(after[priors.used]).sum() - gammaln(after.sum(axis=1)).sum()
    p = softmax(log_p)
    linked = np.zeros((len(states), len(c)))
    for row, state in zip(linked, states, strict=True):
        row[list(state)] = 1
    return p @ linked, np.bincount([len(known) + len(s) for s in states], p)


@pytest.fixture(scope="module")
def blocks():
    """6 × 7 records with a blocking key, one link known: 15 candidates, 34 × 13 matchings."""
    rows = ["paa", "pab", "pbb", "pca", "qaa", "qbb"], ["paa", "pbb", "pba", "pdc", "qaa", "qab"]
    rows[1].append("qcb")
    sides = [[dict(zip(("key", *"xy"), row, strict=True)) for row in side] for side in rows]
    pairs = LocalPairs(
        oracles.records(sides[0]), oracles.records(sides[1], side="B"), FIELDS, [bl.exact("key")]
    )
    fit = bl.fit_penalized(pairs, theta=1.0)
    return posthoc_blocks(pairs, fit, w0=-math.inf, links=[("A3", "B3")])


@pytest.fixture(scope="module")
def post(blocks):
    return sample(blocks, prior=Penalty(1.0), draws=4000, tune=200, seed=3)


def z_scores(result, probability):
    return (result.probability - probability) / result.error


def agrees(result, blocks):
    probability, of_links = exact_posterior(blocks, result.prior)
    assert np.abs(z_scores(result, probability)).max() < LARGEST_Z
    n = np.arange(len(of_links))
    mean, sd = of_links @ n, math.sqrt(of_links @ (n - of_links @ n) ** 2)
    assert abs(result.n_links - mean) < LARGEST_Z * sd / math.sqrt(result.ess)
    below = np.concatenate([[0], np.cumsum(of_links)])
    for end, tail in zip(result.interval, (0.025, 0.975), strict=True):
        assert below[end] - 0.01 < tail < below[end + 1] + 0.01


# --- against the exact posterior --------------------------------------------------------------


@pytest.mark.parametrize(
    "prior", [Penalty(0.3), Penalty(1.6), Overlap(1, 1), Overlap(3, 2)], ids=str
)
def test_reweighted_draws_agree_with_the_exact_posterior(post, blocks, prior):
    (result,) = sensitivity(post, [prior]).results
    assert result.how == "reweighted"
    assert "Penalty(1)" in result.reason
    assert 400 <= result.ess < post.n_links.size
    agrees(result, blocks)
    # The posterior under the run's own prior is told apart: the test can fail.
    assert np.abs(z_scores(result, exact_posterior(blocks, post.prior)[0])).max() > 2 * LARGEST_Z


def test_draws_under_an_overlap_prior_serve_others(blocks):
    post = sample(blocks, prior=Overlap(2, 2), draws=4000, tune=200, seed=4)
    results = sensitivity(post, [Overlap(1, 3)], thetas=[1.5]).results
    for result in results:
        assert result.how == "reweighted"
        agrees(result, blocks)


@pytest.mark.parametrize("prior", [Penalty(6.0), Overlap(1, 200)], ids=str)
def test_far_priors_get_a_run_of_their_own(post, blocks, prior):
    (result,) = sensitivity(post, [prior], draws=3000, seed=8).results
    assert result.how == "new run"
    assert "fewer than" in result.reason
    agrees(result, blocks)
    same = sample(blocks, prior=prior, draws=3000, tune=200, seed=8)
    np.testing.assert_array_equal(result.probability, same.probability)


def test_a_new_run_serves_its_neighbours(post, blocks):
    found = sensitivity(post, thetas=[6.4, 1, 6.0])
    assert [r.how for r in found.results] == ["reweighted", "draws", "new run"]
    assert "Penalty(6)" in found.results[0].reason
    agrees(found.results[0], blocks)


def test_the_given_prior_is_the_given_run(post):
    (result,) = sensitivity(post, [Penalty(1)]).results
    assert (result.how, result.interval) == ("draws", post.interval())
    assert result.n_links == post.n_links.mean()
    np.testing.assert_array_equal(result.probability, post.probability)


def test_results_are_in_the_order_given_whatever_it_is(post):
    priors = [Penalty(4), Overlap(1, 1), Penalty(0), Penalty(2)]
    one = sensitivity(post, priors)
    other = sensitivity(post, priors[::-1])
    assert [r.prior for r in one.results] == priors
    np.testing.assert_array_equal(one.probability, other.probability[::-1])


def test_thinned_draws(blocks):
    with patch.object(sampler, "KEPT_LINKS", 5000 * max(1, len(blocks.start))):
        post = sample(blocks, prior=Penalty(1.0), draws=4002, tune=200, seed=3)
    assert post.kept_every == 4  # and the last one is alone with its neighbour
    run = _Run.of(post, blocks.n_candidates)
    at = np.minimum(np.arange(4, 4002 + 4, 4), 4002) - 1
    np.testing.assert_array_equal(run.links, post.n_links[:, at])
    (result,) = sensitivity(post, thetas=[1.5]).results
    assert result.how == "reweighted"
    assert result.probability.sum() + len(blocks.known) == pytest.approx(result.n_links)
    agrees(result, blocks)


# --- when draws will not do -------------------------------------------------------------------


def run_of(links, ess=None):
    links = np.atleast_2d(links)
    return _Run(SimpleNamespace(prior=Penalty(1)), links, links, ess or links.size, 0)


def test_share_of_the_draws_left_by_normal_weights():
    links = np.random.default_rng(1).normal(1000, 50, (4, 25_000)).round().astype(int)
    run = run_of(links)
    scope = SimpleNamespace()
    for s in (0.5, 1.0):
        w = run.weights(Penalty(1 + s / 50).on(scope), Penalty(1).on(scope))
        np.testing.assert_allclose(w.sum(), 1)
        assert run.worth(w) / links.size == pytest.approx(math.exp(-(s**2)), rel=0.05)
    assert run.judge(w, (0, 5000))[0]
    w = run.weights(Penalty(1 + 2 / 50).on(scope), Penalty(1).on(scope))
    fit, reason = run.judge(w, (0, 5000))
    assert not fit
    assert "fewer than 10,000" in reason  # a tenth, though more than 400


def test_weight_at_the_last_number_of_links_drawn():
    links = np.repeat([[20, 21, 22, 23]], 1000, axis=0)
    w = np.where(links == 23, 0.012, 1.0)
    run = run_of(links)
    for ends, fit in (((0, 30), False), ((20, 30), True), ((20, 23), True)):
        assert run.judge(w / w.sum(), ends)[0] == fit
    assert "last L, 20" in run.judge(w / w.sum(), (0, 30))[1]
    assert not run.judge(1 / w / (1 / w).sum(), (20, 30))[0]
    assert not run_of(links, 300).judge(w / w.sum(), (20, 30))[0]


def test_a_short_run_is_never_reweighted(blocks):
    post = sample(blocks, prior=Penalty(1.0), draws=50, tune=50, chains=2)
    (result,) = sensitivity(post, thetas=[1.01], draws=60, chains=3).results
    assert result.how == "new run"
    assert result.ess < 60 * 3 * 3


def test_no_candidates_no_links(blocks):
    none = replace(
        blocks,
        candidates=blocks.candidates.take([]),
        weights=blocks.weights[:0],
        block=blocks.block[:0],
        start=blocks.start.take([]),
        n_blocks=0,
    )
    found = sensitivity(sample(none, draws=20, tune=0), thetas=[0.0, 2.0])
    assert [r.n_links for r in found.results] == [1, 1]  # the known one
    assert found.probability.shape == (2, 0)


# --- what it says -----------------------------------------------------------------------------


def test_implied_prior_on_the_number_of_links(post):
    penalty, overlap = sensitivity(post, [Overlap(1, 1)], thetas=[1.0]).results
    ways = np.array(oracles.count_matchings([(4, 4), (2, 3)]), float)
    p = ways * np.exp(-np.arange(7.0))
    assert penalty.prior_n_links == pytest.approx(p @ np.arange(7) / p.sum())
    assert (penalty.theta, penalty.label) == (1.0, "Penalty(1)")
    assert overlap.prior_n_links == pytest.approx(3)
    assert overlap.prior_interval == (0, 6)
    n = round(overlap.n_links)
    assert overlap.theta == pytest.approx(math.log(ways[n + 1] / ways[n]))


def test_tables_in_the_caller_s_kind():
    a = pd.DataFrame({"id": range(30), "x": [f"v{i % 12}" for i in range(30)]})
    b = pd.DataFrame({"id": range(25), "x": [f"v{i % 16}" for i in range(25)]})
    pairs = bl.compare(a, b, [bl.exact("x")])
    blocks = posthoc_blocks(pairs, bl.fit_penalized(pairs, theta=2.0), w0=0.0)
    found = sensitivity(sample(blocks, prior=Penalty(2.0), seed=1), [Overlap()], thetas=[0, 2, 3])
    summary = found.table()
    assert isinstance(summary, pd.DataFrame)
    assert summary["prior"].tolist() == ["Penalty(0)", "Penalty(2)", "Penalty(3)", "Overlap(1, 1)"]
    assert summary["n_links"].tolist() == [r.n_links for r in found.results]
    assert summary["high"].tolist() == [r.interval[1] for r in found.results]
    assert set(summary["how"]) <= {"draws", "reweighted", "new run"}

    everything = found.pairs_table(varying=0)
    assert isinstance(everything, pd.DataFrame)
    assert len(everything) == 4 * blocks.n_candidates
    ids = zip(blocks.candidates.a, blocks.candidates.b, strict=True)
    for column, (i, j) in zip(found.probability.T, ids, strict=True):
        rows = everything[(everything["id_a"] == i) & (everything["id_b"] == j)]
        assert rows["prior"].tolist() == summary["prior"].tolist()
        np.testing.assert_array_equal(rows["link_probability"], column)
    spread = np.ptp(everything["link_probability"].to_numpy().reshape(-1, 4), axis=1)
    assert (np.diff(spread) <= 0).all()


def test_pairs_that_vary_or_cross_one_half(post):
    found = sensitivity(post, thetas=[1.0, 1.2])
    n = post.blocks.n_candidates
    first = np.full(n, 0.2)
    first[:3] = 0.45, 0.4, 0.1
    second = np.full(n, 0.25)
    second[:3] = 0.51, 0.49, 0.6
    made = replace(
        found,
        results=tuple(
            replace(r, probability=p) for r, p in zip(found.results, (first, second), strict=True)
        ),
    )
    listed = made.pairs_table().column("link_probability").to_pylist()
    assert listed == [0.1, 0.6, 0.45, 0.51]
    assert made.pairs_table(varying=0.08).num_rows == 6
    assert replace(made, results=made.results[:1]).pairs_table().num_rows == 0


def test_notes_on_pairs_that_w0_left_out(post):
    at = replace(post.blocks, w0=-1.0, theta=2.5)
    (note,) = sensitivity(replace(post, blocks=at), thetas=[0.5, 1.0, 2.0]).notes
    assert "Penalty(0.5), Penalty(1)" in note
    assert "Penalty(2)" not in note
    assert "under Penalty(0.5) the odds of those just below it would be 0.22" in note
    assert not sensitivity(replace(post, blocks=at), thetas=[1.6]).notes
    assert not sensitivity(post, thetas=[-3.0, 1.0]).notes  # every pair is a candidate


def test_notes_on_runs_whose_chains_are_not_to_be_trusted(post):
    (note,) = sensitivity(post, thetas=[6.0], draws=20, tune=0).notes
    assert note.startswith("Penalty(6): ")


# --- errors -----------------------------------------------------------------------------------


def test_there_must_be_priors(post):
    with pytest.raises(SettingsError, match=r"no priors to compare. Give thetas="):
        sensitivity(post)
    with pytest.raises(SettingsError, match="finite number"):
        sensitivity(post, thetas=[1.0, math.nan])
    with pytest.raises(SettingsError, match="finite number"):
        sensitivity(post, thetas=["2"])
    with pytest.raises(SettingsError, match=r"5 is not a prior .* thetas="):
        sensitivity(post, [5])


def test_it_takes_a_posterior(post):
    with pytest.raises(
        SettingsError, match=r"got Blocks\. Give it a run with draws, or what `sample` returns"
    ):
        sensitivity(post.blocks, thetas=[1.0])


def test_new_runs_check_their_settings(post):
    with pytest.raises(SettingsError, match="draws"):
        sensitivity(post, thetas=[8.0], draws=0)


# --- the census -------------------------------------------------------------------------------


@needs_census
def test_marginal_pairs_of_the_census_figure_2d():
    """Pairs with the same name and sex but another education hang on θ; full agreement does not."""
    pairs = bl.compare(CENSUS / "census.csv", CENSUS / "survey.csv", census_fields())
    modes = bl.fit_penalized(pairs, theta=2.0).modes
    mode = next(mode for mode in modes if mode.n_links == 28)  # that of Table 1
    blocks = posthoc_blocks(pairs, mode, w0=0.0)
    assert blocks.n_candidates == 46
    post = sample(blocks, prior=Penalty(2.0), draws=2500, tune=500, seed=1)
    found = sensitivity(post, thetas=np.arange(8))
    assert [r.how for r in found.results[:4]] == ["reweighted", "reweighted", "draws", "new run"]
    for r in found.results:
        if r.how == "reweighted":
            direct = sample(blocks, prior=r.prior, draws=5000, tune=500, seed=2)
            gap = r.probability - direct.probability
            assert np.abs(gap / np.hypot(r.error, direct.error)).max() < LARGEST_Z
            assert r.interval == direct.interval()
    n_links = [r.n_links for r in found.results]
    assert n_links == sorted(n_links, reverse=True)

    alike = blocks.candidates.levels.tolist()
    sizes = blocks.n_pairs_in_block[blocks.block]
    marginal = [i for i, g in enumerate(alike) if g == [2, 2, 1] and sizes[i] == 1]
    clear = [i for i, g in enumerate(alike) if g == [2, 2, 2] and sizes[i] == 1]
    p = found.probability
    assert len(marginal) == 3
    assert (p[0, marginal] > 0.85).all()
    assert (p[4, marginal] < 0.1).all()
    assert (p[:4, clear] > 0.9).all()
