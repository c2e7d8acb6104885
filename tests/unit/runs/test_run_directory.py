"""One process at a time writes a run directory, and only what runs have written is replaced."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time

import pytest
from click.testing import CliRunner

import bayeslink as bl
from bayeslink.cli import main
from bayeslink.runs import run_directory as claims
from bayeslink.runs.run_directory import claim, replacing

NAMES = ["abelard", "bronwyn", "cuthbert", "dymphna", "ermintrude", "fflur", "guinevere"]


# Names like those of a run, and not among them.
MINE = ["review.sqlite.bak", "review.sqlite2", "links.csv.bak", "run.json~", "linked.xlsx"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    for side in "ab":
        rows = "".join(f"{side}{k},{name},{1900 + k}\n" for k, name in enumerate(NAMES))
        (folder / f"{side}.csv").write_text("id,name,year\n" + rows)
    fields = [bl.levenshtein("name"), bl.exact("year")]
    return bl.link(folder / "a.csv", folder / "b.csv", fields, draws=20, tune=20)


@pytest.fixture
def out(run, tmp_path):
    run.save(tmp_path / "out")
    return tmp_path / "out"


def beside(out):
    return sorted(path.name for path in out.parent.iterdir() if path.name.startswith("."))


@pytest.mark.parametrize("in_one_step", [True, False])
def test_force_replaces_only_what_runs_have_written(run, out, monkeypatch, in_one_step):
    if not in_one_step:
        monkeypatch.setattr(claims, "_exchange", lambda one, other: False)
    (out / "notes.txt").write_text("mine")
    (out / "folder" / "deep").mkdir(parents=True)
    (out / "folder" / "deep" / "more.txt").write_text("mine too")
    (out / "link.lnk").symlink_to("nowhere")
    for name in MINE:
        (out / name).write_text("mine")
    (out / "report.html").write_text("of the old run")
    before = {path.name for path in out.iterdir()}
    created = (out / "run.json").stat().st_ino
    run.save(out, force=True)
    assert (out / "run.json").stat().st_ino != created
    assert {path.name for path in out.iterdir()} == before - {"report.html"}
    assert {(out / name).read_text() for name in ("notes.txt", *MINE)} == {"mine"}
    assert (out / "folder" / "deep" / "more.txt").read_text() == "mine too"
    assert os.readlink(out / "link.lnk") == "nowhere"
    assert beside(out) == []


def test_files_of_an_earlier_run_that_the_new_one_lacks_go(run, out):
    point = bl.link(run.settings.a, run.settings.b, run.settings.fields, point=True)
    (out / "notes.txt").write_text("mine")
    point.save(out, force=True)
    assert not (out / "draws.parquet").exists()
    assert (out / "notes.txt").exists()
    (out / "draws.parquet").write_text("mine, as no run has written it")
    with pytest.raises(bl.OutputError, match=r"draws.parquet"):
        run.save(out, force=True)
    assert (out / "draws.parquet").read_text().startswith("mine")
    assert "point = true" in (out / "link.toml").read_text()


def test_an_input_inside_the_output_is_refused_before_the_work(run, out, tmp_path):
    a = out / "a.csv"
    shutil.copy(run.settings.a, a)
    (tmp_path / "elsewhere").symlink_to(out)
    for given in (a, tmp_path / "elsewhere" / "a.csv"):
        words = ["link", given, run.settings.b, "--on", "name", "--force", "-o", out]
        done = CliRunner().invoke(main, [*map(str, words)])
        assert done.exit_code == 4
        assert "input lies in" in done.output
    assert a.exists()


@pytest.fixture(params=["tmpfs", "bind"])
def mounted(request, tmp_path):
    """A folder at which another file system, or another folder of this one, is mounted."""
    place, other = tmp_path / "a mount", tmp_path / "other"
    place.mkdir()
    other.mkdir()
    how = ["-t", "tmpfs", "none"] if request.param == "tmpfs" else ["--bind", str(other)]
    if shutil.which("mount") is None or subprocess.run(["mount", *how, place]).returncode:
        pytest.skip("needs the right to mount")
    yield place
    subprocess.run(["umount", place], check=True)


def test_a_mount_point_is_refused_before_the_work(run, mounted, monkeypatch):
    inputs = [str(getattr(run.settings, side)) for side in "ab"]
    monkeypatch.setattr(
        "bayeslink.linking.link.compare_files", lambda *_, **__: pytest.fail("worked")
    )
    for target in (mounted, mounted.parent):
        (mounted.parent / "run.json").write_text('{"versions": {"bayeslink": "1"}}')
        (mounted / "mine.txt").write_text("mine")
        done = CliRunner().invoke(main, ["link", *inputs, "-o", str(target), "--force"])
        assert (done.exit_code, "is a mount point, or has one in it" in done.stderr) == (4, True)
        assert [path.name for path in mounted.iterdir()] == ["mine.txt"]
    monkeypatch.undo()
    run.save(mounted / "run")
    assert (mounted / "run" / "linked.csv").exists()


def test_a_symbolic_link_is_followed(run, out, tmp_path):
    linked = tmp_path / "sub" / "linked"
    linked.parent.mkdir()
    linked.symlink_to(out)
    run.save(linked, force=True)
    assert linked.is_symlink()
    assert {"a": run.settings.a}.items() <= _paths(out).items()
    (tmp_path / "dangling").symlink_to(tmp_path / "new")
    run.save(tmp_path / "dangling")
    assert (tmp_path / "new" / "run.json").exists()


def _paths(out):
    from bayeslink.runs.link_toml import load

    return {key: os.path.realpath(value) for key, value in load(out / "link.toml").items()
            if key in ("a", "b")}  # fmt: skip


def test_a_directory_that_appears_meanwhile_is_not_replaced(tmp_path):
    out = tmp_path / "out"

    def write():
        with replacing(out, force=False) as new:
            (new / "x").write_text("ours")
            out.mkdir()
            (out / "theirs").write_text("theirs")

    with pytest.raises(bl.OutputError, match="exists"):
        write()
    assert [path.name for path in out.iterdir()] == ["theirs"]


def test_a_second_claim_is_refused_in_a_thread_and_in_a_process(tmp_path):
    out, caught = tmp_path / "out", []

    def second():
        try:
            with claim(out, force=False):
                pass
        except bl.OutputError as error:
            caught.append(str(error))

    with claim(out, force=False), claim(out, force=False):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
        code = (
            "import sys; from bayeslink.runs.run_directory import claim\n"
            "with claim(sys.argv[1], force=False): pass"
        )
        done = subprocess.run([sys.executable, "-c", code, out], capture_output=True, text=True)
    assert "another bayeslink is writing" in caught[0]
    assert "another bayeslink is writing" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_folders_made_for_nothing_are_removed(tmp_path):
    with pytest.raises(KeyError), claim(tmp_path / "x" / "y" / "out", force=False):
        raise KeyError
    assert list(tmp_path.iterdir()) == []


DIES = """
import os, sys
from bayeslink.runs import run_directory as claims
from pathlib import Path

def die(*_):
    os._exit(9)

moment, out = sys.argv[1:]
if moment == "after the exchange":
    exchange = claims._exchange
    claims._exchange = lambda *both: exchange(*both) and die()
elif moment == "between two renames":
    claims._exchange = lambda *both: False
    rename = Path.rename
    Path.rename = lambda path, target: die() if path.name == "new" else rename(path, target)
with claims.replacing(out, force=True) as new:
    (new / "run.json").write_text('{"versions": ["bayeslink"], "new": true}')
    if moment == "while writing":
        die()
"""


@pytest.mark.parametrize("moment", ["while writing", "after the exchange", "between two renames"])
def test_what_a_dead_process_left_is_cleaned_at_the_next_start(run, out, moment):
    (out / "notes.txt").write_text("mine")
    done = subprocess.run([sys.executable, "-c", DIES, moment, out])
    assert done.returncode == 9
    assert beside(out) == [".out.unfinished"]
    assert out.exists() or moment == "between two renames"
    with claim(out, force=True):
        assert (out / "notes.txt").read_text() == "mine"
        assert ('"new"' in (out / "run.json").read_text()) == (moment == "after the exchange")
    run.save(out, force=True)
    assert (out / "notes.txt").read_text() == "mine"
    assert beside(out) == []


@pytest.mark.skipif(os.name == "nt", reason="no such signals there")
@pytest.mark.parametrize(("number", "ignored"), [("SIGTERM", True), ("SIGHUP", False)])
def test_an_ended_run_leaves_nothing_as_an_interrupted_one(run, tmp_path, number, ignored):
    number = getattr(signal, number)
    command = [sys.executable, "-m", "bayeslink.cli", "link", run.settings.a, run.settings.b]
    command += ["--on", "name:levenshtein", "--on", "year", "--draws", "200000", "-o", "out"]
    before = signal.signal(signal.SIGINT, signal.SIG_IGN) if ignored else None
    try:
        process = subprocess.Popen(
            command, cwd=tmp_path, stderr=subprocess.PIPE, text=True,
            preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # whatever started the tests
        )  # fmt: skip
    finally:
        if ignored:
            signal.signal(signal.SIGINT, before)
    while not beside(tmp_path / "out"):
        time.sleep(0.02)
    time.sleep(0.3)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number, errors
    assert errors.startswith("bayeslink: interrupted"), errors
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("n", [3, pytest.param(30, marks=pytest.mark.verify)])
def test_of_many_starts_at_once_one_writes_and_the_others_say_so(run, tmp_path, n):
    command = [sys.executable, "-m", "bayeslink.cli", "link", run.settings.a, run.settings.b]
    command += ["--on", "name", "--on", "year", "--draws", "20", "--tune", "20", "-o", "out"]
    started = [
        subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(n)
    ]
    codes = [(process.communicate(), process.returncode)[1] for process in started]
    assert sorted(codes) == [0] + [4] * (n - 1)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
