"""A run directory as the `Run` it was, and the same linkage done again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bayeslink.comparing.fields import Field
from bayeslink.engines.saved import SavedPairs
from bayeslink.errors import InputError
from bayeslink.linking.link import link_with
from bayeslink.linking.run import Run
from bayeslink.pairs.source import Description, Ints, PairSource
from bayeslink.results import reading, store
from bayeslink.results.state import FILE, State
from bayeslink.settings import LinkSettings

# What run.json holds beside the summary.
_BESIDE = (
    "kept_every", "diagnostics", "created", "versions", "python", "platform", "engine", "inputs",
    "fields",
)  # fmt: skip


def open_run(directory: str | Path, *, a: Any = None, b: Any = None) -> Run:
    """Read a run directory: what `link` gave, with its posterior.

    The directory is enough for links, probabilities, draws, decisions and reports, wherever it was
    moved to. The input files are read only for what they alone can tell: other columns
    (`joined`), cells of records, pairs that were not listed.

    Parameters
    ----------
    directory
        What `run.save` or `bayeslink link -o` wrote.
    a, b
        The inputs, as paths or tables: where the files have moved, and where the run was made from
        data frames and did not keep them.
    """
    folder = Path(directory)
    links, labels = reading.read_links(folder), folder / "labels.parquet"
    reading.require_as_written(folder, FILE)
    state, told = State(folder / FILE), reading.read_summary(folder)
    summary = {key: value for key, value in told.items() if key not in _BESIDE}
    settings = store.run_settings(folder)
    sources = tuple(
        own if given is None else given for own, given in ((settings.a, a), (settings.b, b))
    )
    pairs = _pairs(folder, state, settings, sources)
    blocks = state.read("blocks", pairs)
    posterior = None
    if blocks is not None:
        probability = state.read("probability")
        drawn = _drawn(folder, state, pairs, np.argsort(-probability, kind="stable"))
        drawn["seconds"] = summary["seconds"]["sample"]
        posterior = state.read("posterior", pairs, drawn)
        pairs.listed = posterior.blocks.candidates.with_more(blocks.known)
    return Run(
        pairs=pairs,
        fit=state.read("fit", pairs),
        blocks=blocks,
        posterior=posterior,
        decision=state.read("decision"),
        table=links,
        labels=reading.read_table(folder, "labels") if labels.exists() else None,
        plan=None if summary["search"] is None else _Plan(state.read("plan"), summary["search"]),
        settings=settings,
        seconds=summary["seconds"],
        checks=state.read("checks"),
        warnings=tuple(summary["warnings"]),
        sources=sources,
        stored=summary,
    )


def relink(run: Run | str | Path, *, a: Any = None, b: Any = None, **changes: Any) -> Run:
    """Link once more with the settings of a run, or with some of them changed.

    Parameters
    ----------
    run
        A `Run`, or a run directory.
    a, b
        Other inputs; needed where the run was opened from a directory that does not have them.
    changes
        Arguments of `link` to take in place of the run's, such as `draws=5000`.
    """
    if not isinstance(run, Run):
        run = open_run(run)
    found = run.sources or (None, None)
    a, b = (found[k] if given is None else given for k, given in enumerate((a, b)))
    for side, source in (("a", a), ("b", b)):
        if source is None:
            raise InputError(f"input {side.upper()} of the run is not here. Give it: {side}=….")
    settings = LinkSettings(**run.settings.repeated(), labels=run.labels)
    work = {key: changes.pop(key) for key in ("progress", "checkpoints") if key in changes}
    return link_with(settings.changed(**changes), a, b, **work)


@dataclass(frozen=True, slots=True)
class _Plan:
    """How the search went about it, as it was told."""

    text: str
    data: Mapping[str, Any]

    def summary(self) -> dict[str, Any]:
        return dict(self.data)

    def __str__(self) -> str:
        return self.text


def _pairs(
    folder: Path, state: State, settings: LinkSettings, sources: tuple[Any, Any]
) -> SavedPairs:
    def compared() -> PairSource:
        return store.compare_again(folder, reading.read_summary(folder), *sources)

    by_name = {f.name: f for f in settings.fields or ()}
    told = state.read("fields")
    if not all(name in by_name for name, *_ in told):
        raise InputError(
            f"cannot read {folder / 'link.toml'}: it does not have all fields that the run was "
            "made with. It was damaged or edited: put back the one the run wrote, or link the "
            "files again."
        )
    fields = [_field(by_name[name], *levels) for name, *levels in told]
    return SavedPairs(
        fields,
        state.read("scope"),
        state.read("ids"),
        state.read("tie_keys"),
        state.read("counts"),
        _description(reading.read_summary(folder)),
        kind=state.read("kind"),
        id_types=state.read("id_types"),
        copies=_copies(state),
        compared=compared,
    )


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


def _drawn(folder: Path, state: State, pairs: SavedPairs, order: Any) -> dict[str, Any]:
    """The draws, from the tables that hold them."""
    draws, links = reading.read_table(folder, "draws"), reading.read_table(folder, "link_draws")
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
