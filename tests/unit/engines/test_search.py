"""The search: its caps, its joins, what it tells about itself; and sampled pattern counts."""

import itertools

import numpy as np
import pyarrow as pa
import pytest

import bayeslink as bl
from bayeslink.engines import joining, search, work
from bayeslink.engines import pattern_counts as counts
from bayeslink.engines.arrays import EVERY_PAIR
from bayeslink.engines.missing import (
    EITHER,
    MISSING,
    PRESENT,
    Classes,
    Unions,
    join_classes,
    missing_classes,
)
from bayeslink.engines.search import Problem, _knapsack, choose_caps, make_joins
from bayeslink.pairs.source import sum_weights


@pytest.fixture(scope="module")
def pairs():
    made = bl.simulate(3000, overlap=0.5, errors=2, seed=3)
    fields = [
        bl.levenshtein("gname"),
        bl.levenshtein("fname"),
        bl.date("dob", cuts=(0, 30)),
        bl.exact("sex"),
        bl.exact("postcode"),
    ]
    return bl.compare(made.a, made.b, fields, id="id", threads=2)


WEIGHTS = np.array(
    [
        [0, -1.2, 0.9, 4.9, 5.3, 0, 0],
        [0, -2.3, 0.8, 5.8, 6.5, 0, 0],
        [0, -1.5, 0.9, 4.9, 4.9, 7.3, 9.6],
        [0, -1.4, 0.6, 0, 0, 0, 0],
        [0, -1.6, 3.2, 0, 0, 0, 0],
    ]
)


# --- caps and joins ---------------------------------------------------------------------------


def test_the_knapsack_is_solved_exactly():
    rng = np.random.default_rng(1)
    solved = 0
    for _ in range(200):
        options = []
        for _ in range(rng.integers(1, 6)):
            k = rng.integers(1, 5)
            options.append((np.sort(rng.uniform(-3, 5, k)), np.sort(rng.uniform(0, 0.2, k))[::-1]))
        least = float(rng.uniform(-8, 12))
        possible = [
            sum(cost[i] for (_, cost), i in zip(options, chosen, strict=True))
            for chosen in itertools.product(*(range(len(cap)) for cap, _ in options))
            if sum(cap[i] for (cap, _), i in zip(options, chosen, strict=True)) <= least
        ]
        chosen = _knapsack(options, least)
        if chosen is None:
            assert min(possible, default=1) >= 0.5
            continue
        solved += 1
        assert sum(cap[i] for (cap, _), i in zip(options, chosen, strict=True)) <= least
        cost = sum(cost[i] for (_, cost), i in zip(options, chosen, strict=True))
        assert cost == pytest.approx(min(possible))
    assert solved > 100


def random_plan(rng):
    fields = [bl.levenshtein("x"), bl.levenshtein("y", cuts=(0, 0.4)), bl.exact("z"), bl.exact("v")]
    weights = rng.uniform(-6, 6, (4, 5))
    if rng.random() < 0.6:
        weights = np.sort(weights, axis=1)
    states = rng.choice([PRESENT, PRESENT, MISSING, EITHER], (6, 5)).astype(np.int8)
    states[:, -1] = rng.random(6) < 0.1
    return Problem(
        fields=fields,
        weights=weights,
        threshold=float(rng.uniform(-3, 15)),
        shares=rng.dirichlet(np.full(5, 0.1), 4),
        neighbours=rng.uniform(0, 30, 4),
        neighbours_at=rng.uniform(0, 6, (4, 5)),
        n_a=100,
        n_pairs=10_000,
        unions=Unions(states, np.zeros((1, 1), np.int32), rng.uniform(0, 3000, 6)),
    )


def possible_levels(problem, union):
    """Levels that each field can have in pairs of a union."""
    for j, field in enumerate(problem.fields):
        state = problem.unions.states[union, j]
        low, high = (0, 0) if state == MISSING else (state == PRESENT, field.n_levels)
        yield range(int(low), high + 1)


def lists(join, weights, union, pattern):
    """Whether a join lists pairs of this pattern that are above the threshold."""
    if join.field == EVERY_PAIR:
        level, others = 1, range(len(pattern))
    else:
        level, others = pattern[join.field], [j for j in range(len(pattern)) if j != join.field]
        if level < 2:
            return False
    return join.room[union, level] > -np.inf and all(
        weights[j, pattern[j]] <= join.upper[union, j] for j in others
    )


def test_every_pattern_above_the_threshold_is_listed_by_one_join(monkeypatch):
    monkeypatch.setattr(search, "_TWICE_FROM", 0.0)
    monkeypatch.setattr(search, "_FREQUENT", 0.0)
    monkeypatch.setattr(search, "_TWICE_UP_TO", np.inf)
    rng = np.random.default_rng(2)
    wanted, joined, twice = 0, 0, 0
    for _ in range(150):
        problem = random_plan(rng)
        joins = make_joins(problem, choose_caps(problem))
        joined += any(join.field != EVERY_PAIR for join in joins)
        for union in range(len(problem.unions.states)):
            for pattern in itertools.product(*possible_levels(problem, union)):
                w = sum(problem.weights[j, level] for j, level in enumerate(pattern))
                if w > problem.threshold:
                    wanted += 1
                    by = [j for j in joins if lists(j, problem.weights, union, pattern)]
                    assert len(by) == 1
                    # Nor is it dropped before it is compared in full: the bounds hold.
                    rest = by[0].checks[by[0].n_looks :]
                    seen = [j for j in range(4) if j not in rest and j != by[0].field]
                    level = 1 if by[0].field == EVERY_PAIR else pattern[by[0].field]
                    bound = by[0].room[union, level]
                    assert bound + sum(problem.weights[j, pattern[j]] for j in seen) > 0
                    assert all(problem.weights[j, pattern[j]] <= by[0].best[union, j] for j in rest)
                    # And where its kind has second caps, another field catches it again.
                    if (kind := by[0].kind[union, level]) >= 0:
                        twice += 1
                        caps = by[0].second[kind]
                        assert np.isinf(caps[by[0].field])
                        assert any(
                            h > 1 and problem.weights[k, h] > caps[k] for k, h in enumerate(pattern)
                        )
    assert wanted > 1000
    assert joined > 50
    assert twice > 200


def test_classes_beyond_the_commonest_are_thrown_together():
    rng = np.random.default_rng(3)
    missing = rng.random((5000, 12)) < 0.3
    classes = missing_classes(missing)
    assert len(classes.states) == 33
    for state, row in zip(classes.states[classes.of], missing, strict=True):
        assert (state == EITHER).all() or (state == row).all()
    exact = missing_classes(missing[:, :4])
    assert len(exact.states) == 16
    assert (exact.states[exact.of] == missing[:, :4]).all()


def test_a_union_lacks_what_either_class_lacks():
    a = Classes(np.array([[0, 1, 2], [0, 0, 0]], np.int8), np.zeros(0, np.int32))
    b = Classes(np.array([[0, 0, 1], [2, 1, 0]], np.int8), np.zeros(0, np.int32))
    unions = join_classes(a, b, np.array([[1.0, 2.0], [4.0, 8.0]]))
    assert unions.states[unions.of[0, 0]].tolist() == [0, 1, 1]
    assert unions.states[unions.of[0, 1]].tolist() == [2, 1, 2]
    assert unions.states[unions.of[1, 0]].tolist() == [0, 0, 1]
    assert unions.n_pairs[unions.of].tolist() == [[1, 2], [4, 8]]


# --- what a search tells ----------------------------------------------------------------------


def test_the_plan_says_what_is_visited_and_why_that_is_enough(pairs):
    plan = pairs.plan(WEIGHTS, 9.0)
    assert plan.visited is None
    listed = pairs.pairs_above(WEIGHTS, 9.0)
    done = pairs.last_plan
    assert done.listed == len(listed)
    assert len(listed) <= done.visited < 0.02 * pairs.n_pairs
    assert done.visited == pytest.approx(done.expected, rel=0.1)
    assert done.skipped > 0.98
    assert done.expected == plan.expected
    assert plan.highest <= 9.0
    assert {j.field for j in plan.joins} | set(plan.unused) == {f.name for f in pairs.fields}
    for _, share, caps in plan.ceilings:
        assert 0 < share < 1
        assert sum(caps.values()) <= 9.0
    text = str(done)
    assert "9,000,000 in scope" in text
    assert f"{len(listed):,} are above the threshold" in text
    assert "No join is needed on sex" in text
    assert "nothing missing" in text


def test_the_plan_of_a_search_for_nothing_and_for_everything(pairs):
    assert "nothing is visited" in str(pairs.plan(WEIGHTS, 1000.0))
    plan = pairs.plan(WEIGHTS, -1000.0)
    assert "\nevery pair\n" in str(plan)
    assert plan.skipped == 0


def test_a_search_that_lists_too_many_pairs_stops_early(pairs, monkeypatch):
    monkeypatch.setattr(joining, "MAX_LISTED", 5000)
    monkeypatch.setattr(work, "_PIECE", 10_000.0)
    assert len(pairs.pairs_above(WEIGHTS, 9.0)) < 5000
    visited = []
    run = joining._run

    def watched(*args):
        found = run(*args)
        visited.append(sum(n for *_, n in found))
        return found

    monkeypatch.setattr(joining, "_run", watched)
    with pytest.raises(joining.TooManyPairsError, match=r"more than 5,000 pairs .* above -1e"):
        pairs.pairs_above(WEIGHTS, -1000.0)
    assert sum(visited) < 0.1 * pairs.n_pairs


def test_what_two_fields_catch_is_all_there_is(monkeypatch):
    rng = np.random.default_rng(6)

    def file():
        def column(n, missing):
            values = np.array([f"{chr(97 + i % 26)}{i}" for i in range(n)] + [None], object)
            return values[np.where(rng.random(2000) < missing, n, rng.integers(0, n, 2000))]

        return pa.table({"x": column(12, 0.1), "y": column(200, 0.2), "z": column(15, 0.1)})

    fields = [bl.levenshtein("x"), bl.levenshtein("y", cuts=(0, 0.4)), bl.exact("z")]
    pairs = bl.compare(file(), file(), fields, id=None, threads=2)
    weights = np.array([[0, -1, 0.2, 0.7, 2.0], [0, -2, 2.5, 5.0, 0], [0, -1, 5.0, 0, 0]])
    vectors, n = (pairs.pattern_counts().levels, pairs.pattern_counts().counts)
    ratios = []
    for threshold in (2.0, 3.6, 5.0, 7.5, 9.0):
        found = pairs.pairs_above(weights, threshold)
        visited = pairs.last_plan.visited
        assert len(found) == n[sum_weights(weights, vectors) > threshold].sum()
        with monkeypatch.context() as patch:
            patch.setattr(search, "_TWICE_FROM", 0.0)
            patch.setattr(search, "_FREQUENT", 0.0)
            again = pairs.pairs_above(weights, threshold)
        for one, other in ((found.a, again.a), (found.b, again.b), (found.levels, again.levels)):
            np.testing.assert_array_equal(one, other)
        ratios.append(pairs.last_plan.visited / visited)
    assert min(ratios) < 0.5, ratios


# --- kernels ----------------------------------------------------------------------------------


def test_pairs_are_sorted_by_record():
    from bayeslink.kernels.search import by_record

    rng = np.random.default_rng(4)
    a, b = rng.permutation(200)[:, None] * np.ones(5, int), rng.permutation(1000).reshape(200, 5)
    a, b = a.ravel().astype(np.int32), b.ravel().astype(np.int32)
    assert by_record(a, b, 200, 1000).tolist() == np.lexsort((b, a)).tolist()


def test_levels_of_named_pairs(pairs):
    listed = pairs.pairs_above(WEIGHTS, 5.0)
    assert (pairs.levels_of(listed.a, listed.b) == listed.levels).all()
    rng = np.random.default_rng(5)
    a, b = (rng.integers(0, 3000, 20_000).astype(np.int32) for _ in range(2))
    found, patterns = pairs.levels_of(a, b), pairs.pattern_counts()
    shares = counts.Coding.of(pairs.fields).codes(found)
    assert set(shares) <= set(counts.Coding.of(pairs.fields).codes(patterns.levels))
    for j, d in enumerate(pairs.dictionaries):
        lacking = (d.a.codes[a] == len(d.a.values)) | (d.b.codes[b] == len(d.b.values))
        assert ((found[:, j] == 0) == lacking).all()


def test_pieces_come_back_in_order(monkeypatch):
    monkeypatch.setattr(work, "_PIECE", 1.0)
    for threads in (1, 3):
        pieces = work.in_pieces(lambda first, last, i: (first, last, i), 1000, 1e9, threads)
        assert len(pieces) == work.MAX_PIECES
        assert [i for *_, i in pieces] == list(range(len(pieces)))
        assert [first for first, *_ in pieces[1:]] == [last for _, last, _ in pieces[:-1]]
        assert (pieces[0][0], pieces[-1][1]) == (0, 1000)


# --- sampled patterns -------------------------------------------------------------------------


def sampled(pairs, monkeypatch, threads=2):
    monkeypatch.setattr(counts, "MAX_VISITS", 0.0)
    monkeypatch.setattr(counts, "SAMPLE", 400_000)
    monkeypatch.setattr(counts, "LISTED", 3000)
    all_counts = pairs.level_counts().counts
    given = pairs.tables, pairs.fields, all_counts, pairs.pairs_above, threads
    return counts.count_patterns(*given, which=range(len(pairs.fields)))


def test_sampled_patterns_are_right_within_their_errors(pairs, monkeypatch):
    exact, found = pairs.pattern_counts(), sampled(pairs, monkeypatch)
    assert exact.exact
    assert not found.exact
    assert found.sampled == 400_000
    assert found.counts.sum() == exact.counts.sum() == pairs.n_pairs
    coding = counts.Coding.of(pairs.fields)
    truth = dict(zip(coding.codes(exact.levels).tolist(), exact.counts.tolist(), strict=True))
    true = np.array([truth[c] for c in coding.codes(found.levels).tolist()])
    listed = found.standard_errors == 0
    assert 10 < listed.sum() < len(listed)
    assert (found.counts == true)[listed].all()
    often = true > 20 * pairs.n_pairs / found.sampled
    z = (found.counts - true)[often] / found.standard_errors[often]
    assert often.sum() > 60
    assert abs(z).max() < 5
    assert 0.75 < np.sqrt(np.mean(z**2)) < 1.25


def test_what_is_listed_is_counted_exactly_whatever_the_sample(pairs, monkeypatch):
    found = sampled(pairs, monkeypatch)
    w = sum_weights(WEIGHTS, found.levels)
    exact = pairs.pattern_counts()
    top = sum_weights(WEIGHTS, exact.levels) > 20
    assert exact.counts[top].sum() > 100
    assert found.counts[w > 20].sum() == exact.counts[top].sum()


def test_the_sample_does_not_depend_on_threads(pairs, monkeypatch):
    one, two = (sampled(pairs, monkeypatch, threads) for threads in (1, 2))
    assert one.counts.tobytes() == two.counts.tobytes()
    assert one.levels.tobytes() == two.levels.tobytes()
