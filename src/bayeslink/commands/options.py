"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from bayeslink.commands.talking import LOUD


class _FileName(click.ParamType):  # type: ignore[type-arg]
    """A file or directory, which the shell completes; whether it is there is for others to say."""

    name = "path"

    def __init__(self, kind: Callable[[str], Any]) -> None:
        self.kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return self.kind(value)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return [CompletionItem(incomplete, type="file")]


FILE = _FileName(Path)
FILE_TEXT = _FileName(str)  # where it may also be the address of a database

as_json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print a machine-readable summary."
)
side_a = click.option(
    "--a", metavar="FILE", type=FILE_TEXT, help="Where input A is now, if it has moved."
)
side_b = click.option(
    "--b", metavar="FILE", type=FILE_TEXT, help="Where input B is now, if it has moved."
)


def _set_loudness(context: click.Context, option: click.Parameter, given: bool) -> None:
    if given:
        context.find_root().meta[LOUD] = 1 if option.name == "verbose" else -1


quiet = click.option(
    "-q", "--quiet", is_flag=True, expose_value=False, callback=_set_loudness,
    help="Print nothing but errors, and what --json asks for.",
)  # fmt: skip  # fmt: skip
verbose = click.option(
    "-v", "--verbose", is_flag=True, expose_value=False, callback=_set_loudness,
    help="Say what is going on, line by line.",
)  # fmt: skip  # fmt: skip
force_option = click.option(
    "--force", is_flag=True, help="Replace an earlier run in the output directory."
)


def reading(command: Callable[..., Any]) -> Callable[..., Any]:
    """How files are read: the options of commands that read two of them."""
    options = (
        click.option(
            "--missing", multiple=True, metavar="VALUE", help="A value that means missing."
        ),
        click.option(
            "--encoding", multiple=True, help="Such as cp1252 (twice: of A, then of B). [utf-8]"
        ),
        click.option("--delimiter", multiple=True, help="Told from the header unless given."),
        click.option("--skip-lines", multiple=True, type=int, help="Lines before the header. [0]"),
        click.option(
            "--table", multiple=True, help="Table or query in a database, or sheet of a workbook."
        ),
        click.option(
            "--multiline", is_flag=True, help="Cells may hold lines that look like records."
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command
