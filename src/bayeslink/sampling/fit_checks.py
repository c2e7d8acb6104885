"""Does the model fit these files? Checks that need no truth, each with what to do if it fails.

A posterior is as good as its model. What can be seen from the data alone: whether there are more
pairs of some weight than the model expects, whether records with a certain link have more
look-alikes than it knows of, whether fields agree together among certain non-links more often than
it expects, whether a file seems to hold people twice, whether other solutions far away are nearly
as good, and whether hardly anything was linked.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from bayeslink.distinct import distinct
from bayeslink.linkage.penalized import PenalizedFit
from bayeslink.model.dependence import Together
from bayeslink.pairs.source import Floats
from bayeslink.sampling.identified import Identified
from bayeslink.sampling.posterior import Posterior
from bayeslink.sampling.weight_bands import TOGETHER, Band, misfit, weight_bands

# Pairs of a weight. On files drawn from the model no band stands out by 2 (36 runs), all above θ
# are within .05 of those expected.
_STANDS_OUT = 3.0  # in standard errors, which allow for m and u being wrong by so much:
_PARAMETERS = 0.1
_MISFIT = 2.0  # mean square of the bands above θ: up to 1.8 on files whose interval was right
_ALIKE, _MORE_ALIKE = 2.0, 0.015  # look-alikes as a multiple of false links; more, of all links
_HUMP, _HUMP_LINKS = 1.0, 20  # depth of a valley in standard errors; links to look at it in
_MORE = 0.1  # of all pairs above θ: this share more than expected
_TIMES, _SURELY = 2.0, 5.0  # joint agreements: as a multiple of those expected, in standard errors
_TWICE = 0.05  # share of linked records with a second partner as good as the first
_AS_GOOD, _WELL_ABOVE = 3.0, 3.0  # weights: of the two partners apart, of both above θ
_HARDLY = 0.05  # share of the smaller file, below which hardly anything is linked
_NEARLY = 5.0  # in the objective, of two solutions
_APART = 0.1  # of the links of the best solution, by which another differs


@dataclass(frozen=True, slots=True)
class FitChecks:
    """What was looked at, and what was found wrong."""

    bands: tuple[Band, ...]  # pairs by weight
    together: tuple[Together, ...]
    twice: tuple[int, int]  # linked records of A and of B with a second partner as good
    n_links: float
    warnings: tuple[str, ...]

    def as_data(self) -> dict[str, Any]:
        """As run.json has it."""
        return {
            "fits": not self.warnings,
            "bands": [asdict(band) for band in self.bands],
            "together": [asdict(t) for t in self.together],
            "second_partners": list(self.twice),
            "warnings": list(self.warnings),
        }


def check_fit(fit: PenalizedFit, posterior: Posterior | None) -> FitChecks:
    """Hold the model against the data: the posterior's links, or else the fit's."""
    n_links = float(fit.n_links)
    if posterior is not None:
        n_links = float(posterior.probability.sum()) + len(posterior.blocks.known)
    bands = weight_bands(fit) if posterior is None else posterior.bands
    together = fit.structure.tree.together
    twice = _twice(fit)
    smaller = min(fit.pairs.n_a, fit.pairs.n_b)
    found = None if posterior is None else posterior.identified
    warnings = [  # the gravest first
        *_on_bands(bands, fit.theta),
        *_on_look_alikes(found),
        *_on_humps(posterior),
        *_on_modes(fit),
        *_on_twice(twice, fit.n_links),
        *_on_together(together, [f.name for f in fit.pairs.fields]),
        *_on_few(n_links, smaller),
    ]
    return FitChecks(bands, together, twice, n_links, tuple(warnings))


def _twice(fit: PenalizedFit) -> tuple[int, int]:
    """Linked records of A and of B with a second partner about as good as the one they have."""
    own = fit.weight_of(fit.linked.levels)
    rivals = fit.weight_of(fit.rivals.pairs.levels)
    found = []
    for side in ("a", "b"):
        rows = getattr(fit.linked, side)
        weight = np.full(max(fit.pairs.n_a, fit.pairs.n_b), np.inf)
        weight[rows] = own
        of = getattr(fit.rivals.pairs, side)
        good = (rivals > fit.theta + _WELL_ABOVE) & (rivals > weight[of] - _AS_GOOD)
        found.append(len(distinct(of[good])))
    return found[0], found[1]


def _on_look_alikes(found: Identified | None) -> Iterator[str]:
    """Records whose link is certain have more look-alikes than the model knows of."""
    if found is None:
        return
    parts = found.parts
    excess = parts.look_alikes - parts.false
    if parts.look_alikes > _ALIKE * parts.false and excess > _MORE_ALIKE * parts.pointed:
        yield (
            f"the model expects {parts.false:,.1f} false links, and by the look-alikes of records "
            f"whose link is certain there are about {parts.look_alikes:,.0f}. Look at the links "
            "that are least certain: bayeslink review OUT."
        )


def _on_humps(posterior: Posterior | None) -> Iterator[str]:
    """Links with few and with many wrong fields, and fewer of those between: two kinds of pairs."""
    if posterior is None or posterior.blocks.structure.errors is None:
        return
    pairs, p = posterior.blocks.candidates, posterior.probability
    linked = np.flatnonzero(
        (p > 0.5) & (posterior.parameters.weight_of(pairs.levels) > posterior.theta)
    )
    seen, wrong = posterior.blocks.structure.errors.seen_and_wrong(pairs.levels[linked])
    n_missing, n_wrong, n = (~seen).sum(1), wrong.sum(1), seen.shape[1]
    found = []
    for missing in range(n):
        at = n_missing == missing
        if at.sum() >= _HUMP_LINKS:
            counts = np.bincount(n_wrong[at], p[linked[at]], n + 1).astype(np.float64)
            found += [(*_valley(counts, low), counts) for low in range(1, n)]
    depth, low, high, counts = max(found, key=lambda valley: valley[0], default=(0.0, 0, 0, p))
    if depth > _HUMP:
        yield (
            f"{counts[high]:,.0f} links have {high} wrong fields and only {counts[low]:,.0f} have "
            f"{low}: two kinds of pairs may be linked, such as people and others of their "
            "household. Look at links with wrong fields: bayeslink review OUT."
        )


def _valley(counts: Floats, low: int) -> tuple[float, int, int]:
    """How deep a place between two humps is, in standard errors; and where the second one is."""
    high = low + 1 + int(counts[low + 1 :].argmax())
    hump = min(counts[:low].max(), counts[high])
    return float((hump - counts[low]) / math.sqrt(hump + counts[low] + 1)), low, high


def _on_bands(bands: tuple[Band, ...], theta: float) -> Iterator[str]:
    """Other numbers of pairs by weight than expected: too many somewhere, or a bad fit in all."""
    above = [band for band in bands if band.low >= theta - 1e-9]
    observed = sum(band.observed for band in above)
    nonlinks = sum(band.from_nonlinks for band in above)
    links = sum(band.from_links for band in above)
    excess = observed - nonlinks - links
    worst = max(bands, key=_excess, default=None)
    if misfit(bands, theta) > _MISFIT:
        worst = max(above, key=lambda band: abs(_excess(band)))
    elif excess > max(_MORE * (nonlinks + links), 3 * math.sqrt(nonlinks + 1)):
        worst = Band(theta, None, observed, nonlinks, links)
    elif worst is None or _excess(worst) <= _STANDS_OUT:
        return
    where = f"{worst.low / math.log(2):.1f} bits and more"
    if worst.high is not None:
        where = f"{worst.low / math.log(2):.1f} to {worst.high / math.log(2):.1f} bits"
    yield (
        f"{worst.observed:,} pairs weigh {where}, and the model expects {worst.expected:,.0f}: "
        f"{worst.from_links:,.0f} links and {worst.from_nonlinks:,.0f} others. Pairs are alike "
        "for a reason that the model does not know, such as people who share values or who are in "
        "a file twice. Do not rely on link probabilities: judge a sample."
    )


def _excess(band: Band) -> float:
    """Pairs beyond those expected, in standard errors; these allow for errors of m and u."""
    by_chance = TOGETHER * band.from_nonlinks + band.from_links + 1
    error = math.sqrt(by_chance + (_PARAMETERS * band.expected) ** 2)
    return (band.observed - band.expected) / error


def _on_together(together: tuple[Together, ...], names: list[str]) -> Iterator[str]:
    for t in together:
        excess = abs(t.observed - t.expected)
        ratio = t.observed / max(t.expected, 1e-300)
        surely = excess > _SURELY * np.sqrt(max(t.expected, 1.0))
        if surely and excess > 20 and not 1 / _TIMES < ratio < _TIMES:
            first, second = names[t.fields[0]], names[t.fields[1]]
            yield (
                f"among pairs that are certainly no links, {first} and {second} agree together "
                f"{t.observed:,.0f} times, and the model expects {t.expected:,.0f}. Link "
                "probabilities rest too much, or too little, on these two: leave one of them out "
                "and compare, or judge a sample."
            )


def _on_twice(twice: tuple[int, int], n_links: int) -> Iterator[str]:
    for n, one, other in ((twice[0], "A", "B"), (twice[1], "B", "A")):
        if n > max(5, _TWICE * n_links):
            yield (
                f"{n:,} linked records of {one} have a second partner in {other} that is about as "
                f"good. {other} seems to hold people twice, and a linkage is one-to-one: link "
                f"with --duplicates {other.lower()} (duplicates=)."
            )


def _on_modes(fit: PenalizedFit) -> Iterator[str]:
    apart = [
        mode.n_links
        for mode in fit.modes[1:]
        if fit.objective - mode.objective < _NEARLY
        and abs(mode.n_links - fit.n_links) > max(5, _APART * fit.n_links)
    ]
    if apart:
        sizes = ", ".join(f"{n:,}" for n in sorted({fit.n_links, *apart}))
        yield (
            f"solutions that are about equally good are far apart: {sizes} links. The data do not "
            "tell how many records are in both files: use more fields, or say what is known about "
            "the overlap with a prior."
        )


def _on_few(n_links: float, smaller: int) -> Iterator[str]:
    if n_links < _HARDLY * smaller:
        yield (
            f"hardly anything is linked: {n_links:,.0f} of {smaller:,} records of the smaller "
            "file. Either the files hardly overlap, or the comparisons do not see what the records "
            "have in common: look at a few pairs that you know to be the same, and how the fields "
            "compare them."
        )
