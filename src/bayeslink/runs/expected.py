"""How many links there are, and how many errors to expect, in the words that all say it in."""

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


def records_in_both(s: Mapping[str, Any]) -> str:
    """The sentences on L, from the summary of a run with draws."""
    low, high = s["links_interval"]
    pointed, counted = s["links_pointed"], s["links_counted"]
    if not s["links_identified"]:
        return (
            f"Records in both files: not identified. {pointed:,.0f} links can be pointed to; from "
            f"the data there may be {low:,} to {high:,}."
        )
    parts = (
        ""
        if counted < 0.5
        else f" {pointed:,.0f} can be pointed to, {counted:,.0f} are only counted."
    )
    return (
        f"Records in both files: {s['links_mean']:,.0f}, 95 % interval {low:,} to {high:,}.{parts}"
    )


def errors_to_expect(s: Mapping[str, Any]) -> str:
    """The sentence of the report and of the command line."""
    false, missed = expected_errors(s)
    review = " or left to review" if s["review_records"] else ""
    if not s["links_identified"]:
        return f"Errors to expect: {false:,.1f} false links; how many are missed is not known."
    return (
        f"Errors to expect: {false:,.1f} false links and {missed:,.1f} true ones missed{review}, "
        f"{false + missed:,.1f} in all."
    )
