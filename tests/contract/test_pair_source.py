"""What every PairSource must do, on random small problems, against two plain loops."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayeslink.engines.local import LocalPairs
from bayeslink.fields import exact, levenshtein
from bayeslink.patterns import Candidates, sum_weights
from tests import oracles

NAMES = ["ann", "anna", "hanna", "bob", "bobby", "li", "lee", None, ""]
CODES = ["1", "2", "3", None]


def local(a, b, fields, block):
    return LocalPairs(a, b, fields, [exact(k) for k in block], threads=2)


ENGINES = [pytest.param(local, id="local")]


@st.composite
def problems(draw):
    row = st.fixed_dictionaries(
        {
            "name": st.sampled_from(NAMES),
            "other": st.sampled_from(NAMES),
            "code": st.sampled_from(CODES),
            "zone": st.sampled_from(["x", "y", None]),
        }
    )
    rows_a = draw(st.lists(row, min_size=1, max_size=12))
    rows_b = draw(st.lists(row, min_size=1, max_size=12))
    fields = draw(
        st.lists(
            st.sampled_from(
                [
                    levenshtein("name"),
                    levenshtein("other", cuts=(0, 0.4)),
                    exact("code"),
                    exact("zone", name="zone_field"),
                ]
            ),
            min_size=1,
            max_size=4,
            unique_by=lambda f: f.name,
        )
    )
    block = draw(st.sampled_from([(), ("zone",), ("zone", "code")]))
    width = max(f.n_levels for f in fields) + 1
    flat = draw(
        st.lists(st.floats(-6, 6), min_size=len(fields) * width, max_size=len(fields) * width)
    )
    weights = np.array(flat).reshape(len(fields), width)
    if draw(st.booleans()):  # as a fit has them: missing 0, rising with the level
        weights = np.sort(weights, axis=1)
        weights[:, 0] = 0
    threshold = draw(st.floats(-8, 12))
    return rows_a, rows_b, fields, block, weights, threshold


@pytest.mark.parametrize("engine", ENGINES)
@settings(max_examples=400, deadline=None)
@given(problem=problems())
def test_counts_and_listed_pairs_equal_two_loops(engine, problem):
    rows_a, rows_b, fields, block, weights, threshold = problem
    source = engine(oracles.records(rows_a), oracles.records(rows_b, side="B"), fields, block)
    expected = list(oracles.all_pairs(fields, rows_a, rows_b, block))
    assert source.n_pairs == len(expected)

    patterns = source.pattern_counts()
    found = Counter(
        dict(zip(map(tuple, patterns.levels.tolist()), patterns.counts.tolist(), strict=True))
    )
    assert found == Counter(levels for _, _, levels in expected)

    counts = source.level_counts().counts
    for j in range(len(fields)):
        by_hand = Counter(levels[j] for _, _, levels in expected)
        assert counts[j].tolist() == [by_hand[h] for h in range(counts.shape[1])]

    pairs = source.pairs_above(weights, threshold)
    listed = list(
        zip(pairs.a.tolist(), pairs.b.tolist(), map(tuple, pairs.levels.tolist()), strict=True)
    )
    wanted = {
        (i, j, levels)
        for i, j, levels in expected
        if sum_weights(weights, np.array([levels], np.uint8))[0] > threshold
    }
    assert len(listed) == len(set(listed))
    assert set(listed) == wanted


@pytest.mark.parametrize("engine", ENGINES)
@settings(max_examples=100, deadline=None)
@given(problem=problems(), steps=st.lists(st.floats(-1, 1), min_size=1, max_size=6), data=st.data())
def test_reused_candidates_miss_nothing(engine, problem, steps, data):
    rows_a, rows_b, fields, block, weights, threshold = problem
    source = engine(oracles.records(rows_a), oracles.records(rows_b, side="B"), fields, block)
    candidates = Candidates(source, slack=1.0)
    for step in steps:
        weights = weights + data.draw(st.floats(-0.5, 0.5)) * np.sign(weights)
        threshold += step
        pairs, w = candidates.above(weights, threshold)
        fresh = source.pairs_above(weights, threshold)
        assert set(zip(pairs.a, pairs.b, strict=True)) == set(zip(fresh.a, fresh.b, strict=True))
        assert (w > threshold).all()


def test_candidates_are_really_reused():
    rng = np.random.default_rng(0)
    rows = [
        {"name": str(rng.choice(["ann", "bob", "li"])), "code": str(rng.integers(9))}
        for _ in range(60)
    ]
    fields = [levenshtein("name"), exact("code")]
    source = LocalPairs(oracles.records(rows[:30]), oracles.records(rows[30:], side="B"), fields)
    weights = np.array([[0, -3, -1, 1, 3], [0, -2, 2, 0, 0]], float)
    candidates = Candidates(source, slack=2.0)
    for shift in (0, 0.2, 0.4, -0.3):
        candidates.above(weights + 0.1 * shift, 1.0)
    assert candidates.searches == 1
    candidates.above(weights, -3.0)
    assert candidates.searches == 2
