"""Patterns of agreement and how often they occur, among the pairs of one join or a sample of all.

A pattern is a code: the sum of a part for each field and level. Counts are kept in a hash table
with open addressing, whose free places have negative keys.
"""

import numpy as np

from bayeslink.kernels import helper, kernel, maker
from bayeslink.kernels.search import (
    A_TYPE,
    B_TYPE,
    OWN_TYPE,
    TABLE_TYPE,
    blank,
    first_from,
    lay,
    level_at,
    own_slot,
    posts_before,
    ranges_beside,
)


@helper
def add(keys, counts, key, n):
    """Add n to the count of a key in a hash table; returns whether the key is new there."""
    mask = np.uint64(len(keys) - 1)
    at = ((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)) & mask
    while keys[at] != key and keys[at] >= 0:
        at = (at + np.uint64(1)) & mask
    new = keys[at] < 0
    keys[at] = key
    counts[at] += n
    return new


@helper
def add_all(keys, counts, code, times, factor):
    """Add factor × times for each code that is not negative; returns how many keys are new."""
    new = 0
    for i in range(len(code)):
        if code[i] >= 0:
            new += add(keys, counts, code[i], factor * times[i])
    return new


@maker
def with_room(keys, counts, n):
    """The hash table, made larger if need be so that n keys fill at most half of it."""
    size = len(keys)
    while size < 2 * n:
        size *= 2
    if size == len(keys):
        return keys, counts
    more_keys, more_counts = np.full(size, -1, np.int64), np.zeros(size, np.int64)
    for i in range(len(keys)):
        if keys[i] >= 0:
            add(more_keys, more_counts, keys[i], counts[i])
    return more_keys, more_counts


@helper
def add_levels(code, column, shift, laid, part):
    """Add a field's part to the codes of pairs, by their levels."""
    for i in range(len(code)):
        code[i] += part[laid[column[i] + shift]]


@kernel(
    f"Tuple((i8[::1],i8[::1]))"
    f"(i4[::1],i8,i8,{OWN_TYPE},{A_TYPE},i8[::1],{B_TYPE},i8[::1],{TABLE_TYPE},i8,b1[::1],"
    f"i8[:,::1],i8)"
)
def count_patterns(
    order, first, last, own, file_a, times_a, file_b, times_b, table, field, compared, parts,
    n_codes,
):  # fmt: skip
    """Pattern codes of the pairs of one join and how often they occur.

    A record stands for as many as `times` says. The code is the sum of `parts[field, level]`; a
    negative one is not counted. Fields that are not compared differ.
    """
    codes_a, _, from_b, to_b = file_a
    codes_b, posts, start = file_b
    base = table[3]
    n_fields, n_b, n_slots = codes_a.shape[1], len(posts), base[-1]
    laid = np.empty(2 * n_slots, np.uint8)
    blank(base, laid)
    laid_row = np.full(n_fields, -1, np.int32)
    any_level = np.ones(256, np.bool_)
    lows, highs = np.empty(len(start), np.int64), np.empty(len(start), np.int64)
    level_of = np.empty(len(start), np.uint8)
    codes, joined = np.empty((n_fields, n_b), np.int32), np.empty(n_b, np.int64)
    code, times_at = np.empty(n_b, np.int64), np.empty(n_b, np.int64)
    keys, counts, used = np.full(1024, -1, np.int64), np.zeros(1024, np.int64), 0
    at = np.empty(n_b, np.int64)
    run_row, run_to, n_at, slot = np.int32(-2), np.int64(-1), 0, np.int64(0)
    for o in range(first, last):
        a = order[o]
        if to_b[a] == from_b[a]:
            continue
        row = codes_a[a, field] if field >= 0 else np.int32(-1)
        if row != run_row or to_b[a] != run_to:
            run_row, run_to, n_at = row, to_b[a], 0
            slot = own_slot(row, own)
            n_ranges = ranges_beside(
                field, row, slot, from_b[a], to_b[a], any_level, posts, start, table,
                lows, highs, level_of,
            )  # fmt: skip
            for r in range(n_ranges):
                for b in range(lows[r], highs[r]):
                    joined[n_at] = parts[field, level_of[r]] if field >= 0 else 0
                    times_at[n_at], at[n_at] = times_b[posts[b]], b
                    for j in range(n_fields):
                        codes[j, n_at] = codes_b[b, j]
                    n_at += 1
        from_at = first_from(at, 0, n_at, posts_before(a, slot, posts, start, own))
        for i in range(from_at, n_at):
            code[i] = joined[i]
        for j in range(n_fields):
            row = codes_a[a, j]
            if j != field:
                if compared[j]:
                    lay(j, row, laid_row, table, laid)
                shift = 0 if row >= 0 else n_slots
                add_levels(code[from_at:n_at], codes[j, from_at:], shift, laid, parts[j])
        keys, counts = with_room(keys, counts, min(used + n_at - from_at, n_codes))
        used += add_all(keys, counts, code[from_at:n_at], times_at[from_at:], times_a[a])
    return keys[keys >= 0], counts[keys >= 0]


@kernel(
    f"Tuple((i8[::1],i8[::1]))"
    f"(i8,i8,u8[::1],i8[::1],i4[:,::1],i4[:,::1],{TABLE_TYPE},f8[:,::1],f8,i8[:,::1])",
    rare=True,
)
def sample_patterns(
    first, last, pairs_before, from_b, codes_a, codes_b, table, weights, most, parts
):  # fmt: skip
    """Pattern codes of pairs drawn at random, draws first … last, that weigh no more than `most`.

    Draw i is a fixed function of i, so that the same pairs are drawn whatever the pieces of work.
    """
    indptr, slots, levels, base = table
    n_pairs = pairs_before[-1]
    code = np.empty(last - first, np.int64)
    for draw in range(first, last):
        x = np.uint64(draw) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x = (x ^ (x >> np.uint64(31))) % n_pairs
        a = first_from(pairs_before, 0, len(pairs_before), x + np.uint64(1)) - 1
        b = from_b[a] + np.int64(x - pairs_before[a])
        at, total = 0, 0.0
        for j in range(codes_a.shape[1]):
            level = level_at(codes_a[a, j], codes_b[b, j], base[j + 1] - 1, indptr, slots, levels)
            at += parts[j, level]
            total += weights[j, level]
        code[draw - first] = at if total <= most else -1
    keys, counts = np.full(1024, -1, np.int64), np.zeros(1024, np.int64)
    keys, counts = with_room(keys, counts, last - first)
    add_all(keys, counts, code, np.ones(len(code), np.int64), 1)
    return keys[keys >= 0], counts[keys >= 0]
