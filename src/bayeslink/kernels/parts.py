"""Parts of a sweep, each drawn by itself at a fixed cost of a link; see `inference.spread`.

A part is a `Graph` of its own. Every draw of it is a function of (seed, chain, sweep), of the odds
of patterns, and, for large blocks alone, of the links before.
"""

import numpy as np
from numba import types

from bayeslink.kernels import helper, kernel
from bayeslink.kernels.matchings import LONGEST, edge_chances, joint_weights
from bayeslink.kernels.moves import row_chances
from bayeslink.kernels.random import start_stream, uniform
from bayeslink.kernels.sampling import (
    GRAPH_TYPE,
    LINKS_TYPE,
    MODEL_TYPE,
    STATE_TYPE,
    TYPES,
    VECTORS_TYPE,
    draw_listed,
    draw_parameters,
    draw_row,
    log_density,
    make_moves,
    make_room,
    most_weights,
    weigh,
)

SINGLES = 4096  # single-pair blocks that share a stream of random numbers
_F8, _I8 = TYPES["f8"], TYPES["i8"]


@kernel(types.Tuple((_F8, _F8))(MODEL_TYPE, VECTORS_TYPE, STATE_TYPE), rare=True)
def odds_of(model, vectors, state):
    """Odds of each pattern, and their square roots."""
    n = len(vectors.levels)
    odds, root = np.empty(n), np.empty(n)
    weigh(model, vectors, state, make_room(vectors, state), odds, root)
    return odds, root


@kernel(
    types.float64(types.int64, types.int64, types.int64, MODEL_TYPE, VECTORS_TYPE, _I8, STATE_TYPE),
    rare=True,
)
def next_parameters(seed, chain, sweep, model, vectors, counts, state):
    """Draw m and u given the links by pattern; returns the log density of both and the data."""
    rng, room = np.zeros(1, np.uint64), make_room(vectors, state)
    draw_parameters(model, vectors, counts, room, (seed, chain, sweep), rng, state)
    return log_density(model, vectors, counts, room, state)


@helper
def draw_large(k, graph, links, odds, root, step_cost, rng, weights):
    """A large block: moves, then all rows, or the same the other way round, at even odds.

    So the draw is reversible: it goes from one state to another as often as back.
    """
    low, high = graph.large_start[k], graph.large_start[k + 1]
    n_links = 0
    for row in range(low, high):
        n_links += links.of_row[row] >= 0
    backwards = uniform(rng) < 0.5
    if not backwards:
        n_links = make_moves(low, high, graph, links, root, step_cost, n_links, rng, weights)
    for i in range(high - low):
        row = high - 1 - i if backwards else low + i
        n_links = draw_row(
            row, graph, links, odds, step_cost, n_links, rng, weights, weights, False
        )
    if backwards:
        make_moves(low, high, graph, links, root, step_cost, n_links, rng, weights)


@kernel(
    types.void(
        types.int64, types.int64, types.int64, types.int64, GRAPH_TYPE, _F8, _F8, types.float64,
        LINKS_TYPE, _I8,
    ),
    rare=True,
)  # fmt: skip
def sweep_part(seed, chain, sweep, stream, graph, odds, root, cost, links, counts):
    """Draw the links of a part at a fixed cost of a link; count them by pattern.

    Of the links before, only `of_row` is looked at. `stream` is that of the part's first block.
    """
    rng, linked = np.zeros(1, np.uint64), links.linked
    n_rows, longest = len(graph.row_start) - 1, 0
    for k in range(len(graph.large_start) - 1):
        longest = max(longest, graph.large_start[k + 1] - graph.large_start[k])
    step_cost = np.full(LONGEST + longest + 2, cost)
    weights = np.empty(most_weights(graph))
    linked[:] = False
    for e in range(graph.n_single):
        if e % SINGLES == 0:
            start_stream(rng, seed, chain, sweep, stream + e // SINGLES)
        chance = odds[graph.edge_pattern[e]]
        linked[e] = uniform(rng) < chance / (chance + cost)
    for k in range(len(graph.joint_start) - 1):
        start_stream(rng, seed, chain, sweep, stream + k)
        links.chosen_set[k] = 0
        draw_listed(k, graph, links, odds, step_cost, 0, rng, weights, weights, False)
    links.of_column[:] = -1
    for row in range(n_rows):
        if links.of_row[row] >= 0:
            links.of_column[graph.edge_column[links.of_row[row]]] = links.of_row[row]
    for k in range(len(graph.large_start) - 1):
        start_stream(rng, seed, chain, sweep, stream + k)
        draw_large(k, graph, links, odds, root, step_cost, rng, weights)
    for row in range(n_rows):
        for e in range(graph.row_start[row], graph.row_start[row + 1]):
            linked[e] = e == links.of_row[row]
    counts[:] = 0
    for e in range(len(linked)):
        counts[graph.edge_pattern[e]] += linked[e]


@kernel(types.void(GRAPH_TYPE, LINKS_TYPE, _F8, _F8, types.int64, _F8), rare=True)
def expect_part(graph, links, odds, step_cost, n_links, expected):
    """Probability of each edge given the links elsewhere, of which there are n_links in all."""
    weights = np.empty(most_weights(graph))
    for e in range(graph.n_single):
        chance = odds[graph.edge_pattern[e]]
        expected[e] = chance / (chance + step_cost[n_links - links.linked[e]])
    for k in range(len(graph.joint_start) - 1):
        first, last = graph.joint_start[k], graph.joint_start[k + 1]
        rest = n_links - graph.set_size[first + links.chosen_set[k]]
        total = joint_weights(
            first, last, graph.set_parent, graph.set_edge, graph.set_size, graph.edge_pattern,
            odds, step_cost, rest, weights
        )  # fmt: skip
        edge_chances(first, last, graph.set_parent, graph.set_edge, weights, total, expected)
    for row in range(len(graph.row_start) - 1):
        held = links.of_row[row]
        if held >= 0:
            links.of_column[graph.edge_column[held]] = -1
        total = row_chances(
            row, graph.row_start, graph.edge_column, graph.edge_pattern, odds, step_cost,
            n_links - (held >= 0), links.of_column, weights
        )  # fmt: skip
        for e in range(graph.row_start[row], graph.row_start[row + 1]):
            expected[e] = weights[e - graph.row_start[row]] / total
        if held >= 0:
            links.of_column[graph.edge_column[held]] = held
