"""The tables of a deduplication: each column is defined once, for the writer and for the reader."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bayeslink.errors import InputError
from bayeslink.judging.judgements import LINK, NONLINK
from bayeslink.linkage.clustering import CLUSTER, REVIEW, SINGLE
from bayeslink.runs.entity_ids import WHAT
from bayeslink.runs.people_reach import nearest_others
from bayeslink.runs.schema import NotAsWrittenError
from bayeslink.runs.tables import Column, check_column, parameter_table, schema_of
from bayeslink.sampling.clusters import ClusterPosterior
from bayeslink.sampling.entities import Entities, sets_in_words

if TYPE_CHECKING:
    from bayeslink.pairs.source import PairSource
    from bayeslink.runs.dedupe_run import DedupeRun

CLUSTERS = [
    Column("id", pa.string()),
    Column("entity_id", pa.string()),
    Column("size", pa.int64(), 1),
    Column("membership_probability", pa.float64(), 0, 1),
    Column("representative", pa.bool_()),
    Column("decision", pa.string(), words=frozenset({SINGLE, CLUSTER, REVIEW})),
]
PAIRS = [
    Column("id_a", pa.string()),
    Column("id_b", pa.string()),
    Column("probability", pa.float64(), 0, 1),
    Column("match_weight", pa.float64()),
]
_DRAWN = [
    Column("chain", pa.int32(), 0),
    Column("draw", pa.int32(), 0),
    Column("people", pa.int64(), 1),
    Column("log_posterior", pa.float64()),
    Column("rho", pa.float64(), 0, 1),
]
CHANGES = [
    Column("entity_id_before", pa.string()),
    Column("entity_id", pa.string()),
    Column("what", pa.string(), words=frozenset(WHAT)),
    *(Column(name, pa.int64(), 0) for name in ("records_before", "records_shared", "records")),
]
LABELS = [
    Column("id_a", pa.string()),
    Column("id_b", pa.string()),
    Column("verdict", pa.string(), words=frozenset({LINK, NONLINK})),
]
_REACH = [
    Column("id_a", pa.string()),
    Column("id_b", pa.string()),
    Column("match_weight", pa.float64()),
    Column("times", pa.int64(), 1, 2),
]
TABLES = {
    "clusters": CLUSTERS,
    "pairs": PAIRS,
    "reach": _REACH,
    "draws": _DRAWN,
    "changes": CHANGES,
    "labels": LABELS,
}
_IDS = ("id", "entity_id", "entity_id_before", "id_a", "id_b")
_OF_SIZE = "people_of_"  # and how many records these have
_IN_FILES = "people_in["  # and which files these are in, and no other


def by_person(table: pa.Table) -> pa.Table:
    """Clusters with the records of a person together, whatever the order of the file."""
    first = pc.invert(table["representative"])
    keyed = table.append_column("_first", first)
    names = [n for n in ("entity_id", "_first", "file", "id") if n in keyed.column_names]
    order = pc.sort_indices(keyed, [(name, "ascending") for name in names])
    return table.take(order)


def pair_table(posterior: ClusterPosterior) -> pa.Table:
    """Pairs that may be of one person, the likeliest first; of two ids, the smaller is id_a."""
    source, table = posterior.fit.pairs, posterior.listed_pairs()
    a, b = (table[name].combine_chunks() for name in ("id_a", "id_b"))
    turned = pc.greater(a, b)
    table = table.set_column(0, "id_a", pc.if_else(turned, b, a))
    table = table.set_column(1, "id_b", pc.if_else(turned, a, b))
    table = with_own_ids(table, source)
    keys = [("probability", "descending"), ("id_a", "ascending"), ("id_b", "ascending")]
    return table.take(pc.sort_indices(table, keys))


def table_of(run: DedupeRun, name: str) -> Any:
    """A table that is saved, with ids as text; None for a reach that there is not."""
    made: dict[str, Callable[[], pa.Table | None]] = {
        "clusters": lambda: by_person(run.table),
        "pairs": lambda: with_text(pair_table(run.posterior)),
        "draws": lambda: draw_table(run.posterior),
        "parameters": lambda: parameter_table(run),
        "reach": lambda: nearest_others(run),
        "changes": lambda: _changes(run),
    }
    return made[name]()


def _changes(run: DedupeRun) -> pa.Table:
    if run.changed is None:
        raise InputError("this run is no update, so there are no changes to tell of.")
    return run.changed.table


def with_own_ids(table: pa.Table, source: PairSource) -> pa.Table:
    """Ids as the whole numbers that they came as."""
    kind = source.id_types[0]
    for name in _IDS if kind is not None else ():
        if name in table.column_names:
            at = table.column_names.index(name)
            table = table.set_column(at, name, table[name].cast(pa.type_for_alias(kind)))
    return table


def draw_table(posterior: ClusterPosterior) -> pa.Table:
    """One row a draw: people with their doubt, the log posterior, ρ, m and u."""
    entities = posterior.entities
    chains, draws = entities.draws.shape
    columns: dict[str, Any] = {
        "chain": np.repeat(np.arange(chains, dtype=np.int32), draws),
        "draw": np.tile(np.arange(draws, dtype=np.int32), chains),
        "people": entities.draws.ravel(),
        "log_posterior": posterior.log_posterior.ravel(),
        "rho": posterior.rho.ravel(),
    }
    for k in range(1, entities.of_size.shape[2]):
        columns[f"{_OF_SIZE}{k}"] = entities.of_size[:, :, k].ravel()
    for which, name in list(enumerate(sets_in_words(entities.names)))[1:]:
        assert entities.in_files is not None
        columns[f"{_IN_FILES}{name}]"] = entities.in_files[:, :, which].ravel()
    columns |= {
        name: values.ravel()
        for name, values in posterior.quantities().items()
        if name not in columns
    }
    own = schema_of(_DRAWN)
    return pa.table(
        {
            name: pa.array(values, own.field(name).type if name in own.names else None)
            for name, values in columns.items()
        }
    )


def entities_of(draws: pa.Table, files: Sequence[str] = ()) -> Entities:
    """The number of people, from the table of draws; of several files, by these."""
    chains = int(pc.max(draws["chain"]).as_py()) + 1
    shape = (chains, len(draws) // chains)
    sizes = [name for name in draws.column_names if name.startswith(_OF_SIZE)]
    of_size = np.zeros((*shape, len(sizes) + 1), np.int64)
    for k in range(1, len(sizes) + 1):
        of_size[:, :, k] = draws[f"{_OF_SIZE}{k}"].to_numpy().reshape(shape)
    people, in_files = draws["people"].to_numpy().reshape(shape), None
    if files:
        in_files = np.zeros((*shape, 1 << len(files)), np.int64)
        for which, name in list(enumerate(sets_in_words(files)))[1:]:
            in_files[:, :, which] = draws[f"{_IN_FILES}{name}]"].to_numpy().reshape(shape)
    return Entities(people, of_size, in_files, tuple(files))


def check(
    table: pa.Table, name: str, *, chains: int, draws: int, files: Sequence[str] = ()
) -> None:
    """Raise `NotAsWrittenError` if this is not what a table of a deduplication holds."""
    columns = TABLES[name]
    if files and name == "clusters":
        columns = [Column("file", pa.string(), words=frozenset(files)), *columns]
    if files and name == "draws":
        counts = sets_in_words(files)[1:]
        columns = [*columns, *(Column(f"{_IN_FILES}{one}]", pa.int64(), 0) for one in counts)]
    for column in columns:
        check_column(with_text(table), column)
    if name == "draws" and len(table) != chains * draws:
        raise NotAsWrittenError("the number of draws")
    if name == "draws" and not any(one.startswith(_OF_SIZE) for one in table.column_names):
        raise NotAsWrittenError(f"columns {_OF_SIZE}")


def record_names(clusters: pa.Table) -> pa.Array:
    """What each record is called in the pairs: its id, or "file:id" where there are several."""
    ids = clusters["id"].cast(pa.large_string()).combine_chunks()
    if "file" in clusters.column_names:
        files = clusters["file"].cast(pa.large_string()).combine_chunks()
        return pc.binary_join_element_wise(files, ids, pa.scalar(":", pa.large_string()))
    return ids


def with_text(table: pa.Table) -> pa.Table:
    """Ids as text, as everything inside has them."""
    for name in _IDS:
        if name in table.column_names and pa.types.is_integer(table[name].type):
            at = table.column_names.index(name)
            table = table.set_column(at, name, table[name].cast(pa.string()))
    return table
