"""Rules by column for a row a person, beside plain Python."""

import datetime as dt
from collections import Counter

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from click.testing import CliRunner

import bayeslink as bl
from bayeslink.cli import main
from bayeslink.dedupe_settings import DedupeSettings, checked_keep, keep_rules
from bayeslink.errors import InputError, SettingsError
from bayeslink.runs.kept_values import People, check_keep, days_of
from bayeslink.runs.link_toml import dump, load

MISSING = ("", "NA")
FILES = ("tax", "census", "survey")
RULES = (
    "representative", "longest", "most_frequent", "newest:when", "files:census,tax", "files:survey"
)  # fmt: skip
DAYS = [None, "NA", "2020-01-31", "2020-02-01", "31.1.2020", "1.2.2020", "2020-02-01 10:30", "?"]


def small_table(rng, n=120):
    return {
        "value": [str(x) if x else None for x in rng.choice(["", "NA", "a", "bb", "cc", "a b"], n)],
        "when": [DAYS[k] for k in rng.integers(0, len(DAYS), n)],
        "file": rng.integers(0, len(FILES), n),
        "person": rng.integers(0, 25, n),
    }


def plain_day(text):
    """Day and month as they are in `DAYS`."""
    if text in (None, "NA", "?"):
        return None
    if "-" in text:
        return dt.date.fromisoformat(text[:10])
    day, month, year = text.split(".")
    return dt.date(int(year), int(month), int(day))


def plain_value(table, members, face, rule):
    """The value of a person, one record after another."""
    filled = [k for k in members if table["value"][k] not in (None, *MISSING)]
    if not filled:
        return table["value"][face]
    times = Counter(table["value"][k] for k in filled)
    kind, _, of = rule.partition(":")

    def worth(k):
        if kind == "longest":
            return len(table["value"][k])
        if kind == "most_frequent":
            return times[table["value"][k]]
        if kind == "newest":
            day = plain_day(table["when"][k])
            return (dt.date.min, "") if day is None else (day, table["when"][k])
        if kind == "files":
            names = of.split(",")
            name = FILES[table["file"][k]]
            return -names.index(name) if name in names else -len(names)
        return 0

    most = max(map(worth, filled))
    best = [k for k in filled if worth(k) == most]
    return table["value"][face if face in best else min(best, key=lambda k: table["value"][k])]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", range(6))
def test_each_rule_is_what_plain_python_says_in_any_order(rule, seed):
    rng = np.random.default_rng(seed)
    table = small_table(rng)
    faces = {p: int(rng.choice(np.flatnonzero(table["person"] == p))) for p in {*table["person"]}}
    numbers = {p: k for k, p in enumerate(faces)}
    expected = [
        plain_value(table, np.flatnonzero(table["person"] == p), face, rule)
        for p, face in faces.items()
    ]
    for order in (np.arange(120), rng.permutation(120)):
        where = np.argsort(order)
        people = People(
            np.array([numbers[table["person"][k]] for k in order]),
            np.array([where[face] for face in faces.values()]),
            MISSING,
            FILES,
            table["file"][order],
        )
        arrow = pa.table({n: pa.array(table[n]).take(pa.array(order)) for n in ("value", "when")})
        rows = people.rows(arrow, "value", keep_rules(rule)[0])
        assert arrow["value"].take(pa.array(rows)).to_pylist() == expected


def test_one_word_rules_by_column_and_a_list_of_texts():
    assert checked_keep("longest") == "longest"
    assert checked_keep({"*": "longest"}) == "longest"
    by_column = {"address": "newest:updated=on", "*": "most_frequent"}
    assert checked_keep(by_column) == by_column
    assert checked_keep(["most_frequent", "address=newest:updated=on"]) == by_column
    assert keep_rules({"a": "longest"})[0].kind == "representative"


def test_a_settings_file_holds_rules_by_column(tmp_path):
    rules = {"street": "newest:changed_on", "*": "longest"}
    path = tmp_path / "dedupe.toml"
    path.write_text(dump(DedupeSettings.of(a="x.csv", fields=[bl.exact("b")], id="id", keep=rules)))
    assert 'keep = {street = "newest:changed_on", "*" = "longest"}' in path.read_text()
    assert DedupeSettings.of(**load(path, DedupeSettings)).keep == rules


@pytest.mark.parametrize(
    ("keep", "words"),
    [
        ("best", "unknown keep 'best'. Allowed: 'representative'"),
        ({"a": "newest"}, "unknown keep 'newest'"),
        ({"a": "files:,x"}, "unknown keep 'files:,x'"),
        (["longest", "most_frequent"], "keep has two rules for all other columns"),
        (["a=longest", "a=longest"], "keep has two rules for the column 'a'"),
        ({"a": 3}, "unknown keep 3"),
    ],
)
def test_what_is_no_rule(keep, words):
    with pytest.raises(SettingsError, match=words.replace(".", r"\.")):
        checked_keep(keep)


def test_rules_on_what_is_not_there():
    for keep, words in (
        ({"town": "longest"}, "the column 'town', which is not there. The columns are: id, name"),
        ({"name": "newest:town"}, "the column 'town'"),
        ({"id": "longest"}, "the id column 'id'"),
        ("files:a,b", "there is one file"),
    ):
        with pytest.raises(SettingsError, match=words):
            check_keep(keep, ["id", "name"], id="id")
    with pytest.raises(SettingsError, match="the file 'c', and the files are a, b"):
        check_keep({"name": "files:a,c"}, ["name"], ("a", "b"))


def test_a_column_that_does_not_hold_dates():
    with pytest.raises(SettingsError, match="2 of the 3 values of 'x' are no dates"):
        days_of(pa.array(["cat", "2020-01-01", "dog", None], pa.large_string()), "x")
    with pytest.raises(SettingsError, match="is the day and which is the month"):
        days_of(pa.array(["1/2/2020", "3/4/2020"], pa.large_string()), "x")
    found = days_of(pa.array([None, "13/2/2020", "1/2/2020"], pa.large_string()), "x")
    assert found.tolist() == [-1, 20200213, 20200201]


@pytest.fixture(scope="module")
def dated(tmp_path_factory):
    made = bl.simulate_duplicates(80, seed=2).a.to_pandas()
    days = pd.date_range("2020-01-01", periods=len(made)).strftime("%d.%m.%Y")
    made["changed_on"] = days
    path = tmp_path_factory.mktemp("dated") / "file.csv"
    made.to_csv(path, index=False)
    return path


FIELDS = ("--on", "gname:name", "--on", "fname:name", "--on", "dob:date", "--on", "postcode:exact")
SHORT = ("--draws", "60", "--tune", "40", "--chains", "2")


def test_rules_by_column_from_the_command_line_and_in_python(dated, tmp_path):
    out = tmp_path / "out"
    rules = ("--keep", "longest", "--keep", "street=newest:changed_on")
    done = CliRunner().invoke(main, ["dedupe", str(dated), *FIELDS, *SHORT, *rules, "-o", str(out)])
    assert done.exit_code == 0, done.output
    frame = pd.read_csv(out / "with_entities.csv", dtype=str)
    people = pd.read_csv(out / "people.csv", dtype=str).set_index("entity_id")
    frame["day"] = pd.to_datetime(frame["changed_on"], format="%d.%m.%Y")
    for entity, own in frame.dropna(subset=["street"]).groupby("entity_id"):
        assert people.loc[entity, "street"] == own.sort_values("day")["street"].iloc[-1]
    run = bl.dedupe(dated, [bl.name("gname"), bl.date("dob")], draws=60, tune=40, chains=2)
    assert len(run.people({"street": "newest:changed_on"})) == run.decision.n_entities
    with pytest.raises(SettingsError, match="the column 'strasse', which is not there"):
        run.people({"strasse": "longest"})
    again, rules = bl.open_run(out), {"street": "newest:changed_on", "*": "longest"}
    assert again.people(rules).equals(again.people())
    assert not again.people("longest").equals(again.people())
    with pytest.raises(SettingsError, match="the column 'strasse', which is not there"):
        again.people({"strasse": "longest"})


@pytest.mark.parametrize("ids", [{}, {"id": None}])
def test_people_of_a_run_that_was_opened(tmp_path, ids):
    made = bl.simulate_duplicates(120, seed=4).a
    fields, how = [bl.name("gname"), bl.date("dob")], {"draws": 60, "tune": 40, "chains": 2}
    run = bl.dedupe(made, fields, **ids, **how)
    files = {"one": made.slice(0, 50), "two": made.slice(50)}
    other = bl.link_many(files, fields, duplicates=("one", "two"), **ids, **how)
    for one, name in ((run, "run"), (other, "other")):
        one.save(tmp_path / name)
        for keep in (
            "longest",
            {"street": "most_frequent"},
            {"*": "longest", "dob": "most_frequent"},
        ):
            assert bl.open_run(tmp_path / name).people(keep).equals(one.people(keep)), keep
    run.save(tmp_path / "bare", people=False)
    with pytest.raises(InputError, match="saved without them"):
        bl.open_run(tmp_path / "bare").people("longest")


@pytest.mark.parametrize("rule", ["strasse=longest", "street=newest:gname", "street=files:a,b"])
def test_what_cannot_be_followed_is_refused_before_the_work(dated, tmp_path, rule):
    out = tmp_path / "out"
    done = CliRunner().invoke(main, ["dedupe", str(dated), *FIELDS, "--keep", rule, "-o", str(out)])
    assert done.exit_code == 2, done.output
    assert "keep" in done.output
    assert not out.exists()


def test_the_first_file_that_has_a_value(tmp_path):
    made = bl.simulate_duplicates(90, seed=4).a
    files = {"one": made.slice(0, 40), "two": made.slice(40, 40)}
    how = {"duplicates": ("one", "two"), "draws": 60, "tune": 40, "chains": 2}
    fields = [bl.name("gname"), bl.name("fname"), bl.date("dob")]
    run = bl.link_many(files, fields, keep={"street": "files:two,one"}, **how)
    people = run.people().to_pandas()
    street = dict(zip(made["id"].to_pylist(), made["street"].to_pylist(), strict=True))
    both = people.dropna(subset=["one", "two"])
    assert len(both)
    for row in both.itertuples():
        of_two = [street[i] for i in row.two.split("; ") if street[i]]
        assert row.street in of_two if of_two else True
    with pytest.raises(SettingsError, match="the file 'three', and the files are one, two"):
        bl.link_many(files, fields, keep="files:three", **how)
