"""What a forest of pointers is: its shapes, trees and pairs, and the best one (`best_forest`)."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array

from bayeslink.kernels.best_forest import best_forest
from bayeslink.kernels.search import by_record
from bayeslink.pairs.source import Floats, Ints
from bayeslink.threads import run_all

POINTERS, STAR, TREE = "pointers", "star", "tree"
SHAPES = (POINTERS, STAR, TREE)
_AT_A_TIME = 100_000  # records whose components are solved at a time


def roots(parent: NDArray[np.int32]) -> Ints:
    """The original of each record."""
    root = np.where(parent >= 0, parent, np.arange(len(parent))).astype(np.int64)
    while not np.array_equal(root[root], root):
        root = root[root]
    return root


def first_rows(parent: NDArray[np.int32]) -> Ints:
    """The first row of each row's cluster, whichever of its records is the original."""
    root, row = roots(parent), np.arange(len(parent))
    first = np.full(len(parent), len(parent))
    np.minimum.at(first, root, row)
    return first[root]


def numbered(parent: NDArray[np.int32]) -> Ints:
    """The number of each record's tree, from 0."""
    root = roots(parent)
    return np.asarray(np.cumsum(root == np.arange(len(root))) - 1)[root]


def pairs_within(cluster: Ints) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """All pairs of rows with the same cluster, lower row first."""
    order = np.argsort(cluster, kind="stable")
    starts = np.flatnonzero(np.append(True, np.diff(cluster[order]) != 0))
    size = np.diff(np.append(starts, len(order)))
    later = np.repeat(starts + size, size) - np.arange(len(order)) - 1  # members after each
    first = np.repeat(np.arange(len(order)), later)
    step = np.arange(len(first)) - np.repeat(np.cumsum(later) - later, later)
    a, b = order[first], order[first + step + 1]
    return np.minimum(a, b).astype(np.int32), np.maximum(a, b).astype(np.int32)


def components(a: Any, b: Any, n: int) -> Ints:
    """Number of the connected component of each of n records."""
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(a), np.int8), (a, b)), (n, n))
    return np.asarray(connected_components(graph, directed=False)[1], np.int64)


def log_rho_grid(shape: str) -> Floats:
    """The values of log ρ: a grid with equal chances, or one value."""
    if shape == POINTERS:
        return np.linspace(np.log(1e-6), 0.0, 61)
    return np.array([-np.inf if shape == STAR else 0.0])


def log_rho_density(log_rho: Floats, parent: NDArray[np.int32]) -> Floats:
    """log p(which forest | partition, ρ), for each ρ, without what does not hang on ρ but k."""
    of_size = np.bincount(np.bincount(numbered(parent), minlength=1))
    has = np.flatnonzero(of_size * (np.arange(len(of_size)) > 1))
    deep = int(((parent >= 0) & (parent[parent] >= 0)).sum())
    norm = of_size[has] * (has - 2) * np.log1p(np.outer(np.exp(log_rho), has - 1))
    out = -norm.sum(1) - float(of_size[has] @ np.log(has))
    return np.asarray(out + (deep * log_rho if deep else 0.0))


def solve_forest(
    a: NDArray[np.int32],
    b: NDArray[np.int32],
    gain: Floats,
    n: int,
    rho: float,
    keys: Any,
    clean: Ints | None = None,
    threads: int = 1,
) -> tuple[NDArray[np.int32], float]:
    """Parents of the forest of largest worth, and by how much it may fall short of it at most.

    `clean`: of each record the bit of its file, if no tree may hold two records of that.
    """
    row = np.argsort(keys, kind="stable").astype(np.int32)
    rank = np.empty(n, np.int32)  # ties: by key, not row
    rank[row] = np.arange(n, dtype=np.int32)
    x, y = rank[a], rank[b]
    own, other = np.concatenate([x, y]), np.concatenate([y, x])
    order = by_record(own, other, n, n)
    owner, neighbour = own[order], other[order]
    gains = np.concatenate([gain, gain])[order].astype(np.float64)
    start = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=n))]).astype(np.int64)
    label = components(x, y, n).astype(np.int32)
    members = np.argsort(label, kind="stable").astype(np.int32)
    first = np.concatenate([[0], np.cumsum(np.bincount(label))]).astype(np.int64)
    half = np.flatnonzero(owner < neighbour)
    falling = half[np.argsort(-gains[half], kind="stable")]
    of_edge = label[owner[falling]]
    edges = falling[by_record(of_edge, np.zeros(len(half), np.int32), len(first) - 1, 1)]
    n_edges = np.bincount(of_edge, minlength=len(first) - 1)
    first_edge = np.concatenate([[0], np.cumsum(n_edges)]).astype(np.int64)
    parent = np.full(n, -1, np.int32)
    worth, bound = np.zeros((2, len(first) - 1))
    log_rho = float(np.log(rho)) if rho > 0 else -np.inf
    of_clean = np.zeros(n, np.int64)
    if clean is not None:
        of_clean[rank] = clean
    best_forest.compile()  # here, not in threads

    def work(from_c: int, to_c: int) -> None:
        best_forest(
            start, neighbour, gains, owner, edges, members, first, first_edge, of_clean, log_rho,
            from_c, to_c, parent, worth, bound,
        )  # fmt: skip

    at = np.searchsorted(first, np.linspace(0, n, n // _AT_A_TIME + 2).astype(int)).tolist()
    run_all([partial(work, *piece) for piece in pairwise(at)], threads)
    found = parent[rank]
    return np.where(found >= 0, row[found], -1).astype(np.int32), float((bound - worth).sum())
