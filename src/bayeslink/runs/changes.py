"""What changed from one run to another, above all from a run to its repeat with labels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bayeslink.data.id_pairs import SIDES, id_pairs
from bayeslink.judging.judgements import Pair
from bayeslink.runs.cluster_changes import ClusterChanges, cluster_changes
from bayeslink.runs.cluster_evaluation import holds_clusters
from bayeslink.runs.cluster_files import as_frame
from bayeslink.runs.dedupe_run import DedupeRun
from bayeslink.runs.opening import as_run, open_run
from bayeslink.runs.run import Run

Interval = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Changes:
    """Two runs compared. Where there are two numbers, they are before and after."""

    added: tuple[Pair, ...]  # links of the later run alone
    dropped: tuple[Pair, ...]  # links of the earlier run alone
    kept: int  # links of both
    expected_false: tuple[float | None, float | None]  # None for a point estimate
    links_interval: tuple[Interval | None, Interval | None]  # of L, 95 %

    def as_dict(self) -> dict[str, Any]:
        """Return all numbers by name."""
        return {
            "links_added": len(self.added),
            "links_dropped": len(self.dropped),
            "links_kept": self.kept,
            "expected_false_links": self.expected_false,
            "links_interval": self.links_interval,
        }

    def __str__(self) -> str:
        counts = f"{len(self.added):,} added, {len(self.dropped):,} dropped, {self.kept:,} kept"
        false = ("–" if x is None else f"{x:,.1f}" for x in self.expected_false)
        intervals = ("–" if x is None else f"{x[0]:,} to {x[1]:,}" for x in self.links_interval)
        return (
            f"Links: {counts}.\n"
            f"Links expected to be false: {' before, '.join(false)} now.\n"
            f"Records in both files, 95 % interval: {' before, '.join(intervals)} now."
        )


def changes(before: Any, after: Any) -> Changes | ClusterChanges:
    """Compare two runs of the same files, each as a run or its directory.

    Clusters are compared with clusters: those of `dedupe` or `link_many`, or of another tool, as
    `read_clusters` reads them.

    Returns
    -------
    Changes
        Of linkages: links added, dropped and kept, errors to expect, people in both files.
    ClusterChanges
        Of clusters: people before and after, those that are the same, pairs added and dropped.
    """
    before, after = as_frame(before), as_frame(after)
    if holds_clusters(before) or holds_clusters(after):
        return cluster_changes(*(_opened(source) for source in (before, after)))
    return link_changes(before, after)


def _opened(source: Any) -> Any:
    """A run directory as its run, which has an interval; all else as it is."""
    inside = isinstance(source, str | Path) and (Path(source) / "run.json").is_file()
    return open_run(source) if inside else source


def link_changes(before: Run | str | Path, after: Run | str | Path) -> Changes:
    """Compare two linkages, as `changes` does."""
    (links, summary), (new_links, new_summary) = map(_results, map(as_run, (before, after)))
    name = "expected_false_links"
    return Changes(
        added=tuple(pair for pair in new_links if pair not in links),
        dropped=tuple(pair for pair in links if pair not in new_links),
        kept=len(links.keys() & new_links.keys()),
        expected_false=(summary.get(name), new_summary.get(name)),
        links_interval=(_interval(summary), _interval(new_summary)),
    )


def same_inputs(before: Run | DedupeRun, after: Run | DedupeRun) -> bool:
    """Whether both runs are of the same files; of tables, whose content is not kept, of as many."""
    files = (
        [(given["sha256"], given["records"]) for given in run.provenance()["inputs"]]
        for run in (before, after)
    )
    return next(files) == next(files)


def _interval(summary: dict[str, Any]) -> Interval | None:
    found = summary.get("links_interval")
    return found and (int(found[0]), int(found[1]))


def _results(run: Run) -> tuple[dict[Pair, None], dict[str, Any]]:
    """The links, in their order, and the summary."""
    ids = id_pairs(run.table, "links")
    pairs = zip(*(ids[side].to_pylist() for side in SIDES), strict=True)
    return dict.fromkeys(pairs), run.summary()
