"""A column of whole names as two, where the other file has given and family names apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from bayeslink.comparing.field_checks import FAMILY, FAMILY_FIRST, GIVEN, GIVEN_LAST
from bayeslink.comparing.names import name_part
from bayeslink.suggesting.profiles import Profile
from bayeslink.suggesting.shapes import plain_words

_TIMES = 2  # as many parts as names of their own kind as of the other, so that a split is sure


class NamePart(NamedTuple):
    """A part of a column of whole names, as a column."""

    profile: Profile
    part: str


def split_name(
    whole: Profile, parts: Sequence[Profile], second: Profile | None = None
) -> list[tuple[NamePart, Profile]]:
    """Each part with the column of the other file that is like it, the given name first.

    Without a comma either name may come first: the one is taken by which more parts are known as
    such. None if even so they are not. `second`: the second family names, as people have in Spain.
    """
    if second is not None and (cut := _with_both_surnames(whole, (parts[1], second))):
        return [
            (NamePart(_part_of(whole, p), p), o) for p, o in zip(cut, (*parts, second), strict=True)
        ]
    known = [{*p.present} for p in parts]
    best, most = [], 0
    for names in ((GIVEN, FAMILY), (GIVEN_LAST, FAMILY_FIRST)):
        found = [_part_of(whole, name) for name in names]
        right, wrong = (
            sum(key in known[j] for p, j in zip(found, order, strict=True) for key in p.present)
            for order in ((0, 1), (1, 0))
        )
        if right > max(most, _TIMES * wrong):
            best, most = [*map(NamePart, found, names)], right
    return [*zip(best, parts, strict=False)]


def _with_both_surnames(whole: Profile, surnames: Sequence[Profile]) -> tuple[str, ...]:
    """The parts with the given name, the first and the second surname, if most cells hold both.

    Of the three only one can be cut off; the others are words of what is left.
    """
    known = {key for p in surnames for key in p.present}
    before_comma = (GIVEN, FAMILY, FAMILY)
    first, last = (GIVEN_LAST, FAMILY_FIRST, GIVEN_LAST), (GIVEN, GIVEN, FAMILY)
    found: Counter[tuple[str, ...]] = Counter()
    for cell in filter(None, whole.cells):
        head, comma, _ = cell.partition(",")
        words = plain_words(head).split()
        if comma:
            found[before_comma] += len(words) > 1 and known.issuperset(words)
        elif len(words) > 2:
            found[first] += known.issuperset(words[:2])
            found[last] += known.issuperset(words[-2:])
    cut, times = found.most_common(1)[0] if found else ((), 0)
    return cut if times > 0.5 * len(whole.present) else ()


def _part_of(whole: Profile, part: str) -> Profile:
    keys = [plain_words(name_part(cell, part)) or None if cell else None for cell in whole.cells]
    counts = Counter(key for key in keys if key)
    n, same = counts.total(), sum(k * (k - 1) for k in counts.values())
    return replace(
        whole,
        kind="given name" if part in (GIVEN, GIVEN_LAST) else "family name",
        thing=None,
        n_distinct=len(counts),
        chance=(same + 1) / (n * (n - 1) + 1) if n else 1.0,
        complete=whole.complete * n / max(1, len(whole.present)),
        unique=False,
        keys=keys,
    )
