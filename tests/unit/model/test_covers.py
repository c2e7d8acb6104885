"""A level that covers another field: what goes with that field's agreement goes with the level."""

from dataclasses import replace

import numpy as np
import pytest

from bayeslink.model.dependence import Cover, Dependence, Tree

# given (3 levels, the second: half swapped with family), family (2), street (2)
WHOLE = np.array([0.0, 0.9, 0.1])
GIVEN_STREET = np.array([[0.0, 0.9, 0.1], [0.0, 0.99, 0.01], [0.0, 0.4, 0.6]])
SWAP = Cover(by=0, level=2, field=1, agrees=2)


def log(p):
    return np.log(p, where=p > 0, out=np.zeros_like(p))


def tree(field, on):
    return Tree((Dependence(field, on, 1.0, 10.0, log(GIVEN_STREET)),), covers=(SWAP,))


@pytest.mark.parametrize(("field", "on"), [(1, 2), (2, 1)])
def test_a_swapped_name_goes_with_the_street(field, on):
    """Whichever of the two depends on the other; never less likely than without the cover."""
    covered, plain = tree(field, on), replace(tree(field, on), covers=())
    vectors = np.array([[2, 0, 2], [2, 0, 1], [3, 0, 2], [2, 0, 0], [1, 2, 2]], np.uint8)
    more = covered.log_u(vectors) - plain.log_u(vectors)
    both = np.log(0.6 / 0.1)  # against the street, or the family name, agreeing on the whole
    np.testing.assert_allclose(more, [both, max(0, more[1]), 0, 0, 0], atol=1e-12)
    assert (more >= 0).all()
    assert (vectors[:, 1] == [0, 0, 0, 0, 2]).all()  # nothing is changed in place
