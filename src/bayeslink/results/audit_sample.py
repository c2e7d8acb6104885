"""A random sample of pairs to judge: which pairs, and how many from where.

Candidate pairs are divided into strata by decision and link probability, and pairs are drawn at
random within each. The model's probabilities decide how many are drawn where, hence how wide the
intervals are, but not what is estimated: that rests on the judgements alone (`results.audit`).
"""

from __future__ import annotations

import hashlib
from itertools import pairwise
from numbers import Integral
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bayeslink.data.id_pairs import SIDES, linked_among
from bayeslink.errors import InputError, SettingsError
from bayeslink.judging.judgements import FILE, Judgements, Sample, Stratum
from bayeslink.pairs.source import Floats, Ints
from bayeslink.results.store import read_table

SURE = 0.99  # divides the links
EDGES = (0.1, 0.01, 0.001)  # divide the pairs not linked; none is drawn from below the last


def draw_sample(directory: str | Path, size: int = 200, *, seed: int = 1) -> Sample:
    """Draw pairs to judge from a run directory, and store them there for the review.

    A sample drawn earlier is replaced; judgements are kept.

    Parameters
    ----------
    size
        Pairs to draw: half of them spread evenly over the strata, the others so that the
        estimates are as precise as they can be if the model's probabilities are about right.
    """
    folder = Path(directory)
    links = read_table(folder, "links")
    if links["link_probability"].null_count:
        raise InputError(
            f"{folder} is a point estimate, without probabilities to draw a sample by. "
            "Link again without --point."
        )
    sample = stratified(
        read_table(folder, "pairs"), links, size=size, seed=seed, run=fingerprint(folder)
    )
    with Judgements(folder / FILE) as judgements:
        judgements.set_sample(sample)
    return sample


def fingerprint(directory: Path) -> str:
    """Hash of a run's candidate pairs and links: a sample is of one run only."""
    digest = hashlib.sha256()
    for name in ("pairs", "links"):
        if (path := directory / f"{name}.parquet").exists():  # a point estimate has no pairs
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def stratified(
    candidates: pa.Table, links: pa.Table, *, size: int, seed: int, run: str = ""
) -> Sample:
    """A stratified random sample of a run's candidate pairs, from its tables."""
    if not (isinstance(size, Integral) and size >= 1):
        raise SettingsError(f"size must be a whole number from 1 up, got {size!r}.")
    p = candidates["link_probability"].to_numpy()
    linked = linked_among(candidates, links)
    members = {name: rows for name, rows in _strata(p, linked).items() if len(rows)}
    strata = [
        Stratum(name, bool(linked[rows[0]]), len(rows), float(p[rows].sum()))
        for name, rows in members.items()
    ]
    drawn_from = [s for s in strata if s.name != _BELOW]
    numbers = allocate(
        np.array([s.size for s in drawn_from]), np.array([s.expected for s in drawn_from]), size
    )
    rng = np.random.default_rng(seed)
    drawn = [
        (row, strata.index(s))
        for s, n in zip(drawn_from, numbers, strict=True)
        for row in rng.choice(members[s.name], n, replace=False)
    ]
    rows, stratum = rng.permutation(drawn).T  # so that a pair's place says nothing
    known = int(pc.sum(pc.equal(links["decision"], "link")).as_py() or 0) - int(linked.sum())
    if known:
        strata.append(Stratum("links known before the run", True, known, float(known)))
    ids = candidates.select(SIDES).take(rows)
    return Sample(
        run=run,
        seed=int(seed),
        strata=tuple(strata),
        pairs=tuple(zip(*(ids[side].to_pylist() for side in SIDES), strict=True)),
        stratum=tuple(stratum.tolist()),
    )


_BELOW = f"not linked, below {EDGES[-1]:g}"


def _strata(p: Floats, linked: NDArray[np.bool_]) -> dict[str, Ints]:
    """Rows of the candidates in each stratum, by its name."""
    parts = {
        f"links, {SURE:g} and above": linked & (p >= SURE),
        f"links, below {SURE:g}": linked & (p < SURE),
        f"not linked, {EDGES[0]:g} and above": ~linked & (p >= EDGES[0]),
        **{
            f"not linked, {low:g} to {high:g}": ~linked & (p >= low) & (p < high)
            for high, low in pairwise(EDGES)
        },
        _BELOW: ~linked & (p < EDGES[-1]),
    }
    return {name: np.flatnonzero(part) for name, part in parts.items()}


def allocate(sizes: Ints, expected: Floats, total: int) -> Ints:
    """How many pairs to draw from each stratum (Neyman's allocation, in whole pairs).

    Half of them are spread evenly, so that neither precision nor recall goes short if the model is
    wrong. Then every next pair goes where it lowers Σ N² σ² / n most; σ² = r (1 − r) is the
    variance of the verdicts in a stratum with a share r of links.
    """
    if not len(sizes):
        raise InputError("the run has no links and no candidates near one: nothing to draw from.")
    rate = (expected + 0.5) / (sizes + 1)  # never 0 or 1: the model may be too sure of itself
    variance = sizes.astype(float) ** 2 * rate * (1 - rate)
    drawn = np.minimum(sizes, max(1, total // (2 * len(sizes))))
    for _ in range(min(total, int(sizes.sum())) - int(drawn.sum())):
        gain = np.where(drawn < sizes, variance / (drawn * (drawn + 1)), -1.0)
        drawn[np.argmax(gain)] += 1
    return drawn
