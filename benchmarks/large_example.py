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
from benchmarks.measure import load_kernels, phase
from tests.data import STUDY, large_example, study_fields

NAME = "large example within postcode"


def files():
    if STUDY.is_file():
        return (*large_example(), "sadinle2017")
    made = bl.simulate(50_000, overlap=0.5, errors=2, seed=1)
    return made.a, made.b, made.truth, "simulated: sadinle2017 is not here"


def scores(links, truth) -> dict:
    result = bl.evaluate(links, truth)
    return {
        "links": result.n_links,
        "recall": round(result.recall, 4),
        "precision": round(result.precision, 4),
    }


def main() -> None:
    a, b, truth, data = files()
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(Path(folder) / name) for name in ("a.csv", "b.csv")]
        pyarrow.csv.write_csv(a, paths[0])
        pyarrow.csv.write_csv(b, paths[1])
        del a, b
        load_kernels()

        with phase(NAME, "read and compare", data=data) as facts:
            pairs = bl.compare(*paths, study_fields(), block=["postcode"], missing=["NA"])
            facts["pairs"] = pairs.n_pairs
        with phase(NAME, "level counts"):
            pairs.level_counts()
        with phase(NAME, "penalized likelihood, theta 7.5") as facts:
            fit = bl.fit_penalized(pairs, theta=7.5)
            facts |= {"searches": fit.searches, "modes": len(fit.modes)}
            facts |= scores(fit.links, truth)
        with phase(NAME, "post-hoc blocks") as facts:
            blocks = bl.posthoc_blocks(pairs, fit)
            sizes = blocks.n_pairs_in_block
            facts |= {"w0": round(blocks.w0, 3), "blocks": blocks.n_blocks}
            facts |= {"candidates": blocks.n_candidates, "largest": int(sizes.max())}
        for chains in (1, 4):
            for prior in (bl.Penalty(7.5), bl.Overlap()):
                name = f"{chains} chains of 1,000 + 2,500 sweeps"
                with phase(NAME, name, prior=repr(prior)) as facts:
                    post = bl.sample(blocks, prior=prior, tune=1000, draws=2500, chains=chains)
                    chosen = blocks.candidates.take(post.estimate().links)
                    facts |= {"interval": post.interval(), "warning": post.warning()}
                    facts |= scores(pairs.table(chosen, {}), truth)
        with phase(NAME, "pattern counts") as facts:
            facts["patterns"] = len(pairs.pattern_counts().counts)
        with phase(NAME, "EM + assignment, mu 7.5") as facts:
            facts |= scores(bl.assign_em(bl.fit_em(pairs), mu=7.5).links, truth)


if __name__ == "__main__":
    main()
