"""Which fields of a link are wrong, given how many: a conditional Bernoulli law.

P(which | how many) = Π r_j over the wrong ones / e(r), the elementary symmetric polynomial of that
degree over the fields seen. A common factor of all r cancels.
"""

import numpy as np

from bayeslink.kernels import helper, kernel


@helper
def symmetric(log_r, seen, skip, sums):
    """sums[e] = the polynomial of degree e over the fields seen, but for `skip`."""
    n = 0
    for e in range(len(sums)):
        sums[e] = 0.0
    sums[0] = 1.0
    for j in range(len(log_r)):
        if seen[j] and j != skip:
            n += 1
            r = np.exp(log_r[j])
            for e in range(n, 0, -1):
                sums[e] += r * sums[e - 1]


@helper
def log_constants(log_r, seen, out, sums):
    """[set, e]: log of the polynomial of degree e over each set of fields seen; 0 beyond."""
    for s in range(len(seen)):
        symmetric(log_r, seen[s], -1, sums)
        for e in range(len(sums)):
            out[s, e] = np.log(sums[e]) if sums[e] > 0.0 else 0.0


@helper
def log_likelihood_of(j, log_r, seen, counts, n_wrong_of, sums):
    """log likelihood of log r_j, the others held: `counts` are links by set and number wrong."""
    value = n_wrong_of[j] * log_r[j]
    for s in range(len(seen)):
        if not seen[s, j]:
            continue
        total = 0
        for e in range(1, len(sums)):
            total += counts[s, e]
        if total == 0:
            continue
        symmetric(log_r, seen[s], -1, sums)
        for e in range(1, len(sums)):
            if counts[s, e] > 0:
                value -= counts[s, e] * np.log(sums[e])
    return value


@kernel("f8[::1](b1[:,::1],i8[:,::1],i8[::1],f8,f8)")
def mode_of_r(seen, counts, n_wrong_of, centre, spread):
    """The log r of highest density, field by field by Newton's method: it is log-concave.

    `counts` are links by set of fields seen and number wrong, `n_wrong_of` by field wrong; log r
    is normal around `centre` a priori, so that their mean is at the centre: the data do not tell.
    """
    n = len(n_wrong_of)
    log_r = np.full(n, centre)
    sums = np.empty(n + 1)
    for _ in range(200):
        largest = 0.0
        for j in range(n):
            slope = n_wrong_of[j] - (log_r[j] - centre) / spread**2
            curve = 1.0 / spread**2
            for s in range(len(seen)):
                if not seen[s, j]:
                    continue
                symmetric(log_r, seen[s], j, sums)
                for e in range(1, n + 1):
                    if counts[s, e] > 0:
                        with_j = np.exp(log_r[j]) * sums[e - 1]
                        share = with_j / (with_j + sums[e])
                        slope -= counts[s, e] * share
                        curve += counts[s, e] * share * (1.0 - share)
            step = min(max(slope / curve, -1.0), 1.0)
            log_r[j] += step
            largest = max(largest, abs(step))
        shift = log_r.mean() - centre
        for j in range(n):
            log_r[j] -= shift
        if largest < 1e-9:
            break
    return log_r
