"""u with dependence between fields: a tree in which each field may depend on one other.

A household shares surname and street, given names follow the year of birth: among pairs that are
no links, fields agree together more often than independence has it. What goes with what is learned
where it is certain that pairs are no links: a record whose own link is nearly certain has no other,
so all its other pairs are non-links, with the errors and gaps of real records. How far a field's
law given the other departs from its law on the whole follows from these counts too (`strength`, by
marginal likelihood). The tables so learned are held fixed; u of the other fields stays open. What
the rarity of a shared value has to do with it is in `rarity`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from bayeslink.comparing.fields import Field
from bayeslink.distinct import distinct
from bayeslink.model import rarity
from bayeslink.model.weights import MIN_PSEUDOCOUNT
from bayeslink.pairs.hashing import mix64
from bayeslink.pairs.source import Floats, Ints, Pairs, PairSource

ABOVE, LEAD = 2.0, 3.0  # a certain link: weight above θ, and above the best rival of its records
FEWEST = 10  # certain links from which anything is learned
_PAIRS, _RECORDS = 50_000_000, 200  # of certain records, up to which all are counted
_GAIN = 5.0  # in log marginal likelihood, that makes a field depend on another
_STRENGTHS = np.exp(np.arange(0.0, 16.0))


@dataclass(frozen=True, slots=True)
class Dependence:
    """A field's law among non-links given another field."""

    field: int
    on: int
    strength: float  # in pairs: what the law on the whole counts for at each level of the other
    gain: float  # in log marginal likelihood against independence
    log_u: Floats  # [level of the other, level]; row 0: the other is missing


@dataclass(frozen=True, slots=True)
class Together:
    """How often two fields agree in full at once, among certain non-links."""

    fields: tuple[int, int]
    observed: float
    independent: float  # expected if they were independent,
    expected: float  # and as the tree has it


@dataclass(frozen=True, slots=True)
class Cover:
    """A level that says what another field, then missing, has to say: names are swapped."""

    by: int  # the field with the level
    level: int
    field: int
    agrees: int  # the level at which that field agrees

    @classmethod
    def of(cls, fields: Sequence[Field]) -> tuple[Cover, ...]:
        """Those of all fields."""
        number = {f.name: j for j, f in enumerate(fields)}
        top = [f.n_levels - len(f.bands) for f in fields]
        return tuple(
            cls(j, level, number[other], top[number[other]])
            for j, f in enumerate(fields)
            for level, other in f.covers
        )


@dataclass(frozen=True, slots=True)
class Tree:
    """Which field depends on which; none at all is independence."""

    dependences: tuple[Dependence, ...] = ()
    n_certain: int = 0  # links that were certain
    n_pairs: int = 0  # certain non-links counted
    together: tuple[Together, ...] = ()  # of every two fields, what the tree makes of them
    covers: tuple[Cover, ...] = ()

    def free(self, n_fields: int) -> NDArray[np.bool_]:
        """Fields that depend on no other."""
        free = np.ones(n_fields, bool)
        free[[d.field for d in self.dependences]] = False
        return free

    def log_u(self, levels: NDArray[np.uint8]) -> Floats:
        """log u of the fields that depend on another, for each comparison vector.

        Where the other is missing, on that on which the other depends, and so on. Where a level
        covers a field, what goes with that field's agreement makes it more likely, not less.
        """
        out = self._log_u(levels)
        on_the_whole = {d.field: d.log_u[0] for d in self.dependences}
        for c in self.covers:
            at = np.flatnonzero((levels[:, c.by] == c.level) & (levels[:, c.field] == 0))
            agreed = levels[at]
            agreed[:, c.field] = c.agrees
            usual = on_the_whole[c.field][c.agrees] if c.field in on_the_whole else 0.0
            out[at] = np.maximum(out[at], self._log_u(agreed) - usual)
        return out

    def _log_u(self, levels: NDArray[np.uint8]) -> Floats:
        out = np.zeros(len(levels))
        of = {d.field: d for d in self.dependences}
        for d in self.dependences:
            table, on, left = d.log_u, d.on, np.ones(len(levels), bool)
            while on in of and not levels[left, on].all():
                seen = left & (levels[:, on] > 0)
                out[seen] += table[levels[seen, on], levels[seen, d.field]]
                left &= ~seen
                table, on = _through(of[on].log_u, table), of[on].on
            out[left] += table[levels[left, on], levels[left, d.field]]
        return out

    def least(self, log_u: Floats) -> Floats:
        """[field, level]: the least log u, whatever the other fields; `log_u` of free ones."""
        out = log_u.copy()
        for d in self.dependences:
            out[d.field] = d.log_u.min(0)
        return out


INDEPENDENT_FIELDS = Tree()


def _through(of_middle: Floats, of_field: Floats) -> Floats:
    """log u of a field given another, where it depends on a third that depends on the other."""
    levels = len(of_field)
    return np.log(np.exp(of_middle[:, 1:levels]) @ np.exp(of_field[1:]))


def certain_links(
    pairs: PairSource, linked: Pairs, weights: Floats, rivals: tuple[Floats, Floats], theta: float
) -> Pairs:
    """The links of a fit that are certain, or as many of them as there is time to learn from.

    Parameters
    ----------
    linked, weights
        The links of a fit, and their weights.
    rivals
        The best weight of another pair of each record of A and of B; −∞ where it is below θ − 1.
    """
    best = np.maximum(rivals[0][linked.a], rivals[1][linked.b])
    certain = np.flatnonzero((weights > theta + ABOVE) & (weights > best + LEAD))
    most = most_certain(pairs.n_b)
    if len(certain) > most:  # those chosen do not depend on the order of rows
        certain = certain[np.argsort(mix64(pairs.tie_keys[0][linked.a[certain]]))[:most]]
    return linked.take(certain)


def most_certain(n_others: int) -> int:
    """Records that are learned from, at most, each with so many other records."""
    return max(_RECORDS, int(_PAIRS / max(1, n_others)))


def learn_tree(pairs: PairSource, certain: Pairs, others: Ints, rows: Ints | None = None) -> Tree:
    """The tree, from the other pairs of records whose link is certain, or of the `rows` named.

    `others` are the level counts of all pairs but the links.
    """
    if len(pairs.fields) < 2 or (rows is None and len(certain) < FEWEST):
        return Tree(n_certain=len(certain))
    rows = distinct(certain.a).astype(np.int64) if rows is None else rows
    found = pairs.pattern_counts(rows=rows)
    tables = two_way(found.levels, found.counts, pairs.fields)
    tables -= two_way(certain.levels, np.ones(len(certain), np.int64), pairs.fields)
    tables = np.maximum(tables, 0)
    margins = [_margin(others[j], f) for j, f in enumerate(pairs.fields)]
    shared = rarity.shared_values(pairs.fields, tables, margins, certain.levels)
    grown = [
        replace(
            d,
            log_u=rarity.part(
                d.log_u,
                (pairs.fields[d.field], pairs.fields[d.on]),
                (shared.get(d.field), shared.get(d.on)),
            ),
        )
        for d in _grow(*rarity.join(pairs.fields, tables, margins, shared), pairs.fields, shared)
    ]
    return Tree(
        tuple(grown),
        len(certain),
        int(found.counts.sum()) - len(certain),
        tuple(_together(tables, margins, grown, pairs.fields)),
    )


def two_way(levels: NDArray[np.uint8], counts: Ints, fields: Sequence[Field]) -> Ints:
    """[field, other field, level, other level]: joint counts of every two fields."""
    width, n = max(f.n_levels for f in fields) + 1, len(fields)
    tables = np.zeros((n, n, width, width), np.int64)
    for j in range(n):
        for k in range(n):
            np.add.at(tables[j, k], (levels[:, j], levels[:, k]), counts)
    return tables


def _grow(
    tables: Ints, margins: Sequence[Floats], fields: Sequence[Field], shared: Collection[int]
) -> list[Dependence]:
    """The tree, grown from a field of the largest gain by the largest gain of those left.

    It is rooted in none whose values are `shared`, if that can be: u of the root stays open.
    """
    n = len(fields)
    edges = {
        (j, k): _depend(j, k, tables[k, j, : fields[k].n_levels + 1], margins[j])
        for j in range(n)
        for k in range(n)
        if j != k
    }
    inside = [max(edges, key=lambda jk: (jk[1] not in shared, edges[jk].gain))[1]]
    grown = []
    while len(inside) < n:
        outside = [j for j in range(n) if j not in inside]
        edge = max((edges[j, k] for j in outside for k in inside), key=lambda edge: edge.gain)
        if edge.gain > _GAIN:
            grown.append(edge)
        inside.append(edge.field)
    return grown


def _together(
    tables: Ints, margins: Sequence[Floats], grown: Sequence[Dependence], fields: Sequence[Field]
) -> Iterator[Together]:
    """Joint agreement of every two fields, counted, and expected by two laws."""
    joint = _joint_laws(margins, grown, fields)
    for j, k in combinations(range(len(fields)), 2):
        right = [slice(fields[i].n_levels - len(fields[i].bands), None) for i in (j, k)]
        seen = float(tables[j, k, 1:, 1:].sum())
        independent = margins[j][right[0]].sum() * margins[k][right[1]].sum()
        expected = joint[j][k][right[0], right[1]].sum()
        yield Together(
            (j, k),
            float(tables[j, k, right[0], right[1]].sum()),
            seen * float(independent),
            seen * float(expected),
        )


def _joint_laws(
    margins: Sequence[Floats], grown: Sequence[Dependence], fields: Sequence[Field]
) -> list[list[Floats]]:
    """[field][other]: the joint law of their levels, both seen, as the tree has it."""
    n = len(fields)
    law = [m.copy() for m in margins]
    given: dict[tuple[int, int], Floats] = {}  # P(second | first)
    for d in grown:  # in the order in which the tree was grown: parents before children
        forward = np.exp(d.log_u[1:, 1:]) * (margins[d.field][1:] > 0)
        table = np.zeros((len(margins[d.on]), len(margins[d.field])))
        table[1 : 1 + len(forward), 1:] = forward
        given[d.on, d.field] = table
        law[d.field] = law[d.on] @ table
        back = (table * law[d.on][:, None]).T
        given[d.field, d.on] = back / np.maximum(law[d.field][:, None], 1e-300)
    joint = [[np.outer(law[j], law[k]) for k in range(n)] for j in range(n)]
    for j in range(n):
        reached, waiting = {j}, [(j, np.diag(law[j]))]
        while waiting:
            at, table = waiting.pop()
            for first, second in given:
                if first == at and second not in reached:
                    reached.add(second)
                    joint[j][second] = table @ given[first, second]
                    waiting.append((second, joint[j][second]))
    return joint


def _margin(counts: Ints, field: Field) -> Floats:
    """The law of a field on the whole, over its levels, with its prior; none quite impossible."""
    margin = np.zeros(len(counts))
    seen = counts[1 : field.n_levels + 1]
    # Jeffreys' ½ for a flat prior (α = 1), and what else the prior of u is worth in pairs
    margin[1 : field.n_levels + 1] = seen + np.maximum(
        np.array(field.u_prior) - 0.5, MIN_PSEUDOCOUNT
    )
    return margin / margin.sum()


def _depend(field: int, on: int, table: Ints, margin: Floats) -> Dependence:
    """The law of a field given another, from their joint counts [other, field].

    What the counts are held against is the field's law in the same pairs: records whose link is
    certain are not quite like all others. Only the ratio is carried over to all pairs.
    """
    used = np.flatnonzero(margin > 0)
    seen = table[1:, used].astype(np.float64)
    here = seen.sum(0) + 0.5
    here /= here.sum()
    independent = float((seen @ np.log(here)).sum())
    gains = [_evidence(seen, strength * here) - independent for strength in _STRENGTHS]
    best = int(np.argmax(gains))
    strength = float(_STRENGTHS[best])
    given = (seen + strength * here) / (seen.sum(1, keepdims=True) + strength)
    law = margin[used] * given / here
    log_u = np.zeros((len(table), len(margin)))
    log_u[0, used] = np.log(margin[used])
    log_u[1:, used] = np.log(law / law.sum(1, keepdims=True))
    return Dependence(field, on, strength, float(gains[best]), log_u)


def _evidence(seen: Floats, alpha: Floats) -> float:
    """Log marginal likelihood of counts, each row multinomial with a Dirichlet(alpha) law."""
    total, n = alpha.sum(), seen.sum(1)
    of_rows = gammaln(total) - gammaln(total + n)
    return float(of_rows.sum() + (gammaln(alpha + seen) - gammaln(alpha)).sum())
