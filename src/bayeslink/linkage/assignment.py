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

from bayeslink.pairs.hashing import mix64
from bayeslink.pairs.source import Floats

Rows = NDArray[np.int32]
Keys = tuple[NDArray[np.uint64], NDArray[np.uint64]]

_LOOKED = 2_000_000  # edges that compiled code looks at before Ctrl-C is heeded
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


@dataclass(frozen=True, slots=True)
class _Graph:
    """Edges sorted by row, as the kernels want them."""

    order: NDArray[np.int64]
    indptr: NDArray[np.int64]
    rows: Rows
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
    contested = _contested(graph, price_a, price_b)
    tied = _ambiguous(graph, contested, chosen, price_a, price_b)
    if tied.any() and keys is not None:
        always = chosen[~tied]
        _choose_by_key(graph, contested, chosen[tied], match_a, (price_a, price_b), keys)
        chosen = _chosen(graph, match_a)
        tied = ~np.isin(chosen, always, assume_unique=True)  # an equally good one lacked the others
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
    indptr = np.concatenate([[0], np.cumsum(np.bincount(a, minlength=n_a))]).astype(np.int64)
    pair = (a.astype(np.int64) << 32) | b
    if (pair[1:] >= pair[:-1]).all():
        order = np.arange(len(pair))
    else:
        order = np.argsort(pair, kind="stable")
        a, b, scores = a[order], b[order], scores[order]
    rows, columns = (np.ascontiguousarray(side, np.int32) for side in (a, b))
    return _Graph(order, indptr, rows, columns, np.ascontiguousarray(scores, np.float64))


def _solve(graph: _Graph, match_a: Rows, match_b: Rows, price_a: Floats, price_b: Floats) -> None:
    from bayeslink.kernels.assignment import augment, settle

    arrays = (graph.indptr, graph.columns, graph.scores, match_a, match_b, price_a, price_b)
    settle(*arrays, 8)
    row = 0
    while row < len(match_a):
        row = augment(*arrays, row, _LOOKED)


def _chosen(graph: _Graph, match_a: Rows) -> NDArray[np.int64]:
    """Positions (among the sorted edges) of the matched ones."""
    return np.flatnonzero(match_a[graph.rows] == graph.columns)


def _contested(graph: _Graph, price_a: Floats, price_b: Floats) -> NDArray[np.int64]:
    """Tight edges that share a record with another: where optimal assignments may differ."""
    slack = price_a[graph.rows] + price_b[graph.columns] - graph.scores
    tight = np.flatnonzero(slack <= _TIGHT * np.maximum(1.0, graph.scores))
    rows, columns = graph.rows[tight], graph.columns[tight]
    return tight[(np.bincount(rows)[rows] > 1) | (np.bincount(columns)[columns] > 1)]


def _ambiguous(
    graph: _Graph,
    contested: NDArray[np.int64],
    chosen: NDArray[np.int64],
    price_a: Floats,
    price_b: Floats,
) -> NDArray[np.bool_]:
    """Chosen edges that some other optimal assignment lacks.

    An optimal assignment uses tight edges only and covers every record with a positive price.
    Two of them differ by alternating cycles, or alternating paths between records of price 0. In
    the graph with chosen edges directed from B to A, other tight edges from A to B, and one extra
    node through which paths between price-0 records close, all of these are directed cycles: an
    edge lies on one exactly if both its ends are in one strong component. A tight edge that shares
    no record with another can only be dropped, if it is worth nothing.
    """
    from scipy.sparse.csgraph import connected_components

    tied = (price_a[graph.rows[chosen]] <= _TIGHT) & (price_b[graph.columns[chosen]] <= _TIGHT)
    if not len(contested):
        return tied
    records_a, a = np.unique(graph.rows[contested], return_inverse=True)
    records_b, b = np.unique(graph.columns[contested], return_inverse=True)
    b = b + len(records_a)
    hub = len(records_a) + len(records_b)
    free = np.concatenate([price_a[records_a], price_b[records_b]]) <= _TIGHT
    linked = np.isin(contested, chosen, assume_unique=True)
    matched = np.zeros(hub, bool)
    matched[a[linked]] = matched[b[linked]] = True
    of_a = np.arange(hub) < len(records_a)
    to_hub, from_hub = (
        np.flatnonzero(free & (matched == of_a)),
        np.flatnonzero(free & (matched != of_a)),
    )
    full = np.full(hub, hub)
    tails = np.concatenate([b[linked], a[~linked], to_hub, full[: len(from_hub)]])
    heads = np.concatenate([a[linked], b[~linked], full[: len(to_hub)], from_hub])
    adjacency = sparse.csr_array((np.ones(len(tails), np.int8), (tails, heads)), (hub + 1,) * 2)
    _, component = connected_components(adjacency, connection="strong")
    on_cycle = component[a[linked]] == component[b[linked]]
    tied[np.searchsorted(chosen, contested[linked])] = on_cycle
    return tied


def _choose_by_key(
    graph: _Graph,
    contested: NDArray[np.int64],
    tied: NDArray[np.int64],
    match_a: Rows,
    prices: tuple[Floats, Floats],
    keys: Keys,
) -> None:
    """Among equally good assignments take the one whose edges' keys sum highest.

    A second assignment problem over the tight edges of the components with ties. Records with a
    positive price must stay covered, so covering them outweighs any sum of keys.
    """
    from scipy.sparse.csgraph import connected_components

    n_a, n_b = (len(p) for p in prices)
    ends = graph.rows[contested], graph.columns[contested] + n_a
    links = sparse.csr_array((np.ones(len(contested), np.int8), ends), (n_a + n_b,) * 2)
    _, component = connected_components(links, directed=False)
    with_ties = np.zeros(n_a + n_b, bool)
    with_ties[component[graph.rows[tied]]] = True
    open_ = contested[with_ties[component[graph.rows[contested]]]]
    a, b = graph.rows[open_], graph.columns[open_]
    mixed = mix64(keys[0][a] + keys[1][b])
    size = int(np.bincount(component).max())
    bits = max(12, 44 - 2 * math.ceil(math.log2(size + 1)))
    tie_break = (mixed >> np.uint64(64 - bits)).astype(np.float64) + 1
    needed = (prices[0][a] > _TIGHT).astype(float) + (prices[1][b] > _TIGHT)
    second = _graph(a, b, tie_break + needed * 2.0**bits * (size + 1), n_a)
    again_a, again_b = np.full(n_a, -1, np.int32), np.full(n_b, -1, np.int32)
    _solve(second, again_a, again_b, np.zeros(n_a), np.zeros(n_b))
    match_a[a] = again_a[a]
