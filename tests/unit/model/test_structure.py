"""Dependent fields: laws that add up, modes that are modes, bounds that hold, trees found."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

import bayeslink as bl
from bayeslink.errors import SettingsError
from bayeslink.model import bounds, dependence
from bayeslink.model.dependence import Tree, certain_links, learn_tree, two_way
from bayeslink.model.error_counts import (
    ErrorLaw,
    ErrorPriors,
    error_mode,
    log_prior,
    log_symmetric,
)
from bayeslink.model.structure import Dependent
from bayeslink.pairs.source import LevelCounts, sum_weights

FIELDS = [
    bl.levenshtein("x"),
    bl.exact("y"),
    bl.levenshtein("z", cuts=(0, 0.4)),
    bl.exact("v", bands=(0.1,)),
]
SIZES = [f.n_levels + 1 for f in FIELDS]
VECTORS = np.array(list(itertools.product(*map(range, SIZES))), np.uint8)
PRIORS = ErrorPriors.of(FIELDS)
# The same where x at level 2 covers z
COVERING = ErrorPriors.of([replace(FIELDS[0], covers=((2, "z"),)), *FIELDS[1:]])
COVERED = VECTORS[(VECTORS[:, 0] != 2) | (VECTORS[:, 2] == 0)]
MANY = 10**7  # pairs, from which a bound is made tighter


def laws(n=20, priors=PRIORS):
    return [priors.draw(np.random.default_rng(seed)) for seed in range(n)]


def test_symmetric_polynomials():
    rng = np.random.default_rng(1)
    log_r, sets = rng.normal(size=4), np.array(list(itertools.product((False, True), repeat=4)))
    found = log_symmetric(log_r, sets)
    for seen, row in zip(sets, found, strict=True):
        r = np.exp(log_r[seen])
        for e in range(len(r) + 1):
            wanted = sum(np.prod(some) for some in itertools.combinations(r, e))
            assert row[e] == pytest.approx(np.log(wanted))


def test_the_law_is_one_given_which_fields_are_seen():
    for law in laws():
        m = np.exp(law.log_m(VECTORS))
        for seen in itertools.product((False, True), repeat=4):
            assert m[((VECTORS > 0) == seen).all(1)].sum() == pytest.approx(1)


def test_independent_fields_are_a_special_case():
    """h of a sum of independent errors, r their odds: the product of the fields' own laws."""
    rng = np.random.default_rng(4)
    wrong = rng.uniform(0.05, 0.5, 4)
    log_r = np.log(wrong / (1 - wrong))
    h = np.zeros((5, 5))
    law = laws(1)[0]
    for seen in itertools.product((False, True), repeat=4):
        own = np.ones(1)
        for q in wrong[list(seen)]:
            own = np.convolve(own, [1 - q, q])
        a = 4 - sum(seen)
        if all(seen):  # other sets have other laws of the same numbers: one is enough here
            h[a, : len(own)] = own
    law = ErrorLaw(PRIORS, np.log(np.where(h > 0, h, 1)), log_r, law.log_level)
    whole = VECTORS[(VECTORS > 0).all(1)]
    is_wrong = whole < PRIORS.right_from
    levels = law.log_level[np.arange(4), whole].sum(1)
    plain = np.where(is_wrong, np.log(wrong), np.log1p(-wrong)).sum(1) + levels
    np.testing.assert_allclose(law.log_m(whole), plain)


def test_a_covered_field_is_neither_missing_nor_wrong():
    seen, wrong = COVERING.seen_and_wrong(COVERED)
    for levels, is_seen, is_wrong in zip(COVERED, seen, wrong, strict=True):
        by_x = levels[0] == 2
        assert is_seen.tolist() == [
            level > 0 or (j == 2 and by_x) for j, level in enumerate(levels)
        ]
        assert is_wrong.tolist() == [
            0 < h < r for h, r in zip(levels, PRIORS.right_from, strict=True)
        ]
    law = COVERING.draw(np.random.default_rng(1))
    whole = ErrorLaw(PRIORS, law.log_h, law.log_r, law.log_level)
    for levels in COVERED[COVERED[:, 0] == 2]:  # as z right, whichever of its levels that is
        as_right = np.array([levels]).repeat(SIZES[2] - 3, 0)
        as_right[:, 2] = np.arange(3, SIZES[2])
        m = np.exp(whole.log_m(as_right)).sum()
        assert np.exp(law.log_m(levels[None]))[0] == pytest.approx(m)


@pytest.mark.parametrize("seed", range(5))
def test_the_mode_is_the_mode(seed):
    rng = np.random.default_rng(seed)
    at, counts = rng.choice(len(VECTORS), 30, replace=False), rng.integers(1, 40, 30)
    found = error_mode(PRIORS, VECTORS[at], counts)

    def value(log_h, log_r, log_level):
        law = ErrorLaw(PRIORS, log_h, log_r, log_level)
        return counts @ law.log_m(VECTORS[at]) + log_prior(law)

    best = value(found.log_h, found.log_r, found.log_level)
    solved = minimize(
        lambda log_r: -value(found.log_h, log_r, found.log_level),
        np.zeros(4), method="Nelder-Mead",
        options={"xatol": 1e-7, "fatol": 1e-9, "maxiter": 5000},
    )  # fmt: skip
    assert best == pytest.approx(-solved.fun, abs=1e-5)
    for law in laws(3):
        assert value(law.log_h, found.log_r, found.log_level) <= best + 1e-9
        assert value(found.log_h, found.log_r, law.log_level) <= best + 1e-9


def dependent(law, seed=0):
    """Parameters with that law and a tree: y depends on x, z on y."""
    rng = np.random.default_rng(seed)
    u = np.zeros((4, 5))
    for j, size in enumerate(SIZES):
        u[j, 1:size] = rng.dirichlet(np.ones(size - 1))
    found = []
    for field, on in ((1, 0), (2, 1)):
        log_u = np.zeros((SIZES[on], 5))
        log_u[:, 1 : SIZES[field]] = np.log(rng.dirichlet(np.ones(SIZES[field] - 1), SIZES[on]))
        found.append(dependence.Dependence(field, on, 1.0, 1.0, log_u))
    return Dependent(u.copy(), u, u > 0, law, Tree(tuple(found)))


@pytest.mark.parametrize("threshold", [-8.0, -2.0, 0.0, 3.0, 8.0])
def test_no_bound_is_below_a_weight_where_a_field_is_covered(threshold):
    for seed, law in enumerate(laws(priors=COVERING)):
        parameters, n = dependent(law, seed), np.full((4, 5), 1000)
        weights = parameters.weight_of(COVERED)
        for bound in (parameters.bound, parameters.bound_above(threshold, LevelCounts(n, MANY))):
            assert (sum_weights(bound, COVERED) >= weights).all()


@pytest.mark.parametrize("threshold", [-8.0, -2.0, 0.0, 3.0, 8.0])
def test_no_bound_is_below_a_weight(threshold):
    """So that no pair is missed; and the tighter bound lists no more pairs than the other."""
    rng = np.random.default_rng(7)
    for seed, law in enumerate(laws()):
        parameters = dependent(law, seed)
        counts = np.zeros((4, 5), np.int64)
        for j, size in enumerate(SIZES):
            counts[j, :size] = rng.multinomial(MANY, rng.dirichlet(np.ones(size)))
        n = MANY * np.prod([counts[j, VECTORS[:, j]] / MANY for j in range(4)], axis=0)
        weights = parameters.weight_of(VECTORS)
        usual = sum_weights(parameters.bound, VECTORS)
        tight = parameters.bound_above(threshold, LevelCounts(counts, MANY))
        tight = sum_weights(tight, VECTORS)
        assert (usual >= weights).all()
        assert (tight >= weights).all()
        assert n[tight > threshold].sum() <= n[usual > threshold].sum() * (1 + 1e-9)


def test_with_very_many_fields_the_usual_bound_serves(monkeypatch):
    monkeypatch.setattr(bounds, "_MOST_STATES", 10)
    parameters = dependent(laws(1)[0])
    counts = LevelCounts(np.ones((4, 5), np.int64), MANY)
    assert (parameters.bound_above(0.0, counts) == parameters.bound).all()


def test_few_pairs_are_searched_with_the_usual_bound():
    """To make it tighter would take longer, and import scipy.optimize."""
    parameters = dependent(laws(1)[0])
    counts = np.full((4, 5), 1000)
    few, many = (parameters.bound_above(3.0, LevelCounts(counts, n)) for n in (10**6, MANY))
    assert (few == parameters.bound).all()
    assert (many != parameters.bound).any()


# --- trees ----------------------------------------------------------------------------------------


class Source:
    """Non-links drawn from given laws: y depends on x, z on neither."""

    def __init__(self, n, strong=True, seed=1):
        rng = np.random.default_rng(seed)
        self.fields = [bl.exact(name) for name in "xyz"]
        self.n_a, self.n_b = n, 400
        x = rng.random((n, self.n_b)) < 0.1
        y = np.where(x & strong, rng.random(x.shape) < 0.6, rng.random(x.shape) < 0.1)
        z = rng.random(x.shape) < 0.3
        self.levels = np.stack([x, y, z], -1).astype(np.uint8) + 1
        self.levels[np.arange(n), np.arange(n)] = 2  # the links
        self.tie_keys = np.arange(n, dtype=np.uint64), np.arange(self.n_b, dtype=np.uint64)

    def pattern_counts(self, rows):
        from bayeslink.pairs.source import Patterns

        levels, counts = np.unique(self.levels[rows].reshape(-1, 3), axis=0, return_counts=True)
        return Patterns(levels, counts)

    def learn(self, lead=10.0):
        from bayeslink.pairs.source import Pairs

        rows = np.arange(self.n_a, dtype=np.int32)
        linked = Pairs(rows, rows, self.levels[rows, rows])
        flat = self.levels.reshape(-1, 3)
        others = np.array([np.bincount(column, minlength=3) for column in flat.T])
        none = np.full(self.n_a, -np.inf), np.full(self.n_b, -np.inf)
        weights = np.full(self.n_a, lead)
        certain = certain_links(self, linked, weights, none, 2.0)
        return learn_tree(self, certain, others)


def test_a_dependence_is_found_with_its_law():
    tree = Source(200).learn()
    assert [{d.field, d.on} for d in tree.dependences] == [{0, 1}]
    assert tree.n_certain == 200
    assert tree.n_pairs == 200 * 399
    (d,) = tree.dependences
    if (d.field, d.on) == (1, 0):
        assert np.exp(d.log_u[2, 2]) == pytest.approx(0.6, abs=0.02)
        assert np.exp(d.log_u[1, 2]) == pytest.approx(0.1, abs=0.01)
    seen = next(t for t in tree.together if t.fields == (0, 1))
    assert seen.expected == pytest.approx(seen.observed, rel=0.05)
    assert seen.independent < seen.observed / 2


def test_a_field_that_is_missing_passes_on_what_it_would_say():
    """z depends on y, y on x: without y, z depends on x, and without both on neither."""
    parameters = dependent(laws(1)[0])
    y, z = (d.log_u for d in parameters.tree.dependences)
    own = np.exp(parameters.tree.log_u(np.array([[0, 0, k] for k in range(SIZES[2])], np.uint8)))
    through_y = np.exp(y[0, 1 : SIZES[1]]) @ np.exp(z[1:])
    np.testing.assert_allclose(own, through_y[: SIZES[2]])
    for x in range(1, SIZES[0]):
        vectors = np.array([[x, 0, k] for k in range(SIZES[2])], np.uint8)
        wanted = np.exp(y[x, 1 : SIZES[1]]) @ np.exp(z[1:])
        found = np.exp(parameters.tree.log_u(vectors))
        np.testing.assert_allclose(found, wanted[: SIZES[2]])
        whole = [[x, j, k] for j in range(1, SIZES[1]) for k in range(1, SIZES[2])]
        assert np.exp(parameters.tree.log_u(np.array(whole, np.uint8))).sum() == pytest.approx(1)


def test_independent_fields_stay_so():
    found = [Source(100, strong=False, seed=seed).learn().dependences for seed in range(8)]
    assert sum(map(len, found)) == 0


def test_nothing_is_learned_from_links_that_are_not_certain():
    assert Source(200).learn(lead=3.0).dependences == ()
    assert Source(5).learn().dependences == ()


def test_two_way_counts():
    levels = np.array([[1, 2, 0], [1, 1, 2], [2, 2, 2]], np.uint8)
    found = two_way(levels, np.array([5, 7, 11]), [bl.exact(name) for name in "xyz"])
    assert found[0, 1, 1, 2] == 5
    assert found[1, 0, 2, 1] == 5
    assert found[2, 1, 0, 2] == 5
    assert found[0, 2, 2, 2] == 11
    assert found.sum() == 9 * 23


def test_an_unknown_structure_is_refused():
    both = bl.simulate(30, seed=1)
    with pytest.raises(
        SettingsError, match="structure must be 'dependent' or 'independent', got 'free'"
    ):
        bl.link(both.a, both.b, [bl.exact("sex")], structure="free")


def test_the_prior_of_u_counts_in_a_field_that_depends_on_another():
    """The law on the whole is that of the pairs and of the prior together, as in a free field."""
    source = Source(200)
    plain = source.learn()
    (d,) = plain.dependences
    alpha, n = (1e7, 3e7), source.levels[..., 0].size
    source.fields[d.field] = bl.exact("xyz"[d.field], u_prior=alpha)
    (found,) = source.learn().dependences
    assert (found.field, found.on, found.gain) == (d.field, d.on, pytest.approx(d.gain))
    counts = np.bincount(source.levels[..., d.field].ravel(), minlength=3)[1:]
    law = counts + np.array(alpha) - 0.5
    assert np.exp(found.log_u[0, 1:]) == pytest.approx(law / law.sum())
    assert n == counts.sum()
    # Given the other field: by the same ratios as before
    for level in (1, 2):
        ratio = np.exp(found.log_u[level, 1:] - d.log_u[level, 1:])
        whole = np.exp(found.log_u[0, 1:] - d.log_u[0, 1:])
        assert ratio / ratio[0] == pytest.approx(whole / whole[0])


def test_a_strong_prior_of_u_reaches_the_weights_of_a_dependent_field():
    """In a whole run: a level that non-links are said to have often speaks less for a link."""
    files = bl.simulate(400, overlap=0.5, errors=1, seed=3)

    names = ("gname", "fname", "postcode", "dob")

    def linked(**priors):
        fields = [bl.exact(name, u_prior=priors.get(name)) for name in names]
        run = bl.link(files.a, files.b, fields, draws=40, tune=20, chains=1)
        agree = np.full((1, len(names)), 2, np.uint8)
        depend = {names[d.field] for d in run.fit.structure.tree.dependences}
        weights = [p.weight_of(agree)[0] for p in (run.fit.parameters, run.posterior.parameters)]
        return depend, np.array(weights)

    depend, usual = linked()
    field = min(depend)
    still, told = linked(**{field: (1e8, 1e7)})
    assert field in still
    assert (told < usual - 1).all()
