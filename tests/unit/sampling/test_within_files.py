"""Links held against pairs within the files: counted by plain loops; two halves of one file."""

import numpy as np
import pyarrow as pa
import pytest

import bayeslink as bl
from bayeslink.sampling import within_files
from bayeslink.sampling.within_files import compare_within, said

FIELDS = [bl.levenshtein("gname"), bl.levenshtein("fname"), bl.exact("sex"), bl.exact("age"),
          bl.exact("postcode")]  # fmt: skip
SHORT = {"draws": 150, "tune": 100, "chains": 2}


def halves(seed, n=700):
    """A file in two parts, households in both: nobody is in both, spouses may be."""
    a = bl.simulate(n, overlap=0.0, seed=seed, households=True, errors=1).a
    order = np.random.default_rng(seed).permutation(n)
    return a.take(np.sort(order[::2])), a.take(np.sort(order[1::2]))


@pytest.mark.parametrize("seed", [1, 2])
def test_where_nobody_is_in_both_nothing_can_be_pointed_to(seed):
    run = bl.link(*halves(seed), FIELDS, **SHORT)
    found = run.posterior.within
    if found is None:  # no link is expected at all
        assert run.posterior.n_links.mean() < 2
        return
    assert not found.holds
    assert not run.posterior.identified.holds
    assert run.posterior.identified.interval(0.95)[0] == 0
    assert any("as alike as most links" in w for w in run.warnings)
    assert run.summary()["expected_false_links"] >= 0.9 * run.summary()["n_links"]


@pytest.mark.parametrize("seed", [1, 2])
def test_where_half_are_in_both_the_links_hold(seed):
    made = bl.simulate(500, overlap=0.5, seed=seed, households=True, errors=1)
    run = bl.link(made.a, made.b, FIELDS, **SHORT)
    found = run.posterior.within
    assert found.supported > 0.8
    assert found.holds
    assert run.posterior.identified.holds
    assert run.posterior.identified.parts.by_chance == 0
    assert said(found) is None


def test_pairs_are_counted_as_two_loops_count_them(monkeypatch):
    """All records looked at; the score and the counts made by hand."""
    made = bl.simulate(60, overlap=0.4, seed=3, errors=1)
    fields = [bl.exact("gname"), bl.exact("fname"), bl.exact("sex"), bl.exact("age")]
    run = bl.link(made.a, made.b, fields, **SHORT)
    post = run.posterior
    monkeypatch.setattr(within_files, "QUANTILES", (0.25,))
    found = compare_within(post.blocks, post.probability)
    cells = [
        [tuple(row[f.name] for f in fields) for row in table.to_pylist()]
        for table in (made.a, made.b)
    ]
    n_a, n_b = map(len, cells)
    both = cells[0] + cells[1]

    def levels(x, y):
        return [0 if p is None or q is None else 1 + (p == q) for p, q in zip(x, y, strict=True)]

    c = post.blocks.candidates
    kept = post.probability > 0.01
    links = [
        (levels(cells[0][a], cells[1][b]), p)
        for a, b, p in zip(c.a[kept], c.b[kept], post.probability[kept], strict=True)
    ]
    counts = np.zeros((4, 3))
    pairs = [(i, j) for i in range(n_a + n_b) for j in range(i)]
    for i, j in pairs:
        for k, level in enumerate(levels(both[i], both[j])):
            counts[k, level] += 1
    m = np.full((4, 3), 0.5)
    for row, p in links:
        for k, level in enumerate(row):
            m[k, level] += p
    u = np.maximum(counts - m + 0.5, 0) + 0.5
    m[:, 0] = u[:, 0] = 0
    m, u = m / m.sum(1, keepdims=True), u / u.sum(1, keepdims=True)

    def score(row):
        return sum(np.log(m[k, level] / u[k, level]) for k, level in enumerate(row) if level)

    scored = sorted((score(row), p) for row, p in links)
    below = np.cumsum([p for _, p in scored]) / sum(p for _, p in scored)
    low = scored[int(np.searchsorted(below, 0.25))][0] - 1e-9
    above = [(i, j) for i, j in pairs if score(levels(both[i], both[j])) > low]
    between = sum((i >= n_a) != (j >= n_a) for i, j in above)
    of_a, of_b = sum(i < n_a for i, _ in above), sum(j >= n_a for _, j in above)
    assert found.between == between
    by_chance = of_a * 2 * n_b / (n_a - 1) + of_b * 2 * n_a / (n_b - 1)
    assert found.within == pytest.approx(by_chance / 2)


@pytest.mark.parametrize("swapped", [False, True])
def test_records_of_both_files_together_compare_as_they_do(swapped):
    made = bl.simulate(80, overlap=0.5, seed=4, errors=1)
    fields = [bl.levenshtein("gname"), bl.levenshtein("fname"), bl.date("dob"), bl.exact("sex")]
    pairs = bl.compare(made.a, made.b, fields, swapped_names=swapped)
    rows = np.arange(3, 70), np.arange(1, 80, 2)
    one = pairs.together(rows)
    assert one.one_file
    assert one.n_a == 67 + 40
    a, b = (x.ravel() for x in np.meshgrid(np.arange(67), np.arange(40), indexing="ij"))
    found = one.levels_of(a.astype(np.int32), (b + 67).astype(np.int32))
    inner = getattr(pairs, "inner", pairs)
    wanted = inner.levels_of(rows[0][a].astype(np.int32), rows[1][b].astype(np.int32))
    same = [f.labels == g.labels for f, g in zip(one.fields, inner.fields, strict=True)]
    assert same == [True, True, False, True]  # which differences of dates are levels, dates tell
    np.testing.assert_array_equal(found[:, same], wanted[:, same])
    equal = [f.labels.index("equal") + 1 for f in (one.fields[2], inner.fields[2])]
    np.testing.assert_array_equal(found[:, 2] == equal[0], wanted[:, 2] == equal[1])
    np.testing.assert_array_equal(found[:, 2] == 0, wanted[:, 2] == 0)
    assert one.n_pairs == 107 * 106 // 2
    assert one.together(rows) is None


def test_what_cannot_be_looked_at_is_not(tmp_path):
    made = bl.simulate(100, overlap=0.5, seed=5, errors=1)
    blocked = bl.link(made.a, made.b, FIELDS[:3], block=["sex"], **SHORT)
    assert blocked.posterior.within is None
    run = bl.link(made.a, made.b, FIELDS, **SHORT)
    assert run.posterior.within is not None
    run.save(tmp_path / "out")
    opened = bl.open_run(tmp_path / "out")
    assert opened.posterior.within == run.posterior.within
    assert opened.posterior.interval() == run.posterior.interval()


def test_the_order_of_rows_changes_nothing():
    made = bl.simulate(150, overlap=0.5, seed=6, errors=1)
    runs = [
        bl.link(a, made.b, FIELDS, **SHORT)
        for a in (made.a, made.a.take(pa.array(np.random.default_rng(1).permutation(150))))
    ]
    assert runs[0].posterior.within == runs[1].posterior.within


def test_a_handful_of_clear_links_holds():
    """Too few to be surely more than chance; but nothing within the files is like them."""
    made = bl.simulate(100, overlap=0.05, seed=7, errors=0)
    run = bl.link(made.a, made.b, [*FIELDS, bl.date("dob")], **SHORT)
    assert 1 <= run.summary()["n_links"] <= 5
    assert run.posterior.within.holds
    assert not any("as alike as most links" in w for w in run.warnings)
