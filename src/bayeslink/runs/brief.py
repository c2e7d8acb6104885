"""A run in four lines, in words that need no statistics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bayeslink.runs.expected import expected_errors
from bayeslink.runs.notes import TO_DO, TO_KNOW, Note, ranked

if TYPE_CHECKING:
    from bayeslink.runs.run import Run

_NOTES = 3  # that are told; the report has all
_DOUBTFUL = (0.1, 0.9)


def n_doubtful(probabilities: Any) -> int:
    """How many pairs could well be links, and could well be none."""
    low, high = _DOUBTFUL
    return int(((probabilities > low) & (probabilities < high)).sum())


def in_brief(run: Run, place: str = "OUT") -> list[str]:
    """How many links, how many people in both files and how sure, and what to look at first.

    `place` is the run directory, for the commands to type.
    """
    s = run.summary()
    links = f"{s['n_links']:,} links between {s['n_a']:,} records of A and {s['n_b']:,} of B."
    if "chains" not in s:
        return [links, "A point estimate: it does not say how sure.", *_to_see(run, 0, place)]
    probabilities = None if run.posterior is None else run.posterior.probability
    doubtful = 0 if probabilities is None else n_doubtful(probabilities)
    return [links, f"{people_in_both(s)} {errors(s)}", *_to_see(run, doubtful, place)]


def people_in_both(s: dict[str, Any]) -> str:
    """The sentence on the number of people in both files."""
    low, high = s["links_interval"]
    if not s["links_identified"]:
        clear = f"{s['links_pointed']:,.0f} links can be pointed to"
        return f"People in both files: not known, from {low:,} to {high:,}. {clear}."
    return f"People in both files: {s['links_mean']:,.0f} (95 % interval {low:,} to {high:,})."


def errors(s: dict[str, Any]) -> str:
    """The sentence on how many errors to expect."""
    false, missed = expected_errors(s)
    words = f"About {false:,.1f} of the links are wrong"
    words += f", and {missed:,.1f} are missing." if s["links_identified"] else "."
    if s["review_records"]:
        words += f" {s['review_records']:,} records of B are left to review."
    return words


def _to_see(run: Run, doubtful: int, place: str) -> list[str]:
    """What to do first, then other notes, three in all."""
    notes = ranked(run.warnings)
    to_do = [note.plain for note in notes if note.grave]
    if doubtful:
        pairs = "doubtful pair" if doubtful == 1 else "doubtful pairs"
        to_do.append(f"judge {doubtful:,} {pairs} (bayeslink review {place}).")
    to_do += [note.plain for note in notes if note.group == TO_DO and not note.grave]
    to_do = [*dict.fromkeys(to_do)]
    others = [*to_do[1:], *(note.plain for note in notes if note.group == TO_KNOW)]
    told = ["Nothing to do first: the automatic checks found no problem."]
    if to_do:
        told = [f"To do first: {to_do[0]}"]
    shown = _NOTES - bool(to_do)
    told += [f"Note: {text}" for text in others[:shown]]
    if len(others) > shown:
        told.append(f"… {len(others) - shown} more in the report (bayeslink report {place}).")
    return told


def in_detail(notes: Sequence[Note]) -> list[str]:
    """All notes as they are, the gravest first."""
    return [f"note: {note.text}" for note in notes]
