"""A run that was interrupted: what it was asked, and the work that it has done."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

from bayeslink.checkpoints import Checkpoints
from bayeslink.errors import InputError
from bayeslink.plain import plain
from bayeslink.runs.run_directory import Claim, unfinished

_FOLDER = "checkpoints"
_ASKED, _FROM = "the command", "the working directory"


@contextmanager
def checkpoints_of(
    held: Claim,
    asked: Mapping[str, Any],
    settings: Mapping[str, Any],
    *,
    command: str = "link",
    resumed: bool,
    kept: Callable[[Path], object],
) -> Iterator[Checkpoints]:
    """Checkpoints of a command, beside its output; they stay if it does not get to its end.

    Unless the command is `resumed`, what is there is removed. `kept` is told the output where
    there is something to go on from.
    """
    folder = held.work / _FOLDER
    if not resumed:
        shutil.rmtree(folder, ignore_errors=True)
    checkpoints = Checkpoints(folder)
    words = {**{key: plain(value) for key, value in asked.items()}, "command": command}
    told = sorted((key, repr(value)) for key, value in settings.items())
    facts = {
        _ASKED: checkpoints.bound.get(_ASKED, json.dumps(words)),
        _FROM: os.getcwd(),
        "one of the settings": sha256(repr(told).encode("utf-8", "replace")).hexdigest(),
    }
    try:
        checkpoints.bind(facts)
        yield checkpoints
    except BaseException:
        if checkpoints:
            held.keep = True
            kept(held.target)
        raise


def what_was_asked(output: str) -> tuple[dict[str, Any], Path]:
    """The parameters of the command that was interrupted, and where it was given."""
    folder = unfinished(output) / _FOLDER
    bound = Checkpoints(folder).bound
    try:
        asked, place = json.loads(bound[_ASKED]), Path(bound[_FROM])
        if not isinstance(asked, dict):
            raise ValueError
    except (KeyError, ValueError):
        raise InputError(
            f"there is no interrupted run to {output}. Either it is complete, or it never came so "
            "far: bayeslink link starts it."
        ) from None
    asked["config"] = asked.get("config") and Path(asked["config"])
    if not place.is_dir():
        raise InputError(f"{place}, where the run was started, is gone. Start anew.")
    return {key: _as_click_has_it(value) for key, value in asked.items()}, place


def _as_click_has_it(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
