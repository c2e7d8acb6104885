"""Labels change the posterior as enumeration says, by way of files, a review and the command line.

Small files are linked, some of their pairs judged, and linked again with the judgements. The link
probabilities must then be those of the exact posterior, m and u integrated out, over the matchings
that have all links judged to be links and none judged not to be.
"""

import csv

import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from scipy import stats

import bayeslink as bl
from bayeslink.cli import main
from bayeslink.judging.judgements import FILE, Judgements
from tests.exact.problems import random_files

ALARM = 1e-3  # chance that right probabilities fail, over all problems; seeds are fixed
PROBLEMS = [(number, prior) for number in range(4) for prior in (bl.Penalty(0.5), bl.Overlap(1, 2))]
BATCHES = 80  # behind each Monte Carlo error
FLOOR = 5e-4  # of those errors: a batch may miss what is rarer


def link_again(problem, folder, *, left_out=()):
    """Link the files, judge the pairs that the problem has as known, link again."""
    for name, rows in (("a", problem.rows_a), ("b", problem.rows_b)):
        with (folder / f"{name}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, ["id", *rows[0]])
            writer.writeheader()
            writer.writerows({"id": f"{name}{i}", **row} for i, row in enumerate(rows))
    run = bl.link(
        *(folder / "a.csv", folder / "b.csv", problem.fields),
        block=problem.block,
        prior=problem.prior,
        structure="independent",
        w0=-np.inf,
        draws=10,
        tune=10,
    )
    run.save(folder / "run")
    verdicts = dict.fromkeys(problem.links, "link") | dict.fromkeys(problem.nonlinks, "nonlink")
    with Judgements(folder / "run" / FILE) as judgements:
        for (i, j), verdict in verdicts.items():
            if (i, j) not in left_out:
                pair = {(f"a{i}", f"b{j}"): verdict}
                judgements.add(case=f"{i}-{j}", version="1", reviewer="x", verdicts=pair)
    command = ["link", "--config", folder / "run" / "link.toml", "--labels", folder / "run"]
    command += ["--draws", 2000, "--tune", 200, "-o", folder / "again"]
    done = CliRunner().invoke(main, [*map(str, command)])
    assert done.exit_code == 0, done.output
    return folder / "again"


def errors(problem, folder):
    """Link probabilities of a run less the exact ones, in Monte Carlo standard errors."""
    rows = pq.read_table(folder / "pairs.parquet").to_pylist()
    found = {(int(r["id_a"][1:]), int(r["id_b"][1:])): r for r in rows}
    exact, *_ = problem.exact
    return np.array(
        [
            (found[pair]["link_probability"] - p) / np.hypot(found[pair]["mc_error"], FLOOR)
            for pair, p in exact.items()
        ]
    )


@pytest.fixture(scope="module")
def problems():
    return [random_files(np.random.default_rng([77, n]), prior) for n, prior in PROBLEMS]


@pytest.fixture(scope="module")
def folders(problems, tmp_path_factory):
    return [link_again(problem, tmp_path_factory.mktemp("problem")) for problem in problems]


def test_the_known_pairs_are_what_was_judged(problems, folders):
    for problem, folder in zip(problems, folders, strict=True):
        exact, *_ = problem.exact
        rows = pq.read_table(folder / "pairs.parquet").to_pylist()
        assert {(int(r["id_a"][1:]), int(r["id_b"][1:])) for r in rows} == set(exact)
        links = pq.read_table(folder / "links.parquet").to_pylist()
        sure = {(r["id_a"], r["id_b"]) for r in links if r["link_probability"] == 1}
        assert {(f"a{i}", f"b{j}") for i, j in problem.links} <= sure


def test_link_probabilities_given_the_labels(problems, folders):
    found = np.concatenate([errors(*each) for each in zip(problems, folders, strict=True)])
    assert len(found) > 100
    assert np.abs(found).max() < stats.t.isf(ALARM / 2 / len(found), BATCHES - 1)


def test_without_some_labels_they_are_others(problems, tmp_path):
    """Negative control: the links of one problem left out, and its non-links."""
    problem = next(p for p in problems if p.links)
    bound = stats.t.isf(ALARM / 2 / len(problem.exact[0]), BATCHES - 1)
    for number, pairs in enumerate((problem.links, problem.nonlinks)):
        (tmp_path / str(number)).mkdir()
        folder = link_again(problem, tmp_path / str(number), left_out=pairs)
        assert np.abs(errors(problem, folder)).max() > bound
