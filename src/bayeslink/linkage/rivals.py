"""Are fields independent among non-links, as the model takes them to be?

Where they are, the level counts say how many pairs have which weight. People who share a household
agree on surname, postcode and street together; then far more pairs weigh enough for a link than
the model expects, and their link probabilities are too high.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from bayeslink.pairs.candidates import Weighing
from bayeslink.pairs.source import Floats, Pairs, PairSource

_GRID, _BIN = 100_000, 0.01  # patterns told apart, and width of the bins beyond
_TIMES = 3.0  # rivals, as a multiple of those expected, from which a warning is due,
_SHARE = 0.1  # if what is too many is also this share of the links
_MOSTLY = 0.7  # share of the rivals, of those compared, that agree on a field named in it


@dataclass(frozen=True, slots=True)
class Rivals:
    """Pairs that weigh enough for a link but have none, against the number expected."""

    pairs: Pairs = field(repr=False)
    expected: float  # were fields independent
    n_links: int
    names: tuple[str, ...] = field(repr=False)  # of the fields

    def __len__(self) -> int:
        return len(self.pairs)

    @property
    def agreeing(self) -> list[str]:
        """Fields on which most of them agree, in part at least."""
        share = (self.pairs.levels > 1).sum(0) / np.maximum(1, (self.pairs.levels > 0).sum(0))
        return [name for name, s in zip(self.names, share, strict=True) if s > _MOSTLY]

    def warning(self) -> str | None:
        """What is wrong where there are far too many, and what to do; None if there are not."""
        excess = len(self) - self.expected
        if len(self) < _TIMES * self.expected or excess < _SHARE * max(1, self.n_links):
            return None
        shared = ", ".join(self.agreeing) or "no field in particular"
        return (
            f"{len(self):,} pairs weigh enough for a link and have none; were the fields "
            f"independent among non-links, as the model takes them to be, about "
            f"{self.expected:,.0f} would. Most of these pairs agree on {shared}. Where different "
            "people share several values, as a household does, each of them counts as evidence of "
            "its own, and link probabilities are too high. Leave all but one of them out."
        )


def expected_by_weight(pairs: PairSource, weighing: Weighing) -> tuple[Floats, Floats]:
    """Weights, rising, and how many pairs would have them if fields were independent.

    Where there are too many patterns to weigh, what their fields add up to at most stands for the
    weight.
    """
    counts = pairs.level_counts()
    sizes = np.array([f.n_levels + 1 for f in pairs.fields])
    if np.prod(sizes.astype(float)) <= _GRID:
        patterns = np.stack(np.unravel_index(np.arange(np.prod(sizes)), sizes), 1).astype(np.uint8)
        shares = counts.counts / max(1, counts.n_pairs)
        n = counts.n_pairs * shares[np.arange(len(sizes)), patterns].prod(1)
        weights = weighing.weight_of(patterns)
        rising = np.argsort(weights, kind="stable")
        return weights[rising], n[rising]
    log_weights = weighing.bound
    w: Floats = np.zeros(1)
    share: Floats = np.ones(1)
    for j, f in enumerate(pairs.fields):
        levels = slice(0, f.n_levels + 1)
        w = np.add.outer(w, log_weights[j, levels]).ravel()
        share = np.outer(share, counts.counts[j, levels] / max(1, counts.n_pairs)).ravel()
        if len(w) > _GRID:  # coarsen: sum the shares in bins of the weight
            bins = np.round(w / _BIN).astype(np.int64)
            values, at = np.unique(bins, return_inverse=True)
            w = _BIN * values.astype(np.float64)
            share = np.bincount(at, share).astype(np.float64)
    order = np.argsort(w, kind="stable")
    return w[order], share[order] * counts.n_pairs


def expected_above(pairs: PairSource, weighing: Weighing, threshold: float) -> float:
    """About how many pairs have a weight above the threshold, if fields were independent."""
    w, n = expected_by_weight(pairs, weighing)
    return float(n[w > threshold].sum())
