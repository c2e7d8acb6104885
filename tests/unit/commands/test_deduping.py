"""`bayeslink dedupe`: kinds of file in, a directory out, opened again and judged."""

import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import polars
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import bayeslink as bl
from bayeslink.cli import main
from bayeslink.errors import InputError

SHORT = ("--draws", "60", "--tune", "60", "--chains", "2")
PYTHON = {"draws": 60, "tune": 60, "chains": 2}
FILES = {
    f"{name}{end}"
    for name in ("clusters", "people", "with_entities")
    for end in (".csv", ".parquet")
} | {f"{name}.parquet" for name in ("pairs", "reach", "draws", "parameters")} | {
    "run.json", "dedupe.toml",
}  # fmt: skip


def call(*words):
    return CliRunner().invoke(main, [*map(str, words)])


def told(*words):
    done = call(*words)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture(scope="module")
def given():
    return bl.simulate_duplicates(120, seed=3)


@pytest.fixture(scope="module")
def truth(given, tmp_path_factory):
    path = tmp_path_factory.mktemp("truth") / "truth.csv"
    pyarrow.csv.write_csv(given.truth, path)
    return path


def csv(table, path):
    pyarrow.csv.write_csv(table, path)
    return path


def cp1252(table, path):
    table.to_pandas().to_csv(path, sep=";", encoding="cp1252", errors="replace", index=False)
    return path


def parquet(table, path):
    pq.write_table(table, path)
    return path


def excel(table, path):
    table.to_pandas().to_excel(path, index=False)
    return path


KINDS = {
    "file.csv": (csv, ()),
    "latin.csv": (cp1252, ("--encoding", "cp1252")),
    "file.parquet": (parquet, ()),
    "file.xlsx": (excel, ()),
}


@pytest.fixture(scope="module")
def saved(given, tmp_path_factory):
    """The directory of the CSV, which most tests read."""
    folder = tmp_path_factory.mktemp("saved")
    csv(given.a, folder / "file.csv")
    said = told("dedupe", folder / "file.csv", "-o", folder / "out", *SHORT)
    return folder / "out", said


@pytest.mark.parametrize("kind", KINDS)
def test_files_of_every_kind(kind, given, truth, tmp_path):
    write, options = KINDS[kind]
    path, out = write(given.a, tmp_path / kind), tmp_path / "out"
    said = told("dedupe", path, "-o", out, *options, *SHORT)
    assert "people (95 % interval)" in said
    assert {p.name for p in out.iterdir()} == FILES
    run = bl.open_run(out)
    assert len(run.clusters) == given.a.num_rows
    low, high = run.entities.interval()
    assert low <= run.decision.n_entities <= high
    judged = json.loads(told("evaluate", out, "--truth", truth, "--json"))
    assert judged["f1"] > 0.9
    assert judged["people_interval"] == [low, high]


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_tables_from_python(kind, given, saved, tmp_path):
    table = {
        "pandas": lambda: given.a.to_pandas(),
        "polars": lambda: polars.from_arrow(given.a),
        "arrow": lambda: given.a,
    }[kind]()
    run = bl.dedupe(table, **PYTHON)
    assert type(run.clusters) is type(table)
    run.save(tmp_path / "out")
    opened = bl.open_run(tmp_path / "out")
    assert type(opened.clusters) is type(table)
    same = (tmp_path / "out/clusters.csv").read_bytes()
    assert same == (saved[0] / "clusters.csv").read_bytes()  # as from the file
    assert len(opened.people()) == opened.decision.n_entities
    assert opened.entities.interval() == run.entities.interval()
    with pytest.raises(InputError, match=r"dedupe --config"):
        _ = opened.posterior


def test_the_tables_agree_with_each_other(saved, given):
    out, _ = saved
    clusters = pd.read_csv(out / "clusters.csv")
    assert {*clusters["id"]} == {*given.a["id"].to_pylist()}
    assert (clusters.groupby("entity_id")["id"].transform("size") == clusters["size"]).all()
    faces = clusters[clusters["representative"]]
    assert (faces["id"] == faces["entity_id"]).all()
    people = pd.read_csv(out / "people.csv", dtype=str)
    assert [*people["entity_id"]] == [*faces["entity_id"]]
    assert people["records"].astype(int).sum() == len(clusters)
    own = pd.read_csv(out / "with_entities.csv", dtype=str)
    assert [*own["id"]] == given.a["id"].to_pylist()
    entity = clusters.set_index("id")["entity_id"]
    assert (own["entity_id"] == own["id"].map(entity)).all()
    summary = json.loads((out / "run.json").read_text())
    draws = pq.read_table(out / "draws.parquet")
    assert len(draws) == summary["chains"] * summary["draws"]
    pairs = pq.read_table(out / "pairs.parquet").to_pandas()
    assert (pairs["id_a"] < pairs["id_b"]).all()
    assert pairs["probability"].is_monotonic_decreasing
    assert summary["inputs"][0]["sha256"]
    assert stat.S_IMODE(os.stat(out).st_mode) == 0o700
    assert {stat.S_IMODE(p.stat().st_mode) for p in out.iterdir()} == {0o600}


def test_the_order_of_rows_changes_nothing(saved, given, tmp_path):
    turned = given.a.to_pandas().sample(frac=1, random_state=4)
    turned.to_csv(tmp_path / "file.csv", index=False)
    told("dedupe", tmp_path / "file.csv", "-o", tmp_path / "out", *SHORT)
    for name in ("clusters.csv", "people.csv", "pairs.parquet", "draws.parquet"):
        assert (tmp_path / "out" / name).read_bytes() == (saved[0] / name).read_bytes(), name


def test_the_settings_file_repeats_the_run(saved, tmp_path):
    out, _ = saved
    told("dedupe", "--config", out / "dedupe.toml", "-o", tmp_path / "again")
    for name in FILES - {"run.json", "dedupe.toml"}:
        assert (tmp_path / "again" / name).read_bytes() == (out / name).read_bytes(), name


def test_commands_for_linkages_say_what_works_instead(saved, tmp_path):
    out, _ = saved
    for words in (
        ("explain", out, "1", "2"),
        ("join", out, "-o", tmp_path / "x.csv"),
        ("population", out),
    ):
        done = call(*words)
        assert done.exit_code != 0
        assert "is of `bayeslink dedupe`" in done.output, words
        assert "clusters.csv" in done.output


def test_without_ids_rows_are_numbered(given, tmp_path):
    path = csv(given.a.drop_columns(["id"]), tmp_path / "file.csv")
    told("dedupe", path, "-o", tmp_path / "out", *SHORT)
    assert {*pd.read_csv(tmp_path / "out/clusters.csv")["id"]} == {*range(1, 121)}


def test_identical_records_are_one_person(given, tmp_path):
    one = given.a.slice(0, 40)
    twice = pa.concat_tables([one, one]).set_column(
        0, "id", pa.array([f"r{k:03d}" for k in range(80)])
    )
    told("dedupe", csv(twice, tmp_path / "f.csv"), "-o", tmp_path / "out", *SHORT)
    clusters = pd.read_csv(tmp_path / "out/clusters.csv").set_index("id")["entity_id"]
    same = [clusters[f"r{k:03d}"] == clusters[f"r{k + 40:03d}"] for k in range(40)]
    assert sum(same) >= 38


def test_a_file_of_one_record_is_one_person(tmp_path):
    (tmp_path / "f.csv").write_text("id,name\n7,Ada\n")
    told("dedupe", tmp_path / "f.csv", "-o", tmp_path / "out", *SHORT)
    assert len(pd.read_csv(tmp_path / "out/people.csv")) == 1


def test_a_file_without_duplicates(tmp_path):
    path = csv(bl.simulate_duplicates(100, seed=5, sizes=[1]).a, tmp_path / "f.csv")
    said = told("dedupe", path, "-o", tmp_path / "out", *SHORT)
    assert len(pd.read_csv(tmp_path / "out/people.csv")) >= 98
    assert "hardly the same people" not in said


def test_a_file_with_duplicates_is_not_said_to_have_none(saved):
    assert "hardly the same people" not in saved[1]


def test_a_column_of_nothing_is_left_out(given, tmp_path):
    empty = given.a.append_column("nothing", pa.nulls(120, pa.string()))
    said = told("dedupe", csv(empty, tmp_path / "f.csv"), "-o", tmp_path / "out", *SHORT)
    assert "nothing (" not in said


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        ("", (), "there are no records"),
        ("id,name\n", (), "no records"),
        ("id,name\n1,a\n2,b\n", ("--on", "surname:name"), "surname"),
        ("id,name\n1,a\n2,b\n", ("--id", "number"), "number"),
        ("id,name\n1,a\n2,b\n", ("more.csv",), "one file"),
    ],
)
def test_what_cannot_be_done_is_told_and_leaves_nothing(text, words, said, tmp_path):
    (tmp_path / "f.csv").write_text(text)
    done = call("dedupe", tmp_path / "f.csv", *words, "-o", tmp_path / "out", *SHORT)
    assert done.exit_code not in (0, 1)
    assert said in done.output
    assert [p.name for p in tmp_path.iterdir()] == ["f.csv"]


def test_a_directory_in_use_stays_as_it_is(saved, tmp_path):
    out, _ = saved
    before = (out / "run.json").read_bytes()
    done = call("dedupe", out.parent / "file.csv", "-o", out, *SHORT)
    assert done.exit_code != 0
    assert "--force" in done.output
    assert (out / "run.json").read_bytes() == before


def test_cells_that_a_spreadsheet_would_run_are_made_safe(given, tmp_path):
    risky = given.a.append_column("remark", pa.array(["=1+1"] * 120))
    told("dedupe", csv(risky, tmp_path / "f.csv"), "-o", tmp_path / "out", *SHORT)
    for name in ("people.csv", "with_entities.csv"):
        text = (tmp_path / "out" / name).read_text()
        assert '"=1+1"' not in text
        assert "'=1+1" in text


@pytest.mark.full
def test_an_interrupted_run_goes_on_or_leaves_nothing(tmp_path):
    path = csv(bl.simulate_duplicates(3000, seed=2).a, tmp_path / "f.csv")
    command = [sys.executable, "-m", "bayeslink", "dedupe", str(path), "-o", "out", "-v"]
    process = subprocess.Popen([*command, *SHORT], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if "comparing" in line:
            break
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    rest = process.stderr.read()
    process.stderr.close()
    assert process.wait(60) == 130, rest
    assert not Path(tmp_path / "out").exists()
    if "bayeslink resume" in rest:
        told("resume", tmp_path / "out")
    else:
        assert [p.name for p in tmp_path.iterdir()] == ["f.csv"]
