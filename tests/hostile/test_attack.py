"""Some of each attack in every test run, and many under `make verify`: docs/reliability.md."""

import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from bayeslink.cli import main
from tests.hostile import attack


@pytest.fixture
def files(tmp_path):
    for side in "ab":
        rows = "".join(f"{side}{k},n{k % 7},{1900 + k}\n" for k in range(20))
        (tmp_path / f"{side}.csv").write_text("id,name,year\n" + rows)
    return [str(tmp_path / f"{side}.csv") for side in "ab"]


@pytest.mark.full
def test_broken_inputs(tmp_path):
    codes = attack.attack_inputs(tmp_path, 40, seed=11)
    assert codes[3] > 25
    assert codes.total() == 40


@pytest.mark.full
def test_damaged_directories(tmp_path):
    codes = attack.attack_directories(tmp_path, 3, seed=12)
    assert sum(n for key, n in codes.items() if key.endswith(": 3")) >= 2


@pytest.mark.verify
def test_many_broken_inputs(tmp_path):
    assert attack.attack_inputs(tmp_path, 600, seed=1).total() == 600


@pytest.mark.verify
def test_many_damaged_directories(tmp_path):
    codes = attack.attack_directories(tmp_path, 120, seed=2)
    assert codes.total() == 120 * len(attack.commands(tmp_path, tmp_path))


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--draws", "100000000000"], "GB"),
        (["--tune", "1000000000000000"], "days"),
        (["--chains", "1000000"], "chains"),
        (["--theta", "1e308"], "theta"),
        (["--overlap", "1e300,1"], "alpha"),
    ],
)
def test_49_absurd_settings_are_refused_with_what_they_would_take(files, flags, says, tmp_path):
    words = ["link", *files, "--on", "name", *flags, "-o", str(tmp_path / "out")]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 2, done.output
    assert says in done.output


def test_50_utf_16_without_a_byte_order_mark(files, tmp_path):
    text = (tmp_path / "a.csv").read_text()
    (tmp_path / "a.csv").write_bytes(text.encode("utf-16-le"))
    words = ["link", *files, "--on", "name", "--point", "-o", str(tmp_path / "out")]
    for encoding in ((), ("--encoding", "utf-16", "--encoding", "utf-8")):
        done = CliRunner().invoke(main, [*words, *encoding])
        assert done.exit_code == 3, done.output
        assert "utf-16-le" in done.output
    done = CliRunner().invoke(main, [*words, "--encoding", "utf-16-le", "--encoding", "utf-8"])
    assert done.exit_code == 0, done.output


@pytest.mark.full
@pytest.mark.skipif(os.name == "nt", reason="a POSIX shell")
@pytest.mark.parametrize(
    ("redirected", "code"),
    [(">&- 2>&-", 0), ("2>/dev/full >/dev/full", 4)],
)
def test_48_streams_that_are_closed_or_full(files, tmp_path, redirected, code):
    if "full" in redirected and not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    words = f"{sys.executable} -m bayeslink.cli link a.csv b.csv --on name --point -o out"
    done = subprocess.run(f"{words} {redirected}", shell=True, cwd=tmp_path, capture_output=True)
    assert done.returncode == code
    assert b"Traceback" not in done.stderr
    assert (tmp_path / "out" / "run.json").exists()  # whole, whatever became of the words


def test_help_to_a_full_disk_is_no_traceback():
    done = subprocess.run(f"{sys.executable} -m bayeslink.cli --help >/dev/full", shell=True,
                          capture_output=True)  # fmt: skip
    assert done.returncode == 4
    assert b"Traceback" not in done.stderr


def test_a_fault_of_our_own_is_told_without_anybodys_values(files, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise KeyError("SECRETNAME")

    monkeypatch.setattr("bayeslink.linking.link.compare_files", fail)
    words = ["link", *files, "--on", "name", "-o", str(tmp_path / "out")]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 1
    assert done.output.startswith("bayeslink: a fault of bayeslink itself: KeyError in ")
    assert "SECRETNAME" not in done.output
    assert not (tmp_path / "out").exists()
