"""EM, the Fellegi–Sunter rule and Jaro's three stages."""

import itertools
import math

import numpy as np
import pyarrow as pa
import pytest
from scipy.optimize import linear_sum_assignment, minimize

import bayeslink as bl
from bayeslink.engines import joining
from bayeslink.engines.local import LocalPairs
from bayeslink.errors import SettingsError, TooManyPairsError
from bayeslink.linkage.em import EMFit
from bayeslink.model.weights import Parameters, Priors, proportions
from bayeslink.pairs.source import Patterns, Scope
from tests import oracles


@pytest.fixture(scope="module")
def easy():
    files = bl.simulate(400, overlap=0.5, errors=1, missing=0.02, seed=3)
    fields = [
        bl.levenshtein("gname"),
        bl.levenshtein("fname"),
        bl.exact("occup"),
        bl.date("dob", cuts=(0, 30)),
    ]
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


# --- Eq. 8 --------------------------------------------------------------------------------------


def by_dense_solver(fit):
    """Eq. 8 over the whole matrix by SciPy: total weight, and pairs assigned, before the cut.

    A pair outside the blocking key's scope costs more than all others weigh, so as few of them as
    possible are taken, and then dropped.
    """
    pairs, outside = fit.pairs, -1e6
    matrix = np.full((pairs.n_a, pairs.n_b), outside)
    everything = pairs.pairs_above(np.zeros((len(pairs.fields), 9)), -1.0)
    matrix[everything.a, everything.b] = fit.weight_of(everything.levels)
    taken = matrix[linear_sum_assignment(matrix, maximize=True)]
    return taken[taken > outside].sum(), int((taken > outside).sum())


def random_fit(rng, block):
    """Two small files full of ties, with weights drawn at random."""
    rows_a, rows_b = (
        [
            {c: str(rng.integers(k)) for c, k in zip("wxyz", (9, 7, 5, 3), strict=True)}
            for _ in range(n)
        ]
        for n in rng.integers(1, 30, 2)
    )
    a, b = oracles.records(rows_a), oracles.records(rows_b, side="B")
    pairs = LocalPairs(a, b, [bl.exact(c) for c in "wxy"], [bl.exact("z")] if block else [])
    used = Priors.of(pairs.fields).used
    m, u = (proportions(rng.lognormal(0, 2, used.shape), used) for _ in "mu")
    return EMFit(pairs, Parameters(m, u, used), 0.1, 0.0, 1, True, 0)


def weights(assigned):
    return assigned.fit.weight_of(assigned.linked.levels)


@pytest.mark.parametrize("block", [False, True])
def test_every_record_of_the_smaller_file_is_assigned_as_well_as_can_be(block):
    rng = np.random.default_rng(8)
    for _ in range(60):
        fit = random_fit(rng, block)
        value, n = by_dense_solver(fit)
        assert n == fit.pairs.scope.max_links
        everyone = bl.assign_em(fit, mu=-1e3)
        assert everyone.n_links == n
        assert len(set(everyone.linked.a)) == len(set(everyone.linked.b)) == n
        assert weights(everyone).sum() == pytest.approx(value, abs=1e-9)
        assert everyone.assignment.gap < 1e-9


def test_eq_8_assigns_first_and_cuts_afterwards():
    """Records that are left free take the best pairs; those that must be assigned make way."""
    files = bl.simulate(200, n_b=260, overlap=0.4, errors=3, seed=4)
    fields = [bl.levenshtein("gname"), bl.levenshtein("fname"), bl.exact("age")]
    for a, b in ((files.a, files.b), (files.b, files.a)):
        fit = bl.fit_em(bl.compare(a, b, fields))
        everyone = bl.assign_em(fit, mu=-1e3)
        value, n = by_dense_solver(fit)
        assert everyone.n_links == n == 200
        assert weights(everyone).sum() == pytest.approx(value)
        assert weights(everyone).min() < 0
        links, free = bl.assign_em(fit), bl.assign_em(fit, every_record=False)
        np.testing.assert_array_equal(weights(links), weights(everyone)[weights(everyone) > 0])
        assert weights(free).sum() > weights(links).sum() + 1


def test_eq_8_links_the_same_records_in_any_order_of_rows_and_files():
    rng = np.random.default_rng(3)
    files = bl.simulate(150, overlap=0.5, errors=3, seed=2)
    fields = [bl.levenshtein("gname"), bl.exact("occup")]

    def links(a, b):
        found = bl.assign_em(bl.fit_em(bl.compare(a, b, fields)))
        assert found.assignment.tied.sum() > 20
        return {(r["id_a"], r["id_b"]) for r in found.links.to_pylist()}

    expected = links(files.a, files.b)
    for _ in range(10):
        a, b = (t.take(pa.array(rng.permutation(len(t)))) for t in (files.a, files.b))
        assert links(a, b) == expected
    assert {(x, y) for y, x in links(files.b, files.a)} == expected


def test_too_many_pairs_for_eq_8_names_the_free_variant(easy, monkeypatch):
    fit = bl.fit_em(easy[0])
    free = bl.assign_em(fit, every_record=False)
    monkeypatch.setattr(joining, "MAX_LISTED", 20_000)
    with pytest.raises(TooManyPairsError, match="every_record=False"):
        bl.assign_em(fit)
    assert bl.assign_em(fit, every_record=False).n_links == free.n_links


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
    strict = bl.fellegi_sunter(fit, false_link_rate=1e-7, false_nonlink_rate=0.0005)
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
