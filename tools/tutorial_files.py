"""The files of the tutorials, and the truth: made-up people, written down by all kinds of clerks.

    python tools/tutorial_files.py

Of two files: a register with days before months, capital surnames and "N/A"; a clinic with other
names of columns, ISO dates, 1900-01-01 and "unknown" for what is missing, and the number of visits.
Of one file: customers, some of them several times, and those who came a month later. Of three: a
town's register, its clinic's patients, some of them twice, and the readers of its library.
"""

import csv
from datetime import date, timedelta
from pathlib import Path

import numpy as np

import bayeslink as bl

FOLDER = Path(__file__).parents[1] / "docs" / "files"


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    two_files()
    one_file()
    three_files()


def write(name: str, rows: list[dict[str, str]], delimiter: str = ",") -> None:
    with (FOLDER / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0], delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)


def day_first(day: str | None, empty: str = "") -> str:
    return "/".join(reversed(day.split("-"))) if day else empty


def one_file() -> None:
    """Customers of October and November, as each was written down on a day."""
    made, rng = bl.simulate_duplicates(460, seed=3), np.random.default_rng(3)
    entity = dict(zip(*(made.truth[name].to_pylist() for name in ("id", "entity_id")), strict=True))
    days = [*np.sort(rng.integers(0, 669, 400)), *np.sort(rng.integers(669, 699, 60))]
    rows, truth = [], []
    for k, (person, day) in enumerate(zip(made.a.to_pylist(), map(int, days), strict=True), 1):
        number = f"C-{k:04}"
        rows.append(
            {
                "customer_no": number,
                "first_name": person["gname"] or "",
                "last_name": person["fname"] or "",
                "sex": person["sex"] or "",
                "born": day_first(person["dob"]),
                "zip": person["postcode"] or "",
                "address": person["street"] or "",
                "changed_on": str(date(2025, 1, 1) + timedelta(day)),
            }
        )
        truth.append({"id": number, "entity_id": entity[person["id"]]})
    write("customers", rows[:400])
    write("november", rows[400:])
    write("customers_truth", truth)


def three_files(people: int = 400, seed: int = 2) -> None:
    """A town's register, patients (some of them twice) and readers: each a random catch."""
    made = bl.simulate_duplicates(4 * people, seed=seed, sizes=(0, 0, 0, 1))
    rng = np.random.default_rng(seed)
    entity = made.truth["entity_id"].to_pylist()
    town: dict[str, list[dict[str, str]]] = {"residents": [], "patients": [], "readers": []}
    of_record = ("residents", "patients", "readers", "patients")  # a person's first to fourth
    caught = (0.6, 0.4, 0.4, 0.15)
    seen: dict[str, int] = {}
    truth = []
    for person, who in zip(made.a.to_pylist(), entity, strict=True):
        k = seen[who] = seen.get(who, -1) + 1
        if rng.random() >= caught[k]:
            continue
        name = of_record[k]
        number = str(1001 + len(town[name]))
        town[name].append(_written(name, number, person))
        truth.append({"file": name, "id": number, "entity_id": who})
    for name, rows in town.items():
        write(name, rows)
    write("town_truth", truth)


def _written(name: str, number: str, person: dict[str, str | None]) -> dict[str, str]:
    """A person as one of the three clerks writes it."""
    cells = {key: value or "" for key, value in person.items()}
    given, family, born = cells["gname"], cells["fname"], person["dob"]
    if name == "residents":
        own = {"id": number, "forename": given, "surname": family, "born": born or ""}
        return {
            **own,
            "sex": cells["sex"],
            "postcode": cells["postcode"],
            "street": cells["street"],
        }
    if name == "patients":
        own = {"patient": number, "first_name": given, "last_name": family.upper()}
        return {
            **own,
            "dob": day_first(born, "unknown"),
            "gender": cells["sex"].upper(),
            "area": cells["postcode"],
        }
    own = {"card": number, "given": given, "name": family, "birthday": born or ""}
    return {**own, "zip": cells["postcode"], "address": cells["street"]}


def two_files() -> None:
    files, rng = (
        bl.simulate(400, n_b=350, overlap=0.6, errors=2, missing=0.1, seed=1),
        np.random.default_rng(1),
    )
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
        write(name, rows, ";" if name == "register" else ",")


if __name__ == "__main__":
    main()
