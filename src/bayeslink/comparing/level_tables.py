"""The level of each value of A against each value of B.

A field with V_A and V_B distinct values needs V_A × V_B comparisons, not n_A × n_B. Value pairs
above the worst level are kept as a sparse table; all others are at level 1.

Only a `custom` function is called for every value pair. Each other kind of comparison has a plan
that leaves out most of the pairs which cannot be above level 1 and none of those that can: texts
are compared 512 at a time and given up together, sets of words meet through an index of their rarer
words, numbers and dates within a range of sorted values, places within a ball, and rules find their
own pairs. The work is done in
threads, in pieces of some rows (values of A), each of bounded size: none takes long, so that Ctrl-C
need not wait for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise, product
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bayeslink.comparing.comparisons import (
    EARTH_KM,
    level_matrix,
    levels_of_pairs,
    number_tolerances,
    value_array,
)
from bayeslink.comparing.dates import OLD_STYLE, YEARS_OFF, exchanges
from bayeslink.comparing.fields import Field
from bayeslink.errors import SettingsError
from bayeslink.memory import Memory
from bayeslink.threads import Workers, check, run_pieces, threads_of

MAX_ENTRIES = 600_000_000  # of one table, 5 bytes each and as much again while it is put together
MAX_CALLS = 100_000_000  # of a custom function

_ROWS = 1024  # values of A in a piece of work
_MAX_HITS, _HIT_BYTES = 1 << 23, 30  # entries of a piece before it is halved, and bytes of each
_CELLS = 1 << 19  # cells of a matrix of levels, or value pairs looked up at once
_LETTER_PAIRS = 10**10  # letters of A × letters of B compared at once, some tenths of a second
_SLIPS = 92  # a date with a digit replaced, two exchanged, another year, or day and month swapped
LONG = 128  # letters; longer texts are too rare to come 512 of a length

TwoArrays = tuple[NDArray[Any], NDArray[Any]]
T = TypeVar("T")
Hits = tuple[NDArray[Any], NDArray[Any], NDArray[np.uint8]]  # row, column and level


class TableTooLargeError(SettingsError):
    """A field with more value pairs above level 1, or calls of a function, than are allowed."""


@dataclass(frozen=True, slots=True)
class LevelTable:
    """Levels above 1, by rows (values of A): CSR with sorted columns (values of B)."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    levels: NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class _Plan:
    """How the value pairs above level 1 are found, some rows at a time."""

    rows: NDArray[np.int32]  # values of A in the order in which they are taken
    edges: NDArray[np.int64]  # of the pieces of work
    hits: Callable[[int, int, int], Hits | None]  # (first, last, limit):
    # of rows[first:last], the rows counted from first; None if there are more than limit.


def level_table(
    field: Field,
    x: Sequence[Any],
    y: Sequence[Any],
    threads: int | Workers = 1,
    memory: Memory | None = None,
    seconds: float = 0.0,
) -> LevelTable:
    """Levels above 1 of the sorted distinct values x against y, frequency bands left aside.

    `seconds` is how long one CPU takes, about: what takes long is given to `Workers`.

    Memory: the table (5 bytes an entry), as much again while it is put together, both in files
    beyond the budget, and for each thread some 300 MB at most. A table of more than `MAX_ENTRIES`
    is refused.

    Where x is y, the values of one file, two of them have one level, that of the smaller with the
    larger, whatever a comparison makes of their order.
    """
    if means_equal(field):
        return equality_table(x, y)
    if not x or not y:
        return LevelTable(np.zeros(len(x) + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, "u1"))
    from bayeslink.kernels.table_entries import put_rows

    memory = Memory() if memory is None else memory
    most = memory.piece(_HIT_BYTES, _MAX_HITS, threads_of(threads))
    found: list[int] = []

    def keep(rows: Any, counts: Any, columns: Any, levels: Any) -> tuple[NDArray[Any], ...]:
        found.append(len(levels))
        if sum(found) > MAX_ENTRIES:
            raise _too_large(field, len(x), len(y))
        return rows, counts, memory.keep(columns), memory.keep(levels)

    parts = each_piece(field, x, y, keep, threads, most, seconds)
    indptr = np.zeros(len(x) + 1, np.int64)
    for rows, counts, *_ in parts:
        indptr[rows + 1] = counts
    np.cumsum(indptr, out=indptr)
    indices, levels = (memory.empty(indptr[-1], kind) for kind in (np.int32, np.uint8))
    while parts:
        put_rows(indptr, *parts.pop(), indices, levels)
    table = LevelTable(indptr, indices, levels)
    return mirrored(table, memory) if x is y and hangs_on_order(field) else table


def each_piece(
    field: Field,
    x: Sequence[Any],
    y: Sequence[Any],
    use: Callable[..., T],
    threads: int | Workers = 1,
    most: int | None = None,
    seconds: float = 0.0,
) -> list[T]:
    """What `use(rows, counts, columns, levels)` makes of each piece of the table.

    A piece is some rows, how many entries each has, and the columns, rising, and levels of these.
    It is halved while it has more than `most` entries.
    """
    from bayeslink.kernels.table_entries import by_row

    by_row.compile()  # here, as in the plans, not in threads: see `threads`
    plan = _plan(field, x, y)

    def work(first: int, last: int) -> list[tuple[NDArray[Any], ...]]:
        check()
        limit = (most or _MAX_HITS) if last - first > 1 else len(y)
        hits = plan.hits(first, last, limit)
        if hits is None:
            middle = (first + last) // 2
            return [*work(first, middle), *work(middle, last)]
        rows, columns = (part.astype(np.int32, copy=False) for part in hits[:2])
        ordered = by_row(rows, columns, hits[2], last - first, len(y))
        return [(plan.rows[first:last], *ordered)]

    def used(parts: list[tuple[NDArray[Any], ...]]) -> list[T]:
        return [use(*part) for part in parts]

    workers = 1 if field.kind == "custom" and isinstance(threads, int) else threads
    pieces = pairwise(plan.edges.tolist())
    return list(chain.from_iterable(run_pieces(work, pieces, workers, seconds, used)))


def _too_large(field: Field, n_a: int, n_b: int) -> TableTooLargeError:
    return TableTooLargeError(
        f"field {field.name!r} has {n_a:,} distinct values in A and {n_b:,} in B, and more than "
        f"{MAX_ENTRIES:,} value pairs above the worst level, the most that are kept. Use stricter "
        "cuts, or a comparison that fewer values pass, such as exact or, for several words, tokens."
    )


def hangs_on_order(field: Field) -> bool:
    """Whether the level of two values may differ from that of the same in the other order."""
    return field.kind in ("custom", "jaro_winkler")


def mirrored(table: LevelTable, memory: Memory) -> LevelTable:
    """The part of a square table on and above its diagonal, and the same below."""
    n = len(table.indptr) - 1
    whole = sparse.csr_array((table.levels, table.indices, table.indptr), (n, n))
    upper = sparse.triu(whole, format="csr")
    both = (upper + sparse.triu(upper, 1, format="csr").T).tocsr()
    both.sort_indices()
    indices, levels = both.indices.astype(np.int32), both.data.astype(np.uint8)
    return LevelTable(both.indptr.astype(np.int64), memory.keep(indices), memory.keep(levels))


def means_equal(field: Field) -> bool:
    """Whether all levels above 1 are the same value in both records."""
    if field.kind in ("levenshtein", "damerau_levenshtein"):
        return field.cuts == (0,)
    return field.kind == "exact" or (field.kind == "jaro_winkler" and field.cuts == (1,))


def equality_table(x: Sequence[Any], y: Sequence[Any]) -> LevelTable:
    """Level 2 where both values are the same."""
    where = {value: i for i, value in enumerate(y)}
    matches = np.array([where.get(value, -1) for value in x], np.int32)
    found = matches >= 0
    indptr = np.concatenate([[0], np.cumsum(found)]).astype(np.int64)
    indices = matches[found]
    return LevelTable(indptr, indices, np.full(len(indices), 2, np.uint8))


def _steps(n: int, size: int) -> NDArray[np.int64]:
    return np.append(np.arange(0, n, size), n)


def _edges(piece: NDArray[Any]) -> NDArray[np.int64]:
    """Edges of pieces, given the number of each row's, which rise."""
    return np.append(np.flatnonzero(np.diff(piece, prepend=-1)), len(piece))


def _kept(rows: NDArray[Any], columns: NDArray[Any], levels: NDArray[np.uint8]) -> Hits:
    """What is above level 1."""
    above = levels > 1
    return rows[above], columns[above], levels[above]


# --- everything against everything ----------------------------------------------------------------


def _matrix_hits(field: Field, x: Sequence[Any], y: Sequence[Any], limit: int) -> Hits:
    """Stops early, with more than `limit` hits, when there are more than that."""
    parts: list[Hits] = []
    cells = min(_CELLS, max(1, _LETTER_PAIRS // (_longest(x) * _longest(y))))
    width = min(len(y), cells)
    corners = product(range(0, len(x), height := max(1, cells // width)), range(0, len(y), width))
    for row, column in corners:
        check()
        matrix = level_matrix(field, x[row : row + height], y[column : column + width], 1)
        rows, columns = np.nonzero(matrix > 1)
        parts.append((rows + row, columns + column, matrix[rows, columns]))
        if sum(len(part[0]) for part in parts) > limit:
            break
    return _joined(parts)


def _longest(values: Sequence[Any]) -> int:
    """Letters of the longest text; 1 for what is no text."""
    return max((len(v) for v in values if isinstance(v, str)), default=1) or 1


def _joined(parts: list[Hits]) -> Hits:
    rows, columns, levels = (np.concatenate(column) for column in zip(*parts, strict=True))
    return rows, columns, levels


def _matrix_plan(field: Field, x: Sequence[Any], y: Sequence[Any]) -> _Plan:
    if field.kind == "custom" and len(x) * len(y) > MAX_CALLS:
        raise TableTooLargeError(
            f"custom field {field.name!r} has {len(x):,} distinct values in A and {len(y):,} in B, "
            f"and its function would be called {len(x) * len(y):,} times; at most {MAX_CALLS:,} "
            "are allowed. Let normalise even out what does not matter, or use one of the "
            "comparisons that need not look at every pair."
        )

    def hits(first: int, last: int, limit: int) -> Hits:
        left_of = first if field.kind == "custom" and x is y else 0  # what is `mirrored` later
        rows, columns, levels = _matrix_hits(field, x[first:last], y[left_of:], len(x) * len(y))
        return rows, columns + left_of, levels

    edges = _steps(len(x), max(1, _CELLS // len(y)))
    return _Plan(np.arange(len(x), dtype=np.int32), edges, hits)


# --- texts ----------------------------------------------------------------------------------------


def text_plan(field: Field, x: Sequence[str], y: Sequence[str]) -> _Plan:
    from bayeslink.kernels import distances
    from bayeslink.kernels.bit_vectors import LANES

    kind = {
        "levenshtein": distances.LEVENSHTEIN,
        "damerau_levenshtein": distances.SWAPS,
        "jaro_winkler": distances.JARO_WINKLER,
    }[field.kind]
    cuts = np.array(field.cuts)
    (rows, start_a), (columns, start_b) = _by_length(x), _by_length(y)
    (text_a, text_b), n_letters = _in_letters([x[r] for r in rows], [y[c] for c in columns])
    short_a, short_b = (
        int(np.searchsorted(np.diff(start), LONG, "right")) for start in (start_a, start_b)
    )
    long_y = [y[c] for c in columns[short_b:]]
    known_b = text_b, start_b[: short_b + 1], columns[:short_b]
    blocks = _blocks(np.diff(known_b[1]), LANES)
    distances.close_texts.compile()
    letters = start_a[1:] * float(start_b[-1])

    def hits(first: int, last: int, limit: int) -> Hits | None:
        middle = max(first, min(last, short_a))
        parts: list[Hits] = []
        if first < middle and short_b:
            here = kind, cuts, text_a, start_a, first, middle
            parts.append(distances.close_texts(*here, *known_b, blocks, n_letters, limit))
        if first < middle and long_y:
            r, c, levels = _matrix_hits(field, [x[i] for i in rows[first:middle]], long_y, limit)
            parts.append((r, columns[short_b + c], levels))
        if middle < last:
            r, c, levels = _matrix_hits(field, [x[i] for i in rows[middle:last]], y, limit)
            parts.append((r + middle - first, c, levels))
        return _joined(parts) if sum(len(part[0]) for part in parts) <= limit else None

    return _Plan(rows, _edges(np.arange(len(x)) // _ROWS + letters // _LETTER_PAIRS), hits)


def _by_length(values: Sequence[str]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Values by length, rising within a length, and where each begins among all letters."""
    lengths = np.array([len(value) for value in values], np.int64)
    order = np.argsort(lengths, kind="stable")
    return order.astype(np.int32), np.concatenate([[0], np.cumsum(lengths[order])])


def _in_letters(*sides: Sequence[str]) -> tuple[list[NDArray[np.int32]], int]:
    """Texts of each side as one array of letters, numbered through, and how many there are."""
    points = [np.frombuffer("".join(side).encode("utf-32-le"), np.uint32) for side in sides]
    used = np.zeros(0x110000, bool)
    for side in points:
        used[side] = True
    number = np.cumsum(used, dtype=np.int32) - 1
    return [number[side] for side in points], int(used.sum())


def _blocks(lengths: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Bounds of blocks of one length and at most so many values, given rising lengths."""
    place = np.arange(len(lengths)) - np.searchsorted(lengths, lengths)  # within its length
    return np.append(np.flatnonzero(place % most == 0), len(lengths))


# --- sets of words --------------------------------------------------------------------------------


def _word_plan(field: Field, x: Sequence[str], y: Sequence[str]) -> _Plan:
    if field.cuts[-1] == 0:  # no word in common is enough
        return _matrix_plan(field, x, y)
    from bayeslink.kernels.table_entries import close_sets

    close_sets.compile()
    numbers: dict[str, int] = {}
    (sizes_a, words_a), (sizes_b, words_b) = _word_sets(x, numbers), _word_sets(y, numbers)
    frequency = np.bincount(words_b, minlength=len(numbers))
    rarest = np.argsort(frequency, kind="stable")
    rank = np.empty(len(numbers), np.int32)
    rank[rarest] = np.arange(len(numbers))
    columns = np.argsort(sizes_b, kind="stable")
    position = np.empty(len(y), np.int32)
    position[columns] = np.arange(len(y))
    words_a, words_b = rank[words_a], rank[words_b]
    of_a, of_b = np.repeat(np.arange(len(x)), sizes_a), np.repeat(position, sizes_b)
    start_a, start_b, post_start = (
        np.concatenate([[0], np.cumsum(n)]) for n in (sizes_a, sizes_b[columns], frequency[rarest])
    )
    known_a = words_a[np.lexsort((words_a, of_a))], start_a
    known_b = words_b[np.lexsort((words_b, of_b))], start_b, columns.astype(np.int32)
    of_size = np.searchsorted(sizes_b[columns], np.arange(sizes_b.max() + 2))
    posts = of_b[np.lexsort((of_b, words_b))]
    cuts = np.array(field.cuts)

    def hits(first: int, last: int, limit: int) -> Hits | None:
        found = close_sets(cuts, *known_a, first, last, *known_b, of_size, posts, post_start, limit)
        return found if len(found[0]) <= limit else None

    return _Plan(np.arange(len(x), dtype=np.int32), _steps(len(x), _ROWS), hits)


def _word_sets(
    values: Sequence[str], numbers: dict[str, int]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Number of distinct words of each value, and all of them, as numbers."""
    sets = [{numbers.setdefault(word, len(numbers)) for word in v.split()} for v in values]
    sizes = np.array([len(words) for words in sets], np.int64)
    return sizes, np.fromiter(chain.from_iterable(sets), np.int32, int(sizes.sum()))


# --- numbers, dates, places -----------------------------------------------------------------------


def _number_plan(field: Field, x: Sequence[float], y: Sequence[float]) -> _Plan:
    left, right = value_array(field, x), value_array(field, y)
    return _range_plan(field, left, right, right, number_bounds(field, left))


def number_bounds(field: Field, values: NDArray[np.float64]) -> TwoArrays:
    """Least and largest number within the last cut of each of `values`, rounded outwards."""
    widest = number_tolerances(field)[-1]
    size = np.abs(values)
    with np.errstate(over="ignore"):
        if not field.options["relative"]:
            slack = widest + 1e-12 * (size + widest)
            return values - slack, values + slack
        if widest > 0.999:  # 0 and numbers of the other sign may be as near
            return np.full(len(values), -np.inf), np.full(len(values), np.inf)
        inner = size * (1 - widest) * (1 - 1e-12) - 1e-300
        outer = size / (1 - widest) * (1 + 1e-12) + 1e-300
    return np.where(values < 0, -outer, inner), np.where(values < 0, -inner, outer)


def _date_plan(field: Field, x: Sequence[int], y: Sequence[int]) -> _Plan:
    left, right = value_array(field, x), value_array(field, y)
    days, dates = left[:, 2], right[:, 0]
    reach = max(field.cuts[-1], OLD_STYLE if field.options["calendar"] else 0)
    vague = field.options["partial"] or field.options["filler"]

    def slips(first: int, last: int) -> TwoArrays:
        """Dates that one slip makes of another and that are among those of B.

        And those of the same year, where a date may not be known to the day.
        """
        here = left[first:last, :1]
        slipped = [left[first:last, 1:2]]
        for place in 10 ** np.arange(8):
            slipped.append(here + (np.arange(10) - here // place % 10) * place)
        slipped += exchanges(here)
        slipped += [here + sign * step for step in YEARS_OFF for sign in (-1, 1)]
        candidates = np.concatenate(slipped, 1)
        columns = np.minimum(np.searchsorted(dates, candidates), len(dates) - 1)
        rows, which = np.nonzero(dates[columns] == candidates)
        found = rows, columns[rows, which]
        if not vague:
            return found
        year = here[:, 0] // 10000 * 10000
        begin, end = (np.searchsorted(dates, year + k) for k in (0, 10000))
        n = end - begin
        at = np.arange(n.sum()) + np.repeat(begin - np.cumsum(n) + n, n)
        rows, columns = np.repeat(np.arange(last - first), n), at
        loose = (here[rows, 0] % 100 == 0) | (dates[columns] % 100 == 0)
        loose |= (here[rows, 0] % 10000 == 101) | (dates[columns] % 10000 == 101)
        return np.append(found[0], rows[loose]), np.append(found[1], columns[loose])

    return _range_plan(field, left, right, right[:, 2], (days - reach, days + reach), slips)


def _range_plan(
    field: Field,
    left: NDArray[Any],
    right: NDArray[Any],
    keys: NDArray[Any],
    bounds: TwoArrays,
    slips: Callable[[int, int], TwoArrays] | None = None,
) -> _Plan:
    """Look at the values of B whose `keys` lie within bounds, and at `slips` besides.

    A value may be looked at twice: it is kept once.
    """
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    begin = np.searchsorted(keys, bounds[0], "left")
    counts = np.maximum(np.searchsorted(keys, bounds[1], "right") - begin, 0)
    by_column = [np.ascontiguousarray(side.T) for side in (left, right)]  # quicker to take from

    def hits(first: int, last: int, limit: int) -> Hits:
        n = counts[first:last]
        rows = np.repeat(np.arange(last - first), n)
        columns = order[np.arange(n.sum()) + np.repeat(begin[first:last] - np.cumsum(n) + n, n)]
        if slips is not None:
            r, c = slips(first, last)
            rows, columns = np.append(rows, r), np.append(columns, c)
        x, y = (
            np.take(side, at, axis=-1).T
            for side, at in zip(by_column, (first + rows, columns), strict=True)
        )
        return _kept(rows, columns, levels_of_pairs(field, x, y))

    edges = _edges((np.cumsum(counts + _SLIPS) - 1) // _CELLS)
    return _Plan(np.arange(len(left), dtype=np.int32), edges, hits)


def _place_plan(
    field: Field, x: Sequence[tuple[float, float]], y: Sequence[tuple[float, float]]
) -> _Plan:
    from scipy.spatial import cKDTree

    left, right = value_array(field, x), value_array(field, y)
    points, tree = _on_the_sphere(left), cKDTree(_on_the_sphere(right))
    angle = field.cuts[-1] / EARTH_KM * (1 + 1e-9) + 1e-9
    chord = 2 * np.sin(angle / 2) if angle < 3.1 else 3.0  # 3: everywhere

    def hits(first: int, last: int, limit: int) -> Hits | None:
        here = cKDTree(points[first:last])
        if here.count_neighbors(tree, chord) > min(limit, _CELLS) and last - first > 1:
            return None
        near = here.sparse_distance_matrix(tree, chord, output_type="ndarray")
        rows, columns = near["i"], near["j"]
        return _kept(rows, columns, levels_of_pairs(field, left[first + rows], right[columns]))

    return _Plan(np.arange(len(x), dtype=np.int32), _steps(len(x), _ROWS), hits)


def _on_the_sphere(degrees: NDArray[np.float64]) -> NDArray[np.float64]:
    """Points of the unit sphere: distances through it are as good as distances on it."""
    latitude, longitude = np.radians(degrees).T
    across = np.cos(latitude)
    return np.stack([across * np.cos(longitude), across * np.sin(longitude), np.sin(latitude)], 1)


# --- rules ----------------------------------------------------------------------------------------


def _ladder_plan(field: Field, x: Sequence[str], y: Sequence[str]) -> _Plan:
    rows, start_a = _by_length(x)  # as edit distances want them
    letters = start_a[1:] * float(sum(map(len, y)))
    find = field.options["ladder"].find([x[r] for r in rows], y)
    return _Plan(rows, _edges(np.arange(len(x)) // _ROWS + letters // _LETTER_PAIRS), find)


_PLANS: dict[str, Callable[..., _Plan]] = {
    "levenshtein": text_plan,
    "damerau_levenshtein": text_plan,
    "jaro_winkler": text_plan,
    "tokens": _word_plan,
    "numeric": _number_plan,
    "date": _date_plan,
    "geo": _place_plan,
    "custom": _matrix_plan,
}


def _plan(field: Field, x: Sequence[Any], y: Sequence[Any]) -> _Plan:
    return _PLANS.get(field.kind, _ladder_plan)(field, x, y)
