"""Section 5.2, the simulation study: 900 settings, three estimators, ours by default, others'.

Each setting's results are one line of `simulation.jsonl`; a run that was interrupted goes on where
it stopped.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from bayeslink import __version__
from bayeslink.comparing.fields import Field
from bayeslink.engines.compare import compare
from bayeslink.linkage.em import assign_em, fit_em
from bayeslink.linkage.penalized import fit_penalized
from bayeslink.linkage.posthoc import posthoc_blocks
from bayeslink.linkage.priors import Penalty
from bayeslink.linking.link import link
from bayeslink.pairs.pair_tables import callers_table
from bayeslink.runs.evaluation import evaluate_links
from bayeslink.runs.run import Run
from bayeslink.sampling.sampler import sample
from bayeslink.simulation.files import simulate
from experiments import data
from experiments.calibration import binned, draw_reliability, scores
from experiments.drawing import STYLES, figure, table

ERRORS = (1, 2, 3)
THETA = {50: 7.0, 250: 5.0, 500: 0.0}  # the paper's, by records in both files
COMPARED = (50, 250, 450)  # at which BRL, fabl and vabl were run
PAPER = ("EM, w > 0", "EM, w > θ", "penalized likelihood", "Bayes, θ told")
FREE = ("EM, records free, w > 0", "EM, records free, w > θ")  # instead of Eq. 8
DEFAULT = "default, no θ"
PEOPLE, CAUGHT = 1000, 400  # population and size of both files, for the coverage of N
# Two designs of catches: errors a record, and how the fields are compared.
CATCHES: dict[str, tuple[int, Callable[[], list[Field]]]] = {
    "six fields, 2 errors": (2, data.person_fields),
    "four fields, 4 errors": (4, data.study_fields),
}

Row = dict[str, Any]


def estimate(errors: int, overlap: int, dataset: int) -> Row:
    """Recall and precision of each estimator on one setting; coverage and calibration too."""
    files = data.study(errors, overlap, dataset)
    row: Row = {"kind": "study", "errors": errors, "overlap": overlap, "dataset": dataset}
    if overlap in THETA:
        linked = _paper_links(files, THETA[overlap])
        row |= {name: _scores(links, files.truth) for name, links in linked.items()}
    if overlap in COMPARED:
        run = link(files.a, files.b, data.study_fields(), missing=data.MISSING, threads=1)
        row |= {DEFAULT: _scores(run.links, files.truth)} | _posterior_facts(run, files.truth)
    return row


def capture(design: str, number: int) -> Row:
    """Two independent catches from a population of known size: are L and N covered?"""
    errors, fields = CATCHES[design]
    links = int(np.random.default_rng(number).hypergeometric(CAUGHT, PEOPLE - CAUGHT, CAUGHT))
    made = simulate(CAUGHT, overlap=links / CAUGHT, errors=errors, seed=number)
    run = link(made.a, made.b, fields(), threads=1)
    assert run.posterior is not None
    size = run.posterior.population_size()
    row = {"kind": design, "dataset": number, "overlap": links, "size": [size.low, size.high]}
    return row | _posterior_facts(run, made.truth)


def _paper_links(files: data.Files, theta: float) -> dict[str, Any]:
    """The paper's three point estimates: its priors, θ told, w0 = 0, 1,000 sweeps.

    EM + assignment twice: the paper does not say at which weight it is cut; and twice more with
    records left free, which Eq. 8 does not.
    """
    pairs = compare(files.a, files.b, data.paper_fields(), missing=data.MISSING, threads=1)
    fit = fit_penalized(pairs, theta=theta)
    blocks = posthoc_blocks(pairs, fit, w0=0.0)
    post = sample(
        blocks, prior=Penalty(theta), restricted=True, draws=900, tune=100, chains=1, threads=1
    )
    bayes = callers_table(pairs, blocks.candidates.take(post.estimate().links), {})
    em = fit_em(pairs)
    every, free = (
        [assign_em(em, mu=cut, every_record=all_of_them).links for cut in (0.0, theta)]
        for all_of_them in (True, False)
    )
    return dict(zip((*PAPER, *FREE), (*every, fit.links, bayes, *free), strict=True))


def _scores(links: Any, truth: Any) -> list[float]:
    result = evaluate_links(links, truth)
    return [result.recall, 1.0 if result.n_links == 0 else result.precision]


def _posterior_facts(run: Run, truth: Any) -> Row:
    """What the posterior claims, and what is so."""
    assert run.posterior is not None
    post, c = run.posterior, run.posterior.blocks.candidates
    wanted = run.pairs.find(truth)
    codes, true = (x.a.astype(np.int64) * run.pairs.n_b + x.b for x in (c, wanted))
    return {
        "links": list(post.interval()),
        "expected_false": post.estimate().expected_false,
        "false": evaluate_links(run.links, truth).false_links,
        "left_out": int((~np.isin(true, codes)).sum()),
        "bins": binned(post.probability, np.isin(codes, true)).round(6).tolist(),
    }


# --- running and resuming ---------------------------------------------------------------------


def tasks(datasets: int) -> list[tuple[Any, ...]]:
    """All settings of the first `datasets` databases, and as many catches of each design."""
    overlaps = sorted({*THETA, *COMPARED})
    return [
        task
        for d in range(datasets)
        for task in (*product(ERRORS, overlaps, [d]), *product(CATCHES, [d]))
    ]


def _do(task: tuple[Any, ...]) -> Row:
    began = time.process_time()
    row = estimate(*task) if len(task) == 3 else capture(*task)
    return row | {"cpu_seconds": round(time.process_time() - began, 2)}


def compute(
    datasets: int, cache: Path, progress: Callable[[str], None], workers: int | None = None
) -> list[Row]:
    """Results of all tasks; those in `cache`, made with the same version and data, are reused."""
    made_with = f"{__version__}, {data.study_source()}, {PAPER}, {FREE}"
    cached = _read(cache, made_with)
    wanted = tasks(datasets)
    todo = [task for task in wanted if task not in cached]
    cache.parent.mkdir(parents=True, exist_ok=True)
    with cache.open("a") as file, ProcessPoolExecutor(workers or os.cpu_count() or 1) as pool:
        for n, (task, row) in enumerate(zip(todo, pool.map(_do, todo, chunksize=2), strict=True)):
            progress(f"simulation study: {n + 1:,} of {len(todo):,} runs")
            cached[task] = row
            file.write(json.dumps({"made_with": made_with, "task": task, **row}) + "\n")
            file.flush()
    return [cached[task] for task in wanted]


def _read(cache: Path, made_with: str) -> dict[tuple[Any, ...], Row]:
    lines = cache.read_text().splitlines() if cache.is_file() else []
    rows = []
    for line in lines:
        try:
            rows.append(json.loads(line))
        except ValueError:  # the last line of an interrupted run
            continue
    return {tuple(row["task"]): row for row in rows if row["made_with"] == made_with}


# --- summaries --------------------------------------------------------------------------------


def by_cell(rows: Iterable[Row], method: str) -> dict[tuple[int, int], Any]:
    """(errors, overlap) -> recall and precision of each database, for one method."""
    cells: dict[tuple[int, int], list[list[float]]] = {}
    for row in rows:
        if method in row:
            cells.setdefault((row["errors"], row["overlap"]), []).append(row[method])
    return {cell: np.array(values) for cell, values in cells.items()}


def published(datasets: int) -> dict[str, dict[tuple[int, int], Any]]:
    """BRL, fabl and vabl on the same databases; nothing where results or data are absent."""
    if not (data.REFERENCES.is_file() and data.STUDY.is_file()):
        return {}
    cells = [(e, o) for e in ERRORS for o in COMPARED]
    return {
        method: {cell: data.reference_scores(*cell)[method][:datasets] for cell in cells}
        for method in ("BRL", "fabl", "vabl")
    }


def f1(cells: dict[tuple[int, int], Any]) -> float:
    """Mean over the cells of the F1 of mean recall and mean precision."""
    means = np.array([values.mean(axis=0) for values in cells.values()])
    return float((2 * means.prod(axis=1) / means.sum(axis=1)).mean())


def score_table(methods: dict[str, dict[tuple[int, int], Any]]) -> str:
    """Mean recall / precision by cell, and the mean F1 of each method."""
    cells = sorted({c for found in methods.values() for c in found}, key=lambda c: (c[1], c[0]))
    rows: list[list[Any]] = [
        [*cell, *(_pair(found.get(cell)) for found in methods.values())] for cell in cells
    ]
    rows.append(["F1", "", *(f"{f1(found):.4f}" for found in methods.values())])
    return table(["errors", "in both", *methods], rows)


def _pair(values: Any) -> str | None:
    return None if values is None else "{:.3f} / {:.3f}".format(*values.mean(axis=0))


def failures(rows: list[Row]) -> str:
    """Share of the databases on which an estimator breaks down, by overlap."""
    out = []
    for overlap in THETA:
        shares = []
        for name in PAPER:
            values = [v for (_, o), v in by_cell(rows, name).items() if o == overlap]
            both = np.concatenate(values)
            shares.append(float((both.min(axis=1) < 0.5).mean()))
        out.append([overlap, *(f"{share:.1%}" for share in shares)])
    return table(["in both", *PAPER], out)


def coverage(rows: list[Row]) -> str:
    """How often the 95 % intervals hold the truth, and links expected and found to be false."""
    study = [row for row in rows if row["kind"] == "study"]
    groups = {f"study, {o} in both": [r for r in study if r["overlap"] == o] for o in COMPARED}
    groups |= {f"catches, {c}": [r for r in rows if r["kind"] == c] for c in CATCHES}
    out: list[list[Any]] = []
    for name, some in groups.items():
        held = np.mean([r["links"][0] <= r["overlap"] <= r["links"][1] for r in some])
        sizes = [r["size"][0] <= PEOPLE <= r["size"][1] for r in some if "size" in r]
        of_size = f"{np.mean(sizes):.1%}" if sizes else None
        expected, false = sum(r["expected_false"] for r in some), sum(r["false"] for r in some)
        left_out = sum(r["left_out"] for r in some)
        row = [len(some), f"{held:.1%}", of_size, round(expected), false, left_out]
        out.append([name, *row])
    header = ["data", "runs", "L covered", "N covered", "false links expected", "found"]
    return table([*header, "true pairs not candidates"], out)


def total_bins(rows: Iterable[Row]) -> Any:
    return np.sum([row["bins"] for row in rows if "bins" in row], axis=0)


# --- figures ----------------------------------------------------------------------------------


def draw_scores(methods: dict[str, dict[tuple[int, int], Any]], axes: Any) -> None:
    """Figure 4: median, and 5 to 95 % of the databases, by errors, overlap and method."""
    for side, measure in enumerate(("recall", "precision")):
        for panel, overlap in enumerate(sorted({*THETA, *COMPARED})):
            ax = axes[side][panel]
            shown = [(n, c) for n, c in methods.items() if any(o == overlap for _, o in c)]
            for (name, cells), style in zip(methods.items(), STYLES, strict=False):
                if name not in dict(shown):
                    continue
                k = [n for n, _ in shown].index(name)
                shift = 0.1 * (k - (len(shown) - 1) / 2)
                for e in ERRORS:
                    low, middle, high = np.quantile(cells[e, overlap][:, side], [0.05, 0.5, 0.95])
                    mark = {"color": style["color"], "marker": style["marker"]}
                    ax.plot([e + shift] * 2, [low, high], color=style["color"], linewidth=1)
                    ax.plot(
                        e + shift, middle, label=name if e == 1 else None, linestyle="none", **mark
                    )
            ax.set(xticks=ERRORS, xlim=(0.5, 3.5), ylim=(None, 1.005))
            if side == 0:
                ax.set_title(f"{overlap} of 500 in both")
            if side == 1:
                ax.set_xlabel("fields with errors")
            if panel == 0:
                ax.set_ylabel(measure)


def _draw(rows: list[Row], methods: Any, output: Path) -> None:
    source = data.study_source()
    with figure(output / "simulation_scores.png", source, (10, 5.6), 2, 4) as axes:
        draw_scores(methods, axes)
        handles = {h.get_label(): h for ax in axes.flat for h in ax.lines
                   if not h.get_label().startswith("_")}  # fmt: skip
        order = [handles[name] for name in methods]
        axes[0][0].figure.legend(handles=order, loc="outside upper center", ncols=len(order))
    with figure(output / "simulation_calibration.png", source, (4.6, 4.2)) as ax:
        study = [row for row in rows if row["kind"] == "study"]
        groups = {
            f"{o} of 500 in both": total_bins(r for r in study if r["overlap"] == o)
            for o in COMPARED
        }
        draw_reliability(ax, groups)


def run(
    output: Path, progress: Callable[[str], None] = lambda message: None, *, datasets: int = 100
) -> str:
    """Tables as text, figures in `output`."""
    rows = compute(datasets, output / "simulation.jsonl", progress)
    ours = {name: by_cell(rows, name) for name in (*PAPER, DEFAULT)}
    methods = ours | published(datasets)
    _draw(rows, methods, output)
    found = scores(total_bins(row for row in rows if row["kind"] == "study"))
    calibrated = table([name.replace("_", " ") for name in found], [list(found.values())])
    paper = {name: methods[name] for name in PAPER} | {name: by_cell(rows, name) for name in FREE}
    compared = {name: methods[name] for name in methods if name not in PAPER}
    parts = [
        f"Data: {data.study_source()}, {datasets} databases a cell. Mean recall / precision.",
        score_table(paper),
        score_table(compared),
        "Databases with recall or precision below ½:\n\n" + failures(rows),
        coverage(rows),
        f"Link probabilities of all candidates:\n\n{calibrated}",
        f"{len(rows):,} runs, {sum(row['cpu_seconds'] for row in rows):,.0f} CPU seconds.",
    ]
    return "\n\n".join(parts)
