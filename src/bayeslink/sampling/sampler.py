"""MCMC over post-hoc blocks and all other pairs in scope (Sections 4 and 5).

Given m and u: single-pair blocks are a Bernoulli draw, small blocks a joint Gibbs draw over all
their matchings, larger blocks locally balanced add/drop/switch moves and a Gibbs draw of each
row; links of pairs that are no candidates are born and die one at a time. Given C: draws of m and
u, u from all pairs in scope. Blocks are visited in turn, each given the number of links elsewhere,
so that `Penalty` and `Overlap` are both exact. Chains run in parallel.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayeslink.checkpoints import Arrays, Checkpoints
from bayeslink.distinct import distinct
from bayeslink.errors import SettingsError
from bayeslink.kernels import compile_modules
from bayeslink.kernels.births import BARRED, Ended, Far, Loose, Low
from bayeslink.kernels.matchings import LONGEST, greedy_matching
from bayeslink.kernels.parameters import LARGEST, State
from bayeslink.kernels.sampling import (
    Graph,
    Links,
    Log,
    Output,
    Prior,
    Unlisted,
    run_sweeps,
)
from bayeslink.linkage.posthoc import Blocks, regrouped
from bayeslink.linkage.priors import LinkCountPrior, Overlap
from bayeslink.memory import machine_memory
from bayeslink.model.error_counts import error_mode
from bayeslink.model.weights import other_counts, proportions
from bayeslink.pairs.hashing import mix64
from bayeslink.pairs.source import Ints, Pairs, count_levels
from bayeslink.pairs.vectors import distinct_vectors
from bayeslink.sampling.chain_state import Kept, restore, written
from bayeslink.sampling.layout import Layout, both_ends, describe_vectors
from bayeslink.sampling.posterior import Draws, Posterior
from bayeslink.sampling.unlisted import PART, FarPairs
from bayeslink.threads import run_all, slices

MOST_CHAINS = 1000
FASTEST = 1e-5  # seconds that a sweep takes at least
MOST_DAYS = 30
KEPT_LINKS = 20_000_000  # link entries kept over all draws; beyond it, draws of links are thinned
_BATCHES = 20  # per chain, for the Monte Carlo error of link probabilities
_LOGGED = 1_000_000  # links of draws that kernels put down before they are taken, about


def sample(
    blocks: Blocks,
    *,
    prior: LinkCountPrior | None = None,
    restricted: bool = False,
    draws: int = 1000,
    tune: int = 500,
    chains: int = 4,
    seed: int = 1,
    threads: int | None = None,
    progress: Callable[[str], None] = lambda message: None,
    checkpoints: Checkpoints | None = None,
) -> Posterior:
    """Draw from the posterior of links, m and u, over all pairs in scope.

    Parameters
    ----------
    prior
        `Penalty(theta)` or `Overlap(alpha, beta)`; `Overlap(1, 1)` unless given.
    restricted
        Only candidate pairs, those above w0, may link: the paper's restricted MCMC.
    draws, tune
        Sweeps of each chain that are kept, and that come before and are not.
    chains
        The first starts from the empty matching, the second from the penalized-likelihood
        estimate, the others from random matchings.
    seed
        Same seed, same draws, whatever the number of threads and the order of rows.
    checkpoints
        Where chains are written down now and then, and go on from where they were.
    """
    check_sampling(draws=draws, tune=tune, chains=chains, seed=seed, threads=threads)
    prior = prior if prior is not None else Overlap()
    began = time.perf_counter()
    blocks = regrouped(blocks)  # those of another posterior have pairs in none
    layout = Layout.of(blocks, restricted)
    far = None if restricted else FarPairs.of(blocks, seed)
    link_prior = _prior_table(blocks, layout, prior, restricted)
    kept_every = max(1, math.ceil(draws * chains * max(1, len(blocks.start)) / KEPT_LINKS))
    steps = [0] * chains

    def chain(number: int) -> Draws:
        def report(done: int) -> None:
            steps[number] = done
            progress(f"sampling: {sum(steps) / chains / (tune + draws):.0%}")

        start = _start(blocks, layout, number, seed)
        this = _Chain(blocks, layout, far, link_prior, start, number, seed, draws)
        return this.run(tune, draws, kept_every, report, checkpoints)

    # Compiled here, where Ctrl-C can stop it, not in threads.
    compile_modules(["sampling", "matchings"])
    tasks = [partial(chain, number) for number in range(chains)]
    results = run_all(tasks, threads or os.cpu_count() or 1)
    return Posterior.of(
        blocks,
        prior,
        results,
        candidate_of_edge=layout.candidate,
        low=layout.low,
        restricted=restricted,
        kept_every=kept_every,
        seed=seed,
        tune=tune,
        seconds=time.perf_counter() - began,
        kinds=layout.kinds,
    )


def check_sampling(
    *,
    draws: int,
    tune: int,
    chains: int,
    seed: int,
    threads: int | None,
    levels: int = 0,
    budget: int | None = None,
) -> None:
    """Refuse settings of `sample` that make no sense, or that no machine has time or room for.

    `levels` are those of all fields together, m and u of which are kept for every draw.
    """
    least = {"draws": (draws, 1), "tune": (tune, 0), "chains": (chains, 1), "seed": (seed, 0)}
    if threads is not None:
        least["threads"] = (threads, 1)
    for name, (value, lowest) in least.items():
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < lowest:
            raise SettingsError(f"{name} must be a whole number from {lowest} up, got {value!r}.")
    if seed >= 2**63:
        raise SettingsError(f"seed must be below 2**63, got {seed!r}.")
    if chains > MOST_CHAINS:
        raise SettingsError(f"chains must be at most {MOST_CHAINS:,}, got {chains:,}.")
    days = (draws + tune) * chains * FASTEST / 86400
    size = draws * chains * (2 * levels + 4) * 8 * 3  # draws, their summaries, their table
    room = max(2e9, machine_memory() if budget is None else budget)
    if days > MOST_DAYS or size > room / 2:
        raise SettingsError(
            f"{chains:,} chains of {draws:,} draws after {tune:,} would take at least "
            f"{size / 1e9:,.3g} GB and {days:,.2g} days. Ask for fewer: draws=1000 and tune=500 "
            "are usual (--draws, --tune)."
        )


# --- the prior ----------------------------------------------------------------------------------


def _prior_table(blocks: Blocks, layout: Layout, prior: LinkCountPrior, restricted: bool) -> Prior:
    """log p(C) by number of links, and the cost of one more, exp(−Δ), up to the most possible."""
    most = blocks.pairs.scope.max_links
    if restricted:
        records = (len(distinct(side)) for side in (blocks.candidates.a, blocks.candidates.b))
        most = min(most, min(records) + layout.n_known)
    log_prior = prior.on(blocks.pairs.scope).log_prior(np.arange(most + 1))
    cost = np.clip(-np.diff(log_prior), -LARGEST, LARGEST)
    # A listed matching may hold barred pairs, and so count more links than there can be.
    beyond = np.full(1 + LONGEST, np.inf)
    return Prior(log_prior, np.append(np.exp(cost), beyond))


# --- chains -----------------------------------------------------------------------------------


def _start(blocks: Blocks, layout: Layout, chain: int, seed: int) -> NDArray[np.bool_]:
    """Edges linked at the start: none, the estimate's, or a random matching."""
    edges = layout.candidate
    if chain == 0:
        return np.zeros(len(edges), bool)
    if chain == 1:
        n_b = blocks.pairs.n_b
        return np.isin(blocks.candidates.numbered(n_b)[edges], blocks.start.numbered(n_b))
    a, b = blocks.candidates.a[edges], blocks.candidates.b[edges]
    key = mix64(mix64(np.array([seed], np.uint64)) + np.uint64(chain))
    luck = mix64(np.arange(len(edges), dtype=np.uint64) + key)
    return greedy_matching(np.argsort(luck), a, b, blocks.pairs.n_a, blocks.pairs.n_b)


class _Other(NamedTuple):
    edge_pattern: NDArray[np.int32]
    taken: NDArray[np.bool_]
    tally: NDArray[np.int32]


class _Chain:
    """One chain: its state, and what it keeps of the draws."""

    def __init__(
        self,
        blocks: Blocks,
        layout: Layout,
        far: FarPairs | None,
        prior: Prior,
        linked: NDArray[np.bool_],
        number: int,
        seed: int,
        draws: int,
    ) -> None:
        self.blocks, self.layout, self.far, self.prior = blocks, layout, far, prior
        self.number, self.seed = number, seed
        self.vectors = layout.vectors
        self.state = _parameters(blocks, layout, linked)
        self.graph = layout.graph._replace(edge_pattern=layout.graph.edge_pattern.copy())
        self.links = _links(layout, linked)
        self.n_links = int(linked.sum()) + layout.n_known
        self.done = 0  # sweeps
        n_edges, shape = len(linked), (draws, *self.state.log_m.shape)
        self.out = Output(
            n_links=np.zeros(draws, np.int64),
            log_posterior=np.zeros(draws),
            m=np.zeros(shape),
            u=np.zeros(shape),
            log_h=np.zeros((draws, *self.state.log_h.shape)),
            log_r=np.zeros((draws, *self.state.log_r.shape)),
            log_level=np.zeros((draws, *self.state.log_level.shape)),
            probability=np.zeros(n_edges),
            batch=np.zeros(n_edges),
            batch_squares=np.zeros(n_edges),
            batch_length=max(1, draws // _BATCHES),
        )
        self.unlisted = self._unlisted()
        self.ended: list[Ints] = []  # far links: row of A, row of B, pattern, draws
        self._parts = range(0)  # whose proposals there are
        self._proposed: Far | None = None

    def _unlisted(self) -> Unlisted:
        pairs, low, records = self.blocks.pairs, self.layout.low, self.layout.records
        most = pairs.scope.max_links if len(low) or self.far is not None else 0
        n_ended = self.far.a_sweep * PART if self.far is not None else 0
        return Unlisted(
            records=records._replace(taken=np.zeros(len(records.taken), np.bool_)),
            low=Low(
                pairs=self.layout.low_ends,
                start=self.layout.low_start,
                cost=math.exp(min(max(self.blocks.theta, -LARGEST), LARGEST)),
                most=max(200, len(self.graph.edge_pattern) // 4),
                tally=np.zeros((len(low), 2), np.int32),
            ),
            links_low=_no_links(most),
            links_far=_no_links(most if self.far is not None else 0),
            ended=Ended(np.zeros((n_ended, 4), np.int64), np.zeros(1, np.int64)),
        )

    def run(
        self,
        tune: int,
        draws: int,
        kept_every: int,
        report: Callable[[int], None],
        checkpoints: Checkpoints | None = None,
    ) -> Draws:
        """Tune, then draw, keeping the links of every kept_every-th draw."""
        kept, log = Kept(), self._log(kept_every)
        if checkpoints and (found := checkpoints.load(f"chain-{self.number}")):
            kept = self._restore(found)
        began = since = time.monotonic()

        def write_down() -> None:
            assert checkpoints is not None
            checkpoints.save(f"chain-{self.number}", self._written(kept))

        for end in (tune, tune + draws):
            for first, last in slices(end - self.done):
                self._sweep(last - first, tune, log, kept)
                report(self.done)
                if checkpoints is not None and checkpoints.due(since):
                    write_down()
                    since = time.monotonic()
        if checkpoints is not None and checkpoints.due(began):
            write_down()
        self._close(draws)
        out = self.out
        return Draws(
            n_links=out.n_links,
            log_posterior=out.log_posterior,
            m=out.m,
            u=out.u,
            probability=out.probability / draws,
            batch_squares=out.batch_squares,
            n_batches=draws // out.batch_length,
            kept=np.concatenate(kept.links),
            n_kept=np.concatenate(kept.n_links),
            low=self.unlisted.low.tally,
            laws=(out.log_h, out.log_r, out.log_level),
            far=np.concatenate([np.zeros((0, 4), np.int64), *self.ended]),
            far_levels=self.vectors.levels,
        )

    def _log(self, kept_every: int) -> Log:
        n_a, n_b = self.blocks.pairs.n_a, self.blocks.pairs.n_b
        most = max(1, min(n_a, n_b))  # links of a draw
        draws = 2 + min(PART, _LOGGED // most)
        links, n_links = np.zeros(draws * most, np.int64), np.zeros(draws, np.int64)
        return Log(links, n_links, np.zeros(2, np.int64), kept_every, n_a, n_b)

    def _members(self) -> dict[str, Any]:
        """All that sweeps change, but for what follows from it."""
        whole = self.unlisted
        changed = {"taken": whole.records.taken, "tally": whole.low.tally}
        return {
            "state": self.state,
            "links": self.links,
            "out": self.out,
            "links_low": whole.links_low,
            "links_far": whole.links_far,
            "other": _Other(edge_pattern=self.graph.edge_pattern, **changed),
        }

    def _written(self, kept: Kept) -> Arrays:
        numbers = np.array([self.done, self.n_links], np.int64)
        patterns = {"numbers": numbers, "levels": self.vectors.levels}
        return {**written(self._members(), kept, self.ended), **patterns}

    def _restore(self, found: Arrays) -> Kept:
        self.done, self.n_links = (int(n) for n in found["numbers"])
        self.vectors = describe_vectors(self.blocks.structure, found["levels"])
        low = self.unlisted.low
        start = np.full(len(self.vectors.levels) + 1, low.start[-1])
        start[: len(low.start)] = low.start
        self.unlisted = self.unlisted._replace(low=low._replace(start=start))
        kept, self.ended = restore(found, self._members())
        return kept

    def _sweep(self, n: int, tune: int, log: Log, kept: Kept) -> None:
        """Some sweeps, all of them after the first `tune` or none."""
        last = self.done + n
        while self.done < last:
            size = min(last - self.done, PART - self.done % PART)
            draw = self.done - tune if self.done >= tune else -1
            if draw >= 0:  # as many as the log has room for; the last draw may be one more
                size = min(size, (len(log.n_links) - 1) * log.every)
            # Proposals may come with patterns of their own.
            far = self._proposals(size, tune + len(self.out.n_links))
            given = (
                self.vectors, self.graph, self.layout.model, self.prior, self.state,
                self._known(), self.links, self.unlisted, far, self.n_links, self.out, log,
            )  # fmt: skip
            self.n_links = int(run_sweeps(self.seed, self.number, self.done, size, draw, *given))
            self.done += size
            self._gather()
            kept.take(log)

    def _known(self) -> Ints:
        known = np.zeros(len(self.vectors.levels), np.int64)
        known[: len(self.layout.known)] = self.layout.known
        return known

    def _proposals(self, size: int, in_all: int) -> Far:
        """Those of the next sweeps, which are of one part; `in_all`: sweeps of the chain."""
        if self.far is None:
            return Far(np.zeros((0, 2), np.int32), np.zeros(0, np.int32), np.zeros(0), 0)
        part = self.done // PART
        if part not in self._parts:
            self._parts = self.far.parts_with(part, in_all)
            pairs, q = self.far.propose(self.seed, self.number, self._parts)
            pattern = self._patterns_of(pairs)
            pattern[np.isinf(q)] = BARRED
            ends = both_ends(pairs, self.blocks.pairs.n_a)
            self._proposed = Far(ends, pattern, q, self.far.a_sweep)
        assert self._proposed is not None
        whole, n, at = self._proposed, self.far.a_sweep, self.done - self._parts.start * PART
        own = slice(at * n, (at + size) * n)
        return Far(whole.pairs[own], whole.pattern[own], whole.q[own], n)

    def _patterns_of(self, pairs: Pairs) -> NDArray[np.int32]:
        """Number of each pair's pattern; new ones come after those there are."""
        vectors, _, which = distinct_vectors(pairs.levels)
        n = len(self.vectors.levels)
        every, first, number = distinct_vectors(np.concatenate([self.vectors.levels[1:], vectors]))
        new = np.sort(first[first >= n - 1])
        if len(new):
            levels = np.concatenate([self.vectors.levels, vectors[new - (n - 1)]])
            self.vectors = describe_vectors(self.blocks.structure, levels)
        position = np.empty(len(every), np.int64)
        position[number[: n - 1]] = np.arange(1, n)
        position[number[new]] = n + np.arange(len(new))
        low = self.unlisted.low
        start = np.full(n + len(new) + 1, low.start[-1])
        start[: len(low.start)] = low.start
        self.unlisted = self.unlisted._replace(low=low._replace(start=start))
        return position[number[n - 1 :]][which].astype(np.int32)

    def _gather(self) -> None:
        """Take what the kernels have put down about far links that ended."""
        ended = self.unlisted.ended
        if ended.size[0]:
            self._keep(ended.links[: ended.size[0]])
            ended.size[0] = 0

    def _keep(self, links: Ints) -> None:
        rows = links - np.array([0, self.blocks.pairs.n_a, 0, 0])
        self.ended.append(rows)

    def _close(self, draws: int) -> None:
        """Count the links that still hold, up to the last draw."""
        low, far = self.unlisted.links_low, self.unlisted.links_far
        for loose in (low, far):
            links = loose.links[: loose.size[0]]
            lived = draws - np.maximum(links[:, 4], 0)
            links, lived = links[lived > 0], lived[lived > 0]
            if loose is low:
                self.unlisted.low.tally[links[:, 3], 0] += lived.astype(np.int32)
                self.unlisted.low.tally[links[:, 3], 1] += 1
            else:
                self._keep(np.column_stack([links[:, :3], lived]))


def _no_links(most: int) -> Loose:
    return Loose(np.zeros((most, 5), np.int64), np.zeros(most), np.zeros(1, np.int64))


def _parameters(blocks: Blocks, layout: Layout, linked: NDArray[np.bool_]) -> State:
    """m and u to start from: their means given the links."""
    model, graph, vectors = layout.model, layout.graph, layout.vectors
    counts = layout.known + np.bincount(graph.edge_pattern[linked], minlength=len(vectors.levels))
    levels = count_levels(np.repeat(vectors.levels, counts, axis=0), model.all_counts.shape[1])
    log_m, log_u = (
        np.log(np.where(model.used, proportions(alpha + n, model.used), 1.0))
        for alpha, n in (
            (model.alpha_m, levels),
            (model.alpha_u, other_counts(model.all_counts, levels)),
        )
    )
    errors = blocks.structure.errors
    if errors is None:
        no = np.zeros((len(log_m), 1))
        return State(log_m, log_u, no, np.zeros(len(log_m)), np.zeros(log_m.shape))
    law = error_mode(errors, vectors.levels[1:], counts[1:])
    return State(log_m, log_u, law.log_h, law.log_r, law.log_level)


def _links(layout: Layout, linked: NDArray[np.bool_]) -> Links:
    """C in the forms in which the kernels want it."""
    graph = layout.graph
    of_row = np.full(len(graph.row_start) - 1, -1, np.int32)
    of_column = np.full(layout.n_columns, -1, np.int32)
    large = np.flatnonzero(linked)
    large = large[large >= graph.row_start[0]]
    of_row[graph.edge_row[large]] = large
    of_column[graph.edge_column[large]] = large
    return Links(linked.copy(), _chosen_sets(graph, linked), of_row, of_column)


def _chosen_sets(graph: Graph, linked: NDArray[np.bool_]) -> Ints:
    """Which listed matching of each joint block holds: the largest whose edges are all linked."""
    n_sets = np.diff(graph.joint_start)
    if not len(n_sets):
        return np.zeros(0, np.int64)
    block_start = np.repeat(graph.joint_start[:-1], n_sets)
    parent = block_start + graph.set_parent
    holds = np.append(linked, True)[graph.set_edge]  # −1, of the empty one, is the last
    for size in range(1, int(graph.set_size.max()) + 1):
        at = np.flatnonzero(graph.set_size == size)
        holds[at] &= holds[parent[at]]
    score = np.where(holds, graph.set_size, -1)
    at = np.flatnonzero(
        score == np.repeat(np.maximum.reduceat(score, graph.joint_start[:-1]), n_sets)
    )
    first = np.unique(block_start[at], return_index=True)[1]
    return (at[first] - graph.joint_start[:-1]).astype(np.int64)
