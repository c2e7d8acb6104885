"""What the command line and link.toml can say, and how it becomes arguments of `link`."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from bayeslink.comparing.catalogue import COMPARISONS
from bayeslink.comparing.fields import Field
from bayeslink.data.records import ReadOptions
from bayeslink.errors import SettingsError
from bayeslink.inference.decisions import Loss
from bayeslink.inference.priors import LinkCountPrior, Overlap, Penalty
from bayeslink.plain import texts

SAMPLING_KEYS = ("structure", "point", "w0", "restricted", "draws", "tune", "chains", "seed")
READ_KEYS = ("encoding", "delimiter", "skip_lines", "table", "quarantine", "multiline")
TYPE_NAMES = {
    str: "text",
    list: "a list",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    dict: "a table",
}


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


def link_arguments(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Keyword arguments of `bayeslink.linking.link` from checked settings."""
    arguments: dict[str, Any] = {
        key: settings[key]
        for key in ("a", "b", "labels", "threads", "memory", "engine", *SAMPLING_KEYS)
        if key in settings
    }
    if settings.get("loss"):
        arguments["loss"] = _loss(settings["loss"])
    arguments["fields"] = [
        field
        for entry in settings.get("fields", ())
        for field in ([entry] if isinstance(entry, Field | str) else fields_from(entry))
    ]
    if "id" in settings:
        arguments["id"] = id_from(settings["id"])
    block = settings.get("block", [])
    arguments["block"] = [
        _one_or_two("block", part) for part in ([block] if isinstance(block, str) else block)
    ]
    arguments["prior"] = prior_from(settings)
    arguments["read"] = read_options(settings)
    return arguments


def prior_from(settings: Mapping[str, Any]) -> LinkCountPrior:
    if settings.get("theta") is not None:
        if settings.get("overlap"):
            raise SettingsError("give theta or overlap, not both.")
        return Penalty(settings["theta"])
    overlap = settings.get("overlap") or [1, 1]
    if len(overlap) != 2:
        raise SettingsError(f"overlap takes two numbers, alpha and beta, got {overlap!r}.")
    return Overlap(*overlap)


def _loss(given: Mapping[str, Any]) -> Loss:
    allowed = [f.name for f in dataclasses.fields(Loss)]
    for key in given:
        if key not in allowed:
            raise SettingsError(f"loss: unknown key {key!r}. Allowed: {', '.join(allowed)}.")
    return Loss(**given)


def read_options(settings: Mapping[str, Any]) -> tuple[ReadOptions, ReadOptions]:
    """Reading options for A and for B; each setting is for both, or for one each."""
    words = _missing(settings.get("missing", []))
    sides: list[dict[str, Any]] = [{"missing": side} for side in words]
    for key in READ_KEYS:
        if settings.get(key) is None:
            continue
        given = settings[key]
        pair = given if isinstance(given, (list, tuple)) else [given, given]
        if len(pair) != 2:
            raise SettingsError(f"{key} takes one value, or one for A and one for B.")
        wanted = {"skip_lines": int, "multiline": bool}.get(key, str)
        for side, value in zip(sides, pair, strict=True):
            if type(value) is not wanted:
                raise SettingsError(f"{key} must be {TYPE_NAMES[wanted]}, got {value!r}.")
            if value != "":  # none on this side
                side[key] = value
    a, b = (ReadOptions(**side) for side in sides)
    return a, b


def _missing(given: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The missing values of A and of B: the same texts, or a table of those of a and of b."""
    sides = given if isinstance(given, Mapping) else {"a": given, "b": given}
    a, b = (texts(sides.get(side, [])) for side in "ab")
    if a is None or b is None or not sides.keys() <= {"a", "b"}:
        raise SettingsError(
            'missing takes texts, such as ["NA", "999"], or those of each file, such as '
            '{a = ["NA"], b = ["999"]}.'
        )
    return a, b


def id_from(given: Any) -> Any:
    """The id column of both files, or of each; None, in link.toml [], where there is none."""
    if given is None or given == []:
        return None
    if isinstance(given, (list, tuple)) and [] in given and len(given) == 2:
        a, b = (id_from(part) for part in given)
        return a, b
    return _one_or_two("id", given)


def _one_or_two(key: str, value: Any) -> Any:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, (list, tuple)) or not all(isinstance(n, str) for n in names):
        names = []
    if not 1 <= len(names) <= 2:
        raise SettingsError(f"{key} takes one column name, or the name in A and in B.")
    return names[0] if len(names) == 1 else tuple(names)


# --- flags ------------------------------------------------------------------------------------


_PLAIN_FLAGS = (
    "a", "b", "theta", "structure", "w0", "restricted", "draws", "tune", "chains", "point", "seed",
    "threads", "memory", "engine", "labels",
)  # fmt: skip


def from_flags(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Flags that were given, in the form that link.toml has; a command may lack some."""
    given = {key: flags[key] for key in _PLAIN_FLAGS if flags.get(key) is not None}
    if flags.get("reject") is not None:
        given["loss"] = {"reject": flags["reject"]}
    if flags.get("on"):
        given["fields"] = [
            field
            for text in flags["on"]
            for field in ([text] if _only_named(text) else parse_on(text))
        ]
    if flags.get("no_id"):
        given["id"] = None
    elif flags["ids"]:
        given["id"] = list(flags["ids"])
    if flags.get("block"):
        given["block"] = [part.split("=", 1) for part in flags["block"]]
    if flags.get("overlap"):
        try:
            given["overlap"] = [float(x) for x in flags["overlap"].split(",")]
        except ValueError:
            raise SettingsError(
                f"--overlap-beta takes two numbers such as 1,1, got {flags['overlap']!r}."
            ) from None
    if flags["multiline"]:
        given["multiline"] = True
    if flags["missing"]:
        given["missing"] = list(flags["missing"])
    for key in (key for key in READ_KEYS if key != "multiline"):
        if flags.get(key):
            given[key] = list(flags[key]) if len(flags[key]) > 1 else flags[key][0]
    return given
