"""What commands say: results, complaints, progress."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bayeslink.streams import silence

if TYPE_CHECKING:
    from bayeslink.runs.run import Run

LOUD = "bayeslink.loud"  # in the `meta` of a context: 1 with -v, -1 with -q


def tell(message: str) -> None:
    """Say what was done, unless told to be quiet."""
    if _loudness() >= 0:
        answer(message)


def answer(message: str) -> None:
    """Print what the command was asked for, quiet or not."""
    try:
        click.echo(message)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise click.exceptions.Exit(cannot_tell(error)) from None


def complain(message: str) -> None:
    """Say it on standard error, if that can be written to."""
    try:
        click.echo(message, err=True)
    except OSError:
        silence()


def cannot_tell(error: OSError) -> int:
    """What is written in files is; only the words are lost."""
    with suppress(OSError):
        click.echo(f"bayeslink: standard output cannot be written: {error.strerror}.", err=True)
    silence()
    return 4


def print_json(summary: dict[str, Any]) -> None:
    answer(json.dumps(_finite(summary), allow_nan=False))


def _finite(value: Any) -> Any:
    """The same with null for numbers that JSON does not have, such as the precision of no links."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(part) for key, part in value.items()}
    return [_finite(part) for part in value] if isinstance(value, list | tuple) else value


def _loudness() -> int:
    """Above 0 with -v, below with -q."""
    return click.get_current_context().find_root().meta.get(LOUD, 0)


def is_verbose() -> bool:
    """Whether all there is to say is wanted."""
    return _loudness() > 0


def print_summary(run: Run, output: Path) -> None:
    """A run in four lines and a few notes; with -v, in the terms of the method, and all notes."""
    from bayeslink.runs.brief import in_brief, in_detail
    from bayeslink.runs.notes import ranked

    place = click.format_filename(output)
    if is_verbose():
        tell("\n".join([*run.report_lines(), *in_detail(ranked(run.warnings))]))
    else:
        tell("\n".join(in_brief(run, place)))
    first = "linked.csv" if (output / "linked.csv").exists() else "links.csv"
    tell(f"Results in {place}: {first}, run.json and more.")


@contextmanager
def showing_progress() -> Iterator[Callable[[str], None]]:
    """A bar with the time left, on a terminal only; gone when done. -q: none, -v: lines."""
    loud = _loudness()
    if loud > 0:
        said = [""]

        def say(message: str) -> None:
            if message != said[-1]:
                complain(f"bayeslink: {message}")
            said[:] = [message]

        yield say
        return
    from bayeslink.progress import bar

    with bar(None if loud == 0 else False) as progress:
        yield progress


def prepare_kernels(progress: Callable[[str], None]) -> None:
    """Compile the kernels, on the first run on a machine; say so, and how far that is."""
    from bayeslink.kernels import prepare

    quiet = _loudness() < 0

    def say(message: str) -> None:
        if not quiet:
            complain(f"bayeslink: {message}")

    prepare(say, progress)
