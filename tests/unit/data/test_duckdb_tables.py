"""SQL is code: a query reads the tables of its own database, and does nothing else."""

import time

import duckdb
import pytest
from click.testing import CliRunner

import bayeslink as bl
from bayeslink.cli import main
from bayeslink.data import duckdb_tables
from bayeslink.data.read_options import ReadOptions
from bayeslink.data.records import read_records


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "people.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute(
            "create table people as select range::varchar as id, 'SECRET' || range % 7 as name, "
            "(1900 + range)::varchar as year from range(12)"
        )
        connection.execute("create view outside as select content as id, '' as name, '' as year "
                           f"from read_text('{tmp_path}/a.txt')")  # fmt: skip
    (tmp_path / "a.txt").write_text("OUTSIDE")
    return path


def ids(path, query, **more):
    options = ReadOptions(table=query)
    read = read_records(path, id="id", columns=["name"], options=options, **more)
    return read.ids.to_pylist()


def refused(path, query, **more):
    before = sorted(path.parent.iterdir())
    with pytest.raises(bl.InputError) as caught:
        ids(path, query, **more)
    assert sorted(path.parent.iterdir()) == before
    assert "SECRET" not in str(caught.value)
    assert "OUTSIDE" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    "query",
    [
        "select * from people -- the end",
        "/* select */ SELECT * FROM people; -- the end",
        "with p as (from people) select * from p /* ; copy */ ;",
        "from people where name != ';'",
        "(select * from people)",
    ],
)
def test_one_select_of_any_form_is_run(query, database):
    assert len(ids(database, query)) == 12


@pytest.mark.parametrize(
    "query",
    [
        "select * from people; copy (select 1) to '{0}/x.csv'; select * from people",
        "copy people to '{0}/x.csv'",
        "attach '{0}/other.db'; select * from people",
        "select 1; select * from people",
        "install httpfs",
        "set enable_external_access = true",
        "pragma database_size",
        "explain analyze select * from people",
        "create table x as from people",
        "select * from people; --\n; drop table people",
    ],
)
def test_anything_but_one_select_is_refused_before_it_runs(query, database):
    said = refused(database, query.format(database.parent))
    assert "one SELECT" in said


@pytest.mark.parametrize(
    "query",
    [
        "select content as id, '' as name from read_text('{0}/a.txt')",
        "select column0 as id, '' as name from read_csv('{0}/a.txt', header=false)",
        "select file as id, '' as name from glob('{0}/*')",
        "select column0 as id, '' as name from '{0}/a.csv'",
        "outside",
    ],
)
def test_files_are_out_of_reach_of_queries_and_views(query, database):
    (database.parent / "a.csv").write_text("OUTSIDE\n")
    assert "Only the tables of the database" in refused(database, query.format(database.parent))


def test_a_name_in_a_query_is_no_python_variable(database):
    import pyarrow as pa

    people_of_python = pa.table({"id": ["x"], "name": ["y"]})  # noqa: F841
    assert "people_of_python" in refused(database, "select * from people_of_python")


def test_queries_without_end_are_refused_or_stopped(database, monkeypatch):
    start = time.monotonic()
    assert "rows" in refused(database, "select range id, '' as name from range(100000000000000)")
    many = "select range::varchar as id, repeat('x', 1000) as name from range(100000000)"
    assert "--memory" in refused(database, many, memory=200_000_000)
    monkeypatch.setattr(duckdb_tables, "SECONDS", 0.3)
    forever = (
        "with recursive r(id, name) as (select 1, '' union all select 1 - id, name from r) "
        "select count(*) as id, '' as name from r"
    )
    assert "longer than" in refused(database, forever)
    assert time.monotonic() - start < 30


def test_a_change_that_is_still_in_the_log_is_noticed(database, tmp_path):
    def digest(path):
        return read_records(
            path, id="id", columns=["name"], options=ReadOptions(table="people")
        ).sha256

    before = digest(database)
    assert digest(database) == before
    copy = tmp_path / "copy.duckdb"
    with duckdb.connect(database) as connection:
        connection.execute("insert into people values ('new', 'x', 'y')")
        log = database.with_name("people.duckdb.wal").read_bytes()
        copy.write_bytes(database.read_bytes())
    copy.with_name("copy.duckdb.wal").write_bytes(log)
    assert digest(copy) != before


def test_settings_sent_by_somebody_else_run_no_code(database, tmp_path):
    """`bayeslink report` reads the files of a run again, with the query of its link.toml."""
    read = (
        ReadOptions(table="select * from people"),
        ReadOptions(table="select * from (from people)"),
    )
    fields = [bl.exact("name"), bl.exact("year")]
    out = tmp_path / "out"
    bl.link(database, database, fields, read=read, draws=50, tune=50).save(out)
    toml = out / "link.toml"
    written = tmp_path / "written.csv"
    query = f"select * from people; copy (select 1) to '{written}'; select * from people"
    toml.write_text(toml.read_text("utf-8").replace("select * from people", query), "utf-8")
    assert bl.open_run(out).settings.read[0].table == query
    for command in ("report", "review --no-browser", "explain {} 1 7"):
        words = [out if word == "{}" else word for word in command.split()]
        words = words if out in words else [*words, out]
        result = CliRunner().invoke(main, [str(word) for word in words])
        assert not written.exists()
        assert not isinstance(result.exception, duckdb.Error)
