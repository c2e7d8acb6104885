"""Section 5.3's large example, CSV to links, by phase: `python benchmarks/large_example.py`.

Reads sadinle2017 from BAYESLINK_DATA (or shared/data beside the clone); without it, simulated
files of the same size stand in, and the output says so.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pyarrow.csv

sys.path.insert(0, str(Path(__file__).parents[1]))

import bayeslink as bl
from benchmarks.measure import phase
from tests.data import STUDY, large_example, study_fields

NAME = "large example within postcode"


def files():
    if STUDY.is_file():
        return (*large_example(), "sadinle2017")
    made = bl.simulate(50_000, overlap=0.5, errors=2, seed=1)
    return made.a, made.b, made.truth, "simulated: sadinle2017 is not here"


def main() -> None:
    a, b, truth, data = files()
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(Path(folder) / name) for name in ("a.csv", "b.csv")]
        pyarrow.csv.write_csv(a, paths[0])
        pyarrow.csv.write_csv(b, paths[1])
        del a, b
        import bayeslink.kernels.matching
        import bayeslink.kernels.scan  # noqa: F401 - compiled or loaded before the clock starts

        with phase(NAME, "read and compare", data=data) as facts:
            pairs = bl.compare(*paths, study_fields(), block=["postcode"], missing=["NA"])
            facts["pairs"] = pairs.n_pairs
        with phase(NAME, "level counts"):
            pairs.level_counts()
        with phase(NAME, "penalized likelihood, theta 7.5") as facts:
            fit = bl.fit_penalized(pairs, theta=7.5)
            result = bl.evaluate(fit.links, truth)
            facts |= {"links": fit.n_links, "searches": fit.searches, "modes": len(fit.modes)}
            facts |= {"recall": round(result.recall, 4), "precision": round(result.precision, 4)}
        with phase(NAME, "pattern counts") as facts:
            facts["patterns"] = len(pairs.pattern_counts().counts)
        with phase(NAME, "EM + assignment, mu 7.5") as facts:
            linked = bl.assign_em(bl.fit_em(pairs), mu=7.5)
            result = bl.evaluate(linked.links, truth)
            facts |= {"links": linked.n_links}
            facts |= {"recall": round(result.recall, 4), "precision": round(result.precision, 4)}


if __name__ == "__main__":
    main()
