"""How many pairs to judge for an interval of a wanted width, and where."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from bayeslink.errors import InputError, SettingsError
from bayeslink.pairs.source import Floats, Ints
from bayeslink.runs.audit import JudgedStratum, Quality, evaluate_sample, quality_of
from bayeslink.runs.audit_sample import BEST, Part, drawable, numbers, parts_of
from bayeslink.runs.opening import as_run
from bayeslink.runs.run import Run

SIZES = (100, 200, 300, 500, 1000)
_MOST = 20_000  # pairs that anyone may judge
_TRIALS = 5  # samples made up for each size; their widths are averaged

Of = Literal["links", "precision", "recall"]


@dataclass(frozen=True, slots=True)
class Planned:
    """A sample of some size: the expected width of each 95 % interval."""

    size: int
    links: float
    precision: float
    recall: float  # of all true links


@dataclass(frozen=True, slots=True)
class Share:
    """How many pairs of a stratum to judge."""

    stratum: str
    pairs: int
    judge: int


@dataclass(frozen=True, slots=True)
class SamplePlan:
    """What samples of several sizes would tell, and which one is needed.

    `needed` is None without a wanted width, or where no sample of up to `most` pairs is large
    enough. `where` divides the needed sample, or the largest of `sizes`.
    """

    sizes: tuple[Planned, ...]
    of: str
    width: float | None
    needed: Planned | None
    most: int
    where: tuple[Share, ...]
    judged: int  # verdicts that the expectations rest on; 0: on the model's probabilities

    def as_dict(self) -> dict[str, Any]:
        """Return all numbers by name."""
        return asdict(self)

    def __str__(self) -> str:
        basis = f"{self.judged:,} verdicts" if self.judged else "the model's probabilities"
        lines = [
            f"Expected width of the 95 % intervals, going by {basis}:",
            f"{'pairs judged':>14}{'true links':>14}{'precision':>12}{'recall of all':>16}",
            *(
                f"{p.size:>14,}{p.links:>14,.0f}{p.precision:>12.3f}{p.recall:>16.3f}"
                for p in self.sizes
            ),
        ]
        if self.width is not None:
            name = {"links": "true links", "recall": "recall of all"}.get(self.of, self.of)
            lines += ["", _conclusion(self, name)]
        total = sum(s.judge for s in self.where)
        lines += ["", f"{f'{total:,} pairs, by stratum':<34}{'pairs':>12}{'to judge':>10}"]
        lines += [f"{s.stratum:<34}{s.pairs:>12,}{s.judge:>10,}" for s in self.where]
        if not self.judged:
            lines += [
                "",
                "If the model is wrong, intervals are wider: plan again with the verdicts.",
            ]
        return "\n".join(lines)


def _conclusion(plan: SamplePlan, name: str) -> str:
    if plan.needed is None:
        return (
            f"No sample of up to {plan.most:,} pairs gives {name} an interval of width "
            f"{plan.width:g}: what is beyond the pairs that can be drawn stays uncertain."
        )
    return f"For an interval of width {plan.width:g} of {name}, judge {plan.needed.size:,} pairs."


def plan_sample(
    run: Run | str | Path,
    width: float | None = None,
    *,
    of: Of = "links",
    sizes: Sequence[int] = SIZES,
    seed: int = 1,
) -> SamplePlan:
    """Say how wide intervals will be, and how many pairs to judge for a wanted width.

    Verdicts are made up at the shares of links found in the run's judged sample; without one, at
    those that the model expects.

    Parameters
    ----------
    run
        The run directory, or a `Run`.
    width
        Of the 95 % interval of the number of true links; with `of`, of precision or recall.
    """
    if of not in ("links", "precision", "recall"):
        raise SettingsError(f"of must be links, precision or recall, got {of!r}.")
    if width is not None and not (math.isfinite(width) and width > 0):
        raise SettingsError(
            f"width must be above 0, got {width!r}. For links it is a number of them."
        )
    run = as_run(run)
    parts, summary = parts_of(run), run.summary()
    shares, judged = _shares(run, parts)
    records = (summary["n_a"], summary["n_b"])
    most = min(_MOST, drawable(parts))
    done: dict[int, Planned] = {}

    def planned(size: int) -> Planned:
        if size not in done:
            done[size] = _planned(parts, shares, size, records, seed)
        return done[size]

    table = tuple(planned(size) for size in dict.fromkeys(min(size, most) for size in sizes))
    needed = None if width is None else _smallest(planned, most, of, width)
    drawn = numbers(parts, needed.size if needed else table[-1].size)
    where = tuple(
        Share(part.stratum.name, part.stratum.size, int(n))
        for part, n in zip(parts, drawn, strict=True)
    )
    return SamplePlan(table, of, width, needed, most, where, judged)


def _smallest(planned: Any, most: int, of: Of, width: float) -> Planned | None:
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


def _planned(
    parts: Sequence[Part], shares: Floats, size: int, records: tuple[int, int], seed: int
) -> Planned:
    drawn, rng = numbers(parts, size), np.random.default_rng(seed)
    trials = [quality_of(_made_up(parts, shares, drawn, rng), records) for _ in range(_TRIALS)]
    return Planned(
        int(drawn.sum()),
        *(float(np.mean([_width(trial, of) for trial in trials])) for of in _WIDTHS),
    )


_WIDTHS = ("links", "precision", "recall")


def _width(quality: Quality, of: str) -> float:
    totals = quality.totals
    estimate = {
        "links": totals.links,
        "precision": quality.precision,
        "recall": totals.recall,
    }[of]
    return estimate.upper - estimate.lower


_CHANCE = 0.5  # that a link of a record without a candidate is shown: of the best pair


def _made_up(
    parts: Sequence[Part], shares: Floats, drawn: Ints, rng: np.random.Generator
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


def _shares(run: Run, parts: Sequence[Part]) -> tuple[Floats, int]:
    """The share of links to expect in each stratum, and how many verdicts say so."""
    shares = np.array([part.stratum.expected / part.stratum.size for part in parts])
    try:
        found = evaluate_sample(run)
    except InputError:  # no sample of this run, or none of it judged
        return shares, 0
    judged = {s.stratum.name: s for s in found.strata}
    for k, part in enumerate(parts):
        s = judged.get(part.stratum.name)
        if s is not None and s.links + s.nonlinks:
            # Between the model and the verdicts: as if the model were one verdict.
            shares[k] = (s.links + shares[k]) / (s.links + s.nonlinks + 1)
    return shares, found.judged
