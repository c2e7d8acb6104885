"""Moves in large blocks: a Gibbs draw of a row, and a locally balanced Metropolis move.

Each row has at most one link, `of_row`, and each column, `of_column`; −1 is none.
"""

import numpy as np

from bayeslink.kernels import helper


@helper
def row_chances(
    row, row_start, edge_column, edge_pattern, odds, step_cost, n_rest, of_column, weights
):
    """Odds of linking a free row along each of its edges against leaving it free, and 1 + sum."""
    total = 1.0
    first, gain = row_start[row], 1.0 / step_cost[n_rest]
    for e in range(first, row_start[row + 1]):
        weight = odds[edge_pattern[e]] * gain
        if of_column[edge_column[e]] >= 0:
            weight = 0.0
        weights[e - first] = weight
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
    first, current = row_start[row], of_row[row]
    # What the move gives up where the column is free: the cost of a link, or the row's own link.
    given_up = np.sqrt(step_cost[n_links]) if current < 0 else root[edge_pattern[current]]
    for e in range(first, row_start[row + 1]):
        other = of_column[edge_column[e]]
        weight = root[edge_pattern[e]]
        if current == e:
            weight = np.sqrt(step_cost[n_links - 1]) / weight
        elif other < 0:
            weight /= given_up
        elif current < 0:
            weight /= root[edge_pattern[other]]
        else:
            left = find_edge(edge_row[other], edge_column[current], row_start, edge_column)
            if left < 0:
                weight = 0.0
            else:
                before = given_up * root[edge_pattern[other]]
                weight *= root[edge_pattern[left]] / before
        weights[e - first] = weight
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
