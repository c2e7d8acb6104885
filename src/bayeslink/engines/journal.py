"""Answers of long searches, written down, so that a run that goes on need not search again."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict
from hashlib import sha256
from typing import Any

import numpy as np

from bayeslink.checkpoints import Arrays, Checkpoints
from bayeslink.engines.plan import PlannedJoin, SearchPlan
from bayeslink.pairs.source import Floats, Pairs

_MOST = 5_000_000  # pairs of a list that is written down; longer ones are searched for again

Search = Callable[[], tuple[Pairs, SearchPlan]]


def remembered(
    checkpoints: Checkpoints | None,
    weights: Floats,
    threshold: float,
    in_files: bool,
    search: Search,
) -> tuple[Pairs, SearchPlan]:
    """What the search finds, or found when the same was asked before the interruption."""
    if checkpoints is None:
        return search()
    asked = sha256(np.ascontiguousarray(weights, np.float64).tobytes())
    asked.update(f"{float(threshold)!r} {in_files}".encode())
    name = f"search-{asked.hexdigest()[:24]}"
    if (found := checkpoints.load(name)) is not None:
        return Pairs(found["a"], found["b"], found["levels"]), _plan(json.loads(str(found["plan"])))
    began = time.monotonic()
    pairs, plan = search()
    if checkpoints.due(began) and len(pairs) <= _MOST:
        told = np.array(json.dumps(asdict(plan), default=np.generic.item))
        arrays: Arrays = {"a": pairs.a, "b": pairs.b, "levels": pairs.levels, "plan": told}
        checkpoints.save(name, arrays)
    return pairs, plan


def _plan(data: dict[str, Any]) -> SearchPlan:
    """A plan as it was, from what JSON has made of it."""
    joins = tuple(
        PlannedJoin(**{**join, "levels": tuple(join["levels"]), "looks": tuple(join["looks"])})
        for join in data["joins"]
    )
    ceilings = tuple((tuple(names), share, caps) for names, share, caps in data["ceilings"])
    return SearchPlan(**{**data, "joins": joins, "unused": tuple(data["unused"]),
                         "ceilings": ceilings})  # fmt: skip
