"""Sampling with none, half and all of the people in both files: `python benchmarks/overlap.py`.

Simulated files of n people each (5,000 unless given: `overlap.py 20000`), fields proposed, the
defaults. Seconds of sampling, and how many times those of half in both; effective draws a second of
the number of links, nothing where it is the same in all draws.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import bayeslink as bl
from benchmarks.measure import load_kernels, print_line

NAME = "overlap"
OVERLAPS = (0.5, 0.0, 0.05, 0.9, 1.0)  # the others are compared with the first


def main(n: int, seeds: range) -> None:
    load_kernels()
    for seed in seeds:
        half = 0.0
        for overlap in OVERLAPS:
            made = bl.simulate(n, overlap=overlap, seed=seed)
            posterior = bl.link(made.a, made.b).posterior
            half = half or posterior.seconds
            ess = next(d.ess for d in posterior.diagnostics() if d.name == "links")
            print_line(
                NAME,
                f"{n:,} x {n:,}, {overlap:.0%} in both, seed {seed}",
                posterior.seconds,
                times_half=round(posterior.seconds / half, 2),
                ess_a_second=ess and round(ess / posterior.seconds, 1),
                links=round(float(posterior.n_links.mean()), 1),
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5000, range(1, 3))
