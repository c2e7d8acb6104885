"""The command line: thin commands over the library."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bayeslink import __version__
from bayeslink.errors import BayeslinkError, SettingsError
from bayeslink.streams import open_all, silence
from bayeslink.threads import ends_in_order

if TYPE_CHECKING:
    from bayeslink.data.records import ReadOptions
    from bayeslink.linking.run import Run
    from bayeslink.results.changes import Changes
    from bayeslink.suggesting.suggestion import Suggestion

# In the `meta` of a context: that a run goes on from its checkpoints, and the one that could.
RESUMED, RESUMABLE = "bayeslink.resumed", "bayeslink.resumable"
DEMO_FIELDS = (
    "gname:levenshtein",
    "fname:levenshtein",
    "dob:date",
    "sex:exact",
    "occup:exact",
    "postcode:exact",
)
_as_json = click.option("--json", "as_json", is_flag=True, help="Print a machine-readable summary.")
_side_a = click.option("--a", metavar="FILE", help="Where input A is now, if it has moved.")
_side_b = click.option("--b", metavar="FILE", help="Where input B is now, if it has moved.")
_LOUD = "bayeslink.loud"


def _set_loudness(context: click.Context, option: click.Parameter, given: bool) -> None:
    if given:
        context.find_root().meta[_LOUD] = 1 if option.name == "verbose" else -1


_quiet = click.option(
    "-q", "--quiet", is_flag=True, expose_value=False, callback=_set_loudness,
    help="Say nothing but what goes wrong.",
)  # fmt: skip
_verbose = click.option(
    "-v", "--verbose", is_flag=True, expose_value=False, callback=_set_loudness,
    help="Say what is going on, line by line.",
)  # fmt: skip
_force = click.option(
    "--force", is_flag=True, help="Replace an earlier run in the output directory."
)


class _Commands(click.Group):
    """Our errors as one message and their own exit code, never a traceback."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        open_all()
        try:
            return super().main(*args, **kwargs)
        except OSError as error:
            if isinstance(error, BrokenPipeError):
                raise
            sys.exit(_cannot_tell(error))

    def invoke(self, ctx: click.Context) -> Any:
        with ends_in_order() as signals:
            try:
                return super().invoke(ctx)
            except BayeslinkError as error:
                _complain(f"bayeslink: {error}{_how_to_go_on(ctx)}")
                ctx.exit(error.exit_code)
            except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
                raise
            except KeyboardInterrupt:
                if kernels := sys.modules.get("bayeslink.kernels"):
                    kernels.abandon()
                kept = ctx.invoked_subcommand in ("demo", "reproduce")  # what they have done so far
                words = "" if kept or RESUMABLE in ctx.meta else "; nothing was written"
                _complain(f"bayeslink: interrupted{words}.{_how_to_go_on(ctx)}")
                ctx.exit(128 + signals[0] if signals else 130)
            except Exception as error:
                _complain(f"bayeslink: {_unforeseen(error)}")
                ctx.exit(1)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="bayeslink")
def main() -> None:
    """Link two files of records about the same people, one-to-one, without a shared key."""


@main.command()
@click.option("--n", default=2000, show_default=True, help="Records in each file.")
@click.option("-o", "--output", default="bayeslink-demo", show_default=True, type=Path)
@click.option("--seed", default=1, show_default=True)
@_quiet
@_verbose
@_as_json
def demo(n: int, output: Path, seed: int, as_json: bool) -> None:
    """Simulate two files, link them, and say how well it went."""
    _prepare()
    with _progress() as progress:
        from bayeslink.linking.link import link as link_files
        from bayeslink.report.page import report
        from bayeslink.results.evaluation import evaluate
        from bayeslink.results.settings import parse_on
        from bayeslink.simulation.files import simulate as make_files
        from bayeslink.simulation.files import write_simulation

        progress(f"simulating two files of {n:,} people")
        files, folder = make_files(n, seed=seed), output / "files"
        write_simulation(files, folder, force=True)
        fields = [field for text in DEMO_FIELDS for field in parse_on(text)]
        a, b = folder / "a.csv", folder / "b.csv"
        run = link_files(a, b, fields, seed=seed, progress=progress)
        run.save(output / "run", force=True)
        result = evaluate(run.table, files.truth)
        progress("writing the report")
        page = report(run, output / "run" / "report.html", truth=files.truth)
    if as_json:
        _print_json({**run.summary(), **result.as_dict()})
        return
    _print_summary(run, output / "run")
    _tell(f"To look at: {click.format_filename(page)}")
    _tell(f"\nAgainst the truth, which a simulation knows:\n{result}")
    flags = " ".join(f"--on {text}" for text in DEMO_FIELDS)
    _tell(
        "\nThe same by hand, and a start for your own files:\n"
        f"  bayeslink link {a} {b} {flags} -o out"
    )


@main.command()
@click.argument("a")
@click.argument("b")
@click.option("--id", "ids", multiple=True, help="Id column (twice: in A, then in B). [found]")
@click.option("--missing", multiple=True, metavar="VALUE", help="A value that means missing.")
@click.option("--encoding", multiple=True, help="Such as cp1252 (twice: of A, then of B). [utf-8]")
@click.option("--delimiter", multiple=True, help="Told from the header unless given.")
@click.option("--skip-lines", multiple=True, type=int, help="Lines before the header. [0]")
@click.option(
    "--table", multiple=True, help="Table or query in a database, or sheet of a workbook."
)
@click.option("--multiline", is_flag=True, help="Cells may hold lines that look like records.")
@click.option(
    "-o", "--output", default="link.toml", show_default=True, type=Path, metavar="link.toml"
)
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
@_as_json
def init(a: str, b: str, output: Path, force: bool, as_json: bool, **flags: Any) -> None:
    """Look at the files A and B and write a link.toml that says what to compare, and why."""
    with _progress() as progress:
        from bayeslink.results.link_toml import refuse_existing_file, write_new
        from bayeslink.results.settings import from_flags, read_options

        given = from_flags({"a": a, "b": b, **flags})
        refuse_existing_file(output, force=force)
        progress("looking at the files")
        suggestion = _suggest(given, read_options(given))
        write_new(output, suggestion.to_toml(a, b, output.parent), force=force)
    shown = click.format_filename(output)
    if as_json:
        _print_json({"output": str(output), **suggestion.as_dict()})
        return
    click.echo(suggestion)
    click.echo(f"Written to {shown}. Read it, then: bayeslink link --config {shown} -o out")


@main.command()
@click.argument("a", required=False)
@click.argument("b", required=False)
@click.option(
    "--id",
    "ids",
    multiple=True,
    help="Id column (twice: in A, then in B). [id; found without --on]",
)
@click.option("--no-id", is_flag=True, help="The files have no id column: number the rows.")
@click.option(
    "--on",
    multiple=True,
    metavar="COLUMN[:COMPARISON[:SETTING=VALUE]]",
    help="A field to compare, such as surname:name or dob=born:date; see `bayeslink comparisons`. "
    "Of a column alone, how is chosen from its values. [all chosen from the files]",
)
@click.option(
    "--block",
    multiple=True,
    metavar="COLUMN",
    help="Compare only pairs that agree on this column (COLUMN_A=COLUMN_B if they differ).",
)
@click.option(
    "--theta", type=float, help="Cost of one link. Without it, it follows from --overlap."
)
@click.option("--overlap", metavar="ALPHA,BETA", help="Beta prior on the matched share. [1,1]")
@click.option("--missing", multiple=True, metavar="VALUE", help="A value that means missing.")
@click.option("--encoding", multiple=True, help="Such as cp1252 (twice: of A, then of B). [utf-8]")
@click.option("--delimiter", multiple=True, help="Told from the header unless given.")
@click.option("--skip-lines", multiple=True, type=int, help="Lines before the header. [0]")
@click.option(
    "--table", multiple=True, help="Table or query in a database, or sheet of a workbook."
)
@click.option(
    "--quarantine",
    multiple=True,
    type=str,
    metavar="FILE",
    help="Set short and long rows aside in this file (twice: of A, then of B).",
)
@click.option("--multiline", is_flag=True, help="Cells may hold lines that look like records.")
@click.option(
    "--structure",
    type=click.Choice(["dependent", "independent"]),
    help="Fields may depend on each other, or (as in the paper) not. [dependent]",
)
@click.option(
    "--w0", type=float, help="Weight above which pairs are swept over. [chosen by block size]"
)
@click.option(
    "--restricted",
    is_flag=True,
    default=None,
    help="Only pairs above w0 may link, as in the paper; for comparison.",
)
@click.option("--draws", type=int, help="Draws of each chain that are kept. [1000]")
@click.option("--tune", type=int, help="Draws of each chain before those. [500]")
@click.option("--chains", type=int, help="Chains. [4]")
@click.option(
    "--reject",
    type=float,
    metavar="COST",
    help="Leave a record to review where that costs less than the expected error, as .1 does.",
)
@click.option(
    "--labels",
    metavar="PATH",
    help="Judged pairs, to hold for certain: a reviewed run directory, or a CSV or Parquet file.",
)
@click.option(
    "--model",
    metavar="PATH",
    help="An earlier run directory or its model.json: what it learned of m is the prior.",
)
@click.option(
    "--strength", type=float, metavar="SHARE", help="How much of the model's links counts. [1]"
)
@click.option(
    "--update",
    type=Path,
    metavar="RUN",
    help="Link a new batch, the one file given, to the records of A that RUN left without a link.",
)
@click.option("--point", is_flag=True, default=None, help="Point estimate only: no probabilities.")
@click.option("--seed", type=int, help="Of the draws. [1]")
@click.option("--threads", type=int, help="Threads to use. [all]")
@click.option(
    "--memory", metavar="SIZE", help="Memory to use, such as 8GB. [most of the machine's]"
)
@click.option(
    "--explain-plan", is_flag=True, help="Say how all pairs were searched, and why none is missed."
)
@click.option(
    "--no-linked",
    is_flag=True,
    help="Leave out the linked file and the records without a link, which hold all columns.",
)
@click.option(
    "--keep-inputs", is_flag=True, help="Copy the inputs to OUT, to repeat the run from it alone."
)
@click.option("--config", type=Path, metavar="link.toml", help="Settings from a file; flags win.")
@click.option("--group-readable", is_flag=True, help="Let your group read OUT. [only you may]")
@click.option("-o", "--output", metavar="OUT", help="Directory for the results.")
@_force
@_quiet
@_verbose
@_as_json
def link(
    config: Path | None,
    output: str | None,
    force: bool,
    as_json: bool,
    explain_plan: bool,
    group_readable: bool,
    no_linked: bool,
    keep_inputs: bool,
    update: Path | None,
    **flags: Any,
) -> None:
    """Link the files A and B and write the results to OUT."""
    if update is not None:
        _link_batch(update, output, force, group_readable, as_json, flags)
        return
    with _progress() as progress:
        from bayeslink.linking.link import link as link_files
        from bayeslink.results.claim import check_target, claim
        from bayeslink.results.interrupted import checkpoints_of
        from bayeslink.results.link_toml import load
        from bayeslink.results.settings import from_flags, link_arguments

        settings = {**(load(config) if config else {}), **from_flags(flags)}
        output = output or settings.get("output")
        for key in ("a", "b"):
            if not settings.get(key):
                raise SettingsError(
                    f"file {key.upper()} is missing. Usage: bayeslink link A B -o OUT"
                )
        if not output:
            raise SettingsError("no output directory. Name one: -o OUT")
        check_target(Path(output), force=force)  # before the work, not after it
        arguments = link_arguments(settings)
        arguments |= {key: flags[key] for key in ("model", "strength") if flags[key] is not None}
        here = click.get_current_context()
        suggestion = None
        with (
            claim(output, force=force, inputs=(settings["a"], settings["b"])) as held,
            checkpoints_of(
                held,
                here.params,
                settings,
                resumed=RESUMED in here.meta,
                kept=lambda target: here.meta.update({RESUMABLE: target}),
            ) as checkpoints,
            _removed_on_failure(read.quarantine for read in arguments["read"]),
        ):
            _prepare()
            if not arguments["fields"] and not flags["model"]:
                progress("looking at the files")
                suggestion = _suggest(settings, arguments["read"])
                arguments |= {"fields": suggestion.fields, "read": suggestion.read}
                arguments.setdefault("id", suggestion.id)
            run = link_files(**arguments, progress=progress, checkpoints=checkpoints)
            changed = _changes(flags["labels"], config, run)  # first: it may be OUT's own labels
            run.save(
                output,
                force=force,
                shared=group_readable,
                linked=not no_linked,
                keep_inputs=keep_inputs,
            )
    if as_json:
        plan = {"plan": str(run.plan)} if explain_plan else {}
        _print_json(
            {**run.summary(), **({"changes": changed.as_dict()} if changed else {}), **plan}
        )
        return
    if suggestion:
        click.echo(f"{suggestion}\n")
    _print_summary(run, Path(output))
    if changed:
        _tell(f"\nWhat the labels changed:\n{changed}")
    if explain_plan:
        _tell(f"\n{run.plan}\n\n{run.pairs.describe().resources}")


@main.command()
@click.argument("output", metavar="OUT")
@_as_json
@click.pass_context
def resume(ctx: click.Context, output: str, as_json: bool) -> None:
    """Go on with the run to OUT that was interrupted, from its last checkpoint.

    The result is that of a run never interrupted. Files and settings must be as they were.
    """
    from bayeslink.results.interrupted import what_was_asked

    asked, folder = what_was_asked(output)
    ctx.meta[RESUMED] = True
    os.chdir(folder)  # from where its paths lead
    ctx.invoke(link, **{**asked, "as_json": as_json})


@main.command()
@click.argument("names", nargs=-1)
def comparisons(names: tuple[str, ...]) -> None:
    """List the comparisons that --on takes, with levels, settings and an example of each."""
    from bayeslink.comparing.catalogue import COMPARISONS, describe

    for name in names:
        if name not in COMPARISONS:
            raise SettingsError(f"unknown comparison {name!r}. Allowed: {', '.join(COMPARISONS)}.")
    click.echo("\n\n".join(describe(name) for name in names or COMPARISONS))


@main.command()
@click.option("--n", default=1000, show_default=True, help="Records in A.")
@click.option("--n-b", type=int, help="Records in B. [as in A]")
@click.option(
    "--overlap", default=0.5, show_default=True, help="Share of the smaller file matched."
)
@click.option("--errors", default=2, show_default=True, help="Fields with an error in each copy.")
@click.option("--missing", default=0.05, show_default=True, help="Share of cells missing in B.")
@click.option("--kinds", help="Kinds of errors, such as typing,ocr. [all but nickname]")
@click.option("--no-households", is_flag=True, help="No shared surnames and addresses.")
@click.option(
    "--spread",
    default="exact",
    show_default=True,
    type=click.Choice(["exact", "independent", "clustered"]),
    help="So many errors in each record, by each field, or most in a quarter of the records.",
)
@click.option("--group-quarters", default=0.0, help="Share living some thirty to an address. [0]")
@click.option("--no-eras", is_flag=True, help="Given names that do not go with age.")
@click.option("--duplicates", default=0.0, help="Share of the people of B there twice. [0]")
@click.option("--seed", default=1, show_default=True)
@click.option("-o", "--output", required=True, type=Path, metavar="DIR")
@_force
@_quiet
@_verbose
@_as_json
def simulate(
    output: Path,
    force: bool,
    as_json: bool,
    kinds: str | None,
    no_households: bool,
    no_eras: bool,
    **arguments: Any,
) -> None:
    """Write a.csv, b.csv and truth.csv: two files of made-up people, and who is who."""
    with _progress() as progress:
        from bayeslink.simulation.files import simulate as make_files
        from bayeslink.simulation.files import write_simulation
        from bayeslink.simulation.mistakes import ALL_KINDS

        progress(f"simulating {arguments['n']:,} people")
        files = make_files(
            **arguments,
            kinds=kinds.split(",") if kinds else ALL_KINDS,
            households=not no_households,
            eras=not no_eras,
        )
        write_simulation(files, output, force=force)
    numbers = {"n_a": len(files.a), "n_b": len(files.b), "n_matches": len(files.truth)}
    if as_json:
        _print_json({"output": str(output), **numbers})
    else:
        _tell(
            f"{output}: a.csv with {numbers['n_a']:,} people, b.csv with {numbers['n_b']:,}, "
            f"{numbers['n_matches']:,} in both (truth.csv)."
        )


@main.command()
@click.argument("run", type=Path)
@click.option("--truth", type=Path, help="CSV or Parquet with id_a and id_b.")
@click.option(
    "--labels",
    is_flag=False,
    flag_value="",
    metavar="[PATH]",
    help="Use the judged random sample of RUN instead; PATH if its verdicts are elsewhere.",
)
@_quiet
@_verbose
@_as_json
def evaluate(run: Path, truth: Path | None, labels: str | None, as_json: bool) -> None:
    """Say how good the links in the run directory RUN are, by true pairs or judged ones."""
    if (truth is None) == (labels is None):
        raise SettingsError("give --truth FILE or --labels: the true pairs, or a judged sample.")
    with _progress() as progress:
        from bayeslink.results.audit import evaluate_sample
        from bayeslink.results.evaluation import evaluate as compare_links
        from bayeslink.results.reading import read_links
        from bayeslink.results.store import read_truth

        progress("comparing links with the truth")
        result = (
            evaluate_sample(run, labels or None)
            if truth is None
            else compare_links(read_links(run), read_truth(truth))
        )
    if as_json:
        _print_json(result.as_dict())
    else:
        _tell(str(result))


@main.command()
@click.argument("run", type=Path)
@click.argument("id_a")
@click.argument("id_b")
@_side_a
@_side_b
@_quiet
@_verbose
@_as_json
def explain(run: Path, id_a: str, id_b: str, a: str | None, b: str | None, as_json: bool) -> None:
    """Say why the records ID_A and ID_B are linked, or not, in the run directory RUN."""
    with _progress() as progress:
        from bayeslink.linking.saved import explain_saved

        explanation = explain_saved(run, id_a, id_b, a=a, b=b, progress=progress)
    if as_json:
        _print_json(dataclasses.asdict(explanation))
    else:
        _tell(str(explanation))


@main.command()
@click.argument("run", type=Path)
@click.option("-o", "--output", required=True, type=Path, metavar="FILE", help=".csv or .parquet")
@click.option(
    "--how",
    default="inner",
    show_default=True,
    type=click.Choice(["inner", "left", "right", "outer"]),
    help="Linked records only, all of A, all of B, or all of both.",
)
@click.option("--draws", type=int, metavar="K", help="K versions, each with the links of one draw.")
@_side_a
@_side_b
@_force
@_quiet
@_verbose
@_as_json
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
    with _progress() as progress:
        from bayeslink.linking.opening import open_run
        from bayeslink.results.outputs import write_join

        progress("joining the files")
        rows = write_join(open_run(run, a=a, b=b), output, how=how, draws=draws, force=force)
    if as_json:
        _print_json({"output": str(output), "rows": rows})
    else:
        _tell(f"{click.format_filename(output)}: {rows:,} rows.")


@main.command()
@click.argument("run", type=Path)
@click.option("-o", "--output", type=Path, metavar="FILE", help="[report.html in RUN]")
@click.option("--truth", type=Path, help="True pairs: CSV or Parquet with id_a and id_b.")
@click.option("--disclosure", type=int, metavar="K", help="Round counts to K, hide those below it.")
@click.option("--no-values", is_flag=True, help="Leave the records' values and ids out.")
@_side_a
@_side_b
@_quiet
@_verbose
@_as_json
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
    with _progress() as progress:
        from bayeslink.report.page import report as write_report

        progress("writing the report")
        path = write_report(
            run, output, truth=truth, disclosure=disclosure, values=not no_values, a=a, b=b
        )
    if as_json:
        _print_json({"report": str(path)})
    else:
        _tell(click.format_filename(path))


@main.command()
@click.argument("run", type=Path)
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
@click.option("--plan", is_flag=True, help="Only say how many pairs to judge, and where.")
@click.option("--width", type=float, help="With --plan: the wanted width of the 95 % interval.")
@click.option(
    "--of",
    default="links",
    show_default=True,
    type=click.Choice(["links", "precision", "recall"]),
    help="With --plan: what the interval is of.",
)
@click.option("--draw", type=int, metavar="N", help="First draw a random sample of N pairs.")
@_side_a
@_side_b
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
    """Judge the uncertain cases of the run directory RUN on a page in the browser.

    The page is served to this machine only. Judgements are stored at once in RUN/review.sqlite.
    """
    if plan:
        with _progress() as progress:
            progress("planning")
            from bayeslink.results.audit_plan import plan_sample

            planned = plan_sample(run, width, of=of)
        if as_json:
            _print_json(planned.as_dict())
        else:
            _tell(str(planned))
        return
    if width is not None or as_json:
        raise SettingsError("--width and --json are for a plan. Give --plan too.")
    with _progress() as progress:
        progress("reading the run and its files")
        from bayeslink.results.audit_sample import draw_sample
        from bayeslink.review.material import open_run
        from bayeslink.review.server import serve

        material = open_run(run, show, a, b, names)
        if draw is not None:
            draw_sample(run, draw)

    def ready(address: str, address_for_once: str) -> None:
        _tell(f"Review at {address}\nCtrl-C ends it; what is judged is saved.")
        if not no_browser:
            _open_browser(address_for_once)

    def told(line: str) -> None:
        if log:
            click.echo(line, err=True)

    with suppress(KeyboardInterrupt):
        serve(material, port=port, ready=ready, log=told)
    _tell(f"Judgements are in {click.format_filename(run / 'review.sqlite')}.")


@main.command()
@click.argument("experiment", type=click.Choice(["census", "simulation", "large"]))
@click.option("-o", "--output", default="experiments/output", show_default=True, type=Path)
@click.option(
    "--datasets",
    default=100,
    show_default=True,
    type=click.IntRange(1, 100),
    help="For simulation: how many of the 100 databases of each setting.",
)
def reproduce(experiment: str, output: Path, datasets: int) -> None:
    """Repeat an experiment of the paper: tables on the screen, figures in OUTPUT."""
    _prepare()
    with _progress() as progress:
        from importlib import import_module

        module = import_module(f"bayeslink.reproduce.{experiment}")
        options = {"datasets": datasets} if experiment == "simulation" else {}
        text = module.run(output, progress, **options)
    _tell(text)
    _tell(f"\nFigures in {output}.")


# ---------------------------------------------------------------------------------------------


def _suggest(settings: Mapping[str, Any], read: tuple[ReadOptions, ReadOptions]) -> Suggestion:
    """What to compare in the files that settings name."""
    from bayeslink.results.settings import id_from
    from bayeslink.suggesting.suggestion import suggest

    return suggest(settings["a"], settings["b"], id=id_from(settings.get("id")), read=read)


def _how_to_go_on(ctx: click.Context) -> str:
    output = ctx.meta.get(RESUMABLE)
    if output is None:
        return ""
    shown = click.format_filename(output)
    return f" What was done is kept: `bayeslink resume {shown}` goes on from there."


def _complain(message: str) -> None:
    """Say it on standard error, if that can be written to."""
    try:
        click.echo(message, err=True)
    except OSError:
        silence()


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


def _tell(message: str) -> None:
    """Print a result. What it is of is written by then, whatever becomes of the words."""
    try:
        click.echo(message)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise click.exceptions.Exit(_cannot_tell(error)) from None


def _cannot_tell(error: OSError) -> int:
    """What is written in files is; only the words are lost."""
    with suppress(OSError):
        click.echo(f"bayeslink: standard output cannot be written: {error.strerror}.", err=True)
    silence()
    return 4


def _changes(labels: str | None, config: Path | None, run: Run) -> Changes | None:
    """What changed against the run that was reviewed, or whose settings are repeated."""
    from bayeslink.results.changes import changes
    from bayeslink.results.claim import is_run

    if labels is None:
        return None
    earlier = (Path(labels), Path(labels).parent, *([config.parent] if config else []))
    return next((changes(folder, run) for folder in earlier if is_run(folder)), None)


def _link_batch(
    earlier: Path,
    output: str | None,
    force: bool,
    shared: bool,
    as_json: bool,
    flags: dict[str, Any],
) -> None:
    """`link --update`."""
    if not flags["a"] or not output:
        raise SettingsError("usage: bayeslink link --update RUN B_NEW -o OUT")
    with _progress() as progress:
        from bayeslink.linking.opening import open_run
        from bayeslink.linking.updating import in_doubt, told
        from bayeslink.linking.updating import update as link_batch
        from bayeslink.results.claim import claim

        before = open_run(earlier)
        given = {key: flags[key] for key in ("strength", "draws", "tune", "chains", "seed")}
        chosen = {key: value for key, value in given.items() if value is not None}
        with claim(output, force=force, inputs=(flags["a"],)):
            _prepare()
            run = link_batch(before, flags["a"], progress=progress, **chosen)
            run.save(output, force=force, shared=shared, keep_inputs=True)
    if as_json:
        held = {"earlier_links": before.n_links, "earlier_links_in_doubt": in_doubt(before)}
        _print_json({**run.summary(), **held})
        return
    _print_summary(run, Path(output))
    _tell(f"\nWhat the batch changed:\n{told(before, run)}")


@contextmanager
def _removed_on_failure(quarantine: Iterable[str | Path | None]) -> Iterator[None]:
    """Leave no rows set aside by a run that failed: its repeat would refuse to overwrite them."""
    new = [Path(path) for path in quarantine if path and not Path(path).exists()]
    try:
        yield
    except BaseException:
        for path in new:
            path.unlink(missing_ok=True)
        raise


def _prepare() -> None:
    """Compile the kernels, on the first run on a machine; say so on the terminal or in the log."""
    from bayeslink.kernels import prepare

    prepare(lambda message: _complain(f"bayeslink: {message}"))


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """A bar with the time left, on a terminal only; gone when done. -q: none, -v: lines."""
    loud = click.get_current_context().find_root().meta.get(_LOUD, 0)
    if loud > 0:
        yield lambda message: _complain(f"bayeslink: {message}")
        return
    from bayeslink.progress import bar

    with bar(None if loud == 0 else False) as progress:
        yield progress


def _open_browser(address: str) -> None:
    """Open a browser, where there is a screen; one in the terminal would take it over."""
    if sys.platform == "linux" and not {"DISPLAY", "WAYLAND_DISPLAY"} & set(os.environ):
        return
    import threading
    import webbrowser

    threading.Thread(target=webbrowser.open, args=[address], daemon=True).start()


def _print_json(summary: dict[str, Any]) -> None:
    _tell(json.dumps(summary))


def _print_summary(run: Run, output: Path) -> None:
    if click.get_current_context().find_root().meta.get(_LOUD, 0) < 0:
        return
    _tell("\n".join(run.report_lines()))
    for warning in run.warnings:
        _tell(f"note: {warning}")
    first = "linked.csv" if (output / "linked.csv").exists() else "links.csv"
    _tell(f"Results in {click.format_filename(output)}: {first}, run.json and more.")


if __name__ == "__main__":
    main()
