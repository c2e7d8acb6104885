"""One chain over matchings: who may link whom where neither file has a person twice (Section 4).

Given the odds of patterns: single-pair blocks are a Bernoulli draw, small blocks a joint Gibbs draw
over all their matchings, larger blocks locally balanced add/drop/switch moves and a Gibbs draw of
each row; links of pairs that are no candidates are born and die one at a time. `sampling.chains`
drives it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayeslink.checkpoints import Arrays
from bayeslink.kernels.births import BARRED, Ended, Far, Loose, Low
from bayeslink.kernels.parameters import LARGEST
from bayeslink.kernels.sampling import Graph, Links, Log, Output, Prior, Unlisted, run_sweeps
from bayeslink.linkage.posthoc import Blocks
from bayeslink.model.kernel_input import describe_vectors, start_parameters
from bayeslink.pairs.source import Ints, Pairs
from bayeslink.pairs.vectors import distinct_vectors
from bayeslink.sampling.chain_state import Kept, restore, written
from bayeslink.sampling.layout import Layout, both_ends
from bayeslink.sampling.posterior import Draws
from bayeslink.sampling.unlisted import PART, FarPairs

_BATCHES = 20  # per chain, for the Monte Carlo error of link probabilities
_LOGGED = 1_000_000  # links of draws that kernels put down before they are taken, about


class _Other(NamedTuple):
    edge_pattern: NDArray[np.int32]
    taken: NDArray[np.bool_]
    tally: NDArray[np.int32]


class MatchingChain:
    """One chain over the matchings of two files: its state, and what it keeps of the draws."""

    def __init__(
        self,
        blocks: Blocks,
        layout: Layout,
        far: FarPairs | None,
        prior: Prior,
        linked: NDArray[np.bool_],
        number: int,
        seed: int,
        tune: int,
        draws: int,
        kept_every: int,
    ) -> None:
        self.blocks, self.layout, self.far, self.prior = blocks, layout, far, prior
        self.number, self.seed, self.n_sweeps = number, seed, tune + draws
        self.vectors = layout.vectors
        counts = np.bincount(
            layout.graph.edge_pattern[linked], minlength=len(layout.vectors.levels)
        )
        counts += layout.known
        self.state = start_parameters(blocks.structure, layout.model, layout.vectors, counts)
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
        self.kept, self.log = Kept(), self._log(kept_every)
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

    def advance(self, n: int, draw: int) -> None:
        """Sweeps, recorded from draw `draw` on unless that is negative."""
        last = self.done + n
        while self.done < last:
            size = min(last - self.done, PART - self.done % PART)
            if draw >= 0:  # as many as the log has room for; the last draw may be one more
                size = min(size, (len(self.log.n_links) - 1) * self.log.every)
            # Proposals may come with patterns of their own.
            far = self._proposals(size)
            given = (
                self.vectors, self.graph, self.layout.model, self.prior, self.state, self._known(),
                self.links, self.unlisted, far, self.n_links, self.out, self.log,
            )  # fmt: skip
            self.n_links = int(run_sweeps(self.seed, self.number, self.done, size, draw, *given))
            self.done += size
            draw += size if draw >= 0 else 0
            self._gather()
            self.kept.take(self.log)

    def result(self) -> Draws:
        """What there is to know of the draws, once all are made."""
        out, draws = self.out, len(self.out.n_links)
        self._close(draws)
        return Draws(
            n_links=out.n_links,
            log_posterior=out.log_posterior,
            m=out.m,
            u=out.u,
            probability=out.probability / draws,
            batch_squares=out.batch_squares,
            n_batches=draws // out.batch_length,
            kept=np.concatenate(self.kept.links),
            n_kept=np.concatenate(self.kept.n_links),
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

    def written(self) -> Arrays:
        """All that a checkpoint holds."""
        numbers = np.array([self.done, self.n_links], np.int64)
        patterns = {"numbers": numbers, "levels": self.vectors.levels}
        return {**written(self._members(), self.kept, self.ended), **patterns}

    def restore(self, found: Arrays) -> None:
        """Go on from a checkpoint."""
        self.done, self.n_links = (int(n) for n in found["numbers"])
        self.vectors = describe_vectors(self.blocks.structure, found["levels"])
        low = self.unlisted.low
        start = np.full(len(self.vectors.levels) + 1, low.start[-1])
        start[: len(low.start)] = low.start
        self.unlisted = self.unlisted._replace(low=low._replace(start=start))
        self.kept, self.ended = restore(found, self._members())

    def _known(self) -> Ints:
        known = np.zeros(len(self.vectors.levels), np.int64)
        known[: len(self.layout.known)] = self.layout.known
        return known

    def _proposals(self, size: int) -> Far:
        """Those of the next sweeps, which are of one part."""
        if self.far is None:
            return Far(np.zeros((0, 2), np.int32), np.zeros(0, np.int32), np.zeros(0), 0)
        part = self.done // PART
        if part not in self._parts:
            self._parts = self.far.parts_with(part, self.n_sweeps)
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
