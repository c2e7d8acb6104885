"""Does the interval of L from a judged sample hold? `python benchmarks/judged.py`.

Links random halves of the folders with known truth (BAYESLINK_DATA/truth, or shared/data beside the
clone), draws samples, judges them by the truth, and prints how often the interval has the number of
true links in it: the run's own, and the one corrected by the sample.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parents[1]))

import bayeslink as bl
from bayeslink.data.id_pairs import SIDES
from bayeslink.runs.audit import estimate
from bayeslink.runs.audit_sample import chances_of, stratified
from tests.data import ROOT

FIELDS = {
    "rldata": [
        *map(bl.levenshtein, ("fname_c1", "lname_c1")),
        *map(bl.exact, ("by", "bm", "bd")),
    ],
    "historical": [
        *map(bl.levenshtein, ("first_name", "surname", "birth_place")),
        bl.date("dob"),
        *map(bl.exact, ("postcode_fake", "gender", "occupation")),
    ],
    "fodors_zagats": [*map(bl.levenshtein, ("name", "address", "city", "phone", "type"))],
    "febrl4_half": [
        *map(bl.levenshtein, ("given_name", "surname", "address_1", "suburb")),
        bl.exact("postcode"),
        bl.date("date_of_birth", format="%Y%m%d"),
    ],
    "abt_buy": [bl.levenshtein("name"), bl.numeric("price")],
    "trans_half": [bl.levenshtein("memo"), bl.date("transaction_date"), bl.numeric("amount")],
    "pp_census_ssa": [
        *map(bl.levenshtein, ("first_name", "last_name")),
        bl.date("date_of_birth", format=("%m/%d/%Y", "%Y%m%d")),
        bl.exact("sex"),
    ],
    "dblp_acm": [*map(bl.levenshtein, ("title", "authors", "venue")), bl.exact("year")],
}


def read(path: Path) -> pa.Table:
    """A CSV file with every column as text."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        names, *rows = csv.reader(file)
    columns = zip(*([cell or None for cell in row] for row in rows), strict=True)
    return pa.table([pa.array(column, pa.string()) for column in columns], names)


def pairs(table: pa.Table) -> set[tuple[str, str]]:
    return set(zip(*(table[side].to_pylist() for side in SIDES), strict=True))


def half(folder: Path, seed: int) -> tuple[pa.Table, pa.Table, set[tuple[str, str]]]:
    """Random halves of both files, and the true pairs left."""
    rng = np.random.default_rng(seed)
    a, b = (read(folder / f"{side}.csv.gz") for side in "ab")
    a, b = (x.take(np.sort(rng.permutation(len(x))[: len(x) // 2])) for x in (a, b))
    left, right = (set(x["id"].to_pylist()) for x in (a, b))
    truth = pairs(read(folder / "truth.csv.gz"))
    return a, b, {(x, y) for x, y in truth if x in left and y in right}


def measure(name: str, seed: int, size: int, samples: int) -> list[tuple[float, ...]]:
    a, b, truth = half(ROOT / "truth" / name, seed)
    run = bl.link(a, b, FIELDS[name], seed=seed)
    tables = [run.as_table(name) for name in ("pairs", "links", "reach")]
    chances = chances_of(tables[2])
    low, high = run.summary()["links_interval"]
    rows = []
    for k in range(samples):
        sample = stratified(*tables, size=size, seed=k)
        verdicts = {pair: "link" if pair in truth else "nonlink" for pair in sample.pairs}
        judged = estimate(sample, verdicts, records=(len(a), len(b)), chances=chances)
        found = judged.quality.totals.links
        holds = found.lower <= len(truth) <= found.upper
        width = found.upper - found.lower
        rows.append((low <= len(truth) <= high, holds, width, len(truth)))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", default=list(FIELDS))
    parser.add_argument("--halves", type=int, default=5)
    parser.add_argument("--samples", type=int, default=40)
    parser.add_argument("--size", type=int, default=300)
    given = parser.parse_args()
    print(f"{'':<16}{'true links':>12}{'run holds':>12}{'sample holds':>14}{'width':>8}")
    for name in given.folders:
        rows = [
            row
            for seed in range(given.halves)
            for row in measure(name, seed, given.size, given.samples)
        ]
        run, sample, width, true = np.mean(rows, axis=0)
        print(f"{name:<16}{true:>12,.0f}{run:>12.1%}{sample:>14.1%}{width:>8,.0f}", flush=True)


if __name__ == "__main__":
    main()
