"""Compiled code: arrays in, arrays out. Each kernel has a plain oracle in the tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba


def kernel(signature: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile for `signature` without the interpreter lock, cached on disk where possible.

    Numba looks for a writable cache beside the source, then in the user's cache directory; with
    neither (a read-only install and no home) it refuses, and the kernel is compiled in memory.
    """

    def compile_it(function: Callable[..., Any]) -> Callable[..., Any]:
        try:
            return numba.njit(signature, nogil=True, cache=True)(function)
        except RuntimeError:
            return numba.njit(signature, nogil=True, cache=False)(function)

    return compile_it
