"""Candidate pairs, all other listed pairs and the model, laid out for the sampler."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bayeslink.kernels.births import Records
from bayeslink.kernels.matchings import list_matchings
from bayeslink.kernels.parameters import Model, Vectors
from bayeslink.kernels.sampling import Graph
from bayeslink.linkage.posthoc import Blocks
from bayeslink.model.kernel_input import describe_vectors, kernel_model
from bayeslink.pairs.hashing import mix64
from bayeslink.pairs.source import Ints, Pairs
from bayeslink.pairs.vectors import distinct_vectors

MOST_LISTED = 250  # matchings of a block up to which it is drawn jointly


@dataclass(frozen=True, slots=True)
class Layout:
    """Candidate pairs in the order and form that `kernels.sampling` wants, and the model's counts.

    Edges are ordered by what they are (single-pair, listed, larger blocks) and by the records'
    tie keys, so that neither row order nor the naming of the files changes the draws.
    """

    model: Model
    vectors: Vectors
    graph: Graph
    records: Records
    low: Pairs  # listed but not swept, by pattern
    low_ends: NDArray[np.int32]  # their records, see `both_ends`
    low_start: Ints  # where each pattern's begin, and the end
    known: Ints  # links known to hold, by pattern
    candidate: Ints  # position in blocks.candidates of each edge
    n_columns: int

    @property
    def n_known(self) -> int:
        return int(self.known.sum())

    @property
    def kinds(self) -> dict[str, int]:
        """Number of blocks of each kind."""
        return {
            "single": self.graph.n_single,
            "joint": len(self.graph.joint_start) - 1,
            "large": len(self.graph.large_start) - 1,
        }

    @classmethod
    def of(cls, blocks: Blocks, restricted: bool) -> Layout:
        candidates = blocks.candidates
        low = blocks.low.take(np.arange(0)) if restricted else blocks.low
        structure = blocks.structure
        model = kernel_model(structure, (candidates, blocks.known, low))
        patterns, _, number = distinct_vectors(
            np.concatenate([candidates.levels, blocks.known.levels, low.levels])
        )
        number += 1  # the first is `BARRED`
        pattern, of_known, of_low = np.split(
            number, np.cumsum([len(candidates), len(blocks.known)])
        )
        low_order = _by_pattern(of_low, _random_order(blocks, low))
        low_counts = np.bincount(of_low, minlength=len(patterns) + 1)
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
        edges = np.concatenate([single, order])
        graph = Graph(
            edge_pattern=pattern[edges].astype(np.int32),
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
        no_pair = np.zeros((1, patterns.shape[1]), np.uint8)
        low = low.take(low_order)
        return cls(
            model=model,
            vectors=describe_vectors(structure, np.concatenate([no_pair, patterns])),
            graph=graph,
            records=_records(blocks, edges, graph.edge_pattern),
            low=low,
            low_ends=both_ends(low, blocks.pairs.n_a),
            low_start=np.concatenate([[0], np.cumsum(low_counts)]),
            known=np.bincount(of_known, minlength=len(patterns) + 1),
            candidate=edges,
            n_columns=int(column_number.max(initial=-1)) + 1,
        )


def _by_pattern(pattern: Ints, keys: NDArray[np.uint64]) -> Ints:
    """np.lexsort((keys, pattern)), in half of its time."""
    order = np.argsort(keys)
    if pattern.max(initial=0) < 1 << 16:
        pattern = pattern.astype(np.uint16)  # sorted by counting
    return order[np.argsort(pattern[order], kind="stable")]


def _random_order(blocks: Blocks, pairs: Pairs) -> NDArray[np.uint64]:
    """A number for each pair, free of row order and of which file is A."""
    keys_a, keys_b = blocks.pairs.tie_keys
    return mix64(keys_a[pairs.a] + keys_b[pairs.b])


def _records(blocks: Blocks, edges: Ints, pattern: NDArray[np.int32]) -> Records:
    """The edges of each record, of A and then of B."""
    pairs = blocks.pairs
    ends = both_ends(blocks.candidates.take(edges), pairs.n_a)
    n = pairs.n_a + pairs.n_b
    start = np.concatenate([[0], np.cumsum(np.bincount(ends.ravel(), minlength=n))])
    order = np.argsort(ends.ravel(), kind="stable") // 2
    return Records(start, order.astype(np.int32), ends, pattern, np.zeros(n, np.bool_))


def both_ends(pairs: Pairs, n_a: int) -> NDArray[np.int32]:
    """[pair, 2]: its records, those of B numbered after those of A."""
    return np.column_stack([pairs.a, pairs.b + np.int32(n_a)]).astype(np.int32)


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
