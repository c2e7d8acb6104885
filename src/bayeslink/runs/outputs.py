"""What a run gives beside its links: the linked file, the records without a link."""

from __future__ import annotations

import os
import shutil
from contextlib import closing
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bayeslink.data.checksums import LOGS, checksum, require_same
from bayeslink.data.locations import is_path
from bayeslink.errors import ChangedInputError, InputError, OutputError, SettingsError
from bayeslink.private import written_whole
from bayeslink.runs import spark_tables
from bayeslink.runs.inputs import inputs_of
from bayeslink.runs.joined import (
    LinkedRows,
    joined_table,
    unlinked_table,
    write_joined,
    write_linked,
)
from bayeslink.runs.row_files import RowWriter
from bayeslink.runs.workbooks import WORKBOOK, WorkbookWriter, require_writer

if TYPE_CHECKING:
    from bayeslink.runs.run import Run

_FILES = ("linked", "unlinked_a", "unlinked_b")


def linked_rows(run: Run) -> LinkedRows:
    """The links of a run as rows of A and B."""
    links = run.table.filter(pc.equal(run.table["decision"], "link"))
    rows = []
    for side, n in enumerate((run.pairs.n_a, run.pairs.n_b)):
        every = run.pairs.ids(side, np.arange(n, dtype=np.int32))
        wanted = links["id_" + "ab"[side]].combine_chunks().cast(every.type)
        rows.append(pc.index_in(wanted, every).to_numpy(zero_copy_only=False))
    probability = links["link_probability"].cast(pa.float64()).to_numpy()
    return LinkedRows.of(rows[0], rows[1], probability)


def drawn_rows(run: Run, k: int) -> list[LinkedRows]:
    """The links of k draws as rows of A and B."""
    if run.posterior is None:
        raise SettingsError(
            "a point estimate has no draws of the links. Link without point=True (--point)."
        )
    return [LinkedRows.of(drawn.a, drawn.b, p) for drawn, p in run.posterior.drawn_links(k)]


def joined(run: Run, rows: LinkedRows, how: str) -> Any:
    """A's columns beside B's for these links, in the caller's kind of table."""
    if run.pairs.remote:
        return spark_tables.joined_frame(run, how, rows)
    return joined_table(inputs_of(run), rows, how, run.pairs.kind)


def unlinked(run: Run, side: int) -> Any:
    """The records of one file without a link, in the caller's kind of table."""
    if run.pairs.remote:
        return spark_tables.unlinked_frame(run, side, linked_rows(run))
    rows = linked_rows(run)
    (given,) = inputs_of(run, sides=(side,))
    return unlinked_table(given, (rows.a, rows.b)[side], run.pairs.kind)


def write_join(
    run: Run, path: Path, *, how: str = "inner", draws: int | None = None, force: bool = False
) -> int:
    """Write the linked file, or that of several draws; returns its number of rows."""
    if path.suffix not in (".csv", ".parquet", WORKBOOK):
        raise SettingsError(f"{path.name} must end in .csv, .parquet or {WORKBOOK}.")
    if path.exists() and not force:
        raise OutputError(f"{path} exists. Choose another name, or say --force to replace it.")
    if path.suffix == WORKBOOK:
        require_writer()
    inputs = inputs_of(run)
    versions = [linked_rows(run)] if draws is None else drawn_rows(run, draws)
    try:
        with written_whole(path) as file, closing(_writer(file, path)) as target:
            rows = write_joined(inputs, versions, how, target, numbered=draws is not None)
    except OSError as error:
        raise OutputError(
            f"cannot write {path}: {error.strerror}. Check the permissions and the space left."
        ) from None
    return rows


def _writer(file: IO[bytes], path: Path) -> RowWriter | WorkbookWriter:
    return WorkbookWriter(file) if path.suffix == WORKBOOK else RowWriter(file, path.suffix)


def write_inputs(run: Run, folder: Path) -> dict[str, str]:
    """Keep both inputs in the run directory; returns their names there."""
    names = {}
    if run.pairs.remote:
        raise SettingsError("inputs of Spark cannot be kept in a run directory: leave that out.")
    for given in inputs_of(run):
        key = given.side.lower()
        if is_path(given.source) and os.path.isfile(given.source):
            names[key] = f"input_{key}{''.join(Path(given.source).suffixes[-2:])}"
            shutil.copyfile(given.source, folder / names[key])
            for end in LOGS.values():
                if os.path.isfile(f"{given.source}{end}"):
                    shutil.copyfile(f"{given.source}{end}", folder / f"{names[key]}{end}")
            require_same(checksum(folder / names[key], given.kind), given.sha256, given.where)
            continue
        names[key] = f"input_{key}.parquet"
        with (folder / names[key]).open("wb") as file:
            pq.write_table(given.whole(), file, compression="zstd")
    return names


def write_outputs(run: Run, folder: Path, where: bool | str = True) -> list[str]:
    """Write the linked file and its like; where the inputs are gone, say so and leave them out.

    Inputs that are there and not what they were are an error.

    Those of Spark are written by its executors, to the place that `where` is.
    """
    if run.pairs.remote:
        return spark_tables.write_linked(run, linked_rows(run), where)
    if isinstance(where, str):
        raise SettingsError("linked names a place only where Spark writes (--engine spark).")
    if run.sources is None or any(source is None for source in run.sources):
        return []
    try:
        write_linked(inputs_of(run), linked_rows(run), folder)
    except ChangedInputError:
        raise
    except InputError as error:
        for name in _FILES:
            for end in (".csv", ".parquet"):
                (folder / f"{name}{end}").unlink(missing_ok=True)
        return [f"the linked file was not written: {error}"]
    return []
