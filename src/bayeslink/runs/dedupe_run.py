"""The people of one file, and what can be asked of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from bayeslink.dedupe_settings import DedupeSettings
from bayeslink.linkage.clustering import REVIEW, ClusterDecision
from bayeslink.linkage.forest import ForestFit
from bayeslink.model.weights import Parameters
from bayeslink.notebook_html import Shown
from bayeslink.pairs.pair_tables import in_kind
from bayeslink.pairs.source import PairSource
from bayeslink.runs.any_run import AnyRun, made_with
from bayeslink.runs.cluster_evaluation import ClusterEvaluation, evaluate_clusters
from bayeslink.runs.cluster_tables import table_of, with_own_ids
from bayeslink.runs.dedupe_json import LISTS, UPDATE
from bayeslink.runs.entity_ids import Changed, in_words
from bayeslink.runs.link_toml import dump
from bayeslink.runs.people import people_table, with_entities
from bayeslink.sampling.clusters import ClusterPosterior
from bayeslink.sampling.entities import Entities

if TYPE_CHECKING:
    from bayeslink.linking.stacking import Stack
    from bayeslink.plots import DedupePictures
    from bayeslink.runs.kept_values import Keep
    from bayeslink.sampling.many_lists import ManyLists

SURE = 0.9  # probability of membership, below which a record is worth a look


@dataclass(frozen=True, eq=False)
class DedupeRun(AnyRun, Shown):
    """The people of one file: who is who, how many, and how sure."""

    pairs: PairSource = field(repr=False)
    fit: ForestFit = field(repr=False)
    posterior: ClusterPosterior = field(repr=False)
    decision: ClusterDecision
    table: pa.Table = field(repr=False)  # a row a record, as `clusters`, as Arrow
    settings: DedupeSettings = field(repr=False)
    seconds: Mapping[str, float]
    warnings: tuple[str, ...]
    sources: tuple[Any, ...] | None = field(default=None, repr=False)  # the file, as given
    directory: Path | None = None  # from which the run was opened
    stack: Stack | None = field(default=None, repr=False)  # the files, of several
    changed: Changed | None = field(default=None, repr=False)  # of an update, against the earlier

    def __repr__(self) -> str:
        return "\n".join(self.report_lines())

    @property
    def entities(self) -> Entities:
        """How many people: `entities.interval()`, `entities.draws`, `entities.sizes()`."""
        return self.posterior.entities

    @property
    def clusters(self) -> Any:
        """A row a record, in the kind of table that the file came as.

        Columns: of several files, file; id; entity_id, the id of the record that represents its
        person (of several files, "file:id"), or after an update what it was before; size; the
        probability of membership: the mean probability to be one with the others of the cluster,
        and of a single record to have no other; representative; decision: single, cluster, review.
        """
        return in_kind(with_own_ids(self.table, self.pairs), self.pairs.kind)

    @property
    def parameters(self) -> Parameters:
        """Posterior means of m and u."""
        return self.posterior.parameters

    @property
    def kind(self) -> str:
        """The kind of table that the file came as, and that tables are given in."""
        return self.pairs.kind

    @property
    def plots(self) -> DedupePictures:
        """The pictures of this run: `run.plots.people()` is `bl.plots.people(run)`."""
        pictures: DedupePictures = import_module("bayeslink.plots").DedupePictures(self)
        return pictures

    @property
    def changes(self) -> Any:
        """Of an update: what became of the earlier people who are not as they were; else None.

        A row an earlier id, and one for each part of a person that was split. Columns:
        entity_id_before; entity_id now; what: grew (other records joined it), merged (its records
        are of an earlier person with another id), split, retired (an earlier update did that);
        records_before, records_shared, records now.
        """
        if self.changed is None:
            return None
        return in_kind(with_own_ids(self.changed.table, self.pairs), self.pairs.kind)

    def evaluate(self, truth: Any) -> ClusterEvaluation:
        """Compare the clusters with the true ones, as `bl.evaluate(run, truth)` does."""
        return evaluate_clusters(self, truth)

    def pair_probabilities(self) -> Any:
        """Table of pairs that may be of one person: id_a, id_b, probability, match_weight."""
        return self.posterior.pair_probabilities()

    def people_by_files(self, level: float = 0.95) -> list[dict[str, Any]]:
        """Of several files: people in exactly these files, expected and with their interval."""
        return self.entities.by_files(level)

    def population(self, files: Sequence[str] | None = None, **how: Any) -> ManyLists:
        """Of several files: how many people there are, in these or in none of them.

        As `population_from_lists` has it, from the draws of this run; `how` is what that takes.
        """
        return self.entities.population(files, **how)

    def people(self, keep: Keep | None = None) -> Any:
        """The records with a row a person: entity_id, records, and the file's columns.

        Of several files: entity_id, records, for each file the ids of the person's records there,
        and the columns of all. A value that is missing is taken from the person's other records.

        Parameters
        ----------
        keep
            The value of a column where records differ, as `dedupe` and `link_many` take it:
            "longest", or by column {"address": "newest:changed_on", "*": "longest"}; as in the
            settings unless given.
        """
        return in_kind(people_table(self, keep), self.pairs.kind)

    def with_entities(self, file: str | None = None) -> Any:
        """The file as it came, with a column entity_id; of several, the one that is named."""
        return with_entities(self, file)

    def save(
        self,
        directory: Any,
        *,
        force: bool = False,
        shared: bool = False,
        people: bool | str = True,
    ) -> None:
        """Write the directory that `bayeslink dedupe -o` writes.

        Parameters
        ----------
        force
            Replace a run directory that is there.
        shared
            Let the group read it; else its owner alone may.
        people
            Write people and with_entities, too: these hold all columns of the file. Where Spark has
            the records, the place where its executors write with_entities, such as "s3://…".
        """
        from bayeslink.runs.dedupe_saving import save_dedupe

        save_dedupe(self, directory, force=force, shared=shared, people=people)

    def report(self, path: Any = None, *, truth: Any = None, values: bool = True) -> Path:
        """Write the run as one HTML file, and return its path.

        Parameters
        ----------
        path
            The file to write; of a run that was opened, report.html in its directory unless given.
        truth
            Which record is of whom, a file or a table with id and entity_id: adds how well it went.
        values
            Whether the clusters show the records' values and ids.
        """
        page: Any = import_module("bayeslink.report.cluster_page")  # of a room above
        written: Path = page.report(self, path, truth=truth, values=values)
        return written

    def as_table(self, name: str) -> Any:
        """A table of the run's directory by its name, with ids as text; None if it has none."""
        return table_of(self, name)

    @property
    def toml(self) -> str:
        """The settings as dedupe.toml has them."""
        return dump(self.settings)

    def summary(self) -> dict[str, Any]:
        """The run in a few numbers, as run.json and `--json` have them."""
        post, decision, table = self.posterior, self.decision, self.table
        sizes = table["size"].to_numpy()
        return {
            "task": "dedupe",
            "n_records": len(table),
            "n_pairs": self.pairs.n_pairs,
            "people": self.entities.mean,
            "people_interval": list(self.entities.interval()),
            "people_by_records": self.entities.sizes(),
            "clusters": decision.n_entities,
            "people_with_several": int(((sizes > 1) & table["representative"].to_numpy()).sum()),
            "records_with_another": int((sizes > 1).sum()),
            "largest_cluster": int(sizes.max(initial=0)),
            "records_in_doubt": int((decision.membership < SURE).sum()),
            "review_records": int((decision.decision == REVIEW).sum()),
            "expected_false_pairs": float(decision.expected_false),
            "expected_missed_pairs": float(decision.expected_missed),
            "expected_loss": float(decision.expected_loss),
            "theta": float(self.fit.theta),
            "rho": float(post.rho.mean()),
            "candidates": int(post.listed),
            "restricted": bool(post.restricted),
            "chains": int(self.entities.draws.shape[0]),
            "draws": int(self.entities.draws.shape[1]),
            "tune": int(post.tune),
            "seconds": dict(self.seconds),
            "memory": dict(self.pairs.describe().memory),
            "warnings": list(self.warnings),
            **self._lists(),
            **({UPDATE: dict(self.changed.counts)} if self.changed else {}),
        }

    def _lists(self) -> dict[str, Any]:
        """What there is to say of several files."""
        if self.pairs.files is None:
            return {}
        names = self.pairs.files.names
        clean = [names[k] for k in self.pairs.files.clean]
        people = self.entities.by_files()
        return {LISTS: {"names": list(names), "clean": clean, "people": people}}

    def provenance(self) -> dict[str, Any]:
        """Software, input and results: what it takes to repeat and to check the run."""
        return {
            **self.summary(),
            "kind": self.pairs.kind,
            "settings": {
                **self.settings.entries(),
                "fields": [_without_infinity(f.settings) for f in self.settings.fields],
            },
            "kept_every": int(self.posterior.kept_every),
            "diagnostics": [asdict(d) for d in self.posterior.diagnostics()],
            **made_with(self.pairs),
            **({"inputs": [dict(given) for given in self.stack.told]} if self.stack else {}),
        }

    def report_lines(self) -> list[str]:
        """The run in a few sentences."""
        s = self.summary()
        low, high = s["people_interval"]
        several = s.get(LISTS, {})
        of = f" of {_in_words(several['names'])}" if several else ""
        between = f"{low:,}" if low == high else f"{low:,} to {high:,}"
        lines = [
            f"{s['n_records']:,} records{of} are of {between} people (95 % interval); clusters.csv "
            f"has {s['clusters']:,} of them ({sum(self.seconds.values()):.1f} s).",
            f"{s['records_with_another']:,} records have another of the same person: "
            f"{s['people_with_several']:,} people have two records or more, at most "
            f"{s['largest_cluster']:,}.",
            f"Errors to expect in clusters.csv: about {s['expected_false_pairs']:,.1f} pairs of "
            f"two people joined, {s['expected_missed_pairs']:,.1f} pairs of one person missed.",
        ]
        if several:
            by = [
                f"{row['files'].replace('+', ' and ')} {row['low']:,} to {row['high']:,}"
                for row in several["people"]
                if "+" in row["files"]
            ]
            lines.insert(1, f"People in several files, and in no other: {'; '.join(by[:7])}.")
        if UPDATE in s:
            lines.append(in_words(s[UPDATE]))
        if s["review_records"]:
            lines.append(f"Left to review: {s['review_records']:,} records (decision: review).")
        elif s["records_in_doubt"]:
            lines.append(
                f"Look first at the {s['records_in_doubt']:,} records with a "
                f"membership_probability below {SURE}."
            )
        else:
            lines.append(f"No record is in doubt: all are at least {SURE} sure of their person.")
        return lines


def _in_words(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _without_infinity(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a field as JSON has them: a bound that there is not is null."""

    def told(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [told(part) for part in value]
        return None if isinstance(value, float) and math.isinf(value) else value

    return {name: told(value) for name, value in settings.items()}
