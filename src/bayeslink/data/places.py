"""What an input is given by: a path, the address of a database, standard input."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from bayeslink.errors import InputError

STDIN = "-"
_URL = re.compile(r"^(postgres|postgresql)://", re.IGNORECASE)


def is_url(source: Any) -> bool:
    """Whether this is the address of a Postgres database."""
    return isinstance(source, str) and _URL.match(source) is not None


def is_path(source: Any) -> bool:
    """Whether this is a file or folder that can be read again by its name."""
    return isinstance(source, str | os.PathLike) and str(source) != STDIN and not is_url(source)


def label_of(source: str | os.PathLike[str]) -> str:
    """What an input that is given by a path is called."""
    label = os.fsencode(source).decode("utf-8", "backslashreplace")
    return "standard input" if label == STDIN else label


def place_of(source: str | os.PathLike[str], side: str) -> str:
    """Which input a message is about, where it is given by a path."""
    label = label_of(source)
    return f"input {side}, {label if label.isprintable() else repr(label)}"


def require_there(source: Any, side: str) -> None:
    """Refuse a path at which nothing is, before anything that takes long."""
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


def shown_url(url: str) -> str:
    """The address without user and password, for messages and run.json."""
    return re.sub(r"://[^@/]*@", "://", url.split("?")[0])


@cache
def stdin_file() -> Path:
    """Standard input as a file, which is gone when the program ends; read once."""
    folder = tempfile.mkdtemp(prefix="bayeslink-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = Path(folder) / "stdin"
    with path.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    if not path.stat().st_size:
        from bayeslink.data.delimited import no_records  # late: this module is light to import

        raise no_records("standard input")
    return path


def located(source: Any) -> Any:
    """Where a source is: standard input becomes a file."""
    return (
        stdin_file() if isinstance(source, str | os.PathLike) and str(source) == STDIN else source
    )
