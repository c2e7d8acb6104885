"""New records added to the files of an earlier deduplication, and people found in all of them.

The earlier records are there again, so what the earlier run learned of m is in the data: as a prior
it would count twice. So m is estimated anew from all records, which is the exact posterior; and as
nothing is carried over by level, levels follow from all records, too.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from bayeslink.comparing.column_parts import columns_in
from bayeslink.data.checksums import require_same
from bayeslink.data.locations import each_part, from_folder_on, is_path, paths_of
from bayeslink.data.records import Records, read_records
from bayeslink.dedupe_settings import DedupeSettings
from bayeslink.engines.compare import block_fields
from bayeslink.engines.spark.choosing import is_spark
from bayeslink.errors import ChangedInputError, InputError, SettingsError
from bayeslink.linking.carrying import earlier_people
from bayeslink.linking.dedupe import dedupe_with
from bayeslink.linking.many import link_many_with
from bayeslink.linking.stacking import read_file
from bayeslink.many_settings import ManySettings
from bayeslink.options import Entries
from bayeslink.runs.dedupe_opening import SavedDedupe
from bayeslink.runs.dedupe_run import DedupeRun
from bayeslink.settings import FOUND


def update_people(run: DedupeRun | str | Path, new: Any, *, a: Any = None, **how: Any) -> DedupeRun:
    """The people of the earlier and the new records; see `update`."""
    work = {key: how.pop(key) for key in ("progress", "checkpoints") if key in how}
    settings, given = settings_of_update(run, new, a=a, **how)
    if isinstance(settings, ManySettings):
        return link_many_with(settings, given, **work)
    return dedupe_with(settings, given, **work)


def settings_of_update(
    run: DedupeRun | str | Path, new: Any, *, a: Any = None, **changes: Any
) -> tuple[DedupeSettings, Any]:
    """The settings of an update, and its input: the earlier files, each with what is new of it."""
    run = earlier_people(run)
    settings = replace(
        settings_again(run), earlier=run, labels=None
    )  # which are known pairs by now
    if settings.engine == "spark":
        raise SettingsError(
            "an update is made on this machine, and Spark made the earlier run. Find the people of "
            f"all records anew: bayeslink {_command(settings)} --engine local -o OUT."
        )
    if settings.read[0].quarantine is not None:
        raise SettingsError(
            "the earlier run set rows aside (quarantine), and an update cannot. Correct these rows "
            "in the file, and find its people anew first."
        )
    if isinstance(settings, ManySettings):
        twice = (*settings.duplicates, *changes.pop("duplicates", ()))
        files = _files_of(run, settings, new, a)
        paths = {name: paths_of(source) for name, source in files.items()}
        known = paths if None not in paths.values() else None
        return settings.changed(duplicates=twice, files=known or dict(files), **changes), files
    given = _file_of(run, settings, new, a)
    return replace(settings, a=paths_of(given)).changed(**changes), given


def _command(settings: DedupeSettings) -> str:
    return "link-many NAME=ALL …" if isinstance(settings, ManySettings) else "dedupe ALL"


def entries_of(settings: DedupeSettings) -> Entries:
    """The settings as plain data, fields too."""
    return {**settings.entries(), "fields": [dict(f.settings) for f in settings.fields]}


def settings_again(run: DedupeRun) -> DedupeSettings:
    """The settings that repeat a run; ids that its file does not name are found once more."""
    settings = run.settings
    found = isinstance(run, SavedDedupe) and "\nid = " not in f"\n{run.toml}"
    return replace(settings, id=FOUND) if found else settings


# --- one file -------------------------------------------------------------------------------------


def _file_of(run: DedupeRun, settings: DedupeSettings, new: Any, a: Any) -> list[Any]:
    """The earlier file and the new one, checked against each other."""
    source = a
    if source is None:
        source = run.sources[0] if run.sources else settings.a
        source = None if source is None else from_folder_on(settings.started_in, source)
    if source is None:
        raise _not_here("a=…")
    _refuse_what_cannot_be_added(source, new, "FILE")
    columns = _columns(settings)
    how: dict[str, Any] = {"id": settings.id, "options": settings.read[0]}
    old = read_records(source, columns=columns, **how)
    _require_as_it_was(run, old, 0)
    _refuse_known(read_records(new, columns=columns, **how), old, settings.id, "file")
    return [*each_part(source), *each_part(new)]


# --- several files --------------------------------------------------------------------------------


def _files_of(run: DedupeRun, settings: ManySettings, new: Any, a: Any) -> dict[str, Any]:
    """The earlier files, each with what is new of it, and new ones."""
    if not isinstance(new, Mapping):
        raise SettingsError(
            "say which file the new records belong to: {'survey': 'new.csv'}, at the command line "
            "survey=new.csv. Another name is another file."
        )
    files = dict(a) if isinstance(a, Mapping) else _earlier_files(run, settings)
    used, given = {*_columns(settings)}, dict(files)
    for name, source in new.items():
        if name not in files:
            given[name] = source
            continue
        _refuse_what_cannot_be_added(files[name], source, name)
        own_id, old = read_file(files[name], name, settings, [])
        _require_as_it_was(run, old, [*files].index(name))
        found = read_records(source, id=own_id, columns=None, options=settings.read[0], side=name)
        called = settings.columns.get(name, {})
        meant = {c for own in called for c in columns_in(own, old.columns) if called[own] in used}
        needed = [
            c
            for c in old.columns
            if (called.get(c, c) in used or c in meant) and c not in found.columns
        ]
        if needed:
            raise InputError(
                f"the new records of {name} have no column {needed[0]!r}, which is compared. They "
                f"have {', '.join(found.columns)}."
            )
        _refuse_known(found, old, own_id, name)
        given[name] = [*each_part(files[name]), *each_part(source)]
    return given


def _earlier_files(run: DedupeRun, settings: ManySettings) -> dict[str, Any]:
    if run.stack is not None:
        return {
            name: given.source
            for name, given in zip(run.stack.names, run.stack.inputs, strict=True)
        }
    if settings.files is None:
        raise _not_here("a={'census': …, 'survey': …}")
    return dict(settings.files)


# --- checks ---------------------------------------------------------------------------------------


def _columns(settings: DedupeSettings) -> list[str]:
    fields = (*settings.fields, *block_fields(settings.block))
    return list(dict.fromkeys(column for f in fields for column in f.columns[0]))


def _not_here(give: str) -> InputError:
    return InputError(
        "the earlier records are not here: they came from Python, or from a path that is not "
        f"UTF-8. Give them: bl.update(run, new, {give})."
    )


def _refuse_what_cannot_be_added(source: Any, new: Any, what: str) -> None:
    if any(map(is_spark, (*each_part(source), *each_part(new)))):
        raise SettingsError(
            "an update is made on this machine, and a table of Spark was given. Give paths, or "
            "tables of pandas, polars or Arrow."
        )
    paths = [os.path.realpath(p) for p in (*each_part(source), *each_part(new)) if is_path(p)]
    if len({*paths}) < len(paths):
        raise InputError(
            f"a file of new records is one that the earlier run read as {what}. Give a file with "
            "the new records alone."
        )


def _require_as_it_was(run: DedupeRun, old: Records, which: int) -> None:
    """Refuse an earlier file that is not what the earlier run read."""
    told: Sequence[Mapping[str, Any]] = (
        run.provenance()["inputs"] if run.stack is None else run.stack.told
    )
    require_same(old.sha256, told[which]["sha256"], f"the earlier file, {old.label}")
    if len(old) != told[which]["records"]:
        raise ChangedInputError(
            f"the earlier file, {old.label}, no longer holds the {told[which]['records']:,} "
            "records that the earlier run read. Give it as it was."
        )


def _refuse_known(new: Records, old: Records, id: str | None, what: str) -> None:
    """Refuse ids that the earlier records have too; numbers of rows tell nothing."""
    n = 0 if id is None else pc.sum(pc.is_in(new.ids, value_set=old.ids)).as_py()
    if n:
        raise InputError(
            f"{n:,} records of the new batch have ids that the earlier {what} has too. Give new "
            "records only."
        )
