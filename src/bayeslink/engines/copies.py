"""Records that are copies of each other: equal in all that is compared, and hardly so by chance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bayeslink.comparing.dictionaries import Dictionary
from bayeslink.pairs.hashing import mix64
from bayeslink.pairs.source import Ints

_BY_CHANCE = 0.1  # other records with the same values, expected if fields were independent


def copies(dictionaries: Sequence[Dictionary], block: tuple[Ints, Ints]) -> tuple[Ints, Ints]:
    """Of each record of A and of B, the row of its first copy: its own, if it has no other.

    Two records are copies if they hold the same values (or nothing) in all compared fields and
    blocking keys, and if these are so rare that fewer than a tenth of a record is expected to share
    them by chance. Records that only say "female, 34" are different people.
    """
    found = []
    one_file = block[0] is block[1]
    for side in (0,) if one_file else (0, 1):
        own = [(d.a, d.b)[side] for d in dictionaries]
        digest = mix64(block[side].astype(np.uint64))  # of the values: 64 bits tell all apart
        chance = np.full(len(digest), float(len(digest)))
        for codes in own:
            digest = mix64(digest ^ mix64(codes.codes.astype(np.uint64)))
            share = codes.counts / max(1, len(digest))
            share[-1] = 1.0  # missing: tells nobody apart
            chance *= share[codes.codes]
        _, first, group = np.unique(digest, return_index=True, return_inverse=True)
        found.append(np.where(chance < _BY_CHANCE, first[group], np.arange(len(group))))
    return found[0], found[-1]
