"""Clerical review: cases and their value, what is shown, and what is stored."""

import itertools
import json
import re
import shutil
import subprocess
import sys
from contextlib import closing
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bayeslink as bl
from bayeslink.errors import InputError, SettingsError
from bayeslink.judging.judgements import FILE, Judgements
from bayeslink.review.case_view import evidence, in_order, screen
from bayeslink.review.cases import FLOOR, MOST, WORTH, find_cases
from bayeslink.review.material import material_of
from bayeslink.review.queues import Desk, UnknownCaseError, agreement
from bayeslink.runs.differences import LONGEST, compared, same, usual_writing, visible
from tests.served import FIELDS


@pytest.fixture
def desk(run):
    with (
        Judgements(run / FILE) as judgements,
        closing(Desk(material_of(bl.open_run(run)), judgements)) as desk,
    ):
        yield desk


def tables(pairs, links=()):
    """Candidate and link tables from (a, b, probability) rows and linked (a, b) pairs."""
    a, b, p = zip(*pairs, strict=True) if pairs else ((), (), ())
    text = pa.string()
    candidates = pa.table(
        {
            "id_a": pa.array(a, text),
            "id_b": pa.array(b, text),
            "link_probability": np.array(p, float),
        }
    )
    decided = pa.table(
        {
            "id_a": pa.array([x for x, _ in links], text),
            "id_b": pa.array([y for _, y in links], text),
            "decision": pa.array(["link"] * len(links), text),
        }
    )
    return candidates, decided


# --- cases ------------------------------------------------------------------------------------


def test_every_candidate_from_the_floor_up_is_in_exactly_one_case(made):
    material = material_of(bl.open_run(made))
    cases, p = material.cases, material.candidates["link_probability"].to_numpy()
    listed = [row for case in range(len(cases)) for row in cases.pairs_of(case).tolist()]
    assert sorted(listed) == np.flatnonzero(p >= FLOOR).tolist()
    for case in range(len(cases)):
        assert set(cases.of_row[cases.pairs_of(case)]) == {case}
    block = material.candidates["block"].to_numpy()
    assert all(len(set(block[cases.pairs_of(case)])) == 1 for case in range(len(cases)))
    assert (np.diff(cases.value) <= 0).all()
    assert (cases.value[: cases.n_worth] >= WORTH).all()
    assert (cases.value[cases.n_worth :] < WORTH).all()


def test_rivals_are_in_one_case():
    pairs = [("a1", "b1", 0.5), ("a2", "b1", 0.4), ("a2", "b2", 0.3), ("a3", "b3", 0.99)]
    cases = find_cases(*tables([*pairs, ("a3", "b1", FLOOR / 2)], [("a3", "b3")]))
    assert cases.of_row.tolist() == [0, 0, 0, 1, -1]
    assert cases.value == pytest.approx([1.2, 0.01])
    assert cases.n_worth == 1


def test_a_known_link_is_no_candidate_and_a_review_is_no_link():
    candidates, links = tables([("a1", "b1", 0.9), ("a2", "b2", 0.8)], [("a9", "b1"), ("a1", "b1")])
    review = pa.table({"id_a": ["a2"], "id_b": ["b2"], "decision": ["review"]})
    cases = find_cases(candidates, pa.concat_tables([links, review]))
    assert cases.linked.tolist() == [True, False]
    assert cases.error == pytest.approx([0.1, 0.8])


def test_a_large_component_is_cut_at_its_weakest_pairs():
    n = 40
    chain = [(f"a{i}", f"b{j}", p) for i in range(n) for j, p in ((i, 0.6), (i + 1, 0.2 + i / 500))]
    cases = find_cases(*tables(chain))
    assert sorted(cases.rows.tolist()) == list(range(len(chain)))
    assert len(cases) >= 2 * n / MOST
    for case in range(len(cases)):
        inside = [chain[row] for row in cases.pairs_of(case)]
        assert len({b for _, b, _ in inside}) <= MOST
    first = next(i for i, x in enumerate(chain) if x[:2] == ("a38", "b38"))
    assert len(set(cases.of_row[first : first + 3])) == 1  # a38–b38, a38–b39, a39–b39
    total = sum(p for *_, p in chain)
    assert cases.value.sum() == pytest.approx(total)


def test_no_candidates_no_cases():
    cases = find_cases(*tables([]))
    assert len(cases) == cases.n_worth == 0
    assert len(find_cases(*tables([("a", "b", FLOOR / 2)]))) == 0


def test_the_value_is_the_expected_number_of_wrong_decisions():
    """Against every matching of a small problem, each with its probability."""
    a, b = ["a1", "a2", "a3"], ["b1", "b2"]
    all_pairs = list(itertools.product(a, b))
    matchings = [
        chosen
        for size in range(3)
        for chosen in itertools.combinations(all_pairs, size)
        if len({x for x, _ in chosen}) == len({y for _, y in chosen}) == size
    ]
    chances = np.random.default_rng(1).dirichlet(np.ones(len(matchings)))
    p = {x: sum(c for m, c in zip(matchings, chances, strict=True) if x in m) for x in all_pairs}
    decided = [("a1", "b1"), ("a3", "b2")]
    cases = find_cases(*tables([(*x, p[x]) for x in all_pairs], decided))
    assert len(cases) == 1
    wrong = [len(set(decided) ^ set(m)) for m in matchings]
    assert cases.value[0] == pytest.approx(np.dot(wrong, chances))


def test_the_value_agrees_with_the_draws(made):
    material, summary = material_of(bl.open_run(made)), json.loads((made / "run.json").read_text())
    assert summary["kept_every"] == 1
    chains, draws = summary["chains"], summary["draws"]
    linked = np.zeros((len(material.candidates), chains * draws), bool)
    for row in pq.read_table(made / "link_draws.parquet").to_pylist():
        offset = row["chain"] * draws
        linked[row["pair"], offset + row["first"] : offset + row["last"] + 1] = True
    cases = material.cases
    wrong = linked != cases.linked[:, None]
    for case in range(cases.n_worth):
        counted = wrong[cases.pairs_of(case)].sum(axis=0)
        error = counted.std() / np.sqrt(
            chains * draws / 10
        )  # draws of one chain are not independent
        assert cases.value[case] == pytest.approx(counted.mean(), abs=5 * error + 0.01)


# --- material ---------------------------------------------------------------------------------


def test_the_version_changes_with_a_value_and_only_there(made):
    material = material_of(bl.open_run(made))
    row = int(material.cases.pairs_of(0)[0])
    record = int(material.rows[1][row])
    names = material.records[1].columns["gname"].to_pylist()
    names[record] = "Somebody Else"
    columns = {**material.records[1].columns, "gname": pa.array(names, pa.large_string())}
    records = (material.records[0], replace(material.records[1], columns=columns))
    changed = replace(material, records=records, _versions={})
    keys = [str(case + 1) for case in range(len(material.cases))]
    differ = [key for key in keys if material.version(key) != changed.version(key)]
    assert differ == ["1"]
    assert material_of(bl.open_run(made)).version("1") == material.version("1")


def test_a_changed_file_is_refused(run):
    b = run.parent / "data" / "b.csv"
    material_of(bl.open_run(run))
    with b.open("a") as file:
        file.write(b.read_text().splitlines()[-1].replace("B0", "C0") + "\n")
    with pytest.raises(InputError, match=r"input B, .*b\.csv, has changed since the run read it"):
        material_of(bl.open_run(run))


def test_what_cannot_be_reviewed_says_why(tmp_path, made):
    files = bl.simulate(60, seed=1)
    options = {"draws": 20, "tune": 10, "chains": 2}
    bl.link(files.a, files.b, FIELDS, **options).save(tmp_path / "tables")
    with pytest.raises(InputError, match="came from Python"):
        material_of(bl.open_run(tmp_path / "tables"))
    data = made.parent / "data"
    bl.link(data / "a.csv", data / "b.csv", FIELDS, point=True).save(tmp_path / "point")
    with pytest.raises(InputError, match="without --point"):
        material_of(bl.open_run(tmp_path / "point"))
    with pytest.raises(InputError, match="bayeslink link -o"):
        material_of(bl.open_run(tmp_path))


def test_custom_fields_blocking_keys_and_further_columns_are_shown(tmp_path, made):
    data = made.parent / "data"
    fields = [
        bl.custom("gname", lambda x, y: 1 + 2 * (x == y), levels=3, m_prior=(1, 1, 2)),
        bl.levenshtein("fname"),
    ]
    run = bl.link(
        data / "a.csv", data / "b.csv", fields, block=["sex"], draws=50, tune=10, chains=2
    )
    run.save(tmp_path / "run")
    material = material_of(bl.open_run(tmp_path / "run"), ["dob", "occup=postcode", "fname"])
    assert [f.name for f in material.further] == ["sex", "dob", "occup"]
    shown = screen(material, "1")
    assert [f["compared"] for f in shown["fields"]] == [True, True, False, False, False]
    named = [f["columns"] and [words for ((_, words),) in f["columns"]] for f in shown["fields"]]
    assert named == [None, None, None, None, ["occup", "postcode"]]  # where they differ
    assert material_of(bl.open_run(tmp_path / "run")).version("1") == material.version("1")


def test_pairs_below_the_floor_are_cases_of_their_own(made):
    material = material_of(bl.open_run(made))
    row = int(np.flatnonzero(material.cases.of_row < 0)[0])
    key = material.key_of(row)
    assert material.pairs_of(key) == [row]
    assert material.find([material.ids(row), ("nobody", "B")]) == [row, None]
    inside = int(material.cases.rows[0])
    for wrong in ("", "0", "-1", "01", "x", "pair-", f"pair-{inside + 1}", "9" * 30, "１", "1 "):
        assert material.pairs_of(wrong) == [], wrong


# --- what is shown ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "other", "shown"),
    [
        ("Jonson", "Johnson", [("same", "Jo"), ("gap", ""), ("same", "nson")]),
        ("Johnson", "Jonson", [("same", "Jo"), ("other", "h"), ("same", "nson")]),
        ("SMITH", "Smith", [("same", "SMITH")]),
        ("Smith", "Jaworska", [("other", "Smith")]),
        ("Jose\u0301", "José", [("same", "Jose\u0301")]),
        ("Jose", "José", [("same", "Jos"), ("other", "e")]),
        (
            "An\u200bna",
            "Anna",
            [("same", "An"), ("label", "U+200B zero width space"), ("same", "na")],
        ),
        (
            "\u202eanna",
            "anna",
            [("label", "U+202E right-to-left override"), ("same", "anna")],
        ),
        ("\u0410nna", "Anna", [("other", "\u0410"), ("label", "Cyrillic"), ("same", "nna")]),
        (" Anna", "Anna", [("label", "space"), ("same", "Anna")]),
        ("Anna  B", "Anna B", [("same", "Anna "), ("label", "space"), ("same", "B")]),
        ("a\u0301\u0301\u0301\u0301b", "ab", None),
    ],
)  # fmt: skip
def test_differences_are_marked_to_the_character(text, other, shown):
    steps = ("unicode", "case", "space")
    found = compared(text, other, steps)
    if shown is not None:
        assert found == shown
    plain = "".join(part for kind, part in found if kind in ("same", "other"))
    assert all(c.isprintable() for c in plain)
    assert same(text, other, steps) == (found == [("same", text)])
    assert same(text, text, steps)


def test_of_dates_in_other_orders_the_part_that_differs_is_marked():
    found = compared("16.02.1967", "1968-02-16", ("unicode",))
    assert [part for kind, part in found if kind == "other"] == ["1967"]
    assert "".join(part for _, part in found) == "16.02.1967"
    assert {kind for kind, _ in compared("6.2.1968", "1968-02-06", ())} == {"same"}
    found = compared("02.02.1968", "1968-02-16", ())  # a month once is no day
    assert [part for kind, part in found if kind == "other"] == ["02"]


def test_nothing_invisible_reaches_the_page():
    hidden = "\x00\x07\t\n\u00a0\u00ad\u034f\u061c\u115f\u200b\u200d\u200e\u2028\u2066\u2800"
    for c in [
        *hidden,
        "\u3164",
        "\ufe0f",
        "\ufeff",
        "\U000e0041",
        "\U000e0101",
        "\ue000",
        "\ud800",
    ]:
        found = visible(f"x{c}y")
        assert [kind for kind, _ in found] == ["same", "label", "same"], hex(ord(c))
        assert found[1][1].startswith(f"U+{ord(c):04X}")


def test_writing_and_long_values():
    assert usual_writing(["Анна", "Anna", "Иван"]) == "CYRILLIC"
    assert usual_writing(["123"]) == "LATIN"
    assert visible("Анна", "CYRILLIC") == [("same", "Анна")]
    assert visible("日本のカナ", usual_writing(["日本のカナ"])) == [("same", "日本のカナ")]
    found = visible("x" * (LONGEST + 1234))
    assert found == [("same", "x" * LONGEST), ("label", "1,234 more characters")]


def test_a_case_gives_nothing_away_until_asked(made):
    material = material_of(bl.open_run(made))
    shown = json.dumps(screen(material, "1"))
    assert not re.search(r"0\.\d|probab|bits|linked|weight", shown)
    p = material.candidates["link_probability"].to_numpy()
    orders = [
        np.argsort(-p[in_order(material, str(case + 1))])
        for case in range(len(material.cases))
        if len(material.cases.pairs_of(case)) > 1
    ]
    assert {int(order[0]) for order in orders} >= {0, 1}  # the likeliest is not always first
    told = evidence(material, "1")
    rows = in_order(material, "1")
    assert [x["probability"] for x in told] == p[rows].tolist()


def test_the_evidence_adds_up(made):
    """The weights of the fields, and what they say together, are the weight of the pair."""
    material = material_of(bl.open_run(made))
    told = [x for case in range(20) for x in evidence(material, str(case + 1))]
    sums = [sum(bits for _, bits in x["fields"]) + x["together"] for x in told]
    assert sums == pytest.approx([x["bits"] for x in told], abs=0.005)
    assert any(x["together"] for x in told)  # fields depend on each other


def test_equal_dates_and_fillers_are_not_marked_however_they_are_written(made, tmp_path):
    data = shutil.copytree(made.parent / "data", tmp_path / "data")
    text = (data / "b.csv").read_text("utf-8")
    turned = re.sub(r"(\d{4})-(\d\d)-(\d\d)", r"\3.\2.\1", text)
    (data / "b.csv").write_text(re.sub(",[mf],", ",x,", turned), "utf-8")
    fields = [bl.levenshtein("fname"), bl.date("dob"), bl.exact("sex", missing=["x"])]
    run = bl.link(data / "a.csv", data / "b.csv", fields, draws=50, tune=10, chains=2)
    run.save(tmp_path / "run")
    material = material_of(bl.open_run(tmp_path / "run"))
    likes = {"dob": set(), "sex": set()}
    for case in range(min(30, len(material.cases.value))):
        for group in screen(material, str(case + 1))["groups"]:
            for pair in group["pairs"]:
                for place, name in ((1, "dob"), (2, "sex")):
                    cell = pair["cells"][place]
                    likes[name].add(cell["like"])
                    marked = {kind for kind, _ in cell["text"] or []} - {"same"}
                    assert not (marked and cell["like"] != "other")
    assert "same" in likes["dob"]
    assert likes["sex"] == {"missing"}  # what was said to mean missing differs from nothing


def test_a_case_shows_each_pair_once_and_missing_values_as_such(made):
    material = material_of(bl.open_run(made))
    missing = 0
    for case in range(30):
        key = str(case + 1)
        shown = screen(material, key)
        rows = in_order(material, key)
        listed = [pair for group in shown["groups"] for pair in group["pairs"]]
        assert [pair["place"] for pair in listed] == list(range(len(rows)))  # in reading order
        for pair in listed:
            row = rows[pair["place"]]
            assert list(pair["records"]) == [int(material.rows[side][row]) for side in (0, 1)]
        cells = [cell for group in shown["groups"] for cell in group["cells"]]
        missing += sum(cell["text"] is None for cell in cells)
    assert missing > 0


# --- judging ----------------------------------------------------------------------------------


def judge_all(desk, key, reviewer, verdict="nonlink"):
    n = len(desk.material.pairs_of(key))
    desk.judge(key, desk.material.version(key), reviewer, [verdict] * n)


def test_the_queue_goes_down_in_value_and_comes_back_to_what_was_skipped(desk):
    assert desk.next("open", "Anna") == "1"
    assert desk.next("open", "Anna", "1") == "2"
    judge_all(desk, "2", "Anna")
    assert desk.next("open", "Anna", "2") == "3"
    assert desk.next("open", "Anna") == "1"
    last = str(desk.material.cases.n_worth)
    assert desk.next("open", "Anna", last) == "1"
    with pytest.raises(SettingsError, match="unknown queue"):
        desk.next("other", "Anna")


def test_two_reviewers_are_not_given_the_same_case(desk):
    assert desk.next("open", "Anna") == "1"
    assert desk.next("open", "Ben") == "2"
    assert desk.next("open", "Anna") == "1"
    judge_all(desk, "1", "Anna")
    assert desk.next("second", "Anna") is None
    assert desk.next("second", "Ben") == "1"


def test_progress_counts_what_is_settled(desk):
    cases = desk.material.cases
    before = desk.state("Anna")
    assert (
        before["errors_left"]
        == before["errors"]
        == pytest.approx(cases.value[: before["worth"]].sum())
    )
    judge_all(desk, "1", "Anna")
    judge_all(desk, "2", "Anna", "unsure")
    after = desk.state("Anna")
    assert after["judged"] == 2
    assert after["errors_left"] == pytest.approx(before["errors"] - cases.value[0])
    assert desk.overview("Anna")["mine"] == ["2", "1"]
    assert desk.undo("Anna") == "2"
    assert desk.undo("Anna") == "1"
    assert desk.undo("Anna") is None
    assert desk.state("Anna") == before


def test_a_judgement_must_be_of_what_was_seen_and_one_to_one(desk):
    material = desk.material
    key = next(k for k in map(str, range(1, 50)) if len(material.pairs_of(k)) > 1)
    version, n = material.version(key), len(material.pairs_of(key))
    with pytest.raises(SettingsError, match="changed"):
        desk.judge(key, "another", "Anna", ["link"] * n)
    with pytest.raises(SettingsError, match="each pair"):
        desk.judge(key, version, "Anna", ["link"])
    with pytest.raises(SettingsError, match="share a record"):
        desk.judge(key, version, "Anna", ["link"] * n)
    with pytest.raises(SettingsError, match="unknown verdict"):
        desk.judge(key, version, "Anna", ["perhaps"] * n)
    with pytest.raises(UnknownCaseError):
        desk.judge("0", version, "Anna", ["link"])
    assert desk.judgements.current() == []


def test_a_record_is_linked_once_over_all_cases(desk):
    a, b = desk.material.ids(int(desk.material.cases.rows[0]))
    desk.judgements.add(case="x", version="y", reviewer="Anna", verdicts={(a, "elsewhere"): "link"})
    rows = in_order(desk.material, "1")
    verdicts = ["link" if desk.material.ids(row) == (a, b) else "nonlink" for row in rows]
    with pytest.raises(SettingsError, match="record of A to another"):
        desk.judge("1", desk.material.version("1"), "Anna", verdicts)
    desk.judge("1", desk.material.version("1"), "Ben", verdicts)


def test_what_another_process_stores_is_seen_at_once(desk, run):
    assert desk.state("Anna")["judged"] == 0
    code = (
        "import sys; from bayeslink.judging.judgements import Judgements\n"
        "case, version, *ids = sys.argv[2:]\n"
        "Judgements(sys.argv[1]).add(case=case, version=version, reviewer='Ben',\n"
        "    verdicts={(a, b): 'unsure' for a, b in zip(ids[::2], ids[1::2])})"
    )
    ids = [name for row in desk.material.pairs_of("1") for name in desk.material.ids(row)]
    command = [sys.executable, "-W", "ignore", "-c", code, run / FILE, "1"]
    subprocess.run([*command, desk.material.version("1"), *ids], check=True)
    assert desk.state("Anna")["judged"] == 1
    assert desk.next("second", "Anna") == "1"


def test_judgements_of_another_version_do_not_count(desk):
    pairs = [desk.material.ids(row) for row in desk.material.pairs_of("1")]
    verdicts = dict.fromkeys(pairs, "nonlink")
    desk.judgements.add(case="1", version="before", reviewer="Anna", verdicts=verdicts)
    assert desk.state("Anna")["judged"] == 0
    assert desk.next("open", "Anna") == "1"
    assert desk.case("1", "Anna")["verdicts"] == [None] * len(pairs)


def test_disagreements_are_listed_until_they_are_settled(desk):
    judge_all(desk, "3", "Anna")
    rows = in_order(desk.material, "3")
    ben = ["link", *["nonlink"] * (len(rows) - 1)]
    desk.judge("3", desk.material.version("3"), "Ben", ben)
    (found,) = desk.overview("Anna")["disagreements"]
    assert (found["case"], found["said"]) == ("3", {"Anna": "nonlink", "Ben": "link"})
    assert desk.next("disagreements", "Anna") == "3"
    assert desk.evidence("3")[0]["said"] == {"Anna": "nonlink", "Ben": "link"}
    assert desk.case("3", "Ben")["verdicts"] == ben
    judge_all(desk, "3", "Ben")
    assert desk.next("disagreements", "Anna") is None


def test_agreement_is_cohens():
    """Twenty link by both, 15 by neither, 5 and 10 by one: κ = 0.4 in any textbook."""
    said, number = {}, itertools.count()
    for n, x, y in ((20, "link", "link"), (15, "nonlink", "nonlink"), (5, "link", "nonlink"),
                    (10, "nonlink", "link"), (7, "unsure", "link")):  # fmt: skip
        for _ in range(n):
            said[str(next(number)), "b"] = {"Anna": x, "Ben": y}
    (found,) = agreement(said)
    assert found["pairs"] == 50
    assert found["share"] == pytest.approx(0.7)
    assert found["kappa"] == pytest.approx(0.4)
    assert agreement({("a", "b"): {"Anna": "link", "Ben": "link"}})[0]["kappa"] is None
    assert agreement({("a", "b"): {"Anna": "link"}}) == []


def test_a_random_sample_is_a_queue_of_its_own(desk):
    assert desk.next("sample", "Anna") is None
    assert desk.overview("Anna")["sample"] is None
    desk.draw_sample(40)
    sample = desk.judgements.sample()
    keys = [desk.material.key_of(row) for row in desk.material.find(sample.pairs)]
    assert desk.state("Anna")["queues"]["sample"] == len(set(keys))
    assert desk.next("sample", "Anna") == keys[0]
    judge_all(desk, keys[0], "Anna", "nonlink")
    assert desk.next("sample", "Anna") == next(k for k in keys if k != keys[0])
    found = desk.overview("Anna")["sample"]
    assert found["drawn"] == len(sample.pairs)
    assert 0 < found["left"] < found["drawn"]
    assert found["quality"] == ""  # what is judged first need not be typical
    while (key := desk.next("sample", "Anna")) is not None:
        judge_all(desk, key, "Anna", "nonlink")
    found = desk.overview("Anna")["sample"]
    assert found["left"] == 0
    assert "precision" in found["quality"]
