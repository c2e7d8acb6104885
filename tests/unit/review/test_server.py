"""The review server: who may ask, and what it answers (hostile input 42)."""

import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bayeslink.errors import SettingsError
from bayeslink.judging.judgements import FILE, Judgements
from bayeslink.review.gate import POLICY, Gate
from bayeslink.review.rerun import Rerun
from tests.served import Server, copied


@pytest.fixture(scope="module")
def server(made, tmp_path_factory):
    run = copied(made, tmp_path_factory.mktemp("served"))
    server = Server(run)
    server.look()
    yield server
    server.process.kill()
    server.process.communicate()


def stored(run):
    with Judgements(run / FILE) as judgements:
        return judgements.current(), judgements.sample()


PUBLIC = (
    "/", "/page.css", "/page.js", "/asking.js", "/draw.js", "/overview.js", "/people.js",
)  # fmt: skip


def test_without_the_token_there_is_the_empty_page_and_no_more(server):
    for path in PUBLIC:
        answer = server.ask(path, token="")
        assert answer.status == 200, path
        assert answer.text == server.ask(path).text
        assert str(server.run).encode() not in answer.text
        assert b"gname" not in answer.text
        assert server.ask(path, token="", method="POST", body="{}").status == 403


def test_no_answer_sets_a_cookie_and_no_cookie_opens_anything(server):
    """Browsers send the cookies of a host to all its ports, so to other people's servers too."""
    given = []
    for path in (*PUBLIC, f"/?token={server.token}", "/api/token", "/api/state"):
        cookies = server.ask(path).getheader("Set-Cookie")
        given += [cookies.partition(";")[0]] if cookies else []
    for cookie in (*given, f"X-Review-Token={server.token}", f"review-token={server.token}"):
        for path in ("/api/state", "/api/case/1", "/files/labels.csv", "/api/token"):
            assert server.ask(path, token="", Cookie=cookie).status == 403, path
        assert server.tell("/api/judge", token="", Cookie=cookie).status == 403
    assert given == []
    assert stored(server.run) == ([], None)


FOREIGN = [
    {"Host": "example.org"},
    {"Host": "127.0.0.1"},
    {"Host": "127.0.0.1:1"},
    {"Host": "127.0.0.1.example.org"},
    {"Host": ""},
    {"token": ""},
    {"token": "wrong"},
    {"token": "\x7f"},
    {"token": "\xe9" * 43},
    {"token": "", "Authorization": "Bearer x"},
]


@pytest.mark.parametrize("how", FOREIGN, ids=str)
def test_who_is_not_known_gets_nothing(server, how):
    paths = ("/api/state", "/api/case/1", "/api/token", "/files/labels.csv", "/nothing")
    for path in (*paths, *(PUBLIC if "Host" in how else ())):
        answer = server.ask(path, **how)
        assert answer.status in (400, 403), path
        assert b"gname" not in answer.text
    assert server.tell("/api/judge", **how).status in (400, 403)
    assert stored(server.run) == ([], None)


def test_the_token_is_taken_from_the_header_only(server):
    for path in ("/api/state", "/api/token", "/files/labels.csv"):
        assert server.ask(f"{path}?token={server.token}", token="").status == 403
        assert server.ask(path, token=server.token[:-1]).status == 403
        assert server.ask(path, token=server.token + "x").status == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://example.org"},
        {"Origin": "null"},
        {"Origin": None},
        {"Origin": "https://127.0.0.1"},
        {"Content_Type": "text/plain"},
        {"Content_Type": "application/x-www-form-urlencoded"},
        {"Content_Type": None},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ],
    ids=str,
)
def test_another_site_changes_nothing(server, headers):
    for path in ("/api/judge", "/api/undo", "/api/sample", "/api/relink"):
        assert server.tell(path, **headers).status == 403, path
    assert stored(server.run) == ([], None)


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_another_site_reads_nothing(server, site):
    for path in (*PUBLIC, "/api/state", "/files/labels.csv"):
        assert server.ask(path, Sec_Fetch_Site=site).status == 403


@pytest.mark.parametrize(
    "path",
    [
        "/../run.json", "/..%2frun.json", "/%2e%2e/%2e%2e/etc/passwd", "/files/../page.py",
        "/files/..%2f..%2frun.json", "/files/labels.csv/../../run.json", "/page.py", "//etc/passwd",
        "/files/labels.exe", "/files/run.json", "/api/case/..", "/api/case/%2e%2e%2frun.json",
        "/api/case/0?reviewer=x", "/api/evidence/pair-0", "/page.html", "/review.sqlite",
    ],
)  # fmt: skip
def test_paths_lead_nowhere_else(server, path):
    answer = server.ask(path)
    assert answer.status in (400, 404), answer.text
    assert b"root:" not in answer.text
    assert b"sha256" not in answer.text


def test_every_answer_is_locked_down(server):
    asked = [
        ("/", None),
        ("/page.js", None),
        ("/api/state", None),
        ("/x", None),
        ("/", ""),
        ("/x", ""),
    ]
    for path, token in asked:
        headers = server.ask(path, token=token).headers
        assert headers["Content-Security-Policy"] == POLICY
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cache-Control"] == "no-store"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert "Server" not in headers
    assert "default-src 'none'" in POLICY
    assert "unsafe" not in POLICY


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("", 400), ("[]", 400), ("{", 400), ("[" * 60_000, 400), ('{"case": 1}', 400),
        ('{"case": "1", "version": "x", "verdicts": {}}', 400), ('"' + "x" * 70_000 + '"', 413),
    ],
)  # fmt: skip
def test_what_is_no_judgement_is_refused(server, body, status):
    assert server.ask("/api/judge", method="POST", body=body).status == status
    assert stored(server.run) == ([], None)


@pytest.mark.parametrize("name", ["", "   ", "x" * 61, "a\u200bb", "a\u202eb", "a\x00b"])
def test_a_reviewer_has_a_name_that_can_be_seen(server, name):
    body = json.dumps({"case": "1", "version": server.version, "verdicts": ["unsure"] * server.n,
                       "reviewer": name})  # fmt: skip
    assert server.ask("/api/judge", method="POST", body=body).status == 400
    assert stored(server.run) == ([], None)


def test_methods_that_are_not_offered(server):
    assert server.ask("/api/judge").status == 405
    assert server.ask("/api/state", method="DELETE").status == 403
    assert server.ask("/", method="POST", body="{}").status == 405


def test_an_error_of_ours_says_nothing_of_the_data():
    """Neither to the log nor to the page, which gets an answer all the same."""

    async def broken(scope, receive, send):
        raise ValueError("Anna, born 1980-02-01")

    async def send(message):
        sent.append(message)

    sent, lines = [], []
    gate = Gate(broken, 1, lines.append)
    headers = [(b"host", b"127.0.0.1:1"), (b"x-review-token", gate.token.encode())]
    scope = {"type": "http", "method": "GET", "path": "/x", "query_string": b"", "headers": headers}
    asyncio.run(gate(scope, None, send))
    assert lines == ["GET 500 ValueError"]
    assert sent[0]["status"] == 500
    assert b"Anna" not in sent[1]["body"]


def test_the_command_line_starts_without_the_server():
    code = (
        "import sys, bayeslink.cli\n"
        "print([m for m in ('starlette', 'uvicorn', 'sqlite3', 'numpy') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def rerun_of(folder):
    settings = SimpleNamespace(a="a.csv", b="b.csv")
    return Rerun(SimpleNamespace(directory=folder, settings=settings, sources=("a.csv", "b.csv")))


def test_a_path_with_stray_bytes_is_shown():
    command = rerun_of(Path(os.fsdecode(b"/nowhere/ru\xffn"))).state()["command"]
    assert command.encode().isascii()
    assert "n-reviewed" in command


def test_a_run_reviewed_from_its_own_directory_is_linked_again_beside_it(tmp_path, monkeypatch):
    (tmp_path / "run").mkdir()
    monkeypatch.chdir(tmp_path / "run")
    for folder in (".", "../run/../run/."):
        command = rerun_of(Path(folder)).state()["command"]
        output = tmp_path / "run" / command.split()[-1]
        assert output.resolve() == tmp_path / "run-reviewed"


def test_a_token_for_a_browser_is_good_for_once():
    """To be exchanged for the one that stays, and for nothing else."""

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def send(message):
        sent.append(message)

    def ask(path, token):
        sent.clear()
        headers = [(b"host", b"127.0.0.1:1"), (b"x-review-token", token.encode())]
        asyncio.run(gate({"type": "http", "method": "GET", "path": path, "headers": headers},
                         None, send))  # fmt: skip
        return sent[0]["status"]

    sent = []
    gate = Gate(app, 1, lambda line: None)
    once = gate.token_for_once
    assert ask("/api/token", gate.token) == 200
    assert ask("/api/state", once) == 403
    assert ask("/api/token", once) == 200
    assert json.loads(sent[1]["body"]) == {"token": gate.token}
    assert ask("/api/token", once) == 403
    for _ in range(2):
        assert ask("/api/token", gate.token) == 200
        assert ask("/api/state", gate.token) == 200


def test_a_review_from_start_to_end(made, tmp_path):
    run = copied(made, tmp_path)
    server = Server(run, "--show", "postcode")
    server.look()
    assert server.tell("/api/judge").status == 200
    assert len(stored(run)[0]) == server.n
    labels = server.ask("/files/labels.csv")
    assert labels.getheader("Content-Disposition") == 'attachment; filename="labels.csv"'
    assert labels.text.count(b"Eve") == server.n
    splink = pq.read_table(pa.BufferReader(server.ask("/files/splink.parquet").text))
    assert splink["clerical_match_score"].to_pylist() == [0.0] * server.n
    assert server.json("/api/state?reviewer=Eve")["judged"] == 1
    out, err = server.end()
    assert server.process.returncode == 0
    assert "review.sqlite" in out
    assert set(err.split("\n")) <= {"GET 200", "POST 200", ""}


def test_a_port_in_use_says_so(server):
    command = [sys.executable, "-m", "bayeslink.cli", "review", str(server.run), "--no-browser"]
    done = subprocess.run(
        [*command, "--port", str(server.port)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == SettingsError.exit_code
    assert f"cannot listen on port {server.port}" in done.stderr


@pytest.mark.full
def test_linking_again_takes_the_judgements_in(made, tmp_path):
    run = copied(made, tmp_path)
    server = Server(run)
    try:
        server.look()
        server.tell("/api/judge")
        server.ask("/api/relink", method="POST", body="{}")
        until = time.monotonic() + 120
        while time.monotonic() < until:
            found = server.json("/api/overview?reviewer=Eve")["rerun"]
            if found["status"] != "running":
                break
            time.sleep(0.1)
        assert found["status"] == "done", found
        assert "Links:" in found["words"]
        after = pq.read_table(tmp_path / "run-reviewed" / "labels.parquet")
        assert len(after) == server.n
        judged = {(one.id_a, one.id_b) for one in stored(run)[0]}
        links = pq.read_table(tmp_path / "run-reviewed" / "links.parquet").to_pylist()
        assert not judged & {(row["id_a"], row["id_b"]) for row in links}
    finally:
        server.end()


def test_a_new_start_forgets_the_old_token(server):
    other = Server(server.run)
    try:
        assert other.token != server.token
        assert other.ask("/api/state", token=server.token).status == 403
    finally:
        other.end()
