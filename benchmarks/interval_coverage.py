"""How often the interval covers: `python benchmarks/interval_coverage.py study --sets 10`.

Files with known truth are linked with default settings; measured are the 95 % interval of L, the
links, the false links expected and found, and the log score of the candidate pairs. Parts: study
(the paper's nine cells), simulated, ladder (one kind of trouble at a time), folders (random halves
of the files in BAYESLINK_DATA/truth), subfiles and proposed (60 % of each of these files, with
plain fields and with those that `init` proposes; and halves of one file with nobody in both),
readme (its example), population (size of the population and a pooled regression), large. `--cells`
takes some cells of a part, by their names.

    python benchmarks/interval_coverage.py ladder folders --sets 20 --out lines.jsonl --workers 2
    python benchmarks/interval_coverage.py simulated --cells "500,*" "2000,*" --out lines.jsonl
    python benchmarks/interval_coverage.py --table lines.jsonl

Each data set is one JSON line; those already in the file are not repeated.

Development split. Whatever is chosen with the truth at hand is chosen on even-numbered data sets
only (`--split development`: seeds of simulated files, halves of folders); reported are odd-numbered
ones (`--split report`, the default). The study's and the README's data sets are never chosen on.

(Not called coverage.py: a script's folder comes first on the path, and Numba imports a `coverage`.)
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

sys.path.insert(0, str(Path(__file__).parents[1]))

import bayeslink as bl
from benchmarks.coverage_data import N_PEOPLE, PARTS, SLOPE, Analysis, DataSet, rows
from benchmarks.measure import MACHINE, load_kernels

FLOOR = 1e-6  # a probability nearer to 0 or 1 scores as this
N_POOLED = 20  # linked data sets whose regressions are pooled
RUN = ("model", "draws", "tune", "chains")  # lines that agree in these belong together
Line = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Settings:
    """Of each run."""

    model: str | None
    draws: int
    tune: int
    chains: int

    def key(self) -> Line:
        return {**asdict(self), "model": self.model or "default"}


# --- scores -----------------------------------------------------------------------------------


def log_score(probability: np.ndarray, true: np.ndarray, n_true: int) -> float:
    """−Σ log P(what is the case) over the candidate pairs, in natural logs; less is better.

    Probabilities are clipped to [FLOOR, 1 − FLOOR]. A true pair that is not among the candidates
    was given none: it costs −log FLOOR.
    """
    p = np.clip(probability, FLOOR, 1 - FLOOR)
    left_out = n_true - int(true.sum())
    return float(-np.log(np.where(true, p, 1 - p)).sum() - left_out * math.log(FLOOR))


def is_true(pairs: pa.Table, truth: pa.Table) -> np.ndarray:
    """Which of the pairs are among the true ones."""
    return np.asarray(pc.is_in(_keys(pairs), value_set=_keys(truth)))


def _keys(pairs: pa.Table) -> pa.Array:
    ids = [pc.cast(pairs[name], pa.large_string()) for name in ("id_a", "id_b")]
    return pc.binary_join_element_wise(*ids, pa.scalar("\x1f", pa.large_string())).combine_chunks()


def scores(run: Any, data: DataSet) -> Line:
    """L and its interval, the links and the probabilities against the truth."""
    posterior, n_true = run.posterior, len(data.truth)
    low, high = posterior.interval()
    links = run.links.filter(pc.equal(run.links["decision"], "link"))
    found = bl.evaluate(links, data.truth)
    candidates = posterior.link_probabilities()
    p, true = np.asarray(candidates["link_probability"]), is_true(candidates, data.truth)
    return {
        "true_L": n_true,
        "mean_L": round(float(posterior.n_links.mean()), 2),
        "lo": low,
        "hi": high,
        "covers": low <= n_true <= high,
        "precision": _rounded(found.precision),
        "recall": _rounded(found.recall),
        "f1": _rounded(found.f1),
        "false_expected": round(run.summary()["expected_false_links"], 3),
        "false_found": found.false_links,
        "log_score": round(log_score(p, true, n_true), 2),
        "candidates": len(p),
        "left_out": n_true - int(true.sum()),
    }


def _rounded(share: float) -> float | None:
    return None if math.isnan(share) else round(share, 5)


def slope(analysis: Analysis, row_a: np.ndarray, row_b: np.ndarray) -> tuple[float, float]:
    """Least squares of y on x over linked records: the slope and its variance."""
    x, y = analysis.x[row_a], analysis.y[row_b]
    away = x - x.mean()
    estimate = away @ y / (away @ away)
    residual = y - y.mean() - estimate * away
    return float(estimate), float(residual @ residual / (len(x) - 2) / (away @ away))


def analysis_scores(run: Any, data: DataSet) -> Line:
    """Whether N and the slope are covered, and would be if the links were known."""
    given = data.analysis
    if given is None:
        return {}

    def fitted(pairs: pa.Table) -> tuple[float, float]:
        return slope(given, rows(data.a, pairs["id_a"]), rows(data.b, pairs["id_b"]))

    n_true, size = len(data.truth), run.posterior.population_size()
    known_size = bl.population_size(len(data.a), len(data.b), [n_true] * 4000)
    linked = run.posterior.linked_datasets(k=N_POOLED)
    df = float(np.mean([len(pairs) for pairs in linked])) - 2
    pooled = bl.pool([fitted(pairs) for pairs in linked], complete_df=df)
    # Twice the same analysis: nothing between, so the ordinary t interval.
    known = bl.pool([fitted(data.truth)] * 2, complete_df=n_true - 2)
    return {
        "N": N_PEOPLE,
        "N_median": size.median,
        "N_lo": size.low,
        "N_hi": size.high,
        "N_covers": size.low <= N_PEOPLE <= size.high,
        "N_covers_known": known_size.low <= N_PEOPLE <= known_size.high,
        "slope": round(pooled.estimate, 4),
        "slope_covers": pooled.low <= SLOPE <= pooled.high,
        "slope_covers_known": known.low <= SLOPE <= known.high,
    }


# --- runs -------------------------------------------------------------------------------------


def measure(part: str, cell: str, number: int, settings: Settings) -> Line:
    """Make one data set, link it, and hold the result against the truth."""
    data = PARTS[part].cells[cell](number)
    model = {"structure": settings.model} if settings.model else {}
    start = time.perf_counter()
    run = bl.link(
        data.a,
        data.b,
        data.fields,
        missing=list(data.missing) or None,
        draws=settings.draws,
        tune=settings.tune,
        chains=settings.chains,
        seed=number + 1,
        threads=None if part == "large" else 1,
        **model,
    )
    seconds = time.perf_counter() - start
    line = {"part": part, "cell": cell, "set": number, **settings.key(), "seed": data.seed}
    line |= {"person": data.person, **scores(run, data), **analysis_scores(run, data)}
    return {**line, "seconds": round(seconds, 2), "commit": MACHINE["commit"]}


Job = tuple[str, str, int]


def jobs(parts: Iterable[str], cells: list[str] | None, split: str, sets: int) -> Iterator[Job]:
    """Every cell's first data set, then every cell's second."""
    for name in parts:
        part = PARTS[name]
        for number in part.numbers(split, sets):
            for cell in part.cells:
                if cells is None or any(fnmatch(cell, wanted) for wanted in cells):
                    yield name, cell, number


def done_already(lines: Iterable[Line], settings: Settings) -> set[Job]:
    key = tuple(settings.key().values())
    same = (line for line in lines if _run_of(line) == key)
    return {(line["part"], line["cell"], line["set"]) for line in same}


def read_lines(path: Path) -> list[Line]:
    return [json.loads(text) for text in path.read_text().splitlines()] if path.exists() else []


def results(todo: list[Job], settings: Settings, workers: int) -> Iterator[Line]:
    if workers == 1:
        load_kernels()
        yield from (measure(*job, settings) for job in todo)
        return
    spawned = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, mp_context=spawned, initializer=load_kernels)
    try:
        for future in as_completed([pool.submit(measure, *job, settings) for job in todo]):
            yield future.result()
    finally:
        pool.shutdown(cancel_futures=True)  # where one failed, the others need not be waited for


# --- table ------------------------------------------------------------------------------------

HEADS = (
    "cell",
    "n",
    "true L",
    "bias of L",
    "coverage, %",
    "F1",
    "false links expected / found",
    "ratio",
    "log score",
)


def table(lines: list[Line]) -> str:
    """Markdown: coverage, links and scores by cell, with each part's cells together."""
    order = {cell: k for k, cell in enumerate(_all_cells())}
    lines = sorted(lines, key=lambda x: (*_run_of(x), order[x["part"], x["cell"]], x["set"]))
    out = []
    for (model, draws, tune, chains, part), of_part in _by(lines, *RUN, "part"):
        out += [f"**{part}**, model {model}; {chains} chains of {tune} + {draws} sweeps", ""]
        out += [_row(HEADS), _row(["---"] * len(HEADS))]
        cells = [(cell, of_cell) for (cell,), of_cell in _by(of_part, "cell")]
        out += [_row([cell, *summary(of_cell)]) for cell, of_cell in cells]
        out += [_row([name, *summary(some)]) for name, some in _together(of_part, len(cells))]
        out.append("")
        analysed = [line for line in of_part if "N" in line]
        out += [*_analysis_lines(analysed), ""] if analysed else []
    return "\n".join(out)


def _run_of(line: Line) -> tuple[Any, ...]:
    return tuple(line[name] for name in RUN)


def _all_cells() -> list[tuple[str, str]]:
    return [(part, cell) for part, given in PARTS.items() for cell in given.cells]


def _by(lines: list[Line], *names: str) -> Iterator[tuple[tuple[Any, ...], list[Line]]]:
    for key, group in groupby(lines, key=lambda line: tuple(line[name] for name in names)):
        yield key, list(group)


def _together(lines: list[Line], n_cells: int) -> Iterator[tuple[str, list[Line]]]:
    """All cells of a part; people and other things apart."""
    for person, name in ((True, "all of people"), (False, "all others")):
        some = [line for line in lines if line["person"] == person]
        if some and n_cells > 1:
            yield name, some


def summary(lines: list[Line]) -> list[str]:
    """Means over data sets, totals of false links."""

    def values(name: str) -> np.ndarray:
        return np.array([line[name] for line in lines], np.float64)

    true, expected, found = values("true_L"), values("false_expected").sum(), values("false_found")
    bias = values("mean_L") - true
    share = f" ({100 * bias.sum() / true.sum():+.1f} %)" if true.any() else ""
    f1 = [line["f1"] for line in lines if line["f1"] is not None]
    ratio = f"{expected / found.sum():.2f}" if found.sum() else "–"
    return [
        str(len(lines)),
        f"{true.mean():.0f}",
        f"{bias.mean():+.1f}{share}",
        f"{100 * values('covers').mean():.0f}",
        f"{np.mean(f1):.3f}" if f1 else "–",
        f"{expected:.1f} / {found.sum():.0f}",
        ratio,
        f"{values('log_score').mean():.1f}",
    ]


def _analysis_lines(lines: list[Line]) -> Iterator[str]:
    def percent(name: str) -> str:
        return f"{100 * np.mean([line[name] for line in lines]):.0f} %"

    median, estimate = (np.mean([line[name] for line in lines]) for name in ("N_median", "slope"))
    yield (
        f"N covered: {percent('N_covers')} (links known: {percent('N_covers_known')}), mean of "
        f"medians {median:.0f} for {N_PEOPLE}; slope covered: {percent('slope_covers')} (links "
        f"known: {percent('slope_covers_known')}), mean {estimate:.3f} for {SLOPE:g}."
    )


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


# --- command line -----------------------------------------------------------------------------


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "parts", nargs="*", choices=[*PARTS, []], metavar="PART", help=", ".join(PARTS)
    )
    parser.add_argument("--cells", nargs="+", help='some cells only, as in --cells "500,*"')
    parser.add_argument("--sets", type=int, default=10, help="data sets for each cell")
    parser.add_argument("--split", choices=("development", "report"), default="report")
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument("--tune", type=int, default=500)
    parser.add_argument("--chains", type=int, default=2)
    parser.add_argument(
        "--model", metavar="STRUCTURE", help="structure= of bayeslink.link, if given"
    )
    parser.add_argument("--workers", type=int, default=1, help="processes of one thread each")
    parser.add_argument("--out", type=Path, help="file of JSON lines to add to")
    parser.add_argument("--table", type=Path, help="print a table of such a file")
    given = parser.parse_args()
    if given.split == "development":
        for name in given.parts:
            if PARTS[name].only_reported:
                parser.error(f"{name} is never used to choose: it has no development split.")
    return given


def main() -> None:
    given = arguments()
    settings = Settings(given.model, given.draws, given.tune, given.chains)
    done = done_already(read_lines(given.out), settings) if given.out else set()
    wanted = jobs(given.parts, given.cells, given.split, given.sets)
    todo = [job for job in wanted if job not in done]
    for k, line in enumerate(results(todo, settings, given.workers), 1):
        text = json.dumps(line)
        if not given.out:
            print(text, flush=True)
            continue
        with given.out.open("a") as file:
            file.write(text + "\n")
        print(f"{k}/{len(todo)} {line['part']}: {line['cell']}", file=sys.stderr, flush=True)
    if given.table:
        print(table(read_lines(given.table)))


if __name__ == "__main__":
    main()
