"""Why a pair is, or is not, linked: in words and numbers, from the tables of a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bayeslink.notebook_html import Shown
from bayeslink.number_format import minus, signed

_NEGLIGIBLE = 0.0005  # rivals below this are counted, not listed
_NOTHING = 0.005  # bits that no one sees
TOGETHER = "all fields together"  # what stands for a field where fields depend on each other


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one field says."""

    field: str
    level: str  # in words
    m: float | None  # None where missing
    u: float | None
    bits: float
    values: tuple[str, str] | None  # of both records, where they are at hand


@dataclass(frozen=True, slots=True)
class Rival:
    """Another candidate of one of the two records."""

    id: str
    probability: float
    bits: float


@dataclass(frozen=True, slots=True)
class Explanation(Shown):
    """Why a pair is linked or not. Print it."""

    id_a: str
    id_b: str
    decision: str  # link, review, no link
    probability: float | None  # None where there are no draws
    bits: float  # the match weight
    needed: float  # what a link costs under the prior, in bits
    evidence: tuple[Evidence, ...]
    rivals_a: tuple[Rival, ...]  # of the record of A: other records of B
    rivals_b: tuple[Rival, ...]
    is_candidate: bool
    known: tuple[str, str] | None  # the known link of either record that settles the matter
    w0: float | None  # in bits; of a restricted run, or None

    def __str__(self) -> str:
        lines = [f"{self.id_a} (A) and {self.id_b} (B): {self.decision}. {self._verdict()}", ""]
        lines += _columns([_evidence_row(e) for e in self.evidence])
        lines += [
            "",
            f"The weights sum to {signed(self.bits)} bits; a link costs {self.needed:.1f} under "
            f"the prior, which leaves odds of {_odds(self.bits - self.needed)} before rivals.",
        ]
        if self.probability is not None and self.is_candidate:
            lines += self._rivalry("A", self.id_a, self.rivals_a)
            lines += self._rivalry("B", self.id_b, self.rivals_b)
        return "\n".join(lines)

    def _verdict(self) -> str:
        if self.probability is None:
            return "Point estimate: no probability was worked out."
        if self.known == (self.id_a, self.id_b):
            return "It is known to be a link."
        if self.known:
            return f"{self.known[0]} (A) and {self.known[1]} (B) are known to be a link."
        if not self.is_candidate and self.w0 is None:
            return (
                "It was a link in hardly any draw, or it is known to be no link: probability below "
                "0.001."
            )
        if not self.is_candidate:
            limit = minus(f"{self.w0:.1f}")
            return (
                f"It was set aside before sampling, as its weight is not above w0 = {limit} "
                "bits or as it is known to be no link: probability 0 in this run."
            )
        return f"Probability of a link: {self.probability:.3f}."

    def _rivalry(self, side: str, name: str, rivals: tuple[Rival, ...]) -> list[str]:
        shown = [r for r in rivals if r.probability >= _NEGLIGIBLE]
        free = max(0.0, 1 - (self.probability or 0.0) - sum(r.probability for r in rivals))
        lines = [f"{name} ({side}) otherwise:"]
        lines += [f"  with {r.id}: {r.probability:.3f} ({signed(r.bits)} bits)" for r in shown]
        rest = len(rivals) - len(shown)
        if rest:
            lines.append(f"  with any of {rest} more: {_small(rivals)}")
        return [*lines, f"  with nobody: {free:.3f}"]


def explain_pair(
    candidates: pa.Table,
    links: pa.Table,
    parameters: pa.Table,
    id_a: str,
    id_b: str,
    *,
    levels: Any,
    needed: float,
    w0: float | None,
    weigh: Callable[[], float] | None = None,
    values: dict[str, tuple[str, str]] | None = None,
) -> Explanation:
    """Explain one pair from the tables of a run.

    Parameters
    ----------
    candidates, links, parameters
        As in pairs.parquet, links.parquet and parameters.parquet.
    levels
        The pair's level in each field, by field name.
    needed
        What a link costs, in bits.
    w0
        In bits, where sampling was restricted to pairs above it.
    weigh
        Tells the pair's weight in bits, if it is in none of the tables.
    """
    evidence = tuple(
        _evidence(parameters, name, int(level), (values or {}).get(name))
        for name, level in levels.items()
    )
    linked, listed = find_row(links, id_a, id_b), find_row(candidates, id_a, id_b)
    row = listed or linked
    bits = row["match_weight"] if row else weigh and weigh()
    evidence += _together(evidence, bits)
    sampled = "link_probability" in candidates.column_names
    return Explanation(
        id_a=id_a,
        id_b=id_b,
        decision=linked["decision"] if linked else "no link",
        probability=(row["link_probability"] if row else 0.0) if sampled else None,
        bits=sum(e.bits for e in evidence) if bits is None else bits,
        needed=needed,
        evidence=evidence,
        rivals_a=_rivals(candidates, "id_a", id_a, "id_b", id_b),
        rivals_b=_rivals(candidates, "id_b", id_b, "id_a", id_a),
        is_candidate=listed is not None,
        known=_known_link(candidates, links, id_a, id_b) if sampled else None,
        w0=w0,
    )


def _together(evidence: tuple[Evidence, ...], bits: float | None) -> tuple[Evidence, ...]:
    """What the fields say together beyond what each says alone, where there is such a thing."""
    beyond = 0.0 if bits is None else beyond_each(bits, [e.bits for e in evidence])
    return (Evidence(TOGETHER, "beyond each alone", None, None, beyond, None),) if beyond else ()


def beyond_each(bits: float, of_fields: Sequence[float]) -> float:
    """What a weight has beyond those of its fields; 0 if no one would see it."""
    beyond = bits - sum(of_fields)
    return beyond if abs(beyond) >= _NOTHING else 0.0


def find_row(table: pa.Table, id_a: str, id_b: str) -> dict[str, Any] | None:
    """The row of a pair, if it is there."""
    return next(iter(_rows(table, id_a=id_a, id_b=id_b)), None)


def _rows(table: pa.Table, **equal: str) -> list[dict[str, Any]]:
    keep = np.ones(len(table), bool)
    for column, value in equal.items():
        keep &= pc.equal(table[column], value).to_numpy(zero_copy_only=False)
    return table.take(np.flatnonzero(keep)).to_pylist()


def _known_link(
    candidates: pa.Table, links: pa.Table, id_a: str, id_b: str
) -> tuple[str, str] | None:
    """The link of either record that is no candidate, which only a known link can be."""
    for row in _rows(links, id_a=id_a) + _rows(links, id_b=id_b):
        pair = row["id_a"], row["id_b"]
        if find_row(candidates, *pair) is None:
            return pair
    return None


def _rivals(
    candidates: pa.Table, own: str, own_id: str, other: str, other_id: str
) -> tuple[Rival, ...]:
    rows = [r for r in _rows(candidates, **{own: own_id}) if r[other] != other_id]
    rivals = [Rival(r[other], r.get("link_probability") or 0.0, r["match_weight"]) for r in rows]
    return tuple(sorted(rivals, key=lambda r: (-r.probability, -r.bits)))


def _evidence(
    parameters: pa.Table, field: str, level: int, values: tuple[str, str] | None
) -> Evidence:
    if level == 0:
        return Evidence(field, "missing", None, None, 0.0, values)
    keep = pc.and_(pc.equal(parameters["field"], field), pc.equal(parameters["level"], level))
    row = parameters.filter(keep).to_pylist()[0]
    return Evidence(field, row["label"], row["m"], row["u"], row["match_weight"], values)


def _evidence_row(e: Evidence) -> list[str]:
    shares = "" if e.m is None else f"m {e.m:.3g}, u {e.u:.3g}"
    values = "" if e.values is None else " | ".join(e.values)
    return [e.field, e.level, shares, signed(e.bits), values]


def _columns(rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  "
        + "  ".join(
            cell.rjust(width) if i == 3 else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _odds(bits: float) -> str:
    if bits >= 0:
        return f"{2 ** min(bits, 60):,.3g} to 1"
    return f"1 to {2 ** min(-bits, 60):,.3g}"


def _small(rivals: tuple[Rival, ...]) -> str:
    return f"{sum(r.probability for r in rivals if r.probability < _NEGLIGIBLE):.3f}"
