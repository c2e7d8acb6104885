"""From two files and what was asked to fields, ids and compared pairs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from bayeslink.checkpoints import Checkpoints
from bayeslink.engines.compare import Progress, compare
from bayeslink.engines.spark.choosing import is_spark
from bayeslink.errors import NoColumnError, SettingsError
from bayeslink.model.structure import DEPENDENT
from bayeslink.pairs.source import PairSource
from bayeslink.runs.models import (
    fields_from,
    id_as_learned,
    read_as_learned,
    read_model,
    wrong_fields_from,
)
from bayeslink.settings import FOUND, Ids, LinkSettings


def with_fields(
    a: Any, b: Any, settings: LinkSettings, progress: Progress, *, compared: bool
) -> tuple[LinkSettings, list[str]]:
    """The settings with a comparison for every field, and what there is to say about the choice.

    Columns that were only named are looked at; without fields, those of the model are taken, or
    those that the files suggest. Pairs that were `compared` before have their fields.
    """
    remarks: list[str] = []
    asked = settings.fields
    if asked is not None:
        _refuse_choosing_there(asked, a, b)
        from bayeslink.suggesting.columns import with_chosen

        with _naming_partners(a, b, settings):
            asked, chosen = with_chosen(asked, a, b, settings.read)
        remarks += [chosen] if chosen else []
    if settings.model is not None:
        model = read_model(settings.model)
        if not asked:
            ids = id_as_learned(model, settings.id) if settings.id is FOUND else settings.id
            settings = replace(settings, id=ids, read=read_as_learned(model, settings.read))
        asked = fields_from(model, asked or (), settings.strength, settings.structure)
        wrong = wrong_fields_from(model, asked, settings.strength)
        settings = replace(settings, wrong_fields=wrong)
    if asked is not None or compared:
        return replace(settings, fields=asked), remarks
    from bayeslink.suggesting.suggestion import suggest

    progress("looking at the files")
    _refuse_choosing_there(["all"], a, b)
    ids = None if settings.id is FOUND else settings.id
    found = suggest(a, b, id=ids, read=settings.read)
    remarks.append(found.in_one_line())
    if settings.id is FOUND:
        settings = replace(settings, id=found.id)
    remarks += found.warnings
    left = found.left_out
    return replace(settings, fields=found.fields, read=found.read, left_out=left), remarks


def compare_files(
    a: Any,
    b: Any,
    settings: LinkSettings,
    progress: Progress,
    checkpoints: Checkpoints | None,
) -> tuple[PairSource, Ids, tuple[str, ...]]:
    """The compared pairs, the id columns, and what there is to say about these.

    Where no id column was named, it is `id`, or what is found in the files.
    """

    def with_ids(ids: Ids) -> PairSource:
        return compare(
            a,
            b,
            settings.fields or (),
            id=ids,
            block=settings.block,
            read=settings.read,
            swapped_names=settings.structure == DEPENDENT,
            threads=settings.threads,
            memory=settings.memory,
            progress=progress,
            checkpoints=checkpoints,
            engine=settings.engine,
        )

    with _naming_partners(a, b, settings):
        if settings.id is not FOUND:
            return with_ids(settings.id), settings.id, ()
        try:
            return with_ids("id"), "id", ()
        except NoColumnError as error:
            if error.column != "id" or any(map(is_spark, (a, b))):
                raise
        from bayeslink.suggesting.suggestion import find_ids

        ids, said = find_ids(a, b, settings.read)
        return with_ids(ids), ids, said


@contextmanager
def _naming_partners(a: Any, b: Any, settings: LinkSettings) -> Iterator[None]:
    """Have the error on a column that a file lacks name the one that is like it."""
    try:
        yield
    except NoColumnError as error:
        if any(map(is_spark, (a, b))):
            raise
        from bayeslink.suggesting.columns import with_partner

        raise with_partner(error, a, b, settings.read) from None


def _refuse_choosing_there(fields: Any, *sources: Any) -> None:
    """Comparisons are chosen from files that this machine reads, not from tables of Spark."""
    if any(isinstance(f, str) for f in fields) and any(map(is_spark, sources)):
        raise SettingsError(
            "for tables of Spark, say how to compare each column, such as bl.name('surname'). "
            "bl.suggest(a.limit(10_000).toPandas(), b.limit(10_000).toPandas()) proposes it."
        )
