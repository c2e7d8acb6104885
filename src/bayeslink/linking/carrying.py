"""The people of an update keep the ids that an earlier run gave them."""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import replace
from typing import Any

import pyarrow as pa

from bayeslink.errors import InputError
from bayeslink.runs.cluster_tables import record_names
from bayeslink.runs.dedupe_run import DedupeRun
from bayeslink.runs.entity_ids import carried_ids, what_changed
from bayeslink.runs.opening import open_run


def earlier_people(run: Any) -> DedupeRun:
    """An earlier run of people, given as it is or by its directory."""
    if isinstance(run, str | os.PathLike):
        if not os.path.isdir(run):
            raise InputError(
                f"the earlier run is not at {os.fspath(run)}. Say where it is, or leave `earlier` "
                "out of the settings to number people anew."
            )
        run = open_run(os.fspath(run))
    if isinstance(run, DedupeRun):
        return run
    raise InputError(
        "the earlier run is of two files without duplicates, so it has links and no people. To "
        "link a new batch to it: bayeslink link --update RUN B (bl.update(run, b))."
    )


def require_earlier_records(earlier: Any, names: pa.Array) -> None:
    """Refuse records without those of the earlier run, before the work."""
    if earlier is None:
        return
    before = record_names(earlier_people(earlier).as_table("clusters"))
    lacking = len({*before.to_pylist()} - {*names.to_pylist()})
    if lacking:
        raise InputError(
            f"{lacking:,} of the {len(before):,} records of the earlier run are not here. An "
            "update takes all of them and the new ones: give the files as they were, or leave out "
            "earlier to number people anew."
        )


def with_earlier_ids(run: DedupeRun) -> DedupeRun:
    """The run with the ids of the run that it updates, and what changed against that."""
    if run.settings.earlier is None:
        return run
    earlier = earlier_people(run.settings.earlier)
    before, retired = ids_by_record(earlier), _retired(earlier)
    names, faces = record_names(run.table).to_pylist(), run.decision.cluster.tolist()
    people: dict[int, list[str]] = defaultdict(list)
    for row, face in enumerate(faces):
        if row == face:
            people[face].insert(0, names[row])
        else:
            people[face].append(names[row])
    numbers = run.pairs.id_types[0] is not None
    ids = carried_ids([*people.values()], before, retired, numbers=numbers)
    called = dict(zip(people, ids, strict=True))
    entities = [called[face] for face in faces]
    at = run.table.column_names.index("entity_id")
    column = pa.array(entities, run.table["entity_id"].type)
    changed = what_changed(dict(zip(names, entities, strict=True)), before, retired)
    return replace(run, table=run.table.set_column(at, "entity_id", column), changed=changed)


def ids_by_record(run: DedupeRun) -> dict[str, str]:
    """The id of the person of each record, by what the record is called."""
    clusters = run.as_table("clusters")
    names, entities = record_names(clusters).to_pylist(), clusters["entity_id"].to_pylist()
    return dict(zip(names, entities, strict=True))


def _retired(run: DedupeRun) -> dict[str, str]:
    """Ids that no person of a run has any more, each with that to which it led."""
    if run.changed is None:
        return {}
    used = {*run.as_table("clusters")["entity_id"].to_pylist()}
    led: dict[str, str] = {}
    for row in run.changed.table.to_pylist():
        if row["entity_id_before"] not in used:
            led.setdefault(row["entity_id_before"], row["entity_id"])
    return led
