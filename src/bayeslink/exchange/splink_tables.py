"""Splink's tables: predictions read as pairs; predictions, clusters and labels written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bayeslink.engines.listed import ListedPairs
from bayeslink.errors import InputError, SettingsError
from bayeslink.exchange.clusters import clusters_of, labels_of, predictions_of, refuse_one_file
from bayeslink.exchange.compared_tables import as_arrow, from_table
from bayeslink.exchange.splink_settings import is_of_one_file, levels_of
from bayeslink.pairs.pair_tables import in_kind, with_own_ids
from bayeslink.runs.dedupe_run import DedupeRun

if TYPE_CHECKING:
    from bayeslink.runs.run import Run

_SIDES = ("l", "r")


def from_splink(
    predictions: Any,
    settings: Any = None,
    *,
    names: Sequence[str] | None = None,
    ids: tuple[Any, Any] | None = None,
) -> ListedPairs:
    """Splink's predictions as pairs: `bl.link(bl.from_splink(linker.inference.predict()))`.

    Only the pairs that Splink's blocking rules brought forward may link; predict without a
    threshold, so that there are enough pairs that are no matches. Of two data sets: predictions of
    one (dedupe_only) are refused, as the people found would hang on the blocking rules.

    Parameters
    ----------
    predictions
        What `linker.inference.predict()` gives, or its table: the columns unique_id_l,
        unique_id_r, source_dataset_l, source_dataset_r and gamma_….
    settings
        Splink's trained model, a dictionary or the path of its JSON. It gives the levels their
        labels, m as prior means and u over all pairs; one without u is refused. Without settings,
        u is learned from the pairs that blocking rules brought forward, which agree far more often
        than others, and the run says so.
    names
        The names of the data sets that are A and B; in the order of the alphabet unless given.
    ids
        All ids of A and of B, where some records have no pair.
    """
    if hasattr(predictions, "as_pandas_dataframe"):
        predictions = predictions.as_pandas_dataframe()
    table, kind = as_arrow(predictions)
    gammas = [name for name in table.column_names if name.startswith("gamma_")]
    needed = [f"unique_id_{side}" for side in _SIDES]
    if absent := [name for name in needed if name not in table.column_names]:
        raise InputError(
            f"the predictions lack the column {absent[0]!r}. Give what linker.inference.predict() "
            "returns."
        )
    if not gammas:
        raise InputError(
            "the predictions have no gamma_ columns. They are there unless Splink was told to "
            "leave out comparison vectors; predict again."
        )
    named = all(f"source_dataset_{side}" in table.column_names for side in _SIDES)
    refuse_one_file(table, named, is_of_one_file(settings))
    table, used = _a_on_the_left(table, names)
    columns = [name.removeprefix("gamma_") for name in gammas]
    table = table.select([*needed, *gammas]).rename_columns([*needed, *columns])
    fields, u = [], {}
    for name in columns:
        field, shares = levels_of(settings, name)
        fields.append(field or name)
        if shares is not None:
            u[name] = shares
    pairs = from_table(
        in_kind(table, kind),
        fields,
        id=("unique_id_l", "unique_id_r"),
        ids=ids,
        u=u or None,
    )
    pairs.names = used
    return pairs


def _a_on_the_left(
    table: pa.Table, names: Sequence[str] | None
) -> tuple[pa.Table, tuple[str, str]]:
    """The pairs between the two data sets, with the records of A on the left."""
    sides = [f"source_dataset_{side}" for side in _SIDES]
    if not all(side in table.column_names for side in sides):
        return table, tuple(names) if names else ("a", "b")  # type: ignore[return-value]
    left, right = (table[side].cast(pa.large_string()) for side in sides)
    found = sorted({*left.unique().to_pylist(), *right.unique().to_pylist()})
    chosen = list(names) if names is not None else found
    if len(chosen) != 2 or not {*chosen} <= {*found}:
        raise InputError(
            f"the predictions are of the data sets {', '.join(map(repr, found))}; bayeslink links "
            "two. Say which: names=(…, …)."
        )
    a, b = chosen
    turned = pc.and_(pc.equal(left, b), pc.equal(right, a)).to_numpy()
    straight = pc.and_(pc.equal(left, a), pc.equal(right, b)).to_numpy()
    ids = [table[f"unique_id_{side}"] for side in _SIDES]
    own, other = (pc.if_else(turned, ids[1 - k], ids[k]) for k in (0, 1))
    table = table.set_column(table.column_names.index("unique_id_l"), "unique_id_l", own)
    table = table.set_column(table.column_names.index("unique_id_r"), "unique_id_r", other)
    return table.filter(pa.array(turned | straight)), (a, b)


# --- written ------------------------------------------------------------------------------------


def splink_predictions(run: Run | DedupeRun, names: Sequence[str] | None = None) -> Any:
    """The candidate pairs of a run as Splink's predictions, to register with a linker.

    `match_probability` is the posterior link probability, under which a record has one link at
    most; of `dedupe` and `link_many`, the probability that both are one person. `names` are the
    data sets' names in Splink, as `dataset_display_name` says; of one file there are none, as in
    predictions of dedupe_only.
    """
    if isinstance(run, DedupeRun):
        return in_kind(predictions_of(run, names), run.kind)
    table, (a, b) = run.candidates(), _names(run, names)
    if "link_probability" not in table.column_names:
        raise SettingsError("a point estimate has no probabilities. Link without point=True.")
    n = len(table)
    ids = with_own_ids(table.select(["id_a", "id_b"]), run.pairs.id_types)
    gammas = {
        name: pc.subtract(table[name].cast(pa.int32()), 1)
        for name in table.column_names
        if name.startswith("gamma_")
    }
    columns = {
        "match_weight": table["match_weight"],
        "match_probability": table["link_probability"],
        "source_dataset_l": pa.array([a] * n, pa.string()),
        "source_dataset_r": pa.array([b] * n, pa.string()),
        "unique_id_l": ids["id_a"],
        "unique_id_r": ids["id_b"],
        **gammas,
        "match_key": pa.array(["0"] * n, pa.string()),
    }
    return in_kind(pa.table(columns), run.pairs.kind)


def splink_clusters(run: Run | DedupeRun, names: Sequence[str] | None = None) -> Any:
    """Every record with the id of its cluster, as Splink's clustering has it.

    Of a linkage a link is a cluster of two; of `dedupe` and `link_many` cluster_id is the
    entity_id.
    """
    if isinstance(run, DedupeRun):
        return in_kind(clusters_of(run, names), run.kind)
    used, pairs = _names(run, names), run.pairs
    rows = [np.arange(n, dtype=np.int32) for n in (pairs.n_a, pairs.n_b)]
    ids = [pairs.ids(side, row).to_pylist() for side, row in enumerate(rows)]
    links = run.table.filter(pc.equal(run.table["decision"], "link"))
    partner = dict(zip(links["id_b"].to_pylist(), links["id_a"].to_pylist(), strict=True))
    a, b = used
    cluster = [f"{a}-__-{x}" for x in ids[0]]
    cluster += [f"{a}-__-{partner[x]}" if x in partner else f"{b}-__-{x}" for x in ids[1]]
    same = pairs.id_types[0] == pairs.id_types[1]
    kind = pa.type_for_alias(pairs.id_types[0]) if same and pairs.id_types[0] else pa.string()
    table = pa.table(
        {
            "cluster_id": pa.array(cluster, pa.string()),
            "source_dataset": pa.array([a] * len(ids[0]) + [b] * len(ids[1]), pa.string()),
            "unique_id": pa.array(ids[0] + ids[1], pa.string()).cast(kind),
        }
    )
    return in_kind(table, pairs.kind)


def splink_labels(run: Run | DedupeRun, names: Sequence[str] | None = None) -> Any:
    """The links of a run as labels that Splink takes: a clerical_match_score of 1.

    Of `dedupe` and `link_many`, all pairs within its clusters.
    """
    if isinstance(run, DedupeRun):
        return in_kind(labels_of(run, names), run.kind)
    links = run.table.filter(pc.equal(run.table["decision"], "link"))
    ids, (a, b), n = with_own_ids(links, run.pairs.id_types), _names(run, names), len(links)
    columns = {
        "source_dataset_l": pa.array([a] * n, pa.string()),
        "unique_id_l": ids["id_a"],
        "source_dataset_r": pa.array([b] * n, pa.string()),
        "unique_id_r": ids["id_b"],
        "clerical_match_score": pa.array(np.ones(n)),
    }
    return in_kind(pa.table(columns), run.pairs.kind)


def _names(run: Run, names: Sequence[str] | None) -> tuple[str, str]:
    """The names of the data sets: as given, as Splink's predictions had them, or "a" and "b"."""
    found = names if names is not None else run.pairs.describe().names
    if isinstance(found, str) or len(found) != 2:
        raise SettingsError(f"names takes the names of A and of B, got {names!r}.")
    return str(found[0]), str(found[1])
