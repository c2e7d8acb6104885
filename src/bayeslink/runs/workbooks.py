"""Rows as an Excel workbook, all text as text: no formula, no number that lost its zeros."""

from __future__ import annotations

import math
from datetime import date
from importlib.util import find_spec
from typing import IO, Any

import pyarrow as pa

from bayeslink.errors import SettingsError
from bayeslink.runs.row_files import plain_table

WORKBOOK = ".xlsx"
_ROWS = 2**20  # of a sheet, and
_LETTERS = 32_767  # of a cell: more is cut off without a word
_EXACT = 10**15  # Excel keeps 15 digits


def require_writer() -> None:
    """Refuse early where workbooks cannot be written."""
    if find_spec("openpyxl") is None:
        raise SettingsError(
            "writing .xlsx needs openpyxl. Install it with pip install 'bayeslink[excel]', or "
            "write .csv or .parquet."
        )


class WorkbookWriter:
    """A workbook of one sheet, written a table at a time."""

    def __init__(self, file: IO[bytes]) -> None:
        from openpyxl import Workbook

        self._file, self._rows = file, 0
        self._book = Workbook(write_only=True)
        self._sheet = self._book.create_sheet("linked")

    def write(self, table: pa.Table) -> None:
        table = plain_table(table)
        if not self._rows:
            self._append(table.column_names)
        for batch in table.to_batches(max_chunksize=4096):
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                self._append(row)

    def _append(self, row: Any) -> None:
        self._rows += 1
        if self._rows > _ROWS:
            raise SettingsError(
                f"a sheet of Excel has {_ROWS:,} rows at most, and the linked file has more. "
                "Write .csv or .parquet."
            )
        self._sheet.append([self._cell(value) for value in row])

    def _cell(self, value: Any) -> Any:
        from openpyxl.cell import WriteOnlyCell

        if isinstance(value, float):
            return value if math.isfinite(value) else None
        if value is None or isinstance(value, bool) or type(value) is date:
            return value
        if isinstance(value, int) and abs(value) < _EXACT:
            return value
        cell = WriteOnlyCell(self._sheet, value=_text(str(value)))
        cell.data_type = "s"  # also of what looks like a formula
        return cell

    def close(self) -> None:
        self._book.save(self._file)


def _text(value: str) -> str:
    """Text that a workbook can hold, with � for control characters."""
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

    if len(value) > _LETTERS:
        raise SettingsError(
            f"a cell of Excel has {_LETTERS:,} letters at most, and one of the linked file has "
            "more. Write .csv or .parquet."
        )
    return ILLEGAL_CHARACTERS_RE.sub("\N{REPLACEMENT CHARACTER}", value)
