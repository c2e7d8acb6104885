"""The restricted sampler (Section 4), one chain: sweeps over post-hoc blocks, then m and u.

Candidate pairs ("edges") come in three runs: blocks of a single pair, blocks whose matchings have
been listed, and larger blocks. Blocks are visited in turn, each given the number of links
elsewhere, so any prior on that number is exact: `step_cost[n]` = p(C with n links) / p(C with n+1).
Odds of patterns, exp(w), are worked out once a sweep.

Randomness is counter-based: each (seed, chain, sweep, block) has its own splitmix64 stream.
"""

import numba
import numpy as np

from bayeslink.kernels import kernel

helper = numba.njit(nogil=True)

# Weights and costs beyond ±this, in natural logs, are cut off, so that no ratio of two overflows.
# Only Dirichlet parameters far below 1 or absurd penalties get there.
LARGEST = 300.0
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@helper
def mix(x):
    """The finaliser of splitmix64."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@helper
def start_stream(rng, seed, chain, sweep, block):
    """Point `rng` at the stream of a block in a sweep of a chain."""
    key = mix(np.uint64(seed) + _GOLDEN)
    key = mix(key ^ (np.uint64(chain) * np.uint64(0xD1342543DE82EF95)))
    key = mix(key ^ (np.uint64(sweep) * np.uint64(0xAEF17502108EF2D9)))
    rng[0] = mix(key ^ (np.uint64(block) * np.uint64(0xF1357AEA2E62A9C5)))


@helper
def uniform(rng):
    """The next number in [0, 1)."""
    rng[0] += _GOLDEN
    return (mix(rng[0]) >> np.uint64(11)) * 1.1102230246251565e-16


@helper
def normal(rng):
    """A standard normal number (polar method)."""
    while True:
        x = 2.0 * uniform(rng) - 1.0
        y = 2.0 * uniform(rng) - 1.0
        s = x * x + y * y
        if 0.0 < s < 1.0:
            return x * np.sqrt(-2.0 * np.log(s) / s)


@helper
def log_gamma_variate(rng, shape):
    """The log of a Gamma(shape, 1) number (Marsaglia & Tsang); the log survives tiny shapes."""
    boost = 0.0
    if shape < 1.0:
        boost = np.log(1.0 - uniform(rng)) / shape
        shape += 1.0
    d = shape - 1.0 / 3.0
    c = 1.0 / np.sqrt(9.0 * d)
    while True:
        x = normal(rng)
        v = (1.0 + c * x) ** 3
        if v > 0.0:
            u = 1.0 - uniform(rng)
            if np.log(u) < 0.5 * x * x + d - d * v + d * np.log(v):
                return np.log(d * v) + boost


@helper
def draw_log_dirichlet(rng, alpha, used, out):
    """log of a Dirichlet draw for each row of alpha, over its used columns."""
    for j in range(alpha.shape[0]):
        largest = -np.inf
        for h in range(alpha.shape[1]):
            if used[j, h]:
                out[j, h] = log_gamma_variate(rng, alpha[j, h])
                largest = max(largest, out[j, h])
        total = 0.0
        for h in range(alpha.shape[1]):
            if used[j, h]:
                total += np.exp(out[j, h] - largest)
        for h in range(alpha.shape[1]):
            if used[j, h]:
                out[j, h] -= largest + np.log(total)


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
def row_chances(
    row, row_start, edge_column, edge_pattern, odds, step_cost, n_rest, of_column, weights
):
    """Odds of linking a free row along each of its edges against leaving it free, and 1 + sum."""
    total = 1.0
    for e in range(row_start[row], row_start[row + 1]):
        weight = 0.0
        if of_column[edge_column[e]] < 0:
            weight = odds[edge_pattern[e]] / step_cost[n_rest]
        weights[e - row_start[row]] = weight
        total += weight
    return total


@helper
def find_edge(row, column, row_start, edge_column):
    """The edge between row and column, or −1."""
    low, high = row_start[row], row_start[row + 1]
    while low < high:
        middle = (low + high) // 2
        if edge_column[middle] < column:
            low = middle + 1
        else:
            high = middle
    if low < row_start[row + 1] and edge_column[low] == column:
        return low
    return -1


@helper
def row_weights(
    row, row_start, edge_row, edge_column, edge_pattern, root, step_cost, n_links,
    of_row, of_column, weights
):  # fmt: skip
    """√(odds of the state after / before) for the move at each edge of a row, and their sum.

    `root` holds √odds by pattern.

    The move at edge (a, b) links a and b: it adds the pair, drops it if it is linked, switches a
    or b away from another partner, or, if both have one, switches both (if the two left over are
    a candidate pair; else there is no such move).
    """
    total = 0.0
    current = of_row[row]
    for e in range(row_start[row], row_start[row + 1]):
        other = of_column[edge_column[e]]
        weight = root[edge_pattern[e]]
        if current == e:
            weight = np.sqrt(step_cost[n_links - 1]) / weight
        elif current < 0 and other < 0:
            weight /= np.sqrt(step_cost[n_links])
        elif other < 0:
            weight /= root[edge_pattern[current]]
        elif current < 0:
            weight /= root[edge_pattern[other]]
        else:
            left = find_edge(edge_row[other], edge_column[current], row_start, edge_column)
            if left < 0:
                weight = 0.0
            else:
                before = root[edge_pattern[current]] * root[edge_pattern[other]]
                weight *= root[edge_pattern[left]] / before
        weights[e - row_start[row]] = weight
        total += weight
    return total


@helper
def make_move(e, row_start, edge_row, edge_column, of_row, of_column):
    """Carry out the move at edge e. Returns the change in links and the row of the way back."""
    row, column = edge_row[e], edge_column[e]
    current, other = of_row[row], of_column[column]
    if current == e:
        of_row[row] = -1
        of_column[column] = -1
        return -1, row
    back = row
    change = 1
    if current >= 0:
        of_column[edge_column[current]] = -1
        change -= 1
    if other >= 0:
        of_row[edge_row[other]] = -1
        change -= 1
        if current >= 0:
            left = find_edge(edge_row[other], edge_column[current], row_start, edge_column)
            of_row[edge_row[other]] = left
            of_column[edge_column[current]] = left
            change += 1
        else:
            back = edge_row[other]
    of_row[row] = e
    of_column[column] = e
    return change, back


@helper
def balanced_move(
    row, pick, accept, row_start, edge_row, edge_column, edge_pattern, root, step_cost, n_links,
    of_row, of_column, weights
):  # fmt: skip
    """A locally balanced Metropolis move in the neighbourhood of a row (Zanella 2020).

    The move is picked in proportion to the square root of its odds, so the odds cancel from the
    acceptance probability: what is left is the ratio of the two normalising sums.
    """
    here = row_weights(
        row, row_start, edge_row, edge_column, edge_pattern, root, step_cost, n_links,
        of_row, of_column, weights
    )  # fmt: skip
    if here <= 0.0:
        return n_links
    threshold = pick * here
    e = row_start[row]
    so_far = weights[0]
    while so_far <= threshold and e + 1 < row_start[row + 1]:
        e += 1
        so_far += weights[e - row_start[row]]
    if weights[e - row_start[row]] <= 0.0:
        return n_links
    a, b = edge_row[e], edge_column[e]
    current, other = of_row[a], of_column[b]
    change, back = make_move(e, row_start, edge_row, edge_column, of_row, of_column)
    there = row_weights(
        back, row_start, edge_row, edge_column, edge_pattern, root, step_cost, n_links + change,
        of_row, of_column, weights
    )  # fmt: skip
    if accept * there < here:
        return n_links + change
    if current == e:
        undo = e
    elif current >= 0:
        undo = current
    elif other >= 0:
        undo = other
    else:
        undo = e
    make_move(undo, row_start, edge_row, edge_column, of_row, of_column)
    return n_links


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
            if last - first <= 64:
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


@kernel(
    "i8(i8,i8,i8,i8,i8,u1[:,::1],i4[::1],i8,i8[::1],i4[::1],i4[::1],i4[::1],"
    "i8[::1],i8[::1],i4[::1],i4[::1],"
    "f8[:,::1],f8[:,::1],b1[:,::1],i8[:,::1],i8[:,::1],f8[::1],f8[::1],"
    "f8[:,::1],f8[:,::1],b1[::1],i8[::1],i4[::1],i4[::1],i8,"
    "i8[::1],f8[::1],f8[:,:,::1],f8[:,:,::1],f8[::1],f8[::1],f8[::1],i8)"
)
def run_sweeps(
    seed, chain, first_sweep, n_sweeps, first_draw,
    patterns, edge_pattern, n_single, joint_start, set_parent, set_edge, set_size,
    large_start, row_start, edge_row, edge_column,
    alpha_m, alpha_u, used, all_counts, known_counts, log_prior, step_cost,
    log_m, log_u, linked, chosen_set, of_row, of_column, n_links,
    out_links, out_log_posterior, out_m, out_u, probability, batch, batch_squares, batch_length
):  # fmt: skip
    """Run sweeps; record from `first_draw` on if that is not negative. Returns the links.

    Edges 0 … n_single−1 are single-pair blocks; joint block k has the matchings joint_start[k] …
    of which chosen_set[k] holds; large block k has the rows large_start[k] … with their edges.
    """
    n_fields, width = log_m.shape
    n_edges = len(edge_pattern)
    rng = np.zeros(1, np.uint64)
    odds = np.empty(len(patterns))
    root = np.empty(len(patterns))
    counts = np.empty((n_fields, width), np.int64)
    shape_m, shape_u = np.empty((n_fields, width)), np.empty((n_fields, width))
    n_joint, n_large = len(joint_start) - 1, len(large_start) - 1
    most = 1
    for k in range(n_joint):
        most = max(most, joint_start[k + 1] - joint_start[k])
    for r in range(len(row_start) - 1):
        most = max(most, row_start[r + 1] - row_start[r])
    weights = np.empty(most)
    expected = np.zeros(n_edges)
    for sweep in range(first_sweep, first_sweep + n_sweeps):
        recording = first_draw >= 0
        for g in range(len(patterns)):
            w = 0.0
            for j in range(n_fields):
                if patterns[g, j] > 0:
                    w += log_m[j, patterns[g, j]] - log_u[j, patterns[g, j]]
            w = min(max(w, -LARGEST), LARGEST)
            odds[g] = np.exp(w)
            root[g] = np.exp(0.5 * w)
        if recording:
            for e in range(n_edges):
                expected[e] = 0.0

        start_stream(rng, seed, chain, sweep, 0)
        for e in range(n_single):
            n_links -= linked[e]
            chance = odds[edge_pattern[e]]
            chance /= chance + step_cost[n_links]
            linked[e] = uniform(rng) < chance
            n_links += linked[e]
            if recording:
                expected[e] = chance

        for k in range(n_joint):
            start_stream(rng, seed, chain, sweep, 1 + k)
            first, last = joint_start[k], joint_start[k + 1]
            s = chosen_set[k]
            n_links -= set_size[first + s]
            while s > 0:
                linked[set_edge[first + s]] = False
                s = set_parent[first + s]
            total = joint_weights(
                first, last, set_parent, set_edge, set_size, edge_pattern, odds, step_cost,
                n_links, weights
            )  # fmt: skip
            threshold = uniform(rng) * total
            s = 0
            so_far = weights[0]
            while so_far <= threshold and s + 1 < last - first:
                s += 1
                so_far += weights[s]
            chosen_set[k] = s
            n_links += set_size[first + s]
            while s > 0:
                linked[set_edge[first + s]] = True
                s = set_parent[first + s]
            if recording:  # a matching's weight goes to its last edge and to all before it
                for s in range(last - first - 1, 0, -1):
                    expected[set_edge[first + s]] += weights[s] / total
                    weights[set_parent[first + s]] += weights[s]

        for k in range(n_large):
            start_stream(rng, seed, chain, sweep, 1 + n_joint + k)
            low, high = large_start[k], large_start[k + 1]
            for _ in range((high - low + 3) // 4):
                row = low + np.int64(uniform(rng) * (high - low))
                n_links = balanced_move(
                    row, uniform(rng), uniform(rng), row_start, edge_row, edge_column,
                    edge_pattern, root, step_cost, n_links, of_row, of_column, weights
                )  # fmt: skip
            for row in range(low, high):
                e = of_row[row]
                if e >= 0:
                    of_column[edge_column[e]] = -1
                    n_links -= 1
                total = row_chances(
                    row, row_start, edge_column, edge_pattern, odds, step_cost, n_links,
                    of_column, weights
                )  # fmt: skip
                threshold = uniform(rng) * total
                so_far = 1.0
                of_row[row] = -1
                for e in range(row_start[row], row_start[row + 1]):
                    weight = weights[e - row_start[row]]
                    linked[e] = so_far <= threshold and threshold < so_far + weight
                    so_far += weight
                    if linked[e]:
                        of_row[row] = e
                        of_column[edge_column[e]] = e
                        n_links += 1
                    if recording:
                        expected[e] = weight / total

        for j in range(n_fields):
            for h in range(width):
                counts[j, h] = known_counts[j, h]
        for e in range(n_edges):
            if linked[e]:
                for j in range(n_fields):
                    counts[j, patterns[edge_pattern[e], j]] += 1
        start_stream(rng, seed, chain, sweep, np.uint64(0xFFFFFFFFFFFFFFFF))
        for j in range(n_fields):
            for h in range(width):
                shape_m[j, h] = alpha_m[j, h] + counts[j, h]
                shape_u[j, h] = alpha_u[j, h] + (all_counts[j, h] - counts[j, h])
        draw_log_dirichlet(rng, shape_m, used, log_m)
        draw_log_dirichlet(rng, shape_u, used, log_u)

        if recording:
            density = log_prior[n_links]
            for j in range(n_fields):
                for h in range(1, width):
                    if used[j, h]:
                        density += (alpha_m[j, h] - 1.0 + counts[j, h]) * log_m[j, h]
                        others = all_counts[j, h] - counts[j, h]
                        density += (alpha_u[j, h] - 1.0 + others) * log_u[j, h]
                        out_m[first_draw, j, h] = np.exp(log_m[j, h])
                        out_u[first_draw, j, h] = np.exp(log_u[j, h])
            out_links[first_draw] = n_links
            out_log_posterior[first_draw] = density
            for e in range(n_edges):
                probability[e] += expected[e]
                batch[e] += expected[e]
            if (first_draw + 1) % batch_length == 0:
                for e in range(n_edges):
                    batch_squares[e] += (batch[e] / batch_length) ** 2
                    batch[e] = 0.0
            first_draw += 1
    return n_links
