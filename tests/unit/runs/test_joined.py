"""The linked file, in memory and on the disk."""

import csv
import gzip
import io
import sqlite3
import uuid
import zipfile
from contextlib import closing
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import bayeslink as bl
from bayeslink.cli import main
from bayeslink.data import row_batches
from bayeslink.data.read_options import ReadOptions
from bayeslink.runs.joined import Input, LinkedRows, joined_names, write_linked
from bayeslink.runs.row_files import RowWriter
from bayeslink.runs.run import Run

FIELDS = [bl.levenshtein("gname"), bl.levenshtein("fname"), bl.exact("occup"), bl.date("dob")]
FEW = {"draws": 60, "tune": 30, "chains": 2}


@pytest.fixture(scope="module")
def files():
    return bl.simulate(200, overlap=0.5, errors=1, seed=2)


def numbered(table, first):
    ids = pa.array(np.arange(first, first + len(table)), pa.int32())
    return table.set_column(0, "id", ids).append_column("weight", pa.array(np.arange(len(table))))


@pytest.fixture(scope="module")
def tables(files):
    return numbered(files.a, 1), numbered(files.b, 1001)


def expected(a, b, links, how):
    """pandas' own merge, through the table of links."""
    pairs = links[["id_a", "id_b", "link_probability"]]
    left = a.merge(pairs, left_on="id", right_on="id_a", how="outer" if how != "inner" else how)
    both = left.merge(
        b, left_on="id_b", right_on="id", how="outer" if how != "inner" else how,
        suffixes=("", "_right"),
    )  # fmt: skip
    both = both[both["id"].notna()] if how == "left" else both
    return both[both["id_right"].notna()] if how == "right" else both


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_whole_number_ids_come_back_as_such_and_merge(tables, kind):
    turn = {"pandas": pa.Table.to_pandas, "polars": pl.from_arrow, "arrow": lambda t: t}[kind]
    a, b = map(turn, tables)
    run = bl.link(a, b, FIELDS, **FEW)
    links, post = run.links, run.posterior
    for table in (links, post.link_probabilities(), post.linked_datasets(2)[1], run.fit.links):
        if kind == "pandas":
            assert len(a.merge(table, left_on="id", right_on="id_a")) == len(table)
            assert table["id_b"].dtype == b["id"].dtype == np.int32
        elif kind == "polars":
            assert len(a.join(table, left_on="id", right_on="id_a")) == len(table)
        else:
            assert table["id_a"].type == pa.int32()
    first = [int(run.table[name][0].as_py()) for name in ("id_a", "id_b")]
    assert run.explain(*first).id_a == str(first[0])


@pytest.mark.parametrize("how", ["inner", "left", "right", "outer"])
def test_joined_is_what_merging_by_hand_gives(tables, how):
    a, b = (t.to_pandas() for t in tables)
    run = bl.link(a, b, FIELDS, **FEW)
    joined = run.joined(how)
    wanted = expected(a, b, run.links, how)
    assert len(joined) == len(wanted)
    for mine, other in (("id", "id"), ("id_b", "id_right"), ("street_b", "street_right")):
        key = joined["id"].fillna(-1) * 10_000 + joined["id_b"].fillna(-1)
        by_hand = wanted["id"].fillna(-1) * 10_000 + wanted["id_right"].fillna(-1)
        ours = dict(zip(key, joined[mine].astype(object).fillna("none"), strict=True))
        theirs = dict(zip(by_hand, wanted[other].astype(object).fillna("none"), strict=True))
        assert ours == theirs
    assert list(joined.columns[:3]) == ["id", "gname", "fname"]
    assert joined.columns[-1] == "link_probability"
    assert joined["link_probability"].notna().sum() == run.n_links


def test_unlinked_and_linked_records_make_up_the_file(tables):
    a, b = map(pl.from_arrow, tables)
    run = bl.link(a, b, FIELDS, **FEW)
    for side, frame, name in (("a", a, "id"), ("b", b, "id_b")):
        alone = run.unlinked(side)
        assert isinstance(alone, pl.DataFrame)
        assert alone.columns == frame.columns
        both = {*alone["id"].to_list(), *run.joined()[name].to_list()}
        assert both == {*frame["id"].to_list()}
        assert len(alone) + run.n_links == len(frame)
    with pytest.raises(bl.SettingsError, match='"a" or "b"'):
        run.unlinked("c")
    with pytest.raises(bl.SettingsError, match="inner"):
        run.joined("cross")


def test_drawn_versions_follow_the_draws(tables):
    run = bl.link(*tables, FIELDS, **FEW)
    drawn = run.posterior.linked_datasets(4)
    for joined, links in zip(run.joined_draws(4), drawn, strict=True):
        assert joined["id"].to_pylist() == links["id_a"].to_pylist()
        assert joined["id_b"].to_pylist() == links["id_b"].to_pylist()
    with pytest.raises(bl.SettingsError, match="no draws"):
        next(bl.link(*tables, FIELDS, point=True).joined_draws(2))


def test_the_run_directory_has_the_linked_file(tables, tmp_path):
    a, b = tmp_path / "a.csv", tmp_path / "b.parquet"
    pyarrow.csv.write_csv(tables[0], a)
    pq.write_table(tables[1], b)
    run = bl.link(a, b, FIELDS, **FEW)
    run.save(tmp_path / "out")
    linked = pq.read_table(tmp_path / "out" / "linked.parquet")
    assert linked.to_pylist() == run.joined().to_pylist()
    assert linked["id"].type == pa.large_string()  # text in a CSV stays text
    assert linked["id_b"].type == pa.int32()
    for side in "ab":
        alone = pq.read_table(tmp_path / "out" / f"unlinked_{side}.parquet")
        assert alone.to_pylist() == run.unlinked(side).to_pylist()
        as_csv = pd.read_csv(tmp_path / "out" / f"unlinked_{side}.csv", dtype=str)
        assert as_csv["id"].tolist() == [str(x) for x in alone["id"].to_pylist()]
    run.save(tmp_path / "bare", linked=False)
    assert not list((tmp_path / "bare").glob("*linked*"))


def test_a_run_is_saved_though_its_input_is_gone(tables, tmp_path):
    a = tmp_path / "a.csv"
    pyarrow.csv.write_csv(tables[0], a)
    run = bl.link(a, tables[1], FIELDS, **FEW)
    a.unlink()
    run.save(tmp_path / "out")
    assert "linked file was not written" in (tmp_path / "out" / "run.json").read_text()
    assert not (tmp_path / "out" / "linked.csv").exists()
    assert (tmp_path / "out" / "links.csv").exists()


def write_as(kind, table, folder):
    """The table as a file of this kind; its path and how to read it."""
    path = folder / f"people{kind}"
    text = io.BytesIO()
    pyarrow.csv.write_csv(table, text)
    if kind == ".csv":
        path.write_bytes(text.getvalue())
    elif kind == ".csv.gz":
        path.write_bytes(gzip.compress(text.getvalue()))
    elif kind == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("people.csv", text.getvalue())
    elif kind == ".parquet":
        pq.write_table(table, path)
    elif kind == "_folder":
        path.mkdir(exist_ok=True)
        pq.write_table(table, path / "part.parquet")
    elif kind == ".xlsx":
        table.to_pandas().to_excel(path, index=False)
    elif kind == ".sqlite":
        with closing(sqlite3.connect(path)) as connection:
            table.to_pandas().to_sql("people", connection, index=False, if_exists="replace")
    else:
        path.unlink(missing_ok=True)
        with duckdb.connect(path) as connection:
            connection.register("t", table)
            connection.execute("CREATE TABLE people AS FROM t")
    named = kind in (".sqlite", ".duckdb")
    return path, ReadOptions(table="people") if named else ReadOptions()


KINDS = [".csv", ".csv.gz", ".zip", ".parquet", "_folder", ".xlsx", ".sqlite", ".duckdb"]


@pytest.mark.parametrize("kind", KINDS)
def test_an_input_in_another_order_is_refused(files, tmp_path, kind):
    """The same records, so that their number tells nothing, and no ids to tell them by."""
    a = files.a.drop_columns(["id"]).append_column("n", pa.array(np.arange(200)))
    b = files.b.drop_columns(["id"])
    path, read = write_as(kind, a, tmp_path)
    run = bl.link(path, b, FIELDS, id=None, read=(read, ReadOptions()), **FEW)
    run.save(tmp_path / "before")
    write_as(kind, a.take(np.arange(200)[::-1]), tmp_path)
    said = f"input A, .*people{kind}, has changed since"
    for act in (
        run.joined,
        lambda: run.unlinked("a"),
        lambda: run.save(tmp_path / "out"),
        lambda: run.save(tmp_path / "out", linked=False, keep_inputs=True),
        lambda: next(run.joined_draws(2)),
        lambda: bl.open_run(tmp_path / "before", b=b).joined(),
        lambda: bl.update(run, b),
    ):
        with pytest.raises(bl.InputError, match=said):
            act()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["before", path.name]
    run.save(tmp_path / "out", linked=False)
    write_as(kind, a.slice(1), tmp_path)
    with pytest.raises(bl.InputError, match=r"has changed since|no longer holds the 200 records"):
        run.joined()


@pytest.mark.parametrize("how", ["link", "keep", "join"])
def test_an_input_replaced_while_the_run_samples(files, tmp_path, monkeypatch, how):
    """On the command line: exit code 3, which file it was, and nothing written."""
    a, b, out = tmp_path / "a.csv", tmp_path / "b.csv", tmp_path / "out"
    pyarrow.csv.write_csv(files.a, a)
    pyarrow.csv.write_csv(files.b, b)
    save = Run.save

    def late(run, *args, **options):
        pyarrow.csv.write_csv(files.a.take(np.arange(200)[::-1]), a)
        save(run, *args, **options)

    monkeypatch.setattr(Run, "save", late)
    on = [word for f in ("gname", "fname", "dob") for word in ("--on", f)]
    call = ["link", a, b, *on, "--no-id", "-o", out, "--draws", 60, "--tune", 30, "--chains", 2]
    if how == "join":
        assert CliRunner().invoke(main, [*map(str, call), "--no-linked"]).exit_code == 0
        call, out = ["join", out, "-o", tmp_path / "joined.csv"], tmp_path / "joined.csv"
    elif how == "keep":
        call += ["--no-linked", "--keep-inputs"]
    done = CliRunner().invoke(main, [*map(str, call)])
    assert (done.exit_code, f"input A, {a}, has changed since" in done.stderr) == (3, True)
    assert not out.exists()
    assert not [p for p in tmp_path.iterdir() if "partial" in p.name]


def test_columns_of_any_type_and_any_name(files, tmp_path):
    a = files.a.to_pandas()
    a["link_probability"], a["gname_B"] = 0.5, "x"
    a["tags"] = [["p", k] for k in range(len(a))]  # no single text form
    a["kind"] = pd.Categorical(["u", "v"] * 100)
    b = files.b.append_column("nested", pa.array([[k] for k in range(200)]))
    run = bl.link(a, b, FIELDS, **FEW)
    joined = run.joined()
    names = [name.casefold() for name in joined.columns]
    assert len({*names}) == len(names)
    assert joined.columns[-1] == "link_probability_"
    assert isinstance(joined["kind"].dtype, pd.CategoricalDtype)
    run.save(tmp_path / "out")
    lines = (tmp_path / "out" / "linked.csv").read_text("utf-8").splitlines()
    assert len(lines) == run.n_links + 1
    # it is a file that can be linked again
    again = bl.compare(tmp_path / "out" / "linked.csv", files.b, [bl.exact("fname")])
    assert again.n_a == run.n_links


def test_names_that_clash_get_a_suffix():
    assert joined_names(["id", "x", "y_b"], ["ID", "x", "y_b", "x_b", "z"]) == [
        *("id", "x", "y_b"), *("ID_b", "x_b_b", "y_b_b", "x_b", "z"), "link_probability",
    ]  # fmt: skip


def test_rows_in_another_order_are_told_by_their_ids(tmp_path):
    """A database need not give its rows in the same order twice."""
    a = pa.table({"id": ["1", "2", "3"], "x": ["p", "q", "r"]})
    b = pa.table({"id": ["7", "8", "9"], "y": ["s", "t", "u"]})
    rows = LinkedRows.of([0, 2], [2, 0], [0.9, 0.8])
    turned = [table.take([2, 0, 1]) for table in (a, b)]
    inputs = [
        Input(
            given,
            ReadOptions(),
            ("id",),
            "id",
            ids.combine_chunks().cast("large_string"),
            side,
            "x",
            "csv",
            None,
        )
        for given, ids, side in zip(turned, (a["id"], b["id"]), "AB", strict=True)
    ]
    write_linked(inputs, rows, tmp_path)
    linked = pq.read_table(tmp_path / "linked.parquet")
    found = {(r["x"], r["y"], r["link_probability"]) for r in linked.to_pylist()}
    assert found == {("p", "u", 0.9), ("r", "s", 0.8)}
    assert inputs[0].whole()["id"].to_pylist() == ["1", "2", "3"]


def test_the_linked_file_is_written_some_rows_at_a_time(tmp_path, monkeypatch):
    n, sizes = 5000, {}
    table = pa.table({"id": pa.array(np.arange(n)).cast("large_string"), "x": np.arange(n) % 7})
    pyarrow.csv.write_csv(table, tmp_path / "a.csv")
    monkeypatch.setattr(row_batches, "_CELLS", 1000)
    monkeypatch.setattr("bayeslink.data.delimited.BATCH_CELLS", 200)
    write = RowWriter.write

    def watched(self, part):
        sizes.setdefault(Path(self._file.name).name, []).append(len(part))
        write(self, part)

    monkeypatch.setattr(RowWriter, "write", watched)
    ids = table["id"].combine_chunks()
    inputs = [
        Input(tmp_path / "a.csv", ReadOptions(), ("id",), "id", ids, side, "x", "csv", None)
        for side in "AB"
    ]
    write_linked(inputs, LinkedRows.of(np.arange(n), np.arange(n)[::-1], np.ones(n)), tmp_path)
    for name in ("linked.csv", "linked.parquet"):
        assert sum(sizes[name]) == n
        assert max(sizes[name]) <= 500
    linked = pq.read_table(tmp_path / "linked.parquet")
    assert linked["id_b"].to_pylist() == ids.to_pylist()[::-1]


def test_rows_in_the_same_order_need_no_index_of_all_ids(files, tmp_path, monkeypatch):
    """One is made for every few rows: of ten million ids, that took four minutes a file."""
    pyarrow.csv.write_csv(files.a, tmp_path / "a.csv")
    ids = files.a["id"].combine_chunks().cast("large_string")
    given = Input(tmp_path / "a.csv", ReadOptions(), ("id",), "id", ids, "A", "a.csv", "csv", None)
    monkeypatch.delattr(pyarrow.compute, "index_in")
    assert given.whole()["id"].to_pylist() == ids.to_pylist()


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_join_leaves_files_of_other_people_alone(files, tmp_path, ending):
    bl.write_simulation(files, tmp_path / "files")
    run = bl.link(tmp_path / "files/a.csv", tmp_path / "files/b.csv", FIELDS, point=True)
    run.save(tmp_path / "out")
    mine, partial = tmp_path / "mine", tmp_path / f".x.partial.{ending}"
    for make in (lambda: partial.write_text("mine"), lambda: partial.symlink_to(mine)):
        partial.unlink(missing_ok=True)
        mine.write_text("mine")
        make()
        done = CliRunner().invoke(
            main, ["join", str(tmp_path / "out"), "-o", str(tmp_path / f"x.{ending}"), "--force"]
        )
        assert done.exit_code == 0, done.output
        assert partial.read_text() == mine.read_text() == "mine"
        assert (tmp_path / f"x.{ending}").stat().st_mode & 0o077 == 0
    assert {p.name for p in tmp_path.iterdir()} == {
        "files",
        "out",
        "mine",
        partial.name,
        f"x.{ending}",
    }


def test_names_of_columns_are_safe_for_spreadsheets(files, tmp_path):
    names = ["=1+1", "+x", "-y", "@z", "\tw", "＝v"]
    a = files.a
    for name in names:
        a = a.append_column(name, a["gname"])
    run = bl.link(a, files.b, FIELDS, id="id", point=True)
    run.save(tmp_path / "out")
    for name in ("linked", "unlinked_a"):
        text = (tmp_path / "out" / f"{name}.csv").read_bytes().decode()
        header = next(csv.reader(io.StringIO(text, newline="")))
        assert {f"'{x}" for x in names} <= {*header}
        assert not {*names} & {*header}
        assert {*names} <= {*pq.read_schema(tmp_path / "out" / f"{name}.parquet").names}


class Other(pa.ExtensionType):
    """A type that somebody has added to Arrow."""

    def __init__(self):
        super().__init__(pa.int64(), "tests.other")

    def __arrow_ext_serialize__(self):
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type, serialized):
        return cls()


def rare_columns(n):
    """Of types that not every kind of file can hold, or Arrow can take rows of."""
    numbers, texts = pa.array(np.arange(n)), pa.array([f"t{k}" for k in range(n)])
    kinds = pa.array(np.arange(n) % 2, pa.int8())
    ends = pa.array(np.arange(1, n + 1), pa.int32())
    bytes_of = [uuid.UUID(int=k).bytes for k in range(n)]
    return {
        "uuid": pa.array(bytes_of, pa.uuid()),
        "interval": pa.array([(1, k, 3) for k in range(n)], pa.month_day_nano_interval()),
        "duration": numbers.cast(pa.duration("s")),
        "text view": texts.cast(pa.string_view()),
        "bytes view": pa.array(bytes_of, pa.binary_view()),
        "bytes": pa.array(bytes_of, pa.binary(16)),
        "sparse": pa.UnionArray.from_sparse(kinds, [numbers, texts]),
        "dense": pa.UnionArray.from_dense(kinds, numbers.cast(pa.int32()), [numbers, texts]),
        "runs": pa.RunEndEncodedArray.from_arrays(ends, texts),
        "decimal": numbers.cast(pa.decimal256(50, 2)),
        "fixed list": pa.array([[k, k] for k in range(n)], pa.list_(pa.int64(), 2)),
        "list view": pa.array([[k] for k in range(n)], pa.list_view(pa.int64())),
        "list of views": pa.array([["x"]] * n, pa.list_(pa.string_view())),
        "map": pa.array([[("a", k)] for k in range(n)], pa.map_(pa.string(), pa.int64())),
        "other": pa.ExtensionArray.from_storage(Other(), numbers),
        "opaque": pa.ExtensionArray.from_storage(
            pa.opaque(pa.binary(), "t", "v"), pa.array(bytes_of)
        ),
        "half": numbers.cast(pa.float16()),
    }


@pytest.mark.parametrize("name", [*rare_columns(2)])
def test_columns_of_rare_types_that_are_not_compared(files, tmp_path, name):
    extra = rare_columns(len(files.a))[name]
    a, b = (table.append_column("extra", extra) for table in (files.a, files.b))
    run = bl.link(a, b, FIELDS, id="id", point=True)
    run.save(tmp_path / "out", keep_inputs=True)
    for kind in (".csv", ".parquet"):
        assert (tmp_path / "out" / f"linked{kind}").stat().st_size
    linked = pq.read_table(tmp_path / "out" / "linked.parquet")
    assert len(linked) == run.n_links > 50
    assert linked["extra"].null_count == 0
    assert len(run.joined()) == run.n_links
    assert bl.suggest(a, b).fields
    a_file, b_file = (str(tmp_path / name) for name in ("a.parquet", "b.parquet"))
    out = ["-o", str(tmp_path / "out2")]
    try:  # in a file of its own
        pq.write_table(a, a_file)
        pq.write_table(b, b_file)
    except pa.ArrowNotImplementedError:
        return
    done = CliRunner().invoke(
        main,
        [
            "link",
            a_file,
            b_file,
            "--id",
            "id",
            "--on",
            "fname:exact",
            "--on",
            "dob:date",
            "--point",
            *out,
        ],
    )
    assert done.exit_code == 0, done.output
    assert (tmp_path / "out2" / "linked.csv").exists()


def test_periods_and_intervals_of_pandas_that_are_not_compared(files, tmp_path):
    a = files.a.to_pandas()
    a["month"] = pd.period_range("2020-01", periods=len(a), freq="M")
    a["range"] = pd.interval_range(0, len(a))
    run = bl.link(a, files.b, FIELDS, id="id", point=True)
    run.save(tmp_path / "out")
    linked = pq.read_table(tmp_path / "out" / "linked.parquet")
    assert {*linked["month"].to_pylist()} <= {*a["month"].astype(str)}
    assert linked["range"][0].as_py().startswith("(")


def test_types_of_duckdb_that_are_not_compared(files, tmp_path):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(tmp_path / "a.duckdb") as connection:
        connection.register("a", files.a)
        connection.execute(
            "CREATE TABLE people AS SELECT *, uuid() AS key, INTERVAL 3 DAY AS span, "
            "union_value(n := 1) AS either, '101'::BIT AS bits, [1, 2]::INT[2] AS two, "
            "5::HUGEINT AS huge, 'x'::BLOB AS blob, MAP {'a': 1} AS map FROM a"
        )
    run = bl.link(tmp_path / "a.duckdb", files.b, FIELDS, id="id", point=True,
                  read=(ReadOptions(table="people"), ReadOptions()))  # fmt: skip
    run.save(tmp_path / "out")
    linked = pq.read_table(tmp_path / "out" / "linked.parquet")
    assert {"key", "span", "either", "bits", "two", "huge", "blob", "map"} <= {*linked.column_names}
    assert len((tmp_path / "out" / "linked.csv").read_text("utf-8").splitlines()) == 1 + len(linked)


def test_uuids_and_large_numbers_as_ids(files, tmp_path):
    n = len(files.a)
    keys = [str(uuid.UUID(int=2**100 + k)) for k in range(n)]
    a = files.a.set_column(0, "id", pa.array([uuid.UUID(k).bytes for k in keys], pa.uuid()))
    pq.write_table(a, tmp_path / "a.parquet")
    for source in (a, tmp_path / "a.parquet"):
        run = bl.link(source, files.b, FIELDS, id="id", point=True)
        assert {*run.table["id_a"].to_pylist()} <= {*keys}
        run.save(tmp_path / "out", force=True)
        linked = pq.read_table(tmp_path / "out" / "linked.parquet")
        assert {*linked["id"].to_pylist()} <= {*keys}
    numbers = pl.Series("id", [2**100 + k for k in range(n)], dtype=pl.Int128)
    frame = pl.from_arrow(files.a).with_columns(numbers, more=numbers)
    for source in (frame, frame.lazy()):
        run = bl.link(source, files.b, FIELDS, id="id", point=True)
        assert {*map(int, run.table["id_a"].to_pylist())} <= {*numbers}
        run.save(tmp_path / "out", force=True)
        assert bl.suggest(source, files.b).fields


@pytest.mark.parametrize("name", [*rare_columns(2)])
def test_columns_of_rare_types_that_are_compared(name):
    """Text, or refused by column before the work."""
    table, other = (pa.table({"x": rare_columns(3)[name]}) for _ in range(2))
    if name in ("uuid", "text view", "runs", "decimal", "half"):
        run = bl.link(table, other, [bl.exact("x")], id=None, point=True)
        assert run.n_links in range(4)
    else:
        with pytest.raises(bl.InputError, match="column 'x' is of type"):
            bl.link(table, other, [bl.exact("x")], id=None, point=True)
