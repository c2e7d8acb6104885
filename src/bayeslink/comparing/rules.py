"""Comparisons made of rules: two values are at the level of the best rule that holds for them.

A rule says of two values whether, or how well, it holds (its grade; 0: not at all), and finds all
pairs of values for which it holds without looking at every pair. Most rules are *keys*: each value
has some, and the rule holds for values with a key in common, so that finding is a join and misses
nothing by construction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import process
from rapidfuzz.distance import OSA, Levenshtein

from bayeslink.distinct import distinct

if TYPE_CHECKING:
    from bayeslink.comparing.fields import Field

Grades = NDArray[np.uint8]
Found = tuple[NDArray[Any], NDArray[Any], Grades]  # row, column and grade, which is above 0
Finder = Callable[[int, int, int], Found | None]  # (first, last, limit): None if more than limit
Keyed = Callable[[str], Iterable[str]]


class Rule(Protocol):
    """Whether two values are alike in one respect."""

    def grades(self, x: Sequence[str], y: Sequence[str]) -> Grades:
        """Of each value of x with the one of y beside it."""
        ...

    def finder(self, x: Sequence[str], y: Sequence[str]) -> Finder:
        """Finds the pairs of x[first:last] with y above grade 0; rows are counted from first."""
        ...


@dataclass(frozen=True, slots=True)
class Ladder:
    """Rules and the level that each grade of each of them means."""

    rules: tuple[Rule, ...]
    levels: tuple[tuple[int, ...], ...]  # of grades 1, 2, … of each rule

    def levels_beside(self, x: Sequence[str], y: Sequence[str]) -> Grades:
        best = np.ones(len(x), np.uint8)
        for rule, levels in zip(self.rules, self.levels, strict=True):
            best = np.maximum(best, np.array([1, *levels], np.uint8)[rule.grades(x, y)])
        return best

    def matrix(self, x: Sequence[str], y: Sequence[str]) -> Grades:
        """Everything with everything: the definition."""
        left = [v for v in x for _ in y]
        return self.levels_beside(left, list(y) * len(x)).reshape(len(x), len(y))

    def above(self, level: int) -> Ladder:
        """Without the levels up to this one, the next being level 2."""
        kept = [
            (rule, tuple(max(1, h - level + 1) for h in levels))
            for rule, levels in zip(self.rules, self.levels, strict=True)
            if max(levels) > level
        ]
        return Ladder(tuple(rule for rule, _ in kept), tuple(levels for _, levels in kept))

    def find(self, x: Sequence[str], y: Sequence[str]) -> Finder:
        """Finds levels above 1; a pair may come several times, its best level counts."""
        finders = [
            (rule.finder(x, y), np.array([1, *levels], np.uint8))
            for rule, levels in zip(self.rules, self.levels, strict=True)
        ]

        def find(first: int, last: int, limit: int) -> Found | None:
            parts = []
            for finder, levels in finders:
                found = finder(first, last, limit)
                if found is None:
                    return None
                rows, columns, grades = found
                level = levels[grades]
                above = level > 1
                if not above.all():
                    rows, columns, level = rows[above], columns[above], level[above]
                parts.append((rows.astype(np.int32), columns.astype(np.int32), level))
            if sum(len(part[0]) for part in parts) > 2 * limit and last - first > 1:
                return None
            rows, columns, level = (np.concatenate(c) for c in zip(*parts, strict=True))
            return rows, columns, level

        return find


# --- keys -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Keys:
    """Holds for values with a key in common: of `left` in A and of `right` in B."""

    left: Keyed
    right: Keyed | None = None

    def grades(self, x: Sequence[str], y: Sequence[str]) -> Grades:
        right = self.right or self.left
        left_keys = {v: frozenset(self.left(v)) for v in set(x)}
        right_keys = {w: frozenset(right(w)) for w in set(y)}
        pairs = zip(x, y, strict=True)
        return np.array([not left_keys[v].isdisjoint(right_keys[w]) for v, w in pairs], np.uint8)

    def finder(self, x: Sequence[str], y: Sequence[str]) -> Finder:
        return key_join(x, y, self.left, self.right or self.left)


@dataclass(frozen=True, slots=True)
class Checked:
    """Holds for values with a key in common that also pass a check, pair by pair."""

    keys: Keys
    check: Callable[[Sequence[str], Sequence[str]], NDArray[np.bool_]]

    def grades(self, x: Sequence[str], y: Sequence[str]) -> Grades:
        return self.keys.grades(x, y) * self.check(x, y).astype(np.uint8)

    def finder(self, x: Sequence[str], y: Sequence[str]) -> Finder:
        join = self.keys.finder(x, y)

        def find(first: int, last: int, limit: int) -> Found | None:
            found = join(first, last, limit)
            if found is None:
                return None
            rows, columns, grades = found
            left = [x[first + r] for r in rows.tolist()]
            passed = self.check(left, [y[c] for c in columns.tolist()])
            return rows[passed], columns[passed], grades[passed]

        return find


def key_join(x: Sequence[str], y: Sequence[str], left: Keyed, right: Keyed) -> Finder:
    """Finds the pairs of values with a key in common."""
    number: dict[str, int] = {}
    keys_b = [{number.setdefault(key, len(number)) for key in right(w)} for w in y]
    sizes_b = np.array([len(keys) for keys in keys_b], np.int64)
    flat_b = np.fromiter(chain.from_iterable(keys_b), np.int64, int(sizes_b.sum()))
    order = np.argsort(flat_b, kind="stable")
    posts = np.repeat(np.arange(len(y)), sizes_b)[order]
    start = np.searchsorted(flat_b[order], np.arange(len(number) + 1))
    keys_a = [{number[key] for key in left(v) if key in number} for v in x]
    start_a = np.concatenate([[0], np.cumsum([len(keys) for keys in keys_a], dtype=np.int64)])
    flat_a = np.fromiter(chain.from_iterable(keys_a), np.int64, int(start_a[-1]))

    def find(first: int, last: int, limit: int) -> Found | None:
        keys = flat_a[start_a[first] : start_a[last]]
        rows = np.repeat(np.arange(last - first), np.diff(start_a[first : last + 1]))
        n = start[keys + 1] - start[keys]
        if n.sum() > limit and last - first > 1:
            return None
        at = np.arange(n.sum()) + np.repeat(start[keys] - np.cumsum(n) + n, n)
        pairs = distinct(np.repeat(rows, n) * np.int64(len(y)) + posts[at])
        return pairs // len(y), pairs % len(y), np.ones(len(pairs), np.uint8)

    return find


SAME = Keys(lambda value: (value,))


def one_edit() -> Checked:
    """A letter or digit wrong, missing or too many, or two neighbours swapped."""
    return Checked(Keys(_deletions), _within_one_edit)


def _deletions(value: str) -> set[str]:
    """The value with none or one of its letters left out: values one edit apart share one."""
    return {value, *(value[:i] + value[i + 1 :] for i in range(len(value)))}


def _within_one_edit(x: Sequence[str], y: Sequence[str]) -> NDArray[np.bool_]:
    if not len(x):
        return np.zeros(0, bool)
    distance = process.cpdist(x, y, scorer=OSA.distance, dtype=np.int32)
    return np.asarray(distance <= 1)


# --- edit distances -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Near:
    """Edit distance over the longer length: grade k within the first cut, 1 within the last."""

    cuts: tuple[float, ...]
    field: Field  # a levenshtein field with these cuts, whose tables these are

    def grades(self, x: Sequence[str], y: Sequence[str]) -> Grades:
        if not len(x):
            return np.zeros(0, np.uint8)
        longer = np.maximum([len(v) for v in x], [len(w) for w in y])
        d = process.cpdist(x, y, scorer=Levenshtein.distance, dtype=np.int32) / longer
        return np.sum([d <= cut for cut in self.cuts], axis=0, dtype=np.uint8)

    def finder(self, x: Sequence[str], y: Sequence[str]) -> Finder:
        from bayeslink.comparing.level_tables import text_plan

        plan = text_plan(self.field, x, y)
        if not np.array_equal(plan.rows, np.arange(len(x))):
            raise ValueError("values of A must come by length")

        def find(first: int, last: int, limit: int) -> Found | None:
            hits = plan.hits(first, last, limit)
            return hits and (hits[0], hits[1], hits[2] - np.uint8(1))

        return find


def near(*cuts: float) -> Near:
    from bayeslink.comparing.fields import levenshtein

    return Near(cuts, replace(levenshtein("value", cuts=cuts), normalise=()))
