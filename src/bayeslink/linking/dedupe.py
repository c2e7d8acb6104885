"""One file in which people appear more than once: compare, fit, sample, decide."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from bayeslink.checkpoints import Checkpoints
from bayeslink.comparing.fields import Field
from bayeslink.engines.compare import compare_one
from bayeslink.errors import SettingsError
from bayeslink.judging.judgements import LINK, NONLINK
from bayeslink.judging.labels import known_pairs, with_verdict
from bayeslink.linkage.clustering import ClusterDecision, ClusterLoss
from bayeslink.linkage.forest import POINTERS, ForestFit, fit_forest
from bayeslink.linkage.partitions import ClusterSizes
from bayeslink.linking.reading import with_fields
from bayeslink.model.structure import DEPENDENT
from bayeslink.notebook_html import Shown
from bayeslink.options import described, signature_of
from bayeslink.pairs.pair_tables import in_kind
from bayeslink.pairs.source import PairSource
from bayeslink.progress import with_bar
from bayeslink.sampling.cluster_checks import cluster_warnings
from bayeslink.sampling.clusters import ClusterPosterior, Entities
from bayeslink.sampling.forest import sample_forest
from bayeslink.settings import FOUND, LinkSettings

# Options of `link` that one file with duplicates does not have.
NOT_HERE = ("a", "b", "fields", "started_in", "prior", "theta", "overlap", "loss", "point",
            "labels", "model", "strength", "w0")  # fmt: skip


@dataclass(frozen=True, slots=True)
class DedupeRun(Shown):
    """The people of one file: who is who, how many, and how sure."""

    pairs: PairSource = field(repr=False)
    fit: ForestFit = field(repr=False)
    posterior: ClusterPosterior = field(repr=False)
    decision: ClusterDecision
    table: pa.Table = field(repr=False)
    settings: LinkSettings = field(repr=False)
    seconds: dict[str, float]
    warnings: tuple[str, ...]

    @property
    def entities(self) -> Entities:
        """How many people: `entities.interval()`, `entities.draws`, `entities.sizes()`."""
        return self.posterior.entities

    @property
    def clusters(self) -> Any:
        """A row a record, in the kind of table that the file came as.

        Columns: id; entity_id, the id of the record that represents its person; size; the
        probability of membership: the mean probability to be one with the others of the cluster,
        and of a single record to have no other; representative; decision: single, cluster, review.
        """
        return in_kind(self.table, self.pairs.kind)


@with_bar
def dedupe(
    a: Any,
    fields: Sequence[Field | str] | None = None,
    *,
    sizes: ClusterSizes | None = None,
    shape: str = POINTERS,
    loss: ClusterLoss | None = None,
    progress: Callable[[str], None] = lambda message: None,
    checkpoints: Checkpoints | None = None,
    **options: Any,
) -> DedupeRun:
    """Find the people of one file: compare its records, fit, sample the posterior, decide.

    Parameters
    ----------
    a
        A path or table, as for `link`; or the pairs of one file, compared before.
    fields
        What is compared, as for `link`. Of a pandas, polars or Arrow table, proposed unless given.
    sizes
        The prior of how many records a person has; `ClusterSizes()` unless given.
    shape
        Whether a record may be a copy of a copy: "pointers" (how often is learned), "star" (never)
        or "tree" (as often as of an original).
    loss
        Costs of errors, as `ClusterLoss(false_pair=1, missed_pair=1, review=0.2)`.
    progress
        A function that is told what is going on; a bar on terminals and in notebooks unless given.
    checkpoints
        Where work is written down now and then, to go on from after an interruption.
    {options}

    Returns
    -------
    DedupeRun
        `run.clusters`, `run.entities.interval()`, `run.entities.draws`, `run.posterior`.
    """
    if unknown := [name for name in options if name in NOT_HERE]:
        raise SettingsError(
            f"dedupe has no option {unknown[0]!r}: it is for linking two files. Leave it out; "
            "sizes= holds the prior and loss=bl.ClusterLoss(…) the costs."
        )
    settings, clock = LinkSettings.of(fields=fields, **options), _Clock()
    known, remarks = known_pairs(None, settings.known_links, settings.known_nonlinks)
    pairs, settings, said = _compared(a, settings, progress, checkpoints)
    clock.tick("compare")
    fit = fit_forest(
        pairs,
        sizes=sizes,
        structure=settings.structure,
        shape=shape,
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
    decision = posterior.estimate(loss)
    clock.tick("decide")
    described_ = pairs.describe()
    warnings = [*described_.warnings, *described_.notes, *remarks, *said, *_warnings(posterior)]
    table = _table(pairs, decision)
    return DedupeRun(
        pairs, fit, posterior, decision, table, settings, clock.seconds, tuple(warnings)
    )


dedupe.__doc__ = (dedupe.__doc__ or "").replace("    {options}", described(LinkSettings, NOT_HERE))
dedupe.__signature__ = signature_of(dedupe, LinkSettings, NOT_HERE)  # type: ignore[attr-defined]


def _compared(
    a: Any, settings: LinkSettings, progress: Callable[[str], None], checkpoints: Any
) -> tuple[PairSource, LinkSettings, list[str]]:
    """The pairs of the file with itself."""
    if isinstance(a, PairSource):
        if not getattr(a, "one_file", False):
            raise SettingsError(
                "these are pairs of two files. dedupe takes one file, or the pairs of one file: "
                "bl.compare(a, fields=fields)."
            )
        return a, settings, []
    halves = _halves(a) if settings.fields is None else (a, a)
    settings, said = with_fields(*halves, settings, progress, compared=False)
    ids = "id" if settings.id is FOUND else settings.id
    if isinstance(ids, tuple):
        ids = ids[0]
    pairs = compare_one(
        a,
        list(settings.fields or ()),
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
    return pairs, replace(settings, id=ids, fields=list(pairs.fields)), said


def _halves(a: Any) -> tuple[Any, Any]:
    """Every other row of a table, and the rest: two files from which fields can be proposed."""
    if hasattr(a, "iloc"):
        return a.iloc[0::2], a.iloc[1::2]
    if hasattr(a, "gather_every"):
        return a.gather_every(2), a.gather_every(2, 1)
    if isinstance(a, pa.Table):
        return a.take(np.arange(0, len(a), 2)), a.take(np.arange(1, len(a), 2))
    raise SettingsError(
        "fields are proposed from a pandas, polars or Arrow table only. Read the file into one, or "
        "say what to compare, such as [bl.name('surname'), bl.date('born')]."
    )


def _table(pairs: PairSource, decision: ClusterDecision) -> pa.Table:
    """clusters: a row a record, in the order of the file."""
    rows = np.arange(pairs.n_a, dtype=np.int32)
    ids, faces = pairs.ids(0, rows), pairs.ids(0, decision.cluster.astype(np.int32))
    if pairs.id_types[0] is not None:
        kind = pa.type_for_alias(pairs.id_types[0])
        ids, faces = ids.cast(kind), faces.cast(kind)
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


class _Clock:
    """Seconds by phase."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._since = time.perf_counter()

    def tick(self, phase: str) -> None:
        now = time.perf_counter()
        self.seconds[phase], self._since = round(now - self._since, 4), now
