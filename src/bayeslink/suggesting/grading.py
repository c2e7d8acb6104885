"""How well proposed fields can tell people apart, by the agreements that chance alone makes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bayeslink.suggesting.column_pairs import ColumnPair

_ENOUGH = 0.05  # chance agreements a record, at most
_LONG = ("text", "list", "address", "company")  # seldom equal in full: not worth all they could be
_AT_MOST = 1e-3  # what an agreement on one of these counts for
_TELLING_TEXT = """
given_name family_name full_name date identifier phone e-mail url text list company address geo
"""
_TELLING = frozenset(kind.replace("_", " ") for kind in _TELLING_TEXT.split())


@dataclass(frozen=True, slots=True)
class Grade:
    """good, fair or poor, and the numbers behind it.

    Attributes
    ----------
    chance
        Records of the larger file that agree with a typical record of the other in all fields
        that both have, by chance.
    without_strongest
        The same where the field that tells most apart is wrong.
    """

    word: str
    chance: float
    without_strongest: float
    strongest: str

    def __str__(self) -> str:
        return (
            f"{self.word}. Chance matches: {_rate(self.chance)}, {_rate(self.without_strongest)} "
            f"where {self.strongest} is wrong."
        )


def grade(pairs: Sequence[ColumnPair], n: tuple[int, int], in_doubt: bool = False) -> Grade:
    """Grade fields by chance agreements a record, as if they were independent.

    Dates of events do not count. Fields are poor where none of them tells people apart, and no
    better than fair where a column that would is `in_doubt`.
    """
    logs = []
    for pair in [pair for pair in pairs if not pair.event] or pairs:
        chance = max(pair.chance, _AT_MOST) if pair.kind in _LONG else pair.chance
        name = pair.settings.get("name", pair.columns[0])
        logs.append((pair.complete[0] * pair.complete[1] * math.log(chance), name))
    most, strongest = min(logs)
    all_agree = max(n) * math.exp(sum(log for log, _ in logs))
    without = all_agree * math.exp(-most)
    word = "good" if without <= _ENOUGH else "fair" if all_agree <= _ENOUGH else "poor"
    if not any(pair.kind in _TELLING and not pair.event for pair in pairs):
        word = "poor"
    elif in_doubt and word == "good":
        word = "fair"
    return Grade(word, all_agree, without, strongest)


def _rate(number: float) -> str:
    """Matches by chance in words: some for a record, or one for so many records."""
    if number >= 1:
        return f"{float(f'{number:.1g}'):,.0f} per record"
    return f"1 in {float(f'{1 / number:.1g}'):,.0f} records" if number > 1e-12 else "none"
