"""What differs between two ways to put records together: two runs, or a run and another tool's."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow.compute as pc

from bayeslink.errors import InputError
from bayeslink.runs.cluster_evaluation import Ints, entities_of, n_pairs, numbered

Interval = tuple[int, int]


@dataclass(frozen=True, slots=True)
class ClusterChanges:
    """Two sets of clusters compared. Where there are two numbers, they are before and after.

    Attributes
    ----------
    records
        Records of each.
    n_both
        Records of both, which alone count below.
    people
        Clusters.
    same
        Clusters that have the same records in both.
    pairs_added, pairs_dropped, pairs_kept
        Pairs of records together after only, before only, and both times.
    people_interval
        People of all records, at 95 %; None for what is no run.
    """

    records: tuple[int, int]
    n_both: int
    people: tuple[int, int]
    same: int
    pairs_added: int
    pairs_dropped: int
    pairs_kept: int
    people_interval: tuple[Interval | None, Interval | None]

    def as_dict(self) -> dict[str, Any]:
        """Return all numbers by name."""
        return asdict(self)

    def __str__(self) -> str:
        before, after = self.people
        intervals = ("–" if x is None else f"{x[0]:,} to {x[1]:,}" for x in self.people_interval)
        gone, new = (n - self.n_both for n in self.records)
        only = f" In the first only: {gone:,}; in the second only: {new:,}." if gone or new else ""
        return (
            f"Records in both: {self.n_both:,}.{only}\n"
            f"Clusters of these: {before:,} before, {after:,} now; {self.same:,} are the same.\n"
            f"Pairs of one person: {self.pairs_added:,} added, {self.pairs_dropped:,} dropped, "
            f"{self.pairs_kept:,} kept.\n"
            f"People, 95 % interval: {' before, '.join(intervals)} now."
        )


def cluster_changes(before: Any, after: Any) -> ClusterChanges:
    """Compare two sets of clusters, of the records that both have."""
    tables = entities_of(before, "clusters before"), entities_of(after, "clusters after")
    at = pc.index_in(tables[1]["id"], tables[0]["id"].combine_chunks()).combine_chunks()
    both = at.is_valid()
    if not pc.any(both).as_py():
        raise InputError(
            "no record is in both. Ids are compared as text, and as file:id where there is a "
            "column with the file; give clusters of the same files."
        )
    first = numbered(tables[0]["entity_id"].take(at.drop_null()))
    second = numbered(tables[1]["entity_id"].filter(both))
    return _compared(first, second, (len(tables[0]), len(tables[1])), (before, after))


def _compared(
    first: Ints, second: Ints, records: tuple[int, int], sources: tuple[Any, Any]
) -> ClusterChanges:
    """Of the records that both have: the number of the cluster of each, before and after."""
    sizes, later = np.bincount(first), np.bincount(second)
    joint, shared = np.unique(first * (len(later) + 1) + second, return_counts=True)
    of_first, of_second = np.divmod(joint, len(later) + 1)
    kept, dropped, added = (n_pairs(counts) for counts in (shared, sizes, later))
    same = (shared == sizes[of_first]) & (shared == later[of_second])
    return ClusterChanges(
        records=records,
        n_both=len(first),
        people=(len(sizes), len(later)),
        same=int(same.sum()),
        pairs_added=added - kept,
        pairs_dropped=dropped - kept,
        pairs_kept=kept,
        people_interval=(_interval(sources[0]), _interval(sources[1])),
    )


def _interval(source: Any) -> Interval | None:
    people = getattr(source, "entities", None)
    return None if people is None else people.interval()
