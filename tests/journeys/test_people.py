"""Whole journeys of `dedupe` and `link-many`: each kind of file through every command after it."""

import json

import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest

import bayeslink as bl
from tests.journeys.kinds import RefusedError, told, write_csv, write_parquet, write_xlsx

FEW = ("--draws", "60", "--tune", "40", "--chains", "2")
PYTHON = {"draws": 60, "tune": 40, "chains": 2}
FIELDS = ("--on", "gname:name", "--on", "fname:name", "--on", "dob:date", "--on", "postcode:exact")
SHORT = {"as it comes", "one record", "polars", "three files"}  # that `make test` runs


def people(n=90, seed=1, **how):
    """A file in which people are several times, and the truth."""
    made = bl.simulate_duplicates(n, seed=seed, **how)
    return made.a, made.truth


def first(n):
    def cut(table):
        return table.slice(0, n)

    return cut


def same(table):
    """Every record twice, under another id."""
    ids = pa.array([f"{i}x" for i in table["id"].to_pylist()])
    return pa.concat_tables([table, table.set_column(0, "id", ids)])


def holes(table):
    rng = np.random.default_rng(5)
    for name in table.column_names[1:]:
        gone = rng.random(len(table)) < 0.4
        kept = [
            None if out else cell for out, cell in zip(gone, table[name].to_pylist(), strict=True)
        ]
        table = table.set_column(table.column_names.index(name), name, pa.array(kept, pa.string()))
    return table


def no_ids(table):
    return table.drop_columns(["id"])


def latin(table, path):
    return write_csv(table, path, delimiter=";", encoding="cp1252")


# How a file is changed, written, and what is said of it.
KINDS = {
    "as it comes": (None, write_csv, ()),
    "weak fields": (None, write_csv, ("--on", "gname:name", "--on", "sex", "--on", "occup")),
    "strong fields": (None, write_csv, FIELDS),
    "nobody twice": ("alone", write_csv, FIELDS),
    "all of them twice": (same, write_csv, FIELDS),
    "one record": (first(1), write_csv, ("--on", "gname:name")),
    "two records": (first(2), write_csv, FIELDS),
    "missing values everywhere": (holes, write_csv, ()),
    "a blocking key": (None, write_csv, (*FIELDS, "--block", "sex")),
    "a star": (None, write_csv, (*FIELDS, "--shape", "star")),
    "restricted": (None, write_csv, (*FIELDS, "--restricted")),
    "independent fields": (None, write_csv, (*FIELDS, "--structure", "independent")),
    "no ids": (no_ids, write_csv, (*FIELDS, "--no-id")),
    "parquet": (None, write_parquet, FIELDS),
    "workbook": (None, write_xlsx, FIELDS),
    "; and cp1252": (None, latin, (*FIELDS, "--encoding", "cp1252")),
}
ALL = {**KINDS, "pandas": None, "polars": None, "arrow": None, "three files": None, "a and b": None}


def of_kind(kind, folder):
    """The run directory of a kind, its truth if there is one, and the command that repeats it."""
    out = folder / "out"
    if kind in KINDS:
        change, write, words = KINDS[kind]
        table, truth = people(sizes=[1]) if change == "alone" else people()
        if callable(change):
            table = change(table)
        told("dedupe", write(table, folder / "file"), *words, "-o", out, *FEW)
        whole = set(truth["id"].to_pylist()) <= set(table.to_pydict().get("id", ()))
        return out, truth if whole else None, ("dedupe", "--config", out / "dedupe.toml")
    if kind in ("pandas", "polars", "arrow"):
        table, truth = people()
        given = {"pandas": table.to_pandas, "polars": lambda: polars.from_arrow(table)}
        bl.dedupe(given.get(kind, lambda: table)(), **PYTHON).save(out)
        return out, truth, None
    table, truth = people(150)
    frame = table.to_pandas().merge(truth.to_pandas(), on="id")
    names = ["a", "b"] if kind == "a and b" else ["one", "two", "three"]
    frame["file"] = [names[k % len(names)] for k in range(len(frame))]
    clean = frame["file"] == names[0]
    frame = frame[~(clean & frame.duplicated(["file", "entity_id"]))]
    paths = []
    for name in names:
        own = frame[frame["file"] == name].drop(columns=["file", "entity_id"])
        paths.append(write_csv(pa.Table.from_pandas(own, preserve_index=False), folder / name))
    truth = pa.Table.from_pandas(frame[["file", "id", "entity_id"]], preserve_index=False)
    twice = [word for name in names[1:] for word in ("--duplicates", name)]
    command = "link" if kind == "a and b" else "link-many"
    told(command, *paths, *twice, "-o", out, *FEW)
    return out, truth, ("link-many", "--config", out / "link-many.toml")


@pytest.mark.parametrize(
    "kind", [kind if kind in SHORT else pytest.param(kind, marks=pytest.mark.full) for kind in ALL]
)
def test_every_command_after_it(kind, tmp_path):
    out, truth, repeat = of_kind(kind, tmp_path)
    summary = json.loads((out / "run.json").read_text("utf-8"))
    run = bl.open_run(out)
    assert run.summary().items() <= summary.items()
    low, high = run.entities.interval()
    assert low <= high <= summary["n_records"]
    assert len(run.people()) == run.decision.n_entities
    assert len(run.clusters) == summary["n_records"]
    told("report", out)
    assert "</html>" in (out / "report.html").read_text("utf-8")
    told("report", out, "--no-values", "-o", tmp_path / "bare.html")
    if truth is not None:
        write_csv(truth, tmp_path / "truth")
        judged = json.loads(told("evaluate", out, "--truth", tmp_path / "truth.csv", "--json"))
        assert judged["n_entities"] == len(set(truth["entity_id"].to_pylist()))
    files = summary.get("lists")
    if files:
        assert "population" in told("population", out)
        tables = [run.with_entities(name) for name in files["names"]]
    else:
        with pytest.raises(RefusedError, match="no links"):
            told("population", out)
        tables = [run.with_entities()]
    assert sum(map(len, tables)) == summary["n_records"]
    for command in (
        ("explain", out, "1", "2"),
        ("join", out, "-o", tmp_path / "x"),
    ):
        with pytest.raises(RefusedError, match="it has clusters and no links"):
            told(*command)
    if repeat:
        told(*repeat, "-o", tmp_path / "again")
        for name in ("clusters.csv", "people.csv", "draws.parquet", "pairs.parquet"):
            assert (tmp_path / "again" / name).read_bytes() == (out / name).read_bytes(), name
    entities = pd.read_csv(out / "clusters.csv")["entity_id"]
    assert entities.nunique() == run.decision.n_entities
    if repeat:
        update_and_look(out, run, tmp_path)


def update_and_look(out, run, folder):
    """New people, added to a run: the others keep their ids where they stay together."""
    made = bl.simulate_duplicates(20, seed=77).a
    ids = pa.array([f"new{k}" for k in range(20)])
    files = run.summary().get("lists")
    own = run.settings.id if not files else "id"
    made = made.drop_columns(["id"]) if own is None else made.set_column(0, "id", ids)
    write = latin if run.settings.read[0].encoding == "cp1252" else write_csv
    path = write(made, folder / "new")
    where = ("link-many", f"{files['names'][-1]}={path}") if files else ("dedupe", path)
    told(where[0], "--update", out, where[1], "-o", folder / "now")
    now = bl.open_run(folder / "now")
    counts = now.summary()["update"]
    assert counts["new_records"] == 20
    assert counts["earlier_records"] == len(run.clusters)
    earlier = run.as_table("clusters").to_pandas().groupby("entity_id")["id"].apply(frozenset)
    later = now.as_table("clusters").to_pandas().groupby("entity_id")["id"].apply(frozenset)
    stayed = {*later} & {*earlier}
    for entity, records in earlier.items():
        if records in stayed and not files:  # ids of several files repeat
            assert later[entity] == records
    assert len(now.changes) >= counts["merged"] + counts["split"]
    told("report", folder / "now")
