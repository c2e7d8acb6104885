"""Records from every kind of source: hostile inputs 13–18, 22 and 32–34 of the table."""

import datetime
import hashlib
import os
import sys
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bayeslink.data.read_options import ReadOptions
from bayeslink.data.records import read_records
from bayeslink.errors import InputError, SettingsError

NASTY = 'x"; DROP TABLE t--'
PLAIN = {"id": ["1", "2"], "name": ["a", None]}


@pytest.fixture
def write(tmp_path):
    def write(content, name="people.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def column(source, name="x", id=None, **options):
    records = read_records(source, id=id, columns=[name], options=ReadOptions(**options))
    return records.columns[name].to_pylist()


def refused(source, columns=("x",), id=None, **options):
    with pytest.raises(InputError) as caught:
        read_records(source, id=id, columns=list(columns), options=ReadOptions(**options))
    return str(caught.value)


def as_parquet(table, tmp_path):
    pq.write_table(table, tmp_path / "t.parquet")
    return tmp_path / "t.parquet"


def as_duckdb(table, tmp_path):
    with duckdb.connect(tmp_path / "t.duckdb") as connection:
        connection.register("given", table)
        connection.execute("CREATE TABLE people AS SELECT * FROM given")
    return tmp_path / "t.duckdb"


def as_csv(table, tmp_path):
    (tmp_path / "t.csv").write_text(table.to_pandas().to_csv(index=False), encoding="utf-8")
    return tmp_path / "t.csv"


SOURCES = {
    "csv": as_csv,
    "parquet": as_parquet,
    "duckdb": as_duckdb,
    "pandas": lambda table, _: table.to_pandas(),
    "polars": lambda table, _: pl.from_arrow(table),
    "arrow": lambda table, _: table,
}


@pytest.mark.parametrize("kind", SOURCES)
def test_every_source_gives_the_same_records(kind, tmp_path):
    source = SOURCES[kind](pa.table(PLAIN), tmp_path)
    records = read_records(
        source, id="id", columns=["name"], options=ReadOptions(table="people"), side="B"
    )
    assert records.kind == kind
    assert len(records) == 2
    assert records.ids.to_pylist() == ["1", "2"]
    assert records.columns["name"].to_pylist() == ["a", None]
    assert records.missing == {"name": 1}
    assert records.quarantined == 0
    assert records.place(1) == ("line 3" if kind == "csv" else "row 2")
    is_file = kind in ("csv", "parquet", "duckdb")
    assert records.label == (str(source) if is_file else records.label)
    assert records.sha256 == (hashlib.sha256(source.read_bytes()).hexdigest() if is_file else None)


@pytest.mark.parametrize("kind", SOURCES)
def test_13_hostile_and_internal_column_names(kind, tmp_path):
    names = ["id", NASTY, "_lines", "rowid", "a.b"]
    source = SOURCES[kind](pa.table({name: [f"{name}?"] for name in names}), tmp_path)
    records = read_records(source, id="id", columns=names[1:], options=ReadOptions(table="people"))
    assert {name: values.to_pylist() for name, values in records.columns.items()} == {
        name: [f"{name}?"] for name in names[1:]
    }


def test_13_hostile_header_unquoted(write):
    assert column(write(f"id,{NASTY},z\n1,a,b\n"), NASTY) == ["a"]


@pytest.mark.parametrize("kind", SOURCES)
def test_14_repeated_and_blank_ids(kind, tmp_path):
    place = (lambda k: f"line {k + 1}") if kind == "csv" else (lambda k: f"row {k}")
    twice = pa.table({"id": ["a", "b", "b", "a", "b"], "x": ["SECRETNAME"] * 5})
    message = refused(SOURCES[kind](twice, tmp_path), id="id", table="people")
    assert (
        f"3 records repeat the id of an earlier one in column 'id', first on {place(2)} and "
        in (message)
    )
    assert f"{place(3)}." in message
    (tmp_path / "t.duckdb").unlink(missing_ok=True)
    blank = pa.table({"id": ["a", " ", "b", None, ""], "x": ["SECRETNAME"] * 5})
    message = refused(SOURCES[kind](blank, tmp_path), id="id", table="people")
    assert f"3 records have no id in column 'id', first on {place(2)} and {place(4)}." in message


def test_14_declared_missing_value_is_still_an_id(write):
    records = read_records(
        write("id,x\nNA,1\n"), id="id", columns=["x"], options=ReadOptions(missing=("NA",))
    )
    assert records.ids.to_pylist() == ["NA"]


def test_15_ids_are_exact_text(write):
    records = read_records(
        write("id,x\n007,a\n7,b\n9007199254740993,c\n9007199254740992,d\n"), id="id", columns=["x"]
    )
    assert records.ids.to_pylist() == ["007", "7", "9007199254740993", "9007199254740992"]


def test_16_leading_zero_far_into_the_file(write):
    rows = "".join(f"{k},{90000 + k % 9}\n" for k in range(25_000))
    assert column(write(f"id,x\n{rows}25000,01234\n"))[-1] == "01234"


def test_17_words_that_look_like_nothing_are_text(write):
    words = ["Null", "NA", "None", "True", "nan"]
    path = write("id,x\n" + "".join(f"{k},{word}\n" for k, word in enumerate(words)))
    assert column(path) == words
    assert column(path, missing=("NA ", "nan")) == ["Null", None, "None", "True", None]
    assert column(pd.DataFrame({"x": words})) == words


def test_18_quoted_and_unquoted_nothing_are_missing_and_counted(write):
    records = read_records(
        write('id,x,y\n1,"",1\n2,,2\n3,  ,3\n4, a ,4\n'), id="id", columns=["x", "y"]
    )
    assert records.columns["x"].to_pylist() == [None, None, None, " a "]
    assert records.missing == {"x": 3, "y": 0}


def test_18_blank_stays_missing_when_other_words_are_declared(write):
    assert column(write("id,x\n1,\n2,-\n3, - \n4,--\n"), missing=("-",)) == [None, None, None, "--"]


def test_22_invisible_characters_are_kept(write):
    value = "\u202eab\u200b\u00adа"
    assert column(write(f"id,x\n1,{value}\n")) == [value]


def test_without_an_id_records_are_numbered(write):
    records = read_records(write("id,x\n9,a\n8,b\n"), id=None, columns=["x"])
    assert records.ids.to_pylist() == ["1", "2"]


@pytest.mark.parametrize(
    "make", [lambda p: p.mkdir(), os.mkfifo, lambda p: p.symlink_to("/dev/zero")]
)
def test_32_only_regular_files_are_opened(tmp_path, make):
    make(tmp_path / "input.csv")
    assert "not a regular file" in refused(tmp_path / "input.csv")


def test_32_truncated_and_corrupt_parquet(tmp_path):
    path = as_parquet(pa.table({"x": [str(k) for k in range(10_000)]}), tmp_path)
    whole = path.read_bytes()
    for name in ("t.parquet", "t.data"):
        for damaged in (whole[:-20], whole[: len(whole) // 2], whole[:5]):
            (tmp_path / name).write_bytes(damaged)
            assert "Parquet" in refused(tmp_path / name)
    (tmp_path / "t.parquet").write_bytes(whole[:100] + b"\xff" * 5000 + whole[5100:])
    assert "Parquet" in refused(tmp_path / "t.parquet")


def test_32_missing_file_and_impossible_path(tmp_path):
    assert "No such file" in refused(tmp_path / "nowhere.csv")
    assert "cannot be read" in refused("a\0b")
    assert "cannot be read" in refused("a" * 5000)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_32_file_without_permission(write):
    path = write("id,x\n1,a\n")
    path.chmod(0)
    assert "permissions" in refused(path)


@pytest.mark.parametrize(
    ("head", "what"), [(b"PK\x03\x04\0", "Excel"), (b"SQLite format 3\0", "SQLite")]
)
def test_32_well_known_binary_files_are_named(write, head, what):
    assert what in refused(write(head + bytes(100)))


def test_2_wrong_column_in_a_frame():
    assert "Did you mean 'surname'?" in refused(pa.table({"surname": ["a"]}), ["surnam"])


@pytest.mark.parametrize(
    "source", [pa.table({"x": pa.array([], pa.string())}), pd.DataFrame({"x": []})]
)
def test_1_no_records_in_a_frame(source):
    assert "no records" in refused(source)


UTC = datetime.UTC
TYPED = [
    ([3, None, 2**53 + 1], pa.int64(), ["3", None, "9007199254740993"]),
    ([2**64 - 1], pa.uint64(), ["18446744073709551615"]),
    ([True, False, None], pa.bool_(), ["true", "false", None]),
    ([datetime.date(1980, 2, 1)], pa.date32(), ["1980-02-01"]),
    ([datetime.date(1980, 2, 1)], pa.date64(), ["1980-02-01"]),
    ([datetime.datetime(1980, 2, 1)], pa.timestamp("ns"), ["1980-02-01"]),
    (
        [datetime.datetime(1980, 2, 1), datetime.datetime(1980, 2, 1, 3, 4, 5)],
        pa.timestamp("ns"),
        ["1980-02-01T00:00:00", "1980-02-01T03:04:05"],
    ),
    (
        [datetime.datetime(1980, 2, 1, 3, 4, 5, 600_000)],
        pa.timestamp("us"),
        ["1980-02-01T03:04:05.600"],
    ),
    (
        [datetime.datetime(1980, 2, 1, tzinfo=UTC)],
        pa.timestamp("s", "UTC"),
        ["1980-02-01T00:00:00Z"],
    ),
    ([datetime.time(3, 4)], pa.time32("s"), ["03:04:00"]),
    ([Decimal("1.50"), Decimal("0.00")], pa.decimal128(20, 2), ["1.50", "0.00"]),
    ([Decimal("1E-9")], pa.decimal128(20, 9), ["0.000000001"]),
    ([3.0, None, float("nan")], pa.float64(), ["3", None, None]),
    ([3.0, 2.5, 1e22], pa.float64(), ["3.0", "2.5", "1e+22"]),
    ([1e22, 1.0], pa.float64(), ["10000000000000000000000", "1"]),
    ([float("inf"), 1.0], pa.float64(), ["inf", "1"]),
    ([0.1], pa.float32(), ["0.1"]),
    ([3.0], pa.float16(), ["3"]),
    (["a", "b", "a", None], pa.dictionary(pa.int8(), pa.string()), ["a", "b", "a", None]),
    ([None], pa.null(), [None]),
    (["a", None], pa.string_view(), ["a", None]),
]


@pytest.mark.parametrize(("values", "kind", "text"), TYPED, ids=[str(row[1]) for row in TYPED])
def test_33_typed_values_become_text(values, kind, text):
    if pa.types.is_float16(kind):
        values = [np.float16(value) for value in values]
    array = pa.array(values, pa.string()).cast(kind) if kind == pa.string_view() else None
    table = pa.table({"x": pa.array(values, kind) if array is None else array})
    assert column(table) == text


NESTED = [
    pa.array([["SECRETNAME"]]),
    pa.array([{"a": "SECRETNAME"}]),
    pa.array([b"SECRETNAME"]),
    pa.array([datetime.timedelta(1)]),
]


@pytest.mark.parametrize("values", NESTED, ids=[str(values.type) for values in NESTED])
def test_33_types_without_a_text_form_are_refused_by_column(values, tmp_path):
    path = as_parquet(pa.table({"x": values, "y": ["a"]}), tmp_path)
    message = refused(path)
    assert "column 'x' is of type" in message
    assert "SECRETNAME" not in message
    assert column(path, "y") == ["a"]


def test_33_text_that_is_not_utf8_is_refused():
    broken = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(np.array([0, 1], np.int32)), pa.py_buffer(b"\xff")]
    )
    assert "column 'x'" in refused(pa.table({"x": broken}))


@pytest.mark.parametrize(
    ("values", "dtype", "text"),
    [
        (["a", None, np.nan, pd.NA, pd.NaT], object, ["a", None, None, None, None]),
        ([7, "007", None, 2**70], object, ["7", "007", None, str(2**70)]),
        ([2**70], object, [str(2**70)]),
        ([1, None], "float64", ["1", None]),
        ([2**53 + 1, None], "Int64", ["9007199254740993", None]),
        (["a", None], "category", ["a", None]),
        ([pd.Timestamp(1980, 2, 1), pd.NaT], "datetime64[ns]", ["1980-02-01", None]),
        (["a", None], "string", ["a", None]),
        (["a", None], "str", ["a", None]),
        ([True, None], "boolean", ["true", None]),
    ],
)
def test_33_pandas_columns(values, dtype, text):
    frame = pd.DataFrame({"x": pd.Series(values, dtype=dtype)})
    before = frame.copy(deep=True)
    assert column(frame) == text
    pd.testing.assert_frame_equal(frame, before)


@pytest.mark.parametrize(
    "values", [[1.5, "SECRETNAME"], [True, "SECRETNAME"], ["\ud800"], [object()], [b"a", "b"]]
)
def test_33_mixed_pandas_columns_are_refused(values):
    message = refused(pd.DataFrame({"x": pd.Series(values, dtype=object)}))
    assert "column 'x'" in message
    assert "SECRETNAME" not in message


def test_33_pandas_period_is_refused():
    assert "period" in refused(pd.DataFrame({"x": pd.period_range("2020", periods=2, freq="M")}))


@pytest.mark.parametrize("ids", [[2.0**53, 1.0], [1.5, 2.0], [np.inf, 1.0]])
def test_33_float_ids_that_may_have_been_rounded_are_refused(ids):
    frame = pd.DataFrame({"id": ids, "x": ["a", "b"]})
    assert "2^53" in refused(frame, id="id")
    assert "2^53" in refused(frame.astype({"id": "category"}), id="id")


def test_33_single_precision_ids_are_exact_only_to_their_own_limit():
    assert "rounded" in refused(
        pa.table({"id": pa.array([2.0**24], pa.float32()), "x": ["a"]}), id="id"
    )


def test_33_whole_float_ids_are_integers():
    records = read_records(
        pd.DataFrame({"id": [3.0, 1.0], "x": ["a", "b"]}), id="id", columns=["x"]
    )
    assert records.ids.to_pylist() == ["3", "1"]


def test_duplicate_columns_of_a_pandas_frame():
    assert "must differ" in refused(pd.DataFrame([["a", "b"]], columns=["x", "x"]))


def test_labels_and_unknown_sources():
    read = read_records(pd.DataFrame({"x": ["a"]}), id=None, columns=["x"])
    assert read.label == "pandas.DataFrame"
    assert "builtins.dict: not a table" in refused({"x": ["a"]})
    assert len(read_records(pl.LazyFrame({"x": ["a"]}), id=None, columns=["x"])) == 1


def test_arrow_streams_and_batches():
    table = pa.table({"x": ["a", "b"]})
    assert column(table.to_reader()) == ["a", "b"]
    assert column(table.to_batches()[0]) == ["a", "b"]


@pytest.mark.parametrize("name", ['it\'s "x".csv', "a\nb.csv", "naïve 名.csv"])
def test_34_strange_paths(write, name):
    assert column(write("id,x\n1,a\n", name)) == ["a"]
    assert "\n" not in refused(write("id,x\n", name))


@pytest.mark.parametrize("name", ['it\'s "x"', "a\nb", "naïve 名"])
@pytest.mark.parametrize("make", [as_parquet, as_duckdb])
def test_34_strange_paths_of_databases(make, tmp_path, name):
    path = make(pa.table({"x": ["a"]}), tmp_path)
    path = path.rename(tmp_path / f"{name}{path.suffix}")
    assert column(path, table="people") == ["a"]


def test_duckdb_tables_and_queries(tmp_path):
    path = as_duckdb(pa.table({"x": ["a", "b"]}), tmp_path)
    path = path.rename(tmp_path / "people.db")
    assert column(path, table="main.people") == ["a", "b"]
    assert column(path, table="SELECT upper(x) AS x FROM people ORDER BY x DESC;") == ["B", "A"]
    assert "--table" in refused(path)
    assert "Tables: 'people'" in refused(path, table="persons")


def test_duckdb_errors_do_not_quote_cells(tmp_path):
    path = as_duckdb(pa.table({"x": ["SECRETNAME"]}), tmp_path)
    assert "SECRETNAME" not in refused(path, table="SELECT x::INTEGER AS x FROM people")
    assert "nowhere" in refused(path, table="SELECT x FROM nowhere")
    path.write_bytes(path.read_bytes()[:5000])
    assert "DuckDB" in refused(path, table="people")


def test_duckdb_is_needed_only_for_its_databases(tmp_path, monkeypatch):
    path = as_duckdb(pa.table({"x": ["a"]}), tmp_path)
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert "pip install 'bayeslink[duckdb]'" in refused(path, table="people")


@pytest.mark.parametrize(
    "options",
    [
        {"delimiter": ""},
        {"delimiter": '"'},
        {"delimiter": ";;"},
        {"skip_lines": -1},
        {"missing": "NA"},
    ],
)
def test_options_are_checked(options):
    with pytest.raises(SettingsError):
        ReadOptions(**options)


@pytest.mark.parametrize("columns", ["x", []])
def test_columns_are_checked(columns):
    with pytest.raises(SettingsError):
        read_records(pa.table({"x": ["a"]}), id=None, columns=columns)


SECRET = "SECRETNAME"
LEAKS = [
    f"{SECRET},{SECRET}\n1,2\n",
    f"{SECRET};{SECRET}\n",
    f"{SECRET}\n{SECRET}\nkey,x\n",
    f"id,x\n1,{SECRET},3\n",
    f"id,x\n{SECRET}\n",
    f'id,x\n1,"{SECRET}\n',
    f'id,x\n1,"{SECRET}"{SECRET}\n',
    f"id,x\n1,{SECRET}\0\n",
    f"id,x\n{SECRET},a\n{SECRET},b\n",
    f"id,x\n,{SECRET}\n",
    f"id,x\n1,{SECRET * 200_000}\n",
    f"id,x\n1,{SECRET}é\n".encode("latin-1"),
    f"{SECRET}é,x\n1,2\n".encode("latin-1"),
]


@pytest.mark.parametrize("content", LEAKS)
def test_no_message_quotes_a_cell(write, content):
    with pytest.raises(InputError) as caught:
        read_records(write(content), id="id", columns=["x"])
    error = caught.value
    while error is not None:  # nor do the errors that a traceback would show before it
        assert SECRET not in str(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def test_all_columns_are_read_where_none_is_named(tmp_path):
    (tmp_path / "x.csv").write_text("id;name, first;born\n1;Ann;1980-01-02\n")
    records = read_records(tmp_path / "x.csv", id=None, columns=None)
    assert list(records.columns) == ["id", "name, first", "born"]
    table = pa.table({"name": ["Ann"], "tags": [["x", "y"]], "age": [3]})
    records = read_records(table, id=None, columns=None)
    assert list(records.columns) == ["name", "age"]
    assert records.unusable == ("tags",)
