"""Pairs that another tool's blocking rules chose, where its u tells how all pairs compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayeslink.engines.listed import ListedPairs
from bayeslink.errors import SettingsError
from bayeslink.pairs.source import Description, Floats, Ints, LevelCounts, Patterns, Scope


class ChosenPairs(ListedPairs):
    """Listed pairs among n_A × n_B; no other may link, but all count towards u.

    What agrees by chance cannot be learned from pairs that were chosen for agreeing. So level
    counts are those that `u`, the shares of levels among all pairs, implies; and what depends on
    what among non-links is not told (`pattern_counts` of chosen records is empty).
    """

    closed = True

    def __init__(self, *arguments: Any, u: Sequence[Sequence[float]], **options: Any) -> None:
        super().__init__(*arguments, only=True, **options)
        self.scope = Scope(np.array([self.n_a]), np.array([self.n_b]))
        self._chosen = False  # it does not matter: u is given
        self._counts = self._all_counts(u)

    def _all_counts(self, u: Sequence[Sequence[float]]) -> LevelCounts:
        listed = super().level_counts().counts
        n, counts = self.n_a * self.n_b, np.zeros_like(listed)
        for j, shares in enumerate(u):
            missing = round(n * listed[j, 0] / max(1, len(self._pairs)))
            levels = slice(1, len(shares) + 1)
            law = np.asarray(shares) / sum(shares)
            counts[j, levels] = np.maximum(np.round(law * (n - missing)), listed[j, levels])
            counts[j, 1] += min(0, n - counts[j].sum())  # more were listed than u has it
            counts[j, 0] = n - counts[j].sum()
        return LevelCounts(counts, n)

    def level_counts(self) -> LevelCounts:
        return self._counts

    def pattern_counts(
        self, fields: Sequence[int] | None = None, rows: Ints | None = None
    ) -> Patterns:
        if rows is None:
            return super().pattern_counts(fields)
        width = len(self.fields) if fields is None else len(fields)
        return Patterns(np.zeros((0, width), np.uint8), np.zeros(0, np.int64))

    def join_sizes(self) -> Ints:
        return np.zeros_like(self._counts.counts)

    def draw_pairs(
        self, field: int, level: int, uniforms: Floats
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        raise SettingsError(
            "only the pairs that were given may link. Sample with restricted=True, as link does."
        )

    def describe(self) -> Description:
        note = (
            f"{len(self._pairs):,} of {self.n_pairs:,} pairs were given, and only these may link; "
            "how often others agree by chance is as the model that came with them has it."
        )
        return replace(super().describe(), notes=(note,))
