"""Warnings about the files that every linkage gives: each where it should, and not where not."""

import numpy as np
import pyarrow as pa
import pytest

import bayeslink as bl


def people(n=400, seed=0):
    """Made-up people who differ, with an address in common for some."""
    rng = np.random.default_rng(seed)
    syllables = ["ba", "ke", "lo", "mi", "nu", "ra", "se", "to", "vi", "zu"]
    words = ["".join(rng.choice(syllables, 3)) for _ in range(200)]
    days = np.datetime64("1950-01-01") + rng.integers(0, 20000, n)
    return {
        "id": [f"{k}" for k in range(n)],
        "first": rng.choice(words, n).tolist(),
        "last": rng.choice(words, n).tolist(),
        "dob": days.astype(str).tolist(),
        "street": rng.choice([f"{w} street" for w in words], n).tolist(),
    }


FIELDS = [bl.exact("first"), bl.exact("last"), bl.exact("dob"), bl.exact("street")]


def warnings(a, b, fields=FIELDS, **settings):
    pairs = bl.compare(pa.table(a), pa.table(b), fields, **settings)
    return " | ".join(pairs.describe().warnings)


def with_ids(table):
    return {**table, "id": [f"{k}" for k in range(len(table["first"]))]}


def test_ordinary_files_give_no_warning():
    assert warnings(people(seed=1), people(seed=2)) == ""


@pytest.mark.parametrize("word", ["N/A", "unknown", "-"])
def test_a_missing_code_in_both_files_is_told(word):
    a, b = people(seed=1), people(seed=2)
    a["street"][:20], b["street"][:30] = [word] * 20, [word] * 30
    said = warnings(a, b)
    assert f"'street': {word!r} stands in 20 records of A and 30 of B" in said
    assert "--missing" in said
    assert warnings(a, b, missing=[word]) == ""
    fields = [*FIELDS[:3], bl.exact("street", missing=[word])]
    assert warnings(a, b, fields) == ""


def test_a_missing_code_in_one_file_is_no_matter():
    a, b = people(seed=1), people(seed=2)
    a["street"][:20] = ["N/A"] * 20
    assert warnings(a, b) == ""


def test_a_surname_that_is_also_a_word_is_no_missing_code():
    a, b = people(seed=1), people(seed=2)
    a["last"][:4], b["last"][:4] = ["Null"] * 4, ["Null"] * 4
    assert warnings(a, b) == ""


def test_a_day_that_stands_for_none_is_told():
    a, b = people(seed=1), people(seed=2)
    a["dob"][:30], b["dob"][:30] = ["1900-01-01"] * 30, ["1900-01-01"] * 30
    assert "'1900-01-01' stands in 30 records of A" in warnings(a, b)


def test_a_field_that_never_agrees_is_told():
    a, b = people(seed=1), people(seed=2)
    b["dob"] = [f"{d[8:]}/{d[5:7]}/{d[:4]}" for d in b["dob"]]
    said = warnings(a, b)
    assert "field 'dob' never agrees" in said
    assert "prior alone" in said


def test_a_field_that_nearly_always_agrees_is_told():
    a, b = ({**people(seed=s), "country": ["uk"] * 399 + ["us"]} for s in (1, 2))
    assert "field 'country' agrees in 100 %" in warnings(a, b, [*FIELDS, bl.exact("country")])


def test_people_twice_in_a_file_are_told():
    a, b = people(seed=1), people(seed=2)
    b = with_ids({key: values + values[:50] for key, values in b.items()})
    said = warnings(a, b)
    assert "50 records of B equal an earlier one in all compared fields" in said
    assert "of A" not in said
    assert not any(value in said for value in b["first"])


def test_people_nearly_twice_are_told_and_siblings_are_not():
    a, b = people(seed=1), people(seed=2)
    again = {key: list(values[:60]) for key, values in b.items()}
    for k in range(60):  # each with a slip in another field
        again[("first", "last", "dob", "street")[k % 4]][k] += "x"
    twice = with_ids({key: b[key] + again[key] for key in b})
    assert "in all but one" in warnings(a, twice)
    siblings = {key: list(values[:60]) for key, values in b.items()}
    siblings["first"] = [f"{name}el" for name in siblings["first"]]
    families = with_ids({key: b[key] + siblings[key] for key in b})
    assert warnings(a, families) == ""
