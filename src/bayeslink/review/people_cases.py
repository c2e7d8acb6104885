"""What is put before a person of a run of people: clusters, with those they may be one with.

*Cases.* Pairs of records of two clusters with a probability of at least `NEAR` join the clusters;
what is joined is a case. A case of more than `MOST` records is cut: its pairs are taken from the
most probable down, and each joins two groups unless that would make more than `MOST`; a cluster is
never cut. So each record is in one case at most, and what is said of one case cannot contradict
what is said of another.

*Order.* That of the report: cases with a record in doubt, the least sure first; then clusters that
hang on one edge; then those with several forms. A record that is in doubt because it may be one
with many others, each hardly likely, makes no case: there is nothing to see that would settle it.

*Errors.* Pairs of two people in a cluster, and pairs of one person in two clusters of a case, that
are expected by the probabilities of the pairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bayeslink.pairs.source import Floats, Ints
from bayeslink.runs.cluster_structure import NEAR, Structure

MOST = 12  # records in a case, unless a cluster has more


@dataclass(frozen=True, slots=True)
class PeopleCases:
    """Groups of clusters, those most in doubt first."""

    clusters: list[list[int]]  # of each case: those with most records first, then the least sure
    n_worth: int  # cases that there is a reason to look at; they come first
    errors: Floats  # pairs expected to be wrong in each case
    false: Floats  # of these, pairs of two people in one cluster
    of_cluster: Mapping[int, int]  # the case of a cluster, if it is in one

    def __len__(self) -> int:
        return len(self.clusters)


def find_people_cases(
    structure: Structure, sure: float, bridged: Sequence[int], formed: Sequence[int]
) -> PeopleCases:
    """The cases of a run.

    Parameters
    ----------
    sure
        The probability of membership below which a record is in doubt.
    bridged, formed
        Clusters that hang on one edge, and clusters with several forms, the worst first.
    """
    size, lowest = structure.size, np.ones(len(structure.size))
    np.minimum.at(lowest, structure.cluster, structure.membership)
    doubted = np.flatnonzero(lowest < sure)
    joined = _joined(structure)
    named = {c for pair in joined for c in pair} | {*doubted.tolist(), *bridged, *formed}
    groups = [group for group in _groups(named, joined, size) if size[group].sum() > 1]
    place = {c: (2, k) for k, c in enumerate(formed)} | {c: (1, k) for k, c in enumerate(bridged)}
    false, missed = _expected(structure, groups)

    def rank(k: int) -> tuple[float, float, int]:
        least = float(lowest[groups[k]].min())
        doubt = least < sure and false[k] + missed[k] >= NEAR
        why = (0, least) if doubt else min(place.get(c, (3, 0)) for c in groups[k])
        return (*why, groups[k][0])

    order = sorted(range(len(groups)), key=rank)
    return PeopleCases(
        clusters=[sorted(groups[k], key=lambda c: (-size[c], lowest[c], c)) for k in order],
        n_worth=sum(rank(k)[0] < 3 for k in order),
        errors=(false + missed)[order],
        false=false[order],
        of_cluster={c: case for case, k in enumerate(order) for c in groups[k]},
    )


def _joined(structure: Structure) -> list[tuple[int, int]]:
    """Pairs of clusters that may be one person, the most probable first."""
    x, y = structure.cluster[structure.a], structure.cluster[structure.b]
    kept = np.flatnonzero((x != y) & (structure.probability >= NEAR))
    keys = structure.b[kept], structure.a[kept], -structure.probability[kept]
    kept = kept[np.lexsort(keys)]
    return [*dict.fromkeys(zip(x[kept].tolist(), y[kept].tolist(), strict=True))]


def _groups(
    clusters: Iterable[int], joined: Iterable[tuple[int, int]], size: Ints
) -> list[list[int]]:
    """Clusters joined pair by pair into groups of at most `MOST` records."""
    above = {c: c for c in clusters}
    records = {c: int(size[c]) for c in above}

    def root(c: int) -> int:
        while above[c] != c:
            above[c] = c = above[above[c]]
        return c

    for x, y in joined:
        x, y = root(x), root(y)
        if x != y and records[x] + records[y] <= MOST:
            above[x] = y
            records[y] += records[x]
    groups: dict[int, list[int]] = {}
    for c in sorted(above):
        groups.setdefault(root(c), []).append(c)
    return list(groups.values())


def _expected(structure: Structure, groups: Sequence[Sequence[int]]) -> tuple[Floats, Floats]:
    """Of each group: pairs of two people in a cluster, and of one person in two, as expected."""
    size, n = structure.size, len(groups)
    of = np.full(len(size), -1)
    for k, group in enumerate(groups):
        of[group] = k
    x, y = structure.cluster[structure.a], structure.cluster[structure.b]
    inside, p = (of[x] == of[y]) & (of[x] >= 0), structure.probability
    within, across = (
        np.bincount(of[x[which]], p[which], n).astype(np.float64)
        for which in (inside & (x == y), inside & (x != y))
    )
    shown = np.flatnonzero(of >= 0)
    pairs = np.bincount(of[shown], (size * (size - 1) // 2)[shown], n)
    return np.maximum(0.0, pairs - within), across
