"""Each comparison, value by value, through the dictionaries that the product uses."""

import math
import string

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bayeslink as bl
from bayeslink.comparing.comparisons import level_matrix, normalise, normalise_texts
from bayeslink.comparing.dictionaries import build_dictionary, encode
from bayeslink.comparing.field_checks import NORMALISATIONS
from bayeslink.errors import InputError, SettingsError
from tests import oracles


def level(field, x, y):
    """The level of two cell texts, by way of the level table."""
    a = oracles.records([dict.fromkeys(field.columns[0], x)])
    b = oracles.records([dict.fromkeys(field.columns[1], y)], side="B")
    d = build_dictionary(field, a, b)
    if d.a.codes[0] == len(d.a.values) or d.b.codes[0] == len(d.b.values):
        return 0
    return int(d.table.levels[0]) if len(d.table.levels) else 1


def test_exact():
    assert level(bl.exact("x"), "Ann", "ann ") == 2  # default normalisation: case, white space
    assert level(bl.exact("x", normalise=()), "Ann", "ann") == 1
    assert level(bl.exact("x"), "Ann", "Anna") == 1
    assert level(bl.exact("x"), "", "Ann") == 0
    assert level(bl.exact("x", missing=["?"]), "?", "?") == 0


def test_levenshtein_cuts_are_those_of_the_paper():
    f = bl.levenshtein("x")
    assert level(f, "mccarthy", "mccarthy") == 4
    assert level(f, "mccarthy", "mccartxhy") == 3  # 1/9
    assert level(f, "abcd", "abcx") == 3  # exactly .25
    assert level(f, "abcd", "abxx") == 2  # exactly .5
    assert level(f, "abcd", "axxx") == 1
    assert level(f, "é", "e") == 1  # one character of one, not two bytes


@given(x=st.text("abc", min_size=1, max_size=9), y=st.text("abc", min_size=1, max_size=9))
def test_levenshtein_equals_the_textbook(x, y):
    f = bl.levenshtein("x", cuts=(0, 0.2, 1 / 3, 0.7))
    distance = oracles.levenshtein(x, y) / max(len(x), len(y))
    assert level_matrix(f, [x], [y], 1)[0, 0] == 1 + sum(distance <= cut for cut in f.cuts)


def test_long_values_are_compared_too():
    f = bl.levenshtein("x")
    assert level(f, "a" * 300, "a" * 299 + "b") == 3
    assert level(f, "a" * 300, "b" * 300) == 1


def test_damerau_counts_a_swap_once():
    assert level(bl.levenshtein("x", cuts=(0, 0.3)), "abcd", "abdc") == 1
    assert level(bl.damerau_levenshtein("x", cuts=(0, 0.3)), "abcd", "abdc") == 2


def test_jaro_winkler():
    f = bl.jaro_winkler("x", cuts=(1, 0.96, 0.8))
    assert level(f, "martha", "martha") == 4
    assert level(f, "martha", "marhta") == 3  # .9611, the textbook example
    assert level(f, "dwayne", "duane") == 2  # .84
    assert level(f, "martha", "zzz") == 1


def test_numeric():
    f = bl.numeric("x", cuts=(0, 1, 5))
    assert [level(f, "40", y) for y in ("40.0", "41", "36", "46")] == [4, 3, 2, 1]
    assert level(f, "-3", "40") == 0  # outside valid
    assert level(f, "forty", "40") == 0
    assert level(bl.numeric("x", cuts=(0, 1), valid=(None, None)), "-3", "-3") == 3
    relative = bl.numeric("x", cuts=(0, 0.1), relative=True)
    assert [level(relative, "100", y) for y in ("100", "90", "89")] == [3, 2, 1]
    assert level(relative, "0", "0") == 3
    assert level(bl.numeric("x", cuts=(0, 0.1)), "0.3", "0.2") == 2  # decimal, not binary


def test_numbers_as_people_write_them():
    f = bl.numeric("x", cuts=(0,))
    for text in ("$1,234.50", "1.234,50 €", "1234.5", "1 234.50", "1'234.50"):
        assert level(f, text, "1234.50") == 2
    assert level(f, "1,234", "1234") == 2
    assert level(f, "12,5", "12.5") == 2
    assert level(f, "12-5", "12.5") == 0


def test_date():
    f = bl.date("x", cuts=(0, 30))
    assert level(f, "1980-02-01", "1980-02-01") == 6
    assert level(f, "1980-02-01", "1980-01-02") == 5  # day and month swapped
    assert level(f, "1982-02-01", "1928-02-01") == 4  # two digits exchanged
    assert level(f, "1980-02-15", "1980-05-12") == 1  # not two neighbours
    assert level(f, "1980-02-01", "1930-02-01") == 3  # one digit
    assert level(f, "1999-02-01", "2000-02-01") == level(f, "1999-02-01", "2009-02-01") == 3
    assert level(f, "1980-02-01", "1980-02-27") == 2  # within 30 days
    assert level(f, "1980-02-01", "1955-07-19") == 1
    assert level(f, "9999-12-31", "1980-02-01") == 0
    two = bl.date("x", cuts=(0, 30), format=("%d/%m/%Y", "%Y-%m-%d"))
    assert level(two, "01/02/1980", "1980-02-01") == 6
    assert level(bl.date("x", cuts=(0, 2, 30), swapped=False), "1980-02-01", "1980-01-31") == 3
    plain = bl.date("x", cuts=(0, 30), exchanged=False)
    assert level(plain, "1982-02-01", "1928-02-01") == 1


def test_no_date_is_lost():
    f = bl.date("x", cuts=(0, 30))
    assert level(f, "1980-02-31", "1980-02-01") == 3  # no such day, one digit wrong
    assert level(f, "1796-03-50", "1796-03-50") == 6
    assert level(f, "1110-01-01", "1110-01-01") == 6
    assert level(f, "1980-02-31", "1980-03-02") == 1  # not "two days apart"
    assert level(f, "1980", "1980-05-07") == level(f, "1980-05", "1980-05-07") == 3  # partial
    assert level(f, "1980-05", "1980-06-07") == 1
    assert level(f, "1980", "1981-06-07") == 1


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("25/02/1980", "1980-02-25"),
        ("02/25/1980", "25.2.1980"),
        ("25021980", "19800225"),
        ("1 Feb 1980", "February 1st, 1980"),
        ("1980-02-25T00:00:00", "25-FEB-80"),
        ("25. Februar 1980", "25 février 1980"),
    ],
)
def test_formats_are_told_from_the_data(a, b):
    d = build(bl.date("x"), [a], [b])
    assert d.a.values == d.b.values
    assert len(d.a.values) == 1


def build(field, x, y):
    a = oracles.records([{"x": text} for text in x])
    return build_dictionary(field, a, oracles.records([{"x": text} for text in y], side="B"))


def test_day_and_month_are_told_apart_by_the_whole_file():
    british = ["03/04/1980", "25/04/1981"]
    american = ["04/03/1980", "04/25/1981"]
    d = build(bl.date("x"), british, american)
    assert d.a.values == d.b.values == [19800403, 19810425]
    with pytest.raises(InputError, match="which number is the day"):
        build(bl.date("x"), ["03/04/1980"], ["1980-05-03"])
    vague = build(bl.date("x"), ["03/04/1980"], ["1980-04-03"])  # told by the other file
    assert vague.a.values == vague.b.values == [19800403]


def test_a_date_field_that_cannot_be_read_shows_shapes_and_no_values():
    texts = ["1980-02-01"] * 3 + ["Secret 77 x"]
    with pytest.raises(InputError, match=r"'aaaaaa 99 a'") as error:
        build(bl.date("x"), texts, texts)
    assert "Secret" not in str(error.value)
    assert "77" not in str(error.value)
    few = build(bl.date("x"), ["1980-02-01"] * 9 + ["Secret"], ["1980-02-01"])
    assert few.a.n_invalid == 1


def test_tokens():
    f = bl.tokens("x")
    assert level(f, "12 Mill Lane", "mill lane, 12") == 4
    assert level(f, "12 Mill Lane", "12 Mill Road") == 2  # 2 of 4 words
    assert level(f, "12 Mill Lane London", "12 Mill Lane") == 3
    assert level(f, "12 Mill Lane", "7 High Street") == 1


def test_geo():
    f = bl.geo("lat", "lon", cuts=(1, 50, 400))

    def km(x, y):
        a = oracles.records([{"lat": x[0], "lon": x[1]}])
        b = oracles.records([{"lat": y[0], "lon": y[1]}], side="B")
        d = build_dictionary(f, a, b)
        return int(d.table.levels[0]) if len(d.table.levels) else 1

    paris, london = ("48.8566", "2.3522"), ("51.5074", "-0.1278")  # 343.6 km
    assert km(paris, paris) == 4
    assert km(paris, london) == 2
    assert km(paris, ("-33.87", "151.21")) == 1
    missing = encode(f, oracles.records([{"lat": "91", "lon": "0"}, {"lat": None, "lon": "1"}]), 0)
    assert (missing.n_invalid, missing.n_missing) == (1, 1)


def test_custom():
    f = bl.custom("x", lambda x, y: 3 if x == y else 2 if x[0] == y[0] else 1, levels=3)
    assert [level(f, "ann", y) for y in ("ann", "abe", "bob")] == [3, 2, 1]
    for wrong in (lambda x, y: 0, lambda x, y: 4, lambda x, y: 1.5, lambda x, y: None):
        with pytest.raises(SettingsError, match="whole number from 1"):
            level(bl.custom("x", wrong, levels=3), "a", "b")


def test_frequency_bands_split_agreement_by_how_common_the_value_is():
    f = bl.levenshtein("x", cuts=(0, 0.25), bands=(0.3, 0.1))
    assert f.n_levels == 5
    assert len(f.m_prior) == len(f.u_prior) == 5
    values = ["smith"] * 8 + ["jones"] * 3 + ["quaife"]
    a = oracles.records([{"x": v} for v in values])
    b = oracles.records([{"x": v} for v in values], side="B")
    d = build_dictionary(f, a, b)
    by_value = dict(zip(d.a.values, d.table.levels[d.table.indptr[:-1]].tolist(), strict=True))
    assert by_value == {"smith": 3, "jones": 4, "quaife": 5}


@pytest.mark.parametrize(
    ("steps", "text", "expected"),
    [
        (("unicode",), "Jose\u0301", "Jos\u00e9"),
        (("accents",), "José Müller", "Jose Muller"),
        (("case",), "STRASSE", "strasse"),
        (("case", "unicode"), "Straße", "strasse"),
        (("punctuation",), "O'Brien-Smith, Jr.", "OBrien Smith Jr"),
        (("space",), "  van \t der\u00a0Berg ", "van der Berg"),
        ((), " As  Is ", " As  Is "),
    ],
)
def test_normalisation(steps, text, expected):
    assert normalise(text, steps) == expected


@settings(deadline=None)
@given(
    texts=st.lists(st.text(max_size=12) | st.text(string.printable + "éßİ’\x1f\xa0", max_size=12)),
    steps=st.sets(st.sampled_from(NORMALISATIONS)),
)
def test_normalising_many_texts_is_normalising_each(texts, steps):
    together = normalise_texts(pa.array(texts, pa.string()), steps)
    assert together.to_pylist() == [normalise(text, steps) for text in texts]


@settings(deadline=None)
@given(texts=st.lists(st.none() | st.text("aAéE .我😀", max_size=4), min_size=1))
def test_codes_lead_back_to_the_values(texts):
    field = bl.levenshtein("x", missing=["a", "."])
    records = oracles.records([{"x": text} for text in texts])
    codes = encode(field, records, 0)
    assert codes.values == sorted(set(codes.values))
    values, n_invalid = [*codes.values, None], 0
    for cell, code in zip(records.columns["x"].to_pylist(), codes.codes, strict=True):
        missing = cell is None or cell.strip() in field.missing
        value = None if missing else normalise(cell, field.normalise) or None
        assert values[code] == value
        n_invalid += value is None and not missing
    assert codes.n_invalid == n_invalid


def test_zero_width_marks_are_kept():
    assert normalise("a\u200bb", ("unicode", "case", "space")) == "a\u200bb"


@pytest.mark.parametrize(
    "make",
    [
        lambda: bl.levenshtein("x", cuts=(0.5, 0.25)),
        lambda: bl.levenshtein("x", cuts=()),
        lambda: bl.levenshtein("x", cuts=(0, math.nan)),
        lambda: bl.jaro_winkler("x", cuts=(0.8, 0.9)),
        lambda: bl.exact("x", bands=(0.1, 0.2)),
        lambda: bl.exact("x", normalise=("caps",)),
        lambda: bl.exact("x", m_prior=(1, 2, 3)),
        lambda: bl.exact("x", m_prior=(0, 2)),
        lambda: bl.exact("x", u_prior=(1, math.inf)),
        lambda: bl.exact("x", prior=(1, 2)),
        lambda: bl.exact(""),
        lambda: bl.exact("x", columns=("x",)),
        lambda: bl.numeric("x", valid=(5, 1)),
        lambda: bl.geo("a", "b", bands=(0.1,)),
        lambda: bl.custom("x", None),
        lambda: bl.custom("x", max, levels=1),
    ],
)
def test_wrong_settings_are_refused(make):
    with pytest.raises(SettingsError):
        make()


def test_nearest_setting_is_named():
    with pytest.raises(SettingsError, match="'normalise'"):
        bl.exact("x", normalize=("case",))
