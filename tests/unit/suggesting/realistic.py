"""Six pairs of files as offices keep them, made of simulated people, with their true pairs.

Languages, formats and codes differ between the two files; beside what tells people apart there are
dates of events, filler values and columns that the other file does not have.
"""

import csv
import datetime as dt

import numpy as np
import pandas as pd

import bayeslink as bl

_TOWNS = """
Albrook Bellford Carnwick Dunmore Eastleigh Farnham Glenrock Hartwell Inverby Jarrow Kelmont
Langdale Marfield Norwood Oakhampton Penrith Quorn Redcliff Selby Tarland Upwell Velden Westbury
Yarm Zennor
"""
TOWNS = _TOWNS.split()


def people(n, n_b, seed):
    """Two tables of strings with None where missing, a random generator, and the true pairs."""
    files = bl.simulate(
        n, n_b=n_b, overlap=0.6, errors=1, spread="independent", missing=0.03, seed=seed
    )
    a, b = (
        pd.DataFrame(t.to_pydict(), dtype=object).where(lambda x: x.notna(), None)
        for t in (files.a, files.b)
    )
    for side in (a, b):
        digits = [sum(map(int, filter(str.isdigit, p or ""))) for p in side.postcode]
        towns = [TOWNS[k % 25] if k else None for k in digits]
        side["town"] = pd.Series(towns, dtype=object)
    truth = {(r["id_a"], r["id_b"]) for r in files.truth.to_pylist()}
    return a, b, np.random.default_rng(seed), truth


def shared(a, b, truth, values):
    """Values of A's records, and for B those of the same people; the others in turn."""
    of_a = dict(zip(a.id, values[: len(a)], strict=True))
    partner = {y: x for x, y in truth}
    rest = iter(values[len(a) :])
    of_b = [of_a[partner[i]] if i in partner else next(rest) for i in b.id]
    return [of_a[i] for i in a.id], of_b


def days(rng, n, first, last):
    start, end = (dt.date.fromisoformat(day).toordinal() for day in (first, last))
    return [dt.date.fromordinal(k) for k in rng.integers(start, end, n).tolist()]


def form(day, pattern):
    """A date as ISO text in another format; as it is where it does not exist."""
    if day is None:
        return None
    year, month, of_month = day.split("-")
    parts = {"%Y": year, "%m": month, "%d": of_month}
    for code, text in parts.items():
        pattern = pattern.replace(code, text)
    return pattern


def forms(column, pattern):
    return [form(day, pattern) for day in column]


def filled(column, word, rng, share=0.04):
    """Missing cells, and a few more, as a word."""
    return [word if c is None or rng.random() < share else c for c in column]


def coded(column, codes):
    return [codes.get((c or "")[:1].lower()) for c in column]


def _ids(table, pattern, rng):
    numbers = rng.permutation(len(table)) + 1000
    return [pattern.format(k) for k in numbers]


def hospital_and_deaths(folder, n, n_b, seed):
    """Admissions in French, `;` and latin-1; deaths in English."""
    a, b, rng, truth = people(n, n_b, seed)
    left = days(rng, n, "2019-01-01", "2022-12-31")
    came = [day - dt.timedelta(int(k)) for day, k in zip(left, rng.geometric(0.2, n), strict=True)]
    died = dict(zip(b.id, days(rng, n_b, "2019-06-01", "2023-12-31"), strict=True))
    for x, y in truth:  # one in five dies in hospital, many soon after
        left_x = left[int(x[1:]) - 1]
        died[y] = left_x + dt.timedelta(int(rng.geometric(0.01)) if rng.random() > 0.2 else 0)
    order = {i: k for k, i in enumerate(a.id)}
    table_a = {
        "IPP": _ids(a, "80{}", rng),
        "Nom": filled([c and c.upper() for c in a.fname], "NR", rng),
        "Prénom": filled(a.gname, "NR", rng),
        "Né(e) le": filled(forms(a.dob, "%d/%m/%Y"), "01/01/1900", rng, 0.03),
        "Sexe": coded(a.sex, {"m": "1", "f": "2"}),
        "CP": filled(a.postcode, "00000", rng, 0.03),
        "Commune": a.town,
        "Date d'entrée": [f"{came[order[i]]:%d/%m/%Y}" for i in a.id],
        "Date de sortie": [f"{left[order[i]]:%d/%m/%Y}" for i in a.id],
    }
    table_b = {
        "cert_no": _ids(b, "D-{}", rng),
        "surname": b.fname,
        "given_names": b.gname,
        "date_of_birth": b.dob,
        "sex": coded(b.sex, {"m": "M", "f": "F"}),
        "postcode": b.postcode,
        "date_of_death": [died[i].isoformat() for i in b.id],
        "cause": rng.choice(["I21", "C34", "J18", "I64"], n_b),
    }
    return _written(folder, a, b, truth, (table_a, "a.csv"), (table_b, "b.csv"), latin="a")


def german_workbook_and_spanish_register(folder, n, n_b, seed):
    """An xlsx whose dates are dates; year, month and day apart; H and M for the sexes."""
    a, b, rng, truth = people(n, n_b, seed)
    table_a = {
        "Fallnummer": _ids(a, "{}", rng),
        "Nachname": a.fname,
        "Vorname": a.gname,
        "Geburtsdatum": [_day(day) for day in a.dob],
        "Geschlecht": coded(a.sex, {"m": "m", "f": "w"}),
        "PLZ": a.postcode,
        "Wohnort": a.town,
        "Aufnahmedatum": days(rng, n, "2020-01-01", "2021-12-31"),
    }
    table_b = {
        "expediente": _ids(b, "E{}", rng),
        "apellido": filled([c and c.upper() for c in b.fname], "ND", rng),
        "nombre": b.gname,
        "dia_nac": forms(b.dob, "%d"),
        "mes_nac": forms(b.dob, "%m"),
        "ano_nac": forms(b.dob, "%Y"),
        "sexo": coded(b.sex, {"m": "H", "f": "M"}),
        "cod_postal": b.postcode,
        "localidad": [c and c.upper() for c in b.town],
        "fecha_ingreso": [f"{d:%d-%m-%Y}" for d in days(rng, n_b, "2020-01-01", "2021-12-31")],
    }
    return _written(folder, a, b, truth, (table_a, "a.xlsx"), (table_b, "b.csv"))


def check_ups_in_other_units(folder, n, n_b, seed):
    """Parquet in English with cm and pounds; French with metres, decimal commas and kilograms."""
    a, b, rng, truth = people(n, n_b, seed)
    height = rng.normal(170, 11, n + n_b).round()
    weight = rng.normal(75, 13, n + n_b).round()
    heights, weights = (shared(a, b, truth, v.tolist()) for v in (height, weight))
    table_a = {
        "record_id": _ids(a, "{}", rng),
        "forename": a.gname,
        "family_name": a.fname,
        "born_on": forms(a.dob, "%d.%m.%Y"),
        "gender": coded(a.sex, {"m": "Male", "f": "Female"}),
        "height_cm": heights[0],
        "weight_lb": [round(w / 0.45359237) for w in weights[0]],
        "visit_date": [d.isoformat() for d in days(rng, n, "2021-01-01", "2021-12-31")],
    }
    table_b = {
        "n_dossier": _ids(b, "F{}", rng),
        "NOM_PATIENT": b.fname,
        "PRENOM_PATIENT": b.gname,
        "DATE_NAISS": forms(b.dob, "%Y%m%d"),
        "SEXE": coded(b.sex, {"m": "1", "f": "2"}),
        "TAILLE": [f"{h / 100:.2f}".replace(".", ",") for h in heights[1]],
        "POIDS": [f"{w:.0f} kg" for w in weights[1]],
        "DATE_CONSULT": [f"{d:%d/%m/%Y}" for d in days(rng, n_b, "2022-01-01", "2022-12-31")],
    }
    return _written(folder, a, b, truth, (table_a, "a.parquet"), (table_b, "b.csv"))


def columns_without_a_name(folder, n, n_b, seed):
    """Headers that say nothing: v1 to v7; two dates in each file, one of them of an event."""
    a, b, rng, truth = people(n, n_b, seed)
    table_a = {
        "v1": _ids(a, "{}", rng),
        "v2": a.fname,
        "v3": a.gname,
        "v4": [d.isoformat() for d in days(rng, n, "2018-01-01", "2022-12-31")],
        "v5": a.dob,
        "v6": coded(a.sex, {"m": "1", "f": "2"}),
        "v7": a.postcode,
    }
    table_b = {
        "k": _ids(b, "Z{}", rng),
        "last": [c and c.upper() for c in b.fname],
        "first": b.gname,
        "d1": forms(b.dob, "%d/%m/%Y"),
        "d2": [f"{d:%d/%m/%Y}" for d in days(rng, n_b, "2018-01-01", "2022-12-31")],
        "s": coded(b.sex, {"m": "B", "f": "A"}),
        "area": b.postcode,
    }
    return _written(folder, a, b, truth, (table_a, "a.csv"), (table_b, "b.csv"))


def clinics_on_a_map(folder, n, n_b, seed):
    """Places: latitude and longitude, a name, an altitude in feet and in metres."""
    a, b, rng, truth = people(n, n_b, seed)
    m = n + n_b
    where = np.column_stack([rng.uniform(44, 50, m), rng.uniform(-2, 7, m)]).round(5)
    here, there = shared(a, b, truth, [*where])
    high, other = shared(a, b, truth, rng.gamma(2, 150, m).round().tolist())
    there = np.array(there) + rng.normal(0, 0.0005, (n_b, 2))
    table_a = {
        "site": _ids(a, "S{}", rng),
        "name": [f"{s.split(' ', 1)[1]} Clinic" if s else None for s in a.street],
        "latitude": [f"{x:.5f}" for x, _ in here],
        "longitude": [f"{y:.5f}" for _, y in here],
        "altitude_m": [f"{h:.0f}" for h in high],
    }
    table_b = {
        "num": _ids(b, "T{}", rng),
        "libelle": [f"{s.split(' ', 1)[1]} Health Centre" if " " in (s or "") else None
                    for s in b.street],
        "lat": [f"{x:.4f}" for x, _ in there],
        "lon": [f"{y:.4f}" for _, y in there],
        "altitude_ft": [f"{h / 0.3048:.0f}" for h in other],
    }  # fmt: skip
    return _written(folder, a, b, truth, (table_a, "a.csv"), (table_b, "b.csv"))


def italian_names_in_one_column(folder, n, n_b, seed):
    """A workbook with family and given name together; Parquet with the parts of a birth date."""
    a, b, rng, truth = people(n, n_b, seed)
    both = zip(a.fname, a.gname, strict=True)
    table_a = {
        "codice": _ids(a, "IT{}", rng),
        "Cognome e nome": [f"{f} {g}" if f and g else None for f, g in both],
        "Data di nascita": forms(a.dob, "%d/%m/%Y"),
        "Sesso": coded(a.sex, {"m": "M", "f": "F"}),
        "CAP": filled(a.postcode, "00000", rng),
        "Data ricovero": [f"{d:%d/%m/%Y}" for d in days(rng, n, "2020-01-01", "2022-12-31")],
    }
    table_b = {
        "uid": _ids(b, "{}", rng),
        "first_name": b.gname,
        "last_name": b.fname,
        "birth_year": [int(form(d, "%Y")) if d else 9999 for d in b.dob],
        "birth_month": [int(form(d, "%m")) if d else 99 for d in b.dob],
        "birth_day": [int(form(d, "%d")) if d else 99 for d in b.dob],
        "gender": coded(b.sex, {"m": "male", "f": "female"}),
        "zip": b.postcode,
        "date_of_death": days(rng, n_b, "2021-01-01", "2023-12-31"),
    }
    return _written(folder, a, b, truth, (table_a, "a.xlsx"), (table_b, "b.parquet"))


PAIRS = (
    hospital_and_deaths,
    german_workbook_and_spanish_register,
    check_ups_in_other_units,
    columns_without_a_name,
    clinics_on_a_map,
    italian_names_in_one_column,
)


def _day(text):
    try:
        return dt.date.fromisoformat(text or "")
    except ValueError:  # a cell of a workbook is no 31 February
        return text


def _written(folder, a, b, truth, one, other, latin=""):
    """Write both files; return their paths and the true pairs by the ids in them."""
    paths = []
    for side, (table, name) in zip("ab", (one, other), strict=True):
        path = folder / name
        frame = pd.DataFrame(table)
        if path.suffix == ".xlsx":
            frame.to_excel(path, index=False)
        elif path.suffix == ".parquet":
            frame.to_parquet(path)
        else:
            separator = ";" if side == latin else ","
            rows = [frame.columns, *frame.where(frame.notna(), "").itertuples(index=False)]
            encoding = "latin-1" if side == latin else "utf-8"
            with path.open("w", newline="", encoding=encoding, errors="replace") as file:
                csv.writer(file, delimiter=separator).writerows(rows)
        paths.append(path)
    ids = [
        dict(zip(table.id, map(str, next(iter(said.values()))), strict=True))
        for table, (said, _) in ((a, one), (b, other))
    ]
    return (*paths, {(ids[0][x], ids[1][y]) for x, y in truth})
