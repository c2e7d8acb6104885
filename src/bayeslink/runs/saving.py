"""A run is saved: its directory is written whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq

from bayeslink.data.spreadsheets import safe_for_spreadsheets
from bayeslink.judging.judgements import kept_in
from bayeslink.judging.labels import LABELS
from bayeslink.pairs.pair_tables import with_own_ids
from bayeslink.pairs.source import Ints, Pairs
from bayeslink.runs import link_toml
from bayeslink.runs.models import FILE as MODEL
from bayeslink.runs.models import model_of, settled_of
from bayeslink.runs.outputs import write_inputs, write_outputs
from bayeslink.runs.reading import digests_of
from bayeslink.runs.run_directory import claim, replacing
from bayeslink.runs.run_json import write_summary
from bayeslink.runs.state import FILE as STATE
from bayeslink.runs.state import write_state
from bayeslink.runs.tables import TABLES, check, extent_of

if TYPE_CHECKING:
    from bayeslink.runs.run import Run


def save_run(
    run: Run,
    directory: str | Path,
    *,
    force: bool = False,
    shared: bool = False,
    linked: bool | str = True,
    keep_inputs: bool = False,
) -> None:
    """Write the run directory: tables as Parquet (the links as CSV too), run.json, link.toml.

    With `linked`, also the linked file and the records without a link; with `keep_inputs`, the
    inputs. Judgements in a directory that is replaced stay. Only the owner may read it, unless it
    is `shared` with the group.
    """
    inputs = run.settings.a, run.settings.b
    with (
        ExitStack() as stack,
        claim(directory, force=force, inputs=inputs) as held,
        replacing(held.target, force=force, shared=shared) as folder,
    ):
        summary = run.provenance()
        _write_tables(run, folder, summary)
        remarks = write_outputs(run, folder, linked) if linked else []
        kept = write_inputs(run, folder) if keep_inputs else {}
        (folder / link_toml.FILE).write_text(_link_toml(run, held.target, kept), "utf-8")
        model = json.dumps(model_of(run), indent=2, default=np.generic.item)
        (folder / MODEL).write_text(model + "\n", "utf-8")
        write_state(state_of(run), folder / STATE)
        # What is ours, which a later run may replace, and how it was.
        files, warnings = digests_of(folder), [*run.warnings, *remarks]
        write_summary(folder, {**summary, "warnings": warnings, "files": files})
        stack.enter_context(kept_in(held.target, folder))


def _write_tables(run: Run, folder: Path, summary: Mapping[str, Any]) -> None:
    """The tables, each once it is what `RunFiles` takes."""
    own_ids, n_pairs = partial(with_own_ids, types=run.pairs.id_types), 0
    for name in TABLES:
        table = run.as_table(name)
        if table is None:
            continue
        n_pairs = len(table) if name == "pairs" else n_pairs
        check(table, name, extent_of(summary, n_pairs))
        # Arrow takes only UTF-8 paths; Python opens any.
        with (folder / f"{name}.parquet").open("wb") as file:
            pq.write_table(own_ids(table), file, compression="zstd")
    with (folder / "links.csv").open("wb") as file:
        pyarrow.csv.write_csv(safe_for_spreadsheets(run.table), file)


def _link_toml(run: Run, target: Path, kept: Mapping[str, Any]) -> str:
    """The link.toml of a run, for the directory that it will be in."""
    labels = None if run.labels is None else str(target / LABELS)
    own: dict[str, Any] = {key: str(target / name) for key, name in kept.items()}
    return link_toml.dump(replace(run.settings, labels=labels, **own), target)


def state_of(run: Run) -> dict[str, Any]:
    """What it takes to open the run again, beside its tables and run.json; nothing about time."""
    pairs, post = run.pairs, run.posterior
    sides = [np.arange(n, dtype=np.int32) for n in (pairs.n_a, pairs.n_b)]
    return {
        "fields": [
            [f.name, f.labels, f.m_prior, f.u_prior, f.covers, settled_of(f)] for f in pairs.fields
        ],
        "scope": pairs.scope,
        "listed": _listed(run),
        "ids": [pairs.ids(side, rows) for side, rows in enumerate(sides)],
        "tie_keys": pairs.tie_keys,
        "copies": pairs.copies and [_told_copies(first) for first in pairs.copies],
        "counts": pairs.level_counts(),
        "kind": pairs.kind,
        "closed": pairs.closed,
        "id_types": pairs.id_types,
        "fit": run.fit,
        "blocks": run.blocks,
        "posterior": post,
        "probability": None if post is None else post.probability,
        "kept_every": None if post is None else post.kept_every,
        "n_kept": None if post is None else [len(chain) for chain in post.kept],
        "decision": run.decision,
        "checks": run.checks,
        "plan": None if run.plan is None else str(run.plan),
    }


def _listed(run: Run) -> tuple[Pairs, ...]:
    """Pairs of which the levels are known without the files: candidates and links."""
    if run.posterior is None:
        return (run.fit.linked,)
    return run.posterior.blocks.candidates, run.posterior.blocks.known


def _told_copies(first: Ints) -> tuple[Ints, Ints]:
    """The rows that are copies of an earlier one, and which."""
    rows = np.flatnonzero(first != np.arange(len(first)))
    return rows, first[rows]
