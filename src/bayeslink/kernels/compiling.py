"""Other processes that compile kernels while this one goes on: on the first run on a machine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from threading import Condition, Thread

LISTEN = "bayeslink compiles"  # name of the threads that hear from them
_LOOK = 0.2  # seconds; some systems cannot interrupt a thread that waits
_CODE = "import sys; from bayeslink.kernels import compile_here; compile_here(sys.argv[1:])"

_ready = Condition()
_processes: list[subprocess.Popen[bytes]] = []
_awaited: set[str] = set()  # modules that are still to come
_show: Callable[[int], None]  # told how many


def start(
    groups: Iterable[Sequence[str]], show: Callable[[int], None], finish: Callable[[], None]
) -> None:
    """Have the kernels of some modules compiled, each group by a process of its own.

    While `wait_for` waits, `show` is told how many modules are still to come; `finish` is called
    when all have come.
    """
    global _show
    _show = show
    if _awaited:
        return  # they are at it
    _processes.clear()  # those that were abandoned must not count
    started = []
    for modules in groups:
        process = subprocess.Popen(
            [sys.executable, "-c", _CODE, *modules],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        started.append((process, modules))
        _processes.append(process)
        _awaited.update(modules)
    for process, modules in started:
        Thread(target=_listen, args=(process, modules, finish), name=LISTEN).start()


def _listen(
    process: subprocess.Popen[bytes], modules: Sequence[str], finish: Callable[[], None]
) -> None:
    """Hear which modules are done; when the process ends, no more of them are to come."""
    with process:
        for line in process.stdout or ():
            _come(line.decode().split())
    with _ready:
        if all(each.poll() == 0 for each in _processes):
            with suppress(OSError):  # a full disk: the next run will try again
                finish()
    _come(modules)


def _come(modules: Iterable[str]) -> None:
    with _ready:
        _awaited.difference_update(modules)
        _ready.notify_all()


def wait_for(module: str) -> None:
    """Wait as long as another process is to compile a module."""
    with _ready:
        while module in _awaited:
            _show(len(_awaited))
            _ready.wait(_LOOK)


def abandon() -> None:
    """End the processes: nobody waits for what they make any more."""
    for process in _processes:
        process.terminate()


def _forget() -> None:
    """In a fork: it cannot wait for them, for they are not its children."""
    global _ready
    _ready = Condition()
    _processes.clear()
    _awaited.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
