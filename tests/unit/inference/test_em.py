"""EM, the Fellegi–Sunter rule and Jaro's three stages."""

import itertools
import math

import numpy as np
import pyarrow as pa
import pytest
from scipy.optimize import minimize

import bayeslink as bl
from bayeslink.errors import SettingsError
from bayeslink.pairs.source import Patterns, Scope


@pytest.fixture(scope="module")
def easy():
    files = bl.simulate(400, overlap=0.5, errors=1, missing=0.02, seed=3)
    fields = [bl.levenshtein("gname"), bl.levenshtein("fname"), bl.exact("occup"), bl.date("dob")]
    return bl.compare(files.a, files.b, fields), files.truth


def log_likelihood(patterns, share, m, u):
    """Eq. 7, in one line per pattern."""
    total = 0.0
    for levels, count in zip(patterns.levels, patterns.counts, strict=True):
        of_m = math.prod(m[j][h - 1] for j, h in enumerate(levels) if h)
        of_u = math.prod(u[j][h - 1] for j, h in enumerate(levels) if h)
        total += count * math.log(share * of_m + (1 - share) * of_u)
    return total


def test_the_fit_is_a_maximum_of_the_mixture_likelihood(easy):
    """An independent optimiser, started at EM's answer, finds nothing better nearby."""
    pairs, _ = easy
    fit, patterns = bl.fit_em(pairs), pairs.pattern_counts()
    assert fit.converged
    at_fit = log_likelihood(patterns, fit.share, fit.m, fit.u)
    assert fit.log_likelihood == pytest.approx(at_fit, rel=1e-9)
    sizes = [f.n_levels for f in pairs.fields]
    cuts = np.cumsum([1, *sizes, *sizes])[:-1]

    def negative(x):
        parts = np.split(x, cuts)
        probabilities = [np.exp(p) / np.exp(p).sum() for p in parts[1:]]
        share = 1 / (1 + math.exp(-parts[0][0]))
        d = len(sizes)
        return -log_likelihood(patterns, share, probabilities[:d], probabilities[d:])

    start = [np.log(fit.share / (1 - fit.share))], *map(np.log, fit.m), *map(np.log, fit.u)
    options = {"maxiter": 60}
    better = minimize(negative, np.concatenate(start), method="L-BFGS-B", options=options)
    assert -better.fun - at_fit < 0.05


class Mixture:
    """Just enough of a PairSource for EM: the pattern counts that a mixture leads one to expect."""

    def __init__(self, n, n_matches, m, u):
        self.fields = [bl.exact(f"x{j}") for j in range(len(m))]
        self.scope = Scope(np.array([n]), np.array([n]))
        self.n_a, self.n_b, self.n_pairs = n, n, n * n
        agree = np.array(list(itertools.product([0, 1], repeat=len(m))))
        of_m, of_u = (np.where(agree, p, 1 - p).prod(axis=1) for p in map(np.array, (m, u)))
        counts = n_matches * of_m + (n * n - n_matches) * of_u
        self._patterns = Patterns((agree + 1).astype(np.uint8), counts.round().astype(np.int64))

    def pattern_counts(self):
        return self._patterns


@pytest.mark.parametrize("n", [1000, 30_000])
def test_pairs_that_cannot_match_do_not_end_the_fit_early(n):
    """Thirty times the non-matches to a match, and still the estimates are the mixture's."""
    m, u = [0.9, 0.8, 0.7, 0.6], [0.01, 0.02, 0.05, 0.1]
    fit = bl.fit_em(Mixture(n, n // 2, m, u))
    assert fit.converged
    assert fit.share * n * n == pytest.approx(n / 2, rel=0.01)
    np.testing.assert_allclose([p[1] for p in fit.m], m, rtol=0.01)
    np.testing.assert_allclose([p[1] for p in fit.u], u, rtol=0.01)


def test_a_fit_that_was_cut_short_says_so(easy):
    fit = bl.fit_em(easy[0], max_iterations=3)
    assert fit.iterations == 3
    assert not fit.converged


def keyed(keys_a, keys_b):
    """Two files that agree on a name here and there, within the given blocking keys."""
    a, b = (
        {"id": [f"{side}{i}" for i in range(len(keys))], "zone": keys, "name": names}
        for side, keys, names in (("a", keys_a, ["x", "y"] * 25), ("b", keys_b, ["x"] * 50))
    )
    return bl.compare(pa.table(a), pa.table(b), [bl.exact("name")], block=["zone"])


def test_without_a_pair_in_scope_there_is_nothing_to_fit_and_nothing_to_link():
    pairs = keyed(["north"] * 50, ["south"] * 50)
    fit = bl.fit_em(pairs)
    assert (fit.converged, fit.iterations, fit.log_likelihood) == (True, 0, 0.0)
    assert np.isfinite(fit.weight_of(np.array([[0], [1], [2]]))).all()
    assert np.isfinite(fit.match_probability(np.array([[0], [1], [2]]))).all()
    assert bl.fit_penalized(pairs).n_links == bl.assign_em(fit).n_links == 0
    rule = bl.fellegi_sunter(fit)
    assert (rule.n_link, rule.n_review, len(rule.links)) == (0, 0, 0)


def test_a_start_is_found_where_the_key_leaves_few_pairs():
    """Fewer pairs in scope than a tenth of the records."""
    fit = bl.fit_em(keyed(["north"] * 49 + ["here"], ["south"] * 48 + ["here"] * 2))
    assert fit.pairs.n_pairs == 2
    assert fit.converged


def test_em_and_assignment_link_one_to_one(easy):
    pairs, truth = easy
    linked = bl.assign_em(bl.fit_em(pairs), mu=3.0)
    table = linked.links.to_pylist()
    assert len({r["id_a"] for r in table}) == len({r["id_b"] for r in table}) == linked.n_links
    assert min(r["match_weight"] for r in table) > 3.0 / math.log(2)
    result = bl.evaluate(linked.links, truth)
    assert result.f1 > 0.9
    stricter = bl.assign_em(linked.fit, mu=12.0)
    assert 0 < stricter.n_links < linked.n_links
    with pytest.raises(SettingsError, match="finite"):
        bl.assign_em(linked.fit, mu=math.nan)


def test_two_thresholds_keep_the_error_rates_asked_for(easy):
    pairs, truth = easy
    fit = bl.fit_em(pairs)
    rule = bl.fellegi_sunter(fit, false_link_rate=1e-4, false_nonlink_rate=0.05)
    assert rule.false_link_rate <= 1e-4
    assert rule.false_nonlink_rate <= 0.05
    assert rule.lower <= rule.upper
    table = rule.links.to_pylist()
    assert sum(r["decision"] == "link" for r in table) == rule.n_link
    assert sum(r["decision"] == "review" for r in table) == rule.n_review
    # The estimated rates are about the true ones.
    true = {(r["id_a"], r["id_b"]) for r in truth.to_pylist()}
    false = sum((r["id_a"], r["id_b"]) not in true for r in table if r["decision"] == "link")
    missed = len(true) - sum((r["id_a"], r["id_b"]) in true for r in table)
    assert false / (pairs.n_pairs - len(true)) < 3e-4
    assert missed / len(true) < 0.12


def test_stricter_rates_widen_the_review_zone(easy):
    fit = bl.fit_em(easy[0])
    loose = bl.fellegi_sunter(fit, false_link_rate=1e-5, false_nonlink_rate=0.05)
    strict = bl.fellegi_sunter(fit, false_link_rate=1e-7, false_nonlink_rate=0.001)
    assert strict.upper > loose.upper
    assert strict.lower < loose.lower
    assert strict.n_review > loose.n_review
    # Rates so mild that one threshold meets both: nothing to review between them.
    mild = bl.fellegi_sunter(fit, false_link_rate=0.01, false_nonlink_rate=0.2)
    assert mild.upper == mild.lower


def test_given_thresholds_are_taken_and_checked(easy):
    fit = bl.fit_em(easy[0])
    rule = bl.fellegi_sunter(fit, upper=8.0, lower=2.0)
    weights = [r["match_weight"] * math.log(2) for r in rule.links.to_pylist()]
    assert min(weights) >= 2.0 - 1e-9
    assert rule.n_link == sum(w > 8.0 for w in weights)
    for wrong in ({"upper": 1.0, "lower": 2.0}, {"upper": math.nan}, {"false_link_rate": 2.0}):
        with pytest.raises(SettingsError):
            bl.fellegi_sunter(fit, **wrong)
    with pytest.raises(SettingsError, match="share"):
        bl.fit_em(easy[0], share=0.0)
