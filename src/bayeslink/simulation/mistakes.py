"""How people write things down wrongly: slips of the keyboard, misreadings, sound-alikes, swaps."""

import datetime as dt
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bayeslink.comparing.nicknames import SIMULATED_FORMS
from bayeslink.simulation.people import AGES, CENSUS_DAY, OCCUPATIONS

ALL_KINDS = ("typing", "ocr", "phonetic", "swap", "missing")  # unless others are asked for
KINDS = (*ALL_KINDS, "nickname")
SPREADS = ("exact", "independent", "clustered")
ERROR_FIELDS = ("gname", "fname", "dob", "age", "occup", "postcode", "street")

CARELESS = 0.25  # share of careless records, where errors are clustered
_OLDEST = "1900-01-01"

Edit = Callable[[str, int], str]
"""A value and a large random integer to the value with an error; "" is a missing one.

An edit that finds no hold in a value (no "ph" to write as "f") returns it as it is.
"""


# A name, then what people of that name also go by, beside what the `name` comparison knows: a new
# line there would change what it finds.
_MORE = """
Alexis Lexi
Antonio Toni Tonino
Christine Chris Tina
Francisco Paco
Giovanna Gianna
Guadalupe Lupe
Hannah Annie
José Pepe
Katarzyna Kasia
Kathleen Kath Kathy
Madison Maddie
Manuel Manolo
Małgorzata Gosia
Megan Meg
Mercedes Merche
Mohammed Mo
Nicola Nicky
Olivia Liv
Piotr Piotrek
Salvatore Totò
Santiago Santi
Stanisław Staszek
Steven Steve
Tadeusz Tadek
Theresa Terry
Tomasz Tomek
Valentina Vale
"""

NICKNAMES = {
    name.capitalize(): tuple(form.capitalize() for form in forms)
    for name, forms in SIMULATED_FORMS.items()
} | {name: tuple(forms) for name, *forms in map(str.split, _MORE.strip().splitlines())}


def forget(table: pa.Table, rate: float, rng: np.random.Generator) -> pa.Table:
    """Blank cells at random."""
    for k, name in enumerate(table.column_names):
        gone = pa.array(rng.random(len(table)) < rate)
        column = pc.if_else(gone, pa.scalar(None, pa.string()), table[name])
        table = table.set_column(k, name, column)
    return table


def corrupt(
    table: pa.Table,
    errors: int,
    kinds: Sequence[str],
    rng: np.random.Generator,
    spread: str = "exact",
) -> pa.Table:
    """Write records down wrongly, with so many erroneous fields each, or on average."""
    wrong_fields = _spread(len(table), errors, spread, rng)
    hit = {field: wrong_fields[:, k] for k, field in enumerate(ERROR_FIELDS)}
    table, swapped = _swap_names(table, hit["gname"] | hit["fname"], kinds, rng)
    hit["gname"] &= ~swapped
    hit["fname"] &= ~swapped
    for field in ERROR_FIELDS:
        edits = [EDITS[field][kind] for kind in KINDS if kind in kinds and kind in EDITS[field]]
        rows = np.flatnonzero(hit[field])
        values = table[field].take(rows).to_pylist()
        luck = rng.integers(2**62, size=len(rows)).tolist()
        wrong = [_edited(value, edits, r) or None for value, r in zip(values, luck, strict=True)]
        column = pc.replace_with_mask(
            table[field].combine_chunks(), pa.array(hit[field]), pa.array(wrong, pa.string())
        )
        table = table.set_column(table.column_names.index(field), field, column)
    return table


def _spread(n: int, errors: int, spread: str, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Which fields of each record are wrong.

    The same number in every record; each field by itself; or most of them in a quarter of the
    records, which are written down carelessly.
    """
    luck = rng.random((n, len(ERROR_FIELDS)))
    rate = errors / len(ERROR_FIELDS)
    if spread == "exact":
        order = luck.argsort(axis=1)
        return np.stack(
            [(order[:, :errors] == k).any(axis=1) for k in range(len(ERROR_FIELDS))], axis=1
        )
    if spread == "independent":
        return luck < rate
    careless = min(0.9, 3 * rate)
    careful = max(0.0, (rate - careless * CARELESS) / (1 - CARELESS))
    return luck < np.where(rng.random(n) < CARELESS, careless, careful)[:, None]


def _swap_names(
    table: pa.Table, hit: NDArray[np.bool_], kinds: Sequence[str], rng: np.random.Generator
) -> tuple[pa.Table, NDArray[np.bool_]]:
    """Exchange given and family name in as many of the hit records as fall to this kind."""
    share = 1 / len({*kinds}) if "swap" in kinds else 0.0
    swapped = hit & (rng.random(len(hit)) < share)
    mask, gname, fname = pa.array(swapped), table["gname"], table["fname"]
    table = table.set_column(0, "gname", pc.if_else(mask, fname, gname))
    return table.set_column(1, "fname", pc.if_else(mask, gname, fname)), swapped


def _edited(value: str, edits: Sequence[Edit], r: int) -> str:
    """Apply one edit or, where it finds no hold, the one before it, so never a loss instead."""
    if not edits:
        return value
    r, first = divmod(r, len(edits))
    for k in range(first, first - len(edits), -1):
        if (wrong := edits[k](value, r)) != value:
            return wrong
    return value


_KEYBOARD = ("1234567890", "qwertyuiop", "asdfghjkl", "zxcvbnm")
_NEIGHBOURS = {
    key: row[max(k - 1, 0) : k] + row[k + 1 : k + 2]
    for row in _KEYBOARD
    for k, key in enumerate(row)
}
_LOOKALIKE_DIGITS = dict(zip("01235678", ("8", "7", "7", "8", "6", "5", "1", "3"), strict=True))


def _rules(text: str) -> list[tuple[str, str]]:
    return [(old, new) for old, _, new in (rule.partition(":") for rule in text.split())]


OCR_RULES = _rules(
    "0:o o:0 1:l l:1 5:s s:5 8:B B:8 2:Z Z:2 O:0 I:l S:5 m:rn rn:m w:vv d:cl cl:d e:c "
    "c:e u:v g:q i:l h:b n:ri 6:b 7:T 9:g 3:8 4:A"
)
PHONETIC_RULES = _rules(
    "ph:f f:ph ck:k k:ck ie:y y:ie ey:y c:k ll:l l:ll nn:n n:nn tt:t t:tt ee:ea ea:ee "
    "ou:oo ai:ay ay:ai gh:g th:t z:s s:z sch:sh x:ks qu:kw v:f er:a ei:ie Ph:F F:Ph C:K K:C "
    "Kn:N J:G Sch:Sh Th:T Y:J Z:S rr:r r:rr m:mm"
)


def _slip(value: str, r: int) -> str:
    """Slip on the keyboard: a neighbouring key instead or besides, a letter lost, two exchanged."""
    r, action = divmod(r, 4)
    r, i = divmod(r, len(value))
    near = _NEIGHBOURS.get(value[i].lower(), value[i])
    key = near[r % len(near)]
    if value[i].isupper():
        key = key.upper()
    inserted = value[:i] + key + value[i:]
    wrong = (
        value[:i] + key + value[i + 1 :],
        value[:i] + value[i + 1 :],
        value[:i] + value[i + 1 : i + 2] + value[i] + value[i + 2 :],
        inserted,
    )[action]
    return wrong if wrong not in ("", value) else inserted


def _rewriter(rules: list[tuple[str, str]]) -> Edit:
    """Edit that applies one of the rules old -> new at one place."""
    rotations = [[*rules[k:], *rules[:k]] for k in range(len(rules))]

    def rewrite(value: str, r: int) -> str:
        r, first = divmod(r, len(rotations))
        start = r % len(value)
        for old, new in rotations[first]:
            i = value.find(old, start)
            i = value.find(old) if i < 0 else i
            if i >= 0:
                return value[:i] + new + value[i + len(old) :]
        return value

    return rewrite


def _slip_date(value: str, r: int) -> str:
    """Hit the neighbour of one digit, or exchange two; the date stays a possible one."""
    r, exchange = divmod(r, 2)
    for k in range(r, r + 10):
        i = k % 10
        near = _NEIGHBOURS.get(value[i], value[i])
        wrong = value[:i] + near[r % len(near)] + value[i + 1 :]
        if exchange and value[i : i + 2].isdigit() and i < 9:
            wrong = value[:i] + value[i + 1] + value[i] + value[i + 2 :]
        if wrong != value and _possible(wrong):
            return wrong
    return value


def _misread_date(value: str, r: int) -> str:
    """Take one digit for another of like shape; the date stays a possible one."""
    for k in range(r, r + 10):
        i = k % 10
        wrong = value[:i] + _LOOKALIKE_DIGITS.get(value[i], value[i]) + value[i + 1 :]
        if wrong != value and _possible(wrong):
            return wrong
    return value


def _swap_day_month(value: str, _: int) -> str:
    year, month, day = value.split("-")
    wrong = f"{year}-{day}-{month}"
    return wrong if _possible(wrong) else value


def _possible(date: str) -> bool:
    try:
        dt.date.fromisoformat(date)
    except ValueError:
        return False
    return _OLDEST <= date <= CENSUS_DAY


def _other(categories: str) -> dict[str, Edit]:
    """Edits of a category, whatever the kind: another category, or a missing one."""

    def other(value: str, r: int) -> str:
        return categories[
            (categories.index(value) + 1 + r % (len(categories) - 1)) % len(categories)
        ]

    return dict.fromkeys(ALL_KINDS, other) | {"missing": _lose}


def _familiar(value: str, r: int) -> str:
    """What people of this name are called by those who know them."""
    forms = NICKNAMES.get(value, ())
    return forms[r % len(forms)] if forms else value


def _lose(_: str, __: int) -> str:
    return ""


_TEXT = {
    "typing": _slip,
    "ocr": _rewriter(OCR_RULES),
    "phonetic": _rewriter(PHONETIC_RULES),
    "missing": _lose,
}
_NUMBER = {kind: _TEXT[kind] for kind in ("typing", "ocr", "missing")}
_DATE = {"typing": _slip_date, "ocr": _misread_date, "swap": _swap_day_month, "missing": _lose}
EDITS: dict[str, dict[str, Edit]] = {
    "gname": {**_TEXT, "nickname": _familiar},
    "fname": _TEXT,
    "dob": _DATE,
    "age": _other(AGES),
    "occup": _other(OCCUPATIONS),
    "postcode": _NUMBER,
    "street": _TEXT,
}
