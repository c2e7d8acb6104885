"""From a pair of columns to a field: which comparison suits what they hold, and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bayeslink.comparing import fields as f
from bayeslink.comparing.fields import Field
from bayeslink.suggesting.pairing import ColumnPair

_ONE_FORMAT = 0.98  # of the dates: then this format is said, else each is read as it looks

# What columns hold -> the comparison, and how to say so.
COMPARISONS: dict[str, tuple[Callable[..., Field], str]] = {
    "date": (f.date, "dates"),
    "given name": (f.levenshtein, "given names"),
    "family name": (f.levenshtein, "family names"),
    "middle name": (f.levenshtein, "middle names"),
    "full name": (f.levenshtein, "full names"),
    "company": (f.tokens, "names of companies"),
    "text": (f.tokens, "texts"),
    "list": (f.tokens, "lists"),
    "address": (f.levenshtein, "addresses"),
    "street": (f.levenshtein, "streets"),
    "place": (f.levenshtein, "places"),
    "words": (f.levenshtein, "words"),
    "phone": (f.levenshtein, "phone numbers"),
    "e-mail": (f.levenshtein, "e-mail addresses"),
    "url": (f.levenshtein, "web addresses"),
    "postcode": (f.levenshtein, "postcodes"),
    "identifier": (f.damerau_levenshtein, "identity numbers"),
    "code": (f.damerau_levenshtein, "codes"),
    "house number": (f.levenshtein, "house numbers"),
    "category": (f.exact, "categories"),
    "year": (f.exact, "years"),
    "age": (f.numeric, "ages"),
    "number": (f.numeric, "numbers"),
}


def propose(pair: ColumnPair) -> Field:
    """The field that compares these columns."""
    a, b = (tuple(p.name for p in side) for side in pair.sides)
    settings: dict[str, Any] = {}
    if a != b:
        settings["columns"] = tuple(side[0] if len(side) == 1 else side for side in (a, b))
    one = min((a, b), key=len)[0]  # of a whole and its parts, the whole
    codes = {code for side in pair.sides for p in side for code in p.fillers}
    if codes:
        settings["missing"] = tuple(sorted(codes))
    if pair.kind == "date" and (formats := _formats(pair)) is not None:
        settings["format"] = formats
    return COMPARISONS[pair.kind][0](one, **settings)


def _formats(pair: ColumnPair) -> str | tuple[str, str] | None:
    """The format of each file where one reads nearly all its dates; None where that is ISO."""
    said = []
    for (p,) in pair.sides:
        dates = p.dates
        one = dates is not None and dates.first_share >= _ONE_FORMAT * dates.share
        said.append(dates.formats[0] if dates and one else "")
    a, b = ("" if form == "%Y-%m-%d" else form for form in said)
    if not a and not b:
        return None
    return a if a == b else (a, b)


def reason(pair: ColumnPair) -> str:
    """Why these columns are compared, in this way, with the figures behind it."""
    parts = [f"{COMPARISONS[pair.kind][1]}, {pair.why}"]
    if pair.kind == "date":
        forms = [p.dates.formats[0] if p.dates else "?" for (p,) in pair.sides]
        parts.append(f"written {forms[0]}" + (f" and {forms[1]}" if forms[0] != forms[1] else ""))
    full = [f"{100 * share:.0f}" for share in pair.complete]
    parts.append(f"filled {' and '.join(dict.fromkeys(full))} %")
    parts.append(f"two people agree by chance {one_in(pair.chance)}")
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
    whole_values = pair.kind not in ("text", "list", "number", "address", "company", "full name")
    if pair.shared == 0 and whole_values and min(n) >= 50:
        return "not one value in common: written in different ways, or not the same thing"
    return None
