"""What a report is made of, gathered from a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from bayeslink.errors import BayeslinkError
from bayeslink.pairs.pair_tables import pair_values
from bayeslink.runs import link_toml
from bayeslink.runs.theta_path import ThetaPath
from bayeslink.runs.unlinkable import FEW_RECORDS, CopyWeights, copy_weights

if TYPE_CHECKING:
    from bayeslink.runs.run import Run

_NOT_THERE = "the input files are not there as they were, or have changed since the run."

Cells = dict[str, tuple[str, str]]  # of two records, by field
Values = Callable[[Sequence[tuple[str, str]]], list[Cells]]  # of pairs of records, by their ids


class Told(Protocol):
    """What the reports of a linkage and of a deduplication have alike."""

    @property
    def summary(self) -> dict[str, Any]: ...  # run.json
    @property
    def parameters(self) -> pa.Table: ...
    @property
    def draws(self) -> pa.Table | None: ...
    @property
    def settings(self) -> str: ...  # link.toml or dedupe.toml, its paths without their folders


def chains_of(material: Told, name: str) -> np.ndarray[Any, Any]:
    """The draws of a quantity, chain × draw."""
    assert material.draws is not None
    drawn: np.ndarray[Any, Any] = material.draws[name].to_numpy()
    return drawn.reshape(material.summary["chains"], -1)


@dataclass(frozen=True, slots=True)
class Material:
    """The tables of a run, its words, and what takes the input files."""

    summary: dict[str, Any]  # run.json
    links: pa.Table
    parameters: pa.Table
    pairs: pa.Table | None  # None, as the next, for a point estimate
    draws: pa.Table | None
    settings: str  # link.toml, its paths without their folders
    values: Values | str  # of the records that were linked, or why they are not at hand
    path: ThetaPath | None  # None with too many pairs
    copies: Callable[[], CopyWeights | str]  # or why they are not at hand

    @property
    def candidates(self) -> pa.Table:
        """The candidate pairs; the links, for a point estimate."""
        if self.pairs is not None:
            return self.pairs
        return self.links.drop_columns(["link_probability", "decision"])


def gather(run: Run) -> Material:
    """What the report tells of a run, fresh or opened."""
    pairs = run.pairs
    values: Values | str = lambda wanted: pair_values(pairs, pairs.find(wanted))  # noqa: E731
    if run.directory is not None:  # opened, perhaps without its inputs
        try:
            pairs.cells(0, [])
        except BayeslinkError:  # whose words may name folders
            values = _NOT_THERE
    return Material(
        summary=run.provenance(),
        links=run.table,
        parameters=run.as_table("parameters"),
        pairs=run.as_table("pairs"),
        draws=run.as_table("draws"),
        settings=link_toml.without_folders(run.link_toml),
        values=values,
        path=run.theta_path,
        copies=lambda: _copies(run),
    )


def _copies(run: Run) -> CopyWeights | str:
    if run.pairs.n_a + run.pairs.n_b > FEW_RECORDS:
        return "there are many records: plots.unlinkable draws it."
    try:
        return copy_weights(run)
    except BayeslinkError:  # whose words may name folders
        return _NOT_THERE if run.directory is not None else "the records are not at hand."
