"""Level tables of large simulated files beside RapidFuzz: `python benchmarks/level_tables.py`.

RapidFuzz compares everything with everything, so it gets only so many values of A as make
`--sample` value pairs. Some rows of each table are checked against the definition.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from rapidfuzz import process
from rapidfuzz.distance import OSA, JaroWinkler, Levenshtein

sys.path.insert(0, str(Path(__file__).parents[1]))

import bayeslink as bl
from bayeslink.comparing.comparisons import level_matrix
from bayeslink.comparing.dictionaries import encode
from bayeslink.comparing.from_data import settled
from bayeslink.comparing.level_tables import level_table
from bayeslink.data.records import read_records
from benchmarks.measure import load_kernels, phase

SCORERS = {
    "levenshtein": (Levenshtein.distance, np.uint8),
    "damerau_levenshtein": (OSA.distance, np.uint8),
    "jaro_winkler": (JaroWinkler.similarity, np.float32),
}
FIELDS = [
    bl.levenshtein("gname"),
    bl.levenshtein("fname"),
    bl.levenshtein("fname", cuts=(0, 0.25)),
    bl.damerau_levenshtein("fname"),
    bl.jaro_winkler("fname"),
    bl.levenshtein("postcode"),
    bl.levenshtein("street", cuts=(0, 0.2)),
    bl.tokens("street"),
    bl.date("dob"),
    bl.name("fname"),
    bl.text("street"),
    bl.postcode("postcode"),
]


def measured(field, who, rows, columns, threads):
    pairs = len(rows) * len(columns)
    return phase(
        "level tables", who, field=field.name, kind=field.kind, cuts=field.cuts, threads=threads,
        values_a=len(rows), values_b=len(columns), value_pairs=pairs,
    )  # fmt: skip


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--n", type=int, default=1_000_000, help="records of each file")
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--sample", type=float, default=3e8, help="value pairs for RapidFuzz")
    given = options.parse_args()
    names = sorted({field.name for field in FIELDS})
    made = bl.simulate(given.n, overlap=0.5, errors=2, seed=1)
    a, b = (
        read_records(file, id="id", columns=names, side=side)
        for file, side in ((made.a, "A"), (made.b, "B"))
    )
    load_kernels()

    for field in FIELDS:
        with phase("level tables", "distinct values", field=field.name, kind=field.kind):
            sides = encode(field, a, 0), encode(field, b, 1)
            x, y = (side.values for side in sides)
        with measured(field, "what is told from the data", x, y, given.threads):
            field = settled(field, *sides)
        with measured(field, "bayeslink", x, y, given.threads) as facts:
            table = level_table(field, x, y, given.threads)
            facts["entries"] = len(table.indices)
        some = np.linspace(0, len(x) - 1, max(1, min(len(x), int(given.sample / len(y)))))
        rows = np.unique(some.astype(int))
        sample = [x[row] for row in rows]
        if field.kind in SCORERS:
            scorer, dtype = SCORERS[field.kind]
            with measured(field, "rapidfuzz", sample, y, given.threads):
                process.cdist(sample, y, scorer=scorer, dtype=dtype, workers=given.threads)
        for row in rows[:: max(1, len(rows) // 50)]:
            expected = level_matrix(field, [x[row]], y, 1)[0]
            here = slice(table.indptr[row], table.indptr[row + 1])
            assert (np.flatnonzero(expected > 1) == table.indices[here]).all()
            assert (expected[expected > 1] == table.levels[here]).all()


if __name__ == "__main__":
    main()
