"""Which sparse vectors have a large inner product, by compiled code."""

import numpy as np

from bayeslink.kernels import helper, kernel
from bayeslink.kernels.table_entries import grown


@helper
def _product(at_x, end_x, features_x, values_x, at_y, end_y, features_y, values_y):
    """Inner product of two vectors, given the rising numbers of their features."""
    total = np.int64(0)
    while at_x < end_x and at_y < end_y:
        if features_x[at_x] == features_y[at_y]:
            total += np.int64(values_x[at_x]) * np.int64(values_y[at_y])
            at_x += 1
            at_y += 1
        elif features_x[at_x] < features_y[at_y]:
            at_x += 1
        else:
            at_y += 1
    return total


@kernel("i8[::1](i8[::1],i4[::1],i4[::1],i4[::1],i8[::1],i4[::1],i4[::1],i4[::1])", rare=True)
def products(start_x, features_x, values_x, of_x, start_y, features_y, values_y, of_y):
    """Inner products of pairs of vectors, whole numbers all."""
    out = np.empty(len(of_x), np.int64)
    for k in range(len(of_x)):
        x, y = of_x[k], of_y[k]
        out[k] = _product(
            start_x[x], start_x[x + 1], features_x, values_x,
            start_y[y], start_y[y + 1], features_y, values_y,
        )  # fmt: skip
    return out


@kernel(
    "Tuple((i4[::1],i4[::1],i8[::1]))"
    "(i8[::1],i4[::1],i4[::1],i8,i8,i8[::1],i4[::1],i4[::1],i8[::1],i4[::1],i4[::1],f8[::1],i8,f8,i8)",
    rare=True,
)
def close_vectors(
    start_x, features_x, values_x, first, last, start_y, features_y, values_y,
    post_start, posts, post_values, tails_y, least, longest, limit,
):  # fmt: skip
    """Row − `first`, column and inner product of the pairs with a product of at least `least`.

    Features are numbered from the rarest. `posts` are the vectors of y by feature, and tails_y is,
    beside each, the length of that vector from the next feature on; `longest` is the length of the
    longest vector of y. Once what is left of x, times what can be left of y, is too short for
    `least`, no vector that has not been met can be close: the common features are never looked up.
    """
    found = 0
    rows, columns = np.empty(0, np.int32), np.empty(0, np.int32)
    scores = np.empty(0, np.int64)
    n_y = len(start_y) - 1
    sums, bound = np.zeros(n_y, np.int64), np.zeros(n_y)
    met = np.empty(n_y, np.int32)
    for x in range(first, last):
        left = 0.0
        for k in range(start_x[x], start_x[x + 1]):
            left += float(values_x[k]) * float(values_x[k])
        n_met = 0
        for k in range(start_x[x], start_x[x + 1]):
            if np.sqrt(left) * longest * (1 + 1e-9) < least:
                break
            value = np.int64(values_x[k])
            left = max(0.0, left - float(value) * float(value))
            tail = np.sqrt(left) * (1 + 1e-9) + 1e-3
            for p in range(post_start[features_x[k]], post_start[features_x[k] + 1]):
                y = posts[p]
                if sums[y] == 0:
                    met[n_met] = y
                    n_met += 1
                sums[y] += value * np.int64(post_values[p])
                bound[y] = float(sums[y]) + tail * tails_y[p]
        if found + n_met > len(rows):
            size = 2 * found + n_met
            rows, columns, scores = grown(rows, size), grown(columns, size), grown(scores, size)
        for m in range(n_met):
            y = met[m]
            sums[y] = 0
            if bound[y] * (1 + 1e-9) < least:
                continue
            score = _product(
                start_x[x], start_x[x + 1], features_x, values_x,
                start_y[y], start_y[y + 1], features_y, values_y,
            )  # fmt: skip
            if score >= least:
                rows[found], columns[found], scores[found] = x - first, y, score
                found += 1
        if found > limit:
            break
    return rows[:found].copy(), columns[:found].copy(), scores[:found].copy()
