"""Profiles of files as a picture, as what a notebook shows, and as a page to pass on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bayeslink.private import mode_within
from bayeslink.report.markup import Cell, Number, paragraph, table
from bayeslink.report.page import filled, write_page
from bayeslink.report.svg import escape, tag
from bayeslink.runs.link_toml import refuse_existing_file

if TYPE_CHECKING:
    from bayeslink.suggesting.profiling import ColumnProfile, FileProfile, FileProfiles

_WORDS = (
    "Filled: the share of the records with a value. Distinct: different values. Alike by chance: "
    "how often two records that are taken by chance have the same value; the rarer, the better the "
    "column tells people apart."
)
_SHAPES = " Shapes stand for values: 9 is a digit, A and a are letters, … are letters that go on."


def in_notebook(profiles: FileProfiles) -> str:
    """What a notebook shows."""
    files = (_of_file(profiles, side) for side in range(len(profiles.files)))
    return tag("div", "".join(files), cls="profile")


def write(profiles: FileProfiles, path: str | Path, *, force: bool = False) -> Path:
    """Write the page whole, or not at all."""
    target = Path(path)
    refuse_existing_file(target, force=force)
    names = " and ".join(Path(file.label).name for file in profiles.files)
    shapes = "" if any(c.values for file in profiles.files for c in file.columns) else _SHAPES
    body = tag("h1", f"What is in {escape(names)}") + paragraph(_WORDS + shapes)
    title = f"What is in {names}"
    write_page(target, filled(title, body + in_notebook(profiles)), mode_within(target.parent))
    return target


def _of_file(profiles: FileProfiles, side: int) -> str:
    file = profiles.files[side]
    sample = " Kinds, shapes and chances are of a sample of them." if file.sampled else ""
    return (
        tag("h2", escape(Path(file.label).name))
        + paragraph(f"{file.n_records:,} records, {len(file.columns)} columns.{sample}")
        + table(
            [head[0].upper() + head[1:] for head in profiles.heads(side)],
            [_row(profiles, side, c) for c in file.columns],
        )
        + _missing(file)
    )


def _row(profiles: FileProfiles, side: int, c: ColumnProfile) -> list[Cell]:
    cells: list[Cell] = [*profiles.cells(side, c)]
    for at, value in ((2, c.complete), (3, c.distinct), (4, c.chance)):
        cells[at] = Number(str(cells[at]), value)
    return cells


def _missing(file: FileProfile) -> str:
    items = [tag("li", escape(told)) for told in file.missing_in_words()]
    return tag("ul", "".join(items)) if items else ""
