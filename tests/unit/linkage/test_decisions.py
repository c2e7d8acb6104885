"""Every estimate against the enumeration of all matchings, on posteriors known exactly."""

import itertools
import math
from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from bayeslink.errors import SettingsError
from bayeslink.linkage import decisions
from bayeslink.linkage.decisions import (
    Loss,
    bayes_estimate,
    f_score_estimate,
    largest_set,
    too_few,
)
from tests.oracles import matchings

CLOSE = 1e-9
ROUNDING = 1e-12  # a share of false links that exceeds the rate by less is allowed


class Problem(NamedTuple):
    """Candidate pairs with the whole posterior: every matching and its probability."""

    a: np.ndarray
    b: np.ndarray
    p: np.ndarray
    n_a: int
    n_b: int
    sets: list
    probabilities: np.ndarray

    @property
    def pairs(self):
        return self.a, self.b, self.p, self.n_a, self.n_b


def problem(edges, n_a, n_b, chances):
    """The posterior with matching number i of probability ∝ chances(sets)[i]."""
    sets = list(matchings([(i, *edge) for i, edge in enumerate(edges)]))
    probabilities = np.asarray(chances(sets), float)
    probabilities = probabilities / probabilities.sum()
    p = np.zeros(len(edges))
    for links, probability in zip(sets, probabilities, strict=True):
        p[list(links)] += probability
    a, b = np.array(edges, np.int32).reshape(-1, 2).T
    return Problem(a, b, p, n_a, n_b, sets, probabilities)


def random_edges(rng, most=4, fewest=1):
    n_a, n_b = rng.integers(fewest, most + 1, 2)
    edges = list(itertools.product(range(n_a), range(n_b)))
    rng.shuffle(edges)
    return edges[: rng.integers(1, len(edges) + 1)], n_a, n_b


def random_problem(seed, most=4):
    """Few matchings with most of the probability, or many, or counts as from 8 draws."""
    rng = np.random.default_rng(seed)

    def chances(sets):
        spread = rng.dirichlet(np.full(len(sets), rng.choice([0.01, 0.1, 1.0])))
        return rng.multinomial(8, spread) if rng.random() < 0.3 else spread

    return problem(*random_edges(rng, most), chances)


def from_weights(edges, n_a, n_b, odds):
    """The posterior of independent pairs with these odds, given that links are one-to-one."""
    return problem(
        edges, n_a, n_b, lambda sets: [math.prod(odds[i] for i in links) for links in sets]
    )


def tie_keys(n_a, n_b, seed=0):
    rng = np.random.default_rng(seed)
    return tuple(rng.integers(0, 2**63, n).astype(np.uint64) for n in (n_a, n_b))


def is_one_to_one(decision, a, b):
    rows, columns = a[decision.links], b[decision.links]
    return len(set(rows)) == len(set(columns)) == len(rows)


# ------------------------------------------------------------------------------- Bayes estimate


def partners(links, post):
    """Of each record of B: the pair that links it, or None."""
    out = [None] * post.n_b
    for i in links:
        out[post.b[i]] = i
    return out


def expected_losses(post, loss):
    """Of each record of B and each choice (a pair, None, 'reject'), from the definition."""
    choices = [None, "reject", *range(len(post.a))]
    table = {(b, choice): 0.0 for b in range(post.n_b) for choice in choices}
    for links, probability in zip(post.sets, post.probabilities, strict=True):
        for b, truth in enumerate(partners(links, post)):
            for choice in choices:
                if choice == "reject":
                    cost = math.inf if loss.reject is None else loss.reject
                elif choice == truth:
                    cost = 0.0
                elif choice is None:
                    cost = loss.false_nonlink
                else:
                    cost = loss.false_link if truth is None else loss.wrong_link
                table[b, choice] += probability * cost if probability else 0.0
    return table


def least_loss(post, loss):
    table = expected_losses(post, loss)
    unlinked = [min(table[b, None], table[b, "reject"]) for b in range(post.n_b)]
    return min(
        sum(unlinked[b] if i is None else table[b, i] for b, i in enumerate(partners(s, post)))
        for s in post.sets
    )


def loss_of(decision, post, loss):
    table = expected_losses(post, loss)
    chosen = partners(decision.links, post)
    for b in decision.rejected:
        assert chosen[b] is None
        chosen[b] = "reject"
    return sum(table[b, choice] for b, choice in enumerate(chosen))


LOSSES = [
    Loss(),
    Loss(reject=0.3),
    Loss(reject=0.05),
    Loss(2, 1, 1),
    Loss(1, 1, 0),
    Loss(1, 0, 0, 1),
    Loss(0, 1, 1),
    Loss(0, 0, 0),
    Loss(3, 0.1, 0.2, reject=1),
    Loss(1e-7, 1e-7, 2e-7, reject=3e-8),
    Loss(1e9, 1e9, 2e9, reject=3e8),
]


@pytest.mark.parametrize("seed", range(200))
def test_bayes_estimate_has_the_least_expected_loss(seed):
    post = random_problem(seed)
    rng = np.random.default_rng(1000 + seed)
    keys = tie_keys(post.n_a, post.n_b, seed) if seed % 2 else None
    random_losses = [
        Loss(*rng.exponential(1, 3), reject=rng.choice([None, rng.exponential(0.3)]))
        for _ in range(5)
    ]
    for loss in [LOSSES[seed % len(LOSSES)], *random_losses]:
        decision = bayes_estimate(*post.pairs, keys, loss=loss)
        assert is_one_to_one(decision, post.a, post.b)
        size = max(loss.false_nonlink, loss.false_link, loss.wrong_link)
        least = least_loss(post, loss)
        assert_allclose(loss_of(decision, post, loss), least, rtol=CLOSE, atol=CLOSE * size)
        assert_allclose(decision.expected_loss, least, rtol=CLOSE, atol=CLOSE * size)
        assert_allclose(decision.expected_false, sum(1 - post.p[decision.links]), atol=CLOSE)


def test_some_random_losses_make_rivals_compete():
    """Otherwise the test above would not need an assignment."""
    rivals = 0
    for seed in range(200):
        post, loss = random_problem(seed), Loss(3, 0.1, 0.2)
        q = np.bincount(post.b, post.p, post.n_b)[post.b]
        worth = np.flatnonzero(3 * q > 0.1 * (1 - q) + 0.2 * (q - post.p) + CLOSE)
        rivals += len(bayes_estimate(*post.pairs, loss=loss).links) < len(worth)
    assert rivals > 50


@pytest.mark.parametrize("seed", range(100))
def test_the_balanced_loss_links_what_is_likelier_than_not(seed):
    """λ = (1, 1, 2): the gain of a link, q − (1 − q) − 2(q − p), is 2p − 1 (Eq. 10)."""
    post = random_problem(seed)
    decision = bayes_estimate(*post.pairs)
    assert_array_equal(decision.links, np.flatnonzero(post.p > 0.5))
    assert len(decision.review) == len(decision.rejected) == 0


def test_an_even_chance_is_no_link():
    """Rounding in the sums must not decide: p = 1/2 is left unlinked for every order of pairs."""
    tenths = np.array([0.5, 0.1, 0.1, 0.1, 0.1, 0.1])
    a, b = np.arange(6, dtype=np.int32), np.zeros(6, np.int32)
    for shift in range(6):
        for loss in (Loss(), Loss(0.1, 0.1, 0.2), Loss(0.7, 0.7, 1.4)):
            decision = bayes_estimate(a, b, np.roll(tenths, shift), 6, 1, loss=loss)
            assert len(decision.links) == 0


def test_equal_rivals_are_left_or_rejected():
    a, b = np.array([0, 1, 2], np.int32), np.array([0, 0, 1], np.int32)
    p = np.array([0.48, 0.48, 0.9])
    left = bayes_estimate(a, b, p, 3, 2)
    assert_array_equal(left.links, [2])
    assert left.rejected.size == left.review.size == 0
    assert left.expected_loss == pytest.approx(0.96 + 0.1)
    rejected = bayes_estimate(a, b, p, 3, 2, loss=Loss(reject=0.3))
    assert_array_equal(rejected.links, [2])
    assert_array_equal(rejected.rejected, [0])
    assert_array_equal(rejected.review, [0, 1])
    assert rejected.expected_loss == pytest.approx(0.3 + 0.1)


def test_review_shows_every_candidate_of_rejected_records_best_first():
    a = np.array([0, 1, 2, 3, 4, 5], np.int32)
    b = np.array([0, 0, 1, 1, 2, 3], np.int32)
    p = np.array([0.3, 0.45, 0.5, 0.4, 0.99, 0.1])
    decision = bayes_estimate(a, b, p, 6, 5, loss=Loss(reject=0.2))
    assert_array_equal(decision.links, [4])
    assert_array_equal(decision.rejected, [0, 1])
    assert_array_equal(decision.review, [2, 1, 3, 0])


def test_probabilities_that_sum_to_more_than_one_by_rounding():
    a, b = np.array([0, 1], np.int32), np.array([0, 0], np.int32)
    p = np.array([0.7, 0.3 + 1e-6])
    decision = bayes_estimate(a, b, p, 2, 1, loss=Loss(1, 5, 0.2))
    assert_array_equal(decision.links, [0])
    assert decision.expected_loss == pytest.approx(0.2 * 0.3, abs=1e-12)  # no −5e-6 for q > 1


# ---------------------------------------------------------------------------------------- F score


@pytest.mark.parametrize("seed", range(200))
def test_f_score_estimate_is_the_best_of_all_matchings(seed):
    post = random_problem(seed, most=5 if seed % 10 == 0 else 4)
    surplus = [0.0, 0.5, 3.0][seed % 3]  # links of records without candidates here
    expected = post.p.sum() + surplus
    sums = [(post.p[list(s)].sum(), len(s) + expected) for s in post.sets]
    best = max((2 * agreed / total for agreed, total in sums if total), default=0.0)
    decision = f_score_estimate(*post.pairs, expected_links=expected)
    links = decision.links
    assert is_one_to_one(decision, post.a, post.b)
    if expected > 0:
        assert 2 * post.p[links].sum() / (len(links) + expected) == pytest.approx(best, abs=CLOSE)
        assert decision.expected_loss == pytest.approx(1 - best, abs=CLOSE)
    assert decision.expected_false == pytest.approx((1 - post.p[links]).sum(), abs=CLOSE)
    assert len(decision.review) == len(decision.rejected) == 0


def test_f_score_links_below_one_half():
    """With F near 2/3 a pair of probability .4 raises it; the balanced loss leaves it."""
    a = b = np.arange(2, dtype=np.int32)
    p = np.array([0.6, 0.4])
    assert_array_equal(f_score_estimate(a, b, p, 2, 2, expected_links=1.0).links, [0, 1])
    assert_array_equal(bayes_estimate(a, b, p, 2, 2).links, [0])


# ------------------------------------------------------------------------------------ largest set


def check_largest(a, b, p, n_a, n_b, sets, rate, keys=None):
    allowed = [s for s in sets if sum(1 - p[list(s)]) <= (rate + ROUNDING) * len(s)]
    size = max(map(len, allowed))
    fewest_false = min(sum(1 - p[list(s)]) for s in allowed if len(s) == size)
    decision = largest_set(a, b, p, n_a, n_b, keys, false_link_rate=rate)
    assert is_one_to_one(decision, a, b)
    assert len(decision.links) == size
    assert sum(1 - p[decision.links]) == pytest.approx(fewest_false, abs=CLOSE)
    assert decision.expected_false == pytest.approx(fewest_false, abs=CLOSE)
    assert decision.expected_loss == pytest.approx(fewest_false / max(size, 1), abs=CLOSE)
    return decision


@pytest.mark.parametrize("seed", range(200))
def test_largest_set_is_the_largest_of_all_matchings(seed):
    post = random_problem(seed, most=5 if seed % 10 == 0 else 4)
    rng = np.random.default_rng(2000 + seed)
    keys = tie_keys(post.n_a, post.n_b, seed) if seed % 2 else None
    for rate in (0, 0.125, 0.5, 1, *rng.random(4)):
        check_largest(*post.pairs, post.sets, rate, keys)


@pytest.mark.parametrize("seed", range(100))
def test_largest_set_for_any_numbers(seed):
    """Weights of no distribution: strong rivals, long augmenting paths, ties at the boundary."""
    rng = np.random.default_rng(seed)
    edges, n_a, n_b = random_edges(rng, most=5, fewest=3)
    a, b = np.array(edges, np.int32).T
    p = rng.integers(0, 9, len(a)) / 8 if seed % 2 else rng.beta(0.3, 0.3, len(a))
    sets = list(matchings([(i, *edge) for i, edge in enumerate(edges)]))
    for rate in (0.25, 0.375, 0.625, *rng.random(2)):
        check_largest(a, b, p, n_a, n_b, sets, rate, tie_keys(n_a, n_b))


@pytest.mark.parametrize("seed", range(30))
def test_largest_set_over_many_blocks(seed):
    """The best sum with k links over blocks: the largest k increments over all blocks.

    Few different blocks, many times over, so that many augmenting paths cost the same.
    """
    rng = np.random.default_rng(seed)
    posts = [random_problem(1000 * seed + i) for i in rng.integers(0, 8, 60)]
    starts_a = np.cumsum([0, *(post.n_a for post in posts)])
    starts_b = np.cumsum([0, *(post.n_b for post in posts)])
    a = np.concatenate([post.a + s for post, s in zip(posts, starts_a, strict=False)])
    b = np.concatenate([post.b + s for post, s in zip(posts, starts_b, strict=False)])
    p = np.concatenate([post.p for post in posts])
    rate, steps = rng.uniform(0.02, 0.3), []
    for post in posts:
        sums = {}
        for s in post.sets:
            total = (post.p[list(s)] - (1 - rate)).sum()
            sums[len(s)] = max(sums.get(len(s), -np.inf), total)
        steps.extend(np.diff([sums[k] for k in range(len(sums))]))
    best = np.cumsum([ROUNDING, *np.sort(steps)[::-1]])
    size = np.flatnonzero(best >= 0).max()
    n_a, n_b = int(starts_a[-1]), int(starts_b[-1])
    decision = largest_set(a, b, p, n_a, n_b, tie_keys(n_a, n_b), false_link_rate=rate)
    assert is_one_to_one(decision, a, b)
    assert len(decision.links) == size
    assert (p[decision.links] - (1 - rate)).sum() == pytest.approx(best[size], abs=1e-8)


def test_the_rate_is_met_exactly_at_the_boundary():
    """19 certain links and one of probability 0 are 5 % false, in spite of rounding."""
    a = b = np.arange(21, dtype=np.int32)
    p = np.r_[np.ones(19), 0.0, 0.0]
    decision = largest_set(a, b, p, 21, 21, false_link_rate=0.05)
    assert len(decision.links) == 20
    assert decision.expected_loss == pytest.approx(0.05)
    tenths = np.full(21, 0.9)  # 0.9 − (1 − 0.1) is not quite 0
    assert len(largest_set(a, b, tenths, 21, 21, false_link_rate=0.1).links) == 21


# ---------------------------------------------------------------------------------- all estimates


def estimates(*pairs, expected_links):
    return {
        "bayes": bayes_estimate(*pairs),
        "reject": bayes_estimate(*pairs, loss=Loss(1, 0.2, 0.3, reject=0.5)),
        "f_score": f_score_estimate(*pairs, expected_links=expected_links),
        "largest": largest_set(*pairs, false_link_rate=0.4),
    }


def test_the_greedy_trap():
    """Pair by pair a1b1 is the likeliest; given one-to-one the other two links are."""
    edges, pairwise = [(0, 0), (0, 1), (1, 0), (1, 1)], np.array([0.95, 0.94, 0.93, 0.01])
    post = from_weights(edges, 2, 2, pairwise / (1 - pairwise))
    assert post.probabilities[post.sets.index((1, 2))] == pytest.approx(0.81, abs=0.005)
    for name, decision in estimates(*post.pairs, expected_links=post.p.sum()).items():
        assert decision.links.tolist() == [1, 2], name


@pytest.mark.parametrize("seed", range(50))
def test_ties_fall_by_key_and_not_by_row(seed):
    """Shuffled rows and pairs give the same links: equal probabilities, only the keys differ."""
    rng = np.random.default_rng(seed)
    edges, n_a, n_b = random_edges(rng, most=8, fewest=4)
    a, b = np.array(edges, np.int32).T
    p, keys = rng.integers(1, 3, len(a)) / 4, tie_keys(n_a, n_b, seed)
    new_a, new_b = rng.permutation(n_a).astype(np.int32), rng.permutation(n_b).astype(np.int32)
    order = rng.permutation(len(a))
    moved = [np.empty_like(k) for k in keys]
    moved[0][new_a], moved[1][new_b] = keys
    before = estimates(a, b, p, n_a, n_b, keys, expected_links=3.0)
    after = estimates(
        new_a[a[order]], new_b[b[order]], p[order], n_a, n_b, tuple(moved), expected_links=3.0
    )
    for name in before:
        assert sorted(order[after[name].links]) == before[name].links.tolist(), name


def test_no_candidates():
    none = np.empty(0, np.int32)
    for decision in estimates(none, none, np.empty(0), 3, 2, expected_links=0.0).values():
        assert decision.links.size == decision.review.size == decision.rejected.size == 0
        assert decision.expected_loss == decision.expected_false == 0


# -------------------------------------------------------------------------- too few links, errors


def test_too_few_links_are_said_to_be_too_few():
    """El Salvador: 181 links against (211, 244)."""
    sentence = too_few(181, (211, 244))
    for part in ("181 links", "fewer", "211 to 244", "spread over several rivals", "For counts"):
        assert part in sentence
    assert too_few(210, (210.5, 244)) is not None
    assert too_few(211, (211, 244)) is None
    assert too_few(300, (211, 244)) is None


@pytest.mark.parametrize("name", ["false_nonlink", "false_link", "wrong_link", "reject"])
@pytest.mark.parametrize("value", [-1, math.inf, math.nan, "1"])
def test_losses_must_be_finite_and_not_negative(name, value):
    with pytest.raises(SettingsError, match=rf"^{name} must be a finite number.*got .*; leave it"):
        Loss(**{name: value})


def test_a_review_costs_something():
    with pytest.raises(SettingsError, match=r"^reject must be a finite number above 0, got 0\."):
        Loss(reject=0)
    assert Loss(0, np.float32(0), np.int64(0), reject=1e-9).reject == 1e-9


@pytest.mark.parametrize("value", [-0.01, 1.01, math.nan, "5%"])
def test_the_false_link_rate_is_a_share(value):
    one = np.zeros(1, np.int32)
    with pytest.raises(SettingsError, match=r"between 0 and 1, got .*give 0\.05 for 5 %"):
        largest_set(one, one, np.ones(1), 1, 1, false_link_rate=value)


@pytest.mark.parametrize("value", [-1, math.inf, math.nan, None])
def test_expected_links_must_be_a_number(value):
    one = np.zeros(1, np.int32)
    with pytest.raises(SettingsError, match=r"expected_links must be .*got .*give the sum"):
        f_score_estimate(one, one, np.ones(1), 1, 1, expected_links=value)


# --- copies ---------------------------------------------------------------------------------------


def sets_of(pairs):
    """All one-to-one sets of pairs."""
    if not pairs:
        return [()]
    first, *rest = pairs
    without = sets_of(rest)
    fits = [m for m in without if all(a != first[0] and b != first[1] for a, b in m)]
    return [*without, *((first, *m) for m in fits)]


@pytest.mark.parametrize("loss", [Loss(), Loss(1, 2, 3), Loss(2, 1, 2, reject=0.4)])
@pytest.mark.parametrize("seed", range(6))
def test_with_copies_in_a_the_estimate_has_the_least_loss_if_copies_count_as_one(seed, loss):
    rng = np.random.default_rng(seed)
    first = np.array([0, 0, 2, 3]), np.arange(3)  # rows 0 and 1 of A are copies
    pairs = [(a, b) for a in range(4) for b in range(3)]
    weight = rng.normal(1, 2, (4, 3))
    weight[1] = weight[0]
    sets = sets_of(pairs)
    chance = np.exp([sum(weight[pair] for pair in m) for m in sets])
    chance /= chance.sum()
    a, b = (np.array(side, np.int32) for side in zip(*pairs, strict=True))
    p = np.array([sum(c for c, m in zip(chance, sets, strict=True) if q in m) for q in pairs])

    def cost(links, rejected):
        """Expected loss of a decision; a link to a copy of the right record is right."""
        total = 0.0
        for c, m in zip(chance, sets, strict=True):
            true = {y: first[0][x] for x, y in m}
            mine = {y: first[0][x] for x, y in links}
            for y in range(3):
                if y in rejected:
                    total += c * loss.reject
                elif y in mine and y in true:
                    total += c * loss.wrong_link * (mine[y] != true[y])
                elif y in mine or y in true:
                    total += c * (loss.false_link if y in mine else loss.false_nonlink)
        return total

    as_one = decisions.as_one(a, b, p, first)
    found = decisions.bayes_estimate(a, b, as_one, 4, 3, loss=loss, copies=first)
    links = [pairs[k] for k in found.links]
    least = min(
        cost(m, {y for y in open_ if y not in {b for _, b in m}})
        for m in sets
        for n in (range(4) if loss.reject else [0])
        for open_ in itertools.combinations(range(3), n)
    )
    assert found.expected_loss == pytest.approx(cost(links, {*found.rejected.tolist()}))
    assert found.expected_loss == pytest.approx(least)


def test_of_copies_in_b_one_is_linked_and_none_left_to_review():
    a, b = np.array([0, 0], np.int32), np.array([0, 1], np.int32)
    first = np.array([0]), np.array([0, 0])
    p = decisions.as_one(a, b, np.array([0.48, 0.5]), first)
    assert p == pytest.approx([0.98, 0.98])
    found = decisions.bayes_estimate(a, b, p, 1, 2, loss=Loss(reject=0.1), copies=first)
    assert len(found.links) == 1
    assert not len(found.rejected)
    assert found.expected_false == pytest.approx(0.02)


def test_copies_in_both_files_are_linked_as_often_as_the_fewer_of_them():
    a, b = (
        np.array(side, np.int32)
        for side in zip(*[(x, y) for x in (0, 1) for y in (0, 1)], strict=True)
    )
    first = np.array([0, 0]), np.array([0, 0])
    p = decisions.as_one(a, b, np.full(4, 0.49), first)
    assert p == pytest.approx(0.98)
    assert len(decisions.bayes_estimate(a, b, p, 2, 2, copies=first).links) == 2
