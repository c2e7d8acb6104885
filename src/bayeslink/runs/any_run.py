"""What a linkage and a run of people have in common."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from bayeslink.pairs.source import PairSource

if TYPE_CHECKING:
    from bayeslink.review.background import ReviewPage

_LIBRARIES = ("bayeslink", "numpy", "scipy", "numba", "rapidfuzz", "pyarrow")


class AnyRun:
    """A finished run, of either kind."""

    @property
    def fingerprint(self) -> str:
        """Hash of what a sample is drawn from, as it was saved; "" before that."""
        return ""

    def review(
        self,
        directory: Any = None,
        *,
        show: Sequence[str] = (),
        port: int = 0,
        browser: bool = True,
    ) -> ReviewPage:
        """Judge what is in doubt on a page in the browser, as `bayeslink review` has it.

        The page is served until `.close()`, or until this process ends, to this machine only. What
        is judged is kept at once in the run's directory, as review.sqlite.

        Parameters
        ----------
        directory
            Where to save the run, if it was not opened from a directory.
        show
            Columns to see that are not compared; of two files, "COLUMN_A=COLUMN_B" where their
            names differ, and of more, as the first calls them.
        port
            0 for any that is free.
        browser
            Open a browser, where there is a screen.
        """
        module: Any = import_module("bayeslink.review.background")  # of a room above
        page: ReviewPage = module.review(self, directory, show=show, port=port, browser=browser)
        return page


def made_with(pairs: PairSource) -> dict[str, Any]:
    """Software and inputs, as run.json has them."""
    described = pairs.describe()
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {name: version(name) for name in _LIBRARIES},
        "python": platform.python_version(),
        "platform": platform.platform(),
        "engine": described.engine,
        "inputs": [dict(given) for given in described.inputs],
        "fields": _fields_told(pairs),
    }


def _fields_told(pairs: PairSource) -> list[dict[str, Any]]:
    """What was compared and how, and how many pairs each level has, as run.json has it."""
    described, counts = pairs.describe(), pairs.level_counts().counts
    return [
        {
            "name": f.name,
            "comparison": f.kind,
            "normalise": list(f.normalise),
            "levels": list(f.labels),
            "pairs_by_level": np.asarray(counts[j, : f.n_levels + 1]).tolist(),
            **described.fields[j],
        }
        for j, f in enumerate(pairs.fields)
    ]
