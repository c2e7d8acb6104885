"""From a pair of columns to a field: which comparison suits what they hold, and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bayeslink.comparing import fields as f
from bayeslink.comparing import special_fields as s
from bayeslink.comparing.fields import Field
from bayeslink.suggesting.column_pairs import ColumnPair
from bayeslink.suggesting.date_formats import Formats

_ONE_FORMAT = 0.98  # of the dates: then this format is said, else each is read as it looks

# What columns hold -> the comparison, and how to say so.
COMPARISONS: dict[str, tuple[Callable[..., Field], str]] = {
    "date": (f.date, "dates"),
    "given name": (s.name, "given names"),
    "family name": (s.name, "family names"),
    "middle name": (s.name, "middle names"),
    "second family name": (s.name, "second family names"),
    "full name": (s.name, "full names"),
    "company": (s.company, "names of companies"),
    "text": (s.text, "texts"),
    "list": (s.collection, "lists"),
    "address": (s.address, "addresses"),
    "street": (s.address, "streets"),
    "place": (f.levenshtein, "places"),
    "words": (f.levenshtein, "words"),
    "phone": (s.phone, "phone numbers"),
    "e-mail": (s.email, "e-mail addresses"),
    "url": (f.levenshtein, "web addresses"),
    "postcode": (s.postcode, "postcodes"),
    "identifier": (s.identifier, "identity numbers"),
    "code": (s.identifier, "codes"),
    "house number": (f.levenshtein, "house numbers"),
    "category": (f.exact, "categories"),
    "initials": (s.name, "categories, in one file by their first letters"),
    "year": (s.identifier, "years"),
    "age": (f.numeric, "ages"),
    "number": (f.numeric, "numbers"),
    "geo": (f.geo, "places by degrees"),
}
# Values of the same person that need not be equal, so that none may be in common.
_SELDOM_EQUAL = ("text", "list", "number", "address", "company", "full name", "initials", "geo")


def propose(pair: ColumnPair, name: str | None = None) -> Field:
    """The field that compares these columns."""
    a, b = pair.all_columns
    settings: dict[str, Any] = {**pair.settings, **({"name": name} if name else {})}
    if a != b:
        settings["columns"] = tuple(side[0] if len(side) == 1 else side for side in (a, b))
    one = min((a, b), key=len)[0]  # of a whole and its parts, the whole
    if pair.kind == "geo":
        settings["longitude"] = a[1]
    codes = {code for side in pair.sides for p in side for code in p.fillers}
    if codes:
        settings["missing"] = tuple(sorted(codes))
    if pair.kind == "date" and (formats := _formats(pair)) is not None:
        settings["format"] = formats
    return COMPARISONS[pair.kind][0](one, **settings)


def _formats(pair: ColumnPair) -> str | tuple[str, str] | None:
    """The format of each file where one reads nearly all its dates; else the data tell it again."""
    a, b = ("" if len(p.columns) > 1 else _format(p.dates) for (p,) in pair.sides)
    if not a and not b:
        return None
    return a if a == b else (a, b)


def _format(dates: Formats | None) -> str:
    if dates is None or dates.first_share < _ONE_FORMAT * dates.share or dates.ambiguous:
        return ""
    return dates.formats[0] if "%Y" in dates.formats[0] else ""


def reason(pair: ColumnPair) -> str:
    """Why these columns are compared, in this way, with the figures behind it."""
    parts = [", ".join(filter(None, (COMPARISONS[pair.kind][1], pair.why)))]
    if pair.kind == "date":
        forms = [p.dates.formats[0] if p.dates else "%Y" for (p,) in pair.sides]
        parts.append(f"written {forms[0]}" + (f" and {forms[1]}" if forms[0] != forms[1] else ""))
    full = [f"{100 * share:.0f}" for share in pair.complete]
    parts.append(f"filled {' and '.join(dict.fromkeys(full))} %")
    parts.append(f"two records agree by chance {one_in(pair.chance)}")
    return "; ".join(parts)


def one_in(chance: float) -> str:
    """A probability in words.

    >>> one_in(0.00213), one_in(0.7)
    ('1 time in 469', '70 % of the time')
    """
    if chance > 0.1:
        return f"{100 * chance:.0f} % of the time"
    return f"1 time in {1 / chance:,.0f}"


def why_not(pair: ColumnPair, n: tuple[int, int]) -> str | None:
    """What speaks against comparing these columns; None if nothing does."""
    if pair.kind not in COMPARISONS:
        return f"no comparison for {pair.kind}"
    if min(pair.complete) < 0.1:
        return f"filled in only {100 * min(pair.complete):.0f} % of the records"
    if pair.chance > 0.9:
        return "nearly always the same: it tells hardly anyone apart"
    if pair.shared == 0 and pair.kind not in _SELDOM_EQUAL and min(n) >= 50:
        return "not one value in common: written in different ways, or not the same thing"
    return None
