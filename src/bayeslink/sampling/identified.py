"""What a run can point to, what it only counts, and how far either may be wrong.

L is taken in parts, each with the doubt that files with known truth show:

- *Links that are only counted.* Below θ no pair stands out. How many links there are follows from m
  alone, far from the links that m was learned from: an extrapolation, which more draws do not make
  safer. It may be wrong by a log-normal factor of `COUNTED`.
- *False links.* The model expects some of the links that can be pointed to, to be false. The files
  show more than it knows: a record whose link is certain has no other, so its other pairs above θ
  are look-alikes, and records without a partner have as many each, some of them with a record that
  has none either. The larger of the two numbers may be wrong by a log-normal factor of `FALSE`;
  what a run tells to expect lies between them.
- *Links that chance explains.* Where pairs as alike as the links are as common within each file,
  only those more than that can be pointed to, and the others are not identified.
- Both are wider where pairs by weight are not those expected (`weight_bands.misfit`).

Where most of L is only counted, the data do not say what L is: there are only bounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from bayeslink.pairs.source import Floats, Ints, Pairs

COUNTED, FALSE = 0.5, 0.4  # standard deviations of log factors
MOST_WIDER = 2.5  # by which they grow at most where weight bands do not fit
MOST_COUNTED = 0.5  # share of L above which L is not identified
STANDS_OUT = 0.1  # link probability from which a pair above θ can be pointed to
MUCH = 0.05  # share of L that is only counted, from which a run says so
SURELY = 2.0  # above θ: from here a link is certain, whatever rivals it has
_STREAM = 2**32 - 3  # of random numbers


@dataclass(frozen=True, slots=True)
class Parts:
    """The links that a run expects, in parts.

    Attributes
    ----------
    pointed, counted
        Links expected among pairs that stand out, known ones too, and among all others.
    false
        Links of those pointed to that are expected to be false.
    look_alikes
        The same from the pairs above θ of records whose link is certain.
    by_chance
        Links that pairs within the files explain as well (`sampling.within_files`). They are not
        among those pointed to.
    """

    pointed: float
    counted: float
    false: float
    look_alikes: float
    by_chance: float = 0.0

    @property
    def holds(self) -> bool:
        """Whether the data say how many links there are: that there are next to none, too."""
        return not self.mostly_counted and not self.by_chance

    @property
    def mostly_counted(self) -> bool:
        """Whether most links follow from the model alone."""
        every = self.pointed + self.counted + self.by_chance
        return self.counted > max(1.0, MOST_COUNTED * every)

    @property
    def likely_false(self) -> float:
        """The false links to expect: between the two figures, if look-alikes say more.

        Each is wrong by a factor, so theirs is the geometric mean.
        """
        return math.sqrt(self.false * max(self.false, self.look_alikes))

    def unsupported(self, share: float, known: int) -> Parts:
        """The same where only this share of the links is more than chance."""
        left = known + share * (self.pointed - known)
        return replace(self, pointed=left, by_chance=self.pointed - left)


@dataclass(frozen=True, slots=True)
class Identified:
    """The number of links, in parts and as draws that allow for what may be wrong with each.

    Attributes
    ----------
    parts
        What can be pointed to, what is only counted.
    most
        Links that there can be at most.
    draws
        Draws of L with the doubt, chain × draw. Where L is not identified, every other draw is of
        the lower bound, the links that can be pointed to, and the rest are the upper one.
    """

    parts: Parts
    most: int
    draws: Ints

    @property
    def holds(self) -> bool:
        return self.parts.holds

    def interval(self, level: float) -> tuple[int, int]:
        """Equal-tailed interval of L; its bounds where L is not identified."""
        tail = (1 - level) / 2
        low, high = np.quantile(self.draws, [tail, 1 - tail], method="inverted_cdf")
        return int(low), int(high)


def standing_out(probability: Floats, weights: Floats, theta: float) -> NDArray[np.bool_]:
    """Which pairs can be pointed to."""
    return (weights > theta) & (probability >= STANDS_OUT)


def parts_of(
    candidates: Pairs,
    probability: Floats,
    weights: Floats,
    *,
    theta: float,
    mean: float,
    known: int,
    records: tuple[int, int],
) -> Parts:
    """Divide the links that are expected.

    Parameters
    ----------
    mean
        Of the number of links, `known` ones too.
    records
        Records of A and of B that are not in known links.
    """
    out = standing_out(probability, weights, theta)
    pointed = float(probability[out].sum()) + known
    false = float((1 - probability[out & (probability > 0.5)]).sum())
    certain = (probability > 0.5) & (weights > theta + SURELY)
    others = (weights > theta) & ~certain
    alone = tuple(max(0.0, 1 - (mean - known) / max(1, n)) for n in records)
    alike = _look_alikes(candidates, certain, others, records) * alone[0] * alone[1]
    return Parts(min(pointed, mean), max(0.0, mean - pointed), false, alike)


def _look_alikes(
    candidates: Pairs, certain: NDArray[np.bool_], others: NDArray[np.bool_], records: Sequence[int]
) -> float:
    """Pairs above θ that all records would have by chance, the mean of both files.

    As many each as records with a certain link have beside that.
    """
    found = []
    for rows, n in zip((candidates.a, candidates.b), records, strict=True):
        own = np.zeros(int(rows.max(initial=0)) + 1, bool)
        own[rows[certain]] = True
        if own.any():
            found.append(float(own[rows[others]].sum() / own.sum()) * n)
    return float(np.mean(found)) if found else 0.0


def factors(shape: tuple[int, ...], spread: float, seed: int, part: int) -> Floats:
    """By how much a part is wrong in each draw: a quantile each, in random order."""
    n = int(np.prod(shape))
    order = np.random.default_rng([seed, _STREAM, part]).permutation(n)
    return np.asarray(np.exp(spread * ndtri((order + 0.5) / n))).reshape(shape)


def identified(
    n_links: Ints, parts: Parts, *, misfit: float, known: int, most: int, seed: int
) -> Identified:
    """What draws of the number of links, chain × draw, say of it.

    Parameters
    ----------
    misfit
        Of pairs by weight: see `weight_bands.misfit`.
    most
        Links that there can be at most.
    """
    # A population size needs a link or two; where every draw has them, the doubt takes none away.
    least = known if parts.by_chance else max(known, min(2, int(n_links.min())))
    if parts.mostly_counted:
        draws = np.rint(n_links - parts.counted - parts.by_chance).astype(np.int64)
        draws.reshape(-1)[1::2] = most
        return Identified(parts, most, np.clip(draws, least, most))
    wider = min(MOST_WIDER, float(np.sqrt(max(1.0, misfit))))
    of_counted, of_false = (
        factors(n_links.shape, wider * sd, seed, part) - 1
        for part, sd in enumerate((COUNTED, FALSE))
    )
    false = max(parts.false, parts.look_alikes)
    draws = np.rint(n_links + parts.counted * of_counted - false * of_false).astype(np.int64)
    if parts.by_chance:
        draws.reshape(-1)[1::2] = round(parts.pointed)
    return Identified(parts, most, np.clip(draws, least, most))


def said(parts: Parts) -> str | None:
    """What to tell of links that are only counted; None where they are few."""
    n_links = parts.pointed + parts.counted + parts.by_chance
    if parts.mostly_counted:
        return (
            "the number of records in both files is not identified: "
            f"{parts.pointed:,.0f} links can be pointed to, and {parts.counted:,.0f} more are "
            "expected among pairs that look like any other. Take no count from this run: compare "
            "fields that tell people apart, or judge a sample."
        )
    if parts.counted <= MUCH * n_links:
        return None
    return (
        f"{parts.counted:,.0f} of {n_links:,.0f} links are only counted: no pair shows them, "
        "they follow from the model. The interval allows for that number being wrong by a "
        "factor. Judge a sample to make it shorter."
    )


def with_doubt(
    states: Sequence[NDArray[np.int32]],
    factor: Floats,
    candidates: Pairs,
    pointed: NDArray[np.bool_],
    others: NDArray[np.int32],
    place: Ints,
    seed: int,
) -> list[NDArray[np.int32]]:
    """Draws of the links in which there are as many only counted as the doubt allows for.

    Parameters
    ----------
    states
        Candidates linked in each draw.
    factor
        By how much the counted links of each are wrong: some are left out, or more of `others`,
        such candidates linked in other draws, are put in where both records are free.
    pointed
        Which candidates can be pointed to.
    place
        Of each candidate, in an order that does not depend on the order of rows.
    """
    drawn = []
    others = others[np.argsort(place[others])]
    for number, (state, by) in enumerate(zip(states, factor, strict=True)):
        rng = np.random.default_rng([seed, _STREAM, 2 + number])
        counted = np.flatnonzero(~pointed[state])
        counted = counted[np.argsort(place[state[counted]])]
        wanted = round(min(len(counted) * by, len(others) + len(counted)))
        if wanted < len(counted):
            dropped = rng.permutation(counted)[wanted:]
            drawn.append(np.delete(state, dropped))
            continue
        more = _free(candidates, state, rng.permutation(others))[: wanted - len(counted)]
        drawn.append(np.append(state, more).astype(np.int32))
    return drawn


def _free(
    candidates: Pairs, state: NDArray[np.int32], others: NDArray[np.int32]
) -> NDArray[np.int32]:
    """Those of the others that share no record with a link, nor with one before them."""
    taken_a, taken_b = (set(rows[state].tolist()) for rows in (candidates.a, candidates.b))
    found = []
    for pair in others.tolist():
        a, b = int(candidates.a[pair]), int(candidates.b[pair])
        if a not in taken_a and b not in taken_b:
            taken_a.add(a)
            taken_b.add(b)
            found.append(pair)
    return np.array(found, np.int32)
