"""A proposal as a link.toml, or dedupe.toml, to read and change: with a reason for each column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tomlkit

from bayeslink.comparing.catalogue import COMPARISONS
from bayeslink.comparing.fields import Field
from bayeslink.data.locations import is_path
from bayeslink.runs.link_toml import from_folder, item
from bayeslink.settings import Ids, reading_entries

if TYPE_CHECKING:
    from bayeslink.suggesting.suggestion import Suggestion


_OF_TWO = (
    "What to compare in two files, as proposed from the files themselves. Change what you",
    "know better; then: bayeslink link --config link.toml -o out",
)
_OF_ONE = (
    "What to compare in one file, as proposed from the file itself. Change what you know better;",
    "then: bayeslink dedupe --config dedupe.toml -o out",
)


def draft_toml(suggestion: Suggestion, a: Any, b: Any, folder: Any = None) -> str:
    """The proposal for the files at these paths, which lead from `folder` if one is given.

    `b` is None for a proposal of one file.
    """
    document = tomlkit.document()
    one = len(suggestion.labels) == 1
    for line in (
        *(_OF_ONE if one else _OF_TWO),
        "",
        f"These fields are {suggestion.grade}",
    ):
        document.add(tomlkit.comment(line) if line else tomlkit.nl())
    for note in suggestion.notes:
        document.add(tomlkit.comment(f"Note: {note}"))
    document.add(tomlkit.nl())
    for key, path in (("a", a),) if one else (("a", a), ("b", b)):
        if is_path(path):
            document.add(key, str(path) if folder is None else from_folder(folder, str(path)))
        else:  # an address may hold a password
            document.add(tomlkit.comment(f"{key}: give it on the command line"))
    document.add("id", _id(suggestion.id))
    for key, value in reading_entries(suggestion.read).items():
        if value is not None:
            document.add(key, item(value))
    if suggestion.left_out:
        document.add(tomlkit.nl())
        document.add(tomlkit.comment("Not compared:"))
    for left in suggestion.left_out:
        document.add(
            tomlkit.comment(f"  {left.column}{'' if one else f' of {left.file}'}: {left.reason}")
        )
    fields = tomlkit.aot()
    for field, why in zip(suggestion.fields, suggestion.reasons, strict=True):
        table = tomlkit.table()
        table.add(tomlkit.comment(why))
        table.update(_said(field))
        fields.append(table)
    document.add("fields", fields)
    return tomlkit.dumps(document)


def _id(ids: Ids) -> Any:
    if ids is None:
        return item([]).comment("the rows are numbered")
    return item(ids if isinstance(ids, str) else [[] if name is None else name for name in ids])


_ALWAYS = ("column", "longitude")


def _said(field: Field) -> dict[str, Any]:
    """The settings of a field that are not as they would be without saying so."""
    named = {key: field.settings[key] for key in _ALWAYS if key in field.settings}
    usual = COMPARISONS[field.kind](*named.values()).settings
    return {
        key: value
        for key, value in field.settings.items()
        if key in (*named, "compare") or key not in usual or usual[key] != value
    }
