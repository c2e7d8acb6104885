"""The sparse solver against enumeration and against SciPy's solvers."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array
from scipy.sparse.csgraph import min_weight_full_bipartite_matching

from bayeslink.linkage import assignment
from bayeslink.linkage.assignment import assign
from bayeslink.pairs.hashing import mix64
from tests.oracles import matchings


def random_problem(rng, most=8, density=0.5, integer=False):
    n_a, n_b = rng.integers(1, most + 1, 2)
    present = rng.random((n_a, n_b)) < density
    a, b = (x.astype(np.int32) for x in np.nonzero(present))
    scores = rng.integers(1, 4, len(a)).astype(float) if integer else rng.exponential(3, len(a))
    return n_a, n_b, a, b, scores


def keys_of(n_a, n_b):
    return mix64(np.arange(n_a, dtype=np.uint64)), mix64(np.arange(n_b, dtype=np.uint64) + 1000)


def check_certificate(result, a, b, scores):
    assert result.gap <= 1e-9
    assert result.violation <= 1e-9 * max(1, scores.max(initial=0))
    assert result.price_a.min(initial=0) >= 0
    assert result.price_b.min(initial=0) >= 0
    assert len(set(a[result.chosen])) == len(set(b[result.chosen])) == len(result.chosen)


@pytest.mark.parametrize("batch", range(10))
def test_200_small_problems_equal_dense_optimum(batch):
    rng = np.random.default_rng(batch)
    for _ in range(200):
        n_a, n_b, a, b, scores = random_problem(rng, integer=rng.random() < 0.5)
        result = assign(a, b, scores, n_a, n_b, keys_of(n_a, n_b))
        dense = np.zeros((n_a, n_b))
        dense[a, b] = scores
        best = dense[linear_sum_assignment(-dense)].sum()
        assert result.value == pytest.approx(best, abs=1e-9)
        check_certificate(result, a, b, scores)


def test_2000_small_problems_equal_brute_force():
    rng = np.random.default_rng(99)
    for _ in range(2000):
        n_a, n_b, a, b, scores = random_problem(rng, density=rng.uniform(0.1, 0.4))
        edges = list(zip(range(len(a)), a, b, strict=True))[:18]
        a, b, scores = a[: len(edges)], b[: len(edges)], scores[: len(edges)]
        best = max(sum(scores[list(c)]) for c in matchings(edges))
        result = assign(a, b, scores, n_a, n_b, keys_of(n_a, n_b))
        assert result.value == pytest.approx(best, abs=1e-9)
        check_certificate(result, a, b, scores)


def test_full_8_by_8_problems_equal_all_permutations():
    permutations = np.array(list(itertools.permutations(range(8))))
    rng = np.random.default_rng(5)
    a, b = (x.ravel().astype(np.int32) for x in np.indices((8, 8)))
    for _ in range(20):
        dense = rng.exponential(2, (8, 8))
        result = assign(a, b, dense.ravel(), 8, 8, keys_of(8, 8))
        best = dense[np.arange(8), permutations].sum(1).max()
        assert result.value == pytest.approx(best, abs=1e-9)
        check_certificate(result, a, b, dense.ravel())


@pytest.mark.parametrize("looked", [0, 30])
def test_the_answer_is_the_same_in_pieces(looked, monkeypatch):
    """Compiled code comes back after so many edges, and goes on where it was."""
    rng = np.random.default_rng(6)
    for _ in range(100):
        n_a, n_b, a, b, scores = random_problem(rng, 40, 0.2, integer=rng.random() < 0.5)
        whole = assign(a, b, scores, n_a, n_b, keys_of(n_a, n_b))
        with monkeypatch.context() as patch:
            patch.setattr(assignment, "_LOOKED", looked)
            pieces = assign(a, b, scores, n_a, n_b, keys_of(n_a, n_b))
        np.testing.assert_array_equal(whole.chosen, pieces.chosen)
        np.testing.assert_array_equal(whole.price_b, pieces.price_b)


def scipy_sparse_value(n_a, n_b, a, b, scores):
    """The optimum by SciPy's sparse solver, with one dummy column a row to stay unmatched."""
    rows = np.concatenate([a, np.arange(n_a)])
    columns = np.concatenate([b, n_b + np.arange(n_a)])
    big = scores.max() + 1
    cost = np.concatenate([big - scores, np.full(n_a, big)])
    graph = csr_array((cost, (rows, columns)), (n_a, n_b + n_a))
    at = min_weight_full_bipartite_matching(graph)
    return n_a * big - graph[at[0], at[1]].sum()


@pytest.mark.parametrize("batch", range(8))
def test_25_sparse_problems_equal_scipy(batch):
    rng = np.random.default_rng(1000 + batch)
    for _ in range(25):
        n_a, n_b = rng.integers(50, 2001, 2)
        n_edges = int(rng.uniform(0.5, 4) * min(n_a, n_b))
        cells = rng.choice(n_a * n_b, n_edges, replace=False)
        a, b = (cells // n_b).astype(np.int32), (cells % n_b).astype(np.int32)
        few_values = rng.exponential(4, 12)
        scores = (
            rng.choice(few_values, n_edges) if rng.random() < 0.5 else rng.exponential(4, n_edges)
        )
        result = assign(a, b, scores, n_a, n_b, keys_of(n_a, n_b))
        assert result.value == pytest.approx(scipy_sparse_value(n_a, n_b, a, b, scores), rel=1e-9)
        check_certificate(result, a, b, scores)


def test_warm_start_gives_the_same_optimum():
    rng = np.random.default_rng(3)
    for _ in range(300):
        n_a, n_b, a, b, scores = random_problem(rng, most=12, integer=rng.random() < 0.5)
        first = assign(a, b, scores, n_a, n_b, keys_of(n_a, n_b))
        moved = np.maximum(scores + rng.normal(0, 0.5, len(scores)), 0.01)
        start = a[first.chosen], b[first.chosen], first.price_b
        warm = assign(a, b, moved, n_a, n_b, keys_of(n_a, n_b), start)
        cold = assign(a, b, moved, n_a, n_b, keys_of(n_a, n_b))
        assert warm.value == pytest.approx(cold.value, abs=1e-9)
        assert set(warm.chosen) == set(cold.chosen)
        check_certificate(warm, a, b, moved)


def test_a_link_is_marked_tied_exactly_if_some_optimum_lacks_it():
    rng = np.random.default_rng(4)
    ties_seen = 0
    for _ in range(500):
        n_a, n_b, a, b, scores = random_problem(rng, most=5, integer=True)
        edges = list(zip(range(len(a)), a, b, strict=True))
        every = [(sum(scores[list(c)]), frozenset(c)) for c in matchings(edges)]
        best = max(value for value, _ in every)
        optimal = [c for value, c in every if value == best]
        in_all = frozenset.intersection(*optimal)
        result = assign(a, b, scores, n_a, n_b, keys_of(n_a, n_b))
        assert frozenset(result.chosen.tolist()) in optimal
        ambiguous = {e for e, tied in zip(result.chosen.tolist(), result.tied, strict=True) if tied}
        assert ambiguous == set(result.chosen.tolist()) - in_all
        ties_seen += bool(ambiguous)
    assert ties_seen > 100


def test_100_shuffles_and_the_swap_choose_the_same_links():
    rng = np.random.default_rng(6)
    n_a, n_b = 60, 50
    present = rng.random((n_a, n_b)) < 0.15
    a, b = (x.astype(np.int32) for x in np.nonzero(present))
    scores = rng.integers(1, 3, len(a)).astype(float)
    keys = keys_of(n_a, n_b)
    plain = assign(a, b, scores, n_a, n_b, keys)
    assert plain.tied.sum() > 10
    links = set(zip(a[plain.chosen], b[plain.chosen], strict=True))
    for _ in range(100):
        to_a, to_b = rng.permutation(n_a).astype(np.int32), rng.permutation(n_b).astype(np.int32)
        order = rng.permutation(len(a))
        moved = [np.empty_like(keys[0]), np.empty_like(keys[1])]
        moved[0][to_a], moved[1][to_b] = keys
        a2, b2 = to_a[a[order]], to_b[b[order]]
        found = assign(a2, b2, scores[order], n_a, n_b, (moved[0], moved[1])).chosen
        assert {(a[order[e]], b[order[e]]) for e in found} == links
    swapped = assign(b, a, scores, n_b, n_a, (keys[1], keys[0])).chosen
    assert {(a[e], b[e]) for e in swapped} == links


def test_everything_tied_is_still_solved_and_marked():
    n = 60
    a, b = (x.ravel().astype(np.int32) for x in np.indices((n, n)))
    result = assign(a, b, np.ones(n * n), n, n, keys_of(n, n))
    assert len(result.chosen) == n
    assert result.tied.all()
    check_certificate(result, a, b, np.ones(n * n))


def test_no_edges():
    none = np.zeros(0, np.int32)
    result = assign(none, none, np.zeros(0), 3, 4, keys_of(3, 4))
    assert len(result.chosen) == 0
    assert result.value == result.gap == 0
