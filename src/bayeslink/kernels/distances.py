"""Which texts of B are close to each text of A, 512 of B at a time.

The values of B are taken in blocks of up to 512 of the same length. A value of A is compared with a
whole block at once, letter by letter of A (a "row"). All that has to be known at any point is yes
or no (the same letter? one more than the neighbouring cell?), so that one vector of bits serves the
whole block. A counter of misses tells after each row which values of B cannot come close any more;
when none can, the other rows are left out. The values of A are sorted, so that the rows of a
beginning shared with the value before are there already.

*Edit distance.* The cells are updated as by Myers (1999) and, with swaps of neighbours, Hyyrö
(2003), only that the bits of a vector stand for values, not for rows. A distance within the last
cut keeps to a band around the diagonal, beyond which cells count as one more than their neighbours.
It is the difference in length plus the misses: the steps up on the diagonal that ends in the last
cell.

*Jaro–Winkler.* A miss is a letter of A without a match. Transpositions are only looked for where
the similarity would be within the last cut without them.
"""

import numpy as np

from bayeslink.kernels import helper, kernel, maker
from bayeslink.kernels.bit_vectors import (
    LANES,
    VECTOR,
    WORDS,
    all_set,
    bit_at,
    empty_vectors,
    every_set,
    load,
    lowest_bit,
    none_set,
    number_at,
    store,
)
from bayeslink.kernels.table_entries import grown

LEVENSHTEIN, SWAPS, JARO_WINKLER = 0, 1, 2

_CELL = 3 * VECTOR  # more than the cell to the left? less than it? as much as diagonally before?
_ZERO, _ONE = np.uint64(0), np.uint64(1)


# --- a block of B -------------------------------------------------------------------------------


@helper
def _spell(text, start, low, high, longest, spelt, places):
    """Note which values of the block have which letter where.

    places[letter × longest + position] is the place in `spelt` of a vector that tells. Place 0
    tells of none.
    """
    n_places = 1
    for b in range(low, high):
        for p in range(start[b + 1] - start[b]):
            key = text[start[b] + p] * longest + p
            if places[key] == 0:
                places[key] = n_places
                for w in range(WORDS):
                    spelt[n_places * WORDS + w] = 0
                n_places += 1
            word = places[key] * WORDS + (b - low) // 64
            spelt[word] |= _ONE << np.uint64((b - low) % 64)


@helper
def _forget(text, start, low, high, longest, places):
    for b in range(low, high):
        for p in range(start[b + 1] - start[b]):
            places[text[start[b] + p] * longest + p] = 0


@helper
def _having(key, spelt, places):
    """Who has a letter in a position."""
    return load(spelt + number_at(places + 4 * key) * VECTOR)


@helper
def _n_digits(most):
    """Binary digits of a counter up to `most`."""
    n = 0
    while most >> n:
        n += 1
    return n


@helper
def _band(m, n, most):
    """First diagonal (column − row) and number of diagonals of a path with `most` misses."""
    return min(0, n - m) - most // 2, abs(n - m) + 2 * (most // 2) + 1


@helper
def _set_out(kind, m, n, most, n_digits, n_values, state, counts):
    """Row 0, before the first letter of A, and the edge of the band.

    The counter of misses starts so high that it overflows when there are too many; the vector
    after its digits keeps who is lost, as lanes without a value are from the beginning.
    """
    if kind == JARO_WINKLER:
        for j in range(n * WORDS):
            state[j] = 0
    else:
        _, width = _band(m, n, most)
        for i in range(m + 1):
            for q in range(0 if i == 0 else width, width + 1):
                cell = (i * (width + 1) + q) * _CELL // 8
                for w in range(WORDS):
                    state[cell + w], state[cell + WORDS + w] = ~_ZERO, _ZERO
    start = (1 << n_digits) - 1 - most
    for k in range(n_digits):
        for w in range(WORDS):
            counts[k * WORDS + w] = ~_ZERO if start >> k & 1 else _ZERO
    for w in range(WORDS):
        inside = min(max(n_values - 64 * w, 0), 64)
        counts[n_digits * WORDS + w] = ~_ZERO << np.uint64(inside) if inside < 64 else _ZERO


# --- a value of A -------------------------------------------------------------------------------


@helper
def _compare(kind, x, m, n, known, most, n_digits, spelt, places, longest, state, counts):
    """Work out the rows after the first `known`.

    Returns the row after which the whole block is lost; m + 1 if it never is.
    """
    for i in range(known + 1, m + 1):
        if kind == JARO_WINKLER:
            miss = _match_row(x, m, i, n, spelt, places, longest, state)
        else:
            miss = _edit_row(kind, x, m, i, n, most, spelt, places, longest, state)
        here = counts + i * (n_digits + 1) * VECTOR
        before = here - (n_digits + 1) * VECTOR
        for k in range(n_digits):
            digit = load(before + k * VECTOR)
            store(here + k * VECTOR, digit ^ miss)
            miss = digit & miss
        lost = load(before + n_digits * VECTOR) | miss
        store(here + n_digits * VECTOR, lost)
        if all_set(lost):
            return i
    return m + 1


@helper
def _misses(counts, lane, most, n_digits):
    """Read the counter of one value."""
    misses = most + 1 - (1 << n_digits)
    for k in range(n_digits):
        misses += bit_at(counts + k * VECTOR, lane) << k
    return misses


@helper
def _edit_row(kind, x, m, i, n, most, spelt, places, longest, state):
    """One row of the table of edit distances; returns who steps up on the last cell's diagonal."""
    lowest, width = _band(m, n, most)
    row = (width + 1) * _CELL
    letter = number_at(x + 4 * i - 4) * longest
    up, down = every_set(), none_set()  # the cell to the left, over the one above it
    miss = none_set()
    for j in range(max(1, i + lowest), min(n, i + lowest + width - 1) + 1):
        here = state + i * row + (j - i - lowest) * _CELL
        above = here - row + _CELL
        right, left = load(above), load(above + VECTOR)
        level = _having(letter + j - 1, spelt, places) | left | down
        if kind == SWAPS:
            if i > 1 and j > 1:
                swapped = _having(number_at(x + 4 * i - 8) * longest + j - 1, spelt, places)
                swapped = swapped & _having(letter + j - 2, spelt, places)
                level = level | (swapped & ~load(here - row + 2 * VECTOR))
            store(here + 2 * VECTOR, level)
        store(here, down | ~(level | up))
        store(here + VECTOR, level & up)
        up, down = left | ~(level | right), level & right
        if j - i == n - m:
            miss = ~level
    return miss


@helper
def _levels_of_misses(m, n, cuts, level_at):
    """Most misses above level 1 (−1: not even none), and the levels up to there."""
    for misses in range(min(m, n) + 1):
        level = 1
        for cut in cuts:
            level += (abs(m - n) + misses) / max(m, n) <= cut
        if level == 1:
            return misses - 1
        level_at[misses] = level
    return min(m, n)


@helper
def _match_row(x, m, i, n, spelt, places, longest, state):
    """Match a letter with the first free one in Jaro's reach; returns who has none.

    A row of the state says which letters of B are taken, and then who has a miss.
    """
    reach = max(max(m, n) // 2 - 1, 0)
    letter = number_at(x + 4 * i - 4) * longest
    miss = every_set()
    here = state + i * (n + 1) * VECTOR
    before = here - (n + 1) * VECTOR
    for j in range(n):
        taken = load(before + j * VECTOR)
        if -reach <= j + 1 - i <= reach:
            match = _having(letter + j, spelt, places) & miss & ~taken
            miss = miss & ~match
            taken = taken | match
        store(here + j * VECTOR, taken)
    store(here + n * VECTOR, miss)
    return miss


@helper
def _similarity(common, transposed, beginning, m, n):
    """Jaro's similarity and, above 0.7, Winkler's tenth for each of the first four letters."""
    if common == 0:
        return 0.0
    jaro = (common / m + common / n + (common - transposed) / common) / 3.0
    return jaro + beginning * 0.1 * (1.0 - jaro) if jaro > 0.7 else jaro


@helper
def _spare_letters(m, n, cut, spare):
    """Most misses within the last cut if all else is well, for 0 … 4 equal first letters."""
    for beginning in range(5):
        common = 0
        while common <= min(m, n) and _similarity(common, 0, beginning, m, n) < cut - 1e-12:
            common += 1
        spare[beginning] = m - common if common <= min(m, n) else -1
    return np.int64(spare[min(m, n, 4)])


@helper
def _require_beginnings(x, m, n, spare, most, n_digits, spelt, places, longest, counts):
    """Give up those who, with the first letters that agree, have too many misses after all."""
    agree, close = every_set(), none_set()
    for beginning in range(min(m, n, 4) + 1):
        if beginning > 0:
            letter = number_at(x + 4 * beginning - 4) * longest
            agree = agree & _having(letter + beginning - 1, spelt, places)
        end = (1 << n_digits) - 1 - most + number_at(spare + 4 * beginning)
        if number_at(spare + 4 * beginning) >= 0:
            less, equal = none_set(), every_set()
            for k in range(n_digits - 1, -1, -1):
                digit = load(counts + k * VECTOR)
                if end >> k & 1:
                    less = less | (equal & ~digit)
                    equal = equal & digit
                else:
                    equal = equal & ~digit
            close = close | (agree & (less | equal))
    lost = counts + n_digits * VECTOR
    store(lost, load(lost) | ~close)


@helper
def _jaro_winkler(x, m, y, n, lane, common, state):
    """Similarity to one value of the block, given the number of letters in common."""
    beginning = 0
    while beginning < min(m, n, 4) and number_at(x + 4 * beginning) == number_at(y + 4 * beginning):
        beginning += 1
    row = (n + 1) * VECTOR
    turned, j = 0, -1
    for i in range(m):
        if not bit_at(state + (i + 1) * row + n * VECTOR, lane):
            j += 1
            while not bit_at(state + m * row + j * VECTOR, lane):
                j += 1
            turned += number_at(x + 4 * i) != number_at(y + 4 * j)
    return _similarity(common, turned // 2, beginning, m, n)


@maker
def _shared_beginnings(text, start, first, last):
    """How many first letters each text has in common with the one before of the same length."""
    shared = np.zeros(last - first, np.int64)
    for r in range(first + 1, last):
        m = start[r + 1] - start[r]
        if start[r] - start[r - 1] == m:
            k = 0
            while k < m and text[start[r] + k] == text[start[r - 1] + k]:
                k += 1
            shared[r - first] = k
    return shared


@kernel(
    "Tuple((i4[::1],i4[::1],u1[::1]))"
    "(i8,f8[::1],i4[::1],i8[::1],i8,i8,i4[::1],i8[::1],i4[::1],i8[::1],i8,i8)"
)
def close_texts(
    kind, cuts, text_a, start_a, first, last, text_b, start_b, code_b, blocks, n_letters, limit
):
    """Row − `first`, code of B and level of the pairs of rows first … last that are above level 1.

    Letters are numbers below `n_letters`. Both sides are sorted by length, and within a length by
    letters; `blocks` are the bounds of the blocks of B. Stops early, with more than `limit` pairs,
    when there are more than that.
    """
    found = 0
    rows, codes, levels = np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.uint8)
    longest_a = start_a[last] - start_a[last - 1]
    longest = start_b[-1] - start_b[-2]
    places = np.zeros(n_letters * longest, np.int32)
    spelt = empty_vectors(1 + LANES * longest)
    spelt[:WORDS] = 0
    state = empty_vectors(3 * (longest_a + 1) * (longest_a + longest + 2))
    counts = empty_vectors((longest_a + 1) * (_n_digits(longest_a) + 1))
    level_at = np.empty(longest + 1, np.int64)
    spare = np.empty(5, np.int32)
    # The loop mentions all these arrays, so they are there for as long as their addresses are used.
    at_a, at_b, at_spare = text_a.ctypes.data, text_b.ctypes.data, spare.ctypes.data
    at_state, at_counts = state.ctypes.data, counts.ctypes.data
    block_b = spelt.ctypes.data, places.ctypes.data, longest
    shared = _shared_beginnings(text_a, start_a, first, last)
    for block in range(len(blocks) - 1):
        low, high = blocks[block], blocks[block + 1]
        n = start_b[low + 1] - start_b[low]
        _spell(text_b, start_b, low, high, longest, spelt, places)
        if found + (last - first) * LANES > len(rows):
            size = 2 * found + (last - first) * LANES
            rows, codes, levels = grown(rows, size), grown(codes, size), grown(levels, size)
        m, most, n_digits, died = 0, -1, 0, 0
        for a in range(first, last):
            if start_a[a + 1] - start_a[a] != m:
                m = start_a[a + 1] - start_a[a]
                if kind == JARO_WINKLER:
                    most = _spare_letters(m, n, cuts[-1], spare)
                else:
                    most = _levels_of_misses(m, n, cuts, level_at)
                died = 0
                if most >= 0:
                    n_digits, died = _n_digits(most), m + 1
                    _set_out(kind, m, n, most, n_digits, high - low, state, counts)
            x, known = at_a + 4 * start_a[a], shared[a - first]
            if known >= died:
                continue  # as lost as the value before
            died = _compare(kind, x, m, n, known, most, n_digits, *block_b, at_state, at_counts)
            if died <= m:
                continue
            here = at_counts + m * (n_digits + 1) * VECTOR
            if kind == JARO_WINKLER:
                _require_beginnings(x, m, n, at_spare, most, n_digits, *block_b, here)
            lost = (m * (n_digits + 1) + n_digits) * WORDS
            for w in range(WORDS):
                close = ~counts[lost + w]
                while close != 0:
                    lane = 64 * w + lowest_bit(close)
                    close &= close - _ONE
                    misses = _misses(here, lane, most, n_digits)
                    if kind == JARO_WINKLER:
                        y = at_b + 4 * start_b[low + lane]
                        similarity = _jaro_winkler(x, m, y, n, lane, m - misses, at_state)
                        level = 1
                        for k in range(len(cuts)):
                            level += similarity >= cuts[k]
                    else:
                        level = level_at[misses]
                    rows[found], codes[found], levels[found] = a - first, code_b[low + lane], level
                    found += level > 1
            if found > limit:
                break
        _forget(text_b, start_b, low, high, longest, places)
        if found > limit:
            break
    return rows[:found].copy(), codes[:found].copy(), levels[:found].copy()
