"""This package beside Splink and recordlinkage on the same files: `python benchmarks/versus.py`.

Each tool runs in a process of its own from CSV files to one-to-one links; measured are its wall
time, CPU time and peak memory from start to end, imports included, and its links against the truth.
The two others are installed from PyPI into a virtual environment in the scratch folder. Every run
is one JSON line with all its settings; runs already in the results file are not repeated.

    python benchmarks/versus.py --table docs/head-to-head.md
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from statistics import mean
from typing import Any

from measure import MACHINE, load_kernels
from versus_settings import DATA_SETS, DataSet

sys.path.insert(0, str(Path(__file__).parents[1]))  # experiments

SCRATCH = Path(tempfile.gettempdir()) / "bayeslink-versus"
PEERS = ("splink", "recordlinkage", "pandas<3", "duckdb")
TOOLS = Path(__file__).with_name("versus_tools.py")
Row = dict[str, Any]


# --- the peers --------------------------------------------------------------------------------


def peers_python(scratch: Path) -> Path:
    """Install the peers, the first time, and return the Python that has them."""
    python = scratch / "peers" / "bin" / "python"
    done = scratch / "peers" / "installed"
    if not done.exists():
        venv.create(scratch / "peers", with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PEERS], check=True)
        done.touch()
    return python


def versions(python: Path) -> dict[str, str]:
    names = ("splink", "recordlinkage", "pandas", "duckdb")
    code = f"from importlib.metadata import version\nprint(*map(version, {names}))"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    return {**dict(zip(names, done.stdout.split(), strict=True)), "bayeslink": version("bayeslink")}


# --- the files --------------------------------------------------------------------------------


def make_files(data: DataSet, folder: Path, python: Path) -> None:
    """a.csv, b.csv and truth.csv, with rows in random order and ids that say nothing.

    Without that a tool that breaks ties by id or by position would be right more often than its
    model: in FEBRL and in the large example the two records of a person have the same number.
    """
    if (folder / "truth.csv").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    globals()[f"_{data.maker}"](folder, python, *data.arguments)
    rng, new = random.Random(1), {}
    for side in "ab":
        rows = _read(folder / f"{side}.csv")
        rng.shuffle(rows)
        new[side] = {row["id"]: f"{side}{k:06d}" for k, row in enumerate(rows)}
        _write(folder / f"{side}.csv", [{**row, "id": new[side][row["id"]]} for row in rows])
    truth = _read(folder / "raw_truth.csv")
    pairs = [{f"id_{s}": new[s][row[f"id_{s}"]] for s in "ab"} for row in truth]
    _write(folder / "truth.csv", pairs)


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def _write(path: Path, rows: list[dict[str, str]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def _simulated(folder: Path, _: Path, n: int, errors: int, seed: int) -> None:
    import bayeslink as bl

    sim = bl.simulate(n, overlap=0.5, errors=errors, seed=seed)
    for name, table in (("a", sim.a), ("b", sim.b), ("raw_truth", sim.truth)):
        _write(folder / f"{name}.csv", table.to_pylist())


def _large(folder: Path, _: Path) -> None:
    from experiments.data import MISSING, large

    files = large()
    if files.source.startswith("SIMULATED"):
        sys.exit("The large example is not at hand: set BAYESLINK_DATA to the folder with it.")
    for side, table in (("a", files.a), ("b", files.b)):
        rows = [{c: "" if v in MISSING else v for c, v in r.items()} for r in table.to_pylist()]
        _write(folder / f"{side}.csv", rows)
    _write(folder / "raw_truth.csv", [{"id_a": a, "id_b": b} for a, b in files.truth])


def _febrl(folder: Path, python: Path, shared: int, each: int) -> None:
    subprocess.run([python, TOOLS, "febrl", folder, json.dumps([shared, each])], check=True)


# --- running and measuring --------------------------------------------------------------------


def measured(tool: str, settings: Row, folder: Path, python: Path, limit: float) -> Row:
    """One tool as a child process: seconds, CPU seconds, peak memory, quality."""
    for old in ("links.csv", "scored.csv"):
        (folder / old).unlink(missing_ok=True)
    own = tool == "bayeslink"
    command = [sys.executable if own else str(python), "-W", "ignore", str(TOOLS)]
    environment = {k: v for k, v in os.environ.items() if own or k != "PYTHONPATH"}
    began, peak = time.perf_counter(), 0.0
    with (folder / "log.txt").open("w") as log:
        child = subprocess.Popen(
            [*command, tool, str(folder), json.dumps(settings)],
            stdout=log, stderr=log, env=environment,
        )  # fmt: skip
        while True:  # wait4 tells the child's use of the machine, which a plain wait does not
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            if pid:
                break
            peak = max(peak, tree_mib(child.pid))
            if time.perf_counter() - began > limit:
                child.kill()
            time.sleep(0.02)
    child.returncode = status
    row: Row = {
        "seconds": round(time.perf_counter() - began, 1),
        "cpu": round(usage.ru_utime + usage.ru_stime, 1),
        "peak_mib": round(max(peak, usage.ru_maxrss / 1024)),
    }
    if status:
        lines = (folder / "log.txt").read_text().strip().splitlines()
        stopped = f"stopped after {limit:.0f} s"
        return {**row, "failed": stopped if status == 9 or not lines else lines[-1][:200]}
    return row | quality(folder)


def tree_mib(pid: int) -> float:
    """Resident memory of a process and its descendants."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (OSError, IndexError):  # it has just ended
        return 0.0
    own = pages * os.sysconf("SC_PAGE_SIZE") / 2**20
    return own + sum(tree_mib(int(child)) for child in children)


def quality(folder: Path) -> Row:
    truth = {(row["id_a"], row["id_b"]) for row in _read(folder / "truth.csv")}
    links, scored = (_pairs(folder / f"{name}.csv") for name in ("links", "scored"))
    for side in (0, 1):
        assert len({pair[side] for pair in links}) == len(links), "not one-to-one"
    true = len(truth & links.keys())
    row: Row = {
        "links": len(links),
        "precision": true / len(links) if links else 0.0,
        "recall": true / len(truth),
        "f1": 2 * true / (len(links) + len(truth)),
        "false_expected": sum(1 - p for p in links.values()),
        "false": len(links) - true,
    }
    if scored:
        row["f1_hindsight"], row["threshold_hindsight"] = hindsight(scored, truth)
    return {k: v if isinstance(v, int) else round(v, 5) for k, v in row.items()}


def _pairs(path: Path) -> dict[tuple[str, str], float]:
    with path.open(newline="") as file:
        return {(a, b): float(p or "nan") for a, b, p in csv.reader(file)}


def hindsight(
    scored: dict[tuple[str, str], float], truth: set[tuple[str, str]]
) -> tuple[float, float]:
    """The best F1 over all thresholds, pairs being taken one-to-one from the most probable down."""
    used: tuple[set[str], set[str]] = (set(), set())
    best, n_links, true = (0.0, 1.0), 0, 0
    ordered = sorted(scored.items(), key=lambda item: -item[1])
    for p, tied in groupby(ordered, key=lambda item: item[1]):
        for (a, b), _ in tied:
            if a not in used[0] and b not in used[1]:
                used[0].add(a)
                used[1].add(b)
                n_links += 1
                true += (a, b) in truth
        best = max(best, (2 * true / (n_links + len(truth)), p))
    return best


# --- results ----------------------------------------------------------------------------------


def all_runs(names: list[str], scratch: Path, results: Path, limit: float) -> Iterator[Row]:
    """Every run of the named data sets, from the results file or else made and added to it."""
    python = peers_python(scratch)
    have = versions(python)
    results.touch()
    known = [json.loads(line) for line in results.read_text().splitlines()]
    for data in DATA_SETS:
        folder = scratch / "data" / "-".join([data.maker, *map(str, data.arguments)])
        for arm, (tool, settings) in data.arms.items():
            if names and not any(part in f"{data.name}: {arm}" for part in names):
                continue
            key = {"data": data.name, "arguments": data.arguments, "arm": arm, "tool": tool}
            key |= {"settings": settings, "versions": have, **MACHINE}
            if tool != "bayeslink":
                del key["commit"]  # a peer's run stays good when our code changes
            key = json.loads(json.dumps(key))
            row = next((r for r in known if key.items() <= r.items() and "failed" not in r), None)
            if row is None:
                make_files(data, folder, python)
                row = key | MACHINE | measured(tool, settings, folder, python, limit)
                with results.open("a") as file:
                    print(json.dumps(row, ensure_ascii=False), file=file)
            print(json.dumps(row, ensure_ascii=False), flush=True)
            yield row


COLUMNS = {
    "precision": ".4f", "recall": ".4f", "f1": ".4f", "f1_hindsight": ".4f",
    "false_expected": ",.0f", "false": ",.0f", "seconds": ".1f", "cpu": ".1f", "peak_mib": ",.0f",
}  # fmt: skip
HEADER = (
    "| data | tool | precision | recall | F1 | F1, best threshold | false links expected | found "
    f"| wall s | CPU s | peak MiB |\n|{'---|' * (len(COLUMNS) + 2)}"
)


def table(rows: list[Row]) -> str:
    """One line a data set and arm, means over the seeds of simulated files."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["data"], row["arm"]), []).append(row)
    lines = [HEADER]
    for (data, arm), runs in groups.items():
        repeated = f", mean of {len(runs)}" if len(runs) > 1 else ""
        failed = [run["failed"] for run in runs if "failed" in run]
        means = (_mean(runs, column, form) for column, form in COLUMNS.items())
        cells = [data + repeated, "; ".join([arm, *failed]), *means]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _mean(runs: list[Row], column: str, form: str) -> str:
    values = [run.get(column, math.nan) for run in runs]
    return "–" if any(map(math.isnan, values)) else format(mean(values), form)


def fill(document: Path, mark: str, text: str) -> None:
    """Replace what stands between the two comments `<!-- mark -->` and `<!-- end of mark -->`."""
    before, _, rest = document.read_text().partition(f"<!-- {mark} -->")
    _, _, after = rest.partition(f"<!-- end of {mark} -->")
    if not after:
        sys.exit(f"{document} has no <!-- {mark} --> … <!-- end of {mark} -->.")
    document.write_text(f"{before}<!-- {mark} -->\n{text}\n<!-- end of {mark} -->{after}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="run only what has one of these in 'data: tool'")
    parser.add_argument("--scratch", type=Path, default=SCRATCH, help="the peers and the files")
    parser.add_argument("--results", type=Path, help="JSON lines (SCRATCH/results.jsonl)")
    parser.add_argument("--table", type=Path, help="document whose table is replaced")
    parser.add_argument("--limit", type=float, default=600, help="seconds a run may take")
    given = parser.parse_args()
    given.scratch.mkdir(parents=True, exist_ok=True)
    results = given.results or given.scratch / "runs.jsonl"
    load_kernels()  # compiled once, as the peers' wheels are; not part of any run
    rows = list(all_runs(given.names, given.scratch, results, given.limit))
    if given.table and rows:
        used = ", ".join(f"{k} {v}" for k, v in rows[0]["versions"].items())
        commits = ", ".join(sorted({r["commit"] for r in rows if r["tool"] == "bayeslink"}))
        machine = f"{MACHINE['cores']} cores, {MACHINE['machine']}; commit {commits}; {used}."
        fill(given.table, "table", f"{machine}\n\n{table(rows)}")


if __name__ == "__main__":
    main()
