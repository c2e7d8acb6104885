"""All pairs in scope are sampled, whichever of them are candidates, listed or neither.

Small problems whose posterior is a sum over all matchings: m and u are integrated out exactly but
for the odds of which fields are wrong, and the law of their number where rows of it are tied: these
are summed over fine grids. Each structure, each prior, from no pair listed to all pairs swept.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from scipy.special import logsumexp, roots_jacobi, softmax

from bayeslink.engines.listed import ListedPairs
from bayeslink.linkage import posthoc
from bayeslink.linkage.penalized import fit_penalized
from bayeslink.linkage.posthoc import posthoc_blocks
from bayeslink.linkage.priors import Overlap, Penalty
from bayeslink.model.dependence import Dependence, Tree
from bayeslink.model.error_counts import log_symmetric
from bayeslink.model.gaps import thinned
from bayeslink.pairs.source import Pairs
from bayeslink.sampling import unlisted
from bayeslink.sampling.sampler import sample
from tests.statistical import marginal

N_A, N_B = 3, 4
GRID = 16  # points for each log r,
STICK = 14  # and for each piece of h₀
TIE = 6.0  # pairs
PRIORS = {"penalty": Penalty(1.0), "overlap": Overlap(1.0, 2.0)}
# candidates, listed pairs that are no candidates, and the rest
LISTED = {"all": (12, 0), "some": (4, 4), "low": (0, 12), "few": (2, 1), "none": (0, 0)}
FIELDS = [
    marginal.field("x", [1.0, 2.0, 5.0], [2.0, 1.0, 1.0]),
    marginal.field("y", [1.0, 4.0], [3.0, 1.0]),
    marginal.field("z", [1.5, 3.0], [1.0, 1.0]),
]


def problem(structure=""):
    """In "covered", x at level 2 covers z."""
    rng = np.random.default_rng(3)
    a, b = (side.ravel().astype(np.int32) for side in np.divmod(np.arange(N_A * N_B), N_B))
    levels = np.stack([rng.integers(1, f.n_levels + 1, len(a)) for f in FIELDS], 1)
    levels[a == b] = [[3, 2, 2], [3, 1, 2], [2, 2, 1]]
    levels[rng.random(levels.shape) < 0.15] = 0
    fields = FIELDS
    if structure == "covered":
        fields = [replace(FIELDS[0], covers=((2, "z"),)), *FIELDS[1:]]
        levels[levels[:, 0] == 2, 2] = 0
    ids = [f"a{i}" for i in range(N_A)], [f"b{i}" for i in range(N_B)]
    return ListedPairs(fields, Pairs(a, b, levels.astype(np.uint8)), ids)


def tree():
    """y depends on x; x and z stay open."""
    table = np.zeros((4, 4))  # x's level (0: missing) by y's
    table[:, 1:3] = np.log([[0.8, 0.2], [0.9, 0.1], [0.7, 0.3], [0.4, 0.6]])
    return Tree((Dependence(field=1, on=0, strength=1.0, gain=1.0, log_u=table),))


def blocks_of(source, prior, structure, listed):
    """Post-hoc blocks of which so many pairs are candidates, and so many listed besides."""
    fit = fit_penalized(source, prior=prior)
    if structure != "independent":
        other = fit.structure.dependent(source.fields, tree())
        if structure == "tied":
            other = replace(other, errors=tied_priors(other.errors, source))
        fit = replace(fit, structure=other, parameters=other.mode(fit.linked))
    blocks = posthoc_blocks(source, fit, w0=-np.inf)
    every, (n_swept, n_low) = blocks.candidates, listed
    best = np.argsort(-blocks.weights, kind="stable")
    swept = every.take(best[:n_swept])
    block, n_blocks = posthoc._components(swept, N_A, N_B)
    return replace(
        blocks,
        candidates=swept,
        weights=blocks.weights[best[:n_swept]],
        block=block,
        n_blocks=n_blocks,
        start=every.take(slice(0, 0)),
        low=every.take(best[n_swept : n_swept + n_low]),
        listed_to=-np.inf if n_swept + n_low == len(every) else 0.0,
    )


def tied_priors(errors, source):
    """Rows of h tied to row 0."""
    thinning = thinned(np.array([0.3, -0.5, 0.2]), source.level_counts().counts)
    usual = errors.alpha_h[0] / errors.alpha_h[0].sum()
    return replace(errors, tie=TIE, thinning=thinning, usual=usual)


def law_of_numbers(errors, n_missing, n_wrong, matchings):
    """log p of how many fields are wrong in the links of each matching, h summed out."""
    rows = []
    for a in range(4):
        own, at = n_missing == a, np.arange(4 - a)
        rows.append((matchings[:, own, None] & (n_wrong[own, None] == at)).sum(1))
    if errors.tie == 0:
        return sum(
            marginal.log_dirichlet_multinomial(n, errors.alpha_h[a, : 4 - a])
            for a, n in enumerate(rows)
        )
    total = []
    for h, log_w in law_on_a_grid(errors.alpha_h[0]):
        log_p = log_w + rows[0] @ np.log(h)
        for a in (1, 2, 3):
            alpha = errors.alpha_h[a] / (1 + TIE) + TIE * (errors.thinning[a] @ h)
            log_p = log_p + marginal.log_dirichlet_multinomial(rows[a], alpha[: 4 - a])
        total.append(log_p)
    return logsumexp(total, axis=0)


def law_on_a_grid(alpha):
    """Points of a Dirichlet law and their log weights: broken sticks, by Gauss and Jacobi."""
    sticks = []
    for k in range(len(alpha) - 1):
        x, w = roots_jacobi(STICK, alpha[k + 1 :].sum() - 1, alpha[k] - 1)
        sticks.append([((1 + v) / 2, np.log(each / w.sum())) for v, each in zip(x, w, strict=True)])
    for pieces in itertools.product(*sticks):
        left = np.cumprod([1.0, *(1 - piece for piece, _ in pieces)])
        yield left * [*(piece for piece, _ in pieces), 1.0], sum(w for _, w in pieces)


def exact(source, prior, structure):
    """p(C | Γ) of all matchings of all pairs, and the matchings."""
    pairs = source.pairs_above(np.zeros((3, 4)), -np.inf)
    matchings = marginal.list_matchings(pairs)
    log_p = marginal.log_prior(prior, source.scope, matchings.sum(1)).astype(float)
    counts = source.level_counts().counts
    linked = np.tensordot(matchings, marginal.one_hot(pairs.levels, counts.shape[1]), axes=1)
    for j, f in enumerate(source.fields):
        levels = np.arange(1, f.n_levels + 1)
        if structure.errors is None:
            log_p += marginal.log_dirichlet_multinomial(linked[:, j, levels], np.array(f.m_prior))
        if structure.tree.free(3)[j]:
            others = (counts - linked)[:, j, levels]
            log_p += marginal.log_dirichlet_multinomial(others, np.array(f.u_prior))
    if structure.errors is None:
        return softmax(log_p), matchings, pairs
    errors = structure.errors
    log_p -= matchings @ structure.tree.log_u(pairs.levels)  # fixed: the other pairs' is constant
    for j in range(3):
        for half in (errors.right[j], ~errors.right[j]):
            at = np.flatnonzero(half & (errors.alpha_level[j] > 0))
            alpha = errors.alpha_level[j, at]
            log_p += marginal.log_dirichlet_multinomial(linked[:, j, at], alpha)
    seen, wrong = errors.seen_and_wrong(pairs.levels)
    n_missing, n_wrong = (~seen).sum(1), wrong.sum(1)
    log_p += law_of_numbers(errors, n_missing, n_wrong, matchings)
    x, weight = np.polynomial.hermite_e.hermegauss(GRID)
    points = np.stack(np.meshgrid(x, x, x), -1).reshape(-1, 3)
    log_weight = np.log(np.stack(np.meshgrid(weight, weight, weight), -1).reshape(-1, 3)).sum(1)
    sets, which = np.unique(seen, axis=0, return_inverse=True)
    total = []
    for point, log_w in zip(points, log_weight, strict=True):
        log_r = errors.centre + errors.spread * point
        of_pair = wrong @ log_r - log_symmetric(log_r, sets)[which.ravel(), n_wrong]
        total.append(log_w + matchings @ of_pair)
    return softmax(log_p + logsumexp(total, axis=0)), matchings, pairs


def drawn(post, pairs):
    """Kept draw × pair: whether it is linked."""
    found = post.blocks.candidates.numbered(N_B)
    at = {int(n): i for i, n in enumerate(pairs.numbered(N_B))}
    column = np.array([at[int(n)] for n in found], int)
    states = [state for chain in post.kept for state in chain]
    linked = np.zeros((len(states), len(pairs)), bool)
    for row, state in zip(linked, states, strict=True):
        row[column[state]] = True
    return linked


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("structure", ["independent", "dependent", "covered", "tied"])
@pytest.mark.parametrize("listed", LISTED)
def test_the_posterior_is_that_of_all_pairs(listed, structure, prior):
    source = problem(structure)
    blocks = blocks_of(source, PRIORS[prior], structure, LISTED[listed])
    assert (len(blocks.candidates), len(blocks.low)) == LISTED[listed]
    p, matchings, pairs = exact(source, PRIORS[prior], blocks.structure)
    with patch.object(unlisted, "_LEAST_TRIES", 60):
        post = sample(blocks, prior=PRIORS[prior], draws=4000, tune=200, seed=11)
    linked = drawn(post, pairs)
    assert (linked.sum(1) == post.n_links.ravel()).all()
    exact_links, exact_size = p @ matchings, p @ (matchings.sum(1)[:, None] == np.arange(N_A + 1))
    sizes = linked.sum(1)[:, None] == np.arange(N_A + 1)
    for name, draws, wanted in (("pair", linked, exact_links), ("L", sizes, exact_size)):
        batches = draws.reshape(80, -1, draws.shape[1]).mean(1)
        error = batches.std(0, ddof=1) / np.sqrt(len(batches))
        z = (batches.mean(0) - wanted) / np.maximum(error, 1e-4)
        assert np.abs(z).max() < 4.5, (name, z)
    probability = dict(zip(post.blocks.candidates.numbered(N_B), post.probability, strict=True))
    found = np.array([probability.get(int(n), 0.0) for n in pairs.numbered(N_B)])
    assert np.abs(found - exact_links).max() < 0.03
    assert found.sum() + post.rest == pytest.approx(post.n_links.mean(), abs=0.05)


def test_restricted_sampling_leaves_all_others_out():
    blocks = blocks_of(problem(), Penalty(1.0), "independent", (4, 4))
    post = sample(blocks, prior=Penalty(1.0), restricted=True, draws=200, tune=20)
    assert post.blocks.candidates.numbered(N_B).tolist() == blocks.candidates.numbered(N_B).tolist()
    assert post.rest == 0.0


@pytest.mark.parametrize("structure", ["independent", "dependent"])
def test_the_same_seed_gives_the_same_draws(structure):
    blocks = blocks_of(problem(), Overlap(), structure, (2, 3))
    one, two = (sample(blocks, draws=300, tune=20, threads=t, seed=5) for t in (1, 2))
    assert (one.n_links == two.n_links).all()
    assert (one.probability == two.probability).all()
