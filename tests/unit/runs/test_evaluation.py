"""Links against the truth: small cases by hand, and a set-arithmetic oracle."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bayeslink as bl
from bayeslink.errors import InputError, SettingsError
from bayeslink.runs.evaluation import evaluate

LINKS = [("A1", "B1"), ("A2", "B2"), ("A3", "B9")]
TRUTH = [("A1", "B1"), ("A2", "B2"), ("A4", "B4"), ("A5", "B5")]


def columns(pairs):
    return {"id_a": [a for a, _ in pairs], "id_b": [b for _, b in pairs]}


def test_by_hand():
    result = evaluate(LINKS, TRUTH)
    assert (result.n_links, result.n_true) == (3, 4)
    assert (result.true_links, result.false_links, result.missed) == (2, 1, 2)
    assert result.precision == pytest.approx(2 / 3)
    assert result.recall == pytest.approx(1 / 2)
    assert result.f1 == pytest.approx(4 / 7)
    assert result.reduction_ratio is None
    assert result.pairs_completeness is None


def test_candidates_by_hand():
    candidates = [*LINKS, ("A4", "B4"), ("A4", "B5")]
    result = evaluate(LINKS, TRUTH, candidates=candidates, n_pairs=25)
    assert result.pairs_completeness == pytest.approx(3 / 4)
    assert result.reduction_ratio == pytest.approx(1 - 5 / 25)
    assert evaluate(LINKS, TRUTH, candidates=candidates).reduction_ratio is None


@pytest.mark.parametrize("kind", [pa.table, pd.DataFrame, pl.DataFrame])
def test_every_kind_of_table_gives_the_same(kind):
    links, truth = kind(columns(LINKS)), kind(columns(TRUTH))
    expected = evaluate(LINKS, TRUTH)
    assert evaluate(links, truth) == expected
    assert evaluate(np.array(LINKS), truth) == expected
    assert evaluate(iter(LINKS), [list(pair) for pair in TRUTH]) == expected


def test_categorical_ids():
    links = pd.DataFrame(columns(LINKS)).astype("category")
    truth = pl.DataFrame(columns(TRUTH)).cast(pl.Categorical)
    assert evaluate(links, truth) == evaluate(LINKS, TRUTH)


def test_only_decided_links_count():
    decisions = ["link", "review", None]
    for kind in (pa.table, pd.DataFrame, pl.DataFrame):
        result = evaluate(kind(columns(LINKS) | {"decision": decisions}), TRUTH)
        assert (result.n_links, result.true_links) == (1, 1)
    truth = pa.table(columns(TRUTH) | {"decision": ["review"] * 4})
    assert evaluate(LINKS, truth).n_true == 4


def test_repeated_pairs_count_once():
    assert evaluate(LINKS * 3, TRUTH * 2) == evaluate(LINKS, TRUTH)
    once = evaluate(LINKS, TRUTH, candidates=TRUTH, n_pairs=10)
    assert evaluate(LINKS, TRUTH, candidates=TRUTH * 2, n_pairs=10) == once


def test_order_of_ids_within_a_pair_matters():
    assert evaluate([("1", "2")], [("2", "1")]).true_links == 0


def test_ids_are_text_and_exact():
    assert evaluate([("007", "1")], [("7", "1")]).true_links == 0
    assert evaluate([(7, 1)], [("7", "1")]).true_links == 1
    big = 2**53
    links = pa.table({"id_a": [big, big + 1], "id_b": [1, 2]})
    assert evaluate(links, [(str(big + 1), "2")]).true_links == 1
    assert evaluate([(2**80, "x")], [(str(2**80), "x")]).true_links == 1


def test_no_links():
    for links in ([], pa.table({"id_a": [], "id_b": []}), pd.DataFrame(columns(LINKS))[:0]):
        result = evaluate(links, TRUTH)
        assert math.isnan(result.precision)
        assert (result.recall, result.f1, result.missed) == (0, 0, 4)


def test_no_truth():
    result = evaluate(LINKS, [], candidates=LINKS, n_pairs=9)
    assert math.isnan(result.recall)
    assert math.isnan(result.pairs_completeness)
    assert (result.precision, result.f1, result.false_links) == (0, 0, 3)


def test_nothing_at_all():
    result = evaluate([], [])
    assert all(math.isnan(x) for x in (result.precision, result.recall, result.f1))


pairs = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=30)


@given(pairs, pairs, pairs)
def test_agrees_with_sets(links, truth, candidates):
    result = evaluate(links, truth, candidates=candidates, n_pairs=36)
    linked, true, kept = {*links}, {*truth}, {*candidates}
    assert (result.n_links, result.n_true) == (len(linked), len(true))
    assert result.true_links == len(linked & true)
    assert result.false_links == len(linked - true)
    assert result.missed == len(true - linked)
    assert result.reduction_ratio == pytest.approx(1 - len(kept) / 36)
    if true:
        assert result.pairs_completeness == pytest.approx(len(kept & true) / len(true))


def test_a_file_of_the_truth_with_other_names_is_told_what_to_rename(tmp_path):
    (tmp_path / "truth.csv").write_text("register,lab\n1,2\n")
    with pytest.raises(InputError, match=r"one id_b. It has register, lab; rename the two"):
        evaluate({("1", "2")}, tmp_path / "truth.csv")


def test_absent_column_lists_the_columns_there_are():
    with pytest.raises(InputError, match=r"truth must have one column id_b.*id_a, right"):
        evaluate(LINKS, pd.DataFrame({"id_a": ["A1"], "right": ["B1"]}))


@pytest.mark.parametrize(
    "bad",
    [
        pa.table({"id_a": ["A1", None], "id_b": ["B1", "B2"]}),
        pa.table({"id_a": [1.0], "id_b": [2.0]}),
        pd.DataFrame({"id_a": ["A1", 2], "id_b": ["B1", "B2"]}, dtype=object),
        [("A1", None)],
        [(1.0, 2.0)],
        [(True, False)],
        [("A1", "B1", 0.9)],
        ["AB"],
        [3],
        "links.csv",
    ],
    ids=range(10),
)
def test_unfit_ids_are_refused(bad):
    with pytest.raises(InputError):
        evaluate(bad, TRUTH)


def test_unfit_ids_are_not_shown():
    with pytest.raises(InputError) as caught:
        evaluate([("secret", None)], TRUTH)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("n_pairs", [0, -1, 3])
def test_n_pairs_below_the_candidates_is_refused(n_pairs):
    with pytest.raises(SettingsError, match="n_pairs"):
        evaluate(LINKS, TRUTH, candidates=TRUTH, n_pairs=n_pairs)


def test_n_pairs_without_candidates_is_refused():
    with pytest.raises(SettingsError, match="candidates"):
        evaluate(LINKS, TRUTH, n_pairs=100)


def test_as_dict():
    result = evaluate(LINKS, TRUTH).as_dict()
    assert result["true_links"] == 2
    assert result["reduction_ratio"] is None
    assert len(result) == 10


def test_str_is_three_or_four_aligned_lines():
    short = str(evaluate(LINKS, TRUTH)).splitlines()
    assert len(short) == 3
    assert len({len(line) for line in short}) == 1
    assert "0.6667" in short[2]
    long = str(evaluate(LINKS, TRUTH, candidates=TRUTH, n_pairs=25)).splitlines()
    assert long[:3] == short
    assert "1.0000" in long[3]
    assert "0.84" in long[3]


def test_files_run_directories_and_runs_are_taken_as_they_are(tmp_path):
    files = bl.simulate(40, seed=2)
    bl.write_simulation(files, tmp_path / "files")
    fields = [bl.levenshtein("gname"), bl.levenshtein("fname"), bl.date("dob")]
    run = bl.link(files.a, files.b, fields, draws=50, tune=50, chains=2)
    run.save(tmp_path / "out")
    wanted = bl.evaluate(run.links, files.truth)
    truth = tmp_path / "files" / "truth.csv"
    for links in (run, tmp_path / "out", str(tmp_path / "out" / "links.csv"), run.links):
        assert bl.evaluate(links, truth) == bl.evaluate(links, str(truth)) == wanted
    assert bl.evaluate(run, files.truth, candidates=run.candidates()).pairs_completeness > 0
    with pytest.raises(InputError, match="input \\(truth\\)"):
        bl.evaluate(run, tmp_path / "nope.csv")


@pytest.mark.parametrize("nothing", [None, 7])
def test_what_holds_no_pairs_is_told(nothing):
    with pytest.raises(InputError, match="truth must be a table or rows"):
        evaluate(LINKS, nothing)
    with pytest.raises(InputError, match="is no run"):
        bl.changes(nothing, nothing)
