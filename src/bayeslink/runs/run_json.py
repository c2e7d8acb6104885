"""run.json of a run directory: its schema, which the writer and the reader share.

What the writer made is checked before it is written, so that no run is saved that cannot be opened.
`FORMAT` is that of the whole directory: one number, raised with any change that an earlier version
could not read, or that this one could not read in what an earlier one wrote.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bayeslink import __version__
from bayeslink.errors import InputError, reason_of
from bayeslink.runs.schema import (
    NotAsWrittenError,
    either,
    flag,
    listed,
    mapped,
    maybe,
    number,
    one_of,
    record,
    sha256,
    share,
    text,
    whole,
)

FILE = "run.json"
FORMAT = 1
DEDUPE = "dedupe"  # the `task` of a deduplication
Check = Callable[[Mapping[str, Any]], None]
_LARGEST = 2**28  # bytes of a run.json
FIELD = record(
    name=text,
    comparison=text,
    levels=listed(text),
    pairs_by_level=listed(share),
    distinct=listed(whole, 2),
    missing=listed(whole, 2),
    invalid=listed(whole, 2),
)
_PART = record(label=text, sha256=maybe(text), records=whole)
INPUT = record(
    {"parts": listed(_PART)},
    **dict.fromkeys(("label", "kind"), text), sha256=maybe(text), records=whole, quarantined=whole,
)  # fmt: skip
_STRUCTURE = record(
    {
        "wrong_fields": listed(listed(share)),
        "wrong_odds": mapped(share),
        "levels": mapped(listed(share)),
    },
    name=one_of("dependent", "independent"),
    certain_links=whole,
    certain_nonlinks=number,
    dependences=listed(
        record(field=text, on=text, strength=number, gain=number, u=listed(listed(share)))
    ),
)
_FIT = record(
    fits=flag,
    warnings=listed(text),
    bands=listed(
        record(
            low=number, high=maybe(number), observed=whole, from_nonlinks=share, from_links=share
        )
    ),
    together=listed(
        record(fields=listed(whole, 2), observed=share, expected=share, independent=share)
    ),
)
DIAGNOSTIC = record(
    name=text,
    status=text,
    **dict.fromkeys(("mean", "sd"), number),
    **dict.fromkeys(("low", "high", "rhat", "ess", "mcse"), maybe(number)),
)
_SUMMARY = record(
    {"left_out": listed(record(file=text, column=text, reason=text))},
    files=mapped(sha256),
    **dict.fromkeys(("n_a", "n_b", "n_pairs", "n_links"), whole),
    theta=number,
    prior=either(
        record(kind=one_of("penalty"), theta=number),
        record(kind=one_of("overlap"), alpha=number, beta=number),
    ),
    structure=_STRUCTURE,
    fit=_FIT,
    point_estimate=record(
        n_links=whole, objective=number, modes=listed(record(n_links=whole, objective=number))
    ),
    diagnostics=listed(DIAGNOSTIC),
    versions=mapped(text),
    inputs=listed(INPUT, 2),
    fields=listed(FIELD),
    seconds=mapped(number),
    warnings=listed(text),
    search=maybe(
        record(
            threshold=maybe(number),
            joins=listed(text),
            visited=maybe(number),
            never_visited=share,
            listed=maybe(whole),
        )
    ),
    memory=mapped(maybe(whole)),
    path=maybe(record(theta=listed(number), up=listed(whole), down=listed(whole))),
    **dict.fromkeys(("created", "python", "platform", "engine"), text),
)
_SAMPLED = record(  # beside that, of a run with draws
    **dict.fromkeys(
        (
            "links_mean",
            "links_pointed",
            "links_counted",
            "links_by_chance",
            "expected_false_links",
            "links_outside",
            "links_elsewhere",
        ),
        number,
    ),
    **dict.fromkeys(
        ("review_records", "candidates", "listed", "known_links", "blocks", "largest_block"), whole
    ),
    **dict.fromkeys(("chains", "draws", "tune", "kept_every"), whole),
    links_interval=listed(whole, 2),
    links_identified=flag,
    restricted=flag,
    w0=maybe(number),
    w0_why=text,
    blocks_drawn=mapped(whole),
)


def read_summary(directory: Path) -> dict[str, Any]:
    """The run.json of a run directory, of whatever kind, to be checked."""
    path = Path(directory) / FILE
    try:
        if path.stat().st_size > _LARGEST:
            raise ValueError("it is far larger than any that bayeslink writes")
        summary = json.loads(path.read_text("utf-8"), parse_constant=_no_number)
    except RecursionError:
        raise cannot_read(path, "it is no run.json") from None
    except (OSError, ValueError) as error:
        raise cannot_read(path, reason_of(error)) from None
    versions = summary.get("versions") if isinstance(summary, dict) else None
    if not isinstance(versions, dict) or "bayeslink" not in versions:
        raise cannot_read(path, "it was not written by bayeslink")
    if (found := summary.get("format")) != FORMAT:
        which = "an earlier" if found is None else "another"
        by = f"{which} version of bayeslink wrote it ({str(versions['bayeslink'])[:20]})"
        raise cannot_read(path, f"{by}, in another format than {FORMAT}, which this one opens")
    return summary


def read_linkage(directory: Path) -> dict[str, Any]:
    """The run.json of a linkage, checked; that of a deduplication is refused with what it has."""
    summary = read_summary(directory)
    if summary.get("task") == DEDUPE:
        command = "link-many" if "lists" in summary else "dedupe"
        raise InputError(
            f"{directory} is of `bayeslink {command}`, so it has clusters and no links. Who is "
            "who is in clusters.csv, a row a person in people.csv, pairs in pairs.parquet; "
            "`bayeslink report` shows it, `bayeslink evaluate` judges it, bl.open_run opens it."
        )
    checked(directory, summary, check)
    return summary


def checked(directory: Path, summary: Mapping[str, Any], by: Check) -> None:
    """Refuse a run.json that is not what this check takes."""
    try:
        by(summary)
    except NotAsWrittenError as error:
        raise not_as_written(Path(directory) / FILE, str(error)) from None


def write_summary(folder: Path, summary: Mapping[str, Any]) -> None:
    """Write run.json, once it is what `read_summary` takes."""
    content = json.dumps({"format": FORMAT, **summary}, indent=2, default=np.generic.item)
    check(json.loads(content))
    (folder / FILE).write_text(content + "\n", "utf-8")


def check(summary: Mapping[str, Any]) -> None:
    """Raise `NotAsWrittenError` if this is not what a run.json holds."""
    _SUMMARY(summary, "")
    if "chains" in summary:
        _SAMPLED(summary, "")
    _check_fields(summary)


def _no_number(word: str) -> float:
    raise ValueError(f"it holds {word}")


def _check_fields(summary: Mapping[str, Any]) -> None:
    """What has to agree with the fields."""
    levels = {f["name"]: len(f["levels"]) for f in summary["fields"]}
    structure = summary["structure"]
    holds = {
        "fields": 0 < len(levels) == len(summary["fields"]),
        "fields.pairs_by_level": all(
            len(f["pairs_by_level"]) == levels[f["name"]] + 1 for f in summary["fields"]
        ),
        "fit.together": all(max(t["fields"]) < len(levels) for t in summary["fit"]["together"]),
        "structure.dependences": all(
            d["field"] in levels
            and d["on"] in levels
            and len(d["u"]) == levels[d["on"]] + 1
            and {*map(len, d["u"])} == {levels[d["field"]]}
            for d in structure["dependences"]
        ),
    }
    if "wrong_odds" in structure:
        made = structure.get("levels", {})
        holds["structure.wrong_odds"] = levels.keys() <= structure["wrong_odds"].keys()
        holds["structure.levels"] = all(len(made.get(f, ())) == n for f, n in levels.items())
        wrong = [len(row) for row in structure.get("wrong_fields", ())]
        holds["structure.wrong_fields"] = wrong == [*range(len(levels) + 1, 0, -1)]
    if "chains" in summary:
        low, high = summary["links_interval"]
        holds["links_interval"] = low <= high
        holds["diagnostics"] = len(summary["diagnostics"]) >= 2
        holds["chains"] = summary["chains"] > 0 and summary["draws"] > 0
    if (path := summary["path"]) is not None:
        holds["path"] = len(path["theta"]) == len(path["up"]) == len(path["down"])
    for where, held in holds.items():
        if not held:
            raise NotAsWrittenError(where)


# --- refusals ---------------------------------------------------------------------------------


def cannot_read(path: Path, reason: str) -> InputError:
    return InputError(
        f"cannot read {path}: {reason}. Give the directory that `bayeslink link -o` wrote; if this "
        "is one, link the files again."
    )


def not_as_written(path: Path, where: str) -> InputError:
    return InputError(
        f"cannot read {path}: {where} is missing, or not as bayeslink {__version__} writes it. It "
        "was damaged or edited: link the files again."
    )
