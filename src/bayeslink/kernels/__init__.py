"""Compiled code: arrays in, arrays out. Each kernel has a plain oracle in the tests.

Kernels are compiled when first called, and kept on disk for later processes: beside the source, or
in the user's cache directory where the package is installed read-only. They are kept in a folder
named after all sources here: a kernel has the functions it calls compiled into it, from whichever
file, and Numba looks at its own file alone. `prepare` has what a linkage needs compiled by other
processes (`kernels.compiling`), while this one goes on, and says what is being waited for.
"""

from __future__ import annotations

import errno
import functools
import gc
import hashlib
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import Any

import numba

from bayeslink.kernels.compiling import abandon as abandon
from bayeslink.kernels.compiling import start, wait_for
from bayeslink.threads import interrupts_held


def _digest(*parts: bytes) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


_HERE = Path(__file__).parent
SOURCES = _digest(*(path.read_bytes() for path in sorted(_HERE.glob("*.py"))))
# What other processes compile, in the order in which a linkage needs it. It needs `sampling` last,
# which alone takes a third of the time.
_GROUPS = (
    ("texts", "distances", "table_entries", "pair_counts", "search", "patterns", "components"),
    ("assignment", "error_counts", "matchings", "sampling"),
)
MODULES = tuple(name for group in _GROUPS for name in group)
_CALLBACK = "_raw_object_cache"  # how the names of functions begin that LLVM calls
_LOCK = Lock()
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM)
_full = False  # whether the cache cannot be written: no use to try for each kernel

# Functions that kernels call. They have no way in from Python: to make one takes long. A `helper`
# has its arrays from its caller and becomes part of it: a call would copy what describes them, and
# to count references to them in an inner loop takes longer than all it does. A `maker` makes some.
maker = numba.njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
helper = numba.njit(
    nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, forceinline=True, _nrt=False
)


class Kernel:
    """A function that is compiled for one signature when first called."""

    def __init__(self, function: Callable[..., Any], signature: Any, rare: bool) -> None:
        functools.update_wrapper(self, function)
        self.function, self.signature, self.rare = function, signature, rare
        self._compiled: Callable[..., Any] | None = None

    def __reduce__(self) -> Any:
        return _named, (self.function.__module__, self.function.__name__)

    def __call__(self, *arguments: Any) -> Any:
        compiled = self._compiled or self.compile()
        with interrupts_held():
            return compiled(*arguments)

    def compile(self) -> Callable[..., Any]:
        """The compiled function: from the cache, or made now.

        A damaged cache is discarded and written anew. Where there is nowhere to write (a read-only
        install and no home, a full disk), it is kept in memory.
        """
        wait_for(self.function.__module__.rpartition(".")[2])
        with _LOCK:
            if self._compiled is None:
                with interrupts_held(_CALLBACK), _own_cache() as cache:
                    self._compiled = cache and (self._cached() or self._cached(anew=True))
                    if not self._compiled:
                        self._compiled = numba.njit(self.signature, nogil=True)(self.function)
        return self._compiled

    def _cached(self, anew: bool = False) -> Callable[..., Any] | None:
        """The compiled function, read from the cache or written to it; None if neither can be."""
        global _full
        if _full:
            return None
        try:
            if anew:
                _discard(self.function)
            compiled: Callable[..., Any] = numba.njit(self.signature, nogil=True, cache=True)(
                self.function
            )
        except Exception as error:  # damaged files make pickle raise almost anything
            _full = isinstance(error, OSError) and error.errno in _NO_ROOM
            return None
        return compiled


def _discard(function: Callable[..., Any]) -> None:
    """Remove what Numba has kept of a function."""
    start = f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}-"
    for path in [*Path(numba.config.CACHE_DIR).rglob(f"{start}*.nb[ic]")]:  # set by `_own_cache`
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def _named(module: str, name: str) -> Any:
    """A kernel by its name: other processes have their own."""
    return getattr(import_module(module), name)


def kernel(signature: Any, *, rare: bool = False) -> Callable[[Callable[..., Any]], Kernel]:
    """Make a function a kernel; a `rare` one is not among those that `prepare` compiles."""
    return lambda function: Kernel(function, signature, rare)


def prepare(say: Callable[[str], None], progress: Callable[[str], None]) -> None:
    """Start to compile what a linkage needs, unless that was done before on this machine.

    Once the linkage has to wait for it, `progress` is told how far it is.
    """
    stamp = _stamp()
    if stamp is None:
        say(
            "nowhere to keep compiled code, so every run compiles it anew. "
            "Set NUMBA_CACHE_DIR to a directory that you, and nobody else, can write to."
        )
        return
    if stamp.exists():
        return
    say(
        "first run on this machine: compiling for its processor, once. That takes 25 to 30 seconds "
        f"on two idle cores, longer on busy ones{_how_busy()}."
    )
    total = sum(map(len, _GROUPS))

    def show(left: int) -> None:
        progress(f"compiling, once: {total - left} of {total} modules: {1 - left / total:.0%}")

    start(_GROUPS, show, stamp.touch)


def _how_busy() -> str:
    """How much else is going on here, if that is so much that the wait will be longer."""
    cores = os.cpu_count() or 1
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return f" (here {load:.0f} others compute on {cores})" if load > 0.75 * cores else ""


def compile_modules(names: Iterable[str]) -> None:
    """Compile the kernels of these modules, but for the rare ones."""
    for name in names:
        for found in vars(import_module(f"bayeslink.kernels.{name}")).values():
            if isinstance(found, Kernel) and not found.rare:
                found.compile()


def compile_here(modules: Iterable[str]) -> None:
    """What those other processes do: compile the kernels of each module, and say so."""
    gc.disable()  # 12 % of the time; the process ends soon
    for module in modules:
        compile_modules([module])
        sys.stdout.write(f"{module}\n")
        sys.stdout.flush()


def _stamp() -> Path | None:
    """A file that is there once the kernels have been compiled here; None if none can be."""
    import llvmlite.binding

    folder = _folder()
    facts = [sys.version, numba.__version__, llvmlite.binding.get_host_cpu_name()]
    return folder and folder / f"{_digest(*map(str.encode, facts))}.compiled"


@contextmanager
def _own_cache() -> Iterator[bool]:
    """Have Numba cache in our folder for the moment; whether there is one."""
    folder, before = _folder(), numba.config.CACHE_DIR
    try:
        if folder:
            numba.config.CACHE_DIR = str(folder)
        yield folder is not None
    finally:
        numba.config.CACHE_DIR = before


def _folder() -> Path | None:
    """Where kernels of these sources are kept; None if we alone can write to none of them.

    Whoever makes it removes what was kept for earlier sources.
    """
    for home in _homes():
        folder = home / SOURCES
        try:
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.mkdir(mode=0o700)
        except FileExistsError:
            pass
        except OSError:
            continue
        else:
            for old in home.iterdir():
                if old != folder:
                    shutil.rmtree(old, ignore_errors=True)
        if os.access(folder, os.W_OK) and _ours_alone(folder):
            return folder
    return None


def _ours_alone(folder: Path) -> bool:
    """Whether nobody else can put code there: what is kept in it is run."""
    if os.name == "nt":
        return True
    own, above = folder.stat(), folder.parent.stat()
    sticky = above.st_mode & stat.S_ISVTX
    return (
        own.st_uid in (os.geteuid(), 0)
        and not own.st_mode & 0o022
        and (bool(sticky) or not above.st_mode & 0o022)
    )


def _homes() -> Iterator[Path]:
    """Folders for compiled kernels, the best first, of no other installation of the package."""
    place = _digest(str(_HERE).encode())
    if numba.config.CACHE_DIR:
        yield Path(numba.config.CACHE_DIR) / f"bayeslink-{place}"
    yield _HERE / "__pycache__" / "bayeslink"
    try:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # no home
        return
    yield cache / "bayeslink" / place
