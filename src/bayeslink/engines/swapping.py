"""Swapped names: pairs whose given and family name stand in each other's column, as levels.

Such pairs (`engines.swaps`) are exceptions to what the tables say. In an exception the first of the
two fields has one of two levels just below agreement, "swapped" or "half swapped", and the second
counts as missing: it has been seen through the first. Of very many exceptions only those are listed
that are rare in their other fields; the rest are counted, and gone through again should a search
ask for some of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from bayeslink.comparing.fields import Field
from bayeslink.distinct import distinct
from bayeslink.engines.local import LocalPairs
from bayeslink.engines.swaps import Part, Rows, Swaps
from bayeslink.engines.tie_keys import ranked
from bayeslink.pairs.base import Over
from bayeslink.pairs.source import (
    Description,
    Floats,
    Ints,
    LevelCounts,
    Pairs,
    PairSource,
    Patterns,
    sum_weights,
)
from bayeslink.pairs.vectors import distinct_vectors
from bayeslink.threads import run_all, threads_of

_LISTED_A_RECORD = 1  # exceptions

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Vectors:
    """Comparison vectors of exceptions, what they would be otherwise, how many have both."""

    levels: NDArray[np.uint8]
    usual: NDArray[np.uint8]
    counts: Ints

    @classmethod
    def of(cls, levels: NDArray[np.uint8], usual: NDArray[np.uint8], n: Ints | int) -> _Vectors:
        both, _, at = distinct_vectors(np.hstack([levels, usual]))
        counts = np.zeros(len(both), np.int64)
        np.add.at(counts, at, n)
        return cls(both[:, : levels.shape[1]], both[:, levels.shape[1] :], counts)

    @classmethod
    def together(cls, parts: Sequence[_Vectors]) -> _Vectors:
        return cls.of(
            np.concatenate([part.levels for part in parts]),
            np.concatenate([part.usual for part in parts]),
            np.concatenate([part.counts for part in parts]),
        )

    def change(self, field: int, width: int) -> Ints:
        """How many more pairs are at each level of a field than would be otherwise."""
        change = np.zeros(width, np.int64)
        np.add.at(change, self.levels[:, field], self.counts)
        np.subtract.at(change, self.usual[:, field], self.counts)
        return change


def with_swapped_names(pairs: LocalPairs) -> PairSource:
    """The same pairs with a level for swapped names, where names are swapped.

    Which are follows from the values of both files (`Swaps`), which the local engine has.
    """
    swaps = Swaps.of(pairs)
    if swaps is None:
        return pairs
    found = SwappedNames(pairs, swaps)
    return found if found.n_exceptions else pairs


class SwappedNames(Over):
    """A PairSource over another one, with exceptions to its comparison vectors."""

    def __init__(self, inner: PairSource, swaps: Swaps) -> None:
        super().__init__(inner)
        self._swaps = swaps
        self._first, self._second = swaps.first, swaps.second
        field, other = inner.fields[self._first], inner.fields[self._second]
        self._level = field.n_levels - len(field.bands)  # of half swaps; then swaps, agreement
        self.fields: Sequence[Field] = tuple(
            _with_levels(f, self._level, other.name) if j == self._first else f
            for j, f in enumerate(inner.fields)
        )
        counts = inner.level_counts().counts
        self._log_share = np.log(np.maximum(counts, 0.5) / max(1, inner.n_pairs))
        self._most_common = np.inf  # of exceptions that are listed
        parts = swaps.in_parts(np.arange(self.n_a))
        share = _LISTED_A_RECORD * (self.n_a + self.n_b) / swaps.most
        if share < 1:
            some, n = np.unique(self._commonness(self._look(parts[0])[1]), return_counts=True)
            few = some[np.cumsum(n) <= share * n.sum()]
            self._most_common = float(few.max(initial=-np.inf))
        found = self._each(parts, self._gone_through)
        self.exceptions = _all([listed for listed, _, _ in found])
        self._vectors = _Vectors.together([vectors for _, vectors, _ in found])
        self._others = _Vectors.together([others for _, _, others in found])
        order = ranked(self.exceptions, self.tie_keys, self.one_file)
        full = self.exceptions.levels[order, self._first] > self._level
        self._ranked = (order[~full], order[full])

    def within(self, groups: Ints) -> SwappedNames:
        """The pairs of one file within groups of records, −1 of those in none."""
        assert isinstance(self.inner, LocalPairs)
        return SwappedNames(self.inner.within(groups), self._swaps.within(groups))

    def _each(self, parts: Sequence[Part], work: Callable[[Part], T]) -> list[T]:
        return run_all([partial(work, part) for part in parts], threads_of(self.workers))

    def _look(self, part: Part) -> tuple[Pairs, NDArray[np.uint8]]:
        """Exceptions, and what they would be otherwise."""
        a, b, kind = part()
        usual = self._lifted(self.inner.levels_of(a, b))
        levels = usual.copy()
        levels[:, self._first], levels[:, self._second] = self._level + kind - 1, 0
        return Pairs(a, b, levels), usual

    def _gone_through(self, part: Part) -> tuple[Pairs, _Vectors, _Vectors]:
        """Exceptions that are listed; the vectors of all, and of those that are not listed."""
        pairs, usual = self._look(part)
        rare = self._commonness(usual) <= self._most_common
        near, far = np.flatnonzero(rare), np.flatnonzero(~rare)
        others = _Vectors.of(pairs.levels[far], usual[far], 1)
        return pairs.take(near), _Vectors.of(pairs.levels, usual, 1), others

    def _commonness(self, levels: NDArray[np.uint8]) -> Floats:
        """Log share of all pairs with the levels of the fields without names, about."""
        out = np.zeros(len(levels))
        for j in range(len(self.fields)):
            if j not in (self._first, self._second):
                out += self._log_share[j, levels[:, j]]
        return out

    @property
    def n_exceptions(self) -> int:
        return int(self._vectors.counts.sum())

    # --- levels ----------------------------------------------------------------------------------

    def _lifted(self, levels: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Levels of the source below, with room for the new one."""
        lifted = levels.copy()
        lifted[:, self._first] += 2 * (lifted[:, self._first] >= self._level).astype(np.uint8)
        return lifted

    def _lowered(self, weights: Floats) -> Floats:
        """Weights by level for the source below."""
        lowered = weights.copy()
        own = np.delete(weights[self._first], [self._level, self._level + 1])
        lowered[self._first] = np.append(own, [0.0, 0.0])
        return lowered

    def _settled(self, pairs: Pairs) -> Pairs:
        """Pairs of the source below, as they are here."""
        levels = self._lifted(pairs.levels)
        kind = self._swaps.of_pairs(pairs.a, pairs.b)
        at = np.flatnonzero(kind)
        levels[at, self._first], levels[at, self._second] = self._level + kind[at] - 1, 0
        return Pairs(pairs.a, pairs.b, levels)

    # --- what statistics ask for -----------------------------------------------------------------

    def level_counts(self) -> LevelCounts:
        found = self.inner.level_counts()
        width = max(f.n_levels for f in self.fields) + 1
        counts = self._widened(found.counts, width)
        counts += np.array([self._vectors.change(j, width) for j in range(len(self.fields))])
        errors = found.standard_errors
        return replace(
            found,
            counts=np.maximum(counts, 0),  # where they are estimates
            standard_errors=None if errors is None else self._widened(errors, width),
        )

    def _widened(self, values: NDArray[Any], width: int) -> NDArray[Any]:
        out = np.zeros((len(values), width), values.dtype)
        out[:, : min(width, values.shape[1])] = values[:, :width]
        own = np.insert(values[self._first], [self._level, self._level], 0)
        out[self._first] = np.append(own, np.zeros(width, values.dtype))[:width]
        return out

    def pattern_counts(
        self, fields: Sequence[int] | None = None, rows: Ints | None = None
    ) -> Patterns:
        which = list(range(len(self.fields)) if fields is None else fields)
        found = self.inner.pattern_counts(fields, rows)
        levels = found.levels.copy()
        for k, j in enumerate(which):
            if j == self._first:
                levels[:, k] += 2 * (levels[:, k] >= self._level).astype(np.uint8)
        own = self._vectors
        if rows is not None:
            found_there = self._each(self._swaps.in_parts(distinct(rows)), self._gone_through)
            own = _Vectors.together([vectors for _, vectors, _ in found_there])
        every = np.concatenate([levels, own.usual[:, which], own.levels[:, which]])
        vectors, _, at = distinct_vectors(every)
        counts = np.zeros(len(vectors), np.int64)
        np.add.at(counts, at, np.concatenate([found.counts, -own.counts, own.counts]))
        errors = None
        if found.standard_errors is not None:
            errors = np.zeros(len(vectors))
            np.add.at(errors, at[: len(levels)], found.standard_errors)
        kept = counts > 0
        return replace(
            found,
            levels=vectors[kept],
            counts=counts[kept],
            standard_errors=None if errors is None else errors[kept],
        )

    def pairs_above(self, weights: Floats, threshold: float, *, in_files: bool = False) -> Pairs:
        found = self.inner.pairs_above(self._lowered(weights), threshold, in_files=in_files)
        usual = self._swaps.of_pairs(found.a, found.b) == 0
        kept = found if usual.all() else found.take(np.flatnonzero(usual))
        kept = Pairs(kept.a, kept.b, self._lifted(kept.levels))

        def above(pairs: Pairs) -> Pairs:
            return pairs.take(np.flatnonzero(sum_weights(weights, pairs.levels) > threshold))

        own = above(self.exceptions)
        if (sum_weights(weights, self._others.levels) > threshold).any():
            parts = self._swaps.in_parts(np.arange(self.n_a))
            own = _all(self._each(parts, lambda part: above(self._look(part)[0])))
        if not len(own):
            return kept
        joined = kept.with_more(own)
        return joined.take(np.argsort(joined.numbered(self.n_b), kind="stable"))

    def levels_of(self, a: Rows, b: Rows) -> NDArray[np.uint8]:
        return self._settled(Pairs(a, b, self.inner.levels_of(a, b))).levels

    def join_sizes(self) -> Ints:
        sizes = self._widened(self.inner.join_sizes(), max(f.n_levels for f in self.fields) + 1)
        if not len(self._others.counts):  # all are listed; else they are drawn by other fields
            sizes[self._first, self._level : self._level + 2] = [len(r) for r in self._ranked]
        return sizes

    def draw_pairs(self, field: int, level: int, uniforms: Floats) -> tuple[Rows, Rows]:
        if field == self._first and 0 <= level - self._level < 2:
            order = self._ranked[level - self._level]
            at = order[(uniforms[:, 0] * len(order)).astype(np.int64)]
            return self.exceptions.a[at], self.exceptions.b[at]
        below = level - 2 * (field == self._first and level > self._level)
        a, b = self.inner.draw_pairs(field, below, uniforms)
        if field in (self._first, self._second):  # exceptions are not at this level
            out = self._swaps.of_pairs(np.maximum(a, 0), np.maximum(b, 0)) > 0
            a, b = np.where(out, -1, a), np.where(out, -1, b)
        return a, b

    def find(self, ids: Any) -> Pairs:
        return self._settled(self.inner.find(ids))

    # --- what is said of them --------------------------------------------------------------------

    def describe(self) -> Description:
        found = self.inner.describe()
        names = [self.fields[j].name for j in (self._first, self._second)]
        n = [
            self._vectors.counts[self._vectors.levels[:, self._first] == self._level + k].sum()
            for k in range(2)
        ]
        note = (
            f"{names[0]} and {names[1]} look swapped in {n[1]:,} pairs, and half swapped in "
            f"{n[0]:,}; this is handled."
        )
        return replace(found, notes=(*found.notes, note))


def _with_levels(field: Field, level: int, other: str) -> Field:
    """A field with two more levels, just below agreement."""

    def inserted(values: tuple[Any, ...], *more: Any) -> tuple[Any, ...]:
        return (*values[: level - 1], *more, *values[level - 1 :])

    labels = f"half swapped with {other}", f"swapped with {other}"
    learned = field.options.get("m_prior", {})  # by label, from a model that had these levels
    return replace(
        field,
        labels=inserted(field.labels, *labels),
        m_prior=inserted(field.m_prior, *(learned.get(label, 1.0) for label in labels)),
        u_prior=inserted(field.u_prior, 1.0, 1.0),
        covers=((level, other), (level + 1, other)),
    )


def _all(parts: Sequence[Pairs]) -> Pairs:
    return Pairs(*(np.concatenate([getattr(p, n) for p in parts]) for n in ("a", "b", "levels")))
