"""People in one file and in several, to Splink itself and from it."""

import pytest

import bayeslink as bl

pytestmark = pytest.mark.filterwarnings("ignore")  # what Splink and its dependencies warn of
splink = pytest.importorskip("splink")

FEW = {"draws": 150, "tune": 150, "chains": 2}
N = 300


@pytest.fixture(scope="module")
def made():
    return bl.simulate_duplicates(N, seed=5, sizes=[0.5, 0.3, 0.2])


@pytest.fixture(scope="module")
def files(made):
    """The records in two files, in which people are more than once."""
    records = made.a.to_pandas()
    return {name: records[k::2].reset_index(drop=True) for k, name in enumerate(("census", "tax"))}


def linker_of(tables, link_type):
    import splink.comparison_library as cl
    from splink import Linker, SettingsCreator, block_on
    from splink.backends.duckdb import DuckDBAPI

    database = DuckDBAPI()
    registered = [
        database.register(table.rename(columns={"id": "unique_id"}), dataset_display_name=name)
        for name, table in tables.items()
    ]
    settings = SettingsCreator(
        link_type=link_type,
        comparisons=[
            cl.JaroWinklerAtThresholds("gname", [0.92, 0.8]),
            cl.JaroWinklerAtThresholds("fname", [0.92, 0.8]),
            cl.DateOfBirthComparison("dob", input_is_string=True),
            cl.ExactMatch("sex"),
            cl.LevenshteinAtThresholds("postcode", [1]),
        ],
        blocking_rules_to_generate_predictions=[
            *(block_on("fname"), block_on("gname"), block_on("dob"), block_on("postcode")),
        ],
        probability_two_random_records_match=1 / N,
    )
    one = registered[0] if len(registered) == 1 else registered
    linker = Linker(one, settings, log_level="ERROR")
    linker.database = database
    linker.training.estimate_u_using_random_sampling(max_pairs=1e5, seed=1)
    for rule in (block_on("dob"), block_on("fname", "gname")):
        linker.training.estimate_parameters_using_expectation_maximisation(rule)
    return linker


@pytest.fixture(scope="module")
def one(made):
    return linker_of({"people": made.a.to_pandas()}, "dedupe_only")


@pytest.fixture(scope="module")
def two(files):
    return linker_of(files, "link_and_dedupe")


@pytest.fixture(scope="module")
def run(one, made):
    model = bl.read_splink(one.misc.save_model_to_json())
    return bl.dedupe(made.a.to_pandas(), model.fields, **FEW)


@pytest.fixture(scope="module")
def many(two, files):
    model = bl.read_splink(two.misc.save_model_to_json())
    return bl.link_many(files, model.fields, duplicates=[*files], **FEW)


def truth_of(made, files=None):
    if files is None:
        return made.truth
    of = {id: name for name, table in files.items() for id in table["id"]}
    truth = made.truth.to_pandas()
    return truth.assign(file=truth["id"].map(of))


def test_settings_become_fields_for_people(one, two, run, many, made, files):
    for linker, link_type, said in (
        (one, "dedupe_only", "for bl.dedupe(a, model.fields)"),
        (two, "link_and_dedupe", "for bl.link_many(files, model.fields, duplicates="),
    ):
        read = bl.read_splink(linker.misc.save_model_to_json())
        assert (read.link_type, read.theta, len(read.fields)) == (link_type, None, 5)
        notes = " ".join(read.notes)
        assert said in notes
        assert "4 blocking rules are left out" in notes
        assert "probability_two_random_records_match is left out" in notes
    assert bl.evaluate(run, made.truth).f1 > 0.9
    assert bl.evaluate(many, truth_of(made, files)).f1 > 0.9
    with pytest.raises(bl.InputError, match="link_type must be"):
        bl.read_splink({**one.misc.save_model_to_json(), "link_type": "other"})


def clusters_of(linker, predictions, threshold=0.5):
    return linker.clustering.cluster_pairwise_predictions_at_threshold(predictions, threshold)


def test_its_clusters_are_evaluated_and_joined_with_ours(one, two, run, many, made, files):
    for linker, ours, truth in ((one, run, made.truth), (two, many, truth_of(made, files))):
        clusters = clusters_of(linker, linker.inference.predict(), 0.9)
        frame = clusters.as_pandas_dataframe()
        assert bl.evaluate(clusters, truth) == bl.evaluate(frame, truth)
        assert bl.evaluate(frame, truth).n_records == N
        assert bl.evaluate(frame, truth).f1 > 0.8
        assert bl.evaluate(ours, bl.read_clusters(clusters)).f1 > 0.8  # with each other
        on = ["source_dataset", "unique_id"] if linker is two else ["unique_id"]
        both = bl.splink_clusters(ours).merge(frame, on=on, suffixes=("_ours", "_theirs"))
        assert len(both) == N
        assert both["cluster_id_ours"].nunique() == ours.decision.n_entities


def test_it_clusters_our_predictions_nearly_as_we_do(one, two, run, many):
    for linker, ours in ((one, run), (two, many)):
        registered = linker.table_management.register_table_predict(
            linker.database.register(bl.splink_predictions(ours))
        )
        theirs = clusters_of(linker, registered)
        result = bl.evaluate(theirs, ours)
        assert result.n_records == N
        assert result.f1 > 0.97  # it joins what hangs together, we take the best partition


def test_it_reads_our_clusters_as_labels(one, run):
    labels = one.table_management.register_labels_table(
        one.database.register(bl.splink_labels(run))
    )
    table = one.evaluation.accuracy_analysis_from_labels_table(labels, output_type="table")
    assert table.as_pandas_dataframe()["p"].max() == len(bl.splink_labels(run))


def test_predictions_of_one_file_are_refused(one):
    predictions = one.inference.predict()
    for settings in (None, one.misc.save_model_to_json()):
        with pytest.raises(bl.InputError, match="one file with itself"):
            bl.from_splink(predictions, settings)
