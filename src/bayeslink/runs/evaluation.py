"""How good are links, and a post-hoc blocking, when the truth is known?"""

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bayeslink.data.id_pairs import SIDES, TEXT
from bayeslink.errors import SettingsError
from bayeslink.notebook_html import html_table
from bayeslink.runs.cluster_evaluation import (
    ClusterEvaluation,
    evaluate_clusters,
    holds_clusters,
)
from bayeslink.runs.cluster_files import as_frame
from bayeslink.runs.pair_files import pairs_of


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Links against the truth.

    Attributes
    ----------
    n_links, n_true
        Distinct links, distinct true pairs.
    true_links, false_links, missed
        Links that are true, links that are not, true pairs without a link.
    precision
        true_links / n_links; nan without links.
    recall
        true_links / n_true; nan without true pairs.
    f1
        2 true_links / (n_links + n_true); nan only without either.
    reduction_ratio
        1 − candidates / pairs in scope; None if candidates or their scope were not given.
    pairs_completeness
        Share of the true pairs that are candidates; None if candidates were not given, nan
        without true pairs.
    """

    n_links: int
    n_true: int
    true_links: int
    false_links: int
    missed: int
    precision: float
    recall: float
    f1: float
    reduction_ratio: float | None = None
    pairs_completeness: float | None = None

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        rows = [[name, value] for name, value in self.as_dict().items() if value is not None]
        return html_table("Against the truth", ["", ""], rows)

    def as_dict(self) -> dict[str, float | int | None]:
        """Return all numbers by name."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [
            f"links      {self.n_links:>12,}   true   {self.true_links:>12,}"
            f"   false  {self.false_links:>12,}",
            f"true pairs {self.n_true:>12,}   found  {self.true_links:>12,}"
            f"   missed {self.missed:>12,}",
            f"precision  {self.precision:>12.4f}   recall {self.recall:>12.4f}"
            f"   F1     {self.f1:>12.4f}",
        ]
        if self.pairs_completeness is not None:
            reduction = "–" if self.reduction_ratio is None else f"{self.reduction_ratio:.6f}"
            lines.append(
                f"candidates: pairs completeness {self.pairs_completeness:.4f}, "
                f"reduction ratio {reduction}"
            )
        return "\n".join(lines)


def evaluate(
    links: Any, truth: Any, *, candidates: Any = None, n_pairs: int | None = None
) -> Evaluation | ClusterEvaluation:
    """Compare links, or clusters, with the truth.

    Parameters
    ----------
    links, truth, candidates
        Pairs of ids: a pandas, polars or Arrow table with columns `id_a` and `id_b`, the path of
        a file with these, rows of two, a `Run` or a run directory. Ids are compared as text, a
        pair given twice counts once. If `links` has a column `decision`, only its rows that say
        "link" count. `candidates` are the pairs left after (post-hoc) blocking.
        Or clusters and the true ones, as tables or files with columns `id` and `entity_id`, or as
        Splink, dedupe and Zingg write them (`read_clusters`): every id of the truth must be in the
        clusters.
    n_pairs
        Pairs in scope before blocking, n_A × n_B if there is no blocking key.

    Returns
    -------
    Evaluation
        Of links: precision, recall, F1; and so of candidate pairs.
    ClusterEvaluation
        Of clusters: the same by pairs, B-cubed, clusters that are exactly right, their number.
    """
    links = as_frame(links)
    if holds_clusters(links) and candidates is None and n_pairs is None:
        return evaluate_clusters(links, truth)
    return evaluate_links(links, truth, candidates=candidates, n_pairs=n_pairs)


def evaluate_links(
    links: Any, truth: Any, *, candidates: Any = None, n_pairs: int | None = None
) -> Evaluation:
    """Compare links with the true pairs, as `evaluate` does."""
    tables = [pairs_of(links, "links"), pairs_of(truth, "truth")]
    if candidates is not None:
        tables.append(pairs_of(candidates, "candidates"))
    linked, true, *rest = _distinct_codes(tables)
    n_links, n_true = len(linked), len(true)
    hits = _n_common(linked, true)
    reduction = completeness = None
    if rest:
        completeness = _ratio(_n_common(rest[0], true), n_true)
    if n_pairs is not None:
        reduction = _reduction_ratio(rest, n_pairs)
    return Evaluation(
        n_links=n_links,
        n_true=n_true,
        true_links=hits,
        false_links=n_links - hits,
        missed=n_true - hits,
        precision=_ratio(hits, n_links),
        recall=_ratio(hits, n_true),
        f1=_ratio(2 * hits, n_links + n_true),
        reduction_ratio=reduction,
        pairs_completeness=completeness,
    )


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else math.nan


def _reduction_ratio(candidates: list[NDArray[np.int64]], n_pairs: int) -> float:
    if not candidates:
        raise SettingsError(
            "n_pairs was given without candidates. It is the number of pairs the candidates were "
            "chosen from; give candidates too, or leave it out."
        )
    if n_pairs < max(len(candidates[0]), 1):
        raise SettingsError(
            f"n_pairs must be at least 1 and at least the number of candidates, "
            f"{len(candidates[0])}, got {n_pairs!r}. It counts the pairs in scope; give n_A × n_B."
        )
    return 1 - len(candidates[0]) / n_pairs


def _n_common(x: NDArray[np.int64], y: NDArray[np.int64]) -> int:
    return len(np.intersect1d(x, y, assume_unique=True))


def _distinct_codes(tables: list[pa.Table]) -> list[NDArray[np.int64]]:
    """Give each pair one integer, the same in every table, and drop repetitions."""
    codes = []
    for side in SIDES:
        ids = pa.chunked_array([chunk for table in tables for chunk in table[side].chunks], TEXT)
        encoded = ids.combine_chunks().dictionary_encode()
        codes.append(encoded.indices.to_numpy().astype(np.int64))
        size = len(encoded.dictionary)
    ends = np.cumsum([len(table) for table in tables])[:-1]
    parts = map(np.sort, np.split(codes[0] * size + codes[1], ends))  # np.unique is far slower
    return [part[np.diff(part, prepend=-1) > 0] for part in parts]
