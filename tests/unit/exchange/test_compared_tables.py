"""Pairs that other tools compared, as tables."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import bayeslink as bl
from bayeslink.linkage.matching_counts import MatchingCounts
from bayeslink.pairs.source import Scope

FEW = {"draws": 100, "tune": 50, "chains": 2}
FIELDS = [bl.exact("gname"), bl.exact("fname"), bl.exact("occup"), bl.date("dob", cuts=(0,))]


@pytest.fixture(scope="module")
def files():
    return bl.simulate(80, overlap=0.5, errors=1, seed=2)


@pytest.fixture(scope="module")
def compared(files):
    return bl.compare(files.a, files.b, FIELDS)


def every_pair(source):
    a, b = np.divmod(np.arange(source.n_a * source.n_b, dtype=np.int32), np.int32(source.n_b))
    levels = source.levels_of(a, b)
    columns = {f.name: levels[:, j].astype(np.int64) - 1 for j, f in enumerate(source.fields)}
    return pa.table({"id_a": source.ids(0, a), "id_b": source.ids(1, b), **columns})


def pairs_of(table):
    return [*zip(table["id_a"].to_pylist(), table["id_b"].to_pylist(), strict=True)]


def test_all_pairs_in_a_table_give_what_the_files_give(files, compared):
    fields = [bl.given_levels(f.name, f.labels) for f in compared.fields]
    given = bl.link(bl.from_table(every_pair(compared), fields), structure="independent", **FEW)
    usual = bl.link(files.a, files.b, FIELDS, structure="independent", **FEW)
    assert pairs_of(given.links) == pairs_of(usual.links)
    assert given.fit.objective == pytest.approx(usual.fit.objective)
    assert given.links["link_probability"].to_numpy() == pytest.approx(
        usual.links["link_probability"].to_numpy(), abs=0.1
    )


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_tables_of_any_kind_and_ids_of_any_type(compared, kind):
    table = every_pair(compared)
    for name in ("id_a", "id_b"):
        number = pa.array([int(x[1:]) for x in table[name].to_pylist()], pa.int64())
        table = table.set_column(table.column_names.index(name), name, number)
    turn = {"pandas": pa.Table.to_pandas, "polars": pl.from_arrow, "arrow": lambda t: t}[kind]
    run = bl.link(bl.from_table(turn(table), ["gname", "fname", "occup", "dob"]), **FEW)
    first = run.links["id_a"][0]
    assert isinstance(first.as_py() if kind == "arrow" else int(first), int)
    assert run.n_links > 20


def test_some_pairs_are_all_that_may_link(compared, files):
    table = every_pair(compared)
    alike = sum((table[f.name].to_numpy() > 0).astype(int) for f in compared.fields)
    some = table.filter(pa.array(alike >= 1))
    ids = files.a["id"], files.b["id"]
    source = bl.from_table(some, ["gname", "fname", "occup", "dob"], ids=ids)
    assert source.n_pairs == source.scope.n_pairs == len(some) < 80 * 80
    assert (source.n_a, source.n_b) == (80, 80)
    run = bl.link(source, **FEW)
    assert {*pairs_of(run.links)} <= {*pairs_of(some)}
    u = {f.name: (compared.level_counts().counts[j, 1:] / 6400).tolist()[: f.n_levels]
         for j, f in enumerate(compared.fields)}  # fmt: skip
    told = bl.from_table(some, [*u], ids=ids, u=u)
    assert told.n_pairs == 6400
    assert told.level_counts().counts.sum(1).tolist() == [6400] * 4
    exact = compared.level_counts().counts
    seen = exact[:, 0] == 0
    np.testing.assert_allclose(told.level_counts().counts[seen], exact[seen], atol=3)
    better = bl.link(told, **FEW)
    assert better.posterior.restricted
    assert bl.evaluate(better.links, files.truth).f1 > 0.85
    with pytest.raises(bl.SettingsError, match="restricted"):
        told.draw_pairs(-1, 0, np.zeros((1, 3)))


def test_a_share_of_the_pairs_has_that_share_of_the_choices():
    """By enumeration: matchings of a random half of the edges, on average."""
    whole, half = Scope(np.array([5]), np.array([4])), Scope(np.array([5]), np.array([4]), 0.5)
    n = np.arange(5)
    counts = np.exp(MatchingCounts(whole)(n))
    np.testing.assert_allclose(np.exp(MatchingCounts(half)(n)), counts * 0.5**n)
    assert half.n_pairs == 10


def test_features_of_recordlinkage(compared):
    table = every_pair(compared).to_pandas().set_index(["id_a", "id_b"])
    features = (table > 0).astype(float)
    features["similar"] = np.where(table["gname"] > 0, 1.0, 0.5)
    features.iloc[0, 0] = np.nan
    source = bl.from_recordlinkage(features)
    assert [f.n_levels for f in source.fields] == [2, 2, 2, 2, 4]
    assert source.level_counts().counts[0, 0] == 1
    found = source.find([table.index[5]])
    assert found.levels[0].tolist() == [*(1 + features.iloc[5, :4].astype(int)),
                                        4 if features["similar"].iloc[5] == 1 else 1]  # fmt: skip
    run = bl.link(source, **FEW)
    assert isinstance(run.links, pd.DataFrame)
    with pytest.raises(bl.InputError, match="index"):
        bl.from_recordlinkage(features.reset_index())
    with pytest.raises(bl.SettingsError, match="cuts"):
        bl.from_recordlinkage(features, cuts=[0, 2])


def test_features_without_labels_are_columns_with_numbers(compared):
    table = every_pair(compared).to_pandas().set_index(["id_a", "id_b"])
    features = (table > 0).astype(float)
    features.columns = range(features.shape[1])
    assert [f.name for f in bl.from_recordlinkage(features).fields] == ["0", "1", "2", "3"]


@pytest.mark.filterwarnings("ignore")  # what recordlinkage does with pandas
def test_features_that_recordlinkage_itself_made():
    reason = "recordlinkage 0.16 asks for pandas below 3: it can only be put beside it by hand"
    rl = pytest.importorskip("recordlinkage", reason=reason)
    files = bl.simulate(300, seed=4)
    a, b = (t.to_pandas().set_index("id") for t in (files.a, files.b))
    index, compare = rl.Index(), rl.Compare()
    index.block("sex")
    compare.string("gname", "gname", method="jarowinkler", label="given")
    compare.string("fname", "fname", method="levenshtein", threshold=0.85)
    compare.exact("dob", "dob")
    compare.exact("postcode", "postcode")
    features = compare.compute(index.index(a, b), a, b)
    run = bl.link(bl.from_recordlinkage(features, ids=(a.index, b.index)), **FEW)
    assert [f.n_levels for f in run.pairs.fields] == [4, 2, 2, 2]
    assert bl.evaluate(run.table, files.truth).precision > 0.95
    assert bl.evaluate(run.table, files.truth).recall > 0.8


def test_patterns_of_fastlink():
    patterns = pd.DataFrame(
        {"inds.a": [1, 1, 2, 2], "inds.b": [1, 2, 1, 2], "gamma.1": [2, 0, 1, 2],
         "gamma.2": [2, 0, np.nan, 2]}
    )  # fmt: skip
    source = bl.from_fastlink(patterns)
    assert [f.labels for f in source.fields] == [
        ("different", "partly alike", "identical"), ("different", "identical"),
    ]  # fmt: skip
    assert source.find([(2, 1)]).levels.tolist() == [[2, 0]]
    assert source.find([(2, 2)]).levels.tolist() == [[3, 2]]
    with pytest.raises(bl.InputError, match=r"gamma\.1"):
        bl.from_fastlink(patterns[["inds.a", "inds.b"]])


def test_what_is_wrong_with_a_table_is_said():
    good = pa.table({"id_a": ["1", "2"], "id_b": ["1", "1"], "x": [0, 1]})
    assert bl.from_table(good).n_pairs == 2
    for table, words, how in (
        (good.rename_columns(["l", "id_b", "x"]), "no column 'id_a'", {}),
        (pa.concat_tables([good, good]), "more than once", {}),
        (good.select(["id_a", "id_b"]), "no column of levels", {}),
        (good.set_column(2, "x", pa.array([0.5, 1.0])), "whole numbers", {"fields": ["x"]}),
        (good.set_column(2, "x", pa.array(["0", "1"])), "whole numbers", {"fields": ["x"]}),
        (good, "not among the ids", {"ids": (["1"], ["1"])}),
        (good, "u takes 2 shares", {"u": {"x": [0.5]}}),
        (good.set_column(0, "id_a", pa.array(["1", None])), "lack an id", {}),
        ([1, 2], "frame", {}),
    ):
        with pytest.raises((bl.InputError, bl.SettingsError), match=words):
            bl.from_table(table, **how)
