"""Pairs above a moving threshold, listed once and reused while the list is provably complete."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bayeslink.errors import TooManyPairsError
from bayeslink.pairs.source import Floats, Ints, LevelCounts, Pairs, PairSource
from bayeslink.pairs.vectors import distinct_vectors

_GRID = 1_000_000  # patterns that are enumerated without a second thought
_KEPT = 20_000_000  # pairs in several lists, at most
_LONG = 30_000_000  # pairs expected in a list for which there is less slack


class Weighing(Protocol):
    """What says how much pairs weigh."""

    @property
    def bound(self) -> Floats: ...
    def bound_above(self, threshold: float, counts: LevelCounts) -> Floats: ...
    def weight_of(self, levels: NDArray[Any]) -> Floats: ...


def pairs_above(
    source: PairSource, weighing: Weighing, threshold: float, *, in_files: bool = False
) -> tuple[Pairs, Floats]:
    """Every pair that weighs more than `threshold`, and the weights.

    Searched for by what fields can add at most, so that none is missed, then weighed.
    """
    bound = weighing.bound_above(threshold, source.level_counts())
    found = source.pairs_above(bound, threshold, in_files=in_files)
    w = weighing.weight_of(found.levels)
    keep = np.flatnonzero(w > threshold)
    return (found, w) if len(keep) == len(found) else (found.take(keep), w[keep])


class Lists:
    """Several `Candidates`: climbs from several starts come by what an earlier one listed."""

    def __init__(
        self, source: PairSource, expected: Callable[[PairSource, Weighing, float], float]
    ) -> None:
        self._source, self._expected = source, expected
        self._kept: list[Candidates] = []  # used last, first

    def above(self, weighing: Weighing, threshold: float) -> tuple[Pairs, Floats]:
        """Every pair whose weight exceeds `threshold`, and the weights: from the shortest list."""
        serve = [c for c in self._kept if c.covers(weighing, threshold)]
        serve = serve or [Candidates(self._source, expected=self._expected)]
        own = min(serve, key=len)
        found = own.above(weighing, threshold)
        kept = [own, *(c for c in self._kept if c is not own)]
        fits = np.cumsum([len(c) for c in kept]) <= _KEPT
        self._kept = [c for c, fit in zip(kept, fits, strict=True) if fit or c is own]
        return found


class Candidates:
    """Pairs above a moving threshold, listed with some slack and reused while provably complete.

    A pair that is not in the list had a bound of at most `listed_to` when the list was made. The
    list serves new weights if no pattern that could be outside it is above the new threshold.
    """

    def __init__(
        self,
        source: PairSource,
        slack: float = 2.0,
        expected: Callable[[PairSource, Weighing, float], float] = lambda *_: 0.0,
    ) -> None:
        self.source, self._expected = source, expected  # about how many pairs are above
        self.slack = slack
        self.searches = 0
        self._n_levels = [field.n_levels for field in source.fields]
        self._few_patterns = bool(np.prod([k + 1.0 for k in self._n_levels]) <= _GRID)
        self._pairs: Pairs | None = None
        self._vectors: NDArray[np.uint8] = np.zeros((0, 0), np.uint8)
        self._vector: NDArray[np.int32] = np.zeros(0, np.int32)  # of each pair
        self._bound: Floats = np.zeros((0, 0))
        self._listed_to = np.inf

    def above(self, weighing: Weighing, threshold: float) -> tuple[Pairs, Floats]:
        """Every pair whose weight exceeds `threshold`, and the weights."""
        if not self.covers(weighing, threshold):
            self._pairs = None  # the old list makes room for the new one
            self._vector = np.zeros(0, np.int32)
            self._keep(self._list(weighing, threshold))
        elif self._pairs is None:
            self._keep(self.source.pairs_above(self._bound, self._listed_to))
        pairs = self._pairs
        assert pairs is not None
        w = weighing.weight_of(self._vectors)
        keep = np.flatnonzero((w > threshold)[self._vector])
        return pairs.take(keep), w[self._vector[keep]]

    @property
    def listing(self) -> tuple[Floats, float, float]:
        """What was last searched for: to be searched for again by `list_again`."""
        return self._bound, self._listed_to, self.slack

    def list_again(self, bound: Floats, listed_to: float, slack: float) -> None:
        """Be as when `listing` told this; the pairs are searched for once they are asked for."""
        if not np.array_equal(bound, self._bound) or listed_to != self._listed_to:
            self.searches += 1
            self._pairs = None
            self._bound, self._listed_to, self.slack = bound, listed_to, slack

    def _keep(self, pairs: Pairs) -> None:
        self._pairs = pairs
        self._vectors, _, vector = distinct_vectors(pairs.levels)
        self._vector = vector.astype(np.int32)

    def _list(self, weighing: Weighing, threshold: float) -> Pairs:
        """List pairs, with less slack where the list would be too long; the result is the same."""
        self.searches += 1
        while self.slack and self._would_be_long(weighing, threshold - self.slack):
            self._shorten()
        while True:
            self._listed_to = threshold - self.slack
            bound = weighing.bound_above(self._listed_to, self.source.level_counts())
            self._bound = bound.copy()
            try:
                return self.source.pairs_above(bound, self._listed_to)
            except TooManyPairsError:
                if self.slack == 0:
                    raise
                self._shorten()

    def _would_be_long(self, weighing: Weighing, threshold: float) -> bool:
        many = self.source.n_pairs > _LONG
        return many and self._expected(self.source, weighing, threshold) > _LONG

    def _shorten(self) -> None:
        self.slack = self.slack / 2 if self.slack > 0.2 else 0.0

    def __len__(self) -> int:
        return 0 if self._pairs is None else len(self._pairs)

    def covers(self, weighing: Weighing, threshold: float) -> bool:
        """Whether the list has every pair above the threshold."""
        if self._listed_to == np.inf:  # nothing has been listed
            return False
        bound = weighing.bound
        change = [(bound - self._bound)[j, : k + 1].max() for j, k in enumerate(self._n_levels)]
        if self._listed_to + sum(change) <= threshold:
            return True
        if not self._few_patterns:
            return False
        outside = self._by_pattern(self._bound) <= self._listed_to
        doubtful = np.flatnonzero(outside & (self._by_pattern(bound) > threshold))
        return not bool((weighing.weight_of(self._levels_of(doubtful)) > threshold).any())

    def _by_pattern(self, bound: Floats) -> Floats:
        """Bound of every possible pattern, added field by field as `sum_weights` does."""
        total: Floats = np.zeros(1)
        for j, k in enumerate(self._n_levels):
            total = np.add.outer(total, bound[j, : k + 1]).ravel()
        return total

    def _levels_of(self, patterns: Ints) -> NDArray[np.uint8]:
        """Comparison vectors, by their number in the order of `_by_pattern`."""
        shape = [k + 1 for k in self._n_levels]
        return np.stack(np.unravel_index(patterns, shape), 1).astype(np.uint8)
