"""What is said of the people found in one file: each check on a posterior that it is meant for."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import bayeslink as bl
from bayeslink.linkage.clustering import PairProbabilities
from bayeslink.linkage.forest import certain_within, fit_forest
from bayeslink.pairs.candidates import Candidates
from bayeslink.sampling.cluster_checks import cluster_warnings
from bayeslink.sampling.forest import sample_forest
from tests.docs.warnings_page import undocumented

FIELDS = [bl.exact(name) for name in "vwxyz"]


def people(seed=3):
    """Sixty people with two records each, ten of whom have a third that is only like the second."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 40, (60, 5))
    second = first.copy()
    second[:, 0] = rng.integers(0, 40, 60)
    third = second[:10].copy()
    third[:, 1] = rng.integers(0, 40, 10)
    values = np.concatenate([first, second, third]).astype(str)
    return pd.DataFrame(values, columns=list("vwxyz")).assign(id=np.arange(len(values)).astype(str))


@pytest.fixture(scope="module")
def pairs():
    return bl.compare(people(), fields=FIELDS, id="id")


def drawn(fit):
    return sample_forest(fit, draws=40, tune=20, chains=2, threads=1)


@pytest.fixture(scope="module")
def posterior(pairs):
    return drawn(fit_forest(pairs, structure="independent"))


def said(posterior):
    warnings = cluster_warnings(posterior)
    assert not undocumented(warnings)
    return " ".join(warnings)


def test_nothing_is_said_of_a_plain_file(posterior):
    fit = replace(posterior.fit, modes=posterior.fit.modes[:1])
    calm = replace(posterior, fit=fit, rho=np.full_like(posterior.rho, 0.01))
    assert said(calm) == ""


def test_no_duplicates_and_nothing_but(posterior):
    n = posterior.fit.pairs.n_a
    none = replace(posterior.entities, draws=np.full_like(posterior.entities.draws, n))
    assert "hold no duplicates" in said(replace(posterior, entities=none))
    few = replace(posterior.entities, draws=np.full_like(posterior.entities.draws, n // 20))
    assert "at most 6 people" in said(replace(posterior, entities=few))


def test_a_chain_of_doubtful_pairs_is_seen(posterior):
    n = posterior.fit.pairs.n_a
    a = np.arange(n - 1, dtype=np.int32)
    for p, seen in ((0.3, True), (0.05, False)):
        chain = PairProbabilities(a, a + 1, np.full(n - 1, p))
        assert ("hang together" in said(replace(posterior, together=chain))) == seen


def test_several_forms_are_seen(posterior):
    """The second record hangs on the first, so a star has no place for the third."""
    parent = np.full(130, -1, np.int32)
    parent[60:120] = np.arange(60)
    star = replace(posterior.fit, shape="star", parent=parent)
    assert "10 pairs look like one person's" in said(replace(posterior, fit=star))
    parent[120:] = np.arange(60, 70)
    assert "several forms" not in said(replace(posterior, fit=star))
    deep = replace(posterior, rho=np.full_like(posterior.rho, 0.5))
    assert "0.50 times as likely" in said(deep)


def test_another_mode_nearly_as_good_is_told(posterior):
    best = posterior.fit.modes[0]
    parent = np.where(np.arange(len(best.parent)) < 70, best.parent, -1).astype(np.int32)
    for less, seen in ((1.0, True), (50.0, False)):
        other = replace(best, parent=parent, objective=best.objective - less)
        fit = replace(posterior.fit, modes=(best, other))
        apart = abs(other.n_entities - best.n_entities) > 0.05 * len(parent)
        assert apart
        assert ("nearly as good" in said(replace(posterior, fit=fit))) == seen


def test_all_copies_of_a_certain_original_are_learned_from(pairs, posterior, monkeypatch):
    """Else its other copies would count as non-links."""
    mode = posterior.fit.modes[0]
    monkeypatch.setattr("bayeslink.linkage.forest.most_certain", lambda n: 7)
    found = certain_within(pairs, Candidates(pairs), mode)
    originals = np.unique(found.a)
    assert len(originals) == 7
    cluster = posterior.fit.clusters
    assert len(found) == np.isin(cluster, originals).sum() - 7


def test_modes_with_the_same_people_are_told_apart():
    """A better one takes the place of its like, however many others there are."""
    made = bl.simulate_duplicates(400, seed=3)
    fields = [*map(bl.levenshtein, ("gname", "fname")), bl.date("dob"), bl.exact("postcode")]
    modes = fit_forest(bl.compare(made.a, fields=fields)).modes
    assert len({mode.parent.tobytes() for mode in modes}) == len(modes)
