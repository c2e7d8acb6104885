"""`link`, and `resume` after an interruption."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from bayeslink.commands.init import suggest_for
from bayeslink.commands.on_spark import (
    LINKED_TO,
    PEOPLE_TO,
    require_spark,
    spark_options,
    with_session,
)
from bayeslink.commands.options import (
    FILE,
    FILE_TEXT,
    Grouped,
    as_json_option,
    force_option,
    option,
    quiet,
    said,
    settings_options,
    verbose,
)
from bayeslink.commands.output import (
    is_verbose,
    prepare_kernels,
    print_json,
    print_summary,
    showing_progress,
    tell,
)
from bayeslink.data.locations import require_there
from bayeslink.errors import InputError, SettingsError
from bayeslink.options import INPUT, MODEL, RESOURCES
from bayeslink.settings import FOUND, READING, LinkSettings

if TYPE_CHECKING:
    from bayeslink.runs.changes import Changes
    from bayeslink.runs.run import Run
    from bayeslink.suggesting.suggestion import Suggestion

# In the `meta` of a context: that a run goes on from its checkpoints, and the one that could.
RESUMED, RESUMABLE = "bayeslink.resumed", "bayeslink.resumable"
_TAKEN = ("strength", "draws", "tune", "chains", "seed", "threads", "memory")  # by --update
_OF_A_BATCH = (
    "a", "update", "output", "force", "group_readable", "as_json", "keep_inputs", "quiet",
    "verbose", *_TAKEN,
)  # fmt: skip
_GIVEN = click.core.ParameterSource.COMMANDLINE


@click.command(cls=Grouped, no_args_is_help=True)
@click.argument("a", required=False, type=FILE_TEXT)
@click.argument("b", required=False, type=FILE_TEXT)
@click.argument("more", nargs=-1, metavar="", type=FILE_TEXT)
@click.option("-o", "--output", type=FILE_TEXT, metavar="OUT", help="Directory for the results.")
@click.option(
    "--on",
    multiple=True,
    metavar="COLUMN[:COMPARISON[:SETTING=VALUE]]",
    help="A field to compare, such as surname:name or dob=born:date; see `bayeslink comparisons`. "
    "Of a column alone, how is chosen from its values. [all chosen from the files]",
)
@click.option("--config", type=FILE, metavar="link.toml", help="Settings from a file; flags win.")
@click.option(
    "--update",
    type=FILE,
    metavar="RUN",
    help="Link a new batch, the one file given, to the records of A that RUN left without a link.",
)
@force_option
@click.option(
    "--no-linked",
    is_flag=True,
    help="Leave out the linked file and the records without a link, which hold all columns.",
)
@click.option(
    "--keep-inputs", is_flag=True, help="Copy the inputs to OUT, to repeat the run from it alone."
)
@click.option("--group-readable", is_flag=True, help="Let your group read OUT. [only you may]")
@option(
    "--id",
    "ids",
    group=INPUT,
    multiple=True,
    help="Id column (twice: in A, then in B). [id, or as found in the files]",
)
@option("--no-id", group=INPUT, is_flag=True, help="The files have no id column: number the rows.")
@settings_options()
@option(
    "--duplicates",
    group=MODEL,
    multiple=True,
    type=click.Choice(["a", "b"]),
    help="The file in which people may be more than once (twice: both). Then the results are those "
    "of link-many: clusters.csv in place of links.",
)
@option(
    "--explain-plan",
    group=RESOURCES,
    is_flag=True,
    help="Say how all pairs were searched, and why none is missed.",
)
@spark_options(
    LINKED_TO, "Where Spark's executors write the linked file and its like, as Parquet folders."
)
@quiet
@verbose
@as_json_option
def link(config: Path | None, update: Path | None, more: tuple[str, ...], **flags: Any) -> None:
    """Link the files A and B and write the results to OUT."""
    if flags["duplicates"]:
        _with_duplicates(flags)
        return
    del flags["duplicates"]
    saving = _Saving(**{name: flags.pop(name) for name in _Saving._fields})
    _refuse_early(config, update, more, saving, flags)
    if update is not None:
        _link_batch(update, saving, flags)
        return
    with showing_progress() as progress:
        from bayeslink.runs.link_toml import load

        entries = {**(load(config) if config else {}), **said(flags)}
        saving = saving.into(entries.pop("output", None))
        _refuse_without_files(entries)
        settings = LinkSettings.of(**entries)
        require_spark(settings.engine, {**flags, LINKED_TO: saving.linked_to}, LINKED_TO)
        done = _linked(settings, entries, saving, config, flags, progress)
    _tell_of(done, saving)


class _Saving(NamedTuple):
    """What becomes of the results."""

    output: str | None
    force: bool
    group_readable: bool
    no_linked: bool
    linked_to: str | None
    keep_inputs: bool
    as_json: bool
    explain_plan: bool

    def into(self, otherwise: str | None) -> _Saving:
        """The same with a directory that can be written to."""
        from bayeslink.runs.run_directory import check_target

        output = self.output or otherwise
        if not output:
            raise SettingsError("no output directory. Name one: -o OUT")
        check_target(Path(output), force=self.force)
        return self._replace(output=output)


class _Done(NamedTuple):
    """A linkage, what was chosen for it, and what its labels changed."""

    run: Run
    suggestion: Suggestion | None
    changed: Changes | None


def _refuse_early(
    config: Path | None,
    update: Path | None,
    more: tuple[str, ...],
    saving: _Saving,
    flags: Mapping[str, Any],
) -> None:
    """Tell what is wrong with what was typed before anything large is loaded."""
    _refuse_more_files(more)
    for name in ("labels", "model"):
        require_there(flags[name], f"(--{name})")
    require_there(config, "(--config)")
    require_there(update, "(--update)")
    if config is None:
        require_spark(flags["engine"], {**flags, LINKED_TO: saving.linked_to}, LINKED_TO)
        if flags["engine"] != "spark":
            require_there(flags["a"], "A" if update is None else "B")
            require_there(flags["b"], "B")
    if saving.output:
        saving.into(None)  # before the work, not after it


def _refuse_without_files(entries: Mapping[str, Any]) -> None:
    for key in ("a", "b"):
        if not entries.get(key):
            raise SettingsError(f"file {key.upper()} is missing. Usage: bayeslink link A B -o OUT")


def _linked(
    settings: LinkSettings,
    entries: dict[str, Any],
    saving: _Saving,
    config: Path | None,
    flags: Mapping[str, Any],
    progress: Callable[[str], None],
) -> _Done:
    """Link and save, so that what is interrupted can go on and what fails leaves nothing."""
    from bayeslink.linking.checks import check_link
    from bayeslink.linking.link import link_with
    from bayeslink.runs.interrupted import checkpoints_of
    from bayeslink.runs.run_directory import claim

    here = click.get_current_context()
    assert saving.output
    with (
        claim(saving.output, force=saving.force, inputs=(settings.a, settings.b)) as held,
        checkpoints_of(
            held,
            here.params,
            entries,
            resumed=RESUMED in here.meta,
            kept=lambda target: here.meta.update({RESUMABLE: target}),
        ) as checkpoints,
        removed_on_failure(read.quarantine for read in settings.read),
    ):
        check_link(settings.a, settings.b, settings)
        prepare_kernels(progress)
        settings, suggestion = _completed(settings, flags, progress)
        run = link_with(
            settings, settings.a, settings.b, progress=progress, checkpoints=checkpoints
        )
        if suggestion:
            run = replace(run, warnings=(*suggestion.warnings, *run.warnings))
        changed = _changes(flags["labels"], config, run)  # first: it may be OUT's own labels
        run.save(
            saving.output,
            force=saving.force,
            shared=saving.group_readable,
            linked=saving.linked_to or not saving.no_linked,
            keep_inputs=saving.keep_inputs,
        )
    return _Done(run, suggestion, changed)


def _completed(
    settings: LinkSettings, flags: Mapping[str, Any], progress: Callable[[str], None]
) -> tuple[LinkSettings, Suggestion | None]:
    """The settings with a session of Spark, and with fields chosen from the files, if need be."""
    settings = with_session(settings, flags)
    if settings.fields or settings.model:
        return settings, None
    progress("looking at the files")
    found = suggest_for(settings)
    ids = found.id if settings.id is FOUND else settings.id
    left = found.left_out
    return replace(settings, fields=found.fields, read=found.read, id=ids, left_out=left), found


def _tell_of(done: _Done, saving: _Saving) -> None:
    run, suggestion, changed = done
    if saving.as_json:
        plan = {"plan": str(run.plan)} if saving.explain_plan else {}
        print_json({**run.summary(), **({"changes": changed.as_dict()} if changed else {}), **plan})
        return
    if suggestion and is_verbose():
        told = replace(suggestion, warnings=()).explained()  # which are among the run's
        tell("\n".join(told) + "\n")
    elif suggestion:
        tell("\n".join(suggestion.in_two_lines()))
    print_summary(run, Path(str(saving.output)))
    if changed:
        tell(f"\nWhat the labels changed:\n{changed}")
    if saving.explain_plan:
        tell(f"\n{run.plan}\n\n{run.pairs.describe().resources}")


@click.command()
@click.argument("output", metavar="OUT", type=FILE_TEXT)
@quiet
@verbose
@as_json_option
@click.pass_context
def resume(ctx: click.Context, output: str, as_json: bool) -> None:
    """Go on with the run to OUT that was interrupted, from its last checkpoint.

    The result is that of a run never interrupted. Files and settings must be as they were.
    """
    from bayeslink.runs.interrupted import what_was_asked

    asked, folder = what_was_asked(output)
    ctx.meta[RESUMED] = True
    os.chdir(folder)  # from where its paths lead
    command = _command(ctx, asked.pop("command", "link"))
    ctx.invoke(command, **{**asked, "as_json": as_json})


def _command(ctx: click.Context, name: str) -> click.Command:
    """A command beside this one, by its name."""
    group = ctx.find_root().command
    found = group.get_command(ctx, name) if isinstance(group, click.Group) else None
    return found or link


def _refuse_more_files(more: tuple[str, ...]) -> None:
    if more:
        raise SettingsError(
            f"{len(more) + 2} files were given, and link takes two. For more: bayeslink link-many "
            "A B C -o OUT."
        )


# Flags of `link` that `link-many` has, too; one has another name there.
_ALSO_WITH_DUPLICATES = (
    "a", "b", "duplicates", "output", "force", "group_readable", "as_json", "quiet", "verbose",
    "on", "ids", "no_id", "no_linked", "block", "structure", "restricted", "draws", "tune",
    "chains", "seed", "threads", "memory", "engine", "master", "spark_conf", LINKED_TO, *READING,
)  # fmt: skip


def _with_duplicates(flags: Mapping[str, Any]) -> None:
    """`link --duplicates`: the same as `link-many` of two files called a and b."""
    here = click.get_current_context()
    given = [name for name in here.params if here.get_parameter_source(name) is _GIVEN]
    if other := [name for name in given if name not in _ALSO_WITH_DUPLICATES]:
        raise SettingsError(
            f"--{other[0].replace('_', '-')} is for files without duplicates. Leave it out, or see "
            "`bayeslink link-many --help` for what there is."
        )
    _refuse_without_files(flags)
    asked = {name: flags[name] for name in given if name in flags and name not in ("a", "b")}
    asked["no_people"] = asked.pop("no_linked", False)
    asked[PEOPLE_TO] = asked.pop(LINKED_TO, None)
    paths = tuple(f"{name}={flags[name]}" for name in "ab")
    here.invoke(_command(here, "link-many"), paths=paths, **asked)


def _link_batch(earlier: Path, saving: _Saving, flags: Mapping[str, Any]) -> None:
    """`link --update`."""
    if not flags["a"] or not saving.output:
        raise SettingsError("usage: bayeslink link --update RUN B_NEW -o OUT")
    _refuse_what_a_batch_ignores()
    with showing_progress() as progress:
        from bayeslink.linking.updating import in_doubt, told, update_links
        from bayeslink.runs.opening import open_linkage
        from bayeslink.runs.run_directory import claim

        refuse_people(earlier)
        before = open_linkage(earlier)
        given = {key: flags[key] for key in _TAKEN}
        chosen = {key: value for key, value in given.items() if value is not None}
        with claim(saving.output, force=saving.force, inputs=(flags["a"],)):
            prepare_kernels(progress)
            run = update_links(before, flags["a"], progress=progress, **chosen)
            run.save(
                saving.output, force=saving.force, shared=saving.group_readable, keep_inputs=True
            )
    if saving.as_json:
        held = {"earlier_links": before.n_links, "earlier_links_in_doubt": in_doubt(before)}
        print_json({**run.summary(), **held})
        return
    print_summary(run, Path(saving.output))
    tell(f"\nWhat the batch changed:\n{told(before, run)}")


def _refuse_what_a_batch_ignores() -> None:
    """Options that `link --update` would not follow."""
    refuse_beside_update(_OF_A_BATCH, _TAKEN, "link all of B anew with --model RUN")


def refuse_beside_update(known: Sequence[str], taken: Sequence[str], otherwise: str) -> None:
    """Options that --update would not follow: all but those known, of which some are told."""
    here = click.get_current_context()
    for flag in here.command.params:
        name = str(flag.name)
        if name not in known and here.get_parameter_source(name) is _GIVEN:
            raise SettingsError(
                f"{flag.opts[0]} does not go with --update, which does as RUN did. Allowed: "
                f"{', '.join(f'--{key}' for key in taken)}. Leave it out, or {otherwise}."
            )


def people_command(earlier: Path) -> str | None:
    """The command that made a run of people; None of a run that has links."""
    from bayeslink.runs.run_json import DEDUPE, read_summary

    summary = read_summary(earlier)
    several = "link-many" if "lists" in summary else "dedupe"
    return several if summary.get("task") == DEDUPE else None


def refuse_people(earlier: Path) -> None:
    """Refuse a run of people, and say which command updates it."""
    command = people_command(earlier)
    if command is not None:
        new = "NAME=NEW" if command == "link-many" else "NEW"
        raise SettingsError(
            f"{earlier} is of `bayeslink {command}`, so it has people and no links. To add records "
            f"to it: bayeslink {command} --update {earlier} {new} -o OUT."
        )


def _changes(labels: str | None, config: Path | None, run: Run) -> Changes | None:
    """What changed against the run that was reviewed, or whose settings are repeated."""
    from bayeslink.runs.changes import link_changes
    from bayeslink.runs.run_directory import is_run

    if labels is None:
        return None
    earlier = (Path(labels), Path(labels).parent, *([config.parent] if config else []))
    for folder in filter(is_run, earlier):
        with suppress(InputError):  # such as one of an earlier version: no reason to lose the run
            return link_changes(folder, run)
    return None


@contextmanager
def removed_on_failure(quarantine: Iterable[str | Path | None]) -> Iterator[None]:
    """Leave no rows set aside by a run that failed: its repeat would refuse to overwrite them."""
    new = [Path(path) for path in quarantine if path and not Path(path).exists()]
    try:
        yield
    except BaseException:
        for path in new:
            path.unlink(missing_ok=True)
        raise
