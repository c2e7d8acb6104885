"""Level tables against the definition: everything compared with everything."""

import datetime as dt
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bayeslink as bl
from bayeslink.comparing import level_tables
from bayeslink.comparing.catalogue import COMPARISONS
from bayeslink.comparing.comparisons import level_matrix
from bayeslink.comparing.fields import date_labels
from bayeslink.comparing.from_data import relabelled
from bayeslink.comparing.level_tables import level_table
from bayeslink.errors import SettingsError

LETTERS = "abcdéß 我😀\u0301"  # of one, two, three and four bytes, and one that combines


def dense(table, n_columns):
    """The table as a matrix, after a look at its form."""
    matrix = np.ones((len(table.indptr) - 1, n_columns), np.uint8)
    for row, (low, high) in enumerate(zip(table.indptr, table.indptr[1:], strict=False)):
        assert (np.diff(table.indices[low:high]) > 0).all()
        matrix[row, table.indices[low:high]] = table.levels[low:high]
    assert table.indptr[-1] == len(table.indices) == len(table.levels)
    assert table.levels.min(initial=2) > 1
    return matrix


def check(field, x, y, threads=1):
    x, y = sorted(set(x)), sorted(set(y))
    expected = level_matrix(field, x, y, 1)
    np.testing.assert_array_equal(dense(level_table(field, x, y, threads), len(y)), expected)
    return expected


def some(values):
    return st.lists(values, min_size=1, max_size=12)


short = st.text(LETTERS, min_size=1, max_size=9)
long = st.builds(
    lambda piece, times, end: piece * times + end, st.text("ab", min_size=1, max_size=4),
    st.integers(15, 70), short,
)  # fmt: skip
rising = st.lists(st.sampled_from([0, 0.1, 0.2, 0.25, 1 / 3, 0.5, 0.7, 0.99, 1, 2]), min_size=1)
cuts_of_distances = rising.map(lambda cuts: sorted(set(cuts)))
cuts_of_similarities = st.lists(
    st.sampled_from([1, 0.96, 0.92, 0.8, 0.75, 2 / 3, 0.6, 0.5, 0.3, 0]), min_size=1
).map(lambda cuts: sorted(set(cuts), reverse=True))


# --- texts --------------------------------------------------------------------------------------


@pytest.mark.parametrize("comparison", [bl.levenshtein, bl.damerau_levenshtein])
@settings(deadline=None)  # the first call compiles
@given(x=some(short | long), y=some(short | long), cuts=cuts_of_distances)
def test_edit_distances(comparison, x, y, cuts):
    check(comparison("x", cuts=cuts), x, y)


@settings(deadline=None)  # the first call compiles
@given(x=some(short | long), y=some(short | long), cuts=cuts_of_similarities)
def test_jaro_winkler(x, y, cuts):
    check(bl.jaro_winkler("x", cuts=cuts), x, y)


def names(rng, n, letters, longest):
    lengths = rng.integers(1, longest + 1, n)
    return ["".join(rng.choice(letters, k)) for k in lengths]


@pytest.mark.parametrize(
    "field",
    [
        bl.levenshtein("x"),
        bl.levenshtein("x", cuts=(0, 0.2)),
        bl.damerau_levenshtein("x"),
        bl.jaro_winkler("x"),
        bl.jaro_winkler("x", cuts=(0.9, 0.6)),
    ],
    ids=lambda field: f"{field.kind} {field.cuts}",
)
def test_many_texts_in_pieces_and_threads(field, monkeypatch):
    """More than a block of one length, several pieces, several threads; pieces that are halved."""
    rng = np.random.default_rng(1)
    x, y = (sorted(set(names(rng, n, list("abcdeé"), 6))) for n in (900, 4000))
    assert max(np.bincount([len(value) for value in y])) > 512
    expected = level_matrix(field, x, y, 2)
    assert (expected > 1).sum() > 1000
    whole = level_table(field, x, y, 1)
    np.testing.assert_array_equal(dense(whole, len(y)), expected)
    monkeypatch.setattr(level_tables, "_ROWS", 100)
    for most in (1 << 23, 500):
        monkeypatch.setattr(level_tables, "_MAX_HITS", most)
        for threads in (1, 2):
            again = level_table(field, x, y, threads)
            for name in ("indptr", "indices", "levels"):
                np.testing.assert_array_equal(getattr(whole, name), getattr(again, name))


@pytest.mark.parametrize("lengths", [(64, 65), (127, 128), (128, 129), (130, 200)])
@pytest.mark.parametrize("letter_pairs", [1000, level_tables._LETTER_PAIRS])
def test_texts_about_as_long_as_a_word_and_as_the_longest_compared_by_bits(
    lengths, letter_pairs, monkeypatch
):
    """Long texts are few at a time, down to one with one."""
    monkeypatch.setattr(level_tables, "_LETTER_PAIRS", letter_pairs)
    rng = np.random.default_rng(2)
    made = ["".join(rng.choice(list("ab"), k)) for k in lengths for _ in range(6)]
    slips = [value[:20] + "c" + value[21:] for value in made]
    turned = [value[:9] + value[10] + value[9] + value[11:] for value in made]
    for field in (bl.levenshtein("x"), bl.damerau_levenshtein("x"), bl.jaro_winkler("x")):
        assert check(field, made, [*made, *slips, *turned, "a", "ab"]).max() == 4


# --- words --------------------------------------------------------------------------------------


@settings(deadline=None)  # the first call compiles
@given(
    x=some(st.text("ab  ", min_size=1, max_size=9)),
    y=some(st.text("ab  ", min_size=1, max_size=9)),
    cuts=cuts_of_similarities,
)
def test_sets_of_words(x, y, cuts):
    check(bl.tokens("x", cuts=cuts), x, y)


def test_many_sets_of_words(monkeypatch):
    rng = np.random.default_rng(3)
    words = np.array([f"w{k}" for k in range(40)])
    common = 1 / np.arange(1, 41)
    x, y = (
        sorted({" ".join(rng.choice(words, k, p=common / common.sum())) for k in sizes})
        for sizes in (rng.integers(1, 6, 800), rng.integers(1, 6, 1500))
    )
    check(bl.tokens("x"), x, y)
    monkeypatch.setattr(level_tables, "_MAX_HITS", 50)
    check(bl.tokens("x"), x, y, threads=2)


# --- numbers, dates, places ---------------------------------------------------------------------

numbers = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-60, 60).map(
    lambda n: n / 10
)
places = (
    st.tuples(st.floats(-90, 90), st.floats(-180, 180))
    | st.sampled_from([(90.0, 0.0), (90.0, 77.0), (-90.0, 1.0), (0.0, 180.0), (0.0, -180.0)])
    | st.tuples(st.integers(0, 30), st.integers(0, 30)).map(lambda p: (p[0] / 10, p[1] / 10))
)


@settings(deadline=None)  # the first call compiles
@given(
    x=some(numbers),
    y=some(numbers),
    cuts=cuts_of_distances | st.just((0, 1, 5)),
    relative=st.booleans(),
)
def test_numbers(x, y, cuts, relative):
    field = bl.numeric("x", cuts=cuts, relative=relative, valid=(None, None))
    check(field, x, [*y, *x, *(math.nextafter(v, 0) for v in x)])


days = st.dates(dt.date(1695, 1, 1), dt.date(2025, 12, 31))


def as_number(day):
    return day.year * 10000 + day.month * 100 + day.day


def real(number):
    try:
        return dt.date(number // 10000, number // 100 % 100, number % 100) is not None
    except ValueError:
        return False


def slipped(number):
    """Dates that a slip makes of another: a digit or two, day and month, a few days, a calendar."""
    digits = [number + d * 10**p for p in range(8) for d in range(-9, 10)]
    turned = number // 10000 * 10000 + number % 100 * 100 + number // 100 % 100
    text = f"{number:08}"
    exchanged = [int(text[:i] + text[i + 1] + text[i] + text[i + 2 :]) for i in range(7)]
    years = [number + step for step in (-100_000, -10_000, 10_000, 100_000)]
    slips = [*digits, turned, *exchanged, *years, *range(number - 3, number + 4)]
    if real(number):
        day = dt.date(number // 10000, number // 100 % 100, number % 100)
        slips += [as_number(day + dt.timedelta(days)) for days in (-14, -13, -12, 12, 13, 14)]
    return [n for n in slips if real(n)]


@settings(deadline=None)  # the first call compiles
@given(
    x=some(days.map(as_number)),
    y=some(days.map(as_number)),
    cuts=st.sampled_from([(0,), (0, 30), (2, 400), (0, 1, 45_000)]),
    slips=st.tuples(st.booleans(), st.booleans(), st.booleans()),
    calendar=st.booleans(),
)
def test_dates(x, y, cuts, slips, calendar):
    field = bl.date("x", cuts=cuts, swapped=slips[0], one_digit=slips[1], exchanged=slips[2])
    options = {**field.options, "calendar": calendar}
    field = relabelled(field, date_labels(field.cuts, options), options=options)
    check(field, x, [*y, *slipped(x[0])])
    year, month = x[0] // 10000 * 10000, x[0] // 100 * 100
    unsure = [year, month, year + 101, month + 50, year + 1399]  # and days that do not exist
    check(vague(field), [*x, *unsure], [*y, *slipped(x[0]), *unsure])


def vague(field):
    """The field with levels for dates that are not known to the day."""
    options = {**field.options, "partial": True, "filler": True}
    return relabelled(field, date_labels(field.cuts, options), options=options)


@settings(deadline=None)  # the first call compiles
@given(
    x=some(places),
    y=some(places),
    cuts=st.sampled_from([(0,), (0, 10), (5, 50), (100, 2000), (5, 20_015), (30_000,)]),
)
def test_places(x, y, cuts):
    check(bl.geo("lat", "lon", cuts=cuts), x, y)


def test_many_numbers_dates_and_places_in_pieces(monkeypatch):
    rng = np.random.default_rng(4)
    first = dt.date(1930, 1, 1).toordinal()
    born = [as_number(dt.date.fromordinal(first + int(d))) for d in rng.integers(0, 25_000, 1500)]
    spots = [(float(a), float(b)) for a, b in rng.normal((48, 2), 1, (1500, 2))]
    incomes = rng.lognormal(10, 1, 1500).round(1).tolist()
    monkeypatch.setattr(level_tables, "_CELLS", 2000)
    monkeypatch.setattr(level_tables, "_ROWS", 64)
    for threads in (1, 2):
        check(bl.date("x", cuts=(0, 30)), born[:700], born[700:], threads)
        check(vague(bl.date("x", cuts=(0, 30))), born[:700], [*born[700:], 19500000], threads)
        check(bl.geo("lat", "lon"), spots[:700], spots[700:], threads)
        check(bl.numeric("x", cuts=(0, 10, 500)), incomes[:700], incomes[700:], threads)
        check(bl.numeric("x", cuts=(0, 0.1), relative=True), incomes[:700], incomes[700:], threads)


# --- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("field", "values"),
    [
        (bl.levenshtein("x"), ["".join(p) for p in itertools.product("abc", repeat=5)]),
        (bl.tokens("x"), [f"a {k}" for k in range(300)]),
        (bl.numeric("x", cuts=(0, 1000)), [float(k) for k in range(300)]),
        (bl.geo("lat", "lon"), [(k / 10_000, 0.0) for k in range(300)]),
    ],
    ids=lambda case: case.kind if isinstance(case, bl.Field) else "",
)
def test_a_table_too_large_to_keep_is_refused(field, values, threads, monkeypatch):
    values = sorted(values)
    entries = len(level_table(field, values, values, threads).indices)
    monkeypatch.setattr(level_tables, "_ROWS", 20)
    monkeypatch.setattr(level_tables, "MAX_ENTRIES", entries)
    assert len(level_table(field, values, values, threads).indices) == entries
    monkeypatch.setattr(level_tables, "MAX_ENTRIES", entries - 1)
    with pytest.raises(SettingsError, match=r"distinct values in A .* stricter cuts"):
        level_table(field, values, values, threads)


def test_a_custom_function_is_not_called_without_end(monkeypatch):
    calls = []
    field = bl.custom("x", lambda x, y: calls.append(x) or 1)
    monkeypatch.setattr(level_tables, "MAX_CALLS", 6)
    level_table(field, ["a", "b"], ["a", "b", "c"])
    assert len(calls) == 6
    with pytest.raises(SettingsError, match="12 times; at most 6"):
        level_table(field, ["a", "b", "c"], ["a", "b", "c", "d"])
    assert len(calls) == 6


@pytest.mark.parametrize("kind", ["levenshtein", "tokens", "jaro_winkler", "exact"])
def test_no_values_on_one_side(kind):
    field = COMPARISONS[kind]("x")
    for x, y in (([], ["a"]), (["a"], []), ([], [])):
        table = level_table(field, x, y, 2)
        assert table.indptr.tolist() == [0] * (len(x) + 1)
        assert len(table.indices) == len(table.levels) == 0
