"""Post-hoc blocks laid out for the sampler."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayeslink.errors import BayeslinkError
from bayeslink.inference.model import Priors, at_least
from bayeslink.inference.posthoc import Blocks
from bayeslink.kernels.matchings import list_matchings
from bayeslink.kernels.sampling import Graph, Model
from bayeslink.pairs.source import Ints, count_levels
from bayeslink.pairs.vectors import distinct_vectors

MOST_LISTED = 250  # matchings of a block up to which it is drawn jointly


@dataclass(frozen=True, slots=True)
class Layout:
    """Candidate pairs in the order and form that `kernels.sampling` wants, and the model's counts.

    Edges are ordered by what they are (single-pair, listed, larger blocks) and by the records'
    tie keys, so that neither row order nor the naming of the files changes the draws.
    """

    model: Model
    graph: Graph
    n_known: int
    candidate: Ints  # position in blocks.candidates of each edge
    n_columns: int

    @property
    def kinds(self) -> dict[str, int]:
        """Number of blocks of each kind."""
        return {
            "single": self.graph.n_single,
            "joint": len(self.graph.joint_start) - 1,
            "large": len(self.graph.large_start) - 1,
        }

    @classmethod
    def of(cls, blocks: Blocks) -> Layout:
        pairs, candidates = blocks.pairs, blocks.candidates
        counts = pairs.level_counts().counts
        known = count_levels(blocks.known.levels, counts.shape[1])
        seen = count_levels(candidates.levels, counts.shape[1]) + known
        priors, all_counts = Priors.of(pairs.fields), at_least(counts, seen)
        _check_shapes(priors, all_counts - seen)
        patterns, _, pattern = distinct_vectors(candidates.levels)
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
        graph = Graph(
            patterns=patterns,
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
        )
        return cls(
            model=Model(priors.alpha_m, priors.alpha_u, priors.used, all_counts, known),
            graph=graph,
            n_known=len(blocks.known),
            candidate=np.concatenate([single, order]),
            n_columns=int(column_number.max(initial=-1)) + 1,
        )


def _check_shapes(priors: Priors, others: Ints) -> None:
    """Refuse Dirichlet parameters that are not positive: a draw with them would never end.

    `others` are the level counts of u with every candidate linked, the fewest there can be.
    """
    shapes = np.stack([priors.alpha_m, priors.alpha_u + others])[:, priors.used]
    if not (shapes > 0).all():
        raise BayeslinkError(
            f"m and u cannot be drawn: a Dirichlet parameter is {shapes.min():g}, and all should "
            "be positive, whatever the data and the settings. Please report this fault."
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
