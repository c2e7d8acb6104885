"""How far each record gets with an exact copy: against pairs of a record and its copy."""

import math

import numpy as np
import pyarrow as pa
import pytest

import bayeslink as bl
from bayeslink.errors import InputError
from bayeslink.runs.unlinkable import CopyWeights, copy_weights

FEW = {"draws": 60, "tune": 40, "chains": 2}


@pytest.fixture(scope="module")
def files():
    """B has exact copies of the first 60 records of A, and 60 records of others."""
    made = bl.simulate(150, seed=4)
    own, other = made.a, made.b
    copies = own.slice(0, 60)
    ids = pa.array([f"copy {x}" for x in copies["id"].to_pylist()])
    copies = copies.set_column(copies.column_names.index("id"), "id", ids)
    return own, pa.concat_tables([copies, other.slice(60, 60)])


FIELDS = [
    bl.name("gname", bands="auto"), bl.levenshtein("fname", bands=(0.02,)), bl.date("dob"),
    bl.exact("sex"), bl.postcode("postcode"),
]  # fmt: skip


def test_the_weights_are_those_of_each_pair_of_a_record_and_its_copy(files):
    """Also where dates lack their day, and names are in two columns."""
    a, b = files[0].slice(0, 60), files[1]

    def shorter(table, each):
        dates = [
            d and d[: 10 - 3 * (i % each == 0)] for i, d in enumerate(table["dob"].to_pylist())
        ]
        return table.set_column(table.column_names.index("dob"), "dob", pa.array(dates))

    a = shorter(a, 5)
    b = pa.concat_tables([shorter(b.slice(0, 60), 5), b.slice(60)])
    fields = [bl.date("dob"), *bl.person_name("gname", "fname"), bl.address("street")]
    run = bl.link(a, b, fields, **FEW)
    found = run.pairs.find([(name, f"copy {name}") for name in a["id"].to_pylist()])
    by_pair = np.sort(run.parameters.weight_of(found.levels) / math.log(2))
    np.testing.assert_allclose(copy_weights(run).sides[0], by_pair)


@pytest.fixture(scope="module")
def run(files):
    return bl.link(*files, FIELDS, **FEW)


def test_the_weight_is_that_of_the_pair_of_a_record_and_its_copy(run, files):
    own = files[0]["id"].to_pylist()[:60]
    pairs = [(name, f"copy {name}") for name in own]
    found = run.pairs.find(pairs)
    by_pair = run.parameters.weight_of(found.levels) / math.log(2)
    weights = copy_weights(run)
    in_a = sorted(weights.sides[0].tolist())
    assert len(in_a) == run.pairs.n_a
    for w in by_pair:
        assert np.abs(np.array(in_a) - w).min() < 1e-9
    assert len(set(np.round(by_pair, 6))) > 3  # bands and missing values make a difference
    assert weights.needed == pytest.approx(run.theta / math.log(2))


def test_an_opened_run_says_the_same_and_one_without_its_inputs_says_so(run, files, tmp_path):
    run.save(tmp_path / "kept", keep_inputs=True)
    run.save(tmp_path / "bare")
    opened = copy_weights(bl.open_run(tmp_path / "kept"))
    for mine, its in zip(copy_weights(run).sides, opened.sides, strict=True):
        np.testing.assert_allclose(mine, its)
    with pytest.raises(InputError, match="Give it"):
        copy_weights(bl.open_run(tmp_path / "bare"))
    given = bl.open_run(tmp_path / "bare", a=files[0], b=files[1])
    np.testing.assert_allclose(copy_weights(given).sides[1], opened.sides[1])


def test_a_record_without_a_blocking_key_is_in_no_pair(files):
    a, b = files
    sex = ["" if i < 5 else s for i, s in enumerate(a["sex"].to_pylist())]
    a = a.set_column(a.column_names.index("sex"), "sex", pa.array(sex))
    run = bl.link(a, b, FIELDS[:3], block=["sex"], **FEW)
    assert np.isneginf(copy_weights(run).sides[0]).sum() >= 5
    assert "0.0 %" not in bl.plots.unlinkable(run).alt.split("of A")[0]


def test_the_table_counts_records_below():
    weights = CopyWeights((np.array([-math.inf, 2.0, 8.0]), np.array([3.5, 9.0])), 4.0)
    rows = {row["weight"]: row for row in weights.table().to_pylist()}
    assert sorted(rows) == [*range(2, 11)]
    assert rows[4]["probability"] == pytest.approx(0.5)
    assert rows[5]["probability"] == pytest.approx(2 / 3)
    assert (rows[2]["records_a"], rows[3]["records_a"], rows[9]["records_a"]) == (1, 2, 3)
    assert (rows[3]["share_b"], rows[4]["share_b"], rows[10]["share_b"]) == (0, 0.5, 1)
    assert weights.shares_below(4.0) == (pytest.approx(2 / 3), 0.5)
