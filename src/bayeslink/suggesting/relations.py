"""Columns that say the same twice, ids that are shared, and values that follow from others."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import combinations

from bayeslink.suggesting.column_names import says_id
from bayeslink.suggesting.column_pairs import ColumnPair
from bayeslink.suggesting.profiles import Profile

_NEARLY_ALL = 0.9  # of the rows
_FOLLOWS = 0.97  # of the rows in which one value goes with one other
_ENOUGH = 50  # rows to tell by
_JOINED = 2000  # pairs of rows looked at, to tell whether an id is shared


def derived(pairs: Sequence[ColumnPair]) -> dict[int, str]:
    """Pairs that others already say, by number, each with the reason to leave it out."""
    found: dict[int, str] = {}
    for k, pair in enumerate(pairs):
        if whole := _whole_of(pair, pairs):
            found[k] = f"made of {' and '.join(whole)}, which are compared by themselves"
        elif pair.kind == "age" and (born := _birth(pair, pairs)):
            found[k] = f"follows from {born}"
        elif pair.kind == "category" and (of := _group_of(pair, pairs)):
            found[k] = f"follows from the year of {of}"
        elif pair.kind == "year" and (of := _year_of(pair, pairs)):
            found[k] = f"the year of {of}"
    return found


def _whole_of(pair: ColumnPair, pairs: Sequence[ColumnPair]) -> list[str]:
    """Two or more others whose words all stand in this one."""
    if pair.kind not in ("full name", "address", "text"):
        return []
    parts = [
        other
        for other in pairs
        if other is not pair
        and other.kind in ("given name", "family name", "house number", "street", "place")
        and all(
            _within(part[0], whole[0]) for part, whole in zip(other.sides, pair.sides, strict=True)
        )
    ]
    return [part.columns[0] for part in parts] if len(parts) > 1 else []


def _within(part: Profile, whole: Profile) -> bool:
    both = [(p, w) for p, w in zip(part.keys, whole.keys, strict=True) if p and w]
    inside = sum({*p.split()} <= {*w.split()} for p, w in both)
    return len(both) >= _ENOUGH // 5 and inside >= 0.8 * len(both)


def _birth(pair: ColumnPair, pairs: Sequence[ColumnPair]) -> str | None:
    """The birth date, or year, from which an age follows in a file that has both."""
    for other in pairs:
        if other.kind not in ("date", "year"):
            continue
        for age, born in zip(pair.sides, other.sides, strict=True):
            sums = Counter(
                int(y[:4]) + int(float(x))
                for x, y in zip(age[0].keys, born[0].keys, strict=True)
                if x and y and y[:4].isdigit() and x.replace(".", "", 1).isdigit()
            )
            total, common = sum(sums.values()), sums.most_common(1)
            near = sum(sums[common[0][0] + k] for k in (-1, 0, 1)) if common else 0
            if total >= _ENOUGH // 5 and near >= _NEARLY_ALL * total:
                return other.columns[0]
    return None


def _year_of(pair: ColumnPair, pairs: Sequence[ColumnPair]) -> str | None:
    for other in pairs:
        if other.kind != "date":
            continue
        agree = []
        for year, day in zip(pair.sides, other.sides, strict=True):
            both = [(x, y) for x, y in zip(year[0].keys, day[0].keys, strict=True) if x and y]
            agree.append(bool(both) and sum(y.startswith(x) for x, y in both) / len(both) > 0.9)
        if all(agree):
            return other.columns[0]
    return None


def _group_of(pair: ColumnPair, pairs: Sequence[ColumnPair]) -> str | None:
    """The date whose year fixes a category, as that of birth fixes an age group."""
    for other in pairs:
        if other.kind != "date":
            continue
        for (group,), (day,) in zip(pair.sides, other.sides, strict=True):
            both = [(y[:4], x) for x, y in zip(group.keys, day.keys, strict=True) if x and y]
            usual = Counter(x for _, x in both).most_common(1)
            others = len(both) - usual[0][1] if usual else 0  # wrong, if all were the usual one
            if others >= _ENOUGH and _exceptions(both) < 0.1 * others:
                return other.columns[0]
    return None


def _exceptions(both: Sequence[tuple[str, str]]) -> int:
    """Rows whose second value is not the one that mostly goes with their first."""
    groups: dict[str, Counter[str]] = defaultdict(Counter)
    for x, y in both:
        groups[x][y] += 1
    return len(both) - sum(counts.most_common(1)[0][1] for counts in groups.values())


def follows_from(pairs: Sequence[ColumnPair]) -> list[tuple[ColumnPair, ColumnPair]]:
    """(what follows, from what): values of one field that go with one value of another each."""
    found = []
    for y in pairs:
        for x in pairs:
            alone = x is not y and len(x.a) == len(x.b) == len(y.a) == len(y.b) == 1
            if alone and all(_fixes(x.sides[s][0], y.sides[s][0]) for s in (0, 1)):
                found.append((y, x))
                break
    return found


def _fixes(x: Profile, y: Profile) -> bool:
    """Whether records alike in x are alike in y, where y alone would not make them so."""
    if y.chance < 2 * x.chance or y.chance > 0.5:
        return False
    groups: dict[str, Counter[str]] = defaultdict(Counter)
    for p, q in zip(x.keys, y.keys, strict=True):
        if p and q:
            groups[p][q] += 1
    large = [counts for counts in groups.values() if counts.total() > 1]
    rows = sum(counts.total() for counts in large)
    agree = sum(counts.most_common(1)[0][1] for counts in large)
    return rows >= max(_ENOUGH, len(x.present) / 5) and agree >= _FOLLOWS * rows


def is_shared_key(pair: ColumnPair, pairs: Sequence[ColumnPair]) -> bool:
    """Whether records with the same id are the same person, by how the rest of them agrees."""
    if pair.shared == 0:
        return False
    rows_b: dict[str, list[int]] = defaultdict(list)
    for row, key in enumerate(pair.b[0].keys):
        if key and len(rows_b[key]) < 5:
            rows_b[key].append(row)
    joined = [(i, j) for i, key in enumerate(pair.a[0].keys) if key for j in rows_b.get(key, ())][
        :_JOINED
    ]
    agree = _agree_elsewhere(pair, pairs, joined)
    return (not pair.a[0].numbered and not _others(pair, pairs)) if agree is None else agree


def agrees_where_shared(pair: ColumnPair, pairs: Sequence[ColumnPair]) -> bool:
    """The same within one file: whether records that share a number agree elsewhere."""
    groups: dict[str, list[int]] = defaultdict(list)
    for row, key in enumerate(pair.a[0].keys):
        if key and len(groups[key]) < 5:
            groups[key].append(row)
    joined = [two for rows in groups.values() for two in combinations(rows, 2)][:_JOINED]
    return bool(_agree_elsewhere(pair, pairs, joined))


def _others(pair: ColumnPair, pairs: Sequence[ColumnPair]) -> list[ColumnPair]:
    return [p for p in pairs if p is not pair and p.chance < 0.5 and not _may_be_id(p)]


def _agree_elsewhere(
    pair: ColumnPair, pairs: Sequence[ColumnPair], joined: Sequence[tuple[int, int]]
) -> bool | None:
    """Whether these rows agree in the other columns; None where there is nothing to tell by."""
    agree = total = 0
    by_chance = 0.0
    for other in _others(pair, pairs):
        if len(other.a) != len(other.b):
            continue
        x, y = other.a[0].keys, other.b[0].keys
        both = [(x[i], y[j]) for i, j in joined if x[i] and y[j]]
        agree += sum(p == q for p, q in both)
        by_chance += len(both) * other.chance
        total += len(both)
    return agree >= 0.2 * total + 2 * by_chance if total else None


def _may_be_id(pair: ColumnPair) -> bool:
    """Whether nearly each record has another one, and the column is called so or unique."""
    return any(
        p.thing is None
        and (p.unique or says_id(p.name))
        and p.n_distinct > 0.2 * max(1, len(p.present))
        for p, *_ in pair.sides
    )


def ids_among(pairs: Sequence[ColumnPair]) -> list[ColumnPair]:
    """Pairs that may be ids of records rather than something people have."""
    codes = ("identifier", "code", "category", "number", "words")
    return [p for p in pairs if p.kind in codes and len(p.a) == len(p.b) == 1 and _may_be_id(p)]


def id_column(profiles: Sequence[Profile], shared: set[str]) -> str | None:
    """The column that names the records of a file: unique, and called so or made so.

    Names of people and texts may be unique, too, and are none.
    """
    unique = [
        p
        for p in profiles
        if p.name
        and p.unique
        and p.thing is None
        and (p.kind == "identifier" or p.numbered or says_id(p.name))
    ]
    ranked = sorted(
        unique,
        key=lambda p: (p.name in shared, not says_id(p.name), not p.numbered),
    )
    return ranked[0].name if ranked else None
