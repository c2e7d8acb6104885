"""Records that are there twice, word for word."""

import pandas as pd

import bayeslink as bl

FIELDS = [bl.levenshtein("gname"), bl.levenshtein("fname"), bl.date("dob"), bl.exact("sex")]
QUICK = {"draws": 200, "tune": 100, "chains": 2}


def with_copies():
    """A person of both files twice in A, another twice in B; who they are."""
    files = bl.simulate(100, errors=0, seed=3)
    a, b, truth = (pd.DataFrame(t.to_pydict()) for t in (files.a, files.b, files.truth))
    x, y = truth.iloc[0], truth.iloc[1]
    a = pd.concat([a, a[a.id == x.id_a].assign(id="copy in A")])
    b = pd.concat([b, b[b.id == y.id_b].assign(id="copy in B")])
    return a, b, x, y


def test_one_of_two_copies_is_linked_whatever_the_order_of_rows():
    a, b, x, y = with_copies()
    links = []
    for run in (
        bl.link(a, b, FIELDS, **QUICK),
        bl.link(a[::-1], b[::-1], FIELDS, loss=bl.Loss(reject=0.1), **QUICK),
    ):
        table = run.links[run.links.decision == "link"]
        links.append({*zip(table.id_a, table.id_b, strict=True)})
        assert sum(id_b == x.id_b for _, id_b in links[-1]) == 1
        assert sum(id_a == y.id_a for id_a, _ in links[-1]) == 1
        assert any("1 linked records of A, and 1 of B, have copies" in w for w in run.warnings)
        own = table[table.id_b == x.id_b].link_probability.item()
        assert 0.35 < own < 0.65  # of this very pair
        assert run.decision.expected_false < 0.3
    assert links[0] == links[1]


def test_people_who_are_alike_by_chance_are_not_copies():
    side = {"sex": ["m", "f"] * 50, "age": [str(k % 10) for k in range(100)]}
    a, b = (pd.DataFrame({"id": [f"{s}{k}" for k in range(100)], **side}) for s in "ab")
    pairs = bl.compare(a, b, [bl.exact("sex"), bl.exact("age")])
    assert all((first == range(100)).all() for first in pairs.copies)


def test_a_run_that_is_opened_again_knows_its_copies(tmp_path):
    a, b, *_ = with_copies()
    run = bl.link(a, b, FIELDS, **QUICK)
    run.save(tmp_path / "run")
    again = bl.open_run(tmp_path / "run").posterior.estimate()
    assert again.links.tolist() == run.decision.links.tolist()
    assert again.expected_loss == run.decision.expected_loss
