"""Precision and recall from a judged random sample: coverage, and what the weights are for."""

import itertools
import json

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from scipy import stats

import bayeslink as bl
from bayeslink.cli import main
from bayeslink.errors import InputError, SettingsError
from bayeslink.judging.judgements import FILE, Judgements, Sample, Stratum
from bayeslink.runs import audit, audit_sample

FEWER_DRAWS = 4000  # where intervals are computed hundreds of times
ALARM = 1e-4  # chance that a right estimator fails; seeds are fixed


def tables(p, linked, known=0):
    """Candidates with these probabilities, A0–B0, A1–B1, …, and links, some of them known."""
    chosen = np.append(np.flatnonzero(linked), np.arange(len(p), len(p) + known))
    id_a, id_b = (pa.array([f"{side}{k}" for k in range(len(p) + known)]) for side in "AB")
    everything = pa.table({"id_a": id_a, "id_b": id_b})
    decision = pa.array(["link"] * len(chosen), pa.string())
    return (
        everything[: len(p)].append_column("link_probability", pa.array(p, pa.float64())),
        everything.take(chosen).append_column("decision", decision),
    )


# --- drawing ----------------------------------------------------------------------------------


def test_strata_by_decision_and_probability():
    p = np.array([0.999, 0.99, 0.98, 0.6, 0.5, 0.1, 0.09, 0.01, 0.009, 0.001, 0.0009, 0.0])
    linked = np.arange(len(p)) < 4
    sample = audit_sample.stratified(*tables(p, linked, known=2), size=50, seed=1)
    assert [(s.name, s.linked, s.size) for s in sample.strata] == [
        ("links, 0.99 and above", True, 2),
        ("links, below 0.99", True, 2),
        ("not linked, 0.1 and above", False, 2),
        ("not linked, 0.01 to 0.1", False, 2),
        ("not linked, 0.001 to 0.01", False, 2),
        ("not linked, below 0.001", False, 2),
        ("links known before the run", True, 2),
    ]
    assert [s.expected for s in sample.strata] == pytest.approx(
        [1.989, 1.58, 0.6, 0.1, 0.01, 0.0009, 2]
    )
    drawn = {(f"A{k}", f"B{k}"): k // 2 for k in range(10)}  # all of the strata drawn from
    assert dict(zip(sample.pairs, sample.stratum, strict=True)) == drawn


def test_a_rejected_record_is_not_linked():
    candidates, links = tables([0.9, 0.6], [True, True])
    links = links.set_column(2, "decision", pa.array(["link", "review"]))
    sample = audit_sample.stratified(candidates, links, size=5, seed=1)
    assert [s.linked for s in sample.strata] == [True, False]
    assert sum(s.size for s in sample.strata) == 2


def test_every_pair_of_a_stratum_is_as_likely_to_be_drawn():
    """In 2,000 samples, by a chi-square test; and the order says nothing of the stratum."""
    p = np.repeat([0.995, 0.3], [30, 20])
    candidates, links = tables(p, p > 0.5)
    times, places = np.zeros(50), []
    for seed in range(2000):
        sample = audit_sample.stratified(candidates, links, size=20, seed=seed)
        assert len(set(sample.pairs)) == 20
        drawn = [int(a[1:]) for a, _ in sample.pairs]
        times[drawn] += 1
        places += [place for place, k in enumerate(drawn) if k >= 30]
    for part in (times[:30], times[30:]):
        assert len(set(part)) > 1
        # Draws without replacement vary less than independent ones: times (N − n) / (N − 1).
        n = part.sum() / 2000
        spread = part.mean() * (len(part) - n) / (len(part) - 1)
        assert stats.chi2.sf(((part - part.mean()) ** 2).sum() / spread, len(part) - 1) > ALARM
    assert stats.chisquare(np.bincount(places, minlength=20)).pvalue > ALARM


def test_the_same_seed_the_same_sample():
    given = tables(np.linspace(0, 1, 500), np.linspace(0, 1, 500) > 0.6)
    first, same, other = (audit_sample.stratified(*given, size=60, seed=seed) for seed in (1, 1, 2))
    assert first == same
    assert first.pairs != other.pairs


def test_allocation_is_the_best_there_is():
    """Against every allocation of 14 pairs to three strata, with at least 2 from each."""
    sizes, expected = np.array([9, 40, 300]), np.array([5.0, 30.0, 6.0])
    share = (expected + 0.5) / (sizes + 1)
    variance = sizes**2 * share * (1 - share)

    def loss(n):
        return (variance / np.array(n)).sum()

    every = [n for n in itertools.product(range(2, 10), range(2, 12), range(2, 12)) if sum(n) == 14]
    found = audit_sample.allocate(sizes, expected, 14)
    assert found.sum() == 14
    assert loss(found) == pytest.approx(min(map(loss, every)))


def test_allocation_takes_no_more_than_there_is():
    assert audit_sample.allocate(np.array([3, 5]), np.array([1.0, 1.0]), 100).tolist() == [3, 5]
    assert audit_sample.allocate(np.array([50, 5000]), np.array([50.0, 2500.0]), 24).tolist() == [
        6,
        18,
    ]
    assert audit_sample.allocate(np.array([50, 50]), np.array([25.0, 25.0]), 1).tolist() == [1, 1]


@pytest.mark.parametrize("size", [0, -3, 2.5])
def test_sizes_that_make_no_sense(size):
    with pytest.raises(SettingsError, match="whole number from 1 up"):
        audit_sample.stratified(*tables([0.5], [True]), size=size, seed=1)


def test_nothing_to_draw_from():
    with pytest.raises(InputError, match="nothing to draw from"):
        audit_sample.stratified(*tables([1e-5], [False]), size=5, seed=1)


# --- estimating -------------------------------------------------------------------------------


def judge(sample, is_link):
    return {pair: "link" if is_link[int(pair[0][1:])] else "nonlink" for pair in sample.pairs}


def quality(is_link, linked):
    true = (is_link & linked).sum()
    return np.array(
        [true / linked.sum(), true / is_link.sum(), 2 * true / (linked.sum() + is_link.sum())]
    )


def covered(found, truth):
    """Whether the intervals of precision, recall and F1 hold the truth."""
    estimates = (found.precision, found.recall, found.f1)
    return [e.lower <= t <= e.upper for e, t in zip(estimates, truth, strict=True)]


def test_a_sample_of_everything_leaves_no_doubt():
    p = np.array([0.999] * 6 + [0.8] * 4 + [0.4] * 5 + [0.05] * 3)
    linked = p > 0.5
    is_link = np.arange(len(p)) % 3 > 0
    sample = audit_sample.stratified(*tables(p, linked), size=99, seed=1)
    found = audit.estimate(sample, judge(sample, is_link)).quality
    for estimate, truth in zip(
        (found.precision, found.recall, found.f1), quality(is_link, linked), strict=True
    ):
        assert (estimate.value, estimate.lower, estimate.upper) == pytest.approx((truth,) * 3)


def test_one_stratum_is_a_beta_binomial():
    """Precision of 40 links of which 7 of 10 judged are true, against SciPy's quantiles."""
    sample = Sample(
        "", 1, (Stratum("links", True, 40, 30),), tuple((f"A{k}", "") for k in range(10)), (0,) * 10
    )
    labels = {pair: "link" if k < 7 else "nonlink" for k, pair in enumerate(sample.pairs)}
    found = audit.estimate(sample, labels).quality.precision
    exact = stats.betabinom(30, 7.5, 3.5)
    for value, level in ((found.lower, 0.025), (found.value, 0.5), (found.upper, 0.975)):
        at = 40 * value - 7
        assert exact.cdf(at - 1) - 0.01 < level < exact.cdf(at) + 0.01


def test_intervals_hold_the_truth_95_times_in_100(monkeypatch):
    """Shares of links drawn from the prior, where 95 % is exact but for whole numbers."""
    monkeypatch.setattr(audit, "DRAWS", FEWER_DRAWS)
    rng = np.random.default_rng(8)
    sizes = [400, 60, 50, 300, 500]
    p = np.repeat([0.995, 0.7, 0.3, 0.05, 0.005], sizes)
    linked = p > 0.5
    given = tables(p, linked)
    hits = []
    for seed in range(500):
        is_link = rng.random(len(p)) < np.repeat(rng.beta(0.5, 0.5, 5), sizes)
        sample = audit_sample.stratified(*given, size=120, seed=seed)
        found = audit.estimate(sample, judge(sample, is_link)).quality
        hits.append(covered(found, quality(is_link, linked)))
    for share in np.mean(hits, axis=0):
        low, high = stats.binom.interval(1 - ALARM / 3, 500, 0.95)
        assert low <= 500 * share <= high


@pytest.fixture(scope="module")
def overconfident():
    """A model that is too sure of itself: 300 repeats of drawing from one population."""
    rng = np.random.default_rng(9)
    sizes = [4000, 400, 300, 900, 3000]
    p = np.repeat([0.999, 0.8, 0.3, 0.05, 0.005], sizes)
    linked = p > 0.5
    is_link = rng.random(len(p)) < np.repeat([0.97, 0.6, 0.35, 0.1, 0.02], sizes)
    samples = [
        audit_sample.stratified(*tables(p, linked), size=300, seed=seed) for seed in range(300)
    ]
    return linked, is_link, samples


def test_intervals_do_not_rest_on_the_models_probabilities(overconfident, monkeypatch):
    monkeypatch.setattr(audit, "DRAWS", FEWER_DRAWS)
    linked, is_link, samples = overconfident
    truth = quality(is_link, linked)
    found = [audit.estimate(sample, judge(sample, is_link)).quality for sample in samples]
    coverage = np.mean([covered(one, truth) for one in found], axis=0)
    assert (300 * coverage >= stats.binom.ppf(ALARM, 300, 0.93)).all(), coverage
    medians = np.array([[q.precision.value, q.recall.value, q.f1.value] for q in found])
    error = np.abs(medians.mean(axis=0) - truth)
    assert (error < medians.std(axis=0)).all()  # little bias next to the spread


def test_without_the_strata_the_same_verdicts_mislead(overconfident):
    """Negative control: pooled, the pairs drawn give a precision and recall far off."""
    linked, is_link, samples = overconfident
    truth = quality(is_link, linked)
    drawn = [np.array([int(a[1:]) for a, _ in sample.pairs]) for sample in samples]
    pooled = np.array([quality(is_link[rows], linked[rows]) for rows in drawn])
    off = np.abs(pooled.mean(axis=0) - truth) / pooled.std(axis=0)
    assert (off > 2).all(), off


def test_unsure_and_unjudged_pairs_are_shown_not_hidden():
    p = np.repeat([0.995, 0.3], 200)
    sample = audit_sample.stratified(*tables(p, p > 0.5), size=60, seed=1)
    labels = judge(sample, p > 0.5)
    others = [pair for pair in sample.pairs if int(pair[0][1:]) >= 200]
    labels[others[0]], labels[others[1]] = "unsure", "disputed"
    del labels[others[-1]]
    found = audit.estimate(sample, labels)
    assert (found.drawn, found.judged, found.unsure) == (60, 57, 2)
    links, rest = found.strata
    assert links == audit.JudgedStratum(links.stratum, 60 - len(others), 60 - len(others), 0, 0)
    assert rest == audit.JudgedStratum(rest.stratum, len(others), 0, len(others) - 3, 2)
    worst, best = found.unsure_as_links.recall, found.unsure_as_nonlinks.recall
    assert worst.lower < found.quality.recall.lower < best.lower
    assert "2 unsure, 1 not judged" in str(found)
    assert "If all unsure pairs were links" in str(found)


def test_a_stratum_counts_up_to_the_first_pair_not_judged():
    """Here links are judged first: taken together, they would say that every pair is one."""
    p = np.repeat([0.995, 0.3], 200)
    is_link = np.arange(400) % 2 == 0
    sample = audit_sample.stratified(*tables(p, p > 0.5), size=60, seed=1)
    every = judge(sample, is_link)
    labels = {pair: verdict for pair, verdict in every.items() if verdict == "link"}
    found = audit.estimate(sample, labels)
    for k, stratum in enumerate(found.strata):
        drawn = [every[x] for x, s in zip(sample.pairs, sample.stratum, strict=True) if s == k]
        assert stratum.links == drawn.index("nonlink")
        assert stratum.nonlinks == 0
    assert found.judged < len(labels)


def test_known_links_count_as_true_and_what_lies_below_is_told():
    p = np.repeat([0.995, 0.3, 0.0001], [10, 10, 5000])
    sample = audit_sample.stratified(*tables(p, p > 0.5, known=90), size=20, seed=1)
    found = audit.estimate(sample, judge(sample, p > 1))  # no link drawn is true
    assert found.quality.precision.value == pytest.approx(0.9)
    text = str(found)
    assert "Pairs that are not listed" in text
    assert "5,000 candidates with a link probability below 0.001" in text
    assert "expects 0.5 links" in text


def test_no_links_at_all():
    sample = audit_sample.stratified(*tables([0.3] * 5, [False] * 5), size=5, seed=1)
    found = audit.estimate(sample, judge(sample, np.zeros(5, bool))).quality
    assert np.isnan([found.precision.value, found.recall.value, found.f1.value]).all()


def test_a_sample_of_which_nothing_is_judged():
    sample = audit_sample.stratified(*tables([0.995, 0.3], [True, False]), size=2, seed=1)
    with pytest.raises(InputError, match="none of the 2 pairs"):
        audit.estimate(sample, {})


# --- a run directory --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def simulated():
    return bl.simulate(200, overlap=0.5, errors=3, seed=3)


@pytest.fixture
def linked(simulated, tmp_path):
    fields = [bl.levenshtein("gname"), bl.levenshtein("fname"), bl.exact("dob")]
    run = bl.link(simulated.a, simulated.b, fields, draws=60, tune=20, w0=-2.0)
    run.save(tmp_path / "run")
    return tmp_path / "run"


def cli(*arguments, code=0):
    done = CliRunner().invoke(main, ["evaluate", *map(str, arguments)])
    assert done.exit_code == code, done.output
    return done.output


def test_a_judged_sample_of_a_run(simulated, linked, tmp_path):
    truth = {(row["id_a"], row["id_b"]) for row in pa.table(simulated.truth).to_pylist()}
    assert "no random sample" in cli(linked, "--labels", code=3)
    sample = bl.draw_sample(linked, 80, seed=5)
    assert len(sample.pairs) == 80
    assert "none of the 80 pairs" in cli(linked, "--labels", code=3)
    with Judgements(linked / FILE) as judgements:
        assert judgements.sample() == sample
        for k, pair in enumerate(sample.pairs):
            verdict = "link" if pair in truth else "nonlink"
            judgements.add(case=f"{k}", version="1", reviewer="x", verdicts={pair: verdict})
    found = bl.evaluate_sample(linked)
    known = bl.evaluate(linked, simulated.truth)
    assert found.quality.precision.lower <= known.precision <= found.quality.precision.upper
    assert found.beyond_table == bl.open_run(linked).summary()["links_outside"]
    assert f"(about {found.beyond_table:,.1f} links by the model)" in str(found)
    assert cli(linked, "--labels").strip() == str(found).strip()
    assert json.loads(cli(linked, "--labels", "--json")) == json.loads(json.dumps(found.as_dict()))
    bl.export_labels(linked, tmp_path / "judged.csv")
    assert bl.evaluate_sample(linked, tmp_path / "judged.csv") == found
    assert cli(linked, "--labels", tmp_path / "judged.csv").strip() == str(found).strip()


def test_a_sample_of_another_run_is_refused(simulated, linked):
    bl.draw_sample(linked, 20)
    for other in ({"draws": 20, "tune": 5}, {"point": True}):
        bl.link(simulated.a, simulated.b, [bl.exact("dob")], **other).save(linked, force=True)
        assert "drawn from an earlier run" in cli(linked, "--labels", code=3)


def test_a_point_estimate_has_no_sample(simulated, tmp_path):
    bl.link(simulated.a, simulated.b, [bl.exact("dob")], point=True).save(tmp_path / "run")
    with pytest.raises(InputError, match="point estimate"):
        bl.draw_sample(tmp_path / "run")


def test_truth_or_labels(linked, tmp_path):
    assert "--truth FILE or --labels" in cli(linked, code=2)
    assert "--truth FILE or --labels" in cli(linked, "--truth", tmp_path, "--labels", code=2)
