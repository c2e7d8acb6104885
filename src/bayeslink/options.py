"""Options of a command: each is one attribute of a frozen dataclass.

An attribute made by `option` carries its default, its check, its words for people, its flag on the
command line and its key in the settings file. What Python, the command line and the file take is
derived from it (`Options.of`, `Options.keys`, `Options.entries`).
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from textwrap import wrap
from typing import Any, ClassVar, NamedTuple, Self

from bayeslink.errors import SettingsError
from bayeslink.plain import plain

Entries = dict[str, Any]  # plain data, by key of the settings file
TYPE_NAMES = {
    str: "text",
    list: "a list",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    dict: "a table",
}


GROUPS = BASICS, INPUT, MODEL, RESOURCES, SPARK = "Basics", "Input", "Model", "Resources", "Spark"


class Key(NamedTuple):
    """An option as the settings file and the command line say it."""

    name: str
    help: str
    types: tuple[type, ...]  # that the settings file takes; none: it is not said there
    flag: Mapping[str, Any] | None  # arguments of click.option; None: no flag of its own
    parse: Callable[[Any], Any] | None  # what the flag gives -> as the settings file has it
    is_path: bool
    repeated: bool  # written to the settings file of a run: it changes results
    group: str  # under which the help of a command lists it


class Argument(NamedTuple):
    """An argument in Python: its keys, and how it comes from them and goes back."""

    doc: str  # for Python
    keys: tuple[Key, ...]
    check: Callable[[Any], Any]  # plain data or Python's form -> Python's form
    join: Callable[[Entries], Any]
    split: Callable[[Any], Entries]


def key(
    name: str,
    help: str,
    types: tuple[type, ...] = (),
    parse: Callable[[Any], Any] | None = None,
    *,
    flag: bool = True,
    path: bool = False,
    repeated: bool = True,
    group: str = MODEL,
    **click: Any,
) -> Key:
    """A key of the settings file, and a flag of its name unless told otherwise."""
    return Key(name, help, types, click if flag else None, parse, path, repeated, group)


def _as_given(value: Any) -> Any:
    return value


def option(
    default: Any,
    *keys: Key,
    doc: str = "",
    check: Callable[[Any], Any] = _as_given,
    join: Callable[[Entries], Any] | None = None,
    split: Callable[[Any], Entries] | None = None,
) -> Any:
    """An attribute of `Options`; one of several keys says how they `join` and `split`."""
    name = keys[0].name if keys else ""
    argument = Argument(
        doc or (keys[0].help if keys else ""),
        keys,
        check,
        join or (lambda entries: entries[name]),
        split or (lambda v: {name: v}),
    )
    return dataclasses.field(default=default, metadata={"argument": argument})


class Options:
    """What the dataclasses of options share."""

    __slots__ = ()
    WITHOUT: ClassVar[tuple[str, ...]] = ()  # inherited attributes that are no options here

    @classmethod
    def arguments(cls) -> dict[str, Argument]:
        """Every argument by name, with its keys."""
        own = {f.name: f.metadata["argument"] for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
        return {name: argument for name, argument in own.items() if name not in cls.WITHOUT}

    @classmethod
    def keys(cls) -> dict[str, Key]:
        """Every option that the settings file or the command line has, by its key."""
        return {key.name: key for argument in cls.arguments().values() for key in argument.keys}

    @classmethod
    def names(cls) -> list[str]:
        """What Python takes by name: arguments, and the keys that some of them stand for."""
        return [*dict.fromkeys([*cls.arguments(), *cls.keys()])]

    @classmethod
    def of(cls, **given: Any) -> Self:
        """Options from arguments in Python's form, or from plain data by key, checked."""
        values = {}
        for name, argument in cls.arguments().items():
            said = _said(name, argument, given)
            if said is not given.get(name):
                said = argument.join(said)
            if name in given or said is not None:
                values[name] = argument.check(said)
        if unknown := [name for name in given if name not in cls.names()]:
            near = get_close_matches(unknown[0], cls.names(), 1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            allowed = ", ".join(cls.names())
            raise TypeError(f"there is no option {unknown[0]!r}.{hint} Options: {allowed}.")
        return cls(**values)

    def changed(self, **changes: Any) -> Self:
        """The same with some options changed."""
        checked = type(self).of(**changes)
        new = {
            name: getattr(checked, name)
            for name, argument in self.arguments().items()
            if name in changes or _said(name, argument, changes) is not None
        }
        return dataclasses.replace(self, **new)  # type: ignore[type-var]

    def entries(self) -> Entries:
        """What there is to write to the settings file, as plain data."""
        found: Entries = {}
        for name, argument in self.arguments().items():
            split = argument.split(getattr(self, name)) if argument.keys else {}
            kept = {key.name for key in argument.keys if key.repeated and key.types}
            found |= {k: plain(v) for k, v in split.items() if k in kept and v is not None}
        return found


def _said(name: str, argument: Argument, given: Mapping[str, Any]) -> Any:
    """What was given of an argument: itself, or some of the keys that it stands for."""
    several = [key.name for key in argument.keys if key.name != name]
    entries = {key: given[key] for key in several if given.get(key) is not None}
    if entries and given.get(name) is not None:
        raise SettingsError(f"give {name}= or {next(iter(entries))}=, not both.")
    return entries or given.get(name)


def described(options: type[Options], without: tuple[str, ...] = ()) -> str:
    """The options, for the docstring of a function that takes them by name."""
    lines = []
    for name, argument in options.arguments().items():
        if argument.doc and name not in without:
            lines += [f"    {name}", *(f"        {line}" for line in wrap(argument.doc, 88))]
    return "\n".join(lines)


def signature_of(
    function: Callable[..., Any], options: type[Options], without: tuple[str, ...] = ()
) -> inspect.Signature:
    """The signature of a function that takes `**options`, with each of them by name."""
    own = inspect.signature(function)
    told = [p for p in own.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    defaults = {f.name: f.default for f in dataclasses.fields(options)}  # type: ignore[arg-type]
    named = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=defaults.get(name))
        for name in options.names()
        if name not in without
    ]
    return own.replace(parameters=[*told, *named])
