"""Several files, in some of which people are more than once: stack, compare, fit, sample."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from bayeslink.checkpoints import Checkpoints
from bayeslink.comparing.fields import Field
from bayeslink.comparing.parsing import fields_from as made_from
from bayeslink.data.headers import require_columns
from bayeslink.data.records import Records
from bayeslink.engines.compare import block_fields, compare_records
from bayeslink.engines.input_checks import refuse_long_texts
from bayeslink.engines.many_files import of_files
from bayeslink.engines.spark.choosing import cluster_for
from bayeslink.errors import SettingsError
from bayeslink.linkage.forest import ForestFit
from bayeslink.linking.carrying import require_earlier_records, with_earlier_ids
from bayeslink.linking.checks import check_link
from bayeslink.linking.dedupe import (
    found_among,
    known_of,
    paths_here,
    refuse_columns_there,
    with_fields_of_one,
    with_known,
)
from bayeslink.linking.fit_journal import made_with
from bayeslink.linking.stacking import Stack, as_table, name_of_records, stacked
from bayeslink.many_settings import ManySettings
from bayeslink.memory import Memory, parse_memory
from bayeslink.model.structure import DEPENDENT
from bayeslink.options import described, signature_of
from bayeslink.pairs.source import Files, PairSource
from bayeslink.progress import Clock, with_bar
from bayeslink.runs.dedupe_run import DedupeRun
from bayeslink.runs.kept_values import check_keep, date_columns, days_of

_SURELY = 4.0  # log odds above θ of two records of a clean file that look like one person
_SHARE, _FEWEST = 0.01, 5  # of its records, above which that is told
_ELSEWISE = ("fields", "files", "started_in")  # not by name


@with_bar
def link_many(
    files: Mapping[str, Any],
    fields: Sequence[Field | str] | None = None,
    *,
    progress: Callable[[str], None] = lambda message: None,
    checkpoints: Checkpoints | None = None,
    **options: Any,
) -> DedupeRun:
    """Find the people of several files: who is in which, how often, and how many there are.

    Parameters
    ----------
    files
        The files by name, two to ten: paths or tables, as for `link`, or lists of these. A record
        is called by its file and its id there, such as "census:17".
    fields
        What is compared, by the columns' names in the first file; what the files suggest unless
        given. A field is compared where both records have it: files may lack columns.
    progress
        A function that is told what is going on; a bar on terminals and in notebooks unless given.
    checkpoints
        Where work is written down now and then, to go on from after an interruption.
    {options}

    Returns
    -------
    DedupeRun
        `run.clusters`, `run.people_by_files()`, `run.population()`, `run.people()`, `run.save(…)`.
    """
    settings = ManySettings.of(fields=fields, files=files, **options)
    return link_many_with(settings, files, progress=progress, checkpoints=checkpoints)


link_many.__doc__ = str(link_many.__doc__).replace(
    "    {options}", described(ManySettings, _ELSEWISE)
)
link_many.__signature__ = signature_of(  # type: ignore[attr-defined]
    link_many, ManySettings, _ELSEWISE
)


@with_bar
def link_many_with(
    settings: ManySettings,
    files: Mapping[str, Any],
    *,
    progress: Callable[[str], None] = lambda message: None,
    checkpoints: Checkpoints | None = None,
) -> DedupeRun:
    """`link_many` with settings that were made before."""
    files = {
        name: source.read_all() if isinstance(source, pa.RecordBatchReader) else source
        for name, source in files.items()
    }
    clock = Clock()
    check_link(None, None, settings)
    known, remarks = known_of(settings)
    settings = with_known(settings, known)  # type: ignore[assignment]
    progress("reading the files")
    cluster = cluster_for(settings.engine, [*files.values()], progress, settings.threads)
    stack, records, settings, said = stacked(files, settings, cluster)
    _check_keep(stack, records, settings)
    require_earlier_records(settings.earlier, records.ids)
    if checkpoints is not None:
        checkpoints.bind(made_with(known, ()))
        inputs = zip(stack.names, stack.told, strict=True)
        checkpoints.bind({f"input {name}": str(told["sha256"]) for name, told in inputs})
    own = replace(settings, id=name_of_records(records.columns))
    chosen, more = with_fields_of_one(as_table(records), own, progress)
    chosen = replace(chosen, fields=_recoded(chosen.fields, settings.fields, stack.recodes))
    room = Memory(parse_memory(settings.memory))
    used = [c for f in (*chosen.fields, *block_fields(settings.block)) for c in f.columns[0]]
    require_columns(list(records.columns), used, f"the files {records.label}")
    records = replace(
        records, columns={name: records.columns[name] for name in dict.fromkeys(used)}
    )
    refuse_long_texts([records], chosen.fields)
    progress(f"comparing values. {room}")
    one = compare_records(
        [records],
        chosen.fields,
        block=settings.block,
        swapped_names=settings.structure == DEPENDENT,
        workers=settings.threads if cluster is None else cluster,
        memory=room,
        checkpoints=checkpoints,
        does="local" if cluster is None else "spark",
    )
    pairs = of_files(one, stack.files)  # type: ignore[arg-type]
    run = found_among(pairs, replace(chosen, id=None), known, clock, progress, checkpoints)
    paths = {k: found for k, v in files.items() if (found := paths_here(v, pairs)) is not None}
    assert isinstance(run.settings, ManySettings)
    resolved = replace(
        run.settings,
        files=paths if len(paths) == len(files) else None,
        id=settings.id,
        columns=settings.columns,
        engine=None if cluster is None else "spark",
        started_in=os.getcwd(),
    )
    warnings = (*_duplicates_in(one, run.fit, stack.files), *run.warnings, *remarks, *said, *more)
    table = _of_files(run.table, stack)
    run = replace(run, stack=stack, table=table, settings=resolved, warnings=warnings)
    return with_earlier_ids(run)


def _check_keep(stack: Stack, records: Records, settings: ManySettings) -> None:
    """Refuse rules for people.csv that the files cannot follow."""
    if records.kind == "spark":
        refuse_columns_there(settings.keep)
        return
    check_keep(settings.keep, list(records.columns), stack.names)
    for name in date_columns(settings.keep):
        for k in range(len(stack.names)):
            days_of(records.columns[name].take(pa.array(stack.rows(k))), name)


def _recoded(
    fields: Sequence[Field], asked: Any, recodes: Mapping[str, Mapping[str, str]]
) -> list[Field]:
    """The fields that were chosen, with what values stand for where files have other codes."""
    given = [field for field in asked or () if isinstance(field, Field)]
    return [
        made_from({**field.settings, "recode": recodes[column]})[0]
        if field.kind == "exact"
        and field not in given
        and (column := field.columns[0][0]) in recodes
        else field
        for field in fields
    ]


def _of_files(table: pa.Table, stack: Stack) -> pa.Table:
    """clusters, with the file of each record and its id there."""
    names = pa.array(stack.names, pa.string()).take(pa.array(stack.files.of))
    table = table.set_column(0, "id", stack.own_ids().cast(pa.string()))
    return table.add_column(0, "file", names)


def _duplicates_in(one: PairSource, fit: ForestFit, files: Files) -> Iterator[str]:
    """Clean files in which many records look like the same people."""
    if not files.clean:
        return
    found = one.pairs_above(fit.parameters.log_weights, fit.theta + _SURELY)
    for k in files.clean:
        within = (files.of[found.a] == k) & (files.of[found.b] == k)
        n, records = int(within.sum()), int((files.of == k).sum())
        if n >= max(_FEWEST, _SHARE * records):
            name = files.names[k]
            yield (
                f"{n:,} pairs of records of {name} look like the same person, and {name} was given "
                f"as a file in which nobody is twice. If people can be, name it: --duplicates "
                f"{name} (duplicates=)."
            )


def link_with_duplicates(
    a: Any, b: Any, fields: Any, duplicates: Any, options: Mapping[str, Any], **how: Any
) -> DedupeRun:
    """`link(a, b, duplicates=…)`: the people of two files of which one or both hold some twice."""
    names = (duplicates,) if isinstance(duplicates, str) else tuple(duplicates)
    if not names or not {*names} <= {"a", "b"}:
        raise SettingsError(
            f'duplicates must be "a", "b" or ("a", "b"), the files in which people may be more '
            f"than once, got {duplicates!r}."
        )
    if b is None:
        raise SettingsError(
            "duplicates is for two files, link(a, b, duplicates=…). For one: bl.dedupe(a)."
        )
    if unknown := [name for name in options if name in ManySettings.WITHOUT]:
        raise SettingsError(
            f"{unknown[0]!r} is for files without duplicates. Leave it out: with duplicates, "
            "sizes= holds the prior and loss=bl.ClusterLoss(…) the costs."
        )
    given = [fields] if isinstance(fields, Field | str) else fields or ()
    if two := [f.name for f in given if isinstance(f, Field) and f.columns[0] != f.columns[1]]:
        raise SettingsError(
            f"field {two[0]!r} names a column of each file. With duplicates, name it as in A, and "
            "say what B calls it: columns={'b': {'its_name': 'name_in_a'}}."
        )
    return link_many({"a": a, "b": b}, fields, duplicates=names, **options, **how)
