"""The pairs of one file with itself, as a list: a plain `PairSource` for tests."""

from dataclasses import dataclass

import numpy as np

from bayeslink.engines.listed import ListedPairs
from bayeslink.pairs.source import Pairs, Patterns, Scope
from bayeslink.pairs.vectors import distinct_vectors


@dataclass(frozen=True, slots=True)
class OneFileScope(Scope):
    @property
    def n_pairs(self):
        return int((self.sizes_a * (self.sizes_a - 1) // 2).sum())

    @property
    def max_links(self):
        return int(self.sizes_a.sum()) - 1


class OneFile(ListedPairs):
    """All pairs of n records, (lower row, higher row), with the levels given in that order."""

    one_file = True

    def __init__(self, fields, levels, n):
        a, b = np.triu_indices(n, 1)
        ids = [f"r{i}" for i in range(n)]
        pairs = Pairs(a.astype(np.int32), b.astype(np.int32), np.asarray(levels, np.uint8))
        super().__init__(fields, pairs, (ids, ids))

    def _check(self):
        self.scope = OneFileScope(self.scope.sizes_a, self.scope.sizes_b)
        assert len(self._pairs) == self.scope.n_pairs

    def pattern_counts(self, fields=None, rows=None):
        which = list(range(len(self.fields)) if fields is None else fields)
        levels = self._pairs.levels[:, which]
        if rows is not None:
            levels = levels[np.isin(self._pairs.a, rows) | np.isin(self._pairs.b, rows)]
        patterns, _, pattern = distinct_vectors(levels)
        return Patterns(patterns, np.bincount(pattern, minlength=len(patterns)))

    def find(self, ids):
        rows = np.array([[int(str(x)[1:]) for x in pair] for pair in ids]).reshape(-1, 2)
        a, b = rows.min(1).astype(np.int32), rows.max(1).astype(np.int32)
        return Pairs(a, b, self.levels_of(a, b))
