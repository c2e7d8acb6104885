"""What changed from one run to another, above all from a run to its repeat with labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bayeslink.data.id_pairs import SIDES, TEXT, id_pairs
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

    added: tuple[Pair, ...]  # links of the later run alone, of records that both runs have
    dropped: tuple[Pair, ...]  # links of the earlier run alone, of such records
    kept: int  # links of both
    elsewhere: tuple[int, int]  # links with a record that the other run does not have
    expected_false: tuple[float | None, float | None]  # None for a point estimate
    links_interval: tuple[Interval | None, Interval | None]  # of L, 95 %

    def as_dict(self) -> dict[str, Any]:
        """Return all numbers by name."""
        return {
            "links_added": len(self.added),
            "links_dropped": len(self.dropped),
            "links_kept": self.kept,
            "links_elsewhere": self.elsewhere,
            "expected_false_links": self.expected_false,
            "links_interval": self.links_interval,
        }

    def __str__(self) -> str:
        counts = f"{len(self.added):,} added, {len(self.dropped):,} dropped, {self.kept:,} kept"
        before, now = self.elsewhere
        elsewhere = (
            f"Links of records that only one of the runs has: {before:,} before, {now:,} now.\n"
            if before or now
            else ""
        )
        false = ("–" if x is None else f"{x:,.1f}" for x in self.expected_false)
        intervals = ("–" if x is None else f"{x[0]:,} to {x[1]:,}" for x in self.links_interval)
        return (
            f"Links: {counts}.\n{elsewhere}"
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
        Of linkages: links added, dropped and kept, errors to expect, people in both files. Links of
        records that the other run does not have are told apart: `elsewhere`.
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
    runs = as_run(before), as_run(after)
    (links, summary), (new_links, new_summary) = map(_results, runs)
    dropped = [pair for pair in links if pair not in new_links]
    added = [pair for pair in new_links if pair not in links]
    both = [pair for pair in links if pair in new_links]
    if not same_inputs(*runs):
        dropped, both = (_had_by(runs[1], pairs, runs[0]) for pairs in (dropped, both))
        added = _had_by(runs[0], added, runs[1])
    kept = len(both)
    name = "expected_false_links"
    return Changes(
        added=tuple(added),
        dropped=tuple(dropped),
        kept=kept,
        elsewhere=(len(links) - kept - len(dropped), len(new_links) - kept - len(added)),
        expected_false=(summary.get(name), new_summary.get(name)),
        links_interval=(_interval(summary), _interval(new_summary)),
    )


def _had_by(run: Run, links: Sequence[Pair], of: Run) -> list[Pair]:
    """The links of another run whose records this run has, too: an update has new ones only."""
    there = np.ones(len(links), bool)
    for side in (0, 1):
        if all(_id_column(one, side) is None for one in (run, of)):
            told, others = (one.provenance()["inputs"][side]["sha256"] for one in (run, of))
            there &= told == others  # numbers of rows are the same records in the same file only
            continue
        rows = np.arange((run.pairs.n_a, run.pairs.n_b)[side], dtype=np.int32)
        names = pa.array([pair[side] for pair in links], TEXT)
        known = run.pairs.ids(side, rows).cast(TEXT)
        there &= pc.is_in(names, value_set=known).to_numpy(zero_copy_only=False)
    return [pair for pair, has in zip(links, there.tolist(), strict=True) if has]


def _id_column(run: Run, side: int) -> Any:
    """What the column with the ids is called; None where rows are numbered."""
    named = run.settings.id
    return named[side] if isinstance(named, tuple) else named


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
