"""One-to-one F1 of Splink, and of bayeslink on Splink's own comparisons, on files with known truth.

    python benchmarks/splink_pairs.py [FOLDER …]

Splink is set up as its guides do: similarities of names and texts in steps, term frequencies where
values are uneven, u by random sampling, m by EM in two sessions, several blocking rules, and its
prior told as it truly is. Its links are its pairs from the best down, each record once, with a
probability above .5 and above .9.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb

sys.path.insert(0, str(Path(__file__).parents[1]))

import bayeslink as bl
from bayeslink.runs.pair_files import pairs_of
from experiments.data import ROOT


def fodors_zagats(cl: Any) -> tuple[list[Any], list[list[str]], list[list[str]]]:
    """Comparisons, blocking rules and the rules of the training sessions."""
    return (
        [
            cl.JaroWinklerAtThresholds("name", [0.92, 0.8]),
            cl.JaroWinklerAtThresholds("address", [0.92, 0.8]),
            cl.JaroWinklerAtThresholds("city", [0.92, 0.8]),
            cl.LevenshteinAtThresholds("phone", [2, 4]),
        ],
        [["city"], ["name"], ["substr(address, 1, 6)"], ["substr(phone, 1, 3)"]],
        [["city"], ["substr(phone, 1, 3)", "substr(name, 1, 1)"]],
    )


def dblp_acm(cl: Any) -> tuple[list[Any], list[list[str]], list[list[str]]]:
    return (
        [
            cl.JaroWinklerAtThresholds("title", [0.95, 0.88]),
            cl.JaroWinklerAtThresholds("authors", [0.95, 0.88]),
            cl.ExactMatch("year"),
        ],
        [["substr(title, 1, 8)"], ["authors"], ["substr(authors, 1, 8)", "year"]],
        [["substr(title, 1, 8)"], ["authors"]],
    )


def pp_census_ssa(cl: Any) -> tuple[list[Any], list[list[str]], list[list[str]]]:
    names = ("first_name", "last_name")
    return (
        [
            *(cl.JaroWinklerAtThresholds(n, [0.92, 0.8])
              .configure(term_frequency_adjustments=True) for n in names),
            cl.DateOfBirthComparison("born", input_is_string=True),
            cl.ExactMatch("sex"),
        ],
        [["born"], ["first_name", "last_name"], ["last_name", "substr(born, 1, 4)"],
         ["first_name", "substr(born, 1, 7)"]],
        [["born"], ["first_name", "last_name"]],
    )  # fmt: skip


def rldata(cl: Any) -> tuple[list[Any], list[list[str]], list[list[str]]]:
    return (
        [
            cl.JaroWinklerAtThresholds("fname_c1", [0.92, 0.8]),
            cl.JaroWinklerAtThresholds("lname_c1", [0.92, 0.8]),
            *(cl.ExactMatch(name) for name in ("by", "bm", "bd")),
        ],
        [["fname_c1", "lname_c1"], ["by", "bm", "bd"], ["lname_c1", "by"], ["fname_c1", "by"]],
        [["by", "bm", "bd"], ["fname_c1", "lname_c1"]],
    )


FOLDERS: dict[str, Callable[[Any], Any]] = {
    f.__name__: f for f in (rldata, fodors_zagats, dblp_acm, pp_census_ssa)
}
# Dates in one form for Splink, which reads none itself.
_BORN = {
    "a": "strftime(try_strptime(date_of_birth, '%m/%d/%Y'), '%Y-%m-%d') as born",
    "b": "strftime(try_strptime(date_of_birth, '%Y%m%d'), '%Y-%m-%d') as born",
}


def predicted(folder: str) -> tuple[Any, str, Any, tuple[Any, Any]]:
    """Splink's predictions, its model, the true pairs, and the ids of both files."""
    import splink.comparison_library as cl
    from splink import Linker, SettingsCreator, block_on
    from splink.backends.duckdb import DuckDBAPI

    place, connection = ROOT / "truth" / folder, duckdb.connect()
    database, tables, ids = DuckDBAPI(connection), [], []
    for side in "ab":
        columns = f"first_name, last_name, sex, {_BORN[side]}"  # which both files have
        columns = columns if folder == "pp_census_ssa" else "* exclude (id)"
        read = f"read_csv('{place / side}.csv.gz', all_varchar = true)"
        rows = connection.sql(f"select id as unique_id, {columns} from {read}")
        ids.append(rows.to_arrow_table()["unique_id"])
        tables.append(database.register(rows, dataset_display_name=side))
    truth = pairs_of(place / "truth.csv.gz", "truth")
    comparisons, rules, training = FOLDERS[folder](cl)
    settings = SettingsCreator(
        link_type="link_only",
        comparisons=comparisons,
        blocking_rules_to_generate_predictions=[block_on(*rule) for rule in rules],
        probability_two_random_records_match=len(truth) / (len(ids[0]) * len(ids[1])),
    )
    linker = Linker(tables, settings, log_level="ERROR")
    linker.training.estimate_u_using_random_sampling(max_pairs=1e6, seed=1)
    for rule in training:
        linker.training.estimate_parameters_using_expectation_maximisation(block_on(*rule))
    found = linker.inference.predict().as_pandas_dataframe()
    return found, linker.misc.save_model_to_json(), truth, (ids[0], ids[1])


def one_to_one(predictions: Any, at_least: float) -> set[tuple[str, str]]:
    """Splink's pairs from the best down, each record once."""
    rows = predictions.sort_values("match_probability", ascending=False, kind="stable")
    rows = rows[rows["match_probability"] >= at_least]
    seen: tuple[set[str], set[str]] = (set(), set())
    links = set()
    for pair in zip(rows["unique_id_l"], rows["unique_id_r"], strict=True):
        if pair[0] not in seen[0] and pair[1] not in seen[1]:
            links.add(pair)
            seen[0].add(pair[0])
            seen[1].add(pair[1])
    return links


def f1(links: set[tuple[str, str]], truth: Any) -> float:
    true = {*zip(truth["id_a"].to_pylist(), truth["id_b"].to_pylist(), strict=True)}
    return 2 * len(links & true) / (len(links) + len(true))


def compared(folder: str) -> dict[str, Any]:
    """F1 of Splink at both cuts and of bayeslink."""
    found, model, truth, ids = predicted(folder)
    run = bl.link(bl.from_splink(found, model, ids=ids), draws=500, tune=300, chains=2)
    rows = [row for row in run.table.to_pylist() if row["decision"] == "link"]
    ours = {(row["id_a"], row["id_b"]) for row in rows}
    cuts = {f"splink {cut}": f1(one_to_one(found, cut), truth) for cut in (0.5, 0.9)}
    return {"folder": folder, "pairs": len(found), **cuts, "bayeslink": f1(ours, truth)}


if __name__ == "__main__":
    for name in sys.argv[1:] or FOLDERS:
        print(json.dumps(compared(name)))
