"""The modes that a fit has found, written down now and then, and what they hang on."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa

from bayeslink import __version__
from bayeslink.checkpoints import Checkpoints
from bayeslink.kernels import SOURCES
from bayeslink.pairs.source import PairSource
from bayeslink.runs.state import as_arrays, from_arrays


class FitJournal:
    """Values in checkpoints of their own, `fit-0`, `fit-1`, …"""

    def __init__(self, checkpoints: Checkpoints, pairs: PairSource) -> None:
        self._checkpoints, self._pairs = checkpoints, pairs
        self._written, self._waiting = 0, list[Any]()
        self._since = time.monotonic()

    def read(self) -> Iterator[Any]:
        """What was written before the run was interrupted."""
        for number in count():
            arrays = self._checkpoints.load(f"fit-{number}")
            if arrays is None:
                return
            self._written = number + 1
            yield from_arrays(arrays, self._pairs)

    def add(self, value: Any) -> None:
        """Write it down, or, if little time went by since the last, later."""
        self._waiting.append(value)
        if not self._checkpoints.due(self._since):
            return
        for each in self._waiting:
            self._checkpoints.save(f"fit-{self._written}", as_arrays(each))
            self._written += 1
        self._waiting, self._since = [], time.monotonic()


def made_with(known: pa.Table | None, learned: Sequence[Any]) -> dict[str, str]:
    """What the work of a run hangs on beside its settings and files: labels, a model, versions."""
    labels = "" if known is None else str(known.to_pylist())
    return {
        "what is judged (labels)": sha256(labels.encode()).hexdigest(),
        "what was learned before (model)": sha256(str([*learned]).encode()).hexdigest(),
        "the version of bayeslink": f"{__version__} {SOURCES} {np.__version__}",
    }
