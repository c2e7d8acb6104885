"""One file compared with itself, by size: `python benchmarks/one_file.py [n …]`.

Simulated files with duplicates (four in ten people have two to four records, an error a record),
seven fields, no blocking key. Each question is put to the pairs of the file with itself and, beside
it in the same run, to the same table given as two files, which has every pair twice and each record
with itself. The search is above fixed weights at which some tenths of the records have a pair.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np

import bayeslink as bl
from bayeslink.model.weights import Parameters, Priors, proportions
from benchmarks.measure import load_kernels, phase
from benchmarks.search import fields as search_fields

NAME = "one file with itself"
SIZES = (10_000, 100_000, 1_000_000)


def fields():
    """Those of `benchmarks.search`, with no cuts left to the data."""
    return [bl.date("dob", cuts=(0, 30)) if f.kind == "date" else f for f in search_fields()]


def weights_of(pairs):
    """Weights at the prior's m and the level shares as u."""
    priors = Priors.of(pairs.fields)
    m = proportions(priors.alpha_m, priors.used)
    u = proportions(priors.pseudo_u + pairs.level_counts().counts, priors.used)
    return Parameters(m, u, priors.used).log_weights


def measure(n: int) -> None:
    rows = bl.simulate_duplicates(n, seed=1).a
    weights, threshold, listed = None, float(np.log(n)), []
    for files in (1, 2):
        about = {"n": n, "files": files}
        with phase(NAME, "compare values", **about):
            if files == 1:
                pairs = bl.compare(rows, fields=fields())
            else:
                pairs = bl.compare(rows, rows.slice(0), fields())
        with phase(NAME, "level counts", **about) as facts:
            facts["pairs"] = pairs.level_counts().n_pairs
        weights = weights_of(pairs) if weights is None else weights
        with phase(NAME, "search", **about) as facts:
            found = pairs.pairs_above(weights, threshold)
            facts |= {"listed": len(found), "visited": pairs.last_plan.visited}
        listed.append(found)
        if n <= 100_000:
            with phase(NAME, "pattern counts", **about) as facts:
                facts["patterns"] = len(pairs.pattern_counts().counts)
    one, two = listed
    wanted = two.numbered(n)[two.a < two.b]
    assert np.array_equal(one.numbered(n), wanted), "the same pairs, each once"


def main() -> None:
    load_kernels()
    for n in map(int, sys.argv[1:] or SIZES):
        measure(n)


if __name__ == "__main__":
    main()
