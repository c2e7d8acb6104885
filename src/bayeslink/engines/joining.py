"""Runs the joins of a search."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayeslink.engines.plan import SearchPlan, describe
from bayeslink.engines.search import Join, Problem, choose_caps, make_joins
from bayeslink.engines.tables import EVERY_PAIR, Tables
from bayeslink.engines.work import MAX_PIECES, in_pieces
from bayeslink.errors import BayeslinkError
from bayeslink.patterns import Pairs

MAX_LISTED = 100_000_000  # pairs that a search lists before it gives up with advice


class TooManyPairsError(BayeslinkError):
    """A threshold so low that the pairs above it do not fit in memory."""


def find_above(tables: Tables, problem: Problem, threads: int) -> tuple[Pairs, SearchPlan]:
    """Every pair above the threshold, by row of A, then of B, and how they were found."""
    from bayeslink.kernels.search import by_record

    caps = choose_caps(problem)
    joins = make_joins(problem, caps)
    plan = describe(problem, caps, joins)
    pieces, visited = [_nothing(problem)], []
    for join in joins:
        limit = MAX_LISTED - sum(len(a) for a, *_ in pieces)
        found = _run(tables, problem, join, limit, threads)
        if sum(len(a) for a, *_ in found) > limit:
            raise TooManyPairsError(
                f"more than {MAX_LISTED:,} pairs have a weight above {problem.threshold:.3g}. Use "
                "a higher theta or w0, more fields, or a blocking key."
            )
        pieces += [(a, b, levels) for a, b, levels, _ in found]
        visited.append(sum(n for *_, n in found))
    a, b, levels = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
    a, b = tables.order_a[a], tables.order_b[b]
    order = by_record(a, b, int(a.max(initial=-1)) + 1, int(b.max(initial=-1)) + 1)
    done = tuple(replace(j, visited=n) for j, n in zip(plan.joins, visited, strict=True))
    return Pairs(a[order], b[order], levels[order]), replace(plan, joins=done, listed=len(a))


def _nothing(problem: Problem) -> tuple[NDArray[Any], ...]:
    return *np.zeros((2, 0), np.int32), np.zeros((0, len(problem.fields)), np.uint8)


def _run(tables: Tables, problem: Problem, join: Join, limit: int, threads: int) -> list[Any]:
    """Pieces (rows of A, rows of B, levels, pairs visited) of what a join finds."""
    from bayeslink.kernels import search as kernels

    class_a, class_b, unions = tables.classes
    wanted = np.logical_or.reduce((join.room > -np.inf)[unions.of], axis=1)  # [class of A, level]
    posts, start = tables.posts(join.field)
    file_a = tables.codes_a, class_a.of, tables.from_b, tables.to_b
    file_b = np.column_stack([tables.codes_b, class_b.of])[posts], posts, start
    plan = (
        join.field, join.checks, join.n_looks, unions.of, wanted, join.room, join.best, join.upper,
    )  # fmt: skip
    order = _order(tables, problem, join, wanted)
    counted = np.zeros(MAX_PIECES, np.int64)

    def work(first: int, last: int, piece: int) -> Any:
        return kernels.join(
            order, first, last, file_a, file_b, tables.csr, plan, problem.weights,
            problem.threshold, counted, piece, limit,
        )  # fmt: skip

    cost = join.expected + float(len(order) * tables.neighbours[join.looks].sum())
    return in_pieces(work, len(order), cost, threads)


def _order(
    tables: Tables, problem: Problem, join: Join, wanted: NDArray[np.bool_]
) -> NDArray[np.int32]:
    """Records of A that the join concerns, by value and class, then by the longest to lay out."""
    classes = tables.classes[0]
    concerned = np.logical_or.reduce(wanted, axis=1)[classes.of]
    if join.field != EVERY_PAIR:
        concerned &= tables.codes_a[:, join.field] >= 0
    rows = np.flatnonzero(concerned)
    key = tables.groups(join.field)[rows] * len(classes.states) + classes.of[rows]
    if len(join.looks):
        longest = join.looks[np.argmax(tables.neighbours[join.looks])]
        key = key * (len(tables.indptr) + 1) + tables.codes_a[rows, longest] + 1
    return rows[np.argsort(key)].astype(np.int32)
