"""How much hangs on the prior: links under a range of priors on C (Figure 2d).

A prior on C depends on L, the number of links, alone. So draws under p serve another prior p' with
weights p'(L) / p(L), as long as both posteriors favour much the same L: within about 1.5 / sd(L)
in θ. Further away the sampler runs again on the same candidate pairs. Weighted draws say nothing
of a mode that the run never visited; a new run has the chance to find it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, field
from functools import cache, partial
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import maximum_bipartite_matching

from bayeslink.errors import SettingsError
from bayeslink.linkage.posthoc import Blocks
from bayeslink.linkage.priors import LinkCountPrior, LinkPrior, Penalty
from bayeslink.notebook_html import Shown
from bayeslink.pairs.pair_tables import callers_table, row_table
from bayeslink.pairs.source import Floats, Ints
from bayeslink.sampling.diagnostics import ess_bulk
from bayeslink.sampling.posterior import Posterior
from bayeslink.sampling.sampler import sample

# Weighted draws must be worth this many independent ones: the Monte Carlo error of a mean is then
# a twentieth of the posterior's sd,
LEAST_ESS = 400
# and this share of the run they come from. For a normal L the share is exp(−s²), s the sd of the
# log weights; at a tenth, the run's last draws reach the outer 2 % of the new posterior.
LEAST_SHARE = 0.1
# No more of the weight than this may lie on the smallest or the largest L drawn, unless it is the
# last possible one: the new posterior would go on where the draws end.
MOST_AT_END = 0.01
_BATCHES = 20  # per chain, for Monte Carlo errors


@dataclass(frozen=True, slots=True)
class UnderPrior:
    """The posterior under one prior, and what that prior implied for L."""

    prior: LinkCountPrior
    n_links: float  # posterior mean of L
    interval: tuple[int, int]  # its equal-tailed 95 % interval
    ess: float  # independent draws of L that were to be had; nan if L never changed
    probability: Floats = field(repr=False)  # of each candidate of blocks.candidates
    error: Floats = field(repr=False)  # its Monte Carlo standard error
    how: str  # "draws" (the given run), "reweighted" or "new run"
    reason: str
    theta: float  # the cost of one more link at the mean of L
    prior_n_links: float  # prior mean of L
    prior_interval: tuple[int, int]

    @property
    def label(self) -> str:
        return _label(self.prior)


@dataclass(frozen=True, slots=True)
class Sensitivity(Shown):
    """Posteriors of the same candidate pairs under several priors, in the order given."""

    blocks: Blocks = field(repr=False)
    results: tuple[UnderPrior, ...]
    notes: tuple[str, ...]  # what to beware of

    @property
    def probability(self) -> Floats:
        """Link probabilities, prior × candidate."""
        return np.array([r.probability for r in self.results])

    def table(self) -> Any:
        """One row a prior: L before and after the data, and how it was obtained."""
        rows = [
            {
                "prior": r.label,
                "theta": r.theta,
                "prior_n_links": r.prior_n_links,
                "prior_low": r.prior_interval[0],
                "prior_high": r.prior_interval[1],
                "n_links": r.n_links,
                "low": r.interval[0],
                "high": r.interval[1],
                "ess": r.ess,
                "how": r.how,
                "reason": r.reason,
            }
            for r in self.results
        ]
        return row_table(rows, self.blocks.pairs.kind)

    def pairs_table(self, varying: float = 0.1) -> Any:
        """One row a pair and prior, for plots; the pairs that vary most come first.

        Listed are pairs whose link probability varies by at least `varying` over the priors, or
        lies on both sides of ½; with 0, all candidates.
        """
        p, errors = self.probability, np.array([r.error for r in self.results])
        low, high = p.min(axis=0), p.max(axis=0)
        order = np.argsort(low - high, kind="stable")
        listed = order[((high - low >= varying) | ((low < 0.5) & (high > 0.5)))[order]]
        columns = {
            "prior": np.tile([r.label for r in self.results], len(listed)),
            "theta": np.tile([r.theta for r in self.results], len(listed)),
            "link_probability": p[:, listed].T.ravel(),
            "mc_error": errors[:, listed].T.ravel(),
        }
        pairs = self.blocks.candidates.take(np.repeat(listed, len(self.results)))
        return callers_table(self.blocks.pairs, pairs, columns)


def sensitivity(
    posterior: Posterior,
    priors: Sequence[LinkCountPrior] = (),
    *,
    thetas: Iterable[float] = (),
    draws: int | None = None,
    tune: int | None = None,
    chains: int | None = None,
    seed: int | None = None,
    threads: int | None = None,
    progress: Callable[[str], None] = lambda message: None,
) -> Sensitivity:
    """Number of links and link probabilities under other priors on C.

    Where the draws at hand are adequate they are reweighted, otherwise the sampler runs again, and
    that run may serve further priors. `how` and `reason` of each result say which.

    Parameters
    ----------
    posterior
        What `sample` returned, or a `Run`.
    priors, thetas
        `Penalty(theta)` or `Overlap(alpha, beta)` each; a theta stands for its `Penalty`.
    draws, tune, chains, seed, threads
        Of new runs, as for `sample`; those of the given run unless said.
    """
    posterior = getattr(posterior, "posterior", posterior)  # of a Run, which is of a room above
    chosen = _chosen(posterior, priors, thetas)
    blocks = posterior.blocks
    settings: dict[str, Any] = {
        "restricted": posterior.restricted,
        "draws": posterior.n_links.shape[1] if draws is None else draws,
        "tune": posterior.tune if tune is None else tune,
        "chains": posterior.n_links.shape[0] if chains is None else chains,
        "seed": posterior.seed if seed is None else seed,
        "threads": threads,
    }
    law = cache(lambda prior: prior.on(blocks.pairs.scope))
    possible = _possible_links(posterior)
    n_shown = blocks.n_candidates
    runs = [_Run.of(posterior, n_shown)]
    results: dict[LinkCountPrior, UnderPrior] = {}

    def distance(prior: LinkCountPrior) -> float:
        at = round(posterior.n_links.mean())
        return float(abs(law(prior).cost(at) - law(posterior.prior).cost(at)))

    for prior in sorted(chosen, key=distance):  # outwards: new runs serve their neighbours
        if prior == posterior.prior:
            results[prior] = _as_drawn(posterior, law(prior), "draws", "the given run", n_shown)
            continue
        offers = [(run, run.weights(law(prior), law(run.posterior.prior))) for run in runs]
        run, w = max(offers, key=lambda offer: offer[0].worth(offer[1]))
        adequate, reason = run.judge(w, possible)
        if adequate:
            results[prior] = run.reweighted(w, prior, law(prior), reason)
        else:
            told = partial(_tell, progress, prior)
            new = sample(blocks, prior=prior, progress=told, **settings)
            runs.append(_Run.of(new, n_shown))
            results[prior] = _as_drawn(new, law(prior), "new run", reason, n_shown)
    ordered = tuple(results[prior] for prior in chosen)
    notes = _notes(blocks, posterior.restricted, runs, ordered)
    return Sensitivity(blocks, ordered, tuple(notes))


def _as_drawn(run: Posterior, law: LinkPrior, how: str, reason: str, n_shown: int) -> UnderPrior:
    mean, ess = float(run.n_links.mean()), ess_bulk(run.n_links)
    numbers = mean, run.interval(), ess, run.probability[:n_shown], run.error[:n_shown]
    return UnderPrior(run.prior, *numbers, how, reason, *_implied(run.prior, law, mean))


@dataclass(frozen=True, slots=True)
class _Run:
    """A run whose kept draws may be weighted."""

    posterior: Posterior
    links: Ints  # chain × kept draw
    with_doubt: Ints  # the same as the interval has them
    ess: float
    n_shown: int  # pairs that are told of: the given run's

    @classmethod
    def of(cls, posterior: Posterior, n_shown: int) -> _Run:
        drawn = np.array([[len(state) for state in chain] for chain in posterior.kept], np.int64)
        links = drawn + len(posterior.blocks.known)
        n_draws, every = posterior.n_links.shape[1], posterior.kept_every
        at = np.minimum((np.arange(links.shape[1]) + 1) * every, n_draws) - 1
        doubt = posterior.identified.draws[:, at]
        return cls(posterior, links, doubt, float(np.nan_to_num(ess_bulk(links))), n_shown)

    def weights(self, law: LinkPrior, own: LinkPrior) -> Floats:
        """p'(L) / p(L) of each kept draw, adding up to 1."""
        values, at = np.unique(self.links, return_inverse=True)
        log_ratio = law.log_prior(values) - own.log_prior(values)
        w = np.exp(log_ratio - log_ratio.max())[at].reshape(self.links.shape)
        return np.asarray(w / w.sum())

    def worth(self, w: Floats) -> float:
        """Independent draws that the weighted ones are worth: Kish's share of the run's own."""
        return self.ess / (w.size * float((w**2).sum()))

    def judge(self, w: Floats, possible: tuple[int, int]) -> tuple[bool, str]:
        """Are the weighted draws adequate? And why, in words."""
        draws = f"the draws under {_label(self.posterior.prior)}, weighted by their L,"
        worth = f"are worth {self.worth(w):,.0f} independent ones, from {self.ess:,.0f}"
        least = max(LEAST_ESS, LEAST_SHARE * self.ess)
        if self.worth(w) < least:
            return False, f"{draws} {worth}: fewer than {least:,.0f}"
        for end, last in zip((self.links.min(), self.links.max()), possible, strict=True):
            share = w[self.links == end].sum()
            if end != last and share > MOST_AT_END:
                return False, f"{draws} have {share:.1%} of the weight at their last L, {end:,}"
        return True, f"{draws} {worth}"

    def reweighted(
        self, w: Floats, prior: LinkCountPrior, law: LinkPrior, reason: str
    ) -> UnderPrior:
        """Weighted means; the errors of link probabilities from the means of batches."""
        flat, links, n_kept = w.ravel(), self.links.ravel(), w.shape[1]
        batch = np.arange(n_kept) * min(_BATCHES, n_kept) // n_kept
        batch = (batch + np.arange(len(w))[:, None] * (batch[-1] + 1)).ravel()
        n = int(batch[-1]) + 1
        to_batch = sparse.csr_array((flat, (batch, np.arange(len(flat)))))
        linked, weight = to_batch @ self._states(), np.bincount(batch, flat)
        p = linked.sum(axis=0)
        # Σ (linked − p weight)² over batches, without a dense array of batches × candidates
        squares = linked.power(2).sum(axis=0) - 2 * p * (weight @ linked) + p**2 * (weight @ weight)
        error = np.sqrt(np.maximum(squares, 0) * n / max(1, n - 1))
        error = np.maximum(error, 1 / self.worth(w))  # linked in none of n draws: 0 ± 1/n
        mean, counts = float(flat @ links), np.bincount(self.with_doubt.ravel(), flat)
        interval = _interval(counts.astype(np.float64))
        numbers = mean, interval, self.worth(w), np.clip(p, 0.0, 1.0), error
        return UnderPrior(prior, *numbers, "reweighted", reason, *_implied(prior, law, mean))

    def _states(self) -> Any:
        """Kept draw × candidate, sparse: 1 where linked."""
        kept = [state for chain in self.posterior.kept for state in chain]
        entries, ends = np.concatenate(kept), np.cumsum([len(state) for state in kept])
        shape = len(kept), self.posterior.blocks.n_candidates
        states = sparse.csr_array((np.ones(len(entries)), entries, np.append(0, ends)), shape)
        return states[:, : self.n_shown]


def _chosen(
    posterior: Posterior, priors: Sequence[LinkCountPrior], thetas: Iterable[float]
) -> list[LinkCountPrior]:
    """The priors asked for, each once."""
    if not isinstance(posterior, Posterior):
        raise SettingsError(
            f"sensitivity starts from draws, got {type(posterior).__name__}. "
            "Give it a run with draws, or what `sample` returns."
        )
    chosen = [*map(Penalty, np.array([*thetas]).tolist()), *priors]
    if not chosen:
        raise SettingsError(
            "no priors to compare. Give thetas=[0, 2, 4], or priors=[Overlap(1, 1), Penalty(2)]."
        )
    for prior in chosen:
        if not isinstance(prior, LinkCountPrior):
            raise SettingsError(
                f"{prior!r} is not a prior on the links. Allowed are Penalty(theta) and "
                "Overlap(alpha, beta); give numbers as thetas=[…]."
            )
    return list(dict.fromkeys(chosen))


def _possible_links(posterior: Posterior) -> tuple[int, int]:
    """The fewest and the most links there can be."""
    blocks = posterior.blocks
    c, pairs, known = blocks.candidates, blocks.pairs, len(blocks.known)
    if not posterior.restricted:
        return known, pairs.scope.max_links
    graph = sparse.csr_array((np.ones(len(c), bool), (c.a, c.b)), (pairs.n_a, pairs.n_b))
    return known, known + int((maximum_bipartite_matching(graph) >= 0).sum())


def _implied(
    prior: LinkCountPrior, law: LinkPrior, n_links: float
) -> tuple[float, float, tuple[int, int]]:
    """The cost of a link at n_links, and the prior's mean and interval of L."""
    theta = prior.theta if isinstance(prior, Penalty) else law.cost(round(n_links))
    p = law.of_link_count()
    return theta, float(p @ np.arange(len(p))), _interval(p)


def _interval(p: Floats) -> tuple[int, int]:
    """Equal-tailed 95 % interval of a distribution over 0, 1, …"""
    low, high = np.searchsorted(np.cumsum(p), [0.025, 0.975])
    return int(low), min(int(high), len(p) - 1)


def _notes(
    blocks: Blocks, restricted: bool, runs: list[_Run], results: Sequence[UnderPrior]
) -> Iterator[str]:
    for run in runs:
        if warning := run.posterior.warning():
            yield f"{_label(run.posterior.prior)}: {warning}"
    liberal = [r for r in results if r.theta < blocks.theta - 1]
    if restricted and liberal and blocks.w0 > -math.inf:
        most = min(liberal, key=lambda r: r.theta)
        yield (
            f"w0 = {blocks.w0:.3g} was chosen where a link cost {blocks.theta:.3g}; under "
            f"{', '.join(r.label for r in liberal)} it costs less. Pairs with a weight up to w0 "
            f"link under no prior; under {most.label} the odds of those just below it would be "
            f"{math.exp(blocks.w0 - most.theta):.2g}. If that matters, sample with a lower w0."
        )


def _tell(progress: Callable[[str], None], prior: LinkCountPrior, message: str) -> None:
    progress(f"{_label(prior)}: {message}")


def _label(prior: LinkCountPrior) -> str:
    return f"{type(prior).__name__}({', '.join(f'{value:g}' for value in astuple(prior))})"
