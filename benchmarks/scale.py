"""CSV to Bayes estimate without blocking rules, by file size: `python benchmarks/scale.py [n …]`.

Simulated files of n people each, half of them in both, two errors a record, seven fields; linked
with independent fields and restricted sampling, as in the paper, and with the defaults. Every size
and model runs in a process of its own, so that peak memory is its own.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import bayeslink as bl
from benchmarks.measure import load_kernels, phase, print_line

NAME = "all pairs by size"
SIZES = (10_000, 20_000, 40_000, 80_000, 160_000, 320_000, 1_000_000)
FIELDS = (
    "gname:levenshtein",
    "fname:levenshtein",
    "dob:date",
    "sex:exact",
    "age:exact",
    "occup:exact",
    "postcode:exact",
)


MODELS = {"paper": {"structure": "independent", "restricted": True}, "default": {}}


def measure(n: int, model: str) -> None:
    load_kernels()
    from bayeslink.comparing.parsing import parse_on
    from bayeslink.simulation.files import write_simulation

    fields = [field for text in FIELDS for field in parse_on(text)]
    with tempfile.TemporaryDirectory() as folder:
        made = bl.simulate(n, overlap=0.5, errors=2, seed=1)
        write_simulation(made, Path(folder), force=True)
        truth = made.truth
        del made
        paths = [str(Path(folder) / name) for name in ("a.csv", "b.csv")]
        with phase(NAME, model, n=n) as facts:
            run = bl.link(
                *paths, fields, id="id", chains=2, tune=500, draws=500, seed=1, **MODELS[model]
            )
            facts |= {name: round(seconds, 1) for name, seconds in run.seconds.items()}
        post, found = run.posterior, bl.evaluate(run.links, truth)
        print_line(
            NAME, "result", 0.0, n=n, model=model, candidates=len(post.blocks.candidates),
            listed=len(post.blocks.low), searches=run.fit.searches, interval=post.interval(),
            precision=round(found.precision, 4), recall=round(found.recall, 4),
            expected_false=round(run.decision.expected_false), false=found.false_links,
            warning=post.warning(),
        )  # fmt: skip


def main() -> None:
    if sys.argv[2:] and sys.argv[2] in MODELS:
        measure(int(sys.argv[1]), sys.argv[2])
        return
    for n in sys.argv[1:] or SIZES:
        for model in MODELS:
            subprocess.run([sys.executable, __file__, str(n), model], check=True)


if __name__ == "__main__":
    main()
