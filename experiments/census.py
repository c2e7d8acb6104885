"""Section 5.1, the Italian census: Table 1, Figures 2 and 3, and the population size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import hypergeom

from bayeslink.engines.compare import compare
from bayeslink.linkage.em import EMAssignment, EMFit, assign_em, fit_em
from bayeslink.linkage.penalized import (
    Mode,
    PenalizedFit,
    PenaltyPath,
    fit_penalized,
    penalty_path,
)
from bayeslink.linkage.posthoc import posthoc_blocks
from bayeslink.linkage.priors import Penalty
from bayeslink.pairs.pair_tables import callers_table
from bayeslink.pairs.source import Floats, Ints, PairSource
from bayeslink.sampling.population import lincoln_petersen
from bayeslink.sampling.posterior import Posterior
from bayeslink.sampling.sampler import sample
from bayeslink.sampling.sensitivity import Sensitivity, sensitivity
from experiments import data
from experiments.drawing import STYLES, figure, table

THETA = 2.0
THETAS = np.linspace(0, 7, 141)
SENSITIVITY = np.linspace(0, 5, 21)

# Table 1 of the paper: name, sex, edu agree -> pairs, EM weight, penalized weight.
PUBLISHED: dict[tuple[int, ...], tuple[int, float, float]] = {
    (1, 1, 1): (25, 5.24, 6.09),
    (1, 0, 1): (8, 3.85, 3.30),
    (1, 1, 0): (13, -7.49, 2.10),
    (0, 1, 1): (126, 2.77, -0.66),
    (1, 0, 0): (21, -8.89, -0.69),
    (0, 0, 1): (78, 1.37, -3.44),
    (0, 1, 0): (601, -9.96, -4.64),
    (0, 0, 0): (658, -11.36, -7.43),
}


@dataclass(frozen=True, slots=True)
class Census:
    """All that the tables and figures show."""

    source: str
    pairs: PairSource
    em: EMFit
    em_links: EMAssignment  # cut at θ
    fit: PenalizedFit  # at θ
    path: PenaltyPath
    posterior: Posterior  # of the candidates above w0 = 0
    sensitivity: Sensitivity

    @property
    def largest_mode(self) -> Mode:
        """The mode with most links at θ: on the census the published one, of 28."""
        return max(self.fit.modes, key=lambda mode: mode.n_links)

    @property
    def path_links(self) -> list[int]:
        """Numbers of links met over θ in either direction, without zero."""
        return sorted({mode.n_links for mode in (*self.path.up, *self.path.down)} - {0})


def compute(files: data.Files, draws: int = 4000) -> Census:
    """Fit, follow θ, sample at θ = 2 and w0 = 0, and vary θ."""
    pairs = compare(files.a, files.b, data.census_fields())
    em, fit = fit_em(pairs), fit_penalized(pairs, theta=THETA)
    posterior = sample(
        posthoc_blocks(pairs, fit, w0=0.0), prior=Penalty(THETA), restricted=True, draws=draws
    )
    return Census(
        files.source,
        pairs,
        em,
        assign_em(em, mu=THETA),
        fit,
        penalty_path(pairs, THETAS.tolist()),
        posterior,
        sensitivity(posterior, thetas=SENSITIVITY.tolist()),
    )


def size_given_links(n_a: int, n_b: int, n_links: int, power: int) -> tuple[int, int, int]:
    """2.5 %, 50 % and 97.5 % points of the population size N given L, under p(N) ∝ N^−power."""
    sizes = np.arange(max(n_a, n_b), 100 * (n_a + n_b))
    p = hypergeom.pmf(n_links, sizes, n_a, n_b) / sizes.astype(float) ** power
    low, median, high = sizes[np.searchsorted(p.cumsum() / p.sum(), (0.025, 0.5, 0.975))]
    return int(low), int(median), int(high)


# --- tables -----------------------------------------------------------------------------------


def weights_table(census: Census) -> str:
    """Table 1, with the published weights beside ours where the data are the paper's."""
    published = data.CENSUS.is_dir()
    patterns = census.pairs.pattern_counts()
    order = np.argsort(-census.largest_mode.weight_of(patterns.levels))
    rows: list[list[Any]] = []
    for levels, count in zip(patterns.levels[order], patterns.counts[order], strict=True):
        agree = tuple(int(x) - 1 for x in levels)
        weights = [
            float(fit.weight_of(levels[None])[0])
            for fit in (census.em, census.largest_mode, census.fit)
        ]
        em, penalized = PUBLISHED[agree][1:] if published else (None, None)
        rows.append([*agree, int(count), em, round(weights[0], 2), penalized,
                     *(round(w, 2) for w in weights[1:])])  # fmt: skip
    sizes = f"ours, {census.largest_mode.n_links} links", f"best mode, {census.fit.n_links} links"
    header = ["name", "sex", "edu", "pairs", "EM, paper", "EM, ours", "penalized, paper", *sizes]
    return table(header, rows)


def published_edu(census: Census) -> list[float]:
    """1 − m of edu as implied by each two published EM weights that differ in edu alone.

    The likelihood is largest at m = 1, where pairs that differ in edu have weight −∞: their
    published weights say when EM was stopped. If all imply the same m, nothing else differs.
    """
    u = census.em.parameters.u[2, 2]
    gaps = [PUBLISHED[*x, 1][1] - PUBLISHED[*x, 0][1] for x in ((1, 1), (1, 0), (0, 1), (0, 0))]
    return [float(1 / (1 + np.exp(gap) * u / (1 - u))) for gap in gaps]


def size_table(census: Census) -> str:
    """Population size for each number of links on the path, and under the posterior."""
    n_a, n_b = census.pairs.n_a, census.pairs.n_b
    rows: list[list[Any]] = []
    for n in census.path_links:
        low, median, high = size_given_links(n_a, n_b, n, 1)
        other = size_given_links(n_a, n_b, n, 2)
        estimate = round(float(lincoln_petersen(n_a, n_b, n)), 1)
        rows.append([str(n), estimate, f"{median} ({low}, {high})", f"{other[1]} {other[::2]}"])
    size = census.posterior.population_size()
    low, high = census.posterior.interval()
    summary = f"{size.median:.0f} ({size.low:.0f}, {size.high:.0f})"
    rows.append([f"posterior: {low} to {high}", None, summary, None])
    header = ["links", "Lincoln–Petersen", "N under 1/N, 95 % interval", "N under 1/N²"]
    return table(header, rows)


def summary(census: Census) -> str:
    """The main numbers in sentences."""
    blocks, path = census.posterior.blocks, census.path
    modes = ", ".join(f"{m.n_links} links ({m.objective:.2f})" for m in census.fit.modes)
    ways = [" → ".join(_steps(path.thetas, way)) for way in (path.up, path.down[::-1])]
    stopped = ""
    if data.CENSUS.is_dir():
        implied = ", ".join(f"{x:.3g}" for x in published_edu(census))
        stopped = f"\n1 − m of edu implied by the published EM weights: {implied}."
    return (
        f"{blocks.n_candidates} of {census.pairs.n_pairs:,} pairs above w0 = 0, in "
        f"{blocks.n_blocks} post-hoc blocks.\n"
        f"Modes at θ = {THETA:g} (log posterior): {modes}.\n"
        f"θ upward: {ways[0]}.\nθ downward: {ways[1]}.{stopped}"
    )


def _steps(thetas: Floats, modes: tuple[Mode, ...]) -> list[str]:
    """Number of links at each change along θ."""
    if modes[0].theta != thetas[0]:
        thetas = thetas[::-1]
    counts = [mode.n_links for mode in modes]
    return [
        f"{n} (θ = {theta:.2f})"
        for i, (n, theta) in enumerate(zip(counts, thetas, strict=True))
        if i == 0 or n != counts[i - 1]
    ]


# --- figures ----------------------------------------------------------------------------------


def draw_path(census: Census, ax: Any) -> None:
    """Figure 2(a): links against θ in both directions, coexisting modes, the best one."""
    path = census.path
    for way, name, style in ((path.up, "θ rising", STYLES[0]), (path.down, "θ falling", STYLES[1])):
        counts = [mode.n_links for mode in way]
        line = {"color": style["color"], "linestyle": style["linestyle"]}
        ax.step(path.thetas, counts, where="post", label=name, **line)
    ax.plot(
        path.thetas[::4],
        path.n_links[::4],
        "o",
        mfc="none",
        mec="0.35",
        label="higher mode of both",
    )
    ax.set(xlabel="penalty θ (nats per link)", ylabel="links", ylim=(-1, None))
    ax.set_title("Links by penalty")
    ax.legend()


def _agreement(census: Census) -> tuple[list[str], Ints]:
    """What the candidates agree on, in words, and the index of each candidate's words."""
    levels, index = np.unique(
        census.posterior.blocks.candidates.levels, axis=0, return_inverse=True
    )
    names = [f.name for f in census.pairs.fields]
    words = [" + ".join(n for n, x in zip(names, row, strict=True) if x == 2) for row in levels]
    return words, index


def draw_sensitivity(census: Census, ax: Any) -> None:
    """Figure 2(d): each candidate's link probability against θ, by what it agrees on."""
    p = census.sensitivity.probability
    words, index = _agreement(census)
    for k, style in zip(reversed(range(len(words))), STYLES, strict=False):
        line = {"color": style["color"], "linestyle": style["linestyle"], "linewidth": 0.9}
        lines = ax.plot(SENSITIVITY, p[:, index == k], alpha=0.8, **line)
        lines[0].set_label(f"agree on {words[k]}")
    ax.axhline(0.5, color="0.7", linewidth=0.6)
    ax.set(xlabel="penalty θ in the prior (nats per link)", ylabel="link probability")
    ax.set(ylim=(0, 1.32), yticks=np.linspace(0, 1, 6))
    ax.set_title("Candidates' probabilities by penalty")
    ax.legend(loc="upper right", fontsize=8)


def draw_posterior(census: Census, ax: Any) -> None:
    """Figure 2(b): link probability of each candidate, blocks dashed, the point estimate ringed."""
    post = census.posterior
    blocks, c = post.blocks, post.blocks.candidates
    row, column = (_in_block_order(rows, blocks.block) for rows in (c.a, c.b))
    x, y = column[c.b], row[c.a]
    ax.scatter(x, y, c=post.probability, cmap="Greys", vmin=0, vmax=1, marker="s", s=26,
               edgecolors="0.4", linewidths=0.4, zorder=2)  # fmt: skip
    fit = census.largest_mode.linked
    known = np.isin(fit.a, c.a) & np.isin(fit.b, c.b)
    ring = {"mfc": "none", "mec": STYLES[1]["color"], "mew": 1.2, "ms": 9, "zorder": 3}
    ax.plot(column[fit.b[known]], row[fit.a[known]], "o",
            label=f"penalized likelihood, {len(fit)} links", **ring)  # fmt: skip
    for k in range(blocks.n_blocks):
        at = blocks.block == k
        left, right, low, high = x[at].min(), x[at].max(), y[at].min(), y[at].max()
        box = ([left, right, right, left, left], [low, low, high, high, low])
        grow = np.array([-0.6, 0.6, 0.6, -0.6, -0.6]), np.array([-0.6, -0.6, 0.6, 0.6, -0.6])
        ax.plot(box[0] + grow[0], box[1] + grow[1], "--", color="0.5", linewidth=0.6, zorder=1)
    ax.figure.colorbar(ax.collections[0], ax=ax, label="link probability", shrink=0.8)
    ax.invert_yaxis()
    ax.set(xlabel="record of B, in order of block", ylabel="record of A, in order of block")
    ax.set_title(f"Posterior at θ = {THETA:g}, post-hoc blocks dashed")
    ax.legend(loc="upper right", fontsize=8)


def _in_block_order(rows: Any, block: Ints) -> Ints:
    """Position of each record when records are listed block by block, −1 for those in none."""
    position = np.full(int(rows.max()) + 1, -1)
    order = list(dict.fromkeys(rows[np.lexsort((rows, block))].tolist()))
    position[order] = np.arange(len(order))
    return position


def point_estimates(census: Census) -> dict[str, set[tuple[int, int]]]:
    """Pairs linked by each method."""
    post = census.posterior
    bayes = post.blocks.candidates.take(post.estimate().links)
    linked = {
        f"EM + assignment, w > {THETA:g}": census.em_links.linked,
        f"penalized likelihood, {census.largest_mode.n_links} links": census.largest_mode.linked,
        f"its best mode, {census.fit.n_links} links": census.fit.linked,
        "Bayes estimate, p > ½": bayes,
    }
    return {k: set(zip(v.a.tolist(), v.b.tolist(), strict=True)) for k, v in linked.items()}


def draw_links(census: Census, ax: Any) -> None:
    """Figure 3: which method finds which link."""
    found = point_estimates(census)
    pairs = sorted(
        set().union(*found.values()), key=lambda p: ([p not in s for s in found.values()], p)
    )
    ids = callers_table(census.pairs, _rows(census, pairs), {}).to_pydict()
    for k, (linked, style) in enumerate(zip(found.values(), STYLES, strict=False)):
        at = [i for i, pair in enumerate(pairs) if pair in linked]
        ax.plot(
            at, [k] * len(at), linestyle="none", color=style["color"], marker=style["marker"], ms=6
        )
    labels = [f"{a}–{b}" for a, b in zip(ids["id_a"], ids["id_b"], strict=True)]
    ax.set_xticks(range(len(pairs)), labels, rotation=90, fontsize=7)
    ax.set_yticks(range(len(found)), [f"{name} ({len(s)})" for name, s in found.items()])
    ax.set(ylim=(len(found) - 0.5, -0.5), xlim=(-1, len(pairs)), xlabel="pair of records (A–B)")
    ax.grid(axis="x", color="0.9", linewidth=0.6)
    ax.set_title("Which method finds which link; in brackets how many")


def _rows(census: Census, pairs: list[tuple[int, int]]) -> Any:
    """The pairs as the engine's own, with their levels."""
    everything = census.pairs.pairs_above(np.zeros((len(census.pairs.fields), 3)), -1.0)
    at = {
        p: i for i, p in enumerate(zip(everything.a.tolist(), everything.b.tolist(), strict=True))
    }
    return everything.take(np.array([at[p] for p in pairs]))


def draw_size(census: Census, ax: Any) -> None:
    """The population size: its posterior, and the point estimate at each mode of the path."""
    draws = census.posterior.population_size().draws.ravel()
    sizes = np.arange(draws.min(), np.quantile(draws, 0.999) + 1)
    ax.bar(sizes, [np.mean(draws == n) for n in sizes], width=0.8, color="0.75")
    top = ax.get_ylim()[1]
    for n in census.path_links:
        at = float(lincoln_petersen(census.pairs.n_a, census.pairs.n_b, n))
        ax.plot([at, at], [0, top], color=STYLES[1]["color"], linestyle="--")
        ax.text(at, top * 1.01, n, ha="center", fontsize=8)
    ax.set(xlabel="population size N (people)", ylabel="posterior probability", ylim=(0, top * 1.1))
    ax.set_title("Population size; dashed: Lincoln–Petersen at L links")


def run(output: Path, progress: Callable[[str], None] = lambda message: None) -> str:
    """Tables as text, figures in `output`."""
    progress("Italian census: fitting and sampling")
    files = data.census()
    census = compute(files)
    progress("Italian census: drawing")
    with figure(output / "census_path.png", files.source, (9, 3.4), 1, 2) as axes:
        draw_path(census, axes[0])
        draw_sensitivity(census, axes[1])
    with figure(output / "census_posterior.png", files.source, (9, 4.2), 1, 2) as axes:
        draw_posterior(census, axes[0])
        draw_size(census, axes[1])
    with figure(output / "census_links.png", files.source, (9, 2.6)) as ax:
        draw_links(census, ax)
    parts = [f"Data: {files.source}.", weights_table(census), summary(census), size_table(census)]
    return "\n\n".join(parts)
