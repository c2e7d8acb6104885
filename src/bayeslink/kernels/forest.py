"""The sampler over forests of pointers, one chain: a record is an original, or a copy of another.

Target, over forests on n records:

    p(partition) · Π_trees 1 / (k (1 + (k − 1) ρ)^(k − 2)) · Π_edges e^w · ρ^(edges not to a root)

with p(partition) that of `linkage.partitions`. Summed over the forests of a partition it is the
partition's posterior. A step takes a record with all that hangs on it, and draws anew by which of
its candidate pairs that part hangs on another tree, or its root if on none: cost goes with the
candidates of the part. A tree with one original and copies of it may also draw another original.
Edges along unlisted pairs are born and die. Two records of one file may change places.
"""

import numpy as np
from numba import types

from bayeslink.kernels import kernel
from bayeslink.kernels.births import Far
from bayeslink.kernels.forest_moves import (
    births_and_deaths,
    change_places,
    move_original,
    move_part,
)
from bayeslink.kernels.forest_records import (
    Output,
    count_edges,
    count_within,
    draw_rho,
    log_prior,
    record,
    tabulate,
)
from bayeslink.kernels.parameters import (
    MODEL_TYPE,
    STATE_TYPE,
    VECTORS_TYPE,
    count_by_level,
    draw_parameters,
    log_density,
    make_room,
    typed,
    weigh,
)
from bayeslink.kernels.random import start_stream, uniform
from bayeslink.kernels.trees import Candidates, Forest, Prior, Space

_MOVES = np.uint64(0)
_BIRTHS = np.uint64(0xFFFFFFFFFFFFFFFE)
_RHO = np.uint64(0xFFFFFFFFFFFFFFFD)

CANDIDATES_TYPE = typed(Candidates, "i8", "i4", "i4", "i8", "i4", "i8", "i4", "i8")
FOREST_TYPE = typed(
    Forest, "i4", "i4", "i4", "i4", "i4", "f8", "i4", "i4", "i4", "i4.", "i4", "i4", "i8", "i8",
    "i8", "i8.", "i4", "i8", "f8",
)  # fmt: skip
PRIOR_TYPE = typed(Prior, "i4", "b1", "f8", "float", "f8.", "f8", "f8")
SPACE_TYPE = typed(Space, "i4", "i8", "i8", "i8", "f8", "i4", "i8", "i8", "i8", "f8", "f8")
_FAR = typed(Far, "i4.", "i4", "f8", "int")
_OUTPUT = typed(
    Output, "i8", "f8", "f8", "i8.", "i8.", "f8..", "f8..", "f8..", "f8.", "f8..", "i4.", "int"
)


@kernel(
    types.void(
        types.int64, types.int64, types.int64, types.int64, types.int64, VECTORS_TYPE,
        CANDIDATES_TYPE, MODEL_TYPE, PRIOR_TYPE, STATE_TYPE, FOREST_TYPE, SPACE_TYPE, _FAR, _OUTPUT,
    )
)  # fmt: skip
def run_forest(
    seed, chain, first_sweep, n_sweeps, first_draw, vectors, candidates, model, prior, state,
    forest, space, far, out,
):  # fmt: skip
    """Run sweeps; record from draw `first_draw` on if that is not negative."""
    rng = np.zeros(1, np.uint64)
    n_patterns, room = len(vectors.levels), make_room(vectors, state)
    odds, root = np.empty(n_patterns), np.empty(n_patterns)
    log_odds, counts = np.empty(n_patterns), np.empty(n_patterns, np.int64)
    held, least = np.empty(room.levels.shape, np.int64), np.empty(len(forest.size), np.int64)
    for sweep in range(first_sweep, first_sweep + n_sweeps):
        key = (seed, chain, sweep)
        weigh(model, vectors, state, room, odds, root)
        log_odds[0] = -np.inf
        for g in range(1, n_patterns):
            log_odds[g] = np.log(odds[g])
        tabulate(forest.log_rho[0], space.log_trees)
        start_stream(rng, key[0], key[1], key[2], _MOVES)
        for b in range(len(candidates.blocks) - 1):
            first, last = candidates.blocks[b], candidates.blocks[b + 1]
            for _ in range(last - first):
                i = first + np.int64(uniform(rng) * (last - first))
                if candidates.start[i] == candidates.start[i + 1] and forest.head[i] < 0:
                    continue  # no pair, no copy
                move_part(i, first, last, candidates, forest, prior, odds, space, rng)
                move_original(i, candidates, forest, prior, log_odds, space, rng)
                change_places(i, candidates, forest, prior, log_odds, rng)
        start_stream(rng, key[0], key[1], key[2], _BIRTHS)
        births_and_deaths(
            far, (sweep - first_sweep) * far.a_sweep, candidates, forest, prior, odds, space, rng
        )
        start_stream(rng, key[0], key[1], key[2], _RHO)
        draw_rho(forest, prior, space.weights, rng)
        count_within(candidates, forest, counts)
        count_by_level(vectors, counts, held)
        count_edges(forest, counts)
        count_by_level(vectors, counts, room.levels)
        draw_parameters(model, vectors, counts, held, room, key, rng, state)
        if first_draw >= 0:
            tabulate(forest.log_rho[0], space.log_trees)
            density = log_density(model, vectors, counts, room, state)
            density += log_prior(forest, prior, space)
            record(first_draw, out, density, model.used, state, forest, least)
            first_draw += 1
