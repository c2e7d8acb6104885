"""What every PairSource must do, on random small problems, against two plain loops."""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest

from bayeslink.comparing import dictionaries
from bayeslink.comparing.fields import exact, levenshtein
from bayeslink.engines import missing, search, tables, work
from bayeslink.engines.local import LocalPairs
from bayeslink.pairs.candidates import Candidates
from bayeslink.pairs.source import sum_weights
from tests import oracles

NAMES = ["ann", "anna", "hanna", "bob", "bobby", "li", "lee", None, ""]
CODES = ["1", "2", "3", None]
FIELDS = [
    levenshtein("name"),
    levenshtein("other", cuts=(0, 0.4)),
    levenshtein("third", cuts=(0, 0.2, 0.4, 0.6, 0.8)),
    exact("code"),
    exact("number"),
    exact("zone", name="zone_field"),
]
COLUMNS = {
    "name": NAMES,
    "other": NAMES,
    "third": NAMES,
    "code": CODES,
    "number": CODES,
    "zone": ["x", "y", None],
}
BLOCKS = [(), (), ("zone",), ("zone", "code")]


def local(a, b, fields, block, threads=2):
    return LocalPairs(a, b, fields, [exact(k) for k in block], threads=threads)


ENGINES = [pytest.param(local, id="local")]


@pytest.fixture(params=["as it comes", "as if large", "open levels", "equal values"])
def size(request, monkeypatch):
    """Small problems as they are, mostly by looking at every pair, and as large ones are treated.

    That is with joins whatever they cost, in many pieces of work, and with only the commonest sets
    of missing fields and a few states of the knapsack told apart; with tables that have only the
    best levels, or only equal values.
    """
    if request.param in ("open levels", "equal values"):
        affordable = 2 if request.param == "open levels" else 0
        monkeypatch.setattr(dictionaries, "MAX_SECONDS", affordable)
        monkeypatch.setattr(dictionaries, "table_seconds", lambda field, x, y: len(field.cuts))
    if request.param != "as it comes":
        monkeypatch.setattr(tables, "_SCANNED", 0.0)
        monkeypatch.setattr(search, "_SCAN_FROM", np.inf)
        monkeypatch.setattr(search, "_MAX_STATES", 8)
        monkeypatch.setattr(work, "_PIECE", 1.0)
        monkeypatch.setattr(missing, "_ALL_CLASSES", 4)
        monkeypatch.setattr(missing, "_MAX_CLASSES", 3)


# --- random problems --------------------------------------------------------------------------


@dataclass(frozen=True)
class Problem:
    rows_a: list
    rows_b: list
    fields: list
    block: tuple

    def source(self, engine, **how):
        a, b = oracles.records(self.rows_a), oracles.records(self.rows_b, side="B")
        return engine(a, b, self.fields, self.block, **how)

    def pairs(self):
        """All pairs in scope and their levels, by two loops."""
        return list(oracles.all_pairs(self.fields, self.rows_a, self.rows_b, self.block))


def random_problem(rng):
    """Two files with duplicates and missing values."""
    gone = rng.choice([0.0, 0.1, 0.5])
    pool = [
        {c: None if rng.random() < gone else rng.choice(v) for c, v in COLUMNS.items()}
        for _ in range(rng.integers(1, 25))
    ]
    rows_a, rows_b = (
        [pool[i] for i in rng.integers(0, len(pool), n)] for n in rng.integers(1, 13, 2)
    )
    fields = [FIELDS[i] for i in rng.permutation(len(FIELDS))[: rng.integers(1, len(FIELDS) + 1)]]
    return Problem(rows_a, rows_b, fields, BLOCKS[rng.integers(len(BLOCKS))])


def random_weights(rng, fields):
    shape = len(fields), max(f.n_levels for f in fields) + 1
    weights = rng.uniform(-6, 6, shape)
    kind = rng.integers(5)
    if kind <= 1:  # as a fit has them: missing 0, rising with the level
        weights = np.sort(weights, axis=1)
        weights[:, 0] = 0
    elif kind == 2:  # inverted: agreement speaks against a link
        weights = -np.sort(-weights, axis=1)
    elif kind == 3:  # sums that tie
        weights = rng.integers(-2, 4, shape).astype(float)
    if rng.random() < 0.05:
        weights[rng.integers(shape[0]), rng.integers(shape[1])] = -np.inf
    return weights


def random_threshold(rng, sums):
    """Any threshold, or one that a pair just fails to exceed, or none at all."""
    kind = rng.integers(20)
    if kind == 0:
        return float(rng.choice([-np.inf, np.inf]))
    return float(rng.choice(sums) if kind < 10 and len(sums) else rng.uniform(-8, 14))


def levels_of(pairs, fields):
    return np.array([levels for _, _, levels in pairs], np.uint8).reshape(-1, len(fields))


def check_counts(source, fields, expected):
    assert source.n_pairs == len(expected)
    patterns = source.pattern_counts()
    found = zip(map(tuple, patterns.levels.tolist()), patterns.counts.tolist(), strict=True)
    assert patterns.exact
    assert dict(found) == dict(Counter(levels for _, _, levels in expected))
    counts = source.level_counts().counts
    for j in range(len(fields)):
        by_hand = Counter(levels[j] for _, _, levels in expected)
        assert counts[j].tolist() == [by_hand[h] for h in range(counts.shape[1])]


def check_search(source, weights, threshold, expected, sums):
    pairs = source.pairs_above(weights, threshold)
    listed = list(
        zip(pairs.a.tolist(), pairs.b.tolist(), map(tuple, pairs.levels.tolist()), strict=True)
    )
    assert listed == [p for p, above in zip(expected, sums > threshold, strict=True) if above]


def check_problems(engine, rng, n, searches=5):
    for _ in range(n):
        problem = random_problem(rng)
        source, expected = problem.source(engine), problem.pairs()
        check_counts(source, problem.fields, expected)
        for _ in range(searches):
            weights = random_weights(rng, problem.fields)
            sums = sum_weights(weights, levels_of(expected, problem.fields))
            check_search(source, weights, random_threshold(rng, sums), expected, sums)


@pytest.mark.parametrize("engine", ENGINES)
def test_counts_and_listed_pairs_equal_two_loops(engine, size):
    check_problems(engine, np.random.default_rng(1), 150)


@pytest.mark.verify
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seed", range(2, 12))
def test_thousands_of_problems_equal_two_loops(engine, size, seed):
    check_problems(engine, np.random.default_rng(seed), 400)


@pytest.mark.parametrize("engine", ENGINES)
def test_threads_make_no_difference(engine, size):
    rng = np.random.default_rng(3)
    for _ in range(10):
        problem = random_problem(rng)
        one, two = (problem.source(engine, threads=t) for t in (1, 2))
        weights, threshold = random_weights(rng, problem.fields), float(rng.uniform(-5, 5))
        x, y = (s.pairs_above(weights, threshold) for s in (one, two))
        for left, right in ((x.a, y.a), (x.b, y.b), (x.levels, y.levels)):
            assert left.tobytes() == right.tobytes()
        p, q = one.pattern_counts(), two.pattern_counts()
        assert p.levels.tobytes() == q.levels.tobytes()
        assert p.counts.tobytes() == q.counts.tobytes()


@pytest.mark.parametrize("engine", ENGINES)
def test_more_patterns_than_fit_an_array(engine):
    rng = np.random.default_rng(4)
    rows = [
        {f"c{k}": str(rng.choice(["ab", "abcd", "abcdef"])) for k in range(12)} for _ in range(9)
    ]
    fields = [levenshtein(f"c{k}", cuts=(0, 0.3, 0.5, 0.7)) for k in range(12)]
    assert np.prod([f.n_levels + 1.0 for f in fields]) > 2**30
    problem = Problem(rows[:5], rows[5:], fields, ())
    check_counts(problem.source(engine), fields, problem.pairs())


# --- reuse ------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_reused_candidates_miss_nothing(engine):
    rng = np.random.default_rng(5)
    for _ in range(60):
        problem = random_problem(rng)
        source = problem.source(engine)
        weights, threshold = random_weights(rng, problem.fields), float(rng.uniform(-8, 12))
        weights[np.isneginf(weights)] = -6
        candidates = Candidates(source, slack=1.0)
        for _ in range(4):
            weights = weights + rng.uniform(-0.5, 0.5) * np.sign(weights)
            threshold += rng.uniform(-1, 1)
            pairs, w = candidates.above(weights, threshold)
            fresh = source.pairs_above(weights, threshold)
            assert (pairs.a.tolist(), pairs.b.tolist()) == (fresh.a.tolist(), fresh.b.tolist())
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
