"""Files with duplicates: the penalized likelihood of a forest of pointers.

A record is an original or a copy of another. An edge weighs w − θ, and log ρ more if it points to
a record that is a copy itself. Two maximisations alternate: of the forest given m, u, θ and ρ
(`kernels.best_forest`: exact in small components, with a bound in large ones), and of m and u given
the forest; θ follows from the prior over partitions, ρ from its posterior. There are several
starts, and all distinct modes found are kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array

from bayeslink.errors import SettingsError
from bayeslink.kernels.best_forest import best_forest
from bayeslink.linkage.partitions import ClusterSizes, PartitionPrior, edge_cost
from bayeslink.linkage.rivals import expected_above
from bayeslink.model.dependence import (
    ABOVE,
    FEWEST,
    INDEPENDENT_FIELDS,
    LEAD,
    Cover,
    learn_tree,
    most_certain,
)
from bayeslink.model.structure import DEPENDENT, Structure, checked_structure
from bayeslink.model.weights import ByField, Parameters, other_counts, proportions
from bayeslink.notebook_html import Shown
from bayeslink.pairs.candidates import Candidates
from bayeslink.pairs.hashing import mix64
from bayeslink.pairs.source import Floats, Ints, Pairs, PairSource, count_levels

POINTERS, STAR, TREE = "pointers", "star", "tree"
SHAPES = (POINTERS, STAR, TREE)
_MAX_ITERATIONS = 60
_ROUNDS = 5  # in which the tree is learned, at most
_APART = 0.05  # of what it was learned from: if more comes apart, it is learned anew
_SETTLED = 1e-4  # of the records: as many may still change their cluster when a climb ends
_UNLIKE, _MUCH_LESS = 0.25, 0.5  # unlikeness from which another fit is tried; share to take it
_SAME = 0.001  # of the records, in whose clusters one mode may differ from itself
_SHARES = (0.01, 0.1, 0.4)  # of the records that are copies, to start from
_MOST_AT_START = 20_000_000  # pairs above θ expected, beyond which a start is left out
_SLACK = 6.0  # candidates of the sampler: this far below θ,
_A_RECORD = 40  # but about so many a record at most


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
class ForestFit(ForestMode, Shown):
    """The best mode found; all of them, best first, are in `modes`."""

    pairs: PairSource = field(repr=False)
    shape: str
    sizes: ClusterSizes
    prior: PartitionPrior = field(repr=False)
    together: Pairs = field(repr=False)  # known
    apart: Pairs = field(repr=False)
    modes: tuple[ForestMode, ...] = field(repr=False)

    @property
    def m(self) -> ByField:
        return ByField(self.pairs.fields, self.parameters.m)

    @property
    def u(self) -> ByField:
        return ByField(self.pairs.fields, self.parameters.u)

    @property
    def clusters(self) -> Ints:
        """A row of each row's cluster, the same for all of it."""
        return roots(self.parent)

    def candidates(self) -> Pairs:
        """The pairs that the sampler goes through: as far below θ as there is room for."""
        most, slack = _A_RECORD * max(1000, self.pairs.n_a), _SLACK
        while slack > 0 and (
            expected_above(self.pairs, self.parameters, self.theta - slack) > 2 * most
        ):
            slack -= 1.0
        while True:
            listed = Candidates(self.pairs, slack=0.0)
            found, _ = listed.above(self.parameters, self.theta - slack)
            if len(found) <= most or slack <= 0:
                return found
            slack -= 1.0


def log_rho_grid(shape: str) -> Floats:
    """The values of log ρ: a grid with equal chances, or one value."""
    if shape == POINTERS:
        return np.linspace(np.log(1e-6), 0.0, 61)
    return np.array([-np.inf if shape == STAR else 0.0])


def roots(parent: NDArray[np.int32]) -> Ints:
    """The original of each record."""
    root = np.where(parent >= 0, parent, np.arange(len(parent))).astype(np.int64)
    while not np.array_equal(root[root], root):
        root = root[root]
    return root


def fit_forest(
    pairs: PairSource,
    *,
    sizes: ClusterSizes | None = None,
    structure: str = DEPENDENT,
    shape: str = POINTERS,
    links: Any = None,
    nonlinks: Any = None,
    progress: Callable[[str], None] = lambda message: None,
) -> ForestFit:
    """Maximise the penalized likelihood of a forest from several starts.

    Parameters
    ----------
    sizes
        The prior of how many records a person has; `ClusterSizes()` unless given.
    structure
        "dependent" or "independent" fields, as in `fit_penalized`.
    shape
        "pointers" (ρ is learned), "star" (all copies are of one original: ρ = 0) or "tree" (a copy
        of a copy is as likely: ρ = 1).
    links, nonlinks
        Pairs (id_a, id_b) known to be of one person, and of two.
    """
    checked_structure(structure)
    if shape not in SHAPES:
        raise SettingsError(
            f"unknown shape {shape!r}. Allowed: 'pointers' (how often a record is a copy of a copy "
            "is learned), 'star' (never) and 'tree' (as often as of the original)."
        )
    problem = _Problem.of(pairs, sizes or ClusterSizes(), shape, links, nonlinks)
    progress("fitting the forest")
    modes = _climb_all(problem, _starts(problem), [])
    if structure == DEPENDENT:
        problem, modes = _learn_structure(problem, modes)
    best, again = modes[0], True
    while again:
        progress(f"fitting the forest: {best.n_entities:,} people")
        near = [(best.parameters, best.theta + step) for step in (-2.0, -1.0, 1.0, 2.0)]
        modes = _climb_all(problem, _bearable(problem, near), modes)
        again = _apart(best, modes[0])
        best = modes[0]
    of_best = {name: getattr(modes[0], name) for name in ForestMode.__slots__}
    return ForestFit(
        **of_best, pairs=pairs, shape=shape, sizes=problem.sizes, prior=problem.prior,
        together=problem.together, apart=problem.apart, modes=tuple(modes),
    )  # fmt: skip


# --- one climb ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Problem:
    pairs: PairSource
    structure: Structure
    sizes: ClusterSizes
    prior: PartitionPrior
    shape: str
    candidates: Candidates
    together: Pairs
    apart: Pairs

    @classmethod
    def of(
        cls, pairs: PairSource, sizes: ClusterSizes, shape: str, links: Any, nonlinks: Any
    ) -> _Problem:
        structure = Structure.independent(pairs.fields, pairs.level_counts().counts)
        found = [_known(pairs, given) for given in (links, nonlinks)]
        prior = PartitionPrior.of(sizes, pairs.n_a, pairs.files)
        _refuse_contradictions(pairs, prior, *found)
        candidates = Candidates(pairs, expected=expected_above)
        return cls(pairs, structure, sizes, prior, shape, candidates, *found)

    def mode_of(self, linked: Pairs, parent: NDArray[np.int32]) -> Parameters:
        return self.structure.mode(linked, self._within(parent, linked))

    def _within(self, parent: NDArray[np.int32], linked: Pairs) -> Ints:
        """Level counts of all pairs within clusters: none of them is a non-link."""
        a, b = pairs_within(roots(parent))
        levels = self.pairs.levels_of(a, b) if len(a) else linked.levels
        return count_levels(levels, self.structure.all_counts.shape[1])

    def objective(self, parameters: Parameters, linked: Pairs, parent: Any, rho: float) -> float:
        out = self.structure.log_density(parameters, linked)
        out += self.prior.log(numbered(parent))
        return out + float(_rho_density(np.array([np.log(rho)]), parent)[0])


def pairs_within(cluster: Ints) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """All pairs of rows with the same cluster, lower row first."""
    order = np.argsort(cluster, kind="stable")
    starts = np.flatnonzero(np.append(True, np.diff(cluster[order]) != 0))
    size = np.diff(np.append(starts, len(order)))
    later = np.repeat(starts + size, size) - np.arange(len(order)) - 1  # members after each
    first = np.repeat(np.arange(len(order)), later)
    step = np.arange(len(first)) - np.repeat(np.cumsum(later) - later, later)
    a, b = order[first], order[first + step + 1]
    return np.minimum(a, b).astype(np.int32), np.maximum(a, b).astype(np.int32)


def numbered(parent: NDArray[np.int32]) -> Ints:
    """The number of each record's tree, from 0."""
    return np.asarray(np.unique(roots(parent), return_inverse=True)[1], np.int64)


def _rho_density(log_rho: Floats, parent: NDArray[np.int32]) -> Floats:
    """log p(which forest | partition, ρ), for each ρ, without what does not hang on ρ but k."""
    of_size = np.bincount(np.bincount(numbered(parent), minlength=1))
    has = np.flatnonzero(of_size * (np.arange(len(of_size)) > 1))
    deep = int(((parent >= 0) & (parent[parent] >= 0)).sum())
    norm = of_size[has] * (has - 2) * np.log1p(np.outer(np.exp(log_rho), has - 1))
    out = -norm.sum(1) - float(of_size[has] @ np.log(has))
    return np.asarray(out + (deep * log_rho if deep else 0.0))


def _learned_rho(problem: _Problem, parent: NDArray[np.int32]) -> float:
    """The mean of ρ given the forest."""
    grid = log_rho_grid(problem.shape)
    if len(grid) == 1:
        return float(np.exp(grid[0]))
    log_p = _rho_density(grid, parent)
    p = np.exp(log_p - log_p.max())
    return float(p @ np.exp(grid) / p.sum())


def _climb(problem: _Problem, parameters: Parameters, theta: float) -> ForestMode:
    """Alternate until the people hardly change; the best forest on the way."""
    rho = 0.0 if problem.shape == STAR else 1.0 if problem.shape == TREE else 0.03
    best: ForestMode | None = None
    seen: set[bytes] = set()
    before = np.arange(problem.pairs.n_a)
    for _ in range(_MAX_ITERATIONS):
        parent, linked, gap = _best_forest(problem, parameters, theta, rho)
        while not problem.prior.allows(numbered(parent)):  # larger than a person can be
            theta += 1.0
            parent, linked, gap = _best_forest(problem, parameters, theta, rho)
        settled, cluster = parent.tobytes() in seen, _least(parent)
        settled |= float(np.mean(cluster != before)) <= _SETTLED
        if settled and best is not None:
            return replace(best, converged=True)
        seen.add(parent.tobytes())
        before = cluster
        parameters = problem.mode_of(linked, parent)
        rho = _learned_rho(problem, parent)
        theta = edge_cost(problem.pairs.n_pairs, len(linked))
        objective = problem.objective(parameters, linked, parent, max(rho, 1e-300))
        if best is None or objective > best.objective:
            best = ForestMode(
                problem.structure, parameters, parent, linked, theta, rho, objective, gap, False
            )
    assert best is not None
    return best


def _best_forest(
    problem: _Problem, parameters: Parameters, theta: float, rho: float
) -> tuple[NDArray[np.int32], Pairs, float]:
    """The best forest given m, u, θ and ρ: parents, edges, and the gap to the bound."""
    n = problem.pairs.n_a
    found, w = problem.candidates.above(parameters, theta)
    open_ = np.flatnonzero(~np.isin(found.numbered(n), problem.apart.numbered(n)))
    found, gain = found.take(open_), w[open_] - theta
    within = known_groups(problem.pairs, problem.together)
    if len(within):  # worth more than all else
        new = ~np.isin(found.numbered(n), within.numbered(n))
        found = found.take(np.flatnonzero(new)).with_more(within)
        gain = np.concatenate([gain[new], np.full(len(within), 1e6)])
    keys, clean = problem.pairs.tie_keys[0], problem.prior.clean_bits
    parent, gap = solve_forest(found.a, found.b, gain, n, rho, keys, clean)
    parent = _parted(parent, problem.apart)
    child = np.flatnonzero(parent >= 0).astype(np.int32)
    ends = np.sort(np.column_stack([child, parent[child]]), axis=1)
    number = ends[:, 0].astype(np.int64) * n + ends[:, 1]
    order = np.argsort(found.numbered(n), kind="stable")
    at = order[np.searchsorted(found.numbered(n)[order], number)]
    return parent, found.take(np.sort(at)), gap


def solve_forest(
    a: NDArray[np.int32],
    b: NDArray[np.int32],
    gain: Floats,
    n: int,
    rho: float,
    keys: Any,
    clean: Ints | None = None,
) -> tuple[NDArray[np.int32], float]:
    """Parents of the forest of largest worth, and by how much it may fall short of it at most.

    `clean`: of each record the bit of its file, if no tree may hold two records of that.
    """
    rank = np.argsort(np.argsort(keys, kind="stable")).astype(np.int32)  # ties: by key, not row
    x, y = rank[a], rank[b]
    own, other = np.concatenate([x, y]), np.concatenate([y, x])
    order = np.lexsort((other, own))
    owner, neighbour = own[order], other[order]
    gains = np.concatenate([gain, gain])[order].astype(np.float64)
    start = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=n))]).astype(np.int64)
    label = components(x, y, n)
    members = np.argsort(label, kind="stable").astype(np.int32)
    first = np.concatenate([[0], np.cumsum(np.bincount(label))]).astype(np.int64)
    half = np.flatnonzero(owner < neighbour)
    edges = half[np.lexsort((half, -gains[half], label[owner[half]]))].astype(np.int64)
    n_edges = np.bincount(label[owner[half]], minlength=len(first) - 1)
    first_edge = np.concatenate([[0], np.cumsum(n_edges)]).astype(np.int64)
    parent = np.full(n, -1, np.int32)
    worth, bound = np.zeros((2, len(first) - 1))
    log_rho = float(np.log(rho)) if rho > 0 else -np.inf
    of_clean = np.zeros(n, np.int64)
    if clean is not None:
        of_clean[rank] = clean
    best_forest(
        start, neighbour, gains, owner, edges, members, first, first_edge, of_clean, log_rho,
        parent, worth, bound,
    )  # fmt: skip
    row = np.argsort(rank).astype(np.int32)
    found = parent[rank]
    return np.where(found >= 0, row[found], -1).astype(np.int32), float((bound - worth).sum())


def components(a: Any, b: Any, n: int) -> Ints:
    """Number of the connected component of each of n records."""
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(a), np.int8), (a, b)), (n, n))
    return np.asarray(connected_components(graph, directed=False)[1], np.int64)


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


# --- starts and modes -----------------------------------------------------------------------------


def _starts(problem: _Problem) -> list[tuple[Parameters, float]]:
    """Where to climb from: the prior's m, level shares of all pairs as u, some shares of copies."""
    priors, n = problem.structure.priors, problem.pairs.n_a
    u = proportions(priors.pseudo_u + problem.structure.all_counts, priors.used)
    usual = Parameters(proportions(priors.alpha_m, priors.used), u, priors.used)
    thetas = [edge_cost(problem.pairs.n_pairs, int(share * n)) for share in _SHARES]
    found = _bearable(problem, [(usual, theta) for theta in thetas])
    return found or [(usual, max(thetas))]


def _bearable(
    problem: _Problem, starts: list[tuple[Parameters, float]]
) -> list[tuple[Parameters, float]]:
    """The starts above whose θ there are not too many pairs."""
    return [
        (parameters, theta)
        for parameters, theta in starts
        if expected_above(problem.pairs, parameters, theta) <= _MOST_AT_START
    ]


def _climb_all(
    problem: _Problem, starts: list[tuple[Parameters, float]], modes: list[ForestMode]
) -> list[ForestMode]:
    """Distinct modes, best first: those there are and those climbed to from the starts."""
    for parameters, theta in starts:
        mode = _climb(problem, parameters, theta)
        same = [not _apart(x, mode) for x in modes]
        if not any(same) or mode.objective > modes[same.index(True)].objective + 1e-9:
            modes = [x for x, as_found in zip(modes, same, strict=True) if not as_found] + [mode]
    return sorted(modes, key=lambda mode: -mode.objective)


def _learn_structure(
    problem: _Problem, modes: list[ForestMode]
) -> tuple[_Problem, list[ForestMode]]:
    """Dependent fields, and the modes with them.

    m by errors comes first: where independent fields split people, their pairs are no non-links.
    The tree follows in rounds. Where it ends with records joined that are rather unlike, it is
    learned once more from the other end, at which nobody is twice.
    """
    fields = problem.pairs.fields
    structure = problem.structure.dependent(fields, INDEPENDENT_FIELDS, modes[0].linked)
    found = _learn_from_certain(*_climb_with(problem, structure, modes))
    differ = unlikeness(found[1][0].linked.levels)
    if differ > _UNLIKE:
        other = _learn_from_all(problem)
        if unlikeness(other[1][0].linked.levels) < _MUCH_LESS * differ:
            return other
    return found


def unlikeness(levels: NDArray[np.uint8]) -> float:
    """In what share of the fields that both have joined records differ; 0 where few are joined."""
    if len(levels) < FEWEST:
        return 0.0
    return float((levels == 1).sum() / max(1, (levels > 0).sum()))


def _learn_from_certain(
    problem: _Problem, modes: list[ForestMode]
) -> tuple[_Problem, list[ForestMode]]:
    """The tree, from the other pairs of clusters that are certain.

    In rounds, as in linkage, while more clusters become certain. So it does while clusters that
    were held for certain come apart: with independent fields a household is one person, certainly,
    and that its members agree together shows only once a tree tells them apart.
    """
    certain = certain_within(problem.pairs, problem.candidates, modes[0])
    for _ in range(_ROUNDS):
        learned_from = certain
        problem, modes = _climb_with_tree(problem, modes, learned_from, None)
        certain = certain_within(problem.pairs, problem.candidates, modes[0])
        root = roots(modes[0].parent)
        apart = int((root[learned_from.a] != root[learned_from.b]).sum())
        if len(certain) <= len(learned_from) and apart <= _APART * len(learned_from):
            break
    return problem, modes


def _learn_from_all(problem: _Problem) -> tuple[_Problem, list[ForestMode]]:
    """The tree, from all pairs but those within clusters, of which there are none at first.

    With few duplicates or none, a fit by independent fields takes households for people, or what
    else is alike, and a tree that is learned from their other pairs does not part them.
    """
    pairs, keys = problem.pairs, problem.pairs.tie_keys[0]
    rows = np.argsort(mix64(keys), kind="stable")[: most_certain(pairs.n_b)]
    chosen = np.zeros(pairs.n_a, bool)
    chosen[rows] = True
    singles = np.full(pairs.n_a, -1, np.int32)
    none = pairs_of(pairs, np.zeros(0, np.int32), np.zeros(0, np.int32))
    modes = [
        ForestMode(
            problem.structure, problem.mode_of(none, singles), singles, none,
            edge_cost(pairs.n_pairs, int(share * pairs.n_a)), 0.0, -np.inf, 0.0, False,
        )
        for share in _SHARES
    ]  # fmt: skip
    for _ in range(_ROUNDS):
        before = modes[0]
        a, b = pairs_within(roots(before.parent))
        a, b = np.concatenate([a, b]), np.concatenate([b, a])
        within = pairs_of(pairs, a[chosen[a]], b[chosen[a]])
        problem, modes = _climb_with_tree(problem, modes, within, np.sort(rows))
        if not _apart(before, modes[0]):
            break
    return problem, modes


def pairs_of(pairs: PairSource, a: NDArray[np.int32], b: NDArray[np.int32]) -> Pairs:
    """These pairs with their levels, whichever record of a pair is named first."""
    return Pairs(a, b, pairs.levels_of(np.minimum(a, b), np.maximum(a, b)))


def _climb_with_tree(
    problem: _Problem, modes: list[ForestMode], certain: Pairs, rows: Ints | None
) -> tuple[_Problem, list[ForestMode]]:
    """The modes with a tree that is learned from the other pairs of these records."""
    fields, linked = problem.pairs.fields, modes[0].linked
    levels = count_levels(linked.levels, problem.structure.all_counts.shape[1])
    others = other_counts(problem.structure.all_counts, levels)
    tree = replace(learn_tree(problem.pairs, certain, others, rows), covers=Cover.of(fields))
    structure = problem.structure.dependent(fields, tree, linked if len(linked) else None)
    return _climb_with(problem, structure, modes)


def _apart(one: ForestMode, other: ForestMode) -> bool:
    """Whether two modes are more than one, and not the same but for a few records."""
    return bool(np.mean(_least(one.parent) != _least(other.parent)) > _SAME)


def _least(parent: NDArray[np.int32]) -> Ints:
    """The first row of each row's cluster, whichever of its records is the original."""
    root, row = roots(parent), np.arange(len(parent))
    first = np.full(len(parent), len(parent))
    np.minimum.at(first, root, row)
    return first[root]


def _climb_with(
    problem: _Problem, structure: Structure, modes: list[ForestMode]
) -> tuple[_Problem, list[ForestMode]]:
    """The problem with this structure, and the modes that are climbed to from the best."""
    problem = replace(problem, structure=structure)
    starts = [(problem.mode_of(mode.linked, mode.parent), mode.theta) for mode in modes[:3]]
    return problem, _climb_all(problem, starts, [])


def certain_within(pairs: PairSource, candidates: Candidates, mode: ForestMode) -> Pairs:
    """Pairs of originals with their copies, in clusters that are certain.

    All edges weigh more than θ, and more than any pair that leaves the cluster, by some margin. All
    other pairs of such an original are non-links. Those that leave it may weigh more than θ:
    without them, two of one household would never be seen to agree.
    """
    found, w = candidates.above(mode.parameters, mode.theta - 1)
    root = roots(mode.parent)
    rival = np.full(pairs.n_a, -np.inf)
    out = root[found.a] != root[found.b]
    for rows in (found.a[out], found.b[out]):
        np.maximum.at(rival, root[rows], w[out])
    weakest = np.full(pairs.n_a, np.inf)
    of_edges = mode.parameters.weight_of(mode.linked.levels)
    np.minimum.at(weakest, root[mode.linked.a], of_edges)
    certain = np.isfinite(weakest) & (weakest > mode.theta + ABOVE) & (weakest > rival + LEAD)
    originals = np.flatnonzero(certain)  # the same ones whatever the order of rows
    originals = originals[np.argsort(mix64(pairs.tie_keys[0][originals]), kind="stable")]
    chosen = np.zeros(len(root), bool)
    chosen[originals[: most_certain(pairs.n_b)]] = True
    copies = np.flatnonzero(chosen[root] & (root != np.arange(len(root))))
    a = root[copies].astype(np.int32)
    b = copies.astype(np.int32)
    return Pairs(a, b, pairs.levels_of(np.minimum(a, b), np.maximum(a, b)))
