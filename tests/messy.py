"""Two ordinary files, as people have them: nothing is called or written the same in both."""

import csv
import datetime as dt

import numpy as np

import bayeslink as bl
from bayeslink.simulation.mistakes import NICKNAMES

A_COLUMNS = (
    "Person ID",
    "Forename",
    "Surname",
    "DOB",
    "Sex",
    "Tel.",
    "Post Code",
    "Remarks",
    "Src",
)
B_COLUMNS = (
    "client_no", "first_name", "last_name", "birth_date", "gender", "phone", "zip", "e-mail",
    "branch", "last_visit",
)  # fmt: skip


def write_messy_files(folder, n=1200, seed=7):
    """Write a.csv, b.csv into `folder`; return the true pairs as (id in A, id in B)."""
    rng = np.random.default_rng(seed)
    files = bl.simulate(n, overlap=0.6, errors=1, seed=seed)
    partner = {row["id_b"]: row["id_a"] for row in files.truth.to_pylist()}
    phone = {row["id"]: _phone(rng) for row in files.a.to_pylist()}
    a = [_row_of_a(row, phone[row["id"]], rng) for row in files.a.to_pylist()]
    b = [_row_of_b(row, phone.get(partner.get(row["id"])), rng) for row in files.b.to_pylist()]
    _write(folder / "a.csv", A_COLUMNS, a)
    _write(folder / "b.csv", B_COLUMNS, b)
    return {(_a_id(id_a), _b_id(id_b)) for id_b, id_a in partner.items()}


def _a_id(text):
    return str(10_000 + int(text[1:]))


def _b_id(text):
    return f"C-{int(text[1:]):05d}"


def _phone(rng):
    return f"20{rng.integers(10**7, 10**8):08d}"


def _row_of_a(row, phone, rng):
    day = row["dob"] and dt.date.fromisoformat(row["dob"]).strftime("%d/%m/%Y")
    return (
        _a_id(row["id"]),
        (row["gname"] or "N/A").upper(),
        (row["fname"] or "N/A").upper(),
        day or "N/A",
        row["sex"][0].upper() if row["sex"] else "N/A",
        "N/A" if rng.random() < 0.1 else f"0{phone[:2]} {phone[2:6]} {phone[6:]}",
        row["postcode"] or "N/A",
        rng.choice(["", "", "called back", "see letter of 3 May", "no reply"]),
        "import",
    )


def _row_of_b(row, phone, rng):
    given = row["gname"]
    if given in NICKNAMES and rng.random() < 0.5:
        given = rng.choice(NICKNAMES[given])
    if phone is None or rng.random() < 0.15:
        phone = _phone(rng)
    return (
        _b_id(row["id"]),
        given or "unknown",
        row["fname"] or "unknown",
        row["dob"] or "9999-12-31",
        {"m": "Male", "f": "Female"}.get((row["sex"] or "?")[0].lower(), "unknown"),
        "N/A" if rng.random() < 0.1 else f"+44-{phone[:2]}-{phone[2:]}",
        row["postcode"] or "unknown",
        "",
        rng.choice(["North", "South"]),
        f"2024-{rng.integers(1, 13):02d}-{rng.integers(1, 28):02d}",
    )


def _write(path, columns, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(rows)
