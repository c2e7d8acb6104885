"""`evaluate`, `explain`, `join`, `population` and `report`: what a run directory has to say."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bayeslink.commands.early_checks import require_run
from bayeslink.commands.options import (
    FILE,
    as_json_option,
    force_option,
    quiet,
    side_a,
    side_b,
    verbose,
)
from bayeslink.commands.output import answer, complain, print_json, showing_progress, tell
from bayeslink.errors import SettingsError

if TYPE_CHECKING:
    from bayeslink.sampling.many_lists import ManyLists
    from bayeslink.sampling.population import PopulationSize


@click.command()
@click.argument("before", metavar="OUT1", type=FILE)
@click.argument("after", metavar="OUT2", type=FILE)
@quiet
@verbose
@as_json_option
def compare(before: Path, after: Path, as_json: bool) -> None:
    """Say what changed between the runs OUT1 and OUT2.

    That is: links added and dropped, errors to expect, and people in both files; of people in one
    file or several, clusters that are the same, and pairs added and dropped.
    """
    for place in (before, after):
        require_run(place)
    with showing_progress() as progress:
        from bayeslink.runs.changes import changes, same_inputs
        from bayeslink.runs.opening import open_run

        progress("comparing the runs")
        runs = open_run(before), open_run(after)
        changed, same = changes(*runs), same_inputs(*runs)
    if not same:
        complain(
            "bayeslink: the runs are of different files, or of files that changed in between. What "
            "is added or dropped is of records that both have, by their ids."
        )
    if as_json:
        print_json({**changed.as_dict(), "same_inputs": same})
    else:
        answer(str(changed))


@click.command()
@click.argument("run", type=FILE)
@click.option(
    "--truth",
    type=FILE,
    help="CSV or Parquet with id_a and id_b; of a dedupe, id and entity_id, or the clusters of "
    "Splink, dedupe or Zingg.",
)
@click.option(
    "--labels",
    is_flag=False,
    flag_value="",
    metavar="[PATH]",
    help="Use the judged random sample of RUN instead; PATH if its verdicts are elsewhere.",
)
@quiet
@verbose
@as_json_option
def evaluate(run: Path, truth: Path | None, labels: str | None, as_json: bool) -> None:
    """Say how good the links or clusters in RUN are, by the truth or by judged pairs."""
    if (truth is None) == (labels is None):
        raise SettingsError("give --truth FILE or --labels: the true pairs, or a judged sample.")
    require_run(run, truth=truth)
    with showing_progress() as progress:
        from bayeslink.runs.audits import evaluate_sample
        from bayeslink.runs.evaluation import evaluate as evaluate_run
        from bayeslink.runs.opening import open_run

        progress("comparing with the truth")
        result: Any
        if truth is None:
            result = evaluate_sample(run, labels or None)
        else:
            result = evaluate_run(open_run(run), truth)
    if as_json:
        print_json(result.as_dict())
    else:
        answer(str(result))


@click.command()
@click.argument("run", type=FILE)
@click.argument("id_a")
@click.argument("id_b")
@side_a
@side_b
@quiet
@verbose
@as_json_option
def explain(run: Path, id_a: str, id_b: str, a: str | None, b: str | None, as_json: bool) -> None:
    """Say why the records ID_A and ID_B are linked, or not, in the run directory RUN."""
    require_run(run, a=a, b=b)
    with showing_progress() as progress:
        from bayeslink.runs.opening import open_linkage

        explanation = open_linkage(run, a=a, b=b, progress=progress).explain(id_a, id_b)
    if as_json:
        print_json(dataclasses.asdict(explanation))
        return
    answer(str(explanation))
    if not any(e.values for e in explanation.evidence):
        complain(
            "bayeslink: values are left out, as the input files are not where they were or have "
            "changed. Say where they are with --a and --b."
        )


@click.command()
@click.argument("run", type=FILE)
@click.option(
    "-o", "--output", required=True, type=FILE, metavar="FILE", help=".csv, .parquet or .xlsx"
)
@click.option(
    "--how",
    default="inner",
    show_default=True,
    type=click.Choice(["inner", "left", "right", "outer"]),
    help="Linked records only, all of A, all of B, or all of both.",
)
@click.option("--draws", type=int, metavar="K", help="K versions, each with the links of one draw.")
@side_a
@side_b
@force_option
@quiet
@verbose
@as_json_option
def join(
    run: Path,
    output: Path,
    how: str,
    draws: int | None,
    a: str | None,
    b: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Write the linked file of the run directory RUN: A's columns beside B's.

    With --draws, the versions stand one below the other, numbered in a column `draw`.
    """
    require_run(run, a=a, b=b)
    with showing_progress() as progress:
        from bayeslink.runs.opening import open_linkage
        from bayeslink.runs.outputs import write_join

        progress("joining the files")
        rows = write_join(open_linkage(run, a=a, b=b), output, how=how, draws=draws, force=force)
    if as_json:
        print_json({"output": str(output), "rows": rows})
    else:
        tell(f"{click.format_filename(output)}: {rows:,} rows.")


@click.command()
@click.argument("run", type=FILE)
@quiet
@verbose
@as_json_option
def population(run: Path, as_json: bool) -> None:
    """Say how many people there are in all: in A, in B, in both or in neither.

    For a run directory RUN of lists that are each a random catch of the same people: of two, or of
    several files that `link-many` linked. The doubt about who is who is in the interval.
    """
    require_run(run)
    with showing_progress() as progress:
        from bayeslink.runs.dedupe_run import DedupeRun
        from bayeslink.runs.opening import open_linkage, open_run

        progress("opening the run")
        opened = open_run(run)
        people: PopulationSize | ManyLists
        if isinstance(opened, DedupeRun) and opened.entities.names:
            people = opened.population()
            told = str(people)
        else:
            posterior = open_linkage(run).posterior
            if posterior is None:
                raise SettingsError(
                    "a point estimate has no draws of the links. Link without --point."
                )
            people = posterior.population_size()
            told = _people_in_all(people)
    if as_json:
        found = dataclasses.asdict(people)
        print_json({key: value for key, value in found.items() if key != "draws"})
    else:
        answer(told)


def _people_in_all(people: PopulationSize) -> str:
    rests_on = (
        "That holds if being in one file has nothing to do with being in the other, nobody came or "
        "left between them, and the links are right on average."
    )
    if not people.identified:
        return (
            "People in all: not identified, as the number of links is not. Bounds: "
            f"{people.low:,.0f} to {people.high:,.0f}. {rests_on}"
        )
    return (
        f"People in all: {people.median:,.0f}, 95 % interval {people.low:,.0f} to "
        f"{people.high:,.0f}. {rests_on}"
    )


@click.command()
@click.argument("run", type=FILE)
@click.option("-o", "--output", type=FILE, metavar="FILE", help="[report.html in RUN]")
@click.option(
    "--truth", type=FILE, help="CSV or Parquet with id_a and id_b; of a dedupe, id and entity_id."
)
@click.option("--disclosure", type=int, metavar="K", help="Round counts to K, hide those below it.")
@click.option("--no-values", is_flag=True, help="Leave the records' values and ids out.")
@side_a
@side_b
@quiet
@verbose
@as_json_option
def report(
    run: Path,
    output: Path | None,
    truth: Path | None,
    disclosure: int | None,
    no_values: bool,
    a: str | None,
    b: str | None,
    as_json: bool,
) -> None:
    """Write the run directory RUN as one HTML file to read, print and pass on."""
    require_run(run, a=a, b=b, truth=truth)
    with showing_progress() as progress:
        from bayeslink.runs.dedupe_run import DedupeRun
        from bayeslink.runs.opening import open_run

        progress("writing the report")
        opened = open_run(run, a=a, b=b)
        if not isinstance(opened, DedupeRun):
            path = opened.report(output, truth=truth, disclosure=disclosure, values=not no_values)
        elif disclosure is not None or b is not None:
            raise SettingsError(
                f"{'--b' if disclosure is None else '--disclosure'} is for linkages, and this run "
                "is of `bayeslink dedupe`: leave it out. --no-values leaves out values and ids."
            )
        else:
            path = opened.report(output, truth=truth, values=not no_values)
    if as_json:
        print_json({"report": str(path)})
    else:
        tell(click.format_filename(path))
