"""How well proposed fields can tell people apart, by the agreements that chance alone makes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bayeslink.suggesting.pairing import ColumnPair

_GOOD, _FAIR = 0.05, 0.05
_LONG = ("text", "list", "address", "company")  # seldom equal in full: not worth all they could be
_AT_MOST = 1e-3  # what an agreement on one of these counts for


@dataclass(frozen=True, slots=True)
class Grade:
    """good, fair or poor, and the numbers behind it.

    Attributes
    ----------
    chance
        Records of the larger file that agree with a record of the other in all fields by chance,
        a missing value agreeing with any.
    without_strongest
        The same where the field that tells most apart is wrong or missing.
    """

    word: str
    chance: float
    without_strongest: float
    strongest: str

    def __str__(self) -> str:
        return (
            f"{self.word}: with a record, {_count(self.chance)} others agree in all fields by "
            f"chance, and {_count(self.without_strongest)} where {self.strongest} is wrong."
        )


def grade(pairs: Sequence[ColumnPair], n: tuple[int, int]) -> Grade:
    """Grade fields by chance agreements a record, as if they were independent."""
    agree = {}
    for pair in pairs:
        both = pair.complete[0] * pair.complete[1]
        chance = max(pair.chance, _AT_MOST) if pair.kind in _LONG else pair.chance
        agree[pair.columns[0]] = both * chance + 1 - both
    strongest = min(agree, key=lambda name: agree[name]) if agree else "no field"
    all_agree = float(max(n))
    for share in agree.values():
        all_agree *= share
    without = all_agree / agree[strongest] if agree else all_agree
    word = "good" if without <= _GOOD else "fair" if all_agree <= _FAIR else "poor"
    return Grade(word, all_agree, without, strongest)


def _count(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}" if number >= 1e-4 else "hardly any"
