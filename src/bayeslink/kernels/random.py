"""Random numbers in compiled code.

Randomness is counter-based: each (seed, chain, sweep, block) has its own splitmix64 stream.
"""

import numpy as np

from bayeslink.kernels import helper

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@helper
def mix(x):
    """The finaliser of splitmix64."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@helper
def start_stream(rng, seed, chain, sweep, block):
    """Point `rng` at the stream of a block in a sweep of a chain."""
    key = mix(np.uint64(seed) + _GOLDEN)
    key = mix(key ^ (np.uint64(chain) * np.uint64(0xD1342543DE82EF95)))
    key = mix(key ^ (np.uint64(sweep) * np.uint64(0xAEF17502108EF2D9)))
    rng[0] = mix(key ^ (np.uint64(block) * np.uint64(0xF1357AEA2E62A9C5)))


@helper
def uniform(rng):
    """The next number in [0, 1)."""
    rng[0] += _GOLDEN
    return (mix(rng[0]) >> np.uint64(11)) * 1.1102230246251565e-16


@helper
def normal(rng):
    """A standard normal number (polar method)."""
    while True:
        x = 2.0 * uniform(rng) - 1.0
        y = 2.0 * uniform(rng) - 1.0
        s = x * x + y * y
        if 0.0 < s < 1.0:
            return x * np.sqrt(-2.0 * np.log(s) / s)


@helper
def log_gamma_variate(rng, shape):
    """The log of a Gamma(shape, 1) number (Marsaglia & Tsang); the log survives tiny shapes."""
    boost = 0.0
    if shape < 1.0:
        boost = np.log(1.0 - uniform(rng)) / shape
        shape += 1.0
    d = shape - 1.0 / 3.0
    c = 1.0 / np.sqrt(9.0 * d)
    while True:
        x = normal(rng)
        v = (1.0 + c * x) ** 3
        if v > 0.0:
            u = 1.0 - uniform(rng)
            if np.log(u) < 0.5 * x * x + d - d * v + d * np.log(v):
                return np.log(d * v) + boost


@helper
def draw_log_dirichlet(rng, alpha, used, out):
    """log of a Dirichlet draw for each row of alpha, over its used columns."""
    for j in range(alpha.shape[0]):
        largest = -np.inf
        for h in range(alpha.shape[1]):
            if used[j, h]:
                out[j, h] = log_gamma_variate(rng, alpha[j, h])
                largest = max(largest, out[j, h])
        total = 0.0
        for h in range(alpha.shape[1]):
            if used[j, h]:
                total += np.exp(out[j, h] - largest)
        for h in range(alpha.shape[1]):
            if used[j, h]:
                out[j, h] -= largest + np.log(total)
