"""run.json of a deduplication: its schema, which the writer and the reader share."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bayeslink.runs.run_json import DIAGNOSTIC, FIELD, FILE, FORMAT, INPUT
from bayeslink.runs.schema import (
    NotAsWrittenError,
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

# Of several files: their names, which hold nobody twice, people by the files they are in.
LISTS = "lists"
_LISTS = record(
    names=listed(text),
    clean=listed(text),
    people=listed(record(files=text, people=share, low=whole, high=whole)),
)
UPDATE = "update"  # what an update changed, in numbers
_UPDATE = record(
    **dict.fromkeys(
        (
            "earlier_records", "earlier_people", "new_records", "new_records_joined", "new_people",
            "ids_kept", "merged", "split",
        ),
        whole,
    )
)  # fmt: skip
_SUMMARY = record(
    {LISTS: _LISTS, UPDATE: _UPDATE},
    task=one_of("dedupe"),
    files=mapped(sha256),
    **dict.fromkeys(
        (
            "n_records", "n_pairs", "clusters", "people_with_several", "records_with_another",
            "largest_cluster", "records_in_doubt", "review_records", "candidates", "chains",
            "draws", "tune", "kept_every",
        ),
        whole,
    ),
    **dict.fromkeys(
        ("people", "expected_false_pairs", "expected_missed_pairs", "expected_loss", "rho"), share
    ),
    theta=number,
    people_interval=listed(whole, 2),
    people_by_records=listed(record(records=text, people=share, low=whole, high=whole)),
    restricted=flag,
    settings=mapped(lambda value, where: None),
    diagnostics=listed(DIAGNOSTIC),
    versions=mapped(text),
    inputs=listed(INPUT),
    fields=listed(FIELD),
    seconds=mapped(number),
    warnings=listed(text),
    memory=mapped(maybe(whole)),
    **dict.fromkeys(("created", "python", "platform", "engine", "kind"), text),
)  # fmt: skip


def write_summary(folder: Path, summary: Mapping[str, Any]) -> None:
    """Write run.json, once it is what the reader takes."""
    content = json.dumps({"format": FORMAT, **summary}, indent=2, default=np.generic.item)
    check(json.loads(content))
    (folder / FILE).write_text(content + "\n", "utf-8")


def check(summary: Mapping[str, Any]) -> None:
    """Raise `NotAsWrittenError` if this is not what the run.json of a deduplication holds."""
    _SUMMARY(summary, "")
    low, high = summary["people_interval"]
    if low > high:
        raise NotAsWrittenError("people_interval")
