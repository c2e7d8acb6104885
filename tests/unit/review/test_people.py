"""Review of a run of people: which clusters are shown, what a verdict on one is kept as."""

import itertools
import json
import time
from contextlib import closing

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

import bayeslink as bl
from bayeslink.cli import main
from bayeslink.errors import InputError, SettingsError
from bayeslink.judging.judgements import FILE, Judgements
from bayeslink.judging.labels import known_pairs
from bayeslink.review.people_cases import MOST, find_people_cases
from bayeslink.review.people_desk import PeopleDesk
from bayeslink.review.people_material import people_material_of
from bayeslink.review.people_view import OPEN, numbered, people_of, verdicts_of
from bayeslink.review.queues import UnknownCaseError
from bayeslink.review.rerun import Rerun
from bayeslink.runs.cluster_structure import Structure
from tests.served import Server, copied

HOW = {"draws": 60, "tune": 60, "chains": 2}
FIELDS = [bl.name("gname"), bl.name("fname"), bl.date("dob")]


def saved(folder, n, seed=3):
    made = bl.simulate_duplicates(n, seed=seed, sizes=(0.4, 0.3, 0.2, 0.1), errors=4)
    (folder / "data").mkdir()
    made.a.to_pandas().to_csv(folder / "data" / "a.csv", index=False)
    bl.dedupe(folder / "data" / "a.csv", FIELDS, **HOW).save(folder / "run")
    return folder / "run"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return saved(tmp_path_factory.mktemp("people"), 300)


@pytest.fixture
def run(made, tmp_path):
    return copied(made, tmp_path)


@pytest.fixture
def desk(run):
    with (
        Judgements(run / FILE) as judgements,
        closing(PeopleDesk(people_material_of(bl.open_run(run)), judgements)) as desk,
    ):
        yield desk


def structure(cluster, membership, pairs):
    a, b, p = zip(*pairs, strict=True) if pairs else ((), (), ())
    return Structure(
        np.array(cluster), np.array(membership), np.array(a, int), np.array(b, int),
        np.array(p, float), np.full(len(p), 20.0), 5.0,
    )  # fmt: skip


# --- cases ------------------------------------------------------------------------------------


def test_clusters_that_may_be_one_person_are_one_case_the_least_sure_first():
    cluster = [0, 0, 1, 2, 2, 3, 4, 4, 5]
    sure = [0.8, 0.8, 0.7, 1, 1, 0.4, 0.99, 0.99, 0.2]
    pairs = [(0, 1, 0.9), (1, 2, 0.3), (3, 4, 1.0), (4, 5, 0.6), (6, 7, 0.99), (7, 8, 0.05)]
    cases = find_people_cases(structure(cluster, sure, pairs), 0.9, [4], [])
    # 5 is in doubt, but with nobody in particular.
    assert cases.clusters == [[2, 3], [0, 1], [4]]
    assert cases.n_worth == 3
    assert cases.false == pytest.approx([0, 0.1, 0.01])
    assert cases.errors == pytest.approx([0.6, 0.4, 0.01])
    assert cases.of_cluster == {2: 0, 3: 0, 0: 1, 1: 1, 4: 2}


def test_a_large_case_is_cut_and_a_cluster_is_not():
    chain = [(k, k + 1, 0.5) for k in range(29)]
    cases = find_people_cases(structure(range(30), [0.5] * 30, chain), 0.9, [], [])
    assert sorted(itertools.chain(*cases.clusters)) == list(range(30))
    assert max(map(len, cases.clusters)) == MOST
    whole = find_people_cases(structure([0] * 30, [0.5] * 30, chain), 0.9, [], [])
    assert whole.clusters == [[0]]


def test_every_record_is_in_one_case_at_most(made):
    material = people_material_of(bl.open_run(made))
    keys = [str(k + 1) for k in range(len(material.cases))]
    records = [r for key in keys for r in material.records_of(key)]
    assert len(records) == len(set(records))
    assert all(material.key_of(r) == key for key in keys for r in material.records_of(key))
    rest = set(range(len(material.ids))) - set(records)
    for record in rest:
        key = material.key_of(record)
        assert key.startswith("cluster-")
        assert record in material.records_of(key)
    for key in ("0", "-1", "01", "cluster-0", "cluster-9999", "pair-1", "x", ""):
        assert material.records_of(key) == []
    lowest = [material.structure.membership[material.records_of(k)].min() for k in keys[:10]]
    assert lowest == sorted(lowest)


# --- verdicts ---------------------------------------------------------------------------------


def partition(rng, n, unsure=0.2):
    people = rng.integers(0, 4, n).astype(str)
    return numbered(np.where(rng.random(n) < unsure, OPEN, people).tolist())


def test_a_verdict_comes_back_as_it_was_told():
    rng, ids = np.random.default_rng(1), [f"r{k}" for k in range(6)]
    for _ in range(300):
        people = partition(rng, 6)
        if people.count(OPEN) >= 5:  # the sixth has no pair that is sure either
            continue
        verdicts = verdicts_of(ids, people)
        assert people_of(ids, verdicts, verdicts.keys()) == people
        assert people_of(ids, {}, verdicts.keys()) is None


def contradictory(verdicts, n):
    """Whether links make one person of two records that are told to be two."""
    links = [pair for pair, said in verdicts.items() if said == "link"]
    apart = [pair for pair, said in verdicts.items() if said == "nonlink"]
    of = list(range(n))
    for x, y in links:
        x, y = of[x], of[y]
        of = [x if one == y else one for one in of]
    return any(of[x] == of[y] for x, y in apart)


def agreed(*verdicts):
    said = {}
    for one in verdicts:
        for pair, verdict in one.items():
            if verdict != "unsure":
                said.setdefault(pair, set()).add(verdict)
    return {pair: words.pop() for pair, words in said.items() if len(words) == 1}


def spanning(verdicts):
    """As few pairs as say the same: what is kept instead is all of them."""
    of, out = {}, {}
    for (x, y), verdict in verdicts.items():
        of.setdefault(x, x), of.setdefault(y, y)
        if verdict == "link" and of[x] != of[y]:
            out[x, y] = verdict
            of.update({r: of[x] for r in of if of[r] == of[y]})
    seen = set()
    for (x, y), verdict in verdicts.items():
        if verdict == "nonlink" and (key := frozenset((of[x], of[y]))) not in seen:
            seen.add(key)
            out[x, y] = verdict
    return out


def test_what_reviewers_agree_on_never_contradicts_itself():
    """Which would not be so if a verdict were kept as the fewest pairs that say it."""
    rng, ids, fewest = np.random.default_rng(2), list(range(5)), 0
    for _ in range(500):
        two = [verdicts_of(ids, partition(rng, 5, unsure=0)) for _ in range(2)]
        assert not any(contradictory(one, 5) for one in two)
        assert not contradictory(agreed(*two), 5)
        assert not any(contradictory(spanning(one), 5) for one in two)
        fewest += contradictory(agreed(*map(spanning, two)), 5)
    assert fewest > 50


# --- the desk ---------------------------------------------------------------------------------


def largest(desk):
    """The case of most records."""
    return max(map(str, range(1, desk.material.cases.n_worth + 1)),
               key=lambda key: len(desk.material.records_of(key)))  # fmt: skip


def judge(desk, key, people, reviewer="Anna"):
    desk.judge(key, desk.material.version(key), reviewer, people)


def test_a_case_shows_values_and_no_probability(desk):
    key = desk.next("open", "Anna")
    case = desk.case(key, "Anna")
    assert [f["name"][0][1] for f in case["fields"]] == ["gname", "fname", "dob"]
    records = desk.material.records_of(key)
    assert [r["id"] for r in case["records"]] == [[("same", desk.material.ids[r])] for r in records]
    assert case["verdicts"] is None
    assert case["found"] == numbered([str(desk.material.structure.cluster[r]) for r in records])
    text = json.dumps(case)
    assert "probability" not in text
    assert "membership" not in text
    doubt = desk.evidence(key)["records"]
    for x, (record, one) in enumerate(zip(records, doubt, strict=True)):
        assert one["membership"] == desk.material.structure.membership[record]
        for other in one["with"]:
            assert other["probability"] == desk.material.probability(
                record, records[other["place"]]
            )
            assert other["place"] != x


def test_confirm_part_join_and_undo(desk):
    key = largest(desk)
    ids = [desk.material.ids[r] for r in desk.material.records_of(key)]
    n, found = len(ids), desk.case(key, "Anna")["found"]
    assert n >= 4
    for people in (
        found,
        ["1"] * n,
        ["2", "1", *["1"] * (n - 2)],
        [OPEN, "1", "1", *"2" * (n - 3)],
    ):
        judge(desk, key, people)
        assert desk.case(key, "Anna")["verdicts"] == numbered(people)
        said = {(one.id_a, one.id_b): one.verdict for one in desk.judgements.current()}
        assert said == verdicts_of(ids, people)
        assert all(a < b for a, b in said)
    assert desk.state("Anna")["judged"] == 1
    assert desk.state("Anna")["errors_left"] < desk.state("Anna")["errors"]
    assert desk.undo("Anna") == key
    assert desk.case(key, "Anna")["verdicts"] is None or desk.undo("Anna") == key


def test_reviewers_who_disagree(desk):
    key = largest(desk)
    n = len(desk.material.records_of(key))
    judge(desk, key, ["1"] * n)
    judge(desk, key, ["1"] * (n - 1) + ["2"], "Ben")
    assert desk.disputed(key) == [True] * n
    assert desk.next("disagreements", "Anna") == key
    assert desk.evidence(key)["said"] == {"Anna": ["1"] * n, "Ben": ["1"] * (n - 1) + ["2"]}
    labels = bl.read_labels(desk.material.folder)
    known, remarks = known_pairs(desk.material.folder, people=True)
    assert list(labels.values()).count("disputed") == n - 1
    assert len(known) == (n - 1) * (n - 2) // 2
    assert "disagree" in remarks[0]


def test_what_is_refused(desk):
    key = largest(desk)
    n = len(desk.material.records_of(key))
    for people in (["1"] * (n - 1), ["1"] * (n - 1) + [""], ["x" * 13] * n):
        with pytest.raises(SettingsError, match="one person"):
            judge(desk, key, people)
    with pytest.raises(SettingsError, match="has changed"):
        desk.judge(key, "other", "Anna", ["1"] * n)
    with pytest.raises(SettingsError, match="whole number"):
        desk.draw_sample(0)
    assert desk.judgements.current() == []


def test_a_column_that_was_not_compared(made):
    material = people_material_of(bl.open_run(made), ["postcode", "dob"])
    assert [*material.further] == ["postcode"]
    assert {*material.values([0])[0]} == {"gname", "fname", "dob", "postcode"}
    with pytest.raises(InputError, match="no column 'nothing'"):
        people_material_of(bl.open_run(made), ["nothing"])


def test_without_the_records_there_is_nothing_to_see(run):
    (run.parent / "data" / "a.csv").unlink()
    assert people_material_of(bl.open_run(run)).values([0])  # as they are saved in the run
    (run / "with_entities.parquet").unlink()
    with pytest.raises(InputError, match="--a"):
        people_material_of(bl.open_run(run))


# --- the loop ---------------------------------------------------------------------------------


def called(*words):
    done = CliRunner().invoke(main, [*map(str, words)])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_verdicts_hold_when_people_are_found_again(desk, tmp_path):
    """Against what the run found: its largest case as one person, another apart."""
    first, *others = sorted(
        map(str, range(1, desk.material.cases.n_worth + 1)),
        key=lambda key: -len(desk.material.records_of(key)),
    )
    joined = [desk.material.ids[r] for r in desk.material.records_of(first)]
    judge(desk, first, ["1"] * len(joined))
    apart = next(key for key in others if len(set(desk.case(key, "Anna")["found"])) == 1)
    parted = [desk.material.ids[r] for r in desk.material.records_of(apart)]
    judge(desk, apart, numbered(parted))
    run = desk.material.folder
    bl.export_labels(run, tmp_path / "labels.csv")
    config = ("dedupe", "--config", run / "dedupe.toml", "-q")
    for labels, name in ((run, "again"), (tmp_path / "labels.csv", "exported")):
        called(*config, "--labels", labels, "-o", tmp_path / name)
        again = bl.open_run(tmp_path / name)
        who = dict(zip(*(again.as_table("clusters")[c].to_pylist() for c in ("id", "entity_id")),
                       strict=True))  # fmt: skip
        assert len({who[name] for name in joined}) == 1
        assert len({who[name] for name in parted}) == len(parted)
        assert bl.read_labels(tmp_path / name) == bl.read_labels(run)  # kept with the new run
    # What is known to the new run is no doubt of it.
    material = people_material_of(bl.open_run(tmp_path / "again"))
    for x, y in itertools.combinations(parted, 2):
        assert material.probability(*material.row_of([x, y])) == 0
    frame = bl.dedupe(run.parent / "data" / "a.csv", FIELDS, labels=str(run), **HOW)
    assert frame.as_table("clusters").equals(again.as_table("clusters"))


def test_which_id_of_a_pair_is_first_does_not_matter(made, tmp_path):
    labels = pa.table({"id_a": ["2", "1", "5"], "id_b": ["1", "3", "4"],
                       "verdict": ["link", "link", "nonlink"]})  # fmt: skip
    known, _ = known_pairs(labels, people=True)
    rows = [tuple(row.values()) for row in known.to_pylist()]
    assert rows == [("1", "2", "link"), ("1", "3", "link"), ("4", "5", "nonlink")]
    both = pa.table({"id_a": ["2", "1", "8"], "id_b": ["1", "2", "9"],
                     "verdict": ["link", "nonlink", "link"]})  # fmt: skip
    known, remarks = known_pairs(both, people=True)
    assert len(known) == 1
    assert "1 pairs on which reviewers disagree" in remarks[0]


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    """Two files with duplicates in the second only."""
    folder = tmp_path_factory.mktemp("several")
    made = bl.simulate_duplicates(260, seed=6, sizes=(0.3, 0.4, 0.3), errors=4)
    records = made.a.to_pandas().merge(made.truth.to_pandas(), on="id")
    first = ~records.duplicated("entity_id")
    (folder / "data").mkdir()
    for name, part in (("one", records[first]), ("two", records[~first])):
        part.drop(columns="entity_id").to_csv(folder / "data" / f"{name}.csv", index=False)
    files = {name: folder / "data" / f"{name}.csv" for name in ("one", "two")}
    bl.link_many(files, FIELDS, duplicates="two", **HOW).save(folder / "run")
    return folder / "run"


def test_several_files(several, tmp_path):
    run = copied(several, tmp_path)
    with (
        Judgements(run / FILE) as judgements,
        closing(PeopleDesk(people_material_of(bl.open_run(run)), judgements)) as desk,
    ):
        material = desk.material
        keys = list(map(str, range(1, material.cases.n_worth + 1)))
        of = {key: [material.files[r] for r in material.records_of(key)] for key in keys}
        key = next(key for key in keys if of[key].count("one") > 1)
        n = len(of[key])
        with pytest.raises(SettingsError, match="records of one one person"):
            judge(desk, key, ["1"] * n)
        seen = desk.case(key, "Anna")["records"]
        assert [r["file"] for r in seen] == [[("same", name)] for name in of[key]]
        judge(desk, key, [str(k) for k in range(n)])
        mixed = next(k for k in keys if of[k].count("one") == 1 and k != key)
        judge(desk, mixed, ["1"] * len(of[mixed]))
        assert desk.case(key, "Anna")["verdicts"] == [str(k + 1) for k in range(n)]
        together = [material.ids[r] for r in material.records_of(mixed)]
        assert all(":" in one.id_a for one in judgements.current())
    called("link-many", "--config", run / "link-many.toml", "--labels", run,
           "-o", tmp_path / "new", "-q")  # fmt: skip
    new = people_material_of(bl.open_run(tmp_path / "new"))
    assert len({new.structure.cluster[r] for r in new.row_of(together)}) == 1


# --- the server -------------------------------------------------------------------------------


@pytest.mark.full
def test_two_hundred_cases_are_judged_over_the_server(tmp_path):
    """As the page does it: ask for the next case, see it, say who is who."""
    run = saved(tmp_path, 1900)
    server = Server(run)

    def tell(path, **body):
        answer = server.ask(path, method="POST", body=json.dumps({"reviewer": "Eve", **body}))
        assert answer.status == 200, answer.text
        return json.loads(answer.text)

    expected, key = {}, None
    for turn in range(200):
        after = "" if key is None else f"&after={key}"
        key = server.json(f"/api/next?queue=open&reviewer=Eve{after}")["case"]
        case = server.json(f"/api/case/{key}?reviewer=Eve")
        n = len(case["records"])
        people = [
            case["found"],
            ["1"] * n,
            ["2", *["1"] * (n - 1)],
            [OPEN, *["1"] * (n - 1)],
        ][turn % 4]
        tell("/api/judge", case=key, version=case["version"], verdicts=people)
        if turn % 50 == 49:  # taken back, and said again
            assert tell("/api/undo")["case"] == key
            tell("/api/judge", case=key, version=case["version"], verdicts=people)
        ids = ["".join(text for _, text in record["id"]) for record in case["records"]]
        expected |= verdicts_of(ids, people)
    state = server.json("/api/state?reviewer=Eve")
    assert state["people"] is True
    assert state["judged"] == 200
    overview = server.json("/api/overview?reviewer=Eve")
    assert "bayeslink dedupe --config" in overview["rerun"]["command"]
    tell("/api/sample", size=5)
    assert 1 <= server.json("/api/state?reviewer=Eve")["queues"]["sample"] <= 11  # strata
    out, err = server.end()
    assert "review.sqlite" in out + err
    assert bl.read_labels(run) == expected
    for line in err.splitlines():  # the method and the status, and nothing of the records
        assert len(line.split()) < 4 or "Judgements" in line or "review" in line


@pytest.mark.parametrize("kind", ["made", "several"])
def test_people_are_found_again_from_the_page(kind, request, tmp_path):
    run = copied(request.getfixturevalue(kind), tmp_path)
    with (
        Judgements(run / FILE) as judgements,
        closing(PeopleDesk(people_material_of(bl.open_run(run)), judgements)) as desk,
    ):
        key = largest(desk)
        ids = [desk.material.ids[r] for r in desk.material.records_of(key)]
        judge(desk, key, numbered(ids))  # all of them are different people
    rerun = Rerun(bl.open_run(run))
    command = "dedupe" if kind == "made" else "link-many"
    words = f"bayeslink {command} --config {run}/{command}.toml --labels {run} -o {run}-reviewed"
    assert rerun.state()["command"] == words
    rerun.start()
    while rerun.state()["status"] == "running":
        time.sleep(0.05)
    assert rerun.state()["status"] == "done", rerun.state()["words"]
    assert "run-reviewed" in rerun.state()["words"]
    new = people_material_of(bl.open_run(tmp_path / "run-reviewed"))
    assert len({new.structure.cluster[r] for r in new.row_of(ids)}) == len(ids)
    said = rerun.state()["words"]
    assert not any(name in said for name in ids)


def test_what_the_command_says(made):
    for words, said in (
        (("--plan", "--of", "links"), "people, precision or recall"),
        (("--b", str(made / "clusters.csv")), "no input B"),
        (("--draw", "0"), "whole number from 1"),
    ):
        done = CliRunner().invoke(main, ["review", str(made), *words])
        assert done.exit_code == 2, done.output
        assert said in " ".join(done.stderr.split())


def test_a_random_sample_is_a_queue_of_its_own(desk):
    desk.draw_sample(30)
    drawn = desk.overview("Anna")["sample"]["drawn"]
    assert drawn == 30
    truth = {}
    while (key := desk.next("sample", "Anna")) is not None:
        assert desk.overview("Anna")["sample"]["left"]
        truth[key] = desk.case(key, "Anna", "sample")["found"]
        judge(desk, key, truth[key])  # the run is right
    assert any(key.startswith("drawn-") for key in truth)
    for key in truth:
        assert desk.case(key, "Anna")["verdicts"] == truth[key]
    summary = desk.overview("Anna")["sample"]
    assert summary["left"] == 0
    assert "to 1.0000\npeople" in summary["quality"]
    assert desk.state("Anna")["queues"]["sample"] == 0
    for key in ("drawn-0", "drawn-01", "drawn-x", "drawn-99999"):
        with pytest.raises(UnknownCaseError):
            desk.case(key, "Anna")


def test_the_page_in_python(run):
    with bl.open_run(run).review(browser=False) as page:
        assert page.folder == run
        assert "127.0.0.1" in page.address
