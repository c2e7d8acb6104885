"""A file or frame with all its columns in their own types, some rows at a time."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bayeslink.data.cell_texts import TEXT, from_pandas, storable
from bayeslink.data.checksums import checksum, require_same, require_whole
from bayeslink.data.delimited import all_columns
from bayeslink.data.locations import is_url, located, parts_of
from bayeslink.data.parts import below, sum_now, sum_of
from bayeslink.data.read_options import ReadOptions
from bayeslink.data.sources import file_kind, read_source
from bayeslink.errors import InputError
from bayeslink.memory import Memory

_CELLS = 2**19  # that are handed on at a time, about


def whole_tables(
    source: Any, needed: Sequence[str], options: ReadOptions, where: str, sha256: str | None
) -> Iterator[pa.Table]:
    """Every row that `read_records` reads, in the same order, with all columns.

    Columns that cannot be written to all kinds of files are text. `needed` are columns that must
    be there: they tell the header of a text file. A file that has not this checksum, that of the
    first reading, is refused, at the latest after its last row.
    """
    if (parts := parts_of(source)) is not None:
        sums = [sum_now(part, where) for part in parts]
        require_same(sum_of(sums), sha256, where)
        each = zip(parts, sums, strict=True)
        read = [[*whole_tables(part, needed, options, where, one)] for part, one in each]
        yield below([pa.concat_tables(tables) for tables in read], where)
        return
    for table in _as_they_are(source, needed, options, where, sha256):
        yield pa.table([storable(column) for column in table.columns], table.column_names)


def _as_they_are(
    source: Any, needed: Sequence[str], options: ReadOptions, where: str, sha256: str | None
) -> Iterator[pa.Table]:
    if isinstance(source, str | os.PathLike) and not is_url(source):
        path = Path(located(source))
        try:
            kind = file_kind(path, where)
            if kind == "parquet":
                require_same(before := checksum(path, kind), sha256, where)
                yield from _parquet_tables(path, where)
                require_whole(path, kind, before, where)
                return
            if kind == "csv":
                yield from _larger(all_columns(path, needed, options, where, sha256))
                return
        except OSError as error:
            raise InputError(
                f"{where}: cannot be read ({error.strerror}). Check the path and its permissions."
            ) from None
    table = whole_table(source, options, where, sha256)
    size = max(1, _CELLS // max(1, table.num_columns))
    for first in range(0, table.num_rows, size):
        yield table.slice(first, size)


def whole_table(source: Any, options: ReadOptions, where: str, sha256: str | None) -> pa.Table:
    """A frame, or a table of a database, as one Arrow table."""
    if (pandas := sys.modules.get("pandas")) and isinstance(source, pandas.DataFrame):
        return pa.table(
            {str(name): _pandas_column(source.iloc[:, k], str(name), where)
             for k, name in enumerate(source.columns)}
        )  # fmt: skip
    table = read_source(source, None, options, where, Memory().budget)
    require_same(table.sha256, sha256, where)
    return pa.table(table.columns)


def _pandas_column(series: Any, name: str, where: str) -> pa.ChunkedArray:
    """As `from_pandas`, and what has no single text form as Python writes it."""
    with suppress(InputError):
        column = from_pandas(series, name, where)
        if not isinstance(column.type, pa.BaseExtensionType):  # of periods, say
            return column
    texts = [None if null else str(x) for x, null in zip(series, series.isna(), strict=True)]
    return pa.chunked_array([pa.array(texts, TEXT)])


def _parquet_tables(path: Path, where: str) -> Iterator[pa.Table]:
    with path.open("rb") as file:
        try:
            parquet = pq.ParquetFile(file, page_checksum_verification=True)
            size = max(1, _CELLS // max(1, len(parquet.schema_arrow)))
            for batch in parquet.iter_batches(size):
                yield pa.Table.from_batches([batch])
        except pa.ArrowException:
            raise InputError(
                f"{where}: not a whole Parquet file, or a damaged one. Copy or write it again."
            ) from None


def _larger(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The same rows in larger pieces."""
    gathered: list[pa.Table] = []
    cells = 0
    for table in tables:
        gathered.append(table)
        cells += table.num_rows * table.num_columns
        if cells >= _CELLS:
            yield pa.concat_tables(gathered).combine_chunks()
            gathered, cells = [], 0
    if gathered:
        yield pa.concat_tables(gathered).combine_chunks()
