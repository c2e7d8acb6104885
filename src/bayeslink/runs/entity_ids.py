"""Ids of people after an update: each person of before keeps its own where its records stay."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

GREW, MERGED, SPLIT, RETIRED = WHAT = "grew", "merged", "split", "retired"


@dataclass(frozen=True)
class Changed:
    """What an update changed, a row an earlier id that is not as it was, and in numbers."""

    table: pa.Table
    counts: Mapping[str, int]


def carried_ids(
    people: Sequence[Sequence[str]],
    before: Mapping[str, str],
    retired: Collection[str] = (),
    *,
    numbers: bool = False,
) -> list[str]:
    """The id of each person now.

    A person takes the id of the earlier person with whom it shares the most records. Of two that
    share as many with one, the id is taken by the person who has the record of that id, then by the
    one with the smallest record; of two earlier ids that share as many, the smallest is taken.
    Each id is used once. All other people have the id of their first record that is no id of
    anybody before, retired ones too; if there is none, an id that is new.

    Parameters
    ----------
    people
        The records of each person, by what they are called; the one that represents it first.
    before
        The earlier id of each record that an earlier run had.
    retired
        Ids that earlier runs used, and no longer do.
    numbers
        Whether ids are whole numbers.
    """
    smallest = [min(records) for records in people]
    holds = [{*records} for records in people]
    shared = [
        (-n, earlier, earlier not in holds[k], smallest[k], k)
        for k, records in enumerate(people)
        for earlier, n in Counter(before[r] for r in records if r in before).items()
    ]
    used = {*before.values(), *retired}
    found: dict[int, str] = {}
    taken: set[str] = set()
    for _, earlier, _, _, k in sorted(shared):
        if k not in found and earlier not in taken:
            found[k] = earlier
            taken.add(earlier)
    records_of_all = {record for records in people for record in records}
    for k in sorted(set(range(len(people))) - found.keys(), key=lambda k: smallest[k]):
        face, *others = people[k]
        own = next((r for r in (face, *sorted(others)) if r not in used), None)
        found[k] = own or next(_new_ids(face, used | records_of_all, numbers))
        used.add(found[k])
    return [found[k] for k in range(len(people))]


def _new_ids(face: str, taken: Collection[str], numbers: bool) -> Iterator[str]:
    """Ids that nobody has: 7.2, 7.3, … of the record 7; of whole numbers, the smallest free."""
    number = 1
    while True:
        name = str(number) if numbers else f"{face}.{number + 1}"
        if name not in taken:
            yield name
        number += 1


def what_changed(
    now: Mapping[str, str],
    before: Mapping[str, str],
    retired: Mapping[str, str],
) -> Changed:
    """What became of the people of before.

    Parameters
    ----------
    now, before
        The id of each record's person, now and in the earlier run.
    retired
        Ids that were retired before, each with that to which it led.
    """
    members: dict[str, int] = Counter(now.values())
    parts: dict[str, Counter[str]] = defaultdict(Counter)
    for record, earlier in before.items():
        parts[earlier][now[record]] += 1
    rows: list[tuple[Any, ...]] = []
    for earlier, own in sorted(parts.items()):
        n = own.total()
        ranked = sorted(own.items(), key=lambda part: (-part[1], part[0]))
        if len(own) == 1 and members[ranked[0][0]] == n:
            continue
        what = SPLIT if len(own) > 1 else GREW if earlier in own else MERGED
        rows += [(earlier, one, what, n, shared, members[one]) for one, shared in ranked]
    for old, led_to in sorted(retired.items()):
        leads_to = min(parts[led_to], key=lambda one: (-parts[led_to][one], one))
        rows.append((old, leads_to, RETIRED, 0, 0, members[leads_to]))
    known = {*before.values()}
    new = [record for record in now if record not in before]
    with_earlier = {now[record] for record in before}
    whats = Counter({row[0]: row[2] for row in rows}.values())
    counts = {
        "earlier_records": len(before),
        "earlier_people": len(known),
        "new_records": len(new),
        "new_records_joined": sum(now[record] in with_earlier for record in new),
        "new_people": len({now[record] for record in new} - with_earlier),
        "ids_kept": len(known & members.keys()),
        "merged": whats[MERGED],
        "split": whats[SPLIT],
    }
    return Changed(_table(rows), counts)


def _table(rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    kinds = (pa.string(), pa.string(), pa.string(), pa.int64(), pa.int64(), pa.int64())
    columns = [*zip(*rows, strict=True)] or [()] * len(kinds)
    names = (
        "entity_id_before", "entity_id", "what", "records_before", "records_shared", "records"
    )  # fmt: skip
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    return pa.table(arrays, names=names)


def in_words(counts: Mapping[str, int]) -> str:
    """What an update changed, in two sentences."""
    new, joined = counts["new_records"], counts["new_records_joined"]
    alone, people = new - joined, counts["new_people"]
    merged, split = counts["merged"], counts["split"]
    return (
        f"What the update changed: {new:,} new record{_s(new)}: {joined:,} joined an earlier "
        f"person, {alone:,} {_are(alone)} of {people:,} new {_people(people)}. "
        f"{merged:,} earlier {_people(merged)} {_were(merged)} merged into others, {split:,} "
        f"{_were(split)} split; {counts['ids_kept']:,} of {counts['earlier_people']:,} ids stay."
    )


def _s(n: int) -> str:
    return "" if n == 1 else "s"


def _are(n: int) -> str:
    return "is" if n == 1 else "are"


def _were(n: int) -> str:
    return "was" if n == 1 else "were"


def _people(n: int) -> str:
    return "person" if n == 1 else "people"
