"""MCMC over the forests of files with duplicates: the linkage state beside the matching.

Candidate pairs are those above w0; all other pairs are born and die as edges. Records are numbered
by their tie keys, so that the order of rows does not change the draws.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from bayeslink.checkpoints import Arrays, Checkpoints
from bayeslink.kernels import compile_modules
from bayeslink.kernels.births import BARRED, Far
from bayeslink.kernels.forest import run_forest
from bayeslink.kernels.forest_records import Output
from bayeslink.kernels.trees import Candidates, Forest, Prior, Space
from bayeslink.linkage.forest import ForestFit
from bayeslink.linkage.forest_modes import known_groups
from bayeslink.linkage.partitions import PartitionPrior, sets_of
from bayeslink.linkage.pointers import components, log_rho_grid
from bayeslink.model.kernel_input import describe_vectors, kernel_model, start_parameters
from bayeslink.model.structure import Structure
from bayeslink.pairs.hashing import mix64
from bayeslink.pairs.source import Floats, Ints, Pairs, PairSource
from bayeslink.pairs.vectors import distinct_vectors
from bayeslink.sampling.chain_state import arrays_of, fill
from bayeslink.sampling.chains import check_sampling, run_chains
from bayeslink.sampling.clusters import ClusterPosterior, ForestDraws
from bayeslink.sampling.unlisted import PART, FarPairs

KEPT = 20_000_000  # records of kept draws, over all draws; beyond it, draws are thinned
SIZES_TOLD = 20  # cluster sizes that are counted one by one in each draw
ONE_BLOCK = 20_000  # records up to which all are one block
A_BLOCK = 2_000  # records of each, about


@dataclass(frozen=True, slots=True)
class ForestLayout:
    """One file's candidate pairs, records in order of their tie keys, as the kernels want them."""

    pairs: PairSource
    structure: Structure
    listed: Pairs  # candidates: pairs above w0 and all within groups of known links, rows as given
    candidates: Candidates
    patterns: NDArray[np.uint8]  # the first is no pair's
    pattern: Ints  # of each listed pair
    rank: NDArray[np.int32]  # of each row
    prior: PartitionPrior  # records in order of their keys

    @classmethod
    def of(
        cls,
        pairs: PairSource,
        structure: Structure,
        listed: Pairs,
        together: Pairs,
        apart: Pairs,
        prior: PartitionPrior,
    ) -> ForestLayout:
        n = pairs.n_a
        within = known_groups(pairs, together)
        listed = _without(listed, apart, n)
        new = ~np.isin(within.numbered(n), listed.numbered(n))
        listed = listed.with_more(within.take(np.flatnonzero(new)))
        rank, blocks = _in_blocks(pairs.tie_keys[0], listed)
        levels, _, pattern = distinct_vectors(listed.levels)
        a, b = rank[listed.a], rank[listed.b]
        start, neighbour, order = _both_ways(a, b, n)
        group_start, group, _ = _both_ways(rank[within.a], rank[within.b], n)
        apart_start, others, _ = _both_ways(rank[apart.a], rank[apart.b], n)
        pattern = pattern + 1
        candidates = Candidates(
            start=start,
            neighbour=neighbour,
            pattern=np.concatenate([pattern, pattern])[order].astype(np.int32),
            group_start=group_start,
            group=group,
            apart_start=apart_start,
            apart=others,
            blocks=blocks,
        )
        no_pair = np.zeros((1, levels.shape[1]), np.uint8)
        patterns = np.concatenate([no_pair, levels])
        prior = replace(prior, file=prior.file[np.argsort(rank)])
        return cls(pairs, structure, listed, candidates, patterns, pattern, rank, prior)


def _in_blocks(keys: Any, listed: Pairs) -> tuple[NDArray[np.int32], Ints]:
    """The number of each record, and where blocks of them begin: no listed pair leaves one.

    A sweep goes through blocks in turn, so that it works in the processor's cache. Few records are
    one block, numbered by their keys.
    """
    n = len(keys)
    rank = np.argsort(np.argsort(keys, kind="stable")).astype(np.int32)
    if n <= ONE_BLOCK:
        return rank, np.array([0, n])
    label = components(listed.a, listed.b, n)
    least = np.full(n, n, np.int32)
    np.minimum.at(least, label, rank)
    alone = np.bincount(label)[label] == 1
    order = np.lexsort((rank, least[label], alone))
    ends = np.append(np.flatnonzero(np.diff(label[order])) + 1, n)
    later = np.append(True, np.diff(ends // A_BLOCK) > 0)  # the first end in each stretch
    rank[order] = np.arange(n, dtype=np.int32)
    return rank, np.unique(np.concatenate([[0], ends[later], [n]]))


def _without(listed: Pairs, apart: Pairs, n: int) -> Pairs:
    return listed.take(np.flatnonzero(~np.isin(listed.numbered(n), apart.numbered(n))))


def _both_ways(a: Any, b: Any, n: int) -> tuple[Ints, NDArray[np.int32], Ints]:
    """Where each record's neighbours begin, the neighbours, and which of (pairs, pairs) each is."""
    own, other = np.concatenate([a, b]), np.concatenate([b, a])
    order = np.lexsort((other, own))
    start = np.concatenate([[0], np.cumsum(np.bincount(own, minlength=n))]).astype(np.int64)
    return start, other[order].astype(np.int32), order


class ForestChain:
    """One chain over forests: its state, and what it keeps of the draws."""

    def __init__(
        self,
        layout: ForestLayout,
        far: FarPairs | None,
        grid: Floats,
        start: NDArray[np.int32],
        log_rho: float,
        number: int,
        seed: int,
        tune: int,
        draws: int,
        kept_every: int,
    ) -> None:
        """`start`: the parent of each record, −1 of an original, by rank."""
        self.layout, self.far, self.number, self.seed = layout, far, number, seed
        self.n_sweeps, self.done = tune + draws, 0
        self.vectors = describe_vectors(layout.structure, layout.patterns)
        nothing = layout.listed.take(np.arange(0))
        self.model = kernel_model(layout.structure, (layout.listed, nothing, nothing))
        self.prior = _prior(layout.prior, grid)
        self.forest = _forest(layout, start, log_rho)
        edges = self.forest.pattern[self.forest.parent >= 0]
        counts = np.bincount(edges, minlength=len(layout.patterns))
        self.state = start_parameters(layout.structure, self.model, self.vectors, counts)
        self.space = _space(layout, len(grid))
        n, shape = len(layout.rank), (draws, *self.state.log_m.shape)
        self.out = Output(
            n_entities=np.zeros(draws, np.int64),
            log_posterior=np.zeros(draws),
            log_rho=np.zeros(draws),
            of_size=np.zeros((draws, SIZES_TOLD + 2), np.int64),
            in_files=np.zeros((draws, len(layout.prior.alpha)), np.int64),
            m=np.zeros(shape),
            u=np.zeros(shape),
            log_h=np.zeros((draws, *self.state.log_h.shape)),
            log_r=np.zeros((draws, *self.state.log_r.shape)),
            log_level=np.zeros((draws, *self.state.log_level.shape)),
            kept=np.zeros((draws // kept_every, n), np.int32),
            every=kept_every,
        )
        self._part = -1
        self._proposed = _no_proposals()

    def advance(self, n: int, draw: int) -> None:
        """Sweeps, recorded from draw `draw` on unless that is negative."""
        last = self.done + n
        while self.done < last:
            size = min(last - self.done, PART - self.done % PART)
            far = self._proposals(size)
            run_forest(
                self.seed, self.number, self.done, size, draw, self.vectors,
                self.layout.candidates, self.model, self.prior, self.state, self.forest,
                self.space, far, self.out,
            )  # fmt: skip
            self.done += size
            draw += size if draw >= 0 else 0

    def _members(self) -> dict[str, Any]:
        return {"state": self.state, "forest": self.forest, "out": self.out}

    def written(self) -> Arrays:
        """All that a checkpoint holds."""
        numbers = {"done": np.array([self.done]), "levels": self.vectors.levels}
        return {**arrays_of(self._members()), **numbers}

    def restore(self, found: Arrays) -> None:
        """Go on from a checkpoint."""
        self.done = int(found["done"][0])
        self.vectors = describe_vectors(self.layout.structure, found["levels"])
        fill(self._members(), found)

    def result(self) -> ForestDraws:
        """What there is to know of the draws, once all are made."""
        out = self.out
        return ForestDraws(
            n_entities=out.n_entities,
            log_posterior=out.log_posterior,
            rho=np.exp(out.log_rho),
            of_size=out.of_size,
            in_files=out.in_files,
            m=out.m,
            u=out.u,
            laws=(out.log_h, out.log_r, out.log_level),
            kept=_by_row(out.kept, self.layout.rank),
        )

    def _proposals(self, size: int) -> Far:
        """Those of the next sweeps, which are of one part."""
        if self.far is None:
            return self._proposed
        part, n = self.done // PART, self.far.a_sweep
        if part != self._part:
            pairs, q = self.far.propose(self.seed, self.number, range(part, part + 1))
            pattern = self._patterns_of(pairs)
            pattern[np.isinf(q)] = BARRED
            rank = self.layout.rank
            ends = np.sort(np.column_stack([rank[pairs.a], rank[pairs.b]]), axis=1)
            self._part, self._proposed = part, Far(ends, pattern, q, n)
        at = self.done - part * PART
        own, whole = slice(at * n, (at + size) * n), self._proposed
        return Far(whole.pairs[own], whole.pattern[own], whole.q[own], n)

    def _patterns_of(self, pairs: Pairs) -> NDArray[np.int32]:
        """Number of each pair's pattern; new ones come after those there are."""
        number, known = with_patterns(pairs.levels, self.vectors.levels)
        if len(known) > len(self.vectors.levels):
            self.vectors = describe_vectors(self.layout.structure, known)
        return number


def with_patterns(
    levels: NDArray[np.uint8], known: NDArray[np.uint8]
) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """The number of each row among known patterns, and these with the new ones after them.

    The first of the known is no pair's.
    """
    vectors, _, which = distinct_vectors(levels)
    n = len(known)
    every, first, number = distinct_vectors(np.concatenate([known[1:], vectors]))
    new = np.sort(first[first >= n - 1])
    position = np.empty(len(every), np.int64)
    position[number[: n - 1]] = np.arange(1, n)
    position[number[new]] = n + np.arange(len(new))
    more = np.concatenate([known, vectors[new - (n - 1)]])
    return position[number[n - 1 :]][which].astype(np.int32), more


def _forest(layout: ForestLayout, parent: NDArray[np.int32], log_rho: float) -> Forest:
    """The forest of these parents, in the form that the kernels want."""
    n = len(parent)
    c = layout.candidates
    own = np.repeat(np.arange(n), np.diff(c.start))
    keys = own * np.int64(n) + c.neighbour
    child = np.flatnonzero(parent >= 0)
    wanted = child * np.int64(n) + parent[child]
    at = np.searchsorted(keys, wanted)
    listed = np.append(keys, -1)[at] == wanted
    parent[child[~listed]] = -1  # an edge to start from that is no candidate
    child, at = child[listed], at[listed]
    pattern = np.zeros(n, np.int32)
    pattern[child] = c.pattern[at]
    root = np.arange(n)
    up = np.where(parent >= 0, parent, root)
    while not np.array_equal(up[root], root):
        root = up[root]
    trees, cluster = np.unique(root, return_inverse=True)
    prior, by_size = layout.prior, layout.prior.beta.shape[1]
    records = prior.records(cluster)
    which = sets_of(records)
    size = np.bincount(cluster, minlength=n + 1).astype(np.int32)
    n_files = records.shape[1]
    of_trees, their_files = np.zeros((n + 1, n_files), np.int32), np.zeros(n + 1, np.int32)
    of_trees[: len(trees)], their_files[: len(trees)] = records, which
    head, following, previous = np.full((3, n), -1, np.int32)
    for i in child[::-1]:
        p = parent[i]
        following[i] = head[p]
        if head[p] >= 0:
            previous[head[p]] = i
        head[p] = i
    unused = np.zeros(n + 1, np.int32)
    free = np.arange(len(trees), n + 1)
    unused[: len(free)] = free
    return Forest(
        parent=parent.astype(np.int32),
        head=head,
        next=following,
        previous=previous,
        pattern=pattern,
        q=np.zeros(n),
        place=np.full(n, -1, np.int32),
        cluster=cluster.astype(np.int32),
        size=size,
        records=of_trees,
        which=their_files,
        unused=unused,
        of_size=np.bincount(size[: len(trees)], minlength=_largest(layout) + 1).astype(np.int64),
        n_which=np.bincount(which, minlength=len(prior.alpha)).astype(np.int64),
        n_in=(records > 0).sum(0).astype(np.int64),
        n_with=np.array([np.bincount(own[own > 0], minlength=by_size) for own in records.T]),
        unlisted=np.zeros(n, np.int32),
        n=np.array([len(free), 0, len(trees)]),
        log_rho=np.array([log_rho]),
    )


def _space(layout: ForestLayout, n_grid: int) -> Space:
    n, most = len(layout.rank), len(layout.candidates.neighbour) + 1
    return Space(
        part=np.zeros(n, np.int32),
        mark=np.zeros(n, np.int64),
        barred=np.zeros(n + 1, np.int64),
        stamp=np.zeros(1, np.int64),
        weights=np.zeros(max(most, n, n_grid)),
        own=np.zeros(most, np.int32),
        entry=np.zeros(most, np.int64),
        by_file=np.zeros(len(layout.prior.beta), np.int64),
        which=np.zeros(1, np.int64),
        log_trees=np.zeros(2 * _largest(layout) + 1),  # of any two trees together
        log_factorial=gammaln(np.arange(layout.prior.beta.shape[1]) + 1.0),
    )


def _largest(layout: ForestLayout) -> int:
    """The most records that a tree can have."""
    return min(len(layout.rank), int(layout.prior.largest.sum()))


def _prior(prior: PartitionPrior, grid: Floats) -> Prior:
    return Prior(
        file=prior.file,
        clean=prior.largest == 1,
        alpha=prior.alpha,
        total=float(prior.alpha.sum()),
        beta=prior.beta,
        totals=prior.beta.sum(1),
        log_rho=grid,
    )


def _no_proposals() -> Far:
    return Far(np.zeros((0, 2), np.int32), np.zeros(0, np.int32), np.zeros(0), 0)


def _by_row(kept: NDArray[np.int32], rank: NDArray[np.int32]) -> NDArray[np.int32]:
    """[draw, row]: a row of each row's cluster, the same for all of it."""
    row = np.argsort(rank).astype(np.int32)
    return row[kept[:, rank]]


def sample_forest(
    fit: ForestFit,
    *,
    restricted: bool = False,
    draws: int = 1000,
    tune: int = 500,
    chains: int = 4,
    seed: int = 1,
    threads: int | None = None,
    progress: Callable[[str], None] = lambda message: None,
    checkpoints: Checkpoints | None = None,
) -> ClusterPosterior:
    """Draw from the posterior of the partition of the records into people, of m, u and ρ.

    The parameters are those of `sample`. The first chain starts from single records, the second
    from the fit's forest, the others from parts of it.
    """
    check_sampling(draws=draws, tune=tune, chains=chains, seed=seed, threads=threads)
    began, pairs = time.perf_counter(), fit.pairs
    listed = fit.candidates()
    layout = ForestLayout.of(pairs, fit.structure, listed, fit.together, fit.apart, fit.prior)
    far = None if restricted else _far_pairs(fit, layout, seed)
    kept_every = min(draws, max(1, -(-draws * chains * pairs.n_a // KEPT)))
    grid = log_rho_grid(fit.shape)

    def chain(number: int) -> ForestChain:
        start = _start(fit, layout, number, seed)
        log_rho = float(np.log(fit.rho)) if fit.rho > 0 else -np.inf
        place = (number, seed, tune, draws, kept_every)
        return ForestChain(layout, far, grid, start, log_rho, *place)

    compile_modules(["forest"])
    lengths = (chains, tune, draws)
    results = run_chains(chain, *lengths, threads or os.cpu_count() or 1, progress, checkpoints)
    return ClusterPosterior.of(
        fit, results, restricted=restricted, seed=seed, tune=tune, listed=len(layout.listed),
        kept_every=kept_every, seconds=time.perf_counter() - began,
    )  # fmt: skip


def _far_pairs(fit: ForestFit, layout: ForestLayout, seed: int) -> FarPairs | None:
    n = fit.pairs.n_a
    if len(layout.listed) == fit.pairs.n_pairs:
        return None
    barred = np.concatenate([layout.listed.numbered(n), fit.apart.numbered(n)])
    open_to_all = np.zeros(n, bool)
    model = fit.parameters, fit.theta
    return FarPairs.beside(fit.pairs, *model, barred, (open_to_all, open_to_all), seed)


def _start(fit: ForestFit, layout: ForestLayout, number: int, seed: int) -> NDArray[np.int32]:
    """Parents, by rank, to start from: none, the fit's, or about half of the fit's.

    What is known to be one stays one: each known group hangs on one of its records.
    """
    rank, n = layout.rank, len(layout.rank)
    parent = np.full(n, -1, np.int32)
    if number > 0:
        child = np.flatnonzero(fit.parent >= 0)
        if number > 1:
            key = mix64(mix64(np.array([seed], np.uint64)) + np.uint64(number))
            luck = mix64(fit.pairs.tie_keys[0][child] + key)
            child = child[luck % np.uint64(2) == 0]
        parent[rank[child]] = rank[fit.parent[child]]
    c = layout.candidates
    grouped = np.flatnonzero(np.diff(c.group_start))
    if len(grouped):  # hung anew, with nothing else on them
        parent[grouped] = -1
        parent[np.isin(parent, grouped)] = -1
        for i in grouped:
            least = c.group[c.group_start[i]]
            if least < i:
                parent[i] = least
    return parent
