"""The prior over partitions of records into people, through files and sizes of clusters.

The set of files that a person is in is an exchangeable sequence with shares ~ Dirichlet(α); how
many records the people of a file have there is another, with shares ~ Dirichlet(β) of the sizes
(Betancourt, Zanella & Steorts 2022). With N clusters, n_S of them in the set of files S, and in
file f n_f, n_fk of them with k records,

    p(Z) ∝ N! · D(n_S; α) · Π_f D(n_fk; β_f) · Π_clusters Π_f k_f!,
    D(n; α) = Γ(A) / Γ(n + A) · Π_k Γ(n_k + α_k) / Γ(α_k),   A = Σ α, n = Σ n_k.

In a clean file all have one record. α is the same for all sets, and adds up to K + 1 for K files:
for two clean files any number of people in both is then about as likely (within a factor of 4).
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from bayeslink.errors import SettingsError
from bayeslink.pairs.source import Files, Floats, Ints

LARGEST_CLUSTER = 500  # records of one person in a file
MOST_FILES = 10  # a person is in one of 2^10 − 1 sets of them
_FLOOR = 0.1  # of β, for sizes up to ten; beyond, it falls with the square of the size


@dataclass(frozen=True, slots=True)
class ClusterSizes:
    """A priori a person has k records with a chance of (1 − repeat) · repeat^(k − 1), about.

    Attributes
    ----------
    repeat
        The chance of one more record, after each.
    people
        How many people's worth of data that is. No size has less than a floor, so that sizes not
        seen yet stay within reach: .1 people up to ten records, .1 · (10 / k)² beyond.
    """

    repeat: float = 0.5
    people: float = 5.0

    def __post_init__(self) -> None:
        if not isinstance(self.repeat, Real) or not 0 < self.repeat < 1:
            raise SettingsError(
                f"ClusterSizes: repeat must be between 0 and 1, got {self.repeat!r}. It is the "
                "chance that a person has one more record."
            )
        if not isinstance(self.people, Real) or not 0 < self.people <= 1_000_000:
            raise SettingsError(
                "ClusterSizes: people must be positive and at most 1,000,000, got "
                f"{self.people!r}. It is how many people's worth of data the prior is."
            )

    def beta(self, n_records: int) -> Floats:
        """Dirichlet parameters of sizes 0 (none), 1 … the largest that is allowed."""
        k = np.arange(min(n_records, LARGEST_CLUSTER) + 1)
        floor = _FLOOR * np.minimum(1.0, (10 / np.maximum(k, 1)) ** 2)
        beta = np.maximum(floor, self.people * (1 - self.repeat) * self.repeat ** (k - 1.0))
        beta[0] = 0.0
        return beta


@dataclass(frozen=True, slots=True)
class PartitionPrior:
    """The prior over partitions of the records of some files into people.

    Attributes
    ----------
    file
        The file of each record.
    alpha
        Dirichlet parameters of the sets of files that a person can be in, by their bits.
    beta
        file × size: Dirichlet parameters of the number of records of a person in a file, from 0;
        0 of sizes that cannot be. In a clean file a person has one record.
    """

    file: NDArray[np.int32]
    alpha: Floats
    beta: Floats

    @classmethod
    def of(cls, sizes: ClusterSizes, n_records: int, files: Files | None = None) -> PartitionPrior:
        if files is None:
            files = Files(("",), np.zeros(n_records, np.int64), ())
        n_files = len(files.names)
        if n_files > MOST_FILES:
            raise SettingsError(
                f"{n_files} files are given; at most {MOST_FILES} can be linked at a time. Stack "
                "files of one kind into one, and name it among those with duplicates."
            )
        by_file = [
            np.array([0.0, 1.0]) if k in files.clean else sizes.beta(int(n))
            for k, n in enumerate(np.bincount(files.of, minlength=n_files))
        ]
        beta = np.zeros((n_files, max(map(len, by_file))))
        for k, own in enumerate(by_file):
            beta[k, : len(own)] = own
        alpha = np.full(1 << n_files, (n_files + 1) / ((1 << n_files) - 1))
        alpha[0] = 0.0
        return cls(files.of.astype(np.int32), alpha, beta)

    @property
    def largest(self) -> Ints:
        """The most records of one person in each file."""
        return np.array([int(np.flatnonzero(own).max(initial=0)) for own in self.beta])

    @property
    def clean_bits(self) -> Ints:
        """Of each record, the bit of its file if nobody is twice in it; else 0."""
        return np.where(self.largest == 1, 1 << np.arange(len(self.beta)), 0)[self.file]

    def records(self, cluster: Ints) -> Ints:
        """cluster × file: records; clusters are numbered from 0."""
        n, n_files = int(cluster.max(initial=-1)) + 1, len(self.beta)
        out = np.bincount(cluster * n_files + self.file, minlength=n * n_files)
        return out.reshape(n, n_files)

    def allows(self, cluster: Ints) -> bool:
        """Whether no person has more records in a file than can be."""
        return bool((self.records(cluster) <= self.largest).all())

    def log(self, cluster: Ints) -> float:
        """log p(Z) up to a constant; clusters are numbered from 0."""
        records = self.records(cluster)
        n_sets = len(self.alpha)
        which = np.bincount(sets_of(records), minlength=n_sets)
        out = gammaln(len(records) + 1) + _log_sequence(which, self.alpha)
        for own, beta in zip(records.T, self.beta, strict=True):
            out += _log_sequence(np.bincount(own[own > 0], minlength=len(beta)), beta)
        return float(out + gammaln(records + 1).sum())


def sets_of(records: Ints) -> Ints:
    """The files that each person is in, as bits; from cluster × file."""
    return np.asarray((records > 0) @ (1 << np.arange(records.shape[1])))


def _log_sequence(counts: Ints, weights: Floats) -> float:
    """log of the chance of a sequence with these counts, shares being Dirichlet."""
    seen = np.flatnonzero(counts)
    total = weights.sum()
    out = gammaln(total) - gammaln(counts.sum() + total)
    return float(out + (gammaln(counts[seen] + weights[seen]) - gammaln(weights[seen])).sum())


def edge_cost(n_pairs: int, n_edges: int) -> float:
    """θ in force: the log odds against a pair being an edge, one more than there are among them.

    Not what the prior asks for joining two single records: where hardly one is left, that is next
    to nothing, and joining two pairs costs as much as ever.
    """
    return float(np.log(max(1, n_pairs) / (n_edges + 1.0)))
