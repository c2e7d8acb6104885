"""m and u, one draw at a time: counts by pattern in, odds of patterns out.

Nothing here knows who may link whom. A sampler of links asks for the odds of each pattern
(`weigh`), and tells how many links have which pattern (`draw_parameters`).
"""

import math
from typing import NamedTuple

import numpy as np
from numba import types

from bayeslink.kernels import helper, maker
from bayeslink.kernels.births import BARRED
from bayeslink.kernels.error_counts import log_constants, log_likelihood_of
from bayeslink.kernels.random import draw_log_dirichlet, normal, start_stream, uniform

# Weights and costs beyond ±this, in natural logs, are cut off, so that no ratio of two overflows.
# Only Dirichlet parameters far below 1 or absurd penalties get there.
LARGEST = 300.0
_PARAMETERS = np.uint64(0xFFFFFFFFFFFFFFFF)  # the stream of m and u, in place of a block's


class Vectors(NamedTuple):
    """Comparison vectors, one a pattern; the first, `BARRED`, is no pair's."""

    levels: np.ndarray
    n_missing: np.ndarray
    n_wrong: np.ndarray
    seen_set: np.ndarray  # which of the sets below is seen
    fixed_log_u: np.ndarray  # of the fields that depend on another
    sets: np.ndarray  # [set, field]: whether it is seen


class Model(NamedTuple):
    """Priors of m and u, and what the links do not change.

    Fields are independent, or (`by_errors`) m is by the number of wrong fields
    (`model.error_counts`) and u of the fields that are not `free` is fixed by pattern.
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
    tie: float  # pairs that a row of h is worth which follows from row 0,
    thinning: np.ndarray  # [missing, wrong and seen, wrong]: by these chances


class State(NamedTuple):
    """m and u, in logs."""

    log_m: np.ndarray
    log_u: np.ndarray
    log_h: np.ndarray
    log_r: np.ndarray
    log_level: np.ndarray


class Room(NamedTuple):
    """Where m and u are worked out."""

    levels: np.ndarray  # links by field and level
    shape: np.ndarray  # of the Dirichlet laws, likewise; also the weights of levels
    shape_h: np.ndarray  # [missing, wrong]
    by_errors: np.ndarray  # links, likewise
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


def typed(kind, *members):
    return types.BaseTuple.from_types([TYPES[member] for member in members], kind)


VECTORS_TYPE = typed(Vectors, "u1", "i8", "i8", "i8", "f8", "b1.")
MODEL_TYPE = typed(
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
    "float",
    "f8..",
)
STATE_TYPE = typed(State, "f8.", "f8.", "f8.", "f8", "f8.")


@maker
def make_room(vectors, state):
    shape, n = state.log_m.shape, state.log_m.shape[0] + 1
    return Room(
        np.empty(shape, np.int64),
        np.empty(shape),
        np.empty((n, n)),
        np.empty((n, n), np.int64),
        np.empty((len(vectors.sets), n), np.int64),
        np.empty(n - 1, np.int64),
        np.empty(n),
        np.zeros((len(vectors.sets), n)),
    )


# --- odds of patterns given m and u ---------------------------------------------------------------


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


# --- m and u given the links ----------------------------------------------------------------------


@helper
def count_by_level(vectors, counts, levels):
    """Level counts of pairs, from how many have which pattern."""
    n_fields, width = levels.shape
    for j in range(n_fields):
        for h in range(width):
            levels[j, h] = 0
    for g in range(1, len(counts)):
        if counts[g] > 0:
            for j in range(n_fields):
                levels[j, vectors.levels[g, j]] += counts[g]


@helper
def draw_parameters(model, vectors, counts, held, room, key, rng, state):
    """m and u given how many links have which pattern; `room.levels` has their level counts.

    `held` has the level counts of the pairs that u is not learned from: the links themselves, or
    all pairs within clusters.
    """
    log_m, log_u, levels, shape = state.log_m, state.log_u, room.levels, room.shape
    n_fields, width = log_m.shape
    start_stream(rng, key[0], key[1], key[2], _PARAMETERS)
    for j in range(n_fields):
        for h in range(width):
            shape[j, h] = model.alpha_m[j, h] + levels[j, h]
    draw_log_dirichlet(rng, shape, model.used, log_m)
    for j in range(n_fields):
        for h in range(width):
            others = max(0, model.all_counts[j, h] - held[j, h])  # counts may be estimates
            shape[j, h] = model.alpha_u[j, h] + others
    draw_log_dirichlet(rng, shape, model.used, log_u)
    if model.by_errors:
        draw_error_law(model, vectors, counts, room, rng, state)


@helper
def draw_error_law(model, vectors, counts, room, rng, state):
    """h (`draw_h`) and levels by Dirichlet draws; r by a random walk in each log r in turn.

    The step is as wide as the field's number of wrong links lets the posterior be, about.
    """
    levels, shape, shape_h = room.levels, room.shape, room.shape_h
    by_set, by_errors, n_wrong_of = room.by_set, room.by_errors, room.n_wrong
    n_fields, width = levels.shape
    for s in range(len(by_set)):
        for e in range(n_fields + 1):
            by_set[s, e] = 0
    for a in range(n_fields + 1):
        for e in range(n_fields + 1):
            by_errors[a, e] = 0
    for g in range(1, len(counts)):
        by_set[vectors.seen_set[g], vectors.n_wrong[g]] += counts[g]
        by_errors[vectors.n_missing[g], vectors.n_wrong[g]] += counts[g]
    draw_h(model, by_errors, rng, shape_h, state.log_h)
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
def draw_h(model, counts, rng, shape, log_h):
    """h given how many links have so many fields missing and wrong.

    Rows past 0 are Dirichlet around what follows from row 0. Without them, their links are those
    of a Pólya urn: the first of each kind, and some of the rest, are draws from what is expected.
    Each such draw is one of h₀, with the fields wrong that are missing: row 0 counts these too.
    """
    n = len(shape)
    for a in range(n):
        for e in range(n):
            shape[a, e] = model.alpha_h[a, e] + counts[a, e]
    if model.tie > 0.0:
        for a in range(1, n):
            for e in range(n - a):
                for _ in range(urn_draws(model, a, e, counts[a, e], log_h, rng)):
                    t = wrong_in_all(model, a, e, log_h, rng)
                    if t >= 0:
                        shape[0, t] += 1.0
    draw_log_dirichlet(rng, shape[:1], model.used_h[:1], log_h[:1])
    if model.tie > 0.0:
        for a in range(1, n):
            for e in range(n - a):
                shape[a, e] += model.tie * expected_h(model, a, e, log_h)
    draw_log_dirichlet(rng, shape[1:], model.used_h[1:], log_h[1:])


@helper
def expected_h(model, a, e, log_h):
    """What h[a, e] is if gaps say nothing of errors."""
    total = 0.0
    for t in range(e, len(log_h)):
        total += model.thinning[a, e, t] * np.exp(log_h[0, t])
    return total


@helper
def urn_draws(model, a, e, n, log_h, rng):
    """How many of n links are draws from what is expected, not copies of those before."""
    weight = model.alpha_h[a, e] + model.tie * expected_h(model, a, e, log_h)
    drawn = 0
    for k in range(n):
        drawn += uniform(rng) * (weight + k) < weight
    return drawn


@helper
def wrong_in_all(model, a, e, log_h, rng):
    """How many fields are wrong in all of a link expected to have e seen; −1: expected apart."""
    loose = model.alpha_h[a, e]
    left = uniform(rng) * (loose + model.tie * expected_h(model, a, e, log_h)) - loose
    if left < 0.0:
        return -1
    for t in range(e, len(log_h)):
        left -= model.tie * model.thinning[a, e, t] * np.exp(log_h[0, t])
        if left < 0.0:
            return t
    return e


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
                alpha = model.alpha_h[a, e]
                if a > 0 and model.tie > 0.0:
                    alpha += model.tie * expected_h(model, a, e, state.log_h)
                    density -= math.lgamma(alpha)
                density += (alpha - 1.0) * state.log_h[a, e]
        for j in range(len(state.log_r)):
            density -= 0.5 * ((state.log_r[j] - model.centre) / model.spread) ** 2
    return density
