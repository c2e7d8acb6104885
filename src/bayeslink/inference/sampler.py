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
from functools import partial

import numpy as np
from numpy.typing import NDArray

from bayeslink.errors import SettingsError
from bayeslink.inference.layout import Layout
from bayeslink.inference.model import other_counts, proportions
from bayeslink.inference.posterior import Draws, Posterior
from bayeslink.inference.posthoc import Blocks
from bayeslink.inference.priors import LinkCountPrior, Overlap
from bayeslink.kernels import compile_modules
from bayeslink.kernels.matchings import greedy_matching
from bayeslink.kernels.sampling import LARGEST, Graph, Links, Output, Prior, run_sweeps
from bayeslink.pairs.source import Floats, Ints, count_levels
from bayeslink.pairs.ties import mix64
from bayeslink.threads import run_all, slices

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
    layout = Layout.of(blocks)
    link_prior = _prior_table(blocks, layout, prior)
    kept_every = max(1, math.ceil(draws * chains * max(1, len(blocks.start)) / KEPT_LINKS))
    steps = [0] * chains

    def chain(number: int) -> Draws:
        def report(done: int) -> None:
            steps[number] = done
            progress(f"sampling: {sum(steps) / chains / (tune + draws):.0%}")

        start = _start(blocks, layout, number, seed)
        return _run(layout, link_prior, start, number, seed, tune, draws, kept_every, report)

    compile_modules(["sampling", "matchings"])  # here, where Ctrl-C can stop it, not in threads
    results = run_all([partial(chain, k) for k in range(chains)], threads or os.cpu_count() or 1)
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


# --- the prior ----------------------------------------------------------------------------------


def _prior_table(blocks: Blocks, layout: Layout, prior: LinkCountPrior) -> Prior:
    """log p(C) by number of links, and the cost of one more, exp(−Δ), up to the most possible."""
    distinct = (len(np.unique(side)) for side in (blocks.candidates.a, blocks.candidates.b))
    most = min(blocks.pairs.scope.max_links, min(distinct) + layout.n_known)
    log_prior = prior.on(blocks.pairs.scope).log_prior(np.arange(most + 1))
    cost = np.clip(-np.diff(log_prior), -LARGEST, LARGEST)
    return Prior(log_prior, np.append(np.exp(cost), np.inf))


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


def _run(
    layout: Layout,
    prior: Prior,
    linked: NDArray[np.bool_],
    chain: int,
    seed: int,
    tune: int,
    draws: int,
    kept_every: int,
    report: Callable[[int], None],
) -> Draws:
    """One chain: tune, then draw, keeping the links of every kept_every-th draw."""
    log_m, log_u = _parameters(layout, linked)
    links = _links(layout, linked)
    shape = (draws, *log_m.shape)
    batch_length = max(1, draws // _BATCHES)
    out = Output(
        n_links=np.zeros(draws, np.int64),
        log_posterior=np.zeros(draws),
        m=np.zeros(shape),
        u=np.zeros(shape),
        probability=np.zeros(len(linked)),
        batch=np.zeros(len(linked)),
        batch_squares=np.zeros(len(linked)),
        batch_length=batch_length,
    )
    n_links = int(linked.sum()) + layout.n_known
    done, kept = 0, []

    def sweep(n: int, first_draw: int, n_links: int) -> int:
        given = layout.graph, layout.model, prior, log_m, log_u, links, n_links, out
        return int(run_sweeps(seed, chain, done, n, first_draw, *given))

    for first, last in slices(tune):
        n_links = sweep(last - first, -1, n_links)
        done = last
        report(done)
    while done < tune + draws:
        for first, last in slices(min(kept_every, tune + draws - done)):
            n_links = sweep(last - first, done - tune, n_links)
            done += last - first
        kept.append(np.flatnonzero(links.linked).astype(np.int32))
        if len(kept) % 50 == 0:
            report(done)
    return Draws(
        n_links=out.n_links,
        log_posterior=out.log_posterior,
        m=out.m,
        u=out.u,
        probability=out.probability / draws,
        batch_squares=out.batch_squares,
        n_batches=draws // batch_length,
        kept=kept,
    )


def _parameters(layout: Layout, linked: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """log m and log u to start from: their means given the links."""
    model, graph = layout.model, layout.graph
    counts = model.known_counts + count_levels(
        graph.patterns[graph.edge_pattern[linked]], model.all_counts.shape[1]
    )
    log_m, log_u = (
        np.log(np.where(model.used, proportions(alpha + n, model.used), 1.0))
        for alpha, n in (
            (model.alpha_m, counts),
            (model.alpha_u, other_counts(model.all_counts, counts)),
        )
    )
    return log_m, log_u


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
