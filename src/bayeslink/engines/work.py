"""Pieces of work in threads; the results in order, whatever the number of threads."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from bayeslink.threads import run_all

MAX_PIECES = 1024  # so that one takes well under a second even of 10^12 pairs
_PIECE = 2_000_000.0  # cost of a piece, in pairs, below which it is not worth a thread


def in_pieces(work: Callable[[int, int, int], Any], n: int, cost: float, threads: int) -> list[Any]:
    """Results of `work(first, last, piece)` over pieces of 0 … n, which cost about `cost` pairs."""
    n_pieces = int(np.clip(cost / _PIECE, 1, MAX_PIECES))
    edges = np.linspace(0, n, n_pieces + 1).astype(int).tolist()
    pieces = [partial(work, first, last, i) for i, (first, last) in enumerate(pairwise(edges))]
    return run_all(pieces, threads)
