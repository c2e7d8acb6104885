"""Listed pairs as tables with ids, in the caller's own kind: pandas, polars or Arrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from bayeslink.pairs.source import Ints, Pairs, PairSource

MISSING = "–"  # in place of a value that a record lacks


def pair_table(source: PairSource, pairs: Pairs, columns: Mapping[str, Any]) -> pa.Table:
    """Pairs with their ids, the given columns and their levels, as an Arrow table."""
    ids = {"id_a": source.ids(0, pairs.a), "id_b": source.ids(1, pairs.b)}
    levels = {f"gamma_{f.name}": pairs.levels[:, j] for j, f in enumerate(source.fields)}
    return pa.table({**ids, **columns, **levels})


def block_column(block: Ints) -> pa.Array:
    """Post-hoc blocks as a column: null for a pair in none (−1)."""
    return pa.array(block, mask=block < 0)


def callers_table(source: PairSource, pairs: Pairs, columns: Mapping[str, Any]) -> Any:
    """`pair_table` in the kind of table that the files came as."""
    return for_caller(source, pair_table(source, pairs, columns))


def for_caller(source: PairSource, table: pa.Table) -> Any:
    """A table of pairs in the kind that the files came as, with ids of their own type."""
    return in_kind(with_own_ids(table, source.id_types), source.kind)


def with_own_ids(table: pa.Table, types: Sequence[str | None]) -> pa.Table:
    """Ids as the whole numbers that they came as, so that tables merge without a cast."""
    for name, kind in zip(("id_a", "id_b"), types, strict=True):
        if kind is not None and name in table.column_names:
            ids = table[name].cast(pa.type_for_alias(kind))
            table = table.set_column(table.column_names.index(name), name, ids)
    return table


def with_text_ids(table: pa.Table) -> pa.Table:
    """Ids as text, as everything inside has them."""
    for name in ("id_a", "id_b"):
        if name in table.column_names and pa.types.is_integer(table[name].type):
            ids = table[name].cast(pa.large_string())
            table = table.set_column(table.column_names.index(name), name, ids)
    return table


def row_table(rows: Sequence[Mapping[str, Any]], kind: str) -> Any:
    """A table from rows given as dicts."""
    return in_kind(pa.Table.from_pylist(list(rows)), kind)


def in_kind(table: pa.Table, kind: str) -> Any:
    """An Arrow table as pandas, polars or Arrow."""
    if kind == "pandas":
        return table.to_pandas()
    if kind == "spark":
        from pyspark.sql import SparkSession

        return SparkSession.active().createDataFrame(_without_bytes(table))
    if kind == "polars":
        import polars

        return polars.from_arrow(table)
    return table


def _without_bytes(table: pa.Table) -> pa.Table:
    """Levels as short integers: Spark has no unsigned ones."""
    for k, column in enumerate(table.columns):
        if pa.types.is_unsigned_integer(column.type):
            table = table.set_column(k, table.column_names[k], column.cast(pa.int16()))
    return table


def pair_values(source: PairSource, pairs: Pairs) -> list[dict[str, tuple[str, str]]]:
    """What both records of each pair hold, by field, as a person reads it."""
    sides = source.cells(0, pairs.a.tolist()), source.cells(1, pairs.b.tolist())
    return [
        {name: (a[name] or MISSING, b[name] or MISSING) for name in a}
        for a, b in zip(*sides, strict=True)
    ]
