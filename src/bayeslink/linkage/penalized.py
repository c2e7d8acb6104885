"""Penalized likelihood (3.3): C, m and u estimated together, one-to-one throughout.

Alternates two exact maximisations of Eq. 12: of C given m, u (an assignment, Eq. 13) and of m, u
given C (counts, Eqs 14–15). The objective never falls. It has several modes, so there are several
starts, and all distinct modes found are kept.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bayeslink.errors import FitError, SettingsError
from bayeslink.linkage.assignment import Assignment, assign
from bayeslink.linkage.known import Known
from bayeslink.linkage.priors import LinkCountPrior, LinkPrior, Overlap, Penalty
from bayeslink.linkage.rivals import Rivals, expected_above, expected_by_weight
from bayeslink.model.dependence import certain_links, learn_tree
from bayeslink.model.structure import DEPENDENT, INDEPENDENT, Structure, checked_structure
from bayeslink.model.weights import ByField, Parameters, other_counts, proportions
from bayeslink.notebook_html import Shown
from bayeslink.pairs.candidates import Candidates
from bayeslink.pairs.pair_tables import callers_table
from bayeslink.pairs.source import Floats, Ints, Pairs, PairSource, count_levels

_MAX_ITERATIONS = 200
_MOST_AT_START = 20_000_000  # pairs above θ expected, beyond which a start is left out: too low a θ
_CARRIED = 3  # modes of independent fields from which those of dependent ones are climbed to
_STEPS = (-2.0, -1.0, -0.5, -0.25, 0.25, 0.5, 1.0, 2.0)  # in θ, to leave a mode for a better one


@dataclass(frozen=True, slots=True)
class Mode:
    """A local maximum of the objective."""

    pairs: PairSource = field(repr=False)
    structure: Structure = field(repr=False)  # the model of m and u
    parameters: Parameters = field(repr=False)
    linked: Pairs = field(repr=False)
    tied: NDArray[np.bool_] = field(repr=False)
    theta: float  # the cost of one more link there
    objective: float  # log posterior up to a constant (Eq. 12 with the priors of m and u)
    history: tuple[float, ...] = field(repr=False)  # the objective after each iteration
    converged: bool  # False: the links still changed when the iterations ran out
    assignment: Assignment = field(repr=False)

    @property
    def n_links(self) -> int:
        """How many pairs are linked."""
        return len(self.linked)

    @property
    def m(self) -> ByField:
        """m of each field, worst level first."""
        return ByField(self.pairs.fields, self.parameters.m)

    @property
    def u(self) -> ByField:
        """u of each field, worst level first."""
        return ByField(self.pairs.fields, self.parameters.u)

    @property
    def links(self) -> Any:
        """Table of links: id_a, id_b, match_weight (log2), tied, gamma_<field>."""
        w = self.weight_of(self.linked.levels)
        return callers_table(
            self.pairs, self.linked, {"match_weight": w / math.log(2), "tied": self.tied}
        )

    def weight_of(self, levels: NDArray[Any]) -> Floats:
        """Weight of each comparison vector (Eq. 6), in natural logs."""
        return self.parameters.weight_of(levels)


@dataclass(frozen=True, slots=True)
class PenalizedFit(Mode, Shown):
    """The best mode found; the others, best first, are in `modes` (this one leads)."""

    modes: tuple[Mode, ...] = field(repr=False)
    prior: LinkCountPrior
    searches: int  # passes over all pairs in scope that the fit needed
    rivals: Rivals  # pairs that weigh enough for a link and have none

    def warning(self) -> str | None:
        """What is wrong where the iterations ran out before the links settled; None if not."""
        if self.converged:
            return None
        return (
            f"the fit had not settled after {len(self.history)} iterations: its {self.n_links:,} "
            "links are not yet a maximum of the penalized likelihood. Fit again with a fixed theta "
            f"(it stood at {self.theta:.3g}) and compare the links."
        )


@dataclass(frozen=True, slots=True)
class PenaltyPath(Shown):
    """Fits over a range of θ, in both directions."""

    thetas: Floats
    fits: tuple[PenalizedFit, ...]  # best at each θ
    up: tuple[Mode, ...]  # found coming from smaller θ
    down: tuple[Mode, ...]  # found coming from larger θ

    @property
    def n_links(self) -> Ints:
        return np.array([fit.n_links for fit in self.fits])

    @property
    def objective(self) -> Floats:
        return np.array([fit.objective for fit in self.fits])

    @property
    def links(self) -> list[Any]:
        return [fit.links for fit in self.fits]

    @property
    def modes(self) -> list[tuple[Mode, ...]]:
        return [fit.modes for fit in self.fits]


def fit_penalized(
    pairs: PairSource,
    theta: float | None = None,
    *,
    prior: LinkCountPrior | None = None,
    structure: str = INDEPENDENT,
    wrong_fields: Sequence[Sequence[float]] | None = None,
    links: Any = None,
    nonlinks: Any = None,
    progress: Callable[[str], None] = lambda message: None,
    journal: Journal | None = None,
) -> PenalizedFit:
    """Maximise the penalized likelihood (Eq. 12) from several starts.

    Parameters
    ----------
    theta
        The cost of one link. Without it, θ follows from the number of links under `prior`.
    prior
        `Penalty(theta)` or `Overlap(alpha, beta)`; `Overlap(1, 1)` unless given.
    structure
        "independent" fields, as in the paper, or "dependent": errors of a link may come together
        or apart, and fields may agree together among non-links.
    wrong_fields
        Of dependent fields: links seen before, by missing fields and by wrong ones.
    links, nonlinks
        Pairs (id_a, id_b) known to be links and non-links, from clerical review for example. Known
        links are among the links throughout, known non-links never.
    journal
        Where the modes found are written down, and taken up from after an interruption.
    """
    checked_structure(structure)
    prior = _chosen_prior(theta, prior)
    problem = _Problem.of(pairs, prior, Known.of(pairs, links, nonlinks))
    climb = _Climbs(journal) if journal else _climb
    progress("maximising the penalized likelihood")
    modes = _climb_all(problem, _starts(problem), climb)
    if structure == DEPENDENT:
        problem, learned = _learn_structure(problem, modes[0], climb, wrong_fields)
        carried = [learned, *modes[:_CARRIED]]
        starts = [(problem.structure.mode(mode.linked), mode.theta) for mode in carried]
        modes = _climb_all(problem, starts, climb)
    best = None
    while best is not (best := modes[0]):
        progress(f"maximising the penalized likelihood: {best.n_links:,} links")
        around = [best.theta + step for step in _STEPS]
        near = [(best.parameters, theta) for theta in _few_above(problem, best.parameters, around)]
        modes = _climb_all(problem, near, climb, modes)
    return _best(problem, modes)


def penalty_path(
    pairs: PairSource,
    thetas: Sequence[float],
    *,
    progress: Callable[[str], None] = lambda message: None,
) -> PenaltyPath:
    """Penalized-likelihood fits over a range of θ, each started from its neighbours' estimates."""
    values = np.array(sorted(set(map(float, thetas))))
    if not len(values) or not np.isfinite(values).all():
        raise SettingsError("thetas must be one or more finite numbers.")
    candidates = Candidates(pairs)
    problems = [replace(_Problem.of(pairs, Penalty(t)), candidates=candidates) for t in values]

    def follow(order: list[int]) -> dict[int, Mode]:
        found: dict[int, Mode] = {}
        parameters = _starts(problems[order[0]])[0][0]
        for i in order:
            progress(f"theta = {values[i]:g}")
            found[i] = _climb(problems[i], parameters, None)
            parameters = found[i].parameters
        return found

    n = len(values)
    up = follow(list(range(n)))  # first: what is listed for a small θ serves the larger ones
    down = follow(list(reversed(range(n))))
    fits = [_best(problems[i], [up[i], down[i]]) for i in range(n)]
    return PenaltyPath(
        values,
        tuple(fits),
        tuple(up[i] for i in range(n)),
        tuple(down[i] for i in range(n)),
    )


# --- one climb --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Problem:
    pairs: PairSource
    structure: Structure
    prior: LinkCountPrior
    link_prior: LinkPrior
    candidates: Candidates
    known: Known
    passed: dict[bytes, Mode] = field(default_factory=dict)  # where climbs that came by ended

    @classmethod
    def of(cls, pairs: PairSource, prior: LinkCountPrior, known: Known | None = None) -> _Problem:
        counts = pairs.level_counts().counts
        structure = Structure.independent(pairs.fields, counts)
        candidates = Candidates(pairs, expected=expected_above)
        known = known or Known.of(pairs)
        return cls(pairs, structure, prior, prior.on(pairs.scope), candidates, known)

    def objective(self, parameters: Parameters, linked: Pairs) -> float:
        with np.errstate(invalid="ignore", divide="ignore"):  # what comes of it is refused below
            data = self.structure.log_density(parameters, linked)
        objective = data + float(self.link_prior.log_prior(len(linked)))
        if not math.isfinite(objective):
            raise FitError(
                f"the log posterior of {len(linked):,} links is {objective}, not a finite number. "
                "Each level must have at least as many pairs in all as it has among the links, as "
                "level_counts() and the levels of listed pairs tell them. If these come from a "
                "source of your own, check that they agree; otherwise please report this."
            )
        return objective


def _climb_all(
    problem: _Problem,
    starts: Sequence[tuple[Parameters, float | None]],
    climb: Climb,
    modes: Sequence[Mode] = (),
) -> list[Mode]:
    """Distinct modes, best first: those there are and those climbed to from the starts."""
    for parameters, theta in starts:
        modes = _distinct([*modes, climb(problem, parameters, theta)])
    return list(modes)


def _at_rest(mode: Mode) -> Mode:
    """The mode, its large arrays in files where the memory budget has no room for them."""
    memory, linked, solved = mode.pairs.memory, mode.linked, mode.assignment
    if memory is None:
        return mode
    return replace(
        mode,
        linked=Pairs(*(memory.keep(part) for part in (linked.a, linked.b, linked.levels))),
        assignment=replace(
            solved,
            chosen=memory.keep(solved.chosen),
            price_a=memory.keep(solved.price_a),
            price_b=memory.keep(solved.price_b),
        ),
    )


def _climb(problem: _Problem, parameters: Parameters, theta: float | None) -> Mode:
    """Alternate the two maximisations until the links no longer change.

    log p(C) is convex in the number of links under either prior, so the tangent at the current
    number lies below it, and to assign under the tangent's cost cannot lower the objective.

    What comes after some links follows from them alone: a climb that comes to links by which an
    earlier one came ends where that did.
    """
    if theta is None:
        theta = problem.link_prior.cost(0)
    history: list[float] = []
    way: list[bytes] = []
    mode, start = None, None
    while len(history) < _MAX_ITERATIONS:
        linked, solved, start = _assign(problem, parameters, theta, start)
        way.append(_digest(linked))
        if (known := problem.passed.get(way[-1])) is not None:
            problem.passed.update(dict.fromkeys(way, known))
            return known
        parameters = problem.structure.mode(linked)
        objective = problem.objective(parameters, linked)
        if mode is not None and objective < mode.objective:  # by rounding: as good as settled
            mode = replace(mode, converged=True)
            break
        history.append(objective)
        settled = mode is not None and objective == mode.objective
        theta = problem.link_prior.cost(len(linked))
        mode = Mode(
            problem.pairs,
            problem.structure,
            parameters,
            linked,
            solved.tied,
            theta,
            objective,
            tuple(history),
            settled,
            solved,
        )
        if settled:
            break
    assert mode is not None
    mode = _at_rest(mode)
    if mode.converged:
        problem.passed.update(dict.fromkeys(way, mode))
    return mode


def _digest(linked: Pairs) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for side in (linked.a, linked.b):
        digest.update(np.ascontiguousarray(side).data)
    return digest.digest()


Climb = Callable[[_Problem, Parameters, float | None], Mode]


class Journal(Protocol):
    """Where values are written down one after the other, now and then."""

    def read(self) -> Iterator[Any]: ...
    def add(self, value: Any) -> None: ...


class _Climbs:
    """Climbs that are written down; what was climbed before an interruption is not climbed again.

    The climbs of a fit come in the same order every time.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal, self._found = journal, journal.read()

    def __call__(self, problem: _Problem, parameters: Parameters, theta: float | None) -> Mode:
        if (found := next(self._found, None)) is not None:
            mode, listing = found
            problem.candidates.list_again(*listing)
            return _at_rest(replace(mode, structure=problem.structure))
        mode = _climb(problem, parameters, theta)
        self._journal.add((mode, problem.candidates.listing))
        return mode


def _assign(
    problem: _Problem, parameters: Parameters, theta: float, start: Any
) -> tuple[Pairs, Assignment, Any]:
    """The best C given m, u and the cost of a link (Eq. 13), with the known links in it."""
    pairs, known = problem.pairs, problem.known
    candidates, w = problem.candidates.above(parameters, theta)
    if known:
        left = np.flatnonzero(known.leave_open(candidates))
        candidates, w = candidates.take(left), w[left]
    solved = assign(
        candidates.a, candidates.b, w - theta, pairs.n_a, pairs.n_b, pairs.tie_keys, start
    )
    linked = candidates.take(solved.chosen)
    start = linked.a, linked.b, solved.price_b
    if len(known.links):
        linked = linked.with_more(known.links)
        order = np.argsort(linked.a)
        tied = np.append(solved.tied, np.zeros(len(known.links), bool))[order]
        linked, solved = linked.take(order), replace(solved, tied=tied)
    return linked, solved, start


def _chosen_prior(theta: float | None, prior: LinkCountPrior | None) -> LinkCountPrior:
    if theta is not None and prior is not None:
        raise SettingsError("give theta or a prior, not both: theta=2 is prior=Penalty(2).")
    if theta is not None:
        return Penalty(theta)
    return prior if prior is not None else Overlap()


# --- starts and modes -------------------------------------------------------------------------


def _starts(problem: _Problem) -> list[tuple[Parameters, float | None]]:
    """Where to climb from: the prior's m and the level shares of all pairs as u."""
    priors = problem.structure.priors
    u = proportions(priors.pseudo_u + problem.structure.all_counts, priors.used)
    usual = Parameters(proportions(priors.alpha_m, priors.used), u, priors.used)
    if isinstance(problem.prior, Penalty):
        return [(usual, problem.prior.theta)]
    most = problem.pairs.scope.max_links
    costs = [problem.link_prior.cost(int(share * most)) for share in (0.9, 0.5, 0.1, 0.01)]
    return [(usual, cost) for cost in _few_above(problem, usual, costs)]


def _few_above(problem: _Problem, parameters: Parameters, costs: list[float]) -> list[float]:
    """The costs above which few pairs are expected to weigh, the last of them in any case."""
    if problem.pairs.n_pairs <= _MOST_AT_START:
        return costs
    w, n = expected_by_weight(problem.pairs, parameters)
    few = [cost for cost in costs if n[w > cost].sum() <= _MOST_AT_START]
    return few or costs[-1:]


def _learn_structure(
    problem: _Problem,
    mode: Mode,
    climb: Climb,
    wrong_fields: Sequence[Sequence[float]] | None = None,
) -> tuple[_Problem, Mode]:
    """Dependent fields, and a mode: learned from the certain links, of which there are then more.

    A record with a rival from its own household is certain only once it is known that households
    agree together: so that is learned in a few rounds.
    """
    certain, n_before = _certain(problem, mode), -1
    while len(certain) > n_before:
        n_before = len(certain)
        counts = problem.structure.all_counts
        others = other_counts(counts, count_levels(mode.linked.levels, counts.shape[1]))
        tree = learn_tree(problem.pairs, certain, others)
        structure = problem.structure.dependent(
            problem.pairs.fields, tree, mode.linked, wrong_fields
        )
        problem = replace(problem, structure=structure, passed={})
        mode = climb(problem, problem.structure.mode(mode.linked), mode.theta)
        certain = _certain(problem, mode)
    return problem, mode


def _certain(problem: _Problem, mode: Mode) -> Pairs:
    """The links of a mode that are certain: those known, and those far ahead of their rivals."""
    pairs, n_b = problem.pairs, problem.pairs.n_b
    listed, w = problem.candidates.above(mode.parameters, mode.theta - 1.0)
    linked = np.isin(listed.numbered(n_b), mode.linked.numbered(n_b), assume_unique=True)
    rival = ~linked & problem.known.leave_open(listed)
    best = []
    for rows, n in ((listed.a, pairs.n_a), (listed.b, n_b)):
        rivals = np.full(n, -np.inf)
        np.maximum.at(rivals, rows[rival], w[rival])
        best.append(rivals)
    weights = mode.weight_of(mode.linked.levels)
    weights[np.isin(mode.linked.a, problem.known.links.a)] = np.inf
    return certain_links(pairs, mode.linked, weights, (best[0], best[1]), mode.theta)


def _distinct(modes: Sequence[Mode]) -> list[Mode]:
    """Modes with different links, best first."""
    kept: list[Mode] = []
    for mode in sorted(modes, key=lambda mode: -mode.objective):
        if not any(_same_links(mode, other) for other in kept):
            kept.append(mode)
    return kept


def _same_links(x: Mode, y: Mode) -> bool:
    return x.n_links == y.n_links and all(
        np.array_equal(*sides)  # both rise by row of A
        for sides in ((x.linked.a, y.linked.a), (x.linked.b, y.linked.b))
    )


def _best(problem: _Problem, modes: Sequence[Mode]) -> PenalizedFit:
    distinct = _distinct(modes)
    top = distinct[0]
    values = {name: getattr(top, name) for name in Mode.__dataclass_fields__}
    return PenalizedFit(
        **values,
        modes=tuple(distinct),
        prior=problem.prior,
        searches=problem.candidates.searches,
        rivals=_rivals(problem, top),
    )


def _rivals(problem: _Problem, mode: Mode) -> Rivals:
    pairs = problem.pairs
    above, _ = problem.candidates.above(mode.parameters, mode.theta)
    code, linked = (p.numbered(pairs.n_b) for p in (above, mode.linked))
    rivals = above.take(np.flatnonzero(~np.isin(code, linked, assume_unique=True)))
    expected = expected_above(pairs, mode.parameters, mode.theta)
    return Rivals(rivals, expected, mode.n_links, tuple(f.name for f in pairs.fields))
