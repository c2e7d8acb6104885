"""CSV that a spreadsheet opens without running any of it."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_RISKY = r"[=+\-@\t\r\n＝＋－＠]"  # fullwidth forms too


def safe_for_spreadsheets(table: pa.Table) -> pa.Table:
    """Put an apostrophe before text that a spreadsheet would run, names of columns too."""
    names = _safe(pa.array(table.column_names, pa.string())).to_pylist()
    return pa.table([_safe(column) for column in table.columns], names)


def as_it_was(column: Any) -> Any:
    """Text without that apostrophe."""
    return pc.replace_substring_regex(column, f"^'({_RISKY})", r"\1")


def _safe(column: Any) -> Any:
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return column
    risky = pc.match_substring_regex(column, f"^{_RISKY}")
    if not pc.any(risky).as_py():
        return column
    return pc.if_else(risky, pc.replace_substring_regex(column, "^", "'"), column)
