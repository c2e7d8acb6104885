"""Counts over all pairs from counts of values and of records that compare alike.

All fields share flat arrays. The values of B, and one slot for missing, have numbers of their own
across fields ("slots"); the values of A are rows of one CSR table whose columns are slots.
"""

import numpy as np

from bayeslink.kernels import helper, kernel

_TABLE = "i4[:,::1],i4[:,::1],i8[::1],i4[::1],u1[::1],i8[::1],i8[::1]"


@kernel(f"i8[::1](i8,i8,i8,{_TABLE},i8,i8)")
def level_counts(
    j, first, last, codes_a, codes_b, indptr, slots, levels, start_a, start_b, n_slots, n_levels
):
    """Pairs at each level ≥ 2 of field j, over blocks first … last.

    Block k is [start_a[k], start_a[k+1]) × likewise B. The count of level 1 is left to the caller,
    who knows the number of pairs.
    """
    counts = np.zeros(n_levels + 1, np.int64)
    in_b = np.zeros(n_slots, np.int64)
    in_a = np.zeros(len(indptr) - 1, np.int64)
    for k in range(first, last):
        for b in range(start_b[k], start_b[k + 1]):
            in_b[codes_b[b, j]] += 1
        for a in range(start_a[k], start_a[k + 1]):
            if codes_a[a, j] >= 0:
                in_a[codes_a[a, j]] += 1
        for a in range(start_a[k], start_a[k + 1]):
            row = codes_a[a, j]
            if row >= 0 and in_a[row] > 0:
                for p in range(indptr[row], indptr[row + 1]):
                    counts[levels[p]] += in_a[row] * in_b[slots[p]]
                in_a[row] = 0
        for b in range(start_b[k], start_b[k + 1]):
            in_b[codes_b[b, j]] = 0
    return counts


_ENTRIES = "i8,i8,i8[::1],i4[::1],u1[::1],i8[::1],i8[::1],b1"


@helper
def records_at(x, y, times_a, times_b, one_file):
    """Pairs of records with two values; in one file each once, at the lower value."""
    if not one_file or y > x:
        return times_a[x] * times_b[y]
    return times_a[x] * (times_a[x] - 1) // 2 if x == y else 0


@kernel(f"i8[:,::1](i8,i8,i8,{_ENTRIES})")
def pairs_of_values(
    n_levels, first, last, first_row, base, indptr, slots, levels, times_a, times_b, one_file
):  # fmt: skip
    """[value of A, level]: pairs of records of the values first … last of a field with those of B.

    `times` says how many records hold each value; `first_row` and `base` where the field begins.
    """
    counts = np.zeros((last - first, n_levels + 1), np.int64)
    for x in range(first, last):
        for p in range(indptr[first_row + x], indptr[first_row + x + 1]):
            n = records_at(x, slots[p] - base, times_a, times_b, one_file)
            counts[x - first, levels[p]] += n
    return counts


@kernel(f"i8[::1](i8[::1],i8[::1],i8,{_ENTRIES})")
def value_passing(
    values, most, level, first_row, base, indptr, slots, levels, times_a, times_b, one_file
):  # fmt: skip
    """The value of B at which pairs of a value of A at a level, added up, come to pass `most`."""
    found = np.empty(len(values), np.int64)
    for i in range(len(values)):
        x, left = values[i], most[i]
        for p in range(indptr[first_row + x], indptr[first_row + x + 1]):
            if levels[p] == level:
                found[i] = slots[p] - base
                left -= records_at(x, found[i], times_a, times_b, one_file)
                if left < 0:
                    break
    return found
