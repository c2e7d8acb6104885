"""link.toml gives back the settings it was made from, whatever they hold, wherever it is read."""

import json
import os
import shutil
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

import bayeslink as bl
from bayeslink.cli import main
from bayeslink.comparing.catalogue import COMPARISONS
from bayeslink.comparing.field_checks import NORMALISATIONS
from bayeslink.comparing.parsing import fields_from
from bayeslink.errors import SettingsError
from bayeslink.review.material import material_of
from bayeslink.runs.link_toml import dump, load
from bayeslink.settings import LinkSettings, reading_entries

# --- from settings to the file and back -------------------------------------------------------

ODD = ['"', "'", "\\", "\n", "\r\n", "\t", "\x00", "\x1b", "\x7f", "\x85", "\u2028", "#", "=", "é",
       "東京", "🙂", "\ufeff", "\u202e", " ", "'''", '"""', "[a]", "a.b"]  # fmt: skip
TEXT = st.lists(st.sampled_from(ODD) | st.characters(exclude_categories=["Cs"]), max_size=5).map(
    "".join
)
NAME = TEXT.filter(bool)
FILE = NAME.filter(lambda text: not {"\0", "/"} & {*text} and text not in (".", ".."))
AS = (tuple, list, np.array, pd.Series, pa.array)


def numbers(low, high, *, size, falling=False, first=None):
    """Different numbers in order, in one of many kinds of array; some begin with `first`."""
    values = st.floats(low, high, exclude_min=True, exclude_max=True, allow_subnormal=False)
    listed = st.lists(values, min_size=1, max_size=size, unique=True)
    listed = listed.map(lambda found: sorted(found, reverse=falling))
    if first is not None:
        listed = listed | listed.map(lambda found: [first, *found])
    return st.tuples(st.sampled_from(AS), listed).map(lambda pair: pair[0](pair[1]))


def priors(k):
    some = st.lists(st.floats(0.01, 1e6), min_size=k, max_size=k)
    return st.tuples(st.sampled_from(AS), some).map(lambda pair: pair[0](pair[1]))


FLAG = st.booleans() | st.booleans().map(np.bool_)
FORMATS = (None, "", "%d/%m/%Y", "%Y%m%d", '%d "%m"\n%Y', "%Y-%j")
DATES = {
    "format": st.sampled_from(FORMATS) | st.tuples(*[st.sampled_from(FORMATS)] * 2),
    "swapped": FLAG,
    "one_digit": FLAG,
    "valid": st.tuples(st.dates(), st.dates()).map(lambda days: [f"{day}" for day in sorted(days)]),
}
BOUNDS = st.tuples(st.none() | st.floats(-9, 9), st.none() | st.floats(10, 99))
OWN = {
    "exact": {},
    "levenshtein": {"cuts": numbers(0, 1, size=3, first=0)},
    "damerau_levenshtein": {"cuts": numbers(0, 1, size=3, first=0)},
    "jaro_winkler": {"cuts": numbers(0, 1, size=3, falling=True, first=1)},
    "tokens": {"cuts": numbers(0, 1, size=3, falling=True, first=1)},
    "numeric": {"cuts": numbers(0, 9, size=3, first=0), "relative": FLAG, "valid": BOUNDS},
    "date": {"cuts": numbers(0, 99, size=3, first=0), **DATES},
    "geo": {"cuts": numbers(0, 99, size=3), "longitude": NAME},
    "text": {"cuts": numbers(0.1, 0.9, size=3, falling=True), "codes": FLAG},
    "company": {"cuts": numbers(0.1, 0.9, size=3, falling=True)},
    "name": {"nicknames": st.dictionaries(NAME, st.lists(NAME, min_size=1), min_size=1)},
    "phone": {},
    "postcode": {},
}
FROM_DATA = ("text", "company")  # whose levels are never known before
PLACES = st.tuples(st.tuples(NAME, NAME), st.tuples(NAME, NAME))
COMMON = {
    "name": NAME | NAME.map(np.str_),
    "normalise": st.lists(st.sampled_from(NORMALISATIONS)) | st.sampled_from(NORMALISATIONS),
    "missing": st.lists(TEXT) | TEXT | st.lists(TEXT).map(lambda words: np.array(words, object)),
}


@st.composite
def fields(draw):
    """A field of any comparison, with any of its settings."""
    kind = draw(st.sampled_from([*OWN]))
    optional = {
        **OWN[kind],
        **COMMON,
        "columns": PLACES if kind == "geo" else st.tuples(NAME, NAME),
    }
    if kind in ("exact", "numeric", "date"):
        optional["bands"] = numbers(0, 1, size=2, falling=True)
    given = draw(st.fixed_dictionaries({}, optional=optional))
    column = draw(NAME)
    made = [column, given.pop("longitude", "longitude")] if kind == "geo" else [column]
    n_levels = COMPARISONS[kind](*made, **given).n_levels
    known = "cuts" in given if kind in ("numeric", "date") else kind not in FROM_DATA
    for name in draw(st.sets(st.sampled_from(["m_prior", "u_prior"]))) if known else ():
        given[name] = draw(priors(n_levels))
    return COMPARISONS[kind](*made, **given)


READ = st.builds(
    bl.ReadOptions,
    encoding=st.sampled_from([None, "cp1252", "utf-16"]),
    delimiter=st.sampled_from([None, ";", "\t"]),
    skip_lines=st.integers(0, 3) | st.integers(0, 3).map(np.int64),
    quarantine=st.none() | FILE | FILE.map(Path),
    missing=st.lists(TEXT) | st.lists(TEXT).map(tuple),
    table=st.none() | NAME,
)
NUMBER = st.floats(0.01, 99) | st.integers(1, 99)
NUMBER = NUMBER | NUMBER.map(np.float64) | st.integers(1, 99).map(np.int32)
COUNT = st.integers(1, 10**6) | st.integers(1, 10**6).map(np.int64)
SETTINGS = st.fixed_dictionaries(
    {
        "a": st.none() | FILE,
        "b": FILE | st.tuples(FILE, FILE).map("/".join),
        "id": st.none() | NAME | st.tuples(NAME, NAME) | st.tuples(NAME, st.none()),
        "block": st.lists(NAME | st.tuples(NAME, NAME), max_size=2),
        "fields": st.lists(fields(), min_size=1, max_size=2),
        "prior": st.builds(bl.Penalty, NUMBER) | st.builds(bl.Overlap, NUMBER, NUMBER),
        "read": st.tuples(READ, READ),
        "structure": st.sampled_from(["dependent", "independent"]),
        "point": st.booleans(),
        "w0": st.none() | st.sampled_from([-np.inf, 0.0, 0]) | st.floats(-9, 9).map(np.float64),
        "restricted": st.booleans(),
        "draws": COUNT,
        "tune": st.just(0) | COUNT,
        "chains": COUNT,
        "loss": st.none() | st.builds(bl.Loss, NUMBER, NUMBER, NUMBER, st.none() | NUMBER),
        "seed": st.integers(0, 2**63 - 1),
    }
)


def is_plain(value):
    if type(value) is dict:
        return all(type(key) is str for key in value) and all(map(is_plain, value.values()))
    if type(value) is list:
        return all(map(is_plain, value))
    return type(value) in (str, int, float, bool)


@hypothesis_settings(max_examples=150, deadline=None, derandomize=True)
@given(field=fields())
def test_settings_of_a_field_are_plain_and_make_it_again(field):
    assert all(map(is_plain, field.settings.values()))
    assert fields_from(field.settings) == [field]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Where a run began, and where its link.toml lies."""
    folder = tmp_path_factory.mktemp("folders")
    (folder / "here").mkdir()
    (folder / "out" / "run").mkdir(parents=True)
    return folder / "here", folder / "out" / "run"


@hypothesis_settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(settings=SETTINGS)
def test_link_toml_gives_back_what_it_was_made_from(folders, settings):
    here, out = folders
    given = LinkSettings.of(**settings, started_in=str(here))
    text = dump(given, out)
    (out / "link.toml").write_text(text, "utf-8")
    found = LinkSettings.of(**load(out / "link.toml"))

    def there(path):
        return path if path is None else os.path.join(here, path)

    read = tuple(
        bl.ReadOptions(
            quarantine=there(side.quarantine),
            **{key: getattr(side, key) for key in ("encoding", "delimiter", "skip_lines")},
            **{key: getattr(side, key) for key in ("missing", "table")},
        )
        for side in settings["read"]
    )
    files = {"a": there(settings["a"]), "b": there(settings["b"])}
    assert found == replace(given, **files, read=read, started_in=".")
    again = replace(found, started_in=os.getcwd())
    assert dump(again, out) == text  # so a repeat of a repeat has the same settings, too


def test_a_file_named_by_text_and_by_path_is_one():
    read = [bl.ReadOptions(quarantine=name) for name in ("aside.txt", Path("aside.txt"))]
    assert reading_entries(read)["quarantine"] == "aside.txt"


def test_a_file_people_can_read():
    read = bl.ReadOptions(missing=["NA"]), bl.ReadOptions(missing=["999", "?"], encoding="cp1252")
    field = bl.date("dob", cuts=(0, 30), format=("%d/%m/%Y", None), m_prior=np.arange(1, 7))
    given = {"a": None, "b": "b.csv", "id": None, "block": ["sex", ("x", "y")], "fields": [field]}
    given |= {"prior": bl.Overlap(), "read": read, "point": False, "w0": None, "draws": 9}
    given |= {"tune": 0, "chains": 2, "loss": bl.Loss(reject=0.1), "seed": 1}
    given |= {"structure": "independent", "restricted": True}
    assert (
        dump(LinkSettings.of(**given))
        == """\
b = "b.csv"
id = [] # the rows are numbered
block = ["sex", ["x", "y"]]
structure = "independent"
restricted = true
draws = 9
tune = 0
chains = 2
seed = 1
encoding = ["", "cp1252"]
missing = {a = ["NA"], b = ["999", "?"]}
overlap = [1.0, 1.0]
loss = {false_nonlink = 1.0, false_link = 1.0, wrong_link = 2.0, reject = 0.1}

[[fields]]
column = "dob"
compare = "date"
cuts = [0.0, 30.0]
format = ["%d/%m/%Y", ""]
swapped = true
one_digit = true
exchanged = true
valid = ["0001-01-01", "2099-12-31"]
m_prior = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
"""
    )


WRONG = {
    'missing = {c = ["NA"]}': "missing takes texts",
    "missing = {a = 3}": "missing takes texts",
    "missing = {a = {NA = 1}}": "missing takes texts",
    'missing = ["NA", 999]': "missing takes texts",
    'encoding = ["cp1252"]': "encoding takes one value, or one for A and one for B",
    'encoding = ["cp1252", 3]': "encoding must be text",
    "skip_lines = [1, true]": "skip_lines must be a whole number",
    'id = ["a", "b", "c"]': "id takes one column name",
    "id = [1]": "id takes one column name",
    "block = [1]": "block takes one column name",
    "overlap = [1]": "overlap takes two numbers",
    'loss = {reject = "x"}': "reject must be",
    "structure = true": "structure must be text",
    "restricted = 1": "restricted must be true or false",
}
WRONG_OF_A_FIELD = {
    'compare = "date"\nformat = ["%d/%m/%Y"]': "one format, or one for A and one for B",
    'compare = "date"\nformat = 3': "no format of a whole date",
    'compare = "date"\nvalid = 3': "valid takes",
    'compare = "date"\nswapped = "no"': "swapped must be true or false",
    'compare = "numeric"\nrelative = 1': "relative must be true or false",
    'compare = "numeric"\ncuts = "0"': "cuts must be",
    'compare = "geo"\nlongitude = 3': "longitude must be",
    "name = 3": "must be named by text",
    'columns = "ab"': "columns takes the name in A and the name in B",
    "columns = 3": "columns takes the name in A and the name in B",
    'columns = ["a", 3]': "columns takes the name in A and the name in B",
    "bands = 0.1": "bands must be",
    "m_prior = 3": "m_prior takes",
    "normalise = 3": "unknown normalisation",
    "missing_ = 3": "unknown setting",
}


@pytest.mark.parametrize("line", [*WRONG, *WRONG_OF_A_FIELD])
def test_wrong_types_are_refused_in_one_line(line, tmp_path):
    lines = ['a = "a"', 'b = "b"', 'output = "o"', "[[fields]]", 'column = "x"']
    lines.insert(0 if line in WRONG else 5, line)
    (tmp_path / "link.toml").write_text("\n".join(lines))
    done = CliRunner().invoke(main, ["link", "--config", str(tmp_path / "link.toml")])
    assert done.exit_code == 2, done.output
    assert {**WRONG, **WRONG_OF_A_FIELD}[line] in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("setting", ["column", "name", "missing", "columns", "format"])
def test_text_that_no_file_can_hold_is_refused_before_the_run(setting):
    half = "x\ud800%d%m%Y"
    given = {"columns": (half, "y")} if setting == "columns" else {setting: half}
    with pytest.raises(SettingsError):
        bl.date(**{"column": "x", **given})


def test_a_python_function_cannot_be_repeated_from_a_file(tmp_path):
    files = bl.simulate(50, seed=1)
    same = bl.custom("gname", lambda x, y: 1 + (x == y))
    bl.link(files.a, files.b, [same, bl.exact("fname")], point=True).save(tmp_path / "run")
    written = (tmp_path / "run" / "link.toml").read_text()
    assert "# a Python function: this field can only be given from Python" in written
    with pytest.raises(SettingsError, match="custom only from Python"):
        LinkSettings.of(**load(tmp_path / "run" / "link.toml"))


# --- from other working directories -----------------------------------------------------------

FIELDS = [
    bl.levenshtein("gname", m_prior=np.array([1, 2, 5, 10]), cuts=np.array([0, 0.25, 0.5])),
    bl.levenshtein("fname", bands=pd.Series([0.01])),
    bl.date("dob", format=("%d/%m/%Y", None)),
    bl.exact("occup"),
]
READ_APART = (
    bl.ReadOptions(missing=["NA"], delimiter=";"),
    bl.ReadOptions(missing=("999",), skip_lines=np.int64(1), quarantine="short.txt"),
)
SHORT = {"draws": 40, "tune": 20, "chains": 2}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Two files that are read differently, linked by relative paths; then we go elsewhere."""
    folder = tmp_path / "project"
    (folder / "files").mkdir(parents=True)
    files = bl.simulate(120, errors=2, seed=5)
    a, b = files.a.to_pandas(), files.b.to_pandas()
    a["dob"] = [None if day is None else "/".join(day.split("-")[::-1]) for day in a["dob"]]
    a.loc[::4, "occup"], b.loc[::4, "occup"] = "NA", "999"
    a.to_csv(folder / "files" / "a.csv", sep=";", index=False, na_rep="NA")
    text = "an extract\n" + b.to_csv(index=False, na_rep="999") + "too,short\n"
    (folder / "files" / "b.csv").write_text(text)
    monkeypatch.chdir(folder)
    run = bl.link("files/a.csv", "files/b.csv", FIELDS, read=READ_APART, **SHORT)
    run.save("runs/one")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    return folder


def cli(*arguments, code=0):
    done = CliRunner().invoke(main, [*map(str, arguments)])
    assert done.exit_code == code, done.output
    return done.stdout


def links(folder):
    return pq.read_table(folder / "links.parquet")


def outsider(folder):
    """A pair that is no candidate, so that to explain it takes the files."""
    pairs = pq.read_table(folder / "pairs.parquet").to_pylist()
    known = {(row["id_a"], row["id_b"]) for row in pairs}
    return next((a, b) for a, _ in known for _, b in known if (a, b) not in known)


def test_a_run_repeats_itself_from_any_directory(project, tmp_path):
    one = project / "runs" / "one"
    paths = {k: v for k, v in tomllib.loads((one / "link.toml").read_text()).items() if k in "ab"}
    assert paths == {"a": "../../files/a.csv", "b": "../../files/b.csv"}
    cli("link", "--config", one / "link.toml", "-o", tmp_path / "elsewhere" / "two")
    assert links(tmp_path / "elsewhere" / "two").equals(links(one))
    assert len(links(one)) > 30
    cli("link", "--config", "two/link.toml", "-o", "three")
    for name in ("links.parquet", "draws.parquet", "link.toml"):
        files = [tmp_path / "elsewhere" / run / name for run in ("two", "three")]
        assert files[0].read_bytes() == files[1].read_bytes()


def test_what_is_missing_in_each_file_matters(project):
    """Else the test above could not fail."""
    read = [bl.ReadOptions(delimiter=";"), bl.ReadOptions(skip_lines=1, quarantine="aside.txt")]
    found = []
    for declared in (["NA"], ["NA"]), (["NA"], ["999"]), (["999"], ["NA"]):
        sides = [
            bl.ReadOptions(
                missing=words,
                delimiter=side.delimiter,
                skip_lines=side.skip_lines,
                quarantine=side.quarantine,
            )
            for side, words in zip(read, declared, strict=True)
        ]
        a, b = project / "files" / "a.csv", project / "files" / "b.csv"
        run = bl.link(a, b, FIELDS[:2] + FIELDS[3:], read=tuple(sides), **SHORT)
        found.append(run.table)
    assert not found[0].equals(found[1])
    assert not found[1].equals(found[2])


def test_run_and_files_may_move_together(project, tmp_path, monkeypatch):
    before = links(project / "runs" / "one")
    moved = tmp_path / "some" / "where" / "else"
    shutil.move(project, moved)
    one = moved / "runs" / "one"
    cli("report", one)
    page = (one / "report.html").read_text()
    assert "not at hand" not in page
    assert "input file has changed" not in page
    explained = json.loads(cli("explain", one, *outsider(one), "--json"))
    assert all(evidence["values"] for evidence in explained["evidence"][: len(FIELDS)])
    assert len(material_of(bl.open_run(one)).records[0]) == 120
    cli("link", "--config", one / "link.toml", "-o", "two")
    assert links(Path("two")).equals(before)
    monkeypatch.chdir(one)  # and from the run's own directory
    assert len(material_of(bl.open_run(Path())).records[1]) == 120
    cli("link", "--config", "link.toml", "-o", "../three")
    assert links(moved / "runs" / "three").equals(before)


def test_a_hand_written_file_is_read_from_its_own_folder(project, tmp_path):
    (project / "my.toml").write_text(
        'a = "files/a.csv"\nb = "files/b.csv"\noutput = "mine"\ndelimiter = [";", ""]\n'
        'skip_lines = [0, 1]\nmissing = {a = ["NA"], b = ["999"]}\nquarantine = ["", "q.txt"]\n'
        'point = true\n[[fields]]\ncolumn = "gname"\n[[fields]]\ncolumn = "fname"\n'
    )
    cli("link", "--config", project / "my.toml")
    assert (project / "mine" / "links.csv").exists()
    assert (project / "q.txt").read_text().endswith("\ttoo,short\n")
    assert not [*(tmp_path / "elsewhere").iterdir()]


def test_saved_after_the_working_directory_has_changed(project, tmp_path, monkeypatch):
    monkeypatch.chdir(project / "files")
    run = bl.link("a.csv", Path("b.csv"), FIELDS, read=READ_APART, point=True)
    monkeypatch.chdir(tmp_path)
    run.save("out")
    assert run.settings.a == "a.csv"
    found = load(tmp_path / "out" / "link.toml")
    assert found["a"] == str(project / "files" / "a.csv")
    assert found["quarantine"] == ["", str(project / "files" / "short.txt")]


def test_symbolic_links_lead_to_the_same_files(project, tmp_path, monkeypatch):
    """Beyond a link, ".." is not the way back."""
    monkeypatch.chdir(project)
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "a.csv").write_text("another file")
    shutil.copytree("files", tmp_path / "far" / "away")
    os.symlink(tmp_path / "far" / "away", "away")
    os.symlink(tmp_path / "far", "runs/far")
    given = {"a": "away/../a.csv", "b": "away/b.csv"}
    settings = {"id": "id", "block": [], "fields": FIELDS, "prior": bl.Overlap(), "loss": None}
    settings |= {"read": (bl.ReadOptions(),) * 2, "started_in": os.getcwd(), **given}
    settings |= {"point": True, "w0": None, "draws": 1, "tune": 1, "chains": 1, "seed": 1}
    settings = LinkSettings.of(**settings, structure="dependent", restricted=False)
    for folder in ("runs/one", "runs/far"):
        there = os.path.realpath(folder)
        Path(folder, "again.toml").write_text(dump(settings, there))
        monkeypatch.chdir(tmp_path)
        found = load(project / folder / "again.toml")
        monkeypatch.chdir(project)
        for key, path in given.items():
            assert os.path.samefile(found[key], path), (folder, key)


def test_a_path_of_stray_bytes_is_told_in_a_comment(project, tmp_path):
    """The run is saved; the files are then to be named on the command line."""
    odd = tmp_path / os.fsdecode(b"latin-\xe9")
    shutil.move(project / "files", odd)
    run = bl.link(odd / "a.csv", odd / "b.csv", FIELDS, read=READ_APART, point=True)
    run.save(tmp_path / "out")
    written = (tmp_path / "out" / "link.toml").read_text("utf-8")
    assert '# a = "../latin-\\\\udce9/a.csv" is not UTF-8' in written
    assert not {"a", "b"} & tomllib.loads(written).keys()
    no_link = run.table["id_a"][0].as_py(), run.table["id_b"][1].as_py()
    told = CliRunner().invoke(main, ["explain", str(tmp_path / "out"), *no_link])
    assert told.exit_code == 3
    assert "not UTF-8" in told.stderr
    cli("link", "--config", tmp_path / "out" / "link.toml", odd / "a.csv", odd / "b.csv", "-o", "o")
    assert links(Path("o")).equals(run.table)
    inside = odd / "run"  # from where the way to the files has no such bytes
    run.save(inside)
    cli("link", "--config", inside / "link.toml", "-o", "p")
    assert links(Path("p")).equals(run.table)


# --- what is set aside ------------------------------------------------------------------------


def test_rows_set_aside_are_in_the_way_of_no_repeat(project):
    aside, one = project / "short.txt", project / "runs" / "one"
    before = aside.read_bytes()
    cli("link", "--config", one / "link.toml", "-o", "two")
    assert aside.read_bytes() == before
    aside.write_text("of something else")
    cli("link", "--config", one / "link.toml", "-o", "three", code=4)
    assert aside.read_text() == "of something else"
