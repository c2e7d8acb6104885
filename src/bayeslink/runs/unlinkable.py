"""How far each record could get: its weight against an exact copy of itself in the other file.

A record that lacks much, or says only what many say, cannot be linked with certainty even if its
partner is there and was written alike. This tells records that say too little from those that have
no partner, which the probabilities of pairs do not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bayeslink.comparing.dictionaries import encode
from bayeslink.comparing.from_data import level_with_copy
from bayeslink.engines.blocking_key import block_keys
from bayeslink.engines.compare import block_fields
from bayeslink.errors import InputError
from bayeslink.model.weights import Parameters
from bayeslink.pairs.source import Floats
from bayeslink.pairs.vectors import distinct_vectors
from bayeslink.runs.inputs import records_again

if TYPE_CHECKING:
    from bayeslink.runs.run import Run

FEW_RECORDS = 300_000  # of both files, up to which a report reads them again for this
_WIDEST = 200  # bits on either side that a table goes through
COLUMNS = ("weight", "probability", "records_a", "share_a", "records_b", "share_b")


@dataclass(frozen=True, slots=True)
class CopyWeights:
    """Weight in bits of each record against a copy of itself in the other file."""

    sides: tuple[Floats, Floats]  # of A and of B, rising; −∞ without a blocking key: in no pair
    needed: float  # what a link costs, in bits

    def shares_below(self, bits: float) -> tuple[float, float]:
        """Of the records of A and of B, those that cannot reach this weight."""
        a, b = (
            float(n) / max(1, len(w)) for n, w in zip(self._below(bits), self.sides, strict=True)
        )
        return a, b

    def _below(self, bits: Any) -> list[Any]:
        return [np.searchsorted(w, np.asarray(bits) - 1e-9) for w in self.sides]

    def table(self) -> pa.Table:
        """A row for each whole number of bits: how many records of A and B cannot reach it.

        `probability` is that of a pair with this weight, before rivals.
        """
        ends = np.concatenate([*(w[np.isfinite(w)] for w in self.sides), [self.needed]])
        low, high = math.floor(ends.min()), math.ceil(ends.max()) + 1
        bits = np.arange(max(low, -_WIDEST), min(high, _WIDEST) + 1)
        odds = np.exp2(np.clip(self.needed - bits, -1000.0, 1000.0))
        columns = [bits, 1 / (1 + odds)]
        for n, w in zip(self._below(bits), self.sides, strict=True):
            columns += [n, n / max(1, len(w))]
        return pa.table(dict(zip(COLUMNS, columns, strict=True)))


def copy_weights(run: Run) -> CopyWeights:
    """The weights of a run, whose inputs are read again."""
    if run.pairs.remote or run.sources is None:
        raise InputError(
            "this needs the records, which Spark holds or which did not come with the pairs. "
            "Give bl.link two files or tables that this machine reads."
        )
    fields, keys = list(run.pairs.fields), block_fields(run.settings.block)
    records = records_again(run, [*fields, *keys])
    levels: tuple[list[NDArray[np.uint8]], ...] = ([], [])
    for f in fields:
        found = level_with_copy(f, encode(f, records[0], 0), encode(f, records[1], 1))
        for side in (0, 1):
            levels[side].append(found[side])
    weights = [_weights(run.parameters, np.stack(columns, axis=1)) for columns in levels]
    for side, block in enumerate(block_keys(*records, keys)):
        weights[side][block < 0] = -math.inf
    return CopyWeights((np.sort(weights[0]), np.sort(weights[1])), run.theta / math.log(2))


def _weights(parameters: Parameters, levels: NDArray[np.uint8]) -> Floats:
    found, _, which = distinct_vectors(levels)
    weights: Floats = parameters.weight_of(found)[which] / math.log(2)
    return weights
