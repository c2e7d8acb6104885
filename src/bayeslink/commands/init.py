"""`profile`: what is in the files; `init`: settings drafted from them; `comparisons`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bayeslink.commands.options import (
    FILE,
    FILE_TEXT,
    as_json_option,
    quiet,
    reading,
    said,
    verbose,
)
from bayeslink.commands.output import answer, print_json, showing_progress, tell
from bayeslink.data.locations import require_there
from bayeslink.errors import SettingsError
from bayeslink.settings import FOUND, LinkSettings

if TYPE_CHECKING:
    from bayeslink.suggesting.suggestion import Suggestion


@click.command()
@click.argument("a", type=FILE_TEXT)
@click.argument("b", type=FILE_TEXT, required=False)
@reading
@click.option("--values", is_flag=True, help="Show the most frequent values, not their shapes.")
@click.option("-o", "--output", type=FILE, metavar="FILE", help="Write it as one HTML file.")
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
@quiet
@verbose
@as_json_option
def profile(
    a: str,
    b: str | None,
    values: bool,
    output: Path | None,
    force: bool,
    as_json: bool,
    **flags: Any,
) -> None:
    """Say what is in the file A, or in A and B: what each column holds and how full it is."""
    for place, side in ((a, "A"), (b, "B")):
        if place is not None:
            require_there(place, side)
    with showing_progress() as progress:
        from bayeslink.runs.link_toml import refuse_existing_file
        from bayeslink.suggesting.profiling import profile as profile_of

        settings = LinkSettings.of(**said({"a": a, "b": b or a, **flags}))
        if output is not None:
            refuse_existing_file(output, force=force)
        progress("looking at the files" if b else "looking at the file")
        found = profile_of(a, b, values=values, read=settings.read)
        if output is not None:
            found.save(output, force=force)
    if as_json:
        print_json({**({"output": str(output)} if output else {}), **found.as_dict()})
    elif output is not None:
        tell(click.format_filename(output))
    else:
        answer(str(found))


@click.command()
@click.argument("a", type=FILE_TEXT)
@click.argument("b", type=FILE_TEXT, required=False)
@click.option("--id", "ids", multiple=True, help="Id column (twice: in A, then in B). [found]")
@reading
@click.option(
    "-o", "--output", type=FILE, metavar="FILE", help="[link.toml, or dedupe.toml of one file]"
)
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
@click.option("--explain", is_flag=True, help="Say why each column is compared, or left out.")
@quiet
@verbose
@as_json_option
def init(
    a: str,
    b: str | None,
    output: Path | None,
    force: bool,
    explain: bool,
    as_json: bool,
    **flags: Any,
) -> None:
    """Look at the files A and B and write a link.toml that says what to compare, and why.

    Of A alone, a dedupe.toml: what to compare among its own records.
    """
    command = "link" if b else "dedupe"
    output = output or Path(f"{command}.toml")
    for place, side in ((a, "A"), (b, "B")):
        if place is not None:
            require_there(place, side)
    with showing_progress() as progress:
        from bayeslink.runs.link_toml import refuse_existing_file, write_new

        settings = LinkSettings.of(**said({"a": a, "b": b, **flags}))
        refuse_existing_file(output, force=force)
        progress("looking at the files" if b else "looking at the file")
        suggestion = suggest_for(settings)
        write_new(output, suggestion.to_toml(a, b, output.parent), force=force)
    shown = click.format_filename(output)
    if as_json:
        print_json({"output": str(output), **suggestion.as_dict()})
        return
    tell("\n".join(suggestion.explained() if explain else suggestion.lines()))
    tell(f"Written to {shown}. Read it, then: bayeslink {command} --config {shown} -o out")


def suggest_for(settings: LinkSettings) -> Suggestion:
    """What to compare in the files that settings name."""
    from bayeslink.suggesting.suggestion import suggest

    ids = None if settings.id is FOUND else settings.id
    return suggest(settings.a, settings.b, id=ids, read=settings.read)


@click.command()
@click.argument("names", nargs=-1)
@quiet
@verbose
def comparisons(names: tuple[str, ...]) -> None:
    """List the comparisons that --on takes, with levels, settings and an example of each."""
    from bayeslink.comparing.catalogue import COMPARISONS, describe

    for name in names:
        if name not in COMPARISONS:
            raise SettingsError(f"unknown comparison {name!r}. Allowed: {', '.join(COMPARISONS)}.")
    answer("\n\n".join(describe(name) for name in names or COMPARISONS))
