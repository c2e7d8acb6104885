"""People of one file: quality on files with known truth, and by size beside Splink.

    python benchmarks/dedupe.py [files] [subsets] [sizes [N …]]

`files`: every file of duplicates in the shared data, with fields by hand and with those that are
proposed. `subsets`: ten subsets of each file, a fifth of its people each. People fall into subsets
by a hash of their number, chosen before any was looked at: what is decided with the truth at hand
is decided on even subsets, and the odd ones are reported. `sizes`: simulated files, households and
changes of name and address among them, beside Splink in the same run where it is installed.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import pandas as pd
import pyarrow as pa

import bayeslink as bl
from bayeslink.runs.cluster_evaluation import evaluate_clusters
from benchmarks.measure import load_kernels, phase
from benchmarks.search import fields as simulated_fields
from experiments.data import ROOT

NAME = "people of one file"
FOLDER = ROOT / "duplicates"
SIZES = (10_000, 20_000, 40_000, 100_000)
SUBSETS = 10
DRAWS = {"draws": 500, "tune": 500, "seed": 1}
Fields = list[Any]


def _rldata() -> Fields:
    names = [bl.levenshtein(n) for n in ("fname_c1", "lname_c1")]
    return [*names, *(bl.exact(n) for n in ("by", "bm", "bd"))]


def _febrl() -> Fields:
    names = ("given_name", "surname", "address_1", "suburb", "postcode", "date_of_birth")
    exact = ("street_number", "state", "soc_sec_id")
    return [*(bl.levenshtein(n) for n in names), *(bl.exact(n) for n in exact)]


def _fake() -> Fields:
    names = ("first_name", "surname", "email")
    return [*(bl.levenshtein(n) for n in names), bl.date("dob"), bl.exact("city")]


def _multilink() -> Fields:
    names = ("gname", "fname", "phone", "postcode")
    return [*(bl.levenshtein(n) for n in names), *(bl.exact(n) for n in ("sex", "age", "occup"))]


def _regression() -> Fields:
    exact = ("bm", "bd", "by", "sex", "education")
    return [*(bl.levenshtein(n) for n in ("fname", "lname")), *(bl.exact(n) for n in exact)]


def _synthetic() -> Fields:
    exact = ("gender", "state", "birth_month", "birth_day", "birth_year")
    names = ("first_name", "last_name", "zipcode")
    return [*(bl.levenshtein(n) for n in names), *(bl.exact(n) for n in exact)]


BY_HAND: dict[str, Callable[[], Fields]] = {
    "rldata": _rldata, "febrl": _febrl, "fake": _fake, "multilink_dup": _multilink,
    "rl_reg": _regression, "synth": _synthetic,
}  # fmt: skip


def folders() -> Iterator[tuple[str, pd.DataFrame, pd.DataFrame, Fields]]:
    """Name, records and truth of each file with duplicates, and its fields by hand."""
    for folder in sorted(FOLDER.glob("*/")):
        start = [s for s in BY_HAND if folder.name.startswith(s)]
        if start:  # three files without duplicates in any are another task
            rows = pd.read_csv(folder / "records.csv.gz", dtype=str)
            truth = pd.read_csv(folder / "truth.csv.gz", dtype=str)
            truth = truth.rename(columns={"entity": "entity_id"})
            yield (
                folder.name,
                rows.drop(columns="file", errors="ignore"),
                truth,
                BY_HAND[start[0]](),
            )


def judged(run: bl.DedupeRun, truth: Any) -> dict[str, Any]:
    """What is told of a run whose truth is known."""
    found, (low, high) = evaluate_clusters(run.clusters, truth), run.entities.interval()
    return {
        "people": found.n_entities,
        "interval": [low, high],
        "covers": low <= found.n_entities <= high,
        "f1": round(found.f1, 4),
        "bcubed": round(found.bcubed_f1, 4),
        "exact": f"{found.exact_clusters}/{found.n_entities}",
        "rho": round(float(run.posterior.rho.mean()), 4),
        "warnings": len(run.warnings),
    }


def whole_files() -> None:
    for name, rows, truth, by_hand in folders():
        for how, fields in (("by hand", by_hand), ("as proposed", None)):
            with phase(NAME, "file", file=name, fields=how) as facts:
                facts |= judged(bl.dedupe(rows, fields, **DRAWS), truth)


def subsets() -> None:
    tried: list[bool] = []
    for name, rows, truth, fields in folders():
        share = np.array([zlib.crc32(e.encode()) % 5 for e in truth["entity_id"]])
        turn = np.array([zlib.crc32(f"again {e}".encode()) % 5 for e in truth["entity_id"]])
        for number in range(SUBSETS):
            own = (share if number % 2 else turn) == number // 2
            part = truth[own]
            with phase(NAME, "subset", file=name, number=number) as facts:
                some = rows[rows["id"].isin(part["id"])]
                facts |= judged(bl.dedupe(some, fields, **DRAWS), part)
            if number % 2:
                tried.append(facts["covers"])
    print(f"odd subsets: {sum(tried)} of {len(tried)} intervals cover")


def splink_clusters(table: pa.Table) -> dict[float, pa.Table]:
    """Splink's clusters by threshold; set up as its guides do."""
    import splink.comparison_library as cl
    from splink import Linker, SettingsCreator, block_on
    from splink.backends.duckdb import DuckDBAPI

    rules = [["dob"], ["gname", "fname"], ["fname", "postcode"], ["street"]]
    api = DuckDBAPI()
    frame = api.register(table.rename_columns(["unique_id", *table.column_names[1:]]))
    names = [cl.JaroWinklerAtThresholds(n, [0.92, 0.8]) for n in ("gname", "fname", "street")]
    linker = Linker(
        frame,
        SettingsCreator(
            link_type="dedupe_only",
            comparisons=[
                *(c.configure(term_frequency_adjustments=True) for c in names),
                cl.DateOfBirthComparison("dob", input_is_string=True),
                *(cl.ExactMatch(n) for n in ("sex", "occup", "postcode")),
            ],
            blocking_rules_to_generate_predictions=[block_on(*rule) for rule in rules],
        ),
    )
    training = linker.training
    training.estimate_probability_two_random_records_match(
        [block_on("dob", "gname"), block_on("gname", "fname", "postcode")], recall=0.7
    )
    training.estimate_u_using_random_sampling(max_pairs=5e6, seed=1)
    for rule in (["dob"], ["gname", "fname"]):
        training.estimate_parameters_using_expectation_maximisation(block_on(*rule))
    found = linker.inference.predict(threshold_match_probability=0.05)
    out = {}
    for threshold in (0.1, 0.3, 0.5, 0.7, 0.9, 0.95, 0.99, 0.999):
        clusters = linker.clustering.cluster_pairwise_predictions_at_threshold(
            found, threshold_match_probability=threshold
        ).as_pandas_dataframe()
        columns = clusters[["unique_id", "cluster_id"]].astype(str)
        out[threshold] = columns.set_axis(["id", "entity_id"], axis=1)
    return out


def by_size(sizes: list[int]) -> None:
    for n in sizes:
        made = bl.simulate_duplicates(n, seed=1)
        with phase(NAME, "dedupe", n=n) as facts:
            run = bl.dedupe(made.a, simulated_fields(), **DRAWS)
            facts |= {"parts": run.seconds, **judged(run, made.truth)}
        del run
        if not find_spec("splink"):
            print("Splink is not installed: it is left out.")
            continue
        with phase(NAME, "Splink", n=n) as facts:
            found = splink_clusters(made.a)
        scores = {t: evaluate_clusters(c, made.truth) for t, c in found.items()}
        best = max(scores, key=lambda t: scores[t].f1)
        for name, t in (("at .95", 0.95), (f"best, by the truth, at {best}", best)):
            f1, bcubed = scores[t].f1, scores[t].bcubed_f1
            print(
                f"Splink {name}: F1 {f1:.4f}, B-cubed {bcubed:.4f}, {scores[t].n_clusters:,} people"
            )


def main() -> None:
    given = sys.argv[1:] or ["files", "subsets", "sizes"]
    load_kernels()
    if {"files", "subsets"} & {*given} and not FOLDER.is_dir():
        print(f"no {FOLDER.name} in the shared data: files and subsets are left out")
        given = [name for name in given if name not in ("files", "subsets")]
    if "files" in given:
        whole_files()
    if "subsets" in given:
        subsets()
    if "sizes" in given:
        by_size([int(name) for name in given if name.isdigit()] or list(SIZES))


if __name__ == "__main__":
    main()
