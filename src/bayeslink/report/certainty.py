"""How sure a result is: what was decided by its probability, above a number of people."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayeslink.report.svg import Chart, axis_below, dot, hover, line, rect, scale, text

SURE = (("≥ 0.99", 0.99, "full"), ("≥ 0.9", 0.9, "middle"), ("< 0.9", 0, "hollow"))  # of links


def how_sure(
    probabilities: NDArray[Any],
    interval: tuple[int, int],
    people: float | None = None,
    *,
    what: str = "links",
    whom: str = "people in both files",
) -> Chart:
    """Links, or `what`, by probability, end to end, above a number of people."""
    p = np.asarray(probabilities)
    counts, above = [], np.zeros(len(p), bool)
    for _, least, _ in SURE:
        counts.append(int(((p >= least) & ~above).sum()))
        above |= p >= least
    names = [name for name, _, _ in SURE]
    alt = ", ".join(f"{n:,} of probability {name}" for name, n in zip(names, counts, strict=True))
    low, high = interval
    said = f"{low:,} to {high:,} {whom}"

    def draw(width: int) -> tuple[float, list[str]]:
        most = float(max(len(p), high, 1))
        x = scale(0, most, 6, width - 14)
        end, marks = 0, [text(0, 12, f"{what} by probability", "soft")]
        for (name, _, cls), n in zip(SURE, counts, strict=True):
            if n:
                a, b = x(end), x(end + n)
                marks.append(hover(f"{n:,} {what}: {name}", rect(a, 20, max(b - a, 1), 22, cls)))
            end += n
        labels = [f"{name}: {n:,}" for name, n in zip(names, counts, strict=True)]
        at = 0.0
        for label, (_, _, cls) in zip(labels, SURE, strict=True):
            marks += [rect(at + 1, 49, 10, 10, cls), text(at + 16, 58, label)]
            at += 36 + len(label) * 6.6
        marks.append(text(0, 84, f"{whom}: {low:,} to {high:,}", "soft"))
        middle = 100
        target = rect(x(low) - 6, middle - 10, max(x(high) - x(low), 1) + 12, 20, "target")
        span = [line(x(low), middle, max(x(high), x(low) + 1), middle, "whisker")]
        span += [line(x(end), middle - 6, x(end), middle + 6, "whisker") for end in interval]
        if people:
            span.append(dot(x(people), middle, 4, "full"))
        marks += [line(x(0), middle, x(most), middle, "rule"), hover(said, target, *span)]
        return 132, [*marks, *axis_below(0, most, x, 110, width / 110, "")]

    return Chart(f"How sure the {what} are", f"{alt}; {said}", draw)
