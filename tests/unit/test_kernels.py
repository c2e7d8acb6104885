"""When kernels are compiled, and what is said about it."""

import os
import subprocess
import sys
import threading

import numba
import numpy as np
import pytest

from bayeslink import kernels


def double(x):
    return 2 * x


@pytest.fixture
def said(monkeypatch):
    """Nothing is being compiled yet; what `prepare` says."""
    monkeypatch.setattr(kernels, "_others", {})
    return []


def test_a_kernel_is_compiled_at_its_first_call_and_once(monkeypatch):
    calls = []
    monkeypatch.setattr(kernels.numba, "njit", lambda *a, **k: lambda f: calls.append((a, k)) or f)
    made = kernels.kernel("f8(f8)")(double)
    assert calls == []
    assert [made(1.0), made(2.0)] == [2.0, 4.0]
    assert calls == [(("f8(f8)",), {"nogil": True, "cache": True})]


def test_without_a_place_to_cache_a_kernel_is_compiled_in_memory(monkeypatch):
    compiler = numba.njit

    def refuse(*arguments, cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return compiler(*arguments, **options)

    monkeypatch.setattr(kernels.numba, "njit", refuse)
    assert kernels.kernel("f8(f8)")(double)(21.0) == 42.0


def test_nothing_is_said_or_done_where_all_is_compiled(said, tmp_path, monkeypatch):
    stamp = tmp_path / "stamp"
    stamp.touch()
    monkeypatch.setattr(kernels, "_stamp", lambda: stamp)
    monkeypatch.setattr(subprocess, "Popen", None)
    kernels.prepare(said.append)
    assert said == []


def test_where_nothing_can_be_kept_it_says_what_would_help(said, monkeypatch):
    monkeypatch.setattr(kernels, "_stamp", lambda: None)
    kernels.prepare(said.append)
    assert "NUMBA_CACHE_DIR" in said[0]


@pytest.mark.parametrize("works", [True, False])
def test_a_first_run_has_others_compile_and_waits_for_them(said, works, tmp_path, monkeypatch):
    stamp = tmp_path / "stamp"
    monkeypatch.setattr(kernels, "_stamp", lambda: stamp)
    monkeypatch.setattr(kernels, "_GROUPS", (("components",) if works else ("no such module",),))
    kernels.prepare(said.append)
    assert "first run" in said[0]
    from bayeslink.kernels.components import first_overflow

    monkeypatch.setattr(first_overflow, "_compiled", None)
    rows, w = np.zeros(1, np.int32), np.zeros(1)
    assert first_overflow(rows, rows, w, 1, 1, 10, 10) == 1
    for thread in threading.enumerate():
        if thread.name == kernels.FINISH:
            thread.join()
    assert stamp.exists() == works


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_fork_does_not_wait_for_processes_that_are_not_its_own():
    """A thread of the parent holds the lock on waiting; a fork would have it locked for good."""
    code = (
        "import os, subprocess, sys, threading, time\n"
        "from bayeslink import kernels\n"
        "other = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(5)'])\n"
        "kernels._others['__main__'] = other\n"
        "threading.Thread(target=other.wait).start()\n"
        "time.sleep(0.2)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    kernels.kernel('f8(f8)')(lambda x: 2 * x)(1.0)\n"
        "    os._exit(7)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        "other.kill()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "7", done.stderr


def test_the_stamp_belongs_to_the_sources_and_the_place(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    first = kernels._stamp()
    assert first.parent == tmp_path
    monkeypatch.setattr(sys, "version", "another")
    assert kernels._stamp() != first
