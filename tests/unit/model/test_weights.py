"""Level counts that are estimates, made to hold the pairs that are known to be there."""

import numpy as np
import pytest

from bayeslink.errors import BayeslinkError
from bayeslink.model.weights import at_least, other_counts


@pytest.mark.parametrize("trial", range(50))
def test_counts_are_raised_to_what_is_seen_and_still_add_up(trial):
    rng = np.random.default_rng(trial)
    true = rng.integers(0, 10 ** rng.integers(1, 12, (4, 6)))
    seen = rng.binomial(np.minimum(true, 10**6), rng.choice([0.1, 0.9, 1.0]))
    estimate = true.copy()
    for row in estimate:  # as a sample may have it: pairs at the wrong levels, missing ones right
        row[1:] = rng.multinomial(row[1:].sum(), rng.dirichlet(np.full(5, 0.3)))
    found = at_least(estimate, seen)
    assert found.dtype == np.int64
    assert (found >= seen).all()
    np.testing.assert_array_equal(found.sum(1), true.sum(1))
    np.testing.assert_array_equal(found[:, 0], true[:, 0])
    enough = (estimate >= seen).all(1)
    np.testing.assert_array_equal(found[enough], estimate[enough])
    np.testing.assert_array_equal(at_least(true, seen), true)
    np.testing.assert_array_equal(other_counts(estimate, seen), found - seen)


def test_what_is_lacking_is_taken_in_proportion():
    found = at_least(np.array([[7, 1000, 100, 0, 40]]), np.array([[0, 0, 0, 99, 40]]))
    np.testing.assert_array_equal(found, [[7, 910, 91, 99, 40]])


def test_counts_that_cannot_hold_what_is_seen_are_refused():
    with pytest.raises(BayeslinkError, match=r"12 pairs .* only 10 counted.*report"):
        at_least(np.array([[50, 4, 6]]), np.array([[0, 12, 0]]))
