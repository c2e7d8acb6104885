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


def forms() -> None:
    """A person in three records: an original, a copy, and a copy of the copy."""
    made = bl.simulate_duplicates(300, seed=5, sizes=(0.4, 0.3, 0.3), married=0.3, moved=0.3)
    run = bl.dedupe(made.a, ["gname", "fname", "dob", "postcode", "street", "sex"])
    weight = {
        frozenset((row["id_a"], row["id_b"])): row["match_weight"]
        for row in run.pair_probabilities().to_pylist()
    }
    people: dict[str, list[str]] = {}
    for row in run.clusters.to_pylist():
        people.setdefault(row["entity_id"], []).append(row["id"])
    chains = []
    for ids in people.values():
        if len(ids) == 3 and all(frozenset({*ids} - {k}) in weight for k in ids):
            middle = min(ids, key=lambda k: weight[frozenset({*ids} - {k})])
            ends = sorted({*ids} - {middle})
            own = [weight[frozenset((end, middle))] for end in ends]
            chains.append((weight[frozenset(ends)] - min(own), ends[0], middle, ends[1]))
    _, *ids = min(chains)
    cells = {row["id"]: row for row in made.a.to_pylist()}
    figure, axes = plt.subplots(figsize=(6.4, 2.7))
    names = ("gname", "fname", "dob", "postcode", "street")
    for k, (id_, title) in enumerate(
        zip(ids, ("original", "copy", "copy of the copy"), strict=True)
    ):
        axes.add_patch(plt.Rectangle((3 * k, 0), 2, 2.1, fill=False, ec=BLUE, lw=1.5))
        axes.text(3 * k + 1, 2.25, title, ha="center", color=BLUE)
        for line, name in enumerate(names):
            value = cells[id_][name] or "–"
            copied = k == 0 or value == (cells[ids[k - 1]][name] or "–")
            color = "black" if copied else ORANGE
            axes.text(3 * k + 0.1, 1.8 - 0.38 * line, value, color=color, va="center", fontsize=9)
    arrow = {"arrowstyle": "->", "color": BLUE, "lw": 1.5}
    for k in (0, 1):
        axes.annotate("", (3 * k + 2.95, 1.05), (3 * k + 2.05, 1.05), arrowprops=arrow)
        bits = weight[frozenset(ids[k : k + 2])]
        axes.text(3 * k + 2.5, 1.2, f"{bits:+.0f} bits", ha="center", color=BLUE, fontsize=9)
    bow = {"arrowstyle": "-", "color": GREY, "ls": "--", "connectionstyle": "arc3,rad=0.12"}
    axes.annotate("", (7, -0.05), (1, -0.05), arrowprops=bow)
    bits = weight[frozenset((ids[0], ids[2]))]
    said = f"{bits:+.0f} bit{'s' * (abs(round(bits)) != 1)} between the ends".replace("-", "−")
    axes.text(4, -0.95, said, ha="center", color=GREY)
    axes.set(xlim=(-0.1, 8.1), ylim=(-1.1, 2.5))
    axes.axis("off")
    save(figure, "forms")


def in_files() -> None:
    """Some people of the tutorial's three lists, each a line through its records."""
    folder = FOLDER.parent / "files"
    lists = ("residents", "patients", "readers")
    run = bl.link_many(
        {name: folder / f"{name}.csv" for name in lists}, duplicates="patients", missing="unknown"
    )
    people: dict[str, list[tuple[str, str]]] = {}
    for row in run.clusters.to_pylist():
        if row["membership_probability"] > 0.95:
            people.setdefault(row["entity_id"], []).append((row["file"], row["id"]))
    wanted = [(1, 1, 1), (1, 2, 1), (0, 2, 1), (1, 1, 0), (0, 0, 1)]
    words = ("in all three", "in all three, twice a patient", "twice a patient, and a reader",
             "a resident and a patient", "a reader alone")  # fmt: skip
    figure, axes = plt.subplots(figsize=(6.4, 2.8))
    for y, (numbers, said) in enumerate(zip(wanted, words, strict=True)):
        records = next(
            found
            for found in people.values()
            if tuple(sum(file == name for file, _ in found) for name in lists) == numbers
        )
        at: list[tuple[float, str]] = []
        for k, name in enumerate(lists):
            own = [id_ for file, id_ in records if file == name]
            at += [(k + 0.36 * (n - (len(own) - 1) / 2), id_) for n, id_ in enumerate(own)]
        axes.plot([x for x, _ in at], [-y] * len(at), "o-", color=BLUE, lw=2, ms=7)
        for x, id_ in at:
            axes.text(x, -y + 0.2, id_, ha="center", fontsize=8, color=GREY)
        axes.text(2.4, -y, said, va="center")
    for x, name in enumerate(lists):
        axes.text(x, 0.75, name, ha="center", fontweight="bold")
    axes.set(xlim=(-0.4, 4.4), ylim=(-4.4, 1.1))
    axes.axis("off")
    save(figure, "files")


def main() -> None:
    forms()
    in_files()
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
