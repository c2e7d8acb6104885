"""Pieces of work, by threads or by other machines; the results in order, whoever did them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from bayeslink.threads import Workers, run_pieces

MAX_PIECES = 1024  # so that one takes well under a second even of 10^12 pairs
_PIECE = 2_000_000.0  # cost of a piece, in pairs, below which it is not worth a thread
_SECONDS = 1e-8  # of one CPU, about, for a pair


def in_pieces(
    work: Callable[[int, int, int], Any],
    n: int,
    cost: float,
    workers: int | Workers,
    use: Callable[[Any], Any] = lambda found: found,
) -> list[Any]:
    """What `use` makes of `work(first, last, piece)` over pieces of 0 … n.

    They cost about `cost` pairs. `use` is called in this process, by whomever the work is done.
    """
    n_pieces = int(np.clip(cost / _PIECE, 1, MAX_PIECES))
    edges = np.linspace(0, n, n_pieces + 1).astype(int).tolist()
    pieces = [(first, last, i) for i, (first, last) in enumerate(pairwise(edges))]
    return run_pieces(work, pieces, workers, _SECONDS * cost, use)
