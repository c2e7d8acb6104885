"""Pairs that are not listed, proposed at random: a mixture of joins.

A proposal is drawn uniformly among the pairs at one level of one field, or among all pairs in
scope; which of these, by fixed shares. A pair may come about in several ways, so its probability q
is a sum over the joins that hold it: it depends on the comparison vector alone. All pairs in scope
can be proposed, whatever their levels, so that births and deaths (`kernels.births`) reach them all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bayeslink.distinct import distinct
from bayeslink.linkage.posthoc import Blocks
from bayeslink.model.weights import Parameters
from bayeslink.pairs.source import Floats, Ints, Pairs, PairSource

ANY = -1  # in place of a field: all pairs in scope
_PILOT = 4000  # pairs drawn of each join, to see what links it may hold
_ANY_SHARE = 0.05  # of proposals drawn from all pairs
_TRIES = 4.0  # proposals a sweep for each far link expected
_MANY_FREE = 0.25  # share of the pairs with both records free, from which all count as free
_MOST_TRIES = 20_000
_LEAST_TRIES = 20
PART = 50  # sweeps whose proposals have a stream of their own
_AT_ONCE = 20_000  # proposals made together, about: each call takes its time


@dataclass(frozen=True, slots=True)
class FarPairs:
    """How far pairs are proposed, and how many a sweep."""

    pairs: PairSource
    parameters: Parameters  # those of the fit,
    theta: float  # and what a link costs there
    joins: tuple[tuple[int, int, int], ...]  # field, level, pairs
    shares: Floats  # of proposals
    expected: float  # links among far pairs, at the fit's values; rather too many
    a_sweep: int
    _listed: Ints  # numbers of the pairs that are listed or known, sorted
    _closed: tuple[NDArray[np.bool_], NDArray[np.bool_]]  # records of A and of B in known links

    @classmethod
    def of(cls, blocks: Blocks, seed: int) -> FarPairs | None:
        """Beside the blocks of two files; None if every pair is listed."""
        if blocks.all_listed:
            return None
        pairs = blocks.pairs
        n_b = pairs.n_b
        listed = [p.numbered(n_b) for p in (blocks.candidates, blocks.low, blocks.barred)]
        known = np.zeros(pairs.n_a, bool), np.zeros(n_b, bool)
        known[0][blocks.known.a] = known[1][blocks.known.b] = True
        model = blocks.parameters, blocks.theta
        return cls.beside(pairs, *model, np.concatenate(listed), known, seed, _free_share(blocks))

    @classmethod
    def beside(
        cls,
        pairs: PairSource,
        parameters: Parameters,
        theta: float,
        listed: Ints,
        closed: tuple[NDArray[np.bool_], NDArray[np.bool_]],
        seed: int,
        free_share: float = 1.0,
    ) -> FarPairs:
        """All pairs but those of the numbers listed, and those of closed records.

        `free_share` is the share of the pairs that can link at a time.
        """
        sizes = pairs.join_sizes()
        joins = [(int(j), int(h), int(sizes[j, h])) for j, h in np.argwhere(sizes > 0)]
        joins.append((ANY, 0, pairs.scope.n_drawn))
        even = np.full(len(joins), 1 / len(joins))
        given = (pairs, parameters, theta, tuple(joins), even, 0.0, 0, np.sort(listed), closed)
        return cls(*given)._weighed(np.random.default_rng([seed, 2**32 - 1]), free_share)

    def _weighed(self, rng: np.random.Generator, free_share: float) -> FarPairs:
        """Shares in proportion to the links that each join may hold, as a pilot sample has it."""
        mass = np.zeros(len(self.joins))
        for k, (field, level, size) in enumerate(self.joins):
            drawn = self._draw(field, level, rng.random((_PILOT, 3)))
            odds = self._odds(drawn)
            mass[k] = size * odds.mean() if len(odds) else 0.0
        shares = mass / mass.sum() if mass.sum() > 0 else np.zeros(len(mass))
        shares = (1 - _ANY_SHARE) * shares
        shares[-1] += 1 - shares.sum()
        weighed = replace(self, shares=shares)
        drawn, q = weighed._propose([rng], _PILOT)
        expected = free_share * float((self._odds(drawn) / q).mean())
        a_sweep = int(np.clip(_TRIES * expected, _LEAST_TRIES, _MOST_TRIES))
        return replace(weighed, expected=expected, a_sweep=a_sweep)

    def propose(self, seed: int, chain: int, parts: range) -> tuple[Pairs, Floats]:
        """Proposals for these parts of a chain, and q; infinite for those that cannot link."""
        rngs = [np.random.default_rng([seed, chain, part]) for part in parts]
        pairs, q = self._propose(rngs, self.a_sweep * PART)
        return pairs, np.where(self._open(pairs), q, np.inf)

    def parts_with(self, part: int, n_sweeps: int) -> range:
        """The parts of a chain for which pairs are proposed together with those of this one."""
        n = max(1, _AT_ONCE // (self.a_sweep * PART))
        first = part - part % n
        return range(first, min(first + n, math.ceil(n_sweeps / PART)))

    def _propose(self, rngs: Sequence[np.random.Generator], n: int) -> tuple[Pairs, Floats]:
        """n from each of the generators."""
        numbers = [(rng.random(n), rng.random((n, 3))) for rng in rngs]
        choice, uniforms = (np.concatenate(parts) for parts in zip(*numbers, strict=True))
        which = np.searchsorted(np.cumsum(self.shares)[:-1], choice, side="right")
        a, b = np.zeros((2, len(which)), np.int32)
        for k in np.unique(which):
            at = np.flatnonzero(which == k)
            field, level, _ = self.joins[k]
            a[at], b[at] = self.pairs.draw_pairs(field, level, uniforms[at])
        out = a < 0  # drawn outside the scope: as good as no proposal
        a[out], b[out] = a[~out][0] if (~out).any() else 0, b[~out][0] if (~out).any() else 0
        levels = self.pairs.levels_of(a, b)
        drawn = Pairs(a, b, levels)
        return drawn, np.where(out, np.inf, self._q(levels))

    def _q(self, levels: NDArray[np.uint8]) -> Floats:
        q = np.zeros(len(levels))
        for (field, level, size), share in zip(self.joins, self.shares, strict=True):
            q += share / size * (1.0 if field == ANY else levels[:, field] == level)
        return q

    def _draw(self, field: int, level: int, uniforms: Floats) -> Pairs:
        a, b = self.pairs.draw_pairs(field, level, uniforms)
        a, b = a[a >= 0], b[a >= 0]
        return Pairs(a, b, self.pairs.levels_of(a, b))

    def _odds(self, drawn: Pairs) -> Floats:
        w = self.parameters.weight_of(drawn.levels) - self.theta
        return np.where(self._open(drawn), np.exp(np.minimum(w, 50.0)), 0.0)

    def _open(self, drawn: Pairs) -> NDArray[np.bool_]:
        """Whether pairs are neither listed nor known, nor of a record whose link is known."""
        number = drawn.numbered(self.pairs.n_b)
        at = np.minimum(np.searchsorted(self._listed, number), max(0, len(self._listed) - 1))
        listed = self._listed[at] == number if len(self._listed) else np.zeros(len(number), bool)
        return ~(listed | self._closed[0][drawn.a] | self._closed[1][drawn.b])


def _free_share(blocks: Blocks) -> float:
    """Share of the pairs that can link at a time, for both their records are free in the fit.

    θ, the cost of the fit's last link, is low where hardly a record is left, so that the odds of
    all pairs add up to thousands of links; but only pairs of free records can take them up. At
    least one record counts as free, for the last link found one. Where half the records of either
    file are free, odds are taken as they are: more proposals then do no harm.
    """
    scope, start, share = blocks.pairs.scope, blocks.start, 1.0
    for sizes, known, rows in (
        (scope.sizes_a, blocks.known.a, start.a),
        (scope.sizes_b, blocks.known.b, start.b),
    ):
        settled = distinct(known)
        n = max(1, int(sizes.sum()) - len(settled))
        share *= max(1, n - int((~np.isin(rows, settled)).sum())) / n
    return min(1.0, share / _MANY_FREE)
