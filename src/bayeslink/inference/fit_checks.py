"""Does the model fit these files? Checks that need no truth, each with what to do if it fails.

A posterior is as good as its model. What can be seen from the data alone: whether links have as
many wrong fields as the model expects, whether fields agree together among certain non-links more
often than it expects, whether a file seems to hold people twice, whether other solutions far away
are nearly as good, and whether hardly anything was linked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from bayeslink.distinct import distinct
from bayeslink.inference.dependence import Together
from bayeslink.inference.error_counts import ErrorPriors
from bayeslink.inference.model import Parameters
from bayeslink.inference.penalized import PenalizedFit
from bayeslink.inference.posterior import Posterior
from bayeslink.inference.structure import Dependent
from bayeslink.pairs.source import Floats, Pairs
from bayeslink.pairs.vectors import distinct_vectors

_FAR_OFF = 0.15  # share of links with another number of wrong fields than expected
_TIMES, _SURELY = 2.0, 5.0  # joint agreements: as a multiple of those expected, in standard errors
_TWICE = 0.05  # share of linked records with a second partner as good as the first
_AS_GOOD, _WELL_ABOVE = 3.0, 3.0  # weights: of the two partners apart, of both above θ
_HARDLY = 0.05  # share of the smaller file, below which hardly anything is linked
_NEARLY = 5.0  # in the objective, of two solutions
_APART = 0.1  # of the links of the best solution, by which another differs


@dataclass(frozen=True, slots=True)
class WrongFields:
    """Links with so many wrong fields."""

    wrong: int
    observed: float
    expected: float


@dataclass(frozen=True, slots=True)
class FitChecks:
    """What was looked at, and what was found wrong."""

    wrong_fields: tuple[WrongFields, ...]
    together: tuple[Together, ...]
    twice: tuple[int, int]  # linked records of A and of B with a second partner as good
    n_links: float
    warnings: tuple[str, ...]

    def as_data(self) -> dict[str, Any]:
        """As run.json has it."""
        return {
            "fits": not self.warnings,
            "wrong_fields": [asdict(w) for w in self.wrong_fields],
            "together": [asdict(t) for t in self.together],
            "second_partners": list(self.twice),
            "warnings": list(self.warnings),
        }


def check_fit(fit: PenalizedFit, posterior: Posterior | None) -> FitChecks:
    """Hold the model against the data: the posterior's links, or else the fit's."""
    parameters: Parameters = fit.parameters
    linked, p = fit.linked, np.ones(fit.n_links)
    if posterior is not None:
        parameters = posterior.parameters
        linked, p = posterior.blocks.candidates, posterior.probability
        linked = linked.with_more(posterior.blocks.known)
        p = np.append(p, np.ones(len(posterior.blocks.known)))
    wrong = _wrong_fields(fit, parameters, linked, p)
    together = fit.structure.tree.together
    twice = _twice(fit)
    n_links = float(p.sum())
    smaller = min(fit.pairs.n_a, fit.pairs.n_b)
    warnings = [
        *_on_wrong_fields(wrong),
        *_on_together(together, [f.name for f in fit.pairs.fields]),
        *_on_twice(twice, fit.n_links),
        *_on_modes(fit),
        *_on_few(n_links, smaller),
    ]
    return FitChecks(wrong, together, twice, n_links, tuple(warnings))


def _wrong_fields(
    fit: PenalizedFit, parameters: Parameters, linked: Pairs, p: Floats
) -> tuple[WrongFields, ...]:
    """Links by number of wrong fields: as they are, and as the model expects them."""
    fields = fit.pairs.fields
    priors = ErrorPriors.of(fields)
    vectors, _, which = distinct_vectors(linked.levels)
    n = np.bincount(which, p, len(vectors))
    seen, wrong = priors.seen_and_wrong(vectors)
    if not isinstance(parameters, Dependent):
        seen = vectors > 0  # to the independent model a covered field is missing
    observed = np.bincount(wrong.sum(1), n, len(fields) + 1)
    expected = np.zeros(len(fields) + 1)
    sets, _, of_set = distinct_vectors(seen)
    of_wrong = 1 - (parameters.m * priors.right).sum(1)
    for number, total in enumerate(np.bincount(of_set, n, len(sets))):
        if isinstance(parameters, Dependent):
            a = int((~sets[number]).sum())
            law = np.exp(parameters.law.log_h[a, : len(fields) - a + 1])
        else:
            law = np.ones(1)
            for q in of_wrong[sets[number]]:
                law = np.convolve(law, [1 - q, q])
        expected[: len(law)] += total * law / law.sum()
    last = int(np.flatnonzero((observed > 0.5) | (expected > 0.5)).max(initial=0))
    return tuple(WrongFields(e, float(observed[e]), float(expected[e])) for e in range(last + 1))


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


def _on_wrong_fields(wrong: tuple[WrongFields, ...]) -> Iterator[str]:
    total = sum(w.observed for w in wrong)
    off = sum(abs(w.observed - w.expected) for w in wrong) / 2
    if total >= 20 and off > _FAR_OFF * total:
        worst = max(wrong, key=lambda w: abs(w.observed - w.expected))
        yield (
            f"links do not have as many wrong fields as the model expects: {worst.observed:,.0f} "
            f"have {worst.wrong} wrong, {worst.expected:,.0f} are expected to. Fields go wrong "
            'together, or one at a time; use structure="dependent", which lets them.'
        )


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
                f"good. {other} seems to hold people twice. A linkage here is one-to-one: merge "
                f"the duplicates of {other} first, or link only one record of each person."
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
