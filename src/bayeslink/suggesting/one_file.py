"""One file in, a proposal out: what to compare between its own records.

Nothing has to be paired: each column holds the same thing as itself. What is left to tell is which
columns people have, and which name records or say what happened when a record was made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from bayeslink.comparing.fields import Field, exact
from bayeslink.data.headers import require_columns
from bayeslink.data.locations import require_there
from bayeslink.data.read_options import ReadOptions
from bayeslink.data.records import Records, read_records, repeats
from bayeslink.engines.tie_keys import hash_texts
from bayeslink.errors import InputError
from bayeslink.pairs.hashing import mix64
from bayeslink.suggesting.births import with_events
from bayeslink.suggesting.column_names import of_whom, says_id, words
from bayeslink.suggesting.column_pairs import ColumnPair
from bayeslink.suggesting.grading import Grade, grade
from bayeslink.suggesting.likely_pairs import LikelyPairs
from bayeslink.suggesting.profiles import Profile, profile_columns
from bayeslink.suggesting.proposing import propose, reason, why_not
from bayeslink.suggesting.relations import (
    agrees_where_shared,
    derived,
    follows_from,
    id_column,
    ids_among,
)
from bayeslink.suggesting.units import as_places
from bayeslink.suggesting.wording import LeftOut, column_names

_OF_CLUSTERS = ({"entity", "id"}, {"cluster", "id"}, {"cluster"})  # words of such columns' names
_EACH = "names records, not people: hardly two share it"


@dataclass(slots=True)
class Proposal:
    """What was found in one file."""

    fields: tuple[Field, ...]
    reasons: tuple[str, ...]
    id: str | None
    missing: tuple[str, ...]
    left_out: list[LeftOut] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    grade: Grade = field(default_factory=lambda: Grade("poor", 0.0, 0.0, "one field"))
    label: str = ""
    n_records: int = 0


def propose_for(source: Any, given: str | None, options: ReadOptions) -> Proposal:
    """Look at a file; `given` is its id column, if that is known."""
    require_there(source, "A")
    records = read_records(source, id=None, columns=None, options=options, side="A")
    if given is not None:
        require_columns(list(records.columns), [given], f"input A, {records.label}")
    profiles = with_events(profile_columns(_in_order_of_content(records)))
    found = Proposal((), (), given or id_column(profiles, set()), (), label=records.label)
    found.missing = tuple(sorted({word for p in profiles for word in p.missing}))
    found.n_records = len(records)
    if given is None and found.id is None:
        found.warnings += _repeated_ids(records, profiles)
    pairs = _compared(found, [p for p in profiles if p.name])
    found.fields = tuple(map(propose, pairs))
    found.reasons = tuple(map(reason, pairs))
    if pairs:
        found.grade = grade(pairs, (len(records), len(records)))
        _remark(found, pairs)
    elif len(records) == 1 and (name := _first(profiles, found.id)):
        found.fields, found.reasons = (exact(name),), ("there is one record only",)
    else:
        raise InputError(
            f"no column of {records.label} tells people apart: it has {column_names(profiles)}. "
            "Name what to compare: --on COLUMN:COMPARISON. If its header is further down, say "
            "--skip-lines; if its cells are separated by something else, --delimiter."
        )
    found.left_out += [LeftOut("A", name, "has no text form") for name in records.unusable]
    return found


def id_of(source: Any, options: ReadOptions) -> str | None:
    """The id column of a file, as a proposal has it."""
    return id_among(read_records(source, id=None, columns=None, options=options, side="A"))


def id_among(records: Records) -> str | None:
    """The id column of records that were read."""
    return id_column(profile_columns(records), set())


def _in_order_of_content(records: Records) -> Records:
    """The same records in an order that does not hang on that of the rows."""
    key = np.zeros(len(records), np.uint64)
    for name in sorted(records.columns):
        key = mix64(key ^ hash_texts(records.columns[name]))
    return records.take(pa.array(np.argsort(key, kind="stable")))


def _first(profiles: Sequence[Profile], ids: str | None) -> str | None:
    return next((p.name for p in profiles if p.name not in ("", ids) and p.kind != "empty"), None)


def _repeated_ids(records: Records, profiles: Sequence[Profile]) -> list[str]:
    """Columns called ids that name some records twice, where no other names them."""
    found = []
    for p in profiles:
        if p.name and says_id(p.name) and p.thing is None:
            n, rows = repeats(records.columns[p.name])
            if n:
                places = " and ".join(map(records.place, rows))
                found.append(
                    f"column {p.name!r} repeats ids: {n:,} records have that of an earlier one, "
                    f"first on {places}. The rows are numbered instead."
                )
    return found


def _compared(found: Proposal, profiles: Sequence[Profile]) -> list[ColumnPair]:
    """Columns to compare; the others are told of in `found`."""
    likely = _likely(profiles)
    pairs = []
    for pair in as_places([_with_itself(p) for p in profiles if p.kind != "empty"]):
        if why := _why_left_out(pair, found, likely):
            found.left_out += [LeftOut("A", column, why) for column in pair.all_columns[0]]
        else:
            pairs.append(pair)
    found.left_out += [LeftOut("A", p.name, "empty") for p in profiles if p.kind == "empty"]
    pairs = _without_ids(found, pairs)
    repeated = derived(pairs)
    for number, why in repeated.items():
        found.left_out.append(LeftOut("A", pairs[number].columns[0], why))
    return [pair for number, pair in enumerate(pairs) if number not in repeated]


def _with_itself(p: Profile) -> ColumnPair:
    return ColumnPair((p,), (p,), p.kind, 1.0, "")


def _why_left_out(pair: ColumnPair, found: Proposal, likely: LikelyPairs | None) -> str | None:
    (p, *_) = pair.a
    if p.name == found.id:
        return "the id of the records"
    if {*words(p.name)} in _OF_CLUSTERS:
        return "says who is who already"
    if p.kind == "constant":
        return "the same in all records"
    if why := why_not(pair, (found.n_records, found.n_records)):
        return why
    if likely is None or len(pair.a) > 1:
        return None
    agreement = likely.agreement(p, p)
    if p.event and agreement.apart:
        return "date of an event: it differs between records that are alike else"
    return None


def _without_ids(found: Proposal, pairs: list[ColumnPair]) -> list[ColumnPair]:
    """Numbers of records taken out of what is compared; those of people stay."""
    out = []
    for pair in ids_among(pairs):
        if not pair.a[0].unique and agrees_where_shared(pair, pairs):
            found.notes.append(
                f"records with the same {pair.columns[0]} agree elsewhere, too: it looks like a "
                "number of the person. If it is surely that, group by it."
            )
        else:
            out.append(pair)
            found.left_out.append(LeftOut("A", pair.columns[0], _EACH))
    return [pair for pair in pairs if pair not in out]


def _likely(profiles: Sequence[Profile]) -> LikelyPairs | None:
    """Likely pairs of records, between every other one and the rest."""
    usable = [p for p in profiles if p.kind not in ("empty", "constant") and not of_whom(p.name)]
    if not usable or not any(p.event for p in usable):
        return None
    half = np.arange(len(usable[0].keys)) % 2
    sides = [[_part(p, np.flatnonzero(half == side)) for p in usable] for side in (0, 1)]
    return LikelyPairs(sides[0], sides[1], {(p.name, p.name): 1.0 for p in usable})


def _part(p: Profile, rows: Any) -> Profile:
    return replace(p, keys=[p.keys[row] for row in rows], cells=[p.cells[row] for row in rows])


def _remark(found: Proposal, pairs: Sequence[ColumnPair]) -> None:
    for effect, cause in follows_from(pairs):
        found.notes.append(
            f"{effect.columns[0]} follows from {cause.columns[0]}: they agree together, which the "
            "model allows for."
        )
    for pair in pairs:
        if any(p.dates and p.dates.ambiguous for p in pair.a):
            found.notes.append(
                f"day and month cannot be told apart in {pair.a[0].name}: check its format."
            )
