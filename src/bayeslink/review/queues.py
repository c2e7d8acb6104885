"""The reviewers' desk: which case comes next, what has been judged, and how far people agree."""

from __future__ import annotations

import sqlite3
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from bayeslink.errors import BayeslinkError, InputError, SettingsError
from bayeslink.judging.judgements import LINK, NONLINK, Judgement, Judgements, Pair, Sample
from bayeslink.review.case_view import evidence, in_order, screen
from bayeslink.review.material import Material
from bayeslink.runs.audits import draw_sample, evaluate_sample
from bayeslink.runs.differences import visible

QUEUES = ("open", "second", "sample", "disagreements")
_HELD = 600.0  # seconds for which a case given to one reviewer is not given to another
_LATEST = 30  # of a reviewer's cases are listed to be opened again


class UnknownCaseError(BayeslinkError):
    """There is no such case."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What stands of the judgements, as far as they are of the cases as they are now."""

    judged: dict[str, dict[str, None]]  # by reviewer: keys of cases, in the order judged
    said: dict[Pair, dict[str, str]]  # by pair: the verdict of each reviewer
    case: dict[Pair, str]  # where the pair was judged
    links: list[Judgement]  # every link, also those of cases that have changed

    def by_anyone(self) -> set[str]:
        return {key for keys in self.judged.values() for key in keys}

    def settled(self) -> list[Pair]:
        """Pairs that are a link or none, and on which nobody disagrees."""
        return [
            pair
            for pair, said in self.said.items()
            if len(set(said.values()) & {LINK, NONLINK}) == 1
        ]

    def disputed(self) -> list[Pair]:
        """Pairs that one calls a link and another a non-link."""
        return [pair for pair, said in self.said.items() if {LINK, NONLINK} <= set(said.values())]


class Queues(ABC):
    """What there is to judge of one run. Threads may share it; others may share the judgements.

    What a case shows, and how a verdict on it is told, is for `Desk` (of pairs) and `PeopleDesk`.
    """

    material: Any
    people = False  # whether cases are of people with any number of records

    def __init__(self, material: Any, judgements: Judgements) -> None:
        self.material, self.judgements = material, judgements
        self._worth = {str(place + 1): None for place in range(material.cases.n_worth)}
        self._held: dict[str, tuple[str, float]] = {}  # by case: for whom, until when
        self._lock = threading.Lock()
        # A connection that only watches: its data_version changes with every other's commit.
        self._watch = sqlite3.connect(judgements.path.absolute(), check_same_thread=False)
        self._seen: tuple[int, Standing] | None = None

    def close(self) -> None:
        self._watch.close()

    # --- cases -------------------------------------------------------------------------------

    def disputed(self, key: str) -> list[bool]:
        """Whether reviewers disagree, for each pair of a case."""
        disputed = set(self.standing().disputed())
        return [pair in disputed for pair in self._pairs(key)]

    def next(self, queue: str, reviewer: str, after: str | None = None) -> str | None:
        """The next case of a queue, beginning after a given one; None if none is left."""
        standing = self.standing()
        own = standing.judged.get(reviewer, {})
        keys = self._queue(queue, standing)
        start = keys.index(after) + 1 if after in keys else 0
        done = {"open": standing.by_anyone(), "disagreements": set[str]()}.get(queue, own)
        with self._lock:
            for key in (*keys[start:], *keys[:start]):
                if key not in done and self._hold(key, reviewer, exclusive=queue == "open"):
                    return key
        return None

    def undo(self, reviewer: str) -> str | None:
        """Take back the reviewer's latest judgement; the case it was of."""
        return self.judgements.undo(reviewer)

    def draw_sample(self, size: int) -> None:
        """Draw pairs, or clusters, at random, which make a queue of their own."""
        draw_sample(self.material.run, size)

    # --- how far it has come -----------------------------------------------------------------

    def state(self, reviewer: str) -> dict[str, Any]:
        """How many cases are judged, what is left, and how long each queue is."""
        standing = self.standing()
        own, anyone = standing.judged.get(reviewer, {}), standing.by_anyone()
        judged = len(anyone & self._worth.keys())
        return {
            "people": self.people,
            "worth": len(self._worth),
            "judged": judged,
            **self._errors(standing),
            "queues": {
                "open": len(self._worth) - judged,
                "second": len(anyone - own.keys()),
                "sample": sum(key not in own for key in self._sampled()),
                "disagreements": len(self._queue("disagreements", standing)),
            },
            "reviewers": sorted(standing.judged),
        }

    def overview(self, reviewer: str) -> dict[str, Any]:
        """Agreement, disagreements, the random sample, and the reviewer's latest cases."""
        standing = self.standing()
        own = list(standing.judged.get(reviewer, {}))
        return {
            "mine": own[: -_LATEST - 1 : -1],
            "agreement": agreement(standing.said),
            "disagreements": [
                {
                    "case": standing.case[pair],
                    "pair": [visible(name) for name in pair],
                    "said": standing.said[pair],
                }
                for pair in standing.disputed()
            ],
            "sample": self._sample_summary(),
        }

    def standing(self) -> Standing:
        """What stands at this moment, worked out anew only if anyone has judged since."""
        with self._lock:
            (stamp,) = self._watch.execute("PRAGMA data_version").fetchone()
            if self._seen is None or self._seen[0] != stamp:
                self._seen = stamp, self._work_out()
            return self._seen[1]

    def _work_out(self) -> Standing:
        judged: dict[str, dict[str, None]] = {}
        for key, version, reviewer in self.judgements.cases():
            if version == self.material.version(key):
                judged.setdefault(reviewer, {})[key] = None
        current = self.judgements.current()
        said: dict[Pair, dict[str, str]] = {}
        case: dict[Pair, str] = {}
        for one in current:
            if one.version == self.material.version(one.case):
                said.setdefault((one.id_a, one.id_b), {})[one.reviewer] = one.verdict
                case[one.id_a, one.id_b] = one.case
        return Standing(judged, said, case, [one for one in current if one.verdict == LINK])

    # ------------------------------------------------------------------------------------------

    def _check(self, key: str) -> None:
        if not self.material.pairs_of(key):
            raise UnknownCaseError(f"there is no case {key[:20]!r}. Go on to the next one.")

    @abstractmethod
    def _pairs(self, key: str) -> list[Pair]:
        """The pairs that a verdict on a case is of."""

    @abstractmethod
    def _errors(self, standing: Standing) -> dict[str, float]:
        """Errors expected in the cases worth judging: all, false links, and those not settled."""

    @abstractmethod
    def _keys(self, sample: Sample) -> list[str]:
        """The case of each pair, or cluster, of a random sample, in its order."""

    def _sampled(self) -> list[str]:
        """The cases of the random sample, in its order."""
        sample = self._sample()
        return [] if sample is None else list(dict.fromkeys(self._keys(sample)))

    def _sample(self) -> Sample | None:
        """The random sample, unless it was drawn from another run."""
        sample = self.judgements.sample()
        return None if sample is None or sample.run != self.material.run.fingerprint else sample

    def _sample_summary(self) -> dict[str, Any] | None:
        """How far the random sample is judged, and what it says once it is."""
        sample = self._sample()
        if sample is None:
            return None
        try:
            found = evaluate_sample(self.material.run)
        except InputError:  # nothing is judged yet
            drawn = len(self._keys(sample))
            return {"drawn": drawn, "left": drawn, "quality": ""}
        # Only the whole sample is random: those worth most may be judged first.
        left = found.drawn - found.judged - found.unsure
        return {"drawn": found.drawn, "left": left, "quality": "" if left else str(found.quality)}

    def _queue(self, queue: str, standing: Standing) -> list[str]:
        if queue == "open":
            return list(self._worth)
        if queue == "second":
            return list(dict.fromkeys(key for keys in standing.judged.values() for key in keys))
        if queue == "sample":
            return self._sampled()
        if queue == "disagreements":
            return list(dict.fromkeys(standing.case[pair] for pair in standing.disputed()))
        raise SettingsError(f"unknown queue {queue[:20]!r}. Allowed: {', '.join(QUEUES)}.")

    def _hold(self, key: str, reviewer: str, *, exclusive: bool) -> bool:
        """Keep a case for a reviewer for a while, unless another has it."""
        now = time.monotonic()
        holder, until = self._held.get(key, (reviewer, 0.0))
        if exclusive and holder != reviewer and now < until:
            return False
        self._held[key] = (reviewer, now + _HELD)
        return True


class Desk(Queues):
    """A linkage under review: its pairs, and what reviewers say of them."""

    material: Material

    def case(self, key: str, reviewer: str, queue: str = "open") -> dict[str, Any]:
        """A case without a word on what the run or others say, and the reviewer's own verdicts.

        Which pairs are disputed is told to those who have judged them, or who came for that.
        """
        self._check(key)
        said = self.standing().said
        own = [said.get(pair, {}).get(reviewer) for pair in self._pairs(key)]
        told = [bool(verdict) or queue == "disagreements" for verdict in own]
        disputed = [a and b for a, b in zip(told, self.disputed(key), strict=True)]
        return {**screen(self.material, key), "verdicts": own, "disputed": disputed}

    def evidence(self, key: str) -> list[dict[str, Any]]:
        """What the run, and every reviewer, says of each pair."""
        self._check(key)
        said = self.standing().said
        return [
            {**found, "said": said.get(pair, {})}
            for found, pair in zip(evidence(self.material, key), self._pairs(key), strict=True)
        ]

    def judge(self, key: str, version: str, reviewer: str, verdicts: Sequence[str]) -> None:
        """Store the verdicts on all pairs of a case."""
        self._check(key)
        pairs = self._pairs(key)
        if version != self.material.version(key):
            raise SettingsError("the case has changed since it was shown. Open it again.")
        if len(verdicts) != len(pairs):
            raise SettingsError("a judgement needs one verdict for each pair of the case.")
        elsewhere = [
            (one.id_a, one.id_b) for one in self.standing().links if one.reviewer == reviewer
        ]
        links = [pair for pair, verdict in zip(pairs, verdicts, strict=True) if verdict == LINK]
        _check_one_to_one(links, [pair for pair in elsewhere if pair not in pairs])
        self.judgements.add(
            case=key,
            version=version,
            reviewer=reviewer,
            verdicts=dict(zip(pairs, verdicts, strict=True)),
        )

    def _pairs(self, key: str) -> list[Pair]:
        return [self.material.ids(row) for row in in_order(self.material, key)]

    def _errors(self, standing: Standing) -> dict[str, float]:
        cases = self.material.cases
        total = float(cases.value[: len(self._worth)].sum())
        worth = cases.rows[: cases.start[len(self._worth)]]
        return {
            "errors": total,
            "false": float(cases.error[worth[cases.linked[worth]]].sum()),
            "errors_left": max(0.0, total - self._settled_errors(standing)),
        }

    def _settled_errors(self, standing: Standing) -> float:
        """Expected errors among the pairs that people have settled."""
        settled = [pair for pair in standing.settled() if standing.case[pair] in self._worth]
        rows = [row for row in self.material.find(settled) if row is not None]
        return float(self.material.cases.error[rows].sum())

    def _keys(self, sample: Sample) -> list[str]:
        rows = self.material.find(sample.pairs)
        return [self.material.key_of(row) for row in rows if row is not None]


def agreement(said: dict[Pair, dict[str, str]]) -> list[dict[str, Any]]:
    """For each two reviewers, how far they agree on the pairs that both decided.

    `share` is the share of these pairs on which they agree, `kappa` Cohen's: how far that exceeds
    what two would agree on who call links as often as they do, but at random; None if these do
    not differ.
    """
    verdicts: dict[str, dict[Pair, str]] = {}
    for pair, by in said.items():
        for reviewer, verdict in by.items():
            if verdict in (LINK, NONLINK):
                verdicts.setdefault(reviewer, {})[pair] = verdict
    found = []
    for one, other in combinations(sorted(verdicts), 2):
        common = verdicts[one].keys() & verdicts[other].keys()
        if common:
            n = len(common)
            share = sum(verdicts[one][pair] == verdicts[other][pair] for pair in common) / n
            p, q = (sum(verdicts[r][pair] == LINK for pair in common) / n for r in (one, other))
            chance = p * q + (1 - p) * (1 - q)
            kappa = None if chance == 1 else (share - chance) / (1 - chance)
            found.append({"reviewers": [one, other], "pairs": n, "share": share, "kappa": kappa})
    return found


def _check_one_to_one(links: Sequence[Pair], elsewhere: Sequence[Pair]) -> None:
    for side, name in enumerate("AB"):
        within = [pair[side] for pair in links]
        if len(set(within)) < len(within):
            raise SettingsError(f"two links share a record of {name}. A record has at most one.")
        if set(within) & {pair[side] for pair in elsewhere}:
            raise SettingsError(
                f"you have linked this record of {name} to another one in an earlier case. "
                "Call this pair no link or unsure, or take the earlier judgement back."
            )
