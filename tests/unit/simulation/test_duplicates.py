"""One synthetic file: how often people are there, in how many forms, and who is who."""

import itertools
from collections import Counter, defaultdict

import numpy as np
import pytest

from bayeslink.errors import SettingsError
from bayeslink.simulation import people
from bayeslink.simulation.duplicates import simulate_duplicates
from bayeslink.simulation.files import check_directory, simulate, write_simulation

CLEAN = {"errors": 0, "missing": 0}


def persons(made):
    """The records of each person."""
    of = defaultdict(list)
    for row, truth in zip(made.a.to_pylist(), made.truth.to_pylist(), strict=True):
        assert row["id"] == truth["id"]
        of[truth["entity_id"]].append(row)
    return of


def test_same_seed_same_bytes(tmp_path):
    for name in ("x", "y"):
        write_simulation(simulate_duplicates(200, seed=3), tmp_path / name)
    assert sorted(path.name for path in (tmp_path / "x").iterdir()) == ["a.csv", "truth.csv"]
    for file in ("a.csv", "truth.csv"):
        assert (tmp_path / "x" / file).read_bytes() == (tmp_path / "y" / file).read_bytes()
    assert not simulate_duplicates(200, seed=3).a.equals(simulate_duplicates(200, seed=4).a)


def test_one_file_replaces_two(tmp_path):
    write_simulation(simulate(20), tmp_path / "out")
    check_directory(tmp_path / "out", force=True)
    write_simulation(simulate_duplicates(20), tmp_path / "out", force=True)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["a.csv", "truth.csv"]


@pytest.mark.parametrize("n", [1, 7, 500])
def test_columns_and_ids(n):
    made = simulate_duplicates(n)
    assert made.a.column_names == ["id", *people.COLUMNS]
    assert made.truth.column_names == ["id", "entity_id"]
    assert len(made.a) == len(made.truth) == len(made.a["id"].unique()) == n
    assert {str(kind) for kind in made.a.schema.types + made.truth.schema.types} == {"string"}


def test_sizes_are_the_shares_asked_for():
    made = simulate_duplicates(20_000, sizes=(2, 1, 0, 1), **CLEAN)
    sizes = Counter(len(rows) for rows in persons(made).values())
    n = sum(sizes.values())
    assert sizes[1] / n == pytest.approx(0.5, abs=0.02)
    assert sizes[2] / n == pytest.approx(0.25, abs=0.02)
    assert sizes[4] / n == pytest.approx(0.25, abs=0.02)
    assert sizes[3] <= 1  # the last one, cut off
    assert set(map(len, persons(simulate_duplicates(90, sizes=(0, 0, 1))).values())) == {3}


def test_without_errors_and_changes_records_of_a_person_are_equal():
    made = simulate_duplicates(1000, moved=0, married=0, **CLEAN)
    forms = [{tuple(row[f] for f in people.COLUMNS) for row in r} for r in persons(made).values()]
    assert all(len(form) == 1 for form in forms)
    assert len(set.union(*forms)) == len(forms)


def test_some_move_and_some_marry():
    made = simulate_duplicates(20_000, sizes=(0, 1, 1), moved=0.3, married=0.2, **CLEAN)
    moved, married, women, both = [], [], [], 0
    for rows in persons(made).values():
        forms = {field: Counter(row[field] for row in rows) for field in people.COLUMNS}
        if len(rows) < 2:
            continue
        for field in ("gname", "sex", "dob", "age", "occup"):
            assert len(forms[field]) == 1
        address = Counter((row["postcode"], row["street"]) for row in rows)
        assert len(address) <= 2
        assert len(forms["fname"]) <= 2
        moved.append(len(address) == 2)
        women.append(rows[0]["sex"] == "f")
        married.append(len(forms["fname"]) == 2)
        both += moved[-1] and married[-1]
    assert np.mean(moved) == pytest.approx(0.3, abs=0.02)
    assert np.mean(np.array(married)[women]) == pytest.approx(0.2, abs=0.02)
    assert not np.array(married)[~np.array(women)].any()
    assert both > 50  # some have a third form, beside which no two agree in all


def test_households_and_errors():
    made = simulate_duplicates(5000, errors=1, kinds=("typing",), missing=0, moved=0, married=0)
    homes = Counter(zip(made.a["postcode"].to_pylist(), made.a["street"].to_pylist(), strict=True))
    assert max(homes.values()) > 3
    away = []
    for rows in persons(made).values():
        for x, y in itertools.pairwise(rows):
            away.append(sum(x[f] != y[f] for f in people.COLUMNS))
    assert max(away) == 2  # one in each
    assert np.mean(np.array(away) == 2) > 0.7


def test_rows_and_ids_say_nothing():
    made = simulate_duplicates(3000, sizes=(0, 1))
    rows = [[int(row["id"][1:]) for row in r] for r in persons(made).values() if len(r) == 2]
    x, y = np.array(rows).T
    assert abs(np.corrcoef(x, np.random.default_rng(1).permutation(y))[0, 1]) < 0.1
    assert np.mean(np.abs(x - y)) > 800
    entities = [int(e[1:]) for e in made.truth["entity_id"].to_pylist()]
    assert abs(np.corrcoef(entities, np.arange(3000))[0, 1]) < 0.1


@pytest.mark.parametrize(
    "bad",
    [
        {"n": 0},
        {"sizes": ()},
        {"sizes": (-1, 2)},
        {"sizes": (0, 0)},
        {"moved": 1.5},
        {"married": -1},
        {"errors": 9},
        {"missing": 2},
        {"seed": -1},
    ],
    ids=str,
)
def test_bad_arguments_are_named(bad):
    with pytest.raises(SettingsError, match=f"^{next(iter(bad))} must"):
        simulate_duplicates(**bad)
