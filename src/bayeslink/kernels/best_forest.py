"""The best forest of pointers given what each pair gains: exact in small components.

A forest is worth the sum of its edges' gains, and log ρ for each edge to a record that is a copy
itself. Given which records are originals, the best forest is a spanning forest of largest worth in
which all originals are one vertex. So a component of a few records is solved by going through all
sets of originals. A large one is solved by joining along edges of falling gain and moving records
without copies while that helps; the spanning forest of largest gain, ρ = 1, bounds what it misses.
"""

import numpy as np
from numba import types

from bayeslink.kernels import kernel, maker
from bayeslink.kernels.parameters import TYPES

LARGEST_EXACT = 8  # records of a component whose sets of originals are gone through


@maker
def find(tree, i):
    while tree[i] != i:
        tree[i] = tree[tree[i]]
        i = tree[i]
    return i


@maker
def spanning_worth(k, gain, originals, log_rho, parent):
    """Worth of the best forest of k records with these originals (bits); −inf if there is none.

    `gain` is [record, record], −inf of no pair. `parent` gets the forest.
    """
    best, via = np.full(k, -np.inf), np.full(k, -1, np.int32)
    inside = np.zeros(k, np.bool_)
    total, left = 0.0, 0
    for i in range(k):
        parent[i] = -1
        inside[i] = (originals >> i) & 1
        left += not inside[i]
    for i in range(k):
        if not inside[i]:
            for j in range(k):
                if inside[j] and gain[i, j] > best[i]:
                    best[i], via[i] = gain[i, j], j
    for _ in range(left):
        i = -1
        for x in range(k):
            if not inside[x] and (i < 0 or best[x] > best[i]):
                i = x
        if best[i] == -np.inf:
            return -np.inf
        total += best[i]
        inside[i], parent[i] = True, via[i]
        for x in range(k):
            if not inside[x] and gain[x, i] + log_rho > best[x]:
                best[x], via[x] = gain[x, i] + log_rho, i
    return total


@maker
def solve_small(records, start, neighbour, gains, place, log_rho, parent):
    """Best forest of one small component. Returns its worth."""
    k = len(records)
    gain = np.full((k, k), -np.inf)
    for i in range(k):
        place[records[i]] = i
    for i in range(k):
        for e in range(start[records[i]], start[records[i] + 1]):
            gain[i, place[neighbour[e]]] = gains[e]
    best, here, found = -np.inf, np.empty(k, np.int32), np.empty(k, np.int32)
    for originals in range(1, 1 << k):
        worth = spanning_worth(k, gain, originals, log_rho, here)
        if worth > best:
            best = worth
            found[:] = here
    for i in range(k):
        parent[records[i]] = records[found[i]] if found[i] >= 0 else -1
    return best


@maker
def join_up(records, edges, owner, neighbour, gains, log_rho, parent, tree):
    """Join along edges of falling gain while that helps; each tree hangs on its fullest record."""
    fullest = np.zeros(len(tree), np.int64)
    degree = np.zeros(len(tree), np.int64)
    taken = np.zeros(len(edges), np.bool_)
    for k in range(len(edges)):
        a, b = owner[edges[k]], neighbour[edges[k]]
        i, j = find(tree, a), find(tree, b)
        if i == j:
            continue
        most = max(max(fullest[i], fullest[j]), max(degree[a], degree[b]) + 1)
        deeper = 1 - most + fullest[i] + fullest[j]
        if not gains[edges[k]] + (deeper * log_rho if deeper else 0.0) > 0:
            continue
        taken[k] = True
        tree[j] = i
        degree[a] += 1
        degree[b] += 1
        fullest[i] = most
    first, entry = np.zeros(len(tree) + 1, np.int64), np.empty(2 * int(taken.sum()), np.int32)
    for i in range(len(tree)):
        first[i + 1] = first[i] + degree[i]
    filled = first[:-1].copy()
    for k in range(len(edges)):
        if taken[k]:
            a, b = owner[edges[k]], neighbour[edges[k]]
            entry[filled[a]], entry[filled[b]] = b, a
            filled[a] += 1
            filled[b] += 1
    root = np.full(len(tree), -1, np.int64)
    for i in records:
        r = find(tree, i)
        if root[r] < 0 or degree[i] > degree[root[r]]:
            root[r] = i
    stack = np.empty(len(records) + 1, np.int64)
    for i in records:
        if root[find(tree, i)] != i:
            continue
        parent[i], stack[0], n = -1, i, 1
        while n:
            n -= 1
            x = stack[n]
            for e in range(first[x], first[x + 1]):
                if entry[e] != parent[x]:
                    parent[entry[e]] = x
                    stack[n] = entry[e]
                    n += 1


@maker
def move_leaves(records, start, neighbour, gains, log_rho, parent):
    """Move records without copies to where they are worth most, while that helps."""
    n_copies = np.zeros(len(parent), np.int64)
    for i in records:
        if parent[i] >= 0:
            n_copies[parent[i]] += 1
    for _ in range(50):
        moved = False
        for i in records:
            if n_copies[i]:
                continue
            now, best, to = 0.0, 0.0, -1
            for e in range(start[i], start[i + 1]):
                j = neighbour[e]
                worth = gains[e] + (log_rho if parent[j] >= 0 else 0.0)
                if j == parent[i]:
                    now = worth
                if worth > best:
                    best, to = worth, j
            if best > now + 1e-9:
                if parent[i] >= 0:
                    n_copies[parent[i]] -= 1
                parent[i] = to
                if to >= 0:
                    n_copies[to] += 1
                moved = True
        if not moved:
            return


@maker
def worth_of(records, start, neighbour, gains, log_rho, parent):
    total = 0.0
    for i in records:
        p = parent[i]
        if p >= 0:
            for e in range(start[i], start[i + 1]):
                if neighbour[e] == p:
                    total += gains[e]
            if parent[p] >= 0:
                total += log_rho
    return total


@maker
def solve_large(records, edges, owner, start, neighbour, gains, log_rho, parent, place):
    """A good forest of one large component."""
    k = len(records)
    for i in range(k):
        place[records[i]] = i
    # Within the component, so that its cost does not depend on the rest of the file.
    own = np.arange(k)
    starts, n = np.zeros(k + 1, np.int64), 0
    for i in range(k):
        n += start[records[i] + 1] - start[records[i]]
        starts[i + 1] = n
    near, gain = np.empty(n, np.int32), np.empty(n)
    owners, at = np.empty(n, np.int32), np.empty(len(edges), np.int64)
    for i in range(k):
        for e in range(start[records[i]], start[records[i] + 1]):
            f = starts[i] + e - start[records[i]]
            near[f], gain[f], owners[f] = place[neighbour[e]], gains[e], i
    for j in range(len(edges)):
        x = owner[edges[j]]
        at[j] = starts[place[x]] + edges[j] - start[x]
    found = np.full(k, -1, np.int32)
    join_up(own, at, owners, near, gain, log_rho, found, own.copy())
    move_leaves(own, starts, near, gain, log_rho, found)
    for i in range(k):
        parent[records[i]] = records[found[i]] if found[i] >= 0 else -1


@kernel(
    types.void(
        TYPES["i8"], TYPES["i4"], TYPES["f8"], TYPES["i4"], TYPES["i8"], TYPES["i4"], TYPES["i8"],
        TYPES["i8"], types.float64, TYPES["i4"], TYPES["f8"], TYPES["f8"],
    )
)  # fmt: skip
def best_forest(
    start, neighbour, gains, owner, edges, members, first, first_edge, log_rho, parent, worth, bound
):  # fmt: skip
    """Parent of each record, −1 of an original; worth of each component, and the most it can be.

    `gains` are positive, one an entry of `neighbour`. Component c has the records members[first[c]]
    … and, by falling gain, one entry a pair: edges[first_edge[c]] ….
    """
    n = len(parent)
    place, tree = np.zeros(n, np.int64), np.arange(n)
    for c in range(len(first) - 1):
        records = members[first[c] : first[c + 1]]
        own = edges[first_edge[c] : first_edge[c + 1]]
        for e in own:  # the spanning forest of largest gain
            i, j = find(tree, owner[e]), find(tree, neighbour[e])
            if i != j:
                tree[j] = i
                bound[c] += gains[e]
        for i in records:
            tree[i] = i
        if len(records) <= LARGEST_EXACT:
            worth[c] = solve_small(records, start, neighbour, gains, place, log_rho, parent)
            bound[c] = worth[c]
        else:
            solve_large(records, own, owner, start, neighbour, gains, log_rho, parent, place)
            worth[c] = worth_of(records, start, neighbour, gains, log_rho, parent)
