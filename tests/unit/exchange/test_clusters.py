"""Clusters as other tools write them, read and written; without the tools themselves."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import bayeslink as bl

FEW = {"draws": 100, "tune": 100, "chains": 2}
IDS = ["1", "2", "3", "4", "5"]
TRUE = pa.table({"id": IDS, "entity_id": ["p", "p", "q", "q", "r"]})
# The same clusters as three tools write them; two and two together, and one alone.
SPLINK = pd.DataFrame({"cluster_id": ["1", "1", "3", "3", "5"], "unique_id": IDS, "name": "x"})
DEDUPE = pd.DataFrame(
    {"Cluster ID": [0, 0, 1, 1, 2], "confidence_score": 0.9, "Id": IDS, "name": "x"}
)
ZINGG = pd.DataFrame(
    {"z_minScore": 0.8, "z_maxScore": 0.9, "z_cluster": [7, 7, 8, 8, 9], "id": IDS, "name": "x"}
)


@pytest.fixture(scope="module")
def made():
    return bl.simulate_duplicates(200, seed=4, sizes=[0.5, 0.3, 0.2])


@pytest.fixture(scope="module")
def run(made):
    return bl.dedupe(made.a.to_pandas(), ["gname", "fname", "dob", "postcode"], **FEW)


@pytest.fixture(scope="module")
def several(made):
    """Two files, with ids that are in both."""
    records = made.a.to_pandas()
    records["id"] = np.arange(len(records)) // 2
    files = {name: records.iloc[k::2] for k, name in enumerate(("census", "tax"))}
    return bl.link_many(files, ["gname", "fname", "dob"], duplicates=["census", "tax"], **FEW)


@pytest.fixture(scope="module", params=["one file", "several"])
def either(request, run, several):
    return run if request.param == "one file" else several


def as_pandas(table):
    return table.to_pandas() if hasattr(table, "to_pandas") else table


# --- read ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("theirs", [SPLINK, DEDUPE, ZINGG], ids=["splink", "dedupe", "zingg"])
@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "csv", "parquet"])
def test_clusters_of_three_tools_are_told_by_their_columns(theirs, kind, tmp_path):
    given = {"pandas": theirs, "polars": pl.from_pandas(theirs), "arrow": pa.table(theirs)}.get(
        kind
    )
    if kind == "csv":
        theirs.to_csv(given := tmp_path / "theirs.csv", index=False)
    elif kind == "parquet":
        theirs.to_parquet(given := tmp_path / "theirs.parquet")
    read = bl.read_clusters(given)
    if kind in ("pandas", "polars"):
        assert type(read) is type(given)
    frame = as_pandas(read)
    assert [*frame.columns] == ["id", "entity_id"]
    groups = {frozenset(part) for part in frame.astype(str).groupby("entity_id")["id"].agg(list)}
    assert groups == {frozenset("12"), frozenset("34"), frozenset("5")}
    for clusters, truth in ((given, TRUE), (read, TRUE), (TRUE, given)):
        result = bl.evaluate(clusters, truth)
        assert (result.n_records, result.exact_clusters, result.f1) == (5, 3, 1.0)


def test_a_record_in_no_cluster_is_one_by_itself():
    theirs = DEDUPE.assign(**{"Cluster ID": [0, 0, np.nan, np.nan, 1]})
    assert theirs["Cluster ID"].dtype == float
    read = bl.read_clusters(theirs)
    assert [*read["entity_id"]] == ["0", "0", "single:3", "single:4", "1"]
    result = bl.evaluate(theirs, TRUE)
    assert (result.n_clusters, result.recall) == (4, 0.5)


def test_columns_that_are_called_otherwise_are_named():
    theirs = ZINGG.rename(columns={"id": "rec_no"})
    with pytest.raises(bl.InputError, match=r"as zingg writes them.*id=…"):
        bl.evaluate(theirs, TRUE)
    read = bl.read_clusters(theirs, id="rec_no")
    assert bl.evaluate(read, TRUE).f1 == 1
    plain = TRUE.rename_columns(["rec", "who"])
    assert bl.evaluate(bl.read_clusters(plain, id="rec", entity_id="who"), TRUE).f1 == 1
    with pytest.raises(bl.InputError, match="must have one column wrong"):
        bl.read_clusters(theirs, id="wrong")
    with pytest.raises(bl.InputError, match="one column entity_id and one id"):
        bl.read_clusters(plain)
    with pytest.raises(bl.InputError, match="1 records are in clusters more than once"):
        bl.evaluate(pd.concat([SPLINK, SPLINK[:1]]), TRUE)


def test_own_columns_count_before_those_of_others():
    both = ZINGG.assign(entity_id=["a", "b", "c", "d", "e"])
    assert [*bl.read_clusters(both)["entity_id"]] == [*"abcde"]
    pairs = pd.DataFrame({"id_a": ["1"], "id_b": ["2"], "cluster_id": ["x"]})
    assert bl.evaluate(pairs, [("1", "2")]).f1 == 1


def test_files_are_told_apart_by_their_names():
    ids = ["1", "1", "2"]
    truth = pa.table({"file": ["a", "b", "b"], "id": ids, "entity_id": ["p", "p", "q"]})
    for entity, number, file in (
        ("cluster_id", "unique_id", "source_dataset"),
        ("Cluster ID", "id", "source file"),
        ("z_cluster", "id", "z_source"),
        ("Z_CLUSTER", "ID", "Z_ZSOURCE"),
    ):
        theirs = pd.DataFrame({file: ["a", "b", "b"], number: ids, entity: [0, 0, 1]})
        assert [*bl.read_clusters(theirs).columns] == ["file", "id", "entity_id"]
        assert bl.evaluate(theirs, truth).f1 == bl.evaluate(truth, theirs).f1 == 1
        # One file alone, whose name the truth does not know.
        assert [*bl.read_clusters(theirs[1:]).columns] == ["id", "entity_id"]
        assert bl.evaluate(theirs[1:], truth.slice(1).drop_columns(["file"])).exact_clusters == 2
        # A truth of one of the files alone.
        assert bl.evaluate(truth, theirs[1:]).n_records == 2


# --- written ------------------------------------------------------------------------------------


@pytest.mark.parametrize("style", ["splink", "dedupe", "zingg"])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_what_is_written_for_a_tool_is_read_as_it_was(either, style, ending, tmp_path):
    path = tmp_path / f"out.{ending}"
    bl.write_clusters(either, path, style=style)
    result = bl.evaluate(path, either)
    assert result.n_records == len(either.table)
    assert result.exact_clusters == result.n_clusters == either.decision.n_entities
    assert bl.evaluate(either, path).f1 == 1
    with pytest.raises(bl.OutputError, match="exists"):
        bl.write_clusters(either, path, style=style)
    bl.write_clusters(either, path, style=style, force=True)


def test_scores_are_probabilities_to_be_one_with_others(run, tmp_path):
    for style in ("dedupe", "zingg"):
        bl.write_clusters(run, tmp_path / f"{style}.parquet", style=style)
    dedupe, zingg = (pd.read_parquet(tmp_path / f"{s}.parquet") for s in ("dedupe", "zingg"))
    sure = run.clusters.set_index("id")["membership_probability"]
    assert [*dedupe["confidence_score"]] == [*sure.loc[dedupe["id"]]]
    pairs = {
        frozenset(row): p
        for *row, p in run.pair_probabilities()[["id_a", "id_b", "probability"]].itertuples(False)
    }
    for _, group in zingg.groupby("z_cluster"):
        for row in group.itertuples():
            own = [pairs.get(frozenset((row.id, x)), 0) for x in group["id"] if x != row.id]
            assert row.z_minScore == pytest.approx(min(own, default=0))
            assert row.z_maxScore == pytest.approx(max(own, default=0))


def test_what_cannot_be_written_is_refused(run, tmp_path):
    with pytest.raises(bl.SettingsError, match="style must be one of splink, dedupe, zingg"):
        bl.write_clusters(run, tmp_path / "x.csv", style="other")
    with pytest.raises(bl.SettingsError, match=r"must end in \.csv or \.parquet"):
        bl.write_clusters(run, tmp_path / "x.xlsx")
    with pytest.raises(bl.OutputError, match="cannot write"):
        bl.write_clusters(run, tmp_path / "nowhere" / "x.csv")
    with pytest.raises(bl.SettingsError, match="splink_clusters"):
        bl.write_clusters("out", tmp_path / "x.csv")


def test_splinks_tables_of_people(either, tmp_path):
    """Of a run that was just made, and of the same one opened."""
    either.save(tmp_path / "run")
    opened = bl.open_run(tmp_path / "run")
    several = bool(either.entities.names)
    names = ("one", "two") if several else None
    for make in (bl.splink_clusters, bl.splink_predictions, bl.splink_labels):
        pd.testing.assert_frame_equal(make(either, names), make(opened, names))
    clusters = bl.splink_clusters(either, names)
    predictions = bl.splink_predictions(either, names)
    labels = bl.splink_labels(either, names)
    assert len(clusters) == len(either.table)
    columns = ["source_dataset"] if several else []
    assert [*clusters.columns] == ["cluster_id", *columns, "unique_id"]
    assert ("source_dataset_l" in predictions) == ("source_dataset_l" in labels) == several
    size = clusters.groupby("cluster_id").size()
    assert len(labels) == (size * (size - 1) // 2).sum()
    of = {tuple(names): cluster for cluster, *names in clusters.itertuples(index=False)}
    for row in labels.itertuples():
        sides = [
            ((getattr(row, f"source_dataset_{x}"),) if several else ())
            + (getattr(row, f"unique_id_{x}"),)
            for x in "lr"
        ]
        assert of[sides[0]] == of[sides[1]]
        assert sides[0] != sides[1]
    gammas = [name for name in predictions if name.startswith("gamma_")]
    assert len(gammas) == len(either.settings.fields)
    assert predictions[gammas].to_numpy().min() >= -1
    with pytest.raises(bl.SettingsError, match="names"):
        bl.splink_clusters(either, ("just one",))


def test_ids_stay_whole_numbers(made):
    records = made.a.to_pandas()
    records["id"] = np.arange(len(records))
    run = bl.dedupe(records, ["gname", "fname", "dob"], **FEW)
    assert bl.splink_clusters(run)["unique_id"].dtype == np.int64
    assert bl.splink_predictions(run)["unique_id_l"].dtype == np.int64
    assert (
        bl.splink_clusters(run).merge(records, left_on="unique_id", right_on="id").shape[0] == 200
    )


def test_files_in_which_nobody_is_twice(tmp_path):
    alone = bl.simulate_duplicates(60, seed=1, sizes=[1.0]).a
    run = bl.dedupe(alone, ["gname", "fname", "dob", "postcode", "street"], **FEW)
    for style in ("splink", "dedupe", "zingg"):
        bl.write_clusters(run, tmp_path / f"{style}.csv", style=style)
        assert bl.evaluate(tmp_path / f"{style}.csv", run).n_records == 60
