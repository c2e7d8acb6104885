"""Clusters against the truth: small cases by hand, and plain loops over records and pairs."""

import itertools
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import bayeslink as bl
from bayeslink.errors import InputError

FOUND = {"1": "x", "2": "x", "3": "x", "4": "y", "5": "y", "6": "z"}
TRUE = {"1": "p", "2": "p", "3": "q", "4": "q", "5": "q", "6": "r"}


def table(entities):
    return pa.table({"id": list(entities), "entity_id": list(entities.values())})


def test_by_hand():
    result = bl.evaluate(table(FOUND), table(TRUE))
    assert (result.n_records, result.n_left_out) == (6, 0)
    assert (result.n_clusters, result.n_entities) == (3, 3)
    # Pairs found: 12 13 23 45; true: 12 34 35 45; both: 12 45.
    assert (result.precision, result.recall, result.f1) == (0.5, 0.5, 0.5)
    # 2/3, 2/3, 1/3, 1, 1, 1 of the cluster, and 1, 1, 1/3, 2/3, 2/3, 1 of the entity.
    assert result.bcubed_precision == pytest.approx(14 / 18)
    assert result.bcubed_recall == pytest.approx(14 / 18)
    assert result.bcubed_f1 == pytest.approx(14 / 18)
    assert result.exact_clusters == 1  # the single 6
    assert result.exact_precision == result.exact_recall == pytest.approx(1 / 3)
    assert "B-cubed" in str(result)


def test_singles_are_precise_and_one_cluster_of_all_is_complete():
    single = {i: i for i in TRUE}
    result = bl.evaluate(table(single), table(TRUE))
    assert math.isnan(result.precision)
    assert result.recall == 0
    assert result.bcubed_precision == 1
    assert result.bcubed_recall == pytest.approx(0.5)  # three entities of six records
    result = bl.evaluate(table(dict.fromkeys(TRUE, "all")), table(TRUE))
    assert (result.recall, result.bcubed_recall) == (1, 1)
    assert result.precision == pytest.approx(4 / 15)
    assert result.bcubed_precision == pytest.approx((4 + 9 + 1) / 36)


def by_loops(found, true):
    """The same by definition."""
    ids = list(true)
    same = [[{i for i in ids if of[i] == of[j]} for j in ids] for of in (found, true)]
    pairs = list(itertools.combinations(ids, 2))
    both = sum(found[i] == found[j] and true[i] == true[j] for i, j in pairs)
    n_found, n_true = (sum(of[i] == of[j] for i, j in pairs) for of in (found, true))
    shares = [
        np.mean([len(x & y) / len((x, y)[side]) for x, y in zip(*same, strict=True)])
        for side in (0, 1)
    ]
    exact = {frozenset(x) for x in same[0]} & {frozenset(x) for x in same[1]}
    nan = math.nan
    return {
        "precision": both / n_found if n_found else nan,
        "recall": both / n_true if n_true else nan,
        "f1": 2 * both / (n_found + n_true) if n_found + n_true else nan,
        "bcubed_precision": shares[0],
        "bcubed_recall": shares[1],
        "bcubed_f1": 2 * shares[0] * shares[1] / sum(shares),
        "exact_clusters": len(exact),
        "n_clusters": len({found[i] for i in ids}),
        "n_entities": len({*true.values()}),
    }


def test_random_clusters_equal_plain_loops():
    rng = np.random.default_rng(1)
    for _ in range(100):
        n = int(rng.integers(1, 15))
        found, true = (
            {f"r{i}": f"{k}" for i, k in enumerate(rng.integers(0, rng.integers(1, n + 1), n))}
            for _ in range(2)
        )
        some = [f"r{i}" for i in rng.permutation(n)[: rng.integers(1, n + 1)]]  # in any order
        result = bl.evaluate(table(found), table({i: true[i] for i in some})).as_dict()
        wanted = by_loops(found, {i: true[i] for i in some})
        for name, value in wanted.items():
            assert result[name] == pytest.approx(value, nan_ok=True), name
        assert result["n_records"] == len(some)
        assert result["n_left_out"] == n - len(some)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, "path"])
def test_every_kind_of_table_gives_the_same(kind, tmp_path):
    columns = [table(of).to_pydict() for of in (FOUND, TRUE)]
    if kind == "path":
        given = [tmp_path / "found.csv", str(tmp_path / "true.csv")]
        for data, path in zip(columns, given, strict=True):
            pd.DataFrame(data).to_csv(path, index=False)
    else:
        given = [kind(data) for data in columns]
    assert bl.evaluate(*given) == bl.evaluate(table(FOUND), table(TRUE))


def test_a_run_with_clusters():
    class Run:
        clusters = table(FOUND).append_column("size", pa.array([3, 3, 3, 2, 2, 1]))

    assert bl.evaluate(Run(), table(TRUE)) == bl.evaluate(table(FOUND), table(TRUE))


def test_a_simulation_is_its_own_truth():
    made = bl.simulate_duplicates(300, seed=2)
    result = bl.evaluate(made.truth, made.truth)
    assert (result.f1, result.bcubed_f1, result.exact_recall) == (1, 1, 1)
    assert result.n_clusters == len(made.truth["entity_id"].unique())


@pytest.mark.parametrize(
    ("found", "true", "why"),
    [
        (table(FOUND), table({**TRUE, "7": "r"}), "1 ids of the truth are not in the clusters"),
        (table(FOUND), [("1", "2")], "truth must be a table with the columns id and entity_id"),
        (table(FOUND), pa.table({"id": ["1"]}), "truth must have one column entity_id"),
        (pa.concat_tables([table(FOUND)] * 2), table(TRUE), "6 records are in clusters more than"),
        (table({"1": None}), table({"1": "p"}), "clusters.entity_id has ids that are missing"),
    ],
)
def test_what_cannot_be_compared_is_refused(found, true, why):
    with pytest.raises(InputError, match=why):
        bl.evaluate(found, true)
