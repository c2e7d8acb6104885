"""m by the number of wrong fields: the fields of a link need not go wrong independently.

Of a link with a fields missing, e of the others wrong (not in full agreement):

    m(γ) = h[a, e] · Π_{wrong j} r_j / R(seen, e) · Π_{seen j} P(level of j | wrong or right)

h says how many fields are wrong and has a law of its own: records may be wrong in one field and
hardly ever in two, or either clean or wrong throughout. r says which ones: given their number, a
conditional Bernoulli law, whose constant R is an elementary symmetric polynomial of the r seen.
Independent fields are the special case in which h is the law of a sum of independent errors.

A level may cover another field ("swapped with family"): one error that is seen in two fields. The
other is then neither missing nor wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray

from bayeslink.comparing.fields import Field
from bayeslink.errors import SettingsError
from bayeslink.model.weights import Priors
from bayeslink.pairs.source import Floats, Ints
from bayeslink.pairs.vectors import distinct_vectors

PRIOR_PAIRS = 1.0  # what the prior of h is worth: half as if independent, half flat
_SPREAD = 1.0  # standard deviation of log r around its mean, before any link is seen
_LEVELS = 0.2  # of the fields' own priors, for levels given that a field is wrong


@dataclass(frozen=True, slots=True)
class ErrorPriors:
    """Priors of the law, and which levels are right."""

    right_from: Ints  # first level of each field that is full agreement
    alpha_h: Floats  # [missing, wrong]; 0 where there is no such number
    alpha_level: Floats  # [field, level], given wrong or given right
    centre: float  # of log r
    spread: float = _SPREAD
    covered: tuple[tuple[int, int, int], ...] = ()  # field, its level, the field covered by it
    tie: float = 0.0  # pairs that a row of h is worth which follows from row 0 (`gaps`),
    thinning: Floats | None = None  # by these chances,
    usual: Floats | None = None  # and row 0 as it is in the fit

    @classmethod
    def of(
        cls, fields: Sequence[Field], wrong_fields: Sequence[Sequence[float]] | None = None
    ) -> ErrorPriors:
        """From the fields' priors; `wrong_fields` are links seen before, [missing][wrong]."""
        priors, n = Priors.of(fields), len(fields)
        right_from = np.array([f.n_levels - len(f.bands) for f in fields])
        right = np.arange(priors.used.shape[1]) >= right_from[:, None]
        of_wrong = 1 - (priors.alpha_m * right).sum(1) / priors.alpha_m.sum(1)
        alpha_h, wrong = np.zeros((n + 1, n + 1)), float(of_wrong.mean())
        for a in range(n + 1):
            e = np.arange(n - a + 1)
            law = np.array([comb(n - a, k) for k in e]) * wrong**e * (1 - wrong) ** (n - a - e)
            alpha_h[a, : n - a + 1] = PRIOR_PAIRS * (law + 1 / len(e)) / 2
        alpha_h += _seen_before(wrong_fields, n)
        alpha_level = np.where(priors.used, _LEVELS * priors.alpha_m, 0.0)
        place = {f.name: j for j, f in enumerate(fields)}
        return cls(
            right_from,
            alpha_h,
            alpha_level,
            float(np.log(of_wrong / (1 - of_wrong)).mean()),
            covered=tuple(
                (j, level, place[other]) for j, f in enumerate(fields) for level, other in f.covers
            ),
        )

    @property
    def right(self) -> NDArray[np.bool_]:
        return np.arange(self.alpha_level.shape[1]) >= self.right_from[:, None]

    @property
    def loose(self) -> Floats:
        """Dirichlet parameters of the rows of h but for what ties them to row 0."""
        rows = np.arange(len(self.alpha_h))[:, None]
        return np.where(rows > 0, self.alpha_h / (1 + self.tie), self.alpha_h)

    @property
    def shapes(self) -> Floats:
        """Dirichlet parameters of the rows of h, tied to the row 0 of the fit."""
        if self.thinning is None or self.usual is None:
            return self.alpha_h
        tied = self.tie * (self.thinning @ self.usual)
        tied[0] = 0.0
        return np.asarray(self.loose + np.where(self.alpha_h > 0, tied, 0.0))

    def seen_and_wrong(
        self, levels: NDArray[np.uint8]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which fields of each comparison vector are seen, and which of these are wrong."""
        seen = levels > 0
        wrong = seen & (levels < self.right_from)
        for first, level, second in self.covered:
            seen[:, second] |= levels[:, first] == level
        return seen, wrong

    def draw(self, rng: np.random.Generator) -> ErrorLaw:
        """A law drawn from the prior."""
        h = np.zeros(self.alpha_h.shape)
        for a, alpha in enumerate(self.loose):
            shape = alpha
            if a and self.thinning is not None:
                shape = alpha + np.where(alpha > 0, self.tie * (self.thinning[a] @ h[0]), 0.0)
            h[a, alpha > 0] = rng.dirichlet(shape[alpha > 0])
        level = np.ones(self.alpha_level.shape)
        for j in range(len(level)):
            for half in (self.right[j], ~self.right[j]):
                at = half & (self.alpha_level[j] > 0)
                level[j, at] = rng.dirichlet(self.alpha_level[j, at])
        log_r = rng.normal(self.centre, self.spread, len(level))
        return ErrorLaw(self, _log(h), log_r, _log(level))


@dataclass(frozen=True, slots=True)
class ErrorLaw:
    """h, r and levels, in logs."""

    priors: ErrorPriors
    log_h: Floats
    log_r: Floats
    log_level: Floats

    def log_m(self, levels: NDArray[np.uint8]) -> Floats:
        """log m of each comparison vector, given which of its fields are seen."""
        seen, wrong = self.priors.seen_and_wrong(levels)
        sets, _, which = distinct_vectors(seen)
        n_wrong = wrong.sum(1)
        out = self.log_h[(~seen).sum(1), n_wrong] + wrong @ self.log_r
        out -= log_symmetric(self.log_r, sets)[which, n_wrong]
        for j in range(levels.shape[1]):
            out += np.where(seen[:, j], self.log_level[j, levels[:, j]], 0.0)
        return out

    def bound(self) -> Floats:
        """[field, level]: their sum over fields is nowhere below log m, and close for few wrong.

        With `a` missing and `e` wrong, R is smallest if the fields seen are those of smallest r.
        What depends on a and e is bounded by a plane c + d·a + s·e: of those that touch it at two
        numbers of wrong fields, the one that is closest on the whole.
        """
        n = len(self.log_r)
        falling = np.sort(self.log_r)[::-1]
        smallest = np.array([[k >= a for k in range(n)] for a in range(n + 1)])
        of_count = np.where(self.priors.alpha_h > 0, self.log_h, -np.inf)
        of_count = of_count - np.where(
            self.priors.alpha_h > 0, log_symmetric(falling, smallest), 0.0
        )
        e = np.arange(n + 1)
        best, plane = np.inf, (0.0, 0.0, 0.0)
        for low in range(n):
            for high in range(low + 1, n + 1):
                slope = (of_count[0, high] - of_count[0, low]) / (high - low)
                start = of_count[0, low] - slope * low
                gap = start + slope * e - of_count[0]
                if gap.min() < -1e-9:
                    continue
                above = of_count[1:] - start - slope * e
                missing = float((above.max(1) / np.arange(1, n + 1)).max())
                loose = float(gap[: n // 2 + 2].sum()) + 0.5 * max(0.0, missing)
                if loose < best:
                    best, plane = loose, (start, slope, missing)
        start, slope, missing = plane
        table = np.where(self.priors.right, self.log_level, self.log_level + self.log_r[:, None])
        table = table + np.where(self.priors.right, 0.0, slope)
        table = np.where(self.priors.alpha_level > 0, table, 0.0)
        table[:, 0] = missing
        self.cover(table)
        table[0] += start + 1e-9 * (1 + abs(start))
        return table

    def cover(self, table: Floats) -> None:
        """Take back, in a table of bounds, what a field adds as missing where it is covered."""
        for first, level, second in self.priors.covered:
            table[first, level] -= table[second, 0]


def _seen_before(wrong_fields: Sequence[Sequence[float]] | None, n: int) -> Floats:
    """[missing, wrong]: links seen before, as far as there can be such of n fields."""
    seen = np.zeros((n + 1, n + 1))
    if wrong_fields is None:
        return seen
    if [len(row) for row in wrong_fields] != [*range(n + 1, 0, -1)]:
        raise SettingsError(
            f"wrong_fields is not of {n} fields: these take {n + 1} lists, the first of {n + 1} "
            "numbers and each of one fewer. Give the fields that the model had, or leave it out."
        )
    for a, row in enumerate(wrong_fields):
        seen[a, : len(row)] = row
    return seen


def log_symmetric(log_r: Floats, sets: NDArray[np.bool_]) -> Floats:
    """[set, e]: log of the sum, over e of the fields in the set, of the products of their r."""
    n = len(log_r)
    sums = np.zeros((len(sets), n + 1))
    sums[:, 0] = 1.0
    for j in range(n):
        more = sums[:, :-1] * np.exp(log_r[j]) * sets[:, j : j + 1]
        sums[:, 1:] += more
    with np.errstate(divide="ignore"):
        return np.where(sums > 0, np.log(sums), 0.0)


def error_mode(priors: ErrorPriors, levels: NDArray[np.uint8], counts: Ints) -> ErrorLaw:
    """The law of highest posterior density (in logs of h and of levels) given the links' vectors.

    `counts` says how many links have each of the vectors `levels`.
    """
    h = priors.shapes + counts_by_errors(priors, levels, counts)
    h = h / h.sum(1, keepdims=True)
    level = priors.alpha_level.copy()
    for j in range(len(level)):
        level[j] += np.bincount(levels[:, j], counts, level.shape[1])
    level[priors.alpha_level == 0] = 0
    for half in (priors.right, ~priors.right):
        total = (level * half).sum(1, keepdims=True)
        level = np.where(half, level / np.maximum(total, 1e-300), level)
    return ErrorLaw(priors, _log(h), mode_of_odds(priors, levels, counts), _log(level))


def mean_law(
    priors: ErrorPriors | None, log_h: Floats, log_r: Floats, log_level: Floats
) -> ErrorLaw | None:
    """Means over the first axis of h, of log r and of levels; None of no priors.

    A common factor of all r makes no difference, so their mean is made 1 first.
    """
    if priors is None:
        return None
    of_h, of_level = (np.log(np.exp(log_p).mean(axis=0)) for log_p in (log_h, log_level))
    return ErrorLaw(priors, of_h, (log_r - log_r.mean(axis=1)[:, None]).mean(axis=0), of_level)


def counts_by_errors(priors: ErrorPriors, levels: NDArray[np.uint8], counts: Ints) -> Ints:
    """[missing, wrong]: how many links have so many of each."""
    seen, wrong = priors.seen_and_wrong(levels)
    n = np.zeros(priors.alpha_h.shape, np.int64)
    np.add.at(n, ((~seen).sum(1), wrong.sum(1)), counts)
    return n


def log_prior(law: ErrorLaw) -> float:
    """Log prior density of a law, of log h (row 0 as in the fit) and log levels; no constants."""
    p = law.priors
    of_r = -0.5 * float((((law.log_r - p.centre) / p.spread) ** 2).sum())
    return float((p.shapes * law.log_h).sum() + (p.alpha_level * law.log_level).sum()) + of_r


def mode_of_odds(priors: ErrorPriors, levels: NDArray[np.uint8], counts: Ints) -> Floats:
    """The log r of highest density: which fields are wrong, given how many."""
    from bayeslink.kernels.error_counts import mode_of_r

    seen, wrong = priors.seen_and_wrong(levels)
    sets, _, which = distinct_vectors(seen)
    by_set = np.zeros((len(sets), len(priors.alpha_h)), np.int64)
    np.add.at(by_set, (which, wrong.sum(1)), counts)
    of_field = np.asarray(counts @ wrong, np.int64)
    return np.asarray(mode_of_r(sets, by_set, of_field, priors.centre, priors.spread))


def _log(values: Floats) -> Floats:
    return np.log(np.where(values > 0, values, 1.0))
