"""Synthetic files: the truth is exact, the names are skewed, each error is of its kind."""

import datetime as dt
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayeslink.errors import OutputError, SettingsError
from bayeslink.simulation import people as _people
from bayeslink.simulation.files import FILES, Simulation, simulate, write_simulation
from bayeslink.simulation.mistakes import (
    ALL_KINDS,
    EDITS,
    ERROR_FIELDS,
    NICKNAMES,
    OCR_RULES,
    PHONETIC_RULES,
    SPREADS,
)

FIELDS = _people.COLUMNS


def matched(sim: Simulation):
    """The records of each true pair, as dictionaries."""
    a = {row["id"]: row for row in sim.a.to_pylist()}
    b = {row["id"]: row for row in sim.b.to_pylist()}
    return [(a[row["id_a"]], b[row["id_b"]]) for row in sim.truth.to_pylist()]


def changes(sim: Simulation, field: str):
    """The old and new values of a field wherever it changed between matched records."""
    values = ((old[field], new[field]) for old, new in matched(sim))
    return [(old, new) for old, new in values if old != new]


def rewrites(old, rules):
    """All strings one rule away."""
    return {
        old[:i] + right + old[i + len(left) :]
        for left, right in rules
        for i in range(len(old))
        if old.startswith(left, i)
    }


def one_edit_apart(old, new):
    """Oracle: one insertion, deletion, substitution or exchange of neighbours."""
    n, m = len(old), len(new)
    shared = next((i for i in range(min(n, m)) if old[i] != new[i]), min(n, m))
    x, y = old[shared:], new[shared:]
    return x[1:] == y or x == y[1:] or x[1:] == y[1:] or (x[:2] == y[:2][::-1] and x[2:] == y[2:])


# --- the files and the truth ----------------------------------------------------------------


def test_same_seed_same_tables():
    first, second, other = simulate(300, seed=7), simulate(300, seed=7), simulate(300, seed=8)
    assert first.a.equals(second.a)
    assert first.b.equals(second.b)
    assert first.truth.equals(second.truth)
    assert not first.a.equals(other.a)


def test_same_seed_same_bytes(tmp_path):
    for name in ("x", "y"):
        write_simulation(simulate(200, seed=3), tmp_path / name)
    for file in FILES:
        assert (tmp_path / "x" / file).read_bytes() == (tmp_path / "y" / file).read_bytes()


def test_columns_are_text():
    sim = simulate(50)
    assert sim.a.column_names == sim.b.column_names == ["id", *FIELDS]
    assert sim.truth.column_names == ["id_a", "id_b"]
    assert {str(kind) for kind in sim.a.schema.types + sim.b.schema.types} == {"string"}


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(1, 60),
    n_b=st.integers(1, 60),
    overlap=st.floats(0, 1),
    errors=st.integers(0, len(ERROR_FIELDS)),
    households=st.booleans(),
    seed=st.integers(0, 2**64),
)
def test_counts_and_one_to_one_truth(n, n_b, overlap, errors, households, seed):
    sim = simulate(n, n_b=n_b, overlap=overlap, errors=errors, households=households, seed=seed)
    ids_a, ids_b = sim.a["id"].to_pylist(), sim.b["id"].to_pylist()
    assert (len({*ids_a}), len({*ids_b})) == (n, n_b) == (len(sim.a), len(sim.b))
    true_a, true_b = sim.truth["id_a"].to_pylist(), sim.truth["id_b"].to_pylist()
    assert len(true_a) == round(overlap * min(n, n_b))
    assert len({*true_a}) == len({*true_b}) == len(true_a)
    assert {*true_a} <= {*ids_a}
    assert {*true_b} <= {*ids_b}


def test_without_errors_matches_agree_and_others_do_not():
    sim = simulate(400, n_b=250, overlap=0.4, errors=0, missing=0)
    pairs = matched(sim)
    assert len(pairs) == 100
    assert all(old[field] == new[field] for old, new in pairs for field in FIELDS)
    people = [tuple(row[f] for f in FIELDS) for row in sim.a.to_pylist() + sim.b.to_pylist()]
    assert len({*people}) == 400 + 250 - 100


def test_rows_are_shuffled_and_ids_say_nothing():
    sim = simulate(2000, overlap=1.0)
    a = [int(x[1:]) for x in sim.truth["id_a"].to_pylist()]
    b = [int(x[1:]) for x in sim.truth["id_b"].to_pylist()]
    assert sorted(a) == sorted(b) == list(range(1, 2001))
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.1
    half = simulate(2000, overlap=0.5).truth
    for side in ("id_a", "id_b"):  # the matched are spread over the whole file
        rows = [int(x[1:]) for x in half[side].to_pylist()]
        assert 900 < np.mean(rows) < 1100


# --- people ---------------------------------------------------------------------------------


def test_lists_of_names_have_no_doubles():
    for block in (_people.SURNAMES, _people.STREETS):
        assert len({*block.split()}) == len(block.split())
    female = (_people.FEMALE_OLD + _people.FEMALE_MID + _people.FEMALE_NEW).split()
    male = (_people.MALE_OLD + _people.MALE_MID + _people.MALE_NEW).split()
    assert len({*female}) == len(female) >= 300
    assert len({*male}) == len(male) >= 300
    assert len(_people.SURNAMES.split()) >= 800


def test_rare_names_are_spelt_apart():
    assert len({_people.surname(k) for k in range(_people.N_SURNAMES)}) > 0.99 * _people.N_SURNAMES
    assert len({_people.male_name(k) for k in range(_people.N_GIVEN)}) > 0.99 * _people.N_GIVEN
    assert len({_people.female_name(k) for k in range(_people.N_GIVEN)}) > 0.99 * _people.N_GIVEN


def test_zipf_mandelbrot_by_hand():
    weights = np.array([1 / 3, 1 / 4, 1 / 5])
    expected = weights / weights.sum()
    np.testing.assert_allclose(_people.zipf_mandelbrot(3, 1.0, 2.0), expected)


def test_names_are_skewed_and_their_number_grows():
    small, large = (simulate(n, households=False, missing=0).a for n in (1000, 20_000))
    for field, top in (("fname", 0.004), ("gname", 0.008)):
        counts = Counter(large[field].to_pylist())
        assert top < counts.most_common(1)[0][1] / 20_000 < 5 * top
        ordered = sorted(counts.values(), reverse=True)
        assert sum(ordered[: len(ordered) // 10]) > 0.4 * 20_000
    assert len(large["fname"].unique()) > 5 * len(small["fname"].unique())
    assert len(large["gname"].unique()) > 2 * len(small["gname"].unique())


def test_given_names_follow_sex_and_birth():
    rows = simulate(20_000, missing=0).a.to_pylist()
    female = {*_people.FEMALE_OLD.split(), *_people.FEMALE_MID.split(), *_people.FEMALE_NEW.split()}
    male = {*_people.MALE_OLD.split(), *_people.MALE_MID.split(), *_people.MALE_NEW.split()}
    sexes = Counter((r["sex"], r["gname"] in female) for r in rows if r["gname"] in female ^ male)
    assert sexes["f", False] == sexes["m", True] == 0
    assert min(sexes["f", True], sexes["m", False]) > 5000
    old, new = {*_people.FEMALE_OLD.split()}, {*_people.FEMALE_NEW.split()}
    dated = [(r["dob"], r["gname"] in new) for r in rows if r["gname"] in old | new]
    assert np.mean([modern for dob, modern in dated if dob > "1995"]) > 0.75
    assert np.mean([modern for dob, modern in dated if dob < "1950"]) < 0.25


def test_age_follows_from_dob():
    for row in simulate(500, missing=0).a.to_pylist():
        years = 2019 - dt.date.fromisoformat(row["dob"]).year
        assert row["age"] == "abcdefgh"[min(years // 10, 7)]


def test_categories_and_postcodes():
    table = simulate(20_000, missing=0).a
    assert {*table["age"].to_pylist()} == {*"abcdefgh"}
    occupations = Counter(table["occup"].to_pylist())
    assert {*occupations} == {*"123456789"}
    assert occupations["2"] > 10 * occupations["9"]
    postcodes = Counter(table["postcode"].to_pylist())
    assert 60 <= len(postcodes) <= 67
    assert {len(code) for code in postcodes} == {4, 5}
    assert any(code.startswith("0") for code in postcodes)
    assert postcodes.most_common(1)[0][1] > 3 * 20_000 / len(postcodes)
    assert 15 <= len(simulate(1000, missing=0).a["postcode"].unique()) <= 20


@pytest.mark.parametrize("households", [True, False])
def test_households(households):
    rows = simulate(5000, overlap=1.0, missing=0, households=households).a.to_pylist()
    homes = {}
    for row in rows:
        homes.setdefault((row["postcode"], row["street"]), []).append(row["fname"])
    together = sum(len(names) for names in homes.values() if len(names) > 1)
    pairs = [(names[0], name) for names in homes.values() for name in names[1:]]
    same_name = np.mean([x == y for x, y in pairs])
    if households:
        assert together > 0.75 * len(rows)
        assert 0.6 < same_name < 0.95
    else:
        assert together < 0.25 * len(rows)
        assert same_name < 0.05


def test_sizes_of_households():
    homes = _people.population(5000, 4000, True, np.random.default_rng(1))
    sizes = Counter(
        Counter(zip(*(homes[c].to_pylist() for c in ("postcode", "street")), strict=True)).values()
    )
    assert {1, 2, 3, 4, 5, 6} <= {*sizes}
    assert sum(k * v for k, v in sizes.items() if k > 6) < 0.01 * 5000


# --- errors ---------------------------------------------------------------------------------


@pytest.mark.parametrize("errors", [0, 1, 2, 5, 7])
def test_every_record_of_b_has_so_many_errors(errors):
    kinds = [kind for kind in ALL_KINDS if kind != "swap"]  # which may change two fields
    pairs = matched(simulate(300, overlap=1.0, errors=errors, kinds=kinds, missing=0))
    assert {sum(old[f] != new[f] for f in FIELDS) for old, new in pairs} == {errors}


def test_errors_hit_every_field_but_sex_alike():
    sim = simulate(7000, overlap=1.0, errors=1, kinds=("typing",), missing=0)
    hits = {field: len(changes(sim, field)) for field in FIELDS}
    assert hits.pop("sex") == 0
    assert all(850 < count < 1150 for count in hits.values())


def test_unmatched_records_of_b_have_errors_too():
    sim = simulate(500, overlap=0.0, errors=3, kinds=("missing",), missing=0)
    assert {sum(row[f] is None for f in FIELDS) for row in sim.b.to_pylist()} == {3}


def test_typing():
    sim = simulate(1500, overlap=1.0, errors=7, kinds=("typing",), missing=0)
    for field in ("gname", "fname", "postcode", "street", "dob"):
        found = changes(sim, field)
        assert len(found) == 1500
        assert all(one_edit_apart(old, new) for old, new in found)
    lengths = Counter(len(new) - len(old) for old, new in changes(sim, "fname"))
    assert min(lengths[-1], lengths[0], lengths[1]) > 250
    assert max(lengths) == -min(lengths) == 1
    transposed = [sorted(o) == sorted(n) for o, n in changes(sim, "fname")]
    assert 0.1 < np.mean(transposed) < 0.4


@pytest.mark.parametrize(("kind", "rules"), [("ocr", OCR_RULES), ("phonetic", PHONETIC_RULES)])
def test_rewriting(kind, rules):
    sim = simulate(1000, overlap=1.0, errors=7, kinds=(kind,), missing=0)
    for field in ("gname", "fname", "street"):
        found = changes(sim, field)
        assert len(found) > 950
        assert all(new in rewrites(old, rules) for old, new in found)


def test_rules_include_the_classic_ones():
    assert {("0", "o"), ("1", "l"), ("5", "s"), ("m", "rn"), ("rn", "m")} <= {*OCR_RULES}
    assert {("ph", "f"), ("f", "ph"), ("ck", "k"), ("ie", "y")} <= {*PHONETIC_RULES}
    assert EDITS["gname"]["ocr"]("tom", 13) in rewrites("tom", OCR_RULES)


def test_ocr_of_a_date_stays_a_date():
    sim = simulate(1000, overlap=1.0, errors=7, kinds=("ocr",), missing=0)
    found = changes(sim, "dob")
    assert len(found) > 950
    for old, new in found:
        assert sum(x != y for x, y in zip(old, new, strict=True)) == 1
        assert dt.date.fromisoformat(new) <= dt.date(2019, 12, 31)


def test_phonetic_leaves_digits_alone():
    sim = simulate(300, overlap=1.0, errors=7, kinds=("phonetic",), missing=0)
    assert changes(sim, "postcode") == changes(sim, "dob") == []


def test_swap():
    sim = simulate(1000, overlap=1.0, errors=7, kinds=("swap",), missing=0)
    assert all((b["gname"], b["fname"]) == (a["fname"], a["gname"]) for a, b in matched(sim))
    dates = changes(sim, "dob")
    assert 200 < len(dates) < 450  # 11 of 30 days of a month can be taken for another month
    assert all(new == f"{old[:4]}-{old[8:]}-{old[5:7]}" for old, new in dates)


def test_swap_is_one_kind_among_five():
    sim = simulate(3000, overlap=1.0, errors=7, missing=0)
    swapped = [(b["gname"], b["fname"]) == (a["fname"], a["gname"]) for a, b in matched(sim)]
    assert 0.16 < np.mean(swapped) < 0.24


def test_missing_as_an_error():
    pairs = matched(simulate(400, overlap=1.0, errors=2, kinds=("missing",), missing=0))
    for old, new in pairs:
        lost = [f for f in FIELDS if new[f] is None]
        assert len(lost) == 2
        assert all(old[f] == new[f] for f in FIELDS if f not in lost)


@pytest.mark.parametrize("field", ["age", "occup"])
def test_categories_are_replaced_or_lost(field):
    sim = simulate(2000, overlap=1.0, errors=7, kinds=("typing",), missing=0)
    found = changes(sim, field)
    assert len(found) == 2000
    assert {new for _, new in found} == {*(_people.AGES if field == "age" else _people.OCCUPATIONS)}
    both = changes(simulate(2000, overlap=1.0, errors=7, missing=0), field)
    assert 0.1 < np.mean([new is None for _, new in both]) < 0.3


@settings(max_examples=300)
@given(
    field=st.sampled_from(["gname", "fname", "street", "postcode"]),
    value=st.text(min_size=1, max_size=30),
    r=st.integers(0, 2**62 - 1),
)
def test_typing_always_changes_any_text(field, value, r):
    wrong = EDITS[field]["typing"](value, r)
    assert wrong not in ("", value)
    assert one_edit_apart(value, wrong)


@given(date=st.dates(dt.date(1905, 1, 1), dt.date(2019, 12, 31)), r=st.integers(0, 2**62 - 1))
def test_typing_always_changes_a_date(date, r):
    wrong = EDITS["dob"]["typing"](date.isoformat(), r)
    assert wrong != date.isoformat()
    assert dt.date.fromisoformat(wrong) <= dt.date(2019, 12, 31)


def test_rate_of_missing_cells():
    sim = simulate(5000, errors=0, missing=0.2)
    for field in FIELDS:
        assert 0.18 < sim.b[field].null_count / 5000 < 0.22
        assert 0.03 < sim.a[field].null_count / 5000 < 0.05
    assert sim.a["id"].null_count == sim.b["id"].null_count == 0
    assert simulate(20, missing=1).b["sex"].null_count == 20


@pytest.mark.parametrize(
    "bad",
    [
        {"n": 0},
        {"n": 10.5},
        {"n": True},
        {"n_b": 0},
        {"overlap": -0.1},
        {"overlap": 1.1},
        {"overlap": float("nan")},
        {"missing": 2},
        {"errors": -1},
        {"errors": 8},
        {"kinds": ["typos"]},
        {"kinds": "typing"},
        {"kinds": []},
        {"seed": -1},
    ],
    ids=str,
)
def test_bad_arguments_are_named(bad):
    with pytest.raises(SettingsError, match=f"^{next(iter(bad))} must"):
        simulate(**bad)


def test_no_kinds_are_needed_without_errors():
    assert changes(simulate(20, overlap=1.0, errors=0, kinds=[], missing=0), "gname") == []


# --- output ---------------------------------------------------------------------------------


def read(path):
    text = pa.csv.ConvertOptions(
        column_types=dict.fromkeys(["id", "id_a", "id_b", *FIELDS], pa.string()),
        strings_can_be_null=True,
        null_values=[""],
    )
    return pa.csv.read_csv(path, convert_options=text)


def test_what_is_written_reads_back(tmp_path):
    sim = simulate(300)
    write_simulation(sim, tmp_path / "new" / "out")
    assert read(tmp_path / "new" / "out" / "a.csv").equals(sim.a)
    assert read(tmp_path / "new" / "out" / "b.csv").equals(sim.b)
    assert read(tmp_path / "new" / "out" / "truth.csv").equals(sim.truth)
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["out"]


def test_header_is_plain(tmp_path):
    write_simulation(simulate(5), tmp_path / "out")
    first = (tmp_path / "out" / "a.csv").read_text(encoding="utf-8").splitlines()[0]
    assert first == "id,gname,fname,sex,dob,age,occup,postcode,street"


def test_overwrites_only_with_force(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    write_simulation(simulate(5), out)  # an empty directory is free
    before = (out / "a.csv").read_bytes()
    with pytest.raises(OutputError, match="force"):
        write_simulation(simulate(6), out)
    assert (out / "a.csv").read_bytes() == before
    write_simulation(simulate(6), out, force=True)
    assert len(read(out / "a.csv")) == 6
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_other_files_are_never_replaced(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("ten years of work")
    with pytest.raises(OutputError, match="other files"):
        write_simulation(simulate(5), tmp_path / "out", force=True)
    with pytest.raises(OutputError, match="is a file"):
        write_simulation(simulate(5), tmp_path / "out" / "thesis.tex", force=True)
    assert (tmp_path / "out" / "thesis.tex").read_text() == "ten years of work"


def test_working_directory_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OutputError, match="where you are"):
        write_simulation(simulate(5), tmp_path, force=True)


@pytest.mark.parametrize("failure", [OSError("disk full"), KeyboardInterrupt()])
def test_failure_half_way_leaves_the_old_output_whole(tmp_path, monkeypatch, failure):
    out = tmp_path / "out"
    write_simulation(simulate(5), out)
    before = {path.name: path.read_bytes() for path in out.iterdir()}

    def write_csv(table, file, options):
        if "id_a" in table.column_names:
            raise failure

    monkeypatch.setattr(pa.csv, "write_csv", write_csv)
    with pytest.raises(OutputError if isinstance(failure, OSError) else KeyboardInterrupt):
        write_simulation(simulate(6), out, force=True)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_failing_rename_puts_the_old_output_back(tmp_path, monkeypatch):
    out = tmp_path / "out"
    write_simulation(simulate(5), out)
    rename = type(out).rename

    def stubborn(path, target):
        if path.name.endswith(".new"):
            raise OSError("no")
        return rename(path, target)

    monkeypatch.setattr(type(out), "rename", stubborn)
    with pytest.raises(OutputError, match="untouched"):
        write_simulation(simulate(6), out, force=True)
    assert len(read(out / "a.csv")) == 5
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


# --- trouble that real files have ---------------------------------------------------------------


def wrong_fields(sim):
    """How many fields of each matched record of B differ from A's, swapped names counted once."""
    others = [f for f in FIELDS if f not in ("gname", "fname")]

    def count(old, new):
        swapped = (old["gname"], old["fname"]) == (new["fname"], new["gname"])
        names = 1 if swapped else (old["gname"] != new["gname"]) + (old["fname"] != new["fname"])
        return names + sum(old[f] != new[f] for f in others)

    return np.array([count(old, new) for old, new in matched(sim)])


def test_errors_are_spread_as_asked_for():
    counts = {
        spread: wrong_fields(
            simulate(3000, overlap=1.0, errors=2, missing=0.0, spread=spread, seed=4)
        )
        for spread in SPREADS
    }
    assert (counts["exact"] <= 2).all()
    assert np.mean(counts["exact"] == 2) > 0.9
    independent = 7 * (2 / 7) * (5 / 7)  # the binomial's variance
    assert counts["independent"].var() == pytest.approx(independent, rel=0.15)
    assert counts["clustered"].var() > 2 * independent
    for spread in SPREADS:  # some edits find no hold
        assert counts[spread].mean() == pytest.approx(2, abs=0.15)


def test_group_quarters_hold_many_unrelated_people():
    def largest(share):
        sim = simulate(2000, errors=0, missing=0.0, group_quarters=share, seed=5)
        addresses = sim.a["street"].to_pylist(), sim.a["postcode"].to_pylist()
        streets = Counter(zip(*addresses, strict=True))
        (place, size), *_ = streets.most_common(1)
        names = {
            row["fname"] for row in sim.a.to_pylist() if (row["street"], row["postcode"]) == place
        }
        return size, len(names)

    assert largest(0.0)[0] <= 6
    size, names = largest(0.1)
    assert size > 10
    assert names > size / 2


def test_names_go_with_age_only_where_eras_are_on():
    def dependence(eras):
        people = simulate(20_000, errors=0, missing=0.0, eras=eras, seed=6).a.to_pylist()
        ages = [ord(p["age"]) for p in people if p["gname"] in ("John", "Mary")]
        return np.mean(ages) - np.mean([ord(p["age"]) for p in people])

    assert dependence(True) > 1
    assert abs(dependence(False)) < 0.4


def test_nicknames_only_where_asked_for():
    def familiar(kinds):
        sim = simulate(4000, overlap=1.0, missing=0.0, kinds=kinds, seed=7)
        return sum(new in NICKNAMES.get(old, ()) for old, new in changes(sim, "gname"))

    assert familiar(["typing", "nickname"]) > 50 > familiar(["typing"])
    assert all(len(set(forms)) == len(forms) for forms in NICKNAMES.values())
    assert all(name not in forms for name, forms in NICKNAMES.items())


def test_duplicates_are_told_by_the_truth():
    sim = simulate(1000, overlap=0.5, duplicates=0.2, seed=8)
    extra = len(sim.b) - 1000
    assert 150 < extra < 250
    twice = [n for n in Counter(sim.truth["id_a"].to_pylist()).values() if n == 2]
    assert len(sim.truth) == 500 + len(twice)
    assert 70 < len(twice) < 130
    assert len(set(sim.truth["id_b"].to_pylist())) == len(sim.truth)


def test_trouble_is_off_unless_asked_for():
    plain = simulate(300, seed=9)
    off = simulate(
        300, spread="exact", group_quarters=0.0, eras=True, duplicates=0.0, kinds=ALL_KINDS, seed=9
    )
    assert plain == off


@pytest.mark.parametrize(
    "setting", [{"spread": "even"}, {"group_quarters": 2.0}, {"duplicates": -0.1}]
)
def test_trouble_that_cannot_be_is_refused(setting):
    with pytest.raises(SettingsError, match=next(iter(setting))):
        simulate(10, **setting)
