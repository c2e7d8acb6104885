"""Which of a person's values stands for the person in a column: the rules of `keep`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bayeslink.comparing.dates import ALL_DAYS, read_date, tell_orders
from bayeslink.data.cell_texts import as_text
from bayeslink.data.read_options import ReadOptions
from bayeslink.data.records import read_records
from bayeslink.dedupe_settings import (
    FILES,
    LONGEST,
    MOST_FREQUENT,
    NEWEST,
    KeepRule,
    keep_rules,
)
from bayeslink.errors import InputError, NoColumnError, SettingsError
from bayeslink.pairs.source import Ints
from bayeslink.runs.inputs import set_aside_elsewhere

_DATES = 0.5  # share of the values of a column that must be dates, if it is to say what is newest
Keep = str | Mapping[str, str]


@dataclass(frozen=True, eq=False)
class People:
    """Records, and whose they are."""

    person: Ints  # of each record
    faces: Ints  # of each person, the record that represents it
    missing: Sequence[str]  # words that mean that there is no value
    names: tuple[str, ...] = ()  # of several files
    file: Ints | None = None  # of each record

    def rows(self, table: pa.Table, name: str, rule: KeepRule) -> Ints:
        """Of each person, the record whose value of a column stands for it.

        Ties go to the record that represents the person, then to the first value by text: so the
        order of the records does not matter.
        """
        texts = _texts(table[name], name, self.missing)
        if texts is None or texts.null_count == len(texts):  # a list, or bytes: as represented
            return self.faces
        rows = np.flatnonzero(texts.is_valid().to_numpy(zero_copy_only=False))
        coded, person = texts.take(pa.array(rows)).dictionary_encode(), self.person[rows]
        worth, rank = self._worth(table, rule, coded, rows), _ranks(coded)
        own = self.faces[person] == rows
        best = np.lexsort((rank, ~own, -worth, person))
        first = np.append(True, np.diff(person[best]) != 0)
        chosen = self.faces.copy()
        chosen[person[best[first]]] = rows[best[first]]
        return chosen

    def _worth(
        self, table: pa.Table, rule: KeepRule, coded: pa.DictionaryArray, rows: Ints
    ) -> Ints:
        """How good each value is by a rule, more being better."""
        code = coded.indices.to_numpy().astype(np.int64)
        if rule.kind == LONGEST:
            return pc.utf8_length(coded.dictionary).to_numpy().astype(np.int64)[code]
        if rule.kind == MOST_FREQUENT:
            key = self.person[rows] * (len(coded.dictionary) + 1) + code
            _, same, count = np.unique(key, return_inverse=True, return_counts=True)
            return count[same]
        if rule.kind == NEWEST:
            return self._dates(table, *rule.of)[rows]
        if rule.kind == FILES:
            assert self.file is not None
            place = [rule.of.index(n) if n in rule.of else len(rule.of) for n in self.names]
            return -np.array(place)[self.file[rows]]
        return np.zeros(len(rows), np.int64)

    def _dates(self, table: pa.Table, name: str) -> Ints:
        texts = _texts(table[name], name, self.missing)
        if texts is None:
            raise SettingsError(f"keep: {name!r} is no column of dates. Name one: newest:COLUMN.")
        files = self.file if self.file is not None else np.zeros(len(self.person), np.int64)
        days = np.full(len(files), -1, np.int64)
        for k in np.unique(files):
            own = np.flatnonzero(files == k)
            days[own] = days_of(texts.take(pa.array(own)), name)
        return _later(days, texts)


def check_keep(
    keep: Keep, columns: Sequence[str], files: Sequence[str] = (), id: Any = None
) -> None:
    """Refuse rules on columns or files that are not there."""
    everywhere, by_column = keep_rules(keep)
    for name in by_column:
        if name == id:
            raise SettingsError(
                f"keep names the id column {name!r}, which has the id of the record that "
                "represents the person. Leave it out."
            )
    for name in columns_named(keep):
        if name not in columns:
            raise SettingsError(
                f"keep names the column {name!r}, which is not there. The columns are: "
                f"{', '.join(columns)}."
            )
    for rule in (everywhere, *by_column.values()):
        if rule.kind != FILES:
            continue
        if not files:
            raise SettingsError(
                f"keep says {FILES}:{','.join(rule.of)}, and there is one file. That rule is for "
                "several files (link-many); for one: newest:COLUMN, longest or most_frequent."
            )
        if unknown := [name for name in rule.of if name not in files]:
            raise SettingsError(
                f"keep names the file {unknown[0]!r}, and the files are {', '.join(files)}."
            )


def columns_named(keep: Keep) -> list[str]:
    """The columns that rules name: those they are for, and those of dates."""
    _, by_column = keep_rules(keep)
    return [*dict.fromkeys([*by_column, *date_columns(keep)])]


def date_columns(keep: Keep) -> list[str]:
    """The columns by whose dates rules tell what is newest."""
    everywhere, by_column = keep_rules(keep)
    used = [rule.of[0] for rule in (everywhere, *by_column.values()) if rule.kind == NEWEST]
    return [*dict.fromkeys(used)]


def check_keep_of_file(source: Any, options: ReadOptions, keep: Keep, id: Any) -> None:
    """Refuse rules that a file cannot follow, before any work."""
    named = columns_named(keep)
    check_keep(keep, named, id=id)
    if not named:
        return
    try:
        with set_aside_elsewhere(options) as here:
            records = read_records(source, id=None, columns=named, options=here)
    except NoColumnError as error:
        raise SettingsError(f"keep names a column that is not there. {error}") from None
    for name in date_columns(keep):
        days_of(records.columns[name], name)


def days_of(texts: pa.Array, name: str) -> Ints:
    """Dates as numbers YYYYMMDD, -1 for none; refused where a column does not hold them."""
    coded = texts.dictionary_encode()
    values = coded.dictionary.to_pylist()
    code = coded.indices.drop_null().to_numpy()
    times = np.bincount(code, minlength=len(values))
    counted = Counter(dict(zip(values, times.tolist(), strict=True)))
    (order, _), _ = tell_orders([counted, counted], [None, None], ALL_DAYS)
    if order is None:
        raise SettingsError(
            f"keep: which number of the dates in {name!r} is the day and which is the month cannot "
            "be told from them. Write them as 1980-02-13, or take another rule."
        )
    read = [read_date(text, order, None, ALL_DAYS) for text in values]
    days = np.array([-1 if day is None else day for day in read], np.int64)
    if len(code) and (days[code] >= 0).mean() < _DATES:
        raise SettingsError(
            f"keep: {(days[code] < 0).sum():,} of the {len(code):,} values of {name!r} are no "
            "dates. Name a column of dates, as newest:COLUMN."
        )
    found = np.full(len(texts), -1, np.int64)
    found[texts.is_valid().to_numpy(zero_copy_only=False)] = days[code]
    return found


def _later(days: Ints, texts: pa.Array) -> Ints:
    """Numbers in the order of dates; within a day by the text, for a time that is behind it."""
    at = np.flatnonzero(days >= 0)
    found = np.full(len(days), -1, np.int64)
    found[at] = days[at] * (len(texts) + 1) + _ranks(texts.take(pa.array(at)).dictionary_encode())
    return found


def _ranks(coded: pa.DictionaryArray) -> Ints:
    """Of each text, its place among them by the alphabet."""
    ranks = pc.rank(coded.dictionary, tiebreaker="first").to_numpy().astype(np.int64)
    return ranks[coded.indices.to_numpy()]


def _texts(column: pa.ChunkedArray, name: str, missing: Sequence[str]) -> pa.Array | None:
    """A column as text, null where nothing is said; None of what has no text form."""
    try:
        texts = as_text(column, name, "the file")
    except InputError:
        return None
    none = pc.is_in(pc.utf8_trim_whitespace(texts), value_set=pa.array([*missing, ""], texts.type))
    return pc.if_else(none, pa.scalar(None, texts.type), texts)
