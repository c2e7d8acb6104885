"""The run directory: written whole or not at all."""

from __future__ import annotations

import json
import math
import os
import platform
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from bayeslink import settings as toml
from bayeslink.errors import InputError, OutputError
from bayeslink.records import read_records

if TYPE_CHECKING:
    from bayeslink.linking import Run

_LIBRARIES = ("bayeslink", "numpy", "scipy", "numba", "rapidfuzz", "pyarrow")


def save_run(run: Run, directory: str | Path, *, force: bool = False) -> None:
    """Write links, parameters, run.json and link.toml of `run` to `directory`."""
    with replacing(directory, force=force) as folder:
        # Arrow takes only UTF-8 paths; Python opens any.
        with (folder / "links.parquet").open("wb") as file:
            pq.write_table(run.table, file, compression="zstd")
        with (folder / "links.csv").open("wb") as file:
            pyarrow.csv.write_csv(safe_for_spreadsheets(run.table), file)
        with (folder / "parameters.parquet").open("wb") as file:
            pq.write_table(parameter_table(run), file, compression="zstd")
        (folder / "run.json").write_text(json.dumps(provenance(run), indent=2) + "\n", "utf-8")
        (folder / "link.toml").write_text(toml.dump(_settings(run)), "utf-8")


@contextmanager
def replacing(directory: str | Path, *, force: bool) -> Iterator[Path]:
    """A scratch folder that becomes `directory` if all goes well, and vanishes if not.

    An existing directory is refused without `force`; with it, it stays whole until the new one
    is complete.
    """
    target = Path(directory)
    check_target(target, force=force)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    except OSError as error:
        raise _cannot_write(target, error) from None
    try:
        yield scratch
        os.chmod(scratch, 0o755)
        _swap(scratch, target)
    except OSError as error:
        raise _cannot_write(target, error) from None
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def check_target(target: Path, *, force: bool) -> None:
    """Refuse a directory that is in use, or with `force` one that no run has written."""
    try:
        if not target.exists() or (target.is_dir() and not any(target.iterdir())):
            return
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise _cannot_write(target, error) from None
    if not force:
        raise OutputError(
            f"{target} exists. Nothing was written. Choose another output directory, "
            "or say --force (force=True) to replace it."
        )
    if not _is_run(target):
        raise OutputError(
            f"{target} exists and is not a bayeslink run directory. Nothing was written. "
            "Choose another output directory."
        )


def _is_run(target: Path) -> bool:
    """Whether `provenance` wrote the run.json there: another program's may be called the same."""
    try:
        found = json.loads((target / "run.json").read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and "bayeslink" in found.get("versions", ())


def _swap(scratch: Path, target: Path) -> None:
    if not target.exists():
        scratch.rename(target)
        return
    aside = Path(tempfile.mkdtemp(prefix=f".{target.name}.old.", dir=target.parent))
    try:
        target.rename(aside / "run")
        try:
            scratch.rename(target)
        except OSError:
            (aside / "run").rename(target)
            raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _cannot_write(target: Path, error: OSError | ValueError) -> OutputError:
    reason = getattr(error, "strerror", None) or str(error)
    return OutputError(
        f"cannot write {target}: {reason}. What was there is untouched. "
        "Check the permissions and the space left, or choose another directory."
    )


def safe_for_spreadsheets(table: pa.Table) -> pa.Table:
    """Put an apostrophe before text that a spreadsheet would run as a formula."""
    for position, column in enumerate(table.schema):
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            texts = table.column(position)
            risky = pc.match_substring_regex(texts, r"^[=+\-@\t\r]")
            made_safe = pc.replace_substring_regex(texts, "^", "'")
            table = table.set_column(position, column.name, pc.if_else(risky, made_safe, texts))
    return table


def parameter_table(run: Run) -> pa.Table:
    """m, u and the weight in bits of each level of each field."""
    rows: list[dict[str, Any]] = []
    for field, m, u in zip(run.pairs.fields, run.fit.m, run.fit.u, strict=True):
        for level, (label, of_m, of_u) in enumerate(zip(field.labels, m, u, strict=True), 1):
            bits = math.log2(of_m) - math.log2(of_u)
            rows.append(
                {
                    "field": field.name,
                    "level": level,
                    "label": label,
                    "m": float(of_m),
                    "u": float(of_u),
                    "match_weight": bits,
                }
            )
    return pa.Table.from_pylist(rows)


def provenance(run: Run) -> dict[str, Any]:
    """Software, settings, inputs and results: what it takes to repeat and to check the run."""
    counts = run.pairs.level_counts().counts
    return {
        **run.summary(),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {name: version(name) for name in _LIBRARIES},
        "python": platform.python_version(),
        "platform": platform.platform(),
        "inputs": [
            {
                "label": records.label,
                "kind": records.kind,
                "sha256": records.sha256,
                "records": len(records),
                "quarantined": records.quarantined,
            }
            for records in run.pairs.records
        ],
        "fields": [
            {
                "name": d.field.name,
                "comparison": d.field.kind,
                "normalise": list(d.field.normalise),
                "levels": list(d.field.labels),
                "distinct": [len(d.a.values), len(d.b.values)],
                "missing": [d.a.n_missing, d.b.n_missing],
                "invalid": [d.a.n_invalid, d.b.n_invalid],
                "pairs_by_level": np.asarray(counts[j, : d.field.n_levels + 1]).tolist(),
            }
            for j, d in enumerate(run.pairs.dictionaries)
        ],
    }


def _settings(run: Run) -> dict[str, Any]:
    return {**run.settings, **toml.settings_of_reading(run.settings["read"])}


def read_links(directory: Path) -> pa.Table:
    """The links of a run directory."""
    path = directory / "links.parquet"
    try:
        with path.open("rb") as file:
            return pq.read_table(file)
    except (OSError, pa.ArrowInvalid) as error:
        raise InputError(
            f"cannot read {path}: {str(error).splitlines()[0]}. "
            "Give the directory that `bayeslink link -o` wrote."
        ) from None


def read_truth(path: Path) -> pa.Table:
    """Known pairs, from a file with columns id_a and id_b."""
    records = read_records(path, id=None, columns=["id_a", "id_b"])
    return pa.table(records.columns)
