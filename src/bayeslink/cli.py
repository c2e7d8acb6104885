"""The command line: the group of all commands, and what becomes of their errors."""

from __future__ import annotations

import os
import sys
import traceback
from functools import wraps
from pathlib import Path
from typing import Any

import click

from bayeslink.commands import deduping, demo, init, linking, results, reviewing, versions
from bayeslink.commands.options import quiet, verbose
from bayeslink.commands.output import LOUD, answer, cannot_tell, complain
from bayeslink.errors import BayeslinkError, OutputError
from bayeslink.streams import open_all
from bayeslink.threads import ends_in_order

_ADDRESSES = 2_200_000_000  # bytes, as measured for a linkage of a few hundred records


class _Commands(click.Group):
    """Our errors as one message and their own exit code, never a traceback."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        open_all()
        try:
            return super().main(*args, **kwargs)
        except OSError as error:
            if isinstance(error, BrokenPipeError):
                raise
            sys.exit(cannot_tell(error))

    def invoke(self, ctx: click.Context) -> Any:
        with ends_in_order() as signals:
            try:
                return super().invoke(ctx)
            except BayeslinkError as error:
                _abandon_compiling()
                complain(f"bayeslink: {error}{_how_to_go_on(ctx)}")
                ctx.exit(error.exit_code)
            except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
                raise
            except KeyboardInterrupt:
                _abandon_compiling()
                kept = ctx.invoked_subcommand == "demo"  # the files it made
                words = "" if kept or linking.RESUMABLE in ctx.meta else "; nothing was written"
                complain(f"bayeslink: interrupted{words}.{_how_to_go_on(ctx)}")
                ctx.exit(128 + signals[0] if signals else 130)
            except Exception as error:
                _abandon_compiling()
                complain(f"bayeslink: {_unforeseen(error)}")
                ctx.exit(1)


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    invoke_without_command=True,
    no_args_is_help=True,
)
@click.option("--version", is_flag=True, help="Show the version; with -v, all to report a fault.")
@quiet
@verbose
@click.pass_context
def main(ctx: click.Context, version: bool) -> None:
    """Link two files of the same people one-to-one, or find the people of one: no shared key."""
    if version:
        answer(versions.versions(ctx.meta.get(LOUD, 0) > 0))
        ctx.exit()
    if ctx.invoked_subcommand is None:
        raise click.UsageError("Missing command.", ctx)


def _with_room(run: Any) -> Any:
    """The same, but refused first where it would find no room: its help is shown all the same."""

    @wraps(run)
    def checked(*args: Any, **kwargs: Any) -> Any:
        _require_address_space()
        return run(*args, **kwargs)

    return checked


def _require_address_space() -> None:
    """Refuse a limit within which the libraries cannot be loaded: some hang in their import."""
    if sys.platform == "win32":
        return
    import resource

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY and limit < _ADDRESSES:
        raise OutputError(
            f"the address space is limited to {limit / 1e9:.1f} GB, and the libraries alone "
            f"reserve {_ADDRESSES / 1e9:.1f} GB of it, most of which they never use. Nothing was "
            "written. Lift the limit (ulimit -v unlimited); to use less memory, say --memory."
        )


for command in (
    demo.demo,
    init.profile,
    init.init,
    linking.link,
    deduping.dedupe,
    deduping.link_many,
    linking.resume,
    init.comparisons,
    demo.simulate,
    results.compare,
    results.evaluate,
    results.explain,
    results.join,
    results.population,
    results.report,
    reviewing.review,
    versions.completion,
):
    main.add_command(command)
    if command not in (init.comparisons, versions.completion):  # which load no library
        command.callback = _with_room(command.callback)


def _abandon_compiling() -> None:
    """Do not wait for code that nobody will run: a mistake is told at once."""
    if kernels := sys.modules.get("bayeslink.kernels"):
        kernels.abandon()


def _how_to_go_on(ctx: click.Context) -> str:
    output = ctx.meta.get(linking.RESUMABLE)
    if output is None:
        return ""
    shown = click.format_filename(output)
    return f" What was done is kept: `bayeslink resume {shown}` goes on from there."


def _unforeseen(error: Exception) -> str:
    """What cannot be laid to the user, without its message: that may quote a record."""
    if isinstance(error, MemoryError):
        return (
            "there is not enough memory for this. Give a smaller --memory, so that large arrays "
            "are kept in files, or lift the limit (ulimit -v)."
        )
    if os.environ.get("BAYESLINK_TRACEBACK"):
        raise error
    last = traceback.extract_tb(error.__traceback__)[-1]
    return (
        f"a fault of bayeslink itself: {type(error).__name__} in {Path(last.filename).name}, line "
        f"{last.lineno}. Please report it; with BAYESLINK_TRACEBACK=1 set, it says where it was."
    )


if __name__ == "__main__":
    main()
