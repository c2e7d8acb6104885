"""The sampler (Section 4), one chain: sweeps over post-hoc blocks, births and deaths, m and u.

A sweep has steps which know nothing of each other: links of candidate pairs given the odds of each
pattern (`sweep_blocks`); links of all other pairs (`kernels.births`); how many links have which
pattern (`count_links`); m and u given those counts (`kernels.parameters`); the record of a draw
(`record`). All that the links need of m and u are the odds of patterns (`weigh`); all that m and u
need of the links are the counts. Without pairs for births this is the paper's restricted sampler.

Candidate pairs ("edges") come in three runs: blocks of a single pair, blocks whose matchings have
been listed, and larger blocks. Blocks are visited in turn, each given the number of links
elsewhere, so any prior on that number is exact: `step_cost[n]` = p(C with n links) / p(C with n+1).
"""

from typing import NamedTuple

import numpy as np
from numba import types

from bayeslink.kernels import helper, kernel
from bayeslink.kernels.births import (
    Ended,
    Far,
    Loose,
    Low,
    Records,
    move_far,
    move_low,
)
from bayeslink.kernels.matchings import edge_chances, joint_weights
from bayeslink.kernels.moves import balanced_move, row_chances
from bayeslink.kernels.parameters import (
    MODEL_TYPE,
    STATE_TYPE,
    TYPES,
    VECTORS_TYPE,
    count_by_level,
    draw_parameters,
    log_density,
    make_room,
    typed,
    weigh,
)
from bayeslink.kernels.random import start_stream, uniform

_BIRTHS = np.uint64(0xFFFFFFFFFFFFFFFE)  # that of births and deaths


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


GRAPH_TYPE = typed(Graph, "i4", "int", "i8", "i4", "i4", "i4", "i8", "i8", "i4", "i4")
LINKS_TYPE = typed(Links, "b1", "i8", "i4", "i4")
_FAR = typed(Far, "i4.", "i4", "f8", "int")
_LOOSE = typed(Loose, "i8.", "f8", "i8")
_UNLISTED = types.BaseTuple.from_types(
    [
        typed(Records, "i8", "i4", "i4.", "i4", "b1"),
        typed(Low, "i4.", "i8", "float", "int", "i4."),
        _LOOSE,
        _LOOSE,
        typed(Ended, "i8.", "i8"),
    ],
    Unlisted,
)
_PRIOR = typed(Prior, "f8", "f8")
_OUTPUT = typed(Output, "i8", "f8", "f8..", "f8..", "f8..", "f8.", "f8..", "f8", "f8", "f8", "int")
_LOG = typed(Log, "i8", "i8", "i8", "int", "int", "int")


# --- links given m and u ------------------------------------------------------------------------


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
        count_by_level(vectors, counts, room.levels)
        draw_parameters(model, vectors, counts, room.levels, room, key, rng, state)
        if first_draw >= 0:
            density = log_density(model, vectors, counts, room, state)
            density += prior.log_prior[n_links]
            record(first_draw, out, n_links, density, model.used, state, expected)
            first_draw += 1
            if first_draw % log.every == 0 or first_draw == len(out.n_links):
                keep(log, linked, len(unlisted.low.pairs), links_low, links_far)
    return n_links
