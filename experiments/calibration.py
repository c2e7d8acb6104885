"""Do link probabilities mean what they say? Bins of probability against the truth.

A small summary that can be added up over data sets: for each bin of probability how many pairs,
the sum of their probabilities and how many are true; and two scores.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayeslink.pairs.source import Floats
from experiments.drawing import STYLES

EDGES = np.array([0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0])
CLIP = 1e-6  # draws cannot tell smaller probabilities from 0 or 1
COLUMNS = ("pairs", "probability", "true", "log_score", "brier")


def binned(p: Floats, true: NDArray[np.bool_]) -> Floats:
    """One row a bin: pairs, their probabilities' sum, true ones, summed log and Brier scores."""
    bins = np.clip(np.searchsorted(EDGES, p, side="right") - 1, 0, len(EDGES) - 2)
    q = np.clip(p, CLIP, 1 - CLIP)
    scores = (np.ones(len(p)), p, true, -np.log(np.where(true, q, 1 - q)), (p - true) ** 2)
    return np.column_stack([np.bincount(bins, x, len(EDGES) - 1) for x in scores])


def draw_reliability(ax: Any, named: dict[str, Floats]) -> None:
    """Share of true pairs against mean link probability, with 95 % binomial bars."""
    ax.plot([0, 1], [0, 1], color="0.75", linewidth=0.8)
    for shift, ((name, rows), style) in enumerate(zip(named.items(), STYLES, strict=False)):
        n, total, true = rows[rows[:, 0] > 0, :3].T
        share = true / n
        # Agresti–Coull, which does not shrink to nothing at 0 and 1.
        centre = (true + 2) / (n + 4)
        half = 1.96 * np.sqrt(centre * (1 - centre) / (n + 4))
        bars = np.abs([share - np.maximum(centre - half, 0), np.minimum(centre + half, 1) - share])
        ax.errorbar(total / n + 0.006 * shift, share, yerr=bars, label=name, capsize=2, ms=4,
                    linewidth=0.8, **style)  # fmt: skip
    ax.set(xlabel="mean link probability of the bin", ylabel="share of true pairs")
    ax.set(xlim=(-0.03, 1.04), ylim=(-0.03, 1.04))
    ax.legend(loc="upper left")


def scores(rows: Floats) -> dict[str, float]:
    """Mean log and Brier score a candidate, the same for knowing only the share of true ones."""
    n, _, true, log_score, brier = rows.sum(axis=0)
    share = true / n
    entropy = -(share * np.log(share) + (1 - share) * np.log1p(-share)) if 0 < share < 1 else 0.0
    return {
        "pairs": int(n),
        "expected_true": float(rows[:, 1].sum()),
        "true": int(true),
        "log_score": float(log_score / n),
        "log_score_of_share": float(entropy),
        "brier": float(brier / n),
    }
