"""Passes over all pairs in scope, one record of A at a time.

All fields share flat arrays. The values of B, and one slot for missing, have numbers of their own
across fields ("slots"); the values of A are rows of one CSR table whose columns are slots. For a
record of A the levels of every slot are laid out once (`spread`), so that a pair costs one
look-up a field. The upper half of that buffer serves fields that are missing in the record of A.
"""

import numpy as np

from bayeslink.kernels import kernel

_TABLE = "i4[:,::1],i4[:,::1],i8[::1],i4[::1],u1[::1],i8[::1],i8[::1]"


@kernel(f"i8[:,::1]({_TABLE},i8[::1],i8)")
def level_counts(codes_a, codes_b, indptr, slots, levels, start_a, start_b, n_levels, n_slots):
    """Pairs at each level ≥ 2 of each field, over blocks [start_a[k], start_a[k+1]) × likewise B.

    The count of level 1 is left to the caller, who knows the number of pairs.
    """
    n_fields = codes_a.shape[1]
    counts = np.zeros((n_fields, n_levels.max() + 1), np.int64)
    in_b = np.zeros(n_slots, np.int64)
    in_a = np.zeros(len(indptr) - 1, np.int64)
    for k in range(len(start_a) - 1):
        for b in range(start_b[k], start_b[k + 1]):
            for j in range(n_fields):
                in_b[codes_b[b, j]] += 1
        for j in range(n_fields):
            for a in range(start_a[k], start_a[k + 1]):
                if codes_a[a, j] >= 0:
                    in_a[codes_a[a, j]] += 1
            for a in range(start_a[k], start_a[k + 1]):
                row = codes_a[a, j]
                if row >= 0 and in_a[row] > 0:
                    for p in range(indptr[row], indptr[row + 1]):
                        counts[j, levels[p]] += in_a[row] * in_b[slots[p]]
                    in_a[row] = 0
        for b in range(start_b[k], start_b[k + 1]):
            for j in range(n_fields):
                in_b[codes_b[b, j]] = 0
    return counts


@kernel(f"i8[::1]({_TABLE},i8,i8,i8[:,::1],i8[::1],i8)")
def pattern_histogram(
    codes_a, codes_b, indptr, slots, levels, from_b, to_b, first, last, strides, base, n_codes
):
    """Pairs of records first … last of A with each pattern code Σ_j strides[j, level_j]."""
    n_fields = codes_a.shape[1]
    n_slots = base[n_fields]
    histogram = np.zeros(n_codes, np.int64)
    spread = np.zeros(2 * n_slots, np.int64)
    shift = np.zeros(n_fields, np.int64)
    for j in range(n_fields):
        spread[base[j] : base[j + 1] - 1] = strides[j, 1]
    for a in range(first, last):
        for j in range(n_fields):
            row = codes_a[a, j]
            shift[j] = 0 if row >= 0 else n_slots
            if row >= 0:
                for p in range(indptr[row], indptr[row + 1]):
                    spread[slots[p]] = strides[j, levels[p]]
        for b in range(from_b[a], to_b[a]):
            code = 0
            for j in range(n_fields):
                code += spread[codes_b[b, j] + shift[j]]
            histogram[code] += 1
        for j in range(n_fields):
            row = codes_a[a, j]
            if row >= 0:
                for p in range(indptr[row], indptr[row + 1]):
                    spread[slots[p]] = strides[j, 1]
    return histogram


@kernel(
    f"Tuple((i4[::1],i4[::1],u1[:,::1]))"
    f"({_TABLE},i8,i8,f8[:,::1],i8[::1],f8,i8,i4[::1],i4[:,::1],f8[:,::1],i8[::1],i4[::1])"
)
def pairs_above(
    codes_a, codes_b, indptr, slots, levels, from_b, to_b, first, last, weights, base, least, limit,
    plan_of, keys, needs, post_start, posts
):  # fmt: skip
    """Every pair of records first … last of A whose weights sum to more than `least`.

    `plan_of` numbers each record's plan; `keys` and `needs` list its key fields (ended by −1) and
    the gains that they must exceed; no keys means all of B is looked at. `posts` holds the records
    of B by slot, rising. Stops early, with more than `limit` pairs, when there are more than that.
    """
    n_fields = codes_a.shape[1]
    n_slots = base[n_fields]
    spread = np.zeros(2 * n_slots)
    level_of = np.zeros(2 * n_slots, np.uint8)
    shift = np.zeros(n_fields, np.int64)
    for j in range(n_fields):
        spread[base[j] : base[j + 1] - 1] = weights[j, 1]
        spread[base[j + 1] - 1] = weights[j, 0]
        spread[n_slots + base[j] : n_slots + base[j + 1]] = weights[j, 0]
        level_of[base[j] : base[j + 1] - 1] = 1
    hits = np.empty(codes_b.shape[0], np.int32)
    out_a = np.empty(1024, np.int32)
    out_b = np.empty(1024, np.int32)
    out_levels = np.empty((1024, n_fields), np.uint8)
    found = 0
    for a in range(first, last):
        low, high = from_b[a], to_b[a]
        for j in range(n_fields):
            row = codes_a[a, j]
            shift[j] = 0 if row >= 0 else n_slots
            if row >= 0:
                for p in range(indptr[row], indptr[row + 1]):
                    spread[slots[p]] = weights[j, levels[p]]
                    level_of[slots[p]] = levels[p]
        n_hits = 0
        plan = plan_of[a]
        if keys[plan, 0] < 0:
            for b in range(low, high):
                total = 0.0
                for j in range(n_fields):
                    total += spread[codes_b[b, j] + shift[j]]
                hits[n_hits] = b
                n_hits += total > least
        else:
            for r in range(n_fields):
                key = keys[plan, r]
                if key < 0:
                    break
                row = codes_a[a, key]
                for p in range(indptr[row] - 1, indptr[row + 1]):
                    # The slot before the first stands for the records of B that lack the field.
                    slot = slots[p] if p >= indptr[row] else base[key + 1] - 1
                    if spread[slot] - weights[key, 1] <= needs[plan, r]:
                        continue
                    at = post_start[slot]
                    end = post_start[slot + 1]
                    if posts[at:end].size and posts[at] < low:
                        at += np.searchsorted(posts[at:end], low)
                    while at < end and posts[at] < high:
                        b = posts[at]
                        at += 1
                        earlier = False
                        for s in range(r):
                            before = keys[plan, s]
                            gain = spread[codes_b[b, before]] - weights[before, 1]
                            earlier |= gain > needs[plan, s]
                        if earlier:
                            continue
                        total = 0.0
                        for j in range(n_fields):
                            total += spread[codes_b[b, j] + shift[j]]
                        hits[n_hits] = b
                        n_hits += total > least
        if found + n_hits > len(out_a):
            size = 2 * (found + n_hits)
            more_a, more_b = np.empty(size, np.int32), np.empty(size, np.int32)
            more_levels = np.empty((size, n_fields), np.uint8)
            more_a[:found] = out_a[:found]
            more_b[:found] = out_b[:found]
            more_levels[:found] = out_levels[:found]
            out_a, out_b, out_levels = more_a, more_b, more_levels
        for h in range(n_hits):
            out_a[found] = a
            out_b[found] = hits[h]
            for j in range(n_fields):
                out_levels[found, j] = level_of[codes_b[hits[h], j] + shift[j]]
            found += 1
        for j in range(n_fields):
            row = codes_a[a, j]
            if row >= 0:
                for p in range(indptr[row], indptr[row + 1]):
                    spread[slots[p]] = weights[j, 1]
                    level_of[slots[p]] = 1
        if found > limit:
            break
    return out_a[:found].copy(), out_b[:found].copy(), out_levels[:found].copy()
