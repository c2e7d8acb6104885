"""Maximum-weight bipartite matching on a sparse graph by shortest augmenting paths.

Prices p of rows and q of columns are kept with p + q ≥ score on every edge, equal on matched
edges, and 0 at unmatched columns. A free row enters by the cheapest alternating path (Dijkstra
on reduced costs) to a free column, or to a row that is better left unmatched. The search stays
within the row's connected component, and mostly within a few vertices of it.
"""

import heapq

import numpy as np

from bayeslink.kernels import kernel

_GRAPH = "i8[::1],i4[::1],f8[::1]"


@kernel(f"void({_GRAPH},i4[::1],i4[::1],f8[::1],f8[::1],i8)")
def settle(indptr, columns, scores, match_row, match_column, p, q, rounds):
    """Make an old matching and its column prices a valid start for new scores.

    Pairs that are no longer tight are given up, which frees columns, which sets their price to
    0, which may loosen other pairs; after `rounds` of that, everything is given up.
    """
    n_rows, n_columns = len(p), len(q)
    for c in range(n_columns):
        q[c] = max(q[c], 0.0) if match_column[c] >= 0 else 0.0
    for attempt in range(rounds + 1):
        if attempt == rounds:
            match_row[:] = -1
            match_column[:] = -1
            q[:] = 0.0
        loosened = False
        for i in range(n_rows):
            p[i] = 0.0
            tight = False
            for e in range(indptr[i], indptr[i + 1]):
                net = scores[e] - q[columns[e]]
                if net > p[i]:
                    p[i] = net
                    tight = columns[e] == match_row[i]
                elif net == p[i] and columns[e] == match_row[i]:
                    tight = True
            if match_row[i] >= 0 and not tight:
                q[match_row[i]] = 0.0
                match_column[match_row[i]] = -1
                match_row[i] = -1
                loosened = True
        if not loosened:
            break


@kernel(f"i8({_GRAPH},i4[::1],i4[::1],f8[::1],f8[::1],i8,i8)")
def augment(indptr, columns, scores, match_row, match_column, p, q, first, most):
    """Bring in every free row, from `first` on, with a positive price.

    Arguments after `scores` are updated. Stops once it has looked at `most` edges, and returns
    the row to go on from.
    """
    n_rows, n_columns = len(p), len(q)
    distance = np.full(n_columns, np.inf)
    before = np.full(n_columns, -1, np.int32)  # row from which the column was reached
    settled = np.zeros(n_columns, np.bool_)
    reached = np.empty(n_columns, np.int32)
    looked = 0
    for root in range(first, n_rows):
        if looked > most:
            return root
        if match_row[root] >= 0 or p[root] <= 0.0:
            continue
        n_reached = 0
        heap = [(0.0, np.int32(-1))]
        heap.pop()
        best, quitter, free = p[root], root, -1
        row, so_far = root, 0.0
        while True:
            looked += indptr[row + 1] - indptr[row]
            for e in range(indptr[row], indptr[row + 1]):
                c = columns[e]
                d = so_far + max(p[row] + q[c] - scores[e], 0.0)
                if d < best and d < distance[c] and not settled[c]:
                    if distance[c] == np.inf:
                        reached[n_reached] = c
                        n_reached += 1
                    distance[c] = d
                    before[c] = row
                    heapq.heappush(heap, (d, c))
            row = -1
            while len(heap) > 0:
                d, c = heapq.heappop(heap)
                if d >= best:
                    break
                if settled[c] or d > distance[c]:
                    continue
                settled[c] = True
                if match_column[c] < 0:
                    best, free, quitter = d, c, -1
                    break
                row, so_far = match_column[c], d
                if d + p[row] < best:
                    best, quitter, free = d + p[row], row, -1
                break
            if row < 0:
                break
        p[root] = max(p[root] - best, 0.0)
        for k in range(n_reached):
            c = reached[k]
            if settled[c] and distance[c] < best:
                q[c] += best - distance[c]
                holder = match_column[c]
                p[holder] = max(p[holder] - (best - distance[c]), 0.0)
            distance[c] = np.inf
            settled[c] = False
        c = free
        if quitter >= 0:
            p[quitter] = 0.0
            c = match_row[quitter]
            match_row[quitter] = -1
        while c >= 0:
            i = before[c]
            following = match_row[i]
            match_row[i] = c
            match_column[c] = i
            c = following
    return n_rows
