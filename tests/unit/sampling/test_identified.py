"""What a run can point to and what it only counts: parts, draws with doubt, who uses them."""

from dataclasses import replace

import numpy as np
import pytest

import bayeslink as bl
from bayeslink.pairs.source import Pairs
from bayeslink.sampling import identified as module
from bayeslink.sampling import sensitivity
from bayeslink.sampling.identified import (
    COUNTED,
    FALSE,
    MOST_WIDER,
    SURELY,
    Parts,
    factors,
    identified,
    parts_of,
    said,
    standing_out,
    with_doubt,
)
from bayeslink.sampling.weight_bands import Band, misfit

FIELDS = [bl.levenshtein("gname"), bl.levenshtein("fname"), bl.exact("sex"), bl.exact("occup")]
SHORT = {"draws": 200, "tune": 200, "chains": 2, "seed": 4}
DRAWS = np.full((2, 5000), 1000)


@pytest.fixture(scope="module")
def run():
    made = bl.simulate(150, overlap=0.5, errors=3, seed=3)
    return bl.link(made.a, made.b, FIELDS, **SHORT)


def listed(a, b):
    return Pairs(np.array(a, np.int32), np.array(b, np.int32), np.zeros((len(a), 1), np.uint8))


# --- the parts --------------------------------------------------------------------------------


def test_parts_by_hand():
    pairs = listed([0, 1, 2, 2, 3], [0, 1, 2, 3, 4])
    p, w = np.array([1.0, 0.9, 0.45, 0.45, 0.3]), np.array([9.0, 5, 4, 4, 1])
    found = parts_of(pairs, p, w, theta=2.0, mean=7.0, known=3, records=(10, 10))
    assert found.pointed == pytest.approx(3 + 1.0 + 0.9 + 0.45 + 0.45)  # rivals stand out as well
    assert found.counted == pytest.approx(7 - found.pointed)
    assert found.false == pytest.approx(0.1)
    assert found.holds
    assert not replace(found, counted=found.pointed + 0.1).holds


def test_a_pair_above_theta_that_hardly_ever_links_does_not_stand_out():
    """Where L runs to the size of a file θ is low, and every pair is above it."""
    p, w = np.array([0.001, 0.09, 0.11, 0.9]), np.array([1.0, 1, 1, -1])
    assert standing_out(p, w, 0.0).tolist() == [False, False, True, False]


def test_look_alikes_one_by_one():
    rng = np.random.default_rng(1)
    n_a, n_b, known = 42, 32, 2
    a, b = np.divmod(rng.permutation(40 * 30)[:300], 30)
    p, w = np.where(np.arange(300) < 15, 0.8, 0.2), np.abs(rng.normal(size=300))
    w[:12] += SURELY + 0.5  # three of the links are not certain
    taken_a, taken_b = set(a[:12]), set(b[:12])
    of_a = sum(w[k] > 0.5 and a[k] in taken_a for k in range(12, 300))
    of_b = sum(w[k] > 0.5 and b[k] in taken_b for k in range(12, 300))
    alone = (1 - 20 / 40) * (1 - 20 / 30)  # 20 open links
    expected = alone * (of_a / len(taken_a) * 40 + of_b / len(taken_b) * 30) / 2
    given = {"theta": 0.5, "mean": 20.0 + known, "known": known, "records": (n_a - 2, n_b - 2)}
    assert parts_of(listed(a, b), p, w, **given).look_alikes == pytest.approx(expected)
    none = parts_of(listed(a, b), p / 2, w, **given)
    assert none.look_alikes == 0  # without a certain link nothing is known of them


@pytest.mark.parametrize(
    ("false", "look_alikes", "expected"), [(4.0, 9.0, 6.0), (4.0, 1.0, 4.0), (0.0, 9.0, 0.0)]
)
def test_false_links_lie_between_model_and_look_alikes(false, look_alikes, expected):
    parts = Parts(pointed=100.0, counted=0.0, false=false, look_alikes=look_alikes)
    assert parts.likely_false == pytest.approx(expected)


def test_a_run_tells_what_look_alikes_add(run):
    summary, parts = run.summary(), run.posterior.identified.parts
    more = parts.likely_false - parts.false
    told = run.decision.expected_false + more
    assert summary["expected_false_links"] == pytest.approx(min(told, run.n_links))


def test_look_alikes_are_as_many_as_there_are():
    """Pairs of two records without a partner, told from the pairs of those that have one."""
    rng = np.random.default_rng(2)
    n, certain, counts = 500, 250, []
    for _ in range(40):
        alike = rng.random((n, n)) < 2e-4
        np.fill_diagonal(alike, False)
        a, b = np.nonzero(alike)
        rows = np.append(np.arange(certain), a), np.append(np.arange(certain), b)
        p = np.append(np.ones(certain), np.full(len(a), 0.2))
        w = np.append(np.full(certain, 9.0), np.ones(len(a)))
        found = parts_of(
            listed(*rows), p, w, theta=0.0, mean=certain, known=0, records=(n, n)
        ).look_alikes
        counts.append((found, int(((a >= certain) & (b >= certain)).sum())))
    estimated, true = np.sum(counts, axis=0)
    assert estimated == pytest.approx(true, rel=0.1)


# --- draws with doubt -------------------------------------------------------------------------


def test_the_factors_are_log_normal_and_hang_on_the_seed_alone():
    found = factors((4, 500), 0.5, 7, 0)
    assert np.quantile(found, [0.025, 0.5, 0.975]) == pytest.approx(
        np.exp(0.5 * np.array([-1.96, 0, 1.96])), rel=0.01
    )
    np.testing.assert_array_equal(found, factors((4, 500), 0.5, 7, 0))
    assert not np.array_equal(found, factors((4, 500), 0.5, 8, 0))
    assert (
        abs(np.corrcoef(np.log(found.ravel()), np.log(factors((4, 500), 0.5, 7, 1).ravel()))[0, 1])
        < 0.1
    )


def test_each_part_is_as_doubtful_as_it_is_said_to_be():
    def of(misfit=1.0, **parts):
        given = {"pointed": 1000.0, "counted": 0.0, "false": 0.0, "look_alikes": 0.0, **parts}
        return identified(DRAWS, Parts(**given), misfit=misfit, known=0, most=2000, seed=1)

    def ends(spread):
        return np.exp(spread * np.array([-1.96, 1.96])) - 1

    low, high = of(counted=100.0, pointed=900.0).interval(0.95)
    assert (low, high) == pytest.approx(tuple(1000 + 100 * ends(COUNTED)), abs=1)
    for false in ({"false": 50.0}, {"false": 5.0, "look_alikes": 50.0}):
        low, high = of(**false).interval(0.95)
        assert (low, high) == pytest.approx(tuple(1000 - 50 * ends(FALSE)[::-1]), abs=1)
    low, high = of(misfit=4.0, false=50.0).interval(0.95)
    assert (low, high) == pytest.approx(tuple(1000 - 50 * ends(2 * FALSE)[::-1]), abs=1)
    assert of(misfit=1e6, false=5.0).interval(0.95) == of(misfit=MOST_WIDER**2, false=5.0).interval(
        0.95
    )
    assert of(misfit=0.1, false=5.0).interval(0.95) == of(false=5.0).interval(0.95)
    assert of().interval(0.95) == (1000, 1000)


def test_the_interval_covers_where_the_counted_part_is_wrong_by_such_a_factor():
    """And the draws alone do not: the check can fail."""
    rng, covered, by_draws = np.random.default_rng(3), 0, 0
    for seed in range(300):
        above, counted = 900 + rng.normal(0, 5), 80.0
        true = above + counted * np.exp(COUNTED * rng.normal())
        draws = np.rint(980 + rng.normal(0, 5, (2, 500))).astype(np.int64)
        parts = Parts(900.0, counted, 0.0, 0.0)
        found = identified(draws, parts, misfit=1.0, known=0, most=5000, seed=seed)
        low, high = found.interval(0.95)
        covered += low <= true <= high
        low, high = np.quantile(draws, [0.025, 0.975])
        by_draws += low <= true <= high
    assert 0.91 <= covered / 300 <= 0.98
    assert by_draws < 150


def test_where_most_is_only_counted_there_are_bounds():
    parts = Parts(200.0, 800.0, 5.0, 5.0)
    found = identified(DRAWS, parts, misfit=1.0, known=0, most=1500, seed=1)
    assert not found.holds
    assert found.interval(0.95) == (200, 1500)
    assert found.interval(0.5) == (200, 1500)


def test_no_fewer_links_than_known_and_no_more_than_there_is_room_for():
    parts = Parts(600.0, 400.0, 300.0, 0.0)
    found = identified(DRAWS, parts, misfit=9.0, known=950, most=1010, seed=1)
    assert found.draws.min() == 950
    assert found.draws.max() == 1010


# --- drawn links ------------------------------------------------------------------------------


def test_drawn_links_have_more_or_fewer_of_those_that_are_only_counted():
    pairs = listed([0, 1, 2, 3, 4, 5, 5], [0, 1, 2, 3, 4, 5, 0])
    pointed = np.array([True, True, False, False, False, False, False])
    state = np.array([0, 1, 2, 3], np.int32)
    others = np.array([2, 3, 4, 5, 6], np.int32)
    factor = np.array([0.0, 0.5, 1.0, 1.5, 9.0])
    order = np.arange(7)
    drawn = with_doubt([state] * 5, factor, pairs, pointed, others, order, 1)
    assert [len(links) for links in drawn] == [2, 3, 4, 5, 6]
    for links in drawn:
        assert {0, 1} <= set(links.tolist())
        assert len(np.unique(pairs.a[links])) == len(np.unique(pairs.b[links])) == len(links)
    again = with_doubt([state] * 5, factor, pairs, pointed, others, order, 1)
    assert all(map(np.array_equal, drawn, again))


def test_linked_datasets_are_as_unsure_as_the_interval(run):
    post = run.posterior
    assert post.identified.parts.counted > 1
    plain = [len(t) for t in replace(post, restricted=True).linked_datasets(100)]
    sizes = [len(t) for t in post.linked_datasets(100)]
    assert np.std(sizes) > np.std(plain)
    low, high = post.interval()
    assert np.mean([low <= n <= high for n in sizes]) > 0.9


# --- who uses them ----------------------------------------------------------------------------


def test_restricted_runs_have_the_draws_as_they_are(run):
    paper = replace(run.posterior, restricted=True)
    assert paper.identified.draws is paper.n_links
    assert paper.identified.parts.counted == 0
    low, high = np.quantile(paper.n_links, [0.025, 0.975], method="inverted_cdf")
    assert paper.interval() == (low, high)


def test_everything_that_has_an_interval_has_this_one(run, monkeypatch):
    post, s = run.posterior, run.summary()
    low, high = post.interval()
    draws = np.quantile(post.n_links, [0.025, 0.975], method="inverted_cdf")
    assert low < draws[0] or high > draws[1]
    assert s["links_interval"] == [low, high]
    assert s["links_pointed"] + s["links_counted"] == pytest.approx(s["links_mean"])
    assert f"{low:,} to {high:,}" in repr(run)
    assert any("are only counted" in warning for warning in run.warnings)
    people = post.population_size()
    wider = bl.population_size(150, 150, post.identified.draws.ravel(), seed=post.seed)
    np.testing.assert_array_equal(people.draws, wider.draws)
    assert people.identified
    for name, value in (("LEAST_ESS", 1), ("LEAST_SHARE", 0), ("MOST_AT_END", 1)):
        monkeypatch.setattr(sensitivity, name, value)
    (again,) = bl.sensitivity(run, [bl.Overlap(1, 1.01)]).results
    assert again.how == "reweighted"
    assert again.interval == pytest.approx((low, high), abs=2)


def test_what_is_told_of_links_that_are_only_counted():
    few = Parts(100.0, 5.0, 1.0, 1.0)
    assert said(few) is None
    assert "8 of 108 links are only counted" in said(replace(few, counted=8.0))
    assert "100 links can be pointed to, and 101 more" in said(replace(few, counted=101.0))


def test_a_run_that_is_not_identified_says_so_everywhere(run, monkeypatch, tmp_path):
    monkeypatch.setattr(module, "MOST_COUNTED", 0.0)
    post = run.posterior
    pointed = post.identified.parts.pointed
    low, high = post.interval()
    assert low <= pointed + 5
    assert high == 150
    text = repr(run)
    assert f"not known, from {low:,} to {high:,}. {pointed:,.0f} links can be pointed to" in text
    assert "95 % interval" not in text
    people = post.population_size()
    assert not people.identified
    assert people.low == pytest.approx(150, abs=20)
    run.save(tmp_path / "out", linked=False)
    run.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "not identified" in page
    assert "95 % probability between" not in page


def test_row_order_and_threads_do_not_matter(run):
    made = bl.simulate(150, overlap=0.5, errors=3, seed=3)
    other = bl.link(made.a.take(np.arange(149, -1, -1)), made.b, FIELDS, threads=1, **SHORT)
    assert other.posterior.interval() == run.posterior.interval()
    assert other.posterior.identified.parts.look_alikes == pytest.approx(
        run.posterior.identified.parts.look_alikes
    )


# --- misfit -----------------------------------------------------------------------------------


def test_misfit_of_bands():
    fits = Band(5.0, 7.5, 100, 0.0, 100.0)
    below = Band(2.0, 5.0, 900, 100.0, 0.0)
    assert misfit([below, fits], 5.0) == 0
    off = Band(7.5, None, 130, 0.0, 100.0)
    assert misfit([fits, off], 5.0) == pytest.approx(900 / (100 + 1 + 9) / 2)
    nonlinks = Band(7.5, None, 130, 100.0, 0.0)
    assert misfit([nonlinks], 5.0) == pytest.approx(900 / (300 + 1 + 9))
    assert misfit([], 5.0) == misfit([below], 5.0) == 1
