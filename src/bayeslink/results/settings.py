"""What the command line and link.toml can say, and how it becomes arguments of `link`."""

from __future__ import annotations

import dataclasses
import json
import tomllib
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from bayeslink.comparing.fields import COMPARISONS, Field
from bayeslink.data.records import ReadOptions
from bayeslink.errors import InputError, SettingsError
from bayeslink.inference.decisions import Loss
from bayeslink.inference.priors import LinkCountPrior, Overlap, Penalty

# key -> the types it takes
KEYS: dict[str, tuple[type, ...]] = {
    "a": (str,),
    "b": (str,),
    "id": (str, list),
    "fields": (list,),
    "block": (list, str),
    "labels": (str,),
    "theta": (int, float),
    "overlap": (list,),
    "missing": (list, str),
    "encoding": (str, list),
    "delimiter": (str, list),
    "skip_lines": (int, list),
    "table": (str, list),
    "quarantine": (str, list),
    "point": (bool,),
    "w0": (int, float),
    "draws": (int,),
    "tune": (int,),
    "chains": (int,),
    "loss": (dict,),
    "seed": (int,),
    "threads": (int,),
    "memory": (str, int),
    "output": (str,),
}
_SAMPLING_KEYS = ("point", "w0", "draws", "tune", "chains", "seed")
_READ_KEYS = ("encoding", "delimiter", "skip_lines", "table", "quarantine")


def parse_on(text: str) -> Field:
    """A field from `column:comparison[:setting=value…]`, as `--on` takes it.

    >>> parse_on("surname:levenshtein:cuts=0,.2,.4").cuts
    (0.0, 0.2, 0.4)
    """
    column, _, rest = text.partition(":")
    if not column:
        raise SettingsError(
            f"--on {text!r} names no column. Say COLUMN:COMPARISON; a column with a colon in its "
            "name can be given in link.toml (--config)."
        )
    kind, *settings = _split_outside_quotes(rest) if rest else ["exact"]
    entry: dict[str, Any] = {"column": column, "compare": kind}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals:
            raise SettingsError(
                f"--on {text!r}: {setting!r} is not setting=value. "
                "For example: --on surname:levenshtein:cuts=0,.25,.5"
            )
        entry[key] = _value(key, value)
    return field_from(entry)


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
    if key in ("format", "name", "longitude"):
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


def field_from(entry: Mapping[str, Any]) -> Field:
    """A field from one [[fields]] table of link.toml."""
    if not isinstance(entry, Mapping):
        raise SettingsError('each of fields is a table: [[fields]] with column = "…".')
    arguments = dict(entry)
    kind = arguments.pop("compare", "exact")
    if kind not in COMPARISONS or kind == "custom":
        near = get_close_matches(str(kind), COMPARISONS, 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        allowed = ", ".join(k for k in COMPARISONS if k != "custom")
        raise SettingsError(
            f"unknown comparison {kind!r}.{hint} Allowed: {allowed}; custom only from Python."
        )
    column = arguments.pop("column", None)
    if not isinstance(column, str) or not column:
        raise SettingsError(f'a {kind} field names no column. Say column = "…".')
    for key in ("columns", "valid", "format"):
        if isinstance(arguments.get(key), list):
            arguments[key] = tuple(arguments[key])
    try:
        if kind == "geo":
            return COMPARISONS[kind](column, arguments.pop("longitude", "longitude"), **arguments)
        return COMPARISONS[kind](column, **arguments)
    except TypeError as error:
        raise SettingsError(f"{kind} field {column!r}: {error}") from None


def load(path: str | Path) -> dict[str, Any]:
    """Read a link.toml, checking every key and type. Labels are looked for next to it."""
    try:
        settings = tomllib.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}. Check the path.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is not valid TOML: {error}.") from None
    for key, value in settings.items():
        if key not in KEYS:
            near = get_close_matches(key, KEYS, 1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise SettingsError(f"{path}: unknown key {key!r}.{hint} Allowed: {', '.join(KEYS)}.")
        if not isinstance(value, KEYS[key]) or (isinstance(value, bool) and key != "point"):
            wanted = " or ".join(_TYPE_NAMES[t] for t in KEYS[key])
            raise SettingsError(f"{path}: {key} must be {wanted}, got {type(value).__name__}.")
    if "labels" in settings:
        settings["labels"] = str(Path(path).parent / settings["labels"])
    return settings


_TYPE_NAMES = {
    str: "text",
    list: "a list",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    dict: "a table",
}


def link_arguments(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Keyword arguments of `bayeslink.linking.link` from checked settings."""
    arguments: dict[str, Any] = {
        key: settings[key]
        for key in ("a", "b", "labels", "threads", "memory", *_SAMPLING_KEYS)
        if key in settings
    }
    if settings.get("loss"):
        arguments["loss"] = _loss(settings["loss"])
    fields = [f if isinstance(f, Field) else field_from(f) for f in settings.get("fields", ())]
    arguments["fields"] = fields
    if "id" in settings:
        given = settings["id"]
        arguments["id"] = None if given is None or given == [] else _one_or_two("id", given)
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
    """Reading options for A and for B; each setting is for both, or a list of two."""
    missing = settings.get("missing", [])
    values = [missing] if isinstance(missing, str) else missing
    if not all(isinstance(value, str) for value in values):
        raise SettingsError('missing takes texts, such as ["NA", "999"].')
    sides: list[dict[str, Any]] = [{}, {}]
    for key in _READ_KEYS:
        if settings.get(key) is None:
            continue
        given = settings[key]
        pair = given if isinstance(given, (list, tuple)) else [given, given]
        if len(pair) != 2:
            raise SettingsError(f"{key} takes one value, or one for A and one for B.")
        wanted = int if key == "skip_lines" else str
        for side, value in zip(sides, pair, strict=True):
            if not isinstance(value, wanted):
                raise SettingsError(f"{key} must be {_TYPE_NAMES[wanted]}, got {value!r}.")
            side[key] = value
    declared = ("", *(v for v in values if v != ""))
    a, b = (ReadOptions(missing=declared, **side) for side in sides)
    return a, b


def _one_or_two(key: str, value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        if len(value) == 1:
            return value[0]
        if len(value) != 2 or not all(isinstance(v, str) for v in value):
            raise SettingsError(f"{key} takes one column name, or the name in A and in B.")
        return tuple(value)
    return value


# --- flags ------------------------------------------------------------------------------------


_PLAIN_FLAGS = (
    "a", "b", "theta", "w0", "draws", "tune", "chains", "point", "seed", "threads", "memory",
    "labels",
)  # fmt: skip


def from_flags(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Flags that were given, in the form that link.toml has."""
    given = {key: flags[key] for key in _PLAIN_FLAGS if flags[key] is not None}
    if flags["reject"] is not None:
        given["loss"] = {"reject": flags["reject"]}
    if flags["on"]:
        given["fields"] = [parse_on(text) for text in flags["on"]]
    if flags["no_id"]:
        given["id"] = None
    elif flags["ids"]:
        given["id"] = list(flags["ids"])
    if flags["block"]:
        given["block"] = [part.split("=", 1) for part in flags["block"]]
    if flags["overlap"]:
        try:
            given["overlap"] = [float(x) for x in flags["overlap"].split(",")]
        except ValueError:
            raise SettingsError(
                f"--overlap takes two numbers such as 1,1, got {flags['overlap']!r}."
            ) from None
    if flags["missing"]:
        given["missing"] = list(flags["missing"])
    for key in ("encoding", "delimiter", "skip_lines", "table", "quarantine"):
        if flags[key]:
            given[key] = list(flags[key]) if len(flags[key]) > 1 else flags[key][0]
    return given


# --- writing ----------------------------------------------------------------------------------


def dump(settings: Mapping[str, Any]) -> str:
    """The settings of a run as link.toml, which `bayeslink link --config` reads back."""
    lines = []
    for key in ("a", "b", "id", "block", "labels", *_SAMPLING_KEYS, "missing", *_READ_KEYS):
        value = settings.get(key)
        if key == "id" and value is None:
            lines.append("id = []  # the rows are numbered")
        elif value is not None and value is not False and not _is_empty(value):
            line = f"{key} = {_toml(value)}"
            if not _is_utf8(line):  # a path with stray bytes, which TOML cannot hold
                line = "# " + line.encode("utf-8", "backslashreplace").decode()
            lines.append(line)
    prior = settings["prior"]
    if isinstance(prior, Penalty):
        lines.append(f"theta = {_toml(prior.theta)}")
    else:
        lines.append(f"overlap = {_toml([prior.alpha, prior.beta])}")
    if settings.get("loss") is not None:
        costs = dataclasses.asdict(settings["loss"])
        lines += ["", "[loss]", *(f"{k} = {_toml(v)}" for k, v in costs.items() if v is not None)]
    for field in settings["fields"]:
        lines += ["", "[[fields]]"]
        if field.kind == "custom":
            lines.append("# a Python function: this field can only be given from Python")
        lines += [
            f"{key} = {_toml(value)}"
            for key, value in field.settings.items()
            if value is not None and not callable(value)
        ]
    return "\n".join(lines) + "\n"


def _is_empty(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and not value


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def settings_of_reading(options: Sequence[ReadOptions]) -> dict[str, Any]:
    """The non-default reading options of both files, for `dump`."""
    out: dict[str, Any] = {}
    default = ReadOptions()
    for key in _READ_KEYS:
        values = [getattr(o, key) for o in options]
        if any(v != getattr(default, key) for v in values):
            texts = [str(v) if hasattr(v, "__fspath__") else v for v in values]
            out[key] = texts[0] if texts[0] == texts[1] else texts
    declared = [v for v in options[0].missing if v != ""]
    return out | ({"missing": declared} if declared else {})


def _toml(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_toml(v) for v in value if v is not None) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value.item() if hasattr(value, "item") else value)  # NumPy's numbers as Python's
