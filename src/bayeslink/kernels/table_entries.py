"""Level tables by compiled code: which sets of words are close, and entries in order of rows."""

import numpy as np

from bayeslink.kernels import helper, kernel, maker
from bayeslink.kernels.bit_vectors import lowest_bit

_ONE = np.uint64(1)


@maker
def grown(array, size):
    larger = np.empty(size, array.dtype)
    for k in range(len(array)):
        larger[k] = array[k]
    return larger


@kernel("Tuple((i8[::1],i4[::1],u1[::1]))(i4[::1],i4[::1],u1[::1],i8,i8)")
def by_row(rows, codes, levels, n_rows, n_codes):
    """Entries of each row, and codes and levels by row and rising code.

    An entry that comes several times is there once, with the best of its levels.
    """
    counts, free = np.zeros(n_rows, np.int64), np.zeros(n_rows, np.int64)
    for row in rows:
        counts[row] += 1
    for row in range(1, n_rows):
        free[row] = free[row - 1] + counts[row - 1]
    codes_out, levels_out = np.empty(len(rows), np.int32), np.empty(len(rows), np.uint8)
    for k in range(len(rows)):
        at = free[rows[k]]
        codes_out[at], levels_out[at] = codes[k], levels[k]
        free[rows[k]] += 1
    present = np.zeros(n_codes // 64 + 1, np.uint64)
    level_of = np.empty(n_codes, np.uint8)
    at = 0
    for row in range(n_rows):
        begin, left, w = at, 0, len(present)
        for k in range(free[row] - counts[row], free[row]):
            code = codes_out[k]
            bit = _ONE << np.uint64(code % 64)
            if present[code // 64] & bit:
                level_of[code] = max(level_of[code], levels_out[k])
                continue
            present[code // 64] |= bit
            level_of[code] = levels_out[k]
            w = min(w, code // 64)
            left += 1
        while left:
            while present[w] != 0:
                code = 64 * w + np.int64(lowest_bit(present[w]))
                present[w] &= present[w] - _ONE
                codes_out[at], levels_out[at] = code, level_of[code]
                at += 1
                left -= 1
            w += 1
        counts[row] = at - begin
    return counts, codes_out[:at], levels_out[:at]


@kernel("void(i8[::1],i4[::1],i8[::1],i4[::1],u1[::1],i4[::1],u1[::1])")
def put_rows(indptr, rows, counts, part_indices, part_levels, indices, levels):
    """Copy the entries of some rows to where `indptr` has room for them."""
    part = 0
    for r in range(len(rows)):
        at = indptr[rows[r]]
        for k in range(counts[r]):
            indices[at + k] = part_indices[part + k]
            levels[at + k] = part_levels[part + k]
        part += counts[r]


# --- sets of words --------------------------------------------------------------------------------


@helper
def _least_common(m, n, cut):
    """Common words that sets of m and n words need for the last cut."""
    common = 1
    while common <= min(m, n) and common / (m + n - common) < cut:
        common += 1
    return common


@helper
def _n_common(x, i, end_x, y, j, end_y):
    """How many numbers the rising x[i:end_x] and y[j:end_y] have in common."""
    common = 0
    while i < end_x and j < end_y:
        low, high = x[i] <= y[j], x[i] >= y[j]
        common += low and high
        i += low
        j += high
    return common


@helper
def _position(rising, low, high, value):
    """First place from low to high where `rising` is not below `value`."""
    while low < high:
        middle = (low + high) // 2
        if rising[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@kernel(
    "Tuple((i4[::1],i4[::1],u1[::1]))"
    "(f8[::1],i4[::1],i8[::1],i8,i8,i4[::1],i8[::1],i4[::1],i8[::1],i4[::1],i8[::1],i8)",
    rare=True,
)
def close_sets(
    cuts, words_a, start_a, first, last, words_b, start_b, code_b, of_size, posts, post_start, limit
):  # fmt: skip
    """Row − `first`, code of B and level of the pairs of rows first … last that are above level 1.

    The words of a value are rising numbers, rarest first. B is sorted by number of words; values
    of_size[n] … of_size[n + 1] have n. `posts` are its values by word, rising. Where two sets need
    c common words, one of the size − c + 1 rarest of the first is in the second, so that only
    values with one of those are looked at.
    """
    found = 0
    rows, codes, levels = np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.uint8)
    seen = np.full(len(code_b), -1, np.int32)
    for a in range(first, last):
        if found + len(code_b) > len(rows):
            size = 2 * found + len(code_b)
            rows, codes, levels = grown(rows, size), grown(codes, size), grown(levels, size)
        x, m = start_a[a], start_a[a + 1] - start_a[a]
        for n in range(1, len(of_size) - 1):
            if of_size[n] == of_size[n + 1]:
                continue
            least = _least_common(m, n, cuts[-1])
            for r in range(x, x + m - least + 1 if least <= n else x):
                post, end = post_start[words_a[r]], post_start[words_a[r] + 1]
                post = _position(posts, post, end, of_size[n])
                for p in range(post, _position(posts, post, end, of_size[n + 1])):
                    b = posts[p]
                    if seen[b] == a:
                        continue
                    seen[b] = a
                    common = _n_common(words_a, x, x + m, words_b, start_b[b], start_b[b + 1])
                    if common < least:
                        continue
                    level = 1
                    for k in range(len(cuts)):
                        level += common / (m + n - common) >= cuts[k]
                    rows[found], codes[found], levels[found] = a - first, code_b[b], level
                    found += 1
        if found > limit:
            break
    return rows[:found].copy(), codes[:found].copy(), levels[:found].copy()
