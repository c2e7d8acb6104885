"""A new batch linked to what is left of A, against linking all of B again.

python benchmarks/batch.py 100000 1000
"""

import sys
import time

import bayeslink as bl

FIELDS = [
    bl.levenshtein("gname"), bl.levenshtein("fname"), bl.date("dob"), bl.exact("sex"),
    bl.exact("occup"), bl.exact("postcode"),
]  # fmt: skip


def timed(what, *arguments, **options):
    start = time.perf_counter()
    run = what(*arguments, **options)
    return run, time.perf_counter() - start


def links_of(*runs):
    """Probability of each link, by its ids."""
    return {
        (row["id_a"], row["id_b"]): row["link_probability"]
        for run in runs
        for row in run.table.select(["id_a", "id_b", "link_probability"]).to_pylist()
    }


def main(n: int, batch: int) -> None:
    files = bl.simulate(n, n_b=n, overlap=0.5, errors=2, seed=1)
    old, new = files.b.slice(0, n - batch), files.b.slice(n - batch)
    first, seconds = timed(bl.link, files.a, old, FIELDS)
    print(f"{n:,} × {n - batch:,}: {first.n_links:,} links in {seconds:.1f} s")
    added, seconds = timed(bl.update, first, new)
    print(f"a batch of {batch:,}: {added.n_links:,} links in {seconds:.1f} s")
    whole, seconds = timed(bl.link, files.a, files.b, FIELDS)
    print(f"all again: {whole.n_links:,} links in {seconds:.1f} s")
    one, two = links_of(first, added), links_of(whole)
    both = one.keys() & two.keys()
    apart = sorted(abs(one[pair] - two[pair]) for pair in both)
    print(f"in both {len(both):,}, batch alone {len(one) - len(both):,}, "
          f"all alone {len(two) - len(both):,}")  # fmt: skip
    print(f"probabilities apart: median {apart[len(apart) // 2]:.4f}, "
          f"99th percentile {apart[int(0.99 * len(apart))]:.4f}")  # fmt: skip
    print(f"F1 {f1(one, files.truth):.4f} with the batch, {f1(two, files.truth):.4f} all again")


def f1(links, truth):
    true = {*zip(truth["id_a"].to_pylist(), truth["id_b"].to_pylist(), strict=True)}
    return 2 * len(links.keys() & true) / (len(links) + len(true))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:] or ("100000", "1000")))
