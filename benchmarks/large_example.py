"""Section 5.3's large example, CSV to Bayes estimate: `python benchmarks/large_example.py`.

Within postcode, as in the paper (160 million pairs), and over all 2.5 billion pairs, with the
postcode as a field. Each in a process of its own, so that peak memory is its own. Reads
sadinle2017 from BAYESLINK_DATA (or shared/data beside the clone); without it, simulated files of
the same size stand in, and the output says so.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow.csv

sys.path.insert(0, str(Path(__file__).parents[1]))

import bayeslink as bl
from bayeslink.pairs.pair_tables import callers_table
from benchmarks.measure import load_kernels, phase
from tests.data import STUDY, large_example, study_fields

SCOPES = {
    "within postcode": ([], ["postcode"]),
    "all pairs": ([bl.exact("postcode")], []),
}


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


def measure(scope: str) -> None:
    name = f"large example, {scope}"
    more_fields, block = SCOPES[scope]
    a, b, truth, data = files()
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(Path(folder) / file) for file in ("a.csv", "b.csv")]
        pyarrow.csv.write_csv(a, paths[0])
        pyarrow.csv.write_csv(b, paths[1])
        del a, b
        load_kernels()
        with phase(name, "in all", data=data) as whole:
            with phase(name, "read and compare") as facts:
                fields = [*study_fields(), *more_fields]
                pairs = bl.compare(*paths, fields, block=block, missing=["NA"])
                facts["pairs"] = pairs.n_pairs
            with phase(name, "level counts"):
                pairs.level_counts()
            with phase(name, "penalized likelihood") as facts:
                fit = bl.fit_penalized(pairs)
                facts |= {"theta": round(fit.theta, 3), "searches": fit.searches}
                facts |= {"modes": len(fit.modes), **scores(fit.links, truth)}
            with phase(name, "post-hoc blocks") as facts:
                blocks = bl.posthoc_blocks(pairs, fit)
                sizes = blocks.n_pairs_in_block
                facts |= {"w0": round(blocks.w0, 3), "blocks": blocks.n_blocks}
                facts |= {"candidates": blocks.n_candidates, "largest": int(sizes.max())}
            with phase(name, "1 chain of 1,000 + 2,500 sweeps") as facts:
                post = bl.sample(blocks, prior=fit.prior, tune=1000, draws=2500, chains=1)
                facts["interval"] = post.interval()
            with phase(name, "Bayes estimate"):
                decision = post.estimate()
            chosen = callers_table(pairs, post.blocks.candidates.take(decision.links), {})
            whole |= {"expected_false": round(decision.expected_false), **scores(chosen, truth)}
        with phase(name, "pattern counts") as facts:
            patterns = pairs.pattern_counts()
            facts |= {"patterns": len(patterns.counts), "sampled": patterns.sampled}


def main() -> None:
    if len(sys.argv) == 2:
        measure(sys.argv[1])
        return
    for scope in SCOPES:
        subprocess.run([sys.executable, __file__, scope], check=True)


if __name__ == "__main__":
    main()
