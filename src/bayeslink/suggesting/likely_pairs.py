"""Rows of A and of B that are likely the same person, told by rare values that they share.

They say what no name of a column does: whether two columns agree where others do, and which value
of one goes with which of the other. To judge two columns, only the others are looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from bayeslink.suggesting.column_names import similarity
from bayeslink.suggesting.profiles import Profile

ENOUGH = 20  # pairs of rows to judge by
_SURE = 1.0  # how far the weight of what two rows share lies above the logarithm of the records
_MOST = 12  # pairs of columns that are looked at for shared values
_SAME = 0.85  # likeness of names of the same thing
_SHARED = 0.02  # of the values, that the other file has, too
_NEARER = 0.5  # times as far apart as dates of other pairs
_COMMON = 0.6  # chance from which an agreement says nothing
_AT_MOST = 500_000  # pairs of rows from one search

Ints = NDArray[np.int64]
Key = tuple[str, str]  # a column of A and one of B


@dataclass(frozen=True, slots=True)
class Agreement:
    """Among likely pairs that have a value in both columns, the share that agree."""

    n: int
    share: float
    chance: float  # that two different records agree

    @property
    def together(self) -> bool:
        """Whether they agree far more often than chance has it."""
        return self.n >= ENOUGH and self.share >= max(0.3, 2 * self.chance)

    @property
    def by_chance(self) -> bool:
        """Whether they agree no more often than chance has it, give or take."""
        luck = 3 * (self.chance * (1 - self.chance) / max(1, self.n)) ** 0.5
        return self.n >= 3 * ENOUGH and self.share <= self.chance + luck

    @property
    def apart(self) -> bool:
        """Whether they hardly ever agree."""
        return self.n >= ENOUGH and self.share < 0.1


class LikelyPairs:
    """Likely pairs of the sampled rows, by the columns that may hold the same thing."""

    def __init__(
        self, a: Sequence[Profile], b: Sequence[Profile], shared: dict[Key, float]
    ) -> None:
        numbers: dict[str, int] = {}
        self._codes: list[dict[str, Ints]] = [
            {
                p.name: np.array(
                    [-1 if k is None else numbers.setdefault(k, len(numbers)) for k in p.keys],
                    np.int64,
                )
                for p in side
            }
            for side in (a, b)
        ]
        self._columns = [{p.name: {*p.columns} for p in side} for side in (a, b)]
        self._size = len(numbers)
        self.n = [len(side[0].keys) if side else 0 for side in (a, b)]
        self._least = float(np.log(max(*self.n, 2)) + _SURE)
        self._chances = {key: self._chance(key) for key, s in shared.items() if s >= _SHARED}
        useful = {
            key: shared[key] * -np.log(chance)
            for key, chance in self._chances.items()
            if chance < _COMMON
        }
        self.keys = self._ranked(useful)
        self._weights = np.array([-np.log(self._chances[key]) for key in self.keys])
        self._rows_a, self._rows_b = self._found()
        self._agree = np.array(
            [self._agreeing(key, self._rows_a, self._rows_b) for key in self.keys], bool
        ).reshape(len(self.keys), len(self._rows_a))
        likely = self._weights @ self._agree >= self._least
        self._rows_a, self._rows_b = self._rows_a[likely], self._rows_b[likely]
        self._agree = self._agree[:, likely]
        self._known: dict[tuple[int, ...], tuple[Ints, Ints]] = {}

    def rows(self, x: Profile, y: Profile) -> tuple[Ints, Ints]:
        """Likely pairs as told by all columns but these two: each row with its best partner."""
        others = tuple(k for k, key in enumerate(self.keys) if not self._touches(key, x, y))
        if others not in self._known:
            self._known[others] = self._best(others)
        return self._known[others]

    def _best(self, others: tuple[int, ...]) -> tuple[Ints, Ints]:
        """The rows that are each other's best partners by some of the pairs of columns."""
        scores = self._weights[[*others]] @ self._agree[[*others]]
        kept = np.flatnonzero(scores >= self._least)
        rows_a, rows_b, scores = self._rows_a[kept], self._rows_b[kept], scores[kept]
        mutual = np.ones(len(scores), bool)
        for rows in (rows_a, rows_b):
            best = np.zeros(max(self.n))
            np.maximum.at(best, rows, scores)
            mutual &= scores >= best[rows]
        rows_a, rows_b = rows_a[mutual], rows_b[mutual]
        times_a, times_b = (np.bincount(rows, minlength=1) for rows in (rows_a, rows_b))
        alone = (times_a[rows_a] == 1) & (times_b[rows_b] == 1)  # none where two are as good
        return rows_a[alone], rows_b[alone]

    def agreement(self, x: Profile, y: Profile) -> Agreement:
        """How often likely pairs agree in these two columns."""
        rows_a, rows_b = self.rows(x, y)
        key = (x.name, y.name)
        p, q = self._codes[0][x.name][rows_a], self._codes[1][y.name][rows_b]
        both = (p >= 0) & (q >= 0)
        n = int(both.sum())
        share = float((p == q)[both].mean()) if n else 0.0
        unknown = n < ENOUGH or not share  # and it makes no difference
        return Agreement(n, share, 1.0 if unknown else self._chances.get(key) or self._chance(key))

    def nearer(self, x: Profile, y: Profile) -> bool:
        """Whether dates of likely pairs are nearer each other than those of other pairs."""
        p, q = (
            np.array([side.keys[row] or "NaT" for row in rows.tolist()], "M8[D]")
            for side, rows in zip((x, y), self.rows(x, y), strict=True)
        )
        own, others = (np.abs((p - r) / np.timedelta64(1, "D")) for r in (q, np.roll(q, 1)))
        return bool(np.nanmedian(own) < _NEARER * np.nanmedian(others))

    def _touches(self, key: Key, x: Profile, y: Profile) -> bool:
        own = (self._columns[0][key[0]], self._columns[1][key[1]])
        return bool(own[0] & {*x.columns} or own[1] & {*y.columns})

    def _ranked(self, useful: dict[Key, float]) -> list[Key]:
        """The pairs of columns that say most, names of one thing first, none more than twice."""
        kept: list[Key] = []
        for key in sorted(useful, key=lambda k: (similarity(*k) < _SAME, -useful[k], k)):
            if all(sum(key[s] == other[s] for other in kept) < 2 for s in (0, 1)):
                kept.append(key)
        return kept[:_MOST]

    def _chance(self, key: Key) -> float:
        """That a record of A and one of B have the same value."""
        p, q = self._codes[0][key[0]], self._codes[1][key[1]]
        p, q = p[p >= 0], q[q >= 0]
        if not len(p) or not len(q):
            return 1.0
        counts = np.bincount(p, minlength=self._size) @ np.bincount(q, minlength=self._size)
        return max(float(counts), 1.0) / len(p) / len(q)

    def _agreeing(self, key: Key, rows_a: Ints, rows_b: Ints) -> NDArray[np.bool_]:
        p, q = self._codes[0][key[0]][rows_a], self._codes[1][key[1]][rows_b]
        agree: NDArray[np.bool_] = (p >= 0) & (p == q)
        return agree

    def _found(self) -> tuple[Ints, Ints]:
        """Pairs of rows that share the values of two columns, where few do so by chance."""
        n_a, n_b = self.n
        found = [np.zeros(0, np.int64)]
        for x, y in combinations(self.keys, 2):
            if x[0] == y[0] or x[1] == y[1]:
                continue
            if self._chances[x] * self._chances[y] * n_a * n_b > 5 * max(n_a, n_b):
                continue
            a, b = (self._together(side, x[side], y[side]) for side in (0, 1))
            rows_a, rows_b = _joined(a, b)
            found.append(rows_a * n_b + rows_b)
        pairs = np.unique(np.concatenate(found))
        return pairs // max(n_b, 1), pairs % max(n_b, 1)

    def _together(self, side: int, x: str, y: str) -> Ints:
        p, q = self._codes[side][x], self._codes[side][y]
        return np.where((p >= 0) & (q >= 0), p * self._size + q, -1)


def _joined(a: Ints, b: Ints) -> tuple[Ints, Ints]:
    """Rows of a and of b with equal values, negative ones aside."""
    order = np.argsort(b, kind="stable")
    rows = np.flatnonzero(a >= 0)
    first = np.searchsorted(b[order], a[rows], "left")
    n = np.searchsorted(b[order], a[rows], "right") - first
    rows, first, n = (x[np.cumsum(n) <= _AT_MOST] for x in (rows, first, n))
    at = np.arange(n.sum()) + np.repeat(first - (np.cumsum(n) - n), n)
    return np.repeat(rows, n), order[at]
