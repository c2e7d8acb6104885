"""Pairs drawn at random by an engine, against the pairs there are."""

import numpy as np
import pytest

from bayeslink.sampling.unlisted import ANY
from tests.contract.test_pair_source import ENGINES, one_file, random_problem

__all__ = ["one_file"]  # a fixture


def all_pairs(source):
    width = max(f.n_levels for f in source.fields) + 1
    return source.pairs_above(np.zeros((len(source.fields), width)), -1.0)


@pytest.mark.parametrize("engine", ENGINES)
def test_draws_are_uniform_among_the_pairs_at_a_level(engine, one_file):
    rng, seen = np.random.default_rng(8), 0
    for _ in range(40):
        source = random_problem(rng, one_file).source(engine)
        pairs = all_pairs(source)
        if not len(pairs):
            continue
        sizes = source.join_sizes()
        joins = [(ANY, 0, source.scope.n_drawn)]
        joins += [(j, h, int(sizes[j, h])) for j, h in np.argwhere(sizes > 0)]
        for field, level, size in joins:
            wanted = np.ones(len(pairs), bool) if field == ANY else pairs.levels[:, field] == level
            a, b = source.draw_pairs(field, level, rng.random((300, 3)))
            inside = a >= 0
            number = a[inside].astype(np.int64) * source.n_b + b[inside]
            assert set(number) <= set(pairs.take(wanted).numbered(source.n_b))
            share = wanted.sum() / size
            spread = 5 * np.sqrt(share * (1 - share) / 300)
            assert inside.mean() == pytest.approx(share, abs=spread + 1e-9)
            if wanted.sum() == size and size <= 20:  # every one of them is drawn, about as often
                counts = np.unique(number, return_counts=True)[1]
                chi = ((counts - 300 / size) ** 2).sum() / (300 / size)
                assert len(counts) == size
                assert chi < size + 6 * np.sqrt(2 * size) + 10
                seen += 1
    assert seen > 20


@pytest.mark.parametrize("engine", ENGINES)
def test_all_levels_above_the_first_can_be_drawn(engine, one_file):
    """Levels are counted alike where there is no blocking key."""
    rng = np.random.default_rng(9)
    for _ in range(40):
        problem = random_problem(rng, one_file)
        source = problem.source(engine)
        if problem.block:
            continue
        counts = source.level_counts().counts
        sizes = source.join_sizes()
        if problem.files is None:
            assert (sizes[:, 2:] == counts[:, 2:]).all()
        assert (sizes[:, 2:] >= counts[:, 2:]).all()
