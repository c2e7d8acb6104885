"""The linked file: A's columns beside B's, from a table of links and the two inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bayeslink.errors import SettingsError
from bayeslink.pairs.pair_tables import in_kind
from bayeslink.pairs.source import Floats, Ints
from bayeslink.runs.inputs import Input
from bayeslink.runs.row_files import RowFile, RowWriter, writing
from bayeslink.runs.workbooks import WorkbookWriter

HOW = ("inner", "left", "right", "outer")
PROBABILITY = "link_probability"
_ROWS = 2**16  # that are joined at a time


@dataclass(frozen=True, slots=True)
class LinkedRows:
    """Which rows of A and B are linked, by row of A, and with what probability."""

    a: Ints
    b: Ints
    probability: Floats

    @classmethod
    def of(cls, a: Any, b: Any, probability: Any) -> LinkedRows:
        order = np.argsort(a, kind="stable")
        row_a, row_b = (np.asarray(x, np.int64)[order] for x in (a, b))
        return cls(row_a, row_b, np.asarray(probability, np.float64)[order])

    def joined(self, n_a: int, n_b: int, how: str) -> LinkedRows:
        """One row for each row of the joined table; −1: no record on that side."""
        if how not in HOW:
            raise SettingsError(f"unknown how={how!r}. Allowed: {', '.join(map(repr, HOW))}.")
        if how == "inner":
            return self
        of_a, of_b = np.arange(n_a), np.arange(n_b)
        partner = np.full(n_a, -1), np.full(n_b, -1)
        p = np.full(n_a, np.nan), np.full(n_b, np.nan)
        partner[0][self.a], p[0][self.a] = self.b, self.probability
        partner[1][self.b], p[1][self.b] = self.a, self.probability
        if how == "right":
            return LinkedRows(partner[1], of_b, p[1])
        if how == "left":
            return LinkedRows(of_a, partner[0], p[0])
        alone = np.flatnonzero(partner[1] < 0)
        return LinkedRows(
            np.append(of_a, np.full(len(alone), -1)),
            np.append(partner[0], alone),
            np.append(p[0], np.full(len(alone), np.nan)),
        )


def joined_table(inputs: Sequence[Input], rows: LinkedRows, how: str, kind: str) -> Any:
    """A's columns, B's (with _b where names clash) and the link probability, as one table."""
    laid = rows.joined(inputs[0].n, inputs[1].n, how)
    at = laid.a, laid.b
    if kind == "pandas":
        import pandas as pd

        frames = [given.pandas() for given in inputs]
        sides = [frame.reindex(rows) for frame, rows in zip(frames, at, strict=True)]
        table = pd.concat([side.reset_index(drop=True) for side in sides], axis=1)
        table.columns = pd.Index(joined_names(*([*map(str, side.columns)] for side in sides))[:-1])
        return table.assign(**{_probability_name(table.columns): laid.probability})
    a, b = (given.whole().take(_places(rows)) for given, rows in zip(inputs, at, strict=True))
    return in_kind(_beside(a, b, laid.probability), kind)


def unlinked_table(given: Input, linked: Ints, kind: str) -> Any:
    """The records of one file that have no link, as they came."""
    alone = np.setdiff1d(np.arange(given.n), linked)
    if kind == "pandas":
        return given.pandas().iloc[alone].reset_index(drop=True)
    return in_kind(given.whole().take(pa.array(alone)), kind)


def joined_names(names_a: Sequence[str], names_b: Sequence[str]) -> list[str]:
    """Names of the joined columns: B's with _b where A has them too, the probability's last.

    Letter case does not tell two names apart, as in the inputs.
    """
    names, taken = [*names_a], {*map(str.casefold, names_a)}
    own = {*map(str.casefold, names_b)}
    for name in names_b:
        new = name
        while new.casefold() in taken or (new != name and new.casefold() in own):
            new += "_b"
        names.append(new)
        taken.add(new.casefold())
    return [*names, _probability_name(names)]


def _probability_name(names: Sequence[str]) -> str:
    name = PROBABILITY
    while name in {*map(str.casefold, names)}:
        name += "_"
    return name


def _beside(a: pa.Table, b: pa.Table, probability: Floats) -> pa.Table:
    p = pa.array(probability, mask=np.isnan(probability))
    names = joined_names(a.column_names, b.column_names)
    return pa.table([*a.columns, *b.columns, p], names)


def _places(rows: Ints) -> pa.Array:
    """Rows to take; null, and so a row of nulls, for −1."""
    return pa.array(rows, mask=rows < 0)


# --- to files, some rows at a time --------------------------------------------------------------


def write_linked(inputs: Sequence[Input], rows: LinkedRows, folder: Path) -> None:
    """linked, unlinked_a and unlinked_b in a folder, each as CSV and as Parquet."""
    with RowFile() as of_b:
        place_b = _write_unlinked(inputs[1], rows.b, folder / "unlinked_b", of_b)
        partner, p = np.full(inputs[0].n, -1), np.full(inputs[0].n, np.nan)
        partner[rows.a], p[rows.a] = rows.b, rows.probability
        stems = folder / "linked", folder / "unlinked_a"
        with writing(stems[0]) as linked, writing(stems[1]) as unlinked:
            for a, table in inputs[0].tables():
                b = partner[a]
                at = np.flatnonzero(b >= 0)
                linked.write(_beside(table.take(at), of_b.take(place_b[b[at]]), p[a[at]]))
                unlinked.write(table.take(np.flatnonzero(b < 0)))


def _write_unlinked(given: Input, linked: Ints, stem: Path, kept: RowFile) -> Ints:
    """Records without a link to files, all of them to `kept`: returns the place of each there."""
    has_link, places = np.zeros(given.n, bool), []
    has_link[linked] = True
    with writing(stem) as unlinked:
        for rows, table in given.tables():
            kept.append(table)
            places.append(rows)
            unlinked.write(table.take(np.flatnonzero(~has_link[rows])))
    return np.argsort(np.concatenate(places))


def write_joined(
    inputs: Sequence[Input],
    versions: Sequence[LinkedRows],
    how: str,
    target: RowWriter | WorkbookWriter,
    *,
    numbered: bool,
) -> int:
    """Joined tables to one file, one after the other; returns how many rows it has."""
    n_rows = 0
    with RowFile() as of_a, RowFile() as of_b:
        place_a, place_b = (
            _kept(given, of) for given, of in zip(inputs, (of_a, of_b), strict=True)
        )
        for number, version in enumerate(versions, 1):
            laid = version.joined(inputs[0].n, inputs[1].n, how)
            for first in range(0, max(1, len(laid.a)), _ROWS):
                part = slice(first, first + _ROWS)
                a, b = (place_a[laid.a[part]], place_b[laid.b[part]])
                table = _beside(of_a.take(a), of_b.take(b), laid.probability[part])
                if numbered:
                    table = _numbered(table, number)
                target.write(table)
            n_rows += len(laid.a)
    return n_rows


def _kept(given: Input, file: RowFile) -> Ints:
    """All records to a file: the place of each there; −1, for none, last."""
    places = []
    for rows, table in given.tables():
        file.append(table)
        places.append(rows)
    return np.append(np.argsort(np.concatenate(places)), -1)


def _numbered(table: pa.Table, number: int) -> pa.Table:
    name = "draw"
    while name in table.column_names:
        name += "_"
    return table.add_column(0, name, pa.array(np.full(len(table), number, np.int32)))
