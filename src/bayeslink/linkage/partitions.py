"""The prior over partitions of one file into people, through the sizes of its clusters.

Sizes are an exchangeable sequence (Betancourt, Zanella & Steorts 2022) with shares μ of each size,
μ ~ Dirichlet(β): with N clusters, n_k of them of size k,

    p(Z) ∝ N! · Γ(B) / Γ(N + B) · Π_k Γ(n_k + β_k) / Γ(β_k) · Π_clusters k!,   B = Σ β.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real

import numpy as np
from scipy.special import gammaln

from bayeslink.errors import SettingsError
from bayeslink.pairs.source import Floats, Ints

LARGEST_CLUSTER = 500  # records of one person
_FLOOR = 0.1  # of β, for sizes up to ten; beyond, it falls with the square of the size


@dataclass(frozen=True, slots=True)
class ClusterSizes:
    """A priori a person has k records with a chance of (1 − repeat) · repeat^(k − 1), about.

    Attributes
    ----------
    repeat
        The chance of one more record, after each.
    people
        How many people's worth of data that is. No size has less than a floor, so that sizes not
        seen yet stay within reach: .1 people up to ten records, .1 · (10 / k)² beyond.
    """

    repeat: float = 0.5
    people: float = 5.0

    def __post_init__(self) -> None:
        if not isinstance(self.repeat, Real) or not 0 < self.repeat < 1:
            raise SettingsError(
                f"ClusterSizes: repeat must be between 0 and 1, got {self.repeat!r}. It is the "
                "chance that a person has one more record."
            )
        if not isinstance(self.people, Real) or not 0 < self.people <= 1_000_000:
            raise SettingsError(
                "ClusterSizes: people must be positive and at most 1,000,000, got "
                f"{self.people!r}. It is how many people's worth of data the prior is."
            )

    def beta(self, n_records: int) -> Floats:
        """Dirichlet parameters of sizes 0 (none), 1 … the largest that is allowed."""
        k = np.arange(min(n_records, LARGEST_CLUSTER) + 1)
        floor = _FLOOR * np.minimum(1.0, (10 / np.maximum(k, 1)) ** 2)
        beta = np.maximum(floor, self.people * (1 - self.repeat) * self.repeat ** (k - 1.0))
        beta[0] = 0.0
        return beta


def log_prior(of_size: Ints, beta: Floats) -> float:
    """log p(Z) up to a constant, of a partition with of_size[k] clusters of size k."""
    k = np.flatnonzero(of_size)
    n, total = int(of_size.sum()), float(beta.sum())
    out = gammaln(n + 1) - gammaln(n + total)
    out += (gammaln(of_size[k] + beta[k]) - gammaln(beta[k])).sum()
    return float(out + (of_size[k] * gammaln(k + 1)).sum())


def edge_cost(n_pairs: int, n_edges: int) -> float:
    """θ in force: the log odds against a pair being an edge, one more than there are among them.

    Not what the prior asks for joining two single records: where hardly one is left, that is next
    to nothing, and joining two pairs costs as much as ever.
    """
    return float(np.log(max(1, n_pairs) / (n_edges + 1.0)))
