"""People of one file and of several on Spark: the same clusters and draws as here, to the byte."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import bayeslink as bl
from bayeslink.cli import main
from bayeslink.engines.spark import cluster
from bayeslink.errors import InputError, SettingsError

pytestmark = pytest.mark.filterwarnings("ignore:.*pandas:FutureWarning")
FIELDS = [bl.name("gname"), bl.levenshtein("fname"), bl.date("dob"), bl.exact("postcode")]
ON = [
    w
    for f in ("gname:name", "fname:levenshtein", "dob:date", "postcode:exact")
    for w in ("--on", f)
]
HOW = {"draws": 30, "tune": 20, "chains": 2}
SHORT = ["--draws", "30", "--tune", "20", "--chains", "2", "--engine", "spark"]
ALSO = {"tax": {"born": "dob", "surname": "fname"}}  # what columns are called in the others
NAMES = ("census", "survey", "tax")


@pytest.fixture(scope="module")
def made():
    return bl.simulate_duplicates(120, seed=5, sizes=[0.6, 0.3, 0.1])


@pytest.fixture(scope="module")
def one(made):
    return made.a.sort_by("id")


@pytest.fixture(scope="module")
def alone(one):
    return bl.dedupe(one, FIELDS, **HOW)


@pytest.fixture(scope="module")
def files():
    """Three files in the order of their ids: one lacks a column, one has names of its own."""
    made = bl.simulate_duplicates(240, seed=4, sizes=[0.4, 0.4, 0.2]).a.sort_by("id")
    parts = [made.take(pa.array(np.arange(k, len(made), 3))) for k in range(3)]
    own = {"dob": "born", "fname": "surname"}
    tax = parts[2].rename_columns([own.get(c, c) for c in made.column_names])
    return dict(zip(NAMES, (parts[0], parts[1].drop_columns(["postcode"]), tax), strict=True))


@pytest.fixture(scope="module")
def here(files):
    return bl.link_many(files, FIELDS, duplicates=NAMES[1:], columns=ALSO, **HOW)


def folder_of(table, place):
    """A folder of Parquet, which Spark reads."""
    place.mkdir()
    pq.write_table(table, place / "part.parquet")
    return str(place)


def assert_same(run, other):
    """Clusters, pairs, draws and what was said."""
    assert run.pairs.describe().engine == "spark"
    for name in ("clusters", "pairs", "draws", "parameters"):
        assert run.as_table(name).equals(other.as_table(name)), name
    assert run.warnings == other.warnings


def no_session():
    raise AssertionError("asked for a session of Spark")


def rows_of(table):
    """Rows of a table of Spark or Arrow, in no order."""
    table = table if isinstance(table, pa.Table) else table.toArrow()
    return table.column_names, sorted(map(str, table.to_pylist()))


@pytest.mark.parametrize(("partitions", "records"), [(1, 10**6), (5, 100)])
def test_frames_of_several_files_give_what_tables_do(
    spark, everything_sent, monkeypatch, files, here, partitions, records
):
    monkeypatch.setattr(cluster, "RECORDS", records)
    frames = {k: spark.createDataFrame(t).repartition(partitions) for k, t in files.items()}
    run = bl.link_many(frames, FIELDS, duplicates=NAMES[1:], columns=ALSO, **HOW)
    assert_same(run, here)
    assert rows_of(run.with_entities("tax")) == rows_of(here.with_entities("tax"))
    assert run.clusters.columns == here.clusters.column_names


def test_files_that_this_machine_reads_are_compared_there(spark, files, here, tmp_path):
    given = dict(files)
    for name in NAMES[1:]:
        given[name] = str(tmp_path / f"{name}.csv")
        pa.csv.write_csv(files[name], given[name])
    run = bl.link_many(given, FIELDS, duplicates=NAMES[1:], columns=ALSO, engine=spark, **HOW)
    assert_same(run, here)
    read_here = bl.link_many(given, FIELDS, duplicates=NAMES[1:], columns=ALSO, **HOW)
    assert rows_of(run.people()) == rows_of(read_here.people())  # the records are here
    mixed = {**given, "tax": spark.createDataFrame(files["tax"])}
    run = bl.link_many(mixed, FIELDS, duplicates=NAMES[1:], columns=ALSO, **HOW)
    assert_same(run, here)
    assert rows_of(run.with_entities("survey")) == rows_of(read_here.with_entities("survey"))
    assert rows_of(run.with_entities("tax")) == rows_of(here.with_entities("tax"))


def test_one_file_and_what_its_directory_has(spark, monkeypatch, made, one, alone, tmp_path):
    place, out = folder_of(one, tmp_path / "one"), tmp_path / "out"
    run = bl.dedupe(place, FIELDS, engine="spark", **HOW)
    assert_same(run, alone)
    assert rows_of(run.with_entities()) == rows_of(alone.with_entities())
    with pytest.raises(InputError, match=r"Spark has the records. Take run.with_entities\(\)"):
        run.people()
    assert run.evaluate(made.truth) == alone.evaluate(made.truth)
    assert rows_of(run.plots.thresholds().table) == rows_of(alone.plots.thresholds().table)
    run.save(out)
    opened = bl.open_run(out)
    assert opened.as_table("clusters").equals(alone.as_table("clusters"))
    assert "say where its executors" in opened.warnings[-1]
    with pytest.raises(InputError, match=r"Join run\.clusters with them by id"):
        opened.with_entities()
    monkeypatch.setattr(type(spark), "active", no_session)  # it takes none to look at a run
    assert bl.evaluate(opened, made.truth) == alone.evaluate(made.truth)
    page = opened.report().read_text("utf-8")  # with values: the folder can be read here, too
    assert any(street.as_py() in page for street in one["postcode"])


def test_the_command_line_finds_the_people_of_one_file(spark, one, alone, tmp_path):
    place, out = folder_of(one, tmp_path / "one"), str(tmp_path / "out")
    to = ["--people-to", f"file://{tmp_path}/there"]
    done = CliRunner().invoke(main, ["dedupe", place, *ON, *SHORT, *to, "-o", out])
    assert done.exit_code == 0, done.output
    assert f"with_entities in file://{tmp_path}/there" in done.output
    assert "group with_entities by entity_id there" in done.output
    assert bl.open_run(out).as_table("draws").equals(alone.as_table("draws"))
    assert 'engine = "spark"' in (tmp_path / "out" / "dedupe.toml").read_text()
    written = spark.read.parquet(f"file://{tmp_path}/there/with_entities")
    assert rows_of(written) == rows_of(alone.with_entities())
    done = CliRunner().invoke(main, ["dedupe", "--update", out, place, "-o", f"{out}2"])
    assert done.exit_code == 2
    assert "an update is made on this machine" in done.output


def test_the_command_line_finds_the_people_of_several(spark, files, tmp_path):
    two = {name: files[name] for name in ("census", "survey")}
    here = bl.link_many(two, FIELDS, duplicates="survey", **HOW)
    out = str(tmp_path / "out")
    paths = [f"{name}={folder_of(table, tmp_path / name)}" for name, table in two.items()]
    how = ["--duplicates", "survey", "--people-to", f"file://{tmp_path}/there"]
    done = CliRunner().invoke(main, ["link-many", *paths, *ON, *SHORT, *how, "-o", out])
    assert done.exit_code == 0, done.output
    assert bl.open_run(out).as_table("clusters").equals(here.as_table("clusters"))
    for name in two:
        written = spark.read.parquet(f"file://{tmp_path}/there/with_entities_{name}")
        assert rows_of(written) == rows_of(here.with_entities(name))


@pytest.mark.short
@pytest.mark.parametrize("command", [["dedupe", "a.csv"], ["link-many", "a.csv", "b.csv"]])
def test_flags_of_spark_need_spark(command, tmp_path):
    done = CliRunner().invoke(main, [*command, "--people-to", "x", "-o", str(tmp_path / "x")])
    assert done.exit_code == 2
    assert "--people-to need --engine spark" in done.output


def test_what_cannot_be_done_there_is_refused(spark, files):
    frames = {k: spark.createDataFrame(t) for k, t in files.items()}
    with pytest.raises(SettingsError, match="census is read by Spark: say how to compare"):
        bl.link_many(frames)
    with pytest.raises(SettingsError, match="census is read by Spark: say how to compare"):
        bl.link_many(frames, ["gname"])
    with pytest.raises(InputError, match="rows of Spark have no order"):
        bl.link_many(frames, FIELDS, id=None)
    with pytest.raises(SettingsError, match="keep by column"):
        bl.link_many(frames, FIELDS, columns=ALSO, keep={"dob": "newest:dob"})
    with pytest.raises(SettingsError, match=r"Give one table, such as x\.union"):
        bl.link_many({**frames, "tax": [frames["tax"], frames["census"]]}, FIELDS)
    with pytest.raises(InputError, match="no column 'nowhere'"):
        bl.link_many(frames, [*FIELDS, bl.exact("nowhere")], columns=ALSO)
