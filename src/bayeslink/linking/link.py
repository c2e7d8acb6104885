"""The whole path in one call: files or tables in, links out."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from hashlib import sha256
from typing import Any

import numpy as np
import pyarrow as pa

from bayeslink import __version__
from bayeslink.checkpoints import Checkpoints
from bayeslink.comparing.fields import Field
from bayeslink.data.places import is_path
from bayeslink.data.records import ReadOptions
from bayeslink.engines.chosen import ChosenPairs
from bayeslink.engines.compare import Ids, Progress, Sides, as_list, compare, flat, read_options
from bayeslink.engines.spark.choosing import is_here, is_spark
from bayeslink.errors import NoColumnError, SettingsError
from bayeslink.inference.decisions import Decision, Loss, too_few
from bayeslink.inference.fit_checks import check_fit
from bayeslink.inference.penalized import PenalizedFit, fit_penalized
from bayeslink.inference.posterior import Posterior
from bayeslink.inference.posthoc import posthoc_blocks
from bayeslink.inference.priors import LinkCountPrior, Penalty
from bayeslink.inference.sampler import sample
from bayeslink.inference.structure import DEPENDENT, INDEPENDENT
from bayeslink.judging.judgements import LINK, NONLINK
from bayeslink.judging.labels import known_pairs, with_verdict
from bayeslink.kernels import SOURCES
from bayeslink.linking.checks import check_link
from bayeslink.linking.fit_journal import FitJournal
from bayeslink.linking.run import Run
from bayeslink.pairs.source import PairSource
from bayeslink.pairs.tables import pair_table
from bayeslink.progress import with_bar
from bayeslink.results.models import fields_from, id_as_learned, read_as_learned, read_model
from bayeslink.suggesting.columns import with_chosen, with_partner
from bayeslink.suggesting.suggestion import find_ids, suggest


class Found(Enum):
    """That a setting is found in the files."""

    IN_THE_FILES = "found"


@with_bar
def link(
    a: Any,
    b: Any = None,
    fields: Sequence[Field | str] | None = None,
    *,
    id: Ids | Found = Found.IN_THE_FILES,
    block: Sequence[Sides] = (),
    theta: float | None = None,
    prior: LinkCountPrior | None = None,
    point: bool = False,
    structure: str = DEPENDENT,
    w0: float | None = None,
    restricted: bool = False,
    draws: int = 1000,
    tune: int = 500,
    chains: int = 4,
    loss: Loss | None = None,
    known_links: Any = None,
    known_nonlinks: Any = None,
    labels: Any = None,
    model: Any = None,
    strength: float = 1.0,
    read: ReadOptions | tuple[ReadOptions, ReadOptions] | None = None,
    missing: Sequence[str] | None = None,
    seed: int = 1,
    threads: int | None = None,
    memory: str | int | None = None,
    progress: Progress = lambda message: None,
    checkpoints: Checkpoints | None = None,
    engine: Any = None,
) -> Run:
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
    id
        The id column, as one name or (name in A, name in B); None numbers the rows. Unless given,
        the column `id`, or where a file has none, what `suggest` finds.
    block
        Columns that must be equal for a pair to be in scope, each as one name or two.
    theta, prior
        The cost of a link, or a prior on the number of links; a flat prior on the overlap of the
        files unless given.
    structure
        "dependent": errors of a link may come together or apart, and fields may agree together
        among non-links, as households do; how far, follows from the data. "independent": the
        paper's model.
    w0
        Pairs above this weight are swept over in sampling, all others are sampled now and then:
        a matter of speed.
    restricted
        Only pairs above w0 may link: the paper's restricted MCMC.
    point
        Stop at the penalized-likelihood estimate: no probabilities.
    loss
        What errors and review cost; balanced unless given, which links pairs above ½.
    known_links, known_nonlinks
        Pairs (id_a, id_b) known to be links and non-links; of a table with a `decision`, as
        `run.links` has, the links.
    labels
        More of both, as judged in a review: a run directory, or what else `read_labels` takes.
    checkpoints
        Where work is written down now and then, to go on from after an interruption.
    engine
        A Spark session, or "spark" for the active one: comparing and searching are done on its
        cluster, with the same result; `a` and `b` may be Spark DataFrames, tables of its catalogue
        or addresses of Parquet folders. This machine unless given.
    model, strength
        An earlier run, its directory or its model.json: what it learned of m is the prior, at
        this strength (1: as if its links were links here; 0: not at all; inf: m and u are fixed).
        Its fields are compared unless `fields` are given.
    draws, tune, chains
        Draws of each chain that are kept, draws before those, and how many chains there are.
    read, missing
        How files are read (`ReadOptions`, for both or one each); values that count as missing.
    seed
        Of the draws: the same seed gives the same result on any number of threads.
    threads, memory
        Threads to use; what the run may use of memory, such as "8GB". Neither changes a result.
    progress
        A function that is told what is going on; a bar on terminals and in notebooks unless given.

    Returns
    -------
    Run
        `run.links`, `run.joined()`, `run.unlinked("a")`, `run.posterior`, `run.explain(…)`,
        `run.save(…)`, `run.report(…)`.
    """
    if theta is not None:
        if prior is not None:
            raise SettingsError("give theta or a prior, not both: theta=2 is prior=Penalty(2).")
        prior = Penalty(theta)
    check_link(
        a, b, fields, draws=draws, tune=tune, chains=chains, seed=seed, threads=threads,
        memory=memory, labels=labels, model=model, read=read, missing=missing, engine=engine,
    )  # fmt: skip
    known, remarks = known_pairs(labels, known_links, known_nonlinks)
    asked: Sequence[Field] | None = None
    if fields is not None:
        _refuse_choosing_there(flat(fields), (a, b))
        with _naming_partners(a, b, read, missing):
            asked, chosen = with_chosen(flat(fields), a, b, read, missing)
        remarks = [*remarks, *([chosen] if chosen else [])]
    if model is not None:
        model = read_model(model)
        if not asked:
            id = id_as_learned(model, id) if isinstance(id, Found) else id
            read, missing = read_as_learned(model, read_options(read, missing)), None
        asked = fields_from(model, asked or (), strength, structure)
    if checkpoints is not None:
        learned = () if model is None else [f.settings for f in asked or ()]
        checkpoints.bind(_made_with(known, learned))
    clock = _Clock()
    given = a if isinstance(a, PairSource) else None
    if asked is None and given is None:
        with clock("suggest"):
            progress("looking at the files")
            _refuse_choosing_there(["all"], (a, b))
            found = suggest(
                a, b, id=None if isinstance(id, Found) else id, read=read, missing=missing
            )
        asked, read, missing = found.fields, found.read, None
        remarks = [*remarks, found.in_one_line()]
        if isinstance(id, Found):
            id, remarks = found.id, [*remarks, *found.warnings]
    with clock("compare"), _naming_partners(a, b, read, missing):
        how: dict[str, Any] = {
            "block": block, "read": read, "missing": missing, "threads": threads, "memory": memory,
            "swapped_names": structure == DEPENDENT, "progress": progress,
            "checkpoints": checkpoints, "engine": engine,
        }  # fmt: skip
        try:
            own_id = "id" if isinstance(id, Found) else id
            pairs = given or compare(a, b, asked or (), id=own_id, **how)
        except NoColumnError as error:
            if not isinstance(id, Found) or error.column != "id" or any(map(is_spark, (a, b))):
                raise
            own_id, said = find_ids(a, b, read, missing)
            remarks = [*remarks, *said]
            pairs = compare(a, b, asked or (), id=own_id, **how)
        id = own_id
    restricted = restricted or isinstance(pairs, ChosenPairs)  # no other pair may link
    with clock("fit"):
        journal = None if checkpoints is None else FitJournal(checkpoints, pairs)
        links, nonlinks = (with_verdict(known, verdict) for verdict in (LINK, NONLINK))
        fit = fit_penalized(
            pairs,
            prior=prior,
            structure=structure,
            links=links,
            nonlinks=nonlinks,
            progress=progress,
            journal=journal,
        )
        plan = pairs.describe().plan
    settings = {
        "a": str(a) if is_path(a) and (given or is_here(a, pairs)) else None,
        "b": str(b) if is_path(b) and (given or is_here(b, pairs)) else None,
        "id": id,
        "block": as_list(block),
        "fields": list(asked or pairs.fields),
        "prior": fit.prior,
        "read": read_options(read, missing),
        "structure": structure,
        "point": point,
        "w0": w0,
        "restricted": restricted,
        "draws": draws,
        "tune": tune,
        "chains": chains,
        "loss": loss,
        "seed": seed,
        "engine": None if pairs.describe().engine != "spark" else "spark",
        "started_in": os.getcwd(),  # from which the paths lead
    }
    if point:
        table, warnings = _point_table(pairs, fit), _point_warnings(fit)
        blocks = posterior = decision = None
    else:
        with clock("blocks"):
            progress("forming post-hoc blocks")
            blocks = posthoc_blocks(pairs, fit, w0, links=links, nonlinks=nonlinks)
            plan = pairs.describe().plan
        with clock("sample"):
            posterior = sample(
                blocks,
                prior=fit.prior,
                restricted=restricted,
                draws=draws,
                tune=tune,
                chains=chains,
                seed=seed,
                threads=threads,
                progress=progress,
                checkpoints=checkpoints,
            )
        with clock("decide"):
            progress("deciding")
            decision = posterior.estimate(loss)
            table = _decided_table(pairs, posterior, decision)
            warnings = _posterior_warnings(posterior, decision)
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
            *described.warnings, *described.notes, *remarks, *_fit_warnings(fit), *checks.warnings,
            *warnings,
        ),
        sources=None if given else (a, b),
    )  # fmt: skip


@contextmanager
def _naming_partners(a: Any, b: Any, read: Any, missing: Any) -> Iterator[None]:
    """Have the error on a column that a file lacks name the one that is like it."""
    try:
        yield
    except NoColumnError as error:
        if any(map(is_spark, (a, b))):
            raise
        raise with_partner(error, a, b, read, missing) from None


def _refuse_choosing_there(fields: Sequence[Field | str], sources: tuple[Any, Any]) -> None:
    """Comparisons are chosen from files that this machine reads, not from tables of Spark."""
    if any(isinstance(f, str) for f in fields) and any(map(is_spark, sources)):
        raise SettingsError(
            "for tables of Spark, say how to compare each column, such as bl.name('surname'). "
            "bl.suggest(a.limit(10_000).toPandas(), b.limit(10_000).toPandas()) proposes it."
        )


def _made_with(known: pa.Table | None, learned: Sequence[Any]) -> dict[str, str]:
    """What the work of a run hangs on beside its settings and files: labels, a model, versions."""
    labels = "" if known is None else str(known.to_pylist())
    return {
        "what is judged (labels)": sha256(labels.encode()).hexdigest(),
        "what was learned before (model)": sha256(str([*learned]).encode()).hexdigest(),
        "the version of bayeslink": f"{__version__} {SOURCES} {np.__version__}",
    }


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
    too_few_links = too_few(n_links, posterior.interval())
    found = (posterior.warning(), empty, too_few_links, _copies_linked(posterior, decision))
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
        "one half for two copies; the links expected to be false count copies as one. Keep one "
        "record of each person."
    )


class _Clock:
    """Seconds by phase."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[phase] = round(time.perf_counter() - start, 4)
