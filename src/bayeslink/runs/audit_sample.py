"""A random sample of pairs to judge: which pairs, and how many from where.

Candidate pairs are divided into strata by decision and link probability, and pairs are drawn at
random within each. One more stratum are records without a link or a near candidate, each with one
pair drawn with a known chance (`runs.best_unlinked`). The model's probabilities decide how many
are drawn where, hence how wide the intervals are; what is estimated is for the judgements to say
(`runs.audit`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bayeslink.data.id_pairs import SIDES, linked_among
from bayeslink.errors import InputError, SettingsError
from bayeslink.judging.judgements import Sample, Stratum
from bayeslink.pairs.source import Floats, Ints
from bayeslink.runs.best_unlinked import CHANCE, NEAR, RECORDS
from bayeslink.runs.run import Run

SURE = 0.99  # divides the links
EDGES = (0.1, NEAR, 0.001)  # divide the pairs not linked; none is drawn from below
BEST = "no such pair, one of its record"
_DOUBT = 0.01  # pairs that the model may have wrong, however sure it is


def links_sample(run: Run, size: int, seed: int) -> Sample:
    """A random sample of the pairs of a run."""
    return stratified(*_tables(run), size=size, seed=seed, run=run.fingerprint)


def parts_of(run: Run) -> list[Part]:
    """The strata of a run."""
    return divide(*_tables(run))


def chances_of(reach: pa.Table | None) -> dict[tuple[str, str], float]:
    """How likely each pair of a record without a candidate was to be the one that is kept."""
    if reach is None:
        return {}
    ids = zip(*(reach[side].to_pylist() for side in SIDES), strict=True)
    return dict(zip(ids, reach[CHANCE].to_pylist(), strict=True))


def _tables(run: Run) -> tuple[pa.Table, pa.Table, pa.Table | None]:
    pairs = run.as_table("pairs")
    if pairs is None:
        raise InputError(
            f"{run.directory or 'this run'} is a point estimate, without probabilities to draw a "
            "sample by. Link again without --point."
        )
    return pairs, run.table, run.as_table("reach")


def stratified(
    candidates: pa.Table,
    links: pa.Table,
    reach: pa.Table | None = None,
    *,
    size: int,
    seed: int,
    run: str = "",
) -> Sample:
    """A stratified random sample of a run's pairs, from its tables."""
    checked_size(size)
    parts = divide(candidates, links, reach)
    rng = np.random.default_rng(seed)
    drawn = [
        (row, k)
        for k, n in enumerate(numbers(parts, size))
        for row in rng.choice(parts[k].rows, n, replace=False)
    ]
    rows, stratum = rng.permutation(drawn).T  # so that a pair's place says nothing
    known = int(pc.sum(pc.equal(links["decision"], "link")).as_py() or 0)
    known -= sum(part.stratum.size for part in parts if part.stratum.linked)
    strata = [part.stratum for part in parts]
    if known:
        strata.append(Stratum("links known before the run", True, known, float(known)))
    ids = [table.select(SIDES) for table in (candidates, reach) if table is not None]
    found = pa.concat_tables(ids, promote_options="permissive").take(rows)
    return Sample(
        run=run,
        seed=int(seed),
        strata=tuple(strata),
        pairs=tuple(zip(*(found[side].to_pylist() for side in SIDES), strict=True)),
        stratum=tuple(stratum.tolist()),
    )


def checked_size(size: object) -> None:
    """Refuse a size that no sample can have."""
    if not (isinstance(size, Integral) and 1 <= int(size) < 2**31):
        raise SettingsError(f"size must be a whole number from 1 up to 2^31, got {size!r}.")


@dataclass(frozen=True, slots=True)
class Part:
    """A stratum and its pairs: rows of the candidates, and after them of the reach."""

    stratum: Stratum
    rows: Ints  # that may be drawn, each as likely as any other; fewer than `stratum.size` may be

    @property
    def drawn_from(self) -> bool:
        return not self.stratum.name.startswith(_BELOW)


def divide(candidates: pa.Table, links: pa.Table, reach: pa.Table | None) -> list[Part]:
    """The strata of a run that have any pairs.

    Where there is a reach, pairs below `NEAR` are drawn from that only.
    """
    edges = EDGES if reach is None else EDGES[: EDGES.index(NEAR) + 1]
    p = candidates["link_probability"].to_numpy()
    linked = linked_among(candidates, links)
    parts = [
        Part(Stratum(name, bool(linked[rows[0]]), len(rows), float(p[rows].sum())), rows)
        for name, rows in _strata(p, linked, edges).items()
        if len(rows)
    ]
    if reach is not None and len(reach):
        records = int(reach.schema.metadata[RECORDS])
        rows = np.arange(len(p), len(p) + len(reach))
        parts.append(Part(Stratum(BEST, False, records, 0.0), rows))
    return parts


def drawable(parts: Sequence[Part]) -> int:
    """How many pairs could be drawn at most."""
    return sum(len(part.rows) for part in parts if part.drawn_from)


def numbers(parts: Sequence[Part], size: int) -> Ints:
    """How many pairs to draw from each stratum."""
    from_ = np.array([k for k, part in enumerate(parts) if part.drawn_from], np.int64)
    found = np.zeros(len(parts), np.int64)
    found[from_] = allocate(
        np.array([parts[k].stratum.size for k in from_], np.int64),
        np.array([parts[k].stratum.expected for k in from_]),
        size,
        np.array([len(parts[k].rows) for k in from_], np.int64),
    )
    return found


_BELOW = "not linked, below"


def _strata(p: Floats, linked: NDArray[np.bool_], edges: tuple[float, ...]) -> dict[str, Ints]:
    """Rows of the candidates in each stratum, by its name."""
    parts = {
        f"links, {SURE:g} and above": linked & (p >= SURE),
        f"links, below {SURE:g}": linked & (p < SURE),
        f"not linked, {edges[0]:g} and above": ~linked & (p >= edges[0]),
        **{
            f"not linked, {low:g} to {high:g}": ~linked & (p >= low) & (p < high)
            for high, low in pairwise(edges)
        },
        f"{_BELOW} {edges[-1]:g}": ~linked & (p < edges[-1]),
    }
    return {name: np.flatnonzero(part) for name, part in parts.items()}


def allocate(sizes: Ints, expected: Floats, total: int, at_most: Ints | None = None) -> Ints:
    """How many pairs to draw from each stratum (Neyman's allocation, in whole pairs).

    Half of them are spread evenly, so that neither precision nor recall goes short if the model is
    wrong. Then every next pair goes where it lowers Σ N² σ² / n most; σ² = r (1 − r) is the
    variance of the verdicts in a stratum with a share r of links. No stratum gives more pairs than
    it has, or `at_most` so many.
    """
    if not len(sizes):
        raise InputError("the run has no links and no candidates near one: nothing to draw from.")
    there = sizes if at_most is None else at_most
    rate = np.clip((expected + 0.5) / (sizes + 1), _DOUBT, 1 - _DOUBT)
    variance = sizes.astype(float) ** 2 * rate * (1 - rate)
    drawn = np.minimum(there, max(1, total // (2 * len(sizes))))
    for _ in range(min(total, int(there.sum())) - int(drawn.sum())):
        gain = np.where(drawn < there, variance / (drawn * (drawn + 1)), -1.0)
        drawn[np.argmax(gain)] += 1
    return drawn
