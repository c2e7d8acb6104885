"""The sampler over forests of pointers, one chain: a record is an original, or a copy of another.

Target, over forests on n records:

    p(partition) · Π_trees 1 / (k (1 + (k − 1) ρ)^(k − 2)) · Π_edges e^w · ρ^(edges not to a root)

with p(partition) that of `linkage.partitions`. Summed over the forests of a partition it is the
partition's posterior. A step takes a record with all that hangs on it, and draws anew by which of
its candidate pairs that part hangs on another tree, or its root if on none: cost goes with the
candidates of the part. A tree with one original and copies of it may also draw another original.
Edges along unlisted pairs are born and die. Two records of one file may change places.
"""

from typing import NamedTuple

import numpy as np
from numba import types

from bayeslink.kernels import helper, kernel
from bayeslink.kernels.births import Far
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

_MOVES = np.uint64(0)
_BIRTHS = np.uint64(0xFFFFFFFFFFFFFFFE)
_RHO = np.uint64(0xFFFFFFFFFFFFFFFD)


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


class Output(NamedTuple):
    """What is kept of the draws."""

    n_entities: np.ndarray
    log_posterior: np.ndarray
    log_rho: np.ndarray
    of_size: np.ndarray  # draw × size; the last counts all beyond
    in_files: np.ndarray  # draw × set of files
    m: np.ndarray  # draw × field × level
    u: np.ndarray
    log_h: np.ndarray
    log_r: np.ndarray
    log_level: np.ndarray
    kept: np.ndarray  # draw × record: the least record of its cluster
    every: int  # so many draws, one is kept


CANDIDATES_TYPE = typed(Candidates, "i8", "i4", "i4", "i8", "i4", "i8", "i4")
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


# --- moves ----------------------------------------------------------------------------------------


@helper
def move_part(i, candidates, forest, prior, odds, space, rng):
    """Draw anew where record i and all that hangs on it belongs, and by which pair."""
    if forest.parent[i] >= 0 and forest.q[i] > 0.0:
        return  # births and deaths move it
    if candidates.start[i] == candidates.start[i + 1] and forest.head[i] < 0:
        return
    t = collect(i, forest, prior, space)
    c = forest.cluster[i]
    may_leave = bar_trees(t, candidates, forest, space)
    if forest.parent[i] >= 0:
        unhang(i, forest)
    rest = take_out(t, c, forest, space)
    roots, as_copy = root_weights(t, forest, space)
    n = 1
    weight = alone(roots, forest, prior, space) if may_leave else 0.0
    if not may_leave:
        as_copy = 1.0  # a factor of all that there is to choose from
    total = weight
    space.own[0], space.entry[0] = i, -1
    # The weights of roots are made anew below: there is room for one of the two at a time.
    space.weights[0] = weight
    stamp = space.stamp[0]
    for k in range(t):
        x = space.part[k]
        for e in range(candidates.start[x], candidates.start[x + 1]):
            y = candidates.neighbour[e]
            to = forest.cluster[y]
            if space.mark[y] == stamp or not (may_leave or to == c):
                continue
            if space.barred[to] == stamp and to != c:
                continue
            weight = as_copy * odds[candidates.pattern[e]]
            weight *= weight_joined(t, to, forest, prior, space)
            if forest.parent[y] >= 0:
                weight *= power(forest.log_rho[0], 1)
            space.weights[n], space.own[n], space.entry[n] = weight, x, e
            total += weight
            n += 1
    pick = choose(space.weights, n, total, rng)
    x, e = space.own[pick], space.entry[pick]
    if e < 0:
        roots, as_copy = root_weights(t, forest, space)
        x = space.part[choose(space.weights, t, roots, rng)]
    make_root(x, forest)
    if e >= 0:
        y = candidates.neighbour[e]
        hang(x, y, candidates.pattern[e], 0.0, -1, forest)
        if rest == 0 and forest.cluster[y] != c:
            give_back(c, forest)
        put_in(t, forest.cluster[y], forest, space)
    else:
        put_in(t, c if rest == 0 else new_number(forest), forest, space)


@helper
def move_original(i, candidates, forest, prior, log_odds, space, rng):
    """Draw another original for an original and copies of it, if no copy has copies.

    Each must be a candidate of the one drawn.
    """
    c = forest.cluster[i]
    t = forest.size[c]
    if forest.parent[i] >= 0 or t < 3 or n_children(i, forest) != t - 1:
        return
    collect(i, forest, prior, space)
    best = -np.inf
    for k in range(t):
        x = space.part[k]
        if forest.parent[x] >= 0 and forest.q[x] > 0.0:
            return
        n, w = 0, 0.0
        for e in range(candidates.start[x], candidates.start[x + 1]):
            if forest.cluster[candidates.neighbour[e]] == c:
                n += 1
                w += log_odds[candidates.pattern[e]]
        space.weights[k] = w if n == t - 1 else -np.inf
        best = max(best, space.weights[k])
    total = 0.0
    for k in range(t):
        space.weights[k] = np.exp(space.weights[k] - best)
        total += space.weights[k]
    x = space.part[choose(space.weights, t, total, rng)]
    if x == i:
        return
    for k in range(1, t):
        unhang(space.part[k], forest)
    for e in range(candidates.start[x], candidates.start[x + 1]):
        y = candidates.neighbour[e]
        if forest.cluster[y] == c:
            hang(y, x, candidates.pattern[e], 0.0, -1, forest)


@helper
def root_of(x, forest):
    while forest.parent[x] >= 0:
        x = forest.parent[x]
    return x


@helper
def depth_of(x, forest):
    n = 0
    while forest.parent[x] >= 0:
        x = forest.parent[x]
        n += 1
    return n


@helper
def held_on_path(a, b, which, candidates, forest, prior, space):
    """Candidate edges between two records of a tree that cannot be cut for what is known.

    Their number, and the child of one of them: the one with this number, from 0.
    """
    n, found = 0, -1
    of_a, of_b = depth_of(a, forest), depth_of(b, forest)
    while a != b:
        if of_a >= of_b:
            x, a, of_a = a, forest.parent[a], of_a - 1
        else:
            x, b, of_b = b, forest.parent[b], of_b - 1
        if forest.q[x] == 0.0:
            t = collect(x, forest, prior, space)
            if not bar_trees(t, candidates, forest, space):
                if n == which:
                    found = x
                n += 1
    return n, found


@helper
def weigh_rejoining(t, c, candidates, forest, odds, space):
    """Weight of the candidate pairs by which a part can hang on the rest of tree c; their number.

    Each is in `weights`, with its record of the part and its entry.
    """
    n, total, stamp = 0, 0.0, space.stamp[0]
    for k in range(t):
        x = space.part[k]
        for e in range(candidates.start[x], candidates.start[x + 1]):
            y = candidates.neighbour[e]
            if space.mark[y] != stamp and forest.cluster[y] == c:
                weight = odds[candidates.pattern[e]]
                if forest.parent[y] >= 0:
                    weight *= power(forest.log_rho[0], 1)
                space.weights[n], space.own[n], space.entry[n] = weight, x, e
                total += weight
                n += 1
    return n, total


@helper
def try_instead(a, b, pattern, q, accept, candidates, forest, prior, odds, space, rng):
    """Propose an unlisted pair of one tree in place of an edge that cannot be cut.

    Without this, records known to be one would always be joined by candidate pairs.
    """
    n, c = forest.n[UNLISTED], forest.cluster[a]
    if len(candidates.group) == 0 or n >= len(forest.unlisted):
        return
    n_path, x = held_on_path(a, b, 0, candidates, forest, prior, space)
    if n_path == 0:
        return
    if n_path > 1:
        which = np.int64(uniform(rng) * n_path)
        n_path, x = held_on_path(a, b, which, candidates, forest, prior, space)
    t = collect(x, forest, prior, space)
    if space.mark[a] != space.stamp[0]:
        a, b = b, a
    _, total = weigh_rejoining(t, c, candidates, forest, odds, space)
    weight = odds[pattern]
    if forest.parent[b] >= 0:
        weight *= power(forest.log_rho[0], 1)
    if accept * (n + 1) * q * total < weight * n_path:
        unhang(x, forest)
        make_root(a, forest)
        hang(a, b, pattern, q, n, forest)
        forest.n[UNLISTED] = n + 1


@helper
def try_listed(t, k, accept, candidates, forest, prior, odds, space, rng):
    """Propose a candidate pair in place of the unlisted edge k, which cannot be cut."""
    x = forest.unlisted[k]
    y, pattern, q, n = forest.parent[x], forest.pattern[x], forest.q[x], forest.n[UNLISTED]
    weight = odds[pattern]
    if forest.parent[y] >= 0:
        weight *= power(forest.log_rho[0], 1)
    n_ways, total = weigh_rejoining(t, forest.cluster[x], candidates, forest, odds, space)
    if n_ways == 0:
        return
    pick = choose(space.weights, n_ways, total, rng)
    to, e = space.own[pick], space.entry[pick]
    unhang(x, forest)
    make_root(to, forest)
    hang(to, candidates.neighbour[e], candidates.pattern[e], 0.0, -1, forest)
    n_path, _ = held_on_path(x, y, 0, candidates, forest, prior, space)
    if accept * weight * n_path < n * q * total:
        drop_unlisted(k, forest)
    else:
        unhang(to, forest)
        make_root(x, forest)
        hang(x, y, pattern, q, k, forest)


@helper
def drop_unlisted(k, forest):
    n = forest.n[UNLISTED] - 1
    forest.n[UNLISTED] = n
    if k < n:  # its child may have another edge by now
        last = forest.unlisted[n]
        forest.unlisted[k] = last
        forest.place[last] = k


@helper
def try_birth(a, b, pattern, q, candidates, forest, prior, odds, space, rng):
    """Propose to hang the tree of a on b, along an unlisted pair."""
    accept, c, to = uniform(rng), forest.cluster[a], forest.cluster[b]
    if c == to:
        try_instead(a, b, pattern, q, accept, candidates, forest, prior, odds, space, rng)
        return
    n = forest.n[UNLISTED]
    t = collect(root_of(a, forest), forest, prior, space)
    bar_trees(t, candidates, forest, space)
    if space.barred[to] == space.stamp[0] or n >= len(forest.unlisted):
        return
    take_out(t, c, forest, space)
    roots, as_copy = root_weights(t, forest, space)
    weight = as_copy * weight_joined(t, to, forest, prior, space) * odds[pattern]
    if forest.parent[b] >= 0:
        weight *= power(forest.log_rho[0], 1)
    if accept * alone(roots, forest, prior, space) * (n + 1) * q < 2.0 * weight:
        make_root(a, forest)
        hang(a, b, pattern, q, n, forest)
        forest.n[UNLISTED] = n + 1
        give_back(c, forest)
        put_in(t, to, forest, space)
    else:
        put_in(t, c, forest, space)


@helper
def try_death(candidates, forest, prior, odds, space, rng):
    """Propose to cut one of the edges along unlisted pairs."""
    n = forest.n[UNLISTED]
    k, accept = np.int64(uniform(rng) * n), uniform(rng)
    x = forest.unlisted[k]
    c, y, pattern, q = forest.cluster[x], forest.parent[x], forest.pattern[x], forest.q[x]
    t = collect(x, forest, prior, space)
    if not bar_trees(t, candidates, forest, space):
        try_listed(t, k, accept, candidates, forest, prior, odds, space, rng)
        return
    unhang(x, forest)
    take_out(t, c, forest, space)
    roots, as_copy = root_weights(t, forest, space)
    weight = as_copy * weight_joined(t, c, forest, prior, space) * odds[pattern]
    if forest.parent[y] >= 0:
        weight *= power(forest.log_rho[0], 1)
    if accept * 2.0 * weight < alone(roots, forest, prior, space) * n * q:
        drop_unlisted(k, forest)
        make_root(space.part[choose(space.weights, t, roots, rng)], forest)
        put_in(t, new_number(forest), forest, space)
    else:
        hang(x, y, pattern, q, k, forest)
        put_in(t, c, forest, space)


@helper
def is_free_leaf(i, forest):
    """Whether a record has one edge at most, and that along a candidate pair."""
    if forest.parent[i] >= 0:
        return forest.head[i] < 0 and forest.q[i] == 0.0
    child = forest.head[i]
    return child < 0 or (forest.next[child] < 0 and forest.q[child] == 0.0)


@helper
def beside(i, forest):
    """The record at the other end of a record's one edge; −1 if it has none."""
    return forest.parent[i] if forest.parent[i] >= 0 else forest.head[i]


@helper
def edge_at(i, y, candidates):
    """The entry of a candidate pair; −1 if it is none."""
    low, high = candidates.start[i], candidates.start[i + 1]
    while low < high:
        middle = (low + high) // 2
        if candidates.neighbour[middle] < y:
            low = middle + 1
        else:
            high = middle
    return low if low < candidates.start[i + 1] and candidates.neighbour[low] == y else -1


@helper
def known_of(i, candidates):
    return (
        candidates.group_start[i + 1] > candidates.group_start[i]
        or candidates.apart_start[i + 1] > candidates.apart_start[i]
    )


@helper
def attach(i, y, e, as_root, forest, candidates):
    """Hang i on y along entry e, or y on i."""
    pattern = candidates.pattern[e]
    if as_root:
        hang(y, i, pattern, 0.0, -1, forest)
    else:
        hang(i, y, pattern, 0.0, -1, forest)


@helper
def change_places(i, candidates, forest, prior, log_odds, rng):
    """Propose that i takes the place of a record of its clean file beside one of its candidates.

    That one takes the place of i. Both have one edge at most, so that nothing changes but those.
    """
    first, n = candidates.start[i], candidates.start[i + 1] - candidates.start[i]
    f = prior.file[i]
    if not prior.clean[f] or n == 0:
        return
    y, accept = candidates.neighbour[first + np.int64(uniform(rng) * n)], uniform(rng)
    if forest.cluster[y] == forest.cluster[i] or not is_free_leaf(i, forest):
        return
    j = forest.parent[y]
    if j < 0 or prior.file[j] != f:
        j = forest.head[y]
        while j >= 0 and prior.file[j] != f:
            j = forest.next[j]
    if j < 0 or not is_free_leaf(j, forest) or known_of(i, candidates) or known_of(j, candidates):
        return
    z, of_i, of_j = beside(i, forest), edge_at(i, y, candidates), -1
    ratio = log_odds[candidates.pattern[of_i]]
    ratio -= log_odds[candidates.pattern[edge_at(j, y, candidates)]]
    back = candidates.start[j + 1] - candidates.start[j]
    if z >= 0:
        of_j, back = edge_at(j, z, candidates), n
        if of_j < 0:
            return
        ratio += log_odds[candidates.pattern[of_j]]
        ratio -= log_odds[candidates.pattern[edge_at(i, z, candidates)]]
    if not accept * back < np.exp(min(ratio, 500.0)) * n:
        return
    i_is_root, j_is_root = forest.parent[i] < 0, forest.parent[j] < 0
    if z >= 0:
        unhang(z if i_is_root else i, forest)
    unhang(y if j_is_root else j, forest)
    attach(i, y, of_i, j_is_root, forest, candidates)
    if z >= 0:
        attach(j, z, of_j, i_is_root, forest, candidates)
    c = forest.cluster[i]
    forest.cluster[i] = forest.cluster[j]
    forest.cluster[j] = c


@helper
def births_and_deaths(far, first, candidates, forest, prior, odds, space, rng):
    """As many tries as there are proposals for a sweep."""
    for p in range(first, first + far.a_sweep):
        if uniform(rng) < 0.5:
            a, b = far.pairs[p, 0], far.pairs[p, 1]
            if uniform(rng) < 0.5:
                a, b = b, a
            if far.q[p] < np.inf:
                try_birth(
                    a, b, far.pattern[p], far.q[p], candidates, forest, prior, odds, space, rng
                )
        elif forest.n[UNLISTED] > 0:
            try_death(candidates, forest, prior, odds, space, rng)


# --- ρ, counts and the record of a draw -----------------------------------------------------------


@helper
def tabulate(log_rho, log_trees):
    """log of 1 / (k (1 + (k − 1) ρ)^(k − 2)) for each size k."""
    rho = np.exp(log_rho)
    log_trees[0] = 0.0
    for k in range(1, len(log_trees)):
        log_trees[k] = -np.log(k) - (k - 2) * np.log1p((k - 1) * rho)


@helper
def n_deep(forest):
    """Edges to records that are copies themselves."""
    n = 0
    for i in range(len(forest.parent)):
        p = forest.parent[i]
        n += p >= 0 and forest.parent[p] >= 0
    return n


@helper
def draw_rho(forest, prior, weights, rng):
    """ρ given the forest, from its grid."""
    grid = prior.log_rho
    if len(grid) == 1:
        return
    deep, best = n_deep(forest), -np.inf
    for g in range(len(grid)):
        rho, log_p = np.exp(grid[g]), deep * grid[g]
        for k in range(3, len(forest.of_size)):
            if forest.of_size[k] > 0:
                log_p -= forest.of_size[k] * (k - 2) * np.log1p((k - 1) * rho)
        weights[g] = log_p
        best = max(best, log_p)
    total = 0.0
    for g in range(len(grid)):
        weights[g] = np.exp(weights[g] - best)
        total += weights[g]
    forest.log_rho[0] = grid[choose(weights, len(grid), total, rng)]


@helper
def count_edges(forest, counts):
    """Edges with each pattern."""
    for g in range(len(counts)):
        counts[g] = 0
    for i in range(len(forest.parent)):
        if forest.parent[i] >= 0:
            counts[forest.pattern[i]] += 1


@helper
def count_within(candidates, forest, counts):
    """Candidate pairs within clusters, and unlisted edges, with each pattern."""
    for g in range(len(counts)):
        counts[g] = 0
    for i in range(len(forest.parent)):
        for e in range(candidates.start[i], candidates.start[i + 1]):
            y = candidates.neighbour[e]
            counts[candidates.pattern[e]] += i < y and forest.cluster[i] == forest.cluster[y]
    for k in range(forest.n[UNLISTED]):
        counts[forest.pattern[forest.unlisted[k]]] += 1


@helper
def log_sequence(counts, weights, total):
    """log of the chance of a sequence with these counts, shares being Dirichlet."""
    out, n = np.float64(0.0), 0
    for k in range(len(counts)):
        for s in range(counts[k]):
            out += np.log(s + weights[k]) - np.log(n + total)
            n += 1
    return out


@helper
def log_prior(forest, prior, space):
    """log of what the target has beside the edges' weights, up to a constant."""
    out = np.float64(0.0)
    for k in range(1, forest.n[TREES] + 1):
        out += np.log(k)
    out += log_sequence(forest.n_which, prior.alpha, prior.total)
    for f in range(len(prior.totals)):
        out += log_sequence(forest.n_with[f], prior.beta[f], prior.totals[f])
        for k in range(1, forest.n_with.shape[1]):
            out += forest.n_with[f, k] * space.log_factorial[k]
    for k in range(1, len(forest.of_size)):
        out += forest.of_size[k] * space.log_trees[k]
    deep = n_deep(forest)
    return out + deep * forest.log_rho[0] if deep > 0 else out


@helper
def record(draw, out, density, used, state, forest, least):
    """Keep what there is to know of a draw."""
    out.n_entities[draw] = forest.n[TREES]
    out.log_posterior[draw] = density
    out.log_rho[draw] = forest.log_rho[0]
    for which in range(len(forest.n_which)):
        out.in_files[draw, which] = forest.n_which[which]
    last = out.of_size.shape[1] - 1
    for k in range(1, len(forest.of_size)):
        out.of_size[draw, min(k, last)] += forest.of_size[k]
    for a in range(state.log_h.shape[0]):
        for e in range(state.log_h.shape[1]):
            out.log_h[draw, a, e] = state.log_h[a, e]
    for j in range(state.log_m.shape[0]):
        out.log_r[draw, j] = state.log_r[j]
        for h in range(state.log_m.shape[1]):
            out.log_level[draw, j, h] = state.log_level[j, h]
            if h > 0 and used[j, h]:
                out.m[draw, j, h] = np.exp(state.log_m[j, h])
                out.u[draw, j, h] = np.exp(state.log_u[j, h])
    if (draw + 1) % out.every == 0:
        row = (draw + 1) // out.every - 1
        for c in range(len(forest.size)):
            least[c] = -1
        for i in range(len(forest.cluster)):
            c = forest.cluster[i]
            if least[c] < 0:
                least[c] = i
            out.kept[row, i] = least[c]


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
    n = len(forest.parent)
    for sweep in range(first_sweep, first_sweep + n_sweeps):
        key = (seed, chain, sweep)
        weigh(model, vectors, state, room, odds, root)
        log_odds[0] = -np.inf
        for g in range(1, n_patterns):
            log_odds[g] = np.log(odds[g])
        tabulate(forest.log_rho[0], space.log_trees)
        start_stream(rng, key[0], key[1], key[2], _MOVES)
        for _ in range(n):
            i = np.int64(uniform(rng) * n)
            move_part(i, candidates, forest, prior, odds, space, rng)
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
