"""The sampler of forests from end to end: the same draws whatever must not matter."""

import numpy as np
import pandas as pd
import pytest

import bayeslink as bl
from bayeslink import checkpoints as work
from bayeslink.checkpoints import Checkpoints
from bayeslink.errors import InputError, SettingsError
from bayeslink.linkage.forest import fit_forest
from bayeslink.sampling.forest import ForestLayout, sample_forest

FIELDS = [bl.levenshtein("first"), bl.levenshtein("last"), bl.exact("year"), bl.exact("town")]
SHORT = {"draws": 60, "tune": 40, "chains": 3, "seed": 2}


def people(n=90, seed=1):
    """A file in which two thirds of the people have one record, the others up to four."""
    rng = np.random.default_rng(seed)
    entity = np.repeat(np.arange(n), rng.choice([1, 2, 3, 4], n, p=[0.6, 0.25, 0.1, 0.05]))
    made = {
        "first": [f"name{i}" for i in rng.integers(0, 40, n)],
        "last": [f"family{i}" for i in rng.integers(0, 60, n)],
        "year": rng.integers(1940, 2000, n).astype(str),
        "town": [f"town{i}" for i in rng.integers(0, 9, n)],
    }
    frame = pd.DataFrame(made).iloc[entity].reset_index(drop=True)
    for column in made:
        wrong = rng.random(len(frame)) < 0.08
        frame.loc[wrong, column] = [value + "x" for value in frame.loc[wrong, column]]
        frame.loc[rng.random(len(frame)) < 0.03, column] = ""
    frame.insert(0, "id", [f"r{i}" for i in range(len(frame))])
    return frame.assign(entity=entity)


@pytest.fixture(scope="module")
def frame():
    return people()


@pytest.fixture(scope="module")
def fit(frame):
    return fit_forest(bl.compare(frame, fields=FIELDS, id="id"))


def same(one, other):
    for name in ("log_posterior", "rho", "m", "u", "kept"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    np.testing.assert_array_equal(one.entities.draws, other.entities.draws)


def test_threads_do_not_change_the_draws(fit):
    same(*(sample_forest(fit, threads=threads, **SHORT) for threads in (1, 3)))


@pytest.mark.parametrize("one_block", [20_000, 0])
def test_the_order_of_rows_does_not_change_the_people(frame, one_block, monkeypatch):
    monkeypatch.setattr("bayeslink.sampling.forest.ONE_BLOCK", one_block)
    monkeypatch.setattr("bayeslink.sampling.forest.A_BLOCK", 20)
    runs = [
        bl.dedupe(table, FIELDS, id="id", **SHORT)
        for table in (frame, frame.sample(frac=1, random_state=3).reset_index(drop=True))
    ]
    np.testing.assert_array_equal(*(run.entities.draws for run in runs))
    tables = [run.clusters.sort_values("id").reset_index(drop=True) for run in runs]
    pd.testing.assert_frame_equal(*tables)


def test_blocks_hold_all_records_and_their_pairs(fit, monkeypatch):
    """Those without a pair come last; a block ends where a component does."""
    monkeypatch.setattr("bayeslink.sampling.forest.ONE_BLOCK", 0)
    monkeypatch.setattr("bayeslink.sampling.forest.A_BLOCK", 20)
    listed = fit.candidates()
    layout = ForestLayout.of(fit.pairs, fit.structure, listed, fit.together, fit.apart, fit.prior)
    n, blocks, rank = fit.pairs.n_a, layout.candidates.blocks, layout.rank
    assert blocks[0] == 0
    assert blocks[-1] == n
    assert (np.diff(blocks) > 0).all()
    assert len(blocks) > n / 40
    block = np.searchsorted(blocks, rank, side="right")
    np.testing.assert_array_equal(block[listed.a], block[listed.b])
    np.testing.assert_array_equal(np.sort(rank), np.arange(n))
    n_pairs = np.diff(layout.candidates.start)
    assert (n_pairs[: np.count_nonzero(n_pairs)] > 0).all()


@pytest.mark.parametrize("stop", [2, 5])
def test_an_interrupted_chain_goes_on_as_if_nothing_had_been(fit, tmp_path, monkeypatch, stop):
    whole = sample_forest(fit, **SHORT)
    monkeypatch.setattr(work, "EVERY", 0.0)
    told = []

    def progress(message):
        told.append(message)
        if len(told) > stop:
            raise StopIteration

    folder = Checkpoints(tmp_path / "work")
    folder.bind({"made from": "this"})
    with pytest.raises(StopIteration):
        sample_forest(fit, threads=1, progress=progress, checkpoints=folder, **SHORT)
    assert folder
    monkeypatch.undo()
    same(whole, sample_forest(fit, checkpoints=Checkpoints(tmp_path / "work"), **SHORT))


def test_what_is_cut_off_does_not_bias_the_count(frame, monkeypatch):
    """Hardly a pair is listed, so that half of the edges are born; the people are the same."""
    fit = fit_forest(bl.compare(frame, fields=FIELDS, id="id"), structure="independent")
    long = {"draws": 300, "tune": 200, "chains": 2, "seed": 4}
    listed = sample_forest(fit, **long)
    monkeypatch.setattr("bayeslink.linkage.forest._SLACK", -5.0)
    born, cut_off = (sample_forest(fit, restricted=only, **long) for only in (False, True))
    assert born.listed < listed.listed / 4
    assert born.entities.mean == pytest.approx(listed.entities.mean, abs=1.5)
    assert cut_off.entities.mean > listed.entities.mean + 5


def test_known_pairs_hold_in_every_draw(frame):
    together = pd.DataFrame({"id_a": ["r5", "r9"], "id_b": ["r40", "r5"]})
    pairs = frame.groupby("entity")["id"].apply(list)
    one, other = next(ids[:2] for ids in pairs if len(ids) > 1 and "r5" not in ids)
    apart = pd.DataFrame({"id_a": [one], "id_b": [other]})
    run = bl.dedupe(frame, FIELDS, id="id", known_links=together, known_nonlinks=apart, **SHORT)
    rows = {name: row for row, name in enumerate(frame["id"])}
    kept = run.posterior.kept
    assert (kept[:, rows["r5"]] == kept[:, rows["r40"]]).all()
    assert (kept[:, rows["r9"]] == kept[:, rows["r40"]]).all()
    assert (kept[:, rows[one]] != kept[:, rows[other]]).all()
    table = run.clusters.set_index("id")
    assert table.loc["r9", "entity_id"] == table.loc["r40", "entity_id"]
    apart = pd.DataFrame({"id_a": ["r9"], "id_b": ["r40"]})
    with pytest.raises(InputError, match="contradicts itself"):
        bl.dedupe(frame, FIELDS, id="id", known_links=together, known_nonlinks=apart, **SHORT)


def test_the_answers_agree_with_each_other(frame):
    run = bl.dedupe(frame, FIELDS, id="id", **SHORT)
    post, decision, table = run.posterior, run.decision, run.clusters
    n_people = frame["entity"].nunique()
    low, high = run.entities.interval()
    assert low - 3 <= n_people <= high + 3
    assert table["entity_id"].nunique() == decision.n_entities
    assert table["representative"].sum() == decision.n_entities
    assert (
        table.loc[table["representative"], "id"] == table.loc[table["representative"], "entity_id"]
    ).all()
    assert (table.groupby("entity_id")["id"].transform("size") == table["size"]).all()
    assert table["membership_probability"].between(0, 1).all()
    # Pair by pair and draw by draw
    same_draw = (post.kept[:, :, None] == post.kept[:, None, :]).mean(0)
    np.testing.assert_allclose(
        post.together.probability, same_draw[post.together.a, post.together.b]
    )
    within = np.triu(decision.cluster[:, None] == decision.cluster, 1)
    assert decision.expected_false == pytest.approx((1 - same_draw)[within].sum())
    assert decision.expected_missed == pytest.approx(same_draw[np.triu(~within, 1)].sum())
    exact = post.cluster_probabilities(decision.cluster)
    for row in (0, 7, 30):
        members = np.flatnonzero(decision.cluster == decision.cluster[row])
        assert post.probability_of(members) == pytest.approx(exact[row])
        others = same_draw[row, members[members != row]]
        own = others.mean() if len(others) else post.alone()[row]
        assert decision.membership[row] == pytest.approx(own)
    for entities in (post.drawn, run.entities):  # rounded, and without sizes that hardly occur
        sizes = entities.sizes()
        assert sum(size["people"] for size in sizes) == pytest.approx(entities.mean, abs=0.5)
    assert post.variation(decision.cluster) <= post.variation(np.arange(len(frame)))
    review = post.estimate(bl.ClusterLoss(review=1e-6)).decision
    assert (review == "review").any()
    assert len(post.pairs(false_pair=50.0)) <= len(post.pairs(missed_pair=50.0))


@pytest.mark.parametrize("shape", ["star", "tree"])
def test_the_ends_of_the_pointers(frame, shape):
    run = bl.dedupe(frame, FIELDS, id="id", shape=shape, **SHORT)
    assert set(np.unique(run.posterior.rho)) == {0.0 if shape == "star" else 1.0}
    low, high = run.entities.interval()
    assert low - 4 <= frame["entity"].nunique() <= high + 4


def test_a_file_without_duplicates_and_one_with_nothing_but():
    rng = np.random.default_rng(0)
    single = pd.DataFrame(
        {"id": range(60), "first": rng.permutation(60), "last": rng.permutation(60)}
    ).astype({"first": str, "last": str})
    fields = [bl.exact("first"), bl.exact("last")]
    run = bl.dedupe(single, fields, id="id", **SHORT)
    assert run.entities.interval()[1] == 60
    assert run.decision.n_entities == 60
    many = pd.DataFrame(
        {"id": range(24), "first": ["a"] * 12 + ["b"] * 12, "last": ["c"] * 12 + ["d"] * 12}
    )
    run = bl.dedupe(many, fields, id="id", **SHORT)
    assert run.clusters["id"].dtype == many["id"].dtype
    assert run.entities.interval()[0] >= 1


def test_fields_are_proposed_where_none_are_given(frame):
    run = bl.dedupe(frame.drop(columns="entity"), id="id", **SHORT)
    assert {f.name for f in run.fit.pairs.fields} >= {"first", "last"}
    low, high = run.entities.interval()
    assert low - 10 <= frame["entity"].nunique() <= high + 10


def test_what_dedupe_does_not_take_is_refused(frame, tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        bl.dedupe(tmp_path / "a.csv", id="id")
    with pytest.raises(SettingsError, match="no option 'prior'"):
        bl.dedupe(frame, FIELDS, id="id", prior=bl.Penalty(2))
    with pytest.raises(SettingsError, match="unknown shape"):
        bl.dedupe(frame, FIELDS, id="id", shape="ring")
    two = bl.compare(frame, frame.assign(id=frame["id"] + "b", first="x"), FIELDS, id="id")
    with pytest.raises(SettingsError, match="two files"):
        bl.dedupe(two)
    with pytest.raises(SettingsError, match="repeat"):
        bl.ClusterSizes(repeat=1.0)
    with pytest.raises(SettingsError, match="false_pair"):
        bl.ClusterLoss(false_pair=0)


def test_two_of_one_household_are_not_one_person_for_swapped_names():
    """A surname that stands in the other column goes with the street as it does in its own."""
    made = bl.simulate_duplicates(1000, seed=1)
    fields = [
        *map(bl.levenshtein, ("gname", "fname")),
        bl.date("dob"),
        *map(bl.exact, ("sex", "occup", "postcode")),
        bl.tokens("street"),
    ]
    run = bl.dedupe(made.a, fields, draws=200, tune=200)
    assert run.fit.structure.tree.covers
    found = bl.evaluate(run.clusters, made.truth)
    assert found.precision > 0.98  # .95 where the two are taken to be independent
    low, high = run.entities.interval()
    assert low <= found.n_entities <= high + 2
