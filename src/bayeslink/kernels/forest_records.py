"""What is counted in a forest of pointers, ρ, its prior, and the record of a draw."""

from typing import NamedTuple

import numpy as np

from bayeslink.kernels import helper
from bayeslink.kernels.trees import TREES, UNLISTED, choose


class Output(NamedTuple):
    """What is kept of the draws."""

    n_entities: np.ndarray
    log_posterior: np.ndarray
    log_rho: np.ndarray
    of_size: np.ndarray  # draw × size; the last counts all beyond
    in_files: np.ndarray  # draw × set of files
    m: np.ndarray  # draw × field × level
    u: np.ndarray
    log_h: np.ndarray
    log_r: np.ndarray
    log_level: np.ndarray
    kept: np.ndarray  # draw × record: the least record of its cluster
    every: int  # so many draws, one is kept


@helper
def tabulate(log_rho, log_trees):
    """log of 1 / (k (1 + (k − 1) ρ)^(k − 2)) for each size k."""
    rho = np.exp(log_rho)
    log_trees[0] = 0.0
    for k in range(1, len(log_trees)):
        log_trees[k] = -np.log(k) - (k - 2) * np.log1p((k - 1) * rho)


@helper
def n_deep(forest):
    """Edges to records that are copies themselves."""
    n = 0
    for i in range(len(forest.parent)):
        p = forest.parent[i]
        n += p >= 0 and forest.parent[p] >= 0
    return n


@helper
def draw_rho(forest, prior, weights, rng):
    """ρ given the forest, from its grid."""
    grid = prior.log_rho
    if len(grid) == 1:
        return
    deep, best = n_deep(forest), -np.inf
    for g in range(len(grid)):
        rho, log_p = np.exp(grid[g]), deep * grid[g]
        for k in range(3, len(forest.of_size)):
            if forest.of_size[k] > 0:
                log_p -= forest.of_size[k] * (k - 2) * np.log1p((k - 1) * rho)
        weights[g] = log_p
        best = max(best, log_p)
    total = 0.0
    for g in range(len(grid)):
        weights[g] = np.exp(weights[g] - best)
        total += weights[g]
    forest.log_rho[0] = grid[choose(weights, len(grid), total, rng)]


@helper
def count_edges(forest, counts):
    """Edges with each pattern."""
    for g in range(len(counts)):
        counts[g] = 0
    for i in range(len(forest.parent)):
        if forest.parent[i] >= 0:
            counts[forest.pattern[i]] += 1


@helper
def count_within(candidates, forest, counts):
    """Candidate pairs within clusters, and unlisted edges, with each pattern."""
    for g in range(len(counts)):
        counts[g] = 0
    for i in range(len(forest.parent)):
        for e in range(candidates.start[i], candidates.start[i + 1]):
            y = candidates.neighbour[e]
            counts[candidates.pattern[e]] += i < y and forest.cluster[i] == forest.cluster[y]
    for k in range(forest.n[UNLISTED]):
        counts[forest.pattern[forest.unlisted[k]]] += 1


@helper
def log_sequence(counts, weights, total):
    """log of the chance of a sequence with these counts, shares being Dirichlet."""
    out, n = np.float64(0.0), 0
    for k in range(len(counts)):
        for s in range(counts[k]):
            out += np.log(s + weights[k]) - np.log(n + total)
            n += 1
    return out


@helper
def log_prior(forest, prior, space):
    """log of what the target has beside the edges' weights, up to a constant."""
    out = np.float64(0.0)
    for k in range(1, forest.n[TREES] + 1):
        out += np.log(k)
    out += log_sequence(forest.n_which, prior.alpha, prior.total)
    for f in range(len(prior.totals)):
        out += log_sequence(forest.n_with[f], prior.beta[f], prior.totals[f])
        for k in range(1, forest.n_with.shape[1]):
            out += forest.n_with[f, k] * space.log_factorial[k]
    for k in range(1, len(forest.of_size)):
        out += forest.of_size[k] * space.log_trees[k]
    deep = n_deep(forest)
    return out + deep * forest.log_rho[0] if deep > 0 else out


@helper
def record(draw, out, density, used, state, forest, least):
    """Keep what there is to know of a draw."""
    out.n_entities[draw] = forest.n[TREES]
    out.log_posterior[draw] = density
    out.log_rho[draw] = forest.log_rho[0]
    for which in range(len(forest.n_which)):
        out.in_files[draw, which] = forest.n_which[which]
    last = out.of_size.shape[1] - 1
    for k in range(1, len(forest.of_size)):
        out.of_size[draw, min(k, last)] += forest.of_size[k]
    for a in range(state.log_h.shape[0]):
        for e in range(state.log_h.shape[1]):
            out.log_h[draw, a, e] = state.log_h[a, e]
    for j in range(state.log_m.shape[0]):
        out.log_r[draw, j] = state.log_r[j]
        for h in range(state.log_m.shape[1]):
            out.log_level[draw, j, h] = state.log_level[j, h]
            if h > 0 and used[j, h]:
                out.m[draw, j, h] = np.exp(state.log_m[j, h])
                out.u[draw, j, h] = np.exp(state.log_u[j, h])
    if (draw + 1) % out.every == 0:
        row = (draw + 1) // out.every - 1
        for c in range(len(forest.size)):
            least[c] = -1
        for i in range(len(forest.cluster)):
            c = forest.cluster[i]
            if least[c] < 0:
                least[c] = i
            out.kept[row, i] = least[c]
