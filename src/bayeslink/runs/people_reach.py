"""The nearest of each person's others: clusters that no list of pairs shows together.

A record that lost its partner altogether has no pair in any list, so a sample of what may be one
person by the lists finds nothing wrong. So of each cluster the `_NEAREST` others of most weight are
kept that it is not listed with from `FLOOR` up. Whoever judges the cluster sees these, too. Two
clusters may be shown together when either is drawn, or only when one is: `times` is 2 or 1, and
what is found so counts 1 / times. They are `reach.parquet` in the run directory;
`runs.people_sample` shows them, `runs.people_audit` goes by the times.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bayeslink.pairs.source import Floats, Ints

if TYPE_CHECKING:
    from bayeslink.runs.dedupe_run import DedupeRun

FLOOR = 0.01  # clusters are shown together if they are one more probably than this
_NEAREST = 3
_WEIGHED = 50_000_000  # pairs weighed, at most
_AT_ONCE = 1_000_000


def nearest_others(run: DedupeRun) -> pa.Table | None:
    """For each cluster its nearest others: id_a, id_b (a record of each), match_weight, times.

    None where the records are too many to weigh all pairs, or may not be one person for another
    reason than what was compared: under a blocking key, or with pairs that were given.
    """
    pairs = run.pairs
    n = pairs.n_a
    whole = pairs.scope.density == 1 and len(pairs.scope.sizes_a) == 1
    if pairs.closed or pairs.remote or not whole or n * n > _WEIGHED:
        return None
    # A tie key is a hash: where weights are equal, the order is as good as random.
    name = run.table["entity_id"].combine_chunks().dictionary_encode().indices.to_numpy()
    first = np.full(int(name.max()) + 1, np.iinfo(np.uint64).max, np.uint64)
    np.minimum.at(first, name, pairs.tie_keys[0])
    cluster = np.argsort(np.argsort(first))[name]
    a, b, weight = _nearest(run, cluster)
    together = {*zip(a.tolist(), b.tolist(), strict=True)}
    times = [1 + ((d, c) in together) for c, d in zip(a.tolist(), b.tolist(), strict=True)]
    by_key = np.argsort(pairs.tie_keys[0], kind="stable").astype(np.int32)
    face = by_key[np.unique(cluster[by_key], return_index=True)[1]]
    columns = {"id_a": pairs.ids(0, face[a]), "id_b": pairs.ids(0, face[b])}
    return pa.table(
        {
            **{side: ids.cast(pa.string()) for side, ids in columns.items()},
            "match_weight": weight / math.log(2),
            "times": pa.array(times, pa.int64()),
        }
    )


def _nearest(run: DedupeRun, cluster: Ints) -> tuple[Ints, Ints, Floats]:
    """Clusters, their nearest others, and the most that two of their records weigh."""
    n = len(cluster)
    order = np.argsort(cluster, kind="stable").astype(np.int32)
    start = np.searchsorted(cluster[order], np.arange(cluster.max() + 1))
    listed = run.posterior.together
    x, y = cluster[listed.a], cluster[listed.b]
    near = (x != y) & (listed.probability > FLOOR)
    ends = np.concatenate([x[near], y[near]]), np.concatenate([y[near], x[near]])
    found: list[tuple[Ints, Ints, Floats]] = []
    for low, high in _parts(start, n):
        rows = order[start[low] : start[high] if high < len(start) else n]
        w = _weights(run, rows, order)
        w = np.maximum.reduceat(w, start, axis=1)
        w = np.maximum.reduceat(w, start[low:high] - start[low], axis=0)
        own = np.arange(low, high)
        w[own - low, own] = -np.inf
        here = (ends[0] >= low) & (ends[0] < high)
        w[ends[0][here] - low, ends[1][here]] = -np.inf
        best = np.argsort(-w, axis=1, kind="stable")[:, :_NEAREST]
        top = np.take_along_axis(w, best, axis=1)
        there = np.isfinite(top)
        found.append((np.repeat(own, there.sum(axis=1)), best[there], top[there]))
    a, b, weight = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return a, b, weight


def _parts(start: Ints, n: int) -> list[tuple[int, int]]:
    """Runs of clusters that have few enough pairs with all records to be weighed at once."""
    part = start // max(1, _AT_ONCE // n)
    edges = [0, *(np.flatnonzero(np.diff(part)) + 1).tolist(), len(start)]
    return list(pairwise(edges))


def _weights(run: DedupeRun, rows: NDArray[np.int32], others: NDArray[np.int32]) -> Floats:
    """Of each of these rows with each of the others; a pair that may not be weighs nothing."""
    a, b = np.repeat(rows, len(others)), np.tile(others, len(rows))
    weights = np.asarray(run.parameters.weight_of(run.pairs.levels_of(a, b)))
    out = a == b
    if run.pairs.files is not None:
        out |= run.pairs.files.left_out(a, b)
    return np.where(out, -np.inf, weights).reshape(len(rows), -1)
