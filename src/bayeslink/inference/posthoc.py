"""Post-hoc blocks (Section 4, Algorithm 1): the pairs worth sampling, in independent pieces.

Pairs whose estimated weight exceeds w0 are edges of a graph; its connected components are the
post-hoc blocks. Only those pairs may link, not whole rows × columns rectangles.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from bayeslink.errors import SettingsError, TooManyPairsError
from bayeslink.inference.model import Parameters
from bayeslink.inference.penalized import Mode
from bayeslink.inference.rivals import expected_above, expected_by_weight
from bayeslink.pairs.source import Floats, Ints, Pairs, PairSource, sum_weights

# Where w0 is chosen: candidate pairs in a block, or in all for each record of either
# file. Larger blocks are drawn by moves, at a cost in proportion to their pairs, so that
# size alone is no reason to leave a pair out.
MAX_PAIRS = 2500
PAIRS_A_RECORD = 0.5
# Pairs are listed down to θ − 2.5 first, and lower step by step while the budget is not used up and
# no more than LISTED pairs a record are expected.
STEP = 2.5
LISTED = 20
# Pairs that the fit could link at a cost of less than CEILING in its objective are never left out,
# whatever the budget.
CEILING = 2.0
_ASIDE = 2  # pairs a record listed to work out what was set aside; beyond, as if independent
_FEW = 200_000  # pairs that are listed in any case


@dataclass(frozen=True)
class Blocks:
    """Candidate pairs, grouped into post-hoc blocks; what `sample` takes."""

    pairs: PairSource = field(repr=False)
    parameters: Parameters = field(repr=False)  # of the fit that made the weights
    start: Pairs = field(repr=False)  # the fit's links among the candidates
    theta: float
    w0: float
    candidates: Pairs = field(repr=False)
    weights: Floats = field(repr=False)
    block: Ints = field(repr=False)  # block of each candidate
    n_blocks: int
    known: Pairs = field(repr=False)  # links known to hold
    why: str  # how w0 came about

    @property
    def n_candidates(self) -> int:
        return len(self.candidates)

    @property
    def n_pairs_in_block(self) -> Ints:
        """Candidate pairs in each block."""
        return np.bincount(self.block, minlength=self.n_blocks)

    def records_in_block(self) -> tuple[Ints, Ints]:
        """Records of A and of B in each block."""
        sides = []
        for rows in (self.candidates.a, self.candidates.b):
            _, first = np.unique(rows, return_index=True)
            sides.append(np.bincount(self.block[first], minlength=self.n_blocks))
        return sides[0], sides[1]

    @property
    def reduction_ratio(self) -> float:
        """Share of the pairs in scope that are no candidates."""
        return 1 - self.n_candidates / max(1, self.pairs.n_pairs)

    def set_aside(self) -> float:
        """Links expected among the pairs left out, with m, u and θ held at the fit's values.

        Each pair left out would link with odds of exp(w − θ), were there no rivals: for a fixed θ
        the sum is an upper bound. It takes no account of what is uncertain about m and u. The sum
        is over the pairs themselves as far down as they can be listed, and below that as if fields
        were independent.
        """
        return self._set_aside

    @cached_property
    def _set_aside(self) -> float:
        pairs, log_weights = self.pairs, self.parameters.log_weights
        w, n = expected_by_weight(pairs, log_weights)
        most = max(_FEW, _ASIDE * (pairs.n_a + pairs.n_b))
        floor = (
            -math.inf if pairs.n_pairs <= most else float(w[np.cumsum(n[::-1])[::-1] > most].max())
        )
        listed = None
        while floor < self.w0 and (listed := _listed_if_few(pairs, log_weights, floor)) is None:
            floor = self.w0 if self.w0 - floor < 0.1 else (max(floor, float(w[0])) + self.w0) / 2
        below = float((n * np.exp(w - self.theta))[w <= min(floor, self.w0)].sum())
        if listed is None:
            return below
        found = sum_weights(log_weights, listed.levels)
        return below + float(np.exp(found[found <= self.w0] - self.theta).sum())


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
    known, barred = known_pairs(pairs, links, nonlinks)
    if w0 is None:
        candidates, w, w0, why = _choose_w0(pairs, fit, max_pairs, max_records, known, barred)
    else:
        listed = pairs.pairs_above(log_weights, w0)
        candidates, w = _without_known(
            listed, sum_weights(log_weights, listed.levels), known, barred
        )
        why = "given"
    block, n_blocks = _components(candidates, pairs.n_a, pairs.n_b)
    return Blocks(
        pairs=pairs,
        parameters=fit.parameters,
        start=fit.linked,
        theta=fit.theta,
        w0=float(w0),
        candidates=candidates,
        weights=w,
        block=block,
        n_blocks=n_blocks,
        known=known,
        why=why,
    )


def block_curve(
    pairs: PairSource, fit: Mode, w0: Sequence[float], *, truth: Pairs | None = None
) -> BlockCurve:
    """Number and sizes of post-hoc blocks, reduction ratio and pairs completeness over w0."""
    if not len(w0):
        raise SettingsError("give one or more values of w0.")
    for value in w0:
        _check_threshold(value)
    values = np.array(sorted(w0), float)
    listed = pairs.pairs_above(fit.parameters.log_weights, float(values[0]))
    w = sum_weights(fit.parameters.log_weights, listed.levels)
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


def known_pairs(pairs: PairSource, links: Any, nonlinks: Any) -> tuple[Pairs, Pairs]:
    """Known links and known non-links as rows, checked."""
    known, barred = (
        pairs.find(given) if given is not None else _none(pairs) for given in (links, nonlinks)
    )
    for rows, file in ((known.a, "A"), (known.b, "B")):
        if len(np.unique(rows)) < len(rows):
            raise SettingsError(
                f"a record of {file} is in two known links. Each record has at most one; "
                "drop all but one of its links."
            )
    both = set(zip(known.a.tolist(), known.b.tolist(), strict=True)) & set(
        zip(barred.a.tolist(), barred.b.tolist(), strict=True)
    )
    if both:
        raise SettingsError(
            f"{len(both)} pairs are given both as links and as non-links. Settle them first."
        )
    return known, barred


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


def _none(pairs: PairSource) -> Pairs:
    empty = np.zeros(0, np.int32)
    return Pairs(empty, empty, np.zeros((0, len(pairs.fields)), np.uint8))


def _without_known(listed: Pairs, w: Floats, known: Pairs, barred: Pairs) -> tuple[Pairs, Floats]:
    """Leave out known non-links, and every pair of a record whose link is known."""
    if not len(known) and not len(barred):
        return listed, w
    keep = ~(np.isin(listed.a, known.a) | np.isin(listed.b, known.b))
    if len(barred):
        span = int(max(listed.b.max(initial=0), barred.b.max())) + 1
        keep &= ~np.isin(listed.numbered(span), barred.numbered(span))
    at = np.flatnonzero(keep)
    return listed.take(at), w[at]


def _components(candidates: Pairs, n_a: int, n_b: int) -> tuple[Ints, int]:
    """Component of each candidate, numbered from 0 without gaps."""
    ends = candidates.a, candidates.b + n_a
    graph = sparse.csr_array((np.ones(len(candidates), np.int8), ends), (n_a + n_b,) * 2)
    _, component = connected_components(graph, directed=False)
    present, block = np.unique(component[candidates.a], return_inverse=True)
    return block.astype(np.int64), len(present)


def _listed_if_few(pairs: PairSource, log_weights: Floats, floor: float) -> Pairs | None:
    """The pairs above a floor, in files if need be; None beyond what any budget lets be listed."""
    try:
        return pairs.pairs_above(log_weights, floor, in_files=True)
    except TooManyPairsError:
        return None


def _choose_w0(
    pairs: PairSource,
    fit: Mode,
    max_pairs: int | None,
    max_records: int | None,
    known: Pairs,
    barred: Pairs,
) -> tuple[Pairs, Floats, float, str]:
    """The smallest w0 that keeps to the budget; pairs nearly as good as the fit's stay in.

    The fit's dual prices say what a pair would cost: its records' prices less w − θ.
    Pairs are listed down to a floor, which is lowered until the budget is used up, all pairs are
    listed, or there would be too many to list.
    """
    from bayeslink.kernels.components import first_overflow

    in_all = 0
    if max_pairs is None and max_records is None:
        max_pairs, in_all = MAX_PAIRS, int(PAIRS_A_RECORD * (pairs.n_a + pairs.n_b))
    no_limit = np.iinfo(np.int64).max
    limits = ((max_pairs, "pairs"), (max_records, "records of either file"))
    budget = " and ".join(f"{most:,} {what}" for most, what in limits if most) + " in a block"
    log_weights = fit.parameters.log_weights
    floor = fit.theta - STEP
    listed = pairs.pairs_above(log_weights, floor, in_files=True)
    while True:
        w = sum_weights(log_weights, listed.levels)
        candidates, w = _without_known(listed, w, known, barred)
        order = np.argsort(-w, kind="stable")
        ends = candidates.a[order], candidates.b[order], w[order]
        n_kept = first_overflow(
            *ends, pairs.n_a, pairs.n_b, max_pairs or no_limit, max_records or no_limit
        )
        within = budget
        if n_kept < in_all:
            n_kept, within = in_all, f"{in_all:,} pairs in all"
        if n_kept < len(w):
            break
        if len(listed) == pairs.n_pairs:
            return candidates, w, -math.inf, "every pair is kept: that is within the budget"
        lower, most = 2 * floor - fit.theta, max(_FEW, LISTED * (pairs.n_a + pairs.n_b))
        few = expected_above(pairs, log_weights, lower) <= most
        longer = _listed_if_few(pairs, log_weights, lower) if few else None
        if longer is None:
            why = "within the budget; lower would be too many pairs to list"
            return candidates, w, floor, why
        listed, floor = longer, lower
    w0, why = float(w[order[n_kept]]), f"smallest with at most {within}"
    keep = w > w0
    if w0 > fit.theta - CEILING:
        prices = fit.assignment.price_a[candidates.a] + fit.assignment.price_b[candidates.b]
        close = ~keep & (w - fit.theta > prices - CEILING)
        if close.any():
            keep |= close
            why += f", and {int(close.sum()):,} below it that cost the fit less than {CEILING:g}"
    at = np.flatnonzero(keep)
    return candidates.take(at), w[at], w0, why
