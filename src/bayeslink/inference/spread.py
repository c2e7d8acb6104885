"""Restricted sampling of very many candidates: parts of a sweep side by side, here or elsewhere.

At a fixed cost of a link, and given m and u, post-hoc blocks are independent. So each sweep is a
function over parts of them, done by threads or by other machines (`threads.Workers`). Blocks that
are drawn whole need nothing of the sweep before; what comes back of a part is how many links have
which pattern, and the links of its large blocks.

A `Penalty` is such a cost, and the draws are Gibbs draws. Under any other prior the sweep at cost c
is a proposal: it is reversible there, so it is accepted with probability
min(1, p(C') e^{c L'} / p(C) e^{c L}), which depends on the numbers of links L and L' alone and is
close to 1 where c is the prior's cost near L. While tuning, c follows L and all are accepted;
after, it stays.

Draws are made again at the end, part by part, from the same random numbers, for probabilities and
for the links of draws that are kept: nothing of the size of the candidates is moved in a sweep.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayeslink.errors import SettingsError
from bayeslink.inference.error_counts import ErrorPriors
from bayeslink.inference.layout import Layout
from bayeslink.inference.posterior import Draws
from bayeslink.kernels.parts import SINGLES, expect_part, next_parameters, odds_of, sweep_part
from bayeslink.kernels.sampling import Graph, Links, Prior, State
from bayeslink.pairs.source import Floats, Ints
from bayeslink.threads import Shared, Workers, check, run_pieces

SPREAD_FROM = 100_000_000  # candidates beyond which sweeps are in parts
_EDGES = 250_000  # of a part, about
_SECONDS = 1e-7  # of one CPU for an edge in a sweep

Rows = NDArray[np.int32]
Again = tuple[Floats, Floats, list[Rows]]  # of a chain: sums, squares of batches, linked edges


def in_parts(n_candidates: int, restricted: bool) -> bool:
    """Whether sweeps are in parts; refused where they would have to be and cannot."""
    if n_candidates <= SPREAD_FROM:
        return False
    if not restricted:
        raise SettingsError(
            f"there are {n_candidates:,} candidate pairs, and beyond {SPREAD_FROM:,} only these "
            "are sampled, not all pairs in scope. Use --restricted (restricted=True), a higher w0 "
            "or more fields, or link parts of the files that have no records in common."
        )
    return True


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked for."""

    seed: int
    tune: int
    draws: int
    kept_every: int
    batch: int  # draws whose mean is one of those that tell the Monte Carlo error

    @property
    def settled(self) -> int:
        """The sweep before the first that is not accepted in any case."""
        return max(self.tune, 1) - 1

    def keeps(self, draw: int) -> bool:
        """Whether the links of a draw are kept."""
        return (draw + 1) % self.kept_every == 0 or draw == self.draws - 1


@dataclass(frozen=True, slots=True)
class Sweep:
    """One sweep of one chain, as it was: enough to make it again."""

    state: State  # m and u before it
    cost: float
    accepted: bool
    n_links: int  # after it


class Part(Shared):
    """Some blocks of one kind, numbered from 0, and where they are among all edges."""

    def __init__(self, graph: Graph, first_edge: int, stream: int, n_columns: int) -> None:
        self.graph, self.first_edge, self.stream = graph, first_edge, stream
        self.n_columns = n_columns

    @property
    def n_rows(self) -> int:
        return len(self.graph.row_start) - 1

    def links(self, of_row: Rows) -> Links:
        """Room for its links; those of large blocks, which are looked at, are given."""
        return Links(
            np.zeros(len(self.graph.edge_pattern), np.bool_),
            np.zeros(len(self.graph.joint_start) - 1, np.int64),
            of_row.copy(),
            np.full(self.n_columns, -1, np.int32),
        )


def sample_parts(
    layout: Layout,
    prior: Prior,
    errors: ErrorPriors | None,
    starts: list[tuple[NDArray[np.bool_], State]],
    wanted: Wanted,
    workers: int | Workers,
    report: Callable[[int], None],
) -> list[Draws]:
    """The draws of every chain; `starts` has the links and parameters that each begins with."""
    for kernel in (odds_of, next_parameters, sweep_part, expect_part):
        kernel.compile()  # here, not in threads
    parts = _parts(layout)
    chains = [
        _Chain(layout, prior, errors, parts, i, start, wanted) for i, start in enumerate(starts)
    ]
    n_patterns = len(layout.vectors.levels)
    seconds = _SECONDS * len(layout.candidate) * len(chains)
    before: list[list[Rows]] = []
    for sweep in range(wanted.tune + wanted.draws):
        asked = [chain.ask(sweep) for chain in chains]
        pieces = [(k, [chain.large[k] for chain in chains]) for k in range(len(parts))]
        if sweep == wanted.settled:
            before = [large for _, large in pieces]

        def work(
            number: int, large: list[Rows], asked: Any = asked, sweep: int = sweep
        ) -> list[tuple[Ints, Rows]]:
            part, done = parts[number], []
            for chain, (odds, root, cost) in enumerate(asked):
                links, counts = part.links(large[chain]), np.zeros(n_patterns, np.int64)
                sweep_part(
                    wanted.seed, chain, sweep, part.stream, part.graph, odds, root, cost, links,
                    counts,
                )  # fmt: skip
                done.append((counts, links.of_row))
            return done

        found = run_pieces(work, pieces, workers, seconds, lambda done: done)
        for number, chain in enumerate(chains):
            chain.take(sweep, [done[number] for done in found])
        report(sweep + 1)
    histories = [chain.sweeps for chain in chains]
    again = _make_again(layout, prior, parts, histories, wanted)
    pieces = list(enumerate(before))
    made = run_pieces(again, pieces, workers, seconds * wanted.draws, lambda done: done)
    return [chain.result([done[number] for done in made]) for number, chain in enumerate(chains)]


def _make_again(
    layout: Layout, prior: Prior, parts: list[Part], histories: list[list[Sweep]], wanted: Wanted
) -> Callable[[int, list[Rows]], list[Again]]:
    """What goes through all draws of a part once more: probabilities, and links that are kept."""
    model, vectors, step_cost = layout.model, layout.vectors, prior.step_cost

    def again(number: int, large: list[Rows]) -> list[Again]:
        return [_one(parts[number], chain, rows) for chain, rows in enumerate(large)]

    def _one(part: Part, chain: int, rows: Rows) -> Again:
        links = part.links(rows)
        expected, total, batch, squares = np.zeros((4, len(links.linked)))
        counts, kept = np.zeros(len(vectors.levels), np.int64), []
        for sweep in range(wanted.settled, wanted.tune + wanted.draws):
            check()
            was = histories[chain][sweep]
            odds, root = odds_of(model, vectors, was.state)
            proposed = part.links(links.of_row)
            sweep_part(
                wanted.seed, chain, sweep, part.stream, part.graph, odds, root, was.cost, proposed,
                counts,
            )  # fmt: skip
            links = proposed if was.accepted else links
            draw = sweep - wanted.tune
            if draw < 0:
                continue
            expect_part(part.graph, links, odds, step_cost, was.n_links, expected)
            total += expected
            batch += expected
            if (draw + 1) % wanted.batch == 0:
                squares += (batch / wanted.batch) ** 2
                batch[:] = 0.0
            if wanted.keeps(draw):
                kept.append((np.flatnonzero(links.linked) + part.first_edge).astype(np.int32))
        return total, squares, kept

    return again


class _Chain:
    """One chain: m and u, the links by pattern, and those of large blocks."""

    def __init__(
        self,
        layout: Layout,
        prior: Prior,
        errors: ErrorPriors | None,
        parts: list[Part],
        number: int,
        start: tuple[NDArray[np.bool_], State],
        wanted: Wanted,
    ) -> None:
        linked, self.state = start
        self.layout, self.prior, self.errors = layout, prior, errors
        self.number, self.wanted = number, wanted
        self.large = [_of_row(part, linked) for part in parts]
        counts = np.bincount(layout.graph.edge_pattern[linked], minlength=len(layout.known))
        self.counts = counts + layout.known
        self.cost = self._cost_at(self.n_links)
        self.sweeps: list[Sweep] = []
        shape = (wanted.draws, *self.state.log_m.shape)
        self.m, self.u = np.zeros(shape), np.zeros(shape)
        self.densities = np.zeros(wanted.draws)
        self.states: list[State] = []  # after each draw

    @property
    def n_links(self) -> int:
        return int(self.counts.sum())

    def _cost_at(self, n_links: float) -> float:
        """The prior's cost of one more link, as a factor."""
        most = len(self.prior.log_prior) - 2
        return float(self.prior.step_cost[max(0, min(round(n_links), most))])

    def ask(self, sweep: int) -> tuple[Floats, Floats, float]:
        """Odds of patterns, their roots, and the cost of a link at which to sweep."""
        if sweep < self.wanted.tune:
            self.cost = self._cost_at(self.n_links)
        elif sweep == self.wanted.tune > 0:
            late = [s.n_links for s in self.sweeps[self.wanted.tune // 2 :]]
            self.cost = self._cost_at(float(np.mean(late)))
        odds, root = odds_of(self.layout.model, self.layout.vectors, self.state)
        return odds, root, self.cost

    def take(self, sweep: int, found: list[tuple[Ints, Rows]]) -> None:
        """Accept the links that were drawn, or not; then draw m and u, and keep the draw."""
        counts = self.layout.known + sum(counts for counts, _ in found)
        accepted = sweep <= self.wanted.settled or self._accepts(sweep, int(counts.sum()))
        if accepted:
            self.counts, self.large = counts, [rows for _, rows in found]
        before = State(*(part.copy() for part in self.state))
        self.sweeps.append(Sweep(before, self.cost, accepted, self.n_links))
        density = next_parameters(
            self.wanted.seed, self.number, sweep, self.layout.model, self.layout.vectors,
            self.counts, self.state,
        )  # fmt: skip
        draw = sweep - self.wanted.tune
        if draw < 0:
            return
        used = self.layout.model.used.copy()
        used[:, 0] = False
        self.m[draw][used] = np.exp(self.state.log_m[used])
        self.u[draw][used] = np.exp(self.state.log_u[used])
        self.densities[draw] = density + self.prior.log_prior[self.n_links]
        self.states.append(State(*(part.copy() for part in self.state)))

    def _accepts(self, sweep: int, n_links: int) -> bool:
        """Whether so many links are accepted, by how the prior differs from a fixed cost."""
        gain = self.prior.log_prior[n_links] - self.prior.log_prior[self.n_links]
        gain += (n_links - self.n_links) * math.log(self.cost)
        luck = np.random.default_rng([self.wanted.seed, self.number, sweep]).random()
        return bool(math.log(max(luck, 1e-300)) < gain)

    def result(self, made: list[Again]) -> Draws:
        """The chain's draws, with what was made again of all parts."""
        draws, batch = self.wanted.draws, self.wanted.batch
        kept = [np.concatenate(edges) for edges in zip(*(k for *_, k in made), strict=True)]
        _, _, *laws = (np.stack(parts) for parts in zip(*self.states, strict=True))
        return Draws(
            n_links=np.array([s.n_links for s in self.sweeps[self.wanted.tune :]]),
            log_posterior=self.densities,
            m=self.m,
            u=self.u,
            probability=np.concatenate([total for total, *_ in made]) / draws,
            batch_squares=np.concatenate([squares for _, squares, _ in made]),
            n_batches=draws // batch,
            kept=np.concatenate(kept).astype(np.int64),
            n_kept=np.array([len(edges) for edges in kept]),
            low=np.zeros((0, 2), np.int32),
            laws=(laws[0], laws[1], laws[2]),
            far=np.zeros((0, 4), np.int64),
            far_levels=self.layout.vectors.levels,
        )


def _of_row(part: Part, linked: NDArray[np.bool_]) -> Rows:
    """The edge of each row of a part's large blocks at the start, −1 for none."""
    of_row = np.full(part.n_rows, -1, np.int32)
    if part.n_rows:
        own = np.flatnonzero(linked[part.first_edge :][: len(part.graph.edge_pattern)])
        of_row[part.graph.edge_row[own]] = own
    return of_row


# --- parts ----------------------------------------------------------------------------------------


def _parts(layout: Layout) -> list[Part]:
    """All blocks, in parts of one kind each, in the order of their edges."""
    graph = layout.graph
    n_joint, n_large = len(graph.joint_start) - 1, len(graph.large_start) - 1
    parts = []
    for first, last in _cut(np.arange(graph.n_single + 1), SINGLES):
        stream = 1 + n_joint + n_large + first // SINGLES
        pattern = graph.edge_pattern[first:last]
        parts.append(Part(_graph(pattern, n_single=last - first), first, stream, 0))
    ones = np.concatenate([[0], np.cumsum(graph.set_size == 1)])  # sets of one edge: one an edge
    edge_start = graph.n_single + ones[graph.joint_start]
    for first, last in _cut(edge_start):
        low, high = (graph.joint_start[at] for at in (first, last))
        edge = edge_start[first]
        sets = _graph(
            graph.edge_pattern[edge : edge_start[last]],
            joint_start=graph.joint_start[first : last + 1] - low,
            set_parent=graph.set_parent[low:high].copy(),
            set_edge=np.where(
                graph.set_edge[low:high] < 0, -1, graph.set_edge[low:high] - edge
            ).astype(np.int32),
            set_size=graph.set_size[low:high].copy(),
        )
        parts.append(Part(sets, int(edge), 1 + first, 0))
    for first, last in _cut(graph.row_start[graph.large_start]):
        low, high = (graph.large_start[at] for at in (first, last))
        edge, end = (graph.row_start[at] for at in (low, high))
        column = graph.edge_column[edge:end]
        rows = _graph(
            graph.edge_pattern[edge:end],
            large_start=graph.large_start[first : last + 1] - low,
            row_start=graph.row_start[low : high + 1] - edge,
            edge_row=(graph.edge_row[edge:end] - low).astype(np.int32),
            edge_column=(column - column.min()).astype(np.int32),
        )
        n_columns = int(column.max() - column.min()) + 1
        parts.append(Part(rows, int(edge), 1 + n_joint + first, n_columns))
    return parts


def _cut(edge_start: Ints, step: int = 1) -> list[tuple[int, int]]:
    """Blocks first … last of each part, by where the edges of blocks begin; cut at every step."""
    n = len(edge_start) - 1
    cuts, first = [], 0
    while first < n:
        last = int(np.searchsorted(edge_start, edge_start[first] + _EDGES))
        last = min(n, max(first + step, last - last % step))
        cuts.append((first, last))
        first = last
    return cuts


def _graph(edge_pattern: Rows, **parts: Any) -> Graph:
    """A graph of one kind of block; what is not given is empty."""
    empty = {
        "n_single": 0,
        **{name: np.zeros(1, np.int64) for name in ("joint_start", "large_start", "row_start")},
        **{name: np.zeros(0, np.int32) for name in ("set_parent", "set_edge", "set_size")},
        **{name: np.zeros(0, np.int32) for name in ("edge_row", "edge_column")},
    }
    return Graph(edge_pattern=edge_pattern.copy(), **{**empty, **parts})
