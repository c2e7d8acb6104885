"""Which model of m and u: the paper's independent fields, or fields that depend on each other.

Everything else needs four things of a structure: the weight of a comparison vector (through the
parameters it gives), the most that a vector's fields can add up to (`bound`, for the search), the
mode of m and u given the links, and the density there. What a draw needs is in `sampling.layout`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from bayeslink.comparing.fields import Field
from bayeslink.errors import SettingsError
from bayeslink.model.bounds import tightest
from bayeslink.model.dependence import INDEPENDENT_FIELDS, Tree
from bayeslink.model.error_counts import ErrorLaw, ErrorPriors, error_mode, log_prior
from bayeslink.model.gaps import tied
from bayeslink.model.weights import (
    Parameters,
    Priors,
    log_density,
    other_counts,
    posterior_mode,
)
from bayeslink.pairs.source import Floats, Ints, LevelCounts, Pairs, count_levels
from bayeslink.pairs.vectors import distinct_vectors

INDEPENDENT, DEPENDENT = "independent", "dependent"
NAMES = (DEPENDENT, INDEPENDENT)
_MOST_PATTERNS = 200_000  # that are weighed to make a bound tighter,
_FEW_PAIRS = 10_000_000  # so many pairs are searched in less time than that takes


@dataclass(frozen=True, slots=True)
class Dependent(Parameters):
    """m by the number of wrong fields, u a tree of fields.

    `m` and `u` are the levels' shares among links and among the other pairs, field by field.
    """

    law: ErrorLaw
    tree: Tree

    @property
    def bound(self) -> Floats:
        log_u = np.log(np.where(self.used, self.u, 1.0))
        return np.asarray(self.law.bound() - self.tree.least(log_u))

    def bound_above(self, threshold: float, counts: LevelCounts) -> Floats:
        sizes = self.used.sum(1) + 1
        if counts.n_pairs < _FEW_PAIRS or np.prod(sizes.astype(float)) > _MOST_PATTERNS:
            return self.bound
        patterns = np.stack(np.unravel_index(np.arange(np.prod(sizes)), sizes), 1).astype(np.uint8)
        shares = counts.counts / max(1, counts.n_pairs)
        n_pairs = counts.n_pairs * shares[np.arange(len(sizes)), patterns].prod(1)
        weights = self.weight_of(patterns)
        return tightest(self.law, self.bound, patterns, weights, n_pairs, threshold)

    def weight_of(self, levels: NDArray[np.uint8]) -> Floats:
        vectors, _, which = distinct_vectors(np.atleast_2d(np.asarray(levels, np.uint8)))
        out = self.law.log_m(vectors) - self.tree.log_u(vectors)
        log_u = np.log(np.where(self.used, self.u, 1.0))
        for j in np.flatnonzero(self.tree.free(len(log_u))):
            out -= log_u[j, vectors[:, j]]
        return np.asarray(out[which])


@dataclass(frozen=True, slots=True)
class Structure:
    """A model of m and u, with its priors and what has been counted for it."""

    priors: Priors
    all_counts: Ints = field(repr=False)  # level counts of all pairs in scope
    errors: ErrorPriors | None = None  # None: fields go wrong independently
    tree: Tree = INDEPENDENT_FIELDS

    @classmethod
    def independent(cls, fields: Sequence[Field], all_counts: Ints) -> Structure:
        """The paper's: fields are independent, among links and among the other pairs."""
        return cls(Priors.of(fields), all_counts)

    def dependent(
        self,
        fields: Sequence[Field],
        tree: Tree,
        linked: Pairs | None = None,
        wrong_fields: Sequence[Sequence[float]] | None = None,
    ) -> Structure:
        """The same with m by the number of wrong fields, and u as the tree has it.

        How far complete and incomplete links have one law of errors is told from those `linked`;
        where `wrong_fields` were learned before, they say it.
        """
        errors = ErrorPriors.of(fields, wrong_fields)
        if linked is not None and wrong_fields is None:
            errors = tied(errors, *_counted(linked.levels), self.all_counts)
        return replace(self, errors=errors, tree=tree)

    @property
    def name(self) -> str:
        return INDEPENDENT if self.errors is None else DEPENDENT

    def mode(self, linked: Pairs, held: Ints | None = None) -> Parameters:
        """The m and u of highest density given the links (Eqs 14–15).

        `held`: level counts of the pairs that u is not learned from; of the links unless given.
        """
        links = self._levels(linked)
        held = links if held is None else held
        plain = posterior_mode(self.priors, links, other_counts(self.all_counts, held))
        if self.errors is None:
            return plain
        vectors, counts = _counted(linked.levels)
        law = error_mode(self.errors, vectors, counts)
        return Dependent(plain.m, plain.u, plain.used, law, self.tree)

    def log_density(self, parameters: Parameters, linked: Pairs) -> float:
        """log p(Γ | C, m, u) + log p(m, u), up to a constant (Eq. 11 without θ)."""
        links = self._levels(linked)
        others = other_counts(self.all_counts, links)
        if not isinstance(parameters, Dependent):
            return log_density(parameters, self.priors, links, others)
        free = self.tree.free(len(links))[:, None] & self.priors.used
        vectors, counts = _counted(linked.levels)
        of_m = counts @ parameters.law.log_m(vectors) + log_prior(parameters.law)
        of_u = (others + self.priors.pseudo_u)[free] @ np.log(parameters.u[free])
        return float(of_m + of_u - counts @ self.tree.log_u(vectors))

    def _levels(self, linked: Pairs) -> Ints:
        return count_levels(linked.levels, self.all_counts.shape[1])


def checked_structure(name: str) -> str:
    """Refuse the name of a structure that there is not."""
    if name not in NAMES:
        raise SettingsError(
            f"unknown structure {name!r}. Allowed: 'dependent' (fields may depend on each other) "
            "and 'independent' (the paper's model)."
        )
    return name


def _counted(levels: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], Ints]:
    vectors, _, which = distinct_vectors(levels)
    return vectors, np.bincount(which, minlength=len(vectors))
