"""Diagnostics of chains, against ArviZ 0.23.4: its numbers written down, and live if installed."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayeslink.errors import InputError, SettingsError
from bayeslink.sampling.diagnostics import (
    Diagnostic,
    ess_bulk,
    summarize,
    verdict,
)

# Case -> rhat, ess(method="bulk"), mcse of arviz 0.23.4. Of the single chain,
# to which arviz gives no R-hat, that of its two halves by the functions inside arviz.
ARVIZ = {
    "independent": (1.00033818352, 362.55398913, 0.0554072221348),
    "persistent, odd": (1.03933668374, 135.197876818, 0.192621243698),
    "alternating": (1.01389563485, 1666.89075023, 0.0308291223093),
    "shifted": (1.1872928601, 16.7632388813, 0.309627686907),
    "spread": (1.21449765624, 395.895487026, 0.120762094955),
    "whole numbers": (0.999843351085, 357.238406638, 0.112893424066),
    "yes or no": (0.999195386755, 378.375302782, 0.0187502641736),
    "few": (0.955088968338, 33.1250698011, 0.162437732696),
    "to the last lag": (1.10337405252, 18.5176885299, 0.217727957127),
    "single": (1.00709825285, 45.310131783, 0.152844046973),
}
STATUSES = {"ok", "constant", "chains disagree", "chains nearly agree", "too few draws"}


def chains(case):
    rng = np.random.default_rng(20240501)
    z = rng.standard_normal((4, 100))
    return {
        "independent": lambda: z,
        "persistent, odd": lambda: autoregressive(rng.standard_normal((4, 501)), 0.9),
        "alternating": lambda: autoregressive(rng.standard_normal((3, 200)), -0.6),
        "shifted": lambda: z + np.array([[0], [0], [0], [1.5]]),
        "spread": lambda: z * np.array([[1], [1], [1], [4]]),
        "whole numbers": lambda: np.rint(2 * z),
        "yes or no": lambda: z > 1,
        "few": lambda: z[:, :7],
        "to the last lag": lambda: np.random.default_rng(57).standard_normal((2, 10)),
        "single": lambda: z[:1],
    }[case]()


def autoregressive(x, phi):
    for t in range(1, x.shape[1]):
        x[:, t] += phi * x[:, t - 1]
    return x


def summary(x):
    return summarize({"x": x})[0]


def ours(x):
    found = summary(x)
    assert ess_bulk(x) == pytest.approx(found.ess, rel=1e-12)
    return found.rhat, found.ess, found.mcse


def status(x):
    return summary(x).status


@pytest.mark.parametrize("case", ARVIZ)
def test_same_numbers_as_arviz_wrote_down(case):
    np.testing.assert_allclose(ours(chains(case)), ARVIZ[case], rtol=1e-9)


def test_same_numbers_as_arviz_now():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        az = pytest.importorskip("arviz")
        rng = np.random.default_rng(1)
        for _ in range(60):
            x = rng.standard_normal((rng.integers(2, 6), 2 * rng.integers(2, 60)))
            x = autoregressive(x, rng.choice([0, 0.5, 0.95, -0.6])) + rng.normal(size=(len(x), 1))
            x = rng.choice([np.rint, np.exp, np.negative])(x)
            theirs = az.rhat(x), az.ess(x, method="bulk"), az.mcse(x)
            np.testing.assert_allclose(ours(x), np.hstack(theirs), rtol=1e-9)


def test_many_quantities_at_once_are_as_one_by_one():
    """Also with different shapes, and more values than fit in one batch."""
    cases = {c: chains(c) for c in ARVIZ} | {
        f"{k}": np.roll(chains("shifted"), k) for k in range(350)
    }
    together = summarize(cases)
    assert [d.name for d in together] == list(cases)
    for d in together[::7]:
        (alone,) = summarize({d.name: cases[d.name]})
        assert d == alone


def test_summary_of_the_draws():
    (d,) = summarize({"L": np.arange(200).reshape(2, 100)}, interval=0.5)
    assert (d.name, d.mean, d.low, d.high) == ("L", 99.5, 49.75, 149.25)
    assert d.sd == pytest.approx(math.sqrt(200 * 201 / 12))
    (wider,) = summarize({"L": np.arange(200).reshape(2, 100)})
    assert (wider.low, wider.high) == pytest.approx((4.975, 194.025))


@pytest.mark.parametrize("x", [np.full((4, 100), 0.1), np.zeros((1, 5)), np.full((2, 9), 7)])
def test_a_constant_is_called_constant(x):
    assert math.isnan(ess_bulk(x))
    (d,) = summarize({"x": x})
    assert d == Diagnostic(
        "x", pytest.approx(x[0, 0]), pytest.approx(0), *x[0, :2], *[None] * 3, "constant"
    )


def test_constant_chains_that_differ_disagree():
    x = np.repeat([[0.1], [0.1], [0.3]], 60, axis=1)  # whose means have rounding errors
    (d,) = summarize({"x": x})
    assert (d.status, d.rhat) == ("chains disagree", None)


@pytest.mark.parametrize("draws", [1, 2, 3])
@pytest.mark.parametrize("make", [np.zeros, lambda s: np.arange(s[0] * s[1]).reshape(s)])
def test_under_four_draws_nothing_is_said(draws, make):
    x = make((3, draws))
    assert math.isnan(ess_bulk(x))
    (d,) = summarize({"x": x})
    assert (d.rhat, d.ess, d.mcse, d.status) == (None, None, None, "too few draws")


def test_status_follows_the_thresholds():
    x = np.random.default_rng(3).standard_normal((4, 1000))
    apart = np.array([[-1], [-1], [1], [1]])
    near, far = summary(x + 0.2 * apart).rhat, summary(x + 0.5 * apart).rhat
    assert summary(x).rhat < 1.01 < near < 1.05 < far
    assert [status(x + s * apart) for s in (0, 0.2, 0.5)] == [
        "ok",
        "chains nearly agree",
        "chains disagree",
    ]
    assert status(chains("spread")) == "chains disagree"
    assert ess_bulk(chains("single")) < 100
    assert status(chains("single")) == "too few draws"


def test_a_single_chain_that_drifts_is_caught():
    drift = np.linspace(0, 3, 1000)
    x = np.random.default_rng(4).standard_normal((1, 1000))
    assert (status(x), status(x + drift)) == ("ok", "chains disagree")


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 4), st.integers(1, 9), st.integers(0, 2**32), st.integers(0, 4))
def test_never_a_number_that_is_none(n_chains, draws, seed, spread):
    """Few draws with many ties, where divisions by zero lurk."""
    x = np.random.default_rng(seed).integers(0, spread + 1, (n_chains, draws)) * 0.1
    (d,) = summarize({"x": x})
    shown = [d.mean, d.sd, d.low, d.high, *(v for v in (d.rhat, d.ess, d.mcse) if v is not None)]
    assert all(map(math.isfinite, shown))
    assert d.status in STATUSES
    assert (d.status == "constant") == (draws >= 4 and np.ptp(x) == 0)


def test_only_the_middle_draw_moves():
    """It belongs to neither half, so nothing was compared: not ok."""
    x = np.zeros((4, 101))
    x[:, 50] = 1
    (d,) = summarize({"x": x})
    assert (d.rhat, d.status) == (None, "too few draws")


def test_verdict():
    def found(**statuses):
        return [Diagnostic(n, 0, 1, -1, 1, 1, 400, 0.1, s) for n, s in statuses.items()]

    assert verdict([]) is None
    assert verdict(found(a="ok", b="ok")) is None
    text = verdict(found(a="ok", L="chains disagree", m="chains disagree", u="constant"))
    assert text.startswith("The chains disagree on L and m:")
    assert "different modes" in text
    assert "; nothing could be checked on u, which never changed" in text
    assert text.count(".") == 1
    assert "too few" not in text
    many = verdict(found(**dict.fromkeys("abcde", "too few draws")))
    assert many == "There are too few independent draws of a, b, c and 2 more: draw more."
    assert "nearly agree on a: draw more" in verdict(found(a="chains nearly agree"))
    assert "a, b and c" in verdict(found(a="constant", b="constant", c="constant"))


@pytest.mark.parametrize(
    "bad", [np.zeros(5), np.zeros((2, 0)), np.zeros((0, 5)), np.zeros((2, 2, 2))]
)
def test_shape_is_checked(bad):
    with pytest.raises(InputError, match=r"theta .*\(chains, draws\)"):
        summarize({"theta": bad})


def test_numbers_that_are_not_finite():
    x = np.random.default_rng(0).standard_normal((2, 50))
    for bad in (math.nan, -math.inf):
        x[1, 3] = bad
        assert math.isnan(ess_bulk(x))
        with pytest.raises(InputError, match="theta has draws that are not finite"):
            summarize({"theta": x})
    with pytest.raises(InputError, match=r"\(chains, draws\)"):
        ess_bulk(np.zeros(9))


@pytest.mark.parametrize("interval", [0, 1, 95, -0.1, math.nan])
def test_interval_is_a_probability(interval):
    with pytest.raises(SettingsError, match="interval"):
        summarize({}, interval=interval)
