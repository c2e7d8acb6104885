"""Post-hoc blocks (Section 4, Algorithm 1): the pairs worth sampling, in independent pieces.

Pairs whose estimated weight exceeds w0 are edges of a graph; its connected components are the
post-hoc blocks. Only those pairs may link, not whole rows × columns rectangles.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bayeslink.errors import SettingsError, TooManyPairsError
from bayeslink.linkage.known import Known
from bayeslink.linkage.penalized import Mode
from bayeslink.linkage.rivals import expected_by_weight
from bayeslink.model.structure import Structure
from bayeslink.model.weights import Parameters
from bayeslink.notebook_html import Shown
from bayeslink.pairs.candidates import pairs_above
from bayeslink.pairs.source import Floats, Ints, Pairs, PairSource

# Where w0 is chosen: candidate pairs in a block, or in all for each record of either
# file. Larger blocks are drawn by moves, at a cost in proportion to their pairs, so that
# size alone is no reason to leave a pair out.
MAX_PAIRS = 2500
PAIRS_A_RECORD = 0.5
# Pairs that are listed, candidates or not: all if they are no more than LISTED, or so many for each
# record. Down to LEAST_LISTED if so small a share of the links is to be expected among the others:
# those link and unlink by proposals, which mix slowly if they are many.
LISTED, LEAST_LISTED = 300_000, 30_000
LISTED_A_RECORD = 1
UNLISTED = 0.0003
STEP = 2.5  # pairs are listed down to θ − STEP at least
# Pairs that the fit could link at a cost of less than CEILING in its objective are candidates,
# whatever the budget.
CEILING = 2.0


@dataclass(frozen=True)
class Blocks(Shown):
    """Candidate pairs, grouped into post-hoc blocks; what `sample` takes.

    Sweeps go over the candidates. All other pairs are sampled too, unless sampling is restricted:
    w0 is a matter of speed.
    """

    pairs: PairSource = field(repr=False)
    parameters: Parameters = field(repr=False)  # of the fit that made the weights
    structure: Structure = field(repr=False)  # the fit's model of m and u
    start: Pairs = field(repr=False)  # the fit's links among the candidates
    theta: float
    w0: float
    candidates: Pairs = field(repr=False)
    weights: Floats = field(repr=False)
    block: Ints = field(repr=False)  # block of each candidate
    n_blocks: int
    known: Pairs = field(repr=False)  # links known to hold
    barred: Pairs = field(repr=False)  # pairs known to be no links
    low: Pairs = field(repr=False)  # other pairs that are listed, with a weight up to w0,
    listed_to: float  # down to this one; −∞: every pair is listed
    why: str  # how w0 came about

    @property
    def n_candidates(self) -> int:
        return len(self.candidates)

    @property
    def n_pairs_in_block(self) -> Ints:
        """Candidate pairs in each block."""
        return np.bincount(self.block[self.block >= 0], minlength=self.n_blocks)

    def records_in_block(self) -> tuple[Ints, Ints]:
        """Records of A and of B in each block."""
        sides = []
        inside = np.flatnonzero(self.block >= 0)
        for rows in (self.candidates.a[inside], self.candidates.b[inside]):
            _, first = np.unique(rows, return_index=True)
            sides.append(np.bincount(self.block[inside][first], minlength=self.n_blocks))
        return sides[0], sides[1]

    @property
    def reduction_ratio(self) -> float:
        """Share of the pairs in scope that are no candidates."""
        return 1 - self.n_candidates / max(1, self.pairs.n_pairs)

    @property
    def all_listed(self) -> bool:
        """Whether every pair in scope is listed."""
        return self.listed_to == -math.inf

    def set_aside(self) -> float:
        """Links expected among pairs that are no candidates, with m, u and θ at the fit's values.

        Each would link with odds of exp(w − θ), were there no rivals. Restricted sampling leaves
        them out; otherwise they are sampled with the others. Pairs that are not listed are counted
        as if fields were independent.
        """
        return self._set_aside

    @cached_property
    def _set_aside(self) -> float:
        listed = float(np.exp(self.parameters.weight_of(self.low.levels) - self.theta).sum())
        if self.all_listed:
            return listed
        w, n = expected_by_weight(self.pairs, self.parameters)
        return listed + float((n * np.exp(w - self.theta))[w <= self.listed_to].sum())


@dataclass(frozen=True, slots=True)
class BlockCurve:
    """Post-hoc blocks over a range of w0: the panels of the paper's Figure 5."""

    w0: Floats
    n_blocks: Ints
    n_candidates: Ints
    largest: Ints  # candidate pairs in the largest block
    quantiles: Floats  # of block sizes: median, 90 %, 99 %, one row a w0
    reduction_ratio: Floats
    pairs_completeness: Floats | None  # where the truth is known


def posthoc_blocks(
    pairs: PairSource,
    fit: Mode,
    w0: float | None = None,
    *,
    max_pairs: int | None = None,
    max_records: int | None = None,
    links: Any = None,
    nonlinks: Any = None,
) -> Blocks:
    """Group the pairs with weight above w0 into post-hoc blocks (Algorithm 1).

    Parameters
    ----------
    w0
        The threshold, in natural logs; -inf keeps every pair. Without it, the smallest that keeps
        to the budget is taken; pairs that may well be links, at a cost of less than 2 against the
        fit, stay in whatever the budget.
    max_pairs, max_records
        The budget: candidate pairs in a block, or records of either file. Unless given, 2,500
        pairs in a block, or in all one pair for every two records, whichever lets in more.
    links, nonlinks
        Pairs (id_a, id_b) known to be links and non-links, from clerical review for example. They
        hold with probability one.
    """
    _check_threshold(w0, max_pairs, max_records)
    known = Known.of(pairs, links, nonlinks)
    floor, listed, w = _list_pairs(pairs, fit, w0)
    if known:
        left = np.flatnonzero(known.leave_open(listed))
        listed, w = listed.take(left), w[left]
    if w0 is None:
        keep, w0, why = _choose_w0(pairs, fit, listed, w, max_pairs, max_records)
    else:
        keep, why = w > w0, "given"
    at = np.flatnonzero(keep)
    candidates = listed.take(at)
    block, n_blocks = _components(candidates, pairs.n_a, pairs.n_b)
    return Blocks(
        pairs=pairs,
        parameters=fit.parameters,
        structure=fit.structure,
        start=fit.linked,
        theta=fit.theta,
        w0=float(w0),
        candidates=candidates,
        weights=w[at],
        block=block,
        n_blocks=n_blocks,
        known=known.links,
        barred=known.nonlinks,
        low=listed.take(np.flatnonzero(~keep)),
        listed_to=floor,
        why=why,
    )


def with_others(blocks: Blocks, others: Pairs) -> Blocks:
    """The same with further pairs after the candidates, which are in no block (−1)."""
    if not len(others):
        return blocks
    n_b = blocks.pairs.n_b
    left = ~np.isin(blocks.low.numbered(n_b), others.numbered(n_b), assume_unique=True)
    return replace(
        blocks,
        candidates=blocks.candidates.with_more(others),
        weights=np.append(blocks.weights, blocks.parameters.weight_of(others.levels)),
        block=np.append(blocks.block, np.full(len(others), -1)),
        low=blocks.low.take(np.flatnonzero(left)),
    )


def regrouped(blocks: Blocks) -> Blocks:
    """The same with every candidate in a block, also those of `with_others`."""
    if (blocks.block >= 0).all():
        return blocks
    block, n_blocks = _components(blocks.candidates, blocks.pairs.n_a, blocks.pairs.n_b)
    return replace(blocks, block=block, n_blocks=n_blocks)


def block_curve(
    pairs: PairSource, fit: Mode, w0: Sequence[float], *, truth: Pairs | None = None
) -> BlockCurve:
    """Number and sizes of post-hoc blocks, reduction ratio and pairs completeness over w0."""
    if not len(w0):
        raise SettingsError("give one or more values of w0.")
    for value in w0:
        _check_threshold(value)
    values = np.array(sorted(w0), float)
    listed, w = pairs_above(pairs, fit.parameters, float(values[0]))
    rows: list[tuple[Any, ...]] = []
    for value in values:
        kept = listed.take(np.flatnonzero(w > value))
        block, n_blocks = _components(kept, pairs.n_a, pairs.n_b)
        sizes = np.bincount(block, minlength=max(1, n_blocks))
        found = np.nan
        if truth is not None:
            found = np.isin(truth.numbered(pairs.n_b), kept.numbered(pairs.n_b)).mean()
        quantiles = np.quantile(sizes, [0.5, 0.9, 0.99])
        rows.append((n_blocks, len(kept), sizes.max(), quantiles, found))
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    return BlockCurve(
        values,
        columns[0],
        columns[1],
        columns[2],
        columns[3],
        1 - columns[1] / max(1, pairs.n_pairs),
        columns[4] if truth is not None else None,
    )


def _check_threshold(
    w0: float | None, max_pairs: int | None = None, max_records: int | None = None
) -> None:
    """Refuse a w0 or a budget that makes no sense."""
    if w0 is not None and not (isinstance(w0, Real) and w0 < math.inf):
        raise SettingsError(
            f"w0 must be a number below infinity, got {w0!r}. -inf keeps all pairs."
        )
    for name, value in (("max_pairs", max_pairs), ("max_records", max_records)):
        if value is None:
            continue
        if not (isinstance(value, Integral) and value >= 1):
            raise SettingsError(f"{name} must be a whole number from 1 up, got {value!r}.")
        if w0 is not None:
            raise SettingsError(f"give w0 or {name}, not both: {name} is there to choose w0.")


def _components(candidates: Pairs, n_a: int, n_b: int) -> tuple[Ints, int]:
    """Component of each candidate, numbered from 0 without gaps."""
    from scipy.sparse.csgraph import connected_components

    ends = candidates.a, candidates.b + n_a
    graph = sparse.csr_array((np.ones(len(candidates), np.int8), ends), (n_a + n_b,) * 2)
    _, component = connected_components(graph, directed=False)
    present, block = np.unique(component[candidates.a], return_inverse=True)
    return block.astype(np.int64), len(present)


def _list_pairs(pairs: PairSource, fit: Mode, w0: float | None) -> tuple[float, Pairs, Floats]:
    """A floor, the pairs above it and their weights: as many as are worth listing.

    All of them where they are few. Else the floor follows from how many pairs would weigh how much
    if fields were independent, and is raised if there turn out to be far more.
    """
    a_record = int(LISTED_A_RECORD * (pairs.n_a + pairs.n_b))
    most = max(LISTED, a_record)
    highest = fit.theta - STEP if w0 is None else w0
    floor = -math.inf
    if pairs.n_pairs > most:
        w, n = expected_by_weight(pairs, fit.parameters)
        n_above = np.cumsum(n[::-1])[::-1]
        links_below = np.cumsum(n * np.exp(np.minimum(w - fit.theta, 0.0)))
        left_out = (n_above > max(LEAST_LISTED, a_record)) & (links_below < UNLISTED * fit.n_links)
        floor = float(w[left_out | (n_above > most)].max(initial=-math.inf))
        floor = min(highest, floor)
    while True:
        try:
            in_files = w0 is None or floor < w0
            listed, w = pairs_above(pairs, fit.parameters, floor, in_files=in_files)
            break
        except TooManyPairsError:
            if floor >= highest:
                raise
        floor = max(floor, float(fit.parameters.bound.min(1).sum()))  # where it is −∞
        floor = highest if highest - floor < STEP else (floor + highest) / 2
    if len(listed) > 2 * most and floor < highest:
        floor = min(highest, float(np.partition(w, -most)[-most]))
        keep = np.flatnonzero(w > floor)
        listed, w = listed.take(keep), w[keep]
    return floor, listed, w


def _choose_w0(
    pairs: PairSource,
    fit: Mode,
    listed: Pairs,
    w: Floats,
    max_pairs: int | None,
    max_records: int | None,
) -> tuple[NDArray[np.bool_], float, str]:
    """Which listed pairs are candidates: those above the smallest w0 that keeps to the budget.

    Pairs nearly as good as the fit's stay in. The fit's dual prices say what a pair would cost:
    its records' prices less w − θ.
    """
    from bayeslink.kernels.components import first_overflow

    in_all = 0
    if max_pairs is None and max_records is None:
        max_pairs, in_all = MAX_PAIRS, int(PAIRS_A_RECORD * (pairs.n_a + pairs.n_b))
    no_limit = np.iinfo(np.int64).max
    limits = ((max_pairs, "pairs"), (max_records, "records of either file"))
    within = " and ".join(f"{most:,} {what}" for most, what in limits if most) + " in a block"
    order = np.argsort(-w, kind="stable")
    ends = listed.a[order], listed.b[order], w[order]
    n_kept = first_overflow(
        *ends, pairs.n_a, pairs.n_b, max_pairs or no_limit, max_records or no_limit
    )
    if n_kept < in_all:
        n_kept, within = in_all, f"{in_all:,} pairs in all"
    if n_kept >= len(w):
        if len(listed) == pairs.n_pairs:
            return np.ones(len(w), bool), -math.inf, "every pair is kept: that is within the budget"
        return np.ones(len(w), bool), float(w.min(initial=fit.theta)), "all pairs that are listed"
    w0, why = float(w[order[n_kept]]), f"smallest with at most {within}"
    keep = w > w0
    if w0 > fit.theta - CEILING:
        prices = fit.assignment.price_a[listed.a] + fit.assignment.price_b[listed.b]
        close = ~keep & (w - fit.theta > prices - CEILING)
        if close.any():
            keep |= close
            why += f", and {int(close.sum()):,} below it that cost the fit less than {CEILING:g}"
    return keep, w0, why
