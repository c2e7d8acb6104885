"""The local engine beside Spark on this machine, in one run: `python benchmarks/spark.py [n …]`.

Simulated files of n people each as Parquet folders, seven fields, half of the people in both, two
errors a record. Each size and engine runs in a process of its own; with Spark as local[cores]. Told
are seconds by phase, bytes sent to each executor and received from all, and the most memory of the
driver, of Java, and of its Python workers together.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.measure import load_kernels, print_line
from benchmarks.scale import FIELDS

NAME = "local engine and Spark"
SIZES = (50_000, 200_000, 1_000_000)


def measure(folder: str, n: int, engine: str) -> None:
    load_kernels()
    import bayeslink as bl
    from bayeslink.comparing.parsing import parse_on

    fields = [field for text in FIELDS for field in parse_on(text)]
    a, b = (str(Path(folder) / side) for side in "ab")
    how = {"structure": "independent", "restricted": True, "draws": 500, "tune": 500, "chains": 2}
    session = None
    if engine == "spark":
        from bayeslink.engines.spark.choosing import started_session

        session = started_session(f"local[{os.cpu_count()}]", ["spark.driver.memory=2g"])
        session.range(10).count()
    peaks, done = {"driver": 0, "java": 0, "workers": 0}, threading.Event()
    watcher = threading.Thread(target=_watch, args=(peaks, done), daemon=True)
    watcher.start()
    wall = time.perf_counter()
    run = bl.link(a, b, fields, engine=session, **how)
    seconds = time.perf_counter() - wall
    done.set()
    watcher.join()
    facts = {"n": n, "engine": engine, "links": run.n_links, "by_phase": dict(run.seconds)}
    if session is not None:
        cluster = run.pairs.threads
        facts |= {"sent_mb": cluster.sent // 10**6, "received_mb": cluster.received // 10**6}
    facts |= {f"peak_{who}_mib": size >> 20 for who, size in peaks.items()}
    facts["interval"] = run.posterior.interval()
    print_line(NAME, "link", seconds, **facts)


def _watch(peaks: dict[str, int], done: threading.Event) -> None:
    """Memory of this process, and of those that it started, by kind."""
    while not done.wait(0.2):
        now = dict.fromkeys(peaks, 0)
        parents, sizes, kinds = {}, {}, {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
                parents[int(pid)] = int(stat[2].split()[1])
                pages = Path(f"/proc/{pid}/statm").read_text().split()
                sizes[int(pid)] = int(pages[1]) * os.sysconf("SC_PAGE_SIZE")
                kinds[int(pid)] = "java" if "(java" in stat[0] else "workers"
            except (OSError, IndexError, ValueError):
                continue
        for pid, size in sizes.items():
            if pid == os.getpid():
                now["driver"] += size
                continue
            above = pid
            while above in parents and above != os.getpid():
                above = parents[above]
            if above == os.getpid():
                now[kinds[pid]] += size
        for who, size in now.items():
            peaks[who] = max(peaks[who], size)


def make(folder: str, n: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    import bayeslink as bl

    made = bl.simulate(n, overlap=0.5, errors=2, seed=1)
    for side, table in (("a", made.a), ("b", made.b)):
        (Path(folder) / side).mkdir()
        table = pa.table(table).sort_by("id")
        for k, first in enumerate(range(0, len(table), 250_000)):
            pq.write_table(table.slice(first, 250_000), f"{folder}/{side}/part-{k}.parquet")


def main() -> None:
    if len(sys.argv) == 5 and sys.argv[1] == "--one":
        measure(sys.argv[2], int(sys.argv[3]), sys.argv[4])
        return
    for n in map(int, sys.argv[1:] or SIZES):
        with tempfile.TemporaryDirectory() as folder:
            make(folder, n)
            told = []
            for engine in ("local", "spark"):
                command = [sys.executable, __file__, "--one", folder, str(n), engine]
                done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
                print(done.stdout, end="", flush=True)
                told.append(json.loads(done.stdout.splitlines()[-1]))
            ratio = told[1]["seconds"] / told[0]["seconds"]
            print_line(NAME, "Spark over local", 0.0, n=n, ratio=round(ratio, 2))


if __name__ == "__main__":
    main()
