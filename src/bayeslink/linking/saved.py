"""A linkage that was saved, looked at again."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bayeslink.errors import BayeslinkError
from bayeslink.pairs.pair_tables import pair_values
from bayeslink.results.explanation import Explanation, explain_pair, find_row
from bayeslink.results.reading import read_summary, read_table
from bayeslink.results.record_values import Cells, values_of
from bayeslink.results.store import compare_again, inputs_from, read_inputs
from bayeslink.results.structure_data import saved_parameters

Progress = Callable[[str], None]


def explain_saved(
    directory: Any,
    id_a: str,
    id_b: str,
    *,
    a: Any = None,
    b: Any = None,
    progress: Progress = lambda message: None,
) -> Explanation:
    """`Run.explain` from a run directory.

    The tables are enough for a candidate pair; its values are shown if the files are as they were.
    For any other, the files are read and compared again, from `a` and `b` if they have moved; they
    must not have changed.
    """
    folder = Path(directory)
    summary, links = read_summary(folder), read_table(folder, "links")
    point = "w0" not in summary
    restricted = not point and summary["restricted"]
    w0 = (-math.inf if summary["w0"] is None else summary["w0"]) if restricted else None
    parameters = read_table(folder, "parameters")
    candidates = read_table(folder, "pairs") if not point else links.drop(["link_probability"])
    row = find_row(candidates, id_a, id_b) or find_row(links, id_a, id_b)
    values = bits = None
    if row:
        names = [f["name"] for f in summary["fields"]]
        levels = {name: row[f"gamma_{name}"] for name in names}
        progress("reading the files")
        values = _values(folder, summary, (id_a, id_b), a, b)
    else:
        progress("not a candidate pair: reading and comparing the files again")
        pairs = compare_again(folder, summary, a, b)
        found = pairs.find([(id_a, id_b)])
        names = [f.name for f in pairs.fields]
        levels = dict(zip(names, found.levels[0].tolist(), strict=True))
        values = pair_values(pairs, found)[0]
        model = saved_parameters(summary["structure"], parameters, pairs.fields)
        bits = float(model.weight_of(found.levels)[0]) / math.log(2)
    return explain_pair(
        candidates,
        links,
        parameters,
        id_a,
        id_b,
        levels=levels,
        needed=summary["theta"] / math.log(2),
        w0=None if w0 is None else w0 / math.log(2),
        bits=bits,
        values=values,
    )


def _values(
    folder: Path, summary: dict[str, Any], pair: tuple[str, str], a: Any, b: Any
) -> Cells | None:
    """What the two records hold; None if the files are not there as they were."""
    try:
        settings = inputs_from(folder, a, b)
        records = read_inputs(settings, settings.fields, summary)
    except BayeslinkError:
        return None
    return values_of(records, settings.fields)([pair])[0]
