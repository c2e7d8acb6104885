"""CSV that a spreadsheet opens without running any of it."""

import pyarrow as pa
import pyarrow.compute as pc


def safe_for_spreadsheets(table: pa.Table) -> pa.Table:
    """Put an apostrophe before text that a spreadsheet would run, its fullwidth forms too."""
    for position, column in enumerate(table.schema):
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            texts = table.column(position)
            risky = pc.match_substring_regex(texts, r"^[=+\-@\t\r\n＝＋－＠]")
            made_safe = pc.replace_substring_regex(texts, "^", "'")
            table = table.set_column(position, column.name, pc.if_else(risky, made_safe, texts))
    return table
