"""Coverage of a regression on linked data: on expected values, pooled over draws, naive and true.

    python benchmarks/regression.py 200

x is in A, y in B, y = 1 + 2 x + noise. Files of 150 people with many errors, so that some links are
wrong: those pull the naive slope towards 0, with a standard error that knows nothing of it.
"""

import sys

import numpy as np
import pyarrow as pa
import statsmodels.api as sm

import bayeslink as bl

FIELDS = [bl.levenshtein("gname"), bl.levenshtein("fname"), bl.exact("sex"), bl.exact("occup")]


def slope(joined):
    fit = sm.OLS(joined["y"].to_numpy(), sm.add_constant(joined["x"].to_numpy())).fit()
    return fit.params[1], fit.bse[1] ** 2, fit.df_resid


def interval(joined):
    estimate, variance, df = slope(joined)
    pooled = bl.pool([(estimate, variance)] * 2, complete_df=df)
    return estimate, pooled.low, pooled.high


def simulated(seed):
    """Files with x and y, and the true pairs."""
    files, rng = bl.simulate(150, overlap=0.6, errors=3, seed=seed), np.random.default_rng(seed)
    x = rng.normal(size=150)
    y = rng.normal(size=150) + 1
    place = {name: k for k, name in enumerate(files.a["id"].to_pylist())}
    partner = dict(
        zip(files.truth["id_b"].to_pylist(), files.truth["id_a"].to_pylist(), strict=True)
    )
    for k, name in enumerate(files.b["id"].to_pylist()):
        # who is in B alone has an x, too, which nobody wrote down
        y[k] += 2 * (x[place[partner[name]]] if name in partner else rng.normal())
    a, b = files.a.append_column("x", pa.array(x)), files.b.append_column("y", pa.array(y))
    return a, b, files.truth


def analysed(seed):
    """(estimate, low, high) with the true links, naive and pooled."""
    a, b, truth = simulated(seed)
    run = bl.link(a, b, FIELDS, seed=seed, draws=500, tune=300)
    true = truth.join(a, "id_a", "id").join(b.select(["id", "y"]), "id_b", "id")
    pooled = bl.pool(
        [slope(joined)[:2] for joined in run.joined_draws(20)], complete_df=run.n_links - 2
    )
    pooled = (pooled.estimate, pooled.low, pooled.high)
    return interval(true), interval(run.joined()), pooled, robust(bl.expected(run, "x"))


def robust(table):
    """On expected values: errors are larger where the link is in doubt."""
    x, y = (table[name].to_numpy() for name in "xy")
    fit = sm.OLS(y, sm.add_constant(x)).fit(cov_type="HC3", use_t=True)
    return fit.params[1], *fit.conf_int()[1]


def main(times, first=1):
    found = np.array([analysed(seed) for seed in range(first, first + times)])
    for k, name in enumerate(("true links", "naive", "pooled", "expected")):
        estimate, low, high = found[:, k].T
        covers = ((low <= 2) & (high >= 2)).mean()
        print(f"{name:10}  slope {estimate.mean():.3f}  covers {covers:.1%}  "
              f"width {np.mean(high - low):.3f}")  # fmt: skip


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]) if len(sys.argv) > 1 else [200])
