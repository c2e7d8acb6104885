"""What the report of a deduplication is made of, gathered from a run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from bayeslink.runs import link_toml
from bayeslink.runs.cluster_cells import Cells, CellsOf, cells_of
from bayeslink.runs.cluster_structure import (
    Bridge,
    Forms,
    Structure,
    bridges,
    equal_levels,
    in_doubt,
    levels_by_field,
    several_forms,
)
from bayeslink.runs.cluster_tables import record_names
from bayeslink.runs.dedupe_run import SURE, DedupeRun
from bayeslink.sampling.entities import Entities

_AS_ASKED = "The records' values and ids are left out, as asked."


@dataclass(frozen=True, slots=True)
class ClusterMaterial:
    """The tables of a run, its words, how its clusters hang together, and the records' values."""

    summary: dict[str, Any]  # run.json
    clusters: pa.Table  # the records of a person together
    pairs: pa.Table
    parameters: pa.Table
    draws: pa.Table
    entities: Entities
    settings: str  # dedupe.toml, its paths without their folders
    structure: Structure
    doubt: list[list[int]]  # clusters, with those they may be one with
    bridges: list[Bridge]
    forms: list[Forms]
    cells: CellsOf | None
    remark: str  # why values are not shown; "" if they are
    named: bool  # whether ids are shown

    def name(self, record: int) -> str:
        """What a record is called."""
        return (
            str(record_names(self.clusters.slice(record, 1))[0])
            if self.named
            else f"record {record + 1}"
        )

    def values(self, records: Sequence[int]) -> list[Cells]:
        """What records hold; nothing, if values are not shown."""
        return [{} for _ in records] if self.cells is None else self.cells(records)


def gather(run: DedupeRun, *, values: bool) -> ClusterMaterial:
    """What the report tells of a run, fresh or opened."""
    summary = run.provenance()
    clusters, pairs = run.as_table("clusters"), run.as_table("pairs")
    cells = cells_of(run) if values else _AS_ASKED
    remark = cells if isinstance(cells, str) else ""
    if remark and values:
        remark = f"The records' values cannot be shown: {remark}"
    structure = Structure.of(clusters, pairs, summary["theta"] / math.log(2))
    fields = summary["fields"]
    return ClusterMaterial(
        summary=summary,
        clusters=clusters,
        pairs=pairs,
        parameters=run.as_table("parameters"),
        draws=run.as_table("draws"),
        entities=run.entities,
        settings=link_toml.without_folders(run.toml),
        structure=structure,
        doubt=in_doubt(structure, SURE),
        bridges=bridges(structure),
        forms=several_forms(structure, levels_by_field(pairs, fields), equal_levels(fields)),
        cells=None if isinstance(cells, str) else cells,
        remark=remark,
        named=values,
    )
