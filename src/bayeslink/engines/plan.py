"""How a search was, or would be, done: for people who want to know what was never looked at."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bayeslink.engines.arrays import EVERY_PAIR
from bayeslink.engines.missing import MISSING
from bayeslink.engines.search import Caps, Join, Problem


@dataclass(frozen=True, slots=True)
class PlannedJoin:
    """One join of a search."""

    field: str | None  # None joins all of A with all of B
    levels: tuple[str, ...]  # levels at which it joins, in some pairs at least
    looks: tuple[str, ...]  # fields looked up for all pairs visited
    expected: float  # pairs visited, from the level counts
    visited: int | None  # pairs visited, as counted; None before the search


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """The joins of a search for all pairs above a threshold; `str()` explains it.

    Attributes
    ----------
    ceilings
        The most that a pair in none of the joins can weigh, for the commonest sets of missing
        fields: (missing fields, share of the pairs, caps by field).
    highest
        The highest ceiling of all sets of missing fields; not above the threshold.
    """

    threshold: float
    n_pairs: int
    joins: tuple[PlannedJoin, ...]
    unused: tuple[str, ...]  # fields on which no join is needed
    ceilings: tuple[tuple[tuple[str, ...], float, dict[str, float]], ...]
    n_ceilings: int  # sets of missing fields that occur
    highest: float
    listed: int | None = None  # pairs above the threshold; None before the search
    bounds: Mapping[str, float] = field(default_factory=dict)  # weight of open fields, see deferred
    settled: int | None = None  # pairs in which open fields were compared; None before the search

    @property
    def expected(self) -> float:
        """Pairs visited, from the level counts."""
        return sum(join.expected for join in self.joins)

    @property
    def visited(self) -> int | None:
        """Pairs visited; None before the search."""
        counts = [join.visited for join in self.joins]
        return None if self.listed is None else sum(c for c in counts if c is not None)

    @property
    def skipped(self) -> float:
        """Share of the pairs in scope that is never visited."""
        seen = self.expected if self.visited is None else self.visited
        return max(0.0, 1 - seen / max(1, self.n_pairs))

    def summary(self) -> dict[str, Any]:
        """The search in a few numbers."""
        return {
            "threshold": self.threshold if math.isfinite(self.threshold) else None,
            "joins": [join.field or "every pair" for join in self.joins],
            "visited": self.visited,
            "never_visited": self.skipped,
            "listed": self.listed,
            **({"settled": self.settled} if self.bounds else {}),
        }

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def describe(problem: Problem, caps: Caps, joins: Sequence[Join]) -> SearchPlan:
    """The plan in words and numbers."""
    fields, unions, n_pairs = problem.fields, problem.unions, problem.n_pairs
    planned = [
        PlannedJoin(
            field=None if join.field == EVERY_PAIR else fields[join.field].name,
            levels=()
            if join.field == EVERY_PAIR
            else tuple(
                fields[join.field].labels[level - 1]
                for level in np.flatnonzero((join.room > -np.inf).any(0))
            ),
            looks=tuple(fields[k].name for k in join.looks),
            expected=join.expected,
            visited=None,
        )
        for join in joins
    ]
    used = {join.field for join in planned}
    ruled = np.flatnonzero(~caps.every & (unions.n_pairs > 0))
    order = ruled[np.argsort(-unions.n_pairs[ruled], kind="stable")]
    ceilings = tuple(
        (
            tuple(f.name for j, f in enumerate(fields) if unions.states[union, j] == MISSING),
            float(unions.n_pairs[union] / max(1, n_pairs)),
            {f.name: float(caps.caps[union, j]) for j, f in enumerate(fields)},
        )
        for union in order[:3]
    )
    return SearchPlan(
        threshold=problem.threshold,
        n_pairs=n_pairs,
        joins=tuple(planned),
        unused=tuple(f.name for f in fields if f.name not in used),
        ceilings=ceilings,
        n_ceilings=len(order),
        highest=float(caps.caps[order].sum(1).max(initial=-np.inf)),
    )


def _lines(plan: SearchPlan) -> list[str]:
    lines = [
        f"All pairs with a weight above {plan.threshold:.4g} (natural log), "
        f"of {plan.n_pairs:,} in scope.",
        "",
    ]
    if not plan.joins:
        lines.append("No pair can be: nothing is visited.")
    for join in plan.joins:
        where = f"join on {join.field}: {' or '.join(join.levels)}"
        if join.field is None:
            where = "every pair"
            if len(plan.joins) > 1:
                where += " that lacks so much, or is in so small a block, that joins do not pay"
        looks = f"; then looks at {', '.join(join.looks)}" if join.looks else ""
        seen = "" if join.visited is None else f", visited {join.visited:,}"
        lines += [f"{where}{looks}", f"    expected {join.expected:,.0f} pairs{seen}"]
    found = "" if plan.listed is None else f" {plan.listed:,} are above the threshold."
    lines += ["", f"{100 * plan.skipped:.4f} % of the pairs are never visited.{found}"]
    if plan.unused and plan.joins and all(join.field for join in plan.joins):
        lines.append(f"No join is needed on {', '.join(plan.unused)}.")
    for name, bound in plan.bounds.items():
        lines.append(
            f"Not all values of {name} are compared with each other: where its level is open, it "
            f"counts as {bound:.4g}, the most it can be."
        )
    if plan.bounds and plan.settled is not None:
        lines.append(
            f"Open levels were told in {plan.settled:,} pairs that can be above with them."
        )
    if plan.ceilings:
        lines += ["", "Why none is missed: a pair in none of the joins weighs at most"]
    for missing, share, caps in plan.ceilings:
        of = f"{', '.join(missing)} missing" if missing else "nothing missing"
        terms = " + ".join(f"{name} {cap:.4g}" for name, cap in caps.items())
        lines.append(
            f"    {terms} = {sum(caps.values()):.4g}  ({of}: {100 * share:.2g} % of pairs)"
        )
    if plan.n_ceilings > len(plan.ceilings):
        lines.append(
            f"    and in the {plan.n_ceilings - len(plan.ceilings)} other sets of missing fields "
            f"at most {plan.highest:.4g}."
        )
    return lines
