"""Partitions of a few records into people, and what each is worth, by definition."""

import itertools
import math
from functools import cache

import numpy as np

from bayeslink.linkage.partitions import PartitionPrior


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


def one_file_prior(n, beta):
    return PartitionPrior(np.zeros(n, np.int32), np.array([0.0, 2.0]), np.array([beta]))


def prior(z, given):
    """N! · shares of sets of files · shares of sizes in each file · Π sizes!, up to a constant.

    A sequence of people: each time, the chance of what is seen given all before.
    """
    files = sorted({int(f) for f in range(len(given.beta))})
    sets, sizes, out = [], [[] for _ in files], math.lgamma(len(z) + 1)
    for cluster in z:
        in_files = [sum(int(given.file[i]) == f for i in cluster) for f in files]
        which = sum(1 << f for f in files if in_files[f])
        seen = sets.count(which), len(sets)
        out += math.log((seen[0] + given.alpha[which]) / (seen[1] + sum(given.alpha)))
        sets.append(which)
        for f, k in zip(files, in_files, strict=True):
            if k == 0:
                continue
            if k >= len(given.beta[f]) or given.beta[f][k] == 0:
                return -math.inf
            seen = sizes[f].count(k), len(sizes[f])
            out += math.log((seen[0] + given.beta[f][k]) / (seen[1] + sum(given.beta[f])))
            out += math.lgamma(k + 1)
            sizes[f].append(k)
    return out


def posterior(n, w, rho, given, together=(), apart=()):
    """{partition: probability}."""
    log_p = {}
    for z in partitions(n):
        where = {i: c for c, cluster in enumerate(z) for i in cluster}
        if any(where[i] != where[j] for i, j in together):
            continue
        if any(where[i] == where[j] for i, j in apart):
            continue
        worth = [likelihood(cluster, w, rho) for cluster in z]
        if min(worth) > 0 and prior(z, given) > -math.inf:
            log_p[z] = prior(z, given) + sum(map(math.log, worth))
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
