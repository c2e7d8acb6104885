"""The fit of a forest: what the tree of dependences is learned from."""

from datetime import date, timedelta

import numpy as np
import pyarrow as pa
import pytest

import bayeslink as bl
from bayeslink.errors import TooManyPairsError
from bayeslink.linkage import forest_modes
from bayeslink.linkage.forest import fit_forest, unlikeness
from bayeslink.linkage.pointers import pairs_within


def fields():
    return [
        *(bl.levenshtein(name) for name in ("gname", "fname")),
        bl.date("dob"),
        *(bl.exact(name) for name in ("sex", "occup", "postcode")),
        bl.tokens("street"),
    ]


def test_the_people_of_a_household_are_told_apart():
    """With independent fields they are one person: a tree learned from that keeps some so.

    65 of 1,123 pairs of one person were false when the tree was learned once.
    """
    made = bl.simulate_duplicates(2000, seed=2)
    person = np.unique(made.truth["entity_id"].to_numpy(), return_inverse=True)[1]
    fit = fit_forest(bl.compare(made.a, fields=fields()))
    a, b = pairs_within(fit.clusters)
    assert len(a) > 1000
    assert np.mean(person[a] != person[b]) < 0.01


@pytest.mark.parametrize(("sizes", "people"), [((1.0,), 1000), ((0.9, 0.1), 906)])
def test_few_duplicates_or_none_are_not_households(sizes, people):
    """A fit by independent fields makes 518 people of 1,000, and of 906."""
    made = bl.simulate_duplicates(1000, seed=1, sizes=sizes)
    assert len(made.truth["entity_id"].unique()) == people
    fit = fit_forest(bl.compare(made.a, fields=fields()))
    assert abs(fit.n_entities - people) < 15
    assert unlikeness(fit.linked.levels) < 0.25


def register(n, seed):
    """Rows of n people, a fifth of them beside a spouse with one surname, town and telephone."""
    rng = np.random.default_rng(seed)

    def pick(some):
        return some[rng.integers(len(some))]

    def parts(ends):
        return [a + b + end for a in "BCDFGJLM" for b in "ao" for end in ends.split()]

    def a_home():
        phone = f"06{rng.integers(10**8):08}"
        return {"surname": pick(surnames), "town": f"Town {rng.integers(14)}", "phone": phone}

    def a_person(sex, born, home):
        return {"given": pick(given[sex]), "sex": sex, "born": int(born), **home}

    surnames = parts("lin rand mer tot vel")
    given = {"F": parts("na lie se"), "M": parts("rik bert chel")}
    people = []
    while len(people) < n:
        sex, born, home = pick("FM"), rng.triangular(0, 14_000, 33_000), a_home()
        people.append(a_person(sex, born, home))
        if rng.random() < 0.2:
            people.append(a_person("MF"["FM".index(sex)], born + rng.integers(-1500, 1500), home))
    rows, person = [], []
    for number, one in enumerate(people[:n]):
        for again in range(rng.choice(4, p=[0.65, 0.24, 0.08, 0.03]) + 1):
            row = dict(one)
            for name in ("given", "surname"):
                if rng.random() < 0.15:
                    at = rng.integers(1, len(row[name]) - 1)
                    row[name] = row[name][:at] + row[name][at + 1 :]
            for name in ("town", "phone"):  # moved
                if again and rng.random() < 0.1:
                    row[name] = a_home()[name]
            row["postcode"] = row["town"][5:] + "000"
            row["born"] = str(date(1930, 1, 1) + timedelta(days=row["born"]))
            row |= {name: None for name in ("born", "phone") if rng.random() < 0.1}
            rows.append({"id": len(rows), **row})
            person.append(number)
    return pa.Table.from_pylist(rows), np.array(person)


def test_couples_with_one_telephone_are_two_people():
    """A fit by independent fields joins them: from there a third of all pairs were false."""
    rows, person = register(1000, seed=2)
    exact = [bl.exact(name) for name in ("sex", "town", "postcode", "phone")]
    names = [bl.levenshtein(name) for name in ("given", "surname")]
    fit = fit_forest(bl.compare(rows, fields=[*names, bl.date("born"), *exact]))
    a, b = pairs_within(fit.clusters)
    assert len(a) > 500
    assert np.mean(person[a] != person[b]) < 0.05
    assert abs(fit.n_entities - 1000) < 20


@pytest.fixture(scope="module")
def pairs():
    return bl.compare(bl.simulate_duplicates(1500, seed=1).a, fields=fields())


@pytest.fixture(scope="module")
def fit(pairs):
    return fit_forest(pairs)


def test_a_climb_that_falls_ends_and_misses_nothing(pairs, fit, monkeypatch):
    """With independent fields households become one, and the likelihood falls all the way."""
    steps, best_forest = [0, 0], forest_modes._best_forest

    for k, falls in enumerate((2, 10**9)):

        def counted(*given, k=k):
            steps[k] += 1
            return best_forest(*given)

        monkeypatch.setattr(forest_modes, "_best_forest", counted)
        monkeypatch.setattr(forest_modes, "_FALLEN", falls)
        assert fit_forest(pairs).objective == fit.objective
    assert steps[0] < 0.8 * steps[1]


def test_pieces_do_not_change_the_fit(pairs, fit, monkeypatch):
    monkeypatch.setattr("bayeslink.linkage.pointers._AT_A_TIME", 100)
    monkeypatch.setattr(forest_modes, "_AT_A_TIME", 50)
    in_pieces = fit_forest(pairs)
    np.testing.assert_array_equal(in_pieces.parent, fit.parent)
    np.testing.assert_array_equal(in_pieces.parameters.m, fit.parameters.m)
    assert in_pieces.gap == fit.gap


def test_the_sampler_has_as_many_pairs_as_may_be_listed(pairs, monkeypatch):
    fit = fit_forest(pairs, structure="independent")
    every = len(fit.candidates())
    monkeypatch.setattr("bayeslink.engines.joining.MAX_LISTED", every - 1)
    assert len(fit.linked) < len(fit.candidates()) < every
    monkeypatch.setattr("bayeslink.engines.joining.MAX_LISTED", 10)
    with pytest.raises(TooManyPairsError):
        fit.candidates()
