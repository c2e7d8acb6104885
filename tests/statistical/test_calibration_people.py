"""Simulation-based calibration of the people of one file.

As in `test_calibration`: partition, m, u and levels are drawn from the model. People have two
records at most, so that every pair of one person is an edge: of larger ones the model says nothing
of the pairs that are none, and no data can be drawn from it.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax

from bayeslink.model.structure import Structure
from bayeslink.sampling.chains import run_chain
from tests.exact.forests import one_file_prior, partitions, prior
from tests.exact.test_forests import NONE, chain_of, one_file, rows
from tests.statistical import test_calibration as sbc

N = 6
GIVEN = one_file_prior(N, np.array([0.0, 1.5, 1.0]))
PARTITIONS = [z for z in partitions(N) if max(map(len, z)) <= 2]
FIRST, SECOND = np.triu_indices(N, 1)
FOLLOWED = (0, 9)  # pairs of records
DRAWS = (sbc.N_RANKS - 1) * sbc.EVERY


def simulate(rng):
    """Pairs, and what they were drawn from: who is one with whom, m, u."""
    z = PARTITIONS[rng.choice(len(PARTITIONS), p=softmax([prior(z, GIVEN) for z in PARTITIONS]))]
    person = np.empty(N, int)
    for number, cluster in enumerate(z):
        person[list(cluster)] = number
    together = person[FIRST] == person[SECOND]
    levels = np.zeros((len(FIRST), len(sbc.FIELDS)), np.uint8)
    m, u = np.zeros((2, len(sbc.FIELDS), sbc.WIDTH))
    for j, f in enumerate(sbc.FIELDS):
        m[j, 1 : f.n_levels + 1] = rng.dirichlet(f.m_prior)
        u[j, 1 : f.n_levels + 1] = rng.dirichlet(f.u_prior)
        of_one, of_two = (rng.choice(sbc.WIDTH, len(FIRST), p=x[j]) for x in (m, u))
        has = rng.random(N) >= sbc.MISSING
        levels[:, j] = np.where(has[FIRST] & has[SECOND], np.where(together, of_one, of_two), 0)
    return one_file(sbc.FIELDS, levels, N), sbc.Values(together[None], m[None], u[None])


def draw(pairs, listed, seed, told):
    """Thinned posterior draws."""
    structure = Structure.independent(pairs.fields, pairs.level_counts().counts)
    problem = (pairs, structure, structure.mode(rows(pairs, [(0, 1)])), None)
    chain = chain_of(problem, 0.3, listed, NONE, NONE, seed, DRAWS, told, tune=sbc.TUNE)
    draws = run_chain(chain, sbc.TUNE, DRAWS)
    kept = slice(sbc.EVERY - 1, None, sbc.EVERY)
    person = draws.kept[kept]
    return sbc.Values(person[:, FIRST] == person[:, SECOND], draws.m[kept], draws.u[kept])


def quantities(values):
    """What is ranked, by name: each an array over draws."""
    out = {"links": values.linked.sum(axis=1)}  # people, but for the sign
    for j, f in enumerate(sbc.FIELDS):
        for h in range(1, f.n_levels + 1):
            out[f"m[{f.name}, {h}]"] = values.m[:, j, h]
            out[f"u[{f.name}, {h}]"] = values.u[:, j, h]
    return out | {f"pair {i}": values.linked[:, i] for i in FOLLOWED}


def ranks_of(listed, n, told=GIVEN):
    ranks = {}
    for number in range(n):
        rng = np.random.default_rng([8, number])
        pairs, truth = simulate(rng)
        draws = quantities(draw(pairs, listed, number, told))
        for name, true in quantities(truth).items():
            ranks.setdefault(name, []).append(sbc.rank(rng, true[0], draws[name]))
    return {name: np.array(values) for name, values in ranks.items()}


@pytest.mark.parametrize("listed", ["all", "half", "none"])
def test_truth_is_like_a_draw(listed):
    assert sbc.outside_the_band(ranks_of(listed, 100)) == []


@pytest.mark.verify
@pytest.mark.parametrize("listed", ["all", "half", "none"])
def test_truth_is_like_a_draw_at_length(listed):
    assert sbc.outside_the_band(ranks_of(listed, 1000)) == []


def test_another_prior_is_found():
    """The check can fail: the sampler is told that people are twice nine times as often."""
    other = one_file_prior(N, np.array([0.0, 1.5, 9.0]))
    assert "links" in sbc.outside_the_band(ranks_of("all", 100, other))
