"""CSV that a spreadsheet opens without running any of it."""

import pyarrow as pa
import pyarrow.compute as pc


def safe_for_spreadsheets(table: pa.Table) -> pa.Table:
    """Put an apostrophe before text that a spreadsheet would run, its fullwidth forms too."""
    return pa.table([_safe(column) for column in table.columns], table.column_names)


def _safe(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return column
    risky = pc.match_substring_regex(column, r"^[=+\-@\t\r\n＝＋－＠]")
    if not pc.any(risky).as_py():
        return column
    return pc.if_else(risky, pc.replace_substring_regex(column, "^", "'"), column)
