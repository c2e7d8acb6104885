"""Who may read what is written: the owner alone, or the group too where that was asked for."""

import os
from pathlib import Path
from typing import Any

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
