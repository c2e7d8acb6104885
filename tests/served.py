"""The review page as `bayeslink review` serves it, for the tests."""

import http.client
import json
import re
import shutil
import signal
import subprocess
import sys

import bayeslink as bl

FIELDS = [bl.levenshtein("gname"), bl.levenshtein("fname"), bl.date("dob"), bl.exact("sex")]


def copied(made, folder):
    """A copy without judgements, and of the files beside it, to which its link.toml leads."""
    shutil.copytree(made.parent / "data", folder / "data")
    return shutil.copytree(made, folder / "run")


class Server:
    """`bayeslink review` as a person starts it, and a browser that sends what it likes."""

    def __init__(self, run, *options):
        command = [sys.executable, "-m", "bayeslink.cli", "review", str(run), "--no-browser"]
        self.process = subprocess.Popen(
            [*command, "--log", *options],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.address = self.process.stdout.readline().split()[-1]
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/#token=([\w-]{40,})", self.address)
        self.port, self.token = int(found[1]), found[2]
        self.host = f"127.0.0.1:{self.port}"
        self.run = run

    def ask(self, path, *, method="GET", body=None, token=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        token = self.token if token is None else token
        given = {"Host": self.host, **({"X-Review-Token": token} if token else {})}
        if body is not None:
            given |= {"Content-Type": "application/json", "Origin": f"http://{self.host}"}
            given["Content-Length"] = str(len(body))
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        for name, value in given.items():
            if value is not None:
                connection.putheader(name, value)
        connection.endheaders(None if body is None else body.encode())
        answer = connection.getresponse()
        answer.text = answer.read()
        connection.close()
        return answer

    def json(self, path):
        answer = self.ask(path)
        assert answer.status == 200, answer.text
        return json.loads(answer.text)

    def tell(self, path, **headers):
        body = json.dumps({"case": "1", "version": self.version, "reviewer": "Eve",
                           "verdicts": ["nonlink"] * self.n})  # fmt: skip
        return self.ask(path, method="POST", body=body, **headers)

    def look(self):
        found = self.json("/api/case/1?reviewer=Eve")
        self.version, self.n = found["version"], len(found["verdicts"])

    def end(self):
        self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate(timeout=20)
        return out, err
