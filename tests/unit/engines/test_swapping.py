"""Swapped names, against plain loops over all pairs."""

import itertools
from contextlib import ExitStack
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

import bayeslink as bl
from bayeslink.engines import swapping, swaps
from bayeslink.engines.swapping import SwappedNames
from bayeslink.pairs.source import sum_weights

FIELDS = [bl.levenshtein("given"), bl.levenshtein("family"), bl.exact("town")]
NAMES = ["anna", "berta", "clara", "dora", "emil", "frieda", "gustav", "hanna"]
FAMILIES = ["maier", "huber", "schmid", "wagner", "gruber", "berger", "fuchs", None]


def records(n=60, seed=1):
    """Two files of the same people; in B every fourth has its names swapped."""
    rng = np.random.default_rng(seed)
    a, b = [], []
    for i in range(n):
        given, family = str(rng.choice(NAMES)), FAMILIES[rng.integers(8)]
        town = str(rng.integers(4))
        a.append({"id": f"a{i:02}", "given": given, "family": family, "town": town})
        other = {"given": given, "family": family, "town": town}
        if i % 4 == 0:
            other["given"], other["family"] = family, given
        if i % 12 == 0 and other["family"]:
            other["family"] = other["family"][:-1] + "x"
        b.append({"id": f"b{i:02}", **other})
    return a, b


def compared(rows_a, rows_b, **options):
    tables = [pa.Table.from_pylist(rows) for rows in (rows_a, rows_b)]
    return bl.compare(*tables, FIELDS, swapped_names=True, **options)


def expected(a, b):
    """0: as it stands; 1: half swapped; 2: swapped."""
    if any(a[c] is not None and a[c] == b[c] for c in ("given", "family")):
        return 0
    found = 0
    for one, other in (("given", "family"), ("family", "given")):
        if a[one] is None or a[one] != b[other]:
            continue
        x, y = a[other], b[one]
        if x is None or y is None:
            found = max(found, 1)
        elif x[:3] == y[:3] or x[-3:] == y[-3:]:
            found = 2
    return found


@pytest.fixture(scope="module", params=["all listed", "few listed"])
def case(request):
    rows_a, rows_b = records()
    plain = bl.compare(*(pa.Table.from_pylist(rows) for rows in (rows_a, rows_b)), FIELDS)
    if request.param == "all listed":
        source = compared(rows_a, rows_b)
        assert source.n_exceptions == len(source.exceptions)
    else:
        with (
            patch.object(swapping, "_LISTED_A_RECORD", 0.7),
            patch.object(swaps, "_AT_A_TIME", 50),
        ):
            source = compared(rows_a, rows_b)
        assert 0 < len(source.exceptions) < source.n_exceptions
    return rows_a, rows_b, source, plain


def all_levels(source):
    a, b = (x.ravel().astype(np.int32) for x in np.indices((source.n_a, source.n_b)))
    return source.levels_of(a, b).reshape(source.n_a, source.n_b, -1)


def test_exceptions_are_what_plain_loops_find(case):
    rows_a, rows_b, source, plain = case
    assert isinstance(source, SwappedNames)
    found, usual = all_levels(source), all_levels(plain)
    assert source.fields[0].labels[-3:] == (
        "half swapped with family", "swapped with family", "equal"
    )  # fmt: skip
    n = [0, 0, 0]
    for (i, a), (j, b) in itertools.product(enumerate(rows_a), enumerate(rows_b)):
        kind = expected(a, b)
        n[kind] += 1
        if kind:
            assert found[i, j].tolist() == [3 + kind, 0, usual[i, j, 2]]
        else:
            first = usual[i, j, 0]
            assert found[i, j].tolist() == [first + 2 * (first == 4), *usual[i, j, 1:]]
    assert min(n) > 5


def test_counts_and_searches_are_those_of_the_levels(case):
    source = case[2]
    levels = all_levels(source).reshape(-1, 3)
    counts = source.level_counts().counts
    for j in range(3):
        assert counts[j].tolist() == np.bincount(levels[:, j], minlength=7).tolist()
    for fields, rows in ((None, None), ([0, 2], None), (None, np.array([3, 8, 12]))):
        chosen = levels if rows is None else all_levels(source)[rows].reshape(-1, 3)
        wanted = np.unique(chosen[:, fields or [0, 1, 2]], axis=0, return_counts=True)
        found = source.pattern_counts(fields, rows)
        assert found.levels.tolist() == wanted[0].tolist()
        assert found.counts.tolist() == wanted[1].tolist()
    rng = np.random.default_rng(3)
    for _ in range(20):
        weights, threshold = rng.normal(0, 3, (3, 7)), rng.normal(0, 4)
        found = source.pairs_above(weights, threshold)
        wanted = np.flatnonzero(sum_weights(weights, levels) > threshold)
        assert found.numbered(source.n_b).tolist() == wanted.tolist()
        assert (found.levels == levels[wanted]).all()
    named = source.find([("a00", "b00")])
    assert named.levels.tolist() == [all_levels(source)[0, 0].tolist()]


def test_draws_are_uniform_at_each_level(case):
    source = case[2]
    levels = all_levels(source)
    sizes, rng = source.join_sizes(), np.random.default_rng(1)
    for j, h in np.argwhere(sizes > 0):
        a, b = source.draw_pairs(j, h, rng.random((4000, 3)))
        inside = a >= 0
        wanted = np.argwhere(levels[:, :, j] == h)
        number = a[inside].astype(np.int64) * source.n_b + b[inside]
        assert set(number) <= set(wanted[:, 0] * source.n_b + wanted[:, 1])
        assert inside.mean() == pytest.approx(len(wanted) / sizes[j, h], abs=0.05)
        share = np.unique(number, return_counts=True)[1] / max(1, len(number))
        assert share.max() < 3 / len(wanted) + 0.02


@pytest.mark.parametrize("most", [30, 60])
def test_kinds_of_swaps_that_are_too_many_are_left_out_everywhere(most):
    rows_a, rows_b = records()
    with patch.object(swaps, "_MOST", most):
        source = compared(rows_a, rows_b)
    assert source.n_exceptions < compared(rows_a, rows_b).n_exceptions
    levels = all_levels(source).reshape(-1, 3)
    counts = source.level_counts().counts
    for j in range(3):
        assert counts[j].tolist() == np.bincount(levels[:, j], minlength=7).tolist()
    assert set(np.flatnonzero(levels[:, 0] > 3)) >= set(source.exceptions.numbered(source.n_b))


def test_within_a_blocking_key():
    source = compared(*records(), block=["town"])
    assert isinstance(source, SwappedNames)
    e = source.exceptions
    towns = [[cells["town"] for cells in source.cells(side, rows)]
             for side, rows in ((0, e.a.tolist()), (1, e.b.tolist()))]  # fmt: skip
    assert towns[0] == towns[1]


def test_no_level_where_nothing_is_swapped():
    rows_a, rows_b = records()
    for row in rows_b:
        if row["given"] not in NAMES:
            row["given"], row["family"] = row["family"], row["given"]
    assert not isinstance(compared(rows_a, rows_b), SwappedNames)


def test_a_linkage_understands_it(tmp_path):
    rows_a, rows_b = records(80)
    tables = [pa.Table.from_pylist(rows) for rows in (rows_a, rows_b)]
    run = bl.link(*tables, FIELDS, draws=50, tune=50)
    assert "swapped" in " ".join(run.warnings)
    assert "swapped with family" in str(run.explain("a04", "b04"))
    run.save(tmp_path / "out")
    opened = bl.open_run(tmp_path / "out")
    assert [f.covers for f in opened.pairs.fields] == [f.covers for f in run.pairs.fields]
    levels = all_levels(run.pairs).reshape(-1, 3)
    weights = [r.posterior.blocks.parameters.weight_of(levels) for r in (run, opened)]
    assert (weights[0] == weights[1]).all()


# --- one file -------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["all listed", "few listed", "few kinds"])
def one_file(request):
    rows = list(itertools.chain(*records()))
    table = pa.Table.from_pylist(rows)
    few = {"few listed": [(swapping, "_LISTED_A_RECORD", 0.3), (swaps, "_AT_A_TIME", 50)]}
    few["all listed"] = [(swapping, "_LISTED_A_RECORD", 100)]
    few["few kinds"] = [(swaps, "_MOST", 250), *few["all listed"]]
    with ExitStack() as patches:
        for module, name, value in few[request.param]:
            patches.enter_context(patch.object(module, name, value))
        source = bl.compare(table, fields=FIELDS, swapped_names=True)
    assert source.one_file
    assert (request.param == "few listed") == (len(source.exceptions) < source.n_exceptions)
    return rows, source, request.param == "few kinds"


def test_swaps_within_a_file_are_what_plain_loops_find(one_file):
    rows, source, few_kinds = one_file
    n = [0, 0, 0]
    for i, j in itertools.combinations(range(len(rows)), 2):
        found, turned = (
            source.levels_of(np.array([x], np.int32), np.array([y], np.int32))[0].tolist()
            for x, y in ((i, j), (j, i))
        )
        kind = expected(rows[i], rows[j])
        assert found == turned
        assert found[0] == (3 + kind if kind else found[0]) or few_kinds
        assert kind or found[0] not in (4, 5)
        n[found[0] - 3 if found[0] in (4, 5) else 0] += 1
    assert n[2] > 5
    assert few_kinds or n[1] > 5


def test_counts_searches_and_draws_of_swaps_within_a_file(one_file):
    rows, source, _ = one_file
    a, b = (x.astype(np.int32) for x in np.triu_indices(len(rows), 1))
    levels, number = source.levels_of(a, b), a.astype(np.int64) * source.n_b + b
    counts = source.level_counts().counts
    for j in range(3):
        assert counts[j].tolist() == np.bincount(levels[:, j], minlength=7).tolist()
    chosen = np.array([3, 8, 12, 64])
    for fields, of in ((None, None), ([0, 2], None), (None, chosen), ([1], chosen)):
        some = np.isin(a, of) | np.isin(b, of) if of is not None else np.ones(len(a), bool)
        wanted = np.unique(levels[some][:, fields or [0, 1, 2]], axis=0, return_counts=True)
        found = source.pattern_counts(fields, of)
        assert found.levels.tolist() == wanted[0].tolist()
        assert found.counts.tolist() == wanted[1].tolist()
    rng = np.random.default_rng(3)
    for _ in range(20):
        weights, threshold = rng.normal(0, 3, (3, 7)), rng.normal(0, 4)
        found = source.pairs_above(weights, threshold)
        wanted = np.flatnonzero(sum_weights(weights, levels) > threshold)
        assert found.numbered(source.n_b).tolist() == number[wanted].tolist()
        assert (found.levels == levels[wanted]).all()
    sizes = source.join_sizes()
    for j, h in np.argwhere(sizes > 0):
        x, y = source.draw_pairs(j, h, rng.random((1000, 3)))
        inside, there = x >= 0, levels[:, j] == h
        assert set(x[inside].astype(np.int64) * source.n_b + y[inside]) <= set(number[there])
        assert inside.mean() == pytest.approx(there.sum() / sizes[j, h], abs=0.08)
