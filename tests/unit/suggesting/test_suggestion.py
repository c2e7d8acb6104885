"""Proposals: columns paired, fields chosen, columns left out with a reason, link.toml, the CLI."""

import csv
import tomllib

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from click.testing import CliRunner

import bayeslink as bl
from bayeslink.cli import main
from bayeslink.engines.input_checks import repeated_records
from bayeslink.errors import InputError
from bayeslink.runs.link_toml import load
from bayeslink.suggesting.column_names import thing
from tests.messy import write_messy_files


@pytest.fixture(scope="module")
def files():
    return bl.simulate(800, seed=3)


def frame(n=300, seed=0, **columns):
    """People with an id and a surname of their own, and the columns given."""
    rng = np.random.default_rng(seed)
    names = [f"{a}{b}" for a in "BCDFGHKLMN" for b in ("arson", "ilton", "urley", "ensen", "okes")]
    base = {"id": [f"R{k:05d}" for k in range(n)], "surname": rng.choice(names, n).tolist()}
    return pa.table({**base, **columns})


def kinds(suggestion):
    return {field.name: field.kind for field in suggestion.fields}


def left_out(suggestion):
    return {(left.file, left.column): left.reason for left in suggestion.left_out}


def test_simulated_files_get_the_fields_a_statistician_would_take(files):
    found = bl.suggest(files.a, files.b)
    assert kinds(found) == {
        "gname": "name", "fname": "name", "sex": "exact", "dob": "date", "occup": "exact",
        "postcode": "postcode", "street": "address",
    }  # fmt: skip
    assert found.id == "id"
    assert "dob" in left_out(found)["A", "age"]
    assert found.grade.word == "good"
    assert found.grade.chance < found.grade.without_strongest


def test_every_kind_of_table_gives_the_same(files, tmp_path):
    bl.write_simulation(files, tmp_path / "files")
    wanted = str(bl.suggest(files.a, files.b)).split("\n", 1)[1]
    for a, b in (
        (files.a.to_pandas(), files.b.to_pandas()),
        (pl.from_arrow(files.a), pl.from_arrow(files.b)),
        (tmp_path / "files" / "a.csv", str(tmp_path / "files" / "b.csv")),
    ):
        assert str(bl.suggest(a, b)).split("\n", 1)[1] == wanted


def test_columns_of_other_names_are_paired_by_name_and_by_values():
    rng = np.random.default_rng(1)
    phones = [f"07{k:09d}" for k in rng.integers(0, 10**9, 300)]
    a = frame(Phone_No=phones, DOB=["01/02/1980", "30/11/1975", "17/05/1991"] * 100)
    b = frame(
        kontakt=[f"+44 {p[1:]}" for p in phones],
        birth_date=["1980-02-01", "1975-11-30", "1991-05-17"] * 100,
    )
    found = {f.name: f for f in bl.suggest(a, b).fields}
    assert found["Phone_No"].columns == (("Phone_No",), ("kontakt",))
    assert found["DOB"].columns == (("DOB",), ("birth_date",))
    assert found["DOB"].settings["format"] == ["%d/%m/%Y", "%Y-%m-%d"]


def test_born_is_a_birth_date_and_a_street_goes_with_an_address():
    rng = np.random.default_rng(2)
    days = [f"19{k % 90 + 10}-{k % 12 + 1:02}-{k % 28 + 1:02}" for k in range(300)]
    streets = [
        f"{k} {name} Road" for k, name in zip(rng.integers(1, 99, 300), ["Hill"] * 300, strict=True)
    ]
    a = frame(Born=["/".join(reversed(day.split("-"))) for day in days], Street=streets)
    b = frame(dob=days[::-1], address=[f"{street}, Flat 2" for street in streets])
    found = {f.name: (f.kind, f.columns) for f in bl.suggest(a, b).fields}
    assert found["Born"] == ("date", (("Born",), ("dob",)))
    assert found["Street"] == ("address", (("Street",), ("address",)))
    b = frame(dob=days, house_number=["7"] * 300, street=streets, address=streets)
    assert "Street" in {f.name for f in bl.suggest(a, b).fields}


@pytest.mark.parametrize("name", ["Geb.-Datum", "Geburtstag", "GEBDAT"])
def test_a_birth_date_is_known_by_its_german_names(name):
    assert thing(name) == "birth date"


def test_a_title_above_the_header_is_hinted_at(tmp_path):
    (tmp_path / "a.csv").write_text("Staff of May\n\nid;surname\n1;Hill\n2;Moor\n")
    (tmp_path / "b.csv").write_text("id,surname\nx,Hill\ny,Moor\n")
    with pytest.raises(InputError, match=r"A has one column only: .* --skip-lines"):
        bl.suggest(tmp_path / "a.csv", tmp_path / "b.csv")


def test_columns_about_someone_else_are_not_paired():
    names = ["Anna", "John", "Mary", "Peter", "Emma", "Oliver"] * 50
    found = bl.suggest(frame(mother_first_name=names), frame(first_name=names))
    assert left_out(found)["A", "mother_first_name"] == "B has no such column"


def test_a_full_name_is_split_where_first_and_last_name_stand_apart():
    rng = np.random.default_rng(4)
    given = rng.choice(["Anna", "John", "Mary", "Peter", "Emma", "Ruth", "Paul", "David"], 200)
    family = rng.choice([f"{x}{y}" for x in "BCDFG" for y in ("arson", "ilton", "oke")], 200)
    full = [f"{g} {f}" for g, f in zip(given, family, strict=True)]
    born = [f"19{k % 70 + 10}-0{k % 9 + 1}-1{k % 7}" for k in range(200)]
    a = pa.table({"Name": full, "dob": born})
    b = pa.table({"first_name": given, "last_name": family, "dob": born})
    found = bl.suggest(a, b)
    fields = {f.name: f for f in found.fields}
    assert {*fields} == {"first_name", "last_name", "dob"}
    assert fields["last_name"].columns == (("Name",), ("last_name",))
    assert fields["last_name"].settings["part"] == ["family", ""]
    assert "Name = first_name: name (given name in it)" in "\n".join(found.explained())
    turned = {f.name: f.settings.get("part") for f in bl.suggest(b, a).fields}
    assert turned == {"first_name": ["", "given"], "last_name": ["", "family"], "dob": None}


def test_what_is_said_twice_is_compared_once():
    rng = np.random.default_rng(2)
    given = rng.choice(["Anna", "John", "Mary", "Peter"], 300)
    family = rng.choice(["Smith", "Jones", "Brown", "Hill"], 300)
    year = rng.integers(1930, 2010, 300)
    table = pa.table(
        {
            "full_name": [f"{g} {f}" for g, f in zip(given, family, strict=True)],
            "first_name": given,
            "surname": family,
            "dob": [f"{y}-0{k % 9 + 1}-1{k % 7}" for k, y in enumerate(year)],
            "age": [str(2020 - y) for y in year],
            "birth_year": [str(y) for y in year],
        }
    )
    found = bl.suggest(table, table.slice(0))
    assert set(kinds(found)) == {"first_name", "surname", "dob"}
    reasons = left_out(found)
    assert "made of first_name and surname" in reasons["A", "full_name"]
    assert "dob" in reasons["B", "age"]
    assert "dob" in reasons["A", "birth_year"]


def test_columns_that_tell_nothing_are_left_out_with_a_reason():
    n = 300
    a = frame(
        country=["UK"] * n,
        empty=[None] * n,
        state=["WA"] * 295 + ["OR"] * 5,
        code=[f"x{k % 90}" for k in range(n)],
        rare=[None] * 290 + [f"word {k}" for k in range(10)],
        only=["yes", "no"] * 150,
    )
    b = frame(
        seed=0,
        country=["UK"] * n,
        empty=[None] * n,
        state=["WA"] * 297 + ["OR"] * 3,
        code=[f"y{k % 90}" for k in range(n)],
        rare=[None] * 290 + [f"word {k}" for k in range(10)],
    )
    reasons = left_out(bl.suggest(a, b))
    for column, words in {
        "country": "the same in all",
        "empty": "empty",
        "state": "nearly always",
        "code": "not one value in common",
        "rare": "3 %",
        "only": "no such column",
    }.items():
        assert words in reasons["A", column], column


def test_letters_for_categories_are_compared_by_their_first_letter():
    found = bl.suggest(frame(sex=["M", "F"] * 150), frame(gender=["Male", "Female"] * 150))
    assert kinds(found)["sex"] == "name"


def test_ids_are_found_and_numbers_of_a_person_are_compared():
    ssn = [f"{k * 7919 % 10**9:09d}" for k in range(300)]
    born = [f"19{k % 70 + 10}-0{k % 9 + 1}-1{k % 7}" for k in range(300)]
    a, b = (frame(dob=born, ssn=ssn, member_no=ssn[::-1]) for _ in "ab")
    b = b.set_column(0, "client_no", pa.array([str(k) for k in range(1, 301)]))
    found = bl.suggest(a, b)
    assert found.id == ("id", "client_no")
    assert kinds(found)["ssn"] == "identifier"
    assert kinds(found)["member_no"] == "identifier"
    assert any("share member_no" in note for note in found.notes)


def test_row_numbers_in_common_are_no_shared_key():
    rng = np.random.default_rng(5)
    a, b = frame(seed=1), frame(seed=2)
    numbers = [str(k) for k in range(1, 301)]
    found = bl.suggest(
        a.set_column(0, "id", pa.array(numbers)),
        b.set_column(0, "id", pa.array(rng.permutation(numbers))),
    )
    assert found.id == "id"
    assert set(kinds(found)) == {"surname"}


def test_without_an_id_rows_are_numbered():
    found = bl.suggest(frame().drop_columns(["id"]), frame().drop_columns(["id"]))
    assert found.id is None
    assert "numbered" in str(found)


def test_missing_codes_are_said_by_file_and_by_field():
    born = [f"19{k % 70 + 10}-0{k % 9 + 1}-1{k % 7}" for k in range(300)]
    a = frame(
        dob=born[:280] + ["9999-12-31"] * 20, city=["N/A"] * 30 + ["Leeds", "York", "Hull"] * 90
    )
    b = frame(dob=born, city=["-"] * 30 + ["Leeds", "York", "Hull"] * 90)
    found = bl.suggest(a, b)
    assert found.missing == (("N/A",), ("-",))
    assert {f.name: f.missing for f in found.fields}["dob"] == ("9999-12-31",)
    given = bl.suggest(a, b, missing=["Hull"])
    assert given.missing == (("Hull", "N/A"), ("Hull", "-"))


def test_duplicates_within_a_file_are_told():
    born = [f"19{k % 70 + 10}-0{k % 9 + 1}-1{k % 7}" for k in range(300)]
    a = frame(dob=born)
    twice = pa.concat_tables([a, a.slice(0, 40)])
    twice = twice.set_column(0, "id", pa.array([f"S{k:05d}" for k in range(340)]))
    notes = " ".join(bl.suggest(a, twice).notes)
    assert "records of B equal another" in notes
    assert "records of A" not in notes


def test_files_with_nothing_in_common_are_refused():
    with pytest.raises(InputError, match="--on COLUMN_A=COLUMN_B"):
        bl.suggest(pa.table({"x": ["1", "2"]}), pa.table({"word": ["good", "bad"]}))


def test_a_column_without_text_is_left_out():
    a = frame().append_column("tags", pa.array([["x"]] * 300))
    assert left_out(bl.suggest(a, frame()))["A", "tags"] == "has no text form"


def test_the_draft_is_a_link_toml_with_reasons(files, tmp_path):
    bl.write_simulation(files, tmp_path / "files")
    found = bl.suggest(files.a, files.b)
    text = found.to_toml(tmp_path / "files/a.csv", tmp_path / "files/b.csv", tmp_path)
    for line in ("# dates, ", "#   age of A: follows from", "# These fields are good"):
        assert line in text
    assert tomllib.loads(text)["a"] == "files/a.csv"
    (tmp_path / "link.toml").write_text(text)
    settings = load(tmp_path / "link.toml")
    assert settings["id"] == "id"
    assert [f["compare"] for f in settings["fields"]] == list(kinds(found).values())


def test_link_without_fields_takes_the_proposal(files):
    run = bl.link(files.a, files.b, draws=100, tune=50)
    assert [f.name for f in run.settings.fields] == list(kinds(bl.suggest(files.a, files.b)))
    assert any("chosen from the files" in warning for warning in run.warnings)
    assert bl.evaluate(run.links, files.truth).f1 > 0.98
    same = bl.link(pd.DataFrame(files.a.to_pandas()), files.b, id=None, point=True)
    assert same.settings.id is None


def test_a_proposal_is_short_to_read_and_to_show(files):
    found = bl.suggest(files.a, files.b)
    assert len(str(found).splitlines()) <= 16
    assert "good" in found._repr_html_()


# --- the command line -----------------------------------------------------------------------------


def run_cli(*arguments):
    return CliRunner().invoke(main, [str(a) for a in arguments])


def test_init_writes_a_link_toml_that_links(files, tmp_path):
    bl.write_simulation(files, tmp_path / "files")
    a, b, toml = tmp_path / "files/a.csv", tmp_path / "files/b.csv", tmp_path / "x/link.toml"
    assert run_cli("init", a, b, "-o", toml).exit_code == 4  # no such directory
    toml.parent.mkdir()
    done = run_cli("init", a, b, "-o", toml)
    assert done.exit_code == 0, done.output
    assert "bayeslink link --config" in done.output
    assert run_cli("init", a, b, "-o", toml).exit_code == 4
    assert run_cli("init", a, b, "-o", toml, "--force", "--json").exit_code == 0
    done = run_cli("link", "--config", toml, "--point", "-o", tmp_path / "out")
    assert done.exit_code == 0, done.output


def test_two_ordinary_files_and_nothing_else(tmp_path):
    truth = write_messy_files(tmp_path)
    done = run_cli("link", tmp_path / "a.csv", tmp_path / "b.csv", "-o", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert "Compared: Forename = first_name, Surname = " in done.output
    with (tmp_path / "out/links.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["decision"] == "link"]
    links = {(row["id_a"], row["id_b"]) for row in rows}
    assert len(links & truth) / len(links) >= 0.97
    assert len(links & truth) / len(truth) >= 0.97
    fields = tomllib.loads((tmp_path / "out/link.toml").read_text("utf-8"))["fields"]
    assert {field["compare"] for field in fields} == {"name", "date", "phone", "postcode"}


def test_repeated_records_are_counted():
    assert repeated_records([["x", "x", "y", None, None], ["1", "1", "1", "1", "1"]]) == 2


def test_a_house_number_is_no_id():
    numbers = [str(k * 7 % 180 + 1) for k in range(300)]
    found = bl.suggest(frame(house_no=numbers), frame(house_no=numbers))
    assert kinds(found)["house_no"] == "levenshtein"


def test_a_title_in_one_file_may_be_a_name_in_the_other():
    titles = [f"{word} camera model X{k}00 black" for k in range(100) for word in ("Big", "Small")]
    found = bl.suggest(pa.table({"title": titles}), pa.table({"name": titles[::-1]}))
    assert kinds(found) == {"title": "text"}


def test_the_link_toml_of_init_is_its_owners(files, tmp_path):
    bl.write_simulation(files, tmp_path / "files")
    a, b, toml = tmp_path / "files/a.csv", tmp_path / "files/b.csv", tmp_path / "link.toml"
    for force in ((), ("--force",)):
        assert run_cli("init", a, b, "-o", toml, *force).exit_code == 0
        assert toml.stat().st_mode & 0o077 == 0
        toml.chmod(0o644)
