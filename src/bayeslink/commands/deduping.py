"""`dedupe`: the people of one file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from bayeslink.commands.linking import RESUMABLE, RESUMED, removed_on_failure
from bayeslink.commands.options import (
    FILE,
    FILE_TEXT,
    as_json_option,
    force_option,
    quiet,
    said,
    settings_options,
    verbose,
)
from bayeslink.commands.output import prepare_kernels, print_json, showing_progress, tell
from bayeslink.data.locations import require_there
from bayeslink.dedupe_settings import DedupeSettings
from bayeslink.errors import SettingsError


@click.command(no_args_is_help=True)
@click.argument("a", metavar="FILE", required=False, type=FILE_TEXT)
@click.argument("more", nargs=-1, metavar="", type=FILE_TEXT)
@click.option("--id", "ids", multiple=True, help="Id column. [id, or as found in the file]")
@click.option("--no-id", is_flag=True, help="The file has no id column: number the rows.")
@click.option(
    "--on",
    multiple=True,
    metavar="COLUMN[:COMPARISON[:SETTING=VALUE]]",
    help="A field to compare, such as surname:name; see `bayeslink comparisons`. Of a column "
    "alone, how is chosen from its values. [all chosen from the file]",
)
@settings_options(of=DedupeSettings, without=("engine",))
@click.option(
    "--no-people", is_flag=True, help="Leave out people and with_entities, which hold all columns."
)
@click.option("--config", type=FILE, metavar="dedupe.toml", help="Settings from a file; flags win.")
@click.option("--group-readable", is_flag=True, help="Let your group read OUT. [only you may]")
@click.option("-o", "--output", type=FILE_TEXT, metavar="OUT", help="Directory for the results.")
@force_option
@quiet
@verbose
@as_json_option
def dedupe(
    config: Path | None,
    output: str | None,
    force: bool,
    as_json: bool,
    group_readable: bool,
    no_people: bool,
    more: tuple[str, ...],
    **flags: Any,
) -> None:
    """Find out which records of FILE are the same person, and write the results to OUT."""
    if more:
        raise SettingsError(
            "dedupe takes one file. To link two: bayeslink link A B -o OUT; to find the people of "
            "several files of the same columns, write them as one file."
        )
    require_there(config, "(--config)")
    if config is None:
        require_there(flags["a"], "FILE")
    with showing_progress() as progress:
        from bayeslink.linking.checks import check_link
        from bayeslink.linking.dedupe import dedupe_with
        from bayeslink.runs.interrupted import checkpoints_of
        from bayeslink.runs.link_toml import load
        from bayeslink.runs.run_directory import check_target, claim

        entries = load(config, DedupeSettings) if config else {}
        entries |= said(flags, DedupeSettings)
        output = output or entries.pop("output", None)
        if not entries.get("a"):
            raise SettingsError("the file is missing. Usage: bayeslink dedupe FILE -o OUT")
        if not output:
            raise SettingsError("no output directory. Name one: -o OUT")
        check_target(Path(output), force=force)
        entries.pop("output", None)
        settings = DedupeSettings.of(**entries)
        here = click.get_current_context()
        with (
            claim(output, force=force, inputs=(settings.a,)) as held,
            checkpoints_of(
                held,
                here.params,
                entries,
                command="dedupe",
                resumed=RESUMED in here.meta,
                kept=lambda target: here.meta.update({RESUMABLE: target}),
            ) as checkpoints,
            removed_on_failure(read.quarantine for read in settings.read),
        ):
            check_link(settings.a, None, settings)
            prepare_kernels(progress)
            run = dedupe_with(settings, settings.a, progress=progress, checkpoints=checkpoints)
            run = replace(run, settings=replace(run.settings, a=settings.a))
            run.save(output, force=force, shared=group_readable, people=not no_people)
    if as_json:
        print_json(run.summary())
        return
    tell("\n".join(run.report_lines()))
    for warning in run.warnings:
        tell(f"note: {warning}")
    files = "clusters.csv (who is who)"
    if (Path(output) / "people.csv").exists():
        files += ", people.csv (a row a person), with_entities.csv (your file with entity_id)"
    tell(f"Results in {click.format_filename(output)}: {files}, run.json and more.")
