"""Who may read what is written: the owner alone, or the group too where that was asked for."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

OWNER, GROUP = 0o600, 0o640


def mode_within(folder: Path) -> int:
    """The mode of a new file in a folder: the group's too where a run was shared with it."""
    try:
        mode = folder.stat().st_mode
    except OSError:
        return OWNER
    return GROUP if mode & 0o055 == 0o050 else OWNER  # one open to all was not made by a run


def opened(path: Any, flags: int) -> int:
    """For `open(…, opener=)`: a new file that its owner alone may read."""
    return os.open(path, flags, OWNER)


@contextmanager
def written_whole(path: Path, *, new: bool = False, mode: int | None = None) -> Iterator[IO[bytes]]:
    """A file to write to, which is at `path` once all is written, and else nowhere.

    What is there already is replaced, unless the file must be `new`. Devices and pipes are
    written to as they are.
    """
    if os.path.exists(path) and not os.path.isfile(path) and not new:
        with open(path, "wb") as file:
            yield file
        return
    if new:
        scratch, handle = str(path), opened(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    else:
        handle, scratch = tempfile.mkstemp(prefix=".bayeslink-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        os.chmod(scratch, mode_within(path.parent) if mode is None else mode)
        os.replace(scratch, path)
    except BaseException:
        os.unlink(scratch)
        raise
