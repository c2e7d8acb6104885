"""What is put before a person: rivals together in cases, and what judging a case is worth.

*Cases.* The candidate pairs with a link probability of at least `FLOOR` are edges between records;
the connected components of that graph are the cases, each inside one post-hoc block. So all that
compete for a record are seen side by side. A component of more than `MOST` records is cut: its
pairs are taken from the most probable down, and each joins the records it connects unless that
would make more than `MOST`; a pair left between two such groups is judged with its record of B.
Every pair from the floor up is in exactly one case.

*Value.* The run has decided: a pair is linked or it is not (a pair left to review is not). On a
pair of probability p that decision is wrong with probability e = 1 − p if it is linked and e = p
if it is not. The value of a case is the sum of e over its pairs: the number of pairs decided
wrongly that judging the case is expected to set right. A false link counts once, a missed link
once, a link to the wrong record as both. It is the expected balanced loss of Eq. (10), it treats A
and B alike, and it adds up over pairs, so that cutting a component changes no total.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from bayeslink.data.id_pairs import linked_among
from bayeslink.pairs.source import Floats, Ints

FLOOR = 0.02  # link probability from which a pair is part of a case
WORTH = 0.02  # expected errors from which a case is worth a person's time
MOST = 8  # records in a case


@dataclass(frozen=True, slots=True)
class Cases:
    """The cases of a run, most worth judging first."""

    rows: Ints  # of the candidate table: the pairs of the first case, of the second, …
    start: Ints  # where each case begins in `rows`, and the end
    value: Floats  # expected errors in each case, falling
    of_row: Ints  # the case of each candidate, −1 below the floor
    linked: NDArray[np.bool_]  # whether the run linked each candidate
    error: Floats  # the probability that it decided wrongly

    def __len__(self) -> int:
        return len(self.value)

    def pairs_of(self, case: int) -> Ints:
        """Rows of the candidate table."""
        return self.rows[self.start[case] : self.start[case + 1]]

    @property
    def n_worth(self) -> int:
        """How many cases are worth a person's time; they come first."""
        return int((self.value >= WORTH).sum())


def find_cases(candidates: pa.Table, links: pa.Table) -> Cases:
    """Form the cases of a run from its pairs.parquet and links.parquet."""
    p = candidates["link_probability"].to_numpy()
    linked = linked_among(candidates, links)
    error = np.where(linked, 1 - p, p)
    kept = np.flatnonzero(p >= FLOOR)
    a, b = (_numbered(candidates[side].take(kept)) for side in ("id_a", "id_b"))
    group = _groups(a, b + a.max(initial=-1) + 1, p[kept])
    _, first, case = np.unique(group, return_index=True, return_inverse=True)
    value = np.bincount(case, weights=error[kept], minlength=len(first)).astype(np.float64)
    order = np.lexsort((first, -value))
    rank = np.empty(len(first), np.int64)
    rank[order] = np.arange(len(first))
    case = rank[case]
    by_case = np.argsort(case, kind="stable")
    of_row = np.full(len(p), -1)
    of_row[kept] = case
    return Cases(
        rows=kept[by_case],
        start=np.searchsorted(case[by_case], np.arange(len(first) + 1)),
        value=value[order],
        of_row=of_row,
        linked=linked,
        error=error,
    )


def _numbered(ids: pa.ChunkedArray) -> Ints:
    """Ids as numbers from 0 up."""
    return pc.index_in(ids, ids.unique()).to_numpy().astype(np.int64)


def _groups(a: Ints, b: Ints, p: Floats) -> Ints:
    """The group of each pair, given its two records, numbered through."""
    n = int(b.max(initial=-1)) + 1
    graph = sparse.coo_matrix((np.ones(len(a)), (a, b)), (n, n))
    group = connected_components(graph, directed=False)[1].astype(np.int64)
    large = np.flatnonzero(np.bincount(group)[group[b]] > MOST) if n else a
    if len(large):
        large = large[np.argsort(-p[large], kind="stable")]
        records, joined = _join(a[large].tolist(), b[large].tolist())
        group[records] = n + np.array(joined)
    return group[b]


def _join(a: list[int], b: list[int]) -> tuple[list[int], list[int]]:
    """Join records pair by pair into groups of at most `MOST`: records, and the root of each."""
    above, size = {r: r for r in (*a, *b)}, dict.fromkeys((*a, *b), 1)

    def root(record: int) -> int:
        while above[record] != record:
            above[record] = record = above[above[record]]
        return record

    for x, y in zip(map(root, a), map(root, b), strict=True):
        if x != y and size[x] + size[y] <= MOST:
            above[x] = y
            size[y] += size[x]
    return list(above), [root(r) for r in above]
