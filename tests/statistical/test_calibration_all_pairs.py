"""Simulation-based calibration over all pairs, of both structures, whichever pairs are swept.

Candidates are chosen by a fit to the same data, which makes restricted sampling visibly wrong
(`test_calibration.py`). With the other pairs born and dying the truth is like a draw again.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import softmax

from bayeslink.linkage.penalized import fit_penalized
from bayeslink.linkage.posthoc import posthoc_blocks
from bayeslink.linkage.priors import Overlap, Penalty
from bayeslink.model.dependence import Dependence, Tree
from bayeslink.model.structure import Structure
from bayeslink.pairs.source import Pairs
from bayeslink.sampling.sampler import sample
from tests.statistical import marginal
from tests.statistical import test_calibration as sbc
from tests.statistical.test_calibration import ALL, FIELDS, N_A, N_B, ROWS, WIDTH

VECTORS = np.array(list(itertools.product(*(range(f.n_levels + 1) for f in FIELDS))), np.uint8)
SEEN = VECTORS > 0


def tree():
    """z depends on x; x and y stay open."""
    log_u = np.zeros((WIDTH, WIDTH))
    rows = [[0.6, 0.3, 0.1], [0.7, 0.2, 0.1], [0.6, 0.2, 0.2], [0.4, 0.3, 0.3], [0.2, 0.3, 0.5]]
    log_u[:, 1:4] = np.log(rows)
    return Tree((Dependence(field=2, on=0, strength=1.0, gain=1.0, log_u=log_u),))


def structure(name, counts):
    independent = Structure.independent(FIELDS, counts)
    return independent if name == "independent" else independent.dependent(FIELDS, tree())


def simulate(rng, prior, name):
    """Links from the prior, m and u from theirs, levels given them."""
    if name == "independent":
        source, truth = sbc.simulate(rng, prior, ALL)
        return source, truth.linked[0]
    empty = np.zeros((len(ALL), len(FIELDS)), np.uint8)
    pairs = Pairs(ROWS[0].astype(np.int32), ROWS[1].astype(np.int32), empty)
    matchings = marginal.list_matchings(pairs)
    scope = marginal.ListedPairs(FIELDS, pairs, *sbc.SCOPE).scope
    p = softmax(marginal.log_prior(prior, scope, matchings.sum(axis=1)))
    linked = matchings[rng.choice(len(p), p=p)]
    model = structure(name, np.zeros((len(FIELDS), WIDTH), np.int64))
    log_m, log_u = model.errors.draw(rng).log_m(VECTORS), model.tree.log_u(VECTORS)
    for j in np.flatnonzero(model.tree.free(len(FIELDS))):
        own = np.append(1.0, rng.dirichlet(FIELDS[j].u_prior))
        log_u = log_u + np.log(own)[VECTORS[:, j]]
    levels = empty.copy()
    present = [
        np.outer(rng.random(N_A) >= sbc.MISSING, rng.random(N_B) >= sbc.MISSING)[ROWS]
        for _ in FIELDS
    ]
    for i in range(len(ALL)):
        own = ([side[i] for side in present] == SEEN).all(1)
        p = np.exp(log_m if linked[i] else log_u) * own
        levels[i] = VECTORS[rng.choice(len(p), p=p / p.sum())]
    return marginal.ListedPairs(FIELDS, Pairs(pairs.a, pairs.b, levels), *sbc.SCOPE), linked


def draws_of(source, prior, name, w0, seed):
    """Thinned draws of the links of all pairs."""
    fit = fit_penalized(source, prior=prior)
    model = structure(name, source.level_counts().counts)
    fit = replace(fit, structure=model, parameters=model.mode(fit.linked))
    post = sample(
        posthoc_blocks(source, fit, w0), prior=prior, chains=sbc.CHAINS, tune=sbc.TUNE,
        draws=sbc.KEEP * sbc.EVERY, seed=seed,
    )  # fmt: skip
    kept = [state for chain in post.kept for state in chain[sbc.EVERY - 1 :: sbc.EVERY]]
    number = post.blocks.candidates.a * N_B + post.blocks.candidates.b
    linked = np.zeros((len(kept), len(ALL)), bool)
    for row, state in zip(linked, kept, strict=True):
        row[number[state]] = True
    return linked


def ranks_of(prior, name, w0, n):
    ranks = {}
    for number in range(n):
        rng = np.random.default_rng([9, number])
        source, truth = simulate(rng, prior, name)
        drawn = draws_of(source, prior, name, w0, number)
        found = {"links": (truth.sum(), drawn.sum(1))}
        found |= {f"pair {i}": (truth[i], drawn[:, i]) for i in sbc.FOLLOWED}
        for quantity, (true, values) in found.items():
            ranks.setdefault(quantity, []).append(sbc.rank(rng, true, values))
    return {quantity: np.array(values) for quantity, values in ranks.items()}


SETTINGS = [
    pytest.param(prior, name, id=f"{type(prior).__name__}-{name}")
    for prior in (Overlap(1, 1), Penalty(1.5))
    for name in ("independent", "dependent")
]


@pytest.mark.parametrize(("prior", "name"), SETTINGS)
def test_truth_is_like_a_draw_whichever_pairs_are_swept(prior, name):
    assert sbc.outside_the_band(ranks_of(prior, name, 0.0, 30)) == []


@pytest.mark.verify
@pytest.mark.parametrize(("prior", "name"), SETTINGS)
def test_truth_is_like_a_draw_at_length(prior, name):
    assert sbc.outside_the_band(ranks_of(prior, name, 0.0, 600)) == []
