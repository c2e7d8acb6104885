"""Pairs said to be one person, and pairs said to be two, that cannot all hold."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from bayeslink.judging.judgements import Pair


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two records that are said to be two people, and the fewest links that make them one."""

    apart: Pair
    links: tuple[Pair, ...]
    others: int  # pairs apart that links make one person, beside this one


def contradiction(links: Sequence[Pair], apart: Sequence[Pair]) -> Contradiction | None:
    """The one with the fewest links, the first of these; None if there is none."""
    beside: dict[str, list[tuple[str, Pair]]] = {}
    for pair in links:
        for one, other in (pair, pair[::-1]):
            beside.setdefault(one, []).append((other, pair))
    person: dict[str, str] = {}
    for start in beside:
        if start not in person:
            person[start] = start
            waiting = deque([start])
            while waiting:
                for other, _ in beside[waiting.popleft()]:
                    if other not in person:
                        person[other] = start
                        waiting.append(other)
    wrong = [pair for pair in apart if person.get(pair[0], 0) == person.get(pair[1], 1)]
    if not wrong:
        return None
    chains = [(pair, _chain(beside, pair)) for pair in wrong[:1000]]
    pair, chain = min(chains, key=lambda one: len(one[1]))
    return Contradiction(pair, chain, len(wrong) - 1)


def _chain(beside: dict[str, list[tuple[str, Pair]]], ends: Pair) -> tuple[Pair, ...]:
    """The fewest links from one record to another."""
    came: dict[str, tuple[str, Pair] | None] = {ends[0]: None}
    waiting = deque([ends[0]])
    while ends[1] not in came:
        at = waiting.popleft()
        for other, pair in beside[at]:
            if other not in came:
                came[other] = at, pair
                waiting.append(other)
    chain, step = list[Pair](), came[ends[1]]
    while step is not None:
        chain.append(step[1])
        step = came[step[0]]
    return tuple(reversed(chain))
