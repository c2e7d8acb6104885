"""Population size against enumeration of its posterior; pooling against hand and simulation."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln

from bayeslink.errors import InputError, SettingsError
from bayeslink.sampling.pooling import pool
from bayeslink.sampling.population import chapman, lincoln_petersen, population_size

FALSE_ALARM = 1e-4  # of each chi-square test; seeds are fixed


def posterior(n_a, n_b, links, power, top=200_000):
    """p(N | L) for N up to top, from the definition: hypergeometric likelihood × N^−power.

    The tail above, which falls as N^−(L + power), is an integral; it is added at the end.
    """
    N = np.arange(n_a + n_b - links, top, dtype=float)
    log_p = stats.hypergeom.logpmf(links, N, n_a, n_b) - power * np.log(N)
    p = np.exp(log_p - log_p.max())
    p = np.append(p, p[-1] * top / (links + power - 1))
    return N, p / p.sum()


def goodness_of_fit(draws, N, p):
    """p-value of draws against a pmf, in some twenty cells of about equal probability."""
    edges = np.unique(np.searchsorted(p.cumsum(), np.linspace(0, 1, 21)[1:-1]))
    cells = np.searchsorted(edges, draws - int(N[0]), side="left")
    expected = np.add.reduceat(p, [0, *(edges + 1)]) * len(draws)
    return stats.chisquare(np.bincount(cells, minlength=len(expected)), expected).pvalue


@pytest.mark.parametrize(
    ("n_a", "n_b", "links", "prior"),
    [
        (34, 45, 24, "1/N"),
        (10, 3, 2, "1/N"),
        (3, 3, 3, "1/N"),
        (60, 50, 5, "1/N"),
        (1, 2, 1, "1/N"),
        (40, 9, 1, "1/N"),
        (34, 45, 24, "flat"),
        (10, 3, 2, "flat"),
        (3, 3, 3, "flat"),
        (60, 50, 5, "flat"),
    ],
)
def test_population_size_has_the_enumerated_posterior(n_a, n_b, links, prior):
    draws = population_size(n_a, n_b, np.full(100_000, links), prior=prior).draws
    assert draws.min() >= n_a + n_b - links
    N, p = posterior(n_a, n_b, links, power={"1/N": 1, "flat": 0}[prior])
    assert goodness_of_fit(draws, N, p) > FALSE_ALARM


def test_a_slightly_wrong_prior_is_noticed():
    """The negative control: 1/(N + 1), from which the sampler starts, and the other prior."""
    draws = population_size(3, 3, np.full(100_000, 3)).draws
    N, p = posterior(3, 3, 3, 1)
    proposal = p * np.append(N, 1) / np.append(N + 1, 1)
    assert goodness_of_fit(draws, N, proposal / proposal.sum()) < 1e-6
    assert goodness_of_fit(draws, *posterior(3, 3, 3, 0)) < 1e-6


def test_large_files_have_the_right_mean_and_spread():
    n, links = 1_000_000, 400_000
    size = population_size(n, n, np.full(50_000, links))
    N = np.arange(2_470_000.0, 2_530_000.0)
    log_p = 2 * gammaln(N - n + 1) - gammaln(N - 2 * n + links + 1) - gammaln(N + 1) - np.log(N)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    mean = p @ N
    sd = math.sqrt(p @ (N - mean) ** 2)
    assert size.mean == pytest.approx(mean, abs=4 * sd / math.sqrt(50_000))
    assert size.draws.std() == pytest.approx(sd, rel=4 / math.sqrt(2 * 50_000))
    cdf = p.cumsum()
    assert size.low == pytest.approx(N[np.searchsorted(cdf, 0.025)], abs=0.05 * sd)
    assert size.high == pytest.approx(N[np.searchsorted(cdf, 0.975)], abs=0.05 * sd)


def test_italian_census():
    """Section 5.1: point estimates 51 to 64; union of 95 % intervals (49, 78), ours within one."""
    each = [population_size(34, 45, np.full(20_000, links)) for links in range(24, 31)]
    assert min(size.low for size in each) == pytest.approx(49, abs=1)
    assert max(size.high for size in each) == pytest.approx(78, abs=1)
    mixed = population_size(34, 45, np.repeat(np.arange(24, 31), 1000))
    assert mixed.lincoln_petersen == (51, 63.75)
    assert mixed.chapman == pytest.approx((35 * 46 / 31 - 1, 35 * 46 / 25 - 1))
    assert 49 < mixed.low < 54 < mixed.median < 60 < mixed.high < 78


def test_uncertain_links_give_the_mixture():
    links = np.repeat([24, 30], 50_000).reshape(4, -1)
    size = population_size(34, 45, links, interval=0.8)
    assert size.draws.shape == links.shape
    assert np.all(size.draws >= 34 + 45 - links)
    (N, p), (M, q) = posterior(34, 45, 24, 1), posterior(34, 45, 30, 1)
    mean = (p[:-1] @ N + q[:-1] @ M) / 2
    assert size.mean == pytest.approx(mean, abs=0.1)
    mixture = np.bincount(N.astype(int), p[:-1]) + np.bincount(M.astype(int), q[:-1])
    cdf = mixture.cumsum() / 2
    wanted = np.searchsorted(cdf, [0.1, 0.5, 0.9])
    assert [size.low, size.median, size.high] == pytest.approx(wanted, abs=1)


def test_same_seed_same_sizes():
    links = np.full(100, 28)
    one, again = (population_size(34, 45, links, seed=5).draws for _ in range(2))
    np.testing.assert_array_equal(one, again)
    assert np.any(one != population_size(34, 45, links, seed=6).draws)


def test_a_single_link_has_a_posterior_without_mean():
    links = np.full(20_000, 1)
    size = population_size(10**6, 10**6, links)
    assert size.mean is None
    assert size.draws.min() > 2 * 10**6 - 1
    # For large lists N is n_a n_b / z with z exponential.
    assert size.median == pytest.approx(1e12 / math.log(2), rel=0.05)
    # Rates that no integer holds are cut off, not an error.
    assert 2**62 < population_size(10**9, 10**9, links).draws.max() < 2**62 + 2**36
    assert population_size(10, 10, [2, 2]).mean is not None
    assert population_size(10, 10, [2, 2], prior="flat").mean is None


@pytest.mark.parametrize(
    ("prior", "links"), [("1/N", [0, 3, 3]), ("flat", [1, 3]), ("flat", [0, 4])]
)
def test_improper_posteriors_are_refused(prior, links):
    with pytest.raises(InputError, match=f"1 of {len(links)} draws .* proper posterior") as error:
        population_size(10, 10, links, prior=prior)
    assert ("use the prior '1/N'" in str(error.value)) == (min(links) > 0)


@pytest.mark.parametrize("links", [[], [-1], [4], [1.5], [math.nan]])
def test_links_must_be_possible(links):
    with pytest.raises(InputError, match="whole numbers from 0 to 3"):
        population_size(3, 5, links)


def test_settings_of_the_population_size():
    with pytest.raises(SettingsError, match="prior"):
        population_size(3, 5, [2], prior="1/n")
    with pytest.raises(SettingsError, match="interval"):
        population_size(3, 5, [2], interval=95)


def test_point_estimates():
    np.testing.assert_allclose(lincoln_petersen(34, 45, [30, 0]), [51, math.inf])
    np.testing.assert_allclose(chapman(34, 45, [30, 0]), [35 * 46 / 31 - 1, 35 * 46 - 1])


# --- Rubin's rules --------------------------------------------------------------------------


def test_rubins_rules_by_hand():
    """W = 5, B = 1, T = 5 + 4/3 = 19/3, λ = 4/19, ν = 2 / λ² = 45.125, t = 2.0140."""
    pooled = pool([10, 12, 11], [4, 5, 6])
    assert (pooled.estimate, pooled.within, pooled.between, pooled.k) == (11, 5, 1, 3)
    assert pooled.total == pytest.approx(19 / 3)
    assert pooled.df == pytest.approx(45.125)
    r = 4 / 15
    assert pooled.missing_information == pytest.approx((r + 2 / 48.125) / (r + 1))
    half = 2.0140 * math.sqrt(19 / 3)
    assert (pooled.low, pooled.high) == pytest.approx((11 - half, 11 + half), abs=1e-3)
    assert isinstance(pooled.low, float)
    assert pool([(10, 4), (12, 5), (11, 6)]) == pooled
    assert pool([10, 12, 11], [4, 5, 6], interval=0.5).high < pooled.high


def test_barnard_and_rubin_by_hand():
    """With 20 complete-data degrees of freedom: 21/23 · 20 · 15/19 = 14.4165 observed."""
    pooled = pool([10, 12, 11], [4, 5, 6], complete_df=20)
    assert pooled.df == pytest.approx(1 / (1 / 45.125 + 1 / 14.416476), rel=1e-6)
    assert pool([10, 12, 11], [4, 5, 6], complete_df=math.inf).df == pytest.approx(45.125)
    assert pool([3, 3], [4, 4], complete_df=20).df == pytest.approx(21 / 23 * 20)


def test_vectors_and_covariance_matrices():
    rng = np.random.default_rng(0)
    q = rng.standard_normal((6, 3))
    root = rng.standard_normal((6, 3, 4))
    u = root @ root.transpose(0, 2, 1)
    full = pool(q, u)
    vectors = pool(list(zip(q, np.diagonal(u, axis1=1, axis2=2), strict=True)))
    np.testing.assert_allclose(full.between, np.cov(q.T))
    np.testing.assert_allclose(full.total, u.mean(axis=0) + 7 / 6 * np.cov(q.T))
    np.testing.assert_allclose(np.diagonal(full.total), vectors.total)
    for j in range(3):
        alone = pool(q[:, j], u[:, j, j])
        for name in ("estimate", "df", "low", "high", "missing_information"):
            assert getattr(full, name)[j] == pytest.approx(getattr(alone, name))
            assert getattr(vectors, name)[j] == pytest.approx(getattr(alone, name))


def test_no_disagreement_and_nothing_else():
    """Equal estimates: the plain normal interval. No variance within: all information missing."""
    same = pool([3, 3, 3], [4, 4, 4])
    assert (same.df, same.missing_information, same.total) == (math.inf, 0, 4)
    assert (same.low, same.high) == pytest.approx((3 - 2 * 1.959964, 3 + 2 * 1.959964))
    certain = pool([1, 2, 3], [0, 0, 0], complete_df=10)
    assert (certain.df, certain.missing_information) == (2, 1)
    point = pool([3, 3], [0, 0])
    assert (point.low, point.high) == (3, 3)


def test_the_interval_covers():
    """A normal mean, sd known, 20 of 50 values missing and imputed: 95 % of intervals hold it.

    Negative control: forgetting the variance between imputations, far fewer do.
    """
    rng = np.random.default_rng(7)
    n, missing, k, repeats = 50, 20, 8, 20_000
    observed = rng.standard_normal((repeats, n - missing)).mean(axis=1)
    mu = observed + rng.standard_normal((k, repeats)) / math.sqrt(n - missing)
    imputed = mu + rng.standard_normal((k, repeats)) / math.sqrt(missing)  # mean of those missing
    means = ((n - missing) * observed + missing * imputed) / n
    pooled = pool(means, np.full(means.shape, 1 / n))
    covered = np.mean((pooled.low < 0) & (pooled.high > 0))
    assert covered == pytest.approx(0.95, abs=4 * math.sqrt(0.95 * 0.05 / repeats))
    naive = np.mean(np.abs(pooled.estimate) < 1.96 * np.sqrt(pooled.within))
    assert naive < 0.9
    # The truth is 20 of 50 values, and 2 / (ν + 3) for a finite number of imputations.
    assert np.mean(pooled.missing_information) == pytest.approx(missing / n, abs=0.05)


def test_one_estimate_cannot_be_pooled():
    for few in ([(1.0, 0.1)], []):
        with pytest.raises(SettingsError, match=f"at least two estimates, got {len(few)}"):
            pool(few)
    with pytest.raises(SettingsError, match="at least two"):
        pool([1.0], [0.1])


@pytest.mark.parametrize(
    ("estimates", "variances"),
    [
        ([1, 2], [1]),
        ([1, 2], [[1, 1], [1, 1]]),
        ([[1, 2], [1, 2]], [1, 1]),
        ([1, 2], None),
        ([1, [1, 2]], [1, 1]),
        ([1, "x"], [1, 1]),
        ([1, 2], [1, -1]),
        ([1, math.nan], [1, 1]),
        ([1, 2], [1, math.inf]),
        (np.zeros((2, 2, 2)), np.zeros((2, 2, 2))),
    ],
)
def test_estimates_must_fit_their_variances(estimates, variances):
    with pytest.raises(InputError, match=r"estimates"):
        pool(estimates, variances)


def test_settings_of_pool():
    with pytest.raises(SettingsError, match="complete_df"):
        pool([1, 2], [1, 1], complete_df=0)
    with pytest.raises(SettingsError, match="interval"):
        pool([1, 2], [1, 1], interval=1)
