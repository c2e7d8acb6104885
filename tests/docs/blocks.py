"""What the pages show, run: Python in one namespace a page, commands in one directory a page.

```python     run; a block without a language right after it is what it prints
```console    `$ bayeslink …` runs in this process, other commands in a shell; then what they print
```toml, csv  read; kept as a file where `<!-- file: NAME -->` stands before it

`…` in an output stands for anything. `<!-- run: CODE -->` runs unseen: what a page
takes for granted. `<!-- not run: WHY -->` says why a block cannot be run. A command that fails
fails its page, unless `<!-- fails: exit 3 -->` stands before the block: then one must end so.

python -m tests.docs.blocks PAGE… writes what is printed into the pages.
"""

import contextlib
import csv
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

from click.testing import CliRunner

from bayeslink.cli import main

ROOT = Path(__file__).parents[2]
FENCE = re.compile(
    r"<!-- run:\n(?P<hidden>.*?)-->"
    r"|(?:<!-- (?P<mark>not run|file|fails): (?P<said>[^>]*) -->\n)?"
    r"^(?P<indent> *)```(?P<language>\w*)[^\n]*\n(?P<text>.*?)^ *```$",
    re.DOTALL | re.MULTILINE,
)


@dataclass
class Block:
    """A fenced block of a page."""

    language: str
    text: str
    mark: str | None  # "not run", "file" or "fails"
    said: str | None
    start: int  # of the text in the page
    after: str  # what stands between the block before and this one


@dataclass
class Shown:
    """An output on a page, and what it is."""

    start: int
    shown: str
    printed: str

    @property
    def right(self):
        parts = map(re.escape, self.shown.strip().split("…"))
        return re.fullmatch(".*?".join(parts), self.printed.strip(), re.DOTALL) is not None


def pages():
    """Every page with blocks: those of the site, and what stands at the root."""
    at_root = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
    return sorted((ROOT / "docs").rglob("*.md")) + [path for path in at_root if path.exists()]


def blocks_of(text):
    found, end = [], 0
    for match in FENCE.finditer(text):
        hidden = match["hidden"] is not None
        found.append(
            Block(
                "python" if hidden else match["language"],
                match["hidden"] if hidden else match["text"],
                "hidden" if hidden else match["mark"],
                match["said"],
                match.start("hidden" if hidden else "text"),
                text[end : match.start()],
            )
        )
        end = match.end()
    return found


def run_page(text, folder):
    """Run the blocks of a page in a folder: the outputs it shows, beside what was printed."""
    space, outputs, printed = {"__name__": "page"}, [], None
    before = Path.cwd()
    os.chdir(folder)
    try:
        for block in blocks_of(text):
            if block.mark == "not run":
                printed = None
            elif block.language == "python":
                with contextlib.redirect_stdout(io.StringIO()) as caught:
                    exec(compile(block.text, "page", "exec"), space)
                printed = caught.getvalue()
            elif block.language == "console":
                outputs += run_console(block)
                printed = None
            elif block.language in ("toml", "csv"):
                keep(block)
                printed = None
            elif block.language == "" and printed is not None and not block.after.strip():
                outputs.append(Shown(block.start, block.text, printed))
                printed = None
            else:
                raise AssertionError(f"a block that nobody runs: {block.text[:80]!r}")
    finally:
        os.chdir(before)
    return outputs


def keep(block):
    if block.language == "toml":
        tomllib.loads(block.text)
    else:
        rows = list(csv.reader(io.StringIO(block.text)))
        assert len({len(row) for row in rows}) == 1
    if block.mark == "file":
        Path(block.said).write_text(block.text, "utf-8")


def run_console(block):
    """The commands of a block, each with what is shown below it."""
    outputs, failed = [], []
    for command in re.finditer(
        r"^\$ (?P<command>(?:.*\\\n)*.*)\n(?P<shown>(?:(?!\$ ).*\n)*)", block.text, re.MULTILINE
    ):
        told, code = run_command(command["command"].replace("\\\n", " "))
        failed += [f"exit {code}"] if code else []
        outputs.append(Shown(block.start + command.start("shown"), command["shown"], told))
    assert outputs, f"a console block without a command: {block.text[:80]!r}"
    expected = [block.said] if block.mark == "fails" else []
    assert failed == expected, f"{failed}, not {expected}: {block.text[:400]}"
    return outputs


def run_command(command):
    """What a command prints, and its exit code."""
    command = re.sub(r"\s+#\s.*$", "", command)
    words = shlex.split(command)
    if words[0] == "bayeslink" and not {"|", ">", "&&"} & set(words):
        done = CliRunner().invoke(main, words[1:], prog_name="bayeslink")
        if done.exception and not isinstance(done.exception, SystemExit):
            raise done.exception
        lines = done.output.splitlines(keepends=True)
        kept = "".join(line for line in lines if "first run on this machine" not in line)
        return kept, done.exit_code
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr, done.returncode


def rewrite(path):
    """Write into a page what its blocks print, but where it leaves something open."""
    text = path.read_text("utf-8")
    with tempfile.TemporaryDirectory() as folder:
        outputs = run_page(text, folder)
    for output in reversed(outputs):
        if not output.right:
            sys.stdout.write(f"{path.name}: {output.shown.strip()[:60]!r} is not as printed\n")
            end = output.start + len(output.shown)
            said = re.sub(r"\([\d.]+ s\)", "(… s)", output.printed.strip("\n"))
            text = text[: output.start] + (said + "\n" if said else "") + text[end:]
    path.write_text(text, "utf-8")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        rewrite(Path(name).resolve())
