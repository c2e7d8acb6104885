"""Versions for a report of a fault, and completion by the shell."""

import platform
import re
import shutil
import subprocess
from importlib.metadata import version

import pytest
from click.testing import CliRunner

from bayeslink import __version__
from bayeslink.cli import main


def run(*words, **environment):
    return CliRunner().invoke(main, [*words], prog_name="bayeslink", env=environment)


@pytest.mark.parametrize("words", [["--version", "--verbose"], ["-v", "--version"]])
def test_all_versions_and_nothing_private(words):
    done = run(*words)
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[0] == f"bayeslink {__version__}"
    assert f"numpy {version('numpy')}" in lines
    assert f"pyarrow {version('pyarrow')}" in lines
    assert platform.python_version() in done.stdout
    words = set(re.split(r"[\s,()]+", done.stdout))
    assert platform.node() not in words - {""}
    assert not any("/" in word for word in words)


def test_the_version_alone_is_one_line():
    assert run("--version").stdout == f"bayeslink {__version__}\n"
    assert run("-v").exit_code == 2
    assert run().exit_code == run("--nonsense").exit_code == 2


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("bayeslink resu", "plain,resume"),
        ("bayeslink link --overlap-", "plain,--overlap-beta"),
        ("bayeslink link a", "file,a"),
        ("bayeslink explain ou", "file,ou"),
        ("bayeslink join out --how l", "plain,left"),
    ],
)
def test_tab_completes_commands_options_and_files(words, expected):
    place = str(len(words.split()) - 1)
    done = run(_BAYESLINK_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=place)
    assert done.stdout.splitlines() == [expected]


@pytest.mark.parametrize(
    ("shell", "files"),
    [
        ("bash", [".local/share/bayeslink/completion.bash", ".bashrc"]),
        ("zsh", [".local/share/bayeslink/completion.zsh", ".zshrc"]),
        ("fish", [".config/fish/completions/bayeslink.fish"]),
    ],
)
def test_one_command_installs_it_once(shell, files, tmp_path):
    if shell == "bash":
        (tmp_path / ".bashrc").write_text("alias ll='ls -l'")  # without an end of line
    home = {"HOME": str(tmp_path), "USERPROFILE": str(tmp_path), "SHELL": f"/usr/bin/{shell}"}
    home |= dict.fromkeys(("XDG_DATA_HOME", "XDG_CONFIG_HOME", "ZDOTDIR"))
    for _ in range(2):
        done = run("completion", "--install", **home)
        assert done.exit_code == 0, done.output
        assert str(tmp_path / files[0]) in done.stdout
    assert sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()) == (
        sorted(files)
    )
    assert run("completion", shell).stdout.strip() in (tmp_path / files[0]).read_text()
    if len(files) > 1:
        assert (tmp_path / files[1]).read_text().count("# bayeslink completion\n") == 1
    if shell == "bash":
        assert (tmp_path / ".bashrc").read_text().startswith("alias ll='ls -l'\n")
    if shutil.which(shell):
        subprocess.run([shell, "-n", tmp_path / files[0]], check=True)


def test_a_shell_that_is_not_known():
    done = run("completion", SHELL="/bin/csh")
    assert done.exit_code == 2
    assert "bash|zsh|fish" in done.stderr
