"""The run directory: its tables hold the run, and its link.toml repeats it to the byte."""

import json
import math
import tomllib

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import bayeslink as bl
from bayeslink import memory
from bayeslink.cli import main
from bayeslink.linkage import posthoc
from bayeslink.sampling import sampler

FIELDS = [
    *(bl.levenshtein(name, m_prior=(1, 2, 5, 10)) for name in ("gname", "fname")),
    *(bl.exact(name, m_prior=(1, 10)) for name in ("sex", "occup")),
]
ON = [f"--on={f.name}:{f.kind}:m_prior={','.join(map(str, f.m_prior))}" for f in FIELDS]
SHORT = {"draws": 50, "tune": 20, "w0": 0.0}
TABLES = ("links", "pairs", "draws", "link_draws", "parameters")
LINKED = ("linked", "unlinked_a", "unlinked_b")


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    bl.write_simulation(bl.simulate(120, overlap=0.5, errors=3, seed=3), folder, force=True)
    return [str(folder / name) for name in ("a.csv", "b.csv")]


@pytest.fixture(scope="module")
def run(paths):
    return bl.link(*paths, FIELDS, **SHORT)


@pytest.fixture(scope="module")
def folder(run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "out"
    run.save(folder)
    return folder


def link(*arguments):
    done = CliRunner().invoke(main, ["link", *map(str, arguments)])
    assert done.exit_code == 0, done.output


def read(folder, name):
    return pq.read_table(folder / f"{name}.parquet")


def content(folder):
    """Every file's bytes; run.json without what differs between any two runs."""
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    summary = json.loads(files.pop("run.json"))
    del summary["created"], summary["seconds"], summary["memory"]
    return {**files, "run.json": summary}


# --- tables -----------------------------------------------------------------------------------


def test_every_candidate_is_in_pairs(run, folder):
    pairs, post = read(folder, "pairs"), run.posterior
    assert pairs.num_rows == post.blocks.n_candidates > run.blocks.n_candidates
    assert pairs["block"].null_count == post.blocks.n_candidates - run.blocks.n_candidates
    assert pairs.equals(post.link_probabilities())
    linked = run.table["link_probability"].to_pylist()
    assert pairs["link_probability"].to_pylist()[: len(linked)] == sorted(linked, reverse=True)


def test_draws_are_the_posteriors(run, folder):
    draws, post = read(folder, "draws"), run.posterior
    assert draws.column_names[:4] == ["chain", "draw", "links", "log_posterior"]
    shape = post.n_links.shape
    assert draws["chain"].to_numpy().reshape(shape).tolist() == [[c] * 50 for c in range(4)]
    assert draws["draw"].to_numpy().reshape(shape).tolist() == [list(range(50))] * 4
    for name, values in (("links", post.n_links), ("log_posterior", post.log_posterior)):
        np.testing.assert_array_equal(draws[name].to_numpy().reshape(shape), values)
    for letter, values in (("m", post.m), ("u", post.u)):
        for j, f in enumerate(run.pairs.fields):
            for h in range(1, f.n_levels + 1):
                column = draws[f"{letter}[{f.name}, {h}]"].to_numpy()
                np.testing.assert_array_equal(column.reshape(shape), values[:, :, j, h])


@pytest.mark.parametrize("kept_links", [10**9, 2000])
def test_links_of_every_kept_draw_come_back(paths, tmp_path, monkeypatch, kept_links):
    """Unrolling the runs of draws gives each kept state, under its number in draws.parquet."""
    monkeypatch.setattr(sampler, "KEPT_LINKS", kept_links)
    run = bl.link(*paths, FIELDS, **SHORT)
    run.save(tmp_path / "out")
    post, pairs = run.posterior, read(tmp_path / "out", "pairs")
    step = json.loads((tmp_path / "out" / "run.json").read_text())["kept_every"]
    assert step == post.kept_every
    assert (step > 1) == (kept_links == 2000)
    numbers = [*range(step - 1, 50, step), *([49] if 50 % step else [])]
    states = {(chain, draw): set() for chain in range(4) for draw in numbers}
    for row in read(tmp_path / "out", "link_draws").to_pylist():
        assert {row["first"], row["last"]} <= set(numbers)
        for draw in numbers:
            if row["first"] <= draw <= row["last"]:
                states[row["chain"], draw].add(row["pair"])
    ids = list(zip(pairs["id_a"].to_pylist(), pairs["id_b"].to_pylist(), strict=True))
    candidates = post.blocks.candidates
    rows = candidates.a, candidates.b
    names = [run.pairs.ids(side, rows[side]).to_pylist() for side in (0, 1)]
    for chain, kept in enumerate(post.kept):
        assert len(kept) == len(numbers)
        for draw, state in zip(numbers, kept, strict=True):
            expected = {(names[0][k], names[1][k]) for k in state}
            assert {ids[row] for row in states[chain, draw]} == expected
            assert len(expected) == post.n_links[chain, draw]


def test_link_draws_are_stored_as_runs(folder):
    table = read(folder, "link_draws")
    pair, chain, first, last = (table[name].to_numpy() for name in table.column_names)
    order = np.lexsort((first, chain, pair))
    np.testing.assert_array_equal(order, np.arange(len(pair)))
    same = (np.diff(pair) == 0) & (np.diff(chain) == 0)
    assert (first[1:][same] > last[:-1][same] + 1).all()  # no run could be longer
    assert (first <= last).all()


def test_parameters_have_intervals(run, folder):
    rows = {(r["field"], r["level"]): r for r in read(folder, "parameters").to_pylist()}
    post = run.posterior
    fields = run.pairs.fields
    assert list(rows) == [(f.name, h) for f in fields for h in range(1, f.n_levels + 1)]
    for j, f in enumerate(fields):
        for h, label in enumerate(f.labels, 1):
            row = rows[f.name, h]
            assert row["label"] == label
            for letter, draws in (("m", post.m[:, :, j, h]), ("u", post.u[:, :, j, h])):
                low, high = np.quantile(draws, [0.025, 0.975])
                found = row[f"{letter}_lower"], row[letter], row[f"{letter}_upper"]
                assert found == pytest.approx((low, draws.mean(), high))
            assert row["match_weight"] == pytest.approx(math.log2(row["m"] / row["u"]))


def test_a_point_run_has_no_draws(paths, tmp_path):
    run = bl.link(*paths, FIELDS, point=True)
    run.save(tmp_path / "out", linked=False)
    names = {path.name for path in (tmp_path / "out").iterdir()}
    tables = {"links.parquet", "links.csv", "parameters.parquet"}
    assert names == tables | {"run.json", "link.toml", "model.json", "state.npz"}
    for row in read(tmp_path / "out", "parameters").to_pylist():
        assert row["m_lower"] is row["m_upper"] is row["u_lower"] is row["u_upper"] is None
    assert read(tmp_path / "out", "links")["link_probability"].null_count == run.n_links > 0
    assert "w0" not in json.loads((tmp_path / "out" / "run.json").read_text())


def test_a_run_without_candidates(paths, tmp_path):
    run = bl.link(*paths, FIELDS, **SHORT | {"w0": 1000.0}, restricted=True)
    run.save(tmp_path / "out")
    rows = {name: read(tmp_path / "out", name).num_rows for name in TABLES}
    n_levels = sum(f.n_levels for f in run.pairs.fields)
    assert rows == {"links": 0, "pairs": 0, "link_draws": 0, "draws": 200, "parameters": n_levels}
    assert "the linkage is empty" in " ".join(run.warnings)


def test_run_json_tells_the_model_and_whether_it_fits(run, folder):
    summary = json.loads((folder / "run.json").read_text())
    found, fit = summary["structure"], summary["fit"]
    assert found["name"] == "dependent"
    assert found["certain_links"] > 0
    n = len(FIELDS)
    assert [len(law) for law in found["wrong_fields"]] == [*range(n + 1, 0, -1)]
    assert [sum(law) for law in found["wrong_fields"]] == pytest.approx([1] * (n + 1))
    assert list(found["wrong_odds"]) == [f.name for f in FIELDS]
    assert fit["fits"] == (not fit["warnings"])
    assert set(fit["warnings"]) <= set(summary["warnings"])
    bands = fit["bands"]
    assert [b["high"] for b in bands] == [b["low"] for b in bands[1:]] + [None]
    assert sum(b["observed"] for b in bands) >= len(run.links)
    assert sum(b["from_links"] for b in bands) == pytest.approx(summary["links_mean"], rel=0.1)
    assert (summary["restricted"], summary["w0"]) == (False, 0.0)
    assert summary["listed"] >= summary["candidates"] == run.blocks.n_candidates
    mean = run.posterior.probability[: run.blocks.n_candidates].sum() + summary["links_elsewhere"]
    assert summary["links_mean"] == pytest.approx(mean, rel=0.02)  # draws, and their expectations


def test_records_to_review_are_listed_with_all_their_candidates(paths, tmp_path):
    run = bl.link(*paths, FIELDS, **SHORT, loss=bl.Loss(reject=0.15))
    run.save(tmp_path / "out")
    links, pairs = (read(tmp_path / "out", name).to_pylist() for name in ("links", "pairs"))
    review = [row for row in links if row["decision"] == "review"]
    records = {row["id_b"] for row in review}
    assert len(records) == json.loads((tmp_path / "out" / "run.json").read_text())["review_records"]
    assert len(review) > len(records) > 0

    def ids(rows):
        return [(row["id_a"], row["id_b"], row["link_probability"]) for row in rows]

    assert sorted(ids(review)) == sorted(ids(row for row in pairs if row["id_b"] in records))
    linked = [row for row in links if row["decision"] == "link"]
    assert links == [*linked, *review]
    assert not records & {row["id_b"] for row in linked}
    for row in pairs:  # decided wherever that is cheaper than a review
        if row["id_b"] not in records and row["link_probability"] >= 0.5:
            assert row["link_probability"] > 1 - 0.15
    assert pyarrow.csv.read_csv(tmp_path / "out" / "links.csv").num_rows == len(links)


# --- run it again -----------------------------------------------------------------------------

AGAIN = {
    "zeros": {"w0": 0.0, "tune": 0, "seed": 0},
    "every pair": {"w0": -math.inf, "draws": 10, "chains": 2},
    "review": {"loss": bl.Loss(false_link=3.5, wrong_link=4, reject=0.25)},
    "a balanced loss": {"loss": bl.Loss()},
    "point": {"point": True},
    "penalty": {"theta": 6.5, "w0": None},
    "overlap": {"prior": bl.Overlap(2.5, 7), "seed": 12},
    "the paper's model": {"structure": "independent"},
    "restricted": {"restricted": True, "w0": 2.0},
    "blocking key": {"block": ["sex"], "w0": -1.25},
    "no id": {"id": None, "w0": 1.0},
    "NumPy's numbers": {"w0": np.float64(1), "seed": np.int64(3), "tune": np.int64(9)},
}


@pytest.fixture(scope="module")
def runs(paths, tmp_path_factory):
    """The run directory of each of the settings above."""
    folder = tmp_path_factory.mktemp("runs")
    for case, settings in AGAIN.items():
        bl.link(*paths, FIELDS, **{"draws": 30, "tune": 10, **settings}).save(folder / case)
    return folder


@pytest.mark.parametrize("case", AGAIN)
def test_link_toml_repeats_the_run_to_the_byte(runs, case):
    again = runs / f"{case} again"  # beside it: from there, paths are the same
    link("--config", runs / case / "link.toml", "-o", again)
    assert content(runs / case) == content(again)
    summary = (runs / case / "run.json").read_text()
    json.loads(summary, parse_constant=pytest.fail)  # no Infinity, which is not JSON
    written = tomllib.loads((runs / case / "link.toml").read_text())
    for key, value in AGAIN[case].items():
        if isinstance(value, (int, float, str)):
            assert written[key] == value


def test_these_settings_matter(runs):
    """Else the test above could not fail."""
    links = {(runs / case / "links.parquet").read_bytes() for case in AGAIN}
    assert len(links) == len(AGAIN)


def test_one_thread_or_two_write_the_same_files(paths, tmp_path):
    flags = [*paths, *ON, "--draws", 60, "--tune", 20, "--reject", 0.1]
    for n in (1, 2):
        link(*flags, "--threads", n, "-o", tmp_path / str(n))
    one, two = (content(tmp_path / str(n)) for n in (1, 2))
    linked = {f"{n}.{end}" for n in LINKED for end in ("csv", "parquet")}
    others = {"links.csv", "link.toml", "run.json", "model.json", "state.npz", "reach.parquet"}
    assert {*one} == {f"{t}.parquet" for t in TABLES} | linked | others
    assert one == two
    link(*flags, "--threads", 2, "--seed", 2, "-o", tmp_path / "other")
    other = content(tmp_path / "other")
    differ = {name for name in one if one[name] != other[name]}
    assert differ >= {"pairs.parquet", "draws.parquet", "link_draws.parquet"}


def test_the_library_and_the_command_write_the_same_tables(paths, folder, tmp_path):
    link(*paths, *ON, "--w0", 0, "--draws", 50, "--tune", 20, "-o", tmp_path / "out")
    by_command, by_hand = content(tmp_path / "out"), content(folder)
    for name in ("links.csv", *(f"{t}.parquet" for t in TABLES)):
        assert by_command[name] == by_hand[name]


@pytest.mark.parametrize("a_record", [300, 5, 0])
def test_the_same_bytes_within_a_small_memory_budget(tmp_path, monkeypatch, a_record):
    """With arrays in files; refused where that is too much.

    Whether all pairs are listed, those worth it, or no more than must be.
    """
    monkeypatch.setattr(posthoc, "LISTED", 0)
    monkeypatch.setattr(posthoc, "LISTED_A_RECORD", a_record)
    files = bl.simulate(600, overlap=0.5, errors=3, seed=4)
    bl.write_simulation(files, tmp_path / "files")
    flags = [tmp_path / "files" / "a.csv", tmp_path / "files" / "b.csv", *ON, "--draws", 30]
    link(*flags, "-o", tmp_path / "plenty")
    plenty = json.loads((tmp_path / "plenty" / "run.json").read_text())["memory"]
    assert plenty["spilled"] == 0
    assert plenty["peak"] < plenty["budget"]
    monkeypatch.setattr(memory, "PROGRAM", 0)
    monkeypatch.setattr(memory, "_LARGE", 1000)
    monkeypatch.setattr(memory, "_ARRAYS", 0.01)
    link(*flags, "--memory", "1MB", "-o", tmp_path / "little")
    assert content(tmp_path / "little") == content(tmp_path / "plenty")
    little = json.loads((tmp_path / "little" / "run.json").read_text())["memory"]
    assert little["budget"] == 1_000_000
    assert little["spilled"] > 10_000
    done = CliRunner().invoke(
        main, ["link", *map(str, flags), "--memory", "100kB", "-o", str(tmp_path / "none")]
    )
    assert done.exit_code == 2
    assert "memory budget is 100 kB" in done.output
    assert not (tmp_path / "none").exists()


def test_the_plan_is_explained_when_asked_for(paths, tmp_path):
    flags = ["link", *paths, *ON, "--draws", "5", "--tune", "5", "--explain-plan", "-o"]
    told = CliRunner().invoke(main, [*flags, str(tmp_path / "told")]).output
    assert "never visited" in told or "every pair" in told
    assert "Memory: a budget of" in told
    summary = json.loads(CliRunner().invoke(main, [*flags, str(tmp_path / "j"), "--json"]).output)
    assert summary["plan"] in told
    assert summary["search"]["listed"] >= summary["candidates"]
    assert summary["search"]["visited"] <= summary["n_pairs"] * len(summary["search"]["joins"])
