"""Table 1: weights of the eight comparison vectors of the Italian census."""

import numpy as np
import pytest

import bayeslink as bl
from bayeslink.linkage.em import fit_em
from bayeslink.model.weights import Priors, posterior_mode
from bayeslink.pairs.source import Patterns, Scope, count_levels
from tests.data import CENSUS, census_fields, needs_census

pytestmark = pytest.mark.short

# last, sex, edu agree; pairs; EM weight; penalized weight at theta = 2
TABLE = np.array(
    [
        [1, 1, 1, 25, 5.24, 6.09],
        [1, 0, 1, 8, 3.85, 3.30],
        [1, 1, 0, 13, -7.49, 2.10],
        [0, 1, 1, 126, 2.77, -0.66],
        [1, 0, 0, 21, -8.89, -0.69],
        [0, 0, 1, 78, 1.37, -3.44],
        [0, 1, 0, 601, -9.96, -4.64],
        [0, 0, 0, 658, -11.36, -7.43],
    ]
)
LEVELS = TABLE[:, :3].astype(np.uint8) + 1
COUNTS = TABLE[:, 3].astype(np.int64)
EDU_AGREES = TABLE[:, 2] == 1


def census(**kwargs):
    return bl.compare(CENSUS / "census.csv", CENSUS / "survey.csv", census_fields(), **kwargs)


def check_em(fit):
    w = fit.weight_of(LEVELS)
    # The maximum is on the boundary m_edu = 1: the rows with edu = 1 are exact, the others go to
    # −∞ as EM runs on, so that only their sign can be compared.
    np.testing.assert_allclose(w[EDU_AGREES], TABLE[EDU_AGREES, 4], atol=0.01)
    assert (w[~EDU_AGREES] < -7).all()
    assert np.isfinite(w).all()


class PrintedCounts:
    """Just enough of a PairSource for EM."""

    fields = census_fields()
    scope = Scope(np.array([34]), np.array([45]))
    n_a, n_b, n_pairs = 34, 45, 1530

    def pattern_counts(self):
        return Patterns(LEVELS, COUNTS)


def test_em_column_from_the_printed_counts():
    check_em(fit_em(PrintedCounts()))


@pytest.mark.parametrize("share", [0.001, 0.02, 0.3])
def test_em_column_from_other_starts(share):
    check_em(fit_em(PrintedCounts(), share=share))


def test_penalized_column_from_the_printed_counts():
    """28 links: 24 of (1,1,1), 1 of (1,0,1), 3 of (1,1,0)."""
    links = count_levels(np.repeat(LEVELS[:3], [24, 1, 3], axis=0), 3)
    everything = count_levels(np.repeat(LEVELS, COUNTS, axis=0), 3)
    fitted = posterior_mode(Priors.of(census_fields()), links, everything - links)
    np.testing.assert_allclose(fitted.weight_of(LEVELS), TABLE[:, 5], atol=0.01)


@needs_census
def test_pattern_counts():
    patterns = census().pattern_counts()
    found = dict(zip(map(tuple, patterns.levels.tolist()), patterns.counts.tolist(), strict=True))
    assert found == dict(zip(map(tuple, LEVELS.tolist()), COUNTS.tolist(), strict=True))


@needs_census
def test_em_column():
    check_em(bl.fit_em(census()))


@needs_census
def test_penalized_column_and_both_modes():
    fit = bl.fit_penalized(census(), theta=2.0)
    by_size = {mode.n_links: mode for mode in fit.modes}
    assert list(by_size)[:2] == [25, 28]  # best first
    assert by_size[25].objective == pytest.approx(-1952.78, abs=0.005)
    assert by_size[28].objective == pytest.approx(-1953.67, abs=0.005)
    np.testing.assert_allclose(by_size[28].weight_of(LEVELS), TABLE[:, 5], atol=0.01)


@needs_census
def test_path_over_theta():
    pairs = census()
    path = bl.penalty_path(pairs, np.arange(0, 7.01, 0.05))
    links = dict(zip(path.thetas.round(2), path.n_links, strict=True))
    assert set(path.n_links) <= {31, 28, 25, 24, 0}
    assert links[1.65] == 28
    assert links[1.75] == 25  # the two modes cross near 1.70
    assert (np.diff(path.n_links) <= 0).all()
    coexisting = {len({m.n_links for m in modes}) for modes in path.modes}
    assert 2 in coexisting  # up and down differ: modes coexist
    for theta, fit in zip(path.thetas, path.fits, strict=True):
        assert fit.objective >= max(m.objective for m in fit.modes)
        assert fit.theta == pytest.approx(theta)


@needs_census
def test_46_pairs_above_zero():
    fit = bl.fit_penalized(census(), theta=2.0)
    mode = next(m for m in fit.modes if m.n_links == 28)
    assert len(mode.pairs.pairs_above(mode.parameters.log_weights, 0.0)) == 46
