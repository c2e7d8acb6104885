"""Several files as one, some of them free of duplicates: their own pairs are left out.

All records stand together in one file. What is counted over all pairs is the whole less what is
counted within each clean file; what is listed is filtered; what is drawn within a clean file is
drawn in vain, as outside the scope.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bayeslink.pairs.base import Over
from bayeslink.pairs.source import (
    Files,
    Floats,
    Ints,
    LevelCounts,
    Pairs,
    PairSource,
    Patterns,
)
from bayeslink.pairs.vectors import distinct_vectors

Rows = NDArray[np.int32]


class OneFile(PairSource, Protocol):
    """A source of one file whose pairs within groups of records can be counted, too."""

    def within(self, groups: Ints) -> PairSource: ...


def of_files(pairs: OneFile, files: Files) -> PairSource:
    """The pairs of one file as those of the files that stand together in it."""
    return ManyFiles(pairs, files)


class ManyFiles(Over):
    """A PairSource over that of one file, without the pairs within its clean files."""

    def __init__(self, inner: OneFile, files: Files) -> None:
        super().__init__(inner)
        self.files = files
        self._inside: PairSource | None = inner.within(files.apart) if files.clean else None
        left_out = self._inside.n_pairs if self._inside is not None else 0
        self.scope = replace(inner.scope, left_out=left_out)

    # --- what statistics ask for -----------------------------------------------------------------

    @cached_property
    def _level_counts(self) -> LevelCounts:
        found = self.inner.level_counts()
        if self._inside is None:
            return found
        own = self._inside.level_counts()
        sampled = tuple(np.maximum(_by_field(found), _by_field(own)).tolist())
        counts = found.counts - own.counts
        if any(sampled):
            counts = _adding_up(counts, self.n_pairs)
        errors = [x.standard_errors for x in (found, own) if x.standard_errors is not None]
        return LevelCounts(
            counts, self.n_pairs, sampled if any(sampled) else (), _both(errors, counts.shape)
        )

    def level_counts(self) -> LevelCounts:
        return self._level_counts

    def pattern_counts(
        self, fields: Sequence[int] | None = None, rows: Ints | None = None
    ) -> Patterns:
        found = self.inner.pattern_counts(fields, rows)
        if self._inside is None:
            return found
        own = self._inside.pattern_counts(fields, rows)
        vectors, _, at = distinct_vectors(np.concatenate([found.levels, own.levels]))
        counts = np.zeros(len(vectors), np.int64)
        np.add.at(counts, at, np.concatenate([found.counts, -own.counts]))
        errors = None
        if not (found.exact and own.exact):
            if rows is None:
                counts = _adding_up(counts[None], self.n_pairs)[0]
            squares = np.zeros(len(vectors))
            for part, where in ((found, at[: len(found.counts)]), (own, at[len(found.counts) :])):
                if part.standard_errors is not None:
                    np.add.at(squares, where, part.standard_errors**2)
            errors = np.sqrt(squares)
        kept = np.flatnonzero(counts > 0)
        return Patterns(
            vectors[kept],
            counts[kept],
            max(found.sampled, own.sampled),
            None if errors is None else errors[kept],
        )

    def pairs_above(self, weights: Floats, threshold: float, *, in_files: bool = False) -> Pairs:
        found = self.inner.pairs_above(weights, threshold, in_files=in_files)
        out = self.files.left_out(found.a, found.b)
        return found.take(np.flatnonzero(~out)) if out.any() else found

    def levels_of(self, a: Rows, b: Rows) -> NDArray[np.uint8]:
        return self.inner.levels_of(a, b)

    def draw_pairs(self, field: int, level: int, uniforms: Floats) -> tuple[Rows, Rows]:
        a, b = self.inner.draw_pairs(field, level, uniforms)
        out = (a < 0) | self.files.left_out(np.maximum(a, 0), np.maximum(b, 0))
        return np.where(out, -1, a).astype(np.int32), np.where(out, -1, b).astype(np.int32)

    def find(self, ids: Any) -> Pairs:
        found = self.inner.find(ids)
        self.files.refuse_within(found)
        return found

    def together(self, rows: tuple[Ints, Ints]) -> None:
        return None


def _by_field(counts: LevelCounts) -> Ints:
    return np.array(counts.sampled or [0] * len(counts.counts), np.int64)


def _both(errors: Sequence[Floats], shape: tuple[int, ...]) -> Floats | None:
    return np.sqrt(sum((e**2 for e in errors), np.zeros(shape))) if errors else None


def _adding_up(counts: Ints, total: int) -> Ints:
    """Estimates, each row made to add up to the total, none below 0."""
    out = np.maximum(counts, 0)
    for row in out:
        if row.any():
            most = int(row.argmax())
            row[most] = max(0, row[most] + total - int(row.sum()))
    return out
