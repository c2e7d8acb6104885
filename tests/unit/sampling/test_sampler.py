"""What `sample` promises whatever the posterior: the same draws everywhere, matchings, memory.

That the draws have the right distribution is held in tests/exact and tests/statistical.
"""

import inspect
import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import betaln

import bayeslink as bl
from bayeslink import threads
from bayeslink.errors import BayeslinkError, SettingsError
from bayeslink.linkage.assignment import assign
from bayeslink.model import kernel_input
from bayeslink.model.weights import Priors, proportions
from bayeslink.pairs.source import count_levels
from bayeslink.sampling import sampler
from bayeslink.sampling.diagnostics import summarize
from bayeslink.sampling.layout import Layout
from tests import oracles

FIELDS = [
    *(bl.levenshtein(name, m_prior=(1, 2, 5, 10)) for name in ("gname", "fname")),
    *(bl.exact(name, m_prior=(1, 10)) for name in ("sex", "occup")),
]
SHORT = {"draws": 60, "tune": 20}
RESTRICTED = {**SHORT, "restricted": True}
ARRAYS = ("n_links", "log_posterior", "m", "u", "probability", "error")


def files(n_b=None):
    return bl.simulate(120, n_b=n_b, overlap=0.5, errors=3, seed=3)


def blocks_of(a, b, w0=0.0, **kwargs):
    pairs = bl.compare(a, b, FIELDS)
    return bl.posthoc_blocks(pairs, bl.fit_penalized(pairs), w0, **kwargs)


@pytest.fixture(scope="module")
def blocks():
    both = files()
    return blocks_of(both.a, both.b)


@pytest.fixture(scope="module")
def posterior(blocks):
    return bl.sample(blocks, seed=5, draws=400, tune=100)


def content(posterior):
    """Every array of a posterior, as bytes."""
    arrays = [getattr(posterior, name) for name in ARRAYS]
    return [x.tobytes() for x in (*arrays, *(state for chain in posterior.kept for state in chain))]


def by_id(posterior, swapped=False):
    """Link probability and Monte Carlo error of each pair of ids."""
    table = posterior.link_probabilities().to_pydict()
    sides = ("id_b", "id_a") if swapped else ("id_a", "id_b")
    keys = zip(*(table[side] for side in sides), strict=True)
    return dict(
        zip(keys, zip(table["link_probability"], table["mc_error"], strict=True), strict=True)
    )


def linked_ids(posterior):
    """The links of every kept draw, as sets of ids."""
    n = sum(map(len, posterior.kept))
    return [
        frozenset(zip(t["id_a"].to_pylist(), t["id_b"].to_pylist(), strict=True))
        for t in posterior.linked_datasets(n)
    ]


# --- the same draws ---------------------------------------------------------------------------


def test_same_bytes_on_any_number_of_threads(blocks):
    assert all(n > 1 for n in bl.sample(blocks, **SHORT).kinds.values())  # of every kind of block
    one, two, eight = (content(bl.sample(blocks, threads=n, **SHORT)) for n in (1, 2, 8))
    assert one == two == eight


@pytest.mark.parametrize("kept_links", [1500, sampler.KEPT_LINKS])
def test_same_bytes_however_long_compiled_code_runs_at_a_time(blocks, monkeypatch, kept_links):
    monkeypatch.setattr(sampler, "KEPT_LINKS", kept_links)
    found = []
    for seconds in (1e-9, 1e9):  # a sweep at a time, or twice as many as before
        monkeypatch.setattr(threads, "SECONDS", seconds)
        found.append(content(bl.sample(blocks, threads=2, **SHORT)))
    assert found[0] == found[1]


def test_same_draws_whatever_the_order_of_rows(blocks):
    both = files()
    rng = np.random.default_rng(1)
    shuffled = blocks_of(*(t.take(rng.permutation(len(t))) for t in (both.a, both.b)))
    assert shuffled.candidates.a.tolist() != blocks.candidates.a.tolist()
    one, other = (bl.sample(x, **SHORT) for x in (blocks, shuffled))
    for name in ("n_links", "log_posterior", "m", "u"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert by_id(one) == by_id(other)
    assert linked_ids(one) == linked_ids(other)


@pytest.mark.parametrize("n_b", [120, 70, 170])
def test_same_draws_whichever_file_is_called_a(n_b):
    both = files(n_b)
    one, other = (bl.sample(blocks_of(*ab), **SHORT) for ab in ((both.a, both.b), (both.b, both.a)))
    for name in ("n_links", "log_posterior", "m", "u"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert by_id(one) == by_id(other, swapped=True)


def test_every_seed_and_every_chain_has_its_own_draws(blocks):
    draws = [bl.sample(blocks, seed=seed, **SHORT) for seed in (0, 1, 2)]
    paths = {path.tobytes() for p in draws for path in p.log_posterior}
    assert len(paths) == 3 * 4
    assert content(bl.sample(blocks, seed=2, **SHORT)) == content(draws[2])


def test_more_chains_leave_the_first_ones_alone(blocks):
    two, five = (bl.sample(blocks, chains=n, **SHORT) for n in (2, 5))
    np.testing.assert_array_equal(two.n_links, five.n_links[:2])
    np.testing.assert_array_equal(two.m, five.m[:2])


def test_tuning_only_sets_the_first_draws_aside(blocks):
    whole = bl.sample(blocks, tune=0, draws=80)
    rest = bl.sample(blocks, tune=20, draws=60)
    for name in ("n_links", "log_posterior", "m", "u"):
        np.testing.assert_array_equal(getattr(whole, name)[:, 20:], getattr(rest, name))


# --- starts and settings ----------------------------------------------------------------------


def test_defaults(blocks):
    defaults = inspect.signature(bl.sample).parameters
    assert defaults["chains"].default >= 4
    implicit = bl.sample(blocks, **SHORT)
    explicit = bl.sample(blocks, prior=bl.Overlap(1, 1), chains=4, seed=1, **SHORT)
    assert content(implicit) == content(explicit)
    assert content(implicit) != content(bl.sample(blocks, prior=bl.Penalty(0.0), **SHORT))


def test_chains_start_empty_at_the_estimate_and_at_random(blocks):
    layout = Layout.of(blocks, restricted=True)
    c = blocks.candidates.take(layout.candidate)
    ends = list(zip(c.a.tolist(), c.b.tolist(), strict=True))
    starts = [sampler._start(blocks, layout, chain, 1) for chain in range(6)]
    assert not starts[0].any()
    estimate = set(zip(blocks.start.a.tolist(), blocks.start.b.tolist(), strict=True))
    in_estimate = [pair in estimate for pair in ends]
    assert sum(in_estimate) > 20
    np.testing.assert_array_equal(starts[1], in_estimate)
    for linked in starts[2:]:  # matchings to which nothing can be added
        a, b = c.a[linked], c.b[linked]
        assert len(set(a)) == len(set(b)) == linked.sum()
        assert (np.isin(c.a, a) | np.isin(c.b, b)).all()
    others = [*starts[2:], sampler._start(blocks, layout, 2, 2)]
    assert len({linked.tobytes() for linked in others}) == len(others)


@pytest.mark.parametrize(
    ("name", "lowest", "bad"),
    [
        ("draws", 1, [0, -3, 2.0, True, "9", None]),
        ("tune", 0, [-1, 0.5, math.nan]),
        ("chains", 1, [0, math.inf]),
        ("seed", 0, [-1, 1.0, "one"]),
        ("threads", 1, [0, -1, 1.5]),
    ],
)
def test_settings_that_make_no_sense(blocks, name, lowest, bad):
    for value in bad:
        with pytest.raises(SettingsError) as caught:
            bl.sample(blocks, **{name: value})
        message = f"{name} must be a whole number from {lowest} up, got {value!r}."
        assert str(caught.value) == message


def test_seeds_may_be_large(blocks):
    seeds = 2**62, 2**63 - 1, np.int64(1_700_000_000_000_000_000)
    assert len({bl.sample(blocks, seed=s, **SHORT).m.tobytes() for s in seeds}) == 3
    with pytest.raises(SettingsError, match="seed must be below"):
        bl.sample(blocks, seed=2**63)


def test_the_least_of_everything(blocks):
    post = bl.sample(blocks, draws=1, tune=0, chains=1, seed=0, threads=1)
    assert post.n_links.shape == (1, 1)
    assert np.isfinite(post.log_posterior).all()
    assert post.diagnostics()[0].status == "too few draws"


def test_progress_is_told(blocks):
    messages = []
    bl.sample(blocks, progress=messages.append, threads=1, draws=100, tune=100)
    shares = [int(m.removeprefix("sampling: ").removesuffix("%")) for m in messages]
    assert shares == sorted(shares)
    assert len(shares) > 4
    assert shares[-1] == 100


# --- draws and probabilities fit together ------------------------------------------------------


def test_every_draw_is_a_matching_with_as_many_links_as_counted(posterior):
    c = posterior.blocks.candidates
    for counts, kept in zip(posterior.n_links, posterior.kept, strict=True):
        assert len(kept) == len(counts)
        for n, state in zip(counts, kept, strict=True):
            assert len(state) == n
            assert len(set(c.a[state])) == len(set(c.b[state])) == n


def test_probabilities_are_shares_of_draws_with_less_noise(posterior):
    """The draws' own shares scatter around them by no more than chance allows."""
    c, p = posterior.blocks.candidates, posterior.probability
    swept = posterior.blocks.block >= 0
    linked = np.zeros((4, 400, len(p)))
    for chain, kept in enumerate(posterior.kept):
        for draw, state in enumerate(kept):
            linked[chain, draw, state] = 1
    assert linked[:, :, ~swept].mean(axis=(0, 1)) == pytest.approx(p[~swept])
    share = linked.mean(axis=(0, 1))
    batches = linked.reshape(4 * 20, 20, -1).mean(axis=1)
    noise = batches.std(axis=0, ddof=1) / math.sqrt(len(batches))
    off = np.abs(share - p) / (noise + posterior.error + 1e-3)
    assert off.max() < 5
    assert posterior.error[swept].mean() < 0.8 * noise[swept].mean()
    assert p.sum() + posterior.rest == pytest.approx(posterior.n_links.mean(), rel=0.02)
    for rows, n in ((c.a, 120), (c.b, 120)):
        assert np.bincount(rows[swept], p[swept], n).max() < 1 + 1e-9


def test_m_and_u_are_distributions(posterior):
    for j, f in enumerate(FIELDS):
        for x in (posterior.m, posterior.u):
            used = x[:, :, j, 1 : f.n_levels + 1]
            assert (used > 0).all()
            np.testing.assert_allclose(used.sum(axis=-1), 1, rtol=1e-12)


# --- known pairs ------------------------------------------------------------------------------


def test_known_pairs_hold_in_every_draw():
    both = files()
    plain = bl.sample(blocks_of(both.a, both.b), **SHORT)
    p = by_id(plain)
    surely = max(p, key=p.get)
    unlikely = min(p, key=lambda pair: (pair[0] == surely[0] or pair[1] == surely[1], p[pair]))
    known = blocks_of(both.a, both.b, links=[unlikely], nonlinks=[surely])
    post = bl.sample(known, **SHORT)
    assert p[surely][0] > 0.9 > 0.3 > p[unlikely][0]
    draws = linked_ids(replace(post, restricted=True))  # as they are, without the doubt
    assert len(draws) == 4 * 60
    assert all(unlikely in links and surely not in links for links in draws)
    np.testing.assert_array_equal(post.n_links.ravel(), [len(links) for links in draws])
    assert surely not in by_id(post)
    assert not any(a == unlikely[0] or b == unlikely[1] for a, b in by_id(post))


def test_known_links_inform_m_and_u():
    """With no other candidate, m and u are Dirichlet given the known links."""
    both = files()
    truth = both.truth.slice(0, 30)
    blocks = blocks_of(both.a, both.b, 1000.0, links=truth)
    post = bl.sample(blocks, restricted=True, draws=2000, tune=0)
    assert (post.n_links == 30).all()
    priors = Priors.of(FIELDS)
    counts = count_levels(blocks.known.levels, 5)
    others = blocks.pairs.level_counts().counts - counts
    for drawn, alpha in ((post.m, priors.alpha_m + counts), (post.u, priors.alpha_u + others)):
        mean = proportions(alpha, priors.used)
        total = np.where(priors.used, alpha, 0).sum(axis=1, keepdims=True)
        error = np.sqrt(mean * (1 - mean) / (total + 1) / 8000)
        off = (drawn.mean(axis=(0, 1)) - mean)[priors.used] / error[priors.used]
        assert np.abs(off).max() < 4.5


def test_links_and_nonlinks_known_to_link():
    both = files()
    truth = both.truth.to_pylist()
    yes, no = ((truth[i]["id_a"], truth[i]["id_b"]) for i in (0, 1))
    run = bl.link(both.a, both.b, FIELDS, known_links=[yes], known_nonlinks=[no], **SHORT)
    rows = {(r["id_a"], r["id_b"]): r for r in run.table.to_pylist()}
    assert rows[yes]["decision"] == "link"
    assert rows[yes]["link_probability"] == 1
    assert no not in rows
    assert run.summary()["known_links"] == 1


# --- extremes ---------------------------------------------------------------------------------


def test_no_candidates(blocks):
    empty = bl.posthoc_blocks(blocks.pairs, bl.fit_penalized(blocks.pairs), 1000.0)
    post = bl.sample(empty, **RESTRICTED)
    assert (post.n_links == 0).all()
    assert len(post.probability) == post.link_probabilities().num_rows == 0
    assert len(post.estimate().links) == 0
    assert [len(t) for t in post.linked_datasets(3)] == [0, 0, 0]
    assert {d.name: d.status for d in post.diagnostics()}["links"] == "constant"


def test_extreme_penalties(blocks):
    none, most = (bl.sample(blocks, prior=bl.Penalty(t), **RESTRICTED) for t in (1000.0, -1000.0))
    assert (none.n_links == 0).all()
    assert none.probability.max() < 1e-100
    c = blocks.candidates
    everything = assign(c.a, c.b, np.ones(len(c)), 120, 120).chosen
    assert (most.n_links == len(everything)).all()
    assert most.probability.sum() == pytest.approx(len(everything))


def test_one_block_of_all_pairs():
    """60 × 40 records that all agree: the posterior of L is known, and no pair is special."""
    n_a, n_b = 60, 40
    tables = [
        pa.table({"id": [f"{side}{i}" for i in range(n)], "x": ["same"] * n})
        for side, n in (("A", n_a), ("B", n_b))
    ]
    fields = [bl.exact("x", m_prior=(1, 4), u_prior=(5, 2))]
    pairs = bl.compare(*tables, fields)
    prior = bl.Overlap(3, 4)
    fit = bl.fit_penalized(pairs, prior=prior)
    post = bl.sample(bl.posthoc_blocks(pairs, fit, -math.inf), prior=prior, draws=1500, tune=200)
    assert post.kinds == {"single": 0, "joint": 0, "large": 1}
    assert post.blocks.n_candidates == n_a * n_b
    L = np.arange(n_b + 1)
    ways = np.array([oracles.log_integer(n) for n in oracles.count_matchings([(n_a, n_b)])])
    log_p = ways + prior.on(pairs.scope).log_prior(L)
    log_p += betaln(1, 4 + L) + betaln(5, 2 + n_a * n_b - L)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    (found,) = summarize({"L": post.n_links})
    assert abs(found.mean - p @ L) < 4 * found.mcse
    assert post.n_links.std() == pytest.approx(math.sqrt(p @ L**2 - (p @ L) ** 2), rel=0.1)
    each = p @ L / (n_a * n_b)
    assert np.abs(post.probability - each).max() < 0.3 * each
    assert post.warning() is None


def test_memory_stays_flat(blocks, monkeypatch):
    """The links of few draws are kept where there are many; all else is as before."""
    whole = bl.sample(blocks, **SHORT)
    assert whole.kept_every == 1
    monkeypatch.setattr(sampler, "KEPT_LINKS", 1500)
    thinned = bl.sample(blocks, **SHORT)
    step = thinned.kept_every
    assert step == math.ceil(4 * 60 * len(blocks.start) / 1500)
    assert 60 % step != 0  # so that the last draws are a shorter group
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(whole, name), getattr(thinned, name))
    assert sum(len(state) for chain in thinned.kept for state in chain) < 2 * 1500
    for full, few in zip(whole.kept, thinned.kept, strict=True):
        assert len(few) == math.ceil(60 / step)
        for k, state in enumerate(few):
            np.testing.assert_array_equal(state, full[min((k + 1) * step, 60) - 1])


# --- what would never end ----------------------------------------------------------------------


def test_a_draw_of_a_shape_that_is_not_positive_is_refused(blocks, monkeypatch):
    """Level counts below those of the candidates: a Gamma draw with such a shape has no end."""
    short = blocks.pairs.level_counts()
    short = replace(short, counts=np.minimum(short.counts, 3))
    blocks = replace(blocks, structure=replace(blocks.structure, all_counts=short.counts))
    with pytest.raises(BayeslinkError, match="counts should hold every pair listed"):
        bl.sample(blocks, **SHORT)
    monkeypatch.setattr(kernel_input, "at_least", lambda counts, seen: counts)
    with pytest.raises(BayeslinkError, match=r"Dirichlet parameter is -\d+"):
        bl.sample(blocks, **SHORT)
    nan = [replace(f, u_prior=(math.nan,) * f.n_levels) for f in FIELDS]
    with pytest.raises(BayeslinkError, match="Dirichlet parameter is nan"):
        kernel_input._check_shapes(Priors.of(nan), np.zeros_like(short.counts))
