"""What a run learned, for the next one: model.json, priors of a chosen strength, new batches."""

import gzip
import json
import math

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from click.testing import CliRunner

import bayeslink as bl
from bayeslink.cli import main
from bayeslink.model.error_counts import ErrorPriors
from bayeslink.runs.models import model_of
from tests.data import ROOT

FIELDS = [bl.levenshtein("gname"), bl.levenshtein("fname"), bl.exact("occup"), bl.date("dob")]
FEW = {"draws": 100, "tune": 50, "chains": 2}


@pytest.fixture(scope="module")
def files():
    return bl.simulate(500, overlap=0.6, errors=1, seed=5)


@pytest.fixture(scope="module")
def parts(files):
    """A, and B in two batches."""
    return files.a, files.b.slice(0, 400), files.b.slice(400)


@pytest.fixture(scope="module")
def run(parts):
    return bl.link(parts[0], parts[1], FIELDS, **FEW)


def pairs_of(table):
    return {*zip(table["id_a"].to_pylist(), table["id_b"].to_pylist(), strict=True)}


def test_a_model_holds_the_expected_counts_of_links(run, tmp_path):
    run.save(tmp_path / "run")
    model = json.loads((tmp_path / "run" / "model.json").read_text())
    post = run.posterior
    gname = next(f for f in model["fields"] if f["settings"]["column"] == "gname")
    levels = post.blocks.candidates.levels[:, 0]
    wanted = [post.probability[levels == h].sum() for h in range(1, len(gname["levels"]) + 1)]
    assert gname["links_at_level"] == pytest.approx(wanted)
    assert model["links"] == pytest.approx(post.probability.sum(), rel=0.1)
    for source in (run, tmp_path / "run", tmp_path / "run" / "model.json", model):
        again = bl.link(*[run.sources[0], run.sources[1]], model=source, point=True)
        assert again.n_links > 200


def learned_of(run):
    """[missing, wrong]: links that the prior of wrong fields is worth beyond its own."""
    plain = ErrorPriors.of(run.pairs.fields).alpha_h
    return run.fit.structure.errors.alpha_h - plain


def test_a_model_hands_on_how_many_fields_are_wrong(parts, run, tmp_path):
    post = run.posterior
    seen, wrong = run.fit.structure.errors.seen_and_wrong(post.blocks.candidates.levels)
    counts = np.zeros((5, 5))
    np.add.at(counts, ((~seen).sum(1), wrong.sum(1)), post.probability)
    batch = bl.update(run, parts[2], strength=0.5, **FEW)
    np.testing.assert_allclose(learned_of(batch), counts / 2, atol=1e-9)
    batch.save(tmp_path / "batch", keep_inputs=True)
    again = bl.relink(tmp_path / "batch")  # from link.toml alone
    assert again.table.equals(batch.table)
    np.testing.assert_array_equal(learned_of(again), learned_of(batch))
    third = bl.link(*parts[:2], model=tmp_path / "batch", point=True)  # and what was before it
    assert (learned_of(third) >= learned_of(batch)).all()
    assert learned_of(third).sum() > learned_of(batch).sum()
    fewer = bl.link(*parts[:2], FIELDS[:3], model=run, point=True)  # it says nothing of three
    assert not learned_of(fewer).any()


def test_wrong_fields_of_other_fields_are_refused(parts):
    for given in ([[1.0]], [[-1.0, 2.0]], "many", [1, 2]):
        with pytest.raises(bl.SettingsError, match="wrong_fields"):
            bl.link(*parts[:2], FIELDS, wrong_fields=given, point=True)


def rows_of(name):
    with gzip.open(ROOT / "truth" / "fodors_zagats" / f"{name}.csv.gz") as file:
        return pa.csv.read_csv(file)


@pytest.mark.skipif(
    not (ROOT / "truth" / "fodors_zagats").is_dir(), reason="no truth: set BAYESLINK_DATA"
)
def test_a_batch_with_nobody_of_a_gets_hardly_a_link():
    """Restaurants of January again, their partners gone: an interval of 26 to 38 of 49 before."""
    a, b = map(rows_of, ("a", "b"))
    january = bl.link(a, b, **FEW)
    again = b.slice(0, 49)
    again = again.set_column(0, "id", pa.array([f"C{k}" for k in range(len(again))]))
    february = bl.update(january, again, **FEW)
    assert february.n_links <= 2  # A has look-alikes of some
    assert february.posterior.interval()[1] <= 5


def test_strength_is_a_share_of_the_links(parts, run):
    half = bl.link(parts[0], parts[2], FIELDS, model=run, strength=0.5, point=True)
    none = bl.link(parts[0], parts[2], FIELDS, model=run, strength=0, point=True)
    plain = bl.link(parts[0], parts[2], FIELDS, point=True)
    assert none.fit.objective == plain.fit.objective
    occup = next(f for f in half.pairs.fields if f.name == "occup")
    j = [f.name for f in run.pairs.fields].index("occup")
    p, levels = run.posterior.probability, run.posterior.blocks.candidates.levels[:, j]
    counts = np.array([p[levels == h].sum() for h in (1, 2)])
    assert np.array(occup.m_prior) == pytest.approx(np.array([3.0, 8.0]) + counts / 2)


def test_m_and_u_can_be_held_fixed(parts, run):
    how = {"structure": "independent", "point": True}
    first = bl.link(parts[0], parts[1], FIELDS, **how)
    fixed = bl.link(parts[0], parts[2], model=first, strength=math.inf, **how)
    np.testing.assert_allclose(fixed.fit.parameters.m, first.fit.parameters.m, atol=1e-4)
    np.testing.assert_allclose(fixed.fit.parameters.u, first.fit.parameters.u, atol=1e-4)
    with pytest.raises(bl.SettingsError, match="independent"):
        bl.link(parts[0], parts[2], model=first, strength=math.inf, point=True)


def test_a_model_of_other_fields_is_refused(parts, run):
    for fields, words in (
        ([bl.exact("sex")], "knows no field 'sex'"),
        ([bl.levenshtein("gname", cuts=(0, 0.1))], "no level"),
    ):
        with pytest.raises(bl.SettingsError, match=words):
            bl.link(parts[0], parts[2], fields, model=run)
    for wrong in ({}, "nowhere.json", 3):
        with pytest.raises(bl.InputError, match="model"):
            bl.link(parts[0], parts[2], model=wrong)


def test_two_fields_of_one_column_both_hand_on_what_they_learned(parts):
    a, b, _ = parts
    both = zip(a["fname"].to_pylist(), a["gname"].to_pylist(), strict=True)
    whole = a.append_column("whole", [[f"{f or ''}, {g or ''}" for f, g in both]])
    fields = [
        bl.name("whole", columns=("whole", other), part=(part, None), name=other)
        for other, part in (("gname", "given"), ("fname", "family"))
    ]
    run = bl.link(whole, b, [*fields, bl.date("dob")], **FEW)
    again = bl.link(whole, b, model=run, **FEW)
    assert [f.name for f in again.settings.fields] == ["gname", "fname", "dob"]


def test_a_damaged_model_is_refused(parts, run):
    whole = json.dumps(model_of(run), default=np.generic.item)
    assert "wrong_fields" in json.loads(whole)
    with pytest.raises(bl.InputError, match="wrong_fields"):
        bl.link(*parts[:2], model={**json.loads(whole), "wrong_fields": [[1.0]]})
    for key, value in (("settings", 3), ("settings", {}), ("m", [1]), ("u", "x"), ("levels", None),
                       ("m", [0, 0, 0, 0]), ("links_at_level", [-1] * 4)):  # fmt: skip
        damaged = json.loads(whole)
        damaged["fields"][0][key] = value
        with pytest.raises(bl.InputError, match=rf"fields\[0\]\.{key}"):
            bl.link(*parts[:2], model=damaged)


def test_a_batch_is_linked_to_what_is_left_of_a(parts, run, files):
    batch = bl.update(run, parts[2])
    earlier = pairs_of(run.table)
    new = pairs_of(batch.table)
    assert not {a for a, _ in earlier} & {a for a, _ in new}
    whole = pairs_of(bl.link(files.a, files.b, FIELDS, **FEW).table)
    assert len((earlier | new) & whole) > 0.96 * len(whole)
    doubtful = sum(p < 0.95 for p in run.table["link_probability"].to_pylist())
    assert doubtful > 0
    assert f"{doubtful} of the {run.n_links} earlier links are in doubt" in batch.warnings[-1]
    with pytest.raises(bl.InputError, match="ids that the earlier B has"):
        bl.update(run, parts[1].slice(0, 20))


def test_update_on_the_command_line(parts, tmp_path):
    names = []
    for name, table in zip(("a", "b", "new"), parts, strict=True):
        pyarrow.csv.write_csv(table, tmp_path / f"{name}.csv")
        names.append(str(tmp_path / f"{name}.csv"))
    on = [f"--on={f.name}:{f.kind}" for f in FIELDS]
    few = ["--draws", "60", "--tune", "30", "--chains", "2"]

    def link(*arguments):
        return CliRunner().invoke(main, ["link", *map(str, arguments)])

    assert link(names[0], names[1], *on, *few, "-o", tmp_path / "out").exit_code == 0
    done = link("--update", tmp_path / "out", names[2], "-o", tmp_path / "batch")
    assert done.exit_code == 0, done.output
    assert "new records were linked" in done.output
    assert "are in doubt (below 0.95)" in done.output
    linked = pa.csv.read_csv(tmp_path / "batch" / "linked.csv")
    assert len(linked) > 30
    assert bl.relink(tmp_path / "batch").n_links == len(linked)
    told = link(names[0], names[2], "--model", tmp_path / "out", *few, "-o", tmp_path / "next")
    assert told.exit_code == 0, told.output
    assert link("--update", tmp_path / "out", "-o", tmp_path / "x").exit_code == 2
