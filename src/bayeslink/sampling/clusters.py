"""What the sampler of forests brought back: the number of people, pairs, clusters, diagnostics."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayeslink.errors import SettingsError
from bayeslink.linkage.clustering import (
    ClusterDecision,
    ClusterLoss,
    PairProbabilities,
    decide,
    least_loss,
    pairs_together,
    variation_of_information,
)
from bayeslink.linkage.forest import ForestFit
from bayeslink.linkage.partitions import edge_cost
from bayeslink.model.error_counts import ErrorLaw, mean_law
from bayeslink.model.structure import Dependent
from bayeslink.model.weights import Parameters
from bayeslink.notebook_html import Shown
from bayeslink.pairs.pair_tables import for_caller, pair_table
from bayeslink.pairs.source import Floats, Ints, Pairs
from bayeslink.sampling.diagnostics import Diagnostics, summarize, verdict
from bayeslink.sampling.entities import Entities, sets_in_words
from bayeslink.sampling.identified import standing_out
from bayeslink.sampling.people_doubt import Joins, joins_of, with_doubt
from bayeslink.sampling.posterior import LEAST

_COMPARED = 200  # draws against which the variation of information is taken
_PROPOSED = 40  # draws that are candidates for the partition of least variation


@dataclass(frozen=True, slots=True)
class ForestDraws:
    """One chain."""

    n_entities: Ints
    log_posterior: Floats
    rho: Floats
    of_size: Ints  # draw × size; the last counts all beyond
    in_files: Ints  # draw × set of files, as bits
    m: Floats  # draw × field × level
    u: Floats
    laws: tuple[Floats, Floats, Floats]
    kept: NDArray[np.int32]  # draw × row: a row of its cluster, the same for all of it


@dataclass(frozen=True, slots=True)
class ClusterPosterior(Shown):
    """Posterior of the partition of one file into people, of m, u and ρ."""

    fit: ForestFit = field(repr=False)
    entities: Entities  # with the doubt that the draws leave out: `sampling.people_doubt`
    drawn: Entities = field(repr=False)  # as drawn
    joins: Joins = field(repr=False)
    log_posterior: Floats = field(repr=False)  # chain × draw
    rho: Floats = field(repr=False)
    m: Floats = field(repr=False)  # chain × draw × field × level
    u: Floats = field(repr=False)
    law: ErrorLaw | None = field(repr=False)
    kept: NDArray[np.int32] = field(repr=False)  # draw (all chains) × row
    together: PairProbabilities = field(repr=False)
    restricted: bool
    listed: int  # candidate pairs
    kept_every: int
    seed: int
    tune: int
    seconds: float

    @classmethod
    def of(
        cls,
        fit: ForestFit,
        results: Sequence[ForestDraws],
        *,
        restricted: bool,
        listed: int,
        kept_every: int,
        seed: int,
        tune: int,
        seconds: float,
    ) -> ClusterPosterior:
        kept = np.concatenate([r.kept for r in results])
        laws = (np.concatenate(parts) for parts in zip(*(r.laws for r in results), strict=True))
        drawn = Entities(
            np.array([r.n_entities for r in results]),
            np.array([r.of_size for r in results]),
            np.array([r.in_files for r in results]) if fit.pairs.files else None,
            fit.pairs.files.names if fit.pairs.files else (),
        )
        made = cls(
            fit=fit,
            entities=drawn,
            drawn=drawn,
            joins=Joins(fit.pairs.n_a - drawn.mean, 0.0, 0.0),
            log_posterior=np.array([r.log_posterior for r in results]),
            rho=np.array([r.rho for r in results]),
            m=np.array([r.m for r in results]),
            u=np.array([r.u for r in results]),
            law=mean_law(fit.structure.errors, *laws),
            kept=kept,
            together=pairs_together(kept),
            restricted=restricted,
            listed=listed,
            kept_every=kept_every,
            seed=seed,
            tune=tune,
            seconds=seconds,
        )
        return made if restricted else made._with_doubt()

    def _with_doubt(self) -> ClusterPosterior:
        """The same with what the number of people leaves out, as far as it is known."""
        together, files = self.together, self.fit.pairs.files
        levels = self.fit.pairs.levels_of(together.a, together.b)
        theta = edge_cost(self.fit.pairs.n_pairs, round(self.fit.pairs.n_a - self.drawn.mean))
        out = standing_out(together.probability, self.parameters.weight_of(levels), theta)
        cluster = self.estimate().cluster
        joins = joins_of(self._some(_COMPARED), together, out, cluster)
        entities = with_doubt(self.drawn, joins, together, cluster, files, self.seed)
        return replace(self, entities=entities, joins=joins)

    # --- summaries ---------------------------------------------------------------------------

    @property
    def parameters(self) -> Parameters:
        """Posterior means of m and u, and of what weights depend on besides."""
        m, u = self.m.mean(axis=(0, 1)), self.u.mean(axis=(0, 1))
        used = self.fit.parameters.used
        if self.law is None:
            return Parameters(m, u, used)
        return Dependent(m, u, used, self.law, self.fit.structure.tree)

    def pair_probabilities(self) -> Any:
        """Table of pairs that may be of one person: id_a, id_b, probability, match_weight."""
        return for_caller(self.fit.pairs, self.listed_pairs())

    def listed_pairs(self) -> Any:
        """The same as an Arrow table with ids as text."""
        at = np.flatnonzero(self.together.probability >= LEAST)
        return self._table(at[np.argsort(-self.together.probability[at], kind="stable")])

    def pairs(self, *, false_pair: float = 1.0, missed_pair: float = 1.0) -> Any:
        """Pairs to link at these costs, each by itself: three may contradict each other."""
        least = ClusterLoss(false_pair, missed_pair).least_probability
        return for_caller(
            self.fit.pairs, self._table(np.flatnonzero(self.together.probability > least))
        )

    def _table(self, at: Ints) -> Any:
        a, b = self.together.a[at], self.together.b[at]
        pairs = Pairs(a, b, self.fit.pairs.levels_of(a, b))
        weight = self.parameters.weight_of(pairs.levels) / math.log(2)
        columns = {"probability": self.together.probability[at], "match_weight": weight}
        return pair_table(self.fit.pairs, pairs, columns)

    def alone(self) -> Floats:
        """The probability of each record to have no other."""
        out = np.zeros(self.kept.shape[1])
        for draw in self.kept:
            out += np.bincount(draw, minlength=len(out))[draw] == 1
        return out / max(1, len(self.kept))

    def probability_of(self, rows: Sequence[int]) -> float:
        """The probability that these rows, and no other, are one person."""
        rows_ = np.asarray(rows, np.int64)
        label = self.kept[:, rows_]
        same = np.flatnonzero((label == label[:, :1]).all(1))
        exact = sum(int((self.kept[d] == label[d, 0]).sum() == len(rows_)) for d in same)
        return exact / max(1, len(self.kept))

    def cluster_probabilities(self, cluster: Ints) -> Floats:
        """Of each row: the probability that its cluster, exactly, is one person."""
        number = np.unique(cluster, return_inverse=True)[1]
        size = np.bincount(number)
        first = np.full(len(size), -1)
        first[number[::-1]] = np.arange(len(number))[::-1]
        out = np.zeros(len(size))
        for draw in self.kept:
            same = np.bincount(number, draw == draw[first[number]], len(size)) == size
            out += same & (np.bincount(draw, minlength=len(draw))[draw[first]] == size)
        return (out / max(1, len(self.kept)))[number]

    def diagnostics(self, interval: float = 0.95) -> Diagnostics:
        """R-hat, effective sample sizes and Monte Carlo errors of all that is followed."""
        return summarize(self.quantities(), interval=interval)

    def warning(self) -> str | None:
        """What is wrong with the draws, in words; None if nothing is."""
        return verdict(self.diagnostics())

    def quantities(self) -> dict[str, NDArray[Any]]:
        """Everything that is followed over draws, each chain × draw."""
        out: dict[str, NDArray[Any]] = {
            "people": self.drawn.draws,
            "log_posterior": self.log_posterior,
        }
        for name, values in (("m", self.m), ("u", self.u)):
            for j, f in enumerate(self.fit.pairs.fields):
                for h in range(1, f.n_levels + 1):
                    out[f"{name}[{f.name}, {h}]"] = values[:, :, j, h]
        return {**out, **self._by_files()}

    def _by_files(self) -> dict[str, NDArray[Any]]:
        entities = self.drawn
        if entities.in_files is None:
            return {}
        names = sets_in_words(entities.names)
        return {
            f"people_in[{name}]": entities.in_files[:, :, which]
            for which, name in enumerate(names)
            if which
        }

    # --- decisions ---------------------------------------------------------------------------

    def estimate(
        self, loss: ClusterLoss | None = None, *, method: str = "binder"
    ) -> ClusterDecision:
        """The partition to go on with.

        Parameters
        ----------
        loss
            Costs of errors; balanced unless given.
        method
            "binder": least expected loss over pairs; "vi": least expected variation of information
            among that one, the fit's and some of the draws.
        """
        loss, keys = loss or ClusterLoss(), self.fit.pairs.tie_keys[0]
        alone = self.alone()
        files = self.fit.pairs.files
        apart = None if files is None else files.apart
        found = least_loss(self.together, keys, loss, alone, apart)
        if method == "binder":
            return found
        if method != "vi":
            raise SettingsError(f"unknown method {method!r}. Allowed: 'binder', 'vi'.")
        tried = [found.cluster, self.fit.clusters]
        tried += [d.astype(np.int64) for d in self._some(_PROPOSED)]
        distance = [self.variation(cluster) for cluster in tried]
        return decide(self.together, tried[int(np.argmin(distance))], loss, alone, keys)

    def variation(self, cluster: Ints) -> float:
        """Expected variation of information of a partition, in nats."""
        return variation_of_information(cluster, self._some(_COMPARED))

    def _some(self, k: int) -> NDArray[np.int32]:
        at = np.unique(np.linspace(0, len(self.kept) - 1, min(k, len(self.kept))).round())
        return self.kept[at.astype(np.int64)]
