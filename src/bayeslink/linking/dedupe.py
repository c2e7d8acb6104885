"""One file in which people appear more than once: compare, fit, sample, decide."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from bayeslink.checkpoints import Checkpoints
from bayeslink.comparing.fields import Field
from bayeslink.data.locations import is_path, paths_of
from bayeslink.dedupe_settings import NOT_HERE, DedupeSettings
from bayeslink.engines.compare import compare_one
from bayeslink.engines.spark.choosing import is_here, is_spark
from bayeslink.errors import NoColumnError, SettingsError
from bayeslink.judging.judgements import LINK, NONLINK
from bayeslink.judging.labels import known_pairs, with_verdict
from bayeslink.linkage.clustering import ClusterDecision
from bayeslink.linkage.forest import fit_forest
from bayeslink.linking.carrying import require_earlier_records, with_earlier_ids
from bayeslink.linking.checks import check_link
from bayeslink.linking.fit_journal import made_with
from bayeslink.linking.reading import with_fields
from bayeslink.many_settings import ManySettings
from bayeslink.model.structure import DEPENDENT
from bayeslink.options import described, signature_of
from bayeslink.pairs.source import Files, Ints, PairSource
from bayeslink.progress import Clock, with_bar
from bayeslink.runs.dedupe_run import DedupeRun
from bayeslink.runs.kept_values import Keep, check_keep_of_file, columns_named
from bayeslink.sampling.cluster_checks import cluster_warnings
from bayeslink.sampling.clusters import ClusterPosterior
from bayeslink.sampling.forest import sample_forest
from bayeslink.settings import FOUND
from bayeslink.suggesting.one_file import id_of
from bayeslink.suggesting.suggestion import suggest
from bayeslink.suggesting.wording import ids_in_words

_RECORDS, _SHARE = 50, 0.01  # of a file of as many, the share in others below which that is told


@with_bar
def dedupe(
    a: Any,
    fields: Sequence[Field | str] | None = None,
    *,
    progress: Callable[[str], None] = lambda message: None,
    checkpoints: Checkpoints | None = None,
    **options: Any,
) -> DedupeRun:
    """Find the people of one file: compare its records, fit, sample the posterior, decide.

    Parameters
    ----------
    a
        A path or table, as for `link`, or a list of these, which are one file; or the pairs of one
        file, compared before.
    fields
        What is compared, as for `link`; what `suggest(a)` proposes unless given.
    progress
        A function that is told what is going on; a bar on terminals and in notebooks unless given.
    checkpoints
        Where work is written down now and then, to go on from after an interruption.
    {options}

    Returns
    -------
    DedupeRun
        `run.clusters`, `run.entities.interval()`, `run.people()`, `run.save(…)`, `run.posterior`.
    """
    if unknown := [name for name in options if name in NOT_HERE]:
        raise SettingsError(
            f"dedupe has no option {unknown[0]!r}: it is for linking two files. Leave it out; "
            "sizes= holds the prior and loss=bl.ClusterLoss(…) the costs."
        )
    settings = DedupeSettings.of(fields=fields, **options)
    return dedupe_with(settings, a, progress=progress, checkpoints=checkpoints)


_ELSEWISE = ("a", "fields", "started_in")  # not by name
dedupe.__doc__ = str(dedupe.__doc__).replace("    {options}", described(DedupeSettings, _ELSEWISE))
dedupe.__signature__ = signature_of(dedupe, DedupeSettings, _ELSEWISE)  # type: ignore[attr-defined]


@with_bar
def dedupe_with(
    settings: DedupeSettings,
    a: Any,
    *,
    progress: Callable[[str], None] = lambda message: None,
    checkpoints: Checkpoints | None = None,
) -> DedupeRun:
    """`dedupe` with settings that were made before."""
    a, clock = a.read_all() if isinstance(a, pa.RecordBatchReader) else a, Clock()
    check_link(a, None, settings)
    _check_keep(a, settings)
    known, remarks = known_of(settings)
    settings = with_known(settings, known)
    if checkpoints is not None:
        checkpoints.bind(made_with(known, ()))
    pairs, settings, said = _compared(a, settings, progress, checkpoints)
    ids = pairs.ids(0, np.arange(pairs.n_a, dtype=np.int32))
    require_earlier_records(settings.earlier, ids)
    sources = None if isinstance(a, PairSource) else (a,)
    run = found_among(pairs, settings, known, clock, progress, checkpoints)
    run = replace(run, warnings=(*run.warnings, *remarks, *said), sources=sources)
    return with_earlier_ids(run)


def known_of(settings: DedupeSettings) -> tuple[pa.Table | None, list[str]]:
    """What is known of pairs of records before people are found, and remarks on it."""
    return known_pairs(settings.labels, settings.known_links, settings.known_nonlinks, people=True)


def with_known(settings: DedupeSettings, known: pa.Table | None) -> DedupeSettings:
    """The settings with the pairs that labels told of, which are saved with the run."""
    if settings.labels is None:
        return settings
    links, nonlinks = (with_verdict(known, verdict) for verdict in (LINK, NONLINK))
    return replace(settings, known_links=links, known_nonlinks=nonlinks)


def _check_keep(a: Any, settings: DedupeSettings) -> None:
    """Refuse rules for people.csv that the file cannot follow."""
    if isinstance(a, PairSource):
        return
    if not is_spark(a) and settings.engine in (None, "local"):
        check_keep_of_file(a, settings.read[0], settings.keep, settings.id)
    else:
        refuse_columns_there(settings.keep)


def refuse_columns_there(keep: Keep) -> None:
    """Refuse rules by column where Spark has the columns."""
    if columns_named(keep):
        raise SettingsError(
            "keep by column is for files that this machine reads, and Spark has the records. Say "
            "one rule for all columns, such as longest."
        )


def found_among(
    pairs: PairSource,
    settings: DedupeSettings,
    known: Any,
    clock: Clock,
    progress: Callable[[str], None],
    checkpoints: Checkpoints | None,
) -> DedupeRun:
    """The people among the records of compared pairs: fit, sample, decide."""
    clock.tick("compare")
    fit = fit_forest(
        pairs,
        sizes=settings.sizes,
        structure=settings.structure,
        shape=settings.shape,
        links=with_verdict(known, LINK),
        nonlinks=with_verdict(known, NONLINK),
        progress=progress,
    )
    clock.tick("fit")
    posterior = sample_forest(
        fit,
        restricted=settings.restricted,
        draws=settings.draws,
        tune=settings.tune,
        chains=settings.chains,
        seed=settings.seed,
        threads=settings.threads,
        progress=progress,
        checkpoints=checkpoints,
    )
    clock.tick("sample")
    progress("deciding")
    decision = posterior.estimate(settings.loss)
    clock.tick("decide")
    told = pairs.describe()
    return DedupeRun(
        pairs=pairs,
        fit=fit,
        posterior=posterior,
        decision=decision,
        table=_table(pairs, decision),
        settings=settings,
        seconds=clock.seconds,
        warnings=(
            *_warnings(posterior),
            *_strangers(pairs.files, decision.cluster),
            *told.warnings,
            *told.notes,
        ),
    )


def _compared(
    a: Any, settings: DedupeSettings, progress: Callable[[str], None], checkpoints: Any
) -> tuple[PairSource, DedupeSettings, list[str]]:
    """The pairs of the file with itself."""
    if isinstance(a, PairSource):
        if not a.one_file:
            raise SettingsError(
                "these are pairs of two files. dedupe takes one file, or the pairs of one file: "
                "bl.compare(a, fields=fields)."
            )
        return a, replace(settings, fields=list(a.fields)), []
    settings, said = with_fields_of_one(a, settings, progress)

    def with_id(name: str | None) -> PairSource:
        return compare_one(
            a,
            list(settings.fields),
            id=name,
            block=settings.block,
            read=settings.read,
            swapped_names=settings.structure == DEPENDENT,
            threads=settings.threads,
            memory=settings.memory,
            progress=progress,
            checkpoints=checkpoints,
            engine=settings.engine,
        )

    ids = "id" if settings.id is FOUND else settings.id
    try:
        pairs = with_id(ids)
    except NoColumnError as error:
        if settings.id is not FOUND or error.column != "id" or is_spark(a):
            raise
        ids = id_of(a, settings.read[0])
        said.append(
            f"there is no column 'id'. Ids: {ids_in_words(ids)}. Name the column with --id (id=)."
        )
        pairs = with_id(ids)
    return pairs, _resolved(settings, a, ids, pairs), said


def with_fields_of_one(
    a: Any, settings: DedupeSettings, progress: Callable[[str], None]
) -> tuple[DedupeSettings, list[str]]:
    """The settings with a comparison for every field, and what there is to say about the choice."""
    if isinstance(settings.id, tuple):
        if len({*settings.id}) > 1:
            raise SettingsError("two id columns are given, and there is one file. Name one.")
        settings = replace(settings, id=settings.id[0])
    if settings.fields is not None:
        found, said = with_fields(a, a, settings, progress, compared=False)
        return replace(settings, fields=found.fields), said
    progress("looking at the file")
    if is_spark(a):
        raise SettingsError(
            "for a table of Spark, say what to compare, such as [bl.name('surname')]. "
            "bl.suggest(a.limit(10_000).toPandas()) proposes it."
        )
    ids = None if settings.id is FOUND else settings.id
    proposed = suggest(a, id=ids, read=settings.read)
    ids = proposed.id if settings.id is FOUND else settings.id
    settings = replace(settings, fields=list(proposed.fields), id=ids, read=proposed.read)
    told = proposed.in_one_line(many=isinstance(settings, ManySettings))
    return settings, [*proposed.warnings, *proposed.notes, told]


def _resolved(
    settings: DedupeSettings, a: Any, ids: str | None, pairs: PairSource
) -> DedupeSettings:
    """The settings with what the file said, as the run's dedupe.toml has them."""
    return replace(
        settings,
        a=paths_here(a, pairs),
        id=ids,
        engine="spark" if pairs.describe().engine == "spark" else None,
        started_in=os.getcwd(),
    )


def paths_here(source: Any, pairs: PairSource) -> str | list[str] | None:
    """The path of an input, or those of its parts, that mean something to this machine."""
    return paths_of(source) if not is_path(source) or is_here(source, pairs) else None


def _table(pairs: PairSource, decision: ClusterDecision) -> pa.Table:
    """clusters: a row a record, in the order of the file."""
    rows = np.arange(pairs.n_a, dtype=np.int32)
    ids, faces = pairs.ids(0, rows), pairs.ids(0, decision.cluster.astype(np.int32))
    size = np.bincount(decision.cluster, minlength=pairs.n_a)[decision.cluster]
    return pa.table(
        {
            "id": ids,
            "entity_id": faces,
            "size": pa.array(size, pa.int64()),
            "membership_probability": decision.membership,
            "representative": decision.cluster == rows,
            "decision": pa.array(decision.decision.tolist(), pa.string()),
        }
    )


def _warnings(posterior: ClusterPosterior) -> list[str]:
    said = posterior.warning()
    return [*([said] if said else []), *cluster_warnings(posterior)]


def _strangers(files: Files | None, cluster: Ints) -> Iterator[str]:
    """Files of which hardly a record is one person with a record of another file."""
    if files is None:
        return
    first, last = (np.full(cluster.max() + 1, fill) for fill in (len(files.names), -1))
    np.minimum.at(first, cluster, files.of)
    np.maximum.at(last, cluster, files.of)
    shared = (first < last)[cluster]
    for k, name in enumerate(files.names):
        own = shared[files.of == k]
        if len(own) >= _RECORDS and own.mean() < _SHARE:
            yield (
                f"hardly anybody of {name} is in another file: {own.sum():,} of its {len(own):,} "
                "records. If that cannot be, see which of its columns are compared: columns called "
                "otherwise are in the notes, or name them with columns (link-many.toml, columns=)."
            )
