"""One partition of a file out of many draws: least expected loss, and how sure it is.

Binder's loss counts pairs: `false_pair` for two people made one, `missed_pair` for one made two.
Its expectation needs the probability of each pair to be one person, and is lowered by local search.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bayeslink.errors import SettingsError
from bayeslink.kernels.partitions import improve_partition
from bayeslink.linkage.pointers import components, pairs_within
from bayeslink.pairs.source import Floats, Ints

_ROUNDS = 100
SINGLE, CLUSTER, REVIEW = "single", "cluster", "review"


@dataclass(frozen=True, slots=True)
class ClusterLoss:
    """What errors cost.

    Attributes
    ----------
    false_pair, missed_pair
        Of two records of two people in one cluster, and of one person in two.
    review
        Of giving a record to a person to look at; infinite unless given. A record is given to
        review where its share of the expected loss, half of that of its pairs, is larger.
    """

    false_pair: float = 1.0
    missed_pair: float = 1.0
    review: float = np.inf

    def __post_init__(self) -> None:
        for name in ("false_pair", "missed_pair", "review"):
            value = getattr(self, name)
            if not isinstance(value, (int, float)) or not value > 0:
                raise SettingsError(f"ClusterLoss: {name} must be positive, got {value!r}.")

    @property
    def least_probability(self) -> float:
        """Above it a pair is worth a cluster."""
        return float(self.false_pair / (self.false_pair + self.missed_pair))


@dataclass(frozen=True, slots=True)
class PairProbabilities:
    """Pairs of rows (a < b) that were one person in some draw, and in which share of draws."""

    a: NDArray[np.int32]
    b: NDArray[np.int32]
    probability: Floats

    def neighbours(self, n: int) -> tuple[Ints, NDArray[np.int32], Floats]:
        """Where each record's others begin, the others, and the probabilities."""
        own, other = np.concatenate([self.a, self.b]), np.concatenate([self.b, self.a])
        order = np.lexsort((other, own))
        start = np.concatenate([[0], np.cumsum(np.bincount(own, minlength=n))]).astype(np.int64)
        p = np.concatenate([self.probability, self.probability])
        return start, other[order].astype(np.int32), p[order]


@dataclass(frozen=True, slots=True)
class ClusterDecision:
    """A partition with what is expected of it."""

    cluster: Ints = field(repr=False)  # of each row: the row that represents its cluster
    membership: Floats = field(repr=False)  # see `memberships`
    decision: NDArray[np.str_] = field(repr=False)  # of each row: "single", "cluster", "review"
    expected_false: float  # pairs of two people in one cluster
    expected_missed: float  # pairs of one person in two clusters
    expected_loss: float

    @property
    def n_entities(self) -> int:
        return len(np.unique(self.cluster))


def pairs_together(kept: NDArray[np.int32]) -> PairProbabilities:
    """From draws of partitions, [draw, row]: how often each pair was one person."""
    n = kept.shape[1]
    numbers: list[Ints] = []
    counts: list[Ints] = []
    held = 0
    for draw in kept:
        a, b = pairs_within(draw.astype(np.int64))
        numbers.append(a.astype(np.int64) * n + b)
        counts.append(np.ones(len(a), np.int64))
        held += len(a)
        if held > 20_000_000:
            numbers, counts = _added(numbers, counts)
            held = len(numbers[0])
    numbers, counts = _added(numbers, counts)
    a, b = np.divmod(numbers[0], n)
    return PairProbabilities(a.astype(np.int32), b.astype(np.int32), counts[0] / len(kept))


def _added(numbers: list[Ints], counts: list[Ints]) -> tuple[list[Ints], list[Ints]]:
    distinct, which = np.unique(np.concatenate(numbers), return_inverse=True)
    total = np.bincount(which, np.concatenate(counts), len(distinct)).round().astype(np.int64)
    return [distinct], [total]


def least_loss(
    pairs: PairProbabilities,
    keys: NDArray[np.uint64],
    loss: ClusterLoss,
    alone: Floats,
    apart: Ints | None = None,
) -> ClusterDecision:
    """The partition of least expected Binder loss that local search finds from several starts.

    `keys` order records, whatever the order of rows; `alone` is the probability of each record to
    have no other; `apart` is the clean file of each, −1 of none: no cluster holds two of one.
    """
    n, cost = len(keys), loss.least_probability
    given = pairs.neighbours(n)
    order = np.argsort(keys, kind="stable").astype(np.int64)
    likely = pairs.probability > cost
    starts = [np.arange(n), components(pairs.a[likely], pairs.b[likely], n)]
    sure = pairs.probability > (1 + cost) / 2
    starts.append(components(pairs.a[sure], pairs.b[sure], n))
    best, least = starts[0], np.inf
    for cluster in starts:
        cluster = cluster.astype(np.int64)
        improve_partition(*given, order, cost, _ROUNDS, cluster)
        if apart is not None:
            cluster = _parted(pairs, cluster, apart, keys)
        expected = _expected(pairs, cluster, loss)[2]
        if expected < least - 1e-9:
            best, least = cluster, expected
    return decide(pairs, best, loss, alone, keys)


def _parted(pairs: PairProbabilities, cluster: Ints, apart: Ints, keys: NDArray[np.uint64]) -> Ints:
    """Of two records of a clean file in a cluster, the one that belongs there less is put out.

    Where errors cost the same that never is: one of the two would have been worth moving out.
    """
    rows = np.flatnonzero(apart >= 0)
    within = _sums(pairs, cluster)[0][rows].round(9)
    place = cluster[rows] * (int(apart.max(initial=0)) + 1) + apart[rows]
    order = np.lexsort((keys[rows], -within, place))
    again = rows[order[np.flatnonzero(np.diff(place[order], prepend=-1) == 0)]]
    out = np.unique(cluster, return_inverse=True)[1].astype(np.int64)
    out[again] = len(cluster) + np.arange(len(again))
    return np.unique(out, return_inverse=True)[1].astype(np.int64)


def decide(
    pairs: PairProbabilities,
    cluster: Ints,
    loss: ClusterLoss,
    alone: Floats,
    keys: NDArray[np.uint64],
) -> ClusterDecision:
    """What is expected of a partition, and of each record in it."""
    n = len(cluster)
    cluster = np.unique(cluster, return_inverse=True)[1].astype(np.int64)
    size = np.bincount(cluster)[cluster]
    within, outside = _sums(pairs, cluster)
    membership = np.where(size > 1, within / np.maximum(1, size - 1), alone)
    rank = np.argsort(np.argsort(keys, kind="stable"))
    best = np.lexsort((rank, -within.round(9), cluster))  # most of it with the others: the face
    face = best[np.append(True, np.diff(cluster[best]) != 0)]
    own = (loss.false_pair * (size - 1 - within) + loss.missed_pair * outside) / 2
    decision = np.where(size > 1, CLUSTER, SINGLE)
    decision = np.where(own > loss.review, REVIEW, decision)
    false, missed, expected = _expected(pairs, cluster, loss)
    given = (np.clip(membership, 0, 1), decision, false, missed, expected)
    return ClusterDecision(face[cluster].astype(np.int64) if n else cluster, *given)


def _sums(pairs: PairProbabilities, cluster: Ints) -> tuple[Floats, Floats]:
    """Of each record: the sum of its pairs' probabilities within its cluster, and outside."""
    same = cluster[pairs.a] == cluster[pairs.b]
    out: list[Floats] = []
    for at in (same, ~same):
        p = pairs.probability[at]
        total = np.bincount(pairs.a[at], p, len(cluster)).astype(np.float64)
        out.append(total + np.bincount(pairs.b[at], p, len(cluster)))
    return out[0], out[1]


def _expected(
    pairs: PairProbabilities, cluster: Ints, loss: ClusterLoss
) -> tuple[float, float, float]:
    """False and missed pairs expected, and the loss."""
    same = cluster[pairs.a] == cluster[pairs.b]
    size = np.unique(cluster, return_counts=True)[1]
    n_within = int((size * (size - 1) // 2).sum())
    right = float(pairs.probability[same].sum())
    false, missed = max(0.0, n_within - right), float(pairs.probability[~same].sum())
    return false, missed, loss.false_pair * false + loss.missed_pair * missed


def variation_of_information(cluster: Ints, kept: NDArray[np.int32]) -> float:
    """Expected distance of a partition from the draws, in nats: 0 if all are the same."""
    n, total = len(cluster), 0.0
    of_cluster = np.unique(cluster, return_inverse=True)[1].astype(np.int64)

    def entropy(labels: Ints) -> float:
        share = np.unique(labels, return_counts=True)[1] / n
        return float(-(share * np.log(share)).sum())

    own = entropy(of_cluster)
    for draw in kept:
        both = of_cluster * n + draw.astype(np.int64)
        total += 2 * entropy(both) - own - entropy(draw.astype(np.int64))
    return max(0.0, total / max(1, len(kept)))
