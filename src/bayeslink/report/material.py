"""What a report is made of, gathered from a run or from the directory it was saved to."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from bayeslink.comparing.fields import Field, exact
from bayeslink.engines.local import LocalPairs
from bayeslink.engines.swapping import with_swapped_names
from bayeslink.errors import BayeslinkError, InputError
from bayeslink.linkage.penalized import PenaltyPath, penalty_path
from bayeslink.model.structure import DEPENDENT
from bayeslink.pairs.pair_tables import pair_values
from bayeslink.pairs.source import PairSource
from bayeslink.results import link_toml, reading, store, tables
from bayeslink.results.record_values import Values, values_of

if TYPE_CHECKING:
    from bayeslink.linking.run import Run

_NOT_THERE = "the input files are not there as they were, or have changed since the run."
FEW_PAIRS = 3_000_000_000  # pairs in scope up to which a report searches them again for the path


@dataclass(frozen=True, slots=True)
class Material:
    """The tables of a run directory, and what takes the input files."""

    summary: dict[str, Any]  # run.json
    links: pa.Table
    parameters: pa.Table
    pairs: pa.Table | None  # None, as the next, for a point estimate
    draws: pa.Table | None
    settings: str  # link.toml, its paths without their folders
    values: Values | str  # of the records that were linked, or why they are not at hand
    path: PenaltyPath | None  # None with too many pairs or without the files

    @property
    def candidates(self) -> pa.Table:
        """The candidate pairs; the links, for a point estimate."""
        if self.pairs is not None:
            return self.pairs
        return self.links.drop_columns(["link_probability", "decision"])

    def chains(self, name: str) -> np.ndarray[Any, Any]:
        """The draws of a quantity, chain × draw."""
        assert self.draws is not None
        return self.draws[name].to_numpy().reshape(self.summary["chains"], -1)


def gather(source: Any, a: Any = None, b: Any = None) -> Material:
    """Read a run directory, and its inputs from where they are now; or take it from a `Run`."""
    if isinstance(source, str | os.PathLike):
        return _from_directory(Path(source), a, b)
    return _from_run(source)


def _from_run(run: Run) -> Material:
    post, pairs = run.posterior, run.pairs
    values: Values | str = lambda wanted: pair_values(pairs, pairs.find(wanted))  # noqa: E731
    small = pairs.n_pairs <= FEW_PAIRS
    if run.stored is not None:  # opened, perhaps without its inputs
        try:
            pairs.cells(0, [])
        except BayeslinkError:  # whose words may name folders
            values, small = _NOT_THERE, False
    return Material(
        summary=store.provenance(run),
        links=run.table,
        parameters=tables.parameter_table(run),
        pairs=run.candidates() if post else None,
        draws=tables.draw_table(post) if post else None,
        settings=link_toml.without_folders(link_toml.dump(run.settings)),
        values=values,
        path=path_around(pairs, run.theta) if small else None,
    )


def _from_directory(folder: Path, a: Any, b: Any) -> Material:
    summary = reading.read_summary(folder)
    sampled = "chains" in summary
    try:
        settings = (folder / "link.toml").read_text("utf-8")
    except (OSError, ValueError) as error:
        raise _no_run(folder / "link.toml", str(error)) from None
    path = None
    values: Values | str
    try:
        values, pairs = _inputs(folder, summary, a, b)
    except BayeslinkError:  # whose words may name folders
        values = _NOT_THERE
    else:
        path = None if pairs is None else path_around(pairs, summary["theta"])
    return Material(
        summary=summary,
        links=reading.read_links(folder),
        parameters=reading.read_table(folder, "parameters"),
        pairs=reading.read_table(folder, "pairs") if sampled else None,
        draws=reading.read_table(folder, "draws") if sampled else None,
        settings=link_toml.without_folders(settings),
        values=values,
        path=path,
    )


def _inputs(
    folder: Path, summary: dict[str, Any], a: Any, b: Any
) -> tuple[Values, PairSource | None]:
    """Read the files again, and compare them if they are small."""
    settings = store.inputs_from(folder, a, b)
    keys, fields = [_key(names) for names in settings.block], settings.fields
    records = store.read_inputs(settings, (*fields, *keys), summary)
    values = values_of(records, fields)
    if summary["n_pairs"] > FEW_PAIRS:
        return values, None
    pairs = LocalPairs(records[0], records[1], fields, keys)
    return values, with_swapped_names(pairs) if settings.structure == DEPENDENT else pairs


def _key(names: str | Sequence[str]) -> Field:
    return exact(names) if isinstance(names, str) else exact(names[0], columns=tuple(names))


def path_around(pairs: PairSource, theta: float) -> PenaltyPath:
    """The penalized-likelihood estimates over θ, around one."""
    return penalty_path(pairs, np.linspace(max(0.0, theta - 4), theta + 4, 9).tolist())


def _no_run(path: Path, reason: str) -> InputError:
    return InputError(
        f"cannot read {path}: {reason}. Give the directory that `bayeslink link -o` wrote."
    )
