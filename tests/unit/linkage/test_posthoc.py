"""Post-hoc blocks, against two loops over all pairs and a plain union-find."""

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import bayeslink as bl
from bayeslink.errors import InputError, SettingsError
from bayeslink.linkage import posthoc
from bayeslink.linkage.assignment import assign
from bayeslink.linkage.posthoc import CEILING, MAX_PAIRS, STEP
from bayeslink.linkage.rivals import expected_by_weight
from bayeslink.model.weights import Parameters
from bayeslink.pairs.candidates import pairs_above
from bayeslink.pairs.source import Pairs
from tests import oracles

FIELDS = [bl.levenshtein("name"), bl.exact("year"), bl.exact("town")]
NAMES = ["anna", "anne", "hanna", "berta", "bert", "carl", "karl", "dora", None]
THETA = 4.0
# Worst level to best: weights from about −7 to 12, hardly two patterns alike.
M = [(0.05, 0.1, 0.2, 0.65), (0.07, 0.93), (0.11, 0.89)]
U = [(0.8, 0.1, 0.07, 0.03), (0.94, 0.06), (0.7, 0.3)]


def people(n, seed):
    rng = np.random.default_rng(seed)
    pick = lambda values: values[rng.integers(len(values))]  # noqa: E731
    years, towns = [str(y) for y in range(1950, 1962)], ["york", "leeds", None]
    return [{"name": pick(NAMES), "year": pick(years), "town": pick(towns)} for _ in range(n)]


def table(rows, side):
    columns = {name: [row[name] for row in rows] for name in ("name", "year", "town")}
    return pa.table({"id": [f"{side}{i}" for i in range(len(rows))], **columns})


def parameters(pairs):
    fit = bl.fit_penalized(pairs, theta=THETA)
    m, u = np.zeros((2, *fit.parameters.m.shape))
    for j, (of_m, of_u) in enumerate(zip(M, U, strict=True)):
        m[j, 1 : len(of_m) + 1], u[j, 1 : len(of_u) + 1] = of_m, of_u
    return replace(fit, parameters=Parameters(m, u, fit.parameters.used))


class Case:
    """Two small files, m and u as above, and every pair in scope with its weight."""

    def __init__(self, n_a, n_b, seed=1, block=()):
        self.rows = people(n_a, seed), people(n_b, seed + 1000)
        tables = [table(rows, side) for rows, side in zip(self.rows, "AB", strict=True)]
        self.pairs = bl.compare(*tables, FIELDS, block=block)
        self.fit = parameters(self.pairs)
        self.weights = {
            (i, j): sum(
                math.log(M[f][h - 1]) - math.log(U[f][h - 1]) for f, h in enumerate(levels) if h
            )
            for i, j, levels in oracles.all_pairs(FIELDS, *self.rows, block)
        }

    def above(self, w0):
        return {pair for pair, w in self.weights.items() if w > w0}

    def blocks(self, *args, theta=THETA, **kwargs):
        return bl.posthoc_blocks(self.pairs, replace(self.fit, theta=theta), *args, **kwargs)


@pytest.fixture(scope="module")
def case():
    return Case(40, 55)


def listed(blocks):
    found = list(zip(blocks.candidates.a.tolist(), blocks.candidates.b.tolist(), strict=True))
    assert len(set(found)) == len(found)
    return found


def components(edges):
    """Union-find without any refinement: the edges of each component."""
    parent = {}

    def root(x):
        parent.setdefault(x, x)
        return x if parent[x] == x else root(parent[x])

    for a, b in edges:
        parent[root(("a", a))] = root(("b", b))
    groups = {}
    for a, b in edges:
        groups.setdefault(root(("a", a)), set()).add((a, b))
    return {frozenset(group) for group in groups.values()}


def partition(blocks):
    groups = {}
    for pair, block in zip(listed(blocks), blocks.block.tolist(), strict=True):
        groups.setdefault(block, set()).add(pair)
    assert sorted(groups) == list(range(blocks.n_blocks))
    return {frozenset(group) for group in groups.values()}


# --- a given w0 -------------------------------------------------------------------------------


@pytest.mark.parametrize("w0", [-math.inf, -5.0, 0.0, 2.5, 6.0, 100.0])
@pytest.mark.parametrize("block", [(), ("town",)])
def test_candidates_are_exactly_the_pairs_above_w0(w0, block):
    case = Case(30, 25, seed=2, block=block)
    blocks = case.blocks(w0)
    assert set(listed(blocks)) == case.above(w0)
    expected = [case.weights[pair] for pair in listed(blocks)]
    np.testing.assert_allclose(blocks.weights, expected, atol=1e-12)
    assert partition(blocks) == components(listed(blocks))
    assert (blocks.w0, blocks.why, blocks.theta) == (w0, "given", THETA)
    share = len(case.above(w0)) / len(case.weights)
    assert blocks.reduction_ratio == pytest.approx(1 - share)


def test_a_pair_at_w0_is_no_candidate(case):
    blocks = case.blocks(0.0)
    lowest = blocks.weights.min()
    at = blocks.weights == lowest
    assert 0 < at.sum() < len(at)
    assert case.blocks(lowest).n_candidates == (~at).sum()
    assert case.blocks(np.nextafter(lowest, -np.inf)).n_candidates == len(at)


def test_sizes_of_blocks(case):
    blocks = case.blocks(3.0)
    groups = {}
    for (a, b), block in zip(listed(blocks), blocks.block.tolist(), strict=True):
        groups.setdefault(block, []).append((a, b))
    assert len({len(g) for g in groups.values()}) > 2  # of different sizes
    in_a, in_b = blocks.records_in_block()
    for block, edges in groups.items():
        assert blocks.n_pairs_in_block[block] == len(edges)
        assert in_a[block] == len({a for a, _ in edges})
        assert in_b[block] == len({b for _, b in edges})


@pytest.mark.parametrize(
    "arguments",
    [{"w0": w0} for w0 in (math.nan, math.inf, "3")]
    + [{name: v} for name in ("max_pairs", "max_records") for v in (0, -1, 2.5, math.nan)]
    + [{"w0": 1.0, "max_pairs": 9}, {"w0": 1.0, "max_records": 9}],
)
def test_settings_that_make_no_sense(case, arguments):
    with pytest.raises(SettingsError) as caught:
        case.blocks(**arguments)
    for name, value in arguments.items():
        assert name in str(caught.value)
        assert len(arguments) > 1 or repr(value) in str(caught.value)


# --- w0 chosen --------------------------------------------------------------------------------


def overflows(groups, max_pairs=None, max_records=None):
    return any(
        (max_pairs and len(g) > max_pairs)
        or (max_records and max(len({p[k] for p in g}) for k in (0, 1)) > max_records)
        for g in groups
    )


@pytest.mark.parametrize(
    "budget",
    [{"max_pairs": n} for n in (1, 2, 5, 20, 60, 200, 600, 1000)]
    + [{"max_records": n} for n in (1, 2, 5, 12, 30)]
    + [{"max_pairs": 20, "max_records": 5}, {"max_pairs": 5, "max_records": 20}],
)
def test_w0_is_the_smallest_that_keeps_to_the_budget(case, budget):
    theta = 10.0  # so high that the ceiling has no say
    blocks = case.blocks(theta=theta, **budget)
    assert blocks.w0 < theta - CEILING
    assert set(listed(blocks)) == case.above(blocks.w0)
    assert not overflows(components(case.above(blocks.w0)), **budget)
    assert overflows(components(case.above(blocks.w0 - 1e-9)), **budget)
    assert partition(blocks) == components(listed(blocks))


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        ({"max_pairs": 5}, "5 pairs in a block"),
        ({"max_records": 12}, "12 records of either file in a block"),
        ({"max_pairs": 20, "max_records": 5}, "20 pairs and 5 records of either file in a block"),
    ],
)
def test_the_reason_names_the_budget(case, budget, words):
    assert case.blocks(theta=10.0, **budget).why == f"smallest with at most {words}"


def test_w0_may_lie_far_below_theta_if_blocks_stay_small(case):
    assert case.blocks(theta=14.0, max_pairs=1000).w0 < 14.0 - 4 * STEP


def test_every_pair_is_kept_if_all_fit(case, monkeypatch):
    monkeypatch.setattr(posthoc, "LISTED", 10**6)
    blocks = case.blocks(max_pairs=len(case.weights))
    assert blocks.w0 == -math.inf
    assert set(listed(blocks)) == set(case.weights)
    assert "every pair" in blocks.why


def test_no_more_pairs_are_listed_than_a_few_a_record(case, monkeypatch):
    """Down to where more would be expected; those that are no candidates are kept besides."""
    monkeypatch.setattr(posthoc, "LISTED", 0)
    w, n = expected_by_weight(case.pairs, case.fit.parameters)
    for a_record in (1.0, 4.0):
        monkeypatch.setattr(posthoc, "LISTED_A_RECORD", a_record)
        blocks = case.blocks(theta=14.0, max_pairs=5)
        floor = max(x for x in w if n[w >= x].sum() > a_record * (40 + 55))
        assert blocks.listed_to == floor
        low = set(zip(blocks.low.a.tolist(), blocks.low.b.tolist(), strict=True))
        assert low
        assert not low & set(listed(blocks))
        assert low | set(listed(blocks)) == case.above(floor)


def test_what_is_not_listed_holds_a_small_share_of_the_links(monkeypatch):
    """As all pairs have it, not as the rule foresees it; and the share is what decides."""
    both = bl.simulate(700, seed=2)
    names = [bl.levenshtein(name) for name in ("gname", "fname")]
    fields = [*names, bl.date("dob"), bl.exact("sex"), bl.exact("occup"), bl.exact("postcode")]
    pairs = bl.compare(both.a, both.b, fields)
    fit = bl.fit_penalized(pairs)
    weights = fit.parameters.weight_of(pairs.pairs_above(fit.parameters.bound, -math.inf).levels)
    assert len(weights) == 700 * 700
    monkeypatch.setattr(posthoc, "LEAST_LISTED", 0)
    floors = []
    for share in (0.01, 0.0003):
        monkeypatch.setattr(posthoc, "UNLISTED", share)
        floors.append(bl.posthoc_blocks(pairs, fit).listed_to)
        below = weights[weights <= floors[-1]]
        assert 0 < np.exp(below - fit.theta).sum() < 2 * share * fit.n_links
        assert len(weights) - len(below) < posthoc.LISTED / 2
    assert floors[1] < floors[0]


def test_a_list_that_turns_out_too_long_is_cut_and_not_searched_for_again(case, monkeypatch):
    monkeypatch.setattr(posthoc, "LISTED", 50)
    monkeypatch.setattr(posthoc, "LISTED_A_RECORD", 0)
    w, n = expected_by_weight(case.pairs, case.fit.parameters)
    monkeypatch.setattr(posthoc, "expected_by_weight", lambda *_: (w, n / 20))
    searches = []

    def counted(*given, **options):
        searches.append(given)
        return pairs_above(*given, **options)

    monkeypatch.setattr(posthoc, "pairs_above", counted)
    blocks = case.blocks(theta=14.0, max_pairs=5)
    low = set(zip(blocks.low.a.tolist(), blocks.low.b.tolist(), strict=True))
    assert len(searches) == 1
    assert len(case.above(searches[0][2])) > 100
    assert low | set(listed(blocks)) == case.above(blocks.listed_to)
    assert 0 < len(low) <= 50


def test_pairs_nearly_as_good_as_the_fit_stay_in_whatever_the_budget(case):
    theta = 2.0
    a, b = np.array(sorted(case.above(theta)), np.int32).T
    gains = np.array([case.weights[pair] - theta for pair in zip(a, b, strict=True)])
    solved = assign(np.ascontiguousarray(a), np.ascontiguousarray(b), gains, 40, 55)
    fit = replace(case.fit, theta=theta, assignment=solved)
    blocks = bl.posthoc_blocks(case.pairs, fit, max_pairs=3)
    close = {
        (i, j)
        for (i, j), w in case.weights.items()
        if solved.price_a[i] + solved.price_b[j] - (w - theta) < CEILING
    }
    assert blocks.w0 > theta - CEILING
    assert close - case.above(blocks.w0)
    assert set(listed(blocks)) == case.above(blocks.w0) | close
    assert f"{len(close - case.above(blocks.w0))} below it that cost the fit" in blocks.why


def test_2500_pairs_unless_told():
    """All of 60 × 60 pairs are alike: 3,600 in one block are too many, 50 × 50 are not."""
    for n, kept in ((50, 2500), (60, 0)):
        rows = [{"name": "anna", "year": "1950", "town": "york"}] * n
        pairs = bl.compare(table(rows, "A"), table(rows, "B"), FIELDS)
        fit = parameters(pairs)
        w = float(fit.weight_of([[4, 2, 2]])[0])
        blocks = bl.posthoc_blocks(pairs, replace(fit, theta=w + 5))
        assert blocks.n_candidates == kept
        assert MAX_PAIRS == 2500


def test_larger_blocks_are_let_in_while_there_are_few_pairs_in_all(case, monkeypatch):
    """The budget of a block gives way to that of all pairs, where that lets in more."""
    monkeypatch.setattr(posthoc, "MAX_PAIRS", 3)
    strict = case.blocks(theta=10.0, max_pairs=3)
    weights = sorted(case.weights.values(), reverse=True)
    for share in (0.0, 0.5, 1.0):
        monkeypatch.setattr(posthoc, "PAIRS_A_RECORD", share)
        blocks, most = case.blocks(theta=10.0), int(share * (40 + 55))
        if most <= strict.n_candidates:
            assert listed(blocks) == listed(strict)
        else:
            assert blocks.w0 == pytest.approx(weights[most], abs=1e-12)
            assert set(listed(blocks)) == case.above(blocks.w0)
            assert blocks.why == f"smallest with at most {most} pairs in all"
            assert blocks.n_pairs_in_block.max() > 3


def test_the_reason_given_is_that_of_the_last_list():
    """Listed down to the first floor, 700 pairs in all let in more; further down, blocks do."""
    made = bl.simulate(700, overlap=0.5, errors=2, seed=4)
    fields = [
        bl.levenshtein("gname"),
        bl.levenshtein("fname"),
        bl.date("dob", cuts=(0, 30)),
        bl.exact("sex"),
    ]
    pairs = bl.compare(made.a, made.b, fields)
    blocks = bl.posthoc_blocks(pairs, bl.fit_penalized(pairs))
    assert blocks.n_candidates > 700
    assert blocks.why == "smallest with at most 2,500 pairs in a block"


def test_set_aside_is_summed_over_the_pairs_that_can_be_listed_and_estimated_below(
    case, monkeypatch
):
    blocks = case.blocks(2.0)
    whole = sum(math.exp(w - THETA) for w in case.weights.values() if w <= 2.0)
    assert blocks.set_aside() == pytest.approx(whole)
    monkeypatch.setattr(posthoc, "LISTED", 0)
    w, n = expected_by_weight(case.pairs, case.fit.parameters)
    for a_record in (0.0, 1.0, 4.0):
        monkeypatch.setattr(posthoc, "LISTED_A_RECORD", a_record)
        floor = min(2.0, max(x for x in w if n[w >= x].sum() > a_record * (40 + 55)))
        estimated = (n * np.exp(w - THETA))[w <= floor].sum()
        counted = sum(math.exp(x - THETA) for x in case.weights.values() if floor < x <= 2.0)
        assert case.blocks(2.0).set_aside() == pytest.approx(estimated + counted, rel=1e-9)


# --- known pairs ------------------------------------------------------------------------------


def ids(*pairs):
    return [(f"A{a}", f"B{b}") for a, b in pairs]


def test_a_known_link_takes_both_records_out(case):
    everything = case.above(0.0)
    (a, b), other = max(everything), (3, 7)
    blocks = case.blocks(0.0, links=ids((a, b), other))
    left = {(x, y) for x, y in everything if x not in (a, other[0]) and y not in (b, other[1])}
    assert len(left) < len(everything) - 2  # they had rivals
    assert set(listed(blocks)) == left
    assert list(zip(blocks.known.a, blocks.known.b, strict=True)) == [(a, b), other]
    assert case.pairs.levels_of(blocks.known.a, blocks.known.b).tolist() == (
        blocks.known.levels.tolist()
    )


def test_known_nonlinks_are_no_candidates(case):
    everything = case.above(0.0)
    above = sorted(everything)[::3]
    below = min(set(case.weights) - everything)
    blocks = case.blocks(0.0, nonlinks=ids(*above, below))
    assert set(listed(blocks)) == everything - set(above)
    assert len(blocks.known) == 0
    assert partition(blocks) == components(listed(blocks))


def test_known_pairs_leave_room_for_others_in_the_budget(case):
    budget = {"max_pairs": 5, "theta": 10.0}
    plain = case.blocks(**budget)
    # Bar the pairs that overflow the budget; then w0 can be lower.
    at_w0 = [pair for pair, w in case.weights.items() if abs(w - plain.w0) < 1e-9]
    blocks = case.blocks(**budget, nonlinks=ids(*at_w0))
    assert blocks.w0 < plain.w0
    assert set(listed(blocks)) == case.above(blocks.w0) - set(at_w0)


def test_known_pairs_as_any_kind_of_table(case):
    pairs = pa.table({"id_a": ["A1"], "id_b": ["B2"]})
    for given in (pairs, pairs.to_pandas(), [("A1", "B2")]):
        known = case.blocks(0.0, links=given).known
        assert (known.a.tolist(), known.b.tolist()) == ([1], [2])


def test_nothing_known_is_nothing_new(case):
    assert set(listed(case.blocks(0.0, links=[], nonlinks=[]))) == case.above(0.0)


@pytest.mark.parametrize(
    ("links", "nonlinks", "words"),
    [
        (ids((1, 2), (1, 3)), None, "record of A"),
        (ids((1, 2), (4, 2)), None, "record of B"),
        (ids((1, 2), (3, 4)), ids((5, 6), (3, 4)), "1 pairs .* both"),
    ],
)
def test_known_pairs_must_not_contradict_each_other(case, links, nonlinks, words):
    with pytest.raises(SettingsError, match=words):
        case.blocks(0.0, links=links, nonlinks=nonlinks)


@pytest.mark.parametrize("role", ["links", "nonlinks"])
def test_known_pairs_must_exist_and_be_in_scope(case, role):
    with pytest.raises(InputError, match="not in"):
        case.blocks(0.0, **{role: [("A1", "B999")]})
    within = Case(30, 25, seed=2, block=("town",))
    outside = next(
        (i, j)
        for i, a in enumerate(within.rows[0])
        for j, b in enumerate(within.rows[1])
        if a["town"] != b["town"]
    )
    with pytest.raises(InputError, match="scope"):
        within.blocks(0.0, **{role: ids(outside)})


# --- summaries --------------------------------------------------------------------------------


def test_block_curve(case):
    values = [6.0, -2.0, 0.0, 2.0, 4.0, 1000.0]
    truth = [(i, i) for i in range(40)]
    rows = np.array(truth, np.int32)
    as_pairs = Pairs(rows[:, 0], rows[:, 1], np.zeros((40, 3), np.uint8))
    curve = bl.block_curve(case.pairs, case.fit, values, truth=as_pairs)
    assert curve.w0.tolist() == sorted(values)
    for k, w0 in enumerate(curve.w0):
        above = case.above(w0)
        sizes = [len(g) for g in components(above)]
        assert curve.n_blocks[k] == len(sizes)
        assert curve.n_candidates[k] == len(above)
        assert curve.largest[k] == max(sizes, default=0)
        assert curve.quantiles[k].tolist() == np.quantile(sizes or [0], (0.5, 0.9, 0.99)).tolist()
        assert curve.reduction_ratio[k] == pytest.approx(1 - len(above) / len(case.weights))
        assert curve.pairs_completeness[k] == pytest.approx(len(above & set(truth)) / 40)
    for falling in (curve.n_candidates, curve.largest, curve.pairs_completeness):
        assert (np.diff(falling) <= 0).all()
    assert 0 < curve.pairs_completeness[0] < 1
    assert curve.n_candidates[0] > curve.n_candidates[-1] == 0
    assert bl.block_curve(case.pairs, case.fit, values).pairs_completeness is None


@pytest.mark.parametrize("values", [[], [1.0, math.nan], [math.inf]])
def test_block_curve_needs_values_of_w0(case, values):
    with pytest.raises(SettingsError, match="w0"):
        bl.block_curve(case.pairs, case.fit, values)


def test_set_aside_bounds_the_links_among_the_pairs_left_out():
    """Against the full posterior of a 4 × 4 problem at the fit's m and u, matching by matching."""
    case = Case(4, 4, seed=3)
    theta = 2.0
    pairs = sorted(case.weights)
    edges = [(k, i, j) for k, (i, j) in enumerate(pairs)]
    w = np.array([case.weights[pair] for pair in pairs])
    states = list(oracles.matchings(edges))
    density = np.array([math.exp(sum(w[k] - theta for k in state)) for state in states])
    density /= density.sum()
    a_weight = case.blocks(-math.inf).weights[5]  # at which a pair is left out
    w = np.where(np.isclose(w, a_weight), a_weight, w)
    for w0 in (-math.inf, -3.0, a_weight, 3.0, 50.0):
        out = set(np.flatnonzero(w <= w0).tolist())
        expected = sum(p * len(out & set(state)) for p, state in zip(density, states, strict=True))
        bound = case.blocks(w0, theta=theta).set_aside()
        assert bound == pytest.approx(np.exp(w[w <= w0] - theta).sum())
        assert (0 < expected < bound) if out else (bound == 0)
