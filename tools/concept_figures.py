"""The pictures of docs/concepts.md, drawn from runs: `python tools/concept_figures.py`."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

import bayeslink as bl

FOLDER = Path(__file__).parents[1] / "docs" / "figures"
BLUE, ORANGE, GREY = "#3b6ea5", "#d9822b", "#8a8a8a"
mpl.rcParams.update(
    {
        "svg.fonttype": "none",
        "svg.hashsalt": "bayeslink",
        "font.family": "sans-serif",
        "font.size": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "figure.facecolor": "white",
        "figure.figsize": (6.4, 3.2),
        "figure.constrained_layout.use": True,
    }
)


def save(figure: Any, name: str) -> None:
    figure.savefig(FOLDER / f"concept-{name}.svg", metadata={"Date": None})
    plt.close(figure)


def cost(pairs: Any, n_true: int, theta: float) -> None:
    """Links over the cost of a link."""
    thetas = np.arange(0.0, 14.1, 0.5)
    path = bl.penalty_path(pairs, thetas)
    figure, axes = plt.subplots()
    axes.plot(path.thetas, path.n_links, "o-", color=BLUE, ms=3)
    axes.axhline(n_true, color=GREY, ls="--", lw=1)
    axes.annotate(
        "people in both files", (13.9, n_true), (0, 4), textcoords="offset points", ha="right"
    )
    axes.axvline(theta, color=ORANGE, lw=1.5)
    axes.annotate(
        "θ that follows from\nthe overlap prior",
        (theta, axes.get_ylim()[1]),
        (6, -22),
        textcoords="offset points",
        color=ORANGE,
    )
    axes.set(xlabel="θ, the cost of a link", ylabel="links")
    save(figure, "theta")


def threshold(run: Any, pairs: Any) -> None:
    """All pairs by weight."""
    a, b = (x.ravel().astype(np.int32) for x in np.mgrid[: pairs.n_a, : pairs.n_b])
    weights = run.parameters.weight_of(pairs.levels_of(a, b))
    figure, axes = plt.subplots()
    edges = np.arange(np.floor(weights.min()), weights.max() + 1, 1.0)
    axes.hist(weights, edges, color=GREY, label="all pairs")
    probable = run.posterior.probability > 0.5
    own = run.parameters.weight_of(run.posterior.blocks.candidates.levels[probable])
    axes.hist(own, edges, color=BLUE, label="links")
    for x, name, color, side in (
        (run.blocks.w0, "w0", ORANGE, "right"),
        (run.theta, "θ", "black", "left"),
    ):
        axes.axvline(x, color=color, lw=1.5)
        axes.annotate(
            name,
            (x, 1),
            (-4 if side == "right" else 4, -10),
            color=color,
            ha=side,
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
        )
    axes.set(yscale="log", xlabel="weight of a pair (natural log)", ylabel="pairs (log scale)")
    axes.legend(frameon=False, loc="upper right")
    save(figure, "w0")


def modes() -> None:
    """Solutions that no small step improves."""
    files = bl.simulate(200, errors=3, seed=1)
    weak = [bl.levenshtein("fname"), bl.exact("sex"), bl.exact("occup"), bl.exact("age")]
    fit = bl.fit_penalized(bl.compare(files.a, files.b, weak), prior=bl.Overlap(1, 1))
    figure, axes = plt.subplots()
    n, height = (np.array([getattr(m, key) for m in fit.modes]) for key in ("n_links", "objective"))
    height -= height[0]
    axes.vlines(n, height.min() - 2, height, color=GREY, lw=1)
    axes.plot(n, height, "o", color=BLUE)
    axes.plot(n[:1], height[:1], "o", color=ORANGE)
    axes.annotate(
        "the best one found",
        (n[0], height[0]),
        (8, 0),
        textcoords="offset points",
        color=ORANGE,
        va="center",
    )
    axes.axvline(len(files.truth), color=GREY, ls="--", lw=1)
    axes.annotate(
        "true",
        (len(files.truth), height.min() - 1.5),
        (-4, 0),
        textcoords="offset points",
        ha="right",
    )
    axes.set(xlabel="links", ylabel="log likelihood below the best")
    save(figure, "mode")


def blocks(run: Any) -> None:
    """Some post-hoc blocks as graphs."""
    found = run.blocks
    numbers, sizes = np.unique(found.block, return_counts=True)
    chosen = [
        *numbers[sizes == 1][:1],
        *numbers[(sizes >= 2) & (sizes <= 3)][:2],
        *numbers[sizes > 3][:2],
    ]
    figure, row = plt.subplots(1, len(chosen), figsize=(6.4, 2.8))
    for axes, number in zip(row, chosen, strict=True):
        here = np.flatnonzero(found.block == number)
        left, right = found.candidates.a[here], found.candidates.b[here]
        at = [
            {r: k - (len(set(rows)) - 1) / 2 for k, r in enumerate(sorted(set(rows)))}
            for rows in (left, right)
        ]
        for k, (x, y) in enumerate(zip(left, right, strict=True)):
            p = run.posterior.probability[here[k]]
            axes.plot(
                [0, 1], [at[0][x], at[1][y]], color=BLUE, lw=0.8 + 3 * p, alpha=0.25 + 0.75 * p
            )
        for side in (0, 1):
            axes.plot([side] * len(at[side]), list(at[side].values()), "o", color="black", ms=5)
        axes.set(xlim=(-0.3, 1.3), ylim=(-3.2, 3.2))
        axes.set_title(f"{len(here)} pair{'s' * (len(here) > 1)}", fontsize=10)
        axes.set_xticks([0, 1], ["A", "B"])
        axes.set_yticks([])
        axes.spines[:].set_visible(False)
    save(figure, "block")


def interval(run: Any, n_true: int) -> None:
    """The draws of L."""
    draws = run.posterior.n_links.ravel()
    low, high = run.posterior.interval()
    figure, axes = plt.subplots()
    values, counts = np.unique(draws, return_counts=True)
    inside = (values >= low) & (values <= high)
    axes.bar(values, counts / len(draws), color=np.where(inside, BLUE, "#b9cbe0"))
    axes.set_ylim(0, 1.35 * counts.max() / len(draws))
    axes.axvline(n_true, color=GREY, ls="--", lw=1)
    axes.annotate(
        "true",
        (n_true, 1),
        (-4, -10),
        ha="right",
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
    )
    axes.axvline(run.n_links, color=ORANGE, lw=1.5)
    axes.annotate(
        "links of the\nestimate",
        (run.n_links, 1),
        (4, -22),
        color=ORANGE,
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
    )
    axes.set(xlabel=f"L, records in both files (95 %: {low} to {high})", ylabel="share of draws")
    save(figure, "interval")


def main() -> None:
    files = bl.simulate(300, errors=3, seed=1)
    fields = [
        bl.levenshtein("gname"),
        bl.levenshtein("fname"),
        bl.date("dob"),
        bl.exact("sex"),
        bl.exact("occup"),
    ]
    run = bl.link(files.a, files.b, fields)
    cost(run.pairs, len(files.truth), run.fit.theta)
    threshold(run, run.pairs)
    modes()
    interval(run, len(files.truth))
    few = bl.link(files.a, files.b, fields, w0=run.theta - 3)
    blocks(few)


if __name__ == "__main__":
    main()
