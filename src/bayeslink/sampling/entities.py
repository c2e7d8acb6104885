"""How many people the records are of: by their number of records, and by the files they are in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from bayeslink.errors import SettingsError
from bayeslink.notebook_html import Shown
from bayeslink.pairs.source import Ints

if TYPE_CHECKING:
    from bayeslink.sampling.many_lists import ManyLists


@dataclass(frozen=True, slots=True)
class Entities(Shown):
    """How many people the records are of, by their number of records and by the files they are in.

    `in_files` counts people by the files they are in, and in no other: entry h those in exactly
    the files whose bits are set in h, the first of `names` being bit 1. None of one file.
    """

    draws: Ints  # chain × draw
    of_size: Ints = field(repr=False)  # chain × draw × size
    in_files: Ints | None = field(default=None, repr=False)  # chain × draw × set of files
    names: tuple[str, ...] = ()

    @property
    def mean(self) -> float:
        return float(self.draws.mean())

    def interval(self, level: float = 0.95) -> tuple[int, int]:
        """Equal-tailed credible interval of the number of people."""
        return _interval(self.draws, level)

    def sizes(self, level: float = 0.95) -> list[dict[str, Any]]:
        """By number of records: people expected, and their interval."""
        last = self.of_size.shape[2] - 1
        out = []
        for k in range(1, last + 1):
            draws = self.of_size[:, :, k]
            low, high = _interval(draws, level)
            if high > 0:
                name = f"{k}" if k < last else f"{k} or more"
                out.append(
                    {"records": name, "people": float(draws.mean()), "low": low, "high": high}
                )
        return out

    def by_files(self, level: float = 0.95) -> list[dict[str, Any]]:
        """By the files that people are in, and no other: people expected, and their interval."""
        in_files, out = self._of_several(), []
        for which, name in list(enumerate(sets_in_words(self.names)))[1:]:
            draws = in_files[:, :, which]
            low, high = _interval(draws, level)
            out.append({"files": name, "people": float(draws.mean()), "low": low, "high": high})
        return sorted(out, key=lambda row: -row["files"].count("+"))

    def population(self, files: Sequence[str] | None = None, **how: Any) -> ManyLists:
        """How many people there are, in the files or in none of them, the linkage's doubt included.

        Parameters
        ----------
        files
            The files to go by, two to five; all unless given.
        how
            `models`, `interval` and `seed`, as `population_from_lists` takes them.
        """
        from bayeslink.sampling.many_lists import population_from_lists

        in_files, names = self._of_several(), tuple(files or self.names)
        if unknown := [name for name in names if name not in self.names]:
            raise SettingsError(f"there is no file {unknown[0]!r}. Files: {', '.join(self.names)}.")
        at = [self.names.index(name) for name in names]
        which = np.arange(1 << len(self.names))
        folded = sum((which >> k & 1) << j for j, k in enumerate(at))
        counts = np.zeros((in_files[:, :, 0].size, 1 << len(names)), np.int64)
        np.add.at(counts.T, folded, in_files.reshape(len(counts), -1).T)
        return population_from_lists(counts[:, 1:], names, **how)

    def _of_several(self) -> Ints:
        if self.in_files is None:
            raise SettingsError(
                "these are the people of one file. Several, linked by bl.link_many, say in which "
                "files people are, and how many there are in all."
            )
        return self.in_files


def sets_in_words(names: Sequence[str]) -> list[str]:
    """Each set of files by its bits, as people read it; the first is none."""
    return [
        "+".join(name for k, name in enumerate(names) if which >> k & 1)
        for which in range(1 << len(names))
    ]


def _interval(draws: Ints, level: float) -> tuple[int, int]:
    if not 0 < level < 1:
        raise SettingsError(f"level must be between 0 and 1, got {level!r}. Write 95 % as 0.95.")
    tail = (1 - level) / 2
    low, high = np.quantile(draws, [tail, 1 - tail], method="inverted_cdf")
    return int(low), int(high)
