"""A run directory as the `Run` it was: the only door to one."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bayeslink.comparing.fields import GIVEN, Field, custom, given_levels
from bayeslink.data.records import Records
from bayeslink.engines.compare import block_fields
from bayeslink.engines.saved import SavedPairs
from bayeslink.errors import InputError
from bayeslink.linkage.decisions import Decision
from bayeslink.linkage.penalized import PenalizedFit
from bayeslink.linkage.posthoc import Blocks
from bayeslink.pairs.source import Description, Ints, Pairs, PairSource
from bayeslink.runs import link_toml
from bayeslink.runs.dedupe_json import check as check_dedupe
from bayeslink.runs.dedupe_opening import SavedDedupe
from bayeslink.runs.dedupe_run import DedupeRun
from bayeslink.runs.inputs import compared_again, records_again
from bayeslink.runs.reading import RunFiles
from bayeslink.runs.run import Run
from bayeslink.runs.run_json import DEDUPE, checked, read_summary
from bayeslink.runs.state import State
from bayeslink.runs.theta_path import ThetaPath
from bayeslink.sampling.fit_checks import FitChecks
from bayeslink.sampling.posterior import Posterior
from bayeslink.settings import LinkSettings

# What run.json holds beside the summary.
_BESIDE = (
    "format", "kept_every", "diagnostics", "path", "created", "versions", "python", "platform",
    "engine", "inputs", "fields", "left_out", "files",
)  # fmt: skip


def open_run(
    directory: str | Path,
    *,
    a: Any = None,
    b: Any = None,
    progress: Callable[[str], None] = lambda message: None,
) -> Run | DedupeRun:
    """Read a run directory: what `link` gave, with its posterior, or the tables of `dedupe`.

    The directory is enough for links, probabilities, draws, decisions and reports, wherever it was
    moved to. The input files are read only for what they alone can tell: other columns
    (`joined`), cells of records, pairs that were not listed. The links are read at once, the rest
    when it is first asked for: until then the directory must stay as it is.

    Parameters
    ----------
    directory
        What `run.save` or `bayeslink link -o` wrote.
    a, b
        The inputs, as paths or tables: where the files have moved, and where the run was made from
        data frames and did not keep them.
    progress
        A function that is told what is going on.
    """
    summary = read_summary(Path(directory))
    if summary.get("task") == DEDUPE:
        checked(Path(directory), summary, check_dedupe)
        return SavedDedupe(Path(directory), summary, a)
    return open_linkage(directory, a=a, b=b, progress=progress)


def open_linkage(
    directory: str | Path,
    *,
    a: Any = None,
    b: Any = None,
    progress: Callable[[str], None] = lambda message: None,
) -> Run:
    """`open_run` of a linkage; a deduplication is refused."""
    return SavedRun(RunFiles(directory), a, b, progress)


def as_run(source: Run | str | Path) -> Run:
    """A run, given as it is or by its directory."""
    if isinstance(source, Run):
        return source
    if isinstance(source, str | Path):
        return open_linkage(source)
    raise InputError(
        f"{type(source).__name__} is no run. Give a `Run`, or the directory of one as a path."
    )


def saved_in(run: Run | DedupeRun) -> Path:
    """The directory of a run, for what is kept there beside it."""
    if run.directory is None:
        raise InputError(
            "this run has no directory, in which judgements are kept. Save it with run.save(OUT), "
            "and give the directory or bl.open_run(OUT)."
        )
    return run.directory


class SavedRun(Run):
    """A run that was saved, of which each part is read when it is first asked for."""

    def __init__(self, files: RunFiles, a: Any, b: Any, progress: Callable[[str], None]) -> None:
        vars(self).update(
            table=files.table("links"),
            seconds=files.summary["seconds"],
            warnings=tuple(files.summary["warnings"]),
            directory=files.folder,
            _files=files,
            _given=(a, b),
            _progress=progress,
        )

    _files: RunFiles
    _given: tuple[Any, Any]
    _progress: Callable[[str], None]

    # --- told by run.json and the tables -------------------------------------------------------

    def summary(self) -> dict[str, Any]:
        return {key: value for key, value in self._files.summary.items() if key not in _BESIDE}

    def provenance(self) -> dict[str, Any]:
        return {k: v for k, v in self._files.summary.items() if k not in ("format", "files")}

    @property
    def theta(self) -> float:
        return float(self._files.summary["theta"])

    def as_table(self, name: str) -> Any:
        return self._files.table(name)

    @property
    def fingerprint(self) -> str:
        return self._files.fingerprint()

    @cached_property
    def labels(self) -> pa.Table | None:
        return self._files.table("labels")

    @cached_property
    def theta_path(self) -> ThetaPath | None:
        return ThetaPath.from_data(self._files.summary["path"])

    @property
    def link_toml(self) -> str:
        return self._files.link_toml

    @cached_property
    def settings(self) -> LinkSettings:
        return run_settings(self._files)

    @cached_property
    def sources(self) -> tuple[Any, Any]:
        own = zip((self.settings.a, self.settings.b), self._given, strict=True)
        a, b = (there if given is None else given for there, given in own)
        return a, b

    # --- from state.npz and the draws ----------------------------------------------------------

    @cached_property
    def pairs(self) -> PairSource:
        state, by_name = self._files.state, {f.name: f for f in self.settings.fields or ()}
        a, b = state.read("ids")
        return SavedPairs(
            [_field(by_name[name], *levels) for name, *levels in state.read("fields")],
            state.read("scope"),
            (a, b),
            state.read("tie_keys"),
            state.read("counts"),
            _description(self._files.summary),
            kind=state.read("kind"),
            id_types=state.read("id_types"),
            copies=_copies(state),
            closed=state.read("closed"),
            listed=_joined(state.read("listed")),
            records=self._records,
            compared=self._compared,
        )

    @cached_property
    def fit(self) -> PenalizedFit:
        found: PenalizedFit = self._files.state.read("fit", self.pairs)
        return found

    @cached_property
    def blocks(self) -> Blocks | None:
        found: Blocks | None = self._files.state.read("blocks", self.pairs)
        return found

    @cached_property
    def posterior(self) -> Posterior | None:
        if "chains" not in self._files.summary:
            return None
        state = self._files.state
        order = np.argsort(-state.read("probability"), kind="stable")
        drawn = _drawn(self._files, self.pairs, order)
        found: Posterior = state.read(
            "posterior", self.pairs, {**drawn, "seconds": self.seconds["sample"]}
        )
        return found

    @cached_property
    def decision(self) -> Decision | None:
        found: Decision | None = self._files.state.read("decision")
        return found

    @cached_property
    def checks(self) -> FitChecks:
        found: FitChecks = self._files.state.read("checks")
        return found

    @cached_property
    def plan(self) -> _Plan | None:
        told = self._files.summary["search"]
        return None if told is None else _Plan(self._files.state.read("plan"), told)

    # --- from the inputs -----------------------------------------------------------------------

    def _records(self) -> tuple[Records, Records]:
        self._progress("reading the files")
        return records_again(self, [*self.settings.fields, *block_fields(self.settings.block)])

    def _compared(self, records: tuple[Records, Records] | None) -> PairSource:
        self._progress("not a candidate pair: comparing the files again")
        return compared_again(self, records)


@dataclass(frozen=True, slots=True)
class _Plan:
    """How the search went about it, as it was told."""

    text: str
    data: Mapping[str, Any]

    def summary(self) -> dict[str, Any]:
        return dict(self.data)

    def __str__(self) -> str:
        return self.text


def run_settings(files: RunFiles) -> LinkSettings:
    """The link.toml of a run directory.

    The function of a custom field is not there: such a field can be told of, not compared.
    """
    path = files.folder / link_toml.FILE
    entries = link_toml.load(path)
    fields = [_told(entry) for entry in entries.pop("fields", ())]
    own = {key: value for key, value in entries.items() if key not in ("labels", "output")}
    found = LinkSettings.of(**{"id": "id", **own}, fields=fields, started_in=os.getcwd())
    if not {f["name"] for f in files.summary["fields"]} <= {f.name for f in found.fields}:
        raise InputError(
            f"cannot read {path}: it does not have all fields that the run was made with. It was "
            "damaged or edited: put back the one the run wrote, or link the files again."
        )
    return found


def _told(entry: Mapping[str, Any]) -> Any:
    if entry.get("compare") == GIVEN:
        return given_levels(entry["column"], entry["labels"])
    if entry.get("compare") != "custom":
        return entry
    rest = {key: value for key, value in entry.items() if key not in ("compare", "column")}

    def lost(x: str, y: str) -> int:
        raise InputError(
            f"the field {entry['column']!r} was compared by a Python function, which a run "
            "directory does not hold. Link again from Python."
        )

    return custom(entry["column"], lost, **rest)


def _joined(parts: tuple[Pairs, ...]) -> Pairs:
    """Pairs as one list."""
    first, *others = parts
    for more in others:
        first = first.with_more(more)
    return first


def _copies(state: State) -> tuple[Ints, Ints] | None:
    """The first copy of each record: its own row, but for those that the run told of."""
    if (told := state.read("copies")) is None:
        return None
    found = []
    for ids, (rows, first) in zip(state.read("ids"), told, strict=True):
        copies = np.arange(len(ids))
        copies[rows] = first
        found.append(copies)
    return found[0], found[1]


def _description(told: Mapping[str, Any]) -> Description:
    """What the source said of itself; its warnings are among the run's."""
    own = ("name", "comparison", "normalise", "levels", "pairs_by_level")
    return Description(
        engine=told["engine"],
        inputs=tuple(told["inputs"]),
        fields=tuple({k: v for k, v in f.items() if k not in own} for f in told["fields"]),
        warnings=(),
        notes=(),
        plan=None,
        memory=told["memory"],
        resources="The run was opened from its directory.",
    )


def _field(field: Field, labels: Any, m_prior: Any, u_prior: Any, covers: Any, told: Any) -> Field:
    """The field as it was compared, with what the data told: the run may have added levels."""
    kept = {k: v for k, v in told.items() if k in field.options and k != "bands"}
    return replace(
        field,
        labels=tuple(labels),
        m_prior=tuple(m_prior),
        u_prior=tuple(u_prior),
        covers=tuple((int(level), str(other)) for level, other in covers),
        cuts=tuple(told.get("cuts", field.cuts)),
        bands=tuple(told["bands"]),
        options={**field.options, **kept},
    )


def _drawn(files: RunFiles, pairs: PairSource, order: Any) -> dict[str, Any]:
    """The draws, from the tables that hold them."""
    draws, links = (files.table(name) for name in ("draws", "link_draws"))
    assert draws is not None  # as the run has a posterior
    assert links is not None
    state = files.state
    chains = int(draws["chain"].to_numpy().max()) + 1
    shape = (chains, len(draws) // chains)

    def column(name: str) -> Any:
        return draws[name].to_numpy().reshape(shape)

    width = max(f.n_levels for f in pairs.fields) + 1
    m, u = np.zeros((2, *shape, len(pairs.fields), width))
    for j, f in enumerate(pairs.fields):
        for h in range(1, f.n_levels + 1):
            m[:, :, j, h], u[:, :, j, h] = column(f"m[{f.name}, {h}]"), column(f"u[{f.name}, {h}]")
    return {
        "n_links": column("links"),
        "log_posterior": column("log_posterior"),
        "m": m,
        "u": u,
        "kept": _kept(links, order, state.read("kept_every"), state.read("n_kept")),
    }


def _kept(links: pa.Table, order: Any, every: int, n_kept: tuple[int, ...]) -> Any:
    """The links of each kept draw: link_draws.parquet has runs of draws for each pair."""
    pair, chain, first, last = (links[name].to_numpy() for name in links.column_names)
    first, last = (-(-(draw + 1) // every) - 1 for draw in (first, last))  # states, from 0
    kept = []
    for number, n in enumerate(n_kept):
        own = np.flatnonzero(chain == number)
        times = last[own] - first[own] + 1
        begin = np.repeat(first[own] - np.cumsum(times) + times, times)
        state = begin + np.arange(times.sum())
        candidate = order[np.repeat(pair[own], times)].astype(np.int32)
        by_state = np.argsort(state, kind="stable")
        ends = np.searchsorted(state[by_state], np.arange(1, n))
        kept.append(tuple(np.split(candidate[by_state], ends)))
    return tuple(kept)
