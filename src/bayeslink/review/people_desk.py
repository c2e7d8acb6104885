"""The reviewers' desk for a run of people: clusters confirmed, parted and joined."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from bayeslink.errors import SettingsError
from bayeslink.judging.judgements import Pair, Sample
from bayeslink.review.people_material import PeopleMaterial
from bayeslink.review.people_view import (
    OPEN,
    doubt,
    numbered,
    people_of,
    people_screen,
    verdicts_of,
)
from bayeslink.review.queues import Queues, Standing

_LONGEST = 12  # characters that name a person of a case


class PeopleDesk(Queues):
    """A run of people under review. A verdict says of each record of a case who it is.

    It is kept as verdicts on pairs, as those of a linkage are.
    """

    material: PeopleMaterial
    people = True

    def case(self, key: str, reviewer: str, queue: str = "open") -> dict[str, Any]:
        """A case as the run found it, and what this reviewer said of it, if anything."""
        self._check(key)
        own = self._said(key).get(reviewer)
        told = own is not None or queue == "disagreements"
        return {
            **people_screen(self.material, key),
            "verdicts": own,
            "disputed": [told and one for one in self.disputed(key)],
        }

    def disputed(self, key: str) -> list[bool]:
        """Whether reviewers disagree on a pair of each record of a case."""
        disputed = set(self.standing().disputed()) & {*self._pairs(key)}
        named = {name for pair in disputed for name in pair}
        return [name in named for name in self._ids(key)]

    def evidence(self, key: str) -> dict[str, Any]:
        """What the run, and every reviewer, says of the records."""
        self._check(key)
        return {"records": doubt(self.material, key), "said": self._said(key)}

    def judge(self, key: str, version: str, reviewer: str, verdicts: Sequence[str]) -> None:
        """Store who the records of a case are: equal names are one person, `OPEN` is not known."""
        self._check(key)
        ids = self._ids(key)
        if version != self.material.version(key):
            raise SettingsError("the case has changed since it was shown. Open it again.")
        if len(verdicts) != len(ids) or not all(0 < len(one) <= _LONGEST for one in verdicts):
            raise SettingsError("a judgement needs one person, or '?', for each record of a case.")
        people = numbered(verdicts)
        self._check_clean(key, people)
        said = verdicts_of(ids, people)
        self.judgements.add(
            case=key,
            version=version,
            reviewer=reviewer,
            verdicts={pair: said[pair] for pair in self._pairs(key)},
        )

    def _check_clean(self, key: str, people: Sequence[str]) -> None:
        """Refuse two records of a person in a file in which nobody is twice."""
        if self.material.files is None:
            return
        files = [self.material.files[record] for record in self.material.records_of(key)]
        times = Counter((p, f) for p, f in zip(people, files, strict=True) if p != OPEN)
        for (_, file), count in times.items():
            if count > 1 and file in self.material.clean:
                raise SettingsError(
                    f"this makes {count} records of {file} one person, and {file} was given as a "
                    "file in which nobody is twice. Part them, or call them unsure; if people can "
                    f"be in it twice, find them again with --duplicates {file}."
                )

    def _ids(self, key: str) -> list[str]:
        return [self.material.ids[record] for record in self.material.records_of(key)]

    def _pairs(self, key: str) -> list[Pair]:
        return self.material.pairs_of(key)

    def _said(self, key: str) -> dict[str, list[str]]:
        """Who the records of a case are, by reviewer."""
        said, by = self.standing().said, dict[str, dict[Pair, str]]()
        pairs = {*self._pairs(key)}
        for pair in pairs:
            for reviewer, verdict in said.get(pair, {}).items():
                by.setdefault(reviewer, {})[pair] = verdict
        ids = self._ids(key)
        found = {reviewer: people_of(ids, verdicts, pairs) for reviewer, verdicts in by.items()}
        return {reviewer: people for reviewer, people in found.items() if people is not None}

    def _errors(self, standing: Standing) -> dict[str, float]:
        cases = self.material.cases
        worth = slice(0, cases.n_worth)
        total = float(cases.errors[worth].sum())
        settled = [pair for pair in standing.settled() if standing.case[pair] in self._worth]
        left = total - sum(self._error(*self.material.row_of(pair)) for pair in settled)
        return {
            "errors": total,
            "false": float(cases.false[worth].sum()),
            "errors_left": max(0.0, left),
        }

    def _error(self, x: int, y: int) -> float:
        """How probable it is that the run is wrong about two records."""
        p, cluster = self.material.probability(x, y), self.material.structure.cluster
        return 1 - p if cluster[x] == cluster[y] else p

    def _keys(self, sample: Sample) -> list[str]:
        return [self.material.key_of_drawn(c) for c, _ in self.material.to_draw.drawn(sample)]
