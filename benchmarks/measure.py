"""Seconds and peak memory of a phase, as one JSON line with machine and commit."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import threading
import time
from contextlib import contextmanager
from pathlib import Path


def _commit() -> str:
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


MACHINE = {"cores": os.cpu_count(), "machine": platform.machine(), "commit": _commit()}


def _resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def load_kernels() -> None:
    """Compile or load all compiled code, before the clock starts."""
    from bayeslink.kernels import MODULES, compile_modules

    compile_modules(MODULES)


def print_line(benchmark: str, name: str, seconds: float, **facts) -> None:
    line = {"benchmark": benchmark, "phase": name, "seconds": round(seconds, 2)}
    print(json.dumps({**line, **facts, **MACHINE}), flush=True)


@contextmanager
def phase(benchmark: str, name: str, **facts):
    """Measure the block; facts put into the yielded dict are printed with it."""
    peak, done = [_resident_mib()], threading.Event()

    def watch():
        while not done.wait(0.01):
            peak[0] = max(peak[0], _resident_mib())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    cpu, wall = time.process_time(), time.perf_counter()
    try:
        yield facts
    finally:
        seconds, cpu_seconds = time.perf_counter() - wall, time.process_time() - cpu
        done.set()
        watcher.join()
        measured = {"cpu_seconds": round(cpu_seconds, 2)}
        measured["peak_mib"] = round(max(peak[0], _resident_mib()))
        print_line(benchmark, name, seconds, **measured, **facts)
