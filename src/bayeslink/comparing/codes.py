"""Phones, e-mail addresses, postcodes, identity numbers, addresses, companies and lists."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from bayeslink.comparing.rules import SAME, Checked, Keys, Ladder, one_edit

# --- phones ---------------------------------------------------------------------------------------

_OWN = 7  # digits that are a number of its own, whatever the code of its area or country
PHONE_LABELS = ("different", "same area", "one digit wrong", "same without a code", "equal")


def bare_phone(text: str) -> str:
    """Digits alone, without an extension, an international call prefix or leading zeros."""
    text = re.sub(r"(?:ext|x|#)\.?\s*\d+\s*\Z", "", text)
    digits = re.sub(r"\D", "", text.replace("(0)", ""))
    return digits.lstrip("0") if len(digits) >= 5 else ""


@cache
def phone_ladder() -> Ladder:
    def own(number: str) -> list[str]:
        return [number[-_OWN:]] if len(number) > _OWN else [number]

    def contains(x: Sequence[str], y: Sequence[str]) -> NDArray[np.bool_]:
        pairs = zip(x, y, strict=True)
        return np.array([v.endswith(w) or w.endswith(v) for v, w in pairs], bool)

    def area(number: str) -> list[str]:
        return [number[:-_OWN]] if len(number) > _OWN else []

    rules = (SAME, Checked(Keys(own), contains), one_edit(), Keys(area))
    return Ladder(rules, ((5,), (4,), (3,), (2,)))


# --- e-mail ---------------------------------------------------------------------------------------

EMAIL_LABELS = (
    "different",
    "name of the mailbox one letter off",
    "same mailbox elsewhere",
    "equal",
)


def bare_email(text: str) -> str:
    text = text.removeprefix("mailto:").strip("<> ")
    return text if re.fullmatch(r"[^@\s]+@[^@\s]+", text) else ""


@cache
def email_ladder() -> Ladder:
    def mailbox(address: str) -> str:
        return re.sub(r"[._-]", "", address.split("@")[0].split("+")[0])

    def local(address: str) -> list[str]:
        return [mailbox(address)] if len(mailbox(address)) > 3 else []

    edits = one_edit()

    def deleted(address: str) -> Iterable[str]:
        return edits.keys.left(mailbox(address)) if len(mailbox(address)) > 3 else []

    def close(x: Sequence[str], y: Sequence[str]) -> NDArray[np.bool_]:
        return edits.check([mailbox(v) for v in x], [mailbox(w) for w in y])

    return Ladder((SAME, Keys(local), Checked(Keys(deleted), close)), ((4,), (3,), (2,)))


# --- postcodes ------------------------------------------------------------------------------------

POSTCODE_LABELS = ("different", "same area", "one letter wrong", "equal")
_BRITISH = re.compile(r"([a-z]{1,2}\d[a-z\d]?)\d[a-z]{2}\Z")


def bare_postcode(text: str) -> str:
    """Letters and digits; of an American code the first five."""
    code = re.sub(r"[^a-z0-9]", "", text)
    return code[:5] if re.fullmatch(r"\d{9}", code) else code


def outer_part(code: str) -> str:
    """The part that stands for a town or quarter: outward code, or the first digits."""
    if british := _BRITISH.match(code):
        return british[1]
    return code[: max(2, (len(code) + 1) // 2)]


@cache
def postcode_ladder() -> Ladder:
    rules = (SAME, one_edit(), Keys(lambda code: [outer_part(code)]))
    return Ladder(rules, ((4,), (3,), (2,)))


# --- identity numbers -----------------------------------------------------------------------------

IDENTIFIER_LABELS = ("different", "one digit wrong or two swapped", "equal")


def bare_identifier(text: str) -> str:
    return re.sub(r"[\W_]", "", text)


@cache
def identifier_ladder() -> Ladder:
    return Ladder((SAME, one_edit()), ((3,), (2,)))


# --- lists ----------------------------------------------------------------------------------------

_SEPARATORS = re.compile(r"[;,|/]|\s+(?:and|und|et|y|&)\s+")
LIST_LABELS = ("nothing in common", "something in common", "one within the other", "same")


def bare_list(text: str) -> str:
    """The members in order, each once."""
    members = {" ".join(part.split()) for part in _SEPARATORS.split(text)} - {""}
    return "; ".join(sorted(members))


@cache
def list_ladder() -> Ladder:
    def members(text: str) -> list[str]:
        return text.split("; ")

    def nested(x: Sequence[str], y: Sequence[str]) -> NDArray[np.bool_]:
        sets = {value: frozenset(members(value)) for value in {*x, *y}}
        pairs = zip(x, y, strict=True)
        return np.array([sets[v] <= sets[w] or sets[w] <= sets[v] for v, w in pairs], bool)

    return Ladder((SAME, Checked(Keys(members), nested), Keys(members)), ((4,), (3,), (2,)))


# --- addresses and companies, before they are compared as texts -----------------------------------

_STREETS = {
    "st": "street", "str": "street", "ave": "avenue", "av": "avenue", "rd": "road", "dr": "drive",
    "ln": "lane", "la": "lane", "blvd": "boulevard", "ct": "court", "pl": "place", "sq": "square",
    "hwy": "highway", "pkwy": "parkway", "ter": "terrace", "cres": "crescent", "cl": "close",
    "apt": "apartment", "fl": "floor", "no": "", "nr": "", "n": "north", "s": "south", "e": "east",
    "w": "west", "ne": "northeast", "nw": "northwest", "se": "southeast", "sw": "southwest",
    "first": "1st", "second": "2nd", "third": "3rd", "fourth": "4th", "fifth": "5th",
    "sixth": "6th", "seventh": "7th", "eighth": "8th", "ninth": "9th", "tenth": "10th",
}  # fmt: skip
_FORMS_TEXT = """
inc incorporated llc llp lp ltd limited plc corp corporation co company gmbh ag kg ohg mbh ug se
sa sas sarl srl spa bv nv ab oy oyj as aps kk pty holding holdings group the
"""
_FORMS = frozenset(_FORMS_TEXT.split())


def bare_address(text: str) -> str:
    """Short forms of streets and directions written out."""
    words = re.findall(r"[^\W_]+", text)
    return " ".join(filter(None, (_STREETS.get(word, word) for word in words)))


def bare_company(text: str) -> str:
    """Without the legal form, unless nothing else is there."""
    words = re.findall(r"[^\W_]+", text.replace(".", ""))
    return " ".join([word for word in words if word not in _FORMS] or words)
