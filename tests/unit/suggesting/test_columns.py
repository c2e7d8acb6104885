"""Columns that are named without a comparison."""

import json

import pytest
from click.testing import CliRunner

import bayeslink as bl
from bayeslink.cli import main
from bayeslink.suggesting.columns import with_chosen

FEW = {"draws": 40, "tune": 20, "chains": 2}


@pytest.fixture(scope="module")
def files():
    return bl.simulate(300, seed=3)


def test_a_column_gets_the_field_that_suggest_has_for_it(files):
    suggested = {f.columns[0][0]: f for f in bl.suggest(files.a, files.b).fields}
    names = ["gname", "dob", "sex", "postcode"]
    run = bl.link(files.a, files.b, names, **FEW)
    assert [f.name for f in run.settings.fields] == names
    for field in run.settings.fields:
        assert field.settings == suggested[field.name].settings
    assert any("gname (name), dob (date)" in note for note in run.warnings)
    same = bl.link(files.a, files.b, [suggested[name] for name in names], **FEW)
    assert run.links.equals(same.links)


def test_fields_and_columns_of_other_names_go_together(files):
    b = files.b.rename_columns(["Born" if c == "dob" else c for c in files.b.column_names])
    fields, said = with_chosen([bl.exact("sex"), "dob=Born"], files.a, b)
    assert [f.kind for f in fields] == ["exact", "date"]
    assert fields[1].columns == (("dob",), ("Born",))
    assert "dob=Born (date)" in said
    assert with_chosen([bl.exact("sex")], None, None) == ([bl.exact("sex")], None)
    with pytest.raises(bl.InputError, match="no column 'nobody'"):
        bl.link(files.a, files.b, ["nobody"])
    with pytest.raises(bl.SettingsError, match="is no column"):
        bl.link(files.a, files.b, ["a=b=c"])


def test_codes_of_a_named_column_are_recoded_as_suggest_does(files):
    codes = {"male": "1", "female": "2", "m": "1", "f": "2"}
    sexes = [codes.get((x or "").lower()) for x in files.b["sex"].to_pylist()]
    b = files.b.drop_columns(["sex"]).append_column("geschlecht", [sexes])
    suggested = {f.columns[0][0]: f for f in bl.suggest(files.a, b).fields}["sex"]
    fields, said = with_chosen([bl.name("fname"), "dob", "sex=geschlecht"], files.a, b)
    assert fields[2].settings == suggested.settings
    assert "sex=geschlecht (exact, recoded)" in said


def test_a_column_that_tells_nothing_is_compared_as_it_is(files):
    a, b = (t.append_column("k", [["x"] * len(t)]) for t in (files.a, files.b))
    assert with_chosen(["k"], a, b)[0] == [bl.exact("k")]


def test_on_takes_a_column_alone(files, tmp_path):
    bl.write_simulation(files, tmp_path / "f")
    words = ["link", tmp_path / "f/a.csv", tmp_path / "f/b.csv", "--on", "fname",
             "--on", "sex:exact", "--draws", 40, "--tune", 20, "--chains", 2,
             "-o", tmp_path / "out", "-v"]  # fmt: skip
    done = CliRunner().invoke(main, [*map(str, words)])
    assert done.exit_code == 0, done.output
    assert "fname (name)" in done.output
    told = json.loads((tmp_path / "out" / "run.json").read_text())
    assert [f["comparison"] for f in told["fields"]] == ["name", "exact"]
    words = ["link", "--config", tmp_path / "out" / "link.toml", "-o", tmp_path / "again"]
    assert CliRunner().invoke(main, [*map(str, words)]).exit_code == 0
    links = [(tmp_path / out / "links.csv").read_bytes() for out in ("out", "again")]
    assert links[0] == links[1]


@pytest.mark.parametrize(("lacks", "said"), [("B", "fname=NAME_IN_B"), ("A", "NAME_IN_A=fname")])
def test_a_column_that_one_file_lacks_is_told_with_how_to_name_another(lacks, said):
    files = bl.simulate(40, seed=1)
    tables = {"A": files.a, "B": files.b}
    tables[lacks] = tables[lacks].drop_columns(["fname"])
    with pytest.raises(bl.InputError, match=f"If {lacks} calls it otherwise.*--on {said}"):
        bl.link(*tables.values(), ["fname"], point=True)
