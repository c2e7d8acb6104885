"""The whole path in one call: files or tables in, links out."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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
from bayeslink.errors import SettingsError
from bayeslink.inference.decisions import Decision, Loss, too_few
from bayeslink.inference.fit_checks import check_fit
from bayeslink.inference.penalized import PenalizedFit, fit_penalized
from bayeslink.inference.posterior import Posterior
from bayeslink.inference.posthoc import posthoc_blocks
from bayeslink.inference.priors import LinkCountPrior, Penalty
from bayeslink.inference.sampler import check_sampling, sample
from bayeslink.inference.structure import DEPENDENT, INDEPENDENT
from bayeslink.judging.judgements import LINK, NONLINK
from bayeslink.judging.labels import known_pairs, with_verdict
from bayeslink.kernels import SOURCES
from bayeslink.linking.fit_journal import FitJournal
from bayeslink.linking.run import Run
from bayeslink.memory import parse_memory
from bayeslink.pairs.source import PairSource
from bayeslink.pairs.tables import pair_table
from bayeslink.progress import with_bar
from bayeslink.results.models import fields_from
from bayeslink.suggesting.columns import with_chosen
from bayeslink.suggesting.suggestion import suggest


@with_bar
def link(
    a: Any,
    b: Any = None,
    fields: Sequence[Field | str] | None = None,
    *,
    id: Ids = "id",
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
        The id column, as one name or (name in A, name in B); None numbers the rows.
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
    check_sampling(
        draws=draws,
        tune=tune,
        chains=chains,
        seed=seed,
        threads=threads,
        levels=sum(f.n_levels for f in flat(fields or ()) if isinstance(f, Field)),
        budget=parse_memory(memory),
    )
    known, remarks = known_pairs(labels, known_links, known_nonlinks)
    asked: Sequence[Field] | None = None
    if fields is not None:
        _refuse_choosing_there(flat(fields), (a, b))
        asked, chosen = with_chosen(flat(fields), a, b, read, missing)
        remarks = [*remarks, *([chosen] if chosen else [])]
    if model is not None:
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
            found = suggest(a, b, id=None if id == "id" else id, read=read, missing=missing)
        asked, read, missing = found.fields, found.read, None
        id = found.id if id == "id" else id
        remarks = [*remarks, found.in_one_line()]
    with clock("compare"):
        pairs = given or compare(
            a,
            b,
            asked or (),
            id=id,
            block=block,
            read=read,
            missing=missing,
            swapped_names=structure == DEPENDENT,
            threads=threads,
            memory=memory,
            progress=progress,
            checkpoints=checkpoints,
            engine=engine,
        )
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
    found = (posterior.warning(), empty, too_few(n_links, posterior.interval()))
    return [warning for warning in found if warning]


class _Clock:
    """Seconds by phase."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[phase] = round(time.perf_counter() - start, 4)
