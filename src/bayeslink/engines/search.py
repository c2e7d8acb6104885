"""Which pairs can be above a threshold at all, and the cheapest way to visit every one of them.

A pair's weight is the sum of its fields' weights. Give each field j a *cap* c_j, and say that a
field *catches* a pair whose weight there is above the cap. A pair that no field catches weighs at
most Σ c_j. So if Σ c_j ≤ threshold, every pair above the threshold is caught by some field, and
visiting the caught pairs finds all of them. That is the whole proof. Only levels above 1 can be
caught, as only they are in the level tables, so no cap is below the weight of level 1.

Lower caps catch more pairs; how many is known from the level counts. The caps are those that catch
fewest subject to Σ c_j ≤ threshold: a knapsack with one choice a field. Where none will do, or
they would catch most pairs, the join of all of A with all of B catches every pair.

What is missing in either record is known before they are compared. Each set of missing fields (a
*union* of what a record of A and one of B lack) has caps of its own, with only those levels that
pairs of this kind can have.

A join visits the pairs that one field catches: for each value of A, the records of B at the values
beside it. Joins run in order, and a pair is listed by the first that catches it. So in a join, a
field whose join came before adds at most its cap (`upper`), any other at most its largest weight
there (`best`). Pairs that cannot reach the threshold with these are not visited. Those visited are
looked up in up to four further fields, and dropped unless they can still reach it with the best of
the rest; only what is left is compared in full. So a join is on one field, or on several fields
of which all but the first are done by looking, at a few nanoseconds a pair.

Where a value is so common that even that is much, the same proof is used once more. A pair that is
caught with weight w needs more than threshold − w of its other fields: give these *second caps*
that add up to no more than that, and some other field catches it again. So only pairs that two
fields catch are visited. A kind of pair (its union, and its level in the join's field) has second
caps if it is frequent and they leave few pairs to visit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayeslink.comparing.fields import Field
from bayeslink.engines.arrays import EVERY_PAIR
from bayeslink.engines.missing import MISSING, PRESENT, Unions
from bayeslink.pairs.source import Floats, Ints

_MAX_LOOKS = 4
_SCAN_FROM = 0.5  # share of pairs caught from which all may as well be visited
# Caps of a field, and states of the knapsack; beyond that some are left out, which costs a better
# plan and nothing else.
_MAX_CAPS, _MAX_STATES = 16, 512
_TYPICAL = 8  # kinds of pair, the most frequent, by which looks are chosen
_TRIED = 8  # fields that are tried as looks
_TWICE_FROM = 1e7  # pairs caught by a join from which it has second caps
# What it costs, where a look at each pair that a record has there costs 1, to meet a pair in a list
# and to look for the list of a neighbour; and the cost from which all may as well be looked at.
_MEET, _ASK, _TWICE_UP_TO = 5.0, 0.5, 0.5
_FREQUENT = 0.02  # share of the pairs caught by a join from which a kind of pair has second caps
# Rough times, in nanoseconds: to look a pair up in one more field, to lay out one neighbour of a
# value for looking up, and to compare a pair in full.
_LOOK, _LAY, _COMPARE = 1.0, 2.0, 200.0


@dataclass(frozen=True, slots=True)
class Problem:
    """What is searched for, and where."""

    fields: Sequence[Field]
    weights: Floats  # one row a field, one column a level
    threshold: float
    shares: Floats  # of pairs with both values present, at each level
    neighbours: Floats  # values of B above level 1 beside a record of A, on average, by field
    neighbours_at: Floats  # the same by field and level
    n_a: int
    n_pairs: int
    unions: Unions  # the last column of its states: whether to visit the pairs anyway

    @property
    def least(self) -> float:
        """The threshold less what sums of weights can differ by for the order of their terms."""
        finite = self.weights[np.isfinite(self.weights)]
        return self.threshold - 1e-9 * (1.0 + float(np.abs(finite).sum()))

    def levels(self, j: int) -> Floats:
        """Weights of field j, from level 0."""
        return self.weights[j, : self.fields[j].n_levels + 1]


@dataclass(frozen=True, slots=True)
class Caps:
    """Caps of each union of missing fields."""

    caps: Floats  # [union, field]; infinite where every pair is visited
    every: NDArray[np.bool_]  # unions of which every pair is visited


@dataclass(frozen=True, slots=True)
class Join:
    """The pairs that one field catches and no field before it; what `kernels.search.join` takes."""

    field: int  # or EVERY_PAIR
    checks: Ints  # the other fields, in the order in which they are checked
    n_looks: int  # how many of these are looked up for every pair visited
    room: Floats  # [union, level]: weight there + best of the rest − threshold; −inf: not visited
    best: Floats  # [union, field]: the largest weight not above `upper`
    upper: Floats  # [union, field]: above it, the pair belongs to a join before this one
    kind: NDArray[np.int32]  # [union, level]: which second caps it has; −1 for none
    second: Floats  # [kind, field]: second caps, infinite for the join's field
    expected: float  # pairs caught; those visited are fewer where there are second caps

    @property
    def seconds(self) -> Ints:
        """Fields that catch pairs again."""
        return np.flatnonzero(np.isfinite(self.second).any(0))

    @property
    def looks(self) -> Ints:
        return self.checks[: self.n_looks]


Kinds = list[tuple[Floats, Floats]]  # room and number of pairs, for each kind of pair


# --- caps -------------------------------------------------------------------------------------


def choose_caps(problem: Problem) -> Caps:
    """The caps of each union that catch fewest pairs."""
    n_fields, states = len(problem.fields), problem.unions.states
    choices = [[_choices(problem, j, state) for state in range(3)] for j in range(n_fields)]
    caps, every = np.full((len(states), n_fields), np.inf), np.zeros(len(states), np.bool_)
    for union, state in enumerate(states):
        options = [choices[j][state[j]] for j in range(n_fields)]
        chosen = None if state[-1] == MISSING else _knapsack(options, problem.least)
        if chosen is None:
            every[union] = True
        else:
            caps[union] = [cap[i] for (cap, _), i in zip(options, chosen, strict=True)]
    return Caps(caps, every)


def _choices(problem: Problem, j: int, state: int) -> tuple[Floats, Floats]:
    """The caps that field j can have in pairs of this state, and the share of pairs they catch."""
    w = problem.levels(j)
    if state == MISSING:
        return w[:1], np.zeros(1)
    above, shares = w[2:], problem.shares[j, 2 : len(w)]
    floor = w[1] if state == PRESENT else w[:2].max()
    caps = _thinned(np.unique(np.append(above[above > floor], floor)), _MAX_CAPS)
    return caps, np.array([shares[above > cap].sum() for cap in caps])


def _thinned(values: NDArray[Any], most: int) -> NDArray[Any]:
    """The values, or so many of them, with the first and the last."""
    if len(values) <= most:
        return values
    return values[np.linspace(0, len(values) - 1, most).astype(int)]


def _knapsack(
    options: list[tuple[Floats, Floats]], least: float, most: float = _SCAN_FROM
) -> list[int] | None:
    """Which (cap, share) to choose of each field: the least Σ share with Σ cap ≤ least.

    None if there is none, or none with Σ share < most. Goes through the fields, keeping the states
    that no other beats in both sums.
    """
    caps, shares, kept = np.zeros(1), np.zeros(1), []
    for cap, share in options:
        caps, shares = np.add.outer(caps, cap).ravel(), np.add.outer(shares, share).ravel()
        order = np.lexsort((caps, shares))
        lowest = np.minimum.accumulate(caps[order])
        keep = _thinned(order[np.append(True, lowest[1:] < lowest[:-1])], _MAX_STATES)
        caps, shares = caps[keep], shares[keep]
        kept.append(keep)
    good = np.flatnonzero((caps <= least) & (shares < most))
    if not len(good):
        return None
    chosen, at = [], int(good[0])
    for keep, (cap, _) in zip(reversed(kept), reversed(options), strict=True):
        at, choice = divmod(int(keep[at]), len(cap))
        chosen.append(choice)
    return chosen[::-1]


# --- joins ------------------------------------------------------------------------------------


def make_joins(problem: Problem, caps: Caps) -> list[Join]:
    """The joins that visit every caught pair, the smallest first."""
    caught = {j: _caught(problem, caps, j) for j in range(len(problem.fields))}
    size = {j: problem.unions.n_pairs @ (c @ problem.shares[j]) for j, c in caught.items()}
    used = sorted((j for j in caught if caught[j].any()), key=lambda j: size[j])
    joins = []
    for n_before, j in enumerate(used):
        upper = np.full(caps.caps.shape, np.inf)
        upper[:, used[:n_before]] = caps.caps[:, used[:n_before]]
        joins.append(_make_join(problem, j, caught[j], upper))
    if caps.every.any():
        every = np.zeros((len(caps.every), problem.weights.shape[1]), np.bool_)
        every[:, 1] = caps.every
        joins.append(_make_join(problem, EVERY_PAIR, every, np.full(caps.caps.shape, np.inf)))
    return joins


def _caught(problem: Problem, caps: Caps, j: int) -> NDArray[np.bool_]:
    """[union, level]: whether field j catches it."""
    caught = np.zeros((len(caps.every), problem.weights.shape[1]), np.bool_)
    above = problem.levels(j)[2:]
    caught[:, 2 : 2 + len(above)] = above > caps.caps[:, j : j + 1]
    caught[problem.unions.states[:, j] == MISSING] = False
    return caught


def _make_join(problem: Problem, j: int, caught: NDArray[np.bool_], upper: Floats) -> Join:
    """The join on field j; the join of every pair has a level 1 only, of weight 0."""
    n_fields, n_levels = problem.weights.shape
    every = j == EVERY_PAIR
    own = np.zeros(n_levels) if every else problem.weights[j]
    share = np.ones(n_levels) if every else problem.shares[j]
    others = [k for k in range(n_fields) if k != j]
    best = np.stack([_best(problem, k, upper[:, k]) for k in range(n_fields)], axis=1)
    with np.errstate(invalid="ignore"):  # −inf, where both threshold and weights are
        room = own + best[:, others].sum(1)[:, None] - problem.least
        visited = caught & (room > 0)
        visits = problem.unions.n_pairs[:, None] * visited * share
        looks = _choose_looks(problem, others, visits, room, best)
        rest = [k for k in others if k not in looks]
        room = own + best[:, rest].sum(1)[:, None] - problem.least
    kind, second = _second_caps(problem, others, visits, own, best)
    return Join(
        field=j,
        checks=np.array([*looks, *rest], np.int64),
        n_looks=len(looks),
        room=np.where(visited, room, -np.inf),
        best=best,
        upper=upper,
        kind=kind,
        second=second,
        expected=float(visits.sum()),
    )


def _second_caps(
    problem: Problem, others: list[int], visits: Floats, own: Floats, best: Floats
) -> tuple[NDArray[np.int32], Floats]:
    """Second caps of the most frequent kinds of pair: `Join.kind` and `Join.second`."""
    kind = np.full(visits.shape, -1, np.int32)
    second: list[Floats] = []
    if len(others) < len(problem.fields) and visits.sum() >= _TWICE_FROM:
        a_record = visits.sum() / problem.n_a
        for union, level in zip(*np.nonzero(visits > _FREQUENT * visits.sum()), strict=True):
            options = [_second_choices(problem, k, union, best[union, k], a_record) for k in others]
            chosen = _knapsack(options, problem.least - own[level], _TWICE_UP_TO)
            if chosen is not None:
                kind[union, level] = len(second)
                second.append(np.full(len(problem.fields), np.inf))
                for k, (cap, _), i in zip(others, options, chosen, strict=True):
                    if cap[i] < best[union, k]:
                        second[-1][k] = cap[i]
    return kind, np.array(second).reshape(-1, len(problem.fields))


def _second_choices(
    problem: Problem, k: int, union: int, best: float, a_record: float
) -> tuple[Floats, Floats]:
    """Caps of field k, up to its best, and what it costs to catch with them.

    A record has so many pairs in this join.
    """
    caps, _ = _choices(problem, k, problem.unions.states[union, k])
    caps = np.unique(np.minimum(caps, best))
    if problem.unions.states[union, k] == MISSING:
        return caps, np.zeros(len(caps))
    w, shares, beside = (
        x[k, 2 : problem.fields[k].n_levels + 1]
        for x in (problem.weights, problem.shares, problem.neighbours_at)
    )
    price = np.where(w <= best, _MEET * shares + _ASK * beside / a_record, 0.0)
    return caps, np.array([price[w > cap].sum() for cap in caps])


def _best(problem: Problem, j: int, upper: Floats) -> Floats:
    """Largest weight that field j can have in each union, of those not above `upper`."""
    w, states = problem.levels(j), problem.unions.states[:, j : j + 1]
    possible = np.where(np.arange(len(w)) == 0, states != PRESENT, states != MISSING)
    return np.where(possible & (w <= upper[:, None]), w, -np.inf).max(1)


def _choose_looks(
    problem: Problem, others: list[int], visits: Floats, room: Floats, best: Floats
) -> list[int]:
    """Fields to look up for all pairs visited, so that few are left to be compared in full.

    Tries all sets of up to four of the fields that leave least room, on the most frequent kinds of
    pair: [union, level in the join's field].
    """
    order = np.argsort(-visits, axis=None)[:_TYPICAL]
    kinds = [divmod(int(i), visits.shape[1]) for i in order if visits.flat[i] > 0]
    n_visits = float(visits.sum())
    cheapest: tuple[float, list[int]] = (np.inf, [])

    def after(k: int, left: Kinds) -> Kinds:
        return [
            _look(problem, k, union, best[union, k], *kind)
            for (union, _), kind in zip(kinds, left, strict=True)
        ]

    def try_sets(looks: list[int], left: Kinds, spent: float, more: list[int]) -> None:
        nonlocal cheapest
        cost = spent + _COMPARE * sum(float(n.sum()) for _, n in left)
        cheapest = min(cheapest, (cost, looks))
        for i, k in enumerate(more if len(looks) < _MAX_LOOKS else ()):
            price = _LOOK * n_visits + _LAY * problem.n_a * problem.neighbours[k]
            if spent + price < cheapest[0]:
                try_sets([*looks, k], after(k, left), spent + price, more[i + 1 :])

    start = [(np.array([room[kind]]), np.array([visits[kind]])) for kind in kinds]
    left_by = {k: sum(float(r @ n) for r, n in after(k, start)) for k in others}
    try_sets([], start, 0.0, sorted(others, key=lambda k: left_by[k])[:_TRIED])
    return cheapest[1]


def _look(
    problem: Problem, k: int, union: int, best: float, room: Floats, n: Floats
) -> tuple[Floats, Floats]:
    """Room and number of pairs of a kind that are left after looking at field k."""
    if problem.unions.states[union, k] == MISSING:
        return room, n
    w, shares = problem.levels(k)[1:], problem.shares[k, 1 : problem.fields[k].n_levels + 1]
    own = w <= best  # above it, the pair belongs to a join before
    after = np.add.outer(room, w[own] - best).ravel()
    n = np.multiply.outer(n, shares[own]).ravel()
    keep = (after > 0) & (n > 0)
    return after[keep][:_MAX_STATES], n[keep][:_MAX_STATES]
