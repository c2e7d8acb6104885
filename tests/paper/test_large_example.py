"""Section 5.3: 50,000 × 50,000 within postcode, from CSV to links in one command."""

import json

import pyarrow.csv
import pytest
from click.testing import CliRunner

from bayeslink.cli import main
from tests.data import large_example, needs_study

FLAGS = [
    *("--on", "gname:levenshtein", "--on", "fname:levenshtein", "--on", "age:exact"),
    *("--on", "occup:exact", "--missing", "NA", "--block", "postcode"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("large")
    a, b, truth = large_example()
    pyarrow.csv.write_csv(a, folder / "a.csv")
    pyarrow.csv.write_csv(b, folder / "b.csv")
    lines = ["id_a,id_b", *(f"{x},{y}" for x, y in truth)]
    (folder / "truth.csv").write_text("\n".join(lines))
    return folder


def linked(folder, out, *flags):
    """Summary of a run, and its evaluation."""
    files = [str(folder / "a.csv"), str(folder / "b.csv")]
    done = CliRunner().invoke(main, ["link", *files, *FLAGS, *flags, "-o", str(out), "--json"])
    assert done.exit_code == 0, done.output
    checked = ["evaluate", str(out), "--truth", str(folder / "truth.csv"), "--json"]
    return json.loads(done.stdout), json.loads(CliRunner().invoke(main, checked).stdout)


@needs_study
def test_point_estimate_from_csv(folder, tmp_path):
    summary, result = linked(folder, tmp_path / "out", "--theta", "7.5", "--point")
    assert summary["n_pairs"] == 160_620_919
    assert result["recall"] >= 0.96
    assert result["precision"] >= 0.93
    assert result["n_links"] == pytest.approx(25_715, abs=300)


@needs_study
@pytest.mark.parametrize("prior", [("--theta", "7.5"), ()], ids=["theta", "overlap"])
def test_bayes_estimate_from_csv(folder, tmp_path, prior):
    sampling = ("--chains", "2", "--tune", "200", "--draws", "300")
    summary, result = linked(folder, tmp_path / "out", *prior, *sampling)
    assert result["recall"] >= 0.955
    assert result["precision"] >= 0.945
    false = result["n_links"] - result["true_links"]
    assert summary["expected_false_links"] == pytest.approx(false, rel=0.5)
