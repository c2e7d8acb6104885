"""What a review shows of a run: its tables, and the records read again from their files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bayeslink.comparing.fields import Field, exact
from bayeslink.data.id_pairs import among
from bayeslink.data.records import Records
from bayeslink.errors import InputError
from bayeslink.judging.judgements import Pair
from bayeslink.pairs.source import Ints
from bayeslink.review.cases import Cases, find_cases
from bayeslink.runs.inputs import records_again
from bayeslink.runs.opening import saved_in
from bayeslink.runs.run import Run
from bayeslink.settings import LinkSettings

_PAIR = "pair-"  # begins the key of a case that is one pair below the floor


@dataclass(frozen=True, slots=True)
class Material:
    """What the cases of a run are made of."""

    run: Run
    names: tuple[str, str]  # of the data sets, in labels for Splink
    fields: Sequence[Field]  # compared
    further: Sequence[Field]  # not compared, only shown: blocking keys, and columns asked for
    records: tuple[Records, Records]
    candidates: pa.Table  # pairs.parquet, and what may be drawn beyond it
    rows: tuple[Ints, Ints]  # of the records of each candidate
    weights: Mapping[tuple[str, int], tuple[str, float]]  # by field and level: in words, in bits
    cases: Cases
    _versions: dict[str, str] = field(default_factory=dict, repr=False)

    @property
    def folder(self) -> Path:
        """Where the judgements are kept: the directory of the run."""
        return saved_in(self.run)

    def pairs_of(self, key: str) -> list[int]:
        """The candidates of a case, by its key: its number from 1, or a single pair's."""
        number = key.removeprefix(_PAIR)
        if number.isascii() and number.isdigit() and str(int(number[:18])) == number:
            place = int(number) - 1
            if key == number and 0 <= place < len(self.cases):
                return self.cases.pairs_of(place).tolist()
            if key != number and 0 <= place < len(self.candidates):
                return [place] if self.cases.of_row[place] < 0 else []
        return []

    def key_of(self, row: int) -> str:
        """The key of the case that a candidate belongs to."""
        case = int(self.cases.of_row[row])
        return f"{_PAIR}{row + 1}" if case < 0 else str(case + 1)

    def ids(self, row: int) -> Pair:
        """The ids of a candidate's records."""
        return self.candidates["id_a"][row].as_py(), self.candidates["id_b"][row].as_py()

    def find(self, pairs: Sequence[Pair]) -> list[int | None]:
        """The rows of pairs in the candidate table; None for a pair that is no candidate."""
        wanted = pa.table(
            {
                "id_a": pa.array([a for a, _ in pairs], self.candidates["id_a"].type),
                "id_b": pa.array([b for _, b in pairs], self.candidates["id_b"].type),
            }
        )
        near = pc.is_in(self.candidates["id_a"], value_set=wanted["id_a"].combine_chunks())
        rows = np.flatnonzero(near.to_numpy())
        found = self.candidates.select(["id_a", "id_b"]).take(rows).to_pylist()
        row_of = {(x["id_a"], x["id_b"]): row for x, row in zip(found, rows.tolist(), strict=True)}
        return [row_of.get(pair) for pair in pairs]

    def text(self, field: Field, side: int, row: int) -> str | None:
        """A record's value in a field; None if it is missing."""
        return self.records[side].text(field.columns[side], row)

    def values(self, side: int, candidate: int) -> list[str | None]:
        """What was compared of a candidate's record of A (0) or of B (1)."""
        row = int(self.rows[side][candidate])
        return [self.text(f, side, row) for f in self.fields]

    def version(self, key: str) -> str:
        """What a judgement belongs to: a digest of the pairs of a case and of their values."""
        if key not in self._versions:
            rows = self.pairs_of(key)
            seen = [[*self.ids(row), *map(self.values, (0, 1), (row, row))] for row in rows]
            text = json.dumps([[f.name for f in self.fields], seen])
            self._versions[key] = hashlib.sha256(text.encode()).hexdigest()[:16]
        return self._versions[key]


def material_of(
    run: Run, show: Sequence[str] = (), names: tuple[str, str] = ("a", "b")
) -> Material:
    """What there is to review of a saved run; reads its files again.

    Parameters
    ----------
    show
        Columns of both files to be seen beside the fields compared; COLUMN_A=COLUMN_B where their
        names differ.
    names
        What the two data sets are called in Splink, for the labels written for it.
    """
    if run.as_table("pairs") is None:
        raise InputError(
            f"{run.directory} has no link probabilities, so no case is worth more than another. "
            "Give the directory of a run made without --point."
        )
    fields, further = run.settings.fields, _further(run.settings, show)
    records = records_again(run, (*fields, *further))
    candidates = _with_reach(run)
    return Material(
        run=run,
        names=names,
        fields=fields,
        further=further,
        records=records,
        candidates=candidates,
        rows=(_rows(candidates["id_a"], records[0]), _rows(candidates["id_b"], records[1])),
        weights={
            (row["field"], row["level"]): (row["label"], row["match_weight"])
            for row in run.as_table("parameters").to_pylist()
        },
        cases=find_cases(candidates, run.table),
    )


def _with_reach(run: Run) -> pa.Table:
    """The candidates, and after them the pairs of the random sample's reach that are none."""
    candidates: pa.Table = run.as_table("pairs")
    if (reach := run.as_table("reach")) is not None:
        reach = reach.select(candidates.column_names)
        new = reach.filter(pa.array(~among(reach, candidates)))
        candidates = pa.concat_tables([candidates, new.cast(candidates.schema)])
    return candidates.combine_chunks()


def _further(settings: LinkSettings, show: Sequence[str]) -> list[Field]:
    """Blocking keys and columns asked for, as far as no field has them."""
    names = [n if isinstance(n, tuple) else (n, n) for n in settings.block]
    names += [(a, b or a) for a, _, b in (text.partition("=") for text in show)]
    seen = {f.columns for f in settings.fields}
    return [exact(a, columns=(a, b)) for a, b in dict.fromkeys(names) if ((a,), (b,)) not in seen]


def _rows(ids: pa.ChunkedArray, records: Records) -> Ints:
    """Where records are, by their ids."""
    found = records.rows_of(ids)
    if found.null_count:
        raise InputError("pairs.parquet names records that the files do not have. Link them again.")
    return found.to_numpy().astype(np.int64)
