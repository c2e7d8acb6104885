"""`review`: doubtful pairs and people judged on a page."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from bayeslink.commands.early_checks import require_run
from bayeslink.commands.linking import people_command
from bayeslink.commands.options import FILE, quiet, side_a, side_b, verbose
from bayeslink.commands.output import answer, print_json, showing_progress, tell
from bayeslink.errors import SettingsError


@click.command()
@click.argument("run", type=FILE)
@click.option("--port", default=0, type=click.IntRange(0, 65535), help="[any that is free]")
@click.option(
    "--show",
    multiple=True,
    metavar="COLUMN",
    help="A further column to see, not compared (COLUMN_A=COLUMN_B if they differ).",
)
@click.option(
    "--names",
    nargs=2,
    default=("a", "b"),
    metavar="A B",
    help="What Splink calls the two data sets, for the labels written for it. [a b]",
)
@click.option("--no-browser", is_flag=True, help="Only print the address of the page.")
@click.option("--log", is_flag=True, help="Print the method and the status of each request.")
@click.option("--plan", is_flag=True, help="Only say how many to judge, and where.")
@click.option("--width", type=float, help="With --plan: the wanted width of the 95 % interval.")
@click.option(
    "--of",
    type=click.Choice(["links", "people", "precision", "recall"]),
    help="With --plan: what the interval is of. [links, or people of a run that finds people]",
)
@click.option(
    "--draw",
    type=int,
    metavar="N",
    help="First draw a random sample of N pairs, or of N clusters of people.",
)
@side_a
@side_b
@quiet
@verbose
@click.option("--json", "as_json", is_flag=True, help="With --plan: print it machine-readable.")
def review(
    run: Path,
    port: int,
    show: tuple[str, ...],
    names: tuple[str, str],
    no_browser: bool,
    log: bool,
    plan: bool,
    width: float | None,
    of: Any,
    draw: int | None,
    a: str | None,
    b: str | None,
    as_json: bool,
) -> None:
    """Judge what is in doubt in the run directory RUN on a page in the browser.

    Of a linkage that is pairs, of `dedupe` and `link-many` people. The page is served to this
    machine only. Judgements are stored at once in RUN/review.sqlite.
    """
    require_run(run, a=a, b=b)
    _refuse_b(run, b)
    if plan:
        with showing_progress() as progress:
            progress("planning")
            from bayeslink.runs.audit_plan import plan_sample

            planned = plan_sample(run, width, of=of)
        if as_json:
            print_json(planned.as_dict())
        else:
            answer(str(planned))
        return
    if width is not None or as_json:
        raise SettingsError("--width and --json are for a plan. Give --plan too.")
    with showing_progress() as progress:
        progress("reading the run and its files")
        from bayeslink.review.background import material_for, open_browser, require_server

        require_server()
        from bayeslink.review.server import serve
        from bayeslink.runs.audits import draw_sample
        from bayeslink.runs.opening import open_run

        opened = open_run(run, a=a, b=b)
        material = material_for(opened, show, names)
        if draw is not None:
            draw_sample(opened, draw)

    def ready(address: str, address_for_once: str) -> None:
        answer(f"Review at {address}\nCtrl-C ends it; what is judged is saved.")
        if not no_browser:
            open_browser(address_for_once)

    def told(line: str) -> None:
        if log:
            click.echo(line, err=True)

    with suppress(KeyboardInterrupt):
        serve(material, port=port, ready=ready, log=told)
    tell(f"Judgements are in {click.format_filename(run / 'review.sqlite')}.")


def _refuse_b(run: Path, b: str | None) -> None:
    """Refuse a second input of a run of people."""
    if b is not None and (command := people_command(run)):
        raise SettingsError(
            f"there is no input B: {run} is of `bayeslink {command}`. Leave --b out."
        )
