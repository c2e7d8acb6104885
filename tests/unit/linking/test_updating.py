"""A new batch of B, and an old model, on what the files alone propose."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pytest
from click.testing import CliRunner

import bayeslink as bl
from bayeslink.cli import main
from bayeslink.linking import updating
from tests.messy import write_messy_files

FEW = {"draws": 60, "tune": 30, "chains": 2}
FLAGS = ["--draws", "60", "--tune", "30", "--chains", "2"]


def pairs_of(table):
    return {*zip(table["id_a"].to_pylist(), table["id_b"].to_pylist(), strict=True)}


def command(*words):
    return CliRunner().invoke(main, [*map(str, words)])


@pytest.fixture(scope="module")
def messy(tmp_path_factory):
    """Files with ids, names of columns and missing words of their own; B in two batches."""
    folder = tmp_path_factory.mktemp("messy")
    truth = write_messy_files(folder, n=400)
    head, *rows = (folder / "b.csv").read_text("utf-8").splitlines(keepends=True)
    half = len(rows) // 2
    for name, part in (("first", rows[:half]), ("second", rows[half:])):
        (folder / f"{name}.csv").write_text("".join([head, *part]), "utf-8")
    batch = {row.split(",")[0] for row in rows[half:]}
    done = command("link", folder / "a.csv", folder / "first.csv", *FLAGS, "-o", folder / "first")
    assert done.exit_code == 0, done.output
    return folder, {pair for pair in truth if pair[1] in batch}


def test_bare_defaults_on_the_command_line(messy):
    folder, truth = messy
    for words in (
        ("--update", folder / "first", folder / "second.csv", "-o", folder / "update"),
        (folder / "a.csv", folder / "second.csv", "--model", folder / "first", "-o", folder / "m"),
    ):
        done = command("link", *words, *FLAGS)
        assert done.exit_code == 0, done.output
        found = pairs_of(bl.open_run(words[-1]).links)
        assert len(found & truth) > 0.95 * len(truth)
        assert len(found & truth) > 0.9 * len(found)


@pytest.mark.parametrize("numbered", [False, True])
def test_an_update_beside_its_run_drops_no_link(tmp_path, numbered):
    """What it links are other records, whatever they are called."""
    made = bl.simulate(300, overlap=0.5, errors=1, seed=4)
    fields = [bl.name("gname"), bl.name("fname"), bl.date("dob")]
    ids = {"id": None} if numbered else {}
    names = [name for name in made.a.column_names if not (numbered and name == "id")]
    a, b = made.a.select(names), made.b.select(names)
    for name, part in (("a", a), ("b1", b.slice(0, 150)), ("b2", b.slice(150)), ("b", b)):
        pa.csv.write_csv(part, tmp_path / f"{name}.csv")
    bl.link(tmp_path / "a.csv", tmp_path / "b1.csv", fields, **ids, **FEW).save(tmp_path / "run")
    bl.update(tmp_path / "run", tmp_path / "b2.csv", **FEW).save(tmp_path / "update")
    runs = [bl.open_run(tmp_path / name) for name in ("run", "update")]
    found = bl.changes(*runs)
    assert (found.added, found.dropped, found.kept) == ((), (), 0)
    assert found.elsewhere == (runs[0].n_links, runs[1].n_links)
    assert min(found.elsewhere) > 10
    done = command("compare", tmp_path / "run", tmp_path / "update")
    assert f"only one of the runs has: {runs[0].n_links:,} before" in done.stdout
    if not numbered:  # all of B linked again has the records of the first batch
        bl.link(tmp_path / "a.csv", tmp_path / "b.csv", fields, **FEW).save(tmp_path / "all")
        found = bl.changes(runs[0], tmp_path / "all")
        assert found.kept + len(found.dropped) == runs[0].n_links
        assert found.elsewhere[0] == 0
        assert found.elsewhere[1] > 10


def test_the_next_batch_follows_the_update(messy, tmp_path):
    folder, _ = messy
    first, second = tmp_path / "2.csv", tmp_path / "3.csv"
    head, *rows = (folder / "second.csv").read_text("utf-8").splitlines(keepends=True)
    first.write_text("".join([head, *rows[:120]]), "utf-8")
    second.write_text("".join([head, *rows[120:]]), "utf-8")
    for run, batch, out in ((folder / "first", first, "2"), (tmp_path / "2", second, "3")):
        done = command("link", "--update", run, batch, *FLAGS, "-o", tmp_path / out)
        assert done.exit_code == 0, done.output
    joined, report = tmp_path / "joined.csv", tmp_path / "report.html"
    for words in (("join", tmp_path / "3", "-o", joined), ("report", tmp_path / "3", "-o", report)):
        done = command(*words)
        assert done.exit_code == 0, done.output
    assert len(pa.csv.read_csv(joined)) == bl.open_run(tmp_path / "3").n_links > 0


# Fields whose levels follow from the data, of columns of simulated files.
PROPOSED = {
    "names": [bl.name("gname"), bl.name("fname")],
    "dates": [bl.date("dob")],
    "numbers": [bl.numeric("amount")],
    "postcodes": [bl.postcode("postcode")],
    "addresses": [bl.address("street")],
    "texts": [bl.text("street")],
    "companies": [bl.company("street")],
    "identifiers": [bl.identifier("postcode")],
    "phones": [bl.phone("phone")],
    "e-mails": [bl.email("mail")],
    "lists": [bl.collection("things")],
    "bands": [bl.exact("occup", bands="auto")],
    "swapped names": [bl.levenshtein("gname"), bl.levenshtein("fname")],
}


def with_more(table):
    """More kinds of columns, made of those that simulated files have."""
    born = pc.replace_substring(pc.fill_null(table["dob"], "1900-01-01"), "-", "")
    mail = pc.binary_join_element_wise(pc.fill_null(table["fname"], "x"), "post.org", "@")
    things = pc.binary_join_element_wise(table["gname"], table["occup"], table["fname"], "; ")
    amount = pc.fill_null(pc.replace_substring_regex(table["postcode"], r"\D", ""), "7")
    table = table.append_column("amount", amount)
    table = table.append_column("phone", pc.binary_join_element_wise("0", born, "55", ""))
    return table.append_column("mail", mail).append_column("things", things)


@pytest.fixture(scope="module")
def batches():
    files = bl.simulate(240, overlap=0.7, errors=1, seed=4)
    a, b = with_more(files.a), with_more(files.b)
    return a, b.slice(0, 150), b.slice(150, 60), b.slice(210)


@pytest.mark.parametrize("kind", PROPOSED)
def test_levels_of_the_data_are_those_of_the_model(batches, kind):
    a, first, second, third = batches
    names = {f.name for f in PROPOSED[kind]}
    others = [bl.levenshtein(n) for n in ("gname", "fname") if n not in names] + [bl.exact("sex")]
    jan = bl.link(a, first, [*PROPOSED[kind], *others], **FEW)
    feb = bl.update(jan, second, **FEW)
    march = bl.update(feb, third, a=a, **FEW)
    with_model = bl.link(a, second, model=jan, **FEW)
    for run in (feb, march, with_model):
        for f, before in zip(run.pairs.fields, jan.pairs.fields, strict=True):
            assert len({*f.labels}) == f.n_levels
            learned = [f.labels.index(label) for label in before.labels if label in f.labels]
            assert {*before.labels} >= {label for label in f.labels if "swapped" not in label}
            assert sum(f.m_prior[k] for k in learned) > sum(before.m_prior) + 20


def test_a_level_that_the_batch_does_not_show_keeps_its_prior():
    """Dates of which some are a year only, then none."""
    files = bl.simulate(200, overlap=0.8, errors=1, seed=4, missing=0)
    years = pc.if_else(
        pa.array([k % 4 == 0 for k in range(120)]),
        pc.utf8_slice_codeunits(files.b["dob"].slice(0, 120).combine_chunks(), 0, 4),
        files.b["dob"].slice(0, 120).combine_chunks(),
    )
    first = files.b.slice(0, 120)
    first = first.set_column(first.column_names.index("dob"), "dob", years)
    fields = [bl.date("dob"), bl.levenshtein("fname"), bl.levenshtein("gname")]
    jan = bl.link(files.a, first, fields, **FEW)
    known = next(k for k, label in enumerate(jan.pairs.fields[0].labels) if "as far" in label)
    feb = bl.link(files.a, files.b.slice(120), fields, model=jan, **FEW)
    assert feb.pairs.fields[0].labels == jan.pairs.fields[0].labels
    assert feb.pairs.fields[0].m_prior[known] > 10


def test_levels_that_were_given_must_be_those_of_the_model(batches):
    a, first, second, _ = batches
    names = [bl.levenshtein("gname"), bl.levenshtein("fname")]
    jan = bl.link(a, first, [bl.date("dob", cuts=(0, 5)), bl.name("occup"), *names], point=True)
    for fields, words in (
        ([bl.date("dob", cuts=(0, 9))], "other levels of the field 'dob': its cuts"),
        ([bl.phone("dob")], "its compare is 'date', not 'phone'"),
        ([bl.name("occup", bands=(0.3,))], "its bands"),
        ([bl.levenshtein("gname", cuts=(0, 0.5))], "its cuts"),
    ):
        with pytest.raises(bl.SettingsError, match=words):
            bl.link(a, second, fields, model=jan, point=True)


def test_repeated_ids_are_told_before_the_work(batches, monkeypatch):
    a, first, _, _ = batches
    jan = bl.link(a, first, [bl.levenshtein("gname"), bl.levenshtein("fname")], **FEW)
    monkeypatch.setattr(updating, "link_with", lambda *_, **__: pytest.fail("it was linked"))
    with pytest.raises(bl.InputError, match="3 records of the new batch have ids"):
        bl.update(jan, first.slice(0, 3))


def test_a_batch_without_ids_is_not_taken_for_the_earlier_one(batches):
    a, first, second, _ = batches
    fields = [bl.levenshtein("gname"), bl.levenshtein("fname"), bl.date("dob")]
    jan = bl.link(a, first.drop_columns("id"), fields, id=("id", None), **FEW)
    assert bl.update(jan, second.drop_columns("id"), **FEW).n_links > 0


def test_options_that_an_update_would_ignore_are_refused(messy):
    folder, _ = messy
    words = "link", "--update", folder / "first", folder / "second.csv", "-o", folder / "x"
    for option in (["--no-linked"], ["--on", "fname"], ["--theta", "3"]):
        done = command(*words, *option)
        assert done.exit_code == 2
        assert f"{option[0]} does not go with --update" in done.output


# --- files without ids: rows keep the numbers that the earlier run gave them -----------------

FIELDS = [bl.name("gname"), bl.name("fname"), bl.exact("sex"), bl.date("dob")]
LITTLE = {"draws": 60, "tune": 40, "chains": 2}


@pytest.fixture(scope="module")
def files():
    return bl.simulate(120, overlap=0.6, errors=1, seed=3)


@pytest.mark.parametrize("taken", [(), ("row", "row_")])
def test_the_rows_of_a_keep_their_numbers(files, taken):
    """Against the same update of files that have ids."""
    parts = files.b.slice(0, 80), files.b.slice(80)
    with_ids = bl.update(bl.link(files.a, parts[0], FIELDS, **LITTLE), parts[1])
    a, b, batch = (t.drop_columns(["id"]) for t in (files.a, *parts))
    for name in taken:
        a = a.append_column(name, pa.nulls(len(a), pa.string()))
    found = bl.update(bl.link(a, b, FIELDS, id=None, **LITTLE), batch)
    rows = [np.array(found.table[side].to_pylist()).astype(int) - 1 for side in ("id_a", "id_b")]
    links = {
        (files.a["id"][i].as_py(), parts[1]["id"][j].as_py())
        for i, j in np.transpose(rows).tolist()
    }
    expected = with_ids.table.filter(pc.equal(with_ids.table["decision"], "link"))
    assert len(links) > 10
    assert links == {(row["id_a"], row["id_b"]) for row in expected.to_pylist()}


def test_rows_without_ids_on_the_command_line(files, tmp_path):
    a, b, batch, out = (tmp_path / name for name in ("a.csv", "b.csv", "batch.csv", "out"))
    for path, table in ((a, files.a), (b, files.b.slice(0, 80)), (batch, files.b.slice(80))):
        table.drop_columns(["id"]).to_pandas().to_csv(path, index=False)
    bl.link(a, b, FIELDS, id=None, **LITTLE).save(out)
    words = ["link", "--update", out, batch, "-o", tmp_path / "batch"]
    done = CliRunner().invoke(main, [*map(str, words)])
    assert done.exit_code == 0, done.output
    before, after = bl.open_run(out).table, bl.open_run(tmp_path / "batch").table
    linked = set(before.filter(pc.equal(before["decision"], "link"))["id_a"].to_pylist())
    assert len(after)
    assert not linked & set(after["id_a"].to_pylist())
