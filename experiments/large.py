"""Section 5.3, the large example: 50,000 × 50,000 records, within postcode and over all pairs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bayeslink.comparing.fields import exact
from bayeslink.engines.compare import compare
from bayeslink.linkage.em import EMFit, assign_em, fit_em
from bayeslink.linkage.penalized import Mode, PenalizedFit, fit_penalized
from bayeslink.linkage.posthoc import BlockCurve, Blocks, block_curve, posthoc_blocks
from bayeslink.linkage.priors import LinkCountPrior, Overlap, Penalty
from bayeslink.pairs.pair_tables import callers_table
from bayeslink.pairs.source import Floats, Pairs, PairSource
from bayeslink.runs.evaluation import evaluate_links
from bayeslink.sampling.sampler import sample
from experiments import data
from experiments.calibration import binned, draw_reliability, scores
from experiments.drawing import STYLES, figure, table

THETA, W0 = 7.5, 4.9
SWEEPS = {"tune": 1000, "draws": 2500}  # the paper's
CURVE = np.arange(1.0, 13.1, 0.5)
PUBLISHED_LINKS = 24_500  # about 25,000 × .927 / .946: what the paper's mode must have had
STOPPED = 196  # iterations after which EM has the paper's Table 1; its maximum is further on
LESSER = "Bayes from that mode's blocks"

Progress = Callable[[str], None]


@dataclass(slots=True)
class Results:
    """Rows of the tables and what the figures show, as the run goes on."""

    truth: Any
    progress: Progress
    estimates: list[list[Any]] = field(default_factory=list)
    blockings: list[list[Any]] = field(default_factory=list)
    bins: dict[str, Floats] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    intervals: list[str] = field(default_factory=list)  # of L, 95 %

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        self.progress(f"large example: {name}")
        began = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - began

    def scored(
        self, name: str, links: Any, timed: str | None, expected: float | None = None
    ) -> None:
        """Add an estimate: recall, precision, false links and the seconds of the phase."""
        result = evaluate_links(links, self.truth)
        seconds = self.seconds.get(timed or name)
        row = [name, result.n_links, f"{result.recall:.1%}", f"{result.precision:.1%}"]
        wrong = [None if expected is None else round(expected), result.false_links]
        self.estimates.append([*row, *wrong, None if seconds is None else f"{seconds:.1f}"])

    def blocked(self, name: str, blocks: Blocks, wanted: Pairs) -> None:
        """Add a post-hoc blocking: blocks, pairs, single pairs, largest, completeness."""
        sizes, (a, b) = blocks.n_pairs_in_block, blocks.records_in_block()
        largest = int((a + b).argmax())
        self.blockings.append(
            [
                name,
                f"{blocks.w0:.2f}",
                blocks.n_blocks,
                blocks.n_candidates,
                int((sizes == 1).sum()),
                f"{a[largest]} × {b[largest]}",
                int(_is_among(wanted, blocks.candidates, blocks.pairs.n_b).sum()),
            ]
        )


def _is_among(some: Pairs, others: Pairs, n_b: int) -> Any:
    codes, known = (p.a.astype(np.int64) * n_b + p.b for p in (some, others))
    return np.isin(codes, known)


def _bayes(
    results: Results,
    name: str,
    blocks: Blocks,
    prior: LinkCountPrior,
    wanted: Pairs,
    tune: int = 500,
    draws: int = 1000,
) -> None:
    """Sample, score the Bayes estimate, and bin the link probabilities."""
    with results.timed(name):
        post = sample(blocks, prior=prior, restricted=True, chains=2, tune=tune, draws=draws)
    decision, c = post.estimate(), blocks.candidates
    results.scored(
        name, callers_table(blocks.pairs, c.take(decision.links), {}), None, decision.expected_false
    )
    true = _is_among(c, wanted, blocks.pairs.n_b)
    results.bins[name] = binned(post.probability, true)
    low, high = post.interval()
    results.intervals.append(f"{name}: {low:,} to {high:,}")


def within_postcode(results: Results, files: data.Files) -> tuple[PairSource, PenalizedFit]:
    """The paper's comparison as we would make it: a missing value says nothing."""
    with results.timed("read and compare"):
        pairs = compare(
            files.a, files.b, data.study_fields(), block=["postcode"], missing=data.MISSING
        )
        pairs.level_counts()
    with results.timed("EM + assignment"):
        em = fit_em(pairs)
        links = _assign_every_record(em, files.a, files.b, data.MISSING)
    above = links.filter(pc.greater(links["match_weight"], THETA / math.log(2)))
    results.scored(f"EM + assignment, w > {THETA}", above, "EM + assignment")
    results.scored("EM + assignment, w > 0", links, "EM + assignment")
    with results.timed("EM, records left free"):
        free = assign_em(em, mu=THETA, every_record=False).links
    results.scored(f"EM, records left free, w > {THETA}", free, "EM, records left free")
    with results.timed("penalized likelihood"):
        fit = fit_penalized(pairs, theta=THETA)
    results.scored("penalized likelihood", fit.links, None)
    wanted = pairs.find(results.truth) if _all_in_scope(files) else _in_scope(pairs, files)
    with results.timed("post-hoc blocks"):
        blocks = posthoc_blocks(pairs, fit)
    results.blocked("ours, w0 chosen", blocks, wanted)
    results.blocked(f"ours, w0 = {W0}", posthoc_blocks(pairs, fit, w0=W0), wanted)
    _bayes(results, f"Bayes, θ = {THETA}", blocks, Penalty(THETA), wanted, **SWEEPS)
    _bayes(results, "Bayes, no θ told", blocks, Overlap(), wanted)
    return pairs, fit


def _assign_every_record(em: EMFit, a: Any, b: Any, missing: Sequence[str]) -> Any:
    """Eq. 8 postcode by postcode, as the paper solved it; the links with w > 0.

    In all of them at once more pairs would have to be listed than fit into memory.
    """
    parts = []
    for code in pc.unique(a["postcode"]).drop_null().to_pylist():
        of_a, of_b = (t.filter(pc.equal(t["postcode"], code)) for t in (a, b))
        if len(of_b) and code not in missing:
            pairs = compare(of_a, of_b, em.pairs.fields, missing=missing)
            parts.append(assign_em(replace(em, pairs=pairs)).links)
    return pa.concat_tables(parts)


def as_the_paper_did(results: Results, files: data.Files) -> None:
    """Missing values as a value of their own, that is as disagreement, and the paper's mode.

    The best mode has far more links; of those found, the one with about as many as the published
    recall and precision imply is taken. EM is stopped where the paper's Table 1 says it was.
    """
    a, b = (_text_for_missing(t) for t in (files.a, files.b))
    pairs = compare(a, b, data.paper_fields(), block=["postcode"], missing=[])
    wanted = pairs.find(results.truth) if _all_in_scope(files) else _in_scope(pairs, files)
    stopped = fit_em(pairs, max_iterations=STOPPED)
    name = f"EM + assignment, w > 0, NA disagrees, {STOPPED} iterations"
    with results.timed(name):
        links = _assign_every_record(stopped, a, b, [])
    results.scored(name, links, None)
    for em, run_on in ((stopped, f"{STOPPED} iterations"), (fit_em(pairs), "converged")):
        free = assign_em(em, every_record=False).links
        results.scored(f"EM, records left free, w > 0, NA disagrees, {run_on}", free, None)
    with results.timed("penalized likelihood, NA disagrees"):
        fit = fit_penalized(pairs, theta=THETA)
    results.scored(
        "penalized likelihood, NA disagrees: best mode",
        fit.links,
        "penalized likelihood, NA disagrees",
    )
    mode: Mode = min(fit.modes, key=lambda m: abs(m.n_links - PUBLISHED_LINKS))
    worse = f"{fit.objective - mode.objective:.0f} lower in log posterior"
    results.scored(
        f"the same: a lesser mode, {worse}", mode.links, "penalized likelihood, NA disagrees"
    )
    blocks = posthoc_blocks(pairs, mode, w0=W0)
    results.blocked(f"NA disagrees, lesser mode, w0 = {W0}", blocks, wanted)
    _bayes(results, LESSER, blocks, Penalty(THETA), wanted, **SWEEPS)


def all_pairs(results: Results, files: data.Files) -> int:
    """What the paper could not do: all 2.5 billion pairs, the postcode as a fifth field."""
    with results.timed("all pairs: compare"):
        fields = [*data.study_fields(), exact("postcode")]
        pairs = compare(files.a, files.b, fields, missing=data.MISSING)
        pairs.level_counts()
    with results.timed("all pairs: penalized likelihood"):
        fit = fit_penalized(pairs)
    results.scored("all pairs: penalized likelihood", fit.links, None)
    with results.timed("all pairs: post-hoc blocks"):
        blocks = posthoc_blocks(pairs, fit)
    wanted = pairs.find(results.truth)
    results.blocked("all pairs, w0 chosen", blocks, wanted)
    _bayes(results, "all pairs: Bayes, no θ told", blocks, Overlap(), wanted)
    return pairs.n_pairs


def _all_in_scope(files: data.Files) -> bool:
    """In the study's files the postcode is never wrong; in simulated ones it can be."""
    return not files.source.startswith("SIMULATED")


def _in_scope(pairs: PairSource, files: data.Files) -> Pairs:
    """The true pairs that agree on the postcode; the others are lost to the blocking key."""
    of_a, of_b = (
        dict(zip(t["id"].to_pylist(), t["postcode"].to_pylist(), strict=True))
        for t in (files.a, files.b)
    )
    ids = (files.truth[c].to_pylist() for c in ("id_a", "id_b"))
    rows = [(x, y) for x, y in zip(*ids, strict=True) if of_a[x] and of_a[x] == of_b[y]]
    return pairs.find(rows)


def _text_for_missing(table: Any) -> Any:
    """The study writes missing values as NA; simulated files have nulls."""
    for i, name in enumerate(table.column_names):
        if name in data.STUDY_FIELDS:
            table = table.set_column(i, name, table[name].fill_null("NA"))
    return table


# --- figures ----------------------------------------------------------------------------------


def draw_curve(curve: BlockCurve, axes: Any) -> None:
    """Figure 5: blocks, their sizes, pairs kept and true pairs kept over w0."""
    blocks, sizes, kept, complete = axes.flat
    line = {"color": STYLES[0]["color"]}
    blocks.plot(curve.w0, curve.n_blocks, **line)
    blocks.set(ylabel="post-hoc blocks", ylim=(0, None))
    named = zip(("median", "90 %", "99 %"), curve.quantiles.T, strict=True)
    for (name, values), style in zip([*named, ("largest", curve.largest)], STYLES, strict=False):
        sizes.plot(curve.w0, np.maximum(values, 1), label=name, **{**style, "marker": None})
    sizes.set(yscale="log", ylabel="candidate pairs in a block")
    sizes.legend(title="quantile of blocks")
    kept.plot(curve.w0, 1 - curve.reduction_ratio, **line)
    kept.set(yscale="log", ylabel="share of pairs kept\n(1 − reduction ratio)")
    complete.plot(curve.w0, curve.pairs_completeness, **line)
    complete.set(ylabel="share of true pairs kept\n(pairs completeness)")
    for ax, letter in zip(axes.flat, "abcd", strict=True):
        ax.axvline(W0, color="0.6", linestyle=":", linewidth=0.9)
        ax.set_title(f"({letter})")
        ax.set_xlabel("threshold w0 (nats)")


def run(output: Path, progress: Progress = lambda message: None, *, everything: bool = True) -> str:
    """Tables as text, figures in `output`; `everything` includes the run over all pairs."""
    files = data.large()
    results = Results(files.truth, progress)
    began, cpu = time.perf_counter(), time.process_time()
    pairs, fit = within_postcode(results, files)
    wanted = pairs.find(files.truth) if _all_in_scope(files) else _in_scope(pairs, files)
    with results.timed("curve over w0"):
        curve = block_curve(pairs, fit, CURVE.tolist(), truth=wanted)
    as_the_paper_did(results, files)
    n_pairs = all_pairs(results, files) if everything else None
    total, cpu = time.perf_counter() - began, time.process_time() - cpu
    with figure(
        output / "large_blocks.png", f"{files.source}; dotted: w0 = {W0}", (8, 5), 2, 2
    ) as axes:
        draw_curve(curve, axes)
    with figure(output / "large_calibration.png", files.source, (4.6, 4.2)) as ax:
        draw_reliability(ax, {k: v for k, v in results.bins.items() if k != LESSER})
    found = {name: scores(rows) for name, rows in results.bins.items()}
    first = next(iter(found.values()))
    header = [
        "estimate",
        "links",
        "recall",
        "precision",
        "false links expected",
        "found",
        "seconds",
    ]
    blocking = ["post-hoc blocks", "w0", "blocks", "pairs", "single pairs", "largest", "true pairs"]
    over = "" if n_pairs is None else f", {n_pairs:,} in all"
    times = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in results.seconds.items())
    parts = [
        f"Data: {files.source}. {pairs.n_pairs:,} pairs within postcode{over}.",
        table(header, results.estimates),
        table(blocking, results.blockings),
        table(
            ["", *(k.replace("_", " ") for k in first)],
            [[n, *s.values()] for n, s in found.items()],
        ),
        f"95 % interval of L. {'; '.join(results.intervals)}. True: {len(files.truth):,}.",
        f"{total:.0f} s in all, {cpu:.0f} s of CPU: {times}.",
    ]
    return "\n\n".join(parts)
