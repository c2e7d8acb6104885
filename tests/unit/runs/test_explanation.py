"""Why a pair is linked or not: the sentences by hand, the numbers against the run's tables."""

import csv
import dataclasses
import json
import math
import re
import shutil

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

import bayeslink as bl
from bayeslink.cli import main
from bayeslink.errors import InputError
from bayeslink.runs.explanation import TOGETHER, explain_pair

FIELDS = [
    *(bl.levenshtein(name, m_prior=(1, 2, 5, 10)) for name in ("gname", "fname")),
    *(bl.exact(name, m_prior=(1, 10)) for name in ("sex", "occup")),
]
SHORT = {"draws": 100, "tune": 50}

# --- the sentences ----------------------------------------------------------------------------

PARAMETERS = pa.table(
    {
        "field": ["name", "name", "age", "age"],
        "level": [1, 2, 1, 2],
        "label": ["different", "equal", "different", "equal"],
        "m": [0.125, 0.875, 0.25, 0.75],
        "u": [0.96875, 0.03125, 0.5, 0.5],
        "match_weight": [-2.95, 4.81, -1.0, 0.58],
    }
)
CANDIDATES = pa.table(
    {
        "id_a": ["A1", "A1", "A1", "A1", "A2", "A3"],
        "id_b": ["B1", "B2", "B3", "B4", "B1", "B9"],
        "link_probability": [0.6, 0.25, 0.0003, 0.0001, 0.125, 0.9],
        "match_weight": [4.81, 4.81, 1.0, 0.5, 3.31, 4.81],
    }
)
LINKS = pa.table(
    {
        "id_a": ["A1", "A7", "A3"],
        "id_b": ["B1", "B7", "B9"],
        "link_probability": [0.6, 1.0, 0.9],
        "match_weight": [4.81, 4.81, 4.81],
        "decision": ["link", "link", "review"],
    }
)
WEIGHTS = """
  name  equal    m 0.875, u 0.0312  +4.8  Ann | Ann
  age   missing                      0.0

The weights sum to +4.8 bits; a link costs 2.0 under the prior, \
which leaves odds of 7.01 to 1 before rivals."""


def explain(id_a, id_b, name=2, age=0, sampled=True, restricted=True, values=None):
    """From the tables above; `name` and `age` are levels."""
    drop = () if sampled else ("link_probability",)
    return explain_pair(
        CANDIDATES.drop_columns([*drop]),
        LINKS,
        PARAMETERS,
        id_a,
        id_b,
        levels={"name": name, "age": age},
        needed=2.0,
        w0=1.5 if sampled and restricted else None,
        values=values,
    )


def test_a_candidate_and_its_rivals():
    assert str(explain("A1", "B1", values={"name": ("Ann", "Ann")})) == (
        "A1 (A) and B1 (B): link. Probability of a link: 0.600.\n"
        + WEIGHTS
        + """
A1 (A) otherwise:
  with B2: 0.250 (+4.8 bits)
  with any of 2 more: 0.000
  with nobody: 0.150
B1 (B) otherwise:
  with A2: 0.125 (+3.3 bits)
  with nobody: 0.275"""
    )


def test_a_pair_to_review():
    assert str(explain("A3", "B9")).startswith(
        "A3 (A) and B9 (B): review. Probability of a link: 0.900."
    )


def test_a_candidate_that_is_not_linked():
    found = explain("A2", "B1")
    assert found.decision == "no link"
    assert str(found).startswith("A2 (A) and B1 (B): no link. Probability of a link: 0.125.")
    assert [r.id for r in found.rivals_b] == ["A1"]


def test_what_the_fields_say_together():
    """The weight beyond those of the fields has a row of its own, and only where there is one."""
    found = explain("A2", "B1", values={"name": ("Ann", "Anne")})
    assert [e.field for e in found.evidence] == ["name", "age", TOGETHER]
    assert found.evidence[-1].bits == pytest.approx(-1.5)
    assert found.bits == pytest.approx(3.31)
    assert "  all fields together  beyond each alone                     −1.5\n" in str(found)
    assert "The weights sum to +3.3 bits" in str(found)
    assert TOGETHER not in str(explain("A1", "B1"))


def test_a_pair_that_was_hardly_ever_linked():
    found = explain("A2", "B9", name=1, age=1, restricted=False)
    assert (found.probability, found.is_candidate, found.decision) == (0, False, "no link")
    assert "a link in hardly any draw, or it is known to be no link" in str(found)
    assert "w0" not in str(found)
    assert "otherwise" not in str(found)


def test_a_pair_set_aside():
    found = explain("A2", "B9", name=1, age=1)
    assert (found.probability, found.is_candidate, found.decision) == (0, False, "no link")
    assert found.bits == pytest.approx(-3.95)
    text = str(found)
    assert "set aside before sampling, as its weight is not above w0 = 1.5 bits or" in text
    assert "leaves odds of 1 to 61.8 before rivals" in text
    assert "otherwise" not in text


def test_a_known_link():
    found = explain("A7", "B7")
    assert found.known == ("A7", "B7")
    assert found.probability == 1
    assert str(found).startswith("A7 (A) and B7 (B): link. It is known to be a link.\n")
    assert "otherwise" not in str(found)


@pytest.mark.parametrize(("id_a", "id_b"), [("A7", "B1"), ("A1", "B7")])
def test_a_rival_of_a_known_link(id_a, id_b):
    found = explain(id_a, id_b)
    assert found.probability == 0
    assert str(found).startswith(
        f"{id_a} (A) and {id_b} (B): no link. A7 (A) and B7 (B) are known to be a link.\n"
    )


def test_a_point_estimate():
    for pair, decision in ((("A1", "B1"), "link"), (("A2", "B2"), "no link")):
        found = explain(*pair, sampled=False)
        assert found.probability is None
        assert f"{decision}. Point estimate: no probability was worked out." in str(found)
        assert "otherwise" not in str(found)


# --- the numbers ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explanation")
    files = bl.simulate(120, overlap=0.5, errors=3, seed=3)
    bl.write_simulation(files, folder / "files")
    return folder


@pytest.fixture(scope="module")
def run(folder):
    loss = bl.Loss(reject=0.2)
    run = bl.link(*paths(folder), FIELDS, loss=loss, w0=0.0, **SHORT)
    run.save(folder / "run")
    return run


def paths(folder):
    return [str(folder / "files" / name) for name in ("a.csv", "b.csv")]


@pytest.mark.parametrize("structure", ["dependent", "independent"])
def test_weights_of_a_saved_run_are_those_of_the_run(folder, tmp_path, structure):
    """Of any comparison vector."""
    run = bl.link(*paths(folder), FIELDS, structure=structure, point=True)
    run.save(tmp_path / "out")
    data = json.loads((tmp_path / "out" / "run.json").read_text())["structure"]
    assert data["name"] == structure
    assert ("wrong_odds" in data) == (structure == "dependent")
    found = bl.open_run(tmp_path / "out").parameters
    sizes = [f.n_levels + 1 for f in run.pairs.fields]
    levels = np.stack(np.unravel_index(np.arange(np.prod(sizes)), sizes), 1).astype(np.uint8)
    expected = run.parameters.weight_of(levels)
    np.testing.assert_array_equal(found.weight_of(levels), expected)


def record_of(folder, side, name):
    with open(paths(folder)[side], encoding="utf-8") as file:
        return next(row for row in csv.DictReader(file) if row["id"] == name)


def cli(*arguments):
    return CliRunner().invoke(main, ["explain", *map(str, arguments)])


def a_pair_set_aside(run):
    """Two records that are in candidate pairs, but not with each other."""
    table = run.candidates()
    listed = set(zip(table["id_a"].to_pylist(), table["id_b"].to_pylist(), strict=True))
    rows, columns = (sorted({pair[side] for pair in listed}) for side in (0, 1))
    return next((a, b) for a in rows for b in columns if (a, b) not in listed)


def test_numbers_of_every_candidate(run):
    rows = run.candidates().to_pylist()
    decided = {(r["id_a"], r["id_b"]): r["decision"] for r in run.table.to_pylist()}
    weights = run.parameters.log_weights / math.log(2)
    assert set(decided.values()) == {"link", "review"}
    together = 0
    for row in rows[::4]:
        found = run.explain(row["id_a"], row["id_b"])
        assert found.probability == row["link_probability"]
        assert found.bits == pytest.approx(row["match_weight"])
        assert found.bits == pytest.approx(sum(e.bits for e in found.evidence), abs=0.005)
        together += len(found.evidence) > len(FIELDS)
        for j, (f, e) in enumerate(zip(run.pairs.fields, found.evidence, strict=False)):
            level = row[f"gamma_{f.name}"]
            assert e.field == f.name
            assert e.bits == pytest.approx(weights[j, level])
            assert e.level == ("missing", *f.labels)[level]
            assert (e.m is None) == (e.u is None) == (level == 0)
        assert found.decision == decided.get((row["id_a"], row["id_b"]), "no link")
        assert found.needed == pytest.approx(run.posterior.theta / math.log(2))
        sides = ("id_a", "id_b", found.rivals_a), ("id_b", "id_a", found.rivals_b)
        for own, other, rivals in sides:
            expected = {r[other]: r["link_probability"] for r in rows if r[own] == row[own]}
            del expected[row[other]]
            assert {r.id: r.probability for r in rivals} == expected
    assert together > 10


def test_own_rivals_and_nobody_sum_to_one(run):
    rows = [r for r in run.candidates().to_pylist() if 0.2 < r["link_probability"] < 0.8]
    assert len(rows) > 10
    for row in rows:
        found = run.explain(row["id_a"], row["id_b"])
        shown = re.findall(r"with .*: (\d\.\d{3})", str(found))
        assert len(shown) >= 2
        assert 2 * found.probability + sum(map(float, shown)) == pytest.approx(2, abs=0.01)
        free = [float(x) for x in re.findall(r"with nobody: (\d\.\d{3})", str(found))]
        for rivals, nobody in zip((found.rivals_a, found.rivals_b), free, strict=True):
            own = found.probability + sum(r.probability for r in rivals)
            assert own + nobody == pytest.approx(1, abs=0.00051)


def assert_same(found, expected):
    """Two explanations as JSON has them, without the records' cells; weights to a millionth."""
    found, expected = (json.loads(json.dumps(x)) for x in (found, expected))
    for x in (found, expected):
        x["evidence"] = [{**e, "values": None} for e in x["evidence"]]
    bits = [[x.pop("bits"), *(e.pop("bits") for e in x["evidence"])] for x in (found, expected)]
    assert bits[0] == pytest.approx(bits[1], abs=1e-6)
    assert found == expected


def test_the_command_says_the_same(folder, run):
    rows = run.candidates().to_pylist()
    for pair in [*((r["id_a"], r["id_b"]) for r in rows[::20]), a_pair_set_aside(run)]:
        done = cli(folder / "run", *pair, "--json")
        assert done.exit_code == 0, done.output
        expected = dataclasses.asdict(run.explain(*pair))
        assert_same(json.loads(done.stdout), expected)
        first_line = str(run.explain(*pair)).splitlines()[0]
        assert cli(folder / "run", *pair).stdout.splitlines()[0] == first_line


@pytest.mark.parametrize("which", ["linked", "set aside"])
def test_cells_are_shown_where_the_files_are_read(folder, run, which):
    linked = run.table.to_pylist()[0]
    pair = a_pair_set_aside(run) if which == "set aside" else (linked["id_a"], linked["id_b"])
    records = [record_of(folder, side, name) for side, name in enumerate(pair)]
    cells = [[record[f.name] or "–" for record in records] for f in FIELDS]
    shown = json.loads(cli(folder / "run", *pair, "--json").stdout)["evidence"]
    said = [dataclasses.asdict(e) for e in run.explain(*pair).evidence]
    for evidence in (shown, said):
        assert [[*e["values"]] for e in evidence[: len(FIELDS)]] == cells
        assert [e["field"] for e in evidence[len(FIELDS) :]] in ([], [TOGETHER])


def test_a_point_run(folder):
    run = bl.link(*paths(folder), FIELDS, point=True)
    run.save(folder / "point")
    row = run.table.to_pylist()[0]
    for pair in ((row["id_a"], row["id_b"]), (row["id_a"], "B000001")):
        found = run.explain(*pair)
        assert found.probability is None
        assert "Point estimate" in str(found)
        done = cli(folder / "point", *pair, "--json")
        assert_same(json.loads(done.stdout), dataclasses.asdict(found))
    assert run.explain(row["id_a"], row["id_b"]).bits == pytest.approx(row["match_weight"])


def test_known_pairs(folder, run):
    likely = [r for r in run.candidates().to_pylist() if r["link_probability"] > 0.9]
    yes, no = ((r["id_a"], r["id_b"]) for r in likely[:2])
    known = bl.link(*paths(folder), FIELDS, w0=0.0, known_links=[yes], known_nonlinks=[no], **SHORT)
    known.save(folder / "known")
    for pair, words in (
        (yes, "It is known to be a link."),
        (no, "or it is known to be no link"),
        ((yes[0], no[1]), f"{yes[0]} (A) and {yes[1]} (B) are known to be a link."),
    ):
        assert words in str(known.explain(*pair))
        assert words in cli(folder / "known", *pair).stdout


# --- what cannot be explained -----------------------------------------------------------------


def test_unknown_ids(folder, run):
    names = [record_of(folder, 0, "A000001")["fname"], record_of(folder, 1, "B000001")["fname"]]
    assert all(names)
    for pair in (("A999999", "B000001"), ("A000001", "nobody")):
        with pytest.raises(InputError, match=r"1 ids .* not in") as caught:
            run.explain(*pair)
        done = cli(folder / "run", *pair)
        assert done.exit_code == 3
        assert str(caught.value) in done.stderr
        assert not any(name in done.stderr for name in names)


def test_files_that_have_changed(folder, run):
    """The tables are enough for a candidate; for any other pair the files must be as they were."""
    row, other = run.candidates().to_pylist()[0], a_pair_set_aside(run)
    a = folder / "files" / "a.csv"
    before = a.read_bytes()
    try:
        a.write_bytes(before.replace(b"A000001,", b"A900001,"))
        done = cli(folder / "run", *other)
        assert (done.exit_code, "changed since the run" in done.stderr) == (3, True)
        a.unlink()
        assert cli(folder / "run", *other).exit_code == 3
        assert cli(folder / "run", row["id_a"], row["id_b"]).exit_code == 0
    finally:
        a.write_bytes(before)
    assert cli(folder / "run", *other).exit_code == 0


def test_tables_that_came_from_python(folder, run, tmp_path):
    files = bl.simulate(120, overlap=0.5, errors=3, seed=3)
    bl.link(files.a, files.b, FIELDS, w0=0.0, **SHORT).save(tmp_path / "run")
    done = cli(tmp_path / "run", *a_pair_set_aside(run))
    assert done.exit_code == 3
    assert "Give it: --a" in done.stderr


def test_a_run_of_an_earlier_version(folder, run, tmp_path):
    shutil.copytree(folder / "run", tmp_path / "run")
    summary = json.loads((tmp_path / "run" / "run.json").read_text())
    del summary["format"], summary["path"]
    (tmp_path / "run" / "run.json").write_text(json.dumps(summary))
    done = cli(tmp_path / "run", *a_pair_set_aside(run))
    assert done.exit_code == 3
    assert "earlier version" in done.stderr


def test_no_run_directory(tmp_path):
    done = cli(tmp_path, "A1", "B1")
    assert done.exit_code == 3
    assert "bayeslink link -o" in done.stderr
