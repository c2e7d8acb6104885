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
from bayeslink.pairs.source import Floats, Ints, Scope


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
        sizes, self._times = np.unique(sizes, axis=0, return_counts=True)
        logs = [_log_matchings_of_block(int(a), int(b)) for a, b in sizes]
        lengths = np.array([len(log) for log in logs], np.int64)
        # All blocks end to end, and the n of each entry.
        self._starts = np.cumsum(lengths) - lengths
        self._logs = np.concatenate([np.zeros(0), *logs])
        self._n = np.arange(len(self._logs)) - np.repeat(self._starts, lengths)
        self._lengths = lengths
        self._max = scope.max_links
        self._known = np.full(self._max + 1, np.nan)
        self._tau = 0.0

    def __call__(self, n: Ints) -> Floats:
        n = np.asarray(n, np.int64)
        if len(self._times) == 1 and self._times[0] == 1:
            return self._logs[n]
        if not len(self._times):
            return np.zeros(n.shape)
        for wanted in np.unique(n):
            if np.isnan(self._known[wanted]):
                self._work_out_around(int(wanted))
        return self._known[n]

    def _work_out_around(self, n: int) -> None:
        if n in (0, self._max):
            last = self._logs[self._starts + self._lengths - 1]
            self._known[n] = 0.0 if n == 0 else float(self._times @ last)
            return
        tau, law, log_z, mean, sd = self._tilted_to(n)
        length = 1 << math.ceil(math.log2(24 * max(sd, 2.0)))
        folded = np.zeros((len(self._times), length))
        of_block = np.repeat(np.arange(len(self._times)), self._lengths)
        np.add.at(folded, (of_block, self._n % length), law)
        transform = np.prod(np.fft.fft(folded) ** self._times[:, None], axis=0)
        probability = np.fft.ifft(transform).real
        reach = max(1, int(self._REACH * sd))
        low, high = max(1, int(mean) - reach), min(self._max - 1, int(mean) + reach)
        at = np.union1d(np.arange(low, high + 1), [n])
        self._known[at] = np.log(probability[at % length]) - tau * at + log_z

    def _tilted_to(self, n: int) -> tuple[float, Floats, float, float, float]:
        """τ at which the mean is n, and there the law of each block, log z, mean and sd.

        The mean rises with τ, its slope is the variance: Newton's steps from the last τ, kept
        between bounds.
        """
        low, high = -100.0, 100.0
        tau = self._tau
        for _ in range(100):
            law, log_z = self._tilted(tau)
            mean, sd = self._moments(law)
            if abs(mean - n) < 0.01 * sd:
                break
            low, high = (tau, high) if mean < n else (low, tau)
            tau += (n - mean) / sd**2 if sd > 0 else 0.0
            if not low < tau < high:
                tau = (low + high) / 2
        self._tau = tau
        return tau, law, log_z, mean, sd

    def _tilted(self, tau: float) -> tuple[Floats, float]:
        tilted = self._logs + tau * self._n
        top = np.maximum.reduceat(tilted, self._starts)
        law = np.exp(tilted - np.repeat(top, self._lengths))
        total = np.add.reduceat(law, self._starts)
        return law / np.repeat(total, self._lengths), float(self._times @ (top + np.log(total)))

    def _moments(self, law: Floats) -> tuple[float, float]:
        centre = np.add.reduceat(law * self._n, self._starts)
        off = self._n - np.repeat(centre, self._lengths)
        variance = np.add.reduceat(law * off**2, self._starts)
        return float(self._times @ centre), math.sqrt(self._times @ variance)


def _log_matchings_of_block(a: int, b: int) -> Floats:
    n = np.arange(min(a, b) + 1)
    return np.asarray(
        gammaln(a + 1) + gammaln(b + 1) - gammaln(a - n + 1) - gammaln(b - n + 1) - gammaln(n + 1)
    )
