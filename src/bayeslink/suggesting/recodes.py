"""Categories written in different codes: which value of one file goes with which of the other.

Likely pairs of records tell. Without them, words for the sexes do, and the codes of ISO 5218.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from bayeslink.suggesting.column_names import of_whom
from bayeslink.suggesting.column_pairs import ColumnPair
from bayeslink.suggesting.likely_pairs import ENOUGH, LikelyPairs
from bayeslink.suggesting.profiles import Profile

_MOST = 12  # values of a column
_FEW = 6  # of one whose name says nothing
_TIMES = 5  # pairs in which a value goes with another, at least
_MOSTLY = 0.6  # of the pairs of a value
_NEARLY_ALL = 0.9
_SAYS_NOTHING = 0.75  # chance of agreement
_MALE_TEXT = "m male man h homme hombre mann mannlich masculin masculino maschio uomo 1"
_FEMALE_TEXT = "f female woman w femme mujer frau weiblich feminin femenino femmina donna 2"
_MALE, _FEMALE = (frozenset(words.split()) for words in (_MALE_TEXT, _FEMALE_TEXT))
_CODED = ("category", "code", "words", "initials", "number", "given name", "family name", "place")


def recoded(pair: ColumnPair, likely: LikelyPairs) -> ColumnPair:
    """A pair of categories with what the values of one file stand for, where they differ."""
    if pair.settings or pair.kind not in _CODED or len(pair.a) + len(pair.b) > 2:
        return pair
    x, y = pair.a[0], pair.b[0]
    sets = {*x.present}, {*y.present}
    if max(map(len, sets)) > _MOST or (sets[0] == sets[1] and not _turned(pair, likely)):
        return pair
    if pair.kind == "initials" and not any(key.isdigit() for side in sets for key in side):
        return pair
    side = _side_to_change(x, y)
    meant = _by_counts(pair, side, likely)
    if meant is None and x.thing == y.thing == "sex":
        meant = _by_words(pair, side)
    return pair if not meant else _with_recode(pair, side, meant)


def recoded_apart(
    a: Sequence[Profile], b: Sequence[Profile], likely: LikelyPairs
) -> list[ColumnPair]:
    """Pairs of categories of other names and values, of which each goes with one of the other."""
    found = []
    taken: set[str] = set()
    for x in (p for p in a if _may_be_coded(p)):
        for y in (q for q in b if _may_be_coded(q) and q.name not in taken):
            if (x.thing and y.thing and x.thing != y.thing) or of_whom(x.name) != of_whom(y.name):
                continue
            pair = ColumnPair((x,), (y,), "category", 0.0, "whose values go together")
            side = _side_to_change(x, y)
            meant = _by_counts(pair, side, likely, strictly=True)
            if meant:
                found.append(_with_recode(pair, side, meant))
                taken.add(y.name)
                break
    return found


def _may_be_coded(p: Profile) -> bool:
    return p.kind == "category" and 2 <= p.n_distinct <= _FEW


def _side_to_change(x: Profile, y: Profile) -> int:
    """The side with numbers for values, B if both or none."""
    return 0 if _are_digits(x) and not _are_digits(y) else 1


def _are_digits(p: Profile) -> bool:
    return all(map(str.isdigit, p.present))


def _turned(pair: ColumnPair, likely: LikelyPairs) -> bool:
    """Whether the same values mean other things, as 1 and 2 may."""
    found = likely.agreement(pair.a[0], pair.b[0])
    return found.n >= ENOUGH and found.share < 0.5 * min(found.chance, _SAYS_NOTHING)


def _by_counts(
    pair: ColumnPair, side: int, likely: LikelyPairs, *, strictly: bool = False
) -> dict[str, str] | None:
    """What each value of a side stands for, by likely pairs; None if there are too few."""
    rows = likely.rows(pair.a[0], pair.b[0])
    own, other = pair.sides[side][0].keys, pair.sides[1 - side][0].keys
    cells = zip(rows[side].tolist(), rows[1 - side].tolist(), strict=True)
    counts = Counter((own[i], other[j]) for i, j in cells if own[i] and other[j])
    if counts.total() < (3 * ENOUGH if strictly else ENOUGH):
        return None
    meant: dict[str, str] = {}
    agree = 0
    for value in {v for v, _ in counts}:
        goes_with = Counter({w: n for (v, w), n in counts.items() if v == value})
        meaning, n = goes_with.most_common(1)[0]
        if n >= _TIMES and n >= _MOSTLY * goes_with.total():
            meant[str(value)] = str(meaning)
            agree += n
    chance = sum(
        (sum(n for (_, v), n in counts.items() if v == w) / counts.total()) ** 2
        for w in {w for _, w in counts}
    )
    if len({*meant.values()}) < 2:
        return {}
    if strictly and (agree < _NEARLY_ALL * counts.total() or chance > _SAYS_NOTHING):
        return {}
    return {v: w for v, w in meant.items() if v != w}


def _by_words(pair: ColumnPair, side: int) -> dict[str, str]:
    own, other = ({*pair.sides[s][0].present} for s in (side, 1 - side))
    sexes = {_sex(value, other): value for value in sorted(other)}
    meant = {value: sexes.get(_sex(value, own)) for value in sorted(own)}
    return {v: w for v, w in meant.items() if w and v != w and _sex(v, own)}


def _sex(value: str, among: set[str]) -> str | None:
    if value == "m" and "h" in among and "f" not in among:  # mujer
        return "f"
    return "m" if value in _MALE else "f" if value in _FEMALE else None


def _with_recode(pair: ColumnPair, side: int, meant: Mapping[str, str]) -> ColumnPair:
    own, other = (_as_written(pair.sides[s][0]) for s in (side, 1 - side))
    table = {own[v]: other[w] for v, w in sorted(meant.items())}
    clash = any(v in other for v in meant)
    recode: Any = table
    if clash:  # what a value means depends on the file
        recode = ({}, table) if side else (table, {})
    said = ", ".join(f"{v} = {w}" for v, w in table.items())
    return replace(
        pair, kind="category", shared=1.0, why=f"{pair.why}, {said}", settings={"recode": recode}
    )


def _as_written(p: Profile) -> dict[str, str]:
    """How each value is mostly written."""
    written: dict[str, Counter[str]] = {}
    for key, cell in zip(p.keys, p.cells, strict=True):
        if key and cell:
            written.setdefault(key, Counter())[cell] += 1
    return {key: counts.most_common(1)[0][0] for key, counts in written.items()}
