"""A run that is killed goes on where it was, and gives the bytes of one that was not."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from click.testing import CliRunner

import bayeslink as bl
from bayeslink import checkpoints, threads
from bayeslink.checkpoints import Checkpoints
from bayeslink.cli import main
from bayeslink.comparing import dictionaries
from bayeslink.engines import local
from bayeslink.linkage import penalized, posthoc
from bayeslink.runs import theta_path

ON = [
    "--on",
    "gname:levenshtein",
    "--on",
    "fname:levenshtein",
    "--on",
    "sex:exact",
    "--on",
    "occup:exact",
]
SHORT = ["--draws", "60", "--tune", "60", "--chains", "2"]
# The command line with a checkpoint at every turn, killed at the save of the given number:
# before it, within it (some bytes are written) or after it; or when the result is put in place.
# A run that is not killed says on its last line how many checkpoints it has written.
DRIVER = """
import atexit, os, signal, sys
from bayeslink import checkpoints, cli, threads
from bayeslink.checkpoints import Checkpoints
from bayeslink.runs import run_directory

moment, number, *words = sys.argv[1:]
checkpoints.EVERY = 1e9 if moment == "never" else 0.0
threads.SECONDS = 0.0  # a sweep at a time
count = 0
atexit.register(lambda: sys.stderr.write(f"{count}"))

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def save(self, name, arrays, save=Checkpoints.save):
    global count
    count += 1
    if moment == "before" and count >= int(number):
        die()
    save(self, name, arrays)
    if moment == "after" and count >= int(number):
        die()

def put(self, name, content, put=Checkpoints._put):
    if moment == "within" and name.endswith(".new") and count >= int(number):
        with open(self.folder / f"{name}~", "wb") as file:
            file.write(content[: len(content) // 2])
        die()
    put(self, name, content)

def in_place(new, held, force, put_in_place=run_directory._put_in_place):
    if moment == "before the rename":
        die()
    put_in_place(new, held, force)
    if moment == "after the rename":
        die()

Checkpoints.save, Checkpoints._put, run_directory._put_in_place = save, put, in_place
cli.main(words)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    bl.write_simulation(bl.simulate(120, errors=3, seed=1), folder / "files")
    done = drive(
        folder, "never", 0, "link", "files/a.csv", "files/b.csv", *ON, *SHORT, "-o", "whole"
    )
    assert done.returncode == 0, done.stderr
    return folder


def drive(folder, moment, number, *words):
    command = [sys.executable, "-c", DRIVER, moment, str(number), *map(str, words)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def content(out):
    files = {path.name: path.read_bytes() for path in out.iterdir()}
    summary = json.loads(files.pop("run.json"))
    for key in ("created", "seconds", "memory"):
        del summary[key]
    return {**files, "run.json": summary}


def kill_and_resume(folder, moment, number, name):
    words = ["link", "files/a.csv", "files/b.csv", *ON, *SHORT, "-o", name]
    killed = drive(folder, moment, number, *words)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    if moment == "after the rename":
        assert content(folder / name) == content(folder / "whole")
        return
    assert not (folder / name).exists()
    resumed = drive(folder / "files", "never", 0, "resume", folder / name)
    assert resumed.returncode == 0, resumed.stderr
    assert content(folder / name) == content(folder / "whole")
    assert not (folder / f".{name}.unfinished").exists()


@pytest.mark.skipif(os.name == "nt", reason="no SIGKILL there")
@pytest.mark.parametrize(
    ("moment", "number"),
    [("within", 5), ("before the rename", 0)],
)
def test_39_a_killed_run_goes_on_to_the_same_bytes(folder, moment, number):
    kill_and_resume(folder, moment, number, f"out {moment} {number}")


@pytest.mark.verify
def test_39_many_kills(folder):
    rng = random.Random(1)
    began = time.monotonic()
    words = ["link", "files/a.csv", "files/b.csv", *ON, *SHORT, "-o", "counted"]
    counted = drive(folder, "not at all", 0, *words)
    whole, saves = time.monotonic() - began, int(counted.stderr.splitlines()[-1])
    assert content(folder / "counted") == content(folder / "whole")
    for k in range(14):
        kill_and_resume(folder, rng.choice(["before", "after"]), rng.randint(1, saves), f"o{k}")
    for k in range(12):
        kill_and_resume(folder, "within", rng.randint(1, saves), f"w{k}")
    for k in range(12):
        moment = ["before the rename", "after the rename"][k % 2]
        kill_and_resume(folder, moment, 0, f"r{k}")
    killed = 0
    while killed < 14:
        killed += kill_by_the_clock(folder, rng.uniform(0.05, 0.95) * whole, f"c{killed}")


def kill_by_the_clock(folder, seconds, name):
    """Whether the run was still at work when it was killed."""
    words = ["link", "files/a.csv", "files/b.csv", *ON, *SHORT, "-o", name]
    command = [sys.executable, "-c", DRIVER, "by the clock", "0", *words]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    time.sleep(seconds)
    process.kill()
    killed = process.wait() == -signal.SIGKILL
    if not (folder / name).exists():
        begun = (folder / f".{name}.unfinished" / "checkpoints" / "bound.json").exists()
        again = ["resume", name] if begun else words
        done = drive(folder, "never", 0, *again)
        assert done.returncode == 0, done.stderr
    assert content(folder / name) == content(folder / "whole")
    shutil.rmtree(folder / name)
    return killed


@pytest.fixture
def interrupt(monkeypatch):
    """Run a command that is interrupted at its so-many-th checkpoint."""
    save = Checkpoints.save

    def run(number, *words):
        count = 0

        def counted(self, name, arrays):
            nonlocal count
            count += 1
            save(self, name, arrays)
            if count == number:
                raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(checkpoints, "EVERY", 0.0)
            patch.setattr(threads, "SECONDS", 0.0)  # a sweep at a time
            patch.setattr(Checkpoints, "save", counted)
            return CliRunner().invoke(main, [*map(str, words), "--threads", "1"])

    return run


def resume(out):
    done = CliRunner().invoke(main, ["resume", str(out)])
    return done.exit_code, done.output


def link_words(folder, out, *more):
    return ["link", folder / "files/a.csv", folder / "files/b.csv", *ON, *SHORT, *more, "-o", out]


def test_36_inputs_or_settings_that_changed_are_refused(folder, tmp_path, interrupt):
    shutil.copytree(folder / "files", tmp_path / "files")
    config, out, b = (tmp_path / name for name in ("link.toml", "out", "files/b.csv"))
    config.write_text("seed = 3\n")
    assert interrupt(40, *link_words(tmp_path, out, "--config", config)).exit_code == 130
    before = b.read_bytes()
    b.write_bytes(before.replace(b"B000001", b"B999999"))
    code, told = resume(out)
    assert (code, "input B is not as it was" in told) == (3, True)
    b.write_bytes(before)
    config.write_text("seed = 4\n")
    code, told = resume(out)
    assert (code, "settings is not as it was" in told) == (3, True)
    config.write_text("seed = 3\n")
    assert resume(out)[0] == 0
    assert resume(out)[0] == 3  # nothing is left to go on with


@pytest.mark.verify
def test_37_a_run_with_damaged_checkpoints_goes_on_from_what_is_whole(folder, tmp_path, interrupt):
    out, rng = tmp_path / "out", random.Random(2)
    assert interrupt(60, *link_words(folder, out)).exit_code == 130
    left = tmp_path / ".out.unfinished"
    shutil.copytree(left, tmp_path / "kept")
    assert resume(out)[0] == 0
    whole = content(out)
    for name in ("draws", "links", "pairs", "link_draws"):
        assert whole[f"{name}.parquet"] == (folder / "whole" / f"{name}.parquet").read_bytes()
    shutil.rmtree(out)
    shutil.copytree(tmp_path / "kept", left)
    for _ in range(20):
        path = rng.choice(sorted((left / "checkpoints").glob("*.*")))
        damaged = bytearray(path.read_bytes())
        if rng.random() < 0.5:
            damaged = damaged[: rng.randrange(len(damaged))]
        else:
            damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        code, told = resume(out)
        assert code in (0, 3), told
        if code == 0:
            assert content(out) == whole
            shutil.rmtree(out)
        shutil.rmtree(left, ignore_errors=True)
        shutil.copytree(tmp_path / "kept", left)


def test_a_new_start_does_not_use_what_was_left(folder, tmp_path, interrupt):
    assert interrupt(40, *link_words(folder, tmp_path / "out")).exit_code == 130
    assert (tmp_path / ".out.unfinished" / "checkpoints" / "chain-0.now").exists()
    done = CliRunner().invoke(main, [*map(str, link_words(folder, tmp_path / "out", "--seed", 9))])
    assert done.exit_code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    tables = [
        (place / "draws.parquet").read_bytes() for place in (folder / "whole", tmp_path / "out")
    ]
    assert tables[0] != tables[1]


@pytest.mark.short
def test_40_an_interrupted_run_says_how_to_go_on_and_does(folder, tmp_path, interrupt):
    done = interrupt(100, *link_words(folder, tmp_path / "out"))
    assert done.exit_code == 130
    assert f"`bayeslink resume {tmp_path / 'out'}`" in done.output
    assert resume(tmp_path / "out")[0] == 0
    for name in ("draws", "links", "pairs", "link_draws"):
        made = (tmp_path / "out" / f"{name}.parquet").read_bytes()
        assert made == (folder / "whole" / f"{name}.parquet").read_bytes()


def test_a_search_is_not_done_again(folder, tmp_path, interrupt, monkeypatch):
    """Its answer and its plan are as they were."""
    monkeypatch.setattr(theta_path, "FEW_PAIRS", 0)  # saving searches and fits for the path
    monkeypatch.setattr(posthoc, "LISTED", 0)  # few enough pairs to be listed outright, else
    words = link_words(folder, tmp_path / "whole")
    assert CliRunner().invoke(main, [*map(str, words)]).exit_code == 0
    assert interrupt(60, *link_words(folder, tmp_path / "out")).exit_code == 130
    left = tmp_path / ".out.unfinished" / "checkpoints"
    assert len([*left.glob("search-*.now")]) >= 2

    search = local.find_above

    def fail(tables, *more):
        if tables.one_file:  # pairs within the files, which come last
            return search(tables, *more)
        raise AssertionError("searched again")

    with monkeypatch.context() as patch:
        patch.setattr(local, "find_above", fail)
        assert resume(tmp_path / "out")[0] == 0
    assert content(tmp_path / "out") == content(tmp_path / "whole")


def test_level_tables_and_the_fit_are_not_made_again(folder, tmp_path, interrupt, monkeypatch):
    monkeypatch.setattr(theta_path, "FEW_PAIRS", 0)  # saving fits for the path
    assert (
        CliRunner().invoke(main, [*map(str, link_words(folder, tmp_path / "whole"))]).exit_code == 0
    )
    assert interrupt(100, *link_words(folder, tmp_path / "out")).exit_code == 130
    left = tmp_path / ".out.unfinished" / "checkpoints"
    assert len([*left.glob("table-*.now")]) == 4
    assert (left / "chain-0.now").exists()

    make, together, within = dictionaries.level_table, local.LocalPairs.together, []

    def fail(*given, **more):
        if within:  # the values of both files as one, for the check that comes last
            return make(*given, **more)
        raise AssertionError("made again")

    def checked(pairs, rows):
        within.append(pairs)
        return together(pairs, rows)

    with monkeypatch.context() as patch:
        patch.setattr(dictionaries, "level_table", fail)
        patch.setattr(local.LocalPairs, "together", checked)
        patch.setattr(penalized, "_climb", fail)
        code, told = resume(tmp_path / "out")
        assert code == 0, told
    assert content(tmp_path / "out") == content(tmp_path / "whole")


@pytest.mark.parametrize("structure", ["dependent", "independent"])
def test_a_fit_goes_on_from_any_of_its_climbs(folder, tmp_path, interrupt, structure):
    """Its modes, and the search it did last, are those of a fit never interrupted."""
    more = ["--point", "--structure", structure]
    words = link_words(folder, tmp_path / "whole", *more)
    assert CliRunner().invoke(main, [*map(str, words)]).exit_code == 0
    for number in (5, 9, 14):
        out = tmp_path / f"out{number}"
        assert interrupt(number, *link_words(folder, out, *more)).exit_code == 130
        assert resume(out)[0] == 0
        assert content(out) == content(tmp_path / "whole")


# --- the files ----------------------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path):
    made = Checkpoints(tmp_path / "c")
    made.bind({"input A": "1"})
    for k in (1, 2):
        made.save("x", {"n": np.array([k]), "text": np.array(["a"])})
    return made


def value(folder):
    found = Checkpoints(folder).load("x")
    return found and int(found["n"][0])


@pytest.mark.short
def test_37_a_damaged_checkpoint_is_never_used(saved):
    now = saved.folder / "x.now"
    whole, rng = now.read_bytes(), random.Random(1)
    assert value(saved.folder) == 2
    for _ in range(40):
        damaged = bytearray(whole)
        if rng.random() < 0.5:
            damaged = damaged[: rng.randrange(len(whole))]
        else:
            damaged[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
        now.write_bytes(damaged)
        assert value(saved.folder) == 1
    (saved.folder / "x.before").write_bytes(b"")
    assert value(saved.folder) is None


@pytest.mark.short
def test_a_checkpoint_of_another_run_is_never_used(saved):
    with pytest.raises(bl.InputError, match="input A is not as it was"):
        Checkpoints(saved.folder).bind({"input A": "2"})
    (saved.folder / "bound.json").write_text(json.dumps({"input A": "2"}))
    assert value(saved.folder) is None
    (saved.folder / "bound.json").write_text("{")
    with pytest.raises(bl.InputError, match="damaged"):
        Checkpoints(saved.folder)
