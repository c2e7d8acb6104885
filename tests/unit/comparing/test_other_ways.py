"""What is written in other ways: dates in three columns, numbers with units, values in codes."""

import datetime as dt

import pyarrow as pa
import pytest

import bayeslink as bl
from bayeslink.comparing.dictionaries import build_dictionary
from bayeslink.comparing.parsing import fields_from, parse_on
from bayeslink.data.records import read_records
from bayeslink.plain import plain

THREE = {"columns": ("born", ("year", "month", "day"))}


def records(**columns):
    return read_records(pa.table(columns), id=None, columns=None)


def values(field, a, b):
    """What each record of A and of B has for the field; None where nothing."""
    found = build_dictionary(field, records(**a), records(**b))
    return [
        [None if code == len(side.values) else side.values[code] for code in side.codes.tolist()]
        for side in (found.a, found.b)
    ]


def test_a_date_in_three_columns_is_read_as_the_same_date_in_one():
    days = [dt.date(1930, 1, 5) + dt.timedelta(397 * k) for k in range(60)]
    one = {"born": [f"{d:%d.%m.%Y}" for d in days]}
    parts = {"year": "%Y", "month": "%m", "day": "%d"}
    three = {name: [d.strftime(form).lstrip("0") for d in days] for name, form in parts.items()}
    a, b = values(bl.date("born", **THREE), one, three)
    assert a == b == [d.year * 10000 + d.month * 100 + d.day for d in days]


def test_a_date_in_three_columns_is_kept_as_far_as_it_is_known():
    three = {
        "year": ["1985", "1985", "1985", None, "1985", "1985"],
        "month": ["3", "3", None, "3", "März", "2"],
        "day": ["12", None, "12", "12", "12", "31"],
    }
    _, b = values(bl.date("born", **THREE), {"born": ["1985-03-12"] * 6}, three)
    assert b == [19850312, 19850300, 19850000, None, 19850312, 19850231]


def test_three_columns_against_one_link_as_one_against_one():
    files = bl.simulate(300, seed=5)
    b = files.b.drop_columns(["dob"])
    for name, part in (("year", slice(0, 4)), ("month", slice(5, 7)), ("day", slice(8, 10))):
        b = b.append_column(
            name, pa.array([day and day[part] for day in files.b["dob"].to_pylist()])
        )
    names = [bl.name("gname"), bl.name("fname")]
    three = bl.date("dob", columns=("dob", ("year", "month", "day")))
    one = bl.link(files.a, files.b, [*names, bl.date("dob")], point=True)
    other = bl.link(files.a, b, [*names, three], point=True)
    assert one.links.select(["id_a", "id_b"]).equals(other.links.select(["id_a", "id_b"]))


@pytest.mark.parametrize("columns", [("a", ("y", "m")), (("a", "b"), "c")])
def test_a_date_has_one_column_or_three(columns):
    with pytest.raises(bl.SettingsError, match=r"each alone or as \(year, month, day\)"):
        bl.date("a", columns=columns)


LENGTHS = [
    "175 cm",
    "1.75 m",
    "1,75m",
    "1 m 75",
    "1m75",
    "5'9\"",
    "5 ft 9 in",
    "5'9",
    "69 in",
    "1m75 ",
]
METRES = [*[1.75] * 5, *[1.7526] * 4, 1.75]


def test_numbers_with_units_are_the_same_however_they_are_written():
    a, b = values(bl.numeric("x"), {"x": LENGTHS}, {"x": ["1.75"] * len(LENGTHS)})
    assert a == METRES
    assert b == [1.75] * len(LENGTHS)


def test_bare_numbers_are_in_the_units_that_are_said():
    field = bl.numeric("x", units=("cm", "in"))
    a, b = values(field, {"x": ["175", "1.75 m", "x", "80 kg"]}, {"x": ["69", "175 cm", "1", "2"]})
    assert a == [175, 175, None, None]
    assert b == [175.26, 175, 2.54, 5.08]
    assert bl.numeric("x", units="cm").settings["units"] == ["cm", "cm"]


def test_thousands_with_an_apostrophe_are_no_feet():
    a, _ = values(bl.numeric("x"), {"x": ["1'234", "12'500.50", "1 m 175"]}, {"x": ["1", "2", "3"]})
    assert a == [1234, 12500.5, None]


@pytest.mark.parametrize("units", ["parsec", ("cm", "kg"), ("cm", None), ("cm", "m", "in")])
def test_units_are_known_and_measure_the_same(units):
    with pytest.raises(bl.SettingsError, match="units takes one unit"):
        bl.numeric("x", units=units)


def test_values_are_recoded_whatever_their_case():
    field = bl.exact("sex", recode={"1": "M", "2": "F"})
    a, b = values(field, {"sex": ["M", "f", "u"]}, {"sex": ["1", " 2", "9"]})
    assert (a, b) == (["m", "f", "u"], ["m", "f", "9"])


def test_values_of_one_file_may_mean_what_others_mean_in_the_other():
    field = bl.exact("sex", recode=[{}, {"1": "2", "2": "1"}])
    a, b = values(field, {"sex": ["1", "2"]}, {"sex": ["1", "2"]})
    assert (a, b) == (["1", "2"], ["2", "1"])


@pytest.mark.parametrize("recode", ["1=M", {"1": 2}, [{}, {}, {}]])
def test_recode_takes_texts(recode):
    with pytest.raises(bl.SettingsError, match="recode takes what values stand for"):
        bl.exact("sex", recode=recode)


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ("born=year+month+day:date", bl.date("born", **THREE)),
        ("h=t:numeric:units=cm,m", bl.numeric("h", columns=("h", "t"), units=("cm", "m"))),
        ("sex=s:exact:recode=1=M,2=F", bl.exact("sex", columns=("sex", "s"),
                                               recode={"1": "M", "2": "F"})),
    ],
)  # fmt: skip
def test_the_command_line_and_link_toml_say_the_same(said, field):
    assert parse_on(said) == [field]
    assert fields_from(plain(field.settings)) == [field]
