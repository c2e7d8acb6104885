"""Analyses of linked data: regression pooled over draws, group tables, coverage by stratum."""

import numpy as np
import pyarrow as pa
import pytest

import bayeslink as bl
from benchmarks.regression import FIELDS, interval, robust, simulated, slope


@pytest.fixture(scope="module")
def linked():
    a, b, truth = simulated(3)
    return bl.link(a, b, FIELDS, draws=300, tune=200), truth


def true_rows(truth, table, side):
    place = {name: k for k, name in enumerate(table["id"].to_pylist())}
    return [place[name] for name in truth[f"id_{side}"].to_pylist()]


def test_a_pooled_regression_is_wider_than_a_naive_one_and_covers(linked):
    run, _ = linked
    sm = pytest.importorskip("statsmodels.api")
    pooled = bl.pool(
        [slope(joined)[:2] for joined in run.joined_draws(20)], complete_df=run.n_links - 2
    )
    _, low, high = interval(run.joined())
    assert pooled.high - pooled.low > high - low
    assert pooled.low < 2 < pooled.high
    # statsmodels' own numbers for one version
    joined = next(run.joined_draws(1))
    fit = sm.OLS(joined["y"].to_numpy(), sm.add_constant(joined["x"].to_numpy())).fit()
    assert slope(joined)[0] == pytest.approx(fit.params[1])


def test_a_group_table_counts_people_in_every_draw(linked):
    run, truth = linked
    table = bl.cross_table(run, "sex", "occup").to_pylist()
    total = sum(row["people"] for row in table)
    assert total == pytest.approx(run.posterior.n_links.mean(), rel=0.02)
    assert all(row["low"] <= row["people"] <= row["high"] or row["people"] < 1 for row in table)
    a, _ = run.sources
    sex = np.array(a["sex"].to_pylist())[true_rows(truth, a, "a")]
    men = [row for row in table if row["sex_a"] == "m"]
    low, high = (sum(row[key] for row in men) for key in ("low", "high"))
    assert low <= (sex == "m").sum() <= high
    # by hand, for one draw
    one = {(r["sex_a"], r["occup_b"]): r["people"]
           for r in bl.cross_table(run, "sex", "occup", draws=1).to_pylist()}  # fmt: skip
    drawn = next(run.joined_draws(1))
    for (x, y), people in one.items():
        found = sum(
            (p or "–") == x and (q or "–") == y
            for p, q in zip(drawn["sex"].to_pylist(), drawn["occup_b"].to_pylist(), strict=True)
        )
        assert found == people
    with pytest.raises(bl.InputError, match="no column 'sx'"):
        bl.cross_table(run, "sx", "occup")


def test_coverage_by_stratum(linked):
    run, truth = linked
    _, b = run.sources
    strata = np.array([x or "–" for x in b["occup"].to_pylist()])
    matched = np.zeros(len(strata), bool)
    matched[true_rows(truth, b, "b")] = True
    rows = {row["occup"]: row for row in bl.coverage(run, "occup").to_pylist()}
    assert [*rows][-1] == "all"
    assert rows["all"]["people"] == 150
    covered = 0
    for name, row in rows.items():
        own = np.ones(len(strata), bool) if name == "all" else strata == name
        assert row["people"] == own.sum()
        assert row["coverage"] + row["undercount"] == pytest.approx(1)
        covered += row["low"] <= matched[own].mean() <= row["high"]
    assert covered >= 0.8 * len(rows)
    other = bl.coverage(run, "sex", of="b").to_pylist()
    assert other[-1]["people"] == 150
    with pytest.raises(bl.InputError, match='"a" or "b"'):
        bl.coverage(run, "sex", of="c")


def test_expected_values_are_means_over_the_links(linked):
    run, _ = linked
    a, b = run.sources
    table = bl.expected(run, "x")
    assert table.column_names == [*b.column_names, "x", "link_probability"]
    assert table["id"].to_pylist() == b["id"].to_pylist()
    x = dict(zip(a["id"].to_pylist(), a["x"].to_pylist(), strict=True))
    mean = np.mean([*x.values()])
    for row in table.slice(0, 40).to_pylist():
        total, sure = 0.0, 0.0
        for pair in run.posterior.link_probabilities().to_pylist():
            if pair["id_b"] == row["id"]:
                total += pair["link_probability"] * x[pair["id_a"]]
                sure += pair["link_probability"]
        assert row["link_probability"] == pytest.approx(sure)
        assert row["x"] == pytest.approx(total + (1 - sure) * mean, abs=1e-9)


def test_a_regression_on_expected_values_is_not_pulled_to_0(linked):
    """The slope is 2; the pooled one is pulled by the wrong links of each draw."""
    run, truth = linked
    a, b = run.sources
    true = truth.join(a, "id_a", "id").join(b.select(["id", "y"]), "id_b", "id")
    pooled = np.mean([slope(joined)[0] for joined in run.joined_draws(20)])
    estimate, low, high = robust(bl.expected(run, "x"))
    assert low < slope(true)[0] < high
    assert abs(estimate - slope(true)[0]) < abs(pooled - slope(true)[0])
    other = bl.expected(run, "y", of="b")  # the other way round: E(x | y) has slope 2 / 5
    fit = np.polyfit(other["y"].to_numpy(), other["x"].to_numpy(), 1)
    assert fit[0] == pytest.approx(0.4, abs=0.1)


def test_expected_values_need_numbers_and_probabilities(linked):
    run, _ = linked
    with pytest.raises(bl.InputError, match="does not hold numbers"):
        bl.expected(run, "gname")
    with pytest.raises(bl.InputError, match="no column 'z'"):
        bl.expected(run, "z")
    a, b = run.sources
    missing = a.set_column(a.column_names.index("x"), "x", pa.array([""] * 20 + ["1.5"] * 130))
    again = bl.link(missing, b, FIELDS, draws=20, tune=20, chains=1)
    assert bl.expected(again, "x")["x"].to_pylist() == pytest.approx([1.5] * len(b))
    with pytest.raises(bl.SettingsError, match="point"):
        bl.expected(bl.link(a, b, FIELDS, point=True), "x")
