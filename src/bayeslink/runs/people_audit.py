"""How good the clusters of a run are, and how many people there are, from clusters people judged.

The sample is drawn by `runs.people_sample`. Of a cluster c that was judged, with the records shown
beside it, follow two kinds of errors. Let c hold records of k people, and n_i of the N_i records of
person i:

- *false joins*: k − 1 people too few; the pairs of two people in c;
- *records missed*: the sum of 1 − n_i / N_i people too many; half of the pairs that each record of
  c has with records of its person elsewhere. The other part is counted with the other clusters.

So people = clusters + Σ (k − 1) − Σ (1 − n_i / N_i), exactly, however a person is scattered, if all
of it is shown; each sum is over clusters, and a stratified random sample of clusters estimates it.

Estimates are the plain stratified ones, without bias. For their intervals the share of clusters
with an error of a kind has a beta prior in each stratum, as the shares of `runs.audit` have; the
errors of clusters not judged are drawn from those found, with Dirichlet weights (the Bayesian
bootstrap; Rubin 1981), and from that of the prior: one record too many, or one that is missed. The
ends of an interval have a prior each, as those of the number of links of two files; for people,
with up to `HELP` verdicts of help by the model. The lower ends of recall and of people allow for up
to `NEAR` more, never shown, for each that may be missed where clusters are shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from bayeslink.errors import InputError
from bayeslink.judging.judgements import LINK, NONLINK, Pair, Sample, Stratum
from bayeslink.pairs.source import Floats
from bayeslink.runs.audit import (
    DRAWS,
    ENDS,
    HELP,
    NEAR,
    Estimate,
    ends,
    ratios,
    with_help,
)
from bayeslink.runs.people_sample import ALONE, FLOOR, SHOWN, PeopleFrame, PeopleToDraw

# What an error is counted in: people, pairs, shares of records (for B-cubed), and clusters.
_PEOPLE, _PAIRS, _RECORDS, _CLUSTERS = range(4)
FEW, _, MANY = ENDS  # priors of the share of clusters with an error
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


@dataclass(frozen=True, slots=True)
class PeopleQuality:
    """Precision, recall and F1 of pairs; B-cubed; clusters that are a whole person; people."""

    precision: Estimate
    recall: Estimate
    f1: Estimate
    bcubed_precision: Estimate
    bcubed_recall: Estimate
    exact_clusters: Estimate
    people: Estimate
    beyond: Estimate  # joins never shown; they are allowed for at the lower end of people

    def __str__(self) -> str:
        shares = (
            ("precision", self.precision),
            ("recall", self.recall),
            ("F1", self.f1),
            ("B-cubed prec.", self.bcubed_precision),
            ("B-cubed recall", self.bcubed_recall),
            ("exact clusters", self.exact_clusters),
        )
        lines = [f"{name:<14}{e}" for name, e in shares]
        e = self.people
        return "\n".join(
            [
                *lines,
                f"{'people':<14}{e.value:>8,.0f}   95 % interval {e.lower:,.0f} to {e.upper:,.0f}",
            ]
        )


@dataclass(frozen=True, slots=True)
class Counted:
    """What a run has: its records, its clusters, and the pairs of records within them."""

    records: int
    clusters: int
    pairs: int

    @classmethod
    def of(cls, frame: PeopleFrame) -> Counted:
        size = frame.structure.size
        return cls(int(size.sum()), len(size), int((size * (size - 1) // 2).sum()))


@dataclass(frozen=True, slots=True)
class PeopleEvaluation:
    """Quality of a run's clusters, from its judged random sample.

    Clusters with a pair that is unsure count as if they had not been drawn in `quality`; the other
    two say what it would be if all such pairs were one person, and if none were.
    """

    quality: PeopleQuality
    unsure_as_links: PeopleQuality
    unsure_as_nonlinks: PeopleQuality
    strata: tuple[JudgedClusters, ...]
    found: Counted
    beyond_shown: float  # pairs of one person that the model expects where none is shown
    run_interval: tuple[int, int] | None = None  # of people, without the sample

    @property
    def drawn(self) -> int:
        return sum(s.drawn for s in self.strata)

    @property
    def judged(self) -> int:
        """Clusters of which it was judged who their records are."""
        return sum(s.judged for s in self.strata)

    @property
    def unsure(self) -> int:
        return sum(s.unsure for s in self.strata)

    def as_dict(self) -> dict[str, Any]:
        """Return all numbers by name."""
        return asdict(self)

    def __str__(self) -> str:
        open_ = self.drawn - self.judged - self.unsure
        lines = [
            f"Judged {self.judged:,} of {self.drawn:,} clusters drawn at random; {self.unsure:,} "
            f"unsure, {open_:,} not judged or after one that is not. These count as not drawn.",
            str(self.quality),
        ]
        if self.unsure:
            lines += [
                "If all unsure pairs were one person:",
                str(self.unsure_as_links),
                "If none were:",
                str(self.unsure_as_nonlinks),
            ]
        lines += ["", f"{'':<34}{'clusters':>12}{'judged':>9}{'wrong':>8}{'the model expects':>20}"]
        lines += [_stratum_line(s) for s in self.strata if s.stratum.size]
        return "\n".join([*lines, "", self._reach(), "", self._assumption()])

    def _reach(self) -> str:
        own = self.run_interval
        without_sample = f", and takes them for {own[0]:,} to {own[1]:,} people" if own else ""
        alone = next((s.stratum.size for s in self.strata if s.stratum.name == ALONE), 0)
        without = f" {alone:,} single records are shown with nothing: none was drawn." * bool(alone)
        return (
            f"The run has {self.found.clusters:,} clusters{without_sample}. Precision, recall and "
            "F1 are of pairs of records. Recall is of the pairs that can be shown: with a cluster "
            f"all that may be one with it, by a probability above {FLOOR:.2g}, up to {SHOWN} "
            f"records in all. The model expects {self.beyond_shown:,.1f} pairs of one person "
            f"besides.{without}"
        )

    def _assumption(self) -> str:
        most = self.quality.beyond.upper
        return (
            "Recall and people rest on an assumption: for each join that may be missing where "
            f"clusters are shown there is up to {NEAR} that is never shown. Their lower ends allow "
            f"for that (people for {most:,.0f} of them), their upper ends for none."
        )


def _stratum_line(s: JudgedClusters) -> str:
    found = f"{s.wrong / s.judged:>8.1%}" if s.judged else f"{'–':>8}"
    expected = f"{s.stratum.expected / s.stratum.size:>20.2%}"
    return f"{s.stratum.name:<34}{s.stratum.size:>12,}{s.judged:>9,}{found}{expected}"


# --- verdicts -------------------------------------------------------------------------------------


def estimate_people(
    made: PeopleToDraw, sample: Sample, labels: Mapping[Pair, str]
) -> PeopleEvaluation:
    """What the verdicts on a stratified random sample of clusters say.

    Of a sample that is not judged to the end, a stratum counts up to the first cluster in its
    random order that is not judged.
    """
    said = {(min(pair), max(pair)): verdict for pair, verdict in labels.items()}
    as_links, as_nonlinks = ({**said} for _ in range(2))
    for pair, verdict in said.items():
        if verdict not in (LINK, NONLINK):
            as_links[pair], as_nonlinks[pair] = LINK, NONLINK
    found = Counted.of(made.frame)
    strata = judged_strata(made, sample, said)
    if not any(s.judged for s in strata):
        raise InputError(
            f"none of the {sum(s.drawn for s in strata):,} clusters drawn at random is judged yet. "
            "Judge them first, with bayeslink review."
        )
    quality = people_quality(strata, found)
    extremes = (quality, quality)
    if any(s.unsure for s in strata):
        one, other = (
            people_quality(judged_strata(made, sample, labels), found)
            for labels in (as_links, as_nonlinks)
        )
        extremes = one, other
    return PeopleEvaluation(quality, *extremes, tuple(strata), found, made.frame.beyond)


def judged_strata(
    made: PeopleToDraw, sample: Sample, labels: Mapping[Pair, str]
) -> list[JudgedClusters]:
    """The strata with the errors that the verdicts tell of; ids of a label in order."""
    drawn, ended = made.drawn(sample), set[int]()
    judged, unsure, wrong = (Counter[int]() for _ in range(3))
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
            one, other = errors_of(made, cluster, said)
            wrong[k] += one != NOTHING or other != NOTHING
            if one != NOTHING:
                false.setdefault(k, []).append(one)
            if other != NOTHING:
                missed.setdefault(k, []).append(other)
    n_drawn = Counter(k for _, k in drawn)
    return [
        replace(
            bare,
            drawn=n_drawn[k],
            judged=judged[k],
            unsure=unsure[k],
            wrong=wrong[k],
            false=tuple(false.get(k, ())),
            missed=tuple(missed.get(k, ())),
        )
        for k, bare in enumerate(bare_strata(made.frame))
    ]


def bare_strata(frame: PeopleFrame) -> list[JudgedClusters]:
    """The strata before anything is drawn."""
    return [
        JudgedClusters(stratum, 0, 0, 0, 0, (), (), *_by_the_model(frame, rows))
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
    here, all_ = Counter(person[r] for r in own), Counter(person.values())
    z = len(own)
    pairs = z * (z - 1) // 2 - sum(n * (n - 1) // 2 for n in here.values())
    false = (len(here) - 1.0, float(pairs), z - sum(n * n for n in here.values()) / z, 1.0)
    lacks = [(n, all_[who]) for who, n in here.items()]
    missed = (
        sum(1 - n / whole for n, whole in lacks),
        sum(n * (whole - n) for n, whole in lacks) / 2,
        sum(n * (1 - n / whole) for n, whole in lacks),
        1.0,
    )
    return false if len(here) > 1 else NOTHING, missed if missed[1] else NOTHING


# --- estimates ------------------------------------------------------------------------------------


def people_quality(
    strata: Sequence[JudgedClusters], found: Counted, seed: int = 1
) -> PeopleQuality:
    """What the errors found in these strata say of all clusters; see the module."""
    rng = np.random.default_rng(seed)
    few, many = (_errors(strata, prior, 0.0, rng) for prior in (FEW, MANY))
    hidden = NEAR * rng.random((DRAWS, 1)) * many.missed  # never shown
    worst = _Errors(many.false, many.missed + hidden, many.wrong + hidden[:, _CLUSTERS])
    three = worst, _expanded(strata), few

    def between(share: Callable[[_Errors], tuple[Floats, Floats]]) -> Estimate:
        return _ends([ratios(*share(errors)) for errors in three])

    def joined(e: _Errors) -> Floats:
        return np.maximum(found.pairs - e.false[:, _PAIRS], 0.0)

    def of_all(total: int, errors: Floats) -> tuple[Floats, Floats]:
        return np.maximum(total - errors, 0.0), np.full(len(errors), float(total))

    people, beyond = _people(strata, found, rng)
    return PeopleQuality(
        precision=between(lambda e: of_all(found.pairs, e.false[:, _PAIRS])),
        recall=between(lambda e: (joined(e), joined(e) + e.missed[:, _PAIRS])),
        f1=between(lambda e: (2 * joined(e), found.pairs + joined(e) + e.missed[:, _PAIRS])),
        bcubed_precision=between(lambda e: of_all(found.records, e.false[:, _RECORDS])),
        bcubed_recall=between(lambda e: of_all(found.records, e.missed[:, _RECORDS])),
        exact_clusters=between(lambda e: of_all(found.clusters, e.wrong)),
        people=people,
        beyond=beyond,
    )


def _people(
    strata: Sequence[JudgedClusters], found: Counted, rng: np.random.Generator
) -> tuple[Estimate, Estimate]:
    """How many people there are, and how many joins are never shown; see the module."""
    few, many = (_errors(strata, prior, HELP, rng) for prior in (FEW, MANY))
    middle, nothing = _expanded(strata), np.zeros(1)
    hidden = NEAR * rng.random(DRAWS) * many.missed[:, _PEOPLE]
    people = [
        np.rint(np.clip(found.clusters + false - missed, 1, found.records))
        for false, missed in (
            (few.false[:, _PEOPLE], many.missed[:, _PEOPLE] + hidden),
            (middle.false[:, _PEOPLE], middle.missed[:, _PEOPLE]),
            (many.false[:, _PEOPLE], few.missed[:, _PEOPLE]),
        )
    ]
    return _ends(people), _ends([nothing, nothing, np.rint(hidden)])


def _ends(draws: Sequence[Floats]) -> Estimate:
    """An estimate within its interval."""
    found = ends(draws)
    return replace(found, value=min(max(found.value, found.lower), found.upper))


@dataclass(frozen=True, slots=True)
class _Errors:
    """Draws of all that is false and all that is missed, and of the clusters with either."""

    false: Floats  # draw × what it is counted in
    missed: Floats
    wrong: Floats


def _errors(
    strata: Sequence[JudgedClusters],
    prior: tuple[float, float],
    help_: float,
    rng: np.random.Generator,
) -> _Errors:
    """Draws of the errors in all strata, those found among them."""
    false, missed = np.zeros((2, DRAWS, len(NOTHING)))
    wrong = np.zeros(DRAWS)
    for s in strata:
        if not s.drawn:
            continue
        kinds = (
            (false, s.false, s.model[0], s.usual[0], s.stratum.linked),
            (missed, s.missed, s.model[1], s.usual[1], s.model[1] > 0),
        )
        for into, seen, expected, usual, possible in kinds:
            if possible:
                into += _of_kind(s, seen, expected, usual, prior, help_, rng)
        for_, against = with_help(prior, s.stratum, help_)
        share = rng.beta(s.wrong + for_, s.judged - s.wrong + against, DRAWS)
        wrong += s.wrong + rng.binomial(s.stratum.size - s.judged, share)
    return _Errors(false, missed, wrong)


def _expanded(strata: Sequence[JudgedClusters]) -> _Errors:
    """The stratified estimate: each cluster judged stands for others of its stratum.

    As one draw. Where none is judged yet, the model has to do.
    """
    false, missed, wrong = np.zeros((1, len(NOTHING))), np.zeros((1, len(NOTHING))), np.zeros(1)
    for s in strata:
        if not s.drawn:
            continue
        each = s.stratum.size / max(1, s.judged)
        kinds = zip((false, missed), (s.false, s.missed), s.model, s.usual, strict=True)
        for into, seen, expected, usual in kinds:
            into += np.sum([NOTHING, *seen], axis=0) * each
            into += 0.0 if s.judged else expected * np.array(usual)
        wrong += s.wrong * each if s.judged else s.stratum.expected
    return _Errors(false, missed, wrong)


def _of_kind(
    s: JudgedClusters,
    seen: Sequence[Errors],
    expected: float,
    usual: Errors,
    prior: tuple[float, float],
    help_: float,
    rng: np.random.Generator,
) -> Floats:
    """Draws of all errors of a kind in a stratum."""
    own = Stratum(s.stratum.name, False, s.stratum.size, min(expected, float(s.stratum.size)))
    for_, against = with_help(prior, own, help_)
    share = rng.beta(len(seen) + for_, s.judged - len(seen) + against, DRAWS)
    more = rng.binomial(s.stratum.size - s.judged, share)
    sizes = np.array([*seen, usual])
    weights = rng.gamma(np.array([1.0] * len(seen) + [for_]), size=(DRAWS, len(sizes)))
    weights += 1e-300 * (weights.sum(axis=1, keepdims=True) == 0)
    times = rng.multinomial(more, weights / weights.sum(axis=1, keepdims=True))
    return np.asarray(np.sum(seen, axis=0) if seen else 0.0) + times @ sizes
