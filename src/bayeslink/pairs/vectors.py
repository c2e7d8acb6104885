"""Distinct comparison vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayeslink.pairs.source import Ints


def distinct_vectors(levels: NDArray[Any]) -> tuple[NDArray[Any], Ints, Ints]:
    """The distinct rows in rising order, where each is first, and which of them each row is.

    As `np.unique(levels, axis=0)` has it, in a tenth of the time: rows become whole numbers first.
    """
    number, end = np.zeros(len(levels), np.int64), 1  # numbers are below `end`
    for column in levels.T:
        radix = int(column.max(initial=0)) + 1
        if end * radix >= 2**63:
            number = np.unique(number, return_inverse=True)[1]
            end = int(number.max()) + 1
        number = number * radix + column
        end *= radix
    _, first, number = np.unique(number, return_index=True, return_inverse=True)
    return np.ascontiguousarray(levels[first]), first, number
