"""How good the clusters of a run are, and how many people there are, from clusters people judged.

The sample is drawn by `runs.people_sample`; what a verdict says of a cluster is in
`runs.people_errors`.

Estimates are the plain stratified ones; but false pairs are taken to go with the pairs within
clusters, which are known: where those not judged are larger, they have more (a ratio estimate). For
the intervals the share of clusters with an error of a kind has a beta prior in each stratum, as the
shares of `runs.audit` have; the errors of clusters not judged are drawn from those found, with
Dirichlet weights (the Bayesian bootstrap; Rubin 1981), and from that of the prior: one record too
many, or one that is missed. The ends of an interval have a prior each, as those of the number of
links of two files; for people, with up to `HELP` verdicts of help by the model. The lower ends of
recall and of people allow for up to `NEAR` more, never shown, for each that may be missed where
clusters are shown. Where the run did not keep the nearest others of its clusters
(`runs.people_reach`), verdicts cannot speak for them: these ends then allow for all joins that its
own interval of people allows for.
"""

from __future__ import annotations

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
from bayeslink.runs.people_errors import NOTHING, Errors, JudgedClusters, judged_strata
from bayeslink.runs.people_reach import FLOOR
from bayeslink.runs.people_sample import ALONE, SHOWN, PeopleFrame, PeopleToDraw

_PEOPLE, _PAIRS, _RECORDS, _CLUSTERS = range(4)  # what an error is counted in
FEW, _, MANY = ENDS  # priors of the share of clusters with an error


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
    """What a run has: its records, its clusters, and the pairs of records within them.

    `unlisted` are the joins it allows for by its own interval of people; 0 if the sample shows what
    no list has, as then the verdicts tell.
    """

    records: int
    clusters: int
    pairs: int
    unlisted: int = 0

    @classmethod
    def of(cls, frame: PeopleFrame, own: tuple[int, int] | None = None) -> Counted:
        size = frame.structure.size
        pairs = int((size * (size - 1) // 2).sum())
        least = len(size) if own is None or frame.reach is not None else own[0]
        return cls(int(size.sum()), len(size), pairs, max(0, len(size) - least))


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
    reached: bool  # the nearest clusters that no list has were shown, too
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
        nearest = " and its nearest others that no list has" * self.reached
        return (
            f"The run has {self.found.clusters:,} clusters{without_sample}. Precision, recall and "
            "F1 are of pairs of records. With a cluster is shown all that may be one with it, by a "
            f"probability above {FLOOR:.2g}, up to {SHOWN} records in all,{nearest}. The model "
            f"expects {self.beyond_shown:,.1f} pairs of one person besides."
        )

    def _assumption(self) -> str:
        most = self.quality.beyond.upper
        told = (
            "Recall and people rest on an assumption: for each join that may be missing where "
            f"clusters are shown there is up to {NEAR} that is never shown. Their lower ends allow "
            f"for that (people for {most:,.0f} of them), their upper ends for none."
        )
        if self.reached:
            return told
        alone = next((s.stratum.size for s in self.strata if s.stratum.name == ALONE), 0)
        return (
            f"{told} This run did not keep what is nearest where no list has anything: it was "
            "saved by an earlier version, its records are too many, or only some pairs were "
            f"compared. {alone:,} single records are shown with nothing, and none of them was "
            f"drawn. So these lower ends also allow for all {self.found.unlisted:,} joins that "
            "the run's own interval of people allows for."
        )


def _stratum_line(s: JudgedClusters) -> str:
    found = f"{s.wrong / s.judged:>8.1%}" if s.judged else f"{'–':>8}"
    expected = f"{s.stratum.expected / s.stratum.size:>20.2%}"
    return f"{s.stratum.name:<34}{s.stratum.size:>12,}{s.judged:>9,}{found}{expected}"


# --- verdicts -------------------------------------------------------------------------------------


def estimate_people(
    made: PeopleToDraw,
    sample: Sample,
    labels: Mapping[Pair, str],
    own: tuple[int, int] | None = None,
) -> PeopleEvaluation:
    """What the verdicts on a stratified random sample of clusters say.

    `own` is the run's interval of people.


    Of a sample that is not judged to the end, a stratum counts up to the first cluster in its
    random order that is not judged.
    """
    said = {(min(pair), max(pair)): verdict for pair, verdict in labels.items()}
    as_links, as_nonlinks = ({**said} for _ in range(2))
    for pair, verdict in said.items():
        if verdict not in (LINK, NONLINK):
            as_links[pair], as_nonlinks[pair] = LINK, NONLINK
    found = Counted.of(made.frame, own)
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
    beyond, reached = made.frame.beyond, made.frame.reach is not None
    return PeopleEvaluation(quality, *extremes, tuple(strata), found, beyond, reached, own)


# --- estimates ------------------------------------------------------------------------------------


def people_quality(
    strata: Sequence[JudgedClusters], found: Counted, seed: int = 1
) -> PeopleQuality:
    """What the errors found in these strata say of all clusters; see the module."""
    rng = np.random.default_rng(seed)
    few, many = (_errors(strata, prior, 0.0, rng) for prior in (FEW, MANY))
    hidden = _hidden(many.missed, found, rng)
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
    hidden = _hidden(many.missed, found, rng)[:, _PEOPLE]
    people = [
        np.rint(np.clip(found.clusters + false - missed, 1, found.records))
        for false, missed in (
            (few.false[:, _PEOPLE], many.missed[:, _PEOPLE] + hidden),
            (middle.false[:, _PEOPLE], middle.missed[:, _PEOPLE]),
            (many.false[:, _PEOPLE], few.missed[:, _PEOPLE]),
        )
    ]
    return _ends(people), _ends([nothing, nothing, np.rint(hidden)])


def _hidden(missed: Floats, found: Counted, rng: np.random.Generator) -> Floats:
    """Draws of what is missed and never shown, by what is missed where clusters are shown."""
    near = NEAR * rng.random((DRAWS, 1)) * missed
    lacking = np.maximum(found.unlisted - missed[:, _PEOPLE] - near[:, _PEOPLE], 0.0)
    z = found.records / found.clusters
    return near + lacking[:, None] * np.array([1.0, z * z, z, 2.0])


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
            (false, s.false, s.larger, s.stratum.linked, help_),
            # Of what no list has the model knows nothing.
            (missed, s.missed, 1.0, s.reached or s.model[1] > 0, 0.0 if s.reached else help_),
        )
        told = zip(kinds, s.model, s.usual, strict=True)
        for (into, seen, larger, possible, by_model), expected, usual in told:
            if possible:
                into += _of_kind(s, seen, larger, expected, usual, prior, by_model, rng)
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
            others = _of_others(seen, s.larger if into is false else 1.0)
            into += np.sum([NOTHING, *seen], axis=0) + (each - 1) * np.sum(others, axis=0)
            into += 0.0 if s.judged else expected * np.array(usual)
        wrong += s.wrong * each if s.judged else s.stratum.expected
    return _Errors(false, missed, wrong)


def _of_kind(
    s: JudgedClusters,
    seen: Sequence[Errors],
    larger: float,
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
    sizes = np.array([*_of_others(seen, larger)[1:], usual])
    weights = rng.gamma(np.array([1.0] * len(seen) + [for_]), size=(DRAWS, len(sizes)))
    weights += 1e-300 * (weights.sum(axis=1, keepdims=True) == 0)
    times = rng.multinomial(more, weights / weights.sum(axis=1, keepdims=True))
    return np.asarray(np.sum(seen, axis=0) if seen else 0.0) + times @ sizes


def _of_others(seen: Sequence[Errors], larger: float) -> Floats:
    """Nothing, and the errors seen as clusters not judged have them: pairs go with their size."""
    return np.array([NOTHING, *seen]) * np.where(np.arange(len(NOTHING)) == _PAIRS, larger, 1.0)
