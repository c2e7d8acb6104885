"""What is read back from a run directory, checked: the one place where that is done.

A directory may be damaged, edited by hand, of another version or made by somebody else. Here it is
read whole or refused in one line that names the file and what to do; whoever reads on can rely on
every key of run.json and every column of the tables.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bayeslink import __version__
from bayeslink.errors import InputError
from bayeslink.pairs.pair_tables import with_text_ids
from bayeslink.results import tables
from bayeslink.results.schema import (
    NotAsWrittenError,
    either,
    flag,
    listed,
    mapped,
    maybe,
    number,
    one_of,
    record,
    share,
    text,
    whole,
)

_LARGEST = 2**28  # bytes of a run.json
_FIELD = record(
    name=text,
    comparison=text,
    levels=listed(text),
    pairs_by_level=listed(share),
    distinct=listed(whole, 2),
    missing=listed(whole, 2),
    invalid=listed(whole, 2),
)
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
_DIAGNOSTIC = record(
    name=text,
    status=text,
    **dict.fromkeys(("mean", "sd"), number),
    **dict.fromkeys(("low", "high", "rhat", "ess", "mcse"), maybe(number)),
)
_SUMMARY = record(
    {"files": either(listed(text), mapped(text))},
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
    diagnostics=listed(_DIAGNOSTIC),
    versions=mapped(text),
    inputs=listed(
        record(label=text, kind=text, sha256=maybe(text), records=whole, quarantined=whole), 2
    ),
    fields=listed(_FIELD),
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
    **dict.fromkeys(("created", "python", "platform", "engine"), text),
)
_SAMPLED = record(  # beside that, of a run with draws
    **dict.fromkeys(
        (
            "links_mean",
            "links_pointed",
            "links_counted",
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
    """The run.json of a run directory."""
    path = Path(directory) / "run.json"
    try:
        if path.stat().st_size > _LARGEST:
            raise ValueError("it is far larger than any that bayeslink writes")
        summary = json.loads(path.read_text("utf-8"), parse_constant=_no_number)
    except RecursionError:
        raise _cannot_read(path, "it is no run.json") from None
    except (OSError, ValueError) as error:
        raise _cannot_read(path, _reason(error)) from None
    versions = summary.get("versions") if isinstance(summary, dict) else None
    if not isinstance(versions, dict) or "bayeslink" not in versions:
        raise _cannot_read(path, "it was not written by bayeslink")
    try:
        _SUMMARY(summary, "")
        if "chains" in summary:
            _SAMPLED(summary, "")
        _check_fields(summary)
    except NotAsWrittenError as error:
        raise _not_as_written(path, str(error), summary) from None
    return summary


def read_links(directory: Path) -> pa.Table:
    """The links of a run directory."""
    return read_table(directory, "links")


def read_table(directory: Path, name: str) -> pa.Table:
    """One of the tables of a run directory."""
    summary, path = read_summary(directory), Path(directory) / f"{name}.parquet"
    content = table_bytes(directory, name)
    try:
        table = pq.read_table(pa.BufferReader(content), page_checksum_verification=True)
        table.validate(full=True)
    except (OSError, ValueError, MemoryError, pa.ArrowException) as error:
        raise _cannot_read(path, _reason(error)) from None
    told = summary.get("files")
    if isinstance(told, dict) and told.get(path.name) not in (None, digest(content)):
        raise _cannot_read(path, "it is not as the run wrote it")
    try:
        table = with_text_ids(table)
        tables.check(table, name, _extent(directory, name, summary))
    except NotAsWrittenError as error:
        raise _not_as_written(path, str(error), summary) from None
    return table


def _extent(directory: Path, name: str, summary: Mapping[str, Any]) -> tables.Extent:
    """What the tables of the run can hold, by run.json and by the table that another refers to."""
    return tables.Extent(
        levels={f["name"]: len(f["levels"]) for f in summary["fields"]},
        blocks=summary.get("blocks", 0),
        chains=summary.get("chains", 0),
        draws=summary.get("draws", 0),
        followed=tuple(one["name"] for one in summary["diagnostics"]),
        pairs=_rows_of(directory, "pairs") if name == "link_draws" else 0,
    )


def _rows_of(directory: Path, name: str) -> int:
    """The number of rows of a table."""
    try:
        return int(pq.read_metadata(pa.BufferReader(table_bytes(directory, name))).num_rows)
    except (OSError, ValueError, MemoryError, pa.ArrowException) as error:
        raise _cannot_read(Path(directory) / f"{name}.parquet", _reason(error)) from None


def table_bytes(directory: Path, name: str) -> bytes:
    """One of the tables as it lies there."""
    path = Path(directory) / f"{name}.parquet"
    try:
        return path.read_bytes()
    except OSError as error:
        raise _cannot_read(path, _reason(error)) from None


def digest(content: bytes) -> str:
    """What run.json tells of the bytes of a file."""
    return hashlib.sha256(content).hexdigest()


def digest_of(path: Path) -> str:
    """The same of a file, which may be large."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def require_as_written(directory: Path, name: str) -> None:
    """Refuse a file of a run directory that is not there, or not as run.json tells."""
    path, told = Path(directory) / name, read_summary(directory).get("files")
    try:
        if isinstance(told, dict) and told.get(name) not in (None, digest_of(path)):
            raise _cannot_read(path, "it is not as the run wrote it")
    except OSError as error:
        raise _cannot_read(path, _reason(error)) from None


# --- run.json ---------------------------------------------------------------------------------


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
    for where, held in holds.items():
        if not held:
            raise NotAsWrittenError(where)


# --- refusals ---------------------------------------------------------------------------------


def _reason(error: BaseException) -> str:
    told = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return str(told).splitlines()[0].rstrip(".")


def _cannot_read(path: Path, reason: str) -> InputError:
    return InputError(
        f"cannot read {path}: {reason}. Give the directory that `bayeslink link -o` wrote; if this "
        "is one, link the files again."
    )


def _not_as_written(path: Path, where: str, summary: Mapping[str, Any]) -> InputError:
    by = str(summary["versions"]["bayeslink"])[:20]
    return InputError(
        f"cannot read {path}: {where} is missing, or not as bayeslink {__version__} writes it. It "
        f"was damaged, edited, or written by an earlier version of bayeslink ({by}): link the "
        "files again."
    )
