"""Local maxima of the likelihood of a forest: from a start, the forest and m, u, θ, ρ by turns."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayeslink.errors import SettingsError
from bayeslink.linkage.partitions import ClusterSizes, PartitionPrior, edge_cost
from bayeslink.linkage.pointers import (
    STAR,
    TREE,
    components,
    first_rows,
    log_rho_density,
    log_rho_grid,
    numbered,
    pairs_within,
    roots,
    solve_forest,
)
from bayeslink.linkage.rivals import expected_above
from bayeslink.model.structure import Structure
from bayeslink.model.weights import Parameters, proportions
from bayeslink.pairs.candidates import Lists
from bayeslink.pairs.source import Ints, Pairs, PairSource, count_levels
from bayeslink.threads import run_all, threads_of

_MAX_ITERATIONS = 60
_SETTLED = 1e-4  # of the records: as many may still change their cluster when a climb ends
_FALLEN = 2  # times in a row that the likelihood falls, and a climb ends
_AT_A_TIME = 200_000  # pairs within clusters that are compared at a time
_SAME = 0.001  # of the records, in whose clusters one mode may differ from itself
SHARES = (0.4, 0.1, 0.01)  # of the records that are copies, to start from; the longest list first
_MOST_AT_START = 20_000_000  # pairs above θ expected, beyond which a start is left out


@dataclass(frozen=True, slots=True)
class ForestMode:
    """A local maximum."""

    structure: Structure = field(repr=False)
    parameters: Parameters = field(repr=False)
    parent: NDArray[np.int32] = field(repr=False)  # of each row; −1: an original
    linked: Pairs = field(repr=False)  # the edges
    theta: float
    rho: float
    objective: float
    gap: float  # by which the last forest may fall short of the best, at most; 0: it is the best
    converged: bool

    @property
    def n_entities(self) -> int:
        return int((self.parent < 0).sum())


@dataclass(frozen=True, slots=True)
class Problem:
    """What does not change while the likelihood is climbed."""

    pairs: PairSource
    structure: Structure
    sizes: ClusterSizes
    prior: PartitionPrior
    shape: str
    candidates: Lists
    together: Pairs
    apart: Pairs

    @classmethod
    def of(
        cls, pairs: PairSource, sizes: ClusterSizes, shape: str, links: Any, nonlinks: Any
    ) -> Problem:
        structure = Structure.independent(pairs.fields, pairs.level_counts().counts)
        found = [_known(pairs, given) for given in (links, nonlinks)]
        prior = PartitionPrior.of(sizes, pairs.n_a, pairs.files)
        _refuse_contradictions(pairs, prior, *found)
        candidates = Lists(pairs, expected_above)
        return cls(pairs, structure, sizes, prior, shape, candidates, *found)

    def mode_of(self, linked: Pairs, parent: NDArray[np.int32]) -> Parameters:
        return self.structure.mode(linked, self._within(parent, linked))

    def _within(self, parent: NDArray[np.int32], linked: Pairs) -> Ints:
        """Level counts of all pairs within clusters: none of them is a non-link."""
        a, b = pairs_within(roots(parent))
        width = self.structure.all_counts.shape[1]
        if not len(a):
            return count_levels(linked.levels, width)

        def count(first: int) -> Ints:
            part = slice(first, first + _AT_A_TIME)
            return count_levels(self.pairs.levels_of(a[part], b[part]), width)

        pieces = [partial(count, first) for first in range(0, len(a), _AT_A_TIME)]
        return np.asarray(sum(run_all(pieces, threads_of(self.pairs.workers))))

    def objective(self, parameters: Parameters, linked: Pairs, parent: Any, rho: float) -> float:
        out = self.structure.log_density(parameters, linked)
        out += self.prior.log(numbered(parent))
        return out + float(log_rho_density(np.array([np.log(rho)]), parent)[0])


def _learned_rho(problem: Problem, parent: NDArray[np.int32]) -> float:
    """The mean of ρ given the forest."""
    grid = log_rho_grid(problem.shape)
    if len(grid) == 1:
        return float(np.exp(grid[0]))
    log_p = log_rho_density(grid, parent)
    p = np.exp(log_p - log_p.max())
    return float(p @ np.exp(grid) / p.sum())


def _climb(problem: Problem, parameters: Parameters, theta: float) -> ForestMode:
    """Alternate until the people hardly change, or it gets worse; the best forest on the way."""
    objective = -np.inf
    rho = 0.0 if problem.shape == STAR else 1.0 if problem.shape == TREE else 0.03
    best: ForestMode | None = None
    seen: set[bytes] = set()
    before, fallen = np.arange(problem.pairs.n_a), 0  # how often in a row
    for _ in range(_MAX_ITERATIONS):
        parent, linked, gap = _best_forest(problem, parameters, theta, rho)
        while not problem.prior.allows(numbered(parent)):  # larger than a person can be
            theta += 1.0
            parent, linked, gap = _best_forest(problem, parameters, theta, rho)
        settled, cluster = parent.tobytes() in seen, first_rows(parent)
        settled |= float(np.mean(cluster != before)) <= _SETTLED
        if settled and best is not None:
            return replace(best, converged=True)
        seen.add(parent.tobytes())
        before = cluster
        parameters = problem.mode_of(linked, parent)
        rho = _learned_rho(problem, parent)
        theta = edge_cost(problem.pairs.n_pairs, len(linked))
        last, objective = objective, problem.objective(parameters, linked, parent, max(rho, 1e-300))
        fallen = fallen + 1 if objective < last else 0
        if best is not None and fallen == _FALLEN:
            return replace(best, converged=True)
        if best is None or objective > best.objective:
            best = ForestMode(
                problem.structure, parameters, parent, linked, theta, rho, objective, gap, False
            )
    assert best is not None
    return best


def _best_forest(
    problem: Problem, parameters: Parameters, theta: float, rho: float
) -> tuple[NDArray[np.int32], Pairs, float]:
    """The best forest given m, u, θ and ρ: parents, edges, and the gap to the bound."""
    n = problem.pairs.n_a
    found, w = problem.candidates.above(parameters, theta)
    gain = w - theta
    if len(problem.apart):
        open_ = np.flatnonzero(~np.isin(found.numbered(n), problem.apart.numbered(n)))
        found, gain = found.take(open_), gain[open_]
    within = known_groups(problem.pairs, problem.together)
    if len(within):  # worth more than all else
        new = ~np.isin(found.numbered(n), within.numbered(n))
        found = found.take(np.flatnonzero(new)).with_more(within)
        gain = np.concatenate([gain[new], np.full(len(within), 1e6)])
    keys, clean = problem.pairs.tie_keys[0], problem.prior.clean_bits
    threads = threads_of(problem.pairs.workers)
    parent, gap = solve_forest(found.a, found.b, gain, n, rho, keys, clean, threads)
    parent = _parted(parent, problem.apart)
    child = np.flatnonzero(parent >= 0).astype(np.int32)
    ends = np.sort(np.column_stack([child, parent[child]]), axis=1)
    number = ends[:, 0].astype(np.int64) * n + ends[:, 1]
    numbers = found.numbered(n)
    order = np.argsort(numbers, kind="stable")
    at = order[np.searchsorted(numbers[order], number)]
    return parent, found.take(np.sort(at)), gap


def usual_starts(problem: Problem) -> list[tuple[Parameters, float]]:
    """Where to climb from: the prior's m, level shares of all pairs as u, some shares of copies."""
    priors, n = problem.structure.priors, problem.pairs.n_a
    u = proportions(priors.pseudo_u + problem.structure.all_counts, priors.used)
    usual = Parameters(proportions(priors.alpha_m, priors.used), u, priors.used)
    thetas = [edge_cost(problem.pairs.n_pairs, int(share * n)) for share in SHARES]
    found = bearable(problem, [(usual, theta) for theta in thetas])
    return found or [(usual, max(thetas))]


def bearable(
    problem: Problem, starts: list[tuple[Parameters, float]]
) -> list[tuple[Parameters, float]]:
    """The starts above whose θ there are not too many pairs."""
    return [
        (parameters, theta)
        for parameters, theta in starts
        if expected_above(problem.pairs, parameters, theta) <= _MOST_AT_START
    ]


def climb_all(
    problem: Problem, starts: list[tuple[Parameters, float]], modes: list[ForestMode]
) -> list[ForestMode]:
    """Distinct modes, best first: those there are and those climbed to from the starts."""
    for parameters, theta in starts:
        mode = _climb(problem, parameters, theta)
        same = [not are_apart(x, mode) for x in modes]
        if not any(same) or mode.objective > modes[same.index(True)].objective + 1e-9:
            modes = [x for x, as_found in zip(modes, same, strict=True) if not as_found] + [mode]
    return sorted(modes, key=lambda mode: -mode.objective)


def are_apart(one: ForestMode, other: ForestMode) -> bool:
    """Whether two modes are more than one, and not the same but for a few records."""
    return bool(np.mean(first_rows(one.parent) != first_rows(other.parent)) > _SAME)


# --- what is known --------------------------------------------------------------------------------


def _known(pairs: PairSource, given: Any) -> Pairs:
    if given is None:
        empty = np.zeros(0, np.int32)
        return Pairs(empty, empty, np.zeros((0, len(pairs.fields)), np.uint8))
    found = pairs.find(given)
    swap = found.a > found.b
    a, b = np.where(swap, found.b, found.a), np.where(swap, found.a, found.b)
    return Pairs(a.astype(np.int32), b.astype(np.int32), found.levels)


def known_groups(pairs: PairSource, together: Pairs) -> Pairs:
    """All pairs of records that known links make one person."""
    if not len(together):
        return together
    label = components(together.a, together.b, pairs.n_a)
    named = np.unique(np.concatenate([together.a, together.b]))
    a, b = pairs_within(label[named])
    a, b = named[a].astype(np.int32), named[b].astype(np.int32)
    return Pairs(a, b, pairs.levels_of(a, b))


def _refuse_contradictions(
    pairs: PairSource, prior: PartitionPrior, together: Pairs, apart: Pairs
) -> None:
    n = pairs.n_a
    groups = known_groups(pairs, together)
    both = int(np.isin(apart.numbered(n), groups.numbered(n)).sum())
    if both:
        raise SettingsError(
            f"{both} pairs are given as two people that the links given make one. Settle them "
            "first."
        )
    label = components(together.a, together.b, pairs.n_a)
    if not prior.allows(label):
        records = prior.records(label)
        several = np.flatnonzero((records > prior.largest).any(0)).tolist()
        names = " or ".join(pairs.files.names[k] for k in several) if pairs.files else "the file"
        raise SettingsError(
            f"the links given make one person of more records of {names} than a person can have "
            "there. Leave some of them out, or name the file among those with duplicates."
        )


def _parted(parent: NDArray[np.int32], apart: Pairs) -> NDArray[np.int32]:
    """The forest without the trees that hold two records known to be apart."""
    root = roots(parent)
    wrong = root[apart.a][root[apart.a] == root[apart.b]]
    return np.where(np.isin(root, wrong), -1, parent).astype(np.int32) if len(wrong) else parent
