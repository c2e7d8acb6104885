"""Columns and ids that are named, or not: what is found, and what is said."""

import json

import pandas as pd
import pytest
from click.testing import CliRunner

import bayeslink as bl
from bayeslink.cli import main
from bayeslink.errors import InputError

QUICK = {"draws": 50, "tune": 50, "chains": 2}
FLAGS = ("--draws", 50, "--tune", 50, "--chains", 2)


@pytest.fixture
def folder(tmp_path):
    files = bl.simulate(60, seed=3)
    a, b = (pd.DataFrame(t.to_pydict()) for t in (files.a, files.b))
    names = {"id": "person_no", "fname": "Surname"}, {"id": "rec_id", "fname": "last_name"}
    for side, table, new in zip("ab", (a, b), names, strict=True):
        table.rename(columns=new).to_csv(tmp_path / f"{side}.csv", index=False)
    a.loc[3, "id"] = a.loc[1, "id"]
    a.rename(columns=names[0]).to_csv(tmp_path / "twice.csv", index=False)
    return tmp_path


def call(*args):
    return CliRunner().invoke(main, list(map(str, args)))


def test_with_fields_the_ids_are_found_as_without(folder):
    on = ("--on", "Surname=last_name", "--on", "gname", "--on", "dob:date")
    out = call("link", folder / "a.csv", folder / "b.csv", *on, *FLAGS, "-o", folder / "out")
    assert out.exit_code == 0, out.output
    assert "person_no in A, rec_id in B" in out.output
    assert "--id" in out.output
    links = pd.read_csv(folder / "out" / "links.csv")
    assert links.id_a.str.startswith("A").all()
    again = call("link", "--config", folder / "out" / "link.toml", "-o", folder / "again")
    assert again.exit_code == 0
    assert "person_no in A" not in again.output  # by then they are settings


def test_an_id_that_is_named_must_be_there(folder):
    fields = [bl.name("gname"), bl.date("dob")]
    with pytest.raises(InputError, match=r"no column 'id'.*--id \(id=\).*--no-id \(id=None\)"):
        bl.link(folder / "a.csv", folder / "b.csv", fields, id="id")
    run = bl.link(folder / "a.csv", folder / "b.csv", fields, **QUICK)
    assert run.settings.id == ("person_no", "rec_id")


def test_a_column_of_another_name_in_b_is_named(folder):
    for on in ("Surname", "Surname:name"):
        out = call("link", folder / "a.csv", folder / "b.csv", "--on", on, "-o", folder / "out")
        assert out.exit_code == 3
        assert "b.csv: there is no column 'Surname'" in out.output
        assert "'last_name'" in out.output
        assert "--on Surname=last_name" in out.output
        assert "header" not in out.output
        assert "Did you mean" not in out.output


def test_a_first_line_that_may_be_a_person_is_not_shown(folder):
    (folder / "bare.csv").write_text("Anna,Smith,Leeds\nBert,Jones,York\nCarl,Brown,Hull\n")
    out = call("link", folder / "a.csv", folder / "bare.csv", "--on", "Surname", "-o", "out")
    assert out.exit_code == 3
    assert "no header" in out.output
    assert "Anna" not in out.output


def test_ids_that_repeat_are_told_with_their_lines(folder):
    out = call("link", folder / "twice.csv", folder / "b.csv", *FLAGS, "-o", folder / "out")
    assert out.exit_code == 0, out.output
    said = "column 'person_no' of A repeats ids: 1 records have that of an earlier one, first on "
    assert out.output.count(f"{said}line 3 and line 5") == 1
    warnings = json.loads((folder / "out" / "run.json").read_text())["warnings"]
    assert any(said in w for w in warnings)
    run = bl.link(folder / "twice.csv", folder / "b.csv", **QUICK)
    assert any(said in w for w in run.warnings)
    drafted = call("init", folder / "twice.csv", folder / "b.csv", "-o", folder / "link.toml")
    assert said in drafted.output
