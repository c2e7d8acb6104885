"""Which pairs have two names in each other's column: a rule, and all the pairs it holds of.

Swapped: one name is equal across columns, and the other begins or ends alike; half swapped: one is
equal across columns, and the other missing. Where a name is equal within its own column, nothing is
swapped. The rule holds of (a, b) where it holds of (b, a), so one file is searched as two, and each
pair is kept once. Which two fields these are follows from the values: pairs with both names
swapped must be far more frequent than chance would have it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from bayeslink.comparing.dictionaries import Codes, Dictionary
from bayeslink.distinct import distinct
from bayeslink.engines.blocking_key import finer
from bayeslink.engines.local import LocalPairs
from bayeslink.pairs.source import Ints

HALF, SWAPPED = 1, 2
_KINDS = (
    "exact",
    "levenshtein",
    "damerau_levenshtein",
    "jaro_winkler",
    "name",
)  # whose values are texts
_FEWEST, _TIMES = 5, 3.0  # swapped pairs, and times as many as by chance, that make it a level
_ALIKE = 3  # letters at the beginning or end of the other name that are the same
_MOST = 100_000_000  # pairs that are gone through; beyond, the most frequent ways are no swaps
_AT_A_TIME = 1_000_000
# What the other name may be like: alike at the beginning, at the end, missing in A, only in B.
_BEGINS, _ENDS, _LACKS_A, _LACKS_B = range(4)

Rows = NDArray[np.int32]
Flags = NDArray[np.bool_]
Listed = tuple[Rows, Rows, NDArray[np.uint8]]  # rows of A, of B, and what the pairs are
Part = Callable[[], Listed]


@dataclass(frozen=True, slots=True)
class _Way:
    """A name of A in one column ("this") that stands in B's column of the other ("that")."""

    this: Dictionary
    that: Dictionary
    across: Ints  # of each value of A in this, the code of the same in B in that; −1: none
    within: Ints  # the same in this
    letters: tuple[tuple[Ints, Ints], ...] = ()  # first and last of the other name, numbered

    @classmethod
    def of(cls, this: Dictionary, that: Dictionary) -> _Way:
        return cls(this, that, _found_in(this.a, that.b), _found_in(this.a, this.b))

    def with_letters(self) -> _Way:
        parts = slice(None, _ALIKE), slice(-_ALIKE, None)
        letters = (_numbered_letters(self.that.a, self.this.b, part) for part in parts)
        return replace(self, letters=tuple(letters))

    def crosses(self, a: Rows, b: Rows) -> Flags:
        """Whether this name of A is that of B."""
        code = self.across[self.this.a.codes[a]]
        return np.asarray((code >= 0) & (code == self.that.b.codes[b]))

    def same(self, a: Rows, b: Rows) -> Flags:
        """Whether this name is the same in both."""
        code = self.within[self.this.a.codes[a]]
        return np.asarray((code >= 0) & (code == self.this.b.codes[b]))

    def holds(self, kind: int, a: Rows, b: Rows) -> Flags:
        """Whether the other name is like that, of pairs that cross."""
        if kind == _LACKS_A:
            return _lacks(self.that.a, a)
        if kind == _LACKS_B:
            return ~_lacks(self.that.a, a) & _lacks(self.this.b, b)
        number = self.letters[kind][0][self.that.a.codes[a]]
        return np.asarray((number >= 0) & (number == self.letters[kind][1][self.this.b.codes[b]]))

    def keys(self, kind: int) -> tuple[Ints, Ints]:
        """Numbers of records of A and of B, equal where it crosses and holds; −1: nowhere."""
        key_a, key_b = self.across[self.this.a.codes], _seen(self.that.b)
        lacks_a, lacks_b = _seen(self.that.a) < 0, _seen(self.this.b) < 0
        if kind == _LACKS_A:
            return np.where(lacks_a, key_a, -1), key_b
        if kind == _LACKS_B:
            return np.where(lacks_a, -1, key_a), np.where(lacks_b, key_b, -1)
        of_a, of_b = self.letters[kind]
        return _both(key_a, key_b, of_a[self.that.a.codes], of_b[self.this.b.codes])


@dataclass(frozen=True, slots=True)
class Swaps:
    """The rule for two fields of a source, and the pairs in scope that it holds of."""

    first: int
    second: int
    ways: tuple[_Way, _Way]
    kinds: tuple[tuple[int, int], ...]  # of each way that count, and what the other name is like
    most: int  # pairs there are at most; in one file twice as many
    _block_of: tuple[Ints, Ints]
    one_file: bool

    @classmethod
    def of(cls, pairs: LocalPairs) -> Swaps | None:
        """Of the two fields with most swapped pairs beyond chance; None: of no two."""
        texts = [j for j, f in enumerate(pairs.fields) if f.kind in _KINDS]
        best: tuple[float, Swaps] | None = None
        for first, second in combinations(texts, 2):
            if pairs.fields[first].normalise != pairs.fields[second].normalise:
                continue
            x, y = pairs.dictionaries[first], pairs.dictionaries[second]
            ways = _Way.of(x, y), _Way.of(y, x)
            found = cls(first, second, ways, (), 0, pairs.block_of, pairs.one_file)
            n, chance = len(_Join.of(*found._both_names())), found._by_chance()
            if pairs.one_file:  # each pair both ways
                n, chance = n // 2, chance / 2
            if n >= _FEWEST and n > _TIMES * chance and (best is None or n - chance > best[0]):
                best = n - chance, found
        return None if best is None else best[1]._with_kinds()

    def within(self, groups: Ints) -> Swaps:
        """The same rule for the pairs of one file within groups of records, −1 of those in none."""
        block = finer(self._block_of[0], groups)
        return replace(self, _block_of=(block, block))

    def _with_kinds(self) -> Swaps:
        """With the kinds that are not too many: both names equal across columns in any case.

        In one file the kinds that are each other's mirror image stand or fall together.
        """
        ways = self.ways[0].with_letters(), self.ways[1].with_letters()
        kinds = [(way, kind) for way in range(2) for kind in range(4)]
        together = [[k] for k in kinds]
        if self.one_file:
            lacks = [k for k in kinds if k[1] in (_LACKS_A, _LACKS_B)]
            together = [[k for k in kinds if k[1] == alike] for alike in (_BEGINS, _ENDS)] + [lacks]
        n = {(way, kind): len(_Join.of(*ways[way].keys(kind))) for way, kind in kinds}
        total, kept = len(_Join.of(*self._both_names())), []
        for size, some in sorted((sum(n[k] for k in some), some) for some in together):
            if total + size <= _MOST:
                total += size
                kept += some
        return replace(self, ways=ways, kinds=tuple(sorted(kept)), most=total)

    def of_pairs(self, a: Rows, b: Rows) -> NDArray[np.uint8]:
        """SWAPPED, HALF or 0 of each pair."""
        out = np.empty(len(a), np.uint8)
        for first in range(0, len(a), _AT_A_TIME):  # of very many, what is needed by the way
            some = slice(first, first + _AT_A_TIME)
            out[some] = self._of_some(a[some], b[some])
        return out

    def _of_some(self, a: Rows, b: Rows) -> NDArray[np.uint8]:
        crosses = [way.crosses(a, b) for way in self.ways]
        swapped, half = crosses[0] & crosses[1], np.zeros(len(a), bool)
        for way, kind in self.kinds:
            at = np.flatnonzero(crosses[way])
            told = half if kind in (_LACKS_A, _LACKS_B) else swapped
            told[at] |= self.ways[way].holds(kind, a[at], b[at])
        out = np.where(swapped, SWAPPED, np.where(half, HALF, 0)).astype(np.uint8)
        at = np.flatnonzero(out)
        for each in self.ways:
            out[at[each.same(a[at], b[at])]] = 0
        return out

    def in_parts(self, rows: Ints) -> Sequence[Part]:
        """All pairs of these records of A that it holds of, some at a time."""
        joins = [_Join.of(*self._both_names())]
        joins += [_Join.of(*self.ways[way].keys(kind)) for way, kind in self.kinds]
        n = sum(join.n[rows].sum() for join in joins)
        parts = np.array_split(rows, max(1, -(-int(n) // _AT_A_TIME)))
        chosen = np.zeros(len(self._block_of[0]), bool)
        chosen[rows] = self.one_file
        return [partial(self._listed, joins, chosen, part) for part in parts]

    def _listed(self, joins: Sequence[_Join], chosen: Flags, rows: Ints) -> Listed:
        """Pairs of some records of A, by row of A and then of B, and what they are.

        In one file, a pair of two chosen records comes from the lower row.
        """
        n_b = len(self._block_of[1])
        number = distinct(np.concatenate([join.numbers(rows, n_b) for join in joins]))
        a, b = (number // n_b).astype(np.int32), (number % n_b).astype(np.int32)
        block_a, block_b = self._block_of
        if self.one_file:
            once = np.flatnonzero((a < b) | ~chosen[b])
            a, b = np.minimum(a[once], b[once]), np.maximum(a[once], b[once])
        kind = self.of_pairs(a, b)
        kept = np.flatnonzero((kind > 0) & (block_a[a] == block_b[b]) & (block_a[a] >= 0))
        return a[kept], b[kept], kind[kept]

    def _both_names(self) -> tuple[Ints, Ints]:
        """Keys of records of A and of B that are equal where both names are, across columns."""
        one, other = self.ways
        x, y = one.this, one.that
        key_a, key_b = _both(one.across[x.a.codes], _seen(y.b), other.across[y.a.codes], _seen(x.b))
        alike = one.within[x.a.codes] == other.across[y.a.codes]  # nothing is swapped
        return np.where(alike, -1, key_a), key_b

    def _by_chance(self) -> float:
        """Swapped pairs expected if names in one column had nothing to do with the other."""
        share = 1.0
        for way in self.ways:
            own, other, code = way.this.a.counts[:-1], way.that.b.counts, way.across[:-1]
            equal = own[code >= 0] @ other[code[code >= 0]]
            share *= float(equal) / max(1, int(own.sum()) * int(other[:-1].sum()))
        return share * len(self._block_of[0]) * len(self._block_of[1])


@dataclass(frozen=True, slots=True)
class _Join:
    """The records of B with the key of each of A: so many of `rows_b`, from the first on."""

    first: Rows
    n: Rows
    rows_b: Rows

    @classmethod
    def of(cls, key_a: Ints, key_b: Ints) -> _Join:
        keyed = np.flatnonzero(key_a >= 0)
        rows = np.flatnonzero(key_b >= 0) if len(keyed) else keyed
        rows = rows[np.argsort(key_b[rows], kind="stable")]
        start = np.flatnonzero(np.diff(key_b[rows], prepend=-1))
        keys, n = np.append(key_b[rows[start]], -1), np.diff(start, append=len(rows))
        at = np.searchsorted(keys[:-1], key_a[keyed])
        there = np.flatnonzero(keys[at] == key_a[keyed])
        keyed, at = keyed[there], at[there]
        ends = np.zeros((2, len(key_a)), np.int32)
        ends[:, keyed] = start[at], n[at]
        return cls(ends[0], ends[1], rows.astype(np.int32))

    def __len__(self) -> int:
        return int(self.n.sum())

    def numbers(self, rows: Ints, n_b: int) -> Ints:
        """Numbers of the pairs of some records of A."""
        n = self.n[rows]
        before = np.concatenate([[0], np.cumsum(n)[:-1]])
        at = np.repeat(self.first[rows] - before, n) + np.arange(n.sum())
        return np.asarray(np.repeat(rows.astype(np.int64), n) * n_b + self.rows_b[at])


def _found_in(own: Codes, other: Codes) -> Ints:
    """For each value, its code in another file or field; −1: it is not there, or missing."""
    code = {value: k for k, value in enumerate(other.values)}
    return np.array([*(code.get(value, -1) for value in own.values), -1], np.int64)


def _seen(codes: Codes) -> Ints:
    """The code of each record's value; −1: it is missing."""
    return np.where(codes.codes == len(codes.values), -1, codes.codes.astype(np.int64))


def _lacks(codes: Codes, rows: Rows) -> Flags:
    return np.asarray(codes.codes[rows] == len(codes.values))


def _numbered_letters(own: Codes, other: Codes, part: slice) -> tuple[Ints, Ints]:
    """Of each value of A and of B, the number of its first or last letters; −1: it is missing."""
    number: dict[str, int] = {}
    of_a, of_b = (
        np.array([*(number.setdefault(v[part], len(number)) for v in codes.values), -1], np.int64)
        for codes in (own, other)
    )
    return of_a, of_b


def _both(key_a: Ints, key_b: Ints, more_a: Ints, more_b: Ints) -> tuple[Ints, Ints]:
    """Keys that are equal where both keys are."""
    radix = int(max(more_a.max(initial=0), more_b.max(initial=0))) + 1
    return (
        np.where((key_a >= 0) & (more_a >= 0), key_a * radix + more_a, -1),
        np.where((key_b >= 0) & (more_b >= 0), key_b * radix + more_b, -1),
    )
