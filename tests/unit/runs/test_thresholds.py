"""What is expected at each threshold, against numbers worked out by hand."""

import math

import numpy as np
import pytest

import bayeslink as bl
from bayeslink.runs.thresholds import by_threshold, expected_links, expected_pairs

TOLD = {"links_mean": 3.0, "restricted": False, "links_outside": 0.4}
P = np.array([0.2, 0.9, 0.6])


def test_the_numbers_are_those_of_the_hand():
    low, half, high = by_threshold(P, 3.0, 1, [0.1, 0.6, 0.95]).to_pylist()
    assert low["pairs"] == 4
    assert low["expected_links"] == pytest.approx(2.7)  # 1 + .9 + .6 + .2
    assert low["expected_precision"] == pytest.approx(2.7 / 4)
    assert low["expected_recall"] == pytest.approx(2.7 / 3)
    assert half["pairs"] == 3  # a pair at the threshold is in
    assert half["expected_precision"] == pytest.approx(2.5 / 3)
    assert half["expected_recall"] == pytest.approx(2.5 / 3)
    assert high["pairs"] == 1  # known links are sure
    assert (high["expected_precision"], high["expected_recall"]) == (1, pytest.approx(1 / 3))


def test_recall_counts_links_that_restricted_sampling_set_aside():
    assert expected_links(TOLD) == 3.0  # without restriction, E[L] has them already
    restricted = {**TOLD, "restricted": True}
    assert expected_links(restricted) == 3.4
    (row,) = by_threshold(P, expected_links(restricted), 1, [0.5]).to_pylist()
    assert row["expected_recall"] == pytest.approx(2.5 / 3.4)


def test_where_there_is_nothing_precision_is_nan():
    (row,) = by_threshold(P, 3.0, 0, [0.95]).to_pylist()
    assert (row["pairs"], row["expected_recall"]) == (0, 0)
    assert math.isnan(row["expected_precision"])
    (row,) = by_threshold(P[:0], 0.0, 0, [0.5]).to_pylist()
    assert math.isnan(row["expected_recall"])


def test_at_a_half_it_is_what_the_run_expects():
    files = bl.simulate(300, seed=3)
    run = bl.link(files.a, files.b, ["gname", "fname", "dob"], draws=200, tune=100, chains=2)
    s = run.summary()
    p = run.as_table("pairs")["link_probability"]
    (row,) = by_threshold(p, expected_links(s), 0, [0.5]).to_pylist()
    false = row["pairs"] - row["expected_links"]
    assert row["pairs"] == run.n_links
    assert false == pytest.approx(s["expected_false_links"], abs=0.05)
    missed = s["links_mean"] * (1 - row["expected_recall"])
    assert missed == pytest.approx(s["links_mean"] - row["expected_links"])
    assert 0 < missed < s["links_mean"]


def test_pairs_of_one_person_are_those_joined_rightly_and_those_missed():
    told = {"expected_false_pairs": 0.5, "expected_missed_pairs": 1.5}
    assert expected_pairs([1, 2, 3], told) == 1 + 3 - 0.5 + 1.5
