"""The whole path in one call: files or tables in, links out."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bayeslink.decisions import Decision, Loss, too_few
from bayeslink.engines.local import LocalPairs
from bayeslink.errors import InputError, SettingsError
from bayeslink.explanation import Explanation, explain_pair, find_row
from bayeslink.fields import Field, exact
from bayeslink.judgements import LINK, NONLINK
from bayeslink.labels import known_pairs, with_verdict
from bayeslink.memory import Memory, parse_memory
from bayeslink.penalized import PenalizedFit, fit_penalized
from bayeslink.posterior import Posterior
from bayeslink.posthoc import posthoc_blocks
from bayeslink.priors import LinkCountPrior, Overlap, Penalty
from bayeslink.records import ReadOptions, Records, read_records
from bayeslink.runs import Run, values_of
from bayeslink.sampler import check_sampling, sample

Progress = Callable[[str], None]
Sides = str | tuple[str, str]


def compare(
    a: Any,
    b: Any,
    fields: Sequence[Field],
    *,
    id: Sides | None = "id",
    block: Sequence[Sides] = (),
    read: ReadOptions | tuple[ReadOptions, ReadOptions] | None = None,
    missing: Sequence[str] | None = None,
    threads: int | None = None,
    memory: str | int | None = None,
    progress: Progress = lambda message: None,
) -> LocalPairs:
    """Compare all pairs of two files, or all pairs that share a blocking key.

    Parameters
    ----------
    a, b
        Paths (CSV, TSV, Parquet, DuckDB), or pandas, polars or Arrow tables.
    fields
        What is compared: `exact("age")`, `levenshtein("surname")`, …
    id
        The id column, as one name or (name in A, name in B); None numbers the rows.
    block
        Columns that must be equal for a pair to be in scope, each as one name or two.
    read
        How files are read, for both or one each; see `ReadOptions`.
    missing
        Values that count as missing in both files, short for `read=ReadOptions(missing=…)`.
    memory
        What the whole run may use, such as "8GB"; most of the machine's unless given. It never
        changes a result: large arrays beyond it are kept in files.
    """
    fields, keys = _checked_fields(fields), [_block_field(names) for names in _as_list(block)]
    if threads is not None and (not isinstance(threads, int) or threads < 1):
        raise SettingsError(f"threads must be a whole number from 1 up, got {threads!r}.")
    options, room = _read_options(read, missing), Memory(parse_memory(memory))
    ids = (id, id) if id is None or isinstance(id, str) else tuple(id)
    records: list[Records] = []
    for side, (source, name) in enumerate(((a, "A"), (b, "B"))):
        progress(f"reading {name}")
        columns = list(dict.fromkeys(c for f in (*fields, *keys) for c in f.columns[side]))
        records.append(
            read_records(source, id=ids[side], columns=columns, options=options[side], side=name)
        )
        codes = 2 * 4 * len(columns) * len(records[side])
        room.take("the records read so far", records[side].nbytes + codes)
    progress(f"comparing values. {room}")
    to_caller = _caller_kind(records)
    return LocalPairs(records[0], records[1], fields, keys, threads, to_caller, room)


def link(
    a: Any,
    b: Any,
    fields: Sequence[Field],
    *,
    id: Sides | None = "id",
    block: Sequence[Sides] = (),
    theta: float | None = None,
    prior: LinkCountPrior | None = None,
    point: bool = False,
    w0: float | None = None,
    draws: int = 1000,
    tune: int = 500,
    chains: int = 4,
    loss: Loss | None = None,
    known_links: Any = None,
    known_nonlinks: Any = None,
    labels: Any = None,
    read: ReadOptions | tuple[ReadOptions, ReadOptions] | None = None,
    missing: Sequence[str] | None = None,
    seed: int = 1,
    threads: int | None = None,
    memory: str | int | None = None,
    progress: Progress = lambda message: None,
) -> Run:
    """Link two files one-to-one: compare, fit, sample the posterior, decide.

    Parameters as for `compare`, `fit_penalized`, `posthoc_blocks` and `sample`, and

    Parameters
    ----------
    theta, prior
        The cost of a link, or a prior on the number of links; a flat prior on the overlap of the
        files unless given.
    point
        Stop at the penalized-likelihood estimate: no probabilities.
    loss
        What errors and review cost; balanced unless given, which links pairs above ½.
    known_links, known_nonlinks
        Pairs (id_a, id_b) known to be links and non-links; of a table with a `decision`, as
        `run.links` has, the links.
    labels
        More of both, as judged in a review: a run directory, or what else `read_labels` takes.
    """
    if theta is not None:
        if prior is not None:
            raise SettingsError("give theta or a prior, not both: theta=2 is prior=Penalty(2).")
        prior = Penalty(theta)
    check_sampling(draws=draws, tune=tune, chains=chains, seed=seed, threads=threads)
    known, remarks = known_pairs(labels, known_links, known_nonlinks)
    if point and known is not None:
        raise SettingsError("known pairs enter through sampling: leave out point=True.")
    clock = _Clock()
    with clock("compare"):
        pairs = compare(
            a,
            b,
            fields,
            id=id,
            block=block,
            read=read,
            missing=missing,
            threads=threads,
            memory=memory,
            progress=progress,
        )
    with clock("fit"):
        fit = fit_penalized(pairs, prior=prior, progress=progress)
        plan = pairs.last_plan
    settings = {
        "a": str(a) if _is_path(a) else None,
        "b": str(b) if _is_path(b) else None,
        "id": id,
        "block": _as_list(block),
        "fields": list(fields),
        "prior": fit.prior,
        "read": _read_options(read, missing),
        "point": point,
        "w0": w0,
        "draws": draws,
        "tune": tune,
        "chains": chains,
        "loss": loss,
        "seed": seed,
    }
    if point:
        table, warnings = _point_table(pairs, fit), _point_warnings(fit)
        blocks = posterior = decision = None
    else:
        with clock("blocks"):
            progress("forming post-hoc blocks")
            links, nonlinks = (with_verdict(known, verdict) for verdict in (LINK, NONLINK))
            blocks = posthoc_blocks(pairs, fit, w0, links=links, nonlinks=nonlinks)
            plan = pairs.last_plan
        with clock("sample"):
            posterior = sample(
                blocks,
                prior=fit.prior,
                draws=draws,
                tune=tune,
                chains=chains,
                seed=seed,
                threads=threads,
                progress=progress,
            )
        with clock("decide"):
            progress("deciding")
            decision = posterior.estimate(loss)
            table = _decided_table(pairs, posterior, decision)
            warnings = _posterior_warnings(posterior, decision)
    return Run(
        pairs=pairs,
        fit=fit,
        blocks=blocks,
        posterior=posterior,
        decision=decision,
        table=table,
        labels=known,
        plan=plan,
        settings=settings,
        seconds=clock.seconds,
        warnings=(*_input_warnings(pairs), *remarks, *_fit_warnings(fit), *warnings),
    )


def _point_table(pairs: LocalPairs, fit: PenalizedFit) -> pa.Table:
    w = fit.weight_of(fit.linked.levels)
    order = np.argsort(fit.linked.a)
    columns = {
        "link_probability": pa.nulls(len(w), pa.float64()),
        "match_weight": w[order] / math.log(2),
        "decision": pa.array(["link"] * len(w), pa.string()),
    }
    return pairs.arrow_table(fit.linked.take(order), columns)


def _decided_table(pairs: LocalPairs, posterior: Posterior, decision: Decision) -> pa.Table:
    """Known links, the estimate's links, then the pairs to review; each by rows of A."""
    known, candidates = posterior.blocks.known, posterior.blocks.candidates
    chosen = known.with_more(candidates.take(decision.links))
    probability = np.append(np.ones(len(known)), posterior.probability[decision.links])
    order = np.argsort(chosen.a)
    review = decision.review[np.argsort(candidates.b[decision.review], kind="stable")]
    listed = chosen.take(order).with_more(candidates.take(review))
    columns = {
        "link_probability": np.append(probability[order], posterior.probability[review]),
        "match_weight": posterior.parameters.weight_of(listed.levels) / math.log(2),
        "decision": pa.array(["link"] * len(chosen) + ["review"] * len(review), pa.string()),
    }
    return pairs.arrow_table(listed, columns)


def explain_saved(
    directory: Any, id_a: str, id_b: str, *, progress: Progress = lambda message: None
) -> Explanation:
    """`Run.explain` from a run directory.

    The tables are enough for a candidate pair. For any other, the files are read and compared
    again; they must not have changed.
    """
    from bayeslink.store import comparison_settings, read_summary, read_table

    folder = Path(directory)
    summary, links = read_summary(folder), read_table(folder, "links")
    point = "w0" not in summary
    w0 = None if point else -math.inf if summary["w0"] is None else summary["w0"]
    parameters = read_table(folder, "parameters")
    candidates = read_table(folder, "pairs") if not point else links.drop(["link_probability"])
    row = find_row(candidates, id_a, id_b) or find_row(links, id_a, id_b)
    values = None
    if row:
        names = [f["name"] for f in summary["fields"]]
        levels = {name: row[f"gamma_{name}"] for name in names}
    else:
        progress("not a candidate pair: reading and comparing the files again")
        with comparison_settings(folder) as settings:
            pairs = compare(**settings)
        if [r.sha256 for r in pairs.records] != [i["sha256"] for i in summary["inputs"]]:
            raise InputError("an input file has changed since the run. Link the files again.")
        found = pairs.find([(id_a, id_b)])
        names = [f.name for f in pairs.fields]
        levels = dict(zip(names, found.levels[0].tolist(), strict=True))
        values = values_of(pairs, int(found.a[0]), int(found.b[0]))
    return explain_pair(
        candidates,
        links,
        parameters,
        id_a,
        id_b,
        levels=levels,
        needed=summary["theta"] / math.log(2),
        w0=None if w0 is None else w0 / math.log(2),
        values=values,
    )


def _input_warnings(pairs: LocalPairs) -> list[str]:
    out = []
    records = pairs.records
    same = records[0].sha256 is not None and records[0].sha256 == records[1].sha256
    if same or (records[0].ids.equals(records[1].ids) and records[0].columns == records[1].columns):
        out.append("A and B are the same file.")
    for d in pairs.dictionaries:
        for codes, record in zip((d.a, d.b), records, strict=True):
            if len(codes.values) == 0:
                out.append(f"field {d.field.name!r} is missing in every record of {record.label}.")
    return [*out, *pairs.notes()]


def _point_warnings(fit: PenalizedFit) -> list[str]:
    out = []
    if fit.n_links == 0:
        out.append("no pair is worth linking at this theta: the linkage is empty.")
    tied = int(fit.tied.sum())
    if tied:
        out.append(f"{tied} of {fit.n_links} links have an equally good alternative.")
    close = [mode for mode in fit.modes if fit.objective - mode.objective < 3]
    if len(close) > 1:
        sizes = ", ".join(f"{mode.n_links:,}" for mode in close)
        out.append(f"several solutions are about equally good: {sizes} links.")
    return out


def _fit_warnings(fit: PenalizedFit) -> list[str]:
    warning = fit.rivals.warning()
    return [warning] if warning else []


def _posterior_warnings(posterior: Posterior, decision: Decision) -> list[str]:
    n_links = len(decision.links) + len(posterior.blocks.known)
    empty = None if n_links else "no pair has a link probability above ½: the linkage is empty."
    found = (posterior.warning(), empty, too_few(n_links, posterior.interval()))
    return [warning for warning in found if warning]


# --- arguments --------------------------------------------------------------------------------


def _checked_fields(fields: Sequence[Field]) -> list[Field]:
    fields = list(fields)
    if not fields or not all(isinstance(f, Field) for f in fields):
        raise SettingsError(
            "give at least one field to compare, such as [levenshtein('surname'), exact('age')]."
        )
    names = [f.name for f in fields]
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise SettingsError(
            f"two fields are called {twice[0]!r}. Give one of them another name, "
            f"such as exact({twice[0]!r}, name='{twice[0]}_exact')."
        )
    return fields


def _block_field(names: Sides) -> Field:
    if isinstance(names, str):
        return exact(names)
    return exact(names[0], columns=tuple(names))


def _as_list(block: Any) -> list[Sides]:
    return [block] if isinstance(block, str) else list(block or ())


def _read_options(
    read: ReadOptions | tuple[ReadOptions, ReadOptions] | None, missing: Sequence[str] | None
) -> tuple[ReadOptions, ReadOptions]:
    if missing is not None:
        if read is not None:
            raise SettingsError("give missing or read=ReadOptions(missing=…), not both.")
        values = (missing,) if isinstance(missing, str) else tuple(missing)
        read = ReadOptions(missing=("", *(v for v in values if v != "")))
    read = read or ReadOptions()
    return (read, read) if isinstance(read, ReadOptions) else read


def _is_path(source: Any) -> bool:
    return isinstance(source, str) or hasattr(source, "__fspath__")


def _caller_kind(records: Sequence[Records]) -> Callable[[pa.Table], Any]:
    """Tables go back as they came: pandas, polars, else Arrow."""
    kinds = {r.kind for r in records}
    if "pandas" in kinds:
        return lambda table: table.to_pandas()
    if "polars" in kinds:
        import polars

        return lambda table: polars.from_arrow(table)
    return lambda table: table


class _Clock:
    """Seconds by phase."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[phase] = round(time.perf_counter() - start, 4)


__all__ = ["Overlap", "Penalty", "Run", "compare", "link"]
