"""Names of people: short forms, initials, several words, titles, and what sounds alike."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from bayeslink.comparing.field_checks import FAMILY, GIVEN, GIVEN_LAST
from bayeslink.comparing.nicknames import nickname_groups
from bayeslink.comparing.rules import SAME, Keys, Ladder, Rule, near

_TITLES_TEXT = """
mr mrs ms miss mx dr prof professor sir dame lord lady rev reverend fr sr sra hon capt captain
col maj lt sgt herr frau mme mlle don dona
"""
_TITLES = frozenset(_TITLES_TEXT.split())
_SUFFIXES = frozenset(["jr", "sr", "ii", "iii", "iv", "snr", "jnr", "phd", "md", "esq", "esquire"])
_PARTICLES_TEXT = """
de da do dos das di del della der den des du la le el al van von zu zur ten ter bin ibn y e and
of the st
"""
_PARTICLES = frozenset(_PARTICLES_TEXT.split())
_SOUNDS = tuple(
    (re.compile(pattern), sound)
    for pattern, sound in (
        (r"^(?:kn|gn)", "n"), (r"^wr", "r"), (r"^ps", "s"), (r"^x", "s"), (r"ph", "f"),
        (r"(?:sch|sh|tch|ch|cz|sz|tsch)", "s"), (r"(?:ck|cq|qu|q)", "k"), (r"c(?=[eiy])", "s"),
        (r"c", "k"), (r"dg(?=[eiy])", "j"), (r"gh(?=t|$)", ""), (r"gh", "g"), (r"g(?=[eiy])", "j"),
        (r"mb$", "m"), (r"[zs]+", "s"), (r"[dt]+h?", "t"), (r"[vw]", "f"), (r"x", "ks"),
        (r"(?<=.)h", ""),
    )
)  # fmt: skip
LABELS = (
    "different",
    "distance ≤ 0.5",
    "initial",
    "sounds alike",
    "distance ≤ 0.25",
    "short form or a word in common",
    "equal",
)


def bare_name(text: str) -> str:
    """Without titles and suffixes, unless nothing else is there; family name, comma turned."""
    words = text.split()
    kept = [
        word
        for k, word in enumerate(words)
        if not (word in _TITLES and k == 0) and not (word in _SUFFIXES and k > 0)
    ]
    return " ".join(kept or words)


def name_part(text: str, part: str) -> str:
    """The given or the family name in a whole one; "" if it has one word only, and no given name.

    A family name stands before a comma. Without one, it is the last word of all, or the first, with
    such as "van der" before it.

    >>> name_part("van der Berg, Anna", "given"), name_part("Anna van der Berg", "family")
    ('Anna', 'van der Berg')
    """
    head, _, tail = (side.split() for side in text.partition(","))
    if all(map(_is_suffix, tail)):  # John Smith, Jr.
        words = [word for word in head if not _is_suffix(word)] or head
        head, tail = _family_last(words) if part in (GIVEN, FAMILY) else _family_first(words)
    return " ".join(tail if part in (GIVEN, GIVEN_LAST) else head)


def _family_last(words: list[str]) -> tuple[list[str], list[str]]:
    """Family name and given names."""
    k = len(words) - 1
    while k > 1 and words[k - 1].casefold() in _PARTICLES:
        k -= 1
    return words[max(k, 0) :], words[: max(k, 0)]


def _family_first(words: list[str]) -> tuple[list[str], list[str]]:
    k = 1
    while k < len(words) - 1 and words[k - 1].casefold() in _PARTICLES:
        k += 1
    return words[:k], words[k:]


def _is_suffix(word: str) -> bool:
    return word.strip(".,").casefold() in _SUFFIXES


def sound(word: str) -> str:
    """About how a word sounds: its consonants, alike ones as one."""
    for pattern, replacement in _SOUNDS:
        word = pattern.sub(replacement, word)
    head, rest = word[:1], re.sub(r"[aeiouyäöüàáâãåèéêëìíîïòóôõùúûýÿ]", "", word[1:])
    head = "a" if head in "aeiouy" else head
    return re.sub(r"(.)\1+", r"\1", head + rest)


@cache
def name_ladder(nicknames: tuple[tuple[str, ...], ...]) -> Ladder:
    """The rules, with further lines of forms that one person may go by."""
    groups = nickname_groups(nicknames)

    def short_forms(name: str) -> set[str]:
        """Groups of the whole name and, in a name of several words, of its first."""
        return {"#" + g for part in {name, name.split()[0]} for g in groups.get(part, ())}

    def parts(name: str) -> set[str]:
        words = name.split()
        found = {w for w in words if len(w) > 2 and w not in _PARTICLES}
        return {" ".join(sorted(words)), *found, "".join(words)}

    def either(name: str) -> set[str]:
        return short_forms(name) | parts(name)

    def initials(name: str, full: str, short: str) -> Iterable[str]:
        """A name of one letter, and names that begin with it, have keys that meet across files."""
        return [(short if len(name) == 1 else full) + name[0]]

    def sounds(name: str) -> list[str]:
        code = sound(name.replace(" ", ""))
        return [code] if len(code) > 1 else []

    initial: Rule = Keys(lambda n: initials(n, "f", "s"), lambda n: initials(n, "s", "f"))
    rules = (SAME, Keys(either), near(0.25, 0.5), Keys(sounds), initial)
    return Ladder(rules, ((7,), (6,), (2, 5), (4,), (3,)))
