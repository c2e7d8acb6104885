"""What records hold in the fields that were compared, from the input files of a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bayeslink.comparing.fields import Field
from bayeslink.data.records import Records

MISSING = "–"
Cells = dict[str, tuple[str, str]]  # of two records, by field
Values = Callable[[Sequence[tuple[str, str]]], list[Cells]]  # of pairs of records, by their ids


def values_of(records: Sequence[Records], fields: Sequence[Field]) -> Values:
    """A function that looks up the cells of pairs."""

    def values(wanted: Sequence[tuple[str, str]]) -> list[Cells]:
        rows = [
            side.rows_of(list(ids)).to_pylist()
            for side, ids in zip(records, zip(*wanted, strict=True), strict=True)
        ]
        return [
            {
                f.name: (
                    records[0].text(f.columns[0], a) or MISSING,
                    records[1].text(f.columns[1], b) or MISSING,
                )
                for f in fields
            }
            for a, b in zip(*rows, strict=True)
        ]

    return values
