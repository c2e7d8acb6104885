"""Section 5.3: 50,000 × 50,000 within postcode, from CSV to links in one command."""

import json

import pyarrow.csv
import pytest
from click.testing import CliRunner

from bayeslink.cli import main
from tests.data import large_example, needs_study

FLAGS = [
    *("--on", "gname:levenshtein", "--on", "fname:levenshtein", "--on", "age:exact"),
    *("--on", "occup:exact", "--missing", "NA", "--block", "postcode", "--theta", "7.5"),
]


@needs_study
def test_from_csv_to_links(tmp_path):
    a, b, truth = large_example()
    pyarrow.csv.write_csv(a, tmp_path / "a.csv")
    pyarrow.csv.write_csv(b, tmp_path / "b.csv")
    lines = ["id_a,id_b", *(f"{x},{y}" for x, y in truth)]
    (tmp_path / "truth.csv").write_text("\n".join(lines))
    out = str(tmp_path / "out")
    files = [str(tmp_path / "a.csv"), str(tmp_path / "b.csv")]
    done = CliRunner().invoke(main, ["link", *files, *FLAGS, "-o", out, "--json"])
    assert done.exit_code == 0, done.output
    summary = json.loads(done.stdout)
    assert summary["n_pairs"] == 160_620_919
    checked = ["evaluate", out, "--truth", str(tmp_path / "truth.csv"), "--json"]
    result = json.loads(CliRunner().invoke(main, checked).stdout)
    assert result["recall"] >= 0.96
    assert result["precision"] >= 0.93
    assert result["n_links"] == pytest.approx(25_715, abs=300)
