"""Which block of the blocking key each record is in."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bayeslink.comparing.dictionaries import encode
from bayeslink.comparing.fields import Field
from bayeslink.data.records import Records
from bayeslink.pairs.source import Ints


def block_keys(a: Records, b: Records, block: Sequence[Field]) -> tuple[Ints, Ints]:
    """Number of each record's block of the blocking key; −1 where a part of the key is missing.

    Each part is an `exact` field, so that keys are normalised as fields are.
    """
    keys = np.zeros(len(a), np.int64), np.zeros(len(b), np.int64)
    for part in block:
        sides = encode(part, a, 0), encode(part, b, 1)
        union = sorted({*sides[0].values, *sides[1].values})
        number = {value: i for i, value in enumerate(union)}
        for key, side in zip(keys, sides, strict=True):
            codes = np.array([*(number[v] for v in side.values), -1], np.int64)[side.codes]
            key[:] = np.where((key < 0) | (codes < 0), -1, key * len(union) + codes)
    both = np.concatenate(keys)
    _, dense = np.unique(both[both >= 0], return_inverse=True)
    both[both >= 0] = dense
    return both[: len(a)], both[len(a) :]
