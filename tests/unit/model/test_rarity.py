"""What the rarity of a shared value says, where non-links share values by chance or as links do."""

import numpy as np
import pytest

import bayeslink as bl
from bayeslink.model.dependence import learn_tree
from bayeslink.model.rarity import agreement, shared_values
from bayeslink.pairs.source import Pairs, Patterns

FIELDS = [bl.exact("x", bands=(0.1, 0.01)), bl.exact("y", bands=(0.1, 0.01)), bl.exact("z")]
OWN = np.array([0.80, 0.15, 0.05])  # of pairs that agree by chance, by rarity
OF_LINKS = np.array([0.1, 0.4, 0.5])


class Source:
    """Non-links of certain records; some are of one household and share x and y."""

    fields = FIELDS

    def __init__(self, shared, n=300, seed=2):
        rng = np.random.default_rng(seed)
        self.n, self.n_b = n, 300
        levels = np.ones((n, self.n_b, 3), np.uint8)
        for j in (0, 1):
            chance = rng.random((n, self.n_b)) < 0.02
            levels[chance, j] = 2 + rng.choice(3, chance.sum(), p=OWN)
        household = rng.random((n, self.n_b)) < 0.004
        of_certain = np.append(OF_LINKS[:2], 0)  # the rarest values are shared with the link only
        law = OWN if not shared else of_certain / of_certain.sum()
        for j in (0, 1):
            levels[household, j] = 2 + rng.choice(3, household.sum(), p=law)
        levels[..., 2] = 1 + (rng.random((n, self.n_b)) < 0.5)
        self.links = np.full((n, 3), 2, np.uint8)
        for j in (0, 1):
            self.links[:, j] = 2 + rng.choice(3, n, p=OF_LINKS)
        levels[np.arange(n), np.arange(n)] = self.links
        self.levels = levels

    def pattern_counts(self, rows):
        flat = self.levels[rows].reshape(-1, 3)
        return Patterns(*np.unique(flat, axis=0, return_counts=True))

    def tree(self):
        rows = np.arange(self.n, dtype=np.int32)
        counts = np.array(
            [np.bincount(x.ravel(), minlength=5) for x in np.moveaxis(self.levels, 2, 0)]
        )
        others = counts - np.array([np.bincount(x, minlength=5) for x in self.links.T])
        return learn_tree(self, Pairs(rows, rows, self.links), others)


def test_where_households_share_values_rarity_says_nothing():
    (d,) = Source(shared=True).tree().dependences
    assert {d.field, d.on} == {0, 1}
    u = np.exp(d.log_u)
    at = agreement(FIELDS[d.field])
    # As links have it, and the rarest values are not impossible
    np.testing.assert_allclose(
        u[1:, at] / u[1:, at].sum(1, keepdims=True), [OF_LINKS] * 4, atol=0.1
    )
    np.testing.assert_allclose(u[:, 1:].sum(1), 1)
    assert (u[2:] == u[2]).all()  # whichever value the other agrees on
    assert u[2, at].sum() > 5 * u[1, at].sum()


def test_where_values_are_shared_by_chance_rarity_counts():
    (d,) = Source(shared=False).tree().dependences
    u = np.exp(d.log_u)
    at = agreement(FIELDS[d.field])
    own = u[2, at] / u[2, at].sum()
    np.testing.assert_allclose(own, OWN, atol=0.06)


@pytest.mark.parametrize(
    ("seen", "told"), [((0, 9, 0), False), ((2, 30, 0), True), ((32, 2, 0), False)]
)
def test_it_takes_some_pairs_and_more_than_chance(seen, told):
    tables = np.zeros((3, 3, 5, 5), np.int64)
    tables[1, 0, 2, 2:] = seen
    tables[1, 0, 1, 1] = 10**6
    margins = [np.array([0, 0.98, *0.02 * OWN])] * 2 + [np.array([0, 0.5, 0.5, 0, 0])]
    links = np.repeat(2 + np.arange(3, dtype=np.uint8), [10, 40, 50])[:, None].repeat(3, 1)
    links[:, 2] = 2
    found = shared_values(FIELDS, tables, margins, links)
    assert (0 in found) == told
    if told:
        np.testing.assert_allclose(found[0], OF_LINKS, atol=0.02)
    tables[1, 0, 1, 1] = 100  # as many by chance
    tables[1, 0, 1, 2] = 100 if told else 0
    tables[1, 0, 2, 1] = 100
    assert 0 not in shared_values(FIELDS, tables, margins, links)
