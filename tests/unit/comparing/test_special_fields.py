"""Comparisons made of rules: what a person expects of them, and tables against the definition."""

import datetime as dt
import math
import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bayeslink as bl
from bayeslink.comparing import dates, level_tables
from bayeslink.comparing.comparisons import level_matrix
from bayeslink.comparing.dictionaries import build_dictionary
from bayeslink.comparing.from_data import FEWEST, joined_levels, settled
from bayeslink.comparing.level_tables import level_table
from bayeslink.comparing.names import bare_name, name_part, sound
from bayeslink.engines.open_levels import levels_beside
from bayeslink.errors import SettingsError
from tests import oracles
from tests.unit.comparing.test_level_tables import dense


def dictionary(field, x, y):
    a = oracles.records([{"x": text} for text in x])
    return build_dictionary(field, a, oracles.records([{"x": text} for text in y], side="B"))


def label(field, x, y):
    """What the level of two cell texts is called, before any levels are joined."""
    field.options["join"] = False
    d = dictionary(field, [x], [y])
    return d.field.labels[int(d.table.levels[0]) - 1 if len(d.table.levels) else 0]


# --- what a person expects ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("whole", "given_name", "family"),
    [
        ("Smith, Anna Maria", "Anna Maria", "Smith"),
        ("Anna Maria Smith", "Anna Maria", "Smith"),
        ("Anna van der Berg", "Anna", "van der Berg"),
        ("John Smith, Jr.", "John", "Smith"),
        ("Smith,", "", "Smith"),
        (", Anna", "Anna", ""),
        ("Smith", "", "Smith"),
        (" ", "", ""),
    ],
)
def test_parts_of_a_whole_name(whole, given_name, family):
    assert (name_part(whole, "given"), name_part(whole, "family")) == (given_name, family)


def test_a_family_name_that_comes_first():
    parts = ("family first", "given last")
    assert [name_part("van der Berg Anna", p) for p in parts] == ["van der Berg", "Anna"]
    assert [name_part("Smith, Anna", p) for p in parts] == ["Smith", "Anna"]
    assert [name_part("", p) for p in parts] == ["", ""]


def test_a_part_that_is_none_is_refused():
    with pytest.raises(SettingsError, match="'given', 'family', 'given last', 'family first'"):
        bl.name("x", part="first")


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [
        ("Dr. José Núñez", "jose nunez", "equal"),
        ("Smith, Jr.", "Smith", "equal"),
        ("Bob", "Robert", "short form or a word in common"),
        ("Smith-Jones", "Jones", "short form or a word in common"),
        ("van der Berg", "Vanderberg", "short form or a word in common"),
        ("Anna Maria", "Maria Anna", "short form or a word in common"),
        ("Catherine", "Katherine", "short form or a word in common"),
        ("Jonsson", "Johnsson", "distance ≤ 0.25"),
        ("Philipps", "Fillips", "sounds alike"),
        ("J.", "Jerome", "initial"),
        ("Jerome", "J", "initial"),
        ("Miller", "Mills", "distance ≤ 0.5"),
        ("Miller", "Schwarz", "different"),
        ("van Hooft", "van Dyke", "different"),
    ],
)
def test_names(x, y, expected):
    assert label(bl.name("x"), x, y) == expected


def test_own_nicknames():
    assert label(bl.name("x", nicknames={"Xaver": ["Vere"]}), "Vere", "xaver") == (
        "short form or a word in common"
    )
    with pytest.raises(SettingsError, match="nicknames takes forms by name"):
        bl.name("x", nicknames=["Bob"])


def test_a_name_keeps_something():
    assert bare_name("mr") == "mr"
    assert bare_name("mr smith") == "smith"
    assert sound("knight") == sound("nite")
    assert sound("stephen") == sound("steven")


@pytest.mark.parametrize(
    ("comparison", "x", "y", "expected"),
    [
        (bl.phone, "(415) 296-7465", "415/296.7465", "equal"),
        (bl.phone, "+1 415 296 7465", "415-296-7465", "same without a code"),
        (bl.phone, "0044 (0)20 7946 0018", "+44 20 7946 0018", "equal"),
        (bl.phone, "415 296 7465 ext. 12", "4152967465", "equal"),
        (bl.phone, "415 296 7465", "415 296 7456", "one digit wrong"),
        (bl.phone, "415 296 7465", "415 111 2222", "same area"),
        (bl.phone, "415 296 7465", "212 555 0199", "different"),
        (bl.email, "Ann.Lee@Example.org", "ann.lee@example.org", "equal"),
        (bl.email, "ann.lee@example.org", "annlee+x@other.net", "same mailbox elsewhere"),
        (bl.email, "ann.lee@a.org", "ann.lea@b.org", "name of the mailbox one letter off"),
        (bl.email, "ann.lee@a.org", "bob@a.org", "different"),
        (bl.postcode, "LE3 3FY", "le33fy", "equal"),
        (bl.postcode, "LE3 3FY", "LE3 3FV", "one letter wrong"),
        (bl.postcode, "LE3 3FY", "LE3 1AB", "same area"),
        (bl.postcode, "98105-1234", "98105", "equal"),
        (bl.postcode, "98105", "98199", "same area"),
        (bl.postcode, "LE3 3FY", "B15 2TT", "different"),
        (bl.identifier, "123-45-6789", "123456789", "equal"),
        (bl.identifier, "123456789", "123456798", "one digit wrong or two swapped"),
        (bl.identifier, "123456789", "987654321", "different"),
        (bl.collection, "tea; milk", "Milk, Tea", "same"),
        (bl.collection, "tea; milk", "milk", "one within the other"),
        (bl.collection, "tea; milk", "milk; beer", "something in common"),
        (bl.collection, "tea", "beer", "nothing in common"),
        (bl.company, "Acme Ltd.", "ACME Limited", "equal"),
        (bl.address, "600 W. Stockton St.", "600 west stockton street", "equal"),
        (bl.text, "Four Seasons", "four seasons grill room", "one within the other"),
        (bl.text, "O A GALVIN dona", "O A GALVIN donation BGC", "one within the other"),
        (bl.text, "Editor's notes!", "editor s notes", "equal"),
    ],
)
def test_what_a_person_sees(comparison, x, y, expected):
    assert label(comparison("x"), x, y) == expected


def test_codes_found_in_texts():
    f = bl.text("x", cuts=(0.2,), codes=True)
    assert label(f, "Kenwood KCA-IP200 cable", "iPod cable KCAIP200") == "same code"
    assert label(f, "Samsung LN46A750 TV", "46in TV LN46A750R1FXZA") == "same code"
    assert "other codes" in label(f, "Samsung TV LN46A750", "Samsung TV LN52B111")


# --- against the definition -----------------------------------------------------------------------

words = st.sampled_from(
    ["ann", "anna", "bob", "robert", "j", "li", "lee", "de", "la", "smith", "smyth", "x100",
     "ab12c", "ab12cd9", "12", "4152967465", "2967465", "le3", "3fy", "é", "müller",
     "a@b.c", "ann@b.c"]
)  # fmt: skip
glue = st.sampled_from([" ", "-", ", ", "; ", ""])
texts = st.lists(st.tuples(words, glue), min_size=1, max_size=4).map(
    lambda parts: "".join(word + mark for word, mark in parts).strip() or "ann"
)
many = st.lists(texts, min_size=1, max_size=12)
RULES = [
    bl.name("x"),
    bl.phone("x"),
    bl.email("x"),
    bl.postcode("x"),
    bl.identifier("x"),
    bl.collection("x"),
    bl.address("x", cuts=(0.7, 0.3)),
    bl.company("x", cuts=(0.5,)),
    bl.text("x", cuts=(0.8, 0.5, 0.2), codes=True),
    bl.text("x", cuts=(0.6, 0.1), codes=False),
]


@pytest.mark.parametrize("field", RULES, ids=lambda f: f"{f.kind} {f.cuts}")
@settings(deadline=None, max_examples=40)  # the first call compiles
@given(x=many, y=many)
def test_tables_are_the_definition(field, x, y):
    sides = dictionary(field, x, y)
    field = settled(field, sides.a, sides.b)
    x, y = sides.a.values, sides.b.values
    if not x or not y:
        return
    expected = level_matrix(field, x, y, 1)
    np.testing.assert_array_equal(dense(level_table(field, x, y), len(y)), expected)
    left, right = [v for v in x for _ in y], y * len(x)
    np.testing.assert_array_equal(levels_beside(field, left, right), expected.ravel())


@pytest.mark.parametrize("field", RULES, ids=lambda f: f"{f.kind} {f.cuts}")
def test_tables_in_pieces_and_threads(field, monkeypatch):
    rng = np.random.default_rng(3)
    pool = ["ann", "anna", "bob", "robert", "smith", "smyth", "x100", "ab12c", "41529674", "le33fy"]
    x, y = (
        ["".join([*rng.choice(pool, 2), str(k % 7)]) + " " + rng.choice(pool) for k in range(n)]
        for n in (300, 500)
    )
    sides = dictionary(field, x, y)
    field = settled(field, sides.a, sides.b)
    x, y = sides.a.values, sides.b.values
    whole = level_table(field, x, y, 1)
    monkeypatch.setattr(level_tables, "_ROWS", 40)
    for most in (1 << 23, 60):
        monkeypatch.setattr(level_tables, "_MAX_HITS", most)
        again = level_table(field, x, y, 2)
        for part in ("indptr", "indices", "levels"):
            np.testing.assert_array_equal(getattr(whole, part), getattr(again, part))


def plain_likeness(v, w, values):
    """The mean of two TF-IDF cosines, by dictionaries and floats."""

    def parts(text):
        found = re.findall(r"[^\W_]+", text)
        spaced = f" {' '.join(found)} "
        return set(found), {spaced[i : i + 3] for i in range(len(spaced) - 2)}

    total = 0.0
    for kind in (0, 1):
        times = Counter(f for value in values for f in parts(value)[kind])
        weight = {f: math.log(1 + len(values) / n) for f, n in times.items()}
        one, two = parts(v)[kind], parts(w)[kind]
        lengths = [math.sqrt(sum(weight[f] ** 2 for f in side)) for side in (one, two)]
        total += sum(weight[f] ** 2 for f in one & two) / math.prod(lengths) / 2
    return total


@settings(deadline=None, max_examples=60)
@given(x=many, y=many)
def test_likeness_is_the_mean_of_two_cosines(x, y):
    field = bl.text("x", cuts=(0.9, 0.55, 0.25), codes=False)
    sides = dictionary(field, x, y)
    x, y = sides.a.values, sides.b.values
    alike = settled(field, sides.a, sides.b).options["ladder"].rules[0]
    grades = alike.grades([v for v in x for _ in y], y * len(x)).reshape(len(x), len(y))
    for i, v in enumerate(x):
        for j, w in enumerate(y):
            likeness = plain_likeness(v, w, [*x, *y])
            if min(abs(likeness - cut) for cut in alike.cuts) > 0.01:  # vectors are rounded
                assert grades[i, j] == sum(likeness >= cut for cut in alike.cuts)


# --- what is told from the data -------------------------------------------------------------------


def test_cuts_of_numbers_follow_from_how_near_they_are_by_chance():
    rng = np.random.default_rng(1)
    ages = rng.integers(0, 90, 2000).astype(str)
    d = dictionary(bl.numeric("x"), ages[:1000], ages[1000:])
    assert not d.field.options["relative"]
    assert d.field.cuts[:2] == (0, 1)
    amounts = np.exp(rng.normal(5, 2, 2000)).round(2).astype(str)
    d = dictionary(bl.numeric("x"), amounts[:1000], amounts[1000:])
    assert d.field.options["relative"]
    assert d.field.cuts[0] == 0
    assert list(d.field.cuts) == sorted(set(d.field.cuts))
    within = [(d.table.levels >= h).sum() for h in range(2, d.field.n_levels + 1)]
    assert within == sorted(within, reverse=True)
    assert within[0] < 0.2 * 1000**2


def test_settings_given_are_kept():
    d = dictionary(bl.numeric("x", cuts=(0, 3)), ["1", "1000"], ["2", "30000"])
    assert d.field.cuts == (0, 3)
    assert not d.field.options["relative"]
    with pytest.raises(SettingsError, match="so give cuts too"):
        bl.numeric("x", m_prior=(1, 2))
    with pytest.raises(SettingsError, match="between 0 and 1"):
        bl.text("x", cuts=(1, 0.5))


def test_one_wrong_digit_means_nothing_in_a_file_of_three_months():
    days = [f"2022-0{m}-{d:02}" for m in (1, 2, 3) for d in range(1, 29)]
    assert "one digit wrong" not in dictionary(bl.date("x"), days, days).field.labels
    rng = np.random.default_rng(1)
    births = [f"{rng.integers(1900, 2000)}-0{rng.integers(1, 9)}-1{k % 9}" for k in range(300)]
    assert "one digit wrong" in dictionary(bl.date("x"), births, births).field.labels


def test_two_calendars_are_a_level_where_dates_show_them():
    """Days of the old calendar in A: 12 days before those of the new one, from 1900 on 13."""
    rng = np.random.default_rng(1)
    first = dt.date(1870, 1, 1)
    new = [first + dt.timedelta(int(d)) for d in rng.choice(20_000, 400, replace=False)]
    old = [day - dt.timedelta(12 if day.year < 1900 else 13) for day in new[:200]]
    label = "the same day of another calendar"
    a, b = [str(day) for day in old], [str(day) for day in new]
    made = dictionary(bl.date("x"), a, b)
    assert label in made.field.labels
    field = settled(bl.date("x"), made.a, made.b)
    levels = level_matrix(field, [18870301], [18870313, 18870314], 1)[0]
    assert field.labels[levels[0] - 1] == label != field.labels[levels[1] - 1]
    assert label not in dictionary(bl.date("x"), b[:200], b[200:]).field.labels
    assert label not in dictionary(bl.date("x"), b, b).field.labels


def test_the_first_of_january_stands_for_some_day_where_it_is_frequent():
    rng = np.random.default_rng(1)
    usual = [f"{rng.integers(1800, 1990)}-0{rng.integers(1, 9)}-1{k % 9}" for k in range(300)]
    filled = [f"{rng.integers(1800, 1990)}-01-01" for _ in range(100)]
    assert (
        "the same year, and 1 January"
        in dictionary(bl.date("x"), usual + filled, usual).field.labels
    )
    assert "the same year, and 1 January" not in dictionary(bl.date("x"), usual, usual).field.labels


def test_bands_follow_from_how_common_values_are():
    rng = np.random.default_rng(1)
    few = [f"common{k}" for k in rng.integers(0, 4, 300)]
    rare = [f"rare{k}" for k in range(400)]
    assert len(dictionary(bl.name("x"), few + rare, few + rare).field.bands) >= 1
    even = [f"name{k % 50}" for k in range(500)]
    assert dictionary(bl.name("x"), even, even).field.bands == ()


def test_levels_that_hardly_any_pairs_have_are_joined():
    field = bl.name("x", bands=None)
    pairs = np.array([0, 1000, FEWEST, 0, 3, FEWEST, 2, 50])
    joined, new = joined_levels(field, pairs, 1)
    assert joined.labels == (
        "different",
        "distance ≤ 0.5",
        "sounds alike or distance ≤ 0.25 or short form or a word in common",
        "equal",
    )
    assert new.tolist() == [0, 1, 2, 3, 3, 3, 3, 4]
    assert len(joined.m_prior) == len(joined.u_prior) == 4


def test_several_columns_are_one_text():
    rows = [
        {"first": "Ann", "last": "Lee", "full": None},
        {"first": None, "last": None, "full": None},
    ]
    a = oracles.records(rows)
    b = oracles.records([{"first": None, "last": None, "full": "ann lee"}], side="B")
    d = build_dictionary(bl.name("n", columns=(("first", "last"), "full")), a, b)
    assert d.a.values == d.b.values == ["ann lee"]
    assert d.a.n_missing == 1


@pytest.mark.parametrize(
    "text", ["1980-02-31", "1980-2-3", "0000-00-00", "1980-00-00", "9999-99-99", "1980-12-31"]
)
@pytest.mark.parametrize("order", dates.ORDERS)
def test_the_short_way_of_reading_a_date_is_the_long_one(text, order):
    told = dates.read_date(text, order, None, dates.ALL_DAYS)
    assert told == dates.read_date(f"{text} 00:00", order, None, dates.ALL_DAYS)
