"""What tells which columns belong together: births and events, likely pairs, codes, units."""

from collections import Counter
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

import bayeslink as bl
from bayeslink.data.records import read_records
from bayeslink.suggesting.births import joined_dates, with_events
from bayeslink.suggesting.column_names import thing
from bayeslink.suggesting.date_formats import find_formats
from bayeslink.suggesting.likely_pairs import LikelyPairs
from bayeslink.suggesting.profiles import profile_columns
from tests.unit.suggesting import realistic as r


def profiles(**columns):
    found = profile_columns(read_records(pa.table(columns), id=None, columns=None))
    return {p.name: p for p in with_events(found)}


@pytest.fixture(scope="module")
def people():
    return r.people(500, 400, 21)


@pytest.mark.parametrize(
    ("name", "means"),
    [
        ("né(e) le", "birth date"),
        ("DATE_NAISS", "birth date"),
        ("fecha_nac", "birth date"),
        ("born_on", "birth date"),
        ("Data di nascita", "birth date"),
        ("Geburtsjahr", "birth year"),
        ("mois_naiss", "birth month"),
        ("dob_day", "birth day"),
        ("Date d'entrée", "admission date"),
        ("Fecha de defunción", "death date"),
        ("Nom", "family name"),
        ("Nom et prénom", "full name"),
        ("Código postal", "postcode"),
        ("Wohnort", "city"),
        ("taille (cm)", "height"),
    ],
)
def test_names_in_other_languages_are_known(name, means):
    assert thing(name) == means


def test_births_are_told_from_events_without_a_name(people):
    a, _, rng, _ = people
    late = r.days(rng, 500, "2015-01-01", "2020-12-31")
    found = profiles(x=list(a.dob), y=[d.isoformat() for d in late])
    assert (found["x"].event, found["y"].event) == (False, True)
    young = [d.isoformat() for d in r.days(rng, 500, "2010-01-01", "2012-12-31")]
    assert profiles(x=young)["x"].event
    assert not profiles(date_naissance=young)["date_naissance"].event


def test_three_columns_are_a_date_where_they_make_one(people):
    a, _, _, _ = people
    parts = {"j": r.forms(a.dob, "%d"), "m": r.forms(a.dob, "%m"), "an": r.forms(a.dob, "%Y")}
    (found,) = joined_dates([*profiles(**parts).values()])
    assert found.columns == ("an", "m", "j")
    assert list(found.keys[:20]) == list(a.dob[:20])
    shuffled = {**parts, "an": [str(k % 90 + 3000) for k in range(500)]}
    assert joined_dates([*profiles(**shuffled).values()]) == []


def test_likely_pairs_are_those_that_looking_at_all_pairs_finds(people):
    a, b, _, _ = people
    names = ("gname", "fname", "dob", "postcode")
    sides = [list(profiles(**{c: list(side[c]) for c in names}).values()) for side in (a, b)]
    likely = LikelyPairs(*sides, {(c, c): 0.5 for c in names})
    x, y = sides[0][2], sides[1][2]
    rows = {*zip(*(side.tolist() for side in likely.rows(x, y)), strict=True)}
    chances = {
        p.name: sum(u == v for u, v in product(p.present, q.present))
        / len(p.present) / len(q.present)
        for p, q in zip(*sides, strict=True)
    }  # fmt: skip
    scores = np.zeros((500, 400))
    n_agree = np.zeros((500, 400), int)
    for p, q in zip(*sides, strict=True):
        if p.name != "dob":
            equal = np.array([[u is not None and u == v for v in q.keys] for u in p.keys])
            scores += equal * -np.log(chances[p.name])
            n_agree += equal
    scores[(scores < np.log(500) + 1) | (n_agree < 2)] = 0
    best = [
        (i, j)
        for i, j in np.argwhere(scores).tolist()
        if scores[i, j] == scores[i].max() == scores[:, j].max()
    ]
    times = Counter(i for i, _ in best), Counter(j for _, j in best)
    expected = {(i, j) for i, j in best if times[0][i] == times[1][j] == 1}
    assert rows == expected
    found = likely.agreement(x, y)
    same = [x.keys[i] == y.keys[j] for i, j in rows if x.keys[i] and y.keys[j]]
    assert (found.n, found.share) == (len(same), pytest.approx(np.mean(same)))
    assert found.together


def test_a_year_of_birth_is_compared_with_a_date_as_far_as_it_is_known(people):
    a, b, _, _ = people
    other = b[["id", "gname", "fname"]].assign(annee_naissance=r.forms(b.dob, "%Y"))
    (field,) = [f for f in bl.suggest(a, other).fields if f.kind == "date"]
    assert field.columns == (("dob",), ("annee_naissance",))
    run = bl.link(a, other, [field], point=True)
    assert "equal as far as known" in run.pairs.fields[0].labels


def test_full_names_in_another_order_are_compared_by_their_words(people):
    a, b, _, _ = people
    one = a[["id", "dob"]].assign(name=[f"{g} {f}" for g, f in zip(a.gname, a.fname, strict=True)])
    other = b[["id", "dob"]].assign(
        name=[f"{f}, {g}" if f and g else None for g, f in zip(b.gname, b.fname, strict=True)]
    )
    kinds = {f.name: f.kind for f in bl.suggest(one, other).fields}
    assert kinds == {"name": "text", "dob": "date"}
    assert {f.name: f.kind for f in bl.suggest(one, one.copy()).fields}["name"] == "name"


def test_a_name_that_is_whole_in_one_file_only_goes_with_both_parts(people):
    a, b, _, _ = people
    one = a[["id", "dob"]].assign(name=[f"{g} {f}" for g, f in zip(a.gname, a.fname, strict=True)])
    other = b[["id", "dob"]].assign(vorname=b.gname, name=b.fname)
    fields = {f.name: f for f in bl.suggest(one, other).fields}
    assert fields["name"].columns == (("name",), ("name",))
    assert fields["name"].settings["part"] == ["family", ""]
    assert fields["vorname"].columns == (("name",), ("vorname",))


@pytest.mark.parametrize(
    ("written", "parts"),
    [
        ("{g} {f}", ["given", "family"]),
        ("{f}, {g}", ["given", "family"]),
        ("{f} {g}", ["given last", "family first"]),
    ],
)
def test_parts_of_a_whole_name_compare_as_the_same_columns_apart(people, written, parts):
    a, b, _, truth = people
    a, b = (side.dropna(subset=["gname", "fname"]) for side in (a, b))
    whole = [written.format(g=g, f=f) for g, f in zip(a.gname, a.fname, strict=True)]
    chosen = bl.suggest(a[["id", "dob"]].assign(patient=whole), b[["id", "dob", "gname", "fname"]])
    fields = [f for f in chosen.fields if "patient" in f.columns[0]]
    assert [f.settings["part"] for f in fields] == [[part, ""] for part in parts]
    split = bl.compare(a.assign(patient=whole), b, fields)
    apart = bl.compare(a, b, [bl.name("gname"), bl.name("fname")])
    pairs = [pair for pair in truth if pair[0] in {*a.id} and pair[1] in {*b.id}]
    np.testing.assert_array_equal(split.find(pairs).levels, apart.find(pairs).levels)


@pytest.mark.parametrize(
    ("written", "parts"),
    [
        ("{g} {f} {s}", ["given", "family", "given"]),  # the last word is the second surname
        ("{f} {s} {g}", ["family first", "given last", "given last"]),
        ("{f} {s}, {g}", ["family", "family", "given"]),
        ("{g} {f}", ["family", "given"]),
    ],
)
def test_a_whole_name_with_both_surnames_goes_with_each_of_them(people, written, parts):
    a, b, rng, _ = people
    a, b = (side.dropna(subset=["gname", "fname"]).copy() for side in (a, b))
    a["s"] = rng.choice(a.fname, len(a))
    whole = [written.format(g=r.gname, f=r.fname, s=r.s) for r in a.itertuples()]
    other = b[["id", "dob"]].assign(
        apellido1=b.fname, apellido2=rng.choice(a.fname, len(b)), nombre=b.gname
    )
    fields = bl.suggest(a[["id", "dob"]].assign(paciente=whole), other).fields
    found = {f.name: f.settings["part"][0] for f in fields if f.kind == "name"}
    names = ["apellido1", "apellido2", "nombre"] if "{s}" in written else ["apellido1", "nombre"]
    assert found == dict(zip(names, parts, strict=True))


def test_a_plain_name_beside_a_given_name_is_a_surname_even_if_no_known_one(people):
    a, b, _, _ = people
    odd = {x: "".join(sorted(x or "", reverse=True)) or None for x in {*a.fname, *b.fname}}
    one = a[["id", "dob"]].assign(given=a.gname, name=a.fname.map(odd))
    other = b[["id", "dob"]].assign(given=b.gname, surname=b.fname.map(odd))
    fields = {f.name: (f.kind, f.columns[1]) for f in bl.suggest(one, other).fields}
    assert fields["name"] == ("name", ("surname",))


def test_an_admission_is_no_death(people):
    a, b, rng, truth = people
    came = r.days(rng, 500, "2019-01-01", "2020-12-31")
    left = dict(zip(a.id, came, strict=True))
    partner = {y: x for x, y in truth}
    died = [left[partner[i]] if i in partner else came[0] for i in b.id]  # all on that day
    common = ["id", "gname", "fname", "dob"]
    found = bl.suggest(a[common].assign(admitted=came), b[common].assign(died=died))
    assert "admitted" not in {f.name for f in found.fields}
    reasons = {left.column: left.reason for left in found.left_out}
    assert reasons["admitted"] == "B has no date of this event"


def test_events_of_the_same_name_are_left_out_where_people_do_not_share_them(people):
    a, b, rng, _ = people
    sides = [
        side[["id", "gname", "fname", "dob"]].assign(
            updated=r.days(rng, len(side), "2019-01-01", "2020-12-31")
        )
        for side in (a, b)
    ]
    assert "updated" not in {f.name for f in bl.suggest(*sides).fields}


def test_codes_that_agree_by_chance_are_not_the_same_thing(people):
    a, b, _, _ = people
    rng = np.random.default_rng(3)  # of its own: one draw in 200 agrees too well
    sides = [
        side[["id", "gname", "fname", "dob"]].assign(**{name: rng.choice([*"pqrs"], len(side))})
        for side, name in ((a, "ward"), (b, "cause"))
    ]
    assert {f.name for f in bl.suggest(*sides).fields} == {"gname", "fname", "dob"}


def test_codes_are_matched_by_counts_even_where_the_same_ones_mean_other_things(people):
    a, b, _, _ = people
    common = ["id", "gname", "fname", "dob"]
    one = a[common].assign(sex=r.coded(a.sex, {"m": "1", "f": "2"}))
    other = b[common].assign(sex=r.coded(b.sex, {"m": "2", "f": "1"}))
    found = {f.name: f for f in bl.suggest(one, other).fields}
    assert found["sex"].settings["recode"] == [{}, {"1": "2", "2": "1"}]
    same = {f.name: f for f in bl.suggest(one, b[common].assign(
        sex=r.coded(b.sex, {"m": "1", "f": "2"}))).fields}  # fmt: skip
    assert "recode" not in same["sex"].settings


def test_without_likely_pairs_words_tell_the_sexes():
    n = 200
    a = pa.table({"id": [f"A{k}" for k in range(n)], "sexe": ["H", "F"] * 100})
    b = pa.table({"id": [f"B{k}" for k in range(n)], "sex": ["1", "2"] * 100})
    (field,) = bl.suggest(a, b).fields
    assert field.settings["recode"] == {"1": "H", "2": "F"}


@pytest.mark.parametrize(
    ("texts", "day"),
    [(["3. März 1985", "12. Mai 1990"], "1985-03-03"), (["3 de mayo de 1985"], "1985-05-03")],
)
def test_months_in_words_of_other_languages_are_dates(texts, day):
    found = find_formats(dict.fromkeys(texts, 1))
    assert found.share == 1
    assert found.read(texts[0]).isoformat() == day


def test_words_and_numbers_that_stand_for_nothing_are_found_by_shape_and_count(people):
    a, _, rng, _ = people
    found = profiles(
        nom=r.filled(a.fname, "NR", rng),
        cp=r.filled(a.postcode, "00000", rng),
        ne=r.filled(r.forms(a.dob, "%d/%m/%Y"), "voir dossier", rng),
        an=[k or "9999" for k in r.forms(a.dob, "%Y")] + [],
        sexe=r.filled(r.coded(a.sex, {"m": "H", "f": "F"}), "ND", rng),
    )
    assert {name: p.fillers for name, p in found.items() if name != "an"} == {
        "nom": ("NR",), "cp": ("00000",), "ne": ("voir dossier",), "sexe": ("ND",),
    }  # fmt: skip
