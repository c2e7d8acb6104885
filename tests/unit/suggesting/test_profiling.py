"""What is in files, told before they are linked."""

import json
from collections import Counter

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import bayeslink as bl
from bayeslink.cli import main
from bayeslink.suggesting.profiling import shape_of
from tests.unit.suggesting.realistic import hospital_and_deaths


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    a, b, _ = hospital_and_deaths(tmp_path_factory.mktemp("files"), 1000, 200, 3)
    return a, b


@pytest.fixture(scope="module")
def profiles(files):
    return bl.profile(*files, read=(bl.ReadOptions(encoding="latin-1"), bl.ReadOptions()))


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        ("31/12/1980", "99/99/9999"),
        ("SW1A 2AB", "AA9A 9AA"),
        ("Anne-Marie O'Neil", "Aa…-Aa… A'Aa…"),
        ("MÜLLER", "A…"),
        ("x\ty", "a… a…"),
        ("4" * 30, "9…"),
    ],
)
def test_a_shape_tells_how_a_value_is_written_and_not_what_it_says(value, shape):
    assert shape_of(value) == shape


def test_columns_are_told_as_they_are(profiles, files):
    a, b = ({c.name: c for c in file.columns} for file in profiles.files)
    assert a["Né(e) le"].partner == "date_of_birth"
    assert b["date_of_birth"].partner == "Né(e) le"
    assert a["Né(e) le"].holds == "date (%d/%m/%Y)"
    assert a["Date d'entrée"].holds == "date of an event (%d/%m/%Y)"
    assert a["Date d'entrée"].partner is None
    assert a["IPP"].holds == "row numbers"
    assert a["Nom"].missing[0][0] == "NR"
    table = pa.csv.read_csv(
        files[0],
        pa.csv.ReadOptions(encoding="latin-1"),
        pa.csv.ParseOptions(delimiter=";"),
        pa.csv.ConvertOptions(column_types={"Nom": "string"}, strings_can_be_null=False),
    )
    names = [name for name in table["Nom"].to_pylist() if name not in ("", "NR")]
    assert a["Nom"].complete == pytest.approx(len(names) / 1000)
    assert a["Nom"].distinct == len({*names})
    alike = sum(n * (n - 1) for n in Counter(name.upper() for name in names).values())
    assert a["Nom"].chance == pytest.approx(alike / (len(names) * (len(names) - 1)), rel=0.05)


def test_no_value_of_a_person_is_shown_unless_asked(profiles, files):
    said = f"{profiles}{profiles._repr_html_()}{json.dumps(profiles.as_dict())}"
    assert "99/99/9999" in said
    assert not [c.values for file in profiles.files for c in file.columns if c.values]
    asked = bl.profile(files[1], values=True)
    ((value, share), *_) = next(c.values for c in asked.files[0].columns if c.name == "surname")
    assert value in str(asked)
    assert value not in said
    assert 0 < share < 0.2


def test_of_a_sample_the_counts_are_those_of_all_rows():
    n = 30_000
    table = pa.table({"k": pa.array([str(i) for i in range(n)], pa.large_string())})
    table = table.append_column("x", pa.array([None] * 100 + ["a", "b"] * ((n - 100) // 2)))
    (file,) = bl.profile(table).files
    k, x = file.columns
    assert file.sampled
    assert (k.distinct, x.distinct) == (n, 2)
    assert x.complete == (n - 100) / n


def test_the_command(files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(*words):
        done = CliRunner().invoke(main, ["profile", *map(str, words)])
        return done.exit_code, done.output

    both = [*files, "--encoding", "latin-1", "--encoding", "utf-8"]
    code, said = run(*both)
    assert code == 0
    assert "Looks missing in Nom: 'NR'" in said
    assert run(*both, "-o", "p.html") == (0, "p.html\n")
    page = (tmp_path / "p.html").read_text("utf-8")
    assert "<title>What is in a.csv and b.csv</title>" in page
    assert str(files[0].parent) not in page
    assert run(*both, "-o", "p.html")[0] == 4
    assert run(*both, "-o", "p.html", "--force", "-q") == (0, "")
    assert len(json.loads(run(*both, "--json")[1])["files"]) == 2
    assert run("nowhere.csv")[0] == 3


def test_files_as_people_have_them(tmp_path):
    pq.write_table(pa.table({"only": pa.nulls(3, pa.string()), "n": [1, 2, 3]}), tmp_path / "x.pq")
    profiles = bl.profile(tmp_path / "x.pq")
    only, n = profiles.files[0].columns
    assert (only.holds, only.complete, only.distinct) == ("empty", 0, 0)
    assert n.complete == 1
    assert profiles.cells(0, only)[2:5] == ["0 %", "0", "–"]  # nothing to be alike in
    assert profiles.cells(0, n)[5] == "9 (100 %)"
    assert bl.plots.completeness(profiles).alt.startswith("x.pq, only: 0 %")


def test_one_record_is_no_id_column():
    (column,) = bl.profile(pa.table({"x": ["a"]})).files[0].columns
    assert column.holds == "constant"
