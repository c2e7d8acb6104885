"""A structure and its comparison vectors as the kernels want them (`kernels.parameters`)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bayeslink.errors import BayeslinkError
from bayeslink.kernels.parameters import Model, State, Vectors
from bayeslink.model.error_counts import ErrorPriors, error_mode
from bayeslink.model.structure import Structure
from bayeslink.model.weights import Priors, at_least, other_counts, proportions
from bayeslink.pairs.source import Ints, Pairs, count_levels
from bayeslink.pairs.vectors import distinct_vectors


def kernel_model(structure: Structure, listed: tuple[Pairs, ...]) -> Model:
    """The structure as the kernels want it; counts of all pairs are not below those listed."""
    priors, counts = structure.priors, structure.all_counts
    of_listed = [count_levels(pairs.levels, counts.shape[1]) for pairs in listed]
    seen = of_listed[0] + of_listed[1]
    all_counts = at_least(counts, sum(of_listed[1:], of_listed[0]))
    _check_shapes(priors, all_counts - seen)
    errors = structure.errors
    if errors is None:
        n = len(priors.used)
        empty = np.zeros((n, 1))
        errors = ErrorPriors(np.zeros(n, np.int64), empty, np.zeros(priors.used.shape), 0.0)
    return Model(
        alpha_m=priors.alpha_m,
        alpha_u=priors.alpha_u,
        used=priors.used,
        all_counts=all_counts,
        free=structure.tree.free(len(priors.used)),
        by_errors=int(structure.errors is not None),
        alpha_h=errors.loose,
        used_h=errors.alpha_h > 0,
        alpha_level=errors.alpha_level,
        wrong=priors.used & ~errors.right,
        right=priors.used & errors.right,
        centre=errors.centre,
        spread=errors.spread,
        tie=errors.tie,
        thinning=np.zeros((1, 1, 1)) if errors.thinning is None else errors.thinning,
    )


def describe_vectors(structure: Structure, levels: NDArray[np.uint8]) -> Vectors:
    """Comparison vectors with all that their weights need."""
    seen, wrong = levels > 0, np.zeros(levels.shape, bool)
    if structure.errors is not None:
        seen, wrong = structure.errors.seen_and_wrong(levels)
    sets, _, seen_set = distinct_vectors(seen)
    return Vectors(
        levels=np.ascontiguousarray(levels),
        n_missing=(~seen).sum(1),
        n_wrong=wrong.sum(1),
        seen_set=seen_set,
        fixed_log_u=structure.tree.log_u(levels),
        sets=sets,
    )


def start_parameters(structure: Structure, model: Model, vectors: Vectors, counts: Ints) -> State:
    """m and u to start from: their means, given how many links have which pattern."""
    levels = count_levels(np.repeat(vectors.levels, counts, axis=0), model.all_counts.shape[1])
    log_m, log_u = (
        np.log(np.where(model.used, proportions(alpha + n, model.used), 1.0))
        for alpha, n in (
            (model.alpha_m, levels),
            (model.alpha_u, other_counts(model.all_counts, levels)),
        )
    )
    errors = structure.errors
    if errors is None:
        no = np.zeros((len(log_m), 1))
        return State(log_m, log_u, no, np.zeros(len(log_m)), np.zeros(log_m.shape))
    law = error_mode(errors, vectors.levels[1:], counts[1:])
    return State(log_m, log_u, law.log_h, law.log_r, law.log_level)


def _check_shapes(priors: Priors, others: Ints) -> None:
    """Refuse Dirichlet parameters that are not positive: a draw with them would never end.

    `others` are the level counts of u with every candidate linked, the fewest there can be.
    """
    shapes = np.stack([priors.alpha_m, priors.alpha_u + others])[:, priors.used]
    if not (shapes > 0).all():
        raise BayeslinkError(
            f"m and u cannot be drawn: a Dirichlet parameter is {shapes.min():g}, and all should "
            "be positive, whatever the data and the settings. Please report this fault."
        )
