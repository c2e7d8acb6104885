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

from bayeslink.errors import SettingsError, TooManyPairsError
from bayeslink.linkage.forest_modes import (
    SHARES,
    ForestMode,
    Problem,
    are_apart,
    bearable,
    climb_all,
    usual_starts,
)
from bayeslink.linkage.partitions import ClusterSizes, PartitionPrior, edge_cost
from bayeslink.linkage.pointers import POINTERS, SHAPES, pairs_within, roots
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
from bayeslink.model.weights import ByField, other_counts
from bayeslink.notebook_html import Shown
from bayeslink.pairs.candidates import Candidates, Lists
from bayeslink.pairs.hashing import mix64
from bayeslink.pairs.source import Ints, Pairs, PairSource, count_levels

_ROUNDS = 5  # in which the tree is learned, at most
_APART = 0.05  # of what it was learned from: if more comes apart, it is learned anew
_UNLIKE, _LESS = 0.25, 0.9  # unlikeness that joined records have at most; share to take it
_ENOUGH = 50  # people who are certainly twice, to learn from them alone
_SLACK = 6.0  # candidates of the sampler: this far below θ,
_A_RECORD = 40  # but about so many a record at most


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
            try:
                found, _ = listed.above(self.parameters, self.theta - slack)
                if len(found) <= most or slack <= 0:
                    return found
            except TooManyPairsError:
                if slack <= 0:
                    raise
            slack -= 1.0


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
    problem = Problem.of(pairs, sizes or ClusterSizes(), shape, links, nonlinks)
    progress("fitting the forest")
    modes = climb_all(problem, usual_starts(problem), [])
    if structure == DEPENDENT:
        problem, modes = _learn_structure(problem, modes)
    best, again = modes[0], True
    while again:
        progress(f"fitting the forest: {best.n_entities:,} people")
        near = [(best.parameters, best.theta + step) for step in (-2.0, -1.0, 1.0, 2.0)]
        modes = climb_all(problem, bearable(problem, near), modes)
        again = are_apart(best, modes[0])
        best = modes[0]
    of_best = {name: getattr(modes[0], name) for name in ForestMode.__slots__}
    return ForestFit(
        **of_best, pairs=pairs, shape=shape, sizes=problem.sizes, prior=problem.prior,
        together=problem.together, apart=problem.apart, modes=tuple(modes),
    )  # fmt: skip


# --- dependent fields -----------------------------------------------------------------------------


def _learn_structure(problem: Problem, modes: list[ForestMode]) -> tuple[Problem, list[ForestMode]]:
    """Dependent fields, and the modes with them.

    m by errors comes first: where independent fields split people, their pairs are no non-links.
    The tree is learned from two ends, for what it is learned from decides what it finds: from the
    fit by independent fields, which may take couples and whole households for people, and from all
    pairs, as if nobody were twice. It is taken there where records that are joined are less unlike,
    and the people are worth more under both trees together.
    """
    fields = problem.pairs.fields
    structure = problem.structure.dependent(fields, INDEPENDENT_FIELDS, modes[0].linked)
    problem, modes = _climb_with(problem, structure, modes)
    one = _learn_from_certain(problem, modes)
    if _are_strangers(one):
        other = _from_nobody_twice(problem)
    else:
        try:
            other = _from_all_pairs(problem, modes)
        except TooManyPairsError:  # few fields, which agree together as a rule
            return one
        if sum(_worth(tree, other) - _worth(tree, one) for tree in (one[0], other[0])) < 0:
            return one
    return other if _unlikeness(other) < _LESS * _unlikeness(one) else one


def _worth(problem: Problem, found: tuple[Problem, list[ForestMode]]) -> float:
    """The objective of the best mode found, under the tree of this problem."""
    mode = found[1][0]
    parameters = problem.mode_of(mode.linked, mode.parent)
    return problem.objective(parameters, mode.linked, mode.parent, max(mode.rho, 1e-300))


def _from_all_pairs(problem: Problem, modes: list[ForestMode]) -> tuple[Problem, list[ForestMode]]:
    none, rows = _none(problem.pairs), _some_rows(problem.pairs)
    return _learn_from_certain(*_climb_with_tree(problem, modes[:1], none, rows))


def _from_nobody_twice(problem: Problem) -> tuple[Problem, list[ForestMode]]:
    """Where the other end joins strangers: few are twice, or none."""
    found = _learn_from_certain(*_learn_from_all(problem, 1))
    if _are_strangers(found) or found[0].structure.tree.n_certain < _ENOUGH:
        return _learn_from_all(problem, _ROUNDS)  # too few are twice to learn from these alone
    return found


def _are_strangers(found: tuple[Problem, list[ForestMode]]) -> bool:
    """Whether joined records differ in half of the fields, though one or two may tell nothing."""
    levels = found[1][0].linked.levels
    differ = (levels == 1).sum(0) / np.maximum(1, (levels > 0).sum(0))
    return len(levels) >= FEWEST and float(np.median(differ)) > _UNLIKE


def _unlikeness(found: tuple[Problem, list[ForestMode]]) -> float:
    """Of the best mode; where it joins next to none, as much as may be."""
    levels = found[1][0].linked.levels
    n = len(levels)
    return (unlikeness(levels) * n + _UNLIKE * FEWEST) / (n + FEWEST)


def unlikeness(levels: NDArray[np.uint8]) -> float:
    """In what share of the fields that both have joined records differ; 0 where few are joined."""
    if len(levels) < FEWEST:
        return 0.0
    return float((levels == 1).sum() / max(1, (levels > 0).sum()))


def _learn_from_certain(
    problem: Problem, modes: list[ForestMode]
) -> tuple[Problem, list[ForestMode]]:
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


def _learn_from_all(problem: Problem, rounds: int) -> tuple[Problem, list[ForestMode]]:
    """The tree, from all pairs but those within clusters, of which there are none at first.

    With few duplicates or none, a fit by independent fields takes households for people, or what
    else is alike, and a tree that is learned from their other pairs does not part them.
    """
    pairs, none = problem.pairs, _none(problem.pairs)
    rows = _some_rows(pairs)
    chosen = np.zeros(pairs.n_a, bool)
    chosen[rows] = True
    singles = np.full(pairs.n_a, -1, np.int32)
    modes = [
        ForestMode(
            problem.structure, problem.mode_of(none, singles), singles, none,
            edge_cost(pairs.n_pairs, int(share * pairs.n_a)), 0.0, -np.inf, 0.0, False,
        )
        for share in SHARES
    ]  # fmt: skip
    for _ in range(rounds):
        before = modes[0]
        a, b = pairs_within(roots(before.parent))
        a, b = np.concatenate([a, b]), np.concatenate([b, a])
        within = pairs_of(pairs, a[chosen[a]], b[chosen[a]])
        problem, modes = _climb_with_tree(problem, modes, within, rows)
        if not are_apart(before, modes[0]):
            break
    return problem, modes


def _some_rows(pairs: PairSource) -> Ints:
    """As many records as there is time to learn from, the same ones whatever their order."""
    order = np.argsort(mix64(pairs.tie_keys[0]), kind="stable")
    return np.sort(order[: most_certain(pairs.n_b)])


def _none(pairs: PairSource) -> Pairs:
    return pairs_of(pairs, np.zeros(0, np.int32), np.zeros(0, np.int32))


def pairs_of(pairs: PairSource, a: NDArray[np.int32], b: NDArray[np.int32]) -> Pairs:
    """These pairs with their levels, whichever record of a pair is named first."""
    return Pairs(a, b, pairs.levels_of(np.minimum(a, b), np.maximum(a, b)))


def _climb_with_tree(
    problem: Problem, modes: list[ForestMode], certain: Pairs, rows: Ints | None
) -> tuple[Problem, list[ForestMode]]:
    """The modes with a tree that is learned from the other pairs of these records."""
    fields, linked = problem.pairs.fields, modes[0].linked
    levels = count_levels(linked.levels, problem.structure.all_counts.shape[1])
    others = other_counts(problem.structure.all_counts, levels)
    tree = replace(learn_tree(problem.pairs, certain, others, rows), covers=Cover.of(fields))
    structure = problem.structure.dependent(fields, tree, linked if len(linked) else None)
    return _climb_with(problem, structure, modes)


def _climb_with(
    problem: Problem, structure: Structure, modes: list[ForestMode]
) -> tuple[Problem, list[ForestMode]]:
    """The problem with this structure, and the modes that are climbed to from the best."""
    problem = replace(problem, structure=structure)
    starts = [(problem.mode_of(mode.linked, mode.parent), mode.theta) for mode in modes[:3]]
    return problem, climb_all(problem, starts, [])


def certain_within(pairs: PairSource, candidates: Lists, mode: ForestMode) -> Pairs:
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
    return pairs_of(pairs, a, b)
