"""Rows swallowed between two stray quotes, told from cells that are meant to have several lines."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from bayeslink.errors import InputError


def refuse_swallowed(
    rows: Iterable[tuple[int, Sequence[str]]], delimiter: str, width: int, where: str
) -> None:
    """Refuse a row over several lines, of those (line, cells), that look like records."""
    for line, cells in rows:
        if _look_like_records(cells, delimiter, width):
            raise InputError(
                f"{where}, line {line}: a quoted cell that begins here goes on over lines that "
                "look like records themselves, as between two stray quotes. Correct the quotes; "
                "if cells with line breaks are meant, say --multiline (multiline=True)."
            )


def _look_like_records(cells: Sequence[str], delimiter: str, width: int) -> bool:
    """Whether a line within the row has as many cells as the header; of two lines, both.

    Not if no cell of several lines has a delimiter in it: then it has swallowed nothing.
    """
    if not any(delimiter in cell and ("\n" in cell or "\r" in cell) for cell in cells):
        return False
    text = delimiter.join(cells).replace("\r\n", "\n").replace("\r", "\n")
    full = [line.count(delimiter) == width - 1 for line in text.split("\n")]
    return any(full[1:-1]) or any(one and other for one, other in pairwise(full))
