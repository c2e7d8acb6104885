"""Two sets of clusters beside each other: by hand, by loops, of runs and of other tools."""

import itertools
import json

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

import bayeslink as bl
from bayeslink.cli import main
from bayeslink.runs.changes import changes

FEW = {"draws": 60, "tune": 60, "chains": 2}
BEFORE = {"1": "x", "2": "x", "3": "x", "4": "y", "5": "y", "6": "z"}
AFTER = {"2": "p", "3": "p", "4": "q", "5": "q", "6": "p", "7": "q"}


def table(of):
    return pa.table({"id": [*of], "entity_id": [*of.values()]})


def test_by_hand():
    found = changes(table(BEFORE), table(AFTER))
    assert (found.records, found.n_both) == ((6, 6), 5)  # 1 is gone, 7 is new
    assert (found.people, found.same) == ((3, 2), 1)  # 4 with 5
    # Before 23 45, after 23 26 36 45.
    assert (found.pairs_added, found.pairs_dropped, found.pairs_kept) == (2, 0, 2)
    assert found.people_interval == (None, None)
    assert str(found).startswith(
        "Records in both: 5. In the first only: 1; in the second only: 1.\n"
    )
    assert "2 added, 0 dropped, 2 kept" in str(found)


def test_random_clusters_equal_plain_loops():
    rng = np.random.default_rng(2)
    for _ in range(50):
        ids = [f"r{k}" for k in range(rng.integers(3, 12))]
        one, two = (
            {i: str(rng.integers(4)) for i in rng.permutation(ids)[: rng.integers(2, len(ids) + 1)]}
            for _ in range(2)
        )
        both = [i for i in one if i in two]
        if not both:
            continue
        found = changes(table(one), table(two))
        pairs = [*itertools.combinations(both, 2)]
        then, now = ({p for p in pairs if of[p[0]] == of[p[1]]} for of in (one, two))
        assert found.pairs_kept == len(then & now)
        assert found.pairs_added == len(now - then)
        assert found.pairs_dropped == len(then - now)
        sets = [{frozenset(j for j in both if of[j] == of[i]) for i in both} for of in (one, two)]
        assert found.people == tuple(map(len, sets))
        assert found.same == len(sets[0] & sets[1])


def test_clusters_without_a_record_in_common_are_refused():
    with pytest.raises(bl.InputError, match="no record is in both"):
        changes(table(BEFORE), table({"8": "a"}))


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """A run of people and its update; the files' folder."""
    folder = tmp_path_factory.mktemp("two")
    records = bl.simulate_duplicates(120, seed=4, sizes=[0.5, 0.3, 0.2]).a.to_pandas()
    records[:100].to_csv(folder / "a.csv", index=False)
    records[100:].to_csv(folder / "new.csv", index=False)
    bl.dedupe(folder / "a.csv", ["gname", "fname", "dob", "postcode"], **FEW).save(folder / "one")
    bl.update(folder / "one", folder / "new.csv", **FEW).save(folder / "two")
    return folder


def test_two_runs_by_their_directories_and_on_the_command_line(two):
    found = bl.changes(two / "one", str(two / "two"))
    one, later = bl.open_run(two / "one"), bl.open_run(two / "two")
    assert found == bl.changes(one, later)
    assert (found.records, found.n_both) == ((100, 120), 100)
    assert found.people_interval == (one.entities.interval(), later.entities.interval())
    call = CliRunner().invoke
    done = call(main, ["compare", str(two / "one"), str(two / "two")])
    assert done.stdout == f"{found}\n"
    assert "different files" in done.stderr
    told = json.loads(call(main, ["compare", *[str(two / "one")] * 2, "--json"]).stdout)
    assert (told["pairs_added"], told["pairs_dropped"], told["same_inputs"]) == (0, 0, True)


@pytest.mark.parametrize("style", ["splink", "dedupe", "zingg"])
def test_a_run_and_what_another_tool_wrote(two, style, tmp_path):
    run = bl.open_run(two / "two")
    bl.write_clusters(run, path := tmp_path / f"{style}.csv", style=style)
    found = bl.changes(path, two / "two")
    assert found.people == (found.same, found.same) == (run.summary()["clusters"],) * 2
    assert found.people_interval == (None, run.entities.interval())
    done = CliRunner().invoke(main, ["evaluate", str(two / "two"), "--truth", str(path)])
    assert done.exit_code == 0, done.output
    assert "precision 1.0000   recall 1.0000" in done.stdout


def test_people_are_not_compared_with_links(two):
    files = bl.simulate(40, seed=1)
    links = bl.link(files.a, files.b, ["gname", "fname", "dob"], **FEW)
    with pytest.raises(bl.InputError, match="id and entity_id"):
        bl.changes(links, two / "one")
