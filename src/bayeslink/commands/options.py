"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from bayeslink.commands.output import LOUD
from bayeslink.options import BASICS, GROUPS, Key
from bayeslink.settings import READING, LinkSettings

_Command = TypeVar("_Command", bound=Callable[..., Any])


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


class Grouped(click.Command):
    """A command whose help lists its options by what they are about."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a section for each group; what belongs to none is basic."""
        groups: dict[str, list[tuple[str, str]]] = {name: [] for name in GROUPS}
        for flag in self.get_params(ctx):
            if isinstance(flag, click.Option) and (record := flag.get_help_record(ctx)):
                groups[getattr(flag, "group", BASICS)].append(record)
        for name, records in groups.items():
            if records:
                with formatter.section(name):
                    formatter.write_dl(records)


class _OfGroup(click.Option):
    def __init__(self, *args: Any, group: str, **given: Any) -> None:
        super().__init__(*args, **given)
        self.group = group


def option(*flags: str, group: str, **given: Any) -> Callable[[_Command], _Command]:
    """`click.option` in a group of the help of a `Grouped` command."""
    return click.option(*flags, cls=_OfGroup, group=group, **given)


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


def settings_options(
    *names: str, of: type[LinkSettings] = LinkSettings, without: tuple[str, ...] = ()
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The flags of these settings, or of all: see `bayeslink.settings`."""
    wanted = [key for key in of.keys().values() if key.flag is not None]
    wanted = [key for key in wanted if key.name not in without]
    if names:
        wanted = [key for key in wanted if key.name in names]

    def with_options(command: Callable[..., Any]) -> Callable[..., Any]:
        for key in reversed(wanted):
            command = _click_option(key)(command)
        return command

    return with_options


def _click_option(key: Key) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    given = dict(key.flag or {})
    flags = given.pop("flags", (f"--{key.name.replace('_', '-')}",))
    if choices := given.pop("choices", None):
        given["type"] = click.Choice(choices)
    elif key.is_path:
        given["type"] = FILE_TEXT
    if given.get("is_flag"):
        given["default"] = None  # not said, rather than false: link.toml may say it
    return option(*flags, key.name, group=key.group, help=key.help, **given)


reading = settings_options(*(key for key in READING if key != "quarantine"))


def said(flags: Mapping[str, Any], of: type[LinkSettings] = LinkSettings) -> dict[str, Any]:
    """Flags that were given, as link.toml has them; a command may lack some."""
    entries: dict[str, Any] = {}
    for name, key in of.keys().items():
        value = flags.get(name)
        if value is None or value == ():
            continue
        if key.parse is not None:
            value = key.parse(value)
        elif isinstance(value, tuple):
            value = list(value) if len(value) > 1 else value[0]
        entries[name] = value
    if flags.get("on"):
        from bayeslink.comparing.parsing import fields_on

        entries["fields"] = fields_on(flags["on"])
    if flags.get("no_id"):
        entries["id"] = None
    elif flags.get("ids"):
        entries["id"] = list(flags["ids"])
    return entries
