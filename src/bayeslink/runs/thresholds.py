"""What to expect of the pairs at or above each threshold: how many are true, and how many missed.

Expected precision is the mean link probability of these pairs. Expected recall is the number of
true links expected among them over the number expected in all, E[L], which counts those among
pairs that are listed nowhere, too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from bayeslink.pairs.source import Floats

THRESHOLDS: Floats = np.append(np.arange(1, 100) / 100, [0.995, 0.999])
COLUMNS = ("threshold", "pairs", "expected_links", "expected_precision", "expected_recall")


def by_threshold(
    probability: Any,
    expected: float,
    known: int = 0,
    thresholds: Sequence[float] | Floats = THRESHOLDS,
) -> pa.Table:
    """A row a threshold.

    Parameters
    ----------
    probability
        Of each pair that is listed.
    expected
        True links expected in all, known ones and those in pairs that are not listed among them.
    known
        Links that are known and not listed; they are sure.
    """
    p = np.sort(np.asarray(probability, np.float64))
    at = np.searchsorted(p, np.asarray(thresholds) - 1e-12)
    above = np.append(np.cumsum(p[::-1])[::-1], 0.0)[at] + known
    pairs = len(p) - at + known
    precision = np.divide(above, pairs, out=np.full(len(at), math.nan), where=pairs > 0)
    recall = np.minimum(above / expected, 1.0) if expected > 0 else np.full(len(at), math.nan)
    columns = (np.asarray(thresholds, np.float64), pairs, above, precision, recall)
    return pa.table(dict(zip(COLUMNS, columns, strict=True)))


def expected_links(summary: Mapping[str, Any]) -> float:
    """E[L] of a linkage. Of restricted sampling, with the links expected in pairs set aside."""
    outside = summary["links_outside"] if summary["restricted"] else 0.0
    return float(summary["links_mean"] + outside)


def expected_pairs(sizes: Any, summary: Mapping[str, Any]) -> float:
    """Pairs of records of one person expected in a deduplication; `sizes` of its clusters."""
    n = np.asarray(sizes, np.int64)
    joined = int((n * (n - 1) // 2).sum())
    return float(joined - summary["expected_false_pairs"] + summary["expected_missed_pairs"])
