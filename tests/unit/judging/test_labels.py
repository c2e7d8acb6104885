"""Labels: read from reviews and files, written for others, and held by the next run."""

import csv
import itertools
import json
import shutil

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import bayeslink as bl
from bayeslink.cli import main
from bayeslink.errors import InputError, OutputError, SettingsError
from bayeslink.judging.contradictions import contradiction
from bayeslink.judging.judgements import FILE, Judgements
from bayeslink.judging.labels import known_pairs, label_table
from bayeslink.runs import run_directory, tables

FIELDS = [bl.levenshtein("gname"), bl.levenshtein("fname"), bl.exact("dob")]
SHORT = {"draws": 60, "tune": 20, "w0": 0.0}
PLAIN = "id_a,id_b,verdict\n1,2,link\n3,4,nonlink\n5,6,unsure\n7,8,\n"
ROWS = {("1", "2"): "link", ("3", "4"): "nonlink", ("5", "6"): "unsure"}


def write_review(folder, **by_reviewer):
    """A review.sqlite with the verdicts of each reviewer, one case each."""
    folder.mkdir(exist_ok=True)
    with Judgements(folder / FILE) as judgements:
        for reviewer, verdicts in by_reviewer.items():
            judgements.add(case="1", version="1", reviewer=reviewer, verdicts=verdicts)


def text_file(tmp_path, text, name="labels.csv"):
    path = tmp_path / name
    path.write_text(text, "utf-8")
    return path


# --- reading ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        PLAIN,
        PLAIN.replace("verdict", "decision"),
        PLAIN.replace(",", ";").replace("unsure", " Unsure "),
        "reviewer,verdict,id_b,id_a\nx,link,2,1\nx,nonlink,4,3\nx,unsure,6,5\n",
        "unique_id_l,source_dataset_l,unique_id_r,source_dataset_r,clerical_match_score\n"
        "1,a,2,b,1.0\n3,a,4,b,0\n5,a,6,b,0.5\n",
    ],
)
def test_text_files(tmp_path, text):
    assert bl.read_labels(text_file(tmp_path, text)) == ROWS


def test_parquet_files_and_tables(tmp_path):
    frame = pd.DataFrame({"id_a": [1, 3, 5], "id_b": [2, 4, 6], "verdict": [*ROWS.values()]})
    frame.to_parquet(tmp_path / "labels.parquet")
    for source in (tmp_path / "labels.parquet", str(tmp_path / "labels.parquet"), frame):
        assert bl.read_labels(source) == ROWS


def test_a_review(tmp_path):
    write_review(
        tmp_path / "run",
        x={("1", "2"): "link", ("3", "4"): "nonlink", ("5", "6"): "unsure", ("7", "8"): "link"},
        y={("1", "2"): "unsure", ("5", "6"): "unsure", ("7", "8"): "nonlink"},
    )
    expected = {**ROWS, ("7", "8"): "disputed"}
    assert bl.read_labels(tmp_path / "run") == expected
    assert bl.read_labels(tmp_path / "run" / FILE) == expected


def test_a_run_directory_is_what_it_was_told_and_what_was_judged_since(tmp_path):
    told = {("1", "1"): "link", ("2", "2"): "link", ("3", "3"): "nonlink", ("4", "4"): "link"}
    write_review(
        tmp_path / "run",
        x={("2", "2"): "nonlink", ("3", "3"): "unsure", ("4", "4"): "link", ("5", "5"): "link"},
        y={("4", "4"): "nonlink"},
    )
    rows = [{"id_a": a, "id_b": b, "verdict": v} for (a, b), v in told.items()]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "run" / "labels.parquet")
    assert bl.read_labels(tmp_path / "run") == {
        ("1", "1"): "link",
        ("2", "2"): "nonlink",
        ("3", "3"): "nonlink",
        ("4", "4"): "disputed",
        ("5", "5"): "link",
    }
    (tmp_path / "run" / FILE).unlink()
    assert bl.read_labels(tmp_path / "run") == told


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id_a,id_b\n1,2\n", "lack a column"),
        ("left,right,verdict\n1,2,link\n", "lack a column"),
        ("id_a,id_b,verdict\n1,2,link\n1,2,nonlink\n", "1 pairs both link and nonlink"),
        ("id_a,id_b,verdict\n1,2,link\n3,4,perhaps\n", "1 rows have another verdict .* line 3"),
        ("unique_id_l,unique_id_r,clerical_match_score\n1,2,3\n", "a number from 0 to 1"),
        ("unique_id_l,unique_id_r,clerical_match_score\n1,2,yes\n", "a number from 0 to 1"),
        ("id_a,id_b,verdict\n1,,link\n", "rows without an id"),
        ("id_a,id_b,decision\n1,2,link\n3,link\n", "line 3"),  # not: there is no column "verdict"
    ],
)
def test_wrong_files(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        bl.read_labels(text_file(tmp_path, text))


def test_nothing_judged(tmp_path):
    with pytest.raises(InputError, match="no judgements yet"):
        bl.read_labels(tmp_path)
    with pytest.raises(InputError, match="cannot be read"):
        bl.read_labels(tmp_path / "absent.csv")
    with pytest.raises(InputError, match="no judgements yet"):
        bl.export_labels(tmp_path, tmp_path / "out.csv")


# --- writing ----------------------------------------------------------------------------------


@pytest.fixture
def reviewed(tmp_path):
    """Ids that a spreadsheet would run, and a pair of each kind."""
    write_review(
        tmp_path / "run",
        x={("=1+1", "-2"): "link", ("3", "4"): "nonlink", ("5", "6"): "unsure"},
        y={("=1+1", "-2"): "unsure"},
    )
    return tmp_path / "run"


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_exports_are_read_back(reviewed, tmp_path, ending):
    for splink in (False, True):
        path = tmp_path / f"labels.{ending}"
        bl.export_labels(reviewed, path, splink=splink, names=("census", "survey"))
        expected = bl.read_labels(reviewed)
        if splink:
            del expected["5", "6"]
        assert bl.read_labels(path) == expected


def test_the_plain_export_has_every_judgement(reviewed, tmp_path):
    bl.export_labels(reviewed / FILE, tmp_path / "labels.csv")
    rows = list(csv.DictReader((tmp_path / "labels.csv").read_text().splitlines()))
    assert [(r["id_a"], r["id_b"], r["verdict"], r["reviewer"]) for r in rows] == [
        ("3", "4", "nonlink", "x"),
        ("5", "6", "unsure", "x"),
        ("'=1+1", "'-2", "link", "x"),
        ("'=1+1", "'-2", "unsure", "y"),
    ]
    assert {r["case"] for r in rows} == {r["version"] for r in rows} == {"1"}


def test_the_splink_export_has_splinks_columns(reviewed):
    with Judgements(reviewed / FILE) as judgements:
        table = label_table(judgements, splink=True, names=("census", "survey"))
    assert table.to_pylist() == [
        {
            "unique_id_l": a,
            "source_dataset_l": "census",
            "unique_id_r": b,
            "source_dataset_r": "survey",
            "clerical_match_score": score,
        }
        for a, b, score in (("=1+1", "-2", 1.0), ("3", "4", 0.0))
    ]


def test_an_empty_review_can_be_exported(tmp_path):
    Judgements(tmp_path / FILE).close()
    for splink in (False, True):
        bl.export_labels(tmp_path, tmp_path / "labels.parquet", splink=splink)
        assert pq.read_table(tmp_path / "labels.parquet").num_rows == 0


def test_exports_that_cannot_be(reviewed, tmp_path):
    with pytest.raises(SettingsError, match=r"\.csv or \.parquet"):
        bl.export_labels(reviewed, tmp_path / "labels.xlsx")
    with pytest.raises(OutputError, match="cannot write"):
        bl.export_labels(reviewed, tmp_path / "absent" / "labels.csv")


# --- what is known ----------------------------------------------------------------------------


def test_known_pairs_from_everywhere_once_each(tmp_path):
    labels = text_file(tmp_path, PLAIN)
    known, remarks = known_pairs(labels, [("1", "2"), (9, 9)], pa.table({"id_a": [8], "id_b": [8]}))
    assert [tuple(row.values()) for row in known.to_pylist()] == [
        ("1", "2", "link"),
        ("9", "9", "link"),
        ("3", "4", "nonlink"),
        ("8", "8", "nonlink"),
    ]
    assert remarks == ["1 pairs judged unsure are left to the model."]
    assert known_pairs() == (None, [])


def test_links_that_share_a_record_are_refused(tmp_path):
    with pytest.raises(InputError, match="2 pairs are labelled as links though"):
        known_pairs(text_file(tmp_path, "id_a,id_b,verdict\n1,2,link\n1,3,link\n4,4,link\n"))


def test_labels_that_say_nothing_are_refused(tmp_path):
    with pytest.raises(InputError, match="no link and no non-link"):
        known_pairs(text_file(tmp_path, "id_a,id_b,verdict\n1,2,unsure\n"))


def test_of_links_with_a_decision_only_the_links_are_known():
    rows = pa.table({"id_a": ["1", "2"], "id_b": ["1", "2"], "decision": ["link", "review"]})
    known, _ = known_pairs(links=rows)
    assert [tuple(row.values()) for row in known.to_pylist()] == [("1", "1", "link")]


# --- the next run -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    bl.write_simulation(bl.simulate(150, overlap=0.5, errors=3, seed=3), folder, force=True)
    return folder


@pytest.fixture(scope="module")
def linked(files):
    """A run directory and, of its pairs, the least sure link and the surest other pair."""
    run = bl.link(files / "a.csv", files / "b.csv", FIELDS, loss=bl.Loss(reject=0.2), **SHORT)
    run.save(files / "run")
    rows = run.candidates().to_pylist()
    links = {(r["id_a"], r["id_b"]) for r in run.table.to_pylist() if r["decision"] == "link"}
    pairs = [(r["id_a"], r["id_b"]) for r in rows]
    doubtful = [pair for pair in pairs if pair in links][-1]
    busy = [set(side) for side in zip(*links, strict=True)]
    rival = next(p for p in pairs if p[0] not in busy[0] and p[1] not in busy[1])
    return files / "run", doubtful, rival


@pytest.fixture
def judged(linked, tmp_path):
    """A copy of the run: a link judged no link, a pair that is not linked judged a link."""
    folder, doubtful, rival = linked
    copy = tmp_path / "judged"
    shutil.copytree(folder, copy)
    for name in ("a.csv", "b.csv"):  # to which its link.toml leads
        shutil.copy(folder.parent / name, tmp_path)
    write_review(copy, x={doubtful: "nonlink", rival: "link"})
    return copy


def cli(*arguments, code=0):
    done = CliRunner().invoke(main, [*map(str, arguments)])
    assert done.exit_code == code, done.output
    return done.output


def pairs_of(folder, decision="link"):
    rows = pq.read_table(folder / "links.parquet").to_pylist()
    return {(r["id_a"], r["id_b"]) for r in rows if r["decision"] == decision}


def test_judged_pairs_hold_in_the_next_run(linked, judged, tmp_path):
    _, doubtful, rival = linked
    out = cli("link", "--config", judged / "link.toml", "--labels", judged, "-o", tmp_path / "new")
    before, after = pairs_of(judged), pairs_of(tmp_path / "new")
    assert doubtful in before - after
    assert rival in after - before
    counts = [len(after - before), len(before - after), len(before & after)]
    assert "Links: {:,} added, {:,} dropped, {:,} kept.".format(*counts) in out


def test_a_run_with_labels_repeats_itself(linked, judged, tmp_path):
    cli("link", "--config", judged / "link.toml", "--labels", judged, "-o", tmp_path / "new")
    shutil.rmtree(judged)  # the run has all it needs
    assert 'labels = "labels.parquet"' in (tmp_path / "new" / "link.toml").read_text()
    out = cli("link", "--config", tmp_path / "new" / "link.toml", "-o", tmp_path / "again")
    assert "changed" not in out
    for name in ("links", "pairs", "draws", "labels"):
        files = [tmp_path / run / f"{name}.parquet" for run in ("new", "again")]
        assert files[0].read_bytes() == files[1].read_bytes()


def test_known_pairs_from_python_are_kept_with_the_run(files, linked, tmp_path):
    _, doubtful, rival = linked
    given = {"known_links": [rival], "known_nonlinks": [doubtful]}
    run = bl.link(files / "a.csv", files / "b.csv", FIELDS, **given, **SHORT)
    run.save(tmp_path / "run")
    assert bl.read_labels(tmp_path / "run") == {rival: "link", doubtful: "nonlink"}
    cli("link", "--config", tmp_path / "run" / "link.toml", "-o", tmp_path / "again")
    assert pairs_of(tmp_path / "again") == pairs_of(tmp_path / "run")


def test_a_second_review_adds_to_the_first(linked, judged, tmp_path):
    """The known link is no candidate any more, so the second review cannot repeat it."""
    _, doubtful, rival = linked
    cli("link", "--config", judged / "link.toml", "--labels", judged, "-o", tmp_path / "new")
    third = min(pairs_of(tmp_path / "new") - {rival})
    write_review(tmp_path / "new", x={third: "nonlink"})
    cli(
        *("link", "--config", tmp_path / "new" / "link.toml", "--labels", tmp_path / "new"),
        *("-o", tmp_path / "newer"),
    )
    told = {rival: "link", doubtful: "nonlink", third: "nonlink"}
    assert bl.read_labels(tmp_path / "newer") == told


def test_the_runs_own_links_can_be_given_as_known(files, linked):
    folder, *_ = linked
    review = pairs_of(folder, "review")
    run = bl.link(
        files / "a.csv", files / "b.csv", FIELDS, known_links=bl.open_run(folder).table, **SHORT
    )
    assert review
    assert {(r["id_a"], r["id_b"]) for r in run.labels.to_pylist()} == pairs_of(folder)


def test_labels_hold_in_a_point_estimate(files, judged):
    run = bl.link(files / "a.csv", files / "b.csv", FIELDS, labels=judged, point=True)
    links = {*zip(*(run.table[side].to_pylist() for side in ("id_a", "id_b")), strict=True)}
    said = {pair: verdict == "link" for pair, verdict in bl.read_labels(judged).items()
            if verdict in ("link", "nonlink")}  # fmt: skip
    assert said
    assert all((pair in links) == is_link for pair, is_link in said.items())


def test_ids_of_other_files_are_counted_not_shown(files, tmp_path):
    labels = text_file(tmp_path, "id_a,id_b,verdict\nsecret,B1,link\n")
    with pytest.raises(InputError, match="1 ids named") as caught:
        bl.link(files / "a.csv", files / "b.csv", FIELDS, labels=labels, **SHORT)
    assert "secret" not in str(caught.value)


def test_disputed_pairs_are_left_to_the_model_and_it_says_so(files, linked, judged):
    _, doubtful, rival = linked
    write_review(judged, y={rival: "nonlink"})
    run = bl.link(files / "a.csv", files / "b.csv", FIELDS, labels=judged, **SHORT)
    assert {(r["id_a"], r["id_b"]) for r in run.labels.to_pylist()} == {doubtful}
    assert "1 pairs on which reviewers disagree are left to the model." in run.warnings


# --- changes ----------------------------------------------------------------------------------


def test_changes_between_runs_and_directories(files, linked, judged):
    run = bl.link(files / "a.csv", files / "b.csv", FIELDS, labels=judged, **SHORT)
    found = bl.changes(judged, run)
    before, after = (
        pairs_of(judged),
        {(r["id_a"], r["id_b"]) for r in run.table.to_pylist() if r["decision"] == "link"},
    )
    assert set(found.added) == after - before
    assert set(found.dropped) == before - after
    assert found.kept == len(before & after)
    summary = json.loads((judged / "run.json").read_text())
    now = run.summary()["expected_false_links"]
    assert found.expected_false == (summary["expected_false_links"], now)
    assert found.links_interval == (tuple(summary["links_interval"]), run.posterior.interval())
    back = bl.changes(run, str(judged))
    assert (set(back.added), set(back.dropped)) == (before - after, after - before)
    same = bl.changes(run, run)
    assert (same.added, same.dropped, same.kept) == ((), (), len(after))


def test_changes_from_a_point_estimate(files, linked):
    point = bl.link(files / "a.csv", files / "b.csv", FIELDS, point=True)
    found = bl.changes(point, linked[0])
    assert found.expected_false[0] is None is found.links_interval[0]
    assert "– before" in str(found)


def test_changes_as_json_when_a_run_is_replaced_by_its_repeat(judged):
    before = pairs_of(judged)
    out = cli(
        *("link", "--config", judged / "link.toml", "--labels", judged, "-o", judged),
        *("--force", "--json"),
    )
    summary, after = json.loads(out), pairs_of(judged)
    found = summary["changes"]
    assert found["links_interval"][1] == summary["links_interval"]
    assert found["expected_false_links"][1] == summary["expected_false_links"]
    assert found["links_added"] == len(after - before) > 0
    assert found["links_dropped"] == len(before - after) > 0
    assert found["links_kept"] == len(before & after)


# --- judgements outlive their run -------------------------------------------------------------


def test_replacing_a_run_keeps_its_judgements(judged):
    """Also for a review that is going on: what it judges next is in the new directory."""
    with Judgements(judged / FILE) as open_review:
        before = open_review.current()
        cli("link", "--config", judged / "link.toml", "-o", judged, "--force")
        open_review.add(case="2", version="1", reviewer="y", verdicts={("8", "8"): "link"})
    with Judgements(judged / FILE) as judgements:
        after = judgements.current()
    assert after[: len(before)] == before
    assert [one.reviewer for one in after[len(before) :]] == ["y"]
    assert not [path for path in judged.parent.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("fails", [(run_directory, "_exchange"), (tables, "parameter_table")])
def test_a_failed_write_leaves_run_and_judgements_alone(judged, monkeypatch, fails):
    """When the last step fails, and when an early one does."""

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(*fails, fail)
    before = {path.name: path.read_bytes() for path in judged.iterdir()}
    cli("link", "--config", judged / "link.toml", "-o", judged, "--force", code=4)
    assert {path.name: path.read_bytes() for path in judged.iterdir()} == before
    with Judgements(judged / FILE) as judgements:  # and they are not locked
        judgements.add(case="2", version="1", reviewer="y", verdicts={("8", "8"): "link"})


@pytest.mark.parametrize(
    ("failure", "code"), [(OSError(5, "Input/output error"), 4), (KeyboardInterrupt(), 130)]
)
def test_a_swap_that_fails_half_way_leaves_run_and_judgements_alone(
    judged, monkeypatch, failure, code
):
    """The old directory is aside already when the new one cannot be put in its place."""
    rename = type(judged).rename

    def fail_once(path, target):
        if path.name == "new" and target == judged:
            raise failure
        return rename(path, target)

    monkeypatch.setattr(run_directory, "_exchange", lambda one, other: False)
    monkeypatch.setattr(type(judged), "rename", fail_once)
    before = {path.name: path.read_bytes() for path in judged.iterdir()}
    cli("link", "--config", judged / "link.toml", "-o", judged, "--force", code=code)
    assert {path.name: path.read_bytes() for path in judged.iterdir()} == before


def test_judgements_are_kept_while_someone_else_writes_them(judged, monkeypatch):
    """Rather than wait for ever, or go on without them."""
    monkeypatch.setattr("bayeslink.judging.judgements._WAIT", 0.05)
    with Judgements(judged / FILE) as busy:
        busy._db.execute("BEGIN IMMEDIATE")
        before = (judged / "run.json").read_bytes()
        out = cli("link", "--config", judged / "link.toml", "-o", judged, "--force", code=4)
        busy._db.execute("ROLLBACK")
    assert out.count("cannot write") == 1
    assert (judged / "run.json").read_bytes() == before


def test_exports_are_private_and_replace_what_was_there(reviewed, tmp_path):
    path, mine = tmp_path / "labels.csv", tmp_path / "mine.csv"
    mine.write_text("mine")
    path.symlink_to(mine)
    for _ in range(2):
        bl.export_labels(reviewed, path)
        assert path.stat().st_mode & 0o077 == 0
    assert mine.read_text() == "mine"
    assert {p.name for p in tmp_path.iterdir()} == {"labels.csv", "mine.csv", "run"}


def test_ids_that_begin_as_fullwidth_formulas_are_read_back(tmp_path):
    write_review(tmp_path, x={("＝1", "\t2"): "link"})
    bl.export_labels(tmp_path, tmp_path / "labels.csv")
    assert bl.read_labels(tmp_path / "labels.csv") == {("＝1", "\t2"): "link"}


# --- people -----------------------------------------------------------------------------------


def test_labels_of_people_that_contradict_themselves_are_named(tmp_path):
    path = tmp_path / "labels.csv"
    rows = ["id_a,id_b,verdict", "x,y,link", "a,b,link", "c,b,link", "d,c,link", "a,c,nonlink"]
    path.write_text("\n".join([*rows, "d,a,nonlink"]) + "\n")
    with pytest.raises(InputError) as refused:
        known_pairs(path, people=True)
    said = str(refused.value)
    assert "by line 3 of the labels and line 4 of the labels two records are one person" in said
    assert "by line 6 of the labels they are two" in said
    assert "1 more pairs" in said
    assert "correct or leave out" in said
    with pytest.raises(InputError, match="row 2 of known_nonlinks"):
        known_pairs(None, [("1", "2"), ("2", "3")], [("8", "9"), ("3", "1")], people=True)
    path.write_text("\n".join([*rows[:5], "a,x,nonlink"]) + "\n")
    assert len(known_pairs(path, people=True)[0]) == 5


def test_judgements_of_people_that_contradict_themselves_are_named_by_case(tmp_path):
    with Judgements(tmp_path / FILE) as judgements:
        how = {"version": "1", "reviewer": "Anna"}
        judgements.add(case="3", **how, verdicts={("a", "b"): "link"})
        judgements.add(case="drawn-7", **how, verdicts={("b", "c"): "link"})
        judgements.add(case="5", **how, verdicts={("a", "c"): "nonlink"})
    for labels in (tmp_path, tmp_path / FILE):
        with pytest.raises(InputError) as refused:
            known_pairs(labels, people=True)
        said = str(refused.value)
        assert "by case 3 of the review and case drawn-7 of the review" in said
        assert "by case 5 of the review they are two" in said


def test_contradictions_are_found_where_there_are_any():
    """Against every partition: labels hold together if some partition agrees with all of them."""
    rng, n = np.random.default_rng(1), 5
    partitions = {tuple(map(p.index, p)) for p in itertools.product(range(n), repeat=n)}
    pairs = list(itertools.combinations(range(n), 2))
    seen = set()
    for _ in range(200):
        said = {pair: rng.choice(["link", "nonlink", ""], p=(0.3, 0.3, 0.4)) for pair in pairs}
        links = [tuple(map(str, x)) for x in pairs if said[x] == "link"]
        apart = [tuple(map(str, x)) for x in pairs if said[x] == "nonlink"]
        possible = any(
            all((p[x] == p[y]) == (said[x, y] == "link") for x, y in pairs if said[x, y])
            for p in partitions
        )
        found = contradiction(links, apart)
        assert (found is None) == possible
        seen.add(possible)
        if found:
            ends = [name for pair in found.links for name in pair]
            assert sorted(name for name in set(ends) if ends.count(name) % 2) == sorted(found.apart)
    assert seen == {True, False}
