"""A proposal as a link.toml to read and change: a reason beside each field and each column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tomlkit

from bayeslink.results.link_toml import field_table, from_folder, item, reading_entries

if TYPE_CHECKING:
    from bayeslink.suggesting.suggestion import Suggestion


def draft_toml(suggestion: Suggestion, a: Any, b: Any, folder: Any = None) -> str:
    """The proposal for the files at these paths, which lead from `folder` if one is given."""
    document = tomlkit.document()
    for line in (
        "What to compare in two files, as proposed from the files themselves. Change what you",
        "know better; then: bayeslink link --config link.toml -o out",
        "",
        f"These fields are {suggestion.grade}",
    ):
        document.add(tomlkit.comment(line) if line else tomlkit.nl())
    for note in suggestion.notes:
        document.add(tomlkit.comment(f"Note: {note}"))
    document.add(tomlkit.nl())
    for key, path in (("a", a), ("b", b)):
        document.add(key, str(path) if folder is None else from_folder(folder, str(path)))
    ids = suggestion.id or ()
    document.add("id", item([[] if name is None else name for name in ids]))
    if not ids:
        document["id"].comment("the rows are numbered")
    for key, value in reading_entries(suggestion.read).items():
        if value is not None:
            document.add(key, item(value))
    if suggestion.left_out:
        document.add(tomlkit.nl())
        document.add(tomlkit.comment("Not compared:"))
    for left in suggestion.left_out:
        document.add(tomlkit.comment(f"  {left.column} of {left.file}: {left.reason}"))
    fields = tomlkit.aot()
    for field, why in zip(suggestion.fields, suggestion.reasons, strict=True):
        table = tomlkit.table()
        table.add(tomlkit.comment(why))
        table.update(field_table(field))
        fields.append(table)
    document.add("fields", fields)
    return tomlkit.dumps(document)
