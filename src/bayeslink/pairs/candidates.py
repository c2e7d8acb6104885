"""Pairs above a moving threshold, listed once and reused while the list is provably complete."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bayeslink.errors import TooManyPairsError
from bayeslink.pairs.source import Floats, Ints, Pairs, PairSource, sum_weights

_GRID = 1_000_000  # patterns that are enumerated without a second thought


class Candidates:
    """Pairs above a moving threshold, listed with some slack and reused while provably complete.

    A pair that is not in the list had a weight of at most `listed_to` when the list was made. The
    list serves new weights if no pattern that could be outside it is above the new threshold.
    Where there are few patterns, weights are worked out by pattern and looked up by pair.
    """

    def __init__(self, source: PairSource, slack: float = 2.0) -> None:
        self.source = source
        self.slack = slack
        self.searches = 0
        self._n_levels = [field.n_levels for field in source.fields]
        self._few_patterns = bool(np.prod([k + 1.0 for k in self._n_levels]) <= _GRID)
        self._pairs: Pairs | None = None
        self._pattern: Ints = np.zeros(0, np.int64)  # of each pair, where there are few
        self._weights: Floats = np.zeros((0, 0))
        self._listed_to = np.inf

    def above(self, weights: Floats, threshold: float) -> tuple[Pairs, Floats]:
        """Every pair whose weight exceeds `threshold`, and the weights."""
        pairs = self._pairs
        if pairs is None or not self._covers(weights, threshold):
            self._pairs = None  # the old list makes room for the new one
            self._pairs = pairs = self._list(weights, threshold)
            if self._few_patterns:
                self._pattern = self._patterns_of(pairs.levels)
        if self._few_patterns:
            w = self._by_pattern(weights)[self._pattern]
        else:
            w = sum_weights(weights, pairs.levels)
        keep = np.flatnonzero(w > threshold)
        return pairs.take(keep), w[keep]

    def _list(self, weights: Floats, threshold: float) -> Pairs:
        """List pairs, with less slack where the list would be too long; the result is the same."""
        self._weights = weights.copy()
        self.searches += 1
        while True:
            self._listed_to = threshold - self.slack
            try:
                return self.source.pairs_above(weights, self._listed_to)
            except TooManyPairsError:
                if self.slack == 0:
                    raise
                self.slack = self.slack / 2 if self.slack > 0.2 else 0.0

    def _covers(self, weights: Floats, threshold: float) -> bool:
        change = [(weights - self._weights)[j, : k + 1].max() for j, k in enumerate(self._n_levels)]
        if self._listed_to + sum(change) <= threshold:
            return True
        if not self._few_patterns:
            return False
        outside = self._by_pattern(self._weights) <= self._listed_to
        return not bool(np.any(outside & (self._by_pattern(weights) > threshold)))

    def _by_pattern(self, weights: Floats) -> Floats:
        """Weight of every possible pattern, added field by field as `sum_weights` does."""
        total: Floats = np.zeros(1)
        for j, k in enumerate(self._n_levels):
            total = np.add.outer(total, weights[j, : k + 1]).ravel()
        return total

    def _patterns_of(self, levels: NDArray[np.uint8]) -> Ints:
        """Number of each pair's pattern, in the order of `_by_pattern`."""
        pattern = np.zeros(len(levels), np.int64)
        for j, k in enumerate(self._n_levels):
            pattern = pattern * (k + 1) + levels[:, j]
        return pattern
