"""Delimited text: hostile files 1–12, 32 and 34 of the table, and what csv wrote read back."""

import csv
import gzip
import hashlib
import io
import os
import zipfile
import zlib

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from bayeslink.cli import main
from bayeslink.data import delimited
from bayeslink.data.delimited import all_columns
from bayeslink.data.read_options import ReadOptions
from bayeslink.data.records import read_records
from bayeslink.errors import InputError, OutputError, SettingsError


@pytest.fixture
def write(tmp_path):
    def write(content, name="people.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def read(path, columns=("name",), id="id", **options):
    return read_records(path, id=id, columns=columns, options=ReadOptions(**options))


def refused(path, columns=("name",), id="id", **options):
    with pytest.raises(InputError) as caught:
        read(path, columns, id, **options)
    return str(caught.value)


@pytest.mark.parametrize("content", ["", "\n\n", "id,name\n", "id,name\n\n\r\n", "\ufeff"])
def test_1_no_records(write, content):
    assert "no records" in refused(write(content))


def test_1_skipping_past_the_end_leaves_no_records(write):
    assert "no records" in refused(write("id,name\n1,a\n"), skip_lines=9)


def test_2_wrong_column_lists_columns_and_the_nearest(write):
    message = refused(write("id,surname,dob\n1,a,b\n"), ["surnmae"])
    assert "'surnmae'" in message
    assert "Did you mean 'surname'?" in message
    assert "'id', 'surname', 'dob'" in message


def test_2_at_most_twenty_columns_are_listed(write):
    header = ",".join(["id", *(f"c{k}" for k in range(50))])
    message = refused(write(f"{header}\n1\n"), ["zzz"])
    assert "'c18', ..." in message
    assert "'c19'" not in message


def test_2_no_header_is_suspected_and_the_first_row_not_shown(write):
    message = refused(write("1,SECRETNAME,1980\n2,b,1981\n"))
    assert "no header" in message
    assert "SECRETNAME" not in message


def test_2_all_names_in_another_case_are_told(write):
    assert "in another case" in refused(write("ID,NAME\n1,a\n"))


def test_3_preamble_names_the_lines_to_skip(write):
    path = write("Extract of 1 May\n\nid,name,dob\n1,a,b\n")
    assert "--skip-lines 2" in refused(path)
    assert read(path, skip_lines=2).place(0) == "line 4"


def test_3_preamble_is_suspected_when_the_first_line_is_narrow(write):
    assert "--skip-lines" in refused(write("Extract\nkey,forename,dob\n1,a,b\n"))


def test_3_preamble_that_holds_the_wanted_columns(write):
    message = refused(write("id,name\n1,a,b,c\n"))
    assert "line 2" in message
    assert "--skip-lines" in message


def test_3_footer_is_a_short_row(write):
    message = refused(write("id,name\n1,a\n2,b\n2 rows\n"))
    assert "line 4" in message
    assert "--quarantine" in message
    assert "--skip-lines" not in message


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_4_delimiter_is_told_from_the_header(write, delimiter):
    content = "id,na me,dob\n7,a b,c\n".replace(",", delimiter)
    assert read(write(content), ["na me"]).columns["na me"].to_pylist() == ["a b"]


def test_4_ambiguous_header_asks_for_the_delimiter(write):
    path = write("a,b;a\n1,2;3\n")
    assert "--delimiter" in refused(path, ["a"], id=None)
    assert read(path, ["a"], id=None, delimiter=";").columns["a"].to_pylist() == ["3"]


def test_4_one_column_needs_no_delimiter(write):
    assert read(write("id\nx;y\nz\n"), []).ids.to_pylist() == ["x;y", "z"]


def test_4_wrong_delimiter_given_is_refused(write):
    assert "none of the columns" in refused(write("id,name\n1,a\n"), delimiter="^")


@pytest.mark.parametrize(("row", "cells"), [("2", 1), ("2,b,c", 3)])
def test_5_short_and_long_rows(write, row, cells):
    message = refused(write(f"id,name\n1,a\n\n{row}\n3,c\n"))
    assert f"line 4: {cells} cells where the header has 2" in message


def test_5_quarantine_keeps_the_raw_row_and_counts_it(write, tmp_path):
    aside = tmp_path / "aside.txt"
    path = write('id,name\r\n1,a\r\n"2","x\r\ny",\r\n\r\n3\r\n4,d')
    records = read(path, quarantine=aside)
    assert records.quarantined == 2
    assert records.ids.to_pylist() == ["1", "4"]
    assert [records.place(k) for k in range(2)] == ["line 2", "line 7"]
    assert aside.read_bytes() == b'3\t"2","x\r\ny",\n6\t3\n'


def test_5_quarantine_file_only_when_needed_and_never_overwritten(write, tmp_path):
    aside = tmp_path / "aside.txt"
    read(write("id,name\n1,a\n"), quarantine=aside)
    assert not aside.exists()
    aside.write_text("kept")
    with pytest.raises(OutputError, match="quarantine"):
        read(write("id,name\n1,a\n2\n"), quarantine=aside)
    assert aside.read_text() == "kept"


def test_5_a_quarantine_file_with_the_same_rows_is_left_as_it_is(write, tmp_path):
    aside, path = tmp_path / "aside.txt", write("id,name\n1,a\n2\n")
    for _ in range(2):
        assert read(path, quarantine=aside).quarantined == 1
        assert aside.read_bytes() == b"3\t2\n"
    with pytest.raises(OutputError, match="quarantine"):
        read(write("id,name\n1,a\n2\n3\n"), quarantine=aside)
    assert aside.read_bytes() == b"3\t2\n"


def test_5_no_quarantine_file_is_left_by_a_refused_input(write, tmp_path):
    aside = tmp_path / "aside.txt"
    refused(write("id,name\n1,a\n1,b\n2\n"), quarantine=aside)
    assert not aside.exists()


def test_5_everything_set_aside_is_no_records(write, tmp_path):
    assert "no records" in refused(write("id,name\n1\n"), quarantine=tmp_path / "aside.txt")


@pytest.mark.parametrize(
    "tail", ["3,c\n4,d\n", '3,"c"\n', "3,c\n" * 400_000], ids=["to-the-end", "meets-quote", "long"]
)
def test_6_unterminated_quote_is_reported_where_it_opens(write, tail):
    message = refused(write('id,name\n1,"x\ny"\n2,"SECRETNAME\n' + tail))
    assert "line 4" in message
    assert "quote" in message


def test_6_unterminated_quote_in_the_header(write):
    assert "line 1" in refused(write('"id,name\n1,a\n'))


def test_7_mixed_line_ends_and_newlines_inside_quotes(write):
    records = read(write(b'id,name\r1,a\n2,"b\r\nc\rd\ne"\r\n\r\n3,f\r4,g'))
    assert records.columns["name"].to_pylist() == ["a", "b\r\nc\rd\ne", "f", "g"]
    assert [records.place(k) for k in range(4)] == ["line 2", "line 3", "line 8", "line 9"]


@pytest.mark.parametrize("chunk", [1, 2, 3, 7])
def test_7_line_ends_and_characters_split_between_reads(write, monkeypatch, chunk):
    monkeypatch.setattr(delimited, "CHUNK", chunk)
    records = read(write('id,name\r\n1,"é\r\n€"\r\n2,𝔘\r'))
    assert records.columns["name"].to_pylist() == ["é\r\n€", "𝔘"]
    assert records.place(1) == "line 4"


def test_8_latin1_is_refused_with_its_line_and_read_when_declared(write):
    path = write("id,name\n1,a\n2,José\n".encode("cp1252"))
    message = refused(path)
    assert "line 3" in message
    assert "--encoding" in message
    assert "cp1252" in message
    assert "latin-1" in message
    assert read(path, encoding="cp1252").columns["name"].to_pylist() == ["a", "José"]


def test_8_line_of_bad_bytes_far_into_the_file(write):
    content = "id,name\n" + "".join(f"{k},a\n" for k in range(100_000))
    assert "line 100002" in refused(write(content.encode() + b"x,\xff\n"))


def test_8_cut_character_at_the_end(write):
    assert "line 2" in refused(write("id,name\n1,é".encode()[:-1]))


def test_8_declared_encoding_that_does_not_fit(write):
    assert "line 2: not valid ascii" in refused(write("id,name\n1,é\n"), encoding="ascii")


@pytest.mark.parametrize("encoding", ["utf-9", "hex", "a\0b"])
def test_8_unknown_encoding_is_a_settings_error(encoding):
    with pytest.raises(SettingsError, match="not known"):
        ReadOptions(encoding=encoding)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "utf-32"])
@pytest.mark.parametrize("declared", [False, True])
def test_9_byte_order_marks(write, encoding, declared):
    path = write("id,name\n1,José\n".encode(encoding))
    records = read(path, encoding=encoding if declared else None)
    assert records.columns["name"].to_pylist() == ["José"]


def test_9_big_endian_and_mark_with_plain_utf8_declared(write):
    assert len(read(write(b"\xfe\xff" + "id,name\n1,a\n".encode("utf-16-be")))) == 1
    assert len(read(write("\ufeffid,name\n1,a\n"), encoding="utf-8")) == 1


def test_10_nul(write):
    assert "line 3: holds a NUL" in refused(write("id,name\n1,a\n2,b\0c\n"))
    assert "utf-16-le" in refused(write("id,name\n1,a\n".encode("utf-16-le")))


def test_10_huge_field(write):
    message = refused(write("id,name\n1,a\n2," + "x" * 5_000_000 + "\n"))
    assert "line 3" in message
    assert "1,048,576 characters" in message


def test_10_endless_line(write, monkeypatch):
    monkeypatch.setattr(delimited, "LINE_LIMIT", 10_000)
    monkeypatch.setattr(delimited, "CHUNK", 1_000)
    assert "line 3: longer than 10,000" in refused(write("id,name\n1,a\n" + "x," * 100_000))


def test_11_ten_thousand_columns(write):
    header = ",".join(["id", *(f"c{k}" for k in range(9_999))])
    rows = "".join(f"{r}," + ",".join(f"v{r}.{k}" for k in range(9_999)) + "\n" for r in range(50))
    records = read(write(f"{header}\n{rows}"), ["c9998", "c7"])
    assert list(records.columns) == ["c9998", "c7"]
    assert records.columns["c9998"][49].as_py() == "v49.9998"


@pytest.mark.parametrize("header", ["id,name,x,x", "id,name,Name", "id,name,,"])
def test_12_duplicate_header(write, header):
    assert "must differ" in refused(write(f"{header}\n1,a,b,c\n"))


def test_32_gzip_is_read_and_hashed_as_stored(write):
    stored = gzip.compress(b"id,name\n1,a\n") + gzip.compress(b"2,b\n") + bytes(64)
    records = read(write(stored, "people.csv.gz"))
    assert records.ids.to_pylist() == ["1", "2"]
    assert records.sha256 == hashlib.sha256(stored).hexdigest()


def test_32_gzip_is_told_by_its_bytes_and_may_start_with_an_empty_member(write):
    stored = gzip.compress(b"") + gzip.compress("id,name\n1,é\n".encode("utf-16"))
    assert read(write(stored)).columns["name"].to_pylist() == ["é"]


def test_32_gzip_bomb(write, monkeypatch):
    monkeypatch.setattr(delimited, "GZIP_FREE", 2**20)
    content = "id,name\n" + "1,a\n" * 2**20
    assert "200 times" in refused(write(gzip.compress(content.encode())))


def test_32_small_gzip_may_expand_as_it_likes(write):
    content = "id,name\n" + "".join(f"{k},{'a' * 2000}\n" for k in range(100))
    assert len(read(write(gzip.compress(content.encode())))) == 100


def test_32_damaged_gzip(write):
    stored = gzip.compress(b"id,name\n" + os.urandom(1000).hex().encode() + b",a\n")
    for damaged in (stored[:-9], stored[:-4], stored[:40] + b"\xff" * 40 + stored[80:]):
        assert "gzip" in refused(write(damaged))


def test_32_wrong_checksum_of_gzip(write):
    stored = bytearray(gzip.compress(b"id,name\n1,a\n"))
    stored[-8] ^= 1
    assert zlib.decompress(bytes(stored[10:-8]), -15) == b"id,name\n1,a\n"
    assert "gzip" in refused(write(bytes(stored)))


def zipped(*files, method=zipfile.ZIP_DEFLATED):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", method) as archive:
        for name, content in files:
            archive.writestr(name, content)
    return made.getvalue()


def test_a_zip_archive_of_one_file_is_read_and_hashed_as_stored(write):
    text = "id,name\n1,a\n2,é\n"
    for method in (zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED, zipfile.ZIP_LZMA):
        stored = zipped(("in/people.csv", text), ("__MACOSX/in/._people.csv", "x"), method=method)
        records = read(write(stored, "people.zip"))
        assert records.columns["name"].to_pylist() == ["a", "é"]
        assert records.sha256 == hashlib.sha256(stored).hexdigest()


def test_other_zip_archives_are_refused(write, monkeypatch):
    one = ("people.csv", "id,name\n" + "1,abc\n" * 2000)
    assert "holds 2 files" in refused(write(zipped(one, ("more.csv", "x")), "p.zip"))
    assert "Excel workbook" in refused(write(zipped(one, ("[Content_Types].xml", "x")), "p.zip"))
    whole = zipped(one)
    for damaged in (whole[:-30], whole[:60] + b"\xff" * 9 + whole[69:], whole[:50]):
        assert "zip archive" in refused(write(damaged, "p.zip"))
    locked = bytearray(whole)
    for at in (6, whole.index(b"PK\x01\x02") + 8):
        locked[at] |= 1
    assert "encrypted" in refused(write(bytes(locked), "p.zip"))
    monkeypatch.setattr(delimited, "GZIP_FREE", 2**20)
    bomb = zipped(("people.csv", "id,name\n" + "1,a\n" * 2**20))
    assert "200 times" in refused(write(bomb, "p.zip"))


@given(
    st.lists(
        st.tuples(
            *[st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=9)] * 3
        ),
        min_size=1,
        max_size=30,
    ),
    st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_every_table_written_by_csv_is_read_back(tmp_path_factory, rows, end):
    """Oracle: what the csv module wrote is what comes back, cell for cell, with its line."""
    path = tmp_path_factory.mktemp("oracle") / "t.csv"
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator=end, quoting=csv.QUOTE_ALL)
    starts = []
    for row in [("x", "y", "z"), *rows]:
        text = out.getvalue()
        starts.append(1 + len(text.replace("\r\n", "\n").replace("\r", "\n").split("\n")) - 1)
        writer.writerow(row)
    path.write_bytes(out.getvalue().encode())
    found = delimited.read_delimited(path, ["z", "x"], ReadOptions(), "here")
    assert found.columns["z"].to_pylist() == [row[2] for row in rows]
    assert found.columns["x"].to_pylist() == [row[0] for row in rows]
    np.testing.assert_array_equal(found.lines, starts[1:])


# --- headers that are none, or there twice --------------------------------------------------------

PERSON = "A17,Wilhelmina,Ottersbach,1931-04-05,8001"
OTHERS = (
    "A18,Anna,Meier,1950-01-02,3000\nA19,Hans,Meier,1951-01-02,3001\nA20,Ida,Frey,1952-02-03,3002"
)


def run_link(a, b, out, *more):
    return CliRunner().invoke(main, ["link", str(a), str(b), *more, "-o", str(out)])


@pytest.mark.parametrize(
    "person",
    [
        PERSON,
        "A17,Wilhelmina,Ottersbach,5 April 1931,Bern",
        "A17,Wilhelmina,Ottersbach,w.o@example.org,Bern",
        "A17,Wilhelmina,Ottersbach,079 123 45 67,Bern",
        "A17,Wilhelmina,Ottersbach,Meier,3001",
        "A17,Wilhelmina,Meier,,Bern",  # told by the next
        "A17,Bern,Ottersbach,x,Bern",  # twice the same
    ],
)
def test_a_file_without_header_is_refused_without_a_word_of_its_first_record(
    write, person, tmp_path
):
    a = write(f"{person}\n{OTHERS}\n", "a.csv")
    b = write(f"id,gname,fname,dob,plz\n{OTHERS}\n", "b.csv")
    for more in ((), ("--on", "gname:exact"), ("--id", "id"), ("--id", "id", "--on", "plz:exact")):
        done = run_link(a, b, tmp_path / "out", *more)
        assert done.exit_code == 3, done.output
        assert "header" in done.output
        for cell in filter(None, person.split(",")):
            assert cell not in done.output.replace(str(a), "")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "header", ["id,name,2019,2020,2021", "0,1,2,3,4", ",name,x1,x2,address 1", "id,name,a@b,c d,-"]
)
def test_headers_that_are_odd_but_headers(write, header):
    rows = "\n".join(f"k{k},n{k},m{k},o{k},p{k}" for k in range(9))
    assert len(read_records(write(f"{header}\n{rows}\n"), id=None, columns=None)) == 9


def test_a_value_that_is_its_columns_name_by_mistake(write):
    rows = "".join(f"{k},n{k}\n" for k in range(1500))
    table = write(f"id,name\n{rows}9999,name\n")
    assert len(read_records(table, id=None, columns=None)) == 1501
    few = write("id,name\n1,a\n2,name\n3,c\n")
    with pytest.raises(InputError, match="the name of column 2 is also a value"):
        read_records(few, id=None, columns=None)
    assert len(read(few)) == 3  # the names were said


def test_a_header_repeated_further_down_is_told_with_its_line(write, tmp_path):
    a = write("id,name\n1,a\n\n2,b\nid,name\n3,c\n", "a.csv")
    for more in ((), ("--on", "name:exact")):
        done = run_link(a, write("id,name\n1,a\n", "b.csv"), tmp_path / "out", *more)
        assert done.exit_code == 3
        assert "line 5: repeats the header" in done.output
    assert len(read(write("name\na\nname\n"), id=None)) == 2  # one cell may be anything


# --- nothing of the process is changed for others -------------------------------------------------


def test_two_files_read_at_once_leave_each_other_alone(write, monkeypatch):
    monkeypatch.setattr(delimited, "BATCH_CELLS", 2)
    one = all_columns(write("id,name\n1,a\n2,b\n", "short.csv"), ["id"], ReadOptions(), "one")
    long = "".join(f"{k},{'x' * 200_000}\n" for k in range(9))
    other = all_columns(write(f"id,name\n{long}", "long.csv"), ["id"], ReadOptions(), "other")
    before = csv.field_size_limit(131_072)
    try:
        next(one)
        assert len(next(other)) == 1
        one.close()
        assert sum(map(len, other)) == 8
    finally:
        csv.field_size_limit(before)


def test_a_larger_limit_of_others_lets_no_longer_cell_through(write):
    before = csv.field_size_limit(2**24)
    try:
        message = refused(write(f"id,name\n1,a\n2,{'x' * (2**20 + 1)}\n3,c\n"))
        assert "line 3" in message
        assert csv.field_size_limit() == 2**24
    finally:
        csv.field_size_limit(before)
