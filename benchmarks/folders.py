"""Links of whole files with known truth: `python benchmarks/folders.py [--proposed] [FOLDER …]`.

The fields are those a person would choose, with the comparison made for each kind of value and
nothing set; with --proposed, those that `suggest` chooses, unedited. A line of JSON for each.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import bayeslink as bl
from experiments.data import ROOT

FIELDS = {
    "abt_buy": [bl.text("name"), bl.numeric("price")],
    "trans_half": [bl.text("memo"), bl.date("transaction_date"), bl.numeric("amount")],
    "fodors_zagats": [
        bl.text("name"), bl.address("address"), bl.text("city"), bl.phone("phone"), bl.text("type"),
    ],
    "historical": [
        *bl.person_name("first_name", "surname"), bl.text("birth_place"), bl.date("dob"),
        bl.postcode("postcode_fake"), bl.exact("gender"), bl.text("occupation"),
    ],
    "dblp_acm": [bl.text("title"), bl.text("authors"), bl.text("venue"), bl.exact("year")],
    "rldata": [
        *bl.person_name("fname_c1", "lname_c1"), bl.exact("by"), bl.exact("bm"), bl.exact("bd"),
    ],
    "febrl4_half": [
        *bl.person_name("given_name", "surname"), bl.address("address_1"), bl.text("suburb"),
        bl.postcode("postcode"), bl.date("date_of_birth"),
    ],
    "pp_census_ssa": [
        *bl.person_name("first_name", "last_name"), bl.date("date_of_birth"), bl.exact("sex"),
    ],
}  # fmt: skip


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folders", nargs="*", metavar="FOLDER")
    options.add_argument("--proposed", action="store_true")
    given = options.parse_args()
    for folder in given.folders or FIELDS:
        a, b, truth = (ROOT / "truth" / folder / f"{part}.csv.gz" for part in ("a", "b", "truth"))
        start = time.perf_counter()
        fields = None if given.proposed else FIELDS[folder]
        run = bl.link(a, b, fields, draws=500, tune=500, chains=2, seed=1)
        result = bl.evaluate(run.table, truth)
        low, high = run.posterior.interval()
        line = {
            "folder": folder,
            "fields": [f"{f.name}:{f.kind}" for f in run.pairs.fields],
            "precision": round(result.precision, 4),
            "recall": round(result.recall, 4),
            "f1": round(result.f1, 4),
            "links": [int(low), int(high)],
            "true": result.n_true,
            "seconds": round(time.perf_counter() - start, 1),
        }
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
