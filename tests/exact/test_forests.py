"""The sampler of forests against every partition of a few records."""

import itertools

import numpy as np
import pytest
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.special import gammaln

from bayeslink.comparing.fields import given_levels
from bayeslink.engines.listed import ListedPairs
from bayeslink.errors import SettingsError
from bayeslink.kernels import random
from bayeslink.linkage.clustering import ClusterLoss, least_loss, pairs_together
from bayeslink.linkage.partitions import ClusterSizes, PartitionPrior
from bayeslink.linkage.pointers import roots, solve_forest
from bayeslink.model.structure import Structure
from bayeslink.model.weights import Parameters, Priors
from bayeslink.pairs.source import Files, Pairs, count_levels
from bayeslink.sampling.chains import run_chain
from bayeslink.sampling.forest import ForestChain, ForestLayout
from bayeslink.sampling.unlisted import FarPairs
from tests.exact.forests import (
    as_partition,
    likelihood,
    one_file_prior,
    partitions,
    posterior,
    prior,
    rooted_trees,
    symmetric,
)
from tests.exact.forests_plain import PlainForest, plain_sweep
from tests.exact.problems import callable_here

start_stream, uniform = (callable_here(f) for f in (random.start_stream, random.uniform))
SURE = 1e10  # pseudo-pairs: m and u are as good as given
BETA = np.array([0.0, 2.0, 1.2, 0.7, 0.4, 0.3, 0.2])
NONE = ()
CASES = {  # ρ, pairs that are listed, known to be one, known to be two
    "star": (0.0, "all", NONE, NONE),
    "pointers, few copies of copies": (0.02, "all", NONE, NONE),
    "pointers": (0.3, "all", NONE, NONE),
    "tree": (1.0, "all", NONE, NONE),
    "half unlisted": (0.3, "half", NONE, NONE),
    "star, half unlisted": (0.0, "half", NONE, NONE),
    "none listed": (0.1, "none", NONE, NONE),
    "known": (0.3, "all", ((0, 3), (3, 4)), ((1, 2), (0, 5))),
    "known, half unlisted": (0.3, "half", ((0, 3),), ((1, 2),)),
    "known, none listed": (0.3, "none", ((0, 3),), NONE),
    "star, known": (0.0, "all", ((0, 3),), ((1, 2),)),
}
FILES = {  # file of each record, and which files are clean
    "two clean files": ((0, 1, 0, 1, 0, 1, 1), (0, 1)),
    "a clean file and another": ((0, 1, 1, 0, 1, 1, 0), (0,)),
    "two files with duplicates": ((0, 1, 1, 0, 1, 0, 1), ()),
    "three files": ((0, 1, 2, 2, 1, 0, 2), (0, 1)),
}
OF_FILES = [
    pytest.param(case, files, id=f"{case}-{files}")
    for files in FILES
    for case in ("star", "pointers", "half unlisted", "none listed")
] + [
    pytest.param("star, known", "two files with duplicates", id="star, known"),
    pytest.param("known, half unlisted", "three files", id="known, half unlisted"),
]


def several(files, n):
    """Files without records of their own: those of the first n."""
    if files is None:
        return None
    of, clean = FILES[files]
    return Files(tuple("xyz"[: max(of) + 1]), np.array(of[:n]), clean)


def prior_of(n, files=None):
    if files is None:
        return one_file_prior(n, BETA)
    given = several(files, n)
    alpha = np.array([0.0, 1.2, 0.7, 1.6, 0.9, 0.4, 1.1, 0.6])[: 1 << len(given.names)]
    clean = np.array([0.0, 1.0, *np.zeros(len(BETA) - 2)])
    beta = [clean if k in given.clean else np.append(0.0, np.roll(BETA[1:], k))
            for k in range(len(given.names))]  # fmt: skip
    return PartitionPrior(given.of.astype(np.int32), alpha, np.array(beta))


def one_file(fields, levels, n, files=None):
    a, b = (rows.astype(np.int32) for rows in np.triu_indices(n, 1))
    ids = [[f"r{i}" for i in range(n)]]
    pairs = Pairs(a, b, np.asarray(levels, np.uint8))
    return ListedPairs(fields, pairs, ids, one_file=True, files=files)


def given_weights(n, rng, missing=2, spread=2.5, files=None):
    """A source in which each pair has a level of its own, and m and u by which they weigh w.

    Some pairs miss the field, and weigh nothing.
    """
    n_pairs = n * (n - 1) // 2
    u = rng.dirichlet(np.full(n_pairs, 2.0)) + 1e-3
    m = u * np.exp(np.clip(rng.normal(0.5, spread, n_pairs), -4, 6))
    m, u = m / m.sum(), u / u.sum()
    levels = np.arange(1, n_pairs + 1)
    levels[rng.choice(n_pairs, missing, replace=False)] = 0
    field = given_levels("x", [f"pair {k}" for k in range(n_pairs)])
    pairs = one_file([field], levels[:, None], n, several(files, n))
    m, u = np.append(0.0, m)[None], np.append(0.0, u)[None]
    priors = Priors(SURE * m, SURE * u, m > 0)
    structure = Structure(priors, np.bincount(levels, minlength=n_pairs + 1)[None])
    log_weights = Parameters(m, u, m > 0).log_weights
    return pairs, structure, Parameters(m, u, m > 0), symmetric(log_weights[0, levels], n)


def rows(pairs, which):
    at = np.array(which, np.int32).reshape(-1, 2)
    return Pairs(at[:, 0].copy(), at[:, 1].copy(), pairs.levels_of(at[:, 0], at[:, 1]))


def chain_of(problem, rho, listed, together, apart, seed, n_draws, given=None, tune=50):
    pairs, structure, parameters, _ = problem
    n = pairs.n_a
    given = given or prior_of(n)
    every = pairs.pairs_above(np.zeros_like(parameters.m), -1.0)
    keep = {
        "all": np.arange(pairs.n_pairs),
        "none": np.arange(0),
        "half": np.arange(0, pairs.n_pairs, 2),
        "halves": np.flatnonzero((every.a < 3) == (every.b < 3)),
    }[listed]
    candidates = every.take(keep)
    known = rows(pairs, together), rows(pairs, apart)
    layout = ForestLayout.of(pairs, structure, candidates, *known, given)
    far = None
    if listed != "all":
        barred = np.concatenate([layout.listed.numbered(n), known[1].numbered(n)])
        closed = np.zeros(n, bool)
        far = FarPairs.beside(pairs, parameters, 0.0, barred, (closed, closed), seed)
    start = np.full(n, -1, np.int32)
    for i, j in sorted(together):
        start[layout.rank[j]] = layout.rank[i]
    log_rho = np.log(rho) if rho else -np.inf
    grid = np.array([log_rho])
    return ForestChain(layout, far, grid, start, log_rho, 0, seed, tune, n_draws, 1)


def compare(problem, rho, listed, together, apart, files=None, seed=5, n_draws=40_000):
    """Total variation of partitions, of the number of people and of that by files; and chance."""
    pairs, _, _, w = problem
    given = prior_of(pairs.n_a, files)
    truth = posterior(pairs.n_a, w, rho, given, together, apart)
    chain = chain_of(problem, rho, listed, together, apart, seed, n_draws, given)
    draws = run_chain(chain, 50, n_draws)
    labels, counts = np.unique(draws.kept, axis=0, return_counts=True)
    found = dict.fromkeys(partitions(pairs.n_a), 0.0)
    for row, count in zip(labels, counts, strict=True):
        found[as_partition(row)] += count / n_draws
    assert sum(found[z] for z in found if z not in truth) == 0
    p = np.array(list(truth.values()))
    tv = sum(abs(found[z] - truth[z]) for z in truth) / 2
    people = np.zeros(pairs.n_a + 1)
    for z, chance in truth.items():
        people[len(z)] += chance
    seen = np.bincount(draws.n_entities, minlength=len(people)) / n_draws
    by_files = np.zeros(len(given.alpha))
    for z, chance in truth.items():
        for cluster in z:
            by_files[sum({1 << given.file[i] for i in cluster})] += chance
    apart_by = np.abs(draws.in_files.mean(0) - by_files).max()
    far = max(np.abs(seen - people).max(), apart_by / 3)
    return tv, np.sqrt(p / n_draws).sum() * 0.4, far


@pytest.mark.parametrize("case", CASES)
def test_the_sampler_draws_from_every_partition_as_often_as_it_should(case):
    rng = np.random.default_rng(sum(map(ord, case)))
    for n in (4, 6):
        if any(i >= n for known in CASES[case][2:] for pair in known for i in pair):
            continue
        tv, chance, people = compare(given_weights(n, rng), *CASES[case])
        assert tv < 2 * chance + 0.005
        assert people < 0.012


@pytest.mark.parametrize(("case", "files"), OF_FILES)
def test_the_sampler_draws_from_every_partition_of_several_files(case, files):
    """Never two records of a clean file in one."""
    rng = np.random.default_rng(sum(map(ord, case + files)))
    n = 6
    problem = given_weights(n, rng, files=files, spread=1.5)
    n_draws = 40_000 if CASES[case][0] else 200_000  # stars move slowly
    tv, chance, people = compare(problem, *CASES[case], files, n_draws=n_draws)
    assert tv < 2 * chance + 0.005
    assert people < 0.012


@pytest.mark.parametrize("files", [None, "two clean files", "three files"])
@pytest.mark.parametrize("case", ["pointers", "tree", "none listed", "known"])
def test_so_it_does_where_records_are_in_blocks(case, files, monkeypatch):
    """Pairs within two halves are listed, so that unlisted edges go from block to block."""
    monkeypatch.setattr("bayeslink.sampling.forest.ONE_BLOCK", 0)
    monkeypatch.setattr("bayeslink.sampling.forest.A_BLOCK", 1)
    rng = np.random.default_rng(sum(map(ord, case)))
    rho = CASES[case][0]
    listed = "none" if case == "none listed" else "halves"
    known = (((0, 3), (2, 4)), ((1, 2),)) if case == "known" and files is None else (NONE, NONE)
    problem = given_weights(6, rng, files=files, spread=1.5)
    blocks = chain_of(problem, rho, listed, *known, 1, 1, prior_of(6, files))
    blocks = blocks.layout.candidates.blocks
    assert len(blocks) == (7 if listed == "none" else 2 if known[0] else 3)
    tv, chance, people = compare(problem, rho, listed, *known, files, n_draws=100_000)
    assert tv < 2 * chance + 0.005
    assert people < 0.012


def test_a_wrong_target_is_found():
    """The same check fails for another ρ, another prior, and weights with one pair changed."""
    problem = given_weights(6, np.random.default_rng(5), spread=4.0)
    w = problem[3]
    draws = run_chain(chain_of(problem, 0.02, "all", NONE, NONE, 5, 40_000), 50, 40_000)
    found = dict.fromkeys(partitions(6), 0.0)
    for row in draws.kept:
        found[as_partition(row)] += 1 / len(draws.kept)
    other = w.copy()
    other[0, 1] = other[1, 0] = w[0, 1] + 1.5
    right = posterior(6, w, 0.02, prior_of(6))
    wrong = [
        posterior(6, w, 1.0, prior_of(6)),
        posterior(6, w, 0.02, one_file_prior(6, BETA[[0, 2, 1, 3, 4, 5, 6]])),
        posterior(6, other, 0.02, prior_of(6)),
    ]
    chance = 0.8 * np.sqrt(np.array(list(right.values())) / len(draws.kept)).sum() + 0.005
    distances = [sum(abs(found[z] - p[z]) for z in p) / 2 for p in (right, *wrong)]
    assert distances[0] < chance
    assert min(distances[1:]) > chance, distances


def test_rho_is_learned():
    """Summed over ρ, with equal chances on a grid; and how often each is drawn."""
    problem = given_weights(5, np.random.default_rng(8))
    rhos = np.array([0.001, 0.03, 0.3, 1.0])
    chain = chain_of(problem, 0.3, "all", NONE, NONE, 5, 60_000)
    chain.prior = chain.prior._replace(log_rho=np.log(rhos))
    draws = run_chain(chain, 50, 60_000)
    joint = {}
    for k, rho in enumerate(rhos):
        for z in partitions(5):
            log_p = prior(z, prior_of(5)) + sum(np.log(likelihood(c, problem[3], rho)) for c in z)
            joint[z, k] = np.exp(log_p)
    total = sum(joint.values())
    seen = dict.fromkeys(joint, 0.0)
    for row, rho in zip(draws.kept, draws.rho, strict=True):
        seen[as_partition(row), int(np.abs(rhos - rho).argmin())] += 1 / len(draws.rho)
    assert sum(abs(seen[x] - joint[x] / total) for x in joint) / 2 < 0.02


def test_m_and_u_are_learned_where_people_have_two_records_at_most():
    """Then all pairs within clusters are edges, and m and u can be integrated out."""
    rng, n = np.random.default_rng(21), 5
    fields = [given_levels("x", ["no", "near", "yes"]), given_levels("y", ["no", "yes"])]
    levels = np.column_stack([rng.integers(0, k + 1, 10) for k in (3, 2)])
    pairs = one_file(fields, levels, n)
    structure = Structure.independent(fields, pairs.level_counts().counts)
    parameters = structure.mode(rows(pairs, [(0, 1)]))
    given = one_file_prior(n, np.array([0.0, 1.5, 1.0]))
    draws = run_chain(
        chain_of((pairs, structure, parameters, None), 0.3, "half", NONE, NONE, 2, 60_000, given),
        50, 60_000,
    )  # fmt: skip
    log_p = {}
    for z in partitions(n):
        if max(map(len, z)) > 2:
            continue
        linked = rows(pairs, [c for c in z if len(c) == 2])
        counts = count_levels(linked.levels, structure.all_counts.shape[1])
        log_p[z] = prior(z, given) + sum(
            log_multinomial(c[j, 1 : f.n_levels + 1], alpha)
            for c, which in ((counts, "m_prior"), (structure.all_counts - counts, "u_prior"))
            for j, f in enumerate(fields)
            for alpha in [np.array(getattr(f, which))]
        )
    p = np.exp(np.array(list(log_p.values())) - max(log_p.values()))
    truth = dict(zip(log_p, p / p.sum(), strict=True))
    seen = dict.fromkeys(truth, 0.0)
    for row in draws.kept:
        seen[as_partition(row)] += 1 / len(draws.kept)
    assert max(truth.values()) < 0.5
    assert sum(abs(seen[z] - truth[z]) for z in truth) / 2 < 0.02


def log_multinomial(counts, alpha):
    whole = gammaln(alpha.sum()) - gammaln(alpha.sum() + counts.sum())
    return whole + (gammaln(alpha + counts) - gammaln(alpha)).sum()


@pytest.mark.parametrize("listed", ["all", "half", "none"])
@pytest.mark.parametrize("rho", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("files", [None, *FILES])
def test_sweeps_do_what_the_plain_version_does(rho, listed, files):
    """From the same uniform numbers the same forest, sweep for sweep."""
    rng = np.random.default_rng(4)
    moved = unlisted = deep = 0
    for seed in range(6):
        problem = given_weights(7, rng, files=files)
        chain = chain_of(problem, rho, listed, NONE, NONE, seed, 30, prior_of(7, files))
        c, given = chain.layout.candidates, chain.layout.prior
        plain = PlainForest(c, given, several(files, 7).clean if files else (), rho, None)
        for sweep in range(25):
            far = chain._proposals(1)
            log_w = chain.state.log_m - chain.state.log_u
            plain.log_w = [log_w[0, level] for level in chain.vectors.levels[:, 0]]
            before = plain.parent
            plain_sweep(plain, far, *(stream(seed, sweep, block) for block in (0, 2**64 - 2)))
            chain.advance(1, -1)
            assert chain.forest.parent.tolist() == plain.parent
            for i, edge in enumerate(plain.edge):
                assert plain.parent[i] < 0 or chain.forest.pattern[i] == edge[0]
            assert chain.forest.n[1] == len(plain.unlisted)
            assert len(set(map(plain.root, range(7)))) == chain.forest.n[2]
            moved += plain.parent != before
            unlisted += len(plain.unlisted)
            deep += sum(plain.parent[p] >= 0 for p in plain.parent if p >= 0)
    assert moved > 50
    assert (unlisted > 0) == (listed != "all")
    assert (deep > 0) == (rho > 0) or files == "two clean files"


def stream(seed, sweep, block):
    rng = np.zeros(1, np.uint64)
    start_stream(rng, seed, 0, sweep, np.uint64(block))
    return lambda: uniform(rng)


@pytest.mark.parametrize("n", [2, 5])
def test_the_prior_of_partitions(n):
    beta = ClusterSizes(0.4, 3.0).beta(n)
    assert len(beta) == n + 1
    ours = PartitionPrior.of(ClusterSizes(0.4, 3.0), n)
    given = one_file_prior(n, beta)
    apart = [ours.log(labels(z, n)) - prior(z, given) for z in partitions(n)]
    assert np.ptp(apart) < 1e-9


def labels(z, n):
    out = np.zeros(n, np.int64)
    for k, cluster in enumerate(z):
        out[list(cluster)] = k
    return out


@pytest.mark.parametrize("files", FILES)
def test_the_prior_of_partitions_of_several_files(files):
    n = 6
    ours = PartitionPrior.of(ClusterSizes(0.4, 3.0), n, several(files, n))
    allowed = [z for z in partitions(n) if prior(z, ours) > -np.inf]
    assert len(allowed) < len(partitions(n)) or not FILES[files][1]
    apart = [ours.log(labels(z, n)) - prior(z, ours) for z in allowed]
    assert np.ptp(apart) < 1e-9
    for z in partitions(n):
        assert ours.allows(labels(z, n)) == (z in allowed)


def test_any_number_of_people_in_both_of_two_clean_files_is_about_as_likely():
    n = 40
    ours = PartitionPrior.of(ClusterSizes(), 2 * n, Files(("x", "y"), np.arange(2 * n) % 2, (0, 1)))
    log_p = []
    for both in range(n + 1):
        clusters = np.arange(2 * n) - np.where(
            np.arange(2 * n) // 2 < both, np.arange(2 * n) % 2, 0
        )
        ways = 2 * gammaln(n + 1) - gammaln(both + 1) - 2 * gammaln(n - both + 1)
        log_p.append(ours.log(np.unique(clusters, return_inverse=True)[1]) + ways)
    assert np.ptp(log_p) < np.log(4)


def test_too_many_files_are_refused():
    files = Files(tuple("abcdefghijk"), np.arange(11), ())
    with pytest.raises(SettingsError, match="11 files are given; at most 10"):
        PartitionPrior.of(ClusterSizes(), 11, files)


# --- the best forest, the best partition ----------------------------------------------------------


@pytest.mark.parametrize("rho", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("files", [None, "two clean files", "three files"])
def test_the_best_forest_is_the_best_of_all(rho, files):
    rng = np.random.default_rng(2)
    for n in (3, 5, 5):
        w = symmetric(rng.normal(1, 3, n * (n - 1) // 2), n)
        given = several(files, n)
        apart = np.full(n, -1) if files is None else given.apart
        w[(apart[:, None] >= 0) & (apart[:, None] == apart)] = -np.inf
        a, b = np.nonzero(np.triu(w > 0, 1))
        clean = np.where(apart >= 0, 1 << np.maximum(apart, 0), 0)
        parent, gap = solve_forest(
            a.astype(np.int32), b.astype(np.int32), w[a, b], n, rho,
            np.arange(n, dtype=np.uint64), clean,
        )  # fmt: skip
        assert gap == 0
        assert worth(parent, w, rho) == pytest.approx(best_worth(n, w, rho, apart))


@pytest.mark.parametrize("rho", [0.0, 0.1, 1.0])
def test_the_bound_of_a_large_component_holds(rho):
    """A component too large to be solved is worth no more than the bound says."""
    rng, short = np.random.default_rng(2), 0
    for _ in range(6):
        n = 12
        w = symmetric(rng.normal(0, 3, n * (n - 1) // 2), n)
        a, b = (x.astype(np.int32) for x in np.nonzero(np.triu(w > 0, 1)))
        parent, gap = solve_forest(a, b, w[a, b], n, rho, rng.permutation(n).astype(np.uint64))
        value = worth(parent, w, rho)
        spanning = -minimum_spanning_tree(np.where(np.triu(w > 0, 1), -w, 0)).sum()
        assert value + gap == pytest.approx(spanning)
        assert value > 0
        short += gap > 1e-9
    assert (short == 0) == (rho == 1)


def worth(parent, w, rho):
    log_rho = np.log(rho) if rho else -np.inf
    edges = [(i, p) for i, p in enumerate(parent) if p >= 0]
    return sum(w[i, p] + (log_rho if parent[p] >= 0 else 0.0) for i, p in edges)


@pytest.mark.parametrize("rho", [0.0, 0.1, 1.0])
def test_a_large_component_holds_nobody_of_a_clean_file_twice(rho):
    rng, n = np.random.default_rng(2), 14
    for _ in range(6):
        of = rng.integers(0, 3, n)
        w = symmetric(rng.normal(1, 3, n * (n - 1) // 2), n)
        w[(of[:, None] == of) & (of < 2)] = -np.inf
        a, b = (x.astype(np.int32) for x in np.nonzero(np.triu(w > 0, 1)))
        keys, clean = rng.permutation(n).astype(np.uint64), np.where(of < 2, 1 << of, 0)
        parent, gap = solve_forest(a, b, w[a, b], n, rho, keys, clean)
        cluster = roots(parent)
        for c in set(cluster.tolist()):
            assert (np.bincount(of[cluster == c], minlength=3)[:2] <= 1).all()
        assert worth(parent, w, rho) > 0
        assert gap >= 0


def best_worth(n, w, rho, apart):
    def allowed(cluster):
        held = [apart[i] for i in cluster if apart[i] >= 0]
        return len(held) == len(set(held))

    return max(
        sum(
            max(worth(as_parents(n, root, parent), w, rho) for root, parent in rooted_trees(c))
            for c in z
        )
        for z in partitions(n)
        if all(map(allowed, z))
    )


def as_parents(n, root, parent):
    return [parent.get(i, -1) for i in range(n)]


@pytest.mark.parametrize("costs", [(1.0, 1.0), (3.0, 1.0), (1.0, 4.0)])
def test_the_partition_of_least_loss_is_the_best_of_all(costs):
    rng = np.random.default_rng(6)
    loss = ClusterLoss(*costs)
    for _ in range(8):
        n = 6
        draws = np.array([rng.integers(0, 3, n) for _ in range(20)])
        draws = np.array([[np.flatnonzero(d == x)[0] for x in d] for d in draws], np.int32)
        pairs = pairs_together(draws)
        found = least_loss(pairs, np.arange(n, dtype=np.uint64), loss, np.zeros(n))
        same = (draws[:, :, None] == draws[:, None, :]).mean(0)
        expected = {z: binder(z, same, *costs) for z in partitions(n)}
        assert found.expected_loss == pytest.approx(min(expected.values()), rel=0.03)
        assert found.expected_loss == pytest.approx(expected[as_partition(found.cluster)])


def test_no_cluster_holds_two_records_of_a_clean_file():
    """Even where a missed pair costs so much that a false one hardly matters."""
    rng, n = np.random.default_rng(6), 8
    apart = np.array([0, 0, 0, 1, 1, -1, -1, -1])
    parted = 0
    for _ in range(20):
        draws = np.array([rng.integers(0, 3, n) for _ in range(40)])
        draws = np.array([[np.flatnonzero(d == x)[0] for x in d] for d in draws], np.int32)
        pairs, keys = pairs_together(draws), rng.permutation(n).astype(np.uint64)
        loss = ClusterLoss(1.0, 30.0)
        freely = least_loss(pairs, keys, loss, np.zeros(n)).cluster
        found = least_loss(pairs, keys, loss, np.zeros(n), apart)
        for c in set(found.cluster.tolist()):
            held = apart[found.cluster == c]
            assert len(set(held[held >= 0])) == (held >= 0).sum()
        parted += len(set(found.cluster.tolist())) > len(set(freely.tolist()))
    assert parted > 10


def binder(z, same, false_pair, missed_pair):
    where = {i: c for c, cluster in enumerate(z) for i in cluster}
    return sum(
        false_pair * (1 - same[i, j]) if where[i] == where[j] else missed_pair * same[i, j]
        for i, j in itertools.combinations(where, 2)
    )
