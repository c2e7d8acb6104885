"""True links, recall of all and population from a judged sample; what is beyond reach; planning."""

import itertools
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from scipy import stats

import bayeslink as bl
from bayeslink.cli import main
from bayeslink.errors import SettingsError
from bayeslink.judging.judgements import FILE, Judgements, Sample, Stratum
from bayeslink.review.material import material_of
from bayeslink.review.queues import Desk
from bayeslink.runs import audit, audit_sample, best_unlinked
from bayeslink.runs.audit_plan import plan_sample

ALARM = 1e-4  # chance that a right estimator fails; seeds are fixed


# --- the estimate -----------------------------------------------------------------------------


def tiny():
    """Of 5 links 2 are judged, one false; of 6 other pairs 3, one true."""
    strata = (Stratum("links", True, 5, 3.0), Stratum("others", False, 6, 2.0))
    pairs = tuple((f"A{k}", f"B{k}") for k in range(5))
    sample = Sample("", 1, strata, pairs, (0, 0, 1, 1, 1))
    verdicts = ("link", "nonlink", "link", "nonlink", "nonlink")
    return sample, dict(zip(pairs, verdicts, strict=True))


def enumerated(prior):
    """P(L) and P(links never shown) by sums over all that the other pairs can be."""
    help_for = max(prior[0], 0.5 * 3 / 2)  # the model expects 3 links to 2 non-links, and 2 to 4
    help_against = max(prior[1], 0.5 * 4 / 2)
    true = {1 + k: stats.betabinom.pmf(k, 3, 1 + help_for, 1 + prior[1]) for k in range(4)}
    missed = {1 + k: stats.betabinom.pmf(k, 3, 1 + prior[0], 2 + help_against) for k in range(4)}
    links, beyond = np.zeros(20), np.zeros(20)
    for (t, x), (m, y) in itertools.product(true.items(), missed.items()):
        most = 0 if prior == audit.ENDS[0] else m  # one for each link missed at most, all alike
        links[t + m : t + m + most + 1] += x * y / (most + 1)
        beyond[: most + 1] += x * y / (most + 1)
    return links, beyond


def at_level(value, probabilities, level):
    below = np.append(0, np.cumsum(probabilities))
    return below[int(value)] - 0.01 < level < below[int(value) + 1] + 0.01


def test_the_number_of_links_by_enumeration():
    found = audit.estimate(*tiny()).quality.totals
    ends = ((audit.ENDS[0], "lower", 0.025), (audit.ENDS[1], "value", 0.5),
            (audit.ENDS[2], "upper", 0.975))  # fmt: skip
    for prior, end, level in ends:
        links, beyond = enumerated(prior)
        assert links.sum() == pytest.approx(1, abs=1e-3)
        assert at_level(getattr(found.links, end), links, level), end
        assert at_level(getattr(found.beyond, end), beyond, level), end


HIDDEN = (("links", True, 430, 424), ("not linked", False, 20, 4))  # name, linked, pairs, true


def hidden(chance, rng, known=True):
    """Of 478 links 50 are in no list, and shown with this chance for one of 1,500 records."""
    strata = (*HIDDEN, (audit_sample.BEST, False, 1500, rng.binomial(50, chance)))
    judged = []
    for (name, linked, size, true), n in zip(strata, (60, 20, 120), strict=True):
        found = int(rng.hypergeometric(true, size - true, n))
        last = name == audit_sample.BEST
        stratum = Stratum(name, linked, size, 0.0 if last else float(true))
        chances = ((chance,) * found, chance) if last and known else ((), 1.0)
        judged.append(audit.JudgedStratum(stratum, n, found, n - found, 0, *chances))
    found = audit.quality_of(judged, (2000, 2000), int(rng.integers(2**31))).totals
    return found.links.lower <= 478 <= found.links.upper


@pytest.mark.parametrize("chance", [1.0, 0.5, 0.2, 0.1])
def test_links_that_no_list_shows_are_counted_by_their_chance(chance, monkeypatch):
    """Nothing found does not say that nothing is hidden."""
    monkeypatch.setattr(audit, "DRAWS", 2000)
    rng = np.random.default_rng(1)
    hits = sum(hidden(chance, rng) for _ in range(200))
    assert hits >= stats.binom.ppf(ALARM, 200, 0.95), hits
    if chance < 0.5:  # taken for certain to be shown, they are missed: the test can fail
        assert sum(hidden(chance, rng, known=False) for _ in range(100)) < 90


def test_the_sum_of_one_over_the_chance_has_no_bias():
    """Horvitz and Thompson: whatever the chances, as long as they are known."""
    rng, n, totals = np.random.default_rng(2), 1500, []
    chance = rng.uniform(0.1, 1, 50)
    for _ in range(400):
        shown = np.flatnonzero(rng.random(50) < chance)
        judged = rng.choice(n, 300, replace=False)
        found = shown[np.isin(shown, judged)]  # the first 50 records have a hidden link
        stratum = audit.JudgedStratum(
            Stratum(audit_sample.BEST, False, n, 0.0), 300, len(found), 300 - len(found), 0,
            tuple(chance[found]), 0.1,
        )  # fmt: skip
        totals.append(audit._by_chance(stratum, 1e-9, rng).mean())
    assert np.mean(totals) == pytest.approx(50, abs=4 * np.std(totals) / 20)


def test_what_is_hidden_has_room_in_the_files():
    found = audit.estimate(*tiny(), records=(4, 9)).quality.totals
    assert found.beyond.upper <= 4


def test_there_are_no_more_links_than_records():
    found = audit.estimate(*tiny(), records=(4, 9)).quality.totals
    assert found.links.upper == 4
    assert found.population.lower >= 4 + 9 - 4


def test_no_population_where_the_lists_may_share_nobody():
    sample, labels = tiny()
    labels = dict.fromkeys(labels, "nonlink")
    assert audit.estimate(sample, labels, records=(50, 60)).quality.totals.population is None
    assert audit.estimate(*tiny()).quality.totals.population is None  # sizes not known


def test_population_against_known_links():
    """All pairs judged: L is certain but for pairs never shown, of which there are none."""
    strata = (Stratum("links", True, 40, 40.0),)
    pairs = tuple((f"A{k}", f"B{k}") for k in range(40))
    found = audit.estimate(
        Sample("", 1, strata, pairs, (0,) * 40), dict.fromkeys(pairs, "link"), records=(100, 90)
    ).quality.totals
    assert (found.links.lower, found.links.value, found.links.upper) == (40, 40, 40)
    exact = bl.population_size(100, 90, np.full(20_000, 40))
    assert found.population.value == pytest.approx(exact.median, rel=0.02)
    assert found.population.lower == pytest.approx(exact.low, rel=0.02)
    assert found.population.upper == pytest.approx(exact.high, rel=0.05)


# --- coverage ---------------------------------------------------------------------------------

SIZES = [2000, 300, 200, 900, 3000]
SHOWN = [0.999, 0.8, 0.3, 0.03, 0.003]
WORLDS = {  # true shares in the strata, and of records without a candidate
    "the model is right": ([0.999, 0.8, 0.3, 0.03, 0.003], 0.0),
    "far too sure": ([0.9, 0.55, 0.42, 0.25, 0.12], 0.05),
    "not sure enough": ([1.0, 0.99, 0.05, 0.0, 0.0], 0.0),
    "hidden below .01": ([0.999, 0.8, 0.3, 0.03, 0.04], 0.01),
    "hidden beyond the candidates": ([0.999, 0.8, 0.3, 0.03, 0.003], 0.1),
}


def tables(rng):
    """Candidates and links, and the best pair of 500 of 5,000 records.

    3,000 of these have one candidate each, below .01, and 2,000 have none.
    """
    p = np.repeat(SHOWN, SIZES)
    n = len(p)
    ids = {"id_a": [f"A{k}" for k in range(n)], "id_b": [f"B{k}" for k in range(n)]}
    candidates = pa.table({**ids, "link_probability": p})
    links = candidates.filter(pa.array(p > 0.5)).append_column(
        "decision", pa.array(["link"] * int((p > 0.5).sum()))
    )
    kept = n - SIZES[-1] + rng.choice(5000, 500, replace=False)
    best = pa.table({"id_a": [f"A{k}" for k in kept], "id_b": [f"B{k}" for k in kept]})
    return candidates, links, best.replace_schema_metadata({best_unlinked.RECORDS: "5000"})


@pytest.mark.parametrize("world", WORLDS)
def test_intervals_of_the_links_hold_whatever_the_model(world, monkeypatch):
    monkeypatch.setattr(audit, "DRAWS", 3000)
    shares, share_best = WORLDS[world]
    rng = np.random.default_rng(3)
    trials, hits, model = 100, [], []
    for seed in range(trials):
        is_link = rng.random(sum(SIZES)) < np.repeat(shares, SIZES)
        best = rng.random(2000) < share_best
        truth = np.concatenate([is_link, best])
        sample = audit_sample.stratified(*tables(rng), size=300, seed=seed)
        labels = {pair: "link" if truth[int(pair[0][1:])] else "nonlink" for pair in sample.pairs}
        totals = audit.estimate(sample, labels, records=(9000, 9000)).quality.totals
        n_true, recall = truth.sum(), is_link[:2300].sum() / truth.sum()
        hits.append(
            (
                totals.links.lower <= n_true <= totals.links.upper,
                totals.recall.lower <= recall <= totals.recall.upper,
            )
        )
        expected = np.repeat(SHOWN, SIZES)
        half = 1.96 * np.sqrt((expected * (1 - expected)).sum())
        model.append(abs(expected.sum() - n_true) < half)
    covered = np.sum(hits, axis=0)
    assert (covered >= stats.binom.ppf(ALARM, trials, 0.95)).all(), covered
    if world != "the model is right":  # negative control: the model's own interval does not
        assert np.mean(model) < 0.5


# --- beyond the candidates --------------------------------------------------------------------


@pytest.fixture(scope="module")
def simulated():
    return bl.simulate(200, overlap=0.5, errors=3, seed=3)


FIELDS = [bl.levenshtein("gname"), bl.levenshtein("fname"), bl.exact("dob")]


def linked(a, b, **options):
    return bl.link(a, b, FIELDS, draws=60, tune=20, w0=2.0, **options)


@pytest.fixture(scope="module")
def run(simulated):
    return linked(simulated.a, simulated.b)


def id_pairs(table):
    return list(zip(table["id_a"].to_pylist(), table["id_b"].to_pylist(), strict=True))


def weights_of_all(run, found):
    """For each kept pair: itself, its partner, the best, all that may be drawn, their weights."""
    links = run.table.filter(pa.compute.equal(run.table["decision"], "link"))
    table = run.candidates()
    side = max((0, 1), key=lambda k: len(set(found[audit_sample.SIDES[k]].to_pylist())))
    own, other = (audit_sample.SIDES[k] for k in (side, 1 - side))
    everyone = [
        run.pairs.ids(k, np.arange(200, dtype=np.int32)).to_pylist() for k in (side, 1 - side)
    ]
    near = table.filter(pa.compute.greater_equal(table["link_probability"], best_unlinked.NEAR))
    taken = set(links[own].to_pylist()) | set(near[own].to_pylist())
    assert set(found[own].to_pylist()) == set(everyone[0]) - taken
    free = sorted(set(everyone[1]) - set(links[other].to_pylist()))
    likeliest = {row[own]: row[other] for row in table.to_pylist()[::-1]}
    for row in found.slice(0, 40).to_pylist():
        record = row[own]
        pairs = [(record, x) if side == 0 else (x, record) for x in free]
        weights = run.parameters.weight_of(run.pairs.find(pairs).levels)
        best = likeliest.get(record, free[int(weights.argmax())])
        yield row, row[other], best, free, weights


def test_a_pair_of_records_without_a_candidate_and_its_chance(run):
    found = best_unlinked.best_pairs(run)
    assert int(found.schema.metadata[best_unlinked.RECORDS]) == len(found)
    are_best = []
    for row, partner, best, free, weights in weights_of_all(run, found):
        share = dict(zip(free, np.exp(weights) / np.exp(weights).sum(), strict=True))
        chance = 0.5 * (partner == best) + 0.5 * share.get(partner, 0)
        assert row["chance"] == pytest.approx(chance)
        are_best.append(partner == best)
    assert 0.4 < np.mean(are_best) < 1


def test_partners_are_drawn_in_proportion_to_m_over_u(run, monkeypatch):
    monkeypatch.setattr(best_unlinked, "_BEST", 0.0)
    found = best_unlinked.best_pairs(run)
    away, variance = 0.0, 0.0
    for row, _, _, _, w in weights_of_all(run, found):
        share = np.exp(w) / np.exp(w).sum()
        away += row["match_weight"] * np.log(2) - share @ w
        variance += share @ w**2 - (share @ w) ** 2
    assert abs(away) < 4 * np.sqrt(variance)


def test_neither_row_order_nor_names_of_the_files_matter(run, simulated):
    a, b = pa.table(simulated.a), pa.table(simulated.b)
    order = np.random.default_rng(1).permutation(len(a))
    other = linked(b, a.take(order))
    found = [(y, x) for x, y in id_pairs(best_unlinked.best_pairs(other))]
    assert found == id_pairs(best_unlinked.best_pairs(run))


def test_no_best_pairs_of_a_point_estimate_or_under_a_blocking_key(simulated):
    assert best_unlinked.best_pairs(bl.link(simulated.a, simulated.b, FIELDS, point=True)) is None
    assert best_unlinked.best_pairs(linked(simulated.a, simulated.b, block=["sex"])) is None


def test_as_many_records_as_can_be_weighed(run, monkeypatch):
    monkeypatch.setattr(best_unlinked, "_WEIGHED", 1000)
    few = best_unlinked.best_pairs(run)
    assert 1 <= len(few) <= 1000 // 100
    assert int(few.schema.metadata[best_unlinked.RECORDS]) > len(few)


@pytest.fixture
def saved(simulated, tmp_path):
    bl.simulation.files.write_simulation(simulated, tmp_path / "files")
    made = linked(tmp_path / "files" / "a.csv", tmp_path / "files" / "b.csv")
    made.save(tmp_path / "run")
    return tmp_path / "run"


def judge(folder, simulated, size):
    truth = set(id_pairs(pa.table(simulated.truth)))
    sample = bl.draw_sample(folder, size, seed=5)
    with Judgements(folder / FILE) as judgements:
        for k, pair in enumerate(sample.pairs):
            verdict = "link" if pair in truth else "nonlink"
            judgements.add(case=f"{k}", version="1", reviewer="x", verdicts={pair: verdict})
    return sample


def test_pairs_beyond_the_candidates_are_drawn_and_shown(saved):
    sample = bl.draw_sample(saved, 150, seed=1)
    names = [sample.strata[k].name for k in sample.stratum]
    assert names.count(audit_sample.BEST) > 10
    listed = set(id_pairs(pq.read_table(saved / "pairs.parquet")))
    material = material_of(bl.open_run(saved))
    assert material.ids(0) in listed  # candidates keep their places
    beyond = [pair for pair in sample.pairs if pair not in listed]
    rows = material.find(beyond)
    assert beyond
    assert None not in rows
    with Judgements(saved / FILE) as judgements:
        desk = Desk(material, judgements)
        assert {material.key_of(row) for row in rows} <= set(desk._sampled())
        shown = desk.case(material.key_of(rows[0]), "Anna")
        assert len(shown["groups"][0]["pairs"]) == 1
        assert desk.evidence(material.key_of(rows[0]))[0]["probability"] == 0
        desk.close()


def test_totals_of_a_run(saved, simulated):
    judge(saved, simulated, 150)
    found = bl.evaluate_sample(saved)
    totals = found.quality.totals
    assert totals.links.lower <= len(simulated.truth) <= totals.links.upper
    assert totals.population.lower <= 200 * 200 / len(simulated.truth) <= totals.population.upper
    text = str(found)
    assert "true links" in text
    assert "people" in text
    assert "never shown" in text
    assert "of the true links here" in text
    done = CliRunner().invoke(main, ["evaluate", str(saved), "--labels", "--json"])
    assert json.loads(done.output)["quality"]["totals"]["links"]["value"] == totals.links.value


# --- planning ---------------------------------------------------------------------------------


def cli(*arguments, code=0):
    done = CliRunner().invoke(main, ["review", *map(str, arguments)])
    assert done.exit_code == code, done.output
    return done.output


def test_a_plan_says_how_many_pairs_and_where(saved, simulated):
    plan = plan_sample(saved, 25, sizes=(30, 60, 120))
    widths = [p.links for p in plan.sizes]
    assert widths == sorted(widths, reverse=True)
    assert plan.needed.links <= 25
    assert plan.sizes[0].links > 25
    assert sum(s.judge for s in plan.where) == plan.needed.size
    drawn = bl.draw_sample(saved, plan.needed.size)
    by_name = {s.name: drawn.stratum.count(k) for k, s in enumerate(drawn.strata)}
    assert {s.stratum: s.judge for s in plan.where} == by_name
    assert "the model's probabilities" in str(plan)


def test_a_plan_goes_by_the_verdicts_if_there_are_any(saved, simulated):
    before = plan_sample(saved, sizes=(100,))
    judge(saved, simulated, 100)
    after = plan_sample(saved, sizes=(100,))
    assert (before.judged, after.judged) == (0, 100)
    assert "100 verdicts" in str(after)
    found = bl.evaluate_sample(saved).quality.totals.links
    assert after.sizes[0].links == pytest.approx(found.upper - found.lower, rel=0.5)


def test_the_command_that_plans(saved):
    text = cli(saved, "--plan", "--width", "0.2", "--of", "precision")
    assert "For an interval of width 0.2 of precision, judge" in text
    assert "1,000" in text or "pairs, by stratum" in text
    assert "No sample of up to" in cli(saved, "--plan", "--width", "0.001")
    plan = json.loads(cli(saved, "--plan", "--json"))
    assert plan["needed"] is None
    assert plan["where"][0]["stratum"].startswith("links")
    assert "Give --plan too" in cli(saved, "--width", "5", code=2)
    assert "above 0" in cli(saved, "--plan", "--width", "-5", code=2)


def test_a_plan_of_something_else(saved):
    with pytest.raises(SettingsError, match="links, precision or recall"):
        plan_sample(saved, 5, of="f1")
