"""Distinct numbers, beside NumPy's."""

import numpy as np
import pytest

from bayeslink.distinct import distinct


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint64, np.uint8])
@pytest.mark.parametrize("n", [0, 1, 2, 1000])
def test_as_numpy_has_them(n, dtype):
    values = np.random.default_rng(n).integers(0, 200, n).astype(dtype)
    found = distinct(values)
    assert found.dtype == dtype
    assert found.tolist() == sorted({*values.tolist()})
