"""What a review shows of a run of people: its tables, and the values of its records."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from bayeslink.comparing.fields import Field
from bayeslink.errors import InputError
from bayeslink.judging.judgements import Pair
from bayeslink.pairs.source import Ints
from bayeslink.review.people_cases import PeopleCases, find_people_cases
from bayeslink.runs.cluster_cells import Cells, CellsOf, cells_of
from bayeslink.runs.cluster_structure import (
    Structure,
    bridges,
    equal_levels,
    levels_by_field,
    several_forms,
)
from bayeslink.runs.cluster_tables import record_names
from bayeslink.runs.dedupe_json import LISTS
from bayeslink.runs.dedupe_run import SURE, DedupeRun
from bayeslink.runs.opening import saved_in
from bayeslink.runs.people_sample import PeopleToDraw

_CLUSTER = "cluster-"  # begins the key of a case that is one cluster in no doubt
_DRAWN = "drawn-"  # and of one that is a cluster drawn at random, with what is shown beside it


@dataclass(frozen=True, slots=True)
class PeopleMaterial:
    """What the cases of a run of people are made of. Records are rows of its clusters."""

    run: DedupeRun
    folder: Path  # where the judgements are kept: the directory of the run
    ids: Sequence[str]  # of each record; of several files "file:id"
    files: Sequence[str] | None  # of each record, where there are several
    clean: frozenset[str]  # files in which nobody is twice
    fields: Mapping[str, Field]  # compared
    further: Sequence[str]  # not compared, only shown
    cells: CellsOf
    structure: Structure
    cases: PeopleCases
    members: list[list[int]]  # the records of each cluster
    levels: Mapping[str, Ints]  # of the pairs, by field
    equal: Mapping[str, frozenset[int]]  # the levels of a field at which two values are the same
    to_draw: PeopleToDraw
    names: tuple[str, str] = ("a", "a")  # of the data sets, in labels for Splink: there is one
    _versions: dict[str, str] = field(default_factory=dict, repr=False)
    _rows: dict[str, Any] = field(default_factory=dict, repr=False)

    def clusters_of(self, key: str) -> list[int]:
        """The clusters of a case, by its key: its number from 1, or a single cluster's."""
        if key.startswith(_DRAWN):
            return self._drawn(key.removeprefix(_DRAWN))
        number = key.removeprefix(_CLUSTER)
        if number.isascii() and number.isdigit() and str(int(number[:18])) == number:
            place = int(number) - 1
            if key == number and 0 <= place < len(self.cases):
                return self.cases.clusters[place]
            if key != number and 0 <= place < len(self.members):
                return [place] if place not in self.cases.of_cluster else []
        return []

    def key_of(self, record: int) -> str:
        """The key of the case that a record belongs to."""
        cluster = int(self.structure.cluster[record])
        case = self.cases.of_cluster.get(cluster)
        return f"{_CLUSTER}{cluster + 1}" if case is None else str(case + 1)

    def _drawn(self, number: str) -> list[int]:
        """A cluster that was drawn, by its number from 1, and those shown with it."""
        if not (number.isascii() and number.isdigit() and str(int(number[:18])) == number):
            return []
        cluster = int(number) - 1
        if not 0 <= cluster < len(self.members):
            return []
        return [cluster, *self.to_draw.frame.beside(cluster)]

    def key_of_drawn(self, cluster: int) -> str:
        """The key of the case that a cluster drawn at random is judged in."""
        own = self.key_of(self.members[cluster][0])
        shown = {cluster, *self.to_draw.frame.beside(cluster)}
        return own if {*self.clusters_of(own)} == shown else f"{_DRAWN}{cluster + 1}"

    def records_of(self, key: str) -> list[int]:
        """The records of a case, as the page numbers them: those of a cluster together."""
        return [record for cluster in self.clusters_of(key) for record in self.members[cluster]]

    def pairs_of(self, key: str) -> list[Pair]:
        """All pairs of the records of a case, by their ids, of each the smaller first.

        Two records of a file in which nobody is twice are two people anyway, and no such pair.
        """
        return [
            ordered(self.ids[x], self.ids[y])
            for x, y in combinations(self.records_of(key), 2)
            if not (self.files and self.files[x] == self.files[y] and self.files[x] in self.clean)
        ]

    def pair(self, x: int, y: int) -> int | None:
        """The row of two records among the pairs that may be one person."""
        n = len(self.ids)
        if "number" not in self._rows:
            number = self.structure.a * n + self.structure.b
            order = np.argsort(number, kind="stable")
            self._rows.update(order=order, number=number[order])
        wanted = min(x, y) * n + max(x, y)
        at = int(np.searchsorted(self._rows["number"], wanted))
        there = at < len(self._rows["number"]) and self._rows["number"][at] == wanted
        return int(self._rows["order"][at]) if there else None

    def probability(self, x: int, y: int) -> float:
        """How probable it is that two records are of one person."""
        row = self.pair(x, y)
        return 0.0 if row is None else float(self.structure.probability[row])

    def row_of(self, ids: Sequence[str]) -> list[int]:
        """The records with these ids; those that are not there are left out."""
        if "ids" not in self._rows:
            self._rows["ids"] = {name: row for row, name in enumerate(self.ids)}
        rows: dict[str, int] = self._rows["ids"]
        return [rows[name] for name in ids if name in rows]

    def values(self, records: Sequence[int]) -> list[Cells]:
        """What is shown of records."""
        return self.cells(records)

    def version(self, key: str) -> str:
        """What a judgement belongs to: a digest of the clusters of a case and of their values."""
        if key not in self._versions:
            records = self.records_of(key)
            compared = [{f: cells[f] for f in self.fields} for cells in self.values(records)]
            clusters = self.structure.cluster[records].tolist()
            first = {c: k for k, c in reversed([*enumerate(clusters)])}
            seen = [[self.ids[r], first[c]] for r, c in zip(records, clusters, strict=True)]
            text = json.dumps([seen, compared])
            self._versions[key] = hashlib.sha256(text.encode()).hexdigest()[:16]
        return self._versions[key]


def ordered(x: str, y: str) -> Pair:
    """A pair as labels have it: the smaller id first."""
    return (x, y) if x <= y else (y, x)


def people_material_of(run: DedupeRun, show: Sequence[str] = ()) -> PeopleMaterial:
    """What there is to review of a saved run of people; reads its records again.

    Parameters
    ----------
    show
        Columns to be seen beside those compared; of several files, as the first calls them.
    """
    folder = saved_in(run)
    told = run.provenance()
    clusters, pairs = run.as_table("clusters"), run.as_table("pairs")
    fields = {f.name: f for f in run.settings.fields or ()}
    fields = {f["name"]: fields[f["name"]] for f in told["fields"]}
    used = {c for f in fields.values() for c in f.columns[0]}
    further = [c for c in dict.fromkeys(show) if c not in used]
    cells = cells_of(run, further)
    if isinstance(cells, str):
        raise InputError(
            f"the records cannot be shown: {cells} Say where the file is now with --a "
            "(open_run(…, a=…)), or find the people again."
        )
    structure = Structure.of(clusters, pairs, told["theta"] / math.log(2))
    levels, equal = levels_by_field(pairs, told["fields"]), equal_levels(told["fields"])
    bridged = [int(structure.cluster[one.ends[0]]) for one in bridges(structure)]
    formed = [one.cluster for one in several_forms(structure, levels, equal)]
    lists = told.get(LISTS, {})
    return PeopleMaterial(
        run=run,
        folder=folder,
        ids=record_names(clusters).to_pylist(),
        files=clusters["file"].to_pylist() if "file" in clusters.column_names else None,
        clean=frozenset(lists.get("clean", ())),
        fields=fields,
        further=further,
        cells=cells,
        structure=structure,
        cases=find_people_cases(structure, SURE, bridged, formed),
        members=structure.members(),
        levels=levels,
        equal=equal,
        to_draw=PeopleToDraw.of(run),
    )
