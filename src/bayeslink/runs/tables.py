"""The tables of a run directory: each column is defined once, for the writer and for the reader.

A table is made from its columns' types and checked against their limits. A limit that is the size
of another table is taken from that table, never from a count that is kept elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from scipy import sparse

from bayeslink.pairs.source import fields_seen
from bayeslink.runs.best_unlinked import best_pairs
from bayeslink.runs.schema import NotAsWrittenError
from bayeslink.sampling.posterior import Posterior

if TYPE_CHECKING:
    from bayeslink.runs.dedupe_run import DedupeRun
    from bayeslink.runs.run import Run


# The tables in the order in which they are written; those that a run has, it has whole.
TABLES = ("links", "parameters", "pairs", "draws", "link_draws", "reach", "labels")


def table_in(content: bytes) -> pa.Table:
    """The table that the bytes of a Parquet file hold, checked.

    Arrow gets a copy of its own. A thread of its may let go of the bytes after the table is there,
    and if they are Python's and the process ends in that moment, it is aborted
    (apache/arrow#34314).
    """
    own = pa.allocate_buffer(len(content))
    memoryview(own).cast("B")[:] = content
    with pq.ParquetFile(pa.BufferReader(own), page_checksum_verification=True) as file:
        table = file.read()
    table.validate(full=True)
    return table


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its type, and what its values can be."""

    name: str
    type: pa.DataType
    low: float | None = None
    high: float | None = None
    nulls: bool = False
    words: frozenset[str] | None = None  # the texts that are allowed


@dataclass(frozen=True, slots=True)
class Extent:
    """What the values of a run's tables refer to."""

    levels: Mapping[str, int]  # of each field
    blocks: int
    chains: int  # 0: a point estimate, without draws
    draws: int  # of each chain
    followed: Sequence[str]  # the quantities in draws.parquet
    pairs: int  # rows of pairs.parquet


def _pair_columns(name: str, extent: Extent) -> list[Column]:
    """links.parquet, pairs.parquet, reach.parquet."""
    no_draws = name == "links" and not extent.chains
    columns = [
        *(Column(side, pa.string()) for side in ("id_a", "id_b")),
        Column("link_probability", pa.float64(), 0, 1, nulls=no_draws),
        Column("match_weight", pa.float64()),
        *(Column(f"gamma_{f}", pa.uint8(), 0, n) for f, n in extent.levels.items()),
    ]
    if name == "links":
        return [*columns, Column("decision", pa.string(), words=frozenset({"link", "review"}))]
    columns += [
        Column("mc_error", pa.float64(), 0),
        Column("block", pa.int64(), 0, extent.blocks - 1, nulls=True),
    ]
    return [*columns, Column("chance", pa.float64(), 0, 1)] if name == "reach" else columns


_PARAMETERS = [
    Column("field", pa.string()),
    Column("level", pa.int64(), 1),
    Column("label", pa.string()),
    Column("m", pa.float64(), 0, 1),
    Column("u", pa.float64(), 0, 1),
    Column("match_weight", pa.float64()),
    *(
        Column(f"{name}_{end}", pa.float64(), nulls=True)
        for name in "mu"
        for end in ("lower", "upper")
    ),
]


def _draw_columns(extent: Extent) -> list[Column]:
    return [
        Column("chain", pa.int32(), 0, extent.chains - 1),
        Column("draw", pa.int32(), 0, extent.draws - 1),
        Column("links", pa.int64(), 0),
        *(Column(name, pa.float64()) for name in extent.followed if name != "links"),
    ]


def _link_draw_columns(extent: Extent) -> list[Column]:
    return [
        Column("pair", pa.int32(), 0, extent.pairs - 1),
        Column("chain", pa.int32(), 0, extent.chains - 1),
        Column("first", pa.int32(), 0, extent.draws - 1),
        Column("last", pa.int32(), 0, extent.draws - 1),
    ]


_LABELS = [
    *(Column(side, pa.string()) for side in ("id_a", "id_b")),
    Column("verdict", pa.string(), words=frozenset({"link", "nonlink"})),
]


def is_there(name: str, summary: Mapping[str, Any]) -> bool:
    """Whether the run of this run.json has a table of that name."""
    if name in ("pairs", "draws", "link_draws"):
        return "chains" in summary
    return name in ("links", "parameters") or f"{name}.parquet" in summary["files"]


def extent_of(summary: Mapping[str, Any], pairs: int) -> Extent:
    """What the tables of a run refer to, by its run.json and the rows of pairs.parquet."""
    return Extent(
        levels={f["name"]: len(f["levels"]) for f in summary["fields"]},
        blocks=summary.get("blocks", 0),
        chains=summary.get("chains", 0),
        draws=summary.get("draws", 0),
        followed=tuple(one["name"] for one in summary["diagnostics"]),
        pairs=pairs,
    )


def _extent(posterior: Posterior) -> Extent:
    """Of draws that are being written."""
    blocks, (chains, draws) = posterior.blocks, posterior.n_links.shape
    levels = {f.name: f.n_levels for f in blocks.pairs.fields}
    followed = tuple(posterior.quantities())
    return Extent(levels, blocks.n_blocks, chains, draws, followed, len(posterior.probability))


# --- written ------------------------------------------------------------------------------------


def schema_of(columns: Sequence[Column]) -> pa.Schema:
    return pa.schema([(column.name, column.type) for column in columns])


def table_of(run: Run, name: str) -> pa.Table | None:
    """A table of a finished linkage; None where it has none of that name."""
    if name == "links":
        return run.table
    if name == "parameters":
        return parameter_table(run)
    if name == "labels":
        return run.labels
    if run.posterior is None:
        return None
    if name == "reach":
        return best_pairs(run)
    makers = {
        "pairs": Posterior.candidate_table,
        "draws": draw_table,
        "link_draws": link_draw_table,
    }
    return makers[name](run.posterior)


def parameter_table(run: Run | DedupeRun) -> pa.Table:
    """m, u and the weight in bits of each level of each field; intervals where there are draws."""
    parameters, post, seen = run.parameters, run.posterior, fields_seen(run.pairs)
    bounds = np.full((2, 2, *parameters.m.shape), np.nan)  # of m and u: lower, upper
    if post is not None:
        bounds = np.array([np.quantile(x, (0.025, 0.975), axis=(0, 1)) for x in (post.m, post.u)])
    rows: list[dict[str, Any]] = []
    for j, field in enumerate(run.pairs.fields):
        for level, label in enumerate(field.labels, 1):
            u = float(parameters.u[j, level])
            m = float(parameters.m[j, level]) if seen[j] else u  # priors alone tell nothing
            row = {"field": field.name, "level": level, "label": label, "m": m, "u": u}
            row["match_weight"] = math.log2(m) - math.log2(u)
            of_both = bounds[:, :, j, level] if seen[j] else bounds[[1, 1], :, j, level]
            for name, (lower, upper) in zip("mu", of_both, strict=True):
                row[f"{name}_lower"] = None if math.isnan(lower) else float(lower)
                row[f"{name}_upper"] = None if math.isnan(upper) else float(upper)
            rows.append(row)
    return pa.Table.from_pylist(rows, schema=schema_of(_PARAMETERS))


def draw_table(posterior: Posterior) -> pa.Table:
    """One row a draw: the number of links, the log posterior, m and u."""
    chains, draws = posterior.n_links.shape
    values = {
        "chain": np.repeat(np.arange(chains), draws),
        "draw": np.tile(np.arange(draws), chains),
        **{name: values.ravel() for name, values in posterior.quantities().items()},
    }
    return pa.table(values, schema=schema_of(_draw_columns(_extent(posterior))))


def link_draw_table(posterior: Posterior) -> pa.Table:
    """The draws of the links: for each pair, the runs of kept draws in which it is linked.

    `pair` is the pair's row in pairs.parquet; `first` and `last` are draws of `chain`, numbered as
    in draws.parquet. Where draws are thinned, the last of every `kept_every` is kept.
    """
    row_of = np.empty(len(posterior.probability), np.int64)
    row_of[posterior.by_probability()] = np.arange(len(row_of))
    parts = []
    for number, kept in enumerate(posterior.kept):
        start = np.append(0, np.cumsum([len(k) for k in kept]))
        rows = row_of[np.concatenate(kept)] if len(kept) else row_of[:0]
        ones, shape = np.ones(len(rows), np.int8), (len(kept), len(row_of))
        by_pair = sparse.csr_array((ones, rows, start), shape).tocsc()  # sorted by counting
        pair = np.repeat(np.arange(len(row_of)), np.diff(by_pair.indptr))
        state = by_pair.indices
        new = np.ones(len(pair), bool)
        new[1:] = (np.diff(pair) != 0) | (np.diff(state) != 1)
        first = np.flatnonzero(new)
        last = np.append(first, len(pair))[1:] - 1
        parts.append((np.full(len(first), number), pair[first], state[first], state[last]))
    chain, pair, first, last = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((first, chain, pair))
    step, draws = posterior.kept_every, posterior.n_links.shape[1]
    first, last = (np.minimum((state + 1) * step, draws) - 1 for state in (first, last))
    columns = [column[order] for column in (pair, chain, first, last)]
    return pa.table(columns, schema=schema_of(_link_draw_columns(_extent(posterior))))


# --- checked, when written and when read ---------------------------------------------------------


def check(table: pa.Table, name: str, extent: Extent) -> None:
    """Raise `NotAsWrittenError` if this is not what a table of a run directory holds."""
    columns: Sequence[Column] = ()
    if name in ("links", "pairs", "reach"):
        columns = _pair_columns(name, extent)
    elif name == "parameters":
        columns = _PARAMETERS
    elif name == "labels":
        columns = _LABELS
    elif name == "draws":
        columns = _draw_columns(extent)
    elif name == "link_draws":
        columns = _link_draw_columns(extent)
    for column in columns:
        check_column(table, column)
    if name == "reach":
        told = (table.schema.metadata or {}).get(b"records", b"")
        _must(told.isdigit(), "the number of records")
    elif name == "parameters":
        rows = zip(table["field"].to_pylist(), table["level"].to_pylist(), strict=True)
        levels = [(f, level + 1) for f, n in extent.levels.items() for level in range(n)]
        _must([*rows] == levels, "fields and levels")
    elif name == "draws":
        _must(len(table) == extent.chains * extent.draws, "the number of draws")
    elif name == "link_draws":
        _must(not pc.any(pc.greater(table["first"], table["last"])).as_py(), "column first")


def _must(holds: bool, where: str) -> None:
    if not holds:
        raise NotAsWrittenError(where)


def check_column(table: pa.Table, column: Column) -> None:
    where = f"column {column.name}"
    _must(table.column_names.count(column.name) == 1, where)
    found = table[column.name]
    _must(column.nulls or not found.null_count, where)
    if pa.types.is_string(column.type):
        _must(pa.types.is_string(found.type) or pa.types.is_large_string(found.type), where)
        _must(column.words is None or column.words.issuperset(found.unique().to_pylist()), where)
        return
    if pa.types.is_boolean(column.type):
        _must(pa.types.is_boolean(found.type), where)
        return
    real = pa.types.is_floating(column.type)
    _must(pa.types.is_integer(found.type) or (real and pa.types.is_floating(found.type)), where)
    if found.null_count == len(found):
        return
    if pa.types.is_floating(found.type):
        _must(not pc.any(pc.is_nan(found)).as_py(), where)
    ends = pc.min_max(found).as_py()
    _must(column.low is None or ends["min"] >= column.low - 1e-9, where)
    _must(column.high is None or ends["max"] <= column.high + 1e-9, where)
