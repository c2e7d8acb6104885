"""What cells look like: patterns of e-mails, phones, postcodes, numbers, addresses, names."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from functools import lru_cache

EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[a-z]{2,}", re.IGNORECASE)
URL = re.compile(r"(https?://|www\.)\S+", re.IGNORECASE)
PHONE = re.compile(r"\+?[\d\s().\-/]{7,22}(\s*(x|ext\.?)\s*\d+)?", re.IGNORECASE)
SEPARATED = re.compile(r"\(?\d{2,5}\)?[\s.\-/]+\d{2,5}([\s.\-/]+\d{2,5})*")  # 212/595-3139
UK_POSTCODE = re.compile(r"[a-z]{1,2}\d[a-z\d]?\s*\d[a-z]{2}", re.IGNORECASE)
CANADIAN_POSTCODE = re.compile(r"[a-z]\d[a-z]\s*\d[a-z]\d", re.IGNORECASE)
POSTCODE = re.compile(r"[a-z]{0,2}-?\d{3,5}(-\d{4})?(\s?[a-z]{2})?", re.IGNORECASE)
WHOLE_NUMBER = re.compile(r"[+-]?\d+")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
MONEY = re.compile(r"[$€£]\s?[+-]?\d[\d,]*(\.\d+)?|[+-]?\d{1,3}(,\d{3})+(\.\d+)?")
COMMA = re.compile(r"[+-]?\d+,\d+")
YEAR = re.compile(r"(1[6-9]|20)\d\d")
PART_OF_DATE = re.compile(r"(1\d|20)\d\d([-/.]\d{1,2})?|\d{1,2}[-/.](1\d|20)\d\d")
CODE = re.compile(r"(?=.*\d)[\w./-]{2,}")  # one word with a digit in it
LETTERS = re.compile(r"[^\W\d_][^\d_@/\\|;:!?#%&*+=<>\[\]{}$]*")  # a name: letters, and few marks
FAMILY_COMMA_GIVEN = re.compile(r"[^\W\d_][^,;\d]*,\s*[^\W\d_][^,;\d]*")
STREET = re.compile(
    r"\b(street|st|road|rd|avenue|ave|av|lane|ln|drive|dr|close|court|ct|place|pl|crescent|cres|"
    r"boulevard|blvd|terrace|way|highway|hwy|circuit|parade|square|sq|strasse|straße|str|rue|via|"
    r"calle|po box|p\.o\. box|floor|suite|apt)\b\.?",
    re.IGNORECASE,
)
LEGAL_FORM = re.compile(
    r"\b(inc|ltd|limited|llc|plc|gmbh|corp|corporation|co|company|ag|s\.?a\.?|s\.?r\.?l\.?|bv|nv|"
    r"oy|ab|as|pty|llp|kg|sarl|spa|sons|bros|group|holdings)\b\.?",
    re.IGNORECASE,
)


def share(texts: Mapping[str, int], test: Callable[[str], object]) -> float:
    """Of texts with their numbers, the share that passes."""
    return sum(n for text, n in texts.items() if test(text)) / max(1, sum(texts.values()))


def plain_words(text: str) -> str:
    """Letters and digits alone, in lower case and without accents, words apart by one space."""
    if not text.isascii():
        text = "".join(
            c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c)
        )
    return " ".join(re.findall(r"[^\W_]+", text.replace("'", "").casefold()))


def digits(text: str) -> str:
    return re.sub(r"\D", "", text)


@lru_cache(1)
def known_names() -> tuple[frozenset[str], frozenset[str]]:
    """Some common given names and surnames, as plain words."""
    from bayeslink.comparing.nicknames import nickname_groups
    from bayeslink.simulation import people

    given = " ".join(
        getattr(people, f"{sex}_{era}")
        for sex in ("FEMALE", "MALE")
        for era in ("OLD", "MID", "NEW")
    ).split()
    return (
        frozenset(plain_words(name.replace("_", " ")) for name in (*given, *nickname_groups())),
        frozenset(plain_words(name.replace("_", " ")) for name in people.SURNAMES.split()),
    )
