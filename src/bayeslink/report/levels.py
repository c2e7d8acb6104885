"""What the names of levels mean, for those who did not choose the comparisons."""

from __future__ import annotations

from collections.abc import Sequence

_MEANINGS = (
    ("km", "Distances in km are between two places, as the crow flies."),
    (
        "distance",
        "Distance is the share of letters to change, add or leave out to make one value of the "
        "other: 0.25 is one letter in four.",
    ),
    ("apart", "Dates are so many days apart."),
    ("difference", "A difference is between two numbers."),
    ("similarity", "Similarity runs from 0, nothing in common, to 1, equal."),
    ("alike ≥", "How alike texts are runs from 0, nothing in common, to 1, equal."),
    (
        "value ≤",
        "Agreement on a rare value says more: a value ≤ 1 % is one that at most 1 % of the records "
        "have.",
    ),
)


def meanings(labels: Sequence[str]) -> str:
    """A few sentences on the labels that are in use."""
    said = [
        words
        for sign, words in _MEANINGS
        if any(sign in label and not (sign == "distance" and "km" in label) for label in labels)
    ]
    order = "Levels are listed from best to worst, and each leaves out what the ones above it hold"
    edges = any("≤" in label for label in labels)
    example = ": what is within a distance is close but not equal." if edges else "."
    return " ".join([order + example, *said])
