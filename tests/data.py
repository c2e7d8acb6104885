"""The paper's data, where they are at hand: `BAYESLINK_DATA`, or shared/data beside the clone."""

from __future__ import annotations

import csv
import gzip
import io
import os
import tarfile
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import bayeslink as bl

ROOT = Path(os.environ.get("BAYESLINK_DATA", Path(__file__).parents[1] / ".." / "shared" / "data"))
CENSUS = ROOT / "italian_census"
STUDY = ROOT / "sadinle2017" / "sadinle_sim_data.tar.gz"

REFERENCES = ROOT / "reference_results" / "sadinle_sim_BRL_fabl_vabl_per_dataset.csv.gz"

needs_census = pytest.mark.skipif(
    not CENSUS.is_dir(), reason="no italian_census: set BAYESLINK_DATA to the folder that holds it"
)
needs_study = pytest.mark.skipif(
    not STUDY.is_file(), reason="no sadinle2017: set BAYESLINK_DATA to the folder that holds it"
)

STUDY_FIELDS = ("gname", "fname", "age", "occup")


def census_fields():
    """Section 5.1: Beta(20, 3) on each m, Beta(3, 20) on each u."""
    priors = {"m_prior": (3, 20), "u_prior": (20, 3)}
    return [bl.exact(name, **priors) for name in ("name", "sex", "edu")]


def study_fields():
    """Section 5.2: names by Levenshtein distance, age and occupation exactly."""
    return [bl.levenshtein("gname"), bl.levenshtein("fname"), bl.exact("age"), bl.exact("occup")]


def paper_fields():
    """The same with the paper's Dirichlet(1, 2, 5, 10) on the names' m."""
    names = [bl.levenshtein(n, m_prior=(1, 2, 5, 10)) for n in ("gname", "fname")]
    return [*names, *(bl.exact(n, m_prior=(1, 10)) for n in ("age", "occup"))]


@cache
def _study_texts():
    with tarfile.open(STUDY) as archive:
        return {
            Path(member.name).name: archive.extractfile(member).read().decode()
            for member in archive
            if member.isfile()
        }


def study_records(errors, dataset):
    """(originals, copies) of one database, each a list of (NNN, row)."""
    name = f"percdups50_nerrors{errors}_dataset{dataset}_4fields_twofiles_BRLpaper.csv"
    originals, copies = [], []
    for row in csv.DictReader(io.StringIO(_study_texts()[name])):
        _, number, kind = row["rec-id"].split("-", 2)
        (originals if kind == "org" else copies).append((int(number), row))
    return originals, copies


def study_files(errors, overlap, dataset, prefix=""):
    """Files A and B with `overlap` of 500 records in both, and the true pairs."""
    originals, copies = study_records(errors, dataset)

    def table(rows):
        columns = {n: [r[n] for _, r in rows] for n in (*STUDY_FIELDS, "postcode")}
        return pa.table({"id": [f"{prefix}{k}" for k, _ in rows], **columns})

    a = [(k, r) for k, r in originals if k < 500]
    b = [(k, r) for k, r in copies if k < overlap or 500 <= k < 1000 - overlap]
    truth = [(f"{prefix}{k}", f"{prefix}{k}") for k in range(overlap)]
    return table(a), table(b), truth


@cache
def reference_scores(errors, overlap):
    """Recall and precision of BRL, fabl and vabl on each of the 100 data sets, in their order.

    The results are numbered in the alphabetical order of the files' names.
    """
    wanted = {"BRL": {}, "fabl": {}, "vabl": {}}
    with gzip.open(REFERENCES, "rt") as file:
        for row in csv.DictReader(file):
            number = int(row["file"].removeprefix("sim_acc_")) - 1 - 100 * (errors - 1)
            if row["method"] in wanted and int(row["overlap"]) == overlap and 0 <= number < 100:
                pair = float(row["recall"]), float(row["precision"])
                wanted[row["method"]][number] = pair
    order = sorted(range(100), key=str)
    return {
        method: np.array([found[order.index(d)] for d in range(100)])
        for method, found in wanted.items()
    }


def large_example():
    """Section 5.3: two errors, 50 % overlap, all 100 databases stacked."""
    parts = [study_files(2, 250, d, prefix=f"{d}-") for d in range(100)]
    a, b = (pa.concat_tables([part[side] for part in parts]) for side in (0, 1))
    return a, b, [pair for part in parts for pair in part[2]]
