"""Blocks of the blocking key, against the tuples of values that they stand for."""

import numpy as np
import pytest

import bayeslink as bl
from bayeslink.engines.blocking_key import block_keys
from tests import oracles


def check(rows_a, rows_b, columns):
    """Same number exactly where all parts are equal, −1 exactly where one is missing."""
    files = oracles.records(rows_a), oracles.records(rows_b, side="B")
    keys = np.concatenate(block_keys(*files, [bl.exact(c) for c in columns]))
    values = [tuple(row[c] for c in columns) for row in (*rows_a, *rows_b)]
    there = np.array([all(value) for value in values])
    assert (keys[~there] == -1).all()
    distinct = sorted({v for v, t in zip(values, there, strict=True) if t})
    number = {value: i for i, value in enumerate(distinct)}  # in the order of the values
    assert keys[there].tolist() == [number[v] for v, t in zip(values, there, strict=True) if t]


@pytest.mark.parametrize("n_parts", [0, 1, 2, 4])
def test_records_share_a_block_exactly_if_all_parts_are_equal(n_parts):
    rng = np.random.default_rng(n_parts)
    columns = [f"part{i}" for i in range(n_parts)]
    rows = [
        {
            "x": "1",
            **{c: rng.choice(["a", "b", "c", None], p=[0.4, 0.3, 0.2, 0.1]) for c in columns},
        }
        for _ in range(90)
    ]
    check(rows[:60], rows[60:], columns)


def test_many_parts_of_many_values_keep_every_record_in_scope():
    """8,000 values to the fifth power are more than 64 bits can number."""
    rng = np.random.default_rng(5)
    n, columns = 8000, [f"part{i}" for i in range(5)]
    parts = {c: rng.permutation(n) for c in columns}
    rows = [{c: f"{parts[c][i]:05}" for c in columns} for i in range(n)]
    check(rows[: n // 2], rows[n // 2 :], columns)
    check(rows, rows[::-1], columns)
