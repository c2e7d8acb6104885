"""Judgements: what stands, what is kept, and that no crash or second writer loses any."""

import os
import sqlite3
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from bayeslink.errors import InputError, OutputError, SettingsError
from bayeslink.judging.judgements import Judgements, Sample, Stratum, conflicting

AB, AC, BC = ("a", "b"), ("a", "c"), ("b", "c")


@pytest.fixture
def file(tmp_path):
    return tmp_path / "review.sqlite"


@pytest.fixture
def judgements(file):
    with Judgements(file) as opened:
        yield opened


def judge(judgements, case, *, version="1", reviewer="x", **verdicts):
    """Verdicts by pair, as ab="link"."""
    judgements.add(
        case=case,
        version=version,
        reviewer=reviewer,
        verdicts={tuple(pair): verdict for pair, verdict in verdicts.items()},
    )


def standing(judgements):
    return {(one.reviewer, one.id_a + one.id_b): one.verdict for one in judgements.current()}


# --- what stands ------------------------------------------------------------------------------


def test_a_judgement_comes_back_whole(judgements):
    judge(judgements, "case 7", version="v", reviewer="Ann", ab="link", ac="unsure")
    one, two = judgements.current()
    assert (one.id_a, one.id_b, one.verdict) == (*AB, "link")
    assert (two.id_a, two.id_b, two.verdict) == (*AC, "unsure")
    assert (one.reviewer, one.case, one.version) == ("Ann", "case 7", "v")
    at = datetime.fromisoformat(one.at)
    assert at.utcoffset() == timedelta(0)
    assert abs(datetime.now(UTC) - at) < timedelta(minutes=1)
    assert judgements.cases() == [("case 7", "v", "Ann")]


def test_judging_again_takes_the_place_of_all_that_was_said_of_the_case(judgements):
    judge(judgements, "1", ab="link", ac="nonlink")
    judge(judgements, "2", bc="nonlink")
    judge(judgements, "1", ab="unsure")
    assert standing(judgements) == {("x", "bc"): "nonlink", ("x", "ab"): "unsure"}
    assert judgements.cases() == [("2", "1", "x"), ("1", "1", "x")]


def test_a_new_version_of_a_case_leaves_pairs_that_it_lacks(judgements):
    judge(judgements, "1", ab="link", ac="nonlink")
    judge(judgements, "1", version="2", ab="nonlink", bc="link")
    assert standing(judgements) == {
        ("x", "ac"): "nonlink",
        ("x", "ab"): "nonlink",
        ("x", "bc"): "link",
    }


def test_a_pair_judged_in_two_cases_has_the_later_verdict(judgements):
    judge(judgements, "block", ab="link")
    judge(judgements, "sample", ab="nonlink")
    assert standing(judgements) == {("x", "ab"): "nonlink"}
    assert len(judgements.cases()) == 2


def test_reviewers_do_not_touch_each_others_verdicts(judgements):
    judge(judgements, "1", reviewer="x", ab="link")
    judge(judgements, "1", reviewer="y", ab="nonlink")
    judge(judgements, "2", reviewer="y", ac="link")
    of_y = {("y", "ab"): "nonlink", ("y", "ac"): "link"}
    assert standing(judgements) == {("x", "ab"): "link", **of_y}
    assert judgements.undo("x") == "1"
    assert standing(judgements) == of_y
    assert judgements.cases() == [("1", "1", "y"), ("2", "1", "y")]


def test_undo_goes_back_one_case_at_a_time_to_what_was_said_before(judgements):
    judge(judgements, "1", ab="link", ac="nonlink")
    judge(judgements, "2", bc="nonlink")
    judge(judgements, "1", ab="unsure")
    assert judgements.undo("x") == "1"
    assert standing(judgements) == {
        ("x", "ab"): "link",
        ("x", "ac"): "nonlink",
        ("x", "bc"): "nonlink",
    }
    assert judgements.undo("x") == "2"
    judge(judgements, "3", bc="link")
    assert standing(judgements)["x", "bc"] == "link"
    assert [judgements.undo("x") for _ in range(3)] == ["3", "1", None]
    assert judgements.current() == [] == judgements.cases()


def test_nothing_is_ever_overwritten(judgements, file):
    judge(judgements, "1", ab="link")
    judge(judgements, "1", ab="nonlink")
    judgements.undo("x")
    with sqlite3.connect(file) as db:
        assert [v for (v,) in db.execute("SELECT verdict FROM verdict ORDER BY entry")] == [
            "link",
            "nonlink",
        ]
        assert db.execute("SELECT id, undoes FROM entry").fetchall() == [
            (1, None),
            (2, None),
            (3, 2),
        ]
    db.close()


def test_agreement_disagreement_and_conflict(judgements):
    judge(judgements, "1", reviewer="x", ab="link", ac="nonlink", bc="unsure")
    judge(judgements, "1", reviewer="y", ab="unsure", ac="nonlink", bc="unsure", ad="link")
    assert judgements.disagreements() == []
    assert judgements.agreed() == ([AB, ("a", "d")], [AC])
    assert judgements.conflicts() == [AB, ("a", "d")]
    judge(judgements, "2", reviewer="z", ab="nonlink")
    assert judgements.disagreements() == [AB]
    assert judgements.agreed() == ([("a", "d")], [AC])
    assert judgements.conflicts() == []


def test_conflicting_links_share_a_record_on_the_same_side():
    assert conflicting([("1", "2"), ("2", "1"), ("3", "3"), ("3", "3")]) == []
    assert conflicting([("1", "5"), ("2", "5"), ("3", "3")]) == [("1", "5"), ("2", "5")]


@pytest.mark.parametrize(
    "wrong",
    [
        {"verdicts": {AB: "link", AC: "maybe"}},
        {"verdicts": {}},
        {"verdicts": {AB: "link"}, "reviewer": ""},
    ],
)
def test_wrong_judgements_are_refused_whole(judgements, wrong):
    with pytest.raises(SettingsError):
        judgements.add(**{"case": "1", "version": "1", "reviewer": "x", **wrong})
    assert judgements.current() == []


def test_a_case_is_stored_whole_or_not_at_all(judgements):
    """The second pair breaks a constraint when the first is already written."""
    verdicts = {AB: "link", (None, "c"): "link"}
    with pytest.raises(OutputError, match="NOT NULL"):
        judgements.add(case="1", version="1", reviewer="x", verdicts=verdicts)
    assert judgements.current() == [] == judgements.cases()
    judge(judgements, "2", ab="link")
    assert standing(judgements) == {("x", "ab"): "link"}


def test_any_text_is_safe(judgements):
    hostile = "'); DROP TABLE entry; --\u202e<script>\n💥"
    judgements.add(
        case=hostile, version=hostile, reviewer=hostile, verdicts={(hostile, hostile): "link"}
    )
    (one,) = judgements.current()
    assert {one.id_a, one.id_b, one.reviewer, one.case, one.version} == {hostile}
    assert judgements.undo(hostile) == hostile


# --- the sample -------------------------------------------------------------------------------


def test_the_latest_sample_comes_back_as_it_was(judgements, file):
    assert judgements.sample() is None
    strata = (Stratum("links", True, 40, 39.25), Stratum("others", False, 10**9, 0.125))
    first = Sample("run 1", 3, strata, (AB, AC, BC), (1, 0, 1))
    judgements.set_sample(first)
    assert judgements.sample() == first
    second = Sample("run 2", 4, strata[:1], (BC,), (0,))
    with Judgements(file) as other:
        other.set_sample(second)
    assert judgements.sample() == second


# --- the file ---------------------------------------------------------------------------------


def test_judgements_are_there_for_who_comes_next(judgements, file):
    judge(judgements, "1", ab="link")
    with Judgements(file) as other:
        assert other.current() == judgements.current()
        judge(other, "2", ac="nonlink")
    assert len(judgements.current()) == 2


def test_other_files_are_refused_and_left_alone(tmp_path):
    text, database = tmp_path / "notes.txt", tmp_path / "other.sqlite"
    text.write_text("nothing like a database, and longer than its header would be" * 3)
    with sqlite3.connect(database) as db:
        db.execute("CREATE TABLE t (x)")
    db.close()
    for path in (text, database):
        before = path.read_bytes()
        with pytest.raises(InputError, match="cannot use"):
            Judgements(path)
        assert path.read_bytes() == before
    with pytest.raises(InputError, match="unable to open"):
        Judgements(tmp_path / "absent" / "review.sqlite")


def test_a_newer_file_is_refused(judgements, file):
    judgements.close()
    with sqlite3.connect(file) as db:
        db.execute("PRAGMA user_version = 2")
    db.close()
    with pytest.raises(InputError, match="newer bayeslink"):
        Judgements(file)


def test_threads_share_one_object_and_one_file(judgements, file):
    """40 writers at once, half through one connection: all is there, undo never takes one twice."""

    def write(number):
        reviewer = f"r{number % 4}"
        if number % 2:
            with Judgements(file) as own:
                judge(own, str(number), reviewer=reviewer, ab="link")
        else:
            judge(judgements, str(number), reviewer=reviewer, ab="nonlink")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(40)))
        assert {case for case, *_ in judgements.cases()} == {str(k) for k in range(40)}
        undone = list(pool.map(lambda _: judgements.undo("r1"), range(12)))
    assert sorted(filter(None, undone)) == sorted(str(k) for k in range(1, 40, 4))
    assert undone.count(None) == 2


WRITER = """
    import sys
    from bayeslink.judging.judgements import Judgements
    judgements, name = Judgements(sys.argv[1]), sys.argv[2]
    for k in range(10_000):
        pairs = {(f"{k}", f"{j}"): "nonlink" for j in range(50)}
        judgements.add(case=str(k), version="1", reviewer=name, verdicts=pairs)
        print(k, flush=True)
"""


def test_a_killed_writer_loses_nothing_it_was_told_is_stored(file):
    """Two processes write cases of 50 pairs and are killed: each case is there whole or not."""
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(WRITER), file, name], stdout=subprocess.PIPE
        )
        for name in ("one", "two")
    ]
    told = []
    for writer in writers:  # let both get going
        told.append([int(writer.stdout.readline()) for _ in range(5)])
    for writer, numbers in zip(writers, told, strict=True):
        writer.kill()
        numbers += map(int, writer.stdout.read().split(b"\n")[:-1])
        writer.wait()
        writer.stdout.close()
    with Judgements(file) as judgements:
        for name, numbers in zip(("one", "two"), told, strict=True):
            cases = [int(case) for case, _, reviewer in judgements.cases() if reviewer == name]
            assert cases[: len(numbers)] == numbers == list(range(len(numbers)))
            assert len(cases) <= len(numbers) + 1
            verdicts = [one for one in judgements.current() if one.reviewer == name]
            assert len(verdicts) == 50 * len(cases)


def test_a_writer_that_must_wait_too_long_is_told_so(judgements, file, monkeypatch):
    monkeypatch.setattr("bayeslink.judging.judgements._WAIT", 0.05)
    with Judgements(file) as hasty:
        judgements._db.execute("BEGIN IMMEDIATE")
        with pytest.raises(OutputError, match="locked"):
            judge(hasty, "1", ab="link")
        judgements._db.execute("ROLLBACK")
        judge(hasty, "1", ab="link")
    assert standing(judgements) == {("x", "ab"): "link"}


@pytest.mark.parametrize("hard_links", [True, False])
def test_carrying_over(judgements, file, tmp_path, monkeypatch, hard_links):
    """The file at both paths, whole, and nobody writes to it meanwhile."""
    if not hard_links:
        monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(OSError("no such thing")))
    monkeypatch.setattr("bayeslink.judging.judgements._WAIT", 0.05)
    judge(judgements, "1", ab="link")
    before = standing(judgements)
    with (
        Judgements(file) as other,
        judgements.carried_to(tmp_path / "copy.sqlite"),
        pytest.raises(OutputError, match="locked"),
    ):
        judge(other, "2", ac="link")
    with Judgements(tmp_path / "copy.sqlite") as copy:
        assert standing(copy) == before
