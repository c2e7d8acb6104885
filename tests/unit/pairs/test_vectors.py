"""Distinct comparison vectors against NumPy's own way."""

import numpy as np
import pytest

from bayeslink.pairs.vectors import distinct_vectors


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (500, 2), (2000, 7), (2000, 40)])
@pytest.mark.parametrize("most", [1, 4, 255])
def test_distinct_vectors_are_those_of_numpy(shape, most):
    """In 40 fields with 255 levels there are more vectors than whole numbers."""
    rng = np.random.default_rng(1)
    levels = rng.integers(0, most + 1, shape).astype(np.uint8)
    levels = np.concatenate([levels, levels[::3]])
    found = distinct_vectors(levels)
    expected = np.unique(levels, axis=0, return_index=True, return_inverse=True)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs.reshape(ours.shape))
    assert found[0].flags["C_CONTIGUOUS"]
