"""How far a long piece of work is: a bar with the time left, where a person looks on."""

from __future__ import annotations

import functools
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

Progress = Callable[[str], None]
P = ParamSpec("P")
T = TypeVar("T")

_PATIENCE = 2.0  # seconds before anything is shown
_SHARE = re.compile(r"(\d+)\s?%")
_NUMBER = re.compile(r"\d[\d,.]*")


@contextmanager
def bar(show: bool | None = None) -> Iterator[Progress]:
    """A function that takes what is going on; shown on a terminal or in a notebook only.

    A message with a percentage moves the bar; one that differs in more than numbers starts its
    clock anew. Nothing is shown of what takes under two seconds.
    """
    if not (is_watched() if show is None else show):
        yield lambda message: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Shown

    columns = (
        TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(),
        TextColumn("left:"), TimeRemainingColumn(),
    )  # fmt: skip
    shown = Shown(*columns, console=Console(stderr=True), transient=True)
    task = shown.add_task("starting", total=None)
    began, lock = time.monotonic(), threading.Lock()

    def progress(message: str) -> None:
        with lock:
            share = _SHARE.search(message)
            what = _SHARE.sub("", message).rstrip(" :")
            before = shown.tasks[0].description
            if _NUMBER.sub("", before) != _NUMBER.sub("", what):  # something else goes on
                shown.reset(task, total=100 if share else None)
            shown.update(task, description=what)
            if share:
                shown.update(task, completed=int(share[1]), total=100)
            if not shown.live.is_started and time.monotonic() - began > _PATIENCE:
                shown.start()

    try:
        yield progress
    finally:
        if shown.live.is_started:
            shown.stop()


def is_watched() -> bool:
    """Whether a person sees it: on a terminal, or in a notebook."""
    try:
        if sys.stderr is not None and sys.stderr.isatty():
            return True
    except ValueError:  # closed
        return False
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return type(shell).__name__ == "ZMQInteractiveShell"


def with_bar(function: Callable[P, T]) -> Callable[P, T]:
    """Show a bar while `function` works, unless its caller gives a `progress` of their own."""

    @functools.wraps(function)
    def shown(*arguments: P.args, **options: P.kwargs) -> T:
        if "progress" in options:
            return function(*arguments, **options)
        with bar() as progress:
            given: dict[str, Any] = {**options, "progress": progress}
            return function(*arguments, **given)

    return shown


class Clock:
    """Seconds by phase."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._since = time.perf_counter()

    def tick(self, phase: str) -> None:
        now = time.perf_counter()
        self.seconds[phase], self._since = round(now - self._since, 4), now
