"""Expected numbers of pairs by weight, and the warning where fields go together."""

import itertools
import math

import numpy as np
import pytest

import bayeslink as bl
from bayeslink.linkage import rivals as independence
from bayeslink.linkage.rivals import Rivals, expected_above, expected_by_weight
from bayeslink.pairs.source import Pairs, sum_weights

NAMES = ("gname", "fname", "dob", "sex", "occup", "postcode")


def fitted(n=600, street=False, **settings):
    made = bl.simulate(n, seed=3, **settings)
    comparisons = [bl.levenshtein("gname"), bl.levenshtein("fname"), bl.date("dob", cuts=(0, 30))]
    comparisons += [bl.exact(name) for name in NAMES[3:]]
    comparisons += [bl.tokens("street")] if street else []
    pairs = bl.compare(made.a, made.b, comparisons)
    return pairs, bl.fit_penalized(pairs)


@pytest.fixture(scope="module")
def usual():
    return fitted()


@pytest.mark.parametrize(("grid", "within"), [(10**6, 1e-9), (50, 1e-3)])
def test_expected_number_of_pairs(usual, monkeypatch, grid, within):
    """As if fields were independent, level by level; in bins where there are many patterns."""
    monkeypatch.setattr(independence, "_GRID", grid)
    pairs, fit = usual
    shares = pairs.level_counts().counts / pairs.n_pairs
    weights = fit.parameters.log_weights
    kinds = list(itertools.product(*(range(f.n_levels + 1) for f in pairs.fields)))
    n = [pairs.n_pairs * math.prod(shares[j, h] for j, h in enumerate(kind)) for kind in kinds]
    w = sum_weights(weights, np.array(kinds, np.uint8))
    for threshold in (-100.0, -3.456, 0.123, 3.21, 50.0):
        found = expected_above(pairs, fit.parameters, threshold)
        assert found == pytest.approx(np.array(n)[w > threshold].sum(), rel=within, abs=1e-9)
    rising, expected = expected_by_weight(pairs, fit.parameters)
    assert (np.diff(rising) >= 0).all()
    assert expected.sum() == pytest.approx(pairs.n_pairs)


def test_rivals_are_the_unlinked_pairs_above_theta(usual):
    pairs, fit = usual
    above = pairs.pairs_above(fit.parameters.log_weights, fit.theta)
    every = set(zip(above.a.tolist(), above.b.tolist(), strict=True))
    links = set(zip(fit.linked.a.tolist(), fit.linked.b.tolist(), strict=True))
    rivals = fit.rivals.pairs
    assert set(zip(rivals.a.tolist(), rivals.b.tolist(), strict=True)) == every - links
    assert fit.rivals.expected == expected_above(pairs, fit.parameters, fit.theta)


def test_households_that_share_an_address_are_warned_of(usual):
    """Same people, same errors; it is the shared street and postcode that make the difference."""
    assert usual[1].rivals.warning() is None
    assert fitted(street=True, households=False)[1].rivals.warning() is None
    rivals = fitted(street=True)[1].rivals
    assert {"postcode", "street"} <= set(rivals.agreeing)
    assert "postcode, street" in rivals.warning()
    assert f"{len(rivals):,} pairs weigh enough" in rivals.warning()


@pytest.mark.parametrize(
    ("n", "expected", "n_links", "warned"),
    [(0, 0.0, 0, False), (100, 40.0, 100, False), (100, 10.0, 1000, False), (100, 10.0, 800, True)],
)
def test_when_to_warn(n, expected, n_links, warned):
    rows = np.arange(n, dtype=np.int32)
    levels = np.ones((n, 2), np.uint8)
    rivals = Rivals(Pairs(rows, rows, levels), expected, n_links, ("x", "y"))
    assert (rivals.warning() is not None) == warned
    assert rivals.agreeing == []
