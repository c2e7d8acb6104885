"""Small linkage problems, and plain versions of what the sampler does with them.

A `Problem` has m and u given, so its posterior is a sum over a few matchings. A `TinyFiles` is two
files whose exact posterior has m and u integrated out.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cache, cached_property

import numba
import numpy as np
import pyarrow as pa
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import betaln, gammaln, logsumexp

import bayeslink as bl
from bayeslink.linkage.posthoc import posthoc_blocks
from bayeslink.pairs.source import Scope
from tests import oracles

N_LEVELS = (2, 3)  # of the two fields of a Problem
USED = np.array([[False, True, True, False], [False, True, True, True]])


def callable_here(helper):
    """A helper of the kernels with a way in from Python, which it has not of its own."""
    return numba.njit(lambda *arguments: helper(*arguments))


# --- given m and u -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Problem:
    """Candidate pairs ("edges") with m and u, and a prior on links, some of which are elsewhere.

    A state is a matching, as a frozenset of edges.
    """

    row: np.ndarray
    column: np.ndarray
    pattern: np.ndarray
    levels: np.ndarray  # one row a pattern, 0 = missing
    log_m: np.ndarray
    log_u: np.ndarray
    n_elsewhere: int
    log_prior: np.ndarray  # by number of links, up to the most there can be

    @cached_property
    def step_cost(self):
        return np.append(np.exp(-np.diff(self.log_prior)), np.inf)

    @cached_property
    def log_odds(self):
        """Of each pattern: missing fields say nothing."""
        w = self.log_m - self.log_u
        return np.array([sum(w[j, h] for j, h in enumerate(g) if h > 0) for g in self.levels])

    @cached_property
    def odds(self):
        return np.exp(self.log_odds)

    @cached_property
    def n_rows(self):
        return int(self.row.max()) + 1

    @cached_property
    def n_columns(self):
        return int(self.column.max()) + 1

    @cached_property
    def states(self):
        edges = list(zip(range(len(self.row)), self.row, self.column, strict=True))
        return [frozenset(matching) for matching in oracles.matchings(edges)]

    @cached_property
    def posterior(self):
        """p(C | m, u) of each state."""
        log_p = np.array([log_density(self, state) for state in self.states])
        return np.exp(log_p - logsumexp(log_p))


@cache
def log_density(p, state):
    """log p(C | m, u) up to a constant."""
    prior = p.log_prior[p.n_elsewhere + len(state)]
    return prior + sum(p.log_odds[p.pattern[e]] for e in sorted(state))


@cache
def edges_of(p, row):
    return np.flatnonzero(p.row == row).tolist()


def random_problem(rng, shape, prior, chance=None):
    """A problem of at most the given shape; records without a candidate pair are left out.

    Edges are in order of component, row and column, as the kernels want them.
    """
    present = rng.random(shape) < (rng.uniform(0.25, 1.0) if chance is None else chance)
    present[rng.integers(shape[0]), rng.integers(shape[1])] = True
    row, column = (np.unique(side, return_inverse=True)[1] for side in np.nonzero(present))
    order = np.lexsort((column, row, components(row, column)))
    row, column = _numbered(row[order]), column[order]

    some = [rng.integers(0, k + 1, rng.integers(1, 9)) for k in N_LEVELS]
    drawn = np.stack([rng.choice(levels, len(row)) for levels in some], 1)
    levels, pattern = np.unique(drawn, axis=0, return_inverse=True)
    n_elsewhere = int(rng.integers(4))
    scope = _scope_around(rng, row.max() + 1 + n_elsewhere, column.max() + 1 + n_elsewhere)
    most = min(scope.max_links, n_elsewhere + min(row.max(), column.max()) + 1)
    return Problem(
        row=row,
        column=column,
        pattern=pattern.astype(np.int32),
        levels=levels.astype(np.uint8),
        log_m=np.where(USED, rng.normal(0, 1.5, USED.shape), 0.0),
        log_u=np.where(USED, rng.normal(0, 1.5, USED.shape), 0.0),
        n_elsewhere=n_elsewhere,
        log_prior=prior.on(scope).log_prior(np.arange(most + 1)),
    )


def components(row, column):
    """The connected component of each edge."""
    n = row.max() + 1
    graph = coo_array((np.ones(len(row)), (row, n + column)), (n + column.max() + 1,) * 2)
    return connected_components(graph, directed=False)[1][row]


def _numbered(records):
    """Number records by first appearance."""
    _, first, number = np.unique(records, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[number]


def _scope_around(rng, n_a, n_b):
    """A scope that holds n_a × n_b, with or without room to spare and further blocking keys."""
    spare_a, spare_b, keys = rng.integers(3, size=3).tolist()
    sizes = rng.integers(1, 4, (2, keys))
    return Scope(np.array([n_a + spare_a, *sizes[0]]), np.array([n_b + spare_b, *sizes[1]]))


# --- moves, plainly ----------------------------------------------------------------------------


@cache
def after_move(p, state, e):
    """The state after the move at edge e and the row of the way back; None if there is no move."""
    if e in state:
        return state - {e}, p.row[e]
    at_row = [f for f in state if p.row[f] == p.row[e]]
    at_column = [f for f in state if p.column[f] == p.column[e]]
    after = state.difference(at_row, at_column) | {e}
    if at_row and at_column:
        left = (p.row == p.row[at_column[0]]) & (p.column == p.column[at_row[0]])
        return (after.union(np.flatnonzero(left).tolist()), p.row[e]) if left.any() else None
    return after, p.row[(at_column or [e])[0]]


@cache
def move_weights(p, state, row):
    """√(p(after) / p(before)) of the move at each edge of a row."""
    moves = [after_move(p, state, e) for e in edges_of(p, row)]
    gain = [-np.inf if m is None else log_density(p, m[0]) - log_density(p, state) for m in moves]
    return np.exp(0.5 * np.array(gain))


def conditional(p, states):
    """Probabilities of the states, given that it is one of them."""
    log_p = np.array([log_density(p, state) for state in states])
    return np.exp(log_p - logsumexp(log_p))


def pick(chances, uniform):
    """The position in a list of chances at which a uniform number falls."""
    return int(np.searchsorted(np.cumsum(chances)[:-1], uniform, side="right"))


def row_options(p, state, row):
    """States that differ from the given one in the link of a row only: first none, then by edge."""
    rest = state.difference(edges_of(p, row))
    taken = {p.column[f] for f in rest}
    return [rest, *(rest | {e} for e in edges_of(p, row) if p.column[e] not in taken)]


def plain_sweep(p, state, singles, joints, larges, stream):
    """One sweep given m and u. Returns the state and each edge's chance when it was drawn.

    Blocks are edges (`singles`), lists of matchings (`joints`) and lists of rows (`larges`);
    stream(k) gives the uniform numbers of block k, all single-pair blocks being block 0.
    """
    expected = np.zeros(len(p.row))

    def gibbs(options, uniform):
        chances = conditional(p, options)
        for option, chance in zip(options, chances, strict=True):
            expected[list(option - frozenset.intersection(*options))] += chance
        return options[pick(chances, uniform())]

    uniform = stream(0)
    for e in singles:
        state = gibbs([state | {e}, state - {e}], uniform)
    for k, listed in enumerate(joints):
        rest = state.difference(*listed)
        state = gibbs([rest | matching for matching in listed], stream(1 + k))
    for k, rows in enumerate(larges):
        uniform = stream(1 + len(joints) + k)
        state = _balanced_moves(p, state, rows, uniform)
        for row in rows:
            state = gibbs(row_options(p, state, row), uniform)
    return state, expected


def _balanced_moves(p, state, rows, uniform):
    for _ in range((len(rows) + 3) // 4):
        row = rows[int(uniform() * len(rows))]
        weights = move_weights(p, state, row)
        e = edges_of(p, row)[pick(weights / weights.sum(), uniform())]
        after, back = after_move(p, state, e)
        if uniform() * move_weights(p, after, back).sum() < weights.sum():
            state = after
    return state


# --- m and u integrated out --------------------------------------------------------------------


@dataclass(frozen=True)
class TinyFiles:
    """Two files small enough for a sum over every matching of the candidate pairs."""

    rows_a: list  # of dicts of texts
    rows_b: list
    fields: list
    prior: object
    block: tuple = ()
    links: tuple = ()  # known, as (position in A, position in B)
    nonlinks: tuple = ()

    @cached_property
    def exact(self):
        """Link probability of each candidate, distribution of L, posterior means of m and u."""
        busy_a, busy_b = ({pair[side] for pair in self.links} for side in (0, 1))
        free = [
            (i, j)
            for i, j in self.levels
            if i not in busy_a and j not in busy_b and (i, j) not in self.nonlinks
        ]
        states = list(oracles.matchings([(pair, *pair) for pair in free]))
        log_p, means = [], []
        for state in states:
            log_p.append(self.log_prior(len(self.links) + len(state)))
            means.append([])
            for alpha, counts in zip(self.alphas, self.level_counts(state), strict=True):
                after = alpha + counts
                log_p[-1] += gammaln(after[alpha > 0]).sum() - gammaln(after.sum(1)).sum()
                means[-1].append(after / after.sum(1, keepdims=True))
        p = np.exp(log_p - logsumexp(log_p))
        probability = {pair: p @ [pair in state for state in states] for pair in free}
        n_links = np.bincount([len(self.links) + len(state) for state in states], p)
        return probability, n_links, np.tensordot(p, means, 1)

    @cached_property
    def levels(self):
        """Comparison vector of every pair in scope."""
        listed = oracles.all_pairs(self.fields, self.rows_a, self.rows_b, self.block)
        return {(i, j): levels for i, j, levels in listed}

    @cached_property
    def alphas(self):
        """Dirichlet parameters of m and u: a row a field, a column a level, 0 being missing."""
        out = np.zeros((2, len(self.fields), 1 + max(f.n_levels for f in self.fields)))
        for j, field in enumerate(self.fields):
            out[:, j, 1 : field.n_levels + 1] = field.m_prior, field.u_prior
        return out

    def level_counts(self, drawn):
        """Level counts of the links, known and drawn, and of all other pairs; none of missing."""
        counts = np.zeros_like(self.alphas)
        linked = {*self.links, *drawn}
        for pair, levels in self.levels.items():
            for j, h in enumerate(levels):
                counts[int(pair not in linked), j, h] += h > 0
        return counts

    def log_prior(self, n):
        """log p(C) of one matching with n links."""
        if isinstance(self.prior, bl.Penalty):
            return -self.prior.theta * n
        sides = self.rows_a, self.rows_b
        sizes = [Counter(tuple(row[k] for k in self.block) for row in rows) for rows in sides]
        ways = oracles.count_matchings([(sizes[0][key], sizes[1][key]) for key in sizes[0]])
        smaller = min(len(self.rows_a), len(self.rows_b))
        share = betaln(n + self.prior.alpha, smaller - n + self.prior.beta)
        choose = gammaln(smaller + 1) - gammaln(n + 1) - gammaln(smaller - n + 1)
        return choose + share - np.log(ways[n])

    @cached_property
    def blocks(self):
        sides = [
            pa.table(
                {name: [row[name] for row in rows] for name in rows[0]}
                | {"id": [f"{side}{i}" for i in range(len(rows))]}
            )
            for side, rows in (("A", self.rows_a), ("B", self.rows_b))
        ]
        pairs = bl.compare(*sides, self.fields, id="id", block=self.block)
        ids = [[(f"A{i}", f"B{j}") for i, j in given] for given in (self.links, self.nonlinks)]
        return posthoc_blocks(
            pairs,
            bl.fit_penalized(pairs, prior=self.prior),
            w0=-np.inf,
            links=ids[0] or None,
            nonlinks=ids[1] or None,
        )


def random_files(rng, prior):
    """Some 4 to 9 records a side, some links and non-links known, with or without a key."""
    fields = [
        bl.exact("x", m_prior=(0.7, 3), u_prior=(2, 0.6)),
        bl.levenshtein("y", cuts=(0, 0.5), m_prior=(0.5, 1, 4), u_prior=(3, 1, 1)),
    ]
    sides = [
        [
            {
                "x": str(rng.integers(3)) if rng.random() < 0.8 else None,
                "y": "".join(rng.choice(["a", "b"], 2)) if rng.random() < 0.9 else None,
                "key": "pq"[i % 2],
            }
            for i in range(rng.integers(4, 10))
        ]
        for _ in range(2)
    ]
    block = ("key",) if rng.random() < 0.5 else ()
    pairs = [(i, j) for i, j, _ in oracles.all_pairs(fields, *sides, block)]
    share = rng.uniform(0.3, 0.9)
    return TinyFiles(
        *sides,
        fields,
        prior,
        block,
        links=tuple((i, i) for i in range(rng.integers(3))),
        nonlinks=tuple(pair for pair in pairs if pair[0] != pair[1] and rng.random() < share),
    )
