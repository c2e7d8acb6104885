"""Comparison vectors (Eqs 1–2), counted and listed: the seam between data and statistics.

Statistics never see n_A × n_B pairs. They ask a `PairSource` for level counts, pattern counts and
the pairs above a weight; that is enough for everything in the paper (`docs/architecture.md`).
Everything above the seam, from the fit to the report, knows records only through this protocol.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bayeslink.comparing.fields import Field
from bayeslink.errors import InputError
from bayeslink.memory import Memory
from bayeslink.threads import Workers

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_PIECE = 1_000_000  # pairs whose weights are looked up at a time


@dataclass(frozen=True, slots=True)
class Scope:
    """The pairs that may link: n_A × n_B, or the pairs within each value of a blocking key.

    Or only some of these, spread evenly as far as is known: a share `density`. In one file the
    pairs are those of two different records, each once.
    """

    sizes_a: Ints  # records of A in each block of the blocking key
    sizes_b: Ints
    density: float = 1.0
    one_file: bool = False  # A and B are the same file
    left_out: int = 0  # pairs that are drawn and may not link: two of a file without duplicates

    @property
    def n_drawn(self) -> int:
        if self.one_file:
            return round(self.density * (int(self.sizes_a @ (self.sizes_a - 1)) // 2))
        return round(self.density * int(self.sizes_a @ self.sizes_b))

    @property
    def n_pairs(self) -> int:
        return self.n_drawn - self.left_out

    @property
    def max_links(self) -> int:
        """The most links there can be.

        In one file a link makes a record a copy of another. All records of a block but one can be
        copies: the records in scope less the number of blocks that have any.
        """
        if self.one_file:
            return int(np.maximum(self.sizes_a - 1, 0).sum())
        return int(np.minimum(self.sizes_a, self.sizes_b).sum())


@dataclass(frozen=True, slots=True)
class Files:
    """The files whose records stand together in one, and which of them are free of duplicates.

    Two records of such a file are no pair: not counted, not listed, refused where they are named.
    """

    names: tuple[str, ...]
    of: Ints  # file of each record
    clean: tuple[int, ...]  # numbers of the files in which nobody is twice

    @property
    def apart(self) -> Ints:
        """Of each record, its file if that is clean; −1: it may be there twice."""
        return np.where(np.isin(self.of, self.clean), self.of, -1)

    def left_out(self, a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.bool_]:
        """Which pairs of rows are two records of one clean file."""
        apart = self.apart
        return np.asarray((apart[a] >= 0) & (apart[a] == apart[b]))

    def refuse_within(self, named: Pairs) -> None:
        """Two records of a clean file cannot be said to be one person, nor two."""
        out = self.left_out(named.a, named.b)
        if out.any():
            of = sorted({self.names[k] for k in self.of[named.a[out]].tolist()})
            raise InputError(
                f"{int(out.sum()):,} of the pairs named are two records of {' or '.join(of)}, "
                f"where nobody is twice. Leave them out, or name {' and '.join(of)} among the "
                "files with duplicates."
            )


@dataclass(frozen=True, slots=True)
class LevelCounts:
    """Pairs at each level of each field, over all pairs in scope: counts[field, level].

    Where comparing all values of a field would take too long, some of its counts are estimates
    from `sampled` values drawn at random, each compared with all values of the other file; their
    standard errors are not 0. They add up to the number of pairs either way.
    """

    counts: Ints  # columns 0 = missing, 1 … k; unused levels of shorter fields are 0
    n_pairs: int
    sampled: tuple[int, ...] = ()  # by field; 0, or nothing at all: the counts are exact
    standard_errors: Floats | None = None

    @property
    def exact(self) -> bool:
        return not any(self.sampled)


@dataclass(frozen=True, slots=True)
class Patterns:
    """Distinct comparison vectors, of all fields or of chosen ones, and how many pairs have each.

    Where counting all pairs would take too long, `counts` are estimates from `sampled` pairs drawn
    at random, with their standard errors. They add up to the number of pairs either way.
    """

    levels: NDArray[np.uint8]  # one row a pattern, one column a field
    counts: Ints
    sampled: int = 0  # 0: the counts are exact
    standard_errors: Floats | None = None

    @property
    def exact(self) -> bool:
        return not self.sampled


@dataclass(frozen=True, slots=True)
class Pairs:
    """Listed pairs: row numbers of both files and the comparison vector."""

    a: NDArray[np.int32]
    b: NDArray[np.int32]
    levels: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.a)

    def numbered(self, n_b: int) -> Ints:
        """One number a pair, a n_B + b, to look pairs up by."""
        return self.a.astype(np.int64) * n_b + self.b

    def take(self, which: NDArray[Any]) -> Pairs:
        return Pairs(self.a[which], self.b[which], self.levels[which])

    def with_more(self, others: Pairs) -> Pairs:
        return Pairs(
            np.concatenate([self.a, others.a]),
            np.concatenate([self.b, others.b]),
            np.concatenate([self.levels, others.levels]),
        )


class Plan(Protocol):
    """How a search went about it; `str()` of it is for people."""

    def summary(self) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class Description:
    """What a source says of itself, as plain data: for provenance, and for people."""

    engine: str
    # of A and of B, or of the one file: label, kind, sha256, records, …
    inputs: tuple[Mapping[str, Any], ...]
    fields: tuple[Mapping[str, Any], ...]  # of each field: distinct, missing and invalid values, …
    warnings: tuple[str, ...]  # what is odd about the inputs
    notes: tuple[str, ...]  # what the counts do not say exactly
    plan: Plan | None  # of the search done last
    memory: Mapping[str, Any]  # budget and use
    resources: str  # the same in words
    names: tuple[str, str] = ("a", "b")  # of the two data sets, for tools that name them


@runtime_checkable
class PairSource(Protocol):
    """Where comparison vectors come from. Several engines, one contract (`tests/contract`).

    Rows number the records of a file from 0. Listed pairs rise by row of A, then by row of B.

    In one file A and B are the same records. A pair is two different ones, listed, counted and
    drawn once, as (lower row, higher row). Its levels do not depend on which comes first.
    """

    fields: Sequence[Field]
    one_file: bool  # the pairs are those of one file with itself
    files: Files | None  # several that stand together in the one
    scope: Scope
    tie_keys: tuple[NDArray[np.uint64], NDArray[np.uint64]]  # of each record, free of row order
    kind: str  # of tables that go back to the caller: "pandas", "polars" or "arrow"
    id_types: tuple[str | None, str | None]  # of whole-number ids, such as "int64"; None: text
    closed: bool  # no other pair may link than those that were given
    remote: bool  # records are in tables that other machines read; they write the results, too

    @property
    def workers(self) -> int | Workers:
        """Who does what can be done in pieces: so many threads here, or other machines."""

    @property
    def memory(self) -> Memory | None:
        """What keeps large arrays in files; None where all that is listed is in memory anyway."""

    @property
    def copies(self) -> tuple[Ints, Ints] | None:
        """Of each record of A and of B, the row of its first copy, if copies can be told."""

    @property
    def n_a(self) -> int: ...
    @property
    def n_b(self) -> int: ...
    @property
    def n_pairs(self) -> int: ...

    def level_counts(self) -> LevelCounts:
        """Pairs at each level of each field over all pairs in scope; `exact`, or `sampled`."""

    def pattern_counts(
        self, fields: Sequence[int] | None = None, rows: Ints | None = None
    ) -> Patterns:
        """Joint counts of the levels of chosen fields (all unless given), `exact` or `sampled`.

        Over all pairs in scope, or over those of chosen records of A; in one file, over those
        that hold a chosen record, each once. Two fields are a two-way table of levels.
        """

    def pairs_above(self, weights: Floats, threshold: float, *, in_files: bool = False) -> Pairs:
        """Every pair whose weights (one row a field, one column a level) sum above threshold.

        A list too long for the memory budget is refused (TooManyPairsError), so that the caller
        can ask for less; `in_files`: it is kept in files instead.
        """

    def levels_of(self, a: NDArray[np.int32], b: NDArray[np.int32]) -> NDArray[np.uint8]:
        """Comparison vectors of given pairs of rows."""

    def join_sizes(self) -> Ints:
        """[field, level]: pairs that `draw_pairs` draws from; 0 where it cannot draw."""

    def draw_pairs(
        self, field: int, level: int, uniforms: Floats
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Pairs drawn uniformly among those at a level of a field; of field −1: all in scope.

        `uniforms` holds three numbers in [0, 1) for each pair. The same numbers give the same
        records, whatever the order of rows. Where a pair drawn is not in scope, its rows are −1:
        `join_sizes` counts such pairs too.
        """

    def find(self, ids: Any) -> Pairs:
        """The pairs named by (id_a, id_b), with their comparison vectors, whatever their weight."""

    def together(self, rows: tuple[Ints, Ints]) -> PairSource | None:
        """Some records of A and of B, these first, as those of one file, compared in the same way.

        Levels that follow from the values may differ. None where the records are not at hand.
        """

    def ids(self, side: int, rows: NDArray[np.int32]) -> Any:
        """Ids of records of A (0) or of B (1), as an Arrow array of text."""

    def cells(self, side: int, rows: Sequence[int]) -> list[dict[str, str | None]]:
        """What was compared of records, by field, as a person reads it; None where missing."""

    def describe(self) -> Description:
        """What there is to say about the inputs, the counts and the search done last."""


def sum_weights(weights: Floats, levels: NDArray[np.uint8]) -> Floats:
    """Add each pair's weights field by field, in the order in which the kernels add them."""
    total = np.zeros(len(levels))
    for first in range(0, len(levels), _PIECE):
        piece = slice(first, first + _PIECE)
        for j in range(levels.shape[1]):
            total[piece] += weights[j, levels[piece, j]]
    return total


def count_levels(levels: NDArray[np.uint8], n_columns: int) -> Ints:
    """Rows at each level of each field."""
    counts = [np.bincount(column, minlength=n_columns) for column in levels.T]
    return np.array(counts, np.int64).reshape(levels.shape[1], n_columns)


def fields_seen(pairs: PairSource) -> NDArray[np.bool_]:
    """Which fields have a value on both sides of any pair: of the others nothing can be learned."""
    return np.asarray(pairs.level_counts().counts[:, 1:].any(axis=1))
