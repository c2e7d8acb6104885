"""Restricted MCMC over post-hoc blocks (Sections 4 and 5).

Given m and u: single-pair blocks are a Bernoulli draw, small blocks a joint Gibbs draw over all
their matchings, larger blocks locally balanced add/drop/switch moves and a Gibbs draw of each
row. Given C: Dirichlet draws of m and u, u from all pairs in scope. Blocks are visited in turn,
each given the number of links elsewhere, so that `Penalty` and `Overlap` are both exact. Chains
run in parallel.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayeslink.errors import SettingsError
from bayeslink.inference.model import Priors, proportions
from bayeslink.inference.posterior import Draws, Posterior
from bayeslink.inference.posthoc import Blocks
from bayeslink.inference.priors import LinkCountPrior, Overlap
from bayeslink.pairs.source import Floats, Ints, count_levels
from bayeslink.pairs.ties import mix64

MOST_LISTED = 250  # matchings of a block up to which it is drawn jointly
KEPT_LINKS = 20_000_000  # link entries kept over all draws; beyond it, draws of links are thinned
_BATCHES = 20  # per chain, for the Monte Carlo error of link probabilities


def sample(
    blocks: Blocks,
    *,
    prior: LinkCountPrior | None = None,
    draws: int = 1000,
    tune: int = 500,
    chains: int = 4,
    seed: int = 1,
    threads: int | None = None,
    progress: Callable[[str], None] = lambda message: None,
) -> Posterior:
    """Draw from the posterior of links, m and u, restricted to the candidate pairs.

    Parameters
    ----------
    prior
        `Penalty(theta)` or `Overlap(alpha, beta)`; `Overlap(1, 1)` unless given.
    draws, tune
        Sweeps of each chain that are kept, and that come before and are not.
    chains
        The first starts from the empty matching, the second from the penalized-likelihood
        estimate, the others from random matchings.
    seed
        Same seed, same draws, whatever the number of threads and the order of rows.
    """
    check_sampling(draws=draws, tune=tune, chains=chains, seed=seed, threads=threads)
    prior = prior if prior is not None else Overlap()
    began = time.perf_counter()
    layout = _Layout.of(blocks)
    table = _prior_table(blocks, layout, prior)
    kept_every = max(1, math.ceil(draws * chains * max(1, len(blocks.start)) / KEPT_LINKS))
    steps = [0] * chains

    def chain(number: int) -> Draws:
        def report(done: int) -> None:
            steps[number] = done
            progress(f"sampling: {sum(steps) / chains / (tune + draws):.0%}")

        start = _start(blocks, layout, number, seed)
        return _run(layout, table, start, number, seed, tune, draws, kept_every, report)

    with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
        results = list(pool.map(chain, range(chains)))
    return Posterior.of(
        blocks,
        prior,
        results,
        candidate_of_edge=layout.candidate,
        kept_every=kept_every,
        seed=seed,
        tune=tune,
        seconds=time.perf_counter() - began,
        kinds=layout.kinds,
    )


def check_sampling(*, draws: int, tune: int, chains: int, seed: int, threads: int | None) -> None:
    """Refuse settings of `sample` that make no sense."""
    least = {"draws": (draws, 1), "tune": (tune, 0), "chains": (chains, 1), "seed": (seed, 0)}
    if threads is not None:
        least["threads"] = (threads, 1)
    for name, (value, lowest) in least.items():
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < lowest:
            raise SettingsError(f"{name} must be a whole number from {lowest} up, got {value!r}.")
    if seed >= 2**63:
        raise SettingsError(f"seed must be below 2**63, got {seed!r}.")


# --- layout -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Layout:
    """Candidate pairs in the order and form that `kernels.sampling` wants.

    Edges are ordered by what they are (single-pair, listed, larger blocks) and by the records'
    tie keys, so that neither row order nor the naming of the files changes the draws.
    """

    priors: Priors
    all_counts: Ints
    known_counts: Ints
    n_known: int
    candidate: Ints  # position in blocks.candidates of each edge
    patterns: NDArray[np.uint8]
    edge_pattern: NDArray[np.int32]
    n_single: int
    joint_start: Ints
    set_parent: NDArray[np.int32]
    set_edge: NDArray[np.int32]
    set_size: NDArray[np.int32]
    large_start: Ints
    row_start: Ints
    edge_row: NDArray[np.int32]
    edge_column: NDArray[np.int32]
    n_columns: int

    @property
    def kinds(self) -> dict[str, int]:
        """Number of blocks of each kind."""
        return {
            "single": self.n_single,
            "joint": len(self.joint_start) - 1,
            "large": len(self.large_start) - 1,
        }

    @classmethod
    def of(cls, blocks: Blocks) -> _Layout:
        from bayeslink.kernels.sampling import list_matchings

        pairs, candidates = blocks.pairs, blocks.candidates
        counts = pairs.level_counts().counts
        patterns, pattern = np.unique(candidates.levels, axis=0, return_inverse=True)
        row, column, rank = _oriented(blocks)
        size = blocks.n_pairs_in_block[blocks.block]
        single = np.flatnonzero(size == 1)
        single = single[np.lexsort((row[single], pattern[single]))]
        rest = np.flatnonzero(size > 1)
        rest = rest[np.lexsort((column[rest], row[rest], rank[rest]))]
        start = _run_starts(rank[rest])
        rows, columns = _numbered(rank[rest], row[rest]), _numbered(rank[rest], column[rest])
        of_block = np.repeat(np.arange(len(start) - 1), np.diff(start))
        first_set, set_parent, set_edge, set_size = list_matchings(
            start,
            rows - rows[start[of_block]],
            columns - np.minimum.reduceat(columns, start[:-1])[of_block] if len(rest) else columns,
            MOST_LISTED,
        )
        listed = np.diff(first_set) > 0
        in_listed = listed[of_block]
        order = np.concatenate([rest[in_listed], rest[~in_listed]])
        position = np.full(len(rest) + 1, -1)  # of an edge of `rest` among all edges; of −1, −1
        position[np.concatenate([np.flatnonzero(in_listed), np.flatnonzero(~in_listed)])] = len(
            single
        ) + np.arange(len(rest))
        n_before = len(single) + int(in_listed.sum())
        large_rows, large_columns = rows[~in_listed], columns[~in_listed]
        row_start = _run_starts(large_rows)
        filler = np.full(n_before, -1)
        row_number = np.unique(large_rows, return_inverse=True)[1]
        column_number = np.unique(large_columns, return_inverse=True)[1]
        large_start = np.searchsorted(row_start, _run_starts(of_block[~in_listed]))
        return cls(
            priors=Priors.of(pairs.fields),
            all_counts=counts,
            known_counts=count_levels(blocks.known.levels, counts.shape[1]),
            n_known=len(blocks.known),
            candidate=np.concatenate([single, order]),
            patterns=np.ascontiguousarray(patterns),
            edge_pattern=pattern[np.concatenate([single, order])].astype(np.int32),
            n_single=len(single),
            joint_start=np.concatenate([[0], np.cumsum(np.diff(first_set)[listed])]),
            set_parent=set_parent,
            set_edge=position[set_edge].astype(np.int32),
            set_size=set_size,
            large_start=large_start.astype(np.int64),
            row_start=row_start + n_before,
            edge_row=np.concatenate([filler, row_number]).astype(np.int32),
            edge_column=np.concatenate([filler, column_number]).astype(np.int32),
            n_columns=int(column_number.max(initial=-1)) + 1,
        )


def _oriented(blocks: Blocks) -> tuple[Ints, Ints, Ints]:
    """Row and column of each candidate and rank of its block, free of row order and file names."""
    keys_a, keys_b = blocks.pairs.tie_keys
    candidates = blocks.candidates
    ranks = [np.argsort(np.argsort(k)) for k in (keys_a, keys_b)]
    row, column = ranks[0][candidates.a], ranks[1][candidates.b]
    if (len(keys_b), keys_b.min()) < (len(keys_a), keys_a.min()):
        row, column = column, row
    first = np.full(blocks.n_blocks, np.iinfo(np.int64).max)
    np.minimum.at(first, blocks.block, row)
    return row, column, first[blocks.block]


def _run_starts(values: Ints) -> Ints:
    """Where runs of equal values start, and the end."""
    change = np.flatnonzero(np.diff(values)) + 1
    return np.concatenate([[0], change, [len(values)]] if len(values) else [[0]]).astype(np.int64)


def _numbered(block: Ints, record: Ints) -> Ints:
    """Number records through, block by block, by rank within the block."""
    order = np.lexsort((record, block))
    new = np.ones(len(order), bool)
    new[1:] = (np.diff(block[order]) != 0) | (np.diff(record[order]) != 0)
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.cumsum(new) - 1
    return numbers


def _prior_table(blocks: Blocks, layout: _Layout, prior: LinkCountPrior) -> tuple[Floats, Floats]:
    """log p(C) by number of links, and the cost of one more, exp(−Δ), up to the most possible."""
    from bayeslink.kernels.sampling import LARGEST

    distinct = (len(np.unique(side)) for side in (blocks.candidates.a, blocks.candidates.b))
    most = min(blocks.pairs.scope.max_links, min(distinct) + layout.n_known)
    log_prior = prior.on(blocks.pairs.scope).log_prior(np.arange(most + 1))
    cost = np.clip(-np.diff(log_prior), -LARGEST, LARGEST)
    return log_prior, np.append(np.exp(cost), np.inf)


# --- chains -----------------------------------------------------------------------------------


def _start(blocks: Blocks, layout: _Layout, chain: int, seed: int) -> NDArray[np.bool_]:
    """Edges linked at the start: none, the estimate's, or a random matching."""
    from bayeslink.kernels.sampling import greedy_matching

    edges = layout.candidate
    a, b = blocks.candidates.a[edges], blocks.candidates.b[edges]
    if chain == 0:
        return np.zeros(len(edges), bool)
    if chain == 1:
        span = blocks.pairs.n_b
        numbers = blocks.candidates.numbered(span)[edges]
        return np.isin(numbers, blocks.start.numbered(span))
    key = mix64(mix64(np.array([seed], np.uint64)) + np.uint64(chain))
    luck = mix64(np.arange(len(edges), dtype=np.uint64) + key)
    return greedy_matching(np.argsort(luck), a, b, blocks.pairs.n_a, blocks.pairs.n_b)


def _run(
    layout: _Layout,
    table: tuple[Floats, Floats],
    linked: NDArray[np.bool_],
    chain: int,
    seed: int,
    tune: int,
    draws: int,
    kept_every: int,
    report: Callable[[int], None],
) -> Draws:
    """One chain: tune, then draw, keeping the links of every kept_every-th draw."""
    from bayeslink.kernels.sampling import run_sweeps

    log_m, log_u, *state = _state(layout, linked)
    shape = (draws, *log_m.shape)
    n_edges = len(layout.candidate)
    out = (np.zeros(draws, np.int64), np.zeros(draws), np.zeros(shape), np.zeros(shape))
    sums = np.zeros(n_edges), np.zeros(n_edges), np.zeros(n_edges)
    batch_length = max(1, draws // _BATCHES)
    n_links = int(linked.sum()) + layout.n_known
    done, kept = 0, []

    def sweep(n: int, first_draw: int, n_links: int) -> int:
        p = layout.priors
        return int(
            run_sweeps(
                seed, chain, done, n, first_draw,
                layout.patterns, layout.edge_pattern, layout.n_single, layout.joint_start,
                layout.set_parent, layout.set_edge, layout.set_size, layout.large_start,
                layout.row_start, layout.edge_row, layout.edge_column, p.alpha_m, p.alpha_u,
                p.used, layout.all_counts, layout.known_counts, *table,
                log_m, log_u, *state, n_links, *out, *sums, batch_length,
            )
        )  # fmt: skip

    while done < tune:
        n = min(50, tune - done)
        n_links = sweep(n, -1, n_links)
        done += n
        report(done)
    while done < tune + draws:
        n = min(kept_every, tune + draws - done)
        n_links = sweep(n, done - tune, n_links)
        done += n
        kept.append(np.flatnonzero(state[0]).astype(np.int32))
        if len(kept) % 50 == 0:
            report(done)
    return Draws(*out, sums[0] / draws, sums[2], draws // batch_length, kept)


def _state(layout: _Layout, linked: NDArray[np.bool_]) -> tuple[Any, ...]:
    """The sampler's state for given links: log m, log u, and C in the kernels' three forms."""
    priors = layout.priors
    counts = layout.known_counts + count_levels(
        layout.patterns[layout.edge_pattern[linked]], layout.all_counts.shape[1]
    )
    log_m, log_u = (
        np.log(np.where(priors.used, proportions(alpha + n, priors.used), 1.0))
        for alpha, n in (
            (priors.alpha_m, counts),
            (priors.alpha_u, layout.all_counts - counts),
        )
    )
    of_row = np.full(len(layout.row_start) - 1, -1, np.int32)
    of_column = np.full(layout.n_columns, -1, np.int32)
    large = np.flatnonzero(linked)
    large = large[large >= layout.row_start[0]]
    of_row[layout.edge_row[large]] = large
    of_column[layout.edge_column[large]] = large
    return log_m, log_u, linked.copy(), _chosen_sets(layout, linked), of_row, of_column


def _chosen_sets(layout: _Layout, linked: NDArray[np.bool_]) -> Ints:
    """Which listed matching of each joint block holds: the largest whose edges are all linked."""
    n_sets = np.diff(layout.joint_start)
    if not len(n_sets):
        return np.zeros(0, np.int64)
    block_start = np.repeat(layout.joint_start[:-1], n_sets)
    parent = block_start + layout.set_parent
    holds = np.append(linked, True)[layout.set_edge]  # −1, of the empty one, is the last
    for size in range(1, int(layout.set_size.max()) + 1):
        at = np.flatnonzero(layout.set_size == size)
        holds[at] &= holds[parent[at]]
    score = np.where(holds, layout.set_size, -1)
    at = np.flatnonzero(
        score == np.repeat(np.maximum.reduceat(score, layout.joint_start[:-1]), n_sets)
    )
    first = np.unique(block_start[at], return_index=True)[1]
    return (at[first] - layout.joint_start[:-1]).astype(np.int64)
