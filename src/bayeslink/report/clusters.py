"""The sections on people: how many have how many records, and clusters that are worth a look."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bayeslink.number_format import signed
from bayeslink.report import curves
from bayeslink.report.cluster_examples import example, probability
from bayeslink.report.cluster_material import ClusterMaterial
from bayeslink.report.markup import (
    Cell,
    Number,
    counted,
    figure,
    folded,
    paragraph,
    section,
    table,
)
from bayeslink.report.rows import Scale, Step, row_bar, swatches
from bayeslink.report.svg import tag
from bayeslink.runs.cluster_structure import Bridge, Forms, loose
from bayeslink.runs.dedupe_json import LISTS
from bayeslink.runs.dedupe_run import SURE

_LARGEST, _DOUBTED, _HANGING, _FORMS = 5, 6, 6, 6  # clusters that are shown
_MORE = 24  # of those in doubt, folded


def sizes(material: ClusterMaterial) -> str:
    """People by number of records, with intervals, beside the clusters."""
    size = material.structure.size
    rows = [r for r in material.summary["people_by_records"] if r["high"] or r["people"] >= 0.05]
    most = len(material.summary["people_by_records"])
    across = Scale.of([0.0, *(float(x) for r in rows for x in (r["people"], r["high"]))])
    cells: list[list[Cell]] = []
    for r in rows:
        k = int(r["records"].split()[0])
        found = int((size >= k if k == most and "more" in r["records"] else size == k).sum())
        people, between = counted(r["people"], 1), f"{counted(r['low'])}–{counted(r['high'])}"
        tip = f"{people} people with {r['records']} records, 95 % interval {between}"
        bar = row_bar(Step(0.0, r["people"], (r["low"], r["high"])), across, tip)
        cells.append([r["records"], Number(people), Number(between), bar, Number(counted(found))])
    return section(
        "sizes",
        "People by number of records",
        table(
            ["Records", "People", "95 %", "", "Clusters"],
            cells,
            caption="How many people have so many records: the mean over the draws, and the "
            "interval. At the right, how many such clusters were decided on.",
            legend=swatches([("full", "people"), ("interval", "95 % interval")]),
            name="sizes",
        ),
        _by_files(material),
    )


def _by_files(material: ClusterMaterial) -> str:
    """Of several files: people by the files they are in."""
    rows = material.summary.get(LISTS, {}).get("people", [])
    across = Scale.of([0.0, *(float(x) for r in rows for x in (r["people"], r["high"]))])
    cells: list[list[Cell]] = []
    for r in rows:
        names = r["files"].replace("+", ", ")
        people, between = counted(r["people"], 1), f"{counted(r['low'])}–{counted(r['high'])}"
        tip = f"{people} people in {names}, 95 % interval {between}"
        bar = row_bar(Step(0.0, r["people"], (r["low"], r["high"])), across, tip)
        cells.append([names, Number(people), Number(between), bar])
    caption = "How many people are in exactly these files."
    return table(["Files", "People", "95 %", ""], cells, caption=caption, name="files")


def number_of_people(material: ClusterMaterial) -> str:
    s, people = material.summary, material.entities
    chart = curves.people(people.draws, people.interval())
    return folded(
        "people",
        "The number of people",
        paragraph(
            "Every draw of the sampler has all records as people. The bars are the numbers of "
            f"people in the draws. The clusters, of which there are {counted(s['clusters'])}, are "
            "the one answer with the fewest errors expected: their number need not be likeliest."
        ),
        figure(chart, "Posterior of the number of people.", name="people"),
    )


# --- clusters ---------------------------------------------------------------------------------


def largest(material: ClusterMaterial) -> str:
    size, members = material.structure.size, material.structure.members()
    order = np.argsort(-size, kind="stable")
    chosen = [k for k in order[:_LARGEST].tolist() if size[k] > 1]
    title = "The largest clusters"
    if not chosen:
        return folded("largest", title, paragraph("No cluster has two records."))
    return folded(
        "largest",
        title,
        paragraph(f"{_READ_BITS} {material.remark}"),
        _on_marks(),
        *(
            example(
                material, _called(material, members[k]), [("", members[k])],
                first=_least_sure(material, members[k]),
            )
            for k in chosen
        ),
    )  # fmt: skip


def doubtful(material: ClusterMaterial) -> str:
    s, members = material.structure, material.structure.members()
    found, title = material.doubt, f"Clusters in doubt ({counted(len(material.doubt))})"
    if not found:
        words = f"No record is in doubt: all are at least {SURE} sure of their cluster."
        return folded("doubt", title, paragraph(words))
    records, n = int((s.membership < SURE).sum()), len(found)
    shown = []
    for clusters in found[: _DOUBTED + _MORE]:
        own = [members[k] for k in clusters]
        several = len(own) > 1
        groups = [(_called(material, m) if several and len(m) > 1 else "", m) for m in own]
        everyone = [record for m in own for record in m]
        name = _called(material, everyone) if not several else _between(own)
        first = _least_sure(material, everyone)
        shown.append(example(material, name, groups, probabilities=True, first=first))
    words = (
        f"{_n(records, 'record is', 'records are')} less than {SURE} sure of "
        f"{'its' if records == 1 else 'their'} cluster, in {_n(n, 'place', 'places')}; the least "
        f"sure come first{_of_them(n, _DOUBTED + _MORE)}. Beside each record is its probability of "
        "membership: to be one with the others of its cluster, or, of a record on its own, to have "
        "no other. On an edge is the probability that its two records are one person. Clusters "
        "that may be one stand together, with a line between them."
    )
    return folded(
        "doubt",
        title,
        paragraph(f"{words} {material.remark}"),
        _on_marks(("curve", "more likely one person than not"), ("guide", "less likely")),
        *shown[:_DOUBTED],
        _more(shown[_DOUBTED:]),
    )


def _more(examples: Sequence[str]) -> str:
    """Further examples, folded."""
    if not examples:
        return ""
    return tag(
        "details", tag("summary", f"{len(examples)} more") + "".join(examples), cls="pattern"
    )


def hanging(material: ClusterMaterial) -> str:
    """Clusters that one pair holds together."""
    s = material.structure
    found, of_three, apart = material.bridges, int((s.size > 2).sum()), loose(s)
    words = (
        "A pair with a weight above "
        f"{signed(s.needed)} bits is by itself more likely one person than not. A cluster hangs on "
        "one edge where a single such pair holds two parts of it together: without it, no pair "
        "between them would be enough. Clusters of two records always do, and are left out. "
    )
    if not of_three:
        words += "No cluster has three records."
    else:
        words += (
            f"{counted(len(found))} of {_n(of_three, 'cluster', 'clusters')} of three records or "
            f"more {'hangs' if len(found) == 1 else 'hang'} on one edge"
        )
        words += f"{_of_them(len(found), _HANGING)}, most to lose first." if found else "."
    if apart:
        words += (
            f" {_n(apart, 'cluster is', 'clusters are')} in parts between which no pair is enough "
            "by itself: several weaker ones hold them."
        )
    return folded(
        "hanging",
        f"Clusters that hang on one edge ({counted(len(found))})",
        paragraph(words + (f" {material.remark}" if found else "")),
        _on_marks(("held", "what it hangs on"), *_BITS) if found else "",
        *(_hanging(material, one) for one in found[:_HANGING]),
    )


def _hanging(material: ClusterMaterial, one: Bridge) -> str:
    s = material.structure
    x, y = (material.name(end) for end in one.ends)
    parts = [len(side) for side in one.sides]
    hangs = _n(parts[0] * parts[1], "pair hangs", "pairs hang")
    remark = (
        f"Without the pair of {x} and {y} ({signed(float(s.weight[one.pair]))} bits, probability "
        f"{probability(float(s.probability[one.pair]))}) it falls into parts of "
        f"{parts[0]} and {_n(parts[1], 'record', 'records')}; {hangs} on it."
    )
    everyone = [*one.sides[0], *one.sides[1]]
    members = np.flatnonzero(s.cluster == s.cluster[one.ends[0]]).tolist()
    others = [record for record in members if record not in everyone]
    groups: list[tuple[str, Sequence[int]]] = [("", side) for side in one.sides]
    if others:
        groups.append(("held otherwise", others))
    return example(material, _called(material, members), groups, remark=remark, held=one.ends)


def forms(material: ClusterMaterial) -> str:
    """People whose records fall into groups."""
    found = material.forms
    words = (
        "The values of a person fall into two forms where a field is equal within groups of two "
        "records or more, and not between them: a new surname after a wedding, a move, two "
        "spellings that are both in use. It may also be two people who were joined. "
    )
    words += (
        f"{_n(len(found), 'cluster does', 'clusters do')} so{_of_them(len(found), _FORMS)}, "
        "those with most such fields first."
        if found
        else "No cluster does so."
    )
    return folded(
        "forms",
        f"Several forms ({counted(len(found))})",
        paragraph(words + (f" {material.remark}" if found else "")),
        _on_marks() if found else "",
        *(_in_forms(material, one) for one in found[:_FORMS]),
    )


def _in_forms(material: ClusterMaterial, one: Forms) -> str:
    members = np.flatnonzero(material.structure.cluster == one.cluster).tolist()
    others = [r for r in members if not any(r in group for group in one.groups)]
    names = f"{', '.join(one.fields[:-1])} and {one.fields[-1]}".removeprefix(" and ")
    parts = " and ".join(f"{len(group)}" for group in one.groups)
    remark = f"By {names}: {parts} records{' and others' if others else ''}."
    groups: list[tuple[str, Sequence[int]]] = [("", group) for group in one.groups]
    if others:
        groups.append(("in no form", others))
    first = [group[0] for group in one.groups]
    return example(material, _called(material, members), groups, remark=remark, first=first)


# --- words ------------------------------------------------------------------------------------

_BITS = (("curve", "enough by itself"), ("guide", "not enough by itself"))
_READ_BITS = (
    "Each record with its probability of membership and with what differs between the records; a "
    "value that stands out is in bold. On an edge is the weight of the pair, in bits: how strongly "
    "it speaks for one person."
)


def _on_marks(*edges: tuple[str, str]) -> str:
    own = edges or _BITS
    return swatches([("record", "record"), ("doubted", f"less than {SURE} sure"), *own])


def _called(material: ClusterMaterial, members: Sequence[int]) -> str:
    """A cluster by its person, and how many records it has."""
    of = material.clusters["entity_id"][members[0]]
    name = (
        str(of) if material.named else f"Cluster {int(material.structure.cluster[members[0]]) + 1}"
    )
    return f"{name}: {_n(len(members), 'record', 'records')}"


def _between(clusters: Sequence[Sequence[int]]) -> str:
    return f"{len(clusters)} clusters that may be one"


def _least_sure(material: ClusterMaterial, members: Sequence[int]) -> list[int]:
    return [min(members, key=lambda r: (float(material.structure.membership[r]), r))]


def _of_them(n: int, most: int) -> str:
    return f", {most} of which are shown" if n > most else ""


def _n(n: int, one: str, many: str) -> str:
    return f"{counted(n)} {one if n == 1 else many}"
