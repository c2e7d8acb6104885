"""Work in threads that Ctrl-C can stop.

Python raises KeyboardInterrupt in the main thread, between two steps of its own code: not within
compiled code, and not in other threads. So compiled code is called for a fraction of a second at a
time (`slices`, or tasks that are short), the main thread waits in a way that can be interrupted,
and threads whose work is no longer wanted stop at the next `check`.
"""

from __future__ import annotations

import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from types import FrameType
from typing import Any, Protocol, TypeVar

NAME = "bayeslink"  # how the names of threads begin
SECONDS = 0.1  # that compiled code may go on before it is asked whether to stop
_LOOK = 0.2  # seconds; some systems cannot interrupt a thread that waits
_WORTH = 2.0  # seconds of one CPU, by estimate, below which work is not sent to other machines

T = TypeVar("T")
U = TypeVar("U")
_here = threading.local()


class StoppedError(Exception):
    """Raised within a thread whose work is no longer wanted; `run_all` keeps it to itself."""


def check() -> None:
    """Go no further if the work of this thread is no longer wanted."""
    stop = getattr(_here, "stop", None)
    if stop is not None and stop.is_set():
        raise StoppedError


class Shared:
    """What other machines are sent once, and keep: work that speaks of it again names it only."""


class Workers(Protocol):
    """Other machines, which can be given pieces of work."""

    threads: int  # of this process, for what is not worth sending
    records: int  # of one file, that a machine works with at a time

    def run(
        self, work: Callable[..., T], pieces: Sequence[tuple[Any, ...]], seconds: float
    ) -> Iterator[T]:
        """`work(*piece)` for each piece, in order; `seconds` of one CPU in all, by estimate."""


def threads_of(workers: int | Workers) -> int:
    """How many threads of this process work."""
    return workers if isinstance(workers, int) else workers.threads


def run_pieces(
    work: Callable[..., T],
    pieces: Iterable[tuple[Any, ...]],
    workers: int | Workers,
    seconds: float,
    use: Callable[[T], U],
) -> list[U]:
    """`use(work(*piece))` for each piece, in order.

    The work is done by threads, or by other machines if it is worth sending; `use` always here.
    """
    pieces = list(pieces)
    if not isinstance(workers, int) and seconds >= _WORTH:
        return [use(found) for found in workers.run(work, pieces, seconds)]

    def both(piece: tuple[Any, ...]) -> Callable[[], U]:
        return lambda: use(work(*piece))

    return run_all([both(piece) for piece in pieces], threads_of(workers))


def run_all(tasks: Iterable[Callable[[], T]], threads: int) -> list[T]:
    """Results of all tasks, in order, whatever the number of threads.

    When one fails, or the caller is interrupted, those not begun are left out, those that run
    stop at their next `check`, and the error goes on once they have.
    """
    tasks = list(tasks)
    if threads == 1 or len(tasks) < 2:
        return [task() for task in tasks]
    stop = threading.Event()

    def run(task: Callable[[], T]) -> T:
        _here.stop = stop
        check()
        try:
            return task()
        except BaseException:
            stop.set()
            raise

    with ThreadPoolExecutor(min(threads, len(tasks)), NAME) as pool:
        try:
            futures = [pool.submit(run, task) for task in tasks]
            while wait(futures, _LOOK).not_done:
                check()  # a thread may have threads of its own
        except BaseException:
            stop.set()
            raise
    for future in futures:
        error = future.exception()
        if error is not None and not isinstance(error, StoppedError):
            raise error
    return [future.result() for future in futures]


@contextmanager
def interrupts_held(within: str = "") -> Iterator[None]:
    """Have Ctrl-C wait for the end of the block, where it cannot be heeded sooner.

    That is where compiled code calls Python: what is raised there is lost, or taken for a fault of
    the system. With `within`, only where functions whose names begin so are being called.
    """
    in_main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT) if in_main else None
    if not callable(before):
        yield
        return
    held: list[FrameType | None] = []

    def hold(number: int, frame: FrameType | None) -> None:
        calls = (call.f_code.co_name for call, _ in traceback.walk_stack(frame))
        if not within or any(name.startswith(within) for name in calls):
            held.append(frame)
        else:
            before(number, frame)

    signal.signal(signal.SIGINT, hold)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if held:
            before(signal.SIGINT, held[0])


@contextmanager
def ends_in_order() -> Iterator[list[int]]:
    """Have SIGTERM, and the end of the terminal, heard as Ctrl-C is; the list tells of them."""
    heard: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield heard
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        if heard:
            signal.default_int_handler(number, frame)

    def end(number: int, frame: FrameType | None) -> None:
        heard.append(number)
        signal.raise_signal(signal.SIGINT)  # may be held

    before = {}
    if not callable(signal.getsignal(signal.SIGINT)):  # ignored, as in the background: only ours
        before[signal.SIGINT] = signal.signal(signal.SIGINT, interrupt)
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            before[number] = signal.signal(number, end)
    try:
        yield heard
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def slices(n: int, size: int = 1) -> Iterator[tuple[int, int]]:
    """Slices (first, last) of 0 … n, with a `check` before each.

    The first has that size; the others are as long as takes about `SECONDS`, by the clock.
    """
    first = 0
    while first < n:
        check()
        last, began = min(first + size, n), time.perf_counter()
        yield first, last
        pace = SECONDS / max(time.perf_counter() - began, 1e-9)
        first, size = last, max(1, int(size * min(pace, 2.0)))
