"""Tables of Spark as inputs: names, types, catalogue, command line; what the executors write."""

import datetime as dt
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import bayeslink as bl
from bayeslink.cli import main
from bayeslink.engines.compare import compare
from bayeslink.errors import InputError, OutputError, SettingsError

pytestmark = pytest.mark.filterwarnings("ignore:.*pandas:FutureWarning")
FIELDS = [bl.levenshtein("gname"), bl.levenshtein("fname"), bl.date("dob")]
HOW = {"draws": 40, "tune": 20, "chains": 2}


@pytest.fixture(scope="module")
def files():
    found = bl.simulate(60, seed=3)
    return [pa.table(t).sort_by("id") for t in (found.a, found.b)]


@pytest.fixture(scope="module")
def folders(tmp_path_factory, files):
    out = []
    for name, table in zip("ab", files, strict=True):
        folder = tmp_path_factory.mktemp("parquet") / name
        folder.mkdir()
        pq.write_table(table, folder / "part.parquet")
        out.append(str(folder))
    return out


HOSTILE = ["a.b", "`tick`", 'say "x"', "Ünï cödé", "select", "a;b=c", "tab\there", "{x}", "1", " "]


@pytest.mark.short
def test_hostile_column_names_do_as_others(spark):
    rows = {
        "id": [f"r{k}" for k in range(6)],
        **{name: [None if k == 4 else f"v{k % 3}" for k in range(6)] for name in HOSTILE},
    }
    both = (pa.table(rows), pa.table(rows).slice(1))
    frames = [spark.createDataFrame(table) for table in both]
    fields = [bl.exact(name, name=f"f{k}") for k, name in enumerate(HOSTILE)]
    there, here = compare(*frames, fields), compare(*both, fields)
    assert there.describe().engine == "spark"
    assert there.level_counts().counts.tolist() == here.level_counts().counts.tolist()
    assert there.cells(0, [0, 4]) == here.cells(0, [0, 4])
    assert there.tie_keys[0].tolist() == here.tie_keys[0].tolist()


def test_types_become_the_text_that_any_other_input_gives(spark):
    table = pa.table(
        {
            "id": [5, 3, 4],
            "whole": pa.array([1.0, None, 3.0]),
            "part": pa.array([1.5, 2.0, None]),
            "day": pa.array([dt.date(1980, 2, 3), None, dt.date(1999, 12, 31)]),
            "flag": [True, None, False],
            "blank": [" ", "x", "NA"],
        }
    )
    names = table.column_names[1:]
    fields = [bl.exact(name) for name in names]
    # Two partitions: whether all numbers are whole is a matter of the column, not of a partition.
    both = (table, table.slice(1))
    frames = [spark.createDataFrame(side).repartition(2) for side in both]
    there = compare(*frames, fields, missing=["NA"])
    here = compare(*(side.sort_by("id") for side in both), fields, missing=["NA"])
    for side, rows in ((0, [0, 1, 2]), (1, [0, 1])):
        assert there.cells(side, rows) == here.cells(side, rows)
    assert there.id_types == here.id_types == ("int64", "int64")


@pytest.mark.parametrize(
    ("columns", "id", "why"),
    [
        ({"id": ["a", "a"], "x": ["1", "2"]}, "id", "1 records repeat the id of another"),
        ({"id": ["a", None], "x": ["1", "2"]}, "id", "1 records have no id"),
        ({"id": ["a", "b"], "x": [[1], [2]]}, "id", "no single text form"),
        ({"id": [0.5, 1.5], "x": ["1", "2"]}, "id", "cast it to string"),
        ({"id": ["a", "b"], "y": ["1", "2"]}, "id", "'x'"),
        ({"id": ["a", "b"], "x": ["1", "2"]}, None, "rows of Spark have no order"),
        ({"id": ["a", "b"], "x": ["1", "a\0b"]}, "id", "NUL character"),
    ],
)
def test_what_cannot_be_used_is_refused(spark, columns, id, why):
    frame = spark.createDataFrame(pa.table(columns))
    with pytest.raises(InputError, match=why):
        compare(frame, frame, [bl.exact("x")], id=id)


@pytest.mark.short
def test_an_empty_table_is_refused(spark):
    frame = spark.createDataFrame(pa.table({"id": ["a"], "x": ["1"]})).limit(0)
    with pytest.raises(InputError, match="no records"):
        compare(frame, frame, [bl.exact("x")])


def test_a_table_of_the_catalogue_and_its_joined_file(spark, files, tmp_path):
    for name, table in zip("ab", files, strict=True):
        spark.createDataFrame(table).createOrReplaceTempView(f"people_{name}")
    run = bl.link("people_a", "people_b", FIELDS, engine="spark", **HOW)
    here = bl.link(*files, FIELDS, **HOW)
    assert run.table.equals(here.table)
    for how in ("inner", "left", "right", "outer"):
        there, local = (r.joined(how) for r in (run, here))
        assert there.columns == local.column_names
        found = sorted(map(str, (tuple(row) for row in there.collect())))
        rows = zip(*(column.to_pylist() for column in local.columns), strict=True)
        assert found == sorted(map(str, rows))
    for side in "ab":
        assert run.unlinked(side).count() == here.unlinked(side).num_rows
    drawn = next(run.joined_draws(k=2))
    assert drawn.columns == here.joined().column_names

    run.save(tmp_path / "out", linked=f"file://{tmp_path}/written")
    written = spark.read.parquet(f"file://{tmp_path}/written/linked")
    assert written.count() == run.n_links
    assert not (tmp_path / "out" / "linked.csv").exists()
    with pytest.raises(OutputError, match="cannot write"):
        run.save(tmp_path / "out2", linked=f"file://{tmp_path}/written")
    opened = bl.open_run(tmp_path / "out")
    assert opened.table.equals(run.table)
    told = json.loads((tmp_path / "out" / "run.json").read_text())
    assert told["engine"] == "spark"


def test_the_command_line_links_parquet_folders(spark, files, folders, tmp_path):
    on = [x for f in ("gname:levenshtein", "fname:levenshtein", "dob:date") for x in ("--on", f)]
    how = ["--draws", "40", "--tune", "20", "--chains", "2"]
    out = str(tmp_path / "out")
    command = ["link", *folders, *on, *how, "--engine", "spark", "-o", out]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 0, done.output
    links = pq.read_table(f"{out}/links.parquet")
    here = bl.link(*files, FIELDS, **HOW).table
    assert links["id_a"].to_pylist() == here["id_a"].to_pylist()
    assert links["link_probability"].to_pylist() == here["link_probability"].to_pylist()
    assert 'engine = "spark"' in (tmp_path / "out" / "link.toml").read_text()


@pytest.mark.short
def test_spark_flags_need_spark(tmp_path):
    done = CliRunner().invoke(
        main, ["link", "a.csv", "b.csv", "--master", "local[2]", "-o", str(tmp_path / "x")]
    )
    assert done.exit_code == 2
    assert "need --engine spark" in done.output


@pytest.mark.short
def test_engines_that_are_none(spark):
    table = pa.table({"id": ["a"], "x": ["1"]})
    with pytest.raises(SettingsError, match="engine must be a Spark session"):
        compare(table, table, [bl.exact("x")], engine=3)
    with pytest.raises(InputError, match="neither a table nor Parquet files"):
        compare("no_such_table", "no_such_table", [bl.exact("x")], engine=spark)


def test_how_to_compare_is_for_the_caller_to_say(spark, files):
    frame = spark.createDataFrame(files[0])
    for fields in (None, ["gname"]):
        with pytest.raises(SettingsError, match="say how to compare each column"):
            bl.link(frame, frame.limit(10), fields)


def test_files_of_this_machine_can_be_linked_there_too(spark, everything_sent, files):
    run = bl.link(*files, FIELDS, engine=spark, **HOW)
    assert run.table.equals(bl.link(*files, FIELDS, **HOW).table)
    assert isinstance(run.links, pa.Table)
