"""The best forest of pointers given what each pair gains: exact in small components.

A forest is worth the sum of its edges' gains, and log ρ for each edge to a record that is a copy
itself. Given which records are originals, the best forest is a spanning forest of largest worth in
which all originals are one vertex. So a component of a few records is solved by going through all
sets of originals. Where some of its records may not be in one tree, two of a clean file, it is
solved by going through all sets of records instead, each as a tree or not at all. A large one is
solved by joining along edges of falling gain and moving records without copies while that helps;
the spanning forest of largest gain, ρ = 1, bounds what it misses.
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
def tree_worth(k, gain, members, log_rho, parent):
    """Worth of the best tree of these of k records (bits); −inf if there is none."""
    best, here = -np.inf, np.full(k, -1, np.int32)
    of_members = np.full((k, k), -np.inf)
    others = 0
    for i in range(k):
        if (members >> i) & 1:
            for j in range(k):
                if (members >> j) & 1:
                    of_members[i, j] = gain[i, j]
        else:
            others |= 1 << i
    for root in range(k):
        if (members >> root) & 1:
            worth = spanning_worth(k, of_members, others | 1 << root, log_rho, here)
            if worth > best:
                best = worth
                parent[:] = here
    return best


@maker
def solve_apart(records, start, neighbour, gains, clean, place, log_rho, parent):
    """Best forest of one small component, no tree with two records of a clean file."""
    k = len(records)
    gain = gains_between(records, start, neighbour, gains, place)
    n = 1 << k
    worth, parents = np.full(n, -np.inf), np.full((n, k), -1, np.int32)
    for members in range(1, n):
        held, clash = 0, False
        for i in range(k):
            if (members >> i) & 1:
                clash = clash or (held & clean[records[i]]) != 0
                held |= clean[records[i]]
        if not clash:
            worth[members] = tree_worth(k, gain, members, log_rho, parents[members])
    best, first = np.full(n, -np.inf), np.zeros(n, np.int64)  # the tree of the lowest record
    best[0] = 0.0
    for members in range(1, n):
        lowest = members & -members
        rest = members ^ lowest
        some = rest
        while True:
            tree = some | lowest
            value = worth[tree] + best[members ^ tree]
            if value > best[members]:
                best[members], first[members] = value, tree
            if some == 0:
                break
            some = (some - 1) & rest
    left = n - 1
    while left:
        tree = first[left]
        for i in range(k):
            if (tree >> i) & 1:
                p = parents[tree, i]
                parent[records[i]] = records[p] if p >= 0 else -1
        left ^= tree
    return best[n - 1]


@maker
def gains_between(records, start, neighbour, gains, place):
    """[record, record] of a small component: the gain of each pair; −inf of no pair."""
    k = len(records)
    gain = np.full((k, k), -np.inf)
    for i in range(k):
        place[records[i]] = i
    for i in range(k):
        for e in range(start[records[i]], start[records[i] + 1]):
            gain[i, place[neighbour[e]]] = gains[e]
    return gain


@maker
def clashes(records, clean):
    """Whether two of the records are of one clean file."""
    held = 0
    for i in records:
        if held & clean[i]:
            return True
        held |= clean[i]
    return False


@maker
def solve_small(records, start, neighbour, gains, place, log_rho, parent):
    """Best forest of one small component. Returns its worth.

    With some originals, the others can add their largest gains at most: where that is less than
    the best found, with room for what sums differ by for the order of their terms, they are left.
    """
    k = len(records)
    gain = gains_between(records, start, neighbour, gains, place)
    best, here, found = -np.inf, np.empty(k, np.int32), np.empty(k, np.int32)
    largest = np.full(k, -np.inf)
    for i in range(k):
        for j in range(k):
            largest[i] = max(largest[i], gain[i, j])
    for originals in range(1, 1 << k):
        most = 0.0
        for i in range(k):
            if not (originals >> i) & 1:
                most += largest[i]
        if most * (1.0 + 1e-12) < best:
            continue
        worth = spanning_worth(k, gain, originals, log_rho, here)
        if worth > best:
            best = worth
            found[:] = here
    for i in range(k):
        parent[records[i]] = records[found[i]] if found[i] >= 0 else -1
    return best


@maker
def join_up(records, edges, owner, neighbour, gains, held, log_rho, parent, tree):
    """Join along edges of falling gain while that helps; each tree hangs on its fullest record.

    `held`: bits of the clean files of each record; no tree may hold one twice.
    """
    fullest = np.zeros(len(tree), np.int64)
    degree = np.zeros(len(tree), np.int64)
    taken = np.zeros(len(edges), np.bool_)
    for k in range(len(edges)):
        a, b = owner[edges[k]], neighbour[edges[k]]
        i, j = find(tree, a), find(tree, b)
        if i == j or held[i] & held[j]:
            continue
        most = max(max(fullest[i], fullest[j]), max(degree[a], degree[b]) + 1)
        deeper = 1 - most + fullest[i] + fullest[j]
        if not gains[edges[k]] + (deeper * log_rho if deeper else 0.0) > 0:
            continue
        taken[k] = True
        tree[j] = i
        held[i] |= held[j]
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
def move_leaves(records, start, neighbour, gains, clean, log_rho, parent):
    """Move records without copies to where they are worth most, while that helps.

    Not those of clean files, which may not go everywhere.
    """
    n_copies = np.zeros(len(parent), np.int64)
    for i in records:
        if parent[i] >= 0:
            n_copies[parent[i]] += 1
    for _ in range(50):
        moved = False
        for i in records:
            if n_copies[i] or clean[i]:
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
def solve_large(records, edges, owner, start, neighbour, gains, clean, log_rho, parent, place):
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
    found, of_clean = np.full(k, -1, np.int32), clean[records]
    join_up(own, at, owners, near, gain, of_clean.copy(), log_rho, found, own.copy())
    move_leaves(own, starts, near, gain, of_clean, log_rho, found)
    for i in range(k):
        parent[records[i]] = records[found[i]] if found[i] >= 0 else -1


@kernel(
    types.void(
        TYPES["i8"], TYPES["i4"], TYPES["f8"], TYPES["i4"], TYPES["i8"], TYPES["i4"], TYPES["i8"],
        TYPES["i8"], TYPES["i8"], types.float64, types.int64, types.int64, TYPES["i4"],
        TYPES["f8"], TYPES["f8"],
    )
)  # fmt: skip
def best_forest(
    start, neighbour, gains, owner, edges, members, first, first_edge, clean, log_rho,
    from_c, to_c, parent, worth, bound,
):  # fmt: skip
    """Parent of each record, −1 of an original; worth of each component, and the most it can be.

    Of the components from_c … to_c.

    `gains` are positive, one an entry of `neighbour`. Component c has the records members[first[c]]
    … and, by falling gain, one entry a pair: edges[first_edge[c]] …. `clean`: bits of the clean
    file of each record, 0 of none.
    """
    n = len(parent)
    place, tree = np.zeros(n, np.int64), np.arange(n)
    for c in range(from_c, to_c):
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
            if clashes(records, clean):
                worth[c] = solve_apart(
                    records, start, neighbour, gains, clean, place, log_rho, parent
                )
            else:
                worth[c] = solve_small(records, start, neighbour, gains, place, log_rho, parent)
            bound[c] = worth[c]
        else:
            solve_large(records, own, owner, start, neighbour, gains, clean, log_rho, parent, place)
            worth[c] = worth_of(records, start, neighbour, gains, log_rho, parent)
