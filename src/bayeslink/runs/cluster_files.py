"""Which record is of whom, in the columns that this package and other tools give it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bayeslink.data.id_pairs import SIDES, TEXT, id_text
from bayeslink.data.records import read_records
from bayeslink.errors import InputError

FILE, ID, ENTITY = "file", "id", "entity_id"
ALONE = "single:"  # and its id: the cluster of a record that a tool has in none


@dataclass(frozen=True, slots=True)
class Style:
    """The columns of a tool's clusters; letter case does not tell names apart."""

    tool: str
    entity: str
    ids: tuple[str, ...]
    files: tuple[str, ...]

    def named(self, table: pa.Table) -> tuple[str | None, str | None, str | None]:
        """The columns of a table with the entity, the id and the file, if they are there."""
        known = {name.casefold(): name for name in reversed(table.column_names)}

        def first(names: Sequence[str]) -> str | None:
            return next((known[name] for name in names if name in known), None)

        return first([self.entity]), first(self.ids), first(self.files)


OWN = Style("bayeslink", ENTITY, (ID,), (FILE,))
OTHERS = (
    Style("splink", "cluster_id", ("unique_id", ID), ("source_dataset",)),
    Style("dedupe", "cluster id", (ID, "unique_id"), ("source file",)),
    Style("zingg", "z_cluster", (ID, "unique_id"), ("z_zsource", "z_source")),
)


def says_who(table: Any) -> bool:
    """Whether a table has the columns of clusters, and not those of pairs."""
    names = getattr(table, "column_names", getattr(table, "columns", ()))
    found = {name.casefold() for name in names if isinstance(name, str)}
    if ENTITY in found:
        return True
    return any(style.entity in found for style in OTHERS) and not {*SIDES} <= found


def as_frame(source: Any) -> Any:
    """What Splink gives as a frame; all else as it is."""
    return source.as_pandas_dataframe() if hasattr(source, "as_pandas_dataframe") else source


def with_table(source: Any, role: str) -> pa.Table:
    """Clusters as a table: of a run, a directory, a file, a frame, or what Splink gives."""
    if getattr(source, "kind", None) == "spark":  # as a frame it would be there, too
        source = source.as_table("clusters")
    elif hasattr(source, "clusters"):
        source = source.clusters
    source = as_frame(source)
    if isinstance(source, str | os.PathLike):
        inside = Path(source) / "clusters.parquet"
        return file_table(inside if inside.is_file() else Path(source))
    if not hasattr(source, "__arrow_c_stream__"):
        raise InputError(
            f"{role} must be a table with the columns id and entity_id, or the path of one, got "
            f"{type(source).__name__}. Pairs of ids are for links."
        )
    return pa.table(source)


def file_table(path: Path) -> pa.Table:
    """All columns of a file, as text."""
    return pa.table(read_records(path, id=None, columns=None, side="(clusters)").columns)


def in_own_columns(
    table: pa.Table,
    role: str,
    *,
    id: str | None = None,
    entity_id: str | None = None,
    file: str | None = None,
    one_file: bool = True,
) -> pa.Table:
    """The columns id and entity_id, before them file where there is one.

    Parameters
    ----------
    id, entity_id, file
        The columns, where they have other names than those of a tool that is known.
    one_file
        Leave out another tool's column of files if it names one alone.
    """
    style = OWN if entity_id or ENTITY in table.column_names else _style_of(table)
    entity_found, id_found, file_found = style.named(table)
    if style is OWN:  # by these names and no others
        entity_found, id_found = ENTITY, ID
        file_found = FILE if table.column_names.count(FILE) == 1 else None
    entity, ids, files = entity_id or entity_found, id or id_found, file or file_found
    if ids is None:
        raise InputError(
            f"{role} are clusters as {style.tool} writes them, and which column has the ids of the "
            f"records cannot be told. They have {_listed(table)}: give bl.read_clusters(…, id=…)."
        )
    _require(table, role, [str(entity), ids, *([file] if file else [])])
    clusters = table[str(entity)]
    if style is not OWN:
        clusters = _with_those_alone(clusters, table[ids])
        if one_file and not file and files and len(table[files].unique()) < 2:
            files = None
    columns = {FILE: table[files]} if files else {}
    return pa.table({**columns, ID: _whole(table[ids]), ENTITY: clusters})


def _style_of(table: pa.Table) -> Style:
    return next((style for style in OTHERS if style.named(table)[0]), OWN)


def _require(table: pa.Table, role: str, names: Sequence[str]) -> None:
    if absent := [name for name in names if table.column_names.count(name) != 1]:
        raise InputError(
            f"{role} must have one column {' and one '.join(absent)}. It has {_listed(table)}; "
            "rename the columns with the ids of records and of entities to id and entity_id."
        )


def _listed(table: pa.Table) -> str:
    return ", ".join(map(str, table.column_names)) or "none at all"


def _with_those_alone(clusters: pa.ChunkedArray, ids: pa.ChunkedArray) -> pa.ChunkedArray:
    """A cluster of its own for each record that has none."""
    clusters = _whole(clusters)
    if not clusters.null_count:
        return clusters
    own = pc.binary_join_element_wise(
        pa.scalar(ALONE, TEXT), id_text(_whole(ids), ID), pa.scalar("", TEXT)
    )
    return pc.if_else(clusters.is_null(), own, clusters.cast(TEXT))


def _whole(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Numbers as whole ones, if they are: a frame with missing values has fractions."""
    if not pa.types.is_floating(column.type):
        return column
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid:
        return column
