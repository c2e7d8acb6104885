"""A run in four lines: what they say, in which order, and in which words."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

from bayeslink.runs.brief import in_brief, n_doubtful
from bayeslink.runs.notes import TO_DO, TO_KNOW, ranked, unknown
from tests.docs.warnings_page import entries

JARGON = re.compile(
    r"(?<!--)\b(?:L|draws|chains|births|blocks|scope|posterior|rivals|credible|R-hat)\b"
)
SUMMARY = {
    "n_a": 1200, "n_b": 900, "n_links": 300, "chains": 4, "links_mean": 310.4,
    "links_interval": [300, 321], "links_identified": True, "links_pointed": 290.0,
    "expected_false_links": 1.04,
    "review_records": 0,
}  # fmt: skip
GRAVE = "the number of records in both files is not identified: 120 links can be pointed to, and 3"
HANDLED = "a and b look swapped in 3 pairs, and half swapped in 2; this is handled."
UNSETTLED = "The chains only nearly agree on m[a, 1]: draw more."
EMPTY_FIELD = "field 'x' is missing in every record of a.csv."


def run(warnings=(), probabilities=(), **summary):
    posterior = SimpleNamespace(probability=np.array(probabilities))
    return SimpleNamespace(
        warnings=warnings, posterior=posterior, summary=lambda: {**SUMMARY, **summary}
    )


def documented():
    """All warnings of a run; those of `bl.sensitivity` and of compiling are said elsewhere."""
    elsewhere = ("W0 = …", "First run on this machine", "Compiling, once", "Nowhere to keep")
    return [entry for entry in entries() if not entry.startswith(elsewhere)]


def test_every_documented_note_is_of_a_known_kind():
    assert len(documented()) > 35
    assert list(unknown(documented())) == []
    assert list(unknown(["nobody has written this"])) == ["nobody has written this"]


@pytest.mark.parametrize("text", documented())
def test_notes_are_told_without_jargon(text):
    (note,) = ranked([text])
    assert not JARGON.findall(note.plain), note.plain
    assert note.text == text


def test_what_costs_most_comes_first_and_only_three_are_told():
    shuffled = [HANDLED, UNSETTLED, EMPTY_FIELD, GRAVE, "nobody has written this"]
    notes = ranked(shuffled)
    assert [note.text for note in notes] == [
        GRAVE, EMPTY_FIELD, UNSETTLED, "nobody has written this", HANDLED
    ]  # fmt: skip
    assert [note.group for note in notes] == [TO_DO] * 4 + [TO_KNOW]
    assert [note.grave for note in notes] == [True] + [False] * 4
    lines = in_brief(run(shuffled, [0.5, 0.05, 0.95, 0.2]), "out")
    assert lines[2].startswith("To do first: the data do not tell how many people")
    assert "120 links are clear" in lines[2]
    assert lines[3] == "Note: judge 2 doubtful pairs (bayeslink review out)."
    assert lines[4] == f"Note: {EMPTY_FIELD}"
    assert lines[5] == "… 3 more in the report (bayeslink report out)."
    assert len(lines) == 6


def test_a_run_without_notes_is_three_lines():
    assert in_brief(run()) == [
        "300 links between 1,200 records of A and 900 of B.",
        "People in both files: 310 (95 % interval 300 to 321). About 1.0 of the links are wrong, "
        "and 11.4 are missing.",
        "Nothing to do first: the automatic checks found no problem.",
    ]
    (told,) = in_brief(run([HANDLED]))[3:]
    assert told == f"Note: {HANDLED}"


def test_a_number_that_is_not_identified_is_not_told():
    line = in_brief(run(links_identified=False, review_records=7))[1]
    assert line.startswith("People in both files: not known, from 300 to 321.")
    assert "310" not in line
    assert "missing" not in line  # which nobody knows either
    assert line.endswith("7 records of B are left to review.")


def test_a_point_estimate_says_that_it_does_not_know():
    summary = {"n_a": 3, "n_b": 4, "n_links": 2}
    point = SimpleNamespace(warnings=(), posterior=None, summary=lambda: summary)
    assert in_brief(point)[1] == "A point estimate: it does not say how sure."


def test_doubtful_is_neither_nor():
    assert n_doubtful(np.array([0.1, 0.11, 0.5, 0.89, 0.9, 1.0])) == 3
