"""The whole path in one call: files or tables in, links out."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from bayeslink.checkpoints import Checkpoints
from bayeslink.comparing.fields import Field
from bayeslink.data.locations import is_path
from bayeslink.engines.compare import Progress
from bayeslink.engines.spark.choosing import is_here
from bayeslink.judging.judgements import LINK, NONLINK
from bayeslink.judging.labels import known_pairs, with_verdict
from bayeslink.linkage.decisions import Decision, too_few
from bayeslink.linkage.penalized import PenalizedFit, fit_penalized
from bayeslink.linkage.posthoc import posthoc_blocks
from bayeslink.linking.checks import check_link, refuse_third_file
from bayeslink.linking.fit_journal import FitJournal, made_with
from bayeslink.linking.reading import compare_files, with_fields
from bayeslink.model.structure import INDEPENDENT
from bayeslink.options import described, signature_of
from bayeslink.pairs.pair_tables import pair_table
from bayeslink.pairs.source import PairSource
from bayeslink.progress import Clock, with_bar
from bayeslink.runs.run import Run
from bayeslink.sampling.fit_checks import check_fit
from bayeslink.sampling.identified import said
from bayeslink.sampling.posterior import Posterior
from bayeslink.sampling.sampler import sample
from bayeslink.sampling.within_files import compare_within
from bayeslink.sampling.within_files import said as explained_by_chance
from bayeslink.settings import NOT_BY_NAME, LinkSettings


@with_bar
def link(
    a: Any,
    b: Any = None,
    fields: Sequence[Field | str] | None = None,
    *,
    duplicates: str | Sequence[str] = (),
    progress: Progress = lambda message: None,
    checkpoints: Checkpoints | None = None,
    **options: Any,
) -> Any:
    """Link two files one-to-one: compare, fit, sample the posterior, decide.

    Without `fields`, those that `suggest` proposes are compared, with the ids and missing words
    that it finds. `link(pairs)` takes pairs that were compared before, by `compare` or by another
    tool (`from_splink`, `from_table`, …), in place of files and fields.

    Parameters
    ----------
    a, b
        Paths (CSV, TSV, Parquet or a folder of it, Excel, SQLite, DuckDB), "-" for standard input,
        the address of a Postgres database, or pandas, polars or Arrow tables, lazy ones too.
    fields
        What is compared: `exact("age")`, `levenshtein("surname")`, …; of a column that is only
        named, "surname" (or "Surname=last_name"), how is chosen from its values, as `suggest` does.
    duplicates
        "a", "b" or both: the files in which people may be more than once. Then each person may
        have any number of records there, and the result is that of `link_many`, with clusters in
        place of links; the options are those of `link_many`.
    progress
        A function that is told what is going on; a bar on terminals and in notebooks unless given.
    checkpoints
        Where work is written down now and then, to go on from after an interruption.
    {options}

    Returns
    -------
    Run
        `run.links`, `run.joined()`, `run.unlinked("a")`, `run.posterior`, `run.explain(…)`,
        `run.save(…)`, `run.report(…)`.
    """
    refuse_third_file(fields)
    if duplicates:
        from bayeslink.linking.many import link_with_duplicates

        how = {"progress": progress, "checkpoints": checkpoints}
        return link_with_duplicates(a, b, fields, duplicates, options, **how)
    settings = LinkSettings.of(fields=fields, **options)
    return link_with(settings, a, b, progress=progress, checkpoints=checkpoints)


link.__doc__ = str(link.__doc__).replace("    {options}", described(LinkSettings, NOT_BY_NAME))
link.__signature__ = signature_of(link, LinkSettings, NOT_BY_NAME)  # type: ignore[attr-defined]


@with_bar
def link_with(
    settings: LinkSettings,
    a: Any,
    b: Any = None,
    *,
    progress: Progress = lambda message: None,
    checkpoints: Checkpoints | None = None,
) -> Run:
    """`link` with settings that were made before."""
    a, b = (x.read_all() if isinstance(x, pa.RecordBatchReader) else x for x in (a, b))
    check_link(a, b, settings)
    known, remarks = known_pairs(settings.labels, settings.known_links, settings.known_nonlinks)
    links, nonlinks = (with_verdict(known, verdict) for verdict in (LINK, NONLINK))
    clock = Clock()
    given = a if isinstance(a, PairSource) else None
    settings, chosen = with_fields(a, b, settings, progress, compared=given is not None)
    clock.tick("suggest")
    if checkpoints is not None:
        learned: list[Any] = [settings.wrong_fields]
        if settings.model is not None:
            learned += [f.settings for f in settings.fields or ()]
        checkpoints.bind(made_with(known, learned))
    pairs, ids, found = (
        (given, settings.id, ()) if given else compare_files(a, b, settings, progress, checkpoints)
    )
    clock.tick("compare")
    settings = _resolved(settings, a, b, pairs, ids, given is not None)
    journal = None if checkpoints is None else FitJournal(checkpoints, pairs)
    fit = fit_penalized(
        pairs,
        prior=settings.prior,
        structure=settings.structure,
        wrong_fields=settings.wrong_fields,
        links=links,
        nonlinks=nonlinks,
        progress=progress,
        journal=journal,
    )
    plan = pairs.describe().plan
    clock.tick("fit")
    settings = replace(settings, prior=fit.prior)
    blocks = posterior = decision = None
    if settings.point:
        table, warnings = _point_table(pairs, fit), _point_warnings(fit)
    else:
        progress("forming post-hoc blocks")
        blocks = posthoc_blocks(pairs, fit, settings.w0, links=links, nonlinks=nonlinks)
        plan = pairs.describe().plan
        clock.tick("blocks")
        posterior = sample(
            blocks,
            prior=fit.prior,
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
        progress("comparing with pairs within the files")
        within = compare_within(posterior.blocks, posterior.probability)
        posterior = replace(posterior, within=within)
        clock.tick("check")
        progress("deciding")
        decision = posterior.estimate(settings.loss)
        table = _decided_table(pairs, posterior, decision)
        warnings = _posterior_warnings(posterior, decision)
        clock.tick("decide")
    described, checks = pairs.describe(), check_fit(fit, posterior)
    return Run(
        pairs=pairs,
        fit=fit,
        blocks=blocks,
        posterior=posterior,
        decision=decision,
        table=table,
        labels=known,
        plan=plan,
        settings=settings,
        seconds=clock.seconds,
        checks=checks,
        warnings=(
            *warnings, *checks.warnings, *_fit_warnings(fit), *described.warnings,
            *described.notes, *remarks, *found, *chosen,
        ),
        sources=None if given else (a, b),
    )  # fmt: skip


def _resolved(
    settings: LinkSettings, a: Any, b: Any, pairs: PairSource, ids: Any, given: bool
) -> LinkSettings:
    """The settings with what the files said, as the run's link.toml has them."""
    files = [str(x) if is_path(x) and (given or is_here(x, pairs)) else None for x in (a, b)]
    return replace(
        settings,
        a=files[0],
        b=files[1],
        id=ids,
        fields=list(settings.fields or pairs.fields),
        restricted=settings.restricted or pairs.closed,
        engine="spark" if pairs.describe().engine == "spark" else None,
        started_in=os.getcwd(),
    )


def _point_table(pairs: PairSource, fit: PenalizedFit) -> pa.Table:
    w = fit.weight_of(fit.linked.levels)
    order = np.argsort(fit.linked.a)
    columns = {
        "link_probability": pa.nulls(len(w), pa.float64()),
        "match_weight": w[order] / math.log(2),
        "decision": pa.array(["link"] * len(w), pa.string()),
    }
    return pair_table(pairs, fit.linked.take(order), columns)


def _decided_table(pairs: PairSource, posterior: Posterior, decision: Decision) -> pa.Table:
    """Known links, the estimate's links, then the pairs to review; each by rows of A."""
    known, candidates = posterior.blocks.known, posterior.blocks.candidates
    chosen = known.with_more(candidates.take(decision.links))
    probability = np.append(np.ones(len(known)), posterior.probability[decision.links])
    order = np.argsort(chosen.a)
    review = decision.review[np.argsort(candidates.b[decision.review], kind="stable")]
    listed = chosen.take(order).with_more(candidates.take(review))
    columns = {
        "link_probability": np.append(probability[order], posterior.probability[review]),
        "match_weight": posterior.parameters.weight_of(listed.levels) / math.log(2),
        "decision": pa.array(["link"] * len(chosen) + ["review"] * len(review), pa.string()),
    }
    return pair_table(pairs, listed, columns)


def _point_warnings(fit: PenalizedFit) -> list[str]:
    out = []
    if fit.n_links == 0:
        out.append("no pair is worth linking at this theta: the linkage is empty.")
    tied = int(fit.tied.sum())
    if tied:
        out.append(f"{tied} of {fit.n_links} links have an equally good alternative.")
    close = [mode for mode in fit.modes if fit.objective - mode.objective < 3]
    if len(close) > 1:
        sizes = ", ".join(f"{mode.n_links:,}" for mode in close)
        out.append(f"several solutions are about equally good: {sizes} links.")
    return out


def _fit_warnings(fit: PenalizedFit) -> list[str]:
    independent = fit.structure.name == INDEPENDENT
    found = (fit.warning(), fit.rivals.warning() if independent else None)
    return [warning for warning in found if warning]


def _posterior_warnings(posterior: Posterior, decision: Decision) -> list[str]:
    n_links = len(decision.links) + len(posterior.blocks.known)
    empty = None if n_links else "no pair has a link probability above ½: the linkage is empty."
    interval, parts = posterior.interval(), posterior.identified.parts
    # L is worth more than the links where rivals share a probability, not where it is a guess.
    by_rivals = parts.holds and n_links + parts.counted < interval[0]
    too_few_links = too_few(n_links, interval) if by_rivals else None
    copies = _copies_linked(posterior, decision)
    by_chance = explained_by_chance(posterior.within)
    found = (by_chance, said(parts), posterior.warning(), empty, too_few_links, copies)
    return [warning for warning in found if warning]


def _copies_linked(posterior: Posterior, decision: Decision) -> str | None:
    """Say how many links are to one of several records that cannot be told apart."""
    copies = posterior.blocks.pairs.copies
    if copies is None:
        return None
    linked = posterior.blocks.candidates.take(decision.links)
    several = [np.bincount(side, minlength=len(side))[side] > 1 for side in copies]
    of_a, of_b = (int(s[rows].sum()) for s, rows in zip(several, (linked.a, linked.b), strict=True))
    if not of_a and not of_b:
        return None
    return (
        f"{of_a:,} linked records of A, and {of_b:,} of B, have copies in their file: records "
        "equal in all compared fields. One of the copies is linked, whichever the rows' order; "
        "which one the data cannot tell. link_probability is that of this very pair, so about "
        "one half for two copies; the links expected to be false count copies as one. To find all "
        "records of a person, link with --duplicates a or b (duplicates=)."
    )
