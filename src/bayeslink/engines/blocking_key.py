"""The blocking key: which records may link at all, as one number for each record."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bayeslink.comparing.dictionaries import encode
from bayeslink.comparing.fields import Field
from bayeslink.data.records import Records
from bayeslink.pairs.source import Ints


def block_keys(a: Records, b: Records, block: Sequence[Field]) -> tuple[Ints, Ints]:
    """Number of each record's block of the blocking key; −1 where a part of the key is missing.

    Each part is an `exact` field, so that keys are normalised as fields are. Blocks are numbered
    anew after each part: there are never more numbers than records, whatever the parts' values.
    One file, given as both, has one array of them.
    """
    keys = np.zeros(len(a) + len(b), np.int64)
    for part in block:
        codes, n_values = _numbered_values(part, a, b)
        there = (keys >= 0) & (codes >= 0)
        _, keys[there] = np.unique(keys[there] * n_values + codes[there], return_inverse=True)
        keys[~there] = -1
    of_a = keys[: len(a)]
    return of_a, of_a if a is b else keys[len(a) :]


def _numbered_values(part: Field, a: Records, b: Records) -> tuple[Ints, int]:
    """Number of each record's value in either file, −1 if missing, and the number of values."""
    of_a = encode(part, a, 0)
    sides = of_a, of_a if a is b else encode(part, b, 1)
    values = sorted({*sides[0].values, *sides[1].values})
    number = {value: i for i, value in enumerate(values)}
    codes = [np.array([*(number[v] for v in s.values), -1], np.int64)[s.codes] for s in sides]
    return np.concatenate(codes), len(values)


def finer(block: Ints, groups: Ints) -> Ints:
    """Blocks of records that share both their block and their group; −1 of those in no one."""
    there = (block >= 0) & (groups >= 0)
    out = np.full(len(block), -1, np.int64)
    both = block[there] * (int(groups.max(initial=0)) + 1) + groups[there]
    out[there] = np.unique(both, return_inverse=True)[1]
    return out
