"""How many errors a run is expected to have made, in the words that all say it in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def expected_errors(s: Mapping[str, Any]) -> tuple[float, float]:
    """How many links are expected to be false, and how many true ones missed, in tenths.

    From the summary of a run with draws. Rounded here, so that their sum is that of the numbers
    shown.
    """
    false = s["expected_false_links"]
    return round(false, 1), round(max(0.0, s["links_mean"] - (s["n_links"] - false)), 1)


def errors_to_expect(s: Mapping[str, Any]) -> str:
    """The sentence of the report and of the command line."""
    false, missed = expected_errors(s)
    review = " or left to review" if s["review_records"] else ""
    return (
        f"Errors to expect: {false:,.1f} false links and {missed:,.1f} true ones missed{review}, "
        f"{false + missed:,.1f} in all."
    )
