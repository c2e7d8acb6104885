"""Runs that travel: opened elsewhere, repeated, joined by the command line."""

import json
import os
import shutil
import stat
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import bayeslink as bl
from bayeslink.cli import main
from bayeslink.engines.local import LocalPairs
from bayeslink.runs.schema import NotAsWrittenError
from bayeslink.runs.tables import table_in

FIELDS = [bl.levenshtein("gname"), bl.levenshtein("fname"), bl.exact("occup"), bl.date("dob")]
FEW = {"draws": 80, "tune": 40, "chains": 2}


@pytest.fixture(scope="module")
def files():
    return bl.simulate(200, overlap=0.5, errors=1, seed=2)


@pytest.fixture(scope="module")
def run(files):
    labels = files.truth.slice(0, 2).append_column("verdict", pa.array(["link", "link"]))
    return bl.link(files.a, files.b, FIELDS, labels=labels, **FEW)


@pytest.fixture(scope="module")
def home(files, tmp_path_factory):
    """A folder with the files and the run that linked them."""
    folder = tmp_path_factory.mktemp("home")
    bl.write_simulation(files, folder / "files")
    bl.link(folder / "files" / "a.csv", folder / "files" / "b.csv", FIELDS, **FEW).save(
        folder / "run"
    )
    return folder


def cli(*arguments):
    return CliRunner().invoke(main, [str(a) for a in arguments])


def _forget_digest(out, name):
    told = json.loads((out / "run.json").read_text("utf-8"))
    told["files"].pop(name, None)
    (out / "run.json").write_text(json.dumps(told), "utf-8")


def plain(value):
    return json.loads(json.dumps(value, default=str))


def test_an_opened_run_is_the_run_that_was_saved(run, tmp_path):
    run.save(tmp_path / "run")
    opened = bl.open_run(tmp_path / "run")
    before, after = run.posterior, opened.posterior
    for name in ("n_links", "log_posterior", "m", "u", "probability", "error"):
        np.testing.assert_array_equal(getattr(before, name), getattr(after, name))
    assert [len(chain) for chain in before.kept] == [len(chain) for chain in after.kept]
    for one, two in zip(before.kept[1], after.kept[1], strict=True):
        assert sorted(one) == sorted(two)
    for one, two in zip(before.linked_datasets(5), after.linked_datasets(5), strict=True):
        assert one.equals(two)
    assert opened.links.equals(run.links)
    assert opened.candidates().equals(run.candidates())
    assert opened.labels.to_pylist() == run.labels.to_pylist()
    np.testing.assert_array_equal(opened.fit.linked.levels, run.fit.linked.levels)
    assert len(opened.fit.modes) == len(run.fit.modes)
    assert opened.fit.theta == run.fit.theta
    assert str(opened.plan) == str(run.plan)
    assert opened.report_lines() == run.report_lines()
    assert opened.blocks.set_aside() == run.blocks.set_aside()
    assert plain(opened.checks.as_data()) == plain(run.checks.as_data())
    loss = bl.Loss(reject=0.1)
    np.testing.assert_array_equal(before.estimate(loss).links, after.estimate(loss).links)
    first = run.table.slice(5, 1).to_pylist()[0]
    one, two = (r.explain(first["id_a"], first["id_b"]) for r in (run, opened))
    assert one.evidence[0].bits == two.evidence[0].bits


def test_arrow_reads_bytes_of_its_own(home, monkeypatch):
    """A thread of Arrow that lets go of Python's bytes while the process ends aborts it."""
    content = (home / "run" / "pairs.parquet").read_bytes()
    given, reader = [], pa.BufferReader
    monkeypatch.setattr(pa, "BufferReader", lambda own: given.append(own) or reader(own))
    assert len(table_in(content)) > 0
    (own,) = given
    assert isinstance(own, pa.Buffer)
    assert own.address != pa.py_buffer(content).address


def test_sampling_again_from_an_opened_run(run, files, tmp_path):
    run.save(tmp_path / "run")
    opened = bl.open_run(tmp_path / "run", a=files.a, b=files.b)
    again = bl.sample(opened.blocks, prior=opened.fit.prior, draws=80, tune=40, chains=2, seed=1)
    np.testing.assert_array_equal(again.n_links, run.posterior.n_links)


def test_what_needs_the_inputs_says_so(run, files, tmp_path):
    run.save(tmp_path / "run")
    opened = bl.open_run(tmp_path / "run")
    far = [("A000001", str(files.b["id"][199].as_py()))]
    for asks in (opened.joined, lambda: opened.pairs.find(far), lambda: bl.relink(opened)):
        with pytest.raises(bl.InputError, match=r"[Gg]ive it.*a"):
            asks()
    page = tmp_path / "report.html"
    opened.report(page)
    assert page.stat().st_size > 10_000
    other = files.a.slice(1)
    with pytest.raises(bl.InputError, match="records that were linked"):
        bl.open_run(tmp_path / "run", a=other, b=files.b).pairs.find(far)


def test_a_run_from_frames_is_repeated_with_them_or_from_what_it_kept(run, files, tmp_path):
    run.save(tmp_path / "run", linked=False)
    with pytest.raises(bl.InputError, match="Give it"):
        bl.relink(tmp_path / "run")
    again = bl.relink(tmp_path / "run", a=files.a.to_pandas(), b=files.b)
    assert again.table.equals(run.table)
    run.save(tmp_path / "kept", keep_inputs=True)
    shutil.move(tmp_path / "kept", tmp_path / "elsewhere")
    opened = bl.open_run(tmp_path / "elsewhere")
    assert opened.joined().to_pylist() == run.joined().to_pylist()
    assert bl.relink(opened).table.equals(run.table)
    assert bl.relink(opened, theta=30).n_links < run.n_links
    done = cli("link", "--config", tmp_path / "elsewhere" / "link.toml", "-o", tmp_path / "cli")
    assert done.exit_code == 0, done.output
    assert pq.read_table(tmp_path / "cli" / "links.parquet").num_rows == len(run.table)


def test_the_population_size_is_that_of_python(home, tmp_path):
    shutil.copytree(home / "run", tmp_path / "run")  # without its files
    people = bl.open_run(home / "run").posterior.population_size()
    told = cli("population", tmp_path / "run")
    assert told.exit_code == 0, told.output
    expected = f"{people.median:,.0f}, 95 % interval {people.low:,.0f} to {people.high:,.0f}."
    assert f"People in all: {expected}" in told.output
    found = json.loads(cli("population", tmp_path / "run", "--json").output)
    assert (found["median"], found["chapman"]) == (people.median, list(people.chapman))


def test_a_point_estimate_has_no_population_size(files, tmp_path):
    bl.link(files.a, files.b, FIELDS, point=True).save(tmp_path / "run")
    told = cli("population", tmp_path / "run")
    assert told.exit_code == 2
    assert "without --point" in told.output


def test_a_run_moved_alone_takes_its_files_from_a_and_b(home, tmp_path):
    shutil.copytree(home / "run", tmp_path / "run")
    run, far = tmp_path / "run", ["A000001", "B000001"]
    inputs = [home / "files" / "a.csv", home / "files" / "b.csv"]
    commands = (["explain", run, *far], ["join", run, "-o", tmp_path / "x.csv"])
    for command in commands:
        lost = cli(*command)
        assert lost.exit_code == 3
        assert "--a" in lost.output
        found = cli(*command, "--a", inputs[0], "--b", inputs[1])
        assert found.exit_code == 0, found.output
    (tmp_path / "x.csv").unlink()
    changed = inputs[0].read_text("utf-8").replace("street", "Street", 1)
    (tmp_path / "a.csv").write_text(changed, "utf-8")
    for command in commands:
        told = cli(*command, "--a", tmp_path / "a.csv", "--b", inputs[1])
        assert told.exit_code == 3
        assert "changed" in told.output


def test_run_and_files_moved_together_need_nothing(home, tmp_path):
    shutil.copytree(home, tmp_path / "new")
    assert not [line for line in (home / "run" / "link.toml").read_text().splitlines()
                if str(home) in line]  # fmt: skip
    opened = bl.open_run(tmp_path / "new" / "run")
    assert len(opened.joined()) == opened.n_links


def test_join_writes_any_kind_of_join_and_draws(home, tmp_path):
    run = bl.open_run(home / "run")
    for how in ("inner", "left", "right", "outer"):
        target = tmp_path / f"{how}.parquet"
        done = cli("join", home / "run", "-o", target, "--how", how, "--json")
        assert json.loads(done.output)["rows"] == len(run.joined(how))
        assert pq.read_table(target).to_pylist() == run.joined(how).to_pylist()
    drawn = tmp_path / "drawn.csv"
    assert cli("join", home / "run", "-o", drawn, "--draws", 3).exit_code == 0
    table = pd.read_csv(drawn, dtype=str)
    for number, joined in enumerate(run.joined_draws(3), 1):
        assert table.loc[table["draw"] == str(number), "id"].tolist() == joined["id"].to_pylist()
    assert cli("join", home / "run", "-o", drawn).exit_code == 4  # it exists
    assert cli("join", home / "run", "-o", drawn, "--force").exit_code == 0
    assert cli("join", home / "run", "-o", tmp_path / "x.txt").exit_code == 2


@pytest.mark.parametrize("name", ["all.csv", "all.parquet"])
def test_a_joined_file_is_its_owners(home, tmp_path, name):
    before = os.umask(0o022)
    try:
        assert cli("join", home / "run", "-o", tmp_path / name).exit_code == 0
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    finally:
        os.umask(before)


def test_a_report_of_a_saved_run_compares_nothing(home, tmp_path, monkeypatch):
    def made(*arguments, **options):
        raise AssertionError("level tables are made again")

    monkeypatch.setattr(LocalPairs, "__init__", made)
    text = bl.open_run(home / "run").report(tmp_path / "report.html").read_text("utf-8")
    assert 'data-chart="path"' in text
    assert "values cannot be shown" not in text


def test_parts_of_a_run_are_read_when_they_are_asked_for(home, files, tmp_path):
    out = shutil.copytree(home / "run", tmp_path / "run")
    for name in ("state.npz", "draws.parquet", "link_draws.parquet"):
        (out / name).unlink()
    run = bl.open_run(out)
    assert bl.evaluate(run, files.truth) == bl.evaluate(bl.open_run(home / "run"), files.truth)
    assert bl.changes(home / "run", run).kept == run.n_links
    with pytest.raises(bl.InputError, match=r"state\.npz"):
        _ = run.posterior


def test_an_opened_run_is_saved_as_it_was(home, tmp_path):
    bl.open_run(home / "run").save(tmp_path / "again")
    for path in sorted((home / "run").iterdir()):
        if path.name not in ("run.json", "link.toml"):  # its paths lead from elsewhere
            assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes(), path.name
    before, after = (
        json.loads((d / "run.json").read_text("utf-8")) for d in (home / "run", tmp_path / "again")
    )
    assert {k: v for k, v in before.items() if k != "files"} == {
        k: v for k, v in after.items() if k != "files"
    }


def test_what_could_not_be_opened_is_not_saved(run, tmp_path, monkeypatch):
    monkeypatch.setattr(type(run), "theta", float("nan"))
    with pytest.raises(NotAsWrittenError, match="theta"):
        run.save(tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("act", [bl.draw_sample, bl.evaluate_sample])
def test_judgements_need_a_directory(run, act):
    with pytest.raises(bl.InputError, match="has no directory"):
        act(run)


def test_rows_in_another_order_are_the_same_records(run, files, tmp_path):
    """As a database may give them."""
    run.save(tmp_path / "run")
    a, b = (t.take(np.arange(len(t))[::-1]) for t in (files.a, files.b))
    opened = bl.open_run(tmp_path / "run", a=a, b=b)
    far = ("A000001", str(files.b["id"][199].as_py()))
    listed = run.table.slice(5, 1).to_pylist()[0]
    for pair in (far, (listed["id_a"], listed["id_b"])):
        assert str(opened.explain(*pair)) == str(run.explain(*pair))


DAMAGES = {
    "search": ["x", {"joins": "x"}],
    "engine": [None, 3],
    "memory": [None, {"budget": "x"}],
}


@pytest.mark.parametrize(("key", "value"), [(k, v) for k in DAMAGES for v in (*DAMAGES[k], ...)])
def test_keys_of_run_json_that_only_opening_reads_are_checked(home, tmp_path, key, value):
    shutil.copytree(home / "run", tmp_path / "run")
    told = json.loads((tmp_path / "run" / "run.json").read_text("utf-8"))
    told[key] = value
    if value is ...:
        del told[key]
    (tmp_path / "run" / "run.json").write_text(json.dumps(told), "utf-8")
    with pytest.raises(bl.InputError, match=rf"run\.json: {key}"):
        bl.open_run(tmp_path / "run")


@pytest.mark.parametrize(("column", "value"), [("pair", 2**20), ("chain", 9), ("last", -1)])
def test_draws_of_links_out_of_range_are_refused(home, tmp_path, column, value):
    out = shutil.copytree(home / "run", tmp_path / "run")
    table = pq.read_table(out / "link_draws.parquet")
    at, values = table.column_names.index(column), pa.array([value] * len(table), pa.int32())
    pq.write_table(table.set_column(at, column, values), out / "link_draws.parquet")
    _forget_digest(out, "link_draws.parquet")  # as if the run had written it so
    with pytest.raises(bl.InputError, match=rf"link_draws\.parquet: column (first|{column})"):
        _ = bl.open_run(out).posterior


@pytest.fixture(scope="module")
def weak(tmp_path_factory):
    """A run with weak fields: its draws link more pairs than there are candidates."""
    files = bl.simulate(300, overlap=0.3, errors=4, seed=1)
    fields = [bl.name("gname"), bl.name("fname"), bl.exact("sex"), bl.exact("occup")]
    run = bl.link(files.a, files.b, fields, draws=200, tune=100, chains=2)
    out = tmp_path_factory.mktemp("weak") / "run"
    run.save(out, keep_inputs=True)
    return run, out


def test_a_run_that_links_pairs_beyond_its_candidates_opens_again(weak, tmp_path):
    run, out = weak
    listed = pq.read_table(out / "link_draws.parquet")["pair"]
    assert max(listed.to_pylist()) >= run.summary()["candidates"]
    again = bl.open_run(out)
    assert again.candidates().equals(run.candidates())
    for one, other in zip(run.posterior.kept, again.posterior.kept, strict=True):
        assert all(map(np.array_equal, map(np.sort, one), map(np.sort, other)))
    for words in (["population"], ["join", "--draws", "3", "-o", str(tmp_path / "drawn.csv")]):
        done = CliRunner().invoke(main, [words[0], str(out), *words[1:]])
        assert done.exit_code == 0, done.output


def test_a_link_of_a_pair_that_is_not_in_the_table_of_pairs_is_refused(weak, tmp_path):
    out = shutil.copytree(weak[1], tmp_path / "run")
    table = pq.read_table(out / "link_draws.parquet")
    first_beyond = pq.read_metadata(out / "pairs.parquet").num_rows
    values = pa.array([*table["pair"].to_pylist()[:-1], first_beyond], pa.int32())
    pq.write_table(table.set_column(0, "pair", values), out / "link_draws.parquet")
    _forget_digest(out, "link_draws.parquet")  # as if the run had written it so
    with pytest.raises(bl.InputError, match=r"link_draws\.parquet: column pair"):
        _ = bl.open_run(out).posterior


def test_a_state_from_elsewhere_brings_in_no_code(home, tmp_path):
    shutil.copytree(home / "run", tmp_path / "run")
    path = tmp_path / "run" / "state.npz"
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    told = json.loads(parts["state.json"])
    for wrong in (
        {"values": 99},
        {**told, "values": {**told["values"], "fit": {"class": "Popen", "with": {"args": "ls"}}}},
    ):
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in {**parts, "state.json": json.dumps(wrong)}.items():
                archive.writestr(name, content)
        with pytest.raises(bl.InputError, match="cannot read"):
            _ = bl.open_run(tmp_path / "run").fit
        _forget_digest(tmp_path / "run", "state.npz")  # as if the run had written it so
        with pytest.raises(bl.InputError, match="cannot read"):
            _ = bl.open_run(tmp_path / "run").fit
    path.unlink()
    with pytest.raises(bl.InputError, match=r"state\.npz"):
        _ = bl.open_run(tmp_path / "run").fit


def test_point_runs_and_custom_fields_open_too(files, tmp_path):
    fields = [*FIELDS[:3], bl.custom("dob", lambda x, y: 1 + (x == y))]
    run = bl.link(files.a, files.b, fields, point=True)
    run.save(tmp_path / "run")
    opened = bl.open_run(tmp_path / "run", a=files.a, b=files.b)
    assert opened.posterior is None
    assert opened.links.equals(run.links)
    assert len(opened.joined()) == run.n_links
    with pytest.raises(bl.InputError, match="Python function"):
        opened.pairs.pattern_counts()


@pytest.mark.parametrize("without", ["all", "a field"])
def test_a_link_toml_that_lacks_fields_is_refused(home, tmp_path, without):
    shutil.copytree(home / "run", tmp_path / "run")
    path = tmp_path / "run" / "link.toml"
    text = path.read_text()
    path.write_text("" if without == "all" else text.replace('"occup"', '"other"'))
    assert path.read_text() != text
    opened = bl.open_run(tmp_path / "run")
    assert bl.changes(home / "run", opened).kept == opened.n_links  # which asks for no field
    with pytest.raises(bl.InputError, match="does not have all fields"):
        _ = opened.settings


def test_a_run_with_more_pairs_drawn_than_candidates_opens_again(tmp_path):
    """Files that tell little: most pairs that are links in some draw were born in sampling."""
    texts = [[f"{k % 7}{side}{k}" for k in range(150)] for side in "xy"]
    ids = [str(k) for k in range(150)]
    a, b = (pa.table({"id": ids, "memo": text}) for text in texts)
    run = bl.link(a, b, [bl.text("memo")], draws=80, tune=40, chains=2)
    assert len(run.candidates()) > run.summary()["candidates"]
    run.save(tmp_path / "run")
    assert bl.open_run(tmp_path / "run").links.equals(run.links)
