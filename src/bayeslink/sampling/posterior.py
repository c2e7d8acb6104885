"""What the sampler brought back: draws, link probabilities, diagnostics, decisions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayeslink.distinct import distinct
from bayeslink.errors import SettingsError
from bayeslink.linkage import decisions
from bayeslink.linkage.posthoc import Blocks, with_others
from bayeslink.linkage.priors import LinkCountPrior
from bayeslink.model.error_counts import ErrorLaw, mean_law
from bayeslink.model.structure import Dependent
from bayeslink.model.weights import Parameters
from bayeslink.notebook_html import Shown
from bayeslink.pairs.pair_tables import block_column, callers_table, for_caller, pair_table
from bayeslink.pairs.source import Floats, Ints, Pairs
from bayeslink.sampling.diagnostics import Diagnostics, summarize, verdict
from bayeslink.sampling.identified import (
    COUNTED,
    Identified,
    Parts,
    factors,
    identified,
    parts_of,
    standing_out,
    with_doubt,
)
from bayeslink.sampling.population import PopulationSize, population_size
from bayeslink.sampling.weight_bands import Band, misfit, weight_bands
from bayeslink.sampling.within_files import WithinFiles

LEAST = 0.001  # probability from which a pair that is no candidate is told of in any case


@dataclass(frozen=True, slots=True)
class Draws:
    """One chain."""

    n_links: Ints
    log_posterior: Floats
    m: Floats  # draw × field × level
    u: Floats
    probability: Floats  # of each edge, averaged over draws
    batch_squares: Floats  # sum of squares of the batch means
    n_batches: int
    kept: Ints  # links of the kept draws: edges, low pairs and all others, numbered through
    n_kept: Ints  # of each kept draw
    low: NDArray[np.int32]  # of each low pair: draws it was linked in, how often it came to be
    laws: tuple[Floats, Floats, Floats]  # of which fields are wrong: h, r and levels, in logs
    far: Ints  # of each link of another pair: row of A, row of B, pattern, draws
    far_levels: NDArray[np.uint8]  # of the patterns

    def no_edges(self, low: Pairs, n_b: int) -> tuple[Ints, Ints]:
        """Where in `kept` are links of no edges, and the numbers of their pairs."""
        at = np.flatnonzero(self.kept >= len(self.probability))
        number = self.kept[at] - len(self.probability) - len(low)
        is_low = number < 0
        number[is_low] = low.take(number[is_low] + len(low)).numbered(n_b)
        return at, number


@dataclass(frozen=True, slots=True)
class _Others:
    """Pairs that are no candidates and were linked now and then."""

    pairs: Pairs
    number: Ints  # of each pair, rising
    probability: Floats
    error: Floats
    rest: float  # links expected among those left out


def _others(blocks: Blocks, results: Sequence[Draws], low: Pairs) -> _Others:
    """Pairs linked in a kept draw, or with some probability.

    A pair that is linked now and then, for a few draws each time, has a Monte Carlo error of about
    its probability times √(2 / visits).
    """
    n_b, n = blocks.pairs.n_b, sum(len(r.n_links) for r in results)
    tally = np.sum([r.low for r in results], axis=0)
    at = np.flatnonzero(tally[:, 0])
    draws = [tally[at, 0], *(r.far[:, 3] for r in results)]
    visits = [tally[at, 1], *(np.ones(len(r.far)) for r in results)]
    found = low.take(at)
    for r in results:
        a, b, pattern, _ = r.far.T
        levels = r.far_levels[pattern]
        found = found.with_more(Pairs(a.astype(np.int32), b.astype(np.int32), levels))
    number, first, which = np.unique(found.numbered(n_b), return_index=True, return_inverse=True)
    probability = np.bincount(which, np.concatenate(draws), len(number)) / n
    n_visits = np.bincount(which, np.concatenate(visits), len(number))
    error = probability * np.sqrt(2 / np.maximum(1, n_visits))
    kept = distinct(np.concatenate([r.no_edges(low, n_b)[1] for r in results]))
    keep = (probability >= LEAST) | np.isin(number, kept, assume_unique=True)
    pairs = found.take(first[keep])
    rest = float(probability[~keep].sum())
    return _Others(pairs, number[keep], probability[keep], error[keep], rest)


@dataclass(frozen=True, slots=True)
class Posterior(Shown):
    """Posterior of links, m and u, over all pairs in scope.

    `blocks.candidates` holds the candidate pairs and all others that were linked in a kept draw or
    with a probability of at least `LEAST`; what is left is in `n_links`, and together in `rest`.
    """

    blocks: Blocks = field(repr=False)
    prior: LinkCountPrior
    n_links: Ints = field(repr=False)  # chain × draw
    log_posterior: Floats = field(repr=False)
    m: Floats = field(repr=False)  # chain × draw × field × level
    u: Floats = field(repr=False)
    law: ErrorLaw | None = field(repr=False)  # of which fields are wrong; None: independently
    probability: Floats = field(repr=False)  # of each candidate of blocks.candidates
    error: Floats = field(repr=False)  # its Monte Carlo standard error
    kept: tuple[tuple[NDArray[np.int32], ...], ...] = field(repr=False)  # candidates, by chain
    kept_every: int
    restricted: bool  # to the candidate pairs
    rest: float  # links expected among pairs that are not in `blocks.candidates`
    bands: tuple[Band, ...] = field(repr=False)  # pairs by weight, there and expected
    kinds: Mapping[str, int]  # blocks drawn singly, jointly, by moves
    seed: int
    tune: int
    seconds: float
    within: WithinFiles | None = None  # pairs within the files, as a check

    @classmethod
    def of(
        cls,
        blocks: Blocks,
        prior: LinkCountPrior,
        results: Sequence[Draws],
        *,
        candidate_of_edge: Ints,
        low: Pairs,
        restricted: bool,
        kept_every: int,
        seed: int,
        tune: int,
        seconds: float,
        kinds: Mapping[str, int],
    ) -> Posterior:
        others = _others(blocks, results, low)
        position = blocks.n_candidates + np.arange(len(others.number))
        mean = np.mean([r.probability for r in results], axis=0)
        n = sum(r.n_batches for r in results)
        squares = np.sum([r.batch_squares for r in results], axis=0) / n
        spread = np.maximum(squares - mean**2, 0) / max(1, n - 1)
        probability, error = np.empty((2, len(mean)))
        probability[candidate_of_edge], error[candidate_of_edge] = mean, np.sqrt(spread)

        candidate = np.append(candidate_of_edge, -1).astype(np.int32)  # −1: of another pair

        def positions(r: Draws) -> tuple[NDArray[np.int32], ...]:
            """Candidates linked in each kept draw."""
            at, number = r.no_edges(low, blocks.pairs.n_b)
            out = candidate.take(r.kept, mode="clip")
            out[at] = position[np.searchsorted(others.number, number)]
            return tuple(np.split(out, np.cumsum(r.n_kept)[:-1]))

        made = cls(
            blocks=with_others(blocks, others.pairs),
            prior=prior,
            n_links=np.array([r.n_links for r in results]),
            log_posterior=np.array([r.log_posterior for r in results]),
            m=np.array([r.m for r in results]),
            u=np.array([r.u for r in results]),
            law=mean_law(
                blocks.structure.errors,
                *(np.concatenate(parts) for parts in zip(*(r.laws for r in results), strict=True)),
            ),
            probability=np.clip(np.append(probability, others.probability), 0.0, 1.0),
            error=np.append(error, others.error),
            kept=tuple(positions(r) for r in results),
            kept_every=kept_every,
            restricted=restricted,
            rest=others.rest,
            bands=(),
            kinds=kinds,
            seed=seed,
            tune=tune,
            seconds=seconds,
        )
        return replace(made, bands=weight_bands(blocks, made))

    # --- summaries ---------------------------------------------------------------------------

    @property
    def parameters(self) -> Parameters:
        """Posterior means of m and u, and of what weights depend on besides."""
        m, u = self.m.mean(axis=(0, 1)), self.u.mean(axis=(0, 1))
        used = self.blocks.parameters.used
        if self.law is None:
            return Parameters(m, u, used)
        return Dependent(m, u, used, self.law, self.blocks.structure.tree)

    @property
    def identified(self) -> Identified:
        """L in parts, and draws of it that allow for what may be wrong with each.

        Of restricted sampling, the draws as they are: there is nothing that it only counts.
        """
        known, mean = self.blocks.known, float(self.n_links.mean())
        pairs, most = self.blocks.pairs, self.blocks.pairs.scope.max_links
        if self.restricted:
            return Identified(Parts(mean, 0.0, 0.0, 0.0), most, self.n_links)
        weights = self.parameters.weight_of(self.blocks.candidates.levels)
        parts = parts_of(
            self.blocks.candidates,
            self.probability,
            weights,
            theta=self.theta,
            mean=mean,
            known=len(known),
            records=(pairs.n_a - len(known), pairs.n_b - len(known)),
        )
        found = misfit(self.bands, self.blocks.theta)
        if self.within is not None and not self.within.holds:
            parts = parts.unsupported(self.within.supported, len(known))
        return identified(
            self.n_links, parts, misfit=found, known=len(known), most=most, seed=self.seed
        )

    def interval(self, level: float = 0.95) -> tuple[int, int]:
        """Equal-tailed interval of the number of links; bounds where that is not identified.

        It allows for more than the draws: see `sampling.identified`.
        """
        if not 0 < level < 1:
            raise SettingsError(
                f"level must be between 0 and 1, got {level!r}. Write 95 % as 0.95."
            )
        return self.identified.interval(level)

    @property
    def theta(self) -> float:
        """What one more link costs at the mean number of links."""
        return self.prior.on(self.blocks.pairs.scope).cost(round(float(self.n_links.mean())))

    def link_probabilities(self) -> Any:
        """Every candidate pair with its posterior link probability and Monte Carlo error."""
        return for_caller(self.blocks.pairs, self.candidate_table())

    def candidate_table(self) -> Any:
        """The same as an Arrow table, most probable first."""
        order = self.by_probability()
        candidates = self.blocks.candidates.take(order)
        w = self.parameters.weight_of(candidates.levels)
        columns = {
            "link_probability": self.probability[order],
            "mc_error": self.error[order],
            "match_weight": w / math.log(2),
            "block": block_column(self.blocks.block[order]),
        }
        return pair_table(self.blocks.pairs, candidates, columns)

    def by_probability(self) -> Ints:
        """Positions of the candidates, most probable first."""
        return np.argsort(-self.probability, kind="stable")

    def diagnostics(self, interval: float = 0.95) -> Diagnostics:
        """R-hat, effective sample sizes and Monte Carlo errors of L, log posterior, m and u."""
        return summarize(self.quantities(), interval=interval)

    def warning(self) -> str | None:
        """What is wrong with the draws, in words; None if nothing is."""
        return verdict(self.diagnostics())

    def quantities(self) -> dict[str, NDArray[Any]]:
        """Everything that is followed over draws, each chain × draw."""
        out: dict[str, NDArray[Any]] = {"links": self.n_links, "log_posterior": self.log_posterior}
        for name, values in (("m", self.m), ("u", self.u)):
            for j, f in enumerate(self.blocks.pairs.fields):
                for h in range(1, f.n_levels + 1):
                    out[f"{name}[{f.name}, {h}]"] = values[:, :, j, h]
        return out

    def to_arviz(self) -> Any:
        """An ArviZ InferenceData of L, log posterior, m and u (needs the arviz extra)."""
        try:
            import arviz
        except ImportError:
            raise SettingsError(
                "to_arviz needs ArviZ. Install it with pip install 'bayeslink[arviz]'."
            ) from None
        return arviz.from_dict(posterior=dict(self.quantities()))

    # --- decisions ---------------------------------------------------------------------------

    def estimate(
        self,
        loss: decisions.Loss | None = None,
        *,
        method: str = "loss",
        false_link_rate: float = 0.05,
    ) -> decisions.Decision:
        """The Bayes estimate of C: which candidates to link, besides the known links.

        Parameters
        ----------
        loss
            Costs of errors; balanced unless given, under which pairs above ½ are linked.
        method
            "loss"; "f_score" for the set with the largest 2 Σp / (links + E[L]), an F-score of
            expected numbers, which is close to the expected F-score but not it; "largest" for the
            largest set whose expected share of false links is at most `false_link_rate`.

        Notes
        -----
        Copies, records of one file that are equal in all that is compared, count as one: a link is
        right if it is to the right record or to a copy of it. Which of them is linked hangs on a
        hash of their ids, as other ties do.
        """
        # Known links count towards the F-score and the share of false links, with probability 1.
        pairs, known = self.blocks.pairs, self.blocks.known
        c = self.blocks.candidates.with_more(known)
        p = np.append(self.probability, np.ones(len(known)))
        copies = pairs.copies
        if copies is not None:
            p = decisions.as_one(c.a, c.b, p, copies)
        given = (c.a, c.b, p, pairs.n_a, pairs.n_b, pairs.tie_keys)
        if method == "loss":
            decision = decisions.bayes_estimate(
                *given, loss=loss or decisions.Loss(), copies=copies
            )
        elif method == "f_score":
            expected = float(self.n_links.mean())
            decision = decisions.f_score_estimate(*given, expected_links=expected)
        elif method == "largest":
            decision = decisions.largest_set(*given, false_link_rate=false_link_rate)
        else:
            raise SettingsError(
                f"unknown method {method!r}. Allowed: 'loss', 'f_score', 'largest'."
            )
        return replace(decision, links=decision.links[decision.links < self.blocks.n_candidates])

    # --- downstream --------------------------------------------------------------------------

    def population_size(self, *, seed: int | None = None, **options: Any) -> PopulationSize:
        """Posterior of the size of the population that both files were drawn from."""
        pairs, found = self.blocks.pairs, self.identified
        draws = found.draws.ravel()
        if found.parts.by_chance:  # bounds need a link or two, as far as every draw has them
            draws = np.maximum(draws, min(2, int(self.n_links.min())))
        size = population_size(
            pairs.n_a,
            pairs.n_b,
            draws,
            seed=self.seed if seed is None else seed,
            **options,
        )
        return replace(size, identified=found.holds)

    def linked_datasets(self, k: int = 20) -> list[Any]:
        """k draws of the links, evenly spread over the chains, as tables of id_a and id_b.

        Analyse each as if it were the truth and combine the results with `pool`.
        """
        pairs = self.blocks.pairs
        return [callers_table(pairs, drawn, {}) for drawn, _ in self.drawn_links(k)]

    def drawn_links(self, k: int = 20) -> list[tuple[Pairs, Floats]]:
        """The same as rows of A and B, by row of A, each with its link probability."""
        states = [state for chain in self.kept for state in chain]
        if not (isinstance(k, Integral) and 1 <= k <= len(states)):
            raise SettingsError(
                f"k must be a whole number from 1 to the {len(states):,} draws kept, got {k!r}."
            )
        chosen = np.linspace(0, len(states) - 1, k).round().astype(int)
        drawn = [states[i] for i in chosen]
        return [self._linked(state) for state in self._with_doubt(drawn, states)]

    def _with_doubt(
        self, drawn: list[NDArray[np.int32]], states: list[NDArray[np.int32]]
    ) -> list[NDArray[np.int32]]:
        """Draws with more or fewer of the links that are only counted, as L with its doubt has."""
        found = self.identified
        if not found.parts.counted:
            return drawn
        weights = self.parameters.weight_of(self.blocks.candidates.levels)
        pointed = standing_out(self.probability, weights, self.theta)
        others = distinct(np.concatenate([state[~pointed[state]] for state in states]))
        by = factors((len(drawn),), COUNTED, self.seed, 0)
        if found.parts.mostly_counted:
            by = np.where(np.arange(len(drawn)) % 2, np.inf, 0.0)
        pairs, (keys_a, keys_b) = self.blocks.candidates, self.blocks.pairs.tie_keys
        place = np.argsort(np.lexsort((keys_b[pairs.b], keys_a[pairs.a])))
        return with_doubt(drawn, by, pairs, pointed, others, place, self.seed)

    def _linked(self, candidates: NDArray[np.int32]) -> tuple[Pairs, Floats]:
        known = self.blocks.known
        joined = known.with_more(self.blocks.candidates.take(candidates))
        probability = np.append(np.ones(len(known)), self.probability[candidates])
        order = np.argsort(joined.a)
        return joined.take(order), probability[order]
