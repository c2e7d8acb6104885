"""A case of a run of people as the page shows it: its records, and who the run takes them for."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from typing import Any

from bayeslink.comparing.fields import Field
from bayeslink.judging.judgements import LINK, NONLINK, UNSURE, Pair
from bayeslink.review.people_material import PeopleMaterial, ordered
from bayeslink.runs.cluster_cells import Cells
from bayeslink.runs.differences import compared, same, usual_writing, visible

OPEN = "?"  # stands for a person where it is not known who a record is of


def people_screen(material: PeopleMaterial, key: str) -> dict[str, Any]:
    """The records of a case, field by field, each against the first; and the run's people."""
    records = material.records_of(key)
    cells = material.values(records)
    shown = [(f, material.fields.get(f)) for f in (*material.fields, *material.further)]
    columns = [_column(material, name, given, records, cells) for name, given in shown]
    fields = [
        {"name": visible(name), "columns": None, "compared": given is not None}
        for name, given in shown
    ]
    return {
        "case": key,
        "version": material.version(key),
        "fields": fields,
        "records": [
            {
                "place": place,
                "id": visible(_own_id(material, record)),
                "file": visible(material.files[record]) if material.files else None,
                "cells": [column[place] for column in columns],
            }
            for place, record in enumerate(records)
        ],
        "found": as_found(material, records),
    }


def _own_id(material: PeopleMaterial, record: int) -> str:
    """What a record is called in its file."""
    prefix = f"{material.files[record]}:" if material.files else ""
    return material.ids[record].removeprefix(prefix)


def as_found(material: PeopleMaterial, records: Sequence[int]) -> list[str]:
    """Of each record, which person the run takes it for: "1", "2", …"""
    return numbered([str(material.structure.cluster[record]) for record in records])


def numbered(people: Sequence[str]) -> list[str]:
    """People as "1", "2", … in the order in which they come; who is not known stays so."""
    names = [name for name in dict.fromkeys(people) if name != OPEN]
    number = {name: str(k) for k, name in enumerate(names, 1)} | {OPEN: OPEN}
    return [number[name] for name in people]


def doubt(material: PeopleMaterial, key: str) -> list[dict[str, Any]]:
    """What the run says of each record: how sure it is of it, and of its pairs in the case."""
    records, s = material.records_of(key), material.structure
    found: list[dict[str, Any]] = [
        {"membership": float(s.membership[record]), "with": []} for record in records
    ]
    for (k, x), (other, y) in combinations(enumerate(records), 2):
        if (row := material.pair(x, y)) is not None:
            said = {"probability": float(s.probability[row]), "bits": float(s.weight[row])}
            found[k]["with"].append({"place": other, **said})
            found[other]["with"].append({"place": k, **said})
    return found


# --- verdicts ---------------------------------------------------------------------------------


def verdicts_of(ids: Sequence[str], people: Sequence[str]) -> dict[Pair, str]:
    """What it says of all pairs of records that these are of such people.

    All pairs, and not as few as would say the same: so what two reviewers see differently differs
    in some pair, and nothing else follows from the pairs on which they agree. A record that is not
    known has pairs that are unsure.
    """
    verdicts = {}
    for (x, p), (y, q) in combinations(zip(ids, people, strict=True), 2):
        unsure = OPEN in (p, q)
        verdicts[ordered(x, y)] = UNSURE if unsure else LINK if p == q else NONLINK
    return verdicts


def people_of(
    ids: Sequence[str], verdicts: Mapping[Pair, str], pairs: Collection[Pair]
) -> list[str] | None:
    """Who the records are of, from the verdicts on these of their pairs; None if one lacks."""
    if any(pair not in verdicts for pair in pairs):
        return None
    people: list[str] = []
    for k, x in enumerate(ids):
        said = [
            (other, verdicts[pair])
            for other, y in enumerate(ids)
            if (pair := ordered(x, y)) in pairs
        ]
        if {verdict for _, verdict in said} == {UNSURE}:
            people.append(OPEN)
            continue
        earlier = [other for other, verdict in said if verdict == LINK and other < k]
        people.append(people[earlier[0]] if earlier else str(k))
    return numbered(people)


# --- values -----------------------------------------------------------------------------------


def _column(
    material: PeopleMaterial,
    name: str,
    field: Field | None,
    records: Sequence[int],
    cells: Sequence[Cells],
) -> list[dict[str, Any]]:
    """One field of the records, each with its differences from the first."""
    texts = [own[name] for own in cells]
    usual, steps = usual_writing(filter(None, texts)), field.normalise if field else ()
    first, shown = texts[0], list[dict[str, Any]]()
    for record, text in zip(records, texts, strict=True):
        plain = None if text is None else visible(text, usual)
        if record == records[0]:
            shown.append({"text": plain})
        elif text is None or first is None:
            shown.append({"text": plain, "like": "missing"})
        elif _equal(material, name, records[0], record):
            shown.append({"text": plain, "like": "same"})
        else:
            like = "same" if same(text, first, steps) else "other"
            shown.append({"text": compared(text, first, steps, usual), "like": like})
    return shown


def _equal(material: PeopleMaterial, name: str, x: int, y: int) -> bool:
    """Whether the run took two values for the same, however they are written."""
    if name not in material.levels or (row := material.pair(x, y)) is None:
        return False
    return int(material.levels[name][row]) in material.equal[name]
