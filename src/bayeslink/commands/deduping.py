"""`dedupe` and `link-many`: the people of one file, and of several."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bayeslink.commands.linking import (
    RESUMABLE,
    RESUMED,
    people_command,
    refuse_beside_update,
    removed_on_failure,
)
from bayeslink.commands.on_spark import PEOPLE_TO, require_spark, spark_options, with_session
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

if TYPE_CHECKING:
    from bayeslink.runs.dedupe_run import DedupeRun


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
                without=("quarantine",) if of is ManySettings else (),
            ),
            spark_options(
                PEOPLE_TO, "Where Spark's executors write with_entities, as Parquet folders."
            ),
            click.option(
                "--no-people",
                is_flag=True,
                help="Leave out people and with_entities, which hold all columns.",
            ),
            click.option(
                "--config", type=FILE, metavar=of.TOML, help="Settings from a file; flags win."
            ),
            click.option(
                "--update",
                type=FILE,
                metavar="RUN",
                help="Add new records to those of RUN, and find the people of all: as RUN did, and "
                "who stays together keeps the entity_id."
                + (" NAME is a file of RUN, or a new one." if of is ManySettings else ""),
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
        require_spark(flags["engine"], flags, PEOPLE_TO)
        if flags["engine"] != "spark":
            require_there(flags["a"], "FILE")
    _refuse_beside_update(DedupeSettings, flags["update"])
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
    _refuse_beside_update(ManySettings, flags["update"])
    if flags["update"] and (bare := [path for path in paths if "=" not in path]):
        raise SettingsError(
            f"say which file the records of {bare[0]} belong to: NAME={bare[0]}. A name that RUN "
            "does not have is a new file."
        )
    if config is None:
        require_spark(flags["engine"], flags, PEOPLE_TO)
    if paths:
        entries["files"] = named(paths)
        if config is None and flags["engine"] != "spark":
            for name, path in entries["files"].items():
                require_there(path, name)
    find_people(ManySettings, config, entries, flags)


_TAKEN = ("draws", "tune", "chains", "seed", "threads", "memory", "keep", "duplicates")
_OF_AN_UPDATE = (
    "a", "more", "paths", "update", "output", "force", "group_readable", "as_json", "quiet",
    "verbose", "no_people", *_TAKEN,
)  # fmt: skip


def _refuse_beside_update(of: type[DedupeSettings], earlier: str | Path | None) -> None:
    """Refuse what an update would not follow, and a run that this command did not make."""
    if earlier is None:
        return
    require_there(earlier, "(--update)")
    known = of.keys()
    taken = [name for name in _TAKEN if name in known]
    refuse_beside_update(_OF_AN_UPDATE, taken, "find the people of all records anew")
    own, made = "link-many" if of is ManySettings else "dedupe", people_command(Path(earlier))
    if made != own:
        how = "link --update RUN B" if made is None else f"{made} --update RUN …"
        raise SettingsError(
            f"{earlier} is of `bayeslink {made or 'link'}`. To add records to it: bayeslink {how} "
            "-o OUT."
        )


def _settings_of(
    of: type[DedupeSettings], entries: dict[str, Any], earlier: str | Path | None, given: Any
) -> tuple[DedupeSettings, Any, dict[str, Any]]:
    """Settings and input: as they are said, or as those of an update; and both as plain data."""
    if earlier is None:
        return of.of(**entries), given, entries
    from bayeslink.linking.updating_people import entries_of, settings_of_update

    own = {name: entries[name] for name in _TAKEN if name in entries}
    settings, source = settings_of_update(str(earlier), given, **own)
    return settings, source, entries_of(settings)


def _asked(
    of: type[DedupeSettings],
    config: Path | None,
    entries: Mapping[str, Any],
    flags: Mapping[str, Any],
) -> tuple[dict[str, Any], Any, str]:
    """What was asked as plain data, the input, and where the results go."""
    from bayeslink.runs.link_toml import load
    from bayeslink.runs.run_directory import check_target

    several = of is ManySettings
    entries = {**(load(config, of) if config else {}), **entries}
    otherwise = entries.pop("output", None)
    output = flags["output"] or otherwise
    given = entries.get("files" if several else "a")
    if not given:
        usage = "bayeslink link-many A B C" if several else "bayeslink dedupe FILE"
        if flags["update"]:
            usage = f"bayeslink {'link-many' if several else 'dedupe'} --update RUN "
            usage += "NAME=NEW" if several else "NEW"
        what = "the files are" if several else "the file is"
        raise SettingsError(f"{what} missing. Usage: {usage} -o OUT")
    if not output:
        raise SettingsError("no output directory. Name one: -o OUT")
    check_target(Path(output), force=flags["force"])
    return entries, given, output


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
        from bayeslink.runs.run_directory import claim

        entries, given, output = _asked(of, config, entries, flags)
        settings, given, entries = _settings_of(of, entries, flags["update"], given)
        require_spark(settings.engine, flags, PEOPLE_TO)
        here = click.get_current_context()
        inputs = (*(given.values() if several else (given,)), flags["update"])
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
            check_link(None if several else given, None, settings)
            prepare_kernels(progress)
            settings = with_session(settings, flags)
            how: dict[str, Any] = {"progress": progress, "checkpoints": checkpoints}
            if isinstance(settings, ManySettings):
                run = link_many_with(settings, given, **how)
            else:
                run = dedupe_with(settings, given, **how)
                if not run.pairs.remote:
                    run = replace(run, settings=replace(run.settings, a=settings.a))
            run.save(
                output,
                force=flags["force"],
                shared=flags["group_readable"],
                people=_people_where(run, flags),
            )
    _tell_of(run, output, flags, several=several)


def _people_where(run: DedupeRun, flags: Mapping[str, Any]) -> bool | str:
    """Whether people are written, and the place for what Spark writes: here, where it has none."""
    if flags["no_people"]:
        return False
    return (run.pairs.remote and flags[PEOPLE_TO]) or True


def _tell_of(run: DedupeRun, output: str, flags: Mapping[str, Any], *, several: bool) -> None:
    from bayeslink.runs.run_json import read_summary

    if flags["as_json"]:
        print_json(run.summary())
        return
    tell("\n".join(run.report_lines()))
    for warning in read_summary(Path(output))["warnings"]:  # and what saving had to say
        tell(f"note: {warning}")
    told = "clusters.csv (who is who)"
    if (Path(output) / "people.csv").exists():
        yours = "with_entities_….csv (your files" if several else "with_entities.csv (your file"
        told += f", people.csv (a row a person), {yours} with entity_id)"
    elif run.pairs.remote and flags[PEOPLE_TO] and not flags["no_people"]:
        told += f", with_entities in {flags[PEOPLE_TO]}"
    tell(f"Results in {click.format_filename(output)}: {told}, run.json and more.")
