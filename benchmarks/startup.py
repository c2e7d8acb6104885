"""How long a person waits: `python benchmarks/startup.py`.

`bayeslink --help`, the first `bayeslink demo` on a machine (an empty cache of compiled code), the
second one, and all of `bl.link` on 500 × 500 records in a process that has run once before.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.measure import phase, print_line

NAME = "waiting"
COMMAND = [sys.executable, "-m", "bayeslink.cli"]


def seconds(command: list[str], **environment: str) -> float:
    start = time.perf_counter()
    subprocess.run(
        command, env={**os.environ, **environment}, check=True, capture_output=True, timeout=600
    )
    return time.perf_counter() - start


def main() -> None:
    help_times = [seconds([*COMMAND, "--help"]) for _ in range(5)]
    print_line(NAME, "bayeslink --help, median of 5", statistics.median(help_times))
    with tempfile.TemporaryDirectory() as folder:
        demo = [*COMMAND, "demo", "-o", f"{folder}/demo"]
        for name in ("first demo after install", "second demo", "third demo"):
            print_line(NAME, name, seconds(demo, NUMBA_CACHE_DIR=f"{folder}/cache"))
    small()


def small() -> None:
    import bayeslink as bl

    made = bl.simulate(500, overlap=0.5, errors=2, seed=1)
    fields = [
        bl.levenshtein("gname"),
        bl.levenshtein("fname"),
        bl.exact("age"),
        bl.exact("occup"),
    ]
    bl.link(made.a, made.b, fields)
    for _ in range(3):
        with phase(NAME, "500 x 500, four fields, bl.link with 4 x 1,000 draws, warm") as facts:
            run = bl.link(made.a, made.b, fields)
            facts |= {"by_phase": dict(run.seconds), "links": run.n_links}


if __name__ == "__main__":
    main()
