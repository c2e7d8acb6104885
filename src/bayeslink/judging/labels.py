"""Judged pairs as labels: read from a review or a file, and written for other tools."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from bayeslink.data.id_pairs import SIDES, TEXT, id_pairs
from bayeslink.data.records import Records, read_records
from bayeslink.data.spreadsheets import as_it_was, safe_for_spreadsheets
from bayeslink.errors import InputError, OutputError, SettingsError, reason_of
from bayeslink.judging.contradictions import Contradiction, contradiction
from bayeslink.judging.judgements import (
    FILE,
    LINK,
    NONLINK,
    UNSURE,
    VERDICTS,
    Judgement,
    Judgements,
    Pair,
    conflicting,
)
from bayeslink.private import written_whole

LABELS = "labels.parquet"  # in a run directory: what was known before the run
DISPUTED = "disputed"  # a link to one reviewer, a non-link to another

_SCORE = "clerical_match_score"
_LAYOUTS = (
    (*SIDES, "verdict"),
    (*SIDES, "decision"),
    ("unique_id_l", "unique_id_r", _SCORE),
)


def read_labels(source: Any) -> dict[Pair, str]:
    """What is said of each pair: link, nonlink, unsure, or disputed where reviewers disagree.

    Parameters
    ----------
    source
        A run directory: what that run was told, and what its reviewers have judged since, which
        counts where the two differ. Or its review.sqlite alone. Or a file or table with columns
        `id_a`, `id_b` and `verdict` (or `decision`): link, nonlink, unsure or blank. Or one in
        Splink's format, with A on the left: a `clerical_match_score` of 1 is a link, of 0 a
        non-link, anything between is unsure.
    """
    if not isinstance(source, str | os.PathLike):
        return _file_labels(source)
    path = Path(source)
    if path.is_dir():
        return _run_labels(path)
    return _judged_labels(path) if _is_sqlite(path) else _file_labels(path)


def known_pairs(
    labels: Any = None, links: Any = None, nonlinks: Any = None, *, people: bool = False
) -> tuple[pa.Table | None, list[str]]:
    """What is known of pairs before a run, as labels.parquet has it, and remarks on it.

    Of `people`, who may have any number of records, it does not matter which id of a pair is first.
    """
    read = {} if labels is None else read_labels(labels)
    if people:
        read = _either_way(read)
    known = {verdict: _with_verdict(read, verdict) for verdict in (LINK, NONLINK)}
    if labels is not None and not any(known.values()):
        raise InputError(
            "the labels hold no link and no non-link, so there is nothing to learn from them. "
            "Judge some pairs first, or leave the labels out."
        )
    if not people:
        _refuse_conflicts(known[LINK])
    for verdict, given in ((LINK, links), (NONLINK, nonlinks)):
        if given is not None:
            ids = id_pairs(given, f"known_{verdict}s")
            known[verdict] += zip(*(ids[side].to_pylist() for side in SIDES), strict=True)
    if people and (found := contradiction(known[LINK], known[NONLINK])):
        raise _contradictory(found, labels, {LINK: links, NONLINK: nonlinks})
    rows = [(*pair, verdict) for verdict in known for pair in dict.fromkeys(known[verdict])]
    remarks = [
        f"{count:,} pairs {why} are left to the model."
        for verdict, why in ((DISPUTED, "on which reviewers disagree"), (UNSURE, "judged unsure"))
        if (count := len(_with_verdict(read, verdict)))
    ]
    return (_text_table((*SIDES, "verdict"), rows) if rows else None), remarks


def with_verdict(known: pa.Table | None, verdict: str) -> pa.Table | None:
    """The pairs of a table of known pairs with this verdict."""
    return None if known is None else known.filter(pc.equal(known["verdict"], verdict))


def export_labels(
    source: str | Path, path: str | Path, *, splink: bool = False, names: Sequence[str] = ("a", "b")
) -> None:
    """Write the judgements of a run directory, or of its review.sqlite, as CSV or Parquet.

    Parameters
    ----------
    path
        Its ending says which: .csv or .parquet. In CSV an apostrophe stands before an id that a
        spreadsheet would take for a formula.
    splink, names
        In Splink's format, with these names of the two data sets; see `label_table`.
    """
    target, write = Path(path), {".csv": as_csv, ".parquet": as_parquet}
    if target.suffix.lower() not in write:
        raise SettingsError(f"{target.name} must end in .csv or .parquet.")
    file = Path(source) / FILE if Path(source).is_dir() else Path(source)
    if not file.exists():
        raise _nothing_judged(file)
    with Judgements(file) as judgements:
        content = write[target.suffix.lower()](label_table(judgements, splink=splink, names=names))
    try:
        with written_whole(target) as out:
            out.write(content)
    except (OSError, ValueError) as error:
        raise OutputError(
            f"cannot write {target}: {reason_of(error)}. Check the permissions and the space left."
        ) from None


def label_table(
    judgements: Judgements, *, splink: bool = False, names: Sequence[str] = ("a", "b")
) -> pa.Table:
    """Every standing judgement; or one row a pair, as Splink takes labels.

    For Splink, A is on the left, and only pairs are given that are agreed to be a link (score 1)
    or a non-link (score 0).
    """
    if not splink:
        columns = [f.name for f in fields(Judgement)]
        return _text_table(columns, [astuple(one) for one in judgements.current()])
    links, nonlinks = judgements.agreed()
    columns = ["unique_id_l", "source_dataset_l", "unique_id_r", "source_dataset_r"]
    table = _text_table(columns, [(a, names[0], b, names[1]) for a, b in links + nonlinks])
    scores = [1.0] * len(links) + [0.0] * len(nonlinks)
    return table.append_column(_SCORE, pa.array(scores, pa.float64()))


def as_csv(table: pa.Table) -> bytes:
    """The table as CSV that a spreadsheet opens without running any of it."""
    buffer = io.BytesIO()
    pyarrow.csv.write_csv(safe_for_spreadsheets(table), buffer)
    return buffer.getvalue()


def as_parquet(table: pa.Table) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    return buffer.getvalue()


# --- sources ----------------------------------------------------------------------------------


def _run_labels(directory: Path) -> dict[Pair, str]:
    told, judged = directory / LABELS, directory / FILE
    if not told.exists() and not judged.exists():
        raise _nothing_judged(directory)
    labels = _file_labels(told) if told.exists() else {}
    for pair, verdict in (_judged_labels(judged) if judged.exists() else {}).items():
        if verdict != UNSURE or pair not in labels:
            labels[pair] = verdict
    return labels


def _judged_labels(path: Path) -> dict[Pair, str]:
    with Judgements(path) as judgements:
        return {pair: _settled(said) for pair, said in judgements.said().items()}


def _file_labels(source: Any) -> dict[Pair, str]:
    said: dict[Pair, set[str]] = {}
    for pair, verdict, _ in _rows(source):
        said.setdefault(pair, set()).add(verdict)
    labels = {pair: _settled(verdicts) for pair, verdicts in said.items()}
    if disputed := _with_verdict(labels, DISPUTED):
        raise InputError(
            f"the labels call {len(disputed):,} pairs both link and nonlink. Settle them first: "
            "leave one verdict, or say unsure."
        )
    return labels


def _settled(said: set[str]) -> str:
    """One word for all that is said of a pair; who is unsure does not count if another is sure."""
    sure = said - {UNSURE} or {UNSURE}
    return sure.pop() if len(sure) == 1 else DISPUTED


def _either_way(labels: Mapping[Pair, str]) -> dict[Pair, str]:
    """Labels of pairs whose smaller id is first."""
    said: dict[Pair, set[str]] = {}
    for (a, b), verdict in labels.items():
        said.setdefault((min(a, b), max(a, b)), set()).add(verdict)
    return {pair: _settled(verdicts) for pair, verdicts in said.items()}


def _rows(source: Any) -> Iterable[tuple[Pair, str, str]]:
    """Pairs, verdicts and where they are in a file or table, blank verdicts left out."""
    records, names = _read_layout(source)
    *ids, texts = (records.columns[name] for name in names)
    if any(column.null_count for column in ids):
        raise InputError(
            f"{records.label}: rows without an id. Give both ids of each pair, or drop the row."
        )
    if records.kind == "csv":
        ids = [*map(as_it_was, ids)]
    meaning = _of_score if names[2] == _SCORE else _of_word
    verdicts = [text and meaning(text) for text in texts.to_pylist()]
    if wrong := [row for row, verdict in enumerate(verdicts) if verdict == ""]:
        allowed = "a number from 0 to 1" if names[2] == _SCORE else ", ".join(VERDICTS)
        raise InputError(
            f"{records.label}: {len(wrong):,} rows have another {names[2]} than {allowed}, first "
            f"on {records.place(wrong[0])}. Correct them, or leave the cell blank."
        )
    pairs = zip(*(column.to_pylist() for column in ids), strict=True)
    rows = enumerate(zip(pairs, verdicts, strict=True))
    return [(pair, verdict, records.place(row)) for row, (pair, verdict) in rows if verdict]


def _read_layout(source: Any) -> tuple[Records, tuple[str, ...]]:
    for names in _LAYOUTS:
        try:
            return read_records(source, id=None, columns=names, side="labels"), names
        except InputError as error:
            if "no column" not in str(error) and "none of the columns" not in str(error):
                raise
    raise InputError(
        "the labels lack a column. They need id_a, id_b and verdict (or decision), or Splink's "
        f"unique_id_l, unique_id_r and {_SCORE}. Rename the columns."
    )


def _of_word(text: str) -> str:
    word = text.strip().lower()
    return word if word in VERDICTS else ""


def _of_score(text: str) -> str:
    try:
        score = float(text)
    except ValueError:
        return ""
    return {1.0: LINK, 0.0: NONLINK}.get(score, UNSURE) if 0 <= score <= 1 else ""


def _is_sqlite(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(15) == b"SQLite format 3"
    except (OSError, ValueError):  # `read_records` says what is wrong
        return False


def _with_verdict(labels: Mapping[Pair, str], wanted: str) -> list[Pair]:
    return [pair for pair, verdict in labels.items() if verdict == wanted]


def _refuse_conflicts(links: Sequence[Pair]) -> None:
    if found := conflicting(links):
        raise InputError(
            f"{len(found):,} pairs are labelled as links though another link has the same record, "
            "and a record has at most one. Judge them again, so that one link of each remains; "
            "Judgements(…).conflicts() lists them."
        )


def _contradictory(found: Contradiction, labels: Any, known: Mapping[str, Any]) -> InputError:
    """Say which of all that is known contradicts itself, by rows: ids may be personal."""
    places = _places(labels, known)
    one, *more = dict.fromkeys(places.get((*sorted(pair), LINK), "a link") for pair in found.links)
    said = f"{', '.join([one, *more[:-1]])} and {more[-1]}" if more else one
    other = places.get((*sorted(found.apart), NONLINK), "a non-link")
    besides = f" So it is with {found.others:,} more pairs." if found.others else ""
    return InputError(
        f"what is known of pairs contradicts itself: by {said} two records are one person, and by "
        f"{other} they are two.{besides} Look at these pairs, and correct or leave out the one "
        "that is wrong."
    )


def _places(labels: Any, known: Mapping[str, Any]) -> dict[tuple[str, ...], str]:
    """Where it is said of a pair, the smaller id first, that it is a link or none."""
    found: dict[tuple[str, ...], str] = {}
    for verdict, given in known.items():
        if given is not None:
            name = f"known_{verdict}s"
            ids = id_pairs(given, name)
            pairs = zip(*(ids[side].to_pylist() for side in SIDES), strict=True)
            found |= {(*sorted(x), verdict): f"row {k} of {name}" for k, x in enumerate(pairs, 1)}
    if labels is None:
        return found
    path = Path(labels) if isinstance(labels, str | os.PathLike) else None
    told, judged = (path / LABELS, path / FILE) if path and path.is_dir() else (labels, path)
    if told is not labels and told.exists():
        found |= {(*sorted(x), verdict): "what the run was told" for x, verdict, _ in _rows(told)}
    if judged and judged.exists() and _is_sqlite(judged):
        with Judgements(judged) as judgements:
            for one in judgements.current():
                pair = sorted((one.id_a, one.id_b))
                found[(*pair, one.verdict)] = f"case {one.case} of the review"
    elif told is labels:
        found |= {(*sorted(x), verdict): f"{at} of the labels" for x, verdict, at in _rows(labels)}
    return found


def _nothing_judged(where: Path) -> InputError:
    return InputError(f"{where}: no judgements yet. Judge some pairs first, with bayeslink review.")


def _text_table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    return pa.table([pa.array(column, TEXT) for column in columns], list(names))
