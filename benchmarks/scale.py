"""CSV to Bayes estimate without blocking rules, by file size: `python benchmarks/scale.py [n …]`.

Simulated files of n people each, half of them in both, two errors a record, seven fields. Every
size runs in a process of its own, so that peak memory is that size's. The last line of each size
is the sum over its phases.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import bayeslink as bl
from bayeslink.pairs.tables import callers_table
from benchmarks.measure import load_kernels, phase

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


def measure(n: int) -> None:
    load_kernels()
    from bayeslink.results.settings import parse_on
    from bayeslink.simulation.files import write_simulation

    fields = [field for text in FIELDS for field in parse_on(text)]
    with tempfile.TemporaryDirectory() as folder:
        made = bl.simulate(n, overlap=0.5, errors=2, seed=1)
        write_simulation(made, Path(folder), force=True)
        truth = made.truth
        del made
        paths = [str(Path(folder) / name) for name in ("a.csv", "b.csv")]
        with phase(NAME, "in all", n=n) as whole:
            with phase(NAME, "read and compare", n=n) as facts:
                pairs = bl.compare(*paths, fields)
                facts["pairs"] = pairs.n_pairs
            with phase(NAME, "level counts", n=n):
                pairs.level_counts()
            with phase(NAME, "penalized likelihood", n=n) as facts:
                fit = bl.fit_penalized(pairs)
                facts |= {"links": fit.n_links, "theta": round(fit.theta, 2)}
                facts |= {"searches": fit.searches}
            with phase(NAME, "post-hoc blocks", n=n) as facts:
                blocks = bl.posthoc_blocks(pairs, fit)
                plan = pairs.last_plan
                facts |= {"w0": round(blocks.w0, 2), "blocks": blocks.n_blocks}
                facts |= {"candidates": blocks.n_candidates, "visited": plan.visited}
                facts |= {"never_visited": round(plan.skipped, 6)}
            with phase(NAME, "2 chains of 500 + 500 sweeps", n=n) as facts:
                post = bl.sample(blocks, prior=fit.prior, tune=500, draws=500, chains=2)
                facts["interval"] = post.interval()
            with phase(NAME, "Bayes estimate", n=n):
                decision = post.estimate()
            found = bl.evaluate(
                callers_table(pairs, blocks.candidates.take(decision.links), {}), truth
            )
            whole |= {"recall": round(found.recall, 4), "precision": round(found.precision, 4)}
            whole |= {"expected_false": round(decision.expected_false)}
            whole |= {"false": found.false_links, "warning": post.warning()}


def main() -> None:
    if len(sys.argv) == 2:
        measure(int(sys.argv[1]))
        return
    for n in sys.argv[1:] or SIZES:
        subprocess.run([sys.executable, __file__, str(n)], check=True)


if __name__ == "__main__":
    main()
