"""The partition of least expected loss, by local search."""

import numpy as np
from numba import types

from bayeslink.kernels import kernel, maker
from bayeslink.kernels.parameters import TYPES


@maker
def join_clusters(start, neighbour, probability, cost, cluster, size, gain):
    """Join each cluster with the one it gains most with, where it gains. Whether any was."""
    n, changed = len(cluster), False
    first = np.zeros(n + 2, np.int64)
    for i in range(n):
        first[cluster[i] + 1] += 1
    for c in range(n + 1):
        first[c + 1] += first[c]
    members, filled = np.empty(n, np.int64), first.copy()
    for i in range(n):
        members[filled[cluster[i]]] = i
        filled[cluster[i]] += 1
    moved = np.zeros(n + 1, np.bool_)
    for c in range(n + 1):
        if first[c] == first[c + 1] or moved[c]:
            continue
        best, to = 1e-9, -1
        for clear in range(2):
            for k in range(first[c], first[c + 1]):
                i = members[k]
                for e in range(start[i], start[i + 1]):
                    d = cluster[neighbour[e]]
                    gain[d] = 0.0 if clear else gain[d] + probability[e]
            if clear:
                break
            for k in range(first[c], first[c + 1]):
                i = members[k]
                for e in range(start[i], start[i + 1]):
                    d = cluster[neighbour[e]]
                    value = gain[d] - cost * size[c] * size[d]
                    if d != c and not moved[d] and value > best:
                        best, to = value, d
        if to >= 0:
            for k in range(first[c], first[c + 1]):
                cluster[members[k]] = to
            size[to] += size[c]
            size[c] = 0
            moved[c] = moved[to] = True
            changed = True
    return changed


@kernel(
    types.int64(
        TYPES["i8"], TYPES["i4"], TYPES["f8"], TYPES["i8"], types.float64, types.int64,
        TYPES["i8"],
    )
)  # fmt: skip
def improve_partition(start, neighbour, probability, order, cost, most, cluster):
    """Move records, then join clusters, while Σ over pairs within (p − cost) rises.

    Record i has the neighbours start[i] … with the probability to be one with it; of others it is
    0. `cluster` holds a number below the number of records. Returns how many rounds it took.
    """
    n = len(cluster)
    size, gain = np.zeros(n + 1, np.int64), np.zeros(n + 1)
    for i in range(n):
        size[cluster[i]] += 1
    free = np.empty(n + 1, np.int64)
    n_free = 0
    for c in range(n, -1, -1):
        if size[c] == 0:
            free[n_free] = c
            n_free += 1
    for turn in range(most):
        changed = False
        for k in range(n):
            i = order[k]
            own = cluster[i]
            for e in range(start[i], start[i + 1]):
                gain[cluster[neighbour[e]]] += probability[e]
            now = gain[own] - cost * (size[own] - 1)
            best, to = 0.0, -1
            for e in range(start[i], start[i + 1]):
                c = cluster[neighbour[e]]
                value = gain[c] - cost * (size[c] - (c == own))
                if value > best + 1e-12:
                    best, to = value, c
            for e in range(start[i], start[i + 1]):
                gain[cluster[neighbour[e]]] = 0.0
            if best > now + 1e-9 and to != own:
                if to < 0:
                    n_free -= 1
                    to = free[n_free]
                size[own] -= 1
                size[to] += 1
                cluster[i] = to
                if size[own] == 0:
                    free[n_free] = own
                    n_free += 1
                changed = True
        changed |= join_clusters(start, neighbour, probability, cost, cluster, size, gain)
        n_free = 0
        for c in range(n, -1, -1):
            if size[c] == 0:
                free[n_free] = c
                n_free += 1
        if not changed:
            return turn + 1
    return most
