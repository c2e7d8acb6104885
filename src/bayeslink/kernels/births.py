"""Links of pairs that no sweep visits: born and dying one at a time, by Metropolis–Hastings.

Pairs are proposed in two ways. Those that are listed but not swept ("low"): a pattern in
proportion to its number of pairs times their odds, then one of its pairs at random. All others
("far"): as the caller drew them, each with the probability q with which it is drawn. A link that
dies is chosen at random among those of its kind. So the chance to accept a birth is, with n links
of the kind, odds / cost / (n + 1) / q, and that of a death its inverse.

While such a link holds, the candidate pairs of its records are barred: they take on pattern 0,
whose odds are 0, so that the sweeps need not know.
"""

from typing import NamedTuple

import numpy as np

from bayeslink.kernels import helper
from bayeslink.kernels.random import uniform

BARRED = 0  # a pattern that no pair has


class Records(NamedTuple):
    """Records of A, then of B, numbered through: the edges of each, and whether it is in a link.

    Only links of the kinds here are meant, not those of edges.
    """

    start: np.ndarray  # where the edges of each record begin, and the end
    edges: np.ndarray
    ends: np.ndarray  # [edge, 2]: its records
    own_pattern: np.ndarray  # of each edge, while it is not barred
    taken: np.ndarray


class Low(NamedTuple):
    """Pairs that are listed but not swept, by pattern, and what became of them."""

    pairs: np.ndarray  # [pair, 2]: its records
    start: np.ndarray  # where each pattern's begin, and the end
    cost: float  # of a link, about: how many tries a sweep are worth while follows from it
    most: int  # tries a sweep
    tally: (
        np.ndarray
    )  # [pair, 2]: recorded draws in which it was a link, and how often it became one


class Far(NamedTuple):
    """Proposals of other pairs: so many for each sweep, in turn."""

    pairs: np.ndarray
    pattern: np.ndarray  # BARRED: not to be linked, for it is listed or known
    q: np.ndarray
    a_sweep: int


class Loose(NamedTuple):
    """The links of one kind: low, or far."""

    links: np.ndarray  # [link, 5]: its records, pattern, place among the low pairs, first draw
    q: np.ndarray
    size: np.ndarray  # of one entry


class Ended(NamedTuple):
    """Far links that were part of draws and ended."""

    links: np.ndarray  # [link, 4]: its records, pattern, draws
    size: np.ndarray


@helper
def both_free(a, b, start, edges, taken, linked):
    """Whether two records have no link at all."""
    if taken[a] or taken[b]:
        return False
    for record in (a, b):
        for k in range(start[record], start[record + 1]):
            if linked[edges[k]]:
                return False
    return True


@helper
def hold(a, b, records, edge_pattern):
    """Take both records, and bar their edges."""
    for record in (a, b):
        records.taken[record] = True
        for k in range(records.start[record], records.start[record + 1]):
            edge_pattern[records.edges[k]] = BARRED


@helper
def let_go(a, b, records, edge_pattern):
    """Free both records, and their edges unless the other end is still taken."""
    records.taken[a] = False
    records.taken[b] = False
    for record in (a, b):
        for k in range(records.start[record], records.start[record + 1]):
            e = records.edges[k]
            if not (records.taken[records.ends[e, 0]] or records.taken[records.ends[e, 1]]):
                edge_pattern[e] = records.own_pattern[e]


@helper
def first_above(sums, value):
    """Where the first of the rising sums is that is above a value; the last, if none is."""
    low, high = 0, len(sums) - 1
    while low < high:
        middle = (low + high) // 2
        if sums[middle] > value:
            high = middle
        else:
            low = middle + 1
    return low


@helper
def move_low(low, loose, records, linked, edge_pattern, odds, step_cost, n_links, rng, draw, sums):
    """Births and deaths of links of low pairs. Returns the number of links."""
    total = 0.0
    for g in range(len(odds)):
        total += (low.start[g + 1] - low.start[g]) * odds[g]
        sums[g] = total
    if total <= 0.0:
        return n_links
    links, n = loose.links, loose.size[0]
    tries = 20 + np.int64(min(float(low.most), 2.0 * total / low.cost))
    for _ in range(tries):
        if uniform(rng) < 0.5:
            g = first_above(sums, uniform(rng) * total)
            k = low.start[g] + np.int64(uniform(rng) * (low.start[g + 1] - low.start[g]))
            accept = uniform(rng)
            if k >= low.start[g + 1] or not accept * (n + 1) * step_cost[n_links] < total:
                continue
            a, b = low.pairs[k, 0], low.pairs[k, 1]
            if both_free(a, b, records.start, records.edges, records.taken, linked):
                hold(a, b, records, edge_pattern)
                links[n, 0], links[n, 1], links[n, 2], links[n, 3] = a, b, g, k
                links[n, 4] = draw
                n += 1
                n_links += 1
        elif n > 0:
            k = np.int64(uniform(rng) * n)
            if uniform(rng) * total < n * step_cost[n_links - 1]:
                let_go(links[k, 0], links[k, 1], records, edge_pattern)
                lived = max(draw, 0) - max(links[k, 4], 0)
                if lived > 0:
                    low.tally[links[k, 3], 0] += lived
                    low.tally[links[k, 3], 1] += 1
                n -= 1
                for i in range(5):
                    links[k, i] = links[n, i]
                n_links -= 1
    loose.size[0] = n
    return n_links


@helper
def move_far(
    far, first, loose, ended, records, linked, edge_pattern, odds, step_cost, n_links, rng, draw
):
    """Births and deaths of links of far pairs, from proposals `first` …. Returns the links."""
    links, q, n = loose.links, loose.q, loose.size[0]
    for t in range(first, first + far.a_sweep):
        if uniform(rng) < 0.5:
            g = far.pattern[t]
            accept = uniform(rng)
            if not accept * (n + 1) * far.q[t] * step_cost[n_links] < odds[g]:
                continue
            a, b = far.pairs[t, 0], far.pairs[t, 1]
            if both_free(a, b, records.start, records.edges, records.taken, linked):
                hold(a, b, records, edge_pattern)
                links[n, 0], links[n, 1], links[n, 2], links[n, 4] = a, b, g, draw
                q[n] = far.q[t]
                n += 1
                n_links += 1
        elif n > 0:
            k = np.int64(uniform(rng) * n)
            if uniform(rng) * odds[links[k, 2]] < n * q[k] * step_cost[n_links - 1]:
                let_go(links[k, 0], links[k, 1], records, edge_pattern)
                lived = max(draw, 0) - max(links[k, 4], 0)
                if lived > 0:
                    end = ended.size[0]
                    for i in range(3):
                        ended.links[end, i] = links[k, i]
                    ended.links[end, 3] = lived
                    ended.size[0] = end + 1
                n -= 1
                for i in range(5):
                    links[k, i] = links[n, i]
                q[k] = q[n]
                n_links -= 1
    loose.size[0] = n
    return n_links
