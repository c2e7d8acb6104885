"""Numbers that stand for records: which block of the blocking key, and who wins a tie."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bayeslink.comparing.dictionaries import encode
from bayeslink.comparing.fields import Field
from bayeslink.data.records import Records
from bayeslink.pairs.source import Ints
from bayeslink.pairs.ties import mix64


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


def tie_keys(
    a: Records, b: Records, fields: Sequence[Field]
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """A number for each record by which ties are broken.

    It depends on the record's id and file, not on row order or on which file is called A.
    """
    orders = [pc.sort_indices(records.ids) for records in (a, b)]
    contents = [
        _contents(records, order, [c for f in fields for c in f.columns[side]])
        for side, (records, order) in enumerate(zip((a, b), orders, strict=True))
    ]
    a_first = contents[0] <= contents[1]
    keys = []
    for order, salt in zip(orders, (0, 1) if a_first else (1, 0), strict=True):
        rank = np.empty(len(order), np.uint64)
        rank[order.to_numpy()] = np.arange(len(order), dtype=np.uint64)
        keys.append(mix64(rank * np.uint64(2) + np.uint64(salt)))
    return keys[0], keys[1]


def _contents(records: Records, order: pa.Array, columns: Sequence[str]) -> tuple[int, str]:
    """What tells two files apart whatever their row order."""
    digest = hashlib.sha256()
    for column in (records.ids, *(records.columns[name] for name in columns)):
        texts = pc.fill_null(column.cast(pa.large_string()), "\0").take(order)
        _, offsets, characters = texts.buffers()
        digest.update(offsets)
        digest.update(characters or b"")
    return len(records), digest.hexdigest()
