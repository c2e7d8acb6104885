"""Standard streams that may be closed, full, or cut off; of the command line."""

from __future__ import annotations

import os
import sys
from contextlib import suppress


def open_all() -> None:
    """Reopen closed stdin, stdout or stderr on /dev/null: no data file may take their number."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "r" if number == 0 else "w", closefd=False))  # noqa: SIM115


def silence() -> None:
    """Discard what is still to be written, so that Python does not complain at exit."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, AttributeError):
                os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
