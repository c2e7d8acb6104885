"""An earlier run, linked again; or a new batch of B, linked to what is left of its A."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bayeslink.data.read_options import ReadOptions
from bayeslink.data.records import read_records
from bayeslink.errors import InputError, SettingsError
from bayeslink.linking.link import link_with
from bayeslink.linking.updating_people import update_people
from bayeslink.pairs.source import Ints
from bayeslink.runs.dedupe_run import DedupeRun
from bayeslink.runs.inputs import inputs_of
from bayeslink.runs.opening import as_run, open_run
from bayeslink.runs.outputs import linked_rows
from bayeslink.runs.run import Run
from bayeslink.settings import LinkSettings

_SURE = 0.95  # an earlier link below this is told of as in doubt


def relink(run: Run | str | Path, *, a: Any = None, b: Any = None, **changes: Any) -> Run:
    """Link once more with the settings of a run, or with some of them changed.

    Parameters
    ----------
    run
        A `Run`, or a run directory.
    a, b
        Other inputs; needed where the run was opened from a directory that does not have them.
    changes
        Arguments of `link` to take in place of the run's, such as `draws=5000`.
    """
    run = as_run(run)
    found = run.sources or (None, None)
    a, b = (found[k] if given is None else given for k, given in enumerate((a, b)))
    for side, source in (("a", a), ("b", b)):
        if source is None:
            raise InputError(f"input {side.upper()} of the run is not here. Give it: {side}=….")
    settings = LinkSettings(**run.settings.repeated(), labels=run.labels)
    work = {key: changes.pop(key) for key in ("progress", "checkpoints") if key in changes}
    return link_with(settings.changed(**changes), a, b, **work)


def update(
    run: Run | DedupeRun | str | Path,
    b: Any,
    *,
    a: Any = None,
    strength: float = 1.0,
    **changes: Any,
) -> Run | DedupeRun:
    """Link a new batch to an earlier run: of two files, or of people.

    Of people (`dedupe`, `link_many`), new records are added to the earlier ones, and people are
    found in all of them anew, with the earlier settings and fields. What the earlier run learned of
    m is in these records, so it is no prior: it would count twice. People keep their entity_id
    where their records stay together; `run.changes` has those that did not stay as they were. Save
    the earlier run first: its directory is what the settings of the update name. The
    new records of several files are given by the name of the file, which may be a new one.

    Of two files, a new batch of B is linked to the records of A that the earlier run left without a
    link. What that run learned of m is the prior here, in full unless `strength` says otherwise.
    That is Bayes' rule where the earlier links are certain and the new records are not among the
    old ones. It is not exact where they are in doubt: a link of probability .6 is held as if it
    were certain, and its record of A is not looked at again; `run.warnings` says how many are in
    doubt. Link all
    of B again to have these, too: only that weighs an earlier record against a new one.

    Parameters
    ----------
    run
        The earlier run, or its directory.
    b
        The new records, as `link` takes them; of several files, {"survey": "new.csv"}.
    a
        Input A, where the run's directory does not know where it is; of people, the earlier file,
        or the files by name.
    strength
        How much of the earlier m counts, where two files are linked.
    changes
        Other arguments of `link`, such as `draws=5000`.
    """
    if not isinstance(run, Run | DedupeRun):
        run = open_run(run, a=a)
    if isinstance(run, DedupeRun):
        if strength != 1:
            raise SettingsError(
                "strength is for linking two files: with all earlier records there again, nothing "
                "of the earlier m is a prior. Leave it out."
            )
        return update_people(run, b, a=a, **changes)
    return update_links(run, b, strength=strength, **changes)


def update_links(run: Run, b: Any, *, strength: float = 1.0, **changes: Any) -> Run:
    """Link a new batch of B: see `update`."""
    free = np.setdiff1d(np.arange(run.pairs.n_a), linked_rows(run).a)
    if not len(free):
        raise InputError("every record of A has a link already: there is nothing left to link to.")
    left, ids = _left_of_a(run, free)
    work = {key: changes.pop(key) for key in ("progress", "checkpoints") if key in changes}
    settings = LinkSettings(**run.settings.repeated(), model=run, strength=strength)
    settings = replace(settings, id=ids, prior=None).changed(**changes)
    _refuse_earlier_records(run, b, settings.id, settings.read[1])
    found = link_with(settings, left, b, **work)
    n = in_doubt(run)
    held = (
        f"{n:,} of the {run.n_links:,} earlier links are in doubt (a probability below {_SURE:g}) "
        "and were held as if certain. Link all of B again if they matter."
    )
    return replace(found, warnings=(*found.warnings, held)) if n else found


def _refuse_earlier_records(run: Run, b: Any, id: Any, read: ReadOptions) -> None:
    """Refuse ids that the earlier B has too, before the work; numbers of rows tell nothing."""
    column = id if id is None or isinstance(id, str) else id[1]
    if column is None:
        return
    batch = read_records(b, id=column, columns=[], options=replace(read, quarantine=None), side="B")
    earlier = run.pairs.ids(1, np.arange(run.pairs.n_b, dtype=np.int32))
    n = pc.sum(pc.is_in(batch.ids, value_set=earlier)).as_py()
    if n:
        raise InputError(
            f"{n:,} records of the new batch have ids that the earlier B has too. Give new records "
            "only."
        )


def _left_of_a(run: Run, free: Ints) -> tuple[pa.Table, tuple[str | None, str | None]]:
    """Records of A without a link, and the id columns of both; rows without ids keep their number.

    Numbered anew, the ids of the links would be of other records than in the earlier run.
    """
    left, ids = inputs_of_a(run).take(pa.array(free)), run.settings.id
    ids = ids if isinstance(ids, tuple) else (ids, ids)
    if ids[0] is not None:
        return left, ids
    name = "row"
    while name in left.column_names:
        name += "_"
    numbers = run.pairs.ids(0, free.astype(np.int32))
    return left.add_column(0, name, numbers), (name, ids[1])


def in_doubt(run: Run) -> int:
    """Links of a run that are less than nearly sure."""
    return int((linked_rows(run).probability < _SURE).sum())


def inputs_of_a(run: Run) -> pa.Table:
    """All records of A, by their rows in the run."""
    return inputs_of(run, sides=(0,))[0].whole()


def told(before: Run, after: Run) -> str:
    """What a batch changed, in words."""
    doubtful = linked_rows(before).probability
    doubtful = doubtful[np.isfinite(doubtful)]
    lines = [
        f"{after.n_links:,} of {after.pairs.n_b:,} new records were linked; "
        f"{before.n_links:,} earlier links were kept as they are.",
        f"Records of A with a link: {before.n_links:,} before, "
        f"{before.n_links + after.n_links:,} now, of {before.pairs.n_a:,}.",
    ]
    if len(doubtful):
        lines.append(
            f"Of the earlier links, {in_doubt(before):,} are in doubt (below {_SURE:g}) and "
            f"{(1 - doubtful).sum():,.1f} are expected to be false; their records of A were not "
            "looked at again."
        )
    return "\n".join(lines)
