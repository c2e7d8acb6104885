"""The paper's data, or simulated data of the same design where they are absent.

They are looked for in the folder `BAYESLINK_DATA`, by default `../shared/data` beside the clone.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import tarfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bayeslink.comparing.fields import Field, date, exact, levenshtein
from bayeslink.simulation.files import simulate

_BESIDE = Path(__file__).parents[1] / ".." / "shared" / "data"
ROOT = Path(os.environ.get("BAYESLINK_DATA", _BESIDE))
CENSUS = ROOT / "italian_census"
STUDY = ROOT / "sadinle2017" / "sadinle_sim_data.tar.gz"
REFERENCES = ROOT / "reference_results" / "sadinle_sim_BRL_fabl_vabl_per_dataset.csv.gz"

STUDY_FIELDS = ("gname", "fname", "age", "occup")
MISSING = ["NA"]  # how the study's files write a missing value
# Errors in the four fields of the study -> errors in the seven fields of a simulated record.
_ERRORS = {1: 2, 2: 4, 3: 5}


@dataclass(frozen=True, slots=True)
class Files:
    """Two files, the true pairs where they are known, and where all this comes from."""

    a: Any
    b: Any
    truth: Any
    source: str


# --- Italian census (5.1) ---------------------------------------------------------------------


def census_fields() -> list[Field]:
    """Section 5.1: Beta(20, 3) on each m, Beta(3, 20) on each u."""
    return [exact(n, m_prior=(3, 20), u_prior=(20, 3)) for n in ("name", "sex", "edu")]


def census() -> Files:
    """34 census and 45 survey records with the first two consonants of the name, sex, education."""
    if CENSUS.is_dir():
        return Files(CENSUS / "census.csv", CENSUS / "survey.csv", None, "Italian census, 2001")
    made = simulate(34, n_b=45, overlap=25 / 34, errors=1, missing=0.0, seed=2001)

    def short(table: pa.Table) -> pa.Table:
        consonants = pc.replace_substring_regex(
            pc.utf8_lower(table["fname"]), "[^b-df-hj-np-tv-z]", ""
        )
        names = pc.utf8_slice_codeunits(consonants, 0, 2)
        return pa.table(
            {"id": table["id"], "name": names, "sex": table["sex"], "edu": table["occup"]}
        )

    return Files(short(made.a), short(made.b), made.truth, "SIMULATED data of the census' design")


# --- simulation study (5.2) -------------------------------------------------------------------


def study_fields() -> list[Field]:
    """Section 5.2: names by Levenshtein distance, age and occupation exactly; default priors."""
    return [levenshtein("gname"), levenshtein("fname"), exact("age"), exact("occup")]


def paper_fields() -> list[Field]:
    """The same with the paper's Dirichlet(1, 2, 5, 10) on the names' m."""
    names = [levenshtein(n, m_prior=(1, 2, 5, 10)) for n in ("gname", "fname")]
    return [*names, *(exact(n, m_prior=(1, 10)) for n in ("age", "occup"))]


def person_fields() -> list[Field]:
    """Six fields of a simulated record, as in `bayeslink demo`."""
    names = [levenshtein("gname"), levenshtein("fname")]
    return [*names, date("dob"), exact("sex"), exact("occup"), exact("postcode")]


def study_source() -> str:
    return "data of Sadinle (2017)" if STUDY.is_file() else "SIMULATED data of the study's design"


@cache
def _study_texts() -> dict[str, str]:
    texts = {}
    with tarfile.open(STUDY) as archive:
        for member in archive:
            if file := archive.extractfile(member):
                texts[Path(member.name).name] = file.read().decode()
    return texts


def study_records(errors: int, dataset: int) -> tuple[list[Any], list[Any]]:
    """(originals, copies) of one database, each a list of (NNN, row)."""
    name = f"percdups50_nerrors{errors}_dataset{dataset}_4fields_twofiles_BRLpaper.csv"
    originals: list[Any] = []
    copies: list[Any] = []
    for row in csv.DictReader(io.StringIO(_study_texts()[name])):
        _, number, kind = row["rec-id"].split("-", 2)
        (originals if kind == "org" else copies).append((int(number), row))
    return originals, copies


def study_files(
    errors: int, overlap: int, dataset: int, prefix: str = ""
) -> tuple[pa.Table, pa.Table, list[tuple[str, str]]]:
    """Files A and B with `overlap` of 500 records in both, and the true pairs."""
    originals, copies = study_records(errors, dataset)

    def table(rows: list[Any]) -> pa.Table:
        columns = {n: [r[n] for _, r in rows] for n in (*STUDY_FIELDS, "postcode")}
        return pa.table({"id": [f"{prefix}{k}" for k, _ in rows], **columns})

    a = [(k, r) for k, r in originals if k < 500]
    b = [(k, r) for k, r in copies if k < overlap or 500 <= k < 1000 - overlap]
    truth = [(f"{prefix}{k}", f"{prefix}{k}") for k in range(overlap)]
    return table(a), table(b), truth


def study(errors: int, overlap: int, dataset: int) -> Files:
    """One setting of the study."""
    if STUDY.is_file():
        return Files(*study_files(errors, overlap, dataset), study_source())
    seed = 10_000 * errors + dataset
    made = simulate(500, overlap=overlap / 500, errors=_ERRORS[errors], seed=seed)
    return Files(made.a, made.b, made.truth, study_source())


@cache
def reference_scores(errors: int, overlap: int) -> dict[str, Any]:
    """Recall and precision of BRL, fabl and vabl on each of the 100 data sets, in their order.

    The results are numbered in the alphabetical order of the files' names.
    """
    wanted: dict[str, dict[int, tuple[float, float]]] = {"BRL": {}, "fabl": {}, "vabl": {}}
    with gzip.open(REFERENCES, "rt") as file:
        for row in csv.DictReader(file):
            number = int(row["file"].removeprefix("sim_acc_")) - 1 - 100 * (errors - 1)
            if row["method"] in wanted and int(row["overlap"]) == overlap and 0 <= number < 100:
                wanted[row["method"]][number] = float(row["recall"]), float(row["precision"])
    order = sorted(range(100), key=str)
    return {
        method: np.array([found[order.index(d)] for d in range(100)])
        for method, found in wanted.items()
    }


# --- large example (5.3) ----------------------------------------------------------------------


def large_example() -> tuple[pa.Table, pa.Table, list[tuple[str, str]]]:
    """Section 5.3: two errors, 50 % overlap, all 100 databases stacked."""
    parts = [study_files(2, 250, d, prefix=f"{d}-") for d in range(100)]
    a, b = (pa.concat_tables([part[side] for part in parts]) for side in (0, 1))
    return a, b, [pair for part in parts for pair in part[2]]


def large() -> Files:
    """50,000 × 50,000 records, 25,000 of them in both."""
    if STUDY.is_file():
        return Files(*large_example(), "data of Sadinle (2017), stacked")
    made = simulate(50_000, overlap=0.5, errors=_ERRORS[2], seed=1)
    return Files(made.a, made.b, made.truth, "SIMULATED data of the large example's design")
