"""Notes of a run by what they cost its user: the gravest first, and in plain words.

The kinds of notes are those of docs/reference/warnings.md; a test holds that each is known here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

TO_DO, TO_KNOW = "to do", "to know"


class Kind(NamedTuple):
    """Notes of one kind: words that each of them has, and how it is said without jargon."""

    pattern: str
    plain: str | None = None  # the groups of the pattern filled in; None: as it is


class Note(NamedTuple):
    """A remark on a run, as `run.warnings` has it."""

    text: str
    plain: str
    group: str  # TO_DO, TO_KNOW
    grave: bool  # do not use the result before you have seen to it


# Each list from what costs most to what costs least. Grave: links or counts may be badly wrong.
_GRAVE = (
    Kind("the linkage is empty", "no pair was good enough to be linked."),
    Kind("the linked file was not written"),
    Kind("A and B hold the same records"),
    Kind("as alike as most links", "pairs as alike as the links are as common within each file. "
         "Hardly anybody may be in both. Look at some links before you use them; if people can be "
         "in one file twice, say --duplicates."),
    Kind(r"is not identified: (\S+) links", "the data do not tell how many people are in both "
         "files: {0} links are clear, and there may be more. Take no count from this run: compare "
         "fields that tell people apart, or judge a sample."),
    Kind(r"people is not identified: (\S+) records", "the data do not tell how many people there "
         "are: {0} copies are clear, and there may be more. Take no count from this run: compare "
         "fields that tell people apart."),
    Kind("hardly anything is linked"),
    Kind("the chains disagree", "the results of repeated calculations differ. Do not use the "
         "numbers yet: repeat the run with more --draws and --tune."),
    Kind("solutions that are about equally good are far apart", "the data allow very different "
         "numbers of links. Compare more fields, or say how many people to expect in both files "
         "(--overlap-beta)."),
    Kind("far too high, and the links may be badly wrong"),
    Kind("for a reason that the model does not know", "more pairs are alike than the model "
         "expects, such as families, or people who are in a file twice. Do not rely on the "
         "probabilities: judge a sample (bayeslink review)."),
    Kind("they are hardly the same people"),
    Kind("with_entities and people were not written"),
    Kind("the fit had not settled", "the model had not settled. Link again with a fixed --theta "
         "and compare the links."),
)  # fmt: skip
_TO_DO = (
    Kind("never agrees: no value of A"),
    Kind("is missing in every record of"),
    Kind("two kinds of pairs may be linked"),
    Kind("by the look-alikes of records"),
    Kind("have a second partner in (.+?) that is about as good", "{0} seems to hold people twice: "
         "many records have two good partners. Link with --duplicates."),
    Kind("look like the same person, and"),
    Kind("hardly anybody of .* is in another file"),
    Kind("equal an earlier one in all compared fields"),
    Kind("have copies in their file"),
    Kind("each of them counts as evidence of its own"),
    Kind("agree together .* times, and the model expects"),
    Kind("agrees with itself as if it were a value"),
    Kind(r"^(.+?) is not compared\. The nearest of"),
    Kind("repeats ids"),
    Kind(r"They are (poor|fair)\.", "the chosen fields are {0}: they do not tell people apart "
         "well. Compare more fields if you can."),
    Kind("fewer than the credible interval", "fewer links are listed than people are in both "
         "files, as some have several partners that are as good. For counts, use the number of "
         "people in both files."),
    Kind("too few independent draws", "the numbers are not yet exact: repeat the run with more "
         "--draws."),
    Kind("chains only nearly agree", "the numbers are not yet exact: repeat the run with more "
         "--draws."),
    Kind("nothing could be checked on", "some numbers could not be checked, as they never "
         "changed."),
    Kind("several solutions are about equally good"),
    Kind("have an equally good alternative"),
    Kind(r"a solution with (\S+) people is nearly as good as the one with (\S+)\.", "two answers "
         "are about as good: {0} and {1} people. Compare one more field."),
    Kind("records are taken to be at most"),
    Kind("hang together through pairs"),
    Kind("yet a star keeps them apart"),
    Kind("a copy of a copy is"),
    Kind("it looks like a number of the person"),
    Kind("day and month cannot be told apart"),
    Kind("there is no column 'id'. "),
    Kind("has no id column: its rows"),
    Kind("tells hardly anyone apart", "one of the fields agrees in nearly all pairs, and tells "
         "hardly anyone apart: leave it out."),
    Kind("earlier links are in doubt"),
    Kind("pairs on which reviewers disagree"),
    Kind("there is no column 'id' in both files"),
)  # fmt: skip
_TO_KNOW = (
    Kind("links are only counted: no pair shows them", "some people in both files were counted "
         "without knowing which records are theirs; the interval allows for that."),
    Kind("pairs judged unsure"),
    Kind("only these may link", "only the pairs that were given could be linked."),
    Kind("dates of field .* were read as"),
    Kind("comparisons were chosen from the files"),
    Kind("that are called otherwise in"),
    Kind("the fields were chosen from the file"),
    Kind("follows from .*: they agree together"),
    Kind("no record looks like another"),
    Kind("too many distinct values to compare them all"),
    Kind("look swapped in"),
    Kind("not among the results, as Spark has the records"),
)  # fmt: skip
_RANKED = (*_GRAVE, *_TO_DO, *_TO_KNOW)


def ranked(warnings: Iterable[str]) -> list[Note]:
    """The notes, those that cost most first; one that is not known ranks as one to do."""
    unknown_place = len(_GRAVE) + len(_TO_DO) - 0.5
    placed = [(unknown_place if (at := _place(text)) is None else at, text) for text in warnings]
    return [_note(text, place) for place, text in sorted(placed, key=lambda entry: entry[0])]


def unknown(warnings: Iterable[str]) -> Iterator[str]:
    """Notes of no known kind."""
    return (text for text in warnings if _place(text) is None)


def _place(text: str) -> int | None:
    found = (at for at, kind in enumerate(_RANKED) if re.search(kind.pattern, text, re.IGNORECASE))
    return next(found, None)


def _note(text: str, place: float) -> Note:
    plain = text
    if place == int(place) and (words := _RANKED[int(place)].plain):
        match = re.search(_RANKED[int(place)].pattern, text, re.IGNORECASE)
        plain = words.format(*(match.groups() if match else ()))
    group = TO_DO if place < len(_GRAVE) + len(_TO_DO) else TO_KNOW
    return Note(text, plain, group, grave=place < len(_GRAVE))
