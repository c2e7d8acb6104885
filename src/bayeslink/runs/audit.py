"""How many true links, and how good the links are, from a random sample of pairs people judged.

The sample is drawn by `runs.audit_sample`. Precision, recall and F1 among the pairs drawn from
rest on the judgements alone. The number of true links L takes some help of the model:

- *Where pairs are drawn.* A share of links has a beta prior worth at most `HELP` verdicts that
  agree with the model. The lower and the upper end of an interval have a prior each, as in Clopper
  and Pearson's: where all verdicts agree, that there is no other link is possible, and that there
  are some.
- *Where pairs are drawn with a known chance.* Of records without a link or a near candidate one
  pair each is drawn. A link found so stands for 1 / chance of them (Horvitz and Thompson 1952). The
  interval is Fay and Feuer's (1997) for a weighted sum of Poisson counts, with Jeffreys's half of
  one more link at the upper end. That one has the least chance of the pairs judged, but no less
  than `_RAREST`: links still less likely to be shown count only if they are found.
- *Where none can be.* Of records with a near candidate true pairs may be elsewhere. They are taken
  to be anything from none to `NEAR` for each link found missing among candidates. The lower end of
  the interval of L does without them. The upper end goes by all links that may be missing where
  pairs were judged: that nothing was found does not say that nothing is hidden.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from bayeslink.errors import InputError
from bayeslink.judging.judgements import LINK, NONLINK, Pair, Sample, Stratum
from bayeslink.pairs.source import Floats, Ints
from bayeslink.runs.audit_sample import BEST, chances_of
from bayeslink.runs.run import Run
from bayeslink.sampling.population import population_size

DRAWS = 20_000
HELP = 10.0
NEAR = 1
_RAREST = 0.1
JEFFREYS = (0.5, 0.5)  # beta priors of a share of links
ENDS = (0.01, 0.5), (0.2, 0.2), (0.5, 0.01)  # of the lower end, the middle and the upper end


@dataclass(frozen=True, slots=True)
class Estimate:
    """Posterior median and 95 % interval."""

    value: float
    lower: float
    upper: float

    def __str__(self) -> str:
        return f"{self.value:>8.4f}   95 % interval {self.lower:.4f} to {self.upper:.4f}"


@dataclass(frozen=True, slots=True)
class Totals:
    """What there is in all, in pairs never shown too.

    `beyond` are the links among those: no verdict speaks of them. `population` is the number of
    people in either list or in none; None without the sizes of the lists, or where they may share
    nobody.
    """

    links: Estimate
    recall: Estimate
    beyond: Estimate
    population: Estimate | None = None

    def __str__(self) -> str:
        counts = [("true links", self.links), ("  never shown", self.beyond)]
        if self.population is not None:
            counts.append(("people", self.population))
        return "\n".join(
            [f"recall of all {self.recall}"]
            + [
                f"{name:<14}{e.value:>8,.0f}   95 % interval {e.lower:,.0f} to {e.upper:,.0f}"
                for name, e in counts
            ]
        )


@dataclass(frozen=True, slots=True)
class Quality:
    """Precision of the links; recall and F1 among the pairs drawn from; and all there is."""

    precision: Estimate
    recall: Estimate
    f1: Estimate
    totals: Totals

    def __str__(self) -> str:
        shares = (("precision", self.precision), ("recall", self.recall), ("F1", self.f1))
        return "\n".join([*(f"{name:<14}{e}" for name, e in shares), str(self.totals)])


@dataclass(frozen=True, slots=True)
class JudgedStratum:
    """A stratum and what was judged of the pairs drawn from it."""

    stratum: Stratum
    drawn: int
    links: int
    nonlinks: int
    unsure: int  # judged unsure, or reviewers disagree
    chances: tuple[float, ...] = ()  # of the links, where pairs are drawn with a chance each
    least: float = 1.0  # of those judged


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
    beyond_table: float | None = None  # links, by the model, among pairs that are not listed

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
        lines += ["", _reach(self.outside, self.beyond_table), "", self._assumption()]
        return "\n".join(lines)

    def _assumption(self) -> str:
        totals = self.quality.totals
        share = totals.beyond.value / max(totals.links.value, 1.0)
        most = totals.beyond.upper / max(totals.links.upper, 1.0)
        unseen = (
            ""
            if any(s.stratum.name == BEST for s in self.strata)
            else " Of records without a candidate none was drawn."
        )
        return (
            "True links, recall of all and people rest on two assumptions: for each link that may "
            f"be missing among candidates there is up to {NEAR} in pairs never shown; and a link "
            f"of a record without a candidate is shown with a chance of {_RAREST:.0%} at least. "
            f"Links never shown are {share:.0%} of the true links here, and up to {most:.0%} at "
            f"the upper end.{unseen}"
        )


def _stratum_line(s: JudgedStratum) -> str:
    judged = s.links + s.nonlinks
    found = f"{s.links / judged:>8.1%}" if judged else f"{'–':>8}"
    expected = f"{s.stratum.expected / s.stratum.size:>20.2%}"
    if s.stratum.name == BEST:  # the model has no probability for them
        expected = f"{'–':>20}"
    return f"{s.stratum.name:<34}{s.stratum.size:>12,}{judged:>9,}{found}{expected}"


def _reach(outside: Sequence[Stratum], beyond_table: float | None) -> str:
    reckoned = "" if beyond_table is None else f" (about {beyond_table:,.1f} links by the model)"
    left_out = "".join(
        f", nor are the {s.size:,} candidates with a link probability {s.name[12:]}, where "
        f"the model expects {s.expected:,.1f} links"
        for s in outside
    )
    return (
        "Recall is of the links among the pairs drawn from. Pairs that are not "
        f"listed{reckoned} are drawn at most as one pair of a record{left_out}."
    )


def evaluate_links(run: Run, sample: Sample, labels: Mapping[Pair, str]) -> SampleEvaluation:
    """What the verdicts on a linkage's sample say."""
    summary = run.summary()
    found = estimate(
        sample,
        labels,
        records=(summary["n_a"], summary["n_b"]),
        chances=chances_of(run.as_table("reach")),
    )
    return replace(found, beyond_table=summary.get("links_outside"))


def estimate(
    sample: Sample,
    labels: Mapping[Pair, str],
    *,
    records: tuple[int, int] | None = None,
    chances: Mapping[Pair, float] | None = None,
) -> SampleEvaluation:
    """Precision, recall, F1 and totals from the verdicts on a stratified random sample.

    Each stratum has a Jeffreys prior on its share of links; the pairs that were not judged are
    drawn given those that were. Known links count as true. For the totals see the module.

    Parameters
    ----------
    records
        Records in A and in B: there are no more links than the fewer, and the population follows.
    chances
        How likely the pairs of records without a candidate were to be drawn; 1 unless given.
    """
    said: list[Counter[str]] = [Counter() for _ in sample.strata]
    ended = set()
    by_chance: list[list[tuple[float, bool]]] = [[] for _ in sample.strata]
    for pair, k in zip(sample.pairs, sample.stratum, strict=True):
        if pair not in labels:
            ended.add(k)
        elif k not in ended:
            said[k][labels[pair]] += 1
            if sample.strata[k].name == BEST and labels[pair] in (LINK, NONLINK):
                by_chance[k].append(((chances or {}).get(pair, 1.0), labels[pair] == LINK))
    drawn = Counter(sample.stratum)
    strata = []
    for k, stratum in enumerate(sample.strata):
        links, nonlinks = said[k][LINK], said[k][NONLINK]
        unsure = said[k].total() - links - nonlinks
        of_links = tuple(chance for chance, is_link in by_chance[k] if is_link)
        least = min((chance for chance, _ in by_chance[k]), default=1.0)
        given = (stratum, drawn[k], links, nonlinks, unsure)
        strata.append(JudgedStratum(*given, of_links, least))
    if not any(s.links + s.nonlinks for s in strata):
        raise InputError(
            f"none of the {len(sample.pairs):,} pairs drawn at random is judged yet. "
            "Judge them first, with bayeslink review."
        )
    quality = quality_of(strata, records)
    if any(s.unsure for s in strata):
        as_links = [replace(s, links=s.links + s.unsure) for s in strata]
        as_nonlinks = [replace(s, nonlinks=s.nonlinks + s.unsure) for s in strata]
        extremes = quality_of(as_links, records), quality_of(as_nonlinks, records)
    else:
        extremes = quality, quality
    return SampleEvaluation(quality, *extremes, tuple(strata))


def quality_of(
    strata: Sequence[JudgedStratum], records: tuple[int, int] | None, seed: int = 1
) -> Quality:
    """What the verdicts on these strata say."""
    rng = np.random.default_rng(seed)
    true, missed, _ = _links(strata, JEFFREYS, 0.0, rng)
    n_links = sum(s.stratum.size for s in strata if s.stratum.linked)
    return Quality(
        precision=share_of(true, np.full(DRAWS, n_links)),
        recall=share_of(true, true + missed),
        f1=share_of(2 * true, n_links + true + missed),
        totals=_totals(strata, records, rng),
    )


def _links(
    strata: Sequence[JudgedStratum],
    prior: tuple[float, float],
    help_: float,
    rng: np.random.Generator,
) -> tuple[Floats, Floats, Floats]:
    """Draws of the true links among the run's links, of those it missed, of most never shown."""
    true, missed, most = np.zeros(DRAWS), np.zeros(DRAWS), np.zeros(DRAWS)
    for s in strata:
        if s.stratum.name == BEST and s.links + s.nonlinks:
            missed += _by_chance(s, prior[0], rng)
            continue
        if not s.drawn:
            found = np.full(DRAWS, s.stratum.size if s.stratum.linked else 0)
        else:
            for_, against = with_help(prior, s.stratum, help_)
            share = rng.beta(s.links + for_, s.nonlinks + against, DRAWS)
            found = s.links + rng.binomial(s.stratum.size - s.links - s.nonlinks, share)
        if s.stratum.linked:
            true += found
        else:
            missed += found
            most += found * NEAR
    return true, missed, most


def _by_chance(s: JudgedStratum, prior: float, rng: np.random.Generator) -> Floats:
    """Draws of the links of records of which one pair each was drawn with a known chance.

    A gamma law with the mean and the variance of the sum of 1 / chance, and of the prior's part of
    one more link that was least likely to be drawn.
    """
    each = s.stratum.size / (s.links + s.nonlinks)
    chances = s.chances or (1.0,) * s.links
    # Of unsure pairs that are taken for links the chance counts as that of the others.
    weights = each / np.resize(np.array(chances or (1.0,)), s.links)
    last = each / max(_RAREST, min(s.least, *chances, 1.0))
    total, square = weights.sum() + prior * last, (weights**2).sum() + prior * last**2
    drawn = rng.gamma(total**2 / square, square / total, DRAWS)
    return np.asarray(np.clip(np.rint(drawn), s.links, s.stratum.size - s.nonlinks))


def with_help(prior: tuple[float, float], stratum: Stratum, help_: float) -> tuple[float, float]:
    """The prior, with up to `help_` more verdicts of the kind that the model expects."""
    for_, against = prior
    odds = (stratum.expected + 1e-9) / (stratum.size - stratum.expected + 1e-9)
    if odds < 1:
        return for_, max(against, min(help_, 0.5 / odds))
    return max(for_, min(help_, 0.5 * odds)), against


def _totals(
    strata: Sequence[JudgedStratum], records: tuple[int, int] | None, rng: np.random.Generator
) -> Totals:
    """All links, those never shown too; see the module."""
    three = [_links(strata, prior, HELP, rng) for prior in ENDS]
    low, middle, high = three
    room = math.inf if records is None else min(records)
    # None at the lower end. At the upper, by what its prior allows for: that nothing was found
    # does not say that nothing is hidden.
    part = (np.zeros(DRAWS), rng.random(DRAWS), rng.random(DRAWS))
    beyond = [
        np.minimum(np.floor(u * (most + 1)), np.maximum(room - true - missed, 0))
        for u, (true, missed, most) in zip(part, three, strict=True)
    ]
    links = [
        np.minimum(true + missed, room) + more
        for (true, missed, _), more in zip(three, beyond, strict=True)
    ]
    recall = [
        ratios(true, true + missed + more)
        for true, missed, more in (
            (low[0], high[1], beyond[2]),
            (middle[0], middle[1], beyond[1]),
            (high[0], low[1], beyond[0]),
        )
    ]
    return Totals(ends(links), ends(recall), ends(beyond), _population(links, records, rng))


def ends(draws: Sequence[Floats | Ints]) -> Estimate:
    """An interval whose ends, and whose middle, come from draws of their own."""
    lower, value, upper = (
        float(np.quantile(x, q, method="inverted_cdf")) if len(x) else math.nan
        for x, q in zip(draws, (0.025, 0.5, 0.975), strict=True)
    )
    return Estimate(value, lower, upper)


def _population(
    links: Sequence[Floats], records: tuple[int, int] | None, rng: np.random.Generator
) -> Estimate | None:
    """People in either list or in none; many links make few people."""
    if records is None or ends(links).lower < 1:
        return None
    sizes = [
        population_size(*records, x[x >= 1], seed=int(rng.integers(2**32))).draws
        for x in reversed(links)
    ]
    return ends(sizes)


def share_of(part: Floats, whole: Floats) -> Estimate:
    ratio = ratios(part, whole)
    if not len(ratio):
        return Estimate(math.nan, math.nan, math.nan)
    lower, value, upper = np.quantile(ratio, (0.025, 0.5, 0.975)).tolist()
    return Estimate(value, lower, upper)


def ratios(part: Floats, whole: Floats) -> Floats:
    return part[whole > 0] / whole[whole > 0]
