"""Columns that people are told apart by and that have no partner; files that hold no records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bayeslink.data.records import Records
from bayeslink.errors import InputError
from bayeslink.suggesting.column_names import of_whom, says_id, similarity
from bayeslink.suggesting.pairing import values_in_common
from bayeslink.suggesting.profiles import Profile

_LIKE = {
    "dates": ("date",),
    "names of people": ("given name", "family name", "full name", "second family name"),
    "places": ("postcode", "place", "address", "street", "latitude", "longitude"),
}
_OF_IDS = ("identifier", "code", "number", "category", "constant")


def without_partner(a: Sequence[Profile], b: Sequence[Profile]) -> Iterator[str]:
    """A warning for each column left over in A and the one left over in B that is nearest to it."""
    for what, kinds in _LIKE.items():
        sides = [
            [p for p in side if p.kind in kinds or (p.thing == "birth date" and "date" in kinds)]
            for side in (a, b)
        ]
        ranked = sorted(
            (
                (-_nearness(x, y), i, j)
                for i, x in enumerate(sides[0])
                for j, y in enumerate(sides[1])
                if of_whom(x.name) == of_whom(y.name) and not (x.event and y.event)
            ),
        )
        taken: set[tuple[int, int]] = set()
        for _, i, j in ranked:
            if not taken & {(0, i), (1, j)}:
                taken |= {(0, i), (1, j)}
                yield _warning(what, sides[0][i], sides[1][j])


def _nearness(x: Profile, y: Profile) -> float:
    return similarity(x.name, y.name) + values_in_common(x, y, (1.0, 1.0)) + (x.event == y.event)


def _warning(what: str, x: Profile, y: Profile) -> str:
    return (
        f"{x.name!r} of A is not compared. The nearest of B is {y.name!r}, which holds {what}, "
        f"too: {_why(x, y)}. If they are the same thing, say so: --on {x.name}={y.name}."
    )


def _why(x: Profile, y: Profile) -> str:
    if x.event or y.event:
        return f"{(x if x.event else y).name!r} looks like dates of an event"
    return "neither their names nor their values say that they are the same"


def refuse_tables_of_ids(records: Sequence[Records], profiles: Sequence[Sequence[Profile]]) -> None:
    """Refuse a file of true pairs, or of old and new ids, given for one of records."""
    are = [_is_table_of_ids(side) for side in profiles]
    if are[0] == are[1]:
        return
    side = are.index(True)
    columns = " and ".join(repr(p.name) for p in profiles[side][:2])
    raise InputError(
        f"input {'AB'[side]}, {records[side].label}: it holds ids ({columns}) and nothing that "
        "describes a record, as a file of true pairs or a table of ids does. Give a file of "
        "records. Pairs that are known go to bayeslink evaluate, or to bayeslink link --labels."
    )


def _is_table_of_ids(profiles: Sequence[Profile]) -> bool:
    """Whether two or more columns name records, and the few others say how sure that is."""
    of_records = [p for p in profiles if p.thing is None and _names_records(p)]
    return (
        len(of_records) >= 2
        and len(profiles) <= 4
        and all(p.kind in _OF_IDS or p in of_records for p in profiles)
        and any(says_id(p.name) for p in of_records)
    )


def _names_records(p: Profile) -> bool:
    different = p.n_distinct > 0.5 * max(1, len(p.present))
    return different and (says_id(p.name) or p.kind == "identifier" or p.unique)
