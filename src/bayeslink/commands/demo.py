"""`demo` and `simulate`: made-up people."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bayeslink.commands.options import FILE, as_json_option, force_option, quiet, verbose
from bayeslink.commands.output import (
    prepare_kernels,
    print_json,
    print_summary,
    showing_progress,
    tell,
)
from bayeslink.runs.run_directory import check_target

DEMO_FIELDS = (
    "gname:levenshtein",
    "fname:levenshtein",
    "dob:date",
    "sex:exact",
    "occup:exact",
    "postcode:exact",
)


@click.command()
@click.option("--n", default=2000, show_default=True, help="Records in each file.")
@click.option("-o", "--output", default="bayeslink-demo", show_default=True, type=FILE)
@click.option("--seed", default=1, show_default=True)
@quiet
@verbose
@as_json_option
def demo(n: int, output: Path, seed: int, as_json: bool) -> None:
    """Simulate two files, link them, and say how well it went."""
    with showing_progress() as progress:
        from bayeslink.comparing.parsing import parse_on
        from bayeslink.linking.link import link as link_files
        from bayeslink.report.page import report
        from bayeslink.runs.evaluation import evaluate_links
        from bayeslink.simulation.files import simulate as make_files
        from bayeslink.simulation.files import write_simulation

        progress(f"simulating two files of {n:,} people")
        files, folder = make_files(n, seed=seed), output / "files"
        write_simulation(files, folder, force=True)
        check_target(output / "run", force=True)
        prepare_kernels(progress)
        fields = [field for text in DEMO_FIELDS for field in parse_on(text)]
        a, b = folder / "a.csv", folder / "b.csv"
        run = link_files(a, b, fields, seed=seed, progress=progress)
        run.save(output / "run", force=True)
        result = evaluate_links(run.table, files.truth)
        progress("writing the report")
        page = report(run, output / "run" / "report.html", truth=files.truth)
    if as_json:
        print_json({**run.summary(), **result.as_dict()})
        return
    print_summary(run, output / "run")
    tell(f"To look at: {click.format_filename(page)}")
    tell(f"\nAgainst the truth, which a simulation knows:\n{result}")
    flags = " ".join(f"--on {text}" for text in DEMO_FIELDS)
    tell(
        "\nThe same by hand, and a start for your own files:\n"
        f"  bayeslink link {a} {b} {flags} -o out"
    )


@click.command()
@click.option("--n", default=1000, show_default=True, help="Records in A.")
@click.option("--n-b", type=int, help="Records in B. [as in A]")
@click.option(
    "--overlap", default=0.5, show_default=True, help="Share of the smaller file matched."
)
@click.option("--errors", default=2, help="Fields with an error in each copy. [2; --sizes: 1]")
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
@click.option(
    "--sizes",
    metavar="SHARES",
    help="One file with duplicates instead: shares of people with 1,2,3,… records, as 0.7,0.2,0.1.",
)
@click.option("--moved", type=float, help="With --sizes: share who move in between. [0.1]")
@click.option("--married", type=float, help="With --sizes: share of women renamed. [0.1]")
@click.option("--seed", default=1, show_default=True)
@click.option("-o", "--output", required=True, type=FILE, metavar="DIR")
@force_option
@quiet
@verbose
@as_json_option
def simulate(
    output: Path,
    force: bool,
    as_json: bool,
    kinds: str | None,
    no_households: bool,
    no_eras: bool,
    **arguments: Any,
) -> None:
    """Write a.csv, b.csv and truth.csv: two files of made-up people, and who is who.

    With --sizes one file, a.csv, in which people appear more than once.
    """
    one_file = _one_file(arguments)
    with showing_progress() as progress:
        from bayeslink.simulation.duplicates import simulate_duplicates
        from bayeslink.simulation.files import check_directory, write_simulation
        from bayeslink.simulation.files import simulate as make_files
        from bayeslink.simulation.mistakes import ALL_KINDS

        check_directory(output, force=force)
        progress(f"simulating {arguments['n']:,} {'records' if one_file else 'people'}")
        made = (simulate_duplicates if one_file else make_files)(
            **arguments,
            kinds=kinds.split(",") if kinds else ALL_KINDS,
            households=not no_households,
            eras=not no_eras,
        )
        write_simulation(made, output, force=force)
    rows = {name: len(table) for name, table in made.tables.items()}
    if one_file:
        numbers = {"n": rows["a.csv"], "n_entities": len(made.truth["entity_id"].unique())}
        told = f"a.csv with {numbers['n']:,} records of {numbers['n_entities']:,} people"
    else:
        numbers = {"n_a": rows["a.csv"], "n_b": rows["b.csv"], "n_matches": rows["truth.csv"]}
        told = (
            f"a.csv with {numbers['n_a']:,} people, b.csv with {numbers['n_b']:,}, "
            f"{numbers['n_matches']:,} in both"
        )
    if as_json:
        print_json({"output": str(output), **numbers})
    else:
        tell(f"{output}: {told} (truth.csv).")


def _one_file(arguments: dict[str, Any]) -> bool:
    """Whether one file is asked for; the arguments are then those of `simulate_duplicates`."""
    context = click.get_current_context()
    given = {
        name
        for name in arguments
        if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
    }
    one_file = arguments["sizes"] is not None
    unfit = given & ({"n_b", "overlap", "duplicates"} if one_file else {"moved", "married"})
    if unfit:
        flags = ", ".join(sorted(f"--{name.replace('_', '-')}" for name in unfit))
        meant = "two files; --sizes makes one" if one_file else "one file; give --sizes"
        raise click.UsageError(f"{flags} is for {meant}.")
    dropped = {"n_b", "overlap", "duplicates"} if one_file else {"sizes", "moved", "married"}
    dropped |= {name for name in ("moved", "married", "errors") if one_file and name not in given}
    for name in dropped:
        del arguments[name]
    if one_file:
        try:
            arguments["sizes"] = [float(share) for share in arguments["sizes"].split(",")]
        except ValueError:
            raise click.UsageError(
                "--sizes must be numbers with commas between them, such as 0.7,0.2,0.1."
            ) from None
    return one_file
