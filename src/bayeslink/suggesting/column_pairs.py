"""Columns of A and of B that hold the same thing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bayeslink.suggesting.profiles import Profile


@dataclass(frozen=True, slots=True)
class ColumnPair:
    """Columns of A and of B that hold the same thing; several of a side are joined."""

    a: tuple[Profile, ...]
    b: tuple[Profile, ...]
    kind: str
    shared: float  # share of the values of one file that the other has too, the larger of both
    why: str
    settings: Mapping[str, Any] = field(default_factory=dict)  # of the field, beside the usual ones

    @property
    def sides(self) -> tuple[tuple[Profile, ...], tuple[Profile, ...]]:
        return self.a, self.b

    @property
    def columns(self) -> tuple[str, str]:
        """Names to show: those of a side joined by a plus."""
        a, b = (" + ".join(profile.name for profile in side) for side in self.sides)
        return a, b

    @property
    def all_columns(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The columns of A and of B."""
        a, b = (tuple(c for p in side for c in p.columns) for side in self.sides)
        return a, b

    @property
    def event(self) -> bool:
        """Whether these are dates of something else than births."""
        return any(p.event for p in (*self.a, *self.b))

    @property
    def complete(self) -> tuple[float, float]:
        a, b = (min(profile.complete for profile in side) for side in self.sides)
        return a, b

    @property
    def chance(self) -> float:
        """That two different people agree."""
        product = 1.0
        for profile in max(self.sides, key=len):
            product *= profile.chance
        other = min(self.sides, key=len)
        same = len(self.a) == len(self.b)
        return max(product, other[0].chance) if same and self.kind != "geo" else product
