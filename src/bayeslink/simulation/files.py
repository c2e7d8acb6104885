"""Synthetic files with known truth, in the manner of the simulation study (Section 5.2).

A population of people, mostly in households, is spread over two files. File A records them
rightly; every record of file B, matched or not, is written down with errors. (Were only the
matched ones wrong, the errors would give the truth away.)
"""

import datetime as dt
import secrets
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from numpy.typing import NDArray

from bayeslink.errors import OutputError, SettingsError
from bayeslink.simulation.people import AGES, CENSUS_DAY, OCCUPATIONS, population

ALL_KINDS = ("typing", "ocr", "phonetic", "swap", "missing")
ERROR_FIELDS = ("gname", "fname", "dob", "age", "occup", "postcode", "street")
FILES = ("a.csv", "b.csv", "truth.csv")

_OLDEST = "1900-01-01"

Edit = Callable[[str, int], str]
"""A value and a large random integer to the value with an error; "" is a missing one.

An edit that finds no hold in a value (no "ph" to write as "f") returns it as it is.
"""


@dataclass(frozen=True, slots=True)
class Simulation:
    """Two synthetic files and the truth about them.

    Attributes
    ----------
    a, b
        The files: `id` and the eight fields, all text, null where missing.
    truth
        The pairs that are the same person: `id_a`, `id_b`.
    """

    a: pa.Table
    b: pa.Table
    truth: pa.Table


def simulate(
    n: int = 1000,
    *,
    n_b: int | None = None,
    overlap: float = 0.5,
    errors: int = 2,
    kinds: Sequence[str] = ALL_KINDS,
    missing: float = 0.05,
    households: bool = True,
    seed: int = 0,
) -> Simulation:
    """Make two files of people, of whom some are in both (cf. Section 5.2).

    Parameters
    ----------
    n, n_b
        Records in A and in B (as many as in A if left out).
    overlap
        Share of the smaller file that has a match in the other, rounded to whole records.
    errors
        Fields of each record of B that are written down wrongly, drawn from gname, fname, dob,
        age, occup, postcode and street. Sex is never wrong, only missing at times. An exchange of
        gname and fname counts as one error; a value on which none of `kinds` can act stays right.
    kinds
        Kinds of error, equally likely where they apply: "typing", "ocr", "phonetic", "swap"
        (gname with fname; day with month) and "missing". An error in the categories age and
        occup is another category or, if "missing" is among the kinds, sometimes none.
    missing
        Further rate of missing cells in B; a fifth of it holds in A.
    households
        Whether people share street, postcode and mostly surname in groups of one to six.
    seed
        The same seed gives the same files, byte for byte.

    Returns
    -------
    Simulation
        With rows in random order and ids that say nothing about the truth.
    """
    n_a, n_b = n, n if n_b is None else n_b
    _check(n_a, n_b, overlap, errors, kinds, missing, seed)
    rng = np.random.default_rng(seed)
    n_links = round(overlap * min(n_a, n_b))
    n_people = n_a + n_b - n_links
    people = population(n_people, max(20, max(n_a, n_b) // 300), households, rng)
    order = rng.permutation(n_people)
    who_a, who_b = rng.permutation(order[:n_a]), rng.permutation(order[n_a - n_links :])
    a = _forget(people.take(who_a), missing / 5, rng)
    b = _forget(_corrupt(people.take(who_b), errors, kinds, rng), missing, rng)
    ids_a, ids_b = _ids("A", n_a), _ids("B", n_b)
    row_b = np.full(n_people, -1)
    row_b[who_b] = np.arange(n_b)
    linked = np.flatnonzero(row_b[who_a] >= 0)
    truth = pa.table({"id_a": ids_a.take(linked), "id_b": ids_b.take(row_b[who_a[linked]])})
    return Simulation(a.add_column(0, "id", ids_a), b.add_column(0, "id", ids_b), truth)


def write_simulation(sim: Simulation, directory: Path, *, force: bool = False) -> None:
    """Write a.csv, b.csv and truth.csv to a directory, all three or none.

    Parameters
    ----------
    sim
        What to write. A missing cell is nothing between commas.
    directory
        Made if need be.
    force
        Replace an earlier simulation there. A directory that holds anything else is refused.
    """
    directory = Path(directory).resolve()
    _check_directory(directory, force)
    token = secrets.token_hex(4)
    fresh = directory.with_name(f".{directory.name}.{token}.new")
    old = directory.with_name(f".{directory.name}.{token}.old")
    try:
        fresh.mkdir(parents=True)
        for name, table in zip(FILES, (sim.a, sim.b, sim.truth), strict=True):
            _write_csv(table, fresh / name)
        if directory.exists():
            directory.rename(old)
        fresh.rename(directory)
    except OSError as error:
        raise OutputError(
            f"Could not write the simulation to {directory}: {error}. What was there before is "
            "untouched. Choose a directory that can be written and has room."
        ) from error
    finally:
        if old.exists() and not directory.exists():
            old.rename(directory)
        shutil.rmtree(old, ignore_errors=True)
        shutil.rmtree(fresh, ignore_errors=True)


def _check(
    n_a: int,
    n_b: int,
    overlap: float,
    errors: int,
    kinds: Sequence[str],
    missing: float,
    seed: int,
) -> None:
    most = len(ERROR_FIELDS)
    _check_whole("n", n_a, 1, None, "records in file A")
    _check_whole("n_b", n_b, 1, None, "records in file B")
    _check_whole("seed", seed, 0, None, "the start of the random numbers")
    _check_whole("errors", errors, 0, most, f"wrong fields per record ({', '.join(ERROR_FIELDS)})")
    for name, share in (("overlap", overlap), ("missing", missing)):
        if not 0 <= share <= 1:
            raise SettingsError(
                f"{name} must be between 0 and 1, got {share!r}. It is a share; write 5 % as 0.05."
            )
    unknown = sorted({*kinds} - {*ALL_KINDS}) if not isinstance(kinds, str) else [kinds]
    if unknown or (errors and not kinds):
        raise SettingsError(
            f"kinds must be a list of known kinds of error, got {unknown or kinds!r}. Allowed are "
            f"{', '.join(ALL_KINDS)}; leave it out for all of them."
        )


def _check_whole(name: str, value: int, low: int, high: int | None, meaning: str) -> None:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < low or (high is not None and value > high):
        allowed = f"at least {low}" if high is None else f"between {low} and {high}"
        raise SettingsError(
            f"{name} must be a whole number {allowed}, got {value!r}. It is {meaning}; "
            f"choose one {allowed} or leave {name} out."
        )


def _ids(letter: str, n: int) -> pa.Array:
    width = max(6, len(str(n)))
    return pa.array([f"{letter}{k:0{width}d}" for k in range(1, n + 1)], pa.string())


# --- errors ---------------------------------------------------------------------------------


def _forget(table: pa.Table, rate: float, rng: np.random.Generator) -> pa.Table:
    """Blank cells at random."""
    for k, name in enumerate(table.column_names):
        gone = pa.array(rng.random(len(table)) < rate)
        column = pc.if_else(gone, pa.scalar(None, pa.string()), table[name])
        table = table.set_column(k, name, column)
    return table


def _corrupt(
    table: pa.Table, errors: int, kinds: Sequence[str], rng: np.random.Generator
) -> pa.Table:
    """Give every record so many erroneous fields."""
    order = rng.random((len(table), len(ERROR_FIELDS))).argsort(axis=1)
    hit = {field: (order[:, :errors] == k).any(axis=1) for k, field in enumerate(ERROR_FIELDS)}
    table, swapped = _swap_names(table, hit["gname"] | hit["fname"], kinds, rng)
    hit["gname"] &= ~swapped
    hit["fname"] &= ~swapped
    for field in ERROR_FIELDS:
        edits = [EDITS[field][kind] for kind in ALL_KINDS if kind in kinds and kind in EDITS[field]]
        rows = np.flatnonzero(hit[field])
        values = table[field].take(rows).to_pylist()
        luck = rng.integers(2**62, size=len(rows)).tolist()
        wrong = [_edited(value, edits, r) or None for value, r in zip(values, luck, strict=True)]
        column = pc.replace_with_mask(
            table[field].combine_chunks(), pa.array(hit[field]), pa.array(wrong, pa.string())
        )
        table = table.set_column(table.column_names.index(field), field, column)
    return table


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
    "gname": _TEXT,
    "fname": _TEXT,
    "dob": _DATE,
    "age": _other(AGES),
    "occup": _other(OCCUPATIONS),
    "postcode": _NUMBER,
    "street": _TEXT,
}


# --- output ---------------------------------------------------------------------------------


def _check_directory(directory: Path, force: bool) -> None:
    if not directory.exists():
        return
    if Path.cwd().is_relative_to(directory):
        raise OutputError(
            f"{directory} is where you are. A simulation replaces a whole directory; "
            "name a new one inside it."
        )
    if not directory.is_dir():
        raise OutputError(f"{directory} is a file. A simulation needs a directory; name another.")
    held = {path.name for path in directory.iterdir()}
    if others := held - {*FILES}:
        raise OutputError(
            f"{directory} holds {len(others)} other files. A simulation replaces a whole "
            "directory; name a new one."
        )
    if held and not force:
        raise OutputError(
            f"{directory} already holds a simulation. It is replaced only if you say so; "
            "use force (--force) or name a new directory."
        )


def _write_csv(table: pa.Table, path: Path) -> None:
    """Write plain CSV: no value we make needs a quote."""
    options = pa.csv.WriteOptions(include_header=False, quoting_style="none", batch_size=65_536)
    with path.open("wb") as file:
        file.write((",".join(table.column_names) + "\n").encode())
        pa.csv.write_csv(table, file, options)
