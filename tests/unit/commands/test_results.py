"""What a run directory has to say where there is little: no true pairs, no links."""

import datetime as dt
import json

import pandas as pd
import pyarrow as pa
import pytest
from click.testing import CliRunner

import bayeslink as bl
from bayeslink.cli import main
from bayeslink.runs.workbooks import WorkbookWriter

FIELDS = [bl.name("gname"), bl.name("fname"), bl.exact("sex"), bl.date("dob")]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Files without anybody in both, their run, and the true pairs: a header."""
    folder = tmp_path_factory.mktemp("apart")
    bl.write_simulation(bl.simulate(40, overlap=0.0, seed=1), folder)
    run = bl.link(
        folder / "a.csv", folder / "b.csv", FIELDS, theta=60.0, draws=40, tune=20, chains=2
    )
    run.save(folder / "run")
    return folder


def call(*words):
    return CliRunner().invoke(main, [*map(str, words)])


def test_a_truth_without_pairs_says_that_nobody_is_in_both(made):
    words = ("evaluate", made / "run", "--truth", made / "truth.csv")
    assert call(*words).exit_code == 0
    done = call(*words, "--json")
    assert "NaN" not in done.stdout  # which is no JSON
    found = json.loads(done.stdout)
    assert (found["n_true"], found["n_links"], found["precision"]) == (0, 0, None)


def test_a_report_with_a_truth_without_pairs(made, tmp_path):
    done = call("report", made / "run", "--truth", made / "truth.csv", "-o", tmp_path / "r.html")
    assert done.exit_code == 0, done.output


def test_a_truth_that_cannot_be_read_is_not_called_an_input(made, tmp_path):
    (tmp_path / "truth.csv").write_text("x,y\n1,2\n", "utf-8")
    done = call("evaluate", made / "run", "--truth", tmp_path / "truth.csv")
    assert done.exit_code == 3
    assert "input A" not in done.stderr
    assert "truth" in done.stderr


# --- what changed between two runs, and workbooks ----------------------------------------------


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """Two runs of the same files with links, under different priors; the files' folder."""
    folder = tmp_path_factory.mktemp("two")
    made = bl.simulate(60, seed=4)
    bl.write_simulation(made, folder / "files")
    for name, theta in (("one", 4.0), ("two", 14.0)):
        a, b = (folder / "files" / f"{side}.csv" for side in "ab")
        bl.link(a, b, FIELDS, theta=theta, draws=40, tune=20, chains=2).save(folder / name)
    return folder


def test_compare_says_what_bl_changes_says(two, made):
    one, other = two / "one", two / "two"
    found = bl.changes(one, other)
    assert found.dropped
    assert not found.added
    assert call("compare", one, other).stdout == f"{found}\n"
    told = json.loads(call("compare", one, other, "--json").stdout)
    assert (told["links_dropped"], told["links_kept"]) == (len(found.dropped), found.kept)
    assert told["same_inputs"] is True
    apart = call("compare", one, made / "run")
    assert apart.exit_code == 0
    assert "different files" in apart.stderr
    assert call("compare", one, two / "nope").exit_code == 3


def test_a_linked_file_is_written_as_a_workbook(two, tmp_path):
    pytest.importorskip("openpyxl")
    for end in ("xlsx", "parquet"):
        done = call("join", two / "one", "--how", "outer", "-o", tmp_path / f"x.{end}")
        assert done.exit_code == 0, done.output
    book = pd.read_excel(tmp_path / "x.xlsx", dtype=object, keep_default_na=False, na_values=[""])
    table = pd.read_parquet(tmp_path / "x.parquet")
    assert list(book.columns) == list(table.columns)
    for name in table.columns:
        left, right = (
            [
                value.date().isoformat()
                if isinstance(value, dt.datetime)
                else None
                if pd.isna(value) or value == ""
                else value
                for value in column
            ]
            for column in (book[name], table[name])
        )
        exact = name != "link_probability"
        assert left == (right if exact else pytest.approx(right, nan_ok=True)), name
    assert call("join", two / "one", "-o", tmp_path / "x.xlsx").exit_code == 4  # exists


def test_in_a_workbook_text_stays_text_and_nothing_is_cut_off(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    values = ["=1+1", "007", "a\x00b", "+41", "x" * 32_767, None, "2020-01-01"]
    with (tmp_path / "x.xlsx").open("wb") as file:
        writer = WorkbookWriter(file)
        writer.write(pa.table({"=x": values, "n": [1, 2**60, -3, 0, 5, None, 7]}))
        with pytest.raises(bl.SettingsError, match="letters at most"):
            writer.write(pa.table({"=x": ["x" * 32_768], "n": [1]}))
        writer.close()
    sheet = openpyxl.load_workbook(tmp_path / "x.xlsx").active
    rows = list(sheet.iter_rows(values_only=True))
    assert rows[0] == ("=x", "n")
    assert [row[0] for row in rows[1:]] == ["=1+1", "007", "a\ufffdb", *values[3:]]
    assert [row[1] for row in rows[1:]] == [1, str(2**60), -3, 0, 5, None, 7]
    assert {cell.data_type for cell in sheet["A"] if cell.value} == {"s"}  # no formula


def test_columns_of_a_workbook_are_wide_enough_and_dates_are_dates(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    born = ["1961-01-28 00:00:00", "1961-02-31", None, "1899-12-31", *["1990-05-06"] * 26]
    text = ["1961-01-28", *["a"] * 29]
    with (tmp_path / "x.xlsx").open("wb") as file:
        writer = WorkbookWriter(file)
        writer.write(pa.table({"date of birth": born, "t": text, "memo": ["y" * 90] * 30}))
        writer.close()
    sheet = openpyxl.load_workbook(tmp_path / "x.xlsx").active
    days = [cell.value for cell in sheet["A"][1:]]
    assert days[0] == dt.datetime(1961, 1, 28)
    assert days[1:4] == ["1961-02-31", None, "1899-12-31"]
    assert days[4:] == [dt.datetime(1990, 5, 6)] * 26
    assert sheet["A2"].number_format == "yyyy-mm-dd"
    assert sheet["B2"].value == "1961-01-28"
    assert [sheet.column_dimensions[c].width for c in "ABC"] == [21, 12, 40]


def test_without_a_writer_of_workbooks_it_says_so_before_the_work(two, tmp_path, monkeypatch):
    monkeypatch.setattr("bayeslink.runs.workbooks.find_spec", lambda name: None)
    done = call("join", two / "one", "-o", tmp_path / "x.xlsx")
    assert done.exit_code == 2
    assert "bayeslink[excel]" in done.stderr
    assert not (tmp_path / "x.xlsx").exists()
    assert call("join", two / "one", "-o", tmp_path / "x.ods").exit_code == 2
