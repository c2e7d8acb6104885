"""The directory of a deduplication as the `DedupeRun` it was, as far as it was written."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bayeslink.dedupe_settings import DedupeSettings
from bayeslink.errors import InputError, reason_of
from bayeslink.judging.judgements import LINK, NONLINK
from bayeslink.linkage.clustering import ClusterDecision
from bayeslink.many_settings import ManySettings
from bayeslink.pairs.pair_tables import in_kind
from bayeslink.pairs.source import Ints
from bayeslink.runs import link_toml
from bayeslink.runs.cluster_tables import TABLES, check, entities_of, with_text
from bayeslink.runs.dedupe_json import LISTS, UPDATE
from bayeslink.runs.dedupe_run import DedupeRun
from bayeslink.runs.entity_ids import Changed
from bayeslink.runs.kept_values import Keep
from bayeslink.runs.people import people_again, table_of_entities
from bayeslink.runs.reading import fingerprint
from bayeslink.runs.run_json import cannot_read, not_as_written
from bayeslink.runs.schema import NotAsWrittenError
from bayeslink.runs.tables import table_in
from bayeslink.sampling.entities import Entities

_BESIDE = (
    "format", "kind", "settings", "kept_every", "diagnostics", "created", "versions", "python",
    "platform", "engine", "inputs", "fields", "files",
)  # fmt: skip


class SavedDedupe(DedupeRun):
    """A deduplication that was saved: its tables, not the sampler's state."""

    def __init__(self, folder: Path, summary: Mapping[str, Any], a: Any = None) -> None:
        vars(self).update(
            seconds=summary["seconds"],
            warnings=tuple(summary["warnings"]),
            directory=folder,
            sources=None if a is None else (a,),
            _summary=summary,
        )

    _summary: Mapping[str, Any]

    @cached_property
    def table(self) -> pa.Table:
        return with_text(self._read("clusters"))

    @cached_property
    def clusters(self) -> Any:
        return in_kind(self._read("clusters"), self.kind)

    @cached_property
    def changed(self) -> Changed | None:
        counts = self._summary.get(UPDATE)
        return None if counts is None else Changed(with_text(self._read("changes")), counts)

    @property
    def changes(self) -> Any:
        return None if UPDATE not in self._summary else in_kind(self._read("changes"), self.kind)

    @cached_property
    def entities(self) -> Entities:
        return entities_of(self._read("draws"), self._files)

    @property
    def _files(self) -> tuple[str, ...]:
        """Names of the files, if there are several."""
        return tuple(self._summary.get(LISTS, {}).get("names", ()))

    @property
    def _kind_of_settings(self) -> type[DedupeSettings]:
        return ManySettings if self._files else DedupeSettings

    def pair_probabilities(self) -> Any:
        """Table of pairs that may be of one person, as pairs.parquet has it."""
        return in_kind(self._read("pairs"), self.kind)

    def people(self, keep: Keep | None = None) -> Any:
        if keep is None:
            return in_kind(self._of_all_columns("people"), self.kind)
        return in_kind(people_again(self, keep, self._saved_records), self.kind)

    def with_entities(self, file: str | None = None) -> Any:
        return in_kind(self._of_all_columns(table_of_entities(self._files, file)), self.kind)

    def _of_all_columns(self, name: str) -> pa.Table:
        if self.kind == "spark" and f"{name}.parquet" not in self._summary["files"]:
            raise InputError(
                f"{name} is not in {self._folder}, as Spark has the records. Join run.clusters "
                "with them by id, or read with_entities from where it was written (--people-to)."
            )
        return self._parquet(name)

    def _saved_records(self, name: str) -> pa.Table:
        """A file with entity_id, which holds all of its columns, as it was saved with the run."""
        if f"{name}.parquet" not in self._summary["files"] and self.kind != "spark":
            toml = self._folder / self._kind_of_settings.TOML
            raise InputError(
                "people are made anew from the records that are saved with a run, and this one was "
                "saved without them (--no-people). Find the people again, with keep in "
                f"{toml}: bayeslink {self._command} --config {toml} -o NEW."
            )
        return self._of_all_columns(name)

    def as_table(self, name: str) -> Any:
        if name == "reach" and "reach.parquet" not in self._summary["files"]:
            return None
        return with_text((self._read if name in TABLES else self._parquet)(name))

    @property
    def fingerprint(self) -> str:
        return fingerprint(self._summary["files"], ("pairs", "clusters", "reach"))

    @property
    def toml(self) -> str:
        path = self._folder / self._kind_of_settings.TOML
        try:
            return path.read_text("utf-8")
        except (OSError, ValueError) as error:
            raise cannot_read(path, reason_of(error)) from None

    @cached_property
    def settings(self) -> DedupeSettings:
        kind = self._kind_of_settings
        entries = link_toml.load(self._folder / kind.TOML, kind)
        entries.pop("output", None)
        entries.pop("labels", None)  # known before the run, and kept with it
        known = self._known() if "labels.parquet" in self._summary["files"] else {}
        return kind.of(**{"id": None, **entries, **known}, started_in=os.getcwd())

    def _known(self) -> dict[str, list[tuple[str, str]] | None]:
        """Pairs that were known before the run."""
        rows = self._read("labels").to_pylist()
        return {
            name: [(row["id_a"], row["id_b"]) for row in rows if row["verdict"] == verdict] or None
            for name, verdict in (("known_links", LINK), ("known_nonlinks", NONLINK))
        }

    @cached_property
    def decision(self) -> ClusterDecision:
        table, told = self.table, self._summary
        return ClusterDecision(
            _faces(table),
            table["membership_probability"].to_numpy(),
            np.array(table["decision"].to_pylist()),
            told["expected_false_pairs"],
            told["expected_missed_pairs"],
            told["expected_loss"],
        )

    def summary(self) -> dict[str, Any]:
        return {key: value for key, value in self._summary.items() if key not in _BESIDE}

    def provenance(self) -> dict[str, Any]:
        return {k: v for k, v in self._summary.items() if k not in ("format", "files")}

    def save(self, directory: Any, **how: Any) -> None:
        raise self._not_here()

    # What only the run that was made in Python has.
    @property
    def pairs(self) -> Any:
        raise self._not_here()

    @property
    def fit(self) -> Any:
        raise self._not_here()

    @property
    def posterior(self) -> Any:
        raise self._not_here()

    @property
    def _folder(self) -> Path:
        return Path(str(self.directory))

    @property
    def _command(self) -> str:
        return "link-many" if self._files else "dedupe"

    @property
    def kind(self) -> str:
        return str(self._summary["kind"])

    def _not_here(self) -> InputError:
        toml = self._kind_of_settings.TOML
        return InputError(
            f"{self._folder} holds the tables of a deduplication and not its draws of clusters: "
            f"bayeslink {self._command} --config {self._folder / toml} -o NEW makes them again. "
            "Here are .clusters, .entities, .people(), .with_entities(), .pair_probabilities(), "
            ".summary(), .evaluate(), .report(), .review(), .plots.people(), .plots.thresholds()."
        )

    def _read(self, name: str) -> pa.Table:
        """A table, checked."""
        table, told = self._parquet(name), self._summary
        try:
            check(table, name, chains=told["chains"], draws=told["draws"], files=self._files)
        except NotAsWrittenError as error:
            raise not_as_written(self._folder / f"{name}.parquet", str(error)) from None
        return table

    def _parquet(self, name: str) -> pa.Table:
        path = self._folder / f"{name}.parquet"
        try:
            content = path.read_bytes()
            if self._summary["files"].get(path.name) != hashlib.sha256(content).hexdigest():
                raise ValueError("it is not as the run wrote it")
            table = table_in(content)
        except (OSError, ValueError, MemoryError, pa.ArrowException) as error:
            raise cannot_read(path, reason_of(error)) from None
        return table


def _faces(table: pa.Table) -> Ints:
    """Of each row, that of the record that represents its person."""
    entity = table["entity_id"].combine_chunks().dictionary_encode().indices.to_numpy()
    face = np.zeros(int(entity.max()) + 1, np.int64)
    at = np.flatnonzero(table["representative"].to_numpy())
    face[entity[at]] = at
    return face[entity]
