"""The sampler of forests against every partition of a few records."""

import numpy as np
import pytest

from bayeslink.comparing.fields import given_levels
from bayeslink.linkage.forest import log_rho_grid
from bayeslink.linkage.partitions import ClusterSizes, log_prior
from bayeslink.model.structure import Structure
from bayeslink.model.weights import Parameters, Priors
from bayeslink.pairs.source import Pairs
from bayeslink.sampling.chains import run_chain
from bayeslink.sampling.forest import ForestChain, ForestLayout
from bayeslink.sampling.unlisted import FarPairs
from tests.exact.forests import as_partition, partitions, posterior, prior, symmetric
from tests.one_file import OneFile

SURE = 1e10  # pseudo-pairs: m and u are as good as given
BETA = np.array([0.0, 2.0, 1.2, 0.7, 0.4, 0.3, 0.2])
NONE = ()
CASES = {  # ρ, pairs that are listed, known to be one, known to be two
    "star": (0.0, "all", NONE, NONE),
    "pointers, few copies of copies": (0.02, "all", NONE, NONE),
    "pointers": (0.3, "all", NONE, NONE),
    "tree": (1.0, "all", NONE, NONE),
    "half unlisted": (0.3, "half", NONE, NONE),
    "star, half unlisted": (0.0, "half", NONE, NONE),
    "none listed": (0.1, "none", NONE, NONE),
    "known": (0.3, "all", ((0, 3), (3, 4)), ((1, 2), (0, 5))),
    "known, half unlisted": (0.3, "half", ((0, 3),), ((1, 2),)),
    "star, known": (0.0, "all", ((0, 3),), ((1, 2),)),
}


def given_weights(n, rng, missing=2, spread=2.5):
    """A source in which each pair has a level of its own, and m and u by which they weigh w.

    Some pairs miss the field, and weigh nothing.
    """
    n_pairs = n * (n - 1) // 2
    u = rng.dirichlet(np.full(n_pairs, 2.0)) + 1e-3
    m = u * np.exp(np.clip(rng.normal(0.5, spread, n_pairs), -4, 6))
    m, u = m / m.sum(), u / u.sum()
    levels = np.arange(1, n_pairs + 1)
    levels[rng.choice(n_pairs, missing, replace=False)] = 0
    field = given_levels("x", [f"pair {k}" for k in range(n_pairs)])
    pairs = OneFile([field], levels[:, None], n)
    m, u = np.append(0.0, m)[None], np.append(0.0, u)[None]
    priors = Priors(SURE * m, SURE * u, m > 0)
    structure = Structure(priors, np.bincount(levels, minlength=n_pairs + 1)[None])
    log_weights = Parameters(m, u, m > 0).log_weights
    return pairs, structure, Parameters(m, u, m > 0), symmetric(log_weights[0, levels], n)


def rows(pairs, which):
    at = np.array(which, np.int32).reshape(-1, 2)
    return Pairs(at[:, 0].copy(), at[:, 1].copy(), pairs.levels_of(at[:, 0], at[:, 1]))


def chain_of(problem, rho, listed, together, apart, seed, n_draws, beta=BETA, tune=50):
    pairs, structure, parameters, _ = problem
    n = pairs.n_a
    keep = {"all": np.arange(pairs.n_pairs), "none": np.arange(0)}.get(
        listed, np.arange(0, pairs.n_pairs, 2)
    )
    candidates = pairs.pairs_above(np.zeros_like(parameters.m), -1.0).take(keep)
    known = rows(pairs, together), rows(pairs, apart)
    layout = ForestLayout.of(pairs, structure, candidates, *known, beta)
    far = None
    if listed != "all":
        barred = np.concatenate([layout.listed.numbered(n), known[1].numbered(n)])
        closed = np.zeros(n, bool)
        far = FarPairs.beside(pairs, parameters, 0.0, barred, (closed, closed), seed)
    start = np.full(n, -1, np.int32)
    for i, j in sorted(together):
        start[layout.rank[j]] = layout.rank[i]
    log_rho = np.log(rho) if rho else -np.inf
    grid = np.array([log_rho])
    return ForestChain(layout, far, grid, start, log_rho, 0, seed, tune, n_draws, 1)


def compare(problem, rho, listed, together, apart, seed=5, n_draws=40_000):
    """Total variation of partitions and of the number of people; and what chance allows."""
    pairs, _, _, w = problem
    truth = posterior(pairs.n_a, w, rho, BETA, together, apart)
    draws = run_chain(chain_of(problem, rho, listed, together, apart, seed, n_draws), 50, n_draws)
    labels, counts = np.unique(draws.kept, axis=0, return_counts=True)
    found = dict.fromkeys(partitions(pairs.n_a), 0.0)
    for row, count in zip(labels, counts, strict=True):
        found[as_partition(row)] += count / n_draws
    assert sum(found[z] for z in found if z not in truth) == 0
    p = np.array(list(truth.values()))
    tv = sum(abs(found[z] - truth[z]) for z in truth) / 2
    people = np.zeros(pairs.n_a + 1)
    for z, chance in truth.items():
        people[len(z)] += chance
    seen = np.bincount(draws.n_entities, minlength=len(people)) / n_draws
    return tv, np.sqrt(p / n_draws).sum() * 0.4, np.abs(seen - people).max()


@pytest.mark.parametrize("case", CASES)
def test_the_sampler_draws_from_every_partition_as_often_as_it_should(case):
    rng = np.random.default_rng(sum(map(ord, case)))
    for n in (4, 6):
        if any(i >= n for known in CASES[case][2:] for pair in known for i in pair):
            continue
        tv, chance, people = compare(given_weights(n, rng), *CASES[case])
        assert tv < 4 * chance + 0.002
        assert people < 0.02


def test_a_wrong_weight_is_found():
    """The same check fails where the sampler takes ρ for another, or the prior for another."""
    rng = np.random.default_rng(3)
    problem = given_weights(6, rng)
    right, wrong = (compare(problem, 0.3, "all", NONE, NONE)[0] for _ in range(2))
    assert right == wrong
    pairs, _, _, w = problem
    draws = run_chain(chain_of(problem, 0.3, "all", NONE, NONE, 5, 40_000), 50, 40_000)
    for truth in (posterior(6, w, 1.0, BETA), posterior(6, w, 0.3, BETA[[0, 2, 1, 3, 4, 5, 6]])):
        found = dict.fromkeys(truth, 0.0)
        for row in draws.kept:
            found[as_partition(row)] += 1 / len(draws.kept)
        assert sum(abs(found[z] - truth[z]) for z in truth) / 2 > 0.05


@pytest.mark.parametrize("n", [1, 2, 5])
def test_the_prior_of_partitions(n):
    beta = ClusterSizes(0.4, 3.0).beta(n)
    for z in partitions(n):
        of_size = np.bincount([len(c) for c in z], minlength=len(beta))
        assert log_prior(of_size, beta) - log_prior(np.eye(n + 1, dtype=int)[1] * n, beta) == (
            pytest.approx(prior(z, beta) - prior(partitions(n)[-1], beta))
        ) or partitions(n)[-1] != tuple((i,) for i in range(n))


def test_rho_is_drawn_given_the_forest():
    grid = log_rho_grid("pointers")
    assert np.exp(grid[0]) == pytest.approx(1e-6)
    assert grid[-1] == 0
