"""One file compared with itself: what no two files show. The rest is in `tests/contract`."""

import itertools

import numpy as np
import pyarrow as pa
import pytest

import bayeslink as bl
from bayeslink.comparing import dictionaries
from bayeslink.comparing.catalogue import COMPARISONS
from bayeslink.engines import arrays, missing, open_levels, search
from bayeslink.engines import pattern_counts as counts
from bayeslink.engines.compare import compare_one
from bayeslink.errors import SettingsError
from bayeslink.pairs.source import sum_weights

WORDS = ["ann", "anna", "anna maria", "hanna", "bob", "bobby", "li", "12", "12a", "121", None]


def table(n=60, seed=1, **columns):
    rng = np.random.default_rng(seed)
    drawn = {
        name: pa.array([values[i] for i in rng.integers(0, len(values), n)], pa.string())
        for name, values in columns.items()
    }
    return pa.table({"id": [f"r{i}" for i in range(n)], **drawn})


def pairs_of(n):
    return tuple(x.astype(np.int32) for x in np.triu_indices(n, 1))


# --- levels ---------------------------------------------------------------------------------------


def starts(x, y):
    """A function of two values for which it matters which comes first."""
    return 3 if y.startswith(x) else 2 if x.startswith(y) else 1


@pytest.mark.parametrize("made", ["whole tables", "open levels"])
def test_the_smaller_value_comes_first(made, monkeypatch):
    if made == "open levels":
        monkeypatch.setattr(dictionaries, "MAX_SECONDS", 0)
        monkeypatch.setattr(dictionaries, "table_seconds", lambda *_: 1.0)
    rows = table(x=WORDS)
    source = bl.compare(rows, fields=[bl.custom("x", starts, levels=3)])
    a, b = pairs_of(60)
    x = rows["x"].to_pylist()
    wanted = [
        0 if x[i] is None or x[j] is None else starts(*sorted([x[i], x[j]]))
        for i, j in zip(a.tolist(), b.tolist(), strict=True)
    ]
    assert 2 not in wanted
    assert source.levels_of(a, b)[:, 0].tolist() == wanted
    assert source.levels_of(b, a)[:, 0].tolist() == wanted
    assert source.level_counts().counts[0].tolist() == np.bincount(wanted, minlength=4).tolist()
    assert (
        source.pattern_counts().counts.tolist() == np.unique(wanted, return_counts=True)[1].tolist()
    )
    found = source.pairs_above(np.array([[0, -1.0, 0.5, 2.0]]), 0.2)
    assert found.numbered(60).tolist() == (a * 60 + b)[np.array(wanted) > 1].tolist()


SAMPLES = {
    "numeric": ["1", "1.5", "2", "7", "100", None],
    "date": ["1950-01-01", "1950-01-02", "1950-10-02", "1951-01-01", "1950-02-01", "1950", None],
    "geo": ["48.1", "48.2", "48.3", "49", None],
    "email": ["ann@x.org", "ann.li@x.org", "anne@x.org", "bob@y.org", None],
    "phone": ["+43 1 234567", "0043 1 234567", "234567", "1 234568", None],
    "postcode": ["1010", "1011", "1100", "8010", None],
}


@pytest.mark.parametrize("kind", sorted(set(COMPARISONS) - {"custom", "person_name"}))
def test_no_other_comparison_hangs_on_the_order(kind):
    values = SAMPLES.get(kind, WORDS)
    rows = table(x=values, y=values)
    field = bl.geo("x", "y") if kind == "geo" else COMPARISONS[kind]("x")
    one = bl.compare(rows, fields=[field])
    two = bl.compare(rows, rows.slice(0), [field])
    a, b = pairs_of(60)
    if one.fields[0].labels == two.fields[0].labels:  # what is left to the data may differ
        assert (two.levels_of(a, b) == two.levels_of(b, a)).all()
        assert (one.levels_of(a, b) == two.levels_of(a, b)).all()
    assert (one.levels_of(a, b) == one.levels_of(b, a)).all()
    levels = one.levels_of(a, b)[:, 0]
    assert (
        one.level_counts().counts[0].tolist()
        == np.bincount(levels, minlength=one.fields[0].n_levels + 1).tolist()
    )


def test_what_is_left_to_the_data_leaves_a_record_with_itself_out():
    """All values are distinct, so that the only equal pairs would be those."""
    rows = pa.table({"id": [str(i) for i in range(400)], "x": [str(i) for i in range(400)]})
    assert bl.compare(rows, fields=[bl.exact("x", bands="auto")]).fields[0].n_levels == 2
    assert bl.compare(rows, fields=[bl.exact("x")]).level_counts().counts[0].tolist() == [
        0,
        79_800,
        0,
    ]


# --- searches and samples -------------------------------------------------------------------------


def test_pairs_that_are_caught_twice(monkeypatch):
    """Values so common that candidates are put into lists: see `engines.search`."""
    monkeypatch.setattr(arrays, "_SCANNED", 0.0)
    monkeypatch.setattr(search, "_SCAN_FROM", np.inf)
    monkeypatch.setattr(search, "_TWICE_FROM", 0.0)
    monkeypatch.setattr(search, "_FREQUENT", 0.0)
    monkeypatch.setattr(search, "_TWICE_UP_TO", np.inf)
    monkeypatch.setattr(missing, "_ALL_CLASSES", 2)
    rng, twice = np.random.default_rng(4), 0
    codes = [str(k) for k in range(40)]
    rows = table(500, x=["u", "v", None], y=["u", "v", "w"], name=WORDS, code=codes, other=codes)
    fields = [
        bl.exact("x"),
        bl.exact("y"),
        bl.levenshtein("name"),
        bl.exact("code"),
        bl.exact("other"),
    ]
    source = bl.compare(rows, fields=fields)
    a, b = pairs_of(500)
    levels = source.levels_of(a, b)
    for _ in range(12):
        weights = np.sort(rng.uniform(-4, 6, (5, 5)), axis=1)
        weights[:, 0] = 0
        threshold = float(rng.uniform(4, 12))
        problem = source._problem(weights, threshold)
        joins = search.make_joins(problem, search.choose_caps(problem))
        twice += sum(len(join.seconds) > 0 for join in joins)
        wanted = sum_weights(weights, levels) > threshold
        found = source.pairs_above(weights, threshold)
        assert found.numbered(500).tolist() == (a.astype(np.int64) * 500 + b)[wanted].tolist()
        assert (found.levels == levels[wanted]).all()
    assert twice > 5


def test_a_search_visits_half_the_pairs():
    rows = bl.simulate(2000, overlap=0.5, seed=3).a
    fields = [bl.levenshtein("gname"), bl.levenshtein("fname"), bl.exact("postcode")]
    weights = np.array([[0, -1, 1, 4, 5.0], [0, -2, 1, 5, 6], [0, -1, 3, 0, 0]])
    visited = []
    for source in (bl.compare(rows, fields=fields), bl.compare(rows, rows.slice(0), fields)):
        source.pairs_above(weights, 7.0)
        visited.append(source.last_plan.visited)
    assert visited[0] < 0.52 * visited[1]


def test_sampled_patterns_of_one_file_come_near(monkeypatch):
    rows = table(2000, x=["u", "v", "w", None], name=WORDS)
    fields = [bl.exact("x"), bl.levenshtein("name")]
    whole = bl.compare(rows, fields=fields).pattern_counts()
    monkeypatch.setattr(counts, "MAX_VISITS", 0)
    monkeypatch.setattr(counts, "LISTED", 10_000)
    monkeypatch.setattr(counts, "SAMPLE", 100_000)
    monkeypatch.setattr(counts, "MAX_OF_RECORDS", 200_000)
    part = bl.compare(rows, fields=fields)
    found = part.pattern_counts()
    assert found.sampled
    assert found.counts.sum() == whole.counts.sum() == part.n_pairs
    by_levels = dict(zip(map(tuple, whole.levels.tolist()), whole.counts.tolist(), strict=True))
    true = np.array([by_levels[tuple(v)] for v in found.levels.tolist()])
    assert (np.abs(found.counts - true) <= 5 * np.maximum(found.standard_errors, 1) + 1).all()
    some = part.pattern_counts([0])
    exact = bl.compare(rows, fields=fields).level_counts().counts[0, :3]
    assert some.sampled
    assert some.counts.sum() == part.n_pairs
    errors = np.maximum(some.standard_errors, 1)
    assert (np.abs(some.counts - exact) <= 5 * errors).all()


def test_sampled_open_levels_of_one_file_come_near(monkeypatch):
    rng = np.random.default_rng(5)
    names = ["".join(rng.choice(list("abcd"), 6)) for _ in range(400)]
    rows = table(1500, name=names, code=["1", "2"])
    exact = bl.compare(rows, fields=[bl.levenshtein("name")]).level_counts()
    monkeypatch.setattr(dictionaries, "MAX_SECONDS", 0)
    monkeypatch.setattr(dictionaries, "table_seconds", lambda *_: 1.0)
    monkeypatch.setattr(open_levels, "COUNT_SECONDS", 0)
    source = bl.compare(rows, fields=[bl.levenshtein("name")])
    every = source.level_counts()
    assert every.exact
    assert every.counts.tolist() == exact.counts.tolist()
    monkeypatch.setattr(open_levels, "DRAWS", 100)
    monkeypatch.setattr(open_levels, "_DRAW_SECONDS", 1e9)
    some = bl.compare(rows, fields=[bl.levenshtein("name")]).level_counts()
    assert not some.exact
    assert some.counts.sum() == exact.counts.sum()
    away = np.abs(some.counts - exact.counts)[0, 1:4]
    assert (away <= 5 * np.maximum(some.standard_errors[0, 1:4], 1)).all()
    assert some.counts[0, 4] >= exact.counts[0, 4]  # never fewer than there can be links


# --- whatever the order of rows -------------------------------------------------------------------


def test_the_order_of_rows_changes_nothing():
    rows = table(80, name=WORDS, code=["1", "2", "3"], zone=["x", "y"])
    order = np.random.default_rng(2).permutation(80)
    fields = [bl.levenshtein("name"), bl.exact("code")]
    one, two = (bl.compare(t, fields=fields, block=["zone"]) for t in (rows, rows.take(order)))
    uniforms = np.random.default_rng(3).random((200, 3))
    for field, level in ((-1, 0), (0, 2), (0, 4), (1, 2)):
        drawn = []
        for source in (one, two):
            a, b = source.draw_pairs(field, level, uniforms)
            assert ((a < b) | (a < 0)).all()
            ids = [source.ids(0, np.maximum(x, 0)).to_pylist() for x in (a, b)]
            drawn.append([{x, y} if i >= 0 else None for x, y, i in zip(*ids, a, strict=True)])
        assert drawn[0] == drawn[1]
    assert one.level_counts().counts.tolist() == two.level_counts().counts.tolist()


# --- what is asked --------------------------------------------------------------------------------


def test_compare_without_b_is_compare_one():
    rows = table(x=WORDS)
    one, other = bl.compare(rows, fields=[bl.exact("x")]), compare_one(rows, [bl.exact("x")])
    assert one.level_counts().counts.tolist() == other.level_counts().counts.tolist()
    assert "60 records of one file, 1,770 pairs in scope" in repr(one)
    assert len(one.describe().inputs) == 1
    assert not any("A and B" in warning for warning in one.describe().warnings)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({}, "compare needs fields"),
        ({"fields": [bl.exact("x", columns=("x", "y"))]}, "field 'x'"),
        ({"fields": [bl.exact("x")], "block": [("x", "y")]}, "field 'x'"),
        ({"fields": [bl.exact("x")], "id": ("id", "x")}, "id: two are given"),
    ],
)
def test_what_is_said_of_two_files_is_refused(options, why):
    with pytest.raises(SettingsError, match=why):
        bl.compare(table(x=WORDS, y=WORDS), **options)


def test_copies_and_plain_loops_agree_within_a_blocking_key():
    rows = table(100, x=WORDS, zone=["p", "q", None])
    source = bl.compare(rows, fields=[bl.exact("x")], block=["zone"])
    zone = rows["zone"].to_pylist()
    wanted = [
        (i, j) for i, j in itertools.combinations(range(100), 2) if zone[i] and zone[i] == zone[j]
    ]
    found = source.pairs_above(np.zeros((1, 3)), -1.0)
    assert list(zip(found.a.tolist(), found.b.tolist(), strict=True)) == wanted
    assert source.copies[0] is source.copies[1]
