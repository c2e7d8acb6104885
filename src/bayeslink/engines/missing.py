"""Records by which fields they lack, and pairs of records by what is missing in either."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bayeslink.pairs.source import Floats
from bayeslink.pairs.vectors import distinct_vectors

PRESENT, MISSING, EITHER = 0, 1, 2
_ALL_CLASSES = 11  # fields (and a flag) up to which every set of missing ones is its own class
_MAX_CLASSES = 32  # classes of a file beyond that; the rarer ones are thrown together


@dataclass(frozen=True, slots=True)
class Classes:
    """Records of a file by which fields they lack."""

    states: NDArray[np.int8]  # one row a class: PRESENT, MISSING, or EITHER where thrown together
    of: NDArray[np.int32]  # class of each record


@dataclass(frozen=True, slots=True)
class Unions:
    """Pairs by the fields that are missing in either record."""

    states: NDArray[np.int8]  # one row a union
    of: NDArray[np.int32]  # [class of A, class of B]
    n_pairs: Floats  # pairs in scope with each union


def missing_classes(missing: NDArray[np.bool_]) -> Classes:
    """Group records by the set of fields that they lack (`missing`: one row a record)."""
    n_fields = missing.shape[1]
    _, first, of = distinct_vectors(missing[:, ::-1])
    states = missing[first].astype(np.int8)
    if n_fields > _ALL_CLASSES and len(first) > _MAX_CLASSES:
        common = np.argsort(-np.bincount(of), kind="stable")[:_MAX_CLASSES]
        number = np.full(len(first), _MAX_CLASSES)
        number[common] = np.arange(_MAX_CLASSES)
        states = np.vstack([states[common], np.full((1, n_fields), EITHER, np.int8)])
        of = number[of]
    return Classes(states, of.astype(np.int32))


def join_classes(a: Classes, b: Classes, n_pairs: Floats) -> Unions:
    """Unions of two files' classes; `n_pairs` counts pairs by the classes of both."""
    x, y = a.states[:, None, :], b.states[None, :, :]
    lacking = np.where((x == MISSING) | (y == MISSING), MISSING, np.maximum(x, y))
    states = lacking.reshape(-1, lacking.shape[2])
    _, first, of = distinct_vectors(states[:, ::-1])
    counts = np.bincount(of, n_pairs.ravel(), len(first)).astype(np.float64)
    return Unions(states[first], of.reshape(n_pairs.shape).astype(np.int32), counts)
