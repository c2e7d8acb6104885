"""Every kind of input gives the links that the same data give as CSV."""

import io
import re
import sqlite3
import sys
import zipfile
from types import SimpleNamespace

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import bayeslink as bl
from bayeslink.cli import main
from bayeslink.data import locations
from bayeslink.data.python_cells import array_of, cell_text
from bayeslink.data.read_options import ReadOptions
from bayeslink.data.records import read_records

openpyxl = pytest.importorskip("openpyxl")
FIELDS = [bl.levenshtein("gname"), bl.levenshtein("fname"), bl.exact("postcode"), bl.date("dob")]
ON = [f"--on={f.name}:{f.kind}" for f in FIELDS]


@pytest.fixture(scope="module")
def files():
    return bl.simulate(150, overlap=0.5, errors=1, seed=2)


@pytest.fixture(scope="module")
def folder(files, tmp_path_factory):
    """A as Excel, SQLite, a folder of Parquet and CSV; postcodes have leading zeros."""
    root = tmp_path_factory.mktemp("inputs")
    bl.write_simulation(files, root / "csv")
    rows = files.a.to_pylist()
    assert any(row["postcode"].startswith("0") for row in rows if row["postcode"])
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(files.a.column_names)
    for row in rows:
        sheet.append([*row.values()])
    book.save(root / "a.xlsx")
    with sqlite3.connect(root / "a.sqlite") as connection:
        marks = ", ".join("?" * len(files.a.column_names))
        connection.execute(f"CREATE TABLE people ({', '.join(files.a.column_names)})")
        connection.executemany(
            f"INSERT INTO people VALUES ({marks})", [[*row.values()] for row in rows]
        )
    connection.close()
    part = pa.array(["007" if k % 3 else "010" for k in range(len(files.a))])
    parted = files.a.append_column("part", part)
    for value in ("007", "010"):
        (root / "parts" / f"part={value}").mkdir(parents=True)
        own = parted.filter(pa.compute.equal(part, value)).drop_columns(["part"])
        pq.write_table(own, root / "parts" / f"part={value}" / "0.parquet")
    return root


@pytest.fixture(scope="module")
def links(folder):
    return found(folder / "csv" / "a.csv", folder)


def found(a, folder, **options):
    run = bl.link(a, folder / "csv" / "b.csv", FIELDS, point=True, **options)
    assert len(run.joined()) == run.n_links  # it can be read once more
    return {*zip(run.table["id_a"].to_pylist(), run.table["id_b"].to_pylist(), strict=True)}


def test_files_of_other_kinds(folder, links):
    assert len(links) > 50
    assert found(folder / "a.xlsx", folder) == links
    assert found(folder / "a.sqlite", folder) == links
    assert found(folder / "parts", folder) == links
    query = ReadOptions(table="SELECT * FROM people WHERE id > 'A000010'"), ReadOptions()
    some = found(folder / "a.sqlite", folder, read=query)
    assert 0 < len(some) < len(links)


def test_lazy_frames_datasets_and_streams(files, folder, links):
    lazy = pl.from_arrow(files.a).lazy().with_columns(pl.lit(1).alias("more"))
    assert found(lazy, folder) == links
    assert found(ds.dataset(files.a), folder) == links
    with pytest.raises(bl.InputError, match="no column 'nme'"):
        read_records(lazy, id="id", columns=["nme"])
    with pytest.raises(bl.InputError, match="no column 'nme'"):
        read_records(ds.dataset(files.a), id="id", columns=["nme"])


def test_standard_input(folder, links, tmp_path, monkeypatch):
    locations.stdin_file.cache_clear()
    text = (folder / "csv" / "a.csv").read_bytes()
    done = CliRunner().invoke(
        main,
        ["link", "-", str(folder / "csv" / "b.csv"), *ON, "--point", "-o", str(tmp_path / "out")],
        input=text,
    )
    assert done.exit_code == 0, done.output
    table = pq.read_table(tmp_path / "out" / "links.parquet")
    assert {*zip(table["id_a"].to_pylist(), table["id_b"].to_pylist(), strict=True)} == links
    assert (tmp_path / "out" / "linked.csv").exists()
    assert 'a = "' not in (tmp_path / "out" / "link.toml").read_text()
    assert "standard input" in (tmp_path / "out" / "run.json").read_text()
    locations.stdin_file.cache_clear()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"")))
    with pytest.raises(bl.InputError, match="no records"):
        read_records("-", id="id", columns=[])
    locations.stdin_file.cache_clear()


def test_cells_of_excel_are_read_as_they_were_meant(tmp_path):
    import datetime as dt

    book = openpyxl.Workbook()
    book.active.append(["a title, not the header"])
    book.active.append(["id", "mixed", "born", "whole", None])
    book.active.append([1, "007", dt.datetime(1980, 2, 1), 3.0])
    book.active.append([2, 7, dt.date(1981, 3, 4), 4.5])
    book.active.append([3, True, "1982-05-06", "#N/A"])
    book.active.append([None, None, None, None])
    book.active["D5"].data_type = "e"
    book.create_sheet("other")
    book.save(tmp_path / "x.xlsx")
    options = ReadOptions(table="Sheet", skip_lines=1)
    read = read_records(
        tmp_path / "x.xlsx", id="id", columns=["mixed", "born", "whole"], options=options
    )
    assert read.ids.to_pylist() == ["1", "2", "3"]
    assert read.id_type == "int64"
    assert read.columns["mixed"].to_pylist() == ["007", "7", "true"]
    assert read.columns["born"].to_pylist() == ["1980-02-01", "1981-03-04", "1982-05-06"]
    assert read.columns["whole"].to_pylist() == ["3", "4.5", None]
    assert read.missing["whole"] == 1
    with pytest.raises(bl.InputError, match=r"which sheet.*'Sheet', 'other'"):
        read_records(tmp_path / "x.xlsx", id="id", columns=[])
    (tmp_path / "y.xlsx").write_bytes(b"PK\x03\x04 and nothing more")
    with pytest.raises(bl.InputError, match="not a whole workbook"):
        read_records(tmp_path / "y.xlsx", id="id", columns=[])
    (tmp_path / "old.xls").write_bytes(b"\xd0\xcf\x11\xe0" + bytes(100))
    with pytest.raises(bl.InputError, match="old Excel"):
        read_records(tmp_path / "old.xls", id="id", columns=[])


def test_sqlite_is_only_read(tmp_path):
    path = tmp_path / "x.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE people (id, name, photo)")
        connection.execute("INSERT INTO people VALUES (1, 'Null', x'00ff')")
        connection.execute("CREATE TABLE other (id)")
    connection.close()
    people = ReadOptions(table="people")
    assert read_records(path, id="id", columns=["name"], options=people).columns[
        "name"
    ].to_pylist() == ["Null"]
    for table, words in (
        (None, "which table.*'people', 'other'"),
        ("nobody", "no table 'nobody'"),
        ("select * from nobody", "no such table"),
        ("with x as (select 1) delete from people", "cannot read it"),
        ("select load_extension('x') as id", "cannot read it"),
        ("attach 'other.db' as other", "one SELECT"),
        ("select * from people; select * from other", "one SELECT"),
    ):
        with pytest.raises(bl.InputError, match=words):
            read_records(path, id="id", columns=[], options=ReadOptions(table=table))
    with pytest.raises(bl.InputError, match="bytes"):
        read_records(path, id="id", columns=["photo"], options=people)
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM people").fetchone() == (1,)
    connection.close()


def test_folders_of_parquet_keep_the_text_of_their_names(folder, tmp_path):
    read = read_records(folder / "parts", id="id", columns=["part"])
    assert {*read.columns["part"].to_pylist()} == {"007", "010"}
    assert read.sha256 is not None
    (tmp_path / "empty").mkdir()
    with pytest.raises(bl.InputError, match="folder without Parquet"):
        read_records(tmp_path / "empty", id="id", columns=[])
    (tmp_path / "empty" / "x.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(bl.InputError, match="damaged"):
        read_records(tmp_path / "empty", id="id", columns=[])


def test_postgres_through_adbc(files, folder, links, monkeypatch, tmp_path):
    """What is asked of the driver, and that a password gets nowhere."""
    asked = []

    class Cursor:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def execute(self, query):
            asked.append(query)
            if "broken" in query:
                raise dbapi.Error("a cell and a secret")

        def fetch_record_batch(self):
            return files.a.to_reader()

    class Connection(Cursor):
        def cursor(self):
            return Cursor()

    dbapi = SimpleNamespace(Error=type("Error", (Exception,), {}), connect=lambda url: Connection())
    module = SimpleNamespace(dbapi=dbapi)
    monkeypatch.setitem(sys.modules, "adbc_driver_postgresql", module)
    url = "postgresql://me:secret@host:5432/base?sslmode=require"
    read = ReadOptions(table="public.people"), ReadOptions()
    assert found(url, folder, read=read) == links
    assert any('FROM (SELECT * FROM "public"."people"' in query for query in asked)
    assert "READ ONLY" in asked[0]
    run = bl.link(url, folder / "csv" / "b.csv", FIELDS, point=True, read=read)
    run.save(tmp_path / "out")
    for path in (tmp_path / "out").iterdir():
        assert b"secret" not in path.read_bytes()
    broken = ReadOptions(table="broken")
    with pytest.raises(bl.InputError) as error:
        read_records(url, id="id", columns=[], options=broken)
    assert "secret" not in str(error.value)
    with pytest.raises(bl.InputError, match="which table"):
        read_records(url, id="id", columns=[])
    monkeypatch.setitem(sys.modules, "adbc_driver_postgresql", None)
    with pytest.raises(bl.InputError, match=r"bayeslink\[postgres\]"):
        read_records(url, id="id", columns=[], options=broken)


def test_whole_numbers_beyond_arrow_stay_exact():
    cells = array_of([2**70, 5, None], "x", "here")
    assert cells.to_pylist() == [str(2**70), "5", None]
    assert cell_text(np.float64(3.0).item()) == "3"


def resized(path, dimension):
    """The workbook with another size in its sheet."""
    target = path.with_name(f"{dimension.replace(':', '_')}.xlsx")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(target, "w") as new:
        for entry in old.infolist():
            text = old.read(entry)
            if entry.filename.startswith("xl/worksheets/sheet"):
                text, n = re.subn(
                    rb'<dimension ref="[^"]*"', b'<dimension ref="%b"' % dimension.encode(), text
                )
                assert n == 1
            new.writestr(entry, text)
    return target


@pytest.mark.parametrize("dimension", ["A1:C50", "A1", "B2:C3", "A1:XFD1048576"])
def test_a_workbook_that_is_wrong_about_its_size_is_read_whole(folder, files, links, dimension):
    path = resized(folder / "a.xlsx", dimension)
    assert len(read_records(path, id="id", columns=["gname"])) == len(files.a)
    assert found(path, folder) == links


def test_a_workbook_without_header_is_refused_without_a_word_of_its_first_record(folder, tmp_path):
    book = openpyxl.Workbook()
    for row in (["A1", "Wilhelmina", 1931], ["A2", "Anna", 1950], ["A3", "Hans", 1951]):
        book.active.append(row)
    book.save(tmp_path / "no.xlsx")
    for more in (["--on", "gname:exact"], [], ["--id", "id"]):
        out = str(tmp_path / "out")
        a, b = str(tmp_path / "no.xlsx"), str(folder / "csv" / "b.csv")
        done = CliRunner().invoke(main, ["link", a, b, *more, "-o", out])
        assert done.exit_code == 3, done.output
        assert "header" in done.output
        assert not {"A1", "Wilhelmina", "1931"} & {*re.split(r"\W+", done.output)}


def test_a_header_repeated_in_a_workbook_is_told_with_its_row(tmp_path):
    book = openpyxl.Workbook()
    for row in (["title"], ["id", "name"], [1, "a"], [None, None], ["id", "name", None], [2, "b"]):
        book.active.append(row)
    book.save(tmp_path / "x.xlsx")
    with pytest.raises(bl.InputError, match="row 5: repeats the header"):
        read_records(tmp_path / "x.xlsx", id="id", columns=[], options=ReadOptions(skip_lines=1))


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://u:sec@ret@h/db",
        "postgresql://u:sec/ret@h/db",
        "postgresql://u:sec?ret@h/db",
        "postgresql://u:sec@?/ret@h/db?x=1",
        "postgresql://u:sec%40ret@h/db",
        "postgresql://h/db?user=u&password=sec@ret",
        "POSTGRES://u:sec@h/db?sslpassword=ret",
        "postgresql+psycopg2://u:sec@ret@h/db",
        "mysql://u:sec@ret@h/db",
        "host=h password=secret dbname=db",
        "host=h user=u password = 'sec ret'",
        "password=secret host=h",
    ],
)
def test_no_part_of_a_password_is_shown(address, folder, tmp_path):
    b, out = str(folder / "csv" / "b.csv"), str(tmp_path / "out")
    done = CliRunner().invoke(main, ["link", address, b, *ON, "-o", out, "--table", "people"])
    assert done.exit_code == 3
    assert "sec" not in done.output
    assert "ret@" not in done.output
    assert "ret " not in done.output
    assert "input A, " in done.output


def test_an_address_is_not_written_to_the_link_toml_of_init(files):
    frame = pl.from_arrow(files.a)
    text = bl.suggest(frame, files.b).to_toml("postgresql://u:secret@h/db", "b.csv")
    assert "secret" not in text
    assert 'b = "b.csv"' in text


def test_an_empty_path_is_no_folder(folder, monkeypatch, tmp_path):
    monkeypatch.chdir(folder / "parts")
    with pytest.raises(bl.InputError, match="input A: its path is empty"):
        bl.link("", folder / "csv" / "b.csv", FIELDS, point=True)
    assert found(".", folder)
    b = str(folder / "csv" / "b.csv")
    assert CliRunner().invoke(main, ["init", "", b, "-o", str(tmp_path / "x.toml")]).exit_code == 3


def test_the_copy_of_standard_input_has_no_name(folder, monkeypatch):
    """What is killed leaves nothing behind."""
    locations.stdin_file.cache_clear()
    for name in ("csv/a.csv", "a.sqlite"):
        with (folder / name).open("rb") as stream:
            monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stream))
            assert len(read_records("-", id="id", columns=["gname"])) > 100
            copy = locations.stdin_file()
            assert copy.stat().st_mode & 0o077 == 0
            assert copy.stat().st_nlink == 0 or sys.platform != "linux"
            locations.stdin_file.cache_clear()


def test_a_workbook_whose_names_were_said_is_read_again_with_all_columns(files, folder):
    """One of them is a number, which nobody compares."""
    book = openpyxl.Workbook()
    book.active.append([*files.a.column_names, 1980])
    for row in files.a.to_pylist():
        book.active.append([*row.values(), 3])
    book.save(folder / "year.xlsx")
    assert found(folder / "year.xlsx", folder)


@pytest.mark.parametrize(
    ("begins", "said"),
    [(b"BZh9", "bzip2"), (b"\xfd7zXZ\x00", "xz"), (b"\x28\xb5\x2f\xfd", "Zstandard")],
)
def test_a_compressed_file_is_not_told_to_be_badly_encoded(begins, said, tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(begins + bytes(range(128, 256)))
    with pytest.raises(bl.InputError, match=said):
        read_records(path, id=None, columns=["x"])
