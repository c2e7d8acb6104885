"""What a run gives beside its links: the linked file, the records without a link."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bayeslink.errors import InputError, SettingsError
from bayeslink.results.joined import Input, LinkedRows, write_linked

if TYPE_CHECKING:
    from bayeslink.linking.run import Run

_FILES = ("linked", "unlinked_a", "unlinked_b")


def inputs_of(run: Run) -> tuple[Input, Input]:
    """Both inputs of a run, to be read again."""
    if run.sources is None:
        raise InputError(
            "the pairs of this run came without their records, so there is nothing to join. "
            "Merge run.links with your tables by id_a and id_b."
        )
    settings, found = run.settings, []
    ids = settings["id"] if isinstance(settings["id"], tuple | list) else (settings["id"],) * 2
    blocks = [(names,) * 2 if isinstance(names, str) else names for names in settings["block"]]
    for side, source in enumerate(run.sources):
        columns = [name for f in settings["fields"] for name in f.columns[side]]
        needed = dict.fromkeys([ids[side], *columns, *(names[side] for names in blocks)])
        if isinstance(source, str | os.PathLike):
            source = os.path.join(settings["started_in"], source)
        n = (run.pairs.n_a, run.pairs.n_b)[side]
        found.append(
            Input(
                source=source,
                options=settings["read"][side],
                needed=tuple(name for name in needed if name is not None),
                id=ids[side],
                ids=run.pairs.ids(side, np.arange(n, dtype=np.int32)),
                side="AB"[side],
            )
        )
    return found[0], found[1]


def linked_rows(run: Run) -> LinkedRows:
    """The links of a run as rows of A and B."""
    links = run.table.filter(pc.equal(run.table["decision"], "link"))
    rows = []
    for side, n in enumerate((run.pairs.n_a, run.pairs.n_b)):
        every = run.pairs.ids(side, np.arange(n, dtype=np.int32))
        wanted = links["id_" + "ab"[side]].combine_chunks().cast(every.type)
        rows.append(pc.index_in(wanted, every).to_numpy(zero_copy_only=False))
    probability = links["link_probability"].cast(pa.float64()).to_numpy()
    return LinkedRows.of(rows[0], rows[1], probability)


def drawn_rows(run: Run, k: int) -> list[LinkedRows]:
    """The links of k draws as rows of A and B."""
    if run.posterior is None:
        raise SettingsError(
            "a point estimate has no draws of the links. Link without point=True (--point)."
        )
    return [LinkedRows.of(drawn.a, drawn.b, p) for drawn, p in run.posterior.drawn_links(k)]


def write_outputs(run: Run, folder: Path) -> list[str]:
    """Write the linked file and its like; where the inputs are gone, say so and leave them out."""
    if run.sources is None:
        return []
    try:
        write_linked(inputs_of(run), linked_rows(run), folder)
    except InputError as error:
        for name in _FILES:
            for end in (".csv", ".parquet"):
                (folder / f"{name}{end}").unlink(missing_ok=True)
        return [f"the linked file was not written: {error}"]
    return []
