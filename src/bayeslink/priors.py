"""Priors on the linkage C through its number of links L.

`Penalty` is the paper's p(C) ∝ exp(−θL). `Overlap` is the beta-bipartite prior: the matched share
of the smaller file is Beta(α, β), and given L every matching of that size in scope is equally
likely. Both become a function of L alone once the scope is known (`on`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import betaln, gammaln, logsumexp

from bayeslink.errors import SettingsError
from bayeslink.patterns import Floats, Ints, Scope


@dataclass(frozen=True, slots=True)
class Penalty:
    """p(C) ∝ exp(−θL): every link costs θ."""

    theta: float

    def __post_init__(self) -> None:
        if not isinstance(self.theta, (int, float)) or not math.isfinite(self.theta):
            raise SettingsError(
                f"theta must be a finite number, got {self.theta!r}. It is the cost of one link "
                "in natural-log units; leave it out to have it follow from the overlap prior."
            )

    def on(self, scope: Scope) -> LinkPrior:
        return LinkPrior(scope, lambda n: np.asarray(-self.theta * n, np.float64))


@dataclass(frozen=True, slots=True)
class Overlap:
    """The matched share of the smaller file is Beta(alpha, beta); (1, 1) is flat."""

    alpha: float = 1.0
    beta: float = 1.0

    def __post_init__(self) -> None:
        for name, value in (("alpha", self.alpha), ("beta", self.beta)):
            if not isinstance(value, (int, float)) or not 0 < value < math.inf:
                raise SettingsError(
                    f"Overlap: {name} must be positive and finite, got {value!r}. "
                    "Overlap(1, 1) is flat; Overlap(20, 80) expects about 20 % matched."
                )

    def on(self, scope: Scope) -> LinkPrior:
        smaller = int(min(scope.sizes_a.sum(), scope.sizes_b.sum()))
        log_matchings = MatchingCounts(scope)

        def log_prior(n: Ints) -> Floats:
            choose = gammaln(smaller + 1) - gammaln(n + 1) - gammaln(smaller - n + 1)
            share = betaln(n + self.alpha, smaller - n + self.beta) - betaln(self.alpha, self.beta)
            return np.asarray(choose + share - log_matchings(n))

        return LinkPrior(scope, log_prior)


LinkCountPrior = Penalty | Overlap


@dataclass(frozen=True, slots=True)
class LinkPrior:
    """log p(C) as a function of L, over a given scope."""

    scope: Scope
    _log_prior: Callable[[Ints], Floats]

    def log_prior(self, n_links: Ints | int) -> Floats:
        """log p(C) of any one matching with n_links links, up to a constant."""
        return self._log_prior(np.asarray(n_links, np.int64))

    def cost(self, n_links: int) -> float:
        """What one more link costs at n_links: the θ in force there."""
        n = min(n_links, self.scope.max_links - 1)
        if n < 0:
            return 0.0
        before, after = self.log_prior(np.array([n, n + 1]))
        return float(before - after)

    def of_link_count(self) -> Floats:
        """The implied prior distribution of L over 0 … max_links."""
        n = np.arange(self.scope.max_links + 1)
        log_p = self.log_prior(n) + MatchingCounts(self.scope)(n)
        return np.asarray(np.exp(log_p - logsumexp(log_p)))


class MatchingCounts:
    """log of the number of matchings with n links in scope, for any n.

    In one block of a × b there are a! b! / ((a−n)! (b−n)! n!) of them. Over several blocks of a
    blocking key the counts convolve. They span thousands of orders of magnitude, so they are
    convolved as probabilities, tilted by exp(τn) so that their bulk lies near the n asked for.
    """

    _REACH = 5.0  # standard deviations around the mean within which a tilted law is used

    def __init__(self, scope: Scope) -> None:
        sizes = np.stack([scope.sizes_a, scope.sizes_b], 1)
        sizes = np.sort(sizes[sizes.min(1) > 0], axis=1)
        self._sizes, self._times = np.unique(sizes, axis=0, return_counts=True)
        self._max = scope.max_links
        self._logs = [_log_matchings_of_block(int(a), int(b)) for a, b in self._sizes]
        self._known = np.full(self._max + 1, np.nan)

    def __call__(self, n: Ints) -> Floats:
        n = np.asarray(n, np.int64)
        if len(self._logs) == 1 and self._times[0] == 1:
            return self._logs[0][n]
        if not self._logs:
            return np.zeros(n.shape)
        for wanted in np.unique(n):
            if np.isnan(self._known[wanted]):
                self._work_out_around(int(wanted))
        return self._known[n]

    def _work_out_around(self, n: int) -> None:
        if n in (0, self._max):
            self._known[n] = (
                0.0
                if n == 0
                else sum(t * log[-1] for log, t in zip(self._logs, self._times, strict=True))
            )
            return
        tau = self._tilt(n)
        laws, log_z = self._tilted(tau)
        mean, sd = self._moments(laws)
        length = 1 << math.ceil(math.log2(24 * max(sd, 2.0)))
        transform = np.ones(length, complex)
        for law, times in zip(laws, self._times, strict=True):
            folded = np.bincount(np.arange(len(law)) % length, law, length)
            transform = transform * np.fft.fft(folded) ** int(times)
        probability = np.fft.ifft(transform).real
        reach = max(1, int(self._REACH * sd))
        low, high = max(1, int(mean) - reach), min(self._max - 1, int(mean) + reach)
        at = np.union1d(np.arange(low, high + 1), [n])
        self._known[at] = np.log(probability[at % length]) - tau * at + log_z

    def _tilted(self, tau: float) -> tuple[list[Floats], float]:
        laws, log_z = [], 0.0
        for log, times in zip(self._logs, self._times, strict=True):
            tilted = log + tau * np.arange(len(log))
            total = logsumexp(tilted)
            laws.append(np.exp(tilted - total))
            log_z += float(times * total)
        return laws, log_z

    def _moments(self, laws: list[Floats]) -> tuple[float, float]:
        mean = variance = 0.0
        for law, times in zip(laws, self._times, strict=True):
            n = np.arange(len(law))
            centre = float(law @ n)
            mean += times * centre
            variance += times * float(law @ (n - centre) ** 2)
        return mean, math.sqrt(variance)

    def _tilt(self, n: int) -> float:
        """τ at which the mean is n, by bisection: the mean rises with τ."""
        low, high = -100.0, 100.0
        for _ in range(60):
            tau = (low + high) / 2
            mean, sd = self._moments(self._tilted(tau)[0])
            if abs(mean - n) < 0.01 * sd:
                break
            low, high = (tau, high) if mean < n else (low, tau)
        return tau


def _log_matchings_of_block(a: int, b: int) -> Floats:
    n = np.arange(min(a, b) + 1)
    return np.asarray(
        gammaln(a + 1) + gammaln(b + 1) - gammaln(a - n + 1) - gammaln(b - n + 1) - gammaln(n + 1)
    )
