"""A number for each record by which ties are broken.

It is a hash of the record's id, so that any machine can make it from the record alone. Which of the
two files is hashed as the first follows from what is in them, not from which is called A: swapping
the files, or shuffling their rows, changes no key. Two ids with the same hash are not told apart;
among 10^6 records that has a chance of 10^-7.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bayeslink.comparing.fields import Field
from bayeslink.data.records import Records
from bayeslink.pairs.hashing import mix64
from bayeslink.pairs.source import Ints, Pairs

Hashes = NDArray[np.uint64]
_MISSING = np.uint64(0x5851F42D4C957F2D)


def tie_keys(a: Records, b: Records, fields: Sequence[Field]) -> tuple[Hashes, Hashes]:
    """Tie keys of two files of records, or of one given as both."""
    if a is b:
        keys = mix64(hash_texts(a.ids))
        return keys, keys
    sides = []
    for side, records in enumerate((a, b)):
        columns = [records.columns[name] for f in fields for name in f.columns[side]]
        sides.append((hash_texts(records.ids), [hash_texts(column) for column in columns]))
    return salted(*sides)


def salted(
    a: tuple[Hashes, Sequence[Hashes]], b: tuple[Hashes, Sequence[Hashes]]
) -> tuple[Hashes, Hashes]:
    """Tie keys from the hashes of ids, and of what else the records hold, in A and in B."""
    a_first = _contents(*a) <= _contents(*b)
    salts = (0, 1) if a_first else (1, 0)
    keys = [mix64(side[0] ^ np.uint64(salt)) for side, salt in zip((a, b), salts, strict=True)]
    return keys[0], keys[1]


def ranked(pairs: Pairs, keys: tuple[Hashes, Hashes], one_file: bool) -> Ints:
    """The order of pairs by their tie keys: whatever the order of rows."""
    of_a, of_b = keys[0][pairs.a], keys[1][pairs.b]
    if one_file:
        of_a, of_b = np.minimum(of_a, of_b), np.maximum(of_a, of_b)
    return np.lexsort((of_b, of_a))


def hash_texts(texts: Any) -> Hashes:
    """A 64-bit hash of each text of an Arrow array; missing ones share one of their own."""
    from bayeslink.kernels.texts import hash_texts as kernel

    if isinstance(texts, pa.ChunkedArray):
        texts = texts.combine_chunks()
    if pa.types.is_dictionary(texts.type):
        of_texts = np.append(hash_texts(texts.dictionary), _MISSING)
        codes = pc.fill_null(texts.indices, len(texts.dictionary))
        return of_texts[codes.to_numpy(zero_copy_only=False)]
    texts = texts.cast(pa.large_string())
    if not len(texts):
        return np.zeros(0, np.uint64)
    _, offsets, characters = texts.buffers()
    at = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    hashes: Hashes = kernel(at.copy(), np.frombuffer(characters or b"", np.uint8).copy())
    if texts.null_count:
        hashes[texts.is_null().to_numpy(zero_copy_only=False)] = _MISSING
    return hashes


def _contents(ids: Hashes, columns: Sequence[Hashes]) -> tuple[int, int]:
    """What tells two files apart whatever their row order: a sum over records."""
    record = ids
    for column in columns:
        record = mix64(record ^ column)
    return len(ids), int(record.sum(dtype=np.uint64))
