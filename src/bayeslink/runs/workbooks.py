"""Rows as an Excel workbook, text as text: no formula, no number that lost its zeros.

In a column of dates written as 1980-02-01 they are dates, too, where Excel's calendar is right.
"""

from __future__ import annotations

import math
import re
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
_DATE = re.compile(r"(\d{4}-\d\d-\d\d)(?: 00:00:00)?", re.ASCII)
_FIRST = date(1900, 3, 1)  # Excel has a 29 February 1900
_LOOKED_AT = 1000  # rows, for whether a column has dates and how wide it is
_NARROWEST, _WIDEST = 8, 40  # letters
_DATES = 0.9  # of the values, in a column of dates


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
        self._dates: list[bool] = []  # of each column
        self._book = Workbook(write_only=True)
        self._sheet = self._book.create_sheet("linked")

    def write(self, table: pa.Table) -> None:
        table = plain_table(table)
        if not self._rows:
            self._lay_out(table)
            self._append(table.column_names)
        for batch in table.to_batches(max_chunksize=4096):
            columns = [
                [_day(text) or text for text in column.to_pylist()] if dates else column.to_pylist()
                for column, dates in zip(batch.columns, self._dates, strict=True)
            ]
            for row in zip(*columns, strict=True):
                self._append(row)

    def _lay_out(self, table: pa.Table) -> None:
        """Columns as wide as their values, and those of dates known as such."""
        from openpyxl.utils import get_column_letter

        some = table.slice(0, _LOOKED_AT)
        for name, column in zip(some.column_names, some.columns, strict=True):
            texts = [str(value) for value in column.to_pylist() if value is not None]
            days = sum(_day(text) is not None for text in texts)
            self._dates.append(days > 0 and days >= _DATES * len(texts))
            width = min(max(map(len, (name, *texts))) + 2, _WIDEST)
            letter = get_column_letter(len(self._dates))
            self._sheet.column_dimensions[letter].width = max(width, _NARROWEST)

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


def _day(text: Any) -> date | None:
    """The day that a text is; None if it is none, or one of which Excel knows nothing."""
    found = _DATE.fullmatch(str(text))
    try:
        day = date.fromisoformat(found[1]) if found else None
    except ValueError:  # 31 February stays as it is
        return None
    return day if day and day >= _FIRST else None


def _text(value: str) -> str:
    """Text that a workbook can hold, with � for control characters."""
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

    if len(value) > _LETTERS:
        raise SettingsError(
            f"a cell of Excel has {_LETTERS:,} letters at most, and one of the linked file has "
            "more. Write .csv or .parquet."
        )
    return ILLEGAL_CHARACTERS_RE.sub("\N{REPLACEMENT CHARACTER}", value)
