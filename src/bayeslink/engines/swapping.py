"""Swapped names: pairs whose given and family name stand in each other's column, as levels.

Such pairs are few, so they are listed: exceptions to what the tables say. In an exception the first
of the two fields has one of two levels just below agreement, "swapped" (one name is equal across
columns, the other begins or ends alike) or "half swapped" (one is equal across columns, the other
missing), and the second field counts as missing: it has been seen through the first.
Which two fields, if any, follows from the values: swapped pairs must be far more frequent than
chance would have it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bayeslink.comparing.dictionaries import Codes, Dictionary
from bayeslink.comparing.fields import Field
from bayeslink.engines.local import LocalPairs
from bayeslink.pairs.held import HeldHere
from bayeslink.pairs.source import (
    Description,
    Floats,
    Ints,
    LevelCounts,
    Pairs,
    PairSource,
    Patterns,
    Scope,
    count_levels,
    sum_weights,
)
from bayeslink.pairs.vectors import distinct_vectors

_KINDS = (
    "exact",
    "levenshtein",
    "damerau_levenshtein",
    "jaro_winkler",
    "name",
)  # whose values are texts
_FEWEST, _TIMES = 5, 3.0  # swapped pairs, and times as many as by chance, that make it a level
_MOST_A_RECORD = 1  # pairs of one kind for each record, beyond which they are not listed
_ALIKE = 3  # letters at the beginning or end of the other name that are the same

Rows = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class _Swaps:
    first: int
    second: int
    a: Rows
    b: Rows
    full: NDArray[np.bool_]  # or half


def with_swapped_names(pairs: LocalPairs) -> PairSource:
    """The same pairs with a level for swapped names, where names are swapped."""
    found = _most_swapped(pairs)
    return pairs if found is None else SwappedNames(pairs, found)


class SwappedNames(HeldHere):
    """A PairSource over another one, with exceptions to its comparison vectors."""

    def __init__(self, inner: LocalPairs, swaps: _Swaps) -> None:
        self.inner = inner
        self._first, self._second = swaps.first, swaps.second
        field, other = inner.fields[self._first], inner.fields[self._second]
        self._level = field.n_levels - len(field.bands)  # of half swaps; then swaps, agreement
        self.fields: Sequence[Field] = tuple(
            _with_levels(f, self._level, other.name) if j == self._first else f
            for j, f in enumerate(inner.fields)
        )
        self.scope: Scope = inner.scope
        self.memory = inner.memory
        self.tie_keys = inner.tie_keys
        self.kind, self.id_types = inner.kind, inner.id_types
        order = np.argsort(swaps.a.astype(np.int64) * self.n_b + swaps.b)
        a, b = swaps.a[order], swaps.b[order]
        self._usual = self._lifted(inner.levels_of(a, b))  # what the exceptions would be otherwise
        levels = self._usual.copy()
        levels[:, self._first], levels[:, self._second] = self._level + swaps.full[order], 0
        self.exceptions = Pairs(a, b, levels)
        self._numbers = self.exceptions.numbered(self.n_b)
        keys = self.tie_keys
        ranked = np.lexsort((keys[1][b], keys[0][a]))
        full = swaps.full[order][ranked]
        self._ranked = (ranked[~full], ranked[full])

    @property
    def n_a(self) -> int:
        return self.inner.n_a

    @property
    def n_b(self) -> int:
        return self.inner.n_b

    @property
    def n_pairs(self) -> int:
        return self.inner.n_pairs

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

    def _at(self, a: Rows, b: Rows) -> tuple[Ints, NDArray[np.bool_]]:
        """Where pairs are among the exceptions, and whether they are."""
        number = a.astype(np.int64) * self.n_b + b
        at = np.minimum(np.searchsorted(self._numbers, number), len(self._numbers) - 1)
        return at, self._numbers[at] == number

    def _settled(self, pairs: Pairs) -> Pairs:
        """Pairs of the source below, as they are here."""
        levels = self._lifted(pairs.levels)
        at, swapped = self._at(pairs.a, pairs.b)
        levels[swapped] = self.exceptions.levels[at[swapped]]
        return Pairs(pairs.a, pairs.b, levels)

    # --- what statistics ask for -----------------------------------------------------------------

    def level_counts(self) -> LevelCounts:
        found = self.inner.level_counts()
        width = max(f.n_levels for f in self.fields) + 1
        counts = self._widened(found.counts, width)
        counts += count_levels(self.exceptions.levels, width) - count_levels(self._usual, width)
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
        own = np.arange(len(self.exceptions))
        if rows is not None:
            own = np.flatnonzero(np.isin(self.exceptions.a, rows))
        every = np.concatenate(
            [levels, self._usual[own][:, which], self.exceptions.levels[own][:, which]]
        )
        sign = np.repeat([-1, 1], len(own))
        vectors, _, at = distinct_vectors(every)
        counts = np.zeros(len(vectors), np.int64)
        np.add.at(counts, at, np.concatenate([found.counts, sign]))
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
        usual = ~self._at(found.a, found.b)[1]
        own = np.flatnonzero(sum_weights(weights, self.exceptions.levels) > threshold)
        kept = found if usual.all() else found.take(np.flatnonzero(usual))
        kept = Pairs(kept.a, kept.b, self._lifted(kept.levels))
        if not len(own):
            return kept
        joined = kept.with_more(self.exceptions.take(own))
        return joined.take(np.argsort(joined.numbered(self.n_b), kind="stable"))

    def levels_of(self, a: Rows, b: Rows) -> NDArray[np.uint8]:
        return self._settled(Pairs(a, b, self.inner.levels_of(a, b))).levels

    def join_sizes(self) -> Ints:
        sizes = self._widened(self.inner.join_sizes(), max(f.n_levels for f in self.fields) + 1)
        sizes[self._first, self._level : self._level + 2] = [len(r) for r in self._ranked]
        return sizes

    def draw_pairs(self, field: int, level: int, luck: Floats) -> tuple[Rows, Rows]:
        if field == self._first and 0 <= level - self._level < 2:
            ranked = self._ranked[level - self._level]
            at = ranked[(luck[:, 0] * len(ranked)).astype(np.int64)]
            return self.exceptions.a[at], self.exceptions.b[at]
        below = level - 2 * (field == self._first and level > self._level)
        a, b = self.inner.draw_pairs(field, below, luck)
        if field in (self._first, self._second):  # exceptions are not at this level
            out = self._at(a, b)[1]
            a, b = np.where(out, -1, a), np.where(out, -1, b)
        return a, b

    def find(self, ids: Any) -> Pairs:
        return self._settled(self.inner.find(ids))

    # --- what is said of them --------------------------------------------------------------------

    def ids(self, side: int, rows: Rows) -> pa.Array:
        return self.inner.ids(side, rows)

    def cells(self, side: int, rows: Sequence[int]) -> list[dict[str, str | None]]:
        return self.inner.cells(side, rows)

    def describe(self) -> Description:
        found = self.inner.describe()
        names = [self.fields[j].name for j in (self._first, self._second)]
        note = (
            f"{len(self._ranked[1]):,} pairs have {names[0]} and {names[1]} swapped, far more than "
            f"by chance, and {len(self._ranked[0]):,} half so: levels of {names[0]}."
        )
        return replace(found, notes=(*found.notes, note))


def _with_levels(field: Field, level: int, other: str) -> Field:
    """A field with two more levels, just below agreement."""

    def inserted(values: tuple[Any, ...], *more: Any) -> tuple[Any, ...]:
        return (*values[: level - 1], *more, *values[level - 1 :])

    return replace(
        field,
        labels=inserted(field.labels, f"half swapped with {other}", f"swapped with {other}"),
        m_prior=inserted(field.m_prior, 1.0, 1.0),
        u_prior=inserted(field.u_prior, 1.0, 1.0),
        covers=((level, other), (level + 1, other)),
    )


# --- which pairs are swapped ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Two:
    """Two fields, and where the values of A in one are found in B in the other."""

    first: int
    second: int
    x: Dictionary
    y: Dictionary
    x_in_y: Ints  # for each value of A in x, the code of the same in B in y; −1: none
    y_in_x: Ints

    @classmethod
    def of(cls, pairs: LocalPairs, first: int, second: int) -> _Two:
        x, y = pairs.dictionaries[first], pairs.dictionaries[second]
        return cls(first, second, x, y, _found_in(x.a, y.b), _found_in(y.a, x.b))

    def keys(self) -> tuple[Ints, Ints]:
        """Of each record of A and of B, a number that is equal for swapped pairs; −1: for none."""
        radix = len(self.x.b.values) + 1
        of_x, of_y = self.x_in_y[self.x.a.codes], self.y_in_x[self.y.a.codes]
        key_a = np.where((of_x >= 0) & (of_y >= 0), of_x * radix + of_y, -1)
        key_b = _seen(self.y.b) * radix + self.x.b.codes
        key_b = np.where((_seen(self.y.b) >= 0) & (_seen(self.x.b) >= 0), key_b, -1)
        same = _found_in(self.x.a, self.x.b)[self.x.a.codes] == of_y  # nothing is swapped
        return np.where(same, -1, key_a), key_b

    def by_chance(self) -> float:
        """Swapped pairs expected if names in one column had nothing to do with the other."""
        share = 1.0
        for own, other, code in (
            (self.x.a, self.y.b, self.x_in_y[:-1]),
            (self.y.a, self.x.b, self.y_in_x[:-1]),
        ):
            equal = own.counts[:-1][code >= 0] @ other.counts[code[code >= 0]]
            share *= float(equal) / max(
                1, int(own.counts[:-1].sum()) * int(other.counts[:-1].sum())
            )
        return share * len(self.x.a.codes) * len(self.x.b.codes)


def _found_in(own: Codes, other: Codes) -> Ints:
    """For each value, its code in another file or field; −1: it is not there, or missing."""
    code = {value: k for k, value in enumerate(other.values)}
    return np.array([*(code.get(value, -1) for value in own.values), -1], np.int64)


def _seen(codes: Codes) -> Ints:
    return np.where(codes.codes == len(codes.values), -1, codes.codes.astype(np.int64))


def _most_swapped(pairs: LocalPairs) -> _Swaps | None:
    """The two fields with most swapped pairs beyond chance, and these pairs."""
    texts = [j for j, f in enumerate(pairs.fields) if f.kind in _KINDS]
    best: tuple[float, _Two] | None = None
    for first, second in combinations(texts, 2):
        if pairs.fields[first].normalise != pairs.fields[second].normalise:
            continue
        two = _Two.of(pairs, first, second)
        n, chance = _n_joined(*two.keys()), two.by_chance()
        if n >= _FEWEST and n > _TIMES * chance and (best is None or n - chance > best[0]):
            best = n - chance, two
    return None if best is None else _list_swaps(pairs, best[1])


def _list_swaps(pairs: LocalPairs, two: _Two) -> _Swaps | None:
    """Swapped pairs and half swapped ones.

    In large files chance makes too many of those with one name only alike, or missing: a kind of
    which there are more than one a record is left out.
    """
    room = _MOST_A_RECORD * (pairs.n_a + pairs.n_b)
    both = _joined(*two.keys())  # both names equal across columns: listed in any case
    numbers: dict[bool, list[Ints]] = {True: [both[0] * pairs.n_b + both[1]], False: []}
    for this, that, code in ((two.x, two.y, two.x_in_y), (two.y, two.x, two.y_in_x)):
        # `this` name of A stands in B's column of `that`: is the other one there in its stead?
        key_a, key_b = code[this.a.codes], _seen(that.b)
        lacks_a, lacks_b = _seen(that.a) < 0, _seen(this.b) < 0
        kinds = [
            (_both(key_a, key_b, *_affixes(that.a, this.b, part)), True)
            for part in (slice(None, _ALIKE), slice(-_ALIKE, None))
        ]
        kinds.append(((np.where(lacks_a, key_a, -1), key_b), False))
        kinds.append(((np.where(lacks_a, -1, key_a), np.where(lacks_b, key_b, -1)), False))
        for keys, full in kinds:
            if _n_joined(*keys) <= room:
                a, b = _joined(*keys)
                numbers[full].append(a * pairs.n_b + b)
    none = np.zeros(0, np.int64)
    swapped = np.unique(np.concatenate([none, *numbers[True]]))
    half = np.setdiff1d(np.concatenate([none, *numbers[False]]), swapped)
    number = np.append(swapped, half)
    a, b = (number // pairs.n_b).astype(np.int32), (number % pairs.n_b).astype(np.int32)
    block_a, block_b = pairs.block_of
    kept = (block_a[a] == block_b[b]) & (block_a[a] >= 0)
    for d in (two.x, two.y):  # equal within a column: nothing is swapped
        kept &= (_found_in(d.a, d.b)[d.a.codes[a]] != d.b.codes[b]) | (_seen(d.a)[a] < 0)
    if not kept.any():
        return None
    is_full = np.arange(len(number)) < len(swapped)
    return _Swaps(two.first, two.second, a[kept], b[kept], is_full[kept])


def _affixes(own: Codes, other: Codes, part: slice) -> tuple[Ints, Ints]:
    """Of each record of A and of B, the number of the first or last letters of its name."""
    number: dict[str, int] = {}
    of_values = [
        np.array([*(number.setdefault(v[part], len(number)) for v in codes.values), -1], np.int64)
        for codes in (own, other)
    ]
    return of_values[0][own.codes], of_values[1][other.codes]


def _both(key_a: Ints, key_b: Ints, more_a: Ints, more_b: Ints) -> tuple[Ints, Ints]:
    """Keys that are equal where both keys are."""
    radix = int(max(more_a.max(initial=0), more_b.max(initial=0))) + 1
    return (
        np.where((key_a >= 0) & (more_a >= 0), key_a * radix + more_a, -1),
        np.where((key_b >= 0) & (more_b >= 0), key_b * radix + more_b, -1),
    )


def _n_joined(key_a: Ints, key_b: Ints) -> int:
    """How many pairs have the same key."""
    keys = np.sort(key_b[key_b >= 0])
    wanted = key_a[key_a >= 0]
    ends = (np.searchsorted(keys, wanted, side=side) for side in ("right", "left"))
    return int(np.subtract(*ends).sum())


def _joined(key_a: Ints, key_b: Ints) -> tuple[Ints, Ints]:
    """Rows of A and of B with the same key."""
    rows_a, rows_b = np.flatnonzero(key_a >= 0), np.flatnonzero(key_b >= 0)
    rows_b = rows_b[np.argsort(key_b[rows_b], kind="stable")]
    keys = key_b[rows_b]
    first = np.searchsorted(keys, key_a[rows_a], side="left")
    n = np.searchsorted(keys, key_a[rows_a], side="right") - first
    at = np.repeat(first - np.concatenate([[0], np.cumsum(n)[:-1]]), n) + np.arange(n.sum())
    return np.repeat(rows_a, n), rows_b[at]
