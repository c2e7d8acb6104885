"""What columns hold: kinds, date formats, missing codes, ids, told from values and names."""

import doctest
from collections import Counter

import pyarrow as pa
import pytest

from bayeslink.data.records import read_records
from bayeslink.suggesting import column_names, proposing
from bayeslink.suggesting.date_formats import find_formats
from bayeslink.suggesting.kinds import kind_of
from bayeslink.suggesting.missing_codes import fillers, likely_words, missing_words
from bayeslink.suggesting.profiles import SAMPLE, profile_columns

GIVEN = ["Anna", "John", "Mary", "Peter", "Emma", "Oliver", "Sarah", "David", "Ruth", "Paul"]
FAMILY = ["Smith", "Jones", "Brown", "Taylor", "Wilson", "Evans", "Walker", "Hughes", "Green"]
STREETS = ["12 High Street", "3 Mill Rd", "7a Church Lane", "110 Station Road", "5 Park Ave"]


def counted(values):
    return Counter(str(value) for value in values)


def profile(name, cells):
    records = read_records(pa.table({name: cells}), id=None, columns=None)
    return profile_columns(records)[0]


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("x", [f"p{k}@mail.org" for k in range(50)], "e-mail"),
        ("x", [f"0{k} 7946 {k:04d}" for k in range(20, 70)], "phone"),
        ("tel", [f"02079460{k:03d}" for k in range(50)], "phone"),
        ("x", [f"AB{k} {k % 9}CD" for k in range(1, 60)], "postcode"),
        ("zip", [f"{k:05d}" for k in range(90000, 90050)], "postcode"),
        ("x", [f"{k:05d}" for k in range(90000, 90100)], "code"),
        ("x", [f"19{k % 80 + 10}-0{k % 9 + 1}-1{k % 9}" for k in range(80)], "date"),
        ("x", [f"{k % 28 + 1}/{k % 12 + 1}/19{k % 80 + 10}" for k in range(80)], "date"),
        ("x", [f"19{k % 80 + 10}0{k % 9 + 1}1{k % 9}" for k in range(80)], "date"),
        ("x", [1900 + k for k in range(100)], "year"),
        ("age", range(100), "age"),
        ("price", [f"{k}.50" for k in range(100)], "number"),
        ("x", [f"£{k},250.00" for k in range(1, 80)], "number"),
        ("ssn", [f"{k:03d}-12-{k * 7:04d}" for k in range(200)], "identifier"),
        ("x", [f"REC-{k:06d}" for k in range(100)], "identifier"),
        ("sex", ["m", "f"] * 30, "category"),
        ("x", GIVEN * 8 + [f"Rare{letter}" for letter in "abcdefghijkl"] * 2, "given name"),
        ("Forename", GIVEN * 8, "given name"),
        ("surname", FAMILY * 8, "family name"),
        ("name", [f"{g} {f}" for g in GIVEN for f in FAMILY], "full name"),
        ("x", [f"{f}, {g}" for g in GIVEN for f in FAMILY], "full name"),
        ("name", [f"Café {f} no {k}" for k, f in enumerate(FAMILY * 9)], "text"),
        ("x", [f"{s} {k}" for k, s in enumerate(STREETS * 10)], "address"),
        ("x", [f"{f} {k} Ltd" for k, f in enumerate(FAMILY * 9)], "company"),
        ("authors", [f"{f} {g}, J. {f}, M. {g}" for g in GIVEN for f in FAMILY], "text"),
        ("tags", [f"{f}; {g}; old" for g in GIVEN for f in FAMILY], "list"),
        ("notes", [f"said on day {k} that all was well" for k in range(70)], "text"),
        ("town", [f"{f}ville" for f in FAMILY * 2] + [f"{g}town" for g in GIVEN], "place"),
        ("x", ["same"] * 9, "constant"),
        ("x", [], "empty"),
    ],
)
def test_kinds_are_told_by_values_first_and_names_second(name, values, kind):
    assert kind_of(name, counted(values))[0] == kind


def test_a_name_does_not_make_a_date_of_what_is_none():
    assert kind_of("dob", counted(GIVEN * 8))[0] != "date"


@pytest.mark.parametrize(
    ("texts", "formats", "ambiguous"),
    [
        (["1980-02-01", "1999-12-31"], ("%Y-%m-%d",), False),
        (["01/02/1980", "31/12/1999"], ("%d/%m/%Y",), False),
        (["01/02/1980", "12/31/1999"], ("%m/%d/%Y",), False),
        (["01/02/1980", "03/04/1999"], ("%d/%m/%Y",), True),
        (["19800201", "19991231"], ("%Y%m%d",), False),
        (["1 Feb 1980", "31 Dec 1999"], ("%d %b %Y",), False),
        (["1980-02-01", "1980-03-01", "31.12.1999"], ("%Y-%m-%d", "%d.%m.%Y"), False),
    ],
)
def test_formats_of_dates_are_told_from_all_of_them(texts, formats, ambiguous):
    found = find_formats(counted(texts))
    assert found.formats == formats
    assert found.ambiguous == ambiguous
    assert found.share == 1


def test_sure_words_are_missing_and_names_are_not():
    texts = counted(["N/A", "unknown", "-", "Null", "Na", "Nan", *GIVEN])
    assert missing_words(texts) == ("-", "N/A", "unknown")
    assert likely_words(texts) == ()


def test_a_likely_word_is_missing_where_it_is_far_too_common():
    texts = counted([f"Name{k}" for k in range(500)] + ["NULL"] * 40)
    assert likely_words(texts) == ("NULL",)


def test_fillers_stand_out():
    ages = counted([*range(20, 90)] * 3 + [999] * 4)
    assert fillers(ages, "age", None) == ("999",)
    assert fillers(counted([*range(990, 1005)] * 3), "number", None) == ()
    days = [f"19{k % 80 + 10}-0{k % 9 + 1}-{k % 28 + 1:02d}" for k in range(900)]
    texts = counted([*days, *["1900-01-01"] * 60, *["9999-12-31"] * 2])
    assert fillers(texts, "date", find_formats(texts)) == ("1900-01-01", "9999-12-31")
    new_years = counted([*days, *[f"{1880 + k}-01-01" for k in range(40)] * 30])
    assert fillers(new_years, "date", find_formats(new_years)) == ()
    phones = counted([f"020 7946 {k:04d}" for k in range(900)] + ["000 0000 0000"] * 30)
    assert fillers(phones, "phone", None) == ("000 0000 0000",)


def test_a_profile_counts_what_is_there():
    found = profile("dob", ["1980-02-01"] * 2 + ["1990-03-04", "N/A", None])
    assert found.complete == pytest.approx(3 / 5)
    assert found.n_distinct == 2
    assert not found.unique
    assert found.missing == ("N/A",)
    assert list(found.keys) == ["1980-02-01", "1980-02-01", "1990-03-04", None, None]


def test_ids_are_unique_in_all_rows_not_in_the_sample_alone():
    cells = [str(k) for k in range(SAMPLE + 5)]
    assert profile("id", cells).unique
    assert profile("id", cells).numbered
    cells[0] = cells[1]
    assert not profile("id", cells).unique


def test_large_files_are_sampled_the_same_each_time():
    cells = [f"{k % 977}" for k in range(3 * SAMPLE)]
    first, again = profile("x", cells), profile("x", cells)
    assert len(first.cells) == SAMPLE
    assert first == again


@pytest.mark.parametrize("module", [column_names, proposing])
def test_examples_in_the_docs_hold(module):
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize(
    ("a", "b", "low", "high"),
    [
        ("Date of Birth", "dob", 0.9, 0.9),
        ("ZIP", "Post-Code", 0.9, 0.9),
        ("PhoneNumber", "tel", 0.9, 0.9),
        ("first_name", "mother_first_name", 0.0, 0.0),
        ("first_name", "last_name", 0.0, 0.4),
        ("fname_c1", "fname_c1", 1.0, 1.0),
    ],
)
def test_names_of_the_same_thing_are_alike(a, b, low, high):
    assert low <= column_names.similarity(a, b) <= high


def test_dates_of_which_some_are_years_or_months_only_are_dates():
    values = [f"19{k % 80 + 10}-0{k % 9 + 1}-1{k % 9}" for k in range(50)]
    values += ["1950"] * 20 + ["1951-03"] * 20
    assert kind_of("x", counted(values))[0] == "date"
    assert kind_of("x", counted(values[50:70] * 9))[0] != "date"
