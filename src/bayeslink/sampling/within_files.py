"""Are pairs as alike as the links found within each file, too? There they are two people.

A file without duplicates holds pairs that are surely no links: its own. If A and B are of one kind,
as many pairs of strangers look alike within them as between them, spouses and namesakes among
them, whatever the model knows of that. What is more between the files must be links. Where hardly
anything is more, nothing says that anybody is in both.

The score is that of independent fields, from the links' levels and those of all pairs: it must only
be the same within and between. Levels are told anew, for both files as one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bayeslink.errors import TooManyPairsError
from bayeslink.linkage.posthoc import Blocks
from bayeslink.pairs.source import Floats, Ints, PairSource, sum_weights

MOST = 10_000  # records of each file
QUANTILES = (0.5, 0.25, 0.1)  # of the links by their score, above which pairs are counted
_LONG = 1_000_000  # pairs, from which no lower score is tried
CLUMPED = 2.0  # variance of a count, as a multiple of it: households come together
SURELY = 2.0  # standard errors
UNSUPPORTED = 0.5  # share of the links, below which nothing says that people are in both


@dataclass(frozen=True, slots=True)
class WithinFiles:
    """Pairs as alike as most links.

    Attributes
    ----------
    between
        Such pairs between the files.
    within
        As many as would be there by chance, going by those within each file.
    supported
        Share of the links that surely are more than that.
    """

    between: int
    within: float
    supported: float

    @property
    def holds(self) -> bool:
        """Whether links stand out; where not one such pair is expected by chance, they do."""
        return self.supported >= UNSUPPORTED or self.within < 1


def compare_within(blocks: Blocks, probability: Floats) -> WithinFiles | None:
    """Hold the links against pairs within the files.

    None where that cannot be done: of pairs without their records, with a blocking key, on Spark,
    and where no link is expected.
    """
    pairs, c = blocks.pairs, blocks.candidates
    if pairs.closed or pairs.n_pairs != pairs.n_a * pairs.n_b:
        return None
    rows = _chosen(pairs.tie_keys[0]), _chosen(pairs.tie_keys[1])
    place = [_places(n, at) for n, at in zip((pairs.n_a, pairs.n_b), rows, strict=True)]
    a, b = place[0][c.a], place[1][c.b]
    at = np.flatnonzero((a >= 0) & (b >= 0) & (probability[: len(c)] > 0.01))
    keys = pairs.tie_keys[0][c.a[at]], pairs.tie_keys[1][c.b[at]]
    at = at[np.lexsort(keys)]  # sums do not hang on the order of rows
    p = probability[at]
    if p.sum() < 1 or min(map(len, rows)) < 2:
        return None
    one = pairs.together(rows)
    if one is None:
        return None
    n_a, n_b = len(rows[0]), len(rows[1])
    levels = one.levels_of(a[at].astype(np.int32), (b[at] + n_a).astype(np.int32))
    weights = _weights(one, levels, p)
    score = sum_weights(weights, levels)
    best: WithinFiles | None = None
    for low, share in _thresholds(score, p):
        try:
            found = one.pairs_above(weights, low)
        except TooManyPairsError:
            break
        of_a, of_b = found.a < n_a, found.b < n_a  # both of A; neither: both of B
        within = float((of_a & of_b).sum()), float((~of_a & ~of_b).sum())
        between = len(found) - int(sum(within))
        factors = n_b / max(1, (n_a - 1) / 2), n_a / max(1, (n_b - 1) / 2)
        chance = float(np.dot(within, factors)) / 2
        variance = float(np.dot(within, np.square(factors))) / 4 + chance + 1
        more = between - chance - SURELY * np.sqrt(CLUMPED * variance)
        supported = float(np.clip(more / (share * p.sum()), 0.0, 1.0))
        if best is None or supported > best.supported:
            best = WithinFiles(between, chance, supported)
        if len(found) > _LONG or best.holds:
            break
    return best


def _chosen(keys: NDArray[np.uint64]) -> Ints:
    """Rows of the records that are looked at, whatever their order."""
    return np.sort(np.argsort(keys, kind="stable")[:MOST]).astype(np.int64)


def _places(n: int, rows: Ints) -> Ints:
    out = np.full(n, -1, np.int64)
    out[rows] = np.arange(len(rows))
    return out


def _weights(one: PairSource, levels: NDArray[np.uint8], p: Floats) -> Floats:
    """log m / u by level: of the links, by their probability, and of all pairs less these."""
    counts = one.level_counts().counts.astype(np.float64)
    m = np.array([np.bincount(column, p, counts.shape[1]) for column in levels.T])
    u = np.maximum(counts - m, 0.0)
    seen = counts > 0
    m, u = (np.where(seen, x + 0.5, 0.0) for x in (m, u))
    m[:, 0] = u[:, 0] = 0.0
    m, u = (x / np.maximum(x.sum(1, keepdims=True), 1e-300) for x in (m, u))
    both = (m > 0) & (u > 0)
    out = np.zeros_like(m)
    out[both] = np.log(m[both] / u[both])
    return out


def _thresholds(score: Floats, p: Floats) -> Iterator[tuple[float, float]]:
    """Scores that most links are above, the highest first, and the share of them that is."""
    order = np.argsort(score, kind="stable")
    below = np.cumsum(p[order]) / p.sum()
    for quantile in QUANTILES:
        at = min(len(order) - 1, int(np.searchsorted(below, quantile)))
        low = float(score[order[at]]) - 1e-9
        yield low, float(p[score > low].sum() / p.sum())


def said(found: WithinFiles | None) -> str | None:
    """What to tell of links that pairs within the files explain as well; None if they do not."""
    if found is None or found.holds:
        return None
    return (
        f"{found.between:,} pairs of A and B are as alike as most links, and {found.within:,.0f} "
        "would be by chance, for such pairs are as common within A and within B, where they are "
        "two people. Hardly anybody may be in both files. Do not use the links before you have "
        "looked at some. If people are in one file twice, say --duplicates (duplicates=)."
    )
