"""Pairs far below: one pair of a record that has neither a link nor a near candidate.

Pairs of low probability are too many to draw from, and a record's partner may be where no
candidate is. So for a random sample of such records of the smaller file one pair is kept, and how
likely it was to be the one. With probability `_BEST` it is the best: the most probable candidate,
and where there is none the pair of most weight with a record of the other file that is not linked.
Else any pair with such a record, in proportion to m/u. They are `reach.parquet` in the run
directory; `runs.audit_sample` draws from them, `runs.audit` goes by the chances.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bayeslink.data.id_pairs import SIDES
from bayeslink.pairs.pair_tables import block_column, pair_table
from bayeslink.pairs.source import Floats, Ints, Pairs, PairSource

if TYPE_CHECKING:
    from bayeslink.runs.run import Run

NEAR = 0.01  # link probability from which a candidate is drawn as such
RECORDS = b"records"  # in the table's metadata: of how many records those in it are a sample
CHANCE = "chance"  # the column that has how likely a record was to get its pair
_BEST = 0.5
_STREAM = 2**32 - 4  # of random numbers
_MOST = 500  # records whose best pair is kept
_WEIGHED = 30_000_000  # pairs weighed for that, at most
_AT_ONCE = 200_000  # pairs


def best_pairs(run: Run) -> pa.Table | None:
    """A pair of up to 500 records, in random order; None where there is none to show.

    Nor is there one under a blocking key or for a point estimate.
    """
    pairs = run.pairs
    if run.posterior is None or pairs.closed or pairs.n_pairs != pairs.n_a * pairs.n_b:
        return None
    side = _smaller(pairs)
    linked = run.table.filter(pc.equal(run.table["decision"], "link"))
    candidates = run.candidates()
    near = candidates.filter(pc.greater_equal(candidates["link_probability"], NEAR))
    free = _others(pairs, side, linked, near)
    partners = _others(pairs, 1 - side, linked)
    if not len(free) or not len(partners):
        return None
    # A tie key is a hash: its order is as good as random, and free of the order of rows.
    chosen = free[np.argsort(pairs.tie_keys[side][free])]
    chosen = chosen[: max(1, min(_MOST, _WEIGHED // len(partners)))]
    partners = partners[np.argsort(pairs.tie_keys[1 - side][partners])]
    found, chance = _drawn(run, side, chosen, partners, candidates)
    weights = run.parameters.weight_of(found.levels) / np.log(2)
    nothing = np.zeros(len(found))
    columns = {"link_probability": nothing, "mc_error": nothing, "match_weight": weights}
    columns |= {"block": block_column(np.full(len(found), -1)), CHANCE: chance}
    return pair_table(pairs, found, columns).replace_schema_metadata({RECORDS: str(len(free))})


def _drawn(
    run: Run, side: int, rows: Ints, partners: Ints, candidates: pa.Table
) -> tuple[Pairs, Floats]:
    """A pair for each record, and how likely the record was to get this one."""
    assert run.posterior is not None
    rng = np.random.default_rng([run.posterior.seed, _STREAM])
    n, parameters = len(rows), run.parameters
    best, other = np.empty((2, n), np.int64)
    total = np.empty(n)  # log of the sum of m/u
    step = max(1, _AT_ONCE // len(partners))
    for first in range(0, n, step):
        some = rows[first : first + step]
        a, b = _as_ab(side, np.repeat(some, len(partners)), np.tile(partners, len(some)))
        w = parameters.weight_of(run.pairs.levels_of(a, b)).reshape(len(some), -1)
        top = w.max(axis=1, keepdims=True)
        sums = np.cumsum(np.exp(w - top), axis=1)
        place = (sums < rng.random((len(some), 1)) * sums[:, -1:]).sum(axis=1)
        at = slice(first, first + len(some))
        best[at], other[at] = partners[w.argmax(axis=1)], partners[place]
        total[at] = top[:, 0] + np.log(sums[:, -1])
    likeliest = _likeliest(run.pairs, side, candidates, _pairs(run, side, rows, best))
    best = (likeliest.b, likeliest.a)[side].astype(np.int64)
    chosen = np.where(rng.random(n) < _BEST, best, other)
    found = _pairs(run, side, rows, chosen)
    share = np.exp(parameters.weight_of(found.levels) - total) * np.isin(chosen, partners)
    return found, _BEST * (chosen == best) + (1 - _BEST) * share


def _pairs(run: Run, side: int, rows: Ints, partners: Ints) -> Pairs:
    a, b = _as_ab(side, rows, partners)
    return Pairs(a, b, run.pairs.levels_of(a, b))


def _likeliest(pairs: PairSource, side: int, candidates: pa.Table, found: Pairs) -> Pairs:
    """The same records, those that have candidates with the most probable one."""
    own = pairs.ids(side, (found.a, found.b)[side]).cast(pa.large_string())
    named = candidates[SIDES[side]].cast(pa.large_string()).combine_chunks()
    at = pc.index_in(own, value_set=named)  # the first, and they fall in probability
    rows = at.drop_null()
    if not len(rows):
        return found
    ids = candidates.select(SIDES).take(rows)
    better = pairs.find(zip(*(ids[x].to_pylist() for x in SIDES), strict=True))
    a, b, levels = found.a.copy(), found.b.copy(), found.levels.copy()
    has = at.is_valid().to_numpy(zero_copy_only=False)
    a[has], b[has], levels[has] = better.a, better.b, better.levels
    return Pairs(a, b, levels)


def _as_ab(side: int, own: Ints, other: Ints) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    a, b = (own, other) if side == 0 else (other, own)
    return a.astype(np.int32), b.astype(np.int32)


def _smaller(pairs: PairSource) -> int:
    """The file with fewer records, whichever is called A."""
    if pairs.n_a != pairs.n_b:
        return int(pairs.n_b < pairs.n_a)
    first = [np.sort(keys)[:1].tolist() for keys in pairs.tie_keys]
    return int(first[1] < first[0])


def _others(pairs: PairSource, side: int, *tables: pa.Table) -> Ints:
    """Rows of the records that are in none of these tables of pairs."""
    n = (pairs.n_a, pairs.n_b)[side]
    ids = pairs.ids(side, np.arange(n, dtype=np.int32)).cast(pa.large_string())
    out = np.ones(n, bool)
    for table in tables:
        named = table[SIDES[side]].cast(pa.large_string()).combine_chunks()
        out &= ~pc.is_in(ids, value_set=named).to_numpy(zero_copy_only=False)
    return np.flatnonzero(out)
