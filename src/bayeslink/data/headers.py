"""The line of column names: which it is, whether it has what is asked for, whether it is one."""

from __future__ import annotations

import csv
import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bayeslink.errors import InputError, NoColumnError

DELIMITERS = (",", ";", "\t", "|")
NO_HEADER = "There may be no header: put the column names on the first line."
_MONTH_DATE = re.compile(r"\d{1,4}[-/. ]*[^\W\d_]{3,10}[-/., ]*\d{1,4}")  # 1-FEB-1980
_ADDRESS = re.compile(r"\S+@\S+\.\S+")  # of e-mail
_OFTEN = 1000  # one row in so many with a column's own name is not by mistake


def require_columns(names: Sequence[str], wanted: Sequence[str], where: str) -> None:
    """Refuse names that lack a wanted column, or that hold one twice (letter case aside)."""
    for name in wanted:
        if name not in names:
            shown = ", ".join(map(repr, names[:20])) + (", ..." if len(names) > 20 else "")
            raise NoColumnError(
                f"{where}: there is no column {name!r}.{_nearest(name, names)} "
                f"The columns are: {shown}.",
                name,
            )
    seen: dict[str, int] = {}
    for k, name in enumerate(names, start=1):
        if (other := seen.setdefault(name.casefold(), k)) != k:
            # Where no column was asked for, it may be a cell of somebody's.
            same = "have the same name" if [*wanted] == [*names] else f"are both called {name!r}"
            raise InputError(
                f"{where}: columns {other} and {k} {same} (letter case aside). Column names must "
                "differ; rename one of them, or add the header if there is none."
            )


def _nearest(name: str, names: Sequence[str]) -> str:
    folded = {known.strip().casefold(): known for known in reversed(names)}
    near = difflib.get_close_matches(name.strip().casefold(), folded, n=1)
    return f" Did you mean {folded[near[0]]!r}?" if near else ""


def _first_record(lines: Iterable[str], delimiter: str) -> list[str]:
    try:
        return next(filter(None, csv.reader(lines, delimiter=delimiter, strict=True)), [])
    except csv.Error:
        return []


def find_header(
    peek: Sequence[str],
    wanted: Sequence[str] | None,
    delimiter: str | None,
    skipped: int,
    where: str,
) -> tuple[str, list[str]]:
    """Return the delimiter and the column names, told by which of them has the wanted columns.

    Where all are wanted, the delimiter is the one that makes most columns.
    """
    if not any(line.strip("\r\n") for line in peek):
        raise no_records(where)
    candidates = DELIMITERS if delimiter is None else (delimiter,)
    headers = {d: _first_record(peek, d) for d in candidates}
    if wanted is None:
        most = max(map(len, headers.values()))
        headers = {d: names for d, names in headers.items() if len(names) == most or not names}
        wanted = next(names for names in headers.values() if len(names) == most)
    fitting = {d: names for d, names in headers.items() if set(wanted) <= set(names)}
    if len({tuple(names) for names in fitting.values()}) > 1:
        raise InputError(
            f"{where}: the header can be split at {' or '.join(map(repr, fitting))}. "
            "Say which with --delimiter (delimiter=)."
        )
    for d, names in fitting.items():
        require_columns(names, wanted, where)
        return d, names
    if not any(headers.values()):
        raise InputError(
            f"{where}, line {skipped + 1}: the header cannot be read, a quote in it is not closed "
            "or has text after it. Correct the header."
        )
    if sum(bool(line.strip("\r\n")) for line in peek) == 1:  # may be all records in a line
        raise no_records(where)
    best = max(headers.values(), key=lambda names: (len(set(wanted) & set(names)), len(names)))
    raise _header_error(best, peek, wanted, candidates, skipped, where)


def _header_error(
    names: list[str],
    peek: Sequence[str],
    wanted: Sequence[str],
    candidates: Sequence[str],
    skipped: int,
    where: str,
) -> InputError:
    """Say what the header lacks, without showing a first line that may be a person."""
    rows = {k: [_first_record([line], d) for d in candidates] for k, line in enumerate(peek)}
    for k, splits in rows.items():
        if k and any(set(wanted) <= set(cells) for cells in splits):
            return InputError(
                f"{where}: the header is not on line {skipped + 1} but on line {skipped + k + 1}. "
                f"Skip what stands before it with --skip-lines {skipped + k} (skip_lines=)."
            )
    if set(wanted) & set(names) or _is_header(names, rows):
        try:
            require_columns(names, wanted, where)
        except InputError as error:
            return error
    widest = max(len(cells) for splits in rows.values() for cells in splits)
    reason = f"{NO_HEADER} Or cells are split by something else: say by what, --delimiter."
    if len(names) < widest:
        reason = (
            f"That line has {len(names)} cells and a later one {widest}: if the header comes "
            "later, skip what stands before it with --skip-lines (skip_lines=)."
        )
    return none_there(names, wanted, f"{where}, line {skipped + 1}", reason)


def _is_header(names: Sequence[str], rows: Mapping[int, Sequence[Sequence[str]]]) -> bool:
    """Whether a first line is surely one of names: without digits, above cells that have some.

    Else it may be a person, and is not shown.
    """
    digit = re.compile(r"\d")
    if len({*names}) < max(2, len(names)) or not all(names) or any(map(digit.search, names)):
        return False
    below = [max(splits, key=len) for k, splits in rows.items() if k]
    fits = [cells for cells in below if len(cells) == len(names)]
    return any(
        len(cells) > 1 and all(map(digit.search, cells)) for cells in zip(*fits, strict=True)
    )


def none_there(names: Sequence[str], wanted: Sequence[str], where: str, reason: str) -> InputError:
    """That no column asked for is there; what is there may be a person, and is not shown."""
    folded = {name.strip().casefold() for name in names}
    alike = [name for name in wanted if name.strip().casefold() in folded]
    if alike:
        reason = f"Names must agree letter for letter; {alike[0]!r} is there in another case."
    asked = ", ".join(map(repr, wanted[:20]))
    return InputError(f"{where}: none of the columns asked for ({asked}) is there. {reason}")


def no_records(where: str) -> InputError:
    return InputError(
        f"{where}: there are no records. A file needs a header line and at least one row, a table "
        "at least one row; check that this is the right one."
    )


# Records taken for a header


def refuse_records_as_names(columns: Mapping[str, Any], where: str) -> None:
    """Refuse column names that seem to be cells of the first record.

    That is a number, a date or an address among them, or a name that is a value of its own
    column. Numbers that follow one another, as 0, 1, 2 or 2019, 2020, are names.
    """
    odd = {k: name.strip() for k, name in enumerate(columns, start=1) if _is_data(name.strip())}
    numbers = [int(name) for name in odd.values() if re.fullmatch(r"\d{1,9}", name)]
    follow = len(numbers) > 1 and numbers == [*range(numbers[0], numbers[0] + len(odd))]
    if odd and not follow:
        raise _no_header(where, f"column {next(iter(odd))} would be called by a number or a date")
    for k, (name, column) in enumerate(columns.items(), start=1):
        if name.strip() and pa.types.is_large_string(column.type):
            again = pc.sum(pc.equal(column, pa.scalar(name, column.type))).as_py() or 0
            if again and again * _OFTEN >= len(column):
                raise _no_header(where, f"the name of column {k} is also a value in its rows")


def _is_data(name: str) -> bool:
    if any(map(str.isalpha, name)):
        return bool(_MONTH_DATE.fullmatch(name) or _ADDRESS.fullmatch(name))
    return any(map(str.isdigit, name))


def _no_header(where: str, why: str) -> InputError:
    return InputError(
        f"{where}: there seems to be no header, the first record being read as one: {why}. Put the "
        "column names on the first line; if they come later, skip what stands before them with "
        "--skip-lines (skip_lines=). If the names are meant, say what to compare with --on."
    )


def header_again(line: int, where: str, what: str = "line") -> InputError:
    """That a row is the header once more."""
    return InputError(
        f"{where}, {what} {line}: repeats the header, as where files were put one after the "
        "other. Remove it; if it begins another table, put that into a file of its own."
    )
