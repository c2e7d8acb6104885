"""The benchmark of coverage: its scores, its split and its table."""

import math

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.coverage_data import (
    LADDER_FIELDS,
    PARTS,
    RUNGS,
    Analysis,
    _mistaken,
    rows,
    rung,
    seed_of,
)
from benchmarks.interval_coverage import (
    FLOOR,
    Settings,
    done_already,
    is_true,
    jobs,
    log_score,
    slope,
    table,
)

SETTINGS = Settings(None, 500, 500, 2)


def line(part="study", cell="1 error, 50", number=0, **values):
    scored = {"true_L": 50, "mean_L": 55.0, "covers": True, "f1": 0.9, "person": True}
    scored |= {"false_expected": 2.0, "false_found": 4, "log_score": 10.0}
    return {"part": part, "cell": cell, "set": number, **SETTINGS.key(), **scored, **values}


def test_log_score_by_hand():
    p, true = np.array([0.9, 0.2, 0.5]), np.array([True, False, True])
    expected = -(math.log(0.9) + math.log(0.8) + math.log(0.5))
    assert log_score(p, true, 2) == pytest.approx(expected)


def test_log_score_of_certain_mistakes_and_of_true_pairs_left_out_is_finite():
    p, true = np.array([0.0, 1.0]), np.array([True, False])
    assert log_score(p, true, 3) == pytest.approx(-4 * math.log(FLOOR))


def test_pairs_are_true_only_as_pairs():
    truth = pa.table({"id_a": ["1", "2"], "id_b": ["1", "2"]})
    pairs = pa.table({"id_a": ["1", "1", "2"], "id_b": ["2", "1", "2"]})
    assert is_true(pairs, truth).tolist() == [False, True, True]


def test_slope_is_that_of_least_squares():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 30))
    (expected, _), covariance = np.polyfit(x, y, 1, cov=True)
    found = slope(Analysis(x, y), np.arange(30), np.arange(30))
    assert found == pytest.approx((expected, covariance[0, 0]))


def test_rows_by_id():
    assert rows(pa.table({"id": ["a", "b", "c"]}), pa.array(["c", "a"])).tolist() == [2, 0]


def test_development_and_report_share_no_data_set():
    for name, part in PARTS.items():
        development, report = (set(part.numbers(s, 10)) for s in ("development", "report"))
        assert not development & report
        assert all(number % 2 == 0 for number in development)
        assert len(report) == 10
        assert bool(development) != (name in ("study", "readme"))
    assert seed_of("households", 7) % 2 == 1


def test_cells_are_chosen_by_name_and_not_repeated():
    wanted = list(jobs(["simulated"], ["500,*"], "report", 2))
    assert {cell.split(",")[0] for _, cell, _ in wanted} == {"500"}
    assert [number for *_, number in wanted] == [1] * 6 + [3] * 6
    assert done_already([line()], SETTINGS) == {("study", "1 error, 50", 0)}
    assert not done_already([line(model="other")], SETTINGS)


def test_a_fifth_of_the_compared_fields_is_wrong_however_they_are_spread():
    rng = np.random.default_rng(1)
    wrong = {s: _mistaken(20_000, s, rng) for s in ("independent", "clustered", "exactly one")}
    for mistaken in wrong.values():
        assert mistaken.mean() == pytest.approx(0.2, abs=0.005)
    variance = {spread: mistaken.sum(axis=1).var() for spread, mistaken in wrong.items()}
    assert variance["exactly one"] == 0
    assert variance["clustered"] > 1.5 * variance["independent"]


def test_exactly_one_field_differs_on_that_rung():
    made = rung("exactly one error", 2, **RUNGS["exactly one error"])
    at_a, at_b = rows(made.a, made.truth["id_a"]), rows(made.b, made.truth["id_b"])
    a, b = (
        np.array([t[name].to_pylist() for name in LADDER_FIELDS], object)
        for t in (made.a.take(at_a), made.b.take(at_b))
    )
    assert len(made.truth) == 250
    assert ((a != b).sum(axis=0) == 1).all()


def test_table_by_hand():
    lines = [
        line(),
        line(number=1, mean_L=45.0, covers=False, false_found=0, f1=1.0, log_score=20.0),
        line(cell="1 error, 250", true_L=250, mean_L=260.0, false_found=0),
        line("folders", "abt_buy", 1, person=False),
    ]
    text = table(lines[::-1])
    assert "| 1 error, 50 | 2 | 50 | +0.0 (+0.0 %) | 50 | 0.950 | 4.0 / 4 | 1.00 | 15.0 |" in text
    assert "| 1 error, 250 | 1 | 250 | +10.0 (+4.0 %) | 100 | 0.900 | 2.0 / 0 | – | 10.0 |" in text
    assert "| all of people | 3 | 117 | +3.3 (+2.9 %) | 67 |" in text
    assert text.index("**study**") < text.index("**folders**")
    assert "2 chains of 500 + 500 sweeps" in text
    assert "all others" not in text  # one cell needs no sum


def test_table_of_a_population():
    seen = {"N": 800, "N_median": 790.0, "slope": 0.95, "slope_covers": True}
    seen |= {"N_covers": False, "N_covers_known": True, "slope_covers_known": True}
    text = table([line("population", "400 of 800 people", 1, **seen)])
    assert "N covered: 0 % (links known: 100 %), mean of medians 790 for 800" in text
    assert "slope covered: 100 % (links known: 100 %), mean 0.950 for 1." in text
