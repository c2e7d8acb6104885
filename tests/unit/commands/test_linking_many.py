"""`bayeslink link-many`, `link --duplicates` and their Python: the people of several files."""

import json

import numpy as np
import pandas as pd
import polars
import pytest
from click.testing import CliRunner

import bayeslink as bl
from bayeslink.cli import main
from bayeslink.errors import InputError, SettingsError

SHORT = ("--draws", "60", "--tune", "60", "--chains", "2")
PYTHON = {"draws": 60, "tune": 60, "chains": 2}
NAMES = ("census", "survey", "tax")
TABLES = {"clusters", "people", *(f"with_entities_{name}" for name in NAMES)}
FILES = {f"{name}{end}" for name in TABLES for end in (".csv", ".parquet")} | {
    "pairs.parquet", "reach.parquet", "draws.parquet", "parameters.parquet",
    "run.json", "link-many.toml",
}  # fmt: skip


def call(*words):
    return CliRunner().invoke(main, [*map(str, words)])


def told(*words):
    done = call(*words)
    assert done.exit_code == 0, done.output
    return done.stdout


def three_files(n, seed):
    """Records of people split over three files: tax has duplicates, and names of its own."""
    made = bl.simulate_duplicates(n, seed=seed, sizes=(0.4, 0.3, 0.2, 0.1))
    frame = made.a.to_pandas().merge(made.truth.to_pandas(), on="id")
    frame["file"] = np.random.default_rng(seed).choice(NAMES, len(frame))
    files, truth = {}, []
    for name in NAMES:
        own = frame[frame["file"] == name]
        if name != "tax":
            own = own.drop_duplicates("entity_id")
        truth.append(own[["file", "id", "entity_id"]])
        own = own.drop(columns=["file", "entity_id"]).reset_index(drop=True)
        if name == "tax":
            own = own.rename(columns={"gname": "Vorname", "fname": "Nachname", "dob": "geboren"})
        files[name] = own
    return files, pd.concat(truth)


@pytest.fixture(scope="module")
def given():
    return three_files(330, 3)


@pytest.fixture(scope="module")
def saved(given, tmp_path_factory):
    """The directory that the command writes, and the files it read."""
    folder = tmp_path_factory.mktemp("many")
    files, truth = given
    for name, frame in files.items():
        frame.to_csv(folder / f"{name}.csv", index=False)
    truth.to_csv(folder / "truth.csv", index=False)
    paths = [folder / f"{name}.csv" for name in NAMES]
    said = told("link-many", *paths, "--duplicates", "tax", "-o", folder / "out", *SHORT)
    return folder, said


def clusters_of(folder):
    return pd.read_csv(folder / "clusters.csv", dtype={"id": str})


def test_what_a_run_of_three_files_writes(saved, given):
    folder, said = saved
    out = folder / "out"
    assert {p.name for p in out.iterdir()} == FILES
    assert "records of census, survey and tax are of" in said
    assert "Vorname is gname, Nachname is fname, geboren is dob" in said
    clusters, truth = clusters_of(out), given[1]
    assert {*zip(clusters["file"], clusters["id"], strict=True)} == {
        *zip(truth["file"], truth["id"], strict=True)
    }
    in_file = clusters.groupby(["entity_id", "file"]).size().unstack(fill_value=0)
    assert in_file[["census", "survey"]].to_numpy().max() == 1
    assert in_file["tax"].max() > 1
    assert (in_file.gt(0).sum(axis=1) == 3).any()
    faces = clusters[clusters["representative"]]
    assert (faces["file"] + ":" + faces["id"] == faces["entity_id"]).all()
    judged = json.loads(told("evaluate", out, "--truth", folder / "truth.csv", "--json"))
    assert judged["f1"] > 0.93
    low, high = judged["people_interval"]
    assert low - 3 <= truth["entity_id"].nunique() <= high + 3


def test_people_and_their_records_agree(saved, given):
    out = saved[0] / "out"
    clusters, people = clusters_of(out), pd.read_csv(out / "people.csv", dtype=str)
    assert [*people["entity_id"]] == [*clusters.loc[clusters["representative"], "entity_id"]]
    for name in NAMES:
        own = clusters[clusters["file"] == name]
        listed = people.dropna(subset=[name])[["entity_id", name]]
        pairs = {(e, i) for e, ids in listed.to_numpy() for i in ids.split("; ")}
        assert pairs == {*zip(own["entity_id"], own["id"], strict=True)}
        whole = pd.read_csv(out / f"with_entities_{name}.csv", dtype=str)
        assert [*whole.columns] == [*given[0][name].columns, "entity_id"]
        entity = own.set_index("id")["entity_id"]
        assert (whole["entity_id"] == whole["id"].map(entity)).all()
    assert "gname" in people
    assert "Vorname" not in people
    # A value is missing only where all records of the person lack it.
    values = pd.concat(
        [
            pd.read_csv(out / f"with_entities_{name}.csv", dtype=str).rename(
                columns={"geboren": "dob"}
            )[["entity_id", "dob"]]
            for name in NAMES
        ]
    )
    known = values.dropna().groupby("entity_id")["dob"].agg(set)
    for row in people.itertuples():
        wanted = known.get(row.entity_id, {np.nan})
        assert row.dob in wanted or (pd.isna(row.dob) and row.entity_id not in known)


def test_a_run_opens_as_it_was_made(saved, given):
    folder, _ = saved
    run = bl.link_many(given[0], duplicates="tax", **PYTHON)
    opened = bl.open_run(folder / "out")
    # Fresh, the records are in the order of the files; saved, those of a person are together.
    columns = ["file", "id", "entity_id", "size", "decision"]
    one = run.clusters.sort_values(["file", "id"])[columns].reset_index(drop=True)
    other = opened.clusters.to_pandas().sort_values(["file", "id"])[columns]
    pd.testing.assert_frame_equal(one, other.reset_index(drop=True), check_dtype=False)
    assert opened.entities.interval() == run.entities.interval()
    assert opened.people_by_files() == run.people_by_files()
    assert repr(opened.population()) == repr(run.population())
    assert opened.settings.duplicates == ("tax",)
    assert len(opened.people()) == opened.decision.n_entities == len(run.people())
    assert len(opened.with_entities("tax")) == len(given[0]["tax"])
    with pytest.raises(SettingsError, match="say which file"):
        opened.with_entities()
    with pytest.raises(InputError, match="link-many --config"):
        _ = opened.posterior


def test_people_by_files_add_up(saved):
    entities = bl.open_run(saved[0] / "out").entities
    assert (entities.in_files.sum(-1) == entities.draws).all()
    by_files = {row["files"]: row["people"] for row in entities.by_files()}
    assert sum(by_files.values()) == pytest.approx(entities.mean)
    assert {*by_files} == {
        "census", "survey", "tax", "census+survey", "census+tax", "survey+tax", "census+survey+tax",
    }  # fmt: skip
    two = entities.population(["tax", "census"])
    seen = sum(n for name, n in by_files.items() if "tax" in name or "census" in name)
    assert two.seen == pytest.approx(seen, rel=1e-6)
    assert entities.population().median > entities.mean


def test_commands_after_it(saved, tmp_path):
    out = saved[0] / "out"
    people = bl.open_run(out).population()
    assert told("population", out).strip() == str(people)
    found = json.loads(told("population", out, "--json"))
    assert found["median"] == people.median
    assert "draws" not in found
    for words in (("explain", out, "1", "2"), ("join", out, "-o", tmp_path / "x")):
        done = call(*words)
        assert done.exit_code != 0
        assert "is of `bayeslink link-many`, so it has clusters and no links" in done.output


def test_the_order_of_rows_changes_nothing(saved, given, tmp_path):
    for name, frame in given[0].items():
        frame.sample(frac=1, random_state=4).to_csv(tmp_path / f"{name}.csv", index=False)
    paths = [tmp_path / f"{name}.csv" for name in NAMES]
    told("link-many", *paths, "--duplicates", "tax", "-o", tmp_path / "out", *SHORT)
    for name in ("clusters.csv", "people.csv", "pairs.parquet", "draws.parquet"):
        assert (tmp_path / "out" / name).read_bytes() == (saved[0] / "out" / name).read_bytes(), (
            name
        )


def test_the_settings_file_repeats_the_run(saved, tmp_path):
    out = saved[0] / "out"
    told("link-many", "--config", out / "link-many.toml", "-o", tmp_path / "again")
    for name in FILES - {"run.json", "link-many.toml"}:
        assert (tmp_path / "again" / name).read_bytes() == (out / name).read_bytes(), name


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_tables_go_back_in_the_kind_they_came(kind, given):
    made = {
        "pandas": lambda frame: frame,
        "polars": polars.from_pandas,
        "arrow": lambda frame: polars.from_pandas(frame).to_arrow(),
    }[kind]
    files = {name: made(frame) for name, frame in given[0].items()}
    run = bl.link_many(files, duplicates="tax", **PYTHON)
    for table in (run.clusters, run.people(), run.with_entities("tax")):
        assert type(table) is type(files["tax"])


def test_two_files_of_which_one_has_duplicates(saved, given, tmp_path):
    folder, _ = saved
    paths = folder / "census.csv", folder / "tax.csv"
    told("link", *paths, "--duplicates", "b", "-o", tmp_path / "out", *SHORT)
    run = bl.link(given[0]["census"], given[0]["tax"], duplicates="b", **PYTHON)
    found = clusters_of(tmp_path / "out")
    assert {*found["file"]} == {"a", "b"}
    assert found.groupby(["entity_id", "file"]).size().unstack()["a"].max() == 1
    assert found["entity_id"].nunique() == run.decision.n_entities
    assert {row["files"] for row in run.people_by_files()} == {"a", "b", "a+b"}


def test_two_clean_files_agree_with_a_linkage():
    """The models differ; what they say of the number of links does not."""
    made = bl.simulate(300, overlap=0.5, errors=1, seed=4)
    run = bl.link_many({"a": made.a, "b": made.b}, draws=300, tune=200)
    linked = bl.link(made.a, made.b, draws=300, tune=200)
    both = {row["files"]: row for row in run.people_by_files()}["a+b"]
    assert both["people"] == pytest.approx(linked.posterior.n_links.mean(), rel=0.03)
    assert both["low"] - 3 <= made.truth.num_rows <= both["high"] + 3
    sizes = np.bincount(run.clusters["size"].to_numpy())
    assert len(sizes) == 3


def test_duplicates_in_a_file_said_to_have_none_are_told(given):
    run = bl.link_many(given[0], **PYTHON)
    (said,) = [w for w in run.warnings if "nobody is twice" in w]
    assert "of tax look like the same person" in said
    assert "--duplicates tax" in said


def test_columns_can_be_named_by_hand(given):
    columns = {"tax": {"Vorname": "gname", "Nachname": "fname"}}
    run = bl.link_many(given[0], duplicates="tax", columns=columns, **PYTHON)
    assert not [w for w in run.warnings if "called otherwise" in w]
    assert run.stack.renamed[2] == columns["tax"]
    with pytest.raises(InputError, match="no column 'nowhere'"):
        bl.link_many(given[0], columns={"tax": {"nowhere": "gname"}}, **PYTHON)


def test_each_file_has_its_own_order_of_day_and_month(given):
    def written(frame, column, form):
        days = pd.to_datetime(frame[column], errors="coerce").dt.strftime(form)
        return frame.assign(**{column: days.where(days.notna(), None)})

    files, truth = given
    other = {
        "census": written(files["census"], "dob", "%d/%m/%Y"),
        "survey": written(files["survey"], "dob", "%m/%d/%Y"),
        "tax": files["tax"],
    }
    runs = [bl.link_many(f, duplicates="tax", **PYTHON) for f in (files, other)]
    kinds = [{f.name: f.kind for f in run.pairs.fields} for run in runs]
    assert kinds[0]["dob"] == kinds[1]["dob"] == "date"
    assert bl.evaluate(runs[1], truth).f1 > bl.evaluate(runs[0], truth).f1 - 0.02
    own = [set(f["dob"].dropna()) for f in (runs[1].with_entities("census"), other["census"])]
    assert own[0] == own[1]  # written as they came


def test_a_file_may_lack_columns(given):
    files = {**given[0], "survey": given[0]["survey"].drop(columns=["street", "dob"])}
    run = bl.link_many(files, duplicates="tax", **PYTHON)
    assert {f.name for f in run.pairs.fields} >= {"dob", "street"}
    assert bl.evaluate(run, given[1]).precision > 0.9


def test_known_pairs_are_named_by_file_and_id(given):
    files, truth = given
    people = truth.assign(name=truth["file"] + ":" + truth["id"]).groupby("entity_id")["name"]
    one = next(names.tolist()[:2] for _, names in people if len(names) > 1)
    run = bl.link_many(files, duplicates="tax", known_nonlinks=[tuple(one)], **PYTHON)
    entity = dict(zip(run.table["id"].to_pylist(), run.table["entity_id"].to_pylist(), strict=True))
    ids = [name.split(":")[1] for name in one]
    assert entity[ids[0]] != entity[ids[1]]
    census = [f"census:{i}" for i in files["census"]["id"][:2]]
    with pytest.raises(InputError, match="two records of census, where nobody is twice"):
        bl.link_many(files, known_links=[tuple(census)], **PYTHON)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("x.csv",), "two files or more"),
        (("x.csv", "x.csv"), "two files are called 'x'"),
        (("p=x.csv", "q=x.csv"), "one file is given twice"),
        (("x.csv", "y.csv", "--duplicates", "z"), "duplicates names 'z'"),
        (("x.csv", "nowhere.csv"), "nowhere.csv"),
        (("x.csv", "y.csv", "--on", "surname:name"), "no column 'surname'"),
        (("x.csv", "y.csv", "--id", "number"), "no column 'number'"),
        (("x.csv", "y.csv", "--encoding", "utf-8", "--encoding", "cp1252"), "two ways to read"),
        (("a b=x.csv", "y.csv"), "cannot name a file"),
        ((), "the files are missing"),
    ],
)
def test_what_cannot_be_done_is_told_and_leaves_nothing(words, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in "xy":
        (tmp_path / f"{name}.csv").write_text("id,name\n1,ada\n2,bob\n")
    done = call("link-many", *words, "-o", "out", *SHORT)
    assert done.exit_code not in (0, 1)
    assert said in done.output
    assert {p.name for p in tmp_path.iterdir()} == {"x.csv", "y.csv"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--theta", "3"), "--theta is for files without duplicates"),
        (("--config", "link.toml"), "--config is for files without duplicates"),
    ],
)
def test_options_of_a_linkage_that_do_not_go_with_duplicates(words, said, saved, tmp_path):
    folder, _ = saved
    paths = folder / "census.csv", folder / "tax.csv"
    done = call("link", *paths, "--duplicates", "b", "-o", tmp_path / "out", *words)
    assert done.exit_code not in (0, 1)
    assert said in done.output


def test_rows_are_not_set_aside_for_several_files(given, tmp_path):
    """One file of rows would have those of the last file alone."""
    read = bl.ReadOptions(quarantine=tmp_path / "rows.csv")
    with pytest.raises(SettingsError, match="quarantine is for one file or two"):
        bl.link_many(given[0], duplicates="tax", read=read)
    assert not any(tmp_path.iterdir())
    assert "--quarantine" not in told("link-many", "--help")


def test_options_in_python_that_do_not_go_with_duplicates(given):
    files = given[0]["census"], given[0]["tax"]
    with pytest.raises(SettingsError, match="'theta' is for files without duplicates"):
        bl.link(*files, duplicates="b", theta=3)
    with pytest.raises(SettingsError, match='duplicates must be "a", "b"'):
        bl.link(*files, duplicates="tax")
    field = bl.name("gname", columns=("gname", "Vorname"))
    with pytest.raises(SettingsError, match="name it as in A"):
        bl.link(*files, [field], duplicates="b")
    with pytest.raises(SettingsError, match="one file"):
        bl.dedupe(files[1], **PYTHON).population()


def test_dates_written_differently_are_read_so_again(given, tmp_path):
    """link-many.toml has one format of a column, and the files have theirs."""
    for (name, frame), form in zip(
        given[0].items(), ("%d/%m/%Y", "%Y-%m-%d", "%d.%m.%Y"), strict=True
    ):
        column = "geboren" if "geboren" in frame else "dob"
        days = pd.to_datetime(frame[column], errors="coerce").dt.strftime(form)
        frame.assign(**{column: days}).to_csv(tmp_path / f"{name}.csv", index=False)
    paths = [tmp_path / f"{name}.csv" for name in NAMES]
    told("link-many", *paths, "--duplicates", "tax", "-o", tmp_path / "one", *SHORT)
    toml = tmp_path / "one" / "link-many.toml"
    assert 'format = "%Y-%m-%d"' in toml.read_text("utf-8")
    told("link-many", "--config", toml, "-o", tmp_path / "two")
    one, two = ((tmp_path / run / "clusters.csv").read_bytes() for run in ("one", "two"))
    assert one == two


def test_codes_that_files_write_differently_are_one_field(tmp_path):
    made, _ = three_files(240, 5)
    codes = {
        "census": {"m": "M", "f": "F"},
        "survey": {"m": "1", "f": "2"},
        "tax": {"m": "männlich", "f": "weiblich"},
    }
    for name, own in made.items():
        own["sex"] = [codes[name].get(str(x)[0].lower()) if x else None for x in own["sex"]]
    run = bl.link_many(made, duplicates=("tax",), **PYTHON)
    (sex,) = [f for f in run.settings.fields if f.name == "sex"]
    meant = {"1": "M", "2": "F", "männlich": "M", "weiblich": "F"}
    assert sex.settings["recode"] == meant
    named = bl.link_many(made, ["gname", "fname", "dob", "sex"], duplicates=("tax",), **PYTHON)
    assert named.settings.fields[3].settings["recode"] == meant
    left = bl.link_many(made, ["gname", "fname", "dob", bl.exact("sex")], **PYTHON)
    assert "recode" not in left.settings.fields[3].settings
    for name, own in made.items():
        own.to_csv(tmp_path / f"{name}.csv", index=False)
    words = [f"{name}={tmp_path / name}.csv" for name in made]
    told("link-many", *words, "--duplicates", "tax", "-o", tmp_path / "one", *SHORT)
    told("link-many", "--config", tmp_path / "one/link-many.toml", "-o", tmp_path / "two")
    one, two = ((tmp_path / out / "clusters.csv").read_bytes() for out in ("one", "two"))
    assert one == two


def test_a_file_of_which_hardly_anybody_is_elsewhere_is_named():
    made, strangers = bl.simulate(80, overlap=0.5, seed=4), bl.simulate(60, seed=5)
    files = {"a": made.a, "b": made.b, "new": strangers.a}
    fields = [bl.name("gname"), bl.name("fname"), bl.date("dob")]
    run = bl.link_many(files, fields, draws=60, tune=60, chains=2)
    (said,) = [w for w in run.warnings if "hardly anybody" in w]
    assert "of new is in another file: 0 of its 60 records" in said


def whole(frame):
    """The same people as another office writes them: one column of names, three of births."""
    names = frame["fname"].fillna("") + ", " + frame["gname"].fillna("")
    born = frame["dob"].str.split("-", expand=True)
    return pd.DataFrame(
        {
            "id": frame["id"],
            "person": names,
            **{name: born[k].str.lstrip("0") for k, name in enumerate(("year", "month", "day"))},
            "postcode": frame["postcode"],
        }
    )


@pytest.mark.parametrize("order", [("census", "survey", "tax"), ("survey", "census", "tax")])
def test_whole_names_and_births_in_three_columns_are_what_others_have_apart(order, tmp_path):
    made = bl.simulate(300, overlap=0.5, errors=1, seed=5)
    a, b = made.a.to_pandas(), made.b.to_pandas()
    kept = ["id", "gname", "fname", "dob", "postcode"]
    halves = a[kept].iloc[::2], a[kept].iloc[1::2]
    files = {"census": halves[0], "survey": whole(b), "tax": halves[1]}
    run = bl.link_many({name: files[name] for name in order}, **PYTHON)
    columns = run.settings.columns
    parts = {"person:family": "fname", "person:given": "gname", "year+month+day": "dob"}
    assert columns["survey"] == parts
    clusters = run.clusters.set_index(["file", "id"])["entity_id"]
    truth = made.truth.to_pandas()
    of_a = {row: name for name in ("census", "tax") for row in files[name]["id"]}
    together = [
        clusters[of_a[x], x] == clusters["survey", y]
        for x, y in zip(truth["id_a"], truth["id_b"], strict=True)
    ]
    assert np.mean(together) > 0.9
    # Read again from its settings, by name, and once it is saved, by what is in its tables.
    run.save(tmp_path / "out")
    opened = bl.open_run(tmp_path / "out")
    assert opened.settings.columns == columns
    again = bl.link_many({name: files[name] for name in order}, columns=columns, **PYTHON)
    assert again.clusters.equals(run.clusters)


def test_a_column_with_a_colon_is_itself_and_parts_that_are_not_there_are_told():
    files = {
        "a": pd.DataFrame({"id": [1, 2], "n:given": ["Ann", "Bob"]}),
        "b": pd.DataFrame({"id": [1, 2], "first": ["Ann", "Rob"]}),
    }
    run = bl.link_many(files, [bl.name("first")], columns={"a": {"n:given": "first"}}, **PYTHON)
    assert run.pairs.cells(0, [0]) == [{"first": "Ann"}]
    with pytest.raises(InputError, match="no column 'm'"):
        bl.link_many(files, [bl.name("first")], columns={"a": {"m:given": "first"}}, **PYTHON)


def test_births_in_three_columns_of_every_file_stay_as_they_are():
    made = bl.simulate(200, overlap=0.5, errors=1, seed=6)
    a, b = (whole(t.to_pandas()).drop(columns="person") for t in (made.a, made.b))
    for table, given in ((a, made.a), (b, made.b)):
        table["name"] = given["fname"].to_pandas()
    run = bl.link_many({"a": a, "b": b}, **PYTHON)
    assert run.settings.columns == {"a": {}, "b": {}}
    assert {"year", "month", "day"} <= {c for f in run.settings.fields for c in f.columns[0]}


def test_places_in_two_columns_of_other_names_are_no_column():
    made = bl.simulate(200, overlap=0.5, errors=1, seed=6)
    a, b = (t.to_pandas()[["id", "gname", "fname", "dob"]] for t in (made.a, made.b))
    where = np.random.default_rng(1).uniform(0, 1, (len(a), 2))
    a["lat"], a["lon"] = np.round(50 + where.T, 4)
    b["latitude"], b["longitude"] = np.round(50 + where[::-1].T, 4)
    run = bl.link_many({"a": a, "b": b}, **PYTHON)
    again = bl.link_many({"a": a, "b": b}, columns=run.settings.columns, **PYTHON)
    assert again.settings.columns == run.settings.columns
    assert not any("+" in own for names in run.settings.columns.values() for own in names)
