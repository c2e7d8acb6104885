"""When kernels are compiled, and what is said about it."""

import errno
import os
import shutil
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numba
import numpy as np
import pytest

import bayeslink
from bayeslink import kernels


def double(x):
    return 2 * x


@pytest.fixture
def said(monkeypatch):
    """Nothing is being compiled yet; what `prepare` says."""
    monkeypatch.setattr(kernels.compiling, "_processes", [])
    monkeypatch.setattr(kernels.compiling, "_awaited", set())
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
    kernels.prepare(said.append, said.append)
    assert said == []


def test_where_nothing_can_be_kept_it_says_what_would_help(said, monkeypatch):
    monkeypatch.setattr(kernels, "_stamp", lambda: None)
    kernels.prepare(said.append, said.append)
    assert "NUMBA_CACHE_DIR" in said[0]


@pytest.mark.parametrize("works", [True, False])
def test_a_first_run_has_others_compile_and_waits_for_them(said, works, tmp_path, monkeypatch):
    stamp = tmp_path / "stamp"
    monkeypatch.setattr(kernels, "_stamp", lambda: stamp)
    monkeypatch.setattr(kernels, "_GROUPS", (("components",) if works else ("no such module",),))
    kernels.prepare(said.append, said.append)
    assert "first run" in said[0]
    from bayeslink.kernels.components import first_overflow

    monkeypatch.setattr(first_overflow, "_compiled", None)
    rows, w = np.zeros(1, np.int32), np.zeros(1)
    assert first_overflow(rows, rows, w, 1, 1, 10, 10) == 1
    assert said[1:2] == ["compiling, once: 0 of 1 modules: 0%"] * works
    for thread in threading.enumerate():
        if thread.name == kernels.compiling.LISTEN:
            thread.join()
    assert stamp.exists() == works


def test_what_was_abandoned_does_not_keep_later_work_from_being_done(tmp_path, monkeypatch):
    def ended():
        for thread in threading.enumerate():
            if thread.name == kernels.compiling.LISTEN:
                thread.join()

    done = []
    monkeypatch.setattr(kernels.compiling, "_CODE", "import time; time.sleep(60)")
    kernels.compiling.start([["components"]], id, lambda: done.append("too soon"))
    kernels.abandon()
    ended()
    monkeypatch.setattr(kernels.compiling, "_CODE", "print('components')")
    kernels.compiling.start([["components"]], id, lambda: done.append("all"))
    ended()
    assert done == ["all"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_fork_does_not_wait_for_processes_that_are_not_its_own():
    """A thread of the parent holds the lock on waiting; a fork would have it locked for good."""
    code = (
        "import os, threading, time\n"
        "from bayeslink import kernels\n"
        "kernels.compiling._CODE = 'import time; time.sleep(5)'\n"
        "kernels.compiling.start([['__main__']], id, id)\n"
        "waiting = threading.Thread(target=kernels.compiling.wait_for, args=['__main__'])\n"
        "waiting.start()\n"
        "time.sleep(0.2)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    kernels.kernel('f8(f8)')(lambda x: 2 * x)(1.0)\n"
        "    os._exit(7)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        "kernels.abandon()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.split()[-1] == "7", done.stderr


def test_the_stamp_belongs_to_the_sources_and_the_place(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    first = kernels._stamp()
    assert tmp_path in first.parents
    monkeypatch.setattr(sys, "version", "another")
    assert kernels._stamp() != first


# --- where compiled code is kept --------------------------------------------------------------


@pytest.fixture
def package(tmp_path):
    """A copy of the package with a small kernel that calls a function of another file."""
    source = Path(bayeslink.__file__).parent
    folder = tmp_path / "package" / "bayeslink"
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "kernels" / "caller.py").write_text(
        "from bayeslink.kernels import kernel\n"
        "from bayeslink.kernels.called import more\n\n\n"
        "@kernel('i8(i8)')\n"
        "def call(x):\n"
        "    return more(x)\n"
    )
    say_how_much(folder, 1)
    return folder


def say_how_much(package, step):
    (package / "kernels" / "called.py").write_text(
        f"import numba\n\n\n@numba.njit\ndef more(x):\n    return x + {step}\n"
    )


def call_kernel(package, **environment):
    """What the small kernel makes of 1 in a process of its own, and whether it came from disk."""
    code = (
        "from bayeslink.kernels.caller import call\n"
        "print(call(1), sum(call.compile().stats.cache_hits.values()))"
    )
    clean = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    clean |= {"PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=clean | environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    result, hits = map(int, done.stdout.split())
    return result, bool(hits)


@pytest.mark.full
def test_compiled_code_follows_the_functions_it_calls_in_other_files(package):
    assert [call_kernel(package), call_kernel(package)] == [(2, False), (2, True)]
    say_how_much(package, 10)
    assert [call_kernel(package), call_kernel(package)] == [(11, False), (11, True)]


@pytest.mark.full
def test_what_another_process_compiles_is_as_if_compiled_here(package):
    code = "from bayeslink.kernels import compile_here; compile_here(['caller'])"
    environment = {**os.environ, "PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("NUMBA_CACHE_DIR", None)
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "caller\n"), done.stderr
    assert call_kernel(package) == (2, True)


@pytest.mark.full
def test_what_was_compiled_from_earlier_sources_is_removed(package):
    kept = package / "kernels" / "__pycache__" / "bayeslink"
    for step in range(3):
        say_how_much(package, step)
        call_kernel(package)
        assert len(list(kept.iterdir())) == 1
        assert len(list(kept.rglob("*.nbi"))) == 1


@pytest.mark.full
def test_two_installations_share_a_cache_directory(package, tmp_path):
    other = tmp_path / "other" / "bayeslink"
    shutil.copytree(package, other)
    say_how_much(other, 10)
    cache = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    found = [call_kernel(each, **cache) for each in (package, other) * 2]
    assert found == [(2, False), (11, False), (2, True), (11, True)]


@pytest.mark.full
def test_where_the_package_cannot_be_written_to_the_user_has_a_cache(package, tmp_path):
    """A file where the folder would be keeps even an administrator from writing there."""
    (package / "kernels" / "__pycache__").touch()
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    assert [call_kernel(package, **cache) for _ in range(2)] == [(2, False), (2, True)]
    (tmp_path / "full").touch()
    nowhere = {"XDG_CACHE_HOME": str(tmp_path / "full")}
    assert [call_kernel(package, **nowhere) for _ in range(2)] == [(2, False), (2, False)]


def in_its_place(path):
    path.unlink()
    path.mkdir()


DAMAGE = {
    "empty": lambda path: path.write_bytes(b""),
    "cut short": lambda path: path.write_bytes(path.read_bytes()[:-20]),
    "a few bytes": lambda path: path.write_bytes(path.read_bytes()[:3]),
    "garbage": lambda path: path.write_bytes(b"\xff\x00garbage" * 50),
    "text": lambda path: path.write_text("(dp0\nI1\n"),
    "a folder": in_its_place,
    "gone": Path.unlink,
}


@pytest.mark.full
@pytest.mark.parametrize("end", ["nbi", "nbc"])
@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_cache_is_written_anew(package, how, end):
    assert call_kernel(package) == (2, False)
    for path in package.rglob(f"*.{end}"):
        DAMAGE[how](path)
    assert [call_kernel(package), call_kernel(package)] == [(2, False), (2, True)]


def test_on_a_full_disk_kernels_are_compiled_in_memory(monkeypatch, tmp_path):
    """After the first, without an attempt to write each of them."""
    tried = []

    def full(path, *_):
        tried.append(path)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(kernels, "_homes", lambda: [tmp_path / "home"])
    monkeypatch.setattr(kernels, "_full", False)
    monkeypatch.setattr("numba.core.caching.os.replace", full)
    assert [kernels.kernel("f8(f8)")(double)(x) for x in (1.0, 2.0)] == [2.0, 4.0]
    assert len(tried) == 1


def test_a_fault_of_the_kernel_itself_is_told(monkeypatch, tmp_path):
    monkeypatch.setattr(kernels, "_homes", lambda: [tmp_path / "home"])
    with pytest.raises(numba.core.errors.TypingError):
        kernels.kernel("f8(unicode_type)")(double)("x")


@pytest.mark.skipif(os.name == "nt", reason="no such modes there")
@pytest.mark.parametrize("mode", [0o777, 0o770])
def test_compiled_code_is_not_kept_where_others_can_write(tmp_path, monkeypatch, mode):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    folder = kernels._folder()
    assert folder.is_relative_to(tmp_path)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for wrong in (folder, folder.parent):
        before = wrong.stat().st_mode
        wrong.chmod(mode)
        assert not str(kernels._folder()).startswith(str(tmp_path))
        wrong.chmod(before)
    assert kernels._folder() == folder
