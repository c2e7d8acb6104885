"""MCMC over post-hoc blocks and all other pairs in scope (Sections 4 and 5): two files.

Given m and u: a draw of the links (`sampling.matching`). Given C: draws of m and u, u from all
pairs in scope. Blocks are visited in turn, each given the number of links elsewhere, so that
`Penalty` and `Overlap` are both exact. Chains run in parallel (`sampling.chains`).
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from bayeslink.checkpoints import Checkpoints
from bayeslink.distinct import distinct
from bayeslink.kernels import compile_modules
from bayeslink.kernels.matchings import LONGEST, greedy_matching
from bayeslink.kernels.parameters import LARGEST
from bayeslink.kernels.sampling import Prior
from bayeslink.linkage.posthoc import Blocks, regrouped
from bayeslink.linkage.priors import LinkCountPrior, Overlap
from bayeslink.pairs.hashing import mix64
from bayeslink.sampling.chains import check_sampling, run_chains
from bayeslink.sampling.layout import Layout
from bayeslink.sampling.matching import MatchingChain
from bayeslink.sampling.posterior import Posterior
from bayeslink.sampling.unlisted import FarPairs

KEPT_LINKS = 20_000_000  # link entries kept over all draws; beyond it, draws of links are thinned


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

    def chain(number: int) -> MatchingChain:
        start = _start(blocks, layout, number, seed)
        place = (start, number, seed, tune, draws, kept_every)
        return MatchingChain(blocks, layout, far, link_prior, *place)

    # Compiled here, where Ctrl-C can stop it, not in threads.
    compile_modules(["sampling", "matchings"])
    lengths = (chains, tune, draws)
    results = run_chains(chain, *lengths, threads or os.cpu_count() or 1, progress, checkpoints)
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


# --- where chains start ------------------------------------------------------------------------


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
    tie_break = mix64(np.arange(len(edges), dtype=np.uint64) + key)
    return greedy_matching(np.argsort(tie_break), a, b, blocks.pairs.n_a, blocks.pairs.n_b)
