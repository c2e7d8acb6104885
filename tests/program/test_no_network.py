"""Every command works where there is no network at all."""

import shutil
import subprocess
import sys
import textwrap

import pytest

# Within a network namespace of its own: this machine's loopback, and nothing else.
INSIDE = """
import re, socket, subprocess, sys, urllib.request
from pathlib import Path

import duckdb
from click.testing import CliRunner

import bayeslink as bl
from bayeslink.cli import main

assert [name for _, name in socket.if_nameindex()] == ["lo"]
tried = set()


def run(*words):
    done = CliRunner().invoke(main, [*map(str, words)])
    assert done.exit_code == 0, (words, done.output, done.exception)
    tried.add(words[0])


few = "--draws 40 --tune 20 --chains 2".split()
run("simulate", "--n", 60, "--seed", 3, "-o", "files")
run("demo", "--n", 60, "-o", "demo")
run("comparisons")
run("completion", "bash")
run("profile", "files/a.csv", "files/b.csv", "-o", "profile.html")
run("init", "files/a.csv", "files/b.csv")
run("link", "--config", "link.toml", *few, "-o", "out")
with duckdb.connect("two.duckdb") as db:
    for side in "ab":
        db.execute(f"CREATE TABLE {side} AS FROM read_csv('files/{side}.csv', all_varchar=true)")
fields = ["--on", "gname:levenshtein", "--on", "dob:date", "--on", "sex"]
run("link", "two.duckdb", "two.duckdb", "--table", "a", "--table", "select * from b", *fields,
    *few, "-o", "duck")
run("link", "files/a.csv", "files/b.csv", *fields, *few, "-o", "again")
assert Path("again/links.csv").read_bytes() == Path("duck/links.csv").read_bytes()
batch = Path("files/b.csv").read_text().replace("\\nB", "\\nN")
Path("new.csv").write_text(batch)
run("link", "--update", "again", "new.csv", *few, "-o", "updated")
for out in ("out", "duck"):
    run("report", out)
    run("explain", out, "A000001", "B000001")
    run("evaluate", out, "--truth", "files/truth.csv")
    run("join", out, "--how", "outer", "-o", f"{out}.csv")
    run("population", out)
    run("review", out, "--plan")
run("compare", "out", "duck")
run("dedupe", "files/a.csv", *fields, *few, "-o", "people")
run("link-many", "files/a.csv", "files/b.csv", *fields, *few, "-o", "several")
run("dedupe", "--update", "people", "new.csv", *few, "-o", "people_now")
run("link-many", "--update", "several", "b=new.csv", *few, "-o", "several_now")
for out in ("people", "several", "people_now", "several_now"):
    run("report", out)

command = [sys.executable, "-m", "bayeslink.cli"]
with subprocess.Popen([*command, "review", "duck", "--no-browser"], stdout=subprocess.PIPE,
                      stderr=subprocess.DEVNULL) as page:
    try:
        address = re.search(r"http://[^\\s]+", page.stdout.readline().decode())[0]
        address, token = address.split("#token=")
        with urllib.request.urlopen(address, timeout=60) as answer:
            assert b"<title>" in answer.read()
        known = urllib.request.Request(f"{address}api/state", headers={"X-Review-Token": token})
        with urllib.request.urlopen(known, timeout=60) as answer:
            assert b"queues" in answer.read()
    finally:
        page.terminate()

interrupted = '''
import sys
from bayeslink import checkpoints, cli
from bayeslink.checkpoints import Checkpoints
checkpoints.EVERY = 0.0
def save(self, name, arrays, save=Checkpoints.save):
    save(self, name, arrays)
    if name.startswith("chain"):
        raise KeyboardInterrupt
Checkpoints.save = save
cli.main(sys.argv[1:])
'''
words = ["link", "files/a.csv", "files/b.csv", *fields, *few, "--threads", "1", "-o", "late"]
assert subprocess.run([sys.executable, "-c", interrupted, *words]).returncode == 130
run("resume", "late")
assert Path("late/links.csv").read_bytes() == Path("again/links.csv").read_bytes()
assert tried == set(main.commands)
"""


def namespace():
    """The words that start a command in an empty network namespace; None where that is refused."""
    for words in (["unshare", "-rn"], ["unshare", "-n"]):
        up = [*words, "ip", "link", "set", "lo", "up"]
        if (
            shutil.which("unshare")
            and shutil.which("ip")
            and subprocess.run(up, capture_output=True).returncode == 0
        ):
            return words
    return None


def test_every_command_works_in_an_empty_network_namespace(tmp_path):
    words = namespace()
    if words is None:
        pytest.skip("no network namespace is to be had here: unshare and ip, with the right to")
    (tmp_path / "inside.py").write_text(textwrap.dedent(INSIDE), "utf-8")
    up = f"ip link set lo up && exec '{sys.executable}' inside.py"
    done = subprocess.run(
        [*words, "sh", "-c", up], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
