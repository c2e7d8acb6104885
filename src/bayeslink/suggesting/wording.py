"""A proposal in words: ids, fields, and what is left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bayeslink.comparing.fields import Field
from bayeslink.settings import Ids
from bayeslink.suggesting.profiles import Profile

SHOWN = 6  # columns left out that are named in a line


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A column that is not compared, and why."""

    file: str  # A or B
    column: str
    reason: str


def ids_in_words(ids: Ids) -> str:
    if ids is None or isinstance(ids, str):
        return ids or "none found, so that rows are numbered"
    sides = zip(("A", "B"), ids, strict=True)
    return ", ".join(f"{name or 'row numbers'} in {file}" for file, name in sides)


def field_in_words(field: Field) -> str:
    return f"{columns_in_words(field)} ({field.kind})"


def columns_in_words(field: Field) -> str:
    a, b = (" + ".join(side) for side in field.columns)
    return a if a == b else f"{a} = {b}"


def settings_in_words(field: Field) -> str:
    said = []
    if form := field.settings.get("format"):
        forms = [form] if isinstance(form, str) else [f or "as it looks" for f in form]
        said.append(" and ".join(forms))
    if field.missing:
        said.append(f"{len(field.missing)} filler value{'s' * (len(field.missing) > 1)}")
    if parts := [part for part in field.settings.get("part", ()) if part]:
        said.append(f"{parts[0].split()[0]} name in it")
    if "recode" in field.settings:
        said.append("recoded")
    if units := field.settings.get("units"):
        said.append(" and ".join(dict.fromkeys(units)))
    return f" ({'; '.join(said)})" if said else ""


def left_out_in_words(left_out: Sequence[LeftOut]) -> str:
    reasons: dict[str, dict[str, None]] = {}
    for left in left_out:
        reasons.setdefault(left.reason, {})[left.column] = None
    said = []
    for why, columns in reasons.items():
        more = f" and {len(columns) - SHOWN} more" if len(columns) > SHOWN else ""
        said.append(f"{', '.join(list(columns)[:SHOWN])}{more} ({why})")
    return "; ".join(said)


def column_names(profiles: Sequence[Profile]) -> str:
    shown = ", ".join(repr(p.name) for p in profiles[:20])
    return shown + (", …" if len(profiles) > 20 else "")


def why_alone(profile: Profile, other: str, *, is_id: bool) -> str:
    """Why a column has no partner in the other file."""
    if is_id:
        return "the id of the records"
    if not profile.name:
        return "has no name"
    what = "date of this event" if profile.event else "such column"
    return {
        "empty": "empty",
        "constant": "the same in all records",
    }.get(profile.kind, f"{other} has no {what}")
