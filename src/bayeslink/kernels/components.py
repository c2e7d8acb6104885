"""Connected components of a growing graph."""

import numpy as np

from bayeslink.kernels import kernel


@kernel("i8(i4[::1],i4[::1],f8[::1],i8,i8,i8,i8)")
def first_overflow(a, b, weights, n_a, n_b, most_edges, most_records):
    """Add edges of falling weight until a component grows past a budget.

    Edges of equal weight enter together. Returns how many edges fit: all of them, or the number
    before the group that overflows.
    """
    parent = np.arange(n_a + n_b)
    edges = np.zeros(n_a + n_b, np.int64)
    in_a = np.zeros(n_a + n_b, np.int64)
    in_b = np.zeros(n_a + n_b, np.int64)
    in_a[:n_a] = 1
    in_b[n_a:] = 1
    group = 0
    for e in range(len(a)):
        if weights[e] != weights[group]:
            group = e
        x, y = np.int64(a[e]), np.int64(b[e]) + n_a
        while parent[x] != x:
            parent[x] = parent[parent[x]]
            x = parent[x]
        while parent[y] != y:
            parent[y] = parent[parent[y]]
            y = parent[y]
        if x != y:
            if in_a[x] + in_b[x] < in_a[y] + in_b[y]:
                x, y = y, x
            parent[y] = x
            edges[x] += edges[y]
            in_a[x] += in_a[y]
            in_b[x] += in_b[y]
        edges[x] += 1
        if edges[x] > most_edges or in_a[x] > most_records or in_b[x] > most_records:
            return group
    return len(a)
