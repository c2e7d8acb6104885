"""Settings as plain data, which a file can hold and give back."""

import os
from typing import Any


def plain(value: Any) -> Any:
    """Arrays and numbers of NumPy and its kin as Python's own, tuples as lists, paths as text.

    >>> plain((1, (2.5, "x")))
    [1, [2.5, 'x']]
    """
    for convert in ("tolist", "to_list"):  # polars has the second
        if hasattr(value, convert):
            value = getattr(value, convert)()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return value


def is_text(value: Any) -> bool:
    """Whether it is text that a file can hold: a `str` without halves of characters."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def texts(value: Any) -> tuple[str, ...] | None:
    """One text or several as a tuple; None if it is anything else."""
    value = plain(value)
    try:
        found = (value,) if isinstance(value, str) else tuple(value)
    except TypeError:
        return None
    return found if all(map(is_text, found)) and not isinstance(value, dict) else None
