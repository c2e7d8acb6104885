"""Which columns of A and of B hold the same thing: by their names, and by values in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from bayeslink.suggesting.births import joined_dates
from bayeslink.suggesting.column_names import EVENTS, of_whom, similarity, thing, words
from bayeslink.suggesting.column_pairs import ColumnPair
from bayeslink.suggesting.likely_pairs import LikelyPairs
from bayeslink.suggesting.profiles import Profile
from bayeslink.suggesting.recodes import recoded, recoded_apart
from bayeslink.suggesting.shapes import plain_words
from bayeslink.suggesting.split_names import NamePart, split_name
from bayeslink.suggesting.units import as_places, with_units

# Kinds by how much they say, where one column is taken for one and its partner for another.
_RANK_TEXT = """
date e-mail url phone postcode identifier age number year house_number code latitude longitude
text company full_name given_name family_name second_family_name middle_name address street list
place words category
"""
_RANK = _RANK_TEXT.split()
KINDS = tuple(kind.replace("_", " ") for kind in _RANK)
_OF_CODES = frozenset(
    ("phone", "postcode", "identifier", "age", "number", "year", "house number", "code", "category")
)
_OF_WORDS = frozenset(KINDS[KINDS.index("text") :])
_KEYS = ("phone", "e-mail", "postcode", "identifier", "url")  # different people, different values
_SAME_NAME, _NAMES_ALIKE = 0.85, 0.5
_NEARLY_ALWAYS = 0.8  # agreement from which even names of different things mean the same
_CODES_AND_NUMBERS = ({"number", "code"}, {"number", "category"})
_SELDOM_EQUAL = {"text", "address", "street", "company", "list", "number"}
_TEXTS = ("text", "address", "street", "company", "list", "words")
_AGREE = "which agree where other columns do"
_WHOLE_OF_PARTS = {
    "full name": ("given name", "family name"),
    "address": ("house number", "street"),
}


def pair_columns(
    a: Sequence[Profile], b: Sequence[Profile], sampled: tuple[float, float]
) -> list[ColumnPair]:
    """Pairs of columns, the surest first taken; `sampled`: the share of rows looked at."""
    usable = [[p for p in side if p.kind not in ("empty", "constant")] for side in (a, b)]
    apart = [joined_dates(side) for side in usable]
    if all(apart):  # written alike: the parts are compared one by one
        apart = [[], []]
    pool = [[*side, *dates] for side, dates in zip(usable, apart, strict=True)]
    shared = {
        (x.name, y.name): values_in_common(x, y, sampled)
        for x in pool[0]
        for y in pool[1]
        if _compatible(x.kind, y.kind)
    }
    likely = _likely_pairs(pool[0], pool[1], shared, sampled)
    pairs = _best_first(_scored(pool[0], pool[1], shared, likely))
    taken = [{c for pair in pairs for c in pair.all_columns[side]} for side in (0, 1)]
    left = [[p for p in side if p.name not in taken[k]] for k, side in enumerate(usable)]
    pairs += _wholes_and_parts(left[0], left[1], sampled)
    pairs += _streets(pairs, left[0], left[1])
    pairs += _births_and_years(left[0], left[1])
    pairs += _last_texts(pairs, left[0], left[1])
    pairs += recoded_apart(left[0], left[1], likely)
    pairs = [with_units(recoded(pair, likely), likely) for pair in as_places(pairs)]
    order = {p.name: k for k, p in enumerate(a)}
    return sorted(pairs, key=lambda pair: order[pair.all_columns[0][0]])


def _likely_pairs(
    a: Sequence[Profile],
    b: Sequence[Profile],
    shared: Mapping[tuple[str, str], float],
    sampled: tuple[float, float],
) -> LikelyPairs:
    """Likely pairs by all these columns, and by full names against their parts."""
    wholes = [[*side, *_full_names(side)] for side in (a, b)]
    names = {
        (x.name, y.name): values_in_common(x, y, sampled)
        for x in wholes[0]
        for y in wholes[1]
        if x.kind == y.kind == "full name" and len(x.columns) + len(y.columns) == 3
    }
    return LikelyPairs(wholes[0], wholes[1], {**shared, **names})


def _full_names(profiles: Sequence[Profile]) -> list[Profile]:
    """The full names that a given and a family name make, their words in order of the alphabet."""
    parts = [
        next((p for p in profiles if p.kind == kind and not of_whom(p.name)), None)
        for kind in _WHOLE_OF_PARTS["full name"]
    ]
    x, y = parts
    if x is None or y is None:
        return []
    keys = [
        " ".join(sorted(f"{p} {q}".split())) if p and q else None
        for p, q in zip(x.keys, y.keys, strict=True)
    ]
    distinct = len({*keys} - {None})
    return [
        replace(
            x,
            name=f"{x.name} + {y.name}",
            columns=(x.name, y.name),
            kind="full name",
            n_distinct=distinct,
            keys=keys,
        )
    ]


def _scored(
    a: Sequence[Profile],
    b: Sequence[Profile],
    shared: Mapping[tuple[str, str], float],
    likely: LikelyPairs,
) -> list[tuple[float, ColumnPair]]:
    scored = []
    for x in a:
        for y in b:
            if (x.name, y.name) not in shared or of_whom(x.name) != of_whom(y.name):
                continue
            if _whole_against_part(x, y, b) or _whole_against_part(y, x, a):
                continue
            in_common, alike = shared[x.name, y.name], _alike(x, y)
            found = likely.agreement(x, y)
            judge = _why_dates if x.kind == "date" else _why
            why = judge(x, y, alike, in_common, likely)
            if why:
                score = alike + 0.8 * in_common + 0.2 * (x.kind == y.kind)
                score += found.share * found.together + (len(x.columns) + len(y.columns) > 2)
                kind = _common_kind(x, y, in_common)
                if kind == "full name" and _in_other_order(x, y, in_common):
                    kind, why = "text", f"{why}, words in another order"
                scored.append((score, ColumnPair((x,), (y,), kind, in_common, why)))
    return sorted(scored, key=lambda entry: -entry[0])


def _in_other_order(x: Profile, y: Profile, shared: float) -> bool:
    """Whether full names are mostly equal only once their words are sorted."""
    as_written = {plain_words(cell) for cell in x.cells if cell}
    same = sum(plain_words(cell) in as_written for cell in y.cells if cell)
    return shared > 0.05 and same < 0.5 * shared * max(1, len(y.present))


def _whole_against_part(whole: Profile, part: Profile, beside: Sequence[Profile]) -> bool:
    """Whether one is a full name and the other a part of one, whose other part is there, too."""
    parts = _WHOLE_OF_PARTS["full name"]
    kinds = {p.kind for p in beside}
    return whole.kind == "full name" and part.kind in parts and kinds.issuperset(parts)


def _alike(x: Profile, y: Profile) -> float:
    """How alike the names are, where one may mean another thing beside the others of its file."""
    alike = similarity(x.name, y.name)
    if alike == 1 or (x.thing == thing(x.name) and y.thing == thing(y.name)):
        return alike
    return 0.9 if x.thing == y.thing else min(alike, 0.3)


def _best_first(scored: Sequence[tuple[float, ColumnPair]]) -> list[ColumnPair]:
    taken: set[tuple[int, str]] = set()
    pairs = []
    for _, pair in scored:
        names = {(side, c) for side in (0, 1) for c in pair.all_columns[side]}
        if not names & taken:
            taken |= names
            pairs.append(pair)
    return pairs


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
    if {x.kind, y.kind} in _CODES_AND_NUMBERS and shared >= 0.5:  # slips made sizes of codes
        return "code"
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


def _why(x: Profile, y: Profile, alike: float, shared: float, likely: LikelyPairs) -> str | None:
    """Why two columns are taken for the same thing; None if they are not."""
    found = likely.agreement(x, y)
    if alike == 1:
        return "of the same name"
    if alike >= _SAME_NAME:
        return "two names of the same thing"
    if found.by_chance and not {x.kind, y.kind} & _SELDOM_EQUAL:
        return None
    if alike >= _NAMES_ALIKE and shared >= 0.1:
        return "with names alike and values in common"
    if found.together and (not (x.thing and y.thing) or found.share >= _NEARLY_ALWAYS):
        return _AGREE
    if (x.thing and y.thing) or x.kind != y.kind:
        return None
    if x.kind in _KEYS:
        return "with values in common" if shared >= 0.1 else None
    few = min(x.n_distinct, y.n_distinct) < 20
    same_values = {*x.present} == {*y.present} and x.n_distinct > 2
    return "with values in common" if (same_values if few else shared >= 0.5) else None


def _why_dates(
    x: Profile, y: Profile, alike: float, shared: float, likely: LikelyPairs
) -> str | None:
    """The same of dates: a birth is no event, and no two events are taken for the same one."""
    same_name, found = words(x.name) == words(y.name), likely.agreement(x, y)
    if x.event and y.event:
        same_event = x.thing in EVENTS and x.thing == y.thing
        if not (same_name or same_event) or (found.apart and not likely.nearer(x, y)):
            return None
        return "of the same name" if same_name else "two names of the same event"
    if x.event != y.event:
        said = {x.thing, y.thing}
        kept = same_name and (not found.apart or likely.nearer(x, y))
        if said & EVENTS or not (found.together or kept):
            return None
        return "of the same name" if same_name else _AGREE
    if same_name:
        return "of the same name"
    if alike >= _SAME_NAME:
        return "two names of the same thing"
    if found.together:
        return _AGREE
    return "both spread as births are" if shared >= 0.1 and not found.apart else None


def _made_of(whole: Profile, parts: Sequence[Profile]) -> bool:
    """Whether cells mostly consist of words that the parts have, two or more of them."""
    known = {word for part in parts for key in part.present for word in key.split()}
    split = [key.split() for key in whole.present]
    inside = sum(len(found) > 1 and known.issuperset(found) for found in split)
    return whole.kind in ("text", "words", "list") and inside > 0.5 * len(split)


def _in_order(whole: Profile, parts: Sequence[Profile]) -> tuple[Profile, ...]:
    """Two parts in the order in which they stand in the whole: family name first, at times."""
    firsts = [plain_words(cell).split()[:1] for cell in whole.cells if cell]
    known = [{word for key in part.present for word in key.split()} for part in parts]
    first, last = (sum(words.issuperset(first) for first in firsts) for words in known)
    return tuple(parts) if first >= last else tuple(reversed(parts))


def _wholes_and_parts(
    a: Sequence[Profile], b: Sequence[Profile], sampled: tuple[float, float]
) -> list[ColumnPair]:
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
            second = next((p for p in other if p.kind == "second family name"), None)
            if (
                at_once
                and whole == "full name"
                and (split := split_name(at_once[0], known, second))
            ):
                found += [_part_and_part(*two, side, sampled) for two in split]
            elif at_once:
                sides: list[tuple[Profile, ...]] = [(at_once[0],), _in_order(at_once[0], known)]
                why = f"a {whole} on one side, its parts on the other"
                x, y = sides if side == 0 else sides[::-1]
                found.append(ColumnPair(x, y, whole, 0.0, why))
    return found


def _part_and_part(
    own: NamePart, other: Profile, side: int, sampled: tuple[float, float]
) -> ColumnPair:
    """A part of the full name of a side, and the column that has that part on the other."""
    (x, of_x), (y, of_y) = [(own.profile, own.part), (other, None)][:: 1 if side == 0 else -1]
    why = f"the {other.kind} in a full name on one side, by itself on the other"
    how = {"part": (of_x, of_y), "name": other.name}
    shared = values_in_common(x, y, sampled) or min(_words_known(x, y), _words_known(y, x))
    return ColumnPair((x,), (y,), other.kind, shared, why, how)


def _births_and_years(a: Sequence[Profile], b: Sequence[Profile]) -> list[ColumnPair]:
    """A date of birth on one side, the year of birth on the other: dates as far as known."""
    found = []
    for k, (one, other) in enumerate(((a, b), (b, a))):
        dates = [p for p in one if p.kind == "date" and not p.event and not of_whom(p.name)]
        years = [p for p in other if p.thing == "birth year" and p.kind in ("year", "category")]
        if dates and years:
            known = {key[:4] for key in dates[0].present}
            shared = sum(key in known for key in years[0].present) / max(1, len(years[0].present))
            x, y = (dates[0], years[0]) if k == 0 else (years[0], dates[0])
            found.append(ColumnPair((x,), (y,), "date", shared, "births, in one file by the year"))
    return found


def _last_texts(
    found: Sequence[ColumnPair], a: Sequence[Profile], b: Sequence[Profile]
) -> list[ColumnPair]:
    """The one text that is left in each file, where half of their words are in the other, too."""
    sides = []
    for k, side in enumerate((a, b)):
        taken = {p.name for pair in found for p in pair.sides[k]}
        sides.append(
            [p for p in side if p.kind in _TEXTS and p.name not in taken and not of_whom(p.name)]
        )
    if [len(side) for side in sides] != [1, 1]:
        return []
    (x,), (y,) = sides
    inside = max(_words_known(x, y), _words_known(y, x))
    if (x.thing and y.thing and x.thing != y.thing) or inside < 0.5:
        return []
    return [ColumnPair((x,), (y,), "text", 0.0, "the texts left, with words in common")]


def _words_known(x: Profile, y: Profile) -> float:
    """Share of the words of x that y has, too."""
    known = {word for key in y.present for word in key.split()}
    found = [word in known for key in x.present for word in key.split()]
    return sum(found) / max(1, len(found))


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
