"""Population size from several lists: published figures, closed forms, coverage, a wrong model."""

import numpy as np
import pytest

import bayeslink as bl
from bayeslink.errors import InputError, SettingsError
from bayeslink.sampling.many_lists import _all_models, _fit, list_counts

# Hepatitis A in northern Taiwan, three lists (P, Q, E), 271 people seen. Counts and estimates are
# those of Chao, Tsay, Lin, Shau and Chao (2001), Statistics in Medicine 20, 3123-3157.
HEPATITIS = {"P": 69, "Q": 55, "PQ": 21, "E": 63, "PE": 17, "QE": 18, "PQE": 28}
COUNTS = list(HEPATITIS.values())
PUBLISHED = {
    "independent": 388,
    "PE QE": 452,
    "PQ PE": 464,
    "PQ QE": 527,
    "PQ PE QE": 1313,
}
MODELS = {
    name: (
        *(frozenset([k]) for k in range(3)),
        *(frozenset("PQE".index(x) for x in pair) for pair in name.split() if name[0] == "P"),
    )
    for name in PUBLISHED
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_models_give_the_published_sizes(name):
    terms = MODELS[name] if name != "independent" else MODELS[name][:3]
    fit = _fit(np.array(COUNTS, float), terms)
    assert round(271 + np.exp(fit.log_unseen)) == PUBLISHED[name]


def test_the_saturated_model_has_its_closed_form_and_standard_error():
    p, q, pq, e, pe, qe, pqe = COUNTS
    fit = _fit(np.array(COUNTS, float), MODELS["PQ PE QE"])
    assert np.exp(fit.log_unseen) == pytest.approx(pqe * p * q * e / (pq * pe * qe))
    assert fit.error == pytest.approx(np.sqrt(sum(1 / n for n in COUNTS)))
    assert fit.deviance == pytest.approx(0, abs=1e-6)


def test_models_are_hierarchical_and_leave_out_the_interaction_of_all():
    assert len(_all_models(3)) == 8
    assert len(_all_models(4)) == 113  # all hierarchical ones of four lists but the saturated one
    for terms in _all_models(4):
        for term in terms:
            assert len(term) < 4
            assert all(term - {k} in terms for k in term if len(term) > 1)


def test_the_average_weighs_models_by_bic():
    found = bl.population_from_lists([COUNTS] * 4000, "PQE", seed=1)
    assert sum(one.probability for one in found.models) == pytest.approx(1)
    bic = [one.bic for one in found.models]
    assert bic == sorted(bic)
    first, second = found.models[:2]
    ratio = np.exp((second.bic - first.bic) / 2)
    assert first.probability / second.probability == pytest.approx(ratio)
    best = bl.population_from_lists([COUNTS] * 4000, "PQE", models="best", seed=1)
    assert (len(best.models), best.how) == (1, "best by BIC")
    assert found.high - found.low > best.high - best.low  # it knows that the model is unknown
    assert found.seen == 271


def simulated(rng, size, dependent):
    """People in three lists; the second likes those of the first."""
    a = rng.random(size) < 0.5
    b = rng.random(size) < np.where(a, 0.6 if dependent else 0.4, 0.4 if not dependent else 0.25)
    c = rng.random(size) < 0.35
    return list_counts(np.column_stack([a, b, c]))


@pytest.mark.parametrize("dependent", [False, True])
def test_the_interval_covers_and_a_wrong_model_does_not(dependent):
    rng = np.random.default_rng(5)
    own, independent = 0, 0
    for seed in range(100):
        counts = simulated(rng, 2000, dependent)
        found = bl.population_from_lists([counts] * 400, "ABC", seed=seed)
        own += found.low <= 2000 <= found.high
        fit = _fit(counts.astype(float), MODELS["independent"][:3])
        centre = counts.sum() + np.exp(fit.log_unseen)
        half = 1.96 * np.exp(fit.log_unseen) * fit.error
        independent += abs(2000 - centre) <= half
    assert own >= 88  # of 100; 95 are expected, fewer than 88 once in 300
    if dependent:
        assert independent < 50


def test_the_doubt_of_the_linkage_is_carried():
    many = [50 * n for n in COUNTS]
    certain = bl.population_from_lists([many] * 2000, "PQE", models="best", seed=2)
    rng = np.random.default_rng(3)
    moved = rng.integers(-300, 301, 2000)
    draws = np.tile(many, (2000, 1))
    draws[:, 6] += moved  # in all three, or apart
    draws[:, 0] -= moved
    doubtful = bl.population_from_lists(draws, "PQE", models="best", seed=2)
    assert doubtful.high - doubtful.low > 1.3 * (certain.high - certain.low)


def test_two_lists_are_those_of_population_size():
    found = bl.population_from_lists([[21, 10, 24]] * 500, ["a", "b"], seed=4)
    same = bl.population_size(45, 34, np.full(500, 24), seed=4)
    assert np.array_equal(found.draws, same.draws)


def test_lists_that_nobody_shares():
    counts = list(COUNTS)
    counts[2] = counts[6] = 0  # nobody in both P and Q
    found = bl.population_from_lists([counts] * 200, "PQE", seed=1)
    assert np.isfinite(found.high)
    assert all(one.population >= found.seen for one in found.models)
    with pytest.raises(InputError, match="no model"):
        bl.population_from_lists([5, 5, 0, 5, 0, 0, 0], "PQE")


def test_strata_add_up():
    both = {"f": [COUNTS] * 300, "m": [[2 * n for n in COUNTS]] * 300}
    found = bl.population_from_lists(both, "PQE", seed=1)
    assert np.array_equal(found.draws, found.strata["f"].draws + found.strata["m"].draws)
    assert found.seen == 3 * 271
    with pytest.raises(InputError, match="different numbers of draws"):
        bl.population_from_lists({"f": [COUNTS], "m": [COUNTS] * 2}, "PQE")


def test_same_seed_same_draws():
    one, other = (bl.population_from_lists([COUNTS] * 50, "PQE", seed=9).draws for _ in range(2))
    assert np.array_equal(one, other)


def test_bad_input_is_told():
    with pytest.raises(SettingsError, match="two to 5"):
        bl.population_from_lists([1], ["a"])
    with pytest.raises(InputError, match="7 entries"):
        bl.population_from_lists([1, 2, 3], "ABC")
    with pytest.raises(InputError, match="whole numbers"):
        bl.population_from_lists([1.5] * 7, "ABC")
    with pytest.raises(SettingsError, match="'average' or 'best'"):
        bl.population_from_lists(COUNTS, "PQE", models="all")


def test_people_are_counted_by_their_lists():
    assert list_counts([[1, 0], [1, 1], [0, 1], [1, 1], [0, 0]]).tolist() == [1, 1, 2]
