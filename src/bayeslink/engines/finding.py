"""Pairs named by ids, as rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bayeslink.data.id_pairs import id_pairs
from bayeslink.errors import InputError
from bayeslink.pairs.source import Ints

Rows = NDArray[np.int32]


def ordered(a: Rows, b: Rows) -> tuple[Rows, Rows]:
    """Pairs of one file, the lower row first; a record with itself is refused."""
    if (a == b).any():
        raise InputError(
            f"{(a == b).sum():,} of the pairs named are a record with itself. Within a file a pair "
            "is two different records; drop these."
        )
    return np.minimum(a, b), np.maximum(a, b)


def rows_named(
    ids: Any,
    rows_of: Sequence[Callable[[pa.ChunkedArray], pa.Array]],
    labels: Sequence[str],
    block_of: Sequence[Ints],
) -> tuple[Rows, Rows]:
    """Rows of A and of B of the pairs named, all of which must exist and be in scope.

    Parameters
    ----------
    rows_of
        For each file, where given ids are; null for one that is not there.
    block_of
        For each file, the block of the blocking key of each record; −1 for none.
    """
    named = id_pairs(ids, "the pairs")
    rows: list[Rows] = []
    for side, find in enumerate(rows_of):
        at = find(named.column(side))
        if unknown := at.null_count:
            raise InputError(
                f"{unknown} ids named in pairs are not in {labels[side]}. "
                "Ids are compared as text; check the column order (id_a, id_b)."
            )
        rows.append(at.to_numpy(zero_copy_only=False).astype(np.int32))
    a, b = block_of[0][rows[0]], block_of[1][rows[1]]
    if not ((a == b) & (a >= 0)).all():
        raise InputError(
            "some of the pairs named lie outside the blocking key's scope, where no pair may "
            "link. Drop them, or the blocking key."
        )
    return rows[0], rows[1]
