"""How many links the penalized-likelihood estimate has over θ, around the θ of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayeslink.errors import BayeslinkError
from bayeslink.linkage.penalized import PenaltyPath, penalty_path
from bayeslink.pairs.source import Floats, PairSource

FEW_PAIRS = 3_000_000_000  # pairs in scope up to which a run searches them for its path


@dataclass(frozen=True, slots=True, eq=False)
class ThetaPath:
    """Links at each θ, followed from the smallest to the largest, and back."""

    theta: Floats
    up: Floats
    down: Floats

    @classmethod
    def of(cls, path: PenaltyPath) -> ThetaPath:
        up, down = (np.array([m.n_links for m in side], float) for side in (path.up, path.down))
        return cls(np.asarray(path.thetas, float), up, down)

    @classmethod
    def around(cls, pairs: PairSource, theta: float) -> ThetaPath:
        """From 4 below a θ to 4 above it."""
        thetas = np.linspace(max(0.0, theta - 4), theta + 4, 9).tolist()
        return cls.of(penalty_path(pairs, thetas))

    @classmethod
    def if_few(cls, pairs: PairSource, theta: float) -> ThetaPath | None:
        """The same; None with too many pairs, or where some θ has no estimate."""
        if pairs.n_pairs > FEW_PAIRS:
            return None
        try:
            return cls.around(pairs, theta)
        except BayeslinkError:
            return None

    @classmethod
    def from_data(cls, data: Mapping[str, Any] | None) -> ThetaPath | None:
        """What `as_data` gave."""
        if data is None:
            return None
        return cls(*(np.array(data[name], float) for name in ("theta", "up", "down")))

    def as_data(self) -> dict[str, Any]:
        """As run.json has it."""
        up, down = ([int(n) for n in side] for side in (self.up, self.down))
        return {"theta": self.theta.tolist(), "up": up, "down": down}
