"""Values as a person must see them: every difference marked, nothing invisible.

A value becomes a list of segments (kind, text), which the page shows each in its own way:

same    as it stands, and as in the other record
other   as it stands, but not so in the other record
gap     nothing: the other record has further characters here
label   the name of a character that could not be seen, or of the writing that letters belong to
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence

from rapidfuzz.distance import Levenshtein

from bayeslink.comparing.comparisons import normalise

Segment = tuple[str, str]

LONGEST = 600  # characters of a value that are shown
_MARKS = 3  # accents on one letter; more are a prank, and are named one by one
_ALIKE = 0.4  # below this similarity the whole of a value is marked
_DATE = re.compile(r"\d{1,4}([-./ ])\d{1,2}\1\d{1,4}")  # in figures, whatever comes first
# Letters, symbols and accents without a picture
_BLANK = "\u115f\u1160\u2800\u3164\uffa0\u034f\u180b\u180c\u180d\u180f"
_EAST_ASIAN = ("CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "HANGUL", "BOPOMOFO")


def visible(text: str, usual: str = "LATIN") -> list[Segment]:
    """A value by itself; `usual` is the writing that needs no label."""
    pieces, rest = _pieces(text)
    return _segments(((piece, "same") for piece in pieces), usual) + rest


def compared(text: str, other: str, steps: Sequence[str], usual: str = "LATIN") -> list[Segment]:
    """A value with its differences from another, evened out by a field's normalisation steps.

    Letters that differ only in what these steps even out, such as case, are not marked; of dates
    that are written in different orders, the day, month or year that the other has not.
    """
    if _DATE.fullmatch(text) and _DATE.fullmatch(other) and _shape(text) != _shape(other):
        return _date_parts(text, other)
    pieces, rest = _pieces(text)
    keys, other_keys = ([_key(p, steps) for p in side] for side in (pieces, _pieces(other)[0]))
    changes = Levenshtein.opcodes(other_keys, keys)
    alike = Levenshtein.normalized_similarity(other_keys, keys)
    marked: list[tuple[str, str]] = []
    for change in changes if alike >= _ALIKE else ():
        if change.tag == "delete":
            marked.append(("", "gap"))
        kind = "same" if change.tag == "equal" else "other"
        marked += [(piece, kind) for piece in pieces[change.dest_start : change.dest_end]]
    return _segments(marked or [(piece, "other") for piece in pieces], usual) + rest


def _shape(text: str) -> str:
    return re.sub(r"\d", "0", text)


def _date_parts(text: str, other: str) -> list[Segment]:
    theirs = Counter(map(int, re.findall(r"\d+", other)))
    found: list[Segment] = []
    for part in re.findall(r"\d+|\D", text):
        known = not part.isdigit() or theirs[int(part)] > 0
        if part.isdigit():
            theirs[int(part)] -= 1
        found.append(("same" if known else "other", part))
    return found


def same(text: str, other: str, steps: Sequence[str]) -> bool:
    """Whether two values have no difference that `compared` would mark."""
    mine, others = ([_key(p, steps) for p in _pieces(side)[0]] for side in (text, other))
    return mine == others and len(text[LONGEST:]) == len(other[LONGEST:])


def usual_writing(texts: Iterable[str]) -> str:
    """The writing (LATIN, CYRILLIC, …) of most letters."""
    found = Counter(writing for text in texts for c in text[:LONGEST] if (writing := _writing(c)))
    return max(found, key=lambda writing: (found[writing], writing == "LATIN"), default="LATIN")


def _pieces(text: str) -> tuple[list[str], list[Segment]]:
    """Letters with their accents, and a remark on what is left out."""
    pieces: list[str] = []
    for c in text[:LONGEST]:
        bare = not pieces or _is_hidden(pieces[-1]) or len(pieces[-1]) > _MARKS
        if _is_accent(c) and not bare:
            pieces[-1] += c
        else:
            pieces.append(c)
    more = len(text) - LONGEST
    return pieces, [("label", f"{more:,} more characters")] if more > 0 else []


def _key(piece: str, steps: Sequence[str]) -> str:
    """What two pieces are compared by: white space and punctuation stay as they are."""
    return normalise(piece, [step for step in steps if step in ("unicode", "case", "accents")])


def _segments(marked: Iterable[tuple[str, str]], usual: str) -> list[Segment]:
    """Join pieces of one kind; name what cannot be seen, and writing that is not the usual."""
    out: list[Segment] = []
    foreign = ""  # the writing of the letters just passed, if it is not the usual

    def put(kind: str, text: str) -> None:
        if out and out[-1][0] == kind and kind in ("same", "other"):
            out[-1] = (kind, out[-1][1] + text)
        else:
            out.append((kind, text))

    pieces = list(marked)
    for position, (piece, kind) in enumerate(pieces):
        writing = _writing(piece[:1])
        if foreign and writing != foreign:
            put("label", foreign.capitalize())
        foreign = writing if writing not in ("", usual) else ""
        if piece and (_is_hidden(piece) or _is_accent(piece[0])):
            put("label", _name(piece))
        elif piece == " " and _is_stray(pieces, position):
            put("label", "space")
        else:
            put(kind, piece)
    if foreign:
        put("label", foreign.capitalize())
    return out


def _is_stray(pieces: Sequence[tuple[str, str]], position: int) -> bool:
    """Whether a space is at either end or follows another: the browser would not show it."""
    at_end = position in (0, len(pieces) - 1)
    return at_end or pieces[position - 1][0] == " "


def _is_accent(c: str) -> bool:
    return unicodedata.category(c)[0] == "M" and not _is_hidden(c)


def _is_hidden(piece: str) -> bool:
    c = piece[0]
    category = unicodedata.category(c)
    return (
        category[0] == "C"
        or (category[0] == "Z" and c != " ")
        or c in _BLANK
        or "\ufe00" <= c <= "\ufe0f"  # variation selectors
        or "\U000e0100" <= c <= "\U000e01ef"
    )


def _name(c: str) -> str:
    """U+200B and, where it has one, its name."""
    named = unicodedata.name(c, "").lower()
    return f"U+{ord(c):04X} {named}".rstrip()


def _writing(c: str) -> str:
    """The writing that a letter belongs to, from its name; empty if it is no letter."""
    if not c or unicodedata.category(c)[0] != "L" or _is_hidden(c):
        return ""
    first = unicodedata.name(c, "").partition(" ")[0]
    return "CJK" if first.startswith(_EAST_ASIAN) else first
