"""Which pairs can be above a threshold at all: keys that no wanted pair escapes.

Write each field's weight as a gain over its level 1. A pair is wanted if its gains sum to more
than T, the threshold less the weights of level 1. Gains are sparse: few pairs are above level 1
in a given field. A *key* is a field and a gain it must exceed; keys are tried in order, each with
the gain it needs given that the keys before it failed:

    need_r = T − Σ (largest gain of the fields that are no key) − Σ_{s<r} (largest gain ≤ need_s).

If the last need is at least 0, a pair that fails every key cannot reach T. So only pairs that
satisfy a key are visited, through an index of B by value, and each under its first key.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from bayeslink.patterns import Floats

_SCAN_FROM = 0.5  # share of pairs visited from which a plain scan is as good
_ENUMERATED = 10  # fields up to which every set of keys is tried


@dataclass(frozen=True, slots=True)
class Plan:
    """Keys for the records of A with a given set of missing fields; none means scan."""

    keys: tuple[int, ...]
    needs: tuple[float, ...]
    visited: float  # expected share of their pairs that is visited


def make_plan(
    weights: Floats, n_levels: list[int], shares: Floats, missing: NDArray[np.bool_], least: float
) -> Plan:
    """The cheapest keys for records of A whose fields `missing` are missing.

    `shares` are the shares of all pairs at each level, column 0 for missing.
    """
    gains = weights - weights[:, 1:2]
    margin = 1e-9 * (1 + float(np.abs(weights).max()))
    target = least - float(weights[:, 1].sum()) - float(gains[missing, 0].sum()) - margin
    present = [j for j in range(len(n_levels)) if not missing[j]]
    levels = {j: gains[j, : n_levels[j] + 1] for j in present}
    most = {j: max(0.0, float(levels[j].max())) for j in present}
    best = Plan((), (), 1.0)
    for chosen in _candidate_sets(present, levels, shares):
        needs, room = [], target - sum(most[j] for j in present)
        if room + sum(most[j] for j in chosen) < 0:
            continue
        visited = 0.0
        for j in chosen:
            room += most[j]
            need = max(0.0, room)
            fails = levels[j] <= need
            room -= max(0.0, float(levels[j][fails].max(initial=0.0)))
            visited += float(shares[j, : len(fails)][~fails].sum())
            needs.append(need)
        if visited < best.visited:
            best = Plan(chosen, tuple(needs), visited)
    return best if best.visited < _SCAN_FROM else Plan((), (), 1.0)


def _candidate_sets(
    present: list[int], levels: dict[int, Floats], shares: Floats
) -> list[tuple[int, ...]]:
    """Sets of key fields, each from the rarest gain to the commonest."""

    def commonness(j: int) -> float:
        return float(shares[j, : len(levels[j])][levels[j] > 0].sum())

    ordered = sorted(present, key=commonness)
    if len(ordered) > _ENUMERATED:
        return [tuple(ordered[:size]) for size in range(1, len(ordered) + 1)]
    return [c for size in range(1, len(ordered) + 1) for c in combinations(ordered, size)]
