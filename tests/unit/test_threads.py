"""Work in threads: in order, stopped by errors and by Ctrl-C, never left behind."""

import _thread
import ctypes
import os
import signal
import threading
import time
from functools import partial

import pytest

from bayeslink import kernels, threads
from bayeslink.threads import check, run_all, slices

posix = pytest.mark.skipif(os.name == "nt", reason="no SIGINT to raise on this system")


def forever():
    """Work that only ends when it is told to."""
    while True:
        check()
        time.sleep(0.001)


def fail():
    raise ValueError("no good")


@pytest.fixture(autouse=True)
def _no_thread_is_left():
    yield
    for _ in range(6000):  # a minute: an interrupt may come while a thread is being started
        if not [t for t in threading.enumerate() if t.name.startswith(threads.NAME)]:
            return
        time.sleep(0.01)
    raise AssertionError("a thread goes on")


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_results_come_back_in_order(n_threads):
    def task(k):
        time.sleep(0.001 * (k % 3))
        return k

    assert run_all([partial(task, k) for k in range(20)], n_threads) == list(range(20))
    assert run_all([], n_threads) == []


@pytest.mark.parametrize("tasks", [[fail, forever], [forever, fail]])
def test_an_error_stops_the_others_and_goes_on(tasks):
    with pytest.raises(ValueError, match="no good"):
        run_all(tasks, 2)


def test_what_was_not_begun_is_left_out():
    begun = []

    def task(k):
        begun.append(k)
        forever() if k else fail()

    with pytest.raises(ValueError, match="no good"):
        run_all([partial(task, k) for k in range(100)], 2)
    assert set(begun) <= {0, 1, 2}


@pytest.mark.parametrize("n_threads", [1, 3])
def test_an_interrupt_stops_all(n_threads):
    def task(k):
        if k == 0:
            _thread.interrupt_main()
        forever()

    with pytest.raises(KeyboardInterrupt):
        run_all([partial(task, k) for k in range(10)], n_threads)
    assert run_all([partial(int, 7), partial(int, 8)], 2) == [7, 8]


def test_threads_of_a_thread_stop_too():
    def start_more():
        run_all([forever, forever], 2)

    with pytest.raises(ValueError, match="no good"):
        run_all([start_more, fail], 2)


def test_outside_of_such_threads_nothing_stops():
    check()


@posix
def test_an_interrupt_during_a_call_of_compiled_code_waits_for_its_end():
    """Compiled code calls Python for its results, and takes what is raised there for a fault."""
    ended = []

    def compiled():
        signal.raise_signal(signal.SIGINT)
        ended.append(True)

    made = kernels.kernel("void()")(compiled)
    made._compiled = compiled
    with pytest.raises(KeyboardInterrupt):
        made()
    assert ended == [True]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@posix
def test_who_handles_interrupts_otherwise_is_told_afterwards():
    told, before = [], signal.signal(signal.SIGINT, lambda number, frame: told.append(number))
    try:
        with threads.interrupts_held():
            signal.raise_signal(signal.SIGINT)
            assert told == []
        assert told == [signal.SIGINT]
    finally:
        signal.signal(signal.SIGINT, before)


@posix
def test_an_interrupt_while_llvm_calls_python_is_not_lost(monkeypatch):
    """What is raised within such a call is printed and forgotten."""

    @ctypes.CFUNCTYPE(None)
    def _raw_object_cache_notify():
        signal.raise_signal(signal.SIGINT)

    def compiler(*_, **__):
        _raw_object_cache_notify()
        return lambda function: function

    made = kernels.kernel("i8(i8)")(abs)
    monkeypatch.setattr(kernels.numba, "njit", compiler)
    with pytest.raises(KeyboardInterrupt):
        made.compile()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    monkeypatch.undo()
    monkeypatch.setattr(kernels.numba, "njit", lambda *_, **__: lambda function: function)
    assert made(-1) == 1


@pytest.mark.parametrize(("n", "size"), [(0, 1), (1, 1), (7, 3), (100_000, 1), (1000, 5000)])
def test_slices_make_up_the_whole(n, size):
    parts = list(slices(n, size))
    assert [i for first, last in parts for i in range(first, last)] == list(range(n))
    assert n == 0 or parts[0] == (0, min(n, size))


def test_slices_are_as_long_as_the_clock_allows(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(threads.time, "perf_counter", lambda: now[0])
    seconds = []
    for first, last in slices(100_000):
        seconds.append((last - first) * 0.001)  # a millisecond each
        now[0] += seconds[-1]
    assert max(seconds) <= threads.SECONDS * 1.01
    assert sum(s > threads.SECONDS / 2 for s in seconds) > 0.9 * len(seconds)
    assert [last - first for first, last in _slow(now, 5)] == [1] * 5


def _slow(now, n):
    for part in slices(n):
        now[0] += 10.0
        yield part
