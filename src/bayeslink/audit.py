"""Precision and recall without the truth: from a random sample of pairs that people judged.

Candidate pairs are divided into strata by decision and link probability, and pairs are drawn at
random within each. The model's probabilities decide how many are drawn where, hence how wide the
intervals are, but not what is estimated: that rests on the judgements alone.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bayeslink.errors import InputError, SettingsError
from bayeslink.idpairs import SIDES
from bayeslink.judgements import FILE, LINK, NONLINK, Judgements, Pair, Sample, Stratum
from bayeslink.labels import read_labels
from bayeslink.store import read_summary, read_table

SURE = 0.99  # divides the links
EDGES = (0.1, 0.01, 0.001)  # divide the pairs not linked; none is drawn from below the last
_DRAWS = 20_000

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


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


# --- drawing ----------------------------------------------------------------------------------


def draw_sample(directory: str | Path, size: int = 200, *, seed: int = 1) -> Sample:
    """Draw pairs to judge from a run directory, and store them there for the review.

    A sample drawn earlier is replaced; judgements are kept.

    Parameters
    ----------
    size
        Pairs to draw: half of them spread evenly over the strata, the others so that the
        estimates are as precise as they can be if the model's probabilities are about right.
    """
    folder = Path(directory)
    links = read_table(folder, "links")
    if links["link_probability"].null_count:
        raise InputError(
            f"{folder} is a point estimate, without probabilities to draw a sample by. "
            "Link again without --point."
        )
    sample = stratified(
        read_table(folder, "pairs"), links, size=size, seed=seed, run=fingerprint(folder)
    )
    with Judgements(folder / FILE) as judgements:
        judgements.set_sample(sample)
    return sample


def fingerprint(directory: Path) -> str:
    """Hash of a run's candidate pairs and links: a sample is of one run only."""
    digest = hashlib.sha256()
    for name in ("pairs", "links"):
        if (path := directory / f"{name}.parquet").exists():  # a point estimate has no pairs
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def stratified(
    candidates: pa.Table, links: pa.Table, *, size: int, seed: int, run: str = ""
) -> Sample:
    """A stratified random sample of a run's candidate pairs, from its tables."""
    if not (isinstance(size, Integral) and size >= 1):
        raise SettingsError(f"size must be a whole number from 1 up, got {size!r}.")
    p = candidates["link_probability"].to_numpy()
    linked = _is_linked(candidates, links)
    members = {name: rows for name, rows in _strata(p, linked).items() if len(rows)}
    strata = [
        Stratum(name, bool(linked[rows[0]]), len(rows), float(p[rows].sum()))
        for name, rows in members.items()
    ]
    drawn_from = [s for s in strata if s.name != _BELOW]
    numbers = allocate(
        np.array([s.size for s in drawn_from]), np.array([s.expected for s in drawn_from]), size
    )
    rng = np.random.default_rng(seed)
    drawn = [
        (row, strata.index(s))
        for s, n in zip(drawn_from, numbers, strict=True)
        for row in rng.choice(members[s.name], n, replace=False)
    ]
    rows, stratum = rng.permutation(drawn).T  # so that a pair's place says nothing
    known = int(pc.sum(pc.equal(links["decision"], "link")).as_py() or 0) - int(linked.sum())
    if known:
        strata.append(Stratum("links known before the run", True, known, float(known)))
    ids = candidates.select(SIDES).take(rows)
    return Sample(
        run=run,
        seed=int(seed),
        strata=tuple(strata),
        pairs=tuple(zip(*(ids[side].to_pylist() for side in SIDES), strict=True)),
        stratum=tuple(stratum.tolist()),
    )


_BELOW = f"not linked, below {EDGES[-1]:g}"


def _strata(p: Floats, linked: NDArray[np.bool_]) -> dict[str, Ints]:
    """Rows of the candidates in each stratum, by its name."""
    parts = {
        f"links, {SURE:g} and above": linked & (p >= SURE),
        f"links, below {SURE:g}": linked & (p < SURE),
        f"not linked, {EDGES[0]:g} and above": ~linked & (p >= EDGES[0]),
        **{
            f"not linked, {low:g} to {high:g}": ~linked & (p >= low) & (p < high)
            for high, low in pairwise(EDGES)
        },
        _BELOW: ~linked & (p < EDGES[-1]),
    }
    return {name: np.flatnonzero(part) for name, part in parts.items()}


def _is_linked(candidates: pa.Table, links: pa.Table) -> NDArray[np.bool_]:
    """Whether each candidate is a link; a record of A has at most one."""
    chosen = links.filter(pc.equal(links["decision"], "link"))
    id_a, id_b = (chosen[side].combine_chunks() for side in SIDES)
    partner = id_b.take(pc.index_in(candidates["id_a"].combine_chunks(), id_a))
    same = pc.fill_null(pc.equal(partner, candidates["id_b"].combine_chunks()), False)
    found: NDArray[np.bool_] = same.to_numpy(zero_copy_only=False)
    return found


def allocate(sizes: Ints, expected: Floats, total: int) -> Ints:
    """How many pairs to draw from each stratum (Neyman's allocation, in whole pairs).

    Half of them are spread evenly, so that neither precision nor recall goes short if the model is
    wrong. Then every next pair goes where it lowers Σ N² σ² / n most; σ² = r (1 − r) is the
    variance of the verdicts in a stratum with a share r of links.
    """
    if not len(sizes):
        raise InputError("the run has no links and no candidates near one: nothing to draw from.")
    rate = (expected + 0.5) / (sizes + 1)  # never 0 or 1: the model may be too sure of itself
    variance = sizes.astype(float) ** 2 * rate * (1 - rate)
    drawn = np.minimum(sizes, max(1, total // (2 * len(sizes))))
    for _ in range(min(total, int(sizes.sum())) - int(drawn.sum())):
        gain = np.where(drawn < sizes, variance / (drawn * (drawn + 1)), -1.0)
        drawn[np.argmax(gain)] += 1
    return drawn


# --- estimating -------------------------------------------------------------------------------


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
