"""How far the number of people may be wrong beyond its draws, as `identified` has it of L.

Every join of two clusters makes one person less. Joins are taken in parts:

- *Joins that are only counted* are of clusters of the estimate, through pairs that do not stand
  out: at θ or less, or hardly probable. How many there are follows from the model alone.
- *False joins*: how often the draws take the clusters of the estimate apart.

Each number may be wrong by the log-normal factor that it may be wrong by in linkage. Where most
joins are only counted, the data do not say how many people there are: every other draw is then of
as many as there would be without these joins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bayeslink.linkage.clustering import PairProbabilities
from bayeslink.pairs.source import Files, Floats, Ints
from bayeslink.sampling.entities import Entities
from bayeslink.sampling.identified import COUNTED, FALSE, MOST_COUNTED, factors

_FEW = 0.01  # joins a record: as few do not leave the number of people open


@dataclass(frozen=True, slots=True)
class Joins:
    """Joins that are expected: those that can be pointed to, those only counted, and false ones."""

    pointed: float
    counted: float
    false: float
    records: int = 0

    @property
    def mostly_counted(self) -> bool:
        """Whether how many people there are follows from the model alone."""
        few = max(1.0, _FEW * self.records)
        return self.counted > max(few, MOST_COUNTED * (self.pointed + self.counted))


def joins_of(
    kept: NDArray[np.int32],
    together: PairProbabilities,
    stands_out: NDArray[np.bool_],
    cluster: Ints,
) -> Joins:
    """Divide the joins that are expected.

    Parameters
    ----------
    kept
        Draw × row: the cluster of each row, in some of the draws.
    stands_out
        Which pairs of `together` can be pointed to.
    cluster
        The estimate: of each row, the row that represents its cluster.
    """
    n = len(cluster)
    number = np.unique(cluster, return_inverse=True)[1].astype(np.int64)
    size = np.bincount(number)
    several = np.flatnonzero(size[number] > 1)
    people, parts = np.zeros((2, len(kept)))
    for at, draw in enumerate(kept):
        people[at] = len(np.unique(draw))
        parts[at] = len(np.unique(number[several] * n + draw[several]))
    split = float(parts.mean() - (size > 1).sum())
    merged = len(size) + split - float(people.mean())
    inside = cluster[together.a] == cluster[together.b]
    p, outside = together.probability, ~inside
    weak = float(p[outside & ~stands_out].sum() / max(p[outside].sum(), 1e-300))
    counted = max(0.0, merged * weak)
    every = n - float(people.mean())
    return Joins(max(0.0, every - counted), counted, max(0.0, split), n)


def with_doubt(
    drawn: Entities,
    joins: Joins,
    together: PairProbabilities,
    cluster: Ints,
    files: Files | None,
    seed: int,
) -> Entities:
    """The same draws with the doubt. People by size are rounded by themselves."""
    n, shape = len(cluster), drawn.draws.shape
    if joins.mostly_counted:
        counted, false = np.zeros((2, *shape))
        counted.reshape(-1)[1::2] = -joins.counted
    else:
        counted, false = (
            amount * (factors(shape, sd, seed, part) - 1)
            for part, (amount, sd) in enumerate(((joins.counted, COUNTED), (joins.false, FALSE)))
        )
    people = np.clip(np.rint(drawn.draws - counted + false).astype(np.int64), 1, n)
    inside = cluster[together.a] == cluster[together.b]
    size = np.bincount(cluster, minlength=n)[cluster]
    likely = np.zeros(n)
    for rows in (together.a[inside], together.b[inside]):
        likely += np.bincount(rows, together.probability[inside], n)
    leaves = np.where(size > 1, np.maximum(0.0, 1 - likely / np.maximum(1, size - 1)), 0.0)
    a, b = together.a[~inside], together.b[~inside]
    p = together.probability[~inside]

    def moved(
        counts: Ints,
        joined: tuple[Ints, Ints, Ints],
        parted: tuple[Ints, Ints, Ints],
        weights: Floats,
    ) -> Ints:
        """Counts of people by kind, where joins and parts are as many as the doubt has it."""
        width = counts.shape[2]
        of_join = _mean_change(weights, joined[:2], joined[2:], width)
        of_part = _mean_change(leaves, parted[:1], parted[1:], width)
        out = counts + counted[..., None] * of_join + false[..., None] * of_part
        return np.asarray(np.maximum(0, np.rint(out)), np.int64)

    last = drawn.of_size.shape[2] - 1
    of_size = moved(
        drawn.of_size,
        tuple(np.minimum(k, last) for k in (size[a], size[b], size[a] + size[b])),
        tuple(np.minimum(k, last) for k in (size, size - 1, np.ones_like(size))),
        p,
    )
    if drawn.in_files is None or files is None:
        return replace(drawn, draws=people, of_size=of_size)
    own = np.left_shift(1, files.of)
    count = np.zeros((n, len(files.names)), np.int64)
    np.add.at(count, (cluster, files.of), 1)
    bits = np.left_shift(1, np.arange(len(files.names)))
    which = np.asarray((count > 0) @ bits, np.int64)[cluster]
    rest = np.where(count[cluster, files.of] == 1, which - own, which)
    clean = int(bits[list(files.clean)].sum())
    can = np.bitwise_and(which[a] & which[b], clean) == 0
    in_files = moved(
        drawn.in_files,
        (which[a], which[b], np.bitwise_or(which[a], which[b])),
        (which, rest, own),
        p * can,
    )
    return replace(drawn, draws=in_files.sum(2), of_size=of_size, in_files=in_files)


def _mean_change(
    weights: Floats, before: Sequence[Ints], after: Sequence[Ints], width: int
) -> Floats:
    """What becomes of people of each kind, in the mean over changes with these weights."""
    out = np.zeros(width)
    for kinds, sign in ((before, -1), (after, 1)):
        for kind in kinds:
            out += sign * np.bincount(kind, weights, width)
    return out / max(float(weights.sum()), 1e-300)
