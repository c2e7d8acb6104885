"""Who keeps an id after an update, beside a plain version and as laws."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayeslink.runs.entity_ids import (
    GREW,
    MERGED,
    RETIRED,
    SPLIT,
    carried_ids,
    in_words,
    what_changed,
)


def plain_ids(people, before, retired, numbers):
    """The rule as it is said: the best of all pairs of two that are free, again and again."""
    found, everybody = {}, {record for own in people for record in own}
    earlier_ids = {*before.values()}
    while True:
        best = None
        for k, own in enumerate(people):
            for earlier in earlier_ids:
                n = sum(before.get(record) == earlier for record in own)
                if n and k not in found and earlier not in found.values():
                    key = (-n, earlier, earlier not in own, min(own), k)
                    best = key if best is None or key < best else best
        if best is None:
            break
        found[best[-1]] = best[1]
    used = earlier_ids | {*retired}
    for k in sorted(range(len(people)), key=lambda k: min(people[k])):
        if k in found:
            continue
        free = [r for r in [people[k][0], *sorted(people[k][1:])] if r not in used]
        number = 1
        while not free:
            name = str(number) if numbers else f"{people[k][0]}.{number + 1}"
            free = [] if name in used | everybody else [name]
            number += 1
        found[k] = free[0]
        used.add(free[0])
    return [found[k] for k in range(len(people))]


def grouped(labels):
    people = {}
    for record, label in labels.items():
        people.setdefault(label, []).append(record)
    return [*people.values()]


@st.composite
def updates(draw):
    """Earlier people, people now, retired ids."""
    n = draw(st.integers(1, 14))
    records = [str(k) for k in draw(st.permutations(range(1, n + 1)))]
    old = records[: draw(st.integers(0, n))]
    of_old = {r: draw(st.integers(0, 4)) for r in old}
    names = {}
    before = {}
    for record in old:  # the first record of each names it
        before[record] = names.setdefault(of_old[record], record)
    now = grouped({r: draw(st.integers(0, 4)) for r in records})
    retired = draw(st.sets(st.sampled_from(records))) - {*before.values()}
    return now, before, retired


@settings(max_examples=400, deadline=None)
@given(updates(), st.booleans())
def test_ids_are_those_of_the_plain_rule_and_keep_its_laws(given_update, numbers):
    people, before, retired = given_update
    found = carried_ids(people, before, retired, numbers=numbers)
    assert found == plain_ids(people, before, retired, numbers)
    assert len({*found}) == len(people)
    assert not {*found} & retired
    for own, name in zip(people, found, strict=True):
        if name in before.values():  # an id of before is of somebody who shares records with it
            assert name in {before.get(record) for record in own}
    backwards = [[own[0], *own[:0:-1]] for own in people[::-1]]
    assert carried_ids(backwards, before, retired, numbers=numbers) == found[::-1]
    changed = what_changed(
        {r: name for own, name in zip(people, found, strict=True) for r in own},
        before,
        dict.fromkeys(retired, next(iter(before.values()))) if before else {},
    )
    assert changed.counts["ids_kept"] == len({*before.values()} & {*found})
    lost = {*before.values()} - {*found}
    assert lost <= {*changed.table["entity_id_before"].to_pylist()}
    assert {*changed.table["entity_id"].to_pylist()} <= {*found}


@settings(max_examples=100, deadline=None)
@given(updates())
def test_nothing_changes_where_nobody_moved(given_update):
    _, before, retired = given_update
    people = {}
    for record, name in before.items():
        people.setdefault(name, []).append(record)
    assert carried_ids([*people.values()], before, retired) == [*people]
    assert len(what_changed(before, before, {}).table) == 0


@pytest.mark.parametrize(
    ("people", "expected"),
    [
        ([["a", "b", "x"], ["c"]], ["a", "c"]),  # a new record joins
        ([["c", "a", "b"]], ["a"]),  # merged: the id with more records
        ([["b"], ["a"], ["c"]], ["b", "a", "c"]),  # split: who has the record of the id keeps it
        ([["x", "y"], ["a", "b"], ["c"]], ["x", "a", "c"]),  # new people
    ],
)
def test_cases(people, expected):
    assert carried_ids(people, {"a": "a", "b": "a", "c": "c"}) == expected


def test_an_id_that_was_taken_from_its_record_is_not_given_again():
    people = [["a"], ["b", "c"]]
    before = dict.fromkeys("abc", "a")
    assert carried_ids(people, before) == ["a.2", "a"]
    assert carried_ids([["1"], ["2", "3"]], dict.fromkeys("123", "1"), numbers=True) == ["4", "1"]
    assert carried_ids([["b", "c"]], {}, retired=["b"]) == ["c"]


def test_what_became_of_earlier_people():
    before = {"a": "a", "b": "a", "c": "c", "d": "d", "e": "d", "f": "f", "g": "g", "h": "g"}
    now = {"a": "a", "b": "a", "c": "a", "d": "d", "e": "e", "f": "f", "g": "g", "h": "g",
           "x": "f", "y": "y", "z": "y"}  # fmt: skip
    changed = what_changed(now, before, {"q": "d"})
    rows = [(r["entity_id_before"], r["entity_id"], r["what"]) for r in changed.table.to_pylist()]
    assert rows == [
        ("a", "a", GREW), ("c", "a", MERGED), ("d", "d", SPLIT), ("d", "e", SPLIT),
        ("f", "f", GREW), ("q", "d", RETIRED),
    ]  # fmt: skip
    assert Counter(changed.counts) == {
        "earlier_records": 8, "earlier_people": 5, "new_records": 3, "new_records_joined": 1,
        "new_people": 1, "ids_kept": 4, "merged": 1, "split": 1,
    }  # fmt: skip
    assert in_words(changed.counts) == (
        "What the update changed: 3 new records: 1 joined an earlier person, 2 are of 1 new "
        "person. 1 earlier person was merged into others, 1 was split; 4 of 5 ids stay."
    )
