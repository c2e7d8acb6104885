"""How good are clusters of records, when it is known which record is of whom?

Clusters and truth are two partitions of the same records, so everything follows from how many
records each cluster has of each entity.
"""

from __future__ import annotations

import math
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bayeslink.data.id_pairs import id_text
from bayeslink.data.records import repeats
from bayeslink.errors import InputError
from bayeslink.notebook_html import html_table
from bayeslink.runs.cluster_files import (
    ENTITY,
    FILE,
    ID,
    file_table,
    in_own_columns,
    says_who,
    with_table,
)

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ClusterEvaluation:
    """Clusters against the truth. Shares are nan where they are of nothing.

    Attributes
    ----------
    n_records
        Records that both have.
    n_left_out
        Records of the clusters that the truth does not have.
    n_clusters, n_entities
        Clusters, and entities in truth, of these records.
    precision, recall, f1
        By pairs: share of the pairs within clusters that are of one entity, share of the pairs of
        one entity that are within a cluster, and the harmonic mean of both.
    bcubed_precision, bcubed_recall, bcubed_f1
        By records (B-cubed): the share of a record's cluster that is of its entity, and the share
        of its entity that is in its cluster, both averaged over records; the harmonic mean of both.
    exact_clusters
        Clusters that are a whole entity and nothing else, those of one record among them.
    exact_precision, exact_recall
        exact_clusters / n_clusters and exact_clusters / n_entities.
    people_interval
        Of a run: how many people it takes all its records to be of, at 95 %.
    """

    n_records: int
    n_left_out: int
    n_clusters: int
    n_entities: int
    precision: float
    recall: float
    f1: float
    bcubed_precision: float
    bcubed_recall: float
    bcubed_f1: float
    exact_clusters: int
    exact_precision: float
    exact_recall: float
    people_interval: tuple[int, int] | None = None

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        rows = [[name, value] for name, value in self.as_dict().items()]
        return html_table("Clusters against the truth", ["", ""], rows)

    def as_dict(self) -> dict[str, Any]:
        """Return all numbers by name."""
        return asdict(self)

    def __str__(self) -> str:
        left_out = f", {self.n_left_out:,} more without a truth" if self.n_left_out else ""
        low, high = self.people_interval or (0, 0)
        people = [f"people     {low:>12,} to {high:,} (95 % interval)"] if high else []
        return "\n".join(
            [
                f"records    {self.n_records:>12,}{left_out}",
                f"clusters   {self.n_clusters:>12,}   true   {self.n_entities:>12,}"
                f"   exactly so {self.exact_clusters:>8,}",
                *people,
                f"pairs      precision {self.precision:.4f}   recall {self.recall:.4f}"
                f"   F1 {self.f1:.4f}",
                f"B-cubed    precision {self.bcubed_precision:.4f}   recall "
                f"{self.bcubed_recall:.4f}   F1 {self.bcubed_f1:.4f}",
            ]
        )


def evaluate_clusters(clusters: Any, truth: Any) -> ClusterEvaluation:
    """Compare clusters with the truth: by pairs, by records (B-cubed) and cluster by cluster.

    Parameters
    ----------
    clusters, truth
        Which entity each record is of: a pandas, polars or Arrow table with columns `id` and
        `entity_id`, the path of a file with these, or a run with `clusters`. Every id of the truth
        must be in the clusters. Of several files, with a column `file`, too. Tables that Splink,
        dedupe and Zingg write are taken as they are, as `read_clusters` has it.
    """
    found = entities_of(clusters, "clusters")
    several = len(found) > 0 and pc.all(pc.match_substring(found["id"], ":")).as_py()
    true = entities_of(truth, "truth", by_file=several)
    at = pc.index_in(true["id"], found["id"].combine_chunks()).combine_chunks()
    if at.null_count:
        raise InputError(
            f"{at.null_count:,} ids of the truth are not in the clusters. Ids are compared as "
            "text. Give the clusters of all records, those of one record among them."
            + (" The clusters are of several files: give the truth a column file, too." * several)
        )
    cluster = numbered(found["entity_id"].take(at))
    entity = numbered(true["entity_id"])
    result = _compared(cluster, entity, len(found) - len(true))
    if (people := getattr(clusters, "entities", None)) is not None:
        result = replace(result, people_interval=people.interval())
    return result


def _compared(cluster: Ints, entity: Ints, n_left_out: int) -> ClusterEvaluation:
    """Of the records that both have: number of the cluster and of the entity of each."""
    n, sizes, true_sizes = len(cluster), np.bincount(cluster), np.bincount(entity)
    both, shared = np.unique(cluster * (len(true_sizes) + 1) + entity, return_counts=True)
    of_cluster, of_entity = np.divmod(both, len(true_sizes) + 1)
    pairs, found, true = (n_pairs(counts) for counts in (shared, sizes, true_sizes))
    by_cluster = float((shared**2 / sizes[of_cluster]).sum()) if n else 0.0
    by_entity = float((shared**2 / true_sizes[of_entity]).sum()) if n else 0.0
    exact = int(((shared == sizes[of_cluster]) & (shared == true_sizes[of_entity])).sum())
    return ClusterEvaluation(
        n_records=n,
        n_left_out=n_left_out,
        n_clusters=len(sizes),
        n_entities=len(true_sizes),
        precision=_share(pairs, found),
        recall=_share(pairs, true),
        f1=_share(2 * pairs, found + true),
        bcubed_precision=_share(by_cluster, n),
        bcubed_recall=_share(by_entity, n),
        bcubed_f1=_share(2 * by_cluster * by_entity / max(1, n), by_cluster + by_entity),
        exact_clusters=exact,
        exact_precision=_share(exact, len(sizes)),
        exact_recall=_share(exact, len(true_sizes)),
    )


def n_pairs(sizes: Ints) -> int:
    """Pairs within groups of these sizes."""
    return int(sizes @ (sizes - 1)) // 2


def _share(part: float, whole: float) -> float:
    return part / whole if whole else math.nan


# --- reading --------------------------------------------------------------------------------------


def holds_clusters(source: Any) -> bool:
    """Whether this says which entity each record is of, and not which pairs are links."""
    if isinstance(source, str | os.PathLike):
        if (Path(source) / "clusters.parquet").is_file():
            return True
        return Path(source).is_file() and says_who(file_table(Path(source)))
    return hasattr(type(source), "clusters") or says_who(source)


def entities_of(source: Any, role: str, by_file: bool = True) -> pa.Table:
    """Ids and entities as two columns of text, each id once; of several files, as "file:id"."""
    table = in_own_columns(with_table(source, role), role, one_file=role != "truth")
    if FILE in table.column_names and by_file:
        table = _called_by_file(table, role)
    named = pa.table({name: id_text(table[name], f"{role}.{name}") for name in (ID, ENTITY)})
    again, _ = repeats(named["id"].combine_chunks())
    if again:
        raise InputError(f"{again:,} records are in {role} more than once. Give each record once.")
    return named


def _called_by_file(table: pa.Table, role: str) -> pa.Table:
    """Ids as "file:id", from the columns of both."""
    parts = [id_text(table[name], f"{role}.{name}").combine_chunks() for name in (FILE, ID)]
    called = pc.binary_join_element_wise(*parts, pa.scalar(":", parts[0].type))
    return pa.table({ID: called, ENTITY: table[ENTITY]})


def numbered(column: pa.ChunkedArray) -> Ints:
    """A number for each distinct value."""
    codes = column.combine_chunks().dictionary_encode().indices
    return np.asarray(codes.to_numpy(zero_copy_only=False), np.int64)
