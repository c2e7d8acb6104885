"""Small things that an attack found, each as it was found."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import numba
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import bayeslink as bl
from bayeslink import kernels
from bayeslink.cli import main
from bayeslink.data.spreadsheets import safe_for_spreadsheets
from bayeslink.report.page import report
from benchmarks import hashes


def test_a_small_memory_budget_does_for_small_files(tmp_path):
    bl.write_simulation(bl.simulate(50, seed=1), tmp_path / "files")
    paths = [str(tmp_path / "files" / f"{side}.csv") for side in "ab"]
    words = ["link", *paths, "--on", "gname", "--on", "dob:date", "--draws", "20"]
    small = CliRunner().invoke(main, [*words, "--memory", "400MB", "-o", str(tmp_path / "small")])
    assert small.exit_code == 0, small.output
    large = CliRunner().invoke(main, [*words, "-o", str(tmp_path / "large")])
    assert large.exit_code == 0, large.output
    one, other = (pq.read_table(tmp_path / name / "links.parquet") for name in ("small", "large"))
    assert one.equals(other)


@pytest.mark.parametrize("settings", [{}, {"structure": "independent"}, {"point": True}])
def test_a_field_that_is_missing_everywhere_weighs_nothing(tmp_path, settings):
    files = bl.simulate(40, seed=1)
    a, b = (
        t.append_column("zip", pa.nulls(len(t), pa.string())).append_column(
            "half", t["fname"] if k else pa.nulls(len(t), pa.string())
        )
        for k, t in enumerate((files.a, files.b))
    )
    fields = [bl.levenshtein(name) for name in ("gname", "zip", "half")]
    run = bl.link(a, b, fields, draws=30, tune=10, **settings)
    run.save(tmp_path / "out")
    rows = pq.read_table(tmp_path / "out" / "parameters.parquet").to_pylist()
    for row in rows:
        assert (row["match_weight"] == 0.0) == (row["field"] != "gname")
    assert "never seen" in report(run, tmp_path / "r.html").read_text("utf-8")
    assert "zip, equal: never seen" in bl.plots.weights(run).svg()


def test_fullwidth_formulas_are_made_safe():
    cells = ["＝1+1", "＋1", "－1", "＠x", "\n=1", "=1", "a＝1"]
    shown = safe_for_spreadsheets(pa.table({"x": cells}))["x"].to_pylist()
    assert shown == [f"'{cell}" for cell in cells[:-1]] + ["a＝1"]


@pytest.mark.skipif(os.name == "nt", reason="no such modes there")
@pytest.mark.parametrize("mode", [0o777, 0o770])
def test_compiled_code_is_not_kept_where_others_can_write(tmp_path, monkeypatch, mode):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    folder = kernels._folder()
    assert folder.is_relative_to(tmp_path)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for wrong in (folder, folder.parent):
        before = wrong.stat().st_mode
        wrong.chmod(mode)
        assert not str(kernels._folder()).startswith(str(tmp_path))
        wrong.chmod(before)
    assert kernels._folder() == folder


def test_the_bill_of_materials_names_what_is_needed_and_says_when_it_cannot_check(tmp_path):
    script = Path(__file__).parents[2] / "benchmarks" / "supply_chain.py"
    code = (
        "import runpy, sys, urllib.request\n"
        "def fail(*_, **__): raise OSError('no network')\n"
        "urllib.request.urlopen = fail\n"
        f"sys.argv = ['x', {str(tmp_path / 'sbom.json')!r}]\n"
        f"runpy.run_path({str(script)!r}, run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0
    assert "Could not ask" in done.stdout
    made = json.loads((tmp_path / "sbom.json").read_text())
    names = {part["name"] for part in made["components"]}
    assert {"bayeslink", "numpy", "starlette", "click", "anyio"} <= names
    assert "pytest" not in names


def test_every_pin_has_its_hashes_and_no_host_is_named(tmp_path, monkeypatch, capsys):
    assert hashes.check() == 0
    text = hashes.HASHED.read_text("utf-8")
    assert "://" not in text
    pins = text.splitlines()
    whole = "\n".join(line for line in pins if "click==" not in line and "idna==" not in line)
    monkeypatch.setattr(hashes, "HASHED", tmp_path / "r.txt")
    (tmp_path / "r.txt").write_text(whole, "utf-8")
    assert hashes.check() == 1
    assert "click==" in capsys.readouterr().out
