"""Moves of the sampler over forests: parts, originals, unlisted edges, places that are changed."""

import numpy as np

from bayeslink.kernels import helper
from bayeslink.kernels.random import uniform
from bayeslink.kernels.trees import (
    UNLISTED,
    alone,
    bar_trees,
    choose,
    collect,
    give_back,
    hang,
    make_root,
    n_children,
    new_number,
    power,
    put_in,
    root_weights,
    take_out,
    unhang,
    weight_joined,
)


@helper
def move_part(i, first, last, candidates, forest, prior, odds, space, rng):
    """Draw anew where record i and all that hangs on it belongs, and by which pair.

    That pair's record of the part, or the root of the part, is one of the block first … last in
    which i was drawn: so the way back is as likely to be drawn.
    """
    if forest.parent[i] >= 0 and forest.q[i] > 0.0:
        return  # births and deaths move it
    t = collect(i, forest, prior, space)
    c = forest.cluster[i]
    may_leave = bar_trees(t, candidates, forest, space)
    if forest.parent[i] >= 0:
        unhang(i, forest)
    rest = take_out(t, c, forest, space)
    roots, as_copy = root_weights(t, forest, space, first, last)
    n = 1
    weight = alone(roots, forest, prior, space) if may_leave else 0.0
    if not may_leave:
        as_copy = 1.0  # a factor of all that there is to choose from
    total = weight
    space.own[0], space.entry[0] = i, -1
    # The weights of roots are made anew below: there is room for one of the two at a time.
    space.weights[0] = weight
    stamp, rho = space.stamp[0], power(forest.log_rho[0], 1)
    for k in range(t):
        x = space.part[k]
        if not first <= x < last:
            continue
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
                weight *= rho
            space.weights[n], space.own[n], space.entry[n] = weight, x, e
            total += weight
            n += 1
    pick = choose(space.weights, n, total, rng)
    x, e = space.own[pick], space.entry[pick]
    if e < 0:
        roots, as_copy = root_weights(t, forest, space, first, last)
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
    roots, as_copy = root_weights(t, forest, space, 0, len(forest.parent))
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
    roots, as_copy = root_weights(t, forest, space, 0, len(forest.parent))
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
