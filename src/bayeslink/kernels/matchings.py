"""The matchings of small blocks, listed; each is an earlier one, its parent, and one edge more."""

import numpy as np

from bayeslink.kernels import helper, kernel

LONGEST = 64  # edges of a block whose matchings are listed: one bit each


@helper
def joint_weights(
    first, last, set_parent, set_edge, set_size, edge_pattern, odds, step_cost, n_rest, weights
):
    """Unnormalised probabilities of the listed matchings first … last of a block, and their sum.

    The first is empty; each other one is an earlier one, its parent, and one edge more.
    """
    weights[0] = 1.0
    total = 1.0
    for s in range(first + 1, last):
        weight = weights[set_parent[s]] * odds[edge_pattern[set_edge[s]]]
        weight /= step_cost[n_rest + set_size[s] - 1]
        weights[s - first] = weight
        total += weight
    if total < np.inf:
        return total
    weights[0] = 0.0  # too large: once more in logs
    largest = 0.0
    for s in range(first + 1, last):
        step = np.log(odds[edge_pattern[set_edge[s]]])
        step -= np.log(step_cost[n_rest + set_size[s] - 1])
        weights[s - first] = weights[set_parent[s]] + step
        largest = max(largest, weights[s - first])
    total = 0.0
    for s in range(last - first):
        weights[s] = np.exp(weights[s] - largest)
        total += weights[s]
    return total


@helper
def edge_chances(first, last, set_parent, set_edge, weights, total, expected):
    """Probability of each edge given those of its block's matchings, of which only their sums stay.

    A matching's weight goes to its last edge and, by way of its parent, to all before it. Those
    with the same last edge follow each other.
    """
    e = set_edge[last - 1]
    so_far, share = 0.0, 1.0 / total
    for s in range(last - 1, first, -1):
        if set_edge[s] != e:
            expected[e] = so_far * share
            e = set_edge[s]
            so_far = 0.0
        so_far += weights[s - first]
        weights[set_parent[s]] += weights[s - first]
    expected[e] = so_far * share


@helper
def fill_matchings(rows, columns, first, last, most, used_rows, used_columns, parent, edge, size):
    """All matchings of edges first … last, each as its parent and one more edge.

    Returns their number, or −1 beyond `most`. The first one is empty.
    """
    used_rows[0] = 0
    used_columns[0] = 0
    parent[0] = 0
    edge[0] = -1
    size[0] = 0
    n = 1
    for e in range(first, last):
        row = np.uint64(1) << np.uint64(rows[e])
        column = np.uint64(1) << np.uint64(columns[e])
        for s in range(n):
            if used_rows[s] & row == 0 and used_columns[s] & column == 0:
                if n == most:
                    return -1
                used_rows[n] = used_rows[s] | row
                used_columns[n] = used_columns[s] | column
                parent[n] = s
                edge[n] = e
                size[n] = size[s] + 1
                n += 1
    return n


@kernel("b1[::1](i8[::1],i4[::1],i4[::1],i8,i8)")
def greedy_matching(order, a, b, n_a, n_b):
    """Which edges are linked if each, in the given order, links its ends if both are free."""
    linked = np.zeros(len(order), np.bool_)
    taken_a = np.zeros(n_a, np.bool_)
    taken_b = np.zeros(n_b, np.bool_)
    for e in order:
        if not (taken_a[a[e]] or taken_b[b[e]]):
            linked[e] = True
            taken_a[a[e]] = True
            taken_b[b[e]] = True
    return linked


@kernel("Tuple((i8[::1],i4[::1],i4[::1],i4[::1]))(i8[::1],i8[::1],i8[::1],i8)")
def list_matchings(block_start, rows, columns, most):
    """List the matchings of each block, unless it has more than `most` or over 64 edges.

    `rows` and `columns` number each edge's ends within its block. Returns where each block's
    matchings start (where the next one's do, if it has too many), and each matching's parent
    (counted within the block), last edge and size.
    """
    n_blocks = len(block_start) - 1
    used_rows = np.empty(most, np.uint64)
    used_columns = np.empty(most, np.uint64)
    parent = np.empty(most, np.int32)
    edge = np.empty(most, np.int32)
    size = np.empty(most, np.int32)
    first_set = np.zeros(n_blocks + 1, np.int64)
    set_parent = np.zeros(0, np.int32)
    set_edge = np.zeros(0, np.int32)
    set_size = np.zeros(0, np.int32)
    for attempt in range(2):  # count, then fill
        n = 0
        for k in range(n_blocks):
            first, last = block_start[k], block_start[k + 1]
            found = -1
            if last - first <= LONGEST:
                found = fill_matchings(
                    rows, columns, first, last, most, used_rows, used_columns, parent, edge, size
                )
            found = max(found, 0)
            if attempt == 1:
                for s in range(found):
                    set_parent[n + s] = parent[s]
                    set_edge[n + s] = edge[s]
                    set_size[n + s] = size[s]
            n += found
            first_set[k + 1] = n
        if attempt == 0:
            set_parent = np.empty(n, np.int32)
            set_edge = np.empty(n, np.int32)
            set_size = np.empty(n, np.int32)
    return first_set, set_parent, set_edge, set_size
