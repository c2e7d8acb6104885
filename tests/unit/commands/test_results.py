"""What a run directory has to say where there is little: no true pairs, no links."""

import json

import pytest
from click.testing import CliRunner

import bayeslink as bl
from bayeslink.cli import main

FIELDS = [bl.name("gname"), bl.name("fname"), bl.exact("sex"), bl.date("dob")]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Files without anybody in both, their run, and the true pairs: a header."""
    folder = tmp_path_factory.mktemp("apart")
    bl.write_simulation(bl.simulate(40, overlap=0.0, seed=1), folder)
    run = bl.link(
        folder / "a.csv", folder / "b.csv", FIELDS, theta=60.0, draws=40, tune=20, chains=2
    )
    run.save(folder / "run")
    return folder


def call(*words):
    return CliRunner().invoke(main, [*map(str, words)])


def test_a_truth_without_pairs_says_that_nobody_is_in_both(made):
    words = ("evaluate", made / "run", "--truth", made / "truth.csv")
    assert call(*words).exit_code == 0
    done = call(*words, "--json")
    assert "NaN" not in done.stdout  # which is no JSON
    found = json.loads(done.stdout)
    assert (found["n_true"], found["n_links"], found["precision"]) == (0, 0, None)


def test_a_report_with_a_truth_without_pairs(made, tmp_path):
    done = call("report", made / "run", "--truth", made / "truth.csv", "-o", tmp_path / "r.html")
    assert done.exit_code == 0, done.output


def test_a_truth_that_cannot_be_read_is_not_called_an_input(made, tmp_path):
    (tmp_path / "truth.csv").write_text("x,y\n1,2\n", "utf-8")
    done = call("evaluate", made / "run", "--truth", tmp_path / "truth.csv")
    assert done.exit_code == 3
    assert "input A" not in done.stderr
    assert "truth" in done.stderr
