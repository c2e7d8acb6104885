"""The restricted sampler (Section 4), one chain: sweeps over post-hoc blocks, then m and u.

A sweep is three steps, each of which knows nothing of the others: links given the odds of each
pattern (`sweep_blocks`), which gives back how many links have which pattern; m and u given those
counts (`draw_parameters`); the record of a draw (`record`). All that the links need of m and u are
the odds of patterns (`weigh`); all that m and u need of the links are the counts.

Candidate pairs ("edges") come in three runs: blocks of a single pair, blocks whose matchings have
been listed, and larger blocks. Blocks are visited in turn, each given the number of links
elsewhere, so any prior on that number is exact: `step_cost[n]` = p(C with n links) / p(C with n+1).
"""

from typing import NamedTuple

import numba
import numpy as np
from numba import types

from bayeslink.kernels import kernel
from bayeslink.kernels.matchings import joint_weights
from bayeslink.kernels.moves import balanced_move, row_chances
from bayeslink.kernels.random import draw_log_dirichlet, start_stream, uniform

helper = numba.njit(nogil=True)

# Weights and costs beyond ±this, in natural logs, are cut off, so that no ratio of two overflows.
# Only Dirichlet parameters far below 1 or absurd penalties get there.
LARGEST = 300.0
_PARAMETERS = np.uint64(0xFFFFFFFFFFFFFFFF)  # the stream of m and u, in place of a block's


class Graph(NamedTuple):
    """Candidate pairs in their blocks.

    Edges 0 … n_single−1 are single-pair blocks; joint block k has the matchings joint_start[k] …;
    large block k has the rows large_start[k] …, row r the edges row_start[r] ….
    """

    patterns: np.ndarray  # comparison vectors, one row a pattern
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
    """Independent fields: Dirichlet priors, and the level counts that the links do not change."""

    alpha_m: np.ndarray
    alpha_u: np.ndarray
    used: np.ndarray
    all_counts: np.ndarray  # of all pairs in scope; never below those of the pairs listed
    known_counts: np.ndarray  # of the links known to hold


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
    probability: np.ndarray
    batch: np.ndarray  # sum over the present batch of draws
    batch_squares: np.ndarray  # sum of squares of the batch means
    batch_length: int


_KINDS = {
    "u1": types.Array(types.uint8, 2, "C"),
    "i4": types.Array(types.int32, 1, "C"),
    "i8": types.Array(types.int64, 1, "C"),
    "i8.": types.Array(types.int64, 2, "C"),
    "b1": types.Array(types.boolean, 1, "C"),
    "b1.": types.Array(types.boolean, 2, "C"),
    "f8": types.Array(types.float64, 1, "C"),
    "f8.": types.Array(types.float64, 2, "C"),
    "f8..": types.Array(types.float64, 3, "C"),
    "int": types.int64,
}


def _typed(kind, *members):
    return types.BaseTuple.from_types([_KINDS[member] for member in members], kind)


_GRAPH = _typed(Graph, "u1", "i4", "int", "i8", "i4", "i4", "i4", "i8", "i8", "i4", "i4")
_LINKS = _typed(Links, "b1", "i8", "i4", "i4")
_MODEL = _typed(Model, "f8.", "f8.", "b1.", "i8.", "i8.")
_PRIOR = _typed(Prior, "f8", "f8")
_OUTPUT = _typed(Output, "i8", "f8", "f8..", "f8..", "f8", "f8", "f8", "int")


# --- links given m and u ------------------------------------------------------------------------


@helper
def weigh(patterns, log_m, log_u, odds, root):
    """Odds exp(w) of each pattern (Eq. 6), and their square roots."""
    for g in range(len(patterns)):
        w = 0.0
        for j in range(patterns.shape[1]):
            if patterns[g, j] > 0:
                w += log_m[j, patterns[g, j]] - log_u[j, patterns[g, j]]
        w = min(max(w, -LARGEST), LARGEST)
        odds[g] = np.exp(w)
        root[g] = np.exp(0.5 * w)


@helper
def sweep_singles(graph, links, odds, step_cost, n_links, rng, expected, recording):
    """Single-pair blocks: each a Bernoulli draw. Returns the number of links."""
    for e in range(graph.n_single):
        n_links -= links.linked[e]
        chance = odds[graph.edge_pattern[e]]
        chance /= chance + step_cost[n_links]
        links.linked[e] = uniform(rng) < chance
        n_links += links.linked[e]
        if recording:
            expected[e] = chance
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
    if recording:  # a matching's weight goes to its last edge and to all before it
        for s in range(1, last - first):
            expected[graph.set_edge[first + s]] = 0.0
        for s in range(last - first - 1, 0, -1):
            expected[graph.set_edge[first + s]] += weights[s] / total
            weights[graph.set_parent[first + s]] += weights[s]
    return n_links


@helper
def sweep_large(k, graph, links, odds, root, step_cost, n_links, rng, weights, expected, recording):
    """A large block: balanced moves, then a draw of every row. Returns the number of links."""
    row_start, edge_row, edge_column = graph.row_start, graph.edge_row, graph.edge_column
    of_row, of_column = links.of_row, links.of_column
    low, high = graph.large_start[k], graph.large_start[k + 1]
    for _ in range((high - low + 3) // 4):
        row = low + np.int64(uniform(rng) * (high - low))
        n_links = balanced_move(
            row, uniform(rng), uniform(rng), row_start, edge_row, edge_column,
            graph.edge_pattern, root, step_cost, n_links, of_row, of_column, weights
        )  # fmt: skip
    for row in range(low, high):
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
        of_row[row] = -1
        for e in range(row_start[row], row_start[row + 1]):
            weight = weights[e - row_start[row]]
            links.linked[e] = so_far <= threshold and threshold < so_far + weight
            so_far += weight
            if links.linked[e]:
                of_row[row] = e
                of_column[edge_column[e]] = e
                n_links += 1
            if recording:
                expected[e] = weight / total
    return n_links


@helper
def sweep_blocks(
    graph, links, odds, root, step_cost, n_links, key, rng, weights, expected, recording, counts
):
    """One draw of all links given the odds of patterns.

    `counts` gets the links with each pattern, `expected` (if `recording`) the probability of each
    edge given the other blocks. `key` is (seed, chain, sweep). Returns the number of links.
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
    for g in range(len(counts)):
        counts[g] = 0
    for e in range(len(links.linked)):
        counts[graph.edge_pattern[e]] += links.linked[e]
    return n_links


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
def draw_parameters(model, patterns, counts, levels, shape, key, rng, log_m, log_u):
    """m and u given how many links have which pattern; `levels` gets their level counts."""
    n_fields, width = log_m.shape
    for j in range(n_fields):
        for h in range(width):
            levels[j, h] = model.known_counts[j, h]
    for g in range(len(patterns)):
        for j in range(n_fields):
            levels[j, patterns[g, j]] += counts[g]
    start_stream(rng, key[0], key[1], key[2], _PARAMETERS)
    for j in range(n_fields):
        for h in range(width):
            shape[j, h] = model.alpha_m[j, h] + levels[j, h]
    draw_log_dirichlet(rng, shape, model.used, log_m)
    for j in range(n_fields):
        for h in range(width):
            shape[j, h] = model.alpha_u[j, h] + (model.all_counts[j, h] - levels[j, h])
    draw_log_dirichlet(rng, shape, model.used, log_u)


@helper
def log_density(model, levels, log_m, log_u):
    """log p(Γ | C, m, u) + log p(m, u), up to the Dirichlets' constants."""
    density = 0.0
    for j in range(log_m.shape[0]):
        for h in range(1, log_m.shape[1]):
            if model.used[j, h]:
                density += (model.alpha_m[j, h] - 1.0 + levels[j, h]) * log_m[j, h]
                others = model.all_counts[j, h] - levels[j, h]
                density += (model.alpha_u[j, h] - 1.0 + others) * log_u[j, h]
    return density


# --- draws ----------------------------------------------------------------------------------------


@helper
def record(draw, out, n_links, density, used, log_m, log_u, expected):
    """Keep a draw."""
    out.n_links[draw] = n_links
    out.log_posterior[draw] = density
    for j in range(log_m.shape[0]):
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


@kernel(
    types.int64(
        types.int64, types.int64, types.int64, types.int64, types.int64,
        _GRAPH, _MODEL, _PRIOR, _KINDS["f8."], _KINDS["f8."], _LINKS, types.int64, _OUTPUT,
    )
)  # fmt: skip
def run_sweeps(
    seed, chain, first_sweep, n_sweeps, first_draw,
    graph, model, prior, log_m, log_u, links, n_links, out,
):  # fmt: skip
    """Run sweeps; record from draw `first_draw` on if that is not negative. Returns the links."""
    rng = np.zeros(1, np.uint64)
    odds, root = np.empty(len(graph.patterns)), np.empty(len(graph.patterns))
    counts = np.empty(len(graph.patterns), np.int64)
    levels, shape = np.empty(log_m.shape, np.int64), np.empty(log_m.shape)
    weights, expected = np.empty(most_weights(graph)), np.zeros(len(graph.edge_pattern))
    for sweep in range(first_sweep, first_sweep + n_sweeps):
        key = (seed, chain, sweep)
        weigh(graph.patterns, log_m, log_u, odds, root)
        n_links = sweep_blocks(
            graph, links, odds, root, prior.step_cost, n_links, key, rng, weights, expected,
            first_draw >= 0, counts
        )  # fmt: skip
        draw_parameters(model, graph.patterns, counts, levels, shape, key, rng, log_m, log_u)
        if first_draw >= 0:
            density = prior.log_prior[n_links] + log_density(model, levels, log_m, log_u)
            record(first_draw, out, n_links, density, model.used, log_m, log_u, expected)
            first_draw += 1
    return n_links
