"""Curves, histograms and intervals: numbers in, `Chart` out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bayeslink.number_format import minus
from bayeslink.report.charts import NUMBERS, Floats
from bayeslink.report.svg import (
    CHARACTER,
    Chart,
    axis_below,
    dot,
    hover,
    legend,
    line,
    polyline,
    rect,
    scale,
    shorten,
    text,
    tick_label,
    ticks,
)
from bayeslink.runs.unlinkable import CopyWeights


@dataclass(frozen=True, slots=True)
class _Frame:
    """A plane with axes."""

    x: Callable[[float], float]
    y: Callable[[float], float]
    height: float
    marks: list[str]


def _frame(
    width: int,
    xs: tuple[float, float],
    ys: tuple[float, float],
    titles: tuple[str, str],
    plane: float = 200,
) -> _Frame:
    up = ticks(*ys, 4)
    step = up[1] - up[0] if len(up) > 1 else abs(ys[1] - ys[0]) or 1.0
    labels = [tick_label(v, step) for v in up]
    left = max(28.0, 8 + max(map(len, labels)) * 7.2)
    x, y = scale(*xs, left, width - 14), scale(*ys, 26 + plane, 26)
    marks = [text(0, 12, titles[1], "soft")]
    for value, label in zip(up, labels, strict=True):
        marks.append(line(left, y(value), width - 14, y(value), "rule"))
        marks.append(text(left - 6, y(value) + 4, label, "soft", "end"))
    marks.append(line(left, 26 + plane, width - 14, 26 + plane, "zero"))
    marks += axis_below(*xs, x, 26 + plane, (width - left) / 90, titles[0])
    return _Frame(x, y, plane + 64, marks)


def links(draws: NDArray[Any], interval: tuple[int, int], *, decided: int | None = None) -> Chart:
    """Posterior of the number of links: shares of the draws, and the 95 % interval."""
    return _posterior_of("links, L", draws, interval, decided)


def people(draws: NDArray[Any], interval: tuple[int, int]) -> Chart:
    """Posterior of the number of people in a file."""
    return _posterior_of("people", draws, interval, None)


def _posterior_of(
    what: str, draws: NDArray[Any], interval: tuple[int, int], decided: int | None
) -> Chart:
    noun, _, symbol = what.partition(", ")
    values = np.asarray(draws).ravel()
    low, high = int(values.min()), int(values.max())
    step = max(1, math.ceil((high - low + 1) / 40))
    edges = np.arange(low, high + step + 1, step) - 0.5
    share = np.histogram(values, edges)[0] / len(values)
    alt = (
        f"Mean {values.mean():,.0f}, 95 % interval {interval[0]:,} to {interval[1]:,}, "
        f"draws from {low:,} to {high:,}"
    )

    def draw(width: int) -> tuple[float, list[str]]:
        ends = [edges[0], edges[-1]] + ([decided - 0.5, decided + 0.5] if decided else [])
        f = _frame(
            width,
            (float(min(ends)), float(max(ends))),
            (0.0, float(share.max()) * 1.12),
            (f"number of {what}", "share of draws"),
        )
        base = f.y(0)
        for a, p in zip(edges[:-1], share, strict=True):
            first, last = int(a + 0.5), int(a + step - 0.5)
            names = f"{first:,}" if first == last else f"{first:,} to {last:,}"
            x0, x1 = f.x(a), f.x(a + step)
            f.marks.append(
                hover(
                    f"{symbol or noun} = {names}: {100 * p:.1f} % of draws",
                    rect(x0, 26, x1 - x0, base - 26, "target"),
                    rect(x0 + 0.5, f.y(p), max(x1 - x0 - 1, 0.8), base - f.y(p), "full"),
                )
            )
        a, b = f.x(interval[0]), f.x(interval[1])
        f.marks.extend([line(a, 20, b, 20, "zero"), *(line(x, 16, x, 24, "zero") for x in (a, b))])
        known = [("zero", "95 % interval")] + ([] if decided is None else [("limit", "decided on")])
        f.marks.append(legend(width - 14, known))
        if decided is not None:
            f.marks.append(line(f.x(decided), 26, f.x(decided), base, "limit"))
        return f.height, f.marks

    return Chart(f"Posterior of the number of {noun}", alt, draw)


def trace(name: str, chains: NDArray[Any]) -> Chart:
    """The draws of one quantity, a panel for each chain, all on one scale."""
    values = np.asarray(chains, np.float64)
    low, high = float(values.min()), float(values.max())
    n = values.shape[1]
    alt = minus(f"{len(values)} chains of {n:,} draws, from {low:,.4g} to {high:,.4g}")

    def draw(width: int) -> tuple[float, list[str]]:
        panel, gap, y0 = 46.0, 12.0, 6.0
        ends = _ends(low, high)
        left, right = 58 + 7.2 * max(map(len, ends)), width - 14
        at = np.linspace(0, n - 1, min(n, 300 if width > 400 else 150)).round().astype(int)
        x = scale(0, n - 1, left, right)
        marks: list[str] = []
        for i, chain in enumerate(values):
            y = scale(low, high, y0 + panel, y0)
            mean = chain.mean()
            marks.append(
                hover(
                    minus(f"{name}, chain {i + 1}: mean {mean:,.5g}, sd {chain.std():,.3g}"),
                    rect(0, y0, width, panel, "target"),
                    line(left, y0, left, y0 + panel, "zero"),
                    line(left, y(mean), right, y(mean), "rule"),
                    polyline([(x(t), y(chain[t])) for t in at], "curve"),
                    text(0, y0 + panel / 2 + 4, f"chain {i + 1}", "soft"),
                    text(left - 5, y0 + panel, ends[0], "soft", "end"),
                    text(left - 5, y0 + 9, ends[1], "soft", "end"),
                )
            )
            y0 += panel + gap
        bottom = y0 - gap
        marks.append(line(left, bottom, right, bottom, "zero"))
        marks += axis_below(0, n, scale(0, n, left, right), bottom, (right - left) / 110, "draw")
        return bottom + 34, marks

    return Chart(f"Draws of {name}", alt, draw)


def _ends(low: float, high: float) -> tuple[str, str]:
    """The two ends of a scale, with as many decimals as their distance asks for."""
    decimals = max(0, 1 - math.floor(math.log10(high - low or 1.0)))
    return minus(f"{low:,.{decimals}f}"), minus(f"{high:,.{decimals}f}")


def path(thetas: Floats, up: Floats, down: Floats, chosen: float | None = None) -> Chart:
    """Links found at each θ, coming from smaller and from larger θ."""
    low, high = float(np.min(thetas)), float(np.max(thetas))
    most = float(max(np.max(up), np.max(down)))
    least = float(min(np.min(up), np.min(down)))
    alt = f"From {most:,.0f} links at θ = {low:.3g} to {least:,.0f} at θ = {high:.3g}"

    def draw(width: int) -> tuple[float, list[str]]:
        f = _frame(width, (low, high), (0.0, most * 1.1 or 1.0), ("θ, cost of a link", "links"))
        for values, cls in ((down, "other"), (up, "curve")):
            points = [(f.x(t), f.y(n)) for t, n in zip(thetas, values, strict=True)]
            f.marks.append(polyline(points, cls))
        for t, n, m in zip(thetas, up, down, strict=True):
            f.marks.append(
                hover(
                    f"θ = {t:.3g}: {n:,.0f} links coming from smaller θ, {m:,.0f} from larger",
                    rect(f.x(t) - 6, 26, 12, f.y(0) - 26, "target"),
                    dot(f.x(t), f.y(n), 3, "full"),
                )
            )
        if chosen is not None and low <= chosen <= high:
            at = f.x(chosen)
            f.marks.append(line(at, 26, at, f.y(0), "limit"))
            f.marks.append(text(at + 4, 38, f"θ = {chosen:.2f}", "soft"))
        f.marks.append(legend(width - 14, [("curve", "from smaller θ"), ("other", "from larger")]))
        return f.height, f.marks

    return Chart("Links over θ", alt, draw)


def thresholds(table: pa.Table) -> Chart:
    """Expected precision (full) and recall (dashed) of the pairs at or above each threshold."""
    at, pairs, _, precision, recall = (column.to_numpy() for column in table.columns)
    middle = int(np.argmin(np.abs(at - 0.5)))
    least = float(np.nanmin([0.9, *precision, *recall]))
    bottom = math.floor(10 * least) / 10  # else both lie on the upper edge
    said = [
        f"from {t:.3g} up {n:,} pairs, expected precision {_share(p)}, recall {_share(r)}"
        for t, n, p, r in zip(at, pairs, precision, recall, strict=True)
    ]

    def draw(width: int) -> tuple[float, list[str]]:
        titles = ("threshold of link probability", "expected share")
        f = _frame(width, (0.0, 1.0), (bottom, 1.0), titles)
        for values, cls in ((recall, "other"), (precision, "curve")):
            points = [(f.x(t), f.y(v)) for t, v in zip(at, values, strict=True) if v == v]
            f.marks.append(polyline(points, cls))
        half = (f.x(1) - f.x(0)) / max(1, len(at)) / 2
        for t, words in zip(at, said, strict=True):
            target = rect(f.x(t) - half, 26, 2 * half, f.y(bottom) - 26, "target")
            f.marks.append(hover(words, target))
        f.marks.append(legend(width - 14, [("curve", "precision"), ("other", "recall")]))
        return f.height, f.marks

    ends = "; ".join(said[i] for i in sorted({0, middle, len(said) - 1}))
    return Chart("Expected precision and recall by threshold", ends, draw, table)


def _share(value: float) -> str:
    return "not defined" if math.isnan(value) else f"{value:.3f}"


def unlinkable(weights: CopyWeights) -> Chart:
    """Share of the records of A (full) and of B (dashed) that cannot reach each weight."""
    table, needed = weights.table(), weights.needed
    bits, *shares = (table[name].to_numpy() for name in ("weight", "share_a", "share_b"))
    x_of, (a, b) = bits.astype(np.float64), weights.shares_below(needed)
    alt = (
        f"A link costs {minus(f'{needed:.1f}')} bits: {100 * a:.1f} % of the records of A and "
        f"{100 * b:.1f} % of those of B stay below it even with an exact copy"
    )

    def draw(width: int) -> tuple[float, list[str]]:
        most = max(0.05, *(float(share.max()) for share in shares))
        titles = ("match weight with an exact copy, bits", "share of records below")
        f = _frame(width, (float(x_of[0]), float(x_of[-1])), (0.0, most), titles)
        for share, cls in zip(shares, ("curve", "other"), strict=True):
            points = zip(map(f.x, x_of), map(f.y, share), strict=True)
            f.marks.append(polyline(list(points), cls))
        half = (f.x(1) - f.x(0)) / 2
        for b, *both in zip(x_of, *shares, strict=True):
            of_a, of_b = (
                f"{100 * share:.1f} % of {s}" for share, s in zip(both, "AB", strict=True)
            )
            target = rect(f.x(b) - half, 26, 2 * half, f.y(0) - 26, "target")
            f.marks.append(hover(minus(f"below {b:.0f} bits: {of_a}, {of_b}"), target))
        f.marks.append(line(f.x(needed), 26, f.x(needed), f.y(0), "limit"))
        keys = [("curve", "A"), ("other", "B"), ("limit", "what a link costs")]
        f.marks.append(legend(width - 14, keys))
        return f.height, f.marks

    return Chart("Records that say too little", alt, draw, table)


@dataclass(frozen=True, slots=True)
class Reliability:
    """Pairs of similar probability: their mean probability, and the share that are true."""

    probability: float
    share: float
    low: float  # 95 % interval of the share
    high: float
    pairs: int


def calibration(groups: Sequence[Reliability]) -> Chart:
    """Share of true pairs against their link probability: on the diagonal if calibrated."""
    alt = "; ".join(f"{g.probability:.2f} said, {g.share:.2f} true ({g.pairs:,})" for g in groups)

    def draw(width: int) -> tuple[float, list[str]]:
        size = min(300.0, width - 60)
        titles = ("link probability", "share of true pairs")
        f = _frame(int(size) + 50, (0.0, 1.0), (0.0, 1.0), titles, size - 20)
        f.marks.append(line(f.x(0), f.y(0), f.x(1), f.y(1), "guide"))
        f.marks.append(legend(size + 36, [("whisker", "95 %"), ("guide", "as said")]))
        for g in groups:
            x = f.x(g.probability)
            words = (
                f"{g.pairs:,} pairs of probability {g.probability:.3f} on average: "
                f"{100 * g.share:.1f} % true, 95 % interval {100 * g.low:.0f} to "
                f"{100 * g.high:.0f} %"
            )
            f.marks.append(
                hover(
                    words,
                    rect(x - 8, f.y(1), 16, f.y(0) - f.y(1), "target"),
                    line(x, f.y(g.low), x, f.y(g.high), "whisker"),
                    dot(x, f.y(g.share), 4, "full"),
                )
            )
        return f.height, f.marks

    return Chart("Calibration", alt, draw)


def reliability(probability: NDArray[Any], true: NDArray[Any]) -> list[Reliability]:
    """Pairs in groups by link probability, each with Wilson's interval of the share of true ones.

    Groups are tenths of the scale, not of the pairs: nearly all pairs lie close to 0 or 1.
    """
    group = np.minimum((probability * 10).astype(int), 9)
    out = []
    for i in np.unique(group):
        inside = group == i
        n, share = int(inside.sum()), float(true[inside].mean())
        z = 1.96
        middle = (share + z * z / (2 * n)) / (1 + z * z / n)
        half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
        low, high = max(0.0, middle - half), min(1.0, middle + half)
        out.append(Reliability(float(probability[inside].mean()), share, low, high, n))
    return out


def intervals(
    title: str,
    rows: Sequence[tuple[str, float, tuple[float, float], tuple[float, float]]],
    axis: str,
) -> Chart:
    """A mean and an interval in each row, with a wider one behind it: after and before the data."""
    low = min(min(a[0], mean) for _, mean, a, _ in rows)
    high = max(max(a[1], mean) for _, mean, a, _ in rows)
    pad = (high - low) * 0.25 or 1.0
    low, high = low - pad, high + pad
    alt = "; ".join(f"{name}: {mean:,.0f} ({a[0]:,} to {a[1]:,})" for name, mean, a, _ in rows)

    def draw(width: int) -> tuple[float, list[str]]:
        left = min(max(len(r[0]) for r in rows) * CHARACTER + 18, width * 0.46)
        x = scale(low, high, left, width - NUMBERS)
        y, marks = 4.0, []
        for name, mean, after, before in rows:
            middle = y + 12
            b0, b1 = (x(min(max(v, low), high)) for v in before)
            tip = (
                f"{name}: {mean:,.0f}, 95 % interval {after[0]:,} to {after[1]:,}; "
                f"before the data {before[0]:,} to {before[1]:,}"
            )
            marks.append(
                hover(
                    tip,
                    rect(0, y, width, 24, "target"),
                    text(left - 8, middle + 4, shorten(name, left - 8), "soft", "end"),
                    line(b0, middle + 6, b1, middle + 6, "before"),
                    line(x(after[0]), middle, x(after[1]), middle, "whisker"),
                    dot(x(mean), middle, 4, "full"),
                    text(width, middle + 4, f"{mean:,.0f}", None, "end"),
                )
            )
            y += 26
        return y + 34, [*marks, *axis_below(low, high, x, y, (width - left) / 110, axis)]

    return Chart(title, alt, draw)
