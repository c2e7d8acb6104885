"""A new batch of B for files without ids: rows keep the numbers that the earlier run gave them."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from click.testing import CliRunner

import bayeslink as bl
from bayeslink.cli import main

FIELDS = [bl.name("gname"), bl.name("fname"), bl.exact("sex"), bl.date("dob")]
FEW = {"draws": 60, "tune": 40, "chains": 2}


@pytest.fixture(scope="module")
def files():
    return bl.simulate(120, overlap=0.6, errors=1, seed=3)


@pytest.mark.parametrize("taken", [(), ("row", "row_")])
def test_the_rows_of_a_keep_their_numbers(files, taken):
    """Against the same update of files that have ids."""
    parts = files.b.slice(0, 80), files.b.slice(80)
    with_ids = bl.update(bl.link(files.a, parts[0], FIELDS, **FEW), parts[1])
    a, b, batch = (t.drop_columns(["id"]) for t in (files.a, *parts))
    for name in taken:
        a = a.append_column(name, pa.nulls(len(a), pa.string()))
    found = bl.update(bl.link(a, b, FIELDS, id=None, **FEW), batch)
    rows = [np.array(found.table[side].to_pylist()).astype(int) - 1 for side in ("id_a", "id_b")]
    links = {
        (files.a["id"][i].as_py(), parts[1]["id"][j].as_py())
        for i, j in np.transpose(rows).tolist()
    }
    expected = with_ids.table.filter(pc.equal(with_ids.table["decision"], "link"))
    assert len(links) > 10
    assert links == {(row["id_a"], row["id_b"]) for row in expected.to_pylist()}


def test_on_the_command_line(files, tmp_path):
    a, b, batch, out = (tmp_path / name for name in ("a.csv", "b.csv", "batch.csv", "out"))
    for path, table in ((a, files.a), (b, files.b.slice(0, 80)), (batch, files.b.slice(80))):
        table.drop_columns(["id"]).to_pandas().to_csv(path, index=False)
    bl.link(a, b, FIELDS, id=None, **FEW).save(out)
    words = ["link", "--update", out, batch, "-o", tmp_path / "batch"]
    done = CliRunner().invoke(main, [*map(str, words)])
    assert done.exit_code == 0, done.output
    before, after = bl.open_run(out).table, bl.open_run(tmp_path / "batch").table
    linked = set(before.filter(pc.equal(before["decision"], "link"))["id_a"].to_pylist())
    assert len(after)
    assert not linked & set(after["id_a"].to_pylist())
