"""Pairs that another tool has compared, as a PairSource: any table of pairs with levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bayeslink.comparing.fields import Field, given_levels
from bayeslink.data.cell_texts import as_text, from_pandas, whole_number_type
from bayeslink.distinct import distinct
from bayeslink.engines.listed import ListedPairs
from bayeslink.engines.preselected import ChosenPairs
from bayeslink.errors import InputError, SettingsError
from bayeslink.pairs.source import Pairs

_MOST_LEVELS = 250


def from_table(
    table: Any,
    fields: Sequence[str | Field] | None = None,
    *,
    id: tuple[str, str] = ("id_a", "id_b"),
    ids: tuple[Any, Any] | None = None,
    u: Mapping[str, Sequence[float]] | None = None,
) -> ListedPairs:
    """Pairs with the levels of their fields, from a table with one row a pair.

    Only the pairs in the table may link, so it should hold every pair that might be a match, and
    enough others to tell what chance agreement looks like.

    Parameters
    ----------
    table
        A pandas or polars frame, or an Arrow table.
    fields
        The columns with levels: 0 is the worst, larger is better; missing where it is null or
        below 0. A `Field` in place of a name gives labels and priors, by `given_levels`. All
        columns of whole numbers beside the ids unless given.
    id
        The columns with the ids of A and of B.
    ids
        All ids of A and of B, where some records have no pair in the table.
    u
        The shares of each field's levels, worst first, among all pairs of the two files, by field.
        Where blocking rules chose the pairs, give it if you can: how often values agree by chance
        cannot be learned from pairs that were chosen for agreeing.
    """
    arrow, kind = as_arrow(table)
    for name in id:
        if name not in arrow.column_names:
            raise InputError(
                f"the table of pairs has no column {name!r}. Its columns are "
                f"{', '.join(map(repr, arrow.column_names))}; say id=(…, …)."
            )
    if fields is None:
        fields = [f.name for f in arrow.schema if pa.types.is_integer(f.type) and f.name not in id]
    if not fields:
        raise SettingsError(
            "the table of pairs has no column of levels. Levels are whole numbers, 0 the worst."
        )
    levels = {_name(field): _levels(arrow, _name(field)) for field in fields}
    found = [_field(f, levels[_name(f)]) for f in fields]
    shares = None if u is None else _shares(u, found)
    return listed_pairs(arrow, kind, id, ids, found, levels, shares)


def _shares(u: Mapping[str, Sequence[float]], fields: Sequence[Field]) -> list[Sequence[float]]:
    for f in fields:
        if len(u.get(f.name, ())) != f.n_levels or not all(0 <= x <= 1 for x in u[f.name]):
            raise SettingsError(
                f"u takes {f.n_levels} shares for {f.name!r}, one a level from worst to best, got "
                f"{u.get(f.name)!r}."
            )
    return [u[f.name] for f in fields]


def listed_pairs(
    table: pa.Table,
    kind: str,
    id: tuple[str, str],
    ids: tuple[Any, Any] | None,
    fields: Sequence[Field],
    levels: Mapping[str, NDArray[np.uint8]],
    u: Sequence[Sequence[float]] | None = None,
) -> ListedPairs:
    """A source of the pairs in a table; no other pair may link.

    `u` are the shares of each field's levels among all pairs, where they are known.
    """
    texts = [as_text(table[name], name, "the table of pairs") for name in id]
    if any(text.null_count for text in texts):
        raise InputError("some pairs lack an id. Give both ids of each pair, or drop the row.")
    every = []
    for side, text in enumerate(texts):
        own = text.unique() if ids is None else _id_texts(ids[side])
        every.append(own.take(pc.sort_indices(own)) if ids is None else own)
    rows = [pc.index_in(text, own) for text, own in zip(texts, every, strict=True)]
    if unknown := sum(row.null_count for row in rows):
        raise InputError(f"{unknown:,} ids of pairs are not among the ids given. Check ids=.")
    a, b = (row.to_numpy(zero_copy_only=False).astype(np.int32) for row in rows)
    number = a.astype(np.int64) * len(every[1]) + b
    if twice := len(number) - len(distinct(number)):
        raise InputError(
            f"{twice:,} pairs are in the table more than once. Each pair has one row, with its "
            "record of A first; drop the others."
        )
    stacked = np.stack([levels[f.name] for f in fields], 1)
    types = tuple(whole_number_type(table[name]) for name in id)
    given = (fields, Pairs(a, b, stacked), (every[0], every[1]))
    how: dict[str, Any] = {"kind": kind, "id_types": (types[0], types[1])}
    every_pair = len(number) == len(every[0]) * len(every[1])
    if u is not None and not every_pair:
        return ChosenPairs(*given, u=u, **how)
    return ListedPairs(*given, only=not every_pair, **how)


def from_recordlinkage(
    features: Any, *, cuts: Sequence[float] = (0.8, 0.92, 1), ids: tuple[Any, Any] | None = None
) -> ListedPairs:
    """Pairs from the features of Python's recordlinkage: a frame with two index levels.

    Parameters
    ----------
    features
        What `Compare.compute` gives: one column a feature, from 0 to 1; NaN is missing. (Unless
        told otherwise, recordlinkage writes 0 where a value is missing.)
    cuts
        Where to cut features that are not just 0 and 1 into levels, rising.
    ids
        The index of both frames, where some records have no pair.
    """
    if getattr(getattr(features, "index", None), "nlevels", 1) != 2:
        raise InputError(
            "features must be a pandas frame with two index levels, the records of A and of B, as "
            "recordlinkage's Compare.compute gives it."
        )
    edges = np.array(sorted(float(cut) for cut in cuts))
    if not len(edges) or edges[0] <= 0 or edges[-1] > 1:
        raise SettingsError(f"cuts must be numbers above 0, up to 1, got {list(cuts)!r}.")
    index = {
        name: from_pandas(features.index.get_level_values(k).to_series(), name, "features")
        for k, name in enumerate(("id_a", "id_b"))
    }
    fields, levels = [], {}
    for k, name in enumerate(map(str, features.columns)):  # numbers, unless features were labelled
        values = features.iloc[:, k].to_numpy(np.float64)
        binary = np.isin(values[~np.isnan(values)], (0.0, 1.0)).all()
        own = np.array([1.0]) if binary else edges
        levels[name] = np.where(
            np.isnan(values), 0, 1 + np.searchsorted(own, np.nan_to_num(values), side="right")
        ).astype(np.uint8)
        labels = [f"< {own[0]:g}", *(f"≥ {cut:g}" for cut in own)]
        fields.append(given_levels(name, ["different", "equal"] if binary else labels))
    return listed_pairs(pa.table(index), "pandas", ("id_a", "id_b"), ids, fields, levels)


def from_fastlink(
    pairs: Any, *, id: tuple[str, str] = ("inds.a", "inds.b"), ids: tuple[Any, Any] | None = None
) -> ListedPairs:
    """Pairs from R's fastLink: the indices of both files and the pattern of each pair.

    Parameters
    ----------
    pairs
        A table with the columns `id` and gamma.1, gamma.2, …: 0 is different, 1 partly alike, 2
        identical, NA missing; as `cbind(out$matches, out$patterns)` gives it.
    ids
        All indices, such as (range(1, n_a + 1), range(1, n_b + 1)).
    """
    arrow, kind = as_arrow(pairs)
    names = [name for name in arrow.column_names if name.startswith("gamma.")]
    if not names:
        raise InputError(
            "the table has no columns gamma.1, gamma.2, …. Give fastLink's matches and patterns "
            "side by side."
        )
    levels = {name: _levels(arrow, name) for name in names}
    fields = []
    for name in names:
        if (levels[name] == 2).any():  # some are partly alike
            fields.append(given_levels(name, ["different", "partly alike", "identical"]))
            continue
        levels[name] = np.minimum(levels[name], 2)
        fields.append(given_levels(name, ["different", "identical"]))
    return listed_pairs(arrow, kind, id, ids, fields, levels)


# ---------------------------------------------------------------------------------------------


def as_arrow(table: Any) -> tuple[pa.Table, str]:
    """A frame as Arrow, and what kind it was."""
    if not hasattr(table, "__arrow_c_stream__"):
        raise InputError("pairs must be a pandas or polars frame, or an Arrow table.")
    kind = type(table).__module__.split(".")[0]
    if kind == "pandas":
        columns = {
            str(name): from_pandas(table.iloc[:, k], str(name), "the table of pairs")
            for k, name in enumerate(table.columns)
        }
        return pa.table(columns), kind
    return pa.table(table), kind if kind == "polars" else "arrow"


def _name(field: str | Field) -> str:
    return field if isinstance(field, str) else field.name


def _levels(table: pa.Table, name: str) -> NDArray[np.uint8]:
    """Levels from 1; 0 where a value is null or below 0."""
    if name not in table.column_names:
        raise InputError(f"the table of pairs has no column {name!r} with levels.")
    column = table[name]
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        raise InputError(f"{name!r} must hold levels as whole numbers, got {column.type}.")
    values = pc.fill_null(column.cast(pa.float64()), -1.0).to_numpy()
    values = np.where(np.isnan(values), -1.0, values)
    if (values != np.trunc(values)).any() or values.max(initial=0) >= _MOST_LEVELS:
        raise InputError(
            f"{name!r} must hold levels as whole numbers below {_MOST_LEVELS}, 0 the worst. Cut "
            "similarities into levels first."
        )
    return np.where(values < 0, 0, values + 1).astype(np.uint8)


def _field(field: str | Field, levels: NDArray[np.uint8]) -> Field:
    n = max(2, int(levels.max(initial=0)))
    if isinstance(field, str):
        return given_levels(field, [f"level {h}" for h in range(n)])
    if field.n_levels < n:
        raise SettingsError(f"{field.name!r} has {field.n_levels} levels, the table {n}.")
    return field


def _id_texts(ids: Any) -> pa.Array:
    """Given ids as text."""
    if isinstance(ids, pa.Array | pa.ChunkedArray):
        column = pa.chunked_array(ids) if isinstance(ids, pa.Array) else ids
    else:
        column = pa.chunked_array([pa.array(list(ids))])
    return as_text(column, "ids", "the ids given")
