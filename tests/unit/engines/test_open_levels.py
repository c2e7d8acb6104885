"""Fields whose level table is not complete: the same pairs, levels and counts as with all of it."""

import datetime as dt
import itertools
import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import bayeslink as bl
from bayeslink.comparing import dictionaries, level_tables
from bayeslink.comparing.comparisons import level_matrix
from bayeslink.engines import joining, level_counts, open_levels
from bayeslink.engines import pattern_counts as counts
from bayeslink.engines.local import LocalPairs
from bayeslink.errors import TooManyPairsError
from bayeslink.pairs.source import LevelCounts, count_levels, sum_weights
from tests import oracles

LETTERS = list("abc ")


def a_function(x, y):
    return 1 + (x[0] == y[0]) + (x[0] == y[0] and len(x) == len(y)) if len(x) > 2 else 1


FIELDS = [
    bl.levenshtein("text"),
    bl.levenshtein("text", cuts=(0.2, 0.4, 0.6), name="never equal alone"),
    bl.levenshtein("text", bands=(0.1, 0.05), name="in bands"),
    bl.damerau_levenshtein("text", name="swaps"),
    bl.jaro_winkler("text", name="similar"),
    bl.jaro_winkler("text", cuts=(1, 0.7), bands=(0.08,), name="similar in bands"),
    bl.tokens("text", cuts=(1, 0.5, 0.2), bands=(0.1,), name="words"),
    bl.tokens("text", cuts=(0.5,), name="some words"),
    bl.numeric("number", cuts=(1, 5, 20), bands=(0.1,)),
    bl.date("day", cuts=(0, 30, 400)),
    bl.geo("north", "east", cuts=(100, 900, 3000)),
    bl.custom("text", a_function, levels=3, name="own"),
]


def random_rows(rng, n):
    first = dt.date(1980, 1, 1)

    def one():
        row = {
            "text": "".join(rng.choice(LETTERS, rng.integers(1, 9))).strip() or None,
            "number": str(rng.integers(0, 40)),
            "day": str(first + dt.timedelta(int(rng.integers(0, 700)))),
            "north": f"{rng.uniform(40, 60):.1f}",
            "east": f"{rng.uniform(0, 30):.1f}",
            "code": str(rng.integers(4)),
            "zone": str(rng.choice(["x", "y"])),
        }
        return {k: None if rng.random() < 0.1 else v for k, v in row.items()}

    return [one() for _ in range(n)]


def afford(monkeypatch, n_cuts):
    """Make all tables but those of so few cuts too costly, and those of equal values."""
    monkeypatch.setattr(dictionaries, "MAX_SECONDS", n_cuts)
    cost = lambda field, x, y: len(field.cuts) or 9.0 * (field.kind == "custom")  # noqa: E731
    monkeypatch.setattr(dictionaries, "table_seconds", cost)


def sample_values(monkeypatch, n):
    """Let open levels be estimated from so many values, however few pairs there are."""
    monkeypatch.setattr(open_levels, "COUNT_SECONDS", -1.0)
    monkeypatch.setattr(open_levels, "DRAWS", n)


def source(rows_a, rows_b, fields, block=(), threads=2):
    a, b = oracles.records(rows_a), oracles.records(rows_b, side="B")
    return LocalPairs(a, b, fields, [bl.exact(k) for k in block], workers=threads)


def by_loops(pairs, d, rows_a, rows_b):
    """Level of each pair in one field, from the definition."""
    base = np.zeros((len(d.a.values) + 1, len(d.b.values) + 1), int)
    if d.a.values and d.b.values:
        base[:-1, :-1] = level_matrix(d.field, d.a.values, d.b.values, 1)
    top, n_a, n_b = d.field.n_levels - len(d.field.bands), d.a.counts, d.b.counts
    out = np.zeros((rows_a, rows_b), np.uint8)
    for i, j in itertools.product(range(rows_a), range(rows_b)):
        x, y = d.a.codes[i], d.b.codes[j]
        level = base[x, y]
        if level == top:
            share = (n_a[x] + n_b[y]) / (n_a[:-1].sum() + n_b[:-1].sum())
            level += sum(share <= band for band in d.field.bands)
        out[i, j] = level
    return out


# --- the same as with whole tables --------------------------------------------------------------


@pytest.mark.parametrize("n_cuts", [0, 1, 2])
def test_every_comparison_equals_its_definition_whatever_is_left_open(n_cuts, monkeypatch):
    afford(monkeypatch, n_cuts)
    rng = np.random.default_rng(n_cuts)
    opened, listed = Counter(), 0
    for trial in range(30):
        n_a, n_b = rng.integers(1, 14, 2)
        rows_a, rows_b = random_rows(rng, n_a), random_rows(rng, n_b)
        chosen = [FIELDS[i] for i in rng.permutation(len(FIELDS))[: rng.integers(1, 5)]]
        fields, block = [*chosen, bl.exact("code")], ((), ("zone",))[trial % 2]
        pairs = source(rows_a, rows_b, fields, block)
        opened.update({d.field.name: d.open for d in pairs.dictionaries if d.open > 1})
        in_scope = [
            (i, j) for i, j in itertools.product(range(n_a), range(n_b))
            if all(rows_a[i][k] and rows_a[i][k] == rows_b[j][k] for k in block)
        ]  # fmt: skip
        a, b = np.array(in_scope, np.int32).reshape(-1, 2).T
        levels = np.stack(
            [by_loops(pairs, d, n_a, n_b)[a, b] for d in pairs.dictionaries], 1
        ).astype(np.uint8)
        np.testing.assert_array_equal(pairs.levels_of(a.copy(), b.copy()), levels)
        found = pairs.level_counts()
        assert found.exact
        for j in range(len(fields)):
            expected = np.bincount(levels[:, j], minlength=found.counts.shape[1])
            np.testing.assert_array_equal(found.counts[j], expected)
        patterns = pairs.pattern_counts()
        assert patterns.exact
        assert Counter(map(tuple, levels.tolist())) == dict(
            zip(map(tuple, patterns.levels.tolist()), patterns.counts.tolist(), strict=True)
        )
        for _ in range(4):
            weights = rng.uniform(-6, 6, found.counts.shape)
            if rng.random() < 0.5:
                weights = np.sort(weights, axis=1)
            sums = sum_weights(weights, levels)
            threshold = float(rng.choice(sums) if len(sums) else 0)
            above = pairs.pairs_above(weights, threshold)
            keep = sums > threshold
            assert above.a.tolist() == a[keep].tolist()
            assert above.b.tolist() == b[keep].tolist()
            np.testing.assert_array_equal(above.levels, levels[keep])
            listed += len(above)
    assert listed > 250
    assert len(opened) == {0: 12, 1: 11, 2: 10}[n_cuts]


def test_equal_values_are_known_where_equality_is_a_level_of_its_own(monkeypatch):
    afford(monkeypatch, 1)
    rows = random_rows(np.random.default_rng(1), 30)
    pairs = source(rows[:20], rows[10:], FIELDS)
    opened = {d.field.name: d.open for d in pairs.dictionaries}
    assert opened["text"] == opened["swaps"] == opened["similar"] == 3
    assert opened["in bands"] == 3  # of 4 + 2
    assert opened["some words"] == 1
    assert opened["own"] == 3


def test_threads_row_order_and_which_file_is_a_make_no_difference(monkeypatch):
    afford(monkeypatch, 1)
    sample_values(monkeypatch, 30)
    rng = np.random.default_rng(2)
    rows_a, rows_b = random_rows(rng, 150), random_rows(rng, 80)
    fields = [f for f in FIELDS if f.kind not in ("jaro_winkler", "custom")]
    for block in ((), ("zone",)):
        one = source(rows_a, rows_b, fields, block, threads=1)
        others = [
            source(rows_a, rows_b, fields, block, threads=2),
            source(rows_a[::-1], [rows_b[i] for i in rng.permutation(80)], fields, block),
            source(rows_b, rows_a, fields, block),
        ]
        expected = one.level_counts()
        assert not expected.exact
        for other in others:
            found = other.level_counts()
            assert found.sampled == expected.sampled
            np.testing.assert_array_equal(found.counts, expected.counts)
            np.testing.assert_array_equal(found.standard_errors, expected.standard_errors)


# --- what is left open --------------------------------------------------------------------------


def texts(rng, n, longest=7):
    return sorted({"".join(rng.choice(list("abcdef"), k)) for k in rng.integers(1, longest, n)})


def test_the_levels_that_would_not_fit_are_left_open(monkeypatch):
    x, y = (texts(np.random.default_rng(seed), 600) for seed in (1, 2))
    field = bl.levenshtein("x")
    whole = level_tables.level_table(field, x, y)
    at_least = {h: int((whole.levels >= h).sum()) for h in (2, 3, 4)}
    assert at_least[2] > 4 * at_least[3] > 16 * at_least[4]
    for h in (2, 3):
        monkeypatch.setattr(level_tables, "MAX_ENTRIES", at_least[h] - 1)
        table, left_open = dictionaries._affordable_table(field, x, y, 1, None)
        assert left_open == h
        kept = whole.levels > h
        np.testing.assert_array_equal(table.levels, whole.levels[kept])
        np.testing.assert_array_equal(table.indices, whole.indices[kept])
    monkeypatch.setattr(level_tables, "MAX_ENTRIES", 2 * at_least[2])
    assert dictionaries._affordable_table(field, x, y, 1, None)[1] == 1


def test_a_table_that_is_larger_than_expected_is_given_up(monkeypatch):
    x, y = (texts(np.random.default_rng(seed), 600) for seed in (1, 2))
    field = bl.levenshtein("x")
    whole = level_tables.level_table(field, x, y)
    monkeypatch.setattr(dictionaries, "_expected_entries", lambda *_: np.zeros(6))
    monkeypatch.setattr(level_tables, "MAX_ENTRIES", len(whole.levels) - 1)
    assert dictionaries._affordable_table(field, x, y, 1, None)[1] == 2


def test_how_large_a_table_will_be_is_known_from_some_of_its_rows():
    x, y = (texts(np.random.default_rng(seed), 3000) for seed in (1, 2))
    field = bl.levenshtein("x")
    table = level_tables.level_table(field, x, y)
    expected = dictionaries._expected_entries(field, x, y, 1)
    for h in (2, 3):
        assert expected[h:].sum() == pytest.approx((table.levels >= h).sum(), rel=0.2)


def test_the_work_is_estimated_by_lengths_and_cuts():
    short, long = ["a" * 8] * 10, ["a" * 80] * 10
    seconds = dictionaries.table_seconds
    assert seconds(bl.levenshtein("x", cuts=(0,)), long, long) == 0
    assert seconds(bl.numeric("x"), [1.0], [2.0]) == 0
    for field in (bl.levenshtein("x"), bl.jaro_winkler("x")):
        assert seconds(field, long, long) > 10 * seconds(field, short, short) > 0
    strict, loose = bl.levenshtein("x", cuts=(0, 0.1)), bl.levenshtein("x")
    assert seconds(loose, long, long) > 3 * seconds(strict, long, long)
    assert seconds(loose, short, long) == 0  # no such length within the cuts
    many = bl.custom("x", a_function)
    assert seconds(many, range(10_000), range(10_000)) == pytest.approx(dictionaries.MAX_SECONDS)


# --- level counts from a sample -----------------------------------------------------------------


@pytest.fixture
def half_open(monkeypatch):
    afford(monkeypatch, 1)
    rng = np.random.default_rng(3)
    rows_a, rows_b = random_rows(rng, 260), random_rows(rng, 120)
    fields = [bl.levenshtein("text"), bl.tokens("text", cuts=(0.6, 0.3), name="words")]
    return source(rows_a, rows_b, fields, ("zone",), threads=1)


def test_sampled_counts_have_no_bias_and_the_errors_they_say(half_open, monkeypatch):
    """Over many samples: the mean is right within its own error, and so is the stated error."""
    truth = half_open.level_counts()
    assert truth.exact
    monkeypatch.setattr(open_levels, "DRAWS", 40)
    for j, d in enumerate(half_open.dictionaries):
        told = half_open._told_counts.counts[j]
        true = truth.counts[j, 2 : d.open + 1] - told[2 : d.open + 1]
        drawn = [open_levels.sample_levels(d, half_open.tables, 1, seed) for seed in range(400)]
        assert {n for *_, n in drawn} == {40}
        estimates = np.array([e[2:] for e, _, _ in drawn])
        errors = np.array([e[2:] for _, e, _ in drawn])
        spread = estimates.std(0, ddof=1)
        z = (estimates.mean(0) - true) / (spread / np.sqrt(400))
        assert (abs(z) < 3.5).all()
        assert np.sqrt((errors**2).mean(0)) == pytest.approx(spread, rel=0.15)
        covered = (abs(estimates - true) < 1.96 * errors).mean(0)
        assert ((covered > 0.9) & (covered < 0.98)).all()


def test_sampled_counts_add_up_and_leave_room_for_the_links(half_open, monkeypatch):
    sample_values(monkeypatch, 5)
    found = open_levels.estimate_levels(
        half_open.dictionaries, half_open.tables, half_open._told_counts, half_open.levels_of, 1
    )
    assert not found.exact
    assert found.sampled == (5, 5)
    assert (found.counts.sum(1) == half_open.n_pairs).all()
    floor = half_open.scope.max_links
    for j, d in enumerate(half_open.dictionaries):
        assert (found.counts[j, 2 : d.open + 1] >= floor).all()
        assert (found.standard_errors[j, :1] == 0).all()
        assert (found.standard_errors[j, d.open + 1 :] == 0).all()


@pytest.mark.parametrize("block", [(), ("zone",)])
def test_open_levels_are_counted_where_pairs_are_few(block, monkeypatch):
    afford(monkeypatch, 1)
    monkeypatch.setattr(open_levels, "DRAWS", 5)
    monkeypatch.setattr(level_counts, "_PIECE", 300)
    rng = np.random.default_rng(7)
    rows_a, rows_b = random_rows(rng, 90), random_rows(rng, 70)
    pairs = source(rows_a, rows_b, FIELDS, block)
    found = pairs.level_counts()
    assert found.exact
    assert found.sampled == (0,) * len(FIELDS)
    assert not found.standard_errors.any()
    every = pairs.pairs_above(np.zeros(found.counts.shape), -1.0)
    assert len(every) == pairs.n_pairs
    np.testing.assert_array_equal(found.counts, count_levels(every.levels, found.counts.shape[1]))
    assert pairs.describe().notes == ()


def two_pairs_a_record(n=300):
    """Files of which half the pairs in scope are links, all of them at an open level."""
    rng = np.random.default_rng(8)
    letters = list("abcdefghij")
    words = ["".join(rng.choice(letters, 8)) for _ in range(2 * n)]
    misspelt = [f"{w[:3]}{rng.choice(letters)}{w[4:]}" for w in words]
    files = [
        {"id": [f"{side}{i}" for i in range(n)], "first": w[:n], "second": w[n:],
         "zone": [str(i // 2) for i in range(n)]}
        for side, w in (("a", words), ("b", misspelt))
    ]  # fmt: skip
    fields = [bl.levenshtein("first"), bl.levenshtein("second")]
    return [pa.table(file) for file in files], fields


@pytest.mark.parametrize("draws", [5, 60])
@pytest.mark.parametrize("n_known", [0, 200])
def test_sampled_counts_below_those_of_the_links_do_no_harm(draws, n_known, monkeypatch):
    """Counts from a sample say that there are fewer pairs at a level than links."""
    afford(monkeypatch, 1)
    sample_values(monkeypatch, draws)
    (a, b), fields = two_pairs_a_record()
    known = [(f"a{i}", f"b{i}") for i in range(100, 100 + n_known)]
    run = bl.link(a, b, fields, block=["zone"], draws=50, tune=20, known_links=known)
    found = run.pairs.level_counts()
    assert not found.exact
    linked = count_levels(run.fit.linked.levels, found.counts.shape[1])
    assert (linked > found.counts).any()
    assert run.fit.n_links > 280
    used = run.fit.parameters.used
    for parameters in (run.fit.parameters, run.parameters):
        assert (parameters.u[used] > 0).all()
        np.testing.assert_allclose(np.where(used, parameters.u, 0).sum(1), 1)
    assert run.posterior.n_links.mean() > 280


def test_a_run_says_what_is_estimated(people, open_street, monkeypatch, tmp_path):
    sample_values(monkeypatch, 200)
    run = bl.link(people.a, people.b, on_fields(), id="id", point=True, threads=2)
    estimated = [w for w in run.warnings if "estimated from 200 values" in w]
    assert len(estimated) == 1
    assert "'street'" in estimated[0]
    run.save(tmp_path / "run")
    told = {f["name"]: f for f in json.loads((tmp_path / "run" / "run.json").read_text())["fields"]}
    assert "open_levels" not in told["gname"]
    assert told["street"]["open_levels"] == ["distance > 0.5", "distance ≤ 0.5", "distance ≤ 0.25"]
    assert told["street"]["values_drawn"] == 200
    errors = told["street"]["standard_errors"]
    assert errors[1] > errors[3] > 0 == errors[4]


def test_a_function_is_called_for_few_pairs_where_it_may_not_be_for_all(monkeypatch):
    calls = []

    def watched(x, y):
        calls.append((x, y))
        return 1 + (x[0] == y[0])

    monkeypatch.setattr(level_tables, "MAX_CALLS", 5000)
    sample_values(monkeypatch, 20)
    rng = np.random.default_rng(4)
    rows_a, rows_b = ([{"x": t, "y": t[-1]} for t in texts(rng, 200)] for _ in range(2))
    pairs = source(rows_a, rows_b, [bl.custom("x", watched), bl.exact("y")], ("y",))
    assert len(calls) < 200  # equal values
    pairs.level_counts()
    assert len(calls) <= 200 + 30 * len(rows_b)
    calls.clear()
    listed = pairs.pairs_above(np.array([[0, -1, 4.0], [0, -1, 1.0]]), 3)
    assert (listed.levels[:, 0] == 2).all()
    assert 0 < len(listed) < len(calls) <= pairs.n_pairs
    assert len(set(calls)) == len(calls)


# --- search and patterns ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def people():
    return bl.simulate(2500, overlap=0.5, errors=2, seed=8)


def on_fields():
    return [
        bl.levenshtein("gname"), bl.levenshtein("fname"), bl.date("dob", cuts=(0, 30)),
        bl.exact("postcode"),
        bl.levenshtein("street"),
    ]  # fmt: skip


@pytest.fixture
def open_street(monkeypatch):
    """Let the table of streets have equal values only."""
    seconds = dictionaries.table_seconds

    def with_streets(field, x, y):
        too_much = field.name == "street" and len(field.cuts) > 1
        return 1e9 if too_much else seconds(field, x, y)

    monkeypatch.setattr(dictionaries, "table_seconds", with_streets)


@pytest.fixture(scope="module")
def whole(people):
    return bl.compare(people.a, people.b, on_fields(), id="id", threads=2)


@pytest.fixture
def street_open(people, whole, open_street):
    return whole, bl.compare(people.a, people.b, on_fields(), id="id", threads=2)


def test_a_fit_with_an_open_field_is_as_good(people, street_open, monkeypatch):
    whole, part = street_open
    monkeypatch.setattr(open_levels, "DRAWS", 500)
    assert [d.open for d in part.dictionaries] == [1, 1, 1, 1, 3]
    first, second = bl.fit_penalized(whole), bl.fit_penalized(part)
    scores = [bl.evaluate(fit.links, people.truth) for fit in (first, second)]
    assert scores[1].f1 == pytest.approx(scores[0].f1, abs=0.005)
    again = part.find(
        list(zip(*(second.links[c].to_pylist() for c in ("id_a", "id_b")), strict=True))
    )
    np.testing.assert_array_equal(again.levels, second.linked.levels)


def test_the_plan_says_that_a_field_is_open(street_open):
    _, part = street_open
    weights = np.array(
        [
            [0, -1.2, 0.9, 4.9, 5.3, 0, 0],
            [0, -2.3, 0.8, 5.8, 6.5, 0, 0],
            [0, -1.5, 0.9, 4.9, 4.9, 7.3, 9.6],
            [0, -1.6, 3.2, 0, 0, 0, 0],
            [0, -2, 1, 2.5, 6, 0, 0],
        ]
    )
    assert part.plan(weights, 9.0).bounds == {"street": 2.5}
    listed = part.pairs_above(weights, 9.0)
    plan = part.last_plan
    assert plan.bounds == {"street": 2.5}
    assert len(listed) == plan.listed < plan.settled < plan.visited
    assert "street" in str(plan)
    assert f"told in {plan.settled:,} pairs" in str(plan)
    assert plan.summary()["settled"] == plan.settled


def test_too_long_a_list_is_refused_before_the_work(street_open, monkeypatch):
    _, part = street_open
    weights = np.zeros((5, 7))
    weights[:, 2:] = 3
    monkeypatch.setattr(open_levels, "MAX_SETTLED", 50_000)
    found = []
    run = joining._run
    monkeypatch.setattr(joining, "_run", lambda *args: found.append(args) or run(*args))
    with pytest.raises(TooManyPairsError, match=r"'street' are too many .* blocking key"):
        part.pairs_above(weights, 2.0)
    assert not found
    monkeypatch.setattr(open_levels, "expected_above", lambda *_: 0.0)
    with pytest.raises(TooManyPairsError, match="50,000 pairs"):
        part.pairs_above(weights, 2.0)
    assert found


def test_expected_pairs_are_those_of_independent_fields():
    rng = np.random.default_rng(5)
    table = np.zeros((3, 4), int)
    table[:, 1:] = rng.multinomial(1000, [0.9, 0.07, 0.03], 3)
    weights = rng.integers(-3, 6, (3, 4)).astype(float)
    by_hand = sum(
        np.prod([table[j, h] / 1000 for j, h in enumerate(levels)]) * 1000
        for levels in itertools.product((1, 2, 3), repeat=3)
        if sum(weights[j, h] for j, h in enumerate(levels)) > 2
    )
    found = open_levels.expected_above(weights, LevelCounts(table, 1000), 2.0)
    assert found == pytest.approx(by_hand)


def test_sampled_patterns_with_an_open_field_are_right_within_their_errors(
    street_open, monkeypatch
):
    whole, part = street_open
    exact = whole.pattern_counts()
    monkeypatch.setattr(counts, "COMPARED", 300_000)
    monkeypatch.setattr(counts, "LISTED", 3000)
    found = part.pattern_counts()
    assert found.sampled == 300_000
    assert found.counts.sum() == part.n_pairs
    coding = counts.Coding.of(part.fields)
    truth = dict(zip(coding.codes(exact.levels).tolist(), exact.counts.tolist(), strict=True))
    true = np.array([truth[c] for c in coding.codes(found.levels).tolist()])
    often = true > 20 * part.n_pairs / found.sampled
    z = (found.counts - true)[often] / np.maximum(found.standard_errors[often], 1e-9)
    drawn = found.standard_errors[often] > 0
    assert drawn.sum() > 20
    assert (found.counts == true)[often][~drawn].all()
    assert abs(z[drawn]).max() < 5
    assert 0.7 < np.sqrt(np.mean(z[drawn] ** 2)) < 1.3


def test_levels_beside_each_other_are_those_of_the_matrix():
    rng = np.random.default_rng(6)
    x, y = ([w for w in texts(rng, 90, 12) if w][:60] for _ in range(2))
    for field in FIELDS:
        if field.columns[0] == ("text",):
            n = min(len(x), len(y))
            beside = open_levels.levels_beside(field, x[:n], y[:n])
            whole = level_matrix(replace(field, bands=()), x[:n], y[:n], 1)
            np.testing.assert_array_equal(beside, np.diag(whole))


def test_the_whole_path_and_em_with_an_open_field(monkeypatch):
    """Nearly the same answers as with the whole table, and a note that says what was sampled."""
    made = bl.simulate(400, seed=6)
    fields = [
        bl.levenshtein("gname"),
        bl.levenshtein("fname"),
        bl.date("dob", cuts=(0, 30)),
        bl.exact("sex"),
    ]
    whole = bl.link(made.a, made.b, fields, structure="independent", draws=200, tune=100)
    em = bl.fit_em(whole.pairs)
    monkeypatch.setattr(dictionaries, "MAX_SECONDS", 2)
    monkeypatch.setattr(dictionaries, "table_seconds", lambda field, x, y: len(field.cuts))
    run = bl.link(made.a, made.b, fields, structure="independent", draws=200, tune=100)
    assert [d.open for d in run.pairs.dictionaries[:2]] == [2, 2]
    assert not whole.pairs.open_fields
    assert run.fit.n_links == pytest.approx(whole.fit.n_links, abs=3)
    low, high = whole.posterior.interval()
    assert low - 3 <= run.posterior.n_links.mean() <= high + 3
    found = bl.fit_em(run.pairs)
    assert found.sampled == run.pairs.pattern_counts().sampled
    np.testing.assert_allclose(found.parameters.m, em.parameters.m, atol=0.02)
