"""Pairs known to be links or non-links, as clerical review has them: they hold with certainty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayeslink.distinct import distinct
from bayeslink.errors import SettingsError
from bayeslink.pairs.source import Pairs, PairSource


@dataclass(frozen=True, slots=True)
class Known:
    """Known links and known non-links, as rows."""

    links: Pairs
    nonlinks: Pairs

    @classmethod
    def of(cls, pairs: PairSource, links: Any = None, nonlinks: Any = None) -> Known:
        """From tables of (id_a, id_b), checked; None: there are none."""
        known, barred = (
            pairs.find(given) if given is not None else _none(pairs) for given in (links, nonlinks)
        )
        for rows, file in ((known.a, "A"), (known.b, "B")):
            if len(distinct(rows)) < len(rows):
                raise SettingsError(
                    f"a record of {file} is in two known links. Each record has at most one; "
                    "drop all but one of its links."
                )
        both = set(zip(known.a.tolist(), known.b.tolist(), strict=True)) & set(
            zip(barred.a.tolist(), barred.b.tolist(), strict=True)
        )
        if both:
            raise SettingsError(
                f"{len(both)} pairs are given both as links and as non-links. Settle them first."
            )
        return cls(known, barred)

    def __bool__(self) -> bool:
        return len(self.links) > 0 or len(self.nonlinks) > 0

    def leave_open(self, pairs: Pairs) -> NDArray[np.bool_]:
        """Which pairs may or may not link: none that is known, or of a record with a known link."""
        if not self:
            return np.ones(len(pairs), bool)
        settled = np.isin(pairs.a, self.links.a) | np.isin(pairs.b, self.links.b)
        if len(self.nonlinks):
            span = int(max(pairs.b.max(initial=0), self.nonlinks.b.max())) + 1
            settled |= np.isin(pairs.numbered(span), self.nonlinks.numbered(span))
        return ~settled


def _none(pairs: PairSource) -> Pairs:
    empty = np.zeros(0, np.int32)
    return Pairs(empty, empty, np.zeros((0, len(pairs.fields)), np.uint8))
