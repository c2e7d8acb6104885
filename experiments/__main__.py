"""One command for each experiment: `python -m experiments census`, `large` or `simulation`."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import click

from bayeslink.commands.output import complain, prepare_kernels, showing_progress, tell
from bayeslink.errors import BayeslinkError


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("experiment", type=click.Choice(["census", "simulation", "large"]))
@click.option(
    "-o",
    "--output",
    default="experiments/output",
    show_default=True,
    type=click.Path(path_type=Path),
)
@click.option(
    "--datasets",
    default=100,
    show_default=True,
    type=click.IntRange(1, 100),
    help="For simulation: how many of the 100 databases of each setting.",
)
def main(experiment: str, output: Path, datasets: int) -> None:
    """Repeat an experiment of the paper: tables on the screen, figures in OUTPUT."""
    with showing_progress() as progress:
        prepare_kernels(progress)
        module = import_module(f"experiments.{experiment}")
        options = {"datasets": datasets} if experiment == "simulation" else {}
        text = module.run(output, progress, **options)
    tell(text)
    tell(f"\nFigures in {output}.")


if __name__ == "__main__":
    try:
        main(prog_name="python -m experiments")
    except BayeslinkError as error:
        complain(f"experiments: {error}")
        sys.exit(error.exit_code)
