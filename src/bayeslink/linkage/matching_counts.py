"""How many matchings of each size there are in scope; the overlap prior needs it for every size.

In one block of a × b there are a! b! / ((a−n)! (b−n)! n!) matchings with n links. Over several
blocks of a blocking key these counts convolve, and span thousands of orders of magnitude.

So they are convolved as probabilities. Tilted by exp(τn), the counts of a block are those of a law
of n with a mean that rises with τ, and the number of links over all blocks is a sum of independent
such numbers. The law of this sum follows from the product of their characteristic functions. It
gives the counts around its mean, as far as its probabilities are not tiny, and τ rises step by step
until all sizes are had.

A characteristic function is needed at few frequencies only. The roots of a block's polynomial
Σ count(n) zⁿ are real (Heilmann & Lieb 1972), so n is distributed as a sum of independent
Bernoulli numbers, and |φ(t)| ≤ exp(−2 σ² sin²(t/2)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from bayeslink.pairs.source import Floats, Ints, Scope

Complexes = NDArray[np.complex128]

_KEPT = 1e-4  # of the largest probability: smaller ones are left to another tilt
_STEP = 4.0  # about how many standard deviations from the mean that is, and a little less
_CUT = 4.0  # 2 × its square is −log |φ| where the sum over frequencies ends


class MatchingCounts:
    """log of the number of matchings with n links in scope, for any n.

    The same to 1e-8 as exact integers, or to 1e-6 where a million blocks are of one size. Where
    only a share of the pairs is in scope, each link is taken to have that share of the choices.
    """

    def __init__(self, scope: Scope) -> None:
        sizes = np.stack([scope.sizes_a, scope.sizes_b], 1).astype(np.int64)
        sizes = np.sort(sizes[sizes.min(1) > 0], axis=1)
        self._sizes, self._times = np.unique(sizes, axis=0, return_counts=True)
        self._log_density = math.log(scope.density)

    def __call__(self, n: Ints) -> Floats:
        table = _log_counts(self._sizes.tobytes(), self._times.tobytes())
        return table[np.asarray(n, np.int64)] + n * self._log_density


@lru_cache(maxsize=4)
def _log_counts(sizes_: bytes, times_: bytes) -> Floats:
    """log of the number of matchings of every size, given the distinct blocks and their numbers."""
    sizes, times = np.frombuffer(sizes_, np.int64).reshape(-1, 2), np.frombuffer(times_, np.int64)
    if times.sum() <= 1:
        return _of_block(*sizes[0].tolist()) if len(sizes) else np.zeros(1)
    order = np.ceil(np.log2(sizes[:, 0] + 1) / 2)  # sizes within a factor of four are alike
    groups = [_Blocks.of(sizes[order == k], times[order == k]) for k in np.unique(order)]
    table = np.zeros(int(times @ sizes[:, 0]) + 1)
    n, tau = 0, -math.log(float(times @ sizes.prod(axis=1)))
    too_low, too_high = tau, math.inf
    while n < len(table):
        found, logs, sd = _around(groups, tau, len(table))
        if found[-1] < n:
            too_low = tau
        elif found[0] > n:
            too_high = tau
        else:
            table[found], n = logs, int(found[-1]) + 1
            too_low, too_high = tau, math.inf
        # By how much √mean rises is as it is for a Poisson number, which fits at the low end too.
        step = 2 * math.log1p(_STEP / sd)
        tau = too_low + step if too_high == math.inf else (too_low + too_high) / 2
    return table


def _of_block(a: int, b: int) -> Floats:
    n = np.arange(min(a, b) + 1)
    return np.asarray(
        gammaln(a + 1) + gammaln(b + 1) - gammaln(a - n + 1) - gammaln(b - n + 1) - gammaln(n + 1)
    )


@dataclass(frozen=True, slots=True)
class _Tilted:
    """Laws of the number of links in each block, from n = `first` on, and sums over all blocks."""

    law: Floats  # one row a block
    first: Ints
    log_z: float
    mean: float
    variance: float


@dataclass(frozen=True, slots=True)
class _Blocks:
    """Distinct blocks of similar size."""

    sizes: Floats  # the smaller side, the larger one
    times: Ints
    logs: Floats  # log of the number of matchings, one row a block

    @classmethod
    def of(cls, sizes: Ints, times: Ints) -> _Blocks:
        logs = np.full((len(sizes), int(sizes.max(axis=0)[0]) + 1), -np.inf)
        for row, (a, b) in zip(logs, sizes.tolist(), strict=True):
            row[: a + 1] = _of_block(a, b)
        return cls(sizes.T.astype(np.float64), times, logs)

    def tilted(self, tau: float) -> _Tilted:
        first, n = self._bulk(tau)
        law = self.logs
        if len(n) < law.shape[1]:
            law = np.take_along_axis(law, first[:, None] + n, axis=1)
        law = law + tau * n
        top = law.max(axis=1)
        law -= top[:, None]
        np.exp(law, out=law)
        total = law.sum(axis=1)
        law /= total[:, None]
        # Not by `@`: the threads of a linear-algebra library take longer to start.
        mean = np.einsum("ij,j->i", law, n)
        variance = np.einsum("ij,j->i", law, n * n) - mean**2
        return _Tilted(
            law,
            first,
            float(self.times @ (top + np.log(total) + tau * first)),
            float(self.times @ (first + mean)),
            float(self.times @ variance),
        )

    def _bulk(self, tau: float) -> tuple[Ints, Ints]:
        """Where each law begins, and 0, 1, … up to where all end: beyond, it is below 1e-16.

        The mode solves (a − n)(b − n) exp(τ) = n.
        """
        (a, b), width = self.sizes, self.logs.shape[1]
        sum_ = a + b + math.exp(-tau)
        mode = 2 * a * b / (sum_ + np.sqrt(np.maximum(sum_**2 - 4 * a * b, 0)))
        spread = sum(1 / np.maximum(part, 0.5) for part in (mode, a - mode, b - mode)) ** -0.5
        bulk = int(16 * spread.max()) + 24
        n = np.arange(bulk if bulk < 0.7 * width else width)  # to cut off less is not worth it
        return np.clip(mode - len(n) // 2, 0, width - len(n)).astype(np.int64), n


def _around(groups: list[_Blocks], tau: float, n_sizes: int) -> tuple[Ints, Floats, float]:
    """Sizes around the mean of a tilted law, log of the number of matchings, standard deviation."""
    laws = [group.tilted(tau) for group in groups]
    mean = sum(law.mean for law in laws)
    sd = math.sqrt(max(sum(law.variance for law in laws), 1e-12))
    from scipy.fft import next_fast_len

    length = next_fast_len(int(13 * sd) + 40, real=True)
    highest = math.ceil(length * math.asin(min(1.0, _CUT / sd)) / math.pi)
    frequencies = 2 * np.pi / length * np.arange(min(highest, length // 2) + 1.0)
    phi = _transforms(laws, frequencies)
    transform = _product(phi, np.concatenate([group.times for group in groups]))
    start = sum(int(group.times @ law.first) for group, law in zip(groups, laws, strict=True))
    low = max(0, int(mean) - length // 2)
    n = np.arange(low, min(n_sizes, low + length))
    probability = np.fft.irfft(transform, length)[(n - start) % length]
    kept = probability > _KEPT * probability.max()
    n = n[kept]
    return n, np.log(probability[kept]) - tau * n + sum(law.log_z for law in laws), sd


def _transforms(laws: list[_Tilted], t: Floats) -> Complexes:
    """Characteristic function of each block, counted from its `first`, at each frequency."""
    angle = np.outer(t, np.arange(max(law.law.shape[1] for law in laws)))
    cos, sin = np.cos(angle), np.sin(angle)
    parts = []
    for law in (law.law for law in laws):
        there = slice(0, law.shape[1])
        x, y = (np.einsum("ij,kj->ik", law, part[:, there]) for part in (cos, sin))
        parts.append(x - 1j * y)
    return np.concatenate(parts)


def _product(phi: Complexes, times: Ints) -> Complexes:
    """Product over rows of φ to the power of `times`, by repeated squares."""
    product = np.ones(phi.shape[1], np.complex128)
    while len(times):
        product *= phi[times % 2 == 1].prod(axis=0)
        more = times > 1
        phi, times = phi[more] ** 2, times[more] // 2
    return product
