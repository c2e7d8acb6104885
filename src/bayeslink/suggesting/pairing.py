"""Which columns of A and of B hold the same thing: by their names, and by values in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bayeslink.suggesting.column_names import of_whom, similarity
from bayeslink.suggesting.profiles import Profile

# Kinds by how much they say, where one column is taken for one and its partner for another.
_RANK_TEXT = """
date e-mail url phone postcode identifier age number year house_number code latitude longitude
text company full_name given_name family_name middle_name address street list place words
category
"""
_RANK = _RANK_TEXT.split()
KINDS = tuple(kind.replace("_", " ") for kind in _RANK)
_OF_CODES = frozenset(
    ("phone", "postcode", "identifier", "age", "number", "year", "house number", "code", "category")
)
_OF_WORDS = frozenset(KINDS[KINDS.index("text") :])
_KEYS = ("phone", "e-mail", "postcode", "identifier", "url")  # different people, different values
_SAME_NAME, _NAMES_ALIKE = 0.85, 0.5
_WHOLE_OF_PARTS = {
    "full name": ("given name", "family name"),
    "address": ("house number", "street"),
}


@dataclass(frozen=True, slots=True)
class ColumnPair:
    """Columns of A and of B that hold the same thing; several of a side are joined."""

    a: tuple[Profile, ...]
    b: tuple[Profile, ...]
    kind: str
    shared: float  # share of the values of one file that the other has too, the larger of both
    why: str

    @property
    def sides(self) -> tuple[tuple[Profile, ...], tuple[Profile, ...]]:
        return self.a, self.b

    @property
    def columns(self) -> tuple[str, str]:
        """Names to show: those of a side joined by a plus."""
        a, b = (" + ".join(profile.name for profile in side) for side in self.sides)
        return a, b

    @property
    def complete(self) -> tuple[float, float]:
        a, b = (min(profile.complete for profile in side) for side in self.sides)
        return a, b

    @property
    def chance(self) -> float:
        """That two different people agree."""
        product = 1.0
        for profile in max(self.sides, key=len):
            product *= profile.chance
        other = min(self.sides, key=len)
        return max(product, other[0].chance) if len(self.a) == len(self.b) else product


def pair_columns(
    a: Sequence[Profile], b: Sequence[Profile], sampled: tuple[float, float]
) -> list[ColumnPair]:
    """Pairs of columns, the surest first taken; `sampled`: the share of rows looked at."""
    usable = [[p for p in side if p.kind not in ("empty", "constant")] for side in (a, b)]
    scored = []
    for x in usable[0]:
        for y in usable[1]:
            alike = similarity(x.name, y.name)
            shared = values_in_common(x, y, sampled)
            if _compatible(x.kind, y.kind) and (why := _why(x, y, alike, shared)):
                score = alike + 0.8 * shared + 0.2 * (x.kind == y.kind)
                scored.append(
                    (score, ColumnPair((x,), (y,), _common_kind(x, y, shared), shared, why))
                )
    scored.sort(key=lambda entry: -entry[0])
    taken: set[tuple[int, str]] = set()
    pairs = []
    for _, pair in scored:
        names = {(0, pair.a[0].name), (1, pair.b[0].name)}
        if not names & taken:
            taken |= names
            pairs.append(pair)
    left = [[p for p in side if (k, p.name) not in taken] for k, side in enumerate(usable)]
    pairs += _wholes_and_parts(left[0], left[1])
    pairs += _streets(pairs, left[0], left[1])
    order = {p.name: k for k, p in enumerate(a)}
    return sorted(pairs, key=lambda pair: order[pair.a[0].name])


def pair_named(x: Profile, y: Profile, sampled: tuple[float, float]) -> ColumnPair | None:
    """Two columns that the user takes for the same thing; None if their values speak against it."""
    if {x.kind, y.kind} & {"empty", "constant"} or not _compatible(x.kind, y.kind):
        return None
    shared = values_in_common(x, y, sampled)
    return ColumnPair((x,), (y,), _common_kind(x, y, shared), shared, "named by the user")


def values_in_common(x: Profile, y: Profile, sampled: tuple[float, float]) -> float:
    """Share of the cells of a file whose value the other file has, too; the larger of both."""
    if not x.present or not y.present:
        return 0.0
    found = []
    for one, other, share in ((x, y, sampled[1]), (y, x, sampled[0])):
        known = {*other.present}
        hits = sum(key in known for key in one.present) / len(one.present)
        # Of values that are all different, a sample holds only its share.
        different = other.n_distinct / len(other.present)
        found.append(min(1.0, hits / (share * different + 1 - different)))
    return max(found)


def _compatible(x: str, y: str) -> bool:
    return x == y or any({x, y} <= group for group in (_OF_CODES, _OF_WORDS))


def _common_kind(x: Profile, y: Profile, shared: float) -> str:
    kind = min(x.kind, y.kind, key=KINDS.index)
    if shared == 0 and kind in ("category", "words", "place"):
        if _are_initials(x, y) or _are_initials(y, x):
            return "initials"
        words = [{word for key in {*p.present} for word in key.split()} for p in (x, y)]
        return "text" if words[0] & words[1] else kind
    return kind


def _are_initials(x: Profile, y: Profile) -> bool:
    """Whether the values of x are the first letters of those of y: M and F, male and female."""
    letters, values = {*x.present}, {*y.present}
    firsts = [value[0] for value in values]
    return all(len(letter) == 1 for letter in letters) and len({*firsts} & letters) > 1


def _why(x: Profile, y: Profile, alike: float, shared: float) -> str | None:
    """Why two columns are taken for the same thing; None if they are not."""
    if alike == 1:
        return "of the same name"
    if alike >= _SAME_NAME:
        return "two names of the same thing"
    if alike >= _NAMES_ALIKE and shared >= 0.1:
        return "with names alike and values in common"
    if (x.thing and y.thing) or of_whom(x.name) != of_whom(y.name) or x.kind != y.kind:
        return None
    if x.kind in _KEYS:
        return "with values in common" if shared >= 0.1 else None
    few = min(x.n_distinct, y.n_distinct) < 20
    same_values = {*x.present} == {*y.present} and x.n_distinct > 2
    return "with values in common" if (same_values if few else shared >= 0.5) else None


def _made_of(whole: Profile, parts: Sequence[Profile]) -> bool:
    """Whether cells mostly consist of words that the parts have, two or more of them."""
    known = {word for part in parts for key in part.present for word in key.split()}
    split = [key.split() for key in whole.present]
    inside = sum(len(found) > 1 and known.issuperset(found) for found in split)
    return whole.kind in ("text", "words", "list") and inside > 0.5 * len(split)


def _wholes_and_parts(a: Sequence[Profile], b: Sequence[Profile]) -> list[ColumnPair]:
    """A full name against a first and a last name, an address against number and street."""
    found = []
    for whole, parts in _WHOLE_OF_PARTS.items():
        for side, (one, other) in enumerate(((a, b), (b, a))):
            apart = [[p for p in other if p.kind == part and not of_whom(p.name)] for part in parts]
            if not all(apart):
                continue
            known = [p[0] for p in apart]
            at_once = [
                p for p in one if not of_whom(p.name) and (p.kind == whole or _made_of(p, known))
            ]
            if at_once:
                sides: list[tuple[Profile, ...]] = [(at_once[0],), tuple(p[0] for p in apart)]
                why = f"a {whole} on one side, its parts on the other"
                x, y = sides if side == 0 else sides[::-1]
                found.append(ColumnPair(x, y, whole, 0.0, why))
    return found


def _streets(
    found: Sequence[ColumnPair], a: Sequence[Profile], b: Sequence[Profile]
) -> list[ColumnPair]:
    """A column called street against one called address, where neither has another partner."""
    sides = []
    for k, side in enumerate((a, b)):
        taken = {p.name for pair in found for p in pair.sides[k]}
        sides.append(
            [
                p
                for p in side
                if p.thing in ("street", "address") and not of_whom(p.name) and p.name not in taken
            ]
        )
    if [len(side) for side in sides] != [1, 1]:
        return []
    (x,), (y,) = sides
    why = "a street on one side, an address on the other"
    return [ColumnPair((x,), (y,), "address", 0.0, why)]
