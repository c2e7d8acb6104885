"""Small problems whose posterior is known exactly, and a sampler run that is thinned.

With m and u integrated out, a matching C within the candidates has

    p(C | Γ) ∝ p(C) × Π_fields DM(levels of links; α_m) × DM(levels of all other pairs; α_u),

where DM is the Dirichlet-multinomial and missing levels count in neither. Small problems have few
enough matchings to list them all.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from unittest.mock import patch

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.special import betaln, gammaln, softmax

from bayeslink.comparing.fields import custom
from bayeslink.linkage.posthoc import Blocks
from bayeslink.linkage.priors import Overlap, Penalty
from bayeslink.model.structure import Structure
from bayeslink.model.weights import Parameters, Priors, proportions
from bayeslink.pairs.hashing import mix64
from bayeslink.pairs.source import LevelCounts, Patterns, Scope, sum_weights
from bayeslink.sampling import layout, sampler
from tests import oracles


class ListedPairs:
    """A PairSource over pairs given with their levels; the ids of records are their row numbers.

    Parameters
    ----------
    pairs
        All pairs in scope.
    key_a, key_b
        Value of the blocking key of each record, as numbers from 0.
    """

    memory = None
    one_file = closed = remote = False
    workers = 1
    copies = files = None

    def __init__(self, fields, pairs, key_a, key_b):
        self.fields, self.pairs = fields, pairs
        self.n_a, self.n_b, self.n_pairs = len(key_a), len(key_b), len(pairs)
        n_keys = 1 + max(*key_a, *key_b)
        self.scope = Scope(*(np.bincount(key, minlength=n_keys) for key in (key_a, key_b)))
        ids = np.arange(self.n_a + self.n_b, dtype=np.uint64)
        self.tie_keys = mix64(ids[: self.n_a]), mix64(ids[self.n_a :])

    def level_counts(self):
        width = max(f.n_levels for f in self.fields) + 1
        return LevelCounts(one_hot(self.pairs.levels, width).sum(axis=0), self.n_pairs)

    def pattern_counts(self):
        counts = Counter(map(tuple, self.pairs.levels.tolist()))
        return Patterns(np.array(list(counts), np.uint8), np.array(list(counts.values())))

    def pairs_above(self, weights, threshold, *, in_files=False):
        return self.pairs.take(sum_weights(weights, self.pairs.levels) > threshold)

    def join_sizes(self):
        return np.zeros_like(self.level_counts().counts)

    def find(self, ids):
        row = {pair: i for i, pair in enumerate(zip(self.pairs.a, self.pairs.b, strict=True))}
        return self.pairs.take(np.array([row[tuple(pair)] for pair in ids], int))

    def table(self, pairs, columns):
        return {"id_a": pairs.a, "id_b": pairs.b, **columns}


def pairs_in_scope(key_a, key_b):
    """Rows of the pairs whose records have the same value of the blocking key."""
    return np.nonzero(np.equal.outer(key_a, key_b))


def field(name, m_prior, u_prior):
    """A field of which only levels and priors matter."""
    return custom(name, max, levels=len(m_prior), m_prior=m_prior, u_prior=u_prior)


def one_hot(levels, width):
    """Pair × field × level, 1 where the pair has that level of the field."""
    return (levels[:, :, None] == np.arange(width)).astype(np.int64)


def blocks_of(source, candidates, known=()):
    """Post-hoc blocks of a given candidate set (positions in source.pairs), without a fit."""
    chosen = source.pairs.take(np.asarray(candidates, int))
    ends = chosen.a, chosen.b + source.n_a
    graph = sparse.coo_array((np.ones(len(chosen)), ends), (source.n_a + source.n_b,) * 2)
    component = connected_components(graph, directed=False)[1][chosen.a]
    numbers, block = np.unique(component, return_inverse=True)
    priors = Priors.of(source.fields)
    parameters = Parameters(
        *(proportions(alpha, priors.used) for alpha in (priors.alpha_m, priors.alpha_u)),
        priors.used,
    )
    return Blocks(
        pairs=source,
        parameters=parameters,
        structure=Structure.independent(source.fields, source.level_counts().counts),
        start=chosen.take(slice(0, 0)),
        theta=0.0,
        w0=-np.inf,
        candidates=chosen,
        weights=parameters.weight_of(chosen.levels),
        block=block,
        n_blocks=len(numbers),
        known=source.find(known),
        barred=chosen.take(slice(0, 0)),
        low=chosen.take(slice(0, 0)),
        listed_to=-np.inf,
        why="given",
    )


# --- exact ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Exact:
    """The posterior over all matchings within the candidates."""

    matchings: np.ndarray  # matching × candidate, True where linked
    probability: np.ndarray  # of each matching
    m: np.ndarray  # posterior means, field × level
    u: np.ndarray

    @property
    def link_probability(self):
        return self.probability @ self.matchings


def list_matchings(candidates):
    """All matchings of the candidate pairs, as a matching × candidate array of bools."""
    ends = zip(candidates.a.tolist(), candidates.b.tolist(), strict=True)
    listed = list(oracles.matchings([(e, a, b) for e, (a, b) in enumerate(ends)]))
    matchings = np.zeros((len(listed), len(candidates)), bool)
    for row, chosen in zip(matchings, listed, strict=True):
        row[list(chosen)] = True
    return matchings


def log_prior(prior, scope, n_links):
    """log p(C) of one matching by its number of links, up to a constant."""
    if isinstance(prior, Penalty):
        return -prior.theta * n_links
    assert isinstance(prior, Overlap)
    sizes = list(zip(scope.sizes_a.tolist(), scope.sizes_b.tolist(), strict=True))
    ways = np.log(np.array(oracles.count_matchings(sizes), float))
    smaller = min(scope.sizes_a.sum(), scope.sizes_b.sum())
    choose = -np.log(smaller + 1) - betaln(n_links + 1, smaller - n_links + 1)
    share = betaln(n_links + prior.alpha, smaller - n_links + prior.beta)
    return choose + share - ways[n_links]


def linked_counts(blocks, matchings):
    """Links at each level of each field, known ones included, in each matching."""
    width = max(f.n_levels for f in blocks.pairs.fields) + 1
    known = one_hot(blocks.known.levels, width).sum(axis=0)
    return known + np.tensordot(matchings, one_hot(blocks.candidates.levels, width), axes=1)


def log_dirichlet_multinomial(counts, alpha):
    """log probability of a sequence of levels with the given counts (last axis)."""
    total = gammaln(alpha.sum()) - gammaln((alpha + counts).sum(axis=-1))
    return total + (gammaln(alpha + counts) - gammaln(alpha)).sum(axis=-1)


def exact_posterior(blocks, prior):
    """Posterior of C, and of m and u by their means, from a list of all matchings."""
    source = blocks.pairs
    matchings = list_matchings(blocks.candidates)
    all_counts = source.level_counts().counts
    linked = linked_counts(blocks, matchings)
    log_p = log_prior(prior, source.scope, len(blocks.known) + matchings.sum(axis=1))
    m, u = np.zeros((2, len(matchings), *all_counts.shape))
    for j, f in enumerate(source.fields):
        levels = np.arange(1, f.n_levels + 1)
        for out, counts, alpha in (
            (m, linked[:, j, levels], np.array(f.m_prior)),
            (u, (all_counts - linked)[:, j, levels], np.array(f.u_prior)),
        ):
            log_p = log_p + log_dirichlet_multinomial(counts, alpha)
            total = (alpha + counts).sum(axis=1, keepdims=True)
            out[:, j, levels] = (alpha + counts) / total
    p = softmax(log_p)
    return Exact(matchings, p, np.tensordot(p, m, axes=1), np.tensordot(p, u, axes=1))


# --- draws ------------------------------------------------------------------------------------


def sample_thinned(blocks, prior, *, keep, every, most_listed=layout.MOST_LISTED, **settings):
    """Run `sample` so that each chain keeps the links of `keep` draws, each `every` sweeps apart.

    `most_listed` is the number of matchings up to which a block is drawn jointly: with 1, all
    blocks but single pairs are left to the moves for large blocks.
    """
    chains = settings.setdefault("chains", 4)
    kept_links = keep * chains * max(1, len(blocks.start))
    kept = patch.object(sampler, "KEPT_LINKS", kept_links)
    with kept, patch.object(layout, "MOST_LISTED", most_listed):
        post = sampler.sample(blocks, prior=prior, restricted=True, draws=keep * every, **settings)
    assert post.kept_every == every
    return post


def kept_links(post):
    """Links of the kept draws, draw × candidate, chain after chain."""
    states = [state for chain in post.kept for state in chain]
    linked = np.zeros((len(states), post.blocks.n_candidates), bool)
    for row, state in zip(linked, states, strict=True):
        row[state] = True
    return linked
