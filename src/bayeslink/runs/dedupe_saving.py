"""A deduplication is saved: its directory is written whole or not at all."""

from __future__ import annotations

from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from bayeslink.data.spreadsheets import safe_for_spreadsheets
from bayeslink.errors import ChangedInputError, InputError, SettingsError
from bayeslink.judging.judgements import kept_in
from bayeslink.judging.labels import known_pairs
from bayeslink.private import opened
from bayeslink.runs import link_toml
from bayeslink.runs.cluster_tables import by_person, check, draw_table, pair_table, with_own_ids
from bayeslink.runs.dedupe_json import write_summary
from bayeslink.runs.people import (
    given_files,
    people_table,
    write_people_there,
    write_with_entities,
)
from bayeslink.runs.people_reach import nearest_others
from bayeslink.runs.reading import digests_of
from bayeslink.runs.row_files import RowWriter
from bayeslink.runs.run_directory import claim, replacing
from bayeslink.runs.tables import parameter_table

if TYPE_CHECKING:
    from bayeslink.runs.dedupe_run import DedupeRun

_PEOPLE = "people"


def save_dedupe(
    run: DedupeRun,
    directory: str | Path,
    *,
    force: bool = False,
    shared: bool = False,
    people: bool | str = True,
) -> None:
    """Write the tables, the file with a column entity_id and that of people, run.json, its TOML.

    Judgements in a directory that is replaced stay. Only the owner may read it, unless it is
    `shared` with the group.
    """
    with (
        ExitStack() as stack,
        claim(directory, force=force, inputs=_inputs(run)) as held,
        replacing(held.target, force=force, shared=shared) as folder,
    ):
        summary = run.provenance()
        _write_tables(run, folder)
        remarks = _write_people(run, folder, people) if people else []
        (folder / run.settings.TOML).write_text(link_toml.dump(run.settings, held.target), "utf-8")
        told = {"warnings": [*run.warnings, *remarks], "files": digests_of(folder)}
        write_summary(folder, {**summary, **told})
        stack.enter_context(kept_in(held.target, folder))


def _inputs(run: DedupeRun) -> tuple[Any, ...]:
    """The files of a run, which its directory must not replace."""
    files = getattr(run.settings, "files", None) or {}
    earlier = getattr(run.settings.earlier, "directory", run.settings.earlier)
    return (run.settings.a, earlier, *files.values())


def _write_tables(run: DedupeRun, folder: Path) -> None:
    """The tables, each once it is what the reader takes."""
    clusters = with_own_ids(by_person(run.table), run.pairs)
    chains, draws = run.entities.draws.shape
    tables = {
        "clusters": clusters,
        "pairs": pair_table(run.posterior),
        "draws": draw_table(run.posterior),
    }
    if (reach := nearest_others(run)) is not None:
        tables["reach"] = with_own_ids(reach, run.pairs)
    known, _ = known_pairs(None, run.settings.known_links, run.settings.known_nonlinks)
    if known is not None:
        tables["labels"] = known
    if run.changed is not None:
        tables["changes"] = with_own_ids(run.changed.table, run.pairs)
        _write_csv(tables["changes"], folder / "changes.csv")
    for name, table in tables.items():
        check(table, name, chains=chains, draws=draws, files=run.entities.names)
    for name, table in {**tables, "parameters": parameter_table(run)}.items():
        _write_parquet(table, folder / f"{name}.parquet")
    _write_csv(clusters, folder / "clusters.csv")


def _write_parquet(table: pa.Table, path: Path) -> None:
    with open(path, "wb", opener=opened) as file:  # Arrow takes only UTF-8 paths
        pq.write_table(table, file, compression="zstd")


def _write_csv(table: pa.Table, path: Path) -> None:
    with open(path, "wb", opener=opened) as file:
        pyarrow.csv.write_csv(safe_for_spreadsheets(table), file)


def _write_people(run: DedupeRun, folder: Path, where: bool | str) -> list[str]:
    """with_entities and people; where the file is gone, say so and leave them out.

    A file that is there and not what it was is an error. What Spark has, its executors write.
    """
    if run.pairs.remote and (run.sources or run.stack):
        return write_people_there(run, where)
    if isinstance(where, str):
        raise SettingsError("people names a place only where Spark has the records.")
    if run.sources is None and run.stack is None:
        return ["with_entities and people were not written: the pairs came without their records."]
    names = [_PEOPLE]
    try:
        for name, given, own in given_files(run):
            names.append(name)
            for end in (".csv", ".parquet"):
                path = folder / f"{name}{end}"
                with (
                    open(path, "wb", opener=opened) as file,
                    closing(RowWriter(file, end)) as target,
                ):
                    write_with_entities(run, given, own, target)
        people = people_table(run)
        for end in (".csv", ".parquet"):
            path = folder / f"{_PEOPLE}{end}"
            with open(path, "wb", opener=opened) as file, closing(RowWriter(file, end)) as target:
                target.write(people)
    except ChangedInputError:
        raise
    except InputError as error:
        for name in names:
            for end in (".csv", ".parquet"):
                (folder / f"{name}{end}").unlink(missing_ok=True)
        return [f"with_entities and people were not written: {error}"]
    return []
