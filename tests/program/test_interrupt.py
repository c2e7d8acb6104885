"""Ctrl-C: a linkage ends at once, leaves nothing behind, and Python goes on.

The work would take minutes. How long it may take to end is a guard against hanging, no more.
"""

import os
import signal
import subprocess
import sys

import pytest

import bayeslink as bl
from bayeslink.simulation.files import write_simulation

pytestmark = pytest.mark.skipif(os.name == "nt", reason="no SIGINT to send on this system")

GUARD = 60  # seconds
FIELDS = ["gname:levenshtein", "fname:levenshtein", "dob:date", "sex:exact", "postcode:exact"]
# The command line with its progress on standard output, so that one can tell where it is.
TELLING = """
import contextlib, sys
from bayeslink import cli
from bayeslink.commands import linking

@contextlib.contextmanager
def telling():
    yield lambda message: print(message, flush=True)

linking.showing_progress = telling
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    write_simulation(bl.simulate(20_000, seed=1), folder, force=True)
    (folder / "truth.csv").unlink()
    return folder


def interrupt_at(moment, folder, *options, first=""):
    """Start a linkage, send SIGINT when it says `moment`; what it had said, its code and errors."""
    command = [sys.executable, "-c", TELLING + first + "cli.main()", "link", *options]
    command += [folder / "a.csv", folder / "b.csv", "-o", folder / "out"]
    command += [word for field in FIELDS for word in ("--on", field)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        said = []
        for line in process.stdout:
            said.append(line)
            if line.startswith(moment):
                process.send_signal(signal.SIGINT)
                break
        _, errors = process.communicate(timeout=GUARD)
    finally:
        process.kill()
        process.communicate()
    return said, process.returncode, errors


@pytest.mark.parametrize(
    ("moment", "threads"),
    [
        ("reading B", 2),
        ("comparing values", 1),
        ("maximising", 2),
        ("forming", 2),
        ("sampling", 1),
        ("sampling", 2),
    ],
)
def test_an_interrupted_linkage_ends_and_leaves_nothing(moment, threads, files):
    before = sorted(files.iterdir())
    options = ["--draws", "200000", "--threads", str(threads)]
    said, code, errors = interrupt_at(moment, files, *options)
    assert said[-1].startswith(moment)
    assert code == 130, errors
    assert errors.splitlines()[-1] == "bayeslink: interrupted; nothing was written."
    assert sorted(files.iterdir()) == before


def test_an_interrupted_linkage_does_not_wait_for_processes_that_compile(files, tmp_path):
    """On a first run; the processes are such as would never end."""
    never_ending = f"""
import subprocess
from bayeslink import kernels

def start(command, start=subprocess.Popen, **options):
    process = start([sys.executable, "-c", "import time; time.sleep(600)"], **options)
    print("compiling", process.pid, flush=True)
    return process

subprocess.Popen = start
kernels.numba.config.CACHE_DIR = {str(tmp_path)!r}
kernels._GROUPS = (("search", "pair_counts"),)
"""
    said, code, _ = interrupt_at("comparing values", files, first=never_ending)
    assert code == 130
    (child,) = [int(line.split()[1]) for line in said if line.startswith("compiling")]
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


NOTEBOOK = """
import _thread, sys, threading, time
import bayeslink as bl
from bayeslink.comparing.parsing import parse_on
from bayeslink.threads import NAME

once = threading.Lock()

def interrupt(message):
    if message.startswith("sampling") and once.acquire(blocking=False):
        _thread.interrupt_main()

threads, a, b, *texts = sys.argv[1:]
fields = [field for text in texts for field in parse_on(text)]
try:
    bl.link(a, b, fields, draws=200_000, threads=int(threads), progress=interrupt)
except KeyboardInterrupt:
    print("interrupted", flush=True)
while [thread for thread in threading.enumerate() if thread.name.startswith(NAME)]:
    time.sleep(0.01)
small = bl.simulate(200, seed=1)
print(len(bl.link(small.a, small.b, fields, draws=50, tune=50).links) > 50)
"""


@pytest.mark.parametrize("threads", ["1", "2"])
def test_python_goes_on_after_an_interrupt(threads, files):
    done = subprocess.run(
        [sys.executable, "-c", NOTEBOOK, threads, files / "a.csv", files / "b.csv", *FIELDS],
        capture_output=True, text=True, timeout=2 * GUARD,
    )  # fmt: skip
    assert done.stdout.split() == ["interrupted", "True"], done.stderr
