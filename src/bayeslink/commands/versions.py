"""`--version`, for people and for reports of a fault; `completion` of commands by the shell."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import click

from bayeslink import __version__
from bayeslink.commands.options import quiet, verbose
from bayeslink.commands.output import answer, tell
from bayeslink.errors import OutputError, SettingsError

_LIBRARIES = (
    "numpy", "scipy", "numba", "llvmlite", "rapidfuzz", "pyarrow", "click", "rich", "filelock",
    "tomlkit", "starlette", "uvicorn", "pandas", "polars", "duckdb", "openpyxl", "arviz", "pyspark",
    "splink",
)  # fmt: skip
_VARIABLE = "_BAYESLINK_COMPLETE"
_STARTS = {"bash": ".bashrc", "zsh": ".zshrc"}  # what a shell reads when it starts


def versions(verbose: bool) -> str:
    """The version; with all that matters to a fault, but no path and no name of a machine."""
    lines = [f"bayeslink {__version__}"]
    if verbose:
        lines += [
            f"Python {platform.python_version()} ({platform.python_implementation()})",
            f"{platform.platform()}, {os.cpu_count()} processors",
            f"encoding {sys.stdout.encoding}, of file names {sys.getfilesystemencoding()}",
            *(f"{name} {found}" for name in _LIBRARIES if (found := _installed(name))),
        ]
    return "\n".join(lines)


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


@click.command(hidden=True)
@click.argument("shell", required=False, type=click.Choice(["bash", "zsh", "fish"]))
@click.option("--install", is_flag=True, help="Have the shell complete from its next start on.")
@quiet
@verbose
@click.pass_context
def completion(ctx: click.Context, shell: str | None, install: bool) -> None:
    """Have the shell complete commands, options and file names, by the Tab key.

    Without --install, the script that does it is printed. SHELL is yours unless given.
    """
    from click.shell_completion import get_completion_class

    shell = shell or Path(os.environ.get("SHELL", "")).name
    complete = get_completion_class(shell)
    if complete is None:
        raise SettingsError("the shell is not known. Name it: bayeslink completion bash|zsh|fish")
    try:
        script = complete(ctx.find_root().command, {}, "bayeslink", _VARIABLE).source()
    except RuntimeError as error:  # of a bash that is too old
        raise SettingsError(f"{error} Use a newer one, zsh or fish.") from None
    if not install:
        answer(script)
        return
    try:
        changed = _install(shell, script)
    except OSError as error:
        raise OutputError(
            f"cannot install it: {error.strerror}. Print the script with `bayeslink completion "
            f"{shell}` and put it where your shell reads it."
        ) from None
    tell(f"Written: {', '.join(map(click.format_filename, changed))}. Start a new shell to use it.")


def _install(shell: str, script: str) -> list[Path]:
    """Put the script where the shell finds it; the files written."""
    home = Path.home()
    if shell == "fish":
        folder = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
        return [_write(folder / "fish" / "completions" / "bayeslink.fish", script)]
    if shell == "zsh":  # where nothing has set completion up
        script = "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }\n" + script
    folder = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    target = _write(folder / "bayeslink" / f"completion.{shell}", script)
    start = Path(os.environ.get("ZDOTDIR") or home if shell == "zsh" else home) / _STARTS[shell]
    line = f'[ -r "{target}" ] && . "{target}"  # bayeslink completion\n'
    before = start.read_text("utf-8") if start.exists() else ""
    if line in before:
        return [target]
    with start.open("a", encoding="utf-8") as file:
        file.write(("" if before.endswith("\n") or not before else "\n") + line)
    return [target, start]


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path
