"""Titles, products, memos: what the words and letter groups of two texts say, rare ones most.

The likeness of two texts is the mean of two cosines, of their words and of their groups of three
letters, each weighted by how rare it is in both files (TF-IDF). Vectors are rounded to whole
numbers, so that a likeness is the same in whichever order it is added up. Beside it stand codes
(model numbers, references), and texts of which one is cut off or contained in the other.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayeslink.comparing.rules import Checked, Finder, Found, Grades, Keys, Ladder, Rule
from bayeslink.distinct import distinct

_LENGTH = 4096  # of a vector, in whole numbers
_LETTERS = 256  # of a text whose groups are looked at
_CODE = re.compile(r"(?=.*\d)[^\W_]{4,}\Z|(?=.*\d)(?=.*[^\W\d])[^\W_]{3,}\Z")
_RARE = 0.005  # share of values that have a code, at most
_PREFIX = 5  # letters that a cut-off text, or code, must have
_WORD = re.compile(r"[^\W_]+")


def words_of(text: str) -> list[str]:
    return _WORD.findall(text)


def plain_words(text: str) -> str:
    """The text without punctuation."""
    return " ".join(words_of(text))


def features_of(text: str) -> set[str]:
    """Words, and groups of three letters, which begin with a mark."""
    words = words_of(text)
    spaced = f" {' '.join(words)} "[:_LETTERS]
    return {*words, *("\x1f" + spaced[i : i + 3] for i in range(len(spaced) - 2))}


def codes_of(text: str) -> set[str]:
    """Model numbers and the like: words with a digit in them, hyphens and dots left out."""
    bare = (re.sub(r"[-._]", "", word).strip("()[],;:/'\"") for word in text.split())
    return {code for code in bare if _CODE.match(code)}


# --- likeness -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rarity:
    """How many values, of both files together, have each feature."""

    times: Counter[str]
    n_values: int

    @staticmethod
    def of(*sides: Sequence[str]) -> Rarity:
        times: Counter[str] = Counter()
        for values in sides:
            for value in values:
                times.update(features_of(value))
        return Rarity(times, sum(map(len, sides)))

    def weight(self, feature: str) -> float:
        return math.log(1 + self.n_values / self.times[feature])

    @cached_property
    def number(self) -> dict[str, int]:
        """Features from the rarest."""
        ordered = sorted(self.times, key=lambda feature: (self.times[feature], feature))
        return {feature: k for k, feature in enumerate(ordered)}

    def vector(self, value: str) -> dict[int, int]:
        """Whole numbers by number of feature, words and letter groups of equal length."""
        parts: tuple[dict[str, float], dict[str, float]] = ({}, {})
        for feature in features_of(value):
            parts[feature[0] == "\x1f"][feature] = self.weight(feature)
        shared = sum(1 for part in parts if part)
        out = {}
        for part in parts:
            norm = math.sqrt(shared * sum(w * w for w in part.values()))
            for feature, w in part.items():
                if whole := round(_LENGTH * w / norm):
                    out[self.number[feature]] = whole
        return out


@dataclass(frozen=True, slots=True)
class _Vectors:
    start: NDArray[np.int64]
    features: NDArray[np.int32]
    values: NDArray[np.int32]

    @staticmethod
    def of(values: Iterable[str], rarity: Rarity) -> _Vectors:
        start, features, numbers = [0], list[int](), list[int]()
        for value in values:
            vector = sorted(rarity.vector(value).items())
            features.extend(k for k, _ in vector)
            numbers.extend(n for _, n in vector)
            start.append(len(features))
        return _Vectors(
            np.array(start, np.int64), np.array(features, np.int32), np.array(numbers, np.int32)
        )


@dataclass(frozen=True)
class Alike:
    """Likeness of texts: grade k from the first cut on, 1 from the last.

    Where both have codes of their own the grades go on from there, k + 1 to 2k.
    """

    rarity: Rarity
    cuts: tuple[float, ...]  # falling
    coded: Callable[[str], Iterable[str]] = lambda text: ()

    def _least(self, cut: float) -> int:
        return math.ceil(cut * _LENGTH**2 - 1e-6)

    def _grades(self, scores: NDArray[Any], both: NDArray[np.bool_]) -> Grades:
        grades = np.sum([scores >= self._least(cut) for cut in self.cuts], axis=0, dtype=np.uint8)
        return grades + np.uint8(len(self.cuts)) * ((grades > 0) & both)

    def _have_codes(self, values: Iterable[str]) -> NDArray[np.bool_]:
        return np.array([any(True for _ in self.coded(value)) for value in values], bool)

    def grades(self, x: Sequence[str], y: Sequence[str]) -> Grades:
        from bayeslink.kernels.inner_products import products

        sides = []
        for values in (x, y):
            distinct = {value: k for k, value in enumerate(dict.fromkeys(values))}
            vectors = _Vectors.of(distinct, self.rarity)
            at = np.array([distinct[value] for value in values], np.int32)
            sides.append((vectors, at, self._have_codes(distinct)[at]))
        (vx, at_x, coded_x), (vy, at_y, coded_y) = sides
        scores = products(
            vx.start, vx.features, vx.values, at_x, vy.start, vy.features, vy.values, at_y
        )
        return self._grades(scores, coded_x & coded_y)

    def finder(self, x: Sequence[str], y: Sequence[str]) -> Finder:
        find = self.score_finder(x, y, self.cuts[-1])
        coded_x, coded_y = self._have_codes(x), self._have_codes(y)

        def graded(first: int, last: int, limit: int) -> Found | None:
            rows, columns, scores = find(first, last, limit)
            if len(rows) > limit and last - first > 1:
                return None
            return rows, columns, self._grades(scores, coded_x[first + rows] & coded_y[columns])

        return graded

    def score_finder(
        self, x: Sequence[str], y: Sequence[str], cut: float
    ) -> Callable[[int, int, int], tuple[NDArray[Any], NDArray[Any], NDArray[np.int64]]]:
        """Finds the pairs from a cut on, with their likeness in whole numbers."""
        from bayeslink.kernels.inner_products import close_vectors

        close_vectors.compile()
        vx, vy = _Vectors.of(x, self.rarity), _Vectors.of(y, self.rarity)
        of = np.repeat(np.arange(len(y)), np.diff(vy.start))
        squares = vy.values.astype(np.float64) ** 2
        whole = np.bincount(of, squares, minlength=len(y))
        gone = np.cumsum(squares) - (np.cumsum(whole) - whole)[of]  # up to and with each feature
        tails = np.sqrt(np.maximum(whole[of] - gone, 0)) * (1 + 1e-9) + 1e-3
        order = np.lexsort((of, vy.features))
        posts, post_values = of[order].astype(np.int32), vy.values[order]
        n_features = len(self.rarity.number)
        post_start = np.searchsorted(vy.features[order], np.arange(n_features + 1))
        longest = math.sqrt(whole.max(initial=0))
        least = max(1, self._least(cut))

        def find(first: int, last: int, limit: int) -> Any:
            return close_vectors(
                vx.start, vx.features, vx.values, first, last, vy.start, vy.features, vy.values,
                post_start, posts, post_values, tails[order], least, longest, limit,
            )  # fmt: skip

        return find


def scored(
    x: Sequence[str], y: Sequence[str], rarity: Rarity, cut: float
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float64]]:
    """Row, column and likeness of the pairs that are alike from a cut on."""
    find = Alike(rarity, (cut,)).score_finder(x, y, cut)
    rows, columns, scores = find(0, len(x), len(x) * len(y))
    return rows, columns, scores / _LENGTH**2


# --- cut off, or contained ------------------------------------------------------------------------


class CutOff:
    """One text is the beginning of the other."""

    def grades(self, x: Sequence[str], y: Sequence[str]) -> Grades:
        def holds(v: str, w: str) -> bool:
            short, long = sorted((plain_words(v), plain_words(w)), key=len)
            return len(short) >= _PREFIX and long.startswith(short)

        return np.array([holds(v, w) for v, w in zip(x, y, strict=True)], np.uint8)

    def finder(self, x: Sequence[str], y: Sequence[str]) -> Finder:
        forward = _beginnings(x, y)
        rows, columns = _beginnings(y, x)
        pairs = distinct(
            np.append(forward[0], columns) * np.int64(len(y)) + np.append(forward[1], rows)
        )

        def find(first: int, last: int, limit: int) -> Found:
            low, high = np.searchsorted(pairs, [first * len(y), last * len(y)])
            here = pairs[low:high]
            return here // len(y) - first, here % len(y), np.ones(len(here), np.uint8)

        return find


def _beginnings(short: Sequence[str], long: Sequence[str]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Which texts are the beginning of which."""
    plain = [plain_words(value) for value in long]
    order = sorted(range(len(plain)), key=plain.__getitem__)
    ranked = [plain[k] for k in order]
    starts = [plain_words(value) for value in short]
    bounds = np.array(
        [
            (bisect_left(ranked, s), bisect_left(ranked, s + "\U0010ffff"))
            if len(s) >= _PREFIX
            else (0, 0)
            for s in starts
        ],
        np.int64,
    ).reshape(-1, 2)
    n = bounds[:, 1] - bounds[:, 0]
    at = np.arange(n.sum()) + np.repeat(bounds[:, 0] - np.cumsum(n) + n, n)
    return np.repeat(np.arange(len(short)), n), np.array(order, np.int64)[at]


def contained(rarity: Rarity) -> Rule:
    """All words of one text, two at least, are among those of the other."""

    def rarest(text: str) -> str:
        return min(words_of(text), key=lambda w: (rarity.times[w], w), default="")

    def left(text: str) -> list[str]:
        return ["s" + rarest(text), *("l" + word for word in words_of(text))]

    def right(text: str) -> list[str]:
        return ["l" + rarest(text), *("s" + word for word in words_of(text))]

    def check(x: Sequence[str], y: Sequence[str]) -> NDArray[np.bool_]:
        sets = {value: set(words_of(value)) for value in {*x, *y}}
        return np.array(
            [
                min(len(sets[v]), len(sets[w])) > 1 and (sets[v] <= sets[w] or sets[w] <= sets[v])
                for v, w in zip(x, y, strict=True)
            ],
            bool,
        )

    return Checked(Keys(left, right), check)


# --- all together ---------------------------------------------------------------------------------


def rare_codes(*sides: Sequence[str]) -> Callable[[str], set[str]]:
    """The codes of a text that few others have."""
    times = Counter(code for values in sides for value in values for code in codes_of(value))
    most = max(4, _RARE * sum(map(len, sides)))
    return lambda text: {code for code in codes_of(text) if times[code] <= most}


def same_code(codes: Callable[[str], set[str]]) -> Rule:
    """A code of one text is one of the other's, or its beginning."""

    def begin(text: str) -> Iterable[str]:
        return (code[:k] for code in codes(text) for k in range(_PREFIX, len(code)))

    def left(text: str) -> list[str]:
        return [*("=" + code for code in codes(text)), *("<" + part for part in begin(text))]

    def right(text: str) -> list[str]:
        own = codes(text)
        return [*("=" + c for c in own), *("<" + c for c in own), *("=" + p for p in begin(text))]

    return Keys(left, right)


_SAME_WORDS = Keys(lambda text: (plain_words(text),))


def text_ladder(
    cuts: Sequence[float], rarity: Rarity, codes: Callable[[str], set[str]] | None
) -> tuple[Ladder, list[str]]:
    """The rules of a text field and what its levels mean, worst first."""
    k = len(cuts)
    alike = [f"alike ≥ {cut:g}" for cut in reversed(cuts)]
    if codes is None:
        labels = ["different", *alike, "one within the other", "equal"]
        rules: tuple[Rule, ...] = (
            Alike(rarity, tuple(cuts)), CutOff(), contained(rarity), _SAME_WORDS,
        )  # fmt: skip
        return Ladder(rules, (tuple(range(2, k + 2)), (k + 2,), (k + 2,), (k + 3,))), labels
    better = (k + 1) // 2  # of the grades, alike enough for two levels of texts with other codes
    labels = [
        "different", "somewhat alike, other codes", "alike, other codes", *alike,
        "one within the other", "same code", "equal",
    ]  # fmt: skip
    other = [2 + (g >= k - better) for g in range(k)]
    top = k + 4
    rules = (
        Alike(rarity, tuple(cuts), codes), CutOff(), contained(rarity), same_code(codes),
        _SAME_WORDS,
    )  # fmt: skip
    return Ladder(
        rules, ((*range(4, k + 4), *other), (top,), (top,), (top + 1,), (top + 2,))
    ), labels
