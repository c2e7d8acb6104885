"""`dedupe` and `link-many`: the people of one file, and of several."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
from bayeslink.many_settings import ManySettings, named


def _finding_people(of: type[DedupeSettings], command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a command that finds people, in the order of its help."""
    for option in reversed(
        (
            click.option(
                "--id", "ids", multiple=True, help="Id column. [id, or as found in the file]"
            ),
            click.option("--no-id", is_flag=True, help="There is no id column: number the rows."),
            click.option(
                "--on",
                multiple=True,
                metavar="COLUMN[:COMPARISON[:SETTING=VALUE]]",
                help="A field to compare, such as surname:name; see `bayeslink comparisons`. Of a "
                "column alone, how is chosen from its values. [all chosen from the file]",
            ),
            settings_options(
                of=of,
                without=("engine", "quarantine") if of is ManySettings else ("engine",),
            ),
            click.option(
                "--no-people",
                is_flag=True,
                help="Leave out people and with_entities, which hold all columns.",
            ),
            click.option(
                "--config", type=FILE, metavar=of.TOML, help="Settings from a file; flags win."
            ),
            click.option("--group-readable", is_flag=True, help="Let your group read OUT."),
            click.option(
                "-o", "--output", type=FILE_TEXT, metavar="OUT", help="Directory for the results."
            ),
            force_option,
            quiet,
            verbose,
            as_json_option,
        )
    ):
        command = option(command)
    return command


@click.command(no_args_is_help=True)
@click.argument("a", metavar="FILE", required=False, type=FILE_TEXT)
@click.argument("more", nargs=-1, metavar="", type=FILE_TEXT)
@lambda command: _finding_people(DedupeSettings, command)
def dedupe(config: Path | None, more: tuple[str, ...], **flags: Any) -> None:
    """Find out which records of FILE are the same person, and write the results to OUT."""
    if more:
        raise SettingsError(
            "dedupe takes one file. For the people of several: bayeslink link-many A B -o OUT, "
            "with --duplicates NAME for each file in which people may be more than once."
        )
    require_there(config, "(--config)")
    if config is None:
        require_there(flags["a"], "FILE")
    find_people(DedupeSettings, config, said(flags, DedupeSettings), flags)


@click.command(name="link-many", no_args_is_help=True)
@click.argument("paths", metavar="[NAME=]FILE...", nargs=-1, type=FILE_TEXT)
@lambda command: _finding_people(ManySettings, command)
def link_many(config: Path | None, paths: tuple[str, ...], **flags: Any) -> None:
    """Find the people of two files or more, and write the results to OUT.

    A file is called NAME, or else as it is called itself, without its ending. A person has one
    record at most in each, but for the files that --duplicates names.
    """
    entries = said(flags, ManySettings)
    require_there(config, "(--config)")
    if paths:
        entries["files"] = named(paths)
        for name, path in entries["files"].items():
            require_there(path, name)
    find_people(ManySettings, config, entries, flags)


def find_people(
    of: type[DedupeSettings],
    config: Path | None,
    entries: Mapping[str, Any],
    flags: Mapping[str, Any],
) -> None:
    """Read, find, save and tell, whichever command asks."""
    several = of is ManySettings
    with showing_progress() as progress:
        from bayeslink.linking.checks import check_link
        from bayeslink.linking.dedupe import dedupe_with
        from bayeslink.linking.many import link_many_with
        from bayeslink.runs.interrupted import checkpoints_of
        from bayeslink.runs.link_toml import load
        from bayeslink.runs.run_directory import check_target, claim

        entries = {**(load(config, of) if config else {}), **entries}
        output = flags["output"] or entries.pop("output", None)
        entries.pop("output", None)
        given = entries.get("files" if several else "a")
        if not given:
            raise SettingsError(
                "the files are missing. Usage: bayeslink link-many A B C -o OUT"
                if several
                else "the file is missing. Usage: bayeslink dedupe FILE -o OUT"
            )
        if not output:
            raise SettingsError("no output directory. Name one: -o OUT")
        check_target(Path(output), force=flags["force"])
        settings = of.of(**entries)
        here = click.get_current_context()
        inputs = tuple(given.values()) if several else (given,)
        with (
            claim(output, force=flags["force"], inputs=inputs) as held,
            checkpoints_of(
                held,
                here.params,
                entries,
                command=str(here.command.name),
                resumed=RESUMED in here.meta,
                kept=lambda target: here.meta.update({RESUMABLE: target}),
            ) as checkpoints,
            removed_on_failure(read.quarantine for read in settings.read),
        ):
            check_link(settings.a, None, settings)
            prepare_kernels(progress)
            how: dict[str, Any] = {"progress": progress, "checkpoints": checkpoints}
            if isinstance(settings, ManySettings):
                run = link_many_with(settings, settings.files, **how)
            else:
                run = dedupe_with(settings, settings.a, **how)
                run = replace(run, settings=replace(run.settings, a=settings.a))
            run.save(
                output,
                force=flags["force"],
                shared=flags["group_readable"],
                people=not flags["no_people"],
            )
    if flags["as_json"]:
        print_json(run.summary())
        return
    tell("\n".join(run.report_lines()))
    for warning in run.warnings:
        tell(f"note: {warning}")
    told = "clusters.csv (who is who)"
    if (Path(output) / "people.csv").exists():
        yours = "with_entities_….csv (your files" if several else "with_entities.csv (your file"
        told += f", people.csv (a row a person), {yours} with entity_id)"
    tell(f"Results in {click.format_filename(output)}: {told}, run.json and more.")
