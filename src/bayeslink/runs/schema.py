"""Plain data checked against a schema made of small functions: each takes a value, or complains."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

Check = Callable[[Any, str], None]


class NotAsWrittenError(Exception):
    """Where in the data something is missing or not what it should be."""


def _must(holds: bool, where: str) -> None:
    if not holds:
        raise NotAsWrittenError(where)


def text(value: Any, where: str) -> None:
    _must(isinstance(value, str), where)


def sha256(value: Any, where: str) -> None:
    """A checksum in hexadecimal digits."""
    _must(isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None, where)


def flag(value: Any, where: str) -> None:
    _must(isinstance(value, bool), where)


def number(value: Any, where: str) -> None:
    """A finite number."""
    _must(type(value) in (int, float) and math.isfinite(value), where)


def share(value: Any, where: str) -> None:
    """A number from 0 up, and finite."""
    number(value, where)
    _must(value >= 0, where)


def whole(value: Any, where: str) -> None:
    """A whole number from 0 up, as counts are."""
    _must(type(value) is int and 0 <= value < 2**63, where)


def one_of(*allowed: str) -> Check:
    return lambda value, where: _must(isinstance(value, str) and value in allowed, where)


def maybe(check: Check) -> Check:
    """That, or nothing."""
    return lambda value, where: None if value is None else check(value, where)


def either(*checks: Check) -> Check:
    """Any of these."""

    def check(value: Any, where: str) -> None:
        for one in checks:
            try:
                return one(value, where)
            except NotAsWrittenError as error:
                last = error
        raise last

    return check


def listed(check: Check, n: int | None = None) -> Check:
    """A list of such, of n of them if said."""

    def of_list(value: Any, where: str) -> None:
        _must(isinstance(value, list) and n in (None, len(value)), where)
        for k, item in enumerate(value):
            check(item, f"{where}[{k}]")

    return of_list


def mapped(check: Check) -> Check:
    """Names and such."""

    def of_mapping(value: Any, where: str) -> None:
        _must(isinstance(value, dict), where)
        for key, item in value.items():
            check(item, f"{where}.{key}")

    return of_mapping


def record(optional: dict[str, Check] | None = None, /, **needed: Check) -> Check:
    """These names, and those of `optional` that are there; others are not looked at."""

    def of_record(value: Any, where: str) -> None:
        _must(isinstance(value, dict), where)
        for key, check in needed.items():
            _must(key in value, f"{where}.{key}".lstrip("."))
            check(value[key], f"{where}.{key}".lstrip("."))
        for key, check in (optional or {}).items():
            if key in value:
                check(value[key], f"{where}.{key}".lstrip("."))

    return of_record
