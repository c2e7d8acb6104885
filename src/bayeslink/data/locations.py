"""What an input is given by: a path, the address of a database, standard input."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from bayeslink.errors import InputError

STDIN = "-"
_DESCRIPTORS = "/proc/self/fd"  # of Linux, where each can be opened anew, at its start
_URL = re.compile(r"\s*(postgres|postgresql)://", re.IGNORECASE)
_SETTINGS = re.compile(r"\s*(\w+\s*=.*\s)?password\s*=", re.IGNORECASE | re.DOTALL)


def is_url(source: Any) -> bool:
    """Whether this is the address of a Postgres database, or such as "host=… password=…"."""
    return isinstance(source, str) and bool(_URL.match(source) or _SETTINGS.match(source))


def is_path(source: Any) -> bool:
    """Whether this is a file or folder that can be read again by its name."""
    return isinstance(source, str | os.PathLike) and str(source) != STDIN and not is_url(source)


def place_of(source: str | os.PathLike[str], side: str) -> str:
    """Which input a message is about, where it is given by a path."""
    label = shown(source)
    return f"input {side}, {label if label.isprintable() else repr(label)}"


def refuse_empty(source: Any, side: str) -> None:
    """Refuse a path without a letter, which would be the working directory."""
    if isinstance(source, str) and not source:
        raise InputError(
            f"input {side}: its path is empty. Give the path of a file; '.' means the Parquet "
            "files of the working directory."
        )


def require_there(source: Any, side: str) -> None:
    """Refuse a path at which nothing is, before anything that takes long."""
    if isinstance(source, list | tuple):  # of parts
        for part in source:
            require_there(part, side)
        return
    refuse_empty(source, side)
    if not is_path(source):
        return
    try:
        os.stat(source)
    except OSError as error:
        raise InputError(
            f"{place_of(source, side)}: cannot be read ({error.strerror}). Check the path and its "
            "permissions."
        ) from None
    except ValueError:  # NUL in the name
        raise InputError(
            f"{place_of(source, side)}: cannot be read, not a possible path."
        ) from None


def shown(source: str | os.PathLike[str]) -> str:
    """A path, or an address without user and password, for messages and run.json."""
    text = os.fsencode(source).decode("utf-8", "backslashreplace")
    if text == STDIN:
        return "standard input"
    if _SETTINGS.match(text):
        return "a Postgres database"
    scheme, is_address, rest = text.partition("://")
    if not is_address:
        return text
    hidden, _, place = rest.rpartition("@")  # a password may hold @ / ? itself
    return f"{scheme}://{'…' if '?' in hidden else place.split('?')[0]}"


@cache
def stdin_file() -> Path:
    """Standard input as a file that is its owner's alone and gone when the program ends; read once.

    Where the system has a path to files without a name, it has none: so it is gone however the
    program ends.
    """
    nameless = os.path.isdir(_DESCRIPTORS)
    made: Any = tempfile.TemporaryFile() if nameless else tempfile.NamedTemporaryFile()  # noqa: SIM115
    atexit.register(made.close)  # which deletes it
    shutil.copyfileobj(sys.stdin.buffer, made)
    made.flush()
    if not made.tell():
        from bayeslink.data.headers import no_records  # late: this module is light to import

        raise no_records("standard input")
    return Path(f"{_DESCRIPTORS}/{made.fileno()}" if nameless else made.name)


def located(source: Any) -> Any:
    """Where a source is: standard input becomes a file."""
    return (
        stdin_file() if isinstance(source, str | os.PathLike) and str(source) == STDIN else source
    )


# --- inputs in several parts: a list of files or tables, one below another -----------------------


def parts_of(source: Any) -> tuple[Any, ...] | None:
    """The parts of an input that is given as a list; None of any other."""
    return tuple(source) if isinstance(source, list | tuple) else None


def each_part(source: Any) -> tuple[Any, ...]:
    """The parts of an input, which may be one."""
    return (source,) if (parts := parts_of(source)) is None else parts


def as_parts(change: Callable[[Any], Any], source: Any) -> Any:
    """An input with each of its parts changed."""
    parts = parts_of(source)
    return change(source) if parts is None else [change(part) for part in parts]


def paths_of(source: Any) -> str | list[str] | None:
    """The path of an input, or those of its parts; None where one of them has none."""
    if not all(map(is_path, each_part(source))):
        return None
    found: str | list[str] = as_parts(str, source)
    return found


def from_folder_on(folder: str, source: Any) -> Any:
    """An input whose paths lead from a folder."""
    return as_parts(lambda part: os.path.join(folder, part) if is_path(part) else part, source)
