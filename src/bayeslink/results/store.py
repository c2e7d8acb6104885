"""The run directory: written whole or not at all."""

from __future__ import annotations

import json
import os
import platform
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq

from bayeslink.comparing.fields import GIVEN, Field, custom, given_levels
from bayeslink.data.checksums import require_unchanged
from bayeslink.data.read_options import ReadOptions
from bayeslink.data.records import Records, read_records
from bayeslink.data.spreadsheets import safe_for_spreadsheets
from bayeslink.engines.compare import compare
from bayeslink.errors import InputError
from bayeslink.judging.judgements import FILE, Judgements
from bayeslink.judging.labels import LABELS
from bayeslink.model.structure import DEPENDENT
from bayeslink.pairs.pair_tables import with_own_ids
from bayeslink.pairs.source import Ints, PairSource
from bayeslink.results import link_toml
from bayeslink.results.best_unlinked import best_pairs
from bayeslink.results.models import FILE as MODEL
from bayeslink.results.models import model_of, settled_of
from bayeslink.results.outputs import write_inputs, write_outputs
from bayeslink.results.reading import digest_of
from bayeslink.results.run_directory import claim, replacing
from bayeslink.results.state import FILE as STATE
from bayeslink.results.state import write_state
from bayeslink.results.tables import draw_table, link_draw_table, parameter_table
from bayeslink.settings import LinkSettings

if TYPE_CHECKING:
    from bayeslink.linking.run import Run

_LIBRARIES = ("bayeslink", "numpy", "scipy", "numba", "rapidfuzz", "pyarrow")


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
        own_ids = partial(with_own_ids, types=run.pairs.id_types)
        tables = {"links": run.table, "parameters": parameter_table(run)}
        if run.posterior is not None:
            tables["pairs"] = run.candidates()
            tables["draws"] = draw_table(run.posterior)
            tables["link_draws"] = link_draw_table(run.posterior)
        if (reach := best_pairs(run)) is not None:
            tables["reach"] = reach
        if run.labels is not None:
            tables["labels"] = run.labels
        for name, table in tables.items():
            # Arrow takes only UTF-8 paths; Python opens any.
            with (folder / f"{name}.parquet").open("wb") as file:
                pq.write_table(own_ids(table), file, compression="zstd")
        with (folder / "links.csv").open("wb") as file:
            pyarrow.csv.write_csv(safe_for_spreadsheets(run.table), file)
        remarks = write_outputs(run, folder, linked) if linked else []
        kept = write_inputs(run, folder) if keep_inputs else {}
        (folder / "link.toml").write_text(_link_toml(run, held.target, kept), "utf-8")
        model = json.dumps(model_of(run), indent=2, default=np.generic.item)
        (folder / MODEL).write_text(model + "\n", "utf-8")
        write_state(state_of(run), folder / STATE)
        # What is ours, which a later run may replace, and how it was.
        files = {path.name: digest_of(path) for path in sorted(folder.iterdir())}
        summary = {**provenance(run, remarks), "files": files}
        text = json.dumps(summary, indent=2, default=np.generic.item)
        (folder / "run.json").write_text(text + "\n", "utf-8")
        if (judged := held.target / FILE).exists():
            judgements = stack.enter_context(Judgements(judged))
            stack.enter_context(judgements.carried_to(folder / FILE))


def provenance(run: Run, remarks: Sequence[str] = ()) -> dict[str, Any]:
    """Software, settings, inputs and results: what it takes to repeat and to check the run."""
    described, counts = run.pairs.describe(), run.pairs.level_counts().counts
    return {
        **run.summary(),
        "warnings": [*run.warnings, *remarks],
        **({"kept_every": run.posterior.kept_every} if run.posterior else {}),
        "diagnostics": [asdict(d) for d in run.posterior.diagnostics()] if run.posterior else [],
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {name: version(name) for name in _LIBRARIES},
        "python": platform.python_version(),
        "platform": platform.platform(),
        "engine": described.engine,
        "inputs": [dict(given) for given in described.inputs],
        "fields": [
            {
                "name": f.name,
                "comparison": f.kind,
                "normalise": list(f.normalise),
                "levels": list(f.labels),
                "pairs_by_level": np.asarray(counts[j, : f.n_levels + 1]).tolist(),
                **described.fields[j],
            }
            for j, f in enumerate(run.pairs.fields)
        ],
    }


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
        "ids": [pairs.ids(side, rows) for side, rows in enumerate(sides)],
        "tie_keys": pairs.tie_keys,
        "copies": pairs.copies and [_told_copies(first) for first in pairs.copies],
        "counts": pairs.level_counts(),
        "kind": pairs.kind,
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


def _told_copies(first: Ints) -> tuple[Ints, Ints]:
    """The rows that are copies of an earlier one, and which."""
    rows = np.flatnonzero(first != np.arange(len(first)))
    return rows, first[rows]


def run_settings(directory: Path, a: Any = None, b: Any = None) -> LinkSettings:
    """The link.toml of a run directory, with other inputs where they are given.

    The function of a custom field is not there: such a field can be told of, not compared.
    """
    entries = link_toml.load(directory / "link.toml")
    fields = [_told(entry) for entry in entries.pop("fields", ())]
    own = {key: value for key, value in entries.items() if key not in ("labels", "output")}
    own.update({side: given for side, given in (("a", a), ("b", b)) if given is not None})
    return LinkSettings.of(**{"id": "id", **own}, fields=fields, started_in=os.getcwd())


def _told(entry: Mapping[str, Any]) -> Any:
    if entry.get("compare") == GIVEN:
        return given_levels(entry["column"], entry["labels"])
    if entry.get("compare") != "custom":
        return entry
    rest = {key: value for key, value in entry.items() if key not in ("compare", "column")}

    def lost(x: str, y: str) -> int:
        raise InputError(
            f"the field {entry['column']!r} was compared by a Python function, which a run "
            "directory does not hold. Link again from Python."
        )

    return custom(entry["column"], lost, **rest)


def inputs_from(directory: Path, a: Any = None, b: Any = None) -> LinkSettings:
    """The settings of a run whose inputs are to be read again; refused if one is not there."""
    settings = run_settings(directory, a, b)
    for side, source in (("a", settings.a), ("b", settings.b)):
        give = f"Give it with --{side} ({side}=)."
        if source is None:
            raise InputError(
                f"this needs the records of the run, and input {side.upper()} came from Python, "
                f"not from a file (or from one whose path is not UTF-8). {give}"
            )
        if isinstance(source, str) and not os.path.exists(source):
            raise InputError(
                f"this needs the records of the run, and input {side.upper()} is not at "
                f"{source}. {give}"
            )
    return settings


def read_inputs(
    settings: LinkSettings, fields: Sequence[Field], summary: Mapping[str, Any]
) -> tuple[Records, Records]:
    """Both files of a run once more, with the columns of these fields; refused if they changed."""
    ids = settings.id if isinstance(settings.id, tuple) else (settings.id, settings.id)
    with _set_aside_elsewhere(settings) as reads:
        a, b = (
            read_records(
                source,
                id=ids[side],
                columns=list(dict.fromkeys(name for f in fields for name in f.columns[side])),
                options=reads[side],
                side="AB"[side],
            )
            for side, source in enumerate((settings.a, settings.b))
        )
    require_unchanged([a.sha256, b.sha256], summary["inputs"])
    return a, b


def compare_again(
    directory: Path, summary: Mapping[str, Any], a: Any = None, b: Any = None
) -> PairSource:
    """The comparison of a run done again, with other inputs if given; refused if they changed."""
    settings = inputs_from(directory, a, b)
    with _set_aside_elsewhere(settings) as reads:
        found = compare(
            settings.a,
            settings.b,
            settings.fields,
            id=settings.id,
            block=settings.block,
            read=reads,
            swapped_names=settings.structure == DEPENDENT,
            engine=settings.engine,
        )
    require_unchanged([each["sha256"] for each in found.describe().inputs], summary["inputs"])
    return found


@contextmanager
def _set_aside_elsewhere(settings: LinkSettings) -> Iterator[tuple[ReadOptions, ReadOptions]]:
    """How the files are read. The run has set bad rows aside already: now they go to scratch."""
    with tempfile.TemporaryDirectory() as scratch:
        a, b = (
            replace(read, quarantine=read.quarantine and f"{scratch}/{side}")
            for side, read in zip("ab", settings.read, strict=True)
        )
        yield a, b
