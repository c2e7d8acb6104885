"""Every move of the sampler against enumeration: each leaves the exact posterior as it is.

Transition matrices are added up from a move's outcomes, not from simulated frequencies. Moves are
functions of the uniform numbers they are given, so an outcome's probability is the length of the
interval of uniforms that leads to it, and calls just inside its ends show that it does.
"""

import dataclasses
import itertools
from functools import cache, partial

import numpy as np
import pytest

import bayeslink as bl
from bayeslink.kernels import births, moves, parameters, random, sampling
from bayeslink.kernels import matchings as listing
from bayeslink.model.kernel_input import describe_vectors, kernel_model
from bayeslink.model.structure import Structure
from bayeslink.model.weights import Priors
from bayeslink.pairs.source import Pairs
from bayeslink.sampling import layout as layouts
from bayeslink.sampling import sampler
from bayeslink.sampling.chains import run_chain
from bayeslink.sampling.layout import Layout
from bayeslink.sampling.matching import MatchingChain
from tests.exact.problems import (
    Problem,
    TinyFiles,
    after_move,
    callable_here,
    components,
    edges_of,
    move_weights,
    plain_sweep,
    random_files,
    random_problem,
)
from tests.oracles import matchings

PRIORS = {"penalty": bl.Penalty(0.7), "overlap": bl.Overlap(1.5, 2.5)}
LAST = 1 - 2.0**-53  # the largest uniform number


balanced_move = callable_here(moves.balanced_move)
row_weights = callable_here(moves.row_weights)
row_chances = callable_here(moves.row_chances)
make_move = callable_here(moves.make_move)
joint_weights = callable_here(listing.joint_weights)
start_stream = callable_here(random.start_stream)
uniform = callable_here(random.uniform)
draw_log_dirichlet = callable_here(random.draw_log_dirichlet)


@cache
def small_problems(prior, n):
    """Up to 4 × 4, dense and sparse, with equal and unequal odds."""
    rng = np.random.default_rng(20)
    return [random_problem(rng, rng.integers(1, 5, 2), PRIORS[prior]) for _ in range(n)]


@cache
def five_by_five(prior, n):
    rng = np.random.default_rng(55)
    return [random_problem(rng, (5, 5), PRIORS[prior], chance=0.5) for _ in range(n)]


all_sizes = pytest.mark.parametrize(
    ("prior", "make", "n"),
    [
        ("penalty", small_problems, 200),
        ("overlap", small_problems, 200),
        pytest.param("penalty", five_by_five, 4),
        pytest.param("overlap", five_by_five, 4),
        pytest.param("penalty", five_by_five, 20, marks=pytest.mark.verify),
        pytest.param("overlap", five_by_five, 20, marks=pytest.mark.verify),
    ],
)


@cache
def graph_of(p):
    """Where rows start, and the row, column and pattern of each edge, as the kernels want them."""
    row_start = np.searchsorted(p.row, np.arange(p.n_rows + 1))
    return row_start, p.row.astype(np.int32), p.column.astype(np.int32), p.pattern


@cache
def _partners(p, state):
    sides = (p.row, p.n_rows), (p.column, p.n_columns)
    return [[next((e for e in state if of[e] == r), -1) for r in range(n)] for of, n in sides]


def partners(p, state):
    """The link of each row and of each column, −1 for none."""
    return [np.array(links, np.int32) for links in _partners(p, state)]


def state_of(of_row, of_column):
    state = frozenset(of_row[of_row >= 0].tolist())
    assert state == frozenset(of_column[of_column >= 0].tolist())
    return state


def check_reversible(p, transition):
    np.testing.assert_allclose(transition.sum(axis=1), 1, rtol=1e-12)
    assert np.abs(p.posterior @ transition - p.posterior).sum() < 1e-12
    flow = p.posterior[:, None] * transition
    assert np.abs(flow - flow.T).sum() < 1e-12


# --- the locally balanced move -----------------------------------------------------------------


def make_balanced_move(p, state, row, pick, accept):
    """The state after the kernel's move."""
    of_row, of_column = partners(p, state)
    n_links = balanced_move(
        row, pick, accept, *graph_of(p), np.sqrt(p.odds), p.step_cost,
        p.n_elsewhere + len(state), of_row, of_column, np.empty(p.n_columns)
    )  # fmt: skip
    after = state_of(of_row, of_column)
    assert n_links == p.n_elsewhere + len(after)
    return after


def balanced_outcomes(p, state, row):
    """Each outcome of the move at a row and its probability, every call checked against them."""
    weights = move_weights(p, state, row)
    here = weights.sum()
    ends = np.concatenate([[0], np.cumsum(weights) / here])
    for e, low, high in zip(edges_of(p, row), ends[:-1], ends[1:], strict=True):
        if (move := after_move(p, state, e)) is None:
            continue
        after, back = move
        ratio = min(1.0, here / move_weights(p, after, back).sum())
        inside = 1e-6 * (high - low)
        for pick in (low + inside, high - inside):
            for accept in (0.0, ratio * (1 - 1e-9)):
                assert make_balanced_move(p, state, row, pick, accept) == after
            if ratio * (1 + 1e-9) < 1:
                for accept in (ratio * (1 + 1e-9), LAST):
                    assert make_balanced_move(p, state, row, pick, accept) == state
        yield after, (high - low) * ratio
        yield state, (high - low) * (1 - ratio)


@all_sizes
def test_the_balanced_move_is_reversible(prior, make, n):
    for p in make(prior, n):
        number = {state: i for i, state in enumerate(p.states)}
        transition = np.zeros((len(number), len(number)))
        for state, i in number.items():
            for row in range(p.n_rows):
                for after, chance in balanced_outcomes(p, state, row):
                    transition[i, number[after]] += chance / p.n_rows
        check_reversible(p, transition)


@all_sizes
def test_weights_of_moves_are_roots_of_posterior_ratios(prior, make, n):
    for p in make(prior, n):
        weights = np.empty(p.n_columns)
        for state in p.states:
            for row in range(p.n_rows):
                total = row_weights(
                    row, *graph_of(p), np.sqrt(p.odds), p.step_cost,
                    p.n_elsewhere + len(state), *partners(p, state), weights
                )  # fmt: skip
                expected = move_weights(p, state, row)
                assert (np.abs(weights[: len(expected)] - expected) <= 1e-12 * expected).all()
                assert abs(total - expected.sum()) <= 1e-12 * total


@all_sizes
def test_every_move_can_be_undone(prior, make, n):
    for p in make(prior, n):
        for state in p.states:
            for e in range(len(p.row)):
                if (move := after_move(p, state, e)) is None:
                    continue
                of_row, of_column = partners(p, state)
                change, back = make_move(e, *graph_of(p)[:3], of_row, of_column)
                assert (state_of(of_row, of_column), back) == move
                assert change == len(move[0]) - len(state)
                undo = next(
                    f for f in edges_of(p, back) if after_move(p, move[0], f) == (state, p.row[e])
                )
                change_back, _ = make_move(undo, *graph_of(p)[:3], of_row, of_column)
                assert change_back == -change
                assert [of_row.tolist(), of_column.tolist()] == _partners(p, state)


# --- Gibbs draws -------------------------------------------------------------------------------


@all_sizes
def test_the_draw_of_a_row_is_its_conditional(prior, make, n):
    for p in make(prior, n):
        number = {state: i for i, state in enumerate(p.states)}
        weights = np.empty(p.n_columns)
        row_start, _, edge_column, _ = graph_of(p)
        for row in range(p.n_rows):
            transition = np.zeros((len(number), len(number)))
            for state, i in number.items():
                rest = state.difference(edges_of(p, row))
                total = row_chances(
                    row, row_start, edge_column, p.pattern, p.odds, p.step_cost,
                    p.n_elsewhere + len(rest), partners(p, rest)[1], weights
                )  # fmt: skip
                transition[i, number[rest]] += 1 / total
                for e, weight in zip(edges_of(p, row), weights, strict=False):
                    if weight > 0:
                        transition[i, number[rest | {e}]] += weight / total
            check_reversible(p, transition)


@cache
def listed_matchings(p):
    """The matchings of each component, in the kernel's order, and the kernel's own arrays."""
    component = components(p.row, p.column)
    start = np.append(np.unique(component, return_index=True)[1], len(component))
    start.sort()
    arrays = listing.list_matchings(start, p.row, p.column, 10_000)
    first_set, parent, edge, size = arrays
    blocks = []
    for first, last in itertools.pairwise(first_set):
        sets = [frozenset()]
        for s in range(first + 1, last):
            assert parent[s] < s - first
            sets.append(sets[parent[s]] | {int(edge[s])})
        assert [len(matching) for matching in sets] == size[first:last].tolist()
        blocks.append(sets)
    return blocks, arrays


@all_sizes
def test_the_joint_draw_of_a_block_is_its_conditional(prior, make, n):
    for p in make(prior, n):
        number = {state: i for i, state in enumerate(p.states)}
        weights = np.empty(len(number))
        blocks, (first_set, *sets) = listed_matchings(p)
        for k, listed in enumerate(blocks):
            transition = np.zeros((len(number), len(number)))
            for state, i in number.items():
                rest = state.difference(*listed)
                total = joint_weights(
                    first_set[k], first_set[k + 1], *sets, p.pattern, p.odds, p.step_cost,
                    p.n_elsewhere + len(rest), weights
                )  # fmt: skip
                to = [number[rest | matching] for matching in listed]
                transition[i, to] += weights[: len(listed)] / total
            check_reversible(p, transition)


@all_sizes
def test_listed_matchings_are_all_there_are(prior, make, n):
    for p in make(prior, n):
        blocks = listed_matchings(p)[0]
        assert sum(len(frozenset.union(*listed)) for listed in blocks) == len(p.row)
        for listed in blocks:
            edges = [(e, p.row[e], p.column[e]) for e in frozenset.union(*listed)]
            expected = [frozenset(matching) for matching in matchings(edges)]
            assert len(listed) == len(set(listed)) == len(expected)
            assert set(listed) == set(expected)


def test_blocks_with_too_many_matchings_are_not_listed():
    rows, columns = (side.ravel() for side in np.indices((3, 3)))  # 34 matchings
    star = np.arange(64)  # 65 matchings of 64 edges
    chain = np.repeat(np.arange(33), 2)[:65]  # 65 edges
    start = np.cumsum([0, 9, 64, 65, 9])
    row = np.concatenate([rows, 0 * star, chain, rows])
    column = np.concatenate([columns, star, (np.arange(65) + 1) // 2, columns])
    for most, expected in ((33, [0, 0, 0, 0]), (34, [34, 0, 0, 34]), (65, [34, 65, 0, 34])):
        first_set, *sets = listing.list_matchings(start, row, column, most)
        assert np.diff(first_set).tolist() == expected
        assert [len(s) for s in sets] == [sum(expected)] * 3


# --- whole sweeps ------------------------------------------------------------------------------


def single_chance(p, state, e):
    """The chance with which a sweep links the first of p's edges; here all are isolated."""
    order = np.array([e, *(f for f in range(len(p.row)) if f != e)])
    linked = np.isin(order, list(state))
    none, no_rows = np.zeros(0, np.int32), np.zeros(1, np.int64)
    shape, n = p.log_m.shape, len(order)
    probability = np.zeros(n)
    priors = Priors(np.ones(shape), np.ones(shape), p.log_m != 0)
    structure = Structure(priors, np.full(shape, n))
    vectors = describe_vectors(structure, np.vstack([0 * p.levels[:1], p.levels]))
    pattern, n_patterns = p.pattern[order] + np.int32(1), len(vectors.levels)
    graph = sampling.Graph(
        pattern, n, no_rows, none, none, none, no_rows, no_rows, none, none
    )  # fmt: skip
    nothing = Pairs(none, none, np.zeros((0, shape[0]), np.uint8))
    model = kernel_model(structure, (nothing, nothing, nothing))
    draw = np.zeros(1, np.int64), np.zeros(1), np.zeros((1, *shape)), np.zeros((1, *shape))
    rest = np.zeros((shape[0], 1)), np.zeros(shape[0]), np.zeros(shape)
    sampling.run_sweeps(
        1, 2, 3, 1, 0, vectors, graph, model, sampling.Prior(p.log_prior, p.step_cost),
        parameters.State(p.log_m.copy(), p.log_u.copy(), *rest), np.zeros(n_patterns, np.int64),
        sampling.Links(linked, no_rows[:0], none, none), no_births(n_patterns, pattern),
        births.Far(np.zeros((0, 2), np.int32), none, np.zeros(0), 0), p.n_elsewhere + len(state),
        sampling.Output(
            *draw, *(part[None] for part in rest), probability, np.zeros(n), np.zeros(n), 1
        ),
        sampling.Log(np.zeros(n, np.int64), np.zeros(1, np.int64), np.zeros(2, np.int64), 1, n, n),
    )  # fmt: skip
    assert linked[0] == (uniforms(1, 2, 3, 0)() < probability[0])
    return probability[0]


def no_births(n_patterns, pattern):
    """No pairs but edges, and no records that they share."""
    no, no_pairs = np.zeros(0, np.int32), np.zeros((0, 2), np.int32)
    size = np.zeros(1, np.int64)
    loose = births.Loose(np.zeros((0, 5), np.int64), np.zeros(0), size)
    return sampling.Unlisted(
        births.Records(size, no, no_pairs, pattern, np.zeros(0, np.bool_)),
        births.Low(no_pairs, np.zeros(n_patterns + 1, np.int64), 1.0, 0, no_pairs),
        loose,
        loose,
        births.Ended(np.zeros((0, 4), np.int64), size),
    )


def uniforms(*key):
    """The uniform numbers of a stream, one a call."""
    rng = np.zeros(1, np.uint64)
    start_stream(rng, *key)
    return lambda: uniform(rng)


@pytest.mark.parametrize("prior", PRIORS)
def test_the_draw_of_a_single_pair_is_its_conditional(prior):
    for whole in small_problems(prior, 200):
        n = min(whole.n_rows, whole.n_columns)
        p = dataclasses.replace(
            whole, row=np.arange(n), column=np.arange(n), pattern=whole.pattern[:n]
        )
        number = {state: i for i, state in enumerate(p.states)}
        for e in range(n):
            transition = np.zeros((len(number), len(number)))
            for state, i in number.items():
                chance = single_chance(p, state, e)
                transition[i, number[state | {e}]] = chance
                transition[i, number[state - {e}]] = 1 - chance
            check_reversible(p, transition)


def plain_view(blocks, layout, log_prior, log_m, log_u):
    """What `sample` has laid out for the kernels, as a problem and its blocks."""
    row, column, _ = layouts._oriented(blocks)
    p = Problem(
        row=row[layout.candidate],
        column=column[layout.candidate],
        pattern=layout.graph.edge_pattern - 1,  # the first is no pair's
        levels=layout.vectors.levels[1:],
        log_m=log_m,
        log_u=log_u,
        n_elsewhere=len(blocks.known),
        log_prior=log_prior,
    )
    joints = []
    for first, last in itertools.pairwise(layout.graph.joint_start):
        joints.append([frozenset()])
        for s in range(first + 1, last):
            before = joints[-1][layout.graph.set_parent[s]]
            joints[-1].append(before | {int(layout.graph.set_edge[s])})
    record = [int(p.row[e]) for e in layout.graph.row_start[:-1]]
    for r, e in enumerate(layout.graph.row_start[:-1]):
        assert edges_of(p, record[r]) == list(range(e, layout.graph.row_start[r + 1]))
    larges = [record[low:high] for low, high in itertools.pairwise(layout.graph.large_start)]
    return p, range(layout.graph.n_single), joints, larges


@pytest.mark.parametrize("prior", PRIORS)
def test_sweeps_do_what_the_plain_version_does(prior, monkeypatch):
    """From the same uniform numbers the same links, chances, m and u, sweep for sweep."""
    monkeypatch.setattr(layouts, "MOST_LISTED", 8)
    rng = np.random.default_rng(3)
    seen = dict.fromkeys(("single", "joint", "large"), 0)
    tune, n_draws, seed = 3, 40, 11
    for number in range(12):
        files = random_files(rng, PRIORS[prior])
        blocks, chain = files.blocks, number % 3
        layout = Layout.of(blocks, restricted=True)
        table = sampler._prior_table(blocks, layout, files.prior, restricted=True)
        linked = sampler._start(blocks, layout, chain, seed)
        place = (linked, chain, seed, tune, n_draws, 1)
        this = MatchingChain(blocks, layout, None, table, *place)
        start = this.state.log_m.copy(), this.state.log_u.copy()
        draws = run_chain(this, tune, n_draws)
        seen = {kind: n + layout.kinds[kind] for kind, n in seen.items()}

        log_m, log_u = start
        p, *kinds = plain_view(blocks, layout, table.log_prior, log_m, log_u)
        state = frozenset(np.flatnonzero(linked).tolist())
        (alpha_m, alpha_u), used = files.alphas, files.alphas[0] > 0
        chances = np.zeros((tune + n_draws, len(linked)))
        kept = np.split(draws.kept, np.cumsum(draws.n_kept)[:-1])
        for sweep in range(tune + n_draws):
            state, chances[sweep] = plain_sweep(
                p, state, *kinds, partial(uniforms, seed, chain, sweep)
            )
            links, others = files.level_counts(drawn_pairs(blocks, layout, state))
            stream = np.zeros(1, np.uint64)
            start_stream(stream, seed, chain, sweep, np.uint64(2**64 - 1))
            log_m, log_u = log_m.copy(), log_u.copy()
            draw_log_dirichlet(stream, alpha_m + links, used, log_m)
            draw_log_dirichlet(stream, alpha_u + others, used, log_u)
            p = dataclasses.replace(p, log_m=log_m, log_u=log_u)
            if (draw := sweep - tune) < 0:
                continue
            assert draws.n_links[draw] == len(blocks.known) + len(state)
            assert frozenset(kept[draw].tolist()) == state
            np.testing.assert_allclose(draws.m[draw][used], np.exp(log_m[used]), rtol=1e-9)
            np.testing.assert_allclose(draws.u[draw][used], np.exp(log_u[used]), rtol=1e-9)
            density = table.log_prior[len(blocks.known) + len(state)]
            density += ((alpha_m - 1 + links) * log_m)[used].sum()
            density += ((alpha_u - 1 + others) * log_u)[used].sum()
            assert draws.log_posterior[draw] == pytest.approx(density, rel=1e-9)
        np.testing.assert_allclose(draws.probability, chances[tune:].mean(0), rtol=1e-9)
        batches = chances[tune:].reshape(draws.n_batches, -1, len(linked)).mean(1)
        np.testing.assert_allclose(draws.batch_squares, (batches**2).sum(0), rtol=1e-9)
    assert min(seen.values()) >= 5


def drawn_pairs(blocks, layout, state):
    """The links of a state, as positions in A and B."""
    drawn = blocks.candidates.take(layout.candidate[sorted(state)])
    return zip(drawn.a.tolist(), drawn.b.tolist(), strict=True)


# --- the posterior, m and u integrated out -----------------------------------------------------


def tiny_files(prior, blocked):
    """A known link, a pair with no rival, and three by three with a missing value and gaps."""
    a = [("1", "ann"), ("2", "bob"), ("2", "bea"), ("3", "bob"), ("4", "eve")]
    b = [("1", "anna"), ("2", "bob"), ("3", "bet"), (None, "bob"), ("4", "eva")]
    key = {False: "ppppp", True: "ppqqq"}[blocked]
    single = [(4, j) for j in range(1, 4)] + [(i, 4) for i in range(1, 4)]
    barred = [(1, 3), *single]
    sides = [
        [{"x": x, "y": y, "key": k} for (x, y), k in zip(side, key, strict=True)] for side in (a, b)
    ]
    fields = [
        bl.exact("x", m_prior=(1, 4), u_prior=(2, 0.5)),
        bl.levenshtein("y", cuts=(0, 0.5), m_prior=(0.5, 1, 3)),
    ]
    return TinyFiles(
        *sides,
        fields,
        prior,
        block=("key",) if blocked else (),
        links=((0, 0),),
        nonlinks=tuple((i, j) for i, j in barred if key[i] == key[j]),
    )


def check_posterior(files, draws):
    """Sample, and compare link probabilities, the law of L and the means of m and u."""
    probability, n_links, means = files.exact
    post = sampler.sample(
        files.blocks, prior=files.prior, restricted=True, draws=draws, tune=100, seed=5
    )
    candidates = post.blocks.candidates
    pairs = list(zip(candidates.a.tolist(), candidates.b.tolist(), strict=True))
    assert sorted(pairs) == sorted(probability)
    expected = [probability[pair] for pair in pairs]
    drawn = np.bincount(post.n_links.ravel(), minlength=len(n_links)) / post.n_links.size
    np.testing.assert_allclose(post.probability, expected, atol=0.01)
    np.testing.assert_allclose(drawn, n_links, atol=0.015)
    np.testing.assert_allclose(post.m.mean((0, 1)), means[0], atol=0.01)
    np.testing.assert_allclose(post.u.mean((0, 1)), means[1], atol=0.01)
    return post


@pytest.mark.parametrize("most_listed", [250, 1])
@pytest.mark.parametrize(
    ("prior", "blocked"), [("penalty", False), ("overlap", False), ("overlap", True)]
)
def test_the_sampler_draws_from_the_exact_posterior(prior, blocked, most_listed, monkeypatch):
    monkeypatch.setattr(layouts, "MOST_LISTED", most_listed)
    post = check_posterior(tiny_files(PRIORS[prior], blocked), draws=20_000)
    assert post.kinds["single"] >= 1
    assert post.kinds["joint" if most_listed == 250 else "large"] == 1


@pytest.mark.parametrize("most_listed", [250, 1])
def test_tiny_dirichlet_parameters(most_listed, monkeypatch):
    """When all pairs at a level are linked its u can be as small as exp(−1000)."""
    monkeypatch.setattr(layouts, "MOST_LISTED", most_listed)
    a, b = [("1", "p"), ("2", "q"), ("3", "r")], [("1", "p"), ("5", "q"), ("6", "t")]
    sides = [[{"x": x, "y": y} for x, y in side] for side in (a, b)]
    fields = [bl.exact(name, m_prior=(1, 1), u_prior=(1, 0.01)) for name in "xy"]
    check_posterior(TinyFiles(*sides, fields, bl.Overlap()), draws=10_000)
