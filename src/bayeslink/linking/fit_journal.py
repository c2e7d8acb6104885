"""The modes that a fit has found, written down now and then."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import count
from typing import Any

from bayeslink.checkpoints import Checkpoints
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
