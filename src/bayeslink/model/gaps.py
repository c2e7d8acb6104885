"""One law of errors for complete and incomplete links.

If a gap says nothing of whether the other fields are wrong (the paper's ignorable gaps), then from
h₀, the law of the number of wrong fields among all, follows that among the fields seen:

    h[a, e] = Σ_t T[a, e, t] · h₀[t],

where T[a, e, t] is the chance that of t wrong fields e are seen, a being missing. Records need not
be like that: dirty ones may also be incomplete. So this is what each row of h is expected to be,
and how many pairs that expectation is worth (`tie`) is told from the links, by marginal likelihood.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from bayeslink.model.error_counts import (
    ErrorPriors,
    counts_by_errors,
    mode_of_odds,
)
from bayeslink.pairs.source import Floats, Ints

_WORTH = np.exp(np.arange(1.0, 9.0))  # pairs that the expectation may be worth
_ROUNDS = 200  # of EM for h₀


def tied(
    priors: ErrorPriors, levels: NDArray[np.uint8], counts: Ints, all_counts: Ints
) -> ErrorPriors:
    """Priors in which the rows of h are tied, as links with these comparison vectors have it.

    `all_counts` are the level counts of all pairs: how often each field is missing.
    """
    by_errors = counts_by_errors(priors, levels, counts)
    thinning = thinned(mode_of_odds(priors, levels, counts), all_counts)
    usual = _usual(priors.alpha_h[0], thinning, by_errors)
    worth = _WORTH[max(_WORTH[0], counts.sum()) >= _WORTH]
    rows = [replace(priors, tie=float(k), thinning=thinning, usual=usual) for k in worth]
    return max(rows, key=lambda tied: (_evidence(tied, by_errors), tied.tie))


def thinned(log_r: Floats, all_counts: Ints) -> Floats:
    """T[missing, wrong and seen, wrong]: over the sets of fields that may be missing."""
    n = len(log_r)
    missing = (all_counts[:, 0] + 0.5) / (all_counts.sum(1) + 1.0)
    odds, r = missing / (1 - missing), np.exp(log_r - log_r.mean())
    odds = odds / odds.max()
    sums = np.zeros((n + 1,) * 3)  # of products, by fields missing, wrong and seen, wrong and not
    sums[0, 0, 0] = 1.0
    for o, x in zip(odds, r, strict=True):
        more = sums.copy()
        more[:, 1:] += x * sums[:, :-1]
        more[1:] += o * sums[:-1]
        more[1:, :, 1:] += o * x * sums[:-1, :, :-1]
        sums = more
    out = np.zeros_like(sums)
    for t in range(n + 1):
        for e in range(t + 1):
            out[:, e, t] = sums[:, e, t - e]
    return out / np.maximum(out.sum(1, keepdims=True), 1e-300)


def _usual(alpha: Floats, thinning: Floats, by_errors: Ints) -> Floats:
    """h₀ of highest posterior density, where all rows follow from it."""
    h = alpha / alpha.sum()
    for _ in range(_ROUNDS):
        from_each = thinning * h
        share = from_each / np.maximum(from_each.sum(2, keepdims=True), 1e-300)
        h = alpha + (by_errors[:, :, None] * share).sum((0, 1))
        h /= h.sum()
    return h


def _evidence(priors: ErrorPriors, by_errors: Ints) -> float:
    """Log marginal likelihood of the incomplete links' numbers of wrong fields."""
    total = 0.0
    for alpha, n in zip(priors.shapes[1:], by_errors[1:], strict=True):
        used = alpha > 0
        alpha, n = alpha[used], n[used]
        total += gammaln(alpha.sum()) - gammaln(alpha.sum() + n.sum())
        total += (gammaln(alpha + n) - gammaln(alpha)).sum()
    return float(total)
