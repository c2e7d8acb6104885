"""Clusters drawn at random and judged: precision, recall and people, and what they rest on."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from scipy import stats

import bayeslink as bl
from bayeslink.cli import main
from bayeslink.errors import InputError, SettingsError
from bayeslink.judging.judgements import FILE, Judgements
from bayeslink.runs import people_audit, people_errors
from bayeslink.runs.cluster_evaluation import evaluate_clusters
from bayeslink.runs.cluster_structure import Structure
from bayeslink.runs.people_sample import ALONE, SHOWN, PeopleFrame, PeopleToDraw, people_sample

ALARM = 1e-4  # chance that a right estimator fails; seeds are fixed
NAMES = ("precision", "recall", "f1", "bcubed_precision", "bcubed_recall", "exact_clusters")


def made_of(cluster, pairs):
    """A run with these clusters and probabilities of pairs of records r0, r1, …"""
    a, b = np.array([*pairs]).T if pairs else (np.zeros(0, int),) * 2
    p, n = np.array([*pairs.values()], float), len(cluster)
    structure = Structure(np.array(cluster), np.ones(n), a, b, p, np.zeros(len(p)), 0.0)
    run = SimpleNamespace(fingerprint="")
    made = PeopleToDraw(run, [f"r{k}" for k in range(n)], None, frozenset())
    vars(made)["frame"] = PeopleFrame.of(structure)
    return made


def verdicts(made, pairs, person):
    of = made.row_of
    return {
        (min(x, y), max(x, y)): "link" if person[of[x]] == person[of[y]] else "nonlink"
        for x, y in pairs
    }


def truth_of(made, person):
    """By the other way to evaluate: against the entities of all records."""
    cluster = made.frame.structure.cluster
    table = {"id": made.ids, "entity_id": [*map(str, cluster)]}
    true = {"id": made.ids, "entity_id": [*map(str, person)]}
    e = evaluate_clusters(pa.table(table), pa.table(true))
    own = {"exact_clusters": e.exact_precision, "people": e.n_entities}
    return {name: getattr(e, name) for name in NAMES} | own


def population(rng, persons, *, split, merge, decoys, over=1.0):
    """People of 1 to 4 records; clusters of a run that parts some and joins others.

    Records that the run lost are alone or in twos, and near the rest by a probability of up to .4;
    people it joined are together by .6 and more; and records of others are near by chance. With
    `over` below 1 the model is surer of its mistakes, and some of what it lost is not near.
    """
    sizes = rng.choice(4, persons, p=(0.3, 0.4, 0.2, 0.1)) + 1
    person = np.repeat(np.arange(persons), sizes)
    cluster, new, rows_of = person.copy(), persons, dict[int, np.ndarray]()
    probability = {}

    def near(xs, ys, p):
        probability.update({(min(x, y), max(x, y)): p for x in xs for y in ys if x != y})

    for p in range(persons):
        rows_of[p] = rows = np.flatnonzero(person == p)
        near(rows, rows, 0.999)
        if len(rows) > 1 and rng.random() < split:
            for lost in rows[: 1 + (len(rows) > 2 and rng.random() < 0.3)]:
                cluster[lost], new = new, new + 1
                near([lost], rows, over * rng.choice([0.02, 0.05, 0.2, 0.4]))
    for _ in range(int(merge * persons)):
        x, y = (cluster[rows_of[p][-1]] for p in rng.choice(persons, 2, replace=False))
        if x != y:
            sides = [np.flatnonzero(cluster == one) for one in (x, y)]
            near(*sides, 1 - over * rng.choice([0.005, 0.05, 0.2, 0.4]))
            cluster[sides[1]] = x
    for _ in range(int(decoys * persons)):
        x, y = rng.choice(len(person), 2, replace=False)
        if person[x] != person[y] and cluster[x] != cluster[y]:
            near([x], [y], rng.choice([0.02, 0.05, 0.2, 0.4]))
    return made_of(np.unique(cluster, return_inverse=True)[1], probability), person


USUAL = {"split": 0.1, "merge": 0.03, "decoys": 0.2}
RARE = {"split": 0.01, "merge": 0.005, "decoys": 0.05}
JOINED = {"split": 0.05, "merge": 0.15, "decoys": 0.2}  # a few clusters hold most false pairs
MANY_ERRORS = 504  # seed
OVERCONFIDENT = {"split": 0.2, "merge": 0.05, "decoys": 0.2, "over": 0.3}


# --- one cluster ------------------------------------------------------------------------------


def test_what_is_false_in_a_cluster_and_what_it_lacks():
    """A A B beside B B and C: one person too few, and half of one too many."""
    near = {(0, 1): 0.9, (0, 2): 0.9, (1, 2): 0.9, (3, 4): 0.9, (2, 3): 0.3, (0, 5): 0.2}
    made = made_of([0, 0, 0, 1, 1, 2], near)
    assert made.frame.shown(0) == [0, 1, 2, 3, 4, 5]
    person = "AABBBC"
    said = [*verdicts(made, [(f"r{r}", f"r{x}") for r, x in made.pairs(0)], person).values()]
    false, missed = people_errors.errors_of(made, 0, said)
    assert false == pytest.approx((1, 2, 3 - (4 + 1) / 3, 1))
    assert missed == pytest.approx((1 / 2, 1, 2 / 3, 1))


def test_all_clusters_judged_leave_no_doubt():
    """And the errors of clusters add up to those of the run, however people are scattered."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n = 40
        cluster = np.unique(rng.integers(0, 14, n), return_inverse=True)[1]
        person = rng.integers(0, 16, n)
        pairs = {(x, y): 0.5 for y in range(n) for x in range(y)}
        made = made_of(cluster, pairs)
        near = {
            c: [d for d in range(cluster.max() + 1) if d != c] for c in range(cluster.max() + 1)
        }
        object.__setattr__(made.frame, "near", near)  # all are shown with each
        sample = people_sample(made, 99, 1)
        found = people_audit.estimate_people(made, sample, verdicts(made, sample.pairs, person))
        for name, value in truth_of(made, person).items():
            e = getattr(found.quality, name)
            assert e.value == pytest.approx(value, abs=1e-9), name
            assert e.upper == pytest.approx(value, abs=1e-9), name
            # Nothing is left to draw, but something may still be never shown.
            assert e.lower <= value + 1e-9, name
        assert found.quality.bcubed_precision.lower == pytest.approx(
            found.quality.bcubed_precision.value
        )


# --- drawing ----------------------------------------------------------------------------------


def test_strata_and_what_is_shown():
    near = {(0, 1): 0.999, (2, 3): 0.95, (4, 5): 0.999, (5, 6): 0.3, (6, 7): 0.02, (8, 9): 0.005}
    made = made_of([0, 0, 1, 1, 2, 2, 3, 4, 5, 6], near)
    frame = made.frame
    assert {s.name: s.size for s in frame.strata() if s.size} == {
        ALONE: 2,
        "single records, 0.9 to 0.99": 1,
        "single records, below 0.9": 1,
        "clusters of 2, 0.99 and above": 1,
        "clusters of 2, 0.9 to 0.99": 1,
        "clusters of 2, below 0.9": 1,
    }
    assert frame.near == {2: [3], 3: [2, 4], 4: [3]}
    assert frame.beyond == pytest.approx(0.005)
    sample = people_sample(made, 99, 1)
    drawn = made.drawn(sample)
    assert sorted(c for c, _ in drawn) == [0, 1, 2, 3, 4]  # each once, and none that is alone
    assert all(frame.stratum[c] == k for c, k in drawn)
    for cluster, _ in drawn:
        own = [(f"r{r}", f"r{x}") for r, x in made.pairs(cluster)]
        at = sample.pairs.index(own[0])
        assert list(sample.pairs[at : at + len(own)]) == own


def test_a_pair_that_is_not_listed_is_in_doubt():
    made = made_of([0, 0, 0], {(0, 1): 0.999, (1, 2): 0.999})
    assert made.frame.false.tolist() == [1]


def test_no_more_is_shown_than_can_be_seen_but_the_nearest_always():
    n = 60
    near = {(0, k): 0.5 - k / 1000 for k in range(1, n)}
    made = made_of(range(n), near)
    assert made.frame.shown(0) == list(range(SHOWN))
    assert made.frame.beyond == 0  # the others are shown with the first, if it is not with them
    large = {(x, y): 1.0 for y in range(40) for x in range(y)} | {(0, 40): 0.2}
    made = made_of([0] * 40 + [1], large)
    assert made.frame.shown(1) == [40, *range(40)]


def test_two_records_of_a_clean_file_are_no_pair():
    made = made_of([0, 0, 1], {(0, 1): 0.9, (0, 2): 0.4})
    made = PeopleToDraw(made.run, made.ids, ["a", "b", "b"], frozenset("b"))
    vars(made)["frame"] = made_of([0, 0, 1], {(0, 1): 0.9, (0, 2): 0.4}).frame
    assert made.pairs(0) == [(0, 1), (0, 2)]


# --- estimates --------------------------------------------------------------------------------


def coverage(monkeypatch, size, repeats, how, change=lambda labels, made: labels):
    monkeypatch.setattr(people_audit, "DRAWS", 2000)
    hits, off = {}, {}
    for seed in range(repeats):
        if seed % 5 == 0:
            made, person = population(np.random.default_rng(1000 + seed), 400, **how)
            truth = truth_of(made, person)
        sample = people_sample(made, size, seed)
        labels = change(verdicts(made, sample.pairs, person), made)
        found = people_audit.estimate_people(made, sample, labels).quality
        for name, value in truth.items():
            e = getattr(found, name)
            hits.setdefault(name, []).append(e.lower - 1e-9 <= value <= e.upper + 1e-9)
            off.setdefault(name, []).append(e.value - value)
    return {name: sum(one) for name, one in hits.items()}, off


@pytest.mark.parametrize("how", [USUAL, RARE, OVERCONFIDENT])
def test_intervals_hold_the_truth(how, monkeypatch):
    hits, off = coverage(monkeypatch, 80, 60, how)
    assert min(hits.values()) >= stats.binom.ppf(ALARM, 60, 0.95), hits
    if how is USUAL:  # where all that is lost is shown, estimates are off by little
        for name in ("people", "precision", "recall"):
            assert abs(np.mean(off[name])) < np.std(off[name]) / 2, name


def test_without_what_is_elsewhere_the_number_of_people_is_wrong(monkeypatch):
    """Negative control: clusters judged by themselves tell of no record that they lack."""

    def blind(labels, made):
        cluster, of = made.frame.structure.cluster, made.row_of
        return {
            (x, y): said if cluster[of[x]] == cluster[of[y]] else "nonlink"
            for (x, y), said in labels.items()
        }

    hits, _ = coverage(monkeypatch, 200, 20, {**USUAL, "split": 0.4}, blind)
    assert hits["people"] < 10
    assert hits["recall"] < 10


def test_unsure_and_unjudged_clusters_are_shown_not_hidden():
    made, person = population(np.random.default_rng(1), 200, **USUAL)
    sample = people_sample(made, 60, 1)
    drawn, labels = made.drawn(sample), verdicts(made, sample.pairs, person)
    for pair in sample.pairs[: len(made.pairs(drawn[0][0]))]:
        labels[min(pair), max(pair)] = "unsure"
    last = sample.pairs[-1]
    del labels[min(last), max(last)]
    found = people_audit.estimate_people(made, sample, labels)
    assert found.drawn == len(drawn) == 60
    assert found.unsure >= 1
    assert found.judged < 60
    assert found.unsure_as_links != found.unsure_as_nonlinks
    assert "If all unsure pairs were one person" in str(found)
    with pytest.raises(InputError, match="none of the 60 clusters"):
        people_audit.estimate_people(made, sample, {})


# --- what no list shows -----------------------------------------------------------------------


def test_each_way_of_showing_counts_once():
    """Two singles of one person: half a person each if both show the other, else one."""
    made = made_of([0, 1, 2], {})
    labels = verdicts(made, [("r0", "r1"), ("r0", "r2"), ("r1", "r2")], "AAB")
    for reach in ({0: {1: 2}, 1: {0: 2, 2: 1}}, {0: {1: 1}, 1: {2: 1}}):
        object.__setattr__(made.frame, "reach", reach)
        found = [
            people_errors.errors_of(
                made, c, [labels[f"r{min(p)}", f"r{max(p)}"] for p in made.pairs(c)]
            )[1]
            for c in (0, 1)
        ]
        assert np.sum(found, axis=0)[:3] == pytest.approx((1, 1, 1))


def test_the_nearest_others_are_those_of_most_weight(simulated):
    run = bl.dedupe(simulated.a, FIELDS, **HOW)
    found = run.as_table("reach").to_pylist()
    made, source = PeopleToDraw.of(run), run.pairs
    ids = source.ids(0, np.arange(source.n_a, dtype=np.int32)).to_pylist()
    cluster = made.frame.structure.cluster[[made.row_of[name] for name in ids]]
    a, b = np.triu_indices(len(ids), 1)
    weight = run.parameters.weight_of(source.levels_of(a.astype(np.int32), b.astype(np.int32)))
    most = np.full((cluster.max() + 1,) * 2, -np.inf)
    np.maximum.at(most, (cluster[a], cluster[b]), weight)
    most = np.maximum(most, most.T)
    np.fill_diagonal(most, -np.inf)
    listed = run.posterior.together
    x, y = (cluster[end[listed.probability > 0.01]] for end in (listed.a, listed.b))
    most[x, y] = most[y, x] = -np.inf
    own = dict(zip(ids, cluster.tolist(), strict=True))
    shown = [(own[row["id_a"]], own[row["id_b"]]) for row in found]
    bits = [row["match_weight"] for row in found]
    for c in range(len(most)):
        kept = [w for w, (own_, _) in zip(bits, shown, strict=True) if own_ == c]
        assert kept == pytest.approx(np.sort(most[c])[:-4:-1] / np.log(2))
    assert bits == pytest.approx([most[c, d] / np.log(2) for c, d in shown])
    assert [row["times"] for row in found] == [1 + ((d, c) in shown) for c, d in shown]


def test_many_errors(monkeypatch):
    """Where partners are lost altogether, intervals hold the truth; by the lists alone they do not.

    The long version, 100 samples at each of five rates of errors, is in docs/review.md.
    """
    monkeypatch.setattr(people_audit, "DRAWS", 2000)
    given = bl.simulate_duplicates(400, errors=4, seed=MANY_ERRORS)
    run = bl.dedupe(given.a, FIELDS, draws=100, tune=100, chains=2)
    known, own = bl.evaluate(run, given.truth), run.entities.interval()
    who = {row["id"]: row["entity_id"] for row in given.truth.to_pylist()}
    tables = {name: run.as_table(name) for name in ("clusters", "pairs", "reach")}
    summary, held = run.summary(), {"reach": [], "own": [], "lists": []}
    for kind, hits in held.items():
        kept = {**tables, "reach": tables["reach"] if kind == "reach" else None}
        bare = SimpleNamespace(
            as_table=kept.get, summary=lambda: summary, provenance=dict, fingerprint=""
        )
        made = PeopleToDraw.of(bare)
        for seed in range(10):
            sample = people_sample(made, 80, seed)
            labels = verdicts(made, sample.pairs, [who[name] for name in made.ids])
            found = people_audit.estimate_people(
                made, sample, labels, None if kind == "lists" else own
            )
            q = found.quality
            hits.append(
                q.recall.lower <= known.recall <= q.recall.upper
                and q.people.lower <= known.n_entities <= q.people.upper
            )
            assert ("did not keep what is nearest" in str(found)) == (kind != "reach")
    assert sum(held["reach"]) >= 9, held
    assert sum(held["own"]) >= 9, held
    assert sum(held["lists"]) <= 7, held


def test_large_clusters_that_are_not_judged_have_more_false_pairs(monkeypatch):
    hits, _ = coverage(monkeypatch, 80, 20, JOINED)
    assert hits["precision"] >= 19


# --- a run directory --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def simulated():
    return bl.simulate_duplicates(200, seed=3, sizes=(0.4, 0.3, 0.2, 0.1), errors=2)


FIELDS = [bl.name("gname"), bl.name("fname"), bl.date("dob")]
HOW = {"draws": 60, "tune": 60, "chains": 2}


@pytest.fixture
def saved(simulated, tmp_path):
    bl.dedupe(simulated.a, FIELDS, **HOW).save(tmp_path / "run")
    return tmp_path / "run"


def cli(*words, code=0):
    done = CliRunner().invoke(main, [*map(str, words)])
    assert done.exit_code == code, done.output
    return done.output


def test_a_judged_sample_of_a_run(simulated, saved, tmp_path):
    assert "no random sample" in cli("evaluate", saved, "--labels", code=3)
    person = {row["id"]: row["entity_id"] for row in simulated.truth.to_pylist()}
    sample = bl.draw_sample(saved, 40, seed=2)
    with Judgements(saved / FILE) as judgements:
        assert judgements.sample() == sample
        said = {(x, y): "link" if person[x] == person[y] else "nonlink" for x, y in sample.pairs}
        judgements.add(case="1", version="1", reviewer="x", verdicts=said)
    found = bl.evaluate_sample(saved)
    assert found == bl.evaluate_sample(bl.open_run(saved))
    assert (found.drawn, found.judged) == (40, 40)
    known = bl.evaluate(bl.open_run(saved), simulated.truth)
    for name in NAMES[:-1]:
        e = getattr(found.quality, name)
        assert e.lower - 1e-9 <= getattr(known, name) <= e.upper + 1e-9, name
    assert found.quality.people.lower <= known.n_entities <= found.quality.people.upper
    assert cli("evaluate", saved, "--labels").strip() == str(found).strip()
    told = json.loads(cli("evaluate", saved, "--labels", "--json"))
    assert told == json.loads(json.dumps(found.as_dict()))
    bl.export_labels(saved, tmp_path / "judged.csv")
    assert bl.evaluate_sample(saved, tmp_path / "judged.csv") == found
    bl.dedupe(simulated.a, FIELDS[:2], **HOW).save(saved, force=True)
    assert "drawn from an earlier run" in cli("evaluate", saved, "--labels", code=3)


def test_a_run_saved_by_an_earlier_version(simulated, saved):
    """It has no reach: it opens all the same, and the sample says what that costs."""
    (saved / "reach.parquet").unlink()
    told = json.loads((saved / "run.json").read_text())
    del told["files"]["reach.parquet"]
    (saved / "run.json").write_text(json.dumps(told))
    run = bl.open_run(saved)
    assert run.as_table("reach") is None
    sample, person = bl.draw_sample(saved, 40, seed=2), {}
    for row in simulated.truth.to_pylist():
        person[row["id"]] = row["entity_id"]
    said = [
        {"id_a": x, "id_b": y, "verdict": "link" if person[x] == person[y] else "nonlink"}
        for x, y in sample.pairs
    ]
    found = bl.evaluate_sample(saved, pa.Table.from_pylist(said))
    assert "This run did not keep what is nearest" in str(found)
    assert found.found.unlisted == found.found.clusters - run.entities.interval()[0] > 0
    lists_only = people_audit.people_quality(found.strata, replace(found.found, unlisted=0))
    assert found.quality.people.lower < lists_only.people.lower
    assert found.quality.recall.lower < lists_only.recall.lower


def test_a_plan(saved):
    plan = bl.plan_sample(saved, 12, sizes=(20, 60))
    assert plan.sizes[0].people > plan.sizes[1].people
    assert plan.needed.people <= 12
    assert "clusters judged" in str(plan)
    assert "of people, judge" in str(plan)
    assert cli("review", saved, "--plan", "--width", "12").startswith("Expected width")
    assert json.loads(cli("review", saved, "--plan", "--json"))["of"] == "people"
    with pytest.raises(SettingsError, match="people, precision or recall"):
        bl.plan_sample(saved, of="links")


def test_a_run_that_is_not_saved_has_no_place_for_a_sample(simulated):
    with pytest.raises(InputError, match="no directory"):
        bl.draw_sample(bl.dedupe(simulated.a, FIELDS, **HOW))
