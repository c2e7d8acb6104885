"""A forest of pointers: its state, its edges, and the parts and trees that moves are made of.

A part is a record with all that hangs on it. `kernels.forest` moves parts.
"""

from typing import NamedTuple

import numpy as np

from bayeslink.kernels import helper
from bayeslink.kernels.parameters import typed
from bayeslink.kernels.random import uniform


class Candidates(NamedTuple):
    """Candidate pairs, each from both of its records; and what is known of pairs.

    Record i has the entries start[i] … start[i + 1].
    """

    start: np.ndarray
    neighbour: np.ndarray
    pattern: np.ndarray
    group_start: np.ndarray
    group: np.ndarray  # the others of the same person, as far as known
    apart_start: np.ndarray
    apart: np.ndarray  # records known to be of other people than this one


class Forest(NamedTuple):
    """The forest; an edge and all about it is kept with its child."""

    parent: np.ndarray  # −1 of an original
    head: np.ndarray  # first child, next and previous child of the same parent
    next: np.ndarray
    previous: np.ndarray
    pattern: np.ndarray  # of the edge to the parent
    q: np.ndarray  # chance with which its pair is proposed; 0 of a candidate pair
    place: np.ndarray  # of the edge among the unlisted ones
    cluster: np.ndarray  # number of each record's tree
    size: np.ndarray  # of each tree, by its number; 0 if there is none
    unused: np.ndarray  # numbers of no tree,
    of_size: np.ndarray  # trees by size
    unlisted: np.ndarray  # children of unlisted edges
    n: np.ndarray  # numbers not used, unlisted edges, trees
    log_rho: np.ndarray  # of one entry


class Sizes(NamedTuple):
    """The prior of cluster sizes, and what is allowed of ρ."""

    beta: np.ndarray  # Dirichlet parameters by size; those past the largest size allowed: none
    total: float
    log_rho: np.ndarray  # the grid


class Space(NamedTuple):
    """Workspace of the moves."""

    part: np.ndarray  # records of the part that moves
    mark: np.ndarray  # stamp of the last part a record was in
    barred: np.ndarray  # stamp of the last part that a tree may not join
    stamp: np.ndarray
    weights: np.ndarray
    own: np.ndarray  # the record and the entry of each weight
    entry: np.ndarray
    log_size: np.ndarray  # log of k! / (k (1 + (k − 1) ρ)^(k − 2)), by k


CANDIDATES_TYPE = typed(Candidates, "i8", "i4", "i4", "i8", "i4", "i8", "i4")
FOREST_TYPE = typed(
    Forest, "i4", "i4", "i4", "i4", "i4", "f8", "i4", "i4", "i4", "i4", "i8", "i4", "i8", "f8"
)
SIZES_TYPE = typed(Sizes, "f8", "float", "f8")
SPACE_TYPE = typed(Space, "i4", "i8", "i8", "i8", "f8", "i4", "i8", "f8")
UNUSED, UNLISTED, TREES = 0, 1, 2  # of Forest.n


# --- edges ----------------------------------------------------------------------------------------


@helper
def unhang(i, forest):
    """Take a record off its parent; what the edge was stays with it."""
    p, before, after = forest.parent[i], forest.previous[i], forest.next[i]
    if before >= 0:
        forest.next[before] = after
    else:
        forest.head[p] = after
    if after >= 0:
        forest.previous[after] = before
    forest.parent[i] = forest.next[i] = forest.previous[i] = -1


@helper
def hang(i, p, pattern, q, place, forest):
    """Make record i a copy of p."""
    first = forest.head[p]
    forest.parent[i] = p
    forest.next[i] = first
    forest.previous[i] = -1
    if first >= 0:
        forest.previous[first] = i
    forest.head[p] = i
    forest.pattern[i], forest.q[i], forest.place[i] = pattern, q, place
    if q > 0.0:
        forest.unlisted[place] = i


@helper
def make_root(x, forest):
    """Turn the pointers from x up to its root."""
    child, p = x, forest.parent[x]
    pattern, q, place = forest.pattern[x], forest.q[x], forest.place[x]
    if p >= 0:
        unhang(x, forest)
    while p >= 0:
        above = forest.parent[p]
        pattern_p, q_p, place_p = forest.pattern[p], forest.q[p], forest.place[p]
        if above >= 0:
            unhang(p, forest)
        hang(p, child, pattern, q, place, forest)
        pattern, q, place = pattern_p, q_p, place_p
        child, p = p, above


@helper
def n_children(i, forest):
    n, c = 0, forest.head[i]
    while c >= 0:
        n += 1
        c = forest.next[c]
    return n


@helper
def power(log_rho, k):
    """ρ^k, and 1 of no factor even if ρ is 0."""
    return np.exp(log_rho * k) if k > 0 else 1.0


# --- a part and its places ------------------------------------------------------------------------


@helper
def collect(i, forest, space):
    """Mark a record and all that hangs on it. Returns how many."""
    space.stamp[0] += 1
    stamp, part = space.stamp[0], space.part
    part[0] = i
    n, k = 1, 0
    while k < n:
        space.mark[part[k]] = stamp
        c = forest.head[part[k]]
        while c >= 0:
            part[n] = c
            n += 1
            c = forest.next[c]
        k += 1
    return n


@helper
def bar(t, candidates, forest, space):
    """Bar trees with records known to be apart from the part. Whether it may leave its tree.

    It may not if a record known to be one with one of the part is not of the part.
    """
    stamp, may_leave = space.stamp[0], True
    for k in range(t):
        x = space.part[k]
        for e in range(candidates.apart_start[x], candidates.apart_start[x + 1]):
            space.barred[forest.cluster[candidates.apart[e]]] = stamp
        if candidates.group_start[x + 1] > candidates.group_start[x]:
            for e in range(candidates.group_start[x], candidates.group_start[x + 1]):
                if space.mark[candidates.group[e]] != stamp:
                    may_leave = False
    return may_leave


@helper
def root_weights(t, forest, space):
    """What the roots that a part can have weigh, together and (in `weights`) each; and as a copy.

    A root takes ρ from its edges, so weighs ρ^−degree; all divided by the largest of them, which
    may be beyond what a number holds.
    """
    log_rho, total, most = forest.log_rho[0], 0.0, 0
    for k in range(t):
        x = space.part[k]
        most = max(most, n_children(x, forest) + (forest.parent[x] >= 0))
    for k in range(t):
        x = space.part[k]
        degree = n_children(x, forest) + (forest.parent[x] >= 0)
        space.weights[k] = power(log_rho, most - degree)
        total += space.weights[k]
    return total, power(log_rho, most)


@helper
def alone(t, roots, forest, sizes):
    """Weight of a part as a tree of its own; n and of_size are those of the other trees."""
    k = forest.n[TREES]
    return (k + 1.0) / (k + sizes.total) * (forest.of_size[t] + sizes.beta[t]) * roots


@helper
def joined(t, s, forest, sizes, space):
    """Weight of a part in a tree of size s, but for that of its edge and of being no tree."""
    if s + t >= len(sizes.beta):
        return 0.0
    ways = np.exp(space.log_size[s + t] - space.log_size[s] - space.log_size[t])
    ways *= forest.of_size[s + t] + sizes.beta[s + t]
    return ways / (forest.of_size[s] - 1.0 + sizes.beta[s])


@helper
def take_out(t, c, forest):
    """Count a part of tree c out. Returns the size of what is left of the tree."""
    s = forest.size[c]
    rest = s - t
    forest.of_size[s] -= 1
    forest.n[TREES] -= 1
    forest.size[c] = rest
    if rest > 0:
        forest.of_size[rest] += 1
        forest.n[TREES] += 1
    return rest


@helper
def put_in(t, c, forest, space):
    """Count a part into tree c."""
    s = forest.size[c]
    if s > 0:
        forest.of_size[s] -= 1
        forest.n[TREES] -= 1
    forest.of_size[s + t] += 1
    forest.n[TREES] += 1
    forest.size[c] = s + t
    for k in range(t):
        forest.cluster[space.part[k]] = c


@helper
def new_number(forest):
    forest.n[UNUSED] -= 1
    return forest.unused[forest.n[UNUSED]]


@helper
def give_back(c, forest):
    forest.unused[forest.n[UNUSED]] = c
    forest.n[UNUSED] += 1


@helper
def choose(weights, n, total, rng):
    """Which of n weights, in proportion to them."""
    threshold = uniform(rng) * total
    so_far, k, last = 0.0, 0, 0
    while k < n:
        if weights[k] > 0.0:
            last = k
            so_far += weights[k]
            if threshold < so_far:
                return k
        k += 1
    return last
