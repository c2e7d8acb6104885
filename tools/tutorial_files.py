"""The files of the tutorial, and the truth: made-up people, written down by two kinds of clerks.

    python tools/tutorial_files.py

A register with days before months, capital surnames and "N/A"; a clinic with other names of
columns, ISO dates, 1900-01-01 and "unknown" for what is missing, and the number of visits.
"""

import csv
from pathlib import Path

import numpy as np

import bayeslink as bl

FOLDER = Path(__file__).parents[1] / "docs" / "files"


def main() -> None:
    files, rng = (
        bl.simulate(400, n_b=350, overlap=0.6, errors=2, missing=0.1, seed=1),
        np.random.default_rng(1),
    )
    FOLDER.mkdir(exist_ok=True)
    register = [
        {
            "RegNo": f"R-{k:04}",
            "Forename": person["gname"] or "N/A",
            "Surname": (person["fname"] or "N/A").upper(),
            "Sex": (person["sex"] or "").upper()[:1],
            "Born": "/".join(reversed(person["dob"].split("-"))) if person["dob"] else "N/A",
            "Postcode": person["postcode"] or "",
            "Street": person["street"] or "N/A",
            "Region": rng.choice(["north", "south", "west"]),
        }
        for k, person in enumerate(files.a.to_pylist(), 1)
    ]
    clinic = [
        {
            "patient_no": str(90000 + 7 * k),
            "first_name": person["gname"] or "unknown",
            "last_name": person["fname"] or "unknown",
            "gender": {"m": "male", "f": "female"}.get(
                (person["sex"] or "").lower()[:1], "unknown"
            ),
            "dob": person["dob"] or "1900-01-01",
            "zip": person["postcode"] or "",
            "address": person["street"] or "",
            "visits": str(1 + rng.poisson(2)),
        }
        for k, person in enumerate(files.b.to_pylist(), 1)
    ]
    number = {
        side: {person["id"]: row[key] for person, row in zip(table.to_pylist(), rows, strict=True)}
        for side, table, rows, key in (
            ("id_a", files.a, register, "RegNo"),
            ("id_b", files.b, clinic, "patient_no"),
        )
    }
    truth = [{s: number[s][pair[s]] for s in ("id_a", "id_b")} for pair in files.truth.to_pylist()]
    for name, rows in (("register", register), ("clinic", clinic), ("truth", truth)):
        with (FOLDER / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, rows[0], delimiter=";" if name == "register" else ",")
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
