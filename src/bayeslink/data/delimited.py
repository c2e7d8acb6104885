"""Delimited text (CSV and its kin) -> columns of text, each row with its line number.

Parsed by the standard library's ``csv``, not by DuckDB or Arrow: it never guesses a type, and we
keep the line number of every row and decide what happens to the rows that do not fit.
"""

import codecs
import csv
import hashlib
import io
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bayeslink.data.checksums import require_same, require_whole
from bayeslink.data.headers import find_header, header_again
from bayeslink.data.read_options import ReadOptions
from bayeslink.data.stray_quotes import refuse_swallowed
from bayeslink.errors import InputError, OutputError
from bayeslink.private import written_whole

FIELD_LIMIT = 2**20  # characters in one cell; an unclosed quote stops here, not at the end of file
LINE_LIMIT = 2**24  # characters in one line
GZIP_FREE = 2**28  # decompressed bytes below which the ratio is not looked at
ZIP = b"PK\x03\x04"  # how a zip archive begins
GZIP_RATIO = 200  # decompressed : compressed; gzip itself can reach about 1000
BLANK_LIMIT = 2**20  # blank lines one after another
CHUNK = 2**18  # bytes read at once
BATCH_CELLS = 2**13  # cells parsed before they are packed into Arrow arrays
PEEK = 20  # lines looked at to find the header
BOMS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark it starts with
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


@dataclass(frozen=True, slots=True)
class Delimited:
    """The wanted columns of a delimited file, and the rows that did not fit."""

    columns: dict[str, pa.ChunkedArray]
    lines: npt.NDArray[np.int64]  # line on which each record starts
    misfits: list[tuple[int, int]]  # first line and number of lines of each row set aside
    sha256: str


def read_delimited(
    path: Path,
    wanted: Sequence[str] | None,
    options: ReadOptions,
    where: str,
) -> Delimited:
    """Read the wanted columns (None: all).

    An error is a row of the wrong length without a quarantine file, and a cell that may have
    swallowed rows unless cells may be `multiline`. `where` opens every message, as in
    "input A, people.csv".
    """
    digest = hashlib.sha256()
    chunks: list[list[pa.Array]] = []
    starts: list[npt.NDArray[np.int64]] = [np.empty(0, np.int64)]
    misfits: list[tuple[int, int]] = []
    names: Sequence[str] = wanted or ()
    for rows in _rows(path, wanted, options, digest, where):
        misfits += rows.misfits
        names = rows.names if wanted is None else wanted
        if rows.cells:
            chunks.append(_pack(rows.cells, [rows.names.index(name) for name in names]))
            starts.append(rows.lines)
    columns = {
        name: pa.chunked_array([chunk[k] for chunk in chunks], pa.large_string())
        for k, name in enumerate(names)
    }
    return Delimited(columns, np.concatenate(starts), misfits, digest.hexdigest())


def all_columns(
    path: Path,
    needed: Sequence[str],
    options: ReadOptions,
    where: str,
    sha256: str | None = None,
) -> Iterator[pa.Table]:
    """Every column of the same rows, some at a time; `needed` are columns that must be there.

    Refused, after the last row, if the file does not have this checksum.
    """
    digest = hashlib.sha256()
    for rows in _rows(path, needed, options, digest, where):
        if rows.cells:
            yield pa.table(_pack(rows.cells, range(len(rows.names))), rows.names)
    require_same(digest.hexdigest(), sha256, where)


def write_misfits(
    target: Path,
    path: Path,
    misfits: Sequence[tuple[int, int]],
    encoding: str | None,
    sha256: str | None,
) -> None:
    """Copy the rows set aside to `target`: line number, tab, the row as it stands in the file.

    A file that holds just these rows is left as it is, so that a run can be repeated.
    """
    digest = hashlib.sha256()
    lines = chain.from_iterable(_line_blocks(path, encoding, digest, str(path)))
    rows, at = [], 0
    for first, span in misfits:
        text = "".join(islice(lines, first - 1 - at, first - 1 - at + span))
        at = first - 1 + span
        rows.append(f"{first}\t{text.rstrip(chr(13) + chr(10))}\n")
    for _ in lines:  # for the digest
        pass
    require_same(digest.hexdigest(), sha256, str(path))
    content = "".join(rows).encode()
    try:
        if target.is_file() and target.read_bytes() == content:
            return
        with written_whole(target, new=True) as out:
            out.write(content)
    except OSError as error:
        raise OutputError(
            f"The quarantine file {str(target)!r} cannot be written ({error.strerror}). It must be "
            "a new file in a directory that exists; remove the old one or give another name."
        ) from None


# From bytes to lines


def _stored_bytes(path: Path, digest: Any) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
            yield chunk


def _plain_bytes(path: Path, digest: Any, where: str) -> Iterator[bytes]:
    """Bytes of the file, decompressed if it is gzip or zip; at most CHUNK of them at a time."""
    stored = _stored_bytes(path, digest)
    head = next(stored, b"")
    stored = chain([head], stored)
    if head.startswith(ZIP):
        for _ in stored:  # for the digest
            pass
        yield from _within_bounds(_unzipped(path, where), path, where)
        require_whole(path, "zip", digest.hexdigest(), where)  # which was opened a second time
    elif head.startswith(b"\x1f\x8b"):
        yield from _within_bounds(_gunzipped(stored, where), path, where)
    else:
        yield from stored


def _within_bounds(chunks: Iterator[bytes], path: Path, where: str) -> Iterator[bytes]:
    """What was decompressed, as long as it is not absurdly much."""
    budget = max(GZIP_FREE, GZIP_RATIO * path.stat().st_size)
    for plain in chunks:
        budget -= len(plain)
        if budget < 0:
            raise InputError(
                f"{where}: expands to more than {GZIP_RATIO} times its size, as files made to fill "
                "a disk do. Decompress it yourself if you trust it."
            )
        yield plain


def _unzipped(path: Path, where: str) -> Iterator[bytes]:
    """The one file in a zip archive."""
    try:
        with zipfile.ZipFile(path) as archive:
            named = [m for m in archive.infolist() if not m.is_dir()]
            files = [m for m in named if not m.filename.startswith("__MACOSX/")]
            if len(files) != 1 or files[0].flag_bits & 1:
                what = "is encrypted" if len(files) == 1 else f"holds {len(files):,} files"
                raise InputError(
                    f"{where}: the zip archive {what}; one plain file is read from it. Unzip it, "
                    "and give the file that is meant."
                )
            with archive.open(files[0]) as member:
                while plain := member.read(CHUNK):
                    yield plain
    except InputError:
        raise
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError, ValueError):
        raise InputError(
            f"{where}: a zip archive, or an Excel workbook, that is cut short, damaged or of a "
            "kind that cannot be read. Copy it again, or give the file in it."
        ) from None


def _gunzipped(stored: Iterator[bytes], where: str) -> Iterator[bytes]:
    member = zlib.decompressobj(wbits=31)
    try:
        for chunk in stored:
            while chunk:
                yield member.decompress(chunk, CHUNK)
                chunk = member.unconsumed_tail
                if member.eof:  # members may follow one another, and zeros may pad the last
                    chunk = member.unused_data.lstrip(b"\0")
                    member = zlib.decompressobj(wbits=31) if chunk else member
        if not member.eof:
            raise zlib.error
    except zlib.error:
        raise InputError(
            f"{where}: the gzip data are cut short or damaged. Copy or compress the file again."
        ) from None


def _texts(path: Path, encoding: str | None, digest: Any, where: str) -> Iterator[str]:
    """Decoded text of the file, without its byte order mark."""
    chunks = _plain_bytes(path, digest, where)
    head = b""
    for chunk in chunks:
        head += chunk
        if len(head) >= 4:
            break
    told = (name for mark, name in BOMS.items() if head.startswith(mark))
    decoder = codecs.getincrementaldecoder(encoding or next(told, "utf-8"))()
    yield decoder.decode(head).removeprefix("\ufeff")
    for chunk in chunks:
        yield decoder.decode(chunk)
    yield decoder.decode(b"", final=True)


def _line_blocks(
    path: Path, encoding: str | None, digest: Any, where: str
) -> Iterator[Iterable[str]]:
    """Whole lines, many at a time; CR, LF and CRLF all end a line."""
    rest, line, blank = "", 1, 0
    texts = _texts(path, encoding, digest, where)
    try:
        for text in texts:
            text = rest + text
            if (nul := text.find("\0")) >= 0:
                raise InputError(
                    f"{where}, line {line + _newlines(text[:nul])}: holds a NUL character, which "
                    "text never does. Save the file again as text; if it is UTF-16 without a "
                    "byte order mark, say --encoding utf-16-le (encoding=)."
                )
            # A CR at the very end may be half of a CRLF.
            cut = max(text.rfind("\n"), text.rfind("\r", 0, -1)) + 1
            block, rest = text[:cut], text[cut:]
            if len(rest) > LINE_LIMIT:
                raise InputError(
                    f"{where}, line {line + _newlines(block)}: longer than {LINE_LIMIT:,} "
                    "characters. Is this a table with one record a line?"
                )
            blank = blank + len(block) if not block.strip("\r\n") else 0
            if blank > BLANK_LIMIT:
                raise InputError(
                    f"{where}, line {line}: more than {BLANK_LIMIT:,} blank lines follow one "
                    "another. Is the file whole? Remove them if it is."
                )
            yield io.StringIO(block, newline="")
            line += _newlines(block)
    except UnicodeDecodeError as error:
        line += _newlines(rest + error.object[: error.start].decode(error.encoding, "replace"))
        raise InputError(
            f"{where}, line {line}: not valid {encoding or 'UTF-8'}. Say how the file is encoded "
            "with --encoding (encoding=); files from Windows are often cp1252, older ones latin-1. "
            "Of two files, once is for both, twice of A, then B: --encoding cp1252 --encoding utf-8"
        ) from None
    except UnicodeError:  # of the encoding as a whole, such as a missing byte order mark
        raise InputError(
            f"{where}, line {line}: cannot be read as {encoding}. If it is UTF-16 without a byte "
            "order mark, say --encoding utf-16-le or utf-16-be (encoding=); else utf-8, cp1252 or "
            "latin-1."
        ) from None
    yield io.StringIO(rest, newline="")


def _newlines(text: str) -> int:
    returns = text.count("\r")
    return text.count("\n") + returns - (text.count("\r\n") if returns else 0)


# The rows


@dataclass(frozen=True, slots=True)
class _Rows:
    """Some rows that fit the header, and where those are that do not."""

    names: list[str]  # of all columns
    cells: list[list[str]]
    lines: npt.NDArray[np.int64]
    misfits: list[tuple[int, int]]


def _rows(
    path: Path,
    wanted: Sequence[str] | None,
    options: ReadOptions,
    digest: Any,
    where: str,
) -> Iterator[_Rows]:
    """Rows as they stand in the file; one of the wrong length is an error without a quarantine."""
    # The limit belongs to the process: given back, it would cut off the cells of other threads.
    csv.field_size_limit(max(FIELD_LIMIT, csv.field_size_limit()))
    lines = chain.from_iterable(_line_blocks(path, options.encoding, digest, where))
    skipped = sum(1 for _ in islice(lines, options.skip_lines))
    peek = list(islice(lines, PEEK))
    delimiter, names = find_header(peek, wanted, options.delimiter, skipped, where)
    reader = csv.reader(chain(peek, lines), delimiter=delimiter, strict=True)
    next(filter(None, reader))  # the header, found above
    none_yet = True
    for batch, first, spans in _batches(reader, len(names), skipped, where):
        bad: list[tuple[int, int, int]] = []
        if not options.multiline:
            long = np.flatnonzero(spans > 1)
            refuse_swallowed(((first[k], batch[k]) for k in long), delimiter, len(names), where)
        if len(names) > 1 and names in batch:
            raise header_again(first[batch.index(names)], where)
        if set(map(len, batch)) != {len(names)}:
            batch, first, bad = _fitting(batch, first, spans, len(names))
            if bad and options.quarantine is None:
                raise _misfit_error(bad[0], len(names), none_yet and not len(first), where)
        none_yet = none_yet and not batch
        yield _Rows(names, batch, first, [(line, span) for line, span, _ in bad])


def _batches(
    reader: Any, width: int, skipped: int, where: str
) -> Iterator[tuple[list[list[str]], npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """Rows, the line each starts on, and how many lines each takes."""
    size = max(1, BATCH_CELLS // width)
    while True:
        batch: list[list[str]] = []
        before = skipped + reader.line_num
        try:
            batch.extend(islice(reader, size))
            _refuse_long_cells(batch)
        except csv.Error as error:  # the rows before the broken one are in the batch
            line = before + 1 + int(_spans(batch).sum())
            reason = (
                f"a cell has more than {FIELD_LIMIT:,} characters, or a quote is not closed"
                if "limit" in str(error)
                else "a quote is not closed, or text follows a closing quote"
            )
            raise InputError(
                f"{where}, line {line}: {reason}. Inside a quoted cell write a quote twice; "
                "correct the row that starts on this line."
            ) from None
        if not batch:
            return
        spans = np.ones(len(batch), np.int64)
        if skipped + reader.line_num - before != len(batch):
            spans = _spans(batch)
        yield batch, before + 1 + np.cumsum(spans) - spans, spans


def _refuse_long_cells(batch: list[list[str]]) -> None:
    """Cut the batch off before a cell that is too long, where others let the module read it."""
    if csv.field_size_limit() > FIELD_LIMIT:
        for k, row in enumerate(batch):
            if max(map(len, row), default=0) > FIELD_LIMIT:
                del batch[k:]
                raise csv.Error("over the limit")


def _spans(batch: list[list[str]]) -> npt.NDArray[np.int64]:
    """Lines that each row takes: one, and one more for each line break inside its quotes."""
    return np.fromiter((1 + _newlines("\0".join(row)) for row in batch), np.int64, len(batch))


def _fitting(
    batch: list[list[str]],
    first: npt.NDArray[np.int64],
    spans: npt.NDArray[np.int64],
    width: int,
) -> tuple[list[list[str]], npt.NDArray[np.int64], list[tuple[int, int, int]]]:
    """Rows as wide as the header, and (line, lines, cells) of the others; blank lines go."""
    cells = np.fromiter(map(len, batch), np.int64, len(batch))
    bad = np.flatnonzero((cells != width) & (cells != 0))
    kept = [row for row in batch if len(row) == width]
    return (
        kept,
        first[cells == width],
        [(int(first[k]), int(spans[k]), int(cells[k])) for k in bad],
    )


def _misfit_error(
    misfit: tuple[int, int, int], width: int, at_the_top: bool, where: str
) -> InputError:
    line, _, cells = misfit
    hint = " If the header comes later, use --skip-lines (skip_lines=)." if at_the_top else ""
    return InputError(
        f"{where}, line {line}: {cells} cells where the header has {width}. Correct or remove the "
        "line (is it a footer?), or have such rows set aside with --quarantine FILE "
        f"(quarantine=).{hint}"
    )


def _pack(batch: list[list[str]], positions: Sequence[int]) -> list[pa.Array]:
    return [pa.array([row[k] for row in batch], pa.large_string()) for k in positions]
