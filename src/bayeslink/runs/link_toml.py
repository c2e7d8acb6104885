"""link.toml: the settings of a linkage as a file, which people write by hand and every run does.

Paths in it are seen from the folder it lies in: it means the same from any working directory, and
may move together with the files it names. A setting that differs between the files is a list of
two, with "" (for `id`, []) where a file has none; `missing` is a table then:

    encoding = ["cp1252", ""]
    missing = {a = ["NA"], b = ["999", "?"]}
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

import tomlkit

from bayeslink.comparing.fields import GIVEN, Field
from bayeslink.errors import InputError, OutputError, SettingsError, reason_of
from bayeslink.options import TYPE_NAMES
from bayeslink.plain import plain
from bayeslink.private import written_whole
from bayeslink.settings import LinkSettings

FILE = "link.toml"
_PATHS = (
    *(name for name, key in LinkSettings.keys().items() if key.is_path and key.types),
    "output",
    "files",  # of several
    "earlier",  # of people who are updated
)


def keys_of(options: type[LinkSettings] = LinkSettings) -> dict[str, tuple[type, ...]]:
    """What a file of these settings may say, and the types that each takes."""
    own = {name: key.types for name, key in options.keys().items() if key.types}
    return {**own, "output": (str,)}


KEYS = keys_of()


def load(path: str | Path, of: type[LinkSettings] = LinkSettings) -> dict[str, Any]:
    """Read a link.toml, checking every key and type; its paths lead from the working directory."""
    keys = keys_of(of)
    try:
        settings = tomllib.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}. Check the path.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is not valid TOML: {error}.") from None
    for key, value in settings.items():
        if key not in keys:
            near = get_close_matches(key, keys, 1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise SettingsError(f"{path}: unknown key {key!r}.{hint} Allowed: {', '.join(keys)}.")
        if not isinstance(value, keys[key]) or (isinstance(value, bool) and bool not in keys[key]):
            wanted = " or ".join(TYPE_NAMES[t] for t in keys[key])
            raise SettingsError(f"{path}: {key} must be {wanted}, got {type(value).__name__}.")
    from_here = partial(_from_here, Path(path).parent)
    return {k: _each(from_here, v) if k in _PATHS else v for k, v in settings.items()}


def dump(settings: LinkSettings, folder: str | Path | None = None) -> str:
    """The settings as link.toml; its paths lead from `folder`, in which the file will lie."""
    document = tomlkit.document()
    for key, value in settings.entries().items():
        if key in _PATHS and folder is not None:
            value = _each(partial(from_folder, folder, started_in=settings.started_in), value)
        readable = _each(_readable, value)
        if readable != value:  # a path with stray bytes, which TOML cannot hold
            said = f"{key} = {item(readable).as_string()}"
            document.add(tomlkit.comment(f"{said} is not UTF-8: give it on the command line"))
        elif key == "id" and value == []:
            document.add(key, item(value).comment("the rows are numbered"))
        else:
            document.add(key, item(value))
    fields = tomlkit.aot()
    for field in settings.fields:
        fields.append(_field_table(field))
    document.add("fields", fields)
    return tomlkit.dumps(document)


def refuse_existing_file(path: Path, *, force: bool) -> None:
    """Say so before the work, not after it."""
    if not force and os.path.lexists(path):
        raise _exists(path)


def _exists(path: Path) -> OutputError:
    return OutputError(
        f"{path} exists. Nothing was written. Choose another name with -o, or say --force to "
        "replace it."
    )


def write_new(path: Path, text: str, *, force: bool) -> None:
    """Write a link.toml, over one that is there only if told so."""
    try:
        with written_whole(path, new=not force) as file:
            file.write(text.encode())
    except FileExistsError:
        raise _exists(path) from None
    except (OSError, ValueError) as error:
        raise OutputError(
            f"{path} cannot be written ({reason_of(error)}). Choose a "
            "name in a directory that exists."
        ) from None


def _field_table(field: Field) -> Any:
    table = tomlkit.table()
    if field.kind == "custom":
        table.add(tomlkit.comment("a Python function: this field can only be given from Python"))
    if field.kind == GIVEN:
        table.add(tomlkit.comment("levels that came with the pairs"))
    table.update(field.settings)
    return table


def item(value: Any) -> Any:
    """A value as link.toml has it."""
    if not isinstance(value, dict):
        return tomlkit.item(value)
    table = tomlkit.inline_table()  # on one line, as everything else
    table.update(value)
    return table


# --- paths ------------------------------------------------------------------------------------


def _each(change: Callable[[str], str], value: Any) -> Any:
    """The text, or each text of a list, changed; "" is none."""
    if isinstance(value, list):
        return [_each(change, part) for part in value]
    if isinstance(value, dict):
        return {name: _each(change, part) for name, part in value.items()}
    return change(value) if isinstance(value, str) and value else value


def _from_here(folder: Path, path: str) -> str:
    """A path that leads from `folder`, as one that leads from the working directory."""
    return _tidied(os.path.join(folder, path))


def from_folder(folder: str | Path, path: str, started_in: str = ".") -> str:
    """A path that led from the directory `started_in`, as one that leads from `folder`."""
    path = _tidied(os.path.join(started_in, path))
    try:
        return os.path.relpath(path, folder)
    except ValueError:  # on another drive
        return path


def _tidied(path: str) -> str:
    """Without "..", unless that would be another place: beyond a symbolic link it may."""
    tidy = os.path.normpath(path)
    try:
        return tidy if os.path.realpath(tidy) == os.path.realpath(path) else os.path.realpath(path)
    except ValueError:  # a NUL, which whoever opens the file will tell
        return path


def without_folders(text: str) -> str:
    """A link.toml whose paths tell the names of files alone, to be shown to others."""
    try:
        document = tomlkit.parse(re.sub(r"(?m)^#.*is not UTF-8.*$", "# a path is not UTF-8", text))
    except tomlkit.exceptions.TOMLKitError as error:
        raise InputError(
            f"the run's link.toml is not valid TOML: {error}. Correct it, or link the files again."
        ) from None
    for key in set(_PATHS) & document.keys():
        document[key] = _each(lambda path: re.split(r"[\\/]", path)[-1], plain(document[key]))
    return tomlkit.dumps(document)


def _readable(text: str) -> str:
    """With bytes that are no UTF-8 spelled out."""
    return text.encode("utf-8", "backslashreplace").decode()
