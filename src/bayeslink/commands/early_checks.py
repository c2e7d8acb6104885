"""What a command is given, looked at before anything is imported that takes long."""

from __future__ import annotations

import os
from pathlib import Path

from bayeslink.data.locations import require_there
from bayeslink.errors import InputError


def require_run(
    run: Path, *, a: str | None = None, b: str | None = None, truth: Path | None = None
) -> None:
    """Refuse what is no run directory, and other paths at which nothing is."""
    if not os.path.exists(run / "run.json"):
        what = "there is no run.json in it" if run.is_dir() else "there is no such directory"
        raise InputError(
            f"cannot read {run}: {what}. Give the directory that `bayeslink link -o` wrote."
        )
    for what, path in (("A", a), ("B", b), ("(--truth)", truth)):
        require_there(path, what)
