"""Two files in, or one; a proposal out: fields, ids, missing codes, a reason for each column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from html import escape
from typing import Any

from bayeslink.comparing.fields import Field
from bayeslink.data.headers import require_columns
from bayeslink.data.locations import require_there
from bayeslink.data.read_options import ReadOptions
from bayeslink.data.records import Records, read_records, repeats
from bayeslink.engines.compare import read_options
from bayeslink.engines.input_checks import repeated_records
from bayeslink.engines.same_input import refuse_same_records, refuse_same_source
from bayeslink.errors import InputError
from bayeslink.notebook_html import html_table
from bayeslink.plain import plain
from bayeslink.settings import Ids
from bayeslink.suggesting.births import with_events
from bayeslink.suggesting.column_names import says_id
from bayeslink.suggesting.column_pairs import ColumnPair
from bayeslink.suggesting.grading import Grade, grade
from bayeslink.suggesting.one_file import propose_for
from bayeslink.suggesting.pairing import pair_columns
from bayeslink.suggesting.partners import refuse_tables_of_ids, without_partner
from bayeslink.suggesting.profiles import Profile, profile_columns, sample_rows
from bayeslink.suggesting.proposing import propose, reason, why_not
from bayeslink.suggesting.relations import (
    derived,
    follows_from,
    id_column,
    ids_among,
    is_shared_key,
)
from bayeslink.suggesting.wording import (
    SHOWN,
    LeftOut,
    column_names,
    columns_in_words,
    field_in_words,
    ids_in_words,
    left_out_in_words,
    settings_in_words,
    why_alone,
)

_REMARKS = 4  # lines of them


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What to compare in two files, or within one, and why. Made by `suggest`.

    `bl.link(a, b, s.fields, id=s.id, read=s.read)` is the linkage that it proposes.
    """

    fields: tuple[Field, ...]
    reasons: tuple[str, ...]  # of each field
    id: Ids  # of both files, or of A and of B; None: rows are numbered
    read: tuple[ReadOptions, ReadOptions]  # as given, with the missing words found
    left_out: tuple[LeftOut, ...]
    notes: tuple[str, ...]
    warnings: tuple[str, ...]  # for the run, too: ids that could not be used
    grade: Grade
    labels: tuple[str, ...]  # of both files, or of the one
    n_records: tuple[int, ...]

    @property
    def missing(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Words that count as missing in A and in B, beside empty cells."""
        a, b = (tuple(options.missing[1:]) for options in self.read)
        return a, b

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> Iterator[str]:
        """The proposal in fewer than ten lines, what needs attention first."""
        yield self._looked_at()
        yield f"Compared: {', '.join(map(field_in_words, self.fields))}."
        if self.left_out:
            yield self._not_compared()
        remarks = [f"Note: {note}" for note in (*self.warnings, *self.notes)]
        yield from remarks[:_REMARKS]
        if len(remarks) > _REMARKS:
            yield f"And {len(remarks) - _REMARKS} more notes."
        yield f"These fields are {self.grade}"

    def _looked_at(self) -> str:
        files = zip(self.labels, self.n_records, strict=True)
        looked = " and ".join(f"{label} ({n:,} records)" for label, n in files)
        return f"Looked at {looked}. Ids: {ids_in_words(self.id)}."

    def explained(self) -> Iterator[str]:
        """The proposal with a line for each field, and a reason for each column left out."""
        yield self._looked_at()
        yield "Compared:"
        for field, why in zip(self.fields, self.reasons, strict=True):
            yield f"  {columns_in_words(field)}: {field.kind}{settings_in_words(field)}; {why}"
        if any(self.missing):
            words = dict.fromkeys(word for side in self.missing for word in side)
            yield f"Missing: {', '.join(map(repr, words))}."
        if self.left_out:
            yield f"Left out: {left_out_in_words(self.left_out)}."
        yield from (f"Note: {note}" for note in (*self.warnings, *self.notes))
        yield f"These fields are {self.grade}"

    def in_two_lines(self) -> Iterator[str]:
        """What is compared and what is not, for whoever reads results."""
        fields = ", ".join(columns_in_words(field) for field in self.fields)
        yield f"Compared: {fields}. Ids: {ids_in_words(self.id)}."
        if self.left_out:
            yield f"{self._not_compared()} To see why: bayeslink init --explain."
        yield from (f"Note: {note}" for note in self.notes[:1])
        if self.grade.word != "good":
            yield f"These fields are {self.grade}"

    def _not_compared(self) -> str:
        columns = [*dict.fromkeys(left.column for left in self.left_out)]
        more = f" and {len(columns) - SHOWN} more" if len(columns) > SHOWN else ""
        return f"Left out: {', '.join(columns[:SHOWN])}{more}."

    def in_one_line(self, *, many: bool = False) -> str:
        """The fields, for whoever did not choose them; `many`: of files that stand together."""
        fields = ", ".join(map(field_in_words, self.fields))
        if many:
            return (
                f"the fields were chosen from the files: {fields}. They are {self.grade} "
                "To change them: --on, or link-many.toml of the run."
            )
        return (
            f"the fields were chosen from the file{'s'[: len(self.labels) - 1]}: {fields}. They "
            f"are {self.grade} "
            "To see why: bayeslink init --explain (bl.suggest)."
        )

    def as_dict(self) -> dict[str, Any]:
        """The proposal as plain data."""
        return {
            "fields": [dict(field.settings) for field in self.fields],
            "reasons": list(self.reasons),
            "id": plain(self.id),
            "missing": dict(zip("ab", map(list, self.missing), strict=True)),
            "left_out": [asdict(left) for left in self.left_out],
            "notes": [*self.warnings, *self.notes],
            "grade": asdict(self.grade),
        }

    def to_toml(self, a_path: Any, b_path: Any = None, folder: Any = None) -> str:
        """A link.toml with a reason beside each field; its paths lead from `folder`, if given.

        Of one file, a dedupe.toml.
        """
        from bayeslink.suggesting.draft import draft_toml

        return draft_toml(self, a_path, b_path, folder)

    def _repr_html_(self) -> str:
        fields = [
            (columns_in_words(f), f"{f.kind}{settings_in_words(f)}", why)
            for f, why in zip(self.fields, self.reasons, strict=True)
        ]
        others = [(left.column, left.file, left.reason) for left in self.left_out]
        parts = [html_table(self._looked_at(), ("compared", "as", "why"), fields)]
        if others:
            parts.append(html_table("", ("left out", "of", "why"), others))
        notes = [f"Note: {note}" for note in (*self.warnings, *self.notes)]
        said = [*notes, f"These fields are {self.grade}"]
        return "".join([*parts, *(f"<p>{escape(line)}</p>" for line in said)])


def suggest(
    a: Any,
    b: Any = None,
    *,
    id: Ids = None,
    missing: Sequence[str] | None = None,
    read: ReadOptions | tuple[ReadOptions, ReadOptions] | None = None,
) -> Suggestion:
    """Look at two files, or at one, and propose what to compare, how, and what to leave out.

    Columns are paired by name and by values in common; what they hold is told by their values
    first and by their names second, in a sample of rows that is the same each time.

    Parameters
    ----------
    a, b
        As `compare` takes them; without `b`, what `dedupe` compares within `a`.
    id
        The id column, as one name or (name in A, name in B); found unless given.
    missing, read
        As `compare` takes them; missing words that are found are added.
    """
    options = read_options(read, missing)
    if b is None:
        return _of_one_file(a, id, options)
    for name, source in zip("AB", (a, b), strict=True):
        require_there(source, name)
    refuse_same_source(a, b, options)
    records = [
        read_records(source, id=None, columns=None, options=options[side], side="AB"[side])
        for side, source in enumerate((a, b))
    ]
    refuse_same_records(records, options)
    profiles = [profile_columns(side) for side in records]
    given = (id, id) if id is None or isinstance(id, str) else tuple(id)
    for side, column in enumerate(given):
        if column is not None:
            where = f"input {'AB'[side]}, {records[side].label}"
            require_columns(list(records[side].columns), [column], where)
    refuse_tables_of_ids(records, profiles)
    return _Work(records, profiles, options, (given[0], given[1])).result()


def _of_one_file(a: Any, id: Ids, options: tuple[ReadOptions, ReadOptions]) -> Suggestion:
    found = propose_for(a, id[0] if isinstance(id, tuple) else id, options[0])
    one = replace(options[0], missing=(*options[0].missing, *found.missing))
    return Suggestion(
        fields=found.fields,
        reasons=found.reasons,
        id=found.id,
        read=(one, one),
        left_out=tuple(found.left_out),
        notes=tuple(found.notes),
        warnings=tuple(found.warnings),
        grade=found.grade,
        labels=(found.label,),
        n_records=(found.n_records,),
    )


def find_ids(
    a: Any,
    b: Any,
    read: ReadOptions | tuple[ReadOptions, ReadOptions] | None = None,
    missing: Sequence[str] | None = None,
) -> tuple[Ids, tuple[str, ...]]:
    """The id columns of two files, as `suggest` finds them, and a remark on them."""
    options = read_options(read, missing)
    records = [
        read_records(source, id=None, columns=None, options=options[side], side="AB"[side])
        for side, source in enumerate((a, b))
    ]
    work = _Work(records, [profile_columns(side) for side in records], options, (None, None))
    ids: Ids = work.ids[0] if work.ids[0] == work.ids[1] else work.ids
    said = (
        f"there is no column 'id' in both files. Ids: {ids_in_words(ids)}. If that is wrong, name "
        "the column with --id (id=), or number the rows with --no-id (id=None)."
    )
    return ids, (said, *work.id_warnings())


class _Work:
    """The steps from profiles to a proposal, each of which may leave columns out."""

    def __init__(
        self,
        records: Sequence[Records],
        profiles: Sequence[Sequence[Profile]],
        options: tuple[ReadOptions, ReadOptions],
        given: tuple[str | None, str | None],
    ) -> None:
        self.records, self.options = records, options
        self.profiles = [with_events(side) for side in profiles]
        self.n = (len(records[0]), len(records[1]))
        self.left_out: list[LeftOut] = []
        self.notes: list[str] = []
        sampled = [len(sample_rows(n)) / n for n in self.n]
        known = [
            [p for p in side if p.name and p.name != name]
            for side, name in zip(self.profiles, given, strict=True)
        ]
        pairs = pair_columns(known[0], known[1], (sampled[0], sampled[1]))
        pairs, self.ids = self._without_ids(pairs, given)
        self.pairs = self._worth_comparing(pairs)

    def id_warnings(self) -> Iterator[str]:
        """Columns called ids that name some records twice, where no other names them."""
        for side, profiles in enumerate(self.profiles):
            for p in profiles:
                if self.ids[side] is None and p.name and says_id(p.name) and p.thing is None:
                    n, rows = repeats(self.records[side].columns[p.name])
                    if n and n < 0.5 * self.n[side]:
                        places = " and ".join(map(self.records[side].place, rows))
                        yield (
                            f"column {p.name!r} of {'AB'[side]} repeats ids: {n:,} records have "
                            f"that of an earlier one, first on {places}. The rows are numbered "
                            "instead. Remove the repeats, or name another column with --id (id=)."
                        )

    def _without_ids(
        self, pairs: list[ColumnPair], given: tuple[str | None, str | None]
    ) -> tuple[list[ColumnPair], tuple[str | None, str | None]]:
        """Ids of records taken out of what is compared, unless both files share them."""
        not_compared, keys = [], []
        for pair in ids_among(pairs):
            if is_shared_key(pair, pairs):
                keys.append(pair)
            else:
                not_compared.append(pair)
        ids: list[str | None] = []
        for side in (0, 1):
            shared = {pair.sides[side][0].name for pair in keys}
            ids.append(given[side] or id_column(self.profiles[side], shared))
        for pair in not_compared:
            why = "an id that the files do not share"
            if pair.columns == (ids[0], ids[1]):
                why = "the id of the records"
            self._leave_out(pair, why)
        for pair in keys:
            self.notes.append(
                f"the files share {_both(pair)}, a number of their own for each person: records "
                "with the same one agree elsewhere, too. Is a linkage needed?"
            )
        return [pair for pair in pairs if pair not in not_compared], (ids[0], ids[1])

    def _worth_comparing(self, pairs: list[ColumnPair]) -> list[ColumnPair]:
        kept = []
        for pair in pairs:
            if why := why_not(pair, self.n):
                self._leave_out(pair, why)
            else:
                kept.append(pair)
        repeated = derived(kept)
        for number, why in repeated.items():
            self._leave_out(kept[number], why)
        return [pair for number, pair in enumerate(kept) if number not in repeated]

    def _leave_out(self, pair: ColumnPair, why: str) -> None:
        for side, profiles in enumerate(pair.sides):
            columns = [column for profile in profiles for column in profile.columns]
            self.left_out += [LeftOut("AB"[side], column, why) for column in columns]

    def _where_headers_are(self) -> str:
        """A file of one column mostly has a title above its header, or another separator."""
        alone = [name for name, found in zip("AB", self.profiles, strict=True) if len(found) == 1]
        if not alone:
            return ""
        return (
            f" {' and '.join(alone)} has one column only: if its header is further down, say "
            "--skip-lines; if its cells are separated by something else, --delimiter."
        )

    def result(self) -> Suggestion:
        if not self.pairs:
            a, b = map(column_names, self.profiles)
            raise InputError(
                "no two columns of A and B hold the same thing, by name or by values in common. "
                f"A has {a}; B has {b}. Name the columns to compare: "
                f"--on COLUMN_A=COLUMN_B:COMPARISON.{self._where_headers_are()}"
            )
        doubts = self._doubts()
        self._leave_out_the_rest()
        self._remark()
        fields = [propose(pair) for pair in self.pairs]
        read = [
            replace(
                options,
                missing=(*options.missing, *sorted({w for p in profiles for w in p.missing})),
            )
            for options, profiles in zip(self.options, self.profiles, strict=True)
        ]
        return Suggestion(
            fields=tuple(_named_apart(fields, self.pairs)),
            reasons=tuple(reason(pair) for pair in self.pairs),
            id=self.ids[0] if self.ids[0] == self.ids[1] else self.ids,
            read=(read[0], read[1]),
            left_out=tuple(self.left_out),
            notes=tuple(self.notes),
            warnings=(*self.id_warnings(), *doubts),
            grade=grade(self.pairs, self.n, in_doubt=bool(doubts)),
            labels=(self.records[0].label, self.records[1].label),
            n_records=self.n,
        )

    def _doubts(self) -> tuple[str, ...]:
        """Columns that could be the same thing, and are not compared."""
        told: list[set[str | None]] = [
            {
                self.ids[side],
                *(left.column for left in self.left_out if left.file == file),
                *(c for pair in self.pairs for c in pair.all_columns[side]),
            }
            for side, file in enumerate("AB")
        ]
        left = [
            [p for p in side if p.name and p.name not in told[k]]
            for k, side in enumerate(self.profiles)
        ]
        return tuple(without_partner(left[0], left[1]))

    def _leave_out_the_rest(self) -> None:
        """Columns without a partner, and those that could not be used at all."""
        for side, profiles in enumerate(self.profiles):
            told = {left.column for left in self.left_out if left.file == "AB"[side]}
            told |= {column for pair in self.pairs for column in pair.all_columns[side]}
            for p in profiles:
                if p.name not in told:
                    why = why_alone(p, "BA"[side], is_id=p.name == self.ids[side])
                    self.left_out.append(LeftOut("AB"[side], p.name or "(unnamed)", why))
            self.left_out += [
                LeftOut("AB"[side], name, "has no text form")
                for name in self.records[side].unusable
            ]

    def _remark(self) -> None:
        for effect, cause in follows_from(self.pairs):
            self.notes.append(
                f"{effect.columns[0]} follows from {cause.columns[0]}: they agree together, which "
                "the model allows for."
            )
        for pair in self.pairs:
            for p in (*pair.a, *pair.b):
                if p.dates and p.dates.ambiguous:
                    self.notes.append(
                        f"day and month cannot be told apart in {p.name}: check its format."
                    )
        for side, n in enumerate(self.n):
            columns = [p.keys for pair in self.pairs for p in pair.sides[side]]
            repeated = repeated_records(columns)
            in_all = repeated * (n / len(columns[0])) ** 2  # both of two must be in the sample
            if repeated > 5 and in_all > 0.01 * n:
                self.notes.append(
                    f"about {in_all:,.0f} records of {'AB'[side]} equal another one in all that is "
                    "compared. If a person is there twice, keep one record: a linkage is "
                    "one-to-one."
                )


def _named_apart(fields: Sequence[Field], pairs: Sequence[ColumnPair]) -> Iterator[Field]:
    """Fields under different names, where the name of one is that of another."""
    taken: set[str] = set()
    for field, pair in zip(fields, pairs, strict=True):
        if field.name in taken:
            field = propose(pair, name=" = ".join(pair.columns))
        taken.add(field.name)
        yield field


def _both(pair: ColumnPair) -> str:
    a, b = pair.columns
    return a if a == b else f"{a} = {b}"
