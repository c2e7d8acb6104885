"""Who is who, read as other tools write it, and written as they do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bayeslink.distinct import distinct
from bayeslink.errors import InputError, OutputError, SettingsError
from bayeslink.exchange.compared_tables import as_arrow
from bayeslink.pairs.pair_tables import in_kind
from bayeslink.private import written_whole
from bayeslink.runs.cluster_files import as_frame, in_own_columns, with_table
from bayeslink.runs.cluster_tables import by_person, record_names
from bayeslink.runs.dedupe_run import DedupeRun
from bayeslink.runs.row_files import RowWriter

if TYPE_CHECKING:
    from bayeslink.pairs.source import Floats, Ints


def read_clusters(
    source: Any,
    *,
    id: str | None = None,
    entity_id: str | None = None,
    file: str | None = None,
) -> Any:
    """Clusters of another tool as a table with the columns id and entity_id, for `evaluate`.

    These are told by their columns: Splink's cluster_id, unique_id and, of several files,
    source_dataset; Cluster ID, as the examples of dedupe write it, with source file; Zingg's
    z_cluster with z_zsource or z_source. A record without a cluster is one by itself.

    Parameters
    ----------
    source
        A pandas, polars or Arrow table, the path of a file, or what Splink's clustering gives.
    id, entity_id, file
        The columns with the id of a record, that of its cluster, and of several files the name of
        its file, where they are called otherwise. dedupe and Zingg keep the names of the input, so
        name the column of ids unless it is `id` or `unique_id`.

    Returns
    -------
    table
        In the kind that came, Arrow for a path: file, where there are several; id; entity_id.
    """
    source, kind = as_frame(source), "arrow"
    if hasattr(source, "__arrow_c_stream__"):
        source, kind = as_arrow(source)
    table = with_table(source, "clusters")
    return in_kind(in_own_columns(table, "clusters", id=id, entity_id=entity_id, file=file), kind)


def write_clusters(
    run: DedupeRun, path: Any, *, style: str = "splink", force: bool = False
) -> None:
    """Write the people of a run, a row a record, in the columns of another tool.

    Parameters
    ----------
    run
        What `dedupe` or `link_many` gave, or what was opened.
    path
        A file that ends in .csv or .parquet.
    style
        "splink": cluster_id (the entity_id), source_dataset, unique_id; "dedupe": Cluster ID,
        confidence_score (the membership_probability), source file, id; "zingg": z_cluster,
        z_minScore and z_maxScore (the least and the greatest probability to be one with another
        record of the cluster, 0 of a single record), z_zsource, id. The column of the file is there
        for several files. `read_clusters` reads all three.
    force
        Replace a file that is there.
    """
    if not isinstance(run, DedupeRun):
        raise SettingsError(
            "write_clusters takes what dedupe or link_many gave. bl.splink_clusters(run) is a "
            "table of the clusters of a linkage."
        )
    if style not in _STYLES:
        raise SettingsError(f"style must be one of {', '.join(_STYLES)}, got {style!r}.")
    path = Path(path)
    if path.suffix not in (".csv", ".parquet"):
        raise SettingsError(f"{path.name} must end in .csv or .parquet.")
    if path.exists() and not force:
        raise OutputError(f"{path} exists. Choose another name, or say force=True to replace it.")
    try:
        with written_whole(path) as out, closing(RowWriter(out, path.suffix)) as target:
            target.write(_STYLES[style](run))
    except OSError as error:
        raise OutputError(
            f"cannot write {path}: {error.strerror}. Check the permissions and the space left."
        ) from None


# --- the people of a run in Splink's columns ----------------------------------------------------


def predictions_of(run: DedupeRun, names: Sequence[str] | None) -> pa.Table:
    """Pairs that may be one person, as Splink's predictions."""
    pairs, table = run.as_table("pairs"), run.table
    rows = [_rows(table, pairs[name]) for name in ("id_a", "id_b")]
    gammas = {
        name: pc.subtract(pairs[name].cast(pa.int32()), 1)
        for name in pairs.column_names
        if name.startswith("gamma_")
    }
    return pa.table(
        {
            "match_weight": pairs["match_weight"],
            "match_probability": pairs["probability"],
            **_both(run, table, rows, names),
            **gammas,
            "match_key": pa.array(["0"] * len(pairs), pa.string()),
        }
    )


def clusters_of(run: DedupeRun, names: Sequence[str] | None) -> pa.Table:
    """A row a record: cluster_id, of several files source_dataset, unique_id."""
    table = by_person(run.table)
    files = _files(run, table, names)
    return pa.table(
        {
            "cluster_id": table["entity_id"],
            **({} if files is None else {"source_dataset": files}),
            "unique_id": _own_ids(run, table),
        }
    )


def labels_of(run: DedupeRun, names: Sequence[str] | None) -> pa.Table:
    """Every pair within a cluster, with a clerical_match_score of 1."""
    table = by_person(run.table)
    rows = _within(table)
    both = _both(run, table, rows, names)
    return pa.table({**both, "clerical_match_score": pa.array(np.ones(len(rows[0])))})


def _both(
    run: DedupeRun, table: pa.Table, rows: Sequence[Ints], names: Sequence[str] | None
) -> dict[str, Any]:
    """Ids and, of several files, data sets of the two records of each pair."""
    files, ids = _files(run, table, names), _own_ids(run, table)
    out: dict[str, Any] = {}
    if files is not None:
        out = {f"source_dataset_{x}": files.take(pa.array(rows[k])) for k, x in enumerate("lr")}
    return out | {f"unique_id_{x}": ids.take(pa.array(rows[k])) for k, x in enumerate("lr")}


def _files(run: DedupeRun, table: pa.Table, names: Sequence[str] | None) -> pa.Array | None:
    """The data set of each record, of several files: under their names, or those given."""
    own = run.entities.names
    if not own:
        if names is not None:
            raise SettingsError("names is for several files, and this run is of one. Leave it out.")
        return None
    if names is not None and (isinstance(names, str) or len(names) != len(own)):
        raise SettingsError(f"names takes a name for each of {', '.join(own)}, got {names!r}.")
    at = pc.index_in(table["file"].combine_chunks().cast(pa.string()), pa.array(own, pa.string()))
    return pa.array([str(name) for name in names or own], pa.string()).take(at)


def _own_ids(run: DedupeRun, table: pa.Table) -> pa.Array:
    """Ids of records, as whole numbers where they came so."""
    ids = table["id"].combine_chunks()
    if run.kind == "spark":
        return ids
    own = as_arrow(run.clusters)[0]["id"].type
    return ids.cast(own) if pa.types.is_integer(own) else ids


def _rows(table: pa.Table, names: pa.ChunkedArray) -> Ints:
    """Rows of the records that are called so."""
    known = record_names(table)
    at: Ints = pc.index_in(names.cast(known.type).combine_chunks(), known).to_numpy()
    return at


def _within(table: pa.Table) -> tuple[Ints, Ints]:
    """Rows of all pairs within clusters, where the records of a cluster stand together."""
    number = np.cumsum(np.append(False, _changes(table["entity_id"])))
    left, right = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    size = np.bincount(number)
    start = np.cumsum(size) - size
    for n in distinct(size[size > 1]):
        a, b = np.triu_indices(n, 1)
        first = start[size == n][:, None]
        left.append((first + a).ravel())
        right.append((first + b).ravel())
    return np.concatenate(left), np.concatenate(right)


def _changes(column: pa.ChunkedArray) -> Any:
    """Where a value is not the one before it."""
    if len(column) < 2:
        return np.zeros(max(0, len(column) - 1), bool)
    return pc.not_equal(column.slice(1), column.slice(0, len(column) - 1)).to_numpy()


# --- and in those of dedupe and Zingg -----------------------------------------------------------


def _as_splink(run: DedupeRun) -> pa.Table:
    return clusters_of(run, None)


def _as_dedupe(run: DedupeRun) -> pa.Table:
    table = by_person(run.table)
    columns = {
        "Cluster ID": _numbers(table),
        "confidence_score": table["membership_probability"],
    }
    return pa.table({**columns, **_named(run, table, "source file")})


def _as_zingg(run: DedupeRun) -> pa.Table:
    table = by_person(run.table)
    least, greatest = _scores(run, table)
    columns = {"z_cluster": _numbers(table), "z_minScore": least, "z_maxScore": greatest}
    return pa.table({**columns, **_named(run, table, "z_zsource")})


_STYLES: dict[str, Callable[[DedupeRun], pa.Table]] = {
    "splink": _as_splink,
    "dedupe": _as_dedupe,
    "zingg": _as_zingg,
}


def _numbers(table: pa.Table) -> pa.Array:
    """A number for each cluster, from 0."""
    changed = _changes(table["entity_id"])
    return pa.array(np.cumsum(np.append(False, changed))[: len(table)], pa.int64())


def _named(run: DedupeRun, table: pa.Table, file: str) -> dict[str, pa.Array]:
    files = _files(run, table, None)
    return {**({} if files is None else {file: files}), "id": _own_ids(run, table)}


def _scores(run: DedupeRun, table: pa.Table) -> tuple[Floats, Floats]:
    """Of each record, the least and the greatest probability to be one with another of its own.

    A pair that is not listed has a probability of nearly 0.
    """
    pairs = run.as_table("pairs")
    a, b = (_rows(table, pairs[name]) for name in ("id_a", "id_b"))
    number, p = _numbers(table).to_numpy(), pairs["probability"].to_numpy()
    keep = number[a] == number[b]
    rows, p = np.concatenate([a[keep], b[keep]]), np.concatenate([p[keep], p[keep]])
    least, greatest = np.full(len(table), np.inf), np.zeros(len(table))
    np.minimum.at(least, rows, p)
    np.maximum.at(greatest, rows, p)
    others = table["size"].to_numpy() - 1
    least[np.bincount(rows, minlength=len(table)) < np.maximum(others, 1)] = 0
    return least, greatest


def refuse_one_file(pairs: pa.Table, named: bool, told: bool) -> None:
    """Refuse Splink's predictions of one file with itself.

    Parameters
    ----------
    named
        Whether the predictions name data sets; those of one file do not.
    told
        Whether the settings say that they are of one file.
    """
    left, right = (pairs[f"unique_id_{side}"] for side in "lr")
    if told or (not named and pc.any(pc.is_in(left, right.combine_chunks())).as_py()):
        raise InputError(
            "these are predictions of one file with itself (link_type dedupe_only). Only pairs "
            "that Splink's blocking rules brought forward could be one person, and the number of "
            "people would hang on these rules. Compare all pairs of the file: bl.dedupe(a, "
            "bl.read_splink(settings).fields). If they are of two files, keep source_dataset_l and "
            "source_dataset_r."
        )
