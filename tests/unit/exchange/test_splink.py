"""Round trips through Splink itself: settings, predictions, clusters, labels."""

import copy
import json

import numpy as np
import pytest

import bayeslink as bl
from benchmarks import splink_pairs

pytestmark = pytest.mark.filterwarnings("ignore")  # what Splink and its dependencies warn of
splink = pytest.importorskip("splink")

FEW = {"draws": 200, "tune": 100, "chains": 2}


def linker_of(files, names=("census", "survey")):
    import splink.comparison_library as cl
    from splink import Linker, SettingsCreator, block_on
    from splink.backends.duckdb import DuckDBAPI

    database = DuckDBAPI()
    tables = [
        database.register(
            table.rename_columns(["unique_id", *table.column_names[1:]]), dataset_display_name=name
        )
        for table, name in zip((files.a, files.b), names, strict=True)
    ]
    settings = SettingsCreator(
        link_type="link_only",
        comparisons=[
            cl.JaroWinklerAtThresholds("gname", [0.92, 0.8]),
            cl.JaroWinklerAtThresholds("fname", [0.92, 0.8]),
            cl.DateOfBirthComparison("dob", input_is_string=True),
            cl.ExactMatch("sex"),
            cl.ExactMatch("occup").configure(term_frequency_adjustments=True),
            cl.LevenshteinAtThresholds("postcode", [1]),
        ],
        blocking_rules_to_generate_predictions=[
            *(block_on("fname"), block_on("gname"), block_on("dob"), block_on("postcode")),
        ],
        probability_two_random_records_match=0.5 / len(files.a),
    )
    linker = Linker(tables, settings, log_level="ERROR")
    linker.database = database
    linker.training.estimate_u_using_random_sampling(max_pairs=2e5, seed=1)
    for rule in (block_on("dob"), block_on("fname", "gname")):
        linker.training.estimate_parameters_using_expectation_maximisation(rule)
    return linker


@pytest.fixture(scope="module")
def files():
    return bl.simulate(600, overlap=0.5, errors=2, seed=11)  # not one that choices were made on


@pytest.fixture(scope="module")
def linker(files):
    return linker_of(files)


@pytest.fixture(scope="module")
def predicted(linker):
    return linker.inference.predict()


@pytest.fixture(scope="module")
def model(linker):
    return linker.misc.save_model_to_json()


@pytest.fixture(scope="module")
def run(predicted, model):
    return bl.link(bl.from_splink(predicted, model), **FEW)


def one_to_one(predictions, at_least):
    """Splink's pairs from the best down, each record once."""
    rows = predictions.as_pandas_dataframe().sort_values("match_probability", ascending=False)
    rows = rows[rows["match_probability"] >= at_least]
    seen, links = (set(), set()), set()
    for pair in zip(rows["unique_id_l"], rows["unique_id_r"], strict=True):
        if pair[0] not in seen[0] and pair[1] not in seen[1]:
            links.add(pair)
            seen[0].add(pair[0])
            seen[1].add(pair[1])
    return links


def f1(links, truth):
    true = set(zip(truth["id_a"].to_pylist(), truth["id_b"].to_pylist(), strict=True))
    return 2 * len(links & true) / (len(links) + len(true))


def linked(run):
    table = run.table.filter(np.array(run.table["decision"].to_pylist()) == "link")
    return set(zip(table["id_a"].to_pylist(), table["id_b"].to_pylist(), strict=True))


# --- settings -----------------------------------------------------------------------------------


def test_a_trained_model_becomes_fields_with_its_m_and_u_as_prior_means(model, files, tmp_path):
    (tmp_path / "model.json").write_text(json.dumps(model))
    read = bl.read_splink(tmp_path / "model.json", strength=50)
    kinds = {f.name: (f.kind, f.n_levels) for f in read.fields}
    assert kinds == {
        "gname": ("jaro_winkler", 4), "fname": ("jaro_winkler", 4), "dob": ("date", 6),
        "sex": ("exact", 2), "occup": ("exact", 2), "postcode": ("levenshtein", 3),
    }  # fmt: skip
    for field, comparison in zip(read.fields, model["comparisons"], strict=True):
        levels = [x for x in comparison["comparison_levels"] if not x.get("is_null_level")][::-1]
        for prior, key in ((field.m_prior, "m_probability"), (field.u_prior, "u_probability")):
            if all(key in level for level in levels):
                assert sum(prior) == pytest.approx(50)
                shares = [max(level[key], 1e-4) for level in levels]
                assert np.array(prior) / 50 == pytest.approx(np.array(shares) / sum(shares))
    assert read.theta == pytest.approx(np.log(1200 - 1))
    said = " ".join(read.notes)
    assert "occup: its term-frequency adjustment" in said
    assert "4 blocking rules" in said
    assert "postcode: Splink counts edits" in said
    found = bl.link(files.a, files.b, read.fields, **FEW)
    assert bl.evaluate(found.links, files.truth).f1 > 0.9


def test_version_4_is_read_the_same(model):
    old = copy.deepcopy(model)
    old["bayes_factor_column_prefix"] = "bf_"
    del old["match_weight_column_prefix"]
    for comparison in old["comparisons"]:
        for level in comparison["comparison_levels"]:
            level.pop("fix_m_probability", None)
            if level.get("m_probability", 1) < 1e-9:
                level["m_probability"] = "level not observed in training dataset"
    assert [f.kind for f in bl.read_splink(old).fields] == [
        f.kind for f in bl.read_splink(model).fields
    ]


def test_what_cannot_be_mapped_is_named():
    import splink.comparison_library as cl
    from splink import SettingsCreator

    settings = SettingsCreator(
        link_type="dedupe_only",
        comparisons=[
            cl.ForenameSurnameComparison("gname", "fname"),
            cl.JaccardAtThresholds("street", [0.5]),
            cl.DamerauLevenshteinAtThresholds("town", [1, 2]),
            cl.DistanceInKMAtThresholds("lat", "lon", [1, 10]),
            cl.AbsoluteTimeDifferenceAtThresholds(
                "seen", input_is_string=True, metrics=["day"], thresholds=[7]
            ),
        ],
    )
    read = bl.read_splink(settings)
    assert {f.kind for f in read.fields} >= {"damerau_levenshtein", "geo"}
    said = {note.split(":")[0] for note in read.notes if "left out" in note}
    assert {"street"} <= said
    assert any("for bl.dedupe(a, model.fields)" in note for note in read.notes)
    assert len(read.fields) + sum(": left out:" in note for note in read.notes) == 5


@pytest.mark.parametrize("wrong", [{}, {"comparisons": 3}, {"comparisons": [{"col_name": "x"}]}])
def test_other_settings_are_refused(wrong, tmp_path):
    with pytest.raises(bl.InputError, match="Splink"):
        bl.read_splink(wrong)
    (tmp_path / "x.json").write_text("{")
    with pytest.raises(bl.InputError, match="not JSON"):
        bl.read_splink(tmp_path / "x.json")


# --- predictions in -----------------------------------------------------------------------------


def test_predictions_are_pairs_with_their_levels(predicted, run):
    frame = predicted.as_pandas_dataframe()
    pairs = run.pairs
    assert pairs.n_pairs == pairs.n_a * pairs.n_b
    assert bl.from_splink(frame).n_pairs == len(frame)
    assert [f.name for f in pairs.fields] == ["gname", "fname", "dob", "sex", "occup", "postcode"]
    assert pairs.fields[0].labels[-1] == "Exact match on gname"
    some = frame.iloc[::97]
    found = pairs.find(list(zip(some["unique_id_l"], some["unique_id_r"], strict=True)))
    wanted = some[[f"gamma_{f.name}" for f in pairs.fields]].to_numpy() + 1
    np.testing.assert_array_equal(found.levels, wanted)


def test_our_posterior_on_its_comparisons_is_better_one_to_one(predicted, run, files):
    theirs = max(f1(one_to_one(predicted, cut), files.truth) for cut in (0.5, 0.9))
    assert f1(linked(run), files.truth) > theirs
    low, high = run.posterior.interval()
    in_the_list = len(
        {*zip(*(files.truth[n].to_pylist() for n in ("id_a", "id_b")), strict=True)}
        & {*zip(*(predicted.as_pandas_dataframe()[n] for n in ("unique_id_l", "unique_id_r")),
                strict=True)}
    )  # fmt: skip
    assert low - 15 <= in_the_list <= high + 15


def test_a_model_without_training_is_refused_and_none_at_all_is_warned_of(predicted, model):
    frame, untrained = predicted.as_pandas_dataframe(), copy.deepcopy(model)
    for level in untrained["comparisons"][1]["comparison_levels"]:
        level.pop("u_probability", None)
    with pytest.raises(bl.SettingsError, match="'fname' of the settings is not trained"):
        bl.from_splink(frame, untrained)
    with pytest.raises(bl.SettingsError, match="no comparison 'postcode'"):
        bl.from_splink(frame, {**model, "comparisons": model["comparisons"][:5]})
    unseen = copy.deepcopy(model)
    unseen["comparisons"][1]["comparison_levels"][1]["u_probability"] = "level not observed"
    counts = bl.from_splink(frame, unseen).level_counts().counts
    assert counts[1].sum() == counts[0].sum()
    warnings = bl.from_splink(frame).describe().warnings
    assert any("badly wrong" in warning for warning in warnings)
    assert not bl.from_splink(frame, model).describe().warnings


@pytest.mark.verify
@pytest.mark.parametrize("folder", ["fodors_zagats", "dblp_acm"])
def test_our_posterior_on_its_comparisons_is_better_on_real_files(folder):
    if not (splink_pairs.ROOT / "truth" / folder).is_dir():
        pytest.skip(f"no truth/{folder}: set BAYESLINK_DATA to the folder that holds it")
    found = splink_pairs.compared(folder)
    assert found["bayeslink"] > max(found["splink 0.5"], found["splink 0.9"]) + 0.01


def test_sides_are_told_by_the_names_of_the_data_sets(predicted):
    frame = predicted.as_pandas_dataframe()
    turned = frame.rename(
        columns=lambda c: c[:-2] + {"_l": "_r", "_r": "_l"}[c[-2:]] if c[-2:] in ("_l", "_r") else c
    )
    mixed = frame.copy()
    half = mixed.index % 2 == 0
    for what in ("unique_id", "source_dataset"):
        for side in "lr":
            mixed.loc[half, f"{what}_{side}"] = turned.loc[half, f"{what}_{side}"]
    straight, again = bl.from_splink(frame), bl.from_splink(mixed)
    assert straight.names == again.names == ("census", "survey")
    np.testing.assert_array_equal(straight.tie_keys[0], again.tie_keys[0])
    other = bl.from_splink(frame, names=("survey", "census"))
    assert (other.n_a, other.n_b) == (straight.n_b, straight.n_a)
    with pytest.raises(bl.InputError, match="'census', 'survey'"):
        bl.from_splink(frame, names=("a", "b"))
    with pytest.raises(bl.InputError, match="unique_id_l"):
        bl.from_splink(frame.drop(columns="unique_id_l"))
    with pytest.raises(bl.InputError, match="gamma_"):
        bl.from_splink(frame[["unique_id_l", "unique_id_r"]])


# --- and out ------------------------------------------------------------------------------------


def test_splink_clusters_our_predictions_as_we_do(linker, run):
    ours = bl.splink_clusters(run)
    predictions = bl.splink_predictions(run)
    assert set(predictions["source_dataset_l"]) == {"census"}
    registered = linker.table_management.register_table_predict(
        linker.database.register(predictions)
    )
    theirs = linker.clustering.cluster_pairwise_predictions_at_threshold(registered, 0.5)
    theirs = theirs.as_pandas_dataframe()

    def together(clusters):
        records = clusters["source_dataset"] + " " + clusters["unique_id"]
        groups = records.groupby(clusters["cluster_id"]).agg(frozenset)
        return {group for group in groups if len(group) > 1}

    assert together(ours) == together(theirs)
    assert len(together(ours)) == run.n_links > 200
    assert {*ours["cluster_id"]} <= {*theirs["cluster_id"]}


def test_splink_reads_labels_under_its_own_names_only(linker, run):
    def positives(names):
        labels = linker.database.register(bl.splink_labels(run, names))
        labels = linker.table_management.register_labels_table(labels)
        table = linker.evaluation.accuracy_analysis_from_labels_table(labels, output_type="table")
        return table.as_pandas_dataframe()["p"].max()

    assert positives(None) == run.n_links
    assert not positives(("a", "b")) > 0


def test_a_run_on_given_pairs_is_saved_and_opened(run, tmp_path):
    run.save(tmp_path / "run")
    opened = bl.open_run(tmp_path / "run")
    assert opened.links.equals(run.links)
    assert opened.pairs.fields[0].labels == run.pairs.fields[0].labels
    with pytest.raises(bl.InputError, match="nothing to join"):
        run.joined()
