"""What a posterior says of itself: tables, intervals, diagnostics, decisions, what follows."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import bayeslink as bl
from bayeslink.errors import SettingsError
from bayeslink.linkage import decisions
from tests import oracles

FIELDS = [
    *(bl.levenshtein(name, m_prior=(1, 2, 5, 10)) for name in ("gname", "fname")),
    *(bl.exact(name, m_prior=(1, 10)) for name in ("sex", "occup")),
]


@pytest.fixture(scope="module")
def files():
    return bl.simulate(120, overlap=0.5, errors=3, seed=3)


def posterior_of(a, b, draws=300, **known):
    pairs = bl.compare(a, b, FIELDS)
    return bl.sample(bl.posthoc_blocks(pairs, bl.fit_penalized(pairs), 0.0, **known), draws=draws)


@pytest.fixture(scope="module")
def posterior(files):
    return posterior_of(files.a, files.b)


@pytest.fixture(scope="module")
def certain(files):
    """The same with five pairs known to be links."""
    return posterior_of(files.a, files.b, links=files.truth.slice(0, 5))


# --- tables -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "convert"),
    [(pa.Table, lambda t: t), (pd.DataFrame, pa.Table.to_pandas), (pl.DataFrame, pl.from_arrow)],
)
def test_tables_come_back_in_the_callers_own_kind(files, posterior, kind, convert):
    post = posterior_of(convert(files.a), convert(files.b))
    table, *_ = tables = [post.link_probabilities(), *post.linked_datasets(2)]
    assert all(isinstance(t, kind) for t in tables)
    assert pa.table(table).to_pydict() == posterior.link_probabilities().to_pydict()


def test_link_probabilities_list_every_candidate(posterior):
    blocks = posterior.blocks
    table = posterior.link_probabilities().to_pydict()
    assert list(table) == [
        *("id_a", "id_b", "link_probability", "mc_error", "match_weight", "block"),
        *(f"gamma_{f.name}" for f in FIELDS),
    ]
    ids = [records.ids.to_pylist() for records in blocks.pairs.records]
    row = {pair: i for i, pair in enumerate(zip(table["id_a"], table["id_b"], strict=True))}
    assert len(row) == blocks.n_candidates
    m, u = (x.mean(axis=(0, 1)) for x in (posterior.m, posterior.u))
    for e, (a, b) in enumerate(zip(blocks.candidates.a, blocks.candidates.b, strict=True)):
        i = row[ids[0][a], ids[1][b]]
        assert table["link_probability"][i] == posterior.probability[e]
        assert table["mc_error"][i] == posterior.error[e]
        assert table["block"][i] == (blocks.block[e] if blocks.block[e] >= 0 else None)
        levels = [table[f"gamma_{f.name}"][i] for f in FIELDS]
        assert levels == blocks.candidates.levels[e].tolist()
        bits = sum(math.log2(m[j, h] / u[j, h]) for j, h in enumerate(levels) if h)
        assert table["match_weight"][i] == pytest.approx(bits)
    assert table["link_probability"] == sorted(table["link_probability"], reverse=True)


# --- the number of links ----------------------------------------------------------------------


def test_interval_cuts_equal_tails(posterior):
    n_links = np.random.default_rng(1).permutation(300).reshape(4, 75) + 1
    post = replace(posterior, n_links=n_links, restricted=True)  # the draws as they are
    assert post.interval() == (8, 293)
    assert post.interval(0.5) == (75, 225)
    assert replace(post, n_links=np.full((2, 3), 7)).interval() == (7, 7)
    for level in (0.5, 0.8, 0.95):
        low, high = posterior.interval(level)
        draws = posterior.identified.draws
        inside = (draws >= low) & (draws <= high)
        assert inside.mean() >= level
        assert (draws < low).mean() < (1 - level) / 2
        assert (draws > high).mean() <= (1 - level) / 2


@pytest.mark.parametrize("level", [0, 1, 95, math.nan])
def test_interval_takes_a_probability(posterior, level):
    with pytest.raises(SettingsError, match=r"0\.95"):
        posterior.interval(level)


def test_theta_is_the_cost_at_the_mean_number_of_links(posterior):
    n = round(posterior.n_links.mean())
    # Flat overlap prior: log((n_A − L)(n_B − L) / (L + 1)).
    assert posterior.theta == pytest.approx(math.log((120 - n) ** 2 / (n + 1)))
    assert replace(posterior, prior=bl.Penalty(3.25)).theta == pytest.approx(3.25)


# --- diagnostics ------------------------------------------------------------------------------


def test_everything_is_followed(posterior):
    names = [d.name for d in posterior.diagnostics()]
    levels = [(f.name, h) for f in FIELDS for h in range(1, f.n_levels + 1)]
    assert names == [
        *("links", "log_posterior"),
        *(f"{p}[{name}, {h}]" for p in "mu" for name, h in levels),
    ]
    found = {d.name: d for d in posterior.diagnostics(interval=0.5)}
    second = posterior.m[:, :, 1, 2]
    assert found["m[fname, 2]"].mean == pytest.approx(second.mean())
    assert found["m[fname, 2]"].high == pytest.approx(np.quantile(second, 0.75))
    assert posterior.quantities()["u[sex, 1]"].tolist() == posterior.u[:, :, 2, 1].tolist()


def test_what_never_changed_is_called_constant(posterior):
    still = replace(posterior, n_links=np.full_like(posterior.n_links, 51))
    links = still.diagnostics()[0]
    assert (links.status, links.mean, links.sd) == ("constant", 51, 0)
    assert links.rhat is links.ess is links.mcse is None
    assert "nothing could be checked on links" in still.warning().lower()


def test_chains_that_disagree_are_named(posterior):
    apart = posterior.n_links + 20 * np.arange(4)[:, None]
    warning = replace(posterior, n_links=apart).warning()
    assert "chains disagree on links" in warning
    assert "trust no interval" in warning
    assert posterior.warning() is None or "disagree" not in posterior.warning()


def test_arviz_says_the_same(posterior):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        arviz = pytest.importorskip("arviz")
        data = posterior.to_arviz()
        theirs = arviz.rhat(data), arviz.ess(data, method="bulk"), arviz.mcse(data)
    for name, x in posterior.quantities().items():
        np.testing.assert_array_equal(data.posterior[name].values, x)
        assert data.posterior[name].dims == ("chain", "draw")
    for d in posterior.diagnostics():
        ours = d.rhat, d.ess, d.mcse
        np.testing.assert_allclose(ours, [float(t[d.name]) for t in theirs], rtol=1e-8)


# --- decisions --------------------------------------------------------------------------------


def as_given(post):
    c, pairs = post.blocks.candidates, post.blocks.pairs
    return c.a, c.b, post.probability, pairs.n_a, pairs.n_b, pairs.tie_keys


def same(one, other):
    return all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("links", "review", "rejected", "expected_loss", "expected_false")
    )


def test_estimates_are_those_of_decisions(posterior):
    given = as_given(posterior)
    assert same(posterior.estimate(), decisions.bayes_estimate(*given))
    assert (
        posterior.estimate().links.tolist() == np.flatnonzero(posterior.probability > 0.5).tolist()
    )
    loss = bl.Loss(false_link=4, reject=0.2)
    careful = posterior.estimate(loss)
    assert same(careful, decisions.bayes_estimate(*given, loss=loss))
    assert len(careful.rejected) > 0
    f_score = decisions.f_score_estimate(*given, expected_links=posterior.n_links.mean())
    assert same(posterior.estimate(method="f_score"), f_score)
    for rate in (0.0, 0.02, 0.2):
        largest = decisions.largest_set(*given, false_link_rate=rate)
        found = posterior.estimate(method="largest", false_link_rate=rate)
        assert same(found, largest)
    assert len(largest.links) > len(posterior.estimate().links)


def test_unknown_methods_are_refused(posterior):
    with pytest.raises(SettingsError, match=r"'mode'.*'f_score'"):
        posterior.estimate(method="mode")


def test_known_links_count_towards_what_is_expected(certain):
    """The best F score and the largest set, known links and all, over all matchings."""
    c = certain.blocks.candidates.take(np.argsort(certain.blocks.block)[:14])
    p = np.random.default_rng(2).uniform(0.3, 0.9, len(c))
    blocks = replace(certain.blocks, candidates=c, weights=p, block=np.arange(len(c)))
    small = replace(certain, blocks=blocks, probability=p, n_links=np.full((1, 4), 9))
    edges = list(zip(range(len(c)), c.a.tolist(), c.b.tolist(), strict=True))
    sets = [list(state) for state in oracles.matchings(edges)]
    assert len(blocks.known) == 5
    scores = [2 * (5 + p[s].sum()) / (5 + len(s) + 9) for s in sets]
    found = small.estimate(method="f_score")
    assert 1 - found.expected_loss == pytest.approx(max(scores))
    assert sorted(found.links) == sorted(sets[int(np.argmax(scores))])
    for rate in (0.05, 0.1, 0.2):
        allowed = [s for s in sets if (1 - p[s]).sum() <= rate * (5 + len(s))]
        largest = small.estimate(method="largest", false_link_rate=rate)
        assert len(largest.links) == max(map(len, allowed)) > 0
        fewest = min((1 - p[s]).sum() for s in allowed if len(s) == len(largest.links))
        assert largest.expected_false == pytest.approx(fewest)
        assert largest.expected_loss == pytest.approx(fewest / (5 + len(largest.links)))
        alone = decisions.largest_set(*as_given(small)[:5], false_link_rate=rate)
        assert len(alone.links) < len(largest.links)
    open_ones = small.estimate(bl.Loss(reject=0.01))
    assert max([*open_ones.links, *open_ones.review]) < len(c)
    assert not np.isin(open_ones.rejected, blocks.known.b).any()


# --- downstream -------------------------------------------------------------------------------


def test_linked_datasets_are_spread_over_the_draws(posterior):
    posterior = replace(posterior, restricted=True)  # the draws as they are
    ids = [records.ids.to_pylist() for records in posterior.blocks.pairs.records]
    c = posterior.blocks.candidates

    def links(state):
        return {(ids[0][c.a[e]], ids[1][c.b[e]]) for e in state}

    states = [state for chain in posterior.kept for state in chain]
    datasets = posterior.linked_datasets(5)
    for table, at in zip(datasets, (0, 300, 600, 899, 1199), strict=True):  # of 4 × 300
        found = list(zip(table["id_a"].to_pylist(), table["id_b"].to_pylist(), strict=True))
        assert set(found) == links(states[at])
        assert found == sorted(found, key=lambda pair: ids[0].index(pair[0]))
    assert len(posterior.linked_datasets()) == 20


@pytest.mark.parametrize("k", [0, 1201, 2.5, None])
def test_no_more_datasets_than_draws(posterior, k):
    with pytest.raises(SettingsError, match="1 to the 1,200 draws"):
        posterior.linked_datasets(k)


def test_linked_datasets_have_the_known_links(certain):
    known = set(zip(certain.blocks.known.a.tolist(), certain.blocks.known.b.tolist(), strict=True))
    ids = [records.ids.to_pylist() for records in certain.blocks.pairs.records]
    for table in certain.linked_datasets(6):
        rows = zip(table["id_a"].to_pylist(), table["id_b"].to_pylist(), strict=True)
        assert known <= {(ids[0].index(a), ids[1].index(b)) for a, b in rows}


def test_pooling_over_linked_datasets(posterior):
    """The share of links that agree on sex, with the uncertainty of the links on top."""
    estimates = []
    for table in posterior.linked_datasets(20):
        agree = (table["gamma_sex"].to_numpy() == 2).mean()
        estimates.append((agree, agree * (1 - agree) / len(table)))
    pooled = bl.pool(estimates)
    values = [e for e, _ in estimates]
    assert pooled.k == 20
    assert pooled.estimate == pytest.approx(np.mean(values))
    assert pooled.between == pytest.approx(np.var(values, ddof=1))
    assert pooled.between > 0
    assert pooled.total == pytest.approx(pooled.within + 1.05 * pooled.between)
    assert pooled.low < pooled.estimate < pooled.high


def test_population_size_from_the_draws(posterior):
    size = posterior.population_size()
    n_links = posterior.identified.draws.ravel()
    again = bl.population_size(120, 120, n_links, seed=posterior.seed)
    np.testing.assert_array_equal(size.draws, again.draws)
    assert (size.draws >= 240 - n_links).all()
    assert size.low < 120 * 120 / posterior.n_links.mean() < size.high
    other = posterior.population_size(seed=9, prior="flat", interval=0.5)
    assert size.low < other.low < other.high < size.high
