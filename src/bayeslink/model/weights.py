"""The record-linkage model: m and u (Eqs 3–5), their Dirichlet priors, weights (Eq. 6).

Inside, everything that has a value per field and level is one array with a row a field and a
column a level: column 0 is missing, columns past a field's last level are unused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayeslink.comparing.fields import Field
from bayeslink.errors import BayeslinkError
from bayeslink.notebook_html import html_table
from bayeslink.pairs.source import Floats, Ints, LevelCounts, sum_weights

# The Dirichlet mode is at the boundary for α ≤ 1 where no pair has been seen: such a level would
# have weight ±∞ and lock its pairs out (or in) for good. No pseudocount is smaller than this.
MIN_PSEUDOCOUNT = 0.01


class ByField(Sequence[Floats]):
    """Arrays over levels 1 … k, one a field, by the field's position or name."""

    def __init__(self, fields: Sequence[Field], values: Floats) -> None:
        self.names = tuple(f.name for f in fields)
        self._values = tuple(values[j, 1 : f.n_levels + 1].copy() for j, f in enumerate(fields))

    def __getitem__(self, key: Any) -> Any:
        return self._values[self.names.index(key) if isinstance(key, str) else key]

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[Floats]:
        return iter(self._values)

    def _repr_html_(self) -> str:
        rows = [[n, np.array2string(v, precision=4)] for n, v in zip(self.names, self, strict=True)]
        return html_table("By level, worst first", ["field", "probabilities"], rows)

    def __repr__(self) -> str:
        rows = zip(self.names, self._values, strict=True)
        return "\n".join(f"{n}: {np.array2string(v, precision=4)}" for n, v in rows)


@dataclass(frozen=True, slots=True)
class Priors:
    """Dirichlet parameters of m and u, and which entries are levels."""

    alpha_m: Floats
    alpha_u: Floats
    used: NDArray[np.bool_]

    @classmethod
    def of(cls, fields: Sequence[Field]) -> Priors:
        width = max(f.n_levels for f in fields) + 1
        alpha_m, alpha_u = np.zeros((2, len(fields), width))
        for j, f in enumerate(fields):
            alpha_m[j, 1 : f.n_levels + 1] = f.m_prior
            alpha_u[j, 1 : f.n_levels + 1] = f.u_prior
        return cls(alpha_m, alpha_u, alpha_m > 0)

    @property
    def pseudo_m(self) -> Floats:
        """Counts that put the mode where the prior wants it: α − 1, not α."""
        return np.where(self.used, np.maximum(self.alpha_m - 1, MIN_PSEUDOCOUNT), 0)

    @property
    def pseudo_u(self) -> Floats:
        return np.where(self.used, np.maximum(self.alpha_u - 1, MIN_PSEUDOCOUNT), 0)


@dataclass(frozen=True, slots=True)
class Parameters:
    """m and u, strictly inside (0, 1) at every level."""

    m: Floats
    u: Floats
    used: NDArray[np.bool_]

    @property
    def log_weights(self) -> Floats:
        """log m − log u at each level (Eq. 6 splits into these); 0 where missing."""
        out = np.zeros(self.m.shape)
        out[self.used] = np.log(self.m[self.used]) - np.log(self.u[self.used])
        return out

    @property
    def bound(self) -> Floats:
        """[field, level]: the most that each level can add to a weight; here, what it adds."""
        return self.log_weights

    def bound_above(self, threshold: float, counts: LevelCounts) -> Floats:
        """The same for a search at a threshold, where `counts` says how frequent levels are."""
        return self.bound

    def weight_of(self, levels: NDArray[Any]) -> Floats:
        """Weight of each comparison vector, w = log m(γ) − log u(γ) (Eq. 6), in natural logs."""
        levels = np.atleast_2d(np.asarray(levels, np.uint8))
        return sum_weights(self.log_weights, levels)


def proportions(counts: Floats, used: NDArray[np.bool_]) -> Floats:
    """Counts to probabilities over the levels of each field."""
    kept = np.where(used, counts, 0.0)
    return kept / kept.sum(axis=1, keepdims=True)


def at_least(counts: Ints, seen: Ints) -> Ints:
    """Level counts of all pairs, nowhere below those of pairs seen; each field adds up as before.

    Counts from a sample can fall short of pairs that are known to be there. What a level lacks is
    taken from the field's other levels, in proportion to what each has beyond the pairs seen.
    Missing values are always counted, and exact counts are never short: they stay as they are.
    """
    raised = np.maximum(counts, seen)
    lacking = (raised - counts).sum(axis=1)
    for j in np.flatnonzero(lacking):
        beyond = np.cumsum((raised - seen)[j, 1:])
        if beyond[-1] < lacking[j]:
            raise BayeslinkError(
                f"field {j + 1} has {seen[j, 1:].sum():,} pairs with both values listed, and only "
                f"{counts[j, 1:].sum():,} counted. The counts should hold every pair listed. This "
                "is a fault of where the pairs come from, not of your data: please report it."
            )
        taken = np.diff(np.round(beyond * (lacking[j] / beyond[-1])), prepend=0.0)
        raised[j, 1:] -= taken.astype(np.int64)
    return raised


def other_counts(counts: Ints, linked: Ints) -> Ints:
    """Level counts of all pairs but the links, none below 0 where the counts are estimates."""
    return at_least(counts, linked) - linked


def posterior_mode(priors: Priors, links: Ints | Floats, others: Ints | Floats) -> Parameters:
    """The m and u that maximise Eq. 12 given the level counts of links and of all other pairs."""
    return Parameters(
        proportions(priors.pseudo_m + links, priors.used),
        proportions(priors.pseudo_u + others, priors.used),
        priors.used,
    )


def log_density(
    parameters: Parameters, priors: Priors, links: Ints | Floats, others: Ints | Floats
) -> float:
    """log p(Γ | C, m, u) + log p(m, u), up to the Dirichlet's constants (Eq. 11 without θ)."""
    used = priors.used
    of_m = (links + priors.pseudo_m)[used] @ np.log(parameters.m[used])
    of_u = (others + priors.pseudo_u)[used] @ np.log(parameters.u[used])
    return float(of_m + of_u)
