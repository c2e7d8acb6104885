"""Sheets of Excel workbooks."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from bayeslink.data.delimited import GZIP_FREE, GZIP_RATIO
from bayeslink.data.headers import NO_HEADER, header_again, none_there
from bayeslink.data.python_cells import cell_text, chosen, columns, lacks
from bayeslink.errors import InputError


def read_excel(
    path: Path,
    wanted: Sequence[str] | None,
    sheet: str | None,
    skip: int,
    where: str,
    memory: int,
) -> pa.Table:
    """One sheet of a workbook; its first row, after `skip` others, names the columns."""
    try:
        import openpyxl
    except ImportError:
        raise lacks(where, "an Excel workbook", "openpyxl", "excel") from None
    _refuse_bomb(path, where)
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    except Exception as error:  # openpyxl raises whatever it stumbles over
        raise InputError(
            f"{where}: not a workbook that can be read ({type(error).__name__}). Save it again as "
            ".xlsx, or export the sheet as CSV."
        ) from None
    try:
        cells = _rows(book[chosen(book.sheetnames, sheet, "sheet", where)], skip, where)
        header = next(cells, [])
        names = ["" if name is None else str(cell_text(name)) for name in header]
        if wanted is not None and not set(wanted) & set(names):
            more = "If it comes later, skip what stands before it with --skip-lines (skip_lines=)."
            raise none_there(names, wanted, f"{where}, row {skip + 1}", f"{NO_HEADER} {more}")
        return columns(names, cells, wanted, where, memory // 2)
    finally:
        book.close()


def _refuse_bomb(path: Path, where: str) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
    except zipfile.BadZipFile:
        raise InputError(f"{where}: not a whole workbook. Copy or save it again.") from None
    if size > max(GZIP_FREE, GZIP_RATIO * path.stat().st_size):
        raise InputError(
            f"{where}: expands to more than {GZIP_RATIO} times its size, as files made to fill a "
            "disk do. Export the sheet as CSV yourself if you trust it."
        )


def _rows(sheet: Any, skip: int, where: str) -> Iterator[list[Any]]:
    """Values of the rows from the header on, without the empty cells after the last."""
    sheet.reset_dimensions()  # what a sheet says of its size may be wrong
    header: list[Any] | None = None
    for number, row in enumerate(sheet.iter_rows(min_row=skip + 1), start=skip + 1):
        cells = [_excel_value(cell) for cell in row]
        while cells and cells[-1] is None:
            cells.pop()
        if len(cells) > 1 and cells == header:
            raise header_again(number, where, "row")
        header = cells if header is None else header
        yield cells


def _excel_value(cell: Any) -> Any:
    return None if getattr(cell, "data_type", "n") == "e" else cell.value  # e: such as #N/A
