"""The sampler (Section 4), one chain: sweeps over post-hoc blocks, births and deaths, m and u.

A sweep has steps which know nothing of each other: links of candidate pairs given the odds of each
pattern (`sweep_blocks`); links of all other pairs (`kernels.births`); how many links have which
pattern (`count_links`); m and u given those counts (`draw_parameters`); the record of a draw
(`record`). All that the links need of m and u are the odds of patterns (`weigh`); all that m and u
need of the links are the counts. Without pairs for births this is the paper's restricted sampler.

Candidate pairs ("edges") come in three runs: blocks of a single pair, blocks whose matchings have
been listed, and larger blocks. Blocks are visited in turn, each given the number of links
elsewhere, so any prior on that number is exact: `step_cost[n]` = p(C with n links) / p(C with n+1).
"""

from typing import NamedTuple

import numpy as np
from numba import types

from bayeslink.kernels import helper, kernel, maker
from bayeslink.kernels.births import (
    BARRED,
    Ended,
    Far,
    Loose,
    Low,
    Records,
    move_far,
    move_low,
)
from bayeslink.kernels.error_counts import log_constants, log_likelihood_of
from bayeslink.kernels.matchings import edge_chances, joint_weights
from bayeslink.kernels.moves import balanced_move, row_chances
from bayeslink.kernels.random import draw_log_dirichlet, normal, start_stream, uniform

# Weights and costs beyond ±this, in natural logs, are cut off, so that no ratio of two overflows.
# Only Dirichlet parameters far below 1 or absurd penalties get there.
LARGEST = 300.0
_PARAMETERS = np.uint64(0xFFFFFFFFFFFFFFFF)  # the stream of m and u, in place of a block's
_BIRTHS = np.uint64(0xFFFFFFFFFFFFFFFE)  # that of births and deaths


class Vectors(NamedTuple):
    """Comparison vectors, one a pattern; the first, `BARRED`, is no pair's."""

    levels: np.ndarray
    n_missing: np.ndarray
    n_wrong: np.ndarray
    seen_set: np.ndarray  # which of the sets below is seen
    fixed_log_u: np.ndarray  # of the fields that depend on another
    sets: np.ndarray  # [set, field]: whether it is seen


class Graph(NamedTuple):
    """Candidate pairs in their blocks.

    Edges 0 … n_single−1 are single-pair blocks; joint block k has the matchings joint_start[k] …;
    large block k has the rows large_start[k] …, row r the edges row_start[r] ….
    """

    edge_pattern: np.ndarray
    n_single: int
    joint_start: np.ndarray
    set_parent: np.ndarray  # of each listed matching, counted within its block
    set_edge: np.ndarray  # its last edge
    set_size: np.ndarray
    large_start: np.ndarray
    row_start: np.ndarray
    edge_row: np.ndarray
    edge_column: np.ndarray


class Links(NamedTuple):
    """C, in the forms in which the three kinds of blocks want it."""

    linked: np.ndarray  # whether each edge is
    chosen_set: np.ndarray  # which listed matching holds in each joint block
    of_row: np.ndarray  # the edge of each row of the large blocks, −1 for none
    of_column: np.ndarray


class Model(NamedTuple):
    """Priors of m and u, and what the links do not change.

    Fields are independent, or (`by_errors`) m is by the number of wrong fields
    (`inference.error_counts`) and u of the fields that are not `free` is fixed by pattern.
    """

    alpha_m: np.ndarray
    alpha_u: np.ndarray
    used: np.ndarray
    all_counts: np.ndarray  # of all pairs in scope; never below those of the pairs listed
    free: np.ndarray  # fields whose u does not depend on another's
    by_errors: int
    alpha_h: np.ndarray  # [missing, wrong],
    used_h: np.ndarray  # where there is such a number
    alpha_level: np.ndarray
    wrong: np.ndarray  # levels that are wrong,
    right: np.ndarray  # and right
    centre: float  # of log r a priori
    spread: float


class State(NamedTuple):
    """m and u, in logs."""

    log_m: np.ndarray
    log_u: np.ndarray
    log_h: np.ndarray
    log_r: np.ndarray
    log_level: np.ndarray


class Unlisted(NamedTuple):
    """Everything about pairs that are not swept."""

    records: Records
    low: Low
    links_low: Loose
    links_far: Loose
    ended: Ended


class Prior(NamedTuple):
    """p(C), by its number of links."""

    log_prior: np.ndarray
    step_cost: np.ndarray


class Output(NamedTuple):
    """What is kept of the draws: some numbers of each, and sums over draws for each edge."""

    n_links: np.ndarray
    log_posterior: np.ndarray
    m: np.ndarray  # draw × field × level
    u: np.ndarray
    log_h: np.ndarray  # draw × as in `State`
    log_r: np.ndarray
    log_level: np.ndarray
    probability: np.ndarray
    batch: np.ndarray  # sum over the present batch of draws
    batch_squares: np.ndarray  # sum of squares of the batch means
    batch_length: int


class Log(NamedTuple):
    """The links of draws that are kept, one draw after another, as far as the caller took none.

    Edges, low pairs and all other pairs are numbered through, in this order.
    """

    links: np.ndarray
    n_links: np.ndarray  # of each draw
    size: np.ndarray  # how many draws and links there are
    every: int  # so many draws, and the last, one is kept
    n_a: int
    n_b: int


class Room(NamedTuple):
    """Where m and u are worked out."""

    levels: np.ndarray  # links by field and level
    shape: np.ndarray  # of the Dirichlet laws, likewise; also the weights of levels
    shape_h: np.ndarray  # [missing, wrong]
    by_set: np.ndarray  # links by set of fields seen and number wrong
    n_wrong: np.ndarray  # links by field wrong
    sums: np.ndarray  # of products of r, by the number of factors
    constants: np.ndarray  # of the law of wrong fields, like `by_set`


TYPES = {
    "u1": types.Array(types.uint8, 2, "C"),
    "i4": types.Array(types.int32, 1, "C"),
    "i4.": types.Array(types.int32, 2, "C"),
    "i8": types.Array(types.int64, 1, "C"),
    "i8.": types.Array(types.int64, 2, "C"),
    "b1": types.Array(types.boolean, 1, "C"),
    "b1.": types.Array(types.boolean, 2, "C"),
    "f8": types.Array(types.float64, 1, "C"),
    "f8.": types.Array(types.float64, 2, "C"),
    "f8..": types.Array(types.float64, 3, "C"),
    "int": types.int64,
    "float": types.float64,
}


def _typed(kind, *members):
    return types.BaseTuple.from_types([TYPES[member] for member in members], kind)


VECTORS_TYPE = _typed(Vectors, "u1", "i8", "i8", "i8", "f8", "b1.")
GRAPH_TYPE = _typed(Graph, "i4", "int", "i8", "i4", "i4", "i4", "i8", "i8", "i4", "i4")
LINKS_TYPE = _typed(Links, "b1", "i8", "i4", "i4")
MODEL_TYPE = _typed(
    Model,
    "f8.",
    "f8.",
    "b1.",
    "i8.",
    "b1",
    "int",
    "f8.",
    "b1.",
    "f8.",
    "b1.",
    "b1.",
    "float",
    "float",
)
STATE_TYPE = _typed(State, "f8.", "f8.", "f8.", "f8", "f8.")
_FAR = _typed(Far, "i4.", "i4", "f8", "int")
_LOOSE = _typed(Loose, "i8.", "f8", "i8")
_UNLISTED = types.BaseTuple.from_types(
    [
        _typed(Records, "i8", "i4", "i4.", "i4", "b1"),
        _typed(Low, "i4.", "i8", "float", "int", "i4."),
        _LOOSE,
        _LOOSE,
        _typed(Ended, "i8.", "i8"),
    ],
    Unlisted,
)
_PRIOR = _typed(Prior, "f8", "f8")
_OUTPUT = _typed(Output, "i8", "f8", "f8..", "f8..", "f8..", "f8.", "f8..", "f8", "f8", "f8", "int")
_LOG = _typed(Log, "i8", "i8", "i8", "int", "int", "int")


@maker
def make_room(vectors, state):
    shape, n = state.log_m.shape, state.log_m.shape[0] + 1
    return Room(
        np.empty(shape, np.int64),
        np.empty(shape),
        np.empty((n, n)),
        np.empty((len(vectors.sets), n), np.int64),
        np.empty(n - 1, np.int64),
        np.empty(n),
        np.zeros((len(vectors.sets), n)),
    )


# --- links given m and u ------------------------------------------------------------------------


@helper
def weigh(model, vectors, state, room, odds, root):
    """Odds exp(w) of each pattern (Eq. 6), and their square roots."""
    constants, of_level = room.constants, room.shape
    if model.by_errors:
        log_constants(state.log_r, vectors.sets, constants, room.sums)
    weigh_levels(model, state, of_level)
    odds[BARRED] = 0.0
    root[BARRED] = 0.0
    for g in range(1, len(odds)):
        w = 0.0
        if model.by_errors:
            e = vectors.n_wrong[g]
            w = state.log_h[vectors.n_missing[g], e] - constants[vectors.seen_set[g], e]
            w -= vectors.fixed_log_u[g]
        for j in range(vectors.levels.shape[1]):
            w += of_level[j, vectors.levels[g, j]]
        root[g] = np.exp(0.5 * min(max(w, -LARGEST), LARGEST))
        odds[g] = root[g] * root[g]


@helper
def weigh_levels(model, state, of_level):
    """What each level of each field adds to the weight of a pattern; a missing one nothing."""
    for j in range(of_level.shape[0]):
        of_level[j, 0] = 0.0
        for h in range(1, of_level.shape[1]):
            if not model.by_errors:
                of_level[j, h] = state.log_m[j, h] - state.log_u[j, h]
                continue
            of_level[j, h] = state.log_level[j, h]
            if model.wrong[j, h]:
                of_level[j, h] += state.log_r[j]
            if model.free[j]:
                of_level[j, h] -= state.log_u[j, h]


@helper
def sweep_singles(graph, links, odds, step_cost, n_links, rng, expected, recording):
    """Single-pair blocks: each a Bernoulli draw. Returns the number of links."""
    for e in range(graph.n_single):
        n_links -= links.linked[e]
        weight = odds[graph.edge_pattern[e]]
        total = weight + step_cost[n_links]
        links.linked[e] = uniform(rng) * total < weight  # the next pair waits for it: no division
        n_links += links.linked[e]
        if recording:
            expected[e] = weight / total
    return n_links


@helper
def draw_listed(k, graph, links, odds, step_cost, n_links, rng, weights, expected, recording):
    """A block whose matchings are listed: a draw of one of them. Returns the number of links."""
    first, last = graph.joint_start[k], graph.joint_start[k + 1]
    s = links.chosen_set[k]
    n_links -= graph.set_size[first + s]
    while s > 0:
        links.linked[graph.set_edge[first + s]] = False
        s = graph.set_parent[first + s]
    total = joint_weights(
        first, last, graph.set_parent, graph.set_edge, graph.set_size, graph.edge_pattern, odds,
        step_cost, n_links, weights
    )  # fmt: skip
    threshold = uniform(rng) * total
    s = 0
    so_far = weights[0]
    while so_far <= threshold and s + 1 < last - first:
        s += 1
        so_far += weights[s]
    links.chosen_set[k] = s
    n_links += graph.set_size[first + s]
    while s > 0:
        links.linked[graph.set_edge[first + s]] = True
        s = graph.set_parent[first + s]
    if recording:
        edge_chances(first, last, graph.set_parent, graph.set_edge, weights, total, expected)
    return n_links


@helper
def make_moves(low, high, graph, links, root, step_cost, n_links, rng, weights):
    """Balanced moves among rows low … high of a large block. Returns the number of links."""
    for _ in range((high - low + 3) // 4):
        row = low + np.int64(uniform(rng) * (high - low))
        n_links = balanced_move(
            row, uniform(rng), uniform(rng), graph.row_start, graph.edge_row, graph.edge_column,
            graph.edge_pattern, root, step_cost, n_links, links.of_row, links.of_column, weights
        )  # fmt: skip
    return n_links


@helper
def draw_row(row, graph, links, odds, step_cost, n_links, rng, weights, expected, recording):
    """A draw of the link of a row of a large block, `of_row`. Returns the number of links."""
    row_start, edge_column = graph.row_start, graph.edge_column
    of_row, of_column = links.of_row, links.of_column
    e = of_row[row]
    if e >= 0:
        of_column[edge_column[e]] = -1
        n_links -= 1
    total = row_chances(
        row, row_start, edge_column, graph.edge_pattern, odds, step_cost, n_links,
        of_column, weights
    )  # fmt: skip
    threshold = uniform(rng) * total
    so_far = 1.0
    first, last = row_start[row], row_start[row + 1]
    if recording:
        for e in range(first, last):
            expected[e] = weights[e - first] / total
    of_row[row] = -1
    if threshold < so_far:
        return n_links
    for e in range(first, last):
        so_far += weights[e - first]
        if threshold < so_far:
            of_row[row] = e
            of_column[edge_column[e]] = e
            return n_links + 1
    return n_links


@helper
def sweep_large(k, graph, links, odds, root, step_cost, n_links, rng, weights, expected, recording):
    """A large block: balanced moves, then a draw of every row. Returns the number of links."""
    low, high = graph.large_start[k], graph.large_start[k + 1]
    n_links = make_moves(low, high, graph, links, root, step_cost, n_links, rng, weights)
    for row in range(low, high):
        n_links = draw_row(
            row, graph, links, odds, step_cost, n_links, rng, weights, expected, recording
        )
    for e in range(graph.row_start[low], graph.row_start[high]):
        links.linked[e] = False
    for row in range(low, high):
        if links.of_row[row] >= 0:
            links.linked[links.of_row[row]] = True
    return n_links


@helper
def sweep_blocks(
    graph, links, odds, root, step_cost, n_links, key, rng, weights, expected, recording
):
    """One draw of all links of candidate pairs given the odds of patterns.

    `expected` gets (if `recording`) the probability of each edge given the other blocks. `key` is
    (seed, chain, sweep). Returns the number of links.
    """
    n_joint, n_large = len(graph.joint_start) - 1, len(graph.large_start) - 1
    start_stream(rng, key[0], key[1], key[2], 0)
    n_links = sweep_singles(graph, links, odds, step_cost, n_links, rng, expected, recording)
    for k in range(n_joint):
        start_stream(rng, key[0], key[1], key[2], 1 + k)
        n_links = draw_listed(
            k, graph, links, odds, step_cost, n_links, rng, weights, expected, recording
        )
    for k in range(n_large):
        start_stream(rng, key[0], key[1], key[2], 1 + n_joint + k)
        n_links = sweep_large(
            k, graph, links, odds, root, step_cost, n_links, rng, weights, expected, recording
        )
    return n_links


@helper
def count_links(edge_pattern, linked, links_low, links_far, known, counts):
    """Links with each pattern, those known to hold included."""
    for g in range(len(counts)):
        counts[g] = known[g]
    for e in range(len(linked)):
        counts[edge_pattern[e]] += linked[e]
    for k in range(links_low.size[0]):
        counts[links_low.links[k, 2]] += 1
    for k in range(links_far.size[0]):
        counts[links_far.links[k, 2]] += 1


@helper
def most_weights(graph):
    """Room for the weights of the largest thing that is drawn at once."""
    most = 1
    for k in range(len(graph.joint_start) - 1):
        most = max(most, graph.joint_start[k + 1] - graph.joint_start[k])
    for r in range(len(graph.row_start) - 1):
        most = max(most, graph.row_start[r + 1] - graph.row_start[r])
    return most


# --- m and u given the links ----------------------------------------------------------------------


@helper
def draw_parameters(model, vectors, counts, room, key, rng, state):
    """m and u given how many links have which pattern; `room.levels` gets their level counts."""
    log_m, log_u, levels, shape = state.log_m, state.log_u, room.levels, room.shape
    n_fields, width = log_m.shape
    for j in range(n_fields):
        for h in range(width):
            levels[j, h] = 0
    for g in range(1, len(counts)):
        if counts[g] > 0:
            for j in range(n_fields):
                levels[j, vectors.levels[g, j]] += counts[g]
    start_stream(rng, key[0], key[1], key[2], _PARAMETERS)
    for j in range(n_fields):
        for h in range(width):
            shape[j, h] = model.alpha_m[j, h] + levels[j, h]
    draw_log_dirichlet(rng, shape, model.used, log_m)
    for j in range(n_fields):
        for h in range(width):
            others = max(0, model.all_counts[j, h] - levels[j, h])  # counts may be estimates
            shape[j, h] = model.alpha_u[j, h] + others
    draw_log_dirichlet(rng, shape, model.used, log_u)
    if model.by_errors:
        draw_error_law(model, vectors, counts, room, rng, state)


@helper
def draw_error_law(model, vectors, counts, room, rng, state):
    """h and levels by Dirichlet draws; r by a random walk in each log r in turn.

    The step is as wide as the field's number of wrong links lets the posterior be, about.
    """
    levels, shape, shape_h = room.levels, room.shape, room.shape_h
    by_set, n_wrong_of = room.by_set, room.n_wrong
    n_fields, width = levels.shape
    for s in range(len(by_set)):
        for e in range(n_fields + 1):
            by_set[s, e] = 0
    for a in range(n_fields + 1):
        for e in range(n_fields + 1):
            shape_h[a, e] = model.alpha_h[a, e]
    for g in range(1, len(counts)):
        by_set[vectors.seen_set[g], vectors.n_wrong[g]] += counts[g]
        shape_h[vectors.n_missing[g], vectors.n_wrong[g]] += counts[g]
    draw_log_dirichlet(rng, shape_h, model.used_h, state.log_h)
    for j in range(n_fields):
        for h in range(width):
            shape[j, h] = model.alpha_level[j, h] + levels[j, h]
    draw_log_dirichlet(rng, shape, model.wrong, state.log_level)
    draw_log_dirichlet(rng, shape, model.right, state.log_level)
    for j in range(n_fields):
        n_wrong_of[j] = 0
        for h in range(width):
            if model.wrong[j, h]:
                n_wrong_of[j] += levels[j, h]
    for j in range(n_fields):
        here = state.log_r[j]
        n_right = 0
        for h in range(width):
            if model.right[j, h]:
                n_right += levels[j, h]
        likely = n_wrong_of[j] * n_right / max(1, n_wrong_of[j] + n_right)
        step = 2.4 * normal(rng) / np.sqrt(likely + 1.0 / model.spread**2)
        before = log_likelihood_of(j, state.log_r, vectors.sets, by_set, n_wrong_of, room.sums)
        before -= 0.5 * ((here - model.centre) / model.spread) ** 2
        state.log_r[j] = here + step
        after = log_likelihood_of(j, state.log_r, vectors.sets, by_set, n_wrong_of, room.sums)
        after -= 0.5 * ((here + step - model.centre) / model.spread) ** 2
        if not np.log(1.0 - uniform(rng)) < after - before:
            state.log_r[j] = here


@helper
def log_density(model, vectors, counts, room, state):
    """log p(Γ | C, m, u) + log p(m, u), up to the priors' constants."""
    log_m, log_u, levels, constants = state.log_m, state.log_u, room.levels, room.constants
    density = 0.0
    for j in range(log_m.shape[0]):
        for h in range(1, log_m.shape[1]):
            if not model.used[j, h]:
                continue
            if model.by_errors == 0:
                density += (model.alpha_m[j, h] - 1.0 + levels[j, h]) * log_m[j, h]
            else:
                density += (model.alpha_level[j, h] - 1.0 + levels[j, h]) * state.log_level[j, h]
                if model.wrong[j, h]:
                    density += levels[j, h] * state.log_r[j]
            if model.free[j]:
                others = model.all_counts[j, h] - levels[j, h]
                density += (model.alpha_u[j, h] - 1.0 + others) * log_u[j, h]
    if model.by_errors:
        log_constants(state.log_r, vectors.sets, constants, room.sums)
        for g in range(1, len(counts)):
            if counts[g] > 0:
                a, e = vectors.n_missing[g], vectors.n_wrong[g]
                each = state.log_h[a, e] - constants[vectors.seen_set[g], e]
                density += counts[g] * (each - vectors.fixed_log_u[g])
        for a in range(len(state.log_h)):
            for e in range(len(state.log_h) - a):
                density += (model.alpha_h[a, e] - 1.0) * state.log_h[a, e]
        for j in range(len(state.log_r)):
            density -= 0.5 * ((state.log_r[j] - model.centre) / model.spread) ** 2
    return density


# --- draws ----------------------------------------------------------------------------------------


@helper
def record(draw, out, n_links, density, used, state, expected):
    """Keep what there is to know of a draw, but for its links."""
    log_m, log_u = state.log_m, state.log_u
    out.n_links[draw] = n_links
    out.log_posterior[draw] = density
    for a in range(state.log_h.shape[0]):
        for e in range(state.log_h.shape[1]):
            out.log_h[draw, a, e] = state.log_h[a, e]
    for j in range(log_m.shape[0]):
        out.log_r[draw, j] = state.log_r[j]
        for h in range(log_m.shape[1]):
            out.log_level[draw, j, h] = state.log_level[j, h]
        for h in range(1, log_m.shape[1]):
            if used[j, h]:
                out.m[draw, j, h] = np.exp(log_m[j, h])
                out.u[draw, j, h] = np.exp(log_u[j, h])
    for e in range(len(expected)):
        out.probability[e] += expected[e]
        out.batch[e] += expected[e]
    if (draw + 1) % out.batch_length == 0:
        for e in range(len(expected)):
            out.batch_squares[e] += (out.batch[e] / out.batch_length) ** 2
            out.batch[e] = 0.0


@helper
def keep(log, linked, n_low, links_low, links_far):
    """Keep the links of a draw."""
    n_edges, first = len(linked), log.size[1]
    n = first
    for e in range(n_edges):
        if linked[e]:
            log.links[n] = e
            n += 1
    for k in range(links_low.size[0]):
        log.links[n] = n_edges + links_low.links[k, 3]
        n += 1
    for k in range(links_far.size[0]):
        a, b = links_far.links[k, 0], links_far.links[k, 1] - log.n_a
        log.links[n] = n_edges + n_low + a * log.n_b + b
        n += 1
    log.n_links[log.size[0]] = n - first
    log.size[0] += 1
    log.size[1] = n


@kernel(
    types.int64(
        types.int64, types.int64, types.int64, types.int64, types.int64, VECTORS_TYPE, GRAPH_TYPE,
        MODEL_TYPE, _PRIOR, STATE_TYPE, TYPES["i8"], LINKS_TYPE, _UNLISTED, _FAR, types.int64,
        _OUTPUT, _LOG,
    )
)  # fmt: skip
def run_sweeps(
    seed, chain, first_sweep, n_sweeps, first_draw, vectors, graph, model, prior, state, known,
    links, unlisted, far, n_links, out, log,
):  # fmt: skip
    """Run sweeps; record from draw `first_draw` on if that is not negative. Returns the links."""
    rng = np.zeros(1, np.uint64)
    n_patterns, room = len(vectors.levels), make_room(vectors, state)
    odds, root, sums = np.empty(n_patterns), np.empty(n_patterns), np.empty(n_patterns)
    counts = np.empty(n_patterns, np.int64)
    weights, expected = np.empty(most_weights(graph)), np.zeros(len(graph.edge_pattern))
    step_cost, linked, edge_pattern = prior.step_cost, links.linked, graph.edge_pattern
    links_low, links_far = unlisted.links_low, unlisted.links_far
    for sweep in range(first_sweep, first_sweep + n_sweeps):
        key = (seed, chain, sweep)
        weigh(model, vectors, state, room, odds, root)
        n_links = sweep_blocks(
            graph, links, odds, root, step_cost, n_links, key, rng, weights, expected,
            first_draw >= 0
        )  # fmt: skip
        start_stream(rng, key[0], key[1], key[2], _BIRTHS)
        n_links = move_low(
            unlisted.low, links_low, unlisted.records, linked, edge_pattern, odds, step_cost,
            n_links, rng, first_draw, sums
        )  # fmt: skip
        n_links = move_far(
            far, (sweep - first_sweep) * far.a_sweep, links_far, unlisted.ended, unlisted.records,
            linked, edge_pattern, odds, step_cost, n_links, rng, first_draw
        )  # fmt: skip
        count_links(edge_pattern, linked, links_low, links_far, known, counts)
        draw_parameters(model, vectors, counts, room, key, rng, state)
        if first_draw >= 0:
            density = log_density(model, vectors, counts, room, state)
            density += prior.log_prior[n_links]
            record(first_draw, out, n_links, density, model.used, state, expected)
            first_draw += 1
            if first_draw % log.every == 0 or first_draw == len(out.n_links):
                keep(log, linked, len(unlisted.low.pairs), links_low, links_far)
    return n_links
