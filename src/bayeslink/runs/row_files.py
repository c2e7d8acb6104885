"""Rows on the disk: kept aside to be taken in any order, and written as CSV and Parquet."""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from bayeslink.data.cell_texts import as_json
from bayeslink.data.spreadsheets import safe_for_spreadsheets
from bayeslink.distinct import distinct
from bayeslink.pairs.source import Ints
from bayeslink.private import opened


class RowFile:
    """Rows in a file without a name, mapped into memory, from which any can be taken."""

    def __init__(self) -> None:
        self._file: Any = tempfile.TemporaryFile()  # noqa: SIM115 - closed on leaving
        self._writer: Any = None
        self._ends: list[int] = []
        self._reader: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._reader = None
        self._file.close()

    def append(self, table: pa.Table) -> None:
        """More rows, after those that are there."""
        if self._writer is None:
            self._writer = pa.ipc.new_file(self._file, table.schema)
        for batch in table.combine_chunks().to_batches():
            self._writer.write_batch(batch)
            self._ends.append((self._ends[-1] if self._ends else 0) + len(batch))

    def take(self, rows: Ints) -> pa.Table:
        """These rows, in this order; −1 gives a row of nulls."""
        if self._reader is None:
            self._writer.close()
            self._file.flush()
            mapped = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
            self._reader = pa.ipc.open_file(pa.BufferReader(pa.py_buffer(mapped)))
        piece = np.searchsorted(self._ends, rows, side="right")
        piece[rows < 0] = 0
        starts = np.concatenate([[0], self._ends[:-1]]).astype(np.int64)
        order = np.argsort(piece, kind="stable")
        parts = [self._reader.schema.empty_table()]
        for number in distinct(piece):
            at = rows[order[piece[order] == number]]
            places = pa.array(at - starts[number], mask=at < 0)
            batch = pa.Table.from_batches([self._reader.get_batch(int(number))])
            parts.append(batch.take(places))
        return pa.concat_tables(parts).combine_chunks().take(np.argsort(order, kind="stable"))


class RowWriter:
    """A file in some format, written a table at a time."""

    def __init__(self, file: IO[bytes], suffix: str) -> None:
        self._file, self._csv = file, suffix == ".csv"
        self._writer: Any = None

    def write(self, table: pa.Table) -> None:
        table = safe_for_spreadsheets(plain_table(table)) if self._csv else table
        if self._writer is None:
            self._writer = (
                pyarrow.csv.CSVWriter(self._file, table.schema)
                if self._csv
                else pq.ParquetWriter(self._file, table.schema, compression="zstd")
            )
        self._writer.write_table(table if self._csv else table.cast(self._writer.schema))

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


class _Both:
    """One table, to several files."""

    def __init__(self, writers: list[RowWriter]) -> None:
        self._writers = writers

    def write(self, table: pa.Table) -> None:
        for writer in self._writers:
            writer.write(table)


@contextmanager
def writing(stem: Path) -> Iterator[_Both]:
    """Write `stem`.csv and `stem`.parquet."""
    with ExitStack() as stack:
        writers = []
        for end in (".csv", ".parquet"):
            # Arrow takes only UTF-8 paths; Python opens any.
            path = stem.with_name(stem.name + end)
            file = stack.enter_context(open(path, "wb", opener=opened))
            writers.append(stack.enter_context(closing(RowWriter(file, end))))
        yield _Both(writers)


def plain_table(table: pa.Table) -> pa.Table:
    """With columns that CSV has no form for as text: lists and structures as JSON."""
    return pa.table([_plain_column(column) for column in table.columns], table.column_names)


def _plain_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_dictionary(kind):
        return pc.cast(column, kind.value_type)
    return as_json(column) if any(is_kind(kind) for is_kind in _NOT_IN_CSV) else column


_NOT_IN_CSV = (
    pa.types.is_nested,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
)
