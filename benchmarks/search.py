"""Counts and searches over all pairs by file size: `python benchmarks/search.py [n …]`.

Simulated files with seven fields, half of the records in both, two errors a record; no blocking
key. The searches are at the fit's weights: above θ, where links are, and above θ − 5 and θ − 8,
where post-hoc blocks look.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import bayeslink as bl
from benchmarks.measure import load_kernels, phase

NAME = "search over all pairs"
SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000)


def fields():
    return [
        bl.levenshtein("gname"),
        bl.levenshtein("fname"),
        bl.date("dob"),
        bl.exact("sex"),
        bl.exact("occup"),
        bl.exact("postcode"),
        bl.tokens("street"),
    ]


def measure(n: int) -> None:
    made = bl.simulate(n, overlap=0.5, errors=2, seed=1)
    with phase(NAME, "compare values", n=n) as facts:
        pairs = bl.compare(made.a, made.b, fields(), id="id")
        facts["pairs"] = pairs.n_pairs
    with phase(NAME, "level counts", n=n):
        pairs.level_counts()
    with phase(NAME, "penalized-likelihood fit", n=n) as facts:
        fit = bl.fit_penalized(pairs)
        found = bl.evaluate(fit.links, made.truth)
        facts |= {"links": fit.n_links, "theta": round(fit.theta, 3), "searches": fit.searches}
        facts |= {"recall": round(found.recall, 4), "precision": round(found.precision, 4)}
    for below in (0, 5, 8):
        with phase(NAME, f"pairs above theta - {below}", n=n) as facts:
            listed = len(pairs.pairs_above(fit.parameters.log_weights, fit.theta - below))
            plan = pairs.last_plan
            facts |= {"listed": listed, "visited": plan.visited, "expected": round(plan.expected)}
            facts |= {"never_visited": round(plan.skipped, 6), "joins": len(plan.joins)}
    with phase(NAME, "pattern counts", n=n) as facts:
        patterns = pairs.pattern_counts()
        facts |= {"patterns": len(patterns.counts), "sampled": patterns.sampled}


def main() -> None:
    load_kernels()

    for n in map(int, sys.argv[1:] or SIZES):
        measure(n)


if __name__ == "__main__":
    main()
