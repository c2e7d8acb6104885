"""Priors on the linkage C through its number of links L.

`Penalty` is the paper's p(C) ∝ exp(−θL). `Overlap` is the beta-bipartite prior: the matched share
of the smaller file is Beta(α, β), and given L every matching of that size in scope is equally
likely. Both become a function of L alone once the scope is known (`on`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from numbers import Real
from typing import Any

import numpy as np
from scipy.special import betaln, gammaln, logsumexp

from bayeslink.errors import SettingsError
from bayeslink.linkage.matching_counts import MatchingCounts
from bayeslink.pairs.source import Floats, Ints, Scope

LARGEST = 1_000_000  # of what a prior takes: beyond it, nothing changes but rounding


@dataclass(frozen=True, slots=True)
class Penalty:
    """p(C) ∝ exp(−θL): every link costs θ."""

    theta: float

    def __post_init__(self) -> None:
        if not isinstance(self.theta, Real) or not abs(self.theta) <= LARGEST:
            raise SettingsError(
                f"theta must be a finite number within ±{LARGEST:,}, got {self.theta!r}. It is the "
                "cost of one link in natural-log units; leave it out to have it follow from the "
                "overlap prior."
            )
        object.__setattr__(self, "theta", float(self.theta))

    def on(self, scope: Scope) -> LinkPrior:
        """The prior over the pairs in scope."""
        return LinkPrior(scope, lambda n: np.asarray(-self.theta * n, np.float64))


@dataclass(frozen=True, slots=True)
class Overlap:
    """The matched share of the smaller file is Beta(alpha, beta); (1, 1) is flat."""

    alpha: float = 1.0
    beta: float = 1.0

    def __post_init__(self) -> None:
        for name, value in (("alpha", self.alpha), ("beta", self.beta)):
            if not isinstance(value, Real) or not 0 < value <= LARGEST:
                raise SettingsError(
                    f"Overlap: {name} must be positive and at most {LARGEST:,}, got {value!r}. "
                    "Overlap(1, 1) is flat; Overlap(20, 80) expects about 20 % matched."
                )
            object.__setattr__(self, name, float(value))

    def on(self, scope: Scope) -> LinkPrior:
        """The prior over the pairs in scope."""
        smaller = int(min(scope.sizes_a.sum(), scope.sizes_b.sum()))
        log_matchings = MatchingCounts(scope)

        def log_prior(n: Ints) -> Floats:
            choose = gammaln(smaller + 1) - gammaln(n + 1) - gammaln(smaller - n + 1)
            share = betaln(n + self.alpha, smaller - n + self.beta) - betaln(self.alpha, self.beta)
            return np.asarray(choose + share - log_matchings(n))

        return LinkPrior(scope, log_prior)


LinkCountPrior = Penalty | Overlap


def as_data(prior: LinkCountPrior) -> dict[str, Any]:
    """The prior as a file can hold it.

    >>> as_data(Penalty(2))
    {'kind': 'penalty', 'theta': 2.0}
    """
    return {"kind": type(prior).__name__.lower(), **asdict(prior)}


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
