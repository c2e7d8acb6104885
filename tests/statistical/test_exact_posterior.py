"""The sampler against the exact posterior of random small problems, m and u integrated out.

The draws compared are thinned until they are about independent, so what independent draws would
give is the yardstick: for the distance of the sampled from the exact distribution of matchings,
and for a chi-square test in each problem, whose p-values are uniform if the sampler is right.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from copy import copy
from dataclasses import dataclass, replace
from unittest.mock import patch

import numpy as np
import pytest
from scipy import stats

from bayeslink.linkage.penalized import fit_penalized
from bayeslink.linkage.posthoc import posthoc_blocks
from bayeslink.linkage.priors import Overlap, Penalty
from bayeslink.model.structure import Structure
from bayeslink.pairs.source import Pairs, Scope
from bayeslink.sampling import layout, sampler
from bayeslink.sampling.diagnostics import ess_bulk
from bayeslink.sampling.layout import Layout
from tests.statistical import marginal

CHAINS = 4
BATCHES = 20  # per chain, as the sampler has them
FALSE_ALARM = 1e-3
DRAWN_AS = [
    pytest.param(layout.MOST_LISTED, id="jointly"),
    pytest.param(1, id="by-moves"),  # no block's matchings are listed
]


# --- problems ---------------------------------------------------------------------------------


def random_problem(number):
    """Post-hoc blocks of a random problem up to 5 × 5, and a prior."""
    rng = np.random.default_rng([2024, number])
    key_a, key_b, at = [], [], ((), ())
    while not len(at[0]):
        n_keys = rng.choice([1, 1, 2, 3])
        key_a, key_b = (rng.integers(0, n_keys, 1 + rng.binomial(4, 0.7)) for _ in "ab")
        at = marginal.pairs_in_scope(key_a, key_b)
    fields = [random_field(rng, name) for name in "xyz"[: rng.integers(1, 4)]]
    levels = np.stack([random_levels(rng, f, at, len(key_a), len(key_b)) for f in fields], 1)
    pairs = Pairs(at[0].astype(np.int32), at[1].astype(np.int32), levels)
    source = marginal.ListedPairs(fields, pairs, key_a, key_b)
    prior = (
        Penalty(rng.uniform(-1, 3))
        if rng.random() < 0.5
        else Overlap(*rng.choice([0.5, 1, 4], 2).tolist())
    )
    rows = np.stack(at, 1)
    parallel = rng.permutation(rows[at[0] - at[1] == rng.integers(-1, 2)])  # no two share a record
    known = parallel[: rng.choice([0, 0, 1, 2])]
    if rng.random() < 0.5:  # every pair that is not known to be no link
        others = rng.permutation(rows[~(rows[:, None] == known).all(axis=2).any(axis=1)])
        fit = fit_penalized(source, prior=prior)
        barred = others[: rng.choice([0, 2])]
        return posthoc_blocks(source, fit, w0=-math.inf, links=known, nonlinks=barred), prior
    free = ~(np.isin(at[0], known[:, 0]) | np.isin(at[1], known[:, 1]))
    candidates = np.flatnonzero(free & (rng.random(len(rows)) < 0.75))
    return marginal.blocks_of(source, candidates, known), prior


def random_field(rng, name):
    k = rng.integers(2, 5)
    m_prior, u_prior = np.sort(rng.uniform(0.5, 8, k)), rng.uniform(0.5, 3, k)
    return marginal.field(name, m_prior.tolist(), u_prior.tolist())


def random_levels(rng, field, at, n_a, n_b):
    """Levels of the pairs: high along the diagonal, missing where a record has no value."""
    m, u = rng.dirichlet(field.m_prior), rng.dirichlet(field.u_prior)
    high, low = (rng.choice(len(p), len(at[0]), p=p) + 1 for p in (m, u))
    present = np.outer(rng.random(n_a) < 0.85, rng.random(n_b) < 0.85)[at]
    return np.where(present, np.where(at[0] == at[1], high, low), 0).astype(np.uint8)


# --- one problem ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """How the draws of one problem compare with the exact posterior."""

    p_value: float  # of a chi-square test; nan if nearly all mass is on one matching
    distance: float  # total variation, over its mean for as many independent draws
    distance_sd: float  # what that varies by for independent draws
    link_errors: np.ndarray  # of link probabilities, in Monte Carlo standard errors
    parameter_errors: np.ndarray  # of the means of m and u, likewise


def compare(blocks, prior, most_listed, keep, drawn_from=None):
    """Sample and compare with the exact posterior of `blocks`.

    `drawn_from` takes the place of `blocks` in the sampler only: a deliberate mistake.
    """
    exact = marginal.exact_posterior(blocks, prior)
    drawn_from = drawn_from or blocks
    every = sweeps_between_independent_draws(drawn_from, prior, most_listed)
    post = marginal.sample_thinned(
        drawn_from, prior, keep=keep, every=every, most_listed=most_listed, chains=CHAINS, seed=7
    )
    counts = count_matchings(exact.matchings, marginal.kept_links(post))
    distance, distance_sd = distance_of(counts, exact.probability)
    used = post.blocks.parameters.used
    return Outcome(
        p_value=chi_square_p(counts, exact.probability),
        distance=distance,
        distance_sd=distance_sd,
        link_errors=(post.probability - exact.link_probability) / np.hypot(post.error, 1e-6),
        parameter_errors=np.append(
            mean_errors(post.m[..., used], exact.m[used]),
            mean_errors(post.u[..., used], exact.u[used]),
        ),
    )


def sweeps_between_independent_draws(blocks, prior, most_listed):
    """Three times the longest autocorrelation time of L, log posterior and each pair's link."""
    pilot = marginal.sample_thinned(
        blocks, prior, keep=1000, every=1, most_listed=most_listed, chains=CHAINS, seed=8
    )
    linked = marginal.kept_links(pilot).reshape(*pilot.n_links.shape, -1)
    followed = [pilot.n_links, pilot.log_posterior, *np.moveaxis(linked, 2, 0)]
    return math.ceil(3 * pilot.n_links.size / np.nanmin([ess_bulk(x) for x in followed]))


def count_matchings(matchings, drawn):
    """How often each matching was drawn."""
    powers = 1 << np.arange(matchings.shape[1])
    codes = matchings @ powers
    order = np.argsort(codes)
    at = order[np.searchsorted(codes[order], drawn @ powers)]
    assert (matchings[at] == drawn).all(), "what was drawn is no matching"
    return np.bincount(at, minlength=len(codes))


def distance_of(counts, p):
    """Total variation over its mean for independent draws, and the standard deviation of that."""
    n = counts.sum()
    independent = np.random.default_rng(0).multinomial(n, p, 400)
    distances = np.abs(independent / n - p).sum(axis=1) / 2
    mean = max(distances.mean(), 1e-9)
    return np.abs(counts / n - p).sum() / 2 / mean, distances.std() / mean


def chi_square_p(counts, p):
    """p-value of a chi-square test; rare matchings are pooled until 10 of them are expected."""
    order = np.argsort(p)
    expected, pool, so_far = p[order] * counts.sum(), np.zeros(len(p), int), 0.0
    for i in range(1, len(p)):
        so_far += expected[i - 1]
        full = so_far >= 10 and expected[i:].sum() >= 10
        pool[i] = pool[i - 1] + full
        so_far = 0.0 if full else so_far
    if pool[-1] == 0:
        return math.nan
    return stats.chisquare(np.bincount(pool, counts[order]), np.bincount(pool, expected)).pvalue


def mean_errors(draws, mean):
    """Error of the mean of draws (chain × draw × …), in standard errors from batch means."""
    length = draws.shape[1] // BATCHES
    batches = draws[:, : length * BATCHES].reshape(CHAINS * BATCHES, length, -1).mean(axis=1)
    return (batches.mean(axis=0) - mean) / (batches.std(axis=0, ddof=1) / np.sqrt(len(batches)))


# --- tests ------------------------------------------------------------------------------------


def check(outcomes):
    """Fail if the draws of some problems do not fit their exact posteriors.

    Each assertion fails a right sampler with probability 1e-3 or less. A distance may be 1.6 times
    what independent draws give, or more where there are so few matchings that it varies by more.
    """
    moving = [o for o in outcomes if not math.isnan(o.p_value)]
    assert stats.kstest([o.p_value for o in moving], "uniform").pvalue > FALSE_ALARM
    distance, sd = (np.array([getattr(o, x) for o in moving]) for x in ("distance", "distance_sd"))
    assert (distance < np.maximum(1.6, 1 + 7 * sd)).all()
    assert (distance - 1).sum() < 4 * np.linalg.norm(sd)
    for kind in ("link_errors", "parameter_errors"):
        z = np.concatenate([getattr(o, kind) for o in outcomes])
        assert np.abs(z).max() < stats.t.isf(FALSE_ALARM / 2 / len(z), CHAINS * BATCHES - 1)
    squares = np.concatenate([o.link_errors for o in outcomes]) ** 2
    assert abs(squares.mean() - 1) < 4 * math.sqrt(2 / len(moving))  # errors are what they say


@pytest.mark.parametrize("most_listed", DRAWN_AS)
def test_draws_follow_the_exact_posterior(most_listed):
    check([compare(*random_problem(number), most_listed, keep=400) for number in range(25)])


@pytest.mark.verify
@pytest.mark.parametrize("most_listed", DRAWN_AS)
def test_draws_follow_the_exact_posterior_at_length(most_listed):
    check([compare(*random_problem(number), most_listed, keep=1000) for number in range(300)])


def test_problems_are_of_every_kind():
    """So that the tests above say what they seem to say."""
    kinds = Counter()
    for number in range(100):
        blocks, prior = random_problem(number)
        source, candidates = blocks.pairs, blocks.candidates
        kinds[type(prior).__name__] += 1
        kinds["blocking key"] += len(source.scope.sizes_a) > 1
        kinds["rectangular"] += source.n_a != source.n_b
        kinds["missing"] += (candidates.levels == 0).any()
        kinds["ties"] += len(np.unique(candidates.levels, axis=0)) < len(candidates)
        kinds["known links"] += len(blocks.known) > 0
        kinds["all pairs"] += blocks.n_candidates == source.n_pairs
        kinds["some pairs"] += blocks.n_candidates < source.n_pairs
        for kind, n in Layout.of(blocks, restricted=True).kinds.items():
            kinds[kind] += n > 0
    assert min(kinds.values()) >= 5, kinds


def test_log_posterior_is_that_of_the_draw():
    for number in range(10):
        blocks, prior = random_problem(number)
        post = marginal.sample_thinned(blocks, prior, keep=5, every=3, seed=2)
        counts = marginal.linked_counts(blocks, marginal.kept_links(post))
        expected = marginal.log_prior(prior, blocks.pairs.scope, post.n_links[:, 2::3].ravel())
        others = blocks.pairs.level_counts().counts - counts
        for x, n, alpha in ((post.m, counts, "m_prior"), (post.u, others, "u_prior")):
            for j, f in enumerate(blocks.pairs.fields):
                at = np.arange(1, f.n_levels + 1)
                log_x = np.log(x[:, 2::3, j, at].reshape(-1, f.n_levels))
                expected = expected + ((getattr(f, alpha) + n[:, j, at] - 1) * log_x).sum(axis=1)
        found = post.log_posterior[:, 2::3].ravel()
        np.testing.assert_allclose(np.diff(found), np.diff(expected), atol=1e-8)  # no constant


# --- mistakes that must be found --------------------------------------------------------------


def u_from_candidates(blocks):
    """Count levels over candidates and known links only."""
    return with_source(blocks, pairs=blocks.candidates.with_more(blocks.known))


def one_off_in_the_priors(blocks):
    """Take α + 1 for α, as large a mistake as to take the mode's α − 1."""
    fields = [
        marginal.field(f.name, *([a + 1 for a in alpha] for alpha in (f.m_prior, f.u_prior)))
        for f in blocks.pairs.fields
    ]
    return with_source(blocks, fields=fields)


def missing_is_worst(blocks):
    """Take missing for level 1."""
    pairs, candidates = (
        replace(listed, levels=np.maximum(listed.levels, 1))
        for listed in (blocks.pairs.pairs, blocks.candidates)
    )
    return replace(with_source(blocks, pairs=pairs), candidates=candidates)


def known_links_forgotten(blocks):
    return replace(blocks, known=blocks.known.take(slice(0, 0)))


def all_pairs_in_scope(blocks):
    """Have the overlap prior count n_A × n_B pairs."""
    return with_source(
        blocks, scope=Scope(*(np.array([n]) for n in (blocks.pairs.n_a, blocks.pairs.n_b)))
    )


def with_source(blocks, **changes):
    source = copy(blocks.pairs)
    for name, value in changes.items():
        setattr(source, name, value)
    structure = Structure.independent(source.fields, source.level_counts().counts)
    return replace(blocks, pairs=source, structure=structure)


MISTAKES = {
    u_from_candidates: lambda blocks, _: blocks.n_candidates < 0.8 * blocks.pairs.n_pairs,
    one_off_in_the_priors: lambda *_: True,
    missing_is_worst: lambda blocks, _: (blocks.candidates.levels == 0).mean() > 0.2,
    known_links_forgotten: lambda blocks, _: len(blocks.known),
    all_pairs_in_scope: lambda blocks, prior: (
        isinstance(prior, Overlap) and len(blocks.pairs.scope.sizes_a) > 1
    ),
}


def problems_where(shows, n=10):
    """The first n problems with a few candidates where a mistake can show."""
    problems = (random_problem(number) for number in itertools.count())
    fit = (p for p in problems if p[0].n_candidates >= 4 and shows(*p))
    return list(itertools.islice(fit, n))


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_in_what_is_sampled_are_found(mistake):
    outcomes = [
        compare(blocks, prior, layout.MOST_LISTED, 250, drawn_from=mistake(blocks))
        for blocks, prior in problems_where(MISTAKES[mistake])
    ]
    with pytest.raises(AssertionError):
        check(outcomes)


@pytest.mark.parametrize("most_listed", DRAWN_AS)
def test_a_link_cost_that_is_one_link_late_is_found(most_listed):
    right = sampler._prior_table

    def late(*args, **kwargs):
        prior = right(*args, **kwargs)
        cost = prior.step_cost
        return prior._replace(step_cost=np.append(cost[:1], cost[:-1]))

    problems = problems_where(lambda _, prior: isinstance(prior, Overlap))
    with patch.object(sampler, "_prior_table", late):
        outcomes = [compare(*problem, most_listed, 250) for problem in problems]
    with pytest.raises(AssertionError):
        check(outcomes)
