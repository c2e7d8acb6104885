"""The memory budget: what it parses, what it puts into files, when it refuses."""

import gc
import subprocess
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import bayeslink as bl
from bayeslink import memory
from bayeslink.cli import main
from bayeslink.comparing import dictionaries
from bayeslink.engines import joining
from bayeslink.errors import OutputError, SettingsError
from bayeslink.memory import Memory, machine_memory, parse_memory, peak_memory


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("8GB", 8 * 10**9),
        ("8g", 8 * 10**9),
        ("500 MB", 5 * 10**8),
        ("1.5GiB", 3 * 2**29),
        ("123", 123),
        (10**9, 10**9),
        (None, None),
    ],
)
def test_sizes(text, size):
    assert parse_memory(text) == size


@pytest.mark.parametrize("text", ["", "GB", "8XB", "-1GB", "8 GB 2", "ib", "5iB", "nan"])
def test_what_is_no_size(text):
    with pytest.raises(SettingsError, match="8GB"):
        parse_memory(text)


def test_most_of_the_machine_unless_told():
    assert Memory().budget == int(0.8 * machine_memory())
    assert 2**28 < machine_memory() < 2**50
    assert peak_memory() > 10**7


def test_large_arrays_go_to_files_when_the_budget_is_used_up():
    room = Memory(memory.PROGRAM + 20 * 2**20)  # 7 MiB for arrays
    first, second, third = (room.empty(3 * 2**20, np.uint8) for _ in range(3))
    assert room.in_use == 6 * 2**20
    assert room.spilled == 3 * 2**20
    third[:] = np.arange(len(third)).astype(np.uint8)
    np.testing.assert_array_equal(third[:300], np.arange(300).astype(np.uint8))
    del first, second
    gc.collect()
    assert room.in_use == 0
    assert room.empty(2**20, np.uint8).base is None  # there is room again
    assert room.spilled == 3 * 2**20


def test_a_view_keeps_its_array_counted():
    room = Memory(memory.PROGRAM + 20 * 2**20)
    view = room.empty(2**20, np.int32)[5:10]
    gc.collect()
    assert room.in_use == 4 * 2**20
    del view
    gc.collect()
    assert room.in_use == 0


def test_small_arrays_are_never_spilled():
    room = Memory(1)
    assert room.empty(100, np.int64).base is None
    assert room.empty(0, np.int64).shape == (0,)
    assert (room.in_use, room.spilled) == (0, 0)


@pytest.mark.parametrize("budget", [1, 10**10])
def test_concatenate(budget):
    parts = [np.arange(n, dtype=np.int32) for n in (3, 0, 400_000, 1)]
    joined = Memory(budget).concatenate(parts, np.int32)
    np.testing.assert_array_equal(joined, np.concatenate(parts))
    assert joined.dtype == np.int32
    assert joined.flags.writeable


def test_what_must_stay_in_memory_is_refused_beyond_the_budget():
    room = Memory(10**9)
    assert room.most_listed(7) > 10**6
    with pytest.raises(SettingsError, match=r"memory budget is 1 GB.*--memory"):
        room.take("the records", 10**9)


def test_no_room_on_the_disk(monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(memory.os, "posix_fallocate", full)
    with pytest.raises(OutputError, match="TMPDIR"):
        Memory(1).empty(2**21, np.uint8)


def test_an_array_of_any_shape_is_kept():
    table = np.arange(2**20, dtype=np.int32).reshape(-1, 4)
    roomy, tight = Memory(10**10), Memory(1)
    assert roomy.keep(table) is table
    copy = tight.keep(table)
    assert tight.spilled == table.nbytes
    np.testing.assert_array_equal(copy, table)


# --- a budget changes no result -----------------------------------------------------------------


def test_a_run_is_the_same_within_a_budget_that_cannot_hold_its_lists(monkeypatch):
    """w0 is chosen, and what was set aside worked out, from lists in files where need be."""
    monkeypatch.setattr(memory, "_LISTED", 5e-5)
    monkeypatch.setattr(memory, "_ARRAYS", 1e-7)
    monkeypatch.setattr(memory, "_LARGE", 1000)
    monkeypatch.setattr(joining, "_SORTED", 10_000)
    made = bl.simulate(700, overlap=0.5, errors=2, seed=4)
    fields = [
        bl.levenshtein("gname"),
        bl.levenshtein("fname"),
        bl.date("dob", cuts=(0, 30)),
        bl.exact("sex"),
    ]
    runs = [
        bl.link(made.a, made.b, fields, draws=100, tune=50, memory=budget)
        for budget in ("2GB", "1000000GB")
    ]
    tight, roomy = (getattr(run.pairs, "inner", run.pairs).memory for run in runs)
    assert tight.most_listed(4) < runs[0].blocks.n_candidates
    assert roomy.most_listed(4) > runs[0].pairs.n_pairs
    assert tight.spilled > 10**6 > roomy.spilled
    assert runs[0].fit.linked.a.base is not None  # in a file, as the prices are
    assert runs[0].fit.assignment.price_a.base is not None
    one, two = (run.summary() for run in runs)
    for told in (one, two):
        del told["memory"], told["seconds"]
    assert one == two
    assert runs[0].table == runs[1].table
    for name in ("candidates", "known"):
        x, y = (getattr(run.blocks, name) for run in runs)
        assert [v.tobytes() for v in (x.a, x.b, x.levels)] == [
            v.tobytes() for v in (y.a, y.b, y.levels)
        ]
    assert runs[0].posterior.probability.tobytes() == runs[1].posterior.probability.tobytes()
    assert runs[0].pairs.pattern_counts().counts.tolist() == (
        runs[1].pairs.pattern_counts().counts.tolist()
    )


def test_what_was_set_aside_is_told_whatever_can_be_listed(monkeypatch):
    """Where even files may not hold the list, less of it is counted and more is estimated."""
    made = bl.simulate(300, overlap=0.5, errors=2, seed=4)
    fields = [
        bl.levenshtein("gname"),
        bl.levenshtein("fname"),
        bl.date("dob", cuts=(0, 30)),
        bl.exact("sex"),
    ]
    pairs = bl.compare(made.a, made.b, fields)
    fit = bl.fit_penalized(pairs)
    whole = bl.posthoc_blocks(pairs, fit, fit.theta - 3).set_aside()
    found = []
    for most in (40_000, 4000, 400):
        monkeypatch.setattr(joining, "MAX_IN_FILES", most)
        found.append(bl.posthoc_blocks(pairs, fit, fit.theta - 3).set_aside())
    assert all(0.3 * whole < x < 3 * whole for x in found)
    assert len(set(found)) > 1
    monkeypatch.setattr(joining, "MAX_IN_FILES", 2000)
    blocks = bl.posthoc_blocks(pairs, fit)
    assert blocks.why == "all pairs that are listed"
    assert blocks.n_candidates <= 2000
    assert blocks.w0 < fit.theta - 2


@pytest.mark.parametrize(
    "field", [bl.date("dob"), bl.levenshtein("fname", bands=(0.01, 0.001)), bl.levenshtein("gname")]
)
def test_a_table_split_in_pieces_is_the_table_split_at_once(monkeypatch, field):
    made = bl.simulate(400, overlap=0.5, errors=2, seed=4)
    whole = bl.compare(made.a, made.b, [field])
    assert len(whole.tables.levels) > 3000 or field.name != "dob"
    for name, value in (("_PIECE", 1000), ("_COMPILED", 0)):
        monkeypatch.setattr(dictionaries, name, value)
        parts = bl.compare(made.a, made.b, [field])
        for table in ("indptr", "slots", "levels"):
            one, other = (getattr(pairs.tables, table) for pairs in (whole, parts))
            np.testing.assert_array_equal(one, other)
        assert whole.fields == parts.fields


def limited(limit, folder, *words):
    """A command within a limit on address space."""
    import resource

    return subprocess.run(
        [sys.executable, "-m", "bayeslink", *words],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
        cwd=folder, capture_output=True, text=True, timeout=60,
    )  # fmt: skip


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such limit")
@pytest.mark.parametrize("limit", [600_000_000, 1_500_000_000])
def test_a_limit_on_address_space_is_told_before_a_library_hangs(limit, tmp_path):
    (tmp_path / "a.csv").write_text("id,name\n1,x\n")
    done = limited(limit, tmp_path, "link", "a.csv", "a.csv", "-o", "out")
    assert (done.returncode, "ulimit -v" in done.stderr) == (4, True)
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such limit")
@pytest.mark.parametrize(
    "words",
    ["--version", "-v --version", "--help", "comparisons date", "completion bash"]
    + [f"{command} --help" for command in sorted(main.commands)],
)
def test_what_loads_no_library_needs_no_address_space(words, tmp_path):
    done = limited(600_000_000, tmp_path, *words.split())
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


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
