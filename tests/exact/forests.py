"""Partitions of a few records into people, and what each is worth, by definition."""

import itertools
import math
from functools import cache

import numpy as np


@cache
def partitions(n):
    """All partitions of 0 … n − 1, each as a tuple of sorted tuples."""
    if n == 0:
        return [()]
    out = []
    for smaller in partitions(n - 1):
        out.append((*smaller, (n - 1,)))
        for k in range(len(smaller)):
            out.append((*smaller[:k], (*smaller[k], n - 1), *smaller[k + 1 :]))
    return [tuple(sorted(z)) for z in out]


def rooted_trees(members):
    """Every tree on the members with a root: {child: parent}."""
    members = list(members)
    for root in members:
        rest = [i for i in members if i != root]
        for parents in itertools.product(members, repeat=len(rest)):
            parent = dict(zip(rest, parents, strict=True))
            if all(_reaches(i, root, parent) for i in rest):
                yield root, parent


def _reaches(i, root, parent):
    seen = set()
    while i != root:
        if i in seen:
            return False
        seen.add(i)
        i = parent[i]
    return True


def likelihood(cluster, w, rho):
    """Of one cluster against single records: a sum over rooted trees, divided by their number."""
    k, total = len(cluster), 0.0
    for root, parent in rooted_trees(cluster):
        worth = 1.0
        for i, p in parent.items():
            worth *= math.exp(w[i, p]) * (1.0 if p == root else rho)
        total += worth
    return total / (k * (1 + (k - 1) * rho) ** (k - 2))


def prior(z, beta):
    """N! · Dirichlet-multinomial of the sizes · Π sizes!, up to a constant."""
    n, total = len(z), sum(beta)
    out = math.lgamma(n + 1) - math.lgamma(n + total)
    sizes = [len(c) for c in z]
    for k in set(sizes):
        if k >= len(beta):
            return -math.inf
        out += math.lgamma(sizes.count(k) + beta[k]) - math.lgamma(beta[k])
    return out + sum(math.lgamma(k + 1) for k in sizes)


def posterior(n, w, rho, beta, together=(), apart=()):
    """{partition: probability}."""
    log_p = {}
    for z in partitions(n):
        where = {i: c for c, cluster in enumerate(z) for i in cluster}
        if any(where[i] != where[j] for i, j in together):
            continue
        if any(where[i] == where[j] for i, j in apart):
            continue
        worth = [likelihood(cluster, w, rho) for cluster in z]
        if min(worth) > 0:
            log_p[z] = prior(z, beta) + sum(map(math.log, worth))
    most = max(log_p.values())
    p = {z: math.exp(value - most) for z, value in log_p.items()}
    return {z: value / sum(p.values()) for z, value in p.items()}


def as_partition(labels):
    """A partition from labels of records."""
    clusters = {}
    for i, label in enumerate(labels):
        clusters.setdefault(int(label), []).append(i)
    return tuple(sorted(tuple(c) for c in clusters.values()))


def symmetric(values, n):
    w = np.zeros((n, n))
    w[np.triu_indices(n, 1)] = values
    return w + w.T
