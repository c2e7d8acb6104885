"""One file given as both A and B: refused, as each record would only find itself."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from bayeslink.data.locations import is_path
from bayeslink.data.read_options import ReadOptions
from bayeslink.data.records import Records
from bayeslink.errors import InputError


def refuse_same_source(a: Any, b: Any, options: Sequence[ReadOptions]) -> None:
    """Refuse one object or one path for both, before it is read."""
    if a is None or options[0].table != options[1].table:  # two tables of one database
        return
    if a is b or (isinstance(a, str | os.PathLike) and _same_place(a, b)):
        raise _with_itself()


def refuse_same_records(records: Sequence[Records], options: Sequence[ReadOptions]) -> None:
    """Refuse two files with the same bytes."""
    sums = {side.sha256 for side in records}
    if len(sums) == 1 and None not in sums and options[0].table == options[1].table:
        raise _with_itself()


def _same_place(a: Any, b: Any) -> bool:
    if not is_path(a) or not is_path(b):
        return bool(a == b)
    try:
        return os.path.samefile(a, b)
    except (OSError, ValueError):  # whoever reads them will tell
        return False


def _with_itself() -> InputError:
    return InputError(
        "A and B are the same file. Linked with itself one-to-one, each record only finds itself; "
        "two records of one person within a file are not looked for. Give the two files that you "
        "meant. For the duplicates within one: bayeslink dedupe FILE -o OUT (bl.dedupe(a))."
    )
