"""The whole path in one call: files or tables in, links out."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from bayeslink.engines.local import LocalPairs
from bayeslink.errors import SettingsError
from bayeslink.fields import Field, exact
from bayeslink.penalized import PenalizedFit, fit_penalized
from bayeslink.priors import LinkCountPrior, Overlap, Penalty
from bayeslink.records import ReadOptions, Records, read_records

Progress = Callable[[str], None]
Sides = str | tuple[str, str]


@dataclass(frozen=True, slots=True)
class Run:
    """A finished linkage: the links and all that led to them."""

    pairs: LocalPairs = field(repr=False)
    fit: PenalizedFit
    table: pa.Table = field(repr=False)  # the links, as Arrow
    settings: Mapping[str, Any] = field(repr=False)
    seconds: Mapping[str, float]
    warnings: tuple[str, ...]

    @property
    def links(self) -> Any:
        """The links in the caller's own kind of table."""
        return self.pairs.to_caller(self.table)

    def save(self, directory: Any, *, force: bool = False) -> None:
        """Write the run directory: links, parameters, run.json, link.toml."""
        from bayeslink.store import save_run

        save_run(self, directory, force=force)

    def summary(self) -> dict[str, Any]:
        """The run in a few numbers, as `run.json` and `--json` have them."""
        pairs, fit = self.pairs, self.fit
        return {
            "n_a": pairs.n_a,
            "n_b": pairs.n_b,
            "n_pairs": pairs.n_pairs,
            "n_links": fit.n_links,
            "theta": fit.theta,
            "prior": repr(fit.prior),
            "objective": fit.objective,
            "tied_links": int(fit.tied.sum()),
            "modes": [{"n_links": m.n_links, "objective": m.objective} for m in fit.modes],
            "seconds": dict(self.seconds),
            "warnings": list(self.warnings),
        }


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
    """
    fields, keys = _checked_fields(fields), [_block_field(names) for names in _as_list(block)]
    if threads is not None and (not isinstance(threads, int) or threads < 1):
        raise SettingsError(f"threads must be a whole number from 1 up, got {threads!r}.")
    options = _read_options(read, missing)
    ids = (id, id) if id is None or isinstance(id, str) else tuple(id)
    records: list[Records] = []
    for side, (source, name) in enumerate(((a, "A"), (b, "B"))):
        progress(f"reading {name}")
        columns = list(dict.fromkeys(c for f in (*fields, *keys) for c in f.columns[side]))
        records.append(
            read_records(source, id=ids[side], columns=columns, options=options[side], side=name)
        )
    progress("comparing values")
    to_caller = _caller_kind(records)
    return LocalPairs(records[0], records[1], fields, keys, threads, to_caller)


def link(
    a: Any,
    b: Any,
    fields: Sequence[Field],
    *,
    id: Sides | None = "id",
    block: Sequence[Sides] = (),
    theta: float | None = None,
    prior: LinkCountPrior | None = None,
    read: ReadOptions | tuple[ReadOptions, ReadOptions] | None = None,
    missing: Sequence[str] | None = None,
    seed: int = 1,
    threads: int | None = None,
    progress: Progress = lambda message: None,
) -> Run:
    """Link two files one-to-one: compare, then maximise the penalized likelihood.

    Parameters as for `compare` and `fit_penalized`. Without `theta`, the cost of a link follows
    from a flat prior on the overlap of the files.
    """
    if theta is not None and prior is None:
        prior = Penalty(theta)
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
            progress=progress,
        )
    with clock("fit"):
        fit = fit_penalized(pairs, prior=prior, progress=progress)
    settings = {
        "a": str(a) if _is_path(a) else None,
        "b": str(b) if _is_path(b) else None,
        "id": id,
        "block": _as_list(block),
        "fields": list(fields),
        "prior": fit.prior,
        "read": _read_options(read, missing),
        "seed": seed,
    }
    return Run(pairs, fit, _link_table(pairs, fit), settings, clock.seconds, _warnings(pairs, fit))


def _link_table(pairs: LocalPairs, fit: PenalizedFit) -> pa.Table:
    w = fit.weight_of(fit.linked.levels)
    order = np.argsort(fit.linked.a)
    columns = {
        "link_probability": pa.nulls(len(w), pa.float64()),
        "match_weight": w[order] / math.log(2),
        "decision": pa.array(["link"] * len(w), pa.string()),
    }
    return pairs.arrow_table(fit.linked.take(order), columns)


def _warnings(pairs: LocalPairs, fit: PenalizedFit) -> tuple[str, ...]:
    out = []
    records = pairs.records
    same = records[0].sha256 is not None and records[0].sha256 == records[1].sha256
    if same or (records[0].ids.equals(records[1].ids) and records[0].columns == records[1].columns):
        out.append("A and B are the same file.")
    for d in pairs.dictionaries:
        for codes, record in zip((d.a, d.b), records, strict=True):
            if len(codes.values) == 0:
                out.append(f"field {d.field.name!r} is missing in every record of {record.label}.")
    if fit.n_links == 0:
        out.append("no pair is worth linking at this theta: the linkage is empty.")
    tied = int(fit.tied.sum())
    if tied:
        out.append(f"{tied} of {fit.n_links} links have an equally good alternative.")
    close = [mode for mode in fit.modes if fit.objective - mode.objective < 3]
    if len(close) > 1:
        sizes = ", ".join(f"{mode.n_links:,}" for mode in close)
        out.append(f"several solutions are about equally good: {sizes} links.")
    return tuple(out)


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
