"""Precision and recall without the truth: from a random sample of pairs that people judged.

The sample is drawn by `results.audit_sample`; what is estimated rests on the judgements alone.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bayeslink.errors import InputError
from bayeslink.judging.judgements import FILE, LINK, NONLINK, Judgements, Pair, Sample, Stratum
from bayeslink.judging.labels import read_labels
from bayeslink.pairs.source import Floats
from bayeslink.results.audit_sample import EDGES, fingerprint
from bayeslink.results.store import read_summary

_DRAWS = 20_000


@dataclass(frozen=True, slots=True)
class Estimate:
    """Posterior median and 95 % interval."""

    value: float
    lower: float
    upper: float

    def __str__(self) -> str:
        return f"{self.value:>8.4f}   95 % interval {self.lower:.4f} to {self.upper:.4f}"


@dataclass(frozen=True, slots=True)
class Quality:
    """Precision, recall and F1 of links."""

    precision: Estimate
    recall: Estimate
    f1: Estimate

    def __str__(self) -> str:
        return "\n".join(
            f"{name:<10}{estimate}"
            for name, estimate in (
                ("precision", self.precision),
                ("recall", self.recall),
                ("F1", self.f1),
            )
        )


@dataclass(frozen=True, slots=True)
class JudgedStratum:
    """A stratum and what was judged of the pairs drawn from it."""

    stratum: Stratum
    drawn: int
    links: int
    nonlinks: int
    unsure: int  # judged unsure, or reviewers disagree


@dataclass(frozen=True, slots=True)
class SampleEvaluation:
    """Quality of a run's links, from its judged random sample.

    Unsure pairs count as if they had not been drawn in `quality`; the other two say what it would
    be if all of them were links, and if none were.
    """

    quality: Quality
    unsure_as_links: Quality
    unsure_as_nonlinks: Quality
    strata: tuple[JudgedStratum, ...]
    below_w0: float | None = None  # links at most, by the model, among pairs that are no candidates

    @property
    def drawn(self) -> int:
        return sum(s.drawn for s in self.strata)

    @property
    def judged(self) -> int:
        """Pairs judged to be a link or a non-link."""
        return sum(s.links + s.nonlinks for s in self.strata)

    @property
    def unsure(self) -> int:
        return sum(s.unsure for s in self.strata)

    @property
    def outside(self) -> list[Stratum]:
        """Pairs of which none is drawn and whose links recall leaves out."""
        return [s.stratum for s in self.strata if not s.drawn and not s.stratum.linked]

    def as_dict(self) -> dict[str, Any]:
        """Return all numbers by name."""
        return asdict(self)

    def __str__(self) -> str:
        open_ = self.drawn - self.judged - self.unsure
        lines = [
            f"Judged {self.judged:,} of {self.drawn:,} pairs drawn at random; {self.unsure:,} "
            f"unsure, {open_:,} not judged or after one that is not. These count as not drawn.",
            str(self.quality),
        ]
        if self.unsure:
            lines += [
                "If all unsure pairs were links:",
                str(self.unsure_as_links),
                "If none were:",
                str(self.unsure_as_nonlinks),
            ]
        lines += ["", f"{'':<34}{'pairs':>12}{'judged':>9}{'links':>8}{'the model expects':>20}"]
        lines += [_stratum_line(s) for s in self.strata]
        lines += ["", _reach(self.outside, self.below_w0)]
        return "\n".join(lines)


def _stratum_line(s: JudgedStratum) -> str:
    judged = s.links + s.nonlinks
    found = f"{s.links / judged:>8.1%}" if judged else f"{'–':>8}"
    expected = s.stratum.expected / s.stratum.size
    return f"{s.stratum.name:<34}{s.stratum.size:>12,}{judged:>9,}{found}{expected:>20.2%}"


def _reach(outside: Sequence[Stratum], below_w0: float | None) -> str:
    reckoned = "" if below_w0 is None else f" and hold up to {below_w0:,.1f} links by the model"
    left_out = "".join(
        f", nor are the {s.size:,} candidates with a link probability below {EDGES[-1]:g}, where "
        f"the model expects {s.expected:,.1f} links"
        for s in outside
    )
    return (
        "Recall is of the links among the pairs drawn from. Pairs below w0, which are no "
        f"candidates{reckoned}, are not among them{left_out}."
    )


def evaluate_sample(directory: str | Path, labels: Any = None) -> SampleEvaluation:
    """Estimate precision, recall and F1 of a run from its judged random sample.

    Parameters
    ----------
    labels
        Where the verdicts are, if not in the run directory: see `read_labels`.

    Notes
    -----
    Pairs that are unsure are taken to be like the others of their stratum. Of a sample that is not
    judged to the end, a stratum counts up to the first pair in its random order that is not judged:
    people judge the doubtful cases first, and those would bias the estimate.
    """
    folder = Path(directory)
    sample = None
    if (folder / FILE).exists():
        with Judgements(folder / FILE) as judgements:
            sample = judgements.sample()
    if sample is None:
        raise InputError(
            f"no random sample was drawn from {folder}. Draw one on its review page (bayeslink "
            f"review {folder}) or with draw_sample, judge its pairs, and come back."
        )
    if sample.run != fingerprint(folder):
        raise InputError(
            f"the random sample in {folder} was drawn from an earlier run, with other links. "
            "Draw a new one."
        )
    found = estimate(sample, read_labels(folder if labels is None else labels))
    return replace(found, below_w0=read_summary(folder).get("set_aside"))


def estimate(sample: Sample, labels: Mapping[Pair, str], *, seed: int = 1) -> SampleEvaluation:
    """Precision, recall and F1 from the verdicts on a stratified random sample.

    Each stratum has a Jeffreys prior on its share of links; the pairs that were not judged are
    drawn given those that were. Known links count as true.
    """
    said: list[Counter[str]] = [Counter() for _ in sample.strata]
    ended = set()
    for pair, k in zip(sample.pairs, sample.stratum, strict=True):
        if pair not in labels:
            ended.add(k)
        elif k not in ended:
            said[k][labels[pair]] += 1
    drawn = Counter(sample.stratum)
    strata = []
    for k, stratum in enumerate(sample.strata):
        links, nonlinks = said[k][LINK], said[k][NONLINK]
        unsure = said[k].total() - links - nonlinks
        strata.append(JudgedStratum(stratum, drawn[k], links, nonlinks, unsure))
    if not any(s.links + s.nonlinks for s in strata):
        raise InputError(
            f"none of the {len(sample.pairs):,} pairs drawn at random is judged yet. "
            "Judge them first, with bayeslink review."
        )
    quality = _quality(strata, seed)
    if any(s.unsure for s in strata):
        as_links = [replace(s, links=s.links + s.unsure) for s in strata]
        as_nonlinks = [replace(s, nonlinks=s.nonlinks + s.unsure) for s in strata]
        extremes = _quality(as_links, seed), _quality(as_nonlinks, seed)
    else:
        extremes = quality, quality
    return SampleEvaluation(quality, *extremes, tuple(strata))


def _quality(strata: Sequence[JudgedStratum], seed: int) -> Quality:
    rng = np.random.default_rng(seed)
    true, missed = np.zeros(_DRAWS), np.zeros(_DRAWS)
    n_links = 0
    for s in strata:
        share = rng.beta(s.links + 0.5, s.nonlinks + 0.5, _DRAWS)
        found = s.links + rng.binomial(s.stratum.size - s.links - s.nonlinks, share)
        if not s.drawn:
            found = np.full(_DRAWS, s.stratum.size if s.stratum.linked else 0)
        if s.stratum.linked:
            n_links += s.stratum.size
            true += found
        else:
            missed += found
    return Quality(
        precision=_summary(true, np.full(_DRAWS, n_links)),
        recall=_summary(true, true + missed),
        f1=_summary(2 * true, n_links + true + missed),
    )


def _summary(part: Floats, whole: Floats) -> Estimate:
    some = whole > 0
    if not some.any():
        return Estimate(math.nan, math.nan, math.nan)
    ratio = part[some] / whole[some]
    lower, value, upper = np.quantile(ratio, (0.025, 0.5, 0.975)).tolist()
    return Estimate(value, lower, upper)
