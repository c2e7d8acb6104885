"""The state of a chain as named arrays, and back: what a checkpoint of the sampling holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayeslink.checkpoints import Arrays
from bayeslink.inference.error_counts import ErrorLaw, ErrorPriors


@dataclass(slots=True)
class Kept:
    """Of every draw whose links are kept: the edges, the low pairs, the far pairs, the law."""

    edges: list[NDArray[np.int32]] = field(default_factory=list)
    low: list[NDArray[np.int64]] = field(default_factory=list)
    far: list[NDArray[np.int64]] = field(default_factory=list)
    laws: list[ErrorLaw | None] = field(default_factory=list)


def written(parts: dict[str, Any], kept: Kept, ended: Sequence[NDArray[Any]]) -> Arrays:
    """The arrays of the parts (named tuples), of what was kept and of the far links that ended."""
    out = {f"{part}.{key}": array for part, key, array in _arrays(parts)}
    for name, lists in _lists(kept, ended):
        out[f"{name}.n"] = np.array([len(one) for one in lists], np.int64)
        out[f"{name}.all"] = np.concatenate(lists) if lists else np.zeros(0, np.int64)
    laws = [law for law in kept.laws if law is not None]
    if laws:
        for key in ("log_h", "log_r", "log_level"):
            out[f"law.{key}"] = np.stack([getattr(law, key) for law in laws])
    return out


def restore(
    found: Arrays, parts: dict[str, Any], priors: ErrorPriors | None
) -> tuple[Kept, list[NDArray[Any]]]:
    """Fill the arrays of the parts in place; what was kept, and the far links that ended."""
    for part, key, array in _arrays(parts):
        array[...] = found[f"{part}.{key}"]
    edges, low, far, ended = (
        [
            one.copy()
            for one in np.split(found[f"{name}.all"], np.cumsum(found[f"{name}.n"])[:-1])
            if len(found[f"{name}.n"])
        ]
        for name in ("edges", "low", "far", "ended")
    )
    laws: list[ErrorLaw | None] = [None] * len(edges)
    if priors is not None and "law.log_h" in found:
        rows = zip(found["law.log_h"], found["law.log_r"], found["law.log_level"], strict=True)
        laws = [ErrorLaw(priors, *(array.copy() for array in row)) for row in rows]
    return Kept([one.astype(np.int32) for one in edges], low, far, laws), ended


def _arrays(parts: dict[str, Any]) -> list[tuple[str, str, NDArray[Any]]]:
    return [
        (part, key, value)
        for part, values in parts.items()
        for key, value in values._asdict().items()
        if isinstance(value, np.ndarray)
    ]


def _lists(kept: Kept, ended: Sequence[NDArray[Any]]) -> list[tuple[str, Sequence[Any]]]:
    return [("edges", kept.edges), ("low", kept.low), ("far", kept.far), ("ended", ended)]
