"""What verdicts say of clusters drawn at random: what is false in each, and what it lacks.

Of a cluster c that was judged, with the clusters shown beside it, follow two kinds of errors. Let c
hold records of `here` people, and let person p be in k_p of the clusters shown, c among them:

- *false joins*: here − 1 people too few; the pairs of two people in c;
- *records missed*: the sum of 1 − 1 / k_p people too many; half of the pairs that each record of c
  has with records of its person elsewhere. The other part is counted with the other clusters. If
  only one of two clusters shows the other, all that the two have in common counts there.

So people = clusters + Σ (here − 1) − Σ (1 − 1 / k_p), if all of a person is shown with each of its
clusters; each sum is over clusters, and a stratified random sample of them estimates it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bayeslink.judging.judgements import LINK, NONLINK, Pair, Sample, Stratum
from bayeslink.runs.people_sample import PeopleFrame, PeopleToDraw

# An error in people, pairs, shares of records (for B-cubed), and clusters.
Errors = tuple[float, float, float, float]
NOTHING: Errors = (0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class JudgedClusters:
    """A stratum of clusters, and what was judged of those drawn from it."""

    stratum: Stratum
    drawn: int
    judged: int
    unsure: int  # somebody was unsure, or reviewers disagree
    wrong: int  # of those judged: has an error of any kind
    false: tuple[Errors, ...]  # of those with a false join
    missed: tuple[Errors, ...]  # of those that lack records
    model: tuple[float, float]  # clusters with a false join, and that lack records, by the model
    usual: tuple[Errors, Errors]  # a record too many, or one that is missed
    reached: bool = False  # clusters are shown with the nearest that no list has
    larger: float = 1.0  # the mean pairs within clusters not judged, by that of those judged


def judged_strata(
    made: PeopleToDraw, sample: Sample, labels: Mapping[Pair, str]
) -> list[JudgedClusters]:
    """The strata with the errors that the verdicts tell of; ids of a label in order."""
    drawn, ended = made.drawn(sample), set[int]()
    judged, unsure, wrong, pairs_judged = (Counter[int]() for _ in range(4))
    size = made.frame.structure.size
    within = size * (size - 1) // 2
    false: dict[int, list[Errors]] = {}
    missed: dict[int, list[Errors]] = {}
    for cluster, k in drawn:
        pairs = [(made.ids[r], made.ids[x]) for r, x in made.pairs(cluster)]
        said = [labels.get((min(pair), max(pair))) for pair in pairs]
        if None in said:
            ended.add(k)
        elif k not in ended and not {*said} <= {LINK, NONLINK}:
            unsure[k] += 1
        elif k not in ended:
            judged[k] += 1
            pairs_judged[k] += int(within[cluster])
            one, other = errors_of(made, cluster, said)
            wrong[k] += one != NOTHING or other != NOTHING
            if one != NOTHING:
                false.setdefault(k, []).append(one)
            if other != NOTHING:
                missed.setdefault(k, []).append(other)
    n_drawn, rows = Counter(k for _, k in drawn), made.frame.rows()
    return [
        replace(
            bare,
            drawn=n_drawn[k],
            judged=judged[k],
            unsure=unsure[k],
            wrong=wrong[k],
            false=tuple(false.get(k, ())),
            missed=tuple(missed.get(k, ())),
            larger=_larger(within[rows[k]].sum(), bare.stratum.size, pairs_judged[k], judged[k]),
        )
        for k, bare in enumerate(bare_strata(made.frame))
    ]


def _larger(pairs: int, size: int, pairs_judged: int, judged: int) -> float:
    if judged == size or not pairs_judged:
        return 1.0
    return float((pairs - pairs_judged) / (size - judged) * judged / pairs_judged)


def bare_strata(frame: PeopleFrame) -> list[JudgedClusters]:
    """The strata before anything is drawn."""
    return [
        JudgedClusters(
            stratum, 0, 0, 0, 0, (), (), *_by_the_model(frame, rows), frame.reach is not None
        )
        for stratum, rows in zip(frame.strata(), frame.rows(), strict=True)
    ]


def _by_the_model(
    frame: PeopleFrame, rows: Any
) -> tuple[tuple[float, float], tuple[Errors, Errors]]:
    """Clusters with errors of each kind that the model expects, and what such an error is."""
    z = float(frame.structure.size[rows].mean()) if len(rows) else 1.0
    expected = float(frame.false[rows].sum()), float(frame.missed[rows].sum())
    return expected, ((1.0, z - 1, 2 * (z - 1) / z, 1.0), (0.5, z / 2, z / (z + 1), 1.0))


def errors_of(
    made: PeopleToDraw, cluster: int, said: Sequence[str | None]
) -> tuple[Errors, Errors]:
    """What is false in a cluster, and what it lacks, from the verdicts on its pairs."""
    frame = made.frame
    own, shown = frame.members[cluster], frame.shown(cluster)
    person = {r: r for r in shown}
    for (r, x), verdict in zip(made.pairs(cluster), said, strict=True):
        if verdict == LINK and person[r] != person[x]:
            gone, kept = person[x], person[r]
            person = {one: kept if who == gone else who for one, who in person.items()}
    beside = [
        (Counter(person[r] for r in frame.members[d]), times)
        for d, times in frame.beside(cluster).items()
    ]
    here, z = Counter(person[r] for r in own), len(own)
    pairs = z * (z - 1) // 2 - sum(n * (n - 1) // 2 for n in here.values())
    false = (len(here) - 1.0, float(pairs), z - sum(n * n for n in here.values()) / z, 1.0)
    missed = [0.0, 0.0, 0.0]
    for who, n in here.items():
        found = [(of[who], 1 / times) for of, times in beside if of[who]]
        clusters, whole = 1 + len(found), n + sum(m for m, _ in found)
        for m, part in found:
            missed[0] += 2 * part / clusters
            missed[1] += part * n * m
            missed[2] += 2 * part * n * m / whole
    lacks = (missed[0], missed[1], missed[2], 1.0)
    return false if len(here) > 1 else NOTHING, lacks if missed[1] else NOTHING
