"""What could go on for ever ends within a bound that is stated."""

import gzip
import re
import socket
import sqlite3
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pytest

import bayeslink as bl
from bayeslink.data.records import read_records
from bayeslink.engines import joining


def people(side, n, name):
    return pa.table(
        {
            "id": [f"{side}{k}" for k in range(n)],
            "name": [name] * n,
            "year": [str(1900 + k % 50) for k in range(n)],
        }
    )


@pytest.mark.parametrize("fields", [["name"], ["name", "year"]])
def test_51_records_that_all_share_a_value_are_refused_before_the_search(monkeypatch, fields):
    monkeypatch.setattr(joining, "MAX_VISITED", 3e5)
    monkeypatch.setattr(joining, "VISITED_A_RECORD", 100)
    compared = [bl.exact(name) for name in fields]
    with pytest.raises(bl.BayeslinkError, match=r"same values.*blocking key"):
        bl.link(people("a", 1000, "x"), people("b", 1000, "x"), compared)
    monkeypatch.setattr(joining, "VISITED_A_RECORD", 600)  # a limit that grows with the files
    pairs = bl.compare(people("a", 1000, "x"), people("b", 1000, "x"), compared)
    assert len(pairs.pairs_above(np.ones((len(fields), 3)), 0.0)) == 10**6
    monkeypatch.setattr(joining, "MAX_VISITED", 2e10)
    small = bl.link(people("a", 100, "x"), people("b", 100, "x"), compared, draws=20, tune=20)
    assert all(p < 0.7 for p in small.links["link_probability"].to_pylist())  # ½ by the truth


def test_51_long_texts_are_refused_before_they_are_compared():
    start = time.monotonic()
    a, b = people("a", 300, "x" * 10_000), people("b", 300, "y" * 10_000)
    for compare in (bl.levenshtein, bl.damerau_levenshtein, bl.jaro_winkler):
        with pytest.raises(bl.InputError, match=r"10,000 characters.*2,000"):
            bl.link(a, b, [compare("name")])
    assert time.monotonic() - start < 20
    assert (
        bl.link(a, a.slice(0), [bl.tokens("name"), bl.exact("year")], point=True).pairs.n_a == 300
    )


def test_a_gzip_of_newlines_is_refused_at_once(tmp_path):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"id,name\n1,x\n" + b"\n" * 2**26, 1))
    start = time.process_time()
    with pytest.raises(bl.InputError, match=r"line \d+: more than 1,048,576 blank lines"):
        read_records(path, id="id", columns=["name"])
    assert time.process_time() - start < 10


SERVER = """
import sys
from pathlib import Path
from bayeslink.review import server, timeouts
from bayeslink.judging import judgements
timeouts.SECONDS = server.SECONDS = 0.5
judgements._WAIT = 0.5
import bayeslink as bl
from bayeslink.review.material import material_of
material = material_of(bl.open_run(sys.argv[1]))
server.serve(material, ready=lambda a, once: print(a, flush=True), log=print)
"""


@pytest.fixture
def served(tmp_path):
    bl.write_simulation(bl.simulate(40, seed=1), tmp_path / "files")
    paths = [tmp_path / "files" / f"{side}.csv" for side in "ab"]
    bl.link(*paths, [bl.exact("fname"), bl.exact("dob")], draws=20, tune=10).save(tmp_path / "out")
    words = [sys.executable, "-c", SERVER, tmp_path / "out"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        address = process.stdout.readline()
        port, token = re.search(r":(\d+)/#token=(\S+)", address).groups()
        yield int(port), token, tmp_path / "out"
    finally:
        process.kill()
        process.communicate()


def ask(port, text):
    """Send the bytes and read until the server closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(text.encode())
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
        return answer.decode()


def test_52_half_sent_requests_a_locked_database_and_huge_numbers(served):
    port, token, out = served
    host = f"Host: 127.0.0.1:{port}\r\n"
    start = time.monotonic()
    assert ask(port, "GET / HTTP/1.1\r\nHost: 127") == ""  # closed, without a word
    assert ask(port, "") == ""
    assert time.monotonic() - start < 10
    ours = f"{host}X-Review-Token: {token}\r\nOrigin: http://127.0.0.1:{port}\r\n"
    ours += "Content-Type: application/json\r\nConnection: close\r\n"

    def post(path, body, length=None):
        head = f"POST {path} HTTP/1.1\r\n{ours}Content-Length: {length or len(body)}\r\n\r\n"
        return ask(port, head + body).split("\r\n")[0]

    assert " 408 " in post("/api/undo", '{"revi', 100)
    assert " 400 " in post("/api/sample", '{"size": 1' + "0" * 30 + "}")
    judged = '{"reviewer": "x"}'
    assert " 200 " in post("/api/undo", judged)
    blocker = sqlite3.connect(out / "review.sqlite", isolation_level=None)
    blocker.execute("BEGIN EXCLUSIVE")
    assert " 503 " in post("/api/undo", judged)
    blocker.close()
    assert " 200 " in post("/api/undo", judged)
