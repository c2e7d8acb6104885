"""Attacks on the product: broken inputs and damaged run directories, each with what must hold.

`test_attack.py` runs some of each, `make verify` as many as docs/reliability.md tells.
"""

from __future__ import annotations

import gzip
import io
import json
import random
import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
from click.testing import CliRunner

import bayeslink as bl
from bayeslink.cli import main
from bayeslink.judging.judgements import FILE, Judgements
from bayeslink.review.queues import Desk

SECRET = "SECRETNAME"
FIELDS = ("--on", "gname:levenshtein", "--on", "dob:date", "--on", "sex:exact")
FINE = (0, 2, 3, 4)


def call(*words):
    with mock.patch("bayeslink.review.server.serve", look_at_every_case):
        return CliRunner().invoke(main, [*map(str, words)])


def look_at_every_case(material, *, ready, **_):
    """In place of the review server: all that its page would ask for, and one judgement."""
    with (
        closing(Judgements(material.folder / FILE)) as judgements,
        closing(Desk(material, judgements)) as desk,
    ):
        seen = [desk.state("r"), desk.overview("r"), desk.next("open", "r")]
        for key in map(str, range(1, len(material.cases) + 1)):
            case = desk.case(key, "r")
            seen += [case, desk.evidence(key)]
        if len(material.cases):
            desk.judge(key, case["version"], "r", ["unsure"] * len(case["verdicts"]))
        json.dumps(seen, allow_nan=False)
        ready("there", "there")


def held(result, *secrets):
    """What must hold of any call: an exit code of ours, words of ours, nobody's name."""
    told = result.output
    assert result.exit_code in FINE, (result.exit_code, told, result.exception)
    assert "Traceback" not in told, told
    assert "a fault of bayeslink" not in told, told
    if result.exit_code:
        assert told.startswith(("bayeslink: ", "Usage: ", "note: ")), told
        assert len(told.strip().splitlines()) <= 4, told
    for secret in secrets:
        assert secret not in told, told
    return result.exit_code


# --- inputs -----------------------------------------------------------------------------------


def csv_text(rng, n=12):
    rows = [
        f"{k},{SECRET}{rng.choice('abcdef')},19{k % 90 + 10}-0{k % 9 + 1}-1{k % 9},{'mf'[k % 2]}"
        for k in range(n)
    ]
    return "id,gname,dob,sex\n" + "\n".join(rows) + "\n"


def malformed(rng):
    """A broken file: its name and its bytes."""
    content = csv_text(rng).encode()
    kind = rng.choice(_BREAKS)
    if kind == "gzip":
        content = gzip.compress(content)
    elif kind in ("parquet", "parquet-odd"):
        content = _parquet(rng, kind == "parquet-odd")
    elif kind == "encoding":
        codec = rng.choice(["utf-16-le", "utf-16-be", "utf-32-le", "utf-16", "utf-7", "cp500"])
        return "broken.csv", content.decode().encode(codec)
    elif kind == "lines":
        lines = content.decode().splitlines()
        rng.shuffle(lines)
        return "broken.csv", rng.choice(["\r", "\n\r", "\0", "\u2028", ""]).join(lines).encode()
    for _ in range(rng.choice([1, 1, 2, 5])):
        content = _damaged(content, rng)
    return f"broken.{'parquet' if 'parquet' in kind else 'csv'}", content


_BREAKS = ("bytes", "bytes", "bytes", "gzip", "parquet", "parquet-odd", "encoding", "lines")
_PIECES = [b'"', b'""', b"\0", b"\xff", b",", b"\n", b"\r", b";", b"\t", b"\xef\xbb\xbf", b"=1+1",
           b'"\n"', b"{script}", b"\xe2\x80\xae", b"'", b"9" * 400, b"\n" * 50]  # fmt: skip


def _parquet(rng, odd):
    table = pa.csv.read_csv(pa.BufferReader(csv_text(rng).encode()))
    if odd:
        column = rng.choice(table.column_names)
        values = rng.choice([[[1]] * 12, [{"x": 1}] * 12, [b"\xff"] * 12, [None] * 12, [0.1] * 12])
        table = table.set_column(table.column_names.index(column), column, pa.array(values))
    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue()


def _damaged(content, rng):
    """The bytes with something cut off, changed or put in."""
    at = rng.randrange(len(content) + 1)
    how = rng.choice(["cut", "flip", "insert", "drop", "swap"])
    if how == "cut":
        return content[:at]
    if how == "flip":
        changed = bytearray(content)
        if at < len(changed):
            changed[at] ^= 1 << rng.randrange(8)
        return bytes(changed)
    if how == "insert":
        return content[:at] + rng.choice(_PIECES) + content[at:]
    if how == "drop":
        return content[:at] + content[at + rng.randrange(1, 9) :]
    return content[at:] + content[:at]


def attack_inputs(folder: Path, n: int, seed: int) -> Counter[int]:
    """Link n broken files with a good one; how often which exit code."""
    rng, codes = random.Random(seed), Counter()
    good = folder / "good.csv"
    good.write_text(csv_text(rng))
    for _ in range(n):
        name, content = malformed(rng)
        bad, out = folder / name, folder / "out"
        bad.write_bytes(content)
        before = sorted(folder.iterdir())
        pair = [bad, good] if rng.random() < 0.5 else [good, bad]
        result = call("link", *pair, *FIELDS, "--point", "-o", out)
        codes[held(result, SECRET)] += 1
        assert out.exists() == (result.exit_code == 0)
        shutil.rmtree(out, ignore_errors=True)
        assert sorted(folder.iterdir()) == before
        bad.unlink()
    return codes


# --- run directories --------------------------------------------------------------------------


def commands(out, truth):
    """Every command that reads a run directory."""
    return {
        "report": ("report", out),
        "explain": ("explain", out, "A000001", "B000001"),
        "evaluate": ("evaluate", out, "--truth", truth),
        "evaluate --labels": ("evaluate", out, "--labels"),
        "review --plan": ("review", out, "--plan"),
        "review": ("review", out, "--no-browser"),
        "join": ("join", out, "--how", "outer", "-o", out.with_name("joined.csv")),
        "population": ("population", out),
        "link --model": ("link", *(out.with_name("files") / f"{side}.csv" for side in "ab"),
                         "--model", out, "--point", "-o", out.with_name("again")),
        "link --labels": ("link", "--config", out / "link.toml", "--labels", out, "-o",
                          out.with_name("again")),
    }  # fmt: skip


def make_run(folder: Path) -> tuple[Path, Path]:
    """A run directory with a judged sample, and the truth."""
    files = bl.simulate(40, seed=5)
    bl.write_simulation(files, folder / "files")
    fields = [bl.levenshtein("gname"), bl.levenshtein("fname"), bl.exact("sex")]
    paths = [folder / "files" / f"{side}.csv" for side in "ab"]
    run = bl.link(*paths, fields, draws=30, tune=10, chains=2)
    run.save(folder / "whole")
    sample = bl.draw_sample(folder / "whole", 10)
    with Judgements(folder / "whole" / FILE) as judgements:
        for k, pair in enumerate(sample.pairs):
            verdict = "link" if sample.strata[sample.stratum[k]].linked else "nonlink"
            judgements.add(case=str(k), version="1", reviewer="r", verdicts={pair: verdict})
    return folder / "whole", folder / "files" / "truth.csv"


def damage(out: Path, rng: random.Random) -> str:
    """Do something to one file of a run directory; what was done."""
    path = rng.choice(sorted(out.iterdir()))
    how = rng.choice(["bytes", "bytes", "gone", "empty", "folder", "inside", "inside", "inside"])
    if how == "bytes":
        path.write_bytes(_damaged(path.read_bytes(), rng))
    elif how in ("gone", "folder"):
        path.unlink()
        if how == "folder":
            path.mkdir()
    elif how == "empty":
        path.write_bytes(b"")
    elif path.suffix == ".parquet":
        _edit_table(path, rng)
        if rng.random() < 0.7:  # as if a run had written it so
            _forget_digest(out, path.name)
    elif path.suffix == ".json":
        _edit_json(path, rng)
    elif path.suffix == ".toml":
        lines = path.read_text("utf-8").splitlines()
        k = rng.randrange(len(lines))
        lines[k] = rng.choice(["", f"{lines[k].split('=')[0]}= 3", lines[k] + "x", "a = []"])
        path.write_text("\n".join(lines), "utf-8")
    elif path.suffix == ".sqlite":
        _edit_sqlite(path, rng)
    return f"{path.name}: {how}"


def _forget_digest(out, name):
    summary = json.loads((out / "run.json").read_text("utf-8"))
    summary["files"].pop(name, None)
    (out / "run.json").write_text(json.dumps(summary), "utf-8")


def _edit_table(path, rng):
    table = pq.read_table(path)
    column = rng.randrange(table.num_columns)
    name = table.column_names[column]
    n = len(table)
    values = [["x"] * n, [None] * n, [-1] * n, [float("nan")] * n, [2**40] * n, [0.5] * n, [0] * n]
    how = rng.choice(["drop", "rename", "values", "values", "values", "rows", "twice"])
    if how == "drop":
        table = table.drop_columns([name])
    elif how == "rename":
        table = table.rename_columns([*table.column_names[:column], "odd",
                                      *table.column_names[column + 1 :]])  # fmt: skip
    elif how == "values":
        table = table.set_column(column, name, pa.array(rng.choice(values)))
    elif how == "rows":
        table = table.slice(0, n // 2)
    else:
        table = pa.concat_tables([table, table])
    pq.write_table(table, path)


def _edit_json(path, rng):
    """Remove or change something anywhere in it."""
    data = node = json.loads(path.read_text("utf-8"))
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not keys:
            return
        key = rng.choice(keys)
        if isinstance(node[key], (dict, list)) and node[key] and rng.random() < 0.7:
            node = node[key]
            continue
        if rng.random() < 0.4:
            del node[key]
        else:
            node[key] = rng.choice([None, "x", -1, 1e308, [], {}, True, [1, "x"], 2**70, 0.5])
        break
    path.write_text(json.dumps(data), "utf-8")


def _edit_sqlite(path, rng):
    statement = rng.choice(
        [
            "DROP TABLE verdict",
            "DROP VIEW standing",
            "DROP TABLE sampled",
            "UPDATE stratum SET size = 'x'",
            "UPDATE stratum SET expected = 'x'",
            "UPDATE sampled SET id_a = x'ff'",
            "UPDATE sample SET seed = 'x'",
            "PRAGMA application_id = 1",
            "PRAGMA user_version = 99",
            "UPDATE entry SET reviewer = x'ff'",
            "DELETE FROM stratum",
        ]
    )
    with closing(sqlite3.connect(path)) as db:
        db.execute(statement)
        db.commit()


def attack_directories(folder: Path, n: int, seed: int) -> Counter[str]:
    """Damage a run directory n times for each command; how often which exit code, by command."""
    rng, codes = random.Random(seed), Counter()
    whole, truth = make_run(folder)
    out = folder / "out"
    for name in commands(out, truth):
        for _ in range(n):
            shutil.copytree(whole, out)
            done = damage(out, rng)
            try:
                codes[f"{name}: {held(call(*commands(out, truth)[name]))}"] += 1
            except AssertionError as error:
                raise AssertionError(f"{name} after {done}: {error}") from error
            for made in (out, folder / "again"):
                shutil.rmtree(made, ignore_errors=True)
            (folder / "joined.csv").unlink(missing_ok=True)
    return codes
