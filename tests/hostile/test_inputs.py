"""Rows 1–22, 25–29, 31 and 33–35 of the table of hostile inputs, as a user meets them.

Everything goes through the command line on files the test writes (or `link` for frames). The
number in a test's name, or at the start of a case's id, is the row's.
"""

import csv
import datetime as dt
import io
import json
import math
import os
import pathlib
import random
import resource
import shutil
import time
from decimal import Decimal

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import bayeslink as bl
from bayeslink.cli import main
from bayeslink.runs import run_directory

SECRET = "SECRETNAME"  # stands in the offending cell: no message may show it
NAMES = ["abelard", "bronwyn", "cuthbert", "dymphna", "ermintrude", "fflur", "guinevere"]
NAMES += ["hrothgar", "ignatius", "jocasta", "kunigunde", "llewellyn"]
PEOPLE = [(name, str(1900 + k)) for k, name in enumerate(NAMES)]
HEADER = ("id", "name", "year")
ON = ("--on", "name:levenshtein", "--on", "year:exact")
FIELDS = [bl.levenshtein("name"), bl.exact("year")]
EVERYONE = {(f"a{k}", f"b{k}") for k in range(len(PEOPLE))}
N = len(PEOPLE) + 1  # the last line of a good file


# --- helpers ----------------------------------------------------------------------------------


def text(rows, header=HEADER):
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([header, *rows])
    return out.getvalue()


def good(side, extra=(), header=HEADER):
    """The twelve people, with ids a0 … a11 or b0 … b11, and any further rows."""
    return text([*((f"{side}{k}", *person) for k, person in enumerate(PEOPLE)), *extra], header)


def frame(side="a", **columns):
    """The twelve people as a dict of columns."""
    names, years = map(list, zip(*PEOPLE, strict=True))
    return {"id": [f"{side}{k}" for k in range(12)], "name": names, "year": years} | columns


@pytest.fixture
def write(tmp_path):
    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture
def files(write):
    """Two good files, which link one to one."""
    return write("a.csv", good("a")), write("b.csv", good("b"))


def call(*args):
    return CliRunner().invoke(main, ["link", *map(str, args)])


def tree(folder):
    """Every path below the folder, with the bytes of the files."""
    return {p: p.read_bytes() if p.is_file() else None for p in sorted(folder.rglob("*"))}


def rejected(code, folder, *args, says=(), secret=SECRET):
    """The call fails with `code`, tells the user `says`, and leaves the folder as it was."""
    before = tree(folder)
    result = call(*args)
    assert result.exit_code == code, (result.output, result.exception)
    assert result.output.startswith(("bayeslink: ", "Usage: "))
    for words in says:
        assert words in result.output
    assert not any(cell in result.output for cell in (secret, *NAMES))
    assert tree(folder) == before
    return result.output


class Out:
    """What a run left in its output directory."""

    def __init__(self, folder, message):
        read = {p.name: p.read_bytes() for p in folder.iterdir()}  # Arrow opens no path with \xff
        self.table, self.message = pq.read_table(pa.BufferReader(read["links.parquet"])), message
        parameters = pq.read_table(pa.BufferReader(read["parameters.parquet"]))
        self.weights = parameters["match_weight"].to_pylist()
        self.json = json.loads(read["run.json"])
        self.warnings = "\n".join(self.json["warnings"])

    @property
    def pairs(self):
        return set(zip(*(self.table[c].to_pylist() for c in ("id_a", "id_b")), strict=True))

    @property
    def chances(self):
        """Link probabilities, sorted."""
        return sorted(self.table["link_probability"].to_pylist(), key=lambda p: p or 0)

    def level(self, field, id_a):
        """Level of the field in the link of this record of A."""
        return self.table[f"gamma_{field}"].to_pylist()[self.table["id_a"].to_pylist().index(id_a)]

    def counted(self, what, field):
        return next(f[what] for f in self.json["fields"] if f["name"] == field)


def linked(a, b, *args, on=ON, out=None):
    out = out or pathlib.Path(a).parent / "out"
    result = call(a, b, *on, *args, "-o", out)
    assert result.exit_code == 0, (result.output, result.exception)
    assert "links" in result.output
    return Out(out, result.output)


# --- rows that reject a file ------------------------------------------------------------------

X, AT = good("x"), f"line {N + 1}"
BOTH = f"{AT} and line {N + 2}"
BAD_FILES = {
    "1-no-bytes": ("", "no records"),
    "1-header-only": ("id,name,year\n", "no records"),
    "2-no-header": (f"x,{SECRET},1900\ny,b,1901\n", "line 1", "no header"),
    "2-wrong-column": (
        X.replace("name", "nmae", 1),
        "'name'",
        "'nmae'",
        "look alike",
        "'id', 'nmae', 'year'",
    ),
    "3-preamble": (f"Extract {SECRET}\n\n{X}", "line 3", "--skip-lines 2"),
    "3-footer": (X + f"{SECRET} rows\n", AT, "footer", "--quarantine"),
    "4-two-splits": (f"x,id,name,year,x;id;name;year;x\n1,2,{SECRET},4,5;6;7;8;9\n", "--delimiter"),
    "4-no-split": (X.replace(",", "^"), "line 1", "--delimiter"),
    "5-short": (X + f"y,{SECRET}\n", AT, "2 cells", "--quarantine"),
    "5-long": (X + f"y,{SECRET},1,2\nz,z,1\n", AT, "4 cells"),
    "6-open-quote": (X + f'y,"{SECRET},1\n' + "y,z,1\n" * 200_000, AT, "quote"),
    "6-open-then-closed": (X + f'y,"{SECRET},1\nz,"b",1\n', AT, "quote"),
    "43-two-stray-quotes": (X + 'y,"a,1\nz,b,1\nz2,c,1\nz3,d",1\n', AT, "quotes", "--multiline"),
    "43-one-row-swallowed": (X + 'y,"a,1\nz,b",1\n', AT, "quotes", "--multiline"),
    "43-among-the-last-cells": (X + 'y,a,"1\r\nz,b,1\r\nz,b,1"\r\n', AT, "quotes"),
    "8-latin1": ((X + f"y,{SECRET} José,1\n").encode("latin-1"), AT, "--encoding"),
    "10-nul": (X + f"y,{SECRET}\0,1900\n", AT, "NUL"),
    "10-five-megabytes": (X + f"y,{SECRET * 500_000},1\n", AT),
    "12-twice": (f"id,name,year,name\na,{SECRET},1900,b\n", "'name'", "columns 2 and 4"),
    "12-other-case": (f"id,name,year,Name\na,{SECRET},1900,b\n", "'Name'", "columns 2 and 4"),
    "14-repeated": (X + "".join(f"{SECRET},{k},1\n" for k in "abc"), "2 records", "'id'", BOTH),
    "14-blank": (X + f",{SECRET},1\n  ,{SECRET},2\n", "2 records", "'id'", BOTH),
}


@pytest.mark.parametrize("side", "AB")
@pytest.mark.parametrize("case", BAD_FILES.values(), ids=BAD_FILES)
def test_rejected_files(case, side, write, files, tmp_path):
    bad = write("bad.csv", case[0])
    pair = (bad, files[1]) if side == "A" else (files[0], bad)
    says = [f"input {side}", "bad.csv", *case[1:]]
    rejected(3, tmp_path, *pair, *ON, "-o", tmp_path / "out", says=says)


@pytest.mark.parametrize("side", "AB")
def test_19_date_of_unknown_form(side, write, files, tmp_path):
    secret = "01/02/1985"  # which the other file does not help to read
    iso = text([("x", "a", "1980-02-01"), ("y", "b", "1981-02-01")])
    good_one, bad = write("iso.csv", iso), write("bad.csv", iso + f"z,c,{secret}\n")
    pair = (bad, good_one) if side == "A" else (good_one, bad)
    on = ("--on", "name:exact", "--on", "year:date")
    says = ["bad.csv", "which number is the day", "'year'", "--on year:date:format=%d/%m/%Y"]
    rejected(3, tmp_path, *pair, *on, "-o", tmp_path / "out", says=says, secret=secret)
    dated = ("--on", "name:exact", "--on", "year:date:format=%d/%m/%Y")
    people = [("x", "a", "01/02/1980"), ("y", "b", "31/03/1981")]
    both = write("said.csv", text(people)), write("again.csv", text(people[::-1]))
    assert linked(*both, on=dated).counted("invalid", "year") == [0, 0]


BAD_FRAMES = {
    "1": (pa.table({k: pa.array([], pa.string()) for k in HEADER}), ["no records"]),
    "2": (pl.DataFrame({"id": ["x"], "nmae": [SECRET], "year": ["1"]}), ["Did you mean 'nmae'?"]),
    "10-nul": (pa.table(frame(name=[f"{SECRET}\0"] * 12)), ["'name'", "NUL"]),
    "10-five-megabytes": (pa.table(frame(name=[SECRET * 500_000] + ["x"] * 11)), ["'name'"]),
    "14-repeated": (pd.DataFrame(frame(id=[SECRET] * 12)), ["11 records", "row 1 and row 2"]),
    "14-blank": (pl.DataFrame(frame(id=["x", None, "", *"abcdefghi"])), ["row 2 and row 3"]),
    "15-rounded": (pd.DataFrame(frame(id=[2.0**53 + 2 * k for k in range(12)])), ["'id'", "2^53"]),
    "33-list": (pa.table(frame(name=[[SECRET]] * 12)), ["'name'", "list"]),
    "33-struct": (pl.DataFrame(frame(name=[{"x": SECRET}] * 12)), ["'name'", "struct"]),
    "33-bytes": (pd.DataFrame(frame(name=[SECRET.encode()] * 12)), ["'name'", "binary"]),
}


@pytest.mark.parametrize(("bad", "says"), BAD_FRAMES.values(), ids=BAD_FRAMES)
def test_rejected_frames(bad, says):
    with pytest.raises(bl.InputError) as caught:
        bl.link(pa.table(frame("a")), bad, FIELDS)
    for words in ["input B", *says]:
        assert words in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("values", [[["x", SECRET]] * 12, [{"x": SECRET}] * 12, [b"\xff"] * 12])
def test_33_parquet_column_without_a_text_form(values, files, tmp_path):
    pq.write_table(pa.table(frame(name=values)), tmp_path / "bad.parquet")
    says = ["input B", "bad.parquet", "'name'", "type"]
    args = files[0], tmp_path / "bad.parquet", "-o", tmp_path / "out"
    rejected(3, tmp_path, *args, *ON, says=says)
    assert linked(*args[:2], on=ON[2:]).table.num_rows == 12  # not asked for, not in the way


# --- rows that set aside, or need an option ---------------------------------------------------


def test_3_preamble_skipped_with_the_option_named(write, files):
    b = write("late.csv", f"Extract of 1 May\n\n{good('b')}")
    assert linked(files[0], b, "--skip-lines", 0, "--skip-lines", 2).pairs == EVERYONE


def test_5_quarantine_sets_aside_and_counts(write, files, tmp_path):
    a = write("ragged.csv", good("a") + 'x,1\n"y","new\nline",1,2\n')
    out = linked(a, files[1], "--quarantine", tmp_path / "aside.txt")
    assert out.pairs == EVERYONE
    assert [i["quarantined"] for i in out.json["inputs"]] == [2, 0]
    aside = f'{N + 1}\tx,1\n{N + 2}\t"y","new\nline",1,2\n'
    assert (tmp_path / "aside.txt").read_text() == aside


@pytest.mark.parametrize("why", ["B is bad", "B shares the file", "disk is full"])
def test_5_quarantine_file_is_not_left_by_a_failed_run(why, write, files, tmp_path, monkeypatch):
    a, b = write("ragged.csv", good("a") + "x\n"), files[1]
    if why == "B is bad":
        b = write("bad.csv", HEADER[0])
    elif why == "B shares the file":
        b = write("ragged_too.csv", good("b") + "x\n")
    else:
        monkeypatch.setattr(pyarrow.csv, "write_csv", disk_full)
    before = tree(tmp_path)
    result = call(a, b, *ON, "--quarantine", tmp_path / "aside.txt", "-o", tmp_path / "out")
    if why == "B shares the file" and result.exit_code == 0:  # as good as a refusal
        assert (tmp_path / "aside.txt").read_text().count(f"{N + 1}\tx\n") == 2
    else:
        assert result.exit_code in {"B is bad": (3,), "disk is full": (4,)}.get(why, (2, 4))
        assert tree(tmp_path) == before


def test_43_multi_line_cells_that_are_meant(write, files, tmp_path):
    a = write("lines.csv", good("a") + 'a12,"x, y\nlike, a, record\nz",1\n')
    rejected(3, tmp_path, a, files[1], *ON, "-o", tmp_path / "out", says=["line 14"])
    assert linked(a, files[1], "--multiline").json["n_a"] == 13
    again = call("--config", tmp_path / "out" / "link.toml", "-o", tmp_path / "again")
    assert again.exit_code == 0, again.output
    write("link.toml", "multiline = 1")
    config = tmp_path / "link.toml"
    rejected(
        2, tmp_path, *files, *ON, "--config", config, "-o", tmp_path / "no", says=["multiline"]
    )


def test_8_and_9_declared_and_marked_encodings(write):
    def people(side):
        return good(side, [(f"{side}12", "José Muñoz €", "1980")])

    a = write("a.csv", people("a"))
    variants = {
        "cp1252": people("b").encode("cp1252"),
        "utf-16-le": b"\xff\xfe" + people("b").encode("utf-16-le"),
        "utf-16-be": b"\xfe\xff" + people("b").encode("utf-16-be"),
        "utf-8-sig": people("b").encode("utf-8-sig"),
    }
    for encoding, content in variants.items():
        b = write(f"{encoding}.csv", content)
        declared = ("--encoding", "utf-8", "--encoding", "cp1252") if encoding == "cp1252" else ()
        out = linked(a, b, *declared, "--force")
        assert out.pairs == EVERYONE | {("a12", "b12")}
        assert out.level("name", "a12") == 4


# --- rows that work, with values kept ---------------------------------------------------------


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_4_delimiter_is_told(delimiter, write, files):
    b = write("b.txt", good("b", [("b12", "a,b", "1")]).replace(",", delimiter))
    assert linked(files[0], b).pairs == EVERYONE


def test_7_mixed_line_ends_and_newlines_inside_quotes(write):
    values = ["x\ny", "x\r\ny", "x y", "x\ry", "xy"]
    sides = []
    for side in "ab":
        lines = [f'"{side}\r\n{k}","{value}",{1900 + k}' for k, value in enumerate(values)]
        ends = ["\r\n", "\r", "\n", "\r\n", "\r", ""]
        rows = "".join(map("".join, zip(["id,name,year", *lines], ends, strict=True)))
        sides.append(write(f"{side}.csv", rows))
    out = linked(*sides, on=("--on", "name:exact:normalise="))
    assert out.pairs == {(f"a\r\n{k}", f"b\r\n{k}") for k in range(len(values))}
    assert (out.json["n_a"], out.counted("distinct", "name")) == (5, [5, 5])


def test_11_ten_thousand_columns(write, files):
    header = ["id", *(f"c{k}" for k in range(10_000)), "name", "year"]
    rows = [(f"b{k}", *[""] * 10_000, *person) for k, person in enumerate(PEOPLE)]
    assert linked(files[0], write("wide.csv", text(rows, header))).pairs == EVERYONE


NAMED = ['x"; DROP TABLE t--', "id_a", "match_weight", "gamma_name", "decision", "rowid", "⚠ é"]


@pytest.mark.parametrize("name", NAMED)
def test_13_header_that_is_code_or_an_internal_name(name, write, tmp_path):
    sides = [write(f"{s}.csv", good(s, header=("id", "name", name))) for s in "ab"]
    out = linked(*sides, on=("--on", "name:levenshtein", "--on", name))
    assert out.pairs == EVERYONE
    assert set(out.table[f"gamma_{name}"].to_pylist()) == {2}
    again = call("--config", tmp_path / "out" / "link.toml", "-o", tmp_path / "again")
    assert again.exit_code == 0, again.output
    assert Out(tmp_path / "again", "").table.equals(out.table)
    as_id = [write(f"{s}.csv", good(s, header=(name, "name", "year"))) for s in "ab"]
    assert linked(*as_id, "--id", name, "--force").pairs == EVERYONE


IDS = ["7", "007", "07", "9007199254740992", "9007199254740993", "1e3", "1000", "-0", "0", " 7"]


def test_15_ids_are_exact(write):
    people = [(i, *person) for i, person in zip(IDS, PEOPLE, strict=False)]
    out = linked(write("a.csv", text(people)), write("b.csv", text(people[::-1])))
    assert out.pairs == {(i, i) for i in IDS}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_15_whole_number_ids_of_frames_are_exact(make):
    ids = [2**53 + k for k in range(12)]
    run = bl.link(make(frame("a")), make(frame(id=ids)), FIELDS)
    assert sorted(run.table["id_b"].to_pylist()) == [str(i) for i in ids]
    assert type(run.links) is type(make({"x": [1]}))


def test_16_leading_zero_far_into_the_file(write):
    many = [(f"a{k}", "n", str(50_000 + k)) for k in range(25_000)]
    a = write("a.csv", text([*many, ("zero", "n", "01234"), ("none", "n", "1234")]))
    b = write("b.csv", text([("b", "n", "01234"), ("c", "n", "50017")]))
    out = linked(a, b, "--point", on=("--on", "year:exact"))
    assert out.pairs == {("zero", "b"), ("a17", "c")}


def test_17_words_that_look_like_nothing_are_text(write):
    words = ["Null", "NA", "None", "True", "nan", "NULL?", "-", "N/A", "inf", "#N/A", "false"]
    sides = [write(f"{s}.csv", text([(f"{s}{w}", w, "1") for w in words])) for s in "ab"]
    out = linked(*sides, on=("--on", "name:exact"))
    assert out.pairs == {(f"a{w}", f"b{w}") for w in words}
    assert out.counted("missing", "name") == [0, 0]
    declared = ("--missing", "NA", "--missing", "Null", "--theta", 1, "--force")
    told = linked(*sides, *declared, on=("--on", "name:exact"))
    assert told.pairs == {(f"a{w}", f"b{w}") for w in words[2:]}
    assert told.counted("missing", "name") == [2, 2]
    frames = [pd.DataFrame({"id": words, "name": words}) for _ in "ab"]
    assert len(bl.link(*frames, [bl.exact("name")]).links) == len(words)


def test_18_quoted_and_unquoted_nothing_are_missing_and_counted(write, files):
    rows = good("a").splitlines()
    rows[1], rows[2] = 'a0,"",1900', "a1,,1901"
    out = linked(write("gaps.csv", "\n".join(rows)), files[1])
    assert out.counted("missing", "name") == [2, 0]
    assert out.counted("invalid", "name") == [0, 0]
    assert (out.pairs, out.level("name", "a0"), out.level("name", "a1")) == (EVERYONE, 0, 0)


@pytest.mark.parametrize(
    ("comparison", "fine", "values"),
    [
        ("date", "1980-02-01", ["9999-12-31", "2100-01-01"]),
        ("date:format=%d/%m/%Y", "01/02/1980", ["31/12/9999", "1/2/"]),
        ("numeric", "40", ["-3", "inf", "nan", "1e999", "4_2", "forty", "--1"]),
        ("geo", "12.5", ["91", "-91", "x", "nan", "1\x1f2"]),
    ],
)
def test_20_impossible_values_are_missing_and_counted(comparison, fine, values, write):
    header = (*HEADER, "longitude")
    extra = [(f"x{k}", f"odd {k}", v, "1") for k, v in enumerate(values)]
    rows = [(f"a{k}", name, fine, "1") for k, name in enumerate(NAMES)]
    a = write("a.csv", text([*rows, *extra], header))
    b = write("b.csv", text([(i.replace("a", "b"), *rest) for i, *rest in rows], header))
    out = linked(a, b, on=(*ON[:2], "--on", f"year:{comparison}"))
    field = "year,longitude" if comparison == "geo" else "year"
    assert out.counted("invalid", field) == [len(values), 0]
    assert out.counted("missing", field) == [0, 0]
    assert out.pairs == EVERYONE


def test_20_a_date_that_does_not_exist_is_compared_digit_by_digit(write):
    rows = [(f"{k}", name, f"1980-02-{k + 1:02}") for k, name in enumerate(NAMES)]
    odd = [*rows[:-1], (rows[-1][0], rows[-1][1], "1980-02-32")]
    out = linked(write("a.csv", text(odd)), write("b.csv", text(rows)),
                 on=("--on", "name:exact", "--on", "year:date:cuts=0,30"))  # fmt: skip
    assert out.counted("invalid", "year") == [0, 0]
    assert out.level("year", rows[-1][0]) == 3  # one digit wrong


def test_21_composed_and_decomposed(write):
    a = write("a.csv", good("a", [("a12", "Jos\u00e9", "1980")]))
    b = write("b.csv", good("b", [("b12", "Jose\u0301", "1980")]))
    assert linked(a, b, on=("--on", "name:exact", "--on", "year:exact")).level("name", "a12") == 2
    as_is = linked(a, b, "--force", on=("--on", "name:exact:normalise=", "--on", "year:exact"))
    assert as_is.level("name", "a12") == 1


def test_22_invisible_characters_and_homoglyphs_are_kept(write):
    odd = ["anna", "an\u200bna", "\u200fanna", "\u0430nna", "anna\u2060", "\u202eanna"]
    sides = [write(f"{s}.csv", text([(f"{s}{w}", w, "1") for w in odd])) for s in "ab"]
    out = linked(*sides, on=("--on", "name:exact"))
    assert out.pairs == {(f"a{w}", f"b{w}") for w in odd}
    assert out.counted("distinct", "name") == [len(odd)] * 2


def test_33_typed_parquet_columns_are_cast(write, tmp_path):
    days = [dt.datetime(1950 + k, 3, 1 + k) for k in range(12)]
    money = [f"{k}.50" for k in range(12)]
    plain = pd.DataFrame(frame("a", born=[f"{d:%F}" for d in days], paid=money, code=money))
    paid = pa.array(map(Decimal, money), pa.decimal128(20, 2))
    typed = pa.table(frame("b", born=pa.array(days, pa.timestamp("ns")), paid=paid, code=paid))
    pq.write_table(typed, tmp_path / "b.parquet")
    on = ("--on", "name:exact", "--on", "born:date:cuts=0,30", "--on", "paid:numeric:cuts=0,1",
          "--on", "code:exact")  # fmt: skip
    out = linked(write("a.csv", plain.to_csv(index=False)), tmp_path / "b.parquet", on=on)
    assert out.pairs == EVERYONE
    for field, best in {"name": 2, "born": 6, "paid": 3, "code": 2}.items():
        assert set(out.table[f"gamma_{field}"].to_pylist()) == {best}


STRANGE = ['it\'s "so"', "new\nline", "sträße 東京 🙂", "-x; rm *", os.fsdecode(b"latin-\xe9")]


@pytest.mark.parametrize("name", STRANGE, ids=["quote", "newline", "unicode", "shell", "bytes"])
@pytest.mark.parametrize("where", ["input", "output"])
def test_34_strange_paths(name, where, write, tmp_path):
    a, b = write(f"{name if where == 'input' else 'x'} a.csv", good("a")), write("b.csv", good("b"))
    folder = tmp_path / (name if where == "output" else "out")
    assert linked(a, b, out=folder).pairs == EVERYONE
    if where == "output" or name.isprintable() or "\n" in name:  # TOML cannot hold stray bytes
        again = call("--config", folder / "link.toml", "-o", tmp_path / "again")
        assert again.exit_code == 0, again.output
        assert Out(tmp_path / "again", "").pairs == EVERYONE


# --- rows about the linkage -------------------------------------------------------------------


@pytest.mark.parametrize("how", ["same path", "copy"])
def test_25_the_same_file_twice_is_refused(how, files, tmp_path):
    twin = files[0] if how == "same path" else shutil.copy(files[0], files[0].parent / "twin.csv")
    for on in ((), ON):
        out = tmp_path / "out"
        rejected(3, tmp_path, files[0], twin, *on, "-o", out, says=["same file", "dedupe"])


@pytest.mark.parametrize("same_ids", [True, False], ids=["same-ids", "own-ids"])
@pytest.mark.parametrize("theta", [None, 0.5])
@pytest.mark.parametrize("point", [True, False], ids=["point", "posterior"])
def test_26_swapping_and_shuffling_change_no_link(same_ids, theta, point, write):
    rng = random.Random(4)
    words = ["anna", "anne", "hanna", "bert", "berta", "carl", ""]
    sides = []
    for s, n, twins in (("a", 30, 3), ("b", 20, 2)):
        people = [*PEOPLE, *[("twin", "1"), ("twins", "2")] * twins, *[("more", "3")] * (5 - twins)]
        people += [(rng.choice(words), rng.choice(["1", "2", "3", ""])) for _ in range(n)]
        sides.append([(str(k) if same_ids else f"{s}{k}", *p) for k, p in enumerate(people)])
    options = () if theta is None else ("--theta", theta)
    options += ("--point",) if point else ("--draws", 100, "--tune", 50)

    def links(a, b):
        a, b = write("a.csv", text(a)), write("b.csv", text(b))
        return linked(a, b, *options, "--force")

    first = links(*sides)
    assert first.json["point_estimate"]["tied_links"] > 5
    for turn in range(20 if point else 6):
        a, b = (rng.sample(side, len(side)) for side in sides)
        again = links(b, a) if turn % 2 else links(a, b)
        pairs = {(y, x) for x, y in again.pairs} if turn % 2 else again.pairs
        assert pairs == first.pairs
        objectives = [o.json["point_estimate"]["objective"] for o in (again, first)]
        assert objectives[0] == pytest.approx(objectives[1], abs=1e-9)
        assert point or again.chances == pytest.approx(first.chances, abs=1e-9)


@pytest.mark.parametrize("theta", [None, -3])
@pytest.mark.parametrize("point", [True, False], ids=["point", "posterior"])
def test_27_every_record_identical(theta, point, write):
    a, b = (write(f"{s}.csv", text([(f"{s}{k}", "x", "1") for k in range(300)])) for s in "ab")
    start = time.perf_counter()
    options = () if theta is None else ("--theta", theta)
    out = linked(a, b, *options, *(("--point",) if point else ("--draws", 200, "--tune", 100)))
    assert time.perf_counter() - start < 30
    assert all(map(math.isfinite, out.weights))
    n = out.table.num_rows
    if point:
        assert n == (
            0 if theta is None else 300
        )  # a link that pays for itself is taken, but marked
        assert out.json["point_estimate"]["tied_links"] == n
        assert ("equally good alternative" if n else "empty") in out.warnings
    else:
        assert n == 0
        assert "empty" in out.warnings
        assert "To do first" in out.message


@pytest.mark.parametrize("structure", ["independent", "dependent"])
@pytest.mark.parametrize("who", ["A", "B", "AB"])
def test_28_field_all_missing_counts_for_nothing(who, structure, write):
    header = (*HEADER, "gone")
    sides = []
    for s in "ab":
        value = "" if s.upper() in who else "x"
        rows = [(f"{s}{k}", *person, value) for k, person in enumerate(PEOPLE)]
        sides.append(write(f"{s}.csv", text(rows, header)))
    options = ("--point", "--structure", structure)
    without = linked(*sides, *options)
    out = linked(*sides, *options, "--force", on=(*ON, "--on", "gone:levenshtein"))
    assert out.pairs == EVERYONE
    weights = [o.table["match_weight"].to_pylist() for o in (out, without)]
    # Where fields depend on each other, their priors have a share in that of the others.
    near = 1e-9 if structure == "independent" else 0.05
    assert weights[0] == pytest.approx(weights[1], abs=near)
    assert set(out.table["gamma_gone"].to_pylist()) == {0}
    assert all(map(math.isfinite, out.weights))
    assert "'gone' is missing in every record" in out.warnings
    alone = linked(*sides, "--force", on=("--on", "gone:exact"))
    assert (alone.pairs, all(map(math.isfinite, alone.weights))) == (set(), True)


@pytest.mark.parametrize("prior", ["1,1,1,1", "0.5,0.5,0.5,0.5", "1,2,5,10"])
def test_28_level_never_seen_has_a_finite_weight(prior, files):
    name = f"name:levenshtein:cuts=0,.01,.02:m_prior={prior}:u_prior={prior}"
    out = linked(*files, on=("--on", name, "--on", "year:exact"))
    assert out.counted("pairs_by_level", "name") == [0, 132, 0, 0, 12]
    assert out.pairs == EVERYONE
    assert all(map(math.isfinite, [*out.weights, *out.table["match_weight"].to_pylist()]))


def test_29_no_pair_above_theta(files, tmp_path):
    out = linked(*files, "--theta", 1000)
    assert (out.table.num_rows, out.json["n_links"]) == (0, 0)
    assert "0 links" in out.message
    assert "no pair was good enough to be linked" in out.message
    assert "the linkage is empty" in out.warnings
    header = (tmp_path / "out" / "links.csv").read_text().splitlines()
    assert len(header) == 1
    assert header[0].startswith('"id_a","id_b"')


# --- rows about settings and output -----------------------------------------------------------

BAD_SETTINGS = [
    *(("--theta", value) for value in ("nan", "inf", "-inf", "1e999", "x")),
    *(("--overlap", value) for value in ("0,1", "1,0", "-1,1", "nan,1", "1,inf", "1", "1,x")),
    *(("--on", f"id:exact:m_prior={value}") for value in ("0,1", "-1,1", "nan,1", "1,inf", "1")),
    *(("--on", f"id:exact:u_prior={value}") for value in ("0,1", "x,1")),
    ("--on", "id:levenshtein:cuts=nan"),
    ("--on", "id:exact:bands=nan"),
    ("--threads", "-1"),
    ("--skip-lines", "-1"),
]


@pytest.mark.parametrize(("flag", "value"), BAD_SETTINGS, ids=map("=".join, BAD_SETTINGS))
def test_31_numbers_that_are_none(flag, value, files, tmp_path):
    name = value.split(":")[-1].split("=")[0] if flag == "--on" else flag[2:].replace("-", "_")
    out = rejected(2, tmp_path, *files, *ON, f"{flag}={value}", "-o", tmp_path / "out")
    assert name in out.lower().replace("-", "_")


@pytest.mark.parametrize("line", ["theta = nan", "theta = inf", "overlap = [0, 1]"])
def test_31_numbers_that_are_none_in_link_toml(line, files, write, tmp_path):
    config = write("link.toml", line)
    args = *files, *ON, "--config", config, "-o", tmp_path / "out"
    rejected(2, tmp_path, *args, says=["theta" if "theta" in line else "verlap"])


def disk_full(*args, **kwargs):
    raise OSError(28, "No space left on device")


def test_35_existing_output_is_refused_without_force(files, tmp_path):
    out = tmp_path / "out"
    linked(*files)
    says = [str(out), "exists", "--force"]
    rejected(4, tmp_path, *files, *ON, "-o", out, says=says)
    assert linked(*files, "--theta", 1000, "--force").pairs == set()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.csv", "b.csv", "out"]


@pytest.mark.parametrize("force", [(), ("--force",)], ids=["", "force"])
@pytest.mark.parametrize("name", ["thesis.txt", "run.json", ""], ids=["other", "alike", "a-file"])
def test_35_what_no_run_wrote_is_never_replaced(name, force, files, tmp_path):
    out = tmp_path / "out"
    if name:
        out.mkdir()
        (out / name).write_text('{"of": "another program"}')
    else:
        out.write_text("a file")
    rejected(4, tmp_path, *files, *ON, *force, "-o", out, says=[str(out), "exists"])


@pytest.mark.parametrize("name", ["a.csv/out", "x" * 300], ids=["in-a-file", "long"])
def test_35_output_that_cannot_be_made(name, files, tmp_path):
    rejected(4, tmp_path, *files, *ON, "-o", tmp_path / name, says=["cannot write"])


def test_35_output_that_may_not_be_written(files, tmp_path, monkeypatch):
    def refuse(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(pathlib.Path, "mkdir", refuse)
    out = rejected(4, tmp_path, *files, *ON, "-o", tmp_path / "out", says=["Permission denied"])
    assert "permissions" in out


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_35_directory_without_permission(files, tmp_path):
    (tmp_path / "locked").mkdir(mode=0o555)
    rejected(4, tmp_path, *files, *ON, "-o", tmp_path / "locked" / "out", says=["cannot write"])


FAILURES = [
    ("links.parquet", pq, "write_table", 0),
    ("links.csv", pyarrow.csv, "write_csv", 0),
    ("parameters.parquet", pq, "write_table", 1),
    ("run.json", pathlib.Path, "write_text", 0),
    ("link.toml", pathlib.Path, "write_text", 1),
    ("in place", run_directory, "_exchange", 0),
]


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure[0])
def test_35_failure_half_way_leaves_the_old_output_whole(failure, files, tmp_path, monkeypatch):
    _, home, name, good_calls = failure
    linked(*files)
    real, calls = getattr(home, name), []

    def fail_once(*args, **kwargs):
        calls.append(args)
        return disk_full() if len(calls) == good_calls + 1 else real(*args, **kwargs)

    monkeypatch.setattr(home, name, fail_once)
    says = ["cannot write", "No space left", "untouched"]
    args = *files, *ON, "--theta", 1000, "--force", "-o", tmp_path / "out"
    rejected(4, tmp_path, *args, says=says)


@pytest.mark.parametrize("old", [True, False], ids=["old", "new"])
def test_35_a_real_limit_on_file_size(old, files, tmp_path):
    linked(*files, out=tmp_path / ("out" if old else "warm-up"))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = tree(tmp_path)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, limits[1]))
    try:
        result = call(*files, *ON, "--force", "-o", tmp_path / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert result.exit_code == 4, (result.output, result.exception)
    assert tree(tmp_path) == before
