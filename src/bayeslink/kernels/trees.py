"""A forest of pointers as the kernels keep it: its edges, its trees, and a part that moves.

An edge and all about it is kept with its child. What a tree counts, its records by file among it,
is kept by the tree's number.
"""

from typing import NamedTuple

import numpy as np

from bayeslink.kernels import helper
from bayeslink.kernels.random import uniform

UNUSED, UNLISTED, TREES = 0, 1, 2  # of Forest.n


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
    blocks: np.ndarray  # where blocks of records begin, and the last ends: no pair leaves one


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
    records: np.ndarray  # tree × file
    which: np.ndarray  # files of each tree, as bits
    unused: np.ndarray  # numbers of no tree,
    of_size: np.ndarray  # trees by size
    n_which: np.ndarray  # trees by files
    n_in: np.ndarray  # trees in each file
    n_with: np.ndarray  # file × size: trees with so many records there
    unlisted: np.ndarray  # children of unlisted edges
    n: np.ndarray  # numbers not used, unlisted edges, trees
    log_rho: np.ndarray  # of one entry


class Prior(NamedTuple):
    """The prior of partitions, and what is allowed of ρ."""

    file: np.ndarray  # of each record
    clean: np.ndarray  # whether nobody is twice in a file
    alpha: np.ndarray  # Dirichlet parameters by set of files, as bits,
    total: float
    beta: np.ndarray  # by file and number of records; none of what cannot be
    totals: np.ndarray  # of beta, by file
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
    by_file: np.ndarray  # records of the part
    which: np.ndarray  # its files, as bits
    log_trees: np.ndarray  # log of 1 / (k (1 + (k − 1) ρ)^(k − 2)), by k
    log_factorial: np.ndarray


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
def collect(i, forest, prior, space):
    """Mark a record and all that hangs on it. Returns how many."""
    space.stamp[0] += 1
    stamp, part = space.stamp[0], space.part
    part[0] = i
    n, k = 1, 0
    for f in range(len(space.by_file)):
        space.by_file[f] = 0
    space.which[0] = 0
    while k < n:
        space.mark[part[k]] = stamp
        f = prior.file[part[k]]
        space.by_file[f] += 1
        space.which[0] |= 1 << f
        c = forest.head[part[k]]
        while c >= 0:
            part[n] = c
            n += 1
            c = forest.next[c]
        k += 1
    return n


@helper
def bar_trees(t, candidates, forest, space):
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
def root_weights(t, forest, space, first, last):
    """What the roots that a part can have weigh, together and (in `weights`) each; and as a copy.

    Only records first … last can be one. A root takes ρ from its edges, so weighs ρ^−degree; all
    divided by the largest of them, which may be beyond what a number holds.
    """
    log_rho, total, most = forest.log_rho[0], 0.0, 0
    for k in range(t):
        x = space.part[k]
        most = max(most, n_children(x, forest) + (forest.parent[x] >= 0))
    for k in range(t):
        x = space.part[k]
        degree = n_children(x, forest) + (forest.parent[x] >= 0)
        space.weights[k] = power(log_rho, most - degree) if first <= x < last else 0.0
        total += space.weights[k]
    return total, power(log_rho, most)


@helper
def new_in_file(f, n, forest, prior):
    """Chance that one more person of a file has n records there."""
    return (forest.n_with[f, n] + prior.beta[f, n]) / (forest.n_in[f] + prior.totals[f])


@helper
def alone(roots, forest, prior, space):
    """Weight of a part as a tree of its own, where the forest counts the other trees."""
    k, which = forest.n[TREES], space.which[0]
    weight = (k + 1.0) / (k + prior.total) * (forest.n_which[which] + prior.alpha[which]) * roots
    for f in range(len(prior.totals)):
        if space.by_file[f] > 0:
            weight *= new_in_file(f, space.by_file[f], forest, prior)
    return weight


@helper
def weight_joined(t, c, forest, prior, space):
    """Weight of a part in tree c, but for that of its edge and of being no tree."""
    s, before, largest = forest.size[c], forest.which[c], prior.beta.shape[1]
    log_ways, weight = space.log_trees[s + t] - space.log_trees[s] - space.log_trees[t], 1.0
    after = before | space.which[0]
    if after != before:
        weight = forest.n_which[after] + prior.alpha[after]
        weight /= forest.n_which[before] - 1.0 + prior.alpha[before]
    for f in range(len(prior.totals)):
        more, n = space.by_file[f], forest.records[c, f]
        if more == 0:
            continue
        if n == 0:
            weight *= new_in_file(f, more, forest, prior)
            continue
        if n + more >= largest or prior.beta[f, n + more] == 0.0:
            return 0.0
        log_ways += space.log_factorial[n + more]
        log_ways -= space.log_factorial[n] + space.log_factorial[more]
        weight *= forest.n_with[f, n + more] + prior.beta[f, n + more]
        weight /= forest.n_with[f, n] - 1.0 + prior.beta[f, n]
    return weight * np.exp(log_ways)


@helper
def count_tree(c, n, forest):
    """Count a tree in (n = 1) or out (n = −1)."""
    forest.of_size[forest.size[c]] += n
    forest.n[TREES] += n
    forest.n_which[forest.which[c]] += n
    for f in range(forest.records.shape[1]):
        if forest.records[c, f] > 0:
            forest.n_in[f] += n
            forest.n_with[f, forest.records[c, f]] += n


@helper
def change_tree(t, c, sign, forest, space):
    """Add the part to the records of tree c, or take it off; and count the tree anew."""
    if forest.size[c] > 0:
        count_tree(c, -1, forest)
    forest.size[c] += sign * t
    forest.which[c] = 0
    for f in range(forest.records.shape[1]):
        forest.records[c, f] += sign * space.by_file[f]
        if forest.records[c, f] > 0:
            forest.which[c] |= 1 << f
    if forest.size[c] > 0:
        count_tree(c, 1, forest)


@helper
def take_out(t, c, forest, space):
    """Count a part of tree c out. Returns the size of what is left of the tree."""
    change_tree(t, c, -1, forest, space)
    return forest.size[c]


@helper
def put_in(t, c, forest, space):
    """Count a part into tree c."""
    change_tree(t, c, 1, forest, space)
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
