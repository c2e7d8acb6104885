"""The entries of docs/reference/warnings.md."""

import re
from functools import cache

from tests.docs.blocks import ROOT


@cache
def entries():
    """The warnings that the page explains; … stands for anything."""
    page = (ROOT / "docs" / "reference" / "warnings.md").read_text("utf-8")
    return [_plain(text) for text in re.findall(r"^> (.*)$", page, re.MULTILINE)]


def undocumented(warnings):
    """Those without an entry; of several in one sentence, with a semicolon between, each counts."""
    return [text for text in warnings if not (_known(text) or all(map(_known, text.split("; "))))]


def _known(text):
    """Whether an entry says this, or, where the text itself leaves something open, it says that."""
    said = _plain(text)
    return any(_pattern(e).fullmatch(said) or _pattern(said).fullmatch(e) for e in entries())


@cache
def _pattern(text):
    return re.compile(".*".join(map(re.escape, text.split("…"))), re.DOTALL)


def _plain(text):
    return text[:1].upper() + text[1:].rstrip(".")
