"""Pairs far below: the best pair of a record that has neither a link nor a near candidate.

Pairs of low probability are too many to draw from, and a record's partner may be where no
candidate is. So for a random sample of such records of the smaller file the best pair is kept: the
most probable candidate, and where there is none the pair of most weight with a record of the other
file that is not linked. They are `reach.parquet` in the run directory, and `runs.audit_sample`
draws from them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bayeslink.data.id_pairs import SIDES
from bayeslink.pairs.pair_tables import block_column, pair_table
from bayeslink.pairs.source import Ints, Pairs, PairSource

if TYPE_CHECKING:
    from bayeslink.runs.run import Run

NEAR = 0.01  # link probability from which a candidate is drawn as such
RECORDS = b"records"  # in the table's metadata: of how many records those in it are a sample
_MOST = 500  # records whose best pair is kept
_WEIGHED = 30_000_000  # pairs weighed for that, at most
_AT_ONCE = 200_000  # pairs


def best_pairs(run: Run) -> pa.Table | None:
    """The best pair of up to 500 records, in random order; None where there is none to show.

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
    found = _best(run, side, chosen, partners[np.argsort(pairs.tie_keys[1 - side][partners])])
    found = _likeliest(pairs, side, candidates, found)
    weights = run.parameters.weight_of(found.levels) / np.log(2)
    nothing = np.zeros(len(found))
    columns = {"link_probability": nothing, "mc_error": nothing, "match_weight": weights}
    table = pair_table(pairs, found, {**columns, "block": block_column(np.full(len(found), -1))})
    return table.replace_schema_metadata({RECORDS: str(len(free))})


def _best(run: Run, side: int, rows: Ints, partners: Ints) -> Pairs:
    parameters, best = run.parameters, np.empty(len(rows), np.int64)
    step = max(1, _AT_ONCE // len(partners))
    for first in range(0, len(rows), step):
        some = rows[first : first + step]
        a, b = _as_ab(side, np.repeat(some, len(partners)), np.tile(partners, len(some)))
        weights = parameters.weight_of(run.pairs.levels_of(a, b)).reshape(len(some), -1)
        best[first : first + step] = partners[weights.argmax(axis=1)]
    a, b = _as_ab(side, rows, best)
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
