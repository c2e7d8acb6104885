"""Runs the joins of a search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayeslink.engines.arrays import EVERY_PAIR, PieceOfB, Tables
from bayeslink.engines.plan import SearchPlan, describe
from bayeslink.engines.search import Join, Problem, choose_caps, make_joins
from bayeslink.engines.work import MAX_PIECES, in_pieces
from bayeslink.errors import TooManyPairsError
from bayeslink.memory import Memory
from bayeslink.pairs.source import Pairs
from bayeslink.threads import Workers

# Pairs that a search lists, in memory or in files, before it gives up with advice.
MAX_LISTED, MAX_IN_FILES = 100_000_000, 1_000_000_000
# Pairs that it looks at: so many, or so many for each record of either file, whichever is more.
# The candidates among 10^12 take 4 × 10^9.
MAX_VISITED, VISITED_A_RECORD = 2e10, 2e4
_SORTED = 2_000_000  # pairs sorted at a time

Found = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.uint8]]  # rows of A, of B, levels


def find_above(
    tables: Tables,
    problem: Problem,
    threads: int | Workers,
    in_files: bool = False,
    settle: Callable[[Found], Found] = lambda found: found,
    most: int | None = None,
) -> tuple[Pairs, SearchPlan]:
    """Every pair above the threshold, by row of A, then of B, and how they were found.

    `in_files` lets a list be longer than the memory budget has room for. `settle` may change the
    levels of what a join finds, and drop pairs; `most` is the number of pairs that it takes from a
    join, where that is not what may be listed.
    """
    caps = choose_caps(problem)
    joins = make_joins(problem, caps)
    plan = describe(problem, caps, joins)
    most_visited = max(MAX_VISITED, VISITED_A_RECORD * (len(tables.codes_a) + len(tables.codes_b)))
    if plan.expected > most_visited:
        raise TooManyPairsError(
            f"to find the pairs with a weight above {problem.threshold:.3g}, about "
            f"{plan.expected:.0e} would have to be looked at, and at most {most_visited:.0e} are: "
            "too many records have the same values. Add a field that tells people apart, or a "
            "blocking key."
        )
    pieces, visited = [_nothing(problem)], []
    memory = tables.memory
    fitting = memory.most_listed(len(problem.fields))
    most_listed = MAX_IN_FILES if in_files else min(MAX_LISTED, fitting)

    def use(found: Found) -> Found:
        a, b, levels = settle(found)
        return (memory.keep(a), memory.keep(b), memory.keep(levels)) if in_files else (a, b, levels)

    for join in joins:
        limit = most_listed - sum(len(a) for a, *_ in pieces)
        found = _run(tables, problem, join, most or limit, threads, use)
        if sum(len(a) for (a, *_), _ in found) > limit:
            limit_is = "are listed"
            if most_listed == fitting:
                limit_is = "fit into the memory budget (--memory)"
            raise TooManyPairsError(
                f"more than {most_listed:,} pairs have a weight above {problem.threshold:.3g}, the "
                f"most that {limit_is}. Use a higher theta or w0, more fields, or a blocking key."
            )
        pieces += [piece for piece, _ in found]
        visited.append(sum(n for _, n in found))
    pairs = _sorted_together(pieces, memory)
    done = tuple(replace(j, visited=n) for j, n in zip(plan.joins, visited, strict=True))
    return pairs, replace(plan, joins=done, listed=len(pairs))


def _sorted_together(pieces: list[Found], memory: Memory) -> Pairs:
    """All pieces as one list by row of A, then of B; sorted so many pairs at a time."""
    from bayeslink.kernels.search import by_record

    n_fields = pieces[0][2].shape[1]
    a, b = (memory.concatenate([p[side] for p in pieces], np.int32) for side in (0, 1))
    levels = memory.concatenate([p[2].ravel() for p in pieces], np.uint8).reshape(-1, n_fields)
    pieces.clear()
    n_a, n_b = (int(rows.max(initial=-1)) + 1 for rows in (a, b))
    edges = np.linspace(0, n_a, len(a) // _SORTED + 2).astype(int).tolist()
    out = Pairs(
        memory.empty(len(a), np.int32),
        memory.empty(len(a), np.int32),
        memory.empty(levels.size, np.uint8).reshape(-1, n_fields),
    )
    at = 0
    for first, last in pairwise(edges):
        order = np.flatnonzero((a >= first) & (a < last))
        order = order[by_record(a[order], b[order], n_a, n_b)]
        part = slice(at, at + len(order))
        out.a[part], out.b[part], out.levels[part] = a[order], b[order], levels[order]
        at += len(order)
    return out


def _nothing(problem: Problem) -> Found:
    none = np.zeros(0, np.int32)
    return none, none, np.zeros((0, len(problem.fields)), np.uint8)


def _run(
    tables: Tables,
    problem: Problem,
    join: Join,
    limit: int,
    threads: int | Workers,
    settle: Callable[[Found], Found],
) -> list[tuple[Found, int]]:
    """What a join finds, in pieces, and how many pairs it visited for each."""
    unions = tables.classes[2]
    wanted = np.logical_or.reduce((join.room > -np.inf)[unions.of], axis=1)  # [class of A, level]
    order = _order(tables, join, wanted)
    second = join.kind, join.second, join.seconds, *tables.beside(_caught_again(problem, join))
    most = records_at_a_time(tables, threads)
    done: list[tuple[Found, int]] = []
    for piece in tables.pieces_b(most):
        left = limit - sum(len(a) for (a, *_), _ in done)
        if left >= 0:
            done += _run_piece(
                tables, piece, problem, join, wanted, second, order, left, threads, settle
            )
    return done


def _caught_again(problem: Problem, join: Join) -> NDArray[np.bool_]:
    """[field, level]: whether it is caught a second time in some pairs."""
    lowest = join.second.min(axis=0, initial=np.inf)
    caught = problem.weights > lowest[:, None]
    caught[:, :2] = False
    return np.pad(caught, ((0, 0), (0, 256 - caught.shape[1])))


def records_at_a_time(tables: Tables, threads: int | Workers) -> int:
    """Records of B that a join goes through at a time, so that their index fits the memory."""
    if not isinstance(threads, int):
        return threads.records
    return tables.memory.piece(4 * (tables.n_fields + 3), max(1000, len(tables.codes_b)), 1)


def _run_piece(
    tables: Tables,
    piece: PieceOfB,
    problem: Problem,
    join: Join,
    wanted: NDArray[np.bool_],
    second: tuple[NDArray[Any], ...],
    order: NDArray[np.int32],
    limit: int,
    threads: int | Workers,
    settle: Callable[[Found], Found],
) -> list[tuple[Found, int]]:
    """The same of one piece of B."""
    from bayeslink.kernels import search as kernels

    kernels.join.compile()  # here, not in threads: see `threads`
    class_a, _, unions = tables.classes
    codes_a, from_b, to_b = tables.codes_a, tables.from_b, tables.to_b
    csr, weights, threshold, nothing = (
        tables.csr, problem.weights, problem.threshold, _nothing(problem),
    )  # fmt: skip
    plan = (
        join.field, join.checks, join.n_looks, unions.of, wanted, join.room, join.best, join.upper,
    )  # fmt: skip
    own = tables.own(join.field, piece.first)
    counted = np.zeros(MAX_PIECES, np.int64)
    rooms: list[Any] = []  # that no thread is in just now

    def work(first: int, last: int, number: int) -> tuple[Found, int]:
        if counted.sum() > limit:
            return nothing, 0
        file_a, file_b = (codes_a, class_a.of, *piece.within(from_b, to_b)), piece.laid(join.field)
        room = rooms.pop() if rooms else kernels.room_of(file_b, csr[-1][-1], len(join.seconds))
        a, b, levels, visited = kernels.join(
            order, first, last, own, file_a, file_b, csr, plan, second,
            weights, threshold, counted, number, limit, room,
        )  # fmt: skip
        rooms.append(room)
        return (a, b, levels), visited

    def use(found: tuple[Found, int]) -> tuple[Found, int]:
        (a, b, levels), visited = found
        rows_a, rows_b = tables.rows(a, b + piece.first)
        return settle((rows_a, rows_b, levels)), visited

    share = len(piece.codes) / max(1, len(tables.codes_b))
    cost = share * join.expected + float(len(order) * tables.neighbours[join.looks].sum())
    return in_pieces(work, len(order), cost, threads, use)


def _order(tables: Tables, join: Join, wanted: NDArray[np.bool_]) -> NDArray[np.int32]:
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
