"""Tables of Spark -> Records, without their cells on the driver.

Each partition is numbered where it lies: a task gives the distinct values of every column it holds
and, for each cell, the number of its value. The driver puts the distinct values together, makes
text of them by the same rules as of any other input, and keeps a number for each cell. Rows are in
the order of their ids, since a table of Spark has none of its own.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bayeslink.data.cell_texts import TEXT, as_text, no_text, whole_number_type
from bayeslink.data.headers import no_records, require_columns
from bayeslink.data.read_options import ReadOptions
from bayeslink.data.records import Records, is_blank, refuse_no_text, with_missing
from bayeslink.engines.spark.cluster import Cluster
from bayeslink.errors import InputError

_ROWS = 500_000  # of a partition that are numbered together


def spark_frame(session: Any, source: Any) -> Any | None:
    """The DataFrame that a source is, or names; None for what this machine reads itself.

    A text names a table of the catalogue, or, with a slash in it, files of Parquet.
    """
    if not isinstance(source, str | os.PathLike):
        return source if hasattr(source, "sparkSession") else None
    name = os.fspath(source)
    here = os.path.isfile(name) and not name.endswith((".parquet", ".pq"))
    if here or name == "-" or name.startswith(("postgresql://", "postgres://")):
        return None
    try:
        if "/" in name or os.path.exists(name):
            folder = f"file://{os.path.abspath(name)}" if os.path.exists(name) else name
            return session.read.parquet(folder)
        return session.table(name)
    except Exception as error:
        raise InputError(
            f"{name}: Spark has neither a table nor Parquet files of that name "
            f"({type(error).__name__}). Give a table of the catalogue (schema.table), or the "
            "address of a folder of Parquet files that all executors can read."
        ) from None


def read_frame(
    cluster: Cluster,
    frame: Any,
    *,
    label: str,
    id: str | None,
    columns: Sequence[str],
    options: ReadOptions,
    side: str,
    may_lack: bool = False,
) -> Records:
    """The id and the columns asked for, numbered on the cluster; it `may_lack` some of these."""
    where = f"input {side}, {label}"
    if id is None:
        raise InputError(
            f"{where}: rows of Spark have no order by which they could be numbered. Name a column "
            "with an id for each (id=, --id)."
        )
    names = list(frame.columns)
    columns = [name for name in columns if name in names or not may_lack]
    wanted = [*dict.fromkeys([id, *columns])]
    require_columns(names, wanted, where)
    places = [names.index(name) for name in wanted]
    _refuse_types([frame.schema.fields[place] for place in places], where)
    # By position, as names may hold dots and quotes, or differ in case alone.
    plain = frame.toDF(*(f"c{k}" for k in range(len(names))))
    numbered = plain.select(*(f"c{place}" for place in places)).mapInArrow(
        _number, "part long, payload binary"
    )
    parts = [pa.ipc.open_stream(found).read_all() for found in cluster.collect(numbered, "part")]
    if not parts:
        raise no_records(where)
    table = pa.concat_tables(parts).unify_dictionaries()
    ids = as_text(table.column(0), id, where)
    _refuse_ids(ids, id, where)
    order = pc.sort_indices(ids).to_numpy()
    found = {}
    for k, name in enumerate(wanted):
        if name in columns:
            column = table.column(k).combine_chunks()
            found[name] = _as_texts(column, order, name, where, options)
    return Records(
        label=label,
        ids=ids.take(pa.array(order)),
        columns=found,
        missing={name: column.null_count for name, column in found.items()},
        kind="spark",
        sha256=_digest(ids, found, order),
        quarantined=0,
        id_type=whole_number_type(table.column(0)),
        _lines=None,
    )


def _digest(ids: pa.Array, columns: dict[str, pa.DictionaryArray], order: Any) -> str:
    """A checksum of what was read, whatever the partitions."""
    digest = hashlib.sha256()
    for name, column in columns.items():
        digest.update(f"{name} {len(column)} {len(column.dictionary)} ".encode())
        digest.update(pc.fill_null(column.indices, -1).to_numpy(zero_copy_only=False))
        digest.update("\0".join(column.dictionary.to_pylist()).encode())
    for first in range(0, len(order), _ROWS):
        part = ids.take(pa.array(order[first : first + _ROWS]))
        digest.update("\0".join(part.to_pylist()).encode())
    return digest.hexdigest()


def _number(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """On an executor: the rows of a partition, all but the id as numbers of distinct values."""
    waiting: list[pa.RecordBatch] = []

    def sent() -> pa.RecordBatch:
        table = pa.Table.from_batches(waiting)
        columns = [column.combine_chunks() for column in table.columns]
        coded = [columns[0], *(column.dictionary_encode() for column in columns[1:])]
        out = pa.BufferOutputStream()
        schema = pa.schema([(f"c{k}", column.type) for k, column in enumerate(coded)])
        with pa.ipc.new_stream(
            out, schema, options=pa.ipc.IpcWriteOptions(compression="lz4")
        ) as stream:
            stream.write(pa.RecordBatch.from_arrays(coded, schema=schema))
        payload = pa.array([out.getvalue().to_pybytes()], pa.binary())
        return pa.RecordBatch.from_arrays([pa.array([0], pa.int64()), payload], ["part", "payload"])

    for batch in batches:
        if batch.num_rows:
            waiting.append(batch)
        if sum(part.num_rows for part in waiting) >= _ROWS:
            yield sent()
            waiting.clear()
    if waiting:
        yield sent()


def _refuse_types(fields: Sequence[Any], where: str) -> None:
    """An id must be text or a whole number, a column have a text form: known before the work."""
    from pyspark.sql.pandas.types import to_arrow_type

    for k, field in enumerate(fields):
        try:
            kind = to_arrow_type(field.dataType)
        except Exception:
            raise no_text(field.name, field.dataType.simpleString(), where) from None
        as_text(pa.chunked_array([], kind), field.name, where)
        if k == 0 and not (pa.types.is_integer(kind) or _is_text(kind)):
            raise InputError(
                f"{where}: the id column {field.name!r} is of type {kind}. With Spark ids are "
                "text or whole numbers; cast it to string."
            )


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def _refuse_ids(ids: pa.Array, name: str, where: str) -> None:
    blank = int(pc.sum(pc.fill_null(is_blank(ids), True)).as_py() or 0)
    if blank:
        raise InputError(
            f"{where}: {blank:,} records have no id in column {name!r}. Give every record an id."
        )
    repeats = len(ids) - pc.count_distinct(ids).as_py()
    if repeats:
        raise InputError(
            f"{where}: {repeats:,} records repeat the id of another one in column {name!r}. Ids "
            "must be unique; remove the repeats or use another column."
        )


def _as_texts(
    column: pa.Array, order: Any, name: str, where: str, options: ReadOptions
) -> pa.DictionaryArray:
    """Texts as numbers of sorted distinct ones, null where missing."""
    if not pa.types.is_dictionary(column.type):  # an id that is compared as well
        column = column.dictionary_encode()
    texts = as_text(pa.chunked_array([column.dictionary]), name, where)
    refuse_no_text(texts, name, where, lambda row: "a cell")
    coded = with_missing(texts, options).dictionary_encode()
    ranks = pc.sort_indices(coded.dictionary).to_numpy()
    rank = np.empty(len(ranks) + 1, np.int32)
    rank[ranks], rank[-1] = np.arange(len(ranks)), -1
    of_text = rank[pc.fill_null(coded.indices, len(ranks)).to_numpy(zero_copy_only=False)]
    raw = pc.fill_null(column.indices, len(of_text)).to_numpy(zero_copy_only=False)
    codes = np.append(of_text, np.int32(-1))[raw[order]]
    sorted_texts = coded.dictionary.take(pa.array(ranks)).cast(TEXT)
    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), sorted_texts)
