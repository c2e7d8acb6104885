"""How many pairs that are not listed are proposed a sweep."""

import numpy as np
import pytest

import bayeslink as bl
from bayeslink.sampling.unlisted import PART, FarPairs, _free_share

N = 2000
FIELDS = [
    bl.levenshtein("gname"),
    bl.levenshtein("fname"),
    bl.exact("age"),
    bl.exact("occup"),
]


def blocks_of(overlap, n_known=0):
    made = bl.simulate(N, overlap=overlap, seed=1)
    known = made.truth.slice(0, n_known) if n_known else None
    run = bl.link(made.a, made.b, FIELDS, known_links=known, draws=1, tune=0, chains=1)
    return run.posterior.blocks


def test_few_are_proposed_where_hardly_a_record_is_free():
    """θ is low there: the odds of all pairs add up to 7,700 links, worth 20,000 proposals a sweep.

    Nearly all of these were of records that are linked already.
    """
    blocks = blocks_of(overlap=1)
    far = FarPairs.of(blocks, seed=1)
    assert len(blocks.start) == N
    assert far.theta == pytest.approx(-np.log(N), abs=0.01)
    assert far.expected < 1
    assert far.a_sweep == 20
    _, q = far.propose(1, 0, range(1))  # every pair keeps its chance
    assert len(q) == PART * far.a_sweep
    assert (q > 0).all()


def test_odds_are_taken_as_they_are_where_half_the_records_are_free():
    assert _free_share(blocks_of(overlap=0.4)) == 1.0


def test_records_of_known_links_are_neither_free_nor_taken():
    """Their pairs cannot link, and add no odds."""
    blocks = blocks_of(overlap=0.9, n_known=500)
    start, known = blocks.start, blocks.known
    linked = [len(np.setdiff1d(*rows)) for rows in ((start.a, known.a), (start.b, known.b))]
    free = [1 - n / (N - 500) for n in linked]
    assert _free_share(blocks) == pytest.approx(4 * free[0] * free[1])
