"""The kinds of file that go through every command, and how each is linked."""

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import polars
import pyarrow as pa
import pyarrow.parquet as pq
from click.testing import CliRunner

import bayeslink as bl
from bayeslink.cli import main

COMMANDS = (
    "reopen", "report", "explain", "review", "sample", "join", "draws", "population", "truth",
    "update", "resume", "changes", "relink", "repeat",
)  # fmt: skip
NAMES = ("--on", "gname:name", "--on", "fname:name", "--on", "sex:exact")
WEAK = (*NAMES, "--on", "occup:exact")
STRONG = (*NAMES, "--on", "dob:date", "--on", "postcode:exact")
SHORT = ("--draws", "60", "--tune", "40", "--chains", "2")
NO_DRAWS = {
    "review": "no link probabilities",
    "sample": "point estimate",
    "draws": "point estimate",
    "population": "point estimate",
}
NO_LINKS = {"population": "fewer links than the 1 needed"}


def call(*words: object) -> Any:
    """The command line, in this process."""
    return CliRunner().invoke(main, [*map(str, words)])


class RefusedError(Exception):
    """A command that did not succeed: what it said, and its exit code."""

    def __init__(self, words: str, code: int) -> None:
        super().__init__(words)
        self.code = code


def told(*words: object) -> str:
    """What a command says that succeeds."""
    done = call(*words)
    if done.exit_code:
        raise RefusedError(f"bayeslink {' '.join(map(str, words))}: {done.output}", done.exit_code)
    return done.stdout


# --- files ----------------------------------------------------------------------------------------


def write_csv(
    table: pa.Table, path: Path, *, delimiter: str = ",", encoding: str = "utf-8"
) -> Path:
    with path.with_suffix(".csv").open("w", encoding=encoding, newline="") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(table.column_names)
        writer.writerows(row.values() for row in table.to_pylist())
    return path.with_suffix(".csv")


def write_parquet(table: pa.Table, path: Path) -> Path:
    pq.write_table(table, path.with_suffix(".parquet"))
    return path.with_suffix(".parquet")


def write_xlsx(table: pa.Table, path: Path) -> Path:
    book = openpyxl.Workbook()
    book.active.append(table.column_names)
    for row in table.to_pylist():
        book.active.append(list(row.values()))
    book.save(path.with_suffix(".xlsx"))
    return path.with_suffix(".xlsx")


@dataclass(frozen=True)
class Files:
    """Two files, the true pairs, and records of B that come later."""

    a: pa.Table
    b: pa.Table
    batch: pa.Table
    truth: pa.Table


def people(n: int = 80, *, seed: int = 5, **options: Any) -> Files:
    made = bl.simulate(n, n_b=n + 10, seed=seed, **options)
    truth = made.truth.filter(pa.compute.is_in(made.truth["id_b"], made.b["id"].slice(0, n)))
    return Files(made.a, made.b.slice(0, n), made.b.slice(n), truth)


def first(files: Files, n_a: int, n_b: int) -> Files:
    """The first records of A and of B, from a pair that belongs together on."""
    one, other = files.truth["id_a"][0], files.truth["id_b"][0]
    a, b = (
        pa.concat_tables([table.filter(own), table.filter(pa.compute.invert(own))])
        for table, own in (
            (files.a, pa.compute.equal(files.a["id"], one)),
            (files.b, pa.compute.equal(files.b["id"], other)),
        )
    )
    a, b = a.slice(0, n_a), b.slice(0, n_b)
    among = [pa.compute.is_in(files.truth[f"id_{k}"], t["id"]) for k, t in (("a", a), ("b", b))]
    return Files(a, b, files.batch, files.truth.filter(pa.compute.and_(*among)))


def alike(n: int = 12) -> Files:
    """Records that nothing tells apart, and some that are ordinary."""
    files = people(40)
    same = files.a.slice(0, 1).to_pylist()[0]
    tables = []
    for side, table in (("A", files.a), ("B", files.b)):
        ties = [{**same, "id": f"{side}-tie-{k}"} for k in range(n)]
        tables.append(pa.concat_tables([table, pa.Table.from_pylist(ties, schema=table.schema)]))
    return Files(*tables, files.batch, files.truth)


def gaps() -> Files:
    """Half of all cells are missing, and one column as a whole."""
    files = people(80, missing=0.2)

    def emptied(table: pa.Table) -> pa.Table:
        rows = table.to_pylist()
        for i, row in enumerate(rows):
            for j, name in enumerate(list(row)[1:]):
                if (i + j) % 2 or name == "postcode":
                    row[name] = None
        return pa.Table.from_pylist(rows, schema=table.schema)

    return Files(emptied(files.a), emptied(files.b), emptied(files.batch), files.truth)


def numbered(files: Files) -> Files:
    """The same with whole numbers for ids."""

    def of(table: pa.Table, *names: str) -> pa.Table:
        for name in names:
            numbers = pa.array([int(x[1:]) for x in table[name].to_pylist()], pa.int64())
            table = table.set_column(table.column_names.index(name), name, numbers)
        return table

    tables = (of(t, "id") for t in (files.a, files.b, files.batch))
    return Files(*tables, of(files.truth, "id_a", "id_b"))


def accented(files: Files) -> Files:
    """The same with letters that latin-1 has and ASCII has not."""

    def of(table: pa.Table) -> pa.Table:
        names = [x and x.replace("e", "é").replace("o", "ö") for x in table["fname"].to_pylist()]
        at = table.column_names.index("fname")
        return table.set_column(at, "fname", pa.array(names, pa.string()))

    return Files(of(files.a), of(files.b), of(files.batch), files.truth)


# --- kinds ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kind:
    """A kind of file, and how it is linked."""

    files: Callable[[], Files]
    on: Sequence[str] = STRONG
    flags: Sequence[str] = ()
    write: Callable[[pa.Table, Path], Path] = write_csv
    frames: Callable[[pa.Table], Any] | None = None  # linked from Python, as such frames
    keep_inputs: bool = False
    labels: bool = False
    refused: dict[str, str] = field(default_factory=dict)  # commands that cannot be, and their word


KINDS: dict[str, Kind] = {
    "weak fields": Kind(
        partial(people, 100, overlap=0.3, errors=4, seed=1), WEAK, ("--w0", "4")
    ),  # draws link far more pairs than are above w0
    "strong fields": Kind(people),
    "fields left out": Kind(people, ()),
    "no overlap": Kind(partial(people, overlap=0.0)),
    "full overlap": Kind(partial(people, overlap=1.0, errors=0)),
    "one record each": Kind(lambda: first(people(), 1, 1), refused=NO_LINKS),
    "one record in A": Kind(lambda: first(people(), 1, 60)),
    "one record in B": Kind(lambda: first(people(), 60, 1), WEAK),
    "many ties": Kind(alike),
    "missing values": Kind(gaps),
    "labels given": Kind(people, WEAK, labels=True),
    "blocking key": Kind(partial(people, errors=1), WEAK, ("--block", "sex")),
    "no id": Kind(people, STRONG, ("--no-id",)),
    "ids are numbers": Kind(lambda: numbered(people()), WEAK, write=write_parquet),
    "independent, restricted": Kind(
        people, WEAK, ("--restricted", "--w0", "0", "--structure", "independent")
    ),
    "nothing above w0": Kind(people, WEAK, ("--w0", "60", "--theta", "60"), refused=NO_LINKS),
    "left to review": Kind(people, WEAK, ("--reject", "0.1")),
    "one chain": Kind(people, WEAK, ("--chains", "1")),
    "point": Kind(people, WEAK, ("--point",), refused=NO_DRAWS),
    "pandas": Kind(people, frames=pa.Table.to_pandas, keep_inputs=True),
    "polars": Kind(people, WEAK, write=write_parquet, frames=polars.from_arrow),
    "Parquet": Kind(people, (), write=write_parquet),
    "xlsx": Kind(people, STRONG, write=write_xlsx),
    "latin-1 with ;": Kind(
        lambda: accented(people()),
        STRONG,
        ("--encoding", "latin-1"),
        partial(write_csv, delimiter=";", encoding="latin-1"),
    ),
}


@dataclass(frozen=True)
class Journey:
    """A kind of file that was linked: everything lies in one folder."""

    kind: Kind
    folder: Path
    files: Files
    a: Path
    b: Path
    batch: Path

    @property
    def run(self) -> Path:
        return self.folder / "run"

    @property
    def truth(self) -> Path:
        return self.folder / "truth.csv"

    @property
    def inputs(self) -> list[Path]:
        """The files, where the run does not know where they are."""
        return [self.a, self.b] if self.kind.frames and not self.kind.keep_inputs else []

    @property
    def moved(self) -> list[object]:
        return [word for pair in zip(("--a", "--b"), self.inputs, strict=False) for word in pair]

    @property
    def frames(self) -> dict[str, Any]:
        """The same for Python."""
        if not self.inputs or self.kind.frames is None:
            return {}
        return {"a": self.kind.frames(self.files.a), "b": self.kind.frames(self.files.b)}

    def at(self, folder: Path) -> "Journey":
        """The same in a copy of its folder."""
        places = (folder / path.name for path in (self.a, self.b, self.batch))
        return Journey(self.kind, folder, self.files, *places)

    def id_pairs(self) -> list[tuple[Any, Any]]:
        """The true pairs, by the ids that the run has."""
        return [tuple(row.values()) for row in self.files.truth.to_pylist()]


def linked(kind: Kind, folder: Path) -> Journey:
    files = kind.files()
    if "--no-id" in kind.flags:
        files = without_ids(files)
    given = (files.a, files.b, files.batch)
    paths = [
        kind.write(t, folder / name) for t, name in zip(given, ("a", "b", "batch"), strict=True)
    ]
    journey = Journey(kind, folder, files, *paths)
    write_csv(files.truth, journey.truth)
    if kind.frames is not None:
        fields = [bl.name("gname"), bl.name("fname"), bl.exact("sex"), bl.date("dob")]
        a, b = (kind.frames(table) for table in given[:2])
        run = bl.link(a, b, fields, draws=60, tune=40, chains=2)
        run.save(journey.run, keep_inputs=kind.keep_inputs)
        assert isinstance(run.links, pd.DataFrame | polars.DataFrame)
        return journey
    labels = ()
    if kind.labels:
        labels = ("--labels", write_labels(journey, folder / "labels.csv"))
    told("link", journey.a, journey.b, *kind.on, *SHORT, *kind.flags, *labels, "-o", journey.run)
    return journey


def without_ids(files: Files) -> Files:
    """The same without an id column: a record goes by the number of its row."""
    row = [{x: str(k + 1) for k, x in enumerate(t["id"].to_pylist())} for t in (files.a, files.b)]
    pairs = [(row[0][a], row[1][b]) for a, b in (x.values() for x in files.truth.to_pylist())]
    truth = pa.table([pa.array(side, pa.string()) for side in zip(*pairs, strict=True)],
                     ["id_a", "id_b"])  # fmt: skip
    return Files(*(t.drop_columns(["id"]) for t in (files.a, files.b, files.batch)), truth)


def write_labels(journey: Journey, path: Path) -> Path:
    """A true pair that is a link, and a pair that is none."""
    pairs = journey.id_pairs()
    rows = [(*pairs[0], "link")] if pairs else []
    if len(pairs) > 2 and "--block" not in journey.kind.flags:
        rows.append((pairs[1][0], pairs[2][1], "nonlink"))
    if not rows:
        rows.append((journey.files.a["id"][0].as_py(), journey.files.b["id"][0].as_py(), "nonlink"))
    table = pa.table([[*map(str, c)] for c in zip(*rows, strict=True)], ["id_a", "id_b", "verdict"])
    return write_csv(table, path)
