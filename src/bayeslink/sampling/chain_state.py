"""The state of a chain as named arrays, and back: what a checkpoint of the sampling holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayeslink.checkpoints import Arrays
from bayeslink.kernels.sampling import Log
from bayeslink.pairs.source import Ints

_NONE = np.zeros(0, np.int64)


@dataclass(slots=True)
class Kept:
    """Links of the draws that are kept, of so many draws at a time, and their numbers by draw."""

    links: list[Ints] = field(default_factory=list)
    n_links: list[Ints] = field(default_factory=list)

    def take(self, log: Log) -> None:
        """What is in the log, which is empty then."""
        n_draws, n_links = log.size
        self.links.append(log.links[:n_links].copy())
        self.n_links.append(log.n_links[:n_draws].copy())
        log.size[:] = 0


def written(parts: dict[str, Any], kept: Kept, ended: Sequence[Ints]) -> Arrays:
    """The arrays of the parts (named tuples), of what was kept and of the far links that ended."""
    return {
        **arrays_of(parts),
        "kept.links": np.concatenate([_NONE, *kept.links]),
        "kept.n_links": np.concatenate([_NONE, *kept.n_links]),
        "ended": np.concatenate([np.zeros((0, 4), np.int64), *ended]),
    }


def restore(found: Arrays, parts: dict[str, Any]) -> tuple[Kept, list[Ints]]:
    """Fill the arrays of the parts in place; what was kept, and the far links that ended."""
    fill(parts, found)
    return Kept([found["kept.links"]], [found["kept.n_links"]]), [found["ended"]]


def arrays_of(parts: dict[str, Any]) -> Arrays:
    """The arrays of named tuples, by the names of both."""
    return {f"{part}.{key}": array for part, key, array in _arrays(parts)}


def fill(parts: dict[str, Any], found: Arrays) -> None:
    """Fill the arrays of named tuples in place."""
    for part, key, array in _arrays(parts):
        array[...] = found[f"{part}.{key}"]


def _arrays(parts: dict[str, Any]) -> list[tuple[str, str, NDArray[Any]]]:
    return [
        (part, key, value)
        for part, values in parts.items()
        for key, value in values._asdict().items()
        if isinstance(value, np.ndarray)
    ]
