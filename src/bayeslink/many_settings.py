"""The options of linking several files: those of a deduplication, and which hold people twice."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from bayeslink.dedupe_settings import NOT_HERE, DedupeSettings
from bayeslink.errors import SettingsError
from bayeslink.options import INPUT, key, option

_NAME = re.compile(r"[^\s:/\\;,=]+")


def _checked_files(given: Any) -> Any:
    """Files by name: as a mapping, or as `name=path` and plain paths."""
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise SettingsError(
            "files must be a mapping of names to files, such as "
            '{"census": "census.csv", "tax": "tax.csv"}.'
        )
    if len(given) < 2:
        raise SettingsError(
            "link_many takes two files or more. For the people of one file: bl.dedupe(file), "
            "`bayeslink dedupe FILE -o OUT`."
        )
    for name in given:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise SettingsError(
                f"{name!r} cannot name a file: names have no spaces and none of : ; , = / \\. Give "
                "another: NAME=PATH."
            )
    return dict(given)


def named(paths: Sequence[str]) -> dict[str, str]:
    """Files by name, from `name=path` or the name of the file itself."""
    found: dict[str, str] = {}
    for path in paths:
        name, equals, rest = path.partition("=")
        if not equals or os.sep in name:
            stem = os.path.basename(path.rstrip(os.sep)).split(".")[0]
            name, rest = re.sub(r"[\s:;,=\\]+", "_", stem), path
        if name in found:
            raise SettingsError(
                f"two files are called {name!r}. Name them: bayeslink link-many "
                f"{name}1={found[name]} {name}2={rest} -o OUT."
            )
        found[name] = rest
    return found


def _checked_duplicates(given: Any) -> tuple[str, ...]:
    names = (given,) if isinstance(given, str) else tuple(given or ())
    if not all(isinstance(name, str) for name in names):
        raise SettingsError('duplicates takes names of files, such as duplicates=("tax",).')
    return tuple(dict.fromkeys(names))


def _checked_columns(given: Any) -> dict[str, dict[str, str]]:
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(v, Mapping) for v in given.values()):
        raise SettingsError(
            "columns says what columns are called in the first file, by file: "
            '{"tax": {"nachname": "surname"}}.'
        )
    return {name: dict(columns) for name, columns in given.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class ManySettings(DedupeSettings):
    """Everything that can be chosen in linking several files."""

    WITHOUT: ClassVar[tuple[str, ...]] = (*NOT_HERE, "a")
    TOML: ClassVar[str] = "link-many.toml"

    files: Any = option(
        None,
        key("files", "The files, by name.", (dict,), flag=False, path=True),
        check=_checked_files,
    )
    duplicates: Sequence[str] = option(
        (),
        key(
            "duplicates", "A file in which people may be more than once (again for each). [none]",
            (list, str), list, multiple=True, metavar="NAME", group=INPUT,
        ),
        doc="Names of the files in which people may be more than once. In the others nobody is.",
        check=_checked_duplicates,
        split=lambda names: {"duplicates": list(names) or None},
    )  # fmt: skip
    columns: Mapping[str, Mapping[str, str]] = option(
        None,
        key("columns", "What columns are called in the first file, by file.", (dict,), flag=False),
        doc="Columns that are called otherwise than in the first file, by file: "
        '{"tax": {"nachname": "surname"}}. Unless given, they are found by what is in them.',
        check=_checked_columns,
        split=lambda columns: {"columns": {k: dict(v) for k, v in (columns or {}).items()} or None},
    )

    def clean(self, names: Sequence[str]) -> tuple[int, ...]:
        """Numbers of the files in which nobody is twice."""
        if unknown := [name for name in self.duplicates if name not in names]:
            raise SettingsError(
                f"duplicates names {unknown[0]!r}, and the files are {', '.join(names)}."
            )
        return tuple(k for k, name in enumerate(names) if name not in self.duplicates)
