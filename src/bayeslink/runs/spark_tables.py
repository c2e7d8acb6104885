"""What holds all columns, where the inputs are tables of Spark: joined, and written, there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from bayeslink.engines.spark.choosing import active_session
from bayeslink.engines.spark.frames import spark_frame
from bayeslink.errors import InputError, OutputError, SettingsError
from bayeslink.pairs.pair_tables import with_own_ids
from bayeslink.runs.inputs import Input
from bayeslink.runs.joined import HOW, LinkedRows, joined_names

if TYPE_CHECKING:
    from bayeslink.runs.run import Run


def joined_frame(run: Run, how: str, rows: LinkedRows) -> Any:
    """A's columns, B's (with _b where names clash) and the link probability, as a DataFrame."""
    if how not in HOW:
        raise SettingsError(f"unknown how={how!r}. Allowed: {', '.join(map(repr, HOW))}.")
    (a, id_a), (b, id_b) = (_side(run, side) for side in (0, 1))
    pairs = _links(run, rows)
    names = joined_names(_names(run, 0), _names(run, 1))
    kinds = {"inner": ("inner", "inner"), "left": ("left", "left"), "outer": ("full", "full")}
    if how == "right":
        joined = b.join(pairs, b[id_b] == pairs["l1"], "left").join(
            a, a[id_a] == pairs["l0"], "left"
        )
    else:
        first, second = kinds[how]
        joined = a.join(pairs, a[id_a] == pairs["l0"], first).join(
            b, b[id_b] == pairs["l1"], second
        )
    return joined.select(*a.columns, *b.columns, "p").toDF(*names)


def unlinked_frame(run: Run, side: int, rows: LinkedRows) -> Any:
    """The records of one table that have no link, as they came."""
    frame, id = _side(run, side)
    pairs = _links(run, rows)
    alone = frame.join(pairs, frame[id] == pairs[f"l{side}"], "left_anti")
    return alone.toDF(*_names(run, side))


def write_linked(run: Run, rows: LinkedRows, where: bool | str) -> list[str]:
    """linked, unlinked_a and unlinked_b as folders of Parquet files, if `where` says where."""
    if not isinstance(where, str):
        return [
            "the linked file was not written: say where Spark's executors are to write it "
            '(--linked-to, save(linked="s3://…")), or take run.joined().'
        ]
    frames = {
        "linked": joined_frame(run, "inner", rows),
        "unlinked_a": unlinked_frame(run, 0, rows),
        "unlinked_b": unlinked_frame(run, 1, rows),
    }
    write_frames(frames, where)
    return []


def frame_of(given: Input) -> Any:
    """The records of an input as a table of Spark."""
    frame = spark_frame(active_session(), given.source)
    if frame is None:
        raise _not_there(given.side)
    return frame


def with_column(given: Input, frame: Any, name: str, values: pa.Array) -> Any:
    """The records of an input with a further column, found by their ids."""
    plain = frame.toDF(*(f"c{k}" for k in range(len(frame.columns))))
    id = plain[f"c{list(frame.columns).index(given.id)}"].cast("string")
    told = active_session().createDataFrame(pa.table([given.ids, values], ["l", "v"]))
    found = plain.join(told, id == told["l"]).select(*plain.columns, "v")
    return found.toDF(*frame.columns, name)


def write_frames(frames: Mapping[str, Any], where: str) -> None:
    """Tables by name, as folders of Parquet files in a place."""
    for name, frame in frames.items():
        place = f"{where.rstrip('/')}/{name}"
        try:
            frame.write.parquet(place)
        except Exception as error:
            raise OutputError(
                f"Spark cannot write {place} ({type(error).__name__}). Name a place that is empty "
                "and that all executors can write to."
            ) from None


def _not_there(side: str) -> InputError:
    return InputError(
        f"input {side} of this run is no table of Spark that is here. Give it: "
        f"open_run(…, {side.lower()}=…)."
    )


def _source(run: Run, side: int) -> Any:
    frame = None if run.sources is None else spark_frame(active_session(), run.sources[side])
    if frame is None:
        raise _not_there("AB"[side])
    return frame


def _names(run: Run, side: int) -> list[str]:
    return list(_source(run, side).columns)


def _side(run: Run, side: int) -> tuple[Any, str]:
    """A table with columns named by position, and the name of its id."""
    frame, id = _source(run, side), run.settings.id
    id = id[side] if isinstance(id, tuple | list) else id
    names = [f"{'ab'[side]}{k}" for k in range(len(frame.columns))]
    return frame.toDF(*names), names[list(frame.columns).index(id)]


def _links(run: Run, rows: LinkedRows) -> Any:
    """Links as a table of Spark: ids of A and of B, and the link probability."""
    sides = (rows.a, rows.b)
    ids = [run.pairs.ids(k, side.astype(np.int32)) for k, side in enumerate(sides)]
    links = pa.table([*ids, pa.array(rows.probability, from_pandas=True)], ["id_a", "id_b", "p"])
    own = with_own_ids(links, run.pairs.id_types).rename_columns(["l0", "l1", "p"])
    return active_session().createDataFrame(own)
