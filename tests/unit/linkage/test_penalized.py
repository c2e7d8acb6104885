"""Penalized likelihood: against enumeration on tiny files, and its promises on larger ones."""

from dataclasses import replace

import numpy as np
import pytest

import bayeslink as bl
from bayeslink.engines.local import LocalPairs
from bayeslink.errors import BayeslinkError, SettingsError
from bayeslink.linkage import penalized
from bayeslink.model import structure
from bayeslink.model.weights import Parameters, Priors, log_density, posterior_mode
from bayeslink.pairs import candidates
from bayeslink.pairs.source import count_levels
from tests import oracles


def tiny(rng, block=False):
    def rows(n):
        return [
            {
                "x": str(rng.integers(4)),
                "y": str(rng.integers(3)) if rng.random() > 0.1 else None,
                "z": str(rng.integers(2)),
            }
            for _ in range(n)
        ]

    a = oracles.records(rows(rng.integers(2, 5)))
    b = oracles.records(rows(rng.integers(2, 5)), side="B")
    fields = [bl.exact("x"), bl.exact("y"), bl.exact("z", name="zed")]
    return LocalPairs(a, b, fields, [bl.exact("z")] if block else [])


def best_by_enumeration(pairs, prior):
    """The highest objective over every matching, m and u maximised for each."""
    everything = pairs.pairs_above(np.zeros((3, 3)), -1.0)
    edges = list(zip(range(len(everything)), everything.a, everything.b, strict=True))
    priors, counts = Priors.of(pairs.fields), pairs.level_counts().counts
    on_scope, best = prior.on(pairs.scope), -np.inf
    for matching in oracles.matchings(edges):
        linked = count_levels(everything.levels[list(matching)], counts.shape[1])
        fitted = posterior_mode(priors, linked, counts - linked)
        data = log_density(fitted, priors, linked, counts - linked)
        best = max(best, data + float(on_scope.log_prior(len(matching))))
    return best


@pytest.mark.parametrize("block", [False, True])
@pytest.mark.parametrize(
    "prior", [bl.Penalty(0.5), bl.Penalty(2.0), bl.Overlap(), bl.Overlap(2, 5)]
)
def test_never_above_and_mostly_at_the_best_by_enumeration(prior, block):
    rng = np.random.default_rng(8)
    reached = 0
    for _ in range(25):
        pairs = tiny(rng, block)
        best = best_by_enumeration(pairs, prior)
        fit = bl.fit_penalized(pairs, prior=prior)
        assert fit.objective <= best + 1e-9
        reached += fit.objective > best - 1e-6
    assert reached >= 18  # a local search; a constant wrong answer reaches a handful


@pytest.fixture(scope="module")
def pairs():
    files = bl.simulate(600, overlap=0.4, errors=2, seed=5)
    fields = [bl.levenshtein("gname"), bl.levenshtein("fname"), bl.exact("occup"), bl.exact("age")]
    return bl.compare(files.a, files.b, fields)


@pytest.mark.parametrize(
    "prior",
    [bl.Penalty(0.0), bl.Penalty(5.0), bl.Overlap(), bl.Overlap(300, 30), bl.Overlap(1, 500)],
)
def test_the_objective_never_falls(pairs, prior):
    fit = bl.fit_penalized(pairs, prior=prior)
    for mode in fit.modes:
        assert (np.diff(mode.history) >= 0).all()
        assert mode.assignment.gap <= 1e-9
    objectives = [mode.objective for mode in fit.modes]
    assert objectives == sorted(objectives, reverse=True)
    assert fit.objective == objectives[0]
    assert len({mode.linked.a.tobytes() + mode.linked.b.tobytes() for mode in fit.modes}) == len(
        fit.modes
    )


@pytest.mark.parametrize("block", [False, True])
@pytest.mark.parametrize(
    "prior", [bl.Overlap(500, 500), bl.Overlap(2000, 50), bl.Overlap(50, 2000), bl.Overlap(0.1, 9)]
)
def test_no_step_of_a_climb_lowers_the_objective(prior, block, monkeypatch):
    """However strong the prior is, as its convexity promises; also the steps that are not taken."""
    seen = []
    objective, climb = penalized._Problem.objective, penalized._climb

    def recorded(self, *args):
        seen[-1].append(objective(self, *args))
        return seen[-1][-1]

    def begun(*args):
        seen.append([])
        return climb(*args)

    monkeypatch.setattr(penalized._Problem, "objective", recorded)
    monkeypatch.setattr(penalized, "_climb", begun)
    files = bl.simulate(120, overlap=0.5, errors=3, seed=7)
    fields = [bl.levenshtein("gname"), bl.levenshtein("fname"), bl.exact("age")]
    bl.fit_penalized(
        bl.compare(files.a, files.b, fields, block=["sex"] if block else []), prior=prior
    )
    assert max(map(len, seen)) > 2
    assert min(np.diff(values).min(initial=0) for values in seen) > -1e-6


def test_iterations_that_run_out_are_told(monkeypatch):
    files = bl.simulate(200, overlap=0.5, errors=2, seed=1)
    fields = [bl.levenshtein("gname"), bl.levenshtein("fname"), bl.exact("age")]
    settled = bl.link(files.a, files.b, fields, point=True)
    assert settled.fit.converged
    assert all(mode.converged for mode in settled.fit.modes)
    assert not [w for w in settled.warnings if "not settled" in w]
    monkeypatch.setattr(penalized, "_MAX_ITERATIONS", 1)
    for how in ({"point": True}, {"draws": 50, "tune": 10, "chains": 2}):
        run = bl.link(files.a, files.b, fields, **how)
        assert not run.fit.converged
        assert [w for w in run.warnings if "had not settled after 1 iterations" in w]


def test_counts_that_contradict_the_links_are_refused(pairs, monkeypatch):
    """Fewer pairs at a level, in all, than there are links at it: u would be negative."""
    true = pairs.level_counts()
    broken = replace(true, counts=true.counts // 10_000)
    monkeypatch.setattr(type(pairs), "level_counts", lambda self: broken)
    with pytest.raises(BayeslinkError, match="counts should hold every pair listed"):
        bl.fit_penalized(pairs, theta=5.0)
    monkeypatch.setattr(structure, "other_counts", lambda counts, linked: counts - linked)
    with pytest.raises(BayeslinkError, match="not a finite number"):
        bl.fit_penalized(pairs, theta=5.0)


def test_a_fit_is_a_fixed_point(pairs):
    """Neither of the two maximisations can improve on the answer."""
    fit = bl.fit_penalized(pairs, theta=5.0)
    counts = pairs.level_counts().counts
    linked = count_levels(fit.linked.levels, counts.shape[1])
    again = posterior_mode(Priors.of(pairs.fields), linked, counts - linked)
    np.testing.assert_allclose(again.m, fit.parameters.m)
    np.testing.assert_allclose(again.u, fit.parameters.u)
    w = fit.weight_of(fit.linked.levels)
    assert (w > 5.0).all()
    free_a = np.setdiff1d(np.arange(pairs.n_a), fit.linked.a)
    free_b = np.setdiff1d(np.arange(pairs.n_b), fit.linked.b)
    above = pairs.pairs_above(fit.parameters.log_weights, 5.0)
    assert not (np.isin(above.a, free_a) & np.isin(above.b, free_b)).any()


def test_theta_follows_from_the_number_of_links(pairs):
    fit = bl.fit_penalized(pairs)
    n = fit.n_links
    expected = np.log((pairs.n_a - n) * (pairs.n_b - n) / (n + 1))
    assert fit.theta == pytest.approx(expected)


def test_more_expensive_links_are_fewer(pairs):
    path = bl.penalty_path(pairs, [0, 3, 6, 9, 12, 30])
    assert (np.diff(path.n_links) <= 0).all()
    assert path.n_links[-1] == 0
    assert len(path.links) == len(path.modes) == len(path.objective) == 6
    assert len(path.links[-1]) == 0


def test_weights_stay_finite_where_a_level_is_never_seen():
    rows = [{"x": "a", "y": "b"}] * 3
    pairs = LocalPairs(
        oracles.records(rows), oracles.records(rows, side="B"), [bl.levenshtein("x"), bl.exact("y")]
    )
    for fit in (bl.fit_penalized(pairs, theta=1.0), bl.fit_em(pairs)):
        levels = np.array([[h, g] for h in range(5) for g in range(3)])
        assert np.isfinite(fit.weight_of(levels)).all()
        for p in (*fit.m, *fit.u):
            assert ((p > 0) & (p < 1)).all()


def test_missing_has_no_weight():
    used = np.array([[False, True, True]])
    p = Parameters(np.array([[0, 0.1, 0.9]]), np.array([[0, 0.8, 0.2]]), used)
    np.testing.assert_allclose(
        p.weight_of([[0], [1], [2]]), [0, np.log(0.1 / 0.8), np.log(0.9 / 0.2)]
    )


def test_arguments(pairs):
    with pytest.raises(SettingsError, match="not both"):
        bl.fit_penalized(pairs, theta=1.0, prior=bl.Overlap())
    with pytest.raises(SettingsError):
        bl.penalty_path(pairs, [])
    with pytest.raises(SettingsError):
        bl.penalty_path(pairs, [1.0, np.nan])
    assert bl.fit_penalized(pairs, theta=5.0).m["gname"].shape == (4,)
    assert bl.fit_penalized(pairs, theta=5.0).m[2].shape == (2,)


def test_a_start_that_would_list_too_many_pairs_is_left_out(monkeypatch):
    """The lowest cost of a link first; where all are too low, the highest is kept."""
    made = bl.simulate(200, overlap=0.5, errors=1, seed=2)
    fields = [bl.levenshtein("gname"), bl.levenshtein("fname"), bl.exact("dob")]
    pairs = bl.compare(made.a, made.b, fields)
    problem = penalized._Problem.of(pairs, bl.Overlap())
    costs = [cost for _, cost in penalized._starts(problem)]
    usual = penalized._starts(problem)[0][0]
    expected = [penalized.expected_above(pairs, usual, cost) for cost in costs]
    assert len(costs) == 4
    assert expected == sorted(expected, reverse=True)
    monkeypatch.setattr(penalized, "_MOST_AT_START", expected[1])
    assert [cost for _, cost in penalized._starts(problem)] == costs[1:]
    monkeypatch.setattr(penalized, "_MOST_AT_START", -1)
    assert [cost for _, cost in penalized._starts(problem)] == costs[-1:]
    assert bl.fit_penalized(pairs).n_links > 50
    monkeypatch.setattr(penalized, "_MOST_AT_START", 1e9)
    climbed = []

    def climb(problem, parameters, theta, climb=penalized._climb):
        climbed.append(penalized.expected_above(problem.pairs, parameters, theta))
        return climb(problem, parameters, theta)

    monkeypatch.setattr(penalized, "_climb", climb)
    bl.fit_penalized(pairs)
    monkeypatch.setattr(penalized, "_MOST_AT_START", sorted(climbed)[3])
    climbed.clear()
    bl.fit_penalized(pairs)
    assert max(climbed) <= penalized._MOST_AT_START


@pytest.mark.parametrize("structure", ["independent", "dependent"])
def test_climbs_that_meet_end_at_the_same_mode(monkeypatch, structure):
    made = bl.simulate(400, overlap=0.5, errors=3, seed=5)
    fields = [bl.levenshtein("gname"), bl.levenshtein("fname"), bl.exact("sex"), bl.exact("occup")]
    pairs = bl.compare(made.a, made.b, fields)
    assigned = []

    def assign(*given, assign=penalized._assign):
        assigned.append(given)
        return assign(*given)

    monkeypatch.setattr(penalized, "_assign", assign)
    fit, few = bl.fit_penalized(pairs, structure=structure), len(assigned)
    assigned.clear()
    monkeypatch.setattr(penalized, "_digest", lambda _: len(assigned))  # none is met again
    alone = bl.fit_penalized(pairs, structure=structure)
    assert few < 0.9 * len(assigned)
    assert [mode.objective for mode in fit.modes] == [mode.objective for mode in alone.modes]
    for mode, other in zip(fit.modes, alone.modes, strict=True):
        assert mode.links.equals(other.links)


def test_a_list_that_would_be_long_has_less_slack(monkeypatch):
    made = bl.simulate(300, overlap=0.5, errors=2, seed=5)
    pairs = bl.compare(made.a, made.b, [bl.levenshtein("gname"), bl.levenshtein("fname")])
    usual = bl.fit_penalized(pairs, theta=3.0).parameters
    whole = candidates.Candidates(pairs).above(usual, 2.0)
    monkeypatch.setattr(candidates, "_LONG", 100)
    short = candidates.Candidates(pairs, expected=penalized.expected_above)
    found = short.above(usual, 2.0)
    assert short.slack < 2.0
    assert (whole[0].a.tolist(), whole[0].b.tolist()) == (found[0].a.tolist(), found[0].b.tolist())


# --- known pairs --------------------------------------------------------------------------------


def with_known(rng, block=False):
    """Tiny files, a known link and up to two known non-links, by id and by number."""
    while True:
        pairs = tiny(rng, block)
        everything = pairs.pairs_above(np.zeros((3, 3)), -1.0)
        if len(everything) >= 4:
            break
    chosen = rng.choice(len(everything), 3, replace=False)
    given = everything.take(chosen)
    ids = list(
        zip(*(pairs.ids(k, rows).to_pylist() for k, rows in enumerate((given.a, given.b))),
            strict=True)
    )  # fmt: skip
    return pairs, everything, {"links": ids[:1], "nonlinks": ids[1:]}, chosen[0], set(chosen[1:])


def allowed(everything, known, barred):
    edges = list(zip(range(len(everything)), everything.a, everything.b, strict=True))
    for matching in oracles.matchings(edges):
        if known in matching and not barred & set(matching):
            yield list(matching)


@pytest.mark.parametrize("block", [False, True])
@pytest.mark.parametrize(
    "prior", [bl.Penalty(0.5), bl.Penalty(3.0), bl.Overlap(), bl.Overlap(2, 5)]
)
def test_known_pairs_hold_in_every_mode_and_the_best_is_that_of_enumeration(prior, block):
    rng = np.random.default_rng(9)
    reached = 0
    for _ in range(25):
        pairs, everything, given, known, barred = with_known(rng, block)
        priors, counts = Priors.of(pairs.fields), pairs.level_counts().counts
        best = -np.inf
        for matching in allowed(everything, known, barred):
            linked = count_levels(everything.levels[matching], counts.shape[1])
            fitted = posterior_mode(priors, linked, counts - linked)
            data = log_density(fitted, priors, linked, counts - linked)
            best = max(best, data + float(prior.on(pairs.scope).log_prior(len(matching))))
        fit = bl.fit_penalized(pairs, prior=prior, **given)
        assert fit.objective <= best + 1e-9
        reached += fit.objective > best - 1e-6
        numbers = everything.numbered(pairs.n_b)
        for mode in fit.modes:
            links = set(mode.linked.numbered(pairs.n_b).tolist())
            assert numbers[known] in links
            assert not links & {numbers[k] for k in barred}
            assert (np.diff(mode.linked.a) > 0).all()
            assert len(mode.tied) == mode.n_links
    assert reached >= 18


def test_an_assignment_with_known_pairs_is_the_best_of_those_that_have_them():
    rng = np.random.default_rng(10)
    for _ in range(40):
        pairs, everything, given, known, barred = with_known(rng)
        priors = Priors.of(pairs.fields)
        m, u = (rng.random((3, priors.used.shape[1])) * priors.used for _ in range(2))
        parameters = Parameters(*(p / p.sum(1, keepdims=True) for p in (m, u)), priors.used)
        theta = float(rng.normal(0, 2))
        problem = penalized._Problem.of(
            pairs, bl.Penalty(theta), penalized.Known.of(pairs, given["links"], given["nonlinks"])
        )
        linked, _, _ = penalized._assign(problem, parameters, theta, None)
        scores = parameters.weight_of(everything.levels) - theta
        best = max(scores[matching].sum() for matching in allowed(everything, known, barred))
        found = parameters.weight_of(linked.levels).sum() - theta * len(linked)
        assert found == pytest.approx(best)


HOUSEHOLD = [bl.name("gname"), bl.name("fname"), bl.exact("postcode"), bl.exact("age")]


@pytest.fixture(scope="module")
def judged():
    """Households; the false links of a fit, and the records of A of its links that are certain."""
    files = bl.simulate(500, overlap=0.5, errors=3, seed=2)
    pairs = bl.compare(files.a, files.b, HOUSEHOLD)
    fit = bl.fit_penalized(pairs, structure="dependent")
    true = {tuple(row.values()) for row in files.truth.to_pylist()}
    return files, pairs, fit, true


def ids_of(fit):
    table = fit.links
    return list(zip(table["id_a"].to_pylist(), table["id_b"].to_pylist(), strict=True))


def test_known_links_are_certain_and_known_non_links_never(judged, monkeypatch):
    """The tree is learned from the links that are certain, so known pairs count there too."""
    _, pairs, fit, true = judged
    learned = []
    learn = penalized.learn_tree
    monkeypatch.setattr(
        penalized, "learn_tree", lambda *args: learned.append(args[1]) or learn(*args)
    )
    found = ids_of(fit)
    wrong = [pair for pair in found if pair not in true]
    missed = sorted(true - set(found))
    assert wrong
    assert missed
    again = bl.fit_penalized(pairs, structure="dependent", links=missed, nonlinks=wrong)
    known, barred = pairs.find(missed), pairs.find(wrong)
    assert learned
    for certain in learned:
        numbers = certain.numbered(pairs.n_b)
        assert np.isin(known.numbered(pairs.n_b), numbers).all()
        assert not np.isin(barred.numbered(pairs.n_b), numbers).any()
    assert set(missed) <= set(ids_of(again))
    assert not set(wrong) & set(ids_of(again))
    assert again.structure.tree.n_certain != fit.structure.tree.n_certain


def test_known_pairs_hold_in_a_point_estimate(judged):
    files, _, fit, true = judged
    found = ids_of(fit)
    wrong, missed = [p for p in found if p not in true], sorted(true - set(found))
    run = bl.link(files.a, files.b, HOUSEHOLD, point=True, known_links=missed, known_nonlinks=wrong)
    linked = set(zip(run.links["id_a"].to_pylist(), run.links["id_b"].to_pylist(), strict=True))
    assert set(missed) <= linked
    assert not set(wrong) & linked
