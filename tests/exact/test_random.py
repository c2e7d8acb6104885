"""The kernels' random numbers: distributions against SciPy, streams free of each other."""

import numba
import numpy as np
import pytest
from scipy import stats

from bayeslink.kernels import random as kernels
from tests.exact.problems import callable_here

start_stream, uniform, normal, log_gamma_variate, draw_log_dirichlet = (
    callable_here(getattr(kernels, name))
    for name in ("start_stream", "uniform", "normal", "log_gamma_variate", "draw_log_dirichlet")
)
ALARM = 1e-4  # p-value below which a distribution counts as wrong; seeds are fixed
GOLDEN = int(kernels._GOLDEN)


@numba.njit
def uniforms(key, n):
    rng = np.zeros(1, np.uint64)
    start_stream(rng, key[0], key[1], key[2], key[3])
    return np.array([uniform(rng) for _ in range(n)])


@numba.njit
def normals(n):
    rng = np.zeros(1, np.uint64)
    start_stream(rng, 1, 2, 3, 4)
    return np.array([normal(rng) for _ in range(n)])


@numba.njit
def log_gammas(shape, n):
    rng = np.zeros(1, np.uint64)
    start_stream(rng, 5, 6, 7, 8)
    return np.array([log_gamma_variate(rng, shape) for _ in range(n)])


@numba.njit
def first_states(seeds, chains, sweeps, blocks):
    """The state of the stream of every key (seed, chain, sweep, block) of a grid."""
    out = np.empty((len(seeds), len(chains), len(sweeps), len(blocks)), np.uint64)
    rng = np.zeros(1, np.uint64)
    for i, seed in enumerate(seeds):
        for j, chain in enumerate(chains):
            for k, sweep in enumerate(sweeps):
                for h, block in enumerate(blocks):
                    start_stream(rng, seed, chain, sweep, block)
                    out[i, j, k, h] = rng[0]
    return out


@numba.njit
def next_uniforms(states):
    """The first number of the stream in each state."""
    out, rng = np.empty(len(states)), np.zeros(1, np.uint64)
    for i in range(len(states)):
        rng[0] = states[i]
        out[i] = uniform(rng)
    return out


def grid():
    """A million keys, small numbers as in any run and the ends of their ranges."""
    seeds = np.array([0, 1, 2, 3, 4, 12345, 2**31, 2**63 - 1])
    blocks = np.arange(-1, 99)  # −1, as unsigned, is the key of m and u
    return first_states(seeds, np.arange(5), np.arange(250), blocks)


# --- distributions -----------------------------------------------------------------------------


def test_uniform_numbers():
    x = uniforms((1, 0, 0, 0), 500_000)
    assert (x >= 0).all()
    assert (x < 1).all()
    assert stats.kstest(x, "uniform").pvalue > ALARM
    cells = np.histogram2d(x[::2], x[1::2], bins=20, range=[[0, 1], [0, 1]])[0]
    assert stats.chisquare(cells.ravel()).pvalue > ALARM
    for lag in (1, 2, 3, 7, 64):
        assert abs(np.corrcoef(x[:-lag], x[lag:])[0, 1]) < 4 / np.sqrt(len(x))


def test_normal_numbers():
    assert stats.kstest(normals(200_000), "norm").pvalue > ALARM


@pytest.mark.parametrize("shape", [0.01, 0.3, 1.0, 2.5, 500.0])
def test_logs_of_gamma_numbers(shape):
    x = log_gammas(shape, 200_000)
    assert np.isfinite(x).all()
    assert stats.kstest(x, stats.loggamma(shape).cdf).pvalue > ALARM


@pytest.mark.parametrize("alpha", [(0.01, 0.02, 0.3), (1.0, 1.0), (2.5, 0.3, 40.0, 7.0)])
def test_logs_of_dirichlet_numbers(alpha):
    """Each share is Beta, rows are independent, and unused columns are left alone."""
    n, k, gap = 20_000, len(alpha), -7.0
    used = np.zeros((n, k + 2), bool)
    used[:, 1:-1] = True
    parameters = np.where(used, np.concatenate([[0], alpha, [0]]), 0.0)
    out, rng = np.full(used.shape, gap), np.zeros(1, np.uint64)
    start_stream(rng, 3, 1, 4, 1)
    draw_log_dirichlet(rng, parameters, used, out)
    assert (out[~used] == gap).all()
    shares = np.exp(out[:, 1:-1])
    assert np.isfinite(out).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-12)
    total = sum(alpha)
    for h, a in enumerate(alpha):
        # Of tiny shares, and of shares near 1, only the log of the odds keeps its digits.
        others = np.delete(out[:, 1:-1], h, axis=1)
        log_odds = out[:, 1 + h] - np.logaddexp.reduce(others, axis=1)
        assert stats.kstest(log_odds, log_odds_of_beta(a, total - a)).pvalue > ALARM
    for h, g in zip(*np.triu_indices(k, 1), strict=True):
        expected = -alpha[h] * alpha[g] / (total**2 * (total + 1))
        spread = np.std(shares[:, h] * shares[:, g]) / np.sqrt(n)
        assert abs(np.cov(shares[:, h], shares[:, g])[0, 1] - expected) < 5 * spread + 1e-12


def log_odds_of_beta(a, b):
    """Distribution function of log(x / (1 − x)), x ~ Beta(a, b): F of a ratio of Gammas."""
    # Beyond exp(±700) there is less than 0.1 % of any law tested here.
    return lambda t: stats.betaprime(a, b).cdf(np.exp(np.clip(t, -700, 700)))


# --- streams -----------------------------------------------------------------------------------


def test_no_two_keys_share_a_stream():
    states = grid()
    assert len(np.unique(states)) == states.size == 1_000_000
    first = next_uniforms(states.ravel())
    assert len(np.unique(first)) == len(first)
    assert stats.kstest(first, "uniform").pvalue > ALARM


def test_streams_do_not_run_into_each_other():
    """A state is a position on one cycle of 2^64; no two start within ten thousand steps."""
    step_back = np.uint64(pow(GOLDEN, -1, 2**64))
    positions = np.sort(grid().ravel() * step_back)
    assert np.diff(positions).min() > 10_000


@pytest.mark.parametrize("axis", range(4))
def test_neighbouring_streams_are_uncorrelated(axis):
    """Keys that differ by one in seed, chain, sweep or block."""
    states = np.moveaxis(grid(), axis, 0)
    x, y = (next_uniforms(part.ravel()) for part in (states[:-1], states[1:]))
    assert abs(np.corrcoef(x, y)[0, 1]) < 4 / np.sqrt(len(x))
    key = np.array([3, 1, 4, 1])
    x = uniforms(key, 100_000)
    key[axis] += 1
    y = uniforms(key, 100_000)
    for lag in (0, 1, 2, 5):
        assert abs(np.corrcoef(x[lag:], y[: len(y) - lag])[0, 1]) < 4 / np.sqrt(len(x))


# --- ends of the range -------------------------------------------------------------------------


def state_before(output):
    """The state from which the next 64 bits are `output`: mix, undone, and one step back."""
    x = output
    for shift, factor in ((31, 0x94D049BB133111EB), (27, 0xBF58476D1CE4E5B9), (30, 1)):
        y = x
        for _ in range(64 // shift):
            y = x ^ (y >> shift)
        x = y * pow(factor, -1, 2**64) % 2**64
    return np.array([(x - GOLDEN) % 2**64], np.uint64)


def test_the_ends_of_the_uniform_range():
    assert uniform(state_before(0)) == 0.0
    assert uniform(state_before(2**64 - 1)) == 1 - 2.0**-53


@pytest.mark.parametrize("output", [0, 1, 2**63 - 1, 2**63, 2**64 - 1])
@pytest.mark.parametrize("shape", [0.001, 0.3, 1.0, 500.0])
def test_logs_are_finite_at_the_ends(output, shape):
    """Whether it is the first, second or third uniform that is extreme."""
    for steps in range(3):
        state = state_before(output) - np.uint64(steps * GOLDEN % 2**64)
        assert np.isfinite(log_gamma_variate(state.copy(), shape))
        assert np.isfinite(normal(state.copy()))
