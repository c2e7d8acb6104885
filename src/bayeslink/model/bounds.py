"""The tightest additive bound of weights, for a search at a given threshold.

A search wants weights that add up over fields. Where m depends on how many fields are wrong, they
do not; any table of weights whose sums are nowhere below the true ones will do, and the better it
is, the fewer pairs are looked at in vain. Of all such tables this is the one that puts fewest pairs
above the threshold, about: a linear programme over a constant and, for each field, what it adds if
missing and if wrong; pairs count by how far they come to lie above.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from scipy import sparse

from bayeslink.model.error_counts import ErrorLaw, log_symmetric
from bayeslink.pairs.source import Floats

_MOST_STATES = 20_000  # of missing, wrong and right fields
_MOST_PATTERNS = 1500  # that are counted, the most frequent
_SAFE = 1e-6  # by which the bound is above what the programme says: it solves to 1e-7


def tightest(
    law: ErrorLaw,
    usual: Floats,
    patterns: np.ndarray,
    weights: Floats,
    n_pairs: Floats,
    threshold: float,
) -> Floats:
    """[field, level], to take the place of `usual` at a threshold.

    `n_pairs` is about how many pairs have each of the `patterns`, which weigh `weights`.
    """
    n = len(law.log_r)
    if 3**n > _MOST_STATES:
        return usual
    at = np.arange(n)
    above = usual[at, patterns].sum(1) > threshold
    vain = np.flatnonzero(above & (weights <= threshold) & (n_pairs > 0))
    vain = vain[np.argsort(-n_pairs[vain], kind="stable")[:_MOST_PATTERNS]]
    if not len(vain):
        return usual
    states = np.array(list(product((0, 1, 2), repeat=n)))  # missing, wrong, right
    missing, wrong = states == 0, states == 1
    of_state = law.log_h[missing.sum(1), wrong.sum(1)] + wrong @ law.log_r
    sets, which = np.unique(~missing, axis=0, return_inverse=True)
    of_state -= log_symmetric(law.log_r, sets)[which.ravel(), wrong.sum(1)]
    # A level's own part: what the table holds beside the law of wrong fields
    own = _own_parts(law, usual)
    seen, is_wrong = law.priors.seen_and_wrong(patterns[vain])
    rest = own[at, patterns[vain]].sum(1)
    ones, slack = np.ones((len(states), 1)), sparse.eye_array(len(vain))
    holds = sparse.csr_array(np.hstack([ones, missing, wrong]))
    counted = sparse.csr_array(np.hstack([np.ones((len(vain), 1)), ~seen, is_wrong]))
    rows: Any = sparse.block_array([[-holds, None], [counted, -slack]], format="csr")
    cost = np.concatenate([np.zeros(2 * n + 1), n_pairs[vain] / n_pairs[vain].sum()])
    cost[: 2 * n + 1] = 1e-6 * np.concatenate([[1.0], missing.mean(0), wrong.mean(0)])
    from scipy.optimize import linprog  # .1 s to import, and seldom needed

    found = linprog(
        cost,
        A_ub=rows,
        b_ub=np.concatenate([-of_state, threshold - rest]),
        bounds=[(None, None)] * (2 * n + 1) + [(0, None)] * len(vain),
        method="highs",
    )
    if found.status != 0 or found.x is None:
        return usual
    start, of_missing, of_wrong = found.x[0], found.x[1 : n + 1], found.x[n + 1 : 2 * n + 1]
    right = law.priors.right
    table = own + np.where(right, 0.0, of_wrong[:, None])
    table[law.priors.alpha_level == 0] = 0.0
    table[:, 0] = of_missing
    law.cover(table)
    table[0] += start + _SAFE * (1 + abs(start))
    listed = [n_pairs[t[at, patterns].sum(1) > threshold].sum() for t in (usual, table)]
    return table if listed[1] < listed[0] else usual


def _own_parts(law: ErrorLaw, usual: Floats) -> Floats:
    """[field, level]: log P(level | wrong or right) − least log u."""
    plain = law.bound()
    own = usual - plain + law.log_level  # `usual` is the plain bound less the least log u
    own[:, 0] = 0.0
    own[law.priors.alpha_level == 0] = 0.0
    return own
