"""Complete and incomplete links: one law as far as the links say so."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

import bayeslink as bl
from bayeslink.model.error_counts import ErrorPriors, error_mode, log_prior
from bayeslink.model.gaps import thinned, tied

FIELDS = [bl.exact(name) for name in "wxyz"]
PRIORS = ErrorPriors.of(FIELDS)
LOG_R = np.array([0.8, -0.3, 0.1, -0.6])
MISSING = np.array([0.05, 0.2, 0.1, 0.4])
ALL = np.column_stack([1e6 * MISSING, 9e5 * (1 - MISSING), 1e5 * (1 - MISSING)]).astype(int)


def test_thinning_is_a_sum_over_what_may_be_missing():
    found = thinned(LOG_R, ALL)
    r, odds = np.exp(LOG_R), MISSING / (1 - MISSING)
    for a, t in itertools.product(range(5), range(5)):
        wanted, total = np.zeros(5), 0.0
        for missing in itertools.combinations(range(4), a):
            for wrong in itertools.combinations(range(4), t):
                p = odds[list(missing)].prod() * r[list(wrong)].prod()
                wanted[len(set(wrong) - set(missing))] += p
                total += p
        np.testing.assert_allclose(found[a, :, t], wanted / total, atol=1e-5)


def links(n, dirty, seed=1):
    """Comparison vectors of links; incomplete ones have that many times as many fields wrong."""
    rng = np.random.default_rng(seed)
    seen = rng.random((n, 4)) >= MISSING
    share = np.where(seen.all(1), 0.1, 0.1 * dirty)[:, None]
    levels = np.where(rng.random((n, 4)) < share, 1, 2) * seen
    return np.unique(levels.astype(np.uint8), axis=0, return_counts=True)


def test_rows_are_tied_where_gaps_say_nothing_and_loose_where_they_do():
    same, other = (tied(PRIORS, *links(2000, dirty), ALL) for dirty in (1, 5))
    assert same.tie > 500
    assert other.tie < 50
    few = tied(PRIORS, *links(60, 1), ALL)
    assert few.tie <= 60


def test_a_row_without_links_follows_from_the_others():
    levels, counts = links(2000, 1)
    at = (levels == 0).sum(1) < 2
    found = error_mode(tied(PRIORS, levels[at], counts[at], ALL), levels[at], counts[at])
    free = error_mode(PRIORS, levels[at], counts[at])
    h, of_free = (np.exp(law.log_h) for law in (found, free))
    np.testing.assert_allclose(h[2, :3], [0.81, 0.18, 0.01], atol=0.03)
    assert of_free[2, 2] > 0.1 > 3 * h[2, 2]  # "everything seen is wrong"
    np.testing.assert_allclose(h.sum(1), [1 + (h[a] == 1).sum() - (a == 4) for a in range(5)])


@pytest.mark.parametrize("seed", range(3))
def test_the_mode_is_the_mode_with_row_0_as_in_the_fit(seed):
    levels, counts = links(300, 1, seed)
    priors = tied(PRIORS, levels, counts, ALL)
    found = error_mode(priors, levels, counts)

    def value(law):
        return counts @ law.log_m(levels) + log_prior(law)

    for k in range(5):
        other = priors.draw(np.random.default_rng(k))
        assert value(replace(found, log_h=other.log_h)) <= value(found)


def test_a_law_drawn_has_its_rows_near_what_follows_from_row_0():
    priors = replace(PRIORS, tie=1e6, thinning=thinned(LOG_R, ALL), usual=np.full(5, 0.2))
    for seed in range(5):
        h = np.exp(priors.draw(np.random.default_rng(seed)).log_h)
        for a in (1, 2, 3):
            wanted = priors.thinning[a] @ h[0]
            np.testing.assert_allclose(h[a, : 5 - a], wanted[: 5 - a], atol=0.01)
