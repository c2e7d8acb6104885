"""From posterior link probabilities to decisions (Section 3.2; Sadinle 2017, JASA 112:600–612).

Three estimates, each an exact optimum over one-to-one sets of candidate pairs: of least expected
loss, of highest F score, and the largest with a bounded share of false links. All take the
candidate pairs as rows `a`, `b` and the posterior probability `p` that each is linked; over the
candidates of one record these sum to at most 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import NamedTuple

import numpy as np

from bayeslink.errors import SettingsError
from bayeslink.linkage.assignment import Keys, Rows, assign
from bayeslink.pairs.hashing import mix64
from bayeslink.pairs.source import Floats, Ints

_EVEN = 1e-12  # gains below this are rounding: the choice is even, and no link is made


def _is_finite(value: object) -> bool:
    return isinstance(value, Real) and math.isfinite(value)


@dataclass(frozen=True, slots=True)
class Decision:
    """Which candidate pairs are linked, which are left to a person, and what to expect of it."""

    links: Ints  # positions of the chosen candidate pairs, ascending
    review: Ints  # positions of the candidates of rejected records, most probable first
    rejected: Rows  # rows of B whose status is left open, ascending
    expected_loss: float  # as the estimate that made it defines it
    expected_false: float  # number of links expected to be false, the sum of 1 − p


@dataclass(frozen=True, slots=True)
class Loss:
    """Sadinle's additive loss; each record of B that is treated wrongly costs something.

    Parameters
    ----------
    false_nonlink
        Left unlinked although it has a link (λ_FNM).
    false_link
        Linked although it has no link (λ_FM1).
    wrong_link
        Linked, but to the wrong record (λ_FM2).
    reject
        Left to a person, whatever the truth (λ_R). None: every record is decided.
    """

    false_nonlink: float = 1.0
    false_link: float = 1.0
    wrong_link: float = 2.0
    reject: float | None = None

    def __post_init__(self) -> None:
        for name in ("false_nonlink", "false_link", "wrong_link"):
            value = getattr(self, name)
            if not (_is_finite(value) and value >= 0):
                raise SettingsError(
                    f"{name} must be a finite number of at least 0, got {value!r}. It is what one "
                    "such error costs; leave it out for the balanced loss, 1, 1 and 2."
                )
            object.__setattr__(self, name, float(value))
        if self.reject is not None and not (_is_finite(self.reject) and self.reject > 0):
            raise SettingsError(
                f"reject must be a finite number above 0, got {self.reject!r}. It is what the "
                "review of one record costs; leave it out to have every record decided."
            )
        if self.reject is not None:
            object.__setattr__(self, "reject", float(self.reject))


BALANCED = Loss()


def bayes_estimate(
    a: Rows,
    b: Rows,
    p: Floats,
    n_a: int,
    n_b: int,
    keys: Keys | None = None,
    *,
    loss: Loss = BALANCED,
    copies: tuple[Ints, Ints] | None = None,
) -> Decision:
    """Minimise the posterior expected loss over one-to-one sets of candidates, exactly.

    With q_b = Σ_a p_ab the probability that b has a link, the expected loss of record b is
    λ_FM1 (1 − q_b) + λ_FM2 (q_b − p_ab) if it is linked to a, λ_FNM q_b if it is left unlinked,
    λ_R if it is rejected. What a link gains over the cheaper of the other two adds up over links,
    so one assignment on the positive gains is optimal, for any losses and any rivalry. Where
    choices are even, a record is left rather than rejected and rejected rather than linked.

    Notes
    -----
    The balanced loss (1, 1, 2) gives Eq. (10), link where p > 1/2: the gain over leaving b is
    q_b − (1 − q_b) − 2 (q_b − p_ab) = 2 p_ab − 1. As the p of one record sum to at most 1, no two
    such pairs are rivals.

    With `copies`, of which `as_one` has made p, q_b counts the copies of a record of A once, and a
    record of B costs nothing where a copy of it is linked.
    """
    costs = (loss.false_nonlink, loss.false_link, loss.wrong_link, loss.reject or 0.0)
    scale = max(costs) or 1.0
    miss, false, wrong, reject = (cost / scale for cost in costs)
    if loss.reject is None:
        reject = math.inf
    share = p if copies is None else p / _listed_copies(a, b, n_b, copies[0])
    q = np.minimum(np.bincount(b, weights=share, minlength=n_b), 1.0)
    unlinked = np.minimum(miss * q, reject)
    # Sorted by q and p, not as the difference of two losses, so that balanced gains are 2p − 1.
    over_leaving = (miss + false - wrong) * q[b] + wrong * p - false
    over_rejecting = reject + (false - wrong) * q[b] + wrong * p - false
    gains = np.minimum(over_leaving, over_rejecting)
    links = _Candidates(a, b, n_a, n_b, keys).best(gains)
    is_rejected = miss * q > reject + _EVEN
    done = b[links] if copies is None else np.isin(copies[1], copies[1][b[links]])
    is_rejected[done] = False
    cost = unlinked[b[links]].sum() - gains[links].sum()
    unlinked[done] = 0.0
    shown = np.flatnonzero(is_rejected[b])
    return Decision(
        links=links,
        review=shown[np.argsort(-p[shown], kind="stable")],
        rejected=np.flatnonzero(is_rejected).astype(np.int32),
        expected_loss=scale * float(unlinked.sum() + cost),
        expected_false=_expected_false(p, links),
    )


def as_one(a: Rows, b: Rows, p: Floats, copies: tuple[Ints, Ints]) -> Floats:
    """Probability that a link is right if copies count as one: to this record, or to a copy.

    Of `copies` each record of A and of B has the row of its first copy. Where one of the two
    records has copies, that is the sum of p over them. Where both have, as many links as the fewer
    of them may be made, and each has its share of the links expected.
    """
    first = copies[0][a], copies[1][b]
    several = [np.bincount(side, minlength=len(side)) for side in copies]
    fewer = np.minimum(several[0][first[0]], several[1][first[1]])
    _, group = np.unique(first[0] * len(copies[1]) + first[1], return_inverse=True)
    return np.minimum(np.bincount(group, weights=p)[group] / fewer, 1.0)


def _listed_copies(a: Rows, b: Rows, n_b: int, first_of_a: Ints) -> Ints:
    """Of each candidate, how many candidates its record of B has with copies of that of A."""
    _, group = np.unique(first_of_a[a] * n_b + b, return_inverse=True)
    return np.bincount(group)[group]


def f_score_estimate(
    a: Rows,
    b: Rows,
    p: Floats,
    n_a: int,
    n_b: int,
    keys: Keys | None = None,
    *,
    expected_links: float,
) -> Decision:
    """Maximise F = 2 Σp / (number of links + E[L]) over one-to-one sets of candidates.

    F is the F score with its numerator and denominator replaced by their expectations; the
    `expected_loss` of the decision is 1 − F. Dinkelbach's iteration: a set beats F exactly if
    Σ(2p − F) over its links exceeds F E[L], so the best set for the present F, an assignment over
    the pairs with 2p > F, either raises F or proves it optimal.

    Parameters
    ----------
    expected_links
        Posterior mean of the number of links L.
    """
    if not (_is_finite(expected_links) and expected_links >= 0):
        raise SettingsError(
            f"expected_links must be a finite number of at least 0, got {expected_links!r}. It is "
            "the posterior mean of the number of links; give the sum of the link probabilities."
        )
    pairs = _Candidates(a, b, n_a, n_b, keys)
    f = 0.0
    while True:
        links = pairs.best(2 * p - f)
        agreed, total = 2 * float(p[links].sum()), len(links) + expected_links
        if agreed <= f * (1 + _EVEN) * total:
            break
        f = agreed / total
    lost = float((total - agreed) / total) if total else 0.0
    return Decision(links, *_NOTHING_OPEN, lost, _expected_false(p, links))


def largest_set(
    a: Rows,
    b: Rows,
    p: Floats,
    n_a: int,
    n_b: int,
    keys: Keys | None = None,
    *,
    false_link_rate: float,
) -> Decision:
    """Find the most links, one-to-one, of which at most a given share is expected to be false.

    Among the sets of that size it is the one with the fewest expected false links. Their expected
    share, the mean of 1 − p, is the `expected_loss` of the decision.

    Parameters
    ----------
    false_link_rate
        The share allowed, from 0 to 1. The allowance is used up: next to many certain links there
        is room for improbable ones.

    Notes
    -----
    A link leaves s = p − (1 − rate) of the allowance to others; a set is allowed if its s sum to
    at least 0. The best sum M(k) with k links is concave in k and M(0) = 0, so the allowed sizes
    are 0 to some k, and M is traced by assignments on s + μ, where μ pays for each link.
    """
    if not (_is_finite(false_link_rate) and 0 <= false_link_rate <= 1):
        raise SettingsError(
            f"false_link_rate must lie between 0 and 1, got {false_link_rate!r}. It is the share "
            "of false links to allow among the links; give 0.05 for 5 %."
        )
    spare = p - (1 - false_link_rate) + _EVEN
    links = _largest(_Candidates(a, b, n_a, n_b, keys), spare)
    false = _expected_false(p, links)
    return Decision(links, *_NOTHING_OPEN, false / max(len(links), 1), false)


def too_few(links: int, interval: tuple[float, float]) -> str | None:
    """Warn if an estimate has fewer links than the credible interval of L allows.

    Parameters
    ----------
    links
        Number of links of the estimate.
    interval
        Lower and upper end of a credible interval of the number of links L.
    """
    lower, upper = interval
    if links >= lower:
        return None
    return (
        f"The estimate has {links:,} links, fewer than the credible interval of the number of "
        f"links allows ({lower:,.10g} to {upper:,.10g}). That happens where a record surely has a "
        "link but its probability is spread over several rivals, so that none of them is linked. "
        "For counts, and anything computed from them, use the posterior of the number of links, "
        "not the links of the estimate."
    )


_NOTHING_OPEN = (np.empty(0, np.int64), np.empty(0, np.int32))  # review, rejected


class _Candidates(NamedTuple):
    """The graph of candidate pairs."""

    a: Rows
    b: Rows
    n_a: int
    n_b: int
    keys: Keys | None

    def best(self, scores: Floats) -> Ints:
        """Positions of the one-to-one set of highest total score."""
        worth = np.flatnonzero(scores > _EVEN)
        a, b = self.a[worth], self.b[worth]
        chosen = assign(a, b, scores[worth], self.n_a, self.n_b, self.keys).chosen
        return np.sort(worth[chosen])


def _expected_false(p: Floats, links: Ints) -> float:
    return float((1 - p[links]).sum())


def _largest(pairs: _Candidates, spare: Floats) -> Ints:
    """The largest set whose `spare` sums to at least 0.

    `allowed` and `beyond` are vertices of the concave M(k) on either side of its zero. The chord
    between them gives a μ at which both are worth the same; the best set at this μ is a vertex
    above the chord, or else the chord is an edge of M and both sets are optimal at μ.
    """
    allowed, beyond = _bracket(pairs, spare)
    while len(beyond) - len(allowed) > 1:
        kept = spare[allowed].sum()
        mu = (kept - spare[beyond].sum()) / (len(beyond) - len(allowed))
        found = pairs.best(spare + mu)
        above = (spare[found] + mu).sum() - (kept + mu * len(allowed))
        if above <= _EVEN * len(beyond) or not len(allowed) < len(found) < len(beyond):
            break
        if spare[found].sum() >= 0:
            allowed = found
        else:
            beyond = found
    return _lengthen(pairs, spare, allowed, beyond)


def _bracket(pairs: _Candidates, spare: Floats) -> tuple[Ints, Ints]:
    """An allowed set, and a larger one that is not; twice the same if no set is larger."""
    allowed, most = pairs.best(spare), len(pairs.best(np.ones_like(spare)))
    mu = 1.0
    while len(allowed) < most:
        found = pairs.best(spare + mu)
        if spare[found].sum() < 0:
            return allowed, found
        allowed, mu = found, 2 * mu
    return allowed, allowed


def _lengthen(pairs: _Candidates, spare: Floats, allowed: Ints, beyond: Ints) -> Ints:
    """Add links one by one, on the way from one set to the other, while the set stays allowed.

    Both sets are optimal at one μ, so each augmenting path between them costs the same μ and each
    set on the way is the best of its size.
    """
    paths = _augmenting_paths(pairs, allowed, beyond)
    if pairs.keys is not None:
        starts = pairs.a[[added[0] for added, _ in paths]]
        ends = pairs.b[[added[-1] for added, _ in paths]]
        tie_break = mix64(pairs.keys[0][starts] + pairs.keys[1][ends])
        paths = [paths[i] for i in np.argsort(tie_break)]
    cost = [spare[dropped].sum() - spare[added].sum() for added, dropped in paths]
    affordable = int((np.cumsum(cost) <= spare[allowed].sum()).sum())
    links = set(allowed.tolist())
    for added, dropped in paths[:affordable]:
        links.difference_update(dropped)
        links.update(added)
    return np.array(sorted(links), np.int64)


def _augmenting_paths(
    pairs: _Candidates, links: Ints, others: Ints
) -> list[tuple[list[int], list[int]]]:
    """Paths by which `links` gains one link from `others`: what each adds and drops.

    They are the components of the symmetric difference that begin at a record of A and end at a
    record of B which both have no link yet.
    """
    a, b = pairs.a, pairs.b
    other_of_a = dict(zip(a[others].tolist(), others.tolist(), strict=True))
    link_of_b = dict(zip(b[links].tolist(), links.tolist(), strict=True))
    paths = []
    for start in np.setdiff1d(a[others], a[links]).tolist():
        added, dropped = [other_of_a[start]], list[int]()
        while (held := link_of_b.get(int(b[added[-1]]))) is not None:
            dropped.append(held)
            if int(a[held]) not in other_of_a:
                break
            added.append(other_of_a[int(a[held])])
        if len(added) > len(dropped):
            paths.append((added, dropped))
    return paths
