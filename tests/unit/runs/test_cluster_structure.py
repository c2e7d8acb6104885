"""Doubt, single edges and several forms: by hand, and against definitions in plain code."""

import itertools

import numpy as np
import pyarrow as pa
import pytest

from bayeslink.runs.cluster_structure import (
    Structure,
    bridges,
    components,
    cut_edges,
    groups_of,
    in_doubt,
    loose,
    several_forms,
)


def structure(clusters, pairs, needed=5.0, membership=None):
    """Clusters as words of one-letter ids, and pairs as (two letters, probability, weight)."""
    ids = [name for word in clusters for name in word]
    table = pa.table(
        {
            "id": ids,
            "entity_id": [word[0] for word in clusters for _ in word],
            "membership_probability": membership or [1.0] * len(ids),
        }
    )
    columns = zip(*[(*both, p, w) for both, p, w in pairs], strict=True)
    names = ("id_a", "id_b", "probability", "match_weight")
    listed = pa.table(dict(zip(names, map(list, columns), strict=True)))
    return ids, Structure.of(table, listed, needed)


def named(ids, rows):
    return "".join(ids[row] for row in rows)


# --- single edges -----------------------------------------------------------------------------


def reached(nodes, edges, start):
    """What can be reached, by looking again until nothing is added."""
    found = {start}
    for _ in nodes:
        for a, b in edges:
            if {a, b} & found:
                found |= {a, b}
    return found


def plain_cut_edges(edges):
    """Each edge taken out in turn: are its ends still together?"""
    nodes = {node for edge in edges for node in edge}
    out = {}
    for edge in edges:
        others = [other for other in edges if other != edge]
        sides = tuple(reached(nodes, others, end) for end in edge)
        if not sides[0] & sides[1]:
            out[edge] = sides
    return out


@pytest.mark.parametrize("seed", range(60))
def test_cut_edges_are_those_whose_loss_parts_their_component(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 11))
    every = list(itertools.combinations(range(n), 2))
    share = rng.uniform(0.1, 0.6)
    edges = [edge for edge in every if rng.random() < share]
    assert cut_edges(edges) == plain_cut_edges(edges)


def test_a_search_that_goes_deep_does_not_end_early():
    chain = [(k, k + 1) for k in range(1000)]
    assert len(cut_edges(chain)) == 1000
    assert not cut_edges([*chain, (0, 1000)])


def test_a_chain_hangs_on_an_edge_though_its_ends_are_probably_one_person():
    """Transitive: a and c are as probable as a and b. Their own weight is what tells."""
    pairs = [("ab", 0.99, 12.0), ("bc", 0.9, 8.0), ("ac", 0.89, -3.0), ("xy", 0.6, 9.0)]
    ids, s = structure(["abc", "xy"], pairs)
    (found,) = bridges(s)  # the worst of each cluster; a cluster of two is left out
    assert [named(ids, side) for side in found.sides] == ["ab", "c"]
    assert named(ids, found.ends) == "bc"
    assert found.at_stake == pytest.approx(2 * 0.1)  # two pairs hang on it


def test_what_is_held_twice_does_not_hang():
    pairs = [("ab", 0.99, 12.0), ("bc", 0.9, 8.0), ("ac", 0.89, 5.5)]
    assert not bridges(structure(["abc"], pairs)[1])
    assert bridges(structure(["abc"], pairs, needed=6.0)[1])
    doubted = [("ab", 0.99, 12.0), ("bc", 0.9, 8.0), ("ac", 0.4, 5.5)]  # known to be two, say
    assert bridges(structure(["abc"], doubted)[1])


def test_two_heaps_on_one_edge_come_before_a_single_record():
    heap = [
        (x + y, 1.0, 20.0) for word in ("abc", "def") for x, y in itertools.combinations(word, 2)
    ]
    rest = [("cd", 0.8, 7.0), ("gh", 1.0, 20.0), ("hi", 0.8, 7.0)]
    ids, s = structure(["abcdef", "ghi"], [*heap, *rest])
    first, second = bridges(s)
    assert sorted(named(ids, side) for side in first.sides) == ["abc", "def"]
    assert first.at_stake == pytest.approx(9 * 0.2)
    assert sorted(named(ids, side) for side in second.sides) == ["gh", "i"]


def test_clusters_that_no_strong_pair_holds_are_counted():
    pairs = [("ab", 0.9, 12.0), ("bc", 0.9, 3.0), ("ac", 0.9, 4.0), ("de", 0.9, 2.0)]
    _, s = structure(["abc", "de", "f"], pairs)
    assert loose(s) == 2  # c hangs on weak pairs, and so do d and e
    assert not bridges(structure(["de", "f"], pairs[3:])[1])


# --- doubt ------------------------------------------------------------------------------------


def test_clusters_in_doubt_stand_with_those_they_may_be_one_with():
    pairs = [("ab", 0.95, 9.0), ("bc", 0.4, 3.0), ("de", 0.99, 9.0), ("cd", 0.05, 0.0)]
    membership = [0.95, 0.95, 0.55, 0.99, 0.99, 0.7]
    ids, s = structure(["ab", "c", "de", "f"], pairs, membership=membership)
    members = s.members()
    found = [[named(ids, members[k]) for k in group] for group in in_doubt(s, 0.9)]
    assert found == [["ab", "c"], ["f"]]  # .05 is too little to show d and e


def test_components_by_hand():
    assert components([0, 1, 2, 3, 4], [(0, 3), (3, 4)]) == [[0, 3, 4], [1], [2]]


# --- several forms ----------------------------------------------------------------------------


def told(words):
    """Whether pairs agree, of records with these values; None is a missing one."""
    return {
        (i, j): words[i] == words[j]
        for i, j in itertools.combinations(range(len(words)), 2)
        if words[i] and words[j]
    }


@pytest.mark.parametrize(
    ("words", "groups"),
    [
        (["Jon", "John", "Jon", "John"], ((0, 2), (1, 3))),
        (["Jon", "Jon", "Jon", "John"], ()),  # John once is a slip
        (["Jon", "Jon", "Jon", "Jon"], ()),
        (["Jon", "Jon", None, "John", "John", "Jack"], ((0, 1), (3, 4))),
    ],
)
def test_groups_that_agree_within_and_not_between(words, groups):
    assert groups_of(told(words)) == groups


def test_a_group_of_which_a_pair_disagrees_is_none():
    agree = told(["Jon", "Jon", "Jon", "John", "John"]) | {(0, 2): False}
    assert groups_of(agree) == ()


def test_fields_with_the_same_groups_are_told_together():
    records = {"a": "Smith Bath", "b": "Smith Bath", "c": "Jones York", "d": "Jones York"}
    surname, town = ({k: v.split()[i] for k, v in records.items()} for i in (0, 1))
    both = list(itertools.combinations("abcd", 2))
    _, s = structure(["abcd"], [(x + y, 0.9, 5.0) for x, y in both])
    levels = {
        name: np.array([2 if own[x] == own[y] else 1 for x, y in both])
        for name, own in (("surname", surname), ("town", town))
    }
    levels["sex"] = np.full(len(both), 2)
    equal = dict.fromkeys(levels, frozenset({2}))
    (found,) = several_forms(s, levels, equal)
    assert found.fields == ("surname", "town")
    assert found.groups == ((0, 1), (2, 3))
    levels["town"][:] = 0  # missing in all
    (found,) = several_forms(s, levels, equal)
    assert found.fields == ("surname",)
