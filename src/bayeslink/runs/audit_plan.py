"""How many pairs, or clusters of people, to judge for an interval of a wanted width, and where."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from bayeslink.errors import InputError, SettingsError
from bayeslink.pairs.source import Ints
from bayeslink.runs.audit import Estimate, JudgedStratum, quality_of
from bayeslink.runs.audit_sample import BEST, Part, drawable, numbers, parts_of
from bayeslink.runs.audits import evaluate_sample, opened
from bayeslink.runs.dedupe_run import DedupeRun
from bayeslink.runs.people_audit import Counted, people_quality
from bayeslink.runs.people_errors import JudgedClusters, bare_strata
from bayeslink.runs.people_sample import PeopleToDraw
from bayeslink.runs.people_sample import numbers as numbers_of_clusters
from bayeslink.runs.run import Run

SIZES = (100, 200, 300, 500, 1000)
_MOST = 20_000  # pairs, or clusters, that anyone may judge
_TRIALS = 5  # samples made up for each size; their widths are averaged

Of = Literal["links", "people", "precision", "recall"]


@dataclass(frozen=True, slots=True)
class Planned:
    """A sample of some size: the expected width of each 95 % interval."""

    size: int
    links: float
    precision: float
    recall: float  # of all true links


@dataclass(frozen=True, slots=True)
class PlannedPeople:
    """A sample of some clusters: the expected width of each 95 % interval."""

    size: int
    people: float
    precision: float
    recall: float  # of the pairs that can be shown


@dataclass(frozen=True, slots=True)
class Share:
    """How many pairs, or clusters, of a stratum to judge."""

    stratum: str
    pairs: int
    judge: int


_NAMES = {"links": "true links", "recall": "recall of all"}  # of links; the others as they are


@dataclass(frozen=True, slots=True)
class SamplePlan:
    """What samples of several sizes would tell, and which one is needed.

    `needed` is None without a wanted width, or where no sample of up to `most` pairs is large
    enough. `where` divides the needed sample, or the largest of `sizes`. Of a run of people all are
    numbers of clusters.
    """

    sizes: tuple[Planned | PlannedPeople, ...]
    of: str
    width: float | None
    needed: Planned | PlannedPeople | None
    most: int
    where: tuple[Share, ...]
    judged: int  # verdicts that the expectations rest on; 0: on the model's probabilities

    def as_dict(self) -> dict[str, Any]:
        """Return all numbers by name."""
        return asdict(self)

    def __str__(self) -> str:
        people = isinstance(self.sizes[0], PlannedPeople)
        first, unit = ("people", "clusters") if people else ("links", "pairs")
        names = {} if people else _NAMES
        basis = f"{self.judged:,} verdicts" if self.judged else "the model's probabilities"
        lines = [
            f"Expected width of the 95 % intervals, going by {basis}:",
            f"{f'{unit} judged':>15}{names.get(first, first):>13}{'precision':>12}"
            f"{names.get('recall', 'recall'):>16}",
            *(
                f"{p.size:>15,}{getattr(p, first):>13,.0f}{p.precision:>12.3f}{p.recall:>16.3f}"
                for p in self.sizes
            ),
        ]
        if self.width is not None:
            lines += ["", _conclusion(self, names.get(self.of, self.of), unit)]
        total = sum(s.judge for s in self.where)
        lines += ["", f"{f'{total:,} {unit}, by stratum':<34}{unit:>12}{'to judge':>10}"]
        lines += [f"{s.stratum:<34}{s.pairs:>12,}{s.judge:>10,}" for s in self.where]
        if not self.judged:
            lines += [
                "",
                "If the model is wrong, intervals are wider: plan again with the verdicts.",
            ]
        return "\n".join(lines)


def _conclusion(plan: SamplePlan, name: str, unit: str) -> str:
    if plan.needed is None:
        return (
            f"No sample of up to {plan.most:,} {unit} gives {name} an interval of width "
            f"{plan.width:g}: what is beyond the {unit} that can be drawn stays uncertain."
        )
    return f"For an interval of width {plan.width:g} of {name}, judge {plan.needed.size:,} {unit}."


def plan_sample(
    run: Run | DedupeRun | str | Path,
    width: float | None = None,
    *,
    of: Of | None = None,
    sizes: Sequence[int] = SIZES,
    seed: int = 1,
) -> SamplePlan:
    """Say how wide intervals will be, and how many pairs to judge for a wanted width.

    Verdicts are made up at the shares found in the run's judged sample; without one, at those that
    the model expects. Of a run of people, clusters are judged.

    Parameters
    ----------
    run
        The run directory, or a run.
    width
        Of the 95 % interval of what `of` says.
    of
        "links", the number of true links, or of a run of people "people", unless given; or
        "precision" or "recall".
    """
    run = opened(run)
    how: _Links | _People = _People(run) if isinstance(run, DedupeRun) else _Links(run)
    wanted = how.of if of is None else of
    if wanted not in (how.of, "precision", "recall"):
        raise SettingsError(f"of must be {how.of}, precision or recall, got {of!r}.")
    if width is not None and not (math.isfinite(width) and width > 0):
        raise SettingsError(
            f"width must be above 0, got {width!r}. For {how.of} it is a number of them."
        )
    most, done = min(_MOST, how.drawable), dict[int, Planned | PlannedPeople]()

    def planned(size: int) -> Planned | PlannedPeople:
        if size not in done:
            rng, drawn = np.random.default_rng(seed), how.numbers(size)
            trials = [how.trial(drawn, rng) for _ in range(_TRIALS)]
            widths = [
                float(np.mean([e.upper - e.lower for e in x])) for x in zip(*trials, strict=True)
            ]
            done[size] = how.planned(int(drawn.sum()), *widths)
        return done[size]

    table = tuple(planned(size) for size in dict.fromkeys(min(size, most) for size in sizes))
    needed = None if width is None else _smallest(planned, most, wanted, width)
    drawn = how.numbers(needed.size if needed else table[-1].size)
    where = tuple(
        Share(stratum.name, stratum.size, int(n))
        for stratum, n in zip(how.strata, drawn, strict=True)
        if stratum.size
    )
    return SamplePlan(table, wanted, width, needed, most, where, how.judged)


def _smallest(
    planned: Callable[[int], Planned | PlannedPeople], most: int, of: str, width: float
) -> Planned | PlannedPeople | None:
    """The smallest sample with an interval as narrow as wanted, to about 5 %."""
    low, high = 0, min(50, most)
    while getattr(planned(high), of) > width:
        if high == most:
            return None
        low, high = high, min(2 * high, most)
    while high - low > max(1, high // 20):
        middle = (low + high) // 2
        low, high = (low, middle) if getattr(planned(middle), of) <= width else (middle, high)
    return planned(high)


def _judged(run: Run | DedupeRun) -> Any:
    """The run's sample as it was judged; None if there is none, or none of it is judged."""
    try:
        return evaluate_sample(run)
    except InputError:
        return None


def _between(found: int, judged: int, share: float) -> float:
    """Between the model and the verdicts: as if the model were one verdict."""
    return (found + share) / (judged + 1) if judged else share


# --- links ----------------------------------------------------------------------------------------

_CHANCE = 0.5  # that a link of a record without a candidate is shown: of the best pair


class _Links:
    """Samples of pairs of a linkage, made up."""

    of, planned = "links", Planned

    def __init__(self, run: Run) -> None:
        self._parts, summary = parts_of(run), run.summary()
        self._records = (summary["n_a"], summary["n_b"])
        self.strata = [part.stratum for part in self._parts]
        self.drawable = drawable(self._parts)
        found = _judged(run)
        self.judged = found.judged if found else 0
        judged = {s.stratum.name: s for s in found.strata} if found else {}
        self._shares = [stratum.expected / stratum.size for stratum in self.strata]
        for k, stratum in enumerate(self.strata):
            if (s := judged.get(stratum.name)) is not None:
                self._shares[k] = _between(s.links, s.links + s.nonlinks, self._shares[k])

    def numbers(self, size: int) -> Ints:
        return numbers(self._parts, size)

    def trial(self, drawn: Ints, rng: np.random.Generator) -> tuple[Estimate, ...]:
        found = quality_of(_made_up(self._parts, self._shares, drawn, rng), self._records)
        return found.totals.links, found.precision, found.totals.recall


def _made_up(
    parts: Sequence[Part], shares: Sequence[float], drawn: Ints, rng: np.random.Generator
) -> list[JudgedStratum]:
    """Strata as they may be judged."""
    links = rng.binomial(drawn, shares)
    return [
        JudgedStratum(
            part.stratum,
            int(n),
            int(x),
            int(n - x),
            0,
            *(((_CHANCE,) * int(x), 0.0) if part.stratum.name == BEST else ((), 1.0)),
        )
        for part, n, x in zip(parts, drawn, links, strict=True)
    ]


# --- people ---------------------------------------------------------------------------------------


class _People:
    """Samples of clusters of a run of people, made up."""

    of, planned = "people", PlannedPeople

    def __init__(self, run: DedupeRun) -> None:
        self._frame = PeopleToDraw.of(run).frame
        self._found = Counted.of(self._frame, run.entities.interval())
        self.strata = list(self._frame.strata())
        self.drawable = sum(s.size for s in self.strata if self._frame.drawn_from(s))
        found = _judged(run)
        self.judged = found.judged if found else 0
        self._known = found.strata if found else bare_strata(self._frame)

    def numbers(self, size: int) -> Ints:
        return numbers_of_clusters(self._frame, size)

    def trial(self, drawn: Ints, rng: np.random.Generator) -> tuple[Estimate, ...]:
        strata = [_as_judged(s, int(n), rng) for s, n in zip(self._known, drawn, strict=True)]
        found = people_quality(strata, self._found)
        return found.people, found.precision, found.recall


def _as_judged(s: JudgedClusters, n: int, rng: np.random.Generator) -> JudgedClusters:
    """A stratum as it may be judged: with the errors found in it, or else the usual ones."""
    size = max(1, s.stratum.size)
    kinds = []
    for seen, expected, usual in zip((s.false, s.missed), s.model, s.usual, strict=True):
        share = _between(len(seen), s.judged, min(1.0, expected / size))
        chosen = rng.integers(0, max(1, len(seen)), rng.binomial(n, share))
        kinds.append(tuple((seen or (usual,))[k] for k in chosen.tolist()))
    false, missed = kinds
    wrong = max(len(false), len(missed))
    return replace(s, drawn=n, judged=n, unsure=0, wrong=wrong, false=false, missed=missed)
