"""Clusters as people look at them: which records to show, in which order, with which numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from bayeslink.number_format import signed
from bayeslink.pairs.pair_tables import MISSING
from bayeslink.report.cluster_material import ClusterMaterial
from bayeslink.report.cluster_picture import Arc, Node, picture
from bayeslink.report.markup import figure, paragraph
from bayeslink.report.svg import escape, tag
from bayeslink.runs.cluster_structure import LIKELY, NEAR, Edge
from bayeslink.runs.dedupe_run import SURE

MOST = 8  # records in a picture

Groups = Sequence[tuple[str, Sequence[int]]]  # heading, records


def example(
    material: ClusterMaterial,
    title: str,
    groups: Groups,
    *,
    remark: str = "",
    probabilities: bool = False,
    held: Edge | None = None,
    first: Sequence[int] = (),
) -> str:
    """Some records with a picture of them.

    Numbers on edges are bits unless they are `probabilities`. `held` is an edge to stand out;
    `first` are the records to show if there are too many.
    """
    everyone = [record for _, own in groups for record in own]
    strength = _among(material, everyone, probabilities)
    among = records_shown(groups, strength, held or first, held is not None)
    records = [record for _, own in among for record in own]
    left_out = sum(len(own) for _, own in groups) - len(records)
    same, cells = _told_apart(material.values(records))
    nodes = {r: _node(material, r, own) for r, own in zip(records, cells, strict=True)}
    chart = picture(
        title,
        [(heading, [nodes[r] for r in own]) for heading, own in among],
        _arcs(material, records, probabilities, held),
    )
    more = f"{left_out:,} more records are not shown." if left_out else ""
    alike = f"The same in all: {same}." if same else ""
    words = " ".join(filter(None, [remark, more, alike]))
    body = (paragraph(words, "aside") if words else "") + figure(chart, "", name="cluster")
    return tag("article", tag("h3", tag("bdi", escape(title))) + body, cls="example")


# --- which records ----------------------------------------------------------------------------


def _among(
    material: ClusterMaterial, records: Sequence[int], probabilities: bool
) -> dict[Edge, float]:
    """How strong the pairs of these records are."""
    s = material.structure
    strength = s.probability if probabilities else s.weight
    pairs = _pairs_among(material, records)
    return {(int(s.a[p]), int(s.b[p])): float(strength[p]) for p in pairs}


def _pairs_among(material: ClusterMaterial, records: Sequence[int]) -> list[int]:
    s, wanted = material.structure, np.asarray(sorted(records), np.int64)
    inside = np.isin(s.a, wanted) & np.isin(s.b, wanted)
    return [int(p) for p in np.flatnonzero(inside)]


def records_shown(
    groups: Groups, strength: Mapping[Edge, float], first: Sequence[int], held: bool
) -> list[tuple[str, list[int]]]:
    """As many records as a picture takes, those of strong pairs beside each other."""
    chosen = {record for _, own in groups for record in own}
    if len(chosen) > MOST:
        start = list(first)[:MOST] or [groups[0][1][0]]
        chosen = set(_nearest(start, sorted(chosen - {*start}), strength)[:MOST])
    out: list[tuple[str, list[int]]] = []
    for heading, own in groups:
        kept = [record for record in own if record in chosen]
        if kept:
            at = next((r for r in first if r in kept), kept[0])
            order = _in_order(kept, at, strength)
            # What a cluster hangs on is an edge between neighbours.
            out.append((heading, order if out or not held else order[::-1]))
    return out


def _nearest(start: list[int], others: list[int], strength: Mapping[Edge, float]) -> list[int]:
    """Records, each time the one with the strongest pair to one that is there."""
    order, left = list(start), list(others)
    best = {r: max(_of(strength, r, at) for at in order) for r in left}
    while left and len(order) < MOST:
        record = max(left, key=lambda r: (best[r], -r))
        left.remove(record)
        order.append(record)
        best = {r: max(best[r], _of(strength, r, record)) for r in left}
    return order


def _in_order(own: list[int], at: int, strength: Mapping[Edge, float]) -> list[int]:
    """Records from one on, each after the one that it has its strongest pair with."""
    left, order = list(own), list[int]()
    while left:
        record = max(left, key=lambda r: (np.inf if r == at else _of(strength, r, at), -r))
        left.remove(record)
        order.append(record)
        at = record
    return order


def _of(strength: Mapping[Edge, float], x: int, y: int) -> float:
    return strength.get((min(x, y), max(x, y)), -np.inf)


# --- their marks ------------------------------------------------------------------------------


def _node(material: ClusterMaterial, record: int, cells: Sequence[tuple[str, str, bool]]) -> Node:
    sure = float(material.structure.membership[record])
    return Node(material.name(record), probability(sure), tuple(cells), sure < SURE)


def _arcs(
    material: ClusterMaterial, records: Sequence[int], probabilities: bool, held: Edge | None
) -> list[Arc]:
    s, place = material.structure, {record: k for k, record in enumerate(records)}
    out = []
    for pair in _pairs_among(material, records):
        a, b = int(s.a[pair]), int(s.b[pair])
        p, w = float(s.probability[pair]), float(s.weight[pair])
        if probabilities and p < NEAR:
            continue
        x, y = sorted((a, b), key=place.__getitem__)
        enough = p > LIKELY if probabilities else w > s.needed
        out.append(
            Arc(
                place[x],
                place[y],
                probability(p).replace("0.", ".").replace(" ", "") if probabilities else _short(w),
                "held" if (a, b) == held else "curve" if enough else "guide",
                f"{material.name(x)} and {material.name(y)}: {signed(w)} bits, probability "
                f"{probability(p)}",
            )
        )
    return out


def _short(bits: float) -> str:
    """A weight in three characters, or four, as is room for on a phone."""
    return signed(bits, 0 if abs(bits) >= 9.95 else 1)


def _told_apart(
    values: Sequence[Mapping[str, str | None]],
) -> tuple[str, list[list[tuple[str, str, bool]]]]:
    """What is the same in all records, in words; and what is not, by record.

    A value stands out that is not the most frequent one, where there is one such.
    """
    names = list(values[0]) if values else []
    same, cells = [], [list[tuple[str, str, bool]]() for _ in values]
    for name in names:
        own = [record[name] or MISSING for record in values]
        counts = Counter(value for value in own if value != MISSING).most_common(2)
        if len({*own}) == 1 and len(values) > 1:
            same.append(f"{name} {own[0]}")
            continue
        usual = counts[0][0] if counts and counts[0][1] > 1 else None
        if len(counts) > 1 and counts[0][1] == counts[1][1]:
            usual = None
        for row, value in zip(cells, own, strict=True):
            row.append((name, value, usual is not None and value not in (usual, MISSING)))
    return "; ".join(same), cells


def probability(p: float) -> str:
    """A probability in two decimals, and never as certain as it is not."""
    if p > 0.995:
        return "> 0.99"
    return "< 0.01" if p < 0.005 else f"{p:.2f}"
