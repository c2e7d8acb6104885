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

import numba
import numpy as np

from bayeslink.kernels.random import uniform

helper = numba.njit(nogil=True)

BARRED = 0  # a pattern that no pair has


class Incidence(NamedTuple):
    """The edges of each record, and the records and patterns of each edge."""

    start_a: np.ndarray
    edges_a: np.ndarray
    start_b: np.ndarray
    edges_b: np.ndarray
    edge_a: np.ndarray
    edge_b: np.ndarray
    own_pattern: np.ndarray


class Low(NamedTuple):
    """Pairs that are listed but not swept, by pattern, and what became of them."""

    a: np.ndarray
    b: np.ndarray
    start: np.ndarray  # where each pattern's begin, and the end
    cost: float  # of a link, about: how many tries a sweep are worth while follows from it
    most: int  # tries a sweep
    draws: np.ndarray  # in how many recorded draws each was linked,
    visits: np.ndarray  # and how often it became a link of one


class Far(NamedTuple):
    """Proposals of other pairs: so many for each sweep, in turn."""

    a: np.ndarray
    b: np.ndarray
    pattern: np.ndarray  # BARRED: not to be linked, for it is listed or known
    q: np.ndarray
    a_sweep: int


class Loose(NamedTuple):
    """The links of one kind: low, or far."""

    a: np.ndarray
    b: np.ndarray
    pattern: np.ndarray
    q: np.ndarray
    place: np.ndarray  # among the low pairs
    since: np.ndarray  # the first draw that it may be part of
    size: np.ndarray  # of one entry


class Ended(NamedTuple):
    """Far links that were part of draws and ended."""

    a: np.ndarray
    b: np.ndarray
    pattern: np.ndarray
    draws: np.ndarray
    size: np.ndarray


class Taken(NamedTuple):
    """Records in links of either kind."""

    a: np.ndarray
    b: np.ndarray


@helper
def is_free(record, taken, start, edges, linked):
    """Whether a record has no link at all."""
    if taken[record]:
        return False
    for k in range(start[record], start[record + 1]):  # noqa: SIM110 — Numba has no `all`
        if linked[edges[k]]:
            return False
    return True


@helper
def both_free(a, b, inc, taken, linked):
    return is_free(a, taken.a, inc.start_a, inc.edges_a, linked) and is_free(
        b, taken.b, inc.start_b, inc.edges_b, linked
    )


@helper
def hold(a, b, inc, taken, edge_pattern):
    """Take both records, and bar their candidate pairs."""
    taken.a[a] = True
    taken.b[b] = True
    for k in range(inc.start_a[a], inc.start_a[a + 1]):
        edge_pattern[inc.edges_a[k]] = BARRED
    for k in range(inc.start_b[b], inc.start_b[b + 1]):
        edge_pattern[inc.edges_b[k]] = BARRED


@helper
def let_go(a, b, inc, taken, edge_pattern):
    """Free both records, and their candidate pairs unless the other end is still taken."""
    taken.a[a] = False
    taken.b[b] = False
    for k in range(inc.start_a[a], inc.start_a[a + 1]):
        e = inc.edges_a[k]
        if not taken.b[inc.edge_b[e]]:
            edge_pattern[e] = inc.own_pattern[e]
    for k in range(inc.start_b[b], inc.start_b[b + 1]):
        e = inc.edges_b[k]
        if not taken.a[inc.edge_a[e]]:
            edge_pattern[e] = inc.own_pattern[e]


@helper
def add(loose, a, b, pattern, q, place, draw):
    n = loose.size[0]
    loose.a[n] = a
    loose.b[n] = b
    loose.pattern[n] = pattern
    loose.q[n] = q
    loose.place[n] = place
    loose.since[n] = draw
    loose.size[0] = n + 1


@helper
def remove(loose, k):
    last = loose.size[0] - 1
    loose.a[k] = loose.a[last]
    loose.b[k] = loose.b[last]
    loose.pattern[k] = loose.pattern[last]
    loose.q[k] = loose.q[last]
    loose.place[k] = loose.place[last]
    loose.since[k] = loose.since[last]
    loose.size[0] = last


@helper
def move_low(
    low, links_low, taken, inc, linked, edge_pattern, odds, step_cost, n_links, rng, draw, sums
):
    """Births and deaths of links of low pairs. Returns the number of links."""
    total = 0.0
    for g in range(len(odds)):
        total += (low.start[g + 1] - low.start[g]) * odds[g]
        sums[g] = total
    if total <= 0.0:
        return n_links
    tries = 20 + min(low.most, np.int64(2.0 * total / low.cost))
    for _ in range(tries):
        n = links_low.size[0]
        if uniform(rng) < 0.5:
            g = np.searchsorted(sums, uniform(rng) * total, side="right")
            g = min(g, len(odds) - 1)
            k = low.start[g] + np.int64(uniform(rng) * (low.start[g + 1] - low.start[g]))
            accept = uniform(rng)
            if k >= low.start[g + 1] or not accept * (n + 1) * step_cost[n_links] < total:
                continue
            if both_free(low.a[k], low.b[k], inc, taken, linked):
                hold(low.a[k], low.b[k], inc, taken, edge_pattern)
                add(links_low, low.a[k], low.b[k], g, 0.0, k, draw)
                n_links += 1
        elif n > 0:
            k = np.int64(uniform(rng) * n)
            if uniform(rng) * total < n * step_cost[n_links - 1]:
                let_go(links_low.a[k], links_low.b[k], inc, taken, edge_pattern)
                lived = max(draw, 0) - max(links_low.since[k], 0)
                if lived > 0:
                    low.draws[links_low.place[k]] += lived
                    low.visits[links_low.place[k]] += 1
                remove(links_low, k)
                n_links -= 1
    return n_links


@helper
def move_far(
    far, first, links_far, ended, taken, inc, linked, edge_pattern, odds, step_cost, n_links, rng,
    draw
):  # fmt: skip
    """Births and deaths of links of far pairs, from proposals `first` …. Returns the links."""
    for t in range(first, first + far.a_sweep):
        n = links_far.size[0]
        if uniform(rng) < 0.5:
            g = far.pattern[t]
            accept = uniform(rng)
            if not accept * (n + 1) * far.q[t] * step_cost[n_links] < odds[g]:
                continue
            if both_free(far.a[t], far.b[t], inc, taken, linked):
                hold(far.a[t], far.b[t], inc, taken, edge_pattern)
                add(links_far, far.a[t], far.b[t], g, far.q[t], 0, draw)
                n_links += 1
        elif n > 0:
            k = np.int64(uniform(rng) * n)
            chance = n * links_far.q[k] * step_cost[n_links - 1]
            if uniform(rng) * odds[links_far.pattern[k]] < chance:
                let_go(links_far.a[k], links_far.b[k], inc, taken, edge_pattern)
                lived = max(draw, 0) - max(links_far.since[k], 0)
                if lived > 0:
                    end = ended.size[0]
                    ended.a[end] = links_far.a[k]
                    ended.b[end] = links_far.b[k]
                    ended.pattern[end] = links_far.pattern[k]
                    ended.draws[end] = lived
                    ended.size[0] = end + 1
                remove(links_far, k)
                n_links -= 1
    return n_links
