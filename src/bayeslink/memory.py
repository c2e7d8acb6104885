"""A budget for memory.

It never changes a result. It says which large arrays are kept in files instead of in memory, how
large the pieces of work are, and when a run is refused before or while it would go beyond it.
"""

from __future__ import annotations

import contextlib
import math
import mmap
import os
import re
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayeslink.errors import OutputError, SettingsError

PROGRAM = 300_000_000  # bytes that the program and its libraries take, about
_DEFAULT = 0.8  # of the machine's memory, unless a budget is given
_ARRAYS, _LISTED = 0.35, 0.35  # shares of what is left for large arrays, and for listed pairs
_LARGE = 1 << 20  # bytes from which an array counts as large
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}


def parse_memory(given: str | int | float | None) -> int | None:
    """Bytes from "8GB", "500 MB", "2GiB" or a number of bytes; None stays None."""
    if given is None:
        return None
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?\s*", str(given), re.IGNORECASE)
    if not found or (found[3] and not found[2]):
        raise SettingsError(
            f"memory must be a size such as 8GB, 500MB or 2GiB, got {given!r}. It is what the "
            "whole run may use; leave it out to use most of the machine's."
        )
    units = _BINARY if found[3] else _UNITS
    return int(float(found[1]) * units[found[2].lower()])


def machine_memory() -> int:
    """Bytes of memory of the machine, or of the container it is run in."""
    sizes = []
    try:
        sizes.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (ValueError, OSError, AttributeError):
        sizes.append(8 * 2**30)
    with contextlib.suppress(OSError, ValueError):
        sizes.append(int(Path("/sys/fs/cgroup/memory.max").read_text()))
    with contextlib.suppress(ImportError, AttributeError, ValueError):
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]  # ulimit -v
        sizes += [limit] if limit != resource.RLIM_INFINITY else []
    return min(sizes)


class Memory:
    """How much memory a run may use; hands out the large arrays.

    Attributes
    ----------
    budget
        Bytes that the whole run may use.
    spilled
        Bytes of arrays that were kept in files so far.
    """

    def __init__(self, budget: int | None = None) -> None:
        self.budget = int(_DEFAULT * machine_memory()) if budget is None else budget
        self.in_use = 0  # bytes of large arrays that are in memory
        self.taken = PROGRAM  # bytes that cannot be put into files: the program, the records
        self.spilled = 0
        self._lock = RLock()

    def take(self, what: str, size: int) -> None:
        """Set memory aside for something that has to stay in it, or refuse."""
        self.taken += size
        least = PROGRAM + (self.taken - PROGRAM) / (1 - _ARRAYS - _LISTED)
        if least > self.budget:
            raise SettingsError(
                f"{what} and what is needed to work with them take about {_size(least)}, and the "
                f"memory budget is {_size(self.budget)}. Give a larger one (--memory), use fewer "
                "fields, or link the files in parts that have no records in common."
            )

    @property
    def _for_arrays(self) -> float:
        return _ARRAYS * (self.budget - self.taken)

    def most_listed(self, n_fields: int) -> int:
        """Pairs that may be listed at a time, at six copies of rows and levels."""
        return max(1, int(_LISTED * (self.budget - self.taken) / (6 * (8 + n_fields))))

    def piece(self, size: int, most: int, threads: int) -> int:
        """Items of `size` bytes in a piece of work, so that all threads' take an eighth."""
        return int(np.clip((self.budget - self.taken) / 8 / threads / size, 1000, most))

    def empty(self, n: int, dtype: Any) -> NDArray[Any]:
        """An array of n items: in memory while there is room, else in a file that vanishes."""
        size = int(n) * np.dtype(dtype).itemsize
        if size < _LARGE or self.in_use + size <= self._for_arrays:
            array = np.empty(n, dtype)
            if size >= _LARGE:
                self._count(array)
            return array
        self.spilled += size
        return np.frombuffer(_mapped(size), dtype)

    def keep(self, array: NDArray[Any]) -> NDArray[Any]:
        """The array, or its copy in a file if there is no room for it."""
        if array.nbytes < _LARGE:
            return array
        if self.in_use + array.nbytes <= self._for_arrays:
            self._count(array)
            return array
        copy = self.empty(array.size, array.dtype).reshape(array.shape)
        copy[:] = array
        return copy

    def concatenate(self, parts: Sequence[NDArray[Any]], dtype: Any) -> NDArray[Any]:
        """One-dimensional parts in a row."""
        out, at = self.empty(sum(map(len, parts)), dtype), 0
        for part in parts:
            out[at : at + len(part)] = part
            at += len(part)
        return out

    def _count(self, array: NDArray[Any]) -> None:
        with self._lock:
            self.in_use += array.nbytes
        weakref.finalize(array, self._freed, array.nbytes)

    def _freed(self, size: int) -> None:
        with self._lock:
            self.in_use -= size

    def summary(self) -> dict[str, Any]:
        """The budget, what was reckoned to need memory, what went to files, and the peak."""
        return {
            "budget": self.budget,
            "reckoned": self.taken,
            "spilled": self.spilled,
            "peak": peak_memory(),
        }

    def __str__(self) -> str:
        peak = peak_memory()
        used = "" if peak is None else f", at most {_size(peak)} used"
        return (
            f"Memory: a budget of {_size(self.budget)}; about {_size(self.taken)} for the program "
            f"and the records, {_size(self.spilled)} of large arrays in files{used}."
        )


def peak_memory() -> int | None:
    """The most memory this process has had, in bytes, if the system says."""
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak * (1 if os.uname().sysname == "Darwin" else 1024)


def _mapped(size: int) -> mmap.mmap:
    """A file of that size without a name, in memory only as far as the system likes."""
    folder = tempfile.gettempdir()
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            if hasattr(os, "posix_fallocate"):  # room now, not a fault later
                os.posix_fallocate(file.fileno(), 0, size)
            else:
                file.truncate(size)
            return mmap.mmap(file.fileno(), size)
    except OSError as error:
        raise OutputError(
            f"cannot keep {_size(size)} in a temporary file in {folder}: {error.strerror}. The "
            "memory budget asks for it; give a larger one (--memory), or set TMPDIR to a disk "
            "with room."
        ) from None


def _size(n: float) -> str:
    power = min(3, int(math.log10(max(n, 1)) // 3))
    return f"{n / 1000**power:.3g} {('bytes', 'kB', 'MB', 'GB')[power]}"
