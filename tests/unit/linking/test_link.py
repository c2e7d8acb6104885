"""link(), compare() and the command line, as a user meets them."""

import json
import re
import tomllib

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import bayeslink as bl
from bayeslink.cli import main
from bayeslink.comparing.parsing import parse_on
from bayeslink.report.page import report

LINKED = ("linked", "unlinked_a", "unlinked_b")
FIELDS = [bl.levenshtein("gname"), bl.levenshtein("fname"), bl.exact("occup"), bl.date("dob")]
ON = [
    *("--on", "gname:levenshtein", "--on", "fname:levenshtein"),
    *("--on", "occup:exact", "--on", "dob:date"),
]


@pytest.fixture(scope="module")
def files():
    return bl.simulate(300, overlap=0.5, errors=1, seed=2)


@pytest.fixture
def paths(files, tmp_path):
    bl.write_simulation(files, tmp_path / "files")
    return [str(tmp_path / "files" / name) for name in ("a.csv", "b.csv", "truth.csv")]


def run_cli(*arguments):
    return CliRunner().invoke(main, [str(a) for a in arguments])


def pairs_of(table):
    return set(zip(table["id_a"].to_pylist(), table["id_b"].to_pylist(), strict=True))


def test_tables_come_back_in_the_callers_own_kind(files, paths):
    arrow = bl.link(files.a, files.b, FIELDS).links
    assert isinstance(arrow, pa.Table)
    assert arrow.column_names == [
        *("id_a", "id_b", "link_probability", "match_weight", "decision"),
        *("gamma_gname", "gamma_fname", "gamma_occup", "gamma_dob"),
    ]
    pandas = bl.link(files.a.to_pandas(), files.b.to_pandas(), FIELDS).links
    assert isinstance(pandas, pd.DataFrame)
    polars = bl.link(pl.from_arrow(files.a), pl.from_arrow(files.b), FIELDS).links
    assert isinstance(polars, pl.DataFrame)
    from_paths = bl.link(paths[0], paths[1], FIELDS).links
    expected = pairs_of(arrow)
    assert len(expected) > 100
    for other in (pa.Table.from_pandas(pandas), polars.to_arrow(), from_paths):
        assert pairs_of(other) == expected


def test_duckdb_tables_and_queries(files, tmp_path):
    duckdb = pytest.importorskip("duckdb")
    path = str(tmp_path / "people.duckdb")
    with duckdb.connect(path) as connection:
        a, b = files.a, files.b  # noqa: F841 - read by DuckDB by name
        connection.execute("create table a as select * from a")
        connection.execute('create table "b t" as select * from b')
    read = bl.ReadOptions(table="a"), bl.ReadOptions(table='select * from "b t"')
    run = bl.link(path, path, FIELDS, read=read)
    assert pairs_of(run.table) == pairs_of(bl.link(files.a, files.b, FIELDS).table)


def test_column_names_may_differ(files):
    b = files.b.rename_columns([f"b_{n}" for n in files.b.column_names])
    fields = [
        bl.levenshtein("gname", columns=("gname", "b_gname")),
        bl.levenshtein("fname", columns=("fname", "b_fname")),
        bl.exact("occup", columns=("occup", "b_occup")),
        bl.date("dob", columns=("dob", "b_dob")),
    ]
    run = bl.link(files.a, b, fields, id=("id", "b_id"), block=[("sex", "b_sex")])
    same = bl.link(files.a, files.b, FIELDS, block=["sex"])
    assert pairs_of(run.table) == pairs_of(same.table)


def test_blocking_key_is_a_hard_constraint(files):
    run = bl.link(files.a, files.b, FIELDS, block="sex")
    sex_a = dict(zip(files.a["id"].to_pylist(), files.a["sex"].to_pylist(), strict=True))
    sex_b = dict(zip(files.b["id"].to_pylist(), files.b["sex"].to_pylist(), strict=True))
    for a, b in pairs_of(run.table):
        assert sex_a[a] is not None
        assert sex_a[a] == sex_b[b]
    counted = sum(x == y for x in sex_a.values() if x for y in sex_b.values())
    assert run.pairs.n_pairs == counted


def test_1_and_2_threads_give_the_same_links(files):
    one, two = (bl.link(files.a, files.b, FIELDS, threads=n).table for n in (1, 2))
    assert one.equals(two)


def test_command_line_from_files_to_evaluation(paths, tmp_path):
    out = tmp_path / "out"
    done = run_cli("link", *paths[:2], *ON, "-o", out)
    assert done.exit_code == 0, done.output
    assert "links" in done.output
    names = {p.name for p in out.iterdir()}
    tables = ("links", "parameters", "pairs", "reach", "draws", "link_draws")
    linked = {f"{n}.{end}" for n in LINKED for end in ("csv", "parquet")}
    others = {"links.csv", "run.json", "link.toml", "model.json", "state.npz"}
    assert names == {f"{t}.parquet" for t in tables} | linked | others
    links = pq.read_table(out / "links.parquet")
    assert pyarrow.csv.read_csv(out / "links.csv").num_rows == links.num_rows
    provenance = json.loads((out / "run.json").read_text())
    assert provenance["n_links"] == links.num_rows
    assert re.fullmatch(r"[0-9a-f]{64}", provenance["inputs"][0]["sha256"])
    assert provenance["fields"][0]["normalise"] == ["unicode", "case", "space"]
    assert provenance["fields"][0]["missing"][1] > 0
    parameters = pq.read_table(out / "parameters.parquet").to_pylist()
    assert sum(row["m"] for row in parameters if row["field"] == "gname") == pytest.approx(1)
    result = run_cli("evaluate", out, "--truth", paths[2], "--json")
    assert json.loads(result.stdout)["f1"] > 0.9
    assert "precision" in run_cli("evaluate", out, "--truth", paths[2]).stdout


def test_a_run_repeats_from_the_link_toml_it_wrote(paths, tmp_path):
    flags = ["--block", "sex", "--theta", "5", "--missing", "?", "--missing", "n/a", "--seed", "7"]
    on = [*ON[:-1], "dob:date:cuts=0,10:swapped=false", "--on", "street:tokens"]
    first = run_cli("link", *paths[:2], *on, *flags, "-o", tmp_path / "one")
    assert first.exit_code == 0, first.output
    written = tomllib.loads((tmp_path / "one" / "link.toml").read_text())
    assert written["theta"] == 5.0
    assert written["missing"] == ["?", "n/a"]
    again = run_cli("link", "--config", tmp_path / "one" / "link.toml", "-o", tmp_path / "two")
    assert again.exit_code == 0, again.output
    for name in ("links.parquet", "links.csv", "parameters.parquet", "link.toml"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_flags_win_over_the_config(paths, tmp_path):
    config = tmp_path / "link.toml"
    config.write_text(
        f'a = "{paths[0]}"\nb = "{paths[1]}"\ntheta = 30\n[[fields]]\ncolumn = "gname"\n'
    )
    done = run_cli("link", "--config", config, "--theta", "4", *ON, "-o", tmp_path / "o", "--json")
    assert json.loads(done.stdout)["theta"] == 4


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('thta = 3\n[[fields]]\ncolumn = "x"', ["thta", "theta"]),
        ('theta = "3"\n[[fields]]\ncolumn = "x"', ["theta", "number"]),
        ('theta = 2\noverlap = [1, 1]\na="a"\nb="b"\n[[fields]]\ncolumn = "x"', ["not both"]),
        ('a="a"\nb="b"\n[[fields]]\ncolumn = "x"\ncompare = "levenstein"', ["levenshtein"]),
        ('a="a"\nb="b"\n[[fields]]\ncompare = "exact"', ["column"]),
        ("theta = ", ["TOML"]),
    ],
)
def test_wrong_settings_files_name_the_key(text, words, tmp_path):
    (tmp_path / "link.toml").write_text(text)
    done = run_cli("link", "--config", tmp_path / "link.toml", "-o", tmp_path / "out")
    assert done.exit_code == 2, done.output
    for word in words:
        assert word in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "Usage: "),
        (["-o", "x"], "file A is missing"),
        (["a.csv", "b.csv"], "-o OUT"),
        (["a.csv", "b.csv", "--on", "x:exact"], "-o OUT"),
        (["a.csv", "b.csv", "--on", "x:exactly", "-o", "x"], "Did you mean 'exact'"),
        (["a.csv", "b.csv", "--on", "x:levenshtein:cut=1", "-o", "x"], "Did you mean 'cuts'"),
        (["a.csv", "b.csv", "--on", "x:levenshtein:cuts", "-o", "x"], "setting=value"),
        (["a.csv", "b.csv", "--on", "x:exact", "--overlap", "1", "-o", "x"], "two numbers"),
        (["a.csv", "b.csv", "--on", "x:exact", "--theta", "nan", "-o", "x"], "finite"),
        (["a.csv", "b.csv", "--on", "x:exact", "--on", "x:exact", "-o", "x"], "called 'x'"),
    ],
)
def test_usage_errors_exit_2_and_say_what_to_do(arguments, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for side in "ab":  # which are looked at first
        (tmp_path / f"{side}.csv").write_text(f"id,x\n{side}1,y\n")
    done = run_cli("link", *arguments)
    assert done.exit_code == 2, done.output
    assert words in done.stderr


def test_on_takes_settings():
    (field,) = parse_on("surname:levenshtein:cuts=0,.2,.4:bands=.01,.001:m_prior=1,2,3,4,5,6")
    assert (field.cuts, field.bands) == ((0, 0.2, 0.4), (0.01, 0.001))
    assert field.m_prior == (1, 2, 3, 4, 5, 6)
    assert parse_on("age")[0].kind == "exact"
    assert parse_on('born:date:format="%d:%m:%Y"')[0].options["formats"] == ("%d:%m:%Y",) * 2
    assert parse_on("x:exact:columns=p,q:missing=?,NA")[0].columns == (("p",), ("q",))
    assert parse_on("lat:geo:longitude=lon")[0].columns == (("lat", "lon"),) * 2


def test_simulate_and_demo(tmp_path):
    done = run_cli(
        "simulate", "--n", 50, "--overlap", 0.4, "--seed", 3, "-o", tmp_path / "s", "--json"
    )
    assert json.loads(done.stdout)["n_matches"] == 20
    again = run_cli("simulate", "--n", 50, "-o", tmp_path / "s")
    assert again.exit_code == 4
    one = run_cli("simulate", "--n", 50, "--sizes", "1,1", "-o", tmp_path / "one", "--json")
    told = json.loads(one.stdout)
    assert told["n"] == 50
    assert 25 <= told["n_entities"] < 45
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == ["a.csv", "truth.csv"]
    for flags, why in (
        (("--sizes", "1,1", "--n-b", 5), "--n-b is for two files"),
        (("--married", 0.2), "--married is for one file"),
        (("--sizes", "1;1"), "--sizes must be numbers"),
    ):
        refused = run_cli("simulate", *flags, "-o", tmp_path / "other")
        assert refused.exit_code == 2
        assert why in refused.stderr
    for _ in range(2):  # the second run replaces the first
        demo = run_cli("demo", "--n", 300, "-o", tmp_path / "demo")
        assert demo.exit_code == 0, demo.output
    assert "precision" in demo.stdout
    assert "recall" in demo.stdout
    assert (tmp_path / "demo" / "run" / "links.csv").is_file()


def test_every_command_and_option_has_help():
    for name, command in main.commands.items():
        assert command.help, name
        for option in command.params:
            if option.param_type_name == "option" and option.name not in ("output", "seed"):
                assert option.help, f"{name} {option.name}"


def test_the_pairs_of_a_posterior_can_be_sampled_again():
    """Those that were no candidates are in no block, and yet are drawn one-to-one."""
    files = bl.simulate(60, overlap=0.5, errors=3, seed=3)
    fields = [bl.levenshtein("gname"), bl.levenshtein("fname"), bl.exact("sex")]
    pairs = bl.compare(files.a, files.b, fields)
    fit = bl.fit_penalized(pairs)
    once = bl.sample(bl.posthoc_blocks(pairs, fit, w0=fit.theta - 1), draws=2000)
    assert (once.blocks.block < 0).sum() > 100
    again = bl.sample(once.blocks, draws=2000)
    assert (again.blocks.block >= 0).sum() == once.blocks.n_candidates
    assert again.n_links.mean() == pytest.approx(once.n_links.mean(), abs=0.5)
    n = once.blocks.n_candidates
    np.testing.assert_allclose(again.probability[:n], once.probability, atol=0.05)


def test_structure_and_restriction_are_told(paths, tmp_path):
    """The paper's model from the command line, as link.toml and run.json have it."""
    flags = ["--structure", "independent", "--restricted", "--draws", 50, "--tune", 20]
    assert run_cli("link", *paths[:2], *ON, *flags, "-o", tmp_path / "out").exit_code == 0
    settings = tomllib.loads((tmp_path / "out" / "link.toml").read_text())
    assert (settings["structure"], settings["restricted"]) == ("independent", True)
    summary = json.loads((tmp_path / "out" / "run.json").read_text())
    assert (summary["structure"]["name"], summary["restricted"]) == ("independent", True)
    assert pq.read_table(tmp_path / "out" / "pairs.parquet")["block"].null_count == 0
    wrong = run_cli("link", *paths[:2], *ON, "--structure", "none", "-o", tmp_path / "no")
    assert wrong.exit_code == 2


@pytest.mark.parametrize("settings", [{}, {"structure": "independent"}, {"point": True}])
def test_a_field_that_is_missing_everywhere_weighs_nothing(tmp_path, settings):
    files = bl.simulate(40, seed=1)
    a, b = (
        t.append_column("zip", pa.nulls(len(t), pa.string())).append_column(
            "half", t["fname"] if k else pa.nulls(len(t), pa.string())
        )
        for k, t in enumerate((files.a, files.b))
    )
    fields = [bl.levenshtein(name) for name in ("gname", "zip", "half")]
    run = bl.link(a, b, fields, draws=30, tune=10, **settings)
    run.save(tmp_path / "out")
    rows = pq.read_table(tmp_path / "out" / "parameters.parquet").to_pylist()
    for row in rows:
        assert (row["match_weight"] == 0.0) == (row["field"] != "gname")
    assert "never seen" in report(run, tmp_path / "r.html").read_text("utf-8")
    assert "zip, equal: never seen" in bl.plots.weights(run).svg()


def test_a_stream_is_read_once_for_fields_and_for_links(files):
    streams = [table.to_reader() for table in (files.a, files.b)]
    found = bl.link(*streams, point=True)
    assert found.links.equals(bl.link(files.a, files.b, point=True).links)
