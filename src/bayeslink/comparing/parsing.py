"""Fields from text: what `--on` and a [[fields]] table of link.toml say."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from bayeslink.comparing.catalogue import COMPARISONS
from bayeslink.comparing.fields import Field
from bayeslink.errors import SettingsError


def fields_on(texts: Sequence[str]) -> list[Field | str]:
    """What several `--on` say; a column alone stays text: its comparison is chosen later."""
    return [f for text in texts for f in ([text] if _only_named(text) else parse_on(text))]


def parse_on(text: str) -> list[Field]:
    """Fields from `column:comparison[:setting=value…]`, as `--on` takes it.

    A column is `name` or, where the files differ, `name in A=name in B`; several columns of a file
    are joined by +. Only `person_name` makes two fields, of `given name,family name`.

    >>> parse_on("surname:levenshtein:cuts=0,.2,.4")[0].cuts
    (0.0, 0.2, 0.4)
    """
    column, _, rest = text.partition(":")
    if not column:
        raise SettingsError(
            f"--on {text!r} names no column. Say COLUMN:COMPARISON; a column with a colon in its "
            "name can be given in link.toml (--config)."
        )
    kind, *settings = _split_outside_quotes(rest) if rest else ["exact"]
    entry: dict[str, Any] = {"compare": kind, **_columns(text, column, kind)}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals:
            raise SettingsError(
                f"--on {text!r}: {setting!r} is not setting=value. "
                "For example: --on surname:levenshtein:cuts=0,.25,.5"
            )
        if key in ("column", "compare") or (key in entry and key == "columns"):
            raise SettingsError(f"--on {text!r}: {key!r} is said already, before the settings.")
        entry[key] = _value(key, value)
    return fields_from(entry)


def _only_named(text: str) -> bool:
    """Whether it is one column, without a comparison: that is then chosen from the files."""
    return bool(text) and ":" not in text and "+" not in text


def _columns(text: str, column: str, kind: str) -> dict[str, Any]:
    """`column` and, where they differ between the files or are several, `columns`."""
    mark = "," if kind == "person_name" else "+"
    sides = [side.split(mark) for side in column.split("=")]
    if len(sides) > 2 or not all(map(all, sides)):
        raise SettingsError(
            f"--on {text!r}: {column!r} is no column, nor COLUMN_A=COLUMN_B. A name with = or "
            f"{mark} in it can be given in link.toml (--config)."
        )
    if kind == "person_name" and len(sides[0]) != 2:
        raise SettingsError(f"--on {text!r}: say GIVEN,FAMILY:person_name.")
    a, b = sides[0], sides[-1]
    if len(a) == len(b) == 1 and len(sides) == 1:
        return {"column": a[0]}
    same = {} if kind == "person_name" and len(sides) == 1 else {"columns": [a, b]}
    return {"column": mark.join(a), **same}


def _split_outside_quotes(text: str) -> list[str]:
    """Split at colons, except within double quotes (a date format may hold one)."""
    parts, quoted, current = [], False, ""
    for character in text:
        if character == '"':
            quoted = not quoted
        elif character == ":" and not quoted:
            parts.append(current)
            current = ""
        else:
            current += character
    return [*parts, current]


def _value(key: str, text: str) -> Any:
    """Text of a command-line setting as TOML would have it."""
    if key == "format":
        return _formats(text)
    if key in ("name", "longitude") or text == "auto":
        return text
    if key == "recode":
        return dict(part.split("=", 1) for part in text.split(",") if "=" in part)
    if key in ("units", "part"):
        return text.split(",") if "," in text else text
    if key in ("columns", "normalise", "missing") or (key == "valid" and "-" in text[1:]):
        return [part for part in text.split(",") if part or key == "missing"]
    try:
        numbers = [None if part == "" else float(part) for part in text.split(",")]
    except ValueError:
        if text in ("true", "false"):
            return text == "true"
        raise SettingsError(f"{key}={text!r}: expected numbers, true or false.") from None
    whole = len(numbers) == 1 and key in ("levels",)
    return int(numbers[0] or 0) if whole else numbers


def _formats(text: str) -> Any:
    """One date format, or two with a comma between them, of A and of B."""
    for comma in (k for k, letter in enumerate(text) if letter == ","):
        sides = [text[:comma], text[comma + 1 :]]
        if all(re.search("%[Yy]", side) or not side for side in sides):
            return sides
    return text


def fields_from(entry: Mapping[str, Any]) -> list[Field]:
    """The field, or fields, of one [[fields]] table of link.toml."""
    if not isinstance(entry, Mapping):
        raise SettingsError('each of fields is a table: [[fields]] with column = "…".')
    arguments = dict(entry)
    kind = arguments.pop("compare", "exact")
    if not isinstance(kind, str) or kind not in COMPARISONS or kind == "custom":
        near = get_close_matches(str(kind), COMPARISONS, 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        allowed = ", ".join(k for k in COMPARISONS if k != "custom")
        raise SettingsError(
            f"unknown comparison {kind!r}.{hint} Allowed: {allowed}; custom only from Python."
        )
    column = arguments.pop("column", None)
    if not isinstance(column, str) or not column:
        raise SettingsError(f'a {kind} field names no column. Say column = "…".')
    try:
        if kind == "geo":
            arguments.setdefault("longitude", "longitude")
        elif kind == "person_name":
            column, arguments["last"] = column.split(",")
        made = COMPARISONS[kind](column, **arguments)
    except TypeError as error:
        raise SettingsError(f"{kind} field {column!r}: {error}") from None
    return made if isinstance(made, list) else [made]
