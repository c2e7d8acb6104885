"""New records for an earlier run of people: who is who in all of them, under the ids of before."""

import json

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from click.testing import CliRunner

import bayeslink as bl
from bayeslink.checkpoints import Checkpoints
from bayeslink.cli import main
from bayeslink.errors import ChangedInputError, InputError, SettingsError

HOW = {"draws": 60, "tune": 60, "chains": 2}
SHORT = ("--draws", "60", "--tune", "60", "--chains", "2")
FIELDS = ("--on", "gname:name", "--on", "fname:name", "--on", "dob:date", "--on", "postcode:exact")


def fields():
    return [bl.name("gname"), bl.name("fname"), bl.date("dob"), bl.exact("postcode")]


def call(*words):
    return CliRunner().invoke(main, [*map(str, words)])


def told(*words):
    done = call(*words)
    assert done.exit_code == 0, done.output
    return done.stdout


def refused(*words):
    done = call(*words)
    assert done.exit_code in (2, 3), done.output
    return " ".join(done.stderr.split())


@pytest.fixture(scope="module")
def made():
    return bl.simulate_duplicates(240, seed=8)


@pytest.fixture
def months(made, tmp_path, monkeypatch):
    """january.csv, february.csv and march.csv, and a run of the first."""
    monkeypatch.chdir(tmp_path)
    frame = made.a.to_pandas()
    for name, part in (("jan", frame[:150]), ("feb", frame[150:200]), ("mar", frame[200:])):
        part.to_csv(f"{name}.csv", index=False)
    frame.to_csv("all.csv", index=False)
    made.truth.to_pandas().to_csv("truth.csv", index=False)
    told("dedupe", "jan.csv", *FIELDS, *SHORT, "-o", "january")
    return tmp_path


def people_of(run):
    """The records of each person, by its id."""
    frame = pd.read_csv(f"{run}/clusters.csv", dtype=str)
    return frame.groupby("entity_id")["id"].apply(frozenset).to_dict()


def test_a_year_of_updates(months):
    said = told("dedupe", "--update", "january", "feb.csv", "-o", "february")
    assert "What the update changed: 50 new records: " in said
    told("dedupe", "--update", "february", "mar.csv", "-o", "march")
    before, now = people_of("january"), people_of("february")
    for name, records in before.items():
        if records in now.values():
            assert now[name] == records
    assert set().union(*now.values()) > set().union(*before.values())
    changes = pd.read_csv("february/changes.csv", dtype=str)
    same = {name for name in before if now.get(name) == before[name]}
    assert {*changes["entity_id_before"]} == before.keys() - same
    summary = json.loads((months / "march/run.json").read_text())
    (given,) = summary["inputs"]
    assert [part["label"].split("/")[-1] for part in given["parts"]] == [
        "jan.csv", "feb.csv", "mar.csv"
    ]  # fmt: skip
    assert summary["update"]["new_records"] == 40
    retired = {*before, *now} - people_of("march").keys()
    run = bl.open_run("march")
    assert retired <= {*run.as_table("changes")["entity_id_before"].to_pylist()}
    assert len(run.changes) == len(pd.read_csv("march/changes.csv"))
    told("report", "march")
    assert "What the update changed" in (months / "march/report.html").read_text("utf-8")
    told("evaluate", "march", "--truth", "truth.csv")
    told("dedupe", "--config", "march/dedupe.toml", "-o", "again")
    for name in ("clusters.csv", "changes.csv", "people.csv", "draws.parquet"):
        assert (months / "march" / name).read_bytes() == (months / "again" / name).read_bytes()


def test_people_are_those_of_all_records_at_once(months):
    told("dedupe", "--update", "january", "feb.csv", "-o", "february")
    told("dedupe", "--update", "february", "mar.csv", "-o", "march")
    told("dedupe", "all.csv", *FIELDS, *SHORT, "-o", "whole")
    assert {*people_of("march").values()} == {*people_of("whole").values()}
    for name in ("draws.parquet", "parameters.parquet", "pairs.parquet"):
        march, whole = (months / run / name for run in ("march", "whole"))
        assert march.read_bytes() == whole.read_bytes()


def test_in_python_from_a_run_that_was_never_saved(made):
    for table in (made.a, made.a.to_pandas()):
        run = bl.dedupe(table[:150], fields(), known_links=[("A000001", "A000002")], **HOW)
        found = bl.update(run, table[150:])
        assert found.settings.known_links == [("A000001", "A000002")]
        one = {row["id"]: row["entity_id"] for row in pa.table(found.table).to_pylist()}
        assert one["A000001"] == one["A000002"]
        assert len(found.clusters) == 240
        assert found.changed.counts["new_records"] == 90
        columns = [str(name) for name in getattr(found.changes, "column_names", found.changes)]
        assert columns[:3] == ["entity_id_before", "entity_id", "what"]


def test_known_pairs_are_kept_in_the_directory(made, tmp_path):
    a, b, c = made.a["id"].to_pylist()[:3]
    known = {"known_links": [(a, b)], "known_nonlinks": pa.table({"id_a": [a], "id_b": [c]})}
    run = bl.dedupe(made.a.slice(0, 150), fields(), **known, **HOW)
    run.save(tmp_path / "january")
    now = bl.update(tmp_path / "january", made.a.slice(150), a=made.a.slice(0, 150))
    assert now.settings.known_links == [(a, b)]
    assert now.settings.known_nonlinks == [(a, c)]
    now.save(tmp_path / "february")
    assert bl.open_run(tmp_path / "february").settings.known_links == [(a, b)]
    of = dict(zip(now.table["id"].to_pylist(), now.table["entity_id"].to_pylist(), strict=True))
    assert of[a] == of[b] != of[c]


def test_whole_numbers_stay_whole_numbers_and_rows_keep_theirs(made, tmp_path):
    table = made.a.set_column(0, "id", pa.array(range(1, 241), pa.int64()))
    run = bl.dedupe(table.slice(0, 150), fields(), **HOW)
    run.save(tmp_path / "january")
    found = bl.update(tmp_path / "january", table.slice(150), a=table.slice(0, 150))
    found.save(tmp_path / "february")
    opened = bl.open_run(tmp_path / "february")
    assert opened.clusters.schema.field("entity_id").type == pa.int64()
    assert opened.changes.schema.field("entity_id_before").type == pa.int64()
    bare = table.drop_columns(["id"])
    run = bl.dedupe(bare.slice(0, 150), fields(), id=None, **HOW)
    assert bl.update(run, bare.slice(150)).changed.counts["earlier_records"] == 150


@pytest.fixture
def files(made, tmp_path, monkeypatch):
    """A run of two files, and new records."""
    monkeypatch.chdir(tmp_path)
    frame = made.a.to_pandas().merge(made.truth.to_pandas(), on="id")
    frame["file"] = [("census", "survey")[k % 2] for k in range(len(frame))]
    census = frame[frame["file"] == "census"].drop_duplicates("entity_id")
    survey = frame[frame["file"] == "survey"]
    for name, part in (
        ("census", census), ("survey", survey[:80]), ("new", survey[80:100]), ("tax", survey[100:])
    ):  # fmt: skip
        part.drop(columns=["file", "entity_id"]).to_csv(f"{name}.csv", index=False)
    words = ("census.csv", "survey.csv", "--duplicates", "survey", *FIELDS, *SHORT)
    told("link-many", *words, "-o", "january")
    return tmp_path


def test_several_files(files):
    told("link-many", "--update", "january", "survey=new.csv", "-o", "february")
    told("link-many", "--update", "february", "tax=tax.csv", "--duplicates", "tax", "-o", "march")
    summary = json.loads((files / "march/run.json").read_text())
    assert summary["lists"]["names"] == ["census", "survey", "tax"]
    assert summary["lists"]["clean"] == ["census"]
    assert [len(given.get("parts", ())) for given in summary["inputs"]] == [0, 2, 0]
    frame = pd.read_csv("february/clusters.csv", dtype=str)
    before = pd.read_csv("january/clusters.csv", dtype=str)
    both = before.merge(frame, on=["file", "id"], suffixes=("_before", ""))
    assert len(both) == len(before)
    assert (both["entity_id"] == both["entity_id_before"]).mean() > 0.9
    told("link-many", "--config", "march/link-many.toml", "-o", "again")
    again, march = (files / run / "clusters.csv" for run in ("again", "march"))
    assert again.read_bytes() == march.read_bytes()
    told("report", "march")
    assert len(bl.open_run("march").with_entities("survey")) == 100


def test_what_is_refused_of_several_files(files):
    assert "NAME=new.csv" in refused("link-many", "--update", "january", "new.csv", "-o", "x")
    said = refused("link-many", "--update", "january", "survey=survey.csv", "-o", "x")
    assert "the earlier run read as survey" in said
    pd.read_csv("new.csv", dtype=str).drop(columns="dob").to_csv("less.csv", index=False)
    said = refused("link-many", "--update", "january", "survey=less.csv", "-o", "x")
    assert "the new records of survey have no column 'dob', which is compared" in said
    pd.read_csv("new.csv", dtype=str).rename(columns={"id": "no"}).to_csv("other.csv", index=False)
    said = refused("link-many", "--update", "january", "survey=other.csv", "-o", "x")
    assert "other.csv: there is no column 'id'" in said
    pd.read_csv("survey.csv", dtype=str)[:7].to_csv("again.csv", index=False)
    said = refused("link-many", "--update", "january", "survey=again.csv", "-o", "x")
    assert "7 records of the new batch have ids that the earlier survey has too" in said
    said = refused("dedupe", "--update", "january", "new.csv", "-o", "x")
    assert "bayeslink link-many --update RUN" in said
    with pytest.raises(SettingsError, match="say which file the new records belong to"):
        bl.update("january", "new.csv")
    assert not (files / "x").exists()


def test_what_is_refused(months):
    update = ("dedupe", "--update", "january")
    pd.read_csv("jan.csv", dtype=str)[:9].to_csv("again.csv", index=False)
    said = refused(*update, "again.csv", "-o", "x")
    assert "9 records of the new batch have ids that the earlier file has too" in said
    pd.read_csv("feb.csv", dtype=str).drop(columns="dob").to_csv("less.csv", index=False)
    assert "there is no column 'dob'" in refused(*update, "less.csv", "-o", "x")
    assert "the earlier run read as FILE" in refused(*update, "jan.csv", "-o", "x")
    said = refused(*update, "feb.csv", "--on", "dob", "-o", "x")
    assert "--on does not go with --update" in said
    assert "bayeslink dedupe --update january NEW" in refused(
        "link", "--update", "january", "feb.csv", "-o", "x"
    )
    told("link", "jan.csv", "feb.csv", *FIELDS, *SHORT, "-o", "links")
    assert "bayeslink link --update RUN B" in refused(
        "dedupe", "--update", "links", "mar.csv", "-o", "x"
    )
    assert "it has people" not in refused("dedupe", "--update", "nowhere", "feb.csv", "-o", "x")
    with pytest.raises(SettingsError, match="strength is for linking two files"):
        bl.update("january", "feb.csv", strength=0.5)
    done = call(*update, "feb.csv", "-o", "january", "--force")
    assert done.exit_code == 4
    assert "an input lies in" in done.stderr
    frame = pd.read_csv("jan.csv", dtype=str)
    frame.loc[0, "gname"] = "Xaver"
    frame.to_csv("jan.csv", index=False)
    with pytest.raises(ChangedInputError, match="has changed since the run read it"):
        bl.update("january", "feb.csv")
    assert not (months / "x").exists()


def test_an_earlier_run_that_is_gone(months):
    told("dedupe", "--update", "january", "feb.csv", "-o", "february")
    (months / "january").rename(months / "elsewhere")
    said = refused("dedupe", "--config", "february/dedupe.toml", "-o", "x")
    assert "the earlier run is not at january" in said
    assert "--update RUN NEW" in refused("dedupe", "--update", "elsewhere", "-o", "x")
    told("dedupe", "--update", "february", "mar.csv", "-o", "march")  # january is not needed
    told("report", "march")
    report = (months / "march/report.html").read_text("utf-8")
    assert all(
        given["sha256"] in report
        for given in json.loads((months / "march/run.json").read_text())["inputs"][0]["parts"]
    )


def test_an_earlier_run_without_its_records(made, tmp_path):
    bl.dedupe(made.a.slice(0, 150), fields(), **HOW).save(tmp_path / "january")
    with pytest.raises(InputError, match=r"Give them: bl.update\(run, new, a=…\)"):
        bl.update(tmp_path / "january", made.a.slice(150))
    with pytest.raises(InputError, match="100 of the 150 records of the earlier run are not here"):
        bl.dedupe(made.a.slice(0, 50), fields(), earlier=tmp_path / "january", **HOW)
    with pytest.raises(ChangedInputError, match="no longer holds the 150 records"):
        bl.update(tmp_path / "january", made.a.slice(150), a=made.a.slice(0, 100))


def test_a_list_of_files_is_one_file(months):
    one = bl.dedupe("all.csv", fields(), **HOW)
    parts = bl.dedupe(["jan.csv", "feb.csv", "mar.csv"], fields(), **HOW)
    assert parts.clusters.equals(one.clusters)
    assert pc.all(pc.equal(pa.table(one.table)["id"], pa.table(parts.table)["id"])).as_py()
    parts.save("parts")
    one.save("one")
    for name in ("people.csv", "with_entities.parquet"):
        assert (months / "parts" / name).read_bytes() == (months / "one" / name).read_bytes()
    with pytest.raises(InputError, match="repeat the id of an earlier one"):
        bl.dedupe(["jan.csv", "feb.csv", "jan.csv"], fields(), **HOW)


def test_an_interrupted_update_goes_on(months, monkeypatch):
    update = ("dedupe", "--update", "january", "feb.csv", "--threads", "1")
    told(*update, "-o", "whole")
    save = Checkpoints.save

    def interrupting(self, name, arrays):
        save(self, name, arrays)
        if name.startswith("chain"):
            raise KeyboardInterrupt

    monkeypatch.setattr("bayeslink.checkpoints.EVERY", 0.0)
    monkeypatch.setattr(Checkpoints, "save", interrupting)
    done = call(*update, "-o", "february")
    assert done.exit_code == 130, done.output
    assert "bayeslink resume" in done.stderr
    monkeypatch.setattr(Checkpoints, "save", save)
    told("resume", "february")
    for name in ("clusters.csv", "changes.csv", "pairs.parquet"):
        whole, resumed = (months / run / name for run in ("whole", "february"))
        assert whole.read_bytes() == resumed.read_bytes()
