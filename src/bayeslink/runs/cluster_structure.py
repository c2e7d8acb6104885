"""How the clusters of a deduplication hang together: doubt, single edges, several forms.

Records are numbered by the rows of the clusters' table. Pairs are those of pairs.parquet, so pairs
that were hardly ever one person are not among them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bayeslink.linkage.pointers import components as joined_parts
from bayeslink.pairs.source import Floats, Ints
from bayeslink.runs.cluster_tables import record_names

LIKELY = 0.5  # probability above which a pair is taken to be of one person
NEAR = 0.1  # probability from which a record outside a cluster is shown with it

Edge = tuple[int, int]  # two records, the smaller first


@dataclass(frozen=True, slots=True)
class Structure:
    """Clusters, and the pairs that were one person in some draws."""

    cluster: Ints  # of each record, from 0
    membership: Floats  # of each record
    a: Ints  # of each pair: the smaller record
    b: Ints
    probability: Floats
    weight: Floats  # bits
    needed: float  # bits above which a pair is by itself more likely one person than not

    @classmethod
    def of(cls, clusters: pa.Table, pairs: pa.Table, needed: float) -> Structure:
        """From clusters.parquet and pairs.parquet, with ids as text."""
        ids = record_names(clusters)
        ends = [pc.index_in(pairs[name].cast(ids.type), ids) for name in ("id_a", "id_b")]
        if any(at.null_count for at in ends):
            raise ValueError("a pair has a record that no cluster has")
        x, y = (at.to_numpy().astype(np.int64) for at in ends)
        number = clusters["entity_id"].combine_chunks().dictionary_encode().indices
        return cls(
            number.to_numpy().astype(np.int64),
            clusters["membership_probability"].to_numpy(),
            np.minimum(x, y),
            np.maximum(x, y),
            pairs["probability"].to_numpy(),
            pairs["match_weight"].to_numpy(),
            needed,
        )

    @property
    def size(self) -> Ints:
        """Records of each cluster."""
        return np.bincount(self.cluster)

    def members(self) -> list[list[int]]:
        """The records of each cluster."""
        order = np.argsort(self.cluster, kind="stable")
        return [part.tolist() for part in np.split(order, np.cumsum(self.size)[:-1])]

    def strong(self) -> Ints:
        """Pairs within clusters that are likely, and also by their own weight alone.

        Being one person is transitive: where a goes with b and b with c, the pair of a and c is as
        probable, however little these two agree. So an edge has to have a weight of its own.
        """
        within = self.cluster[self.a] == self.cluster[self.b]
        alone = (self.probability > LIKELY) & (self.weight > self.needed)
        return np.flatnonzero(within & alone)


# --- single edges -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Bridge:
    """A pair without which no strong pair would hold two parts of a cluster together."""

    pair: int  # its row in pairs.parquet
    ends: Edge
    sides: tuple[tuple[int, ...], tuple[int, ...]]  # of each end: the records that go with it
    at_stake: float  # pairs of records that are expected to be wrong through it


def bridges(structure: Structure) -> list[Bridge]:
    """The single edges that clusters of three records or more hang on, the worst of each cluster.

    Worst first: by the pairs of records joined through the edge times the probability that its
    two records are two people, then by these pairs, then by its weight.
    """
    size, of_cluster = structure.size, structure.cluster
    strong = structure.strong()
    strong = strong[size[of_cluster[structure.a[strong]]] > 2]
    by_cluster: dict[int, dict[Edge, int]] = {}
    for pair in strong.tolist():
        edge = int(structure.a[pair]), int(structure.b[pair])
        by_cluster.setdefault(int(of_cluster[edge[0]]), {})[edge] = pair
    found = []
    for edges in by_cluster.values():
        bridged = [
            _bridge(structure, edges[edge], edge, sides) for edge, sides in cut_edges(edges).items()
        ]
        if bridged:
            found.append(min(bridged, key=lambda one: _rank(structure, one)))
    return sorted(found, key=lambda one: _rank(structure, one))


def loose(structure: Structure) -> int:
    """How many clusters of two records or more are in parts between which no pair is strong."""
    strong = structure.strong()
    part = joined_parts(structure.a[strong], structure.b[strong], len(structure.cluster))
    parts = np.unique(np.stack([structure.cluster, part]), axis=1)[0]
    return int((np.bincount(parts) > 1).sum())


def _bridge(
    structure: Structure, pair: int, edge: Edge, sides: tuple[set[int], set[int]]
) -> Bridge:
    joined = len(sides[0]) * len(sides[1])
    ordered = tuple(sorted(sides[0])), tuple(sorted(sides[1]))
    return Bridge(pair, edge, ordered, joined * (1 - float(structure.probability[pair])))


def _rank(structure: Structure, one: Bridge) -> tuple[float, int, float, Edge]:
    joined = len(one.sides[0]) * len(one.sides[1])
    return -round(one.at_stake, 3), -joined, float(structure.weight[one.pair]), one.ends


def cut_edges(edges: Iterable[Edge]) -> dict[Edge, tuple[set[int], set[int]]]:
    """The edges whose loss parts their component, and the two parts: of its ends, in order.

    In a tree of a depth-first search, the edge to a record is one if nothing below it leads back
    above it.
    """
    beside = _neighbours(edges)
    entered: dict[int, int] = {}
    out: dict[Edge, tuple[set[int], set[int]]] = {}
    for root in sorted(beside):
        if root not in entered:
            order, parent = _depth_first(beside, root, entered)
            out |= _cut_in(order, parent, beside, entered)
    return out


def _neighbours(edges: Iterable[Edge]) -> dict[int, list[int]]:
    beside: dict[int, list[int]] = {}
    for a, b in edges:
        beside.setdefault(a, []).append(b)
        beside.setdefault(b, []).append(a)
    return beside


def _depth_first(
    beside: Mapping[int, list[int]], root: int, entered: dict[int, int]
) -> tuple[list[int], dict[int, int]]:
    """Records in the order of a depth-first search, and from which each was reached."""
    order, parent, stack = [], {}, [(root, -1)]
    while stack:
        at, before = stack.pop()
        if at in entered:
            continue
        entered[at], parent[at] = len(entered), before
        order.append(at)
        stack += [(other, at) for other in beside[at] if other not in entered]
    return order, parent


def _cut_in(
    order: Sequence[int],
    parent: Mapping[int, int],
    beside: Mapping[int, list[int]],
    entered: Mapping[int, int],
) -> dict[Edge, tuple[set[int], set[int]]]:
    earliest = {at: entered[at] for at in order}  # that a record or what hangs on it leads to
    below = {at: {at} for at in order}
    out: dict[Edge, tuple[set[int], set[int]]] = {}
    for at in reversed(order):
        before = parent[at]
        for other in beside[at]:
            if other != before:
                earliest[at] = min(earliest[at], entered[other])
        if before < 0:
            continue
        if earliest[at] == entered[at]:
            sides = {at: set(below[at]), before: set(order) - below[at]}
            a, b = sorted((at, before))
            out[a, b] = sides[a], sides[b]
        earliest[before] = min(earliest[before], earliest[at])
        below[before] |= below[at]
    return out


# --- doubt ------------------------------------------------------------------------------------


def in_doubt(structure: Structure, sure: float) -> list[list[int]]:
    """Clusters with a record below `sure`, each with those it may be one with; the worst first.

    A list holds clusters that pairs of probability `NEAR` or more join, one at least in doubt.
    """
    of_cluster = structure.cluster
    lowest = np.ones(len(structure.size))
    np.minimum.at(lowest, of_cluster, structure.membership)
    near = structure.probability >= NEAR
    edges = zip(of_cluster[structure.a[near]], of_cluster[structure.b[near]], strict=True)
    doubted = np.flatnonzero(lowest < sure).tolist()
    groups = components(doubted, [(int(x), int(y)) for x, y in edges if x != y])
    found = [(float(lowest[group].min()), group) for group in groups]
    return [group for least, group in sorted(found) if least < sure]


def components(nodes: Iterable[int], edges: Iterable[Edge]) -> list[list[int]]:
    """Nodes that edges join, directly or through others: each list in order, as the lists are."""
    beside: dict[int, list[int]] = {node: [] for node in nodes}
    beside |= _neighbours(edges)
    entered: dict[int, int] = {}
    return [
        sorted(_depth_first(beside, root, entered)[0])
        for root in sorted(beside)
        if root not in entered
    ]


# --- several forms ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Forms:
    """A person whose records fall into groups by some fields."""

    cluster: int
    groups: tuple[tuple[int, ...], ...]  # two or more, of two records or more
    fields: tuple[str, ...]  # that all fall into these groups


def several_forms(
    structure: Structure, levels: Mapping[str, Ints], agree: Mapping[str, frozenset[int]]
) -> list[Forms]:
    """People whose records fall into groups that agree within and not between, most telling first.

    For a field: two groups or more, of two records or more each, so that all pairs of a group
    agree and no pair of two groups does. A record on its own, or without a value, is in none.
    Fields with the same groups are told together; of each person, the groups of most fields.

    `levels` are those of the pairs, by field, and `agree` the levels that count as agreeing.
    """
    of_cluster, size = structure.cluster, structure.size
    own = of_cluster[structure.a]
    within = (own == of_cluster[structure.b]) & (size[own] >= 4)
    pairs_of: dict[int, list[int]] = {}
    for pair in np.flatnonzero(within).tolist():
        pairs_of.setdefault(int(own[pair]), []).append(pair)
    found = []
    for cluster, pairs in pairs_of.items():
        by_groups: dict[tuple[tuple[int, ...], ...], list[str]] = {}
        for name, level in levels.items():
            told = {
                (int(structure.a[p]), int(structure.b[p])): int(level[p]) in agree[name]
                for p in pairs
                if level[p]
            }
            if groups := groups_of(told):
                by_groups.setdefault(groups, []).append(name)
        if by_groups:
            best = max(by_groups, key=lambda groups: (len(by_groups[groups]), _held(groups)))
            found.append(Forms(cluster, best, tuple(by_groups[best])))
    return sorted(found, key=lambda one: (-len(one.fields), -_held(one.groups), one.cluster))


def levels_by_field(pairs: pa.Table, fields: Sequence[Mapping[str, Any]]) -> dict[str, Ints]:
    """The levels of the pairs in pairs.parquet, by field as run.json tells of them."""
    return {f["name"]: pairs[f"gamma_{f['name']}"].to_numpy().astype(np.int64) for f in fields}


def equal_levels(fields: Sequence[Mapping[str, Any]]) -> dict[str, frozenset[int]]:
    """The levels at which two values are the same, by field: "equal", else the best."""
    found = {}
    for f in fields:
        levels = {k for k, name in enumerate(f["levels"], 1) if name.startswith("equal")}
        found[f["name"]] = frozenset(levels or {len(f["levels"])})
    return found


def _held(groups: Sequence[Sequence[int]]) -> int:
    return sum(map(len, groups))


def groups_of(agree: Mapping[Edge, bool]) -> tuple[tuple[int, ...], ...]:
    """Groups of two records or more, from whether the pairs with values agree; () if under two."""
    records = {record for edge in agree for record in edge}
    joined = components(records, [edge for edge, same in agree.items() if same])
    groups = [
        tuple(group)
        for group in joined
        if len(group) > 1 and all(agree.get(edge, True) for edge in combinations(group, 2))
    ]
    return tuple(groups) if len(groups) > 1 else ()
