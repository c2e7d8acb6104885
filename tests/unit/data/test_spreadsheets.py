"""CSV that a spreadsheet opens without running any of it."""

import pyarrow as pa

from bayeslink.data.spreadsheets import safe_for_spreadsheets


def test_fullwidth_formulas_are_made_safe():
    cells = ["＝1+1", "＋1", "－1", "＠x", "\n=1", "=1", "a＝1"]
    shown = safe_for_spreadsheets(pa.table({"x": cells}))["x"].to_pylist()
    assert shown == [f"'{cell}" for cell in cells[:-1]] + ["a＝1"]
