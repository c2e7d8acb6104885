"""Joins of A with B on one field: the pairs at the values beside each other, visited once.

Fields share the flat arrays of `kernels.pair_counts`. The records of B come sorted by their value
in the join's field ("posts"), so that those with one value are one range; their last column is
their class. The records of A come sorted by value and class, so that one gathering of candidates
serves all records of a *run*, which have the same value and class. `engines.search` says which
pairs a join has to visit, and why visiting those is enough.
"""

from typing import Any

import numpy as np

from bayeslink.kernels import helper, kernel, maker

LOOKS = 4  # fields looked up for every pair visited

A_TYPE = "Tuple((i4[:,::1],i4[::1],i8[::1],i8[::1]))"
B_TYPE = "Tuple((i4[:,::1],i4[::1],i8[::1]))"
TABLE_TYPE = "Tuple((i8[::1],i4[::1],u1[::1],i8[::1]))"
_PLAN = "Tuple((i8,i8[::1],i8,i4[:,::1],b1[:,::1],f8[:,::1],f8[:,::1],f8[:,::1]))"
_SECOND = "Tuple((i4[:,::1],f8[:,::1],i8[::1],i8[::1],i4[::1],u1[::1]))"
OWN_TYPE = "Tuple((b1,i8,i8))"  # in one file: whether, first row of the field, first of the piece
_ROOM = (
    "Tuple((u1[::1],i8[::1],i8[::1],u1[::1],i4[::1],u1[::1],f8[::1],i4[::1],i4[:,::1],i4[::1],"
    "i4[::1],i4[:,::1],i8[::1]))"
)
# A value's neighbours are laid out over the slots of B, to look at candidates or to compare them,
# if they are fewer than this for each; otherwise candidates are searched for among the neighbours.
_LAY_TO_LOOK, _LAY_TO_COMPARE = 50, 8
_LONG = 8  # records of a run from which its candidates are put into lists, to be caught again


@helper
def first_from(values, low, high, least):
    """Where the first of values[low … high], which rise, is that is not below `least`."""
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < least:
            low = middle + 1
        else:
            high = middle
    return low


@helper
def level_at(row, slot, missing, indptr, slots, levels):
    """Level of a value of A (row; −1 is missing) against a value of B (slot)."""
    if row < 0 or slot == missing:
        return np.uint8(0)
    end = indptr[row + 1]
    at = first_from(slots, indptr[row], end, slot)
    return levels[at] if at < end and slots[at] == slot else np.uint8(1)


@helper
def own_slot(row, own):
    """Slot of a record's own value, from the field's first on; 0 in two files."""
    return row - own[1] if own[0] and row >= 0 else 0


@helper
def posts_before(a, slot, posts, start, own):
    """How many posts come before those that a record is paired with.

    In one file a pair is met once, from the record that comes first among the posts.
    """
    return first_from(posts, start[slot], start[slot + 1], a + 1 - own[2]) if own[0] else 0


@helper
def ranges_beside(
    field, row, least, low_b, high_b, wanted, posts, start, table, lows, highs, level_of
):  # fmt: skip
    """Ranges of posts at the values beside a value of A, where the level is wanted.

    Only posts of records low_b … high_b of B, and of slots from the field's `least` on. Without a
    field, that is all of them. The ranges rise.
    """
    indptr, slots, levels, base = table
    if field < 0:
        lows[0], highs[0], level_of[0] = low_b, high_b, 1
        return 1
    n = 0
    from_p = indptr[row]
    if least > 0:
        from_p = first_from(slots, from_p, indptr[row + 1], base[field] + least)
    for p in range(from_p, indptr[row + 1]):
        slot = slots[p] - base[field]
        lows[n] = start[slot]
        highs[n] = start[slot + 1]
        level_of[n] = levels[p]
        n += wanted[levels[p]]
    if high_b - low_b < len(posts):
        for r in range(n):
            lows[r] = first_from(posts, lows[r], highs[r], low_b)
            highs[r] = first_from(posts, lows[r], highs[r], high_b)
    return n


@helper
def length(row, indptr):
    """Values of B above level 1 beside a value of A."""
    return indptr[row + 1] - indptr[row] if row >= 0 else 0


@helper
def lay(j, row, laid_row, table, laid):
    """Lay out the levels of a value of A over the slots of B, in place of the field's last."""
    indptr, slots, levels, _ = table
    before = laid_row[j]
    if row != before:
        if before >= 0:
            for p in range(indptr[before], indptr[before + 1]):
                laid[slots[p]] = 1
        if row >= 0:
            for p in range(indptr[row], indptr[row + 1]):
                laid[slots[p]] = levels[p]
        laid_row[j] = row


@helper
def blank(base, laid):
    """Levels against a value of A that is like no other; the upper half is for a missing one."""
    laid[:] = 0
    for j in range(len(base) - 1):
        laid[base[j] : base[j + 1] - 1] = 1


@helper
def gather(
    n, twice, n_ranges, lows, highs, level_of, codes_b, looks, unions, room, kind, at, joined,
    spare, kinds, codes,
):  # fmt: skip
    """Candidates in the ranges, from the n-th on: those with room to the threshold.

    Only those with second caps if `twice` is 1, without if it is 0, all if it is −1.
    """
    last = codes_b.shape[1] - 1
    for r in range(n_ranges):
        for b in range(lows[r], highs[r]):
            union = unions[codes_b[b, last]]
            at[n] = b
            joined[n] = level_of[r]
            spare[n] = room[union, level_of[r]]
            kinds[n] = kind[union, level_of[r]]
            for s in range(len(looks)):
                codes[n, s] = codes_b[b, looks[s]]
            n += spare[n] > -np.inf and (twice < 0 or (kinds[n] >= 0) == (twice == 1))
    return n


@helper
def put_in_lists(
    first, last, at, codes_b, seconds, kinds, caps, lowest, head, following, caught_by
):
    """Put candidates first … last into the list of each of their values in the second fields.

    `lowest` gets the lowest cap of each field.
    """
    for s in range(len(seconds)):
        lowest[s] = np.inf
    for i in range(first, last):
        caught_by[i] = -1
        for s in range(len(seconds)):
            slot = codes_b[at[i], seconds[s]]
            following[i, s] = head[slot]
            head[slot] = i
            lowest[s] = min(lowest[s], caps[kinds[i], seconds[s]])


@helper
def empty_lists(first, last, at, codes_b, seconds, head):
    """Undo `put_in_lists`."""
    for i in range(first, last):
        for s in range(len(seconds)):
            head[codes_b[at[i], seconds[s]]] = -1


@helper
def catch_again(
    o, row_a, least, second, weights, kinds, lowest, head, following, caught_by, n_left, left
):  # fmt: skip
    """Add the candidates that a second field catches to those left: how many, and how many met.

    Only those from the number `least` on. Lists fall.
    """
    _, caps, seconds, indptr, slots, levels = second
    met = 0
    for s in range(len(seconds)):
        k = seconds[s]
        row = row_a[k]
        if row < 0 or lowest[s] == np.inf:
            continue
        for p in range(indptr[row], indptr[row + 1]):
            weight = weights[k, levels[p]]
            if weight <= lowest[s]:
                continue
            i = head[slots[p]]
            while i >= least:
                met += 1
                if caught_by[i] != o and weight > caps[kinds[i], k]:
                    caught_by[i] = o
                    left[n_left] = i
                    n_left += 1
                i = following[i, s]
    return n_left, met


@helper
def look(first, n, spare, codes, laid, shift, weight, left):
    """Candidates that can still be above the threshold after the looks. Unrolled: it is hot."""
    w0, w1, w2, w3 = weight[0], weight[1], weight[2], weight[3]
    s0, s1, s2, s3 = shift[0], shift[1], shift[2], shift[3]
    n_left = 0
    for i in range(first, n):
        bound = (
            spare[i]
            + w0[laid[codes[i, 0] + s0]]
            + w1[laid[codes[i, 1] + s1]]
            + w2[laid[codes[i, 2] + s2]]
            + w3[laid[codes[i, 3] + s3]]
        )
        left[n_left] = i
        n_left += bound > 0
    return n_left


@helper
def compare(
    row_a, codes_b, unions, left, at, joined, spare, laid, is_laid, shift, table, plan, weights,
    least, out_b, out_levels,
):  # fmt: skip
    """Compare what is left of the candidates in full; returns how many are above `least`."""
    indptr, slots, levels, base = table
    field, checks, n_looks, _, _, _, best, upper = plan
    n_fields, n = len(row_a), 0
    for i in left:
        b, bound, possible = at[i], spare[i], True
        union, pattern = unions[codes_b[b, n_fields]], out_levels[n]
        if field >= 0:
            pattern[field] = joined[i]
        for c in range(len(checks)):
            j = checks[c]
            if is_laid[j]:
                pattern[j] = laid[codes_b[b, j] + shift[j]]
            else:
                missing = base[j + 1] - 1
                pattern[j] = level_at(row_a[j], codes_b[b, j], missing, indptr, slots, levels)
            weight = weights[j, pattern[j]]
            bound += weight if c < n_looks else weight - best[union, j]
            possible = weight <= upper[union, j] and (c < n_looks - 1 or bound > 0)
            if not possible:
                break
        if possible:
            total = 0.0
            for j in range(n_fields):
                total += weights[j, pattern[j]]
            out_b[n] = b
            n += total > least
    return n


@maker
def grown(rows_a, rows_b, levels, used, size):
    """The output arrays with room for `size` pairs. By loops: slices take seconds to compile."""
    more_a, more_b = np.empty(size, np.int32), np.empty(size, np.int32)
    more_levels = np.empty((size, levels.shape[1]), np.uint8)
    for i in range(used):
        more_a[i], more_b[i] = rows_a[i], rows_b[i]
        for j in range(levels.shape[1]):
            more_levels[i, j] = levels[i, j]
    return more_a, more_b, more_levels


@helper
def is_long(o, last, n_at, order, field, codes_a, class_a, to_b, seconds, beside):
    """Whether a run that begins at o pays for lists of its n_at candidates."""
    if last - o < _LONG:
        return False
    a, z, asked = order[o], order[o + _LONG - 1], 0
    for k in seconds:
        asked += length(codes_a[a, k], beside)
    return (
        n_at > 2 * asked
        and codes_a[z, field] == codes_a[a, field]
        and class_a[z] == class_a[a]
        and to_b[z] == to_b[a]
    )


def room_of(file_b: Any, n_slots: int, n_seconds: int) -> tuple[Any, ...]:
    """What `join` works in: one thread's at a time, and good for all its pieces of work.

    Memory that is new for each piece would be cleared by the system, page by page, each time.
    """
    _, posts, start = file_b
    n_b, n_values, n_lists = len(posts), len(start), len(posts) if n_seconds else 0
    laid = np.empty(2 * n_slots, np.uint8)
    # Ranges of posts, and the candidates in them: where among the posts, level in the join's
    # field, room without the looks, which second caps, values that are looked at, which are left.
    ranges = [np.empty(n_values, dtype) for dtype in (np.int64, np.int64, np.uint8)]
    candidates = [np.empty(n_b, dtype) for dtype in (np.int32, np.uint8, np.float64, np.int32)]
    candidates += [np.zeros((n_b, LOOKS), np.int32), np.empty(n_b, np.int32)]
    # Lists of those with second caps by value: the first of each, the one after each, by whom
    # each was caught last.
    lists = np.empty(n_slots, np.int32), np.empty((n_lists, n_seconds), np.int32)
    return laid, *ranges, *candidates, *lists, np.empty(n_lists, np.int64)


@kernel(
    f"Tuple((i4[::1],i4[::1],u1[:,::1],i8))"
    f"(i4[::1],i8,i8,{OWN_TYPE},{A_TYPE},{B_TYPE},{TABLE_TYPE},{_PLAN},{_SECOND},f8[:,::1],f8,"
    f"i8[::1],i8,i8,{_ROOM})"
)
def join(
    order, first, last, own, file_a, file_b, table, plan, second, weights, least, found, piece,
    limit, in_room,
):  # fmt: skip
    """Pairs of records order[first … last] of A that weigh more than `least`, by one join.

    Returns rows of A and B, levels, and the number of pairs visited. `found` counts the pairs of
    all pieces of work; when they are more than `limit`, it stops. `in_room` is of `room_of`.
    """
    codes_a, class_a, from_b, to_b = file_a
    codes_b, posts, start = file_b
    indptr, base = table[0], table[3]
    field, checks, n_looks, union_of, wanted, room, _, _ = plan
    kind, caps, seconds, beside, _, _ = second
    n_fields, n_slots = codes_a.shape[1], base[-1]
    looks = checks[:n_looks]
    weight = np.zeros((LOOKS, weights.shape[1]))
    for s in range(n_looks):
        for level in range(weights.shape[1]):
            weight[s, level] = weights[looks[s], level]
    laid, lows, highs, level_of, at, joined, spare, kinds, codes, left = in_room[:10]
    head, following, caught_by = in_room[10:]
    blank(base, laid)
    head[:] = -1
    laid_row, is_laid = np.full(n_fields, -1, np.int32), np.zeros(n_fields, np.bool_)
    shift, look_shift = np.zeros(n_fields, np.int64), np.zeros(LOOKS, np.int64)
    lowest = np.empty(len(seconds))
    out_a, out_b = np.empty(1024, np.int32), np.empty(1024, np.int32)
    out_levels = np.empty((1024, n_fields), np.uint8)
    n_out, visited, n_at, n_once = 0, 0, 0, 0
    run_row, run_class, run_to, slot = np.int32(-2), np.int32(-1), np.int64(-1), np.int64(0)
    for o in range(first, last):
        a = order[o]
        if to_b[a] == from_b[a]:
            continue
        row, unions = codes_a[a, field] if field >= 0 else np.int32(-1), union_of[class_a[a]]
        if row != run_row or class_a[a] != run_class or to_b[a] != run_to:
            run_row, run_class, run_to = row, class_a[a], to_b[a]
            empty_lists(n_once, n_at, at, codes_b, seconds, head)
            slot = own_slot(row, own)
            n_ranges = ranges_beside(
                field, row, slot, from_b[a], to_b[a], wanted[run_class], posts, start, table,
                lows, highs, level_of,
            )  # fmt: skip
            n_in_ranges = 0
            for r in range(n_ranges):
                n_in_ranges += highs[r] - lows[r]
            twice = len(seconds) > 0 and is_long(
                o, last, n_in_ranges, order, field, codes_a, class_a, to_b, seconds, beside
            )
            n_once = gather(
                0, 0 if twice else -1, n_ranges, lows, highs, level_of, codes_b, looks, unions,
                room, kind, at, joined, spare, kinds, codes,
            )  # fmt: skip
            n_at = n_once
            if twice:
                n_at = gather(
                    n_once, 1, n_ranges, lows, highs, level_of, codes_b, looks, unions,
                    room, kind, at, joined, spare, kinds, codes,
                )  # fmt: skip
                put_in_lists(
                    n_once, n_at, at, codes_b, seconds, kinds, caps, lowest, head, following,
                    caught_by,
                )  # fmt: skip
        before = posts_before(a, slot, posts, start, own)
        from_once = first_from(at, 0, n_once, before) if before > 0 else 0
        from_twice = first_from(at, n_once, n_at, before) if before > 0 else n_once
        if from_once == n_once and from_twice == n_at:
            continue
        visited += n_once - from_once
        to_lay = 0
        for j in looks:
            if codes_a[a, j] != laid_row[j]:
                to_lay += length(codes_a[a, j], indptr)
        if to_lay < _LAY_TO_LOOK * (n_once - from_once):
            for s in range(n_looks):
                lay(looks[s], codes_a[a, looks[s]], laid_row, table, laid)
                look_shift[s] = 0 if codes_a[a, looks[s]] >= 0 else n_slots
            n_left = look(from_once, n_once, spare, codes, laid, look_shift, weight, left)
        else:
            n_left = n_once - from_once
            for i in range(n_left):
                left[i] = from_once + i
        if n_at > n_once:
            n_left, met = catch_again(
                o, codes_a[a], from_twice, second, weights, kinds, lowest, head, following,
                caught_by, n_left, left,
            )  # fmt: skip
            visited += met
        for j in checks:
            if length(codes_a[a, j], indptr) < _LAY_TO_COMPARE * n_left:
                lay(j, codes_a[a, j], laid_row, table, laid)
            is_laid[j] = codes_a[a, j] == laid_row[j]
            shift[j] = 0 if codes_a[a, j] >= 0 else n_slots
        if n_out + n_left > len(out_a):
            out_a, out_b, out_levels = grown(out_a, out_b, out_levels, n_out, 2 * (n_out + n_left))
        n_new = compare(
            codes_a[a], codes_b, unions, left[:n_left], at, joined, spare, laid, is_laid, shift,
            table, plan, weights, least, out_b[n_out:], out_levels[n_out:],
        )  # fmt: skip
        for i in range(n_out, n_out + n_new):
            out_a[i] = a
            out_b[i] = posts[out_b[i]]
        n_out += n_new
        found[piece] = n_out
        if n_new and found.sum() > limit:
            break
    out_a, out_b, out_levels = grown(out_a, out_b, out_levels, n_out, n_out)
    return out_a, out_b, out_levels, visited


@kernel("u1[::1](i4[::1],i4[::1],i4,i8[::1],i4[::1],u1[::1])")
def levels_at(rows, slots, missing, indptr, indices, levels):
    """Levels of given pairs of values in one table; row −1 and slot `missing` are missing."""
    out = np.empty(len(rows), np.uint8)
    for i in range(len(rows)):
        out[i] = level_at(rows[i], slots[i], missing, indptr, indices, levels)
    return out


@kernel("i8[::1](i4[::1],i4[::1],i8,i8)")
def by_record(rows_a, rows_b, n_a, n_b):
    """Order of pairs by row of A, then row of B: a counting sort by each, the last key first."""
    order = np.arange(len(rows_a))
    for rows, n in ((rows_b, n_b), (rows_a, n_a)):
        at = np.zeros(n + 1, np.int64)
        for row in rows:
            at[row + 1] += 1
        at = np.cumsum(at)
        after = np.empty_like(order)
        for i in order:
            after[at[rows[i]]] = i
            at[rows[i]] += 1
        order = after
    return order
