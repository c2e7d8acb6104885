"""What is in one file or in two, column by column, before anything is linked."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bayeslink.data.locations import require_there
from bayeslink.data.read_options import ReadOptions
from bayeslink.data.records import Records, read_records
from bayeslink.engines.compare import read_options
from bayeslink.suggesting.births import with_events
from bayeslink.suggesting.pairing import pair_columns
from bayeslink.suggesting.profiles import SAMPLE, Profile, profile_columns, sample_rows

_MOST = 3  # shapes, or values, of a column
_LONGEST = 28  # characters of a shape
_RUN = 3  # letters of one case that are shown one by one
_MANY = 12  # digits

Frequent = tuple[tuple[str, float], ...]  # most frequent first, each with its share of the values


@dataclass(frozen=True, slots=True)
class ColumnProfile:
    """One column of one file.

    Attributes
    ----------
    name
        As in the file.
    holds
        What it looks like: "given name", "date (%d/%m/%Y)", "category", …
    complete
        Share of the records with a value; missing words are none.
    distinct
        Different values, spelt as they are.
    chance
        Probability that two records of the file have the same value; 1 where that tells nothing.
    bits
        How much agreement can tell, −log2 of `chance`.
    missing
        Words and codes that look as if they mean missing, each with its share of the records.
    shapes
        Most frequent shapes: 9 a digit, A and a letters, … letters that go on.
    values
        Most frequent values, if they were asked for.
    partner
        The column of the other file that holds the same thing, if there is one.
    """

    name: str
    holds: str
    complete: float
    distinct: int
    chance: float
    bits: float
    missing: Frequent
    shapes: Frequent
    values: Frequent
    partner: str | None


@dataclass(frozen=True, slots=True)
class FileProfile:
    """The columns of one file."""

    label: str
    n_records: int
    sampled: bool  # whether shapes, kinds and chances are of a sample of rows
    columns: tuple[ColumnProfile, ...]

    def missing_in_words(self) -> Iterator[str]:
        """A sentence for each column with words that look as if they mean missing."""
        for column in self.columns:
            if column.missing:
                told = ", ".join(f"{word!r} ({in_percent(p)})" for word, p in column.missing)
                yield f"Looks missing in {column.name}: {told}."


@dataclass(frozen=True, slots=True)
class FileProfiles:
    """Profiles of one file or of two, made by `bl.profile`."""

    files: tuple[FileProfile, ...]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    __repr__ = __str__

    def lines(self) -> Iterator[str]:
        """A table for each file."""
        for side, file in enumerate(self.files):
            yield from [""] * (side > 0)
            yield f"{file.label}: {file.n_records:,} records, {len(file.columns)} columns"
            yield from _aligned(self.heads(side), [self.cells(side, c) for c in file.columns])
            yield from file.missing_in_words()
            if file.sampled:
                yield f"Shapes, kinds and chances are of a sample of {SAMPLE:,} records."

    def heads(self, side: int) -> list[str]:
        """Names of the columns of a table."""
        most = "most frequent" if self._with_values(side) else "most frequent shapes"
        other = [f"in {'BA'[side]}"] * (len(self.files) > 1)
        return ["column", "holds", "filled", "distinct", "alike by chance", *other, most]

    def cells(self, side: int, c: ColumnProfile) -> list[str]:
        """A row of the table."""
        found = c.values if self._with_values(side) else c.shapes
        return [
            c.name,
            c.holds,
            in_percent(c.complete),
            f"{c.distinct:,}",
            by_chance(c.chance) if c.distinct else "–",
            *([c.partner or "–"] if len(self.files) > 1 else []),
            ", ".join(f"{what} ({in_percent(share)})" for what, share in found),
        ]

    def as_dict(self) -> dict[str, Any]:
        """The profiles as plain data."""
        return {"files": [asdict(file) for file in self.files]}

    def save(self, path: str | Path, *, force: bool = False) -> Path:
        """Write them as one HTML file, over one that is there only if told so; its path."""
        from bayeslink.suggesting.profile_page import write

        return write(self, path, force=force)

    def _repr_html_(self) -> str:
        from bayeslink.suggesting.profile_page import in_notebook

        return in_notebook(self)

    def _with_values(self, side: int) -> bool:
        return any(column.values for column in self.files[side].columns)


def profile(
    a: Any,
    b: Any = None,
    *,
    values: bool = False,
    missing: Sequence[str] | None = None,
    read: ReadOptions | tuple[ReadOptions, ReadOptions] | None = None,
) -> FileProfiles:
    """Tell what is in a file, or in two that are to be linked: for each column what it holds, how
    complete it is, how well it tells people apart, and what looks like a missing word.

    Shapes stand for values, so that the profile can be passed on: "99/99/9999" for a date.

    Parameters
    ----------
    a, b
        As `compare` takes them; `b` may be left out.
    values
        Show the most frequent values instead of their shapes.
    missing, read
        As `compare` takes them.
    """
    sources = [a] if b is None else [a, b]
    options = read_options(read, missing)
    for name, source in zip("AB", sources, strict=False):
        require_there(source, name)
    records = [
        read_records(source, id=None, columns=None, options=options[side], side="AB"[side])
        for side, source in enumerate(sources)
    ]
    profiles = [with_events([p for p in profile_columns(side) if p.name]) for side in records]
    partners = _partners(records, profiles)
    return FileProfiles(
        tuple(
            FileProfile(
                label=of.label,
                n_records=len(of),
                sampled=len(sample_rows(len(of))) < len(of),
                columns=tuple(
                    _column(p, of.columns[p.name], partners[side].get(p.name), values)
                    for p in profiles[side]
                ),
            )
            for side, of in enumerate(records)
        )
    )


def _partners(
    records: Sequence[Records], profiles: Sequence[Sequence[Profile]]
) -> list[dict[str, str]]:
    """For each column of a file, those of the other one that hold the same thing."""
    found: list[dict[str, str]] = [{}, {}]
    if len(records) == 2:
        sampled = [len(sample_rows(len(side))) / max(1, len(side)) for side in records]
        for pair in pair_columns(profiles[0], profiles[1], (sampled[0], sampled[1])):
            for side, columns in enumerate(pair.all_columns):
                found[side].update((c, pair.columns[1 - side]) for c in columns)
    return found


def _column(p: Profile, column: pa.Array, partner: str | None, values: bool) -> ColumnProfile:
    trimmed = pc.utf8_trim_whitespace(column)
    words = pa.array([*p.missing, *p.fillers], trimmed.type)
    none = pc.is_in(trimmed, value_set=words)
    rest = pc.drop_null(trimmed.filter(pc.invert(none)))
    counts = {
        row["values"]: row["counts"] for row in pc.value_counts(trimmed.filter(none)).to_pylist()
    }
    n = max(1, len(column))
    return ColumnProfile(
        name=p.name,
        holds=_holds(p),
        complete=len(rest) / n,
        distinct=pc.count_distinct(rest).as_py(),
        chance=p.chance,
        bits=-math.log2(p.chance),
        missing=tuple((w, counts[w] / n) for w in sorted(counts, key=lambda w: (-counts[w], w))),
        shapes=_frequent(map(shape_of, filter(None, p.cells))),
        values=_frequent(filter(None, p.cells)) if values else (),
        partner=partner,
    )


def _holds(p: Profile) -> str:
    if p.numbered:
        return "row numbers"
    if p.dates and p.dates.formats:
        forms = " or ".join(p.dates.formats[:2])
        return f"{'date of an event' if p.event else 'date'} ({forms})"
    return p.kind + (", one for each record" if p.unique and p.chance < 1 else "")


def _frequent(texts: Iterator[str]) -> Frequent:
    found = Counter(texts)
    ranked = sorted(found.items(), key=lambda item: (-item[1], item[0]))[:_MOST]
    return tuple((text, n / found.total()) for text, n in ranked)


def shape_of(text: str) -> str:
    """What a value looks like, without what it says: "SW1 2AB" is "AA9 9AA", "Anna" is "Aa…"."""
    shape = ""
    for sign, run in groupby(map(_sign, text)):
        n, most = len(list(run)), _MANY if sign == "9" else _RUN if sign == "A" else 0
        shape += (sign * n if n <= most else f"{sign}…") if sign in "9Aa" else sign * n
    return shape if len(shape) <= _LONGEST else f"{shape[:_LONGEST]}…"


def _sign(character: str) -> str:
    if character.isdigit():
        return "9"
    if character.isalpha():
        return "a" if character.islower() else "A"
    return " " if character.isspace() else character


def in_percent(share: float) -> str:
    """A share as a percentage; not 0 or 100 % unless it is."""
    if 0 < share < 0.005:
        return "< 1 %"
    return "> 99 %" if 0.995 < share < 1 else f"{100 * share:.0f} %"


def by_chance(chance: float) -> str:
    """How often two records agree by chance."""
    return (
        "always" if chance >= 1 else f"1 in {max(1.01, 1 / chance):,.{0 if chance < 0.1 else 1}f}"
    )


def _aligned(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Rows of a table as text: numbers to the right, the last column as long as it is."""
    right = [head in ("filled", "distinct", "alike by chance") for head in heads]
    width = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    for row in (heads, *rows):
        cells = zip(row, width, right, strict=True)
        yield "  ".join(c.rjust(w) if r else c.ljust(w) for c, w, r in cells).rstrip()
