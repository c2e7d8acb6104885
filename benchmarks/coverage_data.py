"""The data sets of `interval_coverage.py`: part → cell → a function from a number to files.

What is chosen with the truth at hand is chosen on even numbers, what is reported uses odd ones.
A number is that of the seed or of the random half; the study's and the README's data sets are
only ever reported.
"""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import bayeslink as bl
from experiments import data as paper

TYPING = ("typing", "ocr", "phonetic", "missing")  # errors within a field
SIZES = (500, 2_000, 10_000, 50_000)
LADDER_FIELDS = ("gname", "fname", "age", "occup", "postcode")
SWAPPED = 0.07  # share of records with given and family name exchanged, on that rung
CARELESS, CARELESSLY, CAREFULLY = 0.25, 0.56, 0.08  # clustered errors: a fifth, as elsewhere
N_PEOPLE, N_LISTED, SLOPE = 800, 400, 1.0  # of each census


@dataclass(frozen=True, slots=True)
class Analysis:
    """What a user would go on to do: x is known of the records of A, y of those of B."""

    x: np.ndarray
    y: np.ndarray


@dataclass(frozen=True, slots=True)
class DataSet:
    """Two files, the true pairs and the fields that a new user would choose."""

    a: pa.Table
    b: pa.Table
    truth: pa.Table  # id_a, id_b
    fields: list[Any] | None  # None: those that `init` proposes
    seed: int  # that it was made with
    person: bool = True
    missing: tuple[str, ...] = ()
    analysis: Analysis | None = None


Maker = Callable[[int], DataSet]


@dataclass(frozen=True, slots=True)
class Part:
    """Cells of one kind, and how many data sets each can have."""

    cells: dict[str, Maker]
    most: int
    only_reported: bool = False
    first: int = 1  # number of the first data set that is reported

    def numbers(self, split: str, sets: int) -> range:
        """Numbers of the first data sets of a split: even to develop on, odd to report."""
        sets = min(sets, self.most)
        if self.only_reported:
            return range(self.first, self.first + (sets if split == "report" else 0))
        first = 1 if split == "report" else 2
        return range(first, first + 2 * sets, 2)


def seed_of(cell: str, number: int) -> int:
    """A seed of the cell's own, even where the number is."""
    return zlib.crc32(cell.encode()) % 1_000_000 * 1000 + number


# --- the paper's study ------------------------------------------------------------------------


def study(errors: int, overlap: int, number: int) -> DataSet:
    a, b, truth = paper.study_files(errors, overlap, number)
    missing = tuple(paper.MISSING)
    return DataSet(a, b, _pairs(truth), paper.study_fields(), number, missing=missing)


def _pairs(truth: list[tuple[str, str]]) -> pa.Table:
    a, b = zip(*truth, strict=True)
    return pa.table({"id_a": pa.array(a, pa.string()), "id_b": pa.array(b, pa.string())})


# --- simulated files --------------------------------------------------------------------------


def simulated(seed: int, n: int, **options: Any) -> DataSet:
    made = bl.simulate(n, seed=seed, **options)
    return DataSet(made.a, made.b, made.truth, paper.person_fields(), seed)


def _simulated_cells() -> dict[str, Maker]:
    cells = {}
    for n in SIZES:
        for households in (True, False):
            for errors in (1, 2, 3):
                where = "households" if households else "no households"
                cell = f"{n}, {where}, {errors} error{'s' * (errors > 1)}"
                cells[cell] = partial(_of_cell, cell, n=n, households=households, errors=errors)
    return cells


def _of_cell(cell: str, number: int, **options: Any) -> DataSet:
    return simulated(seed_of(cell, number), **options)


# --- the ladder: one kind of trouble at a time ------------------------------------------------


def rung(
    cell: str, number: int, *, spread: str = "independent", swapped: float = 0.0, **people: Any
) -> DataSet:
    """500 × 500 records with 250 in both and one wrong field of five on average.

    The same people are written down without any error and with every field wrong; which of the
    two each cell of B has is drawn here, among the fields that are compared.
    """
    seed = seed_of(cell, number)
    common = {"missing": 0.0, "households": False, "eras": False, "seed": seed, **people}
    right = bl.simulate(500, errors=0, **common)
    wrong = bl.simulate(500, errors=7, kinds=TYPING, **common)
    if not (right.a.equals(wrong.a) and right.truth.equals(wrong.truth)):
        raise AssertionError("the same seed must give the same people, whatever the errors")
    rng = np.random.default_rng(seed)
    mistaken = _mistaken(len(right.b), spread, rng)
    b = {"id": right.b["id"]}
    for k, name in enumerate(LADDER_FIELDS):
        b[name] = pc.if_else(pa.array(mistaken[:, k]), wrong.b[name], right.b[name])
    exchanged = pa.array(rng.random(len(right.b)) < swapped)
    given, family = b["gname"], b["fname"]
    b["gname"] = pc.if_else(exchanged, family, given)
    b["fname"] = pc.if_else(exchanged, given, family)
    fields = [bl.levenshtein(n) if n.endswith("name") else bl.exact(n) for n in LADDER_FIELDS]
    return DataSet(right.a, pa.table(b), right.truth, fields, seed)


def _mistaken(n: int, spread: str, rng: np.random.Generator) -> np.ndarray:
    """Which of the compared fields of each record are wrong: a fifth of them."""
    luck = rng.random((n, len(LADDER_FIELDS)))
    if spread == "exactly one":
        return luck == luck.min(axis=1, keepdims=True)
    if spread == "clustered":
        careless = rng.random(n) < CARELESS
        return luck < np.where(careless, CARELESSLY, CAREFULLY)[:, None]
    return luck < 1 / len(LADDER_FIELDS)


RUNGS: dict[str, dict[str, Any]] = {
    "independent errors": {},
    "clustered errors": {"spread": "clustered"},
    "exactly one error": {"spread": "exactly one"},
    "swapped names": {"swapped": SWAPPED},
    "given name and age": {"eras": True},
    "households": {"households": True},
    "group quarters": {"group_quarters": 0.1},
    "households, group quarters": {"households": True, "group_quarters": 0.1},
}


# --- folders with known truth -----------------------------------------------------------------

FOLDERS: dict[str, list[Any]] = {
    "rldata": [
        *(bl.levenshtein(n) for n in ("fname_c1", "lname_c1")),
        *(bl.exact(n) for n in ("by", "bm", "bd")),
    ],
    "historical": [
        *(bl.levenshtein(n) for n in ("first_name", "surname", "birth_place")),
        bl.date("dob"),
        *(bl.exact(n) for n in ("postcode_fake", "gender", "occupation")),
    ],
    "febrl4_half": [
        *(bl.levenshtein(n) for n in ("given_name", "surname", "address_1", "suburb")),
        bl.exact("postcode"),
        bl.date("date_of_birth", format="%Y%m%d"),
    ],
    "pp_census_ssa": [
        *(bl.levenshtein(n) for n in ("first_name", "last_name")),
        bl.date("date_of_birth", format=("%m/%d/%Y", "%Y%m%d")),
        bl.exact("sex"),
    ],
    "fodors_zagats": [bl.levenshtein(n) for n in ("name", "address", "city", "phone", "type")],
    "dblp_acm": [*(bl.levenshtein(n) for n in ("title", "authors", "venue")), bl.exact("year")],
    "abt_buy": [bl.levenshtein("name"), bl.numeric("price")],
    "trans_half": [
        bl.levenshtein("memo"),
        bl.date("transaction_date"),
        bl.numeric("amount"),
    ],
    "foreigners": [
        *(bl.levenshtein(n) for n in ("fname", "surname")),
        bl.date("date"),
        bl.exact("country"),
    ],
    "pp_census_1040": [
        *(bl.levenshtein(n) for n in ("first_name", "last_name", "street_name")),
        *(bl.exact(n) for n in ("middle_initial", "street_number")),
    ],
    "airports": [bl.levenshtein("name"), *(bl.numeric(n) for n in ("lat", "lon", "alt"))],
}
PERSON = ("rldata", "historical", "febrl4_half", "pp_census_ssa", "foreigners", "pp_census_1040")
SHARE = 0.6  # of each file, in a sub-file


@cache
def _folder(name: str) -> tuple[pa.Table, pa.Table, pa.Table]:
    return tuple(_read(name, part) for part in ("a", "b", "truth"))


def _read(name: str, part: str) -> pa.Table:
    with gzip.open(paper.ROOT / "truth" / name / f"{part}.csv.gz", "rt", newline="") as file:
        rows = list(csv.DictReader(file))
    return pa.table({c: pa.array([r[c] or None for r in rows], pa.string()) for c in rows[0]})


def part_of(
    name: str, number: int, share: float = 0.5, of: str = "", proposed: bool = False
) -> DataSet:
    """A random share of the records of each file, and the true pairs among them."""
    a, b, truth = _folder(name)
    seed = seed_of(name + of, number)
    rng = np.random.default_rng(seed)
    a, b = (t.take(np.sort(rng.permutation(len(t))[: int(len(t) * share)])) for t in (a, b))
    both = pc.and_(pc.is_in(truth["id_a"], a["id"]), pc.is_in(truth["id_b"], b["id"]))
    fields = None if proposed else FOLDERS[name]
    return DataSet(a, b, truth.filter(both), fields, seed, person=name in PERSON)


def nobody(name: str, number: int, proposed: bool) -> DataSet:
    """Two halves of one file, with nobody in both."""
    a, _, truth = _folder(name)
    seed = seed_of(f"{name} nobody", number)
    order = np.random.default_rng(seed).permutation(len(a))
    halves = [a.take(np.sort(order[k::2])) for k in (0, 1)]
    fields = None if proposed else FOLDERS[name]
    return DataSet(*halves, truth.slice(0, 0), fields, seed, person=name in PERSON)


# --- what comes after: population size and a regression -----------------------------------------


def census(number: int) -> DataSet:
    """Two lists, each a random catch of the same people; x in the one, y on x in the other."""
    seed = seed_of("census", number)
    rng = np.random.default_rng(seed)
    n_both = int(rng.hypergeometric(N_LISTED, N_PEOPLE - N_LISTED, N_LISTED))
    made = bl.simulate(N_LISTED, overlap=n_both / N_LISTED, seed=seed)
    x, of_b = rng.normal(size=(2, N_LISTED))
    of_b[rows(made.b, made.truth["id_b"])] = x[rows(made.a, made.truth["id_a"])]
    y = SLOPE * of_b + rng.normal(size=N_LISTED)
    analysis = Analysis(x, y)
    return DataSet(made.a, made.b, made.truth, paper.person_fields(), seed, analysis=analysis)


def rows(table: pa.Table, ids: Iterable[Any]) -> np.ndarray:
    """Rows of a file that have these ids."""
    return np.asarray(pc.index_in(pc.cast(ids, pa.string()), table["id"].combine_chunks()))


PARTS = {
    "study": Part(
        {
            f"{errors} error{'s' * (errors > 1)}, {overlap}": partial(study, errors, overlap)
            for errors in (1, 2, 3)
            for overlap in (50, 250, 450)
        },
        most=100,
        only_reported=True,
        first=0,
    ),
    "simulated": Part(_simulated_cells(), most=500),
    "ladder": Part({cell: partial(rung, cell, **given) for cell, given in RUNGS.items()}, most=500),
    "folders": Part({name: partial(part_of, name) for name in FOLDERS}, most=500),
    **{
        which: Part(
            {
                name: partial(part_of, name, share=SHARE, of=" sub", proposed=proposed)
                for name in FOLDERS
            }
            | {f"nobody: {name}": partial(nobody, name, proposed=proposed) for name in PERSON},
            most=500,
        )
        for which, proposed in (("subfiles", False), ("proposed", True))
    },
    "readme": Part({"simulate(1000)": partial(simulated, n=1000)}, most=20, only_reported=True),
    "population": Part({f"{N_LISTED} of {N_PEOPLE} people": census}, most=200),
    "large": Part(
        {
            "50000": partial(_of_cell, "large 50000", n=50_000),
            "1000000": partial(_of_cell, "large 1000000", n=1_000_000),
        },
        most=500,
    ),
}
