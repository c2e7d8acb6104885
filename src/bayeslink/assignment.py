"""The one-to-one assignment of highest total score on a sparse graph (Eqs 8, 13, appendix).

Every answer comes with prices that prove it optimal. Where several assignments are equally good,
the ambiguous links are marked, and one is chosen by the records' keys, not by their row numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from bayeslink.patterns import Floats, mix64

Rows = NDArray[np.int32]
Keys = tuple[NDArray[np.uint64], NDArray[np.uint64]]

_TIGHT = 1e-9  # relative slack below which an edge counts as tight


@dataclass(frozen=True, slots=True)
class Assignment:
    """Which edges were chosen, and the proof that no choice is better."""

    chosen: NDArray[np.int64]  # positions of the chosen edges, by row
    tied: NDArray[np.bool_]  # of each chosen edge: an equally good assignment lacks it
    price_a: Floats  # dual solution: price_a + price_b ≥ score on every edge
    price_b: Floats
    value: float  # total score
    gap: float  # (sum of prices − value) / value
    violation: float  # largest score − price_a − price_b, 0 if the prices are feasible

    @property
    def n_tied(self) -> int:
        return int(self.tied.sum())


@dataclass(frozen=True, slots=True)
class _Graph:
    """Edges sorted by row, as the kernels want them."""

    order: NDArray[np.int64]
    indptr: NDArray[np.int64]
    columns: Rows
    scores: Floats


def assign(
    a: Rows,
    b: Rows,
    scores: Floats,
    n_a: int,
    n_b: int,
    keys: Keys | None = None,
    start: tuple[Rows, Rows, Floats] | None = None,
) -> Assignment:
    """Choose edges, at most one a record, with the highest total score.

    Parameters
    ----------
    a, b, scores
        Edges: rows of A, rows of B, and w − θ, which must be positive.
    keys
        Numbers by which ties are broken; without them ties fall by row number.
    start
        Links (rows of A, rows of B) and prices of B of an earlier answer, to start from.
    """
    graph = _graph(a, b, scores, n_a)
    match_a, match_b = np.full(n_a, -1, np.int32), np.full(n_b, -1, np.int32)
    price_a, price_b = np.zeros(n_a), np.zeros(n_b)
    if start is not None:
        match_a[start[0]], match_b[start[1]] = start[1], start[0]
        price_b[:] = start[2]
    _solve(graph, match_a, match_b, price_a, price_b)
    chosen = _chosen(graph, match_a)
    tied = np.zeros(len(chosen), bool)
    if len(chosen):
        tight = _tight_edges(graph, n_a, price_a, price_b)
        tied = _ambiguous(graph, tight, chosen, price_a, price_b)
        if tied.any() and keys is not None:
            _choose_by_key(graph, tight, tied, chosen, match_a, (price_a, price_b), keys)
            chosen = _chosen(graph, match_a)
            tied = _ambiguous(graph, tight, chosen, price_a, price_b)
    value = float(graph.scores[chosen].sum())
    slack = price_a[a] + price_b[b] - scores
    return Assignment(
        chosen=graph.order[chosen],
        tied=tied,
        price_a=price_a,
        price_b=price_b,
        value=value,
        gap=abs(price_a.sum() + price_b.sum() - value) / max(value, 1e-300),
        violation=float(max(0.0, -slack.min(initial=0.0))),
    )


def _graph(a: Rows, b: Rows, scores: Floats, n_a: int) -> _Graph:
    order = np.lexsort((b, a))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(a, minlength=n_a))]).astype(np.int64)
    return _Graph(order, indptr, b[order].astype(np.int32), np.asarray(scores[order], np.float64))


def _solve(graph: _Graph, match_a: Rows, match_b: Rows, price_a: Floats, price_b: Floats) -> None:
    from bayeslink.kernels.matching import augment, settle

    state = (match_a, match_b, price_a, price_b)
    settle(graph.indptr, graph.columns, graph.scores, *state, 8)
    augment(graph.indptr, graph.columns, graph.scores, *state)


def _rows_of_edges(graph: _Graph) -> Rows:
    return np.repeat(np.arange(len(graph.indptr) - 1, dtype=np.int32), np.diff(graph.indptr))


def _chosen(graph: _Graph, match_a: Rows) -> NDArray[np.int64]:
    """Positions (among the sorted edges) of the matched ones."""
    return np.flatnonzero(match_a[_rows_of_edges(graph)] == graph.columns)


def _tight_edges(graph: _Graph, n_a: int, price_a: Floats, price_b: Floats) -> NDArray[np.int64]:
    slack = price_a[_rows_of_edges(graph)] + price_b[graph.columns] - graph.scores
    return np.flatnonzero(slack <= _TIGHT * np.maximum(1.0, graph.scores))


def _ambiguous(
    graph: _Graph,
    tight: NDArray[np.int64],
    chosen: NDArray[np.int64],
    price_a: Floats,
    price_b: Floats,
) -> NDArray[np.bool_]:
    """Chosen edges that some other optimal assignment lacks.

    An optimal assignment uses tight edges only and covers every record with a positive price.
    Two of them differ by alternating cycles, or alternating paths between records of price 0. In
    the graph with chosen edges directed from B to A, other tight edges from A to B, and one extra
    node through which paths between price-0 records close, all of these are directed cycles: an
    edge lies on one exactly if both its ends are in one strong component.
    """
    n_a, n_b = len(price_a), len(price_b)
    rows, columns = _rows_of_edges(graph), graph.columns + n_a
    others = np.setdiff1d(tight, chosen, assume_unique=True)
    in_a, in_b = np.zeros(n_a, bool), np.zeros(n_b, bool)
    in_a[rows[chosen]], in_b[graph.columns[chosen]] = True, True
    free_a, free_b = price_a <= _TIGHT, price_b <= _TIGHT
    hub = n_a + n_b
    a, b = np.arange(n_a), np.arange(n_b) + n_a
    to_hub = np.concatenate([a[in_a & free_a], b[~in_b & free_b]])
    from_hub = np.concatenate([a[~in_a & free_a], b[in_b & free_b]])
    full = np.full(hub + 1, hub)
    tails = np.concatenate([columns[chosen], rows[others], to_hub, full[: len(from_hub)]])
    heads = np.concatenate([rows[chosen], columns[others], full[: len(to_hub)], from_hub])
    adjacency = sparse.csr_array((np.ones(len(tails), np.int8), (tails, heads)), (hub + 1,) * 2)
    _, component = connected_components(adjacency, connection="strong")
    return np.asarray(component[rows[chosen]] == component[columns[chosen]])


def _choose_by_key(
    graph: _Graph,
    tight: NDArray[np.int64],
    tied: NDArray[np.bool_],
    chosen: NDArray[np.int64],
    match_a: Rows,
    prices: tuple[Floats, Floats],
    keys: Keys,
) -> None:
    """Among equally good assignments take the one whose edges' keys sum highest.

    A second assignment problem over the tight edges of the components with ties. Records with a
    positive price must stay covered, so covering them outweighs any sum of keys.
    """
    n_a, n_b = (len(p) for p in prices)
    rows = _rows_of_edges(graph)
    ends = rows[tight], graph.columns[tight] + n_a
    links = sparse.csr_array((np.ones(len(tight), np.int8), ends), (n_a + n_b,) * 2)
    _, component = connected_components(links, directed=False)
    with_ties = np.unique(component[rows[chosen[tied]]])
    tight = tight[np.isin(component[rows[tight]], with_ties)]
    a, b = rows[tight], graph.columns[tight]
    mixed = mix64(keys[0][a] + keys[1][b])
    size = int(np.bincount(component).max())
    bits = max(12, 44 - 2 * math.ceil(math.log2(size + 1)))
    luck = (mixed >> np.uint64(64 - bits)).astype(np.float64) + 1
    needed = (prices[0][a] > _TIGHT).astype(float) + (prices[1][b] > _TIGHT)
    second = _graph(a, b, luck + needed * 2.0**bits * (size + 1), n_a)
    affected = np.isin(component[:n_a], with_ties)
    again_a, again_b = np.full(n_a, -1, np.int32), np.full(n_b, -1, np.int32)
    _solve(second, again_a, again_b, np.zeros(n_a), np.zeros(n_b))
    match_a[affected] = again_a[affected]
