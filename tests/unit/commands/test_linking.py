"""`link` and other commands: what is wrong from the start, and nothing said with -q."""

import subprocess
import sys

import pandas as pd
import pytest
from click.testing import CliRunner

import bayeslink as bl
from bayeslink.cli import main
from bayeslink.errors import InputError, SettingsError
from bayeslink.kernels import compiling

ON = ("--on", "gname:levenshtein", "--on", "fname:levenshtein", "--on", "dob:date")
FIELDS = [bl.levenshtein("gname"), bl.levenshtein("fname"), bl.date("dob")]
QUICK = ("--draws", 50, "--tune", 50, "--chains", 2)
HEAVY = "import sys; from bayeslink.cli import main\ntry: main(sys.argv[1:])\nfinally: print([m for m in ('numba', 'pyarrow.dataset', 'scipy') if m in sys.modules])"  # noqa: E501


@pytest.fixture
def files(tmp_path):
    bl.write_simulation(bl.simulate(40, seed=2), tmp_path / "files")
    return tmp_path / "files"


def call(*args):
    return CliRunner().invoke(main, list(map(str, args)))


@pytest.mark.parametrize(
    "words",
    [
        "link nope.csv b.csv -o out",
        "link a.csv nope.csv -o out",
        "link a.csv b.csv --labels nope -o out",
        "link a.csv b.csv --model nope -o out",
        "link --update nope b.csv -o out",
        "link --config nope.toml -o out",
        "init nope.csv b.csv",
        "init a.csv nope.csv",
        "resume nope",
        "report nope",
        "review nope",
        "evaluate nope --truth truth.csv",
        "explain nope 1 2",
        "join nope -o out.csv",
        "population nope",
    ],
)
def test_a_path_that_is_not_there_is_told_before_anything_large_is_loaded(words, files):
    done = subprocess.run(
        [sys.executable, "-c", HEAVY, *words.split()], cwd=files, capture_output=True, text=True
    )
    assert done.returncode == 3, done.stderr
    assert "nope" in done.stderr
    assert done.stdout.strip() == "[]"


def test_an_output_that_is_there_is_told_before_anything_large_is_loaded(files):
    done = subprocess.run(
        [sys.executable, "-c", HEAVY, "link", "a.csv", "b.csv", "-o", "."],
        cwd=files, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 4
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "wrong",
    [("--draws", -1), ("--chains", 0), ("--theta", "nan"), ("--memory", "lots"), ("--seed", -1)],
)
def test_settings_are_looked_at_before_anything_is_compiled(wrong, files, monkeypatch):
    monkeypatch.setattr("bayeslink.kernels.prepare", lambda *_: pytest.fail("compiled"))
    out = call("link", files / "a.csv", files / "b.csv", *ON, *wrong, "-o", files.parent / "out")
    assert out.exit_code == 2, out.output


def test_an_error_does_not_wait_for_what_is_being_compiled(files, monkeypatch):
    given_up = []
    monkeypatch.setattr(compiling, "abandon", lambda: given_up.append(True))
    monkeypatch.setattr("bayeslink.kernels.abandon", lambda: given_up.append(True))
    out = call("link", files / "a.csv", files / "b.csv", "--on", "nope:exact", "-o", "out")
    assert out.exit_code == 3
    assert given_up


def test_a_mistyped_path_is_told_before_the_other_file_is_read(files, monkeypatch):
    monkeypatch.setattr("bayeslink.data.records.read_source", lambda *_: pytest.fail("read"))
    for fields in (None, FIELDS, ["gname"]):
        with pytest.raises(InputError, match=r"input B, .*nope"):
            bl.link(files / "a.csv", files / "nope.csv", fields)
    with pytest.raises(InputError, match=r"input B, .*nope"):
        bl.suggest(files / "a.csv", files / "nope.csv")


@pytest.mark.parametrize("words", [[], ["link"]])
def test_without_arguments_the_help_is_shown(words):
    done = subprocess.run(
        [sys.executable, "-m", "bayeslink", *words], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "Usage: bayeslink" in done.stdout + done.stderr
    assert "--help" in done.stdout + done.stderr


@pytest.mark.parametrize("on", [(), ON], ids=["bare", "fields"])
def test_quiet_prints_nothing(on, files):
    out = files.parent / "out"
    made = call("link", files / "a.csv", files / "b.csv", *on, *QUICK, "-q", "-o", out)
    assert (made.exit_code, made.output) == (0, "")
    for words in (
        ("report", out, "-q"),
        ("join", out, "-o", files.parent / "joined.csv", "-q"),
        ("simulate", "-o", files.parent / "more", "-q"),
    ):
        done = call(*words)
        assert (done.exit_code, done.output) == (0, ""), words
    for words in (("evaluate", out, "--truth", files / "truth.csv"), ("population", out)):
        assert call(*words, "-q").output == call(*words).output != "", words  # what was asked for
    assert "exists" in call("link", files / "a.csv", files / "b.csv", "-q", "-o", out).output


def test_three_files_are_refused_with_the_way_to_link_them(files):
    a, b, c = files / "a.csv", files / "b.csv", files / "truth.csv"
    out = call("link", a, b, c, "-o", files.parent / "out")
    assert out.exit_code == 2
    assert "bayeslink link-many" in out.output
    for third in (c, str(c), pd.DataFrame({"gname": ["x"]})):
        with pytest.raises(SettingsError, match="third"):
            bl.link(a, b, third)


def test_a_table_is_not_linked_with_itself(files):
    frame = pd.read_csv(files / "a.csv", dtype=str)
    for fields in (None, FIELDS):
        with pytest.raises(InputError, match="same file"):
            bl.link(frame, frame, fields)
    twin = bl.link(frame, frame.copy(), FIELDS, draws=50, tune=50, chains=2)
    assert any("the same records" in note for note in twin.warnings)
    with pytest.raises(InputError, match="same file"):
        bl.suggest(files / "a.csv", str(files / ".." / "files" / "a.csv"))


def test_two_tables_of_one_database_are_two_files(files, tmp_path):
    import sqlite3

    with sqlite3.connect(tmp_path / "both.sqlite") as base:
        for side in "ab":
            pd.read_csv(files / f"{side}.csv", dtype=str).to_sql(side, base, index=False)
    both = tmp_path / "both.sqlite"
    out = call(
        "link", both, both, "--table", "a", "--table", "b", *ON, *QUICK, "-o", tmp_path / "o"
    )
    assert out.exit_code == 0, out.output
