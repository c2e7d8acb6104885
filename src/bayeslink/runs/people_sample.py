"""A random sample of the people of a run to judge: which clusters, and how many from where.

What is drawn is a cluster, of one record or of several, and with it are shown all clusters that may
be one with it, and its nearest others that no list has (`runs.people_reach`). So a verdict says who
its records are, and which of their people have records elsewhere; and clusters may be shown more
than once without any harm, as what is counted of each is its own share (`runs.people_errors`).
Strata are by records, and by how sure the run is of a cluster: that it is one person, and all of
that person. The probabilities decide how many are drawn where.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from bayeslink.judging.judgements import Pair, Sample, Stratum
from bayeslink.pairs.source import Floats, Ints
from bayeslink.runs.audit_sample import SURE, allocate, checked_size
from bayeslink.runs.cluster_structure import Structure
from bayeslink.runs.cluster_tables import record_names
from bayeslink.runs.dedupe_json import LISTS
from bayeslink.runs.dedupe_run import DedupeRun
from bayeslink.runs.people_reach import FLOOR

SHOWN = 24  # records shown with a cluster, its own among them; but always the nearest clusters
_DOUBT = 0.9  # divides the clusters that are not sure
_SIZES = {
    1: "single records",
    2: "clusters of 2",
    3: "clusters of 3 and 4",
    5: "clusters of 5 and more",
}
_HOW_SURE = (f"{SURE:g} and above", f"{_DOUBT:g} to {SURE:g}", f"below {_DOUBT:g}")
STRATA = tuple(f"{size}, {sure}" for size in _SIZES.values() for sure in _HOW_SURE)
ALONE = STRATA[0]  # none is drawn from here where no list shows anything beside a record

Reach = dict[int, dict[int, int]]  # of a cluster its nearest others, each with how often shown


@dataclass(frozen=True, slots=True)
class PeopleFrame:
    """The clusters of a run, with what each is shown with, and its stratum."""

    structure: Structure
    members: list[list[int]]  # the records of each cluster
    near: dict[int, list[int]]  # clusters that one may be one with, the most probable first
    false: Floats  # how probable it is that a cluster has two people
    missed: Floats  # and that it lacks records of its people
    stratum: Ints  # of each cluster, as position in `STRATA`
    beyond: float  # pairs of one person that the model expects where none is shown
    reach: Reach | None = None  # what no list has; None in runs that did not keep it

    @classmethod
    def of(cls, structure: Structure, reach: Reach | None = None) -> PeopleFrame:
        """From the clusters and the pairs of a run."""
        false, across = _false(structure), _across(structure)
        near, missed = _near(structure, across)
        surest = np.zeros(len(false))
        for (x, y), p in across.items():
            surest[x], surest[y] = max(surest[x], p), max(surest[y], p)
        sure = 1 - np.maximum(false, surest)
        size = np.searchsorted([*_SIZES], structure.size, side="right") - 1
        stratum = len(_HOW_SURE) * size + (sure < SURE) + (sure < _DOUBT)
        beyond = _beyond(structure, near, reach or {})
        return cls(structure, structure.members(), near, false, missed, stratum, beyond, reach)

    def beside(self, cluster: int) -> dict[int, int]:
        """The clusters shown with one, each with how many of the two show the other: 1 or 2."""
        near = {d: 1 + (cluster in self.near.get(d, ())) for d in self.near.get(cluster, ())}
        return near | (self.reach or {}).get(cluster, {})

    def shown(self, cluster: int) -> list[int]:
        """The records that are shown with a cluster, its own first."""
        return [r for c in (cluster, *self.beside(cluster)) for r in self.members[c]]

    def drawn_from(self, stratum: Stratum) -> bool:
        """Whether anything is shown beside the clusters of a stratum, or in them."""
        return bool(self.reach) or stratum.name != ALONE

    def rows(self) -> list[Ints]:
        """The clusters of each stratum."""
        return [np.flatnonzero(self.stratum == k) for k in range(len(STRATA))]

    def strata(self) -> tuple[Stratum, ...]:
        """The strata, with the clusters expected to be wrong."""
        wrong = np.minimum(1.0, self.false + self.missed)
        return tuple(
            Stratum(name, not name.startswith(_SIZES[1]), len(rows), float(wrong[rows].sum()))
            for name, rows in zip(STRATA, self.rows(), strict=True)
        )


@dataclass(frozen=True)
class PeopleToDraw:
    """A run of people: its frame, and what its records are called."""

    run: DedupeRun
    ids: Sequence[str]  # of each record, by the rows of its clusters
    files: Sequence[str] | None  # of each record, where there are several
    clean: frozenset[str]  # files in which nobody is twice

    @classmethod
    def of(cls, run: DedupeRun) -> PeopleToDraw:
        clusters = run.as_table("clusters")
        return cls(
            run,
            record_names(clusters).to_pylist(),
            clusters["file"].to_pylist() if "file" in clusters.column_names else None,
            frozenset(run.provenance().get(LISTS, {}).get("clean", ())),
        )

    @cached_property
    def frame(self) -> PeopleFrame:
        run = self.run
        tables = run.as_table("clusters"), run.as_table("pairs")
        structure = Structure.of(*tables, run.summary()["theta"] / math.log(2))
        return PeopleFrame.of(structure, self._reach(structure))

    def _reach(self, structure: Structure) -> Reach | None:
        table = self.run.as_table("reach")
        if table is None:
            return None
        found: Reach = {}
        for row in table.select(["id_a", "id_b", "times"]).to_pylist():
            c, d = (int(structure.cluster[self.row_of[row[side]]]) for side in ("id_a", "id_b"))
            found.setdefault(c, {})[d] = row["times"]
        return found

    @cached_property
    def row_of(self) -> dict[str, int]:
        return {name: row for row, name in enumerate(self.ids)}

    def pairs(self, cluster: int) -> list[tuple[int, int]]:
        """The pairs that say who a cluster's records are, each with one of them first.

        Two records of a file in which nobody is twice are two people anyway, and no such pair.
        """
        own, shown = self.frame.members[cluster], self.frame.shown(cluster)
        return [
            (r, x)
            for k, r in enumerate(own)
            for x in shown[k + 1 :]
            if not (self.files and self.files[r] == self.files[x] and self.files[r] in self.clean)
        ]

    def drawn(self, sample: Sample) -> list[tuple[int, int]]:
        """The clusters of a sample with the stratum of each, in its order.

        A sample has all pairs of a cluster one after another, each with a record of it first.
        """
        cluster = self.frame.structure.cluster
        of_pair = [int(cluster[self.row_of[first]]) for first, _ in sample.pairs]
        changes = [k for k, (x, y) in enumerate(pairwise([-1, *of_pair])) if x != y]
        return [(of_pair[k], sample.stratum[k]) for k in changes]


def people_sample(made: PeopleToDraw, size: int, seed: int) -> Sample:
    """A stratified random sample of clusters, as the pairs that say who their records are."""
    checked_size(size)
    rng, rows = np.random.default_rng(seed), made.frame.rows()
    drawn = [
        (int(cluster), k)
        for k, n in enumerate(numbers(made.frame, size))
        for cluster in rng.choice(rows[k], n, replace=False)
    ]
    pairs: list[Pair] = []
    stratum: list[int] = []
    for place in rng.permutation(len(drawn)).tolist():
        cluster, k = drawn[place]
        own = [(made.ids[r], made.ids[x]) for r, x in made.pairs(cluster)]
        pairs += own
        stratum += [k] * len(own)
    fingerprint = made.run.fingerprint
    return Sample(fingerprint, int(seed), made.frame.strata(), tuple(pairs), tuple(stratum))


def numbers(frame: PeopleFrame, size: int) -> Ints:
    """How many clusters to draw from each stratum."""
    strata, found = frame.strata(), np.zeros(len(STRATA), np.int64)
    from_ = np.array([k for k, s in enumerate(strata) if s.size and frame.drawn_from(s)], np.int64)
    sizes = np.array([strata[k].size for k in from_], np.int64)
    found[from_] = allocate(sizes, np.array([strata[k].expected for k in from_]), size)
    return found


def _false(structure: Structure) -> Floats:
    """Of each cluster: how probable it is that its least probable pair is of two people."""
    x, size = structure.cluster[structure.a], structure.size
    within = x == structure.cluster[structure.b]
    lowest = np.ones(len(size))
    np.minimum.at(lowest, x[within], structure.probability[within])
    listed = np.bincount(x[within], minlength=len(size))
    lowest[listed < size * (size - 1) // 2] = 0.0  # a pair that hardly ever was one person
    return 1 - lowest


def _across(structure: Structure) -> dict[tuple[int, int], float]:
    """Pairs of clusters above the floor, each with its most probable pair of records."""
    x, y = structure.cluster[structure.a], structure.cluster[structure.b]
    found: dict[tuple[int, int], float] = {}
    for row in np.flatnonzero((x != y) & (structure.probability > FLOOR)).tolist():
        pair = min(int(x[row]), int(y[row])), max(int(x[row]), int(y[row]))
        found[pair] = max(found.get(pair, 0.0), float(structure.probability[row]))
    return found


def _near(
    structure: Structure, across: dict[tuple[int, int], float]
) -> tuple[dict[int, list[int]], Floats]:
    """What each cluster is shown with, as far as there is room; and what it may lack."""
    size, missed = structure.size, np.zeros(len(structure.size))
    room = {c: SHOWN - int(size[c]) for pair in across for c in pair}
    near: dict[int, list[int]] = {}
    for (x, y), p in sorted(across.items(), key=lambda one: (-one[1], one[0])):
        for c, other in ((x, y), (y, x)):
            missed[c] += p
            if size[other] <= room[c] or c not in near:
                near.setdefault(c, []).append(other)
                room[c] -= int(size[other])
    return near, np.minimum(1.0, missed)


def _beyond(structure: Structure, near: dict[int, list[int]], reach: Reach) -> float:
    """Pairs of one person that the model expects in two clusters not shown together."""
    ends = structure.cluster[structure.a], structure.cluster[structure.b]
    across = np.flatnonzero(ends[0] != ends[1])
    shown = {(c, d) for lists in (near, reach) for c, others in lists.items() for d in others}
    pairs = zip(*(end[across].tolist() for end in ends), strict=True)
    out = [(x, y) not in shown and (y, x) not in shown for x, y in pairs]
    return float(structure.probability[across][out].sum())
