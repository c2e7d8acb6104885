"""Comparison vectors (Eqs 1–2), counted and listed: the seam between data and statistics.

Statistics never see n_A × n_B pairs. They ask a `PairSource` for level counts, pattern counts and
the pairs above a weight; that is enough for everything in the paper (`docs/design.md`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bayeslink.errors import TooManyPairsError
from bayeslink.fields import Field

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_GRID = 1_000_000  # patterns that are enumerated without a second thought


@dataclass(frozen=True, slots=True)
class Scope:
    """The pairs that may link: n_A × n_B, or the pairs within each value of a blocking key."""

    sizes_a: Ints  # records of A in each block of the blocking key
    sizes_b: Ints

    @property
    def n_pairs(self) -> int:
        return int(self.sizes_a @ self.sizes_b)

    @property
    def max_links(self) -> int:
        return int(np.minimum(self.sizes_a, self.sizes_b).sum())


@dataclass(frozen=True, slots=True)
class LevelCounts:
    """Pairs at each level of each field, over all pairs in scope: counts[field, level].

    Where comparing all values of a field would take too long, some of its counts are estimates
    from `sampled` values drawn at random, each compared with all values of the other file; their
    standard errors are not 0. They add up to the number of pairs either way.
    """

    counts: Ints  # columns 0 = missing, 1 … k; unused levels of shorter fields are 0
    n_pairs: int
    sampled: tuple[int, ...] = ()  # by field; 0, or nothing at all: the counts are exact
    standard_errors: Floats | None = None

    @property
    def exact(self) -> bool:
        return not any(self.sampled)


@dataclass(frozen=True, slots=True)
class Patterns:
    """Distinct comparison vectors and how many pairs have each.

    Where counting all pairs would take too long, `counts` are estimates from `sampled` pairs drawn
    at random, with their standard errors. They add up to the number of pairs either way.
    """

    levels: NDArray[np.uint8]  # one row a pattern
    counts: Ints
    sampled: int = 0  # 0: the counts are exact
    standard_errors: Floats | None = None

    @property
    def exact(self) -> bool:
        return not self.sampled


@dataclass(frozen=True, slots=True)
class Pairs:
    """Listed pairs: row numbers of both files and the comparison vector."""

    a: NDArray[np.int32]
    b: NDArray[np.int32]
    levels: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.a)

    def take(self, which: NDArray[Any]) -> Pairs:
        return Pairs(self.a[which], self.b[which], self.levels[which])

    def with_more(self, others: Pairs) -> Pairs:
        return Pairs(
            np.concatenate([self.a, others.a]),
            np.concatenate([self.b, others.b]),
            np.concatenate([self.levels, others.levels]),
        )


@runtime_checkable
class PairSource(Protocol):
    """Where comparison vectors come from. Two engines, one contract (`tests/contract`)."""

    fields: Sequence[Field]
    scope: Scope
    tie_keys: tuple[NDArray[np.uint64], NDArray[np.uint64]]  # of each record, free of row order

    @property
    def n_a(self) -> int: ...
    @property
    def n_b(self) -> int: ...
    @property
    def n_pairs(self) -> int: ...

    def level_counts(self) -> LevelCounts:
        """Pairs at each level of each field over all pairs in scope; `exact`, or `sampled`."""

    def pattern_counts(self) -> Patterns:
        """Joint counts of all patterns over all pairs in scope; `exact`, or so many `sampled`."""

    def pairs_above(self, weights: Floats, threshold: float) -> Pairs:
        """Every pair whose weights (one row a field, one column a level) sum above threshold."""

    def find(self, ids: Any) -> Pairs:
        """The pairs named by (id_a, id_b), with their comparison vectors, whatever their weight."""

    def table(self, pairs: Pairs, columns: dict[str, Any]) -> Any:
        """Pairs with their ids, the given columns and their levels, in the caller's own kind."""


def sum_weights(weights: Floats, levels: NDArray[np.uint8]) -> Floats:
    """Add each pair's weights field by field, in the order in which the kernels add them."""
    total = np.zeros(len(levels))
    for j in range(levels.shape[1]):
        total += weights[j, levels[:, j]]
    return total


def count_levels(levels: NDArray[np.uint8], n_columns: int) -> Ints:
    """Rows at each level of each field."""
    counts = [np.bincount(column, minlength=n_columns) for column in levels.T]
    return np.array(counts, np.int64).reshape(levels.shape[1], n_columns)


def mix64(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of splitmix64."""
    with np.errstate(over="ignore"):
        x = x + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


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
